/* Arithmetic of sparse tensors: sums, minimum and maximum of two, with a dense tensor, reductions, softmax. Single
 * elements are changed with the functions of kernels/change.h. */
#include "kernels/sparse.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(...) mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, __VA_ARGS__)

static const char zeros[16];

static char *element(void *data, int64_t i, size_t size)
{
    return (char *)data + (size_t)i * size;
}

/* The magnitude of an element. */
static double magnitude(mr_dtype dtype, const void *data)
{
    switch (dtype) {
    case MR_FLOAT:
        return fabs((double)*(const float *)data);
    case MR_DOUBLE:
        return fabs(*(const double *)data);
    case MR_HALF:
        return fabs((double)mr_half_to_float(*(const uint16_t *)data));
    case MR_BFLOAT16:
        return fabs((double)mr_bfloat16_to_float(*(const uint16_t *)data));
    case MR_INT8:
        return abs(*(const int8_t *)data);
    case MR_INT16:
        return abs(*(const int16_t *)data);
    case MR_INT32:
        return fabs((double)*(const int32_t *)data);
    case MR_INT64:
        return fabs((double)*(const int64_t *)data);
    case MR_COMPLEX64:
        return hypot((double)((const float *)data)[0], (double)((const float *)data)[1]);
    case MR_COMPLEX128:
        return hypot(((const double *)data)[0], ((const double *)data)[1]);
    default:
        return 0;
    }
}

/* ---- Two sparse tensors ---- */

static mr_status read_two(const mr_kernel_call *call, mr_sparse *a, mr_sparse *b, mr_error *error)
{
    bool adds = call->node->output_count == 3;
    MR_TRY(mr_sparse_read_parts(call, 0, 1, 2, a, error));
    if (!adds) MR_TRY(mr_sparse_check_inside(call, a, error));
    MR_TRY(mr_sparse_read_parts(call, 3, 4, 5, b, error));
    if (!adds) MR_TRY(mr_sparse_check_inside(call, b, error));
    char left[MR_SPARSE_TEXT_SIZE], right[MR_SPARSE_TEXT_SIZE];
    if (a->rank == 0 && b->rank == 0) return FAIL("%s must not be empty", adds ? "Tesors" : "Tensors");
    if (a->rank != b->rank && adds)
        return FAIL("Input indices must have the same dimension, got %" PRId64 " and %" PRId64, a->rank, b->rank);
    if (a->rank != b->rank)
        return FAIL("Operands do not have the same ranks; got shapes: %s and %s",
                    mr_sparse_text(a->shape, a->rank, " ", left, sizeof left),
                    mr_sparse_text(b->shape, b->rank, " ", right, sizeof right));
    for (int64_t d = 0; d < a->rank; d++)
        if (a->shape[d] != b->shape[d])
            return FAIL("Operands' shapes do not match: got %" PRId64 " and %" PRId64 " for dimension %" PRId64,
                        a->shape[d], b->shape[d], d);
    return MR_OK;
}

/* An element of the union of two sorted lists of rows: positions, or -1. */
typedef struct pair {
    int64_t a, b;
} pair;

static int64_t merge_rows(const mr_sparse *a, const mr_sparse *b, pair *pairs)
{
    int64_t i = 0, j = 0, count = 0;
    while (i < a->count || j < b->count) {
        int order = i == a->count ? 1
                    : j == b->count
                        ? -1
                        : mr_sparse_compare(a->indices + i * a->rank, b->indices + j * a->rank, nullptr, a->rank);
        pairs[count].a = order <= 0 ? i++ : -1;
        pairs[count++].b = order >= 0 ? j++ : -1;
    }
    return count;
}

/* Combines the values of each pair; leaves out sums with a magnitude below `least`, or without one. */
static mr_status combine(mr_kernel_call *call, const mr_sparse *a, const mr_sparse *b, pair *pairs, int64_t count,
                         mr_change change, double least, mr_error *error)
{
    mr_dtype dtype = a->values->dtype;
    size_t size = mr_dtype_size(dtype), row_bytes = (size_t)a->rank * sizeof(int64_t);
    mr_change_function function = mr_change_find(change, dtype);
    int64_t kept = 0;
    char value[16];
    if (!function) return FAIL("%s has no such operation", mr_dtype_name(dtype));
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1) {
            MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(kept, a->rank), error));
            MR_TRY(mr_kernel_output(call, 1, MR_SHAPE(kept), error));
        }
        int64_t at = 0;
        for (int64_t i = 0; i < count; i++) {
            const pair *p = &pairs[i];
            memcpy(value, p->a >= 0 ? element(a->values->data, p->a, size) : zeros, size);
            const void *other = p->b >= 0 ? element(b->values->data, p->b, size) : zeros;
            bool replaces = change != MR_CHANGE_ADD && magnitude(dtype, other) != magnitude(dtype, other); /* by NaN */
            if (replaces)
                memcpy(value, other, size);
            else if (change != MR_CHANGE_ADD || p->b >= 0)
                function(value, other, 1, 1);
            bool is_sum = change == MR_CHANGE_ADD && p->a >= 0 && p->b >= 0;
            if (is_sum && !(magnitude(dtype, value) >= least)) continue;
            if (pass == 1) {
                memcpy(element(call->outputs[1].data, at, size), value, size);
                if (row_bytes > 0)
                    memcpy((int64_t *)call->outputs[0].data + at * a->rank,
                           p->a >= 0 ? a->indices + p->a * a->rank : b->indices + p->b * a->rank, row_bytes);
            }
            at++;
        }
        kept = at;
    }
    return MR_OK;
}

static mr_status two(mr_kernel_call *call, mr_change change, double least, mr_error *error)
{
    mr_sparse a, b;
    pair *pairs = nullptr;
    MR_TRY(read_two(call, &a, &b, error));
    MR_TRY(mr_sparse_memory(call, a.count + b.count, sizeof *pairs, &pairs, error));
    int64_t count = merge_rows(&a, &b, pairs);
    mr_status status = combine(call, &a, &b, pairs, count, change, least, error);
    free(pairs);
    if (status == MR_OK && call->node->output_count == 3) status = mr_sparse_put(call, 2, a.shape, a.rank, error);
    return status;
}

static mr_status add(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *least = &call->inputs[6];
    char text[MR_SHAPE_TEXT_SIZE];
    if (least->shape.rank != 0)
        return FAIL("The magnitude threshold must be a scalar: got shape %s",
                    mr_shape_text(least->shape, text, sizeof text));
    double value = magnitude(least->dtype, least->data);
    bool is_negative = (((const uint8_t *)least->data)[mr_dtype_size(least->dtype) - 1] & 0x80) != 0;
    return two(call, MR_CHANGE_ADD, is_negative ? -value : value, error);
}

static mr_status maximum(mr_kernel_call *call, mr_error *error)
{
    return two(call, MR_CHANGE_MAX, 0, error);
}

static mr_status minimum(mr_kernel_call *call, mr_error *error)
{
    return two(call, MR_CHANGE_MIN, 0, error);
}

/* The gradient of a summand's values: those of the sum at the same indices, or 0. */
static mr_status add_grad_of(mr_kernel_call *call, int which, mr_error *error)
{
    const mr_tensor *gradient = &call->inputs[0], *rows = &call->inputs[1 + which], *sums = &call->inputs[3];
    int64_t rank = rows->shape.dims[1], count = rows->shape.dims[0], at = 0, *from = nullptr;
    MR_TRY(mr_sparse_memory(call, count, sizeof *from, &from, error));
    for (int64_t i = 0; i < count; i++) {
        const int64_t *row = (const int64_t *)rows->data + i * rank;
        int order = 1;
        while (at < sums->shape.dims[0] &&
               (order = mr_sparse_compare((const int64_t *)sums->data + at * rank, row, nullptr, rank)) < 0)
            at++;
        from[i] = at < sums->shape.dims[0] && order == 0 ? at : -1;
    }
    mr_status status = mr_sparse_take(call, which, gradient, from, count, zeros, error);
    free(from);
    return status;
}

static mr_status add_grad(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *in = call->inputs;
    if (in[0].shape.rank != 1)
        return FAIL("Input backprop_val_grad should be a vector but received a tensor of rank %d", in[0].shape.rank);
    if (in[1].shape.rank != 2 || in[2].shape.rank != 2 || in[3].shape.rank != 2) {
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE], sum[MR_SHAPE_TEXT_SIZE];
        return FAIL("Input indices should be matrices but received shapes: %s and %s and %s",
                    mr_shape_text(in[1].shape, a, sizeof a), mr_shape_text(in[2].shape, b, sizeof b),
                    mr_shape_text(in[3].shape, sum, sizeof sum));
    }
    if (in[1].shape.dims[1] != in[2].shape.dims[1] || in[1].shape.dims[1] != in[3].shape.dims[1])
        return FAIL("The densified operands should have the same ndims; for A, B, sum got: %" PRId64 ", %" PRId64
                    ", %" PRId64,
                    in[1].shape.dims[1], in[2].shape.dims[1], in[3].shape.dims[1]);
    if (in[0].shape.dims[0] != in[3].shape.dims[0])
        return FAIL("# elements of backprop_val_grad and # rows of sum_indices should match (#nnz of sum): got %" PRId64
                    " and %" PRId64,
                    in[0].shape.dims[0], in[3].shape.dims[0]);
    MR_TRY(add_grad_of(call, 0, error));
    return add_grad_of(call, 1, error);
}

/* ---- A sparse and a dense tensor ---- */

static bool has_zero(const mr_tensor *tensor)
{
    size_t size = mr_dtype_size(tensor->dtype);
    for (int64_t i = 0; i < mr_tensor_count(tensor); i++) {
        const uint8_t *bytes = (const uint8_t *)tensor->data + (size_t)i * size;
        bool is_integer = memcmp(bytes, zeros, size) == 0;
        if (is_integer) return true;
        bool may_be_signed = tensor->dtype == MR_FLOAT || tensor->dtype == MR_DOUBLE || tensor->dtype == MR_HALF ||
                             tensor->dtype == MR_BFLOAT16;
        if (may_be_signed && magnitude(tensor->dtype, bytes) == 0) return true;
    }
    return false;
}

static mr_status cwise(mr_kernel_call *call, mr_change change, mr_error *error)
{
    mr_sparse s;
    MR_TRY(mr_sparse_read(call, 0, 1, 2, &s, error));
    const mr_tensor *dense = &call->inputs[3];
    mr_change_function function = mr_change_find(change, dense->dtype);
    size_t size = mr_dtype_size(dense->dtype);
    char sparse_text[MR_SPARSE_TEXT_SIZE], dense_text[MR_SHAPE_TEXT_SIZE];
    int64_t strides[MR_RANK_MAX], added = s.rank - dense->shape.rank;
    bool fits = added >= 0;
    for (int i = 0; fits && i < dense->shape.rank; i++)
        fits = dense->shape.dims[i] == 1 || dense->shape.dims[i] == s.shape[added + i];
    if (!fits || !function)
        return FAIL("SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: [%s] vs. %s",
                    mr_sparse_text(s.shape, s.rank, ",", sparse_text, sizeof sparse_text),
                    mr_shape_text(dense->shape, dense_text, sizeof dense_text));
    for (int64_t i = 0; i < s.count * s.rank; i++)
        if (s.indices[i] < 0 || s.indices[i] >= s.shape[i % s.rank])
            return FAIL("Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape");
    if (change == MR_CHANGE_DIV && has_zero(dense))
        return FAIL("SparseDenseCwiseDiv cannot divide by zero,but input dense tensor contains zero ");
    mr_shape_strides(dense->shape, strides);
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(s.count), error));
    if (s.count > 0) memcpy(call->outputs[0].data, s.values->data, mr_tensor_size_bytes(s.values));
    for (int64_t i = 0; i < s.count; i++) {
        int64_t at = 0;
        for (int d = 0; d < dense->shape.rank; d++)
            at += dense->shape.dims[d] == 1 ? 0 : s.indices[i * s.rank + added + d] * strides[d];
        void *target = element(call->outputs[0].data, i, size);
        function(target, element(dense->data, at, size), 1, 1);
    }
    return MR_OK;
}

static mr_status cwise_mul(mr_kernel_call *call, mr_error *error)
{
    return cwise(call, MR_CHANGE_MUL, error);
}

static mr_status cwise_div(mr_kernel_call *call, mr_error *error)
{
    return cwise(call, MR_CHANGE_DIV, error);
}

static mr_status cwise_add(mr_kernel_call *call, mr_error *error)
{
    return cwise(call, MR_CHANGE_ADD, error);
}

static int64_t integer_at(const mr_tensor *tensor, int64_t i)
{
    return tensor->dtype == MR_INT64 ? ((const int64_t *)tensor->data)[i] : ((const int32_t *)tensor->data)[i];
}

static mr_status check_dense_add(const mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *in = call->inputs, *b = &in[3];
    if (in[0].shape.rank != 2)
        return FAIL("Input a_indices should be a matrix but received a tensor of rank %d", in[0].shape.rank);
    if (in[1].shape.rank != 1 || in[2].shape.rank != 1)
        return FAIL("Inputs a_values and a_shape should be vectors but received tensors of rank %d and %d",
                    in[1].shape.rank, in[2].shape.rank);
    if (in[0].shape.dims[0] != in[1].shape.dims[0] || in[0].shape.dims[1] != in[2].shape.dims[0])
        return FAIL("Dimensions %" PRId64 " and %" PRId64 " are not compatible", in[0].shape.dims[0],
                    in[1].shape.dims[0]);
    if (in[2].shape.dims[0] != b->shape.rank)
        return FAIL("Two operands have different ranks; received: %" PRId64 " and %d", in[2].shape.dims[0],
                    b->shape.rank);
    for (int d = 0; d < b->shape.rank; d++)
        if (integer_at(&in[2], d) != b->shape.dims[d])
            return FAIL("Dimension %d does not equal (no broadcasting is supported): sparse side %" PRId64
                        " vs dense side %" PRId64,
                        d, integer_at(&in[2], d), b->shape.dims[d]);
    for (int64_t i = 0; i < in[0].shape.dims[0]; i++)
        for (int d = 0; d < b->shape.rank; d++) {
            int64_t index = integer_at(&in[0], i * b->shape.rank + d);
            char text[MR_SPARSE_TEXT_SIZE];
            if (index < 0 || index >= b->shape.dims[d])
                return FAIL("Sparse tensor has an invalid index on dimension %d: a_indices(%" PRId64 ",%d) = %" PRId64
                            ", dense tensor shape: %s",
                            d, i, d, index, mr_sparse_text(b->shape.dims, b->shape.rank, " ", text, sizeof text));
        }
    return MR_OK;
}

static mr_status dense_add(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(check_dense_add(call, error));
    const mr_tensor *in = call->inputs, *b = &in[3];
    mr_change_function function = mr_change_find(MR_CHANGE_ADD, b->dtype);
    size_t size = mr_dtype_size(b->dtype);
    int64_t strides[MR_RANK_MAX];
    if (!function) return FAIL("%s has no such operation", mr_dtype_name(b->dtype));
    MR_TRY(mr_kernel_output(call, 0, b->shape, error));
    if (mr_tensor_count(b) > 0) memcpy(call->outputs[0].data, b->data, mr_tensor_size_bytes(b));
    mr_shape_strides(b->shape, strides);
    for (int64_t i = 0; i < in[0].shape.dims[0]; i++) {
        int64_t at = 0;
        for (int d = 0; d < b->shape.rank; d++) at += integer_at(&in[0], i * b->shape.rank + d) * strides[d];
        function(element(call->outputs[0].data, at, size), element(in[1].data, i, size), 1, 1);
    }
    return MR_OK;
}

/* ---- Reductions ---- */

typedef struct reduction {
    int32_t columns[MR_RANK_MAX]; /* the kept dimensions, then the reduced ones */
    int kept;
    bool is_reduced[MR_RANK_MAX], keeps_dims;
} reduction;

static mr_status read_axes(const mr_kernel_call *call, int64_t rank, reduction *r, mr_error *error)
{
    int64_t axes[64];
    int count, at = 0;
    if (rank > MR_RANK_MAX) return FAIL("more than %d dimensions", MR_RANK_MAX);
    *r = (reduction){.keeps_dims = mr_attr_bool_or(call->node->attrs, "keep_dims", false)};
    MR_TRY(mr_kernel_ints(call, 3, "reduction_axes", axes, 64, &count, error));
    for (int i = 0; i < count; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank)
            return FAIL("Invalid reduction dimension %" PRId64 ", for input with %" PRId64 " dimensions.", axes[i],
                        rank);
        r->is_reduced[axis] = true;
    }
    for (int pass = 0; pass < 2; pass++)
        for (int64_t d = 0; d < rank; d++)
            if (r->is_reduced[d] == (pass == 1)) r->columns[at++] = (int32_t)d;
    while (r->kept < rank && !r->is_reduced[r->columns[r->kept]]) r->kept++;
    return MR_OK;
}

/* Accumulates the values at order[0 … count - 1] in `result`. `gathered` has room for `count` values of a half type. */
static void reduce_group(const mr_tensor *values, const int64_t *order, int64_t count, mr_change change,
                         uint16_t *gathered, char *result)
{
    const mr_dtype dtype = values->dtype;
    const size_t size = mr_dtype_size(dtype);
    if (change == MR_CHANGE_ADD && (dtype == MR_HALF || dtype == MR_BFLOAT16)) {
        for (int64_t i = 0; i < count; i++) gathered[i] = ((const uint16_t *)values->data)[order[i]];
        const uint16_t sum = mr_sparse_half_sum(gathered, count, dtype);
        memcpy(result, &sum, size);
        return;
    }
    const mr_change_function function = mr_change_find(change, dtype);
    memcpy(result, element(values->data, order[0], size), size);
    for (int64_t i = 1; i < count; i++) function(result, element(values->data, order[i], size), 1, 1);
}

/* Reduces each group of positions with the same kept indices. Stores the first positions of the groups, and the results
 * in `results`. */
static int64_t reduce_groups(const mr_sparse *s, const reduction *r, const int64_t *order, mr_change change,
                             uint16_t *gathered, int64_t *firsts, char *results)
{
    const size_t size = mr_dtype_size(s->values->dtype);
    int64_t groups = 0, end;
    for (int64_t i = 0; i < s->count; i = end) {
        const int64_t *row = s->indices + order[i] * s->rank;
        for (end = i + 1; end < s->count; end++)
            if (mr_sparse_compare(row, s->indices + order[end] * s->rank, r->columns, r->kept) != 0) break;
        reduce_group(s->values, order + i, end - i, change, gathered, results + (size_t)groups * size);
        firsts[groups++] = order[i];
    }
    return groups;
}

static mr_status put_dense(mr_kernel_call *call, const mr_sparse *s, const reduction *r, const int64_t *firsts,
                           const char *results, int64_t groups, mr_error *error)
{
    mr_shape shape = MR_SCALAR;
    size_t size = mr_dtype_size(s->values->dtype);
    for (int64_t d = 0; d < s->rank; d++) {
        if (r->is_reduced[d] && !r->keeps_dims) continue;
        shape.dims[shape.rank++] = r->is_reduced[d] ? 1 : s->shape[d];
    }
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    mr_tensor *output = &call->outputs[0];
    if (mr_tensor_count(output) > 0) memset(output->data, 0, mr_tensor_size_bytes(output));
    for (int64_t g = 0; g < groups; g++) {
        int64_t at = 0;
        for (int i = 0; i < r->kept; i++) {
            int64_t column = r->columns[i], index = s->indices[firsts[g] * s->rank + column];
            if (index < 0 || index >= s->shape[column])
                return mr_kernel_fail(call->node, error, MR_INTERNAL,
                                      "Obtained a write index of %" PRId64 " which is outside of bounds of [0, %" PRId64
                                      ")",
                                      index, s->shape[column]);
            at = at * s->shape[column] + index;
        }
        memcpy(element(output->data, at, size), results + (size_t)g * size, size);
    }
    return MR_OK;
}

static mr_status put_sparse(mr_kernel_call *call, const mr_sparse *s, const reduction *r, const int64_t *firsts,
                            const char *results, int64_t groups, mr_error *error)
{
    size_t size = mr_dtype_size(s->values->dtype);
    int64_t rank = r->keeps_dims ? s->rank : r->kept;
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(groups, rank), error));
    MR_TRY(mr_kernel_output(call, 1, MR_SHAPE(groups), error));
    MR_TRY(mr_kernel_output(call, 2, MR_SHAPE(rank), error));
    int64_t *indices = call->outputs[0].data, *shape = call->outputs[2].data, at = 0;
    if (groups > 0) memcpy(call->outputs[1].data, results, (size_t)groups * size);
    for (int64_t d = 0; d < s->rank; d++) {
        if (r->is_reduced[d] && !r->keeps_dims) continue;
        shape[at] = r->is_reduced[d] ? 1 : s->shape[d];
        for (int64_t g = 0; g < groups; g++)
            indices[g * rank + at] = r->is_reduced[d] ? 0 : s->indices[firsts[g] * s->rank + d];
        at++;
    }
    return MR_OK;
}

static mr_status reduce(mr_kernel_call *call, mr_change change, mr_error *error)
{
    mr_sparse s;
    reduction r;
    MR_TRY(mr_sparse_read(call, 0, 1, 2, &s, error));
    MR_TRY(read_axes(call, s.rank, &r, error));
    if (!mr_change_find(change, s.values->dtype))
        return FAIL("%s has no such operation", mr_dtype_name(s.values->dtype));
    int64_t *order = nullptr, *firsts = nullptr;
    uint16_t *gathered = nullptr;
    char *results = nullptr;
    mr_status status = mr_sparse_order(call, &s, r.columns, s.rank, &order, error);
    if (status == MR_OK) status = mr_sparse_memory(call, s.count, sizeof *firsts, &firsts, error);
    if (status == MR_OK) status = mr_sparse_memory(call, s.count, mr_dtype_size(s.values->dtype), &results, error);
    if (status == MR_OK) status = mr_sparse_memory(call, s.count, sizeof *gathered, &gathered, error);
    if (status == MR_OK) {
        int64_t groups = reduce_groups(&s, &r, order, change, gathered, firsts, results);
        status = (call->node->output_count == 1 ? put_dense : put_sparse)(call, &s, &r, firsts, results, groups, error);
    }
    free(gathered);
    free(results);
    free(firsts);
    free(order);
    return status;
}

static mr_status reduce_sum(mr_kernel_call *call, mr_error *error)
{
    return reduce(call, MR_CHANGE_ADD, error);
}

static mr_status reduce_max(mr_kernel_call *call, mr_error *error)
{
    return reduce(call, MR_CHANGE_MAX, error);
}

/* ---- SparseSoftmax ---- */

#define SOFTMAX(suffix, type, load, store, exponential)                                                                \
    static void softmax_##suffix(const void *from, void *to, const int64_t *order, int64_t count)                      \
    {                                                                                                                  \
        const type *x = from;                                                                                          \
        type *y = to;                                                                                                  \
        typeof_unqual(load(x[0])) largest = load(x[order[0]]), sum = 0;                                                \
        for (int64_t i = 1; i < count; i++) largest = load(x[order[i]]) > largest ? load(x[order[i]]) : largest;       \
        for (int64_t i = 0; i < count; i++) sum += exponential(load(x[order[i]]) - largest);                           \
        for (int64_t i = 0; i < count; i++) y[i] = store(exponential(load(x[order[i]]) - largest) / sum);              \
    }
#define SAME(x) (x)
SOFTMAX(float, float, SAME, SAME, expf)
SOFTMAX(double, double, SAME, SAME, exp)
SOFTMAX(half, uint16_t, mr_half_to_float, mr_float_to_half, expf)

static mr_status softmax(mr_kernel_call *call, mr_error *error)
{
    mr_sparse s;
    char text[MR_SPARSE_TEXT_SIZE];
    int64_t *order = nullptr;
    MR_TRY(mr_sparse_read(call, 0, 1, 2, &s, error));
    if (s.rank < 2)
        return FAIL("Input should have rank >= 2, but received shape: %s",
                    mr_sparse_text(s.shape, s.rank, " ", text, sizeof text));
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(s.count), error));
    MR_TRY(mr_sparse_order(call, &s, nullptr, s.rank, &order, error));
    size_t size = mr_dtype_size(s.values->dtype);
    for (int64_t begin = 0, end; begin < s.count; begin = end) {
        const int64_t *row = s.indices + order[begin] * s.rank;
        for (end = begin + 1; end < s.count; end++)
            if (mr_sparse_compare(row, s.indices + order[end] * s.rank, nullptr, s.rank - 1) != 0) break;
        void *to = element(call->outputs[0].data, begin, size);
        if (s.values->dtype == MR_FLOAT) softmax_float(s.values->data, to, order + begin, end - begin);
        if (s.values->dtype == MR_DOUBLE) softmax_double(s.values->data, to, order + begin, end - begin);
        if (s.values->dtype == MR_HALF) softmax_half(s.values->data, to, order + begin, end - begin);
    }
    free(order);
    return MR_OK;
}

#define REALS "half, bfloat16, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64"
#define SUMMED "float, double, int8, int16, int32, int64, complex64, complex128"
static const mr_kernel kernels[] = {
    {.op = "SparseAdd", .types = "T: " SUMMED, .run = add},
    {.op = "SparseAddGrad", .types = "T: " SUMMED, .run = add_grad},
    {.op = "SparseSparseMaximum", .types = "T: " REALS, .run = maximum},
    {.op = "SparseSparseMinimum", .types = "T: " REALS, .run = minimum},
    {.op = "SparseDenseCwiseMul", .types = "T: " REALS, .run = cwise_mul},
    {.op = "SparseDenseCwiseDiv", .types = "T: " REALS, .run = cwise_div},
    {.op = "SparseDenseCwiseAdd", .types = "T: " REALS, .run = cwise_add},
    {.op = "SparseTensorDenseAdd", .types = "T: " REALS ", complex64, complex128", .run = dense_add},
    {.op = "SparseReduceSum", .types = "T: " REALS ", complex64, complex128", .run = reduce_sum},
    {.op = "SparseReduceSumSparse", .types = "T: " REALS ", complex64, complex128", .run = reduce_sum},
    {.op = "SparseReduceMax", .types = "T: " REALS, .run = reduce_max},
    {.op = "SparseReduceMaxSparse", .types = "T: " REALS, .run = reduce_max},
    {.op = "SparseSoftmax", .run = softmax},
};
MR_KERNEL_FAMILY(sparse_math);
