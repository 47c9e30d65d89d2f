"""What readers and writers of record files share."""
from __future__ import annotations

import ctypes
import os
import threading
import weakref
from typing import Any, Callable, Iterable, List, NamedTuple, Optional, Union

from . import _arguments, _library, _record_abi, errors
from ._library import library

Path = Union[str, bytes, "os.PathLike[str]"]
_opened: "weakref.WeakSet[Opened]" = weakref.WeakSet()
COMPRESSIONS = (None, "GZIP", "ZLIB")
_SIGNAL_SECONDS = 0.1


def failure(error: _library.Error) -> Exception:
    """The exception for a filled Error that names no node."""
    return errors.from_code(error.status, error.message.decode("utf-8", "replace"))


def check(status: int, error: _library.Error) -> None:
    """Raises the exception of a status other than MR_OK."""
    if status:
        raise failure(error)


class Opened:
    """An object that owns a handle of the library, for any thread. A forked child process cannot use it.

    Calls hold its lock. A signal handler runs in the main thread, perhaps inside such a call, for which it must not
    wait: its own call is refused."""

    _handle: Optional[int] = None
    _is_abandoned = False

    def _opens(self) -> None:
        self._lock = threading.RLock()
        _opened.add(self)

    def _held(self) -> Any:
        """The lock, for a with statement."""
        if self._lock._is_owned():
            raise self._reentered()
        return self._lock

    def _reentered(self) -> Exception:
        """The exception of a call inside another call of the same thread."""
        return RuntimeError(f"{type(self).__name__}({self.path!r}) is in use by the call that a signal has interrupted")

    def _abandon(self) -> None:
        """In a forked child: the threads that belong to the handle do not exist here, and its file is the parent's."""
        self._is_abandoned = True
        self._handle = None
        self._lock = threading.RLock()

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._handle is None

    def _unusable(self) -> Exception:
        """The exception of a call without a handle."""
        what = "was opened before a fork; open it in the child process" if self._is_abandoned else "is closed"
        return ValueError(f"{type(self).__name__}({self.path!r}) {what}")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle {type(self).__name__}({self.path!r})")


def _after_fork() -> None:
    for opened in list(_opened):
        opened._abandon()


os.register_at_fork(after_in_child=_after_fork)


class RecordDamage(NamedTuple):
    """A damaged range of a record file.

    Attributes
    ----------
    kind
        "bad data", "bad header", "truncated" or the like.
    record
        Its number, where every damaged range counts as one record.
    offset
        In the (uncompressed) stream.
    size_bytes
        To the next record or to the end of the file.
    path
        The file.
    message
        One sentence; "" for ``RecordReader.damage``.
    """

    kind: str
    record: int
    offset: int
    size_bytes: int
    path: str
    message: str = ""


def damage_of(damage: _record_abi.RecordDamage, message: str = "") -> RecordDamage:
    """The RecordDamage of a struct mr_record_damage."""
    kind = library.mr_damage_kind_name(damage.kind).decode()
    return RecordDamage(kind, damage.record, damage.offset, damage.size_bytes, os.fsdecode(damage.path or b""), message)


def damage_callback(found: Callable[[RecordDamage], None]) -> Any:
    """A C function that passes on each damaged range."""

    @_record_abi.DAMAGED
    def damaged(context, damage, error):
        message = _library.Error.from_address(error).message.decode("utf-8", "replace")
        found(damage_of(_record_abi.RecordDamage.from_address(damage), message))

    return damaged


def damage_options(damage: Any, damage_max: Any, quarantine: Any, on_damage: Any) -> dict:
    """The members damage and damage_max of options, after a check of the four arguments."""
    policy = _arguments.choice(damage, "damage", ("stop", "skip"))
    limit = 0 if damage_max is None else _arguments.integer(damage_max, "damage_max", 1)
    if on_damage is not None:
        _arguments.function(on_damage, "on_damage")
    if policy != _record_abi.DAMAGE_SKIP:
        for name, value in (("damage_max", damage_max), ("quarantine", quarantine), ("on_damage", on_damage)):
            if value is not None:
                raise ValueError(f'{name} has no effect without damage="skip"')
    return {"damage": policy, "damage_max": limit}


def open_quarantine(path: Optional[Path]) -> Optional[int]:
    """The handle of a quarantine; None without a path."""
    if path is None:
        return None
    handle, error = ctypes.c_void_p(), _library.Error()
    name = _arguments.path(path, "quarantine")
    check(library.mr_record_quarantine_open(name, ctypes.byref(handle), ctypes.byref(error)), error)
    return handle.value


def close_quarantine(handle: Optional[int]) -> None:
    """Raises errors of writing."""
    if handle is not None:
        error = _library.Error()
        check(library.mr_record_quarantine_close(handle, ctypes.byref(error)), error)


def match(paths: Union[Path, Iterable[Path]]) -> List[bytes]:
    """The files that a path or pattern, or several of them, name."""
    several = [paths] if isinstance(paths, (str, bytes, os.PathLike)) else paths
    try:
        patterns = [_arguments.path(path, "paths") for path in several]
    except TypeError:
        raise TypeError(f"paths is {paths!r}, expected a path, a pattern or a list of them") from None
    found: List[bytes] = []
    for pattern in patterns:
        names, count, error = ctypes.c_void_p(), ctypes.c_int32(), _library.Error()
        status = library.mr_paths_match(pattern, ctypes.byref(names), ctypes.byref(count), ctypes.byref(error))
        check(status, error)
        found += (ctypes.c_char_p * count.value).from_address(names.value)[:] if count.value else []
        library.mr_paths_free(names, count)
    if not found:
        raise ValueError("paths is empty")
    return found


def interruptible(
    call: Callable[[], Any],
    stop: Optional[Callable[[], None]] = None,
    drop: Callable[[Any], None] = lambda result: None,
) -> Any:
    """call(), which does not return for some time. Ctrl-C calls stop, which ends it soon.

    Without stop, Ctrl-C ends only the wait: the call continues in a thread, which then passes its result to drop."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    outcome: List[Any] = []
    abandoned: List[bool] = []
    lock = threading.Lock()
    done = threading.Event()

    def run() -> None:
        try:
            ended = (call(), None)
        except BaseException as exception:
            ended = (None, exception)
        with lock:
            outcome.append(ended)
            is_dropped = bool(abandoned)
        done.set()
        if is_dropped and ended[1] is None:
            drop(ended[0])

    threading.Thread(target=run, name="millrace-records", daemon=True).start()
    try:
        # A signal that another thread receives does not end the wait of this one, which handles it.
        while not done.wait(_SIGNAL_SECONDS):
            pass
    except BaseException:
        if stop is not None:
            stop()
            done.wait()
        with lock:
            abandoned.append(True)
        if outcome and outcome[0][1] is None:
            drop(outcome[0][0])
        raise
    result, exception = outcome[0]
    if exception is not None:
        raise exception
    return result
