"""Losses: every loss, reduction and kind of weights against TensorFlow's own, run by TensorFlow and by millrace."""

import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "python"))
import numpy as np
import millrace
import tensorflow.compat.v1 as tf

REDUCTIONS = ["weighted_sum_by_nonzero_weights", "none", "weighted_sum", "weighted_mean",
              "weighted_sum_over_batch_size"]
random = np.random.RandomState(1)
LABELS = random.uniform(0, 1, [4, 3]).astype(np.float32)
PREDICTIONS = random.uniform(0.05, 0.95, [4, 3]).astype(np.float32)
CLASSES = np.array([2, 0, 1, 1])
FULL = np.array([[1, 0, 2], [0, 0, 0], [0.5, 3, 1], [1, 1, 1]], np.float32)
ROW = np.array([1, 0, 2, 0.5], np.float32)


def total(number):
    """Sums of losses of some scopes."""
    return [lambda: tf.losses.get_total_loss(scope="(absolute_difference|log_loss|huber)[/:]"),
            lambda: tf.losses.get_total_loss(scope="huber(_loss)?[/:]"),
            lambda: tf.losses.get_total_loss(add_regularization_losses=False, scope="huber(_loss)?[/:]"),
            lambda: tf.losses.get_regularization_loss(scope="hub")][number]()


def expected(name, reduction, weights):
    if name == "total":
        return total(reduction)
    more = {"reduction": REDUCTIONS[reduction]}
    is_softmax = "softmax" in name
    more["weights"] = {"none": 1.0, "scalar": 0.5, "row": ROW if is_softmax else ROW[:, None], "zero": 0.0,
                       "full": FULL}[weights]
    if name == "mean_pairwise_squared_error":
        del more["reduction"]
    if name == "cosine_distance":
        more["axis"] = 1
    if name == "huber_loss":
        more["delta"] = 0.7
    if name in ("sigmoid_cross_entropy", "softmax_cross_entropy"):
        more["label_smoothing"] = 0.1
    labels = CLASSES if name.startswith("sparse") else LABELS
    if is_softmax or name == "sigmoid_cross_entropy":
        more["logits"] = PREDICTIONS
        return getattr(tf.losses, name)(labels, **more)
    return getattr(tf.losses, name)(labels, PREDICTIONS, **more)


def main():
    program = os.path.join(os.environ["MILLRACE_ORACLE"], "losses_graph")
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "losses.meta")
        text = subprocess.run([program, path], check=True, capture_output=True, text=True).stdout
        bytes_ = open(path, "rb").read()
    cases = [line.split() for line in text.splitlines()]
    names = [case[4] for case in cases]
    meta = tf.MetaGraphDef.FromString(bytes_)
    feeds = {}
    for k in "01":
        feeds |= {f"labels{k}:0": LABELS, f"predictions{k}:0": PREDICTIONS, f"classes{k}:0": CLASSES}
    feeds |= {"full:0": FULL, "full_1:0": FULL}
    passed = failed = 0
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(meta.graph_def, name="")
        by_tensorflow = session.run(names, feeds)
    by_millrace = millrace.Session(bytes_).run(names, feeds)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, tf.constant(3.0, name="huber"))
        wanted = [expected(case[0], int(case[1]), case[2]) for case in cases]
        count = len(tf.losses.get_losses())
        wanted = session.run(wanted)
    for case, want, ours, theirs in zip(cases, wanted, by_millrace, by_tensorflow):
        is_right = all(np.shape(got) == np.shape(want) and np.allclose(got, want, 2e-6, 1e-6) for got in (ours, theirs))
        passed += is_right
        failed += not is_right
        if not is_right:
            print(f"{' '.join(case)}: millrace {ours}, TensorFlow {theirs} instead of {want}")
    collected = len(meta.collection_def["losses"].node_list.value)
    if collected != count:
        print(f"{collected} losses in the collection instead of {count}")
        failed += 1
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    tf.disable_v2_behavior()
    sys.exit(main())
