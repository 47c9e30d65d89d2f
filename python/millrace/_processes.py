"""Worker processes for functions that hold the GIL.

The library exchanges blocks of elements with them through a memory file (<millrace/processes.h>); Python is only called
to start a process, when one has ended, and when a function has failed. The processes belong to the dataset: its first
iterator starts them, and they end with its last one."""
from __future__ import annotations

import ctypes
import os
import pickle
import socket
import threading
from typing import Any, List, Optional, Sequence

from . import _abi, _arguments, _callbacks, _library, _worker, errors
from ._arrays import DTYPES
from ._library import STRING, library
from ._specs import Spec

_START = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
_ENDED = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p)
_FAILED = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
# The parent's sockets, which forked workers must close: otherwise they would keep others alive.
_sockets: dict = {}
# A worker that is forked while another one is started would keep the other's end of its socket, and hide its end.
_starting = threading.Lock()


def _after_fork() -> None:
    global _starting
    _starting = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


class ProcessesOptions(_abi._Options):
    """mr_processes_options"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("count", ctypes.c_int32),
        ("memory", ctypes.c_int32),
        ("is_random", ctypes.c_bool),
        ("start", ctypes.c_void_p),
        ("ended", ctypes.c_void_p),
        ("failed", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    ]


class ProcessMapOptions(_abi._Options):
    """mr_process_map_options"""

    _fields_ = [("size", ctypes.c_size_t), ("num_parallel_calls", ctypes.c_int32), ("seed", ctypes.c_uint64)]


_library.declare(
    {
        "mr_processes_new": (ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p),
        "mr_processes_start": (ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p),
        "mr_processes_stop": (None, ctypes.c_void_p),
        "mr_dataset_map_in_processes_": (ctypes.c_void_p,) + (ctypes.c_void_p,) * 4,
    }
)


class WorkerError(Exception):
    """The cause of an exception of a worker process: its traceback as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class _Packer:
    """Converts a function's result to arrays, in the worker."""

    def __init__(self, specs: Sequence[Spec], names: Any) -> None:
        self.specs, self.names = specs, names

    def __call__(self, result: Any) -> List[Any]:
        return _callbacks.as_arrays(result, self.specs, self.names, "the result of map")


def _components(specs: Sequence[Spec]) -> list:
    return [(s.name, s.number, None if s.number == STRING else DTYPES[s.number], s.shape) for s in specs]


def _context_of(context: Any) -> Any:
    """A context of multiprocessing, from its name or None."""
    import multiprocessing

    if context is None or isinstance(context, str):
        _arguments.choice(context, "context", (None, *multiprocessing.get_all_start_methods()))
        return multiprocessing.get_context(context)
    if not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError(f"context is {context!r}, expected the name of a start method, or a context of multiprocessing")
    return context


class Pool:
    """The worker processes of one map."""

    def __init__(self, function: Any, inputs: Sequence[Spec], count: int, is_random: bool, context: Any) -> None:
        self._context = _context_of(context)
        pack = _Packer(function.specs, function.result_names)
        self._arguments = (
            function.function, function.names, _components(inputs), _components(function.specs), is_random, pack,
        )  # fmt: skip
        if self._context.get_start_method() != "fork":
            try:
                pickle.dumps(function.function)
            except Exception as exception:
                raise TypeError(
                    f"function cannot be pickled for worker processes of the context"
                    f" {self._context.get_start_method()!r} ({exception}): define it at the top level of a module"
                ) from exception
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._users = 0
        self._workers: List[Optional[tuple]] = [None] * count
        self._memory = os.memfd_create("millrace-map", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        handle, error = ctypes.c_void_p(), _library.Error()
        self._number = _callbacks.keep(self)
        options = ProcessesOptions(
            count=count, memory=self._memory, is_random=is_random, start=_callbacks.address(_start),
            ended=_callbacks.address(_ended), failed=_callbacks.address(_failed), release=_callbacks.address(_release),
            context=self._number,
        )  # fmt: skip
        status = library.mr_processes_new(ctypes.byref(options), ctypes.byref(handle), ctypes.byref(error))
        _library.check(status, error)
        self.handle = handle.value

    def acquire(self) -> None:
        """For an iterator: starts the processes if none is using them."""
        with self._lock:
            self._users += 1
            if self._users > 1:
                return
            error = _library.Error()
            status = library.mr_processes_start(self.handle, ctypes.byref(error))
        if status:
            self.release()
            from .iterator import failure

            raise failure(error)

    def release(self) -> None:
        """After an iterator: ends the processes with the last one."""
        with self._lock:
            self._users -= 1
            if self._users or self._process != os.getpid() or self.handle is None:
                return
            library.mr_processes_stop(self.handle)
            self.end()

    def end(self) -> None:
        for index in range(len(self._workers)):
            self._end_one(index)

    def start_one(self, index: int) -> int:
        with _starting:
            return self._start_one(index)

    def _start_one(self, index: int) -> int:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        memory: Any = self._memory
        others: List[int] = []
        if self._context.get_start_method() == "fork":
            others = [*_sockets, ours.fileno()]
        else:
            from multiprocessing.reduction import DupFd

            memory = _Descriptor(DupFd, self._memory)
        process = self._context.Process(
            target=_worker.main, args=(theirs, memory, os.getpid(), others, self._arguments), daemon=True,
            name="millrace-map",
        )  # fmt: skip
        try:
            process.start()
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        _sockets[ours.fileno()] = ours
        self._workers[index] = (process, ours)
        return ours.fileno()

    def _end_one(self, index: int) -> Any:
        """Ends a worker; its exit code, if it had ended by itself."""
        worker, self._workers[index] = self._workers[index], None
        if worker is None:
            return None
        process, ours = worker
        if self._process != os.getpid():
            return None
        process.join(0.0 if process.is_alive() else None)
        code = process.exitcode
        _sockets.pop(ours.fileno(), None)
        ours.close()
        if code is None:
            process.kill()
            process.join()
        return process.pid, code

    def why(self, index: int) -> str:
        worker = self._workers[index]
        if worker is not None:
            worker[0].join(1.0)  # the socket closes before the process has ended
        pid, code = self._end_one(index) or (0, None)
        if code is None:
            return f"worker process {pid} has sent a wrong answer, and was killed"
        if code < 0:
            import signal

            return f"worker process {pid} was killed by signal {-code} ({signal.Signals(-code).name})"
        return f"worker process {pid} ended with exit code {code} while it ran the function"

    def close(self, process: Any = os.getpid, close: Any = os.close) -> None:
        """May be called at the end of the interpreter, when modules have no names any more."""
        self.handle = None
        self.end()
        if self._memory >= 0 and self._process == process():
            close(self._memory)
        self._memory = -1


class _Descriptor:
    """Passes a file descriptor to a process that is not forked."""

    def __init__(self, duplicate: Any, descriptor: int) -> None:
        self._duplicate, self._descriptor = duplicate, descriptor

    def __reduce__(self) -> Any:
        return _attached, (self._duplicate(self._descriptor),)


def _attached(duplicate: Any) -> Any:
    return duplicate


def _guard(function: Any, error: int, *arguments: Any) -> int:
    try:
        return function(*arguments) or _abi.OK
    except BaseException as exception:
        return _callbacks.fail(error or 0, exception)


@_START
def _start(context, index, descriptor, error):
    def start():
        ctypes.c_int32.from_address(descriptor).value = _callbacks._objects[context].start_one(index)

    return _guard(start, error)


@_ENDED
def _ended(context, index, error):
    def ended():
        pool = _callbacks._objects[context]
        if not error:
            pool._end_one(index)
            return
        raise errors.from_code(errors.ABORTED, pool.why(index))

    return _guard(ended, error)


@_FAILED
def _failed(context, data, size, error):
    def failed():
        pickled, name, message, text = pickle.loads(ctypes.string_at(data, size))
        try:
            exception = pickle.loads(pickled) if pickled else None
        except Exception:
            exception = None
        if not isinstance(exception, BaseException):
            exception = errors.from_code(errors.UNKNOWN, f"{name}: {message}")
        exception.__cause__ = WorkerError(text)
        raise exception

    return _guard(failed, error)


@_abi.RELEASE
def _release(context, objects=_callbacks._objects):
    pool = objects.pop(context, None)
    if pool is not None:
        pool.close()
