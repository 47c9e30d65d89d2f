"""Writes the seeds of profile_fuzz.c with TensorFlow: the RunMetadata of runs of a graph with the target's names.

    python tests/fuzz/profile_corpus.py"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
DIRECTORY = os.path.join(os.path.dirname(__file__), "corpus", "profile")


def write(name, metadata):
    with open(os.path.join(DIRECTORY, name), "wb") as file:
        file.write(metadata.SerializeToString())


def main():
    os.makedirs(DIRECTORY, exist_ok=True)
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    w = tf.Variable(tf.zeros([3, 2]), name="net/w", use_resource=False)
    y = tf.nn.relu(tf.matmul(x, w, name="net/product"), name="net/Relu")
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        session.run(w.initializer)
        full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(y, {x: np.ones([4, 3])}, options=full, run_metadata=metadata)
    write("cpu", metadata)
    device = metadata.step_stats.dev_stats[0]
    device.device = device.device.replace("CPU", "GPU")
    stream = metadata.step_stats.dev_stats.add(device=device.device + "/stream:all")
    stream.node_stats.add(node_name="net/product:MatMul", all_start_micros=7, op_end_rel_micros=9)
    stream.node_stats.add(node_name="edge_5_MEMCPYHtoD", all_start_micros=7, op_end_rel_micros=9)
    write("gpu", metadata)


if __name__ == "__main__":
    main()
