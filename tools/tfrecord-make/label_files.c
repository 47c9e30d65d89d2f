/* labels.txt and label_map.pbtxt: the names of labels. The journal contains the hash of the text that a run wrote to
 * them, so that the files of another dataset in the directory are not replaced. */
#include "tfrecord-make/make.h"

#include "common/file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static constexpr size_t FILE_SIZE_MAX = (size_t)1 << 30;

/* The intended contents of a file. */
typedef struct label_file {
    const char *name;
    char *text; /* owned */
    size_t size_bytes;
} label_file;

/* Prints text with quotes and backslashes escaped, for protobuf's text format. */
static void put_quoted(FILE *file, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < ' ' || c == 127)
            fprintf(file, "\\%03o", c);
        else
            fputc(c, file);
    }
}

static void put_lines(const source *source, FILE *file)
{
    for (int32_t i = 0; i < source->class_count; i++)
        fprintf(file, "%s\n", source->classes[i] ? source->classes[i] : "");
}

static void put_map(const source *source, FILE *file)
{
    for (int32_t i = 1; i < source->class_count; i++) {
        if (!source->classes[i]) continue;
        fprintf(file, "item {\n  id: %" PRId32 "\n  name: \"", i);
        put_quoted(file, source->classes[i]);
        fputs("\"\n}\n", file);
    }
}

static mr_status make_text(const source *source, void (*put)(const struct source *, FILE *), label_file *made,
                           mr_error *error)
{
    FILE *file = open_memstream(&made->text, &made->size_bytes);
    if (!file) return fail_memory(error, 1);
    put(source, file);
    bool is_good = !ferror(file);
    is_good = fclose(file) == 0 && is_good;
    /* The text is null if its final allocation failed. */
    return is_good && made->text ? MR_OK : fail_memory(error, made->size_bytes);
}

/* Calls use for each label file. The text of a file that the source does not have is null. */
static mr_status each_file(const source *source, journal *journal,
                           mr_status (*use)(const struct source *, struct journal *, const char *, const label_file *,
                                            mr_error *),
                           mr_error *error)
{
    label_file files[] = {{.name = "labels.txt"}, {.name = "label_map.pbtxt"}};
    mr_status status = source->class_count > 0 ? make_text(source, put_lines, &files[0], error) : MR_OK;
    if (status == MR_OK && source->class_count > 0 && source->has_boxes)
        status = make_text(source, put_map, &files[1], error);
    for (int i = 0; i < 2 && status == MR_OK; i++) {
        char *path = nullptr;
        if (asprintf(&path, "%s/%s", source->options->out, files[i].name) < 0) {
            status = fail_memory(error, strlen(source->options->out));
            break;
        }
        status = use(source, journal, path, &files[i], error);
        free(path);
    }
    free(files[0].text);
    free(files[1].text);
    return status;
}

/* Whether a path is the file of --labels: replacing a file that was given as input is intended. */
static bool is_given(const source *source, const char *path)
{
    struct stat given, there;
    return source->in->labels && stat(source->in->labels, &given) == 0 && stat(path, &there) == 0 &&
           given.st_dev == there.st_dev && given.st_ino == there.st_ino;
}

/* How a file that exists relates to the one that is wanted. */
typedef struct comparison {
    bool exists, is_same, is_ours;
} comparison;

static mr_status compare_file(journal *journal, const char *path, const label_file *wanted, comparison *found,
                              mr_error *error)
{
    char *text = nullptr;
    size_t size = 0;
    *found = (comparison){.exists = file_exists(path)};
    if (!found->exists) return MR_OK;
    MR_TRY(file_read_all(path, FILE_SIZE_MAX, &text, &size, error));
    found->is_same = wanted->text && size == wanted->size_bytes && memcmp(text, wanted->text, size) == 0;
    found->is_ours = journal_has_text(journal, wanted->name, plan_hash(0, text, size));
    free(text);
    return MR_OK;
}

static mr_status check_file(const source *source, journal *journal, const char *path, const label_file *wanted,
                            mr_error *error)
{
    comparison found;
    if (!wanted->text || is_given(source, path)) return MR_OK;
    MR_TRY(compare_file(journal, path, wanted, &found, error));
    if (!found.exists || found.is_same || (found.is_ours && !journal->has_others)) return MR_OK;
    return mr_fail(
        error, MR_ALREADY_EXISTS,
        "%s: %s and contains other classes; remove it, choose another --out, or keep its labels with --labels %s", path,
        found.is_ours ? "also belongs to another dataset in this directory" : "does not belong to this dataset", path);
}

mr_status label_files_check(const source *source, journal *journal, mr_error *error)
{
    return each_file(source, journal, check_file, error);
}

/* Label files of others are kept, even if this source has no labels. */
static mr_status retire_file(const source *source, journal *journal, const char *path, const label_file *wanted,
                             mr_error *error)
{
    comparison found;
    if (is_given(source, path)) return MR_OK;
    MR_TRY(compare_file(journal, path, wanted, &found, error));
    if (found.is_same || !found.is_ours || journal->has_others) return MR_OK;
    return file_remove(path, error);
}

mr_status label_files_retire(const source *source, journal *journal, bool *has_retired, mr_error *error)
{
    char *path = nullptr;
    if (asprintf(&path, "%s/labels.txt", source->options->out) < 0) return fail_memory(error, 1);
    bool existed = file_exists(path);
    mr_status status = each_file(source, journal, retire_file, error);
    *has_retired |= existed && !file_exists(path);
    free(path);
    return status;
}

static mr_status write_file(const source *source, journal *journal, const char *path, const label_file *wanted,
                            mr_error *error)
{
    if (!wanted->text) return retire_file(source, journal, path, wanted, error);
    MR_TRY(file_write_all(path, wanted->text, wanted->size_bytes, error));
    return journal_add_text(journal, wanted->name, plan_hash(0, wanted->text, wanted->size_bytes), error);
}

mr_status label_files_write(const source *source, journal *journal, mr_error *error)
{
    return each_file(source, journal, write_file, error);
}
