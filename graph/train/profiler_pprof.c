/* A view as a profile of pprof: profile.proto, compressed with gzip. An entry is a function, and its stack are the
 * entries that it is below. The message is written directly, as it has only numbers and lists. */
#include "base/status.h"
#include "graph/train/profiler_view.h"
#include "kernels/text.h"
#include "records/io/file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- Protobuf ---- */

static void put_varint(mr_text_builder *out, uint64_t value)
{
    unsigned char bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value != 0);
    mr_text_add(out, bytes, count);
}

static void put_number(mr_text_builder *out, uint32_t field, uint64_t value)
{
    put_varint(out, (uint64_t)field << 3);
    put_varint(out, value);
}

static void put_bytes(mr_text_builder *out, uint32_t field, const void *bytes, size_t size_bytes)
{
    put_varint(out, (uint64_t)field << 3 | 2);
    put_varint(out, size_bytes);
    mr_text_add(out, bytes, size_bytes);
}

/* A message, or a packed list, that was written to `part`, which is then empty. */
static void put_part(mr_text_builder *out, uint32_t field, mr_text_builder *part)
{
    put_bytes(out, field, part->data, part->size_bytes);
    out->failed |= part->failed;
    part->size_bytes = 0;
}

/* ---- profile.proto ---- */

/* Fields of the messages. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING_TABLE = 6,
    PROFILE_DEFAULT_SAMPLE_TYPE = 14,
    VALUE_TYPE_TYPE = 1,
    VALUE_TYPE_UNIT = 2,
    SAMPLE_LOCATION_ID = 1,
    SAMPLE_VALUE = 2,
    LOCATION_ID = 1,
    LOCATION_LINE = 4,
    LINE_FUNCTION_ID = 1,
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
};

/* The string table starts with these; string 0 is empty. The name of entry i is at STRING_COUNT + i - 1. */
enum {
    STRING_CALLS = 1,
    STRING_TIME,
    STRING_ACCELERATOR,
    STRING_MEMORY,
    STRING_FLOAT_OPS,
    STRING_PARAMETERS,
    STRING_COUNT_UNIT,
    STRING_MICROSECONDS,
    STRING_BYTES,
    STRING_COUNT
};
static const char *const strings[STRING_COUNT] = {"",          "calls",      "time",  "accelerator_time", "memory",
                                                  "float_ops", "parameters", "count", "microseconds",     "bytes"};

constexpr size_t VALUE_COUNT = 6;
static const uint64_t units[VALUE_COUNT] = {STRING_COUNT_UNIT, STRING_MICROSECONDS, STRING_MICROSECONDS,
                                            STRING_BYTES,      STRING_COUNT_UNIT,   STRING_COUNT_UNIT};

static void get_values(const mr_profile_figures *figures, int64_t values[static VALUE_COUNT])
{
    const int64_t all[VALUE_COUNT] = {figures->run_count,       figures->micros,    figures->accelerator_micros,
                                      figures->requested_bytes, figures->float_ops, figures->parameters};
    memcpy(values, all, sizeof all);
}

static void put_types(mr_text_builder *out, mr_text_builder *part, const mr_profile_figures *total)
{
    for (uint64_t i = 0; i < VALUE_COUNT; i++) {
        put_number(part, VALUE_TYPE_TYPE, STRING_CALLS + i);
        put_number(part, VALUE_TYPE_UNIT, units[i]);
        put_part(out, PROFILE_SAMPLE_TYPE, part);
    }
    put_number(out, PROFILE_DEFAULT_SAMPLE_TYPE, total->micros > 0 ? STRING_TIME : STRING_FLOAT_OPS);
}

/* The entry's own values, under the stack of the entries above it, itself first. */
static void put_sample(mr_text_builder *out, mr_text_builder *part, mr_text_builder *list, const mr_view_entry *e)
{
    int64_t values[VALUE_COUNT];
    bool has_values = false;
    get_values(&e->entry.own, values);
    for (size_t i = 0; i < VALUE_COUNT; i++) has_values |= values[i] != 0;
    if (!has_values) return;
    for (const mr_view_entry *each = e; each->parent != nullptr; each = each->parent)
        put_varint(list, (uint64_t)each->number);
    put_part(part, SAMPLE_LOCATION_ID, list);
    for (size_t i = 0; i < VALUE_COUNT; i++) put_varint(list, (uint64_t)values[i]);
    put_part(part, SAMPLE_VALUE, list);
    put_part(out, PROFILE_SAMPLE, part);
}

static void put_function(mr_text_builder *out, mr_text_builder *part, mr_text_builder *line, const mr_view_entry *e)
{
    const uint64_t id = (uint64_t)e->number;
    put_number(line, LINE_FUNCTION_ID, id);
    put_number(part, LOCATION_ID, id);
    put_part(part, LOCATION_LINE, line);
    put_part(out, PROFILE_LOCATION, part);
    put_number(part, FUNCTION_ID, id);
    put_number(part, FUNCTION_NAME, STRING_COUNT + id - 1);
    put_part(out, PROFILE_FUNCTION, part);
}

static mr_status write_message(const mr_profile_view *view, mr_text_builder *out, mr_text_builder *part,
                               mr_text_builder *list, mr_error *error)
{
    int32_t depth = 0;
    put_types(out, part, &view->root->entry.total);
    for (size_t i = 0; i < STRING_COUNT; i++) put_bytes(out, PROFILE_STRING_TABLE, strings[i], strlen(strings[i]));
    for (const mr_view_entry *e = mr_view_next(view->root, &depth); e != nullptr; e = mr_view_next(e, &depth)) {
        put_sample(out, part, list, e);
        put_function(out, part, list, e);
        put_bytes(out, PROFILE_STRING_TABLE, e->entry.name, strlen(e->entry.name));
        if (out->failed) return mr_fail_memory(error, out->size_bytes);
        if (out->size_bytes > MR_PROFILE_TEXT_BYTES_MAX)
            return mr_fail(error, MR_RESOURCE_EXHAUSTED,
                           "profile: the stacks are larger than %zu MiB; reduce max_depth",
                           MR_PROFILE_TEXT_BYTES_MAX >> 20);
    }
    return out->failed ? mr_fail_memory(error, out->size_bytes) : MR_OK;
}

/* ---- Files ---- */

static mr_status write_gzip(const mr_text_builder *message, const char *path, mr_error *error)
{
    constexpr int gzip_window_bits = 15 + 16;
    z_stream stream = {0};
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_window_bits, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return mr_fail_memory(error, 1 << 18);
    const uLong capacity = deflateBound(&stream, message->size_bytes);
    unsigned char *bytes = malloc(capacity);
    mr_status status = MR_OK;
    if (bytes == nullptr) {
        status = mr_fail_memory(error, capacity);
    } else {
        stream.next_in = (Bytef *)message->data;
        stream.avail_in = (uInt)message->size_bytes;
        stream.next_out = bytes;
        stream.avail_out = (uInt)capacity;
        const int result = deflate(&stream, Z_FINISH);
        assert(result == Z_STREAM_END);
        (void)result;
        status = mr_file_write_all(path, bytes, stream.total_out, error);
    }
    (void)deflateEnd(&stream);
    free(bytes);
    return status;
}

mr_status mr_profile_view_write_pprof(const mr_profile_view *view, const char *path, mr_error *error)
{
    mr_text_builder message = {0}, part = {0}, list = {0};
    if (view == nullptr || path == nullptr || *path == '\0')
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_profile_view_write_pprof: the %s",
                       view == nullptr   ? "view is null"
                       : path == nullptr ? "path is null"
                                         : "path is empty");
    mr_status status = write_message(view, &message, &part, &list, error);
    if (status == MR_OK) status = write_gzip(&message, path, error);
    mr_text_deinit(&message);
    mr_text_deinit(&part);
    mr_text_deinit(&list);
    return status;
}
