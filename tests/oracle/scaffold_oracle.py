"""Graphs whose collections have the parts of scaffolds: sessions here use those of TensorFlow's MetaGraphs, and
sessions of TensorFlow those that are created here."""
import glob
import os
import subprocess
import sys
import tempfile
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.filterwarnings("ignore")
import tensorflow.compat.v1 as tf

tf.logging.set_verbosity(tf.logging.ERROR)
tf.disable_v2_behavior()
KEYS = tf.GraphKeys


def build(savers, use_resource):
    """A graph whose init_op sets w to 5, whose summary_op is one of two, and whose saver is one of these kinds."""
    graph = tf.Graph()
    with graph.as_default():
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer(), use_resource=use_resource)
        local = tf.get_local_variable("local", [], initializer=tf.zeros_initializer(), use_resource=use_resource)
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [3.0]), 0.0)
        with tf.control_dependencies([w.assign_add([1.0, 2.0]), local.assign_add(table.lookup(tf.constant("a")))]):
            tf.group(step.assign_add(1), name="train")
        tf.summary.scalar("ignored", tf.reduce_sum(w))
        tf.add_to_collection(KEYS.SUMMARY_OP, tf.summary.scalar("chosen", tf.reduce_sum(w), collections=[]))
        tf.add_to_collection(KEYS.INIT_OP, tf.group(step.initializer, w.assign([5.0, 5.0]), name="my_init"))
        tf.add_to_collection(KEYS.LOCAL_INIT_OP, tf.group(local.initializer, tf.tables_initializer()))
        tf.add_to_collection(KEYS.READY_OP, tf.report_uninitialized_variables())
        tf.add_to_collection(KEYS.READY_FOR_LOCAL_INIT_OP, tf.report_uninitialized_variables([w, step]))
        if savers == "renamed":
            tf.add_to_collection(KEYS.SAVERS, tf.train.Saver({"other": w, "global_step": step}, max_to_keep=2))
        elif savers == "version 1":
            saver = tf.train.Saver(write_version=tf.train.SaverDef.V1, max_to_keep=2)
            tf.add_to_collection(KEYS.SAVERS, saver)
        elif savers == "scaffold":
            tf.train.Scaffold().finalize()  # adds a sharded saver
        elif savers == "all":
            tf.add_to_collection(KEYS.SAVERS, tf.train.Saver(max_to_keep=2))
        meta = tf.train.export_meta_graph()
    return graph, meta


def ours(meta, directory, last_step, kind):
    with tempfile.NamedTemporaryFile() as file:
        file.write(meta.SerializeToString())
        file.flush()
        program = os.path.join(os.environ["MILLRACE_ORACLE"], "scaffold_run")
        done = subprocess.run([program, file.name, directory, str(last_step), kind], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [int(number) for number in done.stdout.split()]


def tags(directory):
    return {value.tag for path in glob.glob(directory + "/events.out.tfevents.*")
            for event in tf.train.summary_iterator(path) for value in event.summary.value} - {"global_step/sec"}


def check(savers, use_resource, kind):
    _, meta = build(savers, use_resource)
    with tempfile.TemporaryDirectory() as directory:
        before, after = ours(meta, directory, 3, kind)
        if savers != "none":
            assert before == after, f"{after - before} nodes were added"
        key = "other" if savers == "renamed" else "w"
        reader = tf.train.load_checkpoint(directory)
        keys = set(reader.get_variable_to_shape_map()) - {"millrace/session_state"}
        keys = {name for name in keys if not name.startswith("_") and "session" not in name}
        assert keys == {key, "global_step"}, keys
        assert reader.get_tensor(key).tolist() == [8, 11], reader.get_tensor(key)
        kept = tf.train.get_checkpoint_state(directory).all_model_checkpoint_paths
        # The saver of a scaffold keeps 5; a session saves step 0 too.
        expected = 2 if savers in ("renamed", "all", "version 1") else 3 if kind == "supervisor" else 4
        assert len(kept) == expected, kept
        if kind == "monitored":
            assert tags(directory) == {"chosen"}, tags(directory)
        # TensorFlow continues with the MetaGraph that was written here.
        path = tf.train.latest_checkpoint(directory)
        written = tf.MetaGraphDef.FromString(open(path + ".meta", "rb").read())
        for name in ("init_op", "local_init_op", "ready_op", "summary_op", "savers"):
            assert name in written.collection_def, name
        with tf.Graph().as_default() as graph:
            tf.train.import_meta_graph(written)
            count = len(graph.get_operations())
            scaffold = tf.train.Scaffold()
            creator = tf.train.ChiefSessionCreator(scaffold, checkpoint_filename_with_path=path)
            with tf.train.MonitoredSession(creator) as session:
                session.run("train")
                assert session.run("w:0" if not use_resource else "w/Read/ReadVariableOp:0").tolist() == [9, 13]
            assert len(graph.get_operations()) == count, [node.name for node in graph.get_operations()[count:]]


def main():
    passed = failed = 0
    for savers in ("none", "all", "renamed", "scaffold", "version 1"):
        for use_resource in (False, True):
            for kind in ("monitored", "supervisor"):
                try:
                    check(savers, use_resource, kind)
                    passed += 1
                except Exception as error:  # of TensorFlow's session, too
                    failed += 1
                    print(f"FAILED {savers} {use_resource} {kind}: {type(error).__name__}: {error}")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
