/* Formats a record for the pages. Its contents are untrusted: every text goes through html_string, and every amount has
 * a limit. */
#include "common/progress.h"
#include "common/query/patterns.h"
#include "common/query/values.h"
#include "common/stats/top.h"
#include "tfrecord-cat/html.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Limits for one record: */
static constexpr size_t TEXT_BYTES_MAX = 1'000; /* of one value */
static constexpr size_t VALUES_MAX = 100;       /* of one feature */
static constexpr size_t STEPS_MAX = 20;         /* of one feature list */
static constexpr size_t FEATURES_MAX = 1'000;
static constexpr size_t RECORD_BYTES_MAX = 64 << 10;
static constexpr size_t SEARCH_BYTES_MAX = 4 << 10, SEARCH_TEXT_MAX = 300;
static constexpr size_t BOXES_MAX = 300;
static constexpr size_t LABEL_BYTES_MAX = 200;

/* ---- Texts ---- */

/* The length of the UTF-8 character at the start; 0: none. */
static size_t character_length(mr_string bytes)
{
    for (size_t length = 1; length <= 4 && length <= bytes.size_bytes; length++)
        if (text_is_utf8((mr_string){bytes.data, length})) return length;
    return 0;
}

/* Appends characters up to a limit, without surrounding quotes. */
static void put_characters(out *out, mr_string text, size_t max)
{
    for (size_t i = 0, length; i < text.size_bytes; i += length) {
        unsigned char byte = (unsigned char)text.data[i];
        char escape[8];
        if (i >= max) {
            out_text(out, "…");
            return;
        }
        length = character_length((mr_string){text.data + i, text.size_bytes - i});
        bool is_separator = length == 3 && memcmp(text.data + i, "\xe2\x80", 2) == 0 &&
                            ((unsigned char)text.data[i + 2] & 0xfe) == 0xa8; /* U+2028 and U+2029 */
        if (length == 0) {
            length = 1;
            out_text(out, "\\ufffd");
        } else if (is_separator) {
            out_text(out, text.data[i + 2] & 1 ? "\\u2029" : "\\u2028");
        } else if (byte < 0x20 || byte == 0x7f || strchr("\"\\<>&'`", byte)) {
            snprintf(escape, sizeof(escape), "\\u%04x", byte);
            out_text(out, escape);
        } else {
            out_bytes(out, text.data + i, length);
        }
    }
}

void html_string(out *out, mr_string text, size_t max)
{
    out_char(out, '"');
    put_characters(out, text, max);
    out_char(out, '"');
}

/* «JPEG 640×480, 83.1 KiB», or the number of bytes and the first of them. */
static void put_bytes(out *out, mr_string bytes)
{
    char size[PROGRESS_TEXT_SIZE], text[96];
    mr_image_info info = {0};
    progress_size_text(bytes.size_bytes, size);
    if (mr_image_probe(bytes.data, bytes.size_bytes, &info, nullptr) == MR_OK) {
        snprintf(text, sizeof(text), "«%s %d×%d, %s»", mr_image_format_name(info.format), info.width, info.height,
                 size);
        out_text(out, text);
        return;
    }
    snprintf(text, sizeof(text), "«%s: ", size);
    out_text(out, text);
    out_hex(out, (mr_string){bytes.data, bytes.size_bytes < 24 ? bytes.size_bytes : 24});
    out_text(out, bytes.size_bytes > 24 ? "…»" : "»");
}

/* Whether bytes are text, possibly with a few bytes of another encoding. */
static bool is_text(mr_string bytes)
{
    static constexpr size_t LOOKED_AT = 400;
    size_t odd = 0, end = bytes.size_bytes < LOOKED_AT ? bytes.size_bytes : LOOKED_AT;
    if (text_is_utf8(bytes)) return true;
    for (size_t i = 0, length; i < end; i += length) {
        length = character_length((mr_string){bytes.data + i, bytes.size_bytes - i});
        bool is_odd = length == 0 || !text_is_readable((mr_string){bytes.data + i, length});
        odd += is_odd;
        if (length == 0) length = 1;
        if (bytes.data[i] == '\0') return false;
    }
    return 8 * odd <= end && image_select_format(bytes) == MR_IMAGE_UNKNOWN;
}

/* ---- Features ---- */

static void put_value(out *out, const value *value)
{
    out_char(out, '"');
    if (value->kind == MR_FEATURE_INT64)
        out_integer(out, value->integer);
    else if (value->kind == MR_FEATURE_FLOAT)
        out_float(out, value->number);
    else if (is_text(value->bytes))
        put_characters(out, value->bytes, TEXT_BYTES_MAX);
    else
        put_bytes(out, value->bytes);
    out_char(out, '"');
}

/* Appends values, each but the first preceded by a comma, up to a limit; returns their number. */
static size_t put_values(out *out, const mr_feature_view *feature, size_t limit, bool *is_first)
{
    values values = values_of(feature);
    value value;
    size_t count = 0;
    for (; count < VALUES_MAX && out->size < limit && values_next(&values, &value); count++) {
        if (!*is_first) out_char(out, ',');
        *is_first = false;
        put_value(out, &value);
    }
    return count;
}

/* ["name","int64",count,["1","2"]]; for a feature list the values of its first steps, with the number of steps as
 * count. */
static void put_entry(out *out, const entry *entry, size_t limit)
{
    static const char *const kinds[] = {"none", "bytes", "float", "int64"};
    char text[64];
    bool is_first = true;
    out_char(out, '[');
    html_string(out, entry->name, LABEL_BYTES_MAX);
    snprintf(text, sizeof(text), ",\"%s\",%zu,[", entry->is_list ? "steps" : kinds[entry->feature.kind], entry->count);
    out_text(out, text);
    if (!entry->is_list) {
        (void)put_values(out, &entry->feature, limit, &is_first);
    } else {
        mr_feature_list_view list = entry->list;
        mr_feature_view step;
        for (size_t i = 0; i < STEPS_MAX && mr_feature_list_next(&list, &step, nullptr) == MR_OK; i++)
            (void)put_values(out, &step, limit, &is_first);
    }
    out_text(out, "]]");
}

static void put_features(out *out, const options *options, const view *view, size_t limit)
{
    size_t put = 0, left = 0;
    out_text(out, ",\"x\":[");
    for (size_t i = 0; i < view->count; i++) {
        const entry *entry = &view->entries[i];
        if (entry->is_hidden || !patterns_select(options->features, entry->name)) continue;
        if (put == FEATURES_MAX || out->size > limit) {
            left++;
            continue;
        }
        if (put++ > 0) out_text(out, ",\n");
        put_entry(out, entry, limit);
    }
    out_char(out, ']');
    if (left == 0) return;
    out_text(out, ",\"left\":");
    out_integer(out, (int64_t)left);
}

/* ---- Boxes ---- */

/* Reads the floats of a feature, at most BOXES_MAX × 4; returns their number. */
static size_t floats_of(const view *view, const char *name, float *numbers, size_t max)
{
    const entry *entry = image_select_entry(view, name);
    if (!entry || entry->is_list || entry->feature.kind != MR_FEATURE_FLOAT) return 0;
    values values = values_of(&entry->feature);
    value value;
    size_t count = 0;
    for (; count < max && values_next(&values, &value); count++) numbers[count] = value.number;
    return count;
}

/* Reads boxes as xmin, ymin, xmax, ymax; returns their number. */
static size_t boxes_of(const view *view, float boxes[BOXES_MAX][4])
{
    static const char *const names[] = {"image/object/bbox/xmin", "image/object/bbox/ymin", "image/object/bbox/xmax",
                                        "image/object/bbox/ymax"};
    float numbers[4 * BOXES_MAX];
    size_t count = BOXES_MAX;
    for (size_t i = 0; i < 4; i++) {
        size_t have = floats_of(view, names[i], numbers, BOXES_MAX);
        count = have < count ? have : count;
        for (size_t j = 0; j < count; j++) boxes[j][i] = numbers[j];
    }
    if (count > 0) return count;
    /* tensorflow_datasets: ymin, xmin, ymax, xmax. */
    count = floats_of(view, "objects/bbox", numbers, 4 * BOXES_MAX) / 4;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < 4; j++) boxes[i][j] = numbers[4 * i + (j ^ 1)];
    return count;
}

/* Iterates over the classes of boxes. */
typedef struct box_classes {
    values values;
    const tfds_feature *meaning; /* null: numbers have no names */
    char digits[24];
} box_classes;

static box_classes box_classes_of(const html_row *row)
{
    static const char *const names[] = {"image/object/class/text", "image/object/class/label", "objects/label"};
    const entry *entry = nullptr;
    for (size_t i = 0; i < sizeof names / sizeof *names && !entry; i++) entry = image_select_entry(row->view, names[i]);
    if (!entry || entry->is_list) return (box_classes){};
    return (box_classes){.values = values_of(&entry->feature), .meaning = tfds_find(row->tfds, entry->name)};
}

/* The next class, empty when there is none; valid until the next call. */
static mr_string next_box_class(box_classes *classes)
{
    value value;
    if (!values_next(&classes->values, &value) || value.kind == MR_FEATURE_FLOAT) return MR_STR("");
    if (value.kind == MR_FEATURE_BYTES) return value.bytes;
    const char *name = tfds_label(classes->meaning, value.integer);
    if (name) return mr_string_from(name);
    snprintf(classes->digits, sizeof(classes->digits), "%" PRId64, value.integer);
    return mr_string_from(classes->digits);
}

void html_box_classes(out *out, const html_row *row)
{
    float(*boxes)[4] = malloc(BOXES_MAX * sizeof(*boxes));
    size_t count = boxes ? boxes_of(row->view, boxes) : 0;
    box_classes classes = box_classes_of(row);
    out->has_failed |= !boxes;
    for (size_t i = 0; i < count; i++) {
        mr_string text = next_box_class(&classes);
        size_t size = text.size_bytes < TOP_TEXT_MAX ? text.size_bytes : TOP_TEXT_MAX;
        if (size == 0) continue;
        out_char(out, (char)size);
        out_bytes(out, text.data, size);
    }
    free(boxes);
}

static void put_boxes(out *out, const html_row *row)
{
    float(*boxes)[4] = malloc(BOXES_MAX * sizeof(*boxes));
    size_t count = boxes ? boxes_of(row->view, boxes) : 0;
    box_classes classes = box_classes_of(row);
    const mr_image_info *info = &row->thumbnail->info;
    out->has_failed |= !boxes;
    if (count > 0) out_text(out, ",\"b\":[");
    for (size_t i = 0; i < count; i++) {
        /* Usually fractions of the image, sometimes pixels. */
        bool is_pixels = boxes[i][2] > 2 || boxes[i][3] > 2;
        out_text(out, i > 0 ? ",[" : "[");
        for (int j = 0; j < 4; j++) {
            int32_t side = j % 2 ? info->height : info->width;
            float position = is_pixels && side > 0 ? boxes[i][j] / (float)side : boxes[i][j];
            out_float(out, isfinite(position) ? fminf(fmaxf(position, -1), 2) : 0);
            out_char(out, ',');
        }
        html_string(out, next_box_class(&classes), TOP_TEXT_MAX);
        out_char(out, ']');
    }
    if (count > 0) out_char(out, ']');
    free(boxes);
}

/* ---- Records ---- */

static void put_image(out *out, const bytes_value *image, const thumbnail *thumbnail, const char *thumbnail_path)
{
    char text[160];
    const mr_image_info *info = &thumbnail->info;
    out_text(out, ",\"p\":{");
    if (thumbnail_path) {
        snprintf(text, sizeof(text), "\"t\":\"%s\",\"w\":%d,\"h\":%d,", thumbnail_path, (int)thumbnail->width,
                 (int)thumbnail->height);
        out_text(out, text);
    }
    char size[PROGRESS_TEXT_SIZE];
    snprintf(text, sizeof(text), "\"W\":%d,\"H\":%d,\"o\":%d,\"k\":\"%s\",\"s\":\"%s\"", info->width, info->height,
             info->orientation, info->format == MR_IMAGE_UNKNOWN ? "" : mr_image_format_name(info->format),
             progress_size_text(image->bytes.size_bytes, size));
    out_text(out, text);
    if (thumbnail->fault.status != MR_OK) {
        out_text(out, ",\"e\":");
        html_string(out, mr_string_from(thumbnail->fault.message), TEXT_BYTES_MAX);
    }
    out_char(out, '}');
}

void html_record(out *out, const html_row *row)
{
    const caption *caption = row->caption;
    size_t limit = out->size + RECORD_BYTES_MAX;
    out_text(out, "{\"f\":");
    out_integer(out, row->file);
    out_text(out, ",\"r\":");
    out_integer(out, (int64_t)row->position->number);
    out_text(out, ",\"o\":");
    out_integer(out, (int64_t)row->position->offset);
    if (caption->text.size_bytes > 0) {
        out_text(out, ",\"l\":");
        html_string(out, caption->text, LABEL_BYTES_MAX);
    }
    if (caption->has_number) {
        out_text(out, ",\"c\":");
        out_char(out, '"');
        out_integer(out, caption->number);
        out_char(out, '"');
    }
    if (caption->filename.size_bytes > 0) {
        out_text(out, ",\"n\":");
        html_string(out, caption->filename, TEXT_BYTES_MAX);
    }
    if (row->image) put_image(out, row->image, row->thumbnail, row->thumbnail_path);
    put_boxes(out, row);
    put_features(out, row->options, row->view, limit);
    if (row->view->form == MR_EXAMPLE_NONE) {
        out_text(out, ",\"raw\":\"");
        put_bytes(out, row->position->record);
        out_char(out, '"');
    }
}

typedef struct texts {
    out *out;
    size_t limit;
    bool is_next;
} texts;

/* Appends "name=text", one per line. */
static bool put_search_text(void *context, const bytes_value *value)
{
    texts *texts = context;
    if (value->bytes.size_bytes == 0 || !is_text(value->bytes)) return true;
    if (texts->out->size > texts->limit) return false;
    if (texts->is_next) out_text(texts->out, "\\n");
    texts->is_next = true;
    put_characters(texts->out, value->entry->name, LABEL_BYTES_MAX);
    out_char(texts->out, '=');
    put_characters(texts->out, value->bytes, SEARCH_TEXT_MAX);
    return true;
}

/* Appends every distinct class of boxes, one per line. */
static void put_search_boxes(out *out, const html_row *row)
{
    struct out all = {};
    html_box_classes(&all, row);
    bool is_next = false;
    for (size_t i = 0; i < all.size; i += 1 + (size_t)all.bytes[i]) {
        mr_string class = {all.bytes + i + 1, (size_t)all.bytes[i]};
        bool was_put = false;
        for (size_t j = 0; j < i && !was_put; j += 1 + (size_t)all.bytes[j])
            was_put = mr_string_equal(class, (mr_string){all.bytes + j + 1, (size_t)all.bytes[j]});
        if (was_put) continue;
        if (is_next) out_text(out, "\\n");
        is_next = true;
        put_characters(out, class, TOP_TEXT_MAX);
    }
    out->has_failed |= all.has_failed;
    out_deinit(&all);
}

void html_search(out *out, const html_row *row)
{
    const caption *caption = row->caption;
    out_char(out, '[');
    out_integer(out, (int64_t)row->position->number);
    out_char(out, ',');
    html_string(out, caption->text, LABEL_BYTES_MAX);
    out_text(out, ",\"");
    if (caption->has_number) out_integer(out, caption->number);
    out_text(out, "\",");
    html_string(out, caption->filename, TEXT_BYTES_MAX);
    out_text(out, ",\"");
    texts texts = {.out = out, .limit = out->size + SEARCH_BYTES_MAX};
    image_select_values(row->view, put_search_text, &texts);
    out_text(out, "\",\"");
    put_search_boxes(out, row);
    out_text(out, "\"]");
}
