/* Concatenates and splits tensors: Concat, Pack, Split, Unpack. A tensor is treated as `outer` rows of axis · inner
 * elements; every operator here copies such rows. */
#include "kernels/indices.h"
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void split_at(mr_shape shape, int axis, int64_t *outer, int64_t *inner)
{
    *outer = mr_dims_product(&shape, 0, axis);
    *inner = mr_dims_product(&shape, axis + 1, shape.rank);
}

/* Copies rows of `width` elements between two row strides. */
static void copy_rows(mr_kernel_call *call, size_t element_size, void *target, int64_t target_stride,
                      const void *source, int64_t source_stride, int64_t rows, int64_t width)
{
    mr_copy copy = {.rank = 2,
                    .element_size = element_size,
                    .dims = {rows, width},
                    .target_strides = {target_stride, 1},
                    .source_strides = {source_stride, 1},
                    .target = target,
                    .source = source};
    mr_copy_strided(copy, call->device->pool);
}

static char *at(void *data, int64_t index, size_t element_size)
{
    return (char *)data + (size_t)index * element_size;
}

static mr_status concat_values(mr_kernel_call *call, int first, int count, int64_t given_axis, mr_error *error)
{
    const mr_tensor *values = call->inputs + first;
    mr_shape shape = values[0].shape;
    int axis;
    for (int i = 1; i < count && shape.rank == 0; i++)
        if (values[i].shape.rank > 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "ConcatOp : Expected concatenating dimensions in the range [0, 0), but got %" PRId64,
                                  given_axis);
    if (shape.rank == 0 || (count > 1 && values[count - 1].shape.rank == 0))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "ConcatOp : Can't concatenate scalars (use tf.stack instead)");
    if (given_axis < -shape.rank || given_axis >= shape.rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "ConcatOp : Expected concatenating dimensions in the range [%d, %d), but got %" PRId64,
                              -shape.rank, shape.rank, given_axis);
    axis = (int)(given_axis < 0 ? given_axis + shape.rank : given_axis);
    for (int i = 1; i < count; i++) {
        mr_shape other = values[i].shape;
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        if (other.rank != shape.rank)
            return mr_kernel_fail(
                call->node, error, MR_INVALID_ARGUMENT,
                "ConcatOp : Ranks of all input tensors should match: shape[0] = %s vs. shape[%d] = %s",
                mr_shape_text(values[0].shape, a, sizeof a), i, mr_shape_text(other, b, sizeof b));
        for (int d = 0; d < shape.rank; d++)
            if (d != axis && other.dims[d] != shape.dims[d])
                return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                      "ConcatOp : Dimension %d in both shapes must be equal: shape[0] = %s vs. "
                                      "shape[%d] = %s",
                                      d, mr_shape_text(values[0].shape, a, sizeof a), i,
                                      mr_shape_text(other, b, sizeof b));
        if (__builtin_add_overflow(shape.dims[axis], other.dims[axis], &shape.dims[axis]))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "axis %d of the result is too large", axis);
    }
    if (count == 1) {
        call->outputs[0] = mr_tensor_ref(&values[0]);
        return MR_OK;
    }
    mr_sink sink;
    int64_t outer, inner, offset = 0;
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    split_at(shape, axis, &outer, &inner);
    for (int i = 0; sink.count > 0 && i < count; i++) {
        int64_t width = values[i].shape.dims[axis] * inner;
        copy_rows(call, sink.element_size, at(sink.data, offset, sink.element_size), shape.dims[axis] * inner,
                  values[i].data, width, outer, width);
        offset += width;
    }
    return mr_sink_finish(call, &sink, MR_OK, error);
}

/* TensorFlow accepts any tensor with one element. */
static mr_status check_axis(mr_kernel_call *call, int index, const char *name, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (mr_tensor_count(&call->inputs[index]) == 1 && call->inputs[index].shape.rank <= 1) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "%s tensor should be a scalar integer, but got shape %s", name,
                          mr_shape_text(call->inputs[index].shape, text, sizeof text));
}

static mr_status concat_v2(mr_kernel_call *call, mr_error *error)
{
    int64_t axis;
    int count = call->node->input_count - 1;
    MR_TRY(check_axis(call, count, "axis", error));
    MR_TRY(mr_kernel_single_int(call, count, "axis", &axis, error));
    return concat_values(call, 0, count, axis, error);
}

static mr_status concat_v1(mr_kernel_call *call, mr_error *error)
{
    int64_t axis;
    MR_TRY(check_axis(call, 0, "concat_dim", error));
    MR_TRY(mr_kernel_single_int(call, 0, "concat_dim", &axis, error));
    return concat_values(call, 1, call->node->input_count - 1, axis, error);
}

/* The offset of each part along the axis, as begin vectors for Slice. */
static mr_status concat_offset(mr_kernel_call *call, mr_error *error)
{
    int64_t given, sizes[MR_RANK_MAX], first[MR_RANK_MAX], offset = 0;
    int axis = 0, rank, first_rank = 0;
    char text[MR_SHAPE_TEXT_SIZE];
    if (call->inputs[0].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Concat dim tensor should be a scalar integer, but got shape %s",
                              mr_shape_text(call->inputs[0].shape, text, sizeof text));
    MR_TRY(mr_kernel_int(call, 0, "concat_dim", &given, error));
    for (int i = 0; i < call->node->output_count; i++) {
        if (call->inputs[1 + i].shape.rank != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "input %d should be a vector, but got shape %s", 1 + i,
                                  mr_shape_text(call->inputs[1 + i].shape, text, sizeof text));
        MR_TRY(mr_kernel_ints(call, 1 + i, "shape", sizes, MR_RANK_MAX, &rank, error));
        if (i == 0) {
            first_rank = rank;
            memcpy(first, sizes, sizeof first);
            if (given < -rank || given >= rank)
                return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                      "Concat dim is out of range: %" PRId64 " vs. %d", given, rank);
            axis = (int)(given < 0 ? given + rank : given);
        }
        if (rank != first_rank)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "input %d should contain %d elements, but got %d", i, first_rank, rank);
        for (int d = 0; d < rank; d++)
            if (d != axis && sizes[d] != first[d])
                return mr_kernel_fail(
                    call->node, error, MR_INVALID_ARGUMENT,
                    "All dimensions except %d must match. Input %d differs from input 0 in dimension %d.", axis, i, d);
        int64_t begin[MR_RANK_MAX] = {0};
        begin[axis] = offset;
        offset = (int64_t)((uint64_t)offset + (uint64_t)sizes[axis]); /* wraps, as in TensorFlow */
        MR_TRY(mr_kernel_put_ints(call, i, MR_SHAPE(rank), begin, error));
    }
    return MR_OK;
}

static mr_status read_axis(mr_kernel_call *call, int rank, int *axis, mr_error *error)
{
    int64_t given = mr_attr_int_or(call->node->attrs, "axis", 0);
    if (given < -rank || given >= rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "axis = %" PRId64 " not in [%d, %d)", given,
                              -rank, rank);
    *axis = (int)(given < 0 ? given + rank : given);
    return MR_OK;
}

static mr_status pack(mr_kernel_call *call, mr_error *error)
{
    int count = call->node->input_count, axis;
    mr_shape part = call->inputs[0].shape, shape = {.rank = part.rank + 1};
    if (shape.rank > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
    MR_TRY(read_axis(call, shape.rank, &axis, error));
    for (int i = 1; i < count; i++)
        if (!mr_shape_equal(call->inputs[i].shape, part)) {
            char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Shapes of all inputs must match: values[0].shape = %s != values[%d].shape = %s",
                                  mr_shape_text(part, a, sizeof a), i,
                                  mr_shape_text(call->inputs[i].shape, b, sizeof b));
        }
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = i < axis ? part.dims[i] : i == axis ? count : part.dims[i - 1];
    mr_sink sink;
    int64_t outer, inner;
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    split_at(shape, axis, &outer, &inner);
    for (int i = 0; sink.count > 0 && i < count; i++)
        copy_rows(call, sink.element_size, at(sink.data, i * inner, sink.element_size), count * inner,
                  call->inputs[i].data, inner, outer, inner);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

/* Writes output `index` in the given shape: `width` elements of the axis, from `begin`. */
static mr_status take_part(mr_kernel_call *call, int index, const mr_tensor *value, int axis, int64_t begin,
                           int64_t width, mr_shape shape, mr_error *error)
{
    mr_sink sink;
    int64_t outer, inner;
    MR_TRY(mr_sink_init(call, index, shape, &sink, error));
    split_at(value->shape, axis, &outer, &inner);
    if (sink.count > 0)
        copy_rows(call, sink.element_size, sink.data, width * inner, at(value->data, begin * inner, sink.element_size),
                  value->shape.dims[axis] * inner, outer, width * inner);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static mr_status unpack(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *value = &call->inputs[0];
    int axis, count = call->node->output_count;
    MR_TRY(read_axis(call, value->shape.rank, &axis, error));
    if (value->shape.dims[axis] != count) {
        char text[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input shape axis %d must equal %d, got shape %s",
                              axis, count, mr_shape_text(value->shape, text, sizeof text));
    }
    mr_shape shape = {.rank = value->shape.rank - 1};
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = value->shape.dims[i < axis ? i : i + 1];
    for (int i = 0; i < count; i++) MR_TRY(take_part(call, i, value, axis, i, 1, shape, error));
    return MR_OK;
}

static mr_status split_axis(mr_kernel_call *call, int index, int rank, int *axis, mr_error *error)
{
    int64_t given;
    if (index == 0 && call->inputs[0].shape.rank != 0) /* Split */
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "split_dim must be a scalar but has rank %d",
                              call->inputs[0].shape.rank);
    MR_TRY(mr_kernel_single_int(call, index, "split_dim_tensor", &given, error));
    if (given < -rank || given >= rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "-input rank(-%d) <= split_dim < input rank (%d), but got %" PRId64, rank, rank, given);
    *axis = (int)(given < 0 ? given + rank : given);
    return MR_OK;
}

static mr_status split(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *value = &call->inputs[1];
    int axis, count = call->node->output_count;
    MR_TRY(split_axis(call, 0, value->shape.rank, &axis, error));
    if (value->shape.dims[axis] % count != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Number of ways to split should evenly divide the split dimension, but got split_dim %d "
                              "(size = %" PRId64 ") and num_split %d",
                              axis, value->shape.dims[axis], count);
    if (count == 1) {
        call->outputs[0] = mr_tensor_ref(value);
        return MR_OK;
    }
    mr_shape shape = value->shape;
    int64_t width = shape.dims[axis] /= count;
    for (int i = 0; i < count; i++) MR_TRY(take_part(call, i, value, axis, i * width, width, shape, error));
    return MR_OK;
}

/* Replaces a size of -1 by the remainder of `total`, and checks that the sizes add up to it. */
static mr_status complete_sizes(mr_kernel_call *call, int64_t *sizes, int count, int64_t total, mr_error *error)
{
    int64_t sum = 0;
    int missing = -1;
    for (int i = 0; i < count; i++) {
        if (sizes[i] == -1) {
            if (missing >= 0)
                return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "There can only be one -1 in the input.");
            missing = i;
        } else if (__builtin_add_overflow(sum, sizes[i], &sum)) {
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "size_splits are too large");
        }
    }
    if (missing >= 0 ? sum > total : sum != total)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Determined shape must either match input shape along split_dim exactly if fully "
                              "specified, or be less than the size of the input along split_dim if not fully "
                              "specified.  Got: %" PRId64,
                              sum);
    if (missing >= 0) sizes[missing] = total - sum;
    for (int i = 0; i < count; i++)
        if (sizes[i] < 0 || sizes[i] > total)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Split size at index %d must be >= 0. Got: %" PRId64, i, sizes[i]);
    return MR_OK;
}

/* size_splits may be int8 too. */
static mr_status split_sizes(mr_kernel_call *call, int64_t *sizes, int axis, mr_error *error)
{
    const mr_tensor *value = &call->inputs[0], *given = &call->inputs[1];
    int64_t begin = 0, total = value->shape.dims[axis];
    int count = call->node->output_count;
    if (given->shape.rank != 1 || mr_tensor_count(given) != count)
        return mr_kernel_fail(
            call->node, error, MR_INVALID_ARGUMENT,
            "size of the split_tensor must be 1-D and have the same elements as outputs got %d -D and "
            "%" PRId64 " elements",
            given->shape.rank, mr_tensor_count(given));
    for (int i = 0; i < count; i++) sizes[i] = mr_index_at(given, i);
    MR_TRY(complete_sizes(call, sizes, count, total, error));
    mr_shape shape = value->shape;
    for (int i = 0; i < count; i++) {
        shape.dims[axis] = sizes[i];
        MR_TRY(take_part(call, i, value, axis, begin, sizes[i], shape, error));
        begin += sizes[i];
    }
    assert(begin == total);
    return MR_OK;
}

static mr_status split_v(mr_kernel_call *call, mr_error *error)
{
    int axis;
    MR_TRY(split_axis(call, 2, call->inputs[0].shape.rank, &axis, error));
    int64_t *sizes = calloc((size_t)call->node->output_count, sizeof *sizes);
    if (sizes == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    mr_status status = split_sizes(call, sizes, axis, error);
    free(sizes);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "Concat", .run = concat_v1, .host_inputs = 1 << 0},
    {.op = "ConcatV2", .run = concat_v2},
    {.op = "ConcatOffset", .run = concat_offset},
    {.op = "Pack", .run = pack},
    {.op = "Unpack", .run = unpack},
    {.op = "Split", .run = split, .host_inputs = 1 << 0},
    {.op = "SplitV", .run = split_v, .host_inputs = 1 << 1 | 1 << 2},
};
MR_KERNEL_FAMILY(array_join);
