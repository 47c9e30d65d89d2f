/* Every vector row loop beside the plain one, at every length, with what lies behind the target left alone. */
#include "base/random.h"
#include "kernels/image_rows.h"
#include "tests/test.h"

#include <math.h>

constexpr size_t width = 200;

typedef struct rows {
    unsigned char above[width + mr_rows_slack], below[width + mr_rows_slack];
    float source[3 * width + mr_rows_slack], weights[width];
    int32_t first[width];
} rows;

static void fill(rows *rows)
{
    mr_random random = mr_random_at(test_seed(), 0, 0, 1);
    for (size_t i = 0; i < width + mr_rows_slack; i++) {
        rows->above[i] = (unsigned char)mr_random_next32(&random);
        rows->below[i] = (unsigned char)mr_random_next32(&random);
    }
    for (size_t i = 0; i < 3 * width + mr_rows_slack; i++) rows->source[i] = (float)mr_random_range(&random, -20, 280);
    for (size_t i = 0; i < width; i++) {
        rows->first[i] = (int32_t)mr_random_below(&random, width - 1);
        rows->weights[i] = (float)mr_random_unit(&random);
    }
}

static void check_floats(const float *expected, const float *found, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (fabsf(expected[i] - found[i]) > 1e-4f)
            test_fail(__FILE__, __LINE__, "%s: %zu of %zu is %g, not %g", name, i, count, (double)found[i],
                      (double)expected[i]);
    if (found[count] != -1.0f) test_fail(__FILE__, __LINE__, "%s: %zu elements: wrote past the end", name, count);
}

static void check_level(const rows *rows, mr_cpu_level level, size_t count)
{
    const mr_rows_table *plain = mr_rows(MR_CPU_PLAIN), *fast = mr_rows(level);
    const float scale[3] = {0.5f, 2, 1}, shift[3] = {1, -3, 0};
    float expected[3 * width + 1], found[3 * width + 1];
#define COMPARE(name, elements, call)                                                                                  \
    for (size_t i = 0; i <= (elements); i++) expected[i] = found[i] = -1;                                              \
    {                                                                                                                  \
        const mr_rows_table *table = plain;                                                                            \
        float *target = expected;                                                                                      \
        call;                                                                                                          \
        table = fast;                                                                                                  \
        target = found;                                                                                                \
        call;                                                                                                          \
    }                                                                                                                  \
    check_floats(expected, found, elements, name)
    COMPARE("blend", count, table->blend(target, rows->above, rows->below, 0.3f, count));
    COMPARE("weigh", count, table->weigh(target, rows->above, 0.3f, false, count));
    COMPARE("weigh more", count, table->weigh(target, rows->above, 0.3f, true, count));
    COMPARE("lerp3", 3 * count, table->lerp3(target, rows->source, rows->first, rows->weights, scale, shift, count));
    COMPARE("lerp1", count, table->lerp1(target, rows->source, rows->first, rows->weights, 2, -1, count));
#undef COMPARE
    uint16_t words[2][width + 1] = {0};
    plain->to_half(words[0], rows->source, count);
    fast->to_half(words[1], rows->source, count);
    CHECK(memcmp(words[0], words[1], sizeof(words[0])) == 0);
    plain->to_bfloat16(words[0], rows->source, count);
    fast->to_bfloat16(words[1], rows->source, count);
    CHECK(memcmp(words[0], words[1], sizeof(words[0])) == 0);
    uint8_t bytes[2][width + 1] = {0};
    plain->to_uint8(bytes[0], rows->source, count);
    fast->to_uint8(bytes[1], rows->source, count);
    CHECK(memcmp(bytes[0], bytes[1], sizeof(bytes[0])) == 0);
}

TEST(image_rows_fast_equals_plain)
{
    static rows rows;
    fill(&rows);
    for (int level = MR_CPU_AVX2; level <= (int)mr_cpu(); level++)
        for (size_t count = 0; count <= width; count += count < 40 ? 1 : 32)
            check_level(&rows, (mr_cpu_level)level, count);
}
