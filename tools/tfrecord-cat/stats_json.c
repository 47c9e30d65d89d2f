/* --stats --json: one object with all statistics; integers with all digits. */
#include "tfrecord-cat/stats_report.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static constexpr size_t TOP_LISTED = 20;

/* Text as is if it is UTF-8, else with escapes. */
static json_t *text_json(mr_string text)
{
    char safe[1024];
    if (text_is_utf8(text)) return json_stringn(text.data ? text.data : "", text.size_bytes);
    text_copy(safe, sizeof(safe), text, sizeof(safe));
    return json_string(safe);
}

/* Sets a member under any name. */
static int set(json_t *object, mr_string name, json_t *value)
{
    char key[1024];
    if (text_is_readable(name) && name.size_bytes < sizeof(key) && !memchr(name.data, '\0', name.size_bytes)) {
        memcpy(key, name.data, name.size_bytes);
        key[name.size_bytes] = '\0';
    } else
        text_copy(key, sizeof(key), name, sizeof(key));
    return json_object_set_new(object, key, value);
}

static int set_count(json_t *object, const char *name, uint64_t count)
{
    return json_object_set_new(object, name, json_integer((json_int_t)count));
}

static json_t *key_json(const numbers *numbers, int64_t key)
{
    return numbers->is_real ? json_real(sketch_value(key)) : json_integer(key);
}

static int set_top(json_t *object, const top *top, const numbers *numbers)
{
    top_entry entries[TOP_LISTED];
    size_t count = top_list(top, entries, TOP_LISTED);
    json_t *list = json_array();
    int bad = 0;
    for (size_t i = 0; i < count; i++) {
        json_t *row = json_object(),
               *value = numbers ? key_json(numbers, entries[i].number) : text_json(entries[i].text);
        bad |= json_object_set_new(row, "value", value) | set_count(row, "count", entries[i].count) |
               json_array_append_new(list, row);
    }
    bad |= json_object_set_new(object, "top", list) |
           json_object_set_new(object, "top_is_exact", json_boolean(top->error == 0));
    if (top->error == 0) bad |= set_count(object, "different", top->count);
    return bad;
}

static json_t *numbers_json(const numbers *numbers)
{
    static const struct rank {
        const char *name;
        double rank;
    } ranks[] = {{"0.01", 0.01}, {"0.05", 0.05}, {"0.25", 0.25}, {"0.5", 0.5},
                 {"0.75", 0.75}, {"0.95", 0.95}, {"0.99", 0.99}};
    json_t *object = json_object(), *quantiles = json_object();
    int bad = set_count(object, "count", numbers_total(numbers)) | set_count(object, "zeros", numbers->zeros);
    if (numbers->is_real)
        bad |= set_count(object, "nan", numbers->nans) | set_count(object, "infinity", numbers->infinities[1]) |
               set_count(object, "minus_infinity", numbers->infinities[0]);
    if (numbers->count > 0) {
        bad |= json_object_set_new(object, "min", key_json(numbers, numbers->least)) |
               json_object_set_new(object, "max", key_json(numbers, numbers->most)) |
               json_object_set_new(object, "mean", json_real(numbers_mean(numbers))) |
               json_object_set_new(object, "std", json_real(numbers_std(numbers)));
        for (size_t i = 0; i < sizeof(ranks) / sizeof(*ranks); i++)
            bad |= json_object_set_new(quantiles, ranks[i].name,
                                       key_json(numbers, numbers_quantile_key(numbers, ranks[i].rank)));
        bad |= json_object_set(object, "quantiles", quantiles) |
               json_object_set_new(object, "rank_error", json_real(numbers_is_exact(numbers) ? 0 : SKETCH_RANK_ERROR));
        if (!numbers->has_no_top) bad |= set_top(object, &numbers->top, numbers);
    }
    json_decref(quantiles);
    if (bad == 0) return object;
    json_decref(object);
    return nullptr;
}

static const char *format_name(int format)
{
    return format == MR_IMAGE_UNKNOWN ? "unknown" : mr_image_format_name((mr_image_format)format);
}

static json_t *counts_json(const uint64_t *counts, int count, const char *name(int))
{
    json_t *object = json_object();
    for (int i = 0; i < count; i++)
        if (counts[i] > 0 && set_count(object, name(i), counts[i]) != 0) {
            json_decref(object);
            return nullptr;
        }
    return object;
}

static const char *orientation_name(int orientation)
{
    static const char *const names[] = {"none", "1", "2", "3", "4", "5", "6", "7", "8"};
    return names[orientation];
}

static json_t *images_json(const images *images)
{
    json_t *object = json_object();
    int bad =
        set_count(object, "count", images->count) | set_count(object, "of_unknown_size", images->sizeless) |
        set_count(object, "damaged_headers", images->damaged) | set_count(object, "bytes", images->size_bytes) |
        set_count(object, "alpha", images->alpha) | set_count(object, "16_bit", images->deep) |
        set_count(object, "progressive", images->progressive) | set_count(object, "animated", images->animated) |
        set_count(object, "color_profiles", images->profiles) |
        json_object_set_new(object, "formats", counts_json(images->formats, IMAGES_FORMATS, format_name)) |
        json_object_set_new(object, "colors", counts_json(images->colors, IMAGES_COLORS, images_color_name)) |
        json_object_set_new(object, "aspect_ratios", counts_json(images->aspects, IMAGES_ASPECTS, images_aspect_name)) |
        json_object_set_new(object, "exif_orientations", counts_json(images->orientations, 9, orientation_name)) |
        json_object_set_new(object, "widths", numbers_json(&images->widths)) |
        json_object_set_new(object, "heights", numbers_json(&images->heights)) |
        json_object_set_new(object, "shorter_sides", numbers_json(&images->shorter)) |
        json_object_set_new(object, "longer_sides", numbers_json(&images->longer)) |
        json_object_set_new(object, "image_bytes", numbers_json(&images->bytes));
    if (bad == 0) return object;
    json_decref(object);
    return nullptr;
}

static json_t *texts_json(const texts *texts)
{
    json_t *object = json_object();
    int bad = json_object_set_new(object, "lengths", numbers_json(&texts->lengths)) |
              set_count(object, "empty", texts->lengths.zeros) |
              set_count(object, "longer_than_64_bytes", texts->long_count) | set_top(object, &texts->top, nullptr);
    if (bad == 0) return object;
    json_decref(object);
    return nullptr;
}

static json_t *column_json(const stats *stats, const column *column)
{
    json_t *object = json_object();
    int bad = json_object_set_new(object, "kind", json_string(stats_kind_name(column))) |
              set_count(object, "records", column->records) |
              set_count(object, "missing", stats->records - column->records) |
              set_count(object, "without_list", column->kinds[0]) | set_count(object, "values", column->values) |
              json_object_set_new(object, column->is_list ? "steps_per_record" : "values_per_record",
                                  numbers_json(&column->lengths.numbers));
    if (column->kinds[MR_FEATURE_INT64] > 0)
        bad |= json_object_set_new(object, "int64", numbers_json(&column->integers));
    if (column->kinds[MR_FEATURE_FLOAT] > 0) bad |= json_object_set_new(object, "float", numbers_json(&column->reals));
    if (column->kinds[MR_FEATURE_BYTES] > 0) bad |= json_object_set_new(object, "bytes", texts_json(&column->texts));
    if (column->images) bad |= json_object_set_new(object, "images", images_json(column->images));
    if (bad == 0) return object;
    json_decref(object);
    return nullptr;
}

static json_t *classes_json(const classes *classes)
{
    size_t count;
    balance_class *entries;
    bool has_memory = stats_classes_list(classes, &entries, &count);
    json_t *object = json_object(), *list = json_array();
    int bad = set_count(object, "records", classes->records) | set_count(object, "values", classes->counts.total) |
              json_object_set_new(object, "is_exact", json_boolean(classes->counts.error == 0)) |
              json_object_set_new(object, "classes", list) | (has_memory ? 0 : -1);
    for (size_t i = 0; i < count && bad == 0; i++) {
        json_t *row = json_object();
        if (entries[i].has_label) bad |= json_object_set_new(row, "label", json_integer(entries[i].label));
        if (entries[i].text.size_bytes > 0) bad |= json_object_set_new(row, "text", text_json(entries[i].text));
        bad |= set_count(row, "count", entries[i].count) | json_array_append_new(list, row);
    }
    free(entries);
    if (bad == 0) return object;
    json_decref(object);
    return nullptr;
}

static int set_features(json_t *object, const stats *stats, bool are_lists)
{
    json_t *features = json_object();
    int bad = 0;
    for (size_t i = 0; i < stats->count && bad == 0; i++)
        if (stats->columns[i]->is_list == are_lists)
            bad = set(features, stats->columns[i]->name, column_json(stats, stats->columns[i]));
    return bad | json_object_set_new(object, are_lists ? "feature_lists" : "features", features);
}

bool stats_json(const stats *stats, const stats_about *about, bool is_pretty)
{
    json_t *object = json_object(), *all_classes = json_object();
    int bad = set_count(object, "files", (uint64_t)about->files) |
              set_count(object, "unreadable_files", (uint64_t)about->bad_files) |
              set_count(object, "records", stats->records) | set_count(object, "damaged_places", about->lost) |
              set_count(object, "strange_records", stats->strange) |
              set_count(object, "sequence_examples", stats->sequences) | set_count(object, "bytes", stats->size_bytes) |
              json_object_set_new(object, "more_features", json_boolean(stats->has_more)) |
              json_object_set_new(object, "record_bytes", numbers_json(&stats->sizes)) |
              set_features(object, stats, false) | set_features(object, stats, true);
    for (int i = 0; i < STATS_CLASSES; i++)
        if (stats->classes[i].records > 0)
            bad |= json_object_set_new(all_classes, stats_classes_name(i), classes_json(&stats->classes[i]));
    bad |= json_object_set_new(object, "classes", all_classes);
    if (bad == 0) bad = json_dumpf(object, stdout, is_pretty ? JSON_INDENT(2) : 0);
    if (bad == 0) putchar('\n');
    json_decref(object);
    return bad == 0 || ferror(stdout);
}
