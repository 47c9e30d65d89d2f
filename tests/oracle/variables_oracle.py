"""Variables and initializers, compared with TensorFlow's.

variables_graphs.c creates variables with every initializer. TensorFlow's get_variable gives them the same names, and
the same values for the same seeds. TensorFlow also reads millrace's MetaGraphDef: with kinds, collections and slices of
the variables, and its initializers compute the same values."""

import os
import subprocess
import sys
import tempfile
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.filterwarnings("ignore")
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import init_ops

tf.logging.set_verbosity(tf.logging.ERROR)


def create():
    def v(name, shape, initializer=None, **options):
        return tf.get_variable(name, shape, initializer=initializer, **options)

    i = tf.initializers
    v("zeros", [2, 3], i.zeros())
    v("zeros_large", [40, 50], i.zeros())
    v("ones", [3], i.ones())
    v("ones_int", [3], i.ones(), dtype=tf.int64)
    v("constant", [2, 2], i.constant(2.5))
    v("default", [3, 4], tf.glorot_uniform_initializer(7))
    v("default_int", [3], dtype=tf.int32)
    v("default_bool", [3], dtype=tf.bool)
    v("uniform", [3, 4], i.random_uniform(-1, 3, 7))
    v("uniform_int", [3, 4], i.random_uniform(-10, 30, 7, tf.int32), dtype=tf.int32)
    v("normal", [3, 4], i.random_normal(1, 2, 7))
    v("truncated", [3, 4], i.truncated_normal(1, 2, 7))
    v("glorot_uniform", [3, 3, 2, 4], i.glorot_uniform(7))
    v("glorot_normal", [5, 4], i.glorot_normal(7))
    v("he_normal", [5, 4], i.he_normal(7))
    v("he_uniform", [5, 4], i.he_uniform(7))
    v("lecun_normal", [5, 4], i.lecun_normal(7))
    v("lecun_uniform", [6], i.lecun_uniform(7))
    v("scaling", [5, 4], i.variance_scaling(3, "fan_out", seed=7))
    v("scaling_normal", [5, 4], i.variance_scaling(3, "fan_avg", "untruncated_normal", 7))
    v("scaling_uniform", [5, 4], i.variance_scaling(1, "fan_in", "uniform", 7))
    v("unit_scaling", [5, 2, 4], i.uniform_unit_scaling(1.5, 7))
    v("orthogonal", [5, 4], i.orthogonal(1, 7))
    v("orthogonal_wide", [2, 2, 6], i.orthogonal(2, 7))
    v("identity", [3, 3], i.identity(2))
    v("identity_wide", [3, 5], i.identity())
    v("delta1", [3, 2, 4], init_ops.convolutional_delta_orthogonal(1, 7))
    v("delta2", [3, 2, 2, 3], init_ops.convolutional_delta_orthogonal(2, 7))
    v("delta3", [2, 3, 1, 2, 2], init_ops.convolutional_delta_orthogonal(1, 7))
    v("convolution1", [4, 2, 3], init_ops.convolutional_orthogonal_1d(2, 7))
    v("convolution2", [3, 3, 2, 3], init_ops.convolutional_orthogonal_2d(1, 7))
    v("convolution3", [3, 3, 3, 2, 2], init_ops.convolutional_orthogonal_3d(1, 7))
    v("convolution_small", [1, 1, 2, 3], init_ops.convolutional_orthogonal_2d(1, 7))
    v("double", [3, 4], i.he_normal(7), dtype=tf.float64)
    v("half", [3, 4], i.glorot_uniform(7), dtype=tf.float16)
    v("bfloat", [3, 4], i.random_normal(0, 1, 7), dtype=tf.bfloat16)
    v("value", None, tf.constant([[1.5, -2, 3], [0.25, 5, 6]], name="given"))
    v("parts", [7, 3], i.glorot_uniform(7), partitioner=tf.fixed_size_partitioner(3))
    v("parts_axis", [4, 6], i.identity(), partitioner=tf.variable_axis_size_partitioner(40, 1))
    v("resource", [3, 4], i.he_uniform(7), use_resource=True)
    v("local", [2], i.ones(), collections=["local_variables", "metric_variables"], trainable=False)
    v("model", [2], i.ones(), collections=["variables", "model_variables"])
    tf.get_local_variable("local_too", [2], initializer=i.zeros())


def values(names):
    """The values of all variables after their initialization, by collection."""
    found = {}
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for collection in names:
            for variable in tf.get_collection(collection):
                value = session.run(variable)
                found[collection, variable.op.name] = np.asarray(value).astype(np.float64).ravel()
    return found


def compare(ours, theirs):
    failures = []
    if list(ours) != list(theirs):
        failures.append("names: %s, not %s" % (list(ours), list(theirs)))
    for key, value in theirs.items():
        tolerance = {"half": 1e-3, "bfloat": 1e-2}.get(key[1], 1e-6)
        if "orthogonal" in key[1] or "delta" in key[1] or "convolution" in key[1]:
            tolerance = 1e-5
        try:
            np.testing.assert_allclose(ours[key], value, rtol=tolerance, atol=tolerance)
        except (AssertionError, KeyError) as error:
            failures.append("%s: %s" % (key, str(error)[:600]))
    return failures


def slices():
    found = {}
    for variable in tf.global_variables():
        info = variable._get_save_slice_info()
        if info is not None:
            found[variable.op.name] = (info.full_name, list(info.full_shape), list(info.var_offset),
                                       list(info.var_shape))
    return found


def kinds():
    return {v.op.name: (v.op.type, v.trainable if hasattr(v, "trainable") else None,
                        [n for n in ("variables", "trainable_variables", "local_variables", "model_variables",
                                     "metric_variables") if v.op.name in [u.op.name for u in tf.get_collection(n)]])
            for v in tf.global_variables() + tf.local_variables()}


def main():
    tf.disable_v2_behavior()
    program = os.path.join(os.environ["MILLRACE_ORACLE"], "variables_graphs")
    lists = ["variables", "local_variables"]
    with tempfile.TemporaryDirectory() as directory:
        path = directory + "/variables.meta"
        text = subprocess.run([program, path], check=True, capture_output=True, text=True).stdout
        lines = [line.split() for line in text.splitlines()]
        ours = {(line[0], line[1]): np.array([float(n) for n in line[2:]]) for line in lines if line[0] != "node"}
        with tf.Graph().as_default():
            tf.set_random_seed(42)
            create()
            theirs, their_slices, their_kinds = values(lists), slices(), kinds()
            their_nodes = {node.name for node in tf.get_default_graph().as_graph_def().node}
        with tf.Graph().as_default():
            tf.train.import_meta_graph(path)
            imported, imported_slices, imported_kinds = values(lists), slices(), kinds()
        failures = compare(ours, theirs) + ["imported " + text for text in compare(imported, theirs)]
        if imported_slices != their_slices:
            failures.append("slices: %s, not %s" % (imported_slices, their_slices))
        if imported_kinds != their_kinds:
            failures += ["kinds: %s: %s, not %s" % (name, imported_kinds.get(name), kind)
                         for name, kind in their_kinds.items() if imported_kinds.get(name) != kind]
        missing = {name for name in their_nodes if "/Initializer/" not in name} - {line[1] for line in lines
                                                                                 if line[0] == "node"}
        missing = {name for name in missing if not name.startswith("init")}
        if missing:
            failures.append("nodes: %s" % sorted(missing))
    for failure in failures:
        print(failure)
    print("%d passed, %d failed" % (2 * len(theirs) + 3 - len(failures), len(failures)))
    return failures != []


if __name__ == "__main__":
    sys.exit(main())
