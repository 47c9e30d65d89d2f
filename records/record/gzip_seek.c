/* Random access to seekable GZIP. A lane is a decoder with a position in the uncompressed stream. There is one for each
 * concurrent reader, kept for later reads. A read uses the lane with the nearest preceding position, or moves a lane to
 * the point before the record. */
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

typedef struct lane {
    struct lane *next;
    int descriptor;       /* of the file, only during a read */
    uint64_t position;    /* in the uncompressed stream; UINT64_MAX: none */
    uint64_t read_offset; /* file offset of the end of the input */
    z_stream zlib;
    unsigned char input[INPUT_BYTES];
    unsigned char waste[WASTE_BYTES]; /* receives skipped bytes */
} lane;

struct mr_gzip_seek {
    const char *path;
    const mr_record_index *index;
    pthread_mutex_t mutex;
    lane *free; /* guarded by mutex */
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
    mr_gzip_seek *made = calloc(1, sizeof(*made));
    if (!made) return mr_fail_memory(error, sizeof(*made));
    made->path = path;
    made->index = index;
    (void)pthread_mutex_init(&made->mutex, nullptr);
    *seek = made;
    return MR_OK;
}

void mr_gzip_seek_free(mr_gzip_seek *seek)
{
    if (!seek) return;
    for (lane *lane = seek->free, *next; lane; lane = next) {
        next = lane->next;
        (void)inflateEnd(&lane->zlib);
        free(lane);
    }
    (void)pthread_mutex_destroy(&seek->mutex);
    free(seek);
}

/* ---- Lanes ---- */

static lane *new_lane(void)
{
    lane *made = calloc(1, sizeof(*made));
    if (!made) return nullptr;
    if (inflateInit2(&made->zlib, -15) != Z_OK) {
        free(made);
        return nullptr;
    }
    made->position = UINT64_MAX;
    return made;
}

/* Takes the lane with the highest position from `least` to `offset`; otherwise any lane, or a new one. Null if there is
 * no memory. */
static lane *take_lane(mr_gzip_seek *seek, uint64_t least, uint64_t offset)
{
    assert(least <= offset);
    (void)pthread_mutex_lock(&seek->mutex);
    lane **best = nullptr, **place = &seek->free;
    for (; *place; place = &(*place)->next) {
        uint64_t position = (*place)->position;
        if (position >= least && position <= offset && (!best || position > (*best)->position)) best = place;
    }
    if (!best && seek->free) best = &seek->free;
    lane *taken = best ? *best : nullptr;
    if (taken) *best = taken->next;
    (void)pthread_mutex_unlock(&seek->mutex);
    if (!taken) return new_lane();
    if (taken->position < least || taken->position > offset) taken->position = UINT64_MAX;
    assert(taken->position == UINT64_MAX || (taken->position >= least && taken->position <= offset));
    return taken;
}

static void give_back(mr_gzip_seek *seek, lane *lane)
{
    assert(lane->position == UINT64_MAX || lane->position <= seek->index->offsets[seek->index->count]);
    (void)pthread_mutex_lock(&seek->mutex);
    lane->next = seek->free;
    seek->free = lane;
    (void)pthread_mutex_unlock(&seek->mutex);
}

/* ---- Reading ---- */

static void enter(lane *lane, const mr_record_index *index, mr_record_point point)
{
    assert(lane->position == UINT64_MAX);
    (void)inflateReset(&lane->zlib);
    lane->zlib.avail_in = 0;
    lane->read_offset = point.offset;
    lane->position = index->offsets[point.record];
}

/* Decompresses up to size bytes; fewer at the end of the stream. */
static mr_status inflate_bytes(mr_gzip_seek *seek, lane *lane, void *bytes, size_t size, size_t *done, mr_error *error)
{
    z_stream *zlib = &lane->zlib;
    *done = 0;
    while (*done < size) {
        if (zlib->avail_in == 0) {
            size_t got;
            MR_TRY(mr_file_read_at(lane->descriptor, seek->path, lane->read_offset, lane->input, INPUT_BYTES, &got,
                                   error));
            lane->read_offset += got;
            zlib->next_in = lane->input;
            zlib->avail_in = (uInt)got;
        }
        size_t left = size - *done;
        uInt room = left < (1u << 30) ? (uInt)left : 1u << 30, had = zlib->avail_in;
        zlib->next_out = (Bytef *)bytes + *done;
        zlib->avail_out = room;
        int result = inflate(zlib, Z_NO_FLUSH);
        *done += room - zlib->avail_out;
        assert(*done <= size);
        lane->position += room - zlib->avail_out;
        if (result == Z_STREAM_END) return MR_OK;
        if (result == Z_MEM_ERROR) return mr_fail_memory(error, WASTE_BYTES);
        if (result != Z_OK && result != Z_BUF_ERROR)
            return mr_fail(error, MR_DATA_LOSS, "%s: the compressed stream is damaged before compressed byte %" PRIu64,
                           seek->path, lane->read_offset);
        if (had == 0 && room == zlib->avail_out) return MR_OK;
    }
    return MR_OK;
}

static mr_status skip_to(mr_gzip_seek *seek, lane *lane, uint64_t offset, mr_error *error)
{
    assert(lane->position <= offset);
    while (lane->position < offset) {
        uint64_t left = offset - lane->position;
        size_t done, piece = left < WASTE_BYTES ? (size_t)left : WASTE_BYTES;
        MR_TRY(inflate_bytes(seek, lane, lane->waste, piece, &done, error));
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
    lane *lane = take_lane(seek, index->offsets[point.record], offset);
    if (!lane) return mr_fail_memory(error, sizeof(*lane));
    lane->descriptor = descriptor;
    if (lane->position == UINT64_MAX) enter(lane, index, point);
    mr_status status = skip_to(seek, lane, offset, error);
    if (status == MR_OK && lane->position == offset) status = inflate_bytes(seek, lane, bytes, size_bytes, done, error);
    if (status != MR_OK || *done < size_bytes) lane->position = UINT64_MAX;
    give_back(seek, lane);
    return status;
}
