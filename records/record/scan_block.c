/* Scan blocks: see scan_block.h.
 *
 * Headers form a chain, so the positions of all records are found by one thread at a time. This is cheap, because the
 * bytes are already in memory, or only headers are read. If a header is invalid, a reader takes over; it starts at the
 * preceding record, because that record may be the damaged one. For the same reason a block is framed only if the
 * header after its last record is valid. */
#include "records/record/scan_block.h"

#include "base/status.h"
#include "records/io/file.h"
#include "records/record/record_damage.h"
#include "records/record/record_format.h"
#include "records/record/record_reader.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zlib.h>

static constexpr size_t AROUND_BYTES = MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES;
/* The alignment that O_DIRECT requires of offsets, addresses and sizes. */
static constexpr size_t ALIGNMENT = 4096;
/* From this mean record size on, only the headers are read in order: a part would contain too much of the neighboring
 * records. */
static constexpr uint64_t LONG_BYTES = 16 << 10;
static constexpr int SAMPLE = 16;
/* A buffer of more than this many blocks, allocated for a long record, is freed after that record. */
static constexpr size_t KEPT_BLOCKS = 8;
/* How far ahead the kernel is asked to read when the file is not in the page cache. */
static constexpr uint64_t AHEAD_BLOCKS = 8;

/* ---- Files ---- */

/* Whether the index allows a GZIP file to be decompressed from several points. */
static bool open_segments(scan_file *file, const struct stat *about, mr_error *error)
{
    mr_file_stamp stamp = mr_file_stamp_from(about);
    mr_record_index *index = &file->index;
    if (mr_record_index_open(file->path, index, nullptr) == MR_OK && index->point_count > 1 &&
        index->file_size_bytes == stamp.size_bytes && index->file_modified_ns == stamp.modified_ns &&
        mr_gzip_seek_new(file->path, index, &file->seek, error) == MR_OK)
        return true;
    mr_record_index_deinit(index);
    return false;
}

static mr_status open_plain(scan_file *file, mr_error *error)
{
    struct stat about;
    char header[MR_RECORD_HEADER_BYTES];
    uint64_t length, sum = 0;
    size_t got;
    int count = 0;
    /* A pipe is opened only once, by the reader: before a second open its writer may have gone. */
    if (stat(file->path, &about) == 0 && S_ISFIFO(about.st_mode)) return MR_OK;
    MR_TRY(mr_file_open(file->path, &file->descriptor, error));
    if (fstat(file->descriptor, &about) != 0) return mr_file_fail(error, errno, "read", file->path);
    if (!S_ISREG(about.st_mode)) return MR_OK;
    file->size_bytes = (uint64_t)about.st_size;
    while (count < SAMPLE && sum < file->size_bytes) {
        MR_TRY(mr_file_read_at(file->descriptor, file->path, sum, header, sizeof header, &got, error));
        if (got < sizeof header || !mr_record_header_is_valid(header, &length)) break;
        sum += AROUND_BYTES + length;
        count++;
    }
    if (count == 0 && file->size_bytes > 0) {
        if (got >= 2 && header[0] == 0x1f && (unsigned char)header[1] == 0x8b && open_segments(file, &about, error))
            file->mode = SCAN_SEGMENTS;
        return MR_OK;
    }
    file->mode = count > 0 && sum / (uint64_t)count >= LONG_BYTES ? SCAN_HEADERS : SCAN_PARTS;
    return MR_OK;
}

static void note_damage(void *context, const mr_record_damage *damage, const mr_error *problem);

/* For a file that does not start with a record: the reader detects the format. */
static mr_status open_in_order(scan_file *file, const scan_settings *settings, mr_error *error)
{
    assert(file->reader == nullptr && file->mode == SCAN_IN_ORDER);
    const mr_record_reader_options options = {.size = sizeof options,
                                              .skip_checksums = settings->skip_checksums,
                                              .direct = settings->direct,
                                              .damage = settings->damage,
                                              .quarantine = settings->quarantine,
                                              .damaged = note_damage,
                                              .context = file};
    MR_TRY(mr_record_reader_open(file->path, &options, &file->reader, error));
    if (file->size_bytes == 0 || mr_record_reader_compression(file->reader) != MR_COMPRESSION_NONE) return MR_OK;
    mr_record_reader_close(file->reader);
    file->reader = nullptr;
    file->mode = SCAN_PARTS;
    return MR_OK;
}

void scan_file_open(scan_file *file, const scan_settings *settings)
{
    file->mode = SCAN_IN_ORDER;
    file->descriptor = file->direct_descriptor = -1;
    mr_status status = MR_OK;
    if (strcmp(file->path, "-") != 0) status = open_plain(file, &file->problem);
    if (status == MR_OK && file->mode == SCAN_IN_ORDER) status = open_in_order(file, settings, &file->problem);
    if (status != MR_OK) {
        scan_file_close(file);
        file->ended = true;
        return;
    }
    if (file->mode == SCAN_IN_ORDER || file->mode == SCAN_SEGMENTS) return;
    if (settings->direct) {
        /* Headers and the ends of records are read through the page cache, without alignment. */
        file->direct_descriptor = open(file->path, O_RDONLY | O_CLOEXEC | O_DIRECT);
        if (file->direct_descriptor >= 0) file->mode = SCAN_PARTS;
    }
    (void)posix_fadvise(file->descriptor, 0, 0, file->mode == SCAN_HEADERS ? POSIX_FADV_NORMAL : POSIX_FADV_SEQUENTIAL);
}

void scan_file_close(scan_file *file)
{
    mr_record_reader_close(file->reader);
    mr_gzip_seek_free(file->seek);
    mr_record_index_deinit(&file->index);
    if (file->descriptor >= 0) (void)close(file->descriptor);
    if (file->direct_descriptor >= 0) (void)close(file->direct_descriptor);
    file->reader = nullptr;
    file->seek = nullptr;
    file->descriptor = file->direct_descriptor = -1;
}

/* ---- Memory ---- */

static mr_status reserve_bytes(scan_block *block, size_t size_bytes, mr_error *error)
{
    assert(block->held <= block->capacity);
    if (size_bytes <= block->capacity) return MR_OK;
    if (size_bytes < 2 * block->capacity && block->held > 0) size_bytes = 2 * block->capacity;
    size_t capacity = (size_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *bytes = aligned_alloc(ALIGNMENT, capacity);
    if (bytes == nullptr) return mr_fail_memory(error, capacity);
    if (block->held > 0) memcpy(bytes, block->bytes, block->held);
    free(block->bytes);
    block->bytes = bytes;
    block->capacity = capacity;
    assert(block->capacity >= size_bytes && block->capacity % ALIGNMENT == 0);
    return MR_OK;
}

/* Grows an array for one more element; false if out of memory. */
static bool has_room(void **array, size_t *capacity, size_t count, size_t element_bytes)
{
    assert(count <= *capacity);
    if (count < *capacity) return true;
    size_t grown = *capacity ? *capacity * 2 : 16;
    void *moved = realloc(*array, grown * element_bytes);
    if (moved == nullptr) return false;
    *array = moved;
    *capacity = grown;
    assert(count < *capacity);
    return true;
}

static bool append(scan_block *block, uint64_t at, uint64_t size_bytes)
{
    if (!has_room((void **)&block->entries, &block->entry_capacity, block->entry_count, sizeof(scan_entry))) {
        (void)mr_fail_memory(&block->error, block->entry_count * sizeof(scan_entry));
        return false;
    }
    block->entries[block->entry_count++] = (scan_entry){.at = at, .size_bytes = size_bytes};
    return true;
}

/* Takes ownership of the message. */
static bool add_report(scan_block *block, const scan_report *report)
{
    if (!has_room((void **)&block->reports, &block->report_capacity, block->report_count, sizeof(scan_report))) {
        free(report->message);
        (void)mr_fail_memory(&block->error, block->report_count * sizeof(scan_report));
        return false;
    }
    block->reports[block->report_count] = *report;
    block->reports[block->report_count++].damage.path = block->file->path;
    return true;
}

static void add_found(scan_block *block, const mr_record_damage *damage, const mr_error *problem)
{
    const scan_report report = {.damage = *damage, .message = strdup(problem->message)};
    if (report.message == nullptr)
        (void)mr_fail_memory(&block->error, strlen(problem->message));
    else if (add_report(block, &report))
        (void)append(block, UINT64_MAX, 0);
}

void scan_report_message(const scan_report *report, mr_error *problem)
{
    const mr_record_damage *damage = &report->damage;
    if (report->message != nullptr)
        (void)mr_fail(problem, MR_DATA_LOSS, "%s", report->message);
    else
        (void)mr_damage_report_data(damage->path, damage->record, damage->offset, report->computed, report->stored,
                                    problem);
}

static void drop_reports(scan_block *block)
{
    for (size_t i = 0; i < block->report_count; i++) free(block->reports[i].message);
    block->report_count = 0;
}

void scan_block_deinit(scan_block *block)
{
    drop_reports(block);
    free(block->bytes);
    free(block->entries);
    free(block->reports);
    free(block->runs);
}

/* ---- Read ---- */

/* Reads size_bytes, or fewer at the end of the file. */
static mr_status read_part(scan_block *block, size_t size_bytes, mr_error *error)
{
    assert(block->part < block->file->size_bytes && size_bytes <= block->capacity);
    scan_file *file = block->file;
    if (file->direct_descriptor >= 0) {
        size_t aligned = (size_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        assert(aligned <= block->capacity && block->part % ALIGNMENT == 0);
        ssize_t got = pread(file->direct_descriptor, block->bytes, aligned, (off_t)block->part);
        block->held = got > 0 ? (size_t)got : 0;
        if (got >= (ssize_t)size_bytes) return MR_OK;
        /* A device that requires a larger alignment is read through the page cache. */
    }
    const struct iovec where = {.iov_base = block->bytes, .iov_len = size_bytes};
    ssize_t got = preadv2(file->descriptor, &where, 1, (off_t)block->part, RWF_NOWAIT);
    if (got == (ssize_t)size_bytes) {
        block->held = size_bytes;
        return MR_OK;
    }
    /* Not cached, or the kernel cannot report it: start reading what other threads will need next. */
    (void)posix_fadvise(file->descriptor, (off_t)(block->part + AHEAD_BLOCKS * size_bytes), (off_t)size_bytes,
                        POSIX_FADV_WILLNEED);
    return mr_file_read_at(file->descriptor, file->path, block->part, block->bytes, size_bytes, &block->held, error);
}

/* The number of the record after a segment's last one. */
static uint64_t segment_end(const scan_file *file, uint64_t segment)
{
    const mr_record_index *index = &file->index;
    assert(segment < index->point_count);
    return segment + 1 < index->point_count ? index->points[segment + 1].record : index->count;
}

/* Decompresses the segment, as far as it is undamaged. */
static mr_status read_segment(scan_block *block, mr_error *error)
{
    const scan_file *file = block->file;
    uint64_t first = file->index.points[block->part].record, end = segment_end(file, block->part);
    size_t size = (size_t)(file->index.offsets[end] - file->index.offsets[first]);
    assert(first < end && end <= file->index.count);
    block->offset = file->index.offsets[first];
    MR_TRY(reserve_bytes(block, size, error));
    mr_error problem = {0};
    block->held = 0;
    mr_status status =
        mr_gzip_seek_read(file->seek, file->descriptor, first, block->bytes, size, &block->held, &problem);
    assert(block->held <= size);
    block->gzip_crc = (uint32_t)crc32_z(0, (const Bytef *)block->bytes, block->held);
    /* A reader reports the damage. */
    return status == MR_OK || status == MR_DATA_LOSS ? MR_OK : mr_fail(error, status, "%s", problem.message);
}

void scan_block_read(scan_block *block, const scan_settings *settings)
{
    if (block->capacity > KEPT_BLOCKS * settings->block_bytes) {
        free(block->bytes);
        block->bytes = nullptr;
        block->capacity = 0;
    }
    drop_reports(block);
    block->held = block->entry_count = block->run_count = block->worked = 0;
    block->error = (mr_error){0};
    block->is_hiding = false;
    if (block->file->problem.status != MR_OK) return;
    if (block->file->mode == SCAN_SEGMENTS) (void)read_segment(block, &block->error);
    if (block->file->mode != SCAN_PARTS) return;
    block->offset = block->part;
    assert(block->part <= block->file->size_bytes);
    uint64_t left = block->file->size_bytes - block->part;
    /* A header that starts at the end of the part has to be complete. */
    size_t size = settings->block_bytes + MR_RECORD_HEADER_BYTES;
    if (size > left) size = (size_t)left;
    mr_status status = reserve_bytes(block, settings->block_bytes + ALIGNMENT, &block->error);
    if (status == MR_OK && size > 0) (void)read_part(block, size, &block->error);
}

/* ---- Frame ---- */

static void note_damage(void *context, const mr_record_damage *damage, const mr_error *problem)
{
    scan_file *file = context;
    scan_block *block = file->framed;
    if (block->error.status != MR_OK) return;
    assert(damage->record == block->first + block->entry_count);
    add_found(block, damage, problem);
}

/* The reader has found damage under MR_DAMAGE_STOP, or cannot continue. */
static void note_end(scan_block *block, const mr_record_reader *reader, mr_status status, const mr_error *error)
{
    assert(status != MR_OK && block->error.status == MR_OK);
    if (status == MR_OUT_OF_RANGE) {
        block->file->ended = true;
    } else if (status == MR_DATA_LOSS) {
        mr_record_damage damage = mr_record_reader_damage(reader);
        add_found(block, &damage, error);
        block->file->ended = true;
    } else {
        block->error = *error;
    }
}

/* The header at file->offset is invalid, or the file ends inside its record: a reader searches for the next record. */
static void find_next(scan_block *block, const scan_settings *settings)
{
    scan_file *file = block->file;
    assert(file->offset >= block->offset);
    uint64_t begin = file->offset, number = file->record;
    scan_entry before = {.at = UINT64_MAX};
    if (block->entry_count > 0) before = block->entries[block->entry_count - 1];
    if (before.at != UINT64_MAX) {
        begin = block->offset + before.at;
        number--;
        block->entry_count--;
    }
    file->framed = block;
    const mr_record_reader_options options = {.size = sizeof options,
                                              .skip_checksums = settings->skip_checksums,
                                              .damage = settings->damage,
                                              .quarantine = settings->quarantine,
                                              .damaged = note_damage,
                                              .context = file};
    mr_record_reader *reader = nullptr;
    mr_string record;
    int descriptor = fcntl(file->descriptor, F_DUPFD_CLOEXEC, 0);
    mr_status status = descriptor < 0 ? mr_file_fail(&block->error, errno, "open", file->path)
                                      : mr_record_reader_open_at(descriptor, file->path, begin, number, &options,
                                                                 &reader, &block->error);
    if (status != MR_OK) return;
    mr_error error = {0};
    size_t reports = block->report_count;
    status = mr_record_reader_next(reader, &record, &error);
    if (status == MR_OK && before.at != UINT64_MAX && mr_record_reader_offset(reader) == begin) {
        if (append(block, before.at, before.size_bytes)) status = mr_record_reader_next(reader, &record, &error);
    }
    if (block->error.status == MR_OK) {
        if (status == MR_OK && block->report_count > reports) {
            file->offset = mr_record_reader_offset(reader);
            file->record = mr_record_reader_number(reader);
        } else if (status == MR_OK || (status == MR_OUT_OF_RANGE && block->report_count == reports)) {
            (void)mr_fail(&block->error, MR_ABORTED, "%s: the file was changed while it was being read", file->path);
        } else {
            note_end(block, reader, status, &error);
        }
    }
    mr_record_reader_close(reader);
}

/* Whether there is a valid header at file->offset, which is read from the block if possible. */
static bool is_header_valid(scan_block *block, uint64_t *length)
{
    scan_file *file = block->file;
    assert(file->offset >= block->offset && file->offset < file->size_bytes);
    char read_bytes[MR_RECORD_HEADER_BYTES];
    const char *header = read_bytes;
    uint64_t at = file->offset - block->offset, left = file->size_bytes - file->offset;
    size_t got;
    if (left < AROUND_BYTES) return false;
    if (at < block->held && block->held - at >= MR_RECORD_HEADER_BYTES)
        header = block->bytes + at;
    else if (mr_file_read_at(file->descriptor, file->path, file->offset, read_bytes, sizeof read_bytes, &got,
                             nullptr) != MR_OK ||
             got < sizeof read_bytes)
        return false;
    return mr_record_header_is_valid(header, length) && *length <= left - AROUND_BYTES;
}

/* Whether the last entry should be followed by another record, but no valid header follows. */
static bool lacks_follower(scan_block *block)
{
    uint64_t length;
    return block->entry_count > 0 && block->entries[block->entry_count - 1].at != UINT64_MAX &&
           block->file->offset < block->file->size_bytes && !is_header_valid(block, &length);
}

/* Frames the records from file->offset on that start before `end`. */
static void frame_to(scan_block *block, uint64_t end, const scan_settings *settings)
{
    scan_file *file = block->file;
    assert(end <= file->size_bytes && file->descriptor >= 0);
    while (!file->ended && block->error.status == MR_OK) {
        uint64_t length;
        bool is_good = file->offset < end ? is_header_valid(block, &length) : !lacks_follower(block);
        if (!is_good) {
            find_next(block, settings);
            /* Long records: skipped bytes are not read, so the block ends here. */
            if (file->mode == SCAN_HEADERS && file->offset > block->offset) return;
            continue;
        }
        if (file->offset >= end || !append(block, file->offset - block->offset, length)) return;
        file->offset += AROUND_BYTES + length;
        file->record++;
    }
}

/* Takes the reader's next records, with their headers, until the block is full. */
static void frame_in_order(scan_block *block, const scan_settings *settings)
{
    scan_file *file = block->file;
    mr_error error = {0};
    mr_status status = MR_OK;
    file->framed = block;
    while (block->held < settings->block_bytes) {
        size_t reports = block->report_count;
        if (!file->is_pending) status = mr_record_reader_next(file->reader, &file->pending, &error);
        if (status != MR_OK || block->error.status != MR_OK) break;
        /* A new block starts after damage, so that the bytes of a block are contiguous in the stream. */
        file->is_pending = reports != block->report_count && block->held > 0;
        if (file->is_pending) break;
        if (block->held == 0) block->offset = mr_record_reader_offset(file->reader);
        size_t total_bytes = AROUND_BYTES + file->pending.size_bytes;
        if (reserve_bytes(block, block->held + total_bytes, &block->error) != MR_OK) break;
        assert(block->held + total_bytes <= block->capacity);
        memcpy(block->bytes + block->held, file->pending.data - MR_RECORD_HEADER_BYTES, total_bytes);
        if (!append(block, block->held, file->pending.size_bytes)) break;
        block->held += total_bytes;
    }
    if (block->error.status == MR_OK && status != MR_OK) note_end(block, file->reader, status, &error);
    file->record += block->entry_count;
}

/* Whether the stream's checksum and length, in the last bytes of the file, match. */
static bool is_trailer_valid(const scan_file *file)
{
    assert(file->mode == SCAN_SEGMENTS);
    unsigned char trailer[8];
    size_t got;
    uint64_t at = file->index.file_size_bytes - sizeof trailer;
    return mr_file_read_at(file->descriptor, file->path, at, trailer, sizeof trailer, &got, nullptr) == MR_OK &&
           got == sizeof trailer && mr_load_le32(trailer) == file->gzip_crc &&
           mr_load_le32(trailer + 4) == (uint32_t)file->index.offsets[file->index.count];
}

/* Frames the records of a segment while the headers match the index; after that the file is read in order. */
static void frame_segment(scan_block *block)
{
    scan_file *file = block->file;
    const uint64_t *offsets = file->index.offsets;
    uint64_t end = segment_end(file, block->part), length;
    block->first = file->index.points[block->part].record;
    assert(block->first < end && block->offset == offsets[block->first]);
    for (uint64_t i = block->first; i < end; i++) {
        uint64_t at = offsets[i] - block->offset, total_bytes = offsets[i + 1] - offsets[i];
        block->is_hiding = at + total_bytes > block->held || !mr_record_header_is_valid(block->bytes + at, &length) ||
                           length + AROUND_BYTES != total_bytes;
        if (block->is_hiding || !append(block, at, length)) return;
    }
    file->gzip_crc = (uint32_t)crc32_combine64(file->gzip_crc, block->gzip_crc, (z_off64_t)block->held);
    if (end == file->index.count) block->is_hiding = !is_trailer_valid(file);
}

void scan_block_frame(scan_block *block, const scan_settings *settings)
{
    scan_file *file = block->file;
    block->first = file->record;
    if (file->problem.status != MR_OK) block->error = file->problem;
    if (block->error.status != MR_OK) file->ended = true;
    if (file->ended) return;
    if (file->mode == SCAN_SEGMENTS) {
        frame_segment(block);
        if (block->error.status != MR_OK) file->ended = true;
        return;
    }
    uint64_t end = file->mode == SCAN_PARTS ? block->part : file->offset;
    end += settings->block_bytes;
    if (end > file->size_bytes) end = file->size_bytes;
    if (file->mode == SCAN_HEADERS) block->offset = file->offset;
    if (file->mode == SCAN_IN_ORDER)
        frame_in_order(block, settings);
    else
        frame_to(block, end, settings);
    if (block->error.status != MR_OK) file->ended = true;
    if (file->mode == SCAN_HEADERS && file->offset >= file->size_bytes) file->ended = true;
    /* The last part is known in advance. */
    if (file->mode != SCAN_PARTS) block->is_last = file->ended;
}

/* ---- Check ---- */

/* Reads what follows the part: the rest of its last record; for long records everything. */
static void read_end(scan_block *block)
{
    scan_file *file = block->file;
    size_t last = block->entry_count, got;
    assert(block->held <= block->capacity);
    while (last > 0 && block->entries[last - 1].at == UINT64_MAX) last--;
    if (last == 0) return;
    uint64_t end = block->entries[last - 1].at + AROUND_BYTES + block->entries[last - 1].size_bytes;
    if (end <= block->held) return;
    mr_status status = reserve_bytes(block, (size_t)end, &block->error);
    if (status == MR_OK)
        status = mr_file_read_at(file->descriptor, file->path, block->offset + block->held, block->bytes + block->held,
                                 (size_t)end - block->held, &got, &block->error);
    if (status == MR_OK) {
        block->held += got;
        if (block->held >= end) return;
        (void)mr_fail(&block->error, MR_ABORTED, "%s: the file was changed while it was being read", file->path);
    }
    block->entry_count = 0;
}

static bool add_run(scan_block *block, size_t first)
{
    assert(first < block->entry_count && (block->run_count == 0 || block->runs[block->run_count - 1].first < first));
    if (!has_room((void **)&block->runs, &block->run_capacity, block->run_count, sizeof(scan_run))) {
        (void)mr_fail_memory(&block->error, block->run_count * sizeof(scan_run));
        return false;
    }
    block->runs[block->run_count++] = (scan_run){.first = first};
    return true;
}

/* The data of entry i does not match its checksum. False: the block ends before it. */
static bool report_data(scan_block *block, size_t i, const char *header, uint64_t size_bytes, uint32_t computed)
{
    size_t total_bytes = AROUND_BYTES + (size_t)size_bytes;
    assert(header >= block->bytes && (size_t)(header - block->bytes) + total_bytes <= block->held);
    mr_record_damage damage = {.kind = MR_DAMAGE_DATA,
                               .record = block->first + i,
                               .offset = block->offset + (uint64_t)(header - block->bytes),
                               .size_bytes = total_bytes};
    if (block->file->mode == SCAN_SEGMENTS || mr_damage_find_hidden(header, total_bytes) < total_bytes) {
        block->is_hiding = true;
        block->hiding_offset = damage.offset;
        return false;
    }
    const scan_report report = {
        .damage = damage, .computed = computed, .stored = mr_load_le32(header + total_bytes - MR_RECORD_FOOTER_BYTES)};
    return add_report(block, &report);
}

static int compare_reports(const void *a, const void *b)
{
    uint64_t x = ((const scan_report *)a)->damage.record, y = ((const scan_report *)b)->damage.record;
    return (x > y) - (x < y);
}

void scan_block_check(scan_block *block, const scan_settings *settings)
{
    assert(block->run_count == 0 && block->worked == 0);
    read_end(block);
    size_t framed = block->report_count;
    bool is_checked = settings->skip_checksums || block->file->mode == SCAN_IN_ORDER, in_run = false;
    size_t count = block->entry_count;
    for (size_t i = 0; i < count; i++) {
        scan_entry *entry = &block->entries[i];
        if (entry->at == UINT64_MAX) {
            entry->record = (mr_string){0};
            in_run = false;
            continue;
        }
        assert(entry->at + AROUND_BYTES + entry->size_bytes <= block->held);
        const char *header = block->bytes + entry->at, *data = header + MR_RECORD_HEADER_BYTES;
        uint64_t size_bytes = entry->size_bytes;
        if (!is_checked) {
            uint32_t computed = mr_record_crc(data, size_bytes);
            if (computed != mr_load_le32(data + size_bytes)) {
                in_run = false;
                entry->record = (mr_string){0};
                block->entry_count = i;
                if (!report_data(block, i, header, size_bytes, computed)) break;
                block->entry_count = settings->damage == MR_DAMAGE_STOP ? i + 1 : count;
                if (settings->damage == MR_DAMAGE_STOP) break;
                continue;
            }
        }
        entry->record = (mr_string){data, size_bytes};
        if (!in_run && !add_run(block, i)) {
            block->entry_count = i;
            break;
        }
        in_run = true;
        scan_run *run = &block->runs[block->run_count - 1];
        run->count++;
        run->size_bytes += size_bytes;
    }
    assert(block->entry_count <= count && block->run_count <= block->entry_count);
    if (framed > 0 && block->report_count > framed)
        qsort(block->reports, block->report_count, sizeof(scan_report), compare_reports);
}
