"""Convolutional networks, batch normalization with update operations, image augmentation and autoencoders."""
from training import *


def inputs(size=12, channels=1, batch=8):
    x = tf.placeholder(tf.float32, [None, size, size, channels], name="images")
    y = tf.placeholder(tf.int32, [None], name="labels")
    return x, y, lambda step: dict(zip([x, y], images(step, batch, size, channels)))


def weight(shape, std=0.1):
    return tf.Variable(tf.truncated_normal(shape, stddev=std), name="w")


def bias(shape):
    return tf.Variable(tf.constant(0.1, shape=shape), name="b")


@program
def deep_mnist():
    """Two convolutions written by hand with tf.Variable, dropout with a fed keep probability, Adam."""
    x, y, feed = inputs()
    keep = tf.placeholder(tf.float32, name="keep_prob")
    with tf.name_scope("conv1"):
        h = tf.nn.relu(tf.nn.conv2d(x, weight([5, 5, 1, 8]), strides=[1, 1, 1, 1], padding="SAME") + bias([8]))
        h = tf.nn.max_pool(h, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    with tf.name_scope("conv2"):
        h = tf.nn.relu(tf.nn.conv2d(h, weight([3, 3, 8, 8]), strides=[1, 1, 1, 1], padding="SAME") + bias([8]))
        h = tf.nn.max_pool(h, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    with tf.name_scope("fc1"):
        h = tf.nn.relu(tf.matmul(tf.reshape(h, [-1, 3 * 3 * 8]), weight([72, 32])) + bias([32]))
    h = tf.nn.dropout(h, keep, seed=5)
    with tf.name_scope("fc2"):
        logits = tf.matmul(h, weight([32, 4])) + bias([4])
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.one_hot(y, 4), logits=logits))
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), tf.cast(y, tf.int64)), tf.float32))
    train = tf.train.AdamOptimizer(1e-2, epsilon=1e-4).minimize(loss)
    return Training(([loss, accuracy], [train]), feed=lambda step: {**feed(step), keep: 0.7})


@each(fused=[False, True])
def batch_normalization(fused):
    x, y, feed = inputs()
    training = tf.placeholder_with_default(True, [], name="is_training")
    h = tf.layers.conv2d(x, 8, 3, padding="same", use_bias=False)
    h = tf.nn.relu(tf.layers.batch_normalization(h, training=training, momentum=0.9, fused=fused))
    h = tf.layers.conv2d(h, 8, 3, strides=2, use_bias=False)
    h = tf.nn.relu(tf.layers.batch_normalization(h, training=training, momentum=0.9, fused=fused, scale=False))
    h = tf.reduce_mean(h, [1, 2])
    h = tf.layers.batch_normalization(h, training=training, renorm=False)
    logits = tf.layers.dense(h, 4)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, tf.train.get_or_create_global_step())

    def evaluated(step):
        return {**feed(step), training: step % 5 != 4}

    return Training(([loss], [train]), feed=evaluated)


@program
def batch_normalization_by_hand():
    """tf.nn.moments and an ExponentialMovingAverage in tf.cond, as many programs had it before tf.layers."""
    x, y, feed = inputs()
    phase = tf.placeholder(tf.bool, name="phase_train")

    def normalize(h, name):
        with tf.variable_scope(name):
            n = h.shape[-1].value
            beta = tf.Variable(tf.constant(0.0, shape=[n]), name="beta", trainable=True)
            gamma = tf.Variable(tf.constant(1.0, shape=[n]), name="gamma", trainable=True)
            batch_mean, batch_var = tf.nn.moments(h, [0, 1, 2], name="moments")
            ema = tf.train.ExponentialMovingAverage(decay=0.5)

            def mean_var_with_update():
                with tf.control_dependencies([ema.apply([batch_mean, batch_var])]):
                    return tf.identity(batch_mean), tf.identity(batch_var)

            mean, var = tf.cond(phase, mean_var_with_update,
                                lambda: (ema.average(batch_mean), ema.average(batch_var)))
            return tf.nn.batch_normalization(h, mean, var, beta, gamma, 1e-3)

    h = tf.nn.relu(normalize(tf.nn.conv2d(x, weight([3, 3, 1, 6]), [1, 2, 2, 1], "SAME"), "bn1"))
    h = tf.nn.relu(normalize(tf.nn.conv2d(h, weight([3, 3, 6, 6]), [1, 2, 2, 1], "VALID"), "bn2"))
    logits = tf.layers.dense(tf.layers.flatten(h), 4)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return Training(([loss], [train]), ([loss], []),
                    feed=lambda step: {**feed(step), phase: step % 4 != 3})


@program
def residual_network():
    """Identity and projection shortcuts, weight decay over a collection, momentum with a piecewise learning rate."""
    x, y, feed = inputs(channels=3)

    def block(h, filters, stride, scope):
        with tf.variable_scope(scope):
            shortcut = h
            if stride != 1 or h.shape[-1] != filters:
                shortcut = tf.layers.conv2d(h, filters, 1, stride, use_bias=False, name="projection")
            pad = [[0, 0], [1, 1], [1, 1], [0, 0]]
            h = tf.layers.conv2d(tf.pad(h, pad), filters, 3, stride, use_bias=False, name="conv1")
            h = tf.nn.relu(tf.layers.batch_normalization(h, training=True, fused=True, name="bn1"))
            h = tf.layers.conv2d(h, filters, 3, padding="same", use_bias=False, name="conv2")
            h = tf.layers.batch_normalization(h, training=True, fused=True, name="bn2")
            return tf.nn.relu(h + shortcut)

    h = tf.layers.conv2d(x, 8, 3, padding="same", kernel_initializer=tf.variance_scaling_initializer())
    for i, (filters, stride) in enumerate([(8, 1), (16, 2), (16, 1)]):
        h = block(h, filters, stride, "block%d" % i)
    logits = tf.layers.dense(tf.reduce_mean(h, axis=[1, 2], keepdims=True)[:, 0, 0], 4)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    loss += 1e-4 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "batch_norm" not in v.name])
    step = tf.train.get_or_create_global_step()
    rate = tf.train.piecewise_constant(step, [10], [0.05, 0.01])
    train = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, step)
    train = tf.group(train, *tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    return Training(([loss, rate], [train]), feed=feed, steps=10, tolerance=5e-4)


@program
def inception_module():
    x, y, feed = inputs(channels=3)
    h = tf.layers.conv2d(x, 8, 3, activation=tf.nn.relu)
    a = tf.layers.conv2d(h, 4, 1, activation=tf.nn.relu)
    b = tf.layers.conv2d(tf.layers.conv2d(h, 4, 1), 4, (1, 3), padding="same", activation=tf.nn.relu)
    c = tf.layers.conv2d(tf.layers.average_pooling2d(h, 3, 1, padding="same"), 4, 1, activation=tf.nn.elu)
    d = tf.layers.max_pooling2d(h, 3, 1, padding="same")
    h = tf.nn.lrn(tf.concat([a, b, c, d], axis=3), depth_radius=3, bias=1.0, alpha=0.001, beta=0.75)
    h = tf.layers.dropout(tf.layers.flatten(tf.layers.max_pooling2d(h, 2, 2)), 0.4, training=True, seed=3)
    loss = tf.losses.softmax_cross_entropy(tf.one_hot(y, 4), tf.layers.dense(h, 4), label_smoothing=0.1)
    train = tf.train.RMSPropOptimizer(0.003, epsilon=0.1).minimize(loss)
    return Training(([loss], [train]), feed=feed)


@program
def mobile_network():
    """Depthwise and separable convolutions, relu6, dilation."""
    x, y, feed = inputs(channels=3)
    h = tf.layers.conv2d(x, 8, 3, 2, padding="same", activation=tf.nn.relu6)
    depthwise = tf.get_variable("depthwise", [3, 3, 8, 2])
    h = tf.nn.relu6(tf.nn.depthwise_conv2d(h, depthwise, [1, 1, 1, 1], "SAME"))
    h = tf.layers.separable_conv2d(h, 12, 3, padding="same", activation=tf.nn.relu6)
    h = tf.nn.atrous_conv2d(h, tf.get_variable("atrous", [3, 3, 12, 6]), rate=2, padding="SAME")
    h = tf.layers.conv2d(h, 6, 3, padding="same", dilation_rate=2, activation=tf.nn.leaky_relu)
    logits = tf.layers.dense(tf.layers.flatten(h), 4)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    return Training(([loss], [tf.train.AdamOptimizer(0.01, epsilon=1e-4).minimize(loss)]), feed=feed)


@program
def segmentation():
    """A small U-Net: transposed convolutions, skip connections, resizing, and a weighted loss over pixels."""
    x, _, _ = inputs()
    mask = tf.placeholder(tf.int32, [None, 12, 12], name="mask")
    down = tf.layers.conv2d(x, 6, 3, padding="same", activation=tf.nn.relu)
    h = tf.layers.max_pooling2d(down, 2, 2)
    h = tf.layers.conv2d(h, 8, 3, padding="same", activation=tf.nn.relu)
    up = tf.layers.conv2d_transpose(h, 6, 3, 2, padding="same", activation=tf.nn.relu)
    resized = tf.image.resize_bilinear(h, [12, 12], align_corners=True)
    nearest = tf.image.resize_nearest_neighbor(h[..., :2], tf.shape(x)[1:3])
    h = tf.concat([down, up, resized, nearest], -1)
    logits = tf.layers.conv2d(h, 2, 1)
    weights = tf.where(tf.equal(mask, 1), tf.fill(tf.shape(mask), 3.0), tf.ones_like(mask, tf.float32))
    loss = tf.losses.sparse_softmax_cross_entropy(mask, logits, weights)
    prediction = tf.argmax(logits, -1, output_type=tf.int32)
    both = tf.reduce_sum(tf.cast(tf.logical_and(tf.equal(mask, 1), tf.equal(prediction, 1)), tf.float32))
    dice = 2 * both / tf.maximum(1.0, tf.cast(tf.reduce_sum(mask) + tf.reduce_sum(prediction), tf.float32))
    train = tf.train.AdamOptimizer(0.01, epsilon=1e-4).minimize(loss)

    def feed(step):
        pixels, _ = images(step, 4)
        return {x: pixels, mask: (pixels[..., 0] > 0.6).astype(np.int32)}

    return Training(([loss, dice], [train]), feed=feed)


@program
def volumes():
    """3-D convolution and pooling, and 1-D convolution over time."""
    x = tf.placeholder(tf.float32, [None, 6, 8, 8, 2])
    y = tf.placeholder(tf.float32, [None, 3])
    h = tf.layers.conv3d(x, 4, 3, padding="same", activation=tf.nn.relu)
    h = tf.layers.max_pooling3d(h, 2, 2)
    h = tf.layers.conv3d(h, 4, (1, 3, 3), strides=(1, 2, 2), padding="same", activation=tf.nn.tanh)
    h = tf.layers.average_pooling3d(h, (1, 2, 2), (1, 1, 1))
    h = tf.reshape(h, [-1, 3, h.shape[2] * h.shape[3] * 4])
    h = tf.layers.conv1d(h, 5, 2, activation=tf.nn.relu)
    h = tf.layers.max_pooling1d(h, 2, 1)
    loss = tf.losses.huber_loss(y, tf.layers.dense(tf.layers.flatten(h), 3), delta=0.5)
    train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    return Training(([loss], [train]), feed=lambda i: {x: floats(i, 2, 6, 8, 8, 2), y: floats(i, 2, 3)})


@program
def denoising_autoencoder():
    """Tied weights, noise with a seed, a sparsity penalty."""
    x, _, feed = inputs()
    flat = tf.reshape(x, [-1, 144])
    noisy = flat + 0.3 * tf.random_normal(tf.shape(flat), seed=11)
    mask = tf.cast(tf.random_uniform(tf.shape(flat), seed=12) > 0.2, tf.float32)
    w = tf.get_variable("w", [144, 16], initializer=tf.random_normal_initializer(stddev=0.1, seed=3))
    b, c = tf.get_variable("b", [16], initializer=tf.zeros_initializer), tf.Variable(tf.zeros([144]))
    code = tf.sigmoid(tf.matmul(noisy * mask, w) + b)
    decoded = tf.matmul(code, w, transpose_b=True) + c
    rho, mean = 0.1, tf.reduce_mean(code, 0)
    penalty = tf.reduce_sum(rho * tf.log(rho / mean) + (1 - rho) * tf.log((1 - rho) / (1 - mean)))
    loss = tf.reduce_mean(tf.square(decoded - flat)) + 0.01 * penalty
    train = tf.train.AdadeltaOptimizer(1.0, epsilon=1e-3).minimize(loss)
    return Training(([loss, mask], [train]), feed=feed)


@program
def variational_autoencoder():
    x, _, feed = inputs()
    flat = tf.sigmoid(tf.reshape(x, [-1, 144]))
    h = tf.layers.dense(flat, 24, tf.nn.softplus, name="encoder")
    mean, log_var = tf.layers.dense(h, 3, name="mean"), tf.layers.dense(h, 3, name="log_var")
    z = mean + tf.exp(0.5 * log_var) * tf.random_normal(tf.shape(mean))
    with tf.variable_scope("decoder"):
        logits = tf.layers.dense(tf.layers.dense(z, 24, tf.nn.softplus, name="h"), 144, name="out")
    with tf.variable_scope("decoder", reuse=True):
        sample = tf.layers.dense(tf.random_normal([2, 3]), 24, tf.nn.softplus, name="h")
        sample = tf.nn.sigmoid(tf.layers.dense(sample, 144, name="out"))
    reconstruction = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=flat, logits=logits), 1)
    divergence = -0.5 * tf.reduce_sum(1 + log_var - tf.square(mean) - tf.exp(log_var), 1)
    loss = tf.reduce_mean(reconstruction + divergence)
    train = tf.train.AdamOptimizer(0.005, epsilon=1e-4).minimize(loss)
    return Training(([loss], [train]), ([sample], []), feed=feed)


@program
def image_augmentation():
    """Random crops, flips and colors with seeds inside the graph; standardization."""
    x, y, feed = inputs(size=16, channels=3)

    def distort(image):
        image = tf.random_crop(image, [12, 12, 3], seed=1)
        image = tf.image.random_flip_left_right(image, seed=2)
        image = tf.image.random_brightness(image, 0.3, seed=3)
        image = tf.image.random_contrast(image, 0.5, 1.5, seed=4)
        image = tf.image.random_saturation(tf.clip_by_value(image, 0.0, 1.0), 0.5, 1.5, seed=5)
        image = tf.image.random_hue(image, 0.1, seed=6)
        return tf.image.per_image_standardization(image)

    # One image after the other: operators with seeds must run in a certain order.
    distorted = tf.map_fn(distort, x, parallel_iterations=1)
    h = tf.layers.conv2d(distorted, 6, 3, 2, activation=tf.nn.relu)
    loss = tf.losses.sparse_softmax_cross_entropy(y, tf.layers.dense(tf.layers.flatten(h), 4))
    train = tf.train.GradientDescentOptimizer(0.02).minimize(loss)
    return Training(([loss, distorted], [train]), feed=feed, tolerance=1e-3)


@program
def image_files():
    """Encoded images: decoding, boxes, crops, resizing with every method, drawing, encoding."""
    pixels = tf.placeholder(tf.uint8, [20, 24, 3])
    data = tf.image.encode_png(pixels)
    image = tf.image.convert_image_dtype(tf.image.decode_png(data, channels=3), tf.float32)
    image.set_shape([20, 24, 3])
    boxes = tf.constant([[[0.1, 0.1, 0.8, 0.7], [0.0, 0.3, 1.0, 1.0]]])
    crops = tf.image.crop_and_resize(image[None], boxes[0], [0, 0], [6, 6])
    central = tf.image.resize_images(tf.image.central_crop(image, 0.5), [8, 8], tf.image.ResizeMethod.BICUBIC)
    padded = tf.image.resize_image_with_crop_or_pad(image, 30, 12)
    area = tf.image.resize_images(padded, [8, 8], tf.image.ResizeMethod.AREA)
    begin, size, _ = tf.image.sample_distorted_bounding_box([20, 24, 3], boxes, seed=7, min_object_covered=0.3)
    distorted = tf.image.resize_images(tf.slice(image, begin, size), [8, 8])
    rotated = tf.image.rot90(tf.image.transpose_image(central))
    drawn = tf.image.draw_bounding_boxes(image[None], boxes)
    gray = tf.image.rgb_to_grayscale(tf.image.adjust_gamma(central + 0.1, 1.5))
    selected = tf.image.non_max_suppression(boxes[0], tf.constant([0.5, 0.9]), 2, iou_threshold=0.3)
    features = tf.concat([tf.reshape(t, [1, -1]) for t in (central, area, distorted, rotated, gray)], 1)
    features.set_shape([1, 4 * 192 + 64])
    y = tf.layers.dense(features, 1)
    loss = tf.reduce_mean(tf.square(y - tf.reduce_mean(image)) + tf.reduce_sum(crops) * 1e-3)
    train = tf.train.GradientDescentOptimizer(1e-3).minimize(loss)
    jpeg = tf.image.decode_jpeg(tf.image.encode_jpeg(pixels, quality=90))
    return Training(([loss, crops, drawn, begin, size, selected, distorted], [train]), ([tf.shape(jpeg)], []),
                    feed=lambda i: {pixels: rng(i).integers(0, 256, [20, 24, 3]).astype(np.uint8)})
