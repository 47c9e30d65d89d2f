/* Permutations of sizes below, at and above each power of four, up to the largest: every number occurs once, and the
 * inverse is correct. */
#include "base/random.h"
#include "tests/test.h"

static void check_all(uint64_t count, uint64_t seed, uint64_t epoch)
{
    static unsigned char seen[1100];
    CHECK(count <= sizeof seen);
    memset(seen, 0, sizeof seen);
    mr_permutation permutation = mr_permutation_init(count, seed, epoch);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = mr_permutation_at(&permutation, i);
        CHECK(at < count && !seen[at]);
        seen[at] = 1;
        CHECK_EQ(mr_permutation_inverse(&permutation, at), i);
    }
}

TEST(a_small_permutation_has_every_number_once)
{
    for (uint64_t count = 1; count < 80; count++)
        for (uint64_t epoch = 0; epoch < 4; epoch++) check_all(count, test_seed(), epoch);
    for (uint64_t power = 64; power <= 1024; power *= 4)
        for (uint64_t count = power - 2; count <= power + 2; count++) check_all(count, test_seed(), count);
}

TEST(a_large_permutation_has_an_inverse)
{
    mr_random random = mr_random_at(test_seed(), 0, 0, 0x7065726d);
    for (int bits = 2; bits <= 64; bits++)
        for (int offset = -1; offset <= 1; offset++) {
            uint64_t power = bits == 64 ? 0 : (uint64_t)1 << bits, count = power + (uint64_t)offset;
            if (count < 3) continue; /* 2^64 itself is not a valid count */
            mr_permutation permutation = mr_permutation_init(count, test_seed(), (uint64_t)bits);
            for (int i = 0; i < 40; i++) {
                uint64_t index = i == 0 ? 0 : i == 1 ? count - 1 : mr_random_below(&random, count);
                uint64_t element = mr_permutation_at(&permutation, index);
                CHECK(element < count);
                CHECK(mr_permutation_inverse(&permutation, element) == index);
            }
        }
}

TEST(a_random_number_stays_below_its_limit)
{
    mr_random random = mr_random_at(test_seed(), 1, 0, 0x62656c6f77);
    for (int bits = 0; bits < 64; bits++)
        for (int offset = -1; offset <= 1; offset++) {
            uint64_t limit = ((uint64_t)1 << bits) + (uint64_t)offset;
            for (int i = 0; i < 30 && limit > 0; i++) CHECK(mr_random_below(&random, limit) < limit);
        }
    for (int i = 0; i < 30; i++) CHECK(mr_random_below(&random, UINT64_MAX) < UINT64_MAX);
}
