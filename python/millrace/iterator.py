"""Iterators: running pipelines."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

from . import _abi, _callbacks, _converters, _interrupt, _library, _tensors, errors
from . import _arguments as check
from ._functional import component_names
from ._library import library

if TYPE_CHECKING:
    from .dataset import Dataset

__all__ = ["DatasetIterator"]

_alive: "weakref.WeakSet[DatasetIterator]" = weakref.WeakSet()
_process = os.getpid()


def _after_fork() -> None:
    global _process
    _process = os.getpid()
    _alive.clear()


os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _close_all() -> None:
    """Before the interpreter ends: threads of pipelines may call functions of the program."""
    for iterator in list(_alive):
        iterator.close()


def failure(error: _library.Error) -> BaseException:
    """The exception for an error of a pipeline."""
    message = error.message.decode("utf-8", "replace")
    cause = _callbacks.cause(message)
    if cause is not None and not isinstance(cause, Exception):
        return cause
    made = errors.from_code(error.status, message)
    made.__cause__ = cause
    return made


def as_tuple(element: Any, count: int) -> Tuple[Any, ...]:
    """The components of an element that an iterator has returned."""
    return element if count > 1 else (element,)


class DatasetIterator:
    """Runs a pipeline, whose threads work ahead, and returns one element after the other.

    Created by ``Dataset.numpy()``, ``torch()``, ``jax()`` and ``dlpack()``. Waiting releases the GIL, and Ctrl-C ends
    it; any thread may call any method. Close it, use it in a with statement, or drop it: its threads end with it, while
    elements stay valid as long as anything refers to them.

    An element that fails raises an exception of ``mr.errors`` that names stage, file and record; the next call
    continues after it.

    Examples
    --------
    >>> it = mr.Dataset.range(6).shuffle(seed=1).numpy()
    >>> first = [next(it) for _ in range(3)]
    >>> state = it.state()
    >>> rest = list(it)
    >>> it.restore(state)
    >>> rest == list(it)
    True
    """

    _handle: Optional[int] = None

    def __init__(
        self,
        dataset: "Dataset",
        form: str = "numpy",
        *,
        as_dict: bool = False,
        threads: Optional[int] = None,
        budget_bytes: Optional[int] = None,
        seed: int = 0,
        tune: Optional[bool] = None,
        verbose: bool = False,
        trace: Any = None,
        digest: bool = False,
        watchdog: Optional[float] = None,
    ) -> None:
        specs = dataset.element_spec
        self._names = component_names(specs) if check.boolean(as_dict, "as_dict") else None
        self._count = len(specs)
        self._dataset = dataset
        self._functions = dataset._functions
        self._has_digest = check.boolean(digest, "digest")
        options = _abi.IteratorOptions(
            threads=check.threads(threads, "threads"),
            tune=0 if tune is None else 1 if check.boolean(tune, "tune") else 2,
            budget_bytes=0 if budget_bytes is None else check.integer(budget_bytes, "budget_bytes", 1),
            seed=check.seed(seed),
            trace_path=None if trace is None else check.path(trace, "trace"),
            digest=self._has_digest,
        )
        if watchdog is not None:
            seconds = check.number(watchdog, "watchdog")
            if not 0.001 <= seconds <= 1e6:
                raise ValueError(f"watchdog is {watchdog!r}, expected 0.001 to 1,000,000 seconds")
            options.watchdog_ns = int(seconds * 1e9)
            options.watchdog = _callbacks.address(_report)
        self._report: Optional[_Display] = None
        # A signal handler may find that the call that it interrupts holds a lock. It must not wait for it.
        self._lock = threading.RLock()  # held by calls, which may wait for elements
        self._closing = threading.RLock()  # acquired after _lock; held while the handle is used or taken away
        self._process = _process
        self._error = _library.Error()
        self._error_at = ctypes.addressof(self._error)
        self._element = _abi.Element()
        self._element_at = ctypes.addressof(self._element)
        self._convert: Callable[[int, int], List[Any]] = _converters.converter(
            form, specs, dataset._stage.has("prefetch_to_device")
        )
        self._pools: List[Any] = []
        for pool in dict.fromkeys(dataset._pools):
            pool.acquire()
            self._pools.append(pool)
        handle = ctypes.c_void_p()
        status = library.mr_iterator_new(dataset._handle, ctypes.byref(options), ctypes.byref(handle), self._error_at)
        if status:
            _release(self._pools)
            raise failure(self._error)
        self._handle = handle.value
        _alive.add(self)
        if check.boolean(verbose, "verbose"):
            self._report = _Display(self)

    # ---- Elements ----

    def __iter__(self) -> "DatasetIterator":
        return self

    def __next__(self, next_element: Any = library.mr_iterator_next) -> Any:
        if self._functions:
            self._refuse_own_function()
        lock = self._lock
        if lock._is_owned():
            self._refuse_reentry()
        lock.acquire()
        try:
            handle = self._handle
            if handle is None or self._process != _process:
                self._refuse()
            if threading.get_ident() == _interrupt.main:
                if not _interrupt.is_installed():
                    _interrupt.install()
                _interrupt.running.append([self])
                try:
                    status = next_element(handle, self._element_at, self._error_at)
                finally:
                    _interrupt.running.pop()
            else:
                status = next_element(handle, self._element_at, self._error_at)
            if status:
                if status == _abi.OUT_OF_RANGE:
                    self._end()
                    raise StopIteration
                raise failure(self._error)
            values = self._convert(self._element.tensors, self._count)
        finally:
            lock.release()
        if self._report is not None:
            self._report.update()
        if self._names is not None:
            return dict(zip(self._names, values))
        return tuple(values) if self._count > 1 else values[0]

    def _refuse_own_function(self) -> None:
        """A function that its pipeline waits for cannot wait for the pipeline, nor end it."""
        if not self._functions.isdisjoint(_callbacks.running()):
            raise RuntimeError("a function of a pipeline cannot use an iterator of this pipeline")

    def _refuse_reentry(self) -> None:
        raise RuntimeError("the iterator is in use by the call that a signal has interrupted; cancel() ends that call")

    def _end(self) -> None:
        if self._report is not None:
            self._report.end()

    def _refuse(self) -> None:
        if self._handle is None:
            raise ValueError("the iterator is closed")
        raise RuntimeError("the iterator was created before a fork: create one in this process")

    def cancel(self) -> None:
        """Ends the current and all later calls of ``next`` with CancelledError. For another thread."""
        with self._closing:
            if self._handle is not None and self._process == _process:
                library.mr_iterator_cancel(self._handle)

    def close(self) -> None:
        """Ends the pipeline's threads. Elements that were returned stay valid. It may be called more than once."""
        if self._handle is None:
            return
        if self._process != _process:
            self._handle = None
            return
        self._refuse_own_function()
        if self._closing._is_owned():
            self._refuse_reentry()
        self.cancel()
        with _Held(self):
            self._end()
            with self._closing:
                handle, self._handle = self._handle, None
            if handle is not None:
                library.mr_element_deinit(self._element_at)
                library.mr_iterator_free(handle)
                _release(self._pools)

    def __enter__(self) -> "DatasetIterator":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __del__(self) -> None:
        handle, self._handle = self._handle, None
        if handle is None or self._process != _process:
            return
        library.mr_element_deinit(self._element_at)
        if _callbacks.running():
            # On a thread of a pipeline, perhaps of this one, which could not wait for itself.
            threading.Thread(target=_free, args=(handle, self._dataset, self._pools), daemon=True).start()
        else:
            library.mr_iterator_free(handle)
            _release(self._pools)

    # ---- State ----

    def state(self) -> bytes:
        """What is needed to continue after the last element that was returned, bit for bit, with any number of threads.

        The first call reads the sources to identify them: arrays completely, up to about 64 MiB of files.

        Returns
        -------
        bytes
            Small unless the pipeline keeps elements, such as a shuffle with a buffer over an input without an index.
        """
        tensor = _abi.Tensor()
        with _Open(self):
            status = library.mr_iterator_save(self._handle, ctypes.byref(tensor), self._error_at)
            if status:
                raise failure(self._error)
            try:
                return _tensors.take(ctypes.addressof(tensor), 1)[0]
            finally:
                library.mr_tensor_deinit(ctypes.byref(tensor))

    def restore(self, state: bytes) -> None:
        """Continues where an iterator of the same pipeline, in any process, was when its state was saved.

        Raises
        ------
        millrace.errors.InvalidArgumentError
            The state is damaged, or belongs to another pipeline or to other data.
        """
        if not isinstance(state, (bytes, bytearray, memoryview)):
            raise TypeError(f"state is of type {type(state).__name__}, expected bytes")
        tensors = _tensors.Tensors([bytes(state)], "state")
        with _Open(self):
            if library.mr_iterator_restore(self._handle, tensors.address, self._error_at):
                raise failure(self._error)

    def state_dict(self) -> Dict[str, Any]:
        """``state()`` as a dict, for ``torch.save`` and for torchdata's protocol of stateful objects."""
        return {"state": self.state()}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Continues where an iterator of the same pipeline was when `state_dict` was returned: see ``restore``."""
        if not isinstance(state_dict, dict):
            raise TypeError(f"state_dict is of type {type(state_dict).__name__}, expected a dict")
        if set(state_dict) != {"state"}:
            raise ValueError(f"state_dict has the keys {sorted(map(str, state_dict))}, expected 'state'")
        self.restore(state_dict["state"])

    # ---- About ----

    @property
    def digest(self) -> int:
        """A digest of everything that was returned: equal if elements and order are. Requires ``digest=True``."""
        if not self._has_digest:
            raise ValueError("the iterator was created without digest=True")
        with _Open(self):
            return library.mr_iterator_digest(self._handle)

    def statistics(self) -> List[Dict[str, Any]]:
        """A dict for each stage, source first.

        Returns
        -------
        list of dict
            ``stage``, ``elements``, ``bytes``; ``busy_seconds``, ``input_wait_seconds`` and ``output_wait_seconds``,
            summed over threads; ``held_bytes`` of the budget; ``threads``; ``slots_max`` and ``occupancy`` of its
            window: near 0, the consumer waits for the pipeline, near 1, the pipeline for the consumer; ``warning``, or
            ``""``.
        """
        with _Used(self):
            count = library.mr_iterator_statistics(self._handle, None, 0)
            structs = (_abi.StageStatistics * max(1, count))()
            count = min(count, library.mr_iterator_statistics(self._handle, structs, count))
        return [_as_dict(structs[i]) for i in range(count)]

    def statistics_text(self, columns: int = 80) -> str:
        """The same as a table of lines of at most `columns` characters, at least 60."""
        width, size = check.integer(columns, "columns", 60, 10000), 4096
        while True:
            text = ctypes.create_string_buffer(size)
            with _Used(self):
                length = library.mr_iterator_statistics_text(self._handle, width, text, size)
            if length < size:
                return text.raw[:length].decode("utf-8", "replace")
            size = length + 1024

    def tuned(self) -> Dict[str, Any]:
        """The tuner's status: ``is_on``, ``is_settled``, ``decisions``, and the last change as ``line``."""
        struct = _abi.Tuned()
        with _Open(self):
            library.mr_iterator_tuned(self._handle, ctypes.byref(struct))
        return {
            "is_on": struct.is_on,
            "is_settled": struct.is_settled,
            "decisions": struct.decisions,
            "line": struct.line.decode("utf-8", "replace"),
        }

    def stop_trace(self) -> None:
        """Ends the Chrome trace. UnavailableError if it could not be written completely."""
        with _Open(self):
            if library.mr_iterator_trace_stop(self._handle, self._error_at):
                raise failure(self._error)

    def __copy__(self) -> Any:
        raise TypeError("cannot copy a DatasetIterator: create another one and restore its state")

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("cannot pickle a DatasetIterator: save its state()")

    def __repr__(self) -> str:
        return f"<millrace.DatasetIterator{' (closed)' if self._handle is None else ''} of\n{self._dataset!r}>"


class _Held:
    """Holds the lock of an iterator."""

    __slots__ = ("_iterator",)

    def __init__(self, iterator: DatasetIterator) -> None:
        self._iterator = iterator

    def __enter__(self) -> None:
        self._iterator._refuse_own_function()
        if self._iterator._lock._is_owned():
            self._iterator._refuse_reentry()
        self._iterator._lock.acquire()

    def __exit__(self, *exception: Any) -> None:
        self._iterator._lock.release()


class _Open(_Held):
    """The same of an iterator that is open."""

    __slots__ = ()

    def __enter__(self) -> None:
        super().__enter__()
        if self._iterator._handle is None or self._iterator._process != _process:
            self._iterator._lock.release()
            self._iterator._refuse()


class _Used:
    """Keeps an open iterator open, for a call that may run beside one that waits for an element."""

    __slots__ = ("_iterator",)

    def __init__(self, iterator: DatasetIterator) -> None:
        self._iterator = iterator

    def __enter__(self) -> None:
        self._iterator._closing.acquire()
        if self._iterator._handle is None or self._iterator._process != _process:
            self._iterator._closing.release()
            self._iterator._refuse()

    def __exit__(self, *exception: Any) -> None:
        self._iterator._closing.release()


def _release(pools: List[Any]) -> None:
    while pools:
        pools.pop().release()


def _free(handle: int, dataset: Any, pools: List[Any]) -> None:
    library.mr_iterator_free(handle)
    _release(pools)
    del dataset


def _as_dict(struct: _abi.StageStatistics) -> Dict[str, Any]:
    return {
        "stage": struct.stage.decode(),
        "elements": struct.elements,
        "bytes": struct.bytes,
        "busy_seconds": struct.busy_ns / 1e9,
        "input_wait_seconds": struct.input_wait_ns / 1e9,
        "output_wait_seconds": struct.output_wait_ns / 1e9,
        "held_bytes": struct.held_bytes,
        "threads": struct.threads,
        "slots_max": struct.slots_max,
        "occupancy": struct.occupancy,
        "warning": struct.warning.decode("utf-8", "replace"),
    }


@_abi.WATCHDOG_FUNCTION
def _report(context, waited_ns, threads, count):
    """Prints what the threads of a pipeline do while its consumer waits."""
    import sys

    lines = [f"millrace: the consumer has waited for {waited_ns / 1e9:.1f} s"]
    for work in (_abi.ThreadWork * count).from_address(threads) if count else ():
        if work.stage is None:
            lines.append("  idle")
        else:
            doing = "waits for" if work.is_waiting else "works on"
            where = work.where.decode("utf-8", "replace")
            lines.append(f"  {work.stage.decode()} {doing} {where} for {work.since_ns / 1e9:.1f} s")
    try:
        print("\n".join(lines), file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        pass


class _Display:
    """The table of `verbose`: replaced in place on a terminal, otherwise printed every 10 seconds and at the end."""

    def __init__(self, iterator: DatasetIterator) -> None:
        import sys
        import time

        self._iterator = weakref.ref(iterator)
        self._now = time.monotonic
        self._stream = sys.stderr
        self._is_terminal = self._stream is not None and self._stream.isatty()
        self._period = 0.5 if self._is_terminal else 10.0
        self._next = self._now() + self._period
        self._lines = 0
        self._has_ended = False

    def update(self) -> None:
        if self._now() >= self._next:
            self._next = self._now() + self._period
            self._print()

    def end(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._print()

    def _print(self) -> None:
        import shutil

        iterator = self._iterator()
        if iterator is None:
            return
        columns = max(60, min(200, shutil.get_terminal_size().columns))
        try:
            text = iterator.statistics_text(columns).rstrip("\n")
        except ValueError:  # closed by another thread
            return
        up = f"\033[{self._lines}F\033[J" if self._is_terminal and self._lines else ""
        self._lines = text.count("\n") + 1
        try:
            print(f"{up}{text}", file=self._stream, flush=True)
        except (OSError, ValueError, AttributeError):
            pass
