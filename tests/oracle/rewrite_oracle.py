"""TensorFlow reads files that tfrecord-cat rewrote from TensorFlow's: seekable GZIP, merge, split, shuffle. DALI's
index is compared with tfrecord2idx's if that is installed."""
import os
import random
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

CAT = os.path.join(os.environ["MILLRACE_BIN"], "tfrecord-cat")
TFRECORD2IDX = os.environ.get(
    "MILLRACE_TFRECORD2IDX", os.path.expanduser("~/.cache/millrace-peers/venvs/dali/bin/tfrecord2idx")
)
SEED = int(os.environ.get("MILLRACE_TEST_SEED", "1"))


def cat(directory, *arguments):
    return subprocess.run([CAT, *map(str, arguments)], cwd=directory, check=True, capture_output=True, text=True).stdout


def read(directory, name, compression=""):
    return [r.numpy() for r in tf.data.TFRecordDataset(os.path.join(directory, name), compression)]


def make(directory):
    """Three files written by TensorFlow, plain, GZIP and ZLIB; returns their records."""
    numbers = random.Random(SEED)
    words = [numbers.randbytes(9) for _ in range(50)]
    records = []
    for _ in range(3000):
        size = numbers.choice([0, 1, 12, 300, 4000])
        records.append(b"".join(numbers.choice(words) for _ in range(size // 9 + 1))[:size])
    records.insert(1500, numbers.randbytes(2_000_000))
    parts = {"plain": records[:1000], "gzip": records[1000:2000], "zlib": records[2000:]}
    for name, part in parts.items():
        with tf.io.TFRecordWriter(os.path.join(directory, name), "" if name == "plain" else name.upper()) as writer:
            for record in part:
                writer.write(record)
    return records


def check_seekable(directory, records):
    cat(directory, "--merge", "--compress", "seekable", "--out", "seekable", "plain", "gzip", "zlib")
    assert read(directory, "seekable", "GZIP") == records
    points = cat(directory, "--index", "seekable")
    assert "points" in points and "up to date" in points, points
    os.remove(os.path.join(directory, "seekable.index"))
    assert cat(directory, "--index", "seekable").replace("created", "") == points.replace("the index is up to date", "")
    for number in (0, 1499, 1500, 1501, 3000):
        cat(directory, "--merge", "--force", "--out", "one", "--record", number, "seekable")
        assert read(directory, "one") == [records[number]], number
    # TensorFlow's own reader sees one stream, also with a small read buffer.
    again = tf.data.TFRecordDataset(os.path.join(directory, "seekable"), "GZIP", buffer_size=100)
    assert [r.numpy() for r in again] == records


def check_rewritten(directory, records):
    for form, compression in (("none", ""), ("gzip", "GZIP"), ("zlib", "ZLIB"), ("seekable", "GZIP")):
        cat(directory, "--split", 4, "--force", "--compress", form, "--out", "part", "plain", "gzip", "zlib")
        parts = [read(directory, f"part-{i:05d}-of-00004", compression) for i in range(4)]
        assert [r for part in parts for r in part] == records, form
        cat(
            directory,
            "--shuffle",
            "--force",
            "--seed",
            5,
            "--compress",
            form,
            "--out",
            "mixed",
            "plain",
            "gzip",
            "zlib",
        )
        mixed = read(directory, "mixed", compression)
        assert mixed != records and sorted(mixed) == sorted(records), form
        assert "same 3001 records" in cat(directory, "--diff", "--unordered", "mixed", "part@4"), form


def check_dali(directory, records):
    cat(directory, "--index", "--dali", "plain")
    with open(os.path.join(directory, "plain.idx")) as file:
        ours = file.read()
    lines, offset = "", 0
    for record in records[:1000]:
        lines += f"{offset} {len(record) + 16}\n"
        offset += len(record) + 16
    assert ours == lines
    if os.access(TFRECORD2IDX, os.X_OK):
        subprocess.run([TFRECORD2IDX, "plain", "theirs.idx"], cwd=directory, check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(directory, "theirs.idx")) as file:
            assert file.read() == ours
        print("dali: the bytes are tfrecord2idx's")


def main():
    checks = [check_seekable, check_rewritten, check_dali]
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        records = make(directory)
        for check in checks:
            try:
                check(directory, records)
            except (AssertionError, subprocess.CalledProcessError) as error:
                failed += 1
                print(f"FAILED {check.__name__}: {str(error)[:2000]} {getattr(error, 'stderr', '')}")
    print(f"{len(checks) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
