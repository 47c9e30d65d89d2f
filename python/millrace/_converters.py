"""From the tensors of an element to the arrays of NumPy, PyTorch and JAX."""

from __future__ import annotations

from typing import Any, Callable, List, Sequence

import numpy as np

from . import _dlpack, _tensors
from ._library import BFLOAT16
from ._specs import Spec

Converter = Callable[[int, int], List[Any]]


def _numpy(address: int, count: int) -> List[Any]:
    if _tensors.is_on_device(address, count):
        _tensors.to_host(address, count)
    return _tensors.take(address, count)


def _torch(specs: Sequence[Spec], may_be_on_device: bool) -> Converter:
    import torch

    from_numpy, from_dlpack, bfloat16 = torch.from_numpy, torch.from_dlpack, torch.bfloat16
    take_arrays, is_on_device = _tensors.take, _tensors.is_on_device
    # NumPy has no bfloat16: arrays have the dtype of another package, or are the numbers' bits.
    halves = [i for i, spec in enumerate(specs) if spec.number == BFLOAT16]

    def convert(value: Any) -> Any:
        if type(value) is np.ndarray:
            if value.dtype.kind == "O":
                return value
            # A tensor of PyTorch cannot be read-only, and what is shared must not be changed.
            return from_numpy(value if value.flags.writeable else value.copy())
        return value if type(value) is bytes else from_numpy(np.array(value))

    def take(address: int, count: int) -> List[Any]:
        values = take_arrays(address, count)
        for i in halves:
            values[i] = np.asarray(values[i]).view(np.int16)
        values = [convert(value) for value in values]
        for i in halves:
            values[i] = values[i].view(bfloat16)
        return values

    def take_on_device(address: int, count: int) -> List[Any]:
        if not is_on_device(address, count):
            return take(address, count)
        values = _tensors.take_handles(address, count)
        return [from_dlpack(value) if type(value) is _dlpack.Tensor else value for value in values]

    return take_on_device if may_be_on_device else take


def _jax() -> Converter:
    from jax import numpy as jnp
    from jax.dlpack import from_dlpack

    def take(address: int, count: int) -> List[Any]:
        values = _tensors.take_handles(address, count)
        return [_imported(value) for value in values]

    def _imported(value: Any) -> Any:
        if type(value) is not _dlpack.Tensor:
            return value
        try:
            return from_dlpack(value)
        except Exception:  # a dtype or an alignment that JAX does not import
            return jnp.asarray(value.numpy())

    return take


def converter(form: str, specs: Sequence[Spec], may_be_on_device: bool) -> Converter:
    """The function that moves the tensors of an element at an address to values of a form."""
    if form == "numpy":
        return _numpy if may_be_on_device else _tensors.take
    if form == "torch":
        return _torch(specs, may_be_on_device)
    if form == "jax":
        return _jax()
    if form == "dlpack":
        return _tensors.take_handles
    raise ValueError(f"form is {form!r}, expected 'numpy', 'torch', 'jax' or 'dlpack'")
