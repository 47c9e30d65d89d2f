/* A record as a line of JSON:
 *
 *     {"file": "a.tfrecord", "record": 0, "offset": 0, "features": {"height": {"int64": [480]}, …}}
 *
 * A bytes feature is {"bytes": ["text"]} when all its values are UTF-8, else {"base64": [...]}. Floats have the nine digits
 * that tell them apart; what JSON has no number for is "NaN", "Infinity", "-Infinity". A record that is no Example has
 * "base64" instead of "features". */
#include "tools/tfrecord-cat/cat.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Whether bytes are UTF-8, control characters included. */
static bool is_utf8(mr_string bytes)
{
    const unsigned char *b = (const unsigned char *)bytes.data;
    for (size_t i = 0; i < bytes.size_bytes;) {
        unsigned lead = b[i];
        size_t length = lead < 0x80                   ? 1
                        : lead >= 0xc2 && lead < 0xe0 ? 2
                        : (lead & 0xf0) == 0xe0       ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
        if (length == 0 || length > bytes.size_bytes - i) return false;
        for (size_t j = 1; j < length; j++)
            if ((b[i + j] & 0xc0) != 0x80) return false;
        if (length > 2) {
            unsigned second = b[i + 1];
            if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second >= 0xa0) ||
                (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second >= 0x90))
                return false;
        }
        i += length;
    }
    return true;
}

/* Invalid UTF-8, which only names can be here, becomes U+FFFD byte by byte. */
static void print_string(mr_string bytes)
{
    bool is_good = is_utf8(bytes);
    putchar('"');
    for (size_t i = 0; i < bytes.size_bytes; i++) {
        unsigned char byte = (unsigned char)bytes.data[i];
        if (byte == '"' || byte == '\\')
            printf("\\%c", byte);
        else if (byte == '\n')
            fputs("\\n", stdout);
        else if (byte == '\t')
            fputs("\\t", stdout);
        else if (byte < 0x20 || byte == 0x7f)
            printf("\\u%04x", byte);
        else if (byte >= 0x80 && !is_good)
            fputs("\\ufffd", stdout);
        else
            putchar(byte);
    }
    putchar('"');
}

static void print_base64(mr_string bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *b = (const unsigned char *)bytes.data;
    putchar('"');
    for (size_t i = 0; i < bytes.size_bytes; i += 3) {
        size_t left = bytes.size_bytes - i;
        uint32_t word = (uint32_t)b[i] << 16 | (left > 1 ? (uint32_t)b[i + 1] << 8 : 0) | (left > 2 ? b[i + 2] : 0);
        char out[4] = {digits[word >> 18], digits[word >> 12 & 63], left > 1 ? digits[word >> 6 & 63] : '=',
                       left > 2 ? digits[word & 63] : '='};
        fwrite(out, 1, 4, stdout);
    }
    putchar('"');
}

static void print_float(float value)
{
    if (isnan(value))
        fputs("\"NaN\"", stdout);
    else if (isinf(value))
        fputs(value < 0 ? "\"-Infinity\"" : "\"Infinity\"", stdout);
    else
        printf("%.9g", (double)value);
}

static void print_values(const mr_feature_view *feature, size_t count)
{
    void *values = calloc(count + 1, sizeof(mr_string));
    if (!values) {
        printf("null");
        return;
    }
    bool is_text = true;
    mr_status status = MR_OK;
    if (feature->kind == MR_FEATURE_INT64) status = mr_feature_int64s(feature, values, count, nullptr);
    if (feature->kind == MR_FEATURE_FLOAT) status = mr_feature_floats(feature, values, count, nullptr);
    if (feature->kind == MR_FEATURE_BYTES) {
        status = mr_feature_bytes(feature, values, count, nullptr);
        for (size_t i = 0; i < count; i++) is_text = is_text && is_utf8(((mr_string *)values)[i]);
    }
    if (status != MR_OK) count = 0;
    fputs(feature->kind == MR_FEATURE_INT64   ? "{\"int64\": ["
          : feature->kind == MR_FEATURE_FLOAT ? "{\"float\": ["
          : is_text                           ? "{\"bytes\": ["
                                              : "{\"base64\": [",
          stdout);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) fputs(", ", stdout);
        if (feature->kind == MR_FEATURE_INT64)
            printf("%" PRId64, ((int64_t *)values)[i]);
        else if (feature->kind == MR_FEATURE_FLOAT)
            print_float(((float *)values)[i]);
        else if (is_text)
            print_string(((mr_string *)values)[i]);
        else
            print_base64(((mr_string *)values)[i]);
    }
    fputs("]}", stdout);
    free(values);
}

static bool is_example(mr_string record)
{
    mr_example_walk walk = {.record = record};
    mr_feature_view feature;
    mr_status status;
    size_t count;
    while ((status = mr_example_next_feature(&walk, &feature, nullptr)) == MR_OK)
        if (mr_feature_count(&feature, &count, nullptr) != MR_OK) return false;
    return status == MR_OUT_OF_RANGE;
}

/* Of features that are there twice, the last is meant: a later one of the same name hides this. */
static bool is_hidden(mr_example_walk rest, mr_string name)
{
    mr_feature_view later;
    while (mr_example_next_feature(&rest, &later, nullptr) == MR_OK)
        if (mr_string_equal(later.name, name)) return true;
    return false;
}

void json_record(const place *place, bool is_raw)
{
    fputs("{\"file\": ", stdout);
    print_string(mr_string_from(text_path(place->path)));
    printf(", \"record\": %" PRIu64 ", \"offset\": %" PRIu64, place->number, place->offset);
    if (is_raw || !is_example(place->record)) {
        fputs(", \"base64\": ", stdout);
        print_base64(place->record);
        fputs("}\n", stdout);
        return;
    }
    fputs(", \"features\": {", stdout);
    mr_example_walk walk = {.record = place->record};
    mr_feature_view feature;
    bool is_first = true;
    while (mr_example_next_feature(&walk, &feature, nullptr) == MR_OK) {
        size_t count;
        if (is_hidden(walk, feature.name) || mr_feature_count(&feature, &count, nullptr) != MR_OK) continue;
        if (!is_first) fputs(", ", stdout);
        is_first = false;
        print_string(feature.name);
        fputs(": ", stdout);
        if (feature.kind == MR_FEATURE_NONE)
            fputs("{}", stdout);
        else
            print_values(&feature, count);
    }
    fputs("}}\n", stdout);
}
