"""TensorFlow's side of two rows of the suite "run", each in a process of its own.

    peer_process.py start DIRECTORY TASK           imports the graph of a task and prints its first result
    peer_process.py memory DIRECTORY TASK THREADS  prints "value MB": growth of the peak resident memory by import,
                                                   initialization and ten steps; and "process MB", all of it

peer_run.py writes the tasks."""
import os
import sys
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf

warnings.simplefilter("ignore")
tf.logging.set_verbosity(tf.logging.ERROR)
tf.disable_v2_behavior()
kind, directory, name, threads = (*sys.argv[1:], "0")[:4]
path = os.path.join(directory, name)
with open(path + ".pb", "rb") as file:
    data = file.read()
with open(path + ".txt") as file:
    lines = [line.rstrip("\n").split(" ", 1) for line in file]
feeds = {}
for key, value in lines:
    if key == "feed":
        tensor, array = value.split(" ", 1)
        feeds[tensor] = np.load(array)
fetches = [value for key, value in lines if key in ("fetch", "target")]
firsts = [value for key, value in lines if key == "first"]


def status_mb(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key)) / 1024


def run(steps):
    graph_def = tf.GraphDef.FromString(data)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    options = tf.ConfigProto(intra_op_parallelism_threads=int(threads), inter_op_parallelism_threads=int(threads))
    with tf.Session(graph=graph, config=options) as session:
        for first in firsts:
            session.run(first)
        for _ in range(steps):
            results = session.run(fetches, feeds)
    return results


if kind == "start":
    print(run(1)[0])
else:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak so far, of importing TensorFlow, does not count
    before = status_mb("VmRSS:")
    run(10)
    most = status_mb("VmHWM:")
    print("value", most - before)
    print("process", most)
