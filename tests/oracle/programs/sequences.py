"""Cells, loops and attention that are written by hand, and text."""
from training import *


def sequence_loss(logits, y, length=None):
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    return tf.reduce_mean(loss if length is None else loss * tf.sequence_mask(length, tf.shape(y)[1], tf.float32))


def minimize(loss, rate=0.01):
    optimizer = tf.train.AdamOptimizer(rate, epsilon=1e-3)
    grads, variables = zip(*optimizer.compute_gradients(loss))
    grads, norm = tf.clip_by_global_norm(grads, 2.0)
    return optimizer.apply_gradients(zip(grads, variables), tf.train.get_or_create_global_step())


def tokens(i, batch=4, length=7, vocabulary=12):
    s = sequences(i, batch, length, vocabulary).astype(np.int32)
    return s[:, :-1], s[:, 1:]


class LayerNormCell(tf.nn.rnn_cell.RNNCell):
    """An LSTM with layer normalization, recurrent dropout and highway between steps."""

    def __init__(self, units):
        super().__init__()
        self.units = units

    state_size = property(lambda self: tf.nn.rnn_cell.LSTMStateTuple(self.units, self.units))
    output_size = property(lambda self: self.units)

    def norm(self, x, name):
        with tf.variable_scope(name):
            mean, var = tf.nn.moments(x, [1], keep_dims=True)
            gamma = tf.get_variable("gamma", [x.shape[-1]], initializer=tf.ones_initializer())
            return (x - mean) * tf.rsqrt(var + 1e-3) * gamma

    def __call__(self, x, state, scope=None):
        c, h = state
        with tf.variable_scope(scope or "ln"):
            w = tf.get_variable("w", [int(x.shape[1]) + self.units, 4 * self.units],
                                initializer=tf.orthogonal_initializer(seed=1))
            i, j, f, o = tf.split(tf.matmul(tf.concat([x, h], 1), w), 4, 1)
            i, j, f, o = (self.norm(v, k) for v, k in zip((i, j, f, o), "ijfo"))
            g = tf.nn.dropout(tf.tanh(j), keep_prob=0.9, seed=5)
            c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * g
            h = tf.tanh(self.norm(c, "c")) * tf.sigmoid(o)
        return h, tf.nn.rnn_cell.LSTMStateTuple(c, h)


@each(kind=["peephole", "projection", "layer_norm", "stack"])
def cells(kind):
    x, y = tf.placeholder(tf.int32, [None, 7]), tf.placeholder(tf.int32, [None, 7])
    length = tf.placeholder(tf.int32, [None])
    e = tf.nn.embedding_lookup(tf.get_variable("e", [12, 6], initializer=tf.random_uniform_initializer(-0.5, 0.5,
            seed=1)), x)
    cell = {
        "peephole": lambda: tf.nn.rnn_cell.LSTMCell(8, use_peepholes=True, cell_clip=1.5, forget_bias=0.5),
        "projection": lambda: tf.nn.rnn_cell.LSTMCell(8, num_proj=5, proj_clip=0.9, num_unit_shards=None,
                                                      initializer=tf.initializers.random_normal(0, 0.2, seed=2)),
        "layer_norm": lambda: LayerNormCell(8),
        "stack": lambda: tf.nn.rnn_cell.MultiRNNCell(
            [tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.GRUCell(6), 0.9, 0.9, 0.95, True, 6, tf.float32, seed=3),
             tf.nn.rnn_cell.ResidualWrapper(tf.nn.rnn_cell.BasicRNNCell(6, tf.nn.relu)),
             tf.nn.rnn_cell.DeviceWrapper(tf.nn.rnn_cell.LSTMCell(6, state_is_tuple=False), "/cpu:0")]),
    }[kind]()
    initial = None
    if kind == "projection":
        initial = tf.nn.rnn_cell.LSTMStateTuple(tf.tile(tf.get_variable("c0", [1, 8]), [tf.shape(x)[0], 1]),
                                                tf.zeros([tf.shape(x)[0], 5]))
    out, state = tf.nn.dynamic_rnn(cell, e, length, initial, tf.float32, swap_memory=True, parallel_iterations=4)
    loss = sequence_loss(tf.layers.dense(out, 12), y, length)

    def feed(i):
        a, b = tokens(i)
        return {x: a, y: b, length: ints(i, 7, 4) + 1}
    return Training(([loss, state], [minimize(loss)]), feed=feed)


@program
def raw_loop_decoder():
    """raw_rnn that feeds its samples back, with an emitted structure."""
    x, y = tf.placeholder(tf.int32, [4, 7]), tf.placeholder(tf.int32, [4, 7])
    e = tf.get_variable("e", [12, 6], initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=1))
    w = tf.get_variable("w", [8, 12], initializer=tf.random_uniform_initializer(-0.3, 0.3, seed=2))
    cell = tf.nn.rnn_cell.LSTMCell(8)
    inputs = tf.TensorArray(tf.float32, 7).unstack(tf.transpose(tf.nn.embedding_lookup(e, x), [1, 0, 2]))

    def loop(time, output, state, counter):
        finished = time >= tf.constant([7, 6, 5, 3])
        if output is None:
            return finished, inputs.read(0), cell.zero_state(4, tf.float32), tf.zeros([8]), tf.constant(0)
        logits = tf.matmul(output, w)
        guess = tf.nn.embedding_lookup(e, tf.argmax(logits, 1))
        following = tf.cond(tf.reduce_all(finished), lambda: tf.zeros([4, 6]),
                            lambda: tf.cond(time % 2 > 0, lambda: guess, lambda: inputs.read(time)))
        return finished, following, state, output, counter + tf.reduce_sum(tf.cast(finished, tf.int32))
    outputs, state, counter = tf.nn.raw_rnn(cell, loop)
    out = tf.transpose(outputs.stack(), [1, 0, 2])
    loss = sequence_loss(tf.tensordot(out, w, 1), y)
    train = minimize(loss)
    return Training(([loss, counter, state], [train]), feed=lambda i: dict(zip((x, y), tokens(i))))


@program
def conditional_random_field():
    """Forward algorithm by a scan, Viterbi decoding by a reversed one."""
    x, tags = tf.placeholder(tf.float32, [3, 6, 5]), tf.placeholder(tf.int32, [3, 6])
    length = tf.placeholder(tf.int32, [3])
    (f, b), _ = tf.nn.bidirectional_dynamic_rnn(tf.nn.rnn_cell.LSTMCell(4, name="f"), tf.nn.rnn_cell.LSTMCell(4,
            name="b"),
                                                x, length, dtype=tf.float32)
    unary = tf.layers.dense(tf.concat([f, b], 2), 4)
    t = tf.get_variable("t", [4, 4], initializer=tf.random_uniform_initializer(-0.2, 0.2, seed=1))
    mask = tf.sequence_mask(length, 6)
    steps = tf.transpose(unary, [1, 0, 2])

    def forward(alpha, now):
        u, m = now
        new = tf.reduce_logsumexp(alpha[:, :, None] + t, 1) + u
        return tf.where(m, new, alpha)
    alphas = tf.scan(forward, (steps[1:], tf.transpose(mask)[1:]), initializer=steps[0])
    partition = tf.reduce_logsumexp(alphas[-1], 1)
    m = tf.to_float(mask)
    score = tf.reduce_sum(tf.reduce_sum(unary * tf.one_hot(tags, 4), 2) * m, 1)
    pairs = tf.gather(tf.reshape(t, [-1]), tags[:, :-1] * 4 + tags[:, 1:])
    score += tf.reduce_sum(pairs * m[:, 1:], 1)
    loss = tf.reduce_mean(partition - score)

    def viterbi(state, u):
        best, _ = state
        scores = best[:, :, None] + t
        return tf.reduce_max(scores, 1) + u, tf.argmax(scores, 1, output_type=tf.int32)
    best, back = tf.scan(viterbi, steps[1:], initializer=(steps[0], tf.zeros([3, 4], tf.int32)))
    last = tf.argmax(best[-1], 1, output_type=tf.int32)
    path = tf.scan(lambda tag, pointers: tf.batch_gather(pointers, tag[:, None])[:, 0], back, initializer=last,
                   reverse=True)
    return Training(([loss, last, path], [minimize(loss)]),
                    feed=lambda i: {x: floats(i, 3, 6, 5), tags: ints(i, 4, 3, 6), length: ints(i, 5, 3) + 2})


@program
def translation_transformer():
    """Encoder and decoder with masks and position signals; decoding in a loop with a growing, padded cache."""
    x, y = tf.placeholder(tf.int32, [None, 7]), tf.placeholder(tf.int32, [None, 7])
    e = tf.get_variable("e", [12, 8], initializer=tf.random_normal_initializer(0, 0.3, seed=1))
    position = np.arange(7)[:, None] / 10.0 ** (np.arange(4) / 2.0)
    signal = tf.constant(np.concatenate([np.sin(position), np.cos(position)], 1), tf.float32)

    def norm(v, scope):
        with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
            s, b = tf.get_variable("s", [8], initializer=tf.ones_initializer()), tf.get_variable("b", [8],
                    initializer=tf.zeros_initializer())
            mean, var = tf.nn.moments(v, -1, keepdims=True)
            return tf.nn.batch_normalization(v, mean, var, b, s, 1e-3)

    def attend(q, k, bias, scope):
        with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
            split = lambda v, n: tf.transpose(tf.reshape(tf.layers.dense(v, 8, use_bias=False, name=n),
                                                         [tf.shape(v)[0], -1, 2, 4]), [0, 2, 1, 3])
            w = tf.nn.softmax(tf.matmul(split(q, "q"), split(k, "k"), transpose_b=True) / 2.0 + bias)
            out = tf.reshape(tf.transpose(tf.matmul(w, split(k, "v")), [0, 2, 1, 3]), tf.shape(q))
            return norm(q + tf.layers.dense(out, 8, name="o"), "norm")

    def feed_forward(v, scope):
        with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
            h = tf.layers.dense(v, 16, lambda u: 0.5 * u * (1 + tf.erf(u / np.sqrt(2).astype(np.float32))), name="h")
            return norm(v + tf.layers.dense(h, 8, name="o"), "norm")

    def encode(x):
        bias = -1e9 * tf.cast(tf.equal(x, 0), tf.float32)[:, None, None]
        v = tf.gather(e, x) * np.float32(np.sqrt(8)) + signal
        return feed_forward(attend(v, v, bias, "self"), "ff"), bias

    def decode(y, memory, bias):
        v = tf.pad(tf.gather(e, y), [[0, 0], [1, 0], [0, 0]])[:, :-1] + signal[:tf.shape(y)[1]]
        n = tf.shape(y)[1]
        causal = -1e9 * (1 - tf.linalg.band_part(tf.ones([n, n]), -1, 0))
        v = attend(v, v, causal, "dself")
        v = feed_forward(attend(v, memory, bias, "cross"), "dff")
        return tf.einsum("btd,vd->btv", v, e)
    memory, bias = encode(x)
    logits = decode(y, memory, bias)
    smooth = tf.one_hot(y, 12, 0.9, 0.1 / 11)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=smooth, logits=logits))
    weights = tf.cast(tf.not_equal(y, 0), tf.float32)
    correct = tf.reduce_sum(tf.cast(tf.equal(tf.argmax(logits, 2, output_type=tf.int32), y), tf.float32) * weights)

    def grow(i, out):
        last = decode(tf.concat([out, tf.zeros([tf.shape(x)[0], 1], tf.int32)], 1), memory, bias)[:, -1]
        return i + 1, tf.concat([out, tf.argmax(last, 1, output_type=tf.int32)[:, None]], 1)
    _, decoded = tf.while_loop(lambda i, out: i < 5, grow, [0, tf.zeros([tf.shape(x)[0], 0], tf.int32)],
                               shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, None])], back_prop=False)
    step = tf.train.get_or_create_global_step()
    f = tf.cast(step + 1, tf.float32)
    rate = 0.05 * tf.minimum(tf.rsqrt(f), f * 0.2)
    train = tf.train.AdamOptimizer(rate, 0.9, 0.98, epsilon=1e-3).minimize(loss, step)
    return Training(([loss, correct, decoded], []), ([], [train]), feed=lambda i: dict(zip((x, y), tokens(i))))


@program
def pointer_network():
    x = tf.placeholder(tf.float32, [4, 5, 2])
    cell = tf.nn.rnn_cell.GRUCell(8)
    enc, state = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32, scope="enc")
    v = tf.get_variable("v", [8], initializer=tf.random_normal_initializer(seed=1))
    keys = tf.layers.conv1d(enc, 8, 1, use_bias=False)
    order = tf.argsort(x[..., 0], axis=1, stable=True)
    decoder, w = tf.nn.rnn_cell.GRUCell(8), tf.layers.Dense(8, use_bias=False)
    visited, inputs = tf.zeros([4, 5]), tf.zeros([4, 2])
    losses, picks = [], []
    with tf.variable_scope("dec"):
        for t in range(5):
            _, state = decoder(inputs, state)
            score = tf.reduce_sum(v * tf.tanh(keys + w(state)[:, None]), 2) - 1e6 * visited
            losses.append(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=order[:, t], logits=score))
            picks.append(tf.random.multinomial(score, 1, seed=t, output_dtype=tf.int32)[:, 0])
            pick = order[:, t]
            visited += tf.one_hot(pick, 5)
            inputs = tf.gather_nd(x, tf.stack([tf.range(4), pick], 1))
    loss = tf.add_n([tf.reduce_mean(l) for l in losses])
    tour = tf.gather(x, tf.stack(picks, 1), axis=1, batch_dims=1)
    distance = tf.reduce_sum(tf.norm(tour[:, 1:] - tour[:, :-1] + 1e-6, axis=2), 1)
    permuted = tf.math.invert_permutation(order[0])
    return Training(([loss, distance, permuted, tf.accumulate_n(losses)], [minimize(loss)]),
                    feed=lambda i: {x: rng(i).uniform(size=(4, 5, 2)).astype(np.float32)})


@program
def beam_search_in_a_loop():
    """Beams as loop variables: top_k over joined beams, gathered histories, finished beams in a dictionary."""
    x, y = tf.placeholder(tf.int32, [3, 6]), tf.placeholder(tf.int32, [3, 6])
    e = tf.get_variable("e", [12, 6], initializer=tf.random_normal_initializer(0, 0.5, seed=1))
    cell, out = tf.nn.rnn_cell.BasicLSTMCell(6), tf.layers.Dense(12)
    hidden, final = tf.nn.dynamic_rnn(cell, tf.gather(e, x), dtype=tf.float32, scope="rnn")
    loss = sequence_loss(out(hidden), y)
    train = minimize(loss)
    beams = 3
    repeat = lambda v: tf.reshape(tf.tile(v[:, None], [1, beams, 1]), [3 * beams, -1])

    def step(t, ids, score, done, state):
        with tf.variable_scope("rnn", reuse=True):
            h, state = cell(tf.gather(e, tf.reshape(ids[:, :, -1], [-1])), state)
        logp = tf.reshape(tf.nn.log_softmax(out(h)), [3, beams, 12])
        only_end = tf.one_hot(0, 12, 0.0, -1e9)
        logp = tf.where(tf.tile(done[..., None], [1, 1, 12]), tf.zeros_like(logp) + only_end, logp)
        total = tf.reshape(score[..., None] + logp, [3, -1])
        score, where = tf.math.top_k(total, beams)
        parent, token = where // 12, where % 12
        flat = tf.reshape(parent + tf.range(3)[:, None] * beams, [-1])
        state = tf.nest.map_structure(lambda s: tf.gather(s, flat), state)
        ids = tf.concat([tf.batch_gather(ids, parent), token[..., None]], 2)
        done = tf.logical_or(tf.batch_gather(done, parent), tf.equal(token, 0))
        return t + 1, ids, score, done, state
    state = tf.nn.rnn_cell.LSTMStateTuple(*[repeat(s) for s in final])
    start = [0, tf.tile(x[:, None, -1:], [1, beams, 1]), tf.tile([[0.0, -1e9, -1e9]], [3, 1]),
             tf.zeros([3, beams], tf.bool), state]
    shapes = tf.nest.map_structure(lambda v: tf.convert_to_tensor(v).shape, start)
    shapes[1] = tf.TensorShape([3, beams, None])
    shapes[4] = tf.nn.rnn_cell.LSTMStateTuple(tf.TensorShape([9, None]), tf.TensorShape([9, None]))
    _, ids, score, done, _ = tf.while_loop(lambda t, i, s, done, _: (t < 5) & ~tf.reduce_all(done), step, start, shapes)
    return Training(([loss], []), ([ids, score, done], []), ([], [train]), feed=lambda i: dict(zip((x, y), (t[:3,
            :6] for t in tokens(i)))))


@program
def text_preparation():
    """Strings to ids: split, cleaned, hashed, joined, counted, looked up; a bag and n-grams of them."""
    lines = tf.constant(["The cat, sat on THE mat!", "a dog  ate my homework", "cats & dogs: 12 of 7",
            "été naïve ünïcode"])
    pick = tf.placeholder(tf.int32, [3])
    text = tf.strings.lower(tf.gather(lines, pick), encoding="utf-8")
    clean = tf.strings.strip(tf.strings.regex_replace(text, r"[^a-z0-9é ]+", " "))
    words = tf.string_split(clean)
    table = tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(
        ["the", "cat", "dog", "a"], tf.range(4, dtype=tf.int64)), 3)
    ids = tf.SparseTensor(words.indices, table.lookup(words.values), words.dense_shape)
    padded = tf.sparse.to_dense(ids, default_value=-1)
    hashed = tf.strings.to_hash_bucket_fast(words.values, 50)
    strong = tf.strings.to_hash_bucket_strong(words.values, 50, [1, 2])
    bag = tf.sparse.SparseTensor(words.indices, hashed, words.dense_shape)
    ragged = tf.RaggedTensor.from_sparse(words)
    bigrams = tf.strings.ngrams(ragged, 2, separator="_")
    pairs = tf.strings.to_hash_bucket(bigrams.flat_values, 20)
    e1 = tf.get_variable("e1", [50, 4], initializer=tf.random_uniform_initializer(-0.3, 0.3, seed=1))
    e2 = tf.get_variable("e2", [20, 4], initializer=tf.random_uniform_initializer(-0.3, 0.3, seed=2))
    a = tf.nn.embedding_lookup_sparse(e1, bag, None, combiner="sqrtn")
    b = tf.nn.embedding_lookup_sparse(e2, tf.RaggedTensor.from_row_splits(pairs, bigrams.row_splits).to_sparse(),
            None, combiner="sum")
    b = tf.pad(b, [[0, tf.maximum(0, 3 - tf.shape(b)[0])], [0, 0]])[:3]
    chars = tf.strings.unicode_decode(clean, "UTF-8").to_tensor(default_value=0)
    numbers = tf.strings.to_number(tf.strings.regex_replace(tf.gather(lines, pick), r"\D", "") + "0", tf.float32)
    joined = tf.strings.reduce_join(tf.strings.join([tf.as_string(pick), clean], ":"), separator="|")
    lengths = tf.strings.length(clean, unit="UTF8_CHAR")
    part = tf.strings.substr(clean, 1, 3) + tf.strings.format("{}", pick)
    code = tf.io.decode_base64(tf.io.encode_base64(clean))
    match = tf.strings.regex_full_match(clean, ".*(cat|dog).*")
    distance = tf.edit_distance(tf.sparse.expand_dims(ids, 0), tf.sparse.expand_dims(ids, 0))
    y = tf.cast(match, tf.float32)
    logits = tf.layers.dense(tf.concat([a, b], 1), 1)[:, 0]
    loss = tf.losses.sigmoid_cross_entropy(y, logits)
    train = tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.001).minimize(loss)
    return Training(([loss, padded, strong, chars, numbers, joined, lengths, part, code, distance, bigrams.flat_values],
                     [train]), feed=lambda i: {pick: ints(i, 4, 3)})
