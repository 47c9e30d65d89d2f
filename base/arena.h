/* Arena: memory for what is made together and freed together.
 *
 * Allocation is a bump in the current block; nothing is freed singly. mr_arena_reset keeps the blocks for the next
 * round, so a loop that resets allocates nothing in the steady state. A zero-initialised arena is ready to use. */
#ifndef MR_BASE_ARENA_H
#define MR_BASE_ARENA_H

#include <millrace/status.h>
#include <stdarg.h>
#include <stdint.h>

typedef struct mr_arena_block mr_arena_block;

typedef struct mr_arena {
    mr_arena_block *first;
    mr_arena_block *current;
    size_t used_bytes;      /* in current */
    size_t allocated_bytes; /* of all blocks */
    size_t limit_bytes;     /* 0: none; otherwise an allocation beyond it fails */
} mr_arena;

/* Memory of size_bytes, aligned to 16, cleared. Null when memory or the limit is exhausted. One thread at a time. */
[[nodiscard]] void *mr_arena_alloc(mr_arena *arena, size_t size_bytes);
/* Typed: count cleared elements; null on overflow. */
#define MR_ARENA_NEW(arena, type, count) ((type *)mr_arena_alloc_array((arena), (count), sizeof(type)))
[[nodiscard]] void *mr_arena_alloc_array(mr_arena *arena, size_t count, size_t size_bytes);
/* A copy; mr_arena_strndup adds a terminator. */
[[nodiscard]] void *mr_arena_copy(mr_arena *arena, const void *bytes, size_t size_bytes);
[[nodiscard]] char *mr_arena_strdup(mr_arena *arena, const char *text);
[[nodiscard]] char *mr_arena_strndup(mr_arena *arena, const char *text, size_t size_bytes);
[[nodiscard, gnu::format(printf, 2, 3)]] char *mr_arena_printf(mr_arena *arena, const char *format, ...);
/* Everything allocated so far is gone; the blocks stay. */
void mr_arena_reset(mr_arena *arena);
/* Frees the blocks; the arena may be used again. */
void mr_arena_deinit(mr_arena *arena);

/* The usual failure of an allocation, as a status. */
mr_status mr_fail_memory(mr_error *error, size_t size_bytes);

#endif
