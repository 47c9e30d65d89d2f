"""Parses the usual encoding of Examples, the one that every writer produces.

Each name and value costs less here than a call of the library. Anything else, valid or damaged, is left to it. The same
lines read each length: a function for them would make the parser 16 to 21 % slower."""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import numpy as np

_array, _frombuffer, _uint8, _int64, _float = np.array, np.frombuffer, np.uint8, np.int64, np.dtype("<f4")
_LIST, _BYTES, _FLOATS, _INT64S = 0x12, 0x0A, 0x12, 0x1A
# Longer integers, in bytes, are left to the library.
_PACKED_MAX = 80
_SINGLE = list(np.arange(128, dtype=np.int64).reshape(128, 1))
# The texts of the names of features, which records share.
_names: Dict[bytes, str] = {}
_NAMES_MAX = 1000
_NAME_BYTES_MAX = 200


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


def _numbers(record: bytes, at: int, end: int, kind: int) -> Any:
    """The values of a FloatList or Int64List."""
    size = end - at
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
    if kind != _FLOATS or size & 3:
        raise _OtherError
    return _frombuffer(record, _float, size >> 2, at).copy() if size else np.empty(0, _float)


def _text(name: bytes) -> str:
    """The name of a feature, which is kept for the next record."""
    if len(_names) >= _NAMES_MAX:
        _names.clear()
    text = name.decode("utf-8", "surrogateescape")
    if len(name) <= _NAME_BYTES_MAX:
        _names[name] = text
    return text


def _entries(record: bytes) -> Dict[str, Any]:
    end = len(record)
    if record[0] != 0x0A:
        raise _OtherError
    size, at = _long(record, 1)
    if at + size != end:
        raise _OtherError
    found: Dict[str, Any] = {}
    names = _names
    while at < end:
        # The entry, its name, and its Feature.
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
        if not size:  # no list
            continue
        # The list; one integer and one string are the most frequent ones.
        kind = record[at]
        size = record[at + 1]
        at += 2
        if size > 0x7F:
            size, at = _long(record, at - 1)
        if at + size != last:
            raise _OtherError
        if kind == _BYTES:
            value = _byte_values(record, at, last)
        elif size == 3 and kind == _INT64S and record[at : at + 2] == b"\x0a\x01" and record[at + 2] < 0x80:
            value = _SINGLE[record[at + 2]].copy()
        else:
            value = _numbers(record, at, last, kind)
        found[names.get(name) or _text(name)] = value
        at = last
    return found


def parse(record: bytes) -> Optional[Dict[str, Any]]:
    """The features of an Example in the usual encoding; None: another one."""
    try:
        return _entries(record)
    except (_OtherError, IndexError):
        return None
