"""TensorFlow 1's input producers, readers and batches on queues: millrace produces the same elements, keys, records and
batches in the same order, and ends with the same status. Where TensorFlow shuffles or has several threads, the order is
not compared."""

import itertools
import os
import subprocess
import sys
import tempfile
from collections import Counter

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
PROGRAM = os.path.join(os.environ["MILLRACE_ORACLE"], "queue_inputs")


def ours(*words):
    text = subprocess.run([PROGRAM, *map(str, words)], check=True, capture_output=True, text=True, timeout=60).stdout
    return text.splitlines()


def text_of(array):
    array = np.asarray(array)
    words = [" x" + v.hex() if isinstance(v, bytes) else f" {v}" for v in array.ravel().tolist()]
    return "[" + "".join(f"{d}," for d in array.shape) + "]" + "".join(words)


def name_of(error):
    return {v: k for k, v in vars(tf.errors).items() if isinstance(v, int)}[error.error_code]


def theirs(make, finish=None, errors_max=1):
    """One line for each run of the tensors that make() returns."""
    lines, errors = [], 0
    with tf.Graph().as_default(), tf.Session() as session:
        tensors = make()
        more = finish() if finish else None
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        while errors < errors_max:
            try:
                lines.append(" ".join(text_of(t) for t in session.run(tensors)))
            except tf.errors.OpError as e:
                errors += 1
                end = name_of(e)
                if end == "OUT_OF_RANGE":
                    break
                if finish:
                    lines.append(end)
        if more:
            lines.append("%d records, %d files" % tuple(session.run(more)))
        coordinator.request_stop()
        coordinator.join(threads)
    return lines + [end]


# ---- Input producers ----


def check_producers():
    numbers = {
        "slices": lambda n: [tf.range(n, dtype=tf.int64), tf.stack([10 * tf.range(n, dtype=tf.int64)] * 2, axis=1)]
    }
    for epochs, shuffle in itertools.product([1, 2, 5], [0, 1]):
        options = {"num_epochs": epochs, "shuffle": bool(shuffle), "capacity": 4}
        words = ["a", "bc", "d e", "bc"]
        pairs = [
            (
                ours("strings", epochs, shuffle, *words),
                theirs(lambda: [tf.train.string_input_producer(words, **options).dequeue()]),
            ),
            (
                ours("range", 7, epochs, shuffle),
                theirs(lambda: [tf.train.range_input_producer(7, **options).dequeue()]),
            ),
            (
                ours("slices", 5, epochs, shuffle),
                theirs(lambda: tf.train.slice_input_producer(numbers["slices"](5), **options)),
            ),
        ]
        for mine, other in pairs:
            if shuffle:  # each epoch contains all elements
                assert mine[-1] == other[-1] and len(mine) == len(other), (mine, other)
                size = (len(other) - 1) // epochs
                for e in range(epochs):
                    assert Counter(mine[e * size : (e + 1) * size]) == Counter(other[e * size : (e + 1) * size]), (
                        mine,
                        other,
                    )
            else:
                assert mine == other, (mine, other)
    for epochs in (1, 3):
        assert ours("limit", epochs) == theirs(lambda: [tf.train.limit_epochs(tf.constant(7, tf.int64), epochs)])
    print("producers: strings, ranges and slices, epochs, shuffled or not; limit_epochs")


# ---- Readers ----


def check_readers(directory):
    def file(name, content):
        path = os.path.join(directory, name)
        with open(path, "wb") as f:
            f.write(content)
        return path

    def records(name, values):
        path = os.path.join(directory, name)
        with tf.io.TFRecordWriter(path) as writer:
            for value in values:
                writer.write(value)
        return path

    def one(make, words, files, up_to=0):
        for count in (0, up_to) if up_to else (0,):
            kept = []

            def read():
                queue = tf.train.string_input_producer(files, num_epochs=1, shuffle=False)
                kept.append(make())
                return kept[0].read_up_to(queue, count) if count else kept[0].read(queue)

            def counts():
                return [kept[0].num_records_produced(), kept[0].num_work_units_completed()]

            other = theirs(read, counts, 3)
            mine = ours("read", *words, count, *files)
            if mine != other:
                found, wanted = next(pair for pair in itertools.zip_longest(mine, other) if pair[0] != pair[1])
                raise AssertionError(
                    f"{words} {count} {[os.path.basename(f) for f in files]}: {found}, not {wanted}; "
                    f"{mine[-2:]}, not {other[-2:]}"
                )

    texts = [
        file("lines", b"one\ntwo\r\n\nfour\r\r\nlast"),
        file("empty", b""),
        file("end", b"x\ny\n"),
        file("crlf", b"a\r\nb\r\n"),
        file("blank", b"\n\n"),
        file("cr", b"a\rb\n"),
        file("zero", b"a\0b\nc\n"),
    ]
    missing = os.path.join(directory, "missing")
    for skip in (0, 1, 3):
        one(lambda: tf.TextLineReader(skip_header_lines=skip), ["text", skip, 0, 0, 0, 0], texts, 3)
    one(tf.TextLineReader, ["text", 0, 0, 0, 0, 0], [missing, texts[2], missing, texts[3]])
    one(tf.WholeFileReader, ["whole", 0, 0, 0, 0, 0], texts, 2)
    one(tf.WholeFileReader, ["whole", 0, 0, 0, 0, 0], [texts[0], missing, texts[2]])
    blocks = [file("blocks", bytes(range(20))), file("odd", bytes(range(100, 123))), texts[1], file("short", b"ab")]
    for header, record, footer, hop in [
        (0, 4, 0, 0),
        (1, 4, 3, 0),
        (0, 4, 0, 6),
        (0, 5, 3, 0),
        (1, 4, 3, 2),
        (0, 3, 0, 5),
        (3, 2, 2, 0),
    ]:
        # A file shorter than the header ends TensorFlow's data; millrace continues with the next file.
        one(
            lambda: tf.FixedLengthRecordReader(record, header, footer, hop),
            ["fixed", 0, header, record, footer, hop],
            blocks[: 4 if header == 0 else 2],
            4,
        )
    whole = [
        records("first", [b"", b"abc", b"x" * 1000]),
        records("none", []),
        records("second", [b"q%d" % i for i in range(5)]),
    ]
    one(tf.TFRecordReader, ["record", 0, 0, 0, 0, 0], whole, 2)
    one(tf.TFRecordReader, ["record", 0, 0, 0, 0, 0], [whole[0], missing, whole[2]], 4)
    print("readers: whole files, lines, records of fixed length, TFRecords; one and up to a number")


# ---- Batches ----


def check_batches():
    count = 0
    flags = itertools.product(
        [7, 12], [1, 2], [3, 4], [0, 1], [0, 1], [0, 1], [0, 1], ["batch", "shuffle", "join", "shuffle_join"]
    )
    for limit, epochs, size, smaller, many, pad, keep, kind in flags:
        shuffle, producers = int("shuffle" in kind), 2 if "join" in kind else 1
        if (
            (pad and (shuffle or many))
            or (keep and producers > 1)
            or ((limit + size + epochs + smaller + many + keep) % 2 and (producers > 1 or shuffle))
        ):
            continue

        def element():
            x = tf.cast(tf.train.range_input_producer(limit, num_epochs=epochs, shuffle=False).dequeue(), tf.int64)
            second = tf.range(x % 4) if pad else tf.stack([x, 2 * x])
            if not many:
                return [x, second]
            return [x + 100 * tf.range(3, dtype=tf.int64), tf.reshape(x + x * tf.range(6, dtype=tf.int64), [3, 2])]

        def make():
            lists = [element() for _ in range(producers)]
            o = {
                "batch_size": size,
                "capacity": 20,
                "enqueue_many": bool(many),
                "allow_smaller_final_batch": bool(smaller),
            }
            o.update({"min_after_dequeue": 5} if shuffle else {"dynamic_pad": bool(pad)})
            if keep:
                wanted = tf.not_equal((lists[0][0][0] if many else lists[0][0]) % 3, 0)
                name = {
                    "batch": "maybe_batch",
                    "shuffle": "maybe_shuffle_batch",
                    "join": "maybe_batch_join",
                    "shuffle_join": "maybe_shuffle_batch_join",
                }[kind]
                return getattr(tf.train, name)(lists if producers > 1 else lists[0], keep_input=wanted, **o)
            name = {
                "batch": "batch",
                "shuffle": "shuffle_batch",
                "join": "batch_join",
                "shuffle_join": "shuffle_batch_join",
            }[kind]
            return getattr(tf.train, name)(lists if producers > 1 else lists[0], **o)

        words = [limit, epochs, size, 20, smaller, many, pad, keep, shuffle, 5 if shuffle else 0, producers]
        mine, other = ours("batch", *words), theirs(make)
        count += 1
        if producers == 1 and not shuffle:
            assert mine == other, (kind, words, mine, other)
            continue
        assert len(mine) == len(other) and mine[-1] == other[-1], (kind, words, mine, other)
        if smaller and not pad:  # nothing is dropped: the same numbers in any order
            first = [
                Counter(w for line in lines[:-1] for w in line[line.index("]") : line.rindex("[")].split()[1:])
                for lines in (mine, other)
            ]
            assert first[0] == first[1], (kind, words, mine, other)
        assert [line.split("]")[0] for line in mine] == [line.split("]")[0] for line in other], (
            kind,
            words,
            mine,
            other,
        )
    print(f"batches: {count} of batch, shuffle_batch, batch_join, shuffle_batch_join and their maybe_ forms")


def main():
    with tempfile.TemporaryDirectory() as directory:
        checks = [check_producers, lambda: check_readers(directory), check_batches]
        failed = 0
        for check in checks:
            try:
                check()
            except (AssertionError, subprocess.CalledProcessError, subprocess.TimeoutExpired) as e:
                print(f"FAILED {e}"[:3000])
                failed += 1
        print(f"{len(checks) - failed} passed, {failed} failed")
        return failed > 0


if __name__ == "__main__":
    sys.exit(main())
