/* Tensors of random floats, which are filled eight groups of four at a time, compared with one sample of Philox after
 * the other, at every CPU level. */
#include "kernels/random.h"
#include "tests/ops/run.h"

#include <math.h>

static void expected_group(const mr_random_fill *fill, int64_t group, float values[4])
{
    mr_philox philox = fill->philox;
    mr_philox_skip(&philox, (uint64_t)group * (fill->distribution == MR_RANDOM_TRUNCATED ? 256 : 1));
    mr_words words = {.philox = philox, .used = 4};
    for (int have = 0; have < 4;) {
        if (fill->distribution == MR_RANDOM_UNIFORM) {
            values[have++] = mr_random_float(mr_words_next(&words));
            continue;
        }
        float pair[2];
        const uint32_t first = mr_words_next(&words), second = mr_words_next(&words);
        mr_random_normal_floats(first, second, pair);
        for (int i = 0; i < 2 && have < 4; i++)
            if (fill->distribution == MR_RANDOM_NORMAL || fabsf(pair[i]) < 2) values[have++] = pair[i];
    }
}

static void check_fill(mr_random_fill *fill, mr_pool *pool)
{
    float numbers[5000 + 1];
    CHECK(fill->count <= 5000);
    numbers[fill->count] = 77;
    fill->target = numbers;
    mr_random_run_fill(fill, pool);
    CHECK(numbers[fill->count] == 77);
    for (int64_t i = 0; i < fill->count; i++) {
        float values[4];
        expected_group(fill, i / 4, values);
        if (memcmp(&numbers[i], &values[i % 4], sizeof(float)) != 0)
            test_fail(__FILE__, __LINE__, "distribution %d, %lld numbers: number %lld is %g, not %g",
                      (int)fill->distribution, (long long)fill->count, (long long)i, (double)numbers[i],
                      (double)values[i % 4]);
    }
}

/* Counts around the groups, and counters that carry within a fill. */
static void check_floats(void)
{
    static const mr_distribution distributions[] = {MR_RANDOM_UNIFORM, MR_RANDOM_NORMAL, MR_RANDOM_TRUNCATED};
    mr_error error = {0};
    mr_pool *pool;
    mr_random random = mr_random_at(test_seed(), 11, 0, 0);
    CHECK_OK(mr_pool_new(3, &pool, &error));
    for (int i = 0; i < 300; i++) {
        mr_random_fill fill = {.distribution = distributions[i % 3], .dtype = MR_FLOAT};
        fill.philox = mr_philox_seed(mr_random_below(&random, UINT64_MAX), mr_random_below(&random, UINT64_MAX));
        if (i % 2) mr_philox_skip(&fill.philox, UINT64_MAX - mr_random_below(&random, 400));
        fill.count = i < 250 ? i / 3 : (int64_t)mr_random_below(&random, 5001);
        check_fill(&fill, i % 4 ? pool : nullptr);
    }
    mr_pool_free(pool);
}

TEST(random_floats_plain)
{
    if (!use_level("plain", MR_CPU_PLAIN)) test_skip("no such level");
    check_floats();
}

TEST(random_floats_avx2)
{
    if (!use_level("avx2", MR_CPU_AVX2)) test_skip("no AVX2");
    check_floats();
}

TEST(random_floats_avx512)
{
    if (!use_level("avx512", MR_CPU_AVX512)) test_skip("no AVX-512");
    check_floats();
}
