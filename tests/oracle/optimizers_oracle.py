"""Optimizers, learning rates, clipping and moving averages: 20 steps, and the names of variables, against
TensorFlow's."""

import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "python"))
import numpy as np
import millrace
import tensorflow.compat.v1 as tf

STEPS = 20
random = np.random.RandomState(1)
BATCHES = [(random.uniform(-1, 1, [5, 3]), random.uniform(-1, 1, [5, 2])) for _ in range(STEPS)]


class LazyAdam(tf.train.AdamOptimizer):
    """Adam that touches only the rows of a sparse gradient; TensorFlow 2.15 has no tf.contrib."""

    def _apply_sparse(self, gradient, variable):
        power1, power2 = self._get_beta_accumulators()
        values, rows = gradient.values, gradient.indices
        m, v = self.get_slot(variable, "m"), self.get_slot(variable, "v")
        new_m = self._beta1 * tf.gather(m, rows) + (1 - self._beta1) * values
        new_v = self._beta2 * tf.gather(v, rows) + (1 - self._beta2) * values * values
        change = self._lr * tf.sqrt(1 - power2) / (1 - power1) * new_m / (tf.sqrt(new_v) + self._epsilon)

        def put(kind, target, value):
            if isinstance(target, tf.Variable) and target.dtype._is_ref_dtype:
                return getattr(tf, "scatter_" + kind)(target, rows, value, use_locking=False)
            return getattr(target, "scatter_" + kind)(tf.IndexedSlices(value, rows))

        with tf.control_dependencies([put("update", m, new_m), put("update", v, new_v)]):
            return tf.group(put("sub", variable, change))

    def _resource_apply_sparse(self, values, variable, rows):
        return self._apply_sparse(tf.IndexedSlices(values, rows), variable)


class AdamW(tf.train.AdamOptimizer):
    """Adam after a decay of the weights."""

    def __init__(self, rate, decay):
        super().__init__(rate, name="AdamW")
        self.decay = decay

    def _apply_dense(self, gradient, variable):
        with tf.control_dependencies([gradient]):
            decayed = tf.assign_sub(variable, self.decay * variable)
        with tf.control_dependencies([decayed]):
            return super()._apply_dense(gradient, variable)

    def _apply_sparse(self, gradient, variable):
        with tf.control_dependencies([gradient.values]):
            change = self.decay * tf.gather(variable, gradient.indices)
            decayed = tf.scatter_sub(variable, gradient.indices, change)
        with tf.control_dependencies([decayed]):
            return super()._apply_sparse(gradient, variable)

    def _resource_apply_sparse(self, values, variable, rows):
        with tf.control_dependencies([values]):
            change = self.decay * tf.gather(variable, rows)
            decayed = variable.scatter_sub(tf.IndexedSlices(change, rows))
        with tf.control_dependencies([decayed]):
            return super()._resource_apply_sparse(values, variable, rows)


def is_reference(variable):
    return variable.dtype._is_ref_dtype


def put(kind, target, rows, value):
    if is_reference(target):
        return getattr(tf, "scatter_" + kind)(target, rows, value, use_locking=False)
    return getattr(target, "scatter_" + kind)(tf.IndexedSlices(value, rows))


class MomentumW(tf.train.MomentumOptimizer):
    """Momentum after a decay of the weights."""

    def __init__(self, rate, momentum, decay):
        super().__init__(rate, momentum, name="MomentumW")
        self.decay = decay

    def _apply_dense(self, gradient, variable):
        with tf.control_dependencies([gradient]):
            decayed = tf.assign_sub(variable, self.decay * variable)
        with tf.control_dependencies([decayed]):
            return super()._apply_dense(gradient, variable)

    def decay_rows(self, values, variable, rows):
        with tf.control_dependencies([values]):
            return put("sub", variable, rows, self.decay * tf.gather(variable, rows))

    def _apply_sparse(self, gradient, variable):
        with tf.control_dependencies([self.decay_rows(gradient.values, variable, gradient.indices)]):
            return super()._apply_sparse(gradient, variable)

    def _resource_apply_sparse(self, values, variable, rows):
        with tf.control_dependencies([self.decay_rows(values, variable, rows)]):
            return super()._resource_apply_sparse(values, variable, rows)


class Lars(tf.train.MomentumOptimizer):
    """Momentum whose rate depends on the norms of a variable and its gradient."""

    def __init__(self, rate, momentum=0.9, decay=0.0001, eeta=0.001, epsilon=0.0, skipped=(), nesterov=False):
        super().__init__(rate, momentum, name="LARSOptimizer", use_nesterov=nesterov)
        self.decay, self.eeta, self.epsilon, self.skipped = decay, eeta, epsilon, skipped

    def _apply_dense(self, gradient, variable):
        if any(part in variable.name for part in self.skipped):
            return super()._apply_dense(gradient, variable)
        weight, slope = tf.norm(variable), tf.norm(gradient)
        ratio = self.eeta * weight / (slope + self.decay * weight + self.epsilon)
        rate = self._learning_rate * tf.where((weight > 0) & (slope > 0), ratio, 1.0)
        return tf.raw_ops.ApplyMomentum(var=variable._ref(), accum=self.get_slot(variable, "momentum")._ref(), lr=rate,
                                        grad=gradient, momentum=self._momentum, use_nesterov=self._use_nesterov)


class AdaMax(tf.train.AdamOptimizer):
    def __init__(self, rate):
        super().__init__(rate, name="AdaMax")

    def _apply_dense(self, gradient, variable):
        m, v = self.get_slot(variable, "m"), self.get_slot(variable, "v")
        return tf.raw_ops.ApplyAdaMax(var=variable._ref(), m=m._ref(), v=v._ref(),
                                      beta1_power=self._get_beta_accumulators()[0], lr=self._lr, beta1=self._beta1,
                                      beta2=self._beta2, epsilon=self._epsilon, grad=gradient)

    def _apply_sparse(self, gradient, variable):
        values, rows = gradient.values, gradient.indices
        m, v = self.get_slot(variable, "m"), self.get_slot(variable, "v")
        new_m = self._beta1 * tf.gather(m, rows) + (1 - self._beta1) * values
        new_v = tf.maximum(self._beta2 * tf.gather(v, rows), tf.abs(values))
        change = self._lr / (1 - self._get_beta_accumulators()[0]) * new_m / (new_v + self._epsilon)
        with tf.control_dependencies([put("update", m, rows, new_m), put("update", v, rows, new_v)]):
            return tf.group(put("sub", variable, rows, change))

    def _resource_apply_sparse(self, values, variable, rows):
        return self._apply_sparse(tf.IndexedSlices(values, rows), variable)


class AmsGrad(tf.train.AdamOptimizer):
    """Adam with the largest second moment so far."""

    def __init__(self, rate, beta2):
        super().__init__(rate, beta2=beta2, name="AMSGrad")

    def _create_slots(self, variables):
        super()._create_slots(variables)
        for variable in variables:
            self._zeros_slot(variable, "vhat", self._name)

    def _apply_dense(self, gradient, variable):
        power1, power2 = self._get_beta_accumulators()
        m, v = self.get_slot(variable, "m"), self.get_slot(variable, "v")
        largest = self.get_slot(variable, "vhat")
        new_m = self._beta1 * m + (1 - self._beta1) * gradient
        new_v = self._beta2 * v + (1 - self._beta2) * gradient * gradient
        new_largest = tf.maximum(largest, new_v)
        rate = self._lr * tf.sqrt(1 - power2) / (1 - power1)
        change = rate * new_m / (tf.sqrt(new_largest) + self._epsilon)
        with tf.control_dependencies([new_m, new_v, new_largest]):
            moved = [tf.assign(*pair, use_locking=False) for pair in [(m, new_m), (v, new_v), (largest, new_largest)]]
            return tf.group(*moved, tf.assign_sub(variable, change))

    def _apply_sparse(self, gradient, variable):
        return self._apply_dense(tf.convert_to_tensor(gradient), variable)

    def _resource_apply_sparse(self, values, variable, rows):
        return self._apply_dense(tf.math.unsorted_segment_sum(values, rows, 6), variable)

    def _resource_apply_dense(self, gradient, variable):
        return self._apply_dense(gradient, variable)


class Sign(tf.train.Optimizer):
    """PowerSign or AddSign."""

    def __init__(self, name, rate, number, beta):
        super().__init__(False, name)
        self.rate, self.number, self.beta = rate, number, beta

    def _create_slots(self, variables):
        for variable in variables:
            self._zeros_slot(variable, "m", self._name)

    def factor(self, agreement):
        return self.number ** agreement if "Power" in self._name else self.number + agreement

    def _apply_dense(self, gradient, variable):
        m = self.get_slot(variable, "m")._ref()
        if "Power" in self._name:
            return tf.raw_ops.ApplyPowerSign(var=variable._ref(), m=m, lr=self.rate, logbase=np.log(self.number),
                                             sign_decay=1.0, beta=self.beta, grad=gradient)
        return tf.raw_ops.ApplyAddSign(var=variable._ref(), m=m, lr=self.rate, alpha=self.number, sign_decay=1.0,
                                       beta=self.beta, grad=gradient)

    def _apply_sparse(self, gradient, variable):
        m, values, rows = self.get_slot(variable, "m"), gradient.values, gradient.indices
        new_m = self.beta * m + (1 - self.beta) * tf.math.unsorted_segment_sum(values, rows, 6)
        agreement = tf.sign(tf.gather(new_m, rows)) * tf.sign(values)
        change = self.rate * self.factor(agreement) * values
        return tf.group(tf.assign(m, new_m, use_locking=False), put("sub", variable, rows, change))

    def _resource_apply_sparse(self, values, variable, rows):
        return self._apply_sparse(tf.IndexedSlices(values, rows), variable)


OPTIMIZERS = {
    "lars": lambda step: Lars(0.3),
    "lars2": lambda step: Lars(0.5, 0.5, 0.3, 0.1, 0.01, ["no", "b:"], True),
    "momentumw": lambda step: MomentumW(0.1, 0.9, 0.01),
    "amsgrad": lambda step: AmsGrad(0.1, 0.7),
    "adamax": lambda step: AdaMax(0.02),
    "powersign": lambda step: Sign("PowerSignOptimizer", 0.1, np.e, 0.9),
    "powersign2": lambda step: Sign("PowerSignOptimizer", 0.1, 3.0, 0.5),
    "addsign": lambda step: Sign("AddSignOptimizer", 0.1, 1.0, 0.9),
    "addsign2": lambda step: Sign("AddSignOptimizer", 0.2, 0.7, 0.5),
    "descent": lambda step: tf.train.GradientDescentOptimizer(0.3),
    "momentum": lambda step: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda step: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda step: tf.train.AdamOptimizer(0.02),
    "named": lambda step: tf.train.AdamOptimizer(0.02, name="Mine"),
    "lazy": lambda step: LazyAdam(0.02),
    "adamw": lambda step: AdamW(0.02, 0.01),
    "adagrad": lambda step: tf.train.AdagradOptimizer(0.2),
    "adagrad2": lambda step: tf.train.AdagradOptimizer(0.2, 0.5),
    "adadelta": lambda step: tf.train.AdadeltaOptimizer(1.0, 0.8, 1e-4),
    "rmsprop": lambda step: tf.train.RMSPropOptimizer(0.02),
    "rmsprop2": lambda step: tf.train.RMSPropOptimizer(0.02, decay=0.7, momentum=0.5),
    "centered": lambda step: tf.train.RMSPropOptimizer(0.02, centered=True, epsilon=1e-3),
    "ftrl": lambda step: tf.train.FtrlOptimizer(0.3),
    "ftrl2": lambda step: tf.train.FtrlOptimizer(0.3, l1_regularization_strength=0.01, l2_regularization_strength=0.02),
    "ftrl3": lambda step: tf.train.FtrlOptimizer(0.3, learning_rate_power=-0.6,
                                                 l2_shrinkage_regularization_strength=0.02),
    "adagradda": lambda step: tf.train.AdagradDAOptimizer(0.3, step, l1_regularization_strength=0.001,
                                                          l2_regularization_strength=0.002),
    "proximal": lambda step: tf.train.ProximalGradientDescentOptimizer(0.3, 0.01, 0.02),
    "ftrl_named": lambda step: tf.train.FtrlOptimizer(0.3, accum_name="acc", linear_name="lin"),
    "ftrl_accum": lambda step: tf.train.FtrlOptimizer(0.3, accum_name="acc"),
    "locked_descent": lambda step: tf.train.GradientDescentOptimizer(0.3, use_locking=True),
    "locked_adam": lambda step: tf.train.AdamOptimizer(0.02, use_locking=True),
    "locked_momentum": lambda step: tf.train.MomentumOptimizer(0.1, 0.9, use_locking=True),
    "locked_rmsprop": lambda step: tf.train.RMSPropOptimizer(0.02, use_locking=True),
    "proximal2": lambda step: tf.train.ProximalAdagradOptimizer(0.2, l1_regularization_strength=0.01,
                                                                l2_regularization_strength=0.02),
}
passed = failed = 0


def check(right, text):
    global passed, failed
    passed += bool(right)
    failed += not right
    if not right:
        print(text)


def model(name):
    x, y = tf.placeholder(tf.float32, [None, 3], "x"), tf.placeholder(tf.float32, [None, 2], "y")
    name, _, kind = name.rpartition("_") if name.endswith(("_rows", "_resource")) else (name, "", "")
    if kind:
        values = (np.arange(12) * 7 % 12 / np.float32(10) - np.float32(0.5)).reshape(6, 2)
        w = tf.Variable(values.astype(np.float32), name="w", use_resource=kind == "resource")
        places = tf.cast(tf.floor(tf.abs(x) * 5.9), tf.int32)
        product = tf.reduce_mean(tf.gather(w, places), 1) + tf.gather(w, [0, 4, 4, 1, 5])
    else:
        w = tf.Variable(np.float32([[0.5, -0.3], [0.1, 0.9], [-0.7, 0.2]]), name="w")
        product = tf.matmul(x, w)
    b = tf.Variable(np.float32([0.1, -0.1]), name="b")
    loss = tf.losses.mean_squared_error(y, tf.tanh(tf.nn.bias_add(product, b)))
    step = tf.train.get_or_create_global_step()
    kind = {"clip": "descent", "clip_axes": "descent", "clip_given": "descent", "clip_all": "descent",
            "clip_average": "descent", "average": "adam", "only": "adam", "weighted": "descent",
            "colocated": "descent", "average_loss": "adam", "average_debiased": "adam"}.get(name, name)
    is_decayed = kind.startswith("decayed_")
    optimizer = OPTIMIZERS[kind.removeprefix("decayed_")](step)
    for attr in ("_learning_rate", "_lr") if is_decayed else ():  # a tensor in the place of the number
        if hasattr(optimizer, attr):
            setattr(optimizer, attr, tf.train.exponential_decay(getattr(optimizer, attr), step, 4, 0.7))
    options = {"only": {"var_list": [b]}, "weighted": {"grad_loss": tf.constant(0.4)},
               "colocated": {"colocate_gradients_with_ops": True}}.get(name, {})
    pairs = optimizer.compute_gradients(loss, **options)
    if name == "clip":
        pairs = [(tf.clip_by_norm(g, 0.1), v) for g, v in pairs]
    elif name == "clip_axes":
        pairs = [(tf.clip_by_norm(g, 0.05, axes=[-1]), v) for g, v in pairs]
    elif name == "clip_given":
        clipped, _ = tf.clip_by_global_norm([g for g, _ in pairs], 0.15, use_norm=tf.constant(0.5))
        pairs = list(zip(clipped, [v for _, v in pairs]))
    elif name == "clip_average":
        pairs = [(tf.clip_by_average_norm(g, 0.01), v) for g, v in pairs]
    elif name == "clip_all":
        pairs = list(zip(tf.clip_by_global_norm([g for g, _ in pairs], 0.15)[0], [v for _, v in pairs]))
    train = optimizer.apply_gradients(pairs, step)
    if name in ("average_loss", "average_debiased"):
        with tf.control_dependencies([train]):
            average = tf.train.ExponentialMovingAverage(0.9, step, zero_debias=name == "average_debiased")
            train = average.apply([loss])
    if name == "average":
        with tf.control_dependencies([train]):
            train = tf.train.ExponentialMovingAverage(0.9, step).apply([w, b])
    return loss, train


def classes(nodes):
    """Colocation groups of the nodes of gradients."""
    return {node.name: list(node.attr["_class"].list.s) for node in nodes
            if node.name.startswith("gradients/") and "_class" in node.attr}


def locks(nodes):
    """Whether updates of references lock, by the operator and the node that is updated; not the initializers."""
    found = {}
    for node in nodes:
        if "use_locking" in node.attr and not node.op.startswith("Resource") and not node.name.endswith("/Assign"):
            found.setdefault((node.op, node.input[0]), set()).add(node.attr["use_locking"].b)
    return found


def compare(name, train, loss, bytes_):
    with tf.Graph().as_default(), tf.Session() as session:
        their_loss, their_train = model(name)
        names = [v.op.name for v in tf.global_variables()]
        groups, locked = classes(session.graph_def.node), locks(session.graph_def.node)
        session.run(tf.global_variables_initializer())
        want = [session.run([their_loss, their_train], {"x:0": x, "y:0": y})[0] for x, y in BATCHES]
        finals = session.run(tf.global_variables())
    ours = millrace.Session(bytes_)
    ours.run("init")
    got = [ours.run([loss + ":0", train], {"x:0": x, "y:0": y})[0] for x, y in BATCHES]
    check(np.allclose(got, want, 1e-5, 1e-7), f"{name}: losses {got} instead of {want}")
    nodes = tf.MetaGraphDef.FromString(bytes_).graph_def.node
    mine = {key: value for key, value in locks(nodes).items() if key in locked}
    check(not name.startswith("locked_") or any(True in value for value in mine.values()), f"{name}: nothing locks")
    for update, value in mine.items():
        check(value == locked[update], f"{name}: {update} locks {value}, not {locked[update]}")
    if name.startswith("colocated"):
        common = [node for node in classes(nodes) if node in groups]
        check(len(common) > 5, f"{name}: only {common} are colocated in both")
        for node, group in classes(nodes).items():
            check(group == groups.get(node, group), f"{name}: {node} is in {group}, not {groups.get(node)}")
    found = {node.name for node in nodes if node.op in ("VariableV2", "VarHandleOp")}
    handles = {node.name for node in nodes if node.op == "VarHandleOp"}
    if name.endswith(("_rows", "_resource")) and not name.startswith(("clip_average", "only")):  # dense, or none
        updates = {node.op for node in nodes if "update_w" in node.name}
        check(any("Scatter" in op or "SparseApply" in op for op in updates), f"{name}: the updates are {updates}")
    check(found == set(names), f"{name}: variables {sorted(found)} instead of {sorted(names)}")
    for variable, value in zip(names, finals):
        if variable in found:
            mine = ours.run(variable + ("/Read/ReadVariableOp:0" if variable in handles else ":0"))
            check(np.allclose(mine, value, 1e-5, 1e-6), f"{name}: {variable} is {mine} instead of {value}")


def noisy(step, steps, variance, variance_decay, periods, alpha, beta, seed):
    """Noisy linear cosine decay with a seed, which TensorFlow's own lacks, and with the random operator of 1.15."""
    done = tf.minimum(tf.cast(step, tf.float32), float(steps))
    std = tf.sqrt(variance / (1.0 + done) ** variance_decay)
    linear = (steps - done) / steps + tf.random_normal([], stddev=std, seed=seed)
    cosine = 0.5 * (1 + tf.cos(np.float32(np.pi) * (2.0 * periods * (done / steps))))
    return 0.5 * ((alpha + linear) * cosine + beta)


def rates(step):
    t, rate = tf.train, tf.constant(0.125) * 2
    return [
        t.exponential_decay(0.5, step, 10, 0.9), t.exponential_decay(0.5, step, 10, 0.9, True),
        t.natural_exp_decay(0.5, step, 10, 0.3), t.natural_exp_decay(0.5, step, 10, 0.3, True),
        t.inverse_time_decay(0.5, step, 10, 0.3), t.inverse_time_decay(0.5, step, 10, 0.3, True),
        t.polynomial_decay(0.5, step, 10, 0.01, 2), t.polynomial_decay(0.5, step, 10, 0.01, 0.5, True),
        t.piecewise_constant(step, [np.int64(5), np.int64(12)], [0.5, 0.2, 0.1]), t.cosine_decay(0.5, step, 10, 0.1),
        t.cosine_decay_restarts(0.5, step, 10), t.cosine_decay_restarts(0.5, step, 7, 1.0, 0.5, 0.1),
        t.cosine_decay_restarts(0.5, step, 7, 1.5, 0.5, 0.1), t.linear_cosine_decay(0.5, step, 10),
        t.linear_cosine_decay(0.5, step, 20, 2, 0.1, 0.01), t.noisy_linear_cosine_decay(0.5, step, 10, 0.0),
        noisy(step, 10, 1.0, 0.55, 0.5, 0.0, 0.001, 7), noisy(step, 20, 0.1, 0.3, 2, 0.1, 0.01, 8),
        t.exponential_decay(rate, step, 10, 0.9, name="named_rate"), t.natural_exp_decay(rate, step, 10, 0.3),
        t.inverse_time_decay(rate, step, 10, 0.3), t.polynomial_decay(rate, step, 10, 0.01, 2),
        t.cosine_decay(rate, step, 10, 0.1), t.cosine_decay_restarts(rate, step, 10),
        t.linear_cosine_decay(rate, step, 10)]


def main():
    program = os.path.join(os.environ["MILLRACE_ORACLE"], "optimizers_graph")
    with tempfile.TemporaryDirectory() as directory:
        text = subprocess.run([program, directory], check=True, capture_output=True, text=True).stdout
        for line in text.splitlines():
            name, *names = line.split()
            bytes_ = open(os.path.join(directory, name + ".meta"), "rb").read()
            if name != "rates":
                compare(name, *names, bytes_)
                continue
            ours = millrace.Session(bytes_)
            with tf.Graph().as_default(), tf.Session() as session:
                step = tf.placeholder(tf.int64, [], "step")
                theirs = rates(step)
                check(names[18] == theirs[18].name, f"{names[18]} instead of {theirs[18].name}")
                for value in range(0, 60):
                    want, got = session.run(theirs, {step: value}), ours.run(names, {"step:0": value})
                    for output, a, b in zip(names, got, want):
                        check(np.allclose(a, b, 1e-5, 1e-7), f"{output} at step {value}: {a} instead of {b}")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    tf.disable_v2_behavior()
    sys.exit(main())
