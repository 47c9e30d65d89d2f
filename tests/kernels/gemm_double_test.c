/* Products of doubles compared with the definition, at every CPU level: the same bits at any number of threads, and at
 * sizes around those of tiles, blocks and units. */
#include "kernels/gemm_double.h"
#include "tests/ops/run.h"
#include <math.h>

static double *draw(int64_t count, mr_random *random)
{
    double *numbers = malloc((size_t)MR_MAX(count, 1) * sizeof *numbers);
    CHECK(numbers != nullptr);
    for (int64_t i = 0; i < count; i++) numbers[i] = mr_random_range(random, -1, 1);
    return numbers;
}

static void multiply(mr_product p, double *c, mr_pool *pool)
{
    p.c = c;
    if (mr_gemv_double_fits(&p)) {
        mr_gemv_double_run(&p, pool);
        return;
    }
    const int threads = mr_pool_thread_count(pool);
    const int64_t size = mr_gemm_double_scratch(&p);
    float *floats = aligned_alloc(64, (size_t)(size * threads) * sizeof *floats);
    CHECK(floats != nullptr && size % 16 == 0);
    mr_slots slots;
    mr_slots_init(&slots, floats, size, threads);
    mr_gemm_double_run(&p, &slots, pool);
    free(floats);
}

static void check_product(mr_product p, mr_pool *pool, mr_random *random)
{
    const int64_t count = p.m * p.n;
    double *a = draw(p.m * p.k, random), *b = draw(p.k * p.n, random), *c = draw(count, random);
    double *alone = draw(count, random);
    CHECK(mr_gemv_double_fits(&p) || mr_gemm_double_repays(&p));
    p.a = a;
    p.b = b;
    multiply(p, c, pool);
    multiply(p, alone, nullptr);
    CHECK(memcmp(c, alone, (size_t)count * sizeof *c) == 0);
    const int64_t step = count > 40000 ? 1 + (int64_t)mr_random_below(random, (uint64_t)count / 5000) : 1;
    for (int64_t i = 0; i < count; i = i < count - 1 ? MR_MIN(i + step, count - 1) : count) {
        const int64_t row = i / p.n, column = i % p.n;
        double sum = 0;
        for (int64_t k = 0; k < p.k; k++)
            sum += a[p.a_transposed ? k * p.m + row : row * p.k + k] *
                   b[p.b_transposed ? column * p.k + k : k * p.n + column];
        if (!(fabs(sum - c[i]) <= 1e-14 * (double)(p.k + 8)))
            test_fail(__FILE__, __LINE__, "[%lld, %lld, %lld]: element %lld differs by %g", (long long)p.m,
                      (long long)p.n, (long long)p.k, (long long)i, fabs(sum - c[i]));
    }
    double *all[] = {a, b, c, alone};
    for (int i = 0; i < 4; i++) free(all[i]);
}

/* Sizes around those of vectors, groups of rows, blocks and pieces. */
static void check_vectors(mr_pool *pool, mr_random *random)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 511, 513, 1023, 1024, 1025, 2500};
    for (int i = 0; i < 80; i++) {
        const int64_t size = sizes[mr_random_below(random, 18)], k = 1 + sizes[mr_random_below(random, 18)];
        check_product((mr_product){.m = 1, .n = size, .k = k, .a_transposed = i & 1, .b_transposed = i & 2}, pool,
                      random);
        check_product((mr_product){.m = size, .n = 1, .k = k, .a_transposed = i & 1, .b_transposed = i & 2}, pool,
                      random);
    }
    check_product((mr_product){.m = 1, .n = 40000, .k = 20}, pool, random);
    check_product((mr_product){.m = 40000, .n = 1, .k = 20}, pool, random);
}

static void check_products(void)
{
    static const int64_t rows[] = {4, 5, 6, 9, 10, 14, 15, 42, 43, 80, 28, 29, 120, 121, 180, 280, 281, 336, 337};
    static const int64_t columns[] = {8, 9, 16, 17, 64, 128, 129, 143, 144, 145, 289, 300, 576, 577, 1024, 1025};
    static const int64_t inner[] = {8, 9, 40, 64, 65, 255, 256, 257, 511, 513};
    mr_error error = {0};
    mr_pool *pool;
    mr_random random = mr_random_at(test_seed(), 14, 0, 0);
    CHECK_OK(mr_pool_new(3, &pool, &error));
    for (int i = 0; i < 64; i++) {
        mr_product p = {.m = rows[mr_random_below(&random, 19)],
                        .n = columns[mr_random_below(&random, 16)],
                        .k = inner[mr_random_below(&random, 10)],
                        .a_transposed = i & 1,
                        .b_transposed = i & 2};
        if (mr_gemm_double_repays(&p)) check_product(p, pool, &random);
    }
    for (int form = 0; form < 4; form++) { /* several units in every direction */
        const mr_product p = {.m = 700, .n = 530, .k = 20, .a_transposed = form & 1, .b_transposed = form & 2};
        check_product(p, pool, &random);
    }
    check_product((mr_product){.m = 8, .n = 2100, .k = 30}, pool, &random);
    check_product((mr_product){.m = 1200, .n = 8, .k = 30}, pool, &random);
    check_vectors(pool, &random);
    mr_pool_free(pool);
}

TEST(gemm_double_plain_level)
{
    if (!use_level("plain", MR_CPU_PLAIN)) test_skip("no such level");
    check_products();
}

TEST(gemm_double_avx2)
{
    if (!use_level("avx2", MR_CPU_AVX2)) test_skip("no AVX2");
    check_products();
}

TEST(gemm_double_avx512)
{
    if (!use_level("avx512", MR_CPU_AVX512)) test_skip("no AVX-512");
    check_products();
}

/* Small products and vectors are left to plain loops and BLAS. */
TEST(gemm_double_limits)
{
    CHECK(mr_gemm_double_repays(&(mr_product){.m = 32, .n = 32, .k = 32}));
    CHECK(!mr_gemm_double_repays(&(mr_product){.m = 3, .n = 1000, .k = 1000}));
    CHECK(!mr_gemm_double_repays(&(mr_product){.m = 1000, .n = 7, .k = 1000}));
    CHECK(!mr_gemm_double_repays(&(mr_product){.m = 1000, .n = 1000, .k = 7}));
    CHECK(!mr_gemm_double_repays(&(mr_product){.m = 16, .n = 16, .k = 16}));
}
