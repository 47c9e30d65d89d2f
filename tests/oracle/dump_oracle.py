"""tfdbg's DebugDumpDir reads the dumps of graph-run, with the values that TensorFlow's own debugger dumps for the same
graph; and tfrecord-cat lists the dumps of TensorFlow."""
import glob
import os
import subprocess
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.debug.lib import debug_data, debug_utils

BIN = os.environ["MILLRACE_BIN"]
passed = 0


def check(condition, *what):
    global passed
    assert condition, what
    passed += 1


def build():
    tf.disable_v2_behavior()
    tf.set_random_seed(3)
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    with tf.variable_scope("layer"):
        y = tf.layers.dense(x, 4, activation=tf.nn.relu)
    loss = tf.reduce_mean(tf.log(y), name="loss")
    start = [tf.constant(0), 1.0]
    loop = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * tf.reduce_sum(x)), start, name="w")
    branch = tf.cond(x[0, 0] > 0, lambda: tf.as_string(x), lambda: tf.fill([1, 1], "none"))
    tf.identity(tf.cast(tf.complex(x, x), tf.complex128), name="both")
    train = tf.train.AdamOptimizer(0.1).minimize(loss, name="train")
    fetches = [loss, loop[1], branch, tf.get_default_graph().get_tensor_by_name("both:0")]
    return x, fetches, train


def dump_with_tensorflow(session, fetches, train, feeds, directory):
    options = tf.RunOptions()
    debug_utils.watch_graph(options, session.graph, debug_urls=["file://" + directory])
    metadata = tf.RunMetadata()
    session.run([fetches, train], feeds, options=options, run_metadata=metadata)
    return debug_data.DebugDumpDir(directory, partition_graphs=metadata.partition_graphs)


def same(ours, theirs):
    if ours.dtype.kind in "OSU":
        return np.array_equal(ours, theirs)
    return ours.dtype == theirs.dtype and ours.shape == theirs.shape and np.allclose(
        ours, theirs, rtol=2e-6, atol=1e-7, equal_nan=True)


def compare(ours, theirs):
    """Every value of ours is one of TensorFlow's; TensorFlow also has what no operator of ours computes."""
    ours = {(d.node_name, d.output_slot): ours.get_tensors(d.node_name, d.output_slot, d.debug_op)
            for d in ours.dumped_tensor_data}
    operators = {n.name: n.op for n in tf.get_default_graph().as_graph_def().node}
    expected = {}
    for d in theirs.dumped_tensor_data:
        if d.debug_op == "DebugIdentity":
            expected[d.node_name, d.output_slot] = theirs.get_tensors(d.node_name, d.output_slot, d.debug_op)
    for key, values in ours.items():
        if key not in expected:  # of a branch that is not taken
            check(operators[key[0]] == "Const", key, operators[key[0]])
            continue
        if operators[key[0]] == "Const":
            del expected[key][1:]  # TensorFlow computes those of a loop in each iteration
        check(len(values) == len(expected[key]), key, len(values), len(expected[key]))
        for mine, other in zip(values, expected[key]):
            check(same(np.asarray(mine), np.asarray(other)), key, mine, other)
    for key in expected:
        check(key in ours or operators.get(key[0], "") in (
            "", "Switch", "Merge", "Enter", "Exit", "NextIteration",
            "Const"), key, operators.get(key[0]))
    return len(ours)


def main():
    x, fetches, train = build()
    saver = tf.train.Saver()
    with tempfile.TemporaryDirectory() as directory:
        config = tf.ConfigProto(graph_options=tf.GraphOptions(
            rewrite_options={"disable_meta_optimizer": True},
            optimizer_options=tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0)))
        session = tf.Session(config=config)
        session.run(tf.global_variables_initializer())
        value = np.array([[1, 2, 3], [3, -4, 5]], np.float32)
        saver.save(session, directory + "/model")
        np.save(directory + "/x.npy", value)
        command = [BIN + "/graph-run", directory + "/model.meta", "--restore", directory + "/model", "--feed",
                   f"x=@{directory}/x.npy", "--target", "train", "--dump", directory + "/ours"]
        for fetch in fetches:
            command += ["--fetch", fetch.name]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
        theirs = dump_with_tensorflow(session, fetches, train, {x: value}, directory + "/theirs")
        (run, ) = glob.glob(directory + "/ours/run_*")
        ours = debug_data.DebugDumpDir(run)  # checks the order of the values against the graph
        check(compare(ours, theirs) > 50)
        metadata = ours.core_metadata
        check(metadata.input_names == ["x:0"] and metadata.output_names == [f.name for f in fetches], metadata)
        check(ours.run_feed_keys_info == "['x:0']", ours.run_feed_keys_info)
        found = [d.tensor_name for d in ours.find(debug_data.has_inf_or_nan)]
        expected = {d.tensor_name for d in theirs.find(debug_data.has_inf_or_nan)}
        check(set(found) <= expected and f"is {found[0]}\n" in said, found, said)

        # tfrecord-cat reads TensorFlow's dump: as many lines, and the infinities.
        lines = subprocess.run([BIN + "/tfrecord-cat", "--dump", directory + "/theirs"], check=True,
                               capture_output=True, text=True).stdout.splitlines()
        check(len(lines) == theirs.size, len(lines), theirs.size)
        bad = {d.watch_key for d in theirs.find(debug_data.has_inf_or_nan)}
        check(sum("NaN or infinite" in line for line in lines) == len(bad), len(bad))
        for datum in theirs.dumped_tensor_data[:20]:
            check(any(f"{datum.tensor_name[:30]}" in line for line in lines), datum.tensor_name)
    print(f"{passed} passed, 0 failed")


main()
