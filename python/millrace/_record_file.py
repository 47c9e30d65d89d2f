"""Reads records by number, and writes and reads indexes."""
from __future__ import annotations

import ctypes
import operator
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Iterator, List, NamedTuple, Optional, Union, overload

from . import _arguments, _library, _record_abi
from ._library import library
from ._record_common import COMPRESSIONS, Opened, Path, check, failure, interruptible

__all__ = ["RecordFile", "RecordIndex", "count_records", "index", "write_index"]

_read = library.mr_record_file_read
_record_size = library.mr_record_file_record_size
_AROUND = _record_abi.HEADER_BYTES + _record_abi.FOOTER_BYTES
# Records of a slice are read into one buffer of this size, which longer records replace.
_BUFFER_BYTES = 64 << 10
# Iteration reads this many records at once.
_CHUNK = 256


class _Buffer:
    """Memory for records, and the struct mr_string of the last one."""

    __slots__ = ("size", "memory", "at", "words", "words_at", "error", "error_at")

    def __init__(self) -> None:
        self.words = (ctypes.c_size_t * 2)()
        self.words_at = ctypes.addressof(self.words)
        self.error = _library.Error()
        self.error_at = ctypes.addressof(self.error)
        self.reserve(_BUFFER_BYTES)

    def reserve(self, size: int) -> None:
        """Replaces the memory."""
        self.size = size
        self.memory = ctypes.create_string_buffer(size) if size <= _BUFFER_BYTES else (ctypes.c_char * size)()
        self.at = ctypes.addressof(self.memory)


class RecordFile(Opened):
    """A TFRecord file as a sequence of bytes: ``len(file)``, ``file[i]``, ``file[-1]``, ``file[a:b:c]``.

    The file is plain, or GZIP written with `seek_bytes` and an index. Any threads may read at the same time. A forked
    child process and a process that unpickles it open the file again.

    Parameters
    ----------
    path
        Its index (``path + ".index"``) is used if it is valid; otherwise the headers are scanned.
    threads
        That read the records of a slice; None: 1.

    Raises
    ------
    millrace.errors.OpError
        The file cannot be opened; UnimplementedError: it is compressed and not seekable, or has no valid index.

    Examples
    --------
    >>> file = mr.RecordFile("train.tfrecord")
    >>> file[len(file) // 2] == file[len(file) // 2 :][0]
    True
    """

    def __init__(self, path: Path, *, threads: Optional[int] = None) -> None:
        self._threads = 1 if threads is None else _arguments.integer(threads, "threads", 1, 1024)
        self._name = os.path.abspath(_arguments.path(path, "path"))
        self.path = os.fspath(path)
        self._readers = 0
        self._is_closed = False
        self._buffers: List[_Buffer] = []
        self._opens()
        self._open()

    def _open(self) -> None:
        handle, error = ctypes.c_void_p(), _library.Error()
        check(library.mr_record_file_open(self._name, ctypes.byref(handle), ctypes.byref(error)), error)
        self._count = library.mr_record_file_count(handle)
        self._handle = handle.value

    def _abandon(self) -> None:
        super()._abandon()
        self._readers = 0
        self._buffers = []

    def _acquire(self) -> int:
        """The handle, which is not closed before _release."""
        with self._lock:
            if self._is_closed:
                raise self._unusable()
            if self._handle is None:
                self._open()
            self._readers += 1
            return self._handle

    def _release(self) -> None:
        with self._lock:
            self._readers -= 1
            self._close_unused()

    def _close_unused(self) -> None:
        if self._is_closed and self._readers == 0 and self._handle is not None:
            handle, self._handle = self._handle, None
            library.mr_record_file_close(handle)

    def _unusable(self) -> Exception:
        return ValueError(f"RecordFile({self.path!r}) is closed")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _reopened, (os.fsdecode(self._name), self._threads, self._is_closed)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, key: int) -> bytes: ...

    @overload
    def __getitem__(self, key: slice) -> List[bytes]: ...

    def __getitem__(self, key: Union[int, slice]) -> Any:
        if isinstance(key, slice):
            return self.read(range(*key.indices(self._count)))
        try:
            number = operator.index(key)
        except TypeError:
            text = f"a record number is of type {type(key).__name__}, expected an integer or a slice"
            raise TypeError(text) from None
        return self._get_several((number,))[0]

    def read(self, numbers: Any) -> List[bytes]:
        """Several records, in the order of their numbers in the argument.

        Parameters
        ----------
        numbers
            A range, list or array of integers; -1 is the last record.

        Raises
        ------
        IndexError
            There is no such record.
        millrace.errors.DataLossError
            A record is damaged.
        """
        try:
            listed = numbers if isinstance(numbers, range) else [operator.index(number) for number in numbers]
        except TypeError:
            raise TypeError(f"numbers is of type {type(numbers).__name__}, expected integers") from None
        threads = min(self._threads, len(listed) // 2)
        if threads < 2:
            return self._get_several(listed)
        part = -(-len(listed) // threads)
        with ThreadPoolExecutor(threads, thread_name_prefix="millrace-records") as pool:
            parts = pool.map(self._get_several, [listed[i : i + part] for i in range(0, len(listed), part)])
            return [record for records in parts for record in records]

    def _get_several(self, numbers: Any) -> List[bytes]:
        handle = self._acquire()
        buffer = None
        records: List[bytes] = []
        count = self._count
        try:
            try:
                buffer = self._buffers.pop()
            except IndexError:
                buffer = _Buffer()
            for number in numbers:
                actual = number + count if number < 0 else number
                if not 0 <= actual < count:
                    raise IndexError(f"{self.path}: record {number} does not exist: there are {count}")
                size = _record_size(handle, actual) + _AROUND
                if size > buffer.size:
                    buffer.reserve(size)
                if _read(handle, actual, buffer.at, buffer.words_at, buffer.error_at):
                    raise failure(buffer.error)
                data, size = buffer.words
                records.append(ctypes.string_at(data, size) if size else b"")
            return records
        finally:
            if buffer is not None and buffer.size <= 16 * _BUFFER_BYTES:
                self._buffers.append(buffer)
            self._release()

    def __iter__(self) -> Iterator[bytes]:
        for first in range(0, self._count, _CHUNK):
            yield from self.read(range(first, min(first + _CHUNK, self._count)))

    def _get(self, function: Any, *arguments: int) -> Any:
        handle = self._acquire()
        try:
            return function(handle, *arguments)
        finally:
            self._release()

    def offset(self, number: int) -> int:
        """The offset of a record's header in the (uncompressed) stream; for ``len(file)`` that of the end."""
        return self._get(library.mr_record_file_offset, _arguments.integer(number, "number", 0, self._count))

    def record_size(self, number: int) -> int:
        """The size of a record's data, in bytes."""
        return self._get(_record_size, _arguments.integer(number, "number", 0, self._count - 1))

    def prefetch(self, number: int) -> None:
        """Starts reading a record into the page cache, without waiting."""
        self._get(library.mr_record_file_prefetch, _arguments.integer(number, "number", 0, self._count - 1))

    @property
    def compression(self) -> Optional[str]:
        """None or "GZIP"."""
        return COMPRESSIONS[self._get(library.mr_record_file_compression)]

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        return self._is_closed

    def close(self) -> None:
        """Closes the file, after calls in other threads. Closing twice is allowed."""
        with self._lock:
            self._is_closed = True
            self._close_unused()

    def __enter__(self) -> "RecordFile":
        if self._is_closed:
            raise self._unusable()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self._is_closed else f", {self._count} records"
        return f"<millrace.RecordFile({self.path!r}){state}>"

    def __del__(self, close: Any = library.mr_record_file_close) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            close(handle)


def _reopened(path: str, threads: int, is_closed: bool) -> RecordFile:
    file = RecordFile(path, threads=threads)
    if is_closed:
        file.close()
    return file


class RecordIndex(NamedTuple):
    """The index of a record file.

    Attributes
    ----------
    count
        The number of records.
    offsets
        An int64 array of count + 1 offsets in the uncompressed stream: of each record's header, and of the end.
    origin
        "loaded", or why it was built from the file: "built" (there is no index), "stale" or "damaged".
    compression
        None, "GZIP" or "ZLIB".
    points
        An int64 array [n, 2] of the records where decompression can start, and their offsets in the file. Empty: the
        file is plain or can only be read from its beginning.
    """

    count: int
    offsets: Any
    origin: str
    compression: Optional[str]
    points: Any


_ORIGINS = ("loaded", "built", "stale", "damaged")


def index(path: Path) -> RecordIndex:
    """Loads the index of a record file if it is valid; otherwise builds it from the headers.

    Parameters
    ----------
    path
        The record file.

    Raises
    ------
    millrace.errors.OpError
        NotFoundError, DataLossError for a bad header; UnimplementedError: the file is compressed and has no valid
        index.
    """
    return _with_index(library.mr_record_index_open, (_arguments.path(path, "path"),), _copied)


def write_index(path: Path, *, threads: Optional[int] = None) -> int:
    """Builds the index of a record file, ignoring an existing one, and writes it to ``path + ".index"``, atomically.

    Parameters
    ----------
    path
        The record file; a compressed one is read completely.
    threads
        At most; None: one for each processor.

    Returns
    -------
    int
        The number of records.

    Raises
    ------
    millrace.errors.DataLossError
        A bad header, or the file ends inside a record.
    """
    name = _arguments.path(path, "path")

    def write(built: _record_abi.RecordIndex) -> int:
        error = _library.Error()
        check(library.mr_record_index_write(name, ctypes.byref(built), ctypes.byref(error)), error)
        return built.count

    return _with_index(library.mr_record_index_build, (name, _arguments.threads(threads, "threads")), write)


def _with_index(function: Any, arguments: tuple, use: Any) -> Any:
    def call() -> _record_abi.RecordIndex:
        found, error = _record_abi.RecordIndex(), _library.Error()
        check(function(*arguments, ctypes.byref(found), ctypes.byref(error)), error)
        return found

    def deinit(found: _record_abi.RecordIndex) -> None:
        library.mr_record_index_deinit(ctypes.byref(found))

    found = interruptible(call, drop=deinit)
    try:
        return use(found)
    finally:
        deinit(found)


def _copied(found: _record_abi.RecordIndex) -> RecordIndex:
    import numpy as np

    offsets = np.frombuffer(ctypes.string_at(found.offsets, 8 * (found.count + 1)), np.int64).copy()
    points = ctypes.string_at(found.points, 16 * found.point_count) if found.point_count else b""
    return RecordIndex(
        found.count,
        offsets,
        _ORIGINS[found.origin],
        COMPRESSIONS[found.compression],
        np.frombuffer(points, np.int64).reshape(-1, 2).copy(),
    )


def count_records(path: Path, *, threads: Optional[int] = None) -> int:
    """The number of records of a file: from a valid index, otherwise from the headers, in constant memory.

    Parameters
    ----------
    path
        "-" and pipes are allowed.
    threads
        At most; None: one for each processor.
    """
    name, used = _arguments.path(path, "path"), _arguments.threads(threads, "threads")

    def call() -> int:
        count, error = ctypes.c_uint64(), _library.Error()
        check(library.mr_record_count(name, used, ctypes.byref(count), ctypes.byref(error)), error)
        return count.value

    return interruptible(call)
