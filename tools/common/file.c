/* See file.h. System calls interrupted by a signal are repeated, and short writes are continued. */
#include "common/file.h"

#include "common/arena.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The maximum size of one read or write on Linux is slightly less than 2 GiB. */
static constexpr size_t CHUNK_BYTES = (size_t)1 << 30;

typedef struct failure {
    int number;
    mr_status status;
    const char *reason; /* null: as strerror */
} failure;

static const failure failures[] = {
    {ENOENT, MR_NOT_FOUND, "no such file or directory"},
    {ENOTDIR, MR_NOT_FOUND, "a component of the path is not a directory"},
    {EACCES, MR_PERMISSION_DENIED, "permission denied"},
    {EPERM, MR_PERMISSION_DENIED, "permission denied"},
    {EROFS, MR_PERMISSION_DENIED, "the file system is read-only"},
    {ENOSPC, MR_RESOURCE_EXHAUSTED, "the disk is full"},
    {EDQUOT, MR_RESOURCE_EXHAUSTED, "the disk quota is exceeded"},
    {EFBIG, MR_RESOURCE_EXHAUSTED, "the file would exceed the size limit of the process or the file system"},
    {EMFILE, MR_RESOURCE_EXHAUSTED, "too many open files"},
    {ENFILE, MR_RESOURCE_EXHAUSTED, "too many open files"},
    {ENOMEM, MR_RESOURCE_EXHAUSTED, nullptr},
    {EEXIST, MR_ALREADY_EXISTS, "it already exists"},
    {EISDIR, MR_INVALID_ARGUMENT, "it is a directory"},
    {ENAMETOOLONG, MR_INVALID_ARGUMENT, "the name is too long"},
    {ELOOP, MR_INVALID_ARGUMENT, "too many symbolic links"},
    {EINVAL, MR_INVALID_ARGUMENT, nullptr},
    {EIO, MR_UNAVAILABLE, "the device reported an I/O error"},
};

mr_status file_fail(mr_error *error, int number, const char *action, const char *path)
{
    failure found = {.status = MR_UNAVAILABLE};
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        if (failures[i].number == number) found = failures[i];
    return mr_fail(error, found.status, "cannot %s %s: %s", action, path,
                   found.reason ? found.reason : strerror(number));
}

/* ---- Read ---- */

/* open, repeated after a signal. */
static int open_file(const char *path, int flags)
{
    int descriptor;
    do descriptor = open(path, flags | O_CLOEXEC, 0666);
    while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

mr_status file_open(const char *path, int *descriptor, mr_error *error)
{
    int opened = open_file(path, O_RDONLY);
    if (opened < 0) return file_fail(error, errno, "open", path);
    struct stat about;
    if (fstat(opened, &about) == 0 && S_ISDIR(about.st_mode)) {
        (void)close(opened);
        return file_fail(error, EISDIR, "read", path);
    }
    *descriptor = opened;
    return MR_OK;
}

mr_status file_read_at(int descriptor, const char *path, uint64_t offset, void *bytes, size_t size_bytes, size_t *done,
                       mr_error *error)
{
    *done = 0;
    if (offset > (uint64_t)INT64_MAX - size_bytes) return MR_OK;
    while (*done < size_bytes) {
        size_t size = size_bytes - *done < CHUNK_BYTES ? size_bytes - *done : CHUNK_BYTES;
        ssize_t got = pread(descriptor, (char *)bytes + *done, size, (off_t)(offset + *done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return file_fail(error, errno, "read", path);
        if (got == 0) break;
        *done += (size_t)got;
    }
    return MR_OK;
}

/* Reads from an open file until its end. The buffer grows if there are more bytes than fstat reported: pipes, /proc, a
 * file that is being written. */
static mr_status read_to_end(int descriptor, const char *path, size_t size_max, char **bytes, size_t *size_bytes,
                             mr_error *error)
{
    struct stat about;
    size_t capacity = 0, used = 0;
    if (fstat(descriptor, &about) == 0 && about.st_size > 0 && (uint64_t)about.st_size <= size_max)
        capacity = (size_t)about.st_size;
    char *data = nullptr;
    mr_status status = MR_OK;
    while (status == MR_OK) {
        char *grown = realloc(data, capacity + 2);
        if (!grown) {
            status = fail_memory(error, capacity);
            break;
        }
        data = grown;
        ssize_t got;
        while ((got = read(descriptor, data + used, capacity + 1 - used)) > 0 || (got < 0 && errno == EINTR))
            if (got > 0 && (used += (size_t)got) > capacity) break;
        if (got < 0) {
            status = file_fail(error, errno, "read", path);
        } else if (used > size_max) {
            status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: larger than %zu bytes", path, size_max);
        } else if (got == 0) {
            data[used] = '\0';
            *bytes = data;
            *size_bytes = used;
            return MR_OK;
        }
        capacity = capacity < 65536 ? 65536 : capacity * 2;
        if (capacity > size_max) capacity = size_max;
        if (capacity < used) capacity = used;
    }
    free(data);
    return status;
}

mr_status file_read_all(const char *path, size_t size_max, char **bytes, size_t *size_bytes, mr_error *error)
{
    int descriptor = -1;
    MR_TRY(file_open(path, &descriptor, error));
    mr_status status = read_to_end(descriptor, path, size_max, bytes, size_bytes, error);
    (void)close(descriptor);
    return status;
}

bool file_begins_with(const char *path, const void *bytes, size_t size_bytes)
{
    char found[256];
    assert(size_bytes <= sizeof found);
    int descriptor = open_file(path, O_RDONLY | O_NONBLOCK); /* opening a pipe would block */
    if (descriptor < 0) return false;
    bool is_equal = read(descriptor, found, size_bytes) == (ssize_t)size_bytes && memcmp(found, bytes, size_bytes) == 0;
    (void)close(descriptor);
    return is_equal;
}

/* ---- Write ---- */

/* Whether path exists and is not a regular file, so that a rename must not replace it. */
static bool is_special(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode);
}

static mr_status check_replaceable(const char *path, mr_error *error)
{
    if (!is_special(path)) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s: not a regular file, so it is not replaced", path);
}

/* Whether the name still refers to the open file. */
static bool is_named(const char *path, int descriptor)
{
    struct stat named, opened;
    return stat(path, &named) == 0 && fstat(descriptor, &opened) == 0 && named.st_dev == opened.st_dev &&
           named.st_ino == opened.st_ino;
}

/* Opens, locks and empties the partial file; the lock is released with the descriptor, however the process ends. An
 * unlocked partial file was left by a process that crashed. If another writer has renamed the file in the meantime, a
 * new one is created. */
static mr_status open_locked(const char *partial, const char *path, int *descriptor, mr_error *error)
{
    MR_TRY(check_replaceable(partial, error));
    for (;;) {
        int opened = open_file(partial, O_WRONLY | O_CREAT);
        if (opened < 0) return file_fail(error, errno, "create", path);
        bool is_taken = flock(opened, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        /* File systems without locks are used without one. */
        if (!is_taken && is_named(partial, opened)) {
            if (ftruncate(opened, 0) == 0) return *descriptor = opened, MR_OK;
            int number = errno;
            (void)close(opened);
            return file_fail(error, number, "create", path);
        }
        (void)close(opened);
        if (is_taken) return mr_fail(error, MR_ABORTED, "cannot create %s: another writer has it open", path);
    }
}

static mr_status write_to(int descriptor, const char *path, const char *bytes, size_t size_bytes, mr_error *error)
{
    while (size_bytes > 0) {
        ssize_t written = write(descriptor, bytes, size_bytes < CHUNK_BYTES ? size_bytes : CHUNK_BYTES);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return file_fail(error, errno, "write", path);
        bytes += written;
        size_bytes -= (size_t)written;
    }
    return MR_OK;
}

static mr_status write_special(const char *path, const void *bytes, size_t size_bytes, mr_error *error)
{
    int descriptor = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
    if (descriptor < 0) return file_fail(error, errno, "create", path);
    mr_status status = write_to(descriptor, path, bytes, size_bytes, error);
    int number = close(descriptor) != 0 && errno != EINTR ? errno : 0;
    return status == MR_OK && number ? file_fail(error, number, "write", path) : status;
}

static mr_status write_atomic(const char *path, const void *bytes, size_t size_bytes, bool is_synced, mr_error *error)
{
    char *partial = nullptr;
    if (asprintf(&partial, "%s" FILE_PARTIAL, path) < 0) return fail_memory(error, strlen(path));
    int descriptor = -1;
    mr_status status = open_locked(partial, path, &descriptor, error);
    if (status == MR_OK) {
        status = write_to(descriptor, path, bytes, size_bytes, error);
        if (status == MR_OK && is_synced && fdatasync(descriptor) != 0 && errno != EINVAL && errno != ENOTSUP)
            status = file_fail(error, errno, "write", path);
        if (status == MR_OK)
            status = is_synced ? file_rename(partial, path, error) : file_replace(partial, path, error);
        if (status != MR_OK) (void)unlink(partial);
        (void)close(descriptor);
    }
    free(partial);
    return status;
}

mr_status file_write_all(const char *path, const void *bytes, size_t size_bytes, mr_error *error)
{
    return is_special(path) ? write_special(path, bytes, size_bytes, error)
                            : write_atomic(path, bytes, size_bytes, true, error);
}

mr_status file_write_unsynced(const char *path, const void *bytes, size_t size_bytes, mr_error *error)
{
    MR_TRY(check_replaceable(path, error));
    return write_atomic(path, bytes, size_bytes, false, error);
}

/* ---- Names ---- */

file_stamp file_stamp_from(const struct stat *about)
{
    return (file_stamp){.size_bytes = (uint64_t)about->st_size,
                        .modified_ns = (int64_t)about->st_mtim.tv_sec * 1'000'000'000 + about->st_mtim.tv_nsec};
}

mr_status file_stamp_of(const char *path, file_stamp *stamp, mr_error *error)
{
    struct stat about;
    if (stat(path, &about) != 0) return file_fail(error, errno, "open", path);
    *stamp = file_stamp_from(&about);
    return MR_OK;
}

bool file_exists(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0;
}

mr_status file_make_directories(const char *path, mr_error *error)
{
    char *part = strdup(path);
    if (!part) return fail_memory(error, strlen(path));
    mr_status status = MR_OK;
    for (char *end = part; status == MR_OK && *end; end++) {
        /* Stops after each component: "a", "a/b", "a/b/c". */
        if (end[0] == '/' || (end[1] != '/' && end[1] != '\0')) continue;
        char after = end[1];
        end[1] = '\0';
        if (mkdir(part, 0777) != 0) {
            int number = errno;
            struct stat about;
            if (stat(part, &about) != 0)
                status = file_fail(error, number, "create directory", part);
            else if (!S_ISDIR(about.st_mode))
                status = file_fail(error, ENOTDIR, "create directory", path);
        }
        end[1] = after;
    }
    free(part);
    return status;
}

mr_status file_remove(const char *path, mr_error *error)
{
    if (unlink(path) == 0 || errno == ENOENT) return MR_OK;
    return file_fail(error, errno, "remove", path);
}

/* Syncs the directory that contains path. */
static mr_status sync_directory(const char *path, mr_error *error)
{
    const char *slash = strrchr(path, '/');
    char *directory = !slash ? strdup(".") : slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
    if (!directory) return fail_memory(error, strlen(path));
    mr_status status = MR_OK;
    int descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* A directory that is writable but not readable cannot be opened; then only the rename is done. */
    if (descriptor >= 0) {
        if (fsync(descriptor) != 0 && errno != EINVAL && errno != ENOTSUP)
            status = file_fail(error, errno, "write", directory);
        (void)close(descriptor);
    }
    free(directory);
    return status;
}

mr_status file_replace(const char *source, const char *target, mr_error *error)
{
    MR_TRY(check_replaceable(target, error));
    return rename(source, target) == 0 ? MR_OK : file_fail(error, errno, "rename to", target);
}

mr_status file_rename(const char *source, const char *target, mr_error *error)
{
    MR_TRY(file_replace(source, target, error));
    return sync_directory(target, error);
}
