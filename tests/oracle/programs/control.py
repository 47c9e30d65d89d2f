"""Conditions, loops, arrays, functions, in both forms of control flow."""
from tensorflow.python.framework import function as function_lib

from training import *


def line_inputs():
    x, y = tf.placeholder(tf.float32, [8, 4], name="x"), tf.placeholder(tf.float32, [8, 2], name="y")
    return x, y, lambda i: {x: floats(i, 8, 4), y: floats(i, 8, 2, salt=1)}


def v2(function, enabled):
    """Runs function with control flow of the given version."""
    (tf.enable_control_flow_v2 if enabled else tf.disable_control_flow_v2)()
    try:
        return function()
    finally:
        tf.disable_control_flow_v2()


def both(function):
    """Makes the program with both versions of control flow."""
    for version in (1, 2):
        def build(version=version):
            return v2(function, version == 2)

        build.__name__ = "%s_v%d" % (function.__name__, version)
        program(build)
    return function


@both
def conditions():
    """tf.cond with gradients through both branches, nested, and tf.case with a default."""
    x, y, feed = line_inputs()
    mode = tf.placeholder(tf.int32, [])
    w, v = tf.get_variable("w", [4, 2]), tf.get_variable("v", [4, 2])

    def nested():
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(x, w * v), lambda: tf.matmul(tf.sin(x), v))

    h = tf.cond(mode > 1, nested, lambda: tf.matmul(x, w))
    h = tf.case([(tf.equal(mode, 0), lambda: tf.tanh(h)), (tf.equal(mode, 1), lambda: h * h)],
                default=lambda: h + 1.0, exclusive=True)
    loss = tf.reduce_mean(tf.square(h - y))
    train = tf.train.MomentumOptimizer(0.05, 0.5).minimize(loss)
    return Training(([loss], [train]), feed=lambda i: {**feed(i), mode: i % 4})


@both
def assignments_in_conditions():
    x, y, feed = line_inputs()
    w = tf.get_variable("w", [4, 2], use_resource=True)
    best = tf.get_variable("best", [], initializer=tf.constant_initializer(1e9), trainable=False, use_resource=True)
    patience = tf.get_variable("patience", [], tf.int32, tf.zeros_initializer(), trainable=False, use_resource=True)
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))

    def better():
        with tf.control_dependencies([best.assign(loss), patience.assign(0)]):
            return tf.identity(loss)

    def worse():
        with tf.control_dependencies([patience.assign_add(1)]):
            return tf.identity(best.read_value())

    record = tf.cond(loss < best, better, worse)
    with tf.control_dependencies([record]):
        train = tf.train.GradientDescentOptimizer(0.3).minimize(loss)
    return Training(([loss, record], []), ([], [train]), feed=feed)


@both
def nested_loops():
    """A loop in a loop with gradients and a condition inside."""
    x, y, feed = line_inputs()
    w = tf.get_variable("w", [4, 4], initializer=tf.random_normal_initializer(stddev=0.3))
    n = tf.placeholder(tf.int32, [])

    def inner(j, h):
        return j + 1, tf.cond(tf.equal(j % 2, 0), lambda: tf.tanh(tf.matmul(h, w)), lambda: h * 0.9)

    def outer(i, h):
        _, h = tf.while_loop(lambda j, _: j <= i, inner, [0, h])
        return i + 1, h + x * 0.1

    _, h = tf.while_loop(lambda i, _: i < n, outer, [0, x])
    loss = tf.reduce_mean(tf.square(h[:, :2] - y))
    train = tf.train.AdamOptimizer(0.02, epsilon=1e-4).minimize(loss)
    return Training(([loss], [train]), feed=lambda i: {**feed(i), n: 1 + i % 4})


@both
def tensor_arrays():
    """Writes, reads, gathers, scatters, splits and concats of arrays in loops, with gradients."""
    x, y, feed = line_inputs()
    w = tf.get_variable("w", [4, 2])
    rows = tf.TensorArray(tf.float32, 8, clear_after_read=False).unstack(x)

    def body(i, out, total):
        row = rows.read(i)
        h = tf.squeeze(tf.matmul(row[None], w), 0)
        return i + 1, out.write(7 - i, h + total), total + tf.reduce_sum(h) * 0.01

    _, out, total = tf.while_loop(lambda i, *_: i < 8, body, [0, tf.TensorArray(tf.float32, 8), 0.0],
                                  parallel_iterations=4)
    h = tf.reverse(out.stack(), [0])
    parts = tf.TensorArray(tf.float32, 3, infer_shape=False).split(h, [2, 5, 1]).concat()
    picked = tf.TensorArray(tf.float32, 8).scatter([3, 0, 2, 1, 7, 6, 5, 4], tf.reshape(parts, [8, 2]))
    loss = tf.reduce_mean(tf.square(picked.gather([1, 3, 2, 0, 7, 6, 5, 4]) - y)) + total * 0.01
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return Training(([loss], [train]), feed=feed)


@both
def map_scan_fold():
    x, y, feed = line_inputs()
    w = tf.get_variable("w", [4, 2])
    mapped = tf.map_fn(lambda r: tf.tensordot(r, w, 1), x)
    scanned = tf.scan(lambda a, r: 0.5 * a + r, mapped, initializer=tf.zeros([2]))
    folded = tf.foldl(lambda a, r: a + tf.square(r), scanned, initializer=tf.zeros([2]))
    right = tf.foldr(lambda a, r: a * 0.9 + r, scanned)
    pair = tf.map_fn(lambda t: (t[0] + 1.0, tf.reduce_sum(t[1])), (mapped, x), dtype=(tf.float32, tf.float32))
    loss = tf.reduce_mean(tf.square(scanned - y)) + 0.01 * tf.reduce_sum(folded + right) / 8
    loss += 0.001 * tf.reduce_mean(tf.square(pair[0])) + 0 * tf.reduce_sum(pair[1])
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
    return Training(([loss], [train]), feed=feed)


@both
def loop_of_training_steps():
    """The optimizer inside of the loop's condition: several steps of a power iteration, with shape invariants."""
    x, y, feed = line_inputs()
    w = tf.get_variable("w", [4, 2])

    def grow(i, h):
        return i + 1, tf.concat([h, tf.reduce_mean(h, 0, keepdims=True) * 0.5], 0)

    _, h = tf.while_loop(lambda i, h: tf.shape(h)[0] < 12, grow, [0, tf.matmul(x, w)],
                         shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])])
    direction = tf.while_loop(
        lambda i, v: tf.logical_and(i < 20, tf.reduce_sum(v) > -1e9),
        lambda i, v: (i + 1, tf.nn.l2_normalize(tf.matmul(w, tf.matmul(w, v, transpose_a=True)), 0)),
        (0, tf.ones([4, 1])), back_prop=False, maximum_iterations=10)[1]
    loss = tf.reduce_mean(tf.square(h[:8] - y)) + 0.1 * tf.reduce_mean(tf.square(h[8:]))
    norm = tf.norm(tf.matmul(w, tf.stop_gradient(direction), transpose_a=True))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss + 0.01 * norm)
    return Training(([loss, norm], [train]), feed=feed)


@program
def defined_functions():
    """Defun with a gradient function, noinline, captured values, and a function called twice."""

    @function_lib.Defun(tf.float32, tf.float32, func_name="swish_gradient")
    def swish_gradient(x, dy):
        s = tf.sigmoid(x)
        return dy * (s + x * s * (1 - s))

    @function_lib.Defun(tf.float32, func_name="swish", grad_func=swish_gradient)
    def swish(x):
        return x * tf.sigmoid(x)

    @function_lib.Defun(tf.float32, tf.float32, noinline=True)
    def affine(x, w):
        return swish(tf.matmul(x, w)), tf.reduce_sum(w)

    x, y, feed = line_inputs()
    w, v = tf.get_variable("w", [4, 6]), tf.get_variable("v", [6, 2])
    h, a = affine(x, w)
    h.set_shape([8, 6])
    out, b = affine(h, v)
    loss = tf.reduce_mean(tf.square(out - y)) + 0.01 * (a + b)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return Training(([loss], [train]), feed=feed)


@program
def traced_functions():
    """tf.function in a graph: PartitionedCall and StatefulPartitionedCall with captured variables."""
    x, y, feed = line_inputs()
    w = tf.get_variable("w", [4, 2], use_resource=True)
    calls = tf.get_variable("calls", [], tf.int64, tf.zeros_initializer(), trainable=False, use_resource=True)

    @tf.function
    def layer(x, scale):
        calls.assign_add(1)
        for i in tf.range(3):
            x = x + tf.cast(i, tf.float32) * 0.1 if scale > 0 else x * 0.5
        return tf.matmul(x, w)

    loss = tf.reduce_mean(tf.square(layer(x, tf.constant(1.0)) - y))
    with tf.control_dependencies([loss]):
        other = layer(x * 2, tf.constant(-1.0))
    loss += 0.1 * tf.reduce_mean(other)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return Training(([loss], [train]), ([calls], []), feed=feed)


@program
def custom_gradients():
    """Straight-through estimator, gradient reversal, gradient_override_map, recompute_grad."""
    x, y, feed = line_inputs()
    w, v = tf.get_variable("w", [4, 6], use_resource=True), tf.get_variable("v", [6, 2], use_resource=True)

    @tf.custom_gradient
    def reverse(t):
        return tf.identity(t), lambda dy: -0.1 * dy

    @tf.custom_gradient
    def binarize(t):
        return tf.sign(t), lambda dy: tf.where(tf.abs(t) < 1, dy, tf.zeros_like(dy))

    h = binarize(tf.matmul(x, w))
    with tf.get_default_graph().gradient_override_map({"Round": "Identity"}):
        h = tf.round(h * 1.5)
    quantized = tf.quantization.fake_quant_with_min_max_args(tf.matmul(h, v), -3, 3)
    domain = tf.reduce_mean(tf.square(tf.layers.dense(reverse(h), 1)))
    loss = tf.reduce_mean(tf.square(quantized - y)) + domain
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
    return Training(([loss], [train]), feed=feed)


@program
def python_functions():
    """tf.py_func for numbers and strings, tf.Print and tf.Assert, a counter with state."""
    x, y, feed = line_inputs()
    w = tf.get_variable("w", [4, 2])

    def weights(labels):
        return (1 + np.abs(labels)).astype(np.float32), np.int64(labels.size)

    weight, count = tf.py_func(weights, [y], [tf.float32, tf.int64])
    weight.set_shape(y.shape)
    text = tf.py_func(lambda n: ("%d labels" % n).encode(), [count], tf.string, stateful=False)
    with tf.control_dependencies([tf.Assert(tf.reduce_all(weight >= 1), [weight, text])]):
        loss = tf.reduce_mean(weight * tf.square(tf.matmul(x, w) - y))
    loss = tf.check_numerics(loss, "loss is not finite")
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return Training(([loss, text], [train]), feed=feed)
