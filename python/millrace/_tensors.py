"""Between NumPy arrays and the tensors of elements."""
from __future__ import annotations

import ctypes
from typing import Any, List, Sequence, Tuple

import numpy as np

from . import _abi, _arrays, _dlpack, _dtypes, _library
from ._arrays import DTYPES, from_strings
from ._library import STRING, library

# A struct mr_tensor in 8-byte words: dtype; rank; dims; buffer; data.
WORDS = ctypes.sizeof(_abi.Tensor) // 8
_RANK, _DIMS, _BUFFER, _DATA = 1, 2, 2 + _abi.RANK_MAX, 3 + _abi.RANK_MAX
assert ctypes.sizeof(_abi.Tensor) == 8 * WORDS and _abi.Tensor.data.offset == 8 * _DATA

# By the number of tensors.
_ARRAYS = [ctypes.c_int64 * (WORDS * count) for count in range(_abi.COMPONENTS_MAX + 1)]

_unref = library.mr_buffer_unref
_is_unique = library.mr_buffer_is_unique
_device = library.mr_tensor_device


class _Memory:
    """A reference to a buffer of the library, exposed to NumPy; released with the last array that uses it."""

    __slots__ = ("_buffer", "__array_interface__", "__weakref__")

    def __init__(self, buffer: int, interface: dict) -> None:
        self._buffer = buffer
        self.__array_interface__ = interface

    def __del__(self, unref=_unref) -> None:
        unref(self._buffer)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce_ex__(self, protocol):
        raise TypeError(f"cannot pickle {self!r}")


# By TensorFlow's number: the NumPy dtype, the text of its memory, whether the array is a view of another dtype.
_KINDS = {
    number: (dtype, dtype.str if dtype.kind != "V" else f"<u{dtype.itemsize}", dtype.kind == "V")
    for number, dtype in DTYPES.items()
    if number != STRING
}


def _array(number: int, shape: Tuple[int, ...], buffer: int, data: int) -> np.ndarray:
    dtype, text, is_viewed = _KINDS[number]
    interface = {"shape": shape, "typestr": text, "data": (data, not _is_unique(buffer)), "version": 3}
    array = np.asarray(_Memory(buffer, interface))
    return array.view(dtype) if is_viewed else array


def take(address: int, count: int) -> List[Any]:
    """NumPy arrays of `count` tensors at address in host memory, which are moved out of them.

    Arrays are not copied: they hold the tensor's reference to its buffer, and are read-only if the buffer has other
    references. A scalar becomes a NumPy scalar, strings an array of bytes objects, or one bytes object."""
    tensors = _ARRAYS[count].from_address(address)
    words = tensors[:]
    values: List[Any] = []
    for start in range(0, WORDS * count, WORDS):
        number = words[start] & 0xFFFFFFFF
        rank = words[start + _RANK] & 0xFFFFFFFF
        shape = tuple(words[start + _DIMS : start + _DIMS + rank])
        if number == STRING:
            size = 1
            for dim in shape:
                size *= dim
            values.append(from_strings(words[start + _DATA], size, shape))
            continue
        if not rank:
            dtype = DTYPES[number]
            values.append(np.frombuffer(ctypes.string_at(words[start + _DATA], dtype.itemsize), dtype)[0])
            continue
        buffer = words[start + _BUFFER]
        tensors[start + _BUFFER] = 0
        values.append(_array(number, shape, buffer, words[start + _DATA]))
    return values


def copy(address: int, count: int) -> List[Any]:
    """NumPy arrays with copies of `count` tensors, which are borrowed."""
    values: List[Any] = []
    size = ctypes.sizeof(_abi.Tensor)
    for i in range(count):
        tensor = _abi.Tensor.from_address(address + size * i)
        shape = tuple(tensor.shape.dims[: tensor.shape.rank])
        elements = 1
        for dim in shape:
            elements *= dim
        if tensor.dtype == STRING:
            values.append(from_strings(tensor.data, elements, shape))
            continue
        dtype = DTYPES[tensor.dtype]
        data = bytearray(ctypes.string_at(tensor.data, elements * dtype.itemsize) if elements else b"")
        value = np.ndarray(shape, dtype, data) if elements else np.empty(shape, dtype)
        values.append(value if shape else value[()])
    return values


def take_handles(address: int, count: int) -> List[Any]:
    """As take, but with an object for each tensor of numbers that other libraries import with DLPack."""
    size = ctypes.sizeof(_abi.Tensor)
    values: List[Any] = []
    for i in range(count):
        tensor = _abi.Tensor.from_address(address + size * i)
        if tensor.dtype == STRING:
            values += take(address + size * i, 1)
        else:
            values.append(_dlpack.Tensor.move(tensor))
    return values


def is_on_device(address: int, count: int) -> bool:
    """Whether a tensor is in memory of a GPU."""
    return any(_device(at) for at in range(address, address + 8 * WORDS * count, 8 * WORDS))


def to_host(address: int, count: int) -> None:
    """Replaces tensors on a device by copies in host memory."""
    size = ctypes.sizeof(_abi.Tensor)
    error = _library.Error()
    for at in range(address, address + size * count, size):
        if not library.mr_tensor_device(at):
            continue
        host = _abi.Tensor()
        _library.check(library.mr_tensor_to_host(at, ctypes.byref(host), ctypes.byref(error)), error)
        library.mr_tensor_deinit(at)
        ctypes.memmove(at, ctypes.byref(host), size)


def as_array(value: Any, number: int, argument: str) -> np.ndarray:
    """The value as an array of the dtype, in C order; ValueError if that would change numbers."""
    if number == STRING:
        array = as_strings(value)
        check_strings(array, argument)
        return array
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{argument} is a masked array, whose mask would be lost")
    dtype = DTYPES[number]
    array = np.asarray(value)
    if array.dtype != dtype:
        array = _cast(array, dtype, argument)
    return np.asarray(array, order="C")


def _cast(array: np.ndarray, dtype: np.dtype, argument: str) -> np.ndarray:
    """The array in another dtype. Integers must be in its range; floats that are not become infinite."""
    is_integers = array.dtype.kind in "iu" and dtype.kind in "iu"
    if array.dtype == object and dtype.kind in "iu":
        is_integers = all(type(item) is int for item in array.ravel().tolist())
    if is_integers and not np.can_cast(array.dtype, dtype) and array.size:
        limits = np.iinfo(dtype)
        least, greatest = int(array.min()), int(array.max())
        if least < limits.min or greatest > limits.max:
            wrong = least if least < limits.min else greatest
            raise ValueError(f"{argument} is or contains {wrong}, which is not in the range of {dtype}")
    elif not is_integers and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise TypeError(f"{argument} has dtype {array.dtype}, expected {dtype}")
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def as_strings(value: Any) -> np.ndarray:
    """An array of objects. An array of NumPy's own strings would drop zeros at their ends."""
    return value.astype(object, copy=False) if isinstance(value, np.ndarray) else np.asarray(value, dtype=object)


def put(address: int, array: np.ndarray, number: int, room: int = 0) -> None:
    """Makes the struct mr_tensor at address a copy of the array, which is in C order.

    room: the address of memory for the elements, where they are copied instead."""
    if room:
        ctypes.memmove(room, array.__array_interface__["data"][0], array.nbytes)
        return
    error = _library.Error()
    shape = _abi.Shape(len(array.shape), array.shape)
    if number == STRING:
        status = _put_strings(address, array, shape, error)
    else:
        data = array.__array_interface__["data"][0]
        status = library.mr_tensor_init_copy(address, number, shape, data, ctypes.byref(error))
    _library.check(status, error)


def _put_strings(address: int, array: np.ndarray, shape: _abi.Shape, error: _library.Error) -> int:
    data, sizes = _arrays.encode_strings(array)
    keep = ctypes.create_string_buffer(data, len(data) + 1)
    strings = (_abi.String * max(1, len(sizes)))()
    at = ctypes.addressof(keep)
    for i, size in enumerate(sizes.tolist()):
        strings[i].data = at
        strings[i].size_bytes = size
        at += size
    return library.mr_tensor_init_strings(address, shape, ctypes.byref(strings), ctypes.byref(error))


class Tensors:
    """An array of owned structs mr_tensor for values of the program; their arrays are referenced where possible."""

    def __init__(self, values: Sequence[Any], argument: str) -> None:
        self._structs = (_abi.Tensor * max(1, len(values)))()
        self.count = len(values)
        self.address = ctypes.addressof(self._structs)
        for i, value in enumerate(values):
            name = argument if len(values) == 1 else f"component {i} of {argument}"
            _put_shared(self.address + ctypes.sizeof(_abi.Tensor) * i, value, name)

    def at(self, index: int) -> _abi.Tensor:
        """The struct of a value."""
        return self._structs[index]

    def __del__(self) -> None:
        for tensor in self._structs:
            library.mr_tensor_deinit(ctypes.byref(tensor))


def _put_shared(address: int, value: Any, argument: str) -> None:
    if isinstance(value, (dict, np.ma.MaskedArray)):
        kind = "a dict, expected an array or a tuple of arrays" if isinstance(value, dict) else "a masked array"
        raise TypeError(f"{argument} is {kind}")
    try:
        array = np.asarray(value)
    except Exception as error:  # of the library that the value belongs to
        raise TypeError(f"{argument} is not an array: {error}") from error
    number = _dtypes.number(array.dtype, f"the dtype of {argument}")
    if array.ndim > _abi.RANK_MAX:
        raise ValueError(f"{argument} has {array.ndim} dimensions, expected at most {_abi.RANK_MAX}")
    if number == STRING:
        array = as_strings(value)
        check_strings(array, argument)
        put(address, array, number)
        return
    if not _dlpack.share(address, array):
        put(address, np.asarray(array, DTYPES[number], order="C"), number)


def _of_wrong_type(item: Any, argument: str) -> Exception:
    kind = type(item).__name__
    return TypeError(f"{argument} is or contains a value of type {kind}, expected numbers, bytes or str")


def _with_number(items: List[Any], argument: str) -> Exception:
    """Why NumPy has made an array of objects from values that contain a number."""
    for item in items:
        if isinstance(item, int) and not -(1 << 63) <= item < 1 << 63:
            return ValueError(f"{argument} is or contains {item}, which is not in the range of int64")
        if isinstance(item, (bytes, str)):
            return TypeError(f"{argument} contains numbers and strings, expected one kind")
        if not isinstance(item, (int, float)):
            return _of_wrong_type(item, argument)
    return TypeError(f"{argument} is an array of objects, expected one of numbers")


def check_strings(array: np.ndarray, argument: str) -> None:
    """TypeError unless the array contains bytes and str."""
    items = array.ravel().tolist()
    for item in items:
        if type(item) is bytes:
            continue
        if isinstance(item, (int, float)):
            raise _with_number(items, argument)
        if not isinstance(item, (bytes, str, bytearray, memoryview)):
            raise _of_wrong_type(item, argument)
        if isinstance(item, str):
            try:
                item.encode()
            except UnicodeEncodeError as error:
                raise ValueError(f"{argument} contains a str that is not valid Unicode: {error.reason}") from None
