/* The directory source: every subdirectory that contains images is a class; classes are sorted by bytes, and labels
 * start at 0. Links to directories are followed, except those that point to a directory that is being read. */
#include "tfrecord-make/make.h"

#include "common/arena.h"
#include "common/file.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static const char loose[] = "image outside class directories left out|images outside class directories left out";

/* A directory that is being read, and its parents. */
typedef struct level {
    dev_t device;
    ino_t inode;
    const struct level *parent; /* null: the input itself */
} level;

static bool is_loop(const level *parent, const struct stat *about)
{
    for (; parent; parent = parent->parent)
        if (parent->device == about->st_dev && parent->inode == about->st_ino) return true;
    return false;
}

/* Files that operating systems create in image directories; they are ignored silently. */
static bool is_litter(const char *name)
{
    return strcasecmp(name, "Thumbs.db") == 0 || strcasecmp(name, "desktop.ini") == 0 ||
           strcmp(name, ".DS_Store") == 0 || strncmp(name, "._", 2) == 0;
}

static int is_entry(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static mr_status add_image(source *source, const char *path, const struct stat *about, mr_error *error)
{
    file_stamp stamp = file_stamp_from(about);
    row row = {
        .name = path, .size_bytes = stamp.size_bytes, .modified_ns = stamp.modified_ns, .label = source->class_count};
    filter_match(source, &row, path);
    return filter_accepts(source, &row) ? source_add_row(source, &row, error)
                                        : filter_count_excluded(source, path, error);
}

/* Lists the names in a directory, sorted; owned by the caller. path: relative to the top directory, which is "" */
static mr_status list_names(const char *directory, const char *path, struct dirent ***entries, int *count,
                            mr_error *error)
{
    char *full = nullptr;
    if (asprintf(&full, *path ? "%s/%s" : "%s", directory, path) < 0) return fail_memory(error, strlen(directory));
    *count = scandir(full, entries, is_entry, compare_names);
    mr_status status = *count < 0 ? file_fail(error, errno, "read directory", full) : MR_OK;
    free(full);
    return status;
}

/* Gets the status of a path relative to the top directory. A broken link counts as a file: if it has an image's
 * name, reading it will report the error. */
static mr_status stat_below(const char *directory, const char *path, struct stat *about, mr_error *error)
{
    char *full = nullptr;
    if (asprintf(&full, "%s/%s", directory, path) < 0) return fail_memory(error, strlen(directory));
    if (stat(full, about) != 0) *about = (struct stat){.st_mode = S_IFREG};
    free(full);
    return MR_OK;
}

static mr_status leave_out(source *source, const char *path, const char *name, mr_error *error)
{
    row row = {0};
    filter_match(source, &row, path);
    if (row.is_excluded) return filter_count_excluded(source, path, error);
    if (is_litter(name)) return MR_OK;
    if (*name == '.')
        return source_note(source, "hidden file or directory left out|hidden files and directories left out", path,
                           error);
    return source_note(source, "file left out, not an image by name|files left out, not images by name", path, error);
}

static mr_status scan_class(const char *directory, const char *path, const level *parent, const struct stat *about,
                            source *source, mr_error *error);

static mr_status scan_entry(const char *directory, const char *path, const char *name, const level *parent,
                            source *source, mr_error *error)
{
    struct stat about;
    if (*name == '.') return leave_out(source, path, name, error);
    MR_TRY(stat_below(directory, path, &about, error));
    if (S_ISDIR(about.st_mode)) {
        bool enters;
        MR_TRY(filter_accepts_directory(source, path, &enters, error));
        return enters ? scan_class(directory, path, parent, &about, source, error) : MR_OK;
    }
    if (!S_ISREG(about.st_mode) || !source_is_image_name(name)) return leave_out(source, path, name, error);
    return add_image(source, path, &about, error);
}

/* Adds the images of a class directory and of its subdirectories. */
static mr_status scan_class(const char *directory, const char *path, const level *parent, const struct stat *about,
                            source *source, mr_error *error)
{
    const level own = {about->st_dev, about->st_ino, parent};
    if (is_loop(parent, about))
        return source_note(source,
                           "link points to a directory that contains it, and was not followed|"
                           "links point to a directory that contains them, and were not followed",
                           path, error);
    struct dirent **entries = nullptr;
    int count;
    MR_TRY(list_names(directory, path, &entries, &count, error));
    mr_status status = MR_OK;
    for (int i = 0; i < count; i++) {
        char *below = nullptr;
        if (status == MR_OK && asprintf(&below, "%s/%s", path, entries[i]->d_name) < 0) {
            below = nullptr;
            status = fail_memory(error, strlen(path));
        }
        if (status == MR_OK) status = scan_entry(directory, below, entries[i]->d_name, &own, source, error);
        free(below);
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* Handles a name in the top directory. */
static mr_status scan_top(const char *directory, const char *name, const level *top, source *source, mr_error *error)
{
    struct stat about;
    if (*name == '.') return leave_out(source, name, name, error);
    MR_TRY(stat_below(directory, name, &about, error));
    if (!S_ISDIR(about.st_mode)) {
        if (!S_ISREG(about.st_mode) || !source_is_image_name(name)) return leave_out(source, name, name, error);
        row row = {0};
        filter_match(source, &row, name);
        return row.is_excluded ? filter_count_excluded(source, name, error) : source_note(source, loose, name, error);
    }
    bool enters;
    MR_TRY(filter_accepts_directory(source, name, &enters, error));
    if (!enters) return MR_OK;
    int64_t before = source->row_count;
    MR_TRY(scan_class(directory, name, top, &about, source, error));
    if (source->row_count == before && is_loop(top, &about)) return MR_OK;
    if (source->row_count == before)
        return source_note(
            source, "directory contains no images and is not a class|directories contain no images and are not classes",
            name, error);
    return source_add_class(source, name, error);
}

/* Numbers the classes, which are sorted, by the --labels file. */
static mr_status take_labels(source *source, mr_error *error)
{
    names found = {0};
    int32_t *labels = nullptr, count = source->class_count;
    uint32_t number;
    mr_status status = MR_OK;
    for (int32_t i = 0; i < count && status == MR_OK; i++)
        status = names_add(&found, mr_string_from(source->classes[i]), &number, error);
    source->class_count = 0;
    if (status == MR_OK) status = source_set_classes(source, &found, 0, &labels, error);
    for (int64_t i = 0; i < source->row_count && status == MR_OK; i++) {
        assert(source->rows[i].label < count);
        source->rows[i].label = labels[source->rows[i].label];
    }
    free(labels);
    names_deinit(&found);
    return status;
}

/* Class and label determine a row's record, and so are part of its hash. */
static void set_facts(source *source)
{
    for (int64_t i = 0; i < source->row_count; i++) {
        row *row = &source->rows[i];
        assert(row->label >= 0 && row->label < source->class_count);
        uint64_t label = (uint64_t)row->label;
        const char *name = source->classes[row->label];
        row->facts_hash = plan_hash(plan_hash(0, name, strlen(name)), &label, sizeof(label));
    }
}

static mr_status check_source(const char *directory, const source *source, mr_error *error)
{
    if (source->row_count > 0) return MR_OK;
    if (source->options->include_count + source->options->exclude_count > 0)
        return mr_fail(error, MR_NOT_FOUND, "%s: --include and --exclude leave no images in class directories",
                       directory);
    for (int i = 0; i < source->note_count; i++)
        if (source->notes[i].what == loose)
            return mr_fail(error, MR_NOT_FOUND,
                           "%s: %lld images are in the directory itself, not in one subdirectory for each class, as in "
                           "%s/daisy/1.jpg",
                           directory, (long long)source->notes[i].count, directory);
    return mr_fail(error, MR_NOT_FOUND,
                   "%s: no images (.jpg, .png, .webp, …) in class directories, as in %s/daisy/1.jpg", directory,
                   directory);
}

static mr_status add_features(const source *source, const row *row, const image_facts *facts, const features *to,
                              mr_error *error)
{
    put_bytes(to, "image/filename", mr_string_from(row->name));
    put_int64(to, "image/class/label", row->label);
    put_bytes(to, "image/class/text", mr_string_from(source->classes[row->label]));
    return MR_OK;
}

mr_status source_directory_open(source *source, mr_error *error)
{
    static const source_functions functions = {.image = source_read_image, .add_features = add_features};
    const char *directory = source->input;
    struct dirent **entries = nullptr;
    int count;
    source->functions = &functions;
    source->directory = directory;
    source->has_images = true;
    struct stat about;
    if (stat(directory, &about) != 0) return file_fail(error, errno, "open", directory);
    const level top = {about.st_dev, about.st_ino, nullptr};
    MR_TRY(list_names(directory, "", &entries, &count, error));
    mr_status status = MR_OK;
    for (int i = 0; i < count; i++) {
        if (status == MR_OK) status = scan_top(directory, entries[i]->d_name, &top, source, error);
        free(entries[i]);
    }
    free(entries);
    MR_TRY(status);
    MR_TRY(check_source(directory, source, error));
    if (source->in->labels) MR_TRY(take_labels(source, error));
    set_facts(source);
    MR_TRY(source_declare(source, "image/filename", error));
    MR_TRY(source_declare(source, "image/class/label", error));
    return source_declare(source, "image/class/text", error);
}
