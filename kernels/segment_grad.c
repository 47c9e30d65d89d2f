/* Gradients of the reductions of indexed rows: row indices[i] of the result receives row segment_ids[i] of grad,
 * divided by the size of the segment or its square root. The second form returns only the rows that receive
 * something. */
#include "kernels/indices.h"
#include "kernels/segment_rows.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static mr_status check(mr_kernel_call *call, int64_t *rows, mr_error *error)
{
    const mr_tensor *grad = &call->inputs[0], *ids = &call->inputs[2];
    int64_t count = mr_tensor_count(ids);
    if (call->inputs[1].shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "indices should be a vector.");
    if (ids->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "segment_ids should be a vector.");
    if (call->inputs[3].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "output_dim0 should be a scalar.");
    if (mr_tensor_count(&call->inputs[1]) != count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "segment_ids and indices should have same size.");
    if (grad->shape.rank < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Shape must be at least rank 1");
    MR_TRY(mr_kernel_int(call, 3, "output_dim0", rows, error));
    if (*rows < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Expected a non-negative size, got %" PRId64,
                              *rows);
    int64_t segments = grad->shape.dims[0];
    if (count > 0 && mr_index_at(ids, count - 1) >= segments)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Invalid number of segments");
    for (int64_t i = 0; i < count; i++) {
        int64_t id = mr_index_at(ids, i), index = mr_index_at(&call->inputs[1], i);
        if (id < 0 || id >= segments)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Segment id %" PRId64 " out of range [0, %" PRId64 ").", id, segments);
        if (index < 0 || index >= *rows)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Index %" PRId64 " out of range [0, %" PRId64 ").", index, *rows);
    }
    return MR_OK;
}

/* Scratch memory: a scaled row of grad, the size of each segment, and for the second form the output row of each index
 * and the sorted indices. */
typedef struct scratch {
    void *row;
    int64_t *sizes, *places, *order;
} scratch;

static mr_status scratch_init(mr_kernel_call *call, scratch *s, size_t row_bytes, mr_error *error)
{
    size_t count = (size_t)mr_tensor_count(&call->inputs[2]);
    *s = (scratch){calloc(row_bytes + 1, 1), calloc((size_t)call->inputs[0].shape.dims[0] + 1, sizeof(int64_t)),
                   calloc(count + 1, sizeof(int64_t)), calloc(count + 1, sizeof(int64_t))};
    if (s->row == nullptr || s->sizes == nullptr || s->places == nullptr || s->order == nullptr)
        return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    return MR_OK;
}

static void scratch_deinit(scratch *s)
{
    free(s->row);
    free(s->sizes);
    free(s->places);
    free(s->order);
}

static int compare_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The distinct indices in ascending order, and for each index its position among them. */
static int64_t distinct(const mr_tensor *indices, scratch *s)
{
    int64_t count = mr_tensor_count(indices), unique = 0;
    for (int64_t i = 0; i < count; i++) s->order[i] = mr_index_at(indices, i);
    qsort(s->order, (size_t)count, sizeof *s->order, compare_int64);
    for (int64_t i = 0; i < count; i++)
        if (i == 0 || s->order[i] != s->order[unique - 1]) s->order[unique++] = s->order[i];
    for (int64_t i = 0; i < count; i++) {
        int64_t index = mr_index_at(indices, i);
        const int64_t *found = bsearch(&index, s->order, (size_t)unique, sizeof *s->order, compare_int64);
        s->places[i] = found - s->order;
    }
    return unique;
}

static mr_status add_rows(mr_kernel_call *call, mr_segment_divisor divisor, int64_t rows, scratch *s, bool is_distinct,
                          mr_error *error)
{
    const mr_tensor *grad = &call->inputs[0], *indices = &call->inputs[1], *ids = &call->inputs[2];
    const mr_segment_rows *functions = mr_segment_rows_find(MR_SEGMENT_SUM, grad->dtype);
    int64_t count = mr_tensor_count(ids), inner = mr_dims_product(&grad->shape, 1, grad->shape.rank);
    size_t bytes = (size_t)inner * mr_dtype_size(grad->dtype);
    mr_shape shape = grad->shape;
    shape.dims[0] = rows;
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    char *target = call->outputs[0].data;
    memset(target, 0, mr_tensor_size_bytes(&call->outputs[0]));
    for (int64_t i = 0; i < count; i++) s->sizes[mr_index_at(ids, i)]++;
    for (int64_t i = 0; i < count; i++) {
        int64_t id = mr_index_at(ids, i), row = is_distinct ? s->places[i] : mr_index_at(indices, i);
        const char *from = (const char *)grad->data + (size_t)id * bytes;
        if (divisor != MR_SEGMENT_UNDIVIDED && s->sizes[id] > 1) {
            memcpy(s->row, from, bytes);
            functions->divide(s->row, inner, mr_segment_divisor_of(divisor, s->sizes[id]));
            from = s->row;
        }
        functions->combine(target + (size_t)row * bytes, from, inner);
    }
    return MR_OK;
}

static mr_status sparse_grad(mr_kernel_call *call, mr_segment_divisor divisor, bool is_distinct, mr_error *error)
{
    const mr_tensor *grad = &call->inputs[0];
    int64_t rows = 0;
    scratch s;
    MR_TRY(check(call, &rows, error));
    size_t row_bytes = (size_t)mr_dims_product(&grad->shape, 1, grad->shape.rank) * mr_dtype_size(grad->dtype);
    if (mr_tensor_count(grad) == 0) row_bytes = 0;
    mr_status status = scratch_init(call, &s, row_bytes, error);
    if (status == MR_OK && is_distinct) rows = distinct(&call->inputs[1], &s);
    if (status == MR_OK) status = add_rows(call, divisor, rows, &s, is_distinct, error);
    if (status == MR_OK && is_distinct) status = mr_kernel_put_ints(call, 1, MR_SHAPE(rows), s.order, error);
    scratch_deinit(&s);
    return status;
}

#define RUN(name, divisor, is_distinct)                                                                                \
    static mr_status name(mr_kernel_call *call, mr_error *error)                                                       \
    {                                                                                                                  \
        return sparse_grad(call, divisor, is_distinct, error);                                                         \
    }
RUN(sum_grad, MR_SEGMENT_UNDIVIDED, false)
RUN(mean_grad, MR_SEGMENT_BY_COUNT, false)
RUN(root_grad, MR_SEGMENT_BY_ROOT, false)
RUN(sum_grad_v2, MR_SEGMENT_UNDIVIDED, true)
RUN(mean_grad_v2, MR_SEGMENT_BY_COUNT, true)
RUN(root_grad_v2, MR_SEGMENT_BY_ROOT, true)

static const mr_kernel kernels[] = {
    {.op = "SparseSegmentSumGrad", .run = sum_grad, .host_inputs = 1 << 3},
    {.op = "SparseSegmentMeanGrad", .run = mean_grad, .host_inputs = 1 << 3},
    {.op = "SparseSegmentSqrtNGrad", .run = root_grad, .host_inputs = 1 << 3},
    {.op = "SparseSegmentSumGradV2", .run = sum_grad_v2, .host_inputs = 1 << 3},
    {.op = "SparseSegmentMeanGradV2", .run = mean_grad_v2, .host_inputs = 1 << 3},
    {.op = "SparseSegmentSqrtNGradV2", .run = root_grad_v2, .host_inputs = 1 << 3},
};
MR_KERNEL_FAMILY(segment_grad);
