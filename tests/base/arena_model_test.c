/* Model test of arenas: sizes below, at and above those of blocks and limits. Every byte keeps its value, allocations
 * do not overlap, and failed allocations leave the arena unchanged. */
#include "base/arena.h"
#include "base/random.h"
#include "tests/test.h"

constexpr int PIECES_MAX = 200;

typedef struct piece {
    unsigned char *bytes;
    size_t size_bytes;
    unsigned char fill;
} piece;

typedef struct model {
    mr_random random;
    mr_arena arena;
    piece pieces[PIECES_MAX];
    int count;
} model;

static size_t draw_size(model *m)
{
    static const size_t around[] = {0, 16, 4096, 8192, 65536, (size_t)1 << 20};
    size_t base = around[mr_random_below(&m->random, mr_random_below(&m->random, 8) == 0 ? 6 : 4)];
    size_t size = base + mr_random_below(&m->random, 36);
    return size < 18 ? size : size - 18;
}

static void check_pieces(const model *m)
{
    for (int i = 0; i < m->count; i++)
        for (size_t j = 0; j < m->pieces[i].size_bytes; j++) CHECK_EQ(m->pieces[i].bytes[j], m->pieces[i].fill);
}

static void allocate(model *m)
{
    size_t size = draw_size(m), before = m->arena.allocated_bytes;
    unsigned char *bytes = mr_arena_alloc(&m->arena, size);
    if (bytes == nullptr) {
        CHECK(m->arena.limit_bytes != 0);
        CHECK_EQ(m->arena.allocated_bytes, before);
        return;
    }
    CHECK_EQ((uintptr_t)bytes % 16, 0);
    for (size_t j = 0; j < size; j++) CHECK_EQ(bytes[j], 0);
    piece *p = &m->pieces[m->count++];
    *p = (piece){bytes, size, (unsigned char)(1 + m->count % 255)};
    if (size > 0) memset(bytes, p->fill, size);
}

static void run_sequence(uint64_t number)
{
    static const size_t limits[] = {0, 0, 1, 16, 4095, 4096, 4097, 20000, 100000};
    model *m = calloc(1, sizeof *m);
    CHECK(m != nullptr);
    m->random = mr_random_at(test_seed(), number, 0, 0x6172656e61);
    m->arena.limit_bytes = limits[mr_random_below(&m->random, 9)];
    for (int round = 0; round < 4; round++) {
        int steps = (int)mr_random_below(&m->random, 60);
        for (int i = 0; i < steps && m->count < PIECES_MAX; i++) allocate(m);
        check_pieces(m);
        CHECK(m->arena.limit_bytes == 0 || m->arena.allocated_bytes <= m->arena.limit_bytes);
        m->count = 0;
        if (round == 2)
            mr_arena_deinit(&m->arena);
        else
            mr_arena_reset(&m->arena);
    }
    mr_arena_deinit(&m->arena);
    CHECK_EQ(m->arena.allocated_bytes, 0);
    free(m);
}

TEST(an_arena_is_as_its_model)
{
    for (uint64_t number = 0; number < 150; number++) run_sequence(number);
}

TEST(an_arena_without_memory_stays_usable)
{
    if (test_is_sanitized() || test_allocations() < 0) test_skip("allocations cannot fail here");
    mr_arena arena = {0};
    for (int round = 0; round < 8; round++) {
        char *first = mr_arena_strdup(&arena, "first");
        CHECK(first != nullptr);
        size_t before = arena.allocated_bytes;
        test_fail_allocation(test_allocations() + 1);
        void *large = mr_arena_alloc(&arena, before + 1);
        test_fail_allocation(0);
        CHECK(large == nullptr);
        CHECK_EQ(arena.allocated_bytes, before);
        CHECK_STR(first, "first");
        CHECK(mr_arena_alloc(&arena, before + 1) != nullptr);
    }
    mr_arena_deinit(&arena);
}

TEST(arena_limit_set_later_is_respected)
{
    mr_arena arena = {0};
    CHECK(mr_arena_alloc(&arena, 5000) != nullptr);
    arena.limit_bytes = 100;
    CHECK(mr_arena_alloc(&arena, 5000) == nullptr);
    arena.limit_bytes = 0;
    CHECK(mr_arena_alloc(&arena, 5000) != nullptr);
    mr_arena_deinit(&arena);
}
