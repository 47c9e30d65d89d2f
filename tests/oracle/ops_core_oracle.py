"""Kernels of the most common families, compared with TensorFlow's."""
import numpy as np
import tensorflow as tf
from ops_compare import HALVES, INF, NAN, NARROW, NUMBERS, add, cases, generator, main, raw, values


def unary_cases():
    for name in ["Neg", "Abs", "Sign", "Square"]:
        for dtype in NUMBERS + [np.int8, np.int16] + HALVES:
            add(name, 0, x=values([7, 5], dtype))
    add("Abs", 0, x=values([40], special=True))
    add("Sign", 0, x=values([40], special=True))
    for name in ["Sqrt", "Rsqrt", "Log", "Log1p"]:
        for dtype in [np.float32, np.float64] + HALVES:
            add(name, 1e-2 if dtype in HALVES else 1e-6, x=values([1003], dtype, 0.01, 50))
    for name in [
        "Reciprocal",
        "Inv",
        "Exp",
        "Expm1",
        "Tanh",
        "Sigmoid",
        "Sin",
        "Cos",
        "Tan",
        "Sinh",
        "Cosh",
        "Atan",
        "Erf",
        "Erfc",
        "Floor",
        "Ceil",
        "Rint",
        "Round",
        "Lgamma",
    ]:
        for dtype in [np.float32, np.float64]:
            add(name, 2e-6, x=values([1003], dtype))
    for name in ["Asin", "Acos"]:
        add(name, 2e-6, x=values([37], np.float32, -1, 1))
    # TensorFlow rounds (x + 1) / 2 to a float, which costs accuracy near -1 and 1.
    add("Erfinv", 2e-6, x=values([1003], np.float32, -0.98, 0.98))
    add("Erfinv", 2e-6, x=values([1003], np.float64, -1, 1))
    for name in ["Exp", "Expm1", "Log", "Log1p", "Tanh", "Sigmoid", "Sqrt", "Floor", "Ceil", "Rint", "IsNan", "IsInf",
                 "IsFinite"]:
        add(name, 2e-6, x=values([41], special=True))
    add("Log1p", 2e-6, x=values([500], np.float32, -1e-3, 1e-3))
    add("Expm1", 2e-6, x=values([500], np.float32, -1e-3, 1e-3))
    add("Tanh", 2e-6, x=values([500], np.float32, -1e-2, 1e-2))
    add("Exp", 2e-6, x=values([5000], np.float32, -100, 88))
    add("Log", 2e-6, x=np.exp(values([5000], np.float32, -80, 80)).astype(np.float32))
    add("Rint", 0, x=np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32))
    add("Round", 0, x=np.array([0.5, 1.5, 2.5, -0.5, -1.5], np.float32))
    add("LogicalNot", 0, x=values([9], np.bool_))
    for dtype in NUMBERS + [np.uint8] + HALVES:
        add("AddN", 1e-2 if dtype in HALVES else 1e-6, inputs=[values([4, 5], dtype) for _ in range(3)])


def binary_cases():
    shapes = [
        ([6, 7], [6, 7]),
        ([6, 7], []),
        ([], [6, 7]),
        ([6, 7], [7]),
        ([7], [6, 7]),
        ([6, 7], [6, 1]),
        ([6, 1], [1, 7]),
        ([2, 3, 4, 5], [3, 1, 5]),
        ([300, 16], [16]),
        ([64, 1000], [64, 1]),
        ([40000], [40000]),
        ([1], [1]),
        ([0, 3], [3]),
        ([5, 1, 3], [1, 4, 1]),
        ([2, 30000], [30000]),
    ]
    for name in ["Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference"]:
        for a, b in shapes:
            add(name, 0, x=values(a), y=values(b))
        for dtype in NUMBERS + HALVES:
            add(name, 1e-2 if dtype in HALVES else 0, x=values([5, 4], dtype), y=values([4], dtype))
    for name in ["Add", "AddV2", "Sub", "Mul"]:
        for dtype in NARROW:
            if name == "Add" and dtype == np.uint16:
                continue
            add(name, 0, x=values([5, 4], dtype), y=values([4], dtype))
    for name in ["Maximum", "Minimum"]:
        add(name, 0, x=values([24], special=True), y=values([24]))
        add(name, 0, x=values([24]), y=values([24], special=True))
    for dtype in NUMBERS:
        divisor = values([9, 5], dtype, 1, 5) * generator.choice([-1, 1], [9, 5]).astype(dtype)
        for name in ["Div", "FloorDiv", "FloorMod"] + (
            ["TruncateDiv", "TruncateMod", "Mod"] if dtype in (np.int32, np.int64) else []
        ):
            add(name, 1e-6, x=values([9, 5], dtype, -40, 40), y=divisor)
        add("Pow", 1e-6, x=values([9, 5], dtype, 1, 5), y=values([5], dtype, 0, 4))
    add("FloorDiv", 0, x=np.array([-2**31, 7, -7], np.int32), y=np.array([-1, -2, 2], np.int32))
    for dtype in [np.float32, np.float64]:
        add("RealDiv", 0, x=values([9, 5], dtype), y=values([5], dtype, 1, 2))
        add("DivNoNan", 0, x=values([6], dtype), y=np.array([0, 1, 2, 0, -1, 3], dtype))
        for name in ["SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "TanhGrad", "SigmoidGrad"]:
            add(name, 2e-6, y=values([33], dtype, 0.1, 0.9), dy=values([33], dtype))
        for name in ["ReluGrad", "Relu6Grad", "SoftplusGrad", "SoftsignGrad"]:
            add(name, 2e-6, gradients=values([999], dtype), features=values([999], dtype, -8, 8))
        for name in ["EluGrad", "SeluGrad"]:
            add(name, 2e-6, gradients=values([99], dtype), outputs=values([99], dtype, -0.9, 8))
        add("LeakyReluGrad", 2e-6, gradients=values([99], dtype), features=values([99], dtype), alpha=0.3)
        add("LeakyRelu", 2e-6, features=values([99], dtype), alpha=0.1)
        for name in ["Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign"]:
            add(name, 2e-6, features=values([999], dtype, -20, 20))
        add("Atan2", 2e-6, x=values([9], dtype), y=values([9], dtype))
    for name in ["Relu", "Relu6", "Elu", "Softplus"]:
        add(name, 2e-6, features=values([40], special=True))
    add("Relu", 0, features=values([9], np.int32))
    for name in ["Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"]:
        for dtype in NUMBERS + HALVES + [np.uint8]:
            add(name, 0, x=values([5, 4], dtype), y=values([4], dtype))
        add(name, 0, x=values([24], special=True), y=values([24], special=True))
    for name in ["Equal", "NotEqual"]:
        add(name, 0, x=np.array([b"a", b"bc", b""]), y=np.array([b"a", b"bd", b""]))
        add(name, 0, x=values([9], np.bool_), y=values([9], np.bool_))
    add("Equal", 0, x=values([3]), y=values([4]), incompatible_shape_error=False)
    for name in ["LogicalAnd", "LogicalOr"]:
        add(name, 0, x=values([5, 9], np.bool_), y=values([9], np.bool_))
    add("BiasAdd", 0, value=values([2, 3, 4, 5]), bias=values([5]))
    add("BiasAdd", 0, value=values([2, 5, 3, 4]), bias=values([5]), data_format="NCHW")
    add("BiasAddGrad", 1e-5, out_backprop=values([20, 30, 4, 16]))
    add("BiasAddGrad", 1e-5, out_backprop=values([2, 5, 3, 4]), data_format="NCHW")


def select_cases():
    add("Select", 0, condition=values([4, 5], np.bool_), x=values([4, 5]), y=values([4, 5]))
    add("Select", 0, condition=values([4], np.bool_), x=values([4, 5]), y=values([4, 5]))
    add("Select", 0, condition=np.array(True), x=values([4, 5]), y=values([4, 5]))
    add("Select", 0, condition=np.array([True, False]), x=np.array([b"x", b"yy"]), y=np.array([b"1", b"22"]))
    for a, b, c in [
        ([4, 5], [4, 5], [4, 5]),
        ([4, 1], [5], []),
        ([], [4, 5], [5]),
        ([70000], [70000], []),
        ([66000], [66000], [66000]),
    ]:
        add("SelectV2", 0, condition=values(a, np.bool_), t=values(b), e=values(c))
    for dtype in [np.int64, np.uint8, np.float16]:
        add("SelectV2", 0, condition=values([5], np.bool_), t=values([3, 5], dtype), e=values([5], dtype))
    add("ClipByValue", 0, t=values([50]), clip_value_min=np.float32(-1), clip_value_max=np.float32(1.5))
    add("ClipByValue", 0, t=values([5], np.int32), clip_value_min=np.int32(-1), clip_value_max=np.int32(1))
    types = NUMBERS + NARROW + HALVES + [np.bool_, np.uint32, np.uint64]
    for source in types:
        for target in types:
            if source != target:
                add("Cast", 0, x=values([13], source, 0, 100), DstT=tf.as_dtype(target))
    add("Cast", 0, x=values([13], np.float32, -100, 100), DstT=tf.int32)


def array_cases():
    x = values([2, 3, 4])
    strings = np.array([[b"one", b""], [b"three", b"four" * 30]])
    add("Identity", 0, input=strings)
    add("Identity", 0, input=x)
    add("IdentityN", 0, input=[x, strings])
    for name in ["StopGradient", "Snapshot", "PreventGradient"]:
        add(name, 0, input=x)
    for shape in [[6, 4], [-1], [2, -1, 2], [24, 1]]:
        add("Reshape", 0, tensor=x, shape=np.array(shape, np.int32))
    add("Reshape", 0, tensor=strings, shape=np.array([4], np.int64))
    add("Shape", 0, input=x)
    add("Shape", 0, input=x, out_type=tf.int64)
    add("ShapeN", 0, input=[x, x])
    add("Rank", 0, input=x)
    add("Size", 0, input=x)
    for axis in [0, 1, -1, 3]:
        add("ExpandDims", 0, input=x, axis=np.int32(axis))
    add("Squeeze", 0, input=values([1, 3, 1, 2]))
    add("Squeeze", 0, input=values([1, 3, 1, 2]), axis=[2])
    for axis in [0, 1, 2, -1]:
        add("ConcatV2", 0, values=[x, x + 1, x], axis=np.int32(axis))
        add("Pack", 0, values=[x, x + 1], axis=axis)
        add("Unpack", 0, value=x, num=x.shape[axis], axis=axis)
        add(
            "OneHot",
            0,
            indices=values([3, 2], np.int64, -1, 5),
            depth=np.int32(4),
            on_value=np.float32(2),
            off_value=np.float32(-1),
            axis=axis if axis != 2 else -1,
        )
    add("Concat", 0, concat_dim=np.int32(1), values=[x, x])
    add("ConcatV2", 0, values=[strings, strings], axis=np.int32(1))
    add("Pack", 0, values=[strings, strings], axis=1)
    add("Unpack", 0, value=strings, num=2, axis=1)
    add("ConcatOffset", 0, concat_dim=np.int32(1), shape=[np.array([2, 3, 5], np.int32), np.array([2, 7, 5], np.int32)])
    add("Split", 0, axis=np.int32(2), value=x, num_split=2)
    add("Split", 0, axis=np.int32(0), value=strings, num_split=2)
    add("SplitV", 0, value=values([2, 9]), size_splits=np.array([2, -1, 3], np.int32), axis=np.int32(1), num_split=3)
    add("Slice", 0, input=x, begin=np.array([0, 1, 2], np.int32), size=np.array([-1, 2, 1], np.int32))
    add("Slice", 0, input=strings, begin=np.array([1, 0], np.int32), size=np.array([1, 2], np.int32))

    def strided(start, stop, step, **masks):
        for tensor in [values([5, 6, 7]), values([5, 6, 7], np.int64)]:
            arguments = {k + "_mask": v for k, v in masks.items()}
            add("StridedSlice", 0, input=tensor, begin=np.array(start, np.int32), end=np.array(stop, np.int32),
                strides=np.array(step, np.int32), **arguments)
        y = cases[-1][0].outputs[0]
        add(
            "StridedSliceGrad",
            0,
            shape=np.array([5, 6, 7], np.int32),
            begin=np.array(start, np.int32),
            end=np.array(stop, np.int32),
            strides=np.array(step, np.int32),
            dy=values(y.shape.as_list(), np.float32),
            **arguments,
        )

    strided([1, 2], [4, 5], [1, 2])
    strided([-1, 4, 0], [-5, 0, 9], [-1, -2, 3])
    strided([0, 0], [0, 0], [1, 1], ellipsis=1)
    strided([0, 1, 0], [0, 3, 2], [1, 1, 1], ellipsis=1, begin=4)
    strided([1, 0, 2], [2, 0, 3], [1, 1, 1], shrink_axis=1, new_axis=2)
    strided([-1, 2], [0, 4], [1, 1], shrink_axis=1)
    strided([3, 3], [9, 1], [1, -1], begin=3, end=3)
    strided([4, 0, 0], [2, 2, 1], [1, 1, 1])
    strided([0, 1], [0, 2], [1, 1], ellipsis=1, shrink_axis=2, begin=2)
    add(
        "StridedSlice",
        0,
        input=strings,
        begin=np.array([0, 1], np.int32),
        end=np.array([2, 2], np.int32),
        strides=np.array([1, 1], np.int32),
    )
    for axes in [[0], [1, 2], [-1], []]:
        add("ReverseV2", 0, tensor=x, axis=np.array(axes, np.int32))
    for order in [[2, 0, 1], [0, 2, 1], [1, 0, 2], [2, 1, 0], [0, 1, 2]]:
        for dtype in [np.float32, np.float64, np.uint8, np.int16]:
            add("Transpose", 0, x=values([20, 33, 17], dtype), perm=np.array(order, np.int32))
    add("Transpose", 0, x=strings, perm=np.array([1, 0], np.int32))
    add("Tile", 0, input=x, multiples=np.array([2, 1, 3], np.int32))
    add("Tile", 0, input=strings, multiples=np.array([1, 2], np.int32))
    add("Tile", 0, input=np.float32(3), multiples=np.array([], np.int32))
    add("Pad", 0, input=x, paddings=np.array([[1, 0], [0, 2], [3, 1]], np.int32))
    add("PadV2", 0, input=x, paddings=np.array([[1, 0], [0, 2], [3, 1]], np.int32), constant_values=np.float32(7))
    for mode in ["REFLECT", "SYMMETRIC"]:
        add("MirrorPad", 0, input=x, paddings=np.array([[1, 0], [0, 2], [3, 1]], np.int32), mode=mode)
    add("BroadcastTo", 0, input=values([3, 1]), shape=np.array([2, 3, 4], np.int32))
    for a, b in [([2, 3, 4], [3, 1]), ([1], [5, 2]), ([2, 1], [2, 1]), ([], [3]), ([4, 1], [1, 4]), ([1, 3], [3])]:
        add("BroadcastGradientArgs", 0, s0=np.array(a, np.int32), s1=np.array(b, np.int32))
        add("BroadcastArgs", 0, s0=np.array(a, np.int32), s1=np.array(b, np.int32))
    for axis in [0, 1, 2]:
        add("GatherV2", 0, params=x, indices=values([2, 3], np.int32, 0, 2), axis=np.int32(axis))
    add("GatherV2", 0, params=values([3, 4, 5]), indices=values([3, 2], np.int64, 0, 4), axis=np.int32(1), batch_dims=1)
    add("GatherV2", 0, params=values([3, 4, 5]), indices=values([3, 2], np.int64, 0, 5), axis=np.int32(2), batch_dims=1)
    add("GatherV2", 0, params=strings, indices=np.array([1, 0, 1], np.int32), axis=np.int32(0))
    add("Gather", 0, params=x, indices=np.array([1, 0, 1], np.int32))
    add("GatherNd", 0, params=x, indices=np.array([[1, 2], [0, 0]], np.int32))
    add("GatherNd", 0, params=x, indices=np.array([[[1, 2, 3]], [[0, 0, 1]]], np.int64))
    add("GatherNd", 0, params=strings, indices=np.array([[1], [0]], np.int32))
    add(
        "ScatterNd",
        1e-6,
        indices=np.array([[1], [0], [1]], np.int32),
        updates=values([3, 4]),
        shape=np.array([3, 4], np.int32),
    )
    add(
        "UnsortedSegmentSum",
        1e-6,
        data=values([5, 3]),
        segment_ids=np.array([2, 0, -1, 2, 1], np.int32),
        num_segments=np.int32(4),
    )
    add("InvertPermutation", 0, x=np.array([2, 0, 1, 3], np.int32))
    for dtype in [np.bool_, np.float32, np.int64]:
        add("Where", 0, condition=values([3, 4, 2], dtype, -1, 2))
    add("Fill", 0, dims=np.array([2, 3], np.int32), value=np.float32(2.5))
    add("Fill", 0, dims=np.array([2], np.int64), value=b"text")
    for dtype in NUMBERS + HALVES + [np.uint8, np.bool_]:
        add("ZerosLike", 0, x=values([3, 2], dtype))
        add("OnesLike", 0, x=values([3, 2], dtype))
    add("ZerosLike", 0, x=strings)
    for dtype in [np.int32, np.int64, np.float32, np.float64]:
        add("Range", 1e-6, start=dtype(1), limit=dtype(10), delta=dtype(3))
        add("Range", 1e-6, start=dtype(5), limit=dtype(-5), delta=dtype(-2))
        add("Range", 0, start=dtype(5), limit=dtype(5), delta=dtype(1))
    add("LinSpace", 1e-6, start=np.float32(-1), stop=np.float32(2), num=np.int32(7))
    add("CheckNumerics", 0, tensor=x, message="fine")


def reduce_cases():
    shapes = [
        ([4, 5, 6], [0]),
        ([4, 5, 6], [1]),
        ([4, 5, 6], [2]),
        ([4, 5, 6], [0, 2]),
        ([4, 5, 6], [0, 1, 2]),
        ([4, 5, 6], []),
        ([100000], [0]),
        ([3000, 16], [0]),
        ([16, 3000], [1]),
        ([64, 12, 12, 32], [1, 2]),
        ([7, 20000], [0]),
        ([2, 1, 3], [1]),
        ([0, 3], [0]),
        ([5, 70, 3, 70], [1, 3]),
        ([1], [0]),
    ]
    for name in ["Sum", "Mean", "Max", "Min", "Prod"]:
        for shape, axes in shapes:
            if name != "Prod" or np.prod(shape) < 1000:
                for keep in [False, True]:
                    add(
                        name,
                        1e-5,
                        input=values(shape, np.float32, 0.5, 1.5),
                        axis=np.array(axes, np.int32),
                        keep_dims=keep,
                    )
        for dtype in NUMBERS + HALVES + [np.uint8]:
            add(
                name,
                2e-2 if dtype in HALVES else 1e-6,
                input=values([3, 4], dtype, 1, 3),
                axis=np.array([-1], np.int32),
            )
    add("Max", 0, input=np.array([[1, NAN, 3], [-INF, -INF, -INF]], np.float32), axis=np.array([1], np.int32))
    for name in ["Any", "All"]:
        add(name, 0, input=values([3, 4], np.bool_), axis=np.array([1], np.int64))
        add(name, 0, input=values([3, 0], np.bool_), axis=np.array([1], np.int32))
    for name in ["ArgMax", "ArgMin"]:
        for axis in [0, 1, -1]:
            for dtype in NUMBERS + [np.uint8]:
                add(name, 0, input=values([6, 7, 8], dtype), dimension=np.int32(axis))
        add(name, 0, input=values([6, 7]), dimension=np.int32(1), output_type=tf.int32)
    add("L2Loss", 1e-6, t=values([300, 170]))
    add("L2Loss", 1e-12, t=values([30, 17], np.float64))


def matmul_cases():
    for m, n, k in [
        (1, 1, 1),
        (5, 7, 3),
        (37, 53, 71),
        (64, 6, 2304),
        (128, 130, 600),
        (3, 64, 33),
        (1, 100, 50),
        (200, 48, 16),
    ]:
        for ta in [False, True]:
            for tb in [False, True]:
                add(
                    "MatMul",
                    1e-5,
                    a=values([k, m] if ta else [m, k]),
                    b=values([n, k] if tb else [k, n]),
                    transpose_a=ta,
                    transpose_b=tb,
                )
    for dtype in [np.float64, np.int32, np.int64]:
        add("MatMul", 1e-12, a=values([5, 7], dtype), b=values([6, 7], dtype), transpose_b=True)
    for a, b in [([3, 5, 4], [3, 4, 6]), ([2, 1, 5, 4], [3, 4, 6]), ([5, 4], [7, 4, 6]), ([0, 3, 4], [0, 4, 2])]:
        add("BatchMatMulV2", 1e-5, x=values(a), y=values(b))
    add("BatchMatMulV2", 1e-5, x=values([3, 4, 5]), y=values([3, 6, 4]), adj_x=True, adj_y=True)
    add("BatchMatMul", 1e-5, x=values([3, 4, 5]), y=values([3, 5, 6]))


def conv_cases():
    for size, ci, co, window, strides, padding in [
        ((2, 9, 11), 3, 16, (3, 3), (1, 1), "SAME"),
        ((2, 12, 12), 16, 32, (3, 3), (2, 2), "SAME"),
        ((1, 10, 7), 5, 33, (3, 2), (1, 2), "VALID"),
        ((3, 8, 8), 8, 8, (1, 1), (1, 1), "SAME"),
        ((2, 9, 9), 4, 7, (1, 1), (2, 2), "VALID"),
        ((2, 15, 15), 3, 20, (7, 7), (2, 2), "SAME"),
        ((1, 5, 5), 17, 50, (5, 5), (1, 1), "SAME"),
        ((70, 6, 6), 64, 64, (3, 3), (1, 1), "SAME"),
    ]:
        x, f = values([size[0], size[1], size[2], ci]), values([window[0], window[1], ci, co])
        arguments = dict(strides=[1, *strides, 1], padding=padding)
        add("Conv2D", 1e-5, input=x, filter=f, **arguments)
        shape = cases[-1][0].outputs[0].shape.as_list()
        dy = values(shape)
        add(
            "Conv2DBackpropInput", 1e-5, input_sizes=np.array(x.shape, np.int32), filter=f, out_backprop=dy, **arguments
        )
        add(
            "Conv2DBackpropFilter",
            1e-5,
            input=x,
            filter_sizes=np.array(f.shape, np.int32),
            out_backprop=dy,
            **arguments,
        )
    x, f = values([2, 10, 10, 3]), values([3, 3, 3, 8])
    add("Conv2D", 1e-5, input=x, filter=f, strides=[1, 1, 1, 1], padding="SAME", dilations=[1, 2, 2, 1])
    add(
        "Conv2D",
        1e-5,
        input=x,
        filter=f,
        strides=[1, 2, 1, 1],
        padding="EXPLICIT",
        explicit_paddings=[0, 0, 2, 1, 0, 3, 0, 0],
    )
    add("Conv2D", 1e-9, input=x.astype(np.float64), filter=f.astype(np.float64), strides=[1, 1, 1, 1], padding="SAME")


def pool_cases():
    for channels in [3, 16, 40]:
        for size, window, stride, padding in [
            ((8, 8), 2, 2, "SAME"),
            ((9, 7), 2, 2, "SAME"),
            ((9, 7), 2, 2, "VALID"),
            ((9, 9), 3, 2, "SAME"),
            ((7, 7), 3, 1, "VALID"),
            ((8, 9), 2, 3, "VALID"),
            ((8, 9), 1, 2, "SAME"),
        ]:
            x = np.floor(values([2, *size, channels], np.float32, 0, 6))  # equal values: the first is selected
            arguments = dict(ksize=[1, window, window, 1], strides=[1, stride, stride, 1], padding=padding)
            add("MaxPool", 0, input=x, **arguments)
            y = cases[-1][0].outputs[0]
            add("MaxPoolGrad", 1e-6, orig_input=x, orig_output=y, grad=values(y.shape.as_list()), **arguments)
            add("AvgPool", 1e-6, value=x, **arguments)
            add(
                "AvgPoolGrad",
                1e-6,
                orig_input_shape=np.array(x.shape, np.int32),
                grad=values(y.shape.as_list()),
                **arguments,
            )


def norm_cases():
    for shape in [[4, 5, 6, 16], [2, 3, 3, 5], [64, 24, 24, 32], [8, 4, 4, 130], [1, 1, 1, 4], [3, 2, 2, 64]]:
        c = shape[-1]
        x, scale, offset = values(shape) + 10, values([c]), values([c])
        mean, variance = values([c]), values([c], np.float32, 0.5, 2)
        none = np.zeros([0], np.float32)
        dy = values(shape)
        add("FusedBatchNormV3", 1e-5, x=x, scale=scale, offset=offset, mean=none, variance=none, epsilon=1e-3)
        for dtype in HALVES:
            fixed = {"scale": scale, "offset": offset, "mean": mean, "variance": variance, "is_training": False}
            add("FusedBatchNormV3", 1e-2, x=x.astype(dtype), **fixed)
            add("FusedBatchNormV2", 1e-2, x=x.astype(dtype), **fixed)
        deep = {"x": x[:, :, :, None], "data_format": "NDHWC", "scale": scale, "offset": offset}
        add("FusedBatchNormV3", 1e-5, mean=none, variance=none, epsilon=1e-3, **deep)
        add("FusedBatchNorm", 1e-5, x=x, scale=scale, offset=offset, mean=none, variance=none, epsilon=1e-3)
        add(
            "FusedBatchNormV2",
            1e-5,
            x=x,
            scale=scale,
            offset=offset,
            mean=mean,
            variance=variance,
            exponential_avg_factor=0.3,
        )
        add("FusedBatchNormV3", 1e-5, x=x, scale=scale, offset=offset, mean=mean, variance=variance, is_training=False)
        saved = cases[-4][0].outputs
        for training in [True, False]:
            add(
                "FusedBatchNormGradV3",
                1e-4,
                y_backprop=dy,
                x=x,
                scale=scale,
                reserve_space_1=x.mean((0, 1, 2)),
                reserve_space_2=x.var((0, 1, 2)),
                reserve_space_3=none,
                epsilon=1e-3,
                is_training=training,
            )


def softmax_cases():
    for shape in [[5, 7], [64, 6], [3, 10007], [2, 3, 4]]:
        for dtype in [np.float32, np.float64]:
            add("Softmax", 1e-6, logits=values(shape, dtype, -10, 10))
            add("LogSoftmax", 1e-6, logits=values(shape, dtype, -10, 10))
            if len(shape) == 2:
                add(
                    "SoftmaxCrossEntropyWithLogits",
                    1e-5,
                    features=values(shape, dtype),
                    labels=values(shape, dtype, 0, 1) / shape[1],
                )
                add(
                    "SparseSoftmaxCrossEntropyWithLogits",
                    1e-5,
                    features=values(shape, dtype),
                    labels=values(shape[:1], np.int64, 0, shape[1]),
                )
    add("SoftmaxCrossEntropyWithLogits", 1e-5, features=values([4, 5]), labels=values([1, 5]))
    add("Softmax", 1e-6, logits=np.array([[1000, 1000, -1000], [-INF, 0, 0]], np.float32))
    scores = values([20, 9])
    add("InTopK", 0, predictions=scores, targets=values([20], np.int32, 0, 9), k=3)
    add("InTopKV2", 0, predictions=scores, targets=values([20], np.int64, -1, 11), k=np.int64(2))


def random_cases():
    for runs in [1, 2, 3]:
        for count in [1, 7, 3000]:
            shape = np.array([count], np.int32)
            for dtype in [tf.float32, tf.float64, tf.half, tf.bfloat16]:
                add("RandomUniform", 0, runs, shape=shape, dtype=dtype, seed=5, seed2=7)
                exact = 0 if dtype == tf.float32 else 1e-6 if dtype == tf.float64 else 1e-2
                add(
                    "RandomStandardNormal",
                    3e-7 if exact == 0 else exact,
                    runs,
                    shape=shape,
                    dtype=dtype,
                    seed=5,
                    seed2=2**40 + 3,
                )
                add(
                    "TruncatedNormal",
                    3e-7 if exact == 0 else exact,
                    runs,
                    shape=shape,
                    dtype=dtype,
                    seed=87654321,
                    seed2=11,
                )
            for dtype in [np.int32, np.int64]:
                add("RandomUniformInt", 0, runs, shape=shape, minval=dtype(-5), maxval=dtype(1000), seed=1, seed2=0)
            add("RandomShuffle", 0, runs, value=np.arange(count * 2).reshape(count, 2), seed=3, seed2=4)


def image_cases():
    rules = [{}, {"align_corners": True}, {"half_pixel_centers": True}]
    for size in [[5, 9], [12, 4], [1, 1]]:
        for rule in rules:
            for dtype in [np.uint8, np.float32]:
                images = values([2, 6, 7, 3], dtype, 0, 255)
                add("ResizeBilinear", 1e-5, images=images, size=np.array(size, np.int32), **rule)
                add("ResizeNearestNeighbor", 0, images=images, size=np.array(size, np.int32), **rule)
            grads = values([2, *size, 3])
            add("ResizeBilinearGrad", 1e-5, grads=grads, original_image=values([2, 6, 7, 3]), **rule)
    image = values([20, 30, 3], np.uint8, 0, 256)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        jpeg, png = session.run([tf.io.encode_jpeg(image, quality=80), tf.io.encode_png(image)])
    for channels in [0, 1, 3]:
        add("DecodeJpeg", 0, contents=jpeg, channels=channels)
        add("DecodeJpeg", 0, contents=jpeg, channels=channels, dct_method="INTEGER_ACCURATE", ratio=2)
        add("DecodePng", 0, contents=png, channels=channels)
    add("DecodePng", 0, contents=png, dtype=tf.uint16)


def empty_cases():
    """Tensors without elements: batch size, channels, height or number of classes is 0."""
    ones = dict(strides=[1, 1, 1, 1], padding="SAME")
    for shape in [[0, 5, 4, 3], [2, 0, 4, 3], [2, 5, 4, 0]]:
        x, c = values(shape), shape[3]
        scale, none = values([c]), np.zeros([0], np.float32)
        for training in [True, False]:
            given = none if training else scale
            for name in ["FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"]:
                add(name, 0, x=x, scale=scale, offset=scale, mean=given, variance=given, is_training=training)
            add(
                "FusedBatchNormV3",
                0,
                x=x,
                scale=scale,
                offset=scale,
                mean=scale,
                variance=scale,
                exponential_avg_factor=0.5,
                is_training=training,
            )
            statistics = dict(scale=scale, reserve_space_1=scale, reserve_space_2=scale, is_training=training)
            add("FusedBatchNormGrad", 0, y_backprop=x, x=x, **statistics)
            add("FusedBatchNormGradV3", 0, y_backprop=x, x=x, reserve_space_3=scale, **statistics)
        window = dict(ksize=[1, 2, 2, 1], **ones)
        add("MaxPool", 0, input=x, **window)
        add("MaxPoolGrad", 0, orig_input=x, orig_output=x, grad=x, **window)
        add("AvgPool", 0, value=x, **window)
        add("AvgPoolGrad", 0, orig_input_shape=np.array(shape, np.int32), grad=x, **window)
    for shape, filters in [([0, 5, 4, 3], [3, 2, 3, 7]), ([2, 5, 4, 3], [3, 2, 3, 0])]:
        x, f, dy = values(shape), values(filters), values(shape[:3] + filters[3:])
        add("Conv2D", 0, input=x, filter=f, **ones)
        add("Conv2DBackpropInput", 0, input_sizes=np.array(shape, np.int32), filter=f, out_backprop=dy, **ones)
        add("Conv2DBackpropFilter", 0, input=x, filter_sizes=np.array(filters, np.int32), out_backprop=dy, **ones)
    for shape in [[0, 3], [2, 0]]:
        add("Softmax", 0, logits=values(shape))
        add("LogSoftmax", 0, logits=values(shape))
        add("SoftmaxCrossEntropyWithLogits", 0, features=values(shape), labels=values(shape))
        add("BiasAddGrad", 0, out_backprop=values(shape))
        add("L2Loss", 0, t=values(shape))
    add("SparseSoftmaxCrossEntropyWithLogits", 0, features=values([0, 3]), labels=values([0], np.int64))
    for dtype in NUMBERS + NARROW + HALVES[:1]:
        for name in ["Sum", "Mean", "Prod", "Max", "Min"]:
            for axis in [0, 1]:
                add(name, 0, input=values([0, 3], dtype), axis=np.array([axis], np.int32))
    add("ArgMax", 0, input=values([0, 3]), dimension=np.int32(1))
    add("MatMul", 0, a=values([2, 0]), b=values([0, 3]))
    add("MatMul", 0, a=values([2, 0], np.int32), b=values([0, 3], np.int32))
    add("GatherNd", 0, params=values([0, 3]), indices=values([0, 1], np.int32))
    add(
        "UnsortedSegmentSum",
        0,
        data=values([4, 0]),
        segment_ids=np.array([0, 1, 2, -1], np.int32),
        num_segments=np.int32(3),
    )
    add("OneHot", 0, indices=values([0], np.int64), depth=np.int32(3), on_value=np.float32(1), off_value=np.float32(0))
    add("OneHot", 0, indices=values([2], np.int64), depth=np.int32(0), on_value=np.float32(1), off_value=np.float32(0))
    add("Tile", 0, input=values([2, 3]), multiples=np.array([0, 1], np.int32))
    add("Split", 0, axis=np.int32(0), value=values([0, 3]), num_split=2)
    add("ResizeBilinear", 0, images=values([0, 5, 4, 3]), size=np.array([3, 7], np.int32))
    add("ResizeBilinearGrad", 0, grads=values([0, 3, 7, 3]), original_image=values([0, 5, 4, 3]))
    add("ResizeBilinearGrad", 0, grads=values([2, 3, 7, 0]), original_image=values([2, 5, 4, 0]))


def extreme_cases():
    """Integers at both ends of their range, and floats that no integer type can represent."""
    for dtype in [np.int32, np.int64, np.int8, np.int16]:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        x, y = np.array([low, high, low, high, 5], dtype), np.array([-1, 1, 1, high, -3], dtype)
        for name in ["Add", "Sub", "Mul", "Div", "TruncateDiv", "FloorDiv", "FloorMod", "Maximum", "Minimum"]:
            add(name, 0, x=x, y=y)
        for name in ["Abs", "Neg", "Sign", "Square"]:
            add(name, 0, x=x)
        add("AddN", 0, inputs=[x, x, y])
        for name in ["Sum", "Prod", "Max", "Min"]:
            add(name, 0, input=x, axis=np.array([0], np.int32))
        if dtype != np.int64:  # TensorFlow's mean of int64 may overflow, depending on the order
            add("Mean", 0, input=np.array([high] * 300, dtype), axis=np.array([0], np.int32))
            add("Mean", 0, input=np.array([low] * 300, dtype), axis=np.array([0], np.int32))
        add("UnsortedSegmentSum", 0, data=x, segment_ids=np.array([0, 0, 1, 1, 1], np.int32), num_segments=np.int32(2))
    for dtype in [np.uint8, np.uint16]:
        add("Mean", 0, input=np.array([np.iinfo(dtype).max] * 300, dtype), axis=np.array([0], np.int32))
        add("Prod", 0, input=np.array([np.iinfo(dtype).max] * 3, dtype), axis=np.array([0], np.int32))
    for dtype in [np.int32, np.int64]:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        add("MatMul", 0, a=np.array([[low, high]], dtype), b=np.array([[high], [high]], dtype))
        add("Pow", 0, x=np.array([low, high, 3], dtype), y=np.array([2, 3, 90], dtype))
        add("SquaredDifference", 0, x=np.array([low, high], dtype), y=np.array([high, low], dtype))
    odd = [
        NAN,
        INF,
        -INF,
        3e9,
        -3e9,
        1e19,
        -1e19,
        9.3e18,
        1.8e19,
        2.0**31,
        -(2.0**31),
        2.0**32,
        2.0**63,
        -(2.0**63),
        255.5,
        256,
        300,
        -1.5,
        -129,
        32768,
        -32769,
        70000,
    ]
    for source in [np.float32, np.float64] + HALVES:
        with np.errstate(over="ignore"):
            x = np.array(odd, np.float64).astype(source)
        for target in [tf.int32, tf.int64, tf.uint64, tf.bool]:
            add("Cast", 0, x=x, DstT=target)
        # TensorFlow's vector loops saturate narrow types and its scalar loops do not. A tensor of one element always
        # uses the scalar loop.
        for target in [tf.int8, tf.int16, tf.uint8, tf.uint16, tf.uint32]:
            for number in x:
                add("Cast", 0, x=np.array([number], source), DstT=target)


if __name__ == "__main__":
    main(
        unary_cases,
        binary_cases,
        select_cases,
        array_cases,
        reduce_cases,
        matmul_cases,
        conv_cases,
        pool_cases,
        norm_cases,
        softmax_cases,
        random_cases,
        image_cases,
        empty_cases,
        extreme_cases,
    )
