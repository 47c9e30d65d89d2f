"""Conditionals and loops that are built from C, and their gradients: TensorFlow runs the graphs of random programs, and
gets what an interpreter of the programs computes."""

import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow.compat.v1 as tf

COUNT = 300
IMPORTS = 100


def run(path, x, fetches):
    definition = tf.GraphDef.FromString(open(path, "rb").read())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(definition, name="")
        config = tf.ConfigProto()  # the optimizer breaks loops of no iterations inside of conditionals
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf.Session(graph=graph, config=config) as session:
            return session.run(fetches, {"x:0": x}, options=tf.RunOptions(timeout_in_ms=60000))


def slopes(program, path, x):
    """The slope in an imported MetaGraphDef: TensorFlow's of a file of ours, and ours of TensorFlow's."""
    with tf.Graph().as_default() as graph:
        tf.disable_control_flow_v2()
        tf.train.import_meta_graph(path + ".meta")
        theirs = path + ".theirs.meta"
        tf.train.export_meta_graph(theirs)
        gradient = tf.gradients(graph.get_tensor_by_name("the_result:0"), graph.get_tensor_by_name("x:0"))[0]
        config = tf.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf.Session(graph=graph, config=config) as session:
            slope = 0.0 if gradient is None else session.run(gradient, {"x:0": x})
    done = subprocess.run([program, "gradient", str(x), theirs], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return slope, 0.0 if done.stdout.strip() == "none" else float(done.stdout)


def main():
    program = os.path.join(os.environ["MILLRACE_ORACLE"], "control_flow_graphs")
    passed = failed = 0
    with tempfile.TemporaryDirectory() as directory:
        text = subprocess.run([program, directory, str(COUNT)], check=True, capture_output=True, text=True).stdout
        for line in text.splitlines():
            number, x, *names, value, slope, is_close = line.split()
            fetches = [name for name in names if name != "-"]
            try:
                got = run(os.path.join(directory, number + ".pb"), float(x), fetches)
                imported = slopes(program, os.path.join(directory, number), float(x)) if int(number) < IMPORTS else []
            except Exception as error:
                print(f"program {number}: {str(error)[:300]}")
                failed += 1
                continue
            expected = [float(value), float(slope)]
            if is_close != "1" and not all(abs(a - float(slope)) < 1e-3 * (1 + abs(float(slope))) for a in imported):
                print(f"program {number} at {x}, imported: {imported} instead of {slope}")
                failed += 1
                continue
            right = all(abs(a - b) < 1e-3 * (1 + abs(b)) for a, b in zip(got, expected)) or is_close == "1"
            if not right or (len(got) < 2 and float(slope) != 0):
                print(f"program {number} at {x}: {got} instead of {expected}")
                failed += 1
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
