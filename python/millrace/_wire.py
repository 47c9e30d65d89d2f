"""Encodes features as protobuf messages. Short values are encoded here; a call of the library costs more."""
from __future__ import annotations

import ctypes
from typing import Any, List, Sequence, Tuple

import numpy as np

from . import _library, _record_abi
from ._library import library
from ._record_common import failure

SIZE_MAX = (1 << 31) - 1
# Integers are encoded by the library from this number on.
_MANY = 32


def _varint(number: int) -> bytes:
    if number < 0x80:
        return _SHORT[number]
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


_SHORT = [bytes([i]) for i in range(0x80)]
_LENGTHS = _SHORT + [bytes([i & 0x7F | 0x80, i >> 7]) for i in range(0x80, 0x4000)]


def varint(number: int) -> bytes:
    """The varint of a length."""
    return _LENGTHS[number] if number < 0x4000 else _varint(number)


def message(tag: bytes, content: bytes) -> bytes:
    """A field that is a message or bytes."""
    return tag + varint(len(content)) + content


def _many_int64s(values: np.ndarray) -> bytes:
    """The packed varints of an int64 array."""
    encoder, record, error = _record_abi.ExampleEncoder(), (ctypes.c_size_t * 2)(), _library.Error()
    at = ctypes.byref(encoder)
    try:
        library.mr_example_add_int64_list(at, b"", values.__array_interface__["data"][0], values.size)
        if library.mr_example_finish(at, ctypes.byref(record), ctypes.byref(error)):
            raise failure(error)
        encoded = ctypes.string_at(record[0], record[1])
    finally:
        library.mr_example_encoder_deinit(at)
    # Features, its entry, the empty name, the Feature, the Int64List, the values: each with a length.
    position = 0
    for is_skipped in (False, False, True, False, False, False):
        position += 1
        if is_skipped:
            position += 1
            continue
        while encoded[position] & 0x80:
            position += 1
        position += 1
    return encoded[position:]


def int64s(values: Any) -> bytes:
    """The Feature of int64 values: an array, or a list of integers within the limits of int64."""
    count = len(values)
    if count == 0:
        return b"\x1a\x00"
    low, high = (-1, -1) if isinstance(values, np.ndarray) else (min(values), max(values))
    if low >= 0 and high < 0x80:
        packed = bytes(values)
    elif low >= 0 and high < 0x4000:
        packed = b"".join([_LENGTHS[value] for value in values])
    elif count >= _MANY:
        packed = _many_int64s(np.ascontiguousarray(values, np.int64))
    else:
        packed = b"".join([_varint(value & 0xFFFFFFFFFFFFFFFF) for value in values])
    return message(b"\x1a", message(b"\x0a", packed))


def int64(value: int) -> bytes:
    """The Feature of one int64 value."""
    if 0 <= value < 0x80:
        return b"\x1a\x03\x0a\x01" + _SHORT[value]
    packed = _varint(value & 0xFFFFFFFFFFFFFFFF)
    size = len(packed)
    return b"\x1a%c\x0a%c%b" % (size + 2, size, packed)


def floats(values: bytes) -> bytes:
    """The Feature of little-endian floats."""
    return message(b"\x12", message(b"\x0a", values)) if values else b"\x12\x00"


def float_(value: float) -> bytes:
    """The Feature of one float."""
    return b"\x12\x06\x0a\x04" + value


def byte_strings(values: Sequence[bytes]) -> bytes:
    """The Feature of bytes values."""
    if len(values) == 1:
        value = values[0]
        size = varint(len(value))
        return b"".join((b"\x0a", varint(1 + len(size) + len(value)), b"\x0a", size, value))
    parts: List[bytes] = []
    for value in values:
        parts += (b"\x0a", varint(len(value)), value)
    return message(b"\x0a", b"".join(parts))


def entries(fields: Sequence[Tuple[bytes, bytes]]) -> bytes:
    """The message of a map of names to messages, sorted by name."""
    parts: List[bytes] = []
    for name, content in fields:
        name_size, size = len(name), len(content)
        head, tail = varint(name_size), varint(size)
        parts += (b"\x0a", varint(2 + len(head) + name_size + len(tail) + size), b"\x0a", head, name, b"\x12", tail)
        parts.append(content)
    return b"".join(parts)
