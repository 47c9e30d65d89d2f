"""Attention, decoders and beam search, compared with the same computation in TensorFlow (model_compare.py).

TensorFlow 2 has no tf.contrib: what tf.contrib.seq2seq computes is written here, step by step, without loops."""
import sys

import model_compare
import numpy as np
import tensorflow.compat.v1 as tf

TIME, FEATURES, UNITS, BATCH, IDS, STEPS_MAX, END = 7, 4, 5, 6, 8, 9, 2
MEMORY_LENGTHS, TARGET_LENGTHS, START = [3, 7, 1, 2, 5, 6], [5, 1, 0, 4, 3, 5], [1, 3, 4, 5, 6, 7]
C = tf.nn.rnn_cell


def sequences():
    return tf.placeholder(tf.float32, [None, TIME, FEATURES], name="x")


def squares(value):
    if value.dtype != tf.float32:
        value = 0.1 * tf.cast(value, tf.float32)
    return tf.reduce_sum(tf.square(value))


def sum_of(values):
    return 0.01 * tf.add_n([squares(value) for value in tf.nest.flatten(values)])


def encode(x):
    return tf.nn.dynamic_rnn(C.GRUCell(UNITS), x, dtype=tf.float32, scope="encoder")


def uniform(scale):
    return tf.random_uniform_initializer(-scale, scale)


# ---- Attention ----

class Attention:
    def __init__(self, units, memory, lengths=None, mask_value=-np.inf, normalize=False, scale=False, is_luong=False,
                 probability=tf.nn.softmax, monotonic=None, bias=0.0):
        self.__dict__.update(locals())
        self.mask = None if lengths is None else tf.sequence_mask(lengths, tf.shape(memory)[1])
        self.values = memory if lengths is None else memory * tf.cast(self.mask, tf.float32)[:, :, None]
        self.keys = tf.layers.Dense(units, use_bias=False, name="memory_layer")(self.values)
        self.depth = memory.shape[2]

    def score(self, query):
        if self.is_luong:
            score = tf.einsum("bd,btd->bt", query, self.keys)
            if self.scale:
                score *= tf.get_variable("attention_g", [], initializer=tf.ones_initializer())
            return score
        query = tf.layers.dense(query, self.units, use_bias=False, name="query_layer")
        v = tf.get_variable("attention_v", [self.units])
        total = self.keys + query[:, None, :]
        if self.normalize:
            g = tf.get_variable("attention_g", [], initializer=tf.constant_initializer(np.sqrt(1 / self.units)))
            total += tf.get_variable("attention_b", [self.units], initializer=tf.zeros_initializer())
            v = g * v / tf.norm(v)
        return tf.reduce_sum(v * tf.tanh(total), 2)

    def align(self, query, previous):
        kind = "monotonic_attention" if self.monotonic else "attention"
        with tf.variable_scope(None, ("luong_" if self.is_luong else "bahdanau_") + kind):
            score = self.score(query)
            if self.monotonic:
                score += tf.get_variable("attention_score_bias", [], initializer=tf.constant_initializer(self.bias))
        if self.mask is not None:
            score = tf.where(self.mask, score, tf.fill(tf.shape(score), np.float32(self.mask_value)))
        return self.monotonic(score, previous) if self.monotonic else self.probability(score)


def parallel(score, previous):
    stops = tf.sigmoid(score)
    logarithms = tf.log(tf.clip_by_value(1 - stops, np.finfo(np.float32).tiny, 1))
    passes = tf.exp(tf.cumsum(logarithms, 1, exclusive=True))
    return stops * passes * tf.cumsum(previous / tf.clip_by_value(passes, 1e-10, 1), 1)


def first_of(score, previous):
    stops = tf.cast(score > 0, tf.float32) * tf.cumsum(previous, 1)
    return stops * tf.math.cumprod(1 - stops, 1, exclusive=True)


def hardmax(score):
    return tf.one_hot(tf.argmax(score, 1), score.shape[1])


class AttentionWrapper(C.RNNCell):
    """The states are a list: those of the cell, the attention, the time, the alignments."""

    def __init__(self, cell, attention, layer_size=0, output_attention=True, name="attention_wrapper"):
        super().__init__(name=name)
        self.cell, self.attention, self.layer_size = cell, attention, layer_size
        self.size = layer_size or attention.depth
        self.output_attention = output_attention

    output_size = property(lambda self: self.size if self.output_attention else self.cell.output_size)
    state_size = property(lambda self: [self.cell.state_size, self.size, 1, self.attention.keys.shape[1]])

    def zero(self, batch, cell_state=None):
        if cell_state is None:
            cell_state = self.cell.zero_state(batch, tf.float32)
        return [cell_state, tf.zeros([batch, self.size]), tf.constant(0),
                tf.one_hot(tf.zeros([batch], tf.int32), tf.shape(self.attention.keys)[1],
                           on_value=1.0 if self.attention.monotonic else 0.0, off_value=0.0)]

    def call(self, inputs, states):
        cell_state, attention, time, previous = states
        output, cell_state = self.cell(tf.concat([inputs, attention], 1), cell_state)
        alignments = self.attention.align(output, previous)
        attention = tf.einsum("bt,btd->bd", alignments, self.attention.values)
        if self.layer_size:
            attention = tf.layers.dense(tf.concat([output, attention], 1), self.layer_size, use_bias=False,
                                        name="attention_layer")
        return (attention if self.output_attention else output), [cell_state, attention, time + 1, alignments]


class Several(C.RNNCell):
    """AttentionWrapper with a list of mechanisms: the states end with the alignments of each."""

    def __init__(self, cell, attentions, layer_sizes=None, output_attention=True):
        super().__init__(name="attention_wrapper")
        self.cell, self.attentions, self.output_attention = cell, attentions, output_attention
        self.layers_ = [tf.layers.Dense(size, use_bias=False, name="attention_layer") for size in layer_sizes or []]
        self.size = sum(layer_sizes or [int(attention.depth) for attention in attentions])

    output_size = property(lambda self: self.size if self.output_attention else self.cell.output_size)
    state_size = property(lambda self: [self.cell.state_size, self.size, 1] +
                          [attention.keys.shape[1] for attention in self.attentions])

    def zero(self, batch, cell_state=None):
        states = [AttentionWrapper(self.cell, attention).zero(batch, cell_state) for attention in self.attentions]
        return [states[0][0], tf.zeros([batch, self.size]), tf.constant(0)] + [state[3] for state in states]

    def call(self, inputs, states):
        cell_state, attention, time, *previous = states
        output, cell_state = self.cell(tf.concat([inputs, attention], 1), cell_state)
        alignments, parts = [], []
        for i, (mechanism, before) in enumerate(zip(self.attentions, previous)):
            alignments.append(mechanism.align(output, before))
            context = tf.einsum("bt,btd->bd", alignments[-1], mechanism.values)
            parts.append(self.layers_[i](tf.concat([output, context], 1)) if self.layers_ else context)
        attention = tf.concat(parts, 1)
        return (attention if self.output_attention else output), [cell_state, attention, time + 1] + alignments


# ---- Decoders ----

def choose(finished, old, new):
    if new.shape.ndims == 0:
        return new
    return tf.where(finished, old, new)


def decode(cell, states, inputs, finished, layer, sample, following, steps, impute=False, scope="decoder",
           keeps_alignments=False):
    """Takes all steps; after the one that ends the loop, they do not count. Returns the sum of everything."""
    total, lengths = 0.0, tf.zeros([BATCH], tf.int32)
    # The variables are created in the scope of the first use.
    with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
        for step in range(steps):
            runs = tf.logical_not(tf.reduce_all(finished))
            output, new = cell(inputs, states)
            if layer is not None:
                output = layer(output)
            ids = sample(output)
            ends, next_inputs = following(step, output, ids)
            emitted, emitted_ids = output, ids
            if impute:
                emitted = tf.where(finished, tf.zeros_like(output), output)
                emitted_ids = tf.where(finished, tf.zeros_like(ids), ids)
                new = tf.nest.map_structure(lambda old, value: choose(finished, old, value), states, new)
            parts = squares(emitted) + squares(emitted_ids)
            if keeps_alignments:
                parts += tf.add_n([squares(value) for value in new[3:]])
            total += 0.01 * tf.where(runs, parts, 0.0)
            lengths = tf.where(tf.logical_or(finished, tf.logical_not(runs)), lengths, tf.fill([BATCH], step + 1))
            states = tf.nest.map_structure(lambda old, value: tf.where(runs, value, old), states, new)
            inputs = tf.where(runs, next_inputs, inputs)
            finished = tf.logical_or(finished, ends)
    return total + sum_of(lengths) + sum_of(states)


def argmax(output):
    return tf.argmax(output, -1, output_type=tf.int32)


def given(x):
    """What a training helper returns: whether the sequences end, and the next inputs."""
    def following(step, output, ids):
        return step + 1 >= tf.constant(TARGET_LENGTHS), x[:, min(step + 1, TIME - 1)]
    return following


def train_with(wrap, has_layer, impute, keeps_alignments):
    x = sequences()
    memory, encoded = encode(x)
    cell, cell_state = wrap(memory, encoded)
    states = cell.zero(tf.shape(x)[0], cell_state)
    layer = tf.layers.Dense(IDS) if has_layer else None
    return decode(cell, states, x[:, 0], tf.constant(TARGET_LENGTHS) <= 0, layer, argmax, given(x),
                  max(TARGET_LENGTHS), impute, keeps_alignments=keeps_alignments)


def bahdanau(memory, encoded):
    return AttentionWrapper(C.BasicLSTMCell(UNITS), Attention(3, memory), 6), None


def normalized(memory, encoded):
    attention = Attention(3, memory, MEMORY_LENGTHS, normalize=True)
    return AttentionWrapper(C.GRUCell(UNITS), attention, 6, name="attention"), encoded


def luong(memory, encoded):
    attention = Attention(UNITS, memory, is_luong=True)
    return AttentionWrapper(C.GRUCell(UNITS), attention, output_attention=False), None


def scaled(memory, encoded):
    attention = Attention(UNITS, memory, MEMORY_LENGTHS, scale=True, mask_value=-2, is_luong=True)
    return AttentionWrapper(C.MultiRNNCell([C.BasicLSTMCell(3), C.GRUCell(UNITS)]), attention, 2), None


def hard(memory, encoded):
    return AttentionWrapper(C.GRUCell(UNITS), Attention(UNITS, memory, is_luong=True, probability=hardmax), 2), None


def monotonic(memory, encoded):
    attention = Attention(3, memory, MEMORY_LENGTHS, normalize=True, monotonic=parallel, bias=-0.5)
    return AttentionWrapper(C.GRUCell(UNITS), attention, 6), None


def monotonic_hard(memory, encoded):
    attention = Attention(UNITS, memory, scale=True, is_luong=True, monotonic=first_of)
    return AttentionWrapper(C.GRUCell(UNITS), attention, 6), None


def monotonic_noise(memory, encoded):
    attention = Attention(UNITS, memory, is_luong=True, monotonic=parallel)
    return AttentionWrapper(C.GRUCell(UNITS), attention, 6), None


def several(memory, encoded):
    attentions = [Attention(3, memory, MEMORY_LENGTHS, normalize=True),
                  Attention(UNITS, memory, scale=True, is_luong=True),
                  Attention(4, memory, monotonic=parallel), Attention(2, memory, MEMORY_LENGTHS)]
    return Several(C.GRUCell(UNITS), attentions, [6, 2, 3, 4]), encoded


def several_contexts(memory, encoded):
    attentions = [Attention(UNITS, memory, is_luong=True), Attention(UNITS, memory, MEMORY_LENGTHS, is_luong=True)]
    return Several(C.BasicLSTMCell(UNITS), attentions, output_attention=False), None


def one_of_several(memory, encoded):
    return Several(C.GRUCell(UNITS), [Attention(3, memory)], [6]), None


def in_network():
    x = sequences()
    memory, encoded = encode(x)
    cell, upper = bahdanau(memory, encoded)[0], C.GRUCell(3)
    batch = tf.shape(x)[0]
    states, upper_state, outputs = cell.zero(batch), tf.zeros([batch, 3]), []
    with tf.variable_scope("rnn"), tf.variable_scope("multi_rnn_cell", reuse=tf.AUTO_REUSE):
        for step in range(max(TARGET_LENGTHS)):
            is_past = step >= tf.constant(TARGET_LENGTHS)
            with tf.variable_scope("cell_0"):
                output, new = cell(x[:, step], states)
            with tf.variable_scope("cell_1"):
                output, upper_new = upper(output, upper_state)
            states = tf.nest.map_structure(lambda old, value: choose(is_past, old, value), states, new)
            upper_state = tf.where(is_past, upper_state, upper_new)
            outputs.append(tf.where(is_past, tf.zeros_like(output), output))
    return sum_of(outputs) + sum_of([states, upper_state])


# ---- Inference ----

def embedding():
    return tf.get_variable("embedding", [IDS, FEATURES], initializer=uniform(2.0))


def vocabulary():
    return tf.layers.Dense(IDS, use_bias=False, name="projection", kernel_initializer=uniform(2.0))


def embedded(words):
    def following(step, output, ids):
        return tf.equal(ids, END), tf.nn.embedding_lookup(words, ids)
    return following


def infer(sample):
    x = sequences()
    memory, encoded = encode(x)
    words = embedding()
    cell, _ = normalized(memory, encoded)
    start = tf.nn.embedding_lookup(words, START)
    return 0.1 * decode(cell, cell.zero(tf.shape(x)[0], encoded), start, tf.fill([BATCH], False), vocabulary(), sample,
                        embedded(words), STEPS_MAX, scope="own")


def both():
    x = sequences()
    memory, encoded = encode(x)
    words, layer = embedding(), vocabulary()
    cell, _ = scaled(memory, encoded)
    states = cell.zero(tf.shape(x)[0])
    total = decode(cell, states, x[:, 0], tf.constant(TARGET_LENGTHS) <= 0, layer, argmax, given(x),
                   max(TARGET_LENGTHS))
    start = tf.nn.embedding_lookup(words, START)
    total += decode(cell, states, start, tf.fill([BATCH], False), layer, argmax, embedded(words), STEPS_MAX, True)
    return 0.1 * total


def scheduled(probability, by_output):
    x = sequences()
    words = embedding()
    cell = C.GRUCell(FEATURES if by_output else UNITS)
    layer = None if by_output else vocabulary()

    def following(step, output, ids):
        finished, inputs = given(x)(step, output, ids)
        return finished, output if probability == 1 else inputs

    def sample(output):
        return tf.fill([BATCH], probability if by_output else -1)
    return decode(cell, cell.zero_state(BATCH, tf.float32), x[:, 0], tf.constant(TARGET_LENGTHS) <= 0, layer, sample,
                  following, max(TARGET_LENGTHS))


def raw():
    """Each input is the output of the step before; the sequences end one after the other."""
    x = sequences()
    cell, states = C.BasicLSTMCell(FEATURES), tf.zeros([BATCH, FEATURES])
    inputs, states, emitted, total = x[:, 0], C.LSTMStateTuple(states, states), [], 1.0
    with tf.variable_scope("rnn", reuse=tf.AUTO_REUSE):
        for step in range(max(TARGET_LENGTHS)):
            is_past = step >= tf.constant(TARGET_LENGTHS)
            output, new = cell(inputs, states)
            states = tf.nest.map_structure(lambda old, value: tf.where(is_past, old, value), states, new)
            emitted.append(tf.where(is_past, tf.zeros([BATCH, 2]), 3 * output[:, :2]))
            total += tf.reduce_sum(output)
            inputs = output
    return sum_of(emitted) + sum_of(states) + sum_of(total)


def loss(axes, is_sum):
    x = sequences()
    logits, weights = tf.layers.dense(x, IDS), tf.floor(4 * tf.reduce_max(x, 2))
    losses = weights * tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.argmax(x, 2), logits=logits)
    divisor = tf.cast(tf.not_equal(weights, 0), tf.float32) if is_sum else weights
    return sum_of(tf.math.divide_no_nan(tf.reduce_sum(losses, axes), tf.reduce_sum(divisor, axes)))


# ---- Beam search ----

def gather_beams(value, parents):
    return tf.gather(value, parents, batch_dims=1)


def gather_tree(ids, parents, longest):
    """ids and parents of each step, NumPy."""
    steps, batch, width = ids.shape
    result = np.full(ids.shape, END, np.int32)
    for example in range(batch):
        for beam in range(width):
            at = beam
            for step in reversed(range(min(longest[example], steps))):
                result[step, example, beam] = ids[step, example, at]
                at = parents[step, example, at]
            ends = np.nonzero(result[:, example, beam] == END)[0]
            if len(ends):
                result[ends[0]:, example, beam] = END
    return result


def beams(width, penalty):
    x = sequences()
    memory, encoded = encode(x)
    words = embedding()
    memory, encoded, lengths = [tf.repeat(value, width, 0) for value in (memory, encoded, tf.constant(MEMORY_LENGTHS))]
    attention = Attention(3, memory, lengths, normalize=True)
    cell = AttentionWrapper(C.GRUCell(UNITS), attention, 6)
    states, layer = cell.zero(BATCH * width, encoded), vocabulary()
    inputs = tf.nn.embedding_lookup(words, np.repeat(START, width))
    log_probs = tf.constant([[0.0] + [-np.inf] * (width - 1)] * BATCH, tf.float32)
    finished = tf.constant([[False] + [True] * (width - 1)] * BATCH)
    counts = tf.zeros([BATCH, width], tf.int32)
    end = np.full(IDS, np.finfo(np.float32).min, np.float32)
    end[END] = 0
    is_word = (np.arange(IDS) != END).astype(np.int32)
    ids, parents, scores, run = [], [], [], []
    with tf.variable_scope("decoder", reuse=tf.AUTO_REUSE):
        for step in range(STEPS_MAX):
            runs = tf.logical_not(tf.reduce_all(finished))
            output, new = cell(inputs, states)
            probs = tf.reshape(tf.nn.log_softmax(layer(output)), [BATCH, width, IDS])
            probs = tf.where(tf.tile(finished[:, :, None], [1, 1, IDS]), tf.constant(end) + tf.zeros_like(probs), probs)
            all_probs = log_probs[:, :, None] + probs
            lengths = counts[:, :, None] + is_word * tf.cast(tf.logical_not(finished), tf.int32)[:, :, None]
            score = all_probs / ((5 + tf.cast(lengths, tf.float32)) / 6) ** penalty
            best, index = tf.math.top_k(tf.reshape(score, [BATCH, width * IDS]), width)
            word, parent = index % IDS, index // IDS
            ended = gather_beams(finished, parent)
            new = tf.nest.map_structure(lambda value: value if value.shape.ndims == 0 else tf.reshape(
                gather_beams(tf.reshape(value, [BATCH, width, -1]), parent), tf.shape(value)), new)
            ids.append(word)
            parents.append(parent)
            scores.append(best)
            run.append(runs)
            states = tf.nest.map_structure(lambda old, value: tf.where(runs, value, old), states, new)
            log_probs = tf.where(runs, gather_beams(tf.reshape(all_probs, [BATCH, width * IDS]), index), log_probs)
            counts = tf.where(runs, gather_beams(counts, parent) + 1 - tf.cast(ended, tf.int32), counts)
            finished = tf.where(runs, tf.logical_or(ended, tf.equal(word, END)), finished)
            inputs = tf.nn.embedding_lookup(words, tf.reshape(word, [-1]))
    run = tf.cast(tf.stack(run), tf.float32)
    longest = tf.reduce_max(counts, 1)
    tree = tf.py_func(gather_tree, [tf.stack(ids), tf.stack(parents), longest], tf.int32)
    factor = np.array([1, 2, 3, 5, 7, 11, 13, 17, 19], np.float32)[:width]
    squared = [tf.square(tf.cast(value, tf.float32) * scale) for value, scale in
               ((tree, factor), (tf.stack(parents), factor), (tf.stack(scores), 1))]
    total = 0.01 * tf.add_n([tf.reduce_sum(tf.reduce_sum(value, [1, 2]) * run) for value in squared])
    return 0.01 * (total + sum_of([counts, log_probs, states[0], states[1], states[3]]))


CASES = {
    "bahdanau": lambda: train_with(bahdanau, True, False, False),
    "bahdanau_imputed": lambda: train_with(bahdanau, True, True, True),
    "normalized": lambda: train_with(normalized, True, False, True),
    "luong": lambda: train_with(luong, False, False, False),
    "luong_imputed": lambda: train_with(luong, True, True, False),
    "scaled": lambda: train_with(scaled, True, False, False),
    "hardmax": lambda: train_with(hard, True, False, False),
    "monotonic": lambda: train_with(monotonic, True, False, True),
    "monotonic_hard": lambda: train_with(monotonic_hard, True, False, True),
    "monotonic_noise": lambda: train_with(monotonic_noise, True, False, True),
    "several": lambda: train_with(several, True, False, True),
    "several_imputed": lambda: train_with(several, True, True, False),
    "several_contexts": lambda: train_with(several_contexts, False, False, True),
    "one_of_several": lambda: train_with(one_of_several, True, False, True),
    "in_network": in_network,
    "greedy": lambda: infer(argmax),
    "sample": lambda: infer(argmax),
    "train_and_greedy": both,
    "scheduled_embedding_0": lambda: scheduled(0, False),
    "scheduled_embedding": lambda: scheduled(0, False),
    "scheduled_output_0": lambda: scheduled(0, True),
    "scheduled_output_1": lambda: scheduled(1, True),
    "raw": raw,
    "loss": lambda: loss([0, 1], False),
    "loss_of_steps": lambda: loss([0], False),
    "loss_of_examples": lambda: loss([1], True),
    "loss_sum": lambda: loss([0, 1], True),
    "beam_1": lambda: beams(1, 0.0),
    "beam_3": lambda: beams(3, 0.0),
    "beam_penalty": lambda: beams(4, 1.5),
}

if __name__ == "__main__":
    # What is drawn depends on the numbers of nodes: only the names are compared.
    sys.exit(model_compare.main("seq2seq_graphs", CASES, ["sample", "scheduled_embedding", "monotonic_noise"]))
