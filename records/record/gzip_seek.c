/* Random access to seekable GZIP. Each decoder has a position in the uncompressed stream. There is one for each
 * concurrent reader, kept for later reads. A read uses the decoder with the nearest preceding position, or moves a
 * decoder to the point before the record. */
#include "records/record/gzip_seek.h"

#include "base/status.h"
#include "records/io/file.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <zlib.h>

static constexpr size_t INPUT_BYTES = (size_t)32 << 10;
static constexpr size_t WASTE_BYTES = (size_t)32 << 10;

typedef struct decoder {
    struct decoder *next;
    int descriptor;       /* of the file, only during a read */
    uint64_t position;    /* in the uncompressed stream; UINT64_MAX: none */
    uint64_t read_offset; /* file offset of the end of the input */
    z_stream zlib;
    unsigned char input[INPUT_BYTES];
    unsigned char waste[WASTE_BYTES]; /* receives skipped bytes */
} decoder;

struct mr_gzip_seek {
    const char *path;
    const mr_record_index *index;
    pthread_mutex_t mutex;
    decoder *free; /* guarded by mutex */
};

uint64_t mr_record_index_point(const mr_record_index *index, uint64_t record)
{
    assert(index->point_count > 0 && index->points[0].record == 0);
    uint64_t low = 0, high = index->point_count;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (index->points[middle].record <= record)
            low = middle;
        else
            high = middle;
    }
    assert(low < high && index->points[low].record <= record);
    return low;
}

mr_status mr_gzip_seek_new(const char *path, const mr_record_index *index, mr_gzip_seek **seek, mr_error *error)
{
    mr_gzip_seek *created = calloc(1, sizeof(*created));
    if (created == nullptr) return mr_fail_memory(error, sizeof(*created));
    created->path = path;
    created->index = index;
    (void)pthread_mutex_init(&created->mutex, nullptr);
    *seek = created;
    return MR_OK;
}

void mr_gzip_seek_free(mr_gzip_seek *seek)
{
    if (seek == nullptr) return;
    for (decoder *decoder = seek->free, *next; decoder != nullptr; decoder = next) {
        next = decoder->next;
        (void)inflateEnd(&decoder->zlib);
        free(decoder);
    }
    (void)pthread_mutex_destroy(&seek->mutex);
    free(seek);
}

/* ---- Decoders ---- */

static decoder *new_decoder(void)
{
    decoder *created = calloc(1, sizeof(*created));
    if (created == nullptr) return nullptr;
    if (inflateInit2(&created->zlib, -15) != Z_OK) {
        free(created);
        return nullptr;
    }
    created->position = UINT64_MAX;
    return created;
}

/* Acquires the decoder with the highest position from `least` to `offset`; otherwise any decoder, or a new one. Null if
 * out of memory. */
static decoder *acquire_decoder(mr_gzip_seek *seek, uint64_t least, uint64_t offset)
{
    assert(least <= offset);
    (void)pthread_mutex_lock(&seek->mutex);
    decoder **best = nullptr, **link = &seek->free;
    for (; *link != nullptr; link = &(*link)->next) {
        uint64_t position = (*link)->position;
        if (position >= least && position <= offset && (best == nullptr || position > (*best)->position)) best = link;
    }
    if (best == nullptr && seek->free != nullptr) best = &seek->free;
    decoder *acquired = best != nullptr ? *best : nullptr;
    if (acquired != nullptr) *best = acquired->next;
    (void)pthread_mutex_unlock(&seek->mutex);
    if (acquired == nullptr) return new_decoder();
    if (acquired->position < least || acquired->position > offset) acquired->position = UINT64_MAX;
    assert(acquired->position == UINT64_MAX || (acquired->position >= least && acquired->position <= offset));
    return acquired;
}

static void release_decoder(mr_gzip_seek *seek, decoder *decoder)
{
    assert(decoder->position == UINT64_MAX || decoder->position <= seek->index->offsets[seek->index->count]);
    (void)pthread_mutex_lock(&seek->mutex);
    decoder->next = seek->free;
    seek->free = decoder;
    (void)pthread_mutex_unlock(&seek->mutex);
}

/* ---- Reading ---- */

static void move_to_point(decoder *decoder, const mr_record_index *index, mr_record_point point)
{
    assert(decoder->position == UINT64_MAX);
    (void)inflateReset(&decoder->zlib);
    decoder->zlib.avail_in = 0;
    decoder->read_offset = point.offset;
    decoder->position = index->offsets[point.record];
}

/* Decompresses up to size bytes; fewer at the end of the stream. */
static mr_status inflate_bytes(mr_gzip_seek *seek, decoder *decoder, void *bytes, size_t size, size_t *done,
                               mr_error *error)
{
    z_stream *zlib = &decoder->zlib;
    *done = 0;
    while (*done < size) {
        if (zlib->avail_in == 0) {
            size_t got;
            MR_TRY(mr_file_read_at(decoder->descriptor, seek->path, decoder->read_offset, decoder->input, INPUT_BYTES,
                                   &got, error));
            decoder->read_offset += got;
            zlib->next_in = decoder->input;
            zlib->avail_in = (uInt)got;
        }
        size_t left = size - *done;
        uInt room = left < (1u << 30) ? (uInt)left : 1u << 30, had = zlib->avail_in;
        zlib->next_out = (Bytef *)bytes + *done;
        zlib->avail_out = room;
        int result = inflate(zlib, Z_NO_FLUSH);
        *done += room - zlib->avail_out;
        assert(*done <= size);
        decoder->position += room - zlib->avail_out;
        if (result == Z_STREAM_END) return MR_OK;
        if (result == Z_MEM_ERROR) return mr_fail_memory(error, WASTE_BYTES);
        if (result != Z_OK && result != Z_BUF_ERROR)
            return mr_fail(error, MR_DATA_LOSS, "%s: the compressed stream is damaged before compressed byte %" PRIu64,
                           seek->path, decoder->read_offset);
        if (had == 0 && room == zlib->avail_out) return MR_OK;
    }
    return MR_OK;
}

static mr_status skip_to(mr_gzip_seek *seek, decoder *decoder, uint64_t offset, mr_error *error)
{
    assert(decoder->position <= offset);
    while (decoder->position < offset) {
        uint64_t left = offset - decoder->position;
        size_t done, piece = left < WASTE_BYTES ? (size_t)left : WASTE_BYTES;
        MR_TRY(inflate_bytes(seek, decoder, decoder->waste, piece, &done, error));
        if (done < piece) return MR_OK;
    }
    return MR_OK;
}

mr_status mr_gzip_seek_read(mr_gzip_seek *seek, int descriptor, uint64_t number, void *bytes, size_t size_bytes,
                            size_t *done, mr_error *error)
{
    const mr_record_index *index = seek->index;
    assert(number < index->count);
    mr_record_point point = index->points[mr_record_index_point(index, number)];
    uint64_t offset = index->offsets[number];
    *done = 0;
    decoder *decoder = acquire_decoder(seek, index->offsets[point.record], offset);
    if (decoder == nullptr) return mr_fail_memory(error, sizeof(*decoder));
    decoder->descriptor = descriptor;
    if (decoder->position == UINT64_MAX) move_to_point(decoder, index, point);
    mr_status status = skip_to(seek, decoder, offset, error);
    if (status == MR_OK && decoder->position == offset)
        status = inflate_bytes(seek, decoder, bytes, size_bytes, done, error);
    if (status != MR_OK || *done < size_bytes) decoder->position = UINT64_MAX;
    release_decoder(seek, decoder);
    return status;
}
