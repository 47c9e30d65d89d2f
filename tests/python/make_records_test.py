"""python/millrace: make_records, which runs the tool tfrecord-make."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "python"))

import millrace as mr  # noqa: E402


def has_tool():
    try:
        mr._make._tool()
        return True
    except mr.errors.NotFoundError:
        return False


mr.make_records  # loads its module


@unittest.skipUnless(has_tool(), "tfrecord-make is not built")
class MakeRecords(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.table = self.path("table.csv")
        with open(self.table, "w") as file:
            file.write("a,b\n" + "".join(f"{i},name {i}\n" for i in range(100)))
        self.output = self.path("records")

    def path(self, name):
        return os.path.join(self.directory, name)

    def test_summary_lists_the_files(self):
        made = mr.make_records(self.table, self.output, split={"all": 1})
        self.assertEqual(made["rows"], 100)
        self.assertEqual([split["name"] for split in made["splits"]], ["all"])
        files = made["splits"][0]["files"]
        records = [mr.Example.parse(record) for file in files for record in mr.RecordReader(file)]
        self.assertEqual(sorted(int(record["a"][0]) for record in records), list(range(100)))

    def test_many_files_do_not_fill_a_pipe(self):
        made = mr.make_records(self.table, self.path("x" * 200), split={"all": 1}, shards=900, dry_run=True)
        self.assertGreater(sum(map(len, made["splits"][0]["files"])), 65536)

    def test_values_of_options(self):
        made = mr.make_records(
            self.table,
            self.output,
            split={"a": 0.5, "b": 0.5},
            key={"a": "number", "b": ""},
            types=["a=float"],
            dry_run=False,
            name=None,
            jobs=1,
        )
        self.assertEqual(sum(split["records"] for split in made["splits"]), 100)
        record = next(mr.RecordReader(made["splits"][0]["files"][0]))
        dtypes = {name: str(value.dtype) for name, value in mr.Example.parse(record).items()}
        self.assertEqual(dtypes, {"number": "float32"})

    def test_flag(self):
        self.assertTrue(mr.make_records(self.table, self.output, dry_run=True)["dry_run"])
        self.assertFalse(os.path.exists(self.output))

    def test_wrong_options(self):
        for error, name, value in (
            (ValueError, "bogus", 1),
            (ValueError, "shard", 3),  # an abbreviation
            (ValueError, "json", True),
            (ValueError, "out", "x"),
            (ValueError, "shards", "many"),
            (ValueError, "name", "a\0b"),
            (TypeError, "shards", True),
            (TypeError, "shards", object()),
            (TypeError, "dry_run", 1),
        ):
            with self.subTest(name=name, value=value), self.assertRaisesRegex(error, name):
                mr.make_records(self.table, self.output, **{name: value})
        with self.assertRaisesRegex(TypeError, "verbose"):
            mr.make_records(self.table, self.output, verbose=1)
        with self.assertRaisesRegex(TypeError, "source"):
            mr.make_records(None, self.output)

    def test_paths_that_look_like_options(self):
        for name in ("--help", "-o"):
            with self.assertRaisesRegex(mr.errors.OpError, "no such file"):
                mr.make_records(name, self.output)

    def test_failure_has_the_tools_sentence(self):
        for verbose in (False, True):
            with self.assertRaises(mr.errors.OpError) as raised:
                mr.make_records(self.path("none"), self.output, verbose=verbose)
            self.assertRegex(raised.exception.message, "^cannot open .*none: no such file or directory$")

    def test_verbose_writes_to_the_standard_error(self):
        code = f"import millrace as mr; mr.make_records({self.path('none')!r}, {self.output!r}, verbose=True)"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, env=self.environment())
        self.assertIn(b"tfrecord-make: cannot open", run.stderr)

    def environment(self):
        return {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")}

    def fake_tool(self, script):
        """Replaces the tool."""
        tool = self.path("tfrecord-make")
        with open(tool, "w") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(tool, 0o755)
        before = mr._make._tool
        mr._make._tool = lambda: tool
        self.addCleanup(setattr, mr._make, "_tool", before)

    def test_interrupt_ends_the_tool(self):
        pid = self.path("pid")
        self.fake_tool(f'[ "$1" = --help ] && exit 0\necho $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 60\n')

        def interrupt():
            while not os.path.exists(pid):
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        begin = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            mr.make_records(self.table, self.output)
        self.assertLess(time.monotonic() - begin, 30)
        with open(pid) as file, self.assertRaises(ProcessLookupError):
            os.kill(int(file.read()), 0)

    def test_killed_tool(self):
        self.fake_tool('[ "$1" = --help ] && exit 0\nkill -9 $$\n')
        with self.assertRaisesRegex(mr.errors.AbortedError, "SIGKILL"):
            mr.make_records(self.table, self.output)

    def test_no_tool(self):
        code = "import millrace as mr; mr.make_records('a', 'b')"
        package = self.path("package")
        shutil.copytree(os.path.join(ROOT, "python", "millrace"), os.path.join(package, "millrace"))
        library = os.path.abspath(os.path.join(ROOT, "zig-out", "lib", "libmillrace.so.0"))
        environment = {"MILLRACE_LIBRARY": library, **os.environ, "PYTHONPATH": package, "PATH": ""}
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        self.assertIn("tfrecord-make is not installed", run.stderr)


if __name__ == "__main__":
    unittest.main()
