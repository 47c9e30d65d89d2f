"""python/millrace in a session of a tf.Graph: values, errors and messages are those of TensorFlow."""
import collections
import gc
import pickle
import threading
import unittest

import numpy as np
from support import millrace, tf
from tensorflow.python.client import session as client
from twin import compare

Pair = collections.namedtuple("Pair", "a b")


class Rows(list):
    pass


class Fields(dict):
    pass


class Squared:
    def __init__(self, tensor):
        self.square = tf.square(tensor)


client.register_session_run_conversion_functions(
    Squared,
    lambda fetch: ([fetch.square], lambda values: ("squared", values[0])),
    lambda feed, value: [(feed.square, value)],
    lambda feed: [feed.square],
)


def basic():
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    i = tf.placeholder(tf.int32, name="i")
    s = tf.placeholder(tf.string, name="s")
    tf.constant([1, 2], name="c")
    tf.no_op("n")
    return x, i, s, tf.multiply(x, 2.0, name="y"), tf.add(i, 1, name="j"), tf.identity(s, name="u")


class Fetches(unittest.TestCase):
    def test_structures(self):
        def calls(session, x, i, s, y, j, u):
            graph = tf.get_default_graph()
            c, n = graph.get_tensor_by_name("c:0"), graph.get_operation_by_name("n")
            for fetch in (
                "c", "c:0", b"c:0", "n", c, n, c.op, [], (), {}, [[], ()], ["c:0", c], ("c:0", ["n"]), Pair(c, "n"),
                (c, "n"), [Pair(c, c)], [(c, c)], collections.OrderedDict([("z", c), ("a", n)]), Rows(["c:0"]),
                Fields(k=c), collections.defaultdict(list, k="c:0"), {"k": Pair(c, [c])}, "c:-1",
                "^c", "n:0", "c:1", "c:x", ":0", "", "zz", "zz:0", "c:0:0", 3, None, [None], {"k": c, "l": None}, 3.5,
                object, {"a", "b"}, np.array(["c:0"]), np.float32(1), "y",
            ):  # fmt: skip
                yield lambda: session.run(fetch)

        compare(self, basic, calls)

    def test_of_another_graph(self):
        def calls(session, *_):
            with tf.Graph().as_default():
                tensor, operation = tf.constant(1.0, name="x"), tf.no_op("n")
                sparse = tf.SparseTensor([[0]], [1.0], [1])
            for fetch in (tensor, operation, [tensor, "c:0"], sparse, {"k": tensor}):
                yield lambda: session.run(fetch)
            yield lambda: session.run("c:0", {tensor: 1})

        compare(self, basic, calls)

    def test_of_several_tensors(self):
        def build():
            slices = tf.IndexedSlices(tf.placeholder(tf.float32), tf.placeholder(tf.int64), tf.placeholder(tf.int64))
            return (
                tf.sparse_placeholder(tf.float32), slices, tf.IndexedSlices(slices.values, slices.indices),
                tf.ragged.constant([[1, 2], [3]]), tf.ragged.placeholder(tf.int32, 1), Squared(tf.constant(3.0)),
            )  # fmt: skip

        def calls(session, sparse, slices, two, ragged, fed, squared):
            parts = ([[0, 1]], [3.0], [2, 2])
            for value in (tf.SparseTensorValue(*parts), parts, list(parts), (*parts, 4), 3, None):
                yield lambda: session.run(sparse, {sparse: value})
                yield lambda: session.run([sparse.values * 2, {"k": sparse}], {sparse: value})
            for value in (([1.0], [0], [4]), ([1.0], [0])):
                yield lambda: session.run([slices, slices.values * 2], {slices: value})
                yield lambda: session.run([two, two.values * 2], {two: value})
            yield lambda: session.run([ragged, {"k": (ragged, ragged.values)}])
            yield lambda: session.run(fed, {fed: tf.ragged.constant_value([[1], [2, 3]], dtype=np.int32)})
            yield lambda: session.run(fed.flat_values + 1, {fed: tf.ragged.constant_value([[1], [2, 3]])})
            yield lambda: session.run([squared, squared.square + 1])
            yield lambda: session.run([squared, squared.square + 1], {squared: 7})

        compare(self, build, calls)

    def test_prevented(self):
        def build():
            x = tf.placeholder(tf.float32, name="x")
            y = x * 2
            z = tf.identity(y, name="z")
            x.graph.prevent_feeding(y)
            x.graph.prevent_fetching(z.op)
            return x, y, z

        def calls(session, x, y, z):
            for fetch, feeds in ((y, {x: 1}), (z, {y: 1}), (x, {y: 1, x: 3}), ("z:0", {x: 1}), (z.op, {x: 1})):
                yield lambda: session.run(fetch, feeds)

        compare(self, build, calls)


class Feeds(unittest.TestCase):
    def test_float(self):
        def calls(session, x, i, s, y, j, u):
            for value in (
                [[1, 2]], [[True, False]], np.ones((1, 2), ">f4"), np.ones((2, 4), np.float32)[:, ::2],
                np.zeros((0, 2)), [], [[]], [1, 2], 1.0, 3, [[1, 2], [3]], [["1", "2"]], [["a", "b"]],
                None, ((1, 2),), "abc",
                b"abc", x, [[x, x]], np.array([[1, "a"]], object), {"a": 1}, np.matrix([[1, 2]]), [[10**40, 2]],
                np.asfortranarray(np.ones((300, 2), np.float32)), np.ones((4, 600), np.float32)[::2, ::300], object,
            ):  # fmt: skip
                yield lambda: session.run(y, {x: value})

        compare(self, basic, calls)

    def test_int(self):
        def calls(session, x, i, s, y, j, u):
            for value in (
                3, 3.0, 3.7, [3.7], True, 2**31, 2**31 - 1, -(2**31) - 1, 2**63, 10**30, [2**31], [10**30],
                np.int64(2**31), "3", ["3"], "a", None, [], np.float64(2.5), 1j, [True], np.array([1, 2], ">i4"),
                np.array([], np.float64), [[1], [2, 3]], np.array(5, object), i, np.zeros((1,) * 8),
            ):  # fmt: skip
                yield lambda: session.run(j, {i: value})

        compare(self, basic, calls)

    def test_string(self):
        def calls(session, x, i, s, y, j, u):
            for value in (
                "a", b"\xff\x00", "\u00e4", ["a", b"b"], np.array(["a", "bcd"]), np.array([b"a", b"bc"]), 3, [3], 3.5,
                np.array(["a", 1], object), None, ["a", None], [["a"], ["b", "c"]], [], [[]], bytearray(b"ab"), True,
                np.array([["x", "y"]], object)[:, ::-1], "a\0b", np.array(["a\0"]), [b"a\0"], {"a": 1}, s,
                [b"x" * 2000],
            ):  # fmt: skip
                yield lambda: session.run(u, {s: value})

        compare(self, basic, calls)

    def test_keys(self):
        def calls(session, x, i, s, y, j, u):
            v = [[1, 2]]
            n = tf.get_default_graph().get_operation_by_name("n")
            for feeds in (
                {"x:0": v}, {"x": v}, {b"x:0": v}, {x.op: v}, {n: v}, {"n": v}, {3: v}, {None: v}, {"zz": v}, {"": v},
                {"zz:0": v}, {"x:1": v}, {"x:0:0": v}, {"^x": v}, {(x, i): (v, 3)}, {(x, i): 3},
                {x: v, "x:0": [[3, 4]]},
                {x: v, (x, i): (v, 1)}, [(x, v)], "x", 3, {y: [[5, 6]]}, {"y:0": 7}, {}, None, [],
            ):  # fmt: skip
                yield lambda: session.run(y, feeds)
            yield lambda: session.run([j, u], {(i, (s,)): (1, ["a"])})
            yield lambda: session.run([], {x: [1]})

        compare(self, basic, calls)

    def test_fed_and_fetched(self):
        def calls(session, x, i, s, y, j, u):
            array = np.ones((3, 2), np.float32)
            yield lambda: session.run(["c:0", y, x], {x: [[1, 2]]})
            yield lambda: session.run("c:0", {"c:0": [7, 8]})
            yield lambda: session.run("c:0", {"c:0": [7, 8, 9]})
            yield lambda: session.run([i, j], {i: 3})
            yield lambda: session.run([s, u], {s: ["\u00e9", b"a"]})
            yield lambda: session.run(x, {x: array}) is array
            yield lambda: session.run(x, {x: 3})

        compare(self, basic, calls)


class Callables(unittest.TestCase):
    def test_make_callable(self):
        def calls(session, x, i, s, y, j, u):
            add = session.make_callable(j, [i])
            for values in ((1,), (1, 2), (), ("q",), ([1],)):
                yield lambda: add(*values)
            yield lambda: add(1, options=tf.RunOptions())
            yield lambda: session.make_callable([i, j], (i,))(3)
            yield lambda: session.make_callable(j, [(i, s)])((1, "a"))
            for arguments in ((j, i), (j, {i: 1}), ("zz:0",), (None,), (3,)):
                yield lambda: session.make_callable(*arguments)
            yield lambda: session.make_callable("zz:0", [i])(1)
            yield lambda: session.make_callable(j, ["zz:0"])(1)
            yield lambda: session.make_callable(["c:0", ("c:0",), "n"])()
            yield lambda: session.make_callable([])()
            nothing = session.make_callable("n")
            constant = session.make_callable("c:0", accept_options=True)
            yield nothing
            yield lambda: constant(options=tf.RunOptions(), run_metadata=tf.RunMetadata())
            session.close()
            yield lambda: add(1)

        compare(self, basic, calls)

    def test_partial_run(self):
        def build():
            a, b, c = (tf.placeholder(tf.float32, [], name=name) for name in "abc")
            tf.no_op("n")
            r = tf.add(a, b, name="r")
            return a, b, c, r, tf.multiply(r, c, name="q")

        def calls(session, a, b, c, r, q):
            def part(fetches, feeds, *parts):
                handle = session.partial_run_setup(fetches, feeds)
                return [session.partial_run(handle, *one) for one in parts]

            for arguments in (
                ([r, q], [a, b, c], ({"k": (r,)}, {a: 1, b: 2}), ([q], {c: 1})),
                ([r, q], [a, b, c], (r, {a: 1, b: 2}), (q, {c: 5})),
                ([r, q], [a, b, c], (r, {a: 1, b: 2}), (q, {c: 5}), (q, {c: 5})),
                ([r, q], [a, b, c], (q, {c: 5})),
                ([r], [a, b, c], (q, {a: 1, b: 2, c: 3})),
                ([r], [a], (r, {a: 1, b: 2})),
                ("r:0", "a:0", (r, {b: 2})),
                ([r, a], [a, b]), ([], []), (None, [a]), ("zz:0", [a]),
            ):  # fmt: skip
                yield lambda: part(*arguments)

        compare(self, build, calls)


class Handles(unittest.TestCase):
    def test_tensors_in_the_session(self):
        def build():
            p = tf.placeholder(tf.int32, name="p")
            v = tf.get_variable("v", [], tf.int32, use_resource=False)
            return tf.get_session_handle(tf.multiply(tf.constant(10), 5, name="c"), name="h"), p, p * 2, v, v.assign(p)

        def calls(session, h, p, y, v, assign):
            t, t2 = session.run([h, h])[0], session.run("h:0")
            yield lambda: [type(t).__name__, t.eval(), str(t).split(";")[-1]]
            holder, x = tf.get_session_tensor(t.handle, tf.int32)
            yield lambda: session.run(x * 10, {holder: t.handle})
            for fetch in (y, p, [y, p], assign, v, x):
                yield lambda: session.run(fetch, {p: t, holder: t.handle})
            yield lambda: session.run(p + y, {p: t, y: t2})
            yield t.delete
            yield t.delete
            yield t.eval
            raw = t2.get_raw_handle()
            yield lambda: session.run(x, {holder: raw})
            fed, delete = tf.delete_session_tensor(raw)
            yield lambda: session.run(delete, {fed: raw})
            yield lambda: session.run(x, {holder: raw}) and None
            yield lambda: session.run(y, {p: t2})

        compare(self, build, calls)

    def test_collected(self):
        def calls(session, h):
            names = [handle.handle for handle in [session.run(h) for _ in range(25)]]
            gc.collect()
            holder, x = tf.get_session_tensor(names[0], tf.float32)

            def is_kept(name):
                try:
                    return session.run(x, {holder: name}) == 1
                except tf.errors.InvalidArgumentError:
                    return False

            yield lambda: sum(map(is_kept, names))

        compare(self, lambda: (tf.get_session_handle(tf.constant(1.0)),), calls)


class Sessions(unittest.TestCase):
    def test_contexts(self):
        def calls(session, x, i, s, y, j, u):
            def in_context():
                with session as entered:
                    same = entered is session is tf.get_default_session()
                    return same, j.eval({i: 1}), tf.get_default_graph() is j.graph, session.graph is j.graph

            def as_default():
                with session.as_default():
                    return j.eval({i: 1}), j.op.run({i: 1})

            def twice():
                with session, session:
                    pass

            yield as_default
            yield lambda: (j.eval({i: 1}, session=session), isinstance(session, client.SessionInterface))
            yield lambda: [(d.name, d.device_type, d.memory_limit_bytes) for d in session.list_devices()][:1]
            yield lambda: (type(session.graph_def).__name__, session.sess_str)
            yield twice
            yield lambda: tf.get_default_session()
            yield lambda: j.eval({i: 1}, session=session)

        compare(self, basic, calls)
        with tf.Graph().as_default() as graph:
            tf.constant(1, name="c")
            with millrace.Session(graph) as session:
                self.assertIs(tf.get_default_session(), session)
                self.assertEqual(graph.get_tensor_by_name("c:0").eval(), 1)

    def test_growing_graphs(self):
        def calls(session):
            yield lambda: session.run("x:0")
            tf.constant(1, name="x")
            yield lambda: session.run("x:0")
            tf.get_default_graph().finalize()
            yield lambda: session.run("x:0")

        compare(self, lambda: (), calls)

    def test_functions_in_growing_graphs(self):
        # TensorFlow serializes the attributes of the same function in another order each time.
        with tf.Graph().as_default() as graph:
            data = tf.data.Dataset.range(100).map(lambda x: x * x)
            value = tf.data.make_one_shot_iterator(data).get_next()
            session = millrace.Session(graph)
            for i in range(20):
                self.assertEqual(session.run(value), i * i)
                tf.data.make_one_shot_iterator(data)

    def test_variables(self):
        def build():
            v = tf.get_variable("v", [1, 1], use_resource=True, initializer=tf.zeros_initializer())
            return v, tf.placeholder(tf.float32, name="p")

        def calls(session, v, p):
            assign = v.assign(p)
            for call in (v.initializer, v, v + 1, assign, v.assign_add([[1.0]]), v, tf.global_variables()):
                yield lambda: session.run(call, {p: np.zeros([2, 2])})
            yield lambda: v.load([[3]], session)
            yield lambda: v.eval(session)
            yield lambda: session.run(tf.report_uninitialized_variables())

        compare(self, build, calls)

    def test_first_value_of_another_shape(self):
        def build():
            v = tf.get_variable("v", [1, 1], use_resource=True)
            p = tf.placeholder(tf.float32)
            return v, p, v.assign(p)

        def calls(session, v, p, assign):
            for shape in ([2, 2], [2, 2], [3]):
                yield lambda: session.run(assign, {p: np.zeros(shape)})
                yield lambda: session.run([v, tf.shape(v), v + 1])

        compare(self, build, calls)

    def test_queue_runners(self):
        with tf.Graph().as_default() as graph:
            queue = tf.FIFOQueue(5, tf.int32)
            numbers = tf.train.range_input_producer(7, num_epochs=2, shuffle=False).dequeue()
            tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(numbers)] * 2))
            value = queue.dequeue()
            init = tf.local_variables_initializer()
            with millrace.Session(graph) as session:
                session.run(init)
                coordinator = tf.train.Coordinator()
                threads = tf.train.start_queue_runners(session, coordinator)
                values = []
                with coordinator.stop_on_exception():  # the end is a tf.errors.OutOfRangeError
                    while not coordinator.should_stop():
                        values.append(int(session.run(value)))
                coordinator.join(threads)
        self.assertEqual(sorted(values), sorted([*range(7)] * 2))

    def test_errors_are_those_of_tensorflow(self):
        with tf.Graph().as_default() as graph:
            tf.reshape(tf.placeholder(tf.float32, name="x"), [2], name="y")
            session = millrace.Session(graph)
            with self.assertRaises(tf.errors.InvalidArgumentError) as caught:
                session.run("y:0", {"x:0": 1})
        error = caught.exception
        self.assertIsInstance(error, millrace.errors.InvalidArgumentError)
        self.assertIs(error.op, graph.get_operation_by_name("y"))
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(again), again.error_code, again.node_name), (str(error), 3, "y"))
        self.assertIsInstance(again, tf.errors.OpError)

    def test_threads_and_a_growing_graph(self):
        failures = []
        with tf.Graph().as_default() as graph:
            x = tf.constant(1)
            session = millrace.Session(graph)

            def work():
                try:
                    for _ in range(100):
                        session.run(x)
                except Exception as error:
                    failures.append(error)

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for i in range(100):
                self.assertEqual(session.run(x + i), i + 1)
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    unittest.main()
