"""Record files and encoded Examples: TensorFlow reads millrace's, and millrace reads TensorFlow's. Parsing is tested in
example_oracle.py."""

import os
import random
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

PROGRAM = os.path.join(os.environ["MILLRACE_ORACLE"], "records_files")
SEED = int(os.environ.get("MILLRACE_TEST_SEED", "1"))


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


# ---- The checks ----


def check_files(directory):
    numbers = random.Random(SEED)
    records = [numbers.randbytes(numbers.choice([0, 1, 11, 12, 500, 5000])) for _ in range(200)] + [b"", b"x" * 300_000]
    plain = os.path.join(directory, "tensorflow.tfrecord")
    for compression in ("", "GZIP", "ZLIB"):
        source = os.path.join(directory, "tensorflow" + compression)
        with tf.io.TFRecordWriter(source, compression) as writer:
            for record in records:
                writer.write(record)
        for ours in ("", "GZIP", "ZLIB"):
            target = os.path.join(directory, "ours" + ours)
            run("copy", source, target, ours.lower() or "none")
            read = [r.numpy() for r in tf.data.TFRecordDataset(target, ours or None)]
            assert read == records, (compression, ours)
        if not compression:
            run("copy", source, plain, "none")
            with open(source, "rb") as a, open(plain, "rb") as b:
                assert a.read() == b.read(), "the same records are other bytes"
    print("files: plain, GZIP and ZLIB, both ways")


def check_encoder(directory):
    target = os.path.join(directory, "encoded")
    run("encode", target)
    for i, record in enumerate(tf.data.TFRecordDataset(target)):
        example = tf.train.Example.FromString(record.numpy())
        feature = example.features.feature
        assert list(feature["integers"].int64_list.value) == [(-1) ** j * ((2**63 - 1) >> j) for j in range(i)]
        assert np.array_equal(
            np.float32(feature["floats"].float_list.value),
            np.float32([np.float32(j) / np.float32(3) - np.float32(5) for j in range(i)]),
        )
        assert list(feature["strings"].bytes_list.value) == [b"%0*d" % (j % 7, j) if j else b"0" for j in range(i)]
        assert list(feature["number"].int64_list.value) == [-i]
        assert example.SerializeToString(deterministic=True) == record.numpy(), "protobuf writes other bytes"
    assert i == 49
    print("encoder: 50 Examples are protobuf's bytes")


def main():
    checks = [check_files, check_encoder]
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
