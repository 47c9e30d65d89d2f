"""Random pipelines of up to ten stages produce the same results as tf.data: the same elements in the same order without
a shuffle, the same elements of each epoch in any order with one, and the same cardinality.

The program random_pipelines generates them and prints each as text (tests/pipeline/pipeline_text.h) with its results;
this script builds the same pipeline with tf.data from the text. MILLRACE_RANDOM_PIPELINES sets the number of pipelines,
MILLRACE_TEST_SEED the first seed."""

import os
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

tf.autograph.set_verbosity(0)
SEED = int(os.environ.get("MILLRACE_TEST_SEED", "1"))
COUNT = int(os.environ.get("MILLRACE_RANDOM_PIPELINES", "300"))
LIMIT = 80
D = tf.data.Dataset
plain = tf.autograph.experimental.do_not_convert
I64 = tf.int64


def key(x):
    return tf.add_n([tf.reduce_sum(c) for c in x])


def mod(x, by):
    return tf.math.floormod(x, tf.constant(by, I64))


@plain
def spread(*x):
    k = key(x)
    return (k + tf.range(mod(k, 4), dtype=I64),)


@plain
def fail(*x):
    with tf.control_dependencies([tf.debugging.assert_none_equal(mod(key(x), 5), tf.constant(3, I64))]):
        return tuple(tf.identity(c) for c in x)


MAPS = {
    "affine": lambda *x: tuple(3 * c + 1 for c in x),
    "mod": lambda *x: tuple(mod(c, 7) for c in x),
    "choice": lambda *x: tuple(tf.math.floormod(mod(5 * c, 7), 2) for c in x),
    "pair": lambda *x: (x[0], key(x)),
    "first": lambda *x: (x[0],),
    "sum": lambda *x: (key(x),),
    "zero": lambda *x: tuple(0 * c for c in x),
    "spread": spread,
    "fail": fail,
}
FLATS = {
    "count": lambda *x: tupled(D.range(mod(key(x), 4))),
    "same": lambda *x: D.from_tensors(x).repeat(mod(key(x), 3)),
}


def tupled(d):
    return D.zip((d,))


def slices(count, components):
    def column(c):
        values = np.arange(count * (2 if c == 1 else 1), dtype=np.int64) * (7 + c) % 11 - 3
        return values.reshape(count, 2) if c == 1 else values

    return D.from_tensor_slices(tuple(column(c) for c in range(components)))


def components(*x):
    """Ragged and sparse tensors as their dense components."""
    parts = []
    for c in x:
        if isinstance(c, tf.RaggedTensor):
            parts += [c.flat_values, *c.nested_row_splits]
        elif isinstance(c, tf.SparseTensor):
            parts += [c.indices, c.values, c.dense_shape]
        else:
            parts.append(c)
    return tuple(parts)


def sparse(rows, columns, by):
    count = (rows * columns + by - 1) // by
    indices = np.array([[i * by // columns, i * by % columns] for i in range(count)], np.int64).reshape(count, 2)
    values = np.array([i * 5 % 13 for i in range(count)], np.int64)
    d = tf.compat.v1.data.Dataset.from_sparse_tensor_slices(tf.SparseTensor(indices, values, [rows, columns]))
    return d.map(plain(components))


def generator(start, count):
    return D.from_generator(lambda: ((i,) for i in range(start, start + count)),
                            output_signature=(tf.TensorSpec([], I64),))


def resample(d):
    d = d.rejection_resample(plain(lambda *x: tf.cast(mod(key(x), 2), tf.int32)), [0.5, 0.5], [0.5, 0.5])
    return d.map(plain(lambda c, x: (tf.cast(c, I64), *(x if isinstance(x, tuple) else (x,)))))


def stage(d, word, function, n):
    if word == "ragged":
        return d.apply(tf.data.experimental.dense_to_ragged_batch(n[0], bool(n[1]))).map(plain(components))
    if word == "sparse_batch":
        shape = [None] * d.element_spec[0].shape.rank
        return d.map(plain(lambda x: x)).apply(tf.data.experimental.dense_to_sparse_batch(n[0], shape)).map(
            plain(components))
    if word == "distribute":
        size = n[0] // n[1]
        return d.batch(n[0], drop_remainder=True).map(
            plain(lambda *x: tuple(c[n[2] * size:(n[2] + 1) * size] for c in x)))
    if word == "assert":
        return d.apply(tf.data.experimental.assert_cardinality(n[0]))
    if word == "resample":
        return resample(d)
    if word == "map":
        return d.map(plain(MAPS[function]))
    if word == "filter":
        return d.filter(plain(lambda *x: tf.not_equal(mod(key(x), n[0]), n[1])))
    if word == "take_while":
        return d.take_while(plain(lambda *x: key(x) < n[0]))
    if word == "flat_map":
        return d.flat_map(plain(FLATS[function]))
    if word == "interleave":
        return d.interleave(plain(FLATS[function]), cycle_length=n[0], block_length=n[1])
    if word == "repeat":
        return d.repeat(None if n[0] < 0 else n[0])
    if word == "shuffle":
        return d.shuffle(n[0], seed=3, reshuffle_each_iteration=not n[1])
    if word in ("batch", "padded_batch"):
        return getattr(d, word)(n[0], drop_remainder=bool(n[1]))
    if word == "enumerate":
        return d.enumerate(n[0]).map(plain(lambda i, x: (i, *x)))
    if word == "scan":
        return d.scan(np.int64(0), plain(lambda s, x: (s + key(x), (s + key(x),))))
    if word == "unique":
        return tupled(d.map(plain(lambda x: x)).unique())
    if word == "window":
        size, shift, stride, drop = n
        batched = (lambda *w: D.zip(tuple(c.batch(size) for c in w))) if function == "batch" else \
            (lambda *w: D.zip(tuple(w)))
        return d.window(size, shift, stride, bool(drop)).flat_map(plain(batched))
    if word == "group":
        return d.group_by_window(key_func=plain(lambda *x: mod(key(x), n[0])),
                                 reduce_func=plain(lambda _, w: w.batch(n[1])), window_size=n[1])
    if word == "bucket":
        return d.bucket_by_sequence_length(plain(lambda *x: tf.shape(x[0])[0]), [2, 3], n[:3],
                                           drop_remainder=bool(n[3]))
    return getattr(d, word)(*n)


def build(lines):
    stack = []
    for line in lines:
        words = line.split()
        function = words[1] if len(words) > 1 and words[1].isalpha() else None
        n = [int(w) for w in words[1:] if not w.isalpha() and w != function]
        if words[0] == "range":
            stack.append(tupled(D.range(*n)))
        elif words[0] == "slices":
            stack.append(slices(*n))
        elif words[0] == "generator":
            stack.append(generator(*n))
        elif words[0] == "sparse":
            stack.append(sparse(*n))
        elif words[0] == "random":
            stack.append(tupled(D.random(n[0])))
        elif words[0] == "tensors":
            stack.append(D.from_tensors((tf.constant(n[0], I64),)))
        elif words[0] == "sample":
            b, a = stack.pop(), stack.pop()
            stack.append(D.sample_from_datasets([a, b], stop_on_empty_dataset=False))
        elif words[0] == "zip":
            b, a = stack.pop(), stack.pop()
            stack.append(D.zip((a, b)).map(plain(lambda x, y: (*x, *y))))
        elif words[0] == "concatenate":
            b, a = stack.pop(), stack.pop()
            stack.append(a.concatenate(b))
        elif words[0] == "choose":
            choices, b, a = stack.pop(), stack.pop(), stack.pop()
            stack.append(D.choose_from_datasets([a, b], choices.map(plain(lambda x: x)), bool(n[0])))
        else:
            stack.append(stage(stack.pop(), words[0], function, n))
    return stack[0]


def text_of(element):
    return ";".join(" ".join(["[" + ",".join(str(n) for n in c.shape) + "]"] + [str(v) for v in c.reshape(-1)])
                    for c in element)


def theirs(lines):
    d = build(lines)
    options = tf.data.Options()
    # TensorFlow's fusion of shuffle and repeat into one stage rejects repeat(0), which is valid.
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = False
    options.threading.private_threadpool_size = 1
    results = [str(int(d.cardinality()))]
    try:
        for element in d.take(LIMIT).with_options(options).as_numpy_iterator():
            results.append(text_of(element))
    except (tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError, tf.errors.FailedPreconditionError):
        results.append("error")
    return results


def ours(threads):
    program = os.path.join(os.environ["MILLRACE_ORACLE"], "random_pipelines")
    out = subprocess.run([program, str(SEED), str(COUNT), str(LIMIT), str(threads)], check=True, capture_output=True,
                         text=True).stdout
    pipelines = []
    lines, results = [], []
    for line in out.splitlines():
        if line == "end":
            pipelines.append((lines, results))
            lines, results = [], []
        elif line.startswith("= "):
            results = [line[2:]]
        elif results:
            results.append(line)
        else:
            lines.append(line)
    return pipelines


def unordered(lines, results):
    """Results of a pipeline that shuffles: the elements in any order, per epoch if the last stage repeats them."""
    elements = results[1:]
    last = lines[-1].split()
    if last[0].endswith("batch"):
        # The shuffle determines which elements are in a batch.
        shapes = sorted(" ".join(c.split()[0] for c in e.split(";")) for e in elements)
        if last[0] == "padded_batch":
            shapes = [len(shapes)]
        numbers = sorted(v for e in elements for c in e.split(";") for v in c.split()[1:] if v != "0")
        return results[0], shapes, numbers
    epochs = int(last[1]) if last[0] == "repeat" else 1
    size = len(elements) // epochs if epochs else 0
    return results[0], [sorted(elements[i * size:(i + 1) * size]) for i in range(epochs)]


def cardinality_fits(lines, found, expected):
    """Whether millrace's cardinality agrees with TensorFlow's. It may be unknown if infinite data may turn out empty,
    and known where TensorFlow's is unknown. TensorFlow counts to the largest integer for enumerate instead of reporting
    infinite, and assumes that rejection_resample keeps all elements."""
    found_count, expected_count = int(found[0]), int(expected[0])
    if expected_count > 1 << 62:
        expected_count = -1
    if found_count == expected_count:
        return True
    if found_count == -2:
        return "resample" in lines or (expected_count == -1 and any(line.startswith("repeat -1") for line in lines))
    return expected_count == -2 and (found_count == -1 or found_count == len(found) - 1 or len(found) > LIMIT)


def main():
    passed = failed = 0
    again = ours(3)
    for i, (lines, found) in enumerate(ours(1)):
        found_all = found
        try:
            expected = theirs(lines)
        except Exception as e:  # noqa: BLE001: which pipeline it was has to be told
            expected = ["refused: " + str(e).splitlines()[0]]
        shuffled = any(line.startswith(("shuffle", "sample")) for line in lines)
        counts_fit = cardinality_fits(lines, found, expected) if expected[0].lstrip("-").isdigit() else False
        expected, found = ["", *expected[1:]] if counts_fit else expected, ["", *found[1:]] if counts_fit else found
        if shuffled and len(expected) > LIMIT:
            expected, found = expected[:1], found[:1]
        same = unordered(lines, found) == unordered(lines, expected) if shuffled else found == expected
        same = same and again[i] == (lines, found_all)
        passed += same
        failed += not same
        if not same:
            print("FAILED seed", SEED + i, "shuffled" if shuffled else "", lines)
            print("  ours  ", found)
            print("  theirs", expected)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
