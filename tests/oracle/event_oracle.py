"""TensorFlow reads millrace's event files, and the histograms of both have the same buckets."""
import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

PROGRAM = os.path.join(os.environ["MILLRACE_ORACLE"], "event_files")


def events_of(numbers):
    with tempfile.TemporaryDirectory() as directory:
        lines = "".join(float(n).hex() + "\n" for n in numbers)
        run = subprocess.run([PROGRAM, directory], input=lines, text=True, check=True, capture_output=True)
        return list(tf.compat.v1.train.summary_iterator(run.stdout.strip()))


def their_histogram(numbers):
    values = np.asarray(numbers, np.float64)
    serialized = tf.raw_ops.HistogramSummary(tag="weights", values=values).numpy()
    return tf.compat.v1.Summary.FromString(serialized)


def main():
    rng = np.random.default_rng(11)
    limits = [1e-12 * 1.1**i for i in range(0, 700, 13)]
    cases = [
        [],
        [0.0],
        [-1.0, 1.0],
        limits + [-x for x in limits],
        rng.normal(size=5000),
        np.exp(rng.normal(size=3000) * 20),
        [1e20, 1e25, -1e300, 1e-300],
    ]
    for numbers in cases:
        events = events_of(numbers)
        assert events[0].file_version == "brain.Event:2"
        assert [e.step for e in events[1:]] == [3, 4, 5]
        assert events[1].summary.value[0].tag == "loss" and events[1].summary.value[0].simple_value == 0.125
        theirs = their_histogram(numbers).value[0]
        ours = events[2].summary.value[0]
        assert ours == theirs, f"{ours}\n{theirs}"
        assert events[2].summary.value[1].simple_value == 0.5
        images = events[3].summary.value
        assert [p.tag for p in images] == ["input/image/0", "input/image/1"]
        assert images[1].image.encoded_image_string == b"second" and images[1].image.width == 2
    print(f"{len(cases)} passed, 0 failed")


if __name__ == "__main__":
    sys.exit(main())
