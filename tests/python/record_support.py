"""Record files for tests: a directory with a file, records, threads, forked children and interrupted programs."""
import os
import random
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

import millrace as mr  # noqa: E402


class Files(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.file = self.path("records")

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, records, path=None, **options):
        with mr.RecordWriter(path or self.file, **options) as writer:
            for record in records:
                writer.write(record)

    def damage(self, offset, path=None):
        """Flips a bit of a byte."""
        with open(path or self.file, "r+b") as file:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 1]))


def some_records(seed, count=100):
    random_ = random.Random(seed)
    sizes = [random_.choice((0, 1, 7, 100, 5000)) for _ in range(count)]
    return [random_.getrandbits(8 * size).to_bytes(size, "little") if size else b"" for size in sizes]


def run_threads(count, body):
    failures = []

    def run(i):
        try:
            body(i)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def in_child(body):
    """Whether body() returns True in a forked child."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os._exit(0 if body() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def run_script(script):
    """A program, run to its end."""
    return subprocess.run([sys.executable, "-c", script], capture_output=True, env=environment(), timeout=60)
