"""Writes record files."""
from __future__ import annotations

import ctypes
import itertools
import os
import warnings
from array import array
from typing import Any, Iterable, List, Optional, Tuple

from . import _arguments, _library, _record_abi
from ._library import library
from ._record_common import COMPRESSIONS, Opened, Path, check, failure
from .errors import OpError

__all__ = ["RecordWriter", "RECORD_SEEK_BYTES"]

RECORD_SEEK_BYTES = 512 << 10
# Records below this size are collected, and passed on together: a call of the library costs more than such a record.
_SMALL_BYTES = 4096
_COLLECTED_MAX = 256
# write_many passes on as many records, or bytes, at once.
_CHUNK = 1024
_CHUNK_BYTES = 1 << 20
_append = library.mr_record_writer_append
_append_many = library.mr_record_writer_append_many
_count = library.mr_record_writer_count
_AROUND = _record_abi.HEADER_BYTES + _record_abi.FOOTER_BYTES


class RecordWriter(Opened):
    """Writes a TFRecord file.

    Records are written in blocks; `flush` and `close` write the last one. So an error of the disk may be raised by a
    later call.

    As a context manager it is closed at the end. If the block raises an exception, an atomic file is discarded, and any
    other file is closed with the records so far. The same holds when a writer is dropped without `close`, which also
    warns. Several threads may write; each record is written completely.

    Parameters
    ----------
    path
        An existing file is replaced. While one writer of any process has it open, another one raises AbortedError.
    compression
        None, "GZIP" or "ZLIB".
    level
        Of compression, 1 to 9; None: 6.
    index
        Write ``path + ".index"`` on close, for reading by number.
    atomic
        Write to ``path + ".partial"`` and rename on close, so that `path` never refers to an incomplete file.
    seek_bytes
        With "GZIP": after so many bytes of records the compressor is reset, so that with the index the file can be read
        by number and by several threads. ``mr.RECORD_SEEK_BYTES`` is recommended. None: not seekable.
    threads
        That compress a seekable file; None: 1. The file does not depend on it.

    Raises
    ------
    ValueError
        An option out of range or without effect.
    millrace.errors.OpError
        The file cannot be created.

    Examples
    --------
    >>> with mr.RecordWriter("numbers.tfrecord", index=True) as writer:
    ...     for i in range(3):
    ...         writer.write(mr.Example.encode({"number": i}))
    """

    def __init__(
        self,
        path: Path,
        *,
        compression: Optional[str] = None,
        level: Optional[int] = None,
        index: bool = False,
        atomic: bool = False,
        seek_bytes: Optional[int] = None,
        threads: Optional[int] = None,
    ) -> None:
        name = _arguments.path(path, "path")
        kind = 0 if compression == "" else _arguments.choice(compression, "compression", COMPRESSIONS)
        if level is not None and not kind:
            raise ValueError("level has no effect without compression")
        if seek_bytes is not None and compression != "GZIP":
            raise ValueError('seek_bytes has no effect without compression="GZIP"')
        if threads is not None and seek_bytes is None:
            raise ValueError("threads has no effect without seek_bytes")
        self.path = os.fspath(path)
        self._is_atomic = _arguments.boolean(atomic, "atomic")
        options = _record_abi.RecordWriterOptions(
            compression=kind,
            level=0 if level is None else _arguments.integer(level, "level", 1, 9),
            index=_arguments.boolean(index, "index"),
            atomic=self._is_atomic,
            seek_bytes=0 if seek_bytes is None else _arguments.integer(seek_bytes, "seek_bytes", 1),
            threads=_arguments.threads(threads, "threads"),
        )
        self._error = _library.Error()
        self._error_at = ctypes.addressof(self._error)
        self._totals = (0, 0)
        # Records that are collected, and how many the library had when the first of them came. One attribute, so that
        # an exception of a signal handler leaves both as they were.
        self._collected: Tuple[List[bytes], int] = ([], 0)
        handle = ctypes.c_void_p()
        check(
            library.mr_record_writer_open(name, ctypes.byref(options), ctypes.byref(handle), self._error_at),
            self._error,
        )
        self._opens()
        self._handle = handle.value

    def write(self, record: Any) -> None:
        """Appends one record.

        Parameters
        ----------
        record
            bytes, or any object with contiguous bytes (bytearray, memoryview, NumPy array), at most 2 GiB.

        Raises
        ------
        TypeError
            `record` has no bytes.
        ValueError
            The writer is closed.
        millrace.errors.OpError
            The disk is full, for example. Earlier records are complete.
        """
        if type(record) is not bytes:
            record = _bytes_of(record, "record")
        lock = self._lock
        if lock._is_owned():
            raise self._reentered()
        with lock:
            if self._handle is None:
                raise self._unusable()
            if len(record) < _SMALL_BYTES:
                records = self._collected[0]
                if not records:
                    records = []
                    self._collected = (records, _count(self._handle))
                records.append(record)
                if len(records) >= _COLLECTED_MAX:
                    self._pass_on(self._handle)
            else:
                self._pass_on(self._handle)
                if _append(self._handle, record, len(record), self._error_at):
                    raise failure(self._error)

    def write_many(self, records: Iterable[Any]) -> None:
        """Appends records in their order, which costs less than calling `write` for each.

        Parameters
        ----------
        records
            An iterable of what `write` accepts, such as a list of bytes, or an array whose rows are records.

        Raises
        ------
        TypeError
            `records` is no iterable, or one of them has no bytes.
        ValueError, millrace.errors.OpError
            As `write`. If this or the iterable raises an exception, the records before it are written.

        Examples
        --------
        >>> with mr.RecordWriter("rows.tfrecord") as writer:
        ...     writer.write_many(np.zeros((1000, 64), np.uint8))
        """
        if isinstance(records, (str, bytes, bytearray)):
            raise TypeError(f"records is of type {type(records).__name__}, expected an iterable of bytes")
        try:
            rest = iter(records)
        except TypeError:
            raise TypeError(f"records is of type {type(records).__name__}, expected an iterable of bytes") from None
        first, count = 0, 16
        while True:
            chunk: List[Any] = []
            failed: Optional[BaseException] = None
            try:
                chunk.extend(itertools.islice(rest, count))
            except BaseException as exception:
                failed = exception
            is_last = len(chunk) < count
            if not set(map(type, chunk)) <= {bytes}:
                chunk, failed = _converted(chunk, first, failed)
            with self._held():
                if self._handle is None:
                    raise self._unusable()
                self._pass_on(self._handle)
                size_bytes = self._append_all(self._handle, chunk)
            if failed is not None:
                raise failed
            if is_last:
                return
            first += count
            count = max(1, min(_CHUNK, _CHUNK_BYTES * count // max(1, size_bytes)))

    def _append_all(self, handle: int, records: List[bytes]) -> int:
        """Appends records, and returns their size in bytes; with the lock."""
        sizes = array("Q", map(len, records))
        size_bytes = sum(sizes)
        if size_bytes <= 2 * _CHUNK_BYTES:
            if _append_many(handle, b"".join(records), sizes.buffer_info()[0], len(records), self._error_at):
                raise failure(self._error)
        else:
            for record in records:
                if _append(handle, record, len(record), self._error_at):
                    raise failure(self._error)
        return size_bytes

    def _left(self, handle: int) -> List[bytes]:
        """The collected records that the library does not have; with the lock."""
        records, before = self._collected
        # It has some of them only if an exception of a signal handler, or an error, ended _pass_on.
        return records[_count(handle) - before :] if records else []

    def _pass_on(self, handle: int) -> None:
        """Passes the collected records to the library; with the lock."""
        if self._collected[0]:
            self._append_all(handle, self._left(handle))
            self._collected = ([], 0)

    def flush(self, sync: bool = False) -> None:
        """Passes the records so far to the kernel.

        Parameters
        ----------
        sync
            Also wait until they are on the disk.
        """
        sync = _arguments.boolean(sync, "sync")
        with self._held():
            if self._handle is None:
                raise self._unusable()
            self._pass_on(self._handle)
            check(library.mr_record_writer_flush(self._handle, sync, self._error_at), self._error)

    def _get_totals(self) -> tuple:
        with self._held():
            handle = self._handle
            if handle is not None:
                left = self._left(handle)
                size_bytes = sum(map(len, left)) + _AROUND * len(left)
                self._totals = _count(handle) + len(left), library.mr_record_writer_size(handle) + size_bytes
            return self._totals

    @property
    def count(self) -> int:
        """The number of records so far."""
        return self._get_totals()[0]

    @property
    def size_bytes(self) -> int:
        """Uncompressed bytes so far, including the 16 bytes around each record."""
        return self._get_totals()[1]

    def close(self) -> None:
        """Flushes, writes the index, renames an atomic file. Closing twice is allowed.

        Raises
        ------
        millrace.errors.OpError
            The file could not be completed. An existing file that an atomic one would replace is unchanged.
        """
        self._get_totals()
        with self._held():
            if self._handle is None:
                return
            try:
                self._pass_on(self._handle)
            except OpError:  # which the library reports again
                pass
            handle, self._handle = self._handle, None
            check(library.mr_record_writer_close(handle, self._error_at), self._error)

    def discard(self) -> None:
        """Closes without finishing: an atomic file is removed, any other one may end inside a record."""
        self._get_totals()
        with self._held():
            handle, self._handle = self._handle, None
            if handle is not None:
                library.mr_record_writer_discard(handle)

    def __enter__(self) -> "RecordWriter":
        if self._handle is None:
            raise self._unusable()
        return self

    def __exit__(self, kind: Any, exception: Any, traceback: Any) -> None:
        if kind is not None and self._is_atomic:
            self.discard()
        elif kind is None:
            self.close()
        else:
            try:
                self.close()
            except Exception:  # the block's exception is the cause
                pass

    def __repr__(self) -> str:
        return f"<millrace.RecordWriter({self.path!r}){', closed' if self.closed else ''}>"

    def __del__(self, close: Any = library.mr_record_writer_close, discard: Any = library.mr_record_writer_discard):
        handle, self._handle = self._handle, None
        if handle is None:
            return
        if self._is_atomic:
            discard(handle)
        else:
            try:
                self._pass_on(handle)
            except Exception:  # as close, which has nobody to report to
                pass
            close(handle, None)
        try:
            warnings.warn(f"RecordWriter({self.path!r}) was not closed", ResourceWarning, source=self)
        except TypeError:  # at the end of the interpreter
            pass


def _bytes_of(record: Any, argument: str) -> bytes:
    try:
        return bytes(memoryview(record))
    except TypeError:
        raise TypeError(f"{argument} is of type {type(record).__name__}, expected bytes") from None


def _converted(
    records: List[Any], first: int, failed: Optional[BaseException]
) -> Tuple[List[bytes], Optional[BaseException]]:
    """The bytes of records, before the first that has none; and its exception, or the one that came after all."""
    for i, record in enumerate(records):
        if type(record) is not bytes:
            try:
                records[i] = _bytes_of(record, f"records[{first + i}]")
            except TypeError as exception:
                return records[:i], exception
    return records, failed
