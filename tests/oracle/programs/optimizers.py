"""A multilayer perceptron with an embedding, trained with every optimizer of tf.train, and ways to change gradients."""
from training import *

OPTIMIZERS = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.05, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adagrad_da": lambda: tf.train.AdagradDAOptimizer(
        0.1, tf.train.get_or_create_global_step(), l1_regularization_strength=1e-3, l2_regularization_strength=1e-2),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.5, rho=0.9, epsilon=1e-4),
    "adam": lambda: tf.train.AdamOptimizer(0.01, epsilon=1e-5),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.5, epsilon=1e-4),
    "rmsprop_centered": lambda: tf.train.RMSPropOptimizer(0.01, centered=True, epsilon=1e-3),
    "ftrl": lambda: tf.train.FtrlOptimizer(
        0.2, l1_regularization_strength=1e-3, l2_regularization_strength=1e-3),
    "ftrl_shrinkage": lambda: tf.train.FtrlOptimizer(0.2, l2_shrinkage_regularization_strength=1e-2),
    "proximal_descent": lambda: tf.train.ProximalGradientDescentOptimizer(
        0.1, l1_regularization_strength=1e-3, l2_regularization_strength=1e-3),
    "proximal_adagrad": lambda: tf.train.ProximalAdagradOptimizer(
        0.1, l1_regularization_strength=1e-3, l2_regularization_strength=1e-3),
}


def perceptron(use_resource, dtype=tf.float32):
    """(loss, accuracy, feed) of a classifier of 8 numbers and a word."""
    x = tf.placeholder(dtype, [None, 8], name="x")
    word = tf.placeholder(tf.int32, [None], name="word")
    y = tf.placeholder(tf.int32, [None], name="y")
    with tf.variable_scope("model", use_resource=use_resource,
                           initializer=tf.glorot_uniform_initializer(dtype=dtype)):
        table = tf.get_variable("embedding", [11, 4], dtype)
        h = tf.concat([x, tf.nn.embedding_lookup(table, word)], axis=1)
        for i, units in enumerate([16, 16]):
            with tf.variable_scope("layer%d" % i):
                w = tf.get_variable("w", [h.shape[1], units], dtype)
                b = tf.get_variable("b", [units], dtype, initializer=tf.constant_initializer(0.1, dtype=dtype))
                h = tf.nn.relu(tf.nn.xw_plus_b(h, w, b))
        w = tf.get_variable("softmax_w", [16, 3], dtype)
        b = tf.get_variable("softmax_b", [3], dtype, initializer=tf.zeros_initializer())
        logits = tf.matmul(h, w) + b
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    correct = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), y)
    accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))

    def feed(step):
        points, labels = blobs(step, 16, 8, 3)
        return {x: points, y: labels, word: ints(step, 11, 16)}

    return loss, accuracy, feed


def with_optimizer(name, use_resource):
    loss, accuracy, feed = perceptron(use_resource)
    step = tf.train.get_or_create_global_step()
    train = OPTIMIZERS[name]().minimize(loss, global_step=step)
    return Training(([loss, accuracy], [train]), feed=feed)


@each(optimizer=OPTIMIZERS)
def mlp(optimizer):
    return with_optimizer(optimizer, use_resource=False)


@each(optimizer=OPTIMIZERS)
def resource_mlp(optimizer):
    return with_optimizer(optimizer, use_resource=True)


@program
def double_precision():
    loss, _, feed = perceptron(False, tf.float64)
    return Training(([loss], [tf.train.AdamOptimizer().minimize(loss)]), feed=feed)


@program
def half_precision_with_loss_scale():
    """Half precision copies of float variables, as mixed precision was written by hand."""

    def getter(getter, name, shape=None, dtype=None, *args, **kwargs):
        variable = getter(name, shape, tf.float32, *args, **kwargs)
        return tf.cast(variable, tf.float16, name=name + "/half")

    x, y = tf.placeholder(tf.float32, [16, 8]), tf.placeholder(tf.int32, [16])
    with tf.variable_scope("half", custom_getter=getter, initializer=tf.glorot_uniform_initializer()):
        h = tf.cast(x, tf.float16)
        h = tf.nn.relu(tf.matmul(h, tf.get_variable("w0", [8, 16])))
        logits = tf.cast(tf.matmul(h, tf.get_variable("w1", [16, 3])), tf.float32)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    variables = tf.trainable_variables()
    gradients = [g / 128 for g in tf.gradients(loss * 128, variables)]
    train = tf.train.MomentumOptimizer(0.05, 0.9).apply_gradients(zip(gradients, variables))
    return Training(([loss], [train]), feed=lambda i: dict(zip([x, y], blobs(i, 16, 8, 3))), tolerance=1e-2)


@each(kind=["value", "norm", "average_norm", "global_norm"])
def clipping_by(kind):
    loss, accuracy, feed = perceptron(False)
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    pairs = optimizer.compute_gradients(loss)
    if kind == "global_norm":
        gradients, norm = tf.clip_by_global_norm([g for g, _ in pairs], 0.5)
    else:
        clip = {
            "value": lambda g: tf.clip_by_value(g, -0.01, 0.01),
            "norm": lambda g: tf.clip_by_norm(g, 0.1),
            "average_norm": lambda g: tf.clip_by_average_norm(tf.convert_to_tensor(g), 0.01),
        }[kind]
        gradients = [clip(g) for g, _ in pairs]
        norm = tf.global_norm(gradients)
    train = optimizer.apply_gradients([(g, v) for g, (_, v) in zip(gradients, pairs)])
    return Training(([loss, accuracy, norm], [train]), feed=feed)


DECAYS = {
    "exponential": lambda s: tf.train.exponential_decay(0.2, s, 5, 0.7, staircase=True),
    "piecewise_constant": lambda s: tf.train.piecewise_constant(s, [5, 12], [0.2, 0.1, 0.05]),
    "polynomial": lambda s: tf.train.polynomial_decay(0.2, s, 8, 0.01, power=2.0, cycle=True),
    "natural_exp": lambda s: tf.train.natural_exp_decay(0.2, s, 4, 0.3),
    "inverse_time": lambda s: tf.train.inverse_time_decay(0.2, s, 4, 0.5),
    "cosine": lambda s: tf.train.cosine_decay(0.2, s, 20),
    "cosine_restarts": lambda s: tf.train.cosine_decay_restarts(0.2, s, 6),
    "linear_cosine": lambda s: tf.train.linear_cosine_decay(0.2, s, 20),
    "noisy_linear_cosine": lambda s: tf.train.noisy_linear_cosine_decay(0.2, s, 20),
    "noam": lambda s: 0.3 * tf.minimum((tf.cast(s, tf.float32) + 1) ** -0.5, (tf.cast(s, tf.float32) + 1) * 0.05),
}


@each(kind=DECAYS)
def learning_rate(kind):
    loss, _, feed = perceptron(False)
    step = tf.train.get_or_create_global_step()
    rate = DECAYS[kind](step)
    train = tf.train.MomentumOptimizer(rate, 0.5).minimize(loss, step)
    return Training(([loss, rate], [train]), feed=feed)


@program
def moving_average_of_weights():
    """Trains, and evaluates with the averaged weights, whose saver has the names of the averages."""
    loss, accuracy, feed = perceptron(False)
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    averages = tf.train.ExponentialMovingAverage(0.9, step)
    with tf.control_dependencies([train]):
        maintain = averages.apply(tf.trainable_variables() + [loss])
    shadows = [averages.average(v) for v in tf.trainable_variables()]
    use = tf.group(*[tf.assign(v, averages.average(v)) for v in tf.trainable_variables()])
    restore = tf.train.Saver(averages.variables_to_restore(), name="restore_averages")
    assert restore
    step = ([loss, averages.average(loss)], [maintain])
    return Training(step, ([shadows], []), ([], [use]), ([accuracy], []), feed=feed)


@each(use_resource=[False, True])
def averaged_tower_gradients(use_resource):
    """Two towers that share variables, with averaged gradients, as multi-GPU programs had them."""
    optimizer = tf.train.AdamOptimizer(0.01, epsilon=1e-5)
    x, y = tf.placeholder(tf.float32, [16, 8]), tf.placeholder(tf.int32, [16])
    tower_gradients, losses = [], []
    with tf.variable_scope(tf.get_variable_scope(), use_resource=use_resource):
        for i, (part_x, part_y) in enumerate(zip(tf.split(x, 2), tf.split(y, 2))):
            with tf.device("/cpu:0"), tf.name_scope("tower_%d" % i) as scope:
                h = tf.layers.dense(part_x, 16, tf.nn.tanh, name="hidden",
                                    kernel_regularizer=lambda w: 1e-3 * tf.nn.l2_loss(w))
                logits = tf.layers.dense(h, 3, name="logits")
                tf.add_to_collection("losses", tf.reduce_mean(
                    tf.nn.sparse_softmax_cross_entropy_with_logits(labels=part_y, logits=logits)))
                total = tf.add_n(tf.get_collection("losses", scope)
                                 + tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
                losses.append(total)
                tf.get_variable_scope().reuse_variables()
                tower_gradients.append(optimizer.compute_gradients(total))
    averaged = []
    for pairs in zip(*tower_gradients):
        gradient = tf.reduce_mean(tf.concat([tf.expand_dims(g, 0) for g, _ in pairs], 0), 0)
        averaged.append((gradient, pairs[0][1]))
    with tf.variable_scope(tf.get_variable_scope(), reuse=False):
        train = optimizer.apply_gradients(averaged)
    return Training((losses, [train]), feed=lambda i: dict(zip([x, y], blobs(i, 16, 8, 3))))


@program
def gradient_accumulation():
    """Gradients of four batches are summed in variables that are not trained, then applied."""
    loss, _, feed = perceptron(False)
    optimizer = tf.train.AdamOptimizer(0.01, epsilon=1e-5)
    variables = tf.trainable_variables()
    sums = [tf.Variable(tf.zeros_like(v.initialized_value()), trainable=False) for v in variables]
    zero = tf.group(*[s.assign(tf.zeros_like(s)) for s in sums])
    gradients = [tf.convert_to_tensor(g) for g in tf.gradients(loss, variables)]
    accumulate = tf.group(*[s.assign_add(g / 4) for s, g in zip(sums, gradients)])
    with tf.control_dependencies([tf.identity(s) for s in sums]):
        apply = optimizer.apply_gradients(zip(sums, variables))
    return Training(([], [zero]), ([loss], [accumulate]), ([loss], [accumulate]), ([], [apply]), feed=feed)


@program
def accumulators():
    """tf.ConditionalAccumulator and its sparse form, as synchronous training used them."""
    table = tf.get_variable("table", [7, 3])
    w = tf.get_variable("w", [3, 2])
    words, y = tf.placeholder(tf.int32, [6]), tf.placeholder(tf.float32, [6, 2])
    loss = tf.losses.mean_squared_error(y, tf.matmul(tf.gather(table, words), w))
    sparse, dense = tf.gradients(loss, [table, w])
    step = tf.train.get_or_create_global_step()
    a = tf.ConditionalAccumulator(tf.float32, shape=[3, 2])
    b = tf.SparseConditionalAccumulator(tf.float32, shape=[None, 3])
    push = tf.group(a.apply_grad(dense, local_step=step), b.apply_indexed_slices_grad(sparse, local_step=step))
    optimizer = tf.train.GradientDescentOptimizer(0.3)
    gradients = [(b.take_indexed_slices_grad(2), table), (a.take_grad(2), w)]
    train = optimizer.apply_gradients(gradients, global_step=step)
    advance = tf.group(a.set_global_step(step), b.set_global_step(step))
    return Training(([loss], [push]), ([a.num_accumulated()], []), ([loss], [push]), ([], [train]), ([], [advance]),
                    feed=lambda i: {words: ints(i, 7, 6), y: floats(i, 6, 2)})
