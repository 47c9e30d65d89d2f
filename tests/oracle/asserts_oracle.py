"""Assertions of our graphs, run here and in TensorFlow, and TensorFlow's own: the same ones fail, with the same
texts."""
import os
import re
import subprocess
import sys
import tempfile
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.filterwarnings("ignore")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import numpy as np
import tensorflow.compat.v1 as tf

import millrace

tf.logging.set_verbosity(tf.logging.ERROR)
tf.disable_v2_behavior()
D = tf.debugging
FEEDS = [
    ([1, 2, 3, 4], [1, 2, 3, 4], [[1.0]]),
    ([1, 2, 3, 4], [1, 2, 3, 5], [1.0, 2.0]),
    ([2, 3, 4, 5], [1, 2, 3, 4], 3.0),
    ([-1, -2, 0, 1], [0, 0, 0, 2], [2.0, 1.0, 1.0]),
    ([0, 0, 0, 0], [1, 1, 1, 1], [[1.0, 2.0], [2.0, 3.0]]),
    ([-2, -1], [-2, -1], [0.0, np.nan]),
    ([np.nan], [np.nan], []),
    ([np.inf, 1], [np.inf, 1], [1.0, 1.0]),
    ([], [], [[[0.5]]]),
    ([1], [1.2], [5.0]),
]


def theirs():
    x = tf.placeholder(tf.float32, [None], "x")
    y = tf.placeholder(tf.float32, [None], "y")
    u = tf.placeholder(tf.float32, name="u")
    return {
        "equal": D.assert_equal(x, y),
        "equal_message": D.assert_equal(x, y, message="M"),
        "equal_empty": D.assert_equal(x, y, message=""),
        "equal_data": D.assert_equal(x, y, data=[x, "text"], summarize=1),
        "equal_unknown": D.assert_equal(u, tf.identity(u)),
        "none_equal": D.assert_none_equal(x, y),
        "less": D.assert_less(x, y, summarize=2),
        "less_equal": D.assert_less_equal(x, y, summarize=-1),
        "greater": D.assert_greater(x, y),
        "greater_equal": D.assert_greater_equal(x, y),
        "near": D.assert_near(x, y),
        "near_limits": D.assert_near(x, y, rtol=0.25, atol=0.5),
        "positive": D.assert_positive(x),
        "positive_message": D.assert_positive(x, message="M"),
        "negative": D.assert_negative(x),
        "non_negative": D.assert_non_negative(x),
        "non_positive": D.assert_non_positive(x),
        "rank": D.assert_rank(u, 1),
        "rank_message": D.assert_rank(u, 1, message="M"),
        "rank_at_least": D.assert_rank_at_least(u, 2),
        "rank_in": D.assert_rank_in(u, [0, 2]),
        "finite": tf.verify_tensor_all_finite(x, "M"),
        "non_decreasing": D.is_non_decreasing(x),
        "strictly_increasing": D.is_strictly_increasing(u),
    }


def outcome(run):
    """The value, or the text of the failed assertion without what differs on purpose."""
    try:
        value = run()
        return "" if value is None else str(value)
    except (tf.errors.InvalidArgumentError, millrace.errors.InvalidArgumentError) as error:
        text = str(error)
        found = re.search(r"assertion failed: .*", text)
        if found is None:
            assert "M : Tensor had" in text, text
            return re.search(r"M : Tensor had \S+( and \S+)? values", text).group(0)
        text = re.sub(r"not equal to tolerance rtol = .*?, dtype=float32\), atol = .*?, dtype=float32\)",
                      "not equal to tolerance", found.group(0))
        text = text.replace("element-wise:x (x:0)", "element-wise:] [x (x:0)")  # TensorFlow's assert_non_positive
        return re.sub(r"\]\s*(\n|$|\(|\t).*|\]\s*\[\[.*", "]", text)


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "asserts.meta")
        program = os.path.join(os.environ["MILLRACE_ORACLE"], "asserts_graph")
        text = subprocess.run([program, path], check=True, capture_output=True, text=True).stdout
        bytes_ = open(path, "rb").read()
    names = dict(line.split(" ") for line in text.splitlines())
    ours = millrace.Session(bytes_)
    with tf.Graph().as_default() as imported:
        tf.train.import_meta_graph(tf.MetaGraphDef.FromString(bytes_))
    with tf.Graph().as_default() as graph:
        wanted = theirs()
    is_value = {"non_decreasing", "strictly_increasing"}
    with tf.Session(graph=graph) as session, tf.Session(graph=imported) as exported:
        for x, y, u in FEEDS:
            feeds = {"x:0": np.float32(x), "y:0": np.float32(y), "u:0": np.float32(u)}
            for name, node in names.items():
                fetch = node + ":0" if name in is_value else node
                op = wanted[name] if name in is_value else getattr(wanted[name], "op", wanted[name])
                a = outcome(lambda: ours.run(fetch, feeds))
                b = outcome(lambda: session.run(op, feeds))
                c = outcome(lambda: exported.run(fetch, feeds))
                if name == "equal_unknown":  # the names of the two values differ
                    a, b, c = (re.sub(r"[xy] \(\S+\)", "x", text) for text in (a, b, c))
                right = a == b == c
                passed += right
                failed += not right
                if not right:
                    print(f"{name} of {x}, {y}, {u}:\n  ours   {a}\n  theirs {b}\n  ours in TensorFlow {c}")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
