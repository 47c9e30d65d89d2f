/* The sequential record reader. The stream's window slides from record to record; a record is returned as a view of it.
 *
 * Damage: bad data after a valid header loses only that record, because the header specifies where the next one starts,
 * and a valid header is there. After a bad header the position of the next record is unknown, so the bytes are
 * searched, one by one, for the next record whose two checksums match. The same is done when bytes were removed from or
 * inserted into a record, so that no valid header follows it. In all cases the reader has moved on when it reports, so
 * it reaches the end of every file. */
#include "records/record/record_reader.h"
#include "base/arguments.h"
#include "base/options.h"

#include "base/status.h"
#include "records/io/file.h"
#include "records/record/gzip_seek.h"
#include "records/record/record_damage.h"
#include "records/record/record_format.h"
#include "records/record/record_stream.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Limit on the data that a search may check in vain: this many bytes plus a multiple of the bytes searched. Otherwise a
 * file crafted to contain only headers of long records would be read once for each of them. */
static constexpr uint64_t SEARCH_CREDIT_BYTES = (uint64_t)1 << 30;
static constexpr uint64_t SEARCH_CREDIT_TIMES = 16;

/* A damaged range is written to the quarantine in pieces of this size. */
static constexpr size_t PIECE_BYTES = (size_t)1 << 20;

struct mr_record_reader {
    mr_record_stream stream;
    mr_record_reader_options options;
    size_t consumed;      /* size of the record returned last; consumed by the next call */
    uint64_t next_number; /* number of the next record */
    uint64_t number, offset;
    uint64_t lost;
    uint64_t size_bytes; /* of the plain file when it was opened; 0: unknown, or its shrinking has been reported */
    mr_record_damage damage;
    bool searching; /* the end of a damaged range has not been found: search deferred or interrupted by an error */
    uint64_t search_begin; /* start of the damaged range */
    bool in_damage;        /* between begin_damage and end_damage, which may be separated by an error */
    bool fault_reported;   /* the stream's fault has been reported */

    /* Whether the bytes of the current damaged range are written to the quarantine as they are consumed. */
    bool is_kept;
    mr_error problem;
    char *piece; /* owned; null without a quarantine */
    size_t piece_used;
    uint64_t piece_offset;
};

/* ---- Open ---- */

static mr_status check_options(const char *path, const mr_record_reader_options *o, mr_error *error)
{
    if (o->buffer_bytes > MR_READ_BLOCK_BYTES_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: buffer_bytes is %zu, but must be at most %zu", path,
                       o->buffer_bytes, MR_READ_BLOCK_BYTES_MAX);
    if (o->buffer_count < 0 || o->buffer_count > MR_READ_COUNT_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: buffer_count is %" PRId32 ", but must be in [0, %" PRId32 "]",
                       path, o->buffer_count, MR_READ_COUNT_MAX);
    return mr_damage_check_options(path, o->damage, o->damage_max, o->quarantine, error);
}

static mr_status new_reader(const mr_record_reader_options *options, mr_record_reader **reader, mr_error *error)
{
    mr_record_reader *created = calloc(1, sizeof(*created));
    if (created == nullptr) return mr_fail_memory(error, sizeof(*created));
    if (options != nullptr) created->options = *options;
    if (created->options.damage != MR_DAMAGE_SKIP) created->options.quarantine = nullptr;
    if (created->options.quarantine != nullptr && (created->piece = malloc(PIECE_BYTES)) == nullptr) {
        free(created);
        return mr_fail_memory(error, PIECE_BYTES);
    }
    *reader = created;
    return MR_OK;
}

static mr_read_options reading(const mr_record_reader *reader)
{
    return (mr_read_options){.block_bytes = reader->options.buffer_bytes,
                             .count = reader->options.buffer_count,
                             .direct = reader->options.direct};
}

/* Stores the size that at_end compares with the end. */
static void note_size(mr_record_reader *reader)
{
    uint64_t left = mr_record_stream_left(&reader->stream);
    if (left != UINT64_MAX) reader->size_bytes = reader->stream.base + reader->stream.offset + left;
}

/* Seeks to a record of a plain file. False, with the stream back at its beginning, if the index is wrong. */
static bool seek_record(mr_record_stream *stream, const mr_record_index *index, uint64_t number)
{
    uint64_t length;
    assert(stream->offset == 0 && number <= index->count);
    mr_record_stream_seek(stream, index->offsets[number]);
    if (number == index->count) return true;
    if (mr_record_stream_need(stream, MR_RECORD_HEADER_BYTES, nullptr) == MR_OK &&
        mr_record_stream_held(stream) >= MR_RECORD_HEADER_BYTES &&
        mr_record_header_is_valid(mr_record_stream_bytes(stream), &length) &&
        index->offsets[number] + MR_RECORD_HEADER_BYTES + length + MR_RECORD_FOOTER_BYTES == index->offsets[number + 1])
        return true;
    mr_record_stream_seek(stream, 0);
    return false;
}

/* Seeks to the first record of the range if there is an index; otherwise next() skips the records before it. */
static void go_to_first(mr_record_reader *reader, const char *path)
{
    mr_record_stream *stream = &reader->stream;
    mr_record_index index = {0};
    char *name = nullptr;
    if (reader->options.first == 0 || strcmp(path, "-") == 0 ||
        !(mr_record_stream_is_seekable(stream) || mr_record_stream_can_enter(stream)))
        return;
    if (asprintf(&name, "%s.index", path) < 0) return;
    bool has_index = mr_file_exists(name);
    free(name);
    if (!has_index || mr_record_index_open(path, &index, nullptr) != MR_OK) return;
    uint64_t first = reader->options.first < index.count ? reader->options.first : index.count;
    if (index.compression == MR_COMPRESSION_NONE && mr_record_stream_is_seekable(stream)) {
        if (seek_record(stream, &index, first)) reader->next_number = first;
    } else if (index.point_count > 0 && mr_record_stream_can_enter(stream)) {
        mr_record_point point = index.points[mr_record_index_point(&index, first)];
        assert(point.record <= first);
        mr_record_stream_enter(stream, point.offset, index.offsets[point.record]);
        reader->next_number = point.record;
    }
    mr_record_index_deinit(&index);
}

static mr_status open_reader(const char *path, const mr_record_reader_options *options, bool may_enter,
                             mr_record_reader **reader, mr_error *error)
{
    mr_record_reader *opened;
    MR_TRY(new_reader(options, &opened, error));
    const mr_read_options ring = reading(opened);
    mr_status status = mr_record_stream_open(&opened->stream, path, &ring, error);
    if (status != MR_OK) {
        mr_record_reader_close(opened);
        return status;
    }
    note_size(opened);
    if (may_enter) go_to_first(opened, path);
    *reader = opened;
    return MR_OK;
}

mr_status mr_record_reader_open(const char *path, const mr_record_reader_options *given, mr_record_reader **reader,
                                mr_error *error)
{
    MR_REFUSE_NULL(path, error);
    MR_REFUSE_NULL(reader, error);
    mr_record_reader_options options;
    MR_TRY(MR_OPTIONS_READ(mr_record_reader_options, &options, given, error));
    MR_TRY(check_options(path, &options, error));
    return open_reader(path, &options, true, reader, error);
}

mr_status mr_record_reader_open_through(const char *path, const mr_record_reader_options *options,
                                        mr_record_reader **reader, mr_error *error)
{
    return open_reader(path, options, false, reader, error);
}

mr_status mr_record_reader_open_at(int descriptor, const char *path, uint64_t offset, uint64_t number,
                                   const mr_record_reader_options *options, mr_record_reader **reader, mr_error *error)
{
    mr_record_reader *opened;
    mr_status status = new_reader(options, &opened, error);
    if (status != MR_OK) {
        (void)close(descriptor);
        return status;
    }
    const mr_read_options ring = reading(opened);
    status = mr_record_stream_open_at(&opened->stream, descriptor, path, &ring, error);
    if (status != MR_OK) {
        mr_record_reader_close(opened);
        return status;
    }
    note_size(opened);
    mr_record_stream_seek(&opened->stream, offset);
    opened->options.first = opened->options.count = 0;
    opened->next_number = number;
    *reader = opened;
    return MR_OK;
}

void mr_record_reader_close(mr_record_reader *reader)
{
    if (reader == nullptr) return;
    mr_record_stream_deinit(&reader->stream);
    free(reader->piece);
    free(reader);
}

/* ---- Damage ---- */

static mr_status flush_piece(mr_record_reader *reader, mr_error *error)
{
    assert(reader->piece_used <= PIECE_BYTES && (reader->piece_used == 0 || reader->options.quarantine != nullptr));
    size_t used = reader->piece_used;
    reader->piece_used = 0;
    if (used == 0) return MR_OK;
    return mr_record_quarantine_add(reader->options.quarantine, &reader->damage, &reader->problem, reader->piece_offset,
                                    reader->piece, used, error);
}

/* Consumes bytes of the damaged range. */
static mr_status consume_damaged(mr_record_reader *reader, size_t size_bytes, mr_error *error)
{
    mr_record_stream *stream = &reader->stream;
    assert(size_bytes <= mr_record_stream_held(stream) && (!reader->is_kept || reader->piece != nullptr));
    while (reader->is_kept && size_bytes > 0) {
        if (reader->piece_used == 0) reader->piece_offset = stream->offset;
        size_t room = PIECE_BYTES - reader->piece_used, taken = size_bytes < room ? size_bytes : room;
        assert(room > 0 && taken > 0);
        memcpy(reader->piece + reader->piece_used, mr_record_stream_bytes(stream), taken);
        reader->piece_used += taken;
        mr_record_stream_consume(stream, taken);
        size_bytes -= taken;
        if (reader->piece_used == PIECE_BYTES) MR_TRY(flush_piece(reader, error));
    }
    mr_record_stream_consume(stream, size_bytes);
    return MR_OK;
}

/* Consumes everything to the end of the stream as damaged. */
static mr_status consume_damaged_rest(mr_record_reader *reader, mr_error *error)
{
    mr_record_stream *stream = &reader->stream;
    while (reader->is_kept) {
        MR_TRY(mr_record_stream_need(stream, 1, error));
        size_t held = mr_record_stream_held(stream);
        if (held == 0) break;
        MR_TRY(consume_damaged(reader, held, error));
    }
    mr_record_stream_finish(stream);
    return MR_OK;
}

/* Starts a damaged range at the current position; reader->problem is its message. */
static void begin_damage(mr_record_reader *reader, mr_damage_kind kind)
{
    assert(kind != MR_DAMAGE_NONE && reader->problem.status == MR_DATA_LOSS);
    assert(!reader->in_damage && !reader->is_kept && reader->piece_used == 0);
    reader->in_damage = true;
    reader->damage = (mr_record_damage){
        .kind = kind, .record = reader->next_number, .offset = reader->stream.offset, .path = reader->stream.name};
    reader->is_kept = reader->options.quarantine != nullptr &&
                      mr_record_quarantine_begin(reader->options.quarantine, &reader->damage);
}

/* Ends the damaged range and counts it. Under MR_DAMAGE_SKIP the result is MR_OK until damage_max is exceeded. */
static mr_status end_damage(mr_record_reader *reader, mr_error *error)
{
    const mr_record_reader_options *options = &reader->options;
    mr_record_damage *damage = &reader->damage;
    assert(reader->in_damage && damage->kind != MR_DAMAGE_NONE && damage->offset <= reader->stream.offset);
    reader->in_damage = false;
    damage->size_bytes = reader->stream.offset - damage->offset;
    reader->lost++;
    reader->next_number++;
    if (options->damage == MR_DAMAGE_STOP) return mr_fail(error, MR_DATA_LOSS, "%s", reader->problem.message);
    if (reader->is_kept) {
        reader->is_kept = false;
        MR_TRY(flush_piece(reader, error));
        MR_TRY(mr_record_quarantine_end(options->quarantine, damage, &reader->problem, error));
    }
    if (options->damaged != nullptr) options->damaged(options->context, damage, &reader->problem);
    if (options->damage_max == 0 || reader->lost <= options->damage_max) return MR_OK;
    return mr_fail(error, MR_DATA_LOSS, "%s (damaged range %" PRIu64 ", at most %" PRIu64 " are allowed)",
                   reader->problem.message, reader->lost, options->damage_max);
}

/* Moves the stream to the next record whose two checksums match, or to the end. May be repeated after an error. */
static mr_status find_record(mr_record_reader *reader, mr_error *error)
{
    mr_record_stream *stream = &reader->stream;
    uint64_t begin = reader->search_begin, rejected_bytes = 0;
    assert(stream->offset >= begin);
    if (stream->offset == begin) MR_TRY(consume_damaged(reader, 1, error));
    for (;;) {
        assert(stream->offset > begin);
        MR_TRY(mr_record_stream_need(stream, MR_RECORD_HEADER_BYTES, error));
        size_t held = mr_record_stream_held(stream);
        if (held < MR_RECORD_HEADER_BYTES) return consume_damaged_rest(reader, error);
        /* The upper half of a length is zero except for the longest records, so this test rejects most bytes. */
        const char *bytes = mr_record_stream_bytes(stream);
        uint64_t length = 0;
        size_t i = 0;
        while (i + MR_RECORD_HEADER_BYTES <= held &&
               (mr_load_le32(bytes + i + 4) != 0 || !mr_record_header_is_valid(bytes + i, &length)))
            i++;
        MR_TRY(consume_damaged(reader, i, error));
        if (i + MR_RECORD_HEADER_BYTES > held) continue;

        size_t total_bytes = MR_RECORD_HEADER_BYTES + (size_t)length + MR_RECORD_FOOTER_BYTES;
        if (rejected_bytes <= SEARCH_CREDIT_BYTES + SEARCH_CREDIT_TIMES * (stream->offset - begin) &&
            mr_record_stream_left(stream) >= total_bytes) {
            MR_TRY(mr_record_stream_need(stream, total_bytes, error));
            bytes = mr_record_stream_bytes(stream);
            if (mr_record_stream_held(stream) >= total_bytes &&
                mr_record_crc(bytes + MR_RECORD_HEADER_BYTES, length) ==
                    mr_load_le32(bytes + MR_RECORD_HEADER_BYTES + length))
                return MR_OK;
            rejected_bytes += length;
        }
        MR_TRY(consume_damaged(reader, 1, error));
    }
}

static mr_status search(mr_record_reader *reader, mr_error *error)
{
    assert(reader->searching);
    MR_TRY(find_record(reader, error));
    reader->searching = false;
    return MR_OK;
}

/* The search may read the complete file, so under MR_DAMAGE_STOP it is deferred until the caller continues. */
static mr_status search_or_wait(mr_record_reader *reader, mr_error *error)
{
    assert(!reader->searching && reader->in_damage);
    reader->searching = true;
    reader->search_begin = reader->stream.offset;
    return reader->options.damage == MR_DAMAGE_STOP ? MR_OK : search(reader, error);
}

static mr_status bad_header(mr_record_reader *reader, mr_error *error)
{
    mr_record_stream *stream = &reader->stream;
    (void)mr_damage_report_header(stream->name, reader->next_number, stream->offset, mr_record_stream_bytes(stream),
                                  &reader->problem);
    begin_damage(reader, MR_DAMAGE_HEADER);
    MR_TRY(search_or_wait(reader, error));
    return end_damage(reader, error);
}

static mr_status truncated(mr_record_reader *reader, uint64_t length, uint64_t left, mr_error *error)
{
    mr_record_stream *stream = &reader->stream;
    mr_error *problem = &reader->problem;
    if (stream->fault.status != MR_OK)
        (void)mr_fail(problem, MR_DATA_LOSS, "%s, inside record %" PRIu64 " at byte %" PRIu64, stream->fault.message,
                      reader->next_number, stream->offset);
    else
        (void)mr_damage_report_truncated(stream->name, reader->next_number, stream->offset, length, left, problem);
    bool is_fault = stream->fault.status != MR_OK;
    begin_damage(reader, is_fault ? MR_DAMAGE_COMPRESSION : MR_DAMAGE_TRUNCATED);
    reader->fault_reported |= is_fault;
    /* If bytes were removed from the middle of the file, complete records follow. */
    if (is_fault || left < MR_RECORD_HEADER_BYTES)
        MR_TRY(consume_damaged_rest(reader, error));
    else
        MR_TRY(search_or_wait(reader, error));
    return end_damage(reader, error);
}

/* Whether the file ends before its previous end, as when another process rewrites it. A truncated record has already
 * been reported. */
static bool has_shrunk(mr_record_reader *reader)
{
    uint64_t before = reader->size_bytes;
    reader->size_bytes = 0;
    return reader->stream.base + reader->stream.offset < before && reader->damage.kind != MR_DAMAGE_TRUNCATED;
}

/* Called when the stream is at the end of its last record. */
static mr_status at_end(mr_record_reader *reader, mr_error *error)
{
    mr_record_stream *stream = &reader->stream;
    if (stream->fault.status != MR_OK && !reader->fault_reported) {
        reader->fault_reported = true;
        reader->problem = stream->fault;
        begin_damage(reader, MR_DAMAGE_COMPRESSION);
        MR_TRY(end_damage(reader, error));
    }
    if (has_shrunk(reader))
        return mr_fail(error, MR_ABORTED,
                       "%s: the file has shrunk while it was being read: it now ends at byte %" PRIu64, stream->name,
                       stream->offset);
    return mr_fail(error, MR_OUT_OF_RANGE, "%s: end of file", stream->name);
}

static mr_status bad_data(mr_record_reader *reader, size_t length, uint32_t computed, uint32_t stored, mr_error *error)
{
    assert(computed != stored);
    mr_record_stream *stream = &reader->stream;
    size_t total_bytes = MR_RECORD_HEADER_BYTES + length + MR_RECORD_FOOTER_BYTES;
    assert(mr_record_stream_held(stream) >= total_bytes);
    MR_TRY(mr_record_stream_need(stream, total_bytes + MR_RECORD_HEADER_BYTES, error));
    (void)mr_damage_report_data(stream->name, reader->next_number, stream->offset, computed, stored, &reader->problem);
    begin_damage(reader, MR_DAMAGE_DATA);
    const char *bytes = mr_record_stream_bytes(stream);
    size_t held = mr_record_stream_held(stream);
    uint64_t next_length;
    if (held == total_bytes ||
        (held >= total_bytes + MR_RECORD_HEADER_BYTES && mr_record_header_is_valid(bytes + total_bytes, &next_length)))
        MR_TRY(consume_damaged(reader, mr_damage_find_hidden(bytes, total_bytes), error));
    else
        MR_TRY(search_or_wait(reader, error));
    return end_damage(reader, error);
}

/* ---- Records ---- */

/* Skips a record before the range, whose header is valid. */
static mr_status skip_record(mr_record_reader *reader, size_t total_bytes, mr_error *error)
{
    assert(reader->next_number < reader->options.first);
    mr_record_stream *stream = &reader->stream;
    if (mr_record_stream_is_seekable(stream)) {
        mr_record_stream_seek(stream, stream->offset + total_bytes);
    } else {
        MR_TRY(mr_record_stream_need(stream, total_bytes, error));
        mr_record_stream_consume(stream, total_bytes);
    }
    reader->next_number++;
    return MR_OK;
}

/* Whether the last record of the range has been returned. */
static bool is_past_range(const mr_record_reader *reader)
{
    const mr_record_reader_options *o = &reader->options;
    return o->count > 0 && reader->next_number >= o->first && reader->next_number - o->first >= o->count;
}

mr_status mr_record_reader_wait(mr_record_reader *reader, int32_t timeout_ms, bool *is_ready, mr_error *error)
{
    MR_REFUSE_NULL(reader, error);
    mr_record_stream *stream = &reader->stream;
    uint64_t deadline_ms = mr_record_stream_deadline(timeout_ms);
    *is_ready = true;
    mr_record_stream_consume(stream, reader->consumed);
    reader->consumed = 0;
    if (reader->searching || reader->in_damage || is_past_range(reader)) return MR_OK;
    for (;;) {
        uint64_t length;
        MR_TRY(mr_record_stream_wait(stream, MR_RECORD_HEADER_BYTES, deadline_ms, is_ready, error));
        if (!*is_ready || mr_record_stream_held(stream) < MR_RECORD_HEADER_BYTES ||
            !mr_record_header_is_valid(mr_record_stream_bytes(stream), &length))
            return MR_OK;
        size_t total_bytes = MR_RECORD_HEADER_BYTES + (size_t)length + MR_RECORD_FOOTER_BYTES;
        MR_TRY(mr_record_stream_wait(stream, total_bytes, deadline_ms, is_ready, error));
        if (reader->next_number >= reader->options.first || mr_record_stream_held(stream) < total_bytes) return MR_OK;
        MR_TRY(skip_record(reader, total_bytes, error));
    }
}

mr_status mr_record_reader_next(mr_record_reader *reader, mr_string *record, mr_error *error)
{
    MR_REFUSE_NULL(reader, error);
    MR_REFUSE_NULL(record, error);
    mr_record_stream *stream = &reader->stream;
    const mr_record_reader_options *options = &reader->options;
    mr_record_stream_consume(stream, reader->consumed);
    reader->consumed = 0;
    if (reader->searching) MR_TRY(search(reader, error));
    if (reader->in_damage) MR_TRY(end_damage(reader, error));
    for (;;) {
        if (is_past_range(reader)) return mr_fail(error, MR_OUT_OF_RANGE, "%s: end of the range", stream->name);
        MR_TRY(mr_record_stream_need(stream, MR_RECORD_HEADER_BYTES, error));
        size_t held = mr_record_stream_held(stream);
        if (held == 0) return at_end(reader, error);
        if (held < MR_RECORD_HEADER_BYTES) {
            MR_TRY(truncated(reader, 0, held, error));
            continue;
        }
        uint64_t length;
        if (!mr_record_header_is_valid(mr_record_stream_bytes(stream), &length)) {
            MR_TRY(bad_header(reader, error));
            continue;
        }
        size_t total_bytes = MR_RECORD_HEADER_BYTES + (size_t)length + MR_RECORD_FOOTER_BYTES;
        bool is_before = reader->next_number < options->first;
        if (held < total_bytes) {
            uint64_t left = mr_record_stream_left(stream);
            if (left >= total_bytes && !(is_before && mr_record_stream_is_seekable(stream))) {
                MR_TRY(mr_record_stream_need(stream, total_bytes, error));
                left = mr_record_stream_held(stream);
            }
            if (left < total_bytes) {
                MR_TRY(truncated(reader, length, left, error));
                continue;
            }
        }
        if (is_before) {
            MR_TRY(skip_record(reader, total_bytes, error));
            continue;
        }
        assert(mr_record_stream_held(stream) >= total_bytes && reader->next_number >= options->first);
        const char *data = mr_record_stream_bytes(stream) + MR_RECORD_HEADER_BYTES;
        if (!options->skip_checksums) {
            uint32_t computed = mr_record_crc(data, length), stored = mr_load_le32(data + length);
            if (computed != stored) {
                MR_TRY(bad_data(reader, length, computed, stored, error));
                continue;
            }
        }
        reader->number = reader->next_number++;
        reader->offset = stream->offset;
        reader->consumed = total_bytes;
        *record = (mr_string){data, length};
        return MR_OK;
    }
}

uint64_t mr_record_reader_number(const mr_record_reader *reader)
{
    if (reader == nullptr) return 0;
    return reader->number;
}

uint64_t mr_record_reader_offset(const mr_record_reader *reader)
{
    if (reader == nullptr) return 0;
    return reader->offset;
}

uint64_t mr_record_reader_lost(const mr_record_reader *reader)
{
    if (reader == nullptr) return 0;
    return reader->lost;
}

mr_record_damage mr_record_reader_damage(const mr_record_reader *reader)
{
    if (reader == nullptr) return (mr_record_damage){0};
    return reader->damage;
}

mr_compression mr_record_reader_compression(const mr_record_reader *reader)
{
    if (reader == nullptr) return 0;
    return reader->stream.compression;
}
