"""Reads a file of small records ahead, many at once: calling the library for each of them would cost more."""
from __future__ import annotations

import ctypes
import queue
import threading
from typing import Any, List, NamedTuple, Optional

import numpy as np

from . import _record_abi, errors
from ._library import library

# Batches of about 1 MiB that are ready.
_READY = 3
_POLL_SECONDS = 0.05


class Batch(NamedTuple):
    """Consecutive records, in one copy of a block of the file."""

    first: int
    offset: int
    block: bytes
    starts: List[int]
    ends: List[int]


class Ahead:
    """A thread that scans a plain file from record `first` on. It holds no reference to the reader.

    A failure ends the records without an error, but with has_failed: the reader continues there and finds it itself."""

    def __init__(self, path: bytes, first: int, is_checked: bool) -> None:
        self._first = first
        self._batches: "queue.Queue[Optional[Batch]]" = queue.Queue(_READY)
        self._is_stopped = False
        self.has_failed = True
        arguments = (path, is_checked)
        # Not a daemon, which the end of the interpreter would kill inside the library.
        threading.Thread(target=self._run, args=arguments, name="millrace-records").start()

    def stop(self) -> None:
        """Ends the thread soon."""
        self._is_stopped = True

    def next(self) -> Optional[Batch]:
        """The next batch; None at the end and after a failure."""
        return self._batches.get()

    def _put(self, batch: Optional[Batch]) -> bool:
        main = threading.main_thread()
        while not self._is_stopped and main.is_alive():
            try:
                self._batches.put(batch, timeout=_POLL_SECONDS)
                return True
            except queue.Full:
                pass
        return False

    def _take(self, context: Any, address: int, error: int) -> int:
        try:
            batch = _record_abi.RecordBatch.from_address(address)
            count = batch.count
            if batch.first + count <= self._first:
                return errors.CANCELLED if self._is_stopped else _record_abi.OK
            words = np.frombuffer((ctypes.c_int64 * (2 * count)).from_address(batch.records), np.int64).reshape(-1, 2)
            skipped = max(0, self._first - batch.first)
            starts = words[skipped:, 0] - batch.bytes
            ends = starts + words[skipped:, 1]
            block = ctypes.string_at(batch.bytes, int(ends[-1]))
            ready = Batch(batch.first + skipped, batch.offset, block, starts.tolist(), ends.tolist())
            return _record_abi.OK if self._put(ready) else errors.CANCELLED
        except BaseException:
            return errors.INTERNAL

    def _run(self, path: bytes, is_checked: bool) -> None:
        try:
            take = _record_abi.TAKE(self._take)
            options = _record_abi.RecordScanOptions(
                threads=1, skip_checksums=not is_checked, take=ctypes.cast(take, ctypes.c_void_p)
            )
            names = (ctypes.c_char_p * 1)(path)
            self.has_failed = library.mr_record_scan(names, 1, ctypes.byref(options), None, None) != _record_abi.OK
        finally:
            self._put(None)
