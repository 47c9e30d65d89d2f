/* DynamicPartition and DynamicStitch: distributing rows to several tensors by number, and merging them again. */
#include "kernels/common.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Whether the first dimensions of a shape are those of prefix. */
static bool starts_with(mr_shape shape, mr_shape prefix)
{
    if (shape.rank < prefix.rank) return false;
    for (int i = 0; i < prefix.rank; i++)
        if (shape.dims[i] != prefix.dims[i]) return false;
    return true;
}

/* The dimensions of a shape after the first `lead`, behind a first dimension of the given size. */
static mr_status rows_shape(mr_kernel_call *call, int64_t rows, mr_shape shape, int lead, mr_shape *result,
                            mr_error *error)
{
    if (shape.rank - lead + 1 > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
    *result = (mr_shape){.rank = 1, .dims = {rows}};
    for (int i = lead; i < shape.rank; i++) result->dims[result->rank++] = shape.dims[i];
    return MR_OK;
}

/* Counts the rows of each partition. */
static mr_status count_rows(mr_kernel_call *call, int64_t *counts, mr_error *error)
{
    const mr_tensor *partitions = &call->inputs[1];
    const int32_t *numbers = partitions->data;
    int64_t rows = mr_tensor_count(partitions);
    for (int64_t i = 0; i < rows; i++) {
        if (numbers[i] < 0 || numbers[i] >= call->node->output_count) {
            char text[MR_POSITION_TEXT_SIZE];
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "partitions%s = %d is not in [0, %d)",
                                  mr_position_text(partitions->shape, i, text, sizeof text), numbers[i],
                                  call->node->output_count);
        }
        counts[numbers[i]]++;
    }
    return MR_OK;
}

/* Copies the rows of one partition; there are as many as the sink has. */
static void copy_partition(mr_kernel_call *call, int part, const mr_sink *sink, size_t row_bytes)
{
    const int32_t *numbers = call->inputs[1].data;
    const char *source = call->inputs[0].data;
    char *target = sink->data;
    int64_t rows = mr_tensor_count(&call->inputs[1]);
    for (int64_t i = 0; i < rows; i++) {
        if (numbers[i] != part) continue;
        memcpy(target, source + (size_t)i * row_bytes, row_bytes);
        target += row_bytes;
    }
}

static mr_status partition_rows(mr_kernel_call *call, int64_t *counts, mr_error *error)
{
    mr_shape data = call->inputs[0].shape;
    int lead = call->inputs[1].shape.rank;
    MR_TRY(count_rows(call, counts, error));
    int64_t row = mr_dims_product(&data, lead, data.rank);
    for (int i = 0; i < call->node->output_count; i++) {
        mr_shape shape;
        mr_sink sink;
        MR_TRY(rows_shape(call, counts[i], data, lead, &shape, error));
        MR_TRY(mr_sink_init(call, i, shape, &sink, error));
        if (sink.count > 0) copy_partition(call, i, &sink, (size_t)row * sink.element_size);
        MR_TRY(mr_sink_finish(call, &sink, MR_OK, error));
    }
    return MR_OK;
}

static mr_status dynamic_partition(mr_kernel_call *call, mr_error *error)
{
    if (!starts_with(call->inputs[0].shape, call->inputs[1].shape)) {
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "data.shape must start with partitions.shape, got data.shape = %s, partitions.shape = %s",
                              mr_shape_text(call->inputs[0].shape, a, sizeof a),
                              mr_shape_text(call->inputs[1].shape, b, sizeof b));
    }
    int64_t *counts = calloc((size_t)call->node->output_count, sizeof *counts);
    if (counts == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    mr_status status = partition_rows(call, counts, error);
    free(counts);
    return status;
}

/* ---- DynamicStitch ---- */

/* Checks the shapes of all pairs of indices and data, and finds the number of rows: the largest index plus 1. */
static mr_status check_stitch(mr_kernel_call *call, int count, int64_t *rows, mr_error *error)
{
    const mr_tensor *indices = call->inputs, *data = call->inputs + count;
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE], c[MR_SHAPE_TEXT_SIZE], d[MR_SHAPE_TEXT_SIZE];
    mr_shape first, row;
    *rows = 0;
    for (int i = 0; i < count; i++) {
        if (!starts_with(data[i].shape, indices[i].shape))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "data[%d].shape = %s does not start with indices[%d].shape = %s", i,
                                  mr_shape_text(data[i].shape, a, sizeof a), i,
                                  mr_shape_text(indices[i].shape, b, sizeof b));
        MR_TRY(rows_shape(call, 0, data[i].shape, indices[i].shape.rank, &row, error));
        if (i == 0) first = row;
        if (!mr_shape_equal(first, row))
            return mr_kernel_fail(
                call->node, error, MR_INVALID_ARGUMENT,
                "Need data[0].shape[%d:] = data[%d].shape[%d:], got data[0].shape = %s, "
                "data[%d].shape = %s, indices[0].shape = %s, indices[%d].shape = %s",
                indices[0].shape.rank, i, indices[i].shape.rank, mr_shape_text(data[0].shape, a, sizeof a), i,
                mr_shape_text(data[i].shape, b, sizeof b), mr_shape_text(indices[0].shape, c, sizeof c), i,
                mr_shape_text(indices[i].shape, d, sizeof d));
        int64_t index_count = mr_tensor_count(&indices[i]);
        for (int64_t j = 0; j < index_count; j++) {
            int32_t index = ((const int32_t *)indices[i].data)[j];
            if (index < 0)
                return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "indices[%" PRId64 "] is out of range",
                                      j);
            *rows = MR_MAX(*rows, (int64_t)index + 1);
        }
    }
    return MR_OK;
}

/* Rows without an index are zero; of equal indices the last one wins. */
static mr_status dynamic_stitch(mr_kernel_call *call, mr_error *error)
{
    int count = call->node->input_count / 2;
    const mr_tensor *data = call->inputs + count;
    int64_t rows;
    mr_shape shape;
    mr_sink sink;
    MR_TRY(check_stitch(call, count, &rows, error));
    MR_TRY(rows_shape(call, rows, data[0].shape, call->inputs[0].shape.rank, &shape, error));
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    size_t row_bytes = (size_t)mr_dims_product(&shape, 1, shape.rank) * sink.element_size;
    if (sink.count > 0 && !sink.is_string) memset(sink.data, 0, (size_t)rows * row_bytes);
    for (int i = 0; sink.count > 0 && i < count; i++) {
        const int32_t *indices = call->inputs[i].data;
        int64_t index_count = mr_tensor_count(&call->inputs[i]);
        for (int64_t j = 0; j < index_count; j++)
            memcpy((char *)sink.data + (size_t)indices[j] * row_bytes,
                   (const char *)data[i].data + (size_t)j * row_bytes, row_bytes);
    }
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static const mr_kernel kernels[] = {
    {.op = "DynamicPartition", .run = dynamic_partition},
    {.op = "DynamicStitch", .run = dynamic_stitch},
    {.op = "ParallelDynamicStitch", .run = dynamic_stitch},
};
MR_KERNEL_FAMILY(array_partition);
