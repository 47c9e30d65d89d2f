"""The networks of the suite "networks": training steps at the sizes that people use. Each returns its feeds, fetches
and targets, as the tasks of peer_run.py."""
import numpy as np
import tensorflow.compat.v1 as tf
from peer_layers import (batch_norm, classes, conv, conv_transpose, dense, layer_norm, lstm_cell, max_pool, minimize,
                         weights)

rng = np.random.default_rng(1)


def images(batch, size, channels, labels=10):
    """Placeholders of images and labels, and what is fed."""
    x, y = tf.placeholder(tf.float32, [batch, size, size, channels]), tf.placeholder(tf.int64, [batch])
    return x, y, {x: rng.normal(size=(batch, size, size, channels)), y: rng.integers(0, labels, batch)}


def mlp():
    x, y = tf.placeholder(tf.float32, [128, 784]), tf.placeholder(tf.int64, [128])
    h = x
    for _ in range(2):
        h = dense(h, 512, tf.nn.relu)
    loss = classes(dense(h, 10), y)
    feeds = {x: rng.normal(size=(128, 784)), y: rng.integers(0, 10, 128)}
    return feeds, [loss], [minimize(tf.train.AdamOptimizer(1e-3), loss)]


def cnn():
    """As in TensorFlow's tutorial of MNIST."""
    x, y, feeds = images(128, 28, 1)
    h = max_pool(conv(x, 32, 5, activation=tf.nn.relu))
    h = max_pool(conv(h, 64, 5, activation=tf.nn.relu))
    h = dense(tf.reshape(h, [128, 7 * 7 * 64]), 1024, tf.nn.relu)
    loss = classes(dense(h, 10), y)
    return feeds, [loss], [minimize(tf.train.AdamOptimizer(1e-4), loss)]


def basic_block(x, filters, stride):
    h = tf.nn.relu(batch_norm(conv(x, filters, 3, stride, False)))
    h = batch_norm(conv(h, filters, 3, 1, False))
    if stride != 1:
        x = batch_norm(conv(x, filters, 1, stride, False))
    return tf.nn.relu(x + h)


def resnet20():
    x, y, feeds = images(128, 32, 3)
    h = tf.nn.relu(batch_norm(conv(x, 16, 3, 1, False)))
    for filters in [16, 32, 64]:
        for block in range(3):
            h = basic_block(h, filters, 2 if filters > 16 and block == 0 else 1)
    loss = classes(dense(tf.reduce_mean(h, [1, 2]), 10), y)
    return feeds, [loss], [minimize(tf.train.MomentumOptimizer(0.1, 0.9), loss)]


def bottleneck(x, filters, stride):
    h = tf.nn.relu(batch_norm(conv(x, filters, 1, 1, False)))
    h = tf.nn.relu(batch_norm(conv(h, filters, 3, stride, False)))
    h = batch_norm(conv(h, 4 * filters, 1, 1, False))
    if stride != 1 or x.shape[-1] != 4 * filters:
        x = batch_norm(conv(x, 4 * filters, 1, stride, False))
    return tf.nn.relu(x + h)


def resnet50():
    x, y, feeds = images(16, 224, 3, 1000)
    h = max_pool(tf.nn.relu(batch_norm(conv(x, 64, 7, 2, False))), 3, 2)
    for filters, blocks in [(64, 3), (128, 4), (256, 6), (512, 3)]:
        for block in range(blocks):
            h = bottleneck(h, filters, 2 if filters > 64 and block == 0 else 1)
    loss = classes(dense(tf.reduce_mean(h, [1, 2]), 1000), y)
    return feeds, [loss], [minimize(tf.train.MomentumOptimizer(0.1, 0.9), loss)]


def lstm():
    """Language model of the size "small", unrolled as in TensorFlow's tutorial."""
    batch, steps, units, words = 20, 20, 200, 10000
    ids, targets = tf.placeholder(tf.int32, [batch, steps]), tf.placeholder(tf.int64, [batch, steps])
    embedded = tf.nn.embedding_lookup(weights("embedding", [words, units]), ids)
    states, outputs = [[tf.zeros([batch, units])] * 2] * 2, []
    for step in range(steps):
        x, after = embedded[:, step], []
        for layer, (c, h) in enumerate(states):
            c, x = lstm_cell(x, c, h, f"cell_{layer}")
            after.append([c, x])
        states = after
        outputs.append(x)
    logits = dense(tf.reshape(tf.stack(outputs, 1), [-1, units]), words)
    loss = classes(logits, tf.reshape(targets, [-1]))
    variables = tf.trainable_variables()
    clipped, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
    train = tf.train.GradientDescentOptimizer(1.0).apply_gradients(zip(clipped, variables))
    drawn = rng.integers(0, words, (2, batch, steps))
    return {ids: drawn[0], targets: drawn[1]}, [loss], [train]


def attention(x, heads):
    batch, length, units = x.shape.as_list()
    split = lambda t: tf.transpose(tf.reshape(t, [batch, length, heads, units // heads]), [0, 2, 1, 3])
    flat = tf.reshape(x, [-1, units])
    q, k, v = (split(dense(flat, units)) for _ in range(3))
    shares = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * (units // heads) ** -0.5)
    joined = tf.reshape(tf.transpose(tf.matmul(shares, v), [0, 2, 1, 3]), [-1, units])
    return tf.reshape(dense(joined, units), x.shape)


def transformer():
    batch, length, units, words = 8, 128, 512, 10000
    ids, targets = tf.placeholder(tf.int32, [batch, length]), tf.placeholder(tf.int64, [batch, length])
    x = tf.nn.embedding_lookup(weights("embedding", [words, units]), ids) + weights("positions", [length, units])
    for _ in range(6):
        x = layer_norm(x + attention(x, 8))
        h = dense(dense(tf.reshape(x, [-1, units]), 4 * units, tf.nn.relu), units)
        x = layer_norm(x + tf.reshape(h, x.shape))
    loss = classes(dense(tf.reshape(x, [-1, units]), words), tf.reshape(targets, [-1]))
    drawn = rng.integers(0, words, (2, batch, length))
    return {ids: drawn[0], targets: drawn[1]}, [loss], [minimize(tf.train.AdamOptimizer(1e-4), loss)]


def dcgan():
    """A step of the discriminator and one of the generator, of 64 x 64 images."""
    batch = 32
    real, noise = tf.placeholder(tf.float32, [batch, 64, 64, 3]), tf.placeholder(tf.float32, [batch, 100])

    def discriminator(x):
        with tf.variable_scope("discriminator", reuse=tf.AUTO_REUSE):
            for layer, filters in enumerate([64, 128, 256, 512]):
                with tf.variable_scope(f"layer_{layer}"):
                    x = conv(x, filters, 5, 2)
                    x = tf.nn.leaky_relu(batch_norm(x) if layer else x)
            return dense(tf.reshape(x, [batch, -1]), 1)

    with tf.variable_scope("generator"):
        h = tf.nn.relu(batch_norm(tf.reshape(dense(noise, 4 * 4 * 512), [batch, 4, 4, 512])))
        for filters in [256, 128, 64]:
            h = tf.nn.relu(batch_norm(conv_transpose(h, filters, 5, 2)))
        fake = tf.tanh(conv_transpose(h, 3, 5, 2))
    entropy = lambda logits, label: tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.fill(logits.shape, label), logits=logits))
    of_real, of_fake = discriminator(real), discriminator(fake)
    losses = [entropy(of_real, 1.0) + entropy(of_fake, 0.0), entropy(of_fake, 1.0)]
    targets = [minimize(tf.train.AdamOptimizer(2e-4, 0.5), loss, tf.trainable_variables(scope))
               for loss, scope in zip(losses, ["discriminator", "generator"])]
    return {real: rng.normal(size=(batch, 64, 64, 3)), noise: rng.normal(size=(batch, 100))}, losses, targets


def autoencoder():
    x, _, feeds = images(64, 28, 1)
    h = conv(conv(x, 16, 3, 2, activation=tf.nn.relu), 32, 3, 2, activation=tf.nn.relu)
    y = conv_transpose(tf.nn.relu(conv_transpose(h, 16, 3, 2)), 1, 3, 2)
    loss = tf.reduce_mean(tf.square(y - x))
    return {x: feeds[x]}, [loss], [minimize(tf.train.AdamOptimizer(1e-3), loss)]


def word2vec():
    """NCE; the gradients are sparse, through the optimizer."""
    inputs, labels = tf.placeholder(tf.int32, [128]), tf.placeholder(tf.int32, [128, 1])
    table, rows = weights("embedding", [50000, 128]), weights("rows", [50000, 128])
    embedded = tf.nn.embedding_lookup(table, inputs)
    loss = tf.reduce_mean(tf.nn.nce_loss(rows, weights("biases", [50000], tf.zeros_initializer()), labels, embedded, 64,
                                         50000))
    train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    return {inputs: rng.integers(0, 50000, 128), labels: rng.integers(0, 50000, (128, 1))}, [loss], [train]


NETWORKS = {
    "mlp": mlp,
    "cnn": cnn,
    "resnet-20": resnet20,
    "lstm": lstm,
    "autoencoder": autoencoder,
    "dcgan": dcgan,
    "transformer": transformer,
    "word2vec": word2vec,
    "resnet-50": resnet50,
}
