/* Matrix products compared with the reference triple loop, at every CPU level and several numbers of threads. */
#include "kernels/gemm.h"
#include "tests/ops/run.h"
#include <math.h>

/* The rows of a matrix at another distance. */
static mr_tensor spread(const float *from, int64_t rows, int64_t columns, int64_t distance, float between)
{
    const int64_t count = rows > 0 ? (rows - 1) * distance + columns : 0; /* nothing follows the last row */
    mr_tensor made = random_floats(MR_SHAPE(count), 6);
    float *to = made.data;
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = i / distance, column = i % distance;
        to[i] = column < columns ? from[row * columns + column] : between;
    }
    return made;
}

/* The same product of operands whose rows do not follow each other: what is between them is not used or changed. */
static void check_distances(const mr_gemm *dense, const float *start, const mr_tensor *wanted, mr_pool *pool)
{
    const int64_t gap = 1 + (dense->m + dense->n + dense->k) % 18;
    const bool ta = dense->a_transposed, tb = dense->b_transposed;
    mr_gemm g = *dense;
    g.a_row = (ta ? g.m : g.k) + gap;
    g.b_row = (tb ? g.k : g.n) + gap % 5;
    g.c_row = g.n + gap % 7;
    mr_tensor a = spread(g.a, ta ? g.k : g.m, ta ? g.m : g.k, g.a_row, NAN);
    mr_tensor b = spread(g.b, tb ? g.n : g.k, tb ? g.k : g.n, g.b_row, NAN);
    mr_tensor c = spread(start, g.m, g.n, g.c_row, 77);
    const int threads = mr_pool_thread_count(pool);
    mr_tensor scratch = random_floats(MR_SHAPE(mr_gemm_scratch(&g) * threads + 1), 4);
    mr_slots slots;
    mr_slots_init(&slots, scratch.data, mr_gemm_scratch(&g), threads);
    g.a = a.data;
    g.b = b.data;
    g.c = c.data;
    mr_gemm_run(&g, &slots, pool);
    const float *result = c.data, *expected = wanted->data;
    for (int64_t i = 0; i < mr_tensor_count(&c); i++) {
        const int64_t row = i / g.c_row, column = i % g.c_row;
        if (column >= g.n)
            CHECK(result[i] == 77);
        else
            CHECK(fabsf(result[i] - expected[row * g.n + column]) <= 1e-4F * (1 + fabsf(result[i])));
    }
    mr_tensor *all[] = {&a, &b, &c, &scratch};
    for (int i = 0; i < 4; i++) mr_tensor_deinit(all[i]);
}

/* adds: c += a · b, with a bias */
static void check_sum(int64_t m, int64_t n, int64_t k, bool a_transposed, bool b_transposed, bool adds, mr_pool *pool)
{
    mr_tensor a = random_floats(MR_SHAPE(m, k), 1), b = random_floats(MR_SHAPE(k, n), 2);
    mr_tensor c = random_floats(MR_SHAPE(m, n), 3), plain = random_floats(MR_SHAPE(m, n), 3),
              alone = random_floats(MR_SHAPE(m, n), 3), bias = random_floats(MR_SHAPE(n), 5);
    mr_gemm gemm = {.m = m,
                    .n = n,
                    .k = k,
                    .a = a.data,
                    .b = b.data,
                    .a_transposed = a_transposed,
                    .b_transposed = b_transposed,
                    .c = c.data,
                    .accumulate = adds,
                    .bias = adds ? bias.data : nullptr};
    const int threads = mr_pool_thread_count(pool);
    const int64_t floats = mr_gemm_scratch(&gemm) * threads;
    mr_tensor scratch = random_floats(MR_SHAPE(floats + 1), 4);
    float *end = (float *)scratch.data + floats;
    mr_slots slots;
    mr_slots_init(&slots, scratch.data, mr_gemm_scratch(&gemm), threads);
    *end = 1;
    mr_gemm_run(&gemm, &slots, pool);
    gemm.c = plain.data;
    mr_gemm_plain(&gemm);
    check_close(&c, &plain, 1e-4);
    gemm.c = alone.data;
    mr_gemm_run(&gemm, &slots, nullptr);
    check_same_bits(&c, &alone);
    CHECK(*end == 1);
    mr_tensor start = random_floats(MR_SHAPE(m, n), 3);
    check_distances(&gemm, start.data, &c, pool);
    mr_tensor *all[] = {&a, &b, &c, &plain, &alone, &scratch, &bias, &start};
    for (int i = 0; i < 8; i++) mr_tensor_deinit(all[i]);
}

static void check_product(int64_t m, int64_t n, int64_t k, bool a_transposed, bool b_transposed, mr_pool *pool)
{
    check_sum(m, n, k, a_transposed, b_transposed, false, pool);
}

/* A sum of products that are -0 is 0. */
static void check_zeros(mr_pool *pool)
{
    constexpr int N = 37;
    float a[2] = {-1, -2}, b[N] = {}, c[2 * N];
    for (int i = 0; i < 2 * N; i++) c[i] = 1;
    mr_gemm_run(&(mr_gemm){.m = 2, .n = N, .k = 1, .a = a, .b = b, .c = c}, nullptr, pool);
    for (int i = 0; i < 2 * N; i++) CHECK(c[i] == 0 && !signbit(c[i]));
}

/* A matrix and a vector, or two vectors, at sizes around those of vectors and blocks. */
static void check_vectors(mr_pool *pool)
{
    static const int64_t sizes[] = {1, 3, 4, 5, 15, 16, 17, 31, 33, 127, 128, 129, 255, 256, 257, 700};
    constexpr int count = sizeof sizes / sizeof *sizes;
    /* Under a sanitizer every size, in every form, with some of the others. */
    for (int i = 0; i < count * count * 4; i += test_is_sanitized() ? 7 : 1) {
        const int64_t size = sizes[i % count], k = sizes[i / count % count];
        const int form = i / count / count;
        check_sum(1, size, k, form & 1, form & 2, i % 3 == 0, pool);
        check_sum(size, 1, k, form & 1, form & 2, i % 3 == 0, pool);
        if (i % 5 == 0) check_sum(size, k, 1, form & 1, form & 2, i % 3 == 0, pool);
    }
    check_sum(1, 40000, 20, false, false, true, pool); /* several pieces */
    check_sum(1, 2049, 20, false, false, true, pool);
    check_sum(1, 40000, 20, false, true, true, pool);
    static const int64_t in_parts[][2] = {{17, 62000}, {1000, 1100}, {2048, 700}, {2047, 2100}, {2049, 700}};
    for (int i = 0; i < 5; i++) { /* parts of the rows: 2, 2, 2, 8, 1 */
        check_sum(1, in_parts[i][0], in_parts[i][1], false, false, i % 2 == 0, pool);
        check_sum(in_parts[i][0], 1, in_parts[i][1], true, false, i % 2 == 0, pool);
    }
    check_sum(2000, 1001, 1, false, false, true, pool);
    check_zeros(pool);
    check_sum(40000, 1, 20, false, false, true, pool);
    check_sum(40000, 1, 20, true, false, true, pool);
    check_sum(1, 30, 140000, true, true, false, pool);
}

/* Two segments of a tile whose A has as many numbers for each step as rows: it looks packed. */
static void check_segments(void)
{
    constexpr int ROWS = 14, LENGTH = 5, SEGMENTS = 2, COLUMNS = 32;
    if (mr_tile_vectors_max(false) < 2) return;
    mr_tensor a = random_floats(MR_SHAPE(SEGMENTS, LENGTH + 1, ROWS), 1);
    mr_tensor b = random_floats(MR_SHAPE(2, SEGMENTS * LENGTH, 16), 2), c = random_floats(MR_SHAPE(ROWS, COLUMNS), 3);
    const float *x = a.data, *y = b.data, *z = c.data;
    const int64_t segment = (LENGTH + 1) * ROWS, next = SEGMENTS * LENGTH * 16;
    mr_tile_run(&(mr_tile){.a = x,
                           .a_row = 1,
                           .a_step = ROWS,
                           .a_segment = segment,
                           .b = y,
                           .b_step = 16,
                           .b_next = next,
                           .c = c.data,
                           .c_row = COLUMNS,
                           .length = LENGTH,
                           .segments = SEGMENTS,
                           .rows = ROWS,
                           .vectors = 2,
                           .columns = COLUMNS});
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const int row = i / COLUMNS, column = i % COLUMNS;
        float sum = 0;
        for (int s = 0; s < SEGMENTS; s++)
            for (int k = 0; k < LENGTH; k++)
                sum += x[s * segment + k * ROWS + row] * y[column / 16 * next + (s * LENGTH + k) * 16 + column % 16];
        CHECK(fabsf(sum - z[i]) < 1e-5F);
    }
    mr_tensor *all[] = {&a, &b, &c};
    for (int i = 0; i < 3; i++) mr_tensor_deinit(all[i]);
}

/* Around the limits of packed rows, of their tiles and blocks, and of what is unrolled and prefetched. */
static void check_packed(mr_pool *pool)
{
    static const int64_t heights[] = {127, 128, 129, 140, 141, 224, 225, 1024, 4096};
    static const int64_t widths[] = {63, 64, 65, 127, 128, 129, 255, 256, 257, 288, 300, 2047, 2049, 2080};
    static const int64_t lengths[] = {1, 2, 3, 4, 5, 15, 16, 17, 63, 95, 96, 97, 100, 511, 513, 1024};
    mr_random random = mr_random_at(test_seed(), 8, 0, 0);
    for (int i = 0; i < (test_is_sanitized() ? 12 : 40); i++) {
        const int64_t m = heights[mr_random_below(&random, 9)], n = widths[mr_random_below(&random, 14)];
        const int64_t k = lengths[mr_random_below(&random, 16)];
        if (m * n * k < 1 << 26) check_sum(m, n, k, i & 1, i & 2, i & 4, pool);
    }
    check_sum(4096, 513, 5, true, false, false, pool);   /* a large result of few steps */
    check_sum(400, 2100, 520, true, false, false, pool); /* several groups and units */
    if (!test_is_sanitized()) check_sum(400, 2100, 520, false, true, true, pool);
}

static void check_products(void)
{
    mr_error error = {0};
    mr_pool *pool;
    mr_random random = mr_random_at(test_seed(), 7, 0, 0);
    CHECK_OK(mr_pool_new(3, &pool, &error));
    for (int i = 0; i < 60; i++) {
        int64_t m = 1 + (int64_t)mr_random_below(&random, 100), n = 1 + (int64_t)mr_random_below(&random, 100);
        check_product(m, n, (int64_t)mr_random_below(&random, 90), i & 1, i & 2, pool);
    }
    for (int i = 0; i < 12; i++) { /* with and without packed rows */
        int64_t m = 20 + (int64_t)mr_random_below(&random, 90), n = 80 + (int64_t)mr_random_below(&random, 520);
        check_sum(m, n, 480 + (int64_t)mr_random_below(&random, 90), i & 1, i & 2, i & 4, pool);
    }
    for (int i = 0; i < 24; i++) { /* tiles of every width, and their limits in rows: 9, 14, 192 */
        static const int64_t rows[] = {8, 9, 10, 14, 15, 18, 19, 192, 193, 199};
        int64_t n = 16 * (1 + (int64_t)mr_random_below(&random, 40)), m = rows[mr_random_below(&random, 10)];
        if (i & 4) n -= (int64_t)mr_random_below(&random, 16);
        check_sum(m, n, 1 + (int64_t)mr_random_below(&random, 40), i & 1, i & 2, i & 8, pool);
    }
    for (int i = 0; i < 20; i++) { /* few short rows, around the limit of 96 */
        int64_t m = 2 + (int64_t)mr_random_below(&random, 26), n = 16 * (1 + (int64_t)mr_random_below(&random, 60));
        check_product(m, n, i % 4 == 0 ? 96 + i % 8 / 4 : 2 + (int64_t)mr_random_below(&random, 100), false, false,
                      pool);
    }
    for (int64_t m = 4095; m <= 4099; m += 2)
        check_product(m, 130, 21, true, false, pool);  /* rows that are far apart */
    check_product(200, 130, 1100, false, false, pool); /* several blocks in every direction */
    check_product(200, 130, 1100, true, true, pool);
    for (int transposed = 0; transposed < 4;
         transposed++) { /* rows at bad distances, and blocks that end before and after */
        check_product(512, 270, 512, transposed & 1, transposed & 2, pool);
        check_product(30, 257, 1024, transposed & 1, transposed & 2, pool);
        check_product(25, 300, 257, transposed & 1, transposed & 2, pool);
        check_product(25, 300, 513, transposed & 1, transposed & 2, pool);
        check_product(1024, 130, 530, transposed & 1, transposed & 2, pool);
        check_product(512, 200, 3, transposed & 1, transposed & 2, pool);
        check_sum(150, 560, 1030, transposed & 1, transposed & 2, true, pool); /* several blocks of packed rows */
    }
    for (int form = 0; form < 4; form++) check_sum(60, 70, 80, form & 1, form & 2, true, pool);
    check_segments();
    check_packed(pool);
    check_vectors(pool);
    mr_pool_free(pool);
}

TEST(gemm_plain_level)
{
    if (!use_level("plain", MR_CPU_PLAIN)) test_skip("no such level");
    check_products();
}

TEST(gemm_avx2)
{
    if (!use_level("avx2", MR_CPU_AVX2)) test_skip("no AVX2");
    check_products();
}

TEST(gemm_avx512)
{
    if (!use_level("avx512", MR_CPU_AVX512)) test_skip("no AVX-512");
    check_products();
}
