"""Checkpoints of partitioned and resource variables, written here and there: TensorFlow restores ours, through its own
Saver and through our MetaGraph, and we restore TensorFlow's, with any number of parts."""

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

tf.logging.set_verbosity(tf.logging.ERROR)
tf.disable_v2_behavior()
TABLE, R, W = np.arange(33.0).reshape(11, 3), np.arange(4.0) + 100, np.arange(4.0).reshape(2, 2) + 200


def ours(*arguments):
    program = os.path.join(os.environ["MILLRACE_ORACLE"], "saver_graphs")
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    lines = [line.split(" ", 1) for line in done.stdout.splitlines()]
    if done.returncode != 0:
        return lines[0][1]
    return {name: np.array([float(x) for x in values.split()]) for name, values in lines}


def same(values, table, r, w):
    np.testing.assert_array_equal(values["table"], table.ravel())
    np.testing.assert_array_equal(values["r"], r)
    np.testing.assert_array_equal(values["w"], w.ravel())


def build(parts):
    partitioner = tf.fixed_size_partitioner(parts) if parts > 1 else None
    with tf.variable_scope("scope"):
        table = tf.get_variable("table", [11, 3], partitioner=partitioner)
    r = tf.get_variable("r", [4], use_resource=True)
    return [tf.convert_to_tensor(table), r, tf.get_variable("w", [2, 2], use_resource=False)]


def theirs_of_ours(directory):
    """TensorFlow's reader, its Saver with other parts, and our graph in TensorFlow."""
    path = os.path.join(directory, "ours")
    same(ours("write", path), TABLE, R, W)
    reader = tf.train.load_checkpoint(path + "-0")
    np.testing.assert_array_equal(reader.get_tensor("scope/table"), TABLE)
    for parts in (1, 3, 4):
        with tf.Graph().as_default(), tf.Session() as session:
            values = build(parts)
            tf.train.Saver().restore(session, path + "-0")
            for found, expected in zip(session.run(values), (TABLE, R, W)):
                np.testing.assert_array_equal(found, expected)
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(path + "-0.meta")
        saver.restore(session, path + "-0")
        parts = [v for v in tf.global_variables() if v.op.name.startswith("scope/table")]
        assert len(parts) == 3, parts
        np.testing.assert_array_equal(np.concatenate(session.run(parts)), TABLE)
        saver.save(session, os.path.join(directory, "again"))
    same(ours("read", os.path.join(directory, "again"), 2), TABLE, R, W)


def ours_of_theirs(directory):
    path = os.path.join(directory, "theirs")
    for parts in (1, 4):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(1)
            values = build(parts)
            session.run(tf.global_variables_initializer())
            tf.train.Saver().save(session, path)
            expected = session.run(values)
        for own in (1, 2, 5, 11):
            found = ours("read", path, own)
            for name, value in zip(("table", "r", "w"), expected):
                np.testing.assert_allclose(found[name], value.ravel(), rtol=1e-5)


def names(directory):
    path = os.path.join(directory, "named")
    with tf.Graph().as_default(), tf.Session() as session:
        value = tf.Variable(W, dtype=tf.float32)
        session.run(value.initializer)
        tf.train.Saver({"other/w": value}).save(session, path)
    np.testing.assert_array_equal(ours("renamed", path, "other/w")["w"], W.ravel())
    message = ours("read", path, 1)
    assert "has no variable r, scope/table, w, which the graph requires; it has other/w" in message, message


def version_1(directory):
    """V1 checkpoints: ours through TensorFlow's reader, Saver and our graph; and the nodes of its Saver."""
    path = os.path.join(directory, "first")
    same(ours("write1", path), TABLE, R, W)
    np.testing.assert_array_equal(tf.train.load_checkpoint(path + "-0").get_tensor("w"), W)
    assert tf.train.latest_checkpoint(directory) == path + "-0"
    with tf.Graph().as_default(), tf.Session() as session:
        values = build(2)
        tf.train.Saver().restore(session, path + "-0")
        for found, expected in zip(session.run(values), (TABLE, R, W)):
            np.testing.assert_array_equal(found, expected)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        saver = tf.train.import_meta_graph(path + "-0.meta")
        assert saver.saver_def.version == 1
        saver.restore(session, path + "-0")
        saver.save(session, os.path.join(directory, "again"))
        found = nodes_of(graph)
    same(ours("read", os.path.join(directory, "again"), 2), TABLE, R, W)
    with tf.Graph().as_default() as graph:
        build(3)
        tf.train.Saver(write_version=tf.train.SaverDef.V1)
        assert nodes_of(graph) == found, sorted(set(nodes_of(graph).items()) ^ set(found.items()))


def nodes_of(graph):
    """The Saver's nodes, except the reads of resource variables, which TensorFlow 2 places in another way."""
    skipped = ("ReadVariableOp", "Identity", "StringJoin", "RegexFullMatch", "Select", "SelectV2")
    return {
        n.name: n.op
        for n in graph.as_graph_def().node
        if n.name.startswith("save/") and n.op not in skipped and "s3" not in n.name
    }


def reshaped(directory):
    """Values of other shapes: restored by us, and by the nodes of our graph in TensorFlow, which are TensorFlow's."""
    path, again = os.path.join(directory, "shaped"), os.path.join(directory, "reshaped")
    with tf.Graph().as_default(), tf.Session() as session:
        values = build(1)
        session.run([v.assign(x) for v, x in zip(tf.global_variables(), (TABLE, R, W))])
        tf.train.Saver().save(session, path)
        same(dict(zip(("table", "r", "w"), [v.ravel() for v in session.run(values)])), TABLE, R, W)
    same(ours("reshape", path, again), TABLE, R, W)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        saver = tf.train.import_meta_graph(again + "-0.meta")
        saver.restore(session, path)
        np.testing.assert_array_equal(session.run("w:0"), W.ravel())
        np.testing.assert_array_equal(session.run("r/Read/ReadVariableOp:0"), R.reshape(1, 2, 2))
        found = nodes_of(graph)
    with tf.Graph().as_default() as graph:
        with tf.variable_scope("scope"):
            tf.get_variable("table", [11, 3], partitioner=tf.fixed_size_partitioner(3))
        tf.get_variable("r", [1, 2, 2], use_resource=True)
        tf.get_variable("w", [4], use_resource=False)
        tf.train.Saver(reshape=True)
        assert nodes_of(graph) == found, sorted(set(nodes_of(graph).items()) ^ set(found.items()))


def shards(directory):
    """The nodes of a sharded Saver save and restore in TensorFlow."""
    path = os.path.join(directory, "sharded")
    same(ours("shards", path), TABLE, R, W)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        saver = tf.train.import_meta_graph(path + "-0.meta")
        assert saver.saver_def.sharded
        saver.restore(session, path + "-0")
        saver.save(session, os.path.join(directory, "again"))
        found = nodes_of(graph)
    again = sorted(f for f in os.listdir(directory) if f.startswith("again.data"))
    assert again == ["again.data-0000%d-of-00002" % i for i in range(2)], again
    same(ours("read", os.path.join(directory, "again"), 2), TABLE, R, W)
    with tf.Graph().as_default() as graph:
        with tf.device("/device:CPU:0"), tf.variable_scope("scope"):
            tf.get_variable("table", [11, 3], partitioner=tf.fixed_size_partitioner(3), use_resource=False)
        tf.get_variable("r", [4], use_resource=True)
        tf.get_variable("w", [2, 2], use_resource=False)
        tf.train.Saver(sharded=True)
        theirs = nodes_of(graph)
        # TensorFlow 2 chooses the directory of the parts, and has a NoOp for each device.
        ignored = ("save/Const_", "save/StaticRegexFullMatch", "save/StringJoin", "save/restore_all/NoOp")
        different = {n for n in set(theirs) | set(found) if theirs.get(n) != found.get(n)}
        assert not {n for n in different if not n.startswith(ignored)}, sorted(different)


def lines(*arguments):
    program = os.path.join(os.environ["MILLRACE_ORACLE"], "saver_graphs")
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout.splitlines()


def options(directory):
    """Other names of files, padded steps and stripped graphs: ours in TensorFlow, TensorFlow's here."""
    path = os.path.join(directory, "best")
    assert lines("options", path) == []
    kept = [path + "-%08d" % step for step in range(2, 7)]
    state = tf.train.get_checkpoint_state(directory, "best_latest")
    assert list(state.all_model_checkpoint_paths) == kept, state
    assert tf.train.latest_checkpoint(directory, "best_latest") == kept[-1]
    assert lines("list", directory, "best_latest") == kept[-1:] + kept
    assert sorted(f for f in os.listdir(directory) if f.endswith(".graph")) == [
        os.path.basename(p) + ".graph" for p in kept], os.listdir(directory)
    meta = tf.MetaGraphDef.FromString(open(kept[-1] + ".graph", "rb").read())
    assert meta.meta_info_def.stripped_default_attrs
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(kept[-1] + ".graph")
        saver.restore(session, kept[-1])
        theirs = tf.train.export_meta_graph(strip_default_attrs=True)
        found = {node.name: node for node in meta.graph_def.node}
        for node in theirs.graph_def.node:
            assert sorted(found[node.name].attr) == sorted(node.attr), (node, found[node.name])
        np.testing.assert_array_equal(session.run("w:0"), W)
        saver = tf.train.Saver(pad_step_number=True, max_to_keep=2)
        written = [saver.save(session, os.path.join(directory, "theirs"), step, latest_filename="their_latest")
                   for step in (7, 8, 9)]
    assert written[0].endswith("-00000007"), written
    assert lines("list", directory, "their_latest") == written[-1:] + written[1:]
    same({"table": TABLE.ravel(), **ours("import", written[-1])}, TABLE, R, W)


def main():
    failed = 0
    tests = [theirs_of_ours, ours_of_theirs, names, version_1, reshaped, shards, options]
    for test in tests:
        with tempfile.TemporaryDirectory() as directory:
            try:
                test(directory)
            except Exception as error:  # the other tests still run
                failed += 1
                print("%s: %s: %s" % (test.__name__, type(error).__name__, str(error)[:1500]))
    print("%d passed, %d failed" % (len(tests) - failed, failed))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
