/* DALI's index of a record file, in the format of tfrecord2idx: a line "OFFSET SIZE" for each record. */
#include "base/arguments.h"
#include "base/pool.h"
#include "base/status.h"
#include "records/record/record_format.h"
#include "records/record/record_index.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static constexpr uint64_t AROUND_BYTES = MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES;
static constexpr size_t TEXT_BYTES_MAX = (size_t)8 << 30;
static constexpr size_t BUFFER_BYTES = (size_t)64 << 10;
static constexpr size_t LINE_BYTES_MAX = 48;

/* ---- Write ---- */

/* Writes the digits of a number, followed by one byte. */
static size_t put_number(char *text, uint64_t number, char after)
{
    char digits[20];
    size_t count = 0;
    do digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    for (size_t i = 0; i < count; i++) text[i] = digits[count - 1 - i];
    assert(count <= sizeof digits);
    text[count] = after;
    return count + 1;
}

static mr_status write_lines(mr_file_output *output, const mr_record_index *index, char *buffer, mr_error *error)
{
    size_t used = 0;
    for (uint64_t i = 0; i < index->count; i++) {
        if (BUFFER_BYTES - used < LINE_BYTES_MAX) {
            MR_TRY(mr_file_output_write(output, buffer, used, error));
            used = 0;
        }
        used += put_number(buffer + used, index->offsets[i], ' ');
        used += put_number(buffer + used, index->offsets[i + 1] - index->offsets[i], '\n');
    }
    assert(used <= BUFFER_BYTES);
    return mr_file_output_write(output, buffer, used, error);
}

mr_status mr_dali_index_write(const char *index_path, const mr_record_index *index, mr_error *error)
{
    MR_REFUSE_NULL(index_path, error);
    MR_REFUSE_NULL(index, error);
    if (index->compression != MR_COMPRESSION_NONE)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the records are compressed, but DALI reads only plain files",
                       index_path);
    char *buffer = malloc(BUFFER_BYTES);
    if (buffer == nullptr) return mr_fail_memory(error, BUFFER_BYTES);
    mr_file_output output = {0};
    mr_status status = mr_file_output_open(&output, index_path, true, error);
    if (status == MR_OK) {
        status = write_lines(&output, index, buffer, error);
        if (status == MR_OK)
            status = mr_file_output_commit(&output, error);
        else
            mr_file_output_discard(&output);
    }
    free(buffer);
    return status;
}

/* ---- Read ---- */

/* Parses the digits at *next; false if there are none, or if the number exceeds 63 bits. */
static bool take_number(const char **next, const char *end, uint64_t *number)
{
    const char *begin = *next;
    uint64_t value = 0;
    for (; *next < end && **next >= '0' && **next <= '9'; ++*next) {
        if (value > (uint64_t)INT64_MAX / 10 - 1) return false;
        value = value * 10 + (uint64_t)(**next - '0');
    }
    *number = value;
    return *next > begin;
}

static bool take_spaces(const char **next, const char *end)
{
    const char *begin = *next;
    while (*next < end && (**next == ' ' || **next == '\t')) ++*next;
    return *next > begin;
}

/* Parses one line and its line break, which is optional for the last line. */
static bool take_line(const char **next, const char *end, uint64_t *offset, uint64_t *size)
{
    if (!take_number(next, end, offset) || !take_spaces(next, end) || !take_number(next, end, size)) return false;
    (void)take_spaces(next, end);
    if (*next < end && **next == '\r') ++*next;
    if (*next == end) return true;
    return *(*next)++ == '\n';
}

mr_status mr_dali_index_parse(const char *path, const char *text, size_t size_bytes, mr_record_index *index,
                              mr_error *error)
{
    *index = (mr_record_index){0};
    uint64_t capacity = 0, end = 0;
    const char *next = text, *last = text + size_bytes;
    mr_status status = MR_OK;
    while (next < last && status == MR_OK) {
        uint64_t offset = 0, size = 0;
        if (!take_line(&next, last, &offset, &size))
            status = mr_fail(error, MR_DATA_LOSS, "%s: line %" PRIu64 " is not OFFSET SIZE", path, index->count + 1);
        else if (size < AROUND_BYTES || size - AROUND_BYTES > MR_RECORD_SIZE_MAX)
            status = mr_fail(error, MR_DATA_LOSS, "%s: line %" PRIu64 ": invalid record size %" PRIu64, path,
                             index->count + 1, size);
        else if (offset != end)
            status =
                mr_fail(error, MR_DATA_LOSS,
                        "%s: line %" PRIu64 ": starts at byte %" PRIu64 ", but the previous record ends at %" PRIu64,
                        path, index->count + 1, offset, end);
        else
            status = mr_record_index_append(index, &capacity, size - AROUND_BYTES, error);
        end += size;
    }
    if (status == MR_OK && index->offsets == nullptr) {
        index->offsets = calloc(1, sizeof(uint64_t));
        if (index->offsets == nullptr) status = mr_fail_memory(error, sizeof(uint64_t));
    }
    if (status != MR_OK) {
        mr_record_index_deinit(index);
        return status;
    }
    assert(index->offsets[index->count] == end);
    index->file_size_bytes = index->offsets[index->count];
    index->origin = MR_INDEX_LOADED;
    return MR_OK;
}

mr_status mr_dali_index_read(const char *index_path, mr_record_index *index, mr_error *error)
{
    MR_REFUSE_NULL(index_path, error);
    MR_REFUSE_NULL(index, error);
    char *text;
    size_t size;
    *index = (mr_record_index){0};
    MR_TRY(mr_file_read_all(index_path, TEXT_BYTES_MAX, &text, &size, error));
    mr_status status = mr_dali_index_parse(index_path, text, size, index, error);
    free(text);
    return status;
}

/* ---- Check ---- */

typedef struct check {
    const mr_index_source *file;
    const mr_record_index *index;
    int64_t grain;
    mr_error *errors; /* one for each piece */
} check;

static mr_status check_header(const check *check, uint64_t i, mr_error *error)
{
    unsigned char header[MR_RECORD_HEADER_BYTES];
    uint64_t offset = check->index->offsets[i], length, expected = check->index->offsets[i + 1] - offset - AROUND_BYTES;
    size_t done;
    MR_TRY(mr_file_read_at(check->file->descriptor, check->file->path, offset, header, sizeof(header), &done, error));
    if (done == sizeof(header) && mr_record_header_is_valid(header, &length) && length == expected) return MR_OK;
    return mr_fail(error, MR_DATA_LOSS,
                   "%s: record %" PRIu64 " at byte %" PRIu64 ": the record does not have the %" PRIu64
                   " bytes that the index specifies",
                   check->file->path, i, offset, expected);
}

static void check_headers(void *context, int64_t begin, int64_t end)
{
    const check *check = context;
    assert(begin % check->grain == 0);
    mr_error *error = &check->errors[begin / check->grain];
    for (int64_t i = begin; i < end; i++)
        if (check_header(check, (uint64_t)i, error) != MR_OK) return;
}

static mr_status check_all(const mr_index_source *file, const mr_record_index *index, mr_error *error)
{
    if (index->count == 0) return MR_OK;
    int threads = file->threads > 0 ? file->threads : mr_processor_count();
    int64_t count = (int64_t)index->count, grain = count / ((int64_t)threads * 4) + 1;
    check check = {.file = file, .index = index, .grain = grain};
    check.errors = calloc((size_t)(count / grain + 1), sizeof(mr_error));
    if (check.errors == nullptr) return mr_fail_memory(error, sizeof(mr_error));
    mr_pool *pool = nullptr;
    if (threads > 1 && count > 4096) (void)mr_pool_new(threads, &pool, nullptr);
    mr_pool_for(pool, count, grain, check_headers, &check);
    mr_pool_free(pool);
    mr_status status = MR_OK;
    for (int64_t i = 0; status == MR_OK && i * grain < count; i++)
        if (check.errors[i].status != MR_OK)
            status = mr_fail(error, check.errors[i].status, "%s", check.errors[i].message);
    free(check.errors);
    return status;
}

mr_status mr_record_index_check(const char *path, int32_t threads, mr_record_index *index, mr_error *error)
{
    MR_REFUSE_NULL(path, error);
    MR_REFUSE_NULL(index, error);
    if (index->compression != MR_COMPRESSION_NONE)
        return mr_fail(error, MR_UNIMPLEMENTED, "%s: the file is compressed, so its headers cannot be read separately",
                       path);
    mr_index_source file = {.path = path, .descriptor = -1, .threads = threads};
    MR_TRY(mr_file_open(path, &file.descriptor, error));
    struct stat about;
    mr_status status = MR_OK;
    if (fstat(file.descriptor, &about) != 0)
        status = mr_file_fail(error, errno, "read", path);
    else if ((uint64_t)about.st_size != index->offsets[index->count])
        status = mr_fail(error, MR_DATA_LOSS, "%s: the file has %" PRIu64 " bytes, the index specifies %" PRIu64, path,
                         (uint64_t)about.st_size, index->offsets[index->count]);
    else
        status = check_all(&file, index, error);
    file.size_bytes = (uint64_t)about.st_size;
    if (status == MR_OK) status = mr_index_sample(&file, &index->file_checksum, error);
    (void)close(file.descriptor);
    if (status != MR_OK) return status;
    mr_file_stamp stamp = mr_file_stamp_from(&about);
    index->file_size_bytes = stamp.size_bytes;
    index->file_modified_ns = stamp.modified_ns;
    return MR_OK;
}
