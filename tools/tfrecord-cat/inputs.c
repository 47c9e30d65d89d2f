/* Resolves FILE arguments: a record file, a directory, a quoted glob, NAME@N, "-". A directory stands for all record
 * files in it and below, sorted by path: files with names of record files, and others whose first header is valid. */
#include "common/file.h"
#include "common/shard_name.h"
#include "tfrecord-cat/cat.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <millrace/debug.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Maximum depth of nested directories; symbolic links to directories are not followed. */
static constexpr int DEPTH_MAX = 64;

/* Paths in the order they are found. */
typedef struct list {
    char **paths;
    size_t count, capacity;
    bool has_failed;  /* no memory */
    bool is_unlisted; /* a directory cannot be read, as reported */
} list;

/* Takes ownership of path, which is malloc'd or null. */
static void list_take(list *list, char *path)
{
    if (list->count == list->capacity && path) {
        size_t capacity = list->capacity ? 2 * list->capacity : 16;
        char **grown = capacity <= INT32_MAX ? realloc(list->paths, capacity * sizeof(char *)) : nullptr;
        if (grown) {
            list->paths = grown;
            list->capacity = capacity;
        }
    }
    if (path && list->count < list->capacity) {
        list->paths[list->count++] = path;
    } else {
        free(path);
        list->has_failed = true;
    }
}

static void list_free(list *list)
{
    for (size_t i = 0; i < list->count; i++) free(list->paths[i]);
    free(list->paths);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && strcmp(text + length - end_length, end) == 0;
}

static bool is_directory(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* Whether a path is the index of a record file (or DALI's): the shell expands "records/" and a star to both. */
static bool is_index(const char *path)
{
    const char *ending = strrchr(path, '.');
    char base[PATH_MAX];
    if (!ending || (strcmp(ending, ".index") != 0 && strcmp(ending, ".idx") != 0)) return false;
    int length = snprintf(base, sizeof base, "%.*s", (int)(ending - path), path);
    return length < (int)sizeof base && access(base, F_OK) == 0;
}

/* "x.tfrecord", "x.tfrecord-00000-of-00004", "x.tfrecord.gz", "x.tfrec", "train-00000-of-01024". */
static bool is_record_name(const char *name)
{
    return strstr(name, ".tfrec") || shard_number_find(name);
}

/* Whether the file begins with a length and its valid checksum. */
static bool begins_as_records(const char *path)
{
    unsigned char header[MR_RECORD_HEADER_BYTES];
    int descriptor;
    size_t done = 0;
    if (file_open(path, &descriptor, nullptr) != MR_OK) return false;
    mr_status status = file_read_at(descriptor, path, 0, header, sizeof(header), &done, nullptr);
    (void)close(descriptor);
    if (status != MR_OK || done < sizeof(header)) return false;
    uint32_t stored = 0;
    for (int i = 0; i < 4; i++) stored |= (uint32_t)header[8 + i] << (8 * i);
    return mr_crc32c_unmask(stored) == mr_crc32c(0, header, 8);
}

static void print_unlisted(list *list, const char *directory)
{
    mr_error error = {0};
    (void)file_fail(&error, errno, "list directory", directory);
    (void)print_error(&error);
    list->is_unlisted = true;
}

/* Collects the record files below a directory. */
static void scan(list *list, const char *directory, int depth)
{
    DIR *entries = opendir(directory);
    if (!entries) {
        print_unlisted(list, directory);
        return;
    }
    bool has_slash = directory[0] && directory[strlen(directory) - 1] == '/';
    const struct dirent *entry;
    while (errno = 0, (entry = readdir(entries))) {
        if (entry->d_name[0] == '.' || ends_with(entry->d_name, ".index") || ends_with(entry->d_name, ".idx") ||
            ends_with(entry->d_name, FILE_PARTIAL))
            continue;
        char *path = nullptr;
        struct stat link, target;
        if (asprintf(&path, "%s%s%s", directory, has_slash ? "" : "/", entry->d_name) < 0) {
            list->has_failed = true;
            break;
        }
        if (lstat(path, &link) == 0 && S_ISDIR(link.st_mode) && depth < DEPTH_MAX) scan(list, path, depth + 1);
        if (stat(path, &target) == 0 && S_ISREG(target.st_mode) &&
            (is_record_name(entry->d_name) || begins_as_records(path)))
            list_take(list, path);
        else
            free(path);
    }
    if (!entry && errno != 0) print_unlisted(list, directory);
    (void)closedir(entries);
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_dump(const char *path)
{
    mr_dump *dump = nullptr;
    bool is_found = mr_dump_open(path, &dump, nullptr) == MR_OK;
    mr_dump_close(dump);
    return is_found;
}

/* Adds an existing path: the file itself, or the record files in the directory. */
static void take_path(list *list, char *path, options *options)
{
    if (!path || strcmp(path, "-") == 0 || options->command->takes_dumps || !is_directory(path)) {
        list_take(list, path);
        return;
    }
    size_t before = list->count;
    scan(list, path, 0);
    if (list->count > before) {
        qsort(list->paths + before, list->count - before, sizeof(char *), compare_paths);
    } else if (!list->is_unlisted) {
        mr_error error = {0};
        (void)mr_fail(&error, MR_NOT_FOUND, "%s: no record files in this directory%s", path,
                      is_dump(path) ? "; it is a tensor dump, which --dump lists" : "");
        (void)print_error(&error);
        options->has_missing = true;
    }
    free(path);
}

bool inputs_add(options *options, const char *argument, bool is_only)
{
    list list = {0};
    char **matches = nullptr;
    int32_t count = 0, number = options->argument_count++;
    mr_error error = {0};
    if (!is_only && is_index(argument)) return true;
    if (strcmp(argument, "-") == 0) {
        take_path(&list, strdup(argument), options);
    } else if (mr_paths_match(argument, &matches, &count, &error) != MR_OK) {
        (void)print_error(&error);
        options->has_missing = true;
    }
    for (int32_t i = 0; i < count; i++) take_path(&list, matches[i], options);
    free(matches);
    options->has_missing |= list.is_unlisted;
    size_t total = (size_t)options->path_count + list.count;
    char **paths = reallocarray(options->paths, total + 1, sizeof(char *));
    if (paths) options->paths = paths;
    int32_t *arguments = reallocarray(options->path_arguments, total + 1, sizeof(int32_t));
    if (arguments) options->path_arguments = arguments;
    if (!paths || !arguments || list.has_failed || total > INT32_MAX) {
        list_free(&list);
        return false;
    }
    for (size_t i = 0; i < list.count; i++) {
        paths[options->path_count] = list.paths[i];
        arguments[options->path_count++] = number;
    }
    free(list.paths);
    return true;
}
