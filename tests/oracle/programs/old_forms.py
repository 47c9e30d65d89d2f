"""Operators of TensorFlow 1 that its Python functions no longer write: old forms, and those of old tools."""
from training import *
from tensorflow.python.ops import gen_control_flow_ops

raw = tf.raw_ops


@program
def selected_references():
    which = tf.placeholder(tf.int32, [])
    with tf.variable_scope("v", use_resource=False):
        a, b = (tf.get_variable(name, [3]) for name in "ab")
    chosen = gen_control_flow_ops.ref_select(which, [a._ref(), b._ref()])
    added = tf.assign_add(chosen, [1.0, 2.0, 3.0])
    return Training(([added], []), ([a, b], []), feed=lambda i: {which: i % 2}, steps=5)


@program
def random_numbers_of_variables():
    """Stateful generators: the state is a variable."""
    state = tf.get_variable("state", [3], tf.int64, tf.constant_initializer([5, 2**40, -77]), use_resource=True)
    key, shape = dict(resource=state.handle, algorithm=1), [3, 5]
    makers = [lambda: raw.StatefulUniform(shape=shape, **key),
              lambda: raw.StatefulUniform(shape=shape, dtype=tf.half, **key),
              lambda: raw.StatefulStandardNormalV2(shape=shape, **key),
              lambda: raw.StatefulStandardNormalV2(shape=shape, dtype=tf.float64, **key),
              lambda: raw.StatefulTruncatedNormal(shape=[50], **key),
              lambda: raw.StatefulUniformFullInt(shape=shape, dtype=tf.int64, **key),
              lambda: raw.StatefulUniformFullInt(shape=shape, dtype=tf.int32, **key),
              lambda: raw.StatefulUniformInt(shape=[40], minval=tf.constant(-3, tf.int64),
                                             maxval=tf.constant(2**40, tf.int64), **key),
              lambda: raw.StatefulUniformInt(shape=[40], minval=-3, maxval=9, **key),
              lambda: raw.StatefulRandomBinomial(shape=[20, 3], counts=[4.0, 30.0, 900.0], probs=[0.5, 0.2, 0.9],
                                                 dtype=tf.int64, **key)]
    drawn = []
    for make in makers:
        with tf.control_dependencies(drawn[-1:]):
            drawn.append(make())
    return Training((drawn, []), ([state.read_value()], []), steps=4)


@program
def quantized_network():
    """A convolution, a bias, an activation and pooling as the graph transforms wrote them."""
    x = tf.placeholder(tf.float32, [2, 9, 9, 3])
    w = tf.get_variable("w", [3, 3, 3, 8])
    b = tf.get_variable("b", [8])
    a, low, high = raw.QuantizeV2(input=x, min_range=tf.reduce_min(x), max_range=tf.reduce_max(x), T=tf.quint8,
                                  mode="MIN_FIRST")
    f, f_low, f_high = raw.QuantizeV2(input=w, min_range=tf.reduce_min(w), max_range=tf.reduce_max(w), T=tf.quint8,
                                      mode="MIN_FIRST")
    c, low, high = raw.QuantizedConv2D(input=a, filter=f, min_input=low, max_input=high, min_filter=f_low,
                                       max_filter=f_high, strides=[1, 1, 1, 1], padding="SAME")
    least, most = raw.RequantizationRange(input=c, input_min=low, input_max=high)
    c, low, high = raw.Requantize(input=c, input_min=low, input_max=high, requested_output_min=least,
                                  requested_output_max=most, out_type=tf.quint8)
    q, q_low, q_high = raw.QuantizeV2(input=b, min_range=tf.reduce_min(b), max_range=tf.reduce_max(b), T=tf.quint8,
                                      mode="MIN_FIRST")
    c, low, high = raw.QuantizedBiasAdd(input=c, bias=q, min_input=low, max_input=high, min_bias=q_low, max_bias=q_high,
                                        out_type=tf.qint32)
    c, low, high = raw.QuantizeDownAndShrinkRange(input=c, input_min=low, input_max=high, out_type=tf.quint8)
    c, low, high = raw.QuantizedRelu(features=c, min_features=low, max_features=high)
    c, low, high = raw.QuantizedMaxPool(input=c, min_input=low, max_input=high, ksize=[1, 2, 2, 1],
                                        strides=[1, 2, 2, 1], padding="VALID")
    out = raw.Dequantize(input=c, min_range=low, max_range=high, mode="MIN_FIRST")
    return Training(([out, low, high], []), ([], [w.assign(w * 0.9), b.assign(b + 0.1)]),
                    feed=lambda i: {x: floats(i, 2, 9, 9, 3)}, steps=5)
