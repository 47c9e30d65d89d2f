/* Arrays of half types: whatever its value and the length of the array, each element gets the bits that the conversion
 * of one element gives it, at every CPU level. */
#include "base/halves.h"
#include "base/random.h"
#include "tests/ops/run.h"

static const mr_dtype dtypes[] = {MR_HALF, MR_BFLOAT16};

static float widen(uint16_t bits, mr_dtype half)
{
    return half == MR_HALF ? mr_half_to_float(bits) : mr_bfloat16_to_float(bits);
}

static uint16_t narrow(float value, mr_dtype half)
{
    return half == MR_HALF ? mr_float_to_half(value) : mr_float_to_bfloat16(value);
}

static void check_every_half(mr_dtype half)
{
    static uint16_t words[65536], back[65536];
    static float floats[65536];
    for (int i = 0; i < 65536; i++) words[i] = (uint16_t)i;
    mr_halves_to_floats(floats, words, 65536, half);
    for (int i = 0; i < 65536; i++) {
        const float one = widen(words[i], half);
        if (memcmp(&floats[i], &one, sizeof one) != 0)
            test_fail(__FILE__, __LINE__, "0x%04x is %a, not %a", (unsigned)i, (double)floats[i], (double)one);
    }
    mr_floats_to_halves(back, floats, 65536, half);
    for (int i = 0; i < 65536; i++) CHECK_EQ(back[i], narrow(floats[i], half));
}

/* Floats at the borders of halves, and random bits; what lies after the target does not change. */
static void check_floats(mr_dtype half, mr_random *random)
{
    constexpr int width = 70;
    float source[width], wide[width + 1];
    uint16_t target[width + 1], words[width];
    for (int count = 0; count <= width; count++) {
        for (int i = 0; i < width; i++) {
            uint32_t bits = mr_random_next32(random);
            const float at = widen((uint16_t)bits, half);
            if (i % 3 == 0) memcpy(&bits, &at, sizeof bits);
            if (i % 3 == 0) bits += (half == MR_HALF ? 0x1000 : 0x8000) + mr_random_next32(random) % 3 - 1;
            memcpy(&source[i], &bits, sizeof bits);
            words[i] = (uint16_t)mr_random_next32(random);
        }
        target[count] = 0x1234;
        wide[count] = 5;
        mr_floats_to_halves(target, source, count, half);
        mr_halves_to_floats(wide, words, count, half);
        for (int i = 0; i < count; i++) {
            const float one = widen(words[i], half);
            CHECK_EQ(target[i], narrow(source[i], half));
            CHECK(memcmp(&wide[i], &one, sizeof one) == 0);
        }
        CHECK_EQ(target[count], 0x1234);
        CHECK(wide[count] == 5);
    }
}

static void check_level(void)
{
    mr_random random = mr_random_at(test_seed(), 0, 0, 1);
    const float ties[4] = {1 + 0x1p-11f, 1 + 0x3p-11f, 1 + 0x1p-8f, 1 + 0x3p-8f};
    uint16_t words[4];
    for (int d = 0; d < 2; d++) {
        check_every_half(dtypes[d]);
        for (int round = 0; round < 50; round++) check_floats(dtypes[d], &random);
    }
    mr_floats_to_halves(words, ties, 2, MR_HALF);
    mr_floats_to_halves(words + 2, ties + 2, 2, MR_BFLOAT16);
    CHECK(words[0] == 0x3c00 && words[1] == 0x3c02 && words[2] == 0x3f80 && words[3] == 0x3f82);
}

TEST(halves_plain_level)
{
    if (!use_level("plain", MR_CPU_PLAIN)) test_skip("no such level");
    check_level();
}

TEST(halves_avx2)
{
    if (!use_level("avx2", MR_CPU_AVX2)) test_skip("no AVX2");
    check_level();
}
