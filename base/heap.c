/* Memory comes from the system in segments, which are divided into chunks without gaps: each begins with a header that
 * has its size and that of the chunk before it. The smallest free chunk that is large enough is used, and divided if
 * what remains is large enough for a block. Memory is resident from its first use on, so a segment may be larger than
 * what is needed now. */
#include "base/heap.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

constexpr size_t HEADER_BYTES = 64;
constexpr size_t CHUNK_BYTES_MIN = (size_t)16 << 10;
constexpr size_t SEGMENT_BYTES_MIN = (size_t)32 << 20;
constexpr int EXAMINED_MAX = 64;               /* chunks of a bin, so that many free ones cost no time */
constexpr size_t PAGE_BYTES = (size_t)2 << 20; /* a large page */

struct mr_heap_chunk {
    size_t size_bytes;   /* with this header */
    size_t before_bytes; /* of the chunk before it; 0: the first of its segment */
    bool is_last, is_free;
    mr_heap_chunk *next, *previous; /* in its bin, if it is free */
};
static_assert(sizeof(mr_heap_chunk) <= HEADER_BYTES);

/* ---- Bins ---- */

/* The bin of chunks of that size: all in it are at least as large as its smallest size. */
static int bin_of(size_t size_bytes)
{
    assert(size_bytes >= CHUNK_BYTES_MIN);
    const int power = 63 - __builtin_clzll(size_bytes);
    const int index = 4 * power + (int)(size_bytes >> (power - 2) & 3);
    return index < MR_HEAP_BINS ? index : MR_HEAP_BINS - 1;
}

static void put(mr_heap *heap, mr_heap_chunk *chunk)
{
    const int bin = bin_of(chunk->size_bytes);
    chunk->is_free = true;
    chunk->previous = nullptr;
    chunk->next = heap->bins[bin];
    if (chunk->next) chunk->next->previous = chunk;
    heap->bins[bin] = chunk;
    heap->has_chunks[bin / 64] |= 1ull << bin % 64;
}

static void take(mr_heap *heap, mr_heap_chunk *chunk)
{
    const int bin = bin_of(chunk->size_bytes);
    assert(chunk->is_free);
    chunk->is_free = false;
    if (chunk->next) chunk->next->previous = chunk->previous;
    if (chunk->previous)
        chunk->previous->next = chunk->next;
    else
        heap->bins[bin] = chunk->next;
    if (!heap->bins[bin]) heap->has_chunks[bin / 64] &= ~(1ull << bin % 64);
}

/* The smallest chunk of a bin, among the last ones that were put there, that is large enough. */
static mr_heap_chunk *best_of(const mr_heap *heap, int bin, size_t size_bytes)
{
    mr_heap_chunk *best = nullptr, *chunk = heap->bins[bin];
    for (int i = 0; chunk && i < EXAMINED_MAX; i++, chunk = chunk->next)
        if (chunk->size_bytes >= size_bytes && (!best || chunk->size_bytes < best->size_bytes)) best = chunk;
    return best;
}

static mr_heap_chunk *find(const mr_heap *heap, size_t size_bytes)
{
    int bin = bin_of(size_bytes);
    mr_heap_chunk *best = best_of(heap, bin, size_bytes);
    while (!best && ++bin < MR_HEAP_BINS) {
        const uint64_t later = heap->has_chunks[bin / 64] >> bin % 64;
        bin = later ? bin + __builtin_ctzll(later) : (bin / 64 + 1) * 64 - 1;
        if (later) best = best_of(heap, bin, size_bytes);
    }
    return best;
}

/* ---- Chunks ---- */

static mr_heap_chunk *after(mr_heap_chunk *chunk)
{
    return chunk->is_last ? nullptr : (mr_heap_chunk *)((char *)chunk + chunk->size_bytes);
}

static mr_heap_chunk *before(mr_heap_chunk *chunk)
{
    return chunk->before_bytes == 0 ? nullptr : (mr_heap_chunk *)((char *)chunk - chunk->before_bytes);
}

static void check(mr_heap_chunk *chunk)
{
    assert(chunk->size_bytes >= CHUNK_BYTES_MIN && chunk->size_bytes % HEADER_BYTES == 0);
    assert(!after(chunk) || after(chunk)->before_bytes == chunk->size_bytes);
    assert(!before(chunk) || before(chunk)->size_bytes == chunk->before_bytes);
    assert(!chunk->is_free || !after(chunk) || !after(chunk)->is_free);
    assert(!chunk->is_free || !before(chunk) || !before(chunk)->is_free);
}

/* Makes a chunk end after size_bytes; what follows becomes a free chunk. */
static void divide(mr_heap *heap, mr_heap_chunk *chunk, size_t size_bytes)
{
    if (chunk->size_bytes - size_bytes < CHUNK_BYTES_MIN) return;
    mr_heap_chunk *rest = (mr_heap_chunk *)((char *)chunk + size_bytes), *next = after(chunk);
    *rest = (mr_heap_chunk){
        .size_bytes = chunk->size_bytes - size_bytes, .before_bytes = size_bytes, .is_last = chunk->is_last};
    if (next) next->before_bytes = rest->size_bytes;
    chunk->size_bytes = size_bytes;
    chunk->is_last = false;
    put(heap, rest);
    check(rest);
}

/* Adds the chunk that follows, which is in no bin. */
static void join(mr_heap_chunk *chunk)
{
    mr_heap_chunk *next = after(chunk);
    assert(next && !chunk->is_free && !next->is_free);
    chunk->size_bytes += next->size_bytes;
    chunk->is_last = next->is_last;
    if (after(chunk)) after(chunk)->before_bytes = chunk->size_bytes;
}

/* ---- Segments ---- */

/* On large pages, which need fewer entries of the processor's tables. */
static mr_heap_chunk *make_segment(size_t size_bytes)
{
    mr_heap_chunk *chunk = aligned_alloc(PAGE_BYTES, size_bytes);
    if (!chunk) return nullptr;
    (void)madvise(chunk, size_bytes, MADV_HUGEPAGE);
    *chunk = (mr_heap_chunk){.size_bytes = size_bytes, .is_last = true};
    return chunk;
}

/* A segment that is large enough for the chunk and, if there is memory, for later ones. */
static mr_heap_chunk *grow(mr_heap *heap, size_t size_bytes)
{
    const size_t least_bytes = (size_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    size_t wanted_bytes = heap->segment_bytes / 2 / PAGE_BYTES * PAGE_BYTES;
    if (wanted_bytes < SEGMENT_BYTES_MIN) wanted_bytes = SEGMENT_BYTES_MIN;
    if (wanted_bytes < least_bytes) wanted_bytes = least_bytes;
    mr_heap_chunk *chunk = make_segment(wanted_bytes);
    if (!chunk && wanted_bytes > least_bytes) chunk = make_segment(least_bytes);
    if (chunk) heap->segment_bytes += chunk->size_bytes;
    return chunk;
}

void *mr_heap_allocate(mr_heap *heap, size_t size_bytes)
{
    if (size_bytes > SIZE_MAX / 4) return nullptr;
    size_bytes = (size_bytes + 2 * HEADER_BYTES - 1) / HEADER_BYTES * HEADER_BYTES;
    if (size_bytes < CHUNK_BYTES_MIN) size_bytes = CHUNK_BYTES_MIN;
    mr_heap_chunk *chunk = find(heap, size_bytes);
    if (chunk)
        take(heap, chunk);
    else
        chunk = grow(heap, size_bytes);
    if (!chunk) return nullptr;
    divide(heap, chunk, size_bytes);
    check(chunk);
    heap->used_bytes += chunk->size_bytes;
    assert(heap->used_bytes <= heap->segment_bytes);
    return (char *)chunk + HEADER_BYTES;
}

void mr_heap_free(mr_heap *heap, void *block)
{
    mr_heap_chunk *chunk = (mr_heap_chunk *)((char *)block - HEADER_BYTES);
    assert(!chunk->is_free && heap->used_bytes >= chunk->size_bytes);
    check(chunk);
    heap->used_bytes -= chunk->size_bytes;
    if (after(chunk) && after(chunk)->is_free) {
        take(heap, after(chunk));
        join(chunk);
    }
    if (before(chunk) && before(chunk)->is_free) {
        chunk = before(chunk);
        take(heap, chunk);
        join(chunk);
    }
    put(heap, chunk);
    check(chunk);
}

void mr_heap_trim(mr_heap *heap)
{
    for (int bin = 0; bin < MR_HEAP_BINS; bin++)
        for (mr_heap_chunk *chunk = heap->bins[bin], *next; chunk; chunk = next) {
            next = chunk->next;
            if (chunk->before_bytes != 0 || !chunk->is_last) continue;
            take(heap, chunk);
            heap->segment_bytes -= chunk->size_bytes;
            free(chunk);
        }
}
