"""Features of Examples, with the names and meanings of tf.io, and their structs mr_feature."""
from __future__ import annotations

import ctypes
import operator
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _abi, _arguments, _dtypes, _record_abi, _tensors
from ._library import library

__all__ = [
    "DType", "FixedLenFeature", "FixedLenSequenceFeature", "Float", "Int64", "RaggedFeature", "RaggedTensorValue",
    "SparseFeature", "SparseTensorValue", "String", "VarLenFeature",
]  # fmt: skip

_FLOAT, _INT32, _STRING, _INT64 = 1, 3, 7, 9
_MAX = (1 << 63) - 1


class DType:
    """One of the three dtypes of features: ``mr.Float``, ``mr.Int64``, ``mr.String``.

    Equal to what else names it: ``mr.Int64 == np.int64 == "int64"``."""

    __slots__ = ("millrace_dtype", "name", "_text")

    def __init__(self, number: int, name: str, text: str) -> None:
        self.millrace_dtype = number
        self.name = name
        self._text = text

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, DType):
            return self.millrace_dtype == other.millrace_dtype
        try:
            return _dtypes.number(other) == self.millrace_dtype
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self.millrace_dtype)

    def __repr__(self) -> str:
        return self._text

    def __reduce__(self) -> str:
        return self.name_of_constant

    @property
    def name_of_constant(self) -> str:
        """The constant's name in this module."""
        return self._text.rpartition(".")[2]


Float = DType(_FLOAT, "float32", "millrace.Float")
Int64 = DType(_INT64, "int64", "millrace.Int64")
String = DType(_STRING, "string", "millrace.String")


class FixedLenFeature(NamedTuple):
    """A feature with the same number of values in every record: an array [batch, *shape].

    Attributes
    ----------
    shape
        () for one value.
    dtype
        ``mr.Float``, ``mr.Int64``, ``mr.String``, or what else names these dtypes.
    default_value
        Of records without the feature: one value, or as many as the shape has. None: the feature is required.
    """

    shape: Sequence[int]
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A feature with any number of items of one shape: an array [batch, longest, *shape], padded.

    Attributes
    ----------
    shape
        Of an item; () for one value.
    dtype
        As for FixedLenFeature.
    allow_missing
        A record without the feature has no items. Must be True in an Example; in a SequenceExample a missing list is
        otherwise an error.
    default_value
        One value for the padding; None: 0 and b"". Only in an Example.
    """

    shape: Sequence[int]
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature with any number of values: a SparseTensorValue of shape [batch, longest]."""

    dtype: Any


class SparseFeature(NamedTuple):
    """A sparse array, whose values and indices are separate features: a SparseTensorValue of shape [batch, *size].

    Attributes
    ----------
    index_key
        The feature with the values' indices, or one for each dimension.
    value_key
        The feature with the values.
    dtype
        Of the values.
    size
        The number of indices, or one for each dimension.
    already_sorted
        Keep the values in their order; otherwise they are sorted by index.
    """

    index_key: Union[str, Sequence[str]]
    value_key: str
    dtype: Any
    size: Union[int, Sequence[int]]
    already_sorted: bool = False


class RowSplits(NamedTuple):
    """The feature `key` holds the row splits, from 0 to the number of values."""

    key: str


class RowLengths(NamedTuple):
    """The feature `key` holds the rows' lengths."""

    key: str


class RowStarts(NamedTuple):
    """The feature `key` holds the rows' starts, the first of which is 0."""

    key: str


class RowLimits(NamedTuple):
    """The feature `key` holds the rows' limits, the last of which is the number of values."""

    key: str


class ValueRowIds(NamedTuple):
    """The feature `key` holds the row of each value, not decreasing."""

    key: str


class UniformRowLength(NamedTuple):
    """Each row has `length` values."""

    length: int


class _Ragged(NamedTuple):
    dtype: Any
    value_key: Optional[str] = None
    partitions: Sequence[Any] = ()
    row_splits_dtype: Any = "int32"
    validate: bool = False


class RaggedFeature(_Ragged):
    """A feature with any number of values, or of rows of them: a RaggedTensorValue.

    Attributes
    ----------
    dtype
        Of the values.
    value_key
        The feature with the values; None: the feature's own name.
    partitions
        How the values are divided into rows, outermost first: ``RaggedFeature.RowSplits(key)``, ``RowLengths``,
        ``RowStarts``, ``RowLimits``, ``ValueRowIds`` or ``UniformRowLength(length)``.
    row_splits_dtype
        "int32" or "int64".
    validate
        As in tf.io; partitions are always checked.
    """

    __slots__ = ()
    RowSplits = RowSplits
    RowLengths = RowLengths
    RowStarts = RowStarts
    RowLimits = RowLimits
    ValueRowIds = ValueRowIds
    UniformRowLength = UniformRowLength


class SparseTensorValue(NamedTuple):
    """A sparse tensor: ``indices`` [n, rank], ``values`` [n], ``dense_shape`` [rank]."""

    indices: Any
    values: Any
    dense_shape: Any


class RaggedTensorValue(NamedTuple):
    """Rows of different lengths: row i is ``values[row_splits[i] : row_splits[i + 1]]``.

    ``values`` is an array, or another RaggedTensorValue if the rows consist of rows."""

    values: Any
    row_splits: Any

    def to_list(self) -> list:
        """The rows as nested lists."""
        values = self.values.to_list() if isinstance(self.values, RaggedTensorValue) else self.values.tolist()
        splits = self.row_splits.tolist()
        return [values[begin:end] for begin, end in zip(splits[:-1], splits[1:])]


# ---- Structs ----

_PARTITIONS = ("RowSplits", "RowLengths", "RowStarts", "RowLimits", "ValueRowIds", "UniformRowLength")


class _Builder:
    """Fills structs mr_feature, and keeps what they refer to."""

    def __init__(self, argument: str, is_sequence: bool) -> None:
        self.kept: List[Any] = []
        self.argument = argument
        self.is_sequence = is_sequence

    def text(self, value: Any, what: str) -> bytes:
        """The bytes of a name."""
        if isinstance(value, bytes):
            value = value.decode("utf-8", "surrogateescape")
        return _arguments.text(value, what).encode("utf-8", "surrogateescape")

    def dtype(self, value: Any, what: str) -> int:
        """The number of a dtype that features have."""
        if value is None:  # for NumPy float64
            raise TypeError(f"{what} is None, expected a dtype")
        number = _INT64 if value is int else _FLOAT if value is float else _dtypes.number(value, what)
        if number not in (_FLOAT, _INT64, _STRING):
            raise ValueError(f"{what} is {_dtypes.name(number)}, expected float32, int64 or string")
        return number

    def shape(self, value: Any, what: str) -> _abi.Shape:
        """A known shape; one integer is a vector's."""
        as_list = getattr(value, "as_list", None)  # tf.TensorShape
        sizes = as_list() if as_list is not None else value
        try:
            sizes = [operator.index(sizes)] if np.ndim(sizes) == 0 else [operator.index(size) for size in sizes]
        except (TypeError, ValueError):
            raise TypeError(f"{what} is {value!r}, expected a tuple of integers") from None
        if len(sizes) > _abi.RANK_MAX:
            raise ValueError(f"{what} has {len(sizes)} dimensions, expected at most {_abi.RANK_MAX}")
        return _abi.Shape(len(sizes), tuple(_arguments.integer(size, what, 0) for size in sizes))

    def default(self, value: Any, dtype: int, shape: Tuple[int, ...], what: str) -> Optional[int]:
        """The address of a tensor with one value for each of the shape."""
        if value is None:
            return None
        if dtype == _STRING:
            array = np.array(value, dtype=object)
            for item in array.ravel().tolist():
                if not isinstance(item, (bytes, str)):
                    raise TypeError(f"{what} contains a value of type {type(item).__name__}, expected bytes or str")
        else:
            array = np.asarray(value)
            if dtype == _FLOAT and array.dtype.kind in "iuf":
                array = array.astype(np.float32)
            array = _tensors.as_array(array, dtype, what)
        count = int(np.prod(shape, dtype=np.int64))
        if array.size == 1 and count != 1:
            array = np.broadcast_to(array.reshape(()), shape)
        if array.size != count:
            raise ValueError(f"{what} has {array.size} values, expected {count} for the shape {shape}")
        tensor = _abi.Tensor()
        array = np.array(array.reshape(shape), order="C", copy=True)
        _tensors.put(ctypes.addressof(tensor), array, dtype)
        self.kept.append(_Default(tensor))
        return ctypes.addressof(tensor)

    def partitions(self, values: Any, what: str) -> Tuple[Optional[int], int]:
        """The address of an array of structs mr_partition, and its length."""
        if not isinstance(values, (list, tuple)) or hasattr(values, "_fields"):
            raise TypeError(f"{what} is {values!r}, expected a list of partitions, such as RaggedFeature.RowSplits")
        made = (_record_abi.Partition * max(1, len(values)))()
        for i, value in enumerate(values):
            kind = type(value).__name__.lstrip("_")
            if kind not in _PARTITIONS:
                raise TypeError(f"{what} contains {value!r}, expected a partition, such as RaggedFeature.RowSplits")
            made[i].kind = _PARTITIONS.index(kind)
            if kind == "UniformRowLength":
                made[i].length = _arguments.integer(value.length, f"the length in {what}", 1)
            else:
                made[i].key = self.text(value.key, f"the key in {what}")
        self.kept.append(made)
        return ctypes.addressof(made), len(values)

    def fixed(self, made: _record_abi.Feature, feature: Any, what: str) -> None:
        made.form = 0
        made.shape = self.shape(feature.shape, f"the shape of {what}")
        shape = tuple(made.shape.dims[: made.shape.rank])
        made.default_value = self.default(feature.default_value, made.dtype, shape, f"the default_value of {what}")

    def fixed_sequence(self, made: _record_abi.Feature, feature: Any, what: str) -> None:
        made.form = 1
        made.shape = self.shape(feature.shape, f"the shape of {what}")
        is_missing = _arguments.boolean(feature.allow_missing, f"allow_missing of {what}")
        if self.is_sequence:
            made.allow_missing = is_missing
            if feature.default_value is not None:
                raise ValueError(f"the default_value of {what} has no effect in a SequenceExample")
        elif not is_missing:
            raise ValueError(f"allow_missing of {what} is False, expected True in an Example")
        made.default_value = self.default(feature.default_value, made.dtype, (), f"the default_value of {what}")

    def var_len(self, made: _record_abi.Feature, feature: Any, what: str) -> None:
        made.form = 2

    def ragged(self, made: _record_abi.Feature, feature: Any, what: str) -> None:
        made.form = 3
        if feature.value_key is not None:
            made.value_key = self.text(feature.value_key, f"the value_key of {what}")
        made.partitions, made.partition_count = self.partitions(feature.partitions, f"the partitions of {what}")
        made.splits_dtype = _dtypes.number(feature.row_splits_dtype, f"the row_splits_dtype of {what}")
        if made.splits_dtype not in (_INT32, _INT64):
            raise ValueError(f"the row_splits_dtype of {what} is {feature.row_splits_dtype!r}, expected int32 or int64")

    def sparse(self, made: _record_abi.Feature, feature: Any, what: str) -> None:
        made.form = 4
        index_key, size = feature.index_key, feature.size
        keys = [index_key] if isinstance(index_key, (str, bytes)) else list(index_key)
        made.shape = self.shape(size, f"the size of {what}")
        if len(keys) != made.shape.rank:
            raise ValueError(f"{what} has {len(keys)} index_keys, but the size has {made.shape.rank} dimensions")
        names = (ctypes.c_char_p * max(1, len(keys)))(*[self.text(key, f"the index_key of {what}") for key in keys])
        self.kept.append(names)
        made.index_keys = ctypes.addressof(names)
        made.value_key = self.text(feature.value_key, f"the value_key of {what}")
        made.already_sorted = _arguments.boolean(feature.already_sorted, f"already_sorted of {what}")

    def fill(self, made: _record_abi.Feature, name: Any, feature: Any) -> None:
        """Fills one struct."""
        what = f"{self.argument}[{name!r}]"
        made.name = self.text(name, f"a name in {self.argument}")
        form = self._FORMS.get(type(feature).__name__) if hasattr(feature, "_fields") else None
        if form is None:
            try:
                made.dtype = self.dtype(feature, what)
            except TypeError:
                raise TypeError(f"{what} is {feature!r}, expected a feature or a dtype") from None
            return
        made.dtype = self.dtype(feature.dtype, f"the dtype of {what}")
        form(self, made, feature, what)

    # By the names of the classes, which are those of tf.io, whose features are accepted, too.
    _FORMS: Dict[str, Callable] = {
        "FixedLenFeature": fixed,
        "FixedLenSequenceFeature": fixed_sequence,
        "VarLenFeature": var_len,
        "RaggedFeature": ragged,
        "SparseFeature": sparse,
    }


class _Default:
    """An owned struct mr_tensor."""

    def __init__(self, tensor: _abi.Tensor) -> None:
        self._tensor = tensor

    def __del__(self, deinit: Any = library.mr_tensor_deinit) -> None:
        deinit(ctypes.byref(self._tensor))


def to_features(
    features: Mapping[str, Any], argument: str = "features", is_sequence: bool = False
) -> Tuple[Any, List[Any]]:
    """The ctypes array of structs mr_feature for features.

    Parameters
    ----------
    features
        A dict of features (FixedLenFeature and so on, also of tf.io) by name. A dtype is a FixedLenFeature of shape ().
    argument
        Its name in messages.
    is_sequence
        Whether they are the feature lists of SequenceExamples.

    Returns
    -------
    array, keepalive
        The structs in the order of the dict, and what must live as long as they are used.
    """
    if not isinstance(features, Mapping):
        raise TypeError(f"{argument} is of type {type(features).__name__}, expected a dict of features")
    builder = _Builder(argument, is_sequence)
    made = (_record_abi.Feature * len(features))()
    for struct, (name, feature) in zip(made, features.items()):
        builder.fill(struct, name, feature)
    return made, builder.kept


def tensor_counts(features: Any, is_sequence: bool = False) -> List[int]:
    """The number of tensors of each struct mr_feature."""
    count = library.mr_sequence_tensor_count if is_sequence else library.mr_feature_tensor_count
    return [count(ctypes.byref(feature)) for feature in features]


def to_columns(
    names: Sequence[str],
    features: Any,
    counts: Sequence[int],
    tensors: Sequence[Any],
    is_sequence: bool = False,
    is_single: bool = False,
) -> Dict[str, Any]:
    """The values of features by name: arrays, SparseTensorValues and RaggedTensorValues.

    Parameters
    ----------
    names
        Of the features.
    features
        Their structs mr_feature.
    counts
        Their tensor_counts.
    tensors
        The arrays of all features, in the library's order.
    is_sequence
        Whether they are the feature lists of SequenceExamples; a FixedLenSequenceFeature is then a tuple of an array
        and the lengths.
    is_single
        Whether the arrays are those of one record, without the dimension of the batch.
    """
    columns: Dict[str, Any] = {}
    at = 0
    for name, feature, count in zip(names, features, counts):
        own = tensors[at : at + count]
        at += count
        columns[name] = own[0] if count == 1 else _column(feature.form, own, is_sequence, is_single)
    assert at == len(tensors)
    return columns


def _column(form: int, tensors: Sequence[Any], is_sequence: bool, is_single: bool) -> Any:
    if form == 1:
        return tuple(tensors)
    if form in (2, 4):
        return SparseTensorValue(*tensors)
    value = tensors[0]
    # The splits of the batch's records are empty for a single one.
    for splits in reversed(tensors[2 if is_single else 1 :]):
        value = RaggedTensorValue(value, splits)
    return value
