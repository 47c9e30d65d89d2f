"""millrace's Philox numbers equal those of TensorFlow's RandomUniform bit for bit."""
import os
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

COUNT = 64


def main():
    program = os.path.join(os.environ["MILLRACE_ORACLE"], "random_words")
    for seed, seed2 in [(1, 0), (0, 7), (87654321, 12345), (2**40 + 3, 2**50 + 1)]:
        lines = subprocess.run([program, str(seed), str(seed2), str(COUNT)], check=True, capture_output=True, text=True)
        ours = [float.fromhex(line) for line in lines.stdout.split()]
        floats = tf.raw_ops.RandomUniform(shape=[COUNT], dtype=tf.float32, seed=seed, seed2=seed2).numpy()
        doubles = tf.raw_ops.RandomUniform(shape=[COUNT], dtype=tf.float64, seed=seed, seed2=seed2).numpy()
        np.testing.assert_array_equal(np.float32(ours[:COUNT]), floats)
        np.testing.assert_array_equal(np.float64(ours[COUNT:]), doubles)
    print("4 passed, 0 failed")


if __name__ == "__main__":
    sys.exit(main())
