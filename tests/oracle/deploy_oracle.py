"""Models for deployment: initial values from TensorFlow's checkpoints, graphs frozen and transformed here and run by
TensorFlow, and SavedModels that TensorFlow's loader reads."""

import os
import subprocess
import sys
import tempfile
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.filterwarnings("ignore")
import numpy as np
import tensorflow.compat.v1 as tf
from google.protobuf import text_format
from tensorflow.core.protobuf import saved_model_pb2

tf.logging.set_verbosity(tf.logging.ERROR)
tf.disable_v2_behavior()


def ours(*arguments):
    program = os.path.join(os.environ["MILLRACE_ORACLE"], "deploy_graphs")
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError("%s: %s %s" % (arguments[0], done.stdout, done.stderr))
    return done.stdout.splitlines()


# ---- Initial values ----


def old_checkpoint(directory, parts):
    path = os.path.join(directory, "old-%d" % parts)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(3)
        with tf.variable_scope("old"):
            tf.get_variable("table", [7, 2], partitioner=tf.fixed_size_partitioner(parts) if parts > 1 else None)
            tf.get_variable("layer/w", [2, 3])
            tf.get_variable("layer/b", [3], initializer=tf.random_normal_initializer())
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, path)


def new_model(parts):
    with tf.variable_scope("new"):
        partitioner = tf.fixed_size_partitioner(parts) if parts > 1 else None
        zeros = tf.zeros_initializer()
        tf.get_variable("table", [7, 2], initializer=zeros, partitioner=partitioner, use_resource=False)
        with tf.variable_scope("layer"):
            tf.get_variable("w", [2, 3], initializer=tf.zeros_initializer(), use_resource=True)
            tf.get_variable("b", [3], initializer=tf.zeros_initializer(), trainable=False, use_resource=False)


def check_initial(lines, init):
    """Names of initializers and values of all variables, theirs after `init` has been applied."""
    for line, variable in zip(lines, tf.global_variables(), strict=True):
        name, initializer, initial, *values = line.split()
        assert name == variable.op.name, (name, variable.op.name)
        theirs = variable.initializer.name.split(":")[0]
        assert initializer == theirs, (initializer, theirs)
        assert initial == variable._initial_value.op.name, (initial, variable._initial_value.op.name)
    with tf.Session() as session:
        session.run(init)
        for line, value in zip(lines, session.run(tf.global_variables())):
            np.testing.assert_array_equal(np.array([float(x) for x in line.split()[3:]], np.float32), value.ravel())


def initial_values(directory):
    maps = [
        {"old/": "new/"},
        {"old/layer/": "new/layer/"},
        {"old/table": "new/table", "old/layer/b": "new/layer/b"},
        {"old/layer/w": "new/layer/w"},
    ]
    for saved in (1, 3):
        path = old_checkpoint(directory, saved)
        for parts in (1, 2, 7):
            for assignment in maps:
                lines = ours("init", path, parts, *[x for pair in assignment.items() for x in pair])
                with tf.Graph().as_default():
                    new_model(parts)
                    tf.train.init_from_checkpoint(path, assignment)
                    check_initial(lines, tf.global_variables_initializer())


def warm_starts(directory):
    path = old_checkpoint(directory, 2)
    names = {"new/table": "old/table", "new/layer/w": "old/layer/w"}
    cases = [(".*", names), ("new/layer", {"new/layer/w": "old/layer/w"}), (".*able", {"new/table": "old/table"})]
    for parts in (1, 3):
        for pattern, previous in cases:
            lines = ours("warm", path, parts, pattern, *[x for pair in previous.items() for x in pair])
            with tf.Graph().as_default():
                new_model(parts)
                tf.train.warm_start(path, pattern, var_name_to_prev_var_name=previous)
                check_initial(lines, tf.global_variables_initializer())


VOCABS = [
    # new words, number used, OOV buckets, number of old words used, axis, backup initializer, parts, shape
    ("gbxay", 5, 0, 0, 0, "zeros", 1),
    ("gbxay", 3, 2, 0, 0, "constant", 1),
    ("gbxay", 5, 3, 3, 0, "uniform", 1),
    ("xyz", 3, 0, 0, 0, "normal", 1),
    ("abcdefg", 7, 1, 0, 0, "truncated", 3),
    ("gbxay", 5, 4, 5, 0, "truncated", 5),
    ("a", 1, 0, 0, 0, "ones", 1),
    ("rzp", 3, 0, 0, 1, "zeros", 1),
    ("rzp", 3, 2, 0, 1, "uniform", 1),
    ("zq", 2, 1, 0, 1, "normal", 3),
]
def filled(value):
    # This version's own constant initializers do not take a shape that is computed.
    return lambda shape: tf.fill(tf.stack(shape), np.float32(value))


BACKUPS = {
    "zeros": filled(0),
    "ones": filled(1),
    "constant": filled(2.5),
    "uniform": tf.random_uniform_initializer(-3, 5, seed=4),
    "normal": tf.random_normal_initializer(1, 2, seed=5),
    "truncated": tf.truncated_normal_initializer(-1, 0.5, seed=6),
}


def vocabularies(directory):
    def file(name, words):
        path = os.path.join(directory, name)
        with open(path, "w") as output:
            output.write("".join(word + "\n" for word in words))
        return path

    for saved in (1, 3):
        path = old_checkpoint(directory, saved)
        for number, (words, size, oov, old_size, axis, backup, parts) in enumerate(VOCABS):
            new = file("new-%d" % number, words)
            old = file("old-words-%d" % axis, "abcdefg" if axis == 0 else "pq")
            shape = [size + oov, 2] if axis == 0 else [7, size + oov]
            lines = ours("vocab", path, parts, new, size, oov, old, old_size, axis, backup)
            with tf.Graph().as_default():
                tf.set_random_seed(7)
                partitioner = tf.fixed_size_partitioner(parts) if parts > 1 else None
                tf.get_variable("table", shape, partitioner=partitioner, use_resource=False)
                info = tf.estimator.VocabInfo if hasattr(tf.estimator, "VocabInfo") else tf.train.VocabInfo
                info = info(new, size, oov, old, old_size or -1, BACKUPS[backup], axis)
                tf.train.warm_start(path, ".*", var_name_to_prev_var_name={"table": "old/table"},
                                    var_name_to_vocab_info={"table": info})
                with tf.Session() as session:
                    session.run(tf.global_variables_initializer())
                    for line, value in zip(lines, session.run(tf.global_variables()), strict=True):
                        values = np.array([float(x) for x in line.split()[3:]], np.float32)
                        np.testing.assert_allclose(values, value.ravel(), rtol=1e-6, err_msg=str(VOCABS[number]))


# ---- Freezing ----


def read_graph(path):
    graph = tf.GraphDef()
    with open(path, "rb") as file:
        graph.ParseFromString(file.read())
    return graph


def run_graph(graph, feeds, fetches):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph, name="")
        return session.run(fetches, feeds)


def described(graph):
    """Operators and inputs by name, without values."""
    return {node.name: (node.op, list(node.input)) for node in graph.node}


def network():
    x = tf.placeholder(tf.float32, [None, 8, 8, 3], "x")
    w = tf.get_variable("w", [3, 3, 3, 4], use_resource=False)
    h = tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME")
    scale = tf.get_variable("scale", [4], initializer=tf.random_uniform_initializer(0.5, 2), use_resource=True)
    offset = tf.get_variable("offset", [4], initializer=tf.random_normal_initializer(), use_resource=False)
    mean = tf.get_variable("mean", [4], initializer=tf.random_normal_initializer(), use_resource=False)
    variance = tf.get_variable("variance", [4], initializer=tf.random_uniform_initializer(0.5, 2), use_resource=False)
    h = tf.nn.fused_batch_norm(h, scale, offset, mean, variance, is_training=False)[0]
    h = tf.reshape(tf.nn.relu(h), [-1, 256])
    table = tf.get_variable("table", [10, 256], use_resource=True)
    rows = tf.gather(table, [1, 3, 5, 7, 9, 0])
    h = tf.check_numerics(tf.matmul(h, rows, transpose_b=True), "bad")
    factor = tf.rsqrt(tf.get_variable("moment", [6], initializer=tf.random_uniform_initializer(0.5, 2)))
    y = tf.identity(h * factor, name="y")
    loss = tf.reduce_mean(tf.square(y), name="loss")
    tf.train.GradientDescentOptimizer(0.1).minimize(loss)


def saved_network(directory):
    path = os.path.join(directory, "network")
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.set_random_seed(5)
        network()
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, path)
        frozen = tf.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y", "loss"])
        x = np.random.RandomState(1).randn(2, 8, 8, 3).astype(np.float32)
        return path, graph.as_graph_def(), frozen, x, session.run(["y:0", "loss:0"], {"x:0": x})


def freezing(directory):
    path, graph, theirs, x, expected = saved_network(directory)
    result = os.path.join(directory, "result.pb")
    ours("freeze", path + ".meta", path, "y,loss", result)
    frozen = read_graph(result)
    for found, value in zip(run_graph(frozen, {"x:0": x}, ["y:0", "loss:0"]), expected):
        np.testing.assert_array_equal(found, value)
    assert described(frozen) == described(theirs), set(map(str, described(frozen).items())) ^ set(
        map(str, described(theirs).items())
    )
    values = {n.name: tf.make_ndarray(n.attr["value"].tensor) for n in theirs.node if n.op == "Const"}
    for node in frozen.node:
        if node.op == "Const":
            np.testing.assert_array_equal(tf.make_ndarray(node.attr["value"].tensor), values[node.name])
    ours("freeze", path + ".meta", path, "y", result, "w,table")
    kept = {n.name for n in read_graph(result).node if n.op in ("VariableV2", "VarHandleOp")}
    assert kept == {"w", "table"}, kept
    ours("extract", path + ".meta", "loss", result)
    assert described(read_graph(result)) == described(tf.graph_util.extract_sub_graph(graph, ["loss"]))


def training_nodes(directory):
    result = os.path.join(directory, "result.pb")
    path = os.path.join(directory, "graph.pb")
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None], "x")
        a = tf.identity(tf.identity(x), name="a")
        with tf.control_dependencies([a]):
            b = tf.identity(x, name="b")
        tf.identity(tf.identity(b * tf.identity(a)), name="y")
    with open(path, "wb") as file:
        file.write(graph.as_graph_def().SerializeToString())
    ours("training", path, "y", result)
    theirs = tf.graph_util.remove_training_nodes(graph.as_graph_def(), ["y"])
    assert described(read_graph(result)) == described(theirs), (described(read_graph(result)), described(theirs))


# ---- Transforms ----


def transforms(directory):
    path, _, frozen, x, expected = saved_network(directory)
    source, result = os.path.join(directory, "frozen.pb"), os.path.join(directory, "result.pb")
    ours("freeze", path + ".meta", path, "y", source)
    exact = dict(rtol=1e-4, atol=1e-4)
    cases = [
        (["strip_unused_nodes"], exact, {}),
        (["remove_nodes"], exact, {"Identity": 1}),
        (["fold_constants"], exact, {"Rsqrt": 0, "GatherV2": 0}),
        (["fold_old_batch_norms"], exact, {"FusedBatchNormV3": 0, "BiasAdd": 1}),
        (["remove_nodes", "fold_constants", "fold_old_batch_norms"], exact, {"FusedBatchNormV3": 0}),
        (["quantize_weights"], dict(rtol=0.1, atol=0.1), {"Dequantize": 2}),
    ]
    for names, tolerance, counts in cases:
        ours("transform", source, "x", "y", result, *names)
        graph = read_graph(result)
        found = run_graph(graph, {"x:0": x}, "y:0")
        np.testing.assert_allclose(found, expected[0], err_msg=str(names), **tolerance)
        for op, count in counts.items():
            assert sum(n.op == op for n in graph.node) == count, (names, op, [n.op for n in graph.node])
    for node in graph.node:
        if node.op == "Dequantize":
            before = next(tf.make_ndarray(n.attr["value"].tensor) for n in frozen.node if n.name == node.name)
            after = run_graph(graph, {}, node.name + ":0")
            step = (max(before.max(), 0) - min(before.min(), 0)) / 255
            assert np.abs(before - after).max() <= step * 0.5001, (node.name, np.abs(before - after).max(), step)


def products(directory):
    """A Mul behind a product and convolutions, folded into their weights."""
    source, result = os.path.join(directory, "product.pb"), os.path.join(directory, "result.pb")
    random = np.random.RandomState(2)
    for kind in ("matmul", "transposed", "conv", "depthwise"):
        with tf.Graph().as_default() as graph:
            if kind in ("matmul", "transposed"):
                x = tf.placeholder(tf.float32, [None, 5], "x")
                w = tf.constant(random.randn(*((5, 4) if kind == "matmul" else (4, 5))).astype(np.float32), name="w")
                h = tf.matmul(x, w, transpose_b=kind == "transposed")
            else:
                x = tf.placeholder(tf.float32, [None, 6, 6, 2], "x")
                w = tf.constant(random.randn(3, 3, 2, 4 if kind == "conv" else 2).astype(np.float32), name="w")
                call = tf.nn.conv2d if kind == "conv" else tf.nn.depthwise_conv2d_native
                h = call(x, w, strides=[1, 1, 1, 1], padding="VALID")
            tf.multiply(h, tf.constant(random.randn(4).astype(np.float32)), name="y")
        with open(source, "wb") as file:
            file.write(graph.as_graph_def().SerializeToString())
        ours("transform", source, "x", "y", result, "fold_batch_norms")
        value = random.randn(3, *x.shape[1:]).astype(np.float32)
        folded = read_graph(result)
        assert not any(n.op == "Mul" for n in folded.node), kind
        np.testing.assert_allclose(
            run_graph(folded, {"x:0": value}, "y:0"),
            run_graph(graph.as_graph_def(), {"x:0": value}, "y:0"),
            rtol=1e-5,
            atol=1e-5,
        )


# ---- SavedModels ----


def saved_models(directory):
    asset = os.path.join(directory, "vocabulary.txt")
    for form in ("pb", "pbtxt"):
        with open(asset, "w") as file:
            file.write("first\nsecond\n")
        saved = os.path.join(directory, "saved-" + form)
        ours("save", saved, asset, form)
        os.remove(asset)
        assert tf.saved_model.contains_saved_model(saved)
        for tags in (["serve"], ["train", "gpu"]):
            if tags != ["serve"]:  # the second graph has no assets
                with open(asset, "w") as file:
                    file.write("other")
            with tf.Graph().as_default(), tf.Session() as session:
                meta = tf.saved_model.loader.load(session, tags, saved)
                y = session.run("y:0", {"x:0": [[1.0, 2.0]]})
                np.testing.assert_allclose(y, [[14.5, 14.5]], rtol=1e-6)
                assert sorted(meta.meta_info_def.tags) == sorted(tags)
                if tags != ["serve"]:
                    assert not meta.signature_def
                    assert session.run("line:0") == b"other"
                    continue
                signature = meta.signature_def["serving_default"]
                assert signature.method_name == "tensorflow/serving/predict"
                assert signature.inputs["points"].name == "x:0" and sorted(signature.outputs) == ["line", "values"]
                assert signature.inputs["points"] == tf.saved_model.build_tensor_info(
                    tf.get_default_graph().get_tensor_by_name("x:0")
                )
                assert session.run(signature.outputs["line"].name) == b"first\nsecond\n"
                assert not any(node.device for node in meta.graph_def.node)
        files = sorted(os.path.relpath(os.path.join(d, f), saved) for d, _, fs in os.walk(saved) for f in fs)
        variables = ["variables/variables.data-00000-of-00001", "variables/variables.index"]
        assert files == ["assets/vocabulary.txt", "saved_model." + form, *variables], files
        if form == "pbtxt":
            with open(os.path.join(saved, "saved_model.pbtxt")) as file:
                assert len(text_format.Parse(file.read(), saved_model_pb2.SavedModel()).meta_graphs) == 2


def stripped_attrs(directory):
    """strip_default_attrs and clear_devices on TensorFlow's own graph, compared with its export."""
    path, saved = saved_network(directory)[0], os.path.join(directory, "stripped")
    ours("resave", path + ".meta", path, saved)
    with tf.Graph().as_default():
        tf.train.import_meta_graph(path + ".meta")
        theirs = tf.train.export_meta_graph(strip_default_attrs=True, clear_devices=True)
    model = saved_model_pb2.SavedModel()
    with open(os.path.join(saved, "saved_model.pb"), "rb") as file:
        model.ParseFromString(file.read())
    found = {node.name: node for node in model.meta_graphs[0].graph_def.node}
    for node in theirs.graph_def.node:
        assert sorted(found[node.name].attr) == sorted(node.attr), (node.name, sorted(found[node.name].attr), node)
        assert not found[node.name].device
    assert model.meta_graphs[0].meta_info_def.stripped_default_attrs
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, ["serve"], saved)
        session.run("y:0", {"x:0": np.zeros([1, 8, 8, 3])})


def main():
    failed = 0
    tests = [
        initial_values,
        warm_starts,
        vocabularies,
        freezing,
        training_nodes,
        transforms,
        products,
        saved_models,
        stripped_attrs,
    ]
    for test in tests:
        with tempfile.TemporaryDirectory() as directory:
            try:
                test(directory)
            except Exception as error:  # the other tests still run
                failed += 1
                print("%s: %s: %s" % (test.__name__, type(error).__name__, str(error)[:1500]))
    print("%d passed, %d failed" % (len(tests) - failed, failed))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
