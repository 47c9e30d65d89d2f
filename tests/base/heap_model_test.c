/* Random blocks of a heap, beside a list of those that are in use: none overlaps another, and all memory comes back. */
#include "base/heap.h"
#include "base/random.h"
#include "tests/test.h"

constexpr int BLOCKS_MAX = 200;

typedef struct block {
    unsigned char *data;
    size_t size_bytes;
    unsigned char mark;
} block;

static void fill(const block *b)
{
    memset(b->data, b->mark, b->size_bytes < 256 ? b->size_bytes : 256);
    memset(b->data + b->size_bytes - 1, b->mark, 1);
}

static void check_filled(const block *b)
{
    const size_t count = b->size_bytes < 256 ? b->size_bytes : 256;
    for (size_t i = 0; i < count; i++) CHECK_EQ(b->data[i], b->mark);
    CHECK_EQ(b->data[b->size_bytes - 1], b->mark);
}

/* Sizes around those that divide a chunk or need another segment, and any other. */
static size_t any_size(mr_random *random)
{
    static const size_t sizes[] = {1, 64, 16 << 10, (16 << 10) - 64, (32 << 10) - 128, 1 << 20, 2 << 20, 32 << 20};
    const int choice = (int)mr_random_below(random, 12);
    if (choice < 8) return sizes[choice] + (size_t)mr_random_below(random, 3) * 64 - (choice < 2 ? 0 : 64);
    return 1 + (size_t)mr_random_below(random, choice < 11 ? 200 << 10 : 40 << 20);
}

static void end_block(mr_heap *heap, block *blocks, int *count, int at)
{
    check_filled(&blocks[at]);
    mr_heap_free(heap, blocks[at].data);
    blocks[at] = blocks[--*count];
}

TEST(heap_model)
{
    mr_random random = mr_random_at(test_seed(), 21, 0, 0);
    for (int round = 0; round < 20; round++) {
        mr_heap heap = {0};
        block blocks[BLOCKS_MAX];
        int count = 0;
        const int steps = 1 + (int)mr_random_below(&random, 600);
        for (int step = 0; step < steps; step++) {
            /* Phases in which blocks become more, and fewer. */
            const bool adds = (int)mr_random_below(&random, 4) < (step / 100 % 2 == 0 ? 3 : 1);
            if (!adds && count > 0) end_block(&heap, blocks, &count, (int)mr_random_below(&random, (uint64_t)count));
            if (!adds || count == BLOCKS_MAX) continue;
            block b = {.size_bytes = any_size(&random), .mark = (unsigned char)(1 + step % 255)};
            b.data = mr_heap_allocate(&heap, b.size_bytes);
            CHECK(b.data && (uintptr_t)b.data % 64 == 0);
            for (int i = 0; i < count; i++)
                CHECK(b.data + b.size_bytes <= blocks[i].data || blocks[i].data + blocks[i].size_bytes <= b.data);
            fill(&b);
            blocks[count++] = b;
            size_t used = 0;
            for (int i = 0; i < count; i++) used += blocks[i].size_bytes;
            CHECK(heap.used_bytes >= used && heap.used_bytes <= heap.segment_bytes);
            if (mr_random_below(&random, 20) == 0) mr_heap_trim(&heap);
        }
        while (count > 0) end_block(&heap, blocks, &count, (int)mr_random_below(&random, (uint64_t)count));
        CHECK_EQ(heap.used_bytes, 0);
        mr_heap_trim(&heap);
        CHECK_EQ(heap.segment_bytes, 0);
        for (int i = 0; i < MR_HEAP_BINS / 64; i++) CHECK_EQ(heap.has_chunks[i], 0);
    }
}

/* Neighbors that are freed in any order are one chunk again: no more memory is needed for a block of their sizes. */
TEST(heap_joins_neighbors)
{
    constexpr size_t SIZE_BYTES = (size_t)1 << 20;
    for (int order = 0; order < 6; order++) {
        static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
        mr_heap heap = {0};
        void *blocks[3], *guard;
        for (int i = 0; i < 3; i++) blocks[i] = mr_heap_allocate(&heap, SIZE_BYTES);
        guard = mr_heap_allocate(&heap, SIZE_BYTES);
        for (int i = 0; i < 3; i++) mr_heap_free(&heap, blocks[orders[order][i]]);
        CHECK_EQ(mr_heap_allocate(&heap, 3 * SIZE_BYTES), blocks[0]);
        mr_heap_free(&heap, blocks[0]);
        mr_heap_free(&heap, guard);
        mr_heap_trim(&heap);
        CHECK_EQ(heap.segment_bytes, 0);
    }
}

TEST(heap_without_memory)
{
    mr_heap heap = {0};
    CHECK(mr_heap_allocate(&heap, SIZE_MAX) == nullptr);
    CHECK(mr_heap_allocate(&heap, SIZE_MAX / 8) == nullptr);
    void *block = mr_heap_allocate(&heap, 0);
    CHECK(block != nullptr);
    mr_heap_free(&heap, block);
    mr_heap_trim(&heap);
    CHECK_EQ(heap.segment_bytes, 0);
}
