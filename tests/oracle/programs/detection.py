"""Object detection and segmentation: anchors, boxes, regions, masks."""
from training import *


def iou(a, b):
    top = tf.maximum(a[:, None, :2], b[None, :, :2])
    bottom = tf.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = tf.reduce_prod(tf.maximum(bottom - top, 0), -1)
    area = lambda x: tf.reduce_prod(x[:, 2:] - x[:, :2], -1)
    return inter / (area(a)[:, None] + area(b)[None] - inter + 1e-6)


def boxes(step, *shape):
    r = rng(step, 50)
    corner = r.uniform(0, 0.6, (*shape, 2))
    return np.concatenate([corner, corner + r.uniform(0.1, 0.4, (*shape, 2))], -1).astype(np.float32)


def trunk(x, widths=(8, 8)):
    for i, width in enumerate(widths):
        x = tf.layers.conv2d(x, width, 3, 2, "same", activation=tf.nn.relu, name=f"conv{i}",
                             kernel_initializer=tf.initializers.he_normal(seed=i))
    return x


@program
def single_shot_detector():
    """Matching of anchors, hard negative mining, smooth L1, and suppressed predictions."""
    image, truth = tf.placeholder(tf.float32, [2, 16, 16, 3]), tf.placeholder(tf.float32, [2, 3, 4])
    label = tf.placeholder(tf.int32, [2, 3])
    f = trunk(image)
    y, x = tf.meshgrid(tf.linspace(0.125, 0.875, 4), tf.linspace(0.125, 0.875, 4), indexing="ij")
    centers = tf.reshape(tf.stack([y, x], -1), [-1, 1, 2])
    half = tf.constant([[0.15, 0.15], [0.2, 0.1]])[None]
    anchors = tf.reshape(tf.concat([centers - half, centers + half], -1), [-1, 4])
    out = tf.reshape(tf.layers.conv2d(f, 2 * (4 + 4), 3, padding="same"), [2, 32, 8])
    deltas, logits = tf.split(out, [4, 4], -1)

    def match(inputs):
        box, kind = inputs
        overlap = iou(anchors, box)
        best = tf.argmax(overlap, 1)
        positive = tf.reduce_max(overlap, 1) > 0.3
        forced = tf.argmax(overlap, 0, output_type=tf.int32)
        positive |= tf.scatter_nd(forced[:, None], tf.ones([3], tf.int32), [32]) > 0
        kinds = tf.where(positive, tf.gather(kind, best) + 1, tf.zeros([32], tf.int32))
        return tf.gather(box, best) - anchors, kinds
    target, kinds = tf.map_fn(match, (truth, label), dtype=(tf.float32, tf.int32))
    positive = tf.cast(kinds > 0, tf.float32)
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=kinds, logits=logits)
    count = tf.cast(tf.minimum(3 * tf.reduce_sum(positive, 1), 20), tf.int32)
    hard, order = tf.nn.top_k(entropy * (1 - positive), 32)
    negative = tf.reduce_sum(hard * tf.sequence_mask(count, 32, tf.float32))
    delta = tf.abs(deltas - target)
    smooth = tf.where(delta < 1, 0.5 * delta**2, delta - 0.5)
    loss = tf.reduce_sum(entropy * positive) + negative + tf.reduce_sum(smooth * positive[..., None])
    loss /= tf.reduce_sum(positive)
    train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
    scores = tf.reduce_max(tf.nn.softmax(logits)[..., 1:], -1)
    keep = tf.image.non_max_suppression(anchors + 0.1 * deltas[0], scores[0], 5, 0.4, 0.1)
    padded = tf.image.non_max_suppression_padded(anchors, scores[1], 6, 0.5, pad_to_max_output_size=True)
    soft = tf.image.non_max_suppression_with_scores(anchors, scores[0], 6, 0.6, 0.05, soft_nms_sigma=0.5)
    combined = tf.image.combined_non_max_suppression(tf.tile(anchors[None, :, None], [2, 1, 1, 1]),
                                                     tf.nn.softmax(logits)[..., 1:], 4, 6, 0.5, 0.2)
    drawn = tf.image.draw_bounding_boxes(image, truth, colors=[[1.0, 0.0, 0.0]])
    return Training(([loss, keep, padded, soft, combined, drawn, order[:, 0]], [train]),
                    feed=lambda i: {image: floats(i, 2, 16, 16, 3), truth: boxes(i, 2, 3), label: ints(i, 3, 2, 3)})


@program
def region_network():
    """Proposals, crops of them, and two heads; gradients to the boxes and to the features."""
    image, truth = tf.placeholder(tf.float32, [1, 16, 16, 3]), tf.placeholder(tf.float32, [4, 4])
    label = tf.placeholder(tf.int32, [4])
    f = trunk(image)
    score = tf.reshape(tf.layers.conv2d(f, 1, 1, name="score"), [-1])
    delta = tf.reshape(tf.layers.conv2d(f, 4, 1, name="delta"), [-1, 4]) * 0.1
    y, x = tf.meshgrid(tf.range(4.0), tf.range(4.0), indexing="ij")
    corner = tf.reshape(tf.stack([y, x], 2), [-1, 2]) / 4
    proposals = tf.clip_by_value(tf.concat([corner, corner + 0.3], 1) + delta, 0.0, 1.0)
    chosen = tf.image.non_max_suppression(tf.stop_gradient(proposals), tf.stop_gradient(score), 6, 0.7)
    picked = tf.gather(proposals, chosen)
    overlap = iou(tf.stop_gradient(picked), truth)
    best = tf.argmax(overlap, 1)
    regions = tf.image.crop_and_resize(f, picked, tf.zeros_like(chosen), [4, 4])
    regions = tf.nn.max_pool2d(regions, 2, 2, "VALID")
    near = tf.image.crop_and_resize(f, picked, tf.zeros_like(chosen), [2, 2], method="nearest", extrapolation_value=0.1)
    h = tf.layers.dense(tf.concat([tf.layers.flatten(regions), tf.layers.flatten(near)], 1), 10, tf.nn.relu)
    logits, refine = tf.layers.dense(h, 4), tf.layers.dense(h, 4)
    foreground = tf.reduce_max(overlap, 1) > 0.2
    kinds = tf.where(foreground, tf.gather(label, best) + 1, tf.zeros_like(best, tf.int32))
    loss = tf.losses.sparse_softmax_cross_entropy(kinds, logits)
    rows = tf.where(foreground)[:, 0]
    wanted = tf.gather(truth, tf.gather(best, rows)) - tf.gather(picked, rows)
    error = tf.gather(refine, rows) - wanted
    loss += tf.cond(tf.size(rows) > 0, lambda: tf.reduce_mean(tf.abs(error)), lambda: 0.0)
    loss += 0.1 * tf.reduce_mean(tf.nn.weighted_cross_entropy_with_logits(
        tf.cast(tf.reduce_max(iou(tf.stop_gradient(proposals), truth), 1) > 0.2, tf.float32), score, 2.0))
    optimizer = tf.train.MomentumOptimizer(0.02, 0.9)
    pairs = [(tf.clip_by_norm(g, 1.0), v) for g, v in optimizer.compute_gradients(loss) if g is not None]
    train = optimizer.apply_gradients(pairs)
    return Training(([loss, picked, kinds, rows], [train]),
                    feed=lambda i: {image: floats(i, 1, 16, 16, 3), truth: boxes(i, 4), label: ints(i, 3, 4)})


@program
def grid_detector():
    """A cell predicts boxes, objectness and a class; features of two resolutions are joined by space_to_depth."""
    image, truth = tf.placeholder(tf.float32, [2, 16, 16, 3]), tf.placeholder(tf.float32, [2, 4])
    kind = tf.placeholder(tf.int32, [2])
    early = trunk(image, (8,))
    late = tf.layers.conv2d(early, 8, 3, 2, "same", activation=tf.nn.leaky_relu)
    f = tf.concat([tf.space_to_depth(early, 2), late], 3)
    out = tf.layers.conv2d(f, 2 * (5 + 3), 1)
    out = tf.reshape(out, [2, 4, 4, 2, 8])
    xy, wh, conf, cls = tf.split(out, [2, 2, 1, 3], 4)
    offset = tf.stack(tf.meshgrid(tf.range(4.0), tf.range(4.0)), -1)[None, :, :, None]
    center, size = (tf.sigmoid(xy) + offset) / 4, tf.exp(tf.minimum(wh, 3.0)) * tf.constant([[0.2, 0.2], [0.4, 0.3]])
    cell = tf.cast(tf.floor((truth[:, :2] + truth[:, 2:]) * 2), tf.int32)
    index = tf.stack([tf.range(2), cell[:, 1], cell[:, 0], tf.cast(truth[:, 2] - truth[:, 0] > 0.25, tf.int32)], 1)
    mask = tf.scatter_nd(index, tf.ones([2]), [2, 4, 4, 2])
    pc, ps = tf.gather_nd(center, index), tf.gather_nd(size, index)
    loss = tf.reduce_sum((pc - (truth[:, :2] + truth[:, 2:]) / 2) ** 2)
    loss += tf.reduce_sum((tf.sqrt(ps) - tf.sqrt(truth[:, 2:] - truth[:, :2])) ** 2)
    entropy = tf.nn.sigmoid_cross_entropy_with_logits(labels=mask, logits=conf[..., 0])
    loss += tf.reduce_sum(tf.where(mask > 0, entropy, 0.1 * entropy))
    loss += tf.reduce_sum(tf.boolean_mask(tf.nn.softmax_cross_entropy_with_logits_v2(
        labels=tf.tile(tf.one_hot(kind, 3)[:, None, None, None], [1, 4, 4, 2, 1]), logits=cls), mask > 0))
    train = tf.train.AdamOptimizer(0.003, epsilon=1e-4).minimize(loss)
    return Training(([loss, tf.reduce_max(tf.sigmoid(conf))], [train]),
                    feed=lambda i: {image: floats(i, 2, 16, 16, 3), truth: boxes(i, 2), kind: ints(i, 3, 2)})


@program
def atrous_segmentation():
    """Pyramid of dilated convolutions, image pooling, bilinear upsampling, focal and Dice losses, mean IoU."""
    image, label = tf.placeholder(tf.float32, [2, 16, 16, 3]), tf.placeholder(tf.int32, [2, 16, 16])
    f = trunk(image, (8,))
    parts = [tf.layers.conv2d(f, 4, 1)]
    for rate in (2, 3):
        w = tf.get_variable(f"atrous{rate}", [3, 3, 8, 4], initializer=tf.glorot_uniform_initializer(seed=rate))
        parts.append(tf.nn.atrous_conv2d(f, w, rate, "SAME"))
    depth = tf.get_variable("depth", [3, 3, 8, 1], initializer=tf.glorot_uniform_initializer(seed=9))
    point = tf.get_variable("point", [1, 1, 8, 4], initializer=tf.glorot_uniform_initializer(seed=8))
    parts.append(tf.nn.separable_conv2d(f, depth, point, [1, 1, 1, 1], "SAME", rate=[2, 2]))
    pooled = tf.layers.conv2d(tf.reduce_mean(f, [1, 2], keepdims=True), 4, 1)
    parts.append(tf.image.resize_bilinear(pooled, tf.shape(f)[1:3], align_corners=True))
    x = tf.nn.relu(tf.layers.batch_normalization(tf.concat(parts, 3), training=True, fused=True, renorm=False))
    x = tf.layers.conv2d(x, 3, 1)
    logits = tf.image.resize_images(x, [16, 16], align_corners=True)
    p = tf.nn.softmax(logits)
    hot = tf.one_hot(label, 3)
    focal = -tf.reduce_mean(hot * (1 - p) ** 2 * tf.math.log(p + 1e-6))
    dice = 1 - (2 * tf.reduce_sum(p * hot, [1, 2]) + 1) / (tf.reduce_sum(p + hot, [1, 2]) + 1)
    loss = focal + tf.reduce_mean(dice) + tf.losses.sparse_softmax_cross_entropy(label, logits,
            weights=tf.to_float(label < 2))
    miou, update = tf.metrics.mean_iou(label, tf.argmax(logits, 3), 3)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.MomentumOptimizer(tf.train.polynomial_decay(0.05, 0, 30, power=0.9), 0.9).minimize(loss)
    return Training(([loss, update], [train]), ([miou], []),
                    feed=lambda i: {image: floats(i, 2, 16, 16, 3), label: ints(i, 3, 2, 16, 16)})


@program
def u_network():
    image, label = tf.placeholder(tf.float32, [None, 16, 16, 1]), tf.placeholder(tf.float32, [None, 16, 16, 1])
    x, skips = image, []
    for width in (4, 8):
        x = tf.layers.conv2d(x, width, 3, padding="same", activation=tf.nn.elu)
        skips.append(x)
        x, where = tf.nn.max_pool_with_argmax(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    x = tf.layers.dropout(tf.layers.conv2d(x, 8, 3, padding="same", activation=tf.nn.elu), 0.2, seed=3, training=True)
    for width, skip in zip((8, 4), reversed(skips)):
        x = tf.layers.conv2d_transpose(x, width, 2, 2, padding="same")
        x = tf.concat([x, tf.image.resize_with_crop_or_pad(skip, int(skip.shape[1]), int(skip.shape[2]))], -1)
        x = tf.layers.conv2d(x, width, 3, padding="same", activation=tf.nn.elu)
    logits = tf.layers.conv2d(x, 1, 1)
    loss = tf.losses.sigmoid_cross_entropy(label, logits, label_smoothing=0.1)
    p = tf.sigmoid(logits)
    loss += 1 - tf.reduce_sum(p * label) / (tf.reduce_sum(p) + tf.reduce_sum(label) - tf.reduce_sum(p * label) + 1)
    edges = tf.reduce_mean(tf.abs(tf.image.sobel_edges(p))) * 0.01
    dy, dx = tf.image.image_gradients(p)
    loss += edges + 0.01 * tf.reduce_mean(tf.abs(dy) + tf.abs(dx))
    train = tf.train.AdamOptimizer(0.003, epsilon=1e-4).minimize(loss)

    def feed(i):
        m = ints(i, 2, 3, 16, 16, 1).astype(np.float32)
        return {image: m + 0.3 * floats(i, 3, 16, 16, 1), label: m}
    return Training(([loss, where], [train]), feed=feed, tolerance=3e-4)
