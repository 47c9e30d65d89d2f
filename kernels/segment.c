/* Reductions of the rows of a tensor that have the same segment id. Sorted ids form runs, and each run is one row of
 * the output; runs are computed in parallel, the rows of a run in order. Half types of a run are accumulated as
 * floats. */
#include "base/halves.h"
#include "kernels/indices.h"
#include "kernels/segment_rows.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sorted ids ---- */

typedef struct segment_job {
    const mr_segment_rows *rows; /* of the dtype, or of floats for half types */
    float least;                 /* of an extreme: the infinity that any number replaces */
    bool is_extreme; /* a maximum or minimum: the first row is what it begins with, as infinities are kept */
    mr_segment_divisor divisor;
    mr_dtype dtype;
    size_t size;
    const mr_tensor *indices; /* row i of a segment is row indices[i] of data; null: row i */
    const mr_tensor *ids;
    const int64_t *starts; /* run r has rows [starts[r], starts[r + 1]) */
    int64_t inner;
    const char *data;
    char *target;
} segment_job;

static const char *segment_row(const segment_job *job, int64_t i)
{
    int64_t row = job->indices != nullptr ? mr_index_at(job->indices, i) : i;
    return job->data + (size_t)(row * job->inner) * job->size;
}

/* A single row is copied. */
static void plain_run(const segment_job *job, int64_t begin, int64_t end, char *target)
{
    if (end - begin == 1) {
        memcpy(target, segment_row(job, begin), (size_t)job->inner * job->size);
        return;
    }
    if (job->is_extreme)
        memcpy(target, segment_row(job, begin++), (size_t)job->inner * job->size);
    else
        job->rows->fill(target, job->inner);
    for (int64_t i = begin; i < end; i++) job->rows->combine(target, segment_row(job, i), job->inner);
    if (job->divisor != MR_SEGMENT_UNDIVIDED)
        job->rows->divide(target, job->inner, mr_segment_divisor_of(job->divisor, end - begin));
}

static void half_run(const segment_job *job, int64_t begin, int64_t end, char *target)
{
    constexpr int64_t CHUNK = 256;
    float sums[CHUNK], row[CHUNK];
    for (int64_t at = 0; at < job->inner; at += CHUNK) {
        int64_t count = MR_MIN(CHUNK, job->inner - at);
        job->rows->fill(sums, count);
        for (int64_t k = 0; k < count && job->is_extreme; k++) sums[k] = job->least;
        for (int64_t i = begin; i < end; i++) {
            const uint16_t *from = (const uint16_t *)segment_row(job, i) + at;
            mr_halves_to_floats(row, from, count, job->dtype);
            job->rows->combine(sums, row, count);
        }
        if (job->divisor != MR_SEGMENT_UNDIVIDED)
            job->rows->divide(sums, count, mr_segment_divisor_of(job->divisor, end - begin));
        mr_floats_to_halves((uint16_t *)target + at, sums, count, job->dtype);
    }
}

static void segment_runs(void *context, int64_t begin, int64_t end)
{
    const segment_job *job = context;
    for (int64_t run = begin; run < end; run++) {
        int64_t first = job->starts[run], last = job->starts[run + 1];
        char *target = job->target + (size_t)(mr_index_at(job->ids, first) * job->inner) * job->size;
        if (mr_is_half(job->dtype) && last - first > 1)
            half_run(job, first, last, target);
        else
            plain_run(job, first, last, target);
    }
}

/* Checks that the ids are sorted and in [0, segments), and the indices in [0, limit). Stores the start of each run, and
 * the number of ids after the last one. */
static mr_status find_runs(mr_kernel_call *call, const segment_job *job, int64_t segments, int64_t limit,
                           int64_t *starts, int64_t *run_count, mr_error *error)
{
    int64_t count = mr_tensor_count(job->ids), runs = 0, before = -1;
    for (int64_t i = 0; i < count; i++) {
        int64_t id = mr_index_at(job->ids, i), index = job->indices != nullptr ? mr_index_at(job->indices, i) : 0;
        bool is_last = i + 1 == count || mr_index_at(job->ids, i + 1) != id; /* of its run */
        if (is_last && i + 1 < count && mr_index_at(job->ids, i + 1) < id)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "segment ids are not increasing");
        if (is_last && (id < 0 || id >= segments))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Segment id %" PRId64 " out of range [0, %" PRId64
                                  "), possibly because 'segment_ids' input is not sorted.",
                                  id, segments);
        if (job->indices != nullptr && (index < 0 || index >= limit))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Bad: indices[%" PRId64 "] == %" PRId64 " out of range [0, %" PRId64 ")", i, index,
                                  limit);
        if (i == 0 || id != before) starts[runs++] = i;
        before = id;
    }
    starts[runs] = count;
    *run_count = runs;
    return MR_OK;
}

/* Reduces sorted segments of input 0 into `segments` rows. Rows without an id are 1 for products and 0 otherwise. */
static mr_status reduce_sorted(mr_kernel_call *call, mr_segment_kind kind, mr_segment_divisor divisor,
                               const mr_tensor *indices, const mr_tensor *ids, int64_t segments, mr_error *error)
{
    const mr_tensor *data = &call->inputs[0];
    segment_job job = {.divisor = divisor,
                       .is_extreme = kind == MR_SEGMENT_MAXIMUM || kind == MR_SEGMENT_MINIMUM,
                       .least = kind == MR_SEGMENT_MAXIMUM ? -INFINITY : INFINITY,
                       .dtype = data->dtype,
                       .size = mr_dtype_size(data->dtype),
                       .indices = indices,
                       .ids = ids,
                       .inner = mr_dims_product(&data->shape, 1, data->shape.rank),
                       .data = data->data};
    job.rows = mr_segment_rows_find(kind, mr_is_half(data->dtype) ? MR_FLOAT : data->dtype);
    if (job.rows == nullptr) return mr_kernel_unsupported(call->node, error);
    int64_t count = mr_tensor_count(ids), runs = 0;
    int64_t *starts = calloc((size_t)count + 1, sizeof *starts);
    if (starts == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    job.starts = starts;
    mr_shape shape = data->shape;
    shape.dims[0] = segments;
    mr_status status = find_runs(call, &job, segments, data->shape.dims[0], starts, &runs, error);
    if (status == MR_OK) status = mr_kernel_output(call, 0, shape, error);
    if (status == MR_OK) {
        job.target = call->outputs[0].data;
        mr_segment_kind rest = kind == MR_SEGMENT_PRODUCT ? kind : MR_SEGMENT_SUM;
        if (runs < segments)
            mr_segment_rows_find(rest, data->dtype)->fill(job.target, mr_tensor_count(&call->outputs[0]));
        int64_t work = MR_MAX(1, job.inner * (count / MR_MAX(1, runs)));
        if (job.inner > 0) mr_pool_for(call->device->pool, runs, MR_MAX(1, MR_GRAIN / work), segment_runs, &job);
    }
    free(starts);
    return status;
}

static mr_status segment(mr_kernel_call *call, mr_segment_kind kind, mr_segment_divisor divisor, mr_error *error)
{
    const mr_tensor *data = &call->inputs[0], *ids = &call->inputs[1];
    if (ids->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "segment_ids should be a vector.");
    if (data->shape.rank < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be at least rank 1");
    int64_t count = mr_tensor_count(ids);
    if (count != data->shape.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "segment_ids should be the same size as dimension 0 of input.");
    int64_t last = count > 0 ? mr_index_at(ids, count - 1) : -1;
    if (last == INT64_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Expected a non-negative size, got %" PRId64,
                              INT64_MIN);
    if (count > 0 && last < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "segment ids must be >= 0");
    return reduce_sorted(call, kind, divisor, nullptr, ids, last + 1, error);
}

/* ---- Indexed rows with sorted ids ---- */

static mr_status check_indexed(mr_kernel_call *call, mr_error *error)
{
    if (call->inputs[1].shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "indices should be a vector.");
    if (call->inputs[2].shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "segment_ids should be a vector.");
    if (mr_tensor_count(&call->inputs[1]) != mr_tensor_count(&call->inputs[2]))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "segment_ids and indices should have same size.");
    if (call->inputs[0].shape.rank < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Shape must be at least rank 1");
    return MR_OK;
}

static mr_status scalar_count(mr_kernel_call *call, int input, int64_t *count, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (call->inputs[input].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "num_segments should be a scalar, not shape %s",
                              mr_shape_text(call->inputs[input].shape, text, sizeof text));
    return mr_kernel_int(call, input, "num_segments", count, error);
}

static mr_status sparse_segment(mr_kernel_call *call, mr_segment_divisor divisor, mr_error *error)
{
    const mr_tensor *ids = &call->inputs[2];
    bool is_given = call->node->input_count > 3;
    int64_t segments = 0, count = mr_tensor_count(ids), last = count > 0 ? mr_index_at(ids, count - 1) : -1;
    int64_t limit = ids->dtype == MR_INT64 ? INT64_MAX : INT32_MAX;
    if (is_given) MR_TRY(scalar_count(call, 3, &segments, error));
    MR_TRY(check_indexed(call, error));
    if (segments < 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "segment ids must be >= 0");
    if (is_given && last == limit)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Last segment id must be < kintmax, got %" PRId64 " limit %" PRId64, last, limit);
    if (is_given && last >= segments)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "segment ids must be < num_segments");
    if (!is_given && last == limit)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Last segment id must be < kintmax, got %" PRId64 " limit %" PRId64, last, limit);
    if (!is_given && count > 0 && last < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "segment ids must be >= 0");
    if (!is_given) segments = last + 1;
    return reduce_sorted(call, MR_SEGMENT_SUM, divisor, &call->inputs[1], ids, segments, error);
}

/* ---- Any ids ---- */

/* "2,1": the position of a flat index in a shape. */
static const char *position_text(mr_shape shape, int64_t index, char *text, size_t size_bytes)
{
    int64_t at[MR_RANK_MAX] = {0};
    size_t used = 0;
    for (int i = shape.rank - 1; i >= 0; i--) {
        at[i] = index % shape.dims[i];
        index /= shape.dims[i];
    }
    text[0] = 0;
    for (int i = 0; i < shape.rank && used < size_bytes; i++)
        used += (size_t)snprintf(text + used, size_bytes - used, "%s%" PRId64, i > 0 ? "," : "", at[i]);
    return text;
}

/* Rows with a negative id are ignored; ids of rows without elements are not checked. Rows of the same id are combined
 * in order. */
static mr_status unsorted_segment(mr_kernel_call *call, mr_segment_kind kind, mr_error *error)
{
    const mr_tensor *data = &call->inputs[0], *ids = &call->inputs[1];
    int64_t segments = 0, id_count = mr_tensor_count(ids);
    int lead = ids->shape.rank;
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    const mr_segment_rows *rows = mr_segment_rows_find(kind, data->dtype);
    if (rows == nullptr) return mr_kernel_unsupported(call->node, error);
    MR_TRY(scalar_count(call, 2, &segments, error));
    bool fits = lead <= data->shape.rank;
    for (int i = 0; fits && i < lead; i++) fits = ids->shape.dims[i] == data->shape.dims[i];
    if (!fits || data->shape.rank - lead + 1 > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "data.shape = %s does not start with segment_ids.shape = %s",
                              mr_shape_text(data->shape, a, sizeof a), mr_shape_text(ids->shape, b, sizeof b));
    if (segments < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Input num_segments == %" PRId64 " must not be negative.", segments);
    mr_shape shape = {.rank = 1, .dims = {segments}};
    for (int i = lead; i < data->shape.rank; i++) shape.dims[shape.rank++] = data->shape.dims[i];
    int64_t inner = mr_dims_product(&data->shape, lead, data->shape.rank);
    size_t bytes = (size_t)inner * mr_dtype_size(data->dtype);
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    mr_tensor *output = &call->outputs[0];
    rows->fill(output->data, mr_tensor_count(output));
    for (int64_t i = 0; i < id_count; i++) {
        int64_t id = mr_index_at(ids, i);
        if (id < 0 || inner == 0) continue;
        if (id >= segments)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "segment_ids[%s] = %" PRId64 " is out of range [0, %" PRId64 ")",
                                  position_text(ids->shape, i, a, sizeof a), id, segments);
        rows->combine((char *)output->data + (size_t)id * bytes, (const char *)data->data + (size_t)i * bytes, inner);
    }
    return MR_OK;
}

#define RUN(name, call_expression)                                                                                     \
    static mr_status name(mr_kernel_call *call, mr_error *error)                                                       \
    {                                                                                                                  \
        return call_expression;                                                                                        \
    }
RUN(segment_sum, segment(call, MR_SEGMENT_SUM, MR_SEGMENT_UNDIVIDED, error))
RUN(segment_mean, segment(call, MR_SEGMENT_SUM, MR_SEGMENT_BY_COUNT, error))
RUN(segment_product, segment(call, MR_SEGMENT_PRODUCT, MR_SEGMENT_UNDIVIDED, error))
RUN(segment_maximum, segment(call, MR_SEGMENT_MAXIMUM, MR_SEGMENT_UNDIVIDED, error))
RUN(segment_minimum, segment(call, MR_SEGMENT_MINIMUM, MR_SEGMENT_UNDIVIDED, error))
RUN(unsorted_sum, unsorted_segment(call, MR_SEGMENT_SUM, error))
RUN(unsorted_product, unsorted_segment(call, MR_SEGMENT_PRODUCT, error))
RUN(unsorted_maximum, unsorted_segment(call, MR_SEGMENT_MAXIMUM, error))
RUN(unsorted_minimum, unsorted_segment(call, MR_SEGMENT_MINIMUM, error))
RUN(sparse_sum, sparse_segment(call, MR_SEGMENT_UNDIVIDED, error))
RUN(sparse_mean, sparse_segment(call, MR_SEGMENT_BY_COUNT, error))
RUN(sparse_root, sparse_segment(call, MR_SEGMENT_BY_ROOT, error))

static const mr_kernel kernels[] = {
    {.op = "SegmentSum", .run = segment_sum},
    {.op = "SegmentMean", .run = segment_mean},
    {.op = "SegmentProd", .run = segment_product},
    {.op = "SegmentMax", .run = segment_maximum},
    {.op = "SegmentMin", .run = segment_minimum},
    {.op = "UnsortedSegmentSum", .run = unsorted_sum, .host_inputs = 1 << 2},
    {.op = "UnsortedSegmentProd", .run = unsorted_product, .host_inputs = 1 << 2},
    {.op = "UnsortedSegmentMax", .run = unsorted_maximum, .host_inputs = 1 << 2},
    {.op = "UnsortedSegmentMin", .run = unsorted_minimum, .host_inputs = 1 << 2},
    {.op = "SparseSegmentSum", .run = sparse_sum},
    {.op = "SparseSegmentMean", .run = sparse_mean},
    {.op = "SparseSegmentSqrtN", .run = sparse_root},
    {.op = "SparseSegmentSumWithNumSegments", .run = sparse_sum, .host_inputs = 1 << 3},
    {.op = "SparseSegmentMeanWithNumSegments", .run = sparse_mean, .host_inputs = 1 << 3},
    {.op = "SparseSegmentSqrtNWithNumSegments", .run = sparse_root, .host_inputs = 1 << 3},
};
MR_KERNEL_FAMILY(segment);
