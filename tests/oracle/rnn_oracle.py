"""Recurrent cells and networks, compared with TensorFlow's (model_compare.py)."""
import sys

import model_compare
import tensorflow.compat.v1 as tf

TIME, FEATURES, UNITS = 7, 4, 5
N, C = tf.nn, tf.nn.rnn_cell


def sequences():
    return tf.placeholder(tf.float32, [None, TIME, FEATURES], name="x")


def lengths():
    return tf.constant([3, 7, 1, 0, 5, 6], name="lengths")


def with_states(outputs, states):
    total = tf.reduce_mean(tf.square(outputs))
    for state in tf.nest.flatten(states):
        total += tf.reduce_mean(tf.square(state))
    return total


def dynamic(cell):
    return with_states(*N.dynamic_rnn(cell, sequences(), dtype=tf.float32))


def dynamic_lengths(cell, time_major):
    x, own = sequences(), lengths()
    if time_major:
        x, own = tf.transpose(x, [1, 0, 2]), tf.cast(own, tf.int64)
    return with_states(*N.dynamic_rnn(cell, x, own, dtype=tf.float32, time_major=time_major, scope="own"))


def stack(is_long):
    cells = [C.BasicLSTMCell(UNITS, 0.0), C.GRUCell(UNITS)]
    if is_long:
        cells.append(C.ResidualWrapper(C.BasicLSTMCell(UNITS)))
    return dynamic(C.MultiRNNCell(cells))


def initial():
    x = sequences()
    dense = tf.layers.dense(x[:, 0], UNITS, tf.tanh)
    return with_states(*N.dynamic_rnn(C.LSTMCell(UNITS), x, initial_state=C.LSTMStateTuple(dense, dense)))


def twice():
    x = sequences()
    with tf.variable_scope("model"):
        one, states = N.dynamic_rnn(C.BasicLSTMCell(UNITS), x, dtype=tf.float32)
        two, _ = N.dynamic_rnn(C.BasicLSTMCell(3), one, dtype=tf.float32, scope="second")
    return with_states(two, states)


def of_steps(cell, has_lengths):
    steps = tf.unstack(sequences(), TIME, 1)
    outputs, states = N.static_rnn(cell, steps, dtype=tf.float32, sequence_length=lengths() if has_lengths else None)
    return with_states(tf.stack(outputs), states)


def both(has_lengths):
    outputs, states = N.bidirectional_dynamic_rnn(
        C.BasicLSTMCell(UNITS), C.GRUCell(UNITS), sequences(), lengths() if has_lengths else None, dtype=tf.float32)
    return with_states(tf.layers.dense(tf.concat(outputs, 2), 2), states)


def both_static(has_lengths):
    steps = tf.unstack(sequences(), TIME, 1)
    outputs, forward, backward = N.static_bidirectional_rnn(
        C.LSTMCell(UNITS), C.LSTMCell(3), steps, dtype=tf.float32, sequence_length=lengths() if has_lengths else None)
    return with_states(tf.stack(outputs), [forward, backward])


class NormLSTM(C.RNNCell):
    """LayerNormBasicLSTMCell of tf.contrib, from its formulas."""

    def __init__(self, shift):
        super().__init__(name="layer_norm_basic_lstm_cell")
        self.shift = shift

    state_size = property(lambda self: C.LSTMStateTuple(UNITS, UNITS))
    output_size = property(lambda self: UNITS)

    def norm(self, x, name):
        with tf.variable_scope(name):
            gamma = tf.get_variable("gamma", [UNITS], initializer=tf.ones_initializer())
            beta = tf.get_variable("beta", [UNITS], initializer=tf.constant_initializer(self.shift))
        mean, variance = tf.nn.moments(x, [1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-12)

    def call(self, x, state):
        c, h = state
        x = tf.concat([x, h], 1)
        kernel = tf.get_variable("kernel", [x.shape[-1], 4 * UNITS])
        parts = tf.split(x @ kernel, 4, 1)
        i, j, f, o = [self.norm(part, name) for part, name in zip(parts, ["input", "transform", "forget", "output"])]
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        c = self.norm(c, "state")
        h = tf.tanh(c) * tf.sigmoid(o)
        return h, C.LSTMStateTuple(c, h)


class Average(C.RNNCell):
    state_size = output_size = UNITS

    def call(self, x, state):
        value = x @ tf.get_variable("weights", [x.shape[-1], UNITS])
        state = 0.5 * (state + tf.tanh(value))
        return state * value, state


uniform = tf.random_uniform_initializer
relu = tf.nn.relu
CASES = {
    "basic": lambda: dynamic(C.BasicRNNCell(UNITS)),
    "basic_relu": lambda: dynamic(C.BasicRNNCell(UNITS, relu, name="own")),
    "gru": lambda: dynamic(C.GRUCell(UNITS)),
    "gru_initialized": lambda: dynamic(C.GRUCell(UNITS, kernel_initializer=uniform(-0.2, 0.2),
                                                 bias_initializer=tf.constant_initializer(0.3))),
    "basic_lstm": lambda: dynamic(C.BasicLSTMCell(UNITS)),
    "basic_lstm_options": lambda: dynamic(C.BasicLSTMCell(UNITS, 0.0, activation=relu)),
    "lstm": lambda: dynamic(C.LSTMCell(UNITS)),
    "lstm_peepholes": lambda: dynamic(C.LSTMCell(UNITS, use_peepholes=True, cell_clip=0.3)),
    "lstm_projection": lambda: dynamic(C.LSTMCell(UNITS, num_proj=3, proj_clip=0.05, use_peepholes=True,
                                                  initializer=uniform(-0.4, 0.4))),
    "layer_norm_lstm": lambda: dynamic(NormLSTM(0.1)),
    "stack": lambda: stack(False),
    "stack_residual": lambda: stack(True),
    "device": lambda: dynamic(C.DeviceWrapper(C.GRUCell(UNITS), "/cpu:0")),
    "dropout_1": lambda: dynamic(C.DropoutWrapper(C.GRUCell(UNITS), output_keep_prob=tf.constant(1.0))),
    "dropout_same": lambda: dynamic(C.DropoutWrapper(C.LSTMCell(UNITS), output_keep_prob=0.7,
                                                     variational_recurrent=True, dtype=tf.float32)),
    "residual_function": lambda: dynamic(C.ResidualWrapper(
        C.LSTMCell(UNITS), lambda x, y: tf.reduce_sum(x, 1, keepdims=True) + 0.5 * y)),
    "dropout_none": lambda: dynamic(C.DropoutWrapper(C.LSTMCell(UNITS), state_keep_prob=0.5,
                                                     dropout_state_filter_visitor=lambda state: False)),
    "dropout_c": lambda: dynamic(C.DropoutWrapper(
        C.LSTMCell(UNITS), state_keep_prob=0.5,
        dropout_state_filter_visitor=lambda state: C.LSTMStateTuple(True, False)
        if isinstance(state, C.LSTMStateTuple) else False)),
    "dropout": lambda: dynamic(C.DropoutWrapper(C.LSTMCell(UNITS), 0.5, 0.7, 0.9)),
    "lengths_lstm": lambda: dynamic_lengths(C.LSTMCell(UNITS), False),
    "lengths_gru_time": lambda: dynamic_lengths(C.GRUCell(UNITS), True),
    "initial_state": initial,
    "two_networks": twice,
    "static_lstm": lambda: of_steps(C.BasicLSTMCell(UNITS), False),
    "static_lengths": lambda: of_steps(C.GRUCell(UNITS), True),
    "bidirectional": lambda: both(False),
    "bidirectional_lengths": lambda: both(True),
    "bidirectional_static": lambda: both_static(False),
    "bidirectional_static_lengths": lambda: both_static(True),
    "custom": lambda: dynamic_lengths(Average(name="average_cell"), False),
}

if __name__ == "__main__":
    # Random numbers of dropout depend on the numbers of nodes: only the names are compared.
    sys.exit(model_compare.main("rnn_graphs", CASES, ["dropout", "dropout_same", "dropout_c"]))
