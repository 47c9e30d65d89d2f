"""Life cycles of datasets, iterators and batches: nothing leaks, hangs or crashes, in whatever order they end."""
import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
import unittest

import numpy as np

import millrace as mr

# The default before Python 3.14; workers that start in other ways cannot run lambdas.
multiprocessing.set_start_method("fork", force=True)


def memory_kib():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def threads():
    return len(os.listdir("/proc/self/task"))


def files():
    return len(os.listdir("/proc/self/fd"))


def pipeline(choose):
    ds = mr.Dataset.from_tensor_slices((np.arange(200.0).reshape(100, 2), np.arange(100)))
    if choose.random() < 0.5:
        ds = ds.shuffle(seed=choose.randrange(10))
    if choose.random() < 0.5:
        ds = ds.map(lambda x, i: (x + 1, i))
    if choose.random() < 0.3:
        ds = ds.filter(lambda x, i: i % 3 != 0)
    if choose.random() < 0.02:
        ds = ds.map(lambda x, i: (x * 2, i), processes=1)
    return ds.batch(choose.randrange(1, 9)).prefetch(choose.randrange(1, 4))


def life_cycles(count, seed):
    choose = random.Random(seed)
    alive = []
    for _ in range(count):
        iterator = pipeline(choose).numpy(threads=choose.choice((1, 2, 4)))
        taken = [next(iterator) for _ in range(choose.randrange(5))]
        alive += [iterator, *taken]
        if choose.random() < 0.2:
            iterator.close()
        del iterator, taken
        choose.shuffle(alive)
        while len(alive) > 12:
            alive.pop()
    for value in alive:
        if isinstance(value, tuple):
            value[0].sum()


def run(program, **options):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, **options)


class LifecycleTest(unittest.TestCase):
    def test_1000_life_cycles(self):
        life_cycles(200, 1)
        gc.collect()
        before = memory_kib(), threads(), files()
        life_cycles(1000, 2)
        gc.collect()
        after = memory_kib(), threads(), files()
        if not os.environ.get("MILLRACE_EMULATED"):  # qemu keeps 280 KiB of each thread
            self.assertLess(after[0] - before[0], 20000)
        self.assertEqual(after[1:], before[1:])

    def test_life_cycles_in_threads(self):
        runs = [threading.Thread(target=life_cycles, args=(50, seed)) for seed in range(4)]
        for thread in runs:
            thread.start()
        for thread in runs:
            thread.join()

    def test_batches_outlive_everything(self):
        rows = np.arange(1000).reshape(100, 10)
        batches = list(mr.Dataset.from_tensor_slices(rows).map(lambda x: x).batch(10))
        gc.collect()
        np.testing.assert_array_equal(np.concatenate(batches), rows)

    def test_dropping_the_iterator_inside_its_function(self):
        box = []

        def function(x):
            box.clear()
            gc.collect()
            return x

        box.append(mr.Dataset.range(100).map(function, mr.Spec("int64", ())).prefetch(2).numpy(threads=2))
        iterator = box[0]
        next(iterator)
        del iterator
        gc.collect()

    def test_functions_that_create_datasets(self):
        ds = mr.Dataset.range(20).map(lambda x: sum(mr.Dataset.range(int(x))), mr.Spec("int64", ()))
        self.assertEqual(list(ds), [sum(range(i)) for i in range(20)])

    def test_interpreter_exit(self):
        program = (
            "import millrace as mr, time\n"
            "it = mr.Dataset.range(1000000).map(lambda x: x).prefetch(100).numpy(threads=4)\n"
            "next(it)\n"
        )
        result = run(program)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_fork_while_running(self):
        program = (
            "import millrace as mr, os\n"
            "it = mr.Dataset.range(1000000).map(lambda x: x).prefetch(100).numpy(threads=2)\n"
            "next(it)\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    try: next(it)\n"
            "    except RuntimeError: os._exit(sum(mr.Dataset.range(5)))\n"
            "    os._exit(1)\n"
            "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 10\n"
            "next(it)\n"
        )
        result = run(program)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_interrupt_and_state(self):
        program = (
            "import millrace as mr, time\n"
            "ds = mr.Dataset.range(100).map(lambda x: (x, time.sleep(30 if x == 5 else 0))[0],"
            " mr.Spec('int64', ()))\n"
            "it = ds.batch(1).numpy(threads=1)\n"
            "print([int(next(it)[0]) for _ in range(3)], flush=True)\n"
            "try:\n"
            "    for x in it: pass\n"
            "except KeyboardInterrupt:\n"
            "    it.state()\n"
            "    print('state', flush=True)\n"
            "    import os; os._exit(0)\n"
        )
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        self.assertEqual(child.stdout.readline(), "[0, 1, 2]\n")
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        try:
            self.assertEqual(child.communicate(timeout=50)[0], "state\n")
        finally:
            child.kill()

    def test_another_library(self):
        for library, text in (("/none", "cannot be loaded"), ("libc.so.6", "not the library of this version")):
            done = run("import millrace; millrace.__version__", env={**os.environ, "MILLRACE_LIBRARY": library})
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, f"ImportError: millrace: .*{text}")


if __name__ == "__main__":
    unittest.main()
