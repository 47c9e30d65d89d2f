"""Reads record files from beginning to end."""
from __future__ import annotations

import ctypes
import os
import stat
import threading
from typing import Any, Callable, List, Optional

from . import _arguments, _library, _record_abi
from ._library import library
from ._record_ahead import Ahead, Batch
from ._record_common import (
    COMPRESSIONS, Opened, Path, RecordDamage, close_quarantine, damage_callback, damage_of, damage_options,
    failure, interruptible, open_quarantine,
)  # fmt: skip

__all__ = ["RecordReader"]

# After as many records one by one, those of a plain file are read ahead if they have at most this many bytes.
_AHEAD_AFTER = 256
_SMALL_BYTES = 16 << 10
# Signals end a wait at once, unless they arrive just before it.
_WAIT_MS = 100
_next = library.mr_record_reader_next
_wait = library.mr_record_reader_wait
_string_at = ctypes.string_at


class RecordReader(Opened):
    """An iterator over the records of a TFRecord file, plain, GZIP or ZLIB, as bytes.

    Several threads may iterate over one reader: each record is returned once.

    Parameters
    ----------
    path
        "-": the standard input.
    check
        Whether to check the checksums of the data; those of headers are always checked.
    damage
        "stop": damage raises `errors.DataLossError`, and the next call continues after it. "skip": damaged records are
        skipped, and after a bad header the next record whose two checksums match is searched for.
    damage_max
        With "skip": more damaged ranges are an error. None: no limit.
    first, count
        Read only the records first to first + count - 1; None: to the end.
    direct
        Bypass the page cache, where the file system supports it.
    buffer_bytes, buffer_count
        Size of one read (None: 1 MiB), and how many are read ahead (None: 4).
    quarantine
        With "skip": a record file that collects the damaged bytes, with a list in ``quarantine + ".txt"``.
    on_damage
        With "skip": called with the RecordDamage of each range that is skipped, before the record that follows it is
        returned.

    Raises
    ------
    millrace.errors.OpError
        The file cannot be opened or read: NotFoundError, DataLossError and so on.

    Examples
    --------
    >>> for record in mr.RecordReader("train.tfrecord"):
    ...     print(len(record))
    """

    def __init__(
        self,
        path: Path,
        *,
        check: bool = True,
        damage: str = "stop",
        damage_max: Optional[int] = None,
        first: int = 0,
        count: Optional[int] = None,
        direct: bool = False,
        buffer_bytes: Optional[int] = None,
        buffer_count: Optional[int] = None,
        quarantine: Optional[Path] = None,
        on_damage: Optional[Callable[[RecordDamage], None]] = None,
    ) -> None:
        name = _arguments.path(path, "path")
        options = _record_abi.RecordReaderOptions(
            skip_checksums=not _arguments.boolean(check, "check"),
            direct=_arguments.boolean(direct, "direct"),
            first=_arguments.integer(first, "first", 0),
            count=0 if count is None else _arguments.integer(count, "count", 1),
            buffer_bytes=0 if buffer_bytes is None else _arguments.integer(buffer_bytes, "buffer_bytes", 1, 1 << 30),
            buffer_count=0 if buffer_count is None else _arguments.integer(buffer_count, "buffer_count", 1, 64),
            **damage_options(damage, damage_max, quarantine, on_damage),
        )
        self.path = os.fspath(path)
        self._on_damage = on_damage
        # Collected in the library's call, reported after it: on_damage may use the reader.
        self._found: List[RecordDamage] = []
        self._pending: List[bytes] = []
        self._callback = None
        if on_damage is not None:
            self._callback = damage_callback(self._found.append)
            options.damaged = ctypes.cast(self._callback, ctypes.c_void_p)
        self._quarantine = open_quarantine(quarantine)
        options.quarantine = self._quarantine
        self._error = _library.Error()
        self._error_at = ctypes.addressof(self._error)
        self._words = (ctypes.c_size_t * 2)()
        self._words_at = ctypes.addressof(self._words)
        self._view = memoryview(self._words).cast("B").cast("N")
        self._is_waiting = not _is_regular(name)
        try:
            handle = _opened(name, options, self._is_waiting)
        except BaseException:
            close_quarantine(self._quarantine)
            raise
        # Records that are read ahead of the library's reader, the last one first.
        self._ahead: Optional[Ahead] = None
        self._batch: Optional[Batch] = None
        self._ready: List[bytes] = []
        self._is_ended = False
        self._name = name
        self._is_checked = not options.skip_checksums
        is_simple = not (options.damage or options.first or options.count or direct or buffer_bytes or buffer_count)
        self._until_ahead = _AHEAD_AFTER if is_simple and self._is_plain_file(handle) else -1
        self._opens()
        self._handle = handle

    def _is_plain_file(self, handle: int) -> bool:
        return os.path.isfile(self._name) and not library.mr_record_reader_compression(handle)

    def _wait(self, handle: int) -> None:
        """Waits for the next record of a pipe, so that Ctrl-C ends the wait."""
        if threading.current_thread() is not threading.main_thread():
            return
        is_ready = ctypes.c_bool()
        while not is_ready.value:
            if _wait(handle, _WAIT_MS, ctypes.byref(is_ready), self._error_at):
                raise failure(self._error)

    def __iter__(self) -> "RecordReader":
        return self

    def __next__(self) -> bytes:
        if self._found or self._pending:
            return self._reported()
        lock = self._lock
        if lock._is_owned():
            raise self._reentered()
        with lock:
            if self._ready:
                return self._ready.pop()
            handle = self._handle
            if handle is None:
                raise self._unusable()
            if self._until_ahead >= 0 and self._fill(handle):
                return self._ready.pop()
            if self._is_ended:
                raise StopIteration
            if self._is_waiting:
                self._wait(handle)
            status = _next(handle, self._words_at, self._error_at)
            if not status:
                data = self._view[0]
                size = self._view[1]
                record = _string_at(data, size) if size else b""
                if not self._found:
                    return record
                self._pending.append(record)
            elif status != _record_abi.OUT_OF_RANGE:
                exception = failure(self._error)
        if self._found:
            self._report()
        if not status:
            return self._reported()
        raise StopIteration if status == _record_abi.OUT_OF_RANGE else exception

    def _fill(self, handle: int) -> bool:
        """Reads more records ahead; called with the lock, before each record while they are read one by one."""
        if self._until_ahead > 0:
            self._until_ahead -= 1
            return False
        if self._ahead is None:
            count = library.mr_record_reader_number(handle) + 1
            if library.mr_record_reader_lost(handle) or library.mr_record_reader_offset(handle) > count * _SMALL_BYTES:
                self._until_ahead = -1
                return False
            self._ahead = Ahead(self._name, count, self._is_checked)
        batch = self._ahead.next()
        if batch is None:
            self._until_ahead = -1
            self._is_ended = not self._ahead.has_failed
            if not self._is_ended:
                self._catch_up(handle)
            return False
        block = batch.block
        self._batch = batch
        self._ready = [block[start:end] for start, end in zip(batch.starts, batch.ends)]
        self._ready.reverse()
        return True

    def _catch_up(self, handle: int) -> None:
        """After a failure: moves the library's reader, which then finds the same, to the last record."""
        batch, self._batch = self._batch, None
        last = -1 if batch is None else batch.first + len(batch.starts) - 1
        while library.mr_record_reader_number(handle) < last:
            if _next(handle, self._words_at, self._error_at):  # the file has been changed
                raise failure(self._error)

    def _stop_ahead(self) -> None:
        self._ready = []
        self._batch = None
        if self._ahead is not None:
            self._ahead.stop()

    def _report(self) -> None:
        while self._found:
            try:
                damage = self._found.pop(0)
            except IndexError:  # by another thread
                return
            self._on_damage(damage)

    def _reported(self) -> bytes:
        """The record that was read before an exception of on_damage, or by another thread."""
        self._report()
        try:
            return self._pending.pop(0)
        except IndexError:
            return self.__next__()

    def _get(self, function: Any) -> Any:
        with self._held():
            if self._handle is None:
                raise self._unusable()
            return function(self._handle)

    @property
    def number(self) -> int:
        """The number of the last record returned, from 0."""
        return self._get(self._number)

    def _number(self, handle: int) -> int:
        if self._batch is None:
            return library.mr_record_reader_number(handle)
        return self._batch.first + len(self._batch.starts) - len(self._ready) - 1

    @property
    def offset(self) -> int:
        """The offset of its header in the (uncompressed) stream."""
        return self._get(self._offset)

    def _offset(self, handle: int) -> int:
        if self._batch is None:
            return library.mr_record_reader_offset(handle)
        at = self._batch.starts[self._number(handle) - self._batch.first]
        return self._batch.offset + at - _record_abi.HEADER_BYTES

    @property
    def lost(self) -> int:
        """The number of damaged ranges so far."""
        return self._get(library.mr_record_reader_lost)

    @property
    def damage(self) -> Optional[RecordDamage]:
        """The last damaged range; None if there was none."""
        return self._get(lambda handle: _damage(library.mr_record_reader_damage(handle)))

    @property
    def compression(self) -> Optional[str]:
        """None, "GZIP" or "ZLIB"; found from the first bytes of the file."""
        return COMPRESSIONS[self._get(library.mr_record_reader_compression)]

    def close(self) -> None:
        """Closes the file. Closing twice is allowed.

        Raises
        ------
        millrace.errors.OpError
            The quarantine could not be written.
        """
        with self._held():
            self._stop_ahead()
            handle, self._handle = self._handle, None
            quarantine, self._quarantine = self._quarantine, None
            if handle is not None:
                library.mr_record_reader_close(handle)
                close_quarantine(quarantine)

    def _abandon(self) -> None:
        super()._abandon()
        self._stop_ahead()
        self._quarantine = None

    def __enter__(self) -> "RecordReader":
        if self._handle is None:
            raise self._unusable()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<millrace.RecordReader({self.path!r}){', closed' if self.closed else ''}>"

    def __del__(self, close: Any = library.mr_record_reader_close, finish: Any = library.mr_record_quarantine_close):
        handle, self._handle = self._handle, None
        if handle is not None:
            self._stop_ahead()
            close(handle)
            if self._quarantine is not None:
                finish(self._quarantine, None)


def _is_regular(name: bytes) -> bool:
    """Whether a path, or "-", is a file that never has to be waited for."""
    try:
        return stat.S_ISREG((os.fstat(0) if name == b"-" else os.stat(name)).st_mode)
    except OSError:  # reported by the library
        return True


def _opened(name: bytes, options: _record_abi.RecordReaderOptions, is_waiting: bool) -> int:
    """The handle of a new reader. A pipe is waited for until it has a writer, and its first bytes."""

    def call() -> int:
        handle, error = ctypes.c_void_p(), _library.Error()
        if library.mr_record_reader_open(name, ctypes.byref(options), ctypes.byref(handle), ctypes.byref(error)):
            raise failure(error)
        return handle.value

    return interruptible(call, drop=library.mr_record_reader_close) if is_waiting else call()


def _damage(damage: _record_abi.RecordDamage) -> Optional[RecordDamage]:
    return damage_of(damage) if damage.kind else None
