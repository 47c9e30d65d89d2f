"""Array operators, compared with TensorFlow's: blocks, diagonals, partitions, unique elements, scattering, order."""
import os

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # oneDNN's Dequantize lacks types
import numpy as np
import tensorflow as tf
from ops_compare import HALVES, NAN, NARROW, NUMBERS, add, generator, main, raw, values

ALL = NUMBERS + NARROW + HALVES
WIDE = [np.uint32, np.uint64]
COMPLEX = [np.complex64, np.complex128]
WORDS = np.array([b"", b"a", b"bc", b"a longer word", b"\x00\xff"], dtype=object)


def any_values(shape, dtype):
    if dtype == object:
        return tf.constant(WORDS[generator.integers(0, len(WORDS), shape)], tf.string)
    if dtype in COMPLEX:
        return (generator.uniform(-4, 4, shape) + 1j * generator.uniform(-4, 4, shape)).astype(dtype)
    if dtype in WIDE:
        return generator.integers(0, 9, shape).astype(dtype)
    return values(shape, dtype)


def space_cases():
    for dtype in ALL + WIDE:
        add("SpaceToBatchND", 0, input=any_values([2, 3, 4, 2], dtype), block_shape=[2, 3], paddings=[[1, 0], [0, 2]])
        add("BatchToSpaceND", 0, input=any_values([12, 3, 2, 2], dtype), block_shape=[2, 3], crops=[[1, 0], [0, 2]])
    for shape, block, edges in [
        ([4, 6], [3], [[0, 0]]),
        ([1, 5], [3], [[4, 0]]),
        ([2, 0, 3], [2], [[0, 2]]),
        ([0, 4, 3], [2], [[0, 2]]),
        ([3, 2, 3, 4, 5], [1, 3, 2], [[0, 0], [3, 3], [1, 1]]),
        ([2, 7], [], np.zeros([0, 2], np.int32)),
        ([2, 100, 90, 8], [2, 2], [[0, 0], [0, 0]]),
    ]:
        block = np.array(block, np.int64)
        add("SpaceToBatchND", 0, input=values(shape), block_shape=block, paddings=edges)
        product = int(np.prod(block))
        add("BatchToSpaceND", 0, input=values([shape[0] * product] + shape[1:]), block_shape=block, crops=edges[:0] if
            len(block) == 0 else np.zeros([len(block), 2], np.int32))
    add("BatchToSpaceND", 0, input=values([4, 3, 5]), block_shape=[2, 2], crops=[[3, 3], [1, 9]])
    add("SpaceToBatch", 0, input=values([2, 3, 5, 2]), block_size=2, paddings=[[1, 0], [0, 1]])
    add("BatchToSpace", 0, input=values([8, 3, 5, 2]), block_size=2, crops=[[1, 0], [0, 1]])
    for dtype in ALL + COMPLEX + [np.bool_, object]:
        add("SpaceToDepth", 0, input=any_values([2, 4, 6, 3], dtype), block_size=2)
        add("DepthToSpace", 0, input=any_values([2, 2, 3, 18], dtype), block_size=3)
    add("SpaceToDepth", 0, input=values([0, 4, 6, 3]), block_size=2)
    add("DepthToSpace", 0, input=values([8, 32, 32, 16]), block_size=2)
    for padding in ["SAME", "VALID"]:
        for dtype in ALL + WIDE + COMPLEX:
            add("ExtractImagePatches", 0, images=any_values([2, 7, 6, 3], dtype), ksizes=[1, 3, 2, 1],
                strides=[1, 2, 1, 1], rates=[1, 1, 2, 1], padding=padding)
        for size, stride, rate in [(1, 1, 1), (3, 1, 1), (2, 3, 1), (3, 4, 2), (4, 2, 1), (1, 7, 1)]:
            add("ExtractImagePatches", 0, images=values([2, 9, 8, 2]), ksizes=[1, size, size, 1],
                strides=[1, stride, stride, 1], rates=[1, rate, rate, 1], padding=padding)
            add("ExtractVolumePatches", 0, input=values([2, 5, 6, 7, 2]), ksizes=[1, size, 2, size, 1],
                strides=[1, stride, 1, stride, 1], padding=padding)
    add("ExtractImagePatches", 0, images=values([0, 9, 8, 2]), ksizes=[1, 3, 3, 1], strides=[1, 1, 1, 1],
        rates=[1, 1, 1, 1], padding="SAME")


def diagonal_cases():
    for dtype in [np.float32, np.float64, np.int32, np.int64, np.float16] + COMPLEX:
        add("Diag", 0, diagonal=any_values([2, 3], dtype))
        add("DiagPart", 0, input=any_values([2, 3, 2, 3], dtype))
    add("Diag", 0, diagonal=values([1]))
    add("Diag", 0, diagonal=values([300]))
    add("DiagPart", 0, input=values([200, 200]))
    for dtype in ALL + WIDE + COMPLEX + [np.bool_]:
        add("MatrixDiag", 0, diagonal=any_values([2, 3], dtype))
        add("MatrixDiagPart", 0, input=any_values([2, 3, 4], dtype))
        add("MatrixSetDiag", 0, input=any_values([2, 3, 4], dtype), diagonal=any_values([2, 3], dtype))
        add("MatrixBandPart", 0, input=any_values([2, 3, 4], dtype), num_lower=np.int64(1), num_upper=np.int64(0))
        add("MatrixDiagPartV3", 0, input=any_values([2, 3, 4], dtype), k=[-1, 2], padding_value=any_values([], dtype))
    aligns = ["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"]
    for rows, columns in [(3, 4), (5, 2), (1, 1), (4, 4), (1, 6)]:
        for low in range(-rows + 1, columns):
            for high in range(low, columns):
                x, align = values([2, rows, columns]), aligns[(low + high) % 4]
                k = low if low == high else [low, high]
                packed = raw.MatrixDiagPartV3(input=x, k=k, padding_value=np.float32(7), align=align)
                cases_before = np.float32(7)
                add("MatrixDiagPartV3", 0, input=x, k=k, padding_value=cases_before, align=align)
                add("MatrixSetDiagV3", 0, input=x, diagonal=values(packed.shape.as_list()), k=k, align=align)
                add("MatrixDiagV3", 0, diagonal=values(packed.shape.as_list()), k=k, num_rows=-1, num_cols=-1,
                    padding_value=cases_before, align=align)
                add("MatrixDiagV3", 0, diagonal=values(packed.shape.as_list()), k=k, num_rows=rows, num_cols=columns,
                    padding_value=cases_before, align=align)
                add("MatrixDiagPartV2", 0, input=x, k=k, padding_value=cases_before)
                add("MatrixSetDiagV2", 0, input=x, diagonal=values(packed.shape.as_list()), k=k)
    add("MatrixDiagV2", 0, diagonal=values([0, 3]), k=0, num_rows=-1, num_cols=-1, padding_value=np.float32(1))
    add("MatrixDiagPart", 0, input=values([0, 3, 4]))
    add("MatrixSetDiag", 0, input=values([500, 30]), diagonal=values([30]))
    for low in [-1, 0, 2, 5]:
        for high in [-1, 0, 3, 6]:
            add("MatrixBandPart", 0, input=values([2, 5, 6]), num_lower=np.int32(low), num_upper=np.int32(high))
    add("MatrixBandPart", 0, input=values([0, 5, 6]), num_lower=np.int64(1), num_upper=np.int64(1))
    add("MatrixBandPart", 0, input=values([3, 300, 200]), num_lower=np.int64(7), num_upper=np.int64(-1))


def partition_cases():
    for dtype in ALL + WIDE + COMPLEX + [np.bool_, object]:
        add("DynamicPartition", 0, data=any_values([5, 3], dtype), partitions=[2, 0, 2, 1, 0], num_partitions=4)
        for name in ["DynamicStitch", "ParallelDynamicStitch"]:
            add(name, 0, indices=[[1, 3], [[0, 2], [4, 5]]], data=[any_values([2, 3], dtype),
                                                                  any_values([2, 2, 3], dtype)])
    add("DynamicPartition", 0, data=values([2, 3, 4]), partitions=[[0, 1, 1], [2, 0, 1]], num_partitions=3)
    add("DynamicPartition", 0, data=values([]), partitions=1, num_partitions=3)
    add("DynamicPartition", 0, data=values([0, 3]), partitions=np.zeros([0], np.int32), num_partitions=2)
    add("DynamicPartition", 0, data=values([4, 0]), partitions=[0, 1, 1, 0], num_partitions=2)
    add("DynamicStitch", 0, indices=[0, 2, 1], data=[values([4]), values([4]), values([4])])
    add("DynamicStitch", 0, indices=[[0, 1], [1, 0]], data=[values([2]), values([2])])
    add("DynamicStitch", 0, indices=[np.zeros([0], np.int32)], data=[values([0, 3])])
    for dtype in ALL + WIDE + [np.bool_, object]:
        x = any_values([60], dtype)
        for index in [tf.int32, tf.int64]:
            add("Unique", 0, x=x, out_idx=index)
            add("UniqueWithCounts", 0, x=x, out_idx=index)
        y = any_values([3, 40], dtype)
        add("UniqueV2", 0, x=y, axis=[1])
        add("UniqueWithCountsV2", 0, x=y, axis=[0])
        if dtype != np.bool_:
            add("ListDiff", 0, x=x, y=any_values([3], dtype))
    add("Unique", 0, x=np.array([1, NAN, -0.0, 0, NAN, 1], np.float32))
    add("Unique", 0, x=values([0]))
    add("Unique", 0, x=generator.integers(0, 5000, [20000]).astype(np.int64))
    add("UniqueV2", 0, x=generator.integers(0, 2, [4, 30, 2]).astype(np.int32), axis=[1])
    add("UniqueV2", 0, x=generator.integers(0, 2, [4, 30, 2]).astype(np.float32), axis=[-2])
    add("UniqueV2", 0, x=values([3, 0]), axis=[0])
    add("UniqueV2", 0, x=values([0, 3]), axis=[0])
    add("UniqueV2", 0, x=values([5]), axis=np.zeros([0], np.int64))
    add("ListDiff", 0, x=values([0]), y=values([3]))
    add("ListDiff", 0, x=generator.integers(0, 500, [900]), y=generator.integers(0, 500, [200]), out_idx=tf.int64)
    for normalize in [True, False]:
        for dtype in [np.int64, np.float32, np.uint8, object]:
            for rank in [2, 3]:
                dims = [3, 4, 6][-rank:]
                sparse = []
                for _ in range(2):
                    filled = np.argwhere(generator.integers(0, 2, dims))
                    sparse.append((filled.astype(np.int64), any_values([len(filled)], dtype)))
                add("EditDistance", 0, hypothesis_indices=sparse[0][0], hypothesis_values=sparse[0][1],
                    hypothesis_shape=np.array(dims, np.int64), truth_indices=sparse[1][0], truth_values=sparse[1][1],
                    truth_shape=np.array(dims, np.int64), normalize=normalize)


def rearrange_cases():
    for source, target in [(tf.float32, tf.int32), (tf.float32, tf.uint8), (tf.int64, tf.float32),
                           (tf.complex64, tf.float16), (tf.uint16, tf.bfloat16)]:
        add("Bitcast", 0, input=tf.cast(tf.constant(values([3, 4])), source), type=target)
    add("Bitcast", 0, input=values([3, 4], np.uint8), type=tf.float32)
    add("Bitcast", 0, input=values([0, 8], np.uint8), type=tf.int64)
    add("Bitcast", 0, input=values([]), type=tf.int8)
    for dtype in ALL + WIDE + COMPLEX + [np.bool_, object]:
        add("ReverseSequence", 0, input=any_values([3, 4, 2], dtype), seq_lengths=np.array([0, 4, 2], np.int64),
            seq_dim=1, batch_dim=0)
        add("Roll", 0, input=any_values([3, 4, 2], dtype), shift=[1, -5], axis=[0, 1])
    add("ReverseSequence", 0, input=values([4, 2, 3, 2]), seq_lengths=np.array([1, 3], np.int32), seq_dim=0,
        batch_dim=1)
    add("ReverseSequence", 0, input=values([4, 2, 3, 2]), seq_lengths=np.array([1, 3, 2, 0], np.int32), seq_dim=2,
        batch_dim=0)
    add("ReverseSequence", 0, input=values([0, 3]), seq_lengths=np.zeros([0], np.int64), seq_dim=1, batch_dim=0)
    for shape, shift, axis in [([5], 2, 0), ([5], -12, -1), ([3, 4], [1, 2, 3], [0, 1, 0]), ([0, 3], 1, 1),
                               ([300, 200], [17, 40], [1, 0]), ([2, 3, 4, 2], [1, 1, 1, 1], [0, 1, 2, 3])]:
        add("Roll", 0, input=values(shape), shift=shift, axis=axis)
    for dtype in [np.int32, np.int64]:
        add("UnravelIndex", 0, indices=np.array([0, 5, 23], dtype), dims=np.array([2, 3, 4], dtype))
        add("UnravelIndex", 0, indices=dtype(7), dims=np.array([2, 4], dtype))
        add("UnravelIndex", 0, indices=np.array([-5, -1], dtype), dims=np.array([2, 4], dtype))
    for dtype in ALL + WIDE + COMPLEX:
        for mode in ["REFLECT", "SYMMETRIC"]:
            add("MirrorPadGrad", 1e-2 if dtype in HALVES else 1e-6, input=any_values([5, 7], dtype),
                paddings=[[1, 1], [2, 0]], mode=mode)
    add("MirrorPadGrad", 1e-6, input=values([4, 9, 5]), paddings=np.array([[0, 0], [2, 3], [1, 1]]), mode="SYMMETRIC")
    for dtype in ALL + [object]:
        add("InplaceUpdate", 0, x=any_values([4, 3], dtype), i=[3, 0], v=any_values([2, 3], dtype)) if dtype in [
            np.float32, np.int32, np.int64, np.float64] else None
    for name in ["InplaceAdd", "InplaceSub"]:
        for dtype in NUMBERS + HALVES:
            add(name, 0, x=any_values([4, 3], dtype), i=[3, 0, 3], v=any_values([3, 3], dtype))
    for dtype in ALL + [np.bool_]:
        add("DeepCopy", 0, x=any_values([4, 3], dtype))
    add("Empty", 0, shape=[2, 3], dtype=tf.float32, init=True)


def order_cases():
    for dtype in ALL + WIDE:
        for k in [0, 1, 3, 40]:
            add("TopKV2", 0, input=any_values([5, 40], dtype), k=k)
        for reverse in [False, True]:
            for n in [0, 7, 39]:
                add("NthElement", 0, input=any_values([5, 40], dtype), n=n, reverse=reverse)
    add("TopKV2", 0, input=values([3, 5000]), k=100)
    add("TopKV2", 0, input=values([300, 10]), k=np.int64(4), index_type=tf.int64)
    add("TopKV2", 0, input=values([6]), k=np.int16(4), index_type=tf.int16)
    add("TopKV2", 0, input=values([0, 6]), k=2)
    add("NthElement", 0, input=values([4, 3000]), n=1500)
    add("NthElement", 0, input=values([7]), n=3)


def scatter_cases():
    for dtype in ALL + WIDE + COMPLEX + [np.bool_, object]:
        add("ScatterNd", 0, indices=[[3], [0], [3]], updates=any_values([3, 2], dtype), shape=[5, 2])
        add("TensorScatterUpdate", 0, tensor=any_values([4, 3], dtype), indices=[[1], [3]],
            updates=any_values([2, 3], dtype))
        if dtype == object:
            continue
        add("ScatterNdNonAliasingAdd", 0, input=any_values([4, 3], dtype), indices=[[1], [3], [1]],
            updates=any_values([3, 3], dtype))
        if dtype == np.bool_:
            continue
        for name in ["Add", "Sub"] + ([] if dtype in COMPLEX else ["Max", "Min"]):
            add("TensorScatter" + name, 0, tensor=any_values([4, 3], dtype), indices=[[1], [3], [1]],
                updates=any_values([3, 3], dtype))
            add("TensorScatter" + name, 0, tensor=any_values([4, 3], dtype), indices=np.array([[1, 2], [0, 0]]),
                updates=any_values([2], dtype))
    add("ScatterNd", 0, indices=np.zeros([0, 1], np.int64), updates=values([0]), shape=np.array([3]))
    for dtype in ALL + WIDE + COMPLEX + [np.bool_, object]:
        add("GatherNd", 0, params=any_values([4, 3], dtype), indices=[[1, 2], [0, 0]])
        add("GatherV2", 0, params=any_values([2, 3, 4], dtype), indices=[[1, 2], [0, 0]], axis=2, batch_dims=1)
        add("Reverse", 0, tensor=any_values([2, 3], dtype), dims=[True, False])
        add("ReverseV2", 0, tensor=any_values([2, 3], dtype), axis=[-1])
        if dtype not in [np.uint16] + WIDE:  # some have no kernel in TensorFlow
            add("Tile", 0, input=any_values([2, 3], dtype), multiples=[2, 2])
        add("Fill", 0, dims=[2, 3], value=any_values([], dtype))
        add("ConcatV2", 0, values=[any_values([2, 3], dtype), any_values([2, 1], dtype)], axis=1)
        add("Pack", 0, values=[any_values([2, 3], dtype), any_values([2, 3], dtype)], axis=1)
        add("Unpack", 0, value=any_values([2, 3], dtype), num=3, axis=1)
        add("Split", 0, axis=1, value=any_values([2, 6], dtype), num_split=3)
        add("SplitV", 0, axis=1, value=any_values([2, 6], dtype), size_splits=[1, -1, 2], num_split=3)
        add("StridedSlice", 0, input=any_values([4, 6], dtype), begin=[3, 1], end=[0, 6], strides=[-2, 3])
        add("StridedSliceGrad", 0, shape=[4, 6], begin=[3, 1], end=[0, 6], strides=[-2, 3],
            dy=any_values([2, 2], dtype)) if dtype != object else None
        add("Transpose", 0, x=any_values([4, 6], dtype), perm=[1, 0])
        add("ConjugateTranspose", 0, x=any_values([4, 6], dtype), perm=[1, 0])
        add("ConjugateTranspose", 0, x=any_values([4, 6], dtype), perm=[0, 1])
        add("BroadcastTo", 0, input=any_values([4, 1], dtype), shape=[2, 4, 3])
        add("OneHot", 0, indices=[1, 0, 7], depth=3, on_value=any_values([], dtype), off_value=any_values([], dtype))
        add("PadV2", 0, input=any_values([2, 3], dtype), paddings=[[1, 0], [0, 2]],
            constant_values=any_values([], dtype))
        add("MirrorPad", 0, input=any_values([4, 3], dtype), paddings=[[1, 0], [2, 2]], mode="REFLECT")
        add("ZerosLike", 0, x=any_values([2, 3], dtype))
        if dtype != object:
            add("OnesLike", 0, x=any_values([2, 3], dtype))
            if dtype not in HALVES:
                add("Where", 0, condition=any_values([4, 3], dtype))


def quantize_cases():
    x = values([7, 5], np.float32, -3, 5)
    for kind in [tf.qint8, tf.quint8, tf.qint16, tf.quint16, tf.qint32]:
        for low, high in [(-1.0, 2.0), (0.0, 3.0), (-4.0, 0.0), (-0.001, 0.001), (1.0, 2.0), (-3.0, -1.0), (0.0, 0.0)]:
            low, high = np.float32(low), np.float32(high)
            for mode in ["MIN_COMBINED", "MIN_FIRST", "SCALED"]:
                add("QuantizeV2", 1e-6, input=x, min_range=low, max_range=high, T=kind, mode=mode)
                shape = [7, 4, kind.size] if kind.size > 1 else [7, 4]
                bits = raw.Bitcast(input=generator.integers(0, 255, shape).astype(np.uint8), type=kind)
                add("Dequantize", 1e-6, input=bits, min_range=low, max_range=high, mode=mode)
                if mode == "SCALED":
                    add("QuantizeV2", 1e-6, input=x, min_range=low, max_range=high, T=kind, mode=mode,
                        round_mode="HALF_TO_EVEN", narrow_range=True)
                    add("Dequantize", 1e-6, input=bits, min_range=low, max_range=high, mode=mode, narrow_range=True)
                if mode == "MIN_COMBINED":
                    add("Dequantize", 1e-2, input=bits, min_range=low, max_range=high, mode=mode, dtype=tf.bfloat16)
        for mode in ["MIN_COMBINED", "SCALED"]:
            lows, highs = values([5], np.float32, -3, 0), values([5], np.float32, 0, 3)
            add("QuantizeV2", 1e-6, input=x, min_range=lows, max_range=highs, T=kind, mode=mode, axis=1)
    for dtype in [np.float32, np.float64]:
        x = values([6, 5], dtype, -3, 5)
        for signed in [True, False]:
            for bits in [1, 4, 8, 16] if not signed else [2, 4, 8, 16]:
                for given in [True, False]:
                    for mode in ["HALF_TO_EVEN", "HALF_UP"]:
                        for narrow in [True, False]:
                            for name in ["QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"]:
                                add(name, 0, input=x, input_min=dtype(-1), input_max=dtype(2), signed_input=signed,
                                    num_bits=bits, range_given=given, round_mode=mode, narrow_range=narrow)
                    add("QuantizeAndDequantizeV3", 0, input=x, input_min=dtype(-1), input_max=dtype(2), num_bits=bits,
                        signed_input=signed, range_given=given)
                    add("QuantizeAndDequantizeV3", 0, input=x, input_min=values([5], dtype, -3, 0),
                        input_max=values([5], dtype, 0, 3), num_bits=bits, signed_input=signed, range_given=given,
                        axis=1)
        add("QuantizeAndDequantizeV4Grad", 0, gradients=values([6, 5], dtype), input=x, input_min=dtype(-1),
            input_max=dtype(2))
        add("QuantizeAndDequantizeV4Grad", 0, gradients=values([6, 5], dtype), input=x,
            input_min=values([5], dtype, -3, 0), input_max=values([5], dtype, 0, 3), axis=1)
    x, g = values([40, 6], np.float32, -3, 3), values([40, 6])
    for bits in [2, 8, 16]:
        for narrow in [True, False]:
            for low, high in [(-1.0, 2.0), (0.0, 1.0), (-1.5, 0.0), (0.5, 2.0), (-2.0, -0.5)]:
                add("FakeQuantWithMinMaxArgs", 1e-6, inputs=x, min=low, max=high, num_bits=bits, narrow_range=narrow)
                add("FakeQuantWithMinMaxArgsGradient", 0, gradients=g, inputs=x, min=low, max=high, num_bits=bits,
                    narrow_range=narrow)
                limits = dict(min=np.float32(low), max=np.float32(high), num_bits=bits, narrow_range=narrow)
                add("FakeQuantWithMinMaxVars", 1e-6, inputs=x, **limits)
                add("FakeQuantWithMinMaxVarsGradient", 1e-5, gradients=g, inputs=x, **limits)
            limits = dict(min=values([6], np.float32, -3, 0), max=values([6], np.float32, 0, 3), num_bits=bits,
                          narrow_range=narrow)
            add("FakeQuantWithMinMaxVarsPerChannel", 1e-6, inputs=x, **limits)
            add("FakeQuantWithMinMaxVarsPerChannelGradient", 1e-5, gradients=g, inputs=x, **limits)
    zero = np.float32(0)
    add("FakeQuantWithMinMaxVars", 0, inputs=x, min=zero, max=zero)
    add("FakeQuantWithMinMaxVarsGradient", 0, gradients=g, inputs=x, min=zero, max=zero)
    add("FakeQuantWithMinMaxVarsPerChannel", 1e-6, inputs=values([6]), min=values([6], np.float32, -3, 0),
        max=values([6], np.float32, 0, 3))


def debug_cases():
    for dtype in [np.float32, np.float64] + HALVES:
        add("CheckNumericsV2", 0, tensor=values([2, 3], dtype), message="m")
    add("EnsureShape", 0, input=values([2, 3]), shape=[None, 3])
    add("GuaranteeConst", 0, input=values([2, 3]))
    add("DebugGradientIdentity", 0, input=values([2, 3]))


def index_cases():
    bounds = {"begin": np.int16([3, 1]), "end": np.int16([0, 6]), "strides": np.int16([-2, 3])}
    for dtype in ALL:
        add("StridedSlice", 0, input=any_values([4, 6], dtype), **bounds)


main(space_cases, diagonal_cases, partition_cases, rearrange_cases, order_cases, scatter_cases, quantize_cases,
     debug_cases, index_cases)
