"""Graphs compared with TensorFlow's: operator definitions, builders, names, GraphDef and MetaGraphDef in both
directions, shapes."""
import difflib
import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2, op_def_pb2, variable_pb2
from tensorflow.core.protobuf import control_flow_pb2, meta_graph_pb2, queue_runner_pb2
from tensorflow.python.framework import meta_graph, op_def_registry

tf1 = tf.compat.v1
PROGRAM = os.path.join(os.environ.get("MILLRACE_ORACLE", "zig-out/oracle"), "graph_files")
raw = tf.raw_ops


def ours(*arguments):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}: {done.stderr}"
    return done.stdout


def read(kind, path):
    message = kind()
    with open(path, "rb") as file:
        message.ParseFromString(file.read())
    return message


def write(message, path):
    with open(path, "wb") as file:
        file.write(message.SerializeToString())


# ---- Comparing messages ----

# An attr in which Python records how it created a node.
IGNORED_ATTRS = ("_has_manual_control_dependencies",)


def normal_value(value):
    """An AttrValue as plain Python; tensors as lists of elements."""
    kind = value.WhichOneof("value")
    if kind == "tensor":
        array = tf.make_ndarray(value.tensor)
        return ("tensor", value.tensor.dtype, array.shape, array.tobytes() if array.dtype != object else array.tolist())
    if kind == "list" and not value.list.ListFields():
        return ("list", "")
    return (kind, str(value))


def normal_node(node):
    data = [name[:-2] if name.endswith(":0") else name for name in node.input if name[0] != "^"]
    controls = sorted(name for name in node.input if name[0] == "^")
    attrs = {key: normal_value(node.attr[key]) for key in node.attr if key not in IGNORED_ATTRS}
    return (node.op, data, controls, node.device, attrs)


def same_graph(a, b):
    left = {node.name: normal_node(node) for node in a.node}
    right = {node.name: normal_node(node) for node in b.node}
    assert left.keys() == right.keys(), left.keys() ^ right.keys()
    for name in left:
        assert left[name] == right[name], f"{name}:\n{left[name]}\n{right[name]}"
    assert a.library == b.library


# ---- Operators ----


def plain(op):
    """An OpDef without descriptions; allowed types are a set, because their order has no meaning."""
    result = op_def_pb2.OpDef()
    result.CopyFrom(op)
    for field in ("summary", "description", "deprecation", "is_distributed_communication"):
        result.ClearField(field)
    for argument in list(result.input_arg) + list(result.output_arg):
        argument.description = ""
        argument.ClearField("handle_data")
        argument.ClearField("experimental_full_type")
    for attr in result.attr:
        attr.description = ""
        types = sorted(set(attr.allowed_values.list.type))
        if types:
            del attr.allowed_values.list.type[:]
            attr.allowed_values.list.type.extend(types)
        if attr.HasField("default_value"):
            text = repr(normal_value(attr.default_value))
            attr.default_value.Clear()
            attr.default_value.s = text.encode()
    return result


# Operators of TensorFlow 1 and its contrib that TensorFlow 2 does not have.
REMOVED = {"ImageProjectiveTransform", "MapAndBatchDatasetV2", "Resampler", "ResamplerGrad"}


def check_operators(directory):
    path = os.path.join(directory, "ops")
    ours("ops", path)
    operators = read(op_def_pb2.OpList, path).op
    wrong = []
    for op in operators:
        theirs = op_def_registry.get(op.name)
        if op.name in REMOVED and theirs is None:
            continue
        if theirs is None or plain(theirs) != plain(op):
            lines = difflib.unified_diff(
                str(theirs and plain(theirs)).split("\n"), str(plain(op)).split("\n"), lineterm=""
            )
            wrong.append(op.name + "\n" + "\n".join(lines))
    assert len(operators) > 200 and not wrong, "\n".join(wrong)


def check_used(meta):
    """The list of used operators has those that TensorFlow lists, and their definitions. Functions that only attributes
    name are looked into too."""
    listed = {op.name: op for op in meta.meta_info_def.stripped_op_list.op}
    assert list(listed) == sorted(listed)
    wanted = meta_graph.stripped_op_list_for_graph(meta.graph_def).op
    assert {op.name for op in wanted} <= set(listed), {op.name for op in wanted} - set(listed)
    nodes = list(meta.graph_def.node) + [n for f in meta.graph_def.library.function for n in f.node_def]
    assert set(listed) <= {node.op for node in nodes}
    for op in wanted:
        assert plain(op) == plain(listed[op.name]), op.name


# ---- Builders ----


def build_graph():
    """The same graph as build_graph of graph_files.c."""
    graph = tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [None, 4, 4, 1], name="x")
        with tf1.name_scope("layer"):
            start = tf1.constant((np.arange(18) / 16).astype(np.float32).reshape(3, 3, 1, 2), name="start")
            w = tf1.Variable(start, name="w", use_resource=False)
            b = tf1.Variable(tf1.constant([0.0, 0.0], name="zeros"), name="b", use_resource=False)
            h = raw.Conv2D(input=x, filter=w, strides=[1, 1, 1, 1], padding="SAME")
            h = raw.Relu(features=raw.BiasAdd(value=h, bias=b))
            h = raw.MaxPool(input=h, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
        flat = raw.Reshape(tensor=h, shape=tf1.constant([-1, 8]), name="flat")
        both = raw.ConcatV2(values=[flat, flat], axis=tf1.constant(1))
        total = raw.Sum(input=both, axis=tf1.constant([1]), keep_dims=True, name="sum")
        halves = raw.Split(axis=tf1.constant(1), value=both, num_split=2)
        out = raw.Mul(x=raw.AddN(inputs=halves), y=total, name="out")
        step = raw.AssignAdd(ref=b._ref(), value=tf1.constant([1.0, 2.0]), name="step")
        with tf1.control_dependencies([step]):
            raw.Identity(input=out, name="after")
        tf1.add_to_collection("losses", out)
        tf1.global_variables_initializer()
    return graph


def run_built(session):
    session.run("init")
    feed = {"x:0": np.linspace(-1, 1, 32, dtype=np.float32).reshape(2, 4, 4, 1)}
    # One fetch per run: a fetch that reads b in the run that updates it may see either value.
    return [session.run(name, feed) for name in ["out:0", "step:0", "out:0"]]


def check_builders(directory):
    path, meta_path = os.path.join(directory, "built"), os.path.join(directory, "built.meta")
    ours("build", path, meta_path)
    theirs = build_graph()
    built = read(graph_pb2.GraphDef, path)
    same_graph(built, theirs.as_graph_def())
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.import_graph_def(built, name="")
        results = run_built(session)
    with tf1.Session(graph=theirs) as session:
        for a, b in zip(results, run_built(session)):
            np.testing.assert_array_equal(a, b)
    with tf.Graph().as_default():
        meta = read(meta_graph_pb2.MetaGraphDef, meta_path)
        check_used(meta)
        tf1.train.import_meta_graph(meta)
        assert [v.name for v in tf1.trainable_variables()] == ["layer/w:0", "layer/b:0"]
        assert [v.initial_value.name for v in tf1.global_variables()] == ["layer/start:0", "layer/zeros:0"]
        assert [item.name for item in tf1.get_collection("losses")] == ["out:0"]


# ---- TensorFlow's files imported and exported by millrace ----


def training_graph():
    """The graph of an ordinary TensorFlow 1 program: layers, gradients, optimizer, summaries, Saver, a loop."""
    graph = tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [None, 28, 28, 3])
        labels = tf1.placeholder(tf.int64, [None])
        with tf1.variable_scope("net"):
            kernel = tf1.get_variable("kernel", [3, 3, 3, 8], use_resource=False)
            scale = tf1.get_variable("scale", [8], initializer=tf1.ones_initializer(), use_resource=False)
            offset = tf1.get_variable("offset", [8], initializer=tf1.zeros_initializer(), use_resource=False)
            h = tf.nn.conv2d(x, kernel, [1, 2, 2, 1], "SAME")
            h, _, _ = tf1.nn.fused_batch_norm(h, scale, offset)
            h = tf.nn.max_pool2d(tf.nn.relu(h), 2, 2, "SAME")
            h = tf1.nn.dropout(h, rate=0.5, seed=3)
            size = h.shape[1] * h.shape[2] * 8
            w = tf1.get_variable("w", [size, 10], use_resource=False)
            hits = tf1.get_variable("hits", [], use_resource=True, trainable=False, initializer=tf1.zeros_initializer())
            logits = tf.matmul(tf.reshape(h, [tf.shape(h)[0], size]), w)
        loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits) + 1e-4 * tf.nn.l2_loss(w)
        step = tf1.train.get_or_create_global_step()
        rate = tf1.train.exponential_decay(0.1, step, 100, 0.9)
        tf1.train.AdamOptimizer(rate).minimize(loss, step)
        tf1.train.MomentumOptimizer(rate, 0.9).minimize(loss)
        hits.assign_add(1.0)
        tf1.summary.scalar("loss", loss)
        tf1.summary.histogram("w", w)
        tf1.summary.merge_all()
        with tf1.device("/gpu:0"):
            tf1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2), [tf.constant(0), loss], name="loop")
        tf1.cond(loss > 1, lambda: loss + 1, lambda: loss - 1)
        tf1.train.Saver()
        tf1.global_variables_initializer()
    return graph


def check_round_trip(directory):
    source, target = os.path.join(directory, "in"), os.path.join(directory, "out")
    tf1.disable_control_flow_v2()
    graph = training_graph()
    definition = graph.as_graph_def()
    write(definition, source)
    ours("copy", source, target)
    copied = read(graph_pb2.GraphDef, target)
    same_graph(copied, definition)
    assert [node.name for node in copied.node] == [node.name for node in definition.node]
    with tf.Graph().as_default():
        tf1.import_graph_def(copied, name="")
    meta = tf1.train.export_meta_graph(graph=graph)
    write(meta, source)
    ours("meta", source, target)
    again = read(meta_graph_pb2.MetaGraphDef, target)
    same_graph(again.graph_def, meta.graph_def)
    check_used(again)
    assert sorted(again.collection_def) == sorted(meta.collection_def)
    for key in meta.collection_def:
        mine, theirs = again.collection_def[key], meta.collection_def[key]
        if key.endswith("variables"):
            mine, theirs = (
                [variable_pb2.VariableDef.FromString(v) for v in c.bytes_list.value] for c in (mine, theirs)
            )
            for a, b in zip(mine, theirs, strict=True):
                assert a == b, f"{key}:\n{a}\n{b}"
        assert mine == theirs, key
    assert again.saver_def == meta.saver_def
    for mine, theirs in zip(again.graph_def.node, meta.graph_def.node, strict=True):  # with the shapes of outputs
        assert ("_output_shapes" in mine.attr) == ("_output_shapes" in theirs.attr), mine.name
        shapes = [[shape_text(tf.TensorShape(shape)) for shape in node.attr["_output_shapes"].list.shape]
                  for node in (mine, theirs) if "_output_shapes" in node.attr]
        if shapes:
            assert all(is_narrower(a, b) for a, b in zip(*shapes, strict=True)), (mine.name, shapes)


def plain_context(context):
    """A conditional's or loop's context; the order of its values has no meaning."""
    result = type(context)()
    result.CopyFrom(context)
    values = sorted(result.values_def.values)
    del result.values_def.values[:]
    result.values_def.values.extend(values)
    return result


def same_collections(again, wanted):
    assert sorted(again.collection_def) == sorted(wanted.collection_def)
    types = {"cond_context": control_flow_pb2.CondContextDef, "while_context": control_flow_pb2.WhileContextDef,
             "queue_runners": queue_runner_pb2.QueueRunnerDef}
    for key in wanted.collection_def:
        mine, theirs = again.collection_def[key], wanted.collection_def[key]
        is_variable = key.endswith("variables") or key == "global_step"
        kind = variable_pb2.VariableDef if is_variable else types.get(key)
        if kind is None:
            assert mine == theirs, f"{key}:\n{mine}\n{theirs}"
            continue
        mine, theirs = ([kind.FromString(v) for v in c.bytes_list.value] for c in (mine, theirs))
        if key.endswith("context"):
            mine, theirs = (sorted(map(str, map(plain_context, contexts))) for contexts in (mine, theirs))
        assert mine == theirs, f"{key}:\n{mine}\n{theirs}"


def check_scope(directory):
    """import_meta_graph under a scope and without devices: names in nodes, variables, contexts and queue runners."""
    source, target = os.path.join(directory, "in"), os.path.join(directory, "out")
    tf1.disable_control_flow_v2()
    graph = training_graph()
    with graph.as_default():
        queue = tf1.FIFOQueue(3, [tf.float32], name="queue")
        tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [queue.enqueue([1.0])]))
        tf1.get_variable("parts", [5, 2], partitioner=tf1.fixed_size_partitioner(2), use_resource=False)
    meta = tf1.train.export_meta_graph(graph=graph)
    write(meta, source)
    ours("scoped", source, target)
    again = read(meta_graph_pb2.MetaGraphDef, target)
    with tf.Graph().as_default() as graph:
        meta_graph.import_scoped_meta_graph(meta, clear_devices=True, import_scope="in")
        wanted = tf1.train.export_meta_graph(graph=graph)
    same_graph(again.graph_def, wanted.graph_def)
    assert all(node.name.startswith("in/") and not node.device for node in again.graph_def.node)
    same_collections(again, wanted)


def check_part(directory):
    """export_meta_graph of one scope, with a conditional and a loop in it, and without savers that are not used."""
    source, target = os.path.join(directory, "in"), os.path.join(directory, "out")
    tf1.disable_control_flow_v2()
    with tf.Graph().as_default() as graph:
        x, y = tf1.placeholder(tf.float32, [None, 3], "x"), tf1.placeholder(tf.float32, [], "y")
        with tf1.variable_scope("layer"):
            w = tf1.get_variable("w", [3, 2], use_resource=False)
            r = tf1.get_variable("r", [2], use_resource=True)
            tf1.get_variable("parts", [5, 2], partitioner=tf1.fixed_size_partitioner(2), use_resource=False)
            product = tf.add(tf.matmul(x, w), r, name="sum")
            with tf1.control_dependencies([y]):
                tf.identity(product, name="after")
            size = tf1.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)], name="count")
            tf1.cond(size > 2, lambda: tf.identity(product), lambda: product + y, name="choice")
            queue = tf1.FIFOQueue(3, [tf.float32], name="queue")
            tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [queue.enqueue([1.0])]))
        tf1.get_variable("other", [1], use_resource=False)
        tf1.add_to_collection("mine", product)
        tf1.add_to_collection("mine", x)
        tf1.train.Saver(name="unused")
        with tf1.name_scope("layer/"):
            tf1.train.Saver([w], name="layer/unused_too")
    write(tf1.train.export_meta_graph(graph=graph), source)
    ours("part", source, target)
    again = read(meta_graph_pb2.MetaGraphDef, target)
    wanted = tf1.train.export_meta_graph(graph=graph, export_scope="layer/", clear_extraneous_savers=True)
    same_graph(again.graph_def, wanted.graph_def)
    assert sorted(again.collection_def["unbound_inputs"].bytes_list.value) == sorted(
        wanted.collection_def["unbound_inputs"].bytes_list.value)
    del again.collection_def["unbound_inputs"], wanted.collection_def["unbound_inputs"]
    for meta in (again, wanted):  # empty collections have no meaning
        for key in [key for key in meta.collection_def if not meta.collection_def[key].WhichOneof("kind")
                    or not getattr(meta.collection_def[key], meta.collection_def[key].WhichOneof("kind")).value]:
            del meta.collection_def[key]
    same_collections(again, wanted)


def check_functions(directory):
    """Import and export preserve the functions of the library."""
    source, target = os.path.join(directory, "in"), os.path.join(directory, "out")

    @tf.function
    def double(x):
        return x * 2

    with tf.Graph().as_default() as graph:
        dataset = tf.data.Dataset.from_tensor_slices([1.0, 2.0]).map(lambda x: x + 1)
        value = tf1.data.make_one_shot_iterator(dataset).get_next()
        double(value)
    definition = graph.as_graph_def()
    assert definition.library.function
    write(definition, source)
    ours("copy", source, target)
    same_graph(read(graph_pb2.GraphDef, target), definition)


# ---- Shapes ----


def shape_text(shape):
    if shape.rank is None:
        return "<unknown>"
    return "[" + ",".join("?" if size is None else str(size) for size in shape.as_list()) + "]"


def is_narrower(mine, theirs):
    """Whether millrace's shape equals TensorFlow's or is more specific: millrace infers more values of shape
    arithmetic."""
    if theirs == "<unknown>":
        return True
    mine, theirs = mine[1:-1].split(","), theirs[1:-1].split(",")
    return len(mine) == len(theirs) and all(b in ("?", a) for a, b in zip(mine, theirs))


def compare_shapes(directory, graph):
    path = os.path.join(directory, "shapes")
    write(graph.as_graph_def(), path)
    found = dict(line.split(" ", 1) for line in ours("shapes", path).splitlines())
    # Python refines some shapes after inference; an import shows the shapes that the C++ functions infer alone.
    wrong = []
    with tf.Graph().as_default() as fresh:
        tf1.import_graph_def(graph.as_graph_def(), name="")
    for operation in fresh.get_operations():
        for output in operation.outputs:
            theirs, mine = shape_text(output.shape), found[output.name]
            if not is_narrower(mine, theirs):
                inputs = [shape_text(tensor.shape) for tensor in operation.inputs]
                wrong.append(f"{output.name} ({operation.type}) of {inputs}: ours {mine}, TensorFlow's {theirs}")
    assert not wrong, "\n".join(wrong[:20])


def array_shapes():
    p = lambda *shape: tf1.placeholder(tf.float32, shape if shape != ("?",) else None)
    vector = lambda n=None: tf1.placeholder(tf.int32, [n])
    anything = tf1.placeholder(tf.float32)
    number = tf1.placeholder(tf.int32, [])
    x = p(None, 6, 4)
    for target in ([-1], [2, -1, 4], [-1, 24], [3, 8, -1]):
        raw.Reshape(tensor=x, shape=target)
        raw.Reshape(tensor=p(2, 3, 4), shape=target)
        raw.Reshape(tensor=anything, shape=target)
    raw.Reshape(tensor=x, shape=vector(3)), raw.Reshape(tensor=x, shape=vector())
    shape = tf.shape(x)
    raw.Reshape(tensor=x, shape=tf.stack([shape[0], 24])), tf.fill(shape[1:], 0.0), tf.zeros(tf.stack([number, 5]))
    tf.fill(tf.concat([shape[:1], [7]], 0), 1.0), tf.fill(shape * [1, 2, 3], 1.0)
    tf.fill([tf.reduce_prod(shape[1:]), tf.size(p(2, 3)), tf.rank(x)], 1.0)
    raw.ShapeN(input=[x, anything, p()]), tf.zeros_like(x), tf.ones_like(anything)
    for axis in (0, 1, -1, 3, -4):
        raw.ExpandDims(input=x, axis=axis)
    raw.ExpandDims(input=x, axis=number), raw.ExpandDims(input=anything, axis=0)
    for dims in ([], [0], [1], [-1]):
        if dims != [1]:
            raw.Squeeze(input=p(1, 3, 1), axis=dims)
        raw.Squeeze(input=p(None, 1, None), axis=dims), raw.Squeeze(input=anything, axis=dims)
    for axis in (0, 1, -1, number):
        raw.ConcatV2(values=[x, p(2, 6, None)] if axis == 0 else [x, x], axis=axis)
        raw.ConcatV2(values=[p(2, None), p(2, None)], axis=axis)
    raw.ConcatV2(values=[p(2, 3), anything], axis=0), raw.ConcatV2(values=[anything, anything], axis=0)
    for axis in (0, -1, 2):
        raw.Pack(values=[x, p(2, None, 4)], axis=axis)
    raw.Pack(values=[anything, x]), raw.Unpack(value=x, num=6, axis=1), raw.Unpack(value=x, num=3, axis=0)
    raw.Unpack(value=anything, num=2)
    raw.Split(axis=1, value=x, num_split=3), raw.Split(axis=0, value=x, num_split=3)
    raw.Split(axis=number, value=x, num_split=2), raw.Split(axis=0, value=anything, num_split=2)
    raw.SplitV(value=x, size_splits=[2, 4], axis=1, num_split=2), raw.SplitV(
        value=x, size_splits=[-1, 1], axis=2, num_split=2
    )
    raw.SplitV(value=x, size_splits=[1, 2], axis=0, num_split=2), raw.SplitV(
        value=x, size_splits=vector(2), axis=1, num_split=2
    )
    for begin, size in (
        ([0, 1, 2], [-1, 2, -1]),
        ([1, 0, 0], [2, -1, 4]),
        (vector(3), [2, 2, 2]),
        ([0, 0, 0], vector(3)),
    ):
        raw.Slice(input=x, begin=begin, size=size), raw.Slice(input=p(5, 6, 4), begin=begin, size=size)
    raw.Slice(input=anything, begin=[0, 0], size=[1, 2]), raw.Slice(input=x, begin=vector(), size=vector())
    y = p(8, 6, 5, 4)
    y[1:3], y[:, 2], y[..., 0], y[::-1], y[1::2, ::3, -1], y[..., tf.newaxis, 1:], y[tf.newaxis, 3, ..., :-2], y[
        5:2
    ], y[-3:-1]
    x[0], x[1:], x[:2], x[-1:], x[:, 1:-1:2], x[..., tf.newaxis], x[number:], x[number], y[number:3, 1], y[0:number], x[
        ::2
    ], x[:-1]
    anything[0], anything[1:2]
    raw.StridedSliceGrad(shape=[2, 3], begin=[0], end=[1], strides=[1], dy=anything)
    indices = tf1.placeholder(tf.int32, [None, 3])
    for axis in (0, 1, -1):
        raw.GatherV2(params=x, indices=indices, axis=axis)
    raw.GatherV2(params=p(5, 6, 4), indices=tf1.placeholder(tf.int32, [5, 2]), axis=1, batch_dims=1)
    raw.GatherV2(params=x, indices=indices, axis=number), raw.GatherV2(params=anything, indices=indices, axis=0)
    raw.Gather(params=x, indices=number), raw.GatherNd(params=x, indices=indices)
    raw.GatherNd(params=x, indices=tf1.placeholder(tf.int32, [7, 2])), raw.GatherNd(params=anything, indices=indices)
    raw.ScatterNd(indices=tf1.placeholder(tf.int32, [7, 1]), updates=p(7, 3), shape=[9, 3])
    raw.SegmentSum(data=x, segment_ids=vector()), raw.UnsortedSegmentSum(
        data=p(5, 6, 4), segment_ids=tf1.placeholder(tf.int32, [5, 6]), num_segments=3
    )
    raw.UnsortedSegmentSum(data=x, segment_ids=vector(), num_segments=number)
    for axis in (-1, 0, 1):
        raw.OneHot(indices=indices, depth=10, on_value=1.0, off_value=0.0, axis=axis)
    raw.OneHot(indices=indices, depth=number, on_value=1.0, off_value=0.0), raw.Where(condition=x > 0), raw.Where(
        condition=anything > 0
    )
    raw.Tile(input=x, multiples=[2, 3, 1]), raw.Tile(input=x, multiples=vector(3)), raw.Tile(
        input=anything, multiples=[2, 2]
    )
    raw.Transpose(x=x, perm=[2, 0, 1]), raw.Transpose(x=x, perm=vector(3)), raw.Transpose(x=anything, perm=[1, 0])
    raw.Transpose(x=x, perm=tf1.invert_permutation([2, 0, 1])), raw.ReverseV2(tensor=x, axis=[1])
    raw.BroadcastTo(input=p(3, 1), shape=[2, 3, 4]), raw.BroadcastTo(
        input=p(3), shape=vector()
    ), raw.BroadcastGradientArgs(s0=[2, 3], s1=[3])
    for paddings in ([[1, 1], [0, 2], [3, 0]], tf1.placeholder(tf.int32, [3, 2]), tf1.placeholder(tf.int32)):
        raw.Pad(input=x, paddings=paddings), raw.PadV2(input=anything, paddings=paddings, constant_values=1.0)
        raw.MirrorPad(input=x, paddings=paddings, mode="REFLECT")
    raw.Range(start=1, limit=10, delta=3), raw.Range(start=0.0, limit=1.0, delta=0.3), raw.Range(
        start=number, limit=10, delta=1
    )
    raw.Range(start=10, limit=0, delta=-3), raw.PlaceholderWithDefault(input=p(2, 3), shape=[None, 3])


def math_shapes():
    p = lambda *shape: tf1.placeholder(tf.float32, shape)
    anything, axes = tf1.placeholder(tf.float32), tf1.placeholder(tf.int32, [None])
    a, b = p(None, 1, 4), p(3, 1)
    for x, y in ((a, b), (a, p()), (p(2, None), p(None, 3)), (anything, a), (p(None), p(1)), (p(None), p(5))):
        raw.AddV2(x=x, y=y), raw.Maximum(x=x, y=y), raw.Equal(x=x, y=y), raw.Less(x=x, y=y)
        raw.SelectV2(condition=raw.Less(x=x, y=y), t=x, e=y)
    for x, y in (
        (p(2), p(3)),
        (p(None), p(3)),
        (p(3, None), p(1)),
        (p(2, None), p(2, 1)),
        (anything, a),
        (p(3, 1), p(2)),
    ):
        raw.Equal(x=x, y=y, incompatible_shape_error=False), raw.NotEqual(x=y, y=x, incompatible_shape_error=False)
    raw.AddN(inputs=[p(None, 3), p(2, None)])
    raw.Select(condition=tf1.placeholder(tf.bool, [None]), x=p(5, 3), y=p(5, None)), raw.ClipByValue(
        t=a, clip_value_min=0.0, clip_value_max=1.0
    )
    raw.Select(condition=tf1.placeholder(tf.bool, []), x=p(5, None), y=p(None, 3))
    for keep in (False, True):
        for axis in (0, [0, 2], [-1], [], axes):
            raw.Sum(input=a, axis=axis, keep_dims=keep), raw.Mean(input=anything, axis=axis, keep_dims=keep)
    for axis in (0, -1, tf1.placeholder(tf.int32, [])):
        raw.ArgMax(input=a, dimension=axis)
    for x, y in ((p(2, None), p(None, 3)), (p(2, 3), p(3, 4)), (anything, p(3, 4))):
        raw.MatMul(a=x, b=y), raw.BatchMatMulV2(x=x, y=y)
    raw.MatMul(a=p(3, 2), b=p(4, 3), transpose_a=True, transpose_b=True)
    raw.BatchMatMulV2(x=p(7, 1, 2, 3), y=p(6, 3, 4)), raw.BatchMatMul(x=p(None, 2, 3), y=p(5, 4, 3), adj_y=True)
    raw.Cast(x=a, DstT=tf.int32), raw.Cumsum(x=a, axis=0), raw.L2Loss(t=a), raw.CheckNumerics(tensor=a, message="")
    raw.Multinomial(logits=p(None, 5), num_samples=3), raw.RandomUniform(shape=[2, 3], dtype=tf.float32)
    raw.RandomUniformInt(shape=tf.shape(a), minval=0, maxval=5), raw.TruncatedNormal(shape=axes, dtype=tf.float32)


def network_shapes():
    p = lambda *shape: tf1.placeholder(tf.float32, shape)
    anything = tf1.placeholder(tf.float32)
    sizes = tf1.placeholder(tf.int32, [4])
    for x in (p(None, 28, 27, 3), p(2, None, 9, 3), anything):
        for padding in ("SAME", "VALID"):
            for stride in (1, 2, 3):
                s = [1, stride, stride, 1]
                raw.Conv2D(input=x, filter=p(5, 4, 3, 8), strides=s, padding=padding)
                raw.DepthwiseConv2dNative(input=x, filter=p(3, 3, 3, 2), strides=s, padding=padding)
                raw.MaxPool(input=x, ksize=[1, 3, 2, 1], strides=s, padding=padding)
                raw.AvgPool(value=x, ksize=[1, 3, 2, 1], strides=s, padding=padding)
        raw.Conv2D(input=x, filter=p(3, 3, 3, 8), strides=[1, 1, 1, 1], padding="SAME", dilations=[1, 2, 2, 1])
        raw.Conv2D(input=x, filter=p(3, 3, 3, 8), strides=[1, 1, 1, 1], padding="VALID", dilations=[1, 2, 2, 1])
        raw.Conv2D(input=x, filter=p(None, 3, 3, None), strides=[1, 1, 1, 1], padding="VALID")
        raw.Conv2D(
            input=x,
            filter=p(3, 3, 3, 4),
            strides=[1, 2, 1, 1],
            padding="EXPLICIT",
            explicit_paddings=[0, 0, 1, 2, 3, 0, 0, 0],
        )
        raw.BiasAdd(value=x, bias=p(3)), raw.BiasAddGrad(out_backprop=x)
        c = p(3)
        raw.FusedBatchNormV3(x=x, scale=c, offset=c, mean=p(0), variance=p(0))
        raw.FusedBatchNorm(x=x, scale=c, offset=c, mean=c, variance=c, is_training=False)
        raw.FusedBatchNormGradV3(y_backprop=x, x=x, scale=c, reserve_space_1=c, reserve_space_2=c, reserve_space_3=c)
        raw.LRN(input=x), raw.ResizeBilinear(images=x, size=[5, 7]), raw.ResizeNearestNeighbor(
            images=x, size=tf1.placeholder(tf.int32, [2])
        )
        raw.ImageSummary(tag="t", tensor=x)
    raw.Conv2D(input=p(None, 3, 28, 27), filter=p(5, 4, 3, 8), strides=[1, 1, 2, 3], padding="SAME", data_format="NCHW")
    raw.BiasAdd(value=p(2, None, 4, 4), bias=p(3), data_format="NCHW"), raw.BiasAddGrad(
        out_backprop=p(2, 3, 4, 4), data_format="NCHW"
    )
    raw.Conv2DBackpropInput(
        input_sizes=[2, 8, 8, 3], filter=p(3, 3, 3, 4), out_backprop=p(2, 8, 8, 4), strides=[1, 1, 1, 1], padding="SAME"
    )
    raw.Conv2DBackpropInput(
        input_sizes=sizes, filter=p(3, 3, 3, 4), out_backprop=anything, strides=[1, 1, 1, 1], padding="SAME"
    )
    raw.Conv2DBackpropFilter(
        input=anything, filter_sizes=[3, 3, 3, 4], out_backprop=anything, strides=[1, 1, 1, 1], padding="SAME"
    )
    raw.AvgPoolGrad(
        orig_input_shape=[2, 8, 8, 3], grad=anything, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"
    )
    raw.MaxPoolGrad(
        orig_input=p(2, 8, None, 3),
        orig_output=anything,
        grad=anything,
        ksize=[1, 2, 2, 1],
        strides=[1, 2, 2, 1],
        padding="SAME",
    )
    raw.ReluGrad(gradients=p(None, 3), features=p(2, None)), raw.Softmax(logits=p(None, 5)), raw.LogSoftmax(
        logits=anything
    )
    labels = tf1.placeholder(tf.int64, [None])
    raw.SoftmaxCrossEntropyWithLogits(features=p(None, 10), labels=p(4, 10)), raw.SparseSoftmaxCrossEntropyWithLogits(
        features=p(None, 10), labels=labels
    )
    raw.SparseSoftmaxCrossEntropyWithLogits(features=anything, labels=tf1.placeholder(tf.int32, [3]))
    raw.InTopKV2(predictions=p(None, 10), targets=labels, k=1), raw.TopKV2(input=p(None, 10), k=3), raw.TopKV2(
        input=anything, k=3
    )
    raw.DecodeJpeg(contents="", channels=3), raw.DecodePng(contents=""), raw.StringJoin(
        inputs=["a", tf1.placeholder(tf.string, [None])]
    )
    ref = raw.VariableV2(shape=[3, 2], dtype=tf.float32)
    raw.Assign(ref=ref, value=p(None, 2)), raw.Assign(ref=ref, value=anything, validate_shape=False), raw.AssignAdd(
        ref=ref, value=anything
    )
    raw.ScatterAdd(ref=ref, indices=labels, updates=p(None, 2)), raw.ApplyGradientDescent(
        var=ref, alpha=0.1, delta=anything
    )
    handle = raw.VarHandleOp(shape=[4, 5], dtype=tf.float32)
    raw.ReadVariableOp(resource=handle, dtype=tf.float32), raw.VarIsInitializedOp(resource=handle)


def check_shapes(directory):
    for build in (array_shapes, math_shapes, network_shapes):
        with tf.Graph().as_default() as graph:
            build()
        compare_shapes(directory, graph)


def main():
    failed = 0
    tf1.disable_eager_execution()
    checks = [check_operators, check_builders, check_round_trip, check_scope, check_part, check_functions, check_shapes]
    with tempfile.TemporaryDirectory() as directory:
        for check in checks:
            try:
                check(directory)
            except Exception as problem:  # run the remaining checks after a failure
                failed += 1
                print(f"{check.__name__}: {type(problem).__name__}: {problem}")
    print(f"{len(checks) - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
