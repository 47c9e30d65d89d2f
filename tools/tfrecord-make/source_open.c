/* Detects the form of the input: from --format, or from its name and contents. */
#include "tfrecord-make/make.h"

#include "common/file.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

bool source_has_ending(const char *name, const char *endings)
{
    size_t length = strlen(name);
    for (const char *next = endings; *next;) {
        size_t size = strcspn(next, " ");
        if (length > size && strncasecmp(name + length - size, next, size) == 0) return true;
        next += size + (next[size] == ' ');
    }
    return false;
}

/* The form of a directory: VOC if it contains Annotations or .xml files, archives, otherwise class directories. */
static input_format format_of_directory(const char *path)
{
    input_format format = FORMAT_DIRECTORY;
    DIR *directory = opendir(path);
    if (!directory) return format;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.') continue;
        if (strcmp(entry->d_name, "Annotations") == 0 || source_has_ending(entry->d_name, ".xml")) {
            format = FORMAT_VOC;
            break;
        }
        if (source_has_ending(entry->d_name, SOURCE_TAR_ENDINGS)) format = FORMAT_TAR;
    }
    closedir(directory);
    return format;
}

static mr_status recognise(const char *path, input_format *format, mr_error *error)
{
    static const struct {
        const char *endings;
        input_format format;
    } forms[] = {{".csv .tsv .jsonl .ndjson .csv.gz .tsv.gz .jsonl.gz .ndjson.gz", FORMAT_LIST},
                 {".json", FORMAT_COCO},
                 {".npy .npz", FORMAT_NUMPY},
                 {SOURCE_TAR_ENDINGS, FORMAT_TAR}};
    struct stat about;
    if (stat(path, &about) != 0) return file_fail(error, errno, "open", path);
    if (S_ISDIR(about.st_mode)) {
        *format = format_of_directory(path);
        return MR_OK;
    }
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (source_has_ending(path, forms[i].endings)) {
            *format = forms[i].format;
            return MR_OK;
        }
    return mr_fail(error, MR_INVALID_ARGUMENT,
                   "%s: unknown form: the name does not end in .csv, .tsv, .jsonl, .json, .npy, .npz or .tar; specify "
                   "it with --format",
                   path);
}

/* ---- Names of features ---- */

static bool is_found(const names *features, const key_change *change)
{
    if (names_find(features, (mr_string){change->from, change->from_size}) >= 0) return true;
    if (change->from_size < 2 || memcmp(change->from + change->from_size - 2, "/*", 2) != 0) return false;
    for (uint32_t i = 0; i < features->count; i++)
        if (strncmp(features->texts[i], change->from, change->from_size - 1) == 0) return true;
    return false;
}

/* Checks that every --key names a feature that records may have. */
static mr_status check_keys(const source *source, mr_error *error)
{
    const names *features = &source->features;
    for (int i = 0; i < source->in->key_count; i++) {
        const key_change *change = &source->in->keys[i];
        if (is_found(features, change)) continue;
        char list[400] = "";
        size_t used = 0;
        uint32_t j = 0;
        for (; j < features->count && used + strlen(features->texts[j]) + 8 < sizeof(list); j++)
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", j ? ", " : "", features->texts[j]);
        return mr_fail(error, MR_INVALID_ARGUMENT, "--key: %s has no feature \"%s\"; it has %s%s", source->input,
                       change->from, list, j < features->count ? ", …" : "");
    }
    return MR_OK;
}

/* ---- Opening ---- */

mr_status source_set_kind(source *source, input_kind kind, mr_error *error)
{
    source->kind = kind;
    return options_check_input(source->options, kind, error);
}

static mr_status open_form(source *source, mr_error *error)
{
    static const struct {
        mr_status (*open)(struct source *, mr_error *);
        input_kind kind; /* 0: set by the form's open */
    } forms[] = {
        [FORMAT_DIRECTORY] = {source_directory_open, INPUT_DIRECTORY},
        [FORMAT_LIST] = {source_list_open},
        [FORMAT_REGRESSION] = {source_list_open},
        [FORMAT_TABLE] = {source_table_open},
        [FORMAT_COCO] = {source_coco_open, INPUT_COCO},
        [FORMAT_VOC] = {source_voc_open, INPUT_VOC},
        [FORMAT_NUMPY] = {source_numpy_open, INPUT_NUMPY},
        [FORMAT_TAR] = {source_tar_open, INPUT_TAR},
    };
    if (forms[source->format].kind) MR_TRY(source_set_kind(source, forms[source->format].kind, error));
    MR_TRY(forms[source->format].open(source, error));
    assert(source->kind != 0);
    return MR_OK;
}

mr_status source_open(options *options, source *source, mr_error *error)
{
    static const char *const image_keys[] = {"image/encoded", "image/format",   "image/height",
                                             "image/width",   "image/channels", "image/colorspace"};
    *source = (struct source){.options = options, .input = options->input, .in = &options->in, .row_noun = "image"};
    input_format format = options->in.format;
    if (format == FORMAT_AUTO) MR_TRY(recognise(options->input, &format, error));
    source->format = format;
    /* Every record contains the names of its features. */
    for (int i = 0; i < options->in.key_count; i++) {
        const key_change *change = &options->in.keys[i];
        source->facts_hash = plan_hash(source->facts_hash, change->from, change->from_size);
        source->facts_hash = plan_hash(source->facts_hash, change->to, strlen(change->to));
    }
    MR_TRY(open_form(source, error));
    if (source->row_count == 0 && options->include_count + options->exclude_count > 0)
        return filter_rows(source, error);
    if (source->row_count == 0) return mr_fail(error, MR_NOT_FOUND, "%s: contains no rows", source->input);
    if (!source->has_images) MR_TRY(options_check_images(options, source->kind, error));
    for (size_t i = 0; source->has_images && i < sizeof(image_keys) / sizeof(image_keys[0]); i++)
        MR_TRY(source_declare(source, image_keys[i], error));
    MR_TRY(check_keys(source, error));
    for (int i = 0; i < source->split_count; i++)
        memcpy(options->splits[i].name, source->splits[i], sizeof(source->splits[i]));
    if (source->split_count > 0) options->split_count = source->split_count;
    return filter_rows(source, error);
}
