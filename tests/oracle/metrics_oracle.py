"""Metrics: values, updates and the names of their variables against TensorFlow's own, over several batches, twice."""

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
DTYPES = dict(labels=tf.float32, scores=tf.float32, flags=tf.bool, guesses=tf.bool, classes=tf.int64,
              guessed=tf.int64, weights=tf.float32)


def batch():
    integers = lambda: random.randint(0, 3, [8])
    return {"labels:0": random.randint(0, 3, [8]).astype(np.float32), "scores:0": random.uniform(0, 1, [8]),
            "flags:0": integers() > 0, "guesses:0": integers() > 1, "classes:0": integers(), "guessed:0": integers(),
            "weights:0": random.randint(0, 4, [8]) * 0.5}


def expected(metric, p, weights):
    more = {"weights": weights}
    make = getattr(tf.metrics, metric.split("_")[0] if metric.startswith("auc") else metric)
    if metric in ("mean", "mean_tensor"):
        return make(p["scores"], **more)
    if metric == "percentage_below":
        return make(p["scores"], 0.4, **more)
    if metric in ("accuracy",):
        return make(p["classes"], p["guessed"], **more)
    if metric in ("mean_iou", "mean_per_class_accuracy"):
        return make(p["classes"], p["guessed"], 4, **more)
    if metric == "mean_relative_error":
        return make(p["labels"], p["scores"], p["labels"], **more)
    if metric == "mean_cosine_distance":
        return make(p["labels"], p["scores"], 0, **more)
    if metric.startswith("mean") or metric.startswith("root"):
        return make(p["labels"], p["scores"], **more)
    if metric.startswith("auc"):
        more |= {"auc_pr": dict(curve="PR"), "auc_minoring": dict(summation_method="minoring", num_thresholds=7),
                 "auc_majoring": dict(summation_method="majoring"),
                 "auc_careful": dict(summation_method="careful_interpolation"),
                 "auc_careful_pr": dict(summation_method="careful_interpolation", curve="PR"),
                 "auc_thresholds": dict(thresholds=[0.5, 1, 0.1])}.get(metric, {})
        return make(p["flags"], p["scores"], **more)
    if metric.endswith("at_thresholds"):
        return make(p["flags"], p["scores"], [0.2, 0.5, 0.9], **more)
    if "_at_" in metric:
        return make(p["flags"], p["scores"], 0.7 if metric.startswith("sens") else 0.6, **more)
    return make(p["flags"], p["guesses"], **more)


def main():
    program = os.path.join(os.environ["MILLRACE_ORACLE"], "metrics_graph")
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "metrics.meta")
        text = subprocess.run([program, path], check=True, capture_output=True, text=True).stdout
        bytes_ = open(path, "rb").read()
    cases = [line.split() for line in text.splitlines()]
    values, updates = [case[2] for case in cases], [case[3] for case in cases]
    ours = millrace.Session(bytes_)
    theirs = tf.Session(graph=tf.Graph())
    with theirs.graph.as_default():
        tf.import_graph_def(tf.MetaGraphDef.FromString(bytes_).graph_def, name="")
    passed = failed = 0

    def check(what, case, got, want):
        nonlocal passed, failed
        right = np.shape(got) == np.shape(want) and np.allclose(got, want, 2e-6, 1e-6)
        passed += right
        failed += not right
        if not right:
            print(f"{what} {case[0]} (weights: {case[1]}): {got} instead of {want}")

    with tf.Graph().as_default(), tf.Session() as session:
        p = {name: tf.placeholder(dtype, [8], name=name) for name, dtype in DTYPES.items()}
        wanted = [expected(case[0], p, p["weights"] if case[1] == "1" else None) for case in cases]
        names = sorted(v.op.name for v in tf.get_collection(tf.GraphKeys.METRIC_VARIABLES))
        for _ in range(2):
            session.run(tf.local_variables_initializer())
            ours.run("reset")
            theirs.run("reset")
            for _ in range(3):
                feeds = batch()
                want = session.run([update for _, update in wanted], feeds)
                for runner, what in ((ours, "update by millrace:"), (theirs, "update by TensorFlow:")):
                    for case, got, right in zip(cases, runner.run(updates, feeds), want):
                        check(what, case, got, right)
                want = session.run([value for value, _ in wanted])
                for runner, what in ((ours, "value by millrace:"), (theirs, "value by TensorFlow:")):
                    for case, got, right in zip(cases, runner.run(values), want):
                        check(what, case, got, right)
    meta = tf.MetaGraphDef.FromString(bytes_)
    for collection in ("metric_variables", "local_variables"):
        found = []
        for item in meta.collection_def[collection].bytes_list.value:
            definition = variable_pb2.VariableDef.FromString(item)
            found.append(definition.variable_name.split(":")[0])
        if sorted(found) != names:
            print(f"{collection}: only here {sorted(set(found) - set(names))[:8]}, "
                  f"only in TensorFlow {sorted(set(names) - set(found))[:8]}")
        passed += sorted(found) == names
        failed += sorted(found) != names
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    tf.disable_v2_behavior()
    sys.exit(main())
