"""python/millrace: runs each of tests/python/*_test.py in a process of its own, because TensorFlow has settings of the
process. Without arguments, all; with the name of one, its tests."""
import glob
import importlib
import os
import re
import subprocess
import sys
import unittest

DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python")
PACKAGE = os.path.join(DIRECTORY, "..", "..", "python")


def run_one(name):
    sys.path.insert(0, DIRECTORY)
    try:
        suite = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(name))
    except unittest.SkipTest as reason:
        # Of PyTorch, which the checks do not install: its wheels on PyPI take 5 GB of disk, 1.2 GB without those of
        # CUDA. loader_test runs a part on a module in its place. JAX is missing only with another interpreter.
        print(f"skipped: {name}: {reason}\n0 passed, 0 failed")
        return 0
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed")
    return failed != 0


def main():
    environment = {**os.environ, "PYTHONPATH": os.path.abspath(PACKAGE)}
    passed = failed = 0
    for path in sorted(glob.glob(os.path.join(DIRECTORY, "*_test.py"))):
        name = os.path.basename(path)[:-3]
        command = [sys.executable, os.path.abspath(__file__), name]
        run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        counts = re.findall(r"^(\d+) passed, (\d+) failed$", run.stdout, re.MULTILINE)
        ok, bad = map(int, counts[-1]) if counts else (0, 1)
        bad = max(bad, run.returncode != 0)
        print(f"{name}: {ok} passed, {bad} failed" if bad == 0 and "skipped:" not in run.stdout else run.stdout)
        passed += ok
        failed += bad
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(run_one(sys.argv[1]) if len(sys.argv) > 1 else main())
