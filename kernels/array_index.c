/* Operators that read elements by index: gathers, one-hot encoding, positions of nonzero elements.
 * Every index is checked. */
#include "kernels/indices.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static mr_status bad_index(mr_kernel_call *call, const char *name, mr_shape shape, int64_t position, int64_t index,
                           int64_t limit, mr_error *error)
{
    char text[MR_POSITION_TEXT_SIZE];
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s%s = %" PRId64 " is not in [0, %" PRId64 ")", name,
                          mr_position_text(shape, position, text, sizeof text), index, limit);
}

static mr_status check_indices(mr_kernel_call *call, const mr_tensor *indices, int64_t limit, mr_error *error)
{
    int64_t count = mr_tensor_count(indices);
    for (int64_t i = 0; i < count; i++) {
        int64_t index = mr_index_at(indices, i);
        if (index < 0 || index >= limit) return bad_index(call, "indices", indices->shape, i, index, limit, error);
    }
    return MR_OK;
}

typedef struct gather_job {
    const mr_tensor *indices;
    const char *source;
    char *target;
    int64_t limit, index_count, outer;
    size_t row_bytes;
} gather_job;

/* Rows are numbered by (batch, outer, index), the last one varying fastest. */
static void gather_rows(void *context, int64_t begin, int64_t end)
{
    const gather_job *job = context;
    for (int64_t row = begin; row < end; row++) {
        int64_t i = row % job->index_count, block = row / job->index_count, batch = block / job->outer;
        int64_t index = mr_index_at(job->indices, batch * job->index_count + i);
        memcpy(job->target + (size_t)row * job->row_bytes,
               job->source + (size_t)(block * job->limit + index) * job->row_bytes, job->row_bytes);
    }
}

static mr_status gather(mr_kernel_call *call, int64_t given_axis, int64_t given_batch, mr_error *error)
{
    const mr_tensor *params = &call->inputs[0], *indices = &call->inputs[1];
    int axis, p = params->shape.rank, q = indices->shape.rank;
    int64_t batch_dims = given_batch < 0 ? given_batch + q : given_batch;
    if (p == 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "params must be at least 1 dimensional");
    if (given_axis < -p || given_axis >= p)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Shape must be at least rank %" PRId64 " but is rank %d",
                              given_axis < 0 ? -given_axis : given_axis + 1, p);
    axis = (int)(given_axis < 0 ? given_axis + p : given_axis);
    if (batch_dims < 0 || batch_dims > q)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected batch_dims in the range [%d, %d], but got %" PRId64, -q, q, given_batch);
    if (batch_dims > axis)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "batch_dims (%" PRId64 ") must be less than or equal to axis (%d).", batch_dims, axis);
    mr_shape shape = {.rank = p - 1 + q - (int)batch_dims};
    if (shape.rank > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
    int64_t out = 0;
    for (int i = 0; i < batch_dims; i++) {
        if (indices->shape.dims[i] != params->shape.dims[i])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "params.shape[%d]: %" PRId64 " should be equal to indices.shape[%d]: %" PRId64, i,
                                  params->shape.dims[i], i, indices->shape.dims[i]);
    }
    for (int i = 0; i < axis; i++) shape.dims[out++] = params->shape.dims[i];
    for (int i = (int)batch_dims; i < q; i++) shape.dims[out++] = indices->shape.dims[i];
    for (int i = axis + 1; i < p; i++) shape.dims[out++] = params->shape.dims[i];
    int64_t limit = params->shape.dims[axis];
    MR_TRY(check_indices(call, indices, limit, error));
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    int64_t outer = mr_dims_product(&params->shape, (int)batch_dims, axis);
    int64_t inner = mr_dims_product(&params->shape, axis + 1, p);
    int64_t index_count = mr_dims_product(&indices->shape, (int)batch_dims, q);
    gather_job job = {indices, params->data, sink.data, limit, index_count, outer, (size_t)inner * sink.element_size};
    if (sink.count > 0)
        mr_pool_for(call->device->pool, sink.count / inner, MR_MAX(1, MR_GRAIN / inner), gather_rows, &job);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static mr_status gather_v1(mr_kernel_call *call, mr_error *error)
{
    return gather(call, 0, 0, error);
}

static mr_status gather_v2(mr_kernel_call *call, mr_error *error)
{
    int64_t axis;
    if (call->inputs[2].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "axis must be scalar");
    MR_TRY(mr_kernel_int(call, 2, "axis", &axis, error));
    return gather(call, axis, mr_attr_int_or(call->node->attrs, "batch_dims", 0), error);
}

static mr_status gather_nd(mr_kernel_call *call, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    const mr_tensor *params = &call->inputs[0], *indices = &call->inputs[1];
    int64_t depth, rows;
    if (params->shape.rank < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "params must be at least a vector");
    MR_TRY(mr_nd_depth(call, indices, params->shape.rank, "params", &depth, &rows, error));
    int lead = indices->shape.rank - 1, rest = params->shape.rank - (int)depth;
    mr_shape shape = {.rank = lead + rest};
    if (shape.rank > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
    for (int i = 0; i < lead; i++) shape.dims[i] = indices->shape.dims[i];
    for (int i = 0; i < rest; i++) shape.dims[lead + i] = params->shape.dims[(int)depth + i];
    if (rows > 0 && mr_tensor_count(params) == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Requested more than 0 entries, but params is empty.  Params shape: %s",
                              mr_shape_text(params->shape, text, sizeof text));
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    size_t bytes = (size_t)mr_dims_product(&params->shape, (int)depth, params->shape.rank) * sink.element_size;
    mr_status status = MR_OK;
    for (int64_t row = 0; row < rows && status == MR_OK; row++) {
        int64_t offset;
        status = mr_nd_offset(call, indices, row, depth, params->shape, "param shape", &offset, error);
        if (status == MR_OK && bytes > 0)
            memcpy((char *)sink.data + (size_t)row * bytes, (char *)params->data + (size_t)offset * bytes, bytes);
    }
    return mr_sink_finish(call, &sink, status, error);
}

static mr_status one_hot(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *indices = &call->inputs[0];
    int64_t depth, given = mr_attr_int_or(call->node->attrs, "axis", -1);
    int rank = indices->shape.rank, axis;
    static const char *const names[] = {"", "depth", "on_value", "off_value"};
    if (given < -1 || given > rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected axis to be -1 or between [0, %d).  But received: %" PRId64, rank + 1, given);
    for (int i = 1; i < 4; i++) {
        char text[MR_SHAPE_TEXT_SIZE];
        if (call->inputs[i].shape.rank != 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be a scalar, but got: %s", names[i],
                                  mr_shape_text(call->inputs[i].shape, text, sizeof text));
    }
    MR_TRY(mr_kernel_int(call, 1, "depth", &depth, error));
    if (depth < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "depth must be non-negative, got: %" PRId64,
                              depth);
    if (rank + 1 > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
    axis = given < 0 ? rank : (int)given;
    mr_shape shape = {.rank = rank + 1};
    for (int i = 0; i <= rank; i++)
        shape.dims[i] = i < axis ? indices->shape.dims[i] : i == axis ? depth : indices->shape.dims[i - 1];
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    const char *on = call->inputs[2].data, *off = call->inputs[3].data;
    mr_fill_elements(sink.data, off, sink.element_size, sink.count, call->device->pool);
    int64_t inner = mr_dims_product(&indices->shape, axis, rank);
    for (int64_t at = 0, count = mr_tensor_count(indices); at < count; at++) {
        int64_t index = mr_index_at(indices, at), outer = at / inner;
        if (index < 0 || index >= depth) continue;
        memcpy((char *)sink.data + (size_t)((outer * depth + index) * inner + at % inner) * sink.element_size, on,
               sink.element_size);
    }
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static mr_status invert_permutation(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int64_t count = mr_tensor_count(input);
    if (input->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "invert_permutation expects a 1D vector.");
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    mr_tensor *output = &call->outputs[0];
    memset(output->data, 0xff, mr_tensor_size_bytes(output)); /* -1: unused */
    for (int64_t i = 0; i < count; i++) {
        int64_t index = mr_index_at(input, i);
        if (index < 0 || index >= count)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%" PRId64 " is not between 0 and %" PRId64,
                                  index, count);
        if (mr_index_at(output, index) != -1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%" PRId64 " is duplicated in the input.",
                                  index);
        if (output->dtype == MR_INT64)
            ((int64_t *)output->data)[index] = i;
        else
            ((int32_t *)output->data)[index] = (int32_t)i;
    }
    return MR_OK;
}

static bool is_set(const mr_tensor *tensor, int64_t i)
{
    switch (tensor->dtype) {
    case MR_FLOAT:
        return ((float *)tensor->data)[i] != 0;
    case MR_DOUBLE:
        return ((double *)tensor->data)[i] != 0;
    case MR_COMPLEX64:
        return ((float *)tensor->data)[2 * i] != 0 || ((float *)tensor->data)[2 * i + 1] != 0;
    case MR_COMPLEX128:
        return ((double *)tensor->data)[2 * i] != 0 || ((double *)tensor->data)[2 * i + 1] != 0;
    case MR_HALF:
    case MR_BFLOAT16:
        return (((uint16_t *)tensor->data)[i] & 0x7fff) != 0;
    default:
        break;
    }
    size_t size = mr_dtype_size(tensor->dtype);
    const char *bytes = (const char *)tensor->data + (size_t)i * size;
    for (size_t b = 0; b < size; b++)
        if (bytes[b]) return true;
    return false;
}

/* Returns the coordinates of the nonzero elements, in row-major order. */
static mr_status where(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int64_t count = mr_tensor_count(input), found = 0;
    int rank = input->shape.rank;
    if (rank == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "WhereOp : Unhandled input dimensions: 0");
    for (int64_t i = 0; i < count; i++) found += is_set(input, i);
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(found, rank), error));
    int64_t *target = call->outputs[0].data;
    for (int64_t i = 0; i < count; i++) {
        if (!is_set(input, i)) continue;
        int64_t rest = i;
        for (int d = rank - 1; d >= 0; d--) {
            target[d] = rest % input->shape.dims[d];
            rest /= input->shape.dims[d];
        }
        target += rank;
    }
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "Gather", .run = gather_v1},
    {.op = "GatherV2", .run = gather_v2, .host_inputs = 1 << 2},
    {.op = "GatherNd", .run = gather_nd},
    {.op = "OneHot", .run = one_hot, .host_inputs = 1 << 1},
    {.op = "InvertPermutation", .run = invert_permutation},
    {.op = "Where", .run = where},
};
MR_KERNEL_FAMILY(array_index);
