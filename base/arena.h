/* The arena: an allocator for objects that are freed together.
 *
 * An allocation advances an offset in the current block; single allocations cannot be freed. mr_arena_reset keeps the
 * blocks for reuse, so a loop that resets its arena allocates nothing in the steady state. A zero-initialized arena is
 * ready for use. */
#ifndef MR_BASE_ARENA_H
#define MR_BASE_ARENA_H

#include "base/status.h"

#include <stdarg.h>
#include <stdint.h>

typedef struct mr_arena_block mr_arena_block;

typedef struct mr_arena {
    mr_arena_block *first;
    mr_arena_block *current;
    size_t used_bytes;      /* of current */
    size_t allocated_bytes; /* of all blocks */
    size_t limit_bytes;     /* 0: no limit; otherwise an allocation that exceeds it fails */
} mr_arena;

/* Allocates size_bytes of zeroed memory, aligned to 16. Null if memory or the limit is exhausted.
 * threads  one at a time */
[[nodiscard]] void *mr_arena_alloc(mr_arena *arena, size_t size_bytes);
/* The same, not zeroed: for bytes that are all written. */
[[nodiscard]] void *mr_arena_reserve(mr_arena *arena, size_t size_bytes);
/* Allocates `count` zeroed elements of a type; null if the size overflows. */
#define MR_ARENA_NEW(arena, type, count) ((type *)mr_arena_alloc_array((arena), (count), sizeof(type)))
[[nodiscard]] void *mr_arena_alloc_array(mr_arena *arena, size_t count, size_t size_bytes);
/* Copies; mr_arena_strndup appends a null terminator. */
[[nodiscard]] void *mr_arena_copy(mr_arena *arena, const void *bytes, size_t size_bytes);
[[nodiscard]] char *mr_arena_strdup(mr_arena *arena, const char *text);
[[nodiscard]] char *mr_arena_strndup(mr_arena *arena, const char *text, size_t size_bytes);
[[nodiscard, gnu::format(printf, 2, 3)]] char *mr_arena_printf(mr_arena *arena, const char *format, ...);
/* Invalidates all allocations; the blocks are kept. */
void mr_arena_reset(mr_arena *arena);
/* Frees the blocks; the arena may be used again. */
void mr_arena_deinit(mr_arena *arena);

#endif
