"""Functions of a graph's library, and the conditionals and loops that call them, give TensorFlow's values."""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function

import millrace

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.enable_control_flow_v2()
tf1.enable_resource_variables()
tf1.logging.set_verbosity(tf1.logging.ERROR)
CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


def gradient(y, x):
    return tf.gradients(tf.reduce_sum(y), x)[0]


@case
def calls(x, n):
    @tf.function
    def affine(a, b):
        return a * b + 1.0, tf.reduce_sum(a)

    y, s = affine(x, x)
    z, _ = affine(y, s)
    return [y, s, z, gradient(z, x)]


@case
def nested_calls(x, n):
    @tf.function
    def inner(a):
        return tf.sin(a) * a

    @tf.function
    def outer(a):
        return inner(inner(a)) + inner(a + 1.0)

    y = outer(x)
    return [y, gradient(y, x)]


@case
def conditionals(x, n):
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: x - 1)
    z = tf.cond(n > 3, lambda: tf.cond(n > 4, lambda: y * y, lambda: y), lambda: -y)
    return [y, z, gradient(z, x)]


@case
def switches(x, n):
    y = tf.switch_case(n - 4, [lambda: x, lambda: x * 10.0, lambda: x * 100.0])
    z = tf.switch_case(n + 100, [lambda: x, lambda: x * 10.0], default=lambda: x * 3.0)
    return [y, z, gradient(y * z, x)]


@case
def loops(x, n):
    _, a = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * 1.5 + tf.cast(i, tf.float32)), [0, x])
    return [a, gradient(a, x)]


@case
def nested_loops(x, n):
    def row(i, a):
        _, b = tf.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, b * 0.5 + x), [0, a])
        return i + 1, b

    _, a = tf.while_loop(lambda i, a: i < n, row, [0, x])
    return [a, gradient(a, x)]


@case
def loops_with_lists(x, n):
    array = tf.TensorArray(tf.float32, 0, dynamic_size=True)
    _, array = tf.while_loop(
        lambda i, array: i < n, lambda i, array: (i + 1, array.write(i, x * tf.cast(i, tf.float32))), [0, array]
    )
    stacked = array.stack()
    return [stacked, gradient(stacked * stacked, x)]


@case
def maps_and_scans(x, n):
    y = tf.map_fn(lambda a: a * a + 1.0, x)
    z = tf.scan(lambda s, a: s * 0.5 + a, x)
    w = tf.foldl(lambda s, a: s + a * a, x)
    return [y, z, w, gradient(y, x), gradient(z, x), gradient(w, x)]


@case
def old_functions(x, n):
    @function.Defun(tf.float32, tf.float32)
    def pair(a, b):
        return tf.sin(a) * b, a + b

    p, q = pair(x, x + 1)
    return [p, q, gradient(p + q * q, x)]


@case
def old_functions_with_gradients(x, n):
    @function.Defun(tf.float32, tf.float32)
    def thrice_backwards(a, dy):
        return 3.0 * dy

    @function.Defun(tf.float32, grad_func=thrice_backwards)
    def identity(a):
        return tf.identity(a)

    y = identity(x) * x
    return [y, gradient(y, x)]


@case
def functions_in_functions_with_gradients(x, n):
    @function.Defun(tf.float32, tf.float32)
    def thrice_backwards(a, dy):
        return 3.0 * dy * a

    @function.Defun(tf.float32, grad_func=thrice_backwards)
    def square(a):
        return a * a

    @function.Defun(tf.float32, tf.float32)
    def pair(a, b):
        return square(a) * b, square(b)

    @function.Defun(tf.float32)
    def outer(a):
        p, q = pair(a, square(a))
        return p + square(q)

    y = outer(x)
    return [y, gradient(y, x)]


@case
def variables_in_functions(x, n):
    v = tf1.get_variable("v", initializer=3.0)

    @tf.function
    def update(k):
        v.assign_add(k)
        return v * 2.0

    first = update(2.5)
    with tf.control_dependencies([first]):
        return [first, update(1.0)]


@case
def assertions(x, n):
    @tf.function
    def checked(a):
        tf.debugging.assert_less(n, 100)
        return a + 1.0

    return [checked(x)]


@case
def types_by_attr(x, n):
    @tf.function
    def double(a):
        return a + a

    return [double(x), double(n), double(tf.cast(x, tf.float64)), double(tf.constant(["a"]))]


@case
def strings_in_loops(x, n):
    _, s = tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + tf.as_string(i)), [0, tf.constant("")])
    return [s]


@case
def shapes_that_grow(x, n):
    _, a = tf.while_loop(
        lambda i, a: i < n,
        lambda i, a: (i + 1, tf.concat([a, x[:1]], 0)),
        [0, x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )
    return [a, tf.shape(a)]


@case
def nothing_runs(x, n):
    _, a = tf.while_loop(lambda i, a: i < 0, lambda i, a: (i + 1, a * 2.0), [0, x])
    return [a, gradient(a, x)]


def check(make, x, n):
    graph = tf.Graph()
    with graph.as_default():
        tf1.set_random_seed(1)
        feeds = {
            tf1.placeholder(tf.float32, [None], name="x"): np.array(x, np.float32),
            tf1.placeholder(tf.int32, [], name="n"): np.int32(n),
        }
        fetches = make(*feeds)
        tf1.group(tf1.global_variables_initializer(), name="init")
    theirs = None
    with tf1.Session(graph=graph) as session:
        session.run("init")
        try:
            theirs = [session.run(fetches, feeds) for _ in range(2)]
        except tf.errors.OpError as error:
            expected = type(error).__name__
    with millrace.Session(graph.as_graph_def().SerializeToString()) as session:
        session.run("init")
        if theirs is None:
            try:
                session.run([f.name for f in fetches], {f.name: v for f, v in feeds.items()})
            except millrace.errors.OpError as error:
                assert type(error).__name__ == expected, f"{type(error).__name__}, TensorFlow's {expected}"
                return
            raise AssertionError(f"no error, TensorFlow's is {expected}")
        ours = [session.run([f.name for f in fetches], {f.name: v for f, v in feeds.items()}) for _ in range(2)]
    for left, right in zip(ours, theirs):
        for fetch, a, b in zip(fetches, left, right):
            a, b = np.asarray(a), np.asarray(b)
            assert a.shape == b.shape, f"{fetch.name} has shape {a.shape}, TensorFlow's {b.shape}"
            equal = np.allclose(a, b, rtol=1e-5, atol=1e-6) if b.dtype.kind == "f" else np.array_equal(a, b)
            assert equal, f"{fetch.name} is {a!r}, TensorFlow's {b!r}"


def main():
    passed = failed = 0
    for name, make in CASES.items():
        for x, n in [([1.0, -2.0, 3.5], 5), ([-1.0], 4), ([0.5, 0.25], 0)]:
            try:
                check(make, x, n)
                passed += 1
            except Exception as error:
                failed += 1
                print(f"{name} of {x}, {n}: {error}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
