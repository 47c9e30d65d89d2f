/* Options that describe the input and name its components. */
#include "tfrecord-make/make.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static bool parse_format(const char *value, input_format *format)
{
    static const char *const names[] = {"auto", "directory", "list",  "regression", "table",
                                        "coco", "voc",       "numpy", "tar"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], value) == 0) {
            *format = (input_format)i;
            return true;
        }
    return false;
}

static bool add_key(char *value, source_options *options, const char **reason)
{
    char *equals = strchr(value, '=');
    *reason = "--key: expected OLD=NEW, or OLD= to leave out a feature";
    if (!equals || equals == value) return false;
    *equals = '\0';
    const char *to = equals + 1;
    size_t from_size = strlen(value), to_size = strlen(to);
    bool from_many = from_size >= 2 && strcmp(value + from_size - 2, "/*") == 0;
    bool to_many = to_size >= 2 && strcmp(to + to_size - 2, "/*") == 0;
    *reason = "--key: either both sides or neither must end in /*, as in OLD/*=NEW/*";
    if (*to && from_many != to_many) return false;
    for (int i = 0; i < options->key_count; i++)
        if (strcmp(options->keys[i].from, value) == 0) {
            *reason = "--key: a feature is given twice";
            return false;
        }
    key_change *grown = realloc(options->keys, ((size_t)options->key_count + 1) * sizeof(key_change));
    *reason = "out of memory";
    if (!grown) return false;
    options->keys = grown;
    grown[options->key_count++] = (key_change){value, to, from_size};
    return true;
}

/* The destination of an option's text value; null for options of other types. */
static const char **text_of(source_options *options, int option)
{
    switch (option) {
    case OPTION_IMAGES:
        return &options->images;
    case OPTION_LABELS:
        return &options->labels;
    case OPTION_COLUMNS:
        return &options->columns;
    case OPTION_PATH_COLUMN:
        return &options->path_column;
    case OPTION_LABEL_COLUMN:
        return &options->label_column;
    case OPTION_SPLIT_COLUMN:
        return &options->split_column;
    case OPTION_TARGET:
        return &options->targets;
    case OPTION_TYPES:
        return &options->types;
    case OPTION_MISSING:
        return &options->missing;
    case OPTION_IMAGE:
        return &options->image;
    case OPTION_RAW:
        return &options->raw;
    default:
        return nullptr;
    }
}

static bool parse_count(const char *text, uint64_t *count)
{
    char *end;
    *count = strtoull(text, &end, 10);
    return *text >= '1' && *text <= '9' && !*end && strlen(text) <= 9;
}

bool source_option(int option, char *value, source_options *options, const char **reason)
{
    const char **text;
    switch (option) {
    case OPTION_FORMAT:
        *reason = "--format: not one of directory, list, regression, table, coco, voc, numpy, tar";
        return parse_format(value, &options->format);
    case OPTION_SEPARATOR:
        *reason = "--separator: not one character, such as ; or \\t";
        options->separator = strcmp(value, "\\t") == 0 ? '\t' : *value;
        return (strlen(value) == 1 || strcmp(value, "\\t") == 0) && !strchr("\"\r\n", options->separator);
    case OPTION_KEY:
        return add_key(value, options, reason);
    case OPTION_SKIP_ROWS:
        *reason = "--skip-rows: not a number of rows from 1 to 999999999";
        return parse_count(value, &options->skip_rows);
    case OPTION_KEYPOINTS:
        return options->keypoints = true;
    case OPTION_MASKS:
        return options->masks = true;
    case OPTION_APPEND_LABELS:
        return options->append_labels = true;
    default:
        text = text_of(options, option);
        assert(text);
        *reason = "the value of an option is missing";
        *text = value;
        return *value != '\0';
    }
}

void source_options_deinit(source_options *options)
{
    free(options->keys);
    options->keys = nullptr;
}

/* ---- Names of features ---- */

/* The name of a feature after --key; null if the feature is left out. long_name: receives an allocated name, if any */
static const char *changed_key(const features *to, const char *key, char **long_name)
{
    assert(names_find(to->declared, mr_string_from(key)) >= 0);
    for (int i = 0; i < to->options->key_count; i++) {
        const key_change *change = &to->options->keys[i];
        if (strcmp(change->from, key) == 0) return *change->to ? change->to : nullptr;
    }
    for (int i = 0; i < to->options->key_count; i++) {
        const key_change *change = &to->options->keys[i];
        if (change->from_size < 2 || change->from[change->from_size - 1] != '*') continue;
        size_t kept = change->from_size - 1;
        if (strncmp(change->from, key, kept) != 0) continue;
        if (!*change->to) return nullptr;
        size_t begin = strlen(change->to) - 1, rest = strlen(key + kept);
        *long_name = malloc(begin + rest + 1);
        if (!*long_name) return key;
        memcpy(*long_name, change->to, begin);
        memcpy(*long_name + begin, key + kept, rest + 1);
        return *long_name;
    }
    return key;
}

#define DEFINE_PUT(what, arguments, ...)                                                                               \
    void put_##what arguments                                                                                          \
    {                                                                                                                  \
        char *long_name = nullptr;                                                                                     \
        const char *name = changed_key(to, key, &long_name);                                                           \
        if (name) mr_example_add_##what(to->encoder, name, __VA_ARGS__);                                               \
        free(long_name);                                                                                               \
    }
DEFINE_PUT(bytes, (const features *to, const char *key, mr_string value), value)
DEFINE_PUT(int64, (const features *to, const char *key, int64_t value), value)
DEFINE_PUT(float, (const features *to, const char *key, float value), value)
DEFINE_PUT(bytes_list, (const features *to, const char *key, const mr_string *values, size_t count), values, count)
DEFINE_PUT(int64_list, (const features *to, const char *key, const int64_t *values, size_t count), values, count)
DEFINE_PUT(float_list, (const features *to, const char *key, const float *values, size_t count), values, count)
