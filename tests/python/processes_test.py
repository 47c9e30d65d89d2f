"""Dataset.map and random_map in worker processes."""
import ctypes
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import unittest

import numpy as np

import millrace as mr

# The default before Python 3.14; workers that start in other ways cannot run lambdas.
multiprocessing.set_start_method("fork", force=True)


def double(x):
    return x * 2


def add_noise(x, generator):
    return x + generator.random(x.shape)


def fail_at_7(x):
    if x == 7:
        raise KeyError("seven")
    return x + 1


def die_at_5(x):
    if x == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return x + 1


def exit_at_5(x):
    if x == 5:
        os._exit(3)
    return x + 1


def segfault_at_5(x):
    if x == 5:
        ctypes.string_at(0)
    return x + 1


def allocate_at_5(x):
    if x == 5:
        return np.ones(1 << 50)[:1].astype(np.int64)[0]  # more than the address space
    return x + 1


def write_at_5(x):
    if x == 5:
        for descriptor in range(3, 100):
            try:
                if os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:"):
                    os.write(descriptor, b"wrong")
            except OSError:
                pass
    return x + 1


def text_of(x):
    return (b"%d" % x) * int(x % 5), np.arange(x % 3)


def stop(x):
    raise (SystemExit if x % 2 else KeyboardInterrupt)(f"at {x}")


def everything(dataset, **options):
    """Elements and errors."""
    found = []
    with dataset.numpy(**options) as iterator:
        while True:
            try:
                found.append(next(iterator))
            except StopIteration:
                return found
            except Exception as error:
                found.append(error)


def children():
    with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children") as file:
        return file.read().split()


class ProcessesTest(unittest.TestCase):
    def test_elements_are_those_of_threads(self):
        rows = np.random.default_rng(0).random((1000, 3, 4)).astype(np.float32)
        ds = mr.Dataset.from_tensor_slices(rows).shuffle(seed=3)
        expected = list(ds.map(double).batch(64))
        for processes in (1, 2):
            for threads in (1, 2, 8):
                found = list(ds.map(double, processes=processes).batch(64).numpy(threads=threads))
                self.assertEqual(len(found), len(expected))
                for a, b in zip(found, expected):
                    np.testing.assert_array_equal(a, b)

    def test_random_numbers_are_those_of_threads(self):
        ds = mr.Dataset.from_tensor_slices(np.zeros((100, 5))).repeat(2)
        expected = list(ds.random_map(add_noise, seed=5))
        found = list(ds.random_map(add_noise, seed=5, processes=2))
        np.testing.assert_array_equal(found, expected)

    def test_strings_and_variable_sizes(self):
        spec = (mr.Spec("string", ()), mr.Spec("int64", (None,)))
        found = list(mr.Dataset.range(200).map(text_of, spec, processes=2))
        for i, (text, numbers) in enumerate(found):
            self.assertEqual(text, (b"%d" % i) * (i % 5))
            self.assertEqual(numbers.tolist(), list(range(i % 3)))
        back = mr.Dataset.range(50).map(text_of, spec).map(lambda t, n: (t + b"!", n), spec, processes=1)
        self.assertEqual([t for t, _ in back], [(b"%d" % i) * (i % 5) + b"!" for i in range(50)])

    def test_an_exception_is_of_one_element(self):
        found = everything(mr.Dataset.range(20).map(fail_at_7, processes=2))
        self.assertEqual([x for x in found if not isinstance(x, Exception)], [i + 1 for i in range(20) if i != 7])
        error = found[7]
        self.assertIn("element 7", str(error))
        self.assertIsInstance(error.__cause__, KeyError)
        self.assertIn("fail_at_7", str(error.__cause__.__cause__))

    def test_a_worker_that_dies_is_one_error(self):
        functions = (
            (die_at_5, "SIGKILL"), (exit_at_5, "exit code 3"), (segfault_at_5, "SIGSEGV"),
            (allocate_at_5, "Unable to allocate"),
        )  # fmt: skip
        for function, text in functions:
            found = everything(mr.Dataset.range(20).map(function, mr.Spec("int64", ()), processes=2))
            self.assertEqual([x for x in found if not isinstance(x, Exception)], [i + 1 for i in range(20) if i != 5])
            self.assertIn(text, str(found[5]))

    def test_workers_that_die_at_the_same_time(self):
        ds = mr.Dataset.range(40).map(lambda x: os._exit(1) if x % 4 == 1 else x, mr.Spec("int64", ()), processes=4)
        for _ in range(3):
            found = everything(ds, threads=4)
            self.assertEqual([x for x in found if not isinstance(x, Exception)], [i for i in range(40) if i % 4 != 1])

    def test_a_worker_that_sends_something_else(self):
        found = everything(mr.Dataset.range(20).map(write_at_5, mr.Spec("int64", ()), processes=1))
        self.assertEqual(len(found), 20)
        errors = [x for x in found if isinstance(x, Exception)]
        self.assertLessEqual(len(errors), 1)
        self.assertTrue(all("wrong answer" in str(error) for error in errors))

    def test_buckets_and_resampling_around_it(self):
        spec = mr.Spec("int64", (None,))
        ragged = mr.Dataset.range(60).map(np.arange, spec)
        for processes in (1, 2):
            mapped = mr.Dataset.range(60).map(np.arange, spec, processes=processes)
            pairs = [
                (d.bucket_by_sequence_length(len, [10, 30], [4, 3, 2]),
                 d.bucket_by_sequence_length(len, [10, 30], [4, 3, 2]).map(np.negative, mr.Spec("int64", (None, None)),
                                                                           processes=processes).map(np.negative),
                 d.rejection_resample(lambda x: len(x) % 2, [0.8, 0.2], [0.5, 0.5], seed=3))
                for d in (ragged, mapped)
            ]  # fmt: skip
            for expected, found in zip(*pairs):
                expected, found = list(expected), list(found)
                self.assertGreater(len(expected), 10)
                self.assertEqual(len(expected), len(found))
                for a, b in zip(expected, found):
                    np.testing.assert_equal(a, b)

    def test_exits_inside_the_function(self):
        with mr.Dataset.range(4).map(stop, mr.Spec("int64", ()), processes=1).numpy() as iterator:
            for i in range(4):
                with self.assertRaises((SystemExit, KeyboardInterrupt)) as raised:
                    next(iterator)
                self.assertEqual(str(raised.exception), f"at {i}")

    def test_batches_and_two_maps(self):
        ds = mr.Dataset.range(100).map(double, processes=1).map(double, processes=2).batch(8).map(double, processes=1)
        self.assertEqual(np.concatenate(list(ds)).tolist(), [8 * i for i in range(100)])

    def test_state(self):
        ds = mr.Dataset.range(100).shuffle(seed=1).map(double, processes=2)
        with ds.numpy() as iterator:
            for _ in range(33):
                next(iterator)
            state = iterator.state()
            rest = list(iterator)
            iterator.restore(state)
            self.assertEqual(list(iterator), rest)
        with mr.Dataset.range(100).shuffle(seed=1).map(double).numpy(threads=1) as iterator:
            iterator.restore(state)
            self.assertEqual(list(iterator), rest)

    def test_workers_end_with_the_last_iterator(self):
        before = children()
        ds = mr.Dataset.range(100000).map(double, processes=2)
        first, second = ds.numpy(), ds.numpy()
        next(first), next(second)
        self.assertEqual(len(children()), len(before) + 2)
        del first
        gc.collect()
        next(second)
        second.close()
        self.assertEqual(children(), before)
        self.assertEqual(next(iter(ds)), 0)

    def test_several_inputs_share_workers(self):
        before = children()
        one = mr.Dataset.range(10).map(double, processes=1)
        for ds in (mr.Dataset.zip((one, one)), one.concatenate(one)):
            with ds.numpy() as iterator:
                next(iterator)
                self.assertEqual(len(children()), len(before) + 1)
                list(iterator)
            self.assertEqual(children(), before)

    def test_interrupt(self):
        program = (
            "import millrace as mr, time\n"
            "it = mr.Dataset.range(9).map(lambda x: (x, time.sleep(x * 60))[0], mr.Spec('int64', ()),"
            " processes=2).batch(1).numpy()\n"
            "print(next(it), flush=True)\n"
            "next(it)\n"
        )
        parent = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        parent.stdout.readline()
        time.sleep(0.3)
        os.killpg(parent.pid, signal.SIGINT)
        self.assertNotEqual(parent.wait(20), 0)
        parent.stdout.close()

    def test_nothing_is_left(self):
        def once():
            iterator = mr.Dataset.range(1000).map(double, processes=2).batch(4).numpy()
            next(iterator)

        once()
        gc.collect()

        def kept():
            descriptors = [target(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
            return sorted(filter(None, descriptors)), len(os.listdir("/proc/self/task")), children()

        before = kept()
        for _ in range(15):
            once()
        gc.collect()
        self.assertEqual(kept(), before)

    def test_memory_does_not_grow(self):
        rows = np.zeros((400, 10000), np.float32)
        ds = mr.Dataset.from_tensor_slices(rows).map(double, processes=2)
        ragged = mr.Dataset.range(400).map(lambda x: np.zeros(x % 7 * 5000), mr.Spec("float64", (None,)), processes=1)
        sizes = []
        for _ in range(6):
            for dataset in (ds.batch(8), ragged):
                with dataset.numpy(threads=2) as iterator:
                    for _ in iterator:
                        pass
            gc.collect()
            sizes.append(resident_bytes())
        self.assertLess(sizes[-1] - sizes[1], 24 << 20, sizes)

    def test_memory_of_workers_does_not_grow(self):
        ds = mr.Dataset.range(100).map(lambda x: np.ones(5000) * x, mr.Spec("float64", (None,)), processes=1).repeat()
        with ds.numpy(threads=2) as iterator:
            sizes = []
            for _ in range(5):
                for _ in range(2000):
                    next(iterator)
                sizes.append(sum(resident_bytes(child) for child in children()))
        self.assertLess(sizes[-1] - sizes[0], 64 << 20, sizes)

    def test_closing_while_a_function_runs(self):
        start = time.monotonic()
        ds = mr.Dataset.range(10).map(lambda x: (x, time.sleep(60))[0], mr.Spec("int64", ()), processes=2)
        iterator = ds.prefetch(2).numpy()
        time.sleep(0.3)
        iterator.close()
        self.assertLess(time.monotonic() - start, 20)

    def test_workers_end_with_a_killed_parent(self):
        program = (
            "import millrace as mr, time, os\n"
            "it = mr.Dataset.range(10).map(lambda x: (x, time.sleep(x * 60))[0], mr.Spec('int64', ()),"
            " processes=2, context='fork').numpy()\n"
            "next(it)\n"
            "print(open(f'/proc/{os.getpid()}/task/{os.getpid()}/children').read(), flush=True)\n"
            "time.sleep(60)\n"
        )
        parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        workers = parent.stdout.readline().split()
        self.assertEqual(len(workers), 2)
        parent.kill()
        parent.wait()
        parent.stdout.close()
        deadline = time.monotonic() + 10
        while any(is_running(worker) for worker in workers):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_interpreter_exit_while_running(self):
        program = (
            "import millrace as mr\n"
            "it = mr.Dataset.range(1000000).map(lambda x: x, processes=2, context='fork').prefetch(10).numpy()\n"
            "next(it)\n"
        )
        self.assertEqual(subprocess.run([sys.executable, "-c", program], timeout=60).returncode, 0)

    def test_other_contexts(self):
        for context in ("spawn", "forkserver", multiprocessing.get_context("spawn")):
            found = everything(mr.Dataset.range(10).map(die_at_5, mr.Spec("int64", ()), processes=2, context=context))
            self.assertEqual([x for x in found if not isinstance(x, Exception)], [i + 1 for i in range(10) if i != 5])
            found = list(mr.Dataset.range(30).map(text_of, (mr.Spec("string", ()), mr.Spec("int64", (None,))),
                                                  processes=1, context=context))  # fmt: skip
            self.assertEqual([text for text, _ in found], [(b"%d" % i) * (i % 5) for i in range(30)])
        with self.assertRaisesRegex(TypeError, "pickled"):
            mr.Dataset.range(3).map(lambda x: x, processes=1, context="spawn")

    def test_arguments(self):
        with self.assertRaisesRegex(ValueError, "context"):
            mr.Dataset.range(3).map(double, context="spawn")
        for context, error in (("x", ValueError), (3, TypeError)):
            with self.assertRaisesRegex(error, "context is"):
                mr.Dataset.range(3).map(double, processes=1, context=context)
        with self.assertRaisesRegex(ValueError, "processes"):
            mr.Dataset.range(3).map(double, processes=-1)


def target(descriptor):
    """What a file descriptor is open for; None if it is closed."""
    try:
        return os.readlink(descriptor).split(":")[0]
    except OSError:
        return None


def resident_bytes(process="self"):
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def is_running(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


if __name__ == "__main__":
    unittest.main()
