"""Monitored training sessions here and in TensorFlow, with the same hooks: what is saved, summarized, counted and
logged at which steps, and each continues in the directory of the other."""

import glob
import os
import re
import subprocess
import sys
import tempfile
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.filterwarnings("ignore")
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.training import training_util

tf.logging.set_verbosity(tf.logging.ERROR)
tf.disable_v2_behavior()


class Logging(tf.train.LoggingTensorHook):
    """Collects the lines instead of logging them."""

    def __init__(self, lines, *arguments, **options):
        super().__init__(*arguments, **options)
        self.lines = lines

    def _log_tensors(self, tensor_values):
        self._timer.update_last_triggered_step(self._iter_count)
        self.lines += [", ".join(f"{tag} = {tensor_values[tag]}" for tag in self._tag_order)]


def theirs(directory, last_step, save_steps, summary_steps, log_iterations, count_steps):
    lines = []
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer(), use_resource=True)
        loss = tf.reduce_sum(tf.square(w - tf.constant([3.0, -2.0])), name="loss")
        tf.summary.scalar("error", loss)
        read = training_util._get_or_create_global_step_read()  # which the hooks fetch, before or after the update
        with tf.control_dependencies([loss, read]):
            train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, step)
        never = lambda steps: None if steps < 0 else steps
        hooks = [tf.train.StopAtStepHook(last_step=last_step),
                 Logging(lines, {"loss": loss}, every_n_iter=log_iterations, at_end=True)]
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=directory, save_checkpoint_steps=never(save_steps), save_checkpoint_secs=None,
            save_summaries_steps=never(summary_steps), save_summaries_secs=None,
            log_step_count_steps=never(count_steps), hooks=hooks,
        ) as session:
            while not session.should_stop():
                session.run(train)
    tf.summary.FileWriterCache.clear()  # which has not written the last checkpoint's event yet
    return lines


def ours(directory, *numbers):
    program = os.path.join(os.environ["MILLRACE_ORACLE"], "monitored_run")
    done = subprocess.run([program, directory, *map(str, numbers)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [re.sub(r" \([0-9.]+ sec\)$", "", line) for line in done.stdout.splitlines()]


def events(directory):
    """Of all event files: the steps of each kind of event."""
    found = {}
    for path in sorted(glob.glob(os.path.join(directory, "events.out.tfevents.*"))):
        for event in tf.train.summary_iterator(path):
            kind = event.WhichOneof("what")
            if kind == "session_log":
                name = os.path.basename(event.session_log.checkpoint_path)
                found.setdefault(f"session {event.session_log.status} {name}", []).append(event.step)
            elif kind == "summary":
                for value in event.summary.value:
                    found.setdefault(f"summary {value.tag}", []).append(event.step)
            elif kind in ("graph_def", "meta_graph_def"):
                found[kind] = [event.step]  # TensorFlow writes them twice
    return {kind: sorted(steps) for kind, steps in found.items()}


def checkpoints(directory):
    state = tf.train.get_checkpoint_state(directory)
    return [os.path.basename(path) for path in state.all_model_checkpoint_paths]


def values(directory):
    reader = tf.train.load_checkpoint(directory)
    return {key: reader.get_tensor(key) for key in ("w", "global_step")}


def check_lines(a, b):
    number = lambda line: float(line.split(" = ")[1])
    assert len(a) == len(b), (a, b)
    np.testing.assert_allclose([number(line) for line in a], [number(line) for line in b], rtol=1e-5)


def check_directories(a, b):
    assert checkpoints(a) == checkpoints(b), (checkpoints(a), checkpoints(b))
    np.testing.assert_allclose(values(a)["w"], values(b)["w"], rtol=1e-6)
    assert values(a)["global_step"] == values(b)["global_step"]


def check(case):
    last, *rest = case
    with tempfile.TemporaryDirectory() as directory:
        a, b = os.path.join(directory, "ours"), os.path.join(directory, "theirs")
        check_lines(ours(a, last, *rest), theirs(b, last, *rest))
        check_directories(a, b)
        assert events(a) == events(b), f"ours {events(a)}\ntheirs {events(b)}"
        # Each continues in the other's directory, and both in their own.
        ours(a + "-2", last, *rest)
        theirs(b + "-2", last, *rest)
        lines = [ours(a + "-2", 2 * last, *rest), ours(b, 2 * last, *rest), theirs(a, 2 * last, *rest),
                 theirs(b + "-2", 2 * last, *rest)]
        for other in lines[1:]:
            check_lines(lines[0], other)
        for other in b, a, b + "-2":
            assert values(a + "-2")["global_step"] == values(other)["global_step"] == 2 * last
            np.testing.assert_allclose(values(a + "-2")["w"], values(other)["w"], rtol=1e-6)
        assert events(a + "-2").keys() == events(b + "-2").keys()


def main():
    cases = [
        # last step, checkpoint steps, summary steps, logged iterations, counted steps
        (7, 3, 2, 2, 3),
        (10, 5, 3, 4, 2),
        (12, 1, 1, 1, 1),
        (5, 100, 100, 100, 100),
        (6, 4, -1, 3, 2),
        (6, 4, 2, 3, -1),
        (1, 1, 1, 1, 1),
    ]
    passed = failed = 0
    for case in cases:
        try:
            check(case)
            passed += 1
        except Exception as error:
            failed += 1
            print(f"FAIL {case}: {type(error).__name__}: {str(error)[:800]}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
