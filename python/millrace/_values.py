"""The values of features: from Python and NumPy to messages."""
from __future__ import annotations

import struct
from typing import Any, Callable, Dict, List

import numpy as np

from . import _wire

_pack_float = struct.Struct("<f").pack
_LOW, _HIGH = -(1 << 63), (1 << 63) - 1
_EMPTY = "is an empty list, whose type is unknown; pass np.array([], np.int64), np.float32 or object (for bytes)"


def _int(value: int, name: str) -> bytes:
    if not _LOW <= value <= _HIGH:
        raise ValueError(f"feature {name!r}: {value} is not in the range of int64")
    return _wire.int64(value)


def _float(value: float, name: str) -> bytes:
    try:
        return _wire.float_(_pack_float(value))
    except OverflowError:
        return _wire.float_(_pack_float(float("inf") if value > 0 else float("-inf")))


def _bytes(value: bytes, name: str) -> bytes:
    return _wire.byte_strings((value,))


def _text_bytes(value: str, name: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"feature {name!r}: a str that is not valid Unicode: {error.reason}") from None


def _text(value: str, name: str) -> bytes:
    return _wire.byte_strings((_text_bytes(value, name),))


def _buffer(value: Any, name: str) -> bytes:
    return _wire.byte_strings((bytes(value),))


def _kind(value: Any, name: str) -> str:
    """How a value of a list is stored: "int", "float" or "bytes"."""
    if isinstance(value, (bytes, str, bytearray, memoryview)):
        return "bytes"
    if isinstance(value, (bool, int, np.integer, np.bool_)):
        return "int"
    if isinstance(value, (float, np.floating)):
        return "float"
    raise TypeError(f"feature {name!r}: {_described(value)} in a list, expected int, float, bytes or str")


def _described(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
        return "a nested list"
    return f"a value of type {type(value).__name__}"


def _ints(values: Any, name: str) -> bytes:
    if min(values) < _LOW or max(values) > _HIGH:
        wrong = min(values) if min(values) < _LOW else max(values)
        raise ValueError(f"feature {name!r}: {wrong} is not in the range of int64")
    return _wire.int64s(values)


def _floats(values: Any) -> bytes:
    try:
        return _wire.floats(struct.pack(f"<{len(values)}f", *values))
    except OverflowError:  # a value that float32 cannot hold becomes infinite
        with np.errstate(over="ignore"):
            return _wire.floats(np.array(values, "<f4").tobytes())


def _list(values: Any, name: str) -> bytes:
    if not values:
        raise ValueError(f"feature {name!r} {_EMPTY}")
    types = set(map(type, values))
    if len(types) == 1:
        only = types.pop()
        if only is bytes:
            return _wire.byte_strings(values)
        if only is int:
            return _ints(values, name)
        if only is float:
            return _floats(values)
        types.add(only)
    kinds = {_kind(value, name) for value in values} if len(types) > 1 else {_kind(values[0], name)}
    if kinds == {"int", "float"} and bool not in types and np.bool_ not in types:
        kinds = {"float"}
    if len(kinds) > 1:
        raise TypeError(f"feature {name!r}: a list of mixed types: {', '.join(sorted(t.__name__ for t in types))}")
    kind = kinds.pop()
    if kind == "float":
        return _floats([float(value) for value in values])
    if kind == "int":
        return _ints([int(value) for value in values], name)
    return _wire.byte_strings([_text_bytes(v, name) if isinstance(v, str) else bytes(v) for v in values])


def _array(values: Any, name: str) -> bytes:
    kind = values.dtype.kind
    flat = values.reshape(-1)
    if kind in "bi":
        flat = flat.astype(np.int64)
        return _wire.int64s(flat if flat.size >= 32 else flat.tolist())
    if kind == "u":
        if flat.size and flat.dtype.itemsize == 8 and int(flat.max()) > _HIGH:
            raise ValueError(f"feature {name!r}: {int(flat.max())} is not in the range of int64")
        flat = flat.astype(np.int64)
        return _wire.int64s(flat if flat.size >= 32 else flat.tolist())
    if kind == "f" or values.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        with np.errstate(over="ignore"):
            return _wire.floats(flat.astype("<f4").tobytes())
    if kind in "SUO":
        listed = flat.tolist()
        return _list(listed, name) if listed else _wire.byte_strings(())
    raise TypeError(f"feature {name!r}: an array of dtype {values.dtype}, expected numbers, bytes or str")


_BY_TYPE: Dict[type, Callable[[Any, str], bytes]] = {
    bool: _int,
    int: _int,
    float: _float,
    bytes: _bytes,
    str: _text,
    bytearray: _buffer,
    memoryview: _buffer,
    list: _list,
    tuple: _list,
    np.ndarray: _array,
}


def _other(value: Any, name: str) -> bytes:
    for base, function in _BY_TYPE.items():
        if isinstance(value, base):
            return function(value, name)
    if isinstance(value, (np.integer, np.bool_)):
        return _int(int(value), name)
    if isinstance(value, np.floating):
        return _float(float(value), name)
    if value is not None and hasattr(value, "__array__"):
        return _array(np.asarray(value), name)
    raise TypeError(f"feature {name!r}: {_described(value)}, expected numbers, bytes, str, a list or an array")


def feature(value: Any, name: str) -> bytes:
    """The message Feature of a value."""
    return _BY_TYPE.get(type(value), _other)(value, name)


def names(mapping: Any, argument: str) -> List[str]:
    """The sorted names of a dict."""
    try:
        listed = sorted(mapping)
    except TypeError:
        listed = list(mapping) if hasattr(mapping, "keys") else None
    if not hasattr(mapping, "keys"):
        raise TypeError(f"{argument} is of type {type(mapping).__name__}, expected a dict")
    for name in listed:
        if type(name) is not str and not isinstance(name, str):
            raise TypeError(f"{argument} has the name {name!r}, expected a str")
    return listed


def encoded_name(name: str) -> bytes:
    """The bytes of a name; those that parse could not decode are restored."""
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ValueError(f"the name {name!r} is not valid Unicode: {error.reason}") from None


def features(mapping: Any, argument: str) -> bytes:
    """The message Features of a dict."""
    fields = []
    for name in names(mapping, argument):
        value = mapping[name]
        content = _BY_TYPE.get(type(value), _other)(value, name)
        fields.append((encoded_name(name), content))
    return _wire.entries(fields)
