/* Files of tf.gfile: questions, reading, writing, copying, renaming. */
#include "records/io/gfile.h"
#include "base/arguments.h"
#include "base/status.h"
#include "records/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

constexpr size_t READ_MAX = (size_t)64 << 30;
constexpr size_t COPY_BYTES = (size_t)1 << 20;

static mr_status status_of(int number)
{
    switch (number) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
        return MR_NOT_FOUND;
    case EEXIST:
        return MR_ALREADY_EXISTS;
    case EPERM:
    case EACCES:
    case EROFS:
        return MR_PERMISSION_DENIED;
    case ENOTEMPTY:
    case EISDIR:
    case ENOTDIR:
    case EBUSY:
    case EBADF:
    case EPIPE:
    case ETXTBSY:
        return MR_FAILED_PRECONDITION;
    case EINVAL:
    case ENAMETOOLONG:
        return MR_INVALID_ARGUMENT;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EMLINK:
    case ENOMEM:
        return MR_RESOURCE_EXHAUSTED;
    case EXDEV:
    case ENOTSUP:
        return MR_UNIMPLEMENTED;
    case EAGAIN:
    case EINTR:
        return MR_UNAVAILABLE;
    default:
        return MR_UNKNOWN;
    }
}

mr_status mr_gfile_fail(mr_error *error, int number, const char *action, const char *path)
{
    return mr_fail(error, status_of(number), "cannot %s %.400s: %s", action, *path != '\0' ? path : "an empty path",
                   mr_file_reason(number));
}

mr_status mr_gfile_local(const char *path, const char **local, mr_error *error)
{
    if (path == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "the path is null");
    *local = path;
    size_t length = 0;
    while ((path[length] >= 'a' && path[length] <= 'z') || (length > 0 && path[length] >= '0' && path[length] <= '9'))
        length++;
    if (length == 0 || strncmp(path + length, "://", 3) != 0) return MR_OK;
    if (length != 4 || strncmp(path, "file", 4) != 0)
        return mr_fail(error, MR_UNIMPLEMENTED, "%.400s: file system scheme '%.*s' not implemented", path,
                       length < 100 ? (int)length : 100, path);
    *local = path + strlen("file://");
    return MR_OK;
}

static bool stat_of(const char *path, struct stat *about)
{
    const char *local;
    return mr_gfile_local(path, &local, nullptr) == MR_OK && stat(local, about) == 0;
}

bool mr_gfile_exists(const char *path)
{
    struct stat about;
    return stat_of(path, &about);
}

bool mr_gfile_is_directory(const char *path)
{
    struct stat about;
    return stat_of(path, &about) && S_ISDIR(about.st_mode);
}

mr_status mr_gfile_stat(const char *path, mr_gfile_about *about, mr_error *error)
{
    struct stat found;
    MR_REFUSE_NULL(about, error);
    *about = (mr_gfile_about){0};
    MR_TRY(mr_gfile_local(path, &path, error));
    if (stat(path, &found) != 0) return mr_gfile_fail(error, errno, "find", path);
    about->length = found.st_size;
    about->mtime_nsec = (int64_t)found.st_mtim.tv_sec * 1'000'000'000 + found.st_mtim.tv_nsec;
    about->is_directory = S_ISDIR(found.st_mode);
    return MR_OK;
}

mr_status mr_gfile_read(const char *path, mr_tensor *contents, mr_error *error)
{
    struct stat about;
    char *bytes = nullptr;
    size_t size = 0;
    MR_REFUSE_NULL(contents, error);
    *contents = (mr_tensor){0};
    MR_TRY(mr_gfile_local(path, &path, error));
    if (stat(path, &about) != 0) return mr_gfile_fail(error, errno, "open", path);
    if (S_ISDIR(about.st_mode)) return mr_gfile_fail(error, EISDIR, "read", path);
    MR_TRY(mr_file_read_all(path, READ_MAX, &bytes, &size, error));
    mr_status status = mr_tensor_init_string(contents, (mr_string){bytes, size}, error);
    free(bytes);
    return status;
}

/* ---- Writing ---- */

/* Opens an atomic output in place of the path, or of the target of a link.
 * resolved  owned by the caller; null if it is the path itself */
static mr_status open_output(const char *path, mr_file_output *output, char **resolved, mr_error *error)
{
    struct stat about;
    *resolved = nullptr;
    *output = (mr_file_output){0};
    if (*path == '\0') return mr_gfile_fail(error, ENOENT, "create", path);
    if (stat(path, &about) == 0) {
        if (S_ISDIR(about.st_mode)) return mr_gfile_fail(error, EISDIR, "write", path);
        *resolved = realpath(path, nullptr);
    } else if (errno != ENOENT) {
        return mr_gfile_fail(error, errno, "create", path);
    } else if (path[strlen(path) - 1] == '/') {
        return mr_gfile_fail(error, EISDIR, "create", path);
    }
    return mr_file_output_open(output, *resolved != nullptr ? *resolved : path, true, error);
}

mr_status mr_gfile_write(const char *path, mr_string contents, mr_error *error)
{
    mr_file_output output;
    char *resolved;
    MR_TRY(mr_gfile_local(path, &path, error));
    if (contents.data == nullptr && contents.size_bytes > 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%.400s: the contents are null", path);
    mr_status status = open_output(path, &output, &resolved, error);
    if (status == MR_OK) status = mr_file_output_write(&output, contents.data, contents.size_bytes, error);
    if (status == MR_OK)
        status = mr_file_output_commit(&output, error);
    else if (output.is_open)
        mr_file_output_discard(&output);
    free(resolved);
    return status;
}

static mr_status copy_bytes(int source, const char *path, mr_file_output *output, mr_error *error)
{
    char *block = malloc(COPY_BYTES);
    if (block == nullptr) return mr_fail_memory(error, COPY_BYTES);
    mr_status status = MR_OK;
    uint64_t offset = 0;
    for (size_t done = 1; status == MR_OK && done > 0; offset += done) {
        status = mr_file_read_at(source, path, offset, block, COPY_BYTES, &done, error);
        if (status == MR_OK) status = mr_file_output_write(output, block, done, error);
    }
    free(block);
    return status;
}

/* Gives the output the source's permissions as far as the process's mask allows: to execute where to read. */
static void copy_mode(const struct stat *source, const mr_file_output *output)
{
    struct stat made;
    if (!output->is_atomic || fstat(output->descriptor, &made) != 0) return;
    mode_t allowed = made.st_mode | ((made.st_mode & 0444) >> 2);
    (void)!fchmod(output->descriptor, source->st_mode & allowed & 0777);
}

mr_status mr_gfile_copy(const char *source, const char *target, bool overwrite, mr_error *error)
{
    struct stat about;
    mr_file_output output = {0};
    char *resolved = nullptr;
    if (!overwrite && mr_gfile_exists(target)) return mr_gfile_fail(error, EEXIST, "copy to", target);
    MR_TRY(mr_gfile_local(source, &source, error));
    MR_TRY(mr_gfile_local(target, &target, error));
    if (stat(source, &about) != 0) return mr_gfile_fail(error, errno, "open", source);
    if (S_ISDIR(about.st_mode))
        return mr_fail(error, MR_INVALID_ARGUMENT, "cannot copy %.400s: it is a directory", source);
    int descriptor = open(source, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return mr_gfile_fail(error, errno, "open", source);
    mr_status status = open_output(target, &output, &resolved, error);
    if (status == MR_OK) status = copy_bytes(descriptor, source, &output, error);
    if (status == MR_OK) {
        copy_mode(&about, &output);
        status = mr_file_output_commit(&output, error);
    } else if (output.is_open) {
        mr_file_output_discard(&output);
    }
    free(resolved);
    close(descriptor);
    return status;
}

mr_status mr_gfile_rename(const char *source, const char *target, bool overwrite, mr_error *error)
{
    if (!overwrite && mr_gfile_exists(target)) return mr_gfile_fail(error, EEXIST, "rename to", target);
    MR_TRY(mr_gfile_local(source, &source, error));
    MR_TRY(mr_gfile_local(target, &target, error));
    if (rename(source, target) == 0) return MR_OK;
    return mr_gfile_fail(error, errno, "rename", source);
}

mr_status mr_gfile_remove(const char *path, mr_error *error)
{
    MR_TRY(mr_gfile_local(path, &path, error));
    return unlink(path) == 0 ? MR_OK : mr_gfile_fail(error, errno, "remove", path);
}
