"""Optimizers around others, and the options of compute_gradients: 24 steps, the names of variables, and what a swapping
saver writes, against TensorFlow's."""

import os
import subprocess
import sys
import tempfile
import threading

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "python"))
import numpy as np
import millrace
import tensorflow.compat.v1 as tf

STEPS = 24
random = np.random.RandomState(1)
BATCHES = [{"x:0": random.randint(0, 6, [5]), "y:0": random.uniform(-1, 1, [5, 2]), "scale:0": 1.0}
           for _ in range(STEPS)]
BAD = {4: np.inf, 5: np.nan, 11: -np.inf, 20: np.nan}  # the scale of the loss in these steps
passed = failed = 0


def check(right, text):
    global passed, failed
    passed += bool(right)
    failed += not right
    if not right:
        print(text)


def model(kind, resource):
    x, y = tf.placeholder(tf.int32, [None], "x"), tf.placeholder(tf.float32, [None, 2], "y")
    scale = tf.placeholder(tf.float32, [], "scale")
    values = (np.arange(12) * 7 % 12 / np.float32(10) - np.float32(0.5)).reshape(6, 2).astype(np.float32)
    w = tf.get_variable("w", initializer=values, use_resource=resource)
    b = tf.get_variable("b", [2], initializer=tf.zeros_initializer(), use_resource=resource)
    loss = tf.losses.mean_squared_error(y, tf.tanh(tf.nn.bias_add(tf.gather(w, x), b))) * scale
    step = tf.train.get_or_create_global_step()
    adam = tf.train.AdamOptimizer(0.02)
    if kind == "average":
        update = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, step)
        average = tf.train.ExponentialMovingAverage(0.9, step)
        with tf.control_dependencies([update]):
            train = tf.group(update, average.apply([w, b]))
        return loss, train, []
    if kind.startswith("sums"):
        for term in (tf.square(b), tf.square(b), tf.sin(b)):
            loss += tf.reduce_sum(term)
        method = int(kind[-1])
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        gate = (optimizer.GATE_OP, optimizer.GATE_NONE, optimizer.GATE_GRAPH)[method]
        pairs = optimizer.compute_gradients(loss, gate_gradients=gate, aggregation_method=method)
        with tf.control_dependencies([loss]):  # reads the weights before they change
            return loss, optimizer.apply_gradients(pairs, step), []
    if kind in ("fixed", "dynamic"):
        scales = tf.mixed_precision
        how = scales.FixedLossScale(64) if kind == "fixed" else scales.DynamicLossScale(8, 3)
        return loss, scales.MixedPrecisionLossScaleOptimizer(adam, how).minimize(loss, step), []
    aggregate = int(kind[-1])
    average = tf.train.ExponentialMovingAverage(0.8) if aggregate == 3 else None
    optimizer = tf.train.SyncReplicasOptimizer(adam, aggregate, 1, average, [b] if average else None)
    train = optimizer.minimize(loss, step)
    sync = optimizer.get_chief_queue_runner().enqueue_ops[0]
    return loss, train, [optimizer.chief_init_op, optimizer.get_init_tokens_op(aggregate - 1), sync]


def steps(kind, run, loss, train, more):
    """The losses. Of replicas: several gradients, the chief's update, and the token of the next step."""
    if more:
        for node in more[:2]:
            run(node, None)
    losses = []
    aggregate = int(kind[-1]) if more else 0
    for i, batch in enumerate(BATCHES):
        batch = dict(batch, **{"scale:0": BAD[i]}) if kind == "dynamic" and i in BAD else batch
        if not more or i % aggregate != aggregate - 1:
            losses.append(run([loss, train], batch)[0])
            continue
        chief = threading.Thread(target=run, args=(more[2], None))  # for which this step may wait
        chief.start()
        losses.append(run([loss, train], batch)[0])
        chief.join()
    return losses


def compare(name, train, loss, more, bytes_, directory):
    kind, resource = name.replace("_resource", ""), name.endswith("_resource")
    with tf.Graph().as_default(), tf.Session() as session:
        their_loss, their_train, their_more = model(kind, resource)
        variables = tf.global_variables() + tf.local_variables()
        names = [v.op.name for v in variables]
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        want = steps(kind, lambda f, d: session.run(f, d), their_loss, their_train, their_more)
        finals = session.run(variables)
        operators = {n.op for n in tf.get_default_graph().as_graph_def().node if "Accumulator" in n.op}
        sums = sum(n.op == "AddN" for n in tf.get_default_graph().as_graph_def().node)
    ours = millrace.Session(bytes_)
    ours.run("init")
    ours.run("init_local")
    got = steps(kind, lambda f, d: ours.run(f, d or {}), loss + ":0", train, more)
    check(np.allclose(got, want, 1e-5, 1e-7, equal_nan=True), f"{name}: losses {got} instead of {want}")
    nodes = tf.MetaGraphDef.FromString(bytes_).graph_def.node
    found = {node.name for node in nodes if node.op in ("VariableV2", "VarHandleOp")}
    handles = {node.name for node in nodes if node.op == "VarHandleOp"}
    check(found == set(names), f"{name}: variables {sorted(found)} instead of {sorted(names)}")
    mine = {node.op for node in nodes if "Accumulator" in node.op}
    check(mine == operators, f"{name}: operators {sorted(mine)} instead of {sorted(operators)}")
    if kind.startswith("sums"):
        added = sum(node.op == "AddN" for node in nodes)
        check(added == sums, f"{name}: {added} sums instead of {sums}")
    values = {}
    for variable, value in zip(names, finals):
        if variable in found:
            values[variable] = ours.run(variable + ("/Read/ReadVariableOp:0" if variable in handles else ":0"))
            check(np.allclose(values[variable], value, 1e-5, 1e-6),
                  f"{name}: {variable} is {values[variable]} instead of {value}")
    if kind == "average":
        path = os.path.join(directory, name + ".ckpt")
        ours.run("save/control_dependency:0", {"save/Const:0": path})
        reader = tf.train.load_checkpoint(path)
        for variable, value in values.items():
            other = variable[:-len("/ExponentialMovingAverage")] if variable.endswith("Average") else \
                variable + "/ExponentialMovingAverage"
            stored = reader.get_tensor(variable)
            check(np.array_equal(stored, values.get(other, value)), f"{name}: {variable} is stored as {stored}")


def main():
    program = os.path.join(os.environ["MILLRACE_ORACLE"], "optimizer_wrappers_graph")
    with tempfile.TemporaryDirectory() as directory:
        text = subprocess.run([program, directory], check=True, capture_output=True, text=True).stdout
        for line in text.splitlines():
            name, train, loss, *more = line.split()
            compare(name, train, loss, more, open(os.path.join(directory, name + ".meta"), "rb").read(), directory)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    tf.disable_v2_behavior()
    sys.exit(main())
