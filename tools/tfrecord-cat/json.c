/* A record as a line of JSON:
 *
 *     {"file": "a.tfrecord", "record": 0, "offset": 0, "features": {"height": {"int64": [480]}, …}}
 *
 * A SequenceExample has "context": {…}, "feature_lists": {"name": [{"int64": [1]}, …], …} instead of "features". A
 * bytes feature is {"bytes": ["text"]} if all its values are UTF-8, else {"base64": [...]}, or {"hex": [...]} with
 * --bytes hex. Floats have the fewest digits that read back as the same float; numbers that JSON cannot represent are
 * "NaN", "Infinity", "-Infinity". A record that is not an Example has "base64" instead of "features". */
#include "common/out.h"
#include "common/query/values.h"
#include "common/query/view.h"
#include "tfrecord-cat/cat.h"

#include <math.h>
#include <stdlib.h>

typedef struct json {
    const options *options;
    view view;
    out *out;
    int depth; /* number of open objects and lists, for --pretty */
} json;

/* Starts a new line with --pretty. */
static void line(json *json)
{
    if (!json->options->is_pretty) return;
    out_char(json->out, '\n');
    for (int i = 0; i < json->depth; i++) out_text(json->out, "  ");
}

static void open_bracket(json *json, char bracket)
{
    out_char(json->out, bracket);
    json->depth++;
}

static void close_bracket(json *json, char bracket, bool is_empty)
{
    json->depth--;
    if (!is_empty) line(json);
    out_char(json->out, bracket);
}

/* Separates members; before the first, only a new line. */
static void next(json *json, bool is_first)
{
    if (!is_first) out_text(json->out, json->options->is_pretty ? "," : ", ");
    line(json);
}

static void put_float(out *out, float value)
{
    if (isnan(value) || isinf(value))
        out_text(out, isnan(value) ? "\"NaN\"" : value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
    else
        out_float(out, value);
}

static bool is_all_utf8(const mr_feature_view *feature)
{
    values values = values_of(feature);
    value value;
    while (values_next(&values, &value))
        if (!text_is_utf8(value.bytes)) return false;
    return true;
}

static void put_encoded(json *json, mr_string bytes)
{
    out_char(json->out, '"');
    if (json->options->bytes_form == BYTES_HEX)
        out_hex(json->out, bytes);
    else
        out_base64(json->out, bytes);
    out_char(json->out, '"');
}

static void put_feature(json *json, const mr_feature_view *feature)
{
    static const char *const names[] = {"{", "{\"bytes\": [", "{\"float\": [", "{\"int64\": ["};
    out *out = json->out;
    bool is_text = feature->kind == MR_FEATURE_BYTES && json->options->bytes_form == BYTES_TEXT && is_all_utf8(feature);
    if (feature->kind == MR_FEATURE_NONE) {
        out_text(out, "{}");
        return;
    }
    if (feature->kind == MR_FEATURE_BYTES && !is_text)
        out_text(out, json->options->bytes_form == BYTES_HEX ? "{\"hex\": [" : "{\"base64\": [");
    else
        out_text(out, names[feature->kind]);
    values values = values_of(feature);
    value value;
    for (bool is_first = true; values_next(&values, &value); is_first = false) {
        if (!is_first) out_text(out, ", ");
        if (value.kind == MR_FEATURE_INT64)
            out_integer(out, value.integer);
        else if (value.kind == MR_FEATURE_FLOAT)
            put_float(out, value.number);
        else if (is_text)
            out_json_string(out, value.bytes, true);
        else
            put_encoded(json, value.bytes);
    }
    out_text(out, "]}");
}

static void put_steps(json *json, mr_feature_list_view list)
{
    mr_feature_view step;
    bool is_first = true;
    open_bracket(json, '[');
    for (; mr_feature_list_next(&list, &step, nullptr) == MR_OK; is_first = false) {
        next(json, is_first);
        put_feature(json, &step);
    }
    close_bracket(json, ']', is_first);
}

/* Appends the features or the feature lists as an object. */
static void put_entries(json *json, const char *name, bool are_lists)
{
    bool is_first = true;
    next(json, false);
    out_text(json->out, name);
    open_bracket(json, '{');
    for (size_t i = 0; i < json->view.count; i++) {
        const entry *entry = &json->view.entries[i];
        if (entry->is_list != are_lists || entry->is_hidden) continue;
        next(json, is_first);
        is_first = false;
        out_json_string(json->out, entry->name, text_is_utf8(entry->name));
        out_text(json->out, ": ");
        if (are_lists)
            put_steps(json, entry->list);
        else
            put_feature(json, &entry->feature);
    }
    close_bracket(json, '}', is_first);
}

static void put_record(json *json, const record_position *position)
{
    out *out = json->out;
    mr_string path = mr_string_from(text_path(position->path));
    open_bracket(json, '{');
    line(json);
    out_text(out, "\"file\": ");
    out_json_string(out, path, text_is_utf8(path));
    next(json, false);
    out_text(out, "\"record\": ");
    out_integer(out, (int64_t)position->number);
    next(json, false);
    out_text(out, "\"offset\": ");
    out_integer(out, (int64_t)position->offset);
    if (json->view.form == MR_EXAMPLE_NONE || json->view.is_damaged) {
        next(json, false);
        out_text(out, json->options->bytes_form == BYTES_HEX ? "\"hex\": " : "\"base64\": ");
        put_encoded(json, position->record);
    } else if (json->view.form == MR_EXAMPLE_SEQUENCE) {
        put_entries(json, "\"context\": ", false);
        put_entries(json, "\"feature_lists\": ", true);
    } else {
        put_entries(json, "\"features\": ", false);
    }
    close_bracket(json, '}', false);
    out_char(out, '\n');
}

static void *open_json(const options *options, const void *shared)
{
    json *json = calloc(1, sizeof(struct json));
    if (json) json->options = options;
    return json;
}

static mr_status put_json(void *state, const record_position *position, out *out, mr_error *error)
{
    json *json = state;
    json->out = out;
    MR_TRY(view_read(&json->view, json->options->features, json->options->is_raw, position->record, error));
    put_record(json, position);
    return MR_OK;
}

static void close_json(void *state)
{
    json *json = state;
    view_deinit(&json->view);
    free(json);
}

int json_run(const options *options)
{
    return walk_texts(options, &(text_format){.open = open_json, .put = put_json, .close = close_json});
}
