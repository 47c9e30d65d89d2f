"""Supervisors here and in TensorFlow: the same files, the same kinds of events in the same order and at the same steps,
shapes in graph.pbtxt, and each continues in the directory of the other."""

import glob
import os
import subprocess
import sys
import tempfile
import time
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.filterwarnings("ignore")
import numpy as np
import tensorflow.compat.v1 as tf
from google.protobuf import text_format

tf.logging.set_verbosity(tf.logging.ERROR)
tf.disable_v2_behavior()


def theirs(directory, steps, basename):
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer(), use_resource=True)
        loss = tf.reduce_sum(tf.square(w - tf.constant([3.0, -2.0])), name="loss")
        tf.summary.scalar("error", loss)
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, step)
        supervisor = tf.train.Supervisor(logdir=directory, checkpoint_basename=basename)
        with supervisor.managed_session() as session:
            time.sleep(0.5)
            for _ in range(steps):
                if supervisor.should_stop():
                    break
                session.run(train)
            supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)


def ours(directory, steps, basename):
    program = os.path.join(os.environ["MILLRACE_ORACLE"], "supervisor_run")
    done = subprocess.run([program, directory, str(steps), basename], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def events(path):
    """The events of a file. Those of services, whose threads write in any order, are sorted."""
    ordered, services = [], []
    for event in tf.train.summary_iterator(path):
        kind = event.WhichOneof("what")
        if kind == "session_log":
            name = os.path.basename(event.session_log.checkpoint_path)
            item = (f"session {event.session_log.status} {name}", event.step)
            (services if name else ordered).append(item)
        elif kind == "summary":
            services += [(f"summary {value.tag}", event.step) for value in event.summary.value]
        else:
            ordered.append((kind, event.step))
    return ordered[:-1] + sorted(services) + ordered[-1:]


def event_files(directory):
    return sorted(glob.glob(os.path.join(directory, "events.out.tfevents.*")))


def names(directory):
    return sorted(name for name in os.listdir(directory) if "tfevents" not in name)


def values(directory):
    reader = tf.train.load_checkpoint(directory)
    return {key: reader.get_tensor(key) for key in ("w", "global_step")}


def check_values(a, b, step):
    assert values(a)["global_step"] == values(b)["global_step"] == step
    np.testing.assert_allclose(values(a)["w"], values(b)["w"], rtol=1e-6)


def shapes(graph_def):
    """Of each node that both programs have."""
    found = {}
    for node in graph_def.node:
        if "_output_shapes" in node.attr:
            found[node.name] = [str(tf.TensorShape(shape)) for shape in node.attr["_output_shapes"].list.shape]
    return found


def check_graphs(a, b):
    graphs = []
    for directory in a, b:
        graph = text_format.Parse(open(os.path.join(directory, "graph.pbtxt")).read(), tf.GraphDef())
        for path in event_files(directory):
            for event in tf.train.summary_iterator(path):
                if event.WhichOneof("what") == "graph_def":
                    assert shapes(tf.GraphDef.FromString(event.graph_def)) == shapes(graph)
        graphs.append(shapes(graph))
        with tf.Graph().as_default():
            tf.import_graph_def(graph, name="")
    for name in "w", "loss", "global_step", "error", "w/Assign":
        assert graphs[0].get(name) == graphs[1].get(name), (name, graphs[0].get(name), graphs[1].get(name))


def check(steps, basename):
    with tempfile.TemporaryDirectory() as directory:
        a, b = os.path.join(directory, "ours"), os.path.join(directory, "theirs")
        ours(a, steps, basename)
        theirs(b, steps, basename)
        assert names(a) == names(b), (names(a), names(b))
        assert len(event_files(a)) == len(event_files(b)) == 1
        assert events(event_files(a)[0]) == events(event_files(b)[0]), (
            f"ours {events(event_files(a)[0])}\ntheirs {events(event_files(b)[0])}")
        check_values(a, b, steps)
        check_graphs(a, b)
        # Each continues in the other's directory.
        time.sleep(1.1)  # event files are named by the second
        theirs(a, steps, basename)
        ours(b, steps, basename)
        check_values(a, b, 2 * steps)
        # TensorFlow saves the checkpoint again that it has just restored.
        saved = (f"session 3 {basename}", steps)
        again = [event for event in events(event_files(a)[1]) if event != saved]
        assert again == events(event_files(b)[1]), f"{again}\n{events(event_files(b)[1])}"


def main():
    passed = failed = 0
    for case in (3, "model.ckpt"), (10, "mine"):
        try:
            check(*case)
            passed += 1
        except Exception as error:
            failed += 1
            print(f"FAIL {case}: {type(error).__name__}: {str(error)[:1200]}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
