/* Fuzz target: the views that tfrecord-cat prints of a record. The first byte selects the options; the rest is the
 * record. The JSON output must parse, and each feature must have as many values as its count. */
#include "tools/common/out.c"
#include "tools/common/query/patterns.c"
#include "tools/common/query/values.c"
#include "tools/common/query/view.c"
#include "tools/common/text.c"
#include "tools/tfrecord-cat/json.c"

#include <jansson.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static void need(bool holds)
{
    if (!holds) abort();
}

/* The included code refers to this function; this target reads no files. */
int walk_texts(const options *options, const text_format *format)
{
    return format->open == nullptr;
}

static void count(const view *view)
{
    for (size_t i = 0; i < view->count; i++) {
        const entry *entry = &view->entries[i];
        size_t found = 0;
        if (entry->is_list || entry->is_damaged) continue;
        values values = values_of(&entry->feature);
        value value;
        while (values_next(&values, &value)) found++;
        need(found == entry->count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    if (size_bytes == 0) return 0;
    /* A copy of exactly this size, so that a sanitizer detects reads past the end. */
    size_t size = size_bytes - 1;
    char *copy = malloc(size ? size : 1);
    need(copy != nullptr);
    memcpy(copy, bytes + 1, size);
    options options = {.is_pretty = bytes[0] & 1,
                       .is_raw = (bytes[0] & 0x0e) == 0x0e,
                       .features = bytes[0] & 0x10 ? "a,*e*,\\*" : nullptr,
                       .bytes_form = (bytes[0] >> 5) % 3};
    record_position position = {.path = "name\n\xff", .number = 7, .offset = 9, .record = {copy, size}};
    json *json = open_json(&options, nullptr);
    out out = {};
    need(json != nullptr);
    if (put_json(json, &position, &out, nullptr) == MR_OK) {
        need(!out.has_failed && out.size > 0 && out.bytes[out.size - 1] == '\n');
        json_error_t error;
        json_t *parsed = json_loadb(out.bytes, out.size, JSON_ALLOW_NUL, &error);
        /* A null byte in a key is valid JSON, but jansson rejects it. */
        need(parsed != nullptr || json_error_code(&error) == json_error_null_byte_in_key);
        json_decref(parsed);
        count(&json->view);
    }
    close_json(json);
    out_deinit(&out);
    free(copy);
    return 0;
}
