"""Small models that a program of millrace builds and trains, compared with the same ones in TensorFlow: variables,
shapes and collections are equal. TensorFlow starts from millrace's checkpoint, takes the same steps, and gets the same
losses; so it does with the graph that millrace exported."""
import os
import subprocess
import tempfile
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.filterwarnings("ignore")
import numpy as np
import tensorflow.compat.v1 as tf

tf.logging.set_verbosity(tf.logging.ERROR)
STEPS = 20


def feeds(step, graph):
    x = graph.get_tensor_by_name("x:0")
    shape = [6 if n is None else n for n in x.shape.as_list()]
    i = np.arange(np.prod(shape), dtype=np.int64)
    values = {x: (((i * i * 31 + i * 7919 + step * 104729) % 1000).astype(np.float32) / np.float32(500)
                  - np.float32(1)).reshape(shape)}
    try:
        values[graph.get_tensor_by_name("training:0")] = step % 3 != 2
    except KeyError:
        pass
    return values


def named(variables):
    return " ".join("%s[%s]" % (v.op.name, ",".join(str(n) for n in v.shape.as_list())) for v in variables)


def run(session, fetches):
    return [session.run(fetches, feeds(step, session.graph))[0] for step in range(STEPS)]


def check(name, make, ours, directory, names_only):
    losses = [float(value) for key, value in ours if key == "loss"]
    errors = [value for key, value in ours if key == "error"]
    assert not errors, errors
    collections = {value.split(" ")[0]: value.split(" ")[1:] for key, value in ours if key == "collection"}
    path = "%s/%s-0" % (directory, name)
    with tf.Graph().as_default():
        tf.set_random_seed(42)
        y = make()
        loss = tf.reduce_mean(tf.square(y))
        extra = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        assert " ".join(collections["variables"]) == named(tf.global_variables()), (
            collections["variables"], named(tf.global_variables()))
        assert " ".join(collections["trainable_variables"]) == named(tf.trainable_variables()), (
            collections["trainable_variables"], named(tf.trainable_variables()))
        assert collections["regularization_losses"] == [t.name for t in extra], (
            collections["regularization_losses"], [t.name for t in extra])
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        assert int(dict(ours)["updates"]) == len(updates), updates
        if names_only:
            return
        if extra:
            loss += tf.add_n(extra)
        with tf.control_dependencies(updates):
            train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        saver = tf.train.Saver()
        with tf.Session() as session:
            saver.restore(session, path)
            theirs = run(session, [loss, train])
    np.testing.assert_allclose(losses, theirs, rtol=1e-5, atol=1e-6)
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(path + ".meta")
        saver.restore(session, path)
        train = tf.get_collection("train_op")
        exported = run(session, ["loss:0"] + train)
    np.testing.assert_allclose(losses, exported, rtol=1e-5, atol=1e-6)


def main(program, cases, names_only=()):
    """Compares the models of a program that includes model_cases.h with those of the functions in cases."""
    tf.disable_v2_behavior()
    program = os.path.join(os.environ["MILLRACE_ORACLE"], program)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as directory:
        text = subprocess.run([program, directory], check=True, capture_output=True, text=True).stdout
        lines = [line.split(" ", 2) for line in text.splitlines()]
        for name, make in cases.items():
            try:
                ours = [(line[1], line[2]) for line in lines if line[0] == name]
                check(name, make, ours, directory, name in names_only)
                passed += 1
            except Exception as error:  # the other cases are still compared
                failed += 1
                print("%s: %s: %s" % (name, type(error).__name__, str(error)[:1500]))
    print("%d passed, %d failed" % (passed, failed))
    return failed != 0
