"""Checks a Python wheel: ./zigw build wheel-test calls it. The last line is "N passed, N failed".

usage: wheel.py DIRECTORY [PYTHON…]      (DIRECTORY contains the wheel)

The wheel's files are checked, and it is installed with each interpreter into an empty virtual environment, where the
README's examples, the console scripts and the tests of tests/python that need no TensorFlow use it. By default the
interpreters are the one that runs this program and each python3.9 to python3.14 that is installed. A wheel for another
processor is installed with the interpreter that packaging/sysroot has unpacked, which qemu runs."""
from __future__ import annotations

import ast
import base64
import csv
import glob
import hashlib
import io
import os
import platform
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import warnings
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor

from emulated import Emulator

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SIZE_BYTES_MAX = 15_000_000
IMPORT_MS_MAX = 250
TOOLS = ["graph-run", "tfrecord-cat", "tfrecord-make"]
REQUIREMENTS = ["--only-binary=:all:", "--requirement", os.path.join(ROOT, "tests", "packaging", "requirements.txt")]
ALLOWED = r"lib(c|m|pthread|dl|rt)\.so\.\d+|ld-linux-[\w-]+\.so\.\d+|libmillrace\.so\.0"


class Checks:
    """Runs functions, on any thread, and counts those that raise nothing."""

    def __init__(self):
        self.passed = self.failed = 0
        self._lock = threading.Lock()

    def run(self, name, function, *arguments):
        try:
            note, failure = function(*arguments), None
        except Exception as error:
            note, failure = None, f"{type(error).__name__}: {error}"
        with self._lock:
            self.passed += failure is None
            self.failed += failure is not None
            if failure:
                print(f"FAIL {name}: {failure}", flush=True)
            else:
                print(f"ok   {name}{f': {note}' if note else ''}", flush=True)
        return failure is None


def output(command, **options):
    """The standard output of a command; its error output is part of the exception if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


# ---- The files ----


def check_size(path):
    size = os.path.getsize(path)
    assert size < SIZE_BYTES_MAX, f"{size} bytes, expected less than {SIZE_BYTES_MAX}"
    return f"{size / 1e6:.1f} MB"


def check_record(path):
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        (record,) = [name for name in names if name.endswith(".dist-info/RECORD")]
        rows = {name: (digest, size) for name, digest, size in csv.reader(io.StringIO(archive.read(record).decode()))}
        assert sorted(names) == sorted(rows) and len(set(names)) == len(names), "RECORD does not list the files"
        for name in names:
            if name == record:
                continue
            contents = archive.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).decode().rstrip("=")
            assert rows[name] == (f"sha256={digest}", str(len(contents))), f"RECORD is wrong about {name}"


def check_modes(path):
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            mode = entry.external_attr >> 16
            is_program = "/bin/" in entry.filename or ".so." in entry.filename
            assert mode == (0o100755 if is_program else 0o100644), f"{entry.filename} has the mode {mode:o}"


def check_names(directory):
    """The wheel has the modules of the repository, and nothing else."""
    expected = {"py.typed", "libmillrace.so.0", *(f"bin/{name}" for name in TOOLS)}
    for base in (os.path.join(ROOT, "python", "millrace"), os.path.join(directory, "millrace")):
        found = set()
        for parent, _, entries in os.walk(base):
            found.update(os.path.relpath(os.path.join(parent, entry), base) for entry in entries)
        expected |= {name for name in found if name.endswith(".py") and base.startswith(ROOT)}
    assert found == expected, f"the package has the files {sorted(found ^ expected)} too many or too few"
    assert "py.typed" in found


def check_libraries(directory, tag):
    """The libraries and the versions of glibc that the files need are those that the tag promises."""
    major, minor = (int(part) for part in re.match(r"manylinux_(\d+)_(\d+)_", tag).groups())
    for path in binaries(directory):
        text = output(["readelf", "-dW", path])
        for library in re.findall(r"\(NEEDED\).*\[(.*)\]", text):
            assert re.fullmatch(ALLOWED, library), f"{path} needs {library}"
        paths = re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", text)
        assert paths == ([] if path.endswith(".so.0") else ["$ORIGIN/.."]), f"{path} searches {paths}"
        assert "TEXTREL" not in text, f"{path} is not position-independent"
        for version in re.findall(r"GLIBC_([\w.]+)", output(["readelf", "-VW", path])):
            assert re.fullmatch(r"[\d.]+", version), f"{path} needs GLIBC_{version}"
            assert tuple(map(int, version.split(".")[:2])) <= (major, minor), f"{path} needs GLIBC_{version}"


def check_exports(directory):
    path = os.path.join(directory, "millrace", "libmillrace.so.0")
    lines = output(["readelf", "--dyn-syms", "-W", path]).splitlines()
    rows = [line.split() for line in lines if re.match(r"\s+\d+:", line)]
    names = [row[7].split("@")[0] for row in rows if row[6] not in ("UND", "ABS") and len(row) > 7]
    others = [name for name in names if not name.startswith("mr_")]
    assert not others and len(names) > 500, f"exports {others} besides {len(names)} functions"
    return f"{len(names)} functions"


def binaries(directory):
    package = os.path.join(directory, "millrace")
    return [os.path.join(package, "libmillrace.so.0"), *(os.path.join(package, "bin", name) for name in TOOLS)]


def check_same_bytes(path, directory, work):
    """The wheel that is written from the files of the wheel has the same bytes."""
    tree, again = os.path.join(work, "tree"), os.path.join(work, "again")
    for file in binaries(directory):
        target = os.path.join(tree, os.path.relpath(file, os.path.join(directory, "millrace")))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(file, target)
    version = os.path.basename(path).split("-")[1]
    output([sys.executable, os.path.join(ROOT, "packaging", "wheel"), tree, again, version], cwd=ROOT)
    with open(path, "rb") as first, open(os.path.join(again, os.path.basename(path)), "rb") as second:
        assert first.read() == second.read(), "written twice, the bytes differ"


def check_syntax(directory):
    """The modules have the syntax of Python 3.9, the oldest version for which the wheel is."""
    count = 0
    warnings.simplefilter("error")
    for parent, _, entries in os.walk(os.path.join(directory, "millrace")):
        for entry in entries:
            if entry.endswith(".py"):
                with open(os.path.join(parent, entry), encoding="utf-8") as file:
                    text = file.read()
                ast.parse(text, entry, feature_version=(3, 9))
                compile(text, entry, "exec")
                count += 1
    return f"{count} files"


# ---- The installed wheel ----


def make_environment(python, directory):
    try:
        output([python, "-m", "venv", directory])
    except RuntimeError:  # Debian's Python has no ensurepip without this package
        output([os.path.join(ROOT, "zigw"), "--install", "python3-venv"])
        shutil.rmtree(directory, ignore_errors=True)
        output([python, "-m", "venv", directory])


def install(wheel, environment):
    pip = [os.path.join(environment, "bin", "python"), "-m", "pip", "--disable-pip-version-check"]
    output([*pip, "install", "--quiet", *REQUIREMENTS])
    output([*pip, "install", "--quiet", "--no-index", wheel])
    output([*pip, "check"])


def install_emulated(wheel, environment):
    """At once, and without compiling modules that are not used: starts and compilations take long."""
    pip = [sys.executable, "-m", "pip", "--python", os.path.join(environment, "bin", "python")]
    output([*pip, "--disable-pip-version-check", "install", "--quiet", "--no-compile", *REQUIREMENTS, wheel])


def field(number, value):
    """A field of a message: an int, or bytes of less than 128."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def graph_file():
    """A GraphDef: y = x + x, of float."""

    def node(name, operator, key, *inputs):
        attribute = field(1, key) + field(2, field(6, 1))
        return field(1, name) + field(2, operator) + b"".join(field(3, i) for i in inputs) + field(5, attribute)

    nodes = [node(b"x", b"Placeholder", b"dtype"), node(b"y", b"Add", b"T", b"x", b"x")]
    return b"".join(field(1, text) for text in nodes)


def png(width, height, red):
    def chunk(kind, text):
        return struct.pack(">I", len(text)) + kind + text + struct.pack(">I", zlib.crc32(kind + text))

    rows = b"".join(b"\0" + b"".join(bytes([red, x & 255, y & 255]) for x in range(width)) for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def make_inputs(directory):
    """photos/CLASS/N.png and model.pb, which the README's examples read."""
    for i in range(20):
        path = os.path.join(directory, "photos", ("cat", "dog")[i % 2], f"{i:03}.png")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(png(40 + i, 30 + i, 10 * i))
    with open(os.path.join(directory, "model.pb"), "wb") as file:
        file.write(graph_file())


def check_scripts(environment, directory):
    tool = {name: os.path.join(environment, "bin", name) for name in TOOLS}
    for name, path in tool.items():
        text = output([path, "--version"])
        assert text.startswith(f"{name} (millrace) "), text
    output([tool["tfrecord-make"], "--out", "records", "--name", "pets", "photos"], cwd=directory)
    count = output([tool["tfrecord-cat"], "--count", "records"], cwd=directory)
    assert re.search(r"\b20\b", count), count
    values = output([tool["graph-run"], "model.pb", "--feed", "x=[1, 2]", "--fetch", "y"], cwd=directory)
    assert "[2, 4]" in values, values
    refused = subprocess.run([tool["tfrecord-cat"], "--no-such-option"], stderr=subprocess.PIPE, text=True)
    assert refused.returncode != 0 and "tfrecord-cat" in refused.stderr, refused
    # The program's signals are those of a shell's command, not the interpreter's.
    state = (
        "import os; os.execv = lambda path, words: os.system('grep SigIgn /proc/$PPID/status'); "
        "from millrace import _tools; _tools.graph_run()"
    )
    ignored = int(output([os.path.join(environment, "bin", "python"), "-c", state]).split()[1], 16)
    assert not ignored & (1 << 12 | 1 << 24), f"the programs ignore the signals {ignored:#x}"


def readme_examples():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        return re.findall(r"^```python\n(.*?)^```$", file.read(), re.M | re.S)


def check_readme(python, directory):
    examples = readme_examples()
    assert examples, "README.md has no ```python block"
    for text in examples:
        output([python, "-W", "error", "-c", text], cwd=directory)
    return f"{len(examples)} examples"


def check_import_time(python, directory):
    """The import, and the import with the library and NumPy."""
    notes = []
    for what, statement in (("import", "import millrace"), ("with library", "import millrace; millrace.__version__")):
        text = f"import time; start = time.perf_counter(); {statement}; print((time.perf_counter() - start) * 1e3)"
        output([python, "-c", text], cwd=directory)
        median = statistics.median(float(output([python, "-c", text], cwd=directory)) for _ in range(10))
        assert median < IMPORT_MS_MAX, f"{what}: {median:.1f} ms, expected less than {IMPORT_MS_MAX}"
        notes.append(f"{what} {median:.1f} ms")
    return ", ".join(notes)


def needs_more(path):
    """Whether a test needs TensorFlow, PyTorch or JAX, or files of the sources."""
    with open(path, encoding="utf-8") as file:
        return re.search(r"^(import|from) (tensorflow|support)\b|\bROOT\b|\bSkipTest\b", file.read(), re.M)


def run_test(command, directory, variables):
    done = subprocess.run(command, cwd=directory, env=variables, stderr=subprocess.PIPE, text=True, timeout=600)
    assert done.returncode == 0, f"status {done.returncode}\n{done.stderr}"
    return re.search(r"Ran \d+ tests?", done.stderr)[0].lower()


def run_tests(checks, label, environment, work, is_emulated):
    """tests/python/*_test.py on the installed package: the copies are not below a directory with python/millrace."""
    directory = os.path.join(work, "tests", "python")
    if not os.path.exists(directory):
        shutil.copytree(os.path.join(ROOT, "tests", "python"), directory)
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MILLRACE_LIBRARY")}
    variables["MILLRACE_BIN"] = os.path.join(environment, "bin")
    variables["MILLRACE_ROOT"] = ROOT
    start = (
        "import sys, unittest, millrace; assert millrace.__file__.startswith(sys.prefix), millrace.__file__; "
        "unittest.main(None, argv=['unittest', sys.argv[1]])"
    )
    names = sorted(name[:-3] for name in os.listdir(directory) if name.endswith("_test.py"))
    skipped = [name for name in names if needs_more(os.path.join(directory, f"{name}.py"))]
    if skipped:  # PyTorch and JAX would take minutes to install: see tests/oracle/python_oracle.py
        print(f"     {label}: not with the wheel alone: {' '.join(skipped)}")
    if is_emulated:  # a process that is forked by one with threads sometimes hangs under qemu
        names.remove("processes_test")
    python = os.path.join(environment, "bin", "python")
    with ThreadPoolExecutor(os.cpu_count() if is_emulated else 1) as pool:
        for name in names:
            if name not in skipped:
                command = [python, "-c", start, name]
                pool.submit(checks.run, f"{label}: {name}", run_test, command, directory, variables)


def check_installed(checks, wheel, python, work):
    """Installs the wheel with an interpreter of this machine."""
    environment = os.path.join(work, version_of(python))
    make_environment(python, environment)
    label = f"Python {version_of(python)}"
    if checks.run(f"{label}: pip install", install, wheel, environment):
        check_environment(checks, label, environment, work)


def check_emulated(checks, wheel, machine, work):
    """Installs a wheel for another processor."""
    emulator = Emulator(ROOT, machine)
    if emulator.missing:
        print(f"skipped: the wheel for {machine} was not installed: {emulator.missing}")
        return
    environment = os.path.join(work, machine)
    emulator.make_environment(environment)
    # Modules are compiled once: that takes most of the time of a short program.
    os.environ["PYTHONPYCACHEPREFIX"] = os.path.join(work, "compiled")
    os.environ["MILLRACE_EMULATED"] = "1"  # for tests
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    label = f"Python {version_of(os.path.join(environment, 'bin', 'python'))} on {machine}"
    if checks.run(f"{label}: pip install", install_emulated, wheel, environment):
        (programs,) = glob.glob(os.path.join(environment, "lib", "python3*", "site-packages", "millrace", "bin"))
        emulator.wrap_programs(programs)
        check_environment(checks, label, environment, work, is_emulated=True)


def version_of(python):
    return output([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).strip()


def check_environment(checks, label, environment, work, is_emulated=False):
    directory = f"{environment}-run"
    os.mkdir(directory)
    make_inputs(directory)
    python = os.path.join(environment, "bin", "python")
    checks.run(f"{label}: console scripts", check_scripts, environment, directory)
    checks.run(f"{label}: README.md", check_readme, python, directory)
    if not is_emulated:
        checks.run(f"{label}: import time", check_import_time, python, directory)
    run_tests(checks, label, environment, work, is_emulated)


def interpreters():
    """The one that runs this program, and the others of CPython 3.9 to 3.14."""
    found = {sys.version_info[:2]: sys.executable}
    for minor in range(9, 15):
        path = shutil.which(f"python3.{minor}")
        if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            found.setdefault((3, minor), path)
    return list(found.values())


def main():
    (wheel,) = glob.glob(os.path.join(os.path.abspath(sys.argv[1]), "*.whl"))
    pythons = sys.argv[2:]
    tag = os.path.basename(wheel)[: -len(".whl")].split("-")[-1]
    checks = Checks()
    with tempfile.TemporaryDirectory() as work:
        directory = os.path.join(work, "wheel")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(directory)
        checks.run("size", check_size, wheel)
        checks.run("RECORD", check_record, wheel)
        checks.run("files", check_names, directory)
        checks.run(f"libraries and symbols of {tag}", check_libraries, directory, tag)
        checks.run("exports", check_exports, directory)
        checks.run("written twice", check_same_bytes, wheel, directory, work)
        checks.run("syntax of Python 3.9", check_syntax, directory)
        checks.run("modes", check_modes, wheel)
        machine = re.fullmatch(r"manylinux_\d+_\d+_(\w+)", tag)[1]
        if machine == platform.machine():
            for python in pythons or interpreters():
                check_installed(checks, wheel, python, work)
        else:
            check_emulated(checks, wheel, machine, work)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return checks.failed != 0


if __name__ == "__main__":
    sys.exit(main())
