/* Arena allocator: a list of blocks, each at least twice as large as the previous one up to a maximum; an allocation
 * advances an offset. */
#include "base/arena.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

constexpr size_t ALIGNMENT = 16;
constexpr size_t BLOCK_BYTES_MIN = 4096;
constexpr size_t BLOCK_BYTES_MAX = (size_t)1 << 20;

struct mr_arena_block {
    mr_arena_block *next;
    size_t capacity_bytes;
    alignas(16) unsigned char bytes[];
};

/* Checks that the offset is inside the current block and that sizes are multiples of the alignment. */
static void check(const mr_arena *arena)
{
    (void)arena;
    assert((arena->first == nullptr) == (arena->allocated_bytes == 0));
    assert(arena->current == nullptr || arena->first != nullptr);
    assert(arena->used_bytes <= (arena->current == nullptr ? 0 : arena->current->capacity_bytes));
    assert(arena->used_bytes % ALIGNMENT == 0 && arena->allocated_bytes % ALIGNMENT == 0);
}

/* Makes `current` a block with space for size_bytes: the next existing block if it is large enough, otherwise a new one
 * inserted before it. */
static bool next_block(mr_arena *arena, size_t size_bytes)
{
    assert(size_bytes > 0 && size_bytes % ALIGNMENT == 0);
    mr_arena_block *next = arena->current != nullptr ? arena->current->next : arena->first;
    if (next == nullptr || next->capacity_bytes < size_bytes) {
        size_t capacity = arena->current != nullptr ? 2 * arena->current->capacity_bytes : BLOCK_BYTES_MIN;
        if (capacity > BLOCK_BYTES_MAX) capacity = BLOCK_BYTES_MAX;
        if (capacity < size_bytes) capacity = size_bytes;
        if (arena->limit_bytes != 0) {
            if (arena->allocated_bytes > arena->limit_bytes) return false; /* the limit was set after allocations */
            size_t room = arena->limit_bytes - arena->allocated_bytes;
            if (size_bytes > room) return false;
            if (capacity > room) capacity = room & ~(ALIGNMENT - 1);
            if (capacity < size_bytes) return false;
        }
        mr_arena_block *block = malloc(sizeof *block + capacity);
        if (block == nullptr) return false;
        block->capacity_bytes = capacity;
        block->next = next;
        if (arena->current != nullptr)
            arena->current->next = block;
        else
            arena->first = block;
        arena->allocated_bytes += capacity;
        next = block;
    }
    assert(next->capacity_bytes >= size_bytes && next->capacity_bytes % ALIGNMENT == 0);
    arena->current = next;
    arena->used_bytes = 0;
    return true;
}

void *mr_arena_reserve(mr_arena *arena, size_t size_bytes)
{
    check(arena);
    if (size_bytes > PTRDIFF_MAX / 2) return nullptr;
    size_t rounded = (size_bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    if (rounded == 0) rounded = ALIGNMENT;
    if (arena->current == nullptr || arena->current->capacity_bytes - arena->used_bytes < rounded)
        if (!next_block(arena, rounded)) return nullptr;
    void *result = arena->current->bytes + arena->used_bytes;
    arena->used_bytes += rounded;
    assert(arena->used_bytes <= arena->current->capacity_bytes && (uintptr_t)result % ALIGNMENT == 0);
    return result;
}

void *mr_arena_alloc(mr_arena *arena, size_t size_bytes)
{
    void *result = mr_arena_reserve(arena, size_bytes);
    return result != nullptr && size_bytes > 0 ? memset(result, 0, size_bytes) : result;
}

void *mr_arena_alloc_array(mr_arena *arena, size_t count, size_t size_bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, size_bytes, &total)) return nullptr;
    return mr_arena_alloc(arena, total);
}

void *mr_arena_copy(mr_arena *arena, const void *bytes, size_t size_bytes)
{
    assert(bytes != nullptr || size_bytes == 0);
    void *copy = mr_arena_reserve(arena, size_bytes);
    if (copy != nullptr && size_bytes > 0) memcpy(copy, bytes, size_bytes);
    return copy;
}

char *mr_arena_strdup(mr_arena *arena, const char *text)
{
    assert(text != nullptr);
    return mr_arena_copy(arena, text, strlen(text) + 1);
}

char *mr_arena_strndup(mr_arena *arena, const char *text, size_t size_bytes)
{
    assert(text != nullptr || size_bytes == 0);
    if (size_bytes == SIZE_MAX) return nullptr;
    char *copy = mr_arena_alloc(arena, size_bytes + 1);
    if (copy != nullptr && size_bytes > 0) memcpy(copy, text, size_bytes);
    return copy;
}

char *mr_arena_printf(mr_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(nullptr, 0, format, args);
    va_end(args);
    if (length < 0) return nullptr;
    char *text = mr_arena_alloc(arena, (size_t)length + 1);
    if (text == nullptr) return nullptr;
    va_start(args, format);
    int written = vsnprintf(text, (size_t)length + 1, format, args);
    assert(written == length);
    (void)written;
    va_end(args);
    return text;
}

void mr_arena_reset(mr_arena *arena)
{
    check(arena);
    arena->current = arena->first;
    arena->used_bytes = 0;
}

void mr_arena_deinit(mr_arena *arena)
{
    check(arena);
    for (mr_arena_block *block = arena->first; block != nullptr;) {
        mr_arena_block *next = block->next;
        assert(arena->allocated_bytes >= block->capacity_bytes);
        arena->allocated_bytes -= block->capacity_bytes;
        free(block);
        block = next;
    }
    assert(arena->allocated_bytes == 0);
    *arena = (mr_arena){.limit_bytes = arena->limit_bytes};
}
