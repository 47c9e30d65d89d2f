/* Accumulators of gradients that are rows with indices. */
#include "graph/state/accumulator.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Checks ---- */

static mr_status mismatch(const mr_kernel_call *call, const char *what, int64_t expected, int64_t found,
                          mr_error *error)
{
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Shape mismatch: expected %s %lld, got %lld", what,
                          (long long)expected, (long long)found);
}

static mr_status size_mismatch(const mr_kernel_call *call, const char *what, int32_t dim, int64_t expected,
                               int64_t found, mr_error *error)
{
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "Shape mismatch: expected %s dim %d to be %lld, got %lld", what, (int)dim,
                          (long long)expected, (long long)found);
}

static mr_status check_inputs(const mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *indices = &call->inputs[2], *values = &call->inputs[3];
    char text[MR_SHAPE_TEXT_SIZE];
    if (indices->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Input indices should be vector but received shape: %s",
                              mr_shape_text(indices->shape, text, sizeof text));
    if (values->shape.rank < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Values cannot be 0-dimensional.");
    if (values->shape.dims[0] != indices->shape.dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Expected %lld non-empty input values, got %lld",
                              (long long)indices->shape.dims[0], (long long)values->shape.dims[0]);
    return MR_OK;
}

static mr_status check_declared(const mr_kernel_call *call, const mr_accumulator *a, mr_error *error)
{
    const mr_tensor *shape = &call->inputs[4];
    int64_t count = mr_tensor_count(shape);
    if (!mr_attr_bool_or(call->node->attrs, "has_known_shape", false)) return MR_OK;
    if (a->shape.rank > count) return mismatch(call, "shape rank at least", a->shape.rank, count, error);
    for (int32_t i = 0; i < a->shape.rank; i++) {
        int64_t size = mr_tensor_int64s(shape)[i];
        if (a->shape.dims[i] != -1 && a->shape.dims[i] != size)
            return size_mismatch(call, "shape", i, a->shape.dims[i], size, error);
    }
    return MR_OK;
}

static mr_status check_indices(const mr_kernel_call *call, const mr_accumulator *a, mr_error *error)
{
    const mr_tensor *indices = &call->inputs[2];
    if (a->shape.rank < 1 || a->shape.dims[0] == -1) return MR_OK;
    for (int64_t i = 0; i < indices->shape.dims[0]; i++)
        if (mr_tensor_int64s(indices)[i] >= a->shape.dims[0])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Shape mismatch: index of slice %lld exceeded limits of shape; index is %lld "
                                  "exceeded %lld",
                                  (long long)i, (long long)mr_tensor_int64s(indices)[i], (long long)a->shape.dims[0]);
    return MR_OK;
}

static mr_status check_values(const mr_kernel_call *call, const mr_accumulator *a, mr_error *error)
{
    mr_shape shape = call->inputs[3].shape, sum = a->sum.shape;
    if (a->count > 0) {
        if (sum.rank != shape.rank) return mismatch(call, "values rank", sum.rank, shape.rank, error);
        for (int32_t i = 1; i < sum.rank; i++)
            if (sum.dims[i] != shape.dims[i])
                return size_mismatch(call, "values", i, sum.dims[i], shape.dims[i], error);
        return MR_OK;
    }
    if (a->shape.rank > shape.rank) return mismatch(call, "values rank at least", a->shape.rank, shape.rank, error);
    for (int32_t i = 1; i < a->shape.rank; i++)
        if (a->shape.dims[i] != -1 && a->shape.dims[i] != shape.dims[i])
            return size_mismatch(call, "values", i, a->shape.dims[i], shape.dims[i], error);
    return MR_OK;
}

/* ---- Sums ---- */

/* The first gradient: its rows, each counted once. Or the sum of it and of those before. */
typedef struct merged {
    mr_tensor sum;
    int64_t *indices;
    int32_t *counts;
    int64_t row_count;
} merged;

static void copy_row(const merged *m, const mr_tensor *source, int64_t row, size_t row_bytes)
{
    if (row_bytes == 0) return;
    memcpy((char *)m->sum.data + (size_t)m->row_count * row_bytes, (const char *)source->data + (size_t)row * row_bytes,
           row_bytes);
}

static void add_row(const mr_kernel_call *call, const merged *m, const mr_tensor *source, int64_t row, int64_t width,
                    size_t row_bytes)
{
    mr_tensor target = {.dtype = source->dtype, .shape = MR_SHAPE(width)}, added = target;
    if (row_bytes == 0) return;
    target.data = (char *)m->sum.data + (size_t)m->row_count * row_bytes;
    added.data = (char *)source->data + (size_t)row * row_bytes;
    (void)mr_members_add(call, &target, &added, &target, nullptr); /* in place: it cannot fail */
}

/* Both have their rows in the order of their indices; otherwise rows with the same index may stay apart, as in
 * TensorFlow. */
static void merge(const mr_kernel_call *call, const mr_accumulator *a, merged *m, int64_t width, size_t row_bytes)
{
    const mr_tensor *values = &call->inputs[3];
    const int64_t *indices = mr_tensor_int64s(&call->inputs[2]);
    int64_t i = 0, j = 0, count = values->shape.dims[0];
    while (i < a->row_count || j < count) {
        bool from_sum = j == count || (i < a->row_count && a->indices[i] <= indices[j]);
        bool from_gradient = i == a->row_count || (j < count && indices[j] <= a->indices[i]);
        m->indices[m->row_count] = from_sum ? a->indices[i] : indices[j];
        m->counts[m->row_count] = (from_sum ? a->counts[i] : 0) + from_gradient;
        if (from_sum)
            copy_row(m, &a->sum, i, row_bytes);
        else
            copy_row(m, values, j, row_bytes);
        if (from_sum && from_gradient) add_row(call, m, values, j, width, row_bytes);
        i += from_sum;
        j += from_gradient;
        m->row_count++;
    }
}

/* The number of rows of the sum, by a merge of the indices alone. */
static int64_t count_merged(const mr_kernel_call *call, const mr_accumulator *a)
{
    const int64_t *indices = mr_tensor_int64s(&call->inputs[2]);
    int64_t i = 0, j = 0, rows = 0, count = call->inputs[2].shape.dims[0];
    for (; i < a->row_count && j < count; rows++) {
        bool from_sum = a->indices[i] <= indices[j], from_gradient = indices[j] <= a->indices[i];
        i += from_sum;
        j += from_gradient;
    }
    return rows + (a->row_count - i) + (count - j);
}

static mr_status add_rows(const mr_kernel_call *call, mr_accumulator *a, mr_error *error)
{
    mr_shape shape = call->inputs[3].shape;
    int64_t rows = count_merged(call, a), width = mr_dims_product(&shape, 1, shape.rank);
    size_t room = (size_t)MR_MAX(rows, 1);
    merged m = {.indices = malloc(room * sizeof *m.indices), .counts = malloc(room * sizeof *m.counts)};
    shape.dims[0] = rows;
    mr_status status = m.indices && m.counts ? MR_OK : mr_fail_memory(error, room * sizeof *m.indices);
    if (status == MR_OK) status = mr_tensor_init_on(&m.sum, call->device, a->dtype, shape, error);
    if (status != MR_OK) {
        free(m.indices);
        free(m.counts);
        return status;
    }
    merge(call, a, &m, width, mr_tensor_count(&m.sum) > 0 ? (size_t)width * mr_dtype_size(a->dtype) : 0);
    assert(m.row_count == rows); /* memory was allocated for as many */
    mr_tensor_deinit(&a->sum);
    free(a->indices);
    free(a->counts);
    a->sum = m.sum;
    a->indices = m.indices;
    a->counts = m.counts;
    a->row_count = m.row_count;
    return MR_OK;
}

static mr_status add_sparse(const mr_kernel_call *call, mr_accumulator *a, mr_error *error)
{
    MR_TRY(check_inputs(call, error));
    MR_TRY(check_declared(call, a, error));
    MR_TRY(check_indices(call, a, error));
    MR_TRY(check_values(call, a, error));
    return add_rows(call, a, error);
}

/* ---- Taking ---- */

static mr_status fill_outputs(mr_kernel_call *call, const mr_accumulator *a, mr_error *error)
{
    mr_shape shape = a->sum.shape;
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(a->row_count), error));
    mr_status status = mr_kernel_output(call, 2, MR_SHAPE(shape.rank), error);
    if (status != MR_OK) {
        mr_tensor_deinit(&call->outputs[0]);
        call->outputs[0] = (mr_tensor){0};
        return status;
    }
    if (a->row_count > 0)
        memcpy(mr_tensor_int64s(&call->outputs[0]), a->indices, (size_t)a->row_count * sizeof *a->indices);
    int64_t *sizes = mr_tensor_int64s(&call->outputs[2]);
    sizes[0] = a->shape.rank > 0 ? a->shape.dims[0] : -1;
    for (int32_t i = 1; i < shape.rank; i++) sizes[i] = shape.dims[i];
    return MR_OK;
}

static mr_status take_sparse(mr_kernel_call *call, mr_accumulator *a, mr_error *error)
{
    MR_TRY(fill_outputs(call, a, error));
    assert(a->sum.dtype == a->dtype && a->sum.shape.dims[0] == a->row_count);
    int64_t width = a->row_count > 0 ? mr_tensor_count(&a->sum) / a->row_count : 0;
    size_t row_bytes = (size_t)width * mr_dtype_size(a->dtype);
    for (int64_t i = 0; a->takes_mean && width > 0 && i < a->row_count; i++)
        mr_accumulator_divide(a->dtype, (char *)a->sum.data + (size_t)i * row_bytes, width, a->counts[i]);
    call->outputs[1] = a->sum;
    a->sum = (mr_tensor){0};
    return MR_OK;
}

static mr_status apply_gradient(mr_kernel_call *call, mr_error *error)
{
    mr_accumulator *a;
    MR_TRY(mr_accumulator_at(call, true, call->inputs[3].dtype, &a, error));
    return mr_accumulator_apply(call, a, add_sparse, error);
}

static mr_status take_gradient(mr_kernel_call *call, mr_error *error)
{
    mr_accumulator *a;
    MR_TRY(mr_accumulator_at(call, true, call->node->output_dtypes[1], &a, error));
    return mr_accumulator_take(call, a, take_sparse, error);
}

static const mr_kernel kernels[] = {
    {.op = "SparseAccumulatorApplyGradient", .run = apply_gradient},
    {.op = "SparseAccumulatorTakeGradient", .run = take_gradient},
};
const mr_kernel_table mr_state_kernels_accumulator_sparse = {kernels, sizeof kernels / sizeof kernels[0]};
