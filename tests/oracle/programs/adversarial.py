"""Networks that are trained against each other, and other losses with several optimizers."""
from training import *


def generator(z, reuse=False):
    with tf.variable_scope("generator", reuse=reuse):
        h = tf.layers.dense(z, 16, tf.nn.leaky_relu)
        h = tf.layers.batch_normalization(h, training=True, momentum=0.8)
        return tf.layers.dense(h, 2)


def discriminator(x, reuse=False):
    with tf.variable_scope("discriminator", reuse=reuse):
        h = tf.layers.dense(x, 16, tf.nn.leaky_relu, name="h0")
        h = tf.layers.dense(h, 16, tf.nn.leaky_relu, name="h1")
        return tf.layers.dense(h, 1, name="logit")


def variables_of(name):
    return [v for v in tf.trainable_variables() if v.name.startswith(name)]


def ring(step, batch=16):
    angle = rng(step, 1).uniform(0, 2 * np.pi, batch)
    return np.stack([np.cos(angle), np.sin(angle)], 1).astype(np.float32)


@program
def gan():
    real, z = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 4])
    fake = generator(z)
    d_real, d_fake = discriminator(real), discriminator(fake, reuse=True)
    entropy = tf.nn.sigmoid_cross_entropy_with_logits
    d_loss = tf.reduce_mean(entropy(labels=tf.ones_like(d_real) * 0.9, logits=d_real)) + tf.reduce_mean(
        entropy(labels=tf.zeros_like(d_fake), logits=d_fake))
    g_loss = tf.reduce_mean(entropy(labels=tf.ones_like(d_fake), logits=d_fake))
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS, "generator")
    d_train = tf.train.AdamOptimizer(0.003, beta1=0.5, epsilon=1e-5).minimize(
        d_loss, var_list=variables_of("discriminator"))
    with tf.control_dependencies(updates):
        g_train = tf.train.AdamOptimizer(0.003, beta1=0.5, epsilon=1e-5).minimize(
            g_loss, var_list=variables_of("generator"))
    return Training(([d_loss], [d_train]), ([g_loss], [g_train]),
                    feed=lambda i: {real: ring(i), z: floats(i, 16, 4)})


@program
def wasserstein_gan_with_gradient_penalty():
    """Gradients of gradients."""
    real, z = tf.placeholder(tf.float32, [16, 2]), tf.random_normal([16, 4], seed=3)
    with tf.variable_scope("generator"):
        fake = tf.layers.dense(tf.layers.dense(z, 16, tf.nn.tanh), 2)
    mix = tf.random_uniform([16, 1], seed=4)
    between = mix * real + (1 - mix) * fake
    c_loss = tf.reduce_mean(discriminator(fake)) - tf.reduce_mean(discriminator(real, True))
    slopes = tf.sqrt(1e-6 + tf.reduce_sum(tf.square(tf.gradients(discriminator(between, True), [between])[0]), 1))
    c_loss += 10 * tf.reduce_mean((slopes - 1) ** 2)
    g_loss = -tf.reduce_mean(discriminator(fake, True))
    optimizer = tf.train.AdamOptimizer(0.002, 0.5, 0.9, epsilon=1e-4)
    with tf.control_dependencies([c_loss, g_loss]):  # they read biases that the updates change
        c_train = optimizer.minimize(c_loss, var_list=variables_of("discriminator"))
        g_train = optimizer.minimize(g_loss, var_list=variables_of("generator"))
    return Training(([c_loss], [c_train]), ([c_loss], [c_train]), ([g_loss], [g_train]),
                    feed=lambda i: {real: ring(i)})


@program
def wasserstein_gan_with_clipping():
    real, z = tf.placeholder(tf.float32, [16, 2]), tf.placeholder(tf.float32, [16, 4])
    fake = generator(z)
    loss = tf.reduce_mean(discriminator(fake)) - tf.reduce_mean(discriminator(real, True))
    with tf.control_dependencies([loss]):  # it reads biases that the update changes
        update = tf.train.RMSPropOptimizer(0.01, epsilon=1e-3).minimize(loss, var_list=variables_of("discriminator"))
    with tf.control_dependencies([update]):
        clip = tf.group(*[v.assign(tf.clip_by_value(v, -0.05, 0.05)) for v in variables_of("discriminator")])
    g_train = tf.train.RMSPropOptimizer(0.01, epsilon=1e-3).minimize(-loss, var_list=variables_of("generator"))
    return Training(([loss], [clip]), ([loss], [g_train]), feed=lambda i: {real: ring(i), z: floats(i, 16, 4)})


@program
def siamese_network():
    """Shared layers, a contrastive and a triplet loss."""
    a, b, c = (tf.placeholder(tf.float32, [None, 6]) for _ in range(3))

    def embed(x):
        with tf.variable_scope("embed", reuse=tf.AUTO_REUSE):
            w = tf.get_variable("w", [6, 8], initializer=tf.orthogonal_initializer())
            h = tf.nn.selu(tf.matmul(x, w))
            return tf.nn.l2_normalize(tf.layers.dense(h, 3, name="out"), axis=1)

    ea, eb, ec = embed(a), embed(b), embed(c)
    near, far = tf.reduce_sum(tf.square(ea - eb), 1), tf.reduce_sum(tf.square(ea - ec), 1)
    loss = tf.reduce_mean(tf.maximum(0.0, near - far + 0.5)) + tf.losses.cosine_distance(ea, eb, axis=1)
    loss += tf.losses.absolute_difference(near, tf.zeros_like(near)) * 0.1
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    return Training(([loss, near], [train]),
                    feed=lambda i: {a: floats(i, 8, 6), b: floats(i, 8, 6, salt=1), c: floats(i, 8, 6, salt=2)})


@program
def style_transfer():
    """The image is the variable; Gram matrices and total variation of fixed features."""
    content, style = floats(0, 1, 12, 12, 3), floats(1, 1, 12, 12, 3)
    image = tf.Variable(content, name="image")
    kernels = tf.constant(floats(2, 3, 3, 3, 6) * 0.3)

    def features(x):
        return tf.nn.relu(tf.nn.conv2d(x, kernels, [1, 1, 1, 1], "SAME"))

    def gram(f):
        flat = tf.reshape(f, [-1, 6])
        return tf.matmul(flat, flat, transpose_a=True) / tf.cast(tf.size(f), tf.float32)

    loss = tf.nn.l2_loss(features(image) - features(content)) * 1e-2
    loss += tf.nn.l2_loss(gram(features(image)) - gram(features(style))) * 1e2
    loss += 1e-3 * tf.reduce_sum(tf.image.total_variation(image))
    train = tf.train.AdamOptimizer(0.02, epsilon=1e-4).minimize(loss)
    return Training(([loss], [train]))


@program
def deep_q_learning():
    """A target network that is copied from the trained one, a replayed batch, Huber loss, epsilon-greedy action."""
    state, following = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 4])
    action, reward = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None])
    done = tf.placeholder(tf.float32, [None])

    def network(x, scope):
        with tf.variable_scope(scope):
            h = tf.layers.dense(x, 16, tf.nn.relu)
            value, advantage = tf.layers.dense(h, 1), tf.layers.dense(h, 3)
            return value + advantage - tf.reduce_mean(advantage, 1, keepdims=True)

    q, target = network(state, "online"), network(following, "target")
    chosen = tf.reduce_sum(q * tf.one_hot(action, 3), 1)
    wanted = tf.stop_gradient(reward + 0.9 * (1 - done) * tf.reduce_max(target, 1))
    loss = tf.losses.huber_loss(wanted, chosen)
    online = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, "online")
    other = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, "target")
    train = tf.train.RMSPropOptimizer(0.005, epsilon=1e-2).minimize(loss, var_list=online)
    random = tf.random_uniform([8], maxval=3, dtype=tf.int64, seed=5)
    act = tf.where(tf.random_uniform([8], seed=6) < 0.3, random, tf.argmax(q, 1))
    once = tf.Variable(0, trainable=False)
    count = tf.assign_add(once, 1)
    update = tf.cond(tf.equal(count % 5, 0),
                     lambda: tf.group(*[tf.assign(t, o) for o, t in zip(online, other)]),
                     lambda: tf.group(*[t.assign(0.9 * t + 0.1 * o) for o, t in zip(online, other)]))

    def feed(i):
        return {state: floats(i, 8, 4), following: floats(i, 8, 4, salt=1), action: ints(i, 3, 8),
                reward: floats(i, 8), done: ints(i, 2, 8).astype(np.float32)}

    return Training(([act], []), ([loss], [train]), ([count], [update]), feed=feed)


@program
def policy_gradient():
    """Actor and critic: sampled actions, entropy, advantages, a clipped ratio."""
    x, action = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, [None])
    advantage, returns = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    h = tf.layers.dense(x, 16, tf.tanh, kernel_initializer=tf.orthogonal_initializer(np.sqrt(2)))
    logits, value = tf.layers.dense(h, 3), tf.squeeze(tf.layers.dense(h, 1), 1)
    sample = tf.squeeze(tf.multinomial(logits, 1, seed=4), 1)
    gumbel = tf.argmax(logits - tf.log(-tf.log(tf.random_uniform(tf.shape(logits), seed=9))), 1)
    log_p = -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=action, logits=logits)
    old = tf.stop_gradient(log_p) + 0.1
    ratio = tf.exp(log_p - old)
    surrogate = tf.minimum(ratio * advantage, tf.clip_by_value(ratio, 0.8, 1.2) * advantage)
    p = tf.nn.softmax(logits)
    entropy = -tf.reduce_mean(tf.reduce_sum(p * tf.nn.log_softmax(logits), 1))
    loss = -tf.reduce_mean(surrogate) + 0.5 * tf.reduce_mean(tf.square(returns - value)) - 0.01 * entropy
    optimizer = tf.train.AdamOptimizer(0.01, epsilon=1e-4)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
    train = optimizer.apply_gradients(zip(gradients, variables))
    return Training(([sample, gumbel, loss, entropy], [train]), feed=lambda i: {
        x: floats(i, 8, 4), action: ints(i, 3, 8), advantage: floats(i, 8), returns: floats(i, 8, salt=1)})
