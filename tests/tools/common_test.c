/* The parts of tools/common that correspond to parts of the library: the same random numbers and permutations, loops
 * that process every item once, files, arenas and shard names. */
#include "base/random.h"
#include "records/io/file.h"
#include "tests/test.h"
#include "tools/common/arena.h"
#include "tools/common/file.h"
#include "tools/common/pool.h"
#include "tools/common/random.h"
#include "tools/common/shard_name.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

TEST(tools_random_numbers_are_those_of_the_library)
{
    static const uint64_t seeds[] = {0, 1, 42, UINT64_MAX};
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        for (uint64_t element = 0; element < 20; element++) {
            random_stream random = random_at(seeds[i], element, i);
            mr_random expected = mr_random_at(seeds[i], 0, element, i);
            CHECK_EQ(random_next32(&random), mr_random_next32(&expected));
            CHECK_EQ(random_next64(&random), mr_random_next64(&expected));
            CHECK_EQ(random_below(&random, 1000), mr_random_below(&expected, 1000));
            CHECK(random_unit(&random) == mr_random_unit(&expected));
            CHECK(random_range(&random, -2, 3) == mr_random_range(&expected, -2, 3));
        }
}

TEST(tools_permutations_are_those_of_the_library)
{
    static const uint64_t counts[] = {1, 2, 3, 4, 5, 16, 17, 1000, UINT64_C(1) << 33};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        permutation permutation = permutation_init(counts[i], i);
        mr_permutation expected = mr_permutation_init(counts[i], i, 0);
        for (uint64_t element = 0; element < counts[i] && element < 1000; element++)
            CHECK_EQ(permutation_position(&permutation, element), mr_permutation_inverse(&expected, element));
    }
}

typedef struct visits {
    int64_t count, grain;
    atomic_int of[1000];
} visits;

static void visit(void *context, int64_t begin, int64_t end)
{
    visits *visits = context;
    CHECK(begin % visits->grain == 0 && begin < end && end <= visits->count);
    CHECK(end - begin == visits->grain || end == visits->count);
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&visits->of[i], 1);
}

TEST(tools_pool_visits_every_item_once)
{
    static const int64_t counts[] = {0, 1, 2, 7, 64, 1000}, grains[] = {1, 3, 64, 2000};
    for (int threads = 0; threads <= 4; threads++) {
        mr_error error = {0};
        pool *pool = nullptr;
        CHECK_OK(pool_new(threads, &pool, &error));
        CHECK_EQ(pool_thread_count(pool), threads ? threads : processor_count());
        for (int i = 0; i < 24; i++) {
            visits visits = {.count = counts[i % 6], .grain = grains[i / 6]};
            pool_for(threads == 1 ? nullptr : pool, visits.count, visits.grain, visit, &visits);
            for (int64_t j = 0; j < 1000; j++) CHECK_EQ(atomic_load(&visits.of[j]), j < visits.count);
        }
        pool_free(pool);
    }
}

TEST(tools_arena_memory_is_zeroed_and_reused)
{
    arena arena = {0};
    for (int round = 0; round < 3; round++) {
        for (size_t size = 0; size < 10'000; size += 97) {
            unsigned char *bytes = arena_alloc(&arena, size);
            CHECK(bytes != nullptr && (uintptr_t)bytes % 16 == 0);
            for (size_t i = 0; i < size; i++) CHECK_EQ(bytes[i], 0);
            memset(bytes, 0xff, size);
        }
        arena_reset(&arena);
    }
    CHECK_STR(arena_strndup(&arena, "kitten", 3), "kit");
    CHECK(ARENA_NEW(&arena, uint64_t, SIZE_MAX / 4) == nullptr);
    arena_deinit(&arena);
}

TEST(tools_files_are_written_completely_or_not_at_all)
{
    mr_error error = {0};
    char *bytes = nullptr;
    size_t size = 0;
    CHECK_OK(file_make_directories(test_path("a/b/c"), &error));
    CHECK_OK(file_write_all(test_path("a/b/c/f"), "MRINDEX3", 8, &error));
    CHECK_OK(file_write_unsynced(test_path("a/b/c/f"), "MRINDEX3\n", 9, &error));
    CHECK(!file_exists(test_path("a/b/c/f" FILE_PARTIAL)));
    CHECK_OK(file_read_all(test_path("a/b/c/f"), 9, &bytes, &size, &error));
    CHECK_EQ(size, 9);
    CHECK_STR(bytes, "MRINDEX3\n");
    free(bytes);
    CHECK_EQ(file_read_all(test_path("a/b/c/f"), 8, &bytes, &size, &error), MR_RESOURCE_EXHAUSTED);
    CHECK(file_begins_with(test_path("a/b/c/f"), "MRINDEX3", 8));
    CHECK(!file_begins_with(test_path("a/b/c/f"), "MRINDEX3\n\n", 10));
    CHECK(!file_begins_with(test_path("none"), "", 0));
    CHECK_EQ(file_write_unsynced(test_path("a/b/c"), "", 0, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(file_read_all(test_path("a/b"), 10, &bytes, &size, &error), MR_INVALID_ARGUMENT);
    CHECK_OK(file_remove(test_path("a/b/c/f"), &error));
    CHECK_OK(file_remove(test_path("a/b/c/f"), &error));
    file_stamp stamp = {0};
    CHECK_EQ(file_stamp_of(test_path("a/b/c/f"), &stamp, &error), MR_NOT_FOUND);
}

TEST(tools_file_errors_are_those_of_the_library)
{
    for (int number = 1; number < 134; number++) {
        mr_error error = {0}, expected = {0};
        CHECK_EQ(file_fail(&error, number, "open", "f"), mr_file_fail(&expected, number, "open", "f"));
        CHECK_STR(error.message, expected.message);
    }
}

TEST(tools_shard_names)
{
    char *name = shard_name(MR_STR("d/flowers-train"), 1, 4, ".tfrecord");
    CHECK_STR(name, "d/flowers-train-00001-of-00004.tfrecord");
    CHECK_STR(shard_number_find(name), "-00001-of-00004.tfrecord");
    CHECK_STR(shard_number_end(shard_number_find(name)), ".tfrecord");
    free(name);
    CHECK(shard_number_find("flowers-0001-of-00004") == nullptr);
    CHECK(shard_number_find("flowers-00001-of-4") == nullptr);
    CHECK_STR(shard_number_end("-123456-of-1234567.gz"), ".gz");
    CHECK(shard_is_partial(".partial") && shard_is_partial(".index.partial") && !shard_is_partial(".index"));
}
