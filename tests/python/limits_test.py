"""python/millrace: graphs that would exhaust the stack, the memory or the time."""
import subprocess
import sys
import threading
import time
import unittest

import numpy as np
from support import millrace, tf

errors = millrace.errors
Dataset = tf.data.Dataset
INT64 = tf.int64.as_datatype_enum


def functions_of(graph_def, name):
    return [f for f in graph_def.library.function if f.signature.name == name][0]


def call_itself(graph_def, function, callee):
    """Makes the result of a function a call of the callee with the first argument."""
    node = function.node_def.add(name="again", op="PartitionedCall", input=[function.signature.input_arg[0].name])
    node.attr["f"].func.name = callee
    node.attr["Tin"].list.type.append(INT64)
    node.attr["Tout"].list.type.append(INT64)
    function.ret[function.signature.output_arg[0].name] = "again:output:0"
    function.control_ret.clear()
    return graph_def


def graph_of(dataset):
    """The GraphDef of an iterator over dataset(), its initializer and its next element."""
    with tf.Graph().as_default() as graph:
        iterator = tf.data.make_initializable_iterator(dataset())
        element = tf.identity(iterator.get_next(), name="element")
    return graph.as_graph_def(), iterator.initializer.name, element.name


def in_thread(stack_bytes, body):
    """Calls body in a thread with a stack of that size; returns what it raises."""
    raised = []

    def run():
        try:
            body()
        except Exception as error:
            raised.append(error)

    before = threading.stack_size(stack_bytes)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    threading.stack_size(before)
    return raised[0] if raised else None


class Recursion(unittest.TestCase):
    def check(self, graph_def, initializer, element, stack_bytes):
        def body():
            s = millrace.Session(graph_def.SerializeToString())
            s.run(initializer)
            s.run(element)

        error = in_thread(stack_bytes, body)
        self.assertIsInstance(error, errors.ResourceExhaustedError)

    def check_all(self, parts):
        for stack_bytes in (256 << 10, 1 << 20, 16 << 20):
            with self.subTest(stack_bytes=stack_bytes):
                self.check(*parts, stack_bytes)

    def map_of(self, parallel):
        parts = graph_of(lambda: Dataset.range(9).map(lambda x: x + 1, num_parallel_calls=parallel))
        node = [n for n in parts[0].node if n.op.endswith("MapDataset") or n.op == "ParallelMapDatasetV2"][0]
        function = functions_of(parts[0], node.attr["f"].func.name)
        call_itself(parts[0], function, function.signature.name)
        return parts

    def test_map(self):
        self.check_all(self.map_of(None))
        self.check_all(self.map_of(2))

    def test_stack_of_the_caller(self):
        """A function of a call runs on the caller's stack, which may be small."""
        graph_def = self.map_of(None)[0]
        constant = graph_def.node.add(name="one", op="Const")
        constant.attr["dtype"].type = INT64
        constant.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(1, tf.int64))
        call = graph_def.node.add(name="call", op="PartitionedCall", input=["one"])
        call.attr["f"].func.name = [n for n in graph_def.node if n.op == "MapDataset"][0].attr["f"].func.name
        call.attr["Tin"].list.type.append(INT64)
        call.attr["Tout"].list.type.append(INT64)
        for stack_bytes in (256 << 10, 1 << 20, 16 << 20):
            error = in_thread(stack_bytes, lambda: millrace.Session(graph_def.SerializeToString()).run("call:0"))
            self.assertIsInstance(error, errors.ResourceExhaustedError)

    def test_reduce(self):
        """A mapped function reduces a dataset with a function that calls the mapped one."""
        parts = graph_of(
            lambda: Dataset.range(9).map(lambda x: Dataset.range(3).reduce(np.int64(0), lambda a, b: a + b)))
        outer = [n for n in parts[0].node if n.op == "MapDataset"][0].attr["f"].func.name
        reduce = [n for n in functions_of(parts[0], outer).node_def if n.op == "ReduceDataset"][0]
        call_itself(parts[0], functions_of(parts[0], reduce.attr["f"].func.name), outer)
        self.check_all(parts)

    def test_datasets_of_datasets(self):
        def interleave(d, f):
            return d.interleave(f, cycle_length=2, num_parallel_calls=2)

        for op, apply in ("FlatMapDataset", Dataset.flat_map), ("Interleave", interleave):
            parts = graph_of(lambda: apply(Dataset.range(3), lambda x: apply(Dataset.range(3), Dataset.range)))
            outer = [n for n in parts[0].node if op in n.op][0].attr["f"].func.name
            inner = [n for n in functions_of(parts[0], outer).node_def if op in n.op][0]
            inner.attr["f"].func.name = outer
            self.check_all(parts)


class Shuffle(unittest.TestCase):
    def open(self, dataset, **options):
        graph_def, initializer, element = graph_of(dataset)
        s = millrace.Session(graph_def.SerializeToString(), **options)
        s.run(initializer)
        return s, element

    def endless(self, **options):
        return self.open(lambda: Dataset.range(10).repeat().shuffle(1 << 40), **options)

    def test_time(self):
        s, element = self.endless(config={"timeout_ms": 300})
        start = time.monotonic()
        with self.assertRaises(errors.DeadlineExceededError):
            s.run(element)
        self.assertLess(time.monotonic() - start, 10)

    def test_close(self):
        s, element = self.endless()
        timer = threading.Timer(0.3, s.close)
        timer.start()
        with self.assertRaises(errors.CancelledError):
            s.run(element)
        timer.join()

    def test_memory(self):
        """The fill ends when half of the memory is used, and stays ended."""
        graph_def, initializer, element = graph_of(
            lambda: Dataset.range(10).map(lambda x: tf.fill([1 << 17], x)).repeat().shuffle(1 << 40))
        program = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
sys.path[:0] = {sys.path!r}
import millrace
s = millrace.Session(sys.stdin.buffer.read())
s.run({initializer!r})
for _ in range(2):
    try:
        s.run({element!r})
    except millrace.errors.ResourceExhaustedError as error:
        print(str(error).splitlines()[0])
"""
        out = subprocess.run([sys.executable, "-c", program], input=graph_def.SerializeToString(), capture_output=True,
                             check=True, timeout=60).stdout.decode().splitlines()
        self.assertEqual(len(out), 2)
        for line in out:
            self.assertIn("exceed the budget of", line)

    def test_order(self):
        """Parallel inputs, several iterations, and elements that fail."""
        s, element = self.open(
            lambda: Dataset.range(100).map(lambda x: x * 2, num_parallel_calls=2).shuffle(10, seed=3).repeat(2))
        with tf.Session() as expected:
            iterator = tf.data.make_one_shot_iterator(
                Dataset.range(100).map(lambda x: x * 2).shuffle(10, seed=3).repeat(2))
            following = iterator.get_next()
            # The graph's seed is None on both sides, so (3, 0) are the seeds of the operators.
            for _ in range(200):
                self.assertEqual(s.run(element), expected.run(following))
        s, element = self.open(
            lambda: Dataset.range(30).map(lambda x: tf.debugging.check_numerics(1 / (x % 7), "seventh"))
            .shuffle(5, seed=3))
        seen, failed = [], 0
        while True:
            try:
                seen.append(s.run(element))
            except errors.InvalidArgumentError:
                failed += 1
            except errors.OutOfRangeError:
                break
        self.assertEqual((len(seen), failed), (25, 5))


class Time(unittest.TestCase):
    def check(self, build):
        graph = tf.Graph()
        with graph.as_default():
            names = [t.name for t in build()]
        s = millrace.Session(graph.as_graph_def().SerializeToString(), config={"timeout_ms": 300})
        start = time.monotonic()
        with self.assertRaises(errors.DeadlineExceededError):
            s.run(names)
        self.assertLess(time.monotonic() - start, 5)

    def test_unique_candidates(self):
        """The last of as many different classes as there are take millions of tries each."""
        self.check(lambda: [tf.random.log_uniform_candidate_sampler([[1]], 1, 1000000, True, 1000000)[0]])


class Large(unittest.TestCase):
    """Sizes that stand for everything."""

    MAX = np.iinfo(np.int64).max

    def elements(self, dataset):
        graph_def, initializer, element = graph_of(dataset)
        s = millrace.Session(graph_def.SerializeToString())
        s.run(initializer)
        found = []
        while True:
            try:
                found.append(s.run(element).tolist())
            except errors.OutOfRangeError:
                return found

    def check(self, dataset, size):
        """TensorFlow ends with such sizes, so its elements are those of a smaller one that is as good."""
        with tf.Graph().as_default(), tf.Session() as s:
            following, expected = tf.data.make_one_shot_iterator(dataset(1000)).get_next(), []
            while True:
                try:
                    expected.append(s.run(following).tolist())
                except tf.errors.OutOfRangeError:
                    break
        self.assertEqual(self.elements(lambda: dataset(size)), expected)

    def test_batch(self):
        for size in (1 << 25, self.MAX):
            self.check(lambda n: Dataset.range(99).batch(n), size)
            self.check(lambda n: Dataset.range(99).filter(lambda x: x % 3 > 0).batch(n), size)
            self.check(lambda n: Dataset.range(0).batch(n), size)
            self.check(lambda n: Dataset.range(9).filter(lambda x: x > 9).batch(n), size)
            self.check(lambda n: Dataset.range(9).repeat(3).shuffle(2, seed=5).batch(n), size)
            self.check(lambda n: Dataset.range(9).map(tf.as_string).padded_batch(n, []), size)
            self.check(lambda n: Dataset.range(5).batch(n).repeat(2), size)
            self.check(lambda n: Dataset.range(5).filter(lambda x: x < 3).batch(n).repeat(2), size)
            self.check(lambda n: Dataset.range(5).filter(lambda x: x < 3).batch(n, drop_remainder=True)
                       .map(lambda x: x[0]), size)  # fmt: skip

    def test_window(self):
        def joined(**how):
            return Dataset.range(10).window(**how).flat_map(lambda w: w.batch(100))

        self.check(lambda n: joined(size=n), self.MAX)
        self.check(lambda n: joined(size=n, shift=3), self.MAX)
        self.check(lambda n: joined(size=2, shift=n), self.MAX)
        self.check(lambda n: joined(size=3, shift=4, stride=n), self.MAX)
        self.check(lambda n: joined(size=n, shift=1, stride=n), self.MAX)
        self.check(lambda n: joined(size=n, drop_remainder=True), self.MAX)

    def test_interleave(self):
        for cycle in (10**6, self.MAX):
            self.check(lambda n: Dataset.range(20).interleave(Dataset.range, cycle_length=n, block_length=2), cycle)

    def test_concatenate(self):
        def chain(count, join):
            joined = Dataset.range(2)
            for i in range(count):
                joined = join(joined, Dataset.range(10 * i, 10 * i + 2))
            return joined

        self.check(lambda _: chain(70, lambda a, b: a.concatenate(b)), 0)
        self.check(lambda _: chain(70, lambda a, b: b.concatenate(a)), 0)
        self.check(lambda _: chain(70, lambda a, b: a.concatenate(b)).repeat(2).shuffle(7, seed=1), 0)
        self.check(lambda _: chain(150, lambda a, b: a.concatenate(b)), 0)

    def test_too_many_datasets(self):
        types = {"output_types": [tf.int64], "output_shapes": [[]]}
        with tf.Graph().as_default() as graph:
            doubled = Dataset.range(3)._variant_tensor
            for _ in range(40):
                doubled = tf.raw_ops.ConcatenateDataset(input_dataset=doubled, another_dataset=doubled, **types)
            iterator = tf.raw_ops.IteratorV2(shared_name="", container="", **types)
            initializer = tf.raw_ops.MakeIterator(dataset=doubled, iterator=iterator)
        start = time.monotonic()
        with self.assertRaisesRegex(errors.InvalidArgumentError, "more than 10000 datasets"):
            millrace.Session(graph.as_graph_def().SerializeToString()).run(initializer.name)
        self.assertLess(time.monotonic() - start, 10)


if __name__ == "__main__":
    unittest.main()
