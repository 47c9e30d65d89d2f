"""tfrecord-cat on records that TensorFlow wrote: Examples and SequenceExamples with every kind of value, printed as
JSON and CSV and selected by --where. The printed values equal the written ones."""

import base64
import csv
import io
import json
import os
import random
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

PROGRAM = os.path.join(os.environ["MILLRACE_BIN"], "tfrecord-cat")
SEED = int(os.environ.get("MILLRACE_TEST_SEED", "1"))
NAMES = ["a", "b/c", "with space", "quote\"", "new\nline", "grün", "", "x" * 200]


def cat(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True).stdout


def random_float(numbers):
    value = np.uint32(numbers.getrandbits(32)).view(np.float32)
    return float(numbers.choice([value, np.float32(numbers.randrange(1000) / 8), np.float32(0.1), np.float32("inf")]))


def random_feature(numbers):
    feature = tf.train.Feature()
    count = numbers.choice([0, 1, 1, 1, 2, 9])
    kind = numbers.randrange(4)
    if kind == 0:
        words = [b"", b"plain", "grüß \U0001f600".encode(), b"\xff\x00", b"a\"\\\x1b\n\x7f", numbers.randbytes(30)]
        feature.bytes_list.value.extend(numbers.choice(words) for _ in range(count))
        feature.bytes_list.SetInParent()
    elif kind == 1:
        feature.float_list.value.extend(random_float(numbers) for _ in range(count))
        feature.float_list.SetInParent()
    elif kind == 2:
        feature.int64_list.value.extend(
            numbers.choice([0, -1, 2**63 - 1, -(2**63), 7, numbers.getrandbits(40)]) for _ in range(count)
        )
        feature.int64_list.SetInParent()
    return feature


def random_record(numbers):
    features = {name: random_feature(numbers) for name in numbers.sample(NAMES, numbers.randrange(1, 6))}
    if numbers.randrange(3):
        return tf.train.Example(features=tf.train.Features(feature=features))
    lists = {
        name: tf.train.FeatureList(feature=[random_feature(numbers) for _ in range(numbers.randrange(4))])
        for name in numbers.sample(NAMES, 3)
    }
    return tf.train.SequenceExample(
        context=tf.train.Features(feature=features), feature_lists=tf.train.FeatureLists(feature_list=lists)
    )


def write(path, records, compression=""):
    with tf.io.TFRecordWriter(path, compression) as writer:
        for record in records:
            writer.write(record.SerializeToString())


# ---- JSON ----


def same_float(text, value):
    got = np.float32({"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}[text] if isinstance(text, str) else text)
    return got.tobytes() == np.float32(value).tobytes() or (np.isnan(got) and np.isnan(value))


def check_feature(shown, feature):
    kind = feature.WhichOneof("kind")
    if kind is None:
        assert shown == {}, shown
        return
    (key, values), = shown.items()
    expected = list(getattr(feature, kind).value)
    assert len(values) == len(expected), (values, expected)
    if kind == "int64_list":
        assert key == "int64" and values == expected, (shown, expected)
    elif kind == "float_list":
        assert key == "float" and all(map(same_float, values, expected)), (shown, expected)
    else:
        got = [v.encode() for v in values] if key == "bytes" else [base64.b64decode(v) for v in values]
        assert got == expected, (shown, expected)


def check_features(shown, features):
    assert shown.keys() == features.keys(), (shown.keys(), features.keys())
    for name, feature in features.items():
        check_feature(shown[name], feature)


def check_json(directory):
    numbers = random.Random(SEED)
    records = [random_record(numbers) for _ in range(3000)]
    for compression in ("", "GZIP", "ZLIB"):
        path = os.path.join(directory, "records" + compression)
        write(path, records, compression)
        lines = cat("--json", path).decode().splitlines()
        assert len(lines) == len(records)
        for i, (line, record) in enumerate(zip(lines, records)):
            shown = json.loads(line)
            assert shown["record"] == i, (compression, i, shown["record"])
            if isinstance(record, tf.train.Example):
                check_features(shown["features"], dict(record.features.feature))
            elif not record.feature_lists.feature_list:
                # A SequenceExample without feature lists has the same bytes as an Example.
                check_features(shown.get("features", shown.get("context")), dict(record.context.feature))
            else:
                check_features(shown["context"], dict(record.context.feature))
                lists = dict(record.feature_lists.feature_list)
                assert shown["feature_lists"].keys() == lists.keys()
                for name, steps in lists.items():
                    assert len(shown["feature_lists"][name]) == len(steps.feature)
                    for step, feature in zip(shown["feature_lists"][name], steps.feature):
                        check_feature(step, feature)
    print("json: %d records of every kind, plain, GZIP and ZLIB" % len(records))


# ---- CSV and --where ----


def tabular(numbers):
    example = tf.train.Example()
    for name in ("n", "m"):
        if numbers.randrange(5):
            example.features.feature[name].int64_list.value.append(numbers.randrange(-5, 6))
    example.features.feature["f"].float_list.value.append(numbers.choice([0.1, 0.9, 2.5, -1e-9, 16777217.0]))
    example.features.feature["many"].int64_list.value.extend(numbers.randrange(6) for _ in range(numbers.randrange(4)))
    example.features.feature["text, \"t\""].bytes_list.value.append(
        numbers.choice([b"", b"a,b", b"cat", b"two\r\nlines", b"q\"q"])
    )
    return example


def check_csv(directory):
    numbers = random.Random(SEED + 1)
    records = [tabular(numbers) for _ in range(2000)]
    path = os.path.join(directory, "table")
    write(path, records)
    rows = list(csv.DictReader(io.StringIO(cat("--csv", path).decode(), newline="")))
    assert len(rows) == len(records) and set(rows[0]) == {"n", "m", "f", "text, \"t\""}, rows[:1]
    for row, record in zip(rows, records):
        feature = record.features.feature
        for name in ("n", "m"):
            assert row[name] == (
                str(feature[name].int64_list.value[0]) if name in feature and feature[name].int64_list.value else ""
            ), row
        assert same_float(float(row["f"]), feature["f"].float_list.value[0])
        assert row["text, \"t\""].encode() == feature["text, \"t\""].bytes_list.value[0]
    print("csv: %d rows" % len(rows))


def check_where(directory):
    numbers = random.Random(SEED + 2)
    records = [tabular(numbers) for _ in range(2000)]
    path = os.path.join(directory, "where")
    write(path, records)
    features = [record.features.feature for record in records]
    integers = lambda f, name: list(f[name].int64_list.value) if name in f else []
    text = lambda f: f["text, \"t\""].bytes_list.value[0]
    conditions = {
        "n > m": lambda f: any(a > b for a, b in zip(integers(f, "n"), integers(f, "m"))),
        "n == 3 || m != 3": lambda f: 3 in integers(f, "n") or any(v != 3 for v in integers(f, "m")),
        "!(n == 3) && exists(m)": lambda f: 3 not in integers(f, "n") and "m" in f,
        "f == 0.1 || f == 16777216": lambda f: f["f"].float_list.value[0] in (np.float32(0.1), 16777216.0),
        "many == 2 && size(many) >= 2": lambda f: 2 in integers(f, "many") and len(integers(f, "many")) >= 2,
        "n * m + 1 < many": lambda f: bool(integers(f, "n") and integers(f, "m"))
        and any(integers(f, "n")[0] * integers(f, "m")[0] + 1 < v for v in integers(f, "many")),
        "feature('text, \"t\"') =~ '^(cat|q)' || feature('text, \"t\"') contains ','": lambda f: text(f)
        in (b"cat", b"q\"q", b"a,b"),
        "bytes(feature('text, \"t\"')) % 3 == 0": lambda f: len(text(f)) % 3 == 0,
    }
    for condition, expected in conditions.items():
        got = [json.loads(line)["record"] for line in cat("--json", "--where", condition, path).decode().splitlines()]
        want = [i for i, f in enumerate(features) if expected(f)]
        assert got == want and 0 < len(want) < len(records), (condition, len(got), len(want))
    print("where: %d conditions on %d records" % (len(conditions), len(records)))


def main():
    checks = [check_json, check_csv, check_where]
    failed = 0
    for check in checks:
        with tempfile.TemporaryDirectory() as directory:
            try:
                check(directory)
            except (AssertionError, subprocess.CalledProcessError) as error:
                print("FAILED %s: %s (seed %d)" % (check.__name__, error, SEED))
                failed += 1
    print("%d passed, %d failed" % (len(checks) - failed, failed))
    sys.exit(failed > 0)


main()
