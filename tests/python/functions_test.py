"""Functions of the program in pipelines, compared with plain Python."""
import multiprocessing
import random
import unittest

import numpy as np

import millrace as mr

# The default before Python 3.14; workers that start in other ways cannot run lambdas.
multiprocessing.set_start_method("fork", force=True)

INT = mr.Spec("int64", ())


def step(choose):
    """A transformation and the same for a list."""
    k = choose.randrange(2, 5)
    return choose.choice(
        [
            (lambda ds, p: ds.map(lambda x: x * k + 1, INT, processes=p), lambda xs: [x * k + 1 for x in xs]),
            (lambda ds, p: ds.filter(lambda x: x % k != 0), lambda xs: [x for x in xs if x % k]),
            (lambda ds, p: ds.take_while(lambda x: x < 150), lambda xs: _take_while(xs, 150)),
            (
                lambda ds, p: ds.flat_map(lambda x: mr.Dataset.range(int(x) % k), INT),
                lambda xs: [i for x in xs for i in range(x % k)],
            ),
            (lambda ds, p: ds.scan(0, lambda s, x: (s + x, s), INT), _scan),
            (lambda ds, p: ds.skip(k).take(40), lambda xs: xs[k:][:40]),
        ]
    )


def _take_while(xs, limit):
    return xs[: next((i for i, x in enumerate(xs) if x >= limit), len(xs))]


def _scan(xs):
    found, state = [], 0
    for x in xs:
        found.append(state)
        state += x
    return found


class FunctionsTest(unittest.TestCase):
    def test_random_pipelines(self):
        for seed in range(40):
            choose = random.Random(seed)
            processes = choose.choice((0, 0, 1, 2))
            ds, expected = mr.Dataset.range(60), list(range(60))
            for _ in range(choose.randrange(1, 5)):
                build, model = step(choose)
                ds, expected = build(ds, processes), model(expected)
            for count in (1, 2, 8):
                with self.subTest(seed=seed, threads=count), ds.numpy(threads=count) as iterator:
                    self.assertEqual(list(iterator), expected)
            at = choose.randrange(len(expected) + 1)
            with ds.numpy(threads=2) as iterator:
                for _ in range(at):
                    next(iterator)
                state = iterator.state()
            with ds.numpy(threads=1) as iterator:
                iterator.restore(state)
                self.assertEqual(list(iterator), expected[at:])

    def test_wrong_results(self):
        wrong = [None, 1.5, "text", [1, 2], (1, 2), {"a": 1}, (x for x in [1]), object(), np.zeros(3, np.int64)]
        for processes in (0, 1):
            for value in wrong:
                ds = mr.Dataset.range(3).map(lambda x, v=value: v, INT, processes=processes)
                with self.subTest(value=value, processes=processes), ds.numpy() as iterator:
                    with self.assertRaises(mr.errors.InvalidArgumentError):
                        next(iterator)

    def test_exceptions(self):
        for raised, kind in (
            (ValueError("a"), mr.errors.InvalidArgumentError),
            (MemoryError("b"), mr.errors.ResourceExhaustedError),
            (NotImplementedError("c"), mr.errors.UnimplementedError),
            (ZeroDivisionError("d"), mr.errors.UnknownError),
            (StopIteration("e"), mr.errors.UnknownError),
            (mr.errors.DataLossError(None, None, "f"), mr.errors.DataLossError),
        ):
            for processes in (0, 1):

                def function(x):
                    raise raised

                with mr.Dataset.range(3).map(function, INT, processes=processes).numpy() as iterator:
                    with self.assertRaises(kind) as caught:
                        next(iterator)
                    self.assertIs(type(caught.exception.__cause__), type(raised))
                    self.assertIn("element 0", str(caught.exception))

    def test_groups_windows_and_reduce(self):
        ds = mr.Dataset.range(20)
        groups = ds.group_by_window(lambda x: x % 2, lambda key, window: window.batch(5), 5)
        self.assertEqual([list(g) for g in groups][0], [0, 2, 4, 6, 8])
        windows = ds.window(4, shift=2, drop_remainder=True, function=lambda w: w.batch(4))
        self.assertEqual([list(w) for w in windows], [list(range(i, i + 4)) for i in range(0, 17, 2)])
        self.assertEqual(ds.reduce(np.int64(0), lambda s, x: s + x), sum(range(20)))
        found = list(ds.interleave(lambda x: mr.Dataset.range(2), 3, 1, output_signature=INT))
        self.assertEqual(len(found), 40)


if __name__ == "__main__":
    unittest.main()
