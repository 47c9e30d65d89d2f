/* features.json is a message of tensorflow_datasets as JSON: a feature is {"pythonClassName": …, KIND: {…}}, 64-bit numbers
 * are strings. Files are read whole, so they are bounded, and so is the depth of features in features. */
#include "tools/tfrecord-cat/tfds.h"

#include "records/file.h"
#include "tools/tfrecord-cat/cat.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static constexpr size_t FILE_BYTES_MAX = (size_t)8 << 20;
static constexpr size_t FEATURES_MAX = 10'000;
static constexpr int DEPTH_MAX = 30;

/* The folder of a path, as it is put before a name: "" or with its slash. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strndup(path, slash ? (size_t)(slash + 1 - path) : 0);
}

static char *read_text(const char *folder, const char *name, size_t *size, mr_error *error)
{
    char *path = nullptr, *text = nullptr;
    if (asprintf(&path, "%s%s", folder, name) < 0) return nullptr;
    if (mr_file_read_whole(path, FILE_BYTES_MAX, &text, size, error) != MR_OK) text = nullptr;
    free(path);
    return text;
}

/* A file of JSON; null when there is none, or it is none, which is told. */
static json_t *read_json(const char *folder, const char *name)
{
    size_t size = 0;
    mr_error error = {0};
    json_error_t place;
    char *text = read_text(folder, name, &size, &error);
    if (!text) {
        if (error.status != MR_OK && error.status != MR_NOT_FOUND) (void)complain(&error);
        return nullptr;
    }
    json_t *json = json_loadb(text, size, 0, &place);
    free(text);
    if (json) return json;
    (void)mr_fail(&error, MR_INVALID_ARGUMENT, "%s%s: line %d: %s", folder, name, place.line, place.text);
    (void)complain(&error);
    return nullptr;
}

/* A number, which may be written as a string. */
static int64_t number_of(const json_t *json, int64_t fallback)
{
    if (json_is_integer(json)) return json_integer_value(json);
    return json_is_string(json) ? strtoll(json_string_value(json), nullptr, 10) : fallback;
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

/* The last part of "tensorflow_datasets.core.features.text_feature.Text". */
static const char *class_of(const json_t *feature)
{
    const char *name = text_of(json_object_get(feature, "pythonClassName")), *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

static void read_labels(const char *folder, const char *label_name, tfds_feature *feature)
{
    char *name = nullptr;
    size_t size = 0, count = 0;
    if (asprintf(&name, "%s.labels.txt", label_name) < 0) return;
    feature->labels_text = read_text(folder, name, &size, nullptr);
    free(name);
    if (!feature->labels_text) return;
    for (size_t i = 0; i < size; i++) count += feature->labels_text[i] == '\n';
    feature->labels = calloc(count + 1, sizeof(char *));
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

/* Adds one feature that is no dict and no sequence. */
static void add_leaf(tfds *tfds, const json_t *json, const char *name, const char *label_name, const char *around)
{
    static const char *const kinds[] = {"image", "video", "audio", "boundingBox", "tensor", "labeledImage", "text"};
    tfds_feature *grown = tfds->feature_count < FEATURES_MAX
                              ? reallocarray(tfds->features, tfds->feature_count + 1, sizeof(tfds_feature))
                              : nullptr;
    if (!grown) return;
    tfds->features = grown;
    tfds_feature feature = {.name = strdup(name), .class_count = -1};
    const json_t *label = json_object_get(json, "classLabel"), *content = nullptr;
    char shape[120] = "", words[300];
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !content; i++) content = json_object_get(json, kinds[i]);
    shape_text(json_object_get(content, "shape"), shape, sizeof(shape));
    const char *dtype = text_of(json_object_get(content, "dtype"));
    const char *format = text_of(json_object_get(content, "encodingFormat"));
    if (label) {
        feature.class_count = number_of(json_object_get(label, "numClasses"), 0);
        read_labels(tfds->folder, label_name, &feature);
        snprintf(words, sizeof(words), "%sClassLabel of %" PRId64, around, feature.class_count);
    } else {
        snprintf(words, sizeof(words), "%s%s%s%s%s%s%s%s", around, class_of(json), *format ? " " : "", format,
                 *shape ? " " : "", shape, *dtype ? " of " : "", dtype);
    }
    feature.meaning = strdup(words);
    if (!feature.name || !feature.meaning) {
        free(feature.name);
        free(feature.meaning);
        free(feature.labels_text);
        free(feature.labels);
        return;
    }
    tfds->features[tfds->feature_count++] = feature;
}

static void add_feature(tfds *tfds, const json_t *json, const char *name, const char *label_name, const char *around,
                        int depth);

/* A member: the names are joined as tensorflow_datasets does, "/" in records and "-" in files of labels. */
static void add_member(tfds *tfds, const json_t *json, const char *name, const char *label_name, const char *key,
                       const char *around, int depth)
{
    char *joined = nullptr, *label = nullptr;
    if (asprintf(&joined, "%s%s%s", name, *name ? "/" : "", key) < 0) joined = nullptr;
    if (asprintf(&label, "%s%s%s", label_name, *label_name ? "-" : "", key) < 0) label = nullptr;
    if (joined && label) add_feature(tfds, json, joined, label, around, depth + 1);
    free(joined);
    free(label);
}

static void add_feature(tfds *tfds, const json_t *json, const char *name, const char *label_name, const char *around,
                        int depth)
{
    json_t *members = json_object_get(json_object_get(json, "featuresDict"), "features"), *member;
    const json_t *sequence = json_object_get(json, "sequence"), *language;
    const json_t *languages = json_object_get(json_object_get(json, "translation"), "languages");
    const char *key;
    size_t i;
    if (depth > DEPTH_MAX || !json_is_object(json)) return;
    if (members) {
        json_object_foreach(members, key, member) add_member(tfds, member, name, label_name, key, around, depth);
    } else if (sequence) {
        char words[60];
        snprintf(words, sizeof(words), "%.40ssequence of ", around);
        add_feature(tfds, json_object_get(sequence, "feature"), name, label_name, words, depth + 1);
    } else if (languages) {
        json_t *none = json_object();
        json_array_foreach(languages, i, language)
            add_member(tfds, none, name, label_name, text_of(language), "Text of a translation", depth);
        json_decref(none);
    } else {
        add_leaf(tfds, json, name, label_name, around);
    }
}

/* ---- dataset_info.json ---- */

static char *copy_of(const json_t *json)
{
    return *text_of(json) ? strdup(text_of(json)) : nullptr;
}

static void read_splits(tfds *tfds, const json_t *splits)
{
    const json_t *split, *length;
    size_t i, j;
    tfds->splits = calloc(json_array_size(splits) + 1, sizeof(tfds_split));
    if (!tfds->splits) return;
    json_array_foreach(splits, i, split)
    {
        const json_t *lengths = json_object_get(split, "shardLengths");
        tfds_split *made = &tfds->splits[tfds->split_count];
        made->name = strdup(text_of(json_object_get(split, "name")));
        if (!made->name) return;
        made->size_bytes = (uint64_t)number_of(json_object_get(split, "numBytes"), 0);
        made->shard_count = json_array_size(lengths);
        json_array_foreach(lengths, j, length) made->records += (uint64_t)number_of(length, 0);
        tfds->split_count++;
    }
}

static void read_info(tfds *tfds)
{
    json_t *json = read_json(tfds->folder, "dataset_info.json");
    if (!json) return;
    if (asprintf(&tfds->title, "%s %s", text_of(json_object_get(json, "name")),
                 text_of(json_object_get(json, "version"))) < 0)
        tfds->title = nullptr;
    tfds->description = copy_of(json_object_get(json, "description"));
    tfds->license = copy_of(json_object_get(json_object_get(json, "redistributionInfo"), "license"));
    read_splits(tfds, json_object_get(json, "splits"));
    json_decref(json);
}

/* ---- All ---- */

tfds *tfds_open(const char *path)
{
    char *folder = strcmp(path, "-") == 0 ? nullptr : folder_of(path);
    json_t *json = folder ? read_json(folder, "features.json") : nullptr;
    tfds *tfds = json ? calloc(1, sizeof(struct tfds)) : nullptr;
    if (tfds) {
        tfds->folder = folder;
        folder = nullptr;
        add_feature(tfds, json, "", "", "", 0);
        read_info(tfds);
    }
    json_decref(json);
    free(folder);
    return tfds;
}

bool tfds_is_of(const tfds *tfds, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t size = slash ? (size_t)(slash + 1 - path) : 0;
    return strlen(tfds->folder) == size && memcmp(tfds->folder, path, size) == 0;
}

const tfds_feature *tfds_find(const tfds *tfds, mr_string name)
{
    /* A sequence in a sequence is two features of the record. */
    static const char ragged[] = "/ragged_flat_values";
    size_t size = name.size_bytes, ending = sizeof(ragged) - 1;
    if (size > ending && memcmp(name.data + size - ending, ragged, ending) == 0) size -= ending;
    for (size_t i = 0; tfds && i < tfds->feature_count; i++)
        if (mr_string_equal(mr_string_from(tfds->features[i].name), (mr_string){name.data, size}))
            return &tfds->features[i];
    return nullptr;
}

const char *tfds_label(const tfds_feature *feature, int64_t number)
{
    bool has_name = feature && number >= 0 && (uint64_t)number < feature->label_count;
    return has_name ? feature->labels[number] : nullptr;
}

void tfds_free(tfds *tfds)
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
    free(tfds->folder);
    free(tfds);
}
