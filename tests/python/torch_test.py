"""PyTorch itself: tensors of iterators, mr.torch.DataLoader, and training that is killed. See also loader_test."""

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

from torch_or_fake import lists  # noqa: E402

DS = mr.Dataset
DTYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?", "c8", "c16")
HERE = os.path.dirname(os.path.abspath(__file__))


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
    """With PyTorch itself; loader_test has the other tests."""

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

    def test_torch_distributed(self):
        with tempfile.TemporaryDirectory() as directory:
            program = (
                "import sys, torch.distributed as d\n"
                "from torch_or_fake import lists\nfrom without_tensorflow import mr\n"
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

    @unittest.skipUnless(has("torchdata"), "torchdata is not installed")
    def test_torchdata(self):
        from torchdata.stateful_dataloader import Stateful

        self.assertIsInstance(mr.torch.DataLoader(DS.range(3)), Stateful)
        self.assertIsInstance(DS.range(3).numpy(), Stateful)

    def test_saved_by_torch(self):
        loader = mr.torch.DataLoader(DS.range(10), 3, shuffle=True)
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
