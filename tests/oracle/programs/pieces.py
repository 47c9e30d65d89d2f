"""Optimizers with sparse gradients, losses, quantization, images, state and data that other programs do not use."""
from training import *
import tempfile
import os

OPTIMIZERS = {
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, -0.6, 0.05, 0.01, 0.01),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(1.0, 0.9, 1e-3),
    "adagrad_da": lambda: tf.train.AdagradDAOptimizer(0.1, tf.train.get_or_create_global_step(), 0.1, 0.01, 0.01),
    "proximal_adagrad": lambda: tf.train.ProximalAdagradOptimizer(0.1, 0.1, 0.01, 0.01),
    "proximal": lambda: tf.train.ProximalGradientDescentOptimizer(0.1, 0.01, 0.01),
    "centered": lambda: tf.train.RMSPropOptimizer(0.01, 0.9, 0.5, 1e-3, centered=True),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.01, epsilon=1e-3),
}


@each(name=[f"{kind}_{k}" for kind, k in zip(("ref", "resource") * 4, OPTIMIZERS)])
def sparse(name):
    """Embeddings of several partitions: IndexedSlices with repeated rows."""
    kind, name = name.split("_", 1)
    x, y = tf.placeholder(tf.int64, [None, 3]), tf.placeholder(tf.float32, [None])
    with tf.variable_scope("s", use_resource=kind == "resource", partitioner=tf.fixed_size_partitioner(2)):
        e = tf.get_variable("e", [10, 4], initializer=tf.random_normal_initializer(seed=1))
    with tf.variable_scope("t", use_resource=kind == "resource"):
        bias = tf.get_variable("bias", [10], initializer=tf.zeros_initializer())
    h = tf.reduce_sum(tf.nn.embedding_lookup(e, x, partition_strategy="div"), 1)
    out = tf.reduce_sum(h * h, 1) * 0.1 + tf.reduce_sum(tf.gather(bias, x), 1)
    loss = tf.reduce_mean((out - y) ** 2)
    train = OPTIMIZERS[name]().minimize(loss, tf.train.get_or_create_global_step())
    return Training(([loss], []), ([], [train]), feed=lambda i: {x: ints(i, 10, 6, 3, dtype=np.int64), y: floats(i,
            6)}, steps=10)


@program
def all_losses():
    x, y = tf.placeholder(tf.float32, [6, 4]), tf.placeholder(tf.float32, [6, 4])
    w = tf.get_variable("w", [4, 4], initializer=tf.initializers.orthogonal(seed=1),
                        regularizer=lambda v: 0.01 * tf.reduce_sum(tf.abs(v)))
    p = tf.matmul(x, w)
    weights = tf.abs(x[:, :1])
    label = tf.argmax(y, 1)
    L, R = tf.losses, tf.losses.Reduction
    parts = [L.absolute_difference(y, p, weights), L.huber_loss(y, p, 0.5, 0.7, reduction=R.SUM),
             L.log_loss(tf.sigmoid(y), tf.sigmoid(p), epsilon=1e-3), L.hinge_loss(tf.to_float(y > 0), p),
             L.mean_pairwise_squared_error(y, p, tf.range(6.0)[:, None]), L.mean_squared_error(y, p, weights,
                     reduction=R.SUM_OVER_NONZERO_WEIGHTS),
             L.cosine_distance(tf.nn.l2_normalize(y, 1), tf.nn.l2_normalize(p, 1), axis=1),
             L.softmax_cross_entropy(tf.nn.softmax(y), p, weights[:, 0], 0.1), L.sparse_softmax_cross_entropy(label, p),
             L.sigmoid_cross_entropy(tf.sigmoid(y), p, label_smoothing=0.2),
             L.compute_weighted_loss((y - p) ** 2, weights, reduction=R.SUM_OVER_BATCH_SIZE)]
    tf.add_to_collection(tf.GraphKeys.LOSSES, 0.01 * tf.nn.l2_loss(w))
    logits = tf.nn.log_softmax(p)
    kl = tf.reduce_sum(tf.nn.softmax(y) * (tf.nn.log_softmax(y) - logits))
    e = tf.nn.l2_normalize(p, 1)
    pair = tf.matmul(e, e, transpose_b=True)
    same = tf.equal(label[:, None], label[None])
    eye = tf.eye(6, dtype=tf.bool)
    hard = tf.reduce_max(tf.where(same & ~eye, 1 - pair, tf.zeros_like(pair)), 1) - tf.reduce_min(
        tf.where(same, tf.fill(tf.shape(pair), 9.0), 1 - pair), 1)
    center = tf.get_variable("center", [4, 4], initializer=tf.zeros_initializer(), trainable=False)
    unique, _, count = tf.unique_with_counts(label)
    move = tf.scatter_sub(center, label, 0.1 * (tf.gather(center, label) - tf.stop_gradient(p)))
    arc = tf.cos(tf.acos(tf.clip_by_value(pair, -0.99, 0.99)) + 0.1)
    loss = tf.losses.get_total_loss() + 0.1 * kl + tf.reduce_mean(tf.nn.relu(hard + 0.2)) + 0.1 * tf.reduce_mean(
        tf.square(p - tf.gather(tf.stop_gradient(center), label))) + 0.1 * tf.reduce_mean(arc)
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    return Training(([loss, kl, hard, count] + parts, []), ([], [train]), ([], [move]),
                    feed=lambda i: {x: floats(i, 6, 4), y: floats(i, 6, 4, salt=1)})


@program
def quantization_aware_training():
    x, y = tf.placeholder(tf.float32, [None, 8, 8, 2]), tf.placeholder(tf.int32, [None])
    w = tf.get_variable("w", [3, 3, 2, 4], initializer=tf.glorot_uniform_initializer(seed=1))
    low = tf.get_variable("low", [4], initializer=tf.constant_initializer(-0.5), trainable=False)
    high = tf.get_variable("high", [4], initializer=tf.constant_initializer(0.5), trainable=False)
    h = tf.nn.relu6(tf.nn.conv2d(x, tf.quantization.fake_quant_with_min_max_vars_per_channel(w, low, high,
            narrow_range=True), 1, "SAME"))
    top = tf.get_variable("top", [], initializer=tf.constant_initializer(3.0))
    h = tf.quantization.fake_quant_with_min_max_vars(h, 0.0, top, num_bits=4)
    h = tf.quantization.fake_quant_with_min_max_args(h, 0, 6)
    d = tf.quantization.quantize_and_dequantize(h, 0.0, 6.0, range_given=True, round_mode="HALF_UP")
    d += 0.1 * tf.quantization.quantize_and_dequantize_v2(h, -1.0, 1.0, num_bits=6, axis=None, narrow_range=True)
    logits = tf.layers.dense(tf.reduce_mean(d, [1, 2]), 3)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    q, a, b = tf.quantization.quantize(h, 0.0, 6.0, tf.quint8)
    back = tf.quantization.dequantize(q, a, b)
    q8, a8, b8 = tf.quantization.quantize(h, -6.0, 6.0, tf.qint8, mode="SCALED", round_mode="HALF_TO_EVEN")
    track = [low.assign(0.9 * low + 0.1 * tf.reduce_min(w, [0, 1, 2])),
            high.assign(0.9 * high + 0.1 * tf.reduce_max(w, [0, 1, 2]))]
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return Training(([loss, back, a, b, tf.cast(q, tf.int32), tf.cast(q8, tf.int32)], []), ([], [train]), ([], track),
                    feed=lambda i: {x: floats(i, 4, 8, 8, 2), y: ints(i, 3, 4)})


@program
def image_chain():
    image = tf.placeholder(tf.uint8, [2, 12, 14, 3])
    y = tf.placeholder(tf.float32, [2])
    x = tf.image.convert_image_dtype(image, tf.float32)
    k = tf.train.get_or_create_global_step()
    x = tf.map_fn(lambda v: tf.image.random_flip_left_right(tf.random_crop(v, [10, 10, 3], seed=1), seed=2), x,
                  parallel_iterations=1)
    x = tf.image.random_hue(tf.image.random_saturation(x, 0.6, 1.4, seed=3), 0.1, seed=4)
    x = tf.image.random_contrast(tf.image.random_brightness(x, 0.2, seed=5), 0.7, 1.3, seed=6)
    x = tf.clip_by_value(tf.image.rot90(tf.image.adjust_gamma(tf.clip_by_value(x, 0.01, 1.0), 0.8), 3), 0, 1)
    yuv = tf.image.yuv_to_rgb(tf.image.rgb_to_yuv(x)) + 0.1 * tf.image.yiq_to_rgb(tf.image.rgb_to_yiq(x))
    hsv = tf.image.rgb_to_hsv(x)
    gray = tf.image.grayscale_to_rgb(tf.image.rgb_to_grayscale(tf.image.hsv_to_rgb(hsv)))
    z = tf.image.per_image_standardization(yuv + gray)
    z = tf.image.resize_bicubic(tf.image.central_crop(z, 0.8), [7, 7]) + tf.image.resize_area(z, [7, 7])
    p = tf.image.pad_to_bounding_box(tf.image.flip_up_down(tf.image.transpose(z)), 1, 1, 9, 9)
    p = tf.image.crop_to_bounding_box(p, 0, 0, 8, 8)
    w = tf.get_variable("w", [8 * 8 * 3, 1], initializer=tf.glorot_normal_initializer(seed=1))
    v = tf.get_variable("v", [1, 10, 10, 3], initializer=tf.random_uniform_initializer(0.2, 0.8, seed=3))
    ssim = tf.image.ssim(v + 0 * x, x, 1.0, filter_size=5)
    psnr = tf.image.psnr(v + 0 * x, x, 1.0)
    out = tf.matmul(tf.reshape(p, [2, -1]), w)[:, 0]
    loss = tf.reduce_mean((out - y) ** 2) - tf.reduce_mean(ssim) - 0.01 * tf.reduce_mean(psnr)
    begin, size, boxes = tf.image.sample_distorted_bounding_box([12, 14, 3], tf.constant([[[0.1, 0.1, 0.8, 0.9]]]),
            seed=7, min_object_covered=0.3)
    part = tf.slice(image[0], begin, size)
    encoded = tf.io.decode_png(tf.io.encode_png(image[0]))
    jpeg = tf.io.decode_jpeg(tf.io.encode_jpeg(image[1], quality=90), dct_method="INTEGER_ACCURATE")
    quality = tf.image.adjust_jpeg_quality(x[0], 70)
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, k)
    return Training(([loss, hsv, tf.shape(part), boxes, encoded, tf.reduce_mean(tf.to_float(jpeg)),
            tf.reduce_mean(quality), z], []), ([], [train]),
                    feed=lambda i: {image: ints(i, 256, 2, 12, 14, 3, dtype=np.uint8), y: floats(i, 2)}, tolerance=5e-4)


@program
def stateless_and_stateful_numbers():
    k = tf.train.get_or_create_global_step()
    seed = tf.stack([tf.cast(k, tf.int32), 7])
    w = tf.get_variable("w", [4], initializer=tf.initializers.truncated_normal(seed=1))
    s = tf.random
    stateless = [s.stateless_uniform([3], seed), s.stateless_normal([3], seed, dtype=tf.float64),
            s.stateless_truncated_normal([3], seed),
                 s.stateless_uniform([3], seed, 0, 10, tf.int32), s.stateless_categorical(tf.math.log([[0.2, 0.8]]),
                         4, seed),
                 s.stateless_gamma([3], seed, alpha=[0.5, 1.5, 3.0]), s.stateless_poisson([3], seed, [1.0, 5.0, 20.0],
                         tf.int32),
                 s.stateless_binomial([3], seed, [5.0, 10.0, 20.0], [0.2, 0.5, 0.7])]
    stateful = [s.gamma([3], [1.0, 2.0], seed=1), s.poisson([1.0, 9.0], [3], seed=2), s.shuffle(tf.range(9), seed=3),
                s.uniform([3], 0, 100, tf.int64, seed=4), s.truncated_normal([3], seed=5), tf.multinomial([[0.1,
                        0.4]], 5, seed=6),
                s.log_uniform_candidate_sampler([[1, 2]], 2, 4, True, 20, seed=7)[0]]
    g = s.gamma([], tf.nn.softplus(w), seed=8)
    loss = tf.reduce_mean(g) + tf.reduce_mean(w**2) + 0.1 * tf.reduce_mean(stateless[0]) * tf.reduce_sum(w)
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss, k)
    return Training(([loss] + stateless + stateful, []), ([], [train]), steps=6)


@program
def random_generator():
    g = tf.random.Generator.from_seed(3, alg="philox")
    other = tf.random.Generator.from_state([1, 2, 3], alg="philox")
    w = tf.get_variable("w", [4], initializer=tf.zeros_initializer())
    values = [g.normal([3])]
    with tf.control_dependencies(values):
        values += [g.uniform([3], 0, 9, tf.int32)]
    with tf.control_dependencies(values):
        values += [g.truncated_normal([4]), other.uniform([2], dtype=tf.float64)]
    with tf.control_dependencies(values):
        values += [g.uniform_full_int([2], tf.int64), other.normal([2])]
    with tf.control_dependencies(values):
        values += [g.make_seeds(2)]
    train = w.assign_add(0.1 * values[2])
    return Training((values, [train]), steps=5)


@program
def queue_of_sparse_examples():
    """tf.train.batch of sparse tensors: they travel as handles of a map."""
    from tensorflow.core.example import example_pb2
    directory = tempfile.mkdtemp()
    path = os.path.join(directory, "sparse.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(12):
            e = tf.train.Example()
            e.features.feature["ids"].int64_list.value.extend(range(i % 4))
            e.features.feature["values"].float_list.value.extend([0.5 * k for k in range(i % 4)])
            e.features.feature["label"].int64_list.value.append(i % 3)
            writer.write(e.SerializeToString())
    reader = tf.TFRecordReader()
    _, record = reader.read(tf.train.string_input_producer([path], shuffle=False))
    f = tf.parse_single_example(record, {"s": tf.SparseFeature("ids", "values", tf.float32, 5),
                                         "label": tf.FixedLenFeature([], tf.int64), "ids": tf.VarLenFeature(tf.int64)})
    batch = tf.train.batch([f["s"], f["ids"], f["label"]], 4, num_threads=1, capacity=16)
    w = tf.get_variable("w", [5, 3], initializer=tf.glorot_uniform_initializer(seed=1))
    logits = tf.sparse_tensor_dense_matmul(batch[0], w)
    loss = tf.losses.sparse_softmax_cross_entropy(batch[2], logits)
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    return Training(([loss, batch[1].values, batch[1].dense_shape], [train]), queues=True)


@program
def critical_sections_and_handles():
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer(), use_resource=True)
    c = tf.get_variable("c", [], initializer=tf.ones_initializer(), use_resource=True)
    section = tf.CriticalSection(name="section", shared_name="section")

    def body(k):
        with tf.control_dependencies([v.assign_add(float(k))]):
            with tf.control_dependencies([c.assign(c.read_value() * 1.1)]):
                return v.read_value() * 0 + 1.0
    runs = [section.execute(lambda k=k: body(k)) for k in range(4)]
    return Training((runs, []), ([v, c], []), steps=5)


@program
def ragged_tensors():
    x = tf.placeholder(tf.int32, [5])
    r = tf.ragged.range(x)
    w = tf.get_variable("w", [10, 3], initializer=tf.random_normal_initializer(seed=1))
    e = tf.ragged.map_flat_values(lambda v: tf.gather(w, v), r)
    dense = e.to_tensor(default_value=0.5)
    mean = tf.reduce_mean(e, axis=1)
    mean = tf.where(tf.math.is_nan(mean), tf.zeros_like(mean), mean)
    scaled = (e * 2.0 + 1.0).to_tensor(shape=[None, 4, 3])
    joined = tf.concat([r, r + 1], axis=1)
    stacked = tf.stack([r, r], axis=0)
    picked = tf.gather(r, [0, 3, 1])
    nd = tf.ragged.boolean_mask(r, r > 1)
    back = tf.RaggedTensor.from_tensor(dense[..., 0], padding=0.5)
    sparse_ = r.to_sparse()
    loss = tf.reduce_sum(dense**2) * 0.01 + tf.reduce_sum(mean) + tf.reduce_mean(scaled)
    train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    fetch = [loss, joined.values, joined.row_splits, stacked.flat_values, picked.values, nd.values, back.values,
            sparse_.indices,
             r.bounding_shape(), r.row_lengths(), r.value_rowids(),
             tf.size(r), tf.ragged.row_splits_to_segment_ids(r.row_splits)]
    return Training((fetch, []), ([], [train]), feed=lambda i: {x: ints(i, 6, 5) + (i == 0)})


@program
def sparse_matrices():
    a = tf.sparse.from_dense(tf.constant((np.abs(floats(0, 5, 5)) > 0.8) * floats(0, 5, 5)))
    w = tf.get_variable("w", [5, 2], initializer=tf.random_normal_initializer(seed=1))
    x = tf.placeholder(tf.float32, [5, 5])
    s = tf.sparse.from_dense(x)
    both = tf.sparse.add(a, s)
    top = tf.sparse.maximum(a, s)
    cat = tf.sparse.concat(1, [a, s])
    halves = tf.sparse.split(sp_input=cat, num_split=2, axis=1)
    reshaped = tf.sparse.reshape(tf.sparse.transpose(cat), [5, 10])
    cut = tf.sparse.slice(cat, [1, 1], [3, 6])
    filled, empty = tf.sparse.fill_empty_rows(tf.sparse.retain(a, a.values > 0), 7.0)
    soft = tf.sparse.softmax(both)
    dense = tf.sparse.sparse_dense_matmul(soft, w)
    dense += tf.sparse.sparse_dense_matmul(both, w, adjoint_a=True)
    scaled = s * w[:, :1]
    loss = tf.reduce_mean(dense**2) + tf.sparse.reduce_sum(scaled) * 0.1 + tf.reduce_sum(tf.sparse.to_dense(top)) * 0.01
    loss += 0.01 * tf.reduce_sum(w**2)
    ids = tf.sparse.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([1, 3, 2], tf.int64), [4, 2])
    safe = tf.nn.safe_embedding_lookup_sparse([w], ids, None, "mean", default_id=0)
    loss += tf.reduce_mean(safe**2)
    u = tf.sets.union(tf.constant([[1, 2], [3, 4]]), tf.constant([[2, 5], [3, 4]]))
    n = tf.sets.size(tf.sets.difference(tf.constant([[1, 2], [3, 4]]), tf.constant([[2, 5], [3, 4]])))
    cross = tf.sparse.cross_hashed([tf.constant([["a"], ["b"]]), tf.constant([["c"], ["d"]])], 20)
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
    return Training(([loss, halves[1].values, reshaped.indices, cut.values, filled.values, empty, u.values, n,
            cross.values,
                      tf.sparse.to_indicator(ids, 5)], []), ([], [train]), feed=lambda i: {x: (rng(i).uniform(size=(5,
                              5)) < 0.4) * floats(i, 5, 5)})


@program
def jacobians_and_vectorized_maps():
    x = tf.placeholder(tf.float32, [3, 4])
    w = tf.get_variable("w", [4, 2], initializer=tf.random_normal_initializer(seed=1), use_resource=True)
    y = tf.tanh(tf.matmul(x, w))
    from tensorflow.python.ops.parallel_for import gradients
    j = gradients.jacobian(y, w)
    b = gradients.batch_jacobian(y, x)
    v = tf.vectorized_map(lambda a: tf.reduce_sum(tf.linalg.matvec(w, a, transpose_a=True) ** 2), x)
    loss = tf.reduce_sum(b**2) + tf.reduce_mean(v)
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = tf.reduce_sum(tf.sin(x) * tf.matmul(y, w, transpose_b=True))
    slope = tape.gradient(z, x)
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    return Training(([loss, j, slope, tf.gradients(slope, w)[0]], []), ([], [train]), feed=lambda i: {x: floats(i, 3,
            4)})


@each(dtype=["float16", "bfloat16", "float64"])
def other_precisions(dtype):
    kind = tf.as_dtype(dtype)
    x, y = tf.placeholder(tf.float32, [4, 6, 6, 2]), tf.placeholder(tf.int32, [4])

    def getter(getter, *args, dtype=None, trainable=True, **kw):
        v = getter(*args, dtype=tf.float32 if kind != tf.float64 else kind, trainable=trainable, **kw)
        return tf.cast(v, kind) if kind != tf.float64 else v
    with tf.variable_scope("m", custom_getter=getter):
        h = tf.cast(x, kind)
        w = tf.get_variable("w", [3, 3, 2, 4], initializer=tf.glorot_uniform_initializer(seed=1,
                dtype=tf.float32 if kind != tf.float64 else kind))
        h = tf.nn.leaky_relu(tf.nn.conv2d(h, w, [1, 1, 1, 1], "SAME"))
        h = tf.nn.max_pool2d(h, 2, 2, "SAME")
        d = tf.get_variable("d", [36, 3], initializer=tf.zeros_initializer())
        logits = tf.matmul(tf.reshape(h, [4, 36]), d)
    logits = tf.cast(logits, tf.float32)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
    return Training(([loss], []), ([], [train]), feed=lambda i: {x: floats(i, 4, 6, 6, 2), y: ints(i, 3, 4)}, steps=8,
                    tolerance=1e-4 if dtype == "float64" else 1e-2)
