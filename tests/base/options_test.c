/* Structs of options of other versions: a model, byte by byte. */
#include "base/options.h"
#include "base/random.h"
#include "tests/test.h"

typedef struct sample_options {
    size_t size;
    int64_t count;
    bool is_set;
    float values[7];
    const char *name;
} sample_options;

/* The bytes after the given size: a library must not read them. */
constexpr unsigned char CANARY = 0xab;

TEST(options_of_any_size_are_read)
{
    constexpr size_t BYTES = sizeof(sample_options), MORE = 40;
    mr_random random = mr_random_at(test_seed(), 0, 0, 0);
    for (int round = 0; round < 20'000; round++) {
        unsigned char given[BYTES + 2 * MORE], expected[BYTES] = {0};
        size_t size = mr_random_below(&random, BYTES + MORE + 1);
        bool is_known = true;
        memset(given, CANARY, sizeof given);
        for (size_t i = sizeof size; i < size; i++) {
            given[i] =
                i < BYTES || mr_random_below(&random, 100) == 0 ? (unsigned char)mr_random_below(&random, 256) : 0;
            if (i < BYTES) expected[i] = given[i];
            is_known &= i < BYTES || given[i] == 0;
        }
        memcpy(given, &size, sizeof size);
        memcpy(expected, &BYTES, sizeof BYTES);
        bool is_size = size >= sizeof size;
        sample_options options;
        mr_error error = {0};
        mr_status status = MR_OPTIONS_READ(sample_options, &options, given, &error);
        CHECK_EQ(status, is_size && is_known ? MR_OK : MR_INVALID_ARGUMENT);
        CHECK(memcmp(&options, expected, BYTES) == 0);
        if (status != MR_OK)
            CHECK_CONTAINS(error.message, is_size ? "sample_options: an option is set" : "sample_options: size is ");
    }
}

TEST(options_may_be_null)
{
    mr_error error = {0};
    sample_options options, zero = {.size = sizeof zero};
    memset(&options, CANARY, sizeof options);
    CHECK_OK(MR_OPTIONS_READ(sample_options, &options, nullptr, &error));
    CHECK(memcmp(&options.count, &zero.count, sizeof zero - sizeof zero.size) == 0);
    CHECK_EQ(options.size, sizeof options);
}

TEST(options_have_a_size)
{
    mr_error error = {0};
    sample_options options;
    const size_t wrong[] = {0, 1, sizeof(size_t) - 1, 1 << 20, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sample_options given = {.size = wrong[i], .count = 3};
        CHECK_STATUS(MR_OPTIONS_READ(sample_options, &options, &given, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "set it with MR_OPTIONS");
        CHECK_EQ(options.count, 0);
    }
}
