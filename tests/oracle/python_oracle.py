"""python/millrace: runs tests/python/*_test.py, whose graphs TensorFlow's Python builds."""
import glob
import importlib
import os
import sys
import unittest

DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python")


def main():
    sys.path.insert(0, DIRECTORY)
    suite = unittest.TestSuite()
    for path in sorted(glob.glob(os.path.join(DIRECTORY, "*_test.py"))):
        name = os.path.basename(path)[:-3]
        try:
            suite.addTests(unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(name)))
        except unittest.SkipTest as reason:
            print(f"skipped: {name}: {reason}")
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
