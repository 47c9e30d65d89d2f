"""What a program of this directory returns, and the list of all programs.

A program is a function that builds a graph, as the training programs of 2016 to 2019 did, and returns a Training."""
import numpy as np
import tensorflow.compat.v1 as tf

PROGRAMS = []


class Training:
    """What is run in each step, in TensorFlow and in millrace.

    runs       [(fetches, targets), …]: the session runs of one step; fetches are compared, targets are operations
    feed       step -> feed_dict for all runs of the step
    setup      operations that are run one after the other, after the variables are restored
    steps      how many
    tolerance  of the fetches, relative
    queues     whether queue runners are started
    saver      of the checkpoints; None: tf.train.Saver()
    summaries  names of fetches that are Summary messages"""

    def __init__(self, *runs, feed=None, setup=(), steps=20, tolerance=1e-4, queues=False, saver=None, variables=None,
                 summaries=(), same_initial=True, unordered=False):
        self.runs = [(list(fetches), list(targets)) for fetches, targets in runs]
        self.feed = feed or (lambda step: {})
        self.setup = list(setup)
        self.steps = steps
        self.tolerance = tolerance
        self.queues = queues
        self.saver = saver
        self.variables = variables
        self.summaries = set(summaries)
        self.same_initial = same_initial
        self.unordered = unordered


def program(function):
    PROGRAMS.append(function)
    return function


def each(**choices):
    """Makes a program for each value of one keyword argument."""
    (name, values), = choices.items()

    def add(function):
        for value in values:
            PROGRAMS.append(lambda value=value: function(**{name: value}))
            PROGRAMS[-1].__name__ = f"{function.__name__}_{value}"
        return function

    return add


def rng(step, salt=0):
    return np.random.default_rng([salt, step])


def floats(step, *shape, salt=0):
    return rng(step, salt).normal(size=shape).astype(np.float32)


def ints(step, high, *shape, salt=0, dtype=np.int32):
    return rng(step, salt + 100).integers(0, high, size=shape).astype(dtype)


def blobs(step, batch, features, classes):
    """Points of classes around fixed centers: (float32[batch, features], int32[batch])."""
    centers = floats(0, classes, features, salt=77) * 2
    labels = ints(step, classes, batch, salt=5)
    return centers[labels] + floats(step, batch, features, salt=6), labels


def images(step, batch, size=12, channels=1, classes=4):
    """Images in which a bright square is in a corner, the label."""
    labels = ints(step, classes, batch, salt=8)
    pixels = floats(step, batch, size, size, channels, salt=9) * 0.3
    half = size // 2
    for i, label in enumerate(labels):
        y, x = (label // 2 % 2) * half, (label % 2) * half
        pixels[i, y : y + half, x : x + half] += 1
    return pixels, labels


def sequences(step, batch, length, vocabulary):
    """Token sequences that count upwards from a random start: int32[batch, length + 1]."""
    start = ints(step, vocabulary, batch, 1, salt=10)
    stride = ints(step, 3, batch, 1, salt=11) + 1
    return (start + stride * np.arange(length + 1)) % vocabulary


__all__ = ["Training", "program", "each", "rng", "floats", "ints", "blobs", "images", "sequences", "np", "tf"]
