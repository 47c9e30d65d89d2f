"""Datasets: descriptions of input pipelines, with the names of tf.data."""
from __future__ import annotations

import ctypes
from typing import Any, FrozenSet, Iterator, Optional, Sequence, Tuple

from . import _abi, _callbacks, _drawing, _library, errors
from ._functional import Functional
from ._library import library
from ._outputs import Outputs
from ._sources import Sources
from ._specs import Spec, from_element_spec
from ._transformations import Transformations

__all__ = ["AUTOTUNE", "Dataset", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY"]

AUTOTUNE = -1  # for num_parallel_calls and buffer_size, as in tf.data; None means the same
INFINITE_CARDINALITY = _abi.INFINITE
UNKNOWN_CARDINALITY = _abi.CARDINALITY_UNKNOWN


class Dataset(Sources, Transformations, Functional, Outputs):
    """An input pipeline: a source and the transformations that follow, with the semantics of tf.data.

    A dataset is a description that never changes; each method returns a new one. An iterator runs it, with threads of
    its own and without the GIL: ``numpy()``, ``torch()``, ``jax()``, ``dlpack()``, or ``iter(dataset)`` for NumPy.

    An element is a tuple of its components, or the only component itself. The order of elements is deterministic:
    random numbers depend on seed, epoch and element, so that the elements are the same at any number of threads.

    Examples
    --------
    >>> ds = mr.Dataset.range(10).shuffle(seed=1).batch(4)
    >>> [len(batch) for batch in ds]
    [4, 4, 2]
    """

    _handle: Optional[int] = None
    _pools: Tuple[Any, ...] = ()  # of worker processes, for iterators
    _functions: FrozenSet[int] = frozenset()  # the numbers of functions of the program

    def __init__(self) -> None:
        raise TypeError("Dataset has no constructor; begin with a source, such as Dataset.records(pattern)")

    # ---- Created by sources and transformations ----

    @classmethod
    def _own(cls, handle: Optional[int], stage: Optional[_drawing.Stage] = None) -> "Dataset":
        """Takes over a dataset of the library. An invalid argument is a ValueError."""
        made = object.__new__(cls)
        if not handle:
            raise MemoryError("no memory for a dataset")
        error = _library.Error()
        status = library.mr_dataset_status(handle, ctypes.byref(error))
        if status:
            library.mr_dataset_free(handle)
            message = error.message.decode("utf-8", "replace")
            if status == _abi.INVALID_ARGUMENT:
                raise ValueError(message)
            raise errors.from_code(status, message)
        made._handle = handle
        made._stage = stage or _drawing.Stage("dataset", "", ())
        return made

    def _reference(self) -> int:
        """A reference for a builder, which takes it over."""
        return library.mr_dataset_ref(self._handle)

    def _then(self, name: str, arguments: str, function: Any, *values: Any) -> "Dataset":
        """The dataset of a builder that takes this one."""
        made = Dataset._own(function(self._reference(), *values), _drawing.Stage(name, arguments, (self._stage,)))
        made._pools = self._pools
        made._functions = self._functions.union(value for value in values if type(value) is _callbacks.Number)
        return made

    def __del__(self, free: Any = library.mr_dataset_free) -> None:
        if self._handle is not None:
            free(self._handle)
            self._handle = None

    def __copy__(self) -> "Dataset":
        return self

    def __deepcopy__(self, memo: Any) -> "Dataset":
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("cannot pickle a Dataset: build it in the process that uses it")

    # ---- About ----

    @property
    def element_spec(self) -> Tuple[Spec, ...]:
        """A Spec for each component of an element."""
        return from_element_spec(library.mr_dataset_spec(self._handle).contents)

    def cardinality(self) -> int:
        """The number of elements, ``mr.INFINITE_CARDINALITY`` or ``mr.UNKNOWN_CARDINALITY``, as in tf.data."""
        return library.mr_dataset_cardinality(self._handle)

    def __len__(self) -> int:
        """The number of elements. TypeError if there is no end, or if it is unknown."""
        count = self.cardinality()
        if count < 0:
            raise TypeError(f"the dataset has {'no end' if count == _abi.INFINITE else 'an unknown length'}")
        return count

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return self.numpy()

    def __repr__(self) -> str:
        return _drawing.as_text(self)

    def _repr_html_(self) -> str:
        return _drawing.as_html(self)


def check_datasets(datasets: Any, argument: str) -> Sequence[Dataset]:
    """A sequence of at least one Dataset."""
    found = tuple(datasets) if isinstance(datasets, (list, tuple)) else (datasets,)
    for dataset in found:
        if not isinstance(dataset, Dataset):
            raise TypeError(f"{argument} contains {dataset!r}, expected datasets")
    if not found:
        raise ValueError(f"{argument} is empty")
    return found
