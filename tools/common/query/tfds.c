/* Metadata of tensorflow_datasets. features.json is a protobuf message as JSON: a feature is {"pythonClassName": …,
 * KIND: {…}}, 64-bit numbers are strings. Files are read completely, so their size is limited, and so is the depth of
 * nested features. */
#include "common/query/tfds.h"

#include "common/file.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static constexpr size_t FILE_BYTES_MAX = (size_t)8 << 20;
static constexpr size_t FEATURES_MAX = 10'000;
static constexpr int DEPTH_MAX = 30;

/* jansson reports lack of memory as a syntax error, so its allocations are monitored. */
static bool has_json_failed;

static void *allocate_json(size_t size)
{
    void *bytes = malloc(size);
    has_json_failed |= !bytes;
    return bytes;
}

/* State of reading a directory. If memory has run out, nothing of it is used. */
typedef struct reading {
    tfds *tfds;
    bool is_out_of_memory;
    void (*report)(const mr_error *error);
    bool has_fault; /* reported */
} reading;

static void report(reading *reading, const mr_error *error)
{
    reading->report(error);
    reading->has_fault = true;
}

/* Records a failed allocation. */
static void *got(reading *reading, void *bytes)
{
    reading->is_out_of_memory |= !bytes;
    return bytes;
}

/* The length of the directory part of a path, including its slash. */
static size_t directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash + 1 - path) : 0;
}

/* Reads a file from the directory of features.json; null if it does not exist, cannot be read (reported), or memory has
 * run out. */
static char *read_text(reading *reading, const char *name, size_t *size)
{
    char *path = nullptr, *text = nullptr;
    file_stamp stamp = {0};
    mr_error error = {0};
    if (asprintf(&path, "%s%s", reading->tfds->directory, name) < 0) path = nullptr;
    if (!got(reading, path)) return nullptr;
    mr_status status = file_stamp_of(path, &stamp, &error);
    if (status == MR_OK) status = file_read_all(path, FILE_BYTES_MAX, &text, size, &error);
    if (status == MR_RESOURCE_EXHAUSTED && stamp.size_bytes <= FILE_BYTES_MAX)
        reading->is_out_of_memory = true;
    else if (status != MR_OK && status != MR_NOT_FOUND)
        report(reading, &error);
    free(path);
    return status == MR_OK ? text : nullptr;
}

/* Reads a JSON file; null as read_text, and if it is invalid (reported). */
static json_t *read_json(reading *reading, const char *name)
{
    size_t size = 0;
    mr_error error = {0};
    json_error_t fault = {0};
    char *text = read_text(reading, name, &size);
    if (!text) return nullptr;
    json_t *json = json_loadb(text, size, 0, &fault);
    free(text);
    if (json) return json;
    reading->is_out_of_memory |= has_json_failed;
    if (has_json_failed) return nullptr;
    (void)mr_fail(&error, MR_INVALID_ARGUMENT, "%s%s: line %d: %s", reading->tfds->directory, name, fault.line,
                  fault.text);
    report(reading, &error);
    return nullptr;
}

/* A number, which may be written as a string. */
static int64_t number_of(const json_t *json, int64_t default_value)
{
    if (json_is_integer(json)) return json_integer_value(json);
    return json_is_string(json) ? strtoll(json_string_value(json), nullptr, 10) : default_value;
}

static const char *text_of(const json_t *json)
{
    return json_is_string(json) ? json_string_value(json) : "";
}

/* ---- Features ---- */

/* "28 × 28 × 1"; "" for a scalar. */
static void shape_text(const json_t *shape, char *text, size_t size)
{
    const json_t *dims = json_object_get(shape, "dimensions"), *dim;
    size_t i, used = 0;
    text[0] = '\0';
    json_array_foreach(dims, i, dim)
    {
        int64_t length = number_of(dim, -1);
        int wrote = length < 0 ? snprintf(text + used, size - used, "%s?", i ? " × " : "")
                               : snprintf(text + used, size - used, "%s%" PRId64, i ? " × " : "", length);
        if (wrote < 0 || (size_t)wrote >= size - used) return;
        used += (size_t)wrote;
    }
}

/* The last component of "tensorflow_datasets.core.features.text_feature.Text". */
static const char *class_of(const json_t *feature)
{
    const char *name = text_of(json_object_get(feature, "pythonClassName")), *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

static void read_labels(reading *reading, const char *label_name, tfds_feature *feature)
{
    char *name = nullptr;
    size_t size = 0, count = 0;
    if (asprintf(&name, "%s.labels.txt", label_name) < 0) name = nullptr;
    if (!got(reading, name)) return;
    feature->labels_text = read_text(reading, name, &size);
    free(name);
    if (!feature->labels_text) return;
    for (size_t i = 0; i < size; i++) count += feature->labels_text[i] == '\n';
    feature->labels = got(reading, calloc(count + 1, sizeof(char *)));
    if (!feature->labels) return;
    char *end = feature->labels_text + size;
    for (char *at = feature->labels_text; at < end;) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        feature->labels[feature->label_count++] = at;
        if (!stop) break;
        *stop = '\0';
        at = stop + 1;
    }
}

/* Adds one feature that is neither a dict nor a sequence. */
static void add_leaf(reading *reading, const json_t *json, const char *name, const char *label_name, const char *around)
{
    static const char *const kinds[] = {"image", "video", "audio", "boundingBox", "tensor", "labeledImage", "text"};
    tfds *tfds = reading->tfds;
    if (tfds->feature_count == FEATURES_MAX) return;
    tfds_feature *grown = got(reading, reallocarray(tfds->features, tfds->feature_count + 1, sizeof(tfds_feature)));
    if (!grown) return;
    tfds->features = grown;
    tfds_feature feature = {.name = got(reading, strdup(name)), .class_count = -1};
    const json_t *label = json_object_get(json, "classLabel"), *content = nullptr;
    char shape[120] = "", words[300];
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !content; i++) content = json_object_get(json, kinds[i]);
    shape_text(json_object_get(content, "shape"), shape, sizeof(shape));
    const char *dtype = text_of(json_object_get(content, "dtype"));
    const char *format = text_of(json_object_get(content, "encodingFormat"));
    if (label) {
        feature.class_count = number_of(json_object_get(label, "numClasses"), 0);
        read_labels(reading, label_name, &feature);
        snprintf(words, sizeof(words), "%sClassLabel of %" PRId64, around, feature.class_count);
    } else {
        snprintf(words, sizeof(words), "%s%s%s%s%s%s%s%s", around, class_of(json), *format ? " " : "", format,
                 *shape ? " " : "", shape, *dtype ? " of " : "", dtype);
    }
    feature.meaning = got(reading, strdup(words));
    tfds->features[tfds->feature_count++] = feature;
}

static void add_feature(reading *reading, const json_t *json, const char *name, const char *label_name,
                        const char *around, int depth);

/* A member: names are joined as in tensorflow_datasets, with "/" in records and "-" in label files. */
static void add_member(reading *reading, const json_t *json, const char *name, const char *label_name, const char *key,
                       const char *around, int depth)
{
    char *joined = nullptr, *label = nullptr;
    if (asprintf(&joined, "%s%s%s", name, *name ? "/" : "", key) < 0) joined = nullptr;
    if (asprintf(&label, "%s%s%s", label_name, *label_name ? "-" : "", key) < 0) label = nullptr;
    if (got(reading, joined) && got(reading, label)) add_feature(reading, json, joined, label, around, depth + 1);
    free(joined);
    free(label);
}

static void add_feature(reading *reading, const json_t *json, const char *name, const char *label_name,
                        const char *around, int depth)
{
    json_t *members = json_object_get(json_object_get(json, "featuresDict"), "features"), *member;
    const json_t *sequence = json_object_get(json, "sequence"), *language;
    const json_t *languages = json_object_get(json_object_get(json, "translation"), "languages");
    const char *key;
    size_t i;
    if (depth > DEPTH_MAX || !json_is_object(json)) return;
    if (members) {
        json_object_foreach(members, key, member) add_member(reading, member, name, label_name, key, around, depth);
    } else if (sequence) {
        char words[60];
        snprintf(words, sizeof(words), "%.40ssequence of ", around);
        add_feature(reading, json_object_get(sequence, "feature"), name, label_name, words, depth + 1);
    } else if (languages) {
        json_t *none = got(reading, json_object());
        json_array_foreach(languages, i, language)
            add_member(reading, none, name, label_name, text_of(language), "Text of a translation", depth);
        json_decref(none);
    } else {
        add_leaf(reading, json, name, label_name, around);
    }
}

/* ---- dataset_info.json ---- */

static char *copy_of(reading *reading, const json_t *json)
{
    return *text_of(json) ? got(reading, strdup(text_of(json))) : nullptr;
}

static void read_splits(reading *reading, const json_t *splits)
{
    tfds *tfds = reading->tfds;
    const json_t *split, *length;
    size_t i, j;
    tfds->splits = got(reading, calloc(json_array_size(splits) + 1, sizeof(tfds_split)));
    if (!tfds->splits) return;
    json_array_foreach(splits, i, split)
    {
        const json_t *lengths = json_object_get(split, "shardLengths");
        tfds_split *made = &tfds->splits[tfds->split_count];
        made->name = got(reading, strdup(text_of(json_object_get(split, "name"))));
        if (!made->name) return;
        made->size_bytes = (uint64_t)number_of(json_object_get(split, "numBytes"), 0);
        made->shard_count = json_array_size(lengths);
        json_array_foreach(lengths, j, length) made->records += (uint64_t)number_of(length, 0);
        tfds->split_count++;
    }
}

static void read_info(reading *reading)
{
    tfds *tfds = reading->tfds;
    json_t *json = read_json(reading, "dataset_info.json");
    if (!json) return;
    if (asprintf(&tfds->title, "%s %s", text_of(json_object_get(json, "name")),
                 text_of(json_object_get(json, "version"))) < 0)
        tfds->title = nullptr;
    (void)got(reading, tfds->title);
    tfds->description = copy_of(reading, json_object_get(json, "description"));
    tfds->license = copy_of(reading, json_object_get(json_object_get(json, "redistributionInfo"), "license"));
    read_splits(reading, json_object_get(json, "splits"));
    json_decref(json);
}

/* ---- Directories ---- */

static void free_tfds(tfds *tfds)
{
    if (!tfds) return;
    for (size_t i = 0; i < tfds->feature_count; i++) {
        free(tfds->features[i].name);
        free(tfds->features[i].meaning);
        free(tfds->features[i].labels_text);
        free(tfds->features[i].labels);
    }
    for (size_t i = 0; i < tfds->split_count; i++) free(tfds->splits[i].name);
    free(tfds->features);
    free(tfds->splits);
    free(tfds->title);
    free(tfds->description);
    free(tfds->license);
    free(tfds->directory);
    free(tfds);
}

/* Opens the directory that contains path; *made is null if it is not one of tensorflow_datasets. */
static mr_status open_directory(const char *path, tfds **made, void (*report)(const mr_error *error), bool *has_fault,
                                mr_error *error)
{
    reading reading = {.tfds = calloc(1, sizeof(tfds)), .report = report};
    json_t *json = nullptr;
    *made = nullptr;
    json_set_alloc_funcs(allocate_json, free);
    if (got(&reading, reading.tfds)) reading.tfds->directory = got(&reading, strndup(path, directory_length(path)));
    if (!reading.is_out_of_memory) json = read_json(&reading, "features.json");
    if (json) {
        add_feature(&reading, json, "", "", "", 0);
        read_info(&reading);
    }
    if (json && !reading.is_out_of_memory)
        *made = reading.tfds;
    else
        free_tfds(reading.tfds);
    json_decref(json);
    *has_fault |= reading.has_fault;
    if (!reading.is_out_of_memory) return MR_OK;
    return mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: no memory for the metadata of its directory", path);
}

static bool is_of(const tfds *tfds, const char *path)
{
    size_t size = directory_length(path);
    return strlen(tfds->directory) == size && memcmp(tfds->directory, path, size) == 0;
}

mr_status tfds_set_open(tfds_set *set, char *const *paths, int32_t count, void (*report)(const mr_error *error),
                        mr_error *error)
{
    const char *before = nullptr;
    *set = (tfds_set){};
    for (int32_t i = 0; i < count; i++) {
        const char *path = paths[i];
        size_t size = directory_length(path);
        bool is_known = before && directory_length(before) == size && memcmp(before, path, size) == 0;
        if (is_known || strcmp(path, "-") == 0 || tfds_set_find(set, path)) continue;
        before = path;
        tfds *made;
        MR_TRY(open_directory(path, &made, report, &set->has_fault, error));
        if (!made) continue;
        tfds **grown = reallocarray(set->items, set->count + 1, sizeof(*grown));
        if (!grown) {
            free_tfds(made);
            return mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: no memory for the metadata of its directory", path);
        }
        set->items = grown;
        set->items[set->count++] = made;
    }
    return MR_OK;
}

void tfds_set_free(tfds_set *set)
{
    for (size_t i = 0; i < set->count; i++) free_tfds(set->items[i]);
    free(set->items);
    *set = (tfds_set){};
}

const tfds *tfds_set_find(const tfds_set *set, const char *path)
{
    for (size_t i = 0; i < set->count; i++)
        if (is_of(set->items[i], path)) return set->items[i];
    return nullptr;
}
