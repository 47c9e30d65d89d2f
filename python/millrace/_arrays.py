"""Between NumPy arrays and the arrays of <millrace/run.h>.

Numbers that are fed are converted to the dtype of the fed tensor and to contiguous memory if necessary, otherwise
borrowed for the run. Results of more than 512 bytes are views of the library's memory, which belongs to them alone."""
import ctypes

import numpy as np

from . import _proto, errors
from ._library import library

try:
    from ml_dtypes import bfloat16 as _bfloat16
except ImportError:
    # Without ml_dtypes a bfloat16 is its bit pattern.
    _bfloat16 = np.uint16

# By TensorFlow's DataType.
DTYPES = {
    1: np.dtype(np.float32),
    2: np.dtype(np.float64),
    3: np.dtype(np.int32),
    4: np.dtype(np.uint8),
    5: np.dtype(np.int16),
    6: np.dtype(np.int8),
    7: np.dtype(object),
    8: np.dtype(np.complex64),
    9: np.dtype(np.int64),
    10: np.dtype(np.bool_),
    11: np.dtype(np.int8),
    12: np.dtype(np.uint8),
    13: np.dtype(np.int32),
    14: np.dtype(_bfloat16),
    15: np.dtype(np.int16),
    16: np.dtype(np.uint16),
    17: np.dtype(np.uint16),
    18: np.dtype(np.complex128),
    19: np.dtype(np.float16),
    22: np.dtype(np.uint32),
    23: np.dtype(np.uint64),
}
# TensorFlow's own NumPy dtypes for these have one field of that name; what it fetches are plain integers.
QUANTIZED = {11: "qint8", 12: "quint8", 13: "qint32", 15: "qint16", 16: "quint16"}
NAMES = {
    1: "float32", 2: "float64", 7: "string", 14: "bfloat16", 19: "float16", 20: "resource", 21: "variant",
    **QUANTIZED,
}  # fmt: skip


def dtype_name(number):
    return NAMES.get(number) or str(DTYPES.get(number, "invalid"))


class _Owner:
    """Memory of the library, which is released with the object; so there is only one of it."""

    __slots__ = ("_owner", "__weakref__")

    def __del__(self):
        library.mr_runner_release(self._owner)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce_ex__(self, protocol):
        raise TypeError(f"cannot pickle {self!r}")


class Handle(_Owner):
    """A fetched resource or variant, which can be fed to the same session.

    Attributes
    ----------
    dtype
        "resource" or "variant".
    """

    __slots__ = ("_runner", "dtype")

    def __init__(self, owner, runner, dtype):
        self._owner = owner
        self._runner = runner
        self.dtype = dtype_name(dtype)

    def __repr__(self):
        return f"<millrace.Handle of dtype {self.dtype}>"


class _Memory(_Owner):
    """Memory of the library, exposed to NumPy; freed together with the last array that uses it."""

    __slots__ = ("__array_interface__",)

    def __init__(self, owner, address, shape, typestr):
        self._owner = owner
        self.__array_interface__ = {"shape": shape, "typestr": typestr, "data": (address, False), "version": 3}


def from_memory(owner, address, shape, dtype):
    """An array of the elements at address, which takes over the owner."""
    plain = dtype if dtype.kind not in "V" else np.dtype(f"u{dtype.itemsize}")
    array = np.asarray(_Memory(owner, address, shape, plain.str))
    return array if plain is dtype else array.view(dtype)


def from_strings(address, count, shape):
    """An array of bytes objects, or one bytes object, copied from mr_string elements."""
    string_at = ctypes.string_at
    if shape == ():
        data, size = (ctypes.c_size_t * 2).from_address(address)
        return string_at(data, size) if size else b""
    array = np.empty(count, dtype=object)
    if count:
        words = (ctypes.c_size_t * (2 * count)).from_address(address)
        array[:] = [string_at(words[i], words[i + 1]) if words[i + 1] else b"" for i in range(0, 2 * count, 2)]
    return array.reshape(shape)


def encode_strings(value):
    """(shape, bytes of all elements, int64 sizes) of an object array."""
    flat = value.ravel().tolist() if value.dtype == object else value.ravel().astype(object).tolist()
    for i, item in enumerate(flat):
        if type(item) is bytes:
            continue
        if isinstance(item, str):
            flat[i] = item.encode("utf-8")
        elif isinstance(item, (bytes, bytearray, memoryview)):
            flat[i] = bytes(item)
        else:
            raise errors.InternalError(None, None, f"Unsupported object type {type(item).__name__}")
    return b"".join(flat), np.fromiter(map(len, flat), dtype=np.int64, count=len(flat))


def session_tensor_name(value):
    """The handle, as bytes, in the array of a tf.TensorHandle, a ResourceHandleProto. None: another value."""
    if not isinstance(value, np.ndarray) or value.dtype.names != ("resource",):
        return None
    try:
        fields = dict(_proto.fields(value.tobytes()))
        return bytes(fields.get(3, b"")) if bytes(fields.get(2, b"")) == b"TensorHandle" else None
    except (ValueError, TypeError):
        return None


def convert(value, number, dtype):
    """An array in native byte order with the fed tensor's dtype."""
    if number in QUANTIZED:
        array = np.asarray(value)
        array = array.view(dtype) if array.dtype.names == (QUANTIZED[number],) else array.astype(dtype)
        return np.asarray(array, order="C")
    return np.asarray(value, dtype=dtype)
