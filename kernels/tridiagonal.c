/* TridiagonalSolve and TridiagonalMatMul. Matrices are given by their diagonals: element i of the superdiagonal is that
 * of row i, whose last one is unused, and element i of the subdiagonal is that of row i, whose first one is unused. */
#include "kernels/complex_math.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct equations {
    int64_t n, k; /* equations; right sides */
    const void *super, *diagonal, *sub, *rhs;
    void *x, *scratch; /* scratch: 3 · n elements */
} equations;

typedef enum outcome { SOLVED, SINGULAR, SINGULAR_SCALAR, NEEDS_PIVOTS } outcome;

/* row[0, k) = (a - b · factor) of rows */
#define TRIDIAGONAL(T, name, ABS)                                                                                      \
    static void subtract_##name(T *row, const T *a, T factor, const T *b, int64_t k)                                   \
    {                                                                                                                  \
        for (int64_t i = 0; i < k; i++) row[i] = a[i] - factor * b[i];                                                 \
    }                                                                                                                  \
                                                                                                                       \
    static void divide_##name(T *row, const T *a, T divisor, int64_t k)                                                \
    {                                                                                                                  \
        for (int64_t i = 0; i < k; i++) row[i] = a[i] / divisor;                                                       \
    }                                                                                                                  \
                                                                                                                       \
    /* Gaussian elimination with row exchanges: u has the diagonal and the two superdiagonals of the factor. */        \
    static outcome pivoting_##name(const equations *s)                                                                 \
    {                                                                                                                  \
        const T *super = s->super, *diagonal = s->diagonal, *sub = s->sub, *rhs = s->rhs;                              \
        T *x = s->x, *u0 = s->scratch, *u1 = u0 + s->n, *u2 = u1 + s->n;                                               \
        const int64_t n = s->n, k = s->k;                                                                              \
        u0[0] = diagonal[0];                                                                                           \
        u1[0] = super[0];                                                                                              \
        memcpy(x, rhs, (size_t)k * sizeof(T));                                                                         \
        for (int64_t i = 0; i + 1 < n; i++) {                                                                          \
            T *row = x + i * k, *next = row + k;                                                                       \
            const T *below = rhs + (i + 1) * k;                                                                        \
            u2[i] = 0;                                                                                                 \
            if (ABS(u0[i]) >= ABS(sub[i + 1])) {                                                                       \
                if (u0[i] == 0) return SINGULAR;                                                                       \
                T factor = sub[i + 1] / u0[i];                                                                         \
                u0[i + 1] = diagonal[i + 1] - factor * u1[i];                                                          \
                u1[i + 1] = super[i + 1];                                                                              \
                subtract_##name(next, below, factor, row, k);                                                          \
            } else {                                                                                                   \
                T factor = u0[i] / sub[i + 1];                                                                         \
                u0[i] = sub[i + 1];                                                                                    \
                u0[i + 1] = u1[i] - factor * diagonal[i + 1];                                                          \
                u1[i] = diagonal[i + 1];                                                                               \
                subtract_##name(next, row, factor, below, k);                                                          \
                memcpy(row, below, (size_t)k * sizeof(T));                                                             \
                u2[i] = super[i + 1];                                                                                  \
                u1[i + 1] = -factor * super[i + 1];                                                                    \
            }                                                                                                          \
        }                                                                                                              \
        if (u0[n - 1] == 0) return n == 1 ? SINGULAR_SCALAR : SINGULAR;                                                \
        for (int64_t i = n - 1; i >= 0; i--) {                                                                         \
            T *row = x + i * k;                                                                                        \
            if (i < n - 1) subtract_##name(row, row, u1[i], row + k, k);                                               \
            if (i < n - 2) subtract_##name(row, row, u2[i], row + 2 * k, k);                                           \
            divide_##name(row, row, u0[i], k);                                                                         \
        }                                                                                                              \
        return SOLVED;                                                                                                 \
    }                                                                                                                  \
                                                                                                                       \
    /* Thomas' algorithm */                                                                                            \
    static outcome plain_##name(const equations *s)                                                                    \
    {                                                                                                                  \
        const T *super = s->super, *diagonal = s->diagonal, *sub = s->sub, *rhs = s->rhs;                              \
        T *x = s->x, *u = s->scratch;                                                                                  \
        const int64_t n = s->n, k = s->k;                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            T *row = x + i * k, divisor = i == 0 ? diagonal[0] : diagonal[i] - sub[i] * u[i - 1];                      \
            if (divisor == 0) return n == 1 ? SINGULAR_SCALAR : NEEDS_PIVOTS;                                          \
            u[i] = super[i] / divisor;                                                                                 \
            if (i == 0)                                                                                                \
                memcpy(row, rhs, (size_t)k * sizeof(T));                                                               \
            else                                                                                                       \
                subtract_##name(row, rhs + i * k, sub[i], row - k, k);                                                 \
            divide_##name(row, row, divisor, k);                                                                       \
        }                                                                                                              \
        for (int64_t i = n - 2; i >= 0; i--) subtract_##name(x + i * k, x + i * k, u[i], x + (i + 1) * k, k);          \
        return SOLVED;                                                                                                 \
    }                                                                                                                  \
                                                                                                                       \
    static void multiply_##name(const equations *s)                                                                    \
    {                                                                                                                  \
        const T *super = s->super, *diagonal = s->diagonal, *sub = s->sub, *rhs = s->rhs;                              \
        T *x = s->x;                                                                                                   \
        const int64_t n = s->n, k = s->k;                                                                              \
        for (int64_t i = 0; i < n; i++)                                                                                \
            for (int64_t c = 0; c < k; c++) {                                                                          \
                T sum = diagonal[i] * rhs[i * k + c];                                                                  \
                if (i > 0) sum += sub[i] * rhs[(i - 1) * k + c];                                                       \
                if (i + 1 < n) sum += super[i] * rhs[(i + 1) * k + c];                                                 \
                x[i * k + c] = sum;                                                                                    \
            }                                                                                                          \
    }
TRIDIAGONAL(float, float, fabsf)
TRIDIAGONAL(double, double, fabs)
TRIDIAGONAL(mr_complex64, complex64, cabsf)
TRIDIAGONAL(mr_complex128, complex128, cabs)

/* ---- Shapes ---- */

/* Checks that all inputs have the outer dimensions of the last one, and returns how many matrices there are. */
static mr_status check_batch(const mr_kernel_call *call, int64_t *count, mr_error *error)
{
    int last = call->node->input_count - 1;
    mr_shape rhs = call->inputs[last].shape;
    for (int i = 0; i <= last; i++) {
        mr_shape shape = call->inputs[i].shape;
        if (shape.rank < 2)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input tensor %d must have rank >= 2, got %d",
                                  i, shape.rank);
        if (shape.rank != rhs.rank)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "All input tensors must have the same rank.");
        if (memcmp(shape.dims, rhs.dims, (size_t)(rhs.rank - 2) * sizeof rhs.dims[0]) != 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "All input tensors must have the same outer dimensions.");
    }
    *count = mr_tensor_count(&call->inputs[last]) == 0 ? 0 : mr_dims_product(&rhs, 0, rhs.rank - 2);
    return MR_OK;
}

static equations system_of(const mr_kernel_call *call)
{
    const mr_tensor *rhs = &call->inputs[call->node->input_count - 1];
    return (equations){.n = rhs->shape.dims[rhs->shape.rank - 2],
                       .k = rhs->shape.dims[rhs->shape.rank - 1],
                       .rhs = rhs->data,
                       .x = call->outputs[0].data};
}

static const void *advance(const void *at, int64_t elements, size_t size)
{
    return (const char *)at + (size_t)elements * size;
}

/* ---- The operators ---- */

static mr_status prepare_solve(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    bool *pivots = prepared;
    *pivots = mr_attr_bool_or(node->attrs, "partial_pivoting", true);
    if (!mr_attr_bool_or(node->attrs, "perturb_singular", false)) return MR_OK;
    if (!*pivots)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "Setting perturb_singular requires also setting partial_pivoting.");
    return mr_kernel_fail(node, error, MR_UNIMPLEMENTED, "perturb_singular is not supported");
}

static outcome solve(mr_dtype dtype, bool pivots, const equations *s)
{
    switch (dtype) {
    case MR_FLOAT:
        return pivots ? pivoting_float(s) : plain_float(s);
    case MR_DOUBLE:
        return pivots ? pivoting_double(s) : plain_double(s);
    case MR_COMPLEX64:
        return pivots ? pivoting_complex64(s) : plain_complex64(s);
    default:
        return pivots ? pivoting_complex128(s) : plain_complex128(s);
    }
}

static mr_status tridiagonal_solve(mr_kernel_call *call, mr_error *error)
{
    static const char *const reasons[] = {
        [SINGULAR] = "The matrix is not invertible.",
        [SINGULAR_SCALAR] = "The matrix is not invertible: it is a scalar with value zero.",
        [NEEDS_PIVOTS] = "The matrix is either not invertible, or requires pivoting. Try setting partial_pivoting = "
                         "True."};
    const bool *pivots = call->prepared;
    int64_t count;
    MR_TRY(check_batch(call, &count, error));
    mr_shape diagonals = call->inputs[0].shape, rhs = call->inputs[1].shape;
    int64_t rows = diagonals.dims[diagonals.rank - 2], left = diagonals.dims[diagonals.rank - 1];
    if (rows != 3)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected diagonals to be provided as a matrix with 3 rows, got %" PRId64 " rows.", rows);
    if (left != rhs.dims[rhs.rank - 2])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected the same number of left-hand sides and right-hand sides, got %" PRId64
                              " and %" PRId64 ".",
                              left, rhs.dims[rhs.rank - 2]);
    MR_TRY(mr_kernel_output(call, 0, rhs, error));
    if (count == 0) return MR_OK;
    equations s = system_of(call);
    size_t size = mr_dtype_size(call->inputs[1].dtype);
    s.scratch = calloc((size_t)s.n, 3 * size); /* n elements of each right side exist */
    if (!s.scratch) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    outcome outcome = SOLVED;
    for (int64_t i = 0; i < count && outcome == SOLVED; i++) {
        s.super = advance(call->inputs[0].data, 3 * i * s.n, size);
        s.diagonal = advance(s.super, s.n, size);
        s.sub = advance(s.diagonal, s.n, size);
        s.rhs = advance(call->inputs[1].data, i * s.n * s.k, size);
        s.x = (char *)call->outputs[0].data + (size_t)(i * s.n * s.k) * size;
        outcome = solve(call->inputs[1].dtype, *pivots, &s);
    }
    free(s.scratch);
    return outcome == SOLVED ? MR_OK : mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s", reasons[outcome]);
}

static mr_status tridiagonal_mat_mul(mr_kernel_call *call, mr_error *error)
{
    static const char *const names[] = {"superdiagonal", "main diagonal", "subdiagonal"};
    int64_t count;
    MR_TRY(check_batch(call, &count, error));
    mr_shape rhs = call->inputs[3].shape;
    for (int i = 0; i < 3; i++) {
        mr_shape shape = call->inputs[i].shape;
        if (shape.dims[shape.rank - 2] != 1 || shape.dims[shape.rank - 1] != rhs.dims[rhs.rank - 2])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Invalid %s shape.", names[i]);
    }
    MR_TRY(mr_kernel_output(call, 0, rhs, error));
    equations s = system_of(call);
    mr_dtype dtype = call->inputs[3].dtype;
    size_t size = mr_dtype_size(dtype);
    for (int64_t i = 0; i < count; i++) {
        s.super = advance(call->inputs[0].data, i * s.n, size);
        s.diagonal = advance(call->inputs[1].data, i * s.n, size);
        s.sub = advance(call->inputs[2].data, i * s.n, size);
        s.rhs = advance(call->inputs[3].data, i * s.n * s.k, size);
        s.x = (char *)call->outputs[0].data + (size_t)(i * s.n * s.k) * size;
        if (dtype == MR_FLOAT)
            multiply_float(&s);
        else if (dtype == MR_DOUBLE)
            multiply_double(&s);
        else if (dtype == MR_COMPLEX64)
            multiply_complex64(&s);
        else
            multiply_complex128(&s);
    }
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "TridiagonalSolve", .run = tridiagonal_solve, .prepared_size_bytes = sizeof(bool), .prepare = prepare_solve},
    {.op = "TridiagonalMatMul", .run = tridiagonal_mat_mul},
};
MR_KERNEL_FAMILY(tridiagonal);
