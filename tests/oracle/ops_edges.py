"""Edge cases of operators, derived from the samples of tests/ops: empty inputs, ranks, extreme numbers, dtypes.

Each sample of plain tensors becomes a graph with placeholders of unknown shape, for every dtype that TensorFlow has a
kernel for. Both libraries run it with mutated feeds in processes of their own, because some
of TensorFlow's kernels abort. Outputs must agree, and so must errors: the code, and TensorFlow's first words as part of
millrace's message.

    MILLRACE_LIBRARY=zig-out/lib/libmillrace.so.0 TF_ENABLE_ONEDNN_OPTS=0 ops_edges.py [operator …]

With operators every difference is printed, without only the first of its class for each operator. `zigw build oracle`
does not run it: not every difference is judged yet, and some are TensorFlow's faults (sizes of 64 bits cut to 32)."""
import glob
import multiprocessing.pool
import os
import pickle
import re
import resource
import signal
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "python"))
import numpy as np
import millrace
import tensorflow.compat.v1 as tf
from tensorflow.python.client import session as client
from tensorflow.python.framework import error_interpolation, kernels, op_def_registry

error_interpolation.interpolate_graph = client.error_interpolation.interpolate_graph = lambda message, graph: message

MEMORY_BYTES = 6 << 30  # address space of a process: sizes such as INT_MAX must fail, not fill the machine
KEPT = 1 << 14  # elements of an output that are compared
NAN, INF = float("nan"), float("inf")
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, 3e38]
FORM = r"\s*(\w+)\[([^\]]*)\](?:=(.*))?"
# What these write, wait for or draw differs from run to run.
SKIPPED = re.compile("File|Save|Restore|Checkpoint|Queue|Barrier|Reader|Summary|Print|Assert|Abort|Dataset|Iterator|"
                     "Stage|PyFunc|Temporary|Timestamp|Device|Barrier|Placeholder|Delete|Session|Mutex|Random|Sampler|"
                     "Multinomial|Dropout|Candidate|Barrier|Whole|Matching|Enter|Exit|NextIteration|Empty$")


def samples():
    pattern = re.compile(r'\{"(\w+)",\s*((?:"[^"]*"\s*)+),\s*((?:"[^"]*"\s*)+)\}')
    joined = lambda literals: "".join(re.findall('"([^"]*)"', literals))
    for path in sorted(glob.glob(os.path.join(ROOT, "tests", "ops", "*.c"))):
        for op, inputs, attrs in pattern.findall(open(path).read()):
            if not re.search(r"[&@!#^?~%$]|resource|variant", inputs) and not SKIPPED.search(op):
                yield op, joined(inputs), joined(attrs)


def tensor(text, seed):
    name, shape, given = re.fullmatch(FORM, text).groups()
    dtype = tf.as_dtype({"float": "float32", "double": "float64", "half": "float16"}.get(name, name))
    shape = [int(size) for size in shape.split(",") if size]
    count = int(np.prod(shape, dtype=np.int64))
    if dtype == tf.string:
        return np.full(shape, (given or "").encode(), object)
    numbers = [float(v) for v in given.split(",")] if given else [1 + (3 * i + seed) % 7 for i in range(count)]
    return np.resize(numbers, shape).astype(dtype.as_numpy_dtype) if count else np.zeros(shape, dtype.as_numpy_dtype)


def fill_attr(attr, value, text):
    numbers = [v for v in text.strip("[]").split(",") if v]
    is_list = attr.type.startswith("list(")
    kind = attr.type[5:-1] if is_list else attr.type
    if kind == "shape":
        return value.shape.CopyFrom(tf.TensorShape([int(v) for v in numbers]).as_proto())
    if kind == "type":
        types = {"float": "float32", "double": "float64", "half": "float16"}
        items = [tf.as_dtype(types.get(v, v)).as_datatype_enum for v in numbers]
    else:
        convert = {"int": int, "float": float, "bool": lambda v: v == "true", "string": str.encode}[kind]
        items = [convert(v) for v in (numbers if is_list or kind != "string" else [text])]
    field = {"int": "i", "float": "f", "bool": "b", "string": "s", "type": "type"}[kind]
    if is_list:
        getattr(value.list, field).extend(items)
    else:
        setattr(value, field, items[0])


def graph_of(op, arguments, attrs):
    """A graph of one node "n", and the feeds; None if the sample does not fit TensorFlow's definition."""
    definition = op_def_registry.get(op)
    if definition is None or len(definition.input_arg) != len(arguments):
        return None
    if any(attr.type in ("tensor", "func") for attr in definition.attr):
        return None
    graph = tf.GraphDef()
    graph.versions.producer = 1286
    node, feeds, types = tf.NodeDef(name="n", op=op), [], {}
    for argument, tensors in zip(definition.input_arg, arguments):
        if argument.number_attr:
            node.attr[argument.number_attr].i = len(tensors)
        if argument.type_attr:
            types[argument.type_attr] = tensors[0].dtype
        if argument.type_list_attr:
            node.attr[argument.type_list_attr].list.type.extend(tf.as_dtype(t.dtype).as_datatype_enum for t in tensors)
        for value in tensors:
            holder = graph.node.add(name=f"i{len(feeds)}", op="Placeholder")
            holder.attr["dtype"].type = tf.as_dtype(value.dtype).as_datatype_enum
            holder.attr["shape"].shape.unknown_rank = True
            node.input.append(holder.name)
            feeds.append(value)
    for name, dtype in types.items():
        node.attr[name].type = tf.as_dtype(dtype).as_datatype_enum
    given = dict(item.split("=", 1) for item in re.split(r";\s*", attrs.strip()) if item)
    for attr in definition.attr:
        if attr.name in given:
            fill_attr(attr, node.attr[attr.name], given[attr.name].strip())
        elif attr.HasField("default_value") and attr.name not in node.attr:
            node.attr[attr.name].CopyFrom(attr.default_value)
        elif attr.name not in node.attr:
            return None
    graph.node.append(node)
    try:
        with tf.Graph().as_default() as built:
            tf.import_graph_def(graph, name="")
            outputs = [t.name for t in built.get_operation_by_name("n").outputs]
            graph = built.as_graph_def(add_shapes=False)
    except (ValueError, TypeError, tf.errors.OpError):
        return None
    return (graph.SerializeToString(), feeds, outputs, definition.is_stateful) if outputs else None


def retyped(op, arguments):
    """The arguments with each dtype that the definition allows for their common type attributes, one at a time."""
    definition = op_def_registry.get(op)
    yield arguments
    if definition is None or len(definition.input_arg) != len(arguments):
        return
    registered = kernels.get_registered_kernels_for_op(op).kernel
    for attr in definition.attr:
        takers = [i for i, a in enumerate(definition.input_arg) if a.type_attr == attr.name]
        allowed = attr.allowed_values.list.type or [3, 1, 7, 10, 8]
        for number in allowed if takers else []:
            dtype = tf.as_dtype(number)
            present = arguments[takers[0]][0].dtype
            has_kernel = any(k.device_type == "CPU" and all(number in c.allowed_values.list.type for c in k.constraint
                                                            if c.name == attr.name) for k in registered)
            quantized = "q" in dtype.name or dtype in (tf.resource, tf.variant)
            is_same = tf.as_dtype(present) == dtype
            if quantized or not has_kernel or is_same or (present == object) != (dtype == tf.string):
                continue
            with np.errstate(all="ignore"):
                yield [[v.astype(dtype.as_numpy_dtype) for v in t] if i in takers else t
                       for i, t in enumerate(arguments)]


def extremes(value):
    """Other contents of the same shape."""
    kind = np.dtype(value.dtype).kind
    if value.size == 0 or kind in "bO":
        return
    if kind in "iu":
        info = np.iinfo(value.dtype)
        for items in ([info.min, -1, 0, info.max], [0], [-1], [info.max], [info.min], [1], [100]):
            fitting = np.array([i for i in items if info.min <= i] or [0], object)
            yield np.resize(fitting, value.shape).astype(value.dtype)
    else:
        with np.errstate(all="ignore"):
            for items in (SPECIAL, SPECIAL[::-1], [NAN], [0.0], [-0.0, 0.0], [-1.0]):
                yield np.resize(np.array(items), value.shape).astype(value.dtype)


def mutations(feeds):
    yield "valid", feeds
    replaced = lambda index, value: feeds[:index] + [value] + feeds[index + 1:]
    cut = lambda value, axis: value[tuple(slice(0) if i == axis else slice(None) for i in range(value.ndim))]
    for index, value in enumerate(feeds):
        for axis in range(value.ndim):
            yield "empty", replaced(index, cut(value, axis))
        if value.ndim:
            yield "rank", replaced(index, np.array(value.reshape(-1)[0] if value.size else 0, value.dtype))
        yield "rank", replaced(index, value[None])
        if value.ndim:
            yield "one", replaced(index, value[:1])
        for other in extremes(value):
            yield "extreme", replaced(index, other)
    sizes = {size for value in feeds for size in value.shape}
    for size in sorted(sizes):
        changed = feeds
        for axis in range(6):
            changed = [cut(v, axis) if axis < v.ndim and v.shape[axis] in (size, 0) else v for v in changed]
        yield "empty", changed


def make_cases(names):
    graphs, cases, seen = [], [], set()
    for op, inputs, attrs in samples():
        if names and op not in names:
            continue
        if not all(re.fullmatch(FORM, t) for a in inputs.split(";") for t in a.split("+") if a.strip()):
            continue
        arguments = [[tensor(t, i + j) for j, t in enumerate(a.split("+"))]
                     for i, a in enumerate(inputs.split(";")) if a.strip()]
        for typed in retyped(op, arguments):
            key = (op, attrs, tuple((v.dtype.name, v.shape) for t in typed for v in t))
            made = None if key in seen else graph_of(op, typed, attrs)
            seen.add(key)
            if made is None:
                continue
            for kind, feeds in mutations(made[1]):
                if typed is arguments or kind in ("valid", "extreme"):
                    cases.append((len(graphs), kind, feeds))
            graphs.append((op, attrs, *made))
    return graphs, cases


def is_handle(value):
    """Whether it is a variant, of which only millrace returns a handle."""
    is_array = getattr(value, "size", 0) > 0
    return isinstance(value.flat[0] if is_array else value, millrace.Handle)


def kept(value):
    """The shape and the elements; the first ones of what an extreme size made large."""
    return value.shape, value.reshape(-1)[:KEPT].copy()


def serve(engine, path, start):
    """Runs the cases from `start` and appends (index, code, message, outputs) to the file of results."""
    graphs, cases = pickle.load(open(path, "rb"))
    opened, session = None, None
    with open(f"{path}.{engine}", "ab") as file:
        for index in range(start, len(cases)):
            number, _, feeds = cases[index]
            _, _, graph, _, outputs, _ = graphs[number]
            signal.alarm(10)  # a case that takes longer ends the process
            try:
                if number != opened:
                    session, opened = None, number
                    if engine == "millrace":
                        session = millrace.Session(graph)
                    else:
                        definition = tf.GraphDef.FromString(graph)
                        with tf.Graph().as_default() as built:
                            tf.import_graph_def(definition, name="")
                        session = tf.Session(graph=built)
                got = session.run(outputs, {f"i{i}:0": v for i, v in enumerate(feeds)})
                result = (index, 0, "", [kept(np.asarray(v)) for v in got if not is_handle(v)])
            except Exception as error:  # both libraries' errors, and those of millrace.Session
                result = (index, getattr(error, "error_code", -1), getattr(error, "message", None) or str(error), [])
            pickle.dump(result, file)
            file.flush()


def read_results(file):
    """The results from the file's position on; a process that ended may have left a part of one at the end."""
    found = {}
    while True:
        position = file.tell()
        try:
            result = pickle.load(file)
        except (EOFError, pickle.UnpicklingError):
            file.seek(position)
            return found
        found[result[0]] = result


def serve_all(engine, path):
    """Serves in a child, and in another one behind each case that ends it. No session runs before a fork."""
    count = len(pickle.load(open(path, "rb"))[1])
    start = 0
    with open(f"{path}.{engine}", "wb+") as file:
        while start < count:
            child = os.fork()
            if child == 0:
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
                serve(engine, path, start)
                os._exit(0)
            os.waitpid(child, 0)
            start = max(read_results(file), default=start - 1) + 1
            if start < count:
                file.truncate()
                pickle.dump((start, None, "the process ended", []), file)
                file.flush()
                start += 1


def results_of(engine, path):
    """The results by index; a case that ended the process has no code."""
    subprocess.run([sys.executable, __file__, "--serve", engine, path], check=True, stderr=subprocess.DEVNULL)
    with open(f"{path}.{engine}", "rb") as file:
        return read_results(file)


def phrase(message):
    message = re.split(r"\n?\s*\[\[\{\{node", message)[0]
    return re.sub(r"^\(\d+\) \w+: ", "", message).strip()


def differs(ours, theirs, is_stateful):
    if theirs[1] is None:
        return None if ours[1] is not None else ("crash", "both end the process")
    if ours[1] is None:
        return "crash", "the process ended"
    if (ours[1] == 0) != (theirs[1] == 0):
        return ("accepted" if ours[1] == 0 else "refused"), f"{ours[1:3]}, TensorFlow {theirs[1:3]}"
    if ours[1] != theirs[1]:
        return "code", f"{ours[1:3]}, TensorFlow {theirs[1:3]}"
    if ours[1] and phrase(theirs[2])[:30] not in ours[2]:
        return "words", f"{ours[2]!r}, TensorFlow {phrase(theirs[2])!r}"
    for (shape, a), (their_shape, b) in zip(ours[3], theirs[3]):
        if shape != their_shape:
            return "shape", f"{shape}, TensorFlow {their_shape}"
        if is_stateful:
            continue
        if a.dtype == object or a.dtype.kind in "biuSU":
            same = np.array_equal(a, b)
        else:
            wide = np.complex128 if a.dtype.kind == "c" else np.float64
            bound = {"float64": 1e-6, "complex128": 1e-6}.get(a.dtype.name, 2e-2 if a.dtype.itemsize == 2 else 1e-3)
            with np.errstate(all="ignore"):
                same = np.allclose(a.astype(wide), b.astype(wide), bound, bound, equal_nan=True)
        if not same:
            return "values", f"{a[:6]}, TensorFlow {b[:6]}"
    return None


def main():
    tf.disable_v2_behavior()
    graphs, cases = make_cases(sys.argv[1:])
    counts, shown = {}, set()
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "cases")
        pickle.dump((graphs, cases), open(path, "wb"))
        with multiprocessing.pool.ThreadPool(2) as pool:
            theirs, ours = pool.map(lambda engine: results_of(engine, path), ["tensorflow", "millrace"])
    for index, (number, kind, feeds) in enumerate(cases):
        op, attrs, _, _, _, is_stateful = graphs[number]
        found = differs(ours[index], theirs[index], is_stateful)
        if found is None:
            continue
        counts[found[0]] = counts.get(found[0], 0) + 1
        if (op, found[0], kind) in shown and not sys.argv[1:]:
            continue
        shown.add((op, found[0], kind))
        inputs = "; ".join(f"{v.dtype.name}{list(v.shape)}={v.reshape(-1)[:4].tolist()}" for v in feeds)
        print(f"{found[0]} ({kind}) {op}({inputs}) {attrs}: {found[1]}"[:700].replace("\n", " "))
    operators = {graph[0] for graph in graphs}
    print(f"{len(cases)} cases of {len(operators)} operators; differences by class: {counts}")
    failed = sum(counts.values())
    print(f"{len(cases) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        tf.disable_v2_behavior()
        serve_all(sys.argv[2], sys.argv[3])
        os._exit(0)  # the destructors of TensorFlow's library sometimes crash in a process that has forked
    else:
        sys.exit(main())
