/* Concatenates and splits tensors: Concat, Pack, Split, Unpack. A tensor is treated as `outer` rows of axis · inner
 * elements; every operator here copies such rows. */
#include "kernels/common.h"
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
    if (shape.rank == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "scalars cannot be concatenated");
    MR_TRY(mr_kernel_axis(call, given_axis, shape.rank, &axis, error));
    for (int i = 1; i < count; i++) {
        mr_shape other = values[i].shape;
        bool same = other.rank == shape.rank;
        for (int d = 0; same && d < shape.rank; d++) same = d == axis || other.dims[d] == shape.dims[d];
        if (!same) {
            char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "value 0 has shape %s and value %d has shape %s: they differ outside axis %d",
                                  mr_shape_text(values[0].shape, a, sizeof a), i, mr_shape_text(other, b, sizeof b),
                                  axis);
        }
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

static mr_status concat_v2(mr_kernel_call *call, mr_error *error)
{
    int64_t axis;
    int count = call->node->input_count - 1;
    MR_TRY(mr_kernel_int(call, count, "axis", &axis, error));
    return concat_values(call, 0, count, axis, error);
}

static mr_status concat_v1(mr_kernel_call *call, mr_error *error)
{
    int64_t axis;
    MR_TRY(mr_kernel_int(call, 0, "concat_dim", &axis, error));
    return concat_values(call, 1, call->node->input_count - 1, axis, error);
}

/* The offset of each part along the axis, as begin vectors for Slice. */
static mr_status concat_offset(mr_kernel_call *call, mr_error *error)
{
    int64_t given, sizes[MR_RANK_MAX], first[MR_RANK_MAX], offset = 0;
    int axis = 0, rank, first_rank = 0;
    MR_TRY(mr_kernel_int(call, 0, "concat_dim", &given, error));
    for (int i = 0; i < call->node->output_count; i++) {
        MR_TRY(mr_kernel_ints(call, 1 + i, "shape", sizes, MR_RANK_MAX, &rank, error));
        if (i == 0) {
            first_rank = rank;
            memcpy(first, sizes, sizeof first);
            MR_TRY(mr_kernel_axis(call, given, rank, &axis, error));
        }
        if (rank != first_rank)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "shape %d has rank %d, but shape 0 has rank %d", i, rank, first_rank);
        for (int d = 0; d < rank; d++)
            if (d != axis && sizes[d] != first[d])
                return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "shapes 0 and %d differ in dimension %d",
                                      i, d);
        int64_t begin[MR_RANK_MAX] = {0};
        begin[axis] = offset;
        offset = (int64_t)((uint64_t)offset + (uint64_t)sizes[axis]); /* wraps, as in TensorFlow */
        MR_TRY(mr_kernel_put_ints(call, i, MR_SHAPE(rank), begin, error));
    }
    return MR_OK;
}

static mr_status pack(mr_kernel_call *call, mr_error *error)
{
    int count = call->node->input_count, axis;
    mr_shape part = call->inputs[0].shape, shape = {.rank = part.rank + 1};
    if (shape.rank > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
    MR_TRY(mr_kernel_axis(call, mr_attr_int_or(call->node->attrs, "axis", 0), shape.rank, &axis, error));
    for (int i = 1; i < count; i++)
        if (!mr_shape_equal(call->inputs[i].shape, part)) {
            char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "value 0 has shape %s, but value %d has shape %s", mr_shape_text(part, a, sizeof a),
                                  i, mr_shape_text(call->inputs[i].shape, b, sizeof b));
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
    MR_TRY(mr_kernel_axis(call, mr_attr_int_or(call->node->attrs, "axis", 0), value->shape.rank, &axis, error));
    if (value->shape.dims[axis] != count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "axis %d has %" PRId64 " elements for %d outputs",
                              axis, value->shape.dims[axis], count);
    mr_shape shape = {.rank = value->shape.rank - 1};
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = value->shape.dims[i < axis ? i : i + 1];
    for (int i = 0; i < count; i++) MR_TRY(take_part(call, i, value, axis, i, 1, shape, error));
    return MR_OK;
}

static mr_status split(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *value = &call->inputs[1];
    int64_t given;
    int axis, count = call->node->output_count;
    MR_TRY(mr_kernel_int(call, 0, "split_dim", &given, error));
    MR_TRY(mr_kernel_axis(call, given, value->shape.rank, &axis, error));
    if (value->shape.dims[axis] % count != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "%" PRId64 " elements of axis %d cannot be split into %d equal parts",
                              value->shape.dims[axis], axis, count);
    if (count == 1) {
        call->outputs[0] = mr_tensor_ref(value);
        return MR_OK;
    }
    mr_shape shape = value->shape;
    int64_t width = shape.dims[axis] /= count;
    for (int i = 0; i < count; i++) MR_TRY(take_part(call, i, value, axis, i * width, width, shape, error));
    return MR_OK;
}

/* Replaces a size of -1 by the remainder of `whole`; false if the sizes do not add up to it. */
static bool complete_sizes(int64_t *sizes, int count, int64_t total)
{
    int64_t sum = 0;
    int missing = -1;
    for (int i = 0; i < count; i++) {
        if (sizes[i] == -1 && missing < 0) {
            missing = i;
            continue;
        }
        if (sizes[i] < 0 || sizes[i] > total - sum) return false;
        sum += sizes[i];
    }
    if (missing >= 0) sizes[missing] = total - sum;
    return missing >= 0 || sum == total;
}

static mr_status split_sizes(mr_kernel_call *call, int64_t *sizes, int axis, mr_error *error)
{
    const mr_tensor *value = &call->inputs[0];
    int64_t begin = 0, total = value->shape.dims[axis];
    int count, parts = call->node->output_count;
    MR_TRY(mr_kernel_ints(call, 1, "size_splits", sizes, parts, &count, error));
    if (count != parts || !complete_sizes(sizes, count, total))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "size_splits do not divide %" PRId64 " elements of axis %d into %d parts", total, axis,
                              parts);
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
    int64_t given;
    int axis;
    MR_TRY(mr_kernel_int(call, 2, "split_dim", &given, error));
    MR_TRY(mr_kernel_axis(call, given, call->inputs[0].shape.rank, &axis, error));
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
