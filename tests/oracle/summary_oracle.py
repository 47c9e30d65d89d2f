"""Summaries of summary_graphs.c have the names, tags, metadata and values of tf.summary's and TensorBoard's."""
import glob
import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf
from tensorboard.plugins.pr_curve import summary as pr_curve

PROGRAM = os.path.join(os.environ["MILLRACE_ORACLE"], "summary_graphs")


def sequence(*shape):
    i = np.arange(np.prod(shape))
    return tf.constant(((i * 29 % 41).astype(np.float32) / np.float32(41)).reshape(shape))


def build():
    x, scalar, text = sequence(2, 3, 4), tf.constant(0.25), tf.constant("# title")
    with tf.name_scope("outer"):
        summaries = [
            tf.summary.scalar("loss", scalar, family="my family"),
            tf.summary.histogram("/weights", x),
            tf.summary.image("images", sequence(4, 3, 5, 3), max_outputs=2),
            tf.summary.audio("sound", sequence(4, 20, 2), 8000.0, max_outputs=2, family="f"),
            tf.summary.text("notes", text),
        ]
    metadata = tf.SummaryMetadata(plugin_data=tf.SummaryMetadata.PluginData(plugin_name="p", content=b"data"))
    summaries.append(tf.summary.tensor_summary("tensor", x, summary_description="what it is", family="g",
                                               summary_metadata=metadata, display_name="Title"))
    labels = tf.greater(sequence(40), 0.6)
    predictions = 1.1 - sequence(40)
    summaries.append(pr_curve.op("pr", labels, predictions))
    summaries.append(pr_curve.op("pr", labels, predictions, num_thresholds=7, display_name="d",
                                 weights=sequence(40), collections=["c"]))
    summaries.append(tf.summary.merge_all(scope="outer/(n|w)"))
    return summaries


def compare(ours, theirs):
    """Encoded images differ in their bytes, not in their pixels; tensors in how their elements are written."""
    count = 0
    assert len(ours.value) == len(theirs.value), (ours, theirs)
    for a, b in zip(ours.value, theirs.value):
        if a.HasField("image"):
            x, y = (tf.compat.v2.image.decode_png(v.image.encoded_image_string) for v in (a, b))
            assert x.shape == y.shape
            with tf.Session(graph=x.graph) as session:
                assert np.array_equal(*session.run([x, y]))
            a.image.encoded_image_string = b.image.encoded_image_string = b""
        if a.HasField("tensor"):
            x, y = tf.make_ndarray(a.tensor), tf.make_ndarray(b.tensor)
            assert x.shape == y.shape and x.dtype == y.dtype
            if x.dtype == object:
                assert x.tolist() == y.tolist()
            else:
                np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
            a.ClearField("tensor")
            b.ClearField("tensor")
        assert a == b, f"{a}\n{b}"
        count += 1
    return count


def main():
    graph = tf.Graph()
    with graph.as_default(), tf.Session() as session:
        summaries = build()
        theirs = session.run(summaries)
        names = [s.op.name for s in summaries]
        collected = len(tf.get_collection("summaries"))
    with tempfile.TemporaryDirectory() as directory:
        run = subprocess.run([PROGRAM, directory], text=True, check=True, capture_output=True)
        lines = run.stdout.split("\n")[:-1]
        events = list(tf.train.summary_iterator(glob.glob(directory + "/events*")[0]))[1:]
    assert lines == names + [f"summaries {collected}"], (lines, names)
    count = len(lines)
    seen = set()
    with tf.Graph().as_default():
        for i, (event, bytes_) in enumerate(zip(events, theirs, strict=True)):
            assert event.step == i
            summary = tf.Summary.FromString(bytes_)
            for value in summary.value:  # as tf.summary.FileWriter.add_summary
                if value.HasField("metadata") and value.tag in seen:
                    value.ClearField("metadata")
                if value.HasField("metadata"):
                    seen.add(value.tag)
            count += compare(event.summary, summary)
    print(f"{count} passed, 0 failed")


if __name__ == "__main__":
    sys.exit(main())
