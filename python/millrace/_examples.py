"""Examples and SequenceExamples as dicts."""
from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy as np

from . import _canonical, _library, _record_abi, _values, _wire
from ._library import library
from ._parse import bytes_of
from ._record_common import failure

__all__ = ["Example", "SequenceExample"]

_next_feature = library.mr_example_next_feature
_next_list = library.mr_sequence_next_list
_next_step = library.mr_feature_list_next
_count = library.mr_feature_count
_string_at = ctypes.string_at
_NONE, _BYTES, _FLOATS, _INT64S = range(4)
_SCRATCH = 64


class _Scratch:
    """Structs for walking over a record, with views of their words."""

    def __init__(self) -> None:
        self.cursor = (ctypes.c_size_t * 5)()
        self.cursor_at = ctypes.addressof(self.cursor)
        self.view = (ctypes.c_size_t * 5)()
        self.view_at = ctypes.addressof(self.view)
        self.lists = (ctypes.c_size_t * 4)()
        self.lists_at = ctypes.addressof(self.lists)
        self.count = ctypes.c_size_t()
        self.count_at = ctypes.addressof(self.count)
        self.int64s = np.empty(_SCRATCH, np.int64)
        self.int64s_at = self.int64s.ctypes.data
        self.floats = np.empty(_SCRATCH, np.float32)
        self.floats_at = self.floats.ctypes.data
        self.error = _library.Error()
        self.error_at = ctypes.addressof(self.error)


assert ctypes.sizeof(_record_abi.ExampleCursor) == ctypes.sizeof(_record_abi.FeatureView) == 40
assert ctypes.sizeof(_record_abi.FeatureListView) == 32
# A call takes one and puts it back, so that calls in other threads, in finalizers and signal handlers have their own.
_scratches: List[_Scratch] = []
_GET = {
    _FLOATS: (library.mr_feature_floats, "floats", np.float32),
    _INT64S: (library.mr_feature_int64s, "int64s", np.int64),
}


def _start(scratch: _Scratch, address: int, size: int) -> None:
    scratch.cursor[:] = (address, size, 0, 0, 0)


def _byte_values(scratch: _Scratch, count: int) -> List[bytes]:
    words = (ctypes.c_size_t * (2 * count))()
    if library.mr_feature_bytes(scratch.view_at, words, count, scratch.error_at):
        raise failure(scratch.error)
    return [_string_at(words[i], words[i + 1]) if words[i + 1] else b"" for i in range(0, 2 * count, 2)]


def _value(scratch: _Scratch, kind: int) -> Any:
    """The values of the feature in scratch.view."""
    if _count(scratch.view_at, scratch.count_at, scratch.error_at):
        raise failure(scratch.error)
    count = scratch.count.value
    if kind == _BYTES:
        return _byte_values(scratch, count) if count else []
    get, name, dtype = _GET[kind]
    if count <= _SCRATCH:
        if get(scratch.view_at, getattr(scratch, name + "_at"), _SCRATCH, scratch.error_at):
            raise failure(scratch.error)
        return getattr(scratch, name)[:count].copy()
    values = np.empty(count, dtype)
    if get(scratch.view_at, values.__array_interface__["data"][0], count, scratch.error_at):
        raise failure(scratch.error)
    return values


def _name(address: int, size: int) -> str:
    return _string_at(address, size).decode("utf-8", "surrogateescape") if size else ""


def _features(scratch: _Scratch, address: int, size: int) -> Dict[str, Any]:
    _start(scratch, address, size)
    found: Dict[str, Any] = {}
    while True:
        status = _next_feature(scratch.cursor_at, scratch.view_at, scratch.error_at)
        if status:
            if status == _record_abi.OUT_OF_RANGE:
                return found
            raise failure(scratch.error)
        name, name_size, kind, _, _ = scratch.view
        kind &= 0xFFFFFFFF
        # A feature without a list is missing, and does not replace an earlier one.
        if kind:
            found[_name(name, name_size)] = _value(scratch, kind)


def _lists(scratch: _Scratch, address: int, size: int) -> Dict[str, List[Any]]:
    _start(scratch, address, size)
    found: Dict[str, List[Any]] = {}
    while True:
        status = _next_list(scratch.cursor_at, scratch.lists_at, scratch.error_at)
        if status:
            if status == _record_abi.OUT_OF_RANGE:
                return found
            raise failure(scratch.error)
        name = _name(scratch.lists[0], scratch.lists[1])
        steps: List[Any] = []
        while not (status := _next_step(scratch.lists_at, scratch.view_at, scratch.error_at)):
            kind = scratch.view[2] & 0xFFFFFFFF
            steps.append(_value(scratch, kind) if kind else None)
        if status != _record_abi.OUT_OF_RANGE:
            raise failure(scratch.error)
        found[name] = steps


def _walk(record: bytes, *walks: Any) -> List[Any]:
    pointer = ctypes.c_char_p(record)
    address = ctypes.c_size_t.from_buffer(pointer).value
    try:
        scratch = _scratches.pop()
    except IndexError:
        scratch = _Scratch()
    try:
        return [walk(scratch, address, len(record)) for walk in walks]
    finally:
        _scratches.append(scratch)


def _limited(record: bytes) -> bytes:
    if len(record) > _wire.SIZE_MAX:
        raise ValueError(f"the record has {len(record)} bytes, expected at most {_wire.SIZE_MAX}")
    return record


class Example:
    """TensorFlow's record of named features, as a dict. The class has no instances."""

    def __new__(cls) -> "Example":
        raise TypeError("Example has no instances; call Example.encode and Example.parse")

    @staticmethod
    def encode(features: Mapping[str, Any]) -> bytes:
        """Serializes features. Equal features give equal bytes.

        Parameters
        ----------
        features
            By name: int, bool and arrays of integers become int64 values; float and arrays of floats float32 values;
            str (as UTF-8), bytes and arrays of them bytes values. Lists hold values of one kind, or integers and
            floats, which become float32 values; arrays are flattened.

        Raises
        ------
        TypeError, ValueError
            A value of another type (None, a nested or mixed list), an integer that int64 cannot hold, or an empty list,
            whose type is unknown: pass an empty array. The message names the feature.

        Examples
        --------
        >>> record = mr.Example.encode({"image/height": 480, "image/format": "jpeg", "box": np.zeros(4)})
        >>> mr.Example.parse(record)["image/height"]
        array([480])
        """
        content = _values.features(features, "features")
        return _limited(_wire.message(b"\x0a", content))

    @staticmethod
    def parse(record: bytes) -> Dict[str, Any]:
        """The features of a serialized Example.

        Returns
        -------
        dict
            For each feature an int64 or float32 array of its values, or a list of bytes. A feature without a list is
            missing; of equal names the last counts.

        Raises
        ------
        millrace.errors.DataLossError
            The record is not an Example.
        """
        if type(record) is not bytes:
            record = bytes_of(record, "record")
        found = _canonical.parse(record)
        return _walk(record, _features)[0] if found is None else found


class SequenceExample:
    """TensorFlow's record of named features and lists of features. The class has no instances."""

    def __new__(cls) -> "SequenceExample":
        raise TypeError("SequenceExample has no instances; call SequenceExample.encode and SequenceExample.parse")

    @staticmethod
    def encode(
        context: Optional[Mapping[str, Any]] = None, feature_lists: Optional[Mapping[str, Any]] = None
    ) -> bytes:
        """Serializes a context and feature lists. Equal ones give equal bytes.

        Parameters
        ----------
        context
            Features, as for Example.encode.
        feature_lists
            By name: a list with a feature for each step, or an array, whose first dimension counts the steps. An empty
            list has no steps.

        Raises
        ------
        TypeError, ValueError
            As for Example.encode.
        """
        parts = [_wire.message(b"\x0a", _values.features(context, "context"))] if context else []
        if feature_lists is not None:
            fields = []
            for name in _values.names(feature_lists, "feature_lists"):
                steps = feature_lists[name]
                if not isinstance(steps, (list, tuple)) and not getattr(steps, "shape", ()):
                    raise TypeError(f"feature list {name!r}: a value of type {type(steps).__name__}, expected a list")
                encoded = [_wire.message(b"\x0a", _step(step, f"{name}[{i}]")) for i, step in enumerate(steps)]
                fields.append((_values.encoded_name(name), b"".join(encoded)))
            if fields:
                parts.append(_wire.message(b"\x12", _wire.entries(fields)))
        return _limited(b"".join(parts))

    @staticmethod
    def parse(record: bytes) -> Tuple[Dict[str, Any], Dict[str, List[Any]]]:
        """The context and the feature lists of a serialized SequenceExample.

        Returns
        -------
        context, feature_lists
            Two dicts: features as from Example.parse, and for each list the features of its steps (None: a step
            without values of any kind).

        Raises
        ------
        millrace.errors.DataLossError
            The record is not a SequenceExample.
        """
        if type(record) is not bytes:
            record = bytes_of(record, "record")
        context, lists = _walk(record, _features, _lists)
        return context, lists


def _step(value: Any, name: str) -> bytes:
    """The message Feature of a step; None has no values of any kind, as parse returns it."""
    return b"" if value is None else _values.feature(value, name)
