"""python/millrace: MetaGraphDef, SavedModel, queue runners, partial runs."""
import os
import shutil
import signal
import tempfile
import threading
import unittest

import numpy as np
from support import millrace, session, tf

errors = millrace.errors


class Files(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)

    def path(self, name):
        return os.path.join(self.directory, name)

    def save(self):
        """A SavedModel that computes w x and looks its vocabulary up; w is 5."""
        with open(self.path("words.txt"), "w") as file:
            file.write("zero\none\n")
        with tf.Graph().as_default() as graph, tf.Session(graph=graph) as s:
            x = tf.placeholder(tf.float32, [None], name="x")
            w = tf.get_variable("w", initializer=2.0, use_resource=True)
            y = tf.multiply(w, x, name="y")
            asset = tf.constant(self.path("words.txt"), name="asset")
            tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, asset)
            local = tf.get_variable("local", initializer=1.0, use_resource=True, trainable=False, collections=[])
            path = tf.get_variable("path", initializer=tf.constant(""), use_resource=True, collections=[])
            s.run(tf.global_variables_initializer())
            s.run(w.assign(5.0))
            builder = tf.saved_model.Builder(self.path("model"))
            signature = tf.saved_model.predict_signature_def({"in": x}, {"out": y})
            builder.add_meta_graph_and_variables(
                s, ["serve", "cpu"], {"serving_default": signature},
                assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
                main_op=tf.group(local.assign(7.0), path.assign(asset)))  # fmt: skip
            builder.save()
        return self.path("model")

    def test_saved_model(self):
        directory = self.save()
        s = millrace.Session(directory, tags=["serve", "cpu"])
        signature = s.signatures["serving_default"]
        self.assertEqual(signature, {"inputs": {"in": "x:0"}, "outputs": {"out": "y:0"}})
        self.assertEqual(s.run(signature["outputs"]["out"], {signature["inputs"]["in"]: [1, 2]}).tolist(), [5, 10])
        self.assertEqual(s.run("local/Read/ReadVariableOp:0"), 7)
        self.assertEqual(s.run("path/Read/ReadVariableOp:0").decode(), os.path.join(directory, "assets", "words.txt"))
        with self.assertRaisesRegex(RuntimeError, "could not be found in SavedModel"):
            millrace.Session(directory, tags="serve")
        plain = millrace.Session(os.path.join(directory, "saved_model.pb"))
        with self.assertRaises(errors.FailedPreconditionError):
            plain.run("y:0", {"x:0": [1]})

    def test_meta_graph(self):
        with tf.Graph().as_default() as graph:
            tf.get_variable("w", initializer=2.0, use_resource=False)
            tf.train.Saver()
            init = tf.global_variables_initializer()
            for saver in (True, False):
                data = tf.train.export_meta_graph(
                    self.path("a.meta"), saver_def=tf.train.Saver().as_saver_def() if saver else None, graph=graph
                ).SerializeToString()
                for form in (data, self.path("a.meta")):
                    s = millrace.Session(form)
                    s.run(init.name)
                    self.assertEqual(s.run("w:0"), 2)
            with self.assertRaisesRegex(ValueError, "only a SavedModel has graphs with tags"):
                millrace.Session(data, tags=["a"])

    def test_graph_def(self):
        with tf.Graph().as_default() as graph:
            tf.constant([1, 2], name="a")
        tf.train.write_graph(graph, self.directory, "a.pb", as_text=False)
        self.assertEqual(millrace.Session(self.path("a.pb")).run("a:0").tolist(), [1, 2])
        self.assertEqual(millrace.Session(graph.as_graph_def()).run([]), [])


class Partial(unittest.TestCase):
    def test_parts(self):
        def build():
            a = tf.placeholder(tf.float32, [], name="a")
            b = tf.placeholder(tf.float32, [], name="b")
            c = tf.placeholder(tf.float32, [], name="c")
            count = tf.get_variable("count", initializer=0.0, use_resource=True)
            counted = count.assign_add(1.0, read_value=True)
            r1 = tf.add(tf.add(a, b), counted, name="r1")
            tf.multiply(r1, c, name="r2")
            return count.initializer

        s, init = session(build)
        s.run(init)
        handle = s.partial_run_setup(["r1:0", "r2:0"], ["a:0", "b:0", "c:0"])
        self.assertEqual(s.partial_run(handle, "r1:0", {"a:0": 1, "b:0": 2}), 4)
        self.assertEqual(s.partial_run(handle, "r2:0", {"c:0": 10}), 40)
        self.assertEqual(s.run("count/Read/ReadVariableOp:0"), 1)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "Must run 'setup' before performing"):
            s.partial_run(handle, "r2:0")
        handle = s.partial_run_setup(["r1:0", "r2:0"], ["a:0", "b:0", "c:0"])
        with self.assertRaisesRegex(errors.InvalidArgumentError, "Fetch [abc]:0 can't be computed from the feeds"):
            s.partial_run(handle, "r2:0", {"a:0": 1})
        with self.assertRaisesRegex(errors.InvalidArgumentError, "was not specified"):
            s.partial_run(handle, "a:0")

    def test_large_values_between_parts(self):
        def build():
            x = tf.placeholder(tf.float32, [None], name="x")
            k = tf.placeholder(tf.float32, [], name="k")
            tf.multiply(tf.sqrt(x, name="root"), k, name="y")

        s, _ = session(build)
        x = np.arange(10000, dtype=np.float32)
        handle = s.partial_run_setup(["root:0", "y:0"], ["x:0", "k:0"])
        np.testing.assert_allclose(s.partial_run(handle, "root:0", {"x:0": x}), np.sqrt(x), rtol=1e-6)
        x[:] = 0
        self.assertAlmostEqual(s.partial_run(handle, ["y:0"], {"k:0": 2})[0][100], 20, 5)


class QueueRunners(unittest.TestCase):
    def build(self):
        with tf.Graph().as_default() as graph:
            numbers = tf.train.limit_epochs(tf.constant([1.0, 2.0]), num_epochs=3)
            queue = tf.FIFOQueue(10, [tf.float32], [[2]], name="queue")
            tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(numbers)]))
            queue.dequeue(name="next")
            init = [tf.global_variables_initializer().name, tf.local_variables_initializer().name]
        return graph, init

    def drain(self, s, init):
        s.run(init)
        threads = s.start_queue_runners()
        self.assertEqual(len(threads), 1)
        count = 0
        with self.assertRaises(errors.OutOfRangeError):
            while True:
                self.assertEqual(s.run("next:0").tolist(), [1, 2])
                count += 1
        try:
            s.stop_queue_runners()
        except errors.UnimplementedError as error:
            self.skipTest(str(error))
        self.assertEqual(count, 3)

    def test_of_a_graph(self):
        graph, init = self.build()
        self.drain(millrace.Session(graph), init)

    def test_of_a_meta_graph(self):
        graph, init = self.build()
        self.drain(millrace.Session(tf.train.export_meta_graph(graph=graph)), init)

    def test_errors(self):
        with tf.Graph().as_default() as graph:
            runner = tf.train.QueueRunner(tf.FIFOQueue(1, tf.int32), [tf.Assert(False, ["broken"])])
            tf.train.add_queue_runner(runner)
        with millrace.Session(graph) as s:
            for thread in s.start_queue_runners():
                thread.join()
            with self.assertRaises((errors.InvalidArgumentError, errors.UnimplementedError)):
                s.stop_queue_runners()
        with self.assertRaises(ValueError):
            millrace.Session(graph.as_graph_def()).start_queue_runners()


class Waiting(unittest.TestCase):
    def session(self, config=None):
        with tf.Graph().as_default() as graph:
            queue = tf.FIFOQueue(10, [tf.float32], [[1000]], name="queue")
            x = tf.placeholder(tf.float32, [1000], name="x")
            queue.dequeue(name="next")
            queue.enqueue(x, name="put")
        return millrace.Session(graph.as_graph_def(), config)

    def test_interrupt(self):
        # A process in the background may have been started with SIGINT ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        s = self.session()
        for _ in range(3):
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            with self.assertRaises(KeyboardInterrupt):
                s.run("next:0")
        s.run("put", {"x:0": np.ones(1000)})
        self.assertEqual(s.run("next:0")[9], 1)

    def test_close(self):
        s = self.session()
        threading.Timer(0.1, s.close).start()
        with self.assertRaises(errors.CancelledError):
            s.run("next:0")

    def test_timeout(self):
        with self.assertRaises(errors.DeadlineExceededError):
            self.session({"timeout_ms": 50}).run("next:0")
        with self.assertRaises(errors.DeadlineExceededError):
            self.session(tf.ConfigProto(operation_timeout_in_ms=50)).run("next:0")

    def test_queued_values_are_copied(self):
        s = self.session()
        value = np.ones(1000, np.float32)
        s.run("put", {"x:0": value})
        value[:] = 2
        self.assertEqual(s.run("next:0")[999], 1)


if __name__ == "__main__":
    unittest.main()
