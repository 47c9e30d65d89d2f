"""The Session."""
from __future__ import annotations

import contextlib
import threading
from typing import Any, Callable, ContextManager, Dict, List, Mapping, Optional, Sequence

from . import _config, _devices, _fetch, _functions, _graph, _metadata, _partial, _queues, _tensorflow
from . import errors
from ._library import library
from ._plan import Plan
from ._step import Runner

_functions.install()


class Session:
    """Runs a graph, in place of ``tf.compat.v1.Session``.

    Parameters
    ----------
    graph
        Bytes of a GraphDef, MetaGraphDef or SavedModel; the path of such a file, or the directory of a SavedModel; or
        an object with ``as_graph_def()``, such as a ``tf.Graph``, whose later nodes are added before the next run.
    config
        ``None``, a dict with ``"threads"`` (for loops inside operators), ``"device"`` (for nodes that request none),
        ``"allow_soft_placement"``, ``"log_device_placement"``, ``"timeout_ms"`` (of a run; then DeadlineExceededError),
        ``"optimize"`` (False: nodes run as they are in the graph) and ``"recompute"`` (False: what the backward pass
        reads is kept, not computed again: more memory), or a ConfigProto or its bytes, of which
        intra_op_parallelism_threads, operation_timeout_in_ms, log_device_placement, the opt_level L0 and the
        memory_optimization NO_MEM_OPT are used. The dict may also use ConfigProto's names; fields that do not change
        results are ignored.
    tags
        Of the MetaGraphDef in a SavedModel, whose variables are then restored and whose initialization is run.
        ``None``: the only one, not restored.

    Notes
    -----
    Any number of threads may call run at the same time; a run releases the GIL. Ctrl-C cancels a run of the main
    thread, unless the program has a handler of its own for SIGINT. Close the session, or use it in a with statement.

    In a program that has imported TensorFlow, the session is also one for tf.train.start_queue_runners, Tensor.eval,
    Variable.load and other functions that take a tf.Session, and its errors are those of tf.errors too.

    Examples
    --------
    >>> with mr.Session("model.pb") as session:
    ...     probabilities = session.run("softmax:0", {"images:0": images})
    """

    def __new__(cls, *arguments, **named):
        base = _tensorflow.member("client.session", "SessionInterface") if cls is Session else None
        return super().__new__(_tensorflow.joined(cls, base))

    def __init__(self, graph: Any, config: Any = None, tags: Optional[Sequence[str]] = None) -> None:
        self._closed = True
        loaded = _graph.load(graph, tags)
        self._source = loaded.source
        self._version = loaded.version
        self._count = loaded.count
        self._meta = loaded.meta
        self._plans = {}
        self._threads = None
        self._contexts = None
        self._following = threading.Lock()
        self._dead_handles = []
        self._runner = Runner(loaded.graph_def, _config.options(config))
        self._names = _fetch.Names(self._runner, self._source)
        self._closed = False
        if tags is not None:
            _graph.restore(self, loaded)

    @property
    def signatures(self) -> Dict[str, Dict[str, Dict[str, str]]]:
        """``{key: {"inputs": {name: tensor}, "outputs": {name: tensor}}}`` of a SavedModel or MetaGraphDef."""
        return self._meta.signatures if self._meta is not None else {}

    def run(
        self,
        fetches: Any,
        feed_dict: Optional[Mapping[Any, Any]] = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """Computes fetches with the values of feed_dict.

        Parameters
        ----------
        fetches
            A tensor or operation, by name (``"y:0"``, ``"train"``) or as an object with a name, or lists, tuples, named
            tuples and dicts of them, nested in any way.
        feed_dict
            Maps tensors, by name or object, to arrays, numbers, strings or lists, which are converted to the tensor's
            dtype.
        options
            A RunOptions, of this module or of TensorFlow, or its bytes.
        run_metadata
            A RunMetadata, of this module or of TensorFlow, or another object with ParseFromString, which is called with
            the bytes after the run. They contain what options request: step_stats of a trace_level, from which
            TensorFlow's Timeline makes a Chrome trace, and partition_graphs.

        Returns
        -------
        The structure of `fetches` with a NumPy array for each tensor, a scalar or bytes for one of rank 0, and None for
        an operation. Strings are arrays of dtype object that contain bytes.

        Raises
        ------
        millrace.errors.OpError
            A node failed.
        TypeError, ValueError
            An argument is invalid, as Session.run of TensorFlow raises them.
        """
        self._enter()
        feed_dict = feed_dict or {}
        # A tuple equals a named tuple: structures with tuples are found by the key with types.
        try:
            plan = self._plans.get(((list, *fetches) if type(fetches) is list else fetches, *feed_dict))
        except TypeError:  # something in it cannot be hashed
            plan = None
        if plan is None:
            feeds = self._single(feed_dict)
            if feeds is not feed_dict:
                return self.run(fetches, feeds, options, run_metadata)
            plan = self._plan(fetches, feed_dict)
        if options is None and run_metadata is None:
            return plan.run(feed_dict.values())
        return _metadata.run(plan, feed_dict.values(), options, run_metadata)

    @staticmethod
    def _single(feed_dict):
        """A feed_dict whose keys are single tensors; the given one if it is."""
        if isinstance(feed_dict, dict) and all(map(_fetch.is_simple, feed_dict)):
            return feed_dict
        flat = _fetch.flat_feeds(feed_dict)
        return dict(pair for key, value in flat.items() for pair in _fetch.feed_pairs(key, value))

    def _plan(self, fetches, feed_keys):
        try:
            typed = (_fetch.key_of(fetches), *feed_keys)
            plan = self._plans.get(typed)
        except TypeError:
            typed = plan = None
        if plan is None:
            plan = Plan(self, fetches, list(feed_keys))
            if typed is not None:
                self._plans[typed] = plan
        parts = fetches if type(fetches) is list else [fetches]
        if not any(isinstance(part, (list, tuple, dict)) for part in parts):
            try:
                self._plans[((list, *fetches) if parts is fetches else fetches, *feed_keys)] = plan
            except TypeError:
                pass  # an instance of an attrs class that cannot be hashed
        return plan

    def make_callable(
        self, fetches: Any, feed_list: Optional[Sequence[Any]] = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function that runs `fetches` with its arguments as the values of `feed_list`; faster than ``run``.

        Parameters
        ----------
        fetches
            As of ``run``.
        feed_list
            Tensors, by name or object.
        accept_options
            Whether it also takes ``options`` and ``run_metadata``; with a `feed_list` it does, as in TensorFlow.
        """
        self._enter()
        if feed_list is not None:
            return self._callable_with(fetches, feed_list)
        plan = Plan(self, fetches, [])

        def call():
            if self._closed:
                raise RuntimeError("Attempted to use a closed Session.")
            if not plan.is_run():
                raise errors.InvalidArgumentError(None, None, "Must specify at least one target to fetch or execute.")
            return plan.run(())

        def call_with(options=None, run_metadata=None):
            if options is None and run_metadata is None:
                return call()
            return _metadata.run(plan, (), options, run_metadata)

        return call_with if accept_options else call

    def _callable_with(self, fetches, feed_list):
        if not isinstance(feed_list, (list, tuple)):
            raise TypeError(f"Argument `feed_list` must be a list or tuple. Received: feed_list={feed_list}")
        feed_list = list(feed_list)
        count = len(feed_list)
        is_simple = all(map(_fetch.is_simple, feed_list)) and len({*map(id, feed_list)}) == count
        plan = None

        def call(*values, options=None, run_metadata=None):
            nonlocal plan
            if plan is None or len(values) != count or options is not None or run_metadata is not None:
                if is_simple and len(values) == count and not self._closed:
                    self._enter()
                    plan = self._plan(fetches, feed_list)
                return self.run(fetches, dict(zip(feed_list, values)), options, run_metadata)
            if self._closed:
                raise RuntimeError("Attempted to use a closed Session.")
            return plan.run(values)

        return call

    def extend(self, graph_def: Any) -> None:
        """Adds nodes, whose inputs may be nodes that the session has already. Variables keep their values.

        Parameters
        ----------
        graph_def
            The bytes of a GraphDef, or a GraphDef.
        """
        data = _graph.serialized(graph_def)
        self._enter()
        self._runner.extend(data)

    def reset(self, containers: Optional[Sequence[str]] = None) -> None:
        """Clears resources, as tf.Session.reset does: variables and lookup tables are no longer initialized, queues
        and other tables are empty, and iterators have to be initialized again. The session stays open.

        Parameters
        ----------
        containers
            A list of names of ``tf.container``; ``"localhost"`` is the default one, of resources without a name.
            ``None``: as in TensorFlow, only the default one.

        Raises
        ------
        millrace.errors.FailedPreconditionError
            Another thread, such as a queue runner's, is in a run of the session.
        """
        if isinstance(containers, (str, bytes)):
            raise TypeError(f"containers: expected a list of names, not {containers!r}")
        names = [name.decode() if isinstance(name, bytes) else name for name in containers or ()]
        if any("\0" in name for name in names):
            raise ValueError("containers: a name contains a NUL character")
        self._enter()
        self._runner.reset(names)

    def partial_run_setup(self, fetches: Any, feeds: Optional[Sequence[Any]] = None) -> Any:
        """Prepares a run in several parts. Each of `fetches` and `feeds` is used in at most one part.

        Returns
        -------
        A handle for ``partial_run``.

        Notes
        -----
        An operation that ran in one part cannot be waited for, by a control edge, in another one.
        """
        self._enter()
        return _partial.setup(self, fetches, feeds)

    def partial_run(self, handle: Any, fetches: Any, feed_dict: Optional[Mapping[Any, Any]] = None) -> Any:
        """Runs what `fetches` need and no earlier part has run, with the feeds of all parts so far."""
        self._enter()
        if not isinstance(handle, _partial.Partial) or handle.session is not self:
            raise _partial.not_set_up(self)
        return handle.run(fetches, feed_dict)

    def start_queue_runners(self, collection: str = "queue_runners") -> List[threading.Thread]:
        """Starts a thread for each enqueue operation of the queue runners of the graph.

        A thread ends when its queue, or the input of the queue, has ended; the last one of a runner closes its queue.
        Another error stops all of them, and ``stop_queue_runners`` raises it.

        Parameters
        ----------
        collection
            Of the tf.Graph, or of the MetaGraphDef, that the session was created with.

        Returns
        -------
        The threads.
        """
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

    def stop_queue_runners(self) -> None:
        """Cancels the queue runners' enqueue operations and joins the threads.

        Raises
        ------
        The first error of a thread that was not the end of a queue.
        """
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.stop()

    def _enter(self):
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if self._source is not None:
            if self._source.version != self._version:
                self._follow()
            if self._version == 0:
                raise RuntimeError("The Session graph is empty. Add operations to the graph before calling run().")

    def _follow(self):
        """Adds the nodes that the tf.Graph got since the last run."""
        with self._following:
            version = self._source.version
            graph_def = self._source.as_graph_def()
            del graph_def.node[: self._count]
            self._runner.extend(graph_def.SerializeToString())
            self._count += len(graph_def.node)
            self._version = version

    def _located(self, error):
        """An error of a run of a tf.Graph, with the operation that failed."""
        if self._source is None:
            return error
        message = _tensorflow.interpolated(error.message, self._source)
        node_def, op = error.node_def, None
        if node_def is not None:
            try:
                op = self._source.get_operation_by_name(node_def.name)
                node_def = op.node_def
            except (KeyError, ValueError):
                pass  # of a function, or created by the planner
        return type(error)(node_def, op, message)

    def _register_dead_handle(self, handle):
        """A tf.TensorHandle was collected: its tensor is deleted, together with others, in a later run."""
        self._dead_handles.append(handle)
        # The garbage collector may call this inside _follow, which holds the lock: then they wait for the next one.
        if len(self._dead_handles) < 10 or not self._following.acquire(blocking=False):
            return
        try:
            dead, self._dead_handles = self._dead_handles, []
        finally:
            self._following.release()
        deleter_of = _tensorflow.member("ops.session_ops", "_get_handle_deleter")
        if not dead or deleter_of is None or self._closed:
            return
        pairs = [(*deleter_of(self._source, i, handle), handle) for i, handle in enumerate(dead)]
        self.run([deleter for _, deleter, _ in pairs], {holder: handle for holder, _, handle in pairs})

    # ---- As tf.Session ----

    @property
    def graph(self) -> Any:
        """The tf.Graph that the session was created with, or None."""
        return self._source

    @property
    def graph_def(self) -> Any:
        """The GraphDef of the tf.Graph; otherwise the bytes of a GraphDef."""
        return self._source.as_graph_def() if self._source is not None else self._runner.graph_def()

    @property
    def sess_str(self) -> bytes:
        """Empty: the session is in this process."""
        return b""

    def list_devices(self) -> List[Any]:
        """The devices that nodes can be placed on, with name, device_type, memory_limit_bytes and incarnation."""
        return _devices.list_devices()

    def as_default(self) -> ContextManager[Any]:
        """A context manager, in which Tensor.eval and Operation.run of TensorFlow use the session. It stays open."""
        return _tensorflow.default_session(self)

    def close(self) -> None:
        """Ends the session. Runs in progress raise CancelledError, later ones RuntimeError. Results stay valid."""
        if self._closed:
            return
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.abandon()
        self._closed = True
        library.mr_runner_close(self._runner.handle)
        self._plans.clear()

    def __enter__(self) -> Session:
        if self._contexts is not None:
            raise RuntimeError(
                "Session context managers are not re-entrant. Use `Session.as_default()` if you want to enter a "
                "session multiple times."
            )
        self._contexts = contextlib.ExitStack()
        if self._source is not None and hasattr(self._source, "as_default"):
            self._contexts.enter_context(self._source.as_default())
        self._contexts.enter_context(self.as_default())
        return self

    def __exit__(self, *exception: Any) -> None:
        contexts, self._contexts = self._contexts, None
        try:
            contexts.__exit__(*exception)
        finally:
            self.close()
