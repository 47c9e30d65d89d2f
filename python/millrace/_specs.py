"""The structure of elements."""

from __future__ import annotations

import operator
from typing import Any, Iterable, Optional, Sequence, Tuple

from . import _abi, _dtypes

ShapeLike = Optional[Sequence[Optional[int]]]


class Spec:
    """Dtype, shape and name of one component of an element, like ``tf.TensorSpec``.

    Parameters
    ----------
    dtype
        ``np.float32``, ``"int64"``, ``bytes`` or ``"string"``, …
    shape
        One size for each dimension, ``None`` for an unknown one; ``()`` for a scalar. ``None``: an unknown rank.
    name
        The component's name, or ``None``.

    Examples
    --------
    >>> mr.Spec("float32", (None, 3))
    Spec(float32, (None, 3))
    """

    __slots__ = ("number", "shape", "name")

    def __init__(self, dtype: Any, shape: ShapeLike = None, name: Optional[str] = None) -> None:
        self.number = _dtypes.number(dtype)
        self.shape = None if shape is None else _shape(shape)
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name is {name!r}, expected a string or None")
        self.name = name

    @property
    def dtype(self) -> str:
        """The dtype's name."""
        return _dtypes.name(self.number)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Spec):
            return NotImplemented
        return (self.number, self.shape, self.name) == (other.number, other.shape, other.name)

    def __hash__(self) -> int:
        return hash((self.number, self.shape, self.name))

    def __repr__(self) -> str:
        name = f", name={self.name!r}" if self.name is not None else ""
        return f"Spec({self.dtype}, {self.shape}{name})"

    def text(self) -> str:
        """ "float32 [?, 3]", as in the messages of the library."""
        if self.shape is None:
            return f"{self.dtype} of unknown shape"
        if not self.shape:
            return self.dtype
        return f"{self.dtype} [{', '.join('?' if size is None else str(size) for size in self.shape)}]"


def _shape(shape: Any, argument: str = "shape") -> Tuple[Optional[int], ...]:
    try:
        sizes = tuple(None if size is None or size == -1 else operator.index(size) for size in shape)
    except TypeError:
        raise TypeError(f"{argument} is {shape!r}, expected a sequence of integers and None") from None
    if any(size is not None and not 0 <= size < 1 << 63 for size in sizes):
        raise ValueError(f"{argument} is {shape!r}, expected sizes of at least 0")
    if len(sizes) > _abi.RANK_MAX:
        raise ValueError(f"{argument} has {len(sizes)} dimensions, expected at most {_abi.RANK_MAX}")
    return sizes


def to_shape(shape: ShapeLike, argument: str = "shape") -> _abi.Shape:
    """A struct mr_shape."""
    made = _abi.Shape()
    if shape is None:
        made.rank = -1
        return made
    sizes = _shape(shape, argument)
    made.rank = len(sizes)
    for i, size in enumerate(sizes):
        made.dims[i] = -1 if size is None else size
    return made


def specs(given: Any, argument: str = "output_signature") -> Tuple[Spec, ...]:
    """A tuple of Specs from one, a sequence of them, a dict, or objects with dtype and shape."""
    if isinstance(given, dict):
        return tuple(_named(_spec(value, argument), key) for key, value in given.items())
    items: Iterable[Any] = given if isinstance(given, (tuple, list)) else (given,)
    found = tuple(_spec(item, argument) for item in items)
    if not 1 <= len(found) <= _abi.COMPONENTS_MAX:
        raise ValueError(f"{argument} has {len(found)} components, expected 1 to {_abi.COMPONENTS_MAX}")
    return found


def _named(spec: Spec, name: str) -> Spec:
    return Spec(spec.dtype, spec.shape, name)


def _spec(item: Any, argument: str) -> Spec:
    if isinstance(item, Spec):
        return item
    if hasattr(item, "dtype") and hasattr(item, "shape"):
        return Spec(item.dtype, tuple(item.shape) if item.shape is not None else None)
    raise TypeError(f"{argument} contains {item!r}, expected mr.Spec or an object with dtype and shape")


def to_element_spec(given: Sequence[Spec]) -> _abi.ElementSpec:
    """A struct mr_element_spec."""
    made = _abi.ElementSpec()
    made.count = len(given)
    for i, spec in enumerate(given):
        made.dtypes[i] = spec.number
        made.shapes[i] = to_shape(spec.shape)
        made.names[i] = spec.name.encode() if spec.name is not None else None
    return made


def from_element_spec(spec: _abi.ElementSpec) -> Tuple[Spec, ...]:
    """The Specs of a struct mr_element_spec."""
    found = []
    for i in range(spec.count):
        shape = spec.shapes[i]
        sizes = None
        if shape.rank >= 0:
            sizes = tuple(None if shape.dims[d] < 0 else shape.dims[d] for d in range(shape.rank))
        name = spec.names[i]
        text = None if name is None else name.decode("utf-8", "replace")
        found.append(Spec(_dtypes.name(spec.dtypes[i]), sizes, text))
    return tuple(found)
