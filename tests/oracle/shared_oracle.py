"""What runs share: barriers, accumulators, staging areas, variables of a run, windows and groups of datasets. The same
graph is run by TensorFlow and by python/millrace, one run after the other, and the results are compared."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

import numpy as np  # noqa: E402
from support import millrace, tf  # noqa: E402

raw = tf.raw_ops if hasattr(tf, "raw_ops") else __import__("tensorflow").raw_ops
random = np.random.default_rng(7)


def outcome(session, fetches, feeds):
    try:
        return session.run(fetches, feeds)
    except Exception as error:  # the class and the message are compared
        text = str(getattr(error, "message", error))
        return type(error).__name__, text


def words(text):
    """The message without what names nodes, values of flags and places."""
    text = re.sub(r"^[\w/]+ \(\w+\): ", "", text.split("\n\t [[{{node")[0].strip().split("\n")[-1])
    return re.sub(r"[^a-z ]", " ", text.lower()).split()


def same(expected, found, loose):
    if isinstance(expected, tuple) and len(expected) == 2 and isinstance(expected[0], str):
        if not (isinstance(found, tuple) and found[0] == expected[0]):
            return False
        return loose or set(words(expected[1])[:6]) <= set(words(found[1]))
    if expected is None:
        return found is None
    if isinstance(expected, (list, tuple)) or hasattr(expected, "_fields"):
        return len(expected) == len(found) and all(same(a, b, loose) for a, b in zip(expected, found))
    expected, found = np.asarray(expected), np.asarray(found)
    return expected.dtype == found.dtype and expected.shape == found.shape and np.array_equal(expected, found)


def compare(name, build, loose=False):
    """build() returns the runs: pairs of fetches and feeds."""
    graph = tf.Graph()
    with graph.as_default():
        runs = build()
    failed = 0
    with tf.Session(graph=graph) as first:
        second = millrace.Session(graph.as_graph_def().SerializeToString())
        for i, (fetches, feeds) in enumerate(runs):
            names = tf.nest.map_structure(lambda x: x.name, fetches)
            given = {key.name: value for key, value in feeds.items()}
            expected, found = outcome(first, fetches, feeds), outcome(second, names, given)
            if not same(expected, found, loose):
                print(f"{name}, run {i}:\n  TensorFlow {expected}\n  millrace   {found}")
                failed += 1
    return failed


def barrier(cancels):
    def build():
        keys, values = tf.placeholder(tf.string, [None]), tf.placeholder(tf.float32, None)
        pairs = tf.placeholder(tf.int64, None)
        b = raw.Barrier(component_types=[tf.float32, tf.int64], shapes=[[2], []])
        puts = [
            raw.BarrierInsertMany(handle=b, keys=keys, values=values, component_index=0),
            raw.BarrierInsertMany(handle=b, keys=keys, values=pairs, component_index=1),
        ]
        count = tf.placeholder(tf.int32, [])
        take = raw.BarrierTakeMany(handle=b, num_elements=count, component_types=[tf.float32, tf.int64])
        small = raw.BarrierTakeMany(
            handle=b, num_elements=count, component_types=[tf.float32, tf.int64], allow_small_batch=True
        )
        sizes = [raw.BarrierReadySize(handle=b), raw.BarrierIncompleteSize(handle=b)]
        close = raw.BarrierClose(handle=b, cancel_pending_enqueues=cancels)
        cancel = raw.BarrierClose(handle=b, cancel_pending_enqueues=True)

        def put(component, names):
            rows = np.arange(2 * len(names), dtype=np.float32).reshape(-1, 2)
            if component == 0:
                return puts[0], {keys: names, values: rows}
            return puts[1], {keys: names, pairs: np.arange(len(names))}

        runs = [put(0, ["a", "b", "c"]), (sizes, {}), put(1, ["c"]), put(1, ["a"]), (sizes, {})]
        runs += [(take, {count: 2}), (sizes, {}), put(0, ["b"]), (take, {count: 0}), put(0, [])]
        runs += [put(1, ["d", "e"]), put(0, ["e"]), put(0, ["d"]), put(1, ["f", "f"]), (take, {count: 1})]
        runs += [(puts[0], {keys: ["x"], values: np.zeros([1, 0])})]
        runs += [(close, {}), (sizes, {}), put(0, ["new"]), put(1, ["b"]), (take, {count: 9}), (small, {count: 9})]
        runs += [(small, {count: 1}), (close, {}), (cancel, {}), (cancel, {}), put(0, [])]
        return runs

    return build


def accumulator(dtype, reduction, form):
    def build():
        p = "Resource" if form == "resource" else ""
        if form == "sparse":
            a = raw.SparseConditionalAccumulator(dtype=dtype, shape=[None, 2], reduction_type=reduction)
        else:
            a = getattr(raw, p + "ConditionalAccumulator")(dtype=dtype, shape=[None, 2], reduction_type=reduction)
        step, count = tf.placeholder(tf.int64, None), tf.placeholder(tf.int32, None)
        gradient, indices = tf.placeholder(dtype, None), tf.placeholder(tf.int64, None)
        shape = tf.placeholder(tf.int64, [None])
        if form == "sparse":
            apply = raw.SparseAccumulatorApplyGradient(
                handle=a,
                local_step=step,
                gradient_indices=indices,
                gradient_values=gradient,
                gradient_shape=shape,
                has_known_shape=True,
            )
            take = raw.SparseAccumulatorTakeGradient(handle=a, num_required=count, dtype=dtype)
        else:
            apply = getattr(raw, p + "AccumulatorApplyGradient")(handle=a, local_step=step, gradient=gradient)
            take = getattr(raw, p + "AccumulatorTakeGradient")(handle=a, num_required=count, dtype=dtype)
        number = getattr(raw, p + "AccumulatorNumAccumulated")(handle=a)
        set_step = getattr(raw, p + "AccumulatorSetGlobalStep")(handle=a, new_global_step=step)

        def put(at, *sizes, size=2):
            rows = len(sizes)
            values = random.standard_normal([max(rows, 1), size]).astype(dtype.as_numpy_dtype)
            if form != "sparse":
                return apply, {step: at, gradient: values}
            return apply, {step: at, gradient: values[:rows], indices: sizes, shape: [7, size]}

        runs = [put(0, 1, 4), put(0, 2, 4), put(0, 1, 6), (number, {}), (take, {count: 2}), (number, {})]
        runs += [put(0, 1), (number, {}), put(1, 0, 3, 5), put(3, 3, 4, 5), (take, {count: 1})]
        runs += [(set_step, {step: 7}), put(6, 1), (number, {}), put(7, 1, 2, 3), put(9, 1, 1, 1), (take, {count: 2})]
        runs += [(take, {count: 0}), (take, {count: -3}), put(20, 1, size=3), put(20, 1, 2), put(20, 1, 2, 3)]
        runs += [(number, {}), (take, {count: 1})]
        return runs

    return build


def stages():
    value, number = tf.placeholder(tf.float32, None), tf.placeholder(tf.int32, None)
    common = dict(shared_name="area", memory_limit=1000)
    put = raw.Stage(values=[value, number], **common)
    get = raw.Unstage(dtypes=[tf.float32, tf.int32], **common)
    index = tf.placeholder(tf.int32, None)
    peek = raw.StagePeek(index=index, dtypes=[tf.float32, tf.int32], **common)
    few = raw.StagePeek(index=index, dtypes=[tf.float32], **common)
    size, clear = raw.StageSize(dtypes=[], **common), raw.StageClear(dtypes=[], **common)
    runs = [(size, {})]
    for i in range(4):
        runs += [(put, {value: np.full([2, i], i), number: i}), (size, {})]
    runs += [(peek, {index: 2}), (get, {}), (peek, {index: 0}), (size, {}), (few, {index: 0})]
    runs += [(put, {value: np.zeros(300), number: 1}), (clear, {}), (size, {})]
    return runs


def map_stages(prefix):
    def build():
        common = dict(shared_name="map", dtypes=[tf.float32, tf.int32])
        key, value = tf.placeholder(tf.int64, []), tf.placeholder(tf.float32, None)
        number = tf.placeholder(tf.int32, None)

        def op(name, **more):
            return getattr(raw, prefix + name)(**{**common, **more})

        both = op("MapStage", key=key, indices=[0, 1], values=[value, number])
        first = op("MapStage", key=key, indices=[0], values=[value])
        second = op("MapStage", key=key, indices=[1], values=[number])
        get = op("MapUnstage", key=key, indices=[0, 1])
        one = op("MapUnstage", key=key, indices=[1], dtypes=[tf.int32])
        peek = op("MapPeek", key=key, indices=[0, 1])
        bad = op("MapPeek", key=key, indices=[1, 0])
        far = op("MapPeek", key=key, indices=[0, 5])
        any_key = op("MapUnstageNoKey", indices=[0, 1])
        sizes = [op("MapSize"), op("MapIncompleteSize")]
        clear = op("MapClear")
        data = {value: [1.5, 2.5], number: 4}
        runs = [(both, {key: 5, **data}), (first, {key: 3, value: 1.0}), (sizes, {}), (first, {key: 3, value: 1.0})]
        runs += [(second, {key: 3, number: 8}), (sizes, {}), (peek, {key: 3}), (get, {key: 3}), (sizes, {})]
        runs += [(one, {key: 5}), (sizes, {}), (one, {key: 5}), (bad, {key: 5}), (far, {key: 5})]
        runs += [(clear, {}), (sizes, {}), (both, {key: -7, **data}), (any_key, {})]
        if prefix:
            runs += [(both, {key: k, **data}) for k in (9, -4, 2)] + [(any_key, {})] * 3
        return runs

    return build


def temporaries():
    def sum_of(name):
        v = raw.TemporaryVariable(shape=[1, 2], dtype=tf.float32, var_name=name)
        v = raw.Assign(ref=v, value=[[4.0, 5.0]])
        v = raw.AssignAdd(ref=v, value=[[6.0, 7.0]])
        return raw.DestroyTemporaryVariable(ref=v, var_name=name)

    total = sum_of("one") + sum_of("two")
    bad = raw.DestroyTemporaryVariable(ref=raw.TemporaryVariable(shape=[2], dtype=tf.float32), var_name="bad")
    twice = [raw.TemporaryVariable(shape=[2], dtype=tf.float32, var_name="dup") for _ in range(2)]
    return [(total, {}), (total, {}), (bad, {}), (twice[0] + twice[1], {}), (total, {})]


def whole(dataset, count):
    iterator = tf.data.make_initializable_iterator(dataset)
    step = iterator.get_next()
    return [(iterator.initializer, {})] + [(step, {})] * count


def plain(dataset):
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


def windows(size, shift, stride, drops, pairs):
    def build():
        dataset = tf.data.Dataset.range(17)
        if pairs:
            dataset = tf.data.Dataset.zip((dataset, dataset.map(lambda x: x * 2)))
            dataset = dataset.window(size, shift, stride, drops)
            dataset = dataset.flat_map(lambda a, b: tf.data.Dataset.zip((a.batch(9), b.batch(9))))
        else:
            dataset = dataset.window(size, shift, stride, drops).flat_map(lambda w: w.batch(9))
        return whole(plain(dataset), 20)

    return build


def window_sums():
    dataset = tf.data.Dataset.range(17).window(4, 2, drop_remainder=True)
    dataset = dataset.map(lambda w: w.reduce(tf.constant(0, tf.int64), lambda a, b: a + b))
    return whole(plain(dataset), 9)


def groups(size):
    def build():
        dataset = tf.data.Dataset.range(31).map(lambda x: x * x)
        dataset = dataset.apply(
            tf.data.experimental.group_by_window(
                lambda x: x % 5, lambda key, w: w.batch(4).map(lambda b: b + key), window_size_func=lambda k: k + size
            )
        )
        return whole(plain(dataset), 20)

    return build


def shuffle_and_repeat(count, buffer, reshuffles, length):
    def build():
        dataset = tf.data.Dataset.range(length)
        # tf.data makes this operator from shuffle and repeat only if it is optimized.
        variant = raw.ShuffleAndRepeatDataset(
            input_dataset=dataset._variant_tensor,
            buffer_size=tf.constant(buffer, tf.int64),
            seed=tf.constant(3, tf.int64),
            seed2=tf.constant(5, tf.int64),
            count=tf.constant(count, tf.int64),
            reshuffle_each_iteration=reshuffles,
            output_types=[tf.int64],
            output_shapes=[[]],
        )
        iterator = raw.IteratorV2(shared_name="", container="", output_types=[tf.int64], output_shapes=[[]])
        start = raw.MakeIterator(dataset=variant, iterator=iterator)
        step = raw.IteratorGetNext(iterator=iterator, output_types=[tf.int64], output_shapes=[[]])
        return [(start, {})] + [(step[0], {})] * (length * min(abs(count), 6) + 2 if count > 0 else 40)

    return build


def optionals():
    dataset = tf.data.Dataset.range(3)
    iterator = tf.data.make_initializable_iterator(plain(dataset))
    kind = dict(output_types=[tf.int64], output_shapes=[[]])
    optional = raw.IteratorGetNextAsOptional(iterator=iterator._iterator_resource, **kind)
    has = raw.OptionalHasValue(optional=optional)
    value = raw.OptionalGetValue(optional=optional, **kind)[0]
    return [(has, {}), (iterator.initializer, {}), (has, {}), ([has, value], {}), (has, {}), (has, {}), (value, {})]


def reduction():
    dataset = tf.data.Dataset.range(11)
    total = dataset.reduce((tf.constant(0, tf.int64), 1.0), lambda s, x: (s[0] + x, s[1] * 1.5))
    none = dataset.take(0).reduce(tf.constant(5, tf.int64), lambda s, x: s + x)
    return [(total, {}), (none, {})]


def main():
    failed = total = 0
    cases = [("barrier", barrier(False)), ("cancelled barrier", barrier(True))]
    for form in ("dense", "resource", "sparse"):
        for dtype in (tf.float32, tf.float64, tf.float16):
            for reduction_type in ("MEAN", "SUM"):
                cases.append((f"{form} accumulator, {dtype.name}", accumulator(dtype, reduction_type, form)))
    cases += [("stage", stages), ("map stage", map_stages("")), ("ordered map stage", map_stages("Ordered"))]
    cases += [("temporary variables", temporaries), ("optionals", optionals), ("reduce", reduction)]
    for size, shift, stride in ((3, 3, 1), (4, 2, 1), (2, 5, 1), (3, 1, 2), (5, 3, 4), (30, 4, 1), (2, 1, 3)):
        for drops in (False, True):
            for pairs in (False, True):
                cases.append((f"window {size, shift, stride}", windows(size, shift, stride, drops, pairs)))
    cases += [("windows mapped", window_sums), ("groups", groups(1)), ("groups", groups(4))]
    for count, buffer, length in ((1, 4, 9), (3, 4, 9), (2, 100, 7), (5, 3, 3), (-1, 5, 4), (4, 50, 5), (3, 2, 1)):
        for reshuffles in (False, True):
            name = f"shuffle_and_repeat {count, buffer, length}"
            cases.append((name, shuffle_and_repeat(count, buffer, reshuffles, length)))
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, build in cases:
        if only in name:
            failed += compare(name, build, loose=build is temporaries)
            total += 1
    print(f"{total - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
