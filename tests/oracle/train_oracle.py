"""Layers, gradients, optimizers and Saver, compared with TensorFlow's.

TensorFlow imports millrace's MetaGraphDef, restores its first checkpoint and takes the same 50 steps. The losses are
the same, and so are the variables at the end and those of millrace's last checkpoint. TensorFlow's own layers and
optimizers give the variables the same names."""

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
BATCH, SIZE, CHANNELS, CLASSES, STEPS = 8, 12, 3, 5, 50


def batch(step):
    i = np.arange(BATCH * SIZE * SIZE * CHANNELS, dtype=np.int64)
    x = ((i * i * 31 + i * 7919 + step * 104729) % 1000).astype(np.float32) / np.float32(500) - np.float32(1)
    return x.reshape(BATCH, SIZE, SIZE, CHANNELS), (np.arange(BATCH) + step) % CLASSES


def tensorflow_names(kind):
    """The names of the variables that TensorFlow's own layers and optimizer create."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, SIZE, SIZE, CHANNELS])
        y = tf.placeholder(tf.int64, [None])
        h = tf.layers.conv2d(x, 8, 3, padding="same", activation=tf.nn.relu,
                             kernel_regularizer=lambda w: 1e-2 * tf.nn.l2_loss(w))
        h = tf.layers.batch_normalization(h, training=True)
        h = tf.layers.max_pooling2d(h, 2, 2)
        h = tf.layers.conv2d(h, 6, 3, strides=2, use_bias=False)
        h = tf.layers.batch_normalization(h, training=True, momentum=0.9)
        h = tf.layers.average_pooling2d(h, 2, 2)
        h = tf.layers.dropout(tf.layers.flatten(h), 0.5)
        tf.losses.sparse_softmax_cross_entropy(y, tf.layers.dense(h, CLASSES))
        step = tf.train.get_or_create_global_step()
        rate = tf.train.exponential_decay(0.02, step, 20, 0.8)
        optimizer = {
            "adam": lambda: tf.train.AdamOptimizer(rate),
            "momentum": lambda: tf.train.MomentumOptimizer(rate, 0.9),
            "nesterov": lambda: tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True),
            "descent": lambda: tf.train.GradientDescentOptimizer(rate),
        }[kind]()
        train = optimizer.minimize(tf.losses.get_total_loss(), step)
        return [v.op.name for v in tf.global_variables()], train.name


def check(kind):
    program = os.path.join(os.environ["MILLRACE_ORACLE"], "train_steps")
    with tempfile.TemporaryDirectory() as directory:
        text = subprocess.run([program, directory, kind], check=True, capture_output=True, text=True).stdout
        lines = [line.split(" ", 1) for line in text.splitlines()]
        ours = [float(value) for key, value in lines if key == "loss"]
        names = [value for key, value in lines if key == "variable"]
        train = dict(lines)["train"]
        assert len(ours) == STEPS
        their_names, their_train = tensorflow_names(kind)
        assert names == their_names, (names, their_names)
        assert train == their_train, (train, their_train)

        with tf.Graph().as_default(), tf.Session() as session:
            saver = tf.train.import_meta_graph(directory + "/model.ckpt-0.meta")
            saver.restore(session, directory + "/model.ckpt-0")
            fetch = dict(lines)["fetch"] + ":0"
            theirs = []
            for step in range(STEPS):
                x, y = batch(step)
                theirs.append(session.run([fetch, train], {"x:0": x, "y:0": y})[0])
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
            assert tf.train.latest_checkpoint(directory) == directory + "/model.ckpt-50"
            reader = tf.train.load_checkpoint(directory)
            for variable in tf.global_variables():
                value = reader.get_tensor(variable.op.name)
                np.testing.assert_allclose(value, session.run(variable), rtol=2e-3, atol=2e-4,
                                           err_msg=variable.op.name)
            # TensorFlow runs millrace's restore nodes.
            session.run("save/restore_all", {"save/Const:0": directory + "/model.ckpt-0"})
            assert session.run("global_step:0") == 0


def main():
    tf.disable_v2_behavior()
    passed = 0
    for kind in ["adam", "momentum", "nesterov", "descent"]:
        check(kind)
        passed += 1
    print("%d passed, 0 failed" % passed)


if __name__ == "__main__":
    sys.exit(main())
