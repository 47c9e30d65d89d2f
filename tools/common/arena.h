/* An arena: memory that is freed together.
 *
 * ```c
 * arena arena = {0};
 * char *name = arena_strdup(&arena, "cat");
 * int *counts = ARENA_NEW(&arena, int, 10);
 * arena_deinit(&arena);
 * ```
 *
 * {0} is an empty arena. One thread at a time. */
#ifndef MR_TOOLS_ARENA_H
#define MR_TOOLS_ARENA_H

#include <millrace/status.h>

typedef struct arena {
    struct arena_block *first, *current; /* owned */
    size_t used_bytes;                   /* of current */
} arena;

/* Allocates size_bytes of zeroed memory, aligned to 16; null if there is no memory. */
[[nodiscard]] void *arena_alloc(struct arena *arena, size_t size_bytes);
/* Allocates `count` zeroed elements of a type; null also if the size overflows. */
#define ARENA_NEW(arena, type, count) ((type *)arena_alloc_array((arena), (count), sizeof(type)))
[[nodiscard]] void *arena_alloc_array(struct arena *arena, size_t count, size_t size_bytes);
/* Copies a text, or its first size_bytes bytes, and appends a null byte. */
[[nodiscard]] char *arena_strdup(struct arena *arena, const char *text);
[[nodiscard]] char *arena_strndup(struct arena *arena, const char *text, size_t size_bytes);
/* Invalidates all allocations; the memory is kept for reuse. */
void arena_reset(struct arena *arena);
/* Frees the memory; the arena is then empty. */
void arena_deinit(struct arena *arena);

/* Reports a failed allocation of size_bytes; always MR_RESOURCE_EXHAUSTED. */
mr_status fail_memory(mr_error *error, size_t size_bytes);

#endif
