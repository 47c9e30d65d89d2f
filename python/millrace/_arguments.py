"""Checks of arguments; messages name the argument."""
from __future__ import annotations

import operator
import os
from typing import Any, Callable, Optional, Sequence


def integer(value: Any, name: str, low: int = -(1 << 63), high: int = (1 << 63) - 1) -> int:
    """An integer within limits."""
    if isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}, expected an integer")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, expected an integer") from None
    if not low <= number <= high:
        limits = f"{low} to {high}"
        if high == (1 << 63) - 1:
            limits = f"at least {low}" if number < low else f"at most {high}"
        raise ValueError(f"{name} is {number}, expected {limits}")
    return number


def seed(value: Any, name: str = "seed") -> int:
    """A seed of 64 bits."""
    return integer(value, name, 0, (1 << 64) - 1)


def number(value: Any, name: str) -> float:
    """A number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}, expected a number") from None


def boolean(value: Any, name: str) -> bool:
    """True or False."""
    if value is True or value is False:
        return value
    if type(value).__name__ in ("bool_", "bool"):  # NumPy's
        return bool(value)
    raise TypeError(f"{name} is {value!r}, expected True or False")


def path(value: Any, name: str) -> bytes:
    """The bytes of a path."""
    try:
        encoded = os.fsencode(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, expected a path") from None
    if not encoded:
        raise ValueError(f"{name} is empty")
    if b"\0" in encoded:
        raise ValueError(f"{name} contains a zero character")
    return encoded


def text(value: Any, name: str) -> str:
    """A string."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, expected a string")
    if "\0" in value:
        raise ValueError(f"{name} contains a zero character")
    return value


def function(value: Any, name: str) -> Callable:
    """Something that can be called."""
    if not callable(value):
        raise TypeError(f"{name} is {value!r}, expected a function")
    return value


def choice(value: Any, name: str, choices: Sequence[str]) -> int:
    """The index of one of a few strings."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}, expected {', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}")
    return choices.index(value)


def threads(value: Any, name: str) -> int:
    """A number of threads; None: 0, which is tuned."""
    return 0 if value is None else integer(value, name, 1, 1024)


def tunable(value: Any, name: str) -> int:
    """The same for what has the value tf.data.AUTOTUNE, -1, in tf.data."""
    return 0 if type(value) is int and value == -1 else threads(value, name)


def optional(value: Any, check: Callable, name: str, default: Optional[Any] = None) -> Any:
    """check(value, name), or the default for None."""
    return default if value is None else check(value, name)
