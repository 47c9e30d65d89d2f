/* Reductions. Dims are merged into runs that are either all kept or all reduced. The outer loop iterates over kept
 * positions, the inner one over reduced positions, and the innermost run is a row, which is either reduced to one
 * element or added element by element. If there are few outputs and many elements, the work is split into pieces, each
 * with a partial result, at positions that depend only on the shape. Partials are combined in order, so that the result
 * has the same bits at any number of threads. */
#include "kernels/reduce.h"
#include "base/halves.h"
#include "kernels/complex_math.h"
#include "kernels/vector.h"
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

typedef enum reduction { SUM, MEAN, PRODUCT, LARGEST, SMALLEST, REDUCTION_COUNT } reduction;

/* start    fills count accumulators with the neutral element
 * row      reduces all elements of a row into *accumulator
 * column   accumulators[i] op= row[i]
 * columns  the same of ROWS rows, `stride` elements apart, one after the other; null: there is no function for that
 * finish   divides by a count, for MEAN */
typedef struct reducer {
    void (*start)(void *accumulator, int64_t count);
    void (*row)(void *accumulator, const void *row, int64_t count);
    void (*column)(void *accumulator, const void *row, int64_t count);
    void (*finish)(void *accumulator, int64_t count, int64_t divisor);
    void (*columns)(void *accumulator, const void *row, int64_t stride, int64_t count);
} reducer;

#define REDUCER(name, type, neutral, join)                                                                             \
    static void name##_start(void *accumulator, int64_t count)                                                         \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++) ((type *)accumulator)[i] = neutral;                                        \
    }                                                                                                                  \
    static void name##_row(void *accumulator, const void *row, int64_t count)                                          \
    {                                                                                                                  \
        type a = *(type *)accumulator;                                                                                 \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            type b = ((const type *)row)[i];                                                                           \
            a = (type)(join);                                                                                          \
        }                                                                                                              \
        *(type *)accumulator = a;                                                                                      \
    }                                                                                                                  \
    static void name##_column(void *accumulator, const void *row, int64_t count)                                       \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            type a = ((type *)accumulator)[i], b = ((const type *)row)[i];                                             \
            ((type *)accumulator)[i] = (type)(join);                                                                   \
        }                                                                                                              \
    }
#define FINISH(suffix, type)                                                                                           \
    static void finish_##suffix(void *accumulator, int64_t count, int64_t divisor)                                     \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++)                                                                            \
            ((type *)accumulator)[i] = (type)(((type *)accumulator)[i] / (type)divisor);                               \
    }
#define EACH_REDUCED(X)                                                                                                \
    X(MR_FLOAT, float, float, float, -INFINITY, INFINITY)                                                              \
    X(MR_DOUBLE, double, double, double, -(double)INFINITY, (double)INFINITY)                                          \
    X(MR_INT32, int32_t, uint64_t, int32, INT32_MIN, INT32_MAX)                                                        \
    X(MR_INT64, int64_t, uint64_t, int64, INT64_MIN, INT64_MAX)                                                        \
    X(MR_INT8, int8_t, uint64_t, int8, INT8_MIN, INT8_MAX)                                                             \
    X(MR_INT16, int16_t, uint64_t, int16, INT16_MIN, INT16_MAX)                                                        \
    X(MR_UINT8, uint8_t, uint64_t, uint8, 0, UINT8_MAX)                                                                \
    X(MR_UINT16, uint16_t, uint64_t, uint16, 0, UINT16_MAX)                                                            \
    X(MR_UINT32, uint32_t, uint64_t, uint32, 0, UINT32_MAX)                                                            \
    X(MR_UINT64, uint64_t, uint64_t, uint64, 0, UINT64_MAX)
/* sum_type: unsigned for integers, whose sums and products wrap as in TensorFlow. */
#define REDUCERS(dtype, type, sum_type, suffix, low, high)                                                             \
    REDUCER(sum_##suffix, type, 0, (sum_type)a + (sum_type)b)                                                          \
    REDUCER(product_##suffix, type, 1, (sum_type)a *(sum_type)b)                                                       \
    REDUCER(largest_##suffix, type, low, b > a || b != b ? b : a)                                                      \
    REDUCER(smallest_##suffix, type, high, b < a || b != b ? b : a)                                                    \
    FINISH(suffix, type)
#pragma clang diagnostic ignored "-Wtautological-compare"
EACH_REDUCED(REDUCERS)

/* Complex numbers have no order. */
#define COMPLEX_REDUCERS(type, suffix)                                                                                 \
    REDUCER(sum_##suffix, type, 0, a + b)                                                                              \
    REDUCER(product_##suffix, type, 1, mr_complex_times(a, b))                                                         \
    FINISH(suffix, type)
COMPLEX_REDUCERS(mr_complex64, complex64)
COMPLEX_REDUCERS(mr_complex128, complex128)

/* Sums of floats: 64 partial sums, added as a tree. */
MR_INLINE void sum_row_body(void *accumulator, const void *row, int64_t count)
{
    const float *x = row;
    mr_vector s0 = {}, s1 = {}, s2 = {}, s3 = {};
    int64_t i = 0;
    for (; i + 64 <= count; i += 64) {
        s0 += mr_vector_load(x + i);
        s1 += mr_vector_load(x + i + 16);
        s2 += mr_vector_load(x + i + 32);
        s3 += mr_vector_load(x + i + 48);
    }
    for (; i + 16 <= count; i += 16) s0 += mr_vector_load(x + i);
    if (i < count) s1 += mr_vector_load_some(x + i, count - i, 0);
    *(float *)accumulator += mr_vector_sum((s0 + s1) + (s2 + s3));
}
MR_LEVELS(sum_row, (void *accumulator, const void *row, int64_t count), (accumulator, row, count))

MR_INLINE void sum_column_body(void *accumulator, const void *row, int64_t count)
{
    float *a = accumulator;
    const float *x = row;
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) mr_vector_store(a + i, mr_vector_load(a + i) + mr_vector_load(x + i));
    for (; i < count; i++) a[i] += x[i];
}
MR_LEVELS(sum_column, (void *accumulator, const void *row, int64_t count), (accumulator, row, count))

constexpr int ROWS = 8;

/* Several rows at once: the memory is read in as many places, and the sums are read and written once. */
MR_INLINE void sum_columns_body(void *accumulator, const void *row, int64_t stride, int64_t count)
{
    float *a = accumulator;
    const float *x = row;
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        mr_vector sum = mr_vector_load(a + i);
        MR_UNROLL
        for (int r = 0; r < ROWS; r++) sum += mr_vector_load(x + r * stride + i);
        mr_vector_store(a + i, sum);
    }
    for (; i < count; i++)
        for (int r = 0; r < ROWS; r++) a[i] += x[r * stride + i];
}
MR_LEVELS(sum_columns, (void *accumulator, const void *row, int64_t stride, int64_t count),
          (accumulator, row, stride, count))

/* The largest and the smallest float: 64 candidates, joined at the end. NaN remains. */
#define EXTREME(name, compare)                                                                                         \
    MR_INLINE void name##_row_body(void *accumulator, const void *row, int64_t count)                                  \
    {                                                                                                                  \
        const float *x = row;                                                                                          \
        float a = *(float *)accumulator, lanes[64];                                                                    \
        mr_vector best[4];                                                                                             \
        int64_t i = 0;                                                                                                 \
        MR_UNROLL                                                                                                      \
        for (int v = 0; v < 4; v++) best[v] = mr_vector_of(a);                                                         \
        for (; i + 64 <= count; i += 64) {                                                                             \
            MR_UNROLL                                                                                                  \
            for (int v = 0; v < 4; v++) {                                                                              \
                const mr_vector b = mr_vector_load(x + i + 16 * v);                                                    \
                best[v] = mr_vector_choose((b compare best[v]) | (b != b), b, best[v]);                                \
            }                                                                                                          \
        }                                                                                                              \
        memcpy(lanes, best, sizeof lanes);                                                                             \
        for (int lane = 0; lane < 64 && i > 0; lane++)                                                                 \
            a = lanes[lane] compare a || lanes[lane] != lanes[lane] ? lanes[lane] : a;                                 \
        for (; i < count; i++) a = x[i] compare a || x[i] != x[i] ? x[i] : a;                                          \
        *(float *)accumulator = a;                                                                                     \
    }                                                                                                                  \
    MR_LEVELS(name##_row, (void *accumulator, const void *row, int64_t count), (accumulator, row, count))              \
    MR_INLINE void name##_column_body(void *accumulator, const void *row, int64_t count)                               \
    {                                                                                                                  \
        float *a = accumulator;                                                                                        \
        const float *x = row;                                                                                          \
        int64_t i = 0;                                                                                                 \
        for (; i + 16 <= count; i += 16) {                                                                             \
            const mr_vector b = mr_vector_load(x + i), best = mr_vector_load(a + i);                                   \
            mr_vector_store(a + i, mr_vector_choose((b compare best) | (b != b), b, best));                            \
        }                                                                                                              \
        for (; i < count; i++) a[i] = x[i] compare a[i] || x[i] != x[i] ? x[i] : a[i];                                 \
    }                                                                                                                  \
    MR_LEVELS(name##_column, (void *accumulator, const void *row, int64_t count), (accumulator, row, count))           \
    static void fast_##name##_row(void *accumulator, const void *row, int64_t count)                                   \
    {                                                                                                                  \
        name##_row[mr_cpu()](accumulator, row, count);                                                                 \
    }                                                                                                                  \
    static void fast_##name##_column(void *accumulator, const void *row, int64_t count)                                \
    {                                                                                                                  \
        name##_column[mr_cpu()](accumulator, row, count);                                                              \
    }
EXTREME(largest, >)
EXTREME(smallest, <)

static void fast_sum_row(void *accumulator, const void *row, int64_t count)
{
    sum_row[mr_cpu()](accumulator, row, count);
}

static void fast_sum_column(void *accumulator, const void *row, int64_t count)
{
    sum_column[mr_cpu()](accumulator, row, count);
}

static void fast_sum_columns(void *accumulator, const void *row, int64_t stride, int64_t count)
{
    sum_columns[mr_cpu()](accumulator, row, stride, count);
}

#define REDUCER_ROW(name, done) {name##_start, name##_row, name##_column, done, nullptr}
#define REDUCER_ROWS(dtype, type, sum_type, suffix, low, high)                                                         \
    [dtype] = {REDUCER_ROW(sum_##suffix, nullptr), REDUCER_ROW(sum_##suffix, finish_##suffix),                         \
               REDUCER_ROW(product_##suffix, nullptr), REDUCER_ROW(largest_##suffix, nullptr),                         \
               REDUCER_ROW(smallest_##suffix, nullptr)},
#define COMPLEX_REDUCER_ROWS(dtype, suffix)                                                                            \
    [dtype] = {REDUCER_ROW(sum_##suffix, nullptr), REDUCER_ROW(sum_##suffix, finish_##suffix),                         \
               REDUCER_ROW(product_##suffix, nullptr)}
static const reducer reducers[MR_DTYPE_COUNT][REDUCTION_COUNT] = {EACH_REDUCED(REDUCER_ROWS)
                                                                      COMPLEX_REDUCER_ROWS(MR_COMPLEX64, complex64),
                                                                  COMPLEX_REDUCER_ROWS(MR_COMPLEX128, complex128)};

typedef struct reduce_job {
    reducer reducer;
    size_t size;
    int rank; /* number of dims outside the row */
    int64_t dims[MR_RANK_MAX], strides[MR_RANK_MAX];
    bool reduced[MR_RANK_MAX];
    int64_t row; /* elements of the innermost run */
    bool row_reduced;
    int64_t row_blocks, row_block; /* blocks of the row */
    int64_t kept, reduced_count;   /* numbers of positions outside the row */
    int64_t splits;                /* pieces of the reduced positions (and blocks of a reduced row) */
    const char *source;
    char *target; /* [splits, outputs] */
    int64_t output_count;
} reduce_job;

/* The offset of position `index` among the dims with reduced == which. */
static int64_t offset_of(const reduce_job *job, int64_t index, bool which)
{
    int64_t offset = 0;
    for (int d = job->rank - 1; d >= 0; d--) {
        if (job->reduced[d] != which) continue;
        offset += index % job->dims[d] * job->strides[d];
        index /= job->dims[d];
    }
    return offset;
}

/* Adds part of the rows at the reduced positions [from, to), element by element. Those that differ in the last reduced
 * dim only are at a constant distance. Narrow rows that follow each other in memory are added one by one:
 * they are a single stream. */
static void reduce_columns(const reduce_job *job, char *accumulator, const char *source, int64_t from, int64_t to,
                           int64_t count)
{
    constexpr int64_t WIDE = 2048;
    int last = job->rank - 1;
    while (last >= 0 && !job->reduced[last]) last--;
    const int64_t run = last >= 0 ? job->dims[last] : 1, stride = last >= 0 ? job->strides[last] : 0;
    const int64_t at_once = job->reducer.columns && (count < stride || count >= WIDE) ? ROWS : 1;
    for (int64_t step = from; step < to;) {
        const char *row = source + (size_t)offset_of(job, step, true) * job->size;
        int64_t left = MR_MIN(to - step, run - step % run);
        assert(left >= 1);
        step += left;
        for (; at_once > 1 && left >= at_once; left -= at_once, row += (size_t)(at_once * stride) * job->size)
            job->reducer.columns(accumulator, row, stride, count);
        for (; left > 0; left--, row += (size_t)stride * job->size) job->reducer.column(accumulator, row, count);
    }
}

/* Units of work are numbered by (split, kept position, block of a kept row), the last one varying fastest. */
static void reduce_units(void *context, int64_t begin, int64_t end)
{
    const reduce_job *job = context;
    int64_t kept_blocks = job->row_reduced ? 1 : job->row_blocks, width = job->row_reduced ? 1 : job->row;
    int64_t steps = job->reduced_count * (job->row_reduced ? job->row_blocks : 1);
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t block = unit % kept_blocks, outer = unit / kept_blocks % job->kept;
        int64_t split = unit / kept_blocks / job->kept;
        int64_t from = steps * split / job->splits, to = steps * (split + 1) / job->splits;
        int64_t start = job->row_reduced ? 0 : block * job->row_block;
        int64_t count = job->row_reduced ? 1 : MR_MIN(job->row_block, job->row - start);
        char *accumulator = job->target + (size_t)(split * job->output_count + outer * width + start) * job->size;
        const char *source = job->source + (size_t)offset_of(job, outer, false) * job->size;
        job->reducer.start(accumulator, count);
        if (job->row_reduced) {
            for (int64_t step = from; step < to; step++) {
                int64_t at = step % job->row_blocks * job->row_block;
                int64_t offset = offset_of(job, step / job->row_blocks, true) + at;
                job->reducer.row(accumulator, source + (size_t)offset * job->size,
                                 MR_MIN(job->row_block, job->row - at));
            }
        } else {
            reduce_columns(job, accumulator, source + (size_t)start * job->size, from, to, count);
        }
    }
}

/* Merges the dims of shape into runs; the innermost one becomes the row. */
static void join_runs(reduce_job *job, mr_shape shape, const bool reduced[MR_RANK_MAX])
{
    int64_t strides[MR_RANK_MAX];
    mr_shape_strides(shape, strides);
    int rank = 0;
    for (int d = 0; d < shape.rank; d++) {
        if (shape.dims[d] == 1) continue;
        if (rank > 0 && job->reduced[rank - 1] == reduced[d]) {
            job->dims[rank - 1] *= shape.dims[d];
        } else {
            job->dims[rank] = shape.dims[d];
            job->reduced[rank++] = reduced[d];
        }
        job->strides[rank - 1] = strides[d];
    }
    job->row = 1;
    job->row_reduced = false;
    if (rank > 0) {
        rank--;
        job->row = job->dims[rank];
        job->row_reduced = job->reduced[rank];
    }
    job->rank = rank;
    job->kept = job->reduced_count = 1;
    for (int d = 0; d < rank; d++) *(job->reduced[d] ? &job->reduced_count : &job->kept) *= job->dims[d];
}

static mr_status run_job(reduce_job *job, mr_kernel_call *call, void *output, mr_error *error)
{
    constexpr int64_t SPLITS_MAX = 64, BLOCK = 8192, NARROWEST = 512, UNITS = 16;
    int64_t block = BLOCK;
    if (!job->row_reduced && job->kept < UNITS) /* narrower blocks rather than partial sums of wide rows */
        block = MR_MIN(BLOCK, MR_MAX(NARROWEST, job->row * job->kept / UNITS / 64 * 64));
    job->row_block = MR_MIN(job->row, block);
    job->row_blocks = (job->row + block - 1) / block;
    int64_t units = job->kept * (job->row_reduced ? 1 : job->row_blocks);
    int64_t steps = job->reduced_count * (job->row_reduced ? job->row_blocks : 1);
    int64_t unit_work = job->reduced_count * job->row / (job->row_reduced ? 1 : job->row_blocks);
    job->splits = 1;
    if (units < UNITS && unit_work > 2 * MR_GRAIN)
        job->splits = MR_MIN(MR_MIN(SPLITS_MAX, steps), unit_work / MR_GRAIN);
    job->target = output;
    char *partials = nullptr;
    if (job->splits > 1) {
        partials = malloc((size_t)(job->splits * job->output_count) * job->size);
        if (partials == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
        job->target = partials;
    }
    int64_t work = MR_MAX(1, unit_work / job->splits);
    mr_pool_for(call->device->pool, units * job->splits, MR_MAX(1, MR_GRAIN / work), reduce_units, job);
    if (partials != nullptr) {
        memcpy(output, partials, (size_t)job->output_count * job->size);
        for (int64_t s = 1; s < job->splits; s++)
            job->reducer.column(output, partials + (size_t)(s * job->output_count) * job->size, job->output_count);
        free(partials);
    }
    return MR_OK;
}

mr_status mr_reduce_shape(mr_kernel_call *call, mr_shape *shape, bool reduced[MR_RANK_MAX], int64_t *divisor,
                          mr_error *error)
{
    const mr_tensor *axes = &call->inputs[1]; /* of any rank, as in TensorFlow */
    mr_shape input = call->inputs[0].shape;
    bool keep = mr_attr_bool_or(call->node->attrs, "keep_dims", false);
    memset(reduced, 0, sizeof(bool) * MR_RANK_MAX);
    for (int64_t i = 0, count = mr_tensor_count(axes); i < count; i++) {
        int64_t given = axes->dtype == MR_INT32 ? ((const int32_t *)axes->data)[i] : ((const int64_t *)axes->data)[i];
        if (given < -input.rank || given >= input.rank)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Invalid reduction dimension (%" PRId64 " for input with %d dimension(s)", given,
                                  input.rank);
        int axis = (int)(given < 0 ? given + input.rank : given);
        if (reduced[axis])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Invalid reduction arguments: Axes contains duplicate dimension: %d", axis);
        reduced[axis] = true;
    }
    *shape = MR_SCALAR;
    *divisor = 1;
    for (int i = 0; i < input.rank; i++) {
        if (reduced[i] && __builtin_mul_overflow(*divisor, input.dims[i], divisor))
            *divisor = 0; /* there are no elements */
        if (!reduced[i] || keep) shape->dims[shape->rank++] = reduced[i] ? 1 : input.dims[i];
    }
    return MR_OK;
}

static mr_status reduce_values(mr_kernel_call *call, reduction which, mr_dtype dtype, const void *source, void *target,
                               const bool *reduced, int64_t divisor, mr_error *error)
{
    reduce_job job = {.reducer = reducers[dtype][which], .size = mr_dtype_size(dtype), .source = source};
    if (dtype == MR_FLOAT && (which == SUM || which == MEAN)) {
        job.reducer.row = fast_sum_row;
        job.reducer.column = fast_sum_column;
        job.reducer.columns = fast_sum_columns;
    } else if (dtype == MR_FLOAT && which == LARGEST) {
        job.reducer.row = fast_largest_row;
        job.reducer.column = fast_largest_column;
    } else if (dtype == MR_FLOAT && which == SMALLEST) {
        job.reducer.row = fast_smallest_row;
        job.reducer.column = fast_smallest_column;
    }
    job.output_count = mr_tensor_count(&call->outputs[0]);
    if (mr_tensor_count(&call->inputs[0]) == 0) {
        job.reducer.start(target, job.output_count);
    } else {
        join_runs(&job, call->inputs[0].shape, reduced);
        MR_TRY(run_job(&job, call, target, error));
    }
    bool is_real = dtype == MR_FLOAT || dtype == MR_DOUBLE; /* of nothing, only real means are NaN */
    if (job.reducer.finish != nullptr && (is_real || divisor != 0))
        job.reducer.finish(target, job.output_count, divisor);
    return MR_OK;
}

mr_status mr_reduce_sum(mr_kernel_call *call, mr_dtype dtype, const void *source, void *target,
                        const bool reduced[MR_RANK_MAX], mr_error *error)
{
    return reduce_values(call, SUM, dtype, source, target, reduced, 1, error);
}

/* The mean of narrow integers is computed from their sum as int64, as in TensorFlow. */
static bool is_widened_mean(mr_dtype dtype, reduction which)
{
    return which == MEAN && (dtype == MR_INT32 || dtype == MR_INT16 || dtype == MR_INT8 || dtype == MR_UINT32 ||
                             dtype == MR_UINT16 || dtype == MR_UINT8);
}

static int64_t integer_at(const void *data, mr_dtype dtype, int64_t i)
{
    switch (dtype) {
    case MR_INT8:
        return ((const int8_t *)data)[i];
    case MR_INT16:
        return ((const int16_t *)data)[i];
    case MR_INT32:
        return ((const int32_t *)data)[i];
    case MR_UINT8:
        return ((const uint8_t *)data)[i];
    case MR_UINT16:
        return ((const uint16_t *)data)[i];
    default:
        assert(dtype == MR_UINT32);
        return ((const uint32_t *)data)[i];
    }
}

static mr_status mean_widened(mr_kernel_call *call, const bool *reduced, int64_t divisor, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int64_t count = mr_tensor_count(input), outputs = mr_tensor_count(&call->outputs[0]);
    size_t size = mr_dtype_size(input->dtype);
    int64_t *wide = calloc((size_t)(count + outputs + 1), sizeof *wide);
    if (wide == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    for (int64_t i = 0; i < count; i++) wide[i] = integer_at(input->data, input->dtype, i);
    mr_status status = reduce_values(call, MEAN, MR_INT64, wide, wide + count, reduced, divisor, error);
    for (int64_t i = 0; status == MR_OK && i < outputs; i++) /* little-endian: the low bytes */
        memcpy((char *)call->outputs[0].data + (size_t)i * size, &wide[count + i], size);
    free(wide);
    return status;
}

/* Half types are summed as floats. */
static mr_status reduce_halves(mr_kernel_call *call, reduction which, const bool *reduced, int64_t divisor,
                               mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int64_t count = mr_tensor_count(input), outputs = mr_tensor_count(&call->outputs[0]);
    float *wide = malloc((size_t)(count + outputs + 1) * sizeof *wide);
    if (wide == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    mr_halves_to_floats(wide, input->data, count, input->dtype);
    mr_status status = reduce_values(call, which, MR_FLOAT, wide, wide + count, reduced, divisor, error);
    if (status == MR_OK) mr_floats_to_halves(call->outputs[0].data, wide + count, outputs, input->dtype);
    free(wide);
    return status;
}

static mr_status reduce(mr_kernel_call *call, reduction which, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    mr_shape shape;
    bool reduced[MR_RANK_MAX];
    int64_t divisor;
    mr_dtype dtype = input->dtype == MR_BOOL ? MR_UINT8 : input->dtype;
    MR_TRY(mr_reduce_shape(call, &shape, reduced, &divisor, error));
    if (!mr_is_half(dtype) && reducers[dtype][which].start == nullptr) return mr_kernel_unsupported(call->node, error);
    bool unchanged = true;
    for (int i = 0; i < input->shape.rank; i++) unchanged = unchanged && (!reduced[i] || input->shape.dims[i] == 1);
    if (unchanged) return mr_tensor_reshape(input, shape, &call->outputs[0], error);
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    if (mr_is_half(dtype)) return reduce_halves(call, which, reduced, divisor, error);
    if (is_widened_mean(dtype, which)) return mean_widened(call, reduced, divisor, error);
    return reduce_values(call, which, dtype, input->data, call->outputs[0].data, reduced, divisor, error);
}

static mr_status reduce_sum(mr_kernel_call *call, mr_error *error)
{
    return reduce(call, SUM, error);
}

static mr_status reduce_mean(mr_kernel_call *call, mr_error *error)
{
    return reduce(call, MEAN, error);
}

static mr_status reduce_product(mr_kernel_call *call, mr_error *error)
{
    return reduce(call, PRODUCT, error);
}

static mr_status reduce_largest(mr_kernel_call *call, mr_error *error)
{
    return reduce(call, LARGEST, error);
}

static mr_status reduce_smallest(mr_kernel_call *call, mr_error *error)
{
    return reduce(call, SMALLEST, error);
}

/* Any is the maximum of bytes that are 0 or 1, All the minimum. Without elements, Any is false and All is true. */
static mr_status reduce_any(mr_kernel_call *call, mr_error *error)
{
    return reduce(call, LARGEST, error);
}

static mr_status reduce_all(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(reduce(call, SMALLEST, error));
    if (mr_tensor_count(&call->inputs[0]) == 0)
        memset(call->outputs[0].data, true, mr_tensor_size_bytes(&call->outputs[0]));
    return MR_OK;
}

/* The gradient of the bias: the sum over all dimensions except the channels. */
static mr_status bias_add_grad(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape = call->inputs[0].shape;
    bool reduced[MR_RANK_MAX];
    bool nchw = mr_string_equal(mr_attr_string_or(call->node->attrs, "data_format", "NHWC"), MR_STR("NCHW"));
    int channel = nchw ? MR_MIN(1, shape.rank - 1) : shape.rank - 1;
    mr_dtype dtype = call->inputs[0].dtype;
    char text[MR_SHAPE_TEXT_SIZE];
    if (shape.rank < 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input tensor must be at least 2D: %s",
                              mr_shape_text(shape, text, sizeof text));
    if (!mr_is_half(dtype) && reducers[dtype][SUM].start == nullptr) return mr_kernel_unsupported(call->node, error);
    for (int i = 0; i < MR_RANK_MAX; i++) reduced[i] = i != channel;
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(shape.dims[channel]), error));
    if (mr_is_half(dtype)) return reduce_halves(call, SUM, reduced, 1, error);
    return reduce_values(call, SUM, dtype, call->inputs[0].data, call->outputs[0].data, reduced, 1, error);
}

/* ---- Rows ---- */

/* For chains of elementwise operators (base/elementwise.h): what reduce_units does with a row. */
#define ROW(name, type, start, row_function, done)                                                                     \
    static void name(void *target, const void *row, int64_t count)                                                     \
    {                                                                                                                  \
        type result;                                                                                                   \
        start(&result, 1);                                                                                             \
        row_function(&result, row, count);                                                                             \
        *(type *)target = done;                                                                                        \
    }
ROW(row_sum_float, float, sum_float_start, fast_sum_row, result)
ROW(row_mean_float, float, sum_float_start, fast_sum_row, result / (float)count)
ROW(row_largest_float, float, largest_float_start, fast_largest_row, result)
ROW(row_smallest_float, float, smallest_float_start, fast_smallest_row, result)
ROW(row_sum_double, double, sum_double_start, sum_double_row, result)
ROW(row_mean_double, double, sum_double_start, sum_double_row, result / (double)count)
ROW(row_largest_double, double, largest_double_start, largest_double_row, result)
ROW(row_smallest_double, double, smallest_double_start, smallest_double_row, result)

#define DESCRIBE(name)                                                                                                 \
    static bool name##_describe(mr_dtype dtype, mr_elementwise *elementwise)                                           \
    {                                                                                                                  \
        *elementwise = (mr_elementwise){.reduce = dtype == MR_FLOAT ? name##_float : name##_double};                   \
        return dtype == MR_FLOAT || dtype == MR_DOUBLE;                                                                \
    }
DESCRIBE(row_sum)
DESCRIBE(row_mean)
DESCRIBE(row_largest)
DESCRIBE(row_smallest)

static const mr_kernel kernels[] = {
    {.op = "Sum", .run = reduce_sum, .host_inputs = 1 << 1, .elementwise = row_sum_describe},
    {.op = "Mean", .run = reduce_mean, .host_inputs = 1 << 1, .elementwise = row_mean_describe},
    {.op = "Prod", .run = reduce_product, .host_inputs = 1 << 1},
    {.op = "Max", .run = reduce_largest, .host_inputs = 1 << 1, .elementwise = row_largest_describe},
    {.op = "Min", .run = reduce_smallest, .host_inputs = 1 << 1, .elementwise = row_smallest_describe},
    {.op = "Any", .run = reduce_any, .host_inputs = 1 << 1},
    {.op = "All", .run = reduce_all, .host_inputs = 1 << 1},
    {.op = "BiasAddGrad", .run = bias_add_grad},
};
MR_KERNEL_FAMILY(reduce);
