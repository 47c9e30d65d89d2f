"""mr.torch.DataLoader and Dataset.torch(), with PyTorch or a module in its place. See also torch_test."""
import unittest
from unittest import mock

import numpy as np

from torch_or_fake import lists, torch
from without_tensorflow import mr

DS = mr.Dataset


class TensorsTest(unittest.TestCase):
    def test_elements(self):
        rows = np.arange(6, dtype="f4").reshape(3, 2)
        ds = DS.from_tensor_slices((rows, np.array([b"a", b"bc", b""]), np.arange(3)))
        for i, (row, text, number) in enumerate(ds.torch()):
            self.assertEqual((type(row), type(number)), (torch.Tensor, torch.Tensor))
            self.assertEqual((row.tolist(), text, number.item()), (rows[i].tolist(), (b"a", b"bc", b"")[i], i))
        ((batch, texts, numbers),) = ds.batch(3).torch()
        self.assertEqual((batch.tolist(), texts.tolist()), (rows.tolist(), [b"a", b"bc", b""]))
        self.assertEqual(numbers.tolist(), [0, 1, 2])
        named = DS.range(2).map(lambda x: {"n": x}).torch(as_dict=True)
        self.assertEqual([(sorted(found), found["n"].item()) for found in named], [(["n"], 0), (["n"], 1)])

    def test_what_the_dataset_refers_to_is_not_changed(self):
        values = np.arange(6.0)
        (whole,) = DS.from_tensors(values).torch()
        whole.numpy()[:] = 0
        np.testing.assert_array_equal(values, np.arange(6.0))

    def test_bfloat16(self):
        from millrace._arrays import DTYPES

        bits = np.array([0x3FC0, 0x4000], np.uint16)
        (batch,) = DS.range(1).map(lambda x: bits.view(DTYPES[14]), mr.Spec("bfloat16", (2,))).torch()
        self.assertEqual((batch.dtype, tuple(batch.shape)), (torch.bfloat16, (2,)))

    def test_dlpack(self):
        (handle,) = DS.from_tensors(np.arange(6, dtype="i4").reshape(2, 3)).dlpack()
        self.assertEqual(torch.from_dlpack(handle).tolist(), [[0, 1, 2], [3, 4, 5]])


class DataLoaderTest(unittest.TestCase):
    ds = DS.range(10)

    def loader(self, *arguments, **options):
        return mr.torch.DataLoader(self.ds, *arguments, **options)

    def test_epochs(self):
        loader = self.loader(4, True)
        epochs = [lists(loader) for _ in range(3)]
        self.assertEqual([sorted(sum(epoch, [])) for epoch in epochs], [list(range(10))] * 3)
        self.assertEqual(len({str(epoch) for epoch in epochs}), 3)
        loader.set_epoch(1)
        self.assertEqual(lists(loader), epochs[1])
        self.assertEqual(lists(loader), epochs[2])
        self.assertEqual(lists(self.loader(4, True, num_workers=1)), epochs[0])
        self.assertNotEqual(lists(self.loader(4, True, seed=1)), epochs[0])
        seeded = lists(self.loader(4, True, generator=torch.Generator().manual_seed(1)))
        self.assertEqual(seeded, lists(self.loader(4, True, seed=1)))

    def test_random_choices_change_with_the_epoch(self):
        ds = DS.range(4).random_map(lambda x, rng: rng.integers(1 << 30))
        loader = mr.torch.DataLoader(ds, 4)
        self.assertNotEqual(lists(loader), lists(loader))

    def test_several_iterations_at_once(self):
        loader = self.loader(5)
        self.assertEqual(
            [(a.tolist(), b.tolist()) for a, b in zip(loader, loader)], [(b, b) for b in lists(self.loader(5))]
        )
        for _ in loader:
            break
        self.assertEqual(len(lists(loader)), 2)

    def test_options(self):
        self.assertEqual(len(lists(self.loader(3, num_workers=2, prefetch_factor=2, device="cpu"))), 4)
        already = mr.torch.DataLoader(self.ds.batch(4), batch_size=None)
        self.assertEqual((lists(already), len(already)), (lists(self.loader(4)), 3))
        named = mr.torch.DataLoader(self.ds.map(lambda x: {"n": x}), 10, as_dict=True)
        self.assertEqual([batch["n"].tolist() for batch in named], [list(range(10))])
        self.assertIn("batch(4", repr(self.loader(4)))
        self.assertIs(self.loader().sampler.set_epoch.__func__, mr.torch.DataLoader.set_epoch)

    def test_collate(self):
        def collate(samples):
            return torch.tensor([int(a) for a, _ in samples]), torch.stack([torch.from_numpy(b) for _, b in samples])

        ds = DS.from_tensor_slices((np.arange(5), np.arange(10.0).reshape(5, 2)))
        got = [(a, b) for a, b in mr.torch.DataLoader(ds, 2, collate_fn=collate)]
        self.assertEqual([a.tolist() for a, _ in got], [[0, 1], [2, 3], [4]])
        self.assertEqual(got[1][1].tolist(), [[4, 5], [6, 7]])
        (named,) = self.loader(10, collate_fn=lambda samples: {"sum": sum(samples)}, as_dict=True)
        self.assertEqual(named["sum"].item(), 45)
        masked = self.loader(4, collate_fn=lambda samples: np.stack(samples), uneven="mask")
        self.assertEqual([mask.sum().item() for _, mask in masked], [4, 4, 2])

    def test_ranks(self):
        ranks = [self.loader(2, True, rank=rank, world_size=2) for rank in range(2)]
        self.assertEqual([len(loader) for loader in ranks], [3, 3])
        both = [lists(loader) for loader in ranks]
        self.assertEqual({value for part in both for batch in part for value in batch}, set(range(10)))
        dropped = [lists(self.loader(2, True, rank=rank, world_size=2, drop_last=True)) for rank in range(2)]
        self.assertEqual([part[:2] for part in both], dropped)

    def test_ranks_of_torch_distributed(self):
        self.assertEqual((self.loader().rank, self.loader().world_size), (0, 1))
        found = []
        for rank in range(2):
            state = {"is_initialized": lambda: True, "get_rank": lambda: rank, "get_world_size": lambda: 2}
            with mock.patch.multiple(torch.distributed, **state):
                loader = self.loader(2, True)
                given = self.loader(2, True, rank=0, world_size=1)
            self.assertEqual((loader.rank, loader.world_size, given.world_size), (rank, 2, 1))
            found.append(lists(loader))
        self.assertEqual(found, [lists(self.loader(2, True, rank=rank, world_size=2)) for rank in range(2)])
        with mock.patch.object(torch.distributed, "is_available", lambda: False):
            self.assertEqual(self.loader().world_size, 1)

    def test_wrong_arguments(self):
        wrong = {
            "dataset": (None, [1], object()),
            "batch_size": (0, -1, "x", 1.5),
            "shuffle": (1, None),
            "drop_last": (1, None),
            "collate_fn": (3,),
            "num_workers": (0, -1, "x", 1025),
            "prefetch_factor": (2,),
            "device": ("tpu", 3),
            "pin_memory": (True, 1),
            "seed": (-1, "x"),
            "generator": (3,),
            "as_dict": (True, 1),
            "rank": (0,),
            "world_size": (1,),
            "uneven": ("x", 3),
            "budget_bytes": (0, "x"),
            "verbose": (1,),
            "persistent_workers": (True, False),
            "timeout": (1,),
            "sampler": ([0],),
            "unknown": (1,),
        }
        for argument, values in wrong.items():
            for value in values:
                with self.subTest(argument=argument, value=value):
                    with self.assertRaisesRegex(
                        (TypeError, ValueError), argument if argument != "device" else "device|:"
                    ):
                        mr.torch.DataLoader(**{"dataset": self.ds, argument: value})
        for options in (
            {"batch_size": None, "drop_last": True}, {"batch_size": None, "uneven": "pad"},
            {"batch_size": None, "rank": 0, "world_size": 2}, {"batch_size": None, "collate_fn": list},
            {"seed": 1, "generator": torch.Generator()}, {"drop_last": True, "uneven": "pad"},
            {"rank": 2, "world_size": 2}, {"num_workers": 2, "prefetch_factor": 0},
        ):  # fmt: skip
            self.assertRaises((TypeError, ValueError), self.loader, **options)
        with self.assertRaisesRegex(ValueError, "cache"):
            mr.torch.DataLoader(self.ds.cache())
        self.assertRaises(TypeError, len, mr.torch.DataLoader(self.ds.filter(bool)))
        with self.assertRaisesRegex(ValueError, "epoch"):
            self.loader().set_epoch(-1)


class DataLoaderStateTest(unittest.TestCase):
    def loader(self, count=10, batch_size=3, **options):
        ds = DS.range(count).random_map(lambda x, rng: (x, rng.random()))
        return mr.torch.DataLoader(ds, batch_size, shuffle=True, **options)

    def test_every_position(self):
        expected = [lists(self.loader_at(epoch)) for epoch in range(3)]
        for epoch in range(2):
            for steps in range(5):
                loader = self.loader_at(epoch)
                iterator = iter(loader)
                for _ in range(steps):
                    next(iterator)
                state = loader.state_dict()
                for threads in (1, 8, None):
                    other = self.loader(num_workers=threads)
                    other.load_state_dict(state)
                    self.assertEqual(other.state_dict(), state)
                    self.assertEqual(lists(other), expected[epoch][steps:])
                    self.assertEqual(lists(other), expected[epoch + 1])

    def loader_at(self, epoch):
        loader = self.loader()
        loader.set_epoch(epoch)
        return loader

    def test_between_epochs(self):
        loader = self.loader()
        before = loader.state_dict()
        first, second = lists(loader), lists(loader)
        after = loader.state_dict()
        third = lists(loader)
        for state, expected in ((before, first), (after, third), (before, first)):
            loader.load_state_dict(state)
            self.assertEqual(lists(loader), expected)
        self.assertEqual(lists(loader), second)

    def test_set_epoch_after_loading(self):
        loader = self.loader()
        iterator = iter(loader)
        next(iterator)
        state = loader.state_dict()
        rest = lists(iterator)
        loader.load_state_dict(state)
        loader.set_epoch(0)
        self.assertEqual(lists(loader), rest)
        loader.load_state_dict(state)
        loader.set_epoch(1)
        self.assertEqual(lists(loader), lists(self.loader_at(1)))

    def test_another_number_of_ranks(self):
        def loaders(ranks):
            return [self.loader(22, 8 // ranks, rank=r, world_size=ranks, uneven="mask") for r in range(ranks)]

        def step(iterators):
            return sorted(
                x for i in iterators for x, m in zip(*[t.tolist() for t in (lambda b: (b[0], b[2]))(next(i))]) if m
            )

        two = loaders(2)
        iterators = [iter(loader) for loader in two]
        step(iterators)
        states = [loader.state_dict() for loader in two]
        expected = [step(iterators), step(iterators)]
        for ranks in (1, 4):
            others = loaders(ranks)
            for loader in others:
                loader.load_state_dict(states[1])
            iterators = [iter(loader) for loader in others]
            self.assertEqual([step(iterators), step(iterators)], expected)

    def test_refused(self):
        loader = self.loader()
        next(iter(loader))
        state = loader.state_dict()
        for options in ({"count": 11}, {"count": 12}, {"batch_size": 2}, {"seed": 1}):
            self.assertRaises(ValueError, self.loader(**options).load_state_dict, {**state, "state": None})
            self.assertRaises(
                (ValueError, mr.errors.InvalidArgumentError), self.loader(**options).load_state_dict, state
            )
        other = mr.torch.DataLoader(DS.range(1, 11).map(lambda x: (x, x / 2)), 3, shuffle=True)
        self.assertRaises(mr.errors.InvalidArgumentError, other.load_state_dict, state)
        self.assertEqual(len(lists(other)), 4)
        for wrong in (None, 3, []):
            with self.assertRaisesRegex(TypeError, "state_dict"):
                loader.load_state_dict(wrong)
        for wrong in ({}, {**state, "more": 1}, {**state, "version": 2}):
            with self.assertRaisesRegex(ValueError, "state_dict"):
                loader.load_state_dict(wrong)
        for wrong in (b"", b"x", state["state"][:-1]):
            self.assertRaises(mr.errors.InvalidArgumentError, loader.load_state_dict, {**state, "state": wrong})
        self.assertRaises((TypeError, ValueError), loader.load_state_dict, {**state, "epoch": "x"})


if __name__ == "__main__":
    unittest.main()
