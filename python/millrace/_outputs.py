"""Iterators of datasets, for NumPy, PyTorch, JAX and DLPack."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from .iterator import DatasetIterator

_OPTIONS = """
        Parameters
        ----------
        {first}as_dict
            Whether an element is a dict of its components by name instead of a tuple.
        threads
            Of the pipeline, all stages together; the greatest number if tuned. ``None``: one for each processor, tuned.
        budget_bytes
            Of memory that all stages hold together. ``None``: half of the memory that the process may use, of which at
            most 1 GiB is for reading ahead.
        seed
            Combined with the seed of every stage: another order and other random numbers.
        tune
            Whether threads and depths are tuned while it runs. ``None``: if `threads` is not given.
        verbose
            Whether a table of all stages is printed to stderr every few seconds, and at the end.
        trace
            A path for a Chrome trace (chrome://tracing, ui.perfetto.dev).
        digest
            Whether ``iterator.digest`` is computed, which costs a checksum of every byte.
        watchdog
            Seconds; when a wait has taken so long, what each thread does is printed to stderr. ``None``: never.
"""


def _documented(first: str = "") -> Any:
    def wrap(function: Any) -> Any:
        function.__doc__ = f"{function.__doc__.rstrip()}\n{_OPTIONS.format(first=first)}"
        return function

    return wrap


_DEVICE = """device
            ``"cpu"``, ``"cuda"``, ``"cuda:1"``: elements are copied ahead, from pinned memory. ``None``: where the
            pipeline delivers them.
        """


class Outputs:
    """The part of Dataset that runs pipelines."""

    @_documented()
    def numpy(self, *, as_dict: bool = False, **options: Any) -> "DatasetIterator":
        """An iterator over elements as NumPy arrays, which share the pipeline's memory.

        Scalars are NumPy scalars, strings ``bytes`` or arrays of ``bytes``.
        """
        return self._iterate("numpy", None, as_dict, options)

    @_documented(_DEVICE)
    def torch(self, device: Any = None, *, as_dict: bool = False, **options: Any) -> "DatasetIterator":
        """An iterator over elements as PyTorch tensors, which share the pipeline's memory.

        Strings are as of ``numpy()``.
        """
        return self._iterate("torch", device, as_dict, options)

    @_documented(_DEVICE)
    def jax(self, device: Any = None, *, as_dict: bool = False, **options: Any) -> "DatasetIterator":
        """An iterator over elements as JAX arrays, which share the pipeline's memory.

        Strings are as of ``numpy()``.
        """
        return self._iterate("jax", device, as_dict, options)

    @_documented(_DEVICE)
    def dlpack(self, device: Any = None, *, as_dict: bool = False, **options: Any) -> "DatasetIterator":
        """An iterator over elements as ``mr.Tensor``, which any library with DLPack imports without a copy.

        Strings are as of ``numpy()``.
        """
        return self._iterate("dlpack", device, as_dict, options)

    def as_numpy_iterator(self) -> "DatasetIterator":
        """``numpy()``, by its name in tf.data."""
        return self._iterate("numpy", None, False, {})

    def _iterate(self, form: str, device: Optional[Any], as_dict: bool, options: Any) -> "DatasetIterator":
        from ._transformations import device_name
        from .iterator import DatasetIterator

        dataset = self
        if device is not None and device_name(device) != "/cpu:0":
            dataset = self.prefetch_to_device(device)
        return DatasetIterator(dataset, form, as_dict=as_dict, **options)
