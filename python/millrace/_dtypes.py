"""Dtypes as users write them (np.float32, "int64", bytes, mr.String) and TensorFlow's numbers of them."""
from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import DTYPES, QUANTIZED, dtype_name
from ._library import BFLOAT16, STRING

# Quantized dtypes, and bfloat16 without ml_dtypes, share the dtype of NumPy with another one.
_NUMBERS = {
    dtype: number
    for number, dtype in DTYPES.items()
    if number != STRING and number not in QUANTIZED and not (number == BFLOAT16 and dtype.kind == "u")
}
_STRINGS = ("string", "bytes", "str", "object")


def number(dtype: Any, argument: str = "dtype") -> int:
    """TensorFlow's number of a dtype.

    Parameters
    ----------
    dtype
        ``np.float32``, ``"int64"``, a NumPy dtype, ``bytes`` or ``"string"``, ``mr.Int64``, a TensorFlow dtype.
    argument
        Its name in the message of an error.
    """
    if dtype is None:
        raise TypeError(f"{argument} is None, expected a dtype")
    found = getattr(dtype, "millrace_dtype", None) or getattr(dtype, "as_datatype_enum", None)
    if isinstance(found, int) and found in DTYPES:
        return found
    if dtype in (bytes, str, object) or (isinstance(dtype, str) and dtype in _STRINGS):
        return STRING
    if isinstance(dtype, str) and dtype == "bfloat16":
        return BFLOAT16
    try:
        as_numpy = np.dtype(dtype)
    except TypeError:
        raise TypeError(f"{argument} is {dtype!r}, which is not a dtype") from None
    if as_numpy.kind in "SUO":
        return STRING
    found = _NUMBERS.get(as_numpy.newbyteorder("="))
    if found is None:
        raise TypeError(f"{argument} is {as_numpy}, which tensors cannot have")
    return found


def name(number: int) -> str:
    """A dtype's name: "float32", "string"."""
    return dtype_name(number)
