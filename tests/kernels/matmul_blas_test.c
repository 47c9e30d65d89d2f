/* Products of doubles and complex numbers compared with the definition, at sizes around the blocks. */
#include "base/random.h"
#include "kernels/matmul.h"
#include "tests/test.h"

#include <complex.h>
#include <stdlib.h>

typedef double _Complex number;

static number at(mr_dtype dtype, const void *data, int64_t i)
{
    if (dtype == MR_DOUBLE) return ((const double *)data)[i];
    if (dtype == MR_COMPLEX64) return (number)((const float _Complex *)data)[i];
    return ((const number *)data)[i];
}

/* Random numbers; a double is the real part. */
static void *draw(mr_dtype dtype, int64_t count, mr_random *random)
{
    void *data = malloc((size_t)count * mr_dtype_size(dtype));
    CHECK(data != nullptr);
    for (int64_t i = 0; i < count; i++) {
        const double re = mr_random_range(random, -1, 1), im = mr_random_range(random, -1, 1);
        if (dtype == MR_DOUBLE)
            ((double *)data)[i] = re;
        else if (dtype == MR_COMPLEX64)
            ((float _Complex *)data)[i] = (float _Complex)(re + im * I);
        else
            ((number *)data)[i] = re + im * I;
    }
    return data;
}

static number expected(mr_dtype dtype, const mr_product *p, int64_t row, int64_t column)
{
    number sum = 0;
    for (int64_t k = 0; k < p->k; k++) {
        number x = at(dtype, p->a, p->a_transposed ? k * p->m + row : row * p->k + k);
        number y = at(dtype, p->b, p->b_transposed ? column * p->k + k : k * p->n + column);
        sum += (p->a_conjugated ? conj(x) : x) * (p->b_conjugated ? conj(y) : y);
    }
    return sum;
}

typedef struct calls_job {
    mr_dtype dtype;
    mr_product product;
    size_t size_bytes; /* of a result */
} calls_job;

static void run_calls(void *context, int64_t begin, int64_t end)
{
    const calls_job *job = context;
    for (int64_t i = begin; i < end; i++) {
        mr_product p = job->product;
        p.c = (char *)p.c + (size_t)i * job->size_bytes;
        mr_product_blas(job->dtype, &p);
    }
}

/* Compares some elements, with every one of the corners among them, and the bits of several calls at once with those of
 * one alone. */
static void check_product(mr_dtype dtype, mr_product p, mr_pool *pool, mr_random *random)
{
    constexpr int64_t CALLS = 6;
    const int64_t count = p.m * p.n;
    const double tolerance = (dtype == MR_COMPLEX64 ? 1e-6 : 1e-14) * (double)(p.k + 8);
    void *a = draw(dtype, p.m * p.k, random), *b = draw(dtype, p.k * p.n, random);
    void *c = draw(dtype, CALLS * count, random), *alone = draw(dtype, count, random);
    p.a = a;
    p.b = b;
    p.c = c;
    CHECK(mr_product_is_blas(dtype, &p));
    calls_job job = {dtype, p, (size_t)count * mr_dtype_size(dtype)};
    mr_pool_for(pool, CALLS, 1, run_calls, &job);
    p.c = alone;
    mr_product_blas(dtype, &p);
    for (int64_t i = 0; i < CALLS; i++)
        CHECK(memcmp((char *)c + (size_t)i * job.size_bytes, alone, job.size_bytes) == 0);
    const int64_t step = count > 4000 ? 1 + (int64_t)mr_random_below(random, (uint64_t)count / 500) : 1;
    for (int64_t i = 0; i < count + 3; i += step) {
        const int64_t corners[] = {0, p.n - 1, count - p.n, count - 1};
        const int64_t place = i / step < 4 ? corners[i / step] : i < count ? i : count - 1;
        const number found = at(dtype, c, place), wanted = expected(dtype, &p, place / p.n, place % p.n);
        if (!(cabs(found - wanted) <= tolerance))
            test_fail(__FILE__, __LINE__, "%s [%lld, %lld, %lld]: element %lld differs by %g", mr_dtype_name(dtype),
                      (long long)p.m, (long long)p.n, (long long)p.k, (long long)place, cabs(found - wanted));
    }
    free(a);
    free(b);
    free(c);
    free(alone);
}

/* OpenBLAS itself would confuse the buffers of two calls, now and then. */
TEST(matmul_blas_calls_at_once)
{
    constexpr int64_t CALLS = 40, ROUNDS = 150;
    mr_error error = {0};
    mr_random random = mr_random_at(test_seed(), 15, 0, 0);
    mr_pool *pool;
    CHECK_OK(mr_pool_new(3, &pool, &error));
    for (int i = 0; i < 4; i++) {
        const mr_dtype dtype = i & 1 ? MR_COMPLEX64 : MR_DOUBLE;
        mr_product p = {.m = i & 2 ? 2074 : 1000, .n = i & 2 ? 3 : 7, .k = 14};
        const size_t size_bytes = (size_t)(p.m * p.n) * mr_dtype_size(dtype);
        void *a = draw(dtype, p.m * p.k, &random), *b = draw(dtype, p.k * p.n, &random);
        char *c = draw(dtype, CALLS * p.m * p.n, &random), *alone = draw(dtype, p.m * p.n, &random);
        p.a = a;
        p.b = b;
        p.c = alone;
        mr_product_blas(dtype, &p);
        p.c = c;
        for (int round = 0; round < ROUNDS; round++) {
            mr_pool_for(pool, CALLS, 1, run_calls, &(calls_job){dtype, p, size_bytes});
            for (int64_t call = 0; call < CALLS; call++)
                CHECK(memcmp(c + (size_t)call * size_bytes, alone, size_bytes) == 0);
        }
        void *all[] = {a, b, c, alone};
        for (int k = 0; k < 4; k++) free(all[k]);
    }
    mr_pool_free(pool);
}

TEST(matmul_blas_model)
{
    static const mr_dtype dtypes[] = {MR_DOUBLE, MR_COMPLEX64, MR_COMPLEX128};
    static const int64_t sizes[] = {1, 2, 7, 64, 127, 128, 129, 255, 256, 257, 300};
    mr_error error = {0};
    mr_random random = mr_random_at(test_seed(), 12, 0, 0);
    mr_pool *pool;
    CHECK_OK(mr_pool_new(3, &pool, &error));
    for (int i = 0; i < 150; i++) {
        mr_product p = {.m = sizes[mr_random_below(&random, 11)],
                        .n = sizes[mr_random_below(&random, 11)],
                        .k = 1 + (int64_t)mr_random_below(&random, 40),
                        .a_transposed = i & 1,
                        .b_transposed = i & 2};
        const mr_dtype dtype = dtypes[i % 3];
        p.a_conjugated = p.a_transposed && i & 4 && dtype != MR_DOUBLE;
        p.b_conjugated = p.b_transposed && i & 8 && dtype != MR_DOUBLE;
        if (mr_product_is_blas(dtype, &p)) check_product(dtype, p, pool, &random);
    }
    for (int i = 0; i < 64; i++) { /* a matrix and a vector */
        const int64_t size = sizes[2 + mr_random_below(&random, 9)];
        mr_product p = {.m = i & 1 ? 1 : size, .n = i & 1 ? size : 1, .a_transposed = i & 2, .b_transposed = i & 4};
        p.k = 1024 / size + (int64_t)mr_random_below(&random, 200) + 1;
        check_product(MR_DOUBLE, p, pool, &random);
    }
    check_product(MR_DOUBLE, (mr_product){.m = 1100, .n = 270, .k = 3}, pool, &random);
    check_product(MR_DOUBLE, (mr_product){.m = 257, .n = 1025, .k = 2, .b_transposed = true}, pool, &random);
    check_product(MR_COMPLEX64, (mr_product){.m = 1030, .n = 260, .k = 2, .a_transposed = true}, pool, &random);
    mr_pool_free(pool);
}

/* What BLAS cannot or should not compute is left to plain loops. */
TEST(matmul_blas_limits)
{
    const mr_product p = {.m = 32, .n = 32, .k = 32}, huge = {.m = (int64_t)1 << 31, .n = 1, .k = 1};
    CHECK(mr_product_is_blas(MR_DOUBLE, &p));
    CHECK(!mr_product_is_blas(MR_FLOAT, &p));
    CHECK(!mr_product_is_blas(MR_INT32, &p));
    CHECK(!mr_product_is_blas(MR_DOUBLE, &huge));
    mr_product other = p;
    other.a_conjugated = true;
    CHECK(!mr_product_is_blas(MR_COMPLEX64, &other));
    other.a_transposed = true;
    CHECK(mr_product_is_blas(MR_COMPLEX64, &other));
    other.accumulate = true;
    CHECK(!mr_product_is_blas(MR_COMPLEX64, &other));
    CHECK(!mr_product_is_blas(MR_DOUBLE, &(mr_product){.m = 4, .n = 4, .k = 4}));
    CHECK(!mr_product_is_blas(MR_DOUBLE, &(mr_product){.m = 4000, .n = 4000, .k = 0}));
}
