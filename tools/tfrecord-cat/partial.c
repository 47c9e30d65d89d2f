/* Partial files of an output. A run holds a lock on OUT.partial while it works, whether that is its only file or
 * represents its shards. So of two runs with the same --out the second fails, and the owner of the lock knows that
 * other partial files were left by killed runs. */
#include "common/file.h"
#include "common/output.h"
#include "common/shard_name.h"
#include "tfrecord-cat/rewrite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether the name still refers to the open file: the previous owner of the lock may have renamed it. */
static bool is_still(const char *path, int descriptor)
{
    struct stat named, open;
    return stat(path, &named) == 0 && fstat(descriptor, &open) == 0 && named.st_dev == open.st_dev &&
           named.st_ino == open.st_ino;
}

mr_status partial_lock(const char *path, int *descriptor, mr_error *error)
{
    *descriptor = -1;
    MR_TRY(output_check(path, true, error));
    for (;;) {
        *descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (*descriptor < 0) return file_fail(error, errno, "create", path);
        /* File systems without locks are used without one. */
        bool is_free = flock(*descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
        if (is_free && is_still(path, *descriptor)) return MR_OK;
        (void)close(*descriptor);
        *descriptor = -1;
        if (!is_free) return mr_fail(error, MR_UNAVAILABLE, "%s: another tfrecord-cat is writing this file", path);
    }
}

void partial_unlock(const char *path, int descriptor)
{
    if (descriptor < 0) return;
    if (is_still(path, descriptor)) (void)unlink(path);
    (void)close(descriptor);
}

/* Whether a name is a partial file of STEM…ENDING or of one of its shards. */
static bool is_leftover(const char *name, const char *stem, size_t stem_length, const char *ending)
{
    if (strncmp(name, stem, stem_length) != 0) return false;
    const char *rest = name + stem_length, *behind = shard_number_end(rest);
    size_t length = strlen(ending);
    if (behind && strncmp(behind, ending, length) == 0 && shard_is_partial(behind + length)) return true;
    return strncmp(rest, ending, length) == 0 && shard_is_partial(rest + length);
}

static mr_status remove_leftover(const options *options, const char *path, mr_error *error)
{
    if (is_input(options, path)) return mr_fail(error, MR_INVALID_ARGUMENT, "%s: is one of the input files", path);
    MR_TRY(output_check(path, true, error));
    return file_remove(path, error);
}

mr_status partial_remove_all(const options *options, size_t stem_length, const char *but, mr_error *error)
{
    const char *path = options->out, *slash = strrchr(path, '/');
    int directory_length = slash ? (int)(slash + 1 - path) : 0;
    char *directory = directory_length > 0 ? strndup(path, (size_t)directory_length) : strdup("./");
    if (!directory) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    /* A directory that cannot be listed may still be writable. */
    DIR *listing = opendir(directory);
    mr_status status = MR_OK;
    for (struct dirent *entry; listing && status == MR_OK && (entry = readdir(listing));) {
        if (!is_leftover(entry->d_name, path + directory_length, stem_length - (size_t)directory_length,
                         path + stem_length))
            continue;
        char *name = nullptr;
        if (asprintf(&name, "%.*s%s", directory_length, path, entry->d_name) < 0) name = nullptr;
        if (!name)
            status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
        else if (strcmp(name, but) != 0)
            status = remove_leftover(options, name, error);
        free(name);
    }
    if (listing) closedir(listing);
    free(directory);
    return status;
}
