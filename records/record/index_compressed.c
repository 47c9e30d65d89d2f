/* The index builder for GZIP and ZLIB files: decompresses the file from its beginning, and keeps only the offsets of
 * records and, for GZIP, the points where decompression can start.
 *
 * A point is where a writer flushed at a record boundary (an empty stored block, which is byte-aligned) and the
 * following data does not refer to earlier data. The first condition is visible in the bytes. The second is verified:
 * from each candidate the file is decompressed by a decoder without history. If that fails, the flushes did not reset
 * the history, and the file is read again as one without points. */
#include "base/status.h"
#include "records/record/record_damage.h"
#include "records/record/record_format.h"
#include "records/record/record_index.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static constexpr size_t INPUT_BYTES = (size_t)128 << 10;
static constexpr size_t OUTPUT_BYTES = (size_t)128 << 10;
/* If points are further apart than this, reading one record would decompress too much. */
static constexpr uint64_t SPAN_BYTES_MAX = (uint64_t)64 << 20;
static constexpr int GZIP_TRAILER_BYTES = 8;

typedef enum phase {
    PHASE_WRAPPED, /* zlib processes header and trailer */
    PHASE_RAW,     /* after a point: only the deflate stream */
    PHASE_TRAILER, /* after a raw stream */
    PHASE_BETWEEN, /* after a member: another one, zeros, or the end */
} phase;

typedef struct scan {
    const mr_index_source *file;
    mr_record_index *index; /* null: only count records */
    uint64_t offset_capacity, point_capacity;
    bool wants_points;
    bool is_wrong; /* a flush was not a valid point */
    phase phase;
    unsigned char trailer[GZIP_TRAILER_BYTES];
    int trailer_held;
    uint32_t crc; /* of the raw decompressed bytes */
    z_stream zlib;
    uint64_t read_offset; /* file offset of the end of the input */
    bool input_ended;
    uint64_t output_offset, count, record_offset;
    uint64_t skip; /* bytes left in the current record, including its footer */
    uint64_t length;
    size_t header_held;
    unsigned char header[MR_RECORD_HEADER_BYTES];
    unsigned char last[4]; /* the input bytes before next_in, to detect the marker of a flush */
    unsigned char input[INPUT_BYTES];
    unsigned char output[OUTPUT_BYTES];
} scan;

/* The file offset of the next input byte. */
static uint64_t input_offset(const scan *scan)
{
    assert(scan->zlib.avail_in <= scan->read_offset);
    return scan->read_offset - scan->zlib.avail_in;
}

static mr_status fill(scan *scan, mr_error *error)
{
    if (scan->zlib.avail_in > 0 || scan->input_ended) return MR_OK;
    size_t got;
    MR_TRY(mr_file_read_at(scan->file->descriptor, scan->file->path, scan->read_offset, scan->input, INPUT_BYTES, &got,
                           error));
    scan->read_offset += got;
    scan->input_ended = got < INPUT_BYTES;
    scan->zlib.next_in = scan->input;
    scan->zlib.avail_in = (uInt)got;
    return MR_OK;
}

/* ---- Records in the decompressed bytes ---- */

static mr_status end_record(scan *scan, mr_error *error)
{
    assert(scan->skip == 0 && scan->header_held == 0 && (scan->index == nullptr || scan->index->count == scan->count));
    if (scan->index != nullptr)
        MR_TRY(mr_record_index_append(scan->index, &scan->offset_capacity, scan->length, error));
    scan->count++;
    scan->record_offset = scan->output_offset;
    return MR_OK;
}

static mr_status take_bytes(scan *scan, const unsigned char *bytes, size_t size, mr_error *error)
{
    const char *path = scan->file->path;
    while (size > 0) {
        size_t piece;
        if (scan->skip > 0) {
            piece = size < scan->skip ? size : (size_t)scan->skip;
            scan->skip -= piece;
            scan->output_offset += piece;
            if (scan->skip == 0) MR_TRY(end_record(scan, error));
        } else {
            assert(scan->header_held < MR_RECORD_HEADER_BYTES);
            piece = MR_RECORD_HEADER_BYTES - scan->header_held;
            if (piece > size) piece = size;
            memcpy(scan->header + scan->header_held, bytes, piece);
            scan->header_held += piece;
            scan->output_offset += piece;
            if (scan->header_held == MR_RECORD_HEADER_BYTES) {
                if (!mr_record_header_is_valid(scan->header, &scan->length))
                    return mr_damage_report_header(path, scan->count, scan->record_offset, scan->header, error);
                scan->header_held = 0;
                scan->skip = scan->length + MR_RECORD_FOOTER_BYTES;
            }
        }
        bytes += piece;
        size -= piece;
    }
    return MR_OK;
}

static bool is_at_boundary(const scan *scan)
{
    return scan->skip == 0 && scan->header_held == 0;
}

/* ---- Points ---- */

static mr_status add_point(scan *scan, mr_error *error)
{
    mr_record_point point = {.record = scan->count, .offset = input_offset(scan)};
    return mr_record_index_append_point(scan->index, &scan->point_capacity, point, error);
}

/* Called when zlib has stopped at the end of a block, or after the header of the file. */
static mr_status at_block(scan *scan, mr_error *error)
{
    assert(scan->wants_points && scan->index != nullptr);
    z_stream *zlib = &scan->zlib;
    mr_record_index *index = scan->index;
    bool is_first = scan->phase == PHASE_WRAPPED && zlib->total_out == 0 && index->point_count == 0;
    bool is_flush = scan->last[0] == 0 && scan->last[1] == 0 && scan->last[2] == 0xff && scan->last[3] == 0xff;
    /* 64: the last block; 7: number of unused bits of the last byte. */
    if ((zlib->data_type & (64 | 7)) != 0 || !is_at_boundary(scan) || !(is_first || is_flush)) return MR_OK;
    /* A flush without a record since the previous one moves that point. */
    if (index->point_count > 0 && index->points[index->point_count - 1].record == scan->count) index->point_count--;
    MR_TRY(add_point(scan, error));
    scan->phase = PHASE_RAW;
    (void)inflateReset2(zlib, -15);
    return MR_OK;
}

/* Removes points after the last record, and all points if two of them are too far apart. */
static void remove_unusable_points(mr_record_index *index)
{
    while (index->point_count > 0 && index->points[index->point_count - 1].record >= index->count) index->point_count--;
    for (uint64_t i = 0; i < index->point_count; i++) {
        uint64_t first = index->points[i].record,
                 end = i + 1 < index->point_count ? index->points[i + 1].record : index->count;
        assert(first < end);
        if (end - first > 1 && index->offsets[end] - index->offsets[first] > SPAN_BYTES_MAX) index->point_count = 0;
    }
}

/* ---- Decompression ---- */

static mr_status damaged(const scan *scan, const char *reason, mr_error *error)
{
    return mr_fail(error, MR_DATA_LOSS,
                   "%s: the compressed stream is %s at compressed byte %" PRIu64 ", inside record %" PRIu64
                   " at byte %" PRIu64,
                   scan->file->path, reason, input_offset(scan), scan->count, scan->record_offset);
}

/* One call of inflate, to the end of a block if points are searched for. */
static mr_status inflate_some(scan *scan, mr_error *error)
{
    assert(scan->phase == PHASE_WRAPPED || scan->phase == PHASE_RAW);
    z_stream *zlib = &scan->zlib;
    const unsigned char *from = zlib->next_in;
    zlib->next_out = scan->output;
    zlib->avail_out = OUTPUT_BYTES;
    uInt had = zlib->avail_in;
    int result = inflate(zlib, scan->wants_points ? Z_BLOCK : Z_NO_FLUSH);
    size_t used = (size_t)(zlib->next_in - from);
    for (size_t i = used > 4 ? used - 4 : 0; i < used; i++) {
        memmove(scan->last, scan->last + 1, 3);
        scan->last[3] = from[i];
    }
    if (result == Z_MEM_ERROR) return mr_fail_memory(error, OUTPUT_BYTES);
    if (result == Z_DATA_ERROR && scan->phase == PHASE_RAW) {
        /* Either damage or a reference to data before the point: the second pass determines which. */
        scan->is_wrong = true;
        return MR_OK;
    }
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) return damaged(scan, "damaged", error);
    size_t produced = OUTPUT_BYTES - zlib->avail_out;
    if (scan->phase == PHASE_RAW) scan->crc = (uint32_t)crc32_z(scan->crc, scan->output, produced);
    MR_TRY(take_bytes(scan, scan->output, produced, error));
    if (result == Z_STREAM_END) {
        scan->trailer_held = 0;
        scan->phase = scan->phase == PHASE_RAW ? PHASE_TRAILER : PHASE_BETWEEN;
        return MR_OK;
    }
    if (had == zlib->avail_in && produced == 0 && had == 0 && scan->input_ended)
        return damaged(scan, "truncated", error);
    return scan->wants_points && (zlib->data_type & 128) != 0 ? at_block(scan, error) : MR_OK;
}

/* Between members; zeros are padding. False at the end of the file. */
static bool next_member(scan *scan)
{
    assert(scan->phase == PHASE_BETWEEN);
    z_stream *zlib = &scan->zlib;
    while (zlib->avail_in > 0 && *zlib->next_in == 0) {
        zlib->next_in++;
        zlib->avail_in--;
    }
    if (zlib->avail_in == 0) return !scan->input_ended;
    /* A read that starts at a point cannot continue past the end of its member. */
    if (scan->wants_points) scan->is_wrong = true;
    scan->phase = PHASE_WRAPPED;
    (void)inflateReset2(zlib, 32 + 15);
    return true;
}

static mr_status read_through(scan *scan, mr_error *error)
{
    for (;;) {
        MR_TRY(fill(scan, error));
        switch (scan->phase) {
        case PHASE_WRAPPED:
        case PHASE_RAW:
            MR_TRY(inflate_some(scan, error));
            if (scan->is_wrong) return MR_OK;
            break;
        case PHASE_TRAILER:
            if (scan->zlib.avail_in == 0) return damaged(scan, "truncated", error);
            assert(scan->trailer_held >= 0 && scan->trailer_held < GZIP_TRAILER_BYTES);
            scan->trailer[scan->trailer_held++] = *scan->zlib.next_in++;
            scan->zlib.avail_in--;
            if (scan->trailer_held < GZIP_TRAILER_BYTES) break;
            scan->phase = PHASE_BETWEEN;
            /* The second pass locates the damage. */
            scan->is_wrong = mr_load_le32(scan->trailer) != scan->crc ||
                             mr_load_le32(scan->trailer + 4) != (uint32_t)scan->output_offset;
            if (scan->is_wrong) return MR_OK;
            break;
        case PHASE_BETWEEN:
            if (!next_member(scan))
                return is_at_boundary(scan)
                           ? MR_OK
                           : mr_damage_report_truncated(scan->file->path, scan->count, scan->record_offset,
                                                        scan->header_held ? 0 : scan->length,
                                                        scan->output_offset - scan->record_offset, error);
            if (scan->is_wrong) return MR_OK;
            break;
        }
    }
}

static mr_status start(scan *scan, const mr_index_source *file, mr_record_index *index, bool wants_points,
                       mr_error *error)
{
    *scan = (struct scan){.file = file, .index = index, .wants_points = wants_points};
    if (index != nullptr) {
        free(index->offsets);
        free(index->points);
        index->offsets = nullptr;
        index->points = nullptr;
        index->count = index->point_count = 0;
    }
    return inflateInit2(&scan->zlib, 32 + 15) == Z_OK ? MR_OK : mr_fail_memory(error, sizeof(scan->zlib));
}

mr_status mr_index_build_compressed(const mr_index_source *file, uint64_t *count, mr_record_index *index,
                                    mr_error *error)
{
    scan *s = calloc(1, sizeof(*s));
    if (s == nullptr) return mr_fail_memory(error, sizeof(*s));
    bool wants_points = index != nullptr && index->compression == MR_COMPRESSION_GZIP;
    mr_status status = start(s, file, index, wants_points, error);
    if (status == MR_OK) {
        status = read_through(s, error);
        (void)inflateEnd(&s->zlib);
    }
    if (status == MR_OK && s->is_wrong) {
        status = start(s, file, index, false, error);
        if (status == MR_OK) {
            status = read_through(s, error);
            (void)inflateEnd(&s->zlib);
        }
    }
    if (status == MR_OK && index != nullptr && index->offsets == nullptr) {
        index->offsets = calloc(1, sizeof(uint64_t));
        if (index->offsets == nullptr) status = mr_fail_memory(error, sizeof(uint64_t));
    }
    if (status == MR_OK) {
        assert(index == nullptr || index->count == s->count);
        *count = s->count;
        if (index != nullptr) remove_unusable_points(index);
    }
    free(s);
    return status;
}
