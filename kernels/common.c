/* The helpers declared in common.h: small inputs, sinks, strided copies. */
#include "kernels/common.h"

#include "base/halves.h"
#include "kernels/transpose.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mr_status mr_kernel_ints(const mr_kernel_call *call, int input, const char *what, int64_t *values, int capacity,
                         int *count, mr_error *error)
{
    const mr_tensor *tensor = &call->inputs[input];
    int64_t have = mr_tensor_count(tensor);
    if (tensor->shape.rank > 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be a vector, not a tensor of rank %d",
                              what, tensor->shape.rank);
    if (have > capacity)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s has %lld elements, more than the limit of %d",
                              what, (long long)have, capacity);
    *count = (int)have;
    if (tensor->dtype == MR_INT32) {
        for (int i = 0; i < have; i++) values[i] = ((const int32_t *)tensor->data)[i];
        return MR_OK;
    }
    if (tensor->dtype == MR_INT64) {
        for (int i = 0; i < have; i++) values[i] = ((const int64_t *)tensor->data)[i];
        return MR_OK;
    }
    if (tensor->dtype == MR_INT16) {
        for (int i = 0; i < have; i++) values[i] = ((const int16_t *)tensor->data)[i];
        return MR_OK;
    }
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be int32 or int64, not %s", what,
                          mr_dtype_name(tensor->dtype));
}

mr_status mr_kernel_single_int(const mr_kernel_call *call, int input, const char *what, int64_t *value, mr_error *error)
{
    const mr_tensor *tensor = &call->inputs[input];
    if (mr_tensor_count(tensor) != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must have exactly one element.", what);
    switch (tensor->dtype) {
    case MR_INT16:
        *value = *(const int16_t *)tensor->data;
        return MR_OK;
    case MR_INT32:
        *value = *(const int32_t *)tensor->data;
        return MR_OK;
    case MR_INT64:
        *value = *(const int64_t *)tensor->data;
        return MR_OK;
    default:
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be int32 or int64, not %s", what,
                              mr_dtype_name(tensor->dtype));
    }
}

mr_status mr_kernel_int(const mr_kernel_call *call, int input, const char *what, int64_t *value, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    mr_shape shape = call->inputs[input].shape;
    if (shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be a scalar, got shape %s", what,
                              mr_shape_text(shape, text, sizeof text));
    return mr_kernel_single_int(call, input, what, value, error);
}

mr_status mr_kernel_same_shape(const mr_kernel_call *call, int a, int b, mr_error *error)
{
    char left[MR_SHAPE_TEXT_SIZE], right[MR_SHAPE_TEXT_SIZE];
    mr_shape x = call->inputs[a].shape, y = call->inputs[b].shape;
    if (mr_shape_equal(x, y)) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "Inputs to operation %s of type %s must have the same size and shape.  Input %d: %s != input "
                          "%d: %s",
                          call->node->name, call->node->op, a, mr_shape_text(x, left, sizeof left), b,
                          mr_shape_text(y, right, sizeof right));
}

mr_status mr_kernel_same_count(const mr_kernel_call *call, int a, int b, mr_error *error)
{
    const mr_tensor *x = &call->inputs[a], *y = &call->inputs[b];
    const int64_t left = mr_tensor_count(x), right = mr_tensor_count(y);
    if (left == right) return MR_OK;
    char left_text[MR_SHAPE_TEXT_SIZE], right_text[MR_SHAPE_TEXT_SIZE];
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "The two arguments to a cwise op must have same number of elements, got %" PRId64
                          " and %" PRId64 "; their shapes are %s and %s",
                          left, right, mr_shape_text(x->shape, left_text, sizeof left_text),
                          mr_shape_text(y->shape, right_text, sizeof right_text));
}

mr_status mr_kernel_shape(const mr_kernel_call *call, int input, mr_shape *shape, mr_error *error)
{
    *shape = MR_SCALAR;
    int count;
    char text[MR_SHAPE_TEXT_SIZE];
    if (call->inputs[input].shape.rank > 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "shape must be a vector of {int32,int64}, got shape %s",
                              mr_shape_text(call->inputs[input].shape, text, sizeof text));
    MR_TRY(mr_kernel_ints(call, input, "shape", shape->dims, MR_RANK_MAX, &count, error));
    shape->rank = count;
    for (int i = 0; i < count; i++)
        if (shape->dims[i] < 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Dimension %lld must be >= 0",
                                  (long long)shape->dims[i]);
    if (mr_shape_count(*shape) < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Shape %s would have more than 2**63 - 1 elements",
                              mr_shape_text(*shape, text, sizeof text));
    return MR_OK;
}

mr_status mr_kernel_axis(const mr_kernel_call *call, int64_t axis, int rank, int *result, mr_error *error)
{
    if (axis < -rank || axis >= rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "axis %lld is outside [%d, %d)", (long long)axis,
                              -rank, rank);
    *result = (int)(axis < 0 ? axis + rank : axis);
    return MR_OK;
}

char *mr_position_text(mr_shape shape, int64_t index, char *text, size_t size_bytes)
{
    int64_t at[MR_RANK_MAX] = {0};
    size_t used = 0;
    for (int i = shape.rank - 1; i >= 0; i--) {
        at[i] = shape.dims[i] > 0 ? index % shape.dims[i] : 0;
        index = shape.dims[i] > 0 ? index / shape.dims[i] : 0;
    }
    text[0] = 0;
    for (int i = 0; i < shape.rank && used < size_bytes; i++)
        used += (size_t)snprintf(text + used, size_bytes - used, "%s%lld%s", i == 0 ? "[" : ",", (long long)at[i],
                                 i == shape.rank - 1 ? "]" : "");
    return text;
}

mr_status mr_kernel_put_ints(mr_kernel_call *call, int index, mr_shape shape, const int64_t *values, mr_error *error)
{
    MR_TRY(mr_kernel_output(call, index, shape, error));
    mr_tensor *output = &call->outputs[index];
    int64_t count = mr_shape_count(shape);
    if (output->dtype == MR_INT64) {
        if (count > 0) memcpy(output->data, values, (size_t)count * sizeof *values);
        return MR_OK;
    }
    if (output->dtype == MR_INT16 || output->dtype == MR_UINT16) {
        for (int64_t i = 0; i < count; i++) ((uint16_t *)output->data)[i] = (uint16_t)values[i];
        return MR_OK;
    }
    if (output->dtype != MR_INT32)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "no kernel for output %d of type %s", index,
                              mr_dtype_name(output->dtype));
    for (int64_t i = 0; i < count; i++) {
        if (values[i] < INT32_MIN || values[i] > INT32_MAX)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%lld does not fit in int32",
                                  (long long)values[i]);
        ((int32_t *)output->data)[i] = (int32_t)values[i];
    }
    return MR_OK;
}

mr_status mr_sink_init(mr_kernel_call *call, int index, mr_shape shape, mr_sink *sink, mr_error *error)
{
    mr_dtype dtype = call->node->output_dtypes[index];
    *sink = (mr_sink){.index = index, .shape = shape, .count = mr_shape_count(shape)};
    sink->element_size = mr_dtype_size(dtype);
    sink->is_string = dtype == MR_STRING;
    bool is_size = sink->element_size > 0;
    for (int i = 0; i < shape.rank; i++) is_size = is_size && shape.dims[i] >= 0;
    if (sink->count < 0 && is_size) return mr_kernel_fail_memory(call, dtype, shape, error);
    if (sink->count < 0 || sink->element_size == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "output %d has an invalid shape or type", index);
    if (sink->is_string) {
        size_t size_bytes;
        if (__builtin_mul_overflow((size_t)sink->count, sizeof(mr_string), &size_bytes))
            return mr_kernel_fail_memory(call, dtype, shape, error);
        sink->data = calloc(size_bytes ? size_bytes : 1, 1);
        if (sink->data == nullptr) return mr_kernel_fail_memory(call, dtype, shape, error);
        return MR_OK;
    }
    MR_TRY(mr_kernel_output(call, index, shape, error));
    sink->data = call->outputs[index].data;
    return MR_OK;
}

mr_status mr_sink_finish(mr_kernel_call *call, mr_sink *sink, mr_status failed, mr_error *error)
{
    if (!sink->is_string) return failed;
    if (failed == MR_OK) failed = mr_tensor_init_strings(&call->outputs[sink->index], sink->shape, sink->data, error);
    free(sink->data);
    sink->data = nullptr;
    return failed;
}

int64_t mr_dims_product(const mr_shape *shape, int begin, int end)
{
    int64_t product = 1;
    assert(begin >= 0 && end <= shape->rank);
    for (int i = begin; i < end; i++)
        if (__builtin_mul_overflow(product, shape->dims[i], &product)) return 0;
    return product;
}

void mr_shape_strides(mr_shape shape, int64_t strides[MR_RANK_MAX])
{
    int64_t stride = 1;
    memset(strides, 0, sizeof(int64_t) * MR_RANK_MAX);
    if (mr_shape_count(shape) <= 0) return;
    for (int i = shape.rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= shape.dims[i];
    }
}

typedef struct element16 {
    uint64_t words[2];
} element16;

#define INNER(type)                                                                                                    \
    for (int64_t i = 0; i < count; i++) ((type *)target)[i * target_stride] = ((const type *)source)[i * source_stride];

static void copy_row(char *target, int64_t target_stride, const char *source, int64_t source_stride, int64_t count,
                     size_t element_size)
{
    if (target_stride == 1 && source_stride == 1) {
        memcpy(target, source, (size_t)count * element_size);
        return;
    }
    switch (element_size) {
    case 1:
        INNER(uint8_t) break;
    case 2:
        INNER(uint16_t) break;
    case 4:
        INNER(uint32_t) break;
    case 8:
        INNER(uint64_t) break;
    default:
        INNER(element16) break;
    }
}

/* Merges dims that are contiguous on both sides; drops dims of size 1. */
static void collapse(mr_copy *copy)
{
    int rank = 0;
    for (int i = 0; i < copy->rank; i++) {
        if (copy->dims[i] == 1) continue;
        int p = rank - 1;
        if (rank > 0 && copy->target_strides[p] == copy->target_strides[i] * copy->dims[i] &&
            copy->source_strides[p] == copy->source_strides[i] * copy->dims[i]) {
            copy->dims[p] *= copy->dims[i];
            copy->target_strides[p] = copy->target_strides[i];
            copy->source_strides[p] = copy->source_strides[i];
            continue;
        }
        copy->dims[rank] = copy->dims[i];
        copy->target_strides[rank] = copy->target_strides[i];
        copy->source_strides[rank] = copy->source_strides[i];
        rank++;
    }
    if (rank == 0) {
        copy->dims[0] = copy->target_strides[0] = copy->source_strides[0] = 1;
        rank = 1;
    }
    copy->rank = rank;
}

/* Sizes of what a thread transposes at a time: whole blocks of mr_transpose. */
constexpr int64_t TILE_ROWS = 64, TILE_COLUMNS = 1024;

typedef struct copy_job {
    const mr_copy *copy;
    int outer_rank;
    int64_t row_tiles, column_tiles; /* of the last two dims, if these are transposed; else 0 */
} copy_job;

static void copy_pieces(void *context, int64_t begin, int64_t end)
{
    const copy_job *job = context;
    const mr_copy *copy = job->copy;
    const int r = copy->rank;
    const int64_t size = (int64_t)copy->element_size, tiles = MR_MAX(1, job->row_tiles * job->column_tiles);
    for (int64_t index = begin; index < end; index++) {
        int64_t rest = index / tiles, to = 0, from = 0;
        for (int i = job->outer_rank - 1; i >= 0; i--) {
            int64_t at = rest % copy->dims[i];
            rest /= copy->dims[i];
            to += at * copy->target_strides[i];
            from += at * copy->source_strides[i];
        }
        if (job->row_tiles > 0) {
            const int64_t row = index % tiles / job->column_tiles * TILE_ROWS;
            const int64_t column = index % tiles % job->column_tiles * TILE_COLUMNS;
            const int64_t target_row = copy->target_strides[r - 2], source_row = copy->source_strides[r - 1];
            mr_transpose(copy->target + (to + row * target_row + column) * size, target_row,
                         copy->source + (from + column * source_row + row) * size, source_row,
                         MR_MIN(TILE_ROWS, copy->dims[r - 2] - row), MR_MIN(TILE_COLUMNS, copy->dims[r - 1] - column),
                         copy->element_size);
            continue;
        }
        copy_row(copy->target + to * size, copy->target_strides[r - 1], copy->source + from * size,
                 copy->source_strides[r - 1], copy->dims[r - 1], copy->element_size);
    }
}

static void swap_dims(mr_copy *copy, int a, int b)
{
    int64_t *const each[] = {copy->dims, copy->target_strides, copy->source_strides};
    for (int i = 0; i < 3; i++) {
        const int64_t kept = each[i][a];
        each[i][a] = each[i][b];
        each[i][b] = kept;
    }
}

/* Whether the copy transposes matrices: the dim that is contiguous in the source is not that of the target. Makes it
 * the last but one. */
static bool find_matrices(mr_copy *copy)
{
    const int last = copy->rank - 1;
    if (copy->target_strides[last] != 1 || copy->source_strides[last] == 1) return false;
    for (int i = 0; i < last; i++)
        if (copy->source_strides[i] == 1) {
            swap_dims(copy, i, last - 1);
            return true;
        }
    return false;
}

void mr_copy_strided(mr_copy copy, mr_pool *pool)
{
    for (int i = 0; i < copy.rank; i++)
        if (copy.dims[i] == 0) return;
    collapse(&copy);
    assert(copy.rank >= 1 && copy.rank <= MR_COPY_RANK_MAX);
    int r = copy.rank;
    copy_job job = {&copy, r - 1};
    if (find_matrices(&copy)) {
        job.outer_rank = r - 2;
        job.row_tiles = (copy.dims[r - 2] + TILE_ROWS - 1) / TILE_ROWS;
        job.column_tiles = (copy.dims[r - 1] + TILE_COLUMNS - 1) / TILE_COLUMNS;
    }
    int64_t outer = MR_MAX(1, job.row_tiles * job.column_tiles), inner = 1;
    for (int i = 0; i < r; i++) inner *= copy.dims[i];
    for (int i = 0; i < job.outer_rank; i++) outer *= copy.dims[i];
    if (outer == 1 && r == 1 && copy.target_strides[0] == 1 && copy.source_strides[0] == 1 && inner > 4 * MR_GRAIN) {
        copy.rank = 2; /* one long row: split it among the threads */
        copy.dims[0] = inner / MR_GRAIN;
        copy.dims[1] = MR_GRAIN;
        copy.target_strides[0] = copy.source_strides[0] = MR_GRAIN;
        copy.target_strides[1] = copy.source_strides[1] = 1;
        int64_t done = copy.dims[0] * MR_GRAIN;
        copy_job rows = {&copy, 1};
        mr_pool_for(pool, copy.dims[0], 1, copy_pieces, &rows);
        copy_row(copy.target + (size_t)done * copy.element_size, 1, copy.source + (size_t)done * copy.element_size, 1,
                 inner - done, copy.element_size);
        return;
    }
    mr_pool_for(pool, outer, MR_MAX(1, MR_GRAIN / MR_MAX(1, inner / outer)), copy_pieces, &job);
}

typedef struct fill_job {
    char *target;
    const void *element;
    size_t element_size;
} fill_job;

static void fill_piece(void *context, int64_t begin, int64_t end)
{
    const fill_job *job = context;
    copy_row(job->target + (size_t)begin * job->element_size, 1, job->element, 0, end - begin, job->element_size);
}

void mr_fill_elements(void *target, const void *element, size_t element_size, int64_t count, mr_pool *pool)
{
    fill_job job = {target, element, element_size};
    mr_pool_for(pool, count, 4 * MR_GRAIN, fill_piece, &job);
}

/* ---- Half types as float ---- */

bool mr_kernel_has_half(const mr_kernel_call *call)
{
    bool found = false;
    for (int i = 0; i < call->node->input_count; i++) found |= mr_is_half(call->inputs[i].dtype);
    for (int i = 0; i < call->node->output_count; i++) found |= mr_is_half(call->node->output_dtypes[i]);
    return found;
}

typedef struct half_job {
    mr_dtype half;
    const void *source;
    void *target;
} half_job;

static void widen_range(void *context, int64_t begin, int64_t end)
{
    const half_job *job = context;
    mr_halves_to_floats((float *)job->target + begin, (const uint16_t *)job->source + begin, end - begin, job->half);
}

static void narrow_range(void *context, int64_t begin, int64_t end)
{
    const half_job *job = context;
    mr_floats_to_halves((uint16_t *)job->target + begin, (const float *)job->source + begin, end - begin, job->half);
}

static mr_status convert(const mr_kernel_call *call, const mr_tensor *source, mr_dtype target_dtype, mr_dtype half,
                         mr_pool_body body, mr_tensor *target, mr_error *error)
{
    MR_TRY(mr_tensor_init(target, target_dtype, source->shape, error));
    half_job job = {half, source->data, target->data};
    if (mr_tensor_count(source) > 0) mr_pool_for(call->device->pool, mr_tensor_count(source), MR_GRAIN, body, &job);
    return MR_OK;
}

mr_status mr_kernel_as_float(const mr_kernel_call *call, mr_kernel_run run, mr_error *error)
{
    mr_tensor inputs[MR_HALF_TENSORS_MAX] = {0}, outputs[MR_HALF_TENSORS_MAX] = {0};
    mr_dtype input_dtypes[MR_HALF_TENSORS_MAX], output_dtypes[MR_HALF_TENSORS_MAX];
    mr_kernel_node node = *call->node;
    mr_kernel_call wide = *call;
    if (node.input_count > MR_HALF_TENSORS_MAX || node.output_count > MR_HALF_TENSORS_MAX)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "too many inputs");
    for (int i = 0; i < node.output_count; i++) {
        bool half = mr_is_half(call->node->output_dtypes[i]);
        output_dtypes[i] = half ? MR_FLOAT : call->node->output_dtypes[i];
    }
    mr_status status = MR_OK;
    for (int i = 0; i < node.input_count && status == MR_OK; i++) {
        mr_dtype half = call->inputs[i].dtype;
        input_dtypes[i] = mr_is_half(half) ? MR_FLOAT : half;
        if (mr_is_half(half))
            status = convert(call, &call->inputs[i], MR_FLOAT, half, widen_range, &inputs[i], error);
        else
            inputs[i] = mr_tensor_ref(&call->inputs[i]);
    }
    node.input_dtypes = input_dtypes;
    node.output_dtypes = output_dtypes;
    wide.node = &node;
    wide.inputs = inputs;
    wide.outputs = outputs;
    wide.may_reuse = nullptr;
    if (status == MR_OK) status = run(&wide, error);
    for (int i = 0; i < node.output_count && status == MR_OK; i++) {
        mr_dtype half = call->node->output_dtypes[i];
        if (mr_is_half(half))
            status = convert(call, &outputs[i], half, half, narrow_range, &call->outputs[i], error);
        else
            call->outputs[i] = mr_tensor_ref(&outputs[i]);
    }
    for (int i = 0; i < node.input_count; i++) mr_tensor_deinit(&inputs[i]);
    for (int i = 0; i < node.output_count; i++) mr_tensor_deinit(&outputs[i]);
    return status;
}
