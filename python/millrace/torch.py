"""A data loader for PyTorch, with the arguments of ``torch.utils.data.DataLoader`` and the state of torchdata's.

loader = mr.torch.DataLoader(dataset, batch_size=64, shuffle=True, device="cuda")
for epoch in range(10):
    for images, labels in loader: ...
torch.save({"model": model.state_dict(), "loader": loader.state_dict()}, "checkpoint.pt")"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Optional, Tuple

from . import _arguments as check
from ._functional import component_names

if TYPE_CHECKING:
    from .dataset import Dataset
    from .iterator import DatasetIterator

__all__ = ["DataLoader"]

_VERSION = 1
_POLICIES = ("pad", "drop", "mask")
_WITHOUT_EFFECT = {
    "sampler": "the order is that of the dataset or of shuffle=True; choose elements with methods of the dataset",
    "batch_sampler": "the order is that of the dataset or of shuffle=True; choose elements with methods of the dataset",
    "persistent_workers": "threads start in microseconds",
    "worker_init_fn": "threads need no initialization; random_map passes a seeded generator to a function",
    "multiprocessing_context": "workers are threads; Dataset.map(…, processes=n) runs a function in processes",
    "timeout": "cancel the iterator from another thread instead",
    "pin_memory_device": "pass device",
    "in_order": "batches always have a deterministic order",
}


def _mixed(seed: int, epoch: int) -> int:
    """A seed for an epoch: a bijection of 64 bits (splitmix64) of both."""
    mask = (1 << 64) - 1
    value = (seed + 0x9E3779B97F4A7C15 * epoch) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return value ^ (value >> 31)


class DataLoader:
    """Batches of a dataset as PyTorch tensors, in another order in each epoch.

    Iterating runs one epoch. Its order, and all random choices of the dataset, depend on `seed` and the number of the
    epoch, which increases by one with each iteration, or is set by ``set_epoch``. Tensors share the pipeline's memory
    and are the caller's own. Options of ``torch.utils.data.DataLoader`` that would have no effect are errors.

    Parameters
    ----------
    dataset
        Without shuffling and batching, which the loader adds.
    batch_size
        Elements of a batch of this rank. ``None``: the dataset's elements are batches already.
    shuffle
        Whether each epoch has a random order of all elements. The dataset must have an index (records, slices, range,
        files, …, and ``map`` or ``decode_image`` after them); otherwise, use ``Dataset.shuffle(buffer_size)``.
    drop_last
        Whether a last batch of fewer elements is dropped.
    collate_fn
        Called on threads of the pipeline with the list of a batch's elements, as NumPy arrays; returns an array or
        tensor, a tuple of them, or a dict. Elements must have equal shapes. ``None``: components are stacked.
    num_workers
        Threads of the pipeline, at least 1. ``None``: one for each processor, tuned.
    prefetch_factor
        Batches ahead for each of `num_workers`. ``None``: tuned.
    device
        Where batches are delivered: ``"cuda"``, ``"cuda:1"``, ``"cpu"``. They are copied ahead from pinned memory.
    pin_memory
        Accepted with a CUDA device, for which memory is always pinned.
    seed
        Of orders and random choices. The same on all ranks.
    generator
        A ``torch.Generator``, whose initial seed is used as `seed`.
    as_dict
        Whether a batch is a dict of its components by name instead of a tuple.
    rank, world_size
        This process and the number of processes. ``None``: those of ``torch.distributed`` if it is initialized. Each
        rank gets its part of every global batch of `batch_size` × `world_size` elements, and all have equally many.
    uneven
        For the last global batch if the elements do not fill it: ``"pad"`` with elements from the beginning, ``"drop"``
        it, or ``"mask"``: as pad, with a last component (bool) that is false for the padding. ``None``: ``"drop"`` if
        `drop_last`, otherwise ``"pad"`` with several ranks, and a smaller batch with one.
    budget_bytes
        Of memory that all stages hold together.
    verbose
        Whether a table of all stages is printed to stderr every few seconds.

    Examples
    --------
    >>> loader = mr.torch.DataLoader(mr.Dataset.range(10), batch_size=4, shuffle=True)
    >>> [len(batch) for batch in loader]
    [4, 4, 2]
    """

    batch_sampler = None

    def __init__(
        self,
        dataset: "Dataset",
        batch_size: Optional[int] = 1,
        shuffle: bool = False,
        *,
        drop_last: bool = False,
        collate_fn: Optional[Callable] = None,
        num_workers: Optional[int] = None,
        prefetch_factor: Optional[int] = None,
        device: Any = None,
        pin_memory: bool = False,
        seed: Optional[int] = None,
        generator: Any = None,
        as_dict: bool = False,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
        uneven: Optional[str] = None,
        budget_bytes: Optional[int] = None,
        verbose: bool = False,
        **others: Any,
    ) -> None:
        for name in others:
            reason = _WITHOUT_EFFECT.get(name)
            raise TypeError(f"{name} is not an argument of DataLoader" + (f": {reason}" if reason else ""))
        self.dataset = _checked(dataset)
        self.batch_size = None if batch_size is None else check.integer(batch_size, "batch_size", 1)
        self.drop_last = check.boolean(drop_last, "drop_last")
        self.num_workers = _threads(num_workers)
        self.prefetch_factor = _prefetch(prefetch_factor, self.num_workers)
        self.pin_memory = _pinned(pin_memory, device)
        self.device = device
        self.collate_fn = None if collate_fn is None else check.function(collate_fn, "collate_fn")
        self.rank, self.world_size = _ranks(rank, world_size)
        self.uneven = _policy(uneven, self.drop_last, self.world_size, self.batch_size)
        self.generator = generator
        self.seed = _seed(seed, generator)
        self._is_shuffled = check.boolean(shuffle, "shuffle")
        self._options: Dict[str, Any] = {
            "as_dict": check.boolean(as_dict, "as_dict"),
            "threads": self.num_workers,
            "budget_bytes": None if budget_bytes is None else check.integer(budget_bytes, "budget_bytes", 1),
            "verbose": check.boolean(verbose, "verbose"),
        }
        self._pipeline = self._built()
        if as_dict:
            component_names(self._pipeline.element_spec)
        self._epoch = 0
        self._current: Optional[_Epoch] = None
        self._restored: Optional[_Epoch] = None

    def _built(self) -> "Dataset":
        from ._transformations import device_name

        made = self.dataset
        if self._is_shuffled:
            made = made.shuffle()
        if self.batch_size is None:
            if self.collate_fn is not None:
                raise ValueError("collate_fn has no effect if batch_size is None")
        elif self.uneven is not None:
            made = made.distribute(self.batch_size * self.world_size, self.world_size, self.rank, self.uneven)
        else:
            made = made.batch(self.batch_size, self.drop_last)
        if self.collate_fn is not None:
            made = made.map(_Collate(self.collate_fn, len(self.dataset.element_spec)))
        ahead = None
        if self.prefetch_factor is not None and self.num_workers is not None:
            ahead = min(1024, self.prefetch_factor * self.num_workers)
        if self.device is not None and device_name(self.device) != "/cpu:0":
            return made.prefetch_to_device(self.device, ahead)
        return made if ahead is None else made.prefetch(ahead)

    # ---- Iteration ----

    def __iter__(self) -> Iterator[Any]:
        restored, self._restored = self._restored, None
        self._current = restored if restored is not None else _Epoch(self, self._epoch)
        self._epoch = self._current.epoch + 1
        return self._current

    def __len__(self) -> int:
        """Batches of an epoch. TypeError if their number is unknown."""
        return len(self._pipeline)

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is this epoch, from 0. The position of a loaded state is kept if it is in this epoch."""
        number = check.integer(epoch, "epoch", 0)
        if self._restored is not None and self._restored.epoch != number:
            self._restored.close()
            self._restored = None
        if self._restored is None:
            self._epoch = number

    @property
    def sampler(self) -> "DataLoader":
        """The loader itself, whose ``set_epoch`` trainers such as Lightning's call through this name."""
        return self

    def _iterator(self, epoch: int) -> "DatasetIterator":
        return self._pipeline.torch(seed=_mixed(self.seed, epoch), **self._options)

    # ---- State ----

    def _identity(self) -> Dict[str, Any]:
        """What must be equal for a state to be valid, apart from what the state of the pipeline identifies."""
        return {
            "seed": self.seed,
            "global_batch_size": None if self.batch_size is None else self.batch_size * self.world_size,
            "elements": self.dataset.cardinality(),
            "batches": self._pipeline.cardinality(),
            "components": [spec.text() for spec in self.dataset.element_spec],
        }

    def state_dict(self) -> Dict[str, Any]:
        """The state: after the last batch that the iteration in progress has returned, or before the next epoch.

        It is small. On another number of ranks, a state continues without repeating or missing an element if `uneven`
        is given, `batch_size` × `world_size` is equal, and all ranks load the state of the same step.
        """
        running = self._restored or self._current
        made: Dict[str, Any] = {"version": _VERSION, **self._identity()}
        if running is None or running.is_finished:
            return {**made, "epoch": self._epoch, "state": None}
        return {**made, "epoch": running.epoch, "state": running.iterator.state()}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """The next iteration continues where the state was returned, bit for bit, with any number of threads.

        Raises
        ------
        ValueError
            The state was returned by a loader of other batches or another seed.
        millrace.errors.InvalidArgumentError
            The state belongs to another pipeline or to other data, or is damaged.
        """
        if not isinstance(state_dict, dict):
            raise TypeError(f"state_dict is of type {type(state_dict).__name__}, expected a dict")
        expected = {"version": _VERSION, **self._identity()}
        if set(state_dict) != {*expected, "epoch", "state"}:
            raise ValueError(f"state_dict has the keys {sorted(map(str, state_dict))}, which are not a DataLoader's")
        for name, value in expected.items():
            if state_dict[name] != value:
                raise ValueError(f"state_dict has {name} {state_dict[name]!r}, expected {value!r}")
        epoch = check.integer(state_dict["epoch"], "state_dict['epoch']", 0)
        restored = None
        if state_dict["state"] is not None:
            restored = _Epoch(self, epoch)
            try:
                restored.iterator.restore(state_dict["state"])
            except BaseException:
                restored.close()
                raise
        if self._restored is not None:
            self._restored.close()
        self._epoch, self._current, self._restored = epoch, None, restored

    def __repr__(self) -> str:
        return f"<millrace.torch.DataLoader, batch_size={self.batch_size}, of\n{self._pipeline!r}>"


class _Epoch:
    """The iteration of one epoch. The loader refers to it until it ends, for its state."""

    def __init__(self, loader: DataLoader, epoch: int) -> None:
        self.epoch = epoch
        self.iterator = loader._iterator(epoch)
        self.is_finished = False

    def __iter__(self) -> "_Epoch":
        return self

    def __next__(self) -> Any:
        if self.is_finished:
            raise StopIteration
        try:
            return self.iterator.__next__()
        except StopIteration:
            self.close()
            raise

    def close(self) -> None:
        """Ends its threads."""
        self.is_finished = True
        self.iterator.close()


class _Collate:
    """A function of a batch's components that calls `function` with the list of the batch's elements, as in torch."""

    def __init__(self, function: Callable, count: int) -> None:
        self._function = function
        self._count = count
        self.__name__ = getattr(function, "__name__", "collate_fn")

    def __call__(self, *components: Any) -> Any:
        elements = components[: self._count]
        samples = list(elements[0]) if self._count == 1 else list(zip(*elements))
        result = self._function(samples)
        if len(components) == self._count:
            return result
        # The mask of the padding remains the last component.
        if isinstance(result, dict):
            return {**result, "mask": components[-1]}
        return (*result, components[-1]) if isinstance(result, tuple) else (result, components[-1])


def _checked(dataset: Any) -> "Dataset":
    from .dataset import Dataset

    if not isinstance(dataset, Dataset):
        raise TypeError(f"dataset is of type {type(dataset).__name__}, expected a millrace Dataset")
    stages = [dataset._stage]
    while stages:
        stage = stages.pop()
        if stage.name == "cache" and not stage.arguments:
            raise ValueError("dataset has cache() in memory, which would end with each epoch: pass a filename to it")
        stages += stage.inputs
    return dataset


def _threads(num_workers: Optional[int]) -> Optional[int]:
    if num_workers is None:
        return None
    if check.integer(num_workers, "num_workers") == 0:
        raise ValueError("num_workers is 0, but a pipeline always runs on threads: omit it, or pass 1 for one thread")
    return check.threads(num_workers, "num_workers")


def _prefetch(factor: Optional[int], num_workers: Optional[int]) -> Optional[int]:
    if factor is None:
        return None
    if num_workers is None:
        raise ValueError("prefetch_factor has no effect without num_workers")
    return check.integer(factor, "prefetch_factor", 1, 1024)


def _pinned(pin_memory: Any, device: Any) -> bool:
    pinned = check.boolean(pin_memory, "pin_memory")
    if pinned and (device is None or str(device).startswith("cpu")):
        raise ValueError("pin_memory has no effect without a CUDA device: pass device='cuda'")
    return pinned


def _seed(seed: Optional[int], generator: Any) -> int:
    if generator is None:
        return 0 if seed is None else check.seed(seed)
    if seed is not None:
        raise ValueError("generator and seed are both given, expected one of them")
    if not hasattr(generator, "initial_seed"):
        raise TypeError(f"generator is of type {type(generator).__name__}, expected a torch.Generator")
    return generator.initial_seed() & ((1 << 64) - 1)


def _ranks(rank: Optional[int], world_size: Optional[int]) -> Tuple[int, int]:
    """(rank, world size); those of torch.distributed, if it is initialized, for None."""
    if (rank is None) != (world_size is None):
        raise ValueError(f"rank is {rank!r} and world_size {world_size!r}, expected both or neither")
    if world_size is not None:
        size = check.integer(world_size, "world_size", 1)
        return check.integer(rank, "rank", 0, size - 1), size
    # A program that has not imported PyTorch has not initialized it.
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def _policy(uneven: Optional[str], drop_last: bool, world_size: int, batch_size: Optional[int]) -> Optional[str]:
    """How distribute() treats a last batch; None: it is not used."""
    if batch_size is None:
        for name, is_given in (("drop_last", drop_last), ("uneven", uneven is not None)):
            if is_given:
                raise ValueError(f"{name} has no effect if batch_size is None")
        if world_size > 1:
            raise ValueError(f"batch_size is None, but world_size is {world_size}: the loader must create the batches")
        return None
    if uneven is None:
        return None if world_size == 1 else "drop" if drop_last else "pad"
    check.choice(uneven, "uneven", _POLICIES)
    if drop_last and uneven != "drop":
        raise ValueError(f"drop_last is True, but uneven is {uneven!r}")
    return uneven
