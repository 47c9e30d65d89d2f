"""PyTorch: tensors of iterators, and mr.torch.DataLoader."""

import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

from without_tensorflow import has, mr

if not has("torch"):
    raise unittest.SkipTest("PyTorch is not installed")

import torch  # noqa: E402

DS = mr.Dataset
DTYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?", "c8", "c16")
HERE = os.path.dirname(os.path.abspath(__file__))


def lists(loader):
    def plain(batch):
        return tuple(map(plain, batch)) if isinstance(batch, tuple) else batch.tolist()

    return [plain(batch) for batch in loader]


class TensorTest(unittest.TestCase):
    def test_dtypes(self):
        for dtype in DTYPES:
            values = np.arange(6).reshape(3, 2).astype(dtype)
            with self.subTest(dtype):
                (whole,) = DS.from_tensors(values).torch()
                batch, rest = DS.from_tensor_slices(values).batch(2).torch()
                scalars = list(DS.from_tensor_slices(values[:, 1]).torch())
                for tensor, expected in (
                    (whole, values),
                    (batch, values[:2]),
                    (rest, values[2:]),
                    (scalars[1], values[1, 1]),
                ):
                    self.assertIs(type(tensor), torch.Tensor)
                    self.assertEqual(tensor.dtype, torch.from_numpy(values).dtype)
                    self.assertFalse(tensor.requires_grad)
                    np.testing.assert_array_equal(tensor.numpy(), expected)
                    self.assertEqual(tensor.shape, expected.shape)

    def test_bfloat16(self):
        pixels = self.png()
        (image,) = DS.from_tensor_slices(np.array([pixels])).decode_image(dtype="bfloat16").torch()
        self.assertEqual((image.dtype, tuple(image.shape)), (torch.bfloat16, (2, 2, 3)))
        self.assertEqual(image.float().flatten().tolist(), list(range(0, 120, 10)))
        from millrace._arrays import DTYPES

        half = np.uint16(0x3FC0).view(DTYPES[14])
        (scalar,) = DS.range(1).map(lambda x: half, mr.Spec("bfloat16", ())).torch()
        self.assertEqual((scalar.dtype, scalar.item()), (torch.bfloat16, 1.5))

    def png(self):
        from without_tensorflow import write_png

        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "x.png")
            write_png(path, np.arange(0, 120, 10).reshape(2, 2, 3))
            with open(path, "rb") as file:
                return file.read()

    def test_strings_and_empty(self):
        strings = DS.from_tensor_slices(np.array([b"a", b"bc"]))
        self.assertEqual(list(strings.torch()), [b"a", b"bc"])
        (batch,) = strings.batch(2).torch()
        self.assertEqual(batch.tolist(), [b"a", b"bc"])
        (empty,) = DS.from_tensors(np.zeros((0, 3), "f4")).torch()
        self.assertEqual((empty.shape, empty.dtype), ((0, 3), torch.float32))
        ((a, b),) = DS.from_tensors((np.zeros(2), np.int64(3))).torch()
        self.assertEqual((a.shape, b.item()), ((2,), 3))
        self.assertEqual(
            {k: v.item() for k, v in next(DS.range(1).map(lambda x: {"n": x}).torch(as_dict=True)).items()}, {"n": 0}
        )

    def test_a_batch_is_the_callers_own(self):
        values = np.arange(60.0).reshape(20, 3)
        iterator = DS.from_tensor_slices(values).batch(2).torch()
        batches = []
        for batch in iterator:
            self.assertTrue(batch.is_contiguous())
            batch += 1000
            batches.append(batch.view(-1)[1:])
            del batch
        del iterator
        gc.collect()
        junk = [list(DS.range(1000).batch(6).torch()) for _ in range(3)]
        del junk
        for i, batch in enumerate(batches):
            self.assertEqual(batch.tolist(), (values[2 * i : 2 * i + 2].ravel()[1:] + 1000).tolist())
        # What the dataset refers to is not changed.
        np.testing.assert_array_equal(values, np.arange(60.0).reshape(20, 3))
        (whole,) = DS.from_tensors(values).torch()
        whole += 1
        np.testing.assert_array_equal(values, np.arange(60.0).reshape(20, 3))

    def test_memory_is_shared_and_returned(self):
        ds = DS.from_tensor_slices(np.zeros((64, 256, 256), "f4")).repeat(40).batch(16)
        seen, sharing = set(), 0
        for batch in ds.torch(threads=1, budget_bytes=64 << 20):
            seen.add(batch.data_ptr())
            sharing += 1
        self.assertLess(len(seen), sharing)

    def test_dlpack(self):
        (handle,) = DS.from_tensors(np.arange(6, dtype="i4").reshape(2, 3)).batch(1).dlpack()
        tensor = torch.from_dlpack(handle)
        del handle
        gc.collect()
        self.assertEqual(tensor.tolist(), [[[0, 1, 2], [3, 4, 5]]])


class DataLoaderTest(unittest.TestCase):
    ds = DS.range(10)

    def loader(self, *arguments, **options):
        return mr.torch.DataLoader(self.ds, *arguments, **options)

    def test_like_torch(self):
        from torch.utils.data import DataLoader, TensorDataset

        x, y = torch.arange(20.0).view(10, 2), torch.arange(10)
        ours = DS.from_tensor_slices((x.numpy(), y.numpy()))
        for options in ({}, {"batch_size": 4}, {"batch_size": 4, "drop_last": True}, {"batch_size": 20}):
            theirs = DataLoader(TensorDataset(x, y), **options)
            mine = mr.torch.DataLoader(ours, **options)
            self.assertEqual(lists(mine), [(a.tolist(), b.tolist()) for a, b in theirs])
            self.assertEqual(
                (len(mine), mine.batch_size, mine.drop_last), (len(theirs), theirs.batch_size, theirs.drop_last)
            )

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

    def test_torch_distributed(self):
        with tempfile.TemporaryDirectory() as directory:
            program = (
                "import sys, torch.distributed as d\nfrom torch_test import mr, lists\n"
                "d.init_process_group('gloo', init_method='file://' + sys.argv[1], "
                "rank=int(sys.argv[2]), world_size=2)\n"
                "loader = mr.torch.DataLoader(mr.Dataset.range(8), 2)\n"
                "print(loader.rank, loader.world_size, lists(loader))\nd.destroy_process_group()"
            )
            path = os.path.join(directory, "store")
            runs = [subprocess.Popen([sys.executable, "-c", program, path, str(rank)], cwd=HERE,
                                     stdout=subprocess.PIPE, text=True)
                    for rank in range(2)]  # fmt: skip
            found = [run.communicate(timeout=120)[0].strip() for run in runs]
        self.assertEqual(found, ["0 2 [[0, 1], [4, 5]]", "1 2 [[2, 3], [6, 7]]"])

    def test_wrong_arguments(self):
        wrong = {
            "dataset": (None, [1], torch.utils.data.TensorDataset(torch.zeros(1))),
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

    @unittest.skipUnless(has("torchdata"), "torchdata is not installed")
    def test_torchdata(self):
        from torchdata.stateful_dataloader import Stateful

        self.assertIsInstance(self.loader(), Stateful)
        self.assertIsInstance(DS.range(3).numpy(), Stateful)

    def test_saved_by_torch(self):
        loader = self.loader()
        next(iter(loader))
        with tempfile.NamedTemporaryFile() as file:
            torch.save({"loader": loader.state_dict()}, file.name)
            saved = torch.load(file.name, weights_only=True)
        self.assertEqual(saved["loader"], loader.state_dict())


TRAINING = """
import os, sys, hashlib
sys.path.insert(0, {root!r})
import numpy as np, torch, millrace as mr
path, steps_between, pause = sys.argv[1], 7, float(sys.argv[2])
torch.manual_seed(1)
torch.set_num_threads(1)
rng = np.random.default_rng(2)
x, y = rng.standard_normal((500, 8)).astype(np.float32), rng.integers(0, 3, 500)
ds = mr.Dataset.from_tensor_slices((x, y))
ds = ds.random_map(lambda x, y, rng: (x + rng.normal(0, 0.1, 8).astype(np.float32), y))
loader = mr.torch.DataLoader(ds, 16, shuffle=True, seed=3, num_workers=int(sys.argv[3]))
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
epoch = step = 0
if os.path.exists(path):
    saved = torch.load(path, weights_only=False)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    loader.load_state_dict(saved["loader"])
    torch.set_rng_state(saved["random"])
    epoch, step = saved["epoch"], saved["step"]
    print("resumed", flush=True)
for epoch in range(epoch, 4):
    for inputs, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % steps_between == 0:
            torch.save(dict(model=model.state_dict(), optimizer=optimizer.state_dict(), loader=loader.state_dict(),
                            random=torch.get_rng_state(), epoch=epoch, step=step), path + ".new")
            os.replace(path + ".new", path)
            print("saved", step, flush=True)
        if pause: __import__("time").sleep(pause)
parameters = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
print("end", step, hashlib.sha256(parameters).hexdigest(), flush=True)
"""


class KilledTrainingTest(unittest.TestCase):
    """A training that is killed again and again ends with the parameters of one that is not, bit for bit."""

    def start(self, path, pause, threads):
        program = TRAINING.format(root=os.path.join(HERE, "..", "..", "python"))
        return subprocess.Popen(
            [sys.executable, "-c", program, path, str(pause), str(threads)], stdout=subprocess.PIPE, text=True
        )

    def test_killed(self):
        with tempfile.TemporaryDirectory() as directory:
            run = self.start(os.path.join(directory, "one"), 0, 2)
            expected = run.communicate(timeout=120)[0].splitlines()[-1]
            self.assertRegex(expected, "^end 128 [0-9a-f]{64}$")
            path, kills = os.path.join(directory, "two"), 0
            for threads in (1, 3):
                run = self.start(path, 0.002, threads)
                saves = 0
                for line in run.stdout:
                    saves += line.startswith("saved")
                    if saves == 3:
                        time.sleep(0.005)
                        run.send_signal(signal.SIGKILL)
                        kills += 1
                        break
                run.communicate(timeout=120)
            last = self.start(path, 0, 8).communicate(timeout=120)[0].splitlines()
            self.assertEqual((last[0], last[-1], kills), ("resumed", expected, 2))


if __name__ == "__main__":
    unittest.main()
