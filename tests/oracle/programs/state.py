"""Variables of all kinds, metrics, summaries, tables, seeds, savers."""
from training import *


def regression(use_resource=None):
    x, y = tf.placeholder(tf.float32, [8, 4], name="x"), tf.placeholder(tf.float32, [8, 2], name="y")
    with tf.variable_scope("regression", use_resource=use_resource):
        h = tf.layers.dense(x, 6, tf.nn.tanh, name="h")
        out = tf.layers.dense(h, 2, name="out")
    loss = tf.losses.mean_squared_error(y, out)
    return loss, out, (x, y), lambda i: {x: floats(i, 8, 4), y: floats(i, 8, 2, salt=1)}


@program
def summaries():
    """merge_all of scalars, histograms, images, audio and text."""
    loss, out, (x, _), feed = regression()
    tf.summary.scalar("loss", loss)
    tf.summary.scalar("loss", loss * 2)
    for variable in tf.trainable_variables():
        tf.summary.histogram(variable.op.name, variable.initialized_value() * 0 + tf.stop_gradient(variable) * 0 + 1)
    with tf.name_scope("outputs"):
        tf.summary.histogram("out", out)
        tf.summary.image("image", tf.reshape(x, [2, 4, 4, 1]), max_outputs=2)
        tf.summary.audio("audio", tf.tanh(tf.reshape(x, [1, 32])), 8000)
        tf.summary.text("text", tf.stack([tf.as_string(tf.shape(x)[0]), "rows"]))
        tf.summary.tensor_summary("tensor", out)
    merged = tf.summary.merge_all()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return Training(([loss, merged], []), ([], [train]), feed=feed, summaries=[merged.name])


@program
def metrics():
    """Streaming metrics with local variables, which are updated and read in separate runs."""
    labels, scores = tf.placeholder(tf.int64, [16]), tf.placeholder(tf.float32, [16])
    predicted = tf.cast(scores > 0.5, tf.int64)
    values, updates = {}, {}
    m = tf.metrics
    for name, (value, update) in {
        "accuracy": m.accuracy(labels, predicted), "precision": m.precision(labels, predicted),
        "recall": m.recall(labels, predicted), "auc": m.auc(labels, scores),
        "pr": m.auc(labels, scores, curve="PR", summation_method="careful_interpolation"),
        "mean": m.mean(scores), "iou": m.mean_iou(labels, predicted, 2),
        "per_class": m.mean_per_class_accuracy(labels, predicted, 2),
        "mse": m.mean_squared_error(tf.cast(labels, tf.float32), scores),
        "rmse": m.root_mean_squared_error(tf.cast(labels, tf.float32), scores),
        "pearson": m.mean_absolute_error(tf.cast(labels, tf.float32), scores),
        "below": m.percentage_below(scores, 0.3), "positives": m.true_positives(labels, predicted),
        "sensitivity": m.sensitivity_at_specificity(labels, scores, 0.5),
        "at_k": m.recall_at_k(labels[:, None], tf.stack([scores, 1 - scores], 1), 1),
        "precision_k": m.precision_at_k(labels[:, None], tf.stack([1 - scores, scores], 1), 1),
        "map_k": m.average_precision_at_k(labels[:, None], tf.stack([1 - scores, scores], 1), 2),
        "tensor": m.mean_tensor(tf.reshape(scores, [4, 4])), "cosine": m.mean_cosine_distance(
            tf.nn.l2_normalize(scores[None], 1), tf.nn.l2_normalize(tf.cast(labels[None] + 1, tf.float32), 1), 1),
    }.items():
        values[name], updates[name] = value, update
    confusion = tf.confusion_matrix(labels, predicted, 2)
    variable = tf.Variable(0, trainable=False)
    names = sorted(values)
    return Training(([confusion], [updates[n].op for n in names]), ([values[n] for n in names], []),
                    ([], [variable.assign_add(1)]),
                    feed=lambda i: {labels: ints(i, 2, 16), scores: rng(i).uniform(0, 1, 16)})


@each(kind=["ref", "resource"])
def assignments(kind):
    """assign, assign_add, scatter updates and slices of variables, ordered by control dependencies."""
    with tf.variable_scope("v", use_resource=kind == "resource"):
        a = tf.get_variable("a", [5, 3])
        b = tf.get_variable("b", [5, 3], initializer=tf.zeros_initializer())
        n = tf.get_variable("n", [], tf.int64, tf.zeros_initializer())
        flags = tf.get_variable("flags", [4], tf.bool, tf.zeros_initializer())
    x, rows = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.int32, [2])
    ops = [lambda: tf.scatter_update(a, rows, x), lambda: tf.scatter_add(a, rows, x * 0.5),
           lambda: tf.scatter_sub(b, rows, x), lambda: tf.scatter_mul(a, rows, 1 + 0.1 * x),
           lambda: tf.scatter_max(b, rows, x), lambda: tf.scatter_min(b, rows, x + 1),
           lambda: tf.scatter_nd_update(a, [[0, 1], [4, 2]], x[:, 0]),
           lambda: tf.scatter_nd_add(b, [[1], [2]], x), lambda: tf.assign_sub(a, 0.01 * b.read_value()),
           lambda: a[1:3, :2].assign(tf.ones([2, 2]) * x[0, 0]), lambda: n.assign_add(2), lambda: n.assign_sub(1),
           lambda: flags.assign(tf.logical_not(flags)), lambda: tf.assign(b, tf.clip_by_norm(b, 3.0))]
    previous = []
    for op in ops:
        with tf.control_dependencies(previous):
            previous = [tf.group(op())]
    return Training(([], previous), ([a, b, n, flags], []),
                    feed=lambda i: {x: floats(i, 2, 3), rows: [i % 5, (i + 2) % 5]})


@program
def partitioned_variables():
    x, y = tf.placeholder(tf.float32, [8, 10]), tf.placeholder(tf.float32, [8, 3])
    with tf.variable_scope("parts", partitioner=tf.variable_axis_size_partitioner(96)):
        w = tf.get_variable("w", [10, 9], initializer=tf.random_normal_initializer(stddev=0.2, seed=4))
    with tf.variable_scope("fixed", partitioner=tf.fixed_size_partitioner(3, axis=1), use_resource=True):
        v = tf.get_variable("v", [9, 3])
    with tf.variable_scope("parts", reuse=True, partitioner=tf.variable_axis_size_partitioner(96)):
        again = tf.get_variable("w", [10, 9])
    loss = tf.losses.mean_squared_error(y, tf.matmul(tf.nn.relu(tf.matmul(x, w) + tf.matmul(x, again)), v))
    train = tf.train.AdamOptimizer(0.02, epsilon=1e-4).minimize(loss)
    return Training(([loss], [train]), feed=lambda i: {x: floats(i, 8, 10), y: floats(i, 8, 3, salt=1)},
                    saver=tf.train.Saver(sharded=True))


@program
def dropout_and_noise_with_seeds():
    """Every random operator with seeds of operator and graph: the same numbers in each step."""
    loss, out, (x, _), feed = regression()
    shape = [3, 4]
    drawn = [
        tf.random_uniform(shape, -1, 2), tf.random_uniform(shape, seed=3), tf.random_normal(shape, 1.0, 2.0),
        tf.truncated_normal(shape, seed=5), tf.random_uniform(shape, 5, 50, tf.int32), tf.random_gamma([3], [0.5, 2.0]),
        tf.random_poisson([0.5, 20.0], [3]), tf.random_shuffle(tf.range(10), seed=2),
        tf.multinomial(tf.log([[0.2, 0.3, 0.5]]), 6, seed=1), tf.nn.dropout(tf.ones(shape), 0.6),
        tf.random.stateless_normal(shape, [1, 2]),
        tf.random.stateless_uniform(shape, [3, 4], maxval=10, dtype=tf.int32),
        tf.random_uniform(shape, maxval=7, dtype=tf.int64), tf.random_normal(shape, dtype=tf.float64),
        tf.random_normal([2, 3], dtype=tf.float16), tf.random_crop(tf.range(20), [5], seed=6),
    ]
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return Training((drawn, []), ([loss], [train]), feed=feed)


@program
def initializers():
    """Every initializer of tf.initializers, with the numbers that TensorFlow draws."""
    i = tf.initializers
    kinds = [i.random_normal(seed=1), i.random_uniform(-1, 1), i.truncated_normal(stddev=0.5), i.zeros(), i.ones(),
             i.constant(0.3), i.orthogonal(seed=3), i.glorot_normal(), i.glorot_uniform(), i.he_normal(seed=1),
             i.he_uniform(), i.lecun_normal(), i.lecun_uniform(), i.uniform_unit_scaling(),
             i.variance_scaling(2.0, "fan_avg", "untruncated_normal")]
    variables = [tf.get_variable("v%d" % n, [6, 6], initializer=kind) for n, kind in enumerate(kinds)]
    variables.append(tf.get_variable("identity", [6, 6], initializer=i.identity(0.5)))
    variables.append(tf.get_variable("conv", [3, 3, 2, 4], initializer=i.he_normal()))
    chained = tf.Variable(variables[0].initialized_value() * 2, name="chained")
    loss = tf.add_n([tf.nn.l2_loss(v) for v in variables]) + tf.nn.l2_loss(chained)
    with tf.control_dependencies([loss]):  # it reads the variables before they are updated
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return Training(([loss], [train]))


@program
def mutable_tables():
    """MutableHashTable and MutableDenseHashTable that count words; a file of words; the table is in the checkpoint."""
    words = tf.placeholder(tf.string, [5])
    lookup = tf.lookup.experimental if hasattr(tf.lookup.experimental, "MutableHashTable") else tf.lookup
    counts = lookup.MutableHashTable(tf.string, tf.int64, default_value=0)
    dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, -1.0, empty_key=-1, deleted_key=-2)
    ids = tf.string_to_hash_bucket_fast(words, 100)
    unique, _, number = tf.unique_with_counts(words)
    before = counts.lookup(unique)
    add = counts.insert(unique, before + tf.cast(number, tf.int64))
    with tf.control_dependencies([add]):
        after, size = counts.lookup(words), counts.size()
    insert = dense.insert(ids, tf.cast(ids, tf.float32) * 0.5)
    with tf.control_dependencies([insert]):
        half = dense.lookup(ids)
    step = tf.train.get_or_create_global_step()
    return Training(([after, size, half], []), ([], [step.assign_add(1)]), feed=lambda i: {
        words: np.array([b"w%d" % k for k in ints(i, 8, 5)], object)})


@program
def savers():
    """Renamed and partial savers: a subset is saved, with other names; the step counts in another saver."""
    loss, _, _, feed = regression(use_resource=True)
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.01, epsilon=1e-4).minimize(loss, step)
    with tf.device("/cpu:0"):
        saver = tf.train.Saver({"renamed/" + v.op.name: v for v in tf.global_variables()}, max_to_keep=2,
                               keep_checkpoint_every_n_hours=1.0)
        other = tf.train.Saver([step], sharded=True, name="of_step")
    assert other
    return Training(([loss], [train]), feed=feed, saver=saver)


@program
def unusual_dtypes():
    """Complex, half, bfloat16, int8 and bool variables in checkpoints and arithmetic."""
    c = tf.Variable(tf.complex(tf.random_normal([4], seed=1), tf.random_normal([4], seed=2)), name="c")
    h = tf.Variable(tf.random_normal([4], dtype=tf.float16, seed=3), name="h")
    b = tf.Variable(tf.cast(tf.random_normal([4], seed=4), tf.bfloat16), name="b")
    d = tf.Variable(tf.random_normal([4], dtype=tf.float64, seed=5), name="d")
    i8 = tf.Variable(tf.constant([1, -2, 3, 4], tf.int8), name="i8")
    u = tf.Variable(tf.constant([1, 2, 3, 4], tf.uint16), name="u")
    s = tf.Variable(["one", "two"], name="s")
    flag = tf.Variable([True, False], name="flag")
    spectrum = tf.fft(c)
    x = tf.placeholder(tf.float32, [4])
    signal = tf.cast(tf.spectral.irfft(tf.spectral.rfft(x)[:3] * 0.5), tf.float64)
    update = tf.group(c.assign(spectrum / 2.5), h.assign_add(tf.cast(x, tf.float16)), d.assign_sub(signal),
                      b.assign(tf.cast(tf.cast(b, tf.float32) + x, tf.bfloat16)), i8.assign(i8 * 3),
                      u.assign(tf.cast(tf.cast(u, tf.int32) * 7, tf.uint16)), flag.assign(tf.reverse(flag, [0])),
                      s.assign(tf.string_join([s, ["a", "b"]])))
    return Training(([], [update]), ([tf.abs(c), h, tf.cast(b, tf.float32), d, i8, u, s, flag], []),
                    feed=lambda i: {x: floats(i, 4)}, steps=6, tolerance=2e-3)


@program
def spectrogram():
    """tf.signal: frames, windows, STFT, mel filters, MFCC, and their gradients."""
    x, y = tf.placeholder(tf.float32, [3, 200]), tf.placeholder(tf.int32, [3])
    scale = tf.get_variable("scale", [200], initializer=tf.ones_initializer())
    stft = tf.signal.stft(x * scale, frame_length=32, frame_step=16, fft_length=32)
    mel = tf.signal.linear_to_mel_weight_matrix(8, 17, 8000, 100, 3500)
    power = tf.tensordot(tf.square(tf.abs(stft) + 1e-3), mel, 1)
    cepstrum = tf.signal.mfccs_from_log_mel_spectrograms(tf.log(power + 1e-3))
    inverse = tf.signal.inverse_stft(stft, 32, 16)
    loss = tf.losses.sparse_softmax_cross_entropy(y, tf.layers.dense(tf.reduce_mean(cepstrum, 1), 4))
    loss += 1e-2 * tf.reduce_mean(tf.square(inverse))
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    return Training(([loss], [train]), feed=lambda i: {x: floats(i, 3, 200), y: ints(i, 4, 3)}, tolerance=5e-4)


@program
def synchronous_replicas():
    """SyncReplicasOptimizer with one worker: accumulators and a queue of tokens. Without initial tokens a step waits
    for the update of its own gradients."""
    loss, _, _, feed = regression()
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=1,
                                               total_num_replicas=1)
    train = optimizer.minimize(loss, global_step=step)
    runner = optimizer.get_chief_queue_runner()
    tf.train.add_queue_runner(runner)
    return Training(([loss], [train]), feed=feed, setup=[optimizer.local_step_init_op, optimizer.get_init_tokens_op(0)],
                    queues=True, steps=8)
