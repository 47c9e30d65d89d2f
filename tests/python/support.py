"""Graphs for the tests of python/millrace, written with TensorFlow."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "python"))

import tensorflow.compat.v1 as tf  # noqa: E402

import millrace  # noqa: E402

tf.disable_eager_execution()


def session(build):
    """A millrace.Session of what build() adds to a new graph, and its result."""
    graph = tf.Graph()
    with graph.as_default():
        result = build()
    return millrace.Session(graph.as_graph_def().SerializeToString()), result
