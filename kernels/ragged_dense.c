/* Ragged tensors as dense ones, and rows of them: RaggedTensorToTensor and RaggedGather. */
#include "kernels/sparse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(...) mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, __VA_ARGS__)

static int64_t integer_at(const mr_tensor *tensor, int64_t i)
{
    return tensor->dtype == MR_INT64 ? ((const int64_t *)tensor->data)[i] : ((const int32_t *)tensor->data)[i];
}

/* ---- RaggedTensorToTensor ---- */

typedef enum partition_kind { ROW_IDS, ROW_SPLITS } partition_kind;

typedef struct dense_job {
    const mr_tensor *partitions; /* ragged of them; after a first one with the number of rows, if there is one */
    partition_kind kinds[MR_RANK_MAX];
    int ragged;
    int64_t rows;         /* of the ragged tensor */
    mr_shape shape, part; /* of the result; of one value */
} dense_job;

static mr_status read_partitions(const mr_kernel_call *call, dense_job *job, mr_error *error)
{
    const mr_attr *types = mr_attrs_find(call->node->attrs, "row_partition_types");
    int count = call->node->input_count - 3;
    if (types == nullptr || types->count != count || count < 1)
        return FAIL("Number of row partition tensors (%d) does not equal the number of row partition types(%d).", count,
                    types == nullptr ? 0 : (int)types->count);
    bool has_rows = mr_string_equal(types->values[0].string, MR_STR("FIRST_DIM_SIZE"));
    job->partitions = &call->inputs[3 + has_rows];
    job->ragged = count - has_rows;
    if (job->ragged >= MR_RANK_MAX) return FAIL("more than %d dimensions", MR_RANK_MAX);
    for (int i = 0; i < job->ragged; i++) {
        mr_string type = types->values[i + has_rows].string;
        bool is_splits = mr_string_equal(type, MR_STR("ROW_SPLITS"));
        if (!is_splits && (!mr_string_equal(type, MR_STR("VALUE_ROWIDS")) || (i == 0 && !has_rows)))
            return FAIL("Unsupported row partition type: %.*s", (int)type.size_bytes, type.data);
        if (job->partitions[i].shape.rank != 1) return FAIL("a row partition must be a vector");
        job->kinds[i] = is_splits ? ROW_SPLITS : ROW_IDS;
    }
    const mr_tensor *first = &call->inputs[3];
    if (mr_tensor_count(first) < 1) return FAIL("Invalid first partition input. Tensor requires at least one element.");
    job->rows = has_rows ? integer_at(first, 0) : first->shape.dims[0] - 1;
    return job->rows >= 0 ? MR_OK : FAIL("the number of rows is negative: %" PRId64, job->rows);
}

/* The rows in one level, and the length of the longest one. */
static mr_status measure_level(const mr_kernel_call *call, const dense_job *job, int level, int64_t parents,
                               int64_t *rows, int64_t *longest, mr_error *error)
{
    const mr_tensor *partition = &job->partitions[level];
    int64_t count = partition->shape.dims[0], run = 0;
    *longest = 0;
    if (job->kinds[level] == ROW_SPLITS) {
        if (count - 1 != parents || integer_at(partition, 0) != 0) return FAIL("Invalid row split size.");
        for (int64_t i = 0; i < parents; i++) {
            int64_t length;
            if (__builtin_sub_overflow(integer_at(partition, i + 1), integer_at(partition, i), &length) || length < 0)
                return FAIL("Invalid row split size.");
            *longest = MR_MAX(*longest, length);
        }
        *rows = integer_at(partition, parents);
        return MR_OK;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t id = integer_at(partition, i);
        if (id < 0 || id >= parents)
            return FAIL("Got next_value_rowid=%" PRId64 " which is not less than %" PRId64, id, parents);
        run = i > 0 && id == integer_at(partition, i - 1) ? run + 1 : 1;
        *longest = MR_MAX(*longest, run);
    }
    *rows = count;
    return MR_OK;
}

/* Checks the requested shape and copies its sizes. */
static mr_status limit_shape(const mr_kernel_call *call, dense_job *job, mr_error *error)
{
    const mr_tensor *asked = &call->inputs[0];
    char text[MR_SHAPE_TEXT_SIZE];
    if (asked->shape.rank > 1) return FAIL("Shape must be at most rank 1 but is rank %d", (int)asked->shape.rank);
    if (asked->shape.rank == 0 && integer_at(asked, 0) != -1)
        return FAIL("The only valid scalar shape tensor is the fully unknown shape specified as -1.");
    if (asked->shape.rank == 0) return MR_OK;
    mr_shape shape = {.rank = (int32_t)MR_MIN(asked->shape.dims[0], (int64_t)MR_RANK_MAX)};
    for (int i = 0; i < shape.rank; i++) {
        shape.dims[i] = integer_at(asked, i);
        if (shape.dims[i] < -1) return FAIL("Dimension %" PRId64 " must be >= -1", shape.dims[i]);
    }
    mr_shape_text(shape, text, sizeof text);
    if (asked->shape.dims[0] != job->shape.rank)
        return FAIL("rt_input.shape and shape=%s are incompatible: rt_input.rank = %d but shape.rank = %" PRId64, text,
                    (int)job->shape.rank, asked->shape.dims[0]);
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dims[i] < 0) continue;
        if (i > job->ragged && shape.dims[i] != job->shape.dims[i])
            return FAIL("rt_input.shape and shape=%s are incompatible: rt_input.shape[%d] = %" PRId64
                        " but shape[%d] = %" PRId64,
                        text, i, job->shape.dims[i], i, shape.dims[i]);
        job->shape.dims[i] = shape.dims[i];
    }
    return MR_OK;
}

/* The default value must broadcast to a value. */
static mr_status check_default(const mr_kernel_call *call, const dense_job *job, mr_error *error)
{
    const mr_tensor *values = &call->inputs[1], *filler = &call->inputs[2];
    char text[2][MR_SHAPE_TEXT_SIZE];
    mr_shape_text(filler->shape, text[0], sizeof text[0]);
    mr_shape_text(values->shape, text[1], sizeof text[1]);
    if (filler->shape.rank >= values->shape.rank)
        return FAIL("default_value.shape=%s and rt_input.flat_values.shape=%s are incompatible: default_value.rank = "
                    "%d  must be less than rt_input.flat_values.rank = %d",
                    text[0], text[1], (int)filler->shape.rank, (int)values->shape.rank);
    for (int i = 1; i <= filler->shape.rank; i++) {
        int64_t size = filler->shape.dims[filler->shape.rank - i], wanted = job->part.dims[job->part.rank - i];
        if (size != 1 && size != wanted)
            return FAIL("default_value.shape=%s and rt_input.flat_values.shape=%s are incompatible: "
                        "default_value.shape[%d] = %" PRId64 " but rt_input.flat_values.shape[%d] = %" PRId64,
                        text[0], text[1], -i, size, -i, wanted);
    }
    return MR_OK;
}

/* Replaces the positions of the parents in the result by those of their rows; -1: cut off. */
static mr_status place_rows(const mr_kernel_call *call, const dense_job *job, int level, int64_t rows,
                            int64_t **positions, mr_error *error)
{
    const mr_tensor *partition = &job->partitions[level];
    int64_t width = job->shape.dims[level + 1], *placed = nullptr, parent = 0, column = -1;
    MR_TRY(mr_sparse_memory(call, rows, sizeof *placed, &placed, error));
    for (int64_t i = 0; i < rows; i++) {
        int64_t before = parent;
        if (job->kinds[level] == ROW_IDS)
            parent = integer_at(partition, i);
        else
            while (integer_at(partition, parent + 1) <= i) parent++;
        column = i > 0 && parent == before ? column + 1 : 0;
        int64_t above = (*positions)[parent];
        placed[i] = above >= 0 && column < width ? above * width + column : -1;
    }
    free(*positions);
    *positions = placed;
    return MR_OK;
}

static void fill_default(const mr_tensor *filler, const dense_job *job, const mr_sink *sink)
{
    int64_t size = mr_shape_count(job->part), strides[MR_RANK_MAX] = {0}, own[MR_RANK_MAX];
    mr_shape_strides(filler->shape, own);
    for (int i = 0; i < filler->shape.rank; i++)
        strides[job->part.rank - filler->shape.rank + i] = filler->shape.dims[i] == 1 ? 0 : own[i];
    for (int64_t i = 0; i < size && i < sink->count; i++) {
        int64_t rest = i, from = 0;
        for (int d = job->part.rank - 1; d >= 0; d--) {
            from += rest % job->part.dims[d] * strides[d];
            rest /= job->part.dims[d];
        }
        memcpy((char *)sink->data + (size_t)i * sink->element_size,
               (const char *)filler->data + (size_t)from * sink->element_size, sink->element_size);
    }
    size_t bytes = (size_t)size * sink->element_size, total = (size_t)sink->count * sink->element_size;
    for (size_t at = bytes; at < total; at += bytes) memcpy((char *)sink->data + at, sink->data, bytes);
}

static mr_status fill_dense(mr_kernel_call *call, const dense_job *job, const int64_t *level_rows, mr_error *error)
{
    const mr_tensor *values = &call->inputs[1];
    int64_t *positions = nullptr;
    mr_sink sink;
    if (mr_shape_count(job->shape) < 0) return FAIL("the result has too many elements");
    MR_TRY(mr_sparse_memory(call, job->rows, sizeof *positions, &positions, error));
    for (int64_t i = 0; i < job->rows; i++) positions[i] = i < job->shape.dims[0] ? i : -1;
    mr_status status = mr_sink_init(call, 0, job->shape, &sink, error);
    bool has_sink = status == MR_OK;
    for (int level = 0; level < job->ragged && status == MR_OK; level++)
        status = place_rows(call, job, level, level_rows[level], &positions, error);
    if (status == MR_OK && sink.count > 0) {
        size_t bytes = (size_t)mr_shape_count(job->part) * sink.element_size;
        fill_default(&call->inputs[2], job, &sink);
        for (int64_t i = 0; i < values->shape.dims[0]; i++)
            if (positions[i] >= 0)
                memcpy((char *)sink.data + (size_t)positions[i] * bytes, (const char *)values->data + (size_t)i * bytes,
                       bytes);
    }
    free(positions);
    return has_sink ? mr_sink_finish(call, &sink, status, error) : status;
}

static mr_status ragged_to_dense(mr_kernel_call *call, mr_error *error)
{
    dense_job job = {0};
    const mr_tensor *values = &call->inputs[1];
    int64_t level_rows[MR_RANK_MAX];
    MR_TRY(read_partitions(call, &job, error));
    if (values->shape.rank >= 1) {
        job.part.rank = values->shape.rank - 1;
        for (int i = 0; i < job.part.rank; i++) job.part.dims[i] = values->shape.dims[i + 1];
    }
    if (1 + job.ragged + job.part.rank > MR_RANK_MAX) return FAIL("more than %d dimensions", MR_RANK_MAX);
    job.shape = MR_SHAPE(job.rows);
    for (int level = 0; level < job.ragged; level++)
        MR_TRY(measure_level(call, &job, level, level == 0 ? job.rows : level_rows[level - 1], &level_rows[level],
                             &job.shape.dims[job.shape.rank++], error));
    for (int i = 0; i < job.part.rank; i++) job.shape.dims[job.shape.rank++] = job.part.dims[i];
    MR_TRY(limit_shape(call, &job, error));
    MR_TRY(check_default(call, &job, error));
    int64_t rows = job.ragged > 0 ? level_rows[job.ragged - 1] : job.rows;
    if (rows != values->shape.dims[0])
        return rows < values->shape.dims[0]
                   ? FAIL("%" PRId64 " values have no row", values->shape.dims[0] - rows)
                   : FAIL("Row partition size is greater than output size: %" PRId64 " > %" PRId64, rows,
                          values->shape.dims[0]);
    return fill_dense(call, &job, level_rows, error);
}

/* ---- RaggedGather ---- */

/* Ranges of rows of one level. */
typedef struct ranges {
    int64_t (*at)[2];
    int64_t count;
} ranges;

static mr_status check_splits(const mr_kernel_call *call, int levels, mr_error *error)
{
    int64_t rows = -1;
    for (int i = 0; i < levels; i++) {
        const mr_tensor *splits = &call->inputs[i];
        if (splits->shape.rank != 1) return FAIL("params_nested_splits must be vectors");
        int64_t count = splits->shape.dims[0];
        if (count < 1) return FAIL("Splits may not be empty");
        if (rows >= 0 && count - 1 != rows) return FAIL("Ragged splits are inconsistent");
        if (integer_at(splits, 0) != 0) return FAIL("First split must be zero");
        for (int64_t k = 1; k < count; k++)
            if (integer_at(splits, k) < integer_at(splits, k - 1)) return FAIL("Ragged splits must be sorted");
        rows = integer_at(splits, count - 1);
    }
    if (call->inputs[levels].shape.rank < 1) return FAIL("params.rank must be nonzero");
    if (rows > call->inputs[levels].shape.dims[0])
        return FAIL("Ragged splits must not point past values (%" PRId64 " > %" PRId64 ")", rows,
                    call->inputs[levels].shape.dims[0]);
    return MR_OK;
}

static mr_status put_splits(mr_kernel_call *call, int index, int64_t rows, mr_error *error)
{
    if (rows == INT64_MAX) return FAIL("too many rows");
    return mr_kernel_output(call, index, MR_SHAPE(rows + 1), error);
}

static mr_status set_split(const mr_kernel_call *call, int index, int64_t i, int64_t value, mr_error *error)
{
    mr_tensor *splits = &call->outputs[index];
    if (splits->dtype == MR_INT64)
        ((int64_t *)splits->data)[i] = value;
    else if (value <= INT32_MAX)
        ((int32_t *)splits->data)[i] = (int32_t)value;
    else
        return FAIL("a row split does not fit into int32: %" PRId64, value);
    return MR_OK;
}

/* The splits of the dimensions of indices but the first: all rows of one have the same length. */
static mr_status put_index_splits(mr_kernel_call *call, mr_shape indices, mr_error *error)
{
    int64_t rows = 1, end;
    for (int d = 0; d + 1 < indices.rank; d++) {
        if (__builtin_mul_overflow(rows, indices.dims[d], &rows) ||
            __builtin_mul_overflow(rows, indices.dims[d + 1], &end))
            return FAIL("too many rows");
        MR_TRY(put_splits(call, d, rows, error));
        for (int64_t i = 0; i <= rows; i++) MR_TRY(set_split(call, d, i, i * indices.dims[d + 1], error));
    }
    return MR_OK;
}

/* Writes the splits of one level of the result, and replaces the ranges by those of the next level. */
static mr_status put_level(mr_kernel_call *call, int level, int output, ranges *r, mr_error *error)
{
    const mr_tensor *splits = &call->inputs[level];
    int64_t rows = 0, at = 0, end = 0;
    for (int64_t i = 0; i < r->count; i++)
        if (__builtin_add_overflow(rows, r->at[i][1] - r->at[i][0], &rows)) return FAIL("too many rows");
    MR_TRY(put_splits(call, output, rows, error));
    MR_TRY(set_split(call, output, 0, 0, error));
    for (int64_t i = 0; i < r->count; i++) {
        for (int64_t row = r->at[i][0]; row < r->at[i][1]; row++) {
            if (__builtin_add_overflow(end, integer_at(splits, row + 1) - integer_at(splits, row), &end))
                return FAIL("too many rows");
            MR_TRY(set_split(call, output, ++at, end, error));
        }
        r->at[i][0] = integer_at(splits, r->at[i][0]);
        r->at[i][1] = integer_at(splits, r->at[i][1]);
    }
    return MR_OK;
}

static mr_status put_values(mr_kernel_call *call, const mr_tensor *values, const ranges *r, mr_error *error)
{
    mr_shape shape = values->shape;
    mr_sink sink;
    int64_t part = mr_dims_product(&shape, 1, shape.rank);
    shape.dims[0] = 0;
    for (int64_t i = 0; i < r->count; i++)
        if (__builtin_add_overflow(shape.dims[0], r->at[i][1] - r->at[i][0], &shape.dims[0]))
            return FAIL("too many values");
    if (mr_shape_count(shape) < 0) return FAIL("too many values");
    MR_TRY(mr_sink_init(call, call->node->output_count - 1, shape, &sink, error));
    char *to = sink.data;
    size_t bytes = (size_t)part * sink.element_size;
    for (int64_t i = 0; i < r->count && bytes > 0; i++) {
        size_t size = (size_t)(r->at[i][1] - r->at[i][0]) * bytes;
        if (size > 0) memcpy(to, (const char *)values->data + (size_t)r->at[i][0] * bytes, size);
        to += size;
    }
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static mr_status ragged_gather(mr_kernel_call *call, mr_error *error)
{
    int levels = call->node->input_count - 2;
    const mr_tensor *values = &call->inputs[levels], *indices = &call->inputs[levels + 1];
    char text[MR_POSITION_TEXT_SIZE];
    ranges r = {.count = mr_tensor_count(indices)};
    MR_TRY(check_splits(call, levels, error));
    if (call->node->output_count - 1 != levels + indices->shape.rank - 1 || indices->shape.rank < 1)
        return FAIL("OUTPUT_RAGGED_RANK must be PARAMS_RAGGED_RANK + the rank of indices - 1");
    int64_t rows = call->inputs[0].shape.dims[0] - 1;
    for (int64_t i = 0; i < r.count; i++) {
        int64_t index = integer_at(indices, i);
        if (index < 0 || index >= rows)
            return FAIL("indices%s = %" PRId64 " is not in [0, %" PRId64 ")",
                        mr_position_text(indices->shape, i, text, sizeof text), index, rows);
    }
    MR_TRY(put_index_splits(call, indices->shape, error));
    MR_TRY(mr_sparse_memory(call, r.count, sizeof *r.at, &r.at, error));
    for (int64_t i = 0; i < r.count; i++) {
        r.at[i][0] = integer_at(indices, i);
        r.at[i][1] = r.at[i][0] + 1;
    }
    mr_status status = MR_OK;
    for (int level = 0; level < levels && status == MR_OK; level++)
        status = put_level(call, level, indices->shape.rank - 1 + level, &r, error);
    if (status == MR_OK) status = put_values(call, values, &r, error);
    free(r.at);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "RaggedTensorToTensor", .run = ragged_to_dense},
    {.op = "RaggedGather", .run = ragged_gather},
};
MR_KERNEL_FAMILY(ragged_dense);
