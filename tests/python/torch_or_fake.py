"""PyTorch, or without it a module in its place: what millrace uses of it, on NumPy arrays."""
import sys
import types

import numpy as np

from without_tensorflow import has


class Tensor:
    """An array, with a few methods of a tensor. Other libraries import it with DLPack or as an array."""

    def __init__(self, array):
        self._array = array

    def numpy(self):
        return self._array

    def tolist(self):
        return self._array.tolist()

    def item(self):
        return self._array.item()

    def sum(self):
        return Tensor(np.asarray(self._array.sum()))

    def view(self, dtype):
        return Tensor(self._array.view(dtype))

    @property
    def shape(self):
        return self._array.shape

    @property
    def dtype(self):
        return self._array.dtype

    def __len__(self):
        return len(self._array)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._array, dtype)

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class Generator:
    def __init__(self):
        self._seed = 0

    def manual_seed(self, seed):
        self._seed = seed
        return self

    def initial_seed(self):
        return self._seed


def from_numpy(array):
    if type(array) is not np.ndarray or not array.flags.writeable:
        raise TypeError(f"from_numpy: {array!r}: PyTorch imports writable arrays alone")
    return Tensor(array)


def _fake():
    distributed = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: False)
    distributed.get_rank = distributed.get_world_size = lambda: 1 // 0
    module = types.ModuleType("torch")
    vars(module).update(
        Tensor=Tensor, Generator=Generator, from_numpy=from_numpy, distributed=distributed,
        from_dlpack=lambda value: Tensor(np.from_dlpack(value)),
        bfloat16=np.dtype([("bfloat16", np.uint16)]),
        tensor=lambda values: Tensor(np.array(values)),
        stack=lambda tensors: Tensor(np.stack([tensor.numpy() for tensor in tensors])),
    )  # fmt: skip
    return module


if has("torch"):
    import torch
else:
    torch = sys.modules["torch"] = _fake()


def lists(loader):
    """The batches of a loader as lists, and tuples of them."""

    def plain(batch):
        return tuple(map(plain, batch)) if isinstance(batch, tuple) else batch.tolist()

    return [plain(batch) for batch in loader]
