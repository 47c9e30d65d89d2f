"""Idioms of real programs: models of repositories of 2016 to 2019, in small."""
from training import *
import os
import tempfile


def adam(loss, rate=0.01, **more):
    return tf.train.AdamOptimizer(rate, epsilon=1e-3).minimize(loss, **more)


@each(v2=[False, True])
def wavenet(v2):
    """Gated residual layers of dilated causal convolutions by time_to_batch, generation with a queue per layer."""
    if v2:
        tf.enable_control_flow_v2()
    else:
        tf.disable_control_flow_v2()
    x = tf.placeholder(tf.int32, [2, 16])
    hot = tf.one_hot(x, 8)
    h = tf.layers.conv1d(hot, 6, 1)

    def causal(v, w, dilation):
        v = tf.pad(v, [[0, 0], [dilation * (int(w.shape[0]) - 1), 0], [0, 0]])
        pad = (-tf.shape(v)[1]) % dilation
        v = tf.pad(v, [[0, 0], [0, pad], [0, 0]])
        r = tf.reshape(tf.transpose(tf.reshape(v, [-1, dilation, 6]), [1, 0, 2]), [tf.shape(v)[0] * dilation, -1, 6])
        r = tf.nn.conv1d(r, w, stride=1, padding="VALID")
        r = tf.reshape(tf.transpose(tf.reshape(r, [dilation, -1, 6]), [1, 0, 2]), [2, -1, 6])
        return r[:, :16]
    skips = 0.0
    for i, dilation in enumerate((1, 2, 4)):
        init = tf.glorot_uniform_initializer(seed=i)
        f, g = (tf.get_variable(f"{k}{i}", [2, 6, 6], initializer=init) for k in "fg")
        z = tf.tanh(causal(h, f, dilation)) * tf.sigmoid(causal(h, g, dilation))
        skips += tf.layers.conv1d(z, 6, 1)
        h += tf.layers.conv1d(z, 6, 1)
    logits = tf.layers.conv1d(tf.nn.relu(skips), 8, 1)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=x[:, 1:], logits=logits[:, :-1]))
    q = tf.FIFOQueue(4, tf.float32, [2, 6])
    fill = q.enqueue_many(tf.zeros([3, 2, 6]))
    oldest = q.dequeue()
    push = q.enqueue(h[:, -1] + 0 * oldest)
    with tf.control_dependencies([push]):
        size = q.size()
    train = adam(loss)
    tf.disable_control_flow_v2()
    return Training(([loss], []), ([oldest, size], []), ([], [train]), feed=lambda i: {x: ints(i, 8, 2, 16)}, setup=[fill])


@program
def skip_thoughts():
    """Two decoders from one encoder, shared embeddings, masks that are sums of sequence ends."""
    e = tf.get_variable("e", [15, 6], initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=1))
    sent = [tf.placeholder(tf.int32, [3, None], n) for n in ("pre", "cur", "post")]
    masks = [tf.to_float(tf.not_equal(s, 0)) for s in sent]
    cell = tf.nn.rnn_cell.GRUCell(8, kernel_initializer=tf.random_uniform_initializer(-0.3, 0.3, seed=2))
    length = tf.to_int32(tf.reduce_sum(masks[1], 1))
    _, thought = tf.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(e, sent[1]), length, dtype=tf.float32, scope="enc")
    total = []
    for name, s, m in (("pre", sent[0], masks[0]), ("post", sent[2], masks[2])):
        shifted = tf.pad(tf.nn.embedding_lookup(e, s)[:, :-1], [[0, 0], [1, 0], [0, 0]])
        with tf.variable_scope(name) as scope:
            c = tf.nn.rnn_cell.GRUCell(8)
            out, _ = tf.nn.dynamic_rnn(c, shifted, tf.to_int32(tf.reduce_sum(m, 1)), thought, scope=scope)
        with tf.variable_scope("logits", reuse=tf.AUTO_REUSE):
            logits = tf.layers.dense(tf.reshape(out, [-1, 8]), 15, name="w")
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(s, [-1]), logits=logits)
        weight = tf.reshape(m, [-1])
        total.append(tf.reduce_sum(losses * weight))
        tf.losses.add_loss(tf.reduce_sum(losses * weight) / tf.reduce_sum(weight))
    loss = tf.losses.get_total_loss()
    step = tf.train.create_global_step()
    rate = tf.train.exponential_decay(0.02, step, 5, 0.5, staircase=True)
    optimizer = tf.train.AdamOptimizer(rate, epsilon=1e-3)
    grads, names = zip(*optimizer.compute_gradients(loss))
    grads, norm = tf.clip_by_global_norm(grads, 1.0)
    train = optimizer.apply_gradients(zip(grads, names), step)

    def feed(i):
        return {s: np.where(np.arange(5 + k) < ints(i, 5, 3, 1, salt=k) + 1, ints(i, 14, 3, 5 + k, salt=k + 5) + 1, 0)
                for k, s in enumerate(sent)}
    return Training(([loss, norm, total], []), ([], [train]), feed=feed)


@program
def glove():
    """Weighted least squares with biases by row and column, Adagrad, a summary of the loss."""
    i, j = tf.placeholder(tf.int32, [6]), tf.placeholder(tf.int32, [6])
    count = tf.placeholder(tf.float32, [6])
    init = lambda s: tf.random_uniform([10, 4], -1.0, 1.0, seed=s)
    w, c = tf.Variable(init(1)), tf.Variable(init(2))
    b, d = tf.Variable(tf.random_uniform([10], seed=3)), tf.Variable(tf.random_uniform([10], seed=4))
    factor = tf.minimum(1.0, tf.pow(count / 50.0, 0.75))
    product = tf.reduce_sum(tf.multiply(*(tf.nn.embedding_lookup([v], k) for v, k in ((w, i), (c, j)))), 1)
    distance = tf.square(tf.add_n([product, tf.nn.embedding_lookup(b, i), tf.nn.embedding_lookup(d, j),
                                   tf.negative(tf.log(tf.to_float(count)))]))
    loss = tf.reduce_sum(tf.multiply(factor, distance))
    tf.summary.scalar("GloVe_loss", loss)
    train = tf.train.AdagradOptimizer(0.05).minimize(loss)
    merged = tf.summary.merge_all()
    combined = tf.add(w, c)
    return Training(([loss, merged], []), ([], [train]), ([combined], []), summaries=[merged.name],
                    feed=lambda k: {i: ints(k, 10, 6), j: ints(k, 10, 6, salt=1), count: 1.0 + ints(k, 90, 6, salt=2)})


@program
def deep_factorization():
    """Fields with embeddings, second-order interactions, a deep part, cross layers, AUC."""
    index, value = tf.placeholder(tf.int32, [None, 4]), tf.placeholder(tf.float32, [None, 4])
    y = tf.placeholder(tf.float32, [None, 1])
    e = tf.Variable(tf.random_normal([20, 3], 0.0, 0.1, seed=1))
    first = tf.Variable(tf.random_uniform([20, 1], 0.0, 1.0, seed=2))
    v = tf.multiply(tf.nn.embedding_lookup(e, index), tf.reshape(value, [-1, 4, 1]))
    y1 = tf.reduce_sum(tf.multiply(tf.nn.embedding_lookup(first, index), value[..., None]), 2)
    y2 = 0.5 * tf.subtract(tf.square(tf.reduce_sum(v, 1)), tf.reduce_sum(tf.square(v), 1))
    deep = tf.reshape(v, [-1, 12])
    for i, units in enumerate((8, 8)):
        deep = tf.layers.dense(deep, units)
        deep = tf.layers.batch_normalization(deep, training=True, momentum=0.9)
        deep = tf.nn.dropout(tf.nn.relu(deep), rate=0.1, seed=i)
    x0 = x = tf.reshape(v, [-1, 12])
    for i in range(2):
        w = tf.get_variable(f"cross{i}", [12, 1], initializer=tf.glorot_normal_initializer(seed=i))
        x = x0 * tf.matmul(x, w) + tf.get_variable(f"cb{i}", [12], initializer=tf.zeros_initializer()) + x
    # compressed interaction: outer products of the fields
    outer = tf.einsum("bfk,bgk->bkfg", v, v)
    cin = tf.reduce_sum(tf.nn.conv1d(tf.reshape(outer, [-1, 3, 16]), tf.get_variable("cin", [1, 16, 5]), 1, "VALID"), 1)
    out = tf.layers.dense(tf.concat([y1, y2, deep, x, cin], 1), 1)
    p = tf.nn.sigmoid(out)
    loss = tf.losses.log_loss(y, p) + 0.01 * tf.nn.l2_loss(e)
    auc, update = tf.metrics.auc(y, p, num_thresholds=20)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.MomentumOptimizer(0.02, 0.95).minimize(loss)
    return Training(([loss, update], []), ([auc], []), ([], [train]), same_initial=True,
                    feed=lambda i: {index: ints(i, 20, 8, 4), value: floats(i, 8, 4), y: ints(i, 2, 8, 1).astype(np.float32)})


@program
def mobile_and_shuffled_channels():
    """Inverted residuals, channel shuffling, squeeze and excitation, hard swish, moving statistics by train_op."""
    x, y = tf.placeholder(tf.float32, [None, 12, 12, 3]), tf.placeholder(tf.int64, [None])
    training = tf.placeholder_with_default(True, [])
    norm = lambda h, n: tf.layers.batch_normalization(h, training=training, name=n, momentum=0.9, scale=False)
    h6 = lambda v: v * tf.nn.relu6(v + 3) / 6
    h = h6(norm(tf.layers.conv2d(x, 8, 3, 2, "same", use_bias=False), "n0"))
    w = tf.get_variable("dw", [3, 3, 8, 2], initializer=tf.variance_scaling_initializer(seed=1))
    g = norm(tf.nn.depthwise_conv2d(h, w, [1, 1, 1, 1], "SAME"), "n1")
    s = tf.reduce_mean(g, [1, 2], keep_dims=True)
    g *= tf.layers.conv2d(tf.layers.conv2d(s, 4, 1, activation=tf.nn.relu), 16, 1, activation=tf.sigmoid)
    n, a, b = tf.shape(g)[0], 6, 6
    g = tf.reshape(tf.transpose(tf.reshape(g, tf.stack([n, a, b, 4, 4])), [0, 1, 2, 4, 3]), tf.stack([n, a, b, 16]))
    h = h + tf.layers.conv2d(g, 8, 1)
    parts = tf.split(h, 4, axis=3)
    h = tf.concat([tf.layers.conv2d(p, 3, 3, padding="same", name=f"group{i}") for i, p in enumerate(parts)], 3)
    h = tf.concat([h, tf.nn.max_pool(h, [1, 3, 3, 1], [1, 1, 1, 1], "SAME"), tf.layers.average_pooling2d(h, 3, 1, "same")], 3)
    logits = tf.squeeze(tf.layers.conv2d(tf.reduce_mean(h, [1, 2], keepdims=True), 4, 1), [1, 2], name="squeezed")
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    loss += 1e-4 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "bias" not in v.name])
    update = tf.group(*tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    with tf.control_dependencies([update]):
        train = tf.train.RMSPropOptimizer(0.01, 0.9, 0.9, 1.0).minimize(loss)
    accuracy = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, y, 2), tf.float32))

    def feed(i):
        a, b = images(i, 6, 12, 3)
        return {x: a, y: b.astype(np.int64)}
    return Training(([loss, accuracy], []), ([], [train]), feed=feed)


@program
def asynchronous_advantage():
    """Worker and global networks in scopes, copies between them, clipped gradients applied to the other scope."""
    def network(scope, trainer):
        with tf.variable_scope(scope):
            s = tf.placeholder(tf.float32, [None, 16], "s")
            image = tf.reshape(s, [-1, 4, 4, 1])
            conv = tf.layers.conv2d(image, 4, [2, 2], [1, 1], "VALID", activation=tf.nn.elu)
            h = tf.layers.dense(tf.layers.flatten(conv), 8, tf.nn.elu)
            cell = tf.nn.rnn_cell.BasicLSTMCell(6, state_is_tuple=True)
            c, m = tf.placeholder(tf.float32, [1, 6], "c"), tf.placeholder(tf.float32, [1, 6], "m")
            out, (c1, h1) = tf.nn.dynamic_rnn(cell, tf.expand_dims(h, [0]), tf.shape(image)[:1],
                                              tf.nn.rnn_cell.LSTMStateTuple(c, m), time_major=False)
            out = tf.reshape(out, [-1, 6])
            policy, value = tf.layers.dense(out, 3, tf.nn.softmax, use_bias=False), tf.layers.dense(out, 1, use_bias=False)
            if scope == "global":
                return s, c, m, None
            a, target, adv = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
            taken = tf.reduce_sum(policy * tf.one_hot(a, 3), [1])
            v_loss = 0.5 * tf.reduce_sum(tf.square(target - tf.reshape(value, [-1])))
            entropy = -tf.reduce_sum(policy * tf.log(policy + 1e-6))
            loss = 0.5 * v_loss - tf.reduce_sum(tf.log(taken + 1e-6) * adv) - entropy * 0.01
            local = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope)
            grads, norm = tf.clip_by_global_norm(tf.gradients(loss, local), 5.0)
            other = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, "global")
            sync = [w.assign(g) for w, g in zip(local, other)]
            return s, c, m, (a, target, adv, loss, norm, c1, h1, trainer.apply_gradients(zip(grads, other)), sync, entropy)
    trainer = tf.train.AdamOptimizer(0.01, epsilon=1e-3)
    network("global", None)
    s, c, m, (a, target, adv, loss, norm, c1, h1, train, sync, entropy) = network("worker_0", trainer)
    return Training(([], sync), ([loss, norm, c1, h1, entropy], []), ([], [train]),
                    feed=lambda i: {s: floats(i, 5, 16), c: floats(i, 1, 6) * 0.1, m: floats(i, 1, 6, salt=1) * 0.1, a: ints(i, 3, 5),
                                    target: floats(i, 5, salt=2), adv: floats(i, 5, salt=3)})


@program
def pixel_recurrence():
    """Masked convolutions, a discretized mixture of logistics, weights that are averaged for evaluation."""
    x = tf.placeholder(tf.float32, [2, 6, 6, 1])
    mask = np.ones([3, 3, 1, 6], np.float32)
    mask[1, 1:], mask[2:] = 0, 0
    w = tf.get_variable("w", [3, 3, 1, 6], initializer=tf.glorot_uniform_initializer(seed=1))
    h = tf.nn.conv2d(x, w * mask, [1, 1, 1, 1], "SAME")
    h = tf.nn.crelu(h)
    a, b = tf.split(tf.layers.conv2d(h, 8, 1), 2, 3)
    out = tf.layers.conv2d(tf.tanh(a) * tf.sigmoid(b), 6, 1)
    logit, mean, log_scale = tf.split(out, 3, 3)
    log_scale = tf.maximum(log_scale, -7.0)
    inv = tf.exp(-log_scale)
    plus, minus = inv * (x - mean + 1 / 15), inv * (x - mean - 1 / 15)
    cdf = tf.sigmoid(plus) - tf.sigmoid(minus)
    low, high = plus - tf.nn.softplus(plus), -tf.nn.softplus(minus)
    middle = inv * (x - mean)
    pdf = middle - log_scale - 2.0 * tf.nn.softplus(middle)
    t = tf.tile(x, [1, 1, 1, 2])
    logp = tf.where(t < -0.9, low, tf.where(t > 0.9, high, tf.where(cdf > 1e-5, tf.log(tf.maximum(cdf, 1e-12)), pdf)))
    loss = -tf.reduce_sum(tf.reduce_logsumexp(logp + tf.nn.log_softmax(logit), 3)) / 72
    ema = tf.train.ExponentialMovingAverage(0.9, num_updates=tf.train.get_or_create_global_step())
    train = adam(loss, global_step=tf.train.get_global_step())
    with tf.control_dependencies([train]):
        keep = ema.apply(tf.trainable_variables())
    averaged = [ema.average(v) for v in tf.trainable_variables()]
    saver = tf.train.Saver({**ema.variables_to_restore(), **{"raw/" + v.op.name: v for v in tf.trainable_variables()}})
    return Training(([loss], []), ([], [keep]), ([averaged[0]], []), feed=lambda i: {x: np.tanh(floats(i, 2, 6, 6, 1))},
                    saver=tf.train.Saver())


@program
def learned_optimizer():
    """Gradient descent through gradient descent: unrolled inner steps, outer gradients of them (MAML)."""
    xa, ya, xb, yb = (tf.placeholder(tf.float32, [3, 5, 1]) for _ in range(4))
    weights = {n: tf.get_variable(n, s, initializer=tf.truncated_normal_initializer(stddev=0.3, seed=k))
               for k, (n, s) in enumerate({"w1": [1, 8], "b1": [8], "w2": [8, 1], "b2": [1]}.items())}
    rate = tf.get_variable("rate", [], initializer=tf.constant_initializer(0.05))

    def forward(x, w):
        return tf.matmul(tf.nn.tanh(tf.matmul(x, w["w1"]) + w["b1"]), w["w2"]) + w["b2"]

    def task(inputs):
        xa, ya, xb, yb = inputs
        fast, losses = dict(weights), []
        for _ in range(2):
            loss = tf.reduce_mean(tf.square(forward(xa, fast) - ya))
            grads = tf.gradients(loss, list(fast.values()))
            fast = dict(zip(fast, [w - rate * g for w, g in zip(fast.values(), grads)]))
            losses.append(tf.reduce_mean(tf.square(forward(xb, fast) - yb)))
        return losses
    losses = tf.map_fn(task, (xa, ya, xb, yb), dtype=[tf.float32] * 2, parallel_iterations=3)
    loss = tf.reduce_mean(losses[-1])
    optimizer = tf.train.AdamOptimizer(0.01, epsilon=1e-3)
    pairs = [(tf.clip_by_value(g, -10, 10), v) for g, v in optimizer.compute_gradients(loss)]
    train = optimizer.apply_gradients(pairs)
    return Training(([loss, losses], []), ([], [train]), feed=lambda i: {k: floats(i, 3, 5, 1, salt=s) for s, k in enumerate((xa, ya, xb, yb))})


@program
def recurrent_attention():
    """Glimpses of an image at sampled places, REINFORCE with a learned baseline."""
    x, y = tf.placeholder(tf.float32, [4, 12, 12, 1]), tf.placeholder(tf.int32, [4])
    cell = tf.nn.rnn_cell.LSTMCell(8)
    state, where = cell.zero_state(4, tf.float32), tf.random_uniform([4, 2], -1, 1, seed=1)
    logs, bases = [], []
    with tf.variable_scope("ram") as scope:
        for t in range(3):
            if t:
                scope.reuse_variables()
            g = tf.image.extract_glimpse(x, [4, 4], where, centered=True, normalized=True)
            h = tf.nn.relu(tf.layers.dense(tf.reshape(g, [4, 16]), 8, name="g") + tf.layers.dense(where, 8, name="l"))
            out, state = cell(h, state)
            mean = tf.clip_by_value(tf.layers.dense(tf.stop_gradient(out), 2, name="loc"), -1.0, 1.0)
            where = tf.stop_gradient(tf.clip_by_value(mean + tf.random_normal([4, 2], stddev=0.2, seed=t + 5), -1.0, 1.0))
            logs.append(tf.reduce_sum(-tf.square(where - mean) / (2 * 0.04), 1))
            bases.append(tf.squeeze(tf.layers.dense(tf.stop_gradient(out), 1, name="base"), 1))
        logits = tf.layers.dense(out, 4, name="out")
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    reward = tf.tile(tf.expand_dims(tf.to_float(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), y)), 1), (1, 3))
    base = tf.stack(bases, 1)
    advantage = reward - tf.stop_gradient(base)
    loss = tf.reduce_mean(entropy) - tf.reduce_mean(tf.stack(logs, 1) * advantage) + tf.reduce_mean(tf.square(reward - base))
    train = adam(loss)
    return Training(([loss, where, reward], [train]), feed=lambda i: dict(zip((x, y), images(i, 4))))


@program
def saved_scopes_and_collections():
    """Partial restores by name, sharded savers, a scaffold's ready operators, session hooks' variables."""
    with tf.variable_scope("base", regularizer=lambda v: 1e-3 * tf.nn.l2_loss(v), initializer=tf.random_uniform_initializer(-0.2, 0.2, seed=1),
                           partitioner=tf.variable_axis_size_partitioner(64)):
        w = tf.get_variable("w", [10, 8])
        b = tf.get_variable("b", [8], initializer=tf.zeros_initializer(), collections=["biases", tf.GraphKeys.GLOBAL_VARIABLES,
                                                                                      tf.GraphKeys.TRAINABLE_VARIABLES])
    x = tf.placeholder(tf.float32, [None, 10])
    h = tf.matmul(x, w) + b
    with tf.variable_scope("head", dtype=tf.float64):
        v = tf.get_variable("v", [8, 2], initializer=tf.constant_initializer(np.linspace(-1, 1, 16).reshape(8, 2)))
    out = tf.matmul(tf.cast(tf.nn.leaky_relu(h, 0.1), tf.float64), v)
    step = tf.train.get_or_create_global_step()
    loss = tf.cast(tf.reduce_mean(tf.square(out)), tf.float32) + tf.losses.get_regularization_loss()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    missing = tf.report_uninitialized_variables()
    known = tf.is_variable_initialized(step)
    total = tf.add_n([tf.cast(tf.size(q), tf.int64) for q in tf.trainable_variables()])
    saver = tf.train.Saver(tf.global_variables(), sharded=True, max_to_keep=2, write_version=tf.train.SaverDef.V2)
    return Training(([loss, missing, known, total, step], []), ([], [train]), feed=lambda i: {x: floats(i, 6, 10)}, saver=saver)


@program
def word_networks_in_files():
    """Records of sequence examples, parsed in a dataset with padding and buckets, read by an initializable iterator."""
    directory = tempfile.mkdtemp()
    path = os.path.join(directory, "s.tfrecord")
    with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions("GZIP") if False else None) as writer:
        for i in range(30):
            ex = tf.train.SequenceExample()
            ex.context.feature["label"].int64_list.value.append(i % 3)
            ex.context.feature["name"].bytes_list.value.append(b"n%d" % i)
            for t in range(1 + i % 5):
                ex.feature_lists.feature_list["tokens"].feature.add().int64_list.value.append((i * t) % 11)
                ex.feature_lists.feature_list["vec"].feature.add().float_list.value.extend([0.1 * t, 0.2 * i])
            writer.write(ex.SerializeToString())

    def parse(record):
        context, seq = tf.parse_single_sequence_example(record, {"label": tf.FixedLenFeature([], tf.int64), "name": tf.FixedLenFeature([], tf.string)},
                                                        {"tokens": tf.FixedLenSequenceFeature([], tf.int64), "vec": tf.FixedLenSequenceFeature([2], tf.float32)})
        return seq["tokens"], seq["vec"], tf.size(seq["tokens"]), context["label"]
    files = tf.placeholder_with_default(tf.constant([path]), [None])
    d = tf.data.TFRecordDataset(files, buffer_size=1 << 12).map(parse, num_parallel_calls=2).shuffle(10, seed=3).repeat()
    d = d.apply(tf.data.experimental.bucket_by_sequence_length(lambda t, *_: tf.size(t), [3], [4, 4], padded_shapes=([None], [None, 2], [], [])))
    it = tf.data.make_initializable_iterator(d.prefetch(2))
    tokens, vec, n, y = it.get_next()
    e = tf.get_variable("e", [11, 4], initializer=tf.random_uniform_initializer(-1, 1, seed=1))
    h = tf.concat([tf.nn.embedding_lookup(e, tokens), vec], 2)
    convs = [tf.reduce_max(tf.nn.relu(tf.layers.conv1d(h, 4, k, padding="same")), 1) for k in (1, 2, 3)]
    logits = tf.layers.dense(tf.nn.dropout(tf.concat(convs, 1), keep_prob=0.8, seed=2), 3)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    train = adam(loss)
    return Training(([loss, n, tf.shape(tokens)], [train]), setup=[it.initializer], same_initial=True)


@program
def queued_images_and_threads():
    """read_file, decode, shuffle_batch_join of several readers, limit by epochs, a running mean of the pixels."""
    directory = tempfile.mkdtemp()
    with tf.Graph().as_default(), tf.Session() as session:
        for i in range(8):
            data = session.run(tf.image.encode_png(ints(i, 256, 6, 6, 3, dtype=np.uint8)))
            open(os.path.join(directory, f"{i % 2}_{i}.png"), "wb").write(data)
    names = sorted(os.path.join(directory, f) for f in os.listdir(directory))
    labels = [int(os.path.basename(n)[0]) for n in names]
    name, label = tf.train.slice_input_producer([tf.constant(names), tf.constant(labels)], shuffle=False)
    image = tf.image.decode_png(tf.read_file(name), channels=3)
    image.set_shape([6, 6, 3])
    x, y, n = tf.train.batch([tf.to_float(image) / 255, label, tf.string_split([name], os.sep).values[-1]], 4, num_threads=1)
    mean = tf.get_variable("mean", [6, 6, 3], initializer=tf.zeros_initializer(), trainable=False)
    with tf.control_dependencies([mean.assign(0.9 * mean + 0.1 * tf.reduce_mean(x, 0))]):
        logits = tf.layers.dense(tf.layers.flatten(x - 0.5), 2)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    train = adam(loss)
    return Training(([loss, n], [train]), queues=True)
