"""The operators of sparse and ragged tensors produce the same results as TensorFlow's, for random indices, ordered and
not, empty tensors and all dtypes."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

from ops_compare import HALVES, NARROW, NUMBERS, add, generator, main, raw, values

REALS = NUMBERS + NARROW + [np.uint32, np.uint64] + HALVES
COMPLEX = [np.complex64, np.complex128]
SHAPES = [([4, 5], 7), ([4, 5], 0), ([3, 2, 4], 9), ([6], 4), ([1, 1], 1), ([50, 40], 300)]


def draw(shape, dtype=np.float32):
    """Elements of any dtype."""
    if dtype == np.object_:
        words = np.array(["", "a", "some longer text", "b" * 40], object)
        return tf.constant(words[generator.integers(0, 4, shape)], tf.string, shape=shape)
    if np.issubdtype(dtype, np.complexfloating):
        return tf.constant((values(shape, np.float64) + 1j * values(shape, np.float64)).astype(dtype))
    return tf.constant(values(shape, dtype))


def rows(shape, count, ordered=True):
    """Distinct indices."""
    total = int(np.prod(shape))
    flat = generator.choice(total, min(count, total), replace=False) if count else np.zeros([0], np.int64)
    flat = np.sort(flat) if ordered else flat
    return np.stack(np.unravel_index(flat, shape), -1).astype(np.int64).reshape(len(flat), len(shape))


def sparse(shape, count, dtype=np.float32, ordered=True):
    indices = rows(shape, count, ordered)
    return tf.constant(indices, tf.int64), draw([len(indices)], dtype), tf.constant(shape, tf.int64)


def tolerance(dtype):
    return {np.float16: 4e-3, HALVES[1]: 3e-2}.get(dtype, 1e-6)


def move_cases():
    for dtype in REALS + COMPLEX + [np.bool_, np.object_]:
        for shape, count in SHAPES:
            for ordered in [True, False]:
                i, v, s = sparse(shape, count, dtype, ordered)
                add("SparseReorder", 0, input_indices=i, input_values=v, input_shape=s)
                default = tf.constant("d") if dtype == np.object_ else draw([], dtype)
                add("SparseFillEmptyRows", 0, indices=i, values=v, dense_shape=s, default_value=default)
                start = [int(generator.integers(0, n + 1)) for n in shape]
                size = [int(generator.integers(0, n + 2)) for n in shape]
                add("SparseSlice", 0, indices=i, values=v, shape=s, start=start, size=size)
                j, w, t = sparse(shape, count // 2, dtype, ordered)
                axis = int(generator.integers(-len(shape), len(shape)))
                add("SparseConcat", 0, indices=[i, j, i], values=[v, w, v], shapes=[s, t, s], concat_dim=axis)
                for parts in {1, min(2, shape[axis]), shape[axis]}:
                    if parts <= 8:
                        add("SparseSplit", 0, split_dim=tf.constant(axis, tf.int64), indices=i, values=v, shape=s,
                            num_split=parts)
                index_type = tf.int32 if ordered else tf.int64
                add("SparseToDense", 0, sparse_indices=tf.cast(i, index_type), output_shape=tf.cast(s, index_type),
                    sparse_values=v, default_value=default, validate_indices=ordered)
    for shape, targets in [([4, 6], [[24], [-1, 3], [2, 2, 6], [6, -1, 1]]), ([2, 3, 4], [[6, 4], [-1], [4, 3, 2]])]:
        for target in targets:
            i, _, s = sparse(shape, 9, ordered=False)
            add("SparseReshape", 0, input_indices=i, input_shape=s, new_shape=tf.constant(target, tf.int64))
    i, _, _ = sparse([4, 6], 0)
    add("SparseReshape", 0, input_indices=i, input_shape=[0, 6], new_shape=tf.constant([3, -1], tf.int64))
    add("SparseToDense", 0, sparse_indices=[1, 3], output_shape=[5], sparse_values=2.0, default_value=1.0)
    add("SparseToDense", 0, sparse_indices=3, output_shape=[5], sparse_values=2.0, default_value=1.0)


def cross_cases():
    """Columns with any number of features in each row; strings of every length that the hash distinguishes."""
    words = np.array(["", "a", "bc", "x" * 7, "y" * 12, "z" * 30, "w" * 70], object)

    def column(batch, kind):
        rows_ = np.sort(generator.integers(0, batch, int(generator.integers(0, 3 * batch + 1)))) if batch else []
        places = [int(np.sum(np.asarray(rows_[:k]) == r)) for k, r in enumerate(rows_)]
        indices = np.stack([rows_, places], -1).astype(np.int64) if len(rows_) else np.zeros([0, 2], np.int64)
        return tf.constant(indices), elements([len(rows_)], kind), tf.constant([batch, 5], tf.int64)

    def elements(shape, kind):
        if kind == "s":
            return tf.constant(words[generator.integers(0, len(words), shape)], tf.string, shape=shape)
        return tf.constant(generator.integers(-(2**62), 2**62, shape), tf.int64)

    for kinds in ["s", "i", "ss", "si", "iss", "is|i", "s|s", "|s", "|si", "|", "sss|ss", "i|i"]:
        for batch in [0, 1, 4, 30]:
            sparse_kinds, _, dense_kinds = kinds.partition("|")
            columns = [column(batch, k) for k in sparse_kinds]
            dense = [elements([batch, int(generator.integers(0 if batch == 4 else 1, 4))], k) for k in dense_kinds]
            inputs = dict(indices=[c[0] for c in columns], values=[c[1] for c in columns],
                          shapes=[c[2] for c in columns], dense_inputs=dense)
            has_numbers = "i" in kinds
            add("SparseCross", 0, **inputs, hashed_output=False, num_buckets=0, hash_key=0, out_type=tf.string,
                internal_type=tf.int64 if has_numbers else tf.string)
            for buckets in [0, 1, 1000]:
                add("SparseCross", 0, **inputs, hashed_output=True, num_buckets=buckets, hash_key=0xDECAFCAFFE,
                    out_type=tf.int64, internal_type=tf.int64 if has_numbers else tf.string)
                # TensorFlow crashes if it computes strong hashes of dense integers.
                for strong in [False] if "i" in dense_kinds else [False, True]:
                    add("SparseCrossHashed", 0, **inputs, num_buckets=tf.constant(buckets, tf.int64),
                        strong_hash=strong, salt=tf.constant([137, -5], tf.int64))
            add("SparseCrossV2", 0, **inputs, sep="_" if has_numbers else "")


def gradient_cases():
    for dtype in [np.float32, np.float64, np.int32, np.complex64]:
        for count in [0, 3, 8]:
            gradients = draw([12], dtype)
            chosen = tf.constant(generator.choice(12, count, replace=False), tf.int64)
            add("SparseFillEmptyRowsGrad", 1e-6, reverse_index_map=chosen, grad_values=gradients)
        i = rows([5, 6], 12)
        kept = i[(i[:, 0] >= 1) & (i[:, 0] < 4) & (i[:, 1] >= 2)] - [1, 2]
        add("SparseSliceGrad", 0, backprop_val_grad=draw([len(kept)], dtype), input_indices=i,
            input_start=tf.constant([1, 2], tf.int64), output_indices=tf.constant(kept, tf.int64))
        a, b = rows([5, 6], 8), rows([5, 6], 9)
        union = np.unique(np.concatenate([a, b]), axis=0)[1:]
        add("SparseAddGrad", 0, backprop_val_grad=draw([len(union)], dtype), a_indices=a, b_indices=b,
            sum_indices=tf.constant(union, tf.int64))


def two_cases():
    for shape, count in SHAPES:
        for dtype in [np.float32, np.float64, np.int8, np.int16, np.int32, np.int64] + COMPLEX:
            (i, v, s), (j, w, t) = sparse(shape, count, dtype), sparse(shape, count, dtype)
            real = {np.complex64: np.float32, np.complex128: np.float64}.get(dtype, dtype)
            for least in [0, 2]:
                add("SparseAdd", 1e-6, a_indices=i, a_values=v, a_shape=s, b_indices=j, b_values=w, b_shape=t,
                    thresh=tf.constant(least, real))
        for dtype in REALS:
            (i, v, s), (j, w, t) = sparse(shape, count, dtype), sparse(shape, count, dtype)
            for operator in ["SparseSparseMaximum", "SparseSparseMinimum"]:
                add(operator, 0, a_indices=i, a_values=v, a_shape=s, b_indices=j, b_values=w, b_shape=t)
            for dense in [shape, shape[-1:], [], [1] * len(shape)]:
                d = draw(dense, dtype)
                for operator in ["SparseDenseCwiseMul", "SparseDenseCwiseAdd"]:
                    add(operator, 0, sp_indices=i, sp_values=v, sp_shape=s, dense=d)
                d = tf.constant(np.where(values(dense, np.float32) > 0, 2, 3).astype(dtype))
                add("SparseDenseCwiseDiv", 0, sp_indices=i, sp_values=v, sp_shape=s, dense=d)
            if len(shape) < 6:
                for index_type in [tf.int32, tf.int64]:
                    add("SparseTensorDenseAdd", 0, a_indices=tf.cast(i, index_type), a_values=v,
                        a_shape=tf.cast(s, index_type), b=draw(shape, dtype))


def reduce_cases():
    for shape, count in SHAPES:
        for dtype in REALS + COMPLEX:
            i, v, s = sparse(shape, count, dtype, ordered=dtype != np.float32)
            for axes in [[], [0], [-1], list(range(len(shape)))]:
                for keep in [False, True]:
                    arguments = dict(input_indices=i, input_values=v, input_shape=s, keep_dims=keep,
                                     reduction_axes=tf.constant(axes, tf.int32))
                    for operator in ["SparseReduceSum", "SparseReduceSumSparse"]:
                        add(operator, tolerance(dtype), **arguments)
                    if dtype not in COMPLEX:
                        for operator in ["SparseReduceMax", "SparseReduceMaxSparse"]:
                            add(operator, 0, **arguments)
        if len(shape) > 1:
            for dtype in [np.float32, np.float64, np.float16]:
                for ordered in [True, False]:
                    i, v, s = sparse(shape, count, dtype, ordered)
                    add("SparseSoftmax", tolerance(dtype), sp_indices=i, sp_values=v, sp_shape=s)
    for dtype in HALVES:  # rounded where TensorFlow rounds them
        for count in [1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100, 1023, 1025, 1600, 1601, 3300]:
            i, v, s = sparse([2 * count], count, dtype)
            add("SparseReduceSum", 0, input_indices=i, input_values=v, input_shape=s, reduction_axes=[0])


def product_cases():
    for dtype in [np.float32, np.float64, np.int32] + COMPLEX + HALVES:
        for m, k, n, count in [(3, 4, 5, 6), (1, 1, 1, 1), (40, 30, 70, 200), (3, 4, 0, 5), (3, 4, 5, 0),
                               (30, 20, 1, 60)]:
            for adjoint_a in [False, True]:
                for adjoint_b in [False, True]:
                    i, v, s = sparse([k, m] if adjoint_a else [m, k], count, dtype, ordered=n != 5)
                    index_type = tf.int32 if adjoint_b else tf.int64
                    add("SparseTensorDenseMatMul", {HALVES[1]: 3e-2}.get(dtype, max(tolerance(dtype), 3e-6)),
                        a_indices=tf.cast(i, index_type), a_values=v, a_shape=s,
                        b=draw([n, k] if adjoint_b else [k, n], dtype), adjoint_a=adjoint_a, adjoint_b=adjoint_b)


def text_cases():
    for dtype in [np.float32, np.int64, np.complex64, np.bool_, np.object_, np.float16]:
        for shape, count in [([3, 5], 6), ([2, 3, 4], 9), ([2, 3], 0)]:
            i, v, s = sparse(shape, count, dtype)
            one = raw.SerializeSparse(sparse_indices=i, sparse_values=v, sparse_shape=s)
            many = raw.SerializeManySparse(sparse_indices=i, sparse_values=v, sparse_shape=s)
            add("DeserializeSparse", 0, serialized_sparse=one, dtype=v.dtype)
            add("DeserializeSparse", 0, serialized_sparse=many, dtype=v.dtype)
            add("DeserializeSparse", 0, serialized_sparse=tf.stack([[one, one, one], [one, one, one]]), dtype=v.dtype)
            add("DeserializeManySparse", 0, serialized_sparse=many, dtype=v.dtype)


def set_cases():
    for dtype in [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.object_]:
        for lead in [[3], [2, 3], [1], [0]]:
            for operation in ["a-b", "b-a", "intersection", "union", "UNION"]:
                a, b = draw([*lead, 4], dtype), draw([*lead, 3], dtype)
                add("DenseToDenseSetOperation", 0, set1=a, set2=b, set_operation=operation)
                if lead == [0]:
                    continue
                i, v, s = sparse([*lead, 5], 8, dtype)
                add("DenseToSparseSetOperation", 0, set1=a, set2_indices=i, set2_values=v, set2_shape=s,
                    set_operation=operation)
                j, w, t = sparse([*lead, 3], 4, dtype)
                add("SparseToSparseSetOperation", 0, set1_indices=j, set1_values=w, set1_shape=t, set2_indices=i,
                    set2_values=v, set2_shape=s, set_operation=operation)
            if lead != [0]:
                add("SetSize", 0, set_indices=i, set_values=v, set_shape=s)


def ragged_cases():
    for dtype in [np.int32, np.int64, np.float32, np.float64]:
        for splits in [tf.int32, tf.int64]:
            for count in [0, 1, 6]:
                starts, limits = values([count], dtype, -20, 20), values([count], dtype, -20, 20)
                deltas = np.where(values([count], np.float32) > 0, 2, -3).astype(dtype)
                if dtype in (np.float32, np.float64):
                    deltas = (deltas / 7).astype(dtype)
                add("RaggedRange", 0, starts=starts, limits=limits, deltas=deltas, Tsplits=splits)
                add("RaggedRange", 0, starts=starts, limits=tf.constant(9, dtype), deltas=tf.constant(2, dtype),
                    Tsplits=splits)
            add("RaggedRange", 0, starts=tf.constant(0, dtype), limits=tf.constant(9, dtype),
                deltas=tf.constant(2, dtype), Tsplits=splits)
    for dtype in [np.int32, np.float32, np.object_]:
        for inner in [[], [2], [2, 3]]:
            add("RaggedTensorToSparse", 0, rt_nested_splits=[tf.constant([0, 2, 2, 5], tf.int64)],
                rt_dense_values=draw([5, *inner], dtype))
            add("RaggedTensorToSparse", 0, rt_nested_splits=[tf.constant([0, 1, 1, 3]), tf.constant([0, 0, 2, 5])],
                rt_dense_values=draw([5, *inner], dtype))
    add("RaggedTensorToSparse", 0, rt_nested_splits=[tf.constant([0], tf.int64)], rt_dense_values=draw([0]))


main(move_cases, gradient_cases, two_cases, reduce_cases, product_cases, text_cases, set_cases, ragged_cases,
     cross_cases)
