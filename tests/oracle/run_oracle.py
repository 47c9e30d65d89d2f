"""Graphs that TensorFlow wrote produce the same results in millrace, and millrace's graphs the same results in
TensorFlow.

Each case builds a graph with tf.compat.v1, runs some steps of it in a tf.compat.v1.Session, exports it and runs the
export with graph-run; the fetches are compared after one step and after the last. Then run_files builds and trains a
model with the C API, and TensorFlow runs the GraphDef that it wrote."""
import os
import re
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.disable_control_flow_v2()

ORACLE = os.environ["MILLRACE_ORACLE"]
PROGRAM = os.path.join(os.environ.get("MILLRACE_BIN", os.path.join(ORACLE, "..", "bin")), "graph-run")
CASES = []


def case(function):
    CASES.append(function)
    return function


class Run:
    """One case: its feeds, fetches and targets, the number of steps, and the tolerance."""

    def __init__(self, fetches, feeds=None, targets=(), steps=1, tolerance=1e-5, init=True):
        self.fetches, self.feeds, self.targets = fetches, feeds or {}, targets
        self.steps, self.tolerance, self.init = steps, tolerance, init


def theirs(run, graph, steps):
    # Only the order that the graph asks for: the optimizer replaces reads.
    options = tf1.GraphOptions()
    options.rewrite_options.disable_meta_optimizer = True
    with tf1.Session(graph=graph, config=tf1.ConfigProto(graph_options=options)) as session:
        if run.init:
            session.run("init")
        for _ in range(steps):
            results, _ = session.run([run.fetches, list(run.targets)], run.feeds)
    return results


def ours(run, graph_file, directory, steps):
    command = [PROGRAM, graph_file, "--steps", str(steps), "--write", directory, "--threads", "2"]
    for i, (tensor, value) in enumerate(run.feeds.items()):
        path = os.path.join(directory, f"feed{i}.npy")
        np.save(path, np.asarray(value, tensor.dtype.as_numpy_dtype))
        command += ["--feed", f"{tensor.name}=@{path}"]
    for fetch in run.fetches:
        command += ["--fetch", fetch.name]
    for target in run.targets:
        command += ["--target", target.name]
    if run.init:
        command += ["--first", "init"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [np.load(os.path.join(directory, re.sub("[/:]", "_", f.name) + ".npy")) for f in run.fetches]


def compare(function, directory):
    graph = tf1.Graph()
    with graph.as_default():
        run = function()
        if run.init:
            tf1.group(tf1.global_variables_initializer(), name="init")
    graph_file = os.path.join(directory, "graph.pb")
    with open(graph_file, "wb") as file:
        file.write(graph.as_graph_def().SerializeToString())
    for steps in sorted({1, run.steps}):
        expected = theirs(run, graph, steps)
        actual = ours(run, graph_file, directory, steps)
        for fetch, left, right in zip(run.fetches, actual, expected):
            right = np.asarray(right)
            assert left.dtype == right.dtype and left.shape == right.shape, (fetch.name, left.shape, right.shape)
            scale = max(1.0, float(np.max(np.abs(right.astype(np.float64)), initial=0)))
            np.testing.assert_allclose(left, right, rtol=0, atol=run.tolerance * scale,
                                       err_msg=f"{fetch.name} after {steps} steps")


rng = np.random.default_rng(5)


@case
def arithmetic():
    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    y = tf.tanh(x) * 3 - tf.square(x) / (1 + tf.abs(x)) + tf.constant([1.0, 2, 3, 4])
    z = tf.concat([y[:, :2], tf.reduce_sum(y, 1, keepdims=True), tf.cast(tf.argmax(y, 1), tf.float32)[:, None]], 1)
    w = tf.matmul(z, tf.transpose(x)) + tf.reshape(tf.range(1.0, 6.0), [5, 1])
    return Run([y, z, w, tf.shape(w), tf.reduce_max(w)], {x: rng.normal(size=(5, 4))})


@case
def feeding_a_constant():
    a = tf.constant(2, name="a")
    shape = tf.stack([a, 3])
    zeros = tf.zeros(shape) + tf.cast(a, tf.float32)
    return Run([zeros, tf.shape(zeros), tf.size(zeros)], {a: 4}, init=False)


@case
def random_sequences():
    fetches = [
        tf1.random_uniform([7, 3], seed=3),
        tf1.random_uniform([5], 0, 100, tf.int32, seed=4),
        tf1.random_normal([9], seed=5),
        tf1.truncated_normal([300], seed=6),
        tf1.random_uniform([1000], seed=7, dtype=tf.float64),
    ]
    return Run(fetches, steps=4, tolerance=1e-6)


@case
def control_edges():
    v = tf1.get_variable("v", [], initializer=tf1.constant_initializer(1.0), use_resource=False)
    with tf1.control_dependencies([tf1.assign_add(v, 2.0)]):
        doubled = v.read_value() * 2
        with tf1.control_dependencies([doubled]):
            after = tf1.assign(v, doubled + 1)
    return Run([doubled, after], steps=5)


@case
def scatter():
    v = tf1.get_variable("v", initializer=np.arange(12, dtype=np.float32).reshape(4, 3), use_resource=False)
    added = tf1.scatter_add(v, [0, 2, 2], tf.ones([3, 3]))
    with tf1.control_dependencies([added]):
        subtracted = tf1.scatter_sub(v, [1], tf.fill([1, 3], 5.0))
        with tf1.control_dependencies([subtracted]):
            updated = tf1.scatter_update(v, [3], tf.zeros([1, 3]))
    return Run([updated], steps=3)


def variable_program(seed):
    """Reads and updates of two variables in a random order, which control edges fix. A value that was read by reference
    is used again after later updates."""
    draw = np.random.default_rng(seed)
    variables = [tf1.get_variable(f"v{i}", initializer=draw.integers(0, 9, 6).astype(np.float32),
                                  use_resource=i == 0 and seed % 2 == 0, validate_shape=False) for i in range(2)]
    reads, fetches, last = [], [], []
    for step in range(12):
        v = variables[draw.integers(2)]
        values = tf.constant(draw.integers(-5, 9, 6).astype(np.float32))
        with tf1.control_dependencies(last):
            kind = draw.integers(7)
            if kind < 2 or not reads:
                reads.append(v.read_value() if draw.integers(2) else tf.identity(v))
                made = reads[-1]
            elif kind == 2:
                reads.append(tf.identity(reads[draw.integers(len(reads))]))
                made = reads[-1]
            elif kind == 3:
                made = tf.negative(tf.reshape(reads[draw.integers(len(reads))], [3, 2]))
                fetches.append(made)
            elif kind == 4:
                made = tf1.assign(v, values + reads[draw.integers(len(reads))])
            elif kind == 5:
                made = tf1.assign_add(v, values) if draw.integers(2) else tf1.assign_sub(v, values)
            else:
                made = tf1.scatter_update(v, [1, 4], values[:2])
        last = [made.op if hasattr(made, "op") else made]
    with tf1.control_dependencies(last):
        fetches += [tf.negative(read) for read in reads]
    return Run(fetches, steps=3, tolerance=0)


for number in range(40):
    CASES.append(lambda number=number: variable_program(number))
    CASES[-1].__name__ = f"variable_program_{number}"


def feeds_of(*values):
    placeholders = [tf1.placeholder(tf.as_dtype(np.asarray(v).dtype), np.shape(v)) for v in values]
    return placeholders, dict(zip(placeholders, values))


def both_branches(function, *values):
    """Makes a case for a false and a true first feed."""
    for flag in (False, True):
        CASES.append(lambda: Run(*function(*feeds_of(np.bool_(flag), *values)), init=False))
        CASES[-1].__name__ = f"{function.__name__}_{flag}".lower()


def conditional(inputs, feeds):
    flag, x, y = inputs
    a, b = tf1.cond(flag, lambda: (x + 1, y * x), lambda: (y - x, tf.constant([7.0, 8, 9])))
    return [a, b, a + b, tf1.cond(flag, lambda: tf.constant(1), lambda: tf.constant(2))], feeds


def nested_conditional(inputs, feeds):
    flag, x, y = inputs
    inner = lambda: tf1.cond(tf.reduce_sum(x) > 3, lambda: x * 2, lambda: y * 3)
    a = tf1.cond(flag, inner, lambda: tf1.cond(tf.reduce_sum(y) > 100, lambda: x, lambda: -y))
    return [a, tf1.cond(tf.logical_not(flag), lambda: a, lambda: a + 1)], feeds


def case_of_three(inputs, feeds):
    flag, x, y = inputs
    total = tf.reduce_sum(x)
    a = tf1.case([(flag, lambda: x), (total > 5, lambda: y)], default=lambda: x * y, exclusive=False)
    return [a], feeds


def loop_in_conditional(inputs, feeds):
    flag, x, y = inputs
    doubled = lambda: tf1.while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, v * 2 + y), [0, x])[1]
    return [tf1.cond(flag, doubled, lambda: x)], feeds


def conditional_in_loop(inputs, feeds):
    flag, x, y = inputs
    def body(i, v):
        odd = tf.equal(i % 2, 1)
        return i + 1, tf1.cond(odd, lambda: v + y, lambda: tf1.cond(flag, lambda: v * 2, lambda: v - 1))
    return list(tf1.while_loop(lambda i, v: i < 7, body, [0, x])), feeds


def conditional_update(inputs, feeds):
    flag, x, y = inputs
    v = tf1.get_variable("v", initializer=np.zeros(3, np.float32), use_resource=False)
    init = v.initializer
    with tf1.control_dependencies([init]):
        update = tf1.cond(flag, lambda: tf1.assign_add(v, x), lambda: tf1.assign_sub(v, y))
    with tf1.control_dependencies([update.op]):
        return [update + 0, tf.negative(v.read_value())], feeds


for function in (conditional, nested_conditional, case_of_three, loop_in_conditional, conditional_in_loop,
                 conditional_update):
    both_branches(function, np.float32([1, 2, 3]), np.float32([5, -1, 0.5]))


@case
def counting_loop():
    n = tf1.placeholder(tf.int32, [], name="n")
    i, total = tf1.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t + i * i), [0, 0])
    return Run([i, total], {n: 1000}, init=False)


@case
def loop_that_never_runs():
    n = tf1.placeholder(tf.int32, [], name="n")
    return Run(list(tf1.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t * 2), [0, 3.0])), {n: 0}, init=False)


@case
def loop_with_many_variables():
    x = tf.constant(rng.normal(size=(4, 4)).astype(np.float32))
    w = tf.constant(rng.normal(size=(4, 4)).astype(np.float32) * 0.4)
    def body(i, a, b, c):
        return i + 1, tf.tanh(tf.matmul(a, w)) + b, tf.nn.relu(b - c), tf.concat([c[1:], a[:1]], 0)
    return Run(list(tf1.while_loop(lambda i, *_: i < 9, body, [tf.constant(0), x, x + 1, x * 2])), init=False)


@case
def loop_of_growing_shape():
    grown = tf1.while_loop(lambda v: tf.size(v) < 50, lambda v: tf.concat([v, v + 1], 0), [tf.constant([1.0, 2])],
                           shape_invariants=[tf.TensorShape([None])])
    return Run([grown, tf.size(grown)], init=False)


@case
def nested_loops():
    def outer(i, total):
        inner = tf1.while_loop(lambda j, t: j < i, lambda j, t: (j + 1, t + i * 10 + j), [0, total])
        return i + 1, inner[1]
    return Run(list(tf1.while_loop(lambda i, t: i < 6, outer, [0, 0])), init=False)


@case
def loop_after_loop():
    first = tf1.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), [0, 1.0])
    second = tf1.while_loop(lambda i, v: i < 6, lambda i, v: (i + 1, v + first[1]), list(first))
    return Run(list(second) + [first[1]], init=False)


@case
def loop_updates_a_variable():
    v = tf1.get_variable("v", [], initializer=tf1.constant_initializer(1.0), use_resource=False)
    def body(i):
        with tf1.control_dependencies([tf1.assign_add(v, tf.cast(i, tf.float32))]):
            return i + 1
    done = tf1.while_loop(lambda i: i < 5, body, [0], parallel_iterations=1)
    with tf1.control_dependencies([done]):
        return Run([done, tf.negative(v.read_value())], steps=3)


def random_flow(seed):
    """Conditionals and loops inside each other, on three values."""
    draw = np.random.default_rng(seed)

    def compute(a, b, c):
        kind = draw.integers(6)
        return [lambda: (b, c, a + b), lambda: (a * 0.5, b - c, c), lambda: (tf.tanh(a), a, b),
                lambda: (a, tf.maximum(b, c), c * 0.25), lambda: (c, tf.constant([1.0, -1]), a - b),
                lambda: (tf.identity(a), b + 1, tf.stop_gradient(c))][kind]()

    def build(values, depth):
        for _ in range(draw.integers(1, 4)):
            kind = draw.integers(4) if depth > 0 else 3
            if kind == 0:
                test = tf.reduce_sum(values[draw.integers(3)]) > float(draw.normal())
                values = tf1.cond(test, lambda: build(values, depth - 1), lambda: build(values, depth - 1))
            elif kind == 1:
                count = int(draw.integers(0, 4))
                results = tf1.while_loop(lambda i, *v: i < count, lambda i, *v: (i + 1, *build(v, depth - 1)),
                                         [0, *values])
                values = results[1:]
            elif kind == 2:
                with tf1.control_dependencies([values[draw.integers(3)]]):
                    values = compute(*values)
            else:
                values = compute(*values)
        return tuple(values)

    (x, y, z), feeds = feeds_of(*draw.normal(size=(3, 2)).astype(np.float32))
    return Run(list(build((x, y, z), 3)), feeds, steps=2, init=False)


for number in range(60):
    CASES.append(lambda number=number: random_flow(number))
    CASES[-1].__name__ = f"random_flow_{number}"


def perceptron(optimizer, use_resource):
    features = rng.normal(size=(32, 10)).astype(np.float32)
    classes = rng.integers(0, 4, size=32).astype(np.int64)
    x = tf1.placeholder(tf.float32, [None, 10], name="x")
    labels = tf1.placeholder(tf.int64, [None], name="labels")
    with tf1.variable_scope("net", use_resource=use_resource):
        w1 = tf1.get_variable("w1", [10, 16], initializer=tf1.glorot_uniform_initializer(seed=1))
        b1 = tf1.get_variable("b1", [16], initializer=tf1.zeros_initializer())
        w2 = tf1.get_variable("w2", [16, 4], initializer=tf1.truncated_normal_initializer(stddev=0.1, seed=2))
        step = tf1.get_variable("step", [], tf.int64, initializer=tf1.zeros_initializer(), trainable=False)
        hidden = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w1), b1))
        logits = tf.matmul(hidden, w2)
        loss = tf.reduce_mean(tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        train = optimizer.minimize(loss, global_step=step)
    return Run([loss], {x: features, labels: classes}, [train], steps=30, tolerance=1e-5)


OPTIMIZERS = {
    "descent": lambda: tf1.train.GradientDescentOptimizer(0.5),
    "momentum": lambda: tf1.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: tf1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: tf1.train.AdamOptimizer(0.01),
}
for optimizer_name, make in OPTIMIZERS.items():
    for resource in (False, True):

        def train_case(make=make, resource=resource):
            return perceptron(make(), resource)

        train_case.__name__ = f"{optimizer_name} by {'handle' if resource else 'reference'}"
        case(train_case)


@case
def convolution_with_dropout():
    images = rng.normal(size=(8, 12, 12, 3)).astype(np.float32)
    classes = rng.integers(0, 3, size=8).astype(np.int32)
    x = tf1.placeholder(tf.float32, [8, 12, 12, 3], name="x")
    labels = tf1.placeholder(tf.int32, [8], name="labels")
    with tf1.variable_scope("net", use_resource=False):
        k1 = tf1.get_variable("k1", [3, 3, 3, 8], initializer=tf1.glorot_uniform_initializer(seed=3))
        gamma = tf1.get_variable("gamma", [8], initializer=tf1.ones_initializer())
        beta = tf1.get_variable("beta", [8], initializer=tf1.zeros_initializer())
        h = tf.nn.conv2d(x, k1, 1, "SAME")
        h, _, _ = tf1.nn.fused_batch_norm(h, gamma, beta, is_training=True)
        h = tf.nn.max_pool2d(tf.nn.relu(h), 2, 2, "VALID")
        h = tf1.nn.dropout(h, rate=0.4, seed=11)
        h = tf.reduce_mean(h, [1, 2])
        w = tf1.get_variable("w", [8, 3], initializer=tf1.glorot_uniform_initializer(seed=4))
        logits = tf.matmul(h, w)
        loss = tf.reduce_mean(tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        loss += 1e-3 * tf.nn.l2_loss(k1)
        train = tf1.train.AdamOptimizer(0.01).minimize(loss)
    return Run([loss], {x: images, labels: classes}, [train], steps=15, tolerance=1e-4)


def uninitialized(directory):
    graph = tf1.Graph()
    with graph.as_default():
        v = tf1.get_variable("scope/v", [2], use_resource=False)
        y = tf.identity(v, name="y")
    path = os.path.join(directory, "graph.pb")
    with open(path, "wb") as file:
        file.write(graph.as_graph_def().SerializeToString())
    done = subprocess.run([PROGRAM, path, "--fetch", "y"], capture_output=True, text=True)
    with tf1.Session(graph=graph) as session:
        try:
            session.run(y)
        except tf.errors.FailedPreconditionError as error:
            sentence = re.search(r"Attempting to use uninitialized value \S*", error.message).group(0)
    assert done.returncode == 1 and sentence in done.stderr, (sentence, done.stderr)


def our_graph_there(directory):
    """run_files DIRECTORY writes graph.pb, the feeds and the loss of each step; TensorFlow runs the same steps."""
    program = os.path.join(ORACLE, "run_files")
    done = subprocess.run([program, directory], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    losses = [float.fromhex(line) for line in done.stdout.split()]
    graph_def = tf1.GraphDef()
    with open(os.path.join(directory, "graph.pb"), "rb") as file:
        graph_def.ParseFromString(file.read())
    graph = tf1.Graph()
    with graph.as_default():
        tf1.import_graph_def(graph_def, name="")
    features = np.fromfile(os.path.join(directory, "features"), np.float32).reshape(-1, 6)
    targets = np.fromfile(os.path.join(directory, "targets"), np.float32).reshape(-1, 1)
    with tf1.Session(graph=graph) as session:
        session.run("init")
        expected = [session.run(["loss:0", "train"], {"x:0": features, "y:0": targets})[0] for _ in losses]
    assert len(losses) == 50
    np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-5)


def main():
    wanted = sys.argv[1:]
    passed = failed = 0
    checks = [(f.__name__, lambda directory, f=f: compare(f, directory)) for f in CASES]
    checks += [("uninitialized", uninitialized), ("our graph there", our_graph_there)]
    for name, check in checks:
        if wanted and not any(part in name for part in wanted):
            continue
        try:
            with tempfile.TemporaryDirectory() as directory:
                check(directory)
            passed += 1
        except Exception as error:  # run the remaining cases after a failure
            print(f"FAILED {name}: {error}")
            failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
