"""Architectures of papers: capsules, memories, flows, mixtures, graphs, adversaries of images."""
from training import *


def dense(x, units, activation=None, **more):
    return tf.layers.dense(x, units, activation, **more)


@program
def capsules():
    """Routing by agreement between capsules, margin loss, reconstruction."""
    x, y = tf.placeholder(tf.float32, [None, 12, 12, 1]), tf.placeholder(tf.int32, [None])

    def squash(v, axis=-1):
        square = tf.reduce_sum(tf.square(v), axis, keepdims=True)
        return square / (1 + square) * v / tf.sqrt(square + 1e-7)
    h = tf.layers.conv2d(x, 8, 5, 2, activation=tf.nn.relu)
    u = squash(tf.reshape(tf.layers.conv2d(h, 16, 3), [-1, 16, 4]))
    w = tf.get_variable("w", [1, 16, 4, 6, 4], initializer=tf.truncated_normal_initializer(stddev=0.3, seed=1))
    tiled = tf.tile(w, [tf.shape(x)[0], 1, 1, 1, 1])
    votes = tf.squeeze(tf.matmul(tiled, tf.tile(u[:, :, None, :, None], [1, 1, 4, 1, 1])), -1)
    b = tf.zeros([tf.shape(x)[0], 16, 4])
    fixed = tf.stop_gradient(votes)
    for k in range(3):
        c = tf.nn.softmax(b, axis=2)
        v = squash(tf.reduce_sum(c[..., None] * (votes if k == 2 else fixed), 1))
        if k < 2:
            b += tf.reduce_sum(fixed * v[:, None], -1)
    length = tf.norm(v + 1e-9, axis=-1)
    t = tf.one_hot(y, 4)
    loss = tf.reduce_sum(t * tf.maximum(0.0, 0.9 - length) ** 2 + 0.5 * (1 - t) * tf.maximum(0.0, length - 0.1) ** 2, 1)
    decoded = dense(tf.reshape(v * t[..., None], [-1, 24]), 144, tf.sigmoid)
    loss = tf.reduce_mean(loss) + 5e-4 * tf.reduce_sum(tf.square(decoded - tf.layers.flatten(x)))
    train = tf.train.AdamOptimizer(1e-3, epsilon=1e-4).minimize(loss)
    return Training(([loss, length], [train]), feed=lambda i: dict(zip((x, y), images(i, 4))))


@program
def memory_network():
    story, query = tf.placeholder(tf.int32, [None, 6, 5]), tf.placeholder(tf.int32, [None, 5])
    answer = tf.placeholder(tf.int32, [None])
    a, b, c = (tf.get_variable(k, [20, 8], initializer=tf.random_normal_initializer(stddev=0.2, seed=i))
               for i, k in enumerate("abc"))
    position = tf.constant(np.outer(np.linspace(0.5, 1, 5), np.linspace(1, 0.2, 8)).astype(np.float32))
    nil = tf.concat([tf.zeros([1, 1]), tf.ones([19, 1])], 0)
    lookup = lambda t, i: tf.reduce_sum(tf.nn.embedding_lookup(t * nil, i) * position, -2)
    u = lookup(b, query)
    for _ in range(3):
        p = tf.nn.softmax(tf.squeeze(tf.matmul(lookup(a, story), u[..., None]), -1))
        o = tf.reduce_sum(lookup(c, story) * p[..., None], 1)
        u = tf.nn.relu(dense(u, 8, use_bias=False, name="h", reuse=tf.AUTO_REUSE) + o)
    logits = tf.matmul(u, c, transpose_b=True)
    loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=answer, logits=logits))
    optimizer = tf.train.AdamOptimizer(0.01, epsilon=1e-3)
    pairs = optimizer.compute_gradients(loss)
    noisy = []
    for g, v in pairs:
        g = tf.clip_by_norm(tf.convert_to_tensor(g), 40.0)
        noisy.append((g + 1e-3 * tf.random_normal(tf.shape(g), seed=4), v))
    train = optimizer.apply_gradients(noisy)
    return Training(([loss, p], [train]), feed=lambda i: {story: ints(i, 20, 4, 6, 5), query: ints(i, 20, 4, 5, salt=1),
                                                          answer: ints(i, 20, 4, salt=2)})


@program
def mixture_density():
    x, y = tf.placeholder(tf.float32, [None, 1]), tf.placeholder(tf.float32, [None, 1])
    h = dense(x, 12, tf.tanh, kernel_initializer=tf.initializers.lecun_normal(seed=1))
    pi, mu, sigma = tf.split(dense(h, 15), 3, axis=1)
    sigma = tf.exp(tf.clip_by_value(sigma, -3.0, 3.0))
    log = -0.5 * tf.square((y - mu) / sigma) - tf.log(sigma) - 0.919
    loss = -tf.reduce_mean(tf.reduce_logsumexp(log + tf.nn.log_softmax(pi), 1))
    pick = tf.random.categorical(pi, 1, seed=5)
    sample = tf.gather(mu, pick[:, 0], batch_dims=1, axis=1) + tf.random_normal([tf.shape(x)[0]], seed=6)
    train = tf.train.AdamOptimizer(0.01, epsilon=1e-4).minimize(loss)

    def feed(i):
        t = floats(i, 16, 1)
        return {y: t, x: t + 0.3 * np.sin(7 * t)}
    return Training(([loss, pick, sample], [train]), feed=feed)


@program
def graph_convolution():
    """Sparse adjacency, normalized in the graph; sparse features with dropout; masked loss."""
    rows = np.array([(i, (i * k + 1) % 12) for i in range(12) for k in (1, 3)], np.int64)
    rows = np.unique(np.concatenate([rows, rows[:, ::-1], np.stack([np.arange(12)] * 2, 1)]), axis=0)
    adjacency = tf.SparseTensor(rows, tf.ones([len(rows)]), [12, 12])
    degree = tf.sparse.reduce_sum(adjacency, 1)
    scale = tf.math.rsqrt(degree)
    adjacency = tf.SparseTensor(rows, adjacency.values * tf.gather(scale, rows[:, 0]) * tf.gather(scale, rows[:, 1]),
                                [12, 12])
    features = tf.sparse.placeholder(tf.float32, [12, 7])
    y, mask = tf.placeholder(tf.int32, [12]), tf.placeholder(tf.bool, [12])
    keep = tf.floor(0.8 + tf.random_uniform([tf.shape(features.values)[0]], seed=2))
    dropped = tf.sparse.retain(features, tf.cast(keep, tf.bool)) * (1 / 0.8)
    w = [tf.get_variable(f"w{i}", s, initializer=tf.glorot_uniform_initializer(seed=i))
         for i, s in enumerate(([7, 8], [8, 3]))]
    h = tf.nn.relu(tf.sparse.sparse_dense_matmul(adjacency, tf.sparse.sparse_dense_matmul(dropped, w[0])))
    # attention over the edges, as in graph attention networks
    left, right = dense(h, 1), dense(h, 1)
    score = tf.nn.leaky_relu(tf.gather(left, rows[:, 0]) + tf.gather(right, rows[:, 1]))[:, 0]
    attention = tf.sparse.softmax(tf.SparseTensor(rows, score, [12, 12]))
    logits = tf.sparse.sparse_dense_matmul(attention, tf.matmul(h, w[1]))
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = tf.reduce_mean(tf.boolean_mask(loss, mask)) + 5e-4 * tf.nn.l2_loss(w[0])
    loss += 0.01 * tf.reduce_mean(tf.math.unsorted_segment_max(score, rows[:, 0], 12))
    train = tf.train.AdamOptimizer(0.02, epsilon=1e-4).minimize(loss)

    def feed(i):
        dense_ = floats(i, 12, 7) * (rng(i, 3).uniform(size=(12, 7)) < 0.4)
        where = np.argwhere(dense_)
        return {features: tf.SparseTensorValue(where, dense_[tuple(where.T)], [12, 7]),
                y: ints(i, 3, 12), mask: ints(i, 2, 12).astype(bool)}
    return Training(([loss, attention.values], [train]), feed=feed)


@program
def deep_convolutional_gan():
    """Second-order gradients of convolutions, of their transposes and of batch statistics."""
    z, real = tf.placeholder(tf.float32, [4, 6]), tf.placeholder(tf.float32, [4, 8, 8, 1])
    tf.get_variable_scope().set_use_resource(True)
    with tf.variable_scope("g"):
        h = tf.reshape(dense(z, 2 * 2 * 8), [-1, 2, 2, 8])
        h = tf.nn.relu(tf.layers.batch_normalization(h, training=True))
        h = tf.nn.relu(tf.layers.conv2d_transpose(h, 6, 4, 2, "same"))
        fake = tf.tanh(tf.layers.conv2d_transpose(h, 1, 4, 2, "same"))

    def d(x):
        with tf.variable_scope("d", reuse=tf.AUTO_REUSE):
            x = tf.nn.elu(tf.layers.conv2d(x, 6, 4, 2, "same", name="a"))
            x = tf.nn.softplus(tf.layers.conv2d(x, 6, 3, padding="valid", name="b", data_format="channels_last"))
            x = tf.nn.avg_pool2d(x, 2, 1, "SAME") + tf.nn.max_pool2d(x, 2, 1, "SAME")
            return tf.layers.dense(tf.layers.flatten(x), 1, name="c")
    u = tf.random_uniform([4, 1, 1, 1], seed=2)
    mix = u * real + (1 - u) * fake
    g = tf.gradients(d(mix), mix)[0]
    penalty = tf.reduce_mean((tf.sqrt(tf.reduce_sum(g**2, [1, 2, 3]) + 1e-6) - 1) ** 2)
    d_loss = tf.reduce_mean(d(fake)) - tf.reduce_mean(d(real)) + 10 * penalty
    g_loss = -tf.reduce_mean(d(fake)) + 0.1 * tf.reduce_mean(tf.square(tf.gradients(fake, z)[0]))
    opt = lambda: tf.train.AdamOptimizer(1e-3, 0.0, 0.9, epsilon=1e-3)
    d_loss, g_loss, penalty = tf.tuple([d_loss, g_loss, penalty])
    # Without the gate a weight may be updated before its other uses read it: TensorFlow does either, run by run.
    gate = tf.train.Optimizer.GATE_GRAPH
    d_train = opt().minimize(d_loss, var_list=tf.trainable_variables("d"), gate_gradients=gate)
    g_train = opt().minimize(g_loss, var_list=tf.trainable_variables("g"), gate_gradients=gate)
    return Training(([d_loss, penalty], []), ([], [d_train]), ([g_loss], []), ([], [g_train]), steps=10,
                    feed=lambda i: {z: floats(i, 4, 6), real: np.tanh(floats(i, 4, 8, 8, 1))}, tolerance=5e-4)


@program
def normalizing_flow():
    x = tf.placeholder(tf.float32, [None, 4])
    h, logdet = x, 0.0
    for k in range(3):
        with tf.variable_scope(f"layer{k}"):
            left, right = tf.split(h[:, ::-1] if k % 2 else tf.gather(h, [2, 0, 3, 1], axis=1), 2, 1)
            s, t = tf.unstack(tf.reshape(dense(dense(left, 8, tf.nn.swish), 4), [-1, 2, 2]), axis=1)
            s = tf.tanh(s)
            h = tf.concat([left, right * tf.exp(s) + t], 1)
            w = tf.get_variable("w", initializer=tf.linalg.qr(tf.random_normal([4, 4], seed=k))[0])
            h = tf.matmul(h, w)
            logdet += tf.reduce_sum(s, 1) + tf.log(tf.abs(tf.matrix_determinant(w)))
    loss = -tf.reduce_mean(-0.5 * tf.reduce_sum(h**2, 1) + logdet)
    train = tf.train.AdagradOptimizer(0.05).minimize(loss)
    return Training(([loss], [train]), feed=lambda i: {x: floats(i, 16, 4)}, same_initial=False)


@program
def discrete_codes():
    """A vector-quantized autoencoder with straight-through gradients and averaged codes; Gumbel softmax."""
    x = tf.placeholder(tf.float32, [8, 6])
    codes = tf.get_variable("codes", [5, 3], initializer=tf.uniform_unit_scaling_initializer(seed=1), trainable=False)
    counts = tf.get_variable("counts", [5], initializer=tf.ones_initializer(), trainable=False)
    e = dense(x, 3)
    distance = tf.reduce_sum(e**2, 1, keepdims=True) - 2 * tf.matmul(e, codes,
            transpose_b=True) + tf.reduce_sum(codes**2, 1)
    k = tf.argmin(distance, 1)
    q = tf.nn.embedding_lookup(codes, k)
    z = e + tf.stop_gradient(q - e)
    logits = dense(x, 4)
    gumbel = -tf.log(-tf.log(tf.random_uniform([8, 4], 1e-6, 1 - 1e-6, seed=3)))
    soft = tf.nn.softmax((logits + gumbel) / 0.7)
    hard = tf.stop_gradient(tf.one_hot(tf.argmax(soft, 1), 4) - soft) + soft
    loss = tf.losses.mean_squared_error(x, dense(tf.concat([z, hard], 1),
            6)) + 0.25 * tf.reduce_mean((tf.stop_gradient(q) - e) ** 2)
    from tensorflow.python.training import moving_averages
    hot = tf.one_hot(k, 5)
    with tf.control_dependencies([loss, z]):
        n = moving_averages.assign_moving_average(counts, tf.reduce_sum(hot, 0), 0.9, zero_debias=False)
        c = moving_averages.assign_moving_average(codes, tf.matmul(hot, e, transpose_a=True) / (n[:, None] + 1), 0.9,
                zero_debias=True)
        train = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
    return Training(([loss, k], [train, c]), feed=lambda i: {x: floats(i, 8, 6)})


@program
def spatial_transformer():
    """Bilinear sampling written with gathers, and projective transformations."""
    x, y = tf.placeholder(tf.float32, [None, 8, 8, 1]), tf.placeholder(tf.int32, [None])
    n = tf.shape(x)[0]
    theta = tf.layers.dense(tf.layers.flatten(x), 6, kernel_initializer=tf.zeros_initializer(),
                            bias_initializer=tf.constant_initializer([0.9, 0.1, 0.02, -0.1, 0.9, 0.03]))
    gx, gy = tf.meshgrid(tf.linspace(-1.0, 1.0, 8), tf.linspace(-1.0, 1.0, 8))
    grid = tf.stack([tf.reshape(gx, [-1]), tf.reshape(gy, [-1]), tf.ones([64])])
    where = tf.matmul(tf.reshape(theta, [-1, 2, 3]), tf.tile(grid[None], tf.stack([n, 1, 1])))
    px, py = (where[:, 0] + 1) * 3.5, (where[:, 1] + 1) * 3.5
    x0, y0 = tf.cast(tf.floor(px), tf.int32), tf.cast(tf.floor(py), tf.int32)
    base = tf.reshape(tf.tile(tf.range(n)[:, None] * 64, [1, 64]), [-1])
    flat, total = tf.reshape(x, [-1, 1]), 0.0
    for dx in (0, 1):
        for dy in (0, 1):
            xi, yi = tf.clip_by_value(x0 + dx, 0, 7), tf.clip_by_value(y0 + dy, 0, 7)
            value = tf.gather(flat, base + tf.reshape(yi * 8 + xi, [-1]))
            wx = 1 - tf.abs(px - tf.cast(x0 + dx, tf.float32))
            wy = 1 - tf.abs(py - tf.cast(y0 + dy, tf.float32))
            total += tf.reshape(wx * wy, [-1, 1]) * value
    warped = tf.reshape(total, [-1, 8, 8, 1])
    shifted = tf.raw_ops.ImageProjectiveTransformV2(images=warped, transforms=[[1.0, 0.1, 0.5, 0.0, 0.9, 0.2, 0.01,
            0.0]],
                                                    output_shape=[8, 8], interpolation="BILINEAR")
    logits = dense(tf.layers.flatten(warped + 0.3 * shifted), 4)
    loss = tf.losses.softmax_cross_entropy(tf.one_hot(y, 4), logits, label_smoothing=0.1)
    train = tf.train.MomentumOptimizer(0.01, 0.9, use_nesterov=True).minimize(loss)
    return Training(([loss], [train]), feed=lambda i: dict(zip((x, y), images(i, 6, 8))))


@program
def three_dimensional_network():
    x, y = tf.placeholder(tf.float32, [2, 4, 6, 6, 2]), tf.placeholder(tf.int32, [2])
    h = tf.layers.conv3d(x, 4, 3, padding="same", activation=tf.nn.relu6)
    h = tf.layers.max_pooling3d(h, 2, 2, "same")
    h = tf.layers.conv3d_transpose(h, 3, 2, 2, "valid", activation=tf.nn.crelu)
    w = tf.get_variable("w", [2, 2, 2, 6, 4], initializer=tf.glorot_uniform_initializer(seed=2))
    h = tf.nn.conv3d(h, w, [1, 1, 2, 2, 1], "VALID", dilations=[1, 1, 1, 1, 1])
    h = tf.layers.average_pooling3d(h, 2, 1, "valid")
    patches = tf.extract_volume_patches(x, [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "VALID")
    logits = dense(tf.concat([tf.layers.flatten(h), tf.layers.flatten(patches)], 1), 3)
    loss = tf.losses.hinge_loss(tf.one_hot(y, 3), logits) + tf.losses.get_regularization_loss()
    train = tf.train.ProximalAdagradOptimizer(0.05, l1_regularization_strength=1e-3).minimize(loss)
    return Training(([loss], [train]), feed=lambda i: {x: floats(i, 2, 4, 6, 6, 2), y: ints(i, 3, 2)}, steps=10)


@program
def normalization_layers():
    x, y = tf.placeholder(tf.float32, [4, 6, 6, 8]), tf.placeholder(tf.int32, [4])
    h = tf.layers.batch_normalization(x, training=True, renorm=True, renorm_clipping={"rmax": 2.0, "dmax": 1.0})
    g = tf.reshape(h, [4, 6, 6, 2, 4])
    mean, var = tf.nn.moments(g, [1, 2, 4], keepdims=True)
    h = tf.reshape(tf.nn.batch_normalization(g, mean, var, None, None, 1e-3), [4, 6, 6, 8])
    v = tf.get_variable("v", [3, 3, 8, 4], initializer=tf.glorot_uniform_initializer(seed=1))
    gain = tf.get_variable("gain", [4], initializer=tf.ones_initializer())
    h = tf.nn.conv2d(h, gain * tf.nn.l2_normalize(v, [0, 1, 2]), 1, "SAME")
    u = tf.get_variable("u", [1, 4], initializer=tf.random_normal_initializer(seed=2), trainable=False)
    w = tf.get_variable("w", [4, 3], initializer=tf.glorot_uniform_initializer(seed=3))
    t = tf.nn.l2_normalize(tf.matmul(u, w))
    u2 = tf.stop_gradient(tf.nn.l2_normalize(tf.matmul(t, w, transpose_b=True)))
    sigma = tf.matmul(tf.matmul(u2, w), tf.stop_gradient(t), transpose_b=True)
    with tf.control_dependencies([u2]):
        renew = u.assign(u2)
    h = tf.layers.batch_normalization(h, axis=1, training=True, center=False, virtual_batch_size=2, fused=False)
    logits = tf.matmul(tf.reduce_mean(tf.nn.relu(h), [1, 2]), w / sigma)
    s, c, q, shift = tf.nn.sufficient_statistics(x, [0, 1, 2], shift=tf.zeros([8]))
    m2, v2 = tf.nn.normalize_moments(s, c, q, shift)
    wm, wv = tf.nn.weighted_moments(x, [0], tf.constant([0.1, 0.2, 0.3, 0.4])[:, None, None, None])
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS) + [renew]):
        train = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
    return Training(([loss, m2, v2, tf.reduce_mean(wv), tf.reduce_mean(wm)], [train]),
                    feed=lambda i: {x: floats(i, 4, 6, 6, 8), y: ints(i, 3, 4)})


@program
def actor_and_critic():
    """Proximal policy optimization: old and new policies, clipped ratios, advantages by a reversed scan."""
    s, a = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 2])
    r, done = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])

    def policy(scope, trainable):
        with tf.variable_scope(scope):
            h = tf.layers.dense(s, 8, tf.nn.tanh, trainable=trainable)
            mu = 2 * tf.layers.dense(h, 2, tf.nn.tanh, trainable=trainable)
            log_sigma = tf.get_variable("sigma", [2], initializer=tf.zeros_initializer(), trainable=trainable)
            return mu, log_sigma
    log = lambda mu, ls: -tf.reduce_sum(0.5 * ((a - mu) / tf.exp(ls)) ** 2 + ls, 1)
    new, old = policy("pi", True), policy("old", False)
    value = tf.layers.dense(tf.layers.dense(s, 8, tf.nn.relu), 1)[:, 0]
    delta = r + 0.9 * tf.concat([value[1:], [0.0]], 0) * (1 - done) - value
    advantage = tf.scan(lambda acc, e: e[0] + 0.855 * (1 - e[1]) * acc, (tf.stop_gradient(delta), done),
                        initializer=0.0, reverse=True)
    mean, var = tf.nn.moments(advantage, 0)
    advantage = (advantage - mean) / tf.sqrt(var + 1e-6)
    ratio = tf.exp(log(*new) - log(*old))
    surrogate = tf.minimum(ratio * advantage, tf.clip_by_value(ratio, 0.8, 1.2) * advantage)
    entropy = tf.reduce_sum(new[1] + 1.42)
    kl = tf.reduce_mean(log(*old) - log(*new))
    loss = -tf.reduce_mean(surrogate) - 0.01 * entropy
    critic = tf.losses.huber_loss(tf.stop_gradient(value + delta), value, delta=0.5)
    copy = [tf.assign(o, p) for p, o in zip(tf.global_variables("pi"), tf.global_variables("old"))]
    beta = tf.get_variable("beta", initializer=0.5, trainable=False)
    adapt = tf.case([(kl > 0.015, lambda: beta.assign(beta * 2)), (kl < 0.005, lambda: beta.assign(beta / 2))],
                    default=lambda: tf.assign(beta, beta), exclusive=True)
    train = tf.train.AdamOptimizer(0.01, epsilon=1e-4).minimize(loss + 0.5 * critic + tf.stop_gradient(beta) * kl)
    action = tf.squeeze(new[0] + tf.exp(new[1]) * tf.random_normal(tf.shape(new[0]), seed=3))

    def feed(i):
        return {s: floats(i, 10, 4), a: floats(i, 10, 2, salt=1), r: floats(i, 10, salt=2),
                done: (ints(i, 5, 10) == 0).astype(np.float32)}
    return Training(([], copy), ([loss, critic, kl, action], []), ([], [train]), ([kl], []), ([adapt], []), feed=feed)


@program
def deterministic_policy():
    """DDPG: the critic's action gradient drives the actor through grad_ys; targets are averaged."""
    s, s2 = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 3])
    a, r = tf.placeholder(tf.float32, [None, 1]), tf.placeholder(tf.float32, [None, 1])
    init = tf.random_uniform_initializer(-0.3, 0.3, seed=1)

    def actor(s, scope, getter=None):
        with tf.variable_scope(scope, reuse=tf.AUTO_REUSE, custom_getter=getter):
            return dense(dense(s, 8, tf.nn.relu, name="h", kernel_initializer=init), 1, tf.tanh, name="a")

    def critic(s, a, scope, getter=None):
        with tf.variable_scope(scope, reuse=tf.AUTO_REUSE, custom_getter=getter):
            w1 = tf.get_variable("w1", [3, 8], initializer=init)
            w2 = tf.get_variable("w2", [1, 8], initializer=init)
            return dense(tf.nn.relu(tf.matmul(s, w1) + tf.matmul(a, w2)), 1, name="q")
    mu = actor(s, "actor")
    q = critic(s, a, "critic")
    average = tf.train.ExponentialMovingAverage(0.95, zero_debias=False)
    ours = tf.trainable_variables()
    average.apply(ours)
    getter = lambda getter, name, *args, **kw: average.average(getter(name, *args, **kw))
    y = r + 0.9 * critic(s2, actor(s2, "actor", getter), "critic", getter)
    td = tf.losses.mean_squared_error(tf.stop_gradient(y), q)
    slope = tf.gradients(critic(s, mu, "critic"), mu)[0]
    grads = tf.gradients(mu, tf.trainable_variables("actor"), grad_ys=-slope / 8)
    with tf.control_dependencies([td]):
        update = average.apply(ours)
    with tf.control_dependencies([update]):
        c_train = tf.train.AdamOptimizer(0.01, epsilon=1e-3).minimize(td, var_list=tf.trainable_variables("critic"))
    with tf.control_dependencies(grads):  # one reads a kernel that the update of another changes
        a_train = tf.train.AdamOptimizer(0.01, epsilon=1e-3).apply_gradients(
            zip(grads, tf.trainable_variables("actor")))
    return Training(([td, mu], [c_train]), ([slope], [a_train]),
                    feed=lambda i: {s: floats(i, 8, 3), s2: floats(i, 8, 3, salt=1), a: floats(i, 8, 1, salt=2),
                                    r: floats(i, 8, 1, salt=3)})


@program
def trust_region():
    """Conjugate gradients with Fisher-vector products by double gradients, then a backtracking line search."""
    x, y = tf.placeholder(tf.float64, [10, 3]), tf.placeholder(tf.int32, [10])
    w = tf.get_variable("w", [3, 4], tf.float64, initializer=tf.glorot_uniform_initializer(seed=1), use_resource=True)
    logits = tf.matmul(x, w)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    p = tf.nn.softmax(logits)
    kl = tf.reduce_mean(tf.reduce_sum(tf.stop_gradient(p) * (tf.stop_gradient(tf.log(p)) - tf.log(p)), 1))
    g = tf.reshape(tf.gradients(loss, w)[0], [-1])
    kg = tf.reshape(tf.gradients(kl, w)[0], [-1])
    product = lambda v: tf.reshape(tf.gradients(tf.reduce_sum(kg * tf.stop_gradient(v)), w)[0], [-1]) + 0.1 * v
    v, r, d = tf.zeros_like(g), g, g
    for _ in range(4):
        z = product(d)
        alpha = tf.tensordot(r, r, 1) / (tf.tensordot(d, z, 1) + 1e-8)
        v, r2 = v + alpha * d, r - alpha * z
        d = r2 + tf.tensordot(r2, r2, 1) / (tf.tensordot(r, r, 1) + 1e-8) * d
        r = r2
    step = 0.3 * v / tf.sqrt(tf.tensordot(v, product(v), 1) + 1e-6)
    hessian = tf.hessians(loss, w)[0]
    new = w - tf.reshape(step, [3, 4])
    return Training(([loss, hessian, step], []), ([], [w.assign(new)]),
                    feed=lambda i: dict(zip((x, y), blobs(i, 10, 3, 4))), tolerance=5e-4)
