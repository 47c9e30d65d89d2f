"""Reads all records of files with several threads: checks and salvage."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, Iterable, List, NamedTuple, Optional, Tuple, Union

from . import _arguments, _library, _record_abi, errors
from ._library import library
from ._record_common import (
    Path, RecordDamage, check, close_quarantine, damage_callback, damage_options, failure, interruptible, match,
    open_quarantine,
)  # fmt: skip
from ._record_writer import RecordWriter

__all__ = ["RecordTotals", "Salvaged", "salvage", "scan"]

_append = library.mr_record_writer_append


class RecordTotals(NamedTuple):
    """Totals of record files.

    Attributes
    ----------
    records, size_bytes
        Valid records and the bytes of their data.
    lost, lost_bytes
        Damaged ranges and their bytes.
    """

    records: int
    size_bytes: int
    lost: int
    lost_bytes: int


class Salvaged(NamedTuple):
    """What `salvage` saved and lost.

    Attributes
    ----------
    records, size_bytes
        Saved records and the bytes of their data.
    lost, lost_bytes
        Damaged ranges and their bytes.
    stopped
        For each file that could not be read to its end, the reason.
    """

    records: int
    size_bytes: int
    lost: int
    lost_bytes: int
    stopped: Tuple[str, ...]


class _Scan:
    """A run of mr_record_scan, and what its callbacks need."""

    def __init__(self, on_damage: Optional[Callable[[RecordDamage], None]], writer: Optional[int] = None) -> None:
        self._on_damage = on_damage
        self._writer = writer
        self._raised: Optional[BaseException] = None
        self._is_stopped = False
        self.stopped: List[str] = []
        self._functions = [_record_abi.TAKE(self._take)]
        self.options = {"take": self._address(0)}
        if on_damage is not None:
            self._functions.append(damage_callback(self._damaged))
            self.options["damaged"] = self._address(-1)
        if writer is not None:
            self._functions.append(_record_abi.FILE_DONE(self._file_done))
            self.options["file_done"] = self._address(-1)

    def _address(self, index: int) -> Optional[int]:
        return ctypes.cast(self._functions[index], ctypes.c_void_p).value

    def stop(self) -> None:
        """Ends the scan at the next records."""
        self._is_stopped = True

    def _take(self, context: Any, address: int, error: int) -> int:
        if self._is_stopped or self._raised is not None:
            return errors.CANCELLED
        if self._writer is None:
            return _record_abi.OK
        try:
            batch = _record_abi.RecordBatch.from_address(address)
            words = (ctypes.c_size_t * (2 * batch.count)).from_address(batch.records)
            for i in range(0, 2 * batch.count, 2):
                status = _append(self._writer, words[i], words[i + 1], error)
                if status:
                    return status
            return _record_abi.OK
        except BaseException as exception:
            return self._fails(exception)

    def _damaged(self, damage: RecordDamage) -> None:
        if self._raised is None:
            try:
                self._on_damage(damage)
            except BaseException as exception:
                self._fails(exception)

    def _fails(self, exception: BaseException) -> int:
        self._raised = exception
        return errors.CANCELLED

    def _file_done(self, context: Any, file: int, totals: int, address: int) -> int:
        if self._is_stopped or self._raised is not None:
            return errors.CANCELLED
        error = _library.Error.from_address(address)
        if error.status and error.status not in (_record_abi.DATA_LOSS, _record_abi.ABORTED):
            return self._fails(failure(error))
        if error.status:
            self.stopped.append(error.message.decode("utf-8", "replace"))
        return _record_abi.OK

    def run(self, paths: List[bytes], options: _record_abi.RecordScanOptions) -> RecordTotals:
        """Scans the files."""
        totals, error = _record_abi.RecordTotals(), _library.Error()
        names = (ctypes.c_char_p * len(paths))(*paths)

        def call() -> int:
            return library.mr_record_scan(
                names, len(paths), ctypes.byref(options), ctypes.byref(totals), ctypes.byref(error)
            )

        status = interruptible(call, self.stop)
        if self._raised is not None:
            raise self._raised
        check(status, error)
        return RecordTotals(totals.records, totals.size_bytes, totals.lost, totals.lost_bytes)


def scan(
    paths: Union[Path, Iterable[Path]],
    *,
    threads: Optional[int] = None,
    check: bool = True,
    damage: str = "stop",
    damage_max: Optional[int] = None,
    quarantine: Optional[Path] = None,
    on_damage: Optional[Callable[[RecordDamage], None]] = None,
) -> RecordTotals:
    """Reads and checks all records of files, with several threads. Ctrl-C ends it.

    Parameters
    ----------
    paths
        A file, a glob, ``"name@16"``, or several of them.
    threads
        None: one for each processor.
    check, damage, damage_max, quarantine
        As for RecordReader; damage_max applies to all files together.
    on_damage
        As for RecordReader; called on any thread, in the order of files and records.

    Returns
    -------
    RecordTotals
        Records and damaged ranges of all files.

    Raises
    ------
    millrace.errors.OpError
        The first failure in the order of files and records.

    Examples
    --------
    >>> mr.scan("train-*.tfrecord").records
    50000
    """
    policy = damage_options(damage, damage_max, quarantine, on_damage)
    run = _Scan(on_damage)
    options = _record_abi.RecordScanOptions(
        threads=_arguments.threads(threads, "threads"),
        skip_checksums=not _arguments.boolean(check, "check"),
        **policy,
        **run.options,
    )
    return _quarantined(quarantine, options, lambda: run.run(match(paths), options))


def _quarantined(path: Optional[Path], options: _record_abi.RecordScanOptions, call: Callable[[], Any]) -> Any:
    """call() with an open quarantine."""
    quarantine = open_quarantine(path)
    options.quarantine = quarantine
    try:
        result = call()
    except BaseException:
        library.mr_record_quarantine_close(quarantine, None)
        raise
    close_quarantine(quarantine)
    return result


def salvage(
    paths: Union[Path, Iterable[Path]],
    output: Path,
    *,
    quarantine: Optional[Path] = None,
    threads: Optional[int] = None,
    on_damage: Optional[Callable[[RecordDamage], None]] = None,
) -> Salvaged:
    """Writes every valid record of damaged files to one new file, in order, with an index. Ctrl-C ends it.

    Parameters
    ----------
    paths
        A file, a glob, ``"name@16"``, or several of them.
    output
        An existing file is replaced when all records are saved.
    quarantine
        A record file that collects the damaged bytes.
    threads
        None: one for each processor.
    on_damage
        Called with the RecordDamage of each damaged range, on any thread.

    Returns
    -------
    Salvaged
        Counts, and the files that could not be read to their ends.

    Raises
    ------
    ValueError
        `output` is one of the damaged files.
    millrace.errors.OpError
        A file cannot be opened, or `output` or `quarantine` cannot be written.
    """
    policy = damage_options("skip", None, quarantine, on_damage)
    names = match(paths)
    _refuse_same(names, output, quarantine)
    threads = _arguments.threads(threads, "threads")
    with RecordWriter(output, index=True, atomic=True) as writer:
        run = _Scan(on_damage, writer._handle)
        options = _record_abi.RecordScanOptions(threads=threads, **policy, **run.options)
        totals = _quarantined(quarantine, options, lambda: run.run(names, options))
    return Salvaged(*totals, tuple(run.stopped))


def _refuse_same(names: List[bytes], output: Path, quarantine: Optional[Path]) -> None:
    for argument, path in (("output", output), ("quarantine", quarantine)):
        if path is None:
            continue
        written = _arguments.path(path, argument)
        if any(os.path.exists(written) and os.path.samefile(name, written) for name in names):
            raise ValueError(f"{argument} is {os.fsdecode(written)!r}, which is one of paths")
    if quarantine is not None and os.path.realpath(os.fsencode(output)) == os.path.realpath(os.fsencode(quarantine)):
        raise ValueError("quarantine is the same file as output")
