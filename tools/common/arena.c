/* See arena.h. An arena is a list of blocks, each at least twice as large as the previous one up to a maximum. */
#include "common/arena.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static constexpr size_t ALIGNMENT = 16;
static constexpr size_t BLOCK_BYTES_MIN = 4096;
static constexpr size_t BLOCK_BYTES_MAX = (size_t)1 << 20;

typedef struct arena_block {
    struct arena_block *next;
    size_t capacity_bytes;
    alignas(16) unsigned char bytes[];
} arena_block;

/* Makes `current` a block with space for size_bytes: the next existing block if it is large enough, otherwise a new one
 * inserted before it. */
static bool next_block(struct arena *arena, size_t size_bytes)
{
    arena_block *next = arena->current ? arena->current->next : arena->first;
    if (!next || next->capacity_bytes < size_bytes) {
        size_t capacity = arena->current ? 2 * arena->current->capacity_bytes : BLOCK_BYTES_MIN;
        if (capacity > BLOCK_BYTES_MAX) capacity = BLOCK_BYTES_MAX;
        if (capacity < size_bytes) capacity = size_bytes;
        arena_block *block = malloc(sizeof *block + capacity);
        if (!block) return false;
        *block = (arena_block){.next = next, .capacity_bytes = capacity};
        if (arena->current)
            arena->current->next = block;
        else
            arena->first = block;
        next = block;
    }
    arena->current = next;
    arena->used_bytes = 0;
    return true;
}

void *arena_alloc(struct arena *arena, size_t size_bytes)
{
    if (size_bytes > PTRDIFF_MAX / 2) return nullptr;
    size_t rounded = (size_bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    if (rounded == 0) rounded = ALIGNMENT;
    if ((!arena->current || arena->current->capacity_bytes - arena->used_bytes < rounded) &&
        !next_block(arena, rounded))
        return nullptr;
    assert(arena->used_bytes + rounded <= arena->current->capacity_bytes);
    void *allocated = arena->current->bytes + arena->used_bytes;
    arena->used_bytes += rounded;
    return memset(allocated, 0, rounded);
}

void *arena_alloc_array(struct arena *arena, size_t count, size_t size_bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, size_bytes, &total)) return nullptr;
    return arena_alloc(arena, total);
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_strndup(arena, text, strlen(text));
}

char *arena_strndup(struct arena *arena, const char *text, size_t size_bytes)
{
    if (size_bytes == SIZE_MAX) return nullptr;
    char *copy = arena_alloc(arena, size_bytes + 1);
    if (copy && size_bytes > 0) memcpy(copy, text, size_bytes);
    return copy;
}

void arena_reset(struct arena *arena)
{
    arena->current = arena->first;
    arena->used_bytes = 0;
}

void arena_deinit(struct arena *arena)
{
    for (arena_block *block = arena->first, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    *arena = (struct arena){0};
}

mr_status fail_memory(mr_error *error, size_t size_bytes)
{
    return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for %zu bytes", size_bytes);
}
