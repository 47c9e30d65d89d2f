/* Operators that read or write elements by index: gathers, scatters, one-hot encoding, positions of nonzero elements.
 * Every index is checked. */
#include "kernels/common.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

MR_INLINE int64_t index_at(const mr_tensor *indices, int64_t i)
{
    return indices->dtype == MR_INT64   ? ((const int64_t *)indices->data)[i]
           : indices->dtype == MR_INT32 ? ((const int32_t *)indices->data)[i]
           : indices->dtype == MR_UINT8 ? ((const uint8_t *)indices->data)[i]
           : indices->dtype == MR_INT8  ? ((const int8_t *)indices->data)[i]
           : indices->dtype == MR_INT16 ? ((const int16_t *)indices->data)[i]
                                        : -1;
}

static mr_status bad_index(mr_kernel_call *call, int64_t position, int64_t index, int64_t limit, mr_error *error)
{
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "indices[%" PRId64 "] = %" PRId64 " is not in [0, %" PRId64 ")", position, index, limit);
}

static mr_status check_indices(mr_kernel_call *call, const mr_tensor *indices, int64_t limit, mr_error *error)
{
    int64_t count = mr_tensor_count(indices);
    for (int64_t i = 0; i < count; i++) {
        int64_t index = index_at(indices, i);
        if (index < 0 || index >= limit) return bad_index(call, i, index, limit, error);
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
        int64_t index = index_at(job->indices, batch * job->index_count + i);
        memcpy(job->target + (size_t)row * job->row_bytes,
               job->source + (size_t)(block * job->limit + index) * job->row_bytes, job->row_bytes);
    }
}

static mr_status gather(mr_kernel_call *call, int64_t given_axis, int64_t given_batch, mr_error *error)
{
    const mr_tensor *params = &call->inputs[0], *indices = &call->inputs[1];
    int axis, p = params->shape.rank, q = indices->shape.rank;
    int64_t batch_dims = given_batch < 0 ? given_batch + q : given_batch;
    if (p == 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "params must not be a scalar");
    MR_TRY(mr_kernel_axis(call, given_axis, p, &axis, error));
    if (batch_dims < 0 || batch_dims > q || batch_dims > axis)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "batch_dims %" PRId64 " is invalid for axis %d and indices of rank %d", given_batch, axis,
                              q);
    mr_shape shape = {.rank = p - 1 + q - (int)batch_dims};
    if (shape.rank > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
    int64_t out = 0;
    for (int i = 0; i < batch_dims; i++) {
        if (indices->shape.dims[i] != params->shape.dims[i])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "params and indices have different sizes in dimension %d", i);
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
    MR_TRY(mr_kernel_int(call, 2, "axis", &axis, error));
    return gather(call, axis, mr_attr_int_or(call->node->attrs, "batch_dims", 0), error);
}

/* The offset, in slices, of one index vector of [..., depth] over the first depth dims of a shape, or an error. */
static mr_status nd_offset(mr_kernel_call *call, const mr_tensor *indices, int64_t row, int64_t depth, mr_shape shape,
                           int64_t *offset, mr_error *error)
{
    *offset = 0;
    for (int64_t d = 0; d < depth; d++) {
        int64_t index = index_at(indices, row * depth + d);
        if (index < 0 || index >= shape.dims[d]) return bad_index(call, row * depth + d, index, shape.dims[d], error);
        *offset = *offset * shape.dims[d] + index;
    }
    return MR_OK;
}

static mr_status nd_depth(mr_kernel_call *call, const mr_tensor *indices, int rank, int64_t *depth, int64_t *rows,
                          mr_error *error)
{
    if (indices->shape.rank < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "indices must not be a scalar");
    mr_shape lead = indices->shape;
    *depth = lead.dims[--lead.rank];
    *rows = mr_shape_count(lead);
    if (*rows < 0 || *rows > INT32_MAX) /* TensorFlow's limit. Index vectors of size 0 can exceed it. */
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "indices has too many index vectors");
    if (*depth > rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "index vectors of %" PRId64 " elements for rank %d", *depth, rank);
    return MR_OK;
}

static mr_status gather_nd(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *params = &call->inputs[0], *indices = &call->inputs[1];
    int64_t depth, rows;
    MR_TRY(nd_depth(call, indices, params->shape.rank, &depth, &rows, error));
    int lead = indices->shape.rank - 1, rest = params->shape.rank - (int)depth;
    mr_shape shape = {.rank = lead + rest};
    if (shape.rank > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
    for (int i = 0; i < lead; i++) shape.dims[i] = indices->shape.dims[i];
    for (int i = 0; i < rest; i++) shape.dims[lead + i] = params->shape.dims[(int)depth + i];
    if (rows > 0 && mr_tensor_count(params) == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Requested more than 0 entries, but params is empty");
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    size_t bytes = (size_t)mr_dims_product(&params->shape, (int)depth, params->shape.rank) * sink.element_size;
    mr_status status = MR_OK;
    for (int64_t row = 0; row < rows && status == MR_OK; row++) {
        int64_t offset;
        status = nd_offset(call, indices, row, depth, params->shape, &offset, error);
        if (status == MR_OK && bytes > 0)
            memcpy((char *)sink.data + (size_t)row * bytes, (char *)params->data + (size_t)offset * bytes, bytes);
    }
    return mr_sink_finish(call, &sink, status, error);
}

#define ADD_TYPE(dtype, type, suffix)                                                                                  \
    static void add_##suffix(void *target, const void *source, int64_t count)                                          \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++) ((type *)target)[i] += ((const type *)source)[i];                          \
    }
MR_EACH_WRAPPING_NUMBER(ADD_TYPE)

static void add_half(void *target, const void *source, int64_t count)
{
    uint16_t *to = target;
    const uint16_t *from = source;
    for (int64_t i = 0; i < count; i++) to[i] = mr_float_to_half(mr_half_to_float(to[i]) + mr_half_to_float(from[i]));
}

typedef void (*add_function)(void *target, const void *source, int64_t count);
#define ADD_ROW(dtype, type, suffix) [dtype] = add_##suffix,
static const add_function adders[MR_DTYPE_COUNT] = {MR_EACH_WRAPPING_NUMBER(ADD_ROW)[MR_HALF] = add_half};

/* Checks the shape of updates: that of the index vectors, followed by that of a slice. */
static mr_status check_scatter(mr_kernel_call *call, mr_shape shape, int64_t depth, mr_error *error)
{
    const mr_tensor *indices = &call->inputs[0], *updates = &call->inputs[1];
    int lead = indices->shape.rank - 1;
    mr_shape wanted = {.rank = lead + shape.rank - (int)depth};
    if (wanted.rank > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
    for (int i = 0; i < wanted.rank; i++)
        wanted.dims[i] = i < lead ? indices->shape.dims[i] : shape.dims[(int)depth + i - lead];
    if (mr_shape_count(shape) == 0 && (mr_tensor_count(indices) > 0 || mr_tensor_count(updates) > 0))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Indices and updates specified for empty output");
    if (adders[updates->dtype] == nullptr || !mr_shape_equal(updates->shape, wanted))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "the shape of updates does not match indices and shape");
    return MR_OK;
}

/* Slices with the same index are added, in the order of the rows. */
static mr_status scatter_nd(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *indices = &call->inputs[0], *updates = &call->inputs[1];
    mr_shape shape;
    int64_t depth, rows;
    MR_TRY(mr_kernel_shape(call, 2, &shape, error));
    MR_TRY(nd_depth(call, indices, shape.rank, &depth, &rows, error));
    MR_TRY(check_scatter(call, shape, depth, error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    mr_tensor *output = &call->outputs[0];
    int64_t slice = mr_dims_product(&shape, (int)depth, shape.rank);
    size_t bytes = (size_t)slice * mr_dtype_size(output->dtype);
    memset(output->data, 0, mr_tensor_size_bytes(output));
    for (int64_t row = 0; slice > 0 && row < rows; row++) {
        int64_t offset;
        MR_TRY(nd_offset(call, indices, row, depth, shape, &offset, error));
        adders[updates->dtype]((char *)output->data + (size_t)offset * bytes,
                               (char *)updates->data + (size_t)row * bytes, slice);
    }
    return MR_OK;
}

/* UnsortedSegmentSum, the gradient of a gather: adds the rows of data at the positions in segment_ids; negative ids are
 * ignored. */
static mr_status unsorted_segment_sum(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *data = &call->inputs[0], *ids = &call->inputs[1];
    int64_t segments, id_count = mr_tensor_count(ids);
    MR_TRY(mr_kernel_int(call, 2, "num_segments", &segments, error));
    int lead = ids->shape.rank;
    mr_shape shape = {.rank = 1, .dims = {segments}};
    bool fits = lead <= data->shape.rank && segments >= 0;
    for (int i = 0; fits && i < lead; i++) fits = ids->shape.dims[i] == data->shape.dims[i];
    add_function add = adders[data->dtype];
    if (!fits || add == nullptr || data->shape.rank - lead + 1 > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "the shape of segment_ids is not a prefix of the shape of data");
    for (int i = lead; i < data->shape.rank; i++) shape.dims[shape.rank++] = data->shape.dims[i];
    int64_t inner = mr_dims_product(&data->shape, lead, data->shape.rank);
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    mr_tensor *output = &call->outputs[0];
    size_t bytes = (size_t)inner * mr_dtype_size(output->dtype);
    memset(output->data, 0, mr_tensor_size_bytes(output));
    for (int64_t i = 0; i < id_count; i++) {
        int64_t id = index_at(ids, i);
        if (id < 0) continue;
        if (id >= segments) return bad_index(call, i, id, segments, error);
        add((char *)output->data + (size_t)id * bytes, (char *)data->data + (size_t)i * bytes, inner);
    }
    return MR_OK;
}

static mr_status one_hot(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *indices = &call->inputs[0];
    int64_t depth, given = mr_attr_int_or(call->node->attrs, "axis", -1);
    int rank = indices->shape.rank, axis;
    MR_TRY(mr_kernel_int(call, 1, "depth", &depth, error));
    if (depth < 0 || rank + 1 > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "depth %" PRId64 " is invalid for indices of rank %d", depth, rank);
    MR_TRY(mr_kernel_axis(call, given, rank + 1, &axis, error));
    if (mr_tensor_count(&call->inputs[2]) != 1 || mr_tensor_count(&call->inputs[3]) != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "on_value and off_value must be scalars");
    mr_shape shape = {.rank = rank + 1};
    for (int i = 0; i <= rank; i++)
        shape.dims[i] = i < axis ? indices->shape.dims[i] : i == axis ? depth : indices->shape.dims[i - 1];
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    const char *on = call->inputs[2].data, *off = call->inputs[3].data;
    mr_fill_elements(sink.data, off, sink.element_size, sink.count, call->device->pool);
    int64_t inner = mr_dims_product(&indices->shape, axis, rank);
    for (int64_t at = 0, count = mr_tensor_count(indices); at < count; at++) {
        int64_t index = index_at(indices, at), outer = at / inner;
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
    if (input->shape.rank != 1) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "x must be a vector");
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    mr_tensor *output = &call->outputs[0];
    memset(output->data, 0xff, mr_tensor_size_bytes(output)); /* -1: unused */
    for (int64_t i = 0; i < count; i++) {
        int64_t index = index_at(input, i);
        if (index < 0 || index >= count) return bad_index(call, i, index, count, error);
        if (index_at(output, index) != -1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%" PRId64 " occurs twice in x", index);
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
    {.op = "ScatterNd", .run = scatter_nd, .host_inputs = 1 << 2},
    {.op = "UnsortedSegmentSum", .run = unsorted_segment_sum, .host_inputs = 1 << 2},
    {.op = "OneHot", .run = one_hot, .host_inputs = 1 << 1},
    {.op = "InvertPermutation", .run = invert_permutation},
    {.op = "Where", .run = where},
};
MR_KERNEL_FAMILY(array_index);
