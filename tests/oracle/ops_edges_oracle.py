"""Edge cases of operators, derived from the samples of tests/ops: empty inputs, ranks, extreme numbers, dtypes.

Each sample of plain tensors becomes a graph with placeholders of unknown shape, for every dtype that TensorFlow has a
kernel for. Both libraries run it with mutated feeds in processes of their own, because some
of TensorFlow's kernels abort. Outputs must agree, and so must errors: the code, and TensorFlow's first words as part of
millrace's message. JUDGED lists the differences that are not millrace's faults.

    MILLRACE_LIBRARY=zig-out/lib/libmillrace.so.0 TF_ENABLE_ONEDNN_OPTS=0 ops_edges_oracle.py [operator …]

With operators every difference is printed, with its reason if it is judged; without only the first of its class for
each operator. A case that differs is run a second time: it fails if it differs again, and if TensorFlow returned the
same twice. A judgement that matches no difference is listed; it does not fail, because some of the judged outputs are
memory that TensorFlow does not write, and may agree by chance."""
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
from ops_compare import report

error_interpolation.interpolate_graph = client.error_interpolation.interpolate_graph = lambda message, graph: message

MEMORY_BYTES = 6 << 30  # address space of a process: sizes such as INT_MAX must fail, not fill the machine
KEPT = 1 << 14  # elements of an output that are compared
NAN, INF = float("nan"), float("inf")
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, 3e38]
FORM = r"\s*(\w+)\[([^\]]*)\](?:=(.*))?"
# What these write, wait for or draw differs from run to run.
SKIPPED = re.compile("File|Save|Restore|Checkpoint|Queue|Barrier|Reader|Summary|Print|Assert|Abort|Dataset|Iterator|"
                     "Stage|PyFunc|Temporary|Timestamp|Device|Barrier|Placeholder|Delete|Session|Mutex|Random|Sampler|"
                     "Multinomial|Dropout|Candidate|Barrier|Whole|Matching|Enter|Exit|NextIteration|Empty$|Retval")

UNSET = "TensorFlow returns memory that it has not written"
NOT_A_NUMBER = "the result depends on how TensorFlow vectorizes a loop over NaN or infinity"
OVERFLOW = "numbers that overflow in between; which results become NaN depends on the algorithm"
SIZES = "TensorFlow's sizes overflow"
OUTSIDE = "TensorFlow reads or writes outside of a tensor, or ignores the faulty part; millrace reports it"
MORE = "millrace has a kernel for what TensorFlow's CPU kernel refuses"
WORDS = "the same code, other words"
SECOND = "several faults at once, of which each library reports another one"
# (operators, classes, kinds, reason): differences that are no faults of millrace. Operators are a regular expression.
JUDGED = [
    ("FusedBatchNorm(V2|V3)?", "values", "empty valid one extreme", UNSET),
    ("Conv2DBackpropFilter|DepthwiseConv2dNativeBackpropFilter|I?RFFT[23D]*|MatrixSolveLs", "values", "empty", UNSET),
    ("SparseSegment(Sum|Mean|SqrtN)Grad|QuantizedConcat", "values", "empty", UNSET),
    ("(Parallel)?DynamicStitch", "values", "empty extreme", UNSET),
    ("FusedBatchNormGrad(V2|V3)?|(Depthwise)?Conv[23]D.*|DepthwiseConv2dNative.*|Einsum", "values", "extreme",
     NOT_A_NUMBER),
    ("MaxPool(V2|3D)?|NthElement|TopKV2|SparseReduceMax|Dilation2D", "values", "extreme", NOT_A_NUMBER),
    ("MaxPool", "values", "empty", NOT_A_NUMBER),
    ("Div|DivNoNan|Xdivy|RealDiv|Inv|Reciprocal|SqrtGrad|Sigmoid|Rsqrt|Sqrt", "values", "extreme", NOT_A_NUMBER),
    ("Expint|Spence|FakeQuantWithMinMaxVars(PerChannel)?(Gradient)?", "values", "extreme", NOT_A_NUMBER),
    ("EncodeWav|QuantizeV2|DrawBoundingBoxes(V2)?|CombinedNonMaxSuppression|ImageProjectiveTransformV[23]", "values",
     "extreme", "NaN converted to an integer is undefined"),
    ("KmeansPlusPlusInitialization", "values", "extreme", "distances between points of NaN"),
    ("I?RFFT[23D]*", "values", "extreme", NOT_A_NUMBER),
    ("Qr|Cholesky(Grad)?|MatrixSquareRoot|TridiagonalSolve|SelfAdjointEigV2|Svd|Eig", "values", "extreme", OVERFLOW),
    # TensorFlow's own result differs between processors with AVX2 and those with AVX-512.
    ("GRUBlockCell", "values", "extreme", OVERFLOW),
    ("Svd|SelfAdjointEigV2|Eig", "values", "valid rank one", "the signs of singular and eigenvectors are arbitrary"),
    ("MaxPoolGrad", "values", "valid extreme", "orig_output is not the output of MaxPool"),
    ("ExtractGlimpse(V2)?", "values", "valid empty extreme", "random noise"),
    ("BesselY1", "values", "valid rank extreme", "TensorFlow's float loop returns NaN for 0, the double one -infinity"),
    ("CTCBeamSearchDecoder", "values", "extreme", "the order of equal scores is arbitrary"),
    ("CTCLoss", "values", "extreme", OUTSIDE),
    ("MatrixBandPart", "values", "extreme", SIZES),
    ("SparseAdd", "shape", "valid extreme", "TensorFlow reads a threshold of float as another type"),
    ("SparseSlice", "shape refused", "extreme", SIZES),
    ("QuantizedReshape", "shape", "rank", "the limits of a quantized tensor are scalars"),
    ("StringNGrams", "shape", "empty", UNSET),
    ("Range", "shape", "extreme", "TensorFlow's absolute value of the smallest integer is negative"),
    ("RaggedRange", "values", "extreme", "TensorFlow's size of the range overflows"),
    ("MaxPool|Conv3D|(DepthToSpace|SpaceToDepth)|BatchMatMulV3|MaxPool3DGrad|Where|AnonymousMutableDenseHashTable",
     "accepted", "valid empty one extreme", MORE),
    ("DebugIdentity|DebugNanCount", "accepted", "valid empty rank one extreme",
     "TensorFlow requires the attribute tensor_name, which the sample lacks"),
    ("ArgMax", "accepted", "valid extreme", "TensorFlow reads a dimension of int16 as int32"),
    ("I?RFFT[23D]*", "accepted", "extreme", "TensorFlow's library of transforms fails for lengths of 0"),
    ("EmptyTensorList|TensorListReserve", "accepted", "extreme", "a list without elements has no memory"),
    ("TruncateDiv|TruncateMod", "code", "extreme", "TensorFlow calls its error unexpected"),
    ("SparseDenseCwiseAdd", "accepted", "empty", "a sum of scalars"),
    ("TensorListReserve", "accepted", "rank", "a variant that TensorFlow's session cannot return"),
    ("Conv2D(BackpropInput)?|Conv3DBackpropInputV2|DepthwiseConv2dNative(BackpropInput)?|Dilation2D.*",
     "refused code", "empty", "windows without elements"),
    ("Cholesky|MatrixInverse|MatrixSolve(Ls)?|MatrixTriangularSolve|TridiagonalSolve|Lu", "refused", "extreme",
     "TensorFlow returns NaN for some matrices that it cannot decompose"),
    ("MutableDenseHashTableV2", "refused", "valid empty rank one extreme", "millrace requires constant keys"),
    ("ClipByValue", "refused", "valid extreme", "complex numbers have no order"),
    ("AvgPool(3D)?Grad|Fractional(Max|Avg)PoolGrad|ScaleAndTranslateGrad|RaggedTensorToTensor|SerializeSparse|Einsum",
     "refused", "empty rank one extreme", OUTSIDE),
    ("(Dense|Sparse|Ragged)Bincount|RaggedGather|SparseReshape|SparseSegment(Sum|Mean|SqrtN)Grad(V2)?", "refused",
     "rank one extreme", OUTSIDE),
    ("StatelessTruncatedNormalV2|QuantizeAndDequantizeV3|AdjustHue", "refused", "one extreme", OUTSIDE),
    ("FusedBatchNorm(V2|V3)?|MaxPool(Grad|GradGrad)?V2|QuantizeAndDequantizeV2|RaggedTensorToSparse|Reverse|"
     "StringNGrams|SoftmaxCrossEntropyWithLogits|TensorStridedSliceUpdate|UnicodeEncode", "refused", "rank",
     "TensorFlow takes an input of another rank for one of as many elements"),
    ("ArgMax|ArgMin|BatchToSpace|Pad|PadV2|Range|RaggedRange|Roll|TopKV2", "refused", "extreme", SIZES),
    ("KmeansPlusPlusInitialization", "refused", "extreme", "more than 10,000 retries for each sample"),
    ("EncodeJpeg|EncodeJpegVariableQuality|EncodePng|Einsum", "code", "empty", "INTERNAL for images without pixels"),
    ("(Parallel)?DynamicStitch|EditDistance|RaggedRange|RaggedTensorToTensor|AvgPool3DGrad", "code", "extreme", SIZES),
    ("Segment(Sum|Mean|Prod|Min|Max)|BroadcastTo", "code", "extreme", SECOND),
    ("DenseBincount", "code", "rank", "TensorFlow returns no output for a scalar"),
    ("SparseBincount", "code words", "empty", "TensorFlow reads the first size of an empty shape"),
    ("GatherNd", "words", "extreme", "several indices are outside; the threads of TensorFlow report any"),
    ("ComplexAbs|NonDeterministicInts|_ArrayToList", "words", "valid extreme", "dtypes that do not fit each other"),
    ("EnsureShape", "words", "empty rank one", "TensorFlow names the argument of its function"),
    ("(Avg|Max)Pool(V2)?|MaxPoolGradWithArgmax|DepthToSpace|SpaceToDepth|ResizeNearestNeighborGrad|Dilation2D.*|Lu|"
     "CropAndResize|Squeeze|Conv2DBackpropInput|Conv3DBackprop(Input|Filter)V2|Einsum|Quantize.*|ConcatV2|Reshape|Tile|"
     "InTopKV2|K.*Initialization|NearestNeighbors|StridedSlice(Grad)?|TensorListFromTensor|TensorListScatter(V2)?|"
     "BroadcastTo|UnsortedSegmentJoin|MirrorPadGrad|SparseMatMul|ScatterNd(NonAliasingAdd)?|TensorScatter.*", "words",
     "rank", WORDS),
    ("CholeskyGrad|CombinedNonMaxSuppression|FusedBatchNorm(Grad)?(V2|V3)?|MatrixSetDiagV[23]|MatrixSolveLs|Ragged.*|"
     "SoftmaxCrossEntropyWithLogits|Sparse(Add|Concat|Reduce.*|Reshape|Segment.*Grad.*|SliceGrad)|StringNGrams|"
     "TridiagonalMatMul|UnicodeEncode", "words", "rank", SECOND),
    ("AddSparseToTensorsMap|AvgPool3DGrad|C(TCLoss|holeskyGrad|ombinedNonMaxSuppression)|Conv2DBackprop(Filter|Input)|"
     "Conv3D(BackpropInputV2)?|(DenseTo|SparseTo)SparseSetOperation|SetSize|Dilation2DBackprop.*|EditDistance|Einsum|"
     "MatrixSetDiagV[23]|MatrixSolve|MirrorPadGrad|QuantizeAndDequantizeV3|RaggedGather|ScatterNd(NonAliasingAdd)?|"
     "SerializeManySparse|Slice|SpaceToDepth|Sparse(Add|Concat|DenseCwise.*|MatMul|Reduce.*|Reshape|SliceGrad|"
     "Softmax|TensorDenseAdd|ToDense)|TensorScatter.*|UnicodeEncode", "words", "empty one", SECOND),
    ("AvgPool(3D)?Grad|Broadcast(Args|GradientArgs|To)|(Conjugate)?Transpose|DepthwiseConv2dNativeBackprop.*|"
     "ExtractGlimpse(V2)?|FractionalAvgPoolGrad|MirrorPad|QuantizedReshape|Reshape|Ragged.*|StridedSlice|Tile|TopKV2|"
     "TensorListFromTensor|TensorListSplit|SplitV|Sparse(Reshape|TensorDenseMatMul)|SpaceToBatch|Slice|GatherV2",
     "words", "extreme", WORDS),
    ("ScatterNd|Sparse(Cross.*|Segment.*)|StatelessTruncatedNormalV2|StringNGrams", "words", "extreme", SECOND),
]


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
            operation = built.get_operation_by_name("n")
            outputs = [t.name for t in operation.outputs if t.dtype not in (tf.variant, tf.resource)] + ["n"]
            graph = built.as_graph_def(add_shapes=False)
    except (ValueError, TypeError, tf.errors.OpError):
        return None
    return graph.SerializeToString(), feeds, outputs, definition.is_stateful


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


def extremes(value, is_first):
    """Other contents of the same shape; real numbers of other dtypes than the sample's get only mixed ones."""
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
            contents = [SPECIAL, SPECIAL[::-1], [NAN], [-INF], [INF], [0.0], [-0.0, 0.0], [-1.0]]
            for items in contents if is_first else contents[:2]:
                yield np.resize(np.array(items), value.shape).astype(value.dtype)


def mutations(feeds, is_first):
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
        for other in extremes(value, is_first):
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
            is_first = typed is arguments
            for kind, feeds in mutations(made[1], is_first):
                if is_first or kind in ("valid", "extreme"):
                    cases.append((len(graphs), kind, feeds))
            graphs.append((op, attrs, *made))
    return graphs, cases


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
            signal.alarm(10 if engine == "tensorflow" else 60)  # a case that takes longer ends the process
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
                # Copies: some of TensorFlow's kernels change their inputs.
                got = session.run(outputs, {f"i{i}:0": v.copy() for i, v in enumerate(feeds)})
                result = (index, 0, "", [kept(np.asarray(v)) for v in got if v is not None])
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


def run_cases(graphs, cases):
    """Both libraries' results of the cases: (TensorFlow's, millrace's), each by index."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "cases")
        pickle.dump((graphs, cases), open(path, "wb"))
        with multiprocessing.pool.ThreadPool(2) as pool:
            return pool.map(lambda engine: results_of(engine, path), ["tensorflow", "millrace"])


def differences(graphs, cases):
    """What differs, by index: (class, text). Unjudged ones differ twice, and TensorFlow not from itself."""
    theirs, ours = run_cases(graphs, cases)
    stateful = lambda index: graphs[cases[index][0]][5]
    found = {i: differs(ours[i], theirs[i], stateful(i)) for i in range(len(cases))}
    found = {i: difference for i, difference in found.items() if difference}
    doubtful = [i for i in found if judgement_of(graphs[cases[i][0]][0], found[i][0], cases[i][1]) is None]
    if doubtful:
        again, ours = run_cases(graphs, [cases[i] for i in doubtful])
        for k, i in enumerate(doubtful):
            if differs(again[k], theirs[i], stateful(i)) or not differs(ours[k], again[k], stateful(i)):
                print(f"not the same twice: {graphs[cases[i][0]][0]}: {found.pop(i)[1]}"[:300].replace("\n", " "))
    return found


def judgement_of(op, found, kind):
    """The index of the first entry of JUDGED for the difference, or None."""
    for index, (operators, classes, kinds, _) in enumerate(JUDGED):
        if re.fullmatch(operators, op) and found in classes.split() and kind in kinds.split():
            return index
    return None


def main():
    tf.disable_v2_behavior()
    graphs, cases = make_cases(sys.argv[1:])
    counts, shown, judged, table = {}, set(), {}, {}
    differing = differences(graphs, cases)
    for index, (number, kind, feeds) in enumerate(cases):
        op, attrs = graphs[number][:2]
        found = differing.get(index)
        judgement = judgement_of(op, found[0], kind) if found else None
        if judgement is not None:
            judged[judgement] = judged.get(judgement, 0) + 1
        else:
            count = table.setdefault(op, [0, 0])
            count[0] += 1
            count[1] += found is None
        if found is None or (judgement is not None and not sys.argv[1:]):
            continue
        if judgement is None:
            counts[found[0]] = counts.get(found[0], 0) + 1
        if (op, found[0], kind) in shown and not sys.argv[1:]:
            continue
        shown.add((op, found[0], kind))
        inputs = "; ".join(f"{v.dtype.name}{list(v.shape)}={v.reshape(-1)[:4].tolist()}" for v in feeds)
        reason = f" [judged: {JUDGED[judgement][3]}]" if judgement is not None else ""
        print(f"{found[0]} ({kind}) {op}({inputs}) {attrs}: {found[1]}"[:700].replace("\n", " ") + reason)
    unused = [JUDGED[i] for i in range(len(JUDGED)) if i not in judged and not sys.argv[1:]]
    for operators, classes, kinds, _ in unused:
        print(f"no difference is judged by {operators!r}, {classes!r}, {kinds!r}")
    operators = {graph[0] for graph in graphs}
    print(f"{len(cases)} cases of {len(operators)} operators; differences by class: {counts}")
    report(table)
    failed = sum(counts.values())
    passed = sum(count[1] for count in table.values())
    print(f"{sum(judged.values())} differences judged")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        tf.disable_v2_behavior()
        serve_all(sys.argv[2], sys.argv[3])
        os._exit(0)  # the destructors of TensorFlow's library sometimes crash in a process that has forked
    else:
        sys.exit(main())
