/* Records in order. The stream's window slides from record to record; a record is handed out as a view of it.
 *
 * Damage. Bad data under a good header loses that record and nothing else, because the header says where the next one
 * begins. Behind a bad header nothing says that, so the bytes are searched, one by one, for the next record whose both
 * checksums hold. Either way the reader has moved on when it reports, so it comes to the end of every file. */
#include "base/arena.h"
#include "records/record_format.h"
#include "records/record_stream.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

static constexpr size_t WINDOW_BYTES = (size_t)1 << 20;
/* Data that a search may check in vain: this, and so many times what it has searched. A file made to hold nothing but
 * headers of long records would otherwise be read once for each of them. */
static constexpr uint64_t SEARCH_CREDIT_BYTES = (uint64_t)1 << 30;
static constexpr uint64_t SEARCH_CREDIT_TIMES = 16;

struct mr_record_reader {
    mr_record_stream stream;
    mr_record_reader_options options;
    size_t consumed;      /* bytes of the record handed out last: consumed by the next call */
    uint64_t next_number; /* of the next record */
    uint64_t number, offset;
    uint64_t lost;
    mr_record_damage damage;
    bool searching;      /* the stream is at a bad header that was reported */
    bool fault_reported; /* the stream's fault */
};

const char *mr_damage_kind_name(mr_damage_kind kind)
{
    switch (kind) {
    case MR_DAMAGE_NONE:
        return "none";
    case MR_DAMAGE_DATA:
        return "bad data";
    case MR_DAMAGE_HEADER:
        return "bad header";
    case MR_DAMAGE_CUT:
        return "cut short";
    case MR_DAMAGE_COMPRESSION:
        return "bad compression";
    }
    return "unknown";
}

mr_status mr_record_reader_open(const char *path, const mr_record_reader_options *options, mr_record_reader **reader,
                                mr_error *error)
{
    mr_record_reader *opened = calloc(1, sizeof(*opened));
    if (!opened) return mr_fail_memory(error, sizeof(*opened));
    if (options) opened->options = *options;
    size_t window = opened->options.buffer_bytes ? opened->options.buffer_bytes : WINDOW_BYTES;
    mr_status status = mr_record_stream_open(&opened->stream, path, window, error);
    if (status != MR_OK) {
        free(opened);
        return status;
    }
    *reader = opened;
    return MR_OK;
}

void mr_record_reader_free(mr_record_reader *reader)
{
    if (!reader) return;
    mr_record_stream_deinit(&reader->stream);
    free(reader);
}

/* Moves the stream to the next record whose both checksums hold, or to the end. */
static mr_status search(mr_record_reader *reader, mr_error *error)
{
    mr_record_stream *stream = &reader->stream;
    uint64_t begin = stream->offset, in_vain = 0;
    mr_record_stream_consume(stream, 1);
    for (;;) {
        MR_TRY(mr_record_stream_need(stream, MR_RECORD_HEADER_BYTES, error));
        size_t held = mr_record_stream_held(stream);
        if (held < MR_RECORD_HEADER_BYTES) {
            mr_record_stream_finish(stream);
            return MR_OK;
        }
        /* A record's length has zeros in its upper half, but for the very longest; most bytes end here. */
        const char *bytes = mr_record_stream_bytes(stream);
        uint64_t length = 0;
        size_t i = 0;
        while (i + MR_RECORD_HEADER_BYTES <= held &&
               (mr_load_le32(bytes + i + 4) != 0 || !mr_record_header_holds(bytes + i, &length)))
            i++;
        mr_record_stream_consume(stream, i);
        if (i + MR_RECORD_HEADER_BYTES > held) continue;

        size_t whole = MR_RECORD_HEADER_BYTES + (size_t)length + MR_RECORD_FOOTER_BYTES;
        if (in_vain <= SEARCH_CREDIT_BYTES + SEARCH_CREDIT_TIMES * (stream->offset - begin) &&
            mr_record_stream_left(stream) >= whole) {
            MR_TRY(mr_record_stream_need(stream, whole, error));
            bytes = mr_record_stream_bytes(stream);
            if (mr_record_stream_held(stream) >= whole &&
                mr_crc32c_mask(mr_crc32c(0, bytes + MR_RECORD_HEADER_BYTES, length)) ==
                    mr_load_le32(bytes + MR_RECORD_HEADER_BYTES + length))
                return MR_OK;
            in_vain += length;
        }
        mr_record_stream_consume(stream, 1);
    }
}

/* Books a damaged place; problem holds its sentence. Under MR_DAMAGE_SKIP this is MR_OK as long as the budget lasts. */
static mr_status book(mr_record_reader *reader, mr_record_damage damage, const mr_error *problem, mr_error *error)
{
    reader->lost++;
    reader->next_number++;
    reader->damage = damage;
    const mr_record_reader_options *options = &reader->options;
    if (options->damage == MR_DAMAGE_STOP) return mr_fail(error, MR_DATA_LOSS, "%s", problem->message);
    if (options->damaged) options->damaged(options->context, &damage, problem);
    if (options->damage_max == 0 || reader->lost <= options->damage_max) return MR_OK;
    return mr_fail(error, MR_DATA_LOSS, "%s (damaged place %" PRIu64 ", of which %" PRIu64 " are allowed)",
                   problem->message, reader->lost, options->damage_max);
}

static mr_status bad_header(mr_record_reader *reader, mr_error *error)
{
    mr_record_stream *stream = &reader->stream;
    const char *header = mr_record_stream_bytes(stream);
    uint64_t length = mr_load_le64(header), offset = stream->offset;
    uint32_t computed = mr_crc32c_mask(mr_crc32c(0, header, 8)), stored = mr_load_le32(header + 8);
    mr_error problem = {0};
    if (computed == stored)
        (void)mr_fail(&problem, MR_DATA_LOSS,
                      "%s: record %" PRIu64 " at byte %" PRIu64 ": the header says %" PRIu64
                      " bytes, and no record is that long",
                      stream->name, reader->next_number, offset, length);
    else
        (void)mr_fail(&problem, MR_DATA_LOSS,
                      "%s: record %" PRIu64 " at byte %" PRIu64 ": the length's checksum is %08x, the file says %08x%s",
                      stream->name, reader->next_number, offset, computed, stored,
                      offset == 0 ? "; is this a TFRecord file?" : "");
    mr_record_damage damage = {.kind = MR_DAMAGE_HEADER, .record = reader->next_number, .offset = offset};
    if (reader->options.damage == MR_DAMAGE_STOP) {
        /* The search may read the whole file, so it waits for someone who goes on. */
        reader->searching = true;
    } else {
        MR_TRY(search(reader, error));
        damage.size_bytes = stream->offset - offset;
    }
    return book(reader, damage, &problem, error);
}

static mr_status cut_short(mr_record_reader *reader, uint64_t length, uint64_t left, mr_error *error)
{
    mr_record_stream *stream = &reader->stream;
    uint64_t offset = stream->offset;
    mr_error problem = {0};
    if (stream->fault.status != MR_OK)
        (void)mr_fail(&problem, MR_DATA_LOSS, "%s, inside record %" PRIu64 " at byte %" PRIu64, stream->fault.message,
                      reader->next_number, offset);
    else if (left < MR_RECORD_HEADER_BYTES)
        (void)mr_fail(&problem, MR_DATA_LOSS,
                      "%s: record %" PRIu64 " at byte %" PRIu64 ": cut short: %" PRIu64 " of 12 header bytes are there",
                      stream->name, reader->next_number, offset, left);
    else
        (void)mr_fail(&problem, MR_DATA_LOSS,
                      "%s: record %" PRIu64 " at byte %" PRIu64 ": cut short: the header says %" PRIu64
                      " bytes and a checksum, %" PRIu64 " bytes are there",
                      stream->name, reader->next_number, offset, length, left - MR_RECORD_HEADER_BYTES);
    mr_record_damage damage = {.kind = stream->fault.status != MR_OK ? MR_DAMAGE_COMPRESSION : MR_DAMAGE_CUT,
                               .record = reader->next_number,
                               .offset = offset,
                               .size_bytes = left};
    reader->fault_reported = true;
    mr_record_stream_finish(stream);
    return book(reader, damage, &problem, error);
}

/* The stream is at the end of its last record. */
static mr_status at_end(mr_record_reader *reader, mr_error *error)
{
    mr_record_stream *stream = &reader->stream;
    if (stream->fault.status != MR_OK && !reader->fault_reported) {
        reader->fault_reported = true;
        mr_record_damage damage = {
            .kind = MR_DAMAGE_COMPRESSION, .record = reader->next_number, .offset = stream->offset};
        mr_error problem = stream->fault;
        MR_TRY(book(reader, damage, &problem, error));
    }
    return mr_fail(error, MR_OUT_OF_RANGE, "%s: end of the file", stream->name);
}

static mr_status bad_data(mr_record_reader *reader, size_t length, uint32_t computed, uint32_t stored, mr_error *error)
{
    mr_record_stream *stream = &reader->stream;
    mr_error problem = {0};
    (void)mr_fail(&problem, MR_DATA_LOSS,
                  "%s: record %" PRIu64 " at byte %" PRIu64 ": checksum of the data is %08x, the file says %08x",
                  stream->name, reader->next_number, stream->offset, computed, stored);
    size_t whole = MR_RECORD_HEADER_BYTES + length + MR_RECORD_FOOTER_BYTES;
    mr_record_damage damage = {
        .kind = MR_DAMAGE_DATA, .record = reader->next_number, .offset = stream->offset, .size_bytes = whole};
    mr_record_stream_consume(stream, whole);
    return book(reader, damage, &problem, error);
}

mr_status mr_record_reader_next(mr_record_reader *reader, mr_string *record, mr_error *error)
{
    mr_record_stream *stream = &reader->stream;
    mr_record_stream_consume(stream, reader->consumed);
    reader->consumed = 0;
    if (reader->searching) {
        reader->searching = false;
        MR_TRY(search(reader, error));
    }
    for (;;) {
        MR_TRY(mr_record_stream_need(stream, MR_RECORD_HEADER_BYTES, error));
        size_t held = mr_record_stream_held(stream);
        if (held == 0) return at_end(reader, error);
        if (held < MR_RECORD_HEADER_BYTES) {
            MR_TRY(cut_short(reader, 0, held, error));
            continue;
        }
        uint64_t length;
        if (!mr_record_header_holds(mr_record_stream_bytes(stream), &length)) {
            MR_TRY(bad_header(reader, error));
            continue;
        }
        size_t whole = MR_RECORD_HEADER_BYTES + (size_t)length + MR_RECORD_FOOTER_BYTES;
        if (held < whole) {
            uint64_t left = mr_record_stream_left(stream);
            if (left >= whole) {
                MR_TRY(mr_record_stream_need(stream, whole, error));
                left = mr_record_stream_held(stream);
            }
            if (left < whole) {
                MR_TRY(cut_short(reader, length, left, error));
                continue;
            }
        }
        const char *data = mr_record_stream_bytes(stream) + MR_RECORD_HEADER_BYTES;
        if (!reader->options.skip_checksums) {
            uint32_t computed = mr_crc32c_mask(mr_crc32c(0, data, length)), stored = mr_load_le32(data + length);
            if (computed != stored) {
                MR_TRY(bad_data(reader, length, computed, stored, error));
                continue;
            }
        }
        reader->number = reader->next_number++;
        reader->offset = stream->offset;
        reader->consumed = whole;
        *record = (mr_string){data, length};
        return MR_OK;
    }
}

uint64_t mr_record_reader_number(const mr_record_reader *reader)
{
    return reader->number;
}

uint64_t mr_record_reader_offset(const mr_record_reader *reader)
{
    return reader->offset;
}

uint64_t mr_record_reader_lost(const mr_record_reader *reader)
{
    return reader->lost;
}

mr_record_damage mr_record_reader_damage(const mr_record_reader *reader)
{
    return reader->damage;
}

mr_compression mr_record_reader_compression(const mr_record_reader *reader)
{
    return reader->stream.compression;
}
