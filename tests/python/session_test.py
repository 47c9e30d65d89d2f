"""python/millrace: feeds, fetches, errors, extension."""
import collections
import copy
import gc
import pickle
import threading
import unittest
import weakref

import numpy as np
from support import millrace, session, tf

errors = millrace.errors
NUMERIC = [np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16,
           np.float32, np.float64, np.complex64, np.complex128, tf.bfloat16.as_numpy_dtype]  # fmt: skip


def placeholder(dtype, shape=None):
    return tf.identity(tf.placeholder(dtype, shape, name="x"), name="y")


class Arrays(unittest.TestCase):
    def check(self, value, fed=None):
        s, _ = session(lambda: placeholder(tf.as_dtype(value.dtype)))
        result = s.run("y:0", {"x:0": value if fed is None else fed})
        self.assertEqual(np.asarray(result).dtype, value.dtype)
        self.assertEqual(np.shape(result), value.shape)
        np.testing.assert_array_equal(np.asarray(result), value)
        if value.shape:
            self.assertTrue(result.flags.writeable)
            self.assertFalse(np.shares_memory(result, value))

    def test_every_dtype_and_size(self):
        for dtype in NUMERIC:
            for shape in ((), (1,), (0,), (2, 0, 3), (5,), (3, 4), (50, 60), (1,) * 8):
                with self.subTest(dtype=dtype, shape=shape):
                    self.check((np.arange(np.prod(shape)).reshape(shape) % 100).astype(dtype))

    def test_other_layouts(self):
        value = np.arange(4000, dtype=np.float32).reshape(40, 100)
        for fed in (value.T.copy().T, value.astype(">f4"), value.astype(np.float64), value.tolist(),
                    np.frombuffer(b"x" + value.tobytes(), np.float32, offset=1).reshape(40, 100)):  # fmt: skip
            self.check(value, fed)
        self.check(value[::2, ::-1])
        self.check(value[:2, :3].T)
        fixed = value.copy()
        fixed.flags.writeable = False
        self.check(value, fixed)

    def test_numbers_and_lists(self):
        self.check(np.array(3.0, np.float32), 3)
        self.check(np.array(True), True)
        self.check(np.array([1, 2], np.int64), [1, 2])
        self.check(np.array([1.5, 2], np.float16), (1.5, 2))
        self.check(np.array(1 + 2j, np.complex64), 1 + 2j)

    def test_strings(self):
        s, _ = session(lambda: placeholder(tf.string))
        large = np.array([b"x" * 3000, b"y"], object)
        for fed in ([b"a", "\u00e4", b"", b"\0x\0"], np.array([["a", "bcd"]]), large, []):
            result = s.run("y:0", {"x:0": fed})
            expected = np.array(fed, dtype=object)
            self.assertEqual((result.dtype, result.shape), (object, expected.shape))
            plain = [item.encode() if isinstance(item, str) else item for item in expected.ravel()]
            self.assertEqual(result.ravel().tolist(), plain)
        self.assertEqual(s.run("y:0", {"x:0": "text"}), b"text")
        self.assertEqual(s.run("y:0", {"x:0": b""}), b"")
        with self.assertRaisesRegex(errors.InternalError, "Unsupported object type float"):
            s.run("y:0", {"x:0": [1.5]})

    def test_quantized(self):
        s, _ = session(lambda: placeholder(tf.qint8))
        self.assertEqual(s.run("y:0", {"x:0": [1, -2]}).tolist(), [1, -2])
        self.assertEqual(s.run("y:0", {"x:0": [1, -2]}).dtype, np.int8)
        self.assertEqual(s.run("y:0", {"x:0": s.run("y:0", {"x:0": [3]})}).tolist(), [3])
        structured = np.array([5, -6], np.int8).view([("qint8", np.int8)])
        self.assertEqual(s.run("y:0", {"x:0": structured}).tolist(), [5, -6])

    def test_results_outlive_the_session(self):
        s, _ = session(lambda: placeholder(tf.int64))
        result = s.run("y:0", {"x:0": np.arange(10000)})
        s.close()
        del s
        gc.collect()
        result += 1
        self.assertEqual(result[9999], 10000)
        reference = weakref.ref(result.base)
        del result
        self.assertIsNone(reference())

    def test_fed_memory_is_not_kept(self):
        def build():
            x = tf.placeholder(tf.float32, [1000], name="x")
            v = tf.Variable(tf.zeros([1000]), name="v", use_resource=True)
            v.assign(x, name="set")

        s, _ = session(build)
        value = np.ones(1000, np.float32)
        s.run("set", {"x:0": value})
        value[:] = 2
        self.assertEqual(s.run("v/Read/ReadVariableOp:0")[5], 1)


class Feeds(unittest.TestCase):
    def setUp(self):
        self.s, _ = session(lambda: tf.add(tf.placeholder(tf.int8, [None, 2], name="x"), 1, name="y"))

    def test_invalid(self):
        for error, text, feeds in (
            (ValueError, r"shape \(2,\) for Tensor x:0, which has shape \(None, 2\)", {"x:0": [1, 2]}),
            (ValueError, "Cannot feed value of shape", {"x:0": np.zeros((600, 3), np.int8)}),
            (TypeError, "Cannot interpret feed_dict key as Tensor", {"z:0": 1}),
            (TypeError, "Cannot interpret feed_dict key as Tensor", {"x": 1}),
            (TypeError, "Cannot interpret feed_dict key as Tensor", {3: 1}),
            (TypeError, "is not compatible with Tensor type <class 'numpy.int8'>", {"y:0": 300}),
            (errors.InvalidArgumentError, "You must feed a value for placeholder tensor 'x' with dtype int8", {}),
        ):
            with self.subTest(text=text), self.assertRaisesRegex(error, text):
                self.s.run("y:0", feeds)

    def test_fed_and_fetched(self):
        x, y = self.s.run(["x:0", "y:0"], {"x:0": [[1, 2]], "y:0": [[3, 4]]})
        self.assertEqual((x.tolist(), y.tolist()), ([[1, 2]], [[3, 4]]))

    def test_shapes_may_change(self):
        for count in (1, 300, 0, 300, 2):
            value = np.ones((count, 2), np.int8)
            self.assertEqual(self.s.run("y:0", {"x:0": value}).tolist(), (value + 1).tolist())

    def test_sparse(self):
        def build():
            sparse = tf.sparse_placeholder(tf.float32, name="sparse")
            return sparse, tf.SparseTensor(sparse.indices, sparse.values * 2, sparse.dense_shape)

        s, (fed, doubled) = session(build)
        value = s.run(doubled, {fed: tf.SparseTensorValue([[0, 1]], [3], [2, 2])})
        self.assertEqual((value.indices.tolist(), value.values.tolist(), value.dense_shape.tolist()),
                         ([[0, 1]], [6], [2, 2]))  # fmt: skip
        self.assertEqual(s.run(doubled, {fed: value}).values.tolist(), [12])


class Fetches(unittest.TestCase):
    def test_structures(self):
        def build():
            a, b = tf.constant(1, name="a"), tf.constant(2.5, name="b")
            tf.no_op("nothing")
            return a, b

        s, (a, b) = session(build)
        Pair = collections.namedtuple("Pair", "left right")
        self.assertEqual(s.run(a), 1)
        self.assertIsInstance(s.run(a), np.int32)
        self.assertEqual(s.run([a, ("b:0", "nothing"), a.op]), [1, (2.5, None), None])
        self.assertEqual(s.run({"k": [a], "l": {}}), {"k": [1], "l": {}})
        self.assertEqual(s.run(Pair(a, [b, b])), Pair(1, [2.5, 2.5]))
        ordered = s.run(collections.OrderedDict([("z", a), ("a", b)]))
        self.assertEqual((type(ordered), list(ordered)), (collections.OrderedDict, ["z", "a"]))
        self.assertEqual(s.run([]), [])
        self.assertEqual(s.run(()), ())
        self.assertIsNone(s.run("nothing"))

    def test_invalid(self):
        s, _ = session(lambda: tf.constant(1, name="a"))
        for error, text, fetch in (
            (TypeError, 'invalid type "NoneType"', None),
            (TypeError, 'invalid type "NoneType"', ["a:0", None]),
            (TypeError, 'invalid type "int"', 3),
            (ValueError, "cannot be interpreted as a Tensor.*'b', does not exist", "b:0"),
            (ValueError, "exists but only has", "a:1"),
            (ValueError, "refers to an Operation not in the graph", "b"),
        ):
            with self.subTest(fetch=fetch), self.assertRaisesRegex(error, text):
                s.run(fetch)

    def test_variables(self):
        def build():
            v = tf.Variable([1.0, 2.0], name="v", use_resource=False)
            return v, tf.assign_add(v, [1.0, 1.0], name="more"), tf.global_variables_initializer()

        s, (v, more, init) = session(build)
        with self.assertRaisesRegex(errors.FailedPreconditionError, "Attempting to use uninitialized value v"):
            s.run(v)
        self.assertIsNone(s.run(init))
        before = s.run("v:0")
        self.assertEqual(s.run(more).tolist(), [2, 3])
        self.assertEqual(before.tolist(), [1, 2])
        before[0] = 9
        self.assertEqual(s.run(v).tolist(), [2, 3])

    def test_make_callable(self):
        def build():
            tf.add(tf.placeholder(tf.float32, name="a"), tf.placeholder(tf.float32, name="b"), name="c")

        s, _ = session(build)
        add = s.make_callable("c:0", ["a:0", "b:0"])
        self.assertEqual(add(1, 2), 3)
        self.assertEqual(add([1], 2).tolist(), [3])
        with self.assertRaisesRegex(errors.InvalidArgumentError, "You must feed a value for placeholder tensor 'b'"):
            add(1)
        self.assertEqual(add(1, 2, 3), 3)
        s.close()
        with self.assertRaises(RuntimeError):
            add(1, 2)


class Sessions(unittest.TestCase):
    def test_closed(self):
        s, _ = session(lambda: tf.constant(1, name="a"))
        with s:
            self.assertEqual(s.run("a:0"), 1)
        s.close()
        with self.assertRaisesRegex(RuntimeError, "Attempted to use a closed Session"):
            s.run("a:0")

    def test_a_dropped_session_is_freed_at_once(self):
        def fail(s):
            with self.assertRaises(errors.InvalidArgumentError):
                s.run("z:0", {"x:0": np.ones([3, 3], np.float32)})

        uses = {
            "run": lambda s: s.run("y:0", {"x:0": np.ones([2], np.float32)}),
            "error": fail,
            "structure": lambda s: s.run({"a": ["y:0"]}, {"x:0": np.ones([2], np.float32)}),
            "callable": lambda s: s.make_callable("y:0", ["x:0"])(np.ones([2], np.float32)),
            "closed": lambda s: s.close(),
        }
        for name, use in uses.items():
            with self.subTest(name):
                s, _ = session(lambda: tf.ensure_shape(placeholder(tf.float32), [2], name="z"))
                use(s)
                dropped = weakref.ref(s)
                gc.disable()
                s = None
                freed = dropped() is None
                gc.enable()
                self.assertTrue(freed)

    def test_a_callable_keeps_its_session(self):
        s, _ = session(lambda: tf.constant(3, name="a"))
        with_feeds, without = s.make_callable("a:0", []), s.make_callable("a:0")
        s = None
        self.assertEqual((with_feeds(), without()), (3, 3))

    def test_closed_callable(self):
        s, _ = session(lambda: tf.constant(3, name="a"))
        call = s.make_callable("a:0")
        s.close()
        with self.assertRaisesRegex(RuntimeError, "closed Session"):
            call()

    def test_extend(self):
        graph = tf.Graph()
        with graph.as_default():
            v = tf.Variable(3.0, name="v", use_resource=True)
            init = v.initializer
        first = graph.as_graph_def()
        s = millrace.Session(first.SerializeToString())
        s.run(init)
        with graph.as_default(), tf.control_dependencies([init]):
            tf.multiply(v, 2.0, name="twice")
        more = graph.as_graph_def()
        del more.node[: len(first.node)]
        s.extend(more)
        self.assertEqual(s.run("twice:0"), 6)
        with self.assertRaises(errors.AlreadyExistsError):
            s.extend(more.SerializeToString())
        self.assertEqual(s.run("twice:0"), 6)

    def test_follows_a_growing_graph(self):
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32)
            s = millrace.Session(graph)
            self.assertEqual(s.run(x * 2, {x: 3}), 6)
            self.assertEqual(s.run(x * 3, {x: 3}), 9)

    def test_config(self):
        data = tf.Graph().as_graph_def().SerializeToString()
        millrace.Session(data, {"threads": 2, "allow_soft_placement": True}).close()
        millrace.Session(data, tf.ConfigProto(intra_op_parallelism_threads=1)).close()
        proto = tf.ConfigProto(intra_op_parallelism_threads=-1, operation_timeout_in_ms=20, placement_period=3)
        proto.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
        fields = {"operation_timeout_in_ms": 20, "inter_op_parallelism_threads": 2, "gpu_options": {},
                  "graph_options": {"optimizer_options": {"opt_level": -1}}}  # fmt: skip
        with tf.Graph().as_default() as graph:
            waiting = tf.FIFOQueue(1, tf.int32).dequeue()
        for config in (proto, proto.SerializeToString(), fields, {"timeout_ms": 20}):
            with millrace.Session(graph, config) as session, self.assertRaises(errors.DeadlineExceededError):
                session.run(waiting)
        with self.assertRaisesRegex(ValueError, "config: not a ConfigProto"):
            millrace.Session(data, b"\xff\xff")
        with self.assertRaisesRegex(TypeError, "unknown setting 'thread'"):
            millrace.Session(data, {"thread": 2})
        with self.assertRaises(errors.InvalidArgumentError):
            millrace.Session(data, {"device": "nonsense"})
        for config in (5, "x", [], {"threads": "2"}, {"threads": 1.5}, {"device": 5}, {3: 4}):
            with self.assertRaisesRegex(TypeError, "config: "):
                millrace.Session(data, config)
        for name in ("allow_soft_placement", "log_device_placement", "optimize", "recompute"):
            for value in (True, False, 1, 0, np.bool_(True)):
                millrace.Session(data, {name: value}).close()
            for value in ("false", None, 2, 0.0, [], np.array([True, False])):
                with self.assertRaisesRegex(TypeError, f"config: {name} is .*, expected True or False"):
                    millrace.Session(data, {name: value})
        for value in (None, 5, {"rewrite_options": 3}, {"optimizer_options": None}):
            with self.assertRaisesRegex(TypeError, "config: .* is .*, expected a dict"):
                millrace.Session(data, {"graph_options": value})
        for value in ("no_mem_opt", 99, -1, None, [], True, 1.0):
            options = {"rewrite_options": {"memory_optimization": value}}
            with self.assertRaisesRegex(ValueError, "config: memory_optimization is .*, expected one of"):
                millrace.Session(data, {"graph_options": options})
        with self.assertRaisesRegex(ValueError, "config: opt_level is 'nonsense', expected one of .'L0', 'L1'"):
            millrace.Session(data, {"graph_options": {"optimizer_options": {"opt_level": "nonsense"}}})
        for threads in (-1, 1 << 31, 10**30):
            with self.assertRaisesRegex(ValueError, "config: threads is"):
                millrace.Session(data, {"threads": threads})
        with self.assertRaisesRegex(ValueError, "config: timeout_ms is -1"):
            millrace.Session(data, {"timeout_ms": -1})

    def test_everything_of_a_closed_session(self):
        s, _ = session(lambda: tf.constant(1.0, name="x"))
        with self.assertRaisesRegex(ValueError, "0 bytes"):
            s.extend(b"")
        s.close()
        with self.assertRaisesRegex(RuntimeError, "closed Session"):
            s.extend(tf.Graph().as_graph_def())
        with s, self.assertRaisesRegex(RuntimeError, "closed Session"):
            s.run("x:0")

    def test_variants(self):
        def build():
            made = tf.raw_ops.TensorListFromTensor(tensor=[1.0, 2.0], element_shape=tf.constant([], tf.int32), name="l")
            fed = tf.placeholder(tf.variant, [], name="fed")
            tf.raw_ops.TensorListStack(
                input_handle=fed, element_shape=tf.constant([], tf.int32), element_dtype=tf.float32, name="y"
            )
            return made

        s, made = session(build)
        handle = s.run(made)
        self.assertEqual(handle.dtype, "variant")
        for _ in range(2):
            self.assertEqual(s.run("y:0", {"fed:0": handle}).tolist(), [1, 2])
        same = [copy.copy(handle), copy.deepcopy([handle])[0]]
        self.assertEqual(s.run("y:0", {"fed:0": same.pop()}).tolist(), [1, 2])
        with self.assertRaisesRegex(TypeError, "cannot pickle <millrace.Handle of dtype variant>"):
            pickle.dumps(handle)
        array = s.run("y:0", {"fed:0": handle})
        self.assertEqual(pickle.loads(pickle.dumps(array)).tolist(), copy.deepcopy(array).tolist())

    def test_invalid_graphs(self):
        for data in (b"", b"garbage", b"\n\x05ab", b"\x08"):
            with self.assertRaises((ValueError, errors.InvalidArgumentError)):
                millrace.Session(data)
        with self.assertRaises(TypeError):
            millrace.Session(3)
        with self.assertRaises(FileNotFoundError):
            millrace.Session("/nonexistent.pb")

    def test_errors(self):
        def build():
            with tf.name_scope("scope"):
                tf.reshape(tf.placeholder(tf.float32, name="x"), [2, 2], name="square")

        s, _ = session(build)
        with self.assertRaises(errors.InvalidArgumentError) as caught:
            s.run("scope/square:0", {"scope/x:0": [1, 2, 3]})
        e = caught.exception
        self.assertEqual((e.node_name, e.operator, e.error_code), ("scope/square", "Reshape", errors.INVALID_ARGUMENT))
        self.assertEqual((e.node_def.name, e.node_def.op), ("scope/square", "Reshape"))
        self.assertIn("{{node scope/square}}", str(e))
        self.assertIsInstance(e, errors.OpError)

    def test_error_names_are_those_of_tensorflow(self):
        for name in dir(tf.errors):
            value = getattr(tf.errors, name)
            if isinstance(value, int):
                self.assertEqual(getattr(errors, name), value)
            elif isinstance(value, type) and issubclass(value, tf.errors.OpError) and value is not tf.errors.OpError:
                own = getattr(errors, name)
                self.assertEqual(own.error_code, value(None, None, "").error_code)
                self.assertIs(errors.exception_type_from_error_code(own.error_code), own)

    def test_threads(self):
        s, _ = session(lambda: tf.reduce_sum(tf.placeholder(tf.float32, [None], name="x"), name="y"))
        failures = []

        def work(seed):
            for i in range(200):
                value = np.full((seed * 100 + i) % 400, seed, np.float32)
                if s.run("y:0", {"x:0": value}) != value.sum():
                    failures.append(seed)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


class Functions(unittest.TestCase):
    def test_numbers_and_strings(self):
        def both(x, s):
            return x * 2, np.array([s, b"\0" + s], object)

        def build():
            return tf.py_func(both, [tf.constant([1.0, 2.0]), tf.constant("a")], [tf.float32, tf.string])

        s, (y, t) = session(build)
        self.assertEqual(s.run(y).tolist(), [2, 4])
        self.assertEqual(s.run(t).tolist(), [b"a", b"\0a"])

    def test_large_and_scalar(self):
        s, y = session(lambda: tf.py_func(lambda x: x.sum(), [tf.ones([300, 300])], tf.float32))
        self.assertEqual(s.run(y), 90000)
        s, y = session(lambda: tf.py_func(lambda: np.ones((300, 300), ">f8").T, [], [tf.float64])[0])
        self.assertEqual(s.run(y).sum(), 90000)

    def test_errors(self):
        def fail(kind):
            raise {0: ValueError, 1: StopIteration, 2: NotImplementedError, 3: KeyError}[int(kind)]("reason")

        def build():
            kind = tf.placeholder(tf.int32, [], name="kind")
            tf.py_func(fail, [kind], tf.float32, name="call")
            tf.py_func(lambda: 1, [], tf.float32, name="wrong")

        s, _ = session(build)
        expected = (errors.InvalidArgumentError, errors.OutOfRangeError, errors.UnimplementedError, errors.UnknownError)
        for kind, error in enumerate(expected):
            with self.assertRaisesRegex(error, "reason") as caught:
                s.run("call:0", {"kind:0": kind})
            self.assertEqual(caught.exception.node_name, "call")
        with self.assertRaisesRegex(errors.InvalidArgumentError, "0-th value returned by .* is int64"):
            s.run("wrong:0")

    def test_registered(self):
        s, y = session(lambda: tf.py_func(lambda x: x, [tf.constant(3)], tf.int32))
        token = y.op.get_attr("token").decode()
        millrace.register_function(token, lambda x: x + np.int32(1))
        self.assertEqual(s.run(y), 4)
        millrace.register_function(token, None)
        self.assertEqual(s.run(y), 3)


if __name__ == "__main__":
    unittest.main()
