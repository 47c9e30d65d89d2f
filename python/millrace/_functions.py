"""Python functions that graphs call: the nodes of tf.py_func (PyFunc), and of register_function."""
from __future__ import annotations

import ctypes
import sys
from typing import Callable, Optional

import numpy as np

from . import _arrays, _library, errors
from ._library import library

_functions = {}
_STATUS = (
    (StopIteration, errors.OUT_OF_RANGE),
    (MemoryError, errors.RESOURCE_EXHAUSTED),
    (NotImplementedError, errors.UNIMPLEMENTED),
    ((ValueError, TypeError), errors.INVALID_ARGUMENT),
)


def register_function(token: str, function: Optional[Callable]) -> None:
    """Sets the function that PyFunc nodes with this token call, for all sessions of the process.

    Parameters
    ----------
    token
        The attribute ``token`` of the nodes.
    function
        Takes and returns arrays, as Session.run does. ``None`` removes it.

    Notes
    -----
    A session in the process whose TensorFlow built the graph with tf.py_func needs no registration.
    """
    if function is None:
        _functions.pop(token, None)
    else:
        _functions[token] = function


def _find(token):
    function = _functions.get(token)
    script_ops = sys.modules.get("tensorflow.python.ops.script_ops")
    if function is None and script_ops is not None:
        function = script_ops._py_funcs.get(token)
    if function is None:
        raise ValueError(f"callback {token} is not found")
    return function


def _argument(array):
    shape = tuple(array.dims[: array.rank])
    if array.dtype == _library.STRING:
        return _arrays.from_strings(array.data, array.size_bytes // 16, shape)
    dtype = _arrays.DTYPES.get(array.dtype)
    if dtype is None:
        raise NotImplementedError(f"an argument of dtype {_arrays.dtype_name(array.dtype)}")
    data = bytearray(ctypes.string_at(array.data, array.size_bytes) if array.size_bytes else b"")
    value = np.ndarray(shape, dtype, data) if data else np.empty(shape, dtype)
    return value if shape else value[()]


_NUMBERS = {dtype: number for number, dtype in _arrays.DTYPES.items() if number not in _arrays.QUANTIZED}


def _give(call, index, value, error):
    value = np.asarray(value, order="C")
    if value.dtype.kind in "SUO":
        data, sizes = _arrays.encode_strings(value)
        number, address, size, sizes_at = _library.STRING, ctypes.c_char_p(data), len(data), sizes.ctypes.data
        address = ctypes.cast(address, ctypes.c_void_p).value
    else:
        value = np.asarray(value, value.dtype.newbyteorder("="), order="C")
        number = _NUMBERS.get(value.dtype)
        if number is None:
            raise errors.InternalError(None, None, f"Unsupported numpy data type {value.dtype}")
        address, size, sizes_at = value.__array_interface__["data"][0], value.nbytes, None
    array = _library.Array(dtype=number, rank=value.ndim, data=address, size_bytes=size, sizes=sizes_at)
    array.dims[: value.ndim] = value.shape
    return library.mr_run_return(call, index, ctypes.byref(array), error)


def _run(call, token, inputs, input_count, result_count, error):
    function = _find(token.decode())
    results = function(*[_argument(inputs[i]) for i in range(input_count)])
    if results is None:
        results = ()
    elif not isinstance(results, (list, tuple)):
        results = (results,)
    if len(results) != result_count:
        text = f"{token.decode()} returns {len(results)} values, but expects to see {result_count} values."
        raise errors.InvalidArgumentError(None, None, text)
    for i, value in enumerate(results):
        status = _give(call, i, value, error)
        if status:
            return status
    return 0


@_library.RUN_FUNCTION
def _callback(context, call, token, inputs, input_count, result_count, error):
    try:
        return _run(call, token, inputs, input_count, result_count, error)
    except errors.OpError as failure:
        status, text = failure.error_code, failure.message
    except BaseException as failure:
        status = next((code for kind, code in _STATUS if isinstance(failure, kind)), errors.UNKNOWN)
        text = f"{type(failure).__name__}: {failure}"
    reason = ctypes.cast(error, ctypes.POINTER(_library.Error)).contents
    reason.status = status
    reason.message = text.encode()[:1000].decode("utf-8", "ignore").encode()
    return status


def install():
    """Makes PyFunc nodes of this process call the functions of this module; called before the first session."""
    library.mr_run_set_function(_callback, None)
