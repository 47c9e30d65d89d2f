"""The Session."""
import ctypes
import operator

from . import _fetch, _graph, _library, _metadata, _partial, _queues
from . import errors
from ._library import library
from ._step import Feed, Runner, Step


class _Plan:
    """What one form of run() computes, with a free list of steps, one for each concurrent run."""

    __slots__ = ("runner", "feeds", "fetches", "targets", "build", "steps", "expand")

    def __init__(self, runner, fetches, feed_keys):
        collector = _fetch.Collector()
        self.runner = runner
        self.build = collector.add(fetches)
        self.expand = None
        self.feeds = []
        counts = []
        for key in feed_keys:
            parts = _fetch.sparse_parts(key)[0] if _fetch.is_sparse(key) else [key]
            counts.append(len(parts))
            self.feeds += [_feed(runner, part) for part in parts]
        if any(_fetch.is_sparse(key) for key in feed_keys):
            self.expand = [_fetch.is_sparse(key) for key in feed_keys]
        self.fetches = list(collector.tensors)
        self.targets = list(collector.operations)
        for name in self.fetches:
            _check_tensor(runner, name)
        for name in self.targets:
            if not runner.has_node(name):
                raise ValueError(
                    f"Fetch argument {name!r} cannot be interpreted as a Tensor. (The name {name!r} refers to an "
                    "Operation not in the graph.)"
                )
        self.steps = [Step(runner, self.feeds, self.fetches, self.targets)]

    def run(self, values, *run):
        """run: as for Step.run."""
        if self.expand:
            values = [v for value, many in zip(values, self.expand) for v in (_parts_of(value) if many else (value,))]
        steps = self.steps
        try:
            step = steps.pop()
        except IndexError:
            step = Step(self.runner, self.feeds, self.fetches, self.targets)
        try:
            results = step.run(values, *run)
        finally:
            steps.append(step)
        return self.build(results)


def _parts_of(value):
    """The components of a value for a SparseTensor or IndexedSlices, in the order of sparse_parts."""
    if isinstance(value, tuple):
        return [part for part in value if part is not None]
    return [value.indices, value.values, value.dense_shape]


def _feed(runner, key):
    name = _fetch.element_name(key)
    if name is None:
        kind = type(key).__name__
        raise TypeError(f"Cannot interpret feed_dict key as Tensor: Can not convert a {kind} into a Tensor.")
    if ":" not in name:
        raise TypeError(
            f"Cannot interpret feed_dict key as Tensor: {name!r} is an operation, not a tensor; use {name}:0"
        )
    try:
        number, shape = runner.describe(name)
    except KeyError:
        raise TypeError(
            f"Cannot interpret feed_dict key as Tensor: The name {name!r} refers to a Tensor which does not exist."
        ) from None
    return Feed(name, number, shape)


def _check_tensor(runner, name):
    try:
        runner.describe(name)
    except KeyError:
        node, _, index = name.rpartition(":")
        reason = (
            f"The operation, {node!r}, exists but only has fewer outputs."
            if runner.has_node(node) and index.isdigit()
            else f"The operation, {node!r}, does not exist in the graph."
        )
        raise ValueError(
            f"Fetch argument {name!r} cannot be interpreted as a Tensor. (The name {name!r} refers to a Tensor which "
            f"does not exist. {reason})"
        ) from None


def _count(name, value, bits):
    """The value of a setting, an int of at least 0 that fits in so many bits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"config: {name} is {value!r}, expected an int") from None
    if not 0 <= number < 1 << bits:
        raise ValueError(f"config: {name} is {number}, expected 0 to {(1 << bits) - 1}")
    return number


def _options(config):
    """The mr_session_options of a dict, or of TensorFlow's ConfigProto, of which only threads and time are used."""
    options = _library.SessionOptions(size=ctypes.sizeof(_library.SessionOptions))
    if config is None:
        return options
    if not isinstance(config, dict):
        if not hasattr(config, "intra_op_parallelism_threads"):
            raise TypeError(f"config: expected None, a dict or a ConfigProto, not {type(config).__name__}")
        options.threads = _count("intra_op_parallelism_threads", config.intra_op_parallelism_threads, 31)
        options.timeout_ms = _count("operation_timeout_in_ms", getattr(config, "operation_timeout_in_ms", 0), 63)
        graph_options = getattr(config, "graph_options", None)
        level = getattr(getattr(graph_options, "optimizer_options", None), "opt_level", 0)
        options.no_optimization = level == -1  # OptimizerOptions.L0
        return options
    known = {"threads", "device", "allow_soft_placement", "log_device_placement", "timeout_ms", "optimize"}
    if set(config) - known:
        raise TypeError(f"config: unknown setting {min(map(repr, set(config) - known))}; known are {sorted(known)}")
    options.threads = _count("threads", config.get("threads", 0), 31)
    options.timeout_ms = _count("timeout_ms", config.get("timeout_ms", 0), 63)
    device = config.get("device")
    if device is not None and not isinstance(device, str):
        raise TypeError(f"config: device is {device!r}, expected a str such as '/device:GPU:0'")
    if device and "\0" in device:
        raise ValueError("config: device contains a NUL character")
    options.device = device.encode() if device else None
    options.no_soft_placement = not config.get("allow_soft_placement", True)
    options.log_device_placement = bool(config.get("log_device_placement", False))
    options.no_optimization = not config.get("optimize", True)
    return options


class Session:
    """Runs a graph, in place of tf.compat.v1.Session.

    graph   bytes of a GraphDef, MetaGraphDef or SavedModel; the path of such a file, or the directory of a SavedModel;
            or an object with as_graph_def(), such as a tf.Graph, whose later nodes are added before the next run
    config  None, a dict with "threads" (for loops inside operators), "device" (for nodes that request none),
            "allow_soft_placement", "log_device_placement", "timeout_ms" (of a run; then DeadlineExceededError) and
            "optimize" (False: nodes run as they are in the graph), or a ConfigProto, of which only
            intra_op_parallelism_threads, operation_timeout_in_ms and the opt_level L0 are used
    tags    of the MetaGraphDef in a SavedModel, whose variables are then restored and whose initialization is run.
            None: the only one, not restored

    Any number of threads may call run at the same time; a run releases the GIL. Ctrl-C cancels a run of the main
    thread, unless the program has a handler of its own for SIGINT. Close the session, or use it in a with statement."""

    def __init__(self, graph, config=None, tags=None):
        self._closed = True
        loaded = _graph.load(graph, tags)
        self._source = loaded.source
        self._version = loaded.version
        self._count = loaded.count
        self._meta = loaded.meta
        self._plans = {}
        self._threads = None
        self._runner = Runner(loaded.graph_def, _options(config))
        self._closed = False
        if tags is not None:
            _graph.restore(self, loaded)

    @property
    def signatures(self):
        """{key: {"inputs": {name: tensor}, "outputs": {name: tensor}}} of a SavedModel or MetaGraphDef."""
        return self._meta.signatures if self._meta is not None else {}

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        """Computes fetches with the values of feed_dict.

        fetches    a tensor or operation, by name ("y:0", "train") or as an object with a name, or lists, tuples, named
                   tuples and dicts of them, nested in any way
        feed_dict  maps tensors, by name or object, to arrays, numbers, strings or lists, which are converted to the
                   tensor's dtype
        options    a RunOptions, of this module or of TensorFlow, or its bytes
        run_metadata  a RunMetadata, of this module or of TensorFlow, or another object with ParseFromString, which is
                   called with the bytes after the run. They contain what options request: step_stats of a
                   trace_level, from which TensorFlow's Timeline makes a Chrome trace, and partition_graphs

        Returns the same structure with a NumPy array for each tensor, a scalar or bytes for one of rank 0, and None for
        an operation. Strings are arrays of dtype object that contain bytes. Raises millrace.errors.OpError, and
        TypeError or ValueError, as Session.run of TensorFlow does, for arguments that are invalid."""
        self._enter()
        feed_dict = feed_dict or {}
        try:
            key = ((list, *fetches) if type(fetches) is list else fetches, *feed_dict)
            plan = self._plans.get(key)
        except TypeError:  # something in it cannot be hashed
            key = (_fetch.key_of(fetches), *map(_fetch.element_name, feed_dict))
            plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = _Plan(self._runner, fetches, list(feed_dict))
        if options is None and run_metadata is None:
            return plan.run(feed_dict.values())
        return _metadata.run(plan, feed_dict.values(), options, run_metadata)

    def make_callable(self, fetches, feed_list=None, accept_options=False):
        """A function that runs fetches with its arguments as the values of feed_list; faster than run. With
        accept_options, and as in TensorFlow with a feed_list, it also takes run's options and run_metadata."""
        self._enter()
        plan = _Plan(self._runner, fetches, list(feed_list or ()))
        count = len(feed_list or ())

        def call(*values):
            if self._closed:
                raise RuntimeError("Attempted to use a closed Session.")
            if len(values) != count:
                raise TypeError(f"expected {count} values, one for each tensor of feed_list, not {len(values)}")
            return plan.run(values)

        def call_with(*values, options=None, run_metadata=None):
            if options is None and run_metadata is None:
                return call(*values)
            if self._closed:
                raise RuntimeError("Attempted to use a closed Session.")
            if len(values) != count:
                raise TypeError(f"expected {count} values, one for each tensor of feed_list, not {len(values)}")
            return _metadata.run(plan, values, options, run_metadata)

        return call_with if accept_options or feed_list is not None else call

    def extend(self, graph_def):
        """Adds nodes, whose inputs may be nodes that the session has already. Variables keep their values.

        graph_def  the bytes of a GraphDef, or a GraphDef"""
        data = _graph.serialized(graph_def)
        self._enter()
        self._runner.extend(data)

    def reset(self, containers=None):
        """Clears resources, as tf.Session.reset does: variables and lookup tables are no longer initialized, queues
        and other tables are empty, and iterators have to be initialized again. The session stays open.

        containers  a list of names of tf.container; "localhost" is the default one, of resources without a name. None:
                    as in TensorFlow, only the default one

        Raises FailedPreconditionError while another thread, such as a queue runner's, is in a run of the session."""
        if isinstance(containers, (str, bytes)):
            raise TypeError(f"containers: expected a list of names, not {containers!r}")
        names = [name.decode() if isinstance(name, bytes) else name for name in containers or ()]
        if any("\0" in name for name in names):
            raise ValueError("containers: a name contains a NUL character")
        self._enter()
        self._runner.reset(names)

    def partial_run_setup(self, fetches, feeds=None):
        """Prepares a run in several parts. Each of fetches and feeds is used in at most one part.

        Returns a handle for partial_run. An operation that ran in one part cannot be waited for, by a control edge, in
        another one."""
        self._enter()
        collector = _fetch.Collector()
        collector.add(fetches)
        names = [_feed(self._runner, key).name for key in feeds or ()]
        for name in collector.tensors:
            _check_tensor(self._runner, name)
        return _partial.Partial(
            self, _partial.Graph(self._runner.graph_def()), [*collector.tensors, *collector.operations], names
        )

    def partial_run(self, handle, fetches, feed_dict=None):
        """Runs what fetches need and no earlier part has run, with the feeds of all parts so far."""
        self._enter()
        if not isinstance(handle, _partial.Partial) or handle.session is not self:
            raise errors.InvalidArgumentError(None, None, "Must run partial_run_setup before partial_run")
        return handle.run(fetches, feed_dict)

    def start_queue_runners(self, collection="queue_runners"):
        """Starts a thread for each enqueue operation of the queue runners in the collection of the tf.Graph, or of the
        MetaGraphDef, that the session was created with. Returns the threads.

        A thread ends when its queue, or the input of the queue, has ended; the last one of a runner closes its queue.
        Another error stops all of them, and stop_queue_runners raises it."""
        self._enter()
        if self._threads is not None:
            raise RuntimeError("The queue runners have been started already.")
        if self._meta is not None:
            runners = [_queues.from_proto(data) for data in self._meta.messages(collection)]
        elif hasattr(self._source, "get_collection"):
            runners = [_queues.from_object(runner) for runner in self._source.get_collection(collection)]
        else:
            raise ValueError("A GraphDef has no queue runners: create the session with a tf.Graph or a MetaGraphDef.")
        self._threads = _queues.Threads(self, runners)
        self._threads.start()
        return list(self._threads.threads)

    def stop_queue_runners(self):
        """Cancels the queue runners' enqueue operations, joins the threads, and raises the first error of one that was
        not the end of a queue."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.stop()

    def _enter(self):
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if self._source is not None:
            self._follow()

    def _follow(self):
        """Adds the nodes that the tf.Graph got since the last run."""
        version = self._source.version
        if version != self._version:
            graph_def = self._source.as_graph_def()
            del graph_def.node[: self._count]
            self._runner.extend(graph_def.SerializeToString())
            self._count += len(graph_def.node)
            self._version = version

    def close(self):
        """Ends the session. Runs in progress raise CancelledError, later ones RuntimeError. Results stay valid."""
        if self._closed:
            return
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.abandon()
        self._closed = True
        library.mr_runner_close(self._runner.handle)
        self._plans.clear()

    def __enter__(self):
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        return self

    def __exit__(self, *exception):
        self.close()
