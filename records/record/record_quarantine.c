/* The quarantine: damaged bytes and their positions, as Examples in a record file, and a line for each damaged range in
 * a text file.
 *
 * Each piece is appended by one write, so that processes that share the file do not interleave, and is removed again if
 * the disk is full. A range that is reported again, in another epoch or after a restart, is not written again. */
#include "base/status.h"
#include "records/io/file.h"
#include "records/record/record_damage.h"
#include "records/record/record_format.h"

#include <millrace/example.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Maximum number of remembered ranges; others are written each time they are reported. */
static constexpr size_t RANGES_MAX = (size_t)1 << 20;

struct mr_record_quarantine {
    pthread_mutex_t mutex;
    char *path, *report_path;
    int records, report; /* descriptors in append mode */
    mr_example_encoder encoder;
    char *room; /* owned: a record with its header and footer */
    size_t room_bytes;
    uint64_t *ranges; /* hash table with open addressing; 0 is free */
    size_t capacity, used;
    uint64_t count, size_bytes;
};

/* ---- Known ranges ---- */

static uint64_t range_hash(mr_string path, uint64_t offset)
{
    uint64_t hash = 14695981039346656037u ^ offset;
    for (size_t i = 0; i < path.size_bytes; i++) hash = (hash ^ (unsigned char)path.data[i]) * 1099511628211u;
    hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u;
    hash ^= hash >> 32;
    return hash ? hash : 1;
}

static void put(uint64_t *ranges, size_t capacity, uint64_t hash)
{
    assert(hash != 0 && (capacity & (capacity - 1)) == 0);
    size_t at = hash & (capacity - 1);
    while (ranges[at] != 0) at = (at + 1) & (capacity - 1);
    ranges[at] = hash;
}

/* Adds a range; false if it is known. Without memory every range counts as new, which only costs disk space. */
static bool add_range(mr_record_quarantine *quarantine, uint64_t hash)
{
    assert(quarantine->used * 2 <= quarantine->capacity);
    size_t mask = quarantine->capacity - 1;
    for (size_t at = hash & mask; quarantine->capacity > 0 && quarantine->ranges[at] != 0; at = (at + 1) & mask)
        if (quarantine->ranges[at] == hash) return false;
    if (quarantine->used * 2 >= quarantine->capacity) {
        size_t capacity = quarantine->capacity ? quarantine->capacity * 2 : 256;
        uint64_t *ranges = capacity <= 2 * RANGES_MAX ? calloc(capacity, sizeof(*ranges)) : nullptr;
        if (ranges == nullptr) return true;
        for (size_t i = 0; i < quarantine->capacity; i++)
            if (quarantine->ranges[i]) put(ranges, capacity, quarantine->ranges[i]);
        free(quarantine->ranges);
        quarantine->ranges = ranges;
        quarantine->capacity = capacity;
    }
    put(quarantine->ranges, quarantine->capacity, hash);
    quarantine->used++;
    return true;
}

/* ---- Open and close ---- */

static mr_status open_to_append(const char *path, int *descriptor, mr_error *error)
{
    do *descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    while (*descriptor < 0 && errno == EINTR);
    return *descriptor >= 0 ? MR_OK : mr_file_fail(error, errno, "open", path);
}

void mr_record_quarantine_remember(mr_record_quarantine *quarantine, mr_string path, uint64_t offset)
{
    (void)add_range(quarantine, range_hash(path, offset));
}

mr_status mr_record_quarantine_new(const char *path, mr_record_quarantine **quarantine, mr_error *error)
{
    mr_record_quarantine *opened = calloc(1, sizeof(*opened));
    if (opened == nullptr) return mr_fail_memory(error, sizeof(*opened));
    opened->records = opened->report = -1;
    (void)pthread_mutex_init(&opened->mutex, nullptr);
    mr_status status = MR_OK;
    if ((opened->path = strdup(path)) == nullptr || asprintf(&opened->report_path, "%s.txt", path) < 0) {
        opened->report_path = nullptr;
        status = mr_fail_memory(error, strlen(path));
    }
    if (status == MR_OK) status = open_to_append(path, &opened->records, error);
    if (status == MR_OK) status = open_to_append(opened->report_path, &opened->report, error);
    if (status != MR_OK) {
        (void)mr_record_quarantine_close(opened, nullptr);
        return status;
    }
    *quarantine = opened;
    return MR_OK;
}

static mr_status close_descriptor(int descriptor, const char *path, mr_error *error)
{
    if (descriptor < 0) return MR_OK;
    return close(descriptor) == 0 || errno == EINTR ? MR_OK : mr_file_fail(error, errno, "write", path);
}

mr_status mr_record_quarantine_close(mr_record_quarantine *quarantine, mr_error *error)
{
    if (quarantine == nullptr) return MR_OK;
    mr_status status = close_descriptor(quarantine->records, quarantine->path, error);
    mr_status second = close_descriptor(quarantine->report, quarantine->report_path, status == MR_OK ? error : nullptr);
    mr_example_encoder_deinit(&quarantine->encoder);
    free(quarantine->room);
    free(quarantine->ranges);
    free(quarantine->path);
    free(quarantine->report_path);
    (void)pthread_mutex_destroy(&quarantine->mutex);
    free(quarantine);
    return status != MR_OK ? status : second;
}

uint64_t mr_record_quarantine_count(const mr_record_quarantine *quarantine)
{
    if (quarantine == nullptr) return 0;
    return quarantine->count;
}

uint64_t mr_record_quarantine_size(const mr_record_quarantine *quarantine)
{
    if (quarantine == nullptr) return 0;
    return quarantine->size_bytes;
}

/* ---- Append ---- */

/* Appends all bytes or none, as far as the file system allows. */
static mr_status append(int descriptor, const char *path, const char *bytes, size_t size_bytes, mr_error *error)
{
    off_t before = lseek(descriptor, 0, SEEK_END);
    for (size_t done = 0; done < size_bytes;) {
        ssize_t written = write(descriptor, bytes + done, size_bytes - done);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            int number = written < 0 ? errno : ENOSPC;
            if (before >= 0 && done > 0) (void)!ftruncate(descriptor, before);
            return mr_file_fail(error, number, "write", path);
        }
        done += (size_t)written;
    }
    return MR_OK;
}

bool mr_record_quarantine_begin(mr_record_quarantine *quarantine, const mr_record_damage *damage)
{
    uint64_t hash = range_hash(mr_string_from(damage->path), damage->offset);
    pthread_mutex_lock(&quarantine->mutex);
    bool is_new = add_range(quarantine, hash);
    if (is_new) quarantine->count++;
    pthread_mutex_unlock(&quarantine->mutex);
    return is_new;
}

static mr_status add_piece(mr_record_quarantine *quarantine, mr_error *error)
{
    mr_string record;
    MR_TRY(mr_example_finish(&quarantine->encoder, &record, error));
    size_t total_bytes = MR_RECORD_HEADER_BYTES + record.size_bytes + MR_RECORD_FOOTER_BYTES;
    if (total_bytes > quarantine->room_bytes) {
        char *room = realloc(quarantine->room, total_bytes);
        if (room == nullptr) return mr_fail_memory(error, total_bytes);
        quarantine->room = room;
        quarantine->room_bytes = total_bytes;
    }
    char *room = quarantine->room;
    assert(total_bytes <= quarantine->room_bytes);
    mr_store_le64(room, record.size_bytes);
    mr_store_le32(room + 8, mr_crc32c_mask(mr_crc32c(0, room, 8)));
    memcpy(room + MR_RECORD_HEADER_BYTES, record.data, record.size_bytes);
    mr_store_le32(room + MR_RECORD_HEADER_BYTES + record.size_bytes,
                  mr_crc32c_mask(mr_crc32c(0, record.data, record.size_bytes)));
    return append(quarantine->records, quarantine->path, room, total_bytes, error);
}

mr_status mr_record_quarantine_add(mr_record_quarantine *quarantine, const mr_record_damage *damage,
                                   const mr_error *problem, uint64_t offset, const void *bytes, size_t size_bytes,
                                   mr_error *error)
{
    pthread_mutex_lock(&quarantine->mutex);
    mr_example_encoder *encoder = &quarantine->encoder;
    mr_example_add_bytes(encoder, "file", mr_string_from(damage->path));
    mr_example_add_bytes(encoder, "kind", mr_string_from(mr_damage_kind_name(damage->kind)));
    mr_example_add_int64(encoder, "record", (int64_t)damage->record);
    mr_example_add_int64(encoder, "offset", (int64_t)offset);
    mr_example_add_bytes(encoder, "message", mr_string_from(problem->message));
    mr_example_add_bytes(encoder, "bytes", (mr_string){bytes, size_bytes});
    mr_status status = add_piece(quarantine, error);
    if (status == MR_OK) quarantine->size_bytes += size_bytes;
    pthread_mutex_unlock(&quarantine->mutex);
    return status;
}

mr_status mr_record_quarantine_end(mr_record_quarantine *quarantine, const mr_record_damage *damage,
                                   const mr_error *problem, mr_error *error)
{
    char line[MR_ERROR_SIZE + 128];
    int size = snprintf(line, sizeof line, "%s, %" PRIu64 " bytes: %s\n", mr_damage_kind_name(damage->kind),
                        damage->size_bytes, problem->message);
    assert(size > 0 && (size_t)size < sizeof line);
    pthread_mutex_lock(&quarantine->mutex);
    mr_status status = append(quarantine->report, quarantine->report_path, line, (size_t)size, error);
    pthread_mutex_unlock(&quarantine->mutex);
    return status;
}
