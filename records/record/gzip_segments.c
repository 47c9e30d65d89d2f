/* Writer of seekable GZIP: segments are collected until there is one for each thread, then compressed concurrently and
 * written in order. The contents of the file depend only on the records. */
#include "records/record/gzip_segments.h"

#include "base/bytes.h"
#include "base/pool.h"
#include "base/status.h"
#include "records/record/record_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Magic, deflate, no flags, no time, no extra flags, Unix. */
static constexpr unsigned char GZIP_HEADER[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
/* An empty final block. */
static constexpr unsigned char LAST_BLOCK[2] = {3, 0};
/* Space for a full flush. zlib requires more than 6 bytes of output space, otherwise it flushes twice. */
static constexpr size_t FLUSH_BYTES = 64;

typedef struct segment {
    unsigned char *bytes, *deflated; /* owned */
    size_t used, capacity, deflated_bytes, deflated_capacity;
    uint64_t first_record;
    uint32_t crc;
    z_stream deflater;
    bool has_deflater;
    mr_status status;
} segment;

struct mr_gzip_segments {
    mr_pool *pool; /* owned; null with one thread */
    int level;
    size_t segment_bytes;
    int segment_count, full; /* segments before segments[full] are to be compressed */
    uint64_t record;         /* number of the current record */
    bool has_header;
    uint32_t crc;
    uint64_t size_bytes;
    segment segments[];
};

mr_status mr_gzip_segments_new(int level, size_t segment_bytes, int threads, mr_gzip_segments **segments,
                               mr_error *error)
{
    assert(level >= 1 && level <= 9 && threads >= 1);
    size_t size = sizeof(mr_gzip_segments) + (size_t)threads * sizeof(segment);
    mr_gzip_segments *created = calloc(1, size);
    if (created == nullptr) return mr_fail_memory(error, size);
    created->level = level;
    created->segment_bytes = segment_bytes;
    created->segment_count = threads;
    mr_status status = threads > 1 ? mr_pool_new(threads, &created->pool, error) : MR_OK;
    if (status != MR_OK) {
        free(created);
        return status;
    }
    *segments = created;
    return MR_OK;
}

void mr_gzip_segments_free(mr_gzip_segments *segments)
{
    if (segments == nullptr) return;
    mr_pool_free(segments->pool);
    for (int i = 0; i < segments->segment_count; i++) {
        segment *s = &segments->segments[i];
        if (s->has_deflater) (void)deflateEnd(&s->deflater);
        free(s->bytes);
        free(s->deflated);
    }
    free(segments);
}

mr_status mr_gzip_segments_put(mr_gzip_segments *segments, const void *bytes, size_t size_bytes, mr_error *error)
{
    assert(segments->full >= 0 && segments->full < segments->segment_count);
    segment *s = &segments->segments[segments->full];
    size_t want = s->used + size_bytes;
    if (want > s->capacity) {
        /* Large enough for most segments, which end at the first boundary at or after segment_bytes. */
        size_t grown = want < segments->segment_bytes ? segments->segment_bytes + segments->segment_bytes / 4 : want;
        unsigned char *room = realloc(s->bytes, grown);
        if (room == nullptr) return mr_fail_memory(error, grown);
        s->bytes = room;
        s->capacity = grown;
    }
    assert(want <= s->capacity);
    memcpy(s->bytes + s->used, bytes, size_bytes);
    s->used = want;
    return MR_OK;
}

/* ---- Compression ---- */

static mr_status deflate_segment(segment *s, int level)
{
    assert(s->used > 0 && s->used <= s->capacity);
    if (!s->has_deflater) {
        if (deflateInit2(&s->deflater, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
            return MR_RESOURCE_EXHAUSTED;
        s->has_deflater = true;
    }
    (void)deflateReset(&s->deflater);
    size_t bound = deflateBound(&s->deflater, s->used) + FLUSH_BYTES;
    /* Sizes are 32 bits in zlib: a segment is at most an incomplete segment plus one record. */
    if (bound > UINT32_MAX) return MR_RESOURCE_EXHAUSTED;
    if (bound > s->deflated_capacity) {
        unsigned char *room = realloc(s->deflated, bound);
        if (room == nullptr) return MR_RESOURCE_EXHAUSTED;
        s->deflated = room;
        s->deflated_capacity = bound;
    }
    s->deflater.next_in = s->bytes;
    s->deflater.avail_in = (uInt)s->used;
    s->deflater.next_out = s->deflated;
    s->deflater.avail_out = (uInt)bound;
    int result = deflate(&s->deflater, Z_FULL_FLUSH);
    assert(result == Z_OK && s->deflater.avail_in == 0 && s->deflater.avail_out > 0);
    (void)result;
    s->deflated_bytes = bound - s->deflater.avail_out;
    s->crc = (uint32_t)crc32_z(0, s->bytes, s->used);
    return MR_OK;
}

static void deflate_segments(void *context, int64_t begin, int64_t end)
{
    mr_gzip_segments *segments = context;
    assert(begin >= 0 && end <= segments->full);
    for (int64_t i = begin; i < end; i++)
        segments->segments[i].status = deflate_segment(&segments->segments[i], segments->level);
}

static mr_status write_header(mr_gzip_segments *segments, mr_file_output *output, mr_error *error)
{
    if (segments->has_header) return MR_OK;
    segments->has_header = true;
    return mr_file_output_write(output, GZIP_HEADER, sizeof(GZIP_HEADER), error);
}

/* Compresses and writes all complete segments. */
static mr_status drain(mr_gzip_segments *segments, mr_file_output *output, mr_record_index *index, uint64_t *capacity,
                       mr_error *error)
{
    assert(segments->full <= segments->segment_count);
    MR_TRY(write_header(segments, output, error));
    mr_pool_for(segments->pool, segments->full, 1, deflate_segments, segments);
    for (int i = 0; i < segments->full; i++) {
        segment *s = &segments->segments[i];
        if (s->status != MR_OK) return mr_fail_memory(error, s->used);
        mr_record_point point = {.record = s->first_record, .offset = output->size_bytes};
        if (index != nullptr) MR_TRY(mr_record_index_append_point(index, capacity, point, error));
        MR_TRY(mr_file_output_write(output, s->deflated, s->deflated_bytes, error));
        segments->crc = (uint32_t)crc32_combine64(segments->crc, s->crc, (z_off64_t)s->used);
        segments->size_bytes += s->used;
        s->used = 0;
    }
    segments->full = 0;
    segments->segments[0].first_record = segments->record;
    return MR_OK;
}

mr_status mr_gzip_segments_end_record(mr_gzip_segments *segments, mr_file_output *output, mr_record_index *index,
                                      uint64_t *capacity, mr_error *error)
{
    assert(segments->full < segments->segment_count && segments->segments[segments->full].used > 0);
    segments->record++;
    if (segments->segments[segments->full].used < segments->segment_bytes) return MR_OK;
    if (++segments->full == segments->segment_count) return drain(segments, output, index, capacity, error);
    segments->segments[segments->full].first_record = segments->record;
    return MR_OK;
}

mr_status mr_gzip_segments_flush(mr_gzip_segments *segments, mr_file_output *output, mr_record_index *index,
                                 uint64_t *capacity, mr_error *error)
{
    assert(segments->full < segments->segment_count);
    if (segments->segments[segments->full].used > 0) segments->full++;
    return drain(segments, output, index, capacity, error);
}

mr_status mr_gzip_segments_finish(mr_gzip_segments *segments, mr_file_output *output, mr_record_index *index,
                                  uint64_t *capacity, mr_error *error)
{
    MR_TRY(mr_gzip_segments_flush(segments, output, index, capacity, error));
    assert(segments->full == 0 && segments->has_header);
    unsigned char end[sizeof(LAST_BLOCK) + 8];
    memcpy(end, LAST_BLOCK, sizeof(LAST_BLOCK));
    mr_store_le32(end + sizeof(LAST_BLOCK), segments->crc);
    mr_store_le32(end + sizeof(LAST_BLOCK) + 4, (uint32_t)segments->size_bytes);
    return mr_file_output_write(output, end, sizeof(end), error);
}
