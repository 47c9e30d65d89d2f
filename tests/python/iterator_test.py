"""Iterators: states, threads, what they report, and their ends."""

import contextlib
import gc
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

from without_tensorflow import elements, mr, plain

DS = mr.Dataset
PACKAGE = os.path.dirname(os.path.dirname(mr.__file__))


def pipeline(count=100):
    """With every kind of stage whose state matters: order, random numbers, buffers, batches."""
    ds = DS.range(count).shuffle(seed=1).random_map(lambda x, rng: (x, rng.random()), seed=2).repeat(2)
    return ds.shuffle(16, seed=3).filter(lambda x, r: x % 7 > 0).batch(5).prefetch()


class StateTest(unittest.TestCase):
    def test_every_position(self):
        expected = elements(pipeline(), threads=2)
        iterator = pipeline().numpy(threads=2)
        states = [iterator.state()]
        for _ in expected:
            next(iterator)
            states.append(iterator.state())
        for at in (0, 1, 2, 17, len(expected) - 1, len(expected)):
            for threads in (1, 8):
                with pipeline().numpy(threads=threads) as other:
                    other.restore(states[at])
                    self.assertEqual([plain(element) for element in other], expected[at:])

    def test_restore_a_running_and_an_ended_iterator(self):
        iterator = DS.range(10).shuffle(seed=1).numpy()
        state = iterator.state()
        first = [plain(e) for e in iterator]
        self.assertRaises(StopIteration, next, iterator)
        for count in (10, 3):
            iterator.restore(state)
            self.assertEqual([plain(next(iterator)) for _ in range(count)], first[:count])

    def test_a_state_has_a_seed(self):
        iterator = DS.range(10).shuffle(seed=1).numpy(seed=5)
        state = iterator.state()
        other = DS.range(10).shuffle(seed=1).numpy(seed=6)
        other.restore(state)
        self.assertEqual(plain(tuple(other)), plain(tuple(iterator)))

    def test_in_another_process(self):
        iterator = pipeline_of_arrays().numpy()
        next(iterator)
        program = (
            "import sys\nfrom iterator_test import pipeline_of_arrays, plain\n"
            "it = pipeline_of_arrays().numpy(threads=3)\nit.load_state_dict({'state': bytes.fromhex(sys.argv[1])})\n"
            "print([plain(e) for e in it])"
        )
        here = os.path.dirname(os.path.abspath(__file__))
        run = subprocess.run(
            [sys.executable, "-c", program, iterator.state().hex()], cwd=here, capture_output=True, text=True
        )
        self.assertEqual(run.stdout.strip(), str([plain(e) for e in iterator]), run.stderr)

    def test_wrong_states(self):
        iterator = DS.range(10).numpy()
        state = iterator.state()
        for wrong in (None, 3, "x", [state]):
            with self.assertRaisesRegex(TypeError, "state"):
                iterator.restore(wrong)
        damaged = bytes([state[0] ^ 1]) + state[1:]
        for wrong in (b"", b"x", state[:-1], state + b"x", damaged, DS.range(11).numpy().state()):
            self.assertRaises(mr.errors.InvalidArgumentError, iterator.restore, wrong)
        self.assertEqual(elements(DS.range(10)), [plain(e) for e in iterator])
        for wrong in (None, [], "x"):
            self.assertRaises(TypeError, iterator.load_state_dict, wrong)
        for wrong in ({}, {"state": state, "more": 1}):
            self.assertRaises(ValueError, iterator.load_state_dict, wrong)
        iterator.load_state_dict(iterator.state_dict())


def pipeline_of_arrays():
    return DS.from_tensor_slices(np.arange(40.0).reshape(20, 2)).shuffle(seed=1).batch(3)


class ReportTest(unittest.TestCase):
    def test_digest(self):
        digests = set()
        for threads in (1, 8):
            with pipeline().numpy(threads=threads, digest=True) as iterator:
                for _ in iterator:
                    pass
                digests.add(iterator.digest)
        self.assertEqual(len(digests), 1)
        with DS.range(3).numpy(digest=True) as iterator:
            list(iterator)
            self.assertNotIn(iterator.digest, digests | {0})
        with self.assertRaisesRegex(ValueError, "digest"):
            DS.range(3).numpy().digest

    def test_statistics(self):
        with DS.range(100).map(lambda x: x + 1).batch(10).numpy(threads=2) as iterator:
            list(iterator)
            found = iterator.statistics()
            self.assertEqual([stage["stage"] for stage in found], ["range", "map", "batch"])
            self.assertEqual(found[-1]["elements"], 10)
            for stage in found:
                self.assertGreaterEqual(stage["busy_seconds"], 0)
                self.assertEqual(stage["warning"], "")
            text = iterator.statistics_text(72)
            self.assertTrue(all(len(line) <= 72 for line in text.splitlines()))
            self.assertIn("batch", text)
            for wrong in (59, "x", None, 1.5):
                with self.assertRaisesRegex((TypeError, ValueError), "columns"):
                    iterator.statistics_text(wrong)
            self.assertEqual(iterator.tuned()["is_on"], False)
        self.assertEqual(DS.range(3).numpy().tuned()["is_on"], True)
        self.assertEqual(DS.range(3).numpy(threads=2, tune=True).tuned()["is_on"], True)

    def test_trace(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "trace.json")
            with DS.range(50).map(lambda x: x).batch(5).numpy(threads=2, trace=path) as iterator:
                list(iterator)
                iterator.stop_trace()
                with open(path) as file:
                    trace = json.load(file)
            events = trace["traceEvents"] if isinstance(trace, dict) else trace
            self.assertGreater(len(events), 5)
            self.assertRaises(mr.errors.OpError, DS.range(3).numpy, trace=os.path.join(directory, "no", "trace"))

    def run_program(self, program):
        program = f"import sys\nsys.path.insert(0, {PACKAGE!r})\nimport millrace as mr, time\n{program}"
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run

    def test_verbose(self):
        run = self.run_program("list(mr.Dataset.range(9).batch(2).numpy(verbose=True))")
        self.assertIn("batch", run.stderr)
        self.assertNotIn("\033", run.stderr)
        self.assertEqual(run.stdout, "")

    def test_watchdog(self):
        run = self.run_program(
            "slow = mr.Dataset.range(1).map(lambda x: time.sleep(0.3) or x, mr.Spec('int64', ()))\n"
            "print(list(slow.numpy(watchdog=0.1)))"
        )
        self.assertRegex(run.stderr, "has waited for 0.[12] s")
        self.assertRegex(run.stderr, "(works on|waits for) element 0")

    def test_repr(self):
        iterator = DS.range(3).numpy()
        self.assertIn("range(0, 3)", repr(iterator))
        iterator.close()
        self.assertIn("closed", repr(iterator))


class EndTest(unittest.TestCase):
    def test_after_the_end(self):
        iterator = DS.range(1).numpy()
        next(iterator)
        for _ in range(3):
            self.assertRaises(StopIteration, next, iterator)

    def test_close(self):
        with DS.range(1000).batch(10).numpy() as iterator:
            batch = next(iterator)
        iterator.close()
        iterator.close()
        iterator.cancel()
        calls = (lambda: next(iterator), iterator.state, lambda: iterator.restore(b""), iterator.statistics,
                 iterator.statistics_text, iterator.tuned, iterator.stop_trace)  # fmt: skip
        for call in calls:
            with self.assertRaisesRegex(ValueError, "closed"):
                call()
        del iterator
        gc.collect()
        np.testing.assert_array_equal(batch, np.arange(10))

    def test_elements_outlive_everything(self):
        iterator = DS.from_tensor_slices(np.arange(1000).reshape(100, 10)).batch(7).numpy()
        batches = list(iterator)
        copies = [batch.copy() for batch in batches]
        del iterator
        gc.collect()
        junk = [list(DS.range(1000).batch(70)) for _ in range(5)]
        del junk
        for batch, copy in zip(batches, copies):
            np.testing.assert_array_equal(batch, copy)
            batch += 1

    def test_cancel_from_another_thread(self):
        event = threading.Event()
        iterator = DS.range(5).map(lambda x: event.wait(10) and x or x, mr.Spec("int64", ())).numpy(threads=1)
        timer = threading.Timer(0.1, lambda: (iterator.cancel(), event.set()))
        timer.start()
        self.assertRaises(mr.errors.CancelledError, next, iterator)
        timer.join()
        self.assertRaises(mr.errors.CancelledError, next, iterator)

    def test_two_threads(self):
        iterator = DS.range(2000).numpy()
        found, failures = [], []

        def work():
            try:
                for element in iterator:
                    found.append(plain(element))
                    if element % 100 == 0:
                        iterator.statistics()
                        iterator.state()
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((sorted(found), failures), (list(range(2000)), []))

    def test_close_from_another_thread(self):
        for _ in range(20):
            iterator = DS.range(100000).numpy()
            failures = []

            def work():
                try:
                    for _ in iterator:
                        pass
                except (ValueError, mr.errors.CancelledError) as failure:
                    failures.append(failure)

            thread = threading.Thread(target=work)
            thread.start()
            time.sleep(0.002)
            iterator.close()
            thread.join(10)
            self.assertFalse(thread.is_alive())
            self.assertEqual(len(failures), 1)

    def test_signal_handlers(self):
        """A handler uses the iterator that the main thread is using: it is refused inside a call, and never waits."""
        found, refused = [], []

        def handler(number, frame):
            try:
                found.append(int(next(iterator)))
            except RuntimeError as error:
                refused.append(str(error))
            except StopIteration:
                pass
            for call in (iterator.statistics, iterator.state, iterator.close if refused else iterator.state):
                with contextlib.suppress(RuntimeError):
                    call()

        iterator = DS.range(200).map(lambda x: time.sleep(0.001) or x, mr.Spec("int64", ())).numpy(threads=1)
        before = signal.signal(signal.SIGALRM, handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
            with self.assertRaises((mr.errors.CancelledError, ValueError)):
                while True:
                    found.append(int(next(iterator)))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        self.assertIn("signal has interrupted", refused[0])
        self.assertEqual(sorted(found), list(range(len(found))))
        iterator.close()

    def test_an_iterator_is_not_copied(self):
        import copy
        import pickle

        iterator = DS.range(3).numpy()
        for call in (copy.copy, copy.deepcopy, pickle.dumps):
            self.assertRaises(TypeError, call, iterator)
        self.assertRaises(TypeError, pickle.dumps, DS.range(3))

    def test_as_dict(self):
        ds = DS.range(3).map(lambda x: {"n": x, "half": x / 2}).batch(3)
        (batch,) = ds.numpy(as_dict=True)
        self.assertEqual(plain(batch), {"n": [0, 1, 2], "half": [0.0, 0.5, 1.0]})
        with self.assertRaisesRegex(ValueError, "component 0 has no name"):
            DS.range(3).numpy(as_dict=True)

    def test_dlpack(self):
        (handle,) = DS.from_tensor_slices(np.arange(6, dtype="i4")).batch(6).dlpack()
        at = handle.numpy().__array_interface__["data"][0]
        array = np.from_dlpack(handle)
        self.assertEqual((handle.shape, handle.dtype, len(handle)), ((6,), "int32", 6))
        del handle
        gc.collect()
        self.assertEqual((array.tolist(), array.__array_interface__["data"][0]), (list(range(6)), at))

    def test_budget(self):
        ds = DS.from_tensor_slices(np.zeros((1000, 1000))).map(lambda x: x, mr.Spec("float64", (1000,))).cache()
        with self.assertRaises(mr.errors.ResourceExhaustedError):
            list(ds.numpy(budget_bytes=1 << 20))

    def test_a_function_cannot_wait_for_its_own_iterator(self):
        for name in ("__next__", "state", "close", "stop_trace"):
            def own(value):
                if value == 2:
                    getattr(iterator, name)()
                return value

            iterator = DS.range(5).map(own, mr.Spec("int64", ())).numpy(threads=1)
            found = []
            for _ in range(5):
                try:
                    found.append(int(next(iterator)))
                except mr.errors.UnknownError as error:
                    self.assertIn("an iterator of this pipeline", str(error))
            self.assertEqual(found, [0, 1, 3, 4], name)

    def test_a_function_may_use_other_iterators(self):
        numbers = DS.range(10).map(lambda value: 2 * value).numpy()
        both = DS.range(3).map(lambda value: value + next(numbers) + sum(DS.range(2).map(lambda x: x)))
        self.assertEqual(len(list(both.numpy(threads=1))), 3)

    def test_statistics_and_close_do_not_wait_for_an_element(self):
        blocked, go_on = threading.Event(), threading.Event()

        def wait(value):
            blocked.set()
            go_on.wait(60)
            return value

        iterator = DS.range(3).map(wait, mr.Spec("int64", ())).numpy(threads=1)
        failures = []

        def consume():
            try:
                next(iterator)
            except mr.errors.CancelledError as error:
                failures.append(error)

        thread = threading.Thread(target=consume)
        thread.start()
        self.assertTrue(blocked.wait(60))
        self.assertIn("map", iterator.statistics_text())
        self.assertEqual(len(iterator.statistics()), 2)
        iterator.cancel()
        go_on.set()
        iterator.close()
        thread.join(60)
        self.assertEqual(len(failures), 1)
        self.assertRaises(ValueError, iterator.statistics)

    def test_the_table_is_printed_once_when_it_is_closed(self):
        stream = io.StringIO()
        with contextlib.redirect_stderr(stream):
            with DS.range(1000).batch(10).numpy(verbose=True) as iterator:
                next(iterator)
            iterator.close()
        self.assertEqual(stream.getvalue().count("batch"), 1)

    def test_the_cause_is_the_exception_of_the_element(self):
        def fail(value):
            raise ValueError(int(value))

        iterator = DS.range(20).map(fail, mr.Spec("int64", ())).numpy()
        for number in range(20):
            with self.assertRaises(mr.errors.InvalidArgumentError) as caught:
                next(iterator)
            self.assertEqual(caught.exception.__cause__.args, (number,))


if __name__ == "__main__":
    unittest.main()
