"""Metrics of the k best classes: values, updates, their names and those of the variables against TensorFlow's own, over
several batches, with labels of every kind."""

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
from tensorflow.core.framework import variable_pb2

random = np.random.RandomState(1)
SPARSE = {"some": 2, "few": 1, "some3": 3}


def make_labels(shape, is_valid):
    """Class ids from -2 to 8, of 6 classes; if is_valid, the first one of each row is a class."""
    labels = random.randint(-2, 9, shape)
    if is_valid:
        labels[..., 0] = random.randint(0, 6, shape[:-1])
    return labels


def make_sparse(shape, is_valid):
    labels = make_labels(shape, is_valid)
    kept = random.uniform(size=shape) < 0.6
    if is_valid:
        kept[..., 0] = True
    return np.argwhere(kept), labels[kept], np.array(shape, np.int64)


def batch(is_valid):
    scores = lambda *shape: random.randint(0, 5, shape) * 0.25 # with ties
    tops = lambda *shape: random.randint(-1, 8, shape)
    rows = random.randint(1, 6)
    feeds = {"scores": scores(4, 6), "top": tops(4, 3), "weights": random.uniform(0, 2, 4), "weight": 0.3,
             "labels": make_labels((4, 3), is_valid), "single": make_labels((4, 1), is_valid)[:, 0],
             "scores3": scores(2, 3, 6), "top3": tops(2, 3, 3), "weights3": scores(2, 1),
             "labels3": make_labels((2, 3, 2), is_valid), "single3": make_labels((2, 3, 1), is_valid)[..., 0],
             "rows": scores(rows, 7), "row_labels": make_labels((rows, 2), is_valid), "any": scores(rows, 9),
             "any_top": tops(rows, 4), "any_weights": scores(rows), "any_labels": make_labels((rows, 3), is_valid),
             "any_single": make_labels((rows, 1), is_valid)[:, 0]}
    indices, values, shape = make_sparse((4, 1), is_valid)
    parts = {"some": make_sparse((4, 3), is_valid), "few": (indices[:, :1], values, shape[:1]),
             "some3": make_sparse((2, 3, 4), is_valid)}
    for name, (indices, values, shape) in parts.items():
        feeds |= {name + "_indices": indices, name + "_values": values, name + "_shape": shape}
    return {name + ":0": value for name, value in feeds.items()}


def expected(case, p):
    """TensorFlow's metric for a line of the program."""
    metric, labels, predictions, k, class_id, weights = case[:6]
    more = {"weights": None if weights == "-" else p[weights + ":0"]}
    if labels in SPARSE:
        labels = tf.SparseTensor(*[p[f"{labels}_{part}:0"] for part in ("indices", "values", "shape")])
    else:
        labels = p[labels + ":0"]
    if k != "-":
        more["k"] = int(k)
    if class_id != "-":
        more["class_id"] = int(class_id)
    return getattr(tf.metrics, metric)(labels, p[predictions + ":0"], **more)


def main():
    program = os.path.join(os.environ["MILLRACE_ORACLE"], "metrics_at_k_graph")
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "metrics.meta")
        text = subprocess.run([program, path], check=True, capture_output=True, text=True).stdout
        bytes_ = open(path, "rb").read()
    cases = [line.split() for line in text.splitlines()]
    values, updates = [case[6] for case in cases], [case[7] for case in cases]
    meta = tf.MetaGraphDef.FromString(bytes_)
    ours = millrace.Session(bytes_)
    theirs = tf.Session(graph=tf.Graph())
    with theirs.graph.as_default():
        tf.import_graph_def(meta.graph_def, name="")
    passed = failed = finite = 0

    def check(what, case, got, want):
        nonlocal passed, failed, finite
        right = np.shape(got) == np.shape(want) and np.allclose(got, want, 1e-12, 1e-12, equal_nan=True)
        right = right and np.asarray(got).dtype == np.float64
        finite += bool(np.isfinite(want))
        passed += right
        failed += not right
        if not right and failed < 20:
            print(f"{what} {case}: {got} instead of {want}")

    with tf.Graph().as_default(), tf.Session() as session:
        with theirs.graph.as_default():
            placeholders = [node for node in meta.graph_def.node if node.op == "Placeholder"]
        p = {}
        for node in placeholders:
            shape = node.attr["shape"].shape
            sizes = None if shape.unknown_rank else [None if d.size < 0 else d.size for d in shape.dim]
            p[node.name + ":0"] = tf.placeholder(node.attr["dtype"].type, sizes, name=node.name)
        wanted = [expected(case, p) for case in cases]
        for case, (value, update) in zip(cases, wanted):
            right = case[6:8] == [value.name, update.name]
            passed += right
            failed += not right
            if not right:
                print(f"names of {case}: expected {value.name} {update.name}")
        names = sorted((v.op.name, v.dtype.base_dtype) for v in tf.get_collection(tf.GraphKeys.METRIC_VARIABLES))
        for is_valid in (True, False, True):
            session.run(tf.local_variables_initializer())
            ours.run("reset")
            theirs.run("reset")
            want = session.run([value for value, _ in wanted])
            for case, got, right in zip(cases, ours.run(values), want):
                check("value before the first update by millrace:", case, got, right)
            for _ in range(3):
                feeds = batch(is_valid)
                want = session.run([update for _, update in wanted], feeds)
                for runner, what in ((ours, "update by millrace:"), (theirs, "update by TensorFlow:")):
                    for case, got, right in zip(cases, runner.run(updates, feeds), want):
                        check(what, case, got, right)
                want = session.run([value for value, _ in wanted])
                for runner, what in ((ours, "value by millrace:"), (theirs, "value by TensorFlow:")):
                    for case, got, right in zip(cases, runner.run(values), want):
                        check(what, case, got, right)
    dtypes = {node.name: node.attr["dtype"].type for node in meta.graph_def.node}
    for collection in ("metric_variables", "local_variables"):
        found = []
        for item in meta.collection_def[collection].bytes_list.value:
            name = variable_pb2.VariableDef.FromString(item).variable_name.split(":")[0]
            found.append((name, tf.as_dtype(dtypes[name])))
        if sorted(found, key=str) != sorted(names, key=str):
            print(f"{collection}: only here {sorted(set(found) - set(names), key=str)[:8]}, "
                  f"only in TensorFlow {sorted(set(names) - set(found), key=str)[:8]}")
        passed += sorted(found, key=str) == sorted(names, key=str)
        failed += sorted(found, key=str) != sorted(names, key=str)
    print(f"{passed} passed, {failed} failed; {finite} of the values are finite")
    return failed != 0


if __name__ == "__main__":
    tf.disable_v2_behavior()
    sys.exit(main())
