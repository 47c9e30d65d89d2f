"""Kernels of neural networks: convolution, pooling, recurrent cells, CTC, losses."""
import numpy as np
import tensorflow as tf
from ops_compare import HALVES, add, cases, generator, main, raw, values

BFLOAT16 = tf.bfloat16.as_numpy_dtype
REALS = [np.float32, np.float64, np.float16, BFLOAT16]
INTEGERS = [np.int32, np.int64, np.int16, np.int8, np.uint8, np.uint16, np.uint32, np.uint64]


def tolerance(dtype, exact=2e-5):
    return {np.float64: 1e-12, np.float16: 2e-2, BFLOAT16: 8e-2}.get(dtype, exact)


def near(name, dtype=np.float32, scale=1, **arguments):
    add(name, scale * tolerance(dtype), **arguments)


def run(tensor):
    """The value of a tensor of the graph under construction."""
    with tf.compat.v1.Session(graph=tf.compat.v1.get_default_graph()) as session:
        return session.run(tensor)


def depthwise_cases():
    for dtype in REALS:
        for stride, padding, multiplier in [(1, "SAME", 1), (2, "VALID", 3), (2, "SAME", 2)]:
            x, f = values([2, 9, 8, 5], dtype), values([3, 2, 5, multiplier], dtype)
            strides = [1, stride, stride, 1]
            y = raw.DepthwiseConv2dNative(input=x, filter=f, strides=strides, padding=padding)
            dy = values(y.shape.as_list(), dtype)
            near("DepthwiseConv2dNative", dtype, input=x, filter=f, strides=strides, padding=padding)
            near("DepthwiseConv2dNativeBackpropInput", dtype, input_sizes=[2, 9, 8, 5], filter=f, out_backprop=dy,
                 strides=strides, padding=padding)
            near("DepthwiseConv2dNativeBackpropFilter", dtype, 4, input=x, filter_sizes=f.shape, out_backprop=dy,
                 strides=strides, padding=padding)
    near("DepthwiseConv2dNative", input=values([1, 6, 7, 2]), filter=values([3, 3, 2, 2]), strides=[1, 1, 1, 1],
         padding="EXPLICIT", explicit_paddings=[0, 0, 1, 0, 2, 1, 0, 0])
    near("DepthwiseConv2dNative", input=values([0, 6, 7, 2]), filter=values([3, 3, 2, 2]), strides=[1, 1, 1, 1],
         padding="SAME")


def conv_cases():
    for dtype in [np.float16, BFLOAT16, np.float64, np.int32]:
        x, f, dy = values([2, 7, 6, 3], dtype), values([3, 2, 3, 4], dtype), values([2, 4, 3, 4], dtype)
        kind = {"strides": [1, 2, 2, 1], "padding": "SAME"}
        near("Conv2D", dtype, input=x, filter=f, **kind)
        near("Conv2DBackpropInput", dtype, input_sizes=x.shape, filter=f, out_backprop=dy, **kind)
        if dtype != np.int32:
            near("Conv2DBackpropFilter", dtype, 4, input=x, filter_sizes=f.shape, out_backprop=dy, **kind)


    # large enough for Winograd's method and for matrix products: window, stride, channels, filters
    for window, stride, channels, filters in [(3, 1, 32, 48), (5, 1, 32, 32), (5, 2, 48, 32), (1, 2, 128, 64)]:
        for padding in ["SAME", "VALID"]:
            kind = {"strides": [1, stride, stride, 1], "padding": padding}
            x, f = values([6, 26, 25, channels]), values([window, window, channels, filters])
            dy = run(raw.Conv2D(input=x, filter=f, **kind)) * np.float32(0.1)
            near("Conv2D", scale=10, input=x, filter=f, **kind)
            near("Conv2DBackpropInput", scale=10, input_sizes=x.shape, filter=f, out_backprop=dy, **kind)
            near("Conv2DBackpropFilter", scale=20, input=x, filter_sizes=f.shape, out_backprop=dy, **kind)


def volume_cases():
    for dtype in REALS:
        for stride, padding in [(1, "SAME"), (2, "VALID"), (2, "SAME")]:
            kind = {"strides": [1, stride, 1, stride, 1], "padding": padding}
            x, f = values([2, 6, 5, 7, 3], dtype), values([3, 2, 3, 3, 4], dtype)
            y = raw.Conv3D(input=x, filter=f, **kind)
            dy = values(y.shape.as_list(), dtype)
            near("Conv3D", dtype, input=x, filter=f, **kind)
            near("Conv3DBackpropInputV2", dtype, input_sizes=x.shape, filter=f, out_backprop=dy, **kind)
            near("Conv3DBackpropFilterV2", dtype, 8, input=x, filter_sizes=f.shape, out_backprop=dy, **kind)
    for dtype in [np.float32, BFLOAT16]:
        for stride, padding in [(1, "SAME"), (2, "VALID"), (3, "SAME")]:
            kind = {"ksize": [1, 2, 3, 2, 1], "strides": [1, stride, 1, stride, 1], "padding": padding}
            x = np.round(values([2, 6, 5, 7, 3], np.float32)).astype(dtype)
            y = run(raw.MaxPool3D(input=x, **kind))
            dy = values(y.shape, dtype)
            add("MaxPool3D", 0, input=x, **kind)
            near("MaxPool3DGrad", dtype, orig_input=x, orig_output=y, grad=dy, **kind)
            add("MaxPool3DGradGrad", 0, orig_input=x, orig_output=y, grad=values(x.shape, dtype), **kind)
            near("AvgPool3D", dtype, input=x, **kind)
            near("AvgPool3DGrad", dtype, orig_input_shape=x.shape, grad=dy, **kind)


def pool_cases():
    for dtype in REALS + INTEGERS:
        for stride, padding in [(1, "SAME"), (2, "VALID"), (3, "SAME")]:
            kind = {"ksize": [1, 2, 3, 1], "strides": [1, stride, stride, 1], "padding": padding}
            x = np.round(values([2, 7, 8, 3], np.float32, 0 if dtype in INTEGERS[4:] else -4)).astype(dtype)
            y = run(raw.MaxPool(input=x, **kind))
            dy = values(y.shape, dtype)
            add("MaxPool", 0, input=x, **kind)
            near("MaxPoolGrad", dtype, orig_input=x, orig_output=y, grad=dy, **kind)
            add("MaxPoolV2", 0, input=x, **kind)
            deep = np.concatenate([x, x[:, ::-1]], axis=3)
            add("MaxPool", 0, input=deep, ksize=[1, 1, 1, 3], strides=[1, 1, 1, 3], padding=padding)
            near("MaxPoolGradV2", dtype, orig_input=x, orig_output=y, grad=dy, **kind)
            add("MaxPoolGradGrad", 0, orig_input=x, orig_output=y, grad=values(x.shape, dtype), **kind)
            add("MaxPoolGradGradV2", 0, orig_input=x, orig_output=y, grad=values(x.shape, dtype), **kind)
            for batch in [False, True]:
                for index in [np.int32, np.int64]:
                    add("MaxPoolWithArgmax", 0, input=x, Targmax=index, include_batch_in_index=batch, **kind)
                positions = run(raw.MaxPoolWithArgmax(input=x, include_batch_in_index=batch, **kind)[1])
                near("MaxPoolGradWithArgmax", dtype, input=x, grad=dy, argmax=positions, include_batch_in_index=batch,
                     **kind)
            if dtype in REALS:
                near("AvgPool", dtype, value=x, **kind)
                near("AvgPoolGrad", dtype, orig_input_shape=x.shape, grad=dy, **kind)
    for radius, bias, alpha, beta in [(5, 1.0, 1.0, 0.5), (1, 2.0, 0.3, 0.75), (0, 1.0, 1.0, 1.0), (9, 0.5, 0.1, 0.5)]:
        for dtype in [np.float32, np.float16]:
            x, dy = values([2, 3, 4, 7], dtype), values([2, 3, 4, 7], dtype)
            kind = {"depth_radius": radius, "bias": bias, "alpha": alpha, "beta": beta}
            near("LRN", dtype, input=x, **kind)
            near("LRNGrad", dtype, input_grads=dy, input_image=x, output_image=run(raw.LRN(input=x, **kind)), **kind)


def morphology_cases():
    for dtype in REALS + INTEGERS:
        for stride, rate, padding in [(1, 1, "SAME"), (2, 1, "VALID"), (1, 2, "SAME"), (2, 2, "VALID")]:
            kind = {"strides": [1, stride, stride, 1], "rates": [1, rate, rate, 1], "padding": padding}
            x, f = values([2, 9, 8, 3], dtype), values([3, 2, 3], dtype)
            y = run(raw.Dilation2D(input=x, filter=f, **kind))
            dy = values(y.shape, dtype)
            add("Dilation2D", 0, input=x, filter=f, **kind)
            if dtype not in HALVES:  # equal sums after rounding
                near("Dilation2DBackpropInput", dtype, input=x, filter=f, out_backprop=dy, **kind)
                near("Dilation2DBackpropFilter", dtype, input=x, filter=f, out_backprop=dy, **kind)


def fractional_cases():
    for dtype in [np.float32, np.float64, np.int32, np.int64]:
        for pseudo in [False, True]:
            for overlapping in [False, True]:
                for seed in [7, 8, 9]:
                    kind = {"pooling_ratio": [1.0, 1.44, 1.73, 1.0], "pseudo_random": pseudo,
                            "overlapping": overlapping, "deterministic": True, "seed": seed, "seed2": 11}
                    x = values([2, 17, 19, 3], dtype, -40, 40)
                    add("FractionalMaxPool", 0, 2, value=x, **kind)
                    add("FractionalAvgPool", tolerance(dtype), 2, value=x, **kind)
                y, rows, columns = run(raw.FractionalMaxPool(value=x, **kind))
                dy = values(y.shape, dtype)
                near("FractionalMaxPoolGrad", dtype, orig_input=x, orig_output=y, out_backprop=dy,
                     row_pooling_sequence=rows, col_pooling_sequence=columns, overlapping=overlapping)
                near("FractionalAvgPoolGrad", dtype, orig_input_tensor_shape=np.array(x.shape, np.int64),
                     out_backprop=dy, row_pooling_sequence=rows, col_pooling_sequence=columns, overlapping=overlapping)


def ctc_cases():
    for dtype in [np.float32, np.float64]:
        for classes, steps in [(6, 9), (3, 5), (30, 20)]:
            x = values([steps, 4, classes], dtype)
            lengths = np.array([steps, steps - 1, 4, 4], np.int32)
            indices = [[b, t] for b, count in enumerate([3, 2, 1, 2]) for t in range(count)]
            labels = generator.integers(0, classes - 1, len(indices)).astype(np.int32)
            for collapse in [False, True]:
                for merge in [False, True]:
                    add("CTCLoss", 5e-5, inputs=x, labels_indices=indices,
                        labels_values=labels, sequence_length=lengths, preprocess_collapse_repeated=collapse,
                        ctc_merge_repeated=merge, ignore_longer_outputs_than_inputs=collapse)
            for merge in [False, True]:
                for blank in [-1, 0]:
                    add("CTCGreedyDecoder", 1e-5, inputs=x, sequence_length=lengths, merge_repeated=merge,
                        blank_index=blank)
                for width, paths in [(1, 1), (5, 3), (40, 4)]:
                    add("CTCBeamSearchDecoder", 1e-5, inputs=x, sequence_length=lengths, beam_width=width,
                        top_paths=paths, merge_repeated=merge)


def recurrent_cases():
    for dtype in [np.float32, np.float16]:
        for peephole in [False, True]:
            batch, inputs, cells, steps = 3, 5, 4, 6
            small = lambda *shape: values(list(shape), dtype, -1, 1)
            weights = {"w": small(inputs + cells, 4 * cells), "wci": small(cells), "wcf": small(cells),
                       "wco": small(cells), "b": small(4 * cells)}
            state = {"cs_prev": small(batch, cells), "h_prev": small(batch, cells)}
            names = ["i", "cs", "f", "o", "ci", "co", "h"]
            x = small(batch, inputs)
            for clip in [-1.0, 0.4]:
                near("LSTMBlockCell", dtype, x=x, **state, **weights, use_peephole=peephole, cell_clip=clip,
                     forget_bias=0.7)
            one = run(raw.LSTMBlockCell(x=x, **state, **weights, use_peephole=peephole))
            near("LSTMBlockCellGrad", dtype, x=x, **state, **weights, use_peephole=peephole,
                 cs_grad=small(batch, cells), h_grad=small(batch, cells), **dict(zip(names[:6], one[:6])))
            x = small(steps, batch, inputs)
            for version in ["", "V2"]:
                forget = {} if version else {"forget_bias": 0.7}
                forward = getattr(raw, "BlockLSTM" + version)
                near("BlockLSTM" + version, dtype, seq_len_max=np.int64(steps), x=x, **state, **weights,
                     use_peephole=peephole, cell_clip=0.6, **forget)
                all_steps = run(forward(seq_len_max=np.int64(steps), x=x, **state, **weights, use_peephole=peephole))
                for length in [steps, steps - 2]:
                    near("BlockLSTMGrad" + version, dtype, 3, seq_len_max=np.int64(length), x=x, **state, **weights,
                         use_peephole=peephole, cs_grad=small(steps, batch, cells), h_grad=small(steps, batch, cells),
                         **dict(zip(names, all_steps)))
    gru = {"x": values([3, 5], low=-1, high=1), "h_prev": values([3, 4], low=-1, high=1),
           "w_ru": values([9, 8], low=-1, high=1), "w_c": values([9, 4], low=-1, high=1),
           "b_ru": values([8], low=-1, high=1), "b_c": values([4], low=-1, high=1)}
    near("GRUBlockCell", **gru)
    r, u, c, _ = run(raw.GRUBlockCell(**gru))
    near("GRUBlockCellGrad", **gru, r=r, u=u, c=c, d_h=values([3, 4]))


def product_cases():
    for dtype in REALS + [np.int32, np.int64, np.int16, np.complex64, np.complex128]:
        def numbers(shape):
            if np.issubdtype(np.dtype(dtype), np.complexfloating):
                return (values(shape, np.float64) + 1j * values(shape, np.float64)).astype(dtype)
            return values(shape, dtype)

        limit = {np.complex64: 1e-5, np.complex128: 1e-12}.get(dtype, tolerance(dtype))
        for a, b in [(False, False), (True, False), (False, True), (True, True)]:
            x, y = numbers([7, 5] if a else [5, 7]), numbers([3, 7] if b else [7, 3])
            if dtype != np.int16:
                add("MatMul", limit, a=x, b=y, transpose_a=a, transpose_b=b)
            x, y = numbers([2, 7, 5] if a else [2, 5, 7]), numbers([4, 1, 3, 7] if b else [4, 1, 7, 3])
            add("BatchMatMulV2", limit, x=x, y=y, adj_x=a, adj_y=b)
            if dtype != np.float16:
                add("BatchMatMulV3", limit, x=x, y=y, adj_x=a, adj_y=b, Tout=dtype)
            y = numbers([2, 3, 7] if b else [2, 7, 3])
            if dtype != np.int16:
                add("BatchMatMul", limit, x=x, y=y, adj_x=a, adj_y=b)
    for a in [np.int8, np.uint8]:
        for b in [np.int8, np.uint8]:
            add("BatchMatMulV3", 0, x=values([2, 3], a, -100, 100), y=values([3, 4], b, -100, 100), Tout=tf.int32)
        add("BatchMatMulV3", 1e-2, x=values([2, 3], a), y=values([3, 4], BFLOAT16), Tout=tf.bfloat16)
        add("BatchMatMulV3", 1e-2, x=values([2, 3], BFLOAT16), y=values([3, 4], a), Tout=tf.bfloat16)
    for a in [np.float32, BFLOAT16]:
        for b in [np.float32, BFLOAT16]:
            for transposed in [False, True]:
                add("SparseMatMul", 1e-2, a=values([4, 6] if transposed else [6, 4], a), b=values([4, 5], b),
                    transpose_a=transposed, a_is_sparse=True)


def loss_cases():
    for dtype in REALS:
        x, labels = values([5, 7], dtype), values([5, 7], dtype, 0, 1)
        near("Softmax", dtype, logits=x)
        near("LogSoftmax", dtype, logits=x)
        near("SoftmaxCrossEntropyWithLogits", dtype, 2, features=x, labels=labels)
        for index in [np.int32, np.int64]:
            near("SparseSoftmaxCrossEntropyWithLogits", dtype, features=x, labels=np.array([0, 6, 2, 3, 3], index))
        near("L2Loss", dtype, t=values([4, 5], dtype))


if __name__ == "__main__":
    main(depthwise_cases, conv_cases, volume_cases, pool_cases, morphology_cases, fractional_cases, ctc_cases,
         recurrent_cases, product_cases, loss_cases)
