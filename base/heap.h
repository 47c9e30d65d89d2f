/* A heap of large blocks. Neighbors that are free become one block, so that memory serves blocks of all sizes: a step
 * of training needs little more than what is in use at its peak.
 *
 * threads  the caller excludes others */
#ifndef MR_BASE_HEAP_H
#define MR_BASE_HEAP_H

#include <stddef.h>
#include <stdint.h>

constexpr int MR_HEAP_BINS = 4 * 48;

typedef struct mr_heap_chunk mr_heap_chunk;

/* All zero: empty. */
typedef struct mr_heap {
    mr_heap_chunk *bins[MR_HEAP_BINS];      /* free chunks by size, four bins for each power of two */
    uint64_t has_chunks[MR_HEAP_BINS / 64]; /* bit i: bin i is not empty */
    size_t segment_bytes;                   /* of the system, touched or not */
    size_t used_bytes;                      /* by blocks */
} mr_heap;

/* A block of at least size_bytes, on 64 bytes, not cleared. Null: there is no memory. */
void *mr_heap_allocate(mr_heap *heap, size_t size_bytes);
void mr_heap_free(mr_heap *heap, void *block);
/* Returns memory that no block is in to the system. */
void mr_heap_trim(mr_heap *heap);

#endif
