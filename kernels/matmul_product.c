/* Products of any number type: floats use gemm.h, doubles gemm_double.h, complex numbers and thin matrices of doubles
 * BLAS, other types and small products plain loops over rows in cache. */
#include "kernels/gemm.h"
#include "kernels/gemm_double.h"
#include "kernels/matmul.h"
#include <string.h>

typedef struct complex_float {
    float re, im;
} complex_float;
typedef struct complex_double {
    double re, im;
} complex_double;

#define PLAIN(type, suffix)                                                                                            \
    static void rows_##suffix(void *context, int64_t begin, int64_t end)                                               \
    {                                                                                                                  \
        const mr_product *p = context;                                                                                 \
        const type *a = p->a, *b = p->b;                                                                               \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            type *c = (type *)p->c + i * p->n;                                                                         \
            if (p->k == 0) memset(c, 0, (size_t)p->n * sizeof(type));                                                  \
            for (int64_t k = 0; k < p->k; k++) {                                                                       \
                const type x = a[p->a_transposed ? k * p->m + i : i * p->k + k];                                       \
                const type *row = b + (p->b_transposed ? k : k * p->n);                                                \
                const int64_t step = p->b_transposed ? p->k : 1;                                                       \
                if (k == 0)                                                                                            \
                    for (int64_t j = 0; j < p->n; j++) c[j] = (type)(0 + (type)(x * row[j * step])); /* not -0 */      \
                else if (step == 1)                                                                                    \
                    for (int64_t j = 0; j < p->n; j++) c[j] = (type)(c[j] + (type)(x * row[j]));                       \
                else                                                                                                   \
                    for (int64_t j = 0; j < p->n; j++) c[j] = (type)(c[j] + (type)(x * row[j * step]));                \
            }                                                                                                          \
        }                                                                                                              \
    }
PLAIN(double, double)
PLAIN(uint32_t, int32)
PLAIN(uint64_t, int64)
PLAIN(uint16_t, int16)
PLAIN(uint8_t, uint8)

#define COMPLEX(type, suffix)                                                                                          \
    static void rows_##suffix(void *context, int64_t begin, int64_t end)                                               \
    {                                                                                                                  \
        const mr_product *p = context;                                                                                 \
        const type *a = p->a, *b = p->b;                                                                               \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            type *c = (type *)p->c + i * p->n;                                                                         \
            memset(c, 0, (size_t)p->n * sizeof(type));                                                                 \
            for (int64_t k = 0; k < p->k; k++) {                                                                       \
                type x = a[p->a_transposed ? k * p->m + i : i * p->k + k];                                             \
                if (p->a_conjugated) x.im = -x.im;                                                                     \
                const type *row = b + (p->b_transposed ? k : k * p->n);                                                \
                const int64_t step = p->b_transposed ? p->k : 1;                                                       \
                for (int64_t j = 0; j < p->n; j++) {                                                                   \
                    type y = row[j * step];                                                                            \
                    if (p->b_conjugated) y.im = -y.im;                                                                 \
                    c[j].re += x.re * y.re - x.im * y.im;                                                              \
                    c[j].im += x.re * y.im + x.im * y.re;                                                              \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }
COMPLEX(complex_float, complex64)
COMPLEX(complex_double, complex128)

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
    case MR_INT16:
    case MR_UINT16:
        return rows_int16;
    case MR_UINT8:
    case MR_INT8:
        return rows_uint8;
    case MR_COMPLEX64:
        return rows_complex64;
    case MR_COMPLEX128:
        return rows_complex128;
    default:
        return nullptr;
    }
}

static mr_gemm gemm_of(const mr_product *p)
{
    return (mr_gemm){.m = p->m,
                     .n = p->n,
                     .k = p->k,
                     .a = p->a,
                     .b = p->b,
                     .a_transposed = p->a_transposed,
                     .b_transposed = p->b_transposed,
                     .c = p->c,
                     .accumulate = p->accumulate,
                     .pairs = p->pairs,
                     .bias = p->bias,
                     .a_row = p->a_row,
                     .b_row = p->b_row,
                     .c_row = p->c_row};
}

typedef struct batch_job {
    mr_product product;
    const mr_product_batch *batch;
    mr_dtype dtype;
    size_t size;
    mr_pool *pool;
    bool is_double, is_vector, is_blas; /* of doubles: gemm_double.h, or a vector; BLAS */
    mr_pool_body rows;                  /* null: floats */
    mr_slots slots;                     /* scratch memory of the threads for gemm.h and gemm_double.h */
} batch_job;

static void batch_products(void *context, int64_t begin, int64_t end)
{
    batch_job *job = context;
    const mr_shape *batch = &job->batch->shape;
    for (int64_t index = begin; index < end; index++) {
        mr_product p = job->product;
        int64_t rest = index, a = 0, b = 0, c = 0;
        for (int d = batch->rank - 1; d >= 0; d--) {
            int64_t at = rest % batch->dims[d];
            rest /= batch->dims[d];
            a += at * job->batch->a_strides[d];
            b += at * job->batch->b_strides[d];
            c += at * job->batch->c_strides[d];
        }
        a *= job->batch->a_matrix > 0 ? job->batch->a_matrix : p.m * p.k;
        b *= job->batch->b_matrix > 0 ? job->batch->b_matrix : p.n * p.k;
        c = job->batch->c_matrix > 0 ? c * job->batch->c_matrix : index * p.m * p.n;
        p.a = (const char *)p.a + (size_t)a * job->size;
        p.b = (const char *)p.b + (size_t)b * job->size;
        p.c = (char *)p.c + (size_t)c * job->size;
        if (job->is_double) {
            mr_gemm_double_run(&p, &job->slots, job->pool);
        } else if (job->is_vector) {
            mr_gemv_double_run(&p, job->pool);
        } else if (job->is_blas) {
            mr_product_blas(job->dtype, &p);
        } else if (job->rows != nullptr) {
            job->rows(&p, 0, p.m);
        } else {
            mr_gemm gemm = gemm_of(&p);
            mr_gemm_run(&gemm, &job->slots, job->pool);
        }
    }
}

mr_status mr_product_run(mr_kernel_call *call, mr_dtype dtype, const mr_product *product, const mr_product_batch *batch,
                         mr_error *error)
{
    static const mr_product_batch single = {.shape = {.rank = 0}};
    batch_job job = {.product = *product,
                     .batch = batch != nullptr ? batch : &single,
                     .dtype = dtype,
                     .size = mr_dtype_size(dtype),
                     .pool = call->device->pool};
    int64_t count = mr_shape_count(job.batch->shape);
    if (count <= 0 || product->m == 0 || product->n == 0) return MR_OK;
    /* Only now: the dims of an empty batch can be so large that their product overflows. */
    const int64_t row = MR_MAX(1, product->n * product->k);
    mr_buffer *buffer = nullptr;
    job.is_double = dtype == MR_DOUBLE && mr_gemm_double_repays(product);
    if (dtype != MR_FLOAT) {
        job.rows = plain_rows(dtype);
        if (job.rows == nullptr) return mr_kernel_unsupported(call->node, error);
        job.is_vector = dtype == MR_DOUBLE && mr_gemv_double_fits(product);
        job.is_blas = !job.is_vector && mr_product_is_blas(dtype, product);
    }
    if (dtype == MR_FLOAT || job.is_double) {
        mr_gemm gemm = gemm_of(&job.product);
        float *floats;
        int64_t size = job.is_double ? mr_gemm_double_scratch(product) : mr_gemm_scratch(&gemm);
        int64_t threads = mr_pool_thread_count(job.pool);
        MR_TRY(mr_scratch_new(call, size * threads, &buffer, &floats, error));
        mr_slots_init(&job.slots, floats, size, (int)threads);
    }
    if (job.is_blas) /* one call at a time: kernels/blas.h */
        batch_products(&job, 0, count);
    else if (count == 1 && job.rows != nullptr && !job.is_double && !job.is_vector)
        mr_pool_for(job.pool, product->m, MR_MAX(1, MR_GRAIN / row), job.rows, &job.product);
    else
        mr_pool_for(job.pool, count, MR_MAX(1, MR_GRAIN * 8 / (row * product->m)), batch_products, &job);
    mr_buffer_unref(buffer);
    return MR_OK;
}
