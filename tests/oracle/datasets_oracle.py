"""Datasets and iterators as nodes of TensorFlow 1 graphs give TensorFlow's elements, in TensorFlow's order."""
import inspect
import os
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import numpy as np
import tensorflow as tf
from tensorflow.python.data.ops import dataset_ops

import millrace

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.disable_control_flow_v2()
tf1.logging.set_verbosity(tf1.logging.ERROR)
Dataset = tf1.data.Dataset
experimental = tf.data.experimental
generator = np.random.default_rng(int(os.environ.get("MILLRACE_TEST_SEED", "1")))
POINTS = generator.normal(size=(20, 3)).astype(np.float32)
NUMBERS = np.arange(20)
DIRECTORY = tempfile.mkdtemp()
LINES, RECORDS = os.path.join(DIRECTORY, "lines.txt"), os.path.join(DIRECTORY, "records")
with open(LINES, "w") as file:
    file.write("\n".join(f"line {i}" for i in range(12)) + "\n")
with tf.io.TFRecordWriter(RECORDS) as writer:
    for i in range(9):
        writer.write(b"record %d" % i)
with open(RECORDS, "rb") as file:
    content = file.read()
TRUNCATED, DAMAGED = RECORDS + " truncated", RECORDS + " damaged"
with open(TRUNCATED, "wb") as file:
    file.write(content[:-3])
with open(DAMAGED, "wb") as file:
    file.write(content[:50] + bytes([content[50] ^ 1]) + content[51:])


CSV = os.path.join(DIRECTORY, "table.csv")
with open(CSV, "w") as file:
    file.write('a,b,c,d\n1,2.5,"x,y",7\n,NA,z,8\n3,-1,"q ""r""",9\n')


def raw(name, inputs, spec=tf.TensorSpec([], tf.int64), **arguments):
    """A dataset of an operator that no function of Python adds to graphs."""
    dtypes, shapes = zip(*[(s.dtype, s.shape) for s in tf.nest.flatten(spec)])
    inputs = [i._variant_tensor if isinstance(i, tf.data.Dataset) else i for i in inputs]
    operator = getattr(tf.raw_ops, name)
    names = [n for n in inspect.signature(operator).parameters][: len(inputs)]
    variant = operator(**dict(zip(names, inputs)), output_types=dtypes, output_shapes=shapes, **arguments)
    return dataset_ops._VariantDataset(variant, spec)


def raw_files(name):
    variant = getattr(tf.raw_ops, name)(patterns=[RECORDS, CSV, os.path.join(DIRECTORY, "[lr]*")])
    return dataset_ops._VariantDataset(variant, tf.TensorSpec([], tf.string))


def integer(value):
    return tf.constant(value, tf.int64)


def words(*texts):
    for i, text in enumerate(texts):
        yield text, np.arange(i), np.float32(i)


EXAMPLES = os.path.join(DIRECTORY, "examples")
FEATURES = {"words": tf.io.VarLenFeature(tf.string), "x": tf.io.FixedLenFeature([2], tf.float32),
            "ids": tf.io.VarLenFeature(tf.int64), "y": tf.io.FixedLenFeature([], tf.int64, -1)}
with tf.io.TFRecordWriter(EXAMPLES) as writer:
    for i in range(8):
        example = tf.train.Example()
        example.features.feature["words"].bytes_list.value.extend([b"w%d" % k for k in range(i % 3)])
        example.features.feature["x"].float_list.value.extend([i, i / 2])
        example.features.feature["ids"].int64_list.value.extend(range(i % 4))
        if i % 2:
            example.features.feature["y"].int64_list.value.append(i)
        writer.write(example.SerializeToString())


def sparse(x):
    x = tf.cast(x, tf.float32)
    return tf.SparseTensor([[0, 1], [2, 3]], tf.stack([x, x + 1]), [3, 4])


def slices():
    return Dataset.from_tensor_slices((POINTS, NUMBERS))


DATASETS = {
    "slices": lambda: slices().batch(6),
    "shuffle": lambda: Dataset.from_tensor_slices(NUMBERS).shuffle(7, seed=3).repeat(2).batch(5),
    "shuffle everything": lambda: Dataset.from_tensor_slices(NUMBERS).shuffle(100, seed=9).repeat(3),
    "shuffle one": lambda: Dataset.from_tensor_slices(NUMBERS).shuffle(1, seed=9),
    "shuffle the same": lambda: Dataset.range(30).shuffle(7, seed=3, reshuffle_each_iteration=False).repeat(2),
    "shuffle of shuffle": lambda: Dataset.range(50).shuffle(10, seed=1).shuffle(20, seed=2).batch(7),
    "shuffle nothing": lambda: Dataset.range(0).shuffle(10, seed=1),
    "map": lambda: slices().map(lambda x, y: (x * 2.0 + tf.cast(y, tf.float32), y + 1)).batch(4, drop_remainder=True),
    "parallel map": lambda: slices().map(lambda x, y: {"a": tf.reduce_sum(x), "b": y}, 2).prefetch(2),
    "map with captures": lambda: Dataset.range(5).map(lambda x: x + tf.cast(tf.size(POINTS), tf.int64)),
    "map with random numbers": lambda: Dataset.range(6).map(lambda x: tf.random.uniform([2], seed=7)),
    "map with cond": lambda: Dataset.range(6).map(lambda x: tf.cond(x > 2, lambda: x * 10, lambda: -x)),
    "map with strings": lambda: tf1.data.TextLineDataset(LINES).map(lambda x: tf.strings.join([x, "!"])),
    "filter": lambda: Dataset.range(20).filter(lambda x: tf.equal(x % 3, 0)),
    "flat_map": lambda: Dataset.range(4).flat_map(Dataset.range),
    "interleave": lambda: Dataset.range(4).interleave(lambda x: Dataset.range(x * 10, x * 10 + 4), 2, 2),
    "parallel interleave": lambda: Dataset.range(4).interleave(lambda x: Dataset.range(x * 10, x * 10 + 4), 2, 3, 2),
    "zip": lambda: Dataset.zip((Dataset.range(5), Dataset.range(10, 20))),
    "concatenate": lambda: Dataset.range(3).concatenate(Dataset.range(10, 12)),
    "lines": lambda: tf1.data.TextLineDataset(LINES).skip(2).take(5),
    "truncated records": lambda: tf1.data.TFRecordDataset([TRUNCATED, RECORDS]),
    "damaged records": lambda: tf1.data.TFRecordDataset([RECORDS, DAMAGED, RECORDS]),
    "damaged records without their files": lambda: tf1.data.TFRecordDataset([RECORDS, DAMAGED, RECORDS]).apply(
        experimental.ignore_errors()
    ),
    "records": lambda: tf1.data.TFRecordDataset([RECORDS, RECORDS]).shard(3, 1),
    "fixed length": lambda: tf1.data.FixedLengthRecordDataset(LINES, 5, 0, 1).take(4),
    "padded_batch": lambda: Dataset.range(1, 9).map(lambda x: tf.fill([x], x)).padded_batch(3, padded_shapes=[None]),
    "cache": lambda: Dataset.range(5).map(lambda x: x * x).cache().repeat(2),
    "scan": lambda: Dataset.range(6).apply(experimental.scan(np.int64(0), lambda s, x: (s + x, s * x))),
    "map_and_batch": lambda: Dataset.range(10).apply(experimental.map_and_batch(lambda x: x * 2, 4)),
    "unbatch": lambda: Dataset.from_tensors(POINTS).apply(experimental.unbatch()),
    "unique": lambda: Dataset.from_tensor_slices([1, 2, 1, 3, 2]).apply(experimental.unique()),
    "take_while": lambda: Dataset.range(9).apply(experimental.take_while(lambda x: x < 4)),
    "ignore_errors": lambda: Dataset.from_tensor_slices([1.0, 0.0, 2.0])
    .map(lambda x: tf1.check_numerics(1.0 / x, "bad"))
    .apply(experimental.ignore_errors()),
    "nothing": lambda: Dataset.range(0),
    "generator": lambda: Dataset.from_generator(
        lambda: words("a", "bc", ""), (tf.string, tf.int64, tf.float32), ([], [None], [])),
    "generator with arguments": lambda: Dataset.from_generator(
        lambda n: iter(range(n)), tf.int32, [], args=(tf.constant(6),)).map(lambda x: x * 2).repeat(2).batch(5),
    "empty generator": lambda: Dataset.from_generator(lambda: iter([]), tf.int32, []),
    "generators in interleave": lambda: Dataset.range(3).interleave(
        lambda i: Dataset.from_generator(lambda n: (n * 10 + k for k in range(3)), tf.int64, [], args=(i,)), 2),
    "function that ends": lambda: Dataset.range(100).map(
        lambda x: tf1.py_func(lambda i: next(iter([i][: int(i < 4)])), [x], tf.int64)),
    "random": lambda: raw("RandomDataset", [integer(3), integer(5)]).take(20).repeat(2),
    "sample_from_datasets": lambda: experimental.sample_from_datasets(
        [Dataset.range(i * 100, i * 100 + 8) for i in range(3)], [0.2, 0.5, 0.3], seed=4),
    "choose_from_datasets": lambda: experimental.choose_from_datasets(
        [Dataset.range(i * 100, i * 100 + 4) for i in range(3)], Dataset.range(3).repeat(6)),
    "csv": lambda: experimental.CsvDataset(
        [CSV, CSV], [tf.constant([5], tf.int32), 1.5, tf.constant([], tf.string), tf.int64], header=True,
        na_value="NA"),
    "csv columns": lambda: experimental.CsvDataset(CSV, ["q", tf.int64], header=True, select_cols=[2, 3]),
    "csv without columns": lambda: experimental.CsvDataset(CSV, ["q", tf.int64], header=True, exclude_cols=[0, 1]),
    "make_csv_dataset": lambda: experimental.make_csv_dataset(
        CSV, 2, column_defaults=[[1], [1.0], [""], [0]], na_value="NA", num_epochs=2, shuffle=False, label_name="d"),
    "sliding window": lambda: raw("SlidingWindowDataset", [Dataset.range(11), integer(3), integer(2), integer(2)],
                                  tf.TensorSpec([None], tf.int64)),
    "sparse tensors": lambda: Dataset.range(7).map(sparse).filter(lambda s: s.values[0] < 5.0).map(
        lambda s: tf.SparseTensor(s.indices, s.values * 2, s.dense_shape)).batch(3),
    "sparse words": lambda: tf1.data.TextLineDataset(LINES).map(lambda x: tf1.string_split([x])).batch(4).unbatch(),
    "sparse slices": lambda: Dataset.from_tensor_slices(
        tf.sparse.from_dense(np.arange(24).reshape(4, 3, 2) % 5)).shuffle(3, seed=4).repeat(2).batch(3),
    "one sparse tensor": lambda: Dataset.from_tensors((tf.sparse.from_dense([[0, 1], [2, 0]]), 5)).repeat(2),
    "cached sparse tensors": lambda: Dataset.range(5).map(lambda x: (x, sparse(x))).cache().repeat(2).prefetch(1),
    "sparse and dense in interleave": lambda: Dataset.range(3).interleave(
        lambda i: Dataset.range(2).map(lambda k: {"a": sparse(i * 2 + k), "b": k}), 2),
    "zip of sparse tensors": lambda: Dataset.zip((Dataset.range(4), Dataset.range(4).map(sparse))),
    "parsed examples": lambda: tf1.data.TFRecordDataset(EXAMPLES).map(
        lambda x: tf1.parse_single_example(x, FEATURES)).batch(3),
    "parsed batches": lambda: tf1.data.TFRecordDataset(EXAMPLES).batch(3).map(
        lambda x: tf1.parse_example(x, FEATURES)),
    "parse_example_dataset": lambda: tf1.data.TFRecordDataset(EXAMPLES).batch(3).apply(
        experimental.parse_example_dataset(FEATURES)),
    "make_batched_features_dataset": lambda: experimental.make_batched_features_dataset(
        EXAMPLES, 4, FEATURES, num_epochs=2, shuffle_seed=3),
    "dense_to_sparse_batch": lambda: Dataset.range(1, 9).map(lambda x: tf.fill([x % 4], x)).apply(
        experimental.dense_to_sparse_batch(3, [5])),
    "windows": lambda: Dataset.range(10).window(3, 2).flat_map(lambda w: w.batch(3)),
    "windows of several components": lambda: slices().window(4, 3, 2, drop_remainder=True).flat_map(
        lambda x, y: Dataset.zip((x.batch(4), y.batch(4)))),
    "filtered windows": lambda: Dataset.range(20).window(3).filter(
        lambda w: tf.equal(w.reduce(np.int64(0), lambda s, x: s + x) % 2, 0)).flat_map(lambda w: w.batch(3)),
    "stages between windows and flat_map": lambda: Dataset.range(30).window(3, 2).skip(2).take(6).shuffle(
        4, seed=3).repeat(2).prefetch(1).flat_map(lambda w: w),
    "windows in zip and interleave": lambda: Dataset.zip((Dataset.range(3), Dataset.range(9).window(3))).interleave(
        lambda i, w: w.map(lambda x: (i, x)), 2),
    "windows of structures": lambda: Dataset.range(7).map(lambda x: {"a": x, "b": (x * 2, x * 3)}).window(2).map(
        lambda w: {"c": w["a"], "d": w["b"][1]}).flat_map(lambda w: Dataset.zip((w["c"], w["d"]))),
    "windows of windows": lambda: Dataset.range(12).window(2).window(3).flat_map(
        lambda w: w.flat_map(lambda v: v.batch(2)).batch(3)),
    "map to datasets": lambda: Dataset.range(4).map(Dataset.range).flat_map(lambda d: d.map(lambda x: x + 1)),
    "concatenated windows": lambda: Dataset.range(4).window(2).concatenate(Dataset.range(4, 9).window(2)).flat_map(
        lambda w: w.batch(2)),
    "group_by_window": lambda: Dataset.range(20).apply(
        experimental.group_by_window(lambda x: x % 3, lambda key, w: w.batch(4), 4)),
    "bucket_by_sequence_length": lambda: Dataset.range(1, 14).map(lambda x: tf.fill([x * 5 % 7], x)).apply(
        experimental.bucket_by_sequence_length(tf.size, [2, 4], [2, 3, 2])),
    **{f"Experimental{name}": lambda name=name, inputs=inputs: raw(f"Experimental{name}", inputs())
       for name, inputs in {
           "UnbatchDataset": lambda: [Dataset.range(6).batch(4)],
           "UniqueDataset": lambda: [Dataset.range(4).repeat(2)],
           "IgnoreErrorsDataset": lambda: [Dataset.range(4)],
           "NonSerializableDataset": lambda: [Dataset.range(4)],
           "MaxIntraOpParallelismDataset": lambda: [Dataset.range(4), integer(1)],
           "PrivateThreadPoolDataset": lambda: [Dataset.range(4), integer(1)],
           "LatencyStatsDataset": lambda: [Dataset.range(4), "tag"],
           "BytesProducedStatsDataset": lambda: [Dataset.range(4), "tag"],
           "ThreadPoolDataset": lambda: [Dataset.range(4), tf.raw_ops.ThreadPoolHandle(
               num_threads=2, display_name="threads")],
       }.items()},
    "group_by_reducer": lambda: Dataset.range(20).map(lambda x: (x * 7 % 5, x)).apply(experimental.group_by_reducer(
        lambda key, x: key, experimental.Reducer(
            lambda key: (key, np.int64(0), np.float32(1)),
            lambda s, e: (s[0], s[1] + e[1], s[2] * 1.5), lambda key, total, power: (key, total, power)))),
    "group_by_reducer of nothing": lambda: Dataset.range(0).apply(experimental.group_by_reducer(
        lambda x: x, experimental.Reducer(lambda key: key, lambda s, e: s + e, lambda s: s))),
    "sampling": lambda: raw("SamplingDataset", [Dataset.range(60), 0.4, integer(3), integer(7)]).repeat(2),
    "matching files": lambda: raw_files("MatchingFilesDataset"),
    "experimental matching files": lambda: raw_files("ExperimentalMatchingFilesDataset"),
    "shuffle v3": lambda: raw("ShuffleDatasetV3", [Dataset.range(30), integer(7), integer(3), integer(9),
                                                   tf.raw_ops.DummySeedGenerator()]).repeat(2),
    "shuffle v3 the same": lambda: raw("ShuffleDatasetV3", [Dataset.range(30), integer(7), integer(3), integer(9),
                                                            tf.raw_ops.DummySeedGenerator()],
                                       reshuffle_each_iteration=False).repeat(2),
    "shuffle and repeat v2": lambda: raw("ShuffleAndRepeatDatasetV2", [
        Dataset.range(9), integer(20), integer(3), integer(9), integer(3), tf.raw_ops.DummySeedGenerator()]),
    "cache v2": lambda: raw("CacheDatasetV2", [Dataset.range(5), "", tf.raw_ops.DummyMemoryCache()]).repeat(2),
    "negative counts": lambda: Dataset.range(4).take(-1).repeat(2),
}


# TensorFlow refuses functions that capture stateful nodes, and so one-shot iterators.
WITH_RESOURCES = {"ExperimentalThreadPoolDataset", "shuffle v3", "shuffle v3 the same", "shuffle and repeat v2",
                  "cache v2"}


def drain(session, fetches, initializer=None, feeds=None):
    elements = []
    if initializer is not None:
        session.run(initializer, feeds)
    for _ in range(200):
        try:
            elements.append(session.run(fetches))
        except (tf.errors.OutOfRangeError, millrace.errors.OutOfRangeError):
            break
        except (tf.errors.DataLossError, millrace.errors.DataLossError):
            elements.append([b"damaged"])
    return elements


def same(ours, theirs):
    assert len(ours) == len(theirs), f"{len(ours)} elements, TensorFlow has {len(theirs)}"
    for number, (a, b) in enumerate(zip(ours, theirs)):
        for left, right in zip(a, b):
            left, right = np.asarray(left), np.asarray(right)
            equal = left.shape == right.shape and left.dtype.kind == right.dtype.kind and np.array_equal(left, right)
            if right.dtype.kind == "f":
                equal = left.shape == right.shape and np.allclose(left, right, rtol=1e-6)
            assert equal, f"element {number} is {left!r}, TensorFlow's {right!r}"


def check_dataset(make, is_one_shot):
    graph = tf.Graph()
    with graph.as_default():
        tf1.set_random_seed(42)
        dataset = make()
        if is_one_shot:
            iterator = tf1.data.make_one_shot_iterator(dataset)
        else:
            iterator = tf1.data.make_initializable_iterator(dataset)
        flat = tf.nest.flatten(iterator.get_next(), expand_composites=True)
    initializer = None if is_one_shot else iterator.initializer
    with tf1.Session(graph=graph) as session:
        theirs = [drain(session, flat, initializer) for _ in range(1 if is_one_shot else 2)]
    with millrace.Session(graph.as_graph_def().SerializeToString()) as session:
        names = [t.name for t in flat]
        name = None if initializer is None else initializer.name
        for expected in theirs:
            same(drain(session, names, name), expected)


def check_reinitializable():
    graph = tf.Graph()
    with graph.as_default():
        training, validation = Dataset.range(4), Dataset.range(10, 13).map(lambda x: x * 2)
        iterator = tf1.data.Iterator.from_structure(tf.int64, [])
        element = iterator.get_next()
        starts = [iterator.make_initializer(training), iterator.make_initializer(validation)]
    order = [0, 1, 1, 0]
    with tf1.Session(graph=graph) as session:
        theirs = [drain(session, [element], starts[i]) for i in order]
    with millrace.Session(graph.as_graph_def().SerializeToString()) as session:
        for i, expected in zip(order, theirs):
            same(drain(session, [element.name], starts[i].name), expected)


def check_feedable():
    graph = tf.Graph()
    with graph.as_default():
        handle = tf1.placeholder(tf.string, [])
        first = tf1.data.make_one_shot_iterator(Dataset.range(5))
        second = tf1.data.make_initializable_iterator(Dataset.range(20, 26))
        element = tf1.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
        handles = [first.string_handle(), second.string_handle()]

    def turns(session, name):
        values = session.run([name(h) for h in handles])
        session.run(name(second.initializer))
        return [session.run(name(element), {name(handle): values[i]}) for i in [0, 1, 1, 0, 0, 1]]

    with tf1.Session(graph=graph) as session:
        expected = turns(session, lambda x: x)
    with millrace.Session(graph.as_graph_def().SerializeToString()) as session:
        same([turns(session, lambda x: x.name)], [expected])


def main():
    checks = {"reinitializable": check_reinitializable, "feedable": check_feedable}
    for name, make in DATASETS.items():
        if name not in WITH_RESOURCES:
            checks[name + ", one shot"] = lambda make=make: check_dataset(make, True)
        checks[name] = lambda make=make: check_dataset(make, False)
    failed = 0
    for name, check in checks.items():
        try:
            check()
        except Exception as error:
            failed += 1
            print(f"{name}: {error}")
    print(f"{len(checks) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
