"""Losses of sampled classes, of sequences, and CTC, compared with TensorFlow's (model_compare.py)."""
import sys

import model_compare
import numpy as np
import tensorflow.compat.v1 as tf

TIME, FEATURES, CLASSES, BATCH = 7, 4, 23, 6
LOG_UNIFORM, UNIFORM, LEARNED, FIXED, ALL = range(5)
UNIGRAMS = [9, 8, 7, 7, 7, 5, 5, 5, 4, 4, 3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1]


def sampled(loss, kind, strategy, sampler, hits, num_true):
    x = tf.layers.dense(tf.placeholder(tf.float32, [None, FEATURES], name="x"), 5, tf.tanh)
    i = np.arange(BATCH * num_true)
    labels = tf.constant((i * i * 5 % 11).reshape(BATCH, num_true), tf.int64)
    more = {"initializer": tf.random_uniform_initializer(-0.5, 0.5), "use_resource": kind == "resource"}
    if kind == "parts":
        more["partitioner"] = tf.fixed_size_partitioner(3)
    weights = tf.get_variable("weights", [CLASSES, 5], **more)
    biases = tf.get_variable("biases", [CLASSES], **more)
    own, count = {"num_true": num_true, "true_classes": labels, "seed": 9}, 8
    if sampler == UNIFORM:
        values = tf.nn.uniform_candidate_sampler(num_sampled=8, unique=False, range_max=CLASSES, **own)
    elif sampler == LEARNED:
        values = tf.nn.learned_unigram_candidate_sampler(num_sampled=8, unique=True, range_max=CLASSES, **own)
    elif sampler == FIXED:
        values = tf.nn.fixed_unigram_candidate_sampler(num_sampled=8, unique=True, range_max=CLASSES, distortion=0.75,
                                                       unigrams=UNIGRAMS, **own)
    elif sampler == ALL:
        values, count = tf.nn.all_candidate_sampler(num_sampled=CLASSES, unique=True, **own), CLASSES
    else:
        values = tf.nn.log_uniform_candidate_sampler(num_sampled=8, unique=True, range_max=CLASSES, **own)
    return getattr(tf.nn, loss)(weights, biases, labels, x, count, CLASSES, num_true, values, hits,
                                partition_strategy=strategy)


def nce(kind="whole", strategy="mod", sampler=LOG_UNIFORM, hits=False, num_true=1):
    return lambda: sampled("nce_loss", kind, strategy, sampler, hits, num_true)


def softmax(kind="whole", strategy="mod", sampler=LOG_UNIFORM, hits=True, num_true=1):
    return lambda: sampled("sampled_softmax_loss", kind, strategy, sampler, hits, num_true)


def sequences(classes):
    return tf.layers.dense(tf.placeholder(tf.float32, [None, TIME, FEATURES], name="x"), classes)


def sequence(axes, counts=False):
    """tf.contrib.seq2seq.sequence_loss, from its formulas: the weighted losses, reduced over some axes."""
    def make():
        i = np.arange(BATCH * TIME)
        is_absent = (i % TIME > i // TIME) | (i // TIME == 0)
        weights = np.where(is_absent, 0, (1 + i % 3) / 2).astype(np.float32).reshape(BATCH, TIME)
        losses = weights * tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=(i * i % 5).reshape(BATCH, TIME), logits=sequences(5))
        if not axes:
            return losses
        total = (weights != 0) if counts else weights
        return tf.div_no_nan(tf.reduce_sum(losses, axes), total.astype(np.float32).sum(tuple(axes)))
    return make


def ctc_labels():
    return tf.SparseTensor([[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [2, 0], [3, 0], [4, 0], [4, 1], [5, 0]],
                           tf.constant([1, 3, 0, 0, 2, 2, 1, 2, 2, 3]), [BATCH, 3])


LENGTHS = [3, 7, 1, 2, 5, 6]


def ctc(time_major, collapses=False, merges=True):
    def make():
        logits = sequences(5)
        if time_major:
            logits = tf.transpose(logits, [1, 0, 2])
        return tf.nn.ctc_loss(ctc_labels(), logits, LENGTHS, collapses, merges, time_major=time_major)
    return make


def decoders():
    logits = tf.transpose(sequences(5), [1, 0, 2])
    greedy, score = tf.nn.ctc_greedy_decoder(logits, LENGTHS)
    beams, scores = tf.nn.ctc_beam_search_decoder(logits, LENGTHS, beam_width=9, top_paths=3)
    loss = tf.nn.ctc_loss(ctc_labels(), logits, LENGTHS)
    found = [tf.cast(labels.values, tf.float32) for labels in greedy + beams]
    score, scores = [tf.reshape(tf.stop_gradient(value), [-1]) for value in (score, scores)]
    return tf.concat([score, scores, loss] + found, 0) * 0.1


CASES = {
    "nce": nce(),
    "nce_hits": nce(hits=True, num_true=2),
    "nce_resource": nce("resource"),
    "nce_div": nce("parts", "div", num_true=3),
    "nce_all": nce(sampler=ALL, hits=True),
    "softmax": softmax(),
    "softmax_no_hits": softmax(hits=False, num_true=3),
    "softmax_resource": softmax("resource", num_true=2),
    "softmax_div": softmax("parts", "div"),
    "softmax_mod": softmax("parts", num_true=2),
    "softmax_uniform": softmax(sampler=UNIFORM),
    "softmax_learned": softmax(sampler=LEARNED, num_true=2),
    "softmax_fixed": softmax(sampler=FIXED),
    "sequence": sequence([0, 1]),
    "sequence_none": sequence([]),
    "sequence_time": sequence([1]),
    "sequence_batch": sequence([0]),
    "sequence_sum": sequence([0, 1], True),
    "sequence_sum_time": sequence([1], True),
    "sequence_sum_batch": sequence([0], True),
    "ctc": ctc(True),
    "ctc_batch_major": ctc(False),
    "ctc_collapse": ctc(True, collapses=True),
    "ctc_no_merge": ctc(False, merges=False),
    "decoders": decoders,
}

if __name__ == "__main__":
    sys.exit(model_compare.main("sampled_losses_graphs", CASES))
