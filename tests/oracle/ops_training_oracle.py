"""The optimizers and the operators that update variables, by reference and by handle: the variables have the same
values as TensorFlow's after a step, for all dtypes, and errors have the same text."""
import os
import re
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from ops_compare import report

tf1 = tf.compat.v1
tf1.disable_eager_execution()
raw = tf.raw_ops
ORACLE = os.environ.get("MILLRACE_ORACLE", "zig-out/oracle")
PROGRAM = os.path.join(os.environ.get("MILLRACE_BIN", os.path.join(ORACLE, "..", "bin")), "graph-run")
rng = np.random.default_rng(int(os.environ.get("MILLRACE_TEST_SEED", "1")))
FETCHES = 250  # of one graph-run
REAL = [tf.float32, tf.float64, tf.half, tf.bfloat16]
ALL = REAL + [tf.complex64, tf.complex128]
WIDE = [tf.float32, tf.float64]
TOLERANCE = {tf.float32: 3e-6, tf.float64: 1e-12, tf.half: 6e-3, tf.bfloat16: 5e-2,
             tf.complex64: 1e-5, tf.complex128: 1e-12}
# The inputs of each optimizer: slots (positive ones have a capital letter, larger ones two), scalars and the gradient.
ADAM = "beta1_power beta2_power lr beta1 beta2 epsilon"
OPTIMIZERS = {
    "GradientDescent": ("D-", "alpha delta", ALL, False, []),
    "Momentum": ("DS", "accum lr grad momentum", ALL, True, ["use_nesterov"]),
    "KerasMomentum": ("RDS", "accum lr grad momentum", ALL, True, ["use_nesterov"]),
    "Adam": ("D", f"m V {ADAM} grad", ALL, False, ["use_nesterov"]),
    "AdamWithAmsgrad": ("RD", f"m V Vhat {ADAM} grad", REAL, False, []),
    "AdaMax": ("D", "m V beta1_power lr beta1 beta2 epsilon grad", REAL[:3], False, []),
    "Adadelta": ("DS", "Accum Accum_update lr rho epsilon grad", ALL, False, []),
    "Adagrad": ("DS", "Accum lr grad", ALL, False, ["update_slots"]),
    "AdagradV2": ("DS", "Accum lr epsilon grad", ALL, False, ["update_slots"]),
    "AdagradDA": ("DS", "gradient_accumulator Gradient_squared_accumulator grad lr l1 l2 global_step", WIDE, False, []),
    "RMSProp": ("DS", "Ms mom lr rho momentum epsilon grad", ALL, False, []),
    "CenteredRMSProp": ("DS", "mg MS mom lr rho momentum epsilon grad", ALL, False, []),
    "Ftrl": ("DS", "Accum linear grad lr l1 l2 lr_power", REAL, False, ["multiply_linear_by_lr"]),
    "FtrlV2": ("DS", "Accum linear grad lr l1 l2 l2_shrinkage lr_power", REAL, False, ["multiply_linear_by_lr"]),
    "ProximalAdagrad": ("DS", "Accum lr l1 l2 grad", WIDE, False, []),
    "ProximalGradientDescent": ("DS", "alpha l1 l2 delta", WIDE, False, []),
    "AddSign": ("D", "m lr alpha sign_decay beta grad", REAL[:3], False, []),
    "PowerSign": ("D", "m lr logbase sign_decay beta grad", REAL[:3], False, []),
}
SLOTS = {"accum", "accum_update", "m", "v", "vhat", "mg", "ms", "mom", "linear", "gradient_accumulator",
         "gradient_squared_accumulator"}
SCALARS = {"lr": 0.3, "alpha": 0.3, "momentum": 0.9, "rho": 0.7, "epsilon": 0.01, "beta1_power": 0.8,
           "beta2_power": 0.9,
           "beta1": 0.8, "beta2": 0.9, "l1": 0.2, "l2": 0.1, "l2_shrinkage": 0.05, "sign_decay": 0.8, "beta": 0.6,
           "logbase": 0.7}


def numbers(shape, dtype, positive=False, offset=0):
    values = rng.uniform(0.5 if positive else -2, 2, shape) + offset
    if dtype.is_complex:
        values = values + 1j * rng.uniform(-1, 1, shape)
    if dtype.is_integer:
        values = np.floor(rng.uniform(1 if positive else 0 if dtype.is_unsigned else -50, 50, shape))
    if dtype == tf.bool:
        values = values > 0
    return tf.constant(values.astype(dtype.as_numpy_dtype))


class Case:
    """Variables, the operation that updates them, and what is fetched."""

    def __init__(self, name, tolerance):
        self.name, self.tolerance, self.assigns, self.variables, self.fetches = name, tolerance, [], [], []
        self.message = None

    def variable(self, value, by_handle):
        name = f"v{len(Case.names)}"
        Case.names.append(name)
        if by_handle:
            v = raw.VarHandleOp(dtype=value.dtype, shape=value.shape, shared_name=name)
            self.assigns.append(raw.AssignVariableOp(resource=v, value=value))
        else:
            v = raw.VariableV2(dtype=value.dtype, shape=value.shape, shared_name=name)
            self.assigns.append(raw.Assign(ref=v, value=value).op)
        self.variables.append((v, value.dtype))
        return v

    def finish(self, op, extra=()):
        with tf.control_dependencies([op]):
            read = [raw.ReadVariableOp(resource=v, dtype=d) if v.dtype == tf.resource else tf.identity(v)
                    for v, d in self.variables]
        for value in [*read, *extra]:
            if value.dtype in (tf.bfloat16, tf.half):
                value = tf.cast(value, tf.float32)
            self.fetches.append(value)
        cases.append(self)


Case.names = []
cases = []


def call(case, op_name, values, by_handle, **attributes):
    """Adds the operator; the values named like slots are variables."""
    arguments = {}
    for key, value in values.items():
        is_variable = key == "var" or key in SLOTS or key in ("ref", "resource")
        arguments[key] = case.variable(value, by_handle) if is_variable else value
    result = getattr(raw, op_name)(**arguments, **attributes)
    return result if isinstance(result, tf.Operation) else result.op


def optimizer_cases():
    for name, (forms, inputs, dtypes, _, flags) in OPTIMIZERS.items():
        for dtype in dtypes:
            for sparse in [False, True] if "S" in forms else [False]:
                if sparse and dtype == tf.bfloat16 and "RMSProp" in name:
                    continue
                for by_handle in [True] if "R" in forms else [False, True]:
                    for flag in [{}] if not flags else [{flags[0]: False}, {flags[0]: True}]:
                        for shape in [[7, 5], [40]] if sparse else [[33, 9]]:
                            one_optimizer(name, inputs, dtype, sparse, by_handle, flag, shape)


def one_optimizer(name, inputs, dtype, sparse, by_handle, flag, shape):
    indices = [2, 0, 2, 6]
    values = {"var": numbers(shape, dtype)}
    for given in inputs.split():
        key = given.lower()
        if key in ("grad", "delta"):
            key = "grad" if sparse else key
            values[key] = numbers([len(indices), *shape[1:]] if sparse else shape, dtype)
            if sparse:
                values["indices"] = tf.constant(indices, rng.choice([tf.int32, tf.int64]))
        elif key in SLOTS:
            values[key] = numbers(shape, dtype, given[0].isupper(), 6 * (given == "MS"))
        elif key == "global_step":
            values[key] = tf.constant(3, tf.int64)
        elif key == "lr_power":
            values[key] = tf.constant(rng.choice([-0.5, -0.7]), dtype)
        else:
            values[key] = tf.constant(SCALARS[key], dtype)
    op_name = ("Resource" if by_handle else "") + ("Sparse" if sparse else "") + "Apply" + name
    case = Case(f"{op_name} {dtype.name} {flag}", TOLERANCE[dtype])
    case.finish(call(case, op_name, values, by_handle, **flag))


INTEGERS = [tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64]


def scatter_cases():
    for kind in ["Update", "Add", "Sub", "Mul", "Div", "Min", "Max"]:
        dtypes = (REAL if kind in ("Min", "Max") else ALL) + INTEGERS
        for dtype in dtypes + ([tf.bool] if kind == "Update" else []):
            for by_handle in [False, True]:
                is_listed = dtype in [*REAL, tf.int32, tf.int64]
                if kind in ("Min", "Max") and not is_listed and not by_handle:
                    continue
                for shape, scalar in [([5, 3], False), ([5, 3], True), ([4], False), ([5, 0], False)]:
                    indices = rng.integers(0, shape[0], [2, 3])
                    updates = numbers([] if scalar else [2, 3, *shape[1:]], dtype, kind == "Div")
                    case = Case(f"{'Resource' * by_handle}Scatter{kind} {dtype.name} {shape}", TOLERANCE.get(dtype, 0))
                    first = "resource" if by_handle else "ref"
                    case.finish(call(case, ("Resource" if by_handle else "") + "Scatter" + kind,
                                     {first: numbers(shape, dtype), "indices": tf.constant(indices, tf.int32),
                                      "updates": updates}, by_handle))


def scatter_nd_cases():
    for kind in ["Update", "Add", "Sub", "Min", "Max"]:
        dtypes = REAL + INTEGERS + ([] if kind in ("Min", "Max") else [tf.complex64, tf.complex128, tf.bool])
        for dtype in dtypes:
            for by_handle in [False, True]:
                if dtype == tf.bool and kind != "Update" and not by_handle:
                    continue
                for depth in [1, 2, 3]:
                    shape = [4, 3, 2]
                    indices = np.stack([rng.integers(0, shape[d], [5]) for d in range(depth)], -1)
                    name = "Resource" * by_handle + "ScatterNd" + kind
                    case = Case(f"{name} {dtype.name} {depth}", TOLERANCE.get(dtype, 0))
                    case.finish(call(case, ("Resource" if by_handle else "") + "ScatterNd" + kind,
                                     {"ref": numbers(shape, dtype), "indices": tf.constant(indices, tf.int64),
                                      "updates": numbers([5, *shape[depth:]], dtype)}, by_handle))


def other_cases():
    for dtype in ALL + INTEGERS + [tf.bool]:
        for by_handle in [False, True]:
            for shape, begin, end, step, value, masks in [
                ([5, 4], [1, 0], [4, 4], [2, 1], [2, 4], {}),
                ([5, 4], [4, 3], [0, 0], [-2, -1], [3], {}),
                ([5, 4], [1, 0], [2, 4], [1, 1], [], dict(shrink_axis_mask=1)),
                ([5, 4], [0, 0], [0, 0], [1, 1], [1, 4, 1], dict(ellipsis_mask=1, new_axis_mask=2)),
                ([5, 4], [2], [2], [1], [], {}),
                ([], [], [], [], [], {}),
            ]:
                case = Case(f"{'Resource' * by_handle}StridedSliceAssign {dtype.name} {shape} {masks}", 0)
                operands = {"begin": tf.constant(begin, tf.int32), "end": tf.constant(end, tf.int32),
                            "strides": tf.constant(step, tf.int32), "value": numbers(value, dtype)}
                extra = []
                if by_handle:
                    extra = [raw.TensorStridedSliceUpdate(input=numbers(shape, dtype), **operands, **masks)]
                case.finish(call(case, ("Resource" if by_handle else "") + "StridedSliceAssign",
                                 {"ref": numbers(shape, dtype), **operands}, by_handle, **masks), extra)
        case = Case(f"ResourceGather {dtype.name}", 0)
        v = case.variable(numbers([4, 3, 2], dtype), True)
        with tf.control_dependencies(case.assigns):
            extra = [
                raw.ResourceGather(resource=v, indices=[[1, 3], [0, 0]], dtype=dtype),
                raw.ResourceGather(resource=v, indices=[[1, 2], [0, 0], [2, 2], [0, 1]], dtype=dtype, batch_dims=1),
                raw.ResourceGatherNd(resource=v, indices=[[1, 2], [0, 0]], dtype=dtype),
            ]
        case.finish(tf.group(*[e.op for e in extra]), extra)
        if dtype != tf.bool:
            for by_handle in [False, True]:
                case = Case(f"AssignAdd {dtype.name}", 0 if dtype.is_integer else TOLERANCE[dtype])
                v, w = case.variable(numbers([9], dtype), by_handle), case.variable(numbers([9], dtype), by_handle)
                value = numbers([9], dtype)
                if by_handle:
                    ops = [raw.AssignAddVariableOp(resource=v, value=value),
                           raw.AssignSubVariableOp(resource=w, value=value)]
                else:
                    ops = [raw.AssignAdd(ref=v, value=value).op, raw.AssignSub(ref=w, value=value).op]
                case.finish(tf.group(*ops))
    for dtype in [tf.int32, tf.int64]:
        for by_handle in [False, True]:
            case = Case(f"CountUpTo {dtype.name}", 0)
            v = case.variable(tf.constant(4, dtype), by_handle)
            if by_handle:
                counted = raw.ResourceCountUpTo(resource=v, limit=5, T=dtype)
            else:
                counted = raw.CountUpTo(ref=v, limit=5)
            case.finish(counted.op, [counted])


def run_theirs(graph):
    options = tf1.GraphOptions()
    options.rewrite_options.disable_meta_optimizer = True
    with tf1.Session(graph=graph, config=tf1.ConfigProto(graph_options=options)) as session:
        session.run("init")
        return session.run([case.fetches for case in cases])


def run_ours(graph, directory):
    path = os.path.join(directory, "graph.pb")
    with open(path, "wb") as file:
        file.write(graph.as_graph_def().SerializeToString())
    fetches = [fetch.name for case in cases for fetch in case.fetches]
    for begin in range(0, len(fetches), FETCHES):
        command = [PROGRAM, path, "--write", directory, "--threads", "2", "--first", "init"]
        for name in fetches[begin:begin + FETCHES]:
            command += ["--fetch", name]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            print(done.stderr[-2000:])
            sys.exit(1)
    def load(fetch):
        return np.load(os.path.join(directory, re.sub("[/:]", "_", fetch.name) + ".npy"))

    return [[load(fetch) for fetch in case.fetches] for case in cases]


def differs(ours, theirs, tolerance):
    theirs = np.asarray(theirs)
    if ours.shape != theirs.shape:
        return f"{ours.shape}, TensorFlow {theirs.shape}"
    if tolerance == 0 or theirs.dtype.kind not in "fc":
        same = np.array_equal(ours, theirs)
    else:
        same = np.allclose(ours, theirs, rtol=tolerance, atol=tolerance, equal_nan=True)
    if same:
        return None
    return f"{ours.reshape(-1)[:6]}, TensorFlow {theirs.reshape(-1)[:6]}"


graph = tf.Graph()
with graph.as_default():
    for make in (optimizer_cases, scatter_cases, scatter_nd_cases, other_cases):
        make()
    tf1.group(*[a for case in cases for a in case.assigns], name="init")
with tempfile.TemporaryDirectory() as directory:
    expected, results = run_theirs(graph), run_ours(graph, directory)
failures, counts = 0, {}
for case, ours, theirs in zip(cases, results, expected):
    problems = [(i, differs(o, t, case.tolerance)) for i, (o, t) in enumerate(zip(ours, theirs))]
    problems = [f"output {i}: {p}" for i, p in problems if p]
    count = counts.setdefault(case.name.split()[0], [0, 0])
    count[0] += 1
    count[1] += not problems
    if problems:
        failures += 1
        if failures < 40:
            print(f"{case.name}: {'; '.join(problems)[:300]}")
report(counts)
print(f"{len(cases) - failures} passed, {failures} failed")
sys.exit(1 if failures else 0)
