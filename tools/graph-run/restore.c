/* Resolves a path to a checkpoint. */
#include "graph-run/restore.h"

#include <millrace/saver.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The length of a path without the suffix of a checkpoint file. */
static size_t prefix_length(const char *path)
{
    size_t length = strlen(path);
    static const char *const endings[] = {".index", ".meta"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t size = strlen(endings[i]);
        if (length > size && strcmp(path + length - size, endings[i]) == 0) return length - size;
    }
    static const char data[] = ".data-00000-of-00000";
    if (length < sizeof data || strncmp(path + length - strlen(data), ".data-", 6) != 0) return length;
    return length - strlen(data);
}

/* The latest checkpoint in the directory that the first `length` characters of the path name. */
static mr_status find_latest(const char *path, size_t length, char *prefix, size_t size, mr_error *error)
{
    char directory[4096];
    while (length > 1 && path[length - 1] == '/') length--;
    if (length >= sizeof directory) return mr_fail(error, MR_INVALID_ARGUMENT, "%.100s…: too long", path);
    snprintf(directory, sizeof directory, "%.*s", length ? (int)length : 1, length ? path : ".");
    return mr_latest_checkpoint(directory, prefix, size, error);
}

mr_status restore_find(const char *path, char *prefix, size_t size, mr_error *error)
{
    struct stat about;
    bool exists = stat(path, &about) == 0;
    if (exists && S_ISDIR(about.st_mode)) return find_latest(path, strlen(path), prefix, size, error);
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (exists && strcmp(name, "checkpoint") == 0) return find_latest(path, (size_t)(name - path), prefix, size, error);
    size_t length = prefix_length(path);
    if (length >= size) return mr_fail(error, MR_INVALID_ARGUMENT, "%.100s…: too long", path);
    memcpy(prefix, path, length);
    prefix[length] = '\0';
    return MR_OK;
}

mr_status restore_checkpoint(mr_model *model, mr_session *session, const char *path, mr_error *error)
{
    char prefix[4096];
    MR_TRY(restore_find(path, prefix, sizeof prefix, error));
    return mr_model_restore(model, session, prefix, error);
}
