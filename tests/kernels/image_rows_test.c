/* Every vector loop over a row compared bit for bit with the plain loop, at every length. Bytes after the target must
 * not change. */
#include "base/random.h"
#include "kernels/image/image_rows.h"
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
        if (memcmp(&expected[i], &found[i], sizeof(float)) != 0)
            test_fail(__FILE__, __LINE__, "%s: %zu of %zu is %a, not %a", name, i, count, (double)found[i],
                      (double)expected[i]);
    if (found[count] != -1.0f) test_fail(__FILE__, __LINE__, "%s: %zu elements: wrote past the end", name, count);
}

static void check_narrow(const mr_rows_table *plain, const mr_rows_table *fast, const float *source, size_t count)
{
    uint8_t bytes[2][width + 1] = {0};
    plain->to_uint8(bytes[0], source, count);
    fast->to_uint8(bytes[1], source, count);
    CHECK(memcmp(bytes[0], bytes[1], sizeof(bytes[0])) == 0);
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
    check_narrow(plain, fast, rows->source, count);
}

TEST(image_rows_fast_equals_plain)
{
    static rows rows;
    fill(&rows);
    for (int level = MR_CPU_AVX2; level <= (int)mr_cpu(); level++)
        for (size_t count = 0; count <= width; count += count < 40 ? 1 : 32)
            check_level(&rows, (mr_cpu_level)level, count);
}

/* Ties, subnormals, overflow, infinities and the NaN that arithmetic produces, then random bits. */
TEST(image_rows_narrow_every_kind_of_float)
{
    static const uint32_t edges[] = {0x00000000, 0x80000000, 0x33000000, 0x33000001, 0x387fe000, 0x387ff000,
                                     0x38801000, 0x38803000, 0x477fefff, 0x477ff000, 0x7f7fffff, 0x7f7f8000,
                                     0x7f800000, 0xff800000, 0xffc00000, 0x3f808000, 0x3f818000, 0x3f817fff,
                                     0x00000001, 0x437f0000, 0x42fd0000, 0x437e8000, 0x437f8000, 0xbf000000,
                                     0x3f000000, 0x3fc00000, 0x4f800000, 0xcf800000};
    constexpr size_t edge_count = sizeof(edges) / sizeof(edges[0]);
    mr_random random = mr_random_at(test_seed(), 0, 0, 2);
    float source[width + mr_rows_slack];
    for (int round = 0; round < 100; round++) {
        for (size_t i = 0; i < width; i++) {
            uint32_t bits = round == 0 ? edges[i % edge_count] : mr_random_next32(&random);
            if ((bits & 0x7fffffff) > 0x7f800000) bits = 0xffc00000;
            memcpy(&source[i], &bits, sizeof(bits));
        }
        for (int level = MR_CPU_AVX2; level <= (int)mr_cpu(); level++)
            check_narrow(mr_rows(MR_CPU_PLAIN), mr_rows((mr_cpu_level)level), source, width - (size_t)round % 17);
    }
}
