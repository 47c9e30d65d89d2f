/* The index builder for plain files: reads only the headers, 12 bytes each, of long records, and all bytes of short
 * ones.
 *
 * A large file is split into sections, one for each thread. Every section except the first starts with a search for the
 * first offset that looks like a record. This is only a guess, because a record's data may contain complete records. It
 * is confirmed if the chain of records from the beginning of the file ends exactly there; otherwise the section is
 * scanned again from where the chain actually continues. */
#include "records/record/record_index.h"

#include "base/pool.h"
#include "base/status.h"
#include "records/record/record_damage.h"
#include "records/record/record_format.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static constexpr uint64_t AROUND_BYTES = MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES;
/* Short records are scanned in pieces of this size, which stay in the cache. */
static constexpr size_t PIECE_BYTES = (size_t)256 << 10;
/* After a record of at least this size only a header is read: from this size on, a system call costs as much as copying
 * the record. */
static constexpr uint64_t SKIP_BYTES_MIN = (uint64_t)10 << 10;
/* Minimum size of a section. */
static constexpr uint64_t SECTION_BYTES_MIN = (uint64_t)32 << 20;
static constexpr int SECTIONS_MAX = 16;
/* How far a section searches for its first record; one thread is fast enough for longer records. */
static constexpr uint64_t SEARCH_BYTES_MAX = (uint64_t)2 << 20;

/* Records that start in [begin, end) of the file. */
typedef struct section {
    const mr_index_source *source;
    uint64_t begin, end;
    uint64_t start, next; /* offset of the first record; offset after the last one */
    bool is_found;
    bool keeps_offsets;
    uint64_t count, capacity;
    uint64_t *offsets; /* owned; offset of each record */
    /* The part of the file in memory. */
    unsigned char *bytes; /* owned */
    uint64_t piece_offset;
    size_t piece_bytes;
} section;

/* Returns the bytes at offset, as many as the piece contains.
 * distance  from the previous header to this one */
static mr_status bytes_at(section *s, uint64_t offset, uint64_t distance, const unsigned char **bytes, size_t *held,
                          mr_error *error)
{
    assert(s->bytes);
    if (offset < s->piece_offset || offset + MR_RECORD_HEADER_BYTES > s->piece_offset + s->piece_bytes) {
        size_t want = distance >= SKIP_BYTES_MIN ? (size_t)MR_RECORD_HEADER_BYTES : PIECE_BYTES;
        s->piece_offset = offset;
        MR_TRY(mr_file_read_at(s->source->descriptor, s->source->path, offset, s->bytes, want, &s->piece_bytes, error));
    }
    assert(offset >= s->piece_offset && offset - s->piece_offset <= s->piece_bytes);
    *held = s->piece_offset + s->piece_bytes - offset;
    *bytes = s->bytes + (offset - s->piece_offset);
    return MR_OK;
}

static mr_status keep_offset(section *s, uint64_t offset, mr_error *error)
{
    assert(s->count <= s->capacity && (s->count == 0 || s->offsets[s->count - 1] < offset));
    if (s->count == s->capacity) {
        /* One more than the number of records, for the end of the last one. */
        uint64_t grown = s->capacity ? s->capacity * 2 : 1024;
        uint64_t *offsets = realloc(s->offsets, (grown + 1) * sizeof(uint64_t));
        if (offsets == nullptr) return mr_fail_memory(error, grown * sizeof(uint64_t));
        s->offsets = offsets;
        s->capacity = grown;
    }
    s->offsets[s->count] = offset;
    return MR_OK;
}

/* Follows the headers from s->next to the first record at or after `end`.
 * number  of the record at s->next, for messages */
static mr_status follow_headers(section *s, uint64_t end, uint64_t number, mr_error *error)
{
    const char *path = s->source->path;
    uint64_t offset = s->next, size = s->source->size_bytes, distance = 0, first = s->count;
    assert(offset <= size && end <= size);
    while (offset < end) {
        const unsigned char *header;
        size_t held;
        MR_TRY(bytes_at(s, offset, distance, &header, &held, error));
        uint64_t left = size - offset, length = 0, record = number + s->count - first;
        if (held < MR_RECORD_HEADER_BYTES || left < MR_RECORD_HEADER_BYTES)
            return mr_damage_report_truncated(path, record, offset, 0, held < left ? held : left, error);
        if (!mr_record_header_is_valid(header, &length))
            return mr_damage_report_header(path, record, offset, header, error);
        if (AROUND_BYTES + length > left) return mr_damage_report_truncated(path, record, offset, length, left, error);
        if (s->keeps_offsets) MR_TRY(keep_offset(s, offset, error));
        s->count++;
        distance = AROUND_BYTES + length;
        offset += distance;
        s->next = offset;
    }
    return MR_OK;
}

/* Whether a record may start here: its header is valid and is followed by another valid header or the end of the
 * file. */
static bool looks_like_record(section *s, uint64_t offset, const unsigned char *header)
{
    uint64_t length, size = s->source->size_bytes;
    if (mr_load_le32(header + 4) != 0 || !mr_record_header_is_valid(header, &length)) return false;
    uint64_t next = offset + AROUND_BYTES + length;
    if (next >= size) return next == size;
    unsigned char after[MR_RECORD_HEADER_BYTES];
    size_t done;
    return mr_file_read_at(s->source->descriptor, s->source->path, next, after, sizeof(after), &done, nullptr) ==
               MR_OK &&
           done == sizeof(after) && mr_record_header_is_valid(after, &length);
}

/* Finds a candidate for the first record at or after s->begin. */
static void find_start(section *s)
{
    assert(!s->is_found && s->begin <= s->end);
    uint64_t limit = s->begin + SEARCH_BYTES_MAX < s->end ? s->begin + SEARCH_BYTES_MAX : s->end;
    for (uint64_t offset = s->begin; offset < limit;) {
        const unsigned char *bytes;
        size_t held;
        if (bytes_at(s, offset, 0, &bytes, &held, nullptr) != MR_OK || held < MR_RECORD_HEADER_BYTES) return;
        for (size_t i = 0; i + MR_RECORD_HEADER_BYTES <= held; i++, offset++)
            if (looks_like_record(s, offset, bytes + i)) {
                s->start = s->next = offset;
                s->is_found = true;
                return;
            }
    }
}

static void scan_sections(void *context, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        section *s = (section *)context + i;
        s->bytes = malloc(PIECE_BYTES);
        if (s->bytes == nullptr) continue;
        if (s->begin == 0)
            s->is_found = true;
        else
            find_start(s);
        /* An error is found again when the sections are joined, then with the correct record number. */
        if (s->is_found) s->is_found = follow_headers(s, s->end, 0, nullptr) == MR_OK;
    }
}

/* Appends a section's records to those of the first one, which is complete up to section->begin. */
static mr_status join(section *all, section *s, mr_error *error)
{
    assert(all->next >= s->begin);
    if (all->next >= s->end) return MR_OK;
    if (!s->is_found || s->start != all->next) return follow_headers(all, s->end, all->count, error);
    if (all->keeps_offsets) {
        uint64_t count = all->count + s->count;
        if (count > all->capacity) {
            uint64_t *offsets = realloc(all->offsets, (count + 1) * sizeof(uint64_t));
            if (offsets == nullptr) return mr_fail_memory(error, count * sizeof(uint64_t));
            all->offsets = offsets;
            all->capacity = count;
        }
        assert(count <= all->capacity);
        if (s->count > 0) memcpy(all->offsets + all->count, s->offsets, s->count * sizeof(uint64_t));
        free(s->offsets);
        s->offsets = nullptr;
    }
    all->count += s->count;
    all->next = s->next;
    return MR_OK;
}

/* Scans all sections and joins them into the first. */
static mr_status scan_all(section *sections, int count, mr_error *error)
{
    mr_pool *pool = nullptr;
    /* Without additional threads it only takes longer. */
    if (count > 1) (void)mr_pool_new(count, &pool, nullptr);
    mr_pool_for(pool, count, 1, scan_sections, sections);
    mr_pool_free(pool);
    section *all = &sections[0];
    if (all->bytes == nullptr) return mr_fail_memory(error, PIECE_BYTES);
    if (!all->is_found) {
        /* The first section's error is the file's error. */
        all->count = all->next = 0;
        MR_TRY(follow_headers(all, all->end, 0, error));
    }
    for (int i = 1; i < count; i++) MR_TRY(join(all, &sections[i], error));
    assert(all->next == all->source->size_bytes);
    if (!all->keeps_offsets) return MR_OK;
    if (all->offsets == nullptr && (all->offsets = malloc(sizeof(uint64_t))) == nullptr)
        return mr_fail_memory(error, sizeof(uint64_t));
    all->offsets[all->count] = all->next;
    return MR_OK;
}

mr_status mr_index_build_plain(const mr_index_source *source, uint64_t *count, mr_record_index *index, mr_error *error)
{
    section sections[SECTIONS_MAX] = {0};
    uint64_t most = source->size_bytes / SECTION_BYTES_MIN, threads = (uint64_t)source->threads;
    if (source->threads <= 0) threads = most > 1 ? (uint64_t)mr_processor_count() : 1;
    if (threads > most) threads = most;
    int section_count = threads < 1 ? 1 : threads < SECTIONS_MAX ? (int)threads : SECTIONS_MAX;
    assert(section_count >= 1 && section_count <= SECTIONS_MAX);
    uint64_t step = source->size_bytes / (uint64_t)section_count;
    for (int i = 0; i < section_count; i++)
        sections[i] = (section){.source = source,
                                .keeps_offsets = index != nullptr,
                                .begin = step * (uint64_t)i,
                                .end = i + 1 < section_count ? step * (uint64_t)(i + 1) : source->size_bytes};
    mr_status status = scan_all(sections, section_count, error);
    if (status == MR_OK) {
        *count = sections[0].count;
        if (index != nullptr) {
            index->offsets = sections[0].offsets;
            index->count = sections[0].count;
            sections[0].offsets = nullptr;
        }
    }
    for (int i = 0; i < section_count; i++) {
        free(sections[i].offsets);
        free(sections[i].bytes);
    }
    return status;
}
