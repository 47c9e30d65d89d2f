"""Runs tfrecord-make."""
from __future__ import annotations

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Mapping

from . import _arguments, errors
from ._record_common import Path

__all__ = ["make_records"]

_NAME = "tfrecord-make"
# Options that are set by this function, or that print something else than a summary.
_RESERVED = {
    "out": "pass it as output",
    "json": "it is always set",
    "help": "run the tool for its help",
    "version": "see millrace.__version__",
    "survey": "run the tool for its report",
}
# Options that are repeated for several values; the values of others are joined with commas.
_REPEATED = ("include", "exclude", "key")
_OPTION = re.compile(r"^  (?:-\w, |    )--([a-z-]+)(?: ([A-Z\[]\S*))?", re.MULTILINE)


def _tool() -> str:
    """The path of the tool: of the package, of the source tree, or of PATH."""
    here = os.path.dirname(os.path.abspath(__file__))
    for directory in (os.path.join(here, "bin"), os.path.join(here, "..", "..", "zig-out", "bin")):
        path = os.path.join(directory, _NAME)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    path = shutil.which(_NAME)
    if path is None:
        raise errors.NotFoundError(None, None, f"{_NAME} is not installed: it is neither in the package nor in PATH")
    return path


@functools.lru_cache(maxsize=4)
def _options(tool: str) -> Dict[str, bool]:
    """The long options of the tool, and whether each takes a value, from its help."""
    text = subprocess.run([tool, "--help", "all"], stdout=subprocess.PIPE, check=True).stdout.decode()
    return {name: bool(value) for name, value in _OPTION.findall(text)}


def _text(value: Any, name: str) -> str:
    if isinstance(value, (str, bytes, os.PathLike)):
        return os.fsdecode(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(value)
    if hasattr(value, "dtype") and getattr(value, "shape", None) == ():  # a scalar of NumPy
        return repr(value.item())
    raise TypeError(f"{name} is {value!r}, expected a str, a path, a number, a list or a dict of them")


def _values(value: Any, name: str) -> List[str]:
    if isinstance(value, Mapping):
        return [f"{_text(key, name)}={_text(item, name)}" for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [_text(item, name) for item in value]
    return [_text(value, name)]


def _argument(name: str, value: Any, known: Dict[str, bool]) -> List[str]:
    """The command line arguments of one keyword argument."""
    option = name.replace("_", "-")
    if option in _RESERVED:
        raise ValueError(f"{name} is not an option of make_records: {_RESERVED[option]}")
    if option not in known:
        raise ValueError(f"{name} is not an option of make_records")
    if value is None or value is False:
        return []
    if not known[option]:
        if value is not True:
            raise TypeError(f"{name} is {value!r}, expected True or False")
        return [f"--{option}"]
    if value is True:
        raise TypeError(f"{name} is True, expected a value")
    values = _values(value, name)
    if any("\0" in text for text in values):
        raise ValueError(f"{name} contains a zero character")
    return [f"--{option}={text}" for text in (values if option in _REPEATED else [",".join(values)])]


def make_records(source: Path, output: Path, *, verbose: bool = False, **options: Any) -> Dict[str, Any]:
    """Converts images, lists, boxes, tables, arrays and archives to TFRecord files, as the tool tfrecord-make does.

    Ctrl-C ends it; finished files are kept, and the same call resumes.

    Parameters
    ----------
    source
        A directory of images by class, a list, a table, COCO or Pascal VOC annotations, .npy, .npz or .tar files.
    output
        The directory for the records; created if it does not exist.
    verbose
        Show the progress on the standard error.
    **options
        The long options of ``tfrecord-make --help all``, with underscores: ``shards=16``, ``shorter_side=256``,
        ``on_error="skip"``. True sets an option without a value. Several values are a list, pairs a dict:
        ``split={"train": 0.8, "test": 0.2}``, ``include=["*.jpg", "*.png"]``.

    Returns
    -------
    dict
        The tool's summary: "rows", "written", "skipped", and for each of "splits" its "name", "records" and "files".

    Raises
    ------
    TypeError, ValueError
        An unknown or invalid option; the message names it.
    millrace.errors.OpError
        The records cannot be made; the message is the tool's.

    Examples
    --------
    >>> made = mr.make_records("photos", "records", shards=4, shorter_side=256)
    >>> [split["records"] for split in made["splits"]]
    [4500, 500]
    """
    paths = [os.fsdecode(_arguments.path(path, name)) for path, name in ((source, "source"), (output, "output"))]
    _arguments.boolean(verbose, "verbose")
    tool = _tool()
    known = _options(tool)
    command = [tool, "--json", f"--out={paths[1]}"]
    for name, value in options.items():
        command += _argument(name, value, known)
    status, summary, messages = _run([*command, "--", paths[0]], verbose)
    if status == 0:
        return json.loads(summary)
    raise _failure(status, messages)


def _failure(status: int, messages: str) -> Exception:
    """The exception for what the tool printed before it ended with a status."""
    lines = [line for line in messages.splitlines() if not line.startswith("Try ")]
    text = re.sub(r"^\S*" + _NAME + ": ", "", "\n".join(lines).strip())
    if status == 2:
        return ValueError(text)
    if status < 0:
        name = signal.Signals(-status).name
        return errors.AbortedError(None, None, f"{_NAME} was ended by {name}{': ' + text if text else ''}")
    return errors.UnknownError(None, None, text or f"{_NAME} failed with status {status}")


def _run(command: List[str], verbose: bool) -> tuple:
    """(status, standard output, messages) of the tool."""
    # The summary goes to a file: a pipe could be full while messages are read.
    with tempfile.TemporaryFile() as summary:
        reader, writer = _terminal() if verbose else os.pipe()
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=summary, stderr=writer)
        except BaseException:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        try:
            messages = _read(reader, verbose)
            status = process.wait()
        except BaseException:
            _end(process)
            raise
        finally:
            os.close(reader)
        summary.seek(0)
        return status, summary.read().decode(), messages


def _terminal() -> tuple:
    """Both ends of a pseudo terminal, to which the tool shows its progress."""
    import pty

    return pty.openpty()


def _read(reader: int, verbose: bool) -> str:
    """Reads messages to the end; the last line of progress is not a part of them."""
    parts: List[bytes] = []
    while True:
        try:
            part = os.read(reader, 65536)
        except OSError:  # the end of a pseudo terminal
            part = b""
        if not part:
            break
        parts.append(part)
        if verbose:
            sys.stderr.write(part.decode("utf-8", "replace"))
            sys.stderr.flush()
    text = b"".join(parts).decode("utf-8", "replace").replace("\r\n", "\n")
    # A terminal shows only what follows the last return on a line.
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line.rpartition("\r")[2]) for line in text.split("\n")]
    return "\n".join(lines)


def _end(process: Any) -> None:
    """Ends the tool, which a terminal may have interrupted already; a second interrupt kills it."""
    try:
        process.wait(0.2)
        return
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(10)
    except BaseException:
        process.kill()
        process.wait()
        raise
