"""Runs oracle scripts, as many at the same time as there are processors: tests/oracle/run calls it.

usage: run_scripts.py DIRECTORY NAME…

Writes each script's output, exit status and seconds to NAME, NAME.status and NAME.seconds in the directory. The scripts
that import TensorFlow are forked from this process, which has imported it: that takes 2 s in each interpreter."""
import os
import re
import runpy
import signal
import sys
import time

SCRIPTS = os.path.dirname(os.path.abspath(__file__))
# What takes longest starts first, so that it does not run alone at the end.
LONGEST = ["python", "ops_edges", "programs"]


def path_of(name):
    return os.path.join(SCRIPTS, f"{name}_oracle.py")


def uses_tensorflow(name):
    with open(path_of(name), encoding="utf-8") as file:
        return re.search(r"tensorflow|(ops|model)_compare", file.read()) is not None


def start(directory, name):
    """Forks. Returns the process in the parent, and 0 in the child, whose output is the script's file."""
    process = os.fork()
    if process == 0:
        output = os.open(os.path.join(directory, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
    return process


def write(directory, name, text):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        file.write(f"{text}\n")


def run_all(directory, names):
    """The name of the script to run in this process, which is then a child; None in the parent at the end."""
    running = {}
    waiting = sorted(names, key=lambda name: LONGEST.index(name) if name in LONGEST else len(LONGEST))
    while waiting or running:
        if waiting and len(running) < len(os.sched_getaffinity(0)):
            name = waiting.pop(0)
            process = start(directory, name)
            if process == 0:
                return name
            running[process] = name, time.monotonic()
            continue
        process, status = os.wait()
        if process not in running:
            continue
        name, started = running.pop(process)
        write(directory, f"{name}.status", os.waitstatus_to_exitcode(status))
        write(directory, f"{name}.seconds", round(time.monotonic() - started))
    return None


def main():
    directory, names = sys.argv[1], sys.argv[2:]
    # A shell starts what runs in the background with SIGINT ignored, which the scripts' children would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    preloaded = [name for name in names if uses_tensorflow(name)]
    if len(preloaded) > 1:
        import tensorflow.compat.v1  # noqa: F401
    chosen = run_all(directory, names)
    if chosen is None:
        return
    if chosen not in preloaded:
        os.execv(sys.executable, [sys.executable, path_of(chosen)])
    sys.argv = [path_of(chosen)]
    runpy.run_path(path_of(chosen), run_name="__main__")


main()
