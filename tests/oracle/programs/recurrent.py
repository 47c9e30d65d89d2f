"""Recurrent networks: static, dynamic and bidirectional, every cell, language models, seq2seq, CTC."""
from training import *

rnn = tf.nn.rnn_cell
CELLS = {
    "basic": lambda: rnn.BasicRNNCell(8),
    "basic_lstm": lambda: rnn.BasicLSTMCell(8, forget_bias=1.0),
    "lstm": lambda: rnn.LSTMCell(8),
    "peephole_lstm": lambda: rnn.LSTMCell(8, use_peepholes=True, cell_clip=2.0),
    "projected_lstm": lambda: rnn.LSTMCell(8, num_proj=5, proj_clip=1.5),
    "gru": lambda: rnn.GRUCell(8),
    "multi": lambda: rnn.MultiRNNCell([rnn.BasicLSTMCell(8) for _ in range(2)]),
    "residual": lambda: rnn.MultiRNNCell([rnn.GRUCell(8), rnn.ResidualWrapper(rnn.GRUCell(8))]),
    "dropout": lambda: rnn.DropoutWrapper(rnn.GRUCell(8), input_keep_prob=0.8, output_keep_prob=0.8,
                                          state_keep_prob=0.9, seed=5),
    "tuple_free": lambda: rnn.MultiRNNCell([rnn.BasicLSTMCell(8, state_is_tuple=False) for _ in range(2)],
                                           state_is_tuple=False),
}


def last_relevant(output, length):
    batch = tf.shape(output)[0]
    flat = tf.reshape(output, [-1, output.shape[2]])
    return tf.gather(flat, tf.range(batch) * tf.shape(output)[1] + (length - 1))


def classified(output, y):
    return tf.losses.sparse_softmax_cross_entropy(y, tf.layers.dense(output, 3))


def sequence_inputs(length=6):
    x = tf.placeholder(tf.float32, [None, length, 4], name="x")
    n = tf.placeholder(tf.int32, [None], name="length")
    y = tf.placeholder(tf.int32, [None], name="y")
    return x, n, y, lambda i: {x: floats(i, 8, length, 4), n: ints(i, length, 8) + 1, y: ints(i, 3, 8, salt=1)}


def clipped(loss, rate=0.1):
    variables = tf.trainable_variables()
    gradients, norm = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
    return tf.train.GradientDescentOptimizer(rate).apply_gradients(zip(gradients, variables)), norm


@each(cell=CELLS)
def dynamic_rnn(cell):
    x, n, y, feed = sequence_inputs()
    # Cells with random operators run one iteration at a time, so that the order is certain.
    output, _ = tf.nn.dynamic_rnn(CELLS[cell](), x, sequence_length=n, dtype=tf.float32, swap_memory=True,
                                  parallel_iterations=1 if cell == "dropout" else 32)
    loss = classified(last_relevant(output, n), y)
    train, norm = clipped(loss)
    return Training(([loss, norm], [train]), feed=feed)


@each(cell=["basic", "lstm", "gru", "dropout"])
def static_rnn(cell):
    x, n, y, feed = sequence_inputs()
    output, state = tf.nn.static_rnn(CELLS[cell](), tf.unstack(x, axis=1), dtype=tf.float32, sequence_length=n)
    loss = classified(output[-1] + output[2], y)
    return Training(([loss, state], [clipped(loss)[0]]), feed=feed)


@each(kind=["dynamic", "static", "stacked"])
def bidirectional(kind):
    x, n, y, feed = sequence_inputs()
    if kind == "static":
        outputs, a, b = tf.nn.static_bidirectional_rnn(rnn.GRUCell(6), rnn.GRUCell(6), tf.unstack(x, axis=1),
                                                       dtype=tf.float32)
        loss = classified(outputs[3], y)
        return Training(([loss], [clipped(loss)[0]]), feed=feed)
    h = x
    for i in range(2 if kind == "stacked" else 1):
        with tf.variable_scope("layer%d" % i):
            outputs, _ = tf.nn.bidirectional_dynamic_rnn(rnn.LSTMCell(6), rnn.BasicLSTMCell(6), h,
                                                         sequence_length=n, dtype=tf.float32)
            h = tf.concat(outputs, 2)
    loss = classified(tf.reduce_max(h, 1), y)
    return Training(([loss], [clipped(loss)[0]]), feed=feed)


@program
def time_major():
    x, n, y, feed = sequence_inputs()
    output, state = tf.nn.dynamic_rnn(rnn.LSTMCell(8), tf.transpose(x, [1, 0, 2]), sequence_length=n,
                                      dtype=tf.float32, time_major=True, parallel_iterations=4)
    loss = classified(output[-1], y) + classified(state.h, y)
    return Training(([loss], [tf.train.AdamOptimizer(0.01, epsilon=1e-4).minimize(loss)]), feed=feed)


@program
def fused_blocks():
    """BlockLSTM through raw operators, as exported graphs contain it."""
    x, n, y, feed = sequence_inputs()
    w = tf.get_variable("kernel", [12, 32])
    b = tf.get_variable("bias", [32], initializer=tf.zeros_initializer())
    peephole = tf.zeros([8])
    state = tf.zeros([8, 8])
    block = tf.raw_ops.BlockLSTM(seq_len_max=6, x=tf.transpose(x, [1, 0, 2]), cs_prev=state, h_prev=state, w=w,
                                 wci=peephole, wcf=peephole, wco=peephole, b=b, forget_bias=1.0, cell_clip=3.0)
    loss = classified(block.h[-1], y)
    return Training(([loss], [clipped(loss)[0]]), feed=feed)


@program
def penn_treebank():
    """A word language model: the state stays in variables between runs, the learning rate is assigned, an unrolled
    multi-layer LSTM, clipped gradients, perplexity."""
    batch, length, vocabulary, size = 4, 5, 20, 12
    x, y = tf.placeholder(tf.int32, [batch, length]), tf.placeholder(tf.int32, [batch, length])
    with tf.variable_scope("Model", initializer=tf.random_uniform_initializer(-0.2, 0.2)):
        cell = rnn.MultiRNNCell([
            rnn.DropoutWrapper(rnn.BasicLSTMCell(size, forget_bias=0.0), output_keep_prob=0.9, seed=i)
            for i in range(2)])
        zero = cell.zero_state(batch, tf.float32)
        kept = tuple(rnn.LSTMStateTuple(*[tf.Variable(tf.zeros([batch, size]), trainable=False) for _ in range(2)])
                     for _ in zero)
        embedding = tf.get_variable("embedding", [vocabulary, size])
        inputs = tf.nn.dropout(tf.nn.embedding_lookup(embedding, x), 0.9, seed=7)
        state, outputs = kept, []
        with tf.variable_scope("RNN"):
            for step in range(length):
                if step > 0:
                    tf.get_variable_scope().reuse_variables()
                output, state = cell(inputs[:, step, :], state)
                outputs.append(output)
        output = tf.reshape(tf.concat(outputs, 1), [-1, size])
        logits = tf.matmul(output, tf.get_variable("softmax_w", [size, vocabulary])) + tf.get_variable(
            "softmax_b", [vocabulary])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(y, [-1]), logits=logits)
    cost = tf.reduce_sum(losses) / batch
    rate = tf.Variable(0.0, trainable=False)
    new_rate = tf.placeholder(tf.float32, shape=[], name="new_learning_rate")
    assign_rate = tf.assign(rate, new_rate)
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(cost, variables), 5)
    with tf.control_dependencies(gradients):
        keep = [tf.assign(v, s) for pair, new in zip(kept, state) for v, s in zip(pair, new)]
        train = tf.train.GradientDescentOptimizer(rate).apply_gradients(
            zip(gradients, variables), global_step=tf.train.get_or_create_global_step())

    def feed(i):
        tokens = sequences(i, batch, length, vocabulary)
        return {x: tokens[:, :-1], y: tokens[:, 1:], new_rate: 0.5 * 0.9 ** max(i - 5, 0)}

    return Training(([], [assign_rate]), ([cost, tf.exp(cost / length)], [train, *keep]), feed=feed)


@program
def character_model_with_sampling():
    """tf.while_loop that samples from the trained model with a cell that is shared."""
    vocabulary, length = 12, 6
    x = tf.placeholder(tf.int32, [None, length + 1])
    cell = rnn.GRUCell(16)
    table = tf.get_variable("table", [vocabulary, 8])
    output, _ = tf.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(table, x[:, :-1]), dtype=tf.float32, scope="rnn")
    dense = tf.layers.Dense(vocabulary)
    loss = tf.losses.sparse_softmax_cross_entropy(x[:, 1:], dense(output))
    train = tf.train.AdamOptimizer(0.02, epsilon=1e-3).minimize(loss)

    def body(i, token, state, written):
        with tf.variable_scope("rnn", reuse=True):
            out, state = cell(tf.nn.embedding_lookup(table, token), state)
        token = tf.argmax(dense(out), 1, output_type=tf.int32)
        return i + 1, token, state, written.write(i, token)

    start = tf.zeros([2], tf.int32)
    loop = tf.while_loop(lambda i, *_: i < 10, body,
                         [0, start, tf.zeros([2, 16]), tf.TensorArray(tf.int32, 10, element_shape=[2])],
                         back_prop=False)
    text = tf.transpose(loop[3].stack())
    return Training(([loss], [train]), ([text], []), feed=lambda i: {x: sequences(i, 8, length, vocabulary)})


def attention(query, memory, scope, mask=None):
    """Additive attention."""
    with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
        keys = tf.layers.dense(memory, 8, use_bias=False, name="memory")
        q = tf.layers.dense(query, 8, use_bias=False, name="query")
        v = tf.get_variable("v", [8])
        scores = tf.reduce_sum(v * tf.tanh(keys + q[:, None]), 2)
        if mask is not None:
            scores = tf.where(mask, scores, tf.fill(tf.shape(scores), -1e9))
        weights = tf.nn.softmax(scores)
        return tf.reduce_sum(weights[..., None] * memory, 1), weights


@program
def attention_seq2seq():
    """Reverses sequences. The decoder is tf.nn.raw_rnn with attention in training, tf.while_loop with an end token in
    greedy decoding."""
    vocabulary, length, size = 10, 5, 12
    source, n = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None])
    target = tf.placeholder(tf.int32, [None, length])
    table = tf.get_variable("table", [vocabulary, 8])
    memory, state = tf.nn.dynamic_rnn(rnn.GRUCell(size), tf.nn.embedding_lookup(table, source), sequence_length=n,
                                      dtype=tf.float32, scope="encoder")
    mask = tf.sequence_mask(n, tf.shape(source)[1])
    cell = rnn.GRUCell(size)
    project = tf.layers.Dense(vocabulary, name="project")
    decoder_input = tf.concat([tf.zeros_like(target[:, :1]), target[:, :-1]], 1)
    inputs = tf.TensorArray(tf.float32, length).unstack(
        tf.transpose(tf.nn.embedding_lookup(table, decoder_input), [1, 0, 2]))
    batch = tf.shape(source)[0]

    def loop_fn(time, output, cell_state, loop_state):
        finished = tf.fill([batch], time >= length)
        next_state = state if output is None else cell_state
        context, _ = attention(next_state, memory, "attention", mask)
        following = tf.cond(time >= length, lambda: tf.zeros([batch, 8]),
                            lambda: inputs.read(tf.minimum(time, length - 1)))
        following = tf.concat([following, context], 1)
        following.set_shape([None, 8 + size])
        return finished, following, next_state, output, None

    outputs, _, _ = tf.nn.raw_rnn(cell, loop_fn, scope="decoder")
    logits = project(tf.transpose(outputs.stack(), [1, 0, 2]))
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits)
    loss = tf.reduce_sum(losses * tf.sequence_mask(n, length, tf.float32)) / tf.cast(tf.reduce_sum(n), tf.float32)
    train = tf.train.AdamOptimizer(0.02, epsilon=1e-3).minimize(loss)

    def step(i, token, s, done, written):
        context, weights = attention(s, memory, "attention", mask)
        with tf.variable_scope("decoder", reuse=True):
            out, s = cell(tf.concat([tf.nn.embedding_lookup(table, token), context], 1), s)
        token = tf.where(done, tf.zeros_like(token), tf.argmax(project(out), 1, output_type=tf.int32))
        return i + 1, token, s, tf.logical_or(done, tf.equal(token, 1)), written.write(i, token)

    decoded = tf.while_loop(
        lambda i, t, s, done, w: tf.logical_and(i < 8, tf.logical_not(tf.reduce_all(done))), step,
        [0, tf.zeros([batch], tf.int32), state, tf.zeros([batch], tf.bool),
         tf.TensorArray(tf.int32, 0, dynamic_size=True)])[4].stack()

    def feed(i):
        words, lengths = ints(i, vocabulary - 2, 6, length) + 2, ints(i, length, 6, salt=1) + 1
        reverse = [list(w[:k][::-1]) + [1] * (length - k) for w, k in zip(words, lengths)]
        return {source: words, n: lengths, target: np.array(reverse, np.int32)}

    return Training(([loss], [train]), ([decoded], []), feed=feed)


@program
def beam_search():
    """A beam of three in a while loop, with gathered states and back pointers."""
    vocabulary, width, size, length = 8, 3, 10, 5
    x = tf.placeholder(tf.int32, [4, length + 1])
    table = tf.get_variable("table", [vocabulary, size])
    cell = rnn.BasicLSTMCell(size)
    project = tf.layers.Dense(vocabulary)
    output, _ = tf.nn.dynamic_rnn(cell, tf.gather(table, x[:, :-1]), dtype=tf.float32, scope="rnn")
    loss = tf.losses.sparse_softmax_cross_entropy(x[:, 1:], project(output))
    train = tf.train.AdamOptimizer(0.02, epsilon=1e-3).minimize(loss)

    def body(i, tokens, scores, c, h, ids, parents):
        with tf.variable_scope("rnn", reuse=True):
            out, state = cell(tf.gather(table, tokens), rnn.LSTMStateTuple(c, h))
        total = scores[:, None] + tf.nn.log_softmax(project(out))
        total = tf.cond(tf.equal(i, 0), lambda: total[:1], lambda: total)
        best, index = tf.nn.top_k(tf.reshape(total, [-1]), width)
        parent, token = index // vocabulary, index % vocabulary
        best.set_shape([width])
        return (i + 1, token, best, tf.gather(state.c, parent), tf.gather(state.h, parent), ids.write(i, token),
                parents.write(i, parent))

    loop = tf.while_loop(lambda i, *_: i < 6, body,
                         [0, tf.ones([width], tf.int32), tf.zeros([width]), tf.zeros([width, size]),
                          tf.zeros([width, size]), tf.TensorArray(tf.int32, 6), tf.TensorArray(tf.int32, 6)])
    fetches = [loop[2], loop[5].stack(), loop[6].stack()]
    return Training(([loss], [train]), (fetches, []), feed=lambda i: {x: sequences(i, 4, length, vocabulary)})


@program
def speech_with_ctc():
    """Sparse labels, CTC loss, greedy and beam search decoding, edit distance."""
    x, n = tf.placeholder(tf.float32, [None, 12, 5]), tf.placeholder(tf.int32, [None])
    labels = tf.sparse_placeholder(tf.int32)
    outputs, _ = tf.nn.dynamic_rnn(rnn.LSTMCell(10), x, sequence_length=n, dtype=tf.float32)
    logits = tf.transpose(tf.layers.dense(outputs, 6), [1, 0, 2])
    loss = tf.reduce_mean(tf.nn.ctc_loss(labels, logits, n))
    train = tf.train.MomentumOptimizer(0.02, 0.9).minimize(loss)
    greedy, score = tf.nn.ctc_greedy_decoder(logits, n)
    beam, log_p = tf.nn.ctc_beam_search_decoder(logits, n, beam_width=5, top_paths=2)
    error = tf.reduce_mean(tf.edit_distance(tf.cast(greedy[0], tf.int32), labels))
    dense = [tf.sparse_tensor_to_dense(b, default_value=-1) for b in beam]

    def feed(i):
        words = [ints(i, 5, int(k), salt=int(j) + 3) for j, k in enumerate(ints(i, 4, 3) + 1)]
        index = np.array([[b, t] for b, w in enumerate(words) for t in range(len(w))], np.int64)
        values = np.concatenate(words).astype(np.int32)
        return {x: floats(i, 3, 12, 5), n: ints(i, 3, 3, salt=1) + 10,
                labels.indices: index, labels.values: values, labels.dense_shape: np.array([3, 4], np.int64)}

    return Training(([loss], [train]), ([error, score, log_p, *dense], []), feed=feed)


@program
def wave_network():
    """Dilated causal convolutions with gates and skip connections, mu-law."""
    x = tf.placeholder(tf.float32, [None, 33])
    mu = 15.0
    law = tf.sign(x) * tf.log1p(mu * tf.abs(tf.clip_by_value(x, -1.0, 1.0))) / tf.log1p(mu)
    code = tf.cast((law + 1) / 2 * mu + 0.5, tf.int32)
    h = tf.one_hot(code[:, :-1], 16)
    h, skips = tf.layers.conv1d(h, 8, 1), 0
    for dilation in (1, 2, 4):
        padded = tf.pad(h, [[0, 0], [dilation, 0], [0, 0]])
        both = tf.layers.conv1d(padded, 16, 2, dilation_rate=dilation)
        filtered, gate = tf.split(both, 2, 2)
        z = tf.tanh(filtered) * tf.sigmoid(gate)
        skips += tf.layers.conv1d(z, 8, 1)
        h += tf.layers.conv1d(z, 8, 1)
    logits = tf.layers.conv1d(tf.nn.relu(skips), 16, 1)
    loss = tf.losses.sparse_softmax_cross_entropy(code[:, 1:], logits)
    train = tf.train.AdamOptimizer(0.01, epsilon=1e-3).minimize(loss)
    return Training(([loss, code], [train]), feed=lambda i: {x: np.sin(floats(i, 4, 33).cumsum(1))})


@program
def transformer_block():
    """Multi-head attention with a causal mask, layer normalization, positions, label smoothing, a warmed up rate."""
    vocabulary, length, size, heads = 15, 7, 16, 4
    x = tf.placeholder(tf.int32, [None, length + 1])
    table = tf.get_variable("table", [vocabulary, size], initializer=tf.random_normal_initializer(0, size**-0.5))
    position = tf.cast(tf.range(length), tf.float32)[:, None]
    rates = tf.exp(tf.cast(tf.range(0, size, 2), tf.float32) * -(np.log(10000.0) / size))
    waves = tf.concat([tf.sin(position * rates), tf.cos(position * rates)], 1)
    h = tf.nn.dropout(tf.gather(table, x[:, :-1]) * size**0.5 + waves, rate=0.1, seed=4)

    def normalize(h, scope):
        with tf.variable_scope(scope):
            mean, variance = tf.nn.moments(h, [-1], keep_dims=True)
            scale = tf.get_variable("scale", [size], initializer=tf.ones_initializer())
            shift = tf.get_variable("shift", [size], initializer=tf.zeros_initializer())
            return (h - mean) * tf.rsqrt(variance + 1e-6) * scale + shift

    def split_heads(t):
        return tf.transpose(tf.reshape(t, [-1, length, heads, size // heads]), [0, 2, 1, 3])

    for i in range(2):
        with tf.variable_scope("layer_%d" % i):
            normal = normalize(h, "norm1")
            q, k, v = (split_heads(tf.layers.dense(normal, size, use_bias=False, name=c)) for c in "qkv")
            scores = tf.matmul(q * (size // heads) ** -0.5, k, transpose_b=True)
            scores += (1 - tf.matrix_band_part(tf.ones([length, length]), -1, 0)) * -1e9
            weights = tf.nn.dropout(tf.nn.softmax(scores), rate=0.1, seed=i)
            merged = tf.reshape(tf.transpose(tf.matmul(weights, v), [0, 2, 1, 3]), [-1, length, size])
            h += tf.layers.dense(merged, size, use_bias=False, name="o")
            inner = tf.layers.dense(normalize(h, "norm2"), 32, name="ffn1")
            gelu = 0.5 * inner * (1.0 + tf.erf(inner / np.sqrt(2.0).astype(np.float32)))
            h += tf.layers.dense(gelu, size, name="ffn2")
    logits = tf.tensordot(normalize(h, "final"), table, [[2], [1]])
    labels = tf.one_hot(x[:, 1:], vocabulary, on_value=0.9, off_value=0.1 / (vocabulary - 1))
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits))
    step = tf.train.get_or_create_global_step()
    s = tf.cast(step + 1, tf.float32)
    rate = 0.05 * tf.minimum(tf.rsqrt(s), s * 5**-1.5)
    train = tf.train.AdamOptimizer(rate, beta2=0.98, epsilon=1e-4).minimize(loss, step)
    return Training(([loss, rate], [train]), feed=lambda i: {x: sequences(i, 6, length, vocabulary)})
