/* --html --force: removes the files of an earlier run, which are those with names that html.c creates, and no
 * others. */
#include "tfrecord-cat/html.h"

#include "common/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "00000007.jpg" and "00003". */
static bool is_numbered(const char *name, size_t digits, char end)
{
    return strspn(name, "0123456789") == digits && name[digits] == end;
}

static bool is_data(const char *name)
{
    const char *begins[] = {"page-", "search-"};
    for (size_t i = 0; i < 2; i++) {
        size_t size = strlen(begins[i]);
        if (strncmp(name, begins[i], size) != 0) continue;
        const char *end = name + size + strspn(name + size, "0123456789");
        return end > name + size && strcmp(end, ".js") == 0;
    }
    return strcmp(name, "about.js") == 0;
}

/* Removes our files from a directory and from its numbered subdirectories. */
static mr_status clean(const char *directory, bool is_top, bool (*is_ours)(const char *name), mr_error *error)
{
    DIR *stream = opendir(directory);
    if (!stream) return errno == ENOENT ? MR_OK : file_fail(error, errno, "read directory", directory);
    mr_status status = MR_OK;
    for (struct dirent *entry; status == MR_OK && (entry = readdir(stream));) {
        char *path = nullptr;
        bool is_inner = is_top && is_numbered(entry->d_name, 5, '\0');
        if (!is_inner && !is_ours(entry->d_name)) continue;
        if (asprintf(&path, "%s/%s", directory, entry->d_name) < 0) {
            path = nullptr;
            status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory");
        } else if (is_inner) {
            status = clean(path, false, is_ours, error);
            if (status == MR_OK) (void)rmdir(path); /* kept if it contains other files */
        } else {
            status = file_remove(path, error);
        }
        free(path);
    }
    closedir(stream);
    return status;
}

static bool is_image(const char *name)
{
    return is_numbered(name, 8, '.');
}

mr_status html_clean(const char *directory, mr_error *error)
{
    static const struct {
        const char *name;
        bool (*is_ours)(const char *name);
    } parts[] = {{"data", is_data}, {"thumbs", is_image}, {"images", is_image}};
    mr_status status = MR_OK;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && status == MR_OK; i++) {
        char *path = nullptr;
        if (asprintf(&path, "%s/%s", directory, parts[i].name) < 0)
            return mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory");
        status = clean(path, true, parts[i].is_ours, error);
        free(path);
    }
    return status;
}
