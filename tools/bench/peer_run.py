"""TensorFlow's side of the suite "run": graphs as users write them, exported for millrace and timed here.

    peer_run.py THREADS DIRECTORY run|networks|conv|gemm|kernels PART

The tasks are those of the suite whose names contain PART. Writes DIRECTORY/TASK.pb and TASK.txt (lines "feed NAME
FILE.npy", "fetch NAME", "target NAME", "first NAME", "divide COUNT", "bytes COUNT", "enqueue THREADS NAME", "cancel
NAME") for each, and prints "task TASK" for each, then "ready VERSION". Afterwards each input line is "TASK COUNT"; the
answer is "value SECONDS [LIBRARY]", the average time of a run, by TensorFlow or the library named. COUNT 0 measures
import and first run."""
import os
import sys
import time
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["OPENBLAS_NUM_THREADS"] = sys.argv[1]
# Threads of a library that wait for its next call must not disturb millrace meanwhile.
os.environ["OPENBLAS_THREAD_TIMEOUT"] = "17"
os.environ["KMP_BLOCKTIME"] = "1"
import millrace
import numpy as np
import peer_conv
import peer_gemm
import peer_kernels
import peer_networks
import tensorflow.compat.v1 as tf
from peer_layers import Cells, dense

warnings.simplefilter("ignore")
tf.logging.set_verbosity(tf.logging.ERROR)
tf.disable_v2_behavior()
threads, directory, suite, part = int(sys.argv[1]), *sys.argv[2:]
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
            self.queue_runners = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
        self.graph_def = self.graph.as_graph_def()
        self.runs = None
        self.coordinator = tf.train.Coordinator()

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
        if self.name in peer_kernels.BYTES:
            lines.append(f"bytes {peer_kernels.BYTES[self.name]}")
        for runner in self.queue_runners:
            enqueue = runner.enqueue_ops
            lines += [f"enqueue {len(enqueue)} {enqueue[0].name}", f"cancel {runner.cancel_op.name}"]
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
            with self.graph.as_default():
                tf.train.start_queue_runners(session, self.coordinator)
            self.runs = session.make_callable([self.fetches, self.targets], feed_list=list(self.feeds))
            self.values = [np.asarray(v, t.dtype.as_numpy_dtype) for t, v in self.feeds.items()]
        start = time.perf_counter()
        for _ in range(count):
            self.runs(*self.values)
        return (time.perf_counter() - start) / count / self.divide

    def stop(self):
        self.coordinator.request_stop()
        self.coordinator.join(stop_grace_period_secs=10)


class PythonTask:
    """The calls that a user writes: run(fetch, {feed: value})."""

    def __init__(self, session, fetch, feed):
        self.session, self.fetch, self.feed = session, fetch, feed

    def run(self, count):
        start = time.perf_counter()
        for _ in range(count):
            self.session.run(self.fetch, {self.feed: 1.0})
        return (time.perf_counter() - start) / count


def scalar():
    return tf.placeholder(tf.float32, [], name="x")


def chain():
    x = y = scalar()
    for _ in range(1000):
        y = y + x
    return {x: 1.0}, [y], []


def one_add():
    x = scalar()
    return {x: 1.0}, [tf.add(x, 1.0, name="z")], []


def loop():
    x = scalar()
    _, y = tf.while_loop(lambda i, a: i < 100000, lambda i, a: (i + 1, a * 0.5 + x), [0, x])
    return {x: 1.0}, [y], []


def mlp(optimizer):
    x, y = tf.placeholder(tf.float32, [128, 784]), tf.placeholder(tf.int64, [128])
    h = x
    for units in [512, 512]:
        h = dense(h, units, tf.nn.relu)
    logits = dense(h, 10)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return {x: rng.normal(size=(128, 784)), y: rng.integers(0, 10, 128)}, [loss], [optimizer.minimize(loss)]


def queue():
    """Eight threads enqueue examples, and a step trains with batches of 32. The capacity of four batches is small: what
    is enqueued while the other side runs must not count."""
    example = [tf.random_normal([64]), tf.random_uniform([], 0, 10, tf.int64)]
    examples = tf.FIFOQueue(128, [tf.float32, tf.int64], [[64], []])
    tf.train.add_queue_runner(tf.train.QueueRunner(examples, [examples.enqueue(example)] * 8))
    x, y = examples.dequeue_many(32)
    logits = dense(x, 10)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    return {}, [loss], [tf.train.GradientDescentOptimizer(0.1).minimize(loss)]


def frozen():
    x = h = tf.placeholder(tf.float32, [1, 784], name="x")
    for inputs, units in [(784, 512), (512, 512)]:
        h = tf.nn.relu(h @ tf.constant(rng.normal(size=(inputs, units)), tf.float32) + tf.zeros([units]))
    y = tf.add(h @ tf.constant(rng.normal(size=(512, 10)), tf.float32), tf.zeros([10]), name="y")
    return {x: rng.normal(size=(1, 784))}, [y], []


def deep():
    """About 10,000 nodes."""
    x = tf.placeholder(tf.float32, [4, 8])
    h = x
    for _ in range(90):
        h = dense(h, 8, tf.nn.tanh)
    loss = tf.reduce_mean(tf.square(h))
    return {x: rng.normal(size=(4, 8))}, [loss], [tf.train.AdamOptimizer(1e-3).minimize(loss)]


def lstm():
    ids, targets = tf.placeholder(tf.int32, [20, 20]), tf.placeholder(tf.int64, [20, 20])
    table = tf.get_variable("embedding", [10000, 200])
    h, _ = tf.nn.dynamic_rnn(Cells(200, 2), tf.nn.embedding_lookup(table, ids), dtype=tf.float32)
    logits = dense(tf.reshape(h, [-1, 200]), 10000)
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


def products():
    x, c = tf.placeholder(tf.float64, [512, 512]), tf.placeholder(tf.complex64, [256, 256])
    drawn = rng.normal(size=(2, 256, 256))
    return {x: rng.normal(size=(512, 512)), c: drawn[0] + 1j * drawn[1]}, [x @ x, c @ c], []


def decompositions():
    x = tf.placeholder(tf.float64, [256, 256])
    definite = tf.matmul(x, x, transpose_b=True)
    fetches = [*tf.linalg.svd(x), *tf.linalg.qr(x), *tf.linalg.eigh(definite), tf.linalg.inv(x)]
    return {x: rng.normal(size=(256, 256))}, fetches, []


def gaussian_process():
    """A step that fits the length scale of a kernel to 400 points."""
    x, y = tf.placeholder(tf.float64, [400, 3]), tf.placeholder(tf.float64, [400, 1])
    scale = tf.get_variable("scale", [], tf.float64, tf.ones_initializer())
    distances = tf.reduce_sum(tf.square(x[:, None] - x[None]), 2)
    kernel = tf.exp(-distances / tf.square(scale)) + 0.1 * tf.eye(400, dtype=tf.float64)
    factor = tf.linalg.cholesky(kernel)
    half = tf.linalg.triangular_solve(factor, y)
    loss = tf.reduce_sum(tf.square(half)) / 2 + tf.reduce_sum(tf.log(tf.linalg.diag_part(factor)))
    train = tf.train.GradientDescentOptimizer(1e-4).minimize(loss)
    return {x: rng.normal(size=(400, 3)), y: rng.normal(size=(400, 1))}, [loss], [train]


GRAPHS = {
    "chain of adds": chain,
    "one fed add": one_add,
    "while_loop": loop,
    "mlp adam": lambda: mlp(tf.train.AdamOptimizer(1e-3)),
    "import of 10,000 nodes": deep,
    "ptb lstm": lstm,
    "word2vec": word2vec,
    "double and complex products": products,
    "decompositions": decompositions,
    "gaussian process": gaussian_process,
    "8 threads enqueue": queue,
    "process start to first result": frozen,
}
DIVIDE = {"chain of adds": 1000, "while_loop": 100000}
PYTHON_TASK = "one fed add, Python"
graphs = {"run": GRAPHS, "networks": peer_networks.NETWORKS, "conv": peer_conv.CONVOLUTIONS,
          "gemm": peer_gemm.PRODUCTS, "kernels": peer_kernels.KERNELS}[suite]
tasks = {name: Task(name, make, DIVIDE.get(name, 1)) for name, make in graphs.items()
         if part in name or name == "one fed add" and part in PYTHON_TASK}
for task in tasks.values():
    task.export()
by_name = dict(tasks)
if suite == "gemm":
    by_name = {name: peer_gemm.Fastest(name, task, threads) for name, task in tasks.items()}
if "one fed add" in tasks:
    add = by_name["one fed add"]
    millrace_session = millrace.Session(add.graph_def.SerializeToString(), {"threads": threads})
    by_name[PYTHON_TASK] = PythonTask(add.session(add.graph), add.fetches[0], next(iter(add.feeds)))
    by_name["one fed add, Python, millrace"] = PythonTask(millrace_session, "z:0", "x:0")
for name in tasks:
    print("task", name)
print(f"ready {tf.__version__}", flush=True)
for line in sys.stdin:
    name, count = line.rstrip("\n").rsplit(" ", 1)
    seconds = by_name[name].run(int(count))
    print("value", seconds, getattr(by_name[name], "library", ""), flush=True)
for task in tasks.values():
    task.stop()
