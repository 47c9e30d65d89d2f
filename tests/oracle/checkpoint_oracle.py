"""Checkpoints in both directions: millrace reads TensorFlow's, and writes the same bytes as TensorFlow."""
import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
PROGRAM = os.path.join(os.environ["MILLRACE_ORACLE"], "checkpoint_files")
DATA = ".data-00000-of-00001"


def save(prefix, tensors, slices=None):
    """Writes the named arrays in their order with TensorFlow's SaveV2."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        feeds = [tf1.placeholder(tf.string if v.dtype == object else v.dtype) for _, v in tensors]
        names = [name for name, _ in tensors]
        op = tf.raw_ops.SaveV2(
            prefix=prefix, tensor_names=names, shape_and_slices=slices or [""] * len(names), tensors=feeds
        )
        session.run(op, dict(zip(feeds, [v for _, v in tensors])))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def copy(source, target, names):
    lines = "".join(name + "\n" for name in names)
    subprocess.run([PROGRAM, "copy", source, target], input=lines, text=True, check=True)


def same_bytes(directory, name, tensors):
    """TensorFlow writes a checkpoint and millrace copies it. Both pairs of files are equal."""
    theirs, ours = f"{directory}/{name}", f"{directory}/{name}-ours"
    save(theirs, tensors)
    copy(theirs, ours, [key for key, _ in tensors])
    for ending in (".index", DATA):
        assert read(theirs + ending) == read(ours + ending), f"{name}{ending} differs"
    loaded = tf.train.load_checkpoint(ours)
    for key, value in tensors:
        np.testing.assert_array_equal(loaded.get_tensor(key), value)


def every_dtype():
    numbers = [np.float32, np.float64, np.int32, np.uint8, np.int16, np.int8, np.complex64, np.int64, np.bool_,
               np.uint16, np.complex128, np.float16, np.uint32, np.uint64, tf.bfloat16.as_numpy_dtype]
    rng = np.random.default_rng(7)
    return [
        (f"of/{np.dtype(d).name}", (rng.normal(size=(3, 1, 5)) * 50).astype(np.float32).astype(np.int8).astype(d))
        for d in numbers
    ]


def strings():
    long = [b"", b"a", b"\0\xff" * 3, b"x" * 127, b"y" * 128, b"z" * 70000]
    return [("words", np.array(long, dtype=object)), ("word", np.array(b"one", dtype=object)),
            ("none", np.zeros((0, 2), dtype=object)), ("empty", np.zeros((2, 0), np.float32))]


def many():
    """Tensors whose index has several blocks, with keys that are hard to separate."""
    keys = [f"layer_{i:05d}/kernel/with/a/long/name/{i * 7919 % 1000}" for i in range(9000)]
    keys += ["\x7f", "\x7f\x7f", "a", "ab", "b"] + ["k" * i for i in range(1, 400)]
    return [(key, np.float32(i)) for i, key in enumerate(keys)]


def partitioned(directory):
    """Slices: millrace writes the same bytes as TensorFlow, and both read the slices as one tensor."""
    whole = np.arange(1500, dtype=np.float32).reshape(300, 5)
    key = "parté/w"
    save(f"{directory}/theirs", [(key, whole[:100]), (key, whole[100:])], ["300 5 0,100:0,5", "300 5 100,200:0,5"])
    subprocess.run([PROGRAM, "slices", f"{directory}/ours"], check=True)
    for ending in (".index", DATA):
        assert read(f"{directory}/theirs{ending}") == read(f"{directory}/ours{ending}"), f"slices{ending} differ"
    np.testing.assert_array_equal(tf.train.load_checkpoint(f"{directory}/ours").get_tensor(key), whole)
    copy(f"{directory}/theirs", f"{directory}/whole", [key])
    np.testing.assert_array_equal(tf.train.load_checkpoint(f"{directory}/whole").get_tensor(key), whole)


def slice_keys(directory):
    """Slices whose bounds test the ordered encoding of integers at its length limits."""
    whole = np.arange(20000, dtype=np.int32).reshape(20000, 1)
    cuts = [0, 1, 63, 64, 65, 8191, 8192, 20000]
    parts = [("t", whole[a:b]) for a, b in zip(cuts, cuts[1:])]
    save(f"{directory}/cuts", parts, [f"20000 1 {a},{b - a}:-" for a, b in zip(cuts, cuts[1:])])
    copy(f"{directory}/cuts", f"{directory}/joined", ["t"])
    np.testing.assert_array_equal(tf.train.load_checkpoint(f"{directory}/joined").get_tensor("t"), whole)


def sharded(directory):
    """Several data files, merged as a sharded Saver does."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        a, b = tf.constant([1.0, 2.0]), tf.constant([[3]])
        parts = [f"{directory}/tmp/part-0000{i}-of-00002" for i in range(2)]
        session.run([tf.raw_ops.ShardedFilename(basename="x", shard=0, num_shards=2)])
        session.run(tf.raw_ops.SaveV2(prefix=parts[0], tensor_names=["a"], shape_and_slices=[""], tensors=[a]))
        session.run(tf.raw_ops.SaveV2(prefix=parts[1], tensor_names=["b"], shape_and_slices=[""], tensors=[b]))
        session.run(tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=f"{directory}/two"))
    assert os.path.exists(f"{directory}/two.data-00001-of-00002")
    copy(f"{directory}/two", f"{directory}/one", ["a", "b"])
    loaded = tf.train.load_checkpoint(f"{directory}/one")
    np.testing.assert_array_equal(loaded.get_tensor("a"), [1, 2])
    np.testing.assert_array_equal(loaded.get_tensor("b"), [[3]])


def main():
    with tempfile.TemporaryDirectory() as directory:
        same_bytes(directory, "dtypes", every_dtype())
        same_bytes(directory, "strings", strings())
        same_bytes(directory, "many", many())
        partitioned(directory)
        slice_keys(directory)
        sharded(directory)
    print("6 passed, 0 failed")


if __name__ == "__main__":
    sys.exit(main())
