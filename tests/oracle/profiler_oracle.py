"""Profiles have the entries, figures, order and text of tf.profiler, for graphs with runs and without."""
import contextlib
import gzip
import io
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
from tensorflow.core.profiler import profile_pb2

tf.logging.set_verbosity(tf.logging.ERROR)
tf.disable_v2_behavior()
PROGRAM = os.path.join(os.environ["MILLRACE_ORACLE"], "profiler_views")
BUILDER = tf.profiler.ProfileOptionBuilder
COLUMNS = ["name", "bytes", "peak_bytes", "residual_bytes", "output_bytes", "micros", "accelerator_micros",
           "cpu_micros", "params", "float_ops", "occurrence", "device", "op_types"]
FIGURES = ["parameters", "float_ops", "requested_bytes", "peak_bytes", "residual_bytes", "output_bytes", "exec_micros",
           "accelerator_exec_micros", "cpu_exec_micros", "run_count", "definition_count"]

# ---- Graphs ----


def mlp():
    x = tf.placeholder(tf.float32, [None, 8], name="x")
    y = tf.placeholder(tf.float32, [None, 3], name="y")
    tf.placeholder_with_default(2.0, [], name="scalar")
    with tf.variable_scope("net"):
        h = tf.layers.dense(x, 6, tf.nn.relu, name="first")
        h = tf.layers.dropout(h, 0.5, training=True)
        logits = tf.layers.dense(h, 3, name="second")
    loss = tf.losses.mean_squared_error(y, tf.nn.softmax(logits)) + 0.1 * tf.nn.l2_loss(logits)
    train = tf.train.AdamOptimizer().minimize(loss)
    return [train, loss], {x: np.ones((5, 8)), y: np.ones((5, 3))}


def convolutions():
    x = tf.placeholder(tf.float32, [4, 12, 12, 3], name="x")
    with tf.variable_scope("a-b"):  # sorts between "a" and "a/…"
        h = tf.layers.conv2d(x, 4, 3, padding="same", activation=tf.nn.relu, use_bias=True)
        h = tf.layers.batch_normalization(h, training=True)
        h = tf.layers.max_pooling2d(h, 2, 2)
    with tf.variable_scope("a"):
        h = tf.layers.separable_conv2d(h, 5, 3, strides=1)
        h = tf.layers.average_pooling2d(h, 2, 2)
        h = tf.raw_ops.Dilation2D(input=h, filter=tf.get_variable("d", [2, 2, 5]), strides=[1] * 4, rates=[1] * 4,
                                  padding="VALID")
    volume = tf.nn.conv3d(tf.ones([1, 4, 4, 4, 2]), tf.get_variable("v", [2, 2, 2, 2, 3]), [1] * 5, "SAME")
    batch = tf.matmul(tf.ones([3, 4, 5]), tf.ones([3, 5, 6]))
    loss = tf.reduce_mean(tf.square(h)) + tf.reduce_sum(volume) + tf.cast(tf.argmax(batch[0, 0]), tf.float32)
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    return [train, loss], {x: np.ones((4, 12, 12, 3))}


def recurrent():
    x = tf.placeholder(tf.float32, [None, 5, 4], name="x")
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(3), x, dtype=tf.float32)
    loss = tf.reduce_mean(outputs)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return [train, loss], {x: np.ones((2, 5, 4))}


def resources():
    with tf.variable_scope("v", use_resource=True):
        w = tf.get_variable("w", [4, 2])
        frozen = tf.get_variable("frozen", [2], trainable=False)
    y = tf.matmul(tf.ones([3, 4]), w) + frozen
    return [tf.train.RMSPropOptimizer(0.1).minimize(tf.reduce_sum(y * y))], {}


# ---- Views ----


def change(options=None, **changes):
    return dict(BUILDER(options).build(), **changes)


def views():
    every = ["params", "float_ops", "bytes", "peak_bytes", "residual_bytes", "output_bytes", "micros", "device",
             "op_types", "occurrence"]
    yield BUILDER.trainable_variables_parameter()
    yield BUILDER.float_operation()
    yield BUILDER.time_and_memory()
    yield change(select=every)
    yield change(select=every, account_displayed_op_only=True, max_depth=3)
    yield change(select=["accelerator_micros", "cpu_micros"], min_cpu_micros=2)
    yield change(select=["micros"])
    yield change(max_depth=1, select=["params"])
    yield change(max_depth=2, select=["params"], order_by="params")
    yield change(min_params=8, select=["params", "occurrence"])
    yield change(min_params=8, select=["params", "occurrence"], account_displayed_op_only=True)
    yield change(min_float_ops=10, select=["float_ops"], order_by="float_ops")
    yield change(min_bytes=40, min_peak_bytes=41, min_residual_bytes=1, min_output_bytes=50, select=["bytes"])
    yield change(min_micros=10, order_by="name")
    yield change(account_type_regexes=["MatMul", "Conv.*", "_trainable_variables"], select=every)
    yield change(account_type_regexes=[".*cpu:0"], select=["micros", "occurrence"])
    yield change(account_type_regexes=["None"], select=["params"])
    yield change(start_name_regexes=[".*net.*", "a", "MatMul", ".*Grad.*"], select=["params", "occurrence"])
    yield change(start_name_regexes=["nothing"], select=["params"])
    yield change(trim_name_regexes=["gradients", ".*w", "Mul"], select=["params", "occurrence"])
    yield change(trim_name_regexes=[".*"], select=["params"])
    yield change(show_name_regexes=[".*kernel.*", "a/.*", "M.*"], select=["params"])
    yield change(show_name_regexes=[".*kernel.*"], select=["params"], account_displayed_op_only=True)
    yield change(hide_name_regexes=[".*Adam.*", "gradients", "C.*"], select=["params", "occurrence"])
    yield change(hide_name_regexes=["_TFProfRoot"], select=["params"])


def code_options(options):
    """Names of calls instead of scopes."""
    names = {".*net.*": ".*:mlp", "a": ".*dense.*", "gradients": ".*gradient.*", ".*kernel.*": ".*add_weight.*",
             "a/.*": ".*:build", ".*Adam.*": ".*:minimize", ".*w": ".*:get_variable"}
    return {key: [names.get(name, name) for name in value] if key.endswith("_regexes") and "type" not in key else value
            for key, value in options.items()}


def arguments(options):
    yield "select=%d" % sum(1 << COLUMNS.index(name) - 1 for name in options["select"])
    yield "order_by=%d" % (1 << COLUMNS.index(options["order_by"]) - 1 if options["order_by"] != "name" else 0)
    for name, value in options.items():
        if name.endswith("_regexes"):
            yield from (f"{name}={item}" for item in value)
        elif name.startswith("min_") or name in ("max_depth", "account_displayed_op_only"):
            yield f"{name}={int(value)}"
        elif name == "step" and value >= 0:
            yield f"step={value}"


def figures(node, definitions):
    result = []
    for prefix in ("", "total_"):
        for name in FIGURES:
            if name == "definition_count" and not prefix or not hasattr(node, prefix + name):
                result.append(None)  # not in the message
            else:
                result.append(getattr(node, prefix + name))
    return result + [definitions]


def tree(node, kind, depth=0):
    """(depth, name, figures) of each entry; TensorFlow's operators are each the child of the one before."""
    definitions = len(node.graph_nodes) if kind in ("op", "code") else 0
    yield depth, node.name, figures(node, definitions)
    for child in node.children:
        yield from tree(child, kind, 1 if kind == "op" else depth + 1)


def compare(ours, text, theirs):
    """Both texts without their headers; both trees."""
    mine = [line for line in ours if not line.startswith("== ")]
    text = text[text.index("node name |"):].rstrip("\n").split("\n")
    assert mine == text, "\n".join(f"{a}\n{b}" for a, b in zip(mine + [""], text + [""]) if a != b)[:2000]
    entries = []
    for line in ours:
        if line.startswith("== "):
            depth, rest = line[3:].split(" ", 1)
            parts = rest.rsplit(" ", 2 * len(FIGURES) + 1)  # names of the code view have spaces
            entries.append((int(depth), parts[0], [int(x) for x in parts[1:]]))
    assert len(entries) == len(theirs), (len(entries), len(theirs))
    for (depth, name, values), (other_depth, other_name, others) in zip(entries, theirs):
        assert (depth, name) == (other_depth, other_name), (depth, name, other_depth, other_name)
        same = [(a, b) for a, b in zip(values, others, strict=True) if b is not None]
        assert all(a == b for a, b in same), (name, values, others)


# ---- pprof ----


def compare_pprof(ours, path):
    """The samples are the entries that have figures, under the stacks of the entries above them."""
    with gzip.open(path) as file:
        profile = profile_pb2.Profile.FromString(file.read())
    strings = profile.string_table
    types = [strings[value.type] + " " + strings[value.unit] for value in profile.sample_type]
    assert types == ["calls count", "time microseconds", "accelerator_time microseconds", "memory bytes",
                     "float_ops count", "parameters count"], types
    lines = {location.id: location.line[0].function_id for location in profile.location}
    names = {function.id: strings[function.name] for function in profile.function}
    samples = [([names[lines[i]] for i in reversed(sample.location_id)], list(sample.value))
               for sample in profile.sample]
    expected, stack = [], []
    for line in ours:
        if not line.startswith("== "):
            continue
        depth, rest = line[3:].split(" ", 1)
        name, *values = rest.rsplit(" ", 2 * len(FIGURES) + 1)
        stack[int(depth):] = [name]
        values = [int(values[FIGURES.index(figure)]) for figure in (
            "run_count", "exec_micros", "accelerator_exec_micros", "requested_bytes", "float_ops", "parameters")]
        if any(values):
            expected.append((stack[1:], values))
    assert samples == expected, (samples, expected)
    assert len(expected) > 5


# ---- Cases ----


def their_view(graph, metadata, kind, options, path):
    options = dict(options, output="file:outfile=" + path)
    with contextlib.redirect_stderr(io.StringIO()):  # notes about unknown shapes
        result = tf.profiler.profile(graph, run_meta=metadata, cmd=kind, options=options)
    with open(path) as file:
        return file.read(), list(tree(result, kind))


def run_graph(build, directory):
    graph = tf.Graph()
    with graph.as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        fetches, feeds = build()
        session.run(tf.global_variables_initializer())
        tf.train.export_meta_graph(directory + "/graph.meta")
        metadata = tf.RunMetadata()
        full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(fetches, feeds)
        session.run(fetches, feeds, options=full, run_metadata=metadata)
    with open(directory + "/run", "wb") as file:
        file.write(metadata.SerializeToString())
    return graph, metadata


def check_graph(build, directory, errors):
    count = 0
    graph, metadata = run_graph(build, directory)
    for run in (None, metadata):  # shapes that the run completes stay in the graph
        tf.profiler.write_op_log(graph, directory, run_meta=run)
        for kind in ("scope", "graph", "op", "code"):
            for options in views():
                if kind in ("op", "code"):  # theirs orders equal figures arbitrarily
                    options["order_by"], options["min_occurrence"] = "name", 0
                if kind == "code":
                    options = code_options(options)
                if kind == "code" and ".*" in options["trim_name_regexes"]:
                    continue  # theirs does not survive a root that is trimmed
                given = [directory + "/graph.meta", kind, "pprof=" + directory + "/pprof", *arguments(options)]
                if kind == "code":
                    given.append(f"op_log={directory}/tfprof_log")
                if run is not None:
                    given.append(f"run=0:{directory}/run")
                text, theirs = their_view(graph, run, kind, options, directory + "/text")
                done = subprocess.run([PROGRAM, *given], capture_output=True, text=True)
                try:
                    assert done.returncode == 0, done.stderr
                    compare(done.stdout.rstrip("\n").split("\n"), text, theirs)
                    if options["select"] == ["micros"] and options["min_micros"] == 0:
                        compare_pprof(done.stdout.rstrip("\n").split("\n"), directory + "/pprof")
                    count += 1
                except AssertionError as error:
                    errors.append(f"{build.__name__} {'with' if run else 'without'} a run: {given[1:]}: {error}")
    return count


def main():
    count, errors = 0, []
    for build in (mlp, convolutions, recurrent, resources):
        with tempfile.TemporaryDirectory() as directory:
            count += check_graph(build, directory, errors)
    for error in errors:
        print("FAILED", error)
    print(f"{count} passed, {len(errors)} failed")
    return len(errors) != 0


if __name__ == "__main__":
    sys.exit(main())
