"""Tests of python/millrace: RunOptions, RunMetadata, and the reset of containers."""
import json
import threading
import unittest

import numpy as np
from support import millrace, tf
from tensorflow.python.client import timeline

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def nodes(metadata):
    return [node for device in metadata.step_stats.dev_stats for node in device.node_stats]


def bodies(metadata):
    """{(name, operator): number of records} of those that compute something."""
    counts = {}
    for node in nodes(metadata):
        operator = node.timeline_label.split(" = ")[1].split("(")[0]
        if operator not in ("NoOp", "Const", "_Arg", "_Retval", "VariableV2", "Switch", "Merge", "Enter", "Exit",
                            "NextIteration", "LoopCond", "Identity"):  # fmt: skip
            counts[node.node_name, operator] = counts.get((node.node_name, operator), 0) + 1
    return counts


class Metadata(unittest.TestCase):
    def setUp(self):
        self.graph = tf.Graph()
        self.addCleanup(tf.enable_control_flow_v2)
        tf.disable_control_flow_v2()
        with self.graph.as_default():
            self.x = tf.placeholder(tf.float32, [None], name="x")
            v = tf.get_variable("v", initializer=np.float32([1, 2]), use_resource=False)
            self.init = v.initializer
            self.y = tf.multiply(self.x, v, name="y")
            square = tf.function(lambda a: tf.square(a, name="inner"))
            self.called = square(self.y)
            total = tf.reduce_sum(self.called)
            self.loop = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * 2.0), [0, total], name="loop")
            self.choice = tf.cond(total > 0, lambda: tf.negative(total), lambda: tf.exp(total))
        self.session = millrace.Session(self.graph)
        self.session.run(self.init)

    def tearDown(self):
        self.session.close()

    def trace(self, fetches, **options):
        metadata = tf.RunMetadata()
        options.setdefault("trace_level", tf.RunOptions.FULL_TRACE)
        self.session.run(fetches, {self.x: [1, 1]}, tf.RunOptions(**options), metadata)
        return metadata

    def test_same_calls_as_tensorflow(self):
        config = tf.ConfigProto()
        config.graph_options.optimizer_options.opt_level = -1
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf.Session(graph=self.graph, config=config) as reference:
            reference.run(self.init)
            for fetches in (self.y, self.called, self.loop, self.choice):
                expected = tf.RunMetadata()
                options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
                reference.run(fetches, {self.x: [1, 1]}, options, expected)
                metadata = self.trace(fetches)
                self.assertEqual(bodies(metadata), bodies(expected))
                self.assertEqual([d.device for d in metadata.step_stats.dev_stats], [CPU])

    def test_timeline(self):
        metadata = self.trace(self.loop)
        trace = json.loads(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format(show_memory=True))
        names = {event["args"]["name"] for event in trace["traceEvents"] if event.get("cat") == "Op"}
        self.assertLessEqual({"y", "inner", "loop/mul"}, names)
        output = next(node for node in nodes(metadata) if node.node_name == "y").output[0].tensor_description
        self.assertEqual((output.dtype, output.shape.dim[0].size), (1, 2))
        self.assertEqual(output.allocation_description.requested_bytes, 8)

    def test_levels(self):
        for level in range(4):
            self.assertEqual(bool(nodes(self.trace(self.y, trace_level=level))), level > 0)
        metadata = tf.RunMetadata(cost_graph={"node": [{"name": "before"}]})
        self.session.run(self.y, {self.x: [1, 1]}, run_metadata=metadata)  # replaces it, as TensorFlow does
        self.assertEqual(metadata.ByteSize(), 0)

    def test_partition_graphs(self):
        metadata = self.trace(self.loop, trace_level=0, output_partition_graphs=True)
        self.assertFalse(nodes(metadata))
        (graph,) = metadata.partition_graphs
        by_name = {node.name: node for node in graph.node}
        self.assertEqual(len(by_name), len(graph.node))
        self.assertEqual(list(by_name["y"].input), ["_arg_x_0_0", "v/read"])
        self.assertEqual(by_name["loop/mul"].device, CPU)
        for node in graph.node:
            for name in node.input:
                self.assertIn(name.lstrip("^").split(":")[0], by_name)
        self.assertEqual(by_name["loop/mul"].input[0], "loop/Identity_1")

    def test_recomputed(self):
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32, [4, 16, 16, 32])
            scale, offset = tf.ones([32]), tf.zeros([32])
            filters = tf.ones([1, 1, 32, 32])
            h = x
            for _ in range(2):
                convolved = tf.nn.conv2d(h, filters, 1, "SAME")
                h = tf.nn.relu(tf.nn.fused_batch_norm(convolved, scale, offset, name="norm")[0])
            loss = tf.reduce_sum(h * h)
            gradient = tf.gradients(loss, [filters])[0]
        off = tf.ConfigProto()
        off.graph_options.rewrite_options.memory_optimization = 1  # NO_MEM_OPT
        fields = {"graph_options": {"rewrite_options": {"memory_optimization": 1}}}
        named = {"graph_options": {"rewrite_options": {"memory_optimization": "NO_MEM_OPT"}}}
        values = []
        for config, again in ((None, 1), ({}, 1), (tf.ConfigProto(), 1), ({"recompute": True}, 1),
                              ({"recompute": False}, 0), (off, 0), (off.SerializeToString(), 0), (fields, 0),
                              (named, 0), ({"optimize": False}, 0)):  # fmt: skip
            metadata = tf.RunMetadata()
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
            with millrace.Session(graph, config) as session:
                values.append(session.run(gradient, {x: np.arange(32768).reshape(4, 16, 16, 32) % 7}, options,
                                          metadata))  # fmt: skip
            names = [node.node_name for node in nodes(metadata)]
            self.assertEqual(names.count("Recomputed/norm"), again, config)
            written = [node.name for node in metadata.partition_graphs[0].node]
            self.assertEqual(len(set(written)), len(written))
            self.assertEqual(written.count("Recomputed/norm"), again, config)
            np.testing.assert_array_equal(values[-1], values[0])
        with graph.as_default():
            taken = tf.square(loss, name="Recomputed/norm")
        with millrace.Session(graph) as session:
            metadata = tf.RunMetadata()
            session.run([gradient, taken], {x: np.ones([4, 16, 16, 32])}, options, metadata)
        names = [node.name for node in metadata.partition_graphs[0].node]
        self.assertEqual(len(set(names)), len(names))
        self.assertLessEqual({"Recomputed/norm", "Recomputed/norm_1"}, set(names))

    def test_own_messages(self):
        metadata = millrace.RunMetadata()
        options = millrace.RunOptions(millrace.RunOptions.FULL_TRACE, output_partition_graphs=True)
        self.session.run(self.y, {self.x: [1, 1]}, options=options, run_metadata=metadata)
        message = tf.RunMetadata.FromString(metadata.serialized)
        self.assertTrue(nodes(message) and message.partition_graphs)
        for values in ({}, {"trace_level": 3}, {"timeout_in_ms": 1 << 40}, {"timeout_in_ms": -1}):
            own = millrace.RunOptions(**values).SerializeToString()
            self.assertEqual(tf.RunOptions.FromString(own), tf.RunOptions(**values))
        metadata.MergeFromString(b"more")
        self.assertTrue(metadata.SerializeToString().endswith(b"more"))

    def test_time(self):
        with self.graph.as_default():
            taken = tf.FIFOQueue(3, tf.float32).dequeue()
        for options in (tf.RunOptions(timeout_in_ms=20), tf.RunOptions(timeout_in_ms=20).SerializeToString()):
            with self.assertRaises(millrace.errors.DeadlineExceededError):
                self.session.run(taken, options=options)
        self.session.run(self.y, {self.x: [1, 1]}, tf.RunOptions(timeout_in_ms=-5))

    def test_invalid(self):
        run, fed = self.session.run, {self.x: [1, 1]}
        self.assertRaises(AttributeError, run, self.y, fed, "FULL_TRACE")
        self.assertRaises(AttributeError, run, self.y, fed, tf.RunOptions(), 5)
        with self.assertRaisesRegex(millrace.errors.InvalidArgumentError, "Unparseable RunOptions proto"):
            run(self.y, fed, b"\xff\xff\xff")
        with self.assertRaisesRegex(millrace.errors.InvalidArgumentError, "Invalid inter_op_thread_pool: 3"):
            run(self.y, fed, tf.RunOptions(inter_op_thread_pool=3))
        run(self.y, fed, tf.RunOptions(inter_op_thread_pool=-1, report_tensor_allocations_upon_oom=True))
        metadata = tf.RunMetadata()
        with self.assertRaises(millrace.errors.InvalidArgumentError):
            run(self.y, None, tf.RunOptions(trace_level=3), metadata)
        self.assertEqual(metadata.ByteSize(), 0)

    def test_callables(self):
        plain = self.session.make_callable(self.init)
        self.assertRaises(TypeError, plain, options=tf.RunOptions())
        self.assertIsNone(self.session.make_callable(self.init, accept_options=True)(options=tf.RunOptions()))
        for accepts in (False, True):  # TensorFlow accepts them with any feed_list
            call = self.session.make_callable(self.y, [self.x], accept_options=accepts)
            metadata = tf.RunMetadata()
            result = call([1, 1], options=tf.RunOptions(trace_level=3), run_metadata=metadata)
            self.assertEqual(result.tolist(), [1, 2])
            self.assertTrue(nodes(metadata))
            self.assertEqual(call([1, 1]).tolist(), [1, 2])
            self.assertRaises(millrace.errors.InvalidArgumentError, call, options=tf.RunOptions())

    def test_threads(self):
        def work(size):
            for _ in range(20):
                metadata = tf.RunMetadata()
                options = tf.RunOptions(trace_level=3)
                self.session.run(self.called, {self.x: np.ones([size])}, options, metadata)
                names = [node.node_name for node in nodes(metadata)]
                failures.extend([names] if names.count("inner") != 1 or names.count("y") != 1 else [])

        failures = []
        threads = [threading.Thread(target=work, args=(size,)) for size in (1, 2, 1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


class Reset(unittest.TestCase):
    """The same steps with TensorFlow, whose sessions have to be made anew after a reset."""

    def build(self):
        self.graph = tf.Graph()
        with self.graph.as_default():
            one = np.float32([1, 2])
            variables = [tf.get_variable("ref", initializer=one, use_resource=False),
                         tf.get_variable("res", initializer=one, use_resource=True)]  # fmt: skip
            with tf.container("c"):
                variables += [tf.get_variable("ref_c", initializer=one, use_resource=False),
                              tf.get_variable("res_c", initializer=one, use_resource=True)]  # fmt: skip
                other = tf.FIFOQueue(5, tf.float32, shared_name="other")
            queue = tf.FIFOQueue(5, tf.float32, shared_name="queue")
            table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, -5, -6, name="table")
            static = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], [3, 4]), -1)
            iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(5), shared_name="iterator")
            self.fetches = [*variables, queue.size(), other.size(), table.size(), static.lookup(tf.constant([1, 9])),
                            iterator.get_next()]  # fmt: skip
            self.inits = [tf.global_variables_initializer(), tf.tables_initializer(), iterator.initializer]
            keys = tf.constant([7, 8], tf.int64)
            self.fill = [queue.enqueue([1.0]), other.enqueue([1.0]), table.insert(keys, keys)]

    def state(self, session, names):
        """The results of all fetches, or the names of their errors."""
        found = []
        for fetch in self.fetches:
            try:
                found.append(np.asarray(session.run(fetch)).tolist())
            except names.OpError as error:
                found.append(type(error).__name__)
        return found

    def test_like_tensorflow(self):
        server = tf.train.Server.create_local_server()
        for containers in (None, [], ["c"], ["localhost"], ["nosuch", ""], ["c", "localhost"]):
            self.build()
            reference = tf.Session(server.target, graph=self.graph)
            own = millrace.Session(self.graph)
            for session, names in ((reference, tf.errors), (own, millrace.errors)):
                session.run(self.inits)
                session.run(self.fill)
                self.assertEqual(self.state(session, names), [[1, 2]] * 4 + [1, 1, 2, [3, -1], 0])
            tf.Session.reset(server.target, containers)
            own.reset(containers)
            reference = tf.Session(server.target, graph=self.graph)
            self.assertEqual(self.state(own, millrace.errors), self.state(reference, tf.errors), containers)
            reference.run(self.inits)
            own.run(self.inits)
            self.assertEqual(self.state(own, millrace.errors), self.state(reference, tf.errors), containers)
            own.close()
            reference.close()
            tf.Session.reset(server.target, ["localhost", "c"])

    def test_one_shot_iterators_and_readers_start_again(self):
        with tf.Graph().as_default() as graph:
            element = tf.data.make_one_shot_iterator(tf.data.Dataset.range(3)).get_next()
            stage = tf.raw_ops.Stage(values=[tf.constant(1)], container="", shared_name="stage")
            staged = tf.raw_ops.StageSize(dtypes=[tf.int32], shared_name="stage")
        with millrace.Session(graph) as session:
            self.assertEqual([session.run(element), session.run(element)], [0, 1])
            session.run(stage)
            self.assertEqual(session.run(staged), 1)
            session.reset()
            self.assertEqual([session.run(element), session.run(staged)], [0, 0])

    def test_refused(self):
        with tf.Graph().as_default() as graph:
            taken = tf.FIFOQueue(3, tf.float32).dequeue()
        with millrace.Session(graph) as session:
            self.assertRaises(TypeError, session.reset, "c")
            self.assertRaises(ValueError, session.reset, ["a\0b"])
            cancelled = millrace.errors.CancelledError
            thread = threading.Thread(target=lambda: self.assertRaises(cancelled, session.run, taken))
            thread.start()
            with self.assertRaisesRegex(millrace.errors.FailedPreconditionError, "while a run is in progress"):
                while True:
                    session.reset([b"c"])
            session.close()
            thread.join()
            self.assertRaises(RuntimeError, session.reset)


class Config(unittest.TestCase):
    def test_fields_that_programs_set(self):
        with tf.Graph().as_default() as graph:
            y = tf.constant([1.0, 2.0]) * 2
        config = tf.ConfigProto(
            device_count={"CPU": 1, "GPU": 0}, intra_op_parallelism_threads=1, inter_op_parallelism_threads=2,
            use_per_session_threads=True, allow_soft_placement=True, placement_period=3, isolate_session_state=True,
            device_filters=["/job:ps"], operation_timeout_in_ms=60000,
            session_inter_op_thread_pool=[{"num_threads": 2}],
        )  # fmt: skip
        config.gpu_options.allow_growth = True
        config.gpu_options.per_process_gpu_memory_fraction = 0.4
        config.gpu_options.visible_device_list = "0"
        config.graph_options.optimizer_options.global_jit_level = 1
        config.graph_options.rewrite_options.constant_folding = 2
        config.graph_options.infer_shapes = True
        config.experimental.collective_group_leader = "/job:worker"
        for given in (config, tf.ConfigProto(inter_op_parallelism_threads=-1), tf.ConfigProto()):
            with millrace.Session(graph, given) as session:
                self.assertEqual(session.run(y).tolist(), [2, 4])


if __name__ == "__main__":
    unittest.main()
