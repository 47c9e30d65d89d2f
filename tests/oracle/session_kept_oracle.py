"""What sessions keep by handle or by name: tensors, sparse tensors, readers' states, arrays of handles, records. Also
errors whose wording programs match. The same graph is run by TensorFlow and by python/millrace."""
import os
import sys
import tempfile

import numpy as np
from shared_oracle import compare, millrace, outcome, raw, same, tf

DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


def session_tensors():
    """TensorFlow keeps a tensor only if its handle is fetched, and returns the handle as an object of its own."""
    failed = 0
    with tf.Graph().as_default() as graph:
        value, handle = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.string, None)
        keep = raw.GetSessionHandle(value=value, name="keep")
        get = raw.GetSessionTensor(handle=handle, dtype=tf.float32)
        delete = raw.DeleteSessionTensor(handle=handle)
        names = [f"keep;{i};{DEVICE}" for i in range(3)]
        runs = [(get, names[0]), (get, names[1]), (get, names[2]), (delete, names[0]), (get, names[0])]
        runs += [(delete, names[0]), (get, names[1]), (get, "none")]
        with tf.Session() as first:
            second = millrace.Session(graph.as_graph_def().SerializeToString())
            for i in range(2):
                kept = first.run(keep, {value: [i, 2]})
                found = second.run(keep.name, {value.name: [i, 2]})
                failed += not (kept.handle == found.decode() == names[i])
            for fetch, name in runs:
                expected = outcome(first, fetch, {handle: name})
                found = outcome(second, fetch.name, {handle.name: name})
                if not same(expected, found, False):
                    print(f"session tensors, {fetch.name} {name}:\n  TensorFlow {expected}\n  millrace   {found}")
                    failed += 1
    return failed


def sparse_map():
    indices, values = tf.placeholder(tf.int64, [None, 2]), tf.placeholder(tf.float32, [None])
    shape, handles = tf.placeholder(tf.int64, [2]), tf.placeholder(tf.int64, None)
    arguments = {"sparse_indices": indices, "sparse_values": values, "sparse_shape": shape, "shared_name": "map"}
    one = raw.AddSparseToTensorsMap(**arguments)
    many = raw.AddManySparseToTensorsMap(**arguments)
    take = list(raw.TakeManySparseFromTensorsMap(sparse_handles=handles, dtype=tf.float32, shared_name="map"))
    wrong = list(raw.TakeManySparseFromTensorsMap(sparse_handles=handles, dtype=tf.int64, shared_name="map"))
    fed = {indices: [[0, 1], [2, 0], [2, 2]], values: [1, 2, 3], shape: [3, 4]}
    runs = [(one, fed), (many, fed), (take, {handles: [0]}), (take, {handles: [0]}), (take, {handles: [3, 1, 2]})]
    runs += [(one, fed), (take, {handles: [[4]]}), (take, {handles: [4, 9]}), (one, fed), (wrong, {handles: [5]})]
    return runs + [(one, fed), (take, {handles: [-1]}), (take, {handles: [6]})]


def reader_state():
    queue = tf.FIFOQueue(9, [tf.string], shapes=[()])
    reader, state = tf.IdentityReader(name="reader"), tf.placeholder(tf.string, None)
    counts = [reader.num_records_produced(), reader.num_work_units_completed()]
    save, restore, read = reader.serialize_state(), reader.restore_state(state), list(reader.read(queue))
    lines = tf.TextLineReader(name="lines")
    first, second = b"\x08\x01\x10\x01\x18\x01\x22\x01X", b"\x08\x02\x10\x02\x18\x02\x22\x01Y"
    runs = [(queue.enqueue_many([["X", "Y", "Z"]]), {}), (save, {}), (read, {}), (save, {}), (counts, {}), (read, {})]
    runs += [(save, {}), (read, {}), (counts, {}), (restore, {state: first}), (counts, {}), (save, {})]
    runs += [(restore, {state: second}), (counts, {}), (restore, {state: b"BOGUS"}), (restore, {state: first[:-1]})]
    runs += [(restore, {state: [first]}), (restore, {state: b"\x08\x03\x10\x02"}), (reader.reset(), {}), (save, {})]
    runs += [(restore, {state: b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"})]
    runs += [(lines.serialize_state(), {}), (lines.restore_state(state), {state: first})]
    return runs + [(lines.restore_state(state), {state: b"BOGUS"}), (list(lines.read_up_to(queue, 0)), {})]


def queue_arrays():
    queues = [tf.FIFOQueue(5, [tf.float32], shapes=[()]) for _ in range(3)]
    index = tf.placeholder(tf.int32, [])
    chosen = tf.QueueBase.from_list(index, queues)
    runs = [(queue.enqueue(float(i)), {}) for i, queue in enumerate(queues)]
    runs += [(chosen.dequeue(), {index: i}) for i in (2, 0, 1)] + [(chosen.dequeue(), {index: i}) for i in (3, -1)]
    pair = tf.stack([queues[0].queue_ref, queues[1].queue_ref])
    last = raw.QueueEnqueueV2(handle=tf.stack([pair[1], pair[0]])[1:][0], components=[7.0])
    return runs + [(last, {}), (queues[0].dequeue(), {}), (tf.shape(pair), {})]


def variant_stack():
    x = tf.sparse_placeholder(tf.float32)
    one = tf.serialize_sparse(x, out_type=tf.variant)
    back = raw.DeserializeSparse(serialized_sparse=tf.stack([one, one]), dtype=tf.float32)
    row = raw.DeserializeSparse(serialized_sparse=tf.gather(tf.stack([one, one]), 1), dtype=tf.float32)
    feeds = {x.indices: [[0, 1], [1, 0]], x.values: [1, 2], x.dense_shape: [2, 3]}
    return [(list(back), feeds), (list(row), feeds)]


def shared_queues():
    def queue(**changes):
        return tf.FIFOQueue(**({"capacity": 5, "dtypes": [tf.float32], "shapes": [[2]], "shared_name": "q"} | changes))

    others = [queue(capacity=6), queue(dtypes=[tf.int32]), queue(shapes=[[3]])]
    first, closing = queue(), queue(shared_name="closing")
    runs = [(first.queue_ref.op, {})] + [(other.queue_ref.op, {}) for other in others]
    runs += [(closing.close(), {}), (closing.enqueue([[1.0, 2.0]]), {}), (closing.close(), {}), (closing.dequeue(), {})]
    return runs + [(tf.RandomShuffleQueue(2, 5, tf.float32).queue_ref.op, {})]


def example(**features):
    kinds = {float: ("float_list", tf.train.FloatList), int: ("int64_list", tf.train.Int64List)}
    made = {}
    for name, values in features.items():
        field, kind = kinds[type(values[0])]
        made[name] = tf.train.Feature(**{field: kind(value=values)})
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


def parse_errors():
    serialized, names = tf.placeholder(tf.string, None), tf.constant(["x1", "x2"])
    kinds = [
        tf.FixedLenFeature([1, 3], tf.float32),
        tf.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
        tf.VarLenFeature(tf.float32),
    ]
    good = example(a=[1.0, 2.0, 3.0])
    bad = [example(a=[1.0]), example(a=[1, 2, 3]), example(b=[1.0])]
    runs = []
    for kind in kinds:
        for given in (None, names):
            parsed = tf.parse_example(serialized, {"a": kind}, example_names=given)["a"]
            fetch = parsed.values if isinstance(kind, tf.VarLenFeature) else parsed
            first = example(a=[1.0, 2.0]) if kind is kinds[1] else good
            runs += [(fetch, {serialized: [first, record]}) for record in bad]
    single = tf.parse_single_example(serialized, {"a": kinds[0]})["a"]
    return runs + [(single, {serialized: record}) for record in bad]


def json_errors():
    text = tf.placeholder(tf.string, None)
    decoded = tf.decode_json_example(text)
    value = '{"features": {"feature": {"a": {%s}}}}'
    bad = ["", "{", "[]", '{"bad": 1}', '{"features": {}} x', value % '"int64List": {"value": [1.5]}']
    bad += [value % '"bytesList": {"value": ["***"]}', value % '"floatList": {"value": [1e50]}', value % '"x": 1']
    bad += [value % '"int64List": {}, "floatList": {}', value % '"int64List": {"value": [007]}', '{"features": [}']
    return [(decoded, {text: example}) for example in bad]


def window_errors():
    x, k = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    fetches = [tf.nn.conv2d(x, k, strides, "SAME") for strides in ([2, 1, 1, 1], [1, 1, 1, 2])]
    fetches += [tf.nn.max_pool(x, [2, 1, 1, 1], [1, 1, 1, 1], "SAME"), tf.nn.lrn(x, depth_radius=-1)]
    fetches += [tf.nn.avg_pool(x, [2, 1, 1, 1], [1, 1, 1, 1], "SAME")]
    fetches += [tf.nn.max_pool3d(x, size, [1] * 5, "SAME") for size in ([2, 1, 1, 1, 1], [1, 1, 1, 1, 2])]
    return [(fetch, {}) for fetch in fetches]


def sums_and_extremes():
    x = tf.placeholder(tf.float32, None)
    total = tf.accumulate_n([x, x * 2], shape=[3])
    extremes = [tf.argmax(x), tf.argmin(x)]
    values = [[np.nan, 1.0, 0.5], [1.0, np.nan, 3.0], [np.nan] * 3, [2.0, 2.0, 1.0]]
    return [(total, {x: [1, 2, 3]})] + [(extremes, {x: value}) for value in values]


def variable_handle():
    v = tf.get_variable("v", [], initializer=tf.ones_initializer(), use_resource=True)
    return [(v.initializer, {}), (tf.guarantee_const(v.handle), {}), (tf.guarantee_const(v.read_value()), {})]


def missing_checkpoints():
    x, path = tf.constant([1.0, 2.0]), os.path.join(tempfile.mkdtemp(), "c")
    save = raw.SaveV2(prefix=path, tensor_names=["x"], shape_and_slices=[""], tensors=[x])
    old = raw.Save(filename=path + "1", tensor_names=["x"], data=[x])
    runs = [(save, {}), (old, {})]
    for prefix, name, dtype in ((path, "x", tf.float32), (path, "y", tf.float32), (path + "n", "x", tf.float32)):
        runs += [(raw.RestoreV2(prefix=prefix, tensor_names=[name], shape_and_slices=[""], dtypes=[dtype]), {})]
        if prefix != path:
            runs += [(raw.Restore(file_pattern=prefix, tensor_name=name, dt=dtype), {})]
    runs += [(raw.Restore(file_pattern=path + "1", tensor_name="y", dt=tf.float32), {})]
    for shape_and_slice in ("2 -", "2 1,1", "3 0,2", "4 -", "2 1 -:-"):
        arguments = {"prefix": path, "tensor_names": ["x"], "shape_and_slices": [shape_and_slice]}
        runs += [(raw.RestoreV2(**arguments, dtypes=[tf.float32]), {})]
    runs += [(tf.read_file(os.path.dirname(path)), {})]
    return runs + [(raw.Restore(file_pattern=path + "1", tensor_name="x", dt=tf.int32), {})]


def summary_errors():
    tags, values = tf.placeholder(tf.string, None), tf.placeholder(tf.float32, None)
    scalar, histogram = raw.ScalarSummary(tags=tags, values=values), raw.HistogramSummary(tag=tags, values=values)
    merge = raw.MergeSummary(inputs=[scalar, scalar])
    runs = [(scalar, {tags: "a", values: [1]}), (scalar, {tags: ["a", "b"], values: [1]})]
    return runs + [(histogram, {tags: ["a"], values: 1}), (merge, {tags: "a", values: 1})]


def python_functions():
    def fail():
        raise ValueError("bad")

    results = [lambda: (1, 2), lambda: np.float32(1), lambda: {}, lambda: None, fail, lambda: 3]
    return [(tf.py_func(function, [], tf.int64), {}) for function in results]


def record_input():
    """RecordInput draws in an order of its own: every epoch has each record once."""
    directory = tempfile.mkdtemp()
    for i in range(3):
        with tf.io.TFRecordWriter(os.path.join(directory, f"{i}.tfrecord")) as writer:
            for j in range(4):
                writer.write(f"{4 * i + j}".encode())
    failed = 0
    with tf.Graph().as_default() as graph:
        for buffer, shift in ((1, 0.0), (100, 0.3)):
            records = raw.RecordInput(
                file_pattern=f"{directory}/*", file_buffer_size=buffer, batch_size=3, file_shuffle_shift_ratio=shift
            )
            session = millrace.Session(graph.as_graph_def().SerializeToString())
            for epoch in range(3):
                drawn = sorted(int(record) for _ in range(4) for record in session.run(records.name))
                if drawn != list(range(12)):
                    print(f"RecordInput, buffer {buffer}, epoch {epoch}: {drawn}")
                    failed += 1
    return failed


CASES = [sparse_map, reader_state, queue_arrays, variant_stack, shared_queues, parse_errors]
CASES += [window_errors, sums_and_extremes, variable_handle, missing_checkpoints, summary_errors, python_functions]
LOOSE = [json_errors]  # only the class of the error


def main():
    failures = [compare(build.__name__, build, build in LOOSE) for build in CASES + LOOSE]
    failures += [session_tensors(), record_input()]
    failed = sum(count > 0 for count in failures)
    print(f"{len(failures) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
