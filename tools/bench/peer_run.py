"""TensorFlow's side of the suite "run": graphs as users write them, exported for millrace and timed here.

    peer_run.py THREADS DIRECTORY

Writes DIRECTORY/TASK.pb and TASK.txt (lines "feed NAME FILE.npy", "fetch NAME", "target NAME", "first NAME",
"divide COUNT") for each task, and prints "task NAME" for each and then "ready". Afterwards each input line is "TASK
COUNT"; the answer is "value SECONDS", the average time of a run. COUNT 0 measures import and first run."""
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
threads, directory = int(sys.argv[1]), sys.argv[2]
rng = np.random.default_rng(1)


class Task:
    def __init__(self, name, make, divide=1):
        self.name, self.divide = name, divide
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf.set_random_seed(1)
            self.feeds, self.fetches, self.targets = make()
            self.first = "init" if tf.global_variables() else None
            if self.first:
                tf.group(tf.global_variables_initializer(), name="init")
        self.graph_def = self.graph.as_graph_def()
        self.runs = None

    def export(self):
        path = os.path.join(directory, self.name)
        with open(path + ".pb", "wb") as file:
            file.write(self.graph_def.SerializeToString())
        lines = [f"divide {self.divide}"]
        for number, (tensor, value) in enumerate(self.feeds.items()):
            np.save(f"{path}_{number}.npy", np.asarray(value, tensor.dtype.as_numpy_dtype))
            lines.append(f"feed {tensor.name} {path}_{number}.npy")
        lines += [f"fetch {t.name}" for t in self.fetches] + [f"target {op.name}" for op in self.targets]
        if self.first:
            lines.append(f"first {self.first}")
        with open(path + ".txt", "w") as file:
            file.write("\n".join(lines) + "\n")

    def session(self, graph):
        options = tf.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
        return tf.Session(graph=graph, config=options)

    def run(self, count):
        if count == 0:
            start = time.perf_counter()
            with tf.Graph().as_default() as graph:
                tf.import_graph_def(self.graph_def, name="")
                with self.session(graph) as session:
                    if self.first:
                        session.run(self.first)
                    feeds = {t.name: v for t, v in self.feeds.items()}
                    session.run([[t.name for t in self.fetches], [op.name for op in self.targets]], feeds)
            return time.perf_counter() - start
        if self.runs is None:
            session = self.session(self.graph)
            if self.first:
                session.run(self.first)
            self.runs = session.make_callable([self.fetches, self.targets], feed_list=list(self.feeds))
            self.values = [np.asarray(v, t.dtype.as_numpy_dtype) for t, v in self.feeds.items()]
        start = time.perf_counter()
        for _ in range(count):
            self.runs(*self.values)
        return (time.perf_counter() - start) / count / self.divide


def scalar():
    return tf.placeholder(tf.float32, [], name="x")


def chain():
    x = y = scalar()
    for _ in range(1000):
        y = y + x
    return {x: 1.0}, [y], []


def one_add():
    x = scalar()
    return {x: 1.0}, [x + 1.0], []


def loop():
    x = scalar()
    _, y = tf.while_loop(lambda i, a: i < 100000, lambda i, a: (i + 1, a * 0.5 + x), [0, x])
    return {x: 1.0}, [y], []


def mlp(optimizer):
    x, y = tf.placeholder(tf.float32, [128, 784]), tf.placeholder(tf.int64, [128])
    h = x
    for units in [512, 512]:
        h = tf.layers.dense(h, units, tf.nn.relu)
    logits = tf.layers.dense(h, 10)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return {x: rng.normal(size=(128, 784)), y: rng.integers(0, 10, 128)}, [loss], [optimizer.minimize(loss)]


def deep():
    """About 10,000 nodes."""
    x = tf.placeholder(tf.float32, [4, 8])
    h = x
    for _ in range(90):
        h = tf.layers.dense(h, 8, tf.nn.tanh)
    loss = tf.reduce_mean(tf.square(h))
    return {x: rng.normal(size=(4, 8))}, [loss], [tf.train.AdamOptimizer(1e-3).minimize(loss)]


def lstm():
    ids, targets = tf.placeholder(tf.int32, [20, 20]), tf.placeholder(tf.int64, [20, 20])
    table = tf.get_variable("embedding", [10000, 200])
    cells = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(200) for _ in range(2)])
    h, _ = tf.nn.dynamic_rnn(cells, tf.nn.embedding_lookup(table, ids), dtype=tf.float32)
    logits = tf.layers.dense(tf.reshape(h, [-1, 200]), 10000)
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(targets, [-1]), logits=logits)
    )
    variables = tf.trainable_variables()
    clipped, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
    train = tf.train.GradientDescentOptimizer(1.0).apply_gradients(zip(clipped, variables))
    return {ids: rng.integers(0, 10000, (20, 20)), targets: rng.integers(0, 10000, (20, 20))}, [loss], [train]


def word2vec():
    inputs, labels = tf.placeholder(tf.int32, [128]), tf.placeholder(tf.int32, [128, 1])
    table = tf.get_variable("embedding", [50000, 128])
    weights, biases = tf.get_variable("weights", [50000, 128]), tf.get_variable("biases", [50000])
    embedded = tf.nn.embedding_lookup(table, inputs)
    loss = tf.reduce_mean(tf.nn.nce_loss(weights, biases, labels, embedded, 64, 50000))
    train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    return {inputs: rng.integers(0, 50000, 128), labels: rng.integers(0, 50000, (128, 1))}, [loss], [train]


TASKS = [
    Task("chain of adds", chain, 1000),
    Task("one fed add", one_add),
    Task("while_loop", loop, 100000),
    Task("mlp adam", lambda: mlp(tf.train.AdamOptimizer(1e-3))),
    Task("import of 10,000 nodes", deep),
    Task("ptb lstm", lstm),
    Task("word2vec", word2vec),
]
by_name = {}
for task in TASKS:
    by_name[task.name] = task
    task.export()
    print("task", task.name, flush=True)
print("ready", flush=True)
for line in sys.stdin:
    name, count = line.rstrip("\n").rsplit(" ", 1)
    print("value", by_name[name].run(int(count)), flush=True)
