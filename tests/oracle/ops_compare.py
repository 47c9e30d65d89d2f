"""Compares kernels with TensorFlow's: the scripts ops_FAMILY_oracle.py draw cases with add() and call main().

One graph contains all cases. TensorFlow runs it once, ops_run runs the same nodes with the same inputs, and the outputs
are compared: bit for bit where both must agree, otherwise within a tolerance relative to the magnitude."""
import os
import struct
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2

raw = tf.raw_ops
generator = np.random.default_rng(int(os.environ.get("MILLRACE_TEST_SEED", "1")))
cases = []  # (operation, tolerance, runs)
NUMBERS = [np.float32, np.float64, np.int32, np.int64]
NARROW = [np.int8, np.int16, np.uint8, np.uint16]
HALVES = [np.float16, tf.bfloat16.as_numpy_dtype]
NAN, INF = float("nan"), float("inf")


def values(shape, dtype=np.float32, low=-4.0, high=4.0, special=False):
    if dtype == np.bool_:
        return generator.integers(0, 2, shape).astype(np.bool_)
    if np.issubdtype(np.dtype(dtype), np.unsignedinteger):
        low = max(low, 0)
    numbers = generator.uniform(low, high, shape)
    if np.issubdtype(np.dtype(dtype), np.integer):
        return np.floor(numbers).astype(dtype)
    numbers = numbers.astype(dtype)
    if special:
        numbers = numbers.copy()
        flat = numbers.reshape(-1)
        # No subnormal numbers: TensorFlow's threads flush them to zero.
        odd = np.array([NAN, INF, -INF, 0.0, -0.0, 3e38, 88.8, -80.0, -120.5, 1e-8], dtype=dtype)
        flat[: min(len(odd), len(flat))] = odd[: len(flat)]
    return numbers


def add(operator, tolerance=1e-5, runs=1, **arguments):
    result = getattr(raw, operator)(**arguments)
    while isinstance(result, (list, tuple)):
        result = result[0]
    cases.append((result.op, tolerance, runs))


def is_unset(op, index):
    """Whether TensorFlow leaves this output uninitialized."""
    if op.type in ("Svd", "SelfAdjointEigV2") and not op.get_attr("compute_uv" if op.type == "Svd" else "compute_v"):
        return index > 0
    if not op.type.startswith("FusedBatchNorm") or "Grad" in op.type:
        return False
    if op.inputs[0].shape.num_elements() == 0:
        return index >= 3
    if op.type == "FusedBatchNormV2" and op.inputs[0].dtype != tf.float32:
        return index >= 3 and not op.get_attr("is_training")  # memory that TensorFlow does not write
    return op.type == "FusedBatchNormV3" and (index == 5 or index >= 3 and not op.get_attr("is_training"))


ATTR_KINDS = {"s": "s", "i": "i", "f": "f", "b": "b", "type": "t", "shape": "p"}


def text(data):
    data = data if isinstance(data, bytes) else data.encode()
    return struct.pack("<I", len(data)) + data


def shape_bytes(sizes):
    return struct.pack("<I", len(sizes)) + b"".join(struct.pack("<q", s) for s in sizes)


def attr_bytes(name, attr):
    field = attr.WhichOneof("value")
    if field == "list":
        filled = [f for f in ("s", "i", "f", "b", "type", "shape") if len(getattr(attr.list, f))]
        field, items, is_list = (filled[0] if filled else "i"), list(getattr(attr.list, filled[0])) if filled else [], 1
    else:
        items, is_list = [getattr(attr, field)], 0
    if field not in ATTR_KINDS:
        return None
    kind = ATTR_KINDS[field]
    encoded = b"".join(
        {
            "s": lambda v: text(v),
            "i": lambda v: struct.pack("<q", v),
            "f": lambda v: struct.pack("<f", v),
            "b": lambda v: struct.pack("<I", v),
            "t": lambda v: struct.pack("<I", v),
            "p": lambda v: shape_bytes([d.size for d in v.dim]),
        }[kind](item)
        for item in items
    )
    return text(name) + text(kind) + struct.pack("<II", is_list, len(items)) + encoded


def tensor_bytes(value, dtype):
    value = np.asarray(value, object if dtype == tf.string else None)
    head = struct.pack("<I", dtype.as_datatype_enum) + shape_bytes(value.shape)
    if dtype == tf.string:
        return head + b"".join(text(v) for v in value.reshape(-1).tolist())
    return head + np.ascontiguousarray(value).tobytes()


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        self.at += size
        return self.data[self.at - size:self.at]

    def u32(self):
        return struct.unpack("<I", self.take(4))[0]

    def text(self):
        return self.take(self.u32())

    def tensor(self):
        dtype = tf.as_dtype(self.u32())
        shape = [struct.unpack("<q", self.take(8))[0] for _ in range(self.u32())]
        count = int(np.prod(shape, dtype=np.int64))
        if dtype == tf.string:
            return np.array([self.text() for _ in range(count)], dtype=object).reshape(shape)
        numpy_type = dtype.as_numpy_dtype
        return np.frombuffer(self.take(count * np.dtype(numpy_type).itemsize), numpy_type).reshape(shape)


def difference(ours, theirs, tolerance):
    """None if they agree, otherwise a description of the difference."""
    theirs = np.asarray(theirs, object if ours.dtype == object else None)
    if ours.shape != theirs.shape:
        return f"the shape is {ours.shape}, TensorFlow's {theirs.shape}"
    if ours.dtype.kind == "c":
        ours, theirs = (np.stack([v.real, v.imag], axis=-1) for v in (ours, theirs))
    if (
        ours.dtype == object
        or tolerance == 0
        or not np.issubdtype(np.asarray(theirs, dtype=theirs.dtype).dtype, np.inexact)
        and ours.dtype.kind in "biu"
    ):
        if ours.dtype.kind in "fV" or ours.dtype not in (object,) and ours.dtype.kind not in "biuO":
            ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
            same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        else:
            same = ours == theirs
        if np.all(same):
            return None
        first = tuple(np.argwhere(~np.atleast_1d(same))[0])
        return (
            f"{np.sum(~np.atleast_1d(same))} of {ours.size} differ, first at {first}: "
            f"{np.atleast_1d(ours)[first]!r}, TensorFlow {np.atleast_1d(theirs)[first]!r}"
        )
    a, b = np.atleast_1d(ours.astype(np.float64)), np.atleast_1d(theirs.astype(np.float64))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    scale = np.maximum(np.abs(b), np.sqrt(np.mean(np.square(b[finite]))) if finite.any() else 1)
    scale = np.maximum(scale, 1e-30)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.where(same, 0, np.where(finite, np.abs(a - b) / scale, np.inf))
    if error.size == 0 or error.max() <= tolerance:
        return None
    place = np.unravel_index(error.argmax(), error.shape)
    return f"relative error {error.max():.3g} at {place}: {a[place]!r}, TensorFlow {b[place]!r}"


def report(counts):
    """Adds {operator: [cases, passed]} to the table that `zigw build oracle -- ops` prints."""
    path = os.environ.get("MILLRACE_ORACLE_TABLE")
    if path:
        lines = "".join(f"{operator} {count} {passed}\n" for operator, (count, passed) in counts.items())
        with open(path, "a") as file:
            file.write(lines)


def main(*makers):
    """Builds the cases, runs both, prints each difference and exits."""
    program = os.path.join(os.environ.get("MILLRACE_ORACLE", "zig-out/oracle"), "ops_run")
    graph = tf.Graph()
    with graph.as_default():
        for make in makers:
            make()
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=2, inter_op_parallelism_threads=1)
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.rewrite_options.constant_folding = rewriter_config_pb2.RewriterConfig.OFF
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        # A case with several runs needs its earlier runs first: one session.run for each, without the cases of fewer
        # runs.
        expected = {}
        inputs = {}
        for run in range(1, 4):
            fetched = [op for op, _, runs in cases if runs >= run]
            got = session.run([list(op.outputs) for op in fetched])
            for op, outputs in zip(fetched, got):
                expected[op] = outputs
        wanted = list({t for op, _, _ in cases for t in op.inputs})
        by_name = dict(zip([t.name for t in wanted], session.run(wanted)))
    blob = [struct.pack("<I", len(cases))]
    for op, _, runs in cases:
        attrs = [attr_bytes(name, op.node_def.attr[name]) for name in op.node_def.attr]
        attrs = [a for a in attrs if a]
        blob += [text(op.type), struct.pack("<I", len(attrs)), *attrs, struct.pack("<I", len(op.inputs))]
        blob += [tensor_bytes(by_name[t.name], t.dtype) for t in op.inputs]
        blob += [
            struct.pack("<I", len(op.outputs)),
            *[struct.pack("<I", t.dtype.as_datatype_enum) for t in op.outputs],
            struct.pack("<I", runs),
        ]
    failures = 0
    counts = {op.type: [0, 0] for op, _, _ in cases}
    with tempfile.TemporaryDirectory() as directory:
        with open(f"{directory}/cases", "wb") as file:
            file.write(b"".join(blob))
        for level in ["avx512", "avx2", "plain"]:
            subprocess.run(
                [program, f"{directory}/cases", f"{directory}/results"],
                check=True,
                env={**os.environ, "MILLRACE_CPU": level},
            )
            reader = Reader(open(f"{directory}/results", "rb").read())
            for op, tolerance, runs in cases:
                status, message = reader.u32(), reader.text().decode()
                problems = [f"status {status}: {message}"] if status else []
                if not status:
                    for index, theirs in enumerate(expected[op]):
                        ours = reader.tensor()
                        said = None if is_unset(op, index) else difference(ours, theirs, tolerance)
                        if said:
                            problems.append(f"output {index}: {said}")
                counts[op.type][0] += 1
                counts[op.type][1] += not problems
                if problems:
                    failures += 1
                    inputs = ", ".join(f"{t.dtype.name}{t.shape}" for t in op.inputs)
                    if failures < 60:
                        print(f"{level} {op.type}({inputs}) runs {runs}: {'; '.join(problems)}")
    report(counts)
    print(f"{len(cases)} cases of {len(counts)} operators, on 3 levels of the processor")
    print(f"{3 * len(cases) - failures} passed, {failures} failed")
    sys.exit(1 if failures else 0)
