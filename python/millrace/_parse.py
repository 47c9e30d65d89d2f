"""Parses batches of Examples and SequenceExamples to columns."""
from __future__ import annotations

import ctypes
import functools
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from . import _abi, _features, _library, _tensors
from ._library import library
from ._record_common import failure

__all__ = ["parse_example", "parse_sequence_example", "parse_single_example", "parse_single_sequence_example"]


def strings_of(records: Any, argument: str) -> Tuple[Any, int, Any]:
    """The address and the number of structs mr_string for records, and what must live while they are used."""
    if isinstance(records, np.ndarray):
        records = records.ravel().tolist()
    if isinstance(records, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"{argument} is of type {type(records).__name__}, expected a list of bytes")
    try:
        listed = list(records)
    except TypeError:
        raise TypeError(f"{argument} is of type {type(records).__name__}, expected a list of bytes") from None
    for i, record in enumerate(listed):
        if type(record) is not bytes:
            listed[i] = bytes_of(record, f"{argument}[{i}]")
    pointers = (ctypes.c_char_p * len(listed))(*listed)
    words = np.empty((len(listed), 2), np.uintp)
    words[:, 0] = np.frombuffer(pointers, np.uintp) if listed else 0
    words[:, 1] = np.fromiter(map(len, listed), np.uintp, len(listed))
    return words.__array_interface__["data"][0], len(listed), (words, pointers, listed)


def bytes_of(record: Any, argument: str) -> bytes:
    """The bytes of a record."""
    try:
        return bytes(memoryview(record))
    except TypeError:
        raise TypeError(f"{argument} is of type {type(record).__name__}, expected bytes") from None


class _Parser:
    """A handle of a parser and its features."""

    def __init__(self, new: Any, free: Any, *groups: Tuple[Mapping[str, Any], str, bool]) -> None:
        self._handle = ctypes.c_void_p()
        self._free = free
        made = [_features.to_features(*group) for group in groups]
        self.names = [list(features) for features, _, _ in groups]
        self.features = [array for array, _ in made]
        self._kept = [kept for _, kept in made]
        self.is_sequence = [group[2] for group in groups]
        self.counts = [_features.tensor_counts(*pair) for pair in zip(self.features, self.is_sequence)]
        self.count = sum(map(sum, self.counts))
        error = _library.Error()
        arguments: List[Any] = []
        for array in self.features:
            arguments += [ctypes.addressof(array) if len(array) else None, len(array)]
        status = new(*arguments, ctypes.byref(self._handle), ctypes.byref(error))
        if status:
            message = error.message.decode("utf-8", "replace")
            raise ValueError(message) if status == _abi.INVALID_ARGUMENT else failure(error)

    def parse(self, function: Any, records: Any, argument: str, is_single: bool) -> List[Dict[str, Any]]:
        """The columns of each group of features."""
        address, count, kept = strings_of(records, argument)
        tensors = (_abi.Tensor * max(1, self.count))()
        error = _library.Error()
        if function(self._handle, address, count, is_single, ctypes.byref(tensors), ctypes.byref(error)):
            raise failure(error)
        del kept
        try:
            arrays = _tensors.take(ctypes.addressof(tensors), self.count)
        finally:
            for tensor in tensors:
                library.mr_tensor_deinit(ctypes.byref(tensor))
        columns = []
        for names, array, counts, is_sequence in zip(self.names, self.features, self.counts, self.is_sequence):
            own = sum(counts)
            columns.append(_features.to_columns(names, array, counts, arrays[:own], is_sequence, is_single))
            arrays = arrays[own:]
        return columns

    def __del__(self) -> None:
        self._free(self._handle)


class _Form:
    """The arguments of a _Parser. Equal ones have parsers of equal results."""

    __slots__ = ("arguments", "key", "_hash")

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.key = _key([features for features, _, _ in arguments[2:]])
        self._hash = hash(self.key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: Any) -> bool:
        return self.key == other.key


class _UnknownError(Exception):
    """A value that may change, or that may equal another one with another meaning."""


_PLAIN = (str, bytes, int, float, bool, type(None), type, _features.DType)


def _key(value: Any) -> Any:
    """What can be hashed, and is equal for equal values of equal types only."""
    kind = type(value)
    if kind in _PLAIN:
        # 0.0 equals -0.0, and True equals 1.
        return kind, repr(value) if kind is float else value
    if kind is dict:
        return tuple([(_key(name), _key(item)) for name, item in value.items()])
    if kind in (tuple, list) or (isinstance(value, tuple) and hasattr(value, "_fields")):
        return (kind, *map(_key, value))
    raise _UnknownError


@functools.lru_cache(maxsize=64)
def _cached_parser(form: _Form) -> _Parser:
    parser = _Parser(*form.arguments)
    form.arguments = ()
    return parser


def _parser(*arguments: Any) -> _Parser:
    """A parser, perhaps of an earlier call: creating one costs more than parsing a few records."""
    try:
        return _cached_parser(_Form(*arguments))
    except _UnknownError:
        return _Parser(*arguments)


def _parse(records: Any, argument: str, features: Mapping[str, Any], is_single: bool) -> Dict[str, Any]:
    parser = _parser(library.mr_example_parser_new, library.mr_example_parser_free, (features, "features", False))
    return parser.parse(library.mr_example_parse, records, argument, is_single)[0]


def parse_example(records: Sequence[bytes], features: Mapping[str, Any]) -> Dict[str, Any]:
    """Parses a batch of Examples to columns, as tf.io.parse_example does.

    Parameters
    ----------
    records
        Serialized Examples.
    features
        By name: FixedLenFeature, FixedLenSequenceFeature, VarLenFeature, SparseFeature, RaggedFeature, or a dtype for
        one value, such as ``mr.Int64``. Other features of the records are skipped.

    Returns
    -------
    dict
        For each feature an array (strings are bytes objects), a SparseTensorValue or a RaggedTensorValue.

    Raises
    ------
    TypeError, ValueError
        Invalid features.
    millrace.errors.InvalidArgumentError
        A record does not match the features; the message names record and feature.
    millrace.errors.DataLossError
        A record is damaged.

    Examples
    --------
    >>> records = [mr.Example.encode({"label": i, "words": ["a"] * i}) for i in (1, 2)]
    >>> columns = mr.parse_example(records, {"label": mr.Int64, "words": mr.VarLenFeature(mr.String)})
    >>> columns["label"], columns["words"].dense_shape
    (array([1, 2]), array([2, 2]))
    """
    return _parse(records, "records", features, False)


def parse_single_example(record: bytes, features: Mapping[str, Any]) -> Dict[str, Any]:
    """Parses one Example, as tf.io.parse_single_example does: as parse_example, without the dimension of the batch."""
    return _parse([bytes_of(record, "record")], "record", features, True)


def _parse_sequence(
    records: Any, argument: str, context_features: Any, sequence_features: Any, is_single: bool
) -> Tuple[Dict[str, Any], Dict[str, Any], Dict[str, Any]]:
    context = {} if context_features is None else context_features
    lists = {} if sequence_features is None else sequence_features
    parser = _parser(
        library.mr_sequence_parser_new,
        library.mr_sequence_parser_free,
        (context, "context_features", False),
        (lists, "sequence_features", True),
    )
    found, steps = parser.parse(library.mr_sequence_parse, records, argument, is_single)
    lengths = {}
    for name, value in steps.items():
        if type(value) is tuple:
            steps[name], lengths[name] = value
    return found, steps, lengths


def parse_sequence_example(
    records: Sequence[bytes],
    context_features: Optional[Mapping[str, Any]] = None,
    sequence_features: Optional[Mapping[str, Any]] = None,
) -> Tuple[Dict[str, Any], Dict[str, Any], Dict[str, Any]]:
    """Parses a batch of SequenceExamples to columns, as tf.io.parse_sequence_example does.

    Parameters
    ----------
    records
        Serialized SequenceExamples.
    context_features
        As for parse_example: FixedLenFeature, VarLenFeature and RaggedFeature.
    sequence_features
        Of the feature lists: FixedLenSequenceFeature, VarLenFeature and RaggedFeature.

    Returns
    -------
    context, lists, lengths
        Three dicts: the columns of the context, those of the lists, and the number of steps of each
        FixedLenSequenceFeature.

    Raises
    ------
    TypeError, ValueError
        Invalid features.
    millrace.errors.OpError
        As for parse_example; the message also names the step.
    """
    return _parse_sequence(records, "records", context_features, sequence_features, False)


def parse_single_sequence_example(
    record: bytes,
    context_features: Optional[Mapping[str, Any]] = None,
    sequence_features: Optional[Mapping[str, Any]] = None,
) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Parses one SequenceExample, as tf.io.parse_single_sequence_example does.

    Returns
    -------
    context, lists
        Two dicts, without the dimension of the batch.
    """
    record = bytes_of(record, "record")
    return _parse_sequence([record], "record", context_features, sequence_features, True)[:2]
