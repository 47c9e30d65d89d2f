/* MatMul and BatchMatMul: floats use gemm.h, other types use plain loops over rows in cache. */
#include "kernels/elementwise.h"
#include "kernels/gemm.h"
#include <inttypes.h>
#include <string.h>

typedef struct product {
    int64_t m, n, k;
    bool a_transposed, b_transposed;
    const void *a, *b;
    void *c;
} product;

#define PLAIN(dtype, type, suffix)                                                                                     \
    static void rows_##suffix(void *context, int64_t begin, int64_t end)                                               \
    {                                                                                                                  \
        const product *p = context;                                                                                    \
        const type *a = p->a, *b = p->b;                                                                               \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            type *c = (type *)p->c + i * p->n;                                                                         \
            memset(c, 0, (size_t)p->n * sizeof(type));                                                                 \
            for (int64_t k = 0; k < p->k; k++) {                                                                       \
                const type x = a[p->a_transposed ? k * p->m + i : i * p->k + k];                                       \
                const type *row = b + (p->b_transposed ? k : k * p->n);                                                \
                const int64_t step = p->b_transposed ? p->k : 1;                                                       \
                for (int64_t j = 0; j < p->n; j++) c[j] = (type)(c[j] + (type)(x * row[j * step]));                    \
            }                                                                                                          \
        }                                                                                                              \
    }
PLAIN(MR_DOUBLE, double, double)
PLAIN(MR_INT32, uint32_t, int32)
PLAIN(MR_INT64, uint64_t, int64)
PLAIN(MR_UINT8, uint8_t, uint8)

static mr_pool_body plain_rows(mr_dtype dtype)
{
    switch (dtype) {
    case MR_DOUBLE:
        return rows_double;
    case MR_INT32:
    case MR_UINT32:
        return rows_int32;
    case MR_INT64:
    case MR_UINT64:
        return rows_int64;
    case MR_UINT8:
    case MR_INT8:
        return rows_uint8;
    default:
        return nullptr;
    }
}

static mr_gemm gemm_of(const product *p)
{
    return (mr_gemm){.m = p->m,
                     .n = p->n,
                     .k = p->k,
                     .a = p->a,
                     .b = p->b,
                     .a_transposed = p->a_transposed,
                     .b_transposed = p->b_transposed,
                     .c = p->c};
}

/* The inner two dims of x and y as a product; an error if they do not match. */
static mr_status product_of(mr_kernel_call *call, bool x_transposed, bool y_transposed, product *p, mr_error *error)
{
    mr_shape x = call->inputs[0].shape, y = call->inputs[1].shape;
    const int64_t *xd = x.dims + x.rank - 2, *yd = y.dims + y.rank - 2;
    *p = (product){.a_transposed = x_transposed, .b_transposed = y_transposed};
    p->m = xd[x_transposed ? 1 : 0];
    p->k = xd[x_transposed ? 0 : 1];
    p->n = yd[y_transposed ? 0 : 1];
    if (p->k != yd[y_transposed ? 1 : 0]) {
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Matrix size-incompatible: In[0]: %s%s, In[1]: %s%s", mr_shape_text(x, a, sizeof a),
                              x_transposed ? " transposed" : "", mr_shape_text(y, b, sizeof b),
                              y_transposed ? " transposed" : "");
    }
    return MR_OK;
}

static mr_status mat_mul(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *a = &call->inputs[0], *b = &call->inputs[1];
    product p;
    if (a->shape.rank != 2 || b->shape.rank != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "a and b must be matrices, but have ranks %d and %d", a->shape.rank, b->shape.rank);
    MR_TRY(product_of(call, mr_attr_bool_or(call->node->attrs, "transpose_a", false),
                      mr_attr_bool_or(call->node->attrs, "transpose_b", false), &p, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(p.m, p.n), error));
    p.a = a->data;
    p.b = b->data;
    p.c = call->outputs[0].data;
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    if (a->dtype != MR_FLOAT) {
        mr_pool_body rows = plain_rows(a->dtype);
        if (rows == nullptr)
            return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "no kernel for %s", mr_dtype_name(a->dtype));
        mr_pool_for(call->device->pool, p.m, MR_MAX(1, MR_GRAIN / MR_MAX(1, p.n * p.k)), rows, &p);
        return MR_OK;
    }
    mr_gemm gemm = gemm_of(&p);
    mr_buffer *buffer;
    float *scratch;
    MR_TRY(mr_scratch_new(call, mr_gemm_scratch(&gemm), &buffer, &scratch, error));
    mr_gemm_run(&gemm, scratch, call->device->pool);
    mr_buffer_unref(buffer);
    return MR_OK;
}

typedef struct batch_job {
    product product;
    const char *x, *y;
    char *target;
    size_t size;
    mr_shape batch;
    int64_t x_strides[MR_RANK_MAX], y_strides[MR_RANK_MAX];
    mr_pool *pool;
    mr_pool_body rows; /* null: floats */
    float *scratch; /* floats: one for each product if there are many, otherwise one shared by consecutive products */
    int64_t scratch_step;
} batch_job;

static void batch_products(void *context, int64_t begin, int64_t end)
{
    const batch_job *job = context;
    for (int64_t index = begin; index < end; index++) {
        product p = job->product;
        int64_t rest = index, x = 0, y = 0;
        for (int d = job->batch.rank - 1; d >= 0; d--) {
            int64_t at = rest % job->batch.dims[d];
            rest /= job->batch.dims[d];
            x += at * job->x_strides[d];
            y += at * job->y_strides[d];
        }
        p.a = job->x + (size_t)(x * p.m * p.k) * job->size;
        p.b = job->y + (size_t)(y * p.n * p.k) * job->size;
        p.c = job->target + (size_t)(index * p.m * p.n) * job->size;
        if (job->rows != nullptr) {
            job->rows(&p, 0, p.m);
        } else {
            mr_gemm gemm = gemm_of(&p);
            mr_gemm_run(&gemm, job->scratch != nullptr ? job->scratch + index * job->scratch_step : nullptr, job->pool);
        }
    }
}

static mr_status batch_mat_mul(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *x = &call->inputs[0], *y = &call->inputs[1];
    batch_job job = {.x = x->data, .y = y->data, .size = mr_dtype_size(x->dtype), .pool = call->device->pool};
    if (x->shape.rank < 2 || y->shape.rank < 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "x and y must have at least 2 dimensions");
    MR_TRY(product_of(call, mr_attr_bool_or(call->node->attrs, "adj_x", false),
                      mr_attr_bool_or(call->node->attrs, "adj_y", false), &job.product, error));
    mr_shape x_batch = x->shape, y_batch = y->shape;
    x_batch.rank -= 2;
    y_batch.rank -= 2;
    MR_TRY(mr_kernel_broadcast(call, x_batch, y_batch, &job.batch, error));
    mr_broadcast_strides(x_batch, job.batch, job.x_strides);
    mr_broadcast_strides(y_batch, job.batch, job.y_strides);
    mr_shape shape = job.batch;
    shape.dims[shape.rank++] = job.product.m;
    shape.dims[shape.rank++] = job.product.n;
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    job.target = call->outputs[0].data;
    if (mr_tensor_count(&call->outputs[0]) == 0) return MR_OK;
    int64_t count = mr_shape_count(job.batch), work = job.product.m * job.product.n * job.product.k;
    mr_buffer *buffer = nullptr;
    if (x->dtype == MR_FLOAT) {
        mr_gemm gemm = gemm_of(&job.product);
        job.scratch_step = mr_gemm_scratch(&gemm);
        MR_TRY(mr_scratch_new(call, job.scratch_step * count, &buffer, &job.scratch, error));
    } else {
        job.rows = plain_rows(x->dtype);
        if (job.rows == nullptr)
            return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "no kernel for %s", mr_dtype_name(x->dtype));
    }
    mr_pool_for(call->device->pool, count, MR_MAX(1, MR_GRAIN * 8 / MR_MAX(1, work)), batch_products, &job);
    mr_buffer_unref(buffer);
    return MR_OK;
}

/* The first version does not broadcast. */
static mr_status batch_mat_mul_equal(mr_kernel_call *call, mr_error *error)
{
    const mr_shape *x = &call->inputs[0].shape, *y = &call->inputs[1].shape;
    if (x->rank != y->rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "x has %d dimensions, y has %d", x->rank,
                              y->rank);
    for (int i = 0; i < x->rank - 2; i++)
        if (x->dims[i] != y->dims[i])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "dimension %d of x and y must be equal (%lld, %lld)", i, (long long)x->dims[i],
                                  (long long)y->dims[i]);
    return batch_mat_mul(call, error);
}

static const mr_kernel kernels[] = {
    {.op = "MatMul", .run = mat_mul},
    {.op = "BatchMatMul", .run = batch_mat_mul_equal},
    {.op = "BatchMatMulV2", .run = batch_mat_mul},
};
MR_KERNEL_FAMILY(matmul);
