"""Parses the usual encoding of Examples, the one that every writer produces.

Each name and value costs less here than a call of the library. Anything else, valid or damaged, is left to it. Lengths
below 128 are read where they stand, because a call of a function of Python would cost as much as all of this."""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import numpy as np

_array, _frombuffer, _uint8, _int64, _float = np.array, np.frombuffer, np.uint8, np.int64, np.dtype("<f4")
_LIST, _BYTES, _FLOATS, _INT64S = 0x12, 0x0A, 0x12, 0x1A
# Longer integers, in bytes, are left to the library.
_PACKED_MAX = 80


class _OtherError(Exception):
    """Another encoding."""


def _long(record: bytes, at: int) -> Tuple[int, int]:
    """A varint of several bytes, and the position after it."""
    number = shift = 0
    while shift < 70:
        byte = record[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number >> 64:
                break
            return number, at
        shift += 7
    raise _OtherError


def _int64s(record: bytes, at: int, end: int) -> Any:
    if end - at == 1:
        byte = record[at]
        if byte < 0x80:
            return _array((byte,))
    packed = record[at:end]
    if packed.isascii():
        return _frombuffer(packed, _uint8).astype(_int64)
    if len(packed) > _PACKED_MAX:
        raise _OtherError
    numbers = []
    while at < end:
        number, at = _long(record, at)
        numbers.append(number if number < 1 << 63 else number - (1 << 64))
    if at != end:
        raise _OtherError
    return _array(numbers)


def _byte_values(record: bytes, at: int, end: int) -> Any:
    values = []
    while at < end:
        if record[at] != 0x0A:
            raise _OtherError
        size = record[at + 1]
        at += 2
        if size > 0x7F:
            size, at = _long(record, at - 1)
        values.append(record[at : at + size])
        at += size
    if at != end:
        raise _OtherError
    return values


def _values(record: bytes, at: int, end: int) -> Any:
    """The values of the Feature at a position; None without a list."""
    if at == end:
        return None
    kind = record[at]
    size = record[at + 1]
    at += 2
    if size > 0x7F:
        size, at = _long(record, at - 1)
    if at + size != end:
        raise _OtherError
    if kind == _BYTES:
        return _byte_values(record, at, end)
    if kind not in (_FLOATS, _INT64S):
        raise _OtherError
    if size:
        if record[at] != 0x0A:  # not packed
            raise _OtherError
        size = record[at + 1]
        at += 2
        if size > 0x7F:
            size, at = _long(record, at - 1)
        if at + size != end:
            raise _OtherError
    if kind == _INT64S:
        return _int64s(record, at, end)
    if size & 3:
        raise _OtherError
    return _frombuffer(record, _float, size >> 2, at).copy() if size else np.empty(0, _float)


def _entries(record: bytes) -> Dict[str, Any]:
    end = len(record)
    if record[0] != 0x0A:
        raise _OtherError
    size, at = _long(record, 1)
    if at + size != end:
        raise _OtherError
    found: Dict[str, Any] = {}
    while at < end:
        if record[at] != 0x0A:
            raise _OtherError
        size = record[at + 1]
        at += 2
        if size > 0x7F:
            size, at = _long(record, at - 1)
        last = at + size
        if last > end or record[at] != 0x0A:
            raise _OtherError
        size = record[at + 1]
        at += 2
        if size > 0x7F:
            size, at = _long(record, at - 1)
        name = record[at : at + size]
        at += size
        if record[at] != _LIST:
            raise _OtherError
        size = record[at + 1]
        at += 2
        if size > 0x7F:
            size, at = _long(record, at - 1)
        if at + size != last:
            raise _OtherError
        value = _values(record, at, last)
        if value is not None:
            found[name.decode("utf-8", "surrogateescape")] = value
        at = last
    return found


def parse(record: bytes) -> Optional[Dict[str, Any]]:
    """The features of an Example in the usual encoding; None: another one."""
    try:
        return _entries(record)
    except (_OtherError, IndexError):
        return None
