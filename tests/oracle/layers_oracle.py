"""Layers, variable scopes and embeddings, compared with TensorFlow's (model_compare.py)."""
import sys

import model_compare
import tensorflow.compat.v1 as tf

L = tf.layers


def l1(scale):
    def l1_regularizer(w):
        with tf.name_scope("l1_regularizer") as name:
            return tf.multiply(tf.constant(scale, name="scale"), tf.reduce_sum(tf.abs(w)), name=name)

    return l1_regularizer


def l2(scale):
    def l2_regularizer(w):
        with tf.name_scope("l2_regularizer") as name:
            return tf.multiply(tf.constant(scale, name="scale"), tf.nn.l2_loss(w), name=name)

    return l2_regularizer


def both(scale1, scale2):
    return lambda w: tf.add_n([l1(scale1)(w), l2(scale2)(w)], name="l1_l2_regularizer")


def x1():
    return tf.placeholder(tf.float32, [None, 5], name="x")


def x2():
    return tf.placeholder(tf.float32, [None, 9, 5], name="x")


def x3():
    return tf.placeholder(tf.float32, [None, 9, 8, 4], name="x")


def x4():
    return tf.placeholder(tf.float32, [None, 5, 6, 7, 2], name="x")


def flag():
    return tf.placeholder(tf.bool, [], name="training")


def reused():
    x = x1()
    y = L.dense(x, 5, name="shared", activation=tf.nn.tanh)
    return L.dense(y, 5, name="shared", reuse=True)


def scoped():
    x = x1()
    with tf.variable_scope("tower", regularizer=l2(0.01)):
        y = L.dense(x, 4)
        y = L.dense(y, 4)
    with tf.variable_scope("tower", reuse=tf.AUTO_REUSE) as again:
        y = L.dense(x, 4, name="dense", kernel_regularizer=l1(0.1))
    with tf.variable_scope(again):
        return L.dense(y, 2, name="last")


def table(parts, use_resource=False):
    partitioner = tf.fixed_size_partitioner(parts) if parts > 1 else None
    return tf.get_variable("table", [11, 3], partitioner=partitioner, use_resource=use_resource)


def looked_up(parts, resource, strategy, max_norm):
    params = table(parts, resource)
    tf.placeholder(tf.float32, [1], name="x")
    ids = tf.constant([0, 3, 10, 7, 3, 5, 9, 1], shape=[4, 2], name="ids")
    return tf.nn.embedding_lookup(params, ids, partition_strategy=strategy, max_norm=max_norm)


def looked_up_sparse(parts, combiner, weighted):
    params = table(parts)
    tf.placeholder(tf.float32, [1], name="x")
    indices = tf.constant([[0, 0], [0, 1], [1, 0], [1, 1], [3, 0], [3, 1]], tf.int64)
    ids = tf.SparseTensor(indices, tf.constant([4, 10, 4, 2, 8, 0]), [4, 2])
    weights = tf.SparseTensor(indices, tf.constant([1, 2, 0.5, 3, 1, 0.25]), [4, 2]) if weighted else None
    return tf.nn.embedding_lookup_sparse(params, ids, weights, partition_strategy="div", combiner=combiner)


def depthwise():
    x = x3()
    layer = tf.keras.layers.DepthwiseConv2D(3, 2, depth_multiplier=2, name="depthwise_conv2d")
    with tf.variable_scope("", use_resource=False):
        y = layer(x)
    for v in layer.trainable_weights:
        assert v in tf.trainable_variables()
    return y


def prelu(**options):
    x = L.conv2d(x3(), 3, 1)
    layer = tf.keras.layers.PReLU(**{"name": "p_re_lu", **options})
    with tf.variable_scope("", use_resource=False):
        y = layer(x)
    for loss in layer.losses:
        tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, loss)
    return y


def activated(function):
    return lambda: L.dense(L.dense(x1(), 4, activation=function), 2)


def limited(w):
    """A constraint: the norm of each column is at most 0.3."""
    return tf.clip_by_norm(w, 0.3, axes=[0])


def scope_limited(use_resource, parts):
    x, partitioner = x1(), tf.fixed_size_partitioner(parts) if parts > 1 else None
    with tf.variable_scope("limited", constraint=limited, use_resource=use_resource, partitioner=partitioner):
        return tf.matmul(x, tf.convert_to_tensor(tf.get_variable("w", [5, 3])))


def rectified():
    x, w, b = x1(), tf.get_variable("w", [5, 3]), tf.get_variable("b", [3])
    return tf.nn.relu_layer(x, w, b) - tf.nn.xw_plus_b(x, w, b)


relu = tf.nn.relu
norm = L.batch_normalization
CASES = {
    "dense": lambda: L.dense(x1(), 3, activation=relu),
    "dense_options": lambda: L.dense(x1(), 3, use_bias=False, kernel_regularizer=both(0.1, 0.2),
                                     activity_regularizer=l2(0.3), name="own"),
    "dense_frozen": lambda: L.dense(L.dense(x1(), 3, trainable=False), 2),
    "act_relu6": activated(tf.nn.relu6),
    "act_leaky_relu": activated(tf.nn.leaky_relu),
    "act_crelu": activated(tf.nn.crelu),
    "act_elu": activated(tf.nn.elu),
    "act_selu": activated(tf.nn.selu),
    "act_swish": activated(tf.nn.swish),
    "act_softplus": activated(tf.nn.softplus),
    "act_log_sigmoid": activated(tf.log_sigmoid),
    "relu_layer": rectified,
    "act_softsign": activated(tf.nn.softsign),
    "act_hard_sigmoid": activated(tf.keras.backend.hard_sigmoid),
    "act_softmax": activated(tf.nn.softmax),
    "act_log_softmax": activated(tf.nn.log_softmax),
    "prelu": prelu,
    "prelu_shared": lambda: prelu(shared_axes=[1, 2], alpha_initializer=tf.constant_initializer(0.25),
                                  alpha_regularizer=l2(0.1), name="own"),
    "dense_3": lambda: L.dense(x2(), 3, bias_regularizer=l1(0.1)),
    "dense_reused": reused,
    "scopes": scoped,
    "conv1d": lambda: L.conv1d(x2(), 3, 3, 2, "same"),
    "conv1d_dilated": lambda: L.conv1d(x2(), 3, 3, dilation_rate=2),
    "conv1d_first": lambda: L.conv1d(x2(), 3, 3, data_format="channels_first"),
    "conv2d": lambda: L.conv2d(x3(), 3, (3, 2), (2, 1), kernel_regularizer=l2(0.1), activation=relu),
    "conv2d_dilated": lambda: L.conv2d(x3(), 3, 3, dilation_rate=(2, 3), padding="same"),
    "conv2d_first": lambda: L.conv2d(x3(), 3, 3, data_format="channels_first"),
    "conv3d": lambda: L.conv3d(x4(), 3, 2, 2),
    "conv3d_dilated": lambda: L.conv3d(x4(), 2, 2, dilation_rate=(2, 1, 1)),
    "separable1d": lambda: L.separable_conv1d(x2(), 3, 3, 2, "same"),
    "separable2d": lambda: L.separable_conv2d(x3(), 3, 3, depth_multiplier=2, dilation_rate=2,
                                              pointwise_regularizer=l2(0.1)),
    "depthwise": depthwise,
    "transpose2d": lambda: L.conv2d_transpose(x3(), 3, 3, 2, "same"),
    "transpose2d_valid": lambda: L.conv2d_transpose(x3(), 3, (2, 3), (3, 2)),
    "transpose3d": lambda: L.conv3d_transpose(x4(), 2, 3, 2, "same"),
    "max1d": lambda: L.max_pooling1d(L.dense(x2(), 3), 2, 2),
    "average1d": lambda: L.average_pooling1d(L.dense(x2(), 3), 3, 2, "same"),
    "max2d": lambda: L.max_pooling2d(L.conv2d(x3(), 3, 1), (2, 3), (2, 1)),
    "max3d": lambda: L.max_pooling3d(L.conv3d(x4(), 3, 1), 2, 2),
    "average3d": lambda: L.average_pooling3d(L.conv3d(x4(), 3, 1), 2, 2),
    "global": lambda: tf.reduce_max(L.conv2d(x3(), 3, 1), [1, 2]),
    "norm_fused": lambda: relu(norm(x3(), training=True, momentum=0.9)),
    "norm_flag": lambda: relu(norm(x3(), training=flag(), momentum=0.9)),
    "norm_plain": lambda: relu(norm(x1(), training=True, momentum=0.9, gamma_regularizer=l2(0.1))),
    "norm_plain_flag": lambda: relu(norm(x1(), training=flag())),
    "norm_inference": lambda: relu(norm(x1())),
    "norm_axis": lambda: relu(norm(x3(), axis=1, fused=False, training=True, scale=False)),
    "norm_renorm": lambda: relu(norm(x1(), training=True, renorm=True,
                                     renorm_clipping={"rmin": 0.5, "rmax": 2.0, "dmax": 1.0})),
    "norm_virtual": lambda: relu(norm(x1(), training=True, virtual_batch_size=2, momentum=0.9)),
    "norm_virtual_flag": lambda: relu(norm(x1(), training=flag(), virtual_batch_size=3)),
    "norm_virtual_inference": lambda: relu(norm(x1(), virtual_batch_size=3)),
    "norm_virtual_image": lambda: relu(norm(x3(), training=True, virtual_batch_size=2, scale=False)),
    "norm_virtual_axis": lambda: relu(norm(x3(), training=True, axis=1, virtual_batch_size=3)),
    "norm_virtual_renorm": lambda: relu(norm(x1(), training=True, virtual_batch_size=3, renorm=True)),
    "dense_limited": lambda: L.dense(x1(), 3, kernel_constraint=limited, bias_constraint=relu),
    "conv_limited": lambda: L.conv2d(x3(), 3, 2, kernel_constraint=limited, bias_constraint=relu),
    "transpose_limited": lambda: L.conv2d_transpose(x3(), 3, 2, kernel_constraint=limited),
    "separable_limited": lambda: L.separable_conv2d(x3(), 3, 3, depthwise_constraint=limited,
                                                    pointwise_constraint=relu, bias_constraint=relu),
    "norm_limited": lambda: relu(norm(x1(), training=True, beta_constraint=relu, gamma_constraint=tf.tanh)),
    "prelu_limited": lambda: prelu(shared_axes=[1, 2], alpha_constraint=relu),
    "scope_limited": lambda: scope_limited(False, 1),
    "scope_limited_resource": lambda: scope_limited(True, 1),
    "scope_limited_parts": lambda: scope_limited(False, 2),
    "flatten_first": lambda: L.dense(L.flatten(x3(), name="flat", data_format="channels_first"), 2),
    "flatten": lambda: L.dense(L.flatten(x3()), 2),
    "dropout": lambda: L.dropout(L.dense(x1(), 30), 0.4, seed=7, training=True),
    "dropout_flag": lambda: L.dropout(L.dense(x1(), 3), 0.4, seed=7, noise_shape=[6, 1], training=flag()),
    "embedding": lambda: looked_up(1, False, "mod", None),
    "embedding_resource": lambda: looked_up(1, True, "mod", None),
    "embedding_mod": lambda: looked_up(2, False, "mod", None),
    "embedding_div": lambda: looked_up(3, False, "div", 0.5),
    "embedding_mean": lambda: looked_up_sparse(1, "mean", False),
    "embedding_sum": lambda: looked_up_sparse(2, "sum", True),
    "embedding_sqrtn": lambda: looked_up_sparse(3, "sqrtn", True),
}
# TensorFlow has no CPU kernels for convolutions with channels first: only names are compared.
NAMES_ONLY = ["conv1d_first", "conv2d_first"]


if __name__ == "__main__":
    sys.exit(model_compare.main("layers_graphs", CASES, NAMES_ONLY))
