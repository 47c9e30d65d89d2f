"""RunOptions and RunMetadata: what one run is asked for besides its fetches."""
from __future__ import annotations

import ctypes
from typing import Any

from . import _arrays, _library
from ._library import library


class RunOptions:
    """In place of ``tf.compat.v1.RunOptions``, whose messages Session.run takes too.

    Parameters
    ----------
    trace_level
        NO_TRACE, or SOFTWARE_TRACE, HARDWARE_TRACE or FULL_TRACE, which have the same effect.
    timeout_in_ms
        Of the run, which then raises DeadlineExceededError; 0: that of the session.
    output_partition_graphs
        Whether the graph that was executed is reported.
    """

    NO_TRACE, SOFTWARE_TRACE, HARDWARE_TRACE, FULL_TRACE = range(4)

    def __init__(
        self, trace_level: int = NO_TRACE, timeout_in_ms: int = 0, output_partition_graphs: bool = False
    ) -> None:
        self.trace_level = trace_level
        self.timeout_in_ms = timeout_in_ms
        self.output_partition_graphs = output_partition_graphs

    def SerializeToString(self) -> bytes:
        """The bytes of the message."""
        values = (1, self.trace_level), (2, self.timeout_in_ms), (5, bool(self.output_partition_graphs))
        return b"".join(bytes([number << 3]) + _varint(value) for number, value in values if value)


class RunMetadata:
    """In place of ``tf.compat.v1.RunMetadata``, whose messages Session.run fills too.

    Attributes
    ----------
    serialized
        The bytes of the message.
    """

    def __init__(self) -> None:
        self.serialized = b""

    def ParseFromString(self, serialized: Any) -> None:
        """Replaces the message."""
        self.serialized = bytes(serialized)

    def MergeFromString(self, serialized: Any) -> None:
        """Merges another message into it."""
        self.serialized += bytes(serialized)

    def SerializeToString(self) -> bytes:
        """The bytes of the message."""
        return self.serialized


def _varint(value):
    value = int(value) & (1 << 64) - 1
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    data.append(value)
    return bytes(data)


def run(plan, values, options, run_metadata):
    """Runs the plan with options, and fills run_metadata. Each may be None."""
    data = options if isinstance(options, bytes) else options.SerializeToString() if options else b""
    if run_metadata is None:
        return plan.run(values, lambda step, error: library.mr_runner_run_with(step, data, len(data), None, error))
    parse = run_metadata.ParseFromString
    array = _library.Array()
    at = ctypes.addressof(array)
    try:
        result = plan.run(values, lambda step, error: library.mr_runner_run_with(step, data, len(data), at, error))
        serialized = _arrays.from_strings(array.data, 1, ())
    finally:
        library.mr_runner_release(array.owner)
    parse(serialized)
    return result
