"""Errors of kernels: operators with invalid inputs fail with TensorFlow's code and in TensorFlow's words.

Inputs are fed to placeholders of unknown shape, so that the kernel finds the fault, not shape inference. Programs match
the text by regular expressions: TensorFlow's must be a part of millrace's, after what both add about the node."""
import os
import re
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.client import session
from tensorflow.python.framework import error_interpolation

import millrace

error_interpolation.interpolate_graph = session.error_interpolation.interpolate_graph = lambda message, graph: message
raw = tf.raw_ops


def f(*shape):
    return np.ones(shape, np.float32)


def i(*values):
    return np.array(values, np.int32)


def n(value):
    return np.array(value, np.int32)


def sized(*shape):
    return np.ones(shape, np.int32)


CASES = [
    ("AddN", dict(inputs=[f(2, 3), f(3, 2)])),
    ("ArgMax", dict(input=f(2, 3), dimension=n(2))),
    ("ArgMax", dict(input=f(2, 3), dimension=n(-3))),
    ("ArgMax", dict(input=f(2, 3), dimension=i(1))),
    ("ArgMin", dict(input=f(2, 0), dimension=n(1))),
    ("BatchMatMul", dict(x=f(2, 3, 4), y=f(3, 4, 5))),
    ("BatchMatMulV2", dict(x=f(2, 3, 4), y=f(3, 4, 5))),
    ("BatchMatMulV2", dict(x=f(4), y=f(3, 4, 5))),
    ("BiasAdd", dict(value=f(3), bias=f(3))),
    ("BiasAdd", dict(value=f(2, 3), bias=f(2, 3))),
    ("BiasAdd", dict(value=f(2, 3), bias=f(2))),
    ("BiasAddGrad", dict(out_backprop=f(3))),
    ("BroadcastGradientArgs", dict(s0=i(2), s1=n(2))),
    ("ClipByValue", dict(t=f(2, 3), clip_value_min=f(2), clip_value_max=f())),
    ("ConcatOffset", dict(concat_dim=i(0), shape=[i(2, 3), i(2, 3)])),
    ("ConcatOffset", dict(concat_dim=n(0), shape=[i(2, 3), n(2)])),
    ("Conv2D", dict(input=f(2, 3), filter=f(1, 1, 1, 1), strides=[1] * 4, padding="VALID")),
    ("Conv2D", dict(input=f(2, 4, 4, 3), filter=f(2, 2), strides=[1] * 4, padding="VALID")),
    ("Conv2D", dict(input=f(2, 4, 4, 3), filter=f(2, 2, 2, 5), strides=[1] * 4, padding="VALID")),
    ("Conv2D", dict(input=f(2, 1, 1, 3), filter=f(3, 3, 3, 5), strides=[1] * 4, padding="VALID")),
    ("DepthwiseConv2dNative", dict(input=f(2, 4, 4, 3), filter=f(2, 2, 2, 5), strides=[1] * 4, padding="VALID")),
    ("EluGrad", dict(gradients=f(2, 3), outputs=f(3))),
    ("FFT2D", dict(input=np.ones([3], np.complex64))),
    ("HSVToRGB", dict(images=f(2, 4))),
    ("InTopKV2", dict(predictions=f(3), targets=i(0), k=n(1))),
    ("InTopKV2", dict(predictions=f(2, 3), targets=n(0), k=n(1))),
    ("InTopKV2", dict(predictions=f(2, 3), targets=i(0), k=n(1))),
    ("LeakyReluGrad", dict(gradients=f(2, 3), features=f(3))),
    ("LinSpace", dict(start=f(), stop=f(), num=i(4))),
    ("LogSoftmax", dict(logits=f())),
    ("MatMul", dict(a=f(2, 3), b=f(4, 5))),
    ("MatMul", dict(a=f(2, 3), b=f(3))),
    ("MatMul", dict(a=f(3), b=f(3))),
    ("MatrixInverse", dict(input=f(3))),
    ("MatrixSolve", dict(matrix=f(2, 2), rhs=f(2))),
    ("MatrixSolve", dict(matrix=f(2, 2), rhs=f(3, 1))),
    ("MatrixSolveLs", dict(matrix=f(2, 2), rhs=f(2, 2, 2), l2_regularizer=np.float64(0))),
    ("MatrixSolveLs", dict(matrix=f(2, 2), rhs=f(2, 2), l2_regularizer=np.zeros([1]))),
    ("MatrixTriangularSolve", dict(matrix=f(2, 3), rhs=f(2, 2))),
    ("Max", dict(input=f(2, 3), axis=i(0, -2))),
    ("MaxPool", dict(input=f(2, 4, 4, 5), ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2], padding="SAME")),
    ("MaxPool", dict(input=f(2, 4, 4, 6), ksize=[1, 1, 1, 2], strides=[1, 1, 1, 3], padding="SAME")),
    ("MaxPool", dict(input=f(2, 4, 4, 6), ksize=[1, 2, 2, 2], strides=[1, 1, 1, 2], padding="SAME")),
    ("MaxPool", dict(input=f(2, 1, 4, 6), ksize=[1, 4, 2, 1], strides=[1, 1, 1, 1], padding="VALID")),
    ("Pad", dict(input=f(2, 3), paddings=sized(2))),
    ("Pad", dict(input=f(2, 3), paddings=sized(1, 2))),
    ("PadV2", dict(input=f(2), paddings=sized(1, 2), constant_values=f(1))),
    ("RandomUniform", dict(shape=n(3), dtype=tf.float32)),
    ("RandomUniformInt", dict(shape=i(3), minval=i(1), maxval=n(2))),
    ("Range", dict(start=i(1, 2), limit=n(3), delta=n(1))),
    ("ResizeBilinear", dict(images=f(3), size=i(2, 2))),
    ("ReluGrad", dict(gradients=f(2, 3), features=f(3, 2))),
    ("ReverseV2", dict(tensor=f(2, 3), axis=n(0))),
    ("SegmentSum", dict(data=f(3, 2), segment_ids=i(0, 1, 0))),
    ("SegmentMean", dict(data=f(3, 2), segment_ids=i(0, 0, -1))),
    ("SegmentMax", dict(data=f(3, 2), segment_ids=i(1, 0, 2))),
    ("SegmentMin", dict(data=f(3, 2), segment_ids=i(-2, 0, 2))),
    ("Select", dict(condition=np.ones([2], bool), x=f(3, 2), y=f(3, 2))),
    ("Select", dict(condition=np.ones([2], bool), x=f(2, 2), y=f(2, 3))),
    ("Select", dict(condition=np.ones([2, 2], bool), x=f(2, 3), y=f(2, 3))),
    ("Select", dict(condition=np.ones([2], bool), x=f(), y=f())),
    ("SparseSegmentSum", dict(data=f(3, 2), indices=i(0, 1), segment_ids=i(1, 0))),
    ("SparseSegmentMean", dict(data=f(3, 2), indices=i(0, 3), segment_ids=i(0, 0))),
    ("SparseSoftmaxCrossEntropyWithLogits", dict(features=f(2, 3), labels=n(1))),
    ("SparseSoftmaxCrossEntropyWithLogits", dict(features=f(3), labels=i(1))),
    ("SparseSoftmaxCrossEntropyWithLogits", dict(features=f(2, 3), labels=i(1))),
    ("SparseSoftmaxCrossEntropyWithLogits", dict(features=f(2, 0), labels=i(1, 1))),
    ("Split", dict(axis=i(0), value=f(2, 3), num_split=2)),
    ("SplitV", dict(value=f(2, 3), size_splits=i(1, 1), axis=i(0, 0), num_split=2)),
    ("StatelessRandomUniform", dict(shape=n(2), seed=i(1, 2))),
    ("StridedSlice", dict(input=f(2, 3), begin=i(0), end=i(1, 1), strides=i(1))),
    ("StridedSlice", dict(input=f(), begin=i(0), end=i(1), strides=i(1))),
    ("Sum", dict(input=f(2, 3), axis=i(1, 1))),
    ("Sum", dict(input=f(2, 3), axis=i(2))),
]
for image in ("input", "scale", "offset", "mean", "variance"):
    norm = dict(x=f(2, 4, 4, 3), scale=f(3), offset=f(3), mean=f(3), variance=f(3), is_training=False)
    wrong = dict(norm, **{image if image != "input" else "x": f(2)})
    CASES.append(("FusedBatchNormV3", wrong))
    CASES.append(("FusedBatchNormV3", dict(norm, **{image if image != "input" else "x": f(2, 2)})))

with tf.Graph().as_default(), tf.Session() as session:
    pixels = np.arange(40 * 50 * 3).reshape(40, 50, 3).astype(np.uint8)
    JPEG, PNG = session.run([tf.io.encode_jpeg(pixels), tf.io.encode_png(pixels)])
for length in (0, 2, 5, 30, len(JPEG) // 2, len(JPEG) - 40, len(JPEG) - 1):
    CASES.append(("DecodeJpeg", dict(contents=JPEG[:length])))
    CASES.append(("DecodeJpeg", dict(contents=JPEG[:length], acceptable_fraction=0.99)))
    CASES.append(("DecodeAndCropJpeg", dict(contents=JPEG[:length], crop_window=[30, 3, 10, 7])))
for length in (0, 3, 60, len(PNG) // 2, len(PNG) - 1):
    CASES.append(("DecodePng", dict(contents=PNG[:length])))

for operator in ["TanhGrad", "SigmoidGrad", "InvGrad", "ReciprocalGrad", "RsqrtGrad", "SqrtGrad"]:
    CASES.append((operator, dict(y=f(2, 3), dy=f(3))))
    CASES.append((operator, dict(y=f(2, 3), dy=f())))
    CASES.append((operator, dict(y=f(1), dy=f(0))))
for operator, second in [("SoftplusGrad", "features"), ("SoftsignGrad", "features"), ("EluGrad", "outputs"),
                         ("SeluGrad", "outputs"), ("ReluGrad", "features"), ("Relu6Grad", "features"),
                         ("LeakyReluGrad", "features")]:
    for shape in [(3, 2), (6,), (), (1, 3)]:
        CASES.append((operator, {"gradients": f(2, 3), second: f(*shape)}))


def text(error):
    message = re.split(r"\n?\s*\[\[\{\{node", getattr(error, "message", None) or str(error))[0]
    return re.sub(r"^\(\d+\) \w+: ", "", message).strip()


def outcome(run, fetches, feeds):
    try:
        run(fetches, feeds)
        return 0, ""
    except (tf.errors.OpError, millrace.errors.OpError) as error:
        return error.error_code, text(error)


def check(operator, arguments):
    feeds = {}

    def placeholder(value):
        tensor = tf.placeholder(value.dtype, name=f"i{len(feeds)}")
        feeds[tensor.name] = value
        return tensor

    with tf.Graph().as_default() as graph:
        inputs = {}
        for name, value in arguments.items():
            if isinstance(value, list) and isinstance(value[0], np.ndarray):
                inputs[name] = [placeholder(v) for v in value]
            else:
                inputs[name] = placeholder(value) if isinstance(value, (np.ndarray, np.generic)) else value
        result = getattr(raw, operator)(**inputs, name="n")
        while isinstance(result, (list, tuple)):
            result = result[0]
        fetches = [result.name]
        with tf.Session() as plain:
            expected = outcome(plain.run, fetches, feeds)
        with millrace.Session(graph.as_graph_def().SerializeToString()) as own:
            found = outcome(own.run, fetches, feeds)
    if expected[0] == found[0] and expected[1] in found[1]:
        return True
    shapes = {name: getattr(value, "shape", value) for name, value in arguments.items()}
    print(f"FAILED {operator} {shapes}\n  TensorFlow {expected}\n  millrace   {found}")
    return False


def main():
    tf.disable_v2_behavior()
    failed = sum(not check(*case) for case in CASES)
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
