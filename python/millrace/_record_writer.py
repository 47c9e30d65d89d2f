"""Writes record files."""
from __future__ import annotations

import ctypes
import os
import warnings
from typing import Any, Optional

from . import _arguments, _library, _record_abi
from ._library import library
from ._record_common import COMPRESSIONS, Opened, Path, check, failure

__all__ = ["RecordWriter", "RECORD_SEEK_BYTES"]

RECORD_SEEK_BYTES = 512 << 10
_append = library.mr_record_writer_append


class RecordWriter(Opened):
    """Writes a TFRecord file.

    As a context manager it is closed at the end. If the block raises an exception, an atomic file is discarded, and any
    other file is closed with the records so far. The same holds when a writer is dropped without `close`, which also
    warns. Several threads may write; each record is written completely.

    Parameters
    ----------
    path
        An existing file is replaced.
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
            try:
                record = bytes(memoryview(record))
            except TypeError:
                raise TypeError(f"record is of type {type(record).__name__}, expected bytes") from None
        with self._lock:
            if self._handle is None:
                raise self._unusable()
            if _append(self._handle, record, len(record), self._error_at):
                raise failure(self._error)

    def flush(self, sync: bool = False) -> None:
        """Passes the records so far to the kernel.

        Parameters
        ----------
        sync
            Also wait until they are on the disk.
        """
        sync = _arguments.boolean(sync, "sync")
        with self._lock:
            if self._handle is None:
                raise self._unusable()
            check(library.mr_record_writer_flush(self._handle, sync, self._error_at), self._error)

    def _get_totals(self) -> tuple:
        with self._lock:
            if self._handle is not None:
                self._totals = library.mr_record_writer_count(self._handle), library.mr_record_writer_size(self._handle)
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
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                check(library.mr_record_writer_close(handle, self._error_at), self._error)

    def discard(self) -> None:
        """Closes without finishing: an atomic file is removed, any other one may end inside a record."""
        self._get_totals()
        with self._lock:
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
            close(handle, None)
        try:
            warnings.warn(f"RecordWriter({self.path!r}) was not closed", ResourceWarning, source=self)
        except TypeError:  # at the end of the interpreter
            pass
