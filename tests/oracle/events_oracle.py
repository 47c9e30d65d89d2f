"""TensorBoard reads the values, hyperparameters and projector's configuration of millrace, which reads the event files
of tf.summary.FileWriter."""
import glob
import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf
from google.protobuf import text_format
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.hparams import api_pb2, metadata as hparams_metadata, summary as hparams
from tensorboard.plugins.projector import projector_config_pb2

PROGRAM = os.path.join(os.environ["MILLRACE_ORACLE"], "events_values")
passed = 0


def check(condition, *what):
    global passed
    assert condition, what
    passed += 1


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], text=True, check=True, capture_output=True).stdout


def check_values(directory):
    values = (np.arange(100) * 29 % 41).astype(np.float32) / np.float32(41) - np.float32(0.5)
    accumulator = event_accumulator.EventAccumulator(directory, {event_accumulator.TENSORS: 0})
    accumulator.Reload()
    check([(e.step, e.value) for e in accumulator.Scalars("loss")] == [(1, 0.5)])
    expected = tf.Summary.FromString(tf.raw_ops.HistogramSummary(tag="weights", values=values).numpy())
    histogram = accumulator.Histograms("weights")[0].histogram_value
    check(list(histogram.bucket) == list(expected.value[0].histo.bucket), histogram)
    check(list(histogram.bucket_limit) == list(expected.value[0].histo.bucket_limit))
    pixels = (np.arange(60) * 4).astype(np.uint8).reshape(4, 5, 3)
    for tag in ["image", "encoded"]:
        image = accumulator.Images(tag)[0]
        check((image.width, image.height) == (5, 4))
        check(np.array_equal(tf.image.decode_png(image.encoded_image_string).numpy(), pixels))
    audio = accumulator.Audio("audio")[0]
    check((audio.sample_rate, audio.length_frames, audio.content_type) == (8000, 50, "audio/wav"))
    wave, rate = tf.audio.decode_wav(audio.encoded_audio_string)
    check(rate == 8000 and np.allclose(wave, values.reshape(50, 2), atol=1e-4))
    texts = [tf.make_ndarray(e.tensor_proto).item() for e in accumulator.Tensors("text")]
    check(texts == [b"**first**", b"second"], texts)
    check("text" in accumulator.PluginTagToContent("text"))
    check(accumulator.Tags()["run_metadata"] == ["run"])
    files = sorted(glob.glob(directory + "/events*"))
    check(len(files) == 2 and all(f.endswith(".mine") for f in files), files)


def expected_hparams():
    info, metric, interval = api_pb2.HParamInfo, api_pb2.MetricInfo, api_pb2.Interval
    optimizer = info(name="optimizer", type=api_pb2.DATA_TYPE_STRING, display_name="Optimizer", description="which")
    optimizer.domain_discrete.extend(["adam", "sgd"])
    rate = info(name="rate", type=api_pb2.DATA_TYPE_FLOAT64, domain_interval=interval(min_value=0.0625, max_value=0.5))
    infos = [rate, optimizer, info(name="is_wide", type=api_pb2.DATA_TYPE_BOOL)]
    metrics = [
        metric(name=api_pb2.MetricName(tag="loss"), dataset_type=api_pb2.DATASET_TRAINING),
        metric(name=api_pb2.MetricName(group="eval", tag="accuracy"), display_name="Accuracy"),
    ]
    run_values = {"rate": 0.125, "optimizer": "adam", "is_wide": True}
    return [
        hparams.experiment_pb(infos, metrics, user="me", description="search", time_created_secs=100),
        hparams.session_start_pb(run_values, group_name="g", start_time_secs=101),
        hparams.session_end_pb(api_pb2.STATUS_SUCCESS, end_time_secs=102),
    ]


def check_hparams(directory):
    events = []
    for path in glob.glob(directory + "/events*"):
        events += [e for e in tf.train.summary_iterator(path) if "_hparams_" in str(e)]
    parse = [hparams_metadata.parse_experiment_plugin_data, hparams_metadata.parse_session_start_info_plugin_data,
             hparams_metadata.parse_session_end_info_plugin_data]
    check(len(events) == 3)
    for event, expected, parse_content in zip(events, expected_hparams(), parse):
        ours, theirs = event.summary.value[0], expected.value[0]
        contents = [parse_content(v.metadata.plugin_data.content) for v in (ours, theirs)]
        check(contents[0] == contents[1], contents)
        ours.metadata.plugin_data.content = theirs.metadata.plugin_data.content = b""
        check(ours == theirs, ours, theirs)


def check_projector(directory):
    expected = projector_config_pb2.ProjectorConfig(model_checkpoint_path="model.ckpt-7")
    expected.embeddings.add(tensor_name="embedding:0", metadata_path='labels "x"\\\né.tsv')
    other = expected.embeddings.add(tensor_name="other", tensor_path="other.tsv", tensor_shape=[10, 3])
    other.sprite.image_path = "sprite.png"
    other.sprite.single_image_dim.extend([16, 12])
    with open(directory + "/projector_config.pbtxt", "rb") as file:
        text = file.read()
    check(text_format.Parse(text, projector_config_pb2.ProjectorConfig()) == expected, text)
    check(text.decode() == text_format.MessageToString(expected, as_utf8=False), text)


KINDS = ["", "file_version", "graph_def", "summary", "log_message", "session_log", "tagged_run_metadata",
         "meta_graph_def"]


def their_events(directory):
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.constant(np.arange(240, dtype=np.float32) / 240)
        writer = tf.summary.FileWriter(directory, graph)
        summaries = [
            tf.summary.scalar("scalar", x[3]), tf.summary.histogram("histogram", x),
            tf.summary.image("image", tf.reshape(x, [2, 10, 4, 3])),
            tf.summary.audio("audio", tf.reshape(x, [2, 120]), 44100.0),
            tf.summary.text("text", tf.constant(["a", "b"])),
            tf.summary.tensor_summary("tensor", tf.reshape(x, [6, 40])),
        ]
        for step, summary in enumerate(session.run(summaries) * 2):
            writer.add_summary(summary, step)
        writer.add_summary(session.run(tf.summary.merge(summaries)), -5)
        writer.add_session_log(tf.SessionLog(status=tf.SessionLog.CHECKPOINT, checkpoint_path="c-1"), 3)
        writer.add_run_metadata(tf.RunMetadata(), "tag", 4)
        writer.close()
    return glob.glob(directory + "/events*")[0]


def expected_line(event):
    kind = event.WhichOneof("what")
    size, tag, session, path = 0, "-", 0, "-"
    if kind in ("graph_def", "meta_graph_def", "file_version"):
        size = len(getattr(event, kind))
    if kind == "session_log":
        session, path = event.session_log.status, event.session_log.checkpoint_path
    if kind == "tagged_run_metadata":
        tag, size = event.tagged_run_metadata.tag, len(event.tagged_run_metadata.run_metadata)
    return f"{KINDS.index(kind)} {event.step} {event.wall_time:.17g} {size} {tag} {session} {path}"


def expected_value(v):
    data = v.metadata.plugin_data
    line = f"  {v.tag} [{data.plugin_name}|{v.metadata.display_name}|{data.content.decode()}] "
    kind = v.WhichOneof("value")
    if kind == "simple_value":
        return line + f"scalar {v.simple_value:.9g}"
    if kind == "image":
        i = v.image
        return line + f"image {i.height} {i.width} {i.colorspace} {len(i.encoded_image_string)}"
    if kind == "audio":
        a = v.audio
        return line + (f"audio {a.sample_rate:g} {a.num_channels} {a.length_frames} {len(a.encoded_audio_string)} "
                       f"{a.content_type}")
    if kind == "histo":
        h, total = v.histo, 0.0
        for i, count in enumerate(h.bucket):
            total += count * (i + 1)
        return line + f"histogram {h.min:.17g} {h.max:.17g} {h.num:.17g} {h.sum:.17g} {len(h.bucket)} {total:.17g}"
    array = tf.make_ndarray(v.tensor)
    name = "string" if array.dtype == object else "float"
    return line + f"tensor {name} [{','.join(map(str, array.shape))}]"


def check_reader(directory):
    path = their_events(directory)
    lines = run("read", path).split("\n")[:-1]
    expected = []
    for event in tf.train.summary_iterator(path):
        expected.append(expected_line(event))
        expected += [expected_value(v) for v in event.summary.value]
    check(len(lines) == len(expected) > 30, len(lines), len(expected))
    for ours, theirs in zip(lines, expected):
        check(ours == theirs, ours, theirs)


def main():
    with tempfile.TemporaryDirectory() as directory:
        run("write", directory)
        check_values(directory)
        check_hparams(directory)
        check_projector(directory)
    with tempfile.TemporaryDirectory() as directory:
        check_reader(directory)
    print(f"{passed} passed, 0 failed")


if __name__ == "__main__":
    sys.exit(main())
