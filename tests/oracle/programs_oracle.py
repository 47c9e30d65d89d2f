"""Whole training programs in the style of TensorFlow 1: TensorFlow and millrace train the same graph from the same
checkpoint and get the same losses, variables, summaries and further checkpoints.

The programs are in programs/. TensorFlow builds the graph, initializes it and saves a checkpoint. Both restore it and
take the same steps. Then each restores the other's checkpoint and takes one more step. millrace also runs the
initializers itself: with seeds, the values are the same.

A word on the command line selects the programs whose name contains it."""
import glob
import importlib
import os
import pickle
import sys
import tempfile
import time
import traceback
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "programs"), os.path.join(HERE, "..", "..", "python")]
import numpy as np
import tensorflow.compat.v1 as tf

import millrace
import training

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.FATAL)

TIMEOUT = 20  # seconds of a run


class Difference(Exception):
    pass


# ---- The two sides ----


class Theirs:
    """TensorFlow."""

    def __init__(self, built):
        config = tf.ConfigProto(
            intra_op_parallelism_threads=1, inter_op_parallelism_threads=4, operation_timeout_in_ms=1000 * TIMEOUT
        )
        self.session = tf.Session(graph=built.graph, config=config)
        self.coordinator = None
        self.graph = built.graph

    def run(self, fetches, feeds=None):
        return self.session.run(fetches, feeds)

    def start_queues(self):
        self.coordinator = tf.train.Coordinator()
        with self.graph.as_default():
            self.threads = tf.train.start_queue_runners(self.session, self.coordinator)

    def close(self):
        if self.coordinator:
            self.coordinator.request_stop()
        self.session.close()
        if self.coordinator:
            try:
                self.coordinator.join(self.threads, stop_grace_period_secs=10)
            except (tf.errors.OpError, RuntimeError):
                pass


class Ours:
    """millrace, which has only the bytes of the MetaGraphDef."""

    def __init__(self, built):
        self.session = millrace.Session(built.meta, {"timeout_ms": 1000 * TIMEOUT})

    def run(self, fetches, feeds=None):
        return self.session.run(fetches, feeds)

    def start_queues(self):
        self.session.start_queue_runners()

    def close(self):
        # Not stop_queue_runners: a runner may wait for a gradient of an accumulator, which has no cancel operation.
        self.session.close()


class Built:
    """The graph of a program."""

    def __init__(self, function):
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf.set_random_seed(1234)
            self.training = training_ = function()
            self.variables = training_.variables
            if self.variables is None:
                self.variables = tf.global_variables()
            self.saver = training_.saver or tf.train.Saver()
            self.init = tf.global_variables_initializer()
            self.setup = [tf.local_variables_initializer(), tf.tables_initializer(), *training_.setup]
            self.save = self.saver.saver_def
            self.meta = tf.train.export_meta_graph(
                saver_def=self.save, graph=self.graph, clear_devices=False
            ).SerializeToString()
        self.graph.finalize()


def restored(side, built, checkpoint):
    session = side(built)
    session.run(built.save.restore_op_name, {built.save.filename_tensor_name: checkpoint})
    for operation in built.setup:
        session.run(operation)
    if built.training.queues:
        session.start_queues()
    return session


def steps(session, built, first, count):
    """Per step, the values of the fetches of each run; the end of the input is the last value."""
    results = []
    for step in range(first, first + count):
        feed = built.training.feed(step)
        try:
            for fetches, targets in built.training.runs:
                values = session.run((fetches, targets), feed)[0]
                results.append((step, [getattr(f, "name", "a structure") for f in fetches], values))
        except (tf.errors.OutOfRangeError, millrace.errors.OutOfRangeError):
            results.append((step, ["end"], [np.bool_(True)]))
            break
    return results


def save(session, built, checkpoint):
    return session.run(built.save.save_tensor_name, {built.save.filename_tensor_name: checkpoint})


# ---- Comparison ----


def flat(value):
    if isinstance(value, dict):
        return [x for key in sorted(value) for x in flat(value[key])]
    if isinstance(value, (list, tuple)):
        return [x for item in value for x in flat(item)]
    return [value]


def compare_summaries(name, ours, theirs):
    ours, theirs = (tf.Summary.FromString(bytes(v)) for v in (ours, theirs))
    if [v.tag for v in ours.value] != [v.tag for v in theirs.value]:
        raise Difference(f"{name}: tags {[v.tag for v in ours.value]}, expected {[v.tag for v in theirs.value]}")
    for a, b in zip(ours.value, theirs.value):
        where = f"{name}, {b.tag}"
        if a.WhichOneof("value") != b.WhichOneof("value") or a.metadata != b.metadata:
            raise Difference(f"{where}: {a}, expected {b}")
        kind = b.WhichOneof("value")
        if kind == "simple_value":
            compare(where, np.float32(a.simple_value), np.float32(b.simple_value), 1e-4, 1e-6)
        elif kind == "histo":
            for field in ("min", "max", "num", "sum", "sum_squares"):
                compare(f"{where}, {field}", np.float64(getattr(a.histo, field)), np.float64(getattr(b.histo, field)),
                        1e-3, 1e-4)
            if abs(len(a.histo.bucket) - len(b.histo.bucket)) > 4:
                raise Difference(f"{where}: {len(a.histo.bucket)} buckets, expected {len(b.histo.bucket)}")
        elif kind == "image":
            same = (a.image.height, a.image.width, a.image.colorspace) == (
                b.image.height, b.image.width, b.image.colorspace)  # fmt: skip
            pixels = [tf_decode(v.image.encoded_image_string) for v in (a, b)]
            if not same or np.abs(pixels[0].astype(int) - pixels[1].astype(int)).max() > 1:
                raise Difference(f"{where}: another image")
        elif kind == "audio":
            if a.audio.sample_rate != b.audio.sample_rate or a.audio.length_frames != b.audio.length_frames:
                raise Difference(f"{where}: another audio")
        elif kind == "tensor" and a.tensor.dtype == b.tensor.dtype == tf.string.as_datatype_enum:
            if a.tensor != b.tensor:
                raise Difference(f"{where}: {a.tensor}, expected {b.tensor}")
        elif kind == "tensor":
            compare(where, tf.make_ndarray(a.tensor), tf.make_ndarray(b.tensor), 1e-4, 1e-6)


def tf_decode(data):
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(tf.image.decode_png(data))


def compare(name, ours, theirs, relative, absolute):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.shape != theirs.shape:
        raise Difference(f"{name}: shape {ours.shape}, expected {theirs.shape}")
    if ours.dtype != theirs.dtype and "S" not in (ours.dtype.kind, theirs.dtype.kind):
        raise Difference(f"{name}: dtype {ours.dtype}, expected {theirs.dtype}")
    if theirs.dtype.kind in "fcV":
        wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
        ours, theirs = ours.astype(wide), theirs.astype(wide)
        if np.allclose(ours, theirs, rtol=relative, atol=absolute, equal_nan=True):
            return
        wrong = ~np.isclose(ours, theirs, rtol=relative, atol=absolute, equal_nan=True)
    else:
        wrong = np.asarray(ours != theirs)
        if not wrong.any():
            return
    i = tuple(int(k[0]) for k in np.nonzero(wrong)) if wrong.shape else ()
    raise Difference(f"{name}{list(i)}: {ours[i]!r}, expected {theirs[i]!r} ({wrong.sum()} of {wrong.size} differ)")


def compare_steps(built, ours, theirs):
    if len(ours) != len(theirs):
        raise Difference(f"{len(ours)} runs, expected {len(theirs)}")
    for (step, names, a), (_, expected, b) in zip(ours, theirs):
        if names != expected:
            raise Difference(f"step {step}: {names}, expected {expected}")
        for name, ours_, theirs_ in zip(names, a, b):
            for x, y in zip(flat(ours_), flat(theirs_), strict=True):
                where = f"step {step}: {name}"
                if name in built.training.summaries:
                    compare_summaries(where, x, y)
                else:
                    compare(where, x, y, built.training.tolerance, built.training.tolerance / 50)


def compare_variables(what, built, ours, theirs, relative, absolute):
    for variable, a, b in zip(built.variables, ours, theirs):
        compare(f"{what} {variable.op.name}", a, b, relative, absolute)


# ---- One program ----


def close(*sessions):
    for session in sessions:
        session.close()


def check_twice(function):
    """Runs a program again if it differs: TensorFlow's updates of reference variables race with reads, and on a busy
    machine the losses of a run may be of either order. millrace's must be the same in both, bit for bit."""
    kept = []
    for attempt in range(3):
        ours = []
        with tempfile.TemporaryDirectory() as directory:
            reason = check(function, directory, ours)
        if reason is None or not ours or (kept and pickle.dumps(kept[0]) != pickle.dumps(ours)):
            break
        kept.append(ours)
    return reason


def check(function, directory, kept):
    stage = "graph (TensorFlow)"
    try:
        built = Built(function)
        variables = built.variables
        start = os.path.join(directory, "start")
        session = Theirs(built)
        stage = "initialization (TensorFlow)"
        session.run(built.init)
        initial = session.run(variables)
        save(session, built, start)
        session.close()

        stage = "training (TensorFlow)"
        theirs = restored(Theirs, built, start)
        their_steps = steps(theirs, built, 0, built.training.steps)
        their_variables = theirs.run(variables)
        their_checkpoint = os.path.join(directory, "theirs")
        save(theirs, built, their_checkpoint)
        theirs.close()

        stage = "import"
        ours = Ours(built)
        if built.training.same_initial:
            stage = "initialization"
            ours.run(built.init)
            compare_variables("initial", built, ours.run(variables), initial, 1e-5, 1e-6)
        ours.close()
        stage = "restore"
        ours = restored(Ours, built, start)
        stage = "training"
        our_steps = steps(ours, built, 0, built.training.steps)
        kept.extend((step, names, [np.asarray(v) for v in flat(values)]) for step, names, values in our_steps)
        compare_steps(built, our_steps, their_steps)
        our_variables = ours.run(variables)
        compare_variables("final", built, our_variables, their_variables, 20 * built.training.tolerance,
                          2 * built.training.tolerance)
        stage = "save"
        our_checkpoint = os.path.join(directory, "ours")
        save(ours, built, our_checkpoint)
        ours.close()

        for owner, checkpoint, kept_variables in (
            ("TensorFlow", their_checkpoint, their_variables), ("millrace", our_checkpoint, our_variables)
        ):
            stage = f"{owner}'s checkpoint in both"
            next_steps = []
            for kind in Ours, Theirs:
                session = restored(kind, built, checkpoint)
                compare_variables("restored", built, session.run(variables), kept_variables, 0, 0)
                next_steps.append(steps(session, built, built.training.steps, 1))
                session.close()
            compare_steps(built, *next_steps)
        return None
    except Difference as error:
        return f"{stage}: {error}"
    except Exception as error:
        if os.environ.get("TRACE"):
            traceback.print_exc()
        return f"{stage}: {type(error).__name__}: {str(error)[:600]}"


# Programs that do not pass yet, and why. Remove a program when it passes; never add one.
OPEN = {}


def main():
    for path in sorted(glob.glob(os.path.join(HERE, "programs", "*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    words = sys.argv[1:]
    passed = failed = 0
    for function in training.PROGRAMS:
        name = function.__name__
        if words and not any(word in name for word in words):
            continue
        begin = time.monotonic()
        reason = check_twice(function)
        is_open = name in OPEN
        if is_open and reason is None:
            reason = "it passes: remove it from OPEN"
            is_open = False
        passed += reason is None
        failed += reason is not None and not is_open
        print(f"{'ok  ' if reason is None else 'open' if is_open else 'FAIL'} {name} ({time.monotonic() - begin:.1f} s)"
              + (f": {reason}" if reason else ""), flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
