"""The console scripts of the wheel: each replaces the interpreter by the program of the same name in bin/."""
from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn


def _execute(name: str) -> NoReturn:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    # The interpreter ignores these signals, and a program that it starts would inherit that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execv(path, [name, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{name}: {path}: {error.strerror}; the program is part of the wheel of millrace, not of its sources")


def tfrecord_make() -> NoReturn:
    """Runs tfrecord-make, which converts images and other inputs to record files."""
    _execute("tfrecord-make")


def tfrecord_cat() -> NoReturn:
    """Runs tfrecord-cat, which inspects and repairs record files."""
    _execute("tfrecord-cat")


def graph_run() -> NoReturn:
    """Runs graph-run, which runs a graph of TensorFlow."""
    _execute("graph-run")
