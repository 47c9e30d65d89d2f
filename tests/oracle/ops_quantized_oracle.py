"""Arithmetic on quantized tensors gives TensorFlow's integers and ranges, bit for bit."""
import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # oneDNN has kernels of its own
import numpy as np
import tensorflow as tf
from ops_compare import add, generator, main, values

RANGES = [(-1.0, 1.0), (0.0, 6.0), (-3.7, 12.2), (-0.01, 0.3), (2.0, 5.0), (-9.0, -4.0)]


def numbers(shape, kind=tf.quint8):
    low, high = {tf.quint8: (0, 256), tf.qint8: (-128, 128), tf.qint32: (-2**31, 2**31)}[kind]
    plain = {tf.quint8: np.uint8, tf.qint8: np.int8, tf.qint32: np.int32}[kind]
    return tf.bitcast(tf.constant(generator.integers(low, high, shape).astype(plain)), kind)


def limits(first, second, a, b):
    return {f"min_{a}": first[0], f"max_{a}": first[1], f"min_{b}": second[0], f"max_{b}": second[1]}


def binary():
    for x, y in [([5, 7], [5, 7]), ([5, 7], [7]), ([7], [5, 7]), ([5, 7], []), ([], [9]), ([2, 3, 4], [3, 4]),
                 ([1], [1])]:
        for first, second in zip(RANGES, RANGES[1:] + RANGES[:1]):
            for name in ["QuantizedAdd", "QuantizedMul"]:
                add(name, 0, x=numbers(x), y=numbers(y), **limits(first, second, "x", "y"))
    for kind in [tf.quint8, tf.qint8]:
        for first, second in zip(RANGES, RANGES[1:] + RANGES[:1]):
            add("QuantizedBiasAdd", 0, input=numbers([4, 3, 5], kind), bias=numbers([5], kind), out_type=tf.qint32,
                **limits(first, second, "input", "bias"))


def products():
    for first, second in zip(RANGES, RANGES[1:] + RANGES[:1]):
        for m, k, n in [(1, 1, 1), (3, 5, 7), (33, 65, 17)]:
            for a in [False, True]:
                for b in [False, True]:
                    add("QuantizedMatMul", 0, a=numbers([k, m] if a else [m, k]), b=numbers([n, k] if b else [k, n]),
                        transpose_a=a, transpose_b=b, Toutput=tf.qint32, **limits(first, second, "a", "b"))
        for shape, window, stride in [([2, 6, 7, 3], [3, 3, 3, 4], 1), ([1, 9, 12, 2], [1, 1, 2, 3], 4),
                                      ([2, 7, 7, 1], [2, 2, 1, 5], 3), ([1, 5, 6, 2], [5, 4, 2, 1], 2)]:
            for padding in ["SAME", "VALID"]:
                add("QuantizedConv2D", 0, input=numbers(shape), filter=numbers(window), strides=[1, stride, stride, 1],
                    padding=padding, **limits(first, second, "input", "filter"))


def others():
    for low, high in RANGES:
        range_ = dict(min_features=low, max_features=high)
        for kind in [tf.quint8, tf.qint32]:
            add("QuantizedRelu", 0, features=numbers([9, 9], kind), out_type=kind, **range_)
            add("QuantizedRelu6", 0, features=numbers([9, 9], kind), out_type=kind, **range_)
            add("QuantizedReshape", 0, tensor=numbers([6, 5], kind), shape=[3, -1], input_min=low, input_max=high)
            for align, half in [(False, False), (True, False), (False, True)]:
                for size in [[3, 4], [11, 5], [6, 7], [1, 1], [13, 20]]:
                    add("QuantizedResizeBilinear", 0, images=numbers([2, 6, 7, 3], kind), size=size, min=low, max=high,
                        align_corners=align, half_pixel_centers=half)
        for padding in ["SAME", "VALID"]:
            for ksize, strides in [([1, 2, 2, 1], [1, 2, 2, 1]), ([1, 3, 2, 1], [1, 1, 2, 1])]:
                for name in ["QuantizedMaxPool", "QuantizedAvgPool"]:
                    add(name, 0, input=numbers([2, 7, 6, 3]), min_input=low, max_input=high, ksize=ksize,
                        strides=strides, padding=padding)
        big = tf.bitcast(tf.constant((generator.normal(size=[40]) * 2**generator.integers(4, 30)).astype(np.int32)),
                         tf.qint32)
        for x in [numbers([50], tf.qint32), big]:
            for scale in [1.0, 1e3, 1e6]:
                given = dict(input=x, input_min=low * scale, input_max=high * scale)
                add("RequantizationRange", 0, **given)
                add("QuantizeDownAndShrinkRange", 0, out_type=tf.quint8, **given)
                add("Requantize", 0, requested_output_min=min(low, 0.0), requested_output_max=max(high, 0.0),
                    out_type=tf.quint8, **given)
        if low < 0:
            vectors = {f"{n}_{m}": r for n in ["m", "beta", "gamma"] for m, r in [("min", low), ("max", high)]}
            for scale in [False, True]:
                add("QuantizedBatchNormWithGlobalNormalization", 0, t=numbers([2, 3, 4, 5]), t_min=low, t_max=high,
                    m=numbers([5]), v=numbers([5]), v_min=0.0, v_max=4.0, beta=numbers([5]), gamma=numbers([5]),
                    out_type=tf.qint32, variance_epsilon=0.01, scale_after_normalization=scale, **vectors)
        add("QuantizedInstanceNorm", 1e-6, x=numbers([2, 4, 3, 5]), x_min=low, x_max=high, output_range_given=True,
            given_y_min=-3.0, given_y_max=3.0)
    for kind in [tf.quint8, tf.qint32]:
        for axis, shapes in [(0, [[2, 3], [4, 3]]), (1, [[2, 3, 2], [2, 1, 2], [2, 5, 2]])]:
            ranges = RANGES[: len(shapes)]
            for ranges in [ranges, [ranges[1]] * len(shapes)]:
                add("QuantizedConcat", 0, concat_dim=axis, values=[numbers(s, kind) for s in shapes],
                    input_mins=[r[0] for r in ranges], input_maxes=[r[1] for r in ranges])


def fused():
    # One image: TensorFlow pads the second one with pixels of the first.
    for dtype, near in [(np.float32, 2e-6), (np.float64, 1e-12), (np.float16, 4e-3)]:
        for mode in ["REFLECT", "SYMMETRIC"]:
            for padding, stride in [("VALID", 1), ("VALID", 2), ("SAME", 1)]:
                given = dict(paddings=[[0, 0], [2, 1], [1, 3], [0, 0]], filter=values([3, 2, 3, 4], dtype), mode=mode,
                             strides=[1, stride, stride, 1], padding=padding)
                if padding == "VALID":
                    add("FusedPadConv2D", near, input=values([1, 6, 7, 3], dtype), **given)
                if dtype == np.float32 and padding == "VALID":
                    add("FusedResizeAndPadConv2D", near, input=values([1, 6, 7, 3], dtype), size=[9, 8],
                        resize_align_corners=stride == 2, **given)


def debugging():
    for dtype in [np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_]:
        for shape in [[], [7, 3], [0]]:
            add("DebugNumericSummary", 1e-6, tensor_name="a:0", input=values(shape, dtype))
    special = values([5, 6], special=True)
    add("DebugNumericSummary", 1e-6, tensor_name="a:0", input=special)
    add("DebugNumericSummary", 1e-6, tensor_name="a:0", input=special, lower_bound=-1.5, upper_bound=2.0)
    for dtype in [np.float32, np.float64, np.float16]:
        add("DebugNanCount", 0, tensor_name="a:0", input=values([20], dtype, special=True))
    for name in ["Copy", "CopyHost", "DebugIdentity"]:
        add(name, 0, tensor_name="a:0", input=special)


main(binary, products, others, fused, debugging)
