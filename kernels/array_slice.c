/* Operators that move elements by strides: slices, transposition, tiles, padding, broadcasting. Each sets up one
 * mr_copy, except the sum of gradients of slices, which adds. */
#include "kernels/common.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *from(const mr_tensor *tensor, int64_t offset, size_t element_size)
{
    return (const char *)tensor->data + offset * (int64_t)element_size;
}

/* Copies source[offset + sum(i·strides)] for all i of shape into a new output. */
static mr_status take(mr_kernel_call *call, const mr_tensor *source, mr_shape copied, const int64_t *strides,
                      int64_t offset, mr_shape shape, mr_error *error)
{
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    mr_copy copy = {.rank = copied.rank, .element_size = sink.element_size, .target = sink.data};
    if (sink.count > 0) {
        copy.source = from(source, offset, sink.element_size);
        mr_shape_strides(copied, copy.target_strides);
        memcpy(copy.dims, copied.dims, sizeof copied.dims);
        memcpy(copy.source_strides, strides, sizeof(int64_t) * (size_t)copied.rank);
        mr_copy_strided(copy, call->device->pool);
    }
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static mr_status slice(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int64_t begin[MR_RANK_MAX], size[MR_RANK_MAX], strides[MR_RANK_MAX], offset = 0;
    int begin_count, size_count, rank = input->shape.rank;
    const mr_shape given[] = {call->inputs[1].shape, call->inputs[2].shape};
    if (given[0].rank != 1 || given[1].rank != 1 || given[0].dims[0] != rank || given[1].dims[0] != rank) {
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(
            call->node, error, MR_INVALID_ARGUMENT,
            "Expected begin and size arguments to be 1-D tensors of size %d, but got shapes %s and %s "
            "instead.",
            rank, mr_shape_text(given[0], a, sizeof a), mr_shape_text(given[1], b, sizeof b));
    }
    MR_TRY(mr_kernel_ints(call, 1, "begin", begin, MR_RANK_MAX, &begin_count, error));
    MR_TRY(mr_kernel_ints(call, 2, "size", size, MR_RANK_MAX, &size_count, error));
    mr_shape shape = {.rank = rank};
    mr_shape_strides(input->shape, strides);
    for (int i = 0; i < rank; i++) {
        int64_t have = input->shape.dims[i];
        if (begin[i] < 0 || begin[i] > have)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Expected begin[%d] in [0, %" PRId64 "], but got %" PRId64, i, have, begin[i]);
        if (size[i] < -1 || size[i] > have - begin[i])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Expected size[%d] in [0, %" PRId64 "], but got %" PRId64, i, have - begin[i],
                                  size[i]);
        shape.dims[i] = size[i] == -1 ? have - begin[i] : size[i];
        offset += begin[i] * strides[i];
    }
    return take(call, input, shape, strides, offset, shape, error);
}

/* A strided slice without masks: begin, stride and size for each dimension of the input, and the output's shape. */
typedef struct dense_slice {
    mr_shape input;
    mr_shape sizes; /* one size for each dimension of the input */
    mr_shape output;
    int64_t begin[MR_RANK_MAX], stride[MR_RANK_MAX];
} dense_slice;

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Expands TensorFlow's sparse masks (bit i belongs to entry i of begin): an ellipsis stands for complete dimensions, a
 * new axis adds a dimension of size 1, a shrunk axis selects one index.
 * first  the input with begin; end and strides follow */
static mr_status dense_from_masks(mr_kernel_call *call, mr_shape input, int first, dense_slice *dense, mr_error *error)
{
    constexpr int SPARSE_MAX = 2 * MR_RANK_MAX;
    int64_t begin[SPARSE_MAX], end[SPARSE_MAX], stride[SPARSE_MAX];
    int count, end_count, stride_count;
    const mr_attrs *attrs = call->node->attrs;
    int64_t begin_mask = mr_attr_int_or(attrs, "begin_mask", 0), end_mask = mr_attr_int_or(attrs, "end_mask", 0);
    int64_t ellipsis = mr_attr_int_or(attrs, "ellipsis_mask", 0), new_axis = mr_attr_int_or(attrs, "new_axis_mask", 0);
    int64_t shrink = mr_attr_int_or(attrs, "shrink_axis_mask", 0);
    mr_shape given[3] = {call->inputs[first].shape, call->inputs[first + 1].shape, call->inputs[first + 2].shape};
    if (given[0].rank != 1 || !mr_shape_equal(given[0], given[1]) || !mr_shape_equal(given[0], given[2])) {
        char text[3][MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected begin, end, and strides to be 1D equal size tensors, but got shapes %s, %s, "
                              "and %s instead.",
                              mr_shape_text(given[0], text[0], sizeof text[0]),
                              mr_shape_text(given[1], text[1], sizeof text[1]),
                              mr_shape_text(given[2], text[2], sizeof text[2]));
    }
    MR_TRY(mr_kernel_ints(call, first, "begin", begin, SPARSE_MAX, &count, error));
    MR_TRY(mr_kernel_ints(call, first + 1, "end", end, SPARSE_MAX, &end_count, error));
    MR_TRY(mr_kernel_ints(call, first + 2, "strides", stride, SPARSE_MAX, &stride_count, error));
    if (input.rank == 0 && count > 0 && (new_axis | ellipsis) == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Attempting to slice scalar input.");
    if (ellipsis & (int64_t)((uint64_t)ellipsis - 1))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Multiple ellipses in slice spec not allowed");
    int added = 0; /* new axes consume no dimension of the input; those at or after the ellipsis count against it */
    for (int i = 0; i < count; i++)
        if ((new_axis >> i & 1) && !(ellipsis >> i & 1)) added++;
    bool has_ellipsis = (ellipsis & ((1ll << count) - 1)) != 0;
    int spelled = count - added - (has_ellipsis ? 1 : 0), ellipsis_dims = input.rank - spelled;
    if (ellipsis_dims < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Index out of range using input dim %d; input has only %d dims", input.rank, input.rank);
    *dense = (dense_slice){.input = input, .sizes = {.rank = input.rank}};
    int axis = 0, out = 0;
    int64_t output[SPARSE_MAX + MR_RANK_MAX];
    for (int i = 0; i <= count; i++) {
        bool rest = i == count ? !has_ellipsis : (ellipsis >> i & 1);
        if (rest) {
            for (int w = 0; w < ellipsis_dims; w++, axis++) {
                dense->begin[axis] = 0;
                dense->stride[axis] = 1;
                output[out++] = dense->sizes.dims[axis] = input.dims[axis];
            }
            continue;
        }
        if (i == count) break;
        if (new_axis >> i & 1) {
            output[out++] = 1;
            continue;
        }
        int64_t have = input.dims[axis], step = stride[i], b = begin[i], e = end[i];
        if (step == 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "strides[%d] must be non-zero", i);
        if (shrink >> i & 1) {
            int64_t index = b < 0 ? b + have : b;
            if (step < 0)
                return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                      "only stride 1 allowed on non-range indexing.");
            if (index < 0 || index >= have)
                return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                      "slice index %" PRId64 " of dimension %d out of bounds.", b, axis);
            dense->begin[axis] = index;
            dense->stride[axis] = 1;
            dense->sizes.dims[axis++] = 1;
            continue;
        }
        int64_t low = step > 0 ? 0 : -1, high = step > 0 ? have : have - 1;
        b = begin_mask >> i & 1 ? (step > 0 ? low : high) : clamp(b < 0 ? b + have : b, low, high);
        e = end_mask >> i & 1 ? (step > 0 ? high : low) : clamp(e < 0 ? e + have : e, low, high);
        int64_t length = e - b, size = 0;
        if ((length > 0) == (step > 0) && length != 0) size = length / step + (length % step != 0);
        dense->begin[axis] = size > 0 ? b : 0;
        dense->stride[axis] = size > 1 ? step : 1; /* for one element the step has no effect, and may be any number */
        output[out++] = dense->sizes.dims[axis++] = size;
    }
    if (out > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
    dense->output.rank = out;
    memcpy(dense->output.dims, output, sizeof(int64_t) * (size_t)out);
    return MR_OK;
}

/* Returns the offset of the slice in the input, and stores the distances between its elements. */
static int64_t slice_strides(const dense_slice *dense, int64_t strides[MR_RANK_MAX])
{
    int64_t offset = 0;
    mr_shape_strides(dense->input, strides);
    for (int i = 0; i < dense->input.rank; i++) {
        offset += dense->begin[i] * strides[i];
        strides[i] *= dense->stride[i];
    }
    return offset;
}

static mr_status strided_slice(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    dense_slice dense;
    MR_TRY(dense_from_masks(call, input->shape, 1, &dense, error));
    int64_t strides[MR_RANK_MAX], offset = slice_strides(&dense, strides);
    bool is_complete = mr_shape_equal(dense.sizes, input->shape);
    for (int i = 0; is_complete && i < dense.input.rank; i++)
        is_complete = dense.stride[i] == 1 || dense.sizes.dims[i] <= 1;
    if (is_complete) return mr_tensor_reshape(input, dense.output, &call->outputs[0], error);
    return take(call, input, dense.sizes, strides, offset, dense.output, error);
}

/* The shape and the slice of a StridedSliceGrad, whose inputs these are. */
static mr_status read_slice_grad(mr_kernel_call *call, mr_shape *shape, dense_slice *dense, mr_error *error)
{
    MR_TRY(mr_kernel_shape(call, 0, shape, error));
    MR_TRY(dense_from_masks(call, *shape, 1, dense, error));
    const mr_shape given = call->inputs[4].shape;
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    if (mr_shape_equal(given, dense->output)) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "shape of dy was %s instead of %s",
                          mr_shape_text(given, a, sizeof a), mr_shape_text(dense->output, b, sizeof b));
}

static mr_status strided_slice_grad(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape = {0};
    dense_slice dense;
    MR_TRY(read_slice_grad(call, &shape, &dense, error));
    const mr_tensor *gradient = &call->inputs[4];
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    static const char zeros[16];
    if (!sink.is_string) mr_fill_elements(sink.data, zeros, sink.element_size, sink.count, call->device->pool);
    if (mr_tensor_count(gradient) > 0) {
        mr_copy copy = {.rank = shape.rank, .element_size = sink.element_size, .source = gradient->data};
        int64_t offset = slice_strides(&dense, copy.target_strides);
        copy.target = (char *)sink.data + offset * (int64_t)sink.element_size;
        memcpy(copy.dims, dense.sizes.dims, sizeof dense.sizes.dims);
        mr_shape_strides(dense.sizes, copy.source_strides);
        mr_copy_strided(copy, call->device->pool);
    }
    return mr_sink_finish(call, &sink, MR_OK, error);
}

/* ---- Sums of gradients of slices (graph/plan/fuse_products.c) ---- */

typedef struct slice_addition {
    const dense_slice *dense;
    int64_t strides[MR_RANK_MAX], inner; /* of the target; elements of a row of the slice */
    const float *source;
    float *target; /* the slice's first element */
} slice_addition;

/* Rows are along the last dimension. */
static void add_slice_rows(void *context, int64_t begin, int64_t end)
{
    const slice_addition *job = context;
    const mr_shape *sizes = &job->dense->sizes;
    const int64_t step = sizes->rank > 0 ? job->strides[sizes->rank - 1] : 1;
    for (int64_t row = begin; row < end; row++) {
        int64_t rest = row, offset = 0;
        for (int d = sizes->rank - 2; d >= 0; d--) {
            offset += rest % sizes->dims[d] * job->strides[d];
            rest /= sizes->dims[d];
        }
        const float *from = job->source + row * job->inner;
        float *to = job->target + offset;
        if (step == 1)
            for (int64_t i = 0; i < job->inner; i++) to[i] += from[i];
        else
            for (int64_t i = 0; i < job->inner; i++) to[i * step] += from[i];
    }
}

/* The sum of several StridedSliceGrad of floats, with the first inputs of all, then the second ones, …: one tensor of
 * zeros to which every dy is added, instead of one for each. */
static mr_status sum_of_slice_grads(mr_kernel_call *call, mr_error *error)
{
    const int count = call->node->input_count / 5;
    mr_shape first = {0}, shape = {0};
    assert(count >= 1 && call->node->input_count == 5 * count);
    for (int i = 0; i < count; i++) {
        mr_tensor inputs[5];
        dense_slice dense;
        for (int j = 0; j < 5; j++) inputs[j] = call->inputs[j * count + i];
        mr_kernel_call one = *call;
        one.inputs = inputs;
        MR_TRY(read_slice_grad(&one, &shape, &dense, error));
        if (i == 0) {
            first = shape;
            MR_TRY(mr_kernel_output(call, 0, shape, error));
            const float zero = 0;
            mr_fill_elements(call->outputs[0].data, &zero, sizeof zero, mr_shape_count(shape), call->device->pool);
        }
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        if (!mr_shape_equal(first, shape))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Inputs to operation must have the same size and shape. Input 0: %s != input %d: %s",
                                  mr_shape_text(first, a, sizeof a), i, mr_shape_text(shape, b, sizeof b));
        if (mr_tensor_count(&inputs[4]) == 0) continue;
        slice_addition job = {.dense = &dense, .source = inputs[4].data};
        job.target = (float *)call->outputs[0].data + slice_strides(&dense, job.strides);
        job.inner = shape.rank > 0 ? dense.sizes.dims[shape.rank - 1] : 1;
        mr_pool_for(call->device->pool, mr_shape_count(dense.sizes) / job.inner, MR_MAX(1, MR_GRAIN / job.inner),
                    add_slice_rows, &job);
    }
    return MR_OK;
}

/* Repeats a value along new dimensions and along those of size 1. The copy borrows strings. */
static mr_status broadcast_value(const mr_kernel_call *call, const mr_tensor *value, mr_shape shape, mr_tensor *copied,
                                 mr_error *error)
{
    char given[MR_SHAPE_TEXT_SIZE], wanted[MR_SHAPE_TEXT_SIZE];
    int added = shape.rank - value->shape.rank;
    bool fits = added >= 0;
    for (int i = 0; fits && i < value->shape.rank; i++)
        fits = value->shape.dims[i] == 1 || value->shape.dims[i] == shape.dims[added + i];
    if (!fits)
        return mr_kernel_fail(
            call->node, error, MR_INVALID_ARGUMENT, "Cannot broadcast input shape %s into final shape %s",
            mr_shape_text(value->shape, given, sizeof given), mr_shape_text(shape, wanted, sizeof wanted));
    int64_t strides[MR_RANK_MAX];
    MR_TRY(mr_tensor_init(copied, value->dtype, shape, error));
    mr_copy copy = {
        .rank = shape.rank, .element_size = mr_dtype_size(value->dtype), .target = copied->data, .source = value->data};
    memcpy(copy.dims, shape.dims, sizeof shape.dims);
    mr_shape_strides(shape, copy.target_strides);
    mr_shape_strides(value->shape, strides);
    for (int i = 0; i < value->shape.rank; i++)
        copy.source_strides[added + i] = value->shape.dims[i] == 1 ? 0 : strides[i];
    if (mr_tensor_count(copied) > 0) mr_copy_strided(copy, call->device->pool);
    return MR_OK;
}

/* Assigns input 4 to the slice of a tensor with input 0's shape, whose elements are at target. */
static mr_status assign_slice(mr_kernel_call *call, void *target, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0], *value = &call->inputs[4];
    dense_slice dense;
    MR_TRY(dense_from_masks(call, input->shape, 1, &dense, error));
    if (value->dtype != input->dtype)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "a %s has no slice of %s",
                              mr_dtype_name(input->dtype), mr_dtype_name(value->dtype));
    if (mr_shape_count(dense.sizes) == 0) return MR_OK;
    mr_tensor copied = {0};
    bool is_equal = mr_shape_equal(value->shape, dense.output);
    if (!is_equal) MR_TRY(broadcast_value(call, value, dense.output, &copied, error));
    mr_copy copy = {.rank = dense.input.rank, .element_size = mr_dtype_size(input->dtype)};
    int64_t offset = slice_strides(&dense, copy.target_strides);
    copy.source = is_equal ? value->data : copied.data;
    copy.target = (char *)target + offset * (int64_t)copy.element_size;
    memcpy(copy.dims, dense.sizes.dims, sizeof dense.sizes.dims);
    mr_shape_strides(dense.sizes, copy.source_strides);
    mr_copy_strided(copy, call->device->pool);
    mr_tensor_deinit(&copied);
    return MR_OK;
}

/* Input 0 is the variable's value, which is updated in place. */
static mr_status strided_slice_assign(mr_kernel_call *call, mr_error *error)
{
    return assign_slice(call, call->inputs[0].data, error);
}

static mr_status strided_slice_update(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, input->shape, &sink, error));
    if (sink.count > 0) memcpy(sink.data, input->data, (size_t)sink.count * sink.element_size);
    mr_status status = assign_slice(call, sink.data, error);
    return mr_sink_finish(call, &sink, status, error);
}

static mr_status reverse_axes(mr_kernel_call *call, const bool *reversed, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int64_t strides[MR_RANK_MAX], offset = 0;
    mr_shape_strides(input->shape, strides);
    for (int i = 0; i < input->shape.rank; i++)
        if (reversed[i]) {
            offset += (input->shape.dims[i] - 1) * strides[i]; /* the strides of an empty tensor are 0 */
            strides[i] = -strides[i];
        }
    return take(call, input, input->shape, strides, offset, input->shape, error);
}

static mr_status reverse_v2(mr_kernel_call *call, mr_error *error)
{
    int64_t axes[MR_RANK_MAX];
    int count, axis;
    bool reversed[MR_RANK_MAX] = {false};
    if (call->inputs[1].shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "'dims' must be 1-dimension, not %d",
                              call->inputs[1].shape.rank);
    MR_TRY(mr_kernel_ints(call, 1, "axis", axes, MR_RANK_MAX, &count, error));
    for (int i = 0; i < count; i++) {
        int rank = call->inputs[0].shape.rank;
        if (rank == 0) break; /* TensorFlow does not look at them then */
        if (axes[i] < -rank || axes[i] >= rank)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "'axis'[%d] = %" PRId64 " is out of valid range [0, %d", i, axes[i], rank - 1);
        axis = (int)(axes[i] < 0 ? axes[i] + rank : axes[i]);
        if (reversed[axis])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "axis %d specified more than once.", axis);
        reversed[axis] = true;
    }
    return reverse_axes(call, reversed, error);
}

static mr_status reverse_v1(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *dims = &call->inputs[1];
    mr_shape shape = call->inputs[0].shape;
    if (shape.rank > 0 && dims->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "'dims' must be 1-dimension, not %d",
                              dims->shape.rank);
    if (shape.rank > 0 && shape.dims[0] == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Invalid input first dimension. Found 0.");
    if (mr_tensor_count(dims) != call->inputs[0].shape.rank)
        return mr_kernel_fail(
            call->node, error, MR_INVALID_ARGUMENT,
            "'dims' must have the same number of values as 'input' has dimensions. 'input' has %d'dims' "
            "has %" PRId64 " values",
            call->inputs[0].shape.rank, mr_tensor_count(dims));
    return reverse_axes(call, dims->data, error);
}

/* perm has a dimension twice, so it lacks another one: names the first. */
static mr_status missing_axis(mr_kernel_call *call, const int64_t *order, int rank, mr_error *error)
{
    char text[MR_RANK_MAX * 4] = "";
    size_t used = 0;
    int missing = rank - 1;
    for (int axis = rank - 1; axis >= 0; axis--) {
        bool found = false;
        for (int i = 0; i < rank; i++) found = found || order[i] == axis || order[i] + rank == axis;
        if (!found) missing = axis;
    }
    for (int i = 0; i < rank; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", i > 0 ? "," : "", (int)order[i]);
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%d is missing from {%s}.", missing, text);
}

static mr_status transpose(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int64_t order[MR_RANK_MAX], strides[MR_RANK_MAX], taken[MR_RANK_MAX];
    int count, rank = input->shape.rank;
    bool used[MR_RANK_MAX] = {false}, same = true;
    mr_shape shape = {.rank = rank};
    if (call->inputs[1].shape.rank != 1) {
        char text[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "perm must be rank 1, got shape %s",
                              mr_shape_text(call->inputs[1].shape, text, sizeof text));
    }
    MR_TRY(mr_kernel_ints(call, 1, "perm", order, MR_RANK_MAX, &count, error));
    if (count != rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "transpose expects a vector of size %d. But input(1) is a vector of size %d", rank,
                              count);
    mr_shape_strides(input->shape, strides);
    for (int i = 0; i < rank; i++) {
        int axis;
        if (order[i] < -rank || order[i] >= rank)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%" PRId64 " is out of range [0 .. %d)",
                                  order[i] < 0 ? order[i] + rank : order[i], rank);
        axis = (int)(order[i] < 0 ? order[i] + rank : order[i]);
        if (used[axis]) return missing_axis(call, order, rank, error);
        used[axis] = true;
        same = same && axis == i;
        shape.dims[i] = input->shape.dims[axis];
        taken[i] = strides[axis];
    }
    if (same) {
        call->outputs[0] = mr_tensor_ref(input);
        return MR_OK;
    }
    return take(call, input, shape, taken, 0, shape, error);
}

static void conjugate_piece(void *context, int64_t begin, int64_t end)
{
    const mr_tensor *output = context;
    /* The sign of every second number, which is the imaginary part. */
    if (output->dtype == MR_COMPLEX64)
        for (int64_t i = begin; i < end; i++) ((float *)output->data)[2 * i + 1] *= -1;
    else
        for (int64_t i = begin; i < end; i++) ((double *)output->data)[2 * i + 1] *= -1;
}

static mr_status conjugate_transpose(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(transpose(call, error));
    mr_tensor *output = &call->outputs[0];
    if (output->dtype != MR_COMPLEX64 && output->dtype != MR_COMPLEX128) return MR_OK;
    if (output->data == call->inputs[0].data && mr_tensor_count(output) > 0) {
        /* Nothing moved: the output shares the input's buffer, which others may read. */
        mr_tensor_deinit(output);
        MR_TRY(mr_kernel_output(call, 0, call->inputs[0].shape, error));
        memcpy(output->data, call->inputs[0].data, mr_tensor_size_bytes(output));
    }
    mr_pool_for(call->device->pool, mr_tensor_count(output), MR_GRAIN, conjugate_piece, output);
    return MR_OK;
}

static mr_status broadcast_to(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    mr_shape shape;
    int64_t own[MR_RANK_MAX], strides[MR_RANK_MAX] = {0};
    MR_TRY(mr_kernel_shape(call, 1, &shape, error));
    int lead = shape.rank - input->shape.rank;
    mr_shape_strides(input->shape, own);
    bool fits = lead >= 0;
    for (int i = 0; fits && i < input->shape.rank; i++) {
        fits = input->shape.dims[i] == shape.dims[lead + i] || input->shape.dims[i] == 1;
        strides[lead + i] = input->shape.dims[i] == 1 ? 0 : own[i];
    }
    if (lead < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Rank of input (%d) must be no greater than rank of output shape (%d).",
                              input->shape.rank, shape.rank);
    if (!fits) {
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s",
                              mr_shape_text(input->shape, a, sizeof a), mr_shape_text(shape, b, sizeof b));
    }
    return take(call, input, shape, strides, 0, shape, error);
}

static mr_status tile(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int64_t multiples[MR_RANK_MAX], strides[MR_RANK_MAX], out_strides[MR_RANK_MAX];
    int count, rank = input->shape.rank;
    mr_shape shape = {.rank = rank};
    MR_TRY(mr_kernel_ints(call, 1, "multiples", multiples, MR_RANK_MAX, &count, error));
    if (count != rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected multiples argument to be a vector of length %d but got length %d", rank, count);
    for (int i = 0; i < rank; i++) {
        if (multiples[i] < 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Expected multiples[%d] >= 0, but got %" PRId64, i, multiples[i]);
        if (__builtin_mul_overflow(multiples[i], input->shape.dims[i], &shape.dims[i]))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "dimension %d becomes too large", i);
    }
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    mr_copy copy = {.rank = 2 * rank, .element_size = sink.element_size, .target = sink.data, .source = input->data};
    mr_shape_strides(input->shape, strides);
    mr_shape_strides(shape, out_strides);
    for (int i = 0; i < rank; i++) { /* output index = repetition · size + index */
        copy.dims[2 * i] = multiples[i];
        copy.dims[2 * i + 1] = input->shape.dims[i];
        copy.target_strides[2 * i] = out_strides[i] * input->shape.dims[i];
        copy.target_strides[2 * i + 1] = out_strides[i];
        copy.source_strides[2 * i] = 0;
        copy.source_strides[2 * i + 1] = strides[i];
    }
    mr_copy_strided(copy, call->device->pool);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static int64_t paddings_at(const mr_tensor *given, int i)
{
    return given->dtype == MR_INT64 ? ((const int64_t *)given->data)[i] : ((const int32_t *)given->data)[i];
}

/* Reads paddings [rank, 2], which errors call `name`. */
static mr_status read_paddings(mr_kernel_call *call, const char *name, int64_t *paddings, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0], *given = &call->inputs[1];
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    mr_shape_text(given->shape, a, sizeof a);
    mr_shape_text(input->shape, b, sizeof b);
    if (given->shape.rank != 2 || given->shape.dims[1] != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "paddings must be a matrix with 2 columns: %s",
                              a);
    if (given->shape.dims[0] != input->shape.rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "The first dimension of paddings must be the rank of inputs%s%s %s", a,
                              name[0] == 'p' ? "," : "", b); /* MirrorPad has a comma, Pad none */
    for (int i = 0; i < 2 * input->shape.rank; i++) {
        paddings[i] = paddings_at(given, i);
        if (paddings[i] < 0) {
            const int64_t other = paddings_at(given, i ^ 1);
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "%s must be non-negative: %" PRId64 " %" PRId64, name, i % 2 ? other : paddings[i],
                                  i % 2 ? paddings[i] : other);
        }
        if (paddings[i] > INT32_MAX)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "padding %d is out of range (%" PRId64 ")", i,
                                  paddings[i]);
    }
    return MR_OK;
}

static mr_status pad_dimension(const mr_kernel_call *call, const int64_t *paddings, int i, mr_shape *shape,
                               mr_error *error)
{
    if (__builtin_add_overflow(shape->dims[i], paddings[2 * i] + paddings[2 * i + 1], &shape->dims[i]))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "dimension %d becomes too large", i);
    return MR_OK;
}

static mr_status pad(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int64_t paddings[2 * MR_RANK_MAX] = {0}, offset = 0;
    mr_shape shape = input->shape;
    MR_TRY(read_paddings(call, "Paddings", paddings, error));
    for (int i = 0; i < shape.rank; i++) MR_TRY(pad_dimension(call, paddings, i, &shape, error));
    static const char zeros[16];
    const void *element = zeros;
    mr_sink sink;
    if (call->node->input_count > 2) {
        if (call->inputs[2].shape.rank != 0) {
            char text[MR_SHAPE_TEXT_SIZE];
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "constant_values must be a scalar. Found: %s",
                                  mr_shape_text(call->inputs[2].shape, text, sizeof text));
        }
        element = call->inputs[2].data;
    }
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    mr_fill_elements(sink.data, element, sink.element_size, sink.count, call->device->pool);
    mr_copy copy = {.rank = shape.rank, .element_size = sink.element_size, .source = input->data};
    mr_shape_strides(shape, copy.target_strides);
    mr_shape_strides(input->shape, copy.source_strides);
    memcpy(copy.dims, input->shape.dims, sizeof input->shape.dims);
    for (int i = 0; i < shape.rank; i++) offset += paddings[2 * i] * copy.target_strides[i];
    copy.target = (char *)sink.data + offset * (int64_t)sink.element_size;
    if (mr_tensor_count(input) > 0) mr_copy_strided(copy, call->device->pool);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

/* MirrorPad: copies single elements through an index map for each dimension. */
static mr_status mirror_pad(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int64_t paddings[2 * MR_RANK_MAX] = {0}, strides[MR_RANK_MAX];
    mr_string mode = mr_attr_string_or(call->node->attrs, "mode", "REFLECT");
    int64_t skip = mr_string_equal(mode, MR_STR("REFLECT")) ? 1 : 0;
    mr_shape shape = input->shape;
    MR_TRY(read_paddings(call, "paddings", paddings, error));
    for (int i = 0; i < shape.rank; i++) {
        int64_t most = shape.dims[i] - skip;
        if (paddings[2 * i] > most || paddings[2 * i + 1] > most)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "paddings must be %s the dimension size: %" PRId64 ", %" PRId64 " %s %" PRId64,
                                  skip ? "less than" : "no greater than", paddings[2 * i], paddings[2 * i + 1],
                                  skip ? "not less than" : "greater than", shape.dims[i]);
        MR_TRY(pad_dimension(call, paddings, i, &shape, error));
    }
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    mr_shape_strides(input->shape, strides);
    for (int64_t index = 0; index < sink.count; index++) {
        int64_t rest = index, offset = 0;
        for (int i = shape.rank - 1; i >= 0; i--) {
            int64_t have = input->shape.dims[i], at = rest % shape.dims[i] - paddings[2 * i];
            rest /= shape.dims[i];
            if (at < 0) at = -at - 1 + skip;
            if (at >= have) at = 2 * have - 1 - skip - at;
            offset += at * strides[i];
        }
        memcpy((char *)sink.data + (size_t)index * sink.element_size, from(input, offset, sink.element_size),
               sink.element_size);
    }
    return mr_sink_finish(call, &sink, MR_OK, error);
}

#define PLAIN                                                                                                          \
    "bool, half, bfloat16, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, "       \
    "complex128, qint8, quint8, qint32"
static const mr_kernel kernels[] = {
    {.op = "Slice", .run = slice, .host_inputs = 1 << 1 | 1 << 2},
    {.op = "StridedSlice", .run = strided_slice, .host_inputs = 1 << 1 | 1 << 2 | 1 << 3},
    {.op = "StridedSliceAssign",
     .types = "T: " PLAIN,
     .run = strided_slice_assign,
     .host_inputs = 1 << 1 | 1 << 2 | 1 << 3,
     .updates = 1},
    {.op = "ResourceStridedSliceAssign",
     .types = "T: " PLAIN,
     .run = strided_slice_assign,
     .host_inputs = 1 << 1 | 1 << 2 | 1 << 3,
     .updates = 1},
    {.op = "TensorStridedSliceUpdate", .run = strided_slice_update, .host_inputs = 1 << 1 | 1 << 2 | 1 << 3},
    {.op = "StridedSliceGrad", .run = strided_slice_grad, .host_inputs = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3},
    {.op = "_SumOfStridedSliceGrads", .types = "T: float", .run = sum_of_slice_grads},
    {.op = "ReverseV2", .run = reverse_v2, .host_inputs = 1 << 1},
    {.op = "Reverse", .run = reverse_v1, .host_inputs = 1 << 1},
    {.op = "Transpose", .run = transpose, .host_inputs = 1 << 1},
    {.op = "ConjugateTranspose", .run = conjugate_transpose, .host_inputs = 1 << 1},
    {.op = "BroadcastTo", .run = broadcast_to, .host_inputs = 1 << 1},
    {.op = "Tile", .run = tile, .host_inputs = 1 << 1},
    {.op = "Pad", .run = pad, .host_inputs = 1 << 1},
    {.op = "PadV2", .run = pad, .host_inputs = 1 << 1},
    {.op = "MirrorPad", .run = mirror_pad, .host_inputs = 1 << 1},
};
MR_KERNEL_FAMILY(array_slice);
