/* Ragged tensors: values, and for each ragged dimension the positions where its rows start and end. */
#include "kernels/sparse.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(...) mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, __VA_ARGS__)

/* ---- RaggedRange ---- */

static mr_status range_rows(const mr_kernel_call *call, int64_t *rows, mr_error *error)
{
    static const char *const names[] = {"starts", "limits", "deltas"};
    *rows = -1;
    for (int i = 0; i < 3; i++) {
        mr_shape shape = call->inputs[i].shape;
        if (shape.rank > 1) return FAIL("%s must be a scalar or vector", names[i]);
        if (shape.rank == 0) continue;
        if (*rows >= 0 && *rows != shape.dims[0]) return FAIL("starts, limits, and deltas must have the same shape");
        *rows = shape.dims[0];
    }
    if (*rows < 0) *rows = 1;
    return MR_OK;
}

static void put_split(mr_tensor *splits, int64_t i, int64_t value)
{
    if (splits->dtype == MR_INT64)
        ((int64_t *)splits->data)[i] = value;
    else
        ((int32_t *)splits->data)[i] = (int32_t)value;
}

/* The number of elements of a sequence; -1 if there are too many. */
static int64_t length_of_integers(int64_t start, int64_t limit, int64_t delta)
{
    if (delta > 0 ? limit <= start : limit >= start) return 0;
    uint64_t span = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t step = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
    uint64_t count = (span - 1) / step + 1;
    return count > INT64_MAX ? -1 : (int64_t)count;
}

static int64_t length_of_numbers(double start, double limit, double delta)
{
    if (delta > 0 ? limit <= start : delta < 0 && limit >= start) return 0;
    double count = ceil(fabs((limit - start) / delta));
    return count < 9e18 ? (int64_t)count : -1;
}

static int64_t length_of_floats(float start, float limit, float delta)
{
    if (delta > 0 ? limit <= start : delta < 0 && limit >= start) return 0;
    float count = ceilf(fabsf((limit - start) / delta));
    return count < 9e18f ? (int64_t)count : -1;
}

/* TYPE: of the elements; WIDE: of the sequence's counter, unsigned for integers, which wrap around. */
#define RANGE(suffix, TYPE, WIDE, length)                                                                              \
    static mr_status range_##suffix(mr_kernel_call *call, mr_error *error)                                             \
    {                                                                                                                  \
        int64_t rows, total = 0, at = 0;                                                                               \
        const TYPE *in[3];                                                                                             \
        int64_t step[3];                                                                                               \
        MR_TRY(range_rows(call, &rows, error));                                                                        \
        for (int i = 0; i < 3; i++) {                                                                                  \
            in[i] = call->inputs[i].data;                                                                              \
            step[i] = call->inputs[i].shape.rank;                                                                      \
        }                                                                                                              \
        MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(rows + 1), error));                                                  \
        mr_tensor *splits = &call->outputs[0];                                                                         \
        put_split(splits, 0, 0);                                                                                       \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            TYPE delta = in[2][r * step[2]];                                                                           \
            if (delta == 0) return FAIL("Requires delta != 0");                                                        \
            int64_t count = length(in[0][r * step[0]], in[1][r * step[1]], delta);                                     \
            if (count < 0 || __builtin_add_overflow(total, count, &total) ||                                           \
                (splits->dtype == MR_INT32 && total > INT32_MAX))                                                      \
                return FAIL("Requires ((limit - start) / delta) <= the maximum of the splits' type");                  \
            put_split(splits, r + 1, total);                                                                           \
        }                                                                                                              \
        MR_TRY(mr_kernel_output(call, 1, MR_SHAPE(total), error));                                                     \
        TYPE *to = call->outputs[1].data;                                                                              \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            WIDE value = (WIDE)in[0][r * step[0]], delta = (WIDE)in[2][r * step[2]];                                   \
            int64_t count = length(in[0][r * step[0]], in[1][r * step[1]], in[2][r * step[2]]);                        \
            for (int64_t i = 0; i < count; i++, value += delta) to[at++] = (TYPE)value;                                \
        }                                                                                                              \
        return MR_OK;                                                                                                  \
    }
RANGE(float, float, float, length_of_floats)
RANGE(double, double, double, length_of_numbers)
RANGE(int32, int32_t, uint32_t, length_of_integers)
RANGE(int64, int64_t, uint64_t, length_of_integers)

/* ---- RaggedTensorToSparse ---- */

static int64_t split_at(const mr_tensor *splits, int64_t i)
{
    return splits->dtype == MR_INT64 ? ((const int64_t *)splits->data)[i] : ((const int32_t *)splits->data)[i];
}

/* Each level starts with 0, does not decrease and ends with the number of rows of the next. */
static mr_status check_splits(const mr_kernel_call *call, int levels, mr_error *error)
{
    const mr_tensor *values = &call->inputs[levels];
    for (int i = 0; i < levels; i++) {
        const mr_tensor *splits = &call->inputs[i];
        if (splits->shape.rank != 1) return FAIL("ragged splits must be a vector");
        int64_t count = splits->shape.dims[0];
        if (count == 0) return FAIL("ragged splits may not be empty.");
        if (split_at(splits, 0) != 0) return FAIL("First value of ragged splits must be 0.");
        for (int64_t j = 1; j < count; j++)
            if (split_at(splits, j) < split_at(splits, j - 1))
                return FAIL("Ragged splits should be non decreasing, but we got %" PRId64 " followed by %" PRId64,
                            split_at(splits, j - 1), split_at(splits, j));
        if (i > 0 && split_at(&call->inputs[i - 1], call->inputs[i - 1].shape.dims[0] - 1) != count - 1)
            return FAIL("Final value of ragged splits must match the length the corresponding ragged values.");
    }
    if (values->shape.rank < 1) return FAIL("rt_dense_values must not be a scalar");
    if (split_at(&call->inputs[levels - 1], call->inputs[levels - 1].shape.dims[0] - 1) != values->shape.dims[0])
        return FAIL("Final value of ragged splits must match the length the corresponding ragged values.");
    return MR_OK;
}

/* Stores the first columns of the row of values `row`: its position at each ragged level.
 * rows  for each level, the row that contains the previous value; rows of values come in order */
static void ragged_position(const mr_kernel_call *call, int levels, int64_t row, int64_t *rows, int64_t *position)
{
    for (int i = levels - 1; i >= 0; i--) {
        while (split_at(&call->inputs[i], rows[i] + 1) <= row) rows[i]++;
        position[i + 1] = row - split_at(&call->inputs[i], rows[i]);
        row = rows[i];
    }
    position[0] = row;
}

static mr_status to_sparse(mr_kernel_call *call, mr_error *error)
{
    int levels = call->node->input_count - 1;
    if (levels < 1) return FAIL("there are no ragged splits");
    const mr_tensor *values = &call->inputs[levels];
    MR_TRY(check_splits(call, levels, error));
    int64_t count = mr_tensor_count(values), rank = levels + values->shape.rank, *rows = nullptr;
    int64_t lines = values->shape.dims[0], width = lines > 0 ? count / lines : 0;
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(count, rank), error));
    MR_TRY(mr_kernel_output(call, 2, MR_SHAPE(rank), error));
    int64_t *indices = call->outputs[0].data, *shape = call->outputs[2].data;
    shape[0] = call->inputs[0].shape.dims[0] - 1;
    for (int i = 0; i < levels; i++) {
        shape[i + 1] = 0;
        for (int64_t j = 1; j < call->inputs[i].shape.dims[0]; j++)
            shape[i + 1] = MR_MAX(shape[i + 1], split_at(&call->inputs[i], j) - split_at(&call->inputs[i], j - 1));
    }
    for (int d = 1; d < values->shape.rank; d++) shape[levels + d] = values->shape.dims[d];
    MR_TRY(mr_sparse_memory(call, levels, sizeof *rows, &rows, error));
    for (int64_t line = 0; line < lines && width > 0; line++)
        for (int64_t j = 0; j < width; j++) {
            int64_t *position = indices + (line * width + j) * rank, rest = j;
            ragged_position(call, levels, line, rows, position);
            for (int d = values->shape.rank - 1; d >= 1; d--) {
                position[levels + d] = rest % values->shape.dims[d];
                rest /= values->shape.dims[d];
            }
        }
    free(rows);
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 1, MR_SHAPE(count), &sink, error));
    if (count > 0) memcpy(sink.data, values->data, (size_t)count * sink.element_size);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static const mr_kernel kernels[] = {
    {.op = "RaggedRange", .types = "T: float", .run = range_float},
    {.op = "RaggedRange", .types = "T: double", .run = range_double},
    {.op = "RaggedRange", .types = "T: int32", .run = range_int32},
    {.op = "RaggedRange", .types = "T: int64", .run = range_int64},
    {.op = "RaggedTensorToSparse", .run = to_sparse},
};
MR_KERNEL_FAMILY(ragged);
