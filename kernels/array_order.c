/* TopK and NthElement: parts of the sorted order of each row. The order is total: of equal elements the first comes
 * first, and a NaN is larger than every number; but see top_row for one element. */
#include "kernels/common.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The order of two elements; larger(a, b) is a strict weak order. */
#define IDENTITY(x) (x)
#define FLOATING_LARGER(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))
#define INTEGER_LARGER(a, b) ((a) > (b))

/* Defines for a type:
 * top_row   stores the indices of the k largest elements of a row, largest first. Uses a heap of k indices, whose top
 *           is the smallest of them
 * nth_row   reorders scratch, a copy of a row, until the n-th smallest element (from 0) is at n, and returns it */
#define ORDER(suffix, type, LOAD, LARGER)                                                                              \
    static inline bool before_##suffix(const type *row, int64_t a, int64_t b)                                          \
    {                                                                                                                  \
        if (LARGER(LOAD(row[a]), LOAD(row[b]))) return true;                                                           \
        return !LARGER(LOAD(row[b]), LOAD(row[a])) && a < b;                                                           \
    }                                                                                                                  \
    static void sift_##suffix(const type *row, int64_t *heap, int64_t size, int64_t at)                                \
    {                                                                                                                  \
        for (int64_t child; (child = 2 * at + 1) < size; at = child) {                                                 \
            if (child + 1 < size && before_##suffix(row, heap[child], heap[child + 1])) child++;                       \
            if (!before_##suffix(row, heap[at], heap[child])) return;                                                  \
            int64_t moved = heap[at];                                                                                  \
            heap[at] = heap[child];                                                                                    \
            heap[child] = moved;                                                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    static void top_row_##suffix(const void *data, int64_t columns, int64_t k, int64_t *heap)                          \
    {                                                                                                                  \
        const type *row = data;                                                                                        \
        for (int64_t i = 0; i < k; i++) heap[i] = i;                                                                   \
        if (k == 1) {                                                                                                  \
            int64_t last = 0; /* of the maximum after each element, as TensorFlow computes it: a NaN restarts it */    \
            for (int64_t i = 1; i < columns; i++)                                                                      \
                if (!(LOAD(row[i]) < LOAD(row[last]))) last = i;                                                       \
            while (LOAD(row[heap[0]]) != LOAD(row[last]) && heap[0] < last) heap[0]++;                                 \
            if (LOAD(row[last]) != LOAD(row[last])) heap[0] = 0;                                                       \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = k / 2 - 1; i >= 0; i--) sift_##suffix(row, heap, k, i);                                       \
        for (int64_t i = k; i < columns; i++) {                                                                        \
            if (!before_##suffix(row, i, heap[0])) continue;                                                           \
            heap[0] = i;                                                                                               \
            sift_##suffix(row, heap, k, 0);                                                                            \
        }                                                                                                              \
        for (int64_t last = k - 1; last > 0; last--) {                                                                 \
            int64_t smallest = heap[0];                                                                                \
            heap[0] = heap[last];                                                                                      \
            heap[last] = smallest;                                                                                     \
            sift_##suffix(row, heap, last, 0);                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    static void nth_row_##suffix(void *scratch, int64_t columns, int64_t n, void *result)                              \
    {                                                                                                                  \
        type *row = scratch;                                                                                           \
        uint64_t state = 1;                                                                                            \
        for (int64_t low = 0, high = columns - 1; low < high;) {                                                       \
            state = state * 6364136223846793005u + 1442695040888963407u; /* no input is the worst case every time */   \
            type pivot = row[low + (int64_t)((state >> 33) % (uint64_t)(high - low + 1))];                             \
            int64_t less = low, at = low, more = high;                                                                 \
            while (at <= more) {                                                                                       \
                type element = row[at];                                                                                \
                if (LARGER(LOAD(pivot), LOAD(element))) {                                                              \
                    row[at++] = row[less];                                                                             \
                    row[less++] = element;                                                                             \
                } else if (LARGER(LOAD(element), LOAD(pivot))) {                                                       \
                    row[at] = row[more];                                                                               \
                    row[more--] = element;                                                                             \
                } else {                                                                                               \
                    at++;                                                                                              \
                }                                                                                                      \
            }                                                                                                          \
            if (n >= less && n <= more) break;                                                                         \
            if (n < less)                                                                                              \
                high = less - 1;                                                                                       \
            else                                                                                                       \
                low = more + 1;                                                                                        \
        }                                                                                                              \
        *(type *)result = row[n];                                                                                      \
    }

ORDER(float, float, IDENTITY, FLOATING_LARGER)
ORDER(double, double, IDENTITY, FLOATING_LARGER)
ORDER(half, uint16_t, mr_half_to_float, FLOATING_LARGER)
ORDER(bfloat16, uint16_t, mr_bfloat16_to_float, FLOATING_LARGER)
ORDER(int8, int8_t, IDENTITY, INTEGER_LARGER)
ORDER(int16, int16_t, IDENTITY, INTEGER_LARGER)
ORDER(int32, int32_t, IDENTITY, INTEGER_LARGER)
ORDER(int64, int64_t, IDENTITY, INTEGER_LARGER)
ORDER(uint8, uint8_t, IDENTITY, INTEGER_LARGER)
ORDER(uint16, uint16_t, IDENTITY, INTEGER_LARGER)
ORDER(uint32, uint32_t, IDENTITY, INTEGER_LARGER)
ORDER(uint64, uint64_t, IDENTITY, INTEGER_LARGER)

typedef struct order {
    void (*top)(const void *row, int64_t columns, int64_t k, int64_t *heap);
    void (*nth)(void *scratch, int64_t columns, int64_t n, void *result);
} order;

#define ROW(dtype, suffix) [dtype] = {top_row_##suffix, nth_row_##suffix}
static const order orders[MR_DTYPE_COUNT] = {
    ROW(MR_FLOAT, float), ROW(MR_DOUBLE, double), ROW(MR_HALF, half),     ROW(MR_BFLOAT16, bfloat16),
    ROW(MR_INT8, int8),   ROW(MR_INT16, int16),   ROW(MR_INT32, int32),   ROW(MR_INT64, int64),
    ROW(MR_UINT8, uint8), ROW(MR_UINT16, uint16), ROW(MR_UINT32, uint32), ROW(MR_UINT64, uint64),
};

/* Rows are processed in pieces; each piece has scratch memory of its own. */
typedef struct order_job {
    const mr_tensor *input;
    mr_tensor *values, *indices;
    const order *order;
    int64_t columns, k;
    bool failed; /* out of memory */
} order_job;

static int64_t rows_in_piece(int64_t columns)
{
    return MR_MAX(1, MR_GRAIN / 4 / MR_MAX(columns, 1));
}

static void top_rows(void *context, int64_t begin, int64_t end)
{
    order_job *job = context;
    size_t size = mr_dtype_size(job->input->dtype);
    int64_t *heap = malloc((size_t)job->k * sizeof *heap);
    if (heap == nullptr) {
        __atomic_store_n(&job->failed, true, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t r = begin; r < end; r++) {
        const char *row = (const char *)job->input->data + (size_t)(r * job->columns) * size;
        job->order->top(row, job->columns, job->k, heap);
        for (int64_t i = 0; i < job->k; i++) {
            int64_t to = r * job->k + i;
            memcpy((char *)job->values->data + (size_t)to * size, row + (size_t)heap[i] * size, size);
            if (job->indices->dtype == MR_INT64)
                ((int64_t *)job->indices->data)[to] = heap[i];
            else if (job->indices->dtype == MR_INT32)
                ((int32_t *)job->indices->data)[to] = (int32_t)heap[i];
            else
                ((int16_t *)job->indices->data)[to] = (int16_t)heap[i];
        }
    }
    free(heap);
}

/* k is an input of any integer type, or an attr. */
static mr_status read_k(mr_kernel_call *call, int64_t *k, mr_error *error)
{
    *k = mr_attr_int_or(call->node->attrs, "k", 0);
    if (call->node->input_count > 1) {
        const mr_tensor *given = &call->inputs[1];
        char text[MR_SHAPE_TEXT_SIZE];
        if (given->shape.rank != 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "k must be scalar, got shape %s",
                                  mr_shape_text(given->shape, text, sizeof text));
        if (given->dtype == MR_INT16)
            *k = *(const int16_t *)given->data;
        else
            MR_TRY(mr_kernel_int(call, 1, "k", k, error));
    }
    if (*k < 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Need k >= 0, got %" PRId64, *k);
    return MR_OK;
}

static mr_status top_k(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    mr_shape shape = input->shape;
    int64_t k;
    char text[MR_SHAPE_TEXT_SIZE];
    MR_TRY(read_k(call, &k, error));
    if (shape.rank < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be >= 1-D, got shape %s",
                              mr_shape_text(shape, text, sizeof text));
    int64_t columns = shape.dims[shape.rank - 1];
    if (columns < k)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "input must have at least k columns. Had %" PRId64 ", needed %" PRId64, columns, k);
    if (orders[input->dtype].top == nullptr || (call->node->output_dtypes[1] == MR_INT32 && columns > INT32_MAX))
        return mr_kernel_unsupported(call->node, error);
    shape.dims[shape.rank - 1] = k;
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    MR_TRY(mr_kernel_output(call, 1, shape, error));
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    order_job job = {input, &call->outputs[0], &call->outputs[1], &orders[input->dtype], columns, k, false};
    mr_pool_for(call->device->pool, mr_tensor_count(input) / columns, rows_in_piece(columns), top_rows, &job);
    if (job.failed) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    return MR_OK;
}

static void nth_rows(void *context, int64_t begin, int64_t end)
{
    order_job *job = context;
    size_t size = mr_dtype_size(job->input->dtype), bytes = (size_t)job->columns * size;
    char *scratch = malloc(bytes);
    if (scratch == nullptr) {
        __atomic_store_n(&job->failed, true, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t r = begin; r < end; r++) {
        memcpy(scratch, (const char *)job->input->data + (size_t)r * bytes, bytes);
        job->order->nth(scratch, job->columns, job->k, (char *)job->values->data + (size_t)r * size);
    }
    free(scratch);
}

static mr_status nth_element(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    mr_shape shape = input->shape;
    int64_t n;
    if (call->inputs[1].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "N must be scalar but has rank %d",
                              call->inputs[1].shape.rank);
    MR_TRY(mr_kernel_int(call, 1, "n", &n, error));
    if (n < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "n must be non-negative but is %" PRId64, n);
    if (shape.rank < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input must be at least rank 1 but is rank 0");
    int64_t columns = shape.dims[--shape.rank];
    shape.dims[shape.rank] = 0;
    if (columns <= n)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input must have last dimension > n = %" PRId64,
                              n);
    if (orders[input->dtype].nth == nullptr) return mr_kernel_unsupported(call->node, error);
    if (mr_attr_bool_or(call->node->attrs, "reverse", false)) n = columns - 1 - n;
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    order_job job = {
        .input = input, .values = &call->outputs[0], .order = &orders[input->dtype], .columns = columns, .k = n};
    mr_pool_for(call->device->pool, mr_tensor_count(input) / columns, rows_in_piece(columns), nth_rows, &job);
    if (job.failed) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "TopK", .run = top_k},
    {.op = "TopKV2", .run = top_k, .host_inputs = 1 << 1},
    {.op = "NthElement", .run = nth_element, .host_inputs = 1 << 1},
};
MR_KERNEL_FAMILY(array_order);
