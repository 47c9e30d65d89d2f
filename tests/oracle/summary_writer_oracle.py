"""The operators of tf.contrib.summary write the same events as TensorFlow."""
import glob
import os
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
import numpy as np
import tensorflow as tf

import millrace

tf1, raw = tf.compat.v1, tf.raw_ops
rng = np.random.default_rng(5)


def build():
    """The operations, which are run one after the other; the first one takes the directory."""
    writer = raw.SummaryWriter(shared_name="writer", container="")
    directory = tf1.placeholder(tf.string, [], name="directory")
    events = tf1.summary.Summary(value=[tf1.summary.Summary.Value(tag="raw", simple_value=3.5)])
    event = tf1.Event(step=77, wall_time=1234.5, summary=events)
    numbers = rng.normal(size=[40]).astype(np.float32)
    pixels = rng.normal(size=[4, 5, 6, 3]).astype(np.float32)
    pixels[1, 2, 3, 1] = np.nan
    plugin = tf1.SummaryMetadata(display_name="shown")
    plugin.plugin_data.plugin_name = "plugin"
    operations = [
        raw.CreateSummaryFileWriter(writer=writer, logdir=directory, max_queue=10, flush_millis=10000,
                                    filename_suffix=".end"),
        raw.CreateSummaryFileWriter(writer=writer, logdir=directory, max_queue=1, flush_millis=1,
                                    filename_suffix=".other"),
    ]
    for kind in (tf.float32, tf.float64, tf.int32, tf.int64, tf.uint8, tf.half):
        operations.append(raw.WriteScalarSummary(writer=writer, step=3, tag="loss", value=tf.cast(2.0 / 3 * 100, kind)))
    operations += [
        raw.WriteHistogramSummary(writer=writer, step=4, tag="weights", values=numbers),
        raw.WriteHistogramSummary(writer=writer, step=5, tag="counts", values=np.int32([1, 5, 5, -7])),
        raw.WriteImageSummary(writer=writer, step=6, tag="image", tensor=pixels, bad_color=np.uint8([0, 255, 9])),
        raw.WriteImageSummary(writer=writer, step=6, tag="one", tensor=np.uint8(rng.integers(0, 256, [2, 4, 5, 1])),
                              max_images=1,
                              bad_color=np.uint8([0, 255, 9])),
        raw.WriteAudioSummary(writer=writer, step=7, tag="audio", tensor=np.tanh(numbers).reshape(2, 20),
                              sample_rate=8000.0),
        raw.WriteSummary(writer=writer, step=8, tensor=numbers.reshape(5, 8), tag="tensor",
                         summary_metadata=plugin.SerializeToString()),
        raw.WriteRawProtoSummary(writer=writer, step=9, tensor=events.SerializeToString()),
        raw.WriteGraphSummary(writer=writer, step=10,
                              tensor=tf1.get_default_graph().as_graph_def().SerializeToString()),
        raw.ImportEvent(writer=writer, event=event.SerializeToString()),
        raw.FlushSummaryWriter(writer=writer),
        raw.CloseSummaryWriter(writer=writer),
    ]
    return directory, operations


def events_of(session, directory, operations):
    with tempfile.TemporaryDirectory() as path:
        for operation in operations:
            session.run(operation, {directory: os.path.join(path, "log")})
        (file,) = glob.glob(os.path.join(path, "log", "*"))
        assert file.endswith(".end"), file
        return list(tf1.train.summary_iterator(file))


def comparable(events):
    """Without times, and with the pixels of images and attributes in order."""
    for event in events:
        if event.step != 77:
            event.wall_time = 0
        event.ClearField("source_metadata")
        if event.HasField("graph_def"):
            definition = tf1.GraphDef.FromString(event.graph_def)
            event.graph_def = definition.SerializeToString(deterministic=True)
        for value in event.summary.value:
            if value.HasField("image"):
                image = tf.io.decode_png(value.image.encoded_image_string).numpy()
                value.image.encoded_image_string = image.tobytes()
    return events


def main():
    graph = tf.Graph()
    with graph.as_default():
        directory, operations = build()
    with tf1.Session(graph=graph) as session:
        theirs = events_of(session, directory, operations)
    with millrace.Session(graph.as_graph_def().SerializeToString()) as session:
        ours = events_of(session, directory.name, [o.name for o in operations])
    ours, theirs = comparable(ours), comparable(theirs)
    failed = abs(len(ours) - len(theirs))
    for a, b in zip(ours, theirs):
        if a != b:
            failed += 1
            print(f"ours:\n{a}\nTensorFlow's:\n{b}")
    print(f"{len(theirs) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
