"""dense_to_ragged_batch, dense_to_sparse_batch and from_sparse_tensor_slices produce the same results and errors as
tf.data, for elements of random shapes."""

import os
import random
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf

tf.logging.set_verbosity(tf.logging.FATAL)
SEED = int(os.environ.get("MILLRACE_TEST_SEED", "1"))
CASES = int(os.environ.get("MILLRACE_ORACLE_CASES", "60"))
D = tf.data.Dataset


def random_elements(r, scalars):
    """A dtype, the shape of the spec, and the shapes of the elements."""
    spec = [r.choice([-1, -1, 1, 2]) for _ in range(r.randint(0 if scalars else 1, 3))]
    return (
        r.choice(["int32", "string"]),
        spec,
        [[r.randint(0, 3) if n < 0 else n for n in spec] for _ in range(r.randint(0, 7))],
    )


def random_case(r):
    kind = r.choice(["ragged", "sparse", "slices"])
    if kind == "slices":
        sizes = [r.randint(0, 5) for _ in range(r.randint(1, 3))]
        places = sorted({tuple(r.randrange(n) for n in sizes) for _ in range(r.randint(0, 8))}) if all(sizes) else []
        if places and r.random() < 0.3:
            r.shuffle(places)
        elif r.random() < 0.3:
            # Only the rows must be in order.
            places.sort(key=lambda p: (p[0], tuple(-n for n in p[1:])))
        return kind, sizes, places
    size, drop = r.randint(1, 4), r.randint(0, 1) if kind == "ragged" else 0
    dtype, spec, shapes = random_elements(r, kind == "sparse")
    if kind == "ragged":
        # TensorFlow cannot create int32 splits of several levels: it fails with a dtype mismatch.
        levels = max((d + 1 for d, n in enumerate(spec) if n < 0), default=0)
        return kind, size, drop, r.choice([32, 64]) if levels < 2 else 64, dtype, spec, shapes
    row = [r.choice([-1, 3, 3, 2]) for _ in spec]
    if r.random() < 0.1:
        row.append(3)
    return kind, size, drop, row, dtype, spec, shapes


def flat(*parts):
    out = []
    for part in parts:
        out += flat(len(part), *part) if isinstance(part, (list, tuple)) else [str(part)]
    return out


def line_of(case):
    if case[0] == "slices":
        _, sizes, places = case
        return " ".join(flat("slices", sizes, len(places), *[n for p in places for n in p]))
    *head, dtype, spec, shapes = case
    return " ".join(flat(*head, dtype, spec, len(shapes), *[n for s in shapes for n in s]))


def ours(cases, threads):
    program = os.path.join(os.environ["MILLRACE_ORACLE"], "forms_run")
    text = "".join(line_of(case) + "\n" for case in cases)
    out = subprocess.run([program, str(threads)], input=text, check=True, capture_output=True, text=True).stdout
    return [part.split("\n")[:-1] for part in out.split("end\n")[:-1]]


def elements(dtype, spec, shapes):
    def rows():
        at = 0
        for shape in shapes:
            count = int(np.prod(shape, dtype=np.int64))
            values = np.arange(at, at + count, dtype=np.int32).reshape(shape)
            at += count
            yield values if dtype == "int32" else values.astype(str).astype(object)

    return D.from_generator(rows, tf.as_dtype(dtype), [None if n < 0 else n for n in spec])


def dataset(case):
    if case[0] == "slices":
        _, sizes, places = case
        places = np.array(places, np.int64).reshape(len(places), len(sizes))
        return D.from_sparse_tensor_slices(
            tf.SparseTensor(places, np.arange(len(places), dtype=np.int32), np.array(sizes, np.int64))
        )
    if case[0] == "ragged":
        _, size, drop, bits, *rest = case
        splits = tf.int32 if bits == 32 else tf.int64
        return elements(*rest).apply(tf.data.experimental.dense_to_ragged_batch(size, bool(drop), splits))
    _, size, _, row, *rest = case
    return elements(*rest).apply(
        tf.data.experimental.dense_to_sparse_batch(size, [None if n < 0 else n for n in row]))


def parts(element):
    if isinstance(element, tf.SparseTensorValue):
        return list(element)
    if hasattr(element, "nested_row_splits"):
        return [element.flat_values, *element.nested_row_splits]
    return list(element) if isinstance(element, tuple) else [element]


def text_of(element):
    return ";".join(" ".join(["[" + ",".join(str(n) for n in np.shape(c)) + "]"] +
                             [v.decode() if isinstance(v, bytes) else str(v) for v in np.reshape(c, -1)])
                    for c in parts(element))


def theirs(case):
    lines = []
    with tf.Graph().as_default(), tf.Session() as session:
        try:
            iterator = tf.data.make_initializable_iterator(dataset(case))
            following = iterator.get_next()
            session.run(iterator.initializer)
            while True:
                lines.append(text_of(session.run(following)))
        except tf.errors.OutOfRangeError:
            pass
        except tf.errors.OpError as e:
            lines.append(f"error {e.error_code}")
    return lines


def main():
    r = random.Random(SEED)
    cases = [random_case(r) for _ in range(CASES)]
    found = [ours(cases, 1), ours(cases, 3)]
    failed = 0
    for i, case in enumerate(cases):
        expected = theirs(case)
        if found[0][i] == expected and found[1][i] == expected:
            continue
        failed += 1
        print("FAILED seed", SEED, "case", i, line_of(case))
        print("  ours  ", found[0][i], "" if found[1][i] == found[0][i] else found[1][i])
        print("  theirs", expected)
    print(f"{CASES - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
