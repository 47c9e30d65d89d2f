/* Directories of tf.gfile: lists, patterns, trees. */
#include "base/arguments.h"
#include "base/status.h"
#include "records/io/file.h"
#include "records/io/gfile.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Names ---- */

mr_status mr_gfile_names_add(mr_gfile_names *names, const char *name, mr_error *error)
{
    if (names->count == names->capacity) {
        size_t capacity = names->capacity == 0 ? 16 : 2 * names->capacity;
        char **items = reallocarray(names->items, capacity, sizeof *items);
        if (items == nullptr) return mr_fail_memory(error, capacity * sizeof *items);
        names->items = items;
        names->capacity = capacity;
    }
    names->items[names->count] = strdup(name);
    if (names->items[names->count] == nullptr) return mr_fail_memory(error, strlen(name));
    names->count++;
    return MR_OK;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void mr_gfile_names_sort(mr_gfile_names *names)
{
    if (names->count > 1) qsort(names->items, names->count, sizeof *names->items, compare);
}

mr_status mr_gfile_names_tensor(const mr_gfile_names *names, mr_tensor *tensor, mr_error *error)
{
    mr_string *strings = calloc(names->count + 1, sizeof *strings);
    if (strings == nullptr) return mr_fail_memory(error, names->count * sizeof *strings);
    for (size_t i = 0; i < names->count; i++) strings[i] = mr_string_from(names->items[i]);
    mr_status status = mr_tensor_init_strings(tensor, MR_SHAPE((int64_t)names->count), strings, error);
    free(strings);
    return status;
}

void mr_gfile_names_deinit(mr_gfile_names *names)
{
    for (size_t i = 0; i < names->count; i++) free(names->items[i]);
    free(names->items);
    *names = (mr_gfile_names){0};
}

/* ---- Lists and patterns ---- */

static bool is_dots(const char *name, size_t length)
{
    return (length == 1 || length == 2) && name[0] == '.' && name[length - 1] == '.';
}

/* Reads the names from a stream, which is not closed. */
static mr_status read_names(DIR *stream, const char *path, mr_gfile_names *names, mr_error *error)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (entry == nullptr && errno != 0) return mr_gfile_fail(error, errno, "read directory", path);
        if (entry == nullptr) break;
        if (!is_dots(entry->d_name, strlen(entry->d_name))) MR_TRY(mr_gfile_names_add(names, entry->d_name, error));
    }
    mr_gfile_names_sort(names);
    return MR_OK;
}

static mr_status list(const char *path, mr_gfile_names *names, mr_error *error)
{
    DIR *stream = opendir(path);
    if (stream == nullptr && (errno == ENOTDIR || errno == ENAMETOOLONG || errno == ELOOP))
        return mr_fail(error, MR_NOT_FOUND, "cannot find directory %.400s: %s", path, mr_file_reason(errno));
    if (stream == nullptr) return mr_gfile_fail(error, errno, "find directory", path);
    mr_status status = read_names(stream, path, names, error);
    closedir(stream);
    return status;
}

mr_status mr_gfile_list_directory(const char *path, mr_tensor *names, mr_error *error)
{
    mr_gfile_names found = {0};
    MR_REFUSE_NULL(names, error);
    *names = (mr_tensor){0};
    MR_TRY(mr_gfile_local(path, &path, error));
    mr_status status = list(path, &found, error);
    if (status == MR_OK) status = mr_gfile_names_tensor(&found, names, error);
    mr_gfile_names_deinit(&found);
    return status;
}

/* Whether "." or ".." in the path comes from a pattern such as "*", which does not match them. */
static bool has_matched_dots(const char *pattern, const char *path)
{
    for (;;) {
        pattern += strspn(pattern, "/");
        path += strspn(path, "/");
        size_t wanted = strcspn(pattern, "/"), length = strcspn(path, "/");
        if (length == 0) return false;
        if (is_dots(path, length) && (wanted != length || memcmp(pattern, path, length) != 0)) return true;
        pattern += wanted;
        path += length;
    }
}

/* Directories that cannot be read have no matches, unless the reason is temporary. */
static int is_temporary(const char *, int reason)
{
    return reason == ENOMEM || reason == EMFILE || reason == ENFILE;
}

mr_status mr_gfile_glob(const char *pattern, mr_tensor *paths, mr_error *error)
{
    glob_t found = {0};
    mr_gfile_names names = {0};
    MR_REFUSE_NULL(paths, error);
    *paths = (mr_tensor){0};
    MR_TRY(mr_gfile_local(pattern, &pattern, error));
    int result = *pattern != '\0' ? glob(pattern, GLOB_PERIOD | GLOB_NOSORT, is_temporary, &found) : GLOB_NOMATCH;
    mr_status status = MR_OK;
    if (result != 0 && result != GLOB_NOMATCH)
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "cannot match %.400s: out of memory, or too many open files",
                         pattern);
    for (size_t i = 0; status == MR_OK && result == 0 && i < found.gl_pathc; i++)
        if (!has_matched_dots(pattern, found.gl_pathv[i]))
            status = mr_gfile_names_add(&names, found.gl_pathv[i], error);
    if (found.gl_pathv != nullptr) globfree(&found);
    mr_gfile_names_sort(&names);
    if (status == MR_OK) status = mr_gfile_names_tensor(&names, paths, error);
    mr_gfile_names_deinit(&names);
    return status;
}

mr_status mr_gfile_make_directories(const char *path, mr_error *error)
{
    struct stat about;
    MR_TRY(mr_gfile_local(path, &path, error));
    if (*path == '\0') return MR_OK; /* as in TensorFlow: the current directory exists */
    char *part = strdup(path);
    if (part == nullptr) return mr_fail_memory(error, strlen(path));
    mr_status status = MR_OK;
    for (char *end = part; status == MR_OK && *end != '\0'; end++) {
        if (end[0] == '/' || (end[1] != '/' && end[1] != '\0')) continue; /* stop after "a", "a/b", "a/b/c" */
        char after = end[1];
        end[1] = '\0';
        if (mkdir(part, 0777) != 0) {
            int number = errno;
            bool exists = stat(part, &about) == 0;
            if (!exists || !S_ISDIR(about.st_mode))
                status = mr_gfile_fail(error, exists ? ENOTDIR : number, "create directory", part);
        }
        end[1] = after;
    }
    free(part);
    return status;
}

mr_status mr_gfile_make_directory(const char *path, mr_error *error)
{
    MR_TRY(mr_gfile_local(path, &path, error));
    if (*path == '\0' || mkdir(path, 0777) == 0 || errno == EEXIST) return MR_OK;
    return mr_gfile_fail(error, errno, "create directory", path);
}

/* ---- Trees ---- */

static void keep_first(mr_status *first, mr_status status)
{
    if (*first == MR_OK) *first = status;
}

/* Removes an entry of an open directory. Nothing is opened by its path, so that a link that replaces a directory in
 * the meantime is not followed. path is for messages. */
static mr_status remove_entry(int parent, const char *name, const char *path, mr_error *error)
{
    if (unlinkat(parent, name, 0) == 0) return MR_OK;
    int number = errno;
    int descriptor = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0 && (errno == ENOTDIR || errno == ELOOP)) return mr_gfile_fail(error, number, "remove", path);
    if (descriptor < 0) return mr_gfile_fail(error, errno, "open directory", path);
    DIR *stream = fdopendir(descriptor);
    if (stream == nullptr) return close(descriptor), mr_gfile_fail(error, errno, "open directory", path);
    mr_gfile_names names = {0};
    mr_status status = read_names(stream, path, &names, error);
    mr_error ignored = {0};
    for (size_t i = 0; i < names.count; i++) {
        char *inner = nullptr;
        if (asprintf(&inner, "%s/%s", path, names.items[i]) < 0) inner = nullptr;
        keep_first(&status, remove_entry(descriptor, names.items[i], inner != nullptr ? inner : names.items[i],
                                         status == MR_OK ? error : &ignored));
        free(inner);
    }
    mr_gfile_names_deinit(&names);
    closedir(stream);
    if (unlinkat(parent, name, AT_REMOVEDIR) != 0 && status == MR_OK)
        status = mr_gfile_fail(error, errno, "remove directory", path);
    return status;
}

mr_status mr_gfile_delete_recursively(const char *path, mr_error *error)
{
    struct stat about;
    MR_TRY(mr_gfile_local(path, &path, error));
    /* The path "link/" names the directory behind the link. */
    char *name = strdup(path);
    if (name == nullptr) return mr_fail_memory(error, strlen(path));
    for (size_t i = strlen(name); i > 1 && name[i - 1] == '/'; i--) name[i - 1] = '\0';
    mr_status status = lstat(name, &about) == 0
                           ? remove_entry(AT_FDCWD, name, name, error)
                           : mr_fail(error, MR_NOT_FOUND, "cannot find %.400s: %s", path, mr_file_reason(errno));
    free(name);
    return status;
}

/* A directory that is being walked, and those that it is in. */
typedef struct level {
    const struct level *outer;
    dev_t device;
    ino_t inode;
} level;

typedef struct walker {
    bool in_order;
    mr_gfile_visit visit;
    void *context;
} walker;

static char *join(const char *directory, const char *name)
{
    char *path = nullptr;
    size_t length = strlen(directory);
    bool has_slash = length > 0 && directory[length - 1] == '/';
    return asprintf(&path, "%s%s%s", directory, has_slash ? "" : "/", name) < 0 ? nullptr : path;
}

/* Splits the names of a directory. */
static mr_status split(const char *path, mr_gfile_names *directories, mr_gfile_names *files, mr_error *error)
{
    mr_gfile_names all = {0};
    mr_status status = list(path, &all, error);
    for (size_t i = 0; status == MR_OK && i < all.count; i++) {
        char *inner = join(path, all.items[i]);
        if (inner == nullptr) {
            status = mr_fail_memory(error, strlen(path));
            break;
        }
        struct stat about;
        bool is_directory = stat(inner, &about) == 0 && S_ISDIR(about.st_mode);
        free(inner);
        status = mr_gfile_names_add(is_directory ? directories : files, all.items[i], error);
    }
    mr_gfile_names_deinit(&all);
    return status;
}

static mr_status call_visit(const walker *w, const char *path, const mr_gfile_names *directories,
                            const mr_gfile_names *files, mr_error *error)
{
    mr_tensor a = {0}, b = {0};
    mr_status status = mr_gfile_names_tensor(directories, &a, error);
    if (status == MR_OK) status = mr_gfile_names_tensor(files, &b, error);
    if (status == MR_OK) status = w->visit(w->context, path, &a, &b, error);
    mr_tensor_deinit(&a);
    mr_tensor_deinit(&b);
    return status;
}

static mr_status walk(const walker *w, const char *path, const level *outer, mr_error *error)
{
    struct stat about;
    if (stat(path, &about) != 0) return mr_gfile_fail(error, errno, "find directory", path);
    for (const level *l = outer; l != nullptr; l = l->outer)
        if (l->device == about.st_dev && l->inode == about.st_ino) return MR_OK;
    const level here = {outer, about.st_dev, about.st_ino};
    mr_gfile_names directories = {0}, files = {0};
    mr_status status = split(path, &directories, &files, error);
    if (status == MR_OK && w->in_order) status = call_visit(w, path, &directories, &files, error);
    for (size_t i = 0; status == MR_OK && i < directories.count; i++) {
        char *inner = join(path, directories.items[i]);
        status = inner != nullptr ? walk(w, inner, &here, error) : mr_fail_memory(error, strlen(path));
        free(inner);
    }
    if (status == MR_OK && !w->in_order) status = call_visit(w, path, &directories, &files, error);
    mr_gfile_names_deinit(&directories);
    mr_gfile_names_deinit(&files);
    return status;
}

mr_status mr_gfile_walk(const char *path, bool in_order, mr_gfile_visit visit, void *context, mr_error *error)
{
    MR_TRY(mr_gfile_local(path, &path, error));
    if (visit == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "%.400s: visit is null", path);
    return walk(&(walker){in_order, visit, context}, path, nullptr, error);
}
