/* Philox against its authors' test vectors (Random123's kat_vectors); documented properties of streams and
 * permutations. tests/oracle/random_oracle.py compares with TensorFlow's random operators. */
#include "base/random.h"
#include "tests/test.h"

TEST(random_philox_known_vectors)
{
    static const struct {
        mr_philox at;
        uint32_t words[4];
    } vectors[] = {
        {{{0, 0}, {0, 0, 0, 0}}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{{UINT32_MAX, UINT32_MAX}, {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{{0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        mr_philox philox = vectors[i].at;
        uint32_t words[4];
        mr_philox_next(&philox, words);
        for (int j = 0; j < 4; j++) CHECK_EQ(words[j], vectors[i].words[j]);
    }
}

TEST(random_philox_skip_is_many_steps)
{
    mr_philox stepped = mr_philox_seed(123456789012345, 42);
    stepped.counter[0] = UINT32_MAX - 3;
    stepped.counter[1] = UINT32_MAX;
    mr_philox skipped = stepped;
    uint32_t a[4], b[4];
    for (int i = 0; i < 9; i++) mr_philox_next(&stepped, a);
    mr_philox_skip(&skipped, 9);
    CHECK(memcmp(&stepped, &skipped, sizeof stepped) == 0);
    mr_philox_next(&stepped, a);
    mr_philox_next(&skipped, b);
    CHECK(memcmp(a, b, sizeof a) == 0);
    CHECK_EQ(mr_philox_seed(1, 2).counter[2], 2);
}

TEST(random_conversions_stay_below_one)
{
    CHECK(mr_random_float(UINT32_MAX) < 1.0f);
    CHECK_NEAR(mr_random_float(0), 0, 0);
    CHECK(mr_random_double(UINT32_MAX, UINT32_MAX) < 1.0);
    CHECK_NEAR(mr_random_double(0x80000, 0), 0.5, 0);
}

TEST(random_streams_depend_on_what_they_are_made_of)
{
    uint64_t first[5] = {0};
    uint64_t from[5][4] = {{1, 2, 3, 4}, {9, 2, 3, 4}, {1, 9, 3, 4}, {1, 2, 9, 4}, {1, 2, 3, 9}};
    for (int i = 0; i < 5; i++) {
        mr_random random = mr_random_at(from[i][0], from[i][1], from[i][2], from[i][3]);
        first[i] = mr_random_next64(&random);
        mr_random again = mr_random_at(from[i][0], from[i][1], from[i][2], from[i][3]);
        CHECK_EQ(mr_random_next64(&again), first[i]);
        for (int j = 0; j < i; j++) CHECK(first[i] != first[j]);
    }
}

TEST(random_numbers_have_their_distribution)
{
    mr_random random = mr_random_at(test_seed(), 0, 0, 0);
    double sum = 0, squares = 0, normal_sum = 0, normal_squares = 0;
    constexpr int draws = 100000;
    int counts[7] = {0};
    for (int i = 0; i < draws; i++) {
        double unit = mr_random_range(&random, -1, 1), normal = mr_random_normal(&random);
        CHECK(unit >= -1 && unit < 1);
        sum += unit, squares += unit * unit;
        normal_sum += normal, normal_squares += normal * normal;
        counts[mr_random_below(&random, 7)]++;
    }
    CHECK_NEAR(sum / draws, 0, 0.01);
    CHECK_NEAR(squares / draws, 1.0 / 3, 0.01);
    CHECK_NEAR(normal_sum / draws, 0, 0.015);
    CHECK_NEAR(normal_squares / draws, 1, 0.025);
    for (int i = 0; i < 7; i++) CHECK_NEAR(counts[i], draws / 7.0, 600);
    CHECK_EQ(mr_random_below(&random, 1), 0);
}

TEST(permutation_is_a_permutation)
{
    for (uint64_t count = 1; count < 3000; count += 1 + count / 7) {
        mr_permutation permutation = mr_permutation_init(count, test_seed(), count);
        bool seen[3000] = {0};
        for (uint64_t i = 0; i < count; i++) {
            uint64_t at = mr_permutation_at(&permutation, i);
            CHECK(at < count && !seen[at]);
            CHECK_EQ(mr_permutation_inverse(&permutation, at), i);
            seen[at] = true;
        }
    }
}

TEST(permutation_differs_by_epoch_and_mixes)
{
    mr_permutation one = mr_permutation_init(10000, 5, 0), two = mr_permutation_init(10000, 5, 1);
    int same = 0, fixed = 0;
    double distance = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        uint64_t a = mr_permutation_at(&one, i), b = mr_permutation_at(&two, i);
        same += a == b;
        fixed += a == i;
        distance += fabs((double)a - (double)i);
    }
    CHECK(same < 20 && fixed < 20);
    CHECK_NEAR(distance / 10000, 10000 / 3.0, 150);
    mr_permutation huge = mr_permutation_init(UINT64_MAX, 1, 1);
    CHECK(mr_permutation_at(&huge, UINT64_MAX - 1) < UINT64_MAX);
}
