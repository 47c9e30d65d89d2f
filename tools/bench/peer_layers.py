"""Layers of the graphs that peer_run.py exports, as tf.layers and tf.nn.rnn_cell built them; newer versions of
TensorFlow lack those."""
import tensorflow.compat.v1 as tf


def weights(name, shape, initializer=None):
    return tf.get_variable(name, shape, initializer=initializer or tf.glorot_uniform_initializer())


def dense(x, units, activation=lambda y: y):
    """tf.layers.dense."""
    with tf.variable_scope(None, "dense"):
        kernel, bias = weights("kernel", [x.shape[-1], units]), weights("bias", [units], tf.zeros_initializer())
    return activation(tf.nn.bias_add(x @ kernel, bias))


def lstm_cell(x, c, h, name):
    """BasicLSTMCell."""
    units = h.shape[-1]
    with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
        kernel = weights("kernel", [x.shape[-1] + units, 4 * units])
        bias = weights("bias", [4 * units], tf.zeros_initializer())
    gates = tf.nn.bias_add(tf.concat([x, h], 1) @ kernel, bias)
    i, j, f, o = tf.split(gates, 4, 1)
    c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
    return c, tf.tanh(c) * tf.sigmoid(o)


class Cells:
    """Layers of LSTM cells for dynamic_rnn."""

    def __init__(self, units, layers):
        self.state_size, self.output_size = [[units, units]] * layers, units

    def zero_state(self, batch, dtype):
        return [[tf.zeros([batch, units], dtype) for units in layer] for layer in self.state_size]

    def __call__(self, x, state, scope=None):
        states = []
        for layer, (c, h) in enumerate(state):
            c, x = lstm_cell(x, c, h, f"cell_{layer}")
            states.append([c, x])
        return x, states


def conv(x, filters, size, stride=1, use_bias=True, activation=lambda y: y):
    """tf.layers.conv2d with padding SAME."""
    with tf.variable_scope(None, "conv2d"):
        kernel = weights("kernel", [size, size, x.shape[-1], filters])
        y = tf.nn.conv2d(x, kernel, [1, stride, stride, 1], "SAME")
        if use_bias:
            y = tf.nn.bias_add(y, weights("bias", [filters], tf.zeros_initializer()))
    return activation(y)


def conv_transpose(x, filters, size, stride, use_bias=True):
    """tf.layers.conv2d_transpose with padding SAME."""
    batch, height, width, channels = x.shape.as_list()
    with tf.variable_scope(None, "conv2d_transpose"):
        kernel = weights("kernel", [size, size, filters, channels])
        y = tf.nn.conv2d_transpose(x, kernel, [batch, height * stride, width * stride, filters], [1, stride, stride, 1])
        return tf.nn.bias_add(y, weights("bias", [filters], tf.zeros_initializer())) if use_bias else y


def max_pool(x, size=2, stride=2):
    return tf.nn.max_pool2d(x, size, stride, "SAME")


def batch_norm(x):
    """tf.layers.batch_normalization in training: the updates of the moving averages are in UPDATE_OPS."""
    with tf.variable_scope(None, "batch_normalization"):
        shape = [x.shape[-1]]
        gamma, beta = weights("gamma", shape, tf.ones_initializer()), weights("beta", shape, tf.zeros_initializer())
        y, mean, variance = tf.nn.fused_batch_norm(x, gamma, beta, epsilon=1e-3)
        for name, value in [("moving_mean", mean), ("moving_variance", variance)]:
            moving = tf.get_variable(name, shape, initializer=tf.zeros_initializer(), trainable=False)
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_sub(moving, (moving - value) * 0.01))
    return y


def layer_norm(x):
    with tf.variable_scope(None, "layer_norm"):
        shape = [x.shape[-1]]
        scale, offset = weights("scale", shape, tf.ones_initializer()), weights("offset", shape, tf.zeros_initializer())
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.rsqrt(variance + 1e-6) * scale + offset


def classes(logits, labels):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def minimize(optimizer, loss, variables=None):
    """After the updates of batch normalization, as in tf.contrib.training."""
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return optimizer.minimize(loss, var_list=variables)
