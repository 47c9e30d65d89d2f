"""Compares with TensorFlow's kernels: element-wise operators, reductions and scans with every dtype that they have,
special functions, bits, complex numbers, counting and segments."""
import numpy as np
import tensorflow as tf
from ops_compare import HALVES, INF, NAN, add, cases, generator, main, raw, values

BFLOAT16 = tf.bfloat16.as_numpy_dtype
REALS = [np.float32, np.float64]
SIGNED = [np.int8, np.int16, np.int32, np.int64]
UNSIGNED = [np.uint8, np.uint16, np.uint32, np.uint64]
INTEGERS = SIGNED + UNSIGNED
COMPLEX = [np.complex64, np.complex128]
NUMBERS = REALS + HALVES + INTEGERS
ALL = NUMBERS + COMPLEX


def draw(shape, dtype, low=-4.0, high=4.0):
    if np.issubdtype(np.dtype(dtype), np.complexfloating):
        parts = [generator.uniform(low, high, shape) for _ in range(2)]
        return (parts[0] + 1j * parts[1]).astype(dtype)
    return values(shape, dtype, low, high)


def tolerance(dtype, of_float=2e-6):
    return {np.float16: 4e-3, BFLOAT16: 4e-2, np.float64: 1e-11, np.complex128: 1e-11}.get(
        dtype, 0 if dtype in INTEGERS else of_float
    )


def unary_cases():
    fields = REALS + HALVES + COMPLEX
    for name, dtypes, low, high in [
        ("Neg", fields + SIGNED, -4, 4),
        ("Sign", fields + SIGNED, -4, 4),
        ("Square", ALL, -20, 20),
        ("Abs", REALS + HALVES + SIGNED, -4, 4),
        ("Sqrt", fields, 0.1, 4),
        ("Rsqrt", fields, 0.1, 4),
        ("Reciprocal", fields, 0.5, 4),
        ("Inv", fields, 0.5, 4),
        ("Exp", fields, -4, 4),
        ("Expm1", fields, -4, 4),
        ("Log", fields, 0.1, 4),
        ("Log1p", fields, 0.1, 4),
        ("Sin", fields, -4, 4),
        ("Cos", fields, -4, 4),
        ("Tan", fields, -1, 1),
        ("Asin", fields, -0.9, 0.9),
        ("Acos", fields, -0.9, 0.9),
        ("Atan", fields, -4, 4),
        ("Sinh", fields, -4, 4),
        ("Cosh", fields, -4, 4),
        ("Tanh", fields, -3, 3),
        ("Asinh", fields, -4, 4),
        ("Acosh", fields, 1.1, 9),
        ("Atanh", fields, -0.9, 0.9),
        ("Sigmoid", fields, -4, 4),
        ("Erf", REALS + HALVES, -3, 3),
        ("Erfc", REALS + HALVES, -3, 3),
        ("Lgamma", REALS + [np.float16], 0.2, 9),
        ("Floor", REALS + HALVES, -4, 4),
        ("Ceil", REALS + HALVES, -4, 4),
        ("Round", REALS + HALVES + [np.int32, np.int64], -4, 4),
        ("IsNan", REALS + HALVES, -4, 4),
        ("IsInf", REALS + HALVES, -4, 4),
        ("IsFinite", REALS + HALVES, -4, 4),
    ]:
        for dtype in dtypes:
            for shape in [[257], [], [0, 3]]:
                add(name, tolerance(dtype), x=draw(shape, dtype, low, high))
    for name in ["Asinh", "Acosh", "Atanh", "IsNan", "IsInf", "IsFinite"]:
        for dtype in REALS + [np.float16]:
            add(name, tolerance(dtype), x=np.array([NAN, INF, -INF, 0, -0.0, 1, -1, 0.5, 2], dtype))
    for name in ["Relu", "Relu6"]:
        for dtype in NUMBERS:
            add(name, 0, features=draw([5, 9], dtype, -10, 10))
    for name in ["Elu", "Selu", "Softplus", "Softsign"]:
        for dtype in HALVES:
            add(name, 0 if name in ["Elu", "Selu"] else tolerance(dtype), features=draw([100], dtype, -4, 4))
    for name in ["ReluGrad", "Relu6Grad"]:
        for dtype in NUMBERS:
            add(name, 0, gradients=draw([5, 9], dtype, -10, 10), features=draw([5, 9], dtype, -10, 10))
        gradients, features = np.array([[NAN, INF, -1, NAN], [-1, -2, -3, 1]], np.float32)
        add(name, 0, gradients=gradients, features=features)
    for dtype in HALVES + REALS:
        add("LeakyRelu", 0, features=draw([100], dtype), alpha=0.3)
        add("LeakyReluGrad", 0, gradients=draw([100], dtype), features=draw([100], dtype), alpha=0.3)
        for name in ["EluGrad", "SeluGrad"]:
            add(name, tolerance(dtype), gradients=draw([100], dtype), outputs=draw([100], dtype, -0.9))
        for name in ["SoftplusGrad", "SoftsignGrad"]:
            add(name, tolerance(dtype), gradients=draw([100], dtype), features=draw([100], dtype))
        add("L2Loss", tolerance(dtype), t=draw([9, 11], dtype))
    for dtype in fields:
        for name in ["SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad", "TanhGrad", "SigmoidGrad"]:
            add(name, 5 * tolerance(dtype), y=draw([77], dtype, 0.3, 1.5), dy=draw([77], dtype))
            # The second one may have any shape of as many elements.
            add(name, 5 * tolerance(dtype), y=draw([6, 4], dtype, 0.3, 1.5), dy=draw([2, 3, 4], dtype))
            add(name, 5 * tolerance(dtype), y=draw([1], dtype, 0.3, 1.5), dy=draw([], dtype))
            add(name, 5 * tolerance(dtype), y=draw([], dtype, 0.3, 1.5), dy=draw([1, 1], dtype))
            add(name, 5 * tolerance(dtype), y=draw([0], dtype, 0.3, 1.5), dy=draw([2, 0], dtype))
    for name in ["SqrtGrad", "RsqrtGrad", "ReciprocalGrad"]:
        add(name, 1e-6, y=np.array([0, INF, 0, 2, INF], np.float32), dy=np.array([0, 0, 1, 3, 1], np.float32))
    for dtype in ALL:
        add("AddN", tolerance(dtype), inputs=[draw([4, 5], dtype) for _ in range(3)])


def binary_cases():
    fields = REALS + HALVES + COMPLEX
    for name, dtypes in [
        ("Add", [d for d in ALL if d not in (np.uint16, np.uint32, np.uint64)]),
        ("AddV2", ALL),
        ("Sub", ALL),
        ("Mul", ALL),
        ("MulNoNan", fields),
        ("SquaredDifference", fields + [np.int32, np.int64]),
        ("Maximum", NUMBERS),
        ("Minimum", NUMBERS),
        ("Less", NUMBERS),
        ("LessEqual", NUMBERS),
        ("Greater", NUMBERS),
        ("GreaterEqual", NUMBERS),
        ("Equal", ALL),
        ("NotEqual", ALL),
    ]:
        for dtype in dtypes:
            for a, b in [([6, 7], [7]), ([], [5]), ([3, 1], [1, 4]), ([0, 2], [2]), ([257], [257])]:
                add(name, tolerance(dtype), x=draw(a, dtype, -100, 100), y=draw(b, dtype, -100, 100))
    for a, b in [([2, 3], [3]), ([], [4]), ([2, 1], [1, 3]), ([0], [1])]:
        words = [generator.choice(np.array([b"", b"a", b"longer than sixteen bytes"], object), s) for s in (a, b)]
        add("Add", 0, x=np.array(words[0], object), y=np.array(words[1], object))
    for name in ["Equal", "NotEqual"]:
        for dtype in COMPLEX:
            same = draw([9], dtype)
            add(name, 0, x=same, y=np.where(np.arange(9) % 2 == 0, same, same.conj()))
    for name, dtypes in [
        ("Div", ALL),
        ("RealDiv", fields),
        ("TruncateDiv", NUMBERS),
        ("DivNoNan", fields),
        ("FloorDiv", NUMBERS),
        ("FloorMod", NUMBERS),
        ("TruncateMod", REALS + [np.int32, np.int64]),
        ("Mod", REALS + [np.int32, np.int64]),
    ]:
        for dtype in dtypes:
            sign = 1 if dtype in UNSIGNED else generator.choice([-1, 1], [300])
            divisor = (draw([300], dtype, 1, 9) * np.asarray(sign).astype(dtype)).astype(dtype)
            add(name, tolerance(dtype), x=draw([300], dtype, -100, 100), y=divisor)
    for dtype in SIGNED:
        lowest = np.array([np.iinfo(dtype).min, 7, -7, 0], dtype)
        for name in ["Div", "FloorDiv", "FloorMod", "TruncateDiv"]:
            if name == "FloorDiv" or dtype != np.int64:
                add(name, 0, x=lowest[1:], y=np.array([-1, -2, 3], dtype))
    for dtype in fields:
        add("DivNoNan", tolerance(dtype), x=draw([4], dtype), y=np.array([0, 1, 2, 0], dtype))
        add("MulNoNan", tolerance(dtype), x=np.array([NAN, INF, 2, 1], dtype), y=np.array([0, 0, 2, 0], dtype))
    for dtype in fields + SIGNED:
        add("Pow", 20 * tolerance(dtype), x=draw([60], dtype, 1, 3), y=draw([60], dtype, 0, 3))
    for dtype in HALVES + REALS:
        add("Atan2", tolerance(dtype), y=draw([60], dtype), x=draw([60], dtype))
    special = np.array([NAN, INF, -INF, 0, -0.0, 1, -1, -2, 3], np.float64)
    for name in ["Xlogy", "Xdivy", "Xlog1py"]:
        for dtype in fields:
            add(name, 2 * tolerance(dtype), x=draw([40], dtype, 0, 3), y=draw([40], dtype, 0.3, 3))
            add(name, 2 * tolerance(dtype), x=np.zeros([3], dtype), y=np.array([0, NAN, -1], dtype))
        for dtype in REALS:
            a, b = np.meshgrid(special.astype(dtype), special.astype(dtype))
            add(name, tolerance(dtype), x=a, y=b)
    for dtype in REALS:
        a, b = np.meshgrid(special.astype(dtype), special.astype(dtype))
        add("NextAfter", 0, x1=a, x2=b)
        add("Atan2", tolerance(dtype), x=a, y=b)
        near = np.array([1, 2.1, INF, NAN, 3.000001], dtype)
        add("ApproximateEqual", 0, x=np.array([1, 2, INF, NAN, 3], dtype), y=near)
        nearby = raw.ApproximateEqual(x=draw([3, 4], dtype), y=draw([3, 4], dtype), tolerance=0.5)
        cases.append((nearby.op, 0, 1))
    for dtype in NUMBERS:
        add("Maximum", 0, x=draw([33], dtype), y=draw([33], dtype))
        if dtype in HALVES:
            add("Maximum", 0, x=np.array([NAN, 1, NAN], dtype), y=np.array([2, NAN, NAN], dtype))
            add("Minimum", 0, x=np.array([NAN, 1, NAN], dtype), y=np.array([2, NAN, NAN], dtype))
        for shape in [[3], [5, 3], [2, 0, 3], [400, 3]]:
            add("Cross", tolerance(dtype, 1e-5), a=draw(shape, dtype, -9, 9), b=draw(shape, dtype, -9, 9))
    for dtype in REALS + HALVES + [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16]:
        low, high = np.array(1, dtype), np.array(3, dtype)
        add("ClipByValue", 0, t=draw([50], dtype, -9, 9), clip_value_min=low, clip_value_max=high)
        add("ClipByValue", 0, t=draw([50], dtype, -9, 9), clip_value_min=high, clip_value_max=low)
        rows = draw([50], dtype, -9, 9)
        add("ClipByValue", 0, t=draw([50], dtype, -9, 9), clip_value_min=rows, clip_value_max=rows + high)
        add("ClipByValue", 0, t=draw([50], dtype, -9, 9), clip_value_min=rows, clip_value_max=rows - low)
        add("UnsortedSegmentSum", 0, data=draw([4, 0], dtype), segment_ids=[0, 9, 1, -1], num_segments=3)
    for dtype in ALL:
        add("BiasAdd", tolerance(dtype), value=draw([4, 3, 5], dtype), bias=draw([5], dtype))
        if dtype not in HALVES:
            add("BiasAddGrad", tolerance(dtype, 1e-5), out_backprop=draw([4, 3, 5], dtype))


def special_cases():
    odd = [NAN, INF, -INF, 0.0, -0.0, -1.0, -2.0, -0.5, -1.5, 1e-300, 1.0, 2.0, 800.0, -800.0, 20.0]
    spans = {
        "Digamma": (-5, 20),
        "Lgamma": (-5, 20),
        "Ndtri": (0, 1),
        "Erfinv": (-0.98, 0.98),
        "BesselI0": (-60, 60),
        "BesselI0e": (-60, 60),
        "BesselI1": (-60, 60),
        "BesselI1e": (-60, 60),
        "BesselJ0": (-30, 30),
        "BesselJ1": (-30, 30),
        "BesselY0": (0, 30),
        "BesselY1": (0, 30),
        "BesselK0": (0, 30),
        "BesselK0e": (0, 60),
        "BesselK1": (0, 30),
        "BesselK1e": (0, 60),
        "Dawsn": (-20, 20),
        "Expint": (0, 60),
        "FresnelCos": (-9, 9),
        "FresnelSin": (-9, 9),
        "Spence": (0, 20),
    }
    for name, (low, high) in spans.items():
        for dtype in REALS:
            bound = 3e-6 if dtype == np.float32 else 1e-10
            add(name, bound, x=values([500], dtype, low, high))
            add(name, bound, x=values([100], dtype, low / 20, high / 20))
            with np.errstate(over="ignore"):
                if name != "BesselY1" or dtype == np.float64:
                    # TensorFlow's Fresnel integrals of large floats are inaccurate.
                    rough = 5e-5 if name.startswith("Fresnel") else 1e-5
                    add(name, rough, x=np.array(odd, np.float64).astype(dtype))
        if name.startswith("Bessel") or name in ("Digamma", "Lgamma"):
            add(name, 5e-3, x=values([50], np.float16, 0.5, 5))
    for dtype in REALS:
        bound = 2e-5 if dtype == np.float32 else 1e-9
        for high in [1, 5, 40]:
            a, x = values([200], dtype, 0.05, high), values([200], dtype, 0.01, high)
            add("Igamma", bound, a=a, x=x)
            add("Igammac", bound, a=a, x=x)
            add("IgammaGradA", 5 * bound, a=a, x=x)
            add("Betainc", bound, a=a, b=values([200], dtype, 0.1, high), x=values([200], dtype, 0, 1))
            add("Zeta", bound, x=values([200], dtype, 1.1, high + 2), q=values([200], dtype, 0.3, high))
            orders = np.floor(values([200], dtype, 0, 5))
            add("Polygamma", bound, a=orders, x=values([200], dtype, 0.5, high))
        if dtype == np.float64:
            near = np.array([-1e-10, -1e-45, 1e-45, -1e-300, -1e-5, -1.000000001, -2.0000001, -100.3, -1e10 - 0.5])
            add("Digamma", 1e-14, x=near)
            x = np.array([3, 89, 89, 2, 2, 4, 5, 2, 100, 3.0])
            q = np.array([-1e-10, -0.5, -1.25, -1e-10, -1.5, -1e-45, -2.3, -1e-200, -3.7, -40.25])
            add("Zeta", 1e-13, x=x, q=q)
            add("Zeta", bound, x=np.array([2, 3, 4, 5, 2.0]), q=np.array([-0.5, -1.25, -3.3, -7.75, -100.5]))
        add("Betainc", bound, a=np.array(2, dtype), b=values([3, 4], dtype, 1, 3), x=np.array(0.25, dtype))
        add("Betainc", bound, a=np.array(2, dtype), b=np.array(2, dtype), x=np.array(0.25, dtype))
        few = np.array([NAN, INF, -INF, 0, -0.5, -1, -2, 0.5, 1, 2, 3, -2.5], dtype)
        a, b = np.meshgrid(few, few)
        for name, (first, second) in {
            "Igamma": "ax",
            "Igammac": "ax",
            "IgammaGradA": "ax",
            "Zeta": "xq",
            "Polygamma": "ax",
        }.items():
            add(name, 1e-4, **{first: a, second: b})
        a, b = np.meshgrid(np.array([NAN, INF, 0, -1, 0.5, 1, 3], dtype), np.array([NAN, 0, 1, 0.5, -0.1, 1.1], dtype))
        for third in [0.5, 0, -1, 2]:
            add("Betainc", 1e-5, a=a, b=np.full_like(a, third), x=b)


def bit_cases():
    for dtype in INTEGERS:
        info = np.iinfo(dtype)
        wide = generator.integers(info.min, info.max, [6, 40], dtype=dtype, endpoint=True)
        row = generator.integers(info.min, info.max, [40], dtype=dtype, endpoint=True)
        for name in ["BitwiseAnd", "BitwiseOr", "BitwiseXor"]:
            add(name, 0, x=wide, y=row)
            add(name, 0, x=row[:0], y=row[:1])
        for name in ["LeftShift", "RightShift"]:
            add(name, 0, x=wide, y=row)
            add(name, 0, x=wide, y=draw([40], dtype, -2, 70))
        add("Invert", 0, x=wide)
        add("PopulationCount", 0, x=wide)


def complex_cases():
    for dtype, real in [(np.complex64, np.float32), (np.complex128, np.float64)]:
        tf_real = tf.as_dtype(real)
        add("Complex", 0, real=draw([3, 4], real), imag=draw([4], real), Tout=tf.as_dtype(dtype))
        add("Complex", 0, real=draw([], real), imag=draw([2, 1], real), Tout=tf.as_dtype(dtype))
        odd = np.array([0, -0.0, -1, 1j, -1j, complex(-1, -0.0), complex(INF, 1), complex(NAN, 0)], dtype)
        for x in [draw([3, 50], dtype), odd, draw([0], dtype)]:
            for name in ["Real", "Imag", "Angle"]:
                add(name, 1e-6, input=x, Tout=tf_real)
            add("ComplexAbs", 1e-6, x=x, Tout=tf_real)
            add("Conj", 0, input=x)
    kinds = NUMBERS + COMPLEX + [np.bool_]
    for source in kinds:
        for target in COMPLEX:
            add("Cast", 0, x=draw([700], source, 0, 100), DstT=tf.as_dtype(target))
    for source in COMPLEX:
        for target in kinds:
            add("Cast", 0, x=draw([700], source, 0, 100), DstT=tf.as_dtype(target))


def matmul_cases():
    for dtype in REALS + HALVES + COMPLEX + [np.int32, np.int64]:
        bound = {np.float16: 4e-3, BFLOAT16: 4e-2}.get(dtype, tolerance(dtype, 1e-5))
        for a, b, left, right in [
            ([7, 5], [5, 3], False, False),
            ([5, 7], [5, 3], True, False),
            ([7, 5], [3, 5], False, True),
            ([5, 7], [3, 5], True, True),
            ([0, 5], [5, 3], False, False),
            ([4, 0], [0, 3], False, False),
        ]:
            x, y = draw(a, dtype), draw(b, dtype)
            add("MatMul", bound, a=x, b=y, transpose_a=left, transpose_b=right)
            add("BatchMatMulV2", bound, x=draw([2, 1] + a, dtype), y=draw([3] + b, dtype), adj_x=left, adj_y=right)


def reduce_cases():
    for dtype in ALL:
        bound = {np.float16: 1e-2, BFLOAT16: 6e-2}.get(dtype, tolerance(dtype, 1e-5))
        for shape, axes, keep in [
            ([4, 5, 6], [1], False),
            ([4, 5, 6], [0, 2], True),
            ([30], [0], False),
            ([4, 5], [], False),
            ([0, 3], [0], False),
            ([2, 300], [-1], False),
            ([], [], False),
        ]:
            index = np.array(axes, np.int32)
            for name in ["Sum", "Mean", "Prod", "EuclideanNorm"] + ([] if dtype in COMPLEX else ["Max", "Min"]):
                if name == "Mean" and shape == [0, 3] and dtype in INTEGERS:
                    continue
                low, high = (0.9, 1.1) if name == "Prod" and dtype not in INTEGERS else (-3, 3)
                if name == "Prod" and dtype in COMPLEX:
                    low, high = 0.68, 0.73
                if dtype in HALVES and name in ("Prod", "EuclideanNorm") and shape == [2, 300]:
                    continue
                x = draw(shape, dtype, low, high)
                if name == "EuclideanNorm" and dtype in INTEGERS:
                    x = draw(shape, dtype, 0, 3)
                    if dtype in (np.int8, np.uint8) and shape == [2, 300]:
                        continue
                add(name, bound, input=x, axis=index, keep_dims=keep)
        if dtype not in COMPLEX:
            for name in ["ArgMax", "ArgMin"]:
                for axis in [0, -1]:
                    add(name, 0, input=draw([7, 9], dtype, -3, 3), dimension=axis)
    for shape, axes in [([4, 5], [1]), ([0, 3], [0]), ([300], [0])]:
        for name in ["All", "Any"]:
            add(name, 0, input=values(shape, np.bool_), axis=np.array(axes, np.int64))


def scan_cases():
    for dtype in ALL:
        for exclusive in [False, True]:
            for reverse in [False, True]:
                options = {"exclusive": exclusive, "reverse": reverse}
                for shape, axis in [([5], 0), ([4, 5, 6], 1), ([3, 7], -1), ([6, 2000], 0), ([0, 3], 0), ([3, 0], 0)]:
                    exact = dtype in INTEGERS
                    bound = 0 if exact else 1e-2 if dtype == np.float16 else 6e-2 if dtype == BFLOAT16 else 2e-6
                    add("Cumsum", bound, x=draw(shape, dtype), axis=axis, **options)
                    low, high = (-9, 9) if exact else (0.8, 1.2)
                    add("Cumprod", bound, x=draw(shape, dtype, low, high), axis=np.int64(axis), **options)
                    if dtype in REALS + HALVES:
                        add("CumulativeLogsumexp", bound, x=draw(shape, dtype), axis=axis, **options)
    for exclusive in [False, True]:
        for reverse in [False, True]:
            options = {"exclusive": exclusive, "reverse": reverse}
            for x in [[1, 2, 3, INF, -INF], [-INF, -INF, NAN, 1], [100, 200, -300]]:
                add("CumulativeLogsumexp", 1e-6, x=np.array(x, np.float32), axis=0, **options)


def counting_cases():
    for dtype in [np.int32, np.int64, np.float32, np.float64]:
        none = np.zeros([0], dtype)
        for size in [0, 3, 20]:
            for shape in [[40], [5, 8], []]:
                arr = generator.integers(0, 10, shape, dtype=np.int32)
                add("Bincount", 1e-6, arr=arr, size=np.int32(size), weights=none)
                add("Bincount", 1e-6, arr=arr, size=np.int32(size), weights=draw(shape, dtype))
            for kind in [np.int32, np.int64]:
                for binary in [False, True]:
                    for shape in [[40], [5, 8], [0], [3, 0]]:
                        x = generator.integers(0, 10, shape, dtype=kind)
                        options = {"input": x, "size": kind(size), "binary_output": binary}
                        add("DenseBincount", 1e-6, weights=none, **options)
                        add("DenseBincount", 1e-6, weights=draw(shape, dtype), **options)
                    x = generator.integers(0, 10, [6], dtype=kind)
                    options = {"values": x, "size": kind(size), "binary_output": binary}
                    splits = np.array([0, 2, 2, 5, 6], np.int64)
                    shape = np.array([3, 4], np.int64)
                    indices = np.array([[0, 1], [0, 3], [1, 0], [2, 1], [2, 2], [2, 3]], np.int64)
                    for weights in [none, draw([6], dtype)]:
                        add("RaggedBincount", 1e-6, splits=splits, weights=weights, **options)
                        add("SparseBincount", 1e-6, indices=indices, dense_shape=shape, weights=weights, **options)
                        flat = {"indices": np.arange(6)[:, None], "dense_shape": np.array([9])}
                        add("SparseBincount", 1e-6, weights=weights, **flat, **options)
        for kind in [tf.int32, tf.int64]:
            for shape in [[300], [4, 5], [0], []]:
                x = draw(shape, dtype, -5, 30)
                span = np.array([0, 20], dtype)
                add("HistogramFixedWidth", 0, values=x, value_range=span, nbins=7, dtype=kind)
        for edges in [[], [0.5], [-2, 0, 0, 3.5, 9]]:
            add("Bucketize", 0, input=draw([5, 30], dtype, -5, 12), boundaries=edges)
    add("Bucketize", 0, input=np.array([NAN, INF, -INF, 5, 10], np.float32), boundaries=[0, 5, 10])
    for dtype in NUMBERS:
        for kind in [tf.int32, tf.int64]:
            rows, wanted = np.sort(draw([4, 33], dtype, 0, 20), axis=1), draw([4, 17], dtype, -1, 22)
            for name in ["LowerBound", "UpperBound"]:
                add(name, 0, sorted_inputs=rows, values=wanted, out_type=kind)
                add(name, 0, sorted_inputs=rows[:, :0], values=wanted, out_type=kind)
    for name in ["LowerBound", "UpperBound"]:
        add(name, 0, sorted_inputs=np.array([[1, 2, 2, 3]], np.float32), values=np.array([[NAN, INF, 2]], np.float32))


def segment_cases():
    for dtype in ALL:
        bound = {np.float16: 1e-2, BFLOAT16: 8e-2}.get(dtype, tolerance(dtype, 1e-5))
        for kind in [np.int32, np.int64]:
            for shape, ids in [
                ([9], [0, 0, 1, 1, 1, 3, 4, 4, 4]),
                ([9, 4, 5], [0, 0, 1, 1, 1, 3, 4, 4, 4]),
                ([4, 300], [2, 2, 2, 2]),
                ([4, 0], [0, 0, 1, 3]),
                ([0, 3], []),
                ([1, 2], [0]),
            ]:
                ids = np.array(ids, kind)
                for name in ["Sum", "Mean", "Prod"] + ([] if dtype in COMPLEX else ["Max", "Min"]):
                    x = draw(shape, dtype, 0.5, 4) if dtype not in SIGNED else draw(shape, dtype, -5, 5)
                    add("Segment" + name, bound, data=x, segment_ids=ids)
                    if name == "Mean":
                        continue
                    mixed = np.array(generator.permutation(np.concatenate([ids, ids[:0]])), kind)
                    mixed = np.where(generator.random(mixed.shape) < 0.2, -1, mixed).astype(kind)
                    for count in [5, 8]:
                        add("UnsortedSegment" + name, bound, data=x, segment_ids=mixed, num_segments=kind(count))
            if dtype in (np.float32, np.float64, *HALVES):
                # The packets of TensorFlow's sorted reductions of rows drop a NaN, the remaining elements do not.
                x = np.array([1, NAN, NAN, 1, 1, NAN, 2, NAN, NAN, 3, NAN, 1, 2, NAN], np.float64).astype(dtype)
                ids = np.array([0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 4, 5], kind)
                for name in ["Max", "Min"]:
                    add("Segment" + name, 0, data=x, segment_ids=ids)
                    add("UnsortedSegment" + name, 0, data=x, segment_ids=ids, num_segments=kind(6))
                    rows = np.tile(x[:, None], [1, 19])
                    add("UnsortedSegment" + name, 0, data=rows, segment_ids=ids, num_segments=kind(6))
            x = draw([4, 5, 3], dtype, 0.5, 4)
            ids = generator.integers(-1, 3, [4, 5]).astype(kind)
            for name in ["Sum", "Prod"] + ([] if dtype in COMPLEX else ["Max", "Min"]):
                add("UnsortedSegment" + name, bound, data=x, segment_ids=ids, num_segments=3)
    for dtype in NUMBERS:
        bound = {np.float16: 1e-2, BFLOAT16: 8e-2}.get(dtype, tolerance(dtype, 1e-5))
        for index in [np.int32, np.int64]:
            for kind in [np.int32, np.int64]:
                for shape in [[6], [6, 4, 2], [6, 300], [6, 0]]:
                    x = draw(shape, dtype, 0, 4)
                    rows = generator.integers(0, 6, [40]).astype(index)
                    ids = np.sort(generator.integers(0, 9, [40])).astype(kind)
                    grad = draw([9] + shape[1:], dtype, 0.5, 2)
                    for name in ["Sum"] + (["Mean", "SqrtN"] if dtype not in INTEGERS else []):
                        given = {"indices": rows, "segment_ids": ids}
                        add("SparseSegment" + name, bound, data=x, **given)
                        add(f"SparseSegment{name}WithNumSegments", bound, data=x, num_segments=12, **given)
                        few = {"indices": rows[:1], "segment_ids": ids[:1]}
                        add("SparseSegment" + name, bound, data=x, **few)
                        if dtype not in INTEGERS and shape[-1] > 0:
                            add(f"SparseSegment{name}Grad", bound, grad=grad, output_dim0=7, **given)
                            add(f"SparseSegment{name}GradV2", bound, grad=grad, dense_output_dim0=7, **given)


if __name__ == "__main__":
    main(
        unary_cases,
        binary_cases,
        special_cases,
        bit_cases,
        complex_cases,
        matmul_cases,
        reduce_cases,
        scan_cases,
        counting_cases,
        segment_cases,
    )
