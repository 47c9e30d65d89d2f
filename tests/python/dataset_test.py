"""Datasets: sources and transformations against tf.data, or against what they must be, and wrong arguments."""

import copy
import io
import os
import pickle
import tarfile
import tempfile
import unittest

import numpy as np

from without_tensorflow import elements, has, mr, plain, write_png, write_records

DS = mr.Dataset


class SourceTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def test_range(self):
        self.assertEqual(elements(DS.range(4)), [0, 1, 2, 3])
        self.assertEqual(elements(DS.range(2, 9, 3)), [2, 5, 8])
        self.assertEqual(elements(DS.range(3, -3, -2)), [3, 1, -1])
        self.assertEqual(elements(DS.range(0)), [])
        self.assertRaises(ValueError, DS.range, 0, 3, 0)

    def test_slices_and_tensors(self):
        for dtype in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?", "c8", "c16"):
            values = np.arange(6).reshape(3, 2).astype(dtype)
            for order in (values, np.asfortranarray(values), values[::-1]):
                got = list(DS.from_tensor_slices(order))
                self.assertEqual([g.dtype for g in got], [values.dtype] * 3)
                self.assertEqual(DS.from_tensors(values).element_spec[0].dtype, values.dtype.name)
                np.testing.assert_array_equal(got, order)
                np.testing.assert_array_equal(DS.from_tensors(order).get_single_element(), order)
        self.assertEqual(
            elements(DS.from_tensor_slices((np.arange(2), np.array([b"a", b"bc"])))), [(0, b"a"), (1, b"bc")]
        )
        self.assertEqual(elements(DS.from_tensors((1, 2.5, "x"))), [(1, 2.5, b"x")])
        self.assertEqual(elements(DS.from_tensor_slices(np.zeros((0, 3)))), [])

    def test_strings_that_end_with_zeros(self):
        value, signature = b"a\0b\0\0", mr.Spec(bytes, ())
        self.assertEqual(elements(DS.from_tensors(value)), [value])
        self.assertEqual(elements(DS.from_tensor_slices([value, b"\0"])), [value, b"\0"])
        self.assertEqual(elements(DS.from_tensors((1, [value]))), [(1, [value])])
        self.assertEqual(elements(DS.range(1).map(lambda x: value)), [value])
        self.assertEqual(elements(DS.range(1).map(lambda x: [value], mr.Spec(bytes, (None,)))), [[value]])
        self.assertEqual(elements(DS.from_generator(lambda: [value], signature)), [value])
        self.assertEqual(elements(DS.range(2).scan(value, lambda s, x: (s, s))), [value, value])

    def test_files(self):
        write_records(self.path("a.tfrecord"), [b"1", b"", b"333"])
        write_records(self.path("b.tfrecord"), [b"4"])
        files = [self.path("b.tfrecord"), self.path("a.tfrecord")]
        self.assertEqual(elements(DS.records(self.path("*.tfrecord"))), [b"1", b"", b"333", b"4"])
        self.assertEqual(elements(DS.records(files)), [b"4", b"1", b"", b"333"])
        self.assertEqual([os.path.basename(f) for f in elements(DS.list_files(self.path("*.tfrecord")))],
                         [b"a.tfrecord", b"b.tfrecord"])  # fmt: skip
        self.assertRaises(mr.errors.NotFoundError, lambda: elements(DS.records(self.path("none"))))

        self.assertEqual(
            elements(DS.text_lines(self.write("l.txt", b"one\ntwo\r\n\nfour"))), [b"one", b"two", b"", b"four"]
        )
        fixed = self.write("f.bin", b"HHaabbccF")
        self.assertEqual(
            elements(DS.fixed_length_records(fixed, 2, header_bytes=2, footer_bytes=1)), [b"aa", b"bb", b"cc"]
        )
        rows = self.write("t.csv", b"a;b;c\n1;x;\n2;NA;3.5\n")
        columns = {0: np.int64, 1: (bytes, b"-"), 2: ("float32", 7.5)}
        self.assertEqual(elements(DS.csv(rows, columns, header=True, separator=";", na_value="NA")),
                         [(1, b"x", 7.5), (2, b"-", 3.5)])  # fmt: skip
        np.save(self.path("x.npy"), np.arange(6.0).reshape(3, 2))
        np.save(self.path("y.npy"), np.arange(3))
        self.assertEqual(elements(DS.npy([self.path("x.npy"), self.path("y.npy")]).skip(1)),
                         [([2.0, 3.0], 1), ([4.0, 5.0], 2)])  # fmt: skip
        self.assertEqual(elements(DS.npy(self.path("y.npy"))), [0, 1, 2])

    def test_tar(self):
        with tarfile.open(self.path("s.tar"), "w") as tar:
            for name, data in (
                ("1.txt", b"one"),
                ("1.cls", b"3"),
                ("2.txt", b"two"),
                ("3.text", b"x"),
                ("3.cls", b"5"),
            ):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        self.assertEqual(
            elements(DS.tar(self.path("s.tar"), ["txt;text", "cls"])), [(b"one", b"3", b"1"), (b"x", b"5", b"3")]
        )
        self.assertEqual([e[0] for e in elements(DS.tar(self.path("s.tar"), "cls"))], [b"3", b"5"])

    def test_images(self):
        pixels = np.random.default_rng(1).integers(0, 256, (5, 7, 3)).astype(np.uint8)
        for kind in ("cat", "dog"):
            os.mkdir(self.path(kind))
            write_png(self.path(f"{kind}/1.png"), pixels)
        ds = DS.image_directory(self.directory)
        self.assertEqual(
            [spec.name for spec in ds.element_spec], ["image/encoded", "image/class/label", "image/filename"]
        )
        self.assertEqual([label for _, label, _ in ds], [0, 1])
        image, label, name = next(iter(ds.decode_image(dtype="uint8").skip(1)))
        np.testing.assert_array_equal(image, pixels)
        self.assertEqual((label, name.endswith(b"dog/1.png")), (1, True))
        image = next(
            iter(ds.decode_image(5, 7, mean=(1, 2, 3), std=2, layout="NCHW", component="image/encoded").batch(2))
        )[0]
        expected = (pixels.astype(np.float32) - [1, 2, 3]) / 2
        np.testing.assert_allclose(image[1], expected.transpose(2, 0, 1), rtol=1e-5, atol=1e-5)
        self.assertEqual(next(iter(ds.decode_image(4, crop="random_resized", flip=True)))[0].shape, (4, 4, 3))

    def test_generator(self):
        spec = (mr.Spec("int64", ()), mr.Spec(bytes, ()))
        ds = DS.from_generator(lambda n: ((i, str(i)) for i in range(n)), spec, args=(3,))
        for _ in range(2):
            self.assertEqual(elements(ds), [(0, b"0"), (1, b"1"), (2, b"2")])
        named = DS.from_generator(
            lambda: iter([{"b": 2, "a": 1}]), {"a": mr.Spec("int32", ()), "b": mr.Spec("int32", ())}
        )
        self.assertEqual(elements(named, as_dict=True), [{"a": 1, "b": 2}])

        def fails():
            yield 1
            raise KeyError("lost")

        iterator = DS.from_generator(fails, mr.Spec("int64", ())).numpy()
        with self.assertRaisesRegex(mr.errors.OpError, "lost") as caught:
            list(iterator)
        self.assertIsInstance(caught.exception.__cause__, KeyError)

        def not_called(missing):
            return [missing]

        for function, text in ((lambda: 3, "type int, expected an iterable"), (not_called, "TypeError: .*missing")):
            iterator = DS.from_generator(function, mr.Spec("int64", ())).numpy()
            self.assertRaisesRegex(mr.errors.InvalidArgumentError, text, next, iterator)
            self.assertRaises(StopIteration, next, iterator)
        self.assertEqual(elements(DS.from_generator(lambda: 3, mr.Spec("int64", ())).ignore_errors()), [])

    def test_several(self):
        a, b = DS.range(3), DS.range(10, 14)
        self.assertEqual(elements(DS.zip(a, b)), [(0, 10), (1, 11), (2, 12)])
        self.assertEqual(elements(DS.zip((a, b))), elements(DS.zip(a, b)))
        self.assertEqual(
            elements(DS.choose_from_datasets([a, b], DS.from_tensor_slices(np.array([1, 0, 1])))), [10, 0, 11]
        )
        sampled = elements(DS.sample_from_datasets([a, b], [0.5, 0.5], seed=2))
        self.assertEqual(sorted(sampled), [0, 1, 2, 10, 11, 12, 13])
        self.assertEqual(elements(DS.random(3).take(4)), elements(DS.random(3).take(4)))


class TransformationTest(unittest.TestCase):
    def test_order(self):
        ds = DS.range(20)
        first = elements(ds.shuffle(seed=3))
        self.assertEqual(sorted(first), list(range(20)))
        self.assertNotEqual(first, list(range(20)))
        self.assertEqual(first, elements(ds.shuffle(seed=3), threads=1))
        self.assertNotEqual(first, elements(ds.shuffle(seed=4)))
        self.assertNotEqual(first, elements(ds.shuffle(seed=3), seed=1))
        twice = elements(ds.shuffle(seed=3).repeat(2))
        self.assertNotEqual(twice[:20], twice[20:])
        twice = elements(ds.shuffle(seed=3, reshuffle_each_iteration=False).repeat(2))
        self.assertEqual(twice[:20], twice[20:])
        self.assertEqual(sorted(elements(ds.shuffle(5, seed=1))), list(range(20)))
        # A function in between keeps the index.
        self.assertEqual(sorted(elements(ds.map(lambda x: x * 2).shuffle(seed=3))), list(range(0, 40, 2)))

    def test_number(self):
        ds = DS.range(5)
        self.assertEqual(elements(ds.take(2)), [0, 1])
        self.assertEqual(elements(ds.take(-1)), list(range(5)))
        self.assertEqual(elements(ds.skip(3)), [3, 4])
        self.assertEqual(elements(ds.skip(-1)), [])
        self.assertEqual(elements(ds.repeat(2)), list(range(5)) * 2)
        self.assertEqual(elements(ds.shard(2, 1)), [1, 3])
        self.assertEqual(elements(ds.enumerate(7).take(2)), [(7, 0), (8, 1)])
        self.assertEqual(elements(ds.concatenate(DS.range(2))), [0, 1, 2, 3, 4, 0, 1])
        self.assertEqual(elements(DS.from_tensor_slices(np.array([3, 1, 3, 2, 1])).unique()), [3, 1, 2])
        self.assertEqual((len(ds), ds.repeat().cardinality()), (5, mr.INFINITE_CARDINALITY))
        self.assertEqual(ds.filter(lambda x: True).cardinality(), mr.UNKNOWN_CARDINALITY)
        self.assertRaisesRegex(TypeError, "no end", len, ds.repeat())
        self.assertRaisesRegex(TypeError, "unknown", len, ds.filter(lambda x: True))
        self.assertEqual(elements(ds.filter(lambda x: x > 2).assert_cardinality(2)), [3, 4])
        self.assertRaises(mr.errors.FailedPreconditionError, elements, ds.filter(lambda x: x > 2).assert_cardinality(3))

    def test_distribute(self):
        for policy, steps in (("pad", 3), ("drop", 2), ("mask", 3)):
            parts = [list(DS.range(10).distribute(4, 2, worker, policy)) for worker in range(2)]
            self.assertEqual([len(part) for part in parts], [steps, steps])
            if policy == "mask":
                real = [value for part in parts for batch, mask in part for value in batch[mask]]
                self.assertEqual(sorted(real), list(range(10)))

    def test_batches(self):
        ds = DS.range(5)
        self.assertEqual(elements(ds.batch(2)), [[0, 1], [2, 3], [4]])
        self.assertEqual(elements(ds.batch(2, drop_remainder=True)), [[0, 1], [2, 3]])
        self.assertEqual(elements(ds.batch(2).rebatch(3)), [[0, 1, 2], [3, 4]])
        self.assertEqual(elements(ds.batch(2).unbatch()), list(range(5)))
        ragged = ds.take(3).map(lambda n: np.arange(n), mr.Spec("int64", (None,)))
        self.assertEqual(elements(ragged.padded_batch(3)), [[[0, 0], [0, 0], [0, 1]]])
        self.assertEqual(elements(ragged.padded_batch(3, (3,), -1)), [[[-1, -1, -1], [0, -1, -1], [0, 1, -1]]])
        self.assertEqual(elements(ragged.ragged_batch(3)), [([0, 0, 1], [0, 0, 1, 3])])
        self.assertEqual(elements(ragged.sparse_batch(3, (4,)))[0][1], [0, 0, 1])
        buckets = elements(ragged.bucket_by_sequence_length(len, [2], [2, 1]))
        self.assertEqual(sorted(map(len, buckets)), [1, 2])
        self.assertEqual(elements(ds.window(2)), elements(ds.batch(2)))
        self.assertEqual(elements(ds.window(3, 1, drop_remainder=True, function=lambda w: w.batch(3))),
                         [[0, 1, 2], [1, 2, 3], [2, 3, 4]])  # fmt: skip

    def test_functions(self):
        ds = DS.range(6)
        self.assertEqual(elements(ds.map(lambda x: (x, x / 2))), [(i, i / 2) for i in range(6)])
        self.assertEqual(elements(ds.batch(4).map(lambda x: x + 1)), [[1, 2, 3, 4], [5, 6]])
        self.assertEqual(
            elements(ds.map(lambda x: {"a": x, "b": -x}).map(lambda d: d["b"], as_dict=True)), [-i for i in range(6)]
        )
        self.assertEqual(elements(ds.filter(lambda x: x % 2)), [1, 3, 5])
        self.assertEqual(elements(ds.take_while(lambda x: x < 3)), [0, 1, 2])
        self.assertEqual(elements(ds.flat_map(lambda n: DS.range(int(n))).take(6)), [0, 0, 1, 0, 1, 2])
        self.assertEqual(
            elements(ds.take(2).interleave(lambda n: DS.range(int(n) * 10, int(n) * 10 + 3), 2)), [0, 10, 1, 11, 2, 12]
        )
        self.assertEqual(elements(ds.scan(np.int64(0), lambda s, x: (s + x, s + x))), [0, 1, 3, 6, 10, 15])
        self.assertEqual(plain(ds.reduce(np.int64(1), lambda s, x: s + x)), 16)
        self.assertEqual(plain(ds.reduce((np.int64(0), np.int64(0)), lambda s, x: (s[0] + x, s[1] + 1))), (15, 6))
        grouped = ds.group_by_window(lambda x: x % 2, lambda key, window: window.batch(3), 3)
        self.assertEqual(sorted(elements(grouped)), [[0, 2, 4], [1, 3, 5]])
        resampled = elements(ds.repeat(50).rejection_resample(lambda x: x % 2, [0.9, 0.1], [0.5, 0.5], seed=1))
        self.assertGreater(np.mean([label == 0 for label, _ in resampled]), 0.8)
        randoms = ds.random_map(lambda x, rng: rng.integers(1 << 40), seed=1).repeat(2)
        self.assertEqual(elements(randoms, threads=1), elements(randoms, threads=4))
        self.assertEqual(len(set(elements(randoms))), 12)

    def test_failing_function(self):
        def divide(x):
            if x == 2:
                raise ZeroDivisionError("two")
            return x

        ds = DS.range(4).map(divide, mr.Spec("int64", ()))
        iterator = ds.numpy()
        got = [next(iterator), next(iterator)]
        with self.assertRaisesRegex(mr.errors.OpError, "element 2|two") as caught:
            next(iterator)
        self.assertIsInstance(caught.exception.__cause__, ZeroDivisionError)
        self.assertEqual(plain(tuple([*got, *iterator])), (0, 1, 3))
        self.assertEqual(elements(ds.ignore_errors()), [0, 1, 3])
        self.assertRaisesRegex(
            mr.errors.InvalidArgumentError, "shape", elements, DS.range(3).map(lambda x: np.zeros(x + 1))
        )
        self.assertRaisesRegex(ValueError, "output_signature", DS.range(0).map, lambda x: x)

    def test_stored(self):
        calls = []
        counted = DS.range(4).map(lambda x: calls.append(1) or x, mr.Spec("int64", ()))
        self.assertEqual(elements(counted.cache().repeat(3)), [0, 1, 2, 3] * 3)
        self.assertEqual(len(calls), 4)
        with tempfile.TemporaryDirectory() as directory:
            for build in (lambda ds: ds.cache(os.path.join(directory, "c")), lambda ds: ds.snapshot(directory)):
                ds = build(DS.range(6).map(lambda x: x * 3))
                self.assertEqual(elements(ds), elements(ds))
            self.assertTrue(os.path.exists(os.path.join(directory, "c")))
        self.assertEqual(elements(DS.range(9).prefetch(2)), list(range(9)))
        self.assertEqual(elements(DS.range(9).with_options(threads=1, budget_bytes=1 << 20, version=2)), list(range(9)))

    def test_a_description_never_changes(self):
        ds = DS.range(4)
        ds.shuffle(seed=1).batch(2)
        self.assertEqual(elements(ds), [0, 1, 2, 3])
        iterators = [ds.numpy() for _ in range(3)]
        self.assertEqual([next(i) for i in iterators for _ in range(2)], [0, 1] * 3)
        self.assertIs(ds.__copy__(), ds)
        self.assertIn("shuffle(seed=1)", repr(ds.shuffle(seed=1)))
        html = DS.zip(ds, ds.map(lambda x: x))._repr_html_()
        self.assertIn("zip", html)
        self.assertIn("&lt;lambda&gt;", html)


# For each method: valid arguments, then wrong values for each argument in turn. NUMBER: neither a string nor fractions.
NUMBER, BOOL, SEED, FUNCTION = ("x", 1.5, None, True), (1, "x", None), (-1, 1 << 64, "x", True), (None, 3, "f")
COUNT = (0, -1, "x", 1.5, True)
TUNABLE = (0, -2, "x", 1.5, True)
ARRAY = DS.from_tensor_slices(np.zeros((4, 2), "f4"))
IMAGES = DS.from_tensor_slices(np.array([b"a", b"b"]))
WRONG = [
    (DS.range, {"start": 0, "stop": 4}, {"start": NUMBER, "step": (*NUMBER, 0), "stop": ("x", 1.5, True, 1 << 63)}),
    (DS.fixed_length_records, {"pattern": "x", "record_bytes": 1},
     {"pattern": (3, None, "a\0"), "record_bytes": COUNT, "header_bytes": (-1, "x"), "footer_bytes": (-1, 1.5)}),
    (DS.records, {"files": "x"}, {"files": (3, None, [], [3], "a\0b")}),
    (DS.npy, {"files": "x"}, {"files": (3, None, [], [None])}),
    (DS.text_lines, {"pattern": "x"}, {"pattern": (3, None)}),
    (DS.list_files, {"pattern": "x"}, {"pattern": (3, None)}),
    (DS.image_directory, {"path": "x"}, {"path": (3, None)}),
    (DS.tar, {"pattern": "x", "extensions": ["a"]}, {"pattern": (3,), "extensions": ([3], [None])}),
    (DS.csv, {"pattern": "x", "columns": {0: "int64"}},
     {"pattern": (3,), "columns": ({-1: "int64"}, {0: "nothing"}, {"x": "int64"}, {0: ("int64", "z")}),
      "header": BOOL, "separator": ("", "ab", 3), "na_value": (3,), "column_count": COUNT, "quotes": BOOL}),
    (DS.from_generator, {"generator": list, "output_signature": mr.Spec("int64", ())},
     {"generator": FUNCTION, "output_signature": (None, 3, [])}),
    (DS.random, {"seed": 1}, {"seed": SEED}),
    (DS.zip, {}, {}),
    (DS.sample_from_datasets, {"datasets": [ARRAY, ARRAY]},
     {"datasets": ([], [3], None), "weights": ([1], ["x", 1]), "seed": SEED, "stop_on_empty_dataset": BOOL}),
    (DS.choose_from_datasets, {"datasets": [ARRAY], "choice_dataset": DS.range(1)},
     {"datasets": ([], 3), "choice_dataset": (3, None, [DS.range(1), DS.range(1)]), "stop_on_empty_dataset": BOOL}),
    (ARRAY.shuffle, {}, {"buffer_size": COUNT, "seed": SEED, "reshuffle_each_iteration": BOOL}),
    (ARRAY.repeat, {}, {"count": (-2, "x", 1.5, True)}),
    (ARRAY.take, {"count": 1}, {"count": (-2, *NUMBER)}),
    (ARRAY.skip, {"count": 1}, {"count": (-2, *NUMBER)}),
    (ARRAY.shard, {"num_shards": 2, "index": 0}, {"num_shards": COUNT, "index": (-1, 2, *NUMBER)}),
    (ARRAY.distribute, {"global_batch_size": 2, "workers": 2, "worker": 0},
     {"global_batch_size": COUNT, "workers": COUNT, "worker": (-1, 2, "x"), "policy": ("x", None)}),
    (ARRAY.concatenate, {"dataset": ARRAY}, {"dataset": (None, 3)}),
    (ARRAY.enumerate, {}, {"start": NUMBER}),
    (ARRAY.assert_cardinality, {"expected_cardinality": 4}, {"expected_cardinality": (-2, *NUMBER)}),
    (ARRAY.ignore_errors, {}, {"errors_max": COUNT}),
    (ARRAY.batch, {"batch_size": 2}, {"batch_size": (None, *COUNT), "drop_remainder": BOOL}),
    (ARRAY.rebatch, {"batch_size": 2}, {"batch_size": COUNT, "drop_remainder": BOOL}),
    (ARRAY.padded_batch, {"batch_size": 2},
     {"batch_size": COUNT, "padded_shapes": ([(1,), (2,)], ["x"], (-3,)), "padding_values": ([1, 2], "x"),
      "drop_remainder": BOOL}),
    (ARRAY.ragged_batch, {"batch_size": 2}, {"batch_size": COUNT, "drop_remainder": BOOL, "row_splits_dtype": ("x",)}),
    (ARRAY.sparse_batch, {"batch_size": 2, "row_shape": (2,)}, {"batch_size": COUNT}),
    (ARRAY.cache, {}, {"filename": (3, "a\0")}),
    (ARRAY.snapshot, {"path": "x"}, {"path": (None, 3), "compression": ("ZIP", 3)}),
    (ARRAY.prefetch, {}, {"buffer_size": (*TUNABLE, 1025)}),
    (ARRAY.prefetch_to_device, {"device": "cpu"}, {"buffer_size": (*TUNABLE, 1025)}),
    (ARRAY.with_options, {"threads": 1},
     {"threads": (*COUNT, 1025), "budget_bytes": COUNT, "version": SEED}),
    (ARRAY.map, {"function": np.copy},
     {"function": FUNCTION, "output_signature": (3, []), "num_parallel_calls": TUNABLE, "processes": (-1, "x", 1.5),
      "as_dict": (*BOOL, True)}),
    (ARRAY.random_map, {"function": lambda x, g: x}, {"function": FUNCTION, "seed": SEED, "processes": (-1,)}),
    (ARRAY.filter, {"predicate": bool}, {"predicate": FUNCTION, "num_parallel_calls": TUNABLE, "as_dict": BOOL}),
    (ARRAY.take_while, {"predicate": bool}, {"predicate": FUNCTION, "as_dict": BOOL}),
    (ARRAY.flat_map, {"map_func": lambda x: ARRAY},
     {"map_func": (*FUNCTION, lambda x: 3), "output_signature": (3,), "as_dict": BOOL}),
    (ARRAY.interleave, {"map_func": lambda x: ARRAY},
     {"map_func": FUNCTION, "cycle_length": COUNT, "block_length": COUNT, "parallel": BOOL}),
    (ARRAY.scan, {"initial_state": 0, "scan_func": lambda s, x: (s, x)},
     {"scan_func": FUNCTION, "initial_state": ((),)}),
    (ARRAY.reduce, {"initial_state": 0, "reduce_func": lambda s, x: s},
     {"reduce_func": FUNCTION, "initial_state": ((),), "as_dict": BOOL}),
    (ARRAY.window, {"size": 2},
     {"size": COUNT, "shift": COUNT, "stride": COUNT, "drop_remainder": BOOL, "function": (3, lambda w: 3)}),
    (ARRAY.group_by_window, {"key_func": len, "reduce_func": lambda k, w: w, "window_size": 2},
     {"key_func": FUNCTION, "reduce_func": (*FUNCTION, lambda k, w: 3), "window_size": COUNT}),
    (ARRAY.bucket_by_sequence_length,
     {"element_length_func": len, "bucket_boundaries": [2], "bucket_batch_sizes": [1, 1]},
     {"element_length_func": FUNCTION, "bucket_boundaries": ([0], ["x"], [2, 1]),
      "bucket_batch_sizes": ([1], [0, 1]), "pad_to_bucket_boundary": BOOL, "no_padding": BOOL, "drop_remainder": BOOL}),
    (ARRAY.rejection_resample, {"class_func": len, "target_dist": [0.5, 0.5]},
     {"class_func": FUNCTION, "target_dist": (["x"], [0.5, 0.1]), "initial_dist": ([1], ["x", 1]), "seed": SEED}),
    (IMAGES.decode_image, {},
     {"height": COUNT, "width": COUNT, "crop": ("x", 3), "flip": BOOL, "mean": ("x", [1, 2], [None]),
      "std": ("x", [1, 2]),
      "dtype": ("x", "int64"), "layout": ("HWC", None), "method": ("x",), "channels": (0, 2, 4, "x"),
      "component": (-1, 1, "x", 0.5), "seed": SEED, "fraction": ("x",), "area": (1, [1], ["x", 1]), "aspect": (1, "ab"),
      "padding": (-1, "x"), "padding_mode": ("x",), "brightness": ("x",), "contrast": (1, [1]), "saturation": (1,),
      "hue": ("x",), "color_order": (["hue"], "x"), "accurate_dct": BOOL, "accept_truncated": BOOL,
      "accept_damaged": BOOL, "pixels_max": COUNT, "approximate_scale": BOOL, "num_parallel_calls": TUNABLE}),
    (ARRAY.numpy, {},
     {"as_dict": (*BOOL, True), "threads": (*COUNT, 1025), "budget_bytes": COUNT, "seed": SEED, "tune": (1, "x"),
      "verbose": BOOL, "trace": (3, "a\0"), "digest": BOOL, "watchdog": (0, -1, "x", float("nan"))}),
]  # fmt: skip


class WrongArgumentTest(unittest.TestCase):
    def test_each_in_turn(self):
        for method, valid, wrong in WRONG:
            for argument, values in wrong.items():
                for value in values:
                    with self.subTest(method=method.__qualname__, argument=argument, value=value):
                        with self.assertRaises((TypeError, ValueError)) as caught:
                            method(**{**valid, argument: value})
                        self.assertIn(argument, str(caught.exception))

    def test_others(self):
        for method in (DS.from_tensors, DS.from_tensor_slices):
            for value in ((), object(), [[1], [1, 2]], np.zeros((1,) * 13), (1,) * 33):
                self.assertRaises((TypeError, ValueError), method, value)
        self.assertRaises(ValueError, DS.from_tensor_slices, (np.zeros(2), np.zeros(3)))
        self.assertRaises(ValueError, DS.from_tensor_slices, 3)
        self.assertRaises((TypeError, ValueError), DS.zip)
        self.assertRaises((TypeError, ValueError), DS.zip, 3)
        self.assertRaises(TypeError, DS)
        self.assertRaises(TypeError, ARRAY.batch)
        self.assertRaises(ValueError, ARRAY.map, lambda x: (1,) * 33)
        self.assertRaises(ValueError, DS.range(3).unbatch)
        self.assertRaises(ValueError, DS.range(3).concatenate, ARRAY)
        self.assertRaises(ValueError, ARRAY.unique)
        self.assertRaises(ValueError, DS.range(3).filter(bool).shuffle)
        self.assertRaises(ValueError, ARRAY.decode_image)
        self.assertRaises(ValueError, DS.range(3).get_single_element)
        for dtype, shape, name in (("x", (), None), ("int64", 3, None), ("int64", (-2,), None),
                                   ("int64", (1,) * 13, None),
                                   ("int64", ("x",), None), ("int64", (), 3)):  # fmt: skip
            self.assertRaises((TypeError, ValueError), mr.Spec, dtype, shape, name)


@unittest.skipUnless(has("tensorflow"), "TensorFlow is not installed")
class LikeTensorFlowTest(unittest.TestCase):
    """The same methods of mr.Dataset and tf.data.Dataset."""

    def assert_same(self, build):
        import support  # noqa: F401
        import tensorflow as tf

        with tf.Graph().as_default():
            element = tf.compat.v1.data.make_one_shot_iterator(build(tf.data.Dataset)).get_next()
            expected = []
            with tf.compat.v1.Session() as session:
                while True:
                    try:
                        expected.append(plain(session.run(element)))
                    except tf.errors.OutOfRangeError:
                        break
        self.assertEqual(elements(build(DS)), expected)

    def test_all(self):
        values = np.arange(24.0, dtype="f4").reshape(12, 2)
        builds = [
            lambda D: D.range(2, 20, 5),
            lambda D: D.from_tensor_slices(values).batch(5),
            lambda D: D.from_tensor_slices(values).batch(5, drop_remainder=True).unbatch(),
            lambda D: D.from_tensors((values, np.int64(3))).repeat(2),
            lambda D: D.range(10).skip(2).take(5).shard(2, 1),
            lambda D: D.range(3).concatenate(D.range(5)).enumerate(4),
            lambda D: D.zip((D.range(3), D.range(5, 9))),
            lambda D: D.choose_from_datasets([D.range(3), D.range(5, 9)], D.from_tensor_slices(np.array([1, 1, 0]))),
            lambda D: D.range(10).batch(3).rebatch(4),
            lambda D: D.from_tensor_slices(np.array([5, 3, 5, 1, 3])).unique(),
            lambda D: D.range(6).flat_map(lambda x: D.range(3)),
            lambda D: D.range(6).interleave(lambda x: D.range(3), cycle_length=2, block_length=2),
            lambda D: D.range(7).filter(lambda x: x % 3 > 0),
            lambda D: D.range(7).map(lambda x: (x * x, -x)),
            lambda D: D.range(7).take_while(lambda x: x < 4),
            lambda D: D.range(7).scan(np.int64(1), lambda s, x: (s + x, s * x)),
            lambda D: D.range(7).group_by_window(lambda x: x % 2, lambda k, w: w.batch(2), window_size=2),
            lambda D: D.range(5).cache().repeat(2).prefetch(1),
        ]
        for i, build in enumerate(builds):
            with self.subTest(i):
                self.assert_same(build)


class ValuesTest(unittest.TestCase):
    """Values that would change, or that are not values of tensors."""

    def test_results_of_functions(self):
        for function, message in (
            (lambda x: 1 << 63 if x == 2 else int(x), "9223372036854775808, which is not in the range of int64"),
            (lambda x: 1 << 70, "not in the range of int64"),
            (lambda x: None if x else 1, "expected int64"),
            (lambda x: object(), "type object, expected"),
        ):
            with self.assertRaises((mr.errors.InvalidArgumentError, TypeError)) as caught:
                list(mr.Dataset.range(4).map(function))
            self.assertIn(message, str(caught.exception))
        self.assertEqual(list(mr.Dataset.range(1).map(lambda x: 1e300, mr.Spec("float32", ()))), [np.float32("inf")])

    def test_predicates(self):
        for result in ("no", None, 0.5, [True]):
            with self.assertRaisesRegex(mr.errors.InvalidArgumentError, "expected a bool"):
                list(mr.Dataset.range(4).filter(lambda x: result))

    def test_sources(self):
        for value in (np.ma.array([1, 2], mask=[0, 1]), {"a": 1}, [[1], [1, 2]], ["\ud800"], [1 << 70], None):
            with self.subTest(value=value), self.assertRaisesRegex((TypeError, ValueError), "components"):
                mr.Dataset.from_tensor_slices(value)
        for value, message in (
            ([1, None], "NoneType"), ([None, 1.5], "NoneType"), ([1, 1 << 70], "range of int64"),
            ([1, "a"], "numbers and strings"), (["a", 1], "numbers and strings"),
            (np.array([1, 2], object), "array of objects"),
        ):  # fmt: skip
            with self.subTest(value=value), self.assertRaisesRegex((TypeError, ValueError), message):
                mr.Dataset.from_tensor_slices(value)

    def test_exception_that_cannot_be_printed(self):
        class Unprintable(Exception):
            def __str__(self):
                raise KeyError

        def function(value):
            raise Unprintable

        with self.assertRaisesRegex(mr.errors.UnknownError, "Unprintable, which cannot be printed") as caught:
            list(mr.Dataset.range(3).map(function, mr.Spec("int64", ())))
        self.assertIsInstance(caught.exception.__cause__, Unprintable)

    def test_copies_of_tensors_share_them(self):
        tensor = next(mr.Dataset.range(300).batch(100).dlpack())
        copied = copy.copy(tensor)
        del tensor
        self.assertEqual(copied.numpy()[99], 99)
        self.assertRaisesRegex(TypeError, "millrace.Tensor", pickle.dumps, copied)

    def test_limits_are_named(self):
        self.assertRaisesRegex(ValueError, "at most 9223372036854775807", mr.Dataset.range(3).batch, 1 << 63)
        self.assertRaisesRegex(ValueError, "files is empty", mr.Dataset.records, "")
        self.assertRaisesRegex(ValueError, "height is None", mr.Dataset.from_tensors(b"").decode_image, width=8)
        self.assertRaisesRegex(TypeError, "dtype is None", mr.Spec, None, ())
        iterator = mr.Dataset.range(3).enumerate((1 << 63) - 1).numpy()
        self.assertEqual(next(iterator), ((1 << 63) - 1, 0))
        for _ in range(2):
            self.assertRaisesRegex(mr.errors.InvalidArgumentError, "larger than any int64", next, iterator)
        self.assertRaises(StopIteration, next, iterator)
        self.assertEqual(elements(mr.Dataset.range(2).map(abs, num_parallel_calls=mr.AUTOTUNE)), [0, 1])
        deep = mr.Dataset.range(3)
        with self.assertRaisesRegex(ValueError, "more than 64"):
            for _ in range(64):
                deep = deep.skip(0)

    def test_options_without_effect(self):
        images = mr.Dataset.from_tensors(b"")
        for crop, options in ((None, {"area": (0.5, 1)}), ("center", {"aspect": (1, 2)}), ("none", {"fraction": 0.5}),
                              ("random_resized", {"fraction": 0.5}), ("random", {"padding": 2}),
                              ("random_window", {"padding_mode": "reflect"}), (None, {"padding": 1}),
                              ("center", {"color_order": ("hue", "contrast", "brightness", "saturation")})):
            name, = options
            with self.subTest(crop=crop, **options), self.assertRaisesRegex(ValueError, f"{name} has no effect"):
                images.decode_image(8, crop=crop, **options)
        for std in (0, (1, 0, 1), np.zeros(3)):
            self.assertRaisesRegex(ValueError, "std is", images.decode_image, 8, std=std)
        images.decode_image(8, crop="random_window", padding=2, padding_mode="reflect")
        images.decode_image(8, crop="random_resized", area=(0.5, 1), aspect=(1, 2))
        images.decode_image(8, crop="random", fraction=0.5)
        images.decode_image(8, hue=0.1, color_order=("hue", "contrast", "brightness", "saturation"))


if __name__ == "__main__":
    unittest.main()
