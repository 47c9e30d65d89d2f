/* Arena memory is zeroed and aligned, is reused after a reset, and is limited. */
#include "base/arena.h"
#include "tests/test.h"

TEST(arena_memory_is_cleared_and_aligned)
{
    mr_arena arena = {0};
    for (size_t size = 0; size < 10000; size = size * 2 + 1) {
        unsigned char *bytes = mr_arena_alloc(&arena, size);
        CHECK(bytes != nullptr);
        CHECK_EQ((uintptr_t)bytes % 16, 0);
        for (size_t i = 0; i < size; i++) CHECK_EQ(bytes[i], 0);
        memset(bytes, 0xff, size);
    }
    CHECK_STR(mr_arena_printf(&arena, "%s/%d", "scope", 7), "scope/7");
    CHECK_STR(mr_arena_strndup(&arena, "abcdef", 3), "abc");
    CHECK_STR(mr_arena_strdup(&arena, ""), "");
    mr_arena_deinit(&arena);
}

TEST(arena_reset_allocates_nothing_new)
{
    mr_arena arena = {0};
    size_t after_first = 0;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 300; i++) {
            unsigned char *bytes = mr_arena_alloc(&arena, (size_t)(i * 37 % 9000));
            CHECK(bytes != nullptr);
            for (int j = 0; j < i * 37 % 9000; j++) CHECK_EQ(bytes[j], 0);
            memset(bytes, 1, (size_t)(i * 37 % 9000));
        }
        if (round == 0) after_first = arena.allocated_bytes;
        CHECK_EQ(arena.allocated_bytes, after_first);
        mr_arena_reset(&arena);
    }
    mr_arena_deinit(&arena);
}

TEST(arena_stops_at_its_limit)
{
    mr_arena arena = {.limit_bytes = 10000};
    size_t count = 0;
    while (mr_arena_alloc(&arena, 100) != nullptr) count++;
    CHECK(count >= 50 && count <= 100);
    CHECK(arena.allocated_bytes <= 10000);
    CHECK(mr_arena_alloc(&arena, 20000) == nullptr);
    mr_arena_deinit(&arena);
    CHECK(mr_arena_alloc(&arena, 100) != nullptr);
    mr_arena_deinit(&arena);
}

TEST(arena_refuses_sizes_that_overflow)
{
    mr_arena arena = {0};
    CHECK(MR_ARENA_NEW(&arena, uint64_t, SIZE_MAX / 4) == nullptr);
    CHECK(mr_arena_alloc(&arena, SIZE_MAX) == nullptr);
    CHECK(mr_arena_strndup(&arena, "", SIZE_MAX) == nullptr);
    mr_arena_deinit(&arena);
}
