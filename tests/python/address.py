"""Life cycles of the objects of python/millrace with a library that AddressSanitizer checks: a use after free ends the
process, and after the cycles neither memory nor objects are left. ./zigw build asan calls it.

usage: address.py LIBRARY COMPILER      (that has built the library)

Python and NumPy are not instrumented, and leave memory that LeakSanitizer reports. Only what the library itself has
allocated counts: memory of elements that a leaked array owns, for example. Leaked objects of Python are counted as
well. Without an interpreter that has NumPy, nothing is checked."""
import collections
import gc
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
CYCLES = 1000


def interpreter():
    """An interpreter with NumPy: this one, or that of the comparison with TensorFlow."""
    found = [sys.executable, os.environ.get("MILLRACE_ORACLE_PYTHON"), f"{ROOT}/.toolchain/oracle/bin/python"]
    for path in found:
        command = [path, "-c", "import numpy"]
        if path and os.path.exists(path) and subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0:
            return path
    return None


def start(library, compiler):
    """Runs the cycles in a process of their own and returns its exit status."""
    python = interpreter()
    if python is None:
        print("skipped: life cycles in Python: no interpreter with NumPy; set MILLRACE_ORACLE_PYTHON to one")
        return 0
    machine = os.uname().machine
    name = f"libclang_rt.asan-{machine}.so"
    runtime = subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip()
    with tempfile.TemporaryDirectory() as directory:
        log = os.path.join(directory, "report")
        options = "detect_leaks=1:leak_check_at_exit=0:stack_trace_format='  #%n %F %S (%m)'"
        options = f"{os.environ.get('ASAN_OPTIONS', '')}:{options}:log_path={log}"
        environment = {
            **os.environ,
            "ASAN_OPTIONS": options,
            "LD_PRELOAD": runtime,
            "MILLRACE_LIBRARY": os.path.abspath(library),
            "PYTHONMALLOC": "malloc",
            "PYTHONPATH": os.path.join(ROOT, "python"),
        }
        status = subprocess.run([python, os.path.abspath(__file__)], env=environment).returncode
        reports = []
        for path in glob.glob(log + "*"):
            with open(path, errors="replace") as file:
                reports.append(file.read())
    leaks = [block for report in reports for block in leaks_of(report, os.path.basename(library))]
    if "ERROR: AddressSanitizer" in "".join(reports) or status != 0:
        print("\n".join(reports)[:20000])
        print(f"FAIL life cycles in Python: exit status {status}")
        return 1
    if leaks:
        print("\n\n".join(leaks[:5]))
        print(f"FAIL life cycles in Python: {len(leaks)} kinds of leaks")
        return 1
    return 0


def leaks_of(report, library):
    """The blocks of a report about memory that the library itself allocated: the caller of malloc is in it."""
    blocks = re.findall(r"^(?:Direct|Indirect) leak of .*?(?=^\s*$)", report, re.M | re.S)
    return [block for block in blocks if library in block.split("#1 ", 1)[-1].split("\n", 1)[0]]


# ---- In the process with AddressSanitizer ----


def parse_cycles(count, seed):
    """Encodes, writes, reads and parses records; parsers, readers and writers are dropped in any state."""
    import random

    import numpy as np

    import millrace as mr

    choose = random.Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "records")
        for i in range(count):
            records = [
                mr.Example.encode({"x": np.arange(choose.randrange(1, 5)), "s": [b"text"] * 2, "f": 0.5})
                for _ in range(choose.randrange(1, 6))
            ]
            with mr.RecordWriter(path, index=i % 2 == 0, atomic=i % 3 == 0) as writer:
                writer.write_many(records[1:])
                writer.write(records[0])
            records = records[1:] + records[:1]
            features = {"x": mr.VarLenFeature(mr.Int64), "s": mr.RaggedFeature(mr.String)}
            if choose.random() < 0.5:
                features["f"] = mr.FixedLenFeature((), mr.Float, float(i % 3))
            columns = mr.parse_example(records, features)
            reader, file = mr.RecordReader(path), mr.RecordFile(path)
            assert next(reader) == file[0] and columns["x"].dense_shape[0] == len(file)
            assert mr.Example.parse(records[0])["f"] == np.float32(0.5)
            if choose.random() < 0.5:
                reader.close()
            if choose.random() < 0.3:
                file.close()
            try:
                mr.parse_example([b"\x0a\x02?"], features)
                raise AssertionError("a damaged record was parsed")
            except mr.errors.OpError:
                pass


def objects():
    """The numbers of objects by type, after everything that can be freed has been."""
    for _ in range(3):
        gc.collect()
    return collections.Counter(type(value).__qualname__ for value in gc.get_objects())


def main():
    import ctypes

    sys.path.insert(0, HERE)
    import lifecycle_test
    from millrace import _callbacks

    lifecycle_test.life_cycles(CYCLES // 5, 1)
    parse_cycles(100, 1)
    kept, before = len(_callbacks._objects), objects()
    lifecycle_test.life_cycles(CYCLES, 2)
    parse_cycles(200, 2)
    grown = {name: number for name, number in (objects() - before).items() if number > 40}
    # Caches, such as that of exceptions, may have grown by a few.
    assert not grown, f"objects are left: {grown}"
    assert len(_callbacks._objects) <= kept, f"{len(_callbacks._objects) - kept} functions are left"
    ctypes.CDLL(None).__lsan_do_recoverable_leak_check()


if __name__ == "__main__":
    sys.exit(start(*sys.argv[1:]) if len(sys.argv) > 1 else main())
