/* SparseTensorDenseMatMul: each value of the sparse matrix adds a multiple of a row of the dense one to a row of the
 * product. Threads share the columns, so each sum has the same order at any number of threads. */
#include "base/halves.h"
#include "kernels/common.h"

#include <complex.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(...) mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, __VA_ARGS__)

typedef struct product {
    const mr_tensor *indices;
    const void *values, *b;
    void *output;
    int64_t count, columns, b_columns;
    bool adjoint_a, adjoint_b;
} product;

static int64_t index_at(const product *p, int64_t i, bool second)
{
    int64_t at = 2 * i + (second ? 1 : 0);
    return p->indices->dtype == MR_INT64 ? ((const int64_t *)p->indices->data)[at]
                                         : ((const int32_t *)p->indices->data)[at];
}

/* Columns [begin, end). TYPE: of the inputs; SUM: of the sums. */
#define MULTIPLY(suffix, TYPE, SUM, load, conjugate)                                                                   \
    static void multiply_##suffix(void *context, int64_t begin, int64_t end)                                           \
    {                                                                                                                  \
        const product *p = context;                                                                                    \
        const TYPE *values = p->values;                                                                                \
        for (int64_t i = 0; i < p->count; i++) {                                                                       \
            int64_t m = index_at(p, i, p->adjoint_a), k = index_at(p, i, !p->adjoint_a);                               \
            const SUM value = p->adjoint_a ? conjugate(load(values[i])) : load(values[i]);                             \
            SUM *to = (SUM *)p->output + m * p->columns;                                                               \
            const TYPE *from = (const TYPE *)p->b + (p->adjoint_b ? k : k * p->b_columns);                             \
            if (p->adjoint_b)                                                                                          \
                for (int64_t j = begin; j < end; j++) to[j] += value * conjugate(load(from[j * p->b_columns]));        \
            else                                                                                                       \
                for (int64_t j = begin; j < end; j++) to[j] += value * load(from[j]);                                  \
        }                                                                                                              \
    }
#define SAME(x) (x)
MULTIPLY(float, float, float, SAME, SAME)
MULTIPLY(double, double, double, SAME, SAME)
MULTIPLY(int32, uint32_t, uint32_t, SAME, SAME)
MULTIPLY(complex64, float _Complex, float _Complex, SAME, conjf)
MULTIPLY(complex128, double _Complex, double _Complex, SAME, conj)
MULTIPLY(half, uint16_t, float, mr_half_to_float, SAME)
MULTIPLY(bfloat16, uint16_t, float, mr_bfloat16_to_float, SAME)

static mr_pool_body function_of(mr_dtype dtype)
{
    switch (dtype) {
    case MR_FLOAT:
        return multiply_float;
    case MR_DOUBLE:
        return multiply_double;
    case MR_INT32:
        return multiply_int32;
    case MR_COMPLEX64:
        return multiply_complex64;
    case MR_COMPLEX128:
        return multiply_complex128;
    case MR_HALF:
        return multiply_half;
    case MR_BFLOAT16:
        return multiply_bfloat16;
    default:
        return nullptr;
    }
}

static mr_status check_shapes(const mr_kernel_call *call, const product *p, mr_shape *shape, mr_error *error)
{
    const mr_tensor *in = call->inputs;
    const int64_t *a = in[2].data;
    char text[MR_SHAPE_TEXT_SIZE];
    if (in[3].shape.rank != 2) return FAIL("Tensor 'b' is not a matrix");
    if (in[2].shape.rank != 1) return FAIL("Tensor 'a_shape' is not a vector");
    if (in[2].shape.dims[0] != 2) return FAIL("Tensor 'a_shape' must have 2 elements");
    if (in[1].shape.rank != 1) return FAIL("Tensor 'a_values' is not a vector");
    if (in[0].shape.rank != 2) return FAIL("Tensor 'a_indices' is not a matrix");
    if (in[0].shape.dims[0] != in[1].shape.dims[0])
        return FAIL("Number of rows of a_indices does not match number of entries in a_values");
    if (in[0].shape.dims[1] != 2)
        return FAIL("Number of columns of a_indices does not match number of entries in a_shape");
    if (a[0] < 0 || a[1] < 0) return FAIL("a_shape has a negative size");
    int64_t inner_a = a[p->adjoint_a ? 0 : 1], inner_b = in[3].shape.dims[p->adjoint_b ? 1 : 0];
    if (inner_a != inner_b)
        return FAIL("Cannot multiply A and B because inner dimension does not match: %" PRId64 " vs. %" PRId64
                    ".  Did you forget a transpose?  Dimensions of A: [%" PRId64 ", %" PRId64 ").  Dimensions of B: %s",
                    inner_a, inner_b, a[0], a[1], mr_shape_text(in[3].shape, text, sizeof text));
    *shape = MR_SHAPE(a[p->adjoint_a ? 1 : 0], in[3].shape.dims[p->adjoint_b ? 0 : 1]);
    for (int64_t i = 0; i < p->count; i++) {
        int64_t m = index_at(p, i, p->adjoint_a), k = index_at(p, i, !p->adjoint_a);
        if (k < 0 || k >= inner_a)
            return FAIL("k (%" PRId64 ") from index[%" PRId64 ",%d] out of bounds (>=%" PRId64 ")", k, i,
                        p->adjoint_a ? 0 : 1, inner_a);
        if (m < 0 || m >= shape->dims[0])
            return FAIL("m (%" PRId64 ") from index[%" PRId64 ",%d] out of bounds (>=%" PRId64 ")", m, i,
                        p->adjoint_a ? 1 : 0, shape->dims[0]);
    }
    return MR_OK;
}

/* Half types are summed in float. */
static mr_status multiply_narrow(mr_kernel_call *call, product *p, mr_error *error)
{
    mr_tensor *output = &call->outputs[0];
    int64_t count = mr_tensor_count(output);
    float *sums = calloc((size_t)MR_MAX(count, 1), sizeof *sums);
    if (!sums) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    p->output = sums;
    function_of(output->dtype)(p, 0, p->columns);
    mr_floats_to_halves(output->data, sums, count, output->dtype);
    free(sums);
    return MR_OK;
}

static mr_status matmul(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *in = call->inputs;
    product p = {.indices = &in[0],
                 .values = in[1].data,
                 .b = in[3].data,
                 .count = in[0].shape.dims[0],
                 .adjoint_a = mr_attr_bool_or(call->node->attrs, "adjoint_a", false),
                 .adjoint_b = mr_attr_bool_or(call->node->attrs, "adjoint_b", false)};
    mr_shape shape;
    if (in[0].shape.rank != 2) return FAIL("Tensor 'a_indices' is not a matrix");
    MR_TRY(check_shapes(call, &p, &shape, error));
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    mr_tensor *output = &call->outputs[0];
    p.output = output->data;
    p.columns = shape.dims[1];
    p.b_columns = in[3].shape.dims[1];
    if (mr_tensor_count(output) > 0) memset(output->data, 0, mr_tensor_size_bytes(output));
    if (mr_is_half(output->dtype)) return multiply_narrow(call, &p, error);
    mr_pool_for(call->device->pool, p.columns, MR_MAX(16, MR_GRAIN / MR_MAX(p.count, 1)), function_of(output->dtype),
                &p);
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "SparseTensorDenseMatMul",
     .types = "T: float, double, int32, complex64, complex128, half, bfloat16",
     .run = matmul,
     .host_inputs = 1 << 2},
};
MR_KERNEL_FAMILY(sparse_matmul);
