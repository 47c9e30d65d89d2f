/* libjpeg's memory for one image, allocated from an arena that is kept between images.
 *
 * libjpeg requests small objects, large objects and arrays of rows from its memory manager, each from a pool: permanent
 * or image. The functions here replace the manager's own and serve the image pool from mr_jpeg_reader.arena, which is
 * reset when the pool is freed. Permanent memory, and the virtual arrays with the coefficients of progressive images,
 * are still allocated by libjpeg. */
#include "kernels/image/jpeg.h"

#include <jerror.h>

/* SIMD code reads and writes complete vectors, even past the end of a row. */
constexpr size_t row_align_bytes = 64;

/* Maximum memory that a reader keeps between images. */
constexpr size_t kept_max_bytes = 32 << 20;

/* Images differ in size, so an arena may have many blocks. They are replaced by one block of their total size. */
void mr_image_arena_reset(mr_arena *arena, size_t *block_bytes)
{
    mr_arena_reset(arena);
    if (arena->allocated_bytes <= *block_bytes) return;
    size_t bytes = arena->allocated_bytes;
    arena->limit_bytes = 0;
    mr_arena_deinit(arena);
    *block_bytes = 0;
    if (bytes > kept_max_bytes || mr_arena_alloc(arena, bytes) == nullptr) return;
    mr_arena_reset(arena);
    *block_bytes = arena->allocated_bytes;
}

static mr_jpeg_reader *reader_of(j_common_ptr common)
{
    return (mr_jpeg_reader *)common->client_data;
}

static void *allocate(j_common_ptr common, size_t size_bytes)
{
    unsigned char *memory = mr_arena_alloc(&reader_of(common)->arena, size_bytes + row_align_bytes);
    if (memory == nullptr) ERREXIT1(common, JERR_OUT_OF_MEMORY, 0);
    return memory + (-(uintptr_t)memory & (row_align_bytes - 1));
}

static void *alloc_small(j_common_ptr common, int pool, size_t size_bytes)
{
    (void)pool;
    return allocate(common, size_bytes);
}

static void *alloc_large(j_common_ptr common, int pool, size_t size_bytes)
{
    if (pool != JPOOL_IMAGE) return reader_of(common)->memory.alloc_large(common, pool, size_bytes);
    return allocate(common, size_bytes);
}

/* Allocates the row pointers, followed by the rows. */
static void **alloc_rows(j_common_ptr common, size_t row_bytes, size_t row_count)
{
    row_bytes = (row_bytes + row_align_bytes - 1) / row_align_bytes * row_align_bytes;
    if (row_count > 0 && row_bytes > (SIZE_MAX >> 2) / row_count) ERREXIT1(common, JERR_OUT_OF_MEMORY, 0);
    void **rows = allocate(common, row_count * sizeof(void *));
    unsigned char *memory = allocate(common, row_count * row_bytes);
    for (size_t i = 0; i < row_count; i++) rows[i] = memory + i * row_bytes;
    return rows;
}

static JSAMPARRAY alloc_sarray(j_common_ptr common, int pool, JDIMENSION samples, JDIMENSION row_count)
{
    if (pool != JPOOL_IMAGE) return reader_of(common)->memory.alloc_sarray(common, pool, samples, row_count);
    return (JSAMPARRAY)alloc_rows(common, samples * sizeof(JSAMPLE), row_count);
}

static JBLOCKARRAY alloc_barray(j_common_ptr common, int pool, JDIMENSION blocks, JDIMENSION row_count)
{
    if (pool != JPOOL_IMAGE) return reader_of(common)->memory.alloc_barray(common, pool, blocks, row_count);
    return (JBLOCKARRAY)alloc_rows(common, blocks * sizeof(JBLOCK), row_count);
}

static void free_pool(j_common_ptr common, int pool)
{
    mr_jpeg_reader *reader = reader_of(common);
    if (pool == JPOOL_IMAGE) mr_image_arena_reset(&reader->arena, &reader->arena_block_bytes);
    reader->memory.free_pool(common, pool);
}

void mr_jpeg_memory_install(mr_jpeg_reader *reader)
{
    struct jpeg_memory_mgr *memory = reader->decompress.mem;
    reader->memory = *memory;
    memory->alloc_small = alloc_small;
    memory->alloc_large = alloc_large;
    memory->alloc_sarray = alloc_sarray;
    memory->alloc_barray = alloc_barray;
    memory->free_pool = free_pool;
}
