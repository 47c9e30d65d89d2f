"""Dataset.map and random_map in worker processes."""
import gc
import os
import signal
import subprocess
import sys
import time
import unittest

import numpy as np

import millrace as mr


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
        for function, text in ((die_at_5, "SIGKILL"), (exit_at_5, "exit code 3")):
            found = everything(mr.Dataset.range(20).map(function, mr.Spec("int64", ()), processes=2))
            self.assertEqual([x for x in found if not isinstance(x, Exception)], [i + 1 for i in range(20) if i != 5])
            self.assertIn(text, str(found[5]))

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
        before = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), os.listdir("/dev/shm")
        for _ in range(15):
            once()
        gc.collect()
        after = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), os.listdir("/dev/shm")
        self.assertEqual(after[:2], before[:2])

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
            " processes=2).numpy()\n"
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
            "it = mr.Dataset.range(1000000).map(lambda x: x, processes=2).prefetch(10).numpy()\n"
            "next(it)\n"
        )
        self.assertEqual(subprocess.run([sys.executable, "-c", program], timeout=60).returncode, 0)

    def test_other_contexts(self):
        found = list(mr.Dataset.range(10).map(double, processes=1, context="spawn"))
        self.assertEqual(found, [2 * i for i in range(10)])
        with self.assertRaisesRegex(TypeError, "pickled"):
            mr.Dataset.range(3).map(lambda x: x, processes=1, context="spawn")

    def test_arguments(self):
        with self.assertRaisesRegex(ValueError, "context"):
            mr.Dataset.range(3).map(double, context="spawn")
        with self.assertRaisesRegex(ValueError, "processes"):
            mr.Dataset.range(3).map(double, processes=-1)


def is_running(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


if __name__ == "__main__":
    unittest.main()
