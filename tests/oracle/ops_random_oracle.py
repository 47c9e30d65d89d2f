"""The random operators give TensorFlow's numbers for the same seeds: bit for bit, or nearly so where a logarithm, a
sine or an exponential is involved; and go on in later runs."""
import numpy as np
import tensorflow as tf
from ops_compare import add, generator, main, values

HALF, BFLOAT, FLOAT, DOUBLE = tf.float16, tf.bfloat16, tf.float32, tf.float64
SHAPES = [np.zeros(0, np.int32), [0], [1], [3], [7, 5], [2, 3, 4], [1001]]


def stateful():
    for shape in SHAPES:
        for dtype in (HALF, BFLOAT, FLOAT, DOUBLE):
            near = {HALF: 2e-3, BFLOAT: 2e-2, FLOAT: 3e-7, DOUBLE: 1e-15}[dtype]
            for runs in (1, 3):
                add("RandomUniform", 0, runs, shape=shape, dtype=dtype, seed=3, seed2=9)
                add("RandomStandardNormal", near, runs, shape=shape, dtype=dtype, seed=3, seed2=9)
                add("TruncatedNormal", near, runs, shape=np.int64(shape), dtype=dtype, seed=3, seed2=9)
        for dtype in (np.int32, np.int64):
            for low, high in ((0, 1), (-7, 100), (np.iinfo(dtype).min, np.iinfo(dtype).max)):
                add("RandomUniformInt", 0, 2, shape=shape, minval=dtype(low), maxval=dtype(high), seed=5, seed2=2**40)
    for value in (values([1]), values([17]), values([9, 2]), values([5, 2, 3], np.int8), np.array([b"a", b"bc", b"d"])):
        for runs in (1, 2, 3):
            add("RandomShuffle", 0, runs, value=value, seed=1, seed2=2)


def stateless():
    for shape in SHAPES:
        for dtype in (HALF, BFLOAT, FLOAT, DOUBLE):
            near = {HALF: 2e-3, BFLOAT: 2e-2, FLOAT: 3e-7, DOUBLE: 1e-15}[dtype]
            for seed in (np.int32([1, -2]), np.int64([2**50, 7])):
                add("StatelessRandomUniform", 0, shape=shape, seed=seed, dtype=dtype)
                add("StatelessRandomNormal", near, shape=shape, seed=seed, dtype=dtype)
                add("StatelessTruncatedNormal", near, shape=shape, seed=seed, dtype=dtype)
            key = dict(key=np.uint64([2**63 + 5]), counter=np.uint64([2**64 - 1, 3]), alg=1)
            add("StatelessRandomUniformV2", 0, shape=shape, dtype=dtype, **key)
            add("StatelessRandomNormalV2", near, shape=shape, dtype=dtype, **key)
            add("StatelessTruncatedNormalV2", near, shape=shape, dtype=dtype, **key)
        for dtype in (np.int32, np.int64):
            add("StatelessRandomUniformInt", 0, shape=shape, seed=[4, 5], minval=dtype(-5), maxval=dtype(1000))
            add("StatelessRandomUniformIntV2", 0, shape=shape, minval=dtype(-5), maxval=dtype(1000), **key)
        for dtype in (tf.int32, tf.int64, tf.uint32, tf.uint64):
            add("StatelessRandomUniformFullInt", 0, shape=shape, seed=[4, 5], dtype=dtype)
            add("StatelessRandomUniformFullIntV2", 0, shape=shape, dtype=dtype, **{**key, "alg": 3})
    rates = np.array([0.1, 0.7, 1.0, 3.5, 9.9, 10.0, 60.0, 1e4])
    for dtype in (np.float32, np.float64):
        add("StatelessRandomGammaV2", 1e-5, shape=[40, 8], seed=[4, 5], alpha=rates.astype(dtype))
        add("StatelessRandomGammaV3", 1e-5, shape=[5, 8], alpha=rates.astype(dtype), **key)
        add("StatelessRandomPoisson", 0, shape=[40, 8], seed=[4, 5], lam=rates.astype(dtype), dtype=np.int64)
        for counts, p in (([1, 5, 40, 3000], 0.3), ([2, 9, 40, 700], 0.9), ([4.5], [0.0, 0.01, 0.5, 1.0])):
            add("StatelessRandomBinomial", 0, shape=[60, 4], seed=[7, 5], counts=dtype(counts), probs=dtype(p),
                dtype=np.int32)
    add("StatelessRandomGetKeyCounter", 0, seed=np.int64([2**40, -1]))
    add("StatelessRandomGetKeyCounterAlg", 0, seed=np.int32([1, 2]))
    add("StatelessRandomGetAlg", 0)


def multinomial():
    for dtype in (np.float16, tf.bfloat16.as_numpy_dtype, np.float32, np.float64):
        for rows, classes, samples in ((1, 1, 1), (3, 5, 7), (4, 100, 9), (0, 3, 2), (2, 3, 0)):
            logits = values([rows, classes], dtype)
            if rows == 3:
                logits[1, 2], logits[2, 0] = -np.inf, np.nan
            for runs in (1, 2):
                add("Multinomial", 0, runs, logits=logits, num_samples=samples, seed=7, seed2=1, output_dtype=tf.int32)
            add("StatelessMultinomial", 0, logits=logits, num_samples=samples, seed=[3, 4])


def each():
    alphas = np.array([0.01, 0.3, 0.99, 1.0, 1.5, 3, 40, 1000])
    rates = np.array([0.0, 0.3, 3, 9.99, 10, 25.5, 400, 10000])
    for dtype in (np.float16, np.float32, np.float64):
        near = {np.float16: 2e-3, np.float32: 3e-7, np.float64: 1e-12}[dtype]
        for shape in (np.zeros(0, np.int32), [1], [3, 5], [50]):
            for runs in (1, 2):
                add("RandomGamma", near, runs, shape=shape, alpha=alphas.astype(dtype), seed=3, seed2=4)
                add("RandomPoissonV2", 0, runs, shape=shape, rate=rates.astype(dtype), seed=3, seed2=4, dtype=tf.int64)
            add("RandomPoissonV2", 0, shape=shape, rate=rates.astype(dtype), seed=3, seed2=4, dtype=tf.float32)
    add("RandomPoissonV2", 0, shape=[5], rate=np.int32([1, 20]), seed=3, seed2=4, dtype=tf.int32)
    for dtype, near in ((np.float32, 2e-4), (np.float64, 1e-9)):
        a = values([4, 50], dtype, 0.05, 30)
        add("RandomGammaGrad", near, alpha=a, sample=values([50], dtype, 0.01, 40))
        add("RandomGammaGrad", near, alpha=dtype(2), sample=values([2, 3], dtype, 0, 4))


def bounded():
    for dtype in (np.float16, np.float32, np.float64):
        near = {np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-13}[dtype]
        for low, high in ((-1, 1), (-2, 9), (-0.1, 0.1), (2, 3), (3, np.inf), (-np.inf, -1), (0.5, 8), (-9, 0.2)):
            for runs in (1, 2):
                add("ParameterizedTruncatedNormal", near, runs, shape=[3, 7], means=dtype(0.25), stdevs=dtype(1.5),
                    minvals=dtype(low), maxvals=dtype(high), seed=3, seed2=8)
            add("ParameterizedTruncatedNormal", near, shape=[3, 7], means=np.array([0, 1, -1], dtype),
                stdevs=np.array([1, 2, 0.5], dtype), minvals=dtype(low), maxvals=dtype(high), seed=3, seed2=8)


def candidates():
    for operator in ("Uniform", "LogUniform", "LearnedUnigram", "ThreadUnsafeUnigram"):
        for unique in (False, True):
            for range_max, sampled in ((5, 5), (64, 10), (1000, 100), (100000, 3)):
                for runs in (1, 2, 3):
                    add(f"{operator}CandidateSampler", 3e-7, runs, true_classes=values([3, 2], np.int64, 0, 5),
                        num_true=2, num_sampled=sampled, unique=unique, range_max=range_max, seed=4, seed2=runs)
    for distortion in (1.0, 0.75):
        for unique in (False, True):
            add("FixedUnigramCandidateSampler", 3e-7, 2, true_classes=values([3, 2], np.int64, 0, 5), num_true=2,
                num_sampled=4, unique=unique, range_max=7, unigrams=[1.0, 5, 2.5, 7, 0.5], num_reserved_ids=2,
                distortion=distortion, seed=4, seed2=5)
    add("AllCandidateSampler", 0, true_classes=values([3, 2], np.int64, 0, 5), num_true=2, num_sampled=6, unique=True)
    for count in (0, 1, 50):
        add("ComputeAccidentalHits", 0, true_classes=values([9, 3], np.int64, 0, 60),
            sampled_candidates=values([count], np.int64, 0, 60), num_true=3)


def tails():
    for dtype, near in ((np.float32, 1e-3), (np.float64, 1e-8)):
        alpha = np.array([[1e-3], [0.5], [1], [5], [60]], dtype)
        sample = np.exp(np.linspace(-700, 7, 200)).astype(dtype)
        add("RandomGammaGrad", near, alpha=alpha, sample=sample)


main(stateful, stateless, multinomial, each, bounded, candidates, tails)
