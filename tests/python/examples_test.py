"""python/millrace: Examples and SequenceExamples, compared with TensorFlow where it is installed."""
import copy
import os
import pickle
import random
import struct
import sys
import threading
import unittest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

import numpy as np  # noqa: E402

import millrace as mr  # noqa: E402

try:
    import tensorflow as tf
except ImportError:
    tf = None
needs_tensorflow = unittest.skipUnless(tf, "TensorFlow is not installed")
errors = mr.errors
Example, SequenceExample = mr.Example, mr.SequenceExample


def random_value(random_):
    """A value for encode, and what parse returns for it."""
    count = random_.choice((1, 1, 2, 5, 40, 200))
    bits = random_.choice((3, 7, 14, 31, 63))
    ints = [random_.randrange(-(1 << bits), 1 << bits) for _ in range(count)]
    floats = [random_.uniform(-1e3, 1e3) for _ in range(count)]
    words = [bytes(random_.randrange(256) for _ in range(random_.choice((0, 1, 150)))) for _ in range(min(count, 5))]
    as_ints, as_floats = np.array(ints, np.int64), np.array(floats, np.float32)
    return random_.choice(
        (
            (ints, as_ints),
            (tuple(ints), as_ints),
            (ints[0], as_ints[:1]),
            (as_ints, as_ints),
            (as_ints[::2], as_ints[::2]),
            (np.int64(ints[0]), as_ints[:1]),
            (floats, as_floats),
            (floats[0], as_floats[:1]),
            (np.array(floats), as_floats),
            ([0.5, 1, np.int32(2)], np.array([0.5, 1, 2], np.float32)),
            (np.float32(floats[0]), as_floats[:1]),
            (words, words),
            (words[0], words[:1]),
            (np.array(words, object), words),
            ("käse", ["käse".encode()]),
            (["a", b"b"], [b"a", b"b"]),
            (np.array(["a", "bcd"]), [b"a", b"bcd"]),
            (True, np.array([1])),
            (np.array([[True, False]]), np.array([1, 0])),
            (np.zeros((0, 3), np.float32), np.zeros(0, np.float32)),
            (np.zeros(0, np.int8), np.zeros(0, np.int64)),
            (np.zeros(0, object), []),
        )
    )


def random_features(random_):
    starts = random_.choices(("a", "b/c", "", "ä", "x" * 200), k=random_.randrange(8))
    names = [start + str(random_.randrange(5)) for start in starts]
    values = {name: random_value(random_) for name in names}
    return {n: v[0] for n, v in values.items()}, {n: v[1] for n, v in values.items()}


def message_of(expected):
    """The tf.train.Feature of what parse returns."""
    if expected is None:
        return tf.train.Feature()
    if isinstance(expected, list):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=expected))
    if expected.dtype == np.float32:
        return tf.train.Feature(float_list=tf.train.FloatList(value=expected))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=expected))


class Same(unittest.TestCase):
    def assertSame(self, found, expected):
        self.assertEqual(found.keys(), expected.keys())
        for name, value in expected.items():
            self.assertValue(found[name], value)

    def assertValue(self, found, value):
        self.assertIs(type(found), type(value))
        if isinstance(value, np.ndarray):
            self.assertEqual(found.dtype, value.dtype)
            np.testing.assert_array_equal(found, value)
            self.assertTrue(found.flags.writeable)
        else:
            self.assertEqual(found, value)


class Encode(Same):
    def test_random(self):
        for seed in range(500):
            features, expected = random_features(random.Random(seed))
            record = Example.encode(features)
            self.assertSame(Example.parse(record), expected)
            self.assertSame(mr._examples._walk(record, mr._examples._features)[0], expected)
            if tf:
                own = tf.train.Features(feature={n: message_of(v) for n, v in expected.items()})
                message = tf.train.Example(features=own)
                self.assertEqual(record, message.SerializeToString(deterministic=True), seed)

    def test_sequence_random(self):
        for seed in range(300):
            random_ = random.Random(seed)
            context, expected_context = random_features(random_)
            lists, expected_lists = {}, {}
            for name in ("steps", "none", "é")[: random_.randrange(4)]:
                steps = [random_value(random_) for _ in range(0 if name == "none" else random_.randrange(5))]
                lists[name], expected_lists[name] = [s[0] for s in steps], [s[1] for s in steps]
            record = SequenceExample.encode(context, lists)
            found_context, found_lists = SequenceExample.parse(record)
            self.assertSame(found_context, expected_context)
            self.assertEqual(found_lists.keys(), expected_lists.keys())
            for name, steps in expected_lists.items():
                self.assertEqual(len(found_lists[name]), len(steps))
                for found, step in zip(found_lists[name], steps):
                    self.assertValue(found, step)
            if tf:
                message = tf.train.SequenceExample.FromString(record)
                again = {n: [message_of(s) for s in steps] for n, steps in expected_lists.items()}
                self.assertEqual({n: list(v.feature) for n, v in message.feature_lists.feature_list.items()}, again)
                self.assertEqual(
                    dict(message.context.feature), {n: message_of(v) for n, v in expected_context.items()}
                )

    def test_limits_of_integers(self):
        low, high = -(1 << 63), (1 << 63) - 1
        values = [0, 1, -1, 127, 128, 255, 256, 16383, 16384, low, high]
        self.assertEqual(Example.parse(Example.encode({"x": values}))["x"].tolist(), values)
        for value in values:
            for several in (value, [value], [value] * 3, [value] * 40, [0, value], np.full(40, value)):
                expected = np.ravel(np.array(several, np.int64)).tolist()
                self.assertEqual(Example.parse(Example.encode({"x": several}))["x"].tolist(), expected)
        self.assertEqual(Example.parse(Example.encode({"x": np.array([high], np.uint64)}))["x"].tolist(), [high])
        for value in (
            high + 1, low - 1, [high + 1], [0, low - 1], [1 << 80], np.uint64(high + 1), [np.uint64(high + 1)],
            np.array([0, high + 1], np.uint64), np.full(100, high + 1, np.uint64), [high + 1] * 100,
        ):  # fmt: skip
            with self.assertRaisesRegex(ValueError, "'x'.*int64"):
                Example.encode({"x": value})

    def test_floats(self):
        values = [0.0, -0.0, 1e300, -1e300, float("inf"), float("-inf"), 1e-50]
        expected = [0.0, -0.0, float("inf"), float("-inf"), float("inf"), float("-inf"), 0.0]
        self.assertEqual(Example.parse(Example.encode({"x": values}))["x"].tolist(), expected)
        for value, one in zip(values, expected):
            self.assertEqual(Example.parse(Example.encode({"x": value}))["x"].tolist(), [one])
        self.assertTrue(np.isnan(Example.parse(Example.encode({"x": float("nan")}))["x"][0]))

    def test_dtypes(self):
        for dtype in "?bBhHiIlLqQ":
            self.assertEqual(Example.parse(Example.encode({"x": np.ones((2, 2), dtype)}))["x"].tolist(), [1] * 4)
        for dtype in ("e", "f", "d", "g", ">f4", ">f8"):
            self.assertEqual(Example.parse(Example.encode({"x": np.ones((2, 2), dtype)}))["x"].tolist(), [1.0] * 4)
        for dtype in (">i8", ">u2"):
            self.assertEqual(Example.parse(Example.encode({"x": np.arange(3, dtype=dtype)}))["x"].tolist(), [0, 1, 2])
        self.assertEqual(Example.parse(Example.encode({"x": np.array(5)}))["x"].tolist(), [5])
        self.assertEqual(Example.parse(Example.encode({"x": np.array(b"ab")}))["x"], [b"ab"])

    def test_kinds_of_bytes(self):
        for value in (b"ab", "ab", bytearray(b"ab"), memoryview(b"ab"), np.bytes_(b"ab"), np.str_("ab")):
            self.assertEqual(Example.parse(Example.encode({"x": value}))["x"], [b"ab"])
            self.assertEqual(Example.parse(Example.encode({"x": [value]}))["x"], [b"ab"])

    def test_subclasses(self):
        class Text(str):
            pass

        class Number(int):
            pass

        found = Example.parse(Example.encode({Text("a"): Text("b"), "n": Number(3), "m": [Number(300)]}))
        self.assertEqual((found["a"], found["n"].tolist(), found["m"].tolist()), ([b"b"], [3], [300]))

    def test_wrong_values(self):
        for value in (
            None, {}, {1: 2}, set(), object(), 1j, [None], [[1]], [1, [2]], [True, 2.5], [1, "a"], [b"a", 1],
            [np.zeros(2)], np.zeros(2, np.complex64), np.array(["2020"], "M8[D]"), np.array([None]),
            np.array([1, "a"], object), lambda: 1,
        ):  # fmt: skip
            with self.subTest(value=value), self.assertRaisesRegex(TypeError, "'name/x'"):
                Example.encode({"name/x": value})
        for value in ([], (), "\ud800", ["\ud800"]):
            with self.subTest(value=value), self.assertRaisesRegex(ValueError, "'x'"):
                Example.encode({"x": value})
        for features in (None, 1, [1], "ab", [("a", 1)], {1: 2}, {b"a": 1}, {"a": 1, 2: 3}):
            with self.subTest(features=features), self.assertRaisesRegex(TypeError, "features"):
                Example.encode(features)
        with self.assertRaisesRegex(ValueError, "not valid Unicode"):
            Example.encode({"\ud800": 1})

    def test_wrong_sequences(self):
        for lists in (1, {"x": 1}, {"x": "ab"}, {"x": None}, {"x": {}}, {1: [1]}):
            with self.subTest(lists=lists), self.assertRaisesRegex(TypeError, "feature"):
                SequenceExample.encode({}, lists)
        with self.assertRaisesRegex(TypeError, r"x\[1\]"):
            SequenceExample.encode({}, {"x": [1, {}]})
        with self.assertRaisesRegex(TypeError, "context"):
            SequenceExample.encode([1])

    def test_no_features(self):
        self.assertEqual(Example.parse(Example.encode({})), {})
        self.assertEqual(Example.parse(b""), {})
        self.assertEqual(SequenceExample.parse(SequenceExample.encode()), ({}, {}))
        self.assertEqual(SequenceExample.parse(b""), ({}, {}))

    def test_arrays_as_steps(self):
        record = SequenceExample.encode(feature_lists={"x": np.arange(6).reshape(3, 2), "y": [[1], None]})
        lists = SequenceExample.parse(record)[1]
        self.assertEqual([step.tolist() for step in lists["x"]], [[0, 1], [2, 3], [4, 5]])
        self.assertEqual((lists["y"][0].tolist(), lists["y"][1]), ([1], None))

    def test_no_instances(self):
        for cls in (Example, SequenceExample):
            with self.assertRaises(TypeError):
                cls()


class Parse(Same):
    def test_other_encodings(self):
        """Valid records that no writer produces are parsed by the rules of tf.io.parse_example."""

        def field(tag, content):
            return bytes([tag, len(content)]) + content

        def example(*features):
            return field(0x0A, b"".join(field(0x0A, field(0x0A, n) + field(0x12, f)) for n, f in features))

        ints = field(0x1A, field(0x0A, b"\x05"))
        unpacked = field(0x1A, b"\x08\x05\x08\x06")
        floats = field(0x12, b"\x0d" + struct.pack("<f", 2.5))
        five, empty = np.array([5]), np.zeros(0, np.int64)
        for record, expected in (
            (example((b"a", unpacked)), {"a": np.array([5, 6])}),
            (example((b"a", floats)), {"a": np.array([2.5], np.float32)}),
            (example((b"a", b"")), {}),
            (example((b"a", ints), (b"a", b"")), {"a": five}),
            (example((b"a", ints), (b"a", b"\x1a\x00")), {"a": empty}),
            (example((b"a", ints)) + example((b"a", unpacked)), {"a": np.array([5, 6])}),
            (example((b"a", ints)) + b"\x18\x01", {"a": five}),
            (b"\x0a\x00", {}),
        ):
            with self.subTest(record=record):
                self.assertSame(Example.parse(record), expected)

    def test_damaged(self):
        """Every prefix and every changed byte: a DataLossError, or what the library's own parser finds."""
        record = Example.encode({"a": [1, 300, -1], "b": [1.5, 2.5], "c": [b"x", b"yz"], "d": 7, "e": b"q" * 200})
        damaged = [record[:size] for size in range(len(record))]
        random_ = random.Random(1)
        for _ in range(3000):
            content = bytearray(record)
            byte = random_.choice((0, 1, 10, 0x7F, 0x80, 0xFF, random_.randrange(256)))
            content[random_.randrange(len(content))] = byte
            damaged.append(bytes(content))
        walk, features = mr._examples._walk, mr._examples._features
        for content in damaged:
            try:
                expected = walk(content, features)[0]
            except errors.OpError as error:
                expected = type(error)
            try:
                found = Example.parse(content)
            except errors.OpError as error:
                self.assertIs(type(error), expected, content)
                continue
            self.assertIsInstance(expected, dict, content)
            self.assertEqual(list(map(str, found.items())), list(map(str, expected.items())))

    def test_damaged_sequences(self):
        record = SequenceExample.encode({"a": [1, 300]}, {"b": [[1.5], [2.5, 3.0]], "c": [b"x"]})
        random_ = random.Random(2)
        for _ in range(2000):
            content = bytearray(record[: random_.randrange(len(record) + 1)])
            if content:
                content[random_.randrange(len(content))] = random_.randrange(256)
            try:
                SequenceExample.parse(bytes(content))
            except errors.OpError:
                pass

    def test_wrong_types(self):
        for parse in (Example.parse, SequenceExample.parse):
            for value in (None, 1, "text", [b"x"]):
                with self.assertRaisesRegex(TypeError, "record"):
                    parse(value)
        record = Example.encode({"a": 1})
        for value in (bytearray(record), memoryview(record), np.frombuffer(record, np.uint8)):
            self.assertEqual(Example.parse(value)["a"].tolist(), [1])

    def test_name_that_is_not_text(self):
        record = Example.encode({"?": 1}).replace(b"?", b"\xff")
        self.assertEqual(Example.encode(Example.parse(record)), record)

    def test_threads(self):
        features, expected = random_features(random.Random(20))
        record = SequenceExample.encode(features, {"x": [[i] for i in range(50)]})
        failures = []

        def run():
            try:
                for _ in range(200):
                    context, lists = SequenceExample.parse(record)
                    self.assertSame(context, expected)
                    self.assertEqual([int(step[0]) for step in lists["x"]], list(range(50)))
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=run) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual(failures, [])


class Columns(unittest.TestCase):
    def check(self, records, features):
        """parse_example with features of both packages, compared with tf.io.parse_example."""
        found = mr.parse_example(records, features)
        if tf:
            self.compare(found, tf.io.parse_example(records, self.of_tensorflow(features)))
            self.assertEqual(str(mr.parse_example(records, self.of_tensorflow(features))), str(found))
            if len(records) == 1:
                single = tf.io.parse_single_example(records[0], self.of_tensorflow(features))
                self.compare(mr.parse_single_example(records[0], features), single)
        return found

    def compare(self, found, expected):
        self.assertEqual(found.keys(), expected.keys())
        for name, value in expected.items():
            self.same(found[name], value, name)

    def same(self, found, expected, name):
        if isinstance(expected, tf.RaggedTensor):
            self.assertIsInstance(found, mr.RaggedTensorValue)
            self.same(found.values, expected.values, name)
            self.same(found.row_splits, expected.row_splits, name)
        elif isinstance(expected, tf.SparseTensor):
            self.assertIsInstance(found, mr.SparseTensorValue)
            for part in ("indices", "values", "dense_shape"):
                self.same(getattr(found, part), getattr(expected, part), name)
        else:
            expected = expected.numpy()
            self.assertEqual(np.shape(found), np.shape(expected), name)
            if not isinstance(expected, bytes):
                self.assertEqual(found.dtype, expected.dtype, name)
            np.testing.assert_array_equal(found, expected, name)

    def of_tensorflow(self, features):
        made = {}
        for name, feature in features.items():
            kind = type(feature).__name__
            if kind == "DType":
                made[name] = tf.io.FixedLenFeature((), feature.name)
                continue
            fields = feature._asdict()
            fields["dtype"] = tf.as_dtype(fields["dtype"].name)
            if kind == "RaggedFeature":
                cls = tf.io.RaggedFeature
                fields["partitions"] = [getattr(cls, type(p).__name__)(*p) for p in fields["partitions"]]
                fields["row_splits_dtype"] = tf.as_dtype(fields["row_splits_dtype"])
            made[name] = getattr(tf.io, kind)(**fields)
        return made

    def test_all_forms(self):
        records = [
            Example.encode(
                {
                    "label": i, "box": [0.5, float(i)], "name": f"n{i}", "words": ["a"] * i, "ids": list(range(i + 1)),
                    "at": [2, 0], "at2": [1, 0], "value": [1.5, 2.5], "splits": [0, 1, i + 1], "pairs": list(range(4)),
                    "extra": list(range(5 * i)),
                }
                if i else {"label": 0, "box": [1.0, 2.0], "name": b"", "value": [1.0], "at": [3], "at2": [1],
                           "ids": [7], "splits": [0, 1, 1], "pairs": [5, 6]}
            )
            for i in range(3)
        ]  # fmt: skip
        features = {
            "label": mr.Int64,
            "box": mr.FixedLenFeature((2,), mr.Float),
            "name": mr.String,
            "missing": mr.FixedLenFeature([], mr.Int64, 7),
            "missing2": mr.FixedLenFeature([2, 2], mr.Float, [[1, 2], [3, 4]]),
            "missing3": mr.FixedLenFeature([2], mr.String, ["a", b"b"]),
            "words": mr.VarLenFeature(mr.String),
            "sparse": mr.SparseFeature("at", "value", mr.Float, 4),
            "sparse2": mr.SparseFeature(["at", "at2"], "value", mr.Float, [4, 2], already_sorted=True),
            "ragged": mr.RaggedFeature(mr.Int64, "ids", [mr.RaggedFeature.RowSplits("splits")]),
            "ragged64": mr.RaggedFeature(mr.Int64, "extra", row_splits_dtype="int64"),
            "pairs": mr.RaggedFeature(mr.Int64, partitions=[mr.RaggedFeature.UniformRowLength(2)]),
        }
        for i in range(3):
            self.check(records[i : i + 1], features)
        found = self.check(records, features)
        self.assertEqual(found["label"].tolist(), [0, 1, 2])
        self.assertEqual(found["name"].tolist(), [b"", b"n1", b"n2"])
        self.assertEqual(found["words"].dense_shape.tolist(), [3, 2])
        self.assertEqual(found["ragged"].to_list(), [[[7], []], [[0], [1]], [[0], [1, 2]]])
        padded = {"ids": mr.FixedLenSequenceFeature((), mr.Int64, allow_missing=True, default_value=-1)}
        self.assertEqual(self.check(records, padded)["ids"].tolist(), [[7, -1, -1], [0, 1, -1], [0, 1, 2]])

    def test_no_records(self):
        self.assertEqual(mr.parse_example([], {"x": mr.Float})["x"].shape, (0,))
        self.assertEqual(mr.parse_example([b"", b""], {}), {})

    def test_kinds_of_records(self):
        records = [Example.encode({"x": i}) for i in range(3)]
        for value in (tuple(records), np.array(records, object), iter(records), map(bytearray, records)):
            self.assertEqual(mr.parse_example(value, {"x": mr.Int64})["x"].tolist(), [0, 1, 2])
        for value in (b"abc", "abc", None, 1, [1], ["text"], [None]):
            with self.assertRaisesRegex(TypeError, "records"):
                mr.parse_example(value, {"x": mr.Int64})
        with self.assertRaisesRegex(TypeError, "record "):
            mr.parse_single_example("text", {})

    def test_arrays_outlive_the_parser(self):
        records = [Example.encode({"x": np.full(1000, i)}) for i in range(10)]
        found = mr.parse_example(records, {"x": mr.FixedLenFeature(1000, mr.Int64)})["x"]
        del records
        found += 1
        self.assertEqual(found[:, -1].tolist(), list(range(1, 11)))

    def test_parsers_are_kept(self):
        from millrace import _parse

        records = [Example.encode({"x": [1], "s": "a"})]
        fixed, before = mr.FixedLenFeature, _parse._cached_parser.cache_info()
        for _ in range(100):
            mr.parse_example(records, {"x": fixed([], mr.Int64, 1), "s": mr.String})
        after = _parse._cached_parser.cache_info()
        self.assertEqual((after.hits - before.hits, after.misses - before.misses), (99, 1))
        # What is equal in Python, but has another meaning.
        missing = [Example.encode({})]
        for default, expected in ((0.0, "0.0"), (-0.0, "-0.0"), (0, "0.0")):
            found = mr.parse_example(missing, {"f": fixed((), mr.Float, default)})["f"]
            self.assertEqual(str(found[0]), expected)
        self.assertEqual(mr.parse_example(missing, {"i": fixed((), mr.Int64, 1)})["i"].tolist(), [1])
        with self.assertRaisesRegex(TypeError, "default_value"):
            mr.parse_example(missing, {"i": fixed((), mr.Int64, 1.0)})
        self.assertEqual(mr.parse_example(records, {"x": mr.VarLenFeature(mr.Int64)})["x"].values.tolist(), [1])
        self.assertEqual(mr.parse_example(records, {"x": mr.RaggedFeature(mr.Int64)})["x"].to_list(), [[1]])
        for _ in range(2):
            self.assertEqual(mr.parse_example(records, {"x": mr.Int64})["x"].tolist(), [1])
            self.assertEqual(mr.parse_single_example(records[0], {"x": mr.Int64})["x"], 1)
        # A list that is changed, and an array.
        default = [1, 2]
        features = {"y": fixed((2,), mr.Int64, default)}
        self.assertEqual(mr.parse_example(records, features)["y"].tolist(), [[1, 2]])
        default[0] = 3
        self.assertEqual(mr.parse_example(records, features)["y"].tolist(), [[3, 2]])
        default = np.array([1, 2])
        features = {"y": fixed((2,), mr.Int64, default)}
        self.assertEqual(mr.parse_example(records, features)["y"].tolist(), [[1, 2]])
        default[0] = 3
        self.assertEqual(mr.parse_example(records, features)["y"].tolist(), [[3, 2]])
        for size in range(1, 200):
            mr.parse_example(records, {"y": fixed((size,), mr.Int64, [0] * size)})
        self.assertLessEqual(_parse._cached_parser.cache_info().currsize, 64)

    def test_failures_name_the_record(self):
        records = [Example.encode({"x": 1}), Example.encode({"y": 2})]
        with self.assertRaisesRegex(errors.InvalidArgumentError, "1.*x"):
            mr.parse_example(records, {"x": mr.Int64})
        with self.assertRaisesRegex(errors.InvalidArgumentError, "x"):
            mr.parse_example(records, {"x": mr.String})
        with self.assertRaises(errors.DataLossError):
            mr.parse_example([b"\xff\xff"], {"x": mr.String})

    def test_wrong_features(self):
        fixed, ragged = mr.FixedLenFeature, mr.RaggedFeature
        for error, text, feature in (
            (TypeError, "'x'", None),
            (TypeError, "'x'", object()),
            (TypeError, "'x'", "no dtype"),
            (ValueError, "'x'.*float64", np.float64),
            (ValueError, "dtype.*'x'", fixed((), "float64")),
            (TypeError, "shape.*'x'", fixed(None, mr.Float)),
            (TypeError, "shape.*'x'", fixed("ab", mr.Float)),
            (ValueError, "shape.*'x'", fixed((-1,), mr.Float)),
            (ValueError, "shape.*'x'", fixed((1,) * 13, mr.Float)),
            (ValueError, "default_value.*'x'", fixed((3,), mr.Float, [1, 2])),
            (TypeError, "default_value.*'x'", fixed((), mr.Int64, 1.5)),
            (TypeError, "default_value.*'x'", fixed((), mr.Int64, "a")),
            (TypeError, "default_value.*'x'", fixed((), mr.String, 1)),
            (ValueError, "allow_missing.*'x'", mr.FixedLenSequenceFeature((), mr.Float)),
            (TypeError, "allow_missing.*'x'", mr.FixedLenSequenceFeature((), mr.Float, 1)),
            (ValueError, "index_key", mr.SparseFeature(["a"], "b", mr.Float, [1, 2])),
            (TypeError, "value_key", mr.SparseFeature("a", 1, mr.Float, 3)),
            (TypeError, "already_sorted", mr.SparseFeature("a", "b", mr.Float, 3, 1)),
            (TypeError, "partitions", ragged(mr.Float, partitions=3)),
            (TypeError, "partitions", ragged(mr.Float, partitions=[3])),
            (TypeError, "partitions", ragged(mr.Float, partitions=[ragged.RowSplits(3)])),
            (ValueError, "partitions", ragged(mr.Float, partitions=[ragged.UniformRowLength(0)])),
            (ValueError, "partition", ragged(mr.Float, partitions=[ragged.RowSplits("a")] * 50)),
            (ValueError, "row_splits_dtype", ragged(mr.Float, row_splits_dtype="float32")),
        ):
            with self.subTest(feature=feature), self.assertRaisesRegex(error, text):
                mr.parse_example([], {"x": feature})
        for features in (None, 1, [mr.Float], {1: mr.Float}):
            with self.assertRaisesRegex(TypeError, "features"):
                mr.parse_example([], features)
        with self.assertRaisesRegex(ValueError, "zero"):
            mr.parse_example([], {"a\0b": mr.Float})
        with self.assertRaisesRegex(ValueError, "x"):
            mr.parse_example([], {"x": mr.VarLenFeature(mr.Float), "y": ragged(mr.Float, "x")})

    def test_dtypes(self):
        for constant, others in (
            (mr.Int64, (np.int64, "int64", np.dtype("i8"), mr.Int64)),
            (mr.Float, (np.float32, "float32", np.dtype("f4"))),
            (mr.String, ("string", bytes, str, np.dtype("O"), np.dtype("S3"))),
        ):
            for other in others:
                self.assertTrue(constant == other and other == constant, other)
                mr.parse_example([], {"x": other, "y": mr.FixedLenFeature((), other)})
            self.assertFalse(any(constant == other for other in (np.int32, "float64", 3, None, "x")))
            self.assertIs(pickle.loads(pickle.dumps(constant)), constant)
            self.assertIs(copy.deepcopy(constant), constant)
        self.assertEqual(len({mr.Int64, mr.Float, mr.String, mr.Int64}), 3)
        self.assertEqual(repr(mr.Int64), "millrace.Int64")
        mr.parse_example([], {"x": int, "y": float})
        if tf:
            mr.parse_example([], {"x": tf.int64, "y": tf.io.FixedLenFeature(tf.TensorShape([2]), tf.float32)})

    def test_sequences(self):
        context = {"id": mr.Int64, "tags": mr.VarLenFeature(mr.String)}
        lists = {
            "points": mr.FixedLenSequenceFeature((2,), mr.Float),
            "none": mr.FixedLenSequenceFeature((), mr.Int64, allow_missing=True),
            "words": mr.VarLenFeature(mr.String),
            "ids": mr.RaggedFeature(mr.Int64),
        }
        records = [
            SequenceExample.encode(
                {"id": i, "tags": ["t"] * (i + 1)},
                {
                    "points": [[float(k), 0.5] for k in range(i)],
                    "words": [["w"] * (k + 1) for k in range(2)],
                    "ids": [[1, 2], [i]],
                },
            )
            for i in range(3)
        ]
        found = mr.parse_sequence_example(records, context, lists)
        self.assertEqual(found[0]["id"].tolist(), [0, 1, 2])
        self.assertEqual(found[1]["points"].shape, (3, 2, 2))
        self.assertEqual(found[2]["points"].tolist(), [0, 1, 2])
        self.assertEqual(found[1]["ids"].to_list(), [[[1, 2], [i]] for i in range(3)])
        if tf:
            expected = tf.io.parse_sequence_example(records, self.of_tensorflow(context), self.of_tensorflow(lists))
            self.compare(found[0], expected[0])
            self.compare(found[1], expected[1])
            for name, lengths in found[2].items():
                self.assertEqual(lengths.tolist(), expected[2][name].numpy().tolist())
            for record in records:
                single = mr.parse_single_sequence_example(record, context, lists)
                expected = tf.io.parse_single_sequence_example(
                    record, self.of_tensorflow(context), self.of_tensorflow(lists)
                )
                self.compare(single[0], expected[0])
                self.compare(single[1], expected[1])
        with self.assertRaisesRegex(errors.InvalidArgumentError, "points"):
            mr.parse_sequence_example([b""], None, {"points": lists["points"]})
        with self.assertRaisesRegex(ValueError, "default_value"):
            mr.parse_sequence_example([], None, {"x": mr.FixedLenSequenceFeature((), mr.Float, True, 1.0)})
        with self.assertRaisesRegex(TypeError, "sequence_features"):
            mr.parse_sequence_example([], None, [1])
        self.assertEqual(mr.parse_sequence_example([b""]), ({}, {}, {}))


if __name__ == "__main__":
    unittest.main()
