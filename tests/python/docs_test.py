"""Runs the ```python blocks of the guide for Python, in order, and the examples."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from without_tensorflow import ROOT, has, mr, write_png, write_records

LIBRARIES = {"torch": r"torch", "jax": r"\.jax\(|import jax", "lightning": r"lightning"}


def example(features):
    """A serialized Example of features of one int or bytes each."""

    def message(number, data):
        return bytes([number << 3 | 2]) + varint(len(data)) + data

    def varint(value):
        data = bytearray()
        while value > 127:
            data.append(value & 127 | 128)
            value >>= 7
        return bytes([*data, value])

    entries = b""
    for name, value in features.items():
        kind = message(1, message(1, value)) if isinstance(value, bytes) else message(3, message(1, varint(value)))
        entries += message(1, message(1, name.encode()) + message(2, kind))
    return message(1, entries)


def write_data():
    """The files that the guide names, in the current directory."""
    rng = np.random.default_rng(1)
    records = []
    for label, kind in enumerate(("cat", "dog", "horse")):
        os.makedirs(f"photos/{kind}")
        for i in range(20):
            pixels = rng.integers(0, 256, (40 + i, 50, 3)) // 2 + 40 * label
            write_png(f"photos/{kind}/{i:03}.png", pixels)
            with open(f"photos/{kind}/{i:03}.png", "rb") as file:
                records.append(example({"image/encoded": file.read(), "image/class/label": label}))
    for i in range(2):
        write_records(f"train-{i}.tfrecord", records[i::2])
    np.save("features.npy", rng.standard_normal((1000, 64)).astype(np.float32))
    np.save("labels.npy", rng.integers(0, 10, 1000))


class InDirectory(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(directory.name)
        write_data()


class GuideTest(InDirectory):
    def test_blocks(self):
        path = os.path.join(ROOT, "docs", "python.md")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        names = {"__name__": "guide"}
        count = 0
        for match in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            block = match[1]
            if any(re.search(pattern, block) and not has(library) for library, pattern in LIBRARIES.items()):
                continue
            if "parse_example" in block and not hasattr(mr, "String"):
                continue
            line = text.count("\n", 0, match.start(1))
            exec(compile("\n" * line + block, path, "exec"), names)
            count += 1
        self.assertGreater(count, 5)
        for name in ("it", "iterator", "loader"):
            names.pop(name, None)


class ExamplesTest(InDirectory):
    def run_example(self, name, *arguments):
        path = os.path.join(os.path.abspath(ROOT), "python", "examples", name)
        package = os.path.join(os.path.abspath(ROOT), "python")
        environment = {**os.environ, "PYTHONPATH": package, "JAX_PLATFORMS": "cpu"}
        run = subprocess.run(
            [sys.executable, path, *arguments], env=environment, capture_output=True, text=True, timeout=300
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    @unittest.skipUnless(has("torch"), "PyTorch is not installed")
    def test_torch_loop(self):
        self.assertIn("epoch 2, step 0: loss", self.run_example("torch_loop.py", "photos", "checkpoint.pt"))
        self.assertEqual(self.run_example("torch_loop.py", "photos", "checkpoint.pt"), "")

    @unittest.skipUnless(has("lightning"), "Lightning is not installed")
    def test_lightning_fit(self):
        self.assertIn("16 steps", self.run_example("lightning_fit.py", "photos"))

    @unittest.skipUnless(has("jax"), "JAX is not installed")
    def test_jax_loop(self):
        self.assertIn("step 0: loss 1.099", self.run_example("jax_loop.py", "photos"))


if __name__ == "__main__":
    unittest.main()
