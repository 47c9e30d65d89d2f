"""Parsing of Examples and SequenceExamples: TensorFlow and millrace parse the same bytes to the same tensors, or both
report an error. example_generator.py generates the records; every failure prints its seed.

TensorFlow checks ragged partitions over the complete batch (values may move from one record to the next). It does not
check the indices of sparse features, nor, when they are sorted, the number of indices. millrace checks each record. If
only millrace rejects a batch, the test reads the raw lists of keys and values with TensorFlow, and they must contain a
record that is invalid by itself."""

import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorflow.python.ops import parsing_ops

from example_generator import Feature, Generator

tf.get_logger().setLevel("ERROR")
PROGRAM = os.path.join(os.environ["MILLRACE_ORACLE"], "example_parse")
SEED = int(os.environ.get("MILLRACE_TEST_SEED", "1"))


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


# ---- Specs ----


def examples(*features):
    return list(features)


def sequence(context, lists):
    for f in context:
        f.scope = "context"
    for f in lists:
        f.scope = "list"
    return context + lists


F = Feature
EXAMPLES = [
    [
        F("image/encoded", "string", default_value=""),
        F("image/height", "int64", default_value=-7),
        F("image/score", "float", default_value=2.5),
    ],
    [
        F("a/label", "int64"),
        F("a/box", "float", shape=(2, 2)),
        F("a/text", "string", shape=(2,)),
        F("a/none", "int64", shape=(0,)),
    ],
    [
        F("a/two", "string", shape=(2,), default_value="x"),
        F("a/four", "float", shape=(2, 2), default_value=-1),
        F("a/i", "int64", shape=(1,), default_value=3),
    ],
    [F("v/int", "int64", "variable"), F("v/float", "float", "variable"), F("v/str", "string", "variable")],
    [F("r/int", "int64", "ragged"), F("r/float", "float", "ragged", int32=True), F("r/str", "string", "ragged")],
    [
        F("s/int", "int64", "sequence"),
        F("s/float", "float", "sequence", (2,), 0.5),
        F("s/str", "string", "sequence", default_value="pad"),
        F("s/deep", "int64", "sequence", (2, 1), -1),
    ],
    [
        F("image/encoded", "string", default_value=""),
        F("image/object/bbox", "float", "variable"),
        F("image/class/label", "int64", default_value=-1),
        F("image/object/names", "string", "ragged"),
        F("image/points", "float", "sequence", (2,)),
    ],
    [
        F("one", "float", "sparse", (20,), value="v", keys=("i",)),
        F("v", "float", "variable"),
        F("order", "float", "sparse", (20,), value="v", keys=("i",), sorted=True),
    ],
    [
        F("grid", "string", "sparse", (7, 5, 100), value="text", keys=("x", "y", "z")),
        F("self", "int64", "sparse", (8,), value="n", keys=("n",)),
    ],
    [F("splits", "int64", "ragged", value="v", parts=(("splits", "p"),)), F("v", "int64", "ragged")],
    [
        F("lengths", "string", "ragged", parts=(("lengths", "p"),)),
        F("more", "float", "ragged", parts=(("lengths", "p"),)),
    ],
    [
        F("starts", "float", "ragged", value="v", parts=(("starts", "p"),)),
        F("limits", "int64", "ragged", value="w", parts=(("limits", "q"),)),
    ],
    [
        F("rowids", "int64", "ragged", value="v", parts=(("rowids", "p"),), int32=True),
        F("uniform", "float", "ragged", value="w", parts=(("uniform", 3),)),
    ],
    [F("deep", "int64", "ragged", value="v", parts=(("splits", "a"), ("rowids", "b"), ("limits", "c")))],
    [
        F(
            "mixed",
            "string",
            "ragged",
            value="v",
            parts=(("uniform", 2), ("lengths", "p"), ("uniform", 2), ("uniform", 1)),
        )
    ],
    [F("odd", "float", "ragged", value="v", parts=(("starts", "a"), ("uniform", 2), ("lengths", "b")))],
]
SEQUENCES = [
    sequence(
        [
            F("length", "int64"),
            F("name", "string", default_value="nobody"),
            F("box", "float", shape=(2,), default_value=0.5),
        ],
        [
            F("tokens", "int64", "sequence", missing=True),
            F("frames", "float", "sequence", (2, 2)),
            F("words", "string", "sequence", missing=True),
        ],
    ),
    sequence(
        [F("v/int", "int64", "variable"), F("v/float", "float", "variable"), F("v/str", "string", "variable")],
        [F("v/int", "int64", "variable"), F("f", "float", "variable"), F("s", "string", "variable")],
    ),
    sequence(
        [F("r/int", "int64", "ragged"), F("r/str", "string", "ragged", int32=True)],
        [F("r/int", "int64", "ragged"), F("r/float", "float", "ragged", int32=True), F("r/str", "string", "ragged")],
    ),
    sequence(
        [], [F("image/encoded", "string", "sequence"), F("labels", "int64", "variable"), F("boxes", "float", "ragged")]
    ),
    sequence(
        [F("id", "string", default_value=""), F("parts", "float", "ragged", value="v", parts=(("splits", "p"),))], []
    ),
    sequence(
        [F("n", "int64", default_value=0)],
        [F("rows", "float", "ragged", value="v", parts=(("lengths", "p"),)), F("x", "int64", "sequence", missing=True)],
    ),
    sequence(
        [],
        [
            F("deep", "string", "ragged", value="v", parts=(("splits", "a"), ("rowids", "b")), int32=True),
            F("pairs", "int64", "ragged", parts=(("uniform", 2),)),
        ],
    ),
    sequence(
        [],
        [
            F(
                "odd",
                "int64",
                "ragged",
                value="v",
                parts=(("limits", "a"), ("uniform", 2), ("starts", "b"), ("uniform", 1)),
            )
        ],
    ),
]


def tensorflow_feature(f):
    kind = tf.as_dtype(f.dtype)
    if f.form == "fixed":
        return tf.io.FixedLenFeature(
            f.shape, kind, None if f.default_value is None else np.full(f.shape, f.default_value)
        )
    if f.form == "sequence":
        return tf.io.FixedLenSequenceFeature(f.shape, kind, f.scope == "example" or f.missing, f.default_value)
    if f.form == "variable":
        return tf.io.VarLenFeature(kind)
    if f.form == "sparse":
        one = len(f.keys) == 1
        return tf.io.SparseFeature(
            f.keys[0] if one else list(f.keys), f.value, kind, f.shape[0] if one else list(f.shape), f.sorted
        )
    R = tf.io.RaggedFeature
    kinds = {
        "splits": R.RowSplits,
        "lengths": R.RowLengths,
        "starts": R.RowStarts,
        "limits": R.RowLimits,
        "rowids": R.ValueRowIds,
        "uniform": R.UniformRowLength,
    }
    return R(
        kind, f.value, [kinds[kind](key) for kind, key in f.parts], tf.int32 if f.int32 else tf.int64, validate=True
    )


def tensors_of(f, value, lengths, single):
    """TensorFlow's value of a feature, as the list of millrace's tensors."""
    if isinstance(value, tf.SparseTensor):
        return [value.indices, value.values, value.dense_shape]
    if f.form == "ragged":
        splits = list(value.nested_row_splits) if isinstance(value, tf.RaggedTensor) else []
        none = [tf.zeros([0], tf.int32 if f.int32 else tf.int64)] if single else []
        return [value.flat_values if isinstance(value, tf.RaggedTensor) else value] + none + splits
    if f.scope == "list":
        return [value, tf.shape(value, tf.int64)[0] if single else lengths[f.name]]
    return [value]


def make_parse(spec, single):
    """A graph function from serialized records to a flat list of millrace's tensors."""
    is_sequence = any(f.scope != "example" for f in spec)
    context = {f.name: tensorflow_feature(f) for f in spec if f.scope != "list"}
    lists = {f.name: tensorflow_feature(f) for f in spec if f.scope == "list"}

    def parse(serialized):
        lengths = {}
        if not is_sequence:
            parsed = (
                tf.io.parse_single_example(serialized, context) if single else tf.io.parse_example(serialized, context)
            )
            values = {("example", name): value for name, value in parsed.items()}
        else:
            if single:
                one, many = tf.io.parse_single_sequence_example(serialized, context, lists)
            else:
                one, many, lengths = tf.io.parse_sequence_example(serialized, context, lists)
            values = {("context", name): value for name, value in one.items()}
            values.update({("list", name): value for name, value in many.items()})
        flat = []
        for f in spec:
            flat += tensors_of(f, values[f.scope, f.name], lengths, single)
        return flat

    return tf.function(parse, autograph=False, input_signature=[tf.TensorSpec([] if single else [None], tf.string)])


def text(tensor):
    kind = tensor.dtype.name.replace("float32", "float")
    array = tensor.numpy()
    # NumPy strips trailing NULs from bytes when it creates an array.
    items = [array] if isinstance(array, bytes) else np.asarray(array).ravel().tolist()
    if kind == "float":
        items = ["%08x" % x for x in np.asarray(array, np.float32).ravel().view(np.uint32).tolist()]
    elif kind == "string":
        items = ["'" + x.hex() for x in items]
    return " ".join([f" {kind}[{','.join(map(str, tensor.shape.as_list()))}]"] + [str(x) for x in items]) + ";"


def tensorflow_line(parse, records, single):
    try:
        return "ok" + "".join(text(t) for t in parse(tf.constant(records[0] if single else records)))
    except (tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError) as error:
        return "error " + str(error)[:500]
    except UnicodeDecodeError:  # the error's message contains bytes of the record
        return "error"


# ---- Batches that only millrace rejects: is each record valid by itself? ----


def fits(f, lists, single):
    """Whether a feature is valid in one record or one step. lists: {key: values}"""
    values = len(lists[f.value_key])
    if f.form == "sparse":
        return all(len(lists[k]) == values and all(0 <= x < size for x in lists[k]) for k, size in zip(f.keys, f.shape))
    for kind, key in reversed(f.parts):
        if kind == "uniform":
            if values % key:
                return False
            values //= key
            continue
        k = lists[key]
        rows = len(k)
        if kind == "splits":
            rows -= 1
            good = (k[0] == 0 and k[-1] == values) if k else values == 0 and not single
            if not k:
                rows = 0
        elif kind == "lengths":
            good = all(x >= 0 for x in k) and sum(k) == values
        elif kind == "starts":
            good = (k[0] == 0 and k[-1] <= values) if k else values == 0
        elif kind == "limits":
            good = k[-1] == values if k else values == 0
        else:
            good = len(k) == values and (not k or k[-1] < 2**24)
            rows = k[-1] + 1 if k else 0
        if not good or (kind != "lengths" and any(a > b for a, b in zip([0] + k, k))):
            return False
        values = rows
    return True


def every_record_fits(spec, records, single):
    for f in spec:
        if f.form != "sparse" and not f.parts:
            continue
        keys = [f.value_key, *f.keys, *(key for kind, key in f.parts if kind != "uniform")]
        raw = {
            key: tf.io.RaggedFeature(tf.int64 if i else tf.as_dtype(f.dtype))
            for i, key in reversed(list(enumerate(keys)))
        }
        if f.scope == "example":
            parsed = tf.io.parse_example(records, raw)
        else:
            args = ({}, raw) if f.scope == "list" else (raw, {})
            parsed = tf.io.parse_sequence_example(records, *args)[f.scope == "list"]
        parsed = {key: value.to_list() for key, value in parsed.items()}
        for i in range(len(records)):
            rows = [{key: parsed[key][i] for key in parsed}]
            if f.scope == "list":
                if len({len(parsed[key][i]) for key in parsed}) != 1:
                    return False
                rows = [{key: parsed[key][i][step] for key in parsed} for step in range(len(parsed[f.value_key][i]))]
            if not all(fits(f, row, single and f.scope != "list") for row in rows):
                return False
    return True


# ---- The checks ----


def names_a_feature(spec, message):
    names = [name for f in spec for name in (f.name, f.value_key, *f.keys, *(str(key) for _, key in f.parts))]
    return "damaged at byte" in message or any(f'"{name}"' in message for name in names)


def check_parse(directory, seed, spec, parse, batch, count, wild):
    single = batch == "single"
    size = 1 if single else batch
    is_sequence = any(f.scope != "example" for f in spec)
    pair = []
    for canonical in (False, True):
        generator = Generator(seed, wild, canonical)
        make = generator.sequence if is_sequence else generator.example
        pair.append([make(spec) for _ in range(count * size)])
    records, canonical = pair
    source, listing = os.path.join(directory, "parse.tfrecord"), os.path.join(directory, "spec.txt")
    with tf.io.TFRecordWriter(source) as writer:
        for record in records:
            writer.write(record)
    with open(listing, "w") as file:
        print(*(f.line() for f in spec), sep="\n", file=file)
    lines = run("parse", source, listing, batch).splitlines()
    assert len(lines) == count, (len(lines), count)
    errors = stricter = 0
    for i, ours in enumerate(lines):
        group = canonical[i * size : (i + 1) * size]
        theirs = tensorflow_line(parse, group, single)
        place = f"seed {seed}, batch {i} of {spec}"
        if ours.startswith("error"):
            errors += 1
            assert names_a_feature(spec, ours), f"{place}: {ours!r} names no feature"
            if theirs.startswith("error"):
                continue
            stricter += 1
            assert not every_record_fits(
                spec, group, single
            ), f"{place}: TensorFlow has {theirs!r}, we {ours!r}: {group!r}"
        else:
            assert ours == theirs, f"{place}: TensorFlow has\n{theirs}\nwe have\n{ours}\nof {[g.hex() for g in group]}"
    return errors, stricter


def check_all(directory, specs, batches, counts):
    total = errors = stricter = 0
    for number, spec in enumerate(specs):
        for batch in batches:
            parse = make_parse(spec, batch == "single")
            for wild, count in counts:
                seed = SEED * 100_000 + number * 1000 + total
                e, s = check_parse(directory, seed, spec, parse, batch, count, wild)
                errors, stricter, total = errors + e, stricter + s, total + count
    assert errors < total * 0.6, "the generator makes too many bad records to show anything"
    return f"{total} batches are equal, {errors} of them errors in both (in ours alone, as documented: {stricter})"


def check_examples(directory):
    print("examples:", check_all(directory, EXAMPLES, ("single", 1, 3, 40), ((0.02, 20), (0.15, 30), (0.3, 20))))


def check_sequences(directory):
    print("sequences:", check_all(directory, SEQUENCES, ("single", 1, 3, 40), ((0.02, 20), (0.1, 30), (0.25, 20))))


def check_encoder(directory):
    target = os.path.join(directory, "encoded")
    run("encode", target)
    for i, record in enumerate(tf.data.TFRecordDataset(target)):
        example = tf.train.SequenceExample.FromString(record.numpy())
        assert list(example.context.feature["number"].int64_list.value) == ([-i] if i % 3 else [])
        if i % 3 == 0:
            del example.context.feature["number"]
            if "context" in [f.name for f, _ in example.ListFields()]:
                example.ClearField("context")
        lists = example.feature_lists.feature_list
        assert ("empty" in lists) == (i % 5 == 0)
        integers = [(-1) ** j * ((2**63 - 1) >> j) for j in range(i)]
        if i % 7:
            assert [list(f.int64_list.value) for f in lists["integers"].feature] == [
                integers[: i - s] for s in range(i % 7)
            ]
            assert [len(f.bytes_list.value) for f in lists["strings"].feature] == [min(s, i) for s in range(i % 7)]
            assert all(
                np.array_equal(
                    np.float32(f.float_list.value),
                    np.float32([np.float32(j) / np.float32(3) - np.float32(5) for j in range(i)]),
                )
                for f in lists["floats"].feature
            )
        assert example.SerializeToString(deterministic=True) == record.numpy(), f"protobuf writes other bytes for {i}"
    assert i == 49
    print("encoder: 50 SequenceExamples are protobuf's bytes")


def check_schema(directory):
    """The Python code that tfrecord-cat --schema prints parses the records and returns their values."""
    source = os.path.join(directory, "schema.tfrecord")
    programs = os.environ["MILLRACE_BIN"]
    for number, (spec, make) in enumerate(
        [(EXAMPLES[6], "example"), (EXAMPLES[3], "example"), (SEQUENCES[0], "sequence"), (SEQUENCES[1], "sequence")]
    ):
        generator = Generator(SEED + number, 0.02, canonical=True)
        records, parse = [], make_parse(spec, True)
        while len(records) < 40:
            record = getattr(generator, make)(spec)
            if not tensorflow_line(parse, [record], True).startswith("error"):
                records.append(record)
        with tf.io.TFRecordWriter(source) as writer:
            for record in records:
                writer.write(record)
        printed = subprocess.run(
            [os.path.join(programs, "tfrecord-cat"), "--schema", "--spec", "python", source],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        module = {}
        exec(printed, module)
        if make == "example":
            parsed = tf.io.parse_example(records, module["features"])
            assert {f.name for f in spec} <= set(module["features"]), printed
        else:
            context, lists, lengths = tf.io.parse_sequence_example(records, module["context"], module["lists"])
            assert {f.name for f in spec if f.scope == "list"} <= set(lists), printed
    print("schema: Python of tfrecord-cat runs")


def main():
    checks = [check_schema, check_encoder, check_examples, check_sequences]
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        for check in checks:
            try:
                check(directory)
            except AssertionError as error:
                failed += 1
                print(f"FAILED {check.__name__}: {str(error)[:4000]}")
    print(f"{len(checks) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
