/* Counting: histograms of integers and of real numbers, and positions in sorted rows. */
#include "kernels/indices.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Histograms of non-negative integers ---- */

/* values[i] is counted in row rows[i] of bins, or in row 0 if rows is null. Values of `size` or more are ignored.
 * binary  a bin is 1 if any value is in it; weights are then ignored */
typedef struct counts {
    mr_kernel_call *call;
    const mr_tensor *values, *weights;
    const int64_t *rows;
    int64_t size;
    bool binary;
} counts;

#define COUNT(dtype, type)                                                                                             \
    case dtype: {                                                                                                      \
        type *bins = c->call->outputs[0].data;                                                                         \
        const type *weights = mr_tensor_count(c->weights) > 0 ? c->weights->data : nullptr;                            \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            int64_t value = mr_index_at(c->values, i), row = c->rows != nullptr ? c->rows[i] : 0;                      \
            if (value < 0) return false;                                                                               \
            if (value >= c->size) continue;                                                                            \
            type *bin = bins + row * c->size + value;                                                                  \
            *bin = c->binary ? (type)1 : (type)(*bin + (weights != nullptr ? weights[i] : (type)1));                   \
        }                                                                                                              \
        return true;                                                                                                   \
    }

/* False if a value is negative. Sums of integers wrap. */
static bool count_values(const counts *c)
{
    int64_t count = mr_tensor_count(c->values);
    switch (c->weights->dtype) {
        COUNT(MR_FLOAT, float)
        COUNT(MR_DOUBLE, double)
        COUNT(MR_INT32, uint32_t)
        COUNT(MR_INT64, uint64_t)
    default:
        return false;
    }
}

static mr_status bins_new(counts *c, mr_shape shape, const char *negative, mr_error *error)
{
    if (mr_shape_count(shape) < 0)
        return mr_kernel_fail(c->call->node, error, MR_INVALID_ARGUMENT, "there are too many bins");
    MR_TRY(mr_kernel_output(c->call, 0, shape, error));
    memset(c->call->outputs[0].data, 0, mr_tensor_size_bytes(&c->call->outputs[0]));
    if (!count_values(c)) return mr_kernel_fail(c->call->node, error, MR_INVALID_ARGUMENT, "%s", negative);
    return MR_OK;
}

static mr_status size_of(mr_kernel_call *call, int input, int64_t *size, mr_error *error)
{
    if (call->inputs[input].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Shape must be rank 0 but is rank %d",
                              call->inputs[input].shape.rank);
    MR_TRY(mr_kernel_int(call, input, "size", size, error));
    if (*size < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "size (%" PRId64 ") must be non-negative", *size);
    return MR_OK;
}

static const char *const negative_array = "Input arr must be non-negative!";

static mr_status bincount(mr_kernel_call *call, mr_error *error)
{
    counts c = {.call = call, .values = &call->inputs[0], .weights = &call->inputs[2]};
    int64_t weights = mr_tensor_count(c.weights);
    MR_TRY(size_of(call, 1, &c.size, error));
    if (weights > 0 && weights != mr_tensor_count(c.values))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Input indices and weights must have the same size.");
    return bins_new(&c, MR_SHAPE(c.size), negative_array, error);
}

/* Row numbers of `count` values that are stored in rows of `width`. */
static int64_t *rows_of_matrix(int64_t count, int64_t width)
{
    int64_t *rows = calloc((size_t)count + 1, sizeof *rows);
    for (int64_t i = 0; rows != nullptr && i < count; i++) rows[i] = i / width;
    return rows;
}

static mr_status dense_bincount(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    counts c = {.call = call,
                .values = input,
                .weights = &call->inputs[2],
                .binary = mr_attr_bool_or(call->node->attrs, "binary_output", false)};
    char text[MR_SHAPE_TEXT_SIZE];
    if (input->shape.rank > 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Shape must be at most rank 2 but is rank %d",
                              input->shape.rank);
    if (!mr_shape_equal(c.weights->shape, input->shape) && mr_tensor_count(c.weights) > 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts "
                              "as all weights equal to 1. Received %s",
                              mr_shape_text(c.weights->shape, text, sizeof text));
    MR_TRY(size_of(call, 1, &c.size, error));
    if (input->shape.rank == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be a vector or a matrix");
    if (input->shape.rank == 1) return bins_new(&c, MR_SHAPE(c.size), negative_array, error);
    int64_t *rows = rows_of_matrix(mr_tensor_count(input), input->shape.dims[1]);
    if (rows == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    c.rows = rows;
    mr_status status = bins_new(&c, MR_SHAPE(input->shape.dims[0], c.size), negative_array, error);
    free(rows);
    return status;
}

/* Splits may decrease; a value belongs to the first row, from that of the value before it, that ends after it. */
static mr_status ragged_bincount(mr_kernel_call *call, mr_error *error)
{
    const int64_t *splits = call->inputs[0].data;
    counts c = {.call = call,
                .values = &call->inputs[1],
                .weights = &call->inputs[3],
                .binary = mr_attr_bool_or(call->node->attrs, "binary_output", false)};
    int64_t split_count = mr_tensor_count(&call->inputs[0]), count = mr_tensor_count(c.values);
    MR_TRY(size_of(call, 2, &c.size, error));
    if (split_count < 1) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Splits must be non-empty");
    if (splits[0] != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Splits must start with 0, not with %" PRId64,
                              splits[0]);
    if (splits[split_count - 1] != count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Splits must end with the number of values, got %" PRId64 " instead of %" PRId64,
                              splits[split_count - 1], count);
    if (mr_tensor_count(c.weights) > 0 && mr_tensor_count(c.weights) != count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "values and weights must have the same size");
    int64_t *rows = calloc((size_t)count + 1, sizeof *rows);
    if (rows == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    for (int64_t i = 0, row = 0; i < count; i++) { /* ends, because the last split is greater than i */
        while (i >= splits[row]) row++;
        rows[i] = row - 1;
    }
    c.rows = rows;
    mr_status status = bins_new(&c, MR_SHAPE(split_count - 1, c.size), "Input must be non-negative", error);
    free(rows);
    return status;
}

static mr_status bad_tuple(mr_kernel_call *call, const int64_t *tuple, int64_t length, int64_t index, mr_error *error)
{
    char text[256] = "";
    for (int64_t i = 0, used = 0; i < length && used < (int64_t)sizeof text; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%" PRId64, i > 0 ? ", " : "", tuple[i]);
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "Sparse index tuple indices[%" PRId64 ", :] = [%s] is out of bounds", index, text);
}

/* Checks the parts of a sparse tensor (inputs 0 to 2); as in TensorFlow, the order of its indices is irrelevant. */
static mr_status check_sparse(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *indices = &call->inputs[0], *values = &call->inputs[1], *shape = &call->inputs[2];
    static const char *const names[] = {"indices", "values", "shape"};
    for (int i = 0; i < 3; i++)
        if (call->inputs[i].shape.rank != (i == 0 ? 2 : 1))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Sparse %s must be rank %d but is rank %d",
                                  names[i], i == 0 ? 2 : 1, call->inputs[i].shape.rank);
    int64_t count = indices->shape.dims[0], rank = indices->shape.dims[1];
    if (count != values->shape.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Number of elements in indices (%" PRId64 ") and values (%" PRId64 ") do not match",
                              count, values->shape.dims[0]);
    if (rank != shape->shape.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Index rank (%" PRId64 ") and shape rank (%" PRId64 ") do not match", rank,
                              shape->shape.dims[0]);
    if (rank < 1) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "The shape argument is empty");
    const int64_t *tuples = indices->data, *sizes = shape->data;
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < rank; k++)
            if (tuples[i * rank + k] < 0 || tuples[i * rank + k] >= sizes[k])
                return bad_tuple(call, tuples + i * rank, rank, i, error);
    if (sizes[0] < 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "dense_shape has a negative size");
    return MR_OK;
}

/* A vector has one row of bins; otherwise there is one row for each index of the first dimension. */
static mr_status sparse_bincount(mr_kernel_call *call, mr_error *error)
{
    counts c = {.call = call,
                .values = &call->inputs[1],
                .weights = &call->inputs[4],
                .binary = mr_attr_bool_or(call->node->attrs, "binary_output", false)};
    MR_TRY(size_of(call, 3, &c.size, error));
    MR_TRY(check_sparse(call, error));
    int64_t count = mr_tensor_count(c.values), rank = call->inputs[0].shape.dims[1];
    const int64_t *tuples = call->inputs[0].data, *sizes = call->inputs[2].data;
    if (mr_tensor_count(c.weights) > 0 && mr_tensor_count(c.weights) != count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "values and weights must have the same size");
    if (rank == 1) return bins_new(&c, MR_SHAPE(c.size), negative_array, error);
    int64_t *rows = calloc((size_t)count + 1, sizeof *rows);
    if (rows == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    for (int64_t i = 0; i < count; i++) rows[i] = tuples[i * rank];
    c.rows = rows;
    mr_status status = bins_new(&c, MR_SHAPE(sizes[0], c.size), negative_array, error);
    free(rows);
    return status;
}

/* ---- Histograms of real numbers ---- */

/* The distance of value i from low, 0 if it is below. Real numbers are subtracted in their own type, as in
 * TensorFlow. */
static double distance_from(const mr_tensor *values, int64_t i, const void *low)
{
    switch (values->dtype) {
    case MR_FLOAT: {
        float value = ((const float *)values->data)[i], from = *(const float *)low;
        return value > from ? (double)(value - from) : value == value ? 0 : (double)NAN;
    }
    case MR_DOUBLE: {
        double value = ((const double *)values->data)[i], from = *(const double *)low;
        return value > from ? value - from : value == value ? 0 : (double)NAN;
    }
    case MR_INT32: {
        int32_t value = ((const int32_t *)values->data)[i], from = *(const int32_t *)low;
        return value > from ? (double)value - (double)from : 0;
    }
    default: {
        int64_t value = ((const int64_t *)values->data)[i], from = *(const int64_t *)low;
        return value > from ? (double)((uint64_t)value - (uint64_t)from) : 0;
    }
    }
}

static double number_at(const mr_tensor *tensor, int i)
{
    return tensor->dtype == MR_FLOAT    ? (double)((const float *)tensor->data)[i]
           : tensor->dtype == MR_DOUBLE ? ((const double *)tensor->data)[i]
           : tensor->dtype == MR_INT32  ? (double)((const int32_t *)tensor->data)[i]
                                        : (double)((const int64_t *)tensor->data)[i];
}

static mr_status histogram_fixed_width(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *values = &call->inputs[0], *range = &call->inputs[1];
    int64_t bins, count = mr_tensor_count(values);
    if (range->shape.rank != 1 || range->shape.dims[0] != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "value_range should be a vector of 2 elements.");
    if (call->inputs[2].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "nbins should be a scalar.");
    double low = number_at(range, 0), high = number_at(range, 1);
    if (!(low < high))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "value_range should satisfy value_range[0] < value_range[1], but got '[%g, %g]'", low,
                              high);
    MR_TRY(mr_kernel_int(call, 2, "nbins", &bins, error));
    if (bins <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "nbins should be a positive number, but got '%" PRId64 "'", bins);
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(bins), error));
    mr_tensor *output = &call->outputs[0];
    memset(output->data, 0, mr_tensor_size_bytes(output));
    double width = values->dtype == MR_FLOAT ? (double)((float)high - (float)low) : high - low,
           step = width / (double)bins;
    for (int64_t i = 0; i < count; i++) {
        double distance = distance_from(values, i, range->data), place = distance / step;
        if (isnan(distance))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Histogram values must not contain NaN");
        int64_t bin = place < (double)(bins - 1) ? (int64_t)place : place == place ? bins - 1 : 0;
        if (output->dtype == MR_INT64)
            ((int64_t *)output->data)[bin]++;
        else
            ((int32_t *)output->data)[bin]++;
    }
    return MR_OK;
}

/* ---- Positions in sorted numbers ---- */

typedef struct boundaries {
    const mr_attr_value *values; /* ascending */
    int32_t count;
} boundaries;

static mr_status sorted_boundaries(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    const mr_attr *list = mr_attrs_find(node->attrs, "boundaries");
    boundaries *b = prepared;
    *b = list != nullptr ? (boundaries){list->values, list->count} : (boundaries){0};
    for (int32_t i = 1; i < b->count; i++)
        if (b->values[i].number < b->values[i - 1].number)
            return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Expected sorted boundaries");
    return MR_OK;
}

typedef struct bucket_job {
    const mr_tensor *input;
    const boundaries *list;
    int32_t *target;
} bucket_job;

/* Integers are compared as floats, as in TensorFlow. A NaN is behind all boundaries. */
#define BUCKETS(dtype, type, compared)                                                                                 \
    case dtype:                                                                                                        \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            compared value = (compared)((const type *)job->input->data)[i];                                            \
            int32_t low = 0, high = job->list->count;                                                                  \
            while (low < high) {                                                                                       \
                int32_t middle = low + (high - low) / 2;                                                               \
                if (value < (compared)job->list->values[middle].number)                                                \
                    high = middle;                                                                                     \
                else                                                                                                   \
                    low = middle + 1;                                                                                  \
            }                                                                                                          \
            job->target[i] = low;                                                                                      \
        }                                                                                                              \
        break;

static void bucket_piece(void *context, int64_t begin, int64_t end)
{
    const bucket_job *job = context;
    switch (job->input->dtype) {
        BUCKETS(MR_FLOAT, float, float)
        BUCKETS(MR_DOUBLE, double, double)
        BUCKETS(MR_INT32, int32_t, float)
        BUCKETS(MR_INT64, int64_t, float)
    default:
        break;
    }
}

static mr_status bucketize(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(mr_kernel_output(call, 0, call->inputs[0].shape, error));
    bucket_job job = {&call->inputs[0], call->prepared, call->outputs[0].data};
    mr_pool_for(call->device->pool, mr_tensor_count(job.input), MR_GRAIN / 8, bucket_piece, &job);
    return MR_OK;
}

typedef struct bound_job {
    const char *rows, *values;
    int64_t *places;
    int64_t length, width; /* of a row, and number of values for each row */
    bool upper;
} bound_job;

#define BOUND(name, type, read)                                                                                        \
    static void name(void *context, int64_t begin, int64_t end)                                                        \
    {                                                                                                                  \
        const bound_job *job = context;                                                                                \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            const type *row = (const type *)job->rows + i / job->width * job->length;                                  \
            auto value = read(((const type *)job->values)[i]);                                                         \
            int64_t low = 0, high = job->length;                                                                       \
            while (low < high) {                                                                                       \
                int64_t middle = low + (high - low) / 2;                                                               \
                if (job->upper ? !(value < read(row[middle])) : read(row[middle]) < value)                             \
                    low = middle + 1;                                                                                  \
                else                                                                                                   \
                    high = middle;                                                                                     \
            }                                                                                                          \
            job->places[i] = low;                                                                                      \
        }                                                                                                              \
    }
#define SAME(x) (x)
#define BOUND_TYPE(dtype, type, suffix) BOUND(bound_##suffix, type, SAME)
MR_EACH_NUMBER(BOUND_TYPE)
BOUND(bound_half, uint16_t, mr_half_to_float)
BOUND(bound_bfloat16, uint16_t, mr_bfloat16_to_float)
#define BOUND_ROW(dtype, type, suffix) [dtype] = bound_##suffix,
static const mr_pool_body bounds[MR_DTYPE_COUNT] = {
    MR_EACH_NUMBER(BOUND_ROW)[MR_HALF] = bound_half, [MR_BFLOAT16] = bound_bfloat16};

static mr_status bound(mr_kernel_call *call, bool upper, mr_error *error)
{
    const mr_tensor *sorted = &call->inputs[0], *values = &call->inputs[1];
    static const char *const names[] = {"sorted_inputs", "values"};
    for (int i = 0; i < 2; i++)
        if (call->inputs[i].shape.rank != 2)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Shape must be rank 2 but is rank %d for `%s` argument", call->inputs[i].shape.rank,
                                  names[i]);
    if (sorted->shape.dims[0] != values->shape.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Leading dim_size of both tensors must match.");
    if (bounds[sorted->dtype] == nullptr) return mr_kernel_unsupported(call->node, error);
    int64_t count = mr_tensor_count(values);
    bound_job job = {sorted->data,          values->data,          calloc((size_t)count + 1, sizeof *job.places),
                     sorted->shape.dims[1], values->shape.dims[1], upper};
    if (job.places == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    mr_pool_for(call->device->pool, count, MR_GRAIN / 8, bounds[sorted->dtype], &job);
    mr_status status = mr_kernel_put_ints(call, 0, values->shape, job.places, error);
    free(job.places);
    return status;
}

static mr_status lower_bound(mr_kernel_call *call, mr_error *error)
{
    return bound(call, false, error);
}

static mr_status upper_bound(mr_kernel_call *call, mr_error *error)
{
    return bound(call, true, error);
}

static const mr_kernel kernels[] = {
    {.op = "Bincount", .run = bincount, .host_inputs = 1 << 1},
    {.op = "DenseBincount", .run = dense_bincount, .host_inputs = 1 << 1},
    {.op = "RaggedBincount", .run = ragged_bincount, .host_inputs = 1 << 2},
    {.op = "SparseBincount", .run = sparse_bincount, .host_inputs = 1 << 3},
    {.op = "HistogramFixedWidth", .run = histogram_fixed_width},
    {.op = "Bucketize", .run = bucketize, .prepared_size_bytes = sizeof(boundaries), .prepare = sorted_boundaries},
    {.op = "LowerBound", .run = lower_bound},
    {.op = "UpperBound", .run = upper_bound},
};
MR_KERNEL_FAMILY(counting);
