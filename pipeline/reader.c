/* Readers: the records of files whose names come from a queue (queue.h). */
#include "base/options.h"
#include "queue/attempt.h"
#include "records/io/file.h"
#include "records/io/input_file.h"

#include <millrace/formats.h>
#include <millrace/queue.h>
#include <millrace/record.h>

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

constexpr size_t FILE_BYTES_MAX = (size_t)2 << 30;

struct mr_reader {
    mr_reader_kind kind;
    mr_reader_options options;
    pthread_mutex_t mutex;
    /* Guarded by the mutex: */
    char *path;                /* owned; of the open file; null: none is open */
    mr_input_file *file;       /* text lines, fixed length */
    mr_record_reader *records; /* TFRecord */
    char *window;              /* owned; of text */
    size_t capacity, begin, end;
    uint64_t offset; /* of window[begin], or of the next record */
    int64_t number;  /* of the next line or record in the file */
    char *work;      /* owned; identity: the last name; null: none */
    int64_t produced, completed;
    mr_queue_patience *patience; /* of the read in progress */
    mr_error pending; /* an error that occurred after records that were returned; reported by the next read */
};

mr_status mr_reader_new(mr_reader_kind kind, const mr_reader_options *given, mr_reader **reader, mr_error *error)
{
    if (reader == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_reader_new: reader is null");
    *reader = nullptr;
    mr_reader_options options;
    MR_TRY(MR_OPTIONS_READ(mr_reader_options, &options, given, error));
    if (kind < MR_READER_WHOLE_FILE || kind > MR_READER_IDENTITY)
        return mr_fail(error, MR_INVALID_ARGUMENT, "reader: unknown kind %d", (int)kind);
    if (kind == MR_READER_FIXED_LENGTH && (options.record_bytes == 0 || options.record_bytes > FILE_BYTES_MAX))
        return mr_fail(error, MR_INVALID_ARGUMENT, "reader: invalid record_bytes: %zu", options.record_bytes);
    if (options.skip_header_lines < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "reader: skip_header_lines is %d, expected at least 0",
                       options.skip_header_lines);
    if (kind != MR_READER_TEXT_LINE && options.skip_header_lines != 0)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "reader: skip_header_lines has no effect: it applies only to text lines");
    bool has_lengths =
        options.header_bytes != 0 || options.record_bytes != 0 || options.footer_bytes != 0 || options.hop_bytes != 0;
    if (kind != MR_READER_FIXED_LENGTH && has_lengths)
        return mr_fail(
            error, MR_INVALID_ARGUMENT,
            "reader: header_bytes, record_bytes, footer_bytes and hop_bytes have no effect: they apply only to "
            "records of fixed length");
    if (kind != MR_READER_FIXED_LENGTH && options.zlib)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "reader: zlib has no effect: it applies only to records of fixed length");
    mr_reader *made = calloc(1, sizeof *made);
    if (made == nullptr) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a reader");
    made->kind = kind;
    made->options = options;
    if (made->options.hop_bytes == 0) made->options.hop_bytes = options.record_bytes;
    pthread_mutex_init(&made->mutex, nullptr);
    *reader = made;
    return MR_OK;
}

/* What must hold whenever the mutex is held: the open file is of the reader's kind, and the window is inside its
 * buffer. */
static void check(const mr_reader *reader)
{
    bool is_open = reader->path != nullptr;
    bool has_window = reader->kind == MR_READER_TEXT_LINE || reader->kind == MR_READER_FIXED_LENGTH;
    (void)is_open, (void)has_window;
    assert((reader->file != nullptr) == (is_open && has_window));
    assert((reader->records != nullptr) == (is_open && reader->kind == MR_READER_TF_RECORD));
    assert(reader->begin <= reader->end && reader->end <= reader->capacity);
    assert((reader->window == nullptr) == (reader->capacity == 0));
    assert(is_open || (reader->number == 0 && reader->offset == 0 && reader->end == 0));
    assert(reader->number >= 0 && reader->produced >= 0 && reader->completed >= 0);
}

static void close_file(mr_reader *reader)
{
    mr_input_file_close(reader->file);
    mr_record_reader_close(reader->records);
    free(reader->path);
    reader->file = nullptr;
    reader->records = nullptr;
    reader->path = nullptr;
    reader->begin = reader->end = 0;
    reader->offset = 0;
    reader->number = 0;
}

void mr_reader_reset(mr_reader *reader)
{
    if (reader == nullptr) return;
    pthread_mutex_lock(&reader->mutex);
    close_file(reader);
    reader->produced = reader->completed = 0;
    free(reader->work);
    reader->work = nullptr;
    reader->pending = (mr_error){0};
    check(reader);
    pthread_mutex_unlock(&reader->mutex);
}

void mr_reader_free(mr_reader *reader)
{
    if (reader == nullptr) return;
    close_file(reader);
    free(reader->window);
    free(reader->work);
    pthread_mutex_destroy(&reader->mutex);
    free(reader);
}

/* ---- A record of the open file: MR_OUT_OF_RANGE at its end ---- */

/* Whether each string of the queue is one record. */
static bool is_one_record(const mr_reader *reader)
{
    return reader->kind == MR_READER_WHOLE_FILE || reader->kind == MR_READER_IDENTITY;
}

static mr_status put_key(const mr_reader *reader, int64_t position, mr_tensor *key, mr_error *error)
{
    char *text = nullptr;
    int length = is_one_record(reader) ? asprintf(&text, "%s", reader->path)
                                       : asprintf(&text, "%s:%lld", reader->path, (long long)position);
    if (length < 0) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a key");
    mr_status status = mr_tensor_init_string(key, (mr_string){text, (size_t)length}, error);
    free(text);
    return status;
}

static mr_status put_record(const mr_reader *reader, int64_t position, mr_string record, mr_tensor *key,
                            mr_tensor *value, mr_error *error)
{
    MR_TRY(put_key(reader, position, key, error));
    mr_status status = mr_tensor_init_string(value, record, error);
    if (status != MR_OK) mr_tensor_deinit(key);
    return status;
}

static mr_status reserve(mr_reader *reader, size_t size_bytes, mr_error *error)
{
    if (size_bytes <= reader->capacity) return MR_OK;
    char *window = realloc(reader->window, size_bytes);
    if (window == nullptr) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for %zu bytes", size_bytes);
    reader->window = window;
    reader->capacity = size_bytes;
    return MR_OK;
}

static mr_status read_whole(mr_reader *reader, mr_tensor *key, mr_tensor *value, mr_error *error)
{
    char *bytes = nullptr;
    size_t size_bytes = 0;
    MR_TRY(mr_file_read_all(reader->path, FILE_BYTES_MAX, &bytes, &size_bytes, error));
    mr_status status = put_record(reader, 0, (mr_string){bytes, size_bytes}, key, value, error);
    free(bytes);
    return status;
}

/* Reads the next line into the window, without its LF or CRLF. Other CRs are kept, unlike in text_lines, as in
 * TensorFlow. */
static mr_status next_line(mr_reader *reader, mr_string *line, mr_error *error)
{
    constexpr size_t STEP_BYTES = 64 << 10;
    size_t looked = 0;
    for (;;) {
        size_t held = reader->end - reader->begin;
        char *from = reader->window == nullptr ? nullptr : reader->window + reader->begin;
        char *end = from != nullptr && held > looked ? memchr(from + looked, '\n', held - looked) : nullptr;
        bool is_over = reader->offset + held >= mr_input_file_size(reader->file);
        if (end == nullptr && !is_over) {
            size_t done = 0;
            looked = held;
            if (held > MR_LINE_SIZE_MAX)
                return mr_fail(error, MR_DATA_LOSS, "%s: line %lld is longer than %zu bytes", reader->path,
                               (long long)reader->number + 1, MR_LINE_SIZE_MAX);
            if (from != nullptr && reader->begin > 0) memmove(reader->window, from, held);
            reader->begin = 0;
            reader->end = held;
            MR_TRY(reserve(reader, held + held / 2 + STEP_BYTES, error));
            MR_TRY(mr_input_file_read(reader->file, reader->offset + held, reader->window + held,
                                      reader->capacity - held, &done, error));
            if (done == 0) return mr_fail(error, MR_DATA_LOSS, "%s: truncated while it was read", reader->path);
            reader->end += done;
            continue;
        }
        if (end == nullptr && held == 0) return mr_fail(error, MR_OUT_OF_RANGE, "end of file");
        size_t size_bytes = end == nullptr ? held : (size_t)(end - from);
        size_t used = size_bytes + (end != nullptr);
        if (end != nullptr && size_bytes > 0 && from[size_bytes - 1] == '\r') size_bytes--;
        *line = (mr_string){from, size_bytes};
        reader->begin += used;
        reader->offset += used;
        reader->number++;
        return MR_OK;
    }
}

static mr_status read_line(mr_reader *reader, mr_tensor *key, mr_tensor *value, mr_error *error)
{
    mr_string line = {0};
    while (reader->number < reader->options.skip_header_lines) MR_TRY(next_line(reader, &line, error));
    MR_TRY(next_line(reader, &line, error));
    return put_record(reader, reader->number, line, key, value, error);
}

static mr_status read_fixed(mr_reader *reader, mr_tensor *key, mr_tensor *value, mr_error *error)
{
    const mr_reader_options *o = &reader->options;
    uint64_t size_bytes = mr_input_file_size(reader->file), at, end, used;
    size_t done = 0;
    /* A remainder is not a record, as in TensorFlow. */
    if (__builtin_mul_overflow((uint64_t)reader->number, o->hop_bytes, &at) ||
        __builtin_add_overflow(at, o->header_bytes, &at) || __builtin_add_overflow(at, o->record_bytes, &end) ||
        __builtin_add_overflow(end, o->footer_bytes, &used) || used > size_bytes)
        return mr_fail(error, MR_OUT_OF_RANGE, "end of file");
    MR_TRY(reserve(reader, o->record_bytes, error));
    MR_TRY(mr_input_file_read(reader->file, at, reader->window, o->record_bytes, &done, error));
    if (done != o->record_bytes) return mr_fail(error, MR_DATA_LOSS, "%s: truncated while it was read", reader->path);
    MR_TRY(put_record(reader, reader->number, (mr_string){reader->window, done}, key, value, error));
    reader->number++;
    return MR_OK;
}

static mr_status read_tf_record(mr_reader *reader, mr_tensor *key, mr_tensor *value, mr_error *error)
{
    mr_string record = {0};
    MR_TRY(mr_record_reader_next(reader->records, &record, error));
    return put_record(reader, (int64_t)mr_record_reader_offset(reader->records), record, key, value, error);
}

static mr_status read_name(mr_reader *reader, mr_tensor *key, mr_tensor *value, mr_error *error)
{
    char *work = strdup(reader->path);
    if (work == nullptr) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a name");
    free(reader->work);
    reader->work = work;
    return put_record(reader, 0, mr_string_from(reader->path), key, value, error);
}

static mr_status read_one(mr_reader *reader, mr_tensor *key, mr_tensor *value, mr_error *error)
{
    switch (reader->kind) {
    case MR_READER_WHOLE_FILE:
        return read_whole(reader, key, value, error);
    case MR_READER_TEXT_LINE:
        return read_line(reader, key, value, error);
    case MR_READER_FIXED_LENGTH:
        return read_fixed(reader, key, value, error);
    case MR_READER_TF_RECORD:
        return read_tf_record(reader, key, value, error);
    case MR_READER_IDENTITY:
        return read_name(reader, key, value, error);
    }
    return MR_INTERNAL;
}

/* ---- Files in sequence ---- */

/* The name of the next file. The queue may deliver any string tensor. */
static mr_status next_name(mr_queue *names, mr_queue_patience *patience, char **path, mr_error *error)
{
    mr_tensor name = {0};
    const mr_queue_options *o = mr_queue_describe(names);
    if (o->component_count != 1 || o->dtypes[0] != MR_STRING)
        return mr_fail(error, MR_INVALID_ARGUMENT, "reader: the queue must contain file names (one string)");
    MR_TRY(mr_queue_dequeue_with(names, -1, false, &name, patience, error));
    if (patience != nullptr && patience->would_wait) return MR_UNAVAILABLE;
    int64_t count = mr_tensor_count(&name);
    mr_string text = count == 1 ? mr_tensor_strings(&name)[0] : (mr_string){0};
    mr_status status = MR_OK;
    if (count != 1)
        status =
            mr_fail(error, MR_INVALID_ARGUMENT, "reader: a file name has %lld strings, expected 1", (long long)count);
    else if (text.size_bytes > 0 && memchr(text.data, 0, text.size_bytes) != nullptr)
        status = mr_fail(error, MR_INVALID_ARGUMENT, "reader: a file name contains a NUL byte");
    else if ((*path = strndup(text.size_bytes > 0 ? text.data : "", text.size_bytes)) == nullptr)
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a name");
    mr_tensor_deinit(&name);
    return status;
}

/* Replaces the open file by its contents. */
static mr_status inflate_file(mr_reader *reader, mr_error *error)
{
    constexpr uint64_t HEADER_BYTES = 2, FOOTER_BYTES = 4;
    uint64_t size_bytes = mr_input_file_size(reader->file);
    uint32_t crc;
    mr_input_file *inflated = nullptr;
    if (size_bytes < HEADER_BYTES + FOOTER_BYTES)
        return mr_fail(error, MR_DATA_LOSS, "%s: not a ZLIB stream: it has %llu bytes", reader->path,
                       (unsigned long long)size_bytes);
    MR_TRY(mr_input_file_inflate(reader->file, HEADER_BYTES, size_bytes - HEADER_BYTES - FOOTER_BYTES, MR_DEFLATE_RAW,
                                 FILE_BYTES_MAX, reader->path, &inflated, &crc, error));
    mr_input_file_close(reader->file);
    reader->file = inflated;
    return MR_OK;
}

static mr_status open_next(mr_reader *reader, mr_queue *names, mr_error *error)
{
    assert(reader->path == nullptr);
    MR_TRY(next_name(names, reader->patience, &reader->path, error));
    mr_status status = MR_OK;
    if (reader->kind == MR_READER_TF_RECORD)
        status = mr_record_reader_open(reader->path, nullptr, &reader->records, error);
    else if (!is_one_record(reader))
        status = mr_input_file_open(reader->path, !reader->options.zlib, &reader->file, error);
    if (status == MR_OK && reader->options.zlib) status = inflate_file(reader, error);
    if (status != MR_OK) close_file(reader);
    check(reader);
    return status;
}

/* Mutex held. The next record, from the next file if this one has ended, unless only_here. */
static mr_status next_record(mr_reader *reader, mr_queue *names, bool only_here, mr_tensor *key, mr_tensor *value,
                             mr_error *error)
{
    for (;;) {
        check(reader);
        if (reader->path == nullptr) {
            if (only_here) return mr_fail(error, MR_OUT_OF_RANGE, "end of file");
            MR_TRY(open_next(reader, names, error));
        }
        mr_status status = read_one(reader, key, value, error);
        bool has_ended = status == MR_OUT_OF_RANGE || (status == MR_OK && is_one_record(reader));
        if (status == MR_OK) reader->produced++;
        if (has_ended) {
            close_file(reader);
            reader->completed++;
        }
        if (status != MR_OUT_OF_RANGE) return status;
    }
}

/* Mutex held. Returns the error that an earlier read has kept. */
static mr_status take_pending(mr_reader *reader, mr_error *error)
{
    mr_error pending = reader->pending;
    reader->pending = (mr_error){0};
    return pending.status == MR_OK ? MR_OK : mr_fail(error, pending.status, "%s", pending.message);
}

static mr_status check_arguments(const mr_reader *reader, const mr_queue *names, const mr_tensor *keys,
                                 const mr_tensor *values, mr_error *error)
{
    const char *missing = reader == nullptr   ? "reader"
                          : names == nullptr  ? "queue of file names"
                          : keys == nullptr   ? "key"
                          : values == nullptr ? "value"
                                              : nullptr;
    return missing == nullptr ? MR_OK : mr_fail(error, MR_INVALID_ARGUMENT, "read: the %s is null", missing);
}

/* String scalars: a key and a value for each record. */
typedef struct records {
    mr_tensor *pairs; /* owned */
    int64_t count, room;
} records;

static void records_deinit(records *r)
{
    for (int64_t i = 0; i < 2 * r->count; i++) mr_tensor_deinit(&r->pairs[i]);
    free(r->pairs);
}

static mr_status records_reserve(records *r, mr_error *error)
{
    constexpr int64_t ROOM_MIN = 64;
    assert(r->count >= 0 && r->count <= r->room);
    if (r->count < r->room) return MR_OK;
    int64_t room = r->room == 0 ? ROOM_MIN : 2 * r->room;
    mr_tensor *pairs = reallocarray(r->pairs, (size_t)room, 2 * sizeof *pairs);
    if (pairs == nullptr) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for %lld records", (long long)room);
    r->pairs = pairs;
    r->room = room;
    return MR_OK;
}

/* The keys (0) or values (1) as a vector. */
static mr_status join_strings(const records *r, int which, mr_tensor *vector, mr_error *error)
{
    mr_string *strings = calloc((size_t)r->count + 1, sizeof *strings);
    if (strings == nullptr)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for %lld records", (long long)r->count);
    for (int64_t i = 0; i < r->count; i++) strings[i] = mr_tensor_strings(&r->pairs[2 * i + which])[0];
    mr_status status = mr_tensor_init_strings(vector, MR_SHAPE(r->count), strings, error);
    free(strings);
    return status;
}

/* Mutex held. Up to count records of one file. An error after the first record is kept for the next read. */
static mr_status read_some(mr_reader *reader, mr_queue *names, int64_t count, records *r, mr_error *error)
{
    MR_TRY(take_pending(reader, error));
    while (r->count < count) {
        mr_error why = {0};
        mr_status status = records_reserve(r, &why);
        mr_tensor *pair = &r->pairs[2 * r->count];
        if (status == MR_OK) status = next_record(reader, names, r->count > 0, &pair[0], &pair[1], &why);
        if (status == MR_OK) {
            r->count++;
            continue;
        }
        if (r->count == 0) return mr_fail(error, status, "%s", why.message);
        if (status != MR_OUT_OF_RANGE) reader->pending = why;
        assert(status == MR_OUT_OF_RANGE || reader->pending.status == status);
        return MR_OK;
    }
    return MR_OK;
}

static mr_status read_many(mr_reader *reader, mr_queue *names, int64_t count, mr_tensor *keys, mr_tensor *values,
                           mr_error *error)
{
    records r = {0};
    mr_status status = read_some(reader, names, count, &r, error);
    if (status == MR_OK) status = join_strings(&r, 0, keys, error);
    if (status == MR_OK) {
        status = join_strings(&r, 1, values, error);
        if (status != MR_OK) mr_tensor_deinit(keys);
    }
    records_deinit(&r);
    return status;
}

static mr_status read_single(mr_reader *reader, mr_queue *names, mr_tensor *key, mr_tensor *value, mr_error *error)
{
    MR_TRY(take_pending(reader, error));
    return next_record(reader, names, false, key, value, error);
}

mr_status mr_reader_read_with(mr_reader *reader, mr_queue *names, int64_t count, mr_tensor *keys, mr_tensor *values,
                              mr_queue_patience *patience, mr_error *error)
{
    bool may_wait = patience == nullptr || patience->may_wait;
    if (may_wait) {
        pthread_mutex_lock(&reader->mutex);
    } else if (pthread_mutex_trylock(&reader->mutex) != 0) {
        patience->would_wait = true;
        return MR_OK;
    }
    reader->patience = patience;
    mr_status status = count < 0 ? read_single(reader, names, keys, values, error)
                                 : read_many(reader, names, count, keys, values, error);
    reader->patience = nullptr;
    pthread_mutex_unlock(&reader->mutex);
    return patience != nullptr && patience->would_wait ? MR_OK : status;
}

mr_status mr_reader_read(mr_reader *reader, mr_queue *names, mr_tensor *key, mr_tensor *value, mr_error *error)
{
    MR_TRY(check_arguments(reader, names, key, value, error));
    return mr_reader_read_with(reader, names, -1, key, value, nullptr, error);
}

mr_status mr_reader_read_up_to(mr_reader *reader, mr_queue *names, int64_t count, mr_tensor *keys, mr_tensor *values,
                               mr_error *error)
{
    MR_TRY(check_arguments(reader, names, keys, values, error));
    if (count < 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "read: count is %lld, expected at least 1", (long long)count);
    return mr_reader_read_with(reader, names, count, keys, values, nullptr, error);
}

int64_t mr_reader_records_produced(mr_reader *reader)
{
    if (reader == nullptr) return 0;
    pthread_mutex_lock(&reader->mutex);
    int64_t produced = reader->produced;
    pthread_mutex_unlock(&reader->mutex);
    return produced;
}

int64_t mr_reader_work_units_completed(mr_reader *reader)
{
    if (reader == nullptr) return 0;
    pthread_mutex_lock(&reader->mutex);
    int64_t completed = reader->completed;
    pthread_mutex_unlock(&reader->mutex);
    return completed;
}

/* ---- Saved state ---- */

bool mr_reader_has_state(const mr_reader *reader)
{
    return reader->kind == MR_READER_IDENTITY;
}

mr_status mr_reader_save(mr_reader *reader, mr_reader_progress *progress, mr_error *error)
{
    *progress = (mr_reader_progress){0};
    if (!mr_reader_has_state(reader)) return mr_fail(error, MR_UNIMPLEMENTED, "Reader SerializeState");
    pthread_mutex_lock(&reader->mutex);
    progress->started = reader->completed + (reader->path != nullptr);
    progress->finished = reader->completed;
    progress->produced = reader->produced;
    progress->work = reader->work == nullptr ? nullptr : strdup(reader->work);
    bool has_memory = progress->work != nullptr || reader->work == nullptr;
    pthread_mutex_unlock(&reader->mutex);
    return has_memory ? MR_OK : mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a name");
}

mr_status mr_reader_restore(mr_reader *reader, const mr_reader_progress *progress, mr_error *error)
{
    if (!mr_reader_has_state(reader)) return mr_fail(error, MR_UNIMPLEMENTED, "Reader RestoreState");
    assert(progress->started >= 0 && progress->finished >= progress->started && progress->produced >= 0);
    char *work = progress->work == nullptr ? nullptr : strdup(progress->work);
    if (progress->work != nullptr && work == nullptr)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a name");
    pthread_mutex_lock(&reader->mutex);
    close_file(reader);
    free(reader->work);
    reader->work = work;
    reader->completed = progress->finished;
    reader->produced = progress->produced;
    reader->pending = (mr_error){0};
    pthread_mutex_unlock(&reader->mutex);
    return MR_OK;
}
