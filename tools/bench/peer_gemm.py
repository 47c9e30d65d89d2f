"""The products of the suite "gemm": matrices of training and of the usual tables, alone. Beside TensorFlow (oneDNN)
there are the OpenBLAS of NumPy and, if `pip install mkl` has put it there, MKL; the fastest counts."""
import ctypes
import glob
import os
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf

rng = np.random.default_rng(1)
# m, n, k, which of the two are transposed, number of products
SHAPES = [
    *[(size, size, size, "NN", 1) for size in [64, 128, 256, 512, 1000, 1024, 2048]],
    *[(512, 512, 512, which, 1) for which in ["NT", "TN", "TT"]],
    # a dense layer and its gradients: MNIST, a small CNN, the output of a language model
    (128, 512, 784, "NN", 1), (128, 784, 512, "NT", 1), (784, 512, 128, "TN", 1),
    (128, 1024, 3136, "NN", 1), (128, 3136, 1024, "NT", 1), (3136, 1024, 128, "TN", 1),
    (400, 10000, 200, "NN", 1), (400, 200, 10000, "NT", 1), (200, 10000, 400, "TN", 1),
    # the cell of an LSTM, and its gradients
    (20, 800, 400, "NN", 1), (20, 400, 800, "NT", 1), (400, 800, 20, "TN", 1),
    # a transformer: projections, the feed-forward layer, the scores of its heads
    (1024, 512, 512, "NN", 1), (1024, 2048, 512, "NN", 1), (1024, 512, 2048, "NN", 1),
    (1024, 512, 512, "NT", 1), (512, 512, 1024, "TN", 1), (512, 2048, 1024, "TN", 1),
    (128, 128, 64, "NT", 64), (128, 64, 128, "NN", 64),
    # vectors, outer products, and what is tall or wide
    (1, 1024, 1024, "NN", 1), (1024, 1, 1024, "NN", 1), (1024, 1024, 1, "NN", 1), (1, 1024, 1024, "NT", 1),
    (10000, 16, 64, "NN", 1), (16, 10000, 64, "NN", 1), (64, 64, 10000, "TN", 1),
]  # fmt: skip
DTYPES = {tf.float32: SHAPES, tf.float64: [s for s in SHAPES if s[0] in (256, 1024, 400, 20)],
          tf.bfloat16: [s for s in SHAPES if s[0] in (256, 512, 1024, 20)], tf.float16: [(512, 512, 512, "NN", 1)]}


def make(m, n, k, which, batch, dtype):
    stack = [] if batch == 1 else [batch]
    a, b = which == "TN" or which == "TT", which == "NT" or which == "TT"
    shapes = [stack + ([k, m] if a else [m, k]), stack + ([n, k] if b else [k, n])]
    if dtype == tf.bfloat16:  # a .npy file has no such dtype
        x, y = [tf.get_variable(name, initializer=tf.cast(tf.random_normal(shape), dtype))
                for name, shape in zip("xy", shapes)]
    else:
        x, y = [tf.placeholder(dtype, shape) for shape in shapes]
    z = tf.matmul(x, y, transpose_a=a, transpose_b=b)
    inputs = [] if dtype == tf.bfloat16 else [x, y]
    return {v: rng.normal(size=v.shape.as_list()).astype(dtype.as_numpy_dtype) for v in inputs}, [], [z.op]


PRODUCTS = {
    f"{f'{batch} x ' if batch > 1 else ''}{m} x {n} x {k} {which} {dtype.name.replace('float32', 'float')}":
        lambda arguments=(m, n, k, which, batch, dtype): make(*arguments)
    for dtype, shapes in DTYPES.items()
    for m, n, k, which, batch in shapes
}  # fmt: skip


def mkl(threads):
    """MKL's library, or None."""
    for path in glob.glob(os.path.join(sys.prefix, "lib", "libmkl_rt.so*")):
        try:
            library = ctypes.CDLL(path)
            library.MKL_Set_Num_Threads(threads)
            return library
        except OSError:
            pass
    return None


class Libraries:
    """The product of one task by each library other than TensorFlow: name and function."""

    def __init__(self, name, values, threads):
        which, dtype = name.split()[-2:]
        self.calls = {}
        if dtype not in ("float", "float64"):
            return
        x, y = values
        a = x.swapaxes(-1, -2) if which[0] == "T" else x
        b = y.swapaxes(-1, -2) if which[1] == "T" else y
        z = np.matmul(a, b)
        self.calls["OpenBLAS"] = lambda: np.matmul(a, b, out=z)
        library = mkl(threads)
        if library:
            self.calls["MKL"] = self.of_mkl(library, which, x, y, z)

    def of_mkl(self, library, which, x, y, z):
        m, n, k = z.shape[-2], z.shape[-1], x.shape[-2 if which[0] == "T" else -1]
        real = ctypes.c_float if z.dtype == np.float32 else ctypes.c_double
        letter = "s" if z.dtype == np.float32 else "d"
        pointers = [v.ctypes.data_as(ctypes.c_void_p) for v in (x, y, z)]
        order, flags = 101, [112 if w == "T" else 111 for w in which]
        sizes = [ctypes.c_int(v) for v in (m, n, k)]
        rows = [ctypes.c_int(v.shape[-1]) for v in (x, y, z)]
        if z.ndim == 2:
            function = getattr(library, f"cblas_{letter}gemm")
            arguments = [order, *flags, *sizes, real(1), pointers[0], rows[0], pointers[1], rows[1], real(0),
                         pointers[2], rows[2]]
        else:
            function = getattr(library, f"cblas_{letter}gemm_batch_strided")
            steps = [ctypes.c_int(v.shape[-1] * v.shape[-2]) for v in (x, y, z)]
            arguments = [order, *flags, *sizes, real(1), pointers[0], rows[0], steps[0], pointers[1], rows[1], steps[1],
                         real(0), pointers[2], rows[2], steps[2], ctypes.c_int(len(z))]
        return lambda: function(*arguments)


class Fastest:
    """A task of the suite: TensorFlow's time or that of a library, whichever is the smallest when it is first asked."""

    def __init__(self, name, task, threads):
        self.name, self.task, self.threads = name, task, threads
        self.best = None

    def run(self, count):
        if self.best is None:
            self.task.run(1)
            calls = Libraries(self.name, self.task.values, self.threads).calls
            times = {"": self.time_of(self.task.run)}
            for library, call in calls.items():
                times[library] = self.time_of(lambda n, call=call: self.repeat(call, n))
            self.library = min(times, key=times.get)
            self.best = self.task.run if self.library == "" else lambda n: self.repeat(calls[self.library], n)
        return self.best(count)

    @staticmethod
    def repeat(call, count):
        start = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - start) / count

    @staticmethod
    def time_of(run):
        run(2)
        count = max(1, int(0.03 / run(2)))
        return min(run(count) for _ in range(3))
