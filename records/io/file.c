/* File I/O: see file.h. System calls interrupted by a signal are repeated, and short writes are continued. */
#include "records/io/file.h"

#include "base/status.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The maximum size of one read or write on Linux is slightly less than 2 GiB. */
static constexpr size_t CHUNK_BYTES = (size_t)1 << 30;

const char *mr_file_reason(int number)
{
    switch (number) {
    case ENOENT:
        return "no such file or directory";
    case ENOTDIR:
        return "a component of the path is not a directory";
    case EACCES:
    case EPERM:
        return "permission denied";
    case EROFS:
        return "the file system is read-only";
    case ENOSPC:
        return "the disk is full";
    case EDQUOT:
        return "the disk quota is exceeded";
    case EFBIG:
        return "the file would exceed the size limit of the process or the file system";
    case EMFILE:
    case ENFILE:
        return "too many open files";
    case EISDIR:
        return "it is a directory";
    case EEXIST:
        return "it already exists";
    case ENAMETOOLONG:
        return "the name is too long";
    case ELOOP:
        return "too many symbolic links";
    case EIO:
        return "the device reported an I/O error";
    default:
        return strerror(number);
    }
}

static mr_status status_of(int number)
{
    switch (number) {
    case ENOENT:
    case ENOTDIR:
        return MR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return MR_PERMISSION_DENIED;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return MR_RESOURCE_EXHAUSTED;
    case EEXIST:
        return MR_ALREADY_EXISTS;
    case EISDIR:
    case ENAMETOOLONG:
    case ELOOP:
    case EINVAL:
        return MR_INVALID_ARGUMENT;
    default:
        return MR_UNAVAILABLE;
    }
}

mr_status mr_file_fail(mr_error *error, int number, const char *action, const char *path)
{
    return mr_fail(error, status_of(number), "cannot %s %s: %s", action, path, mr_file_reason(number));
}

/* The directory that contains path, owned; null if out of memory. */
static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == nullptr) return strdup(".");
    if (slash == path) return strdup("/");
    return strndup(path, (size_t)(slash - path));
}

/* ---- Open ---- */

typedef bool reclaim_function(void);
static reclaim_function *_Atomic reclaim_idle;

void mr_file_set_reclaim(bool (*reclaim)(void))
{
    atomic_store(&reclaim_idle, reclaim);
}

/* open, repeated after a signal and, if the process has too many open files, after closing an idle one. */
static int open_file(const char *path, int flags)
{
    for (;;) {
        int descriptor = open(path, flags | O_CLOEXEC, 0666);
        if (descriptor >= 0) return descriptor;
        int number = errno;
        reclaim_function *reclaim = number == EMFILE || number == ENFILE ? atomic_load(&reclaim_idle) : nullptr;
        bool is_repeated = number == EINTR || (reclaim != nullptr && reclaim());
        errno = number;
        if (!is_repeated) return -1;
    }
}

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

/* Opens, locks and empties the file that is written to; the lock is released with the descriptor, however the process
 * ends. An unlocked partial file was left by a process that crashed. If another writer has renamed the file in the
 * meantime, a new one is created. Only regular files are locked: several processes may write to a pipe or a device. */
static mr_status open_locked(mr_file_output *output, mr_error *error)
{
    assert(!output->is_open && output->descriptor < 0);
    if (output->is_atomic) MR_TRY(check_replaceable(output->partial, error));
    for (;;) {
        int descriptor = open_file(output->partial, O_WRONLY | O_CREAT);
        if (descriptor < 0) return mr_file_fail(error, errno, "create", output->path);
        struct stat about;
        if (!output->is_atomic && fstat(descriptor, &about) == 0 && !S_ISREG(about.st_mode)) {
            output->descriptor = descriptor;
            return MR_OK;
        }
        bool is_taken = !output->no_lock && flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        /* File systems without locks are used without one. */
        if (!is_taken && is_named(output->partial, descriptor)) {
            int number = ftruncate(descriptor, 0) != 0 ? errno : 0;
            output->descriptor = descriptor;
            if (number == 0) return MR_OK;
            (void)close(descriptor);
            return mr_file_fail(error, number, "create", output->path);
        }
        (void)close(descriptor);
        if (is_taken) return mr_fail(error, MR_ABORTED, "cannot create %s: another writer has it open", output->path);
    }
}

mr_status mr_file_output_open(mr_file_output *output, const char *path, bool atomic, mr_error *error)
{
    assert(!output->is_open);
    atomic = atomic && !is_special(path);
    *output = (mr_file_output){.is_atomic = atomic, .no_lock = output->no_lock && !atomic, .descriptor = -1};
    size_t length = strlen(path);
    output->path = strdup(path);
    output->partial = malloc(length + sizeof(MR_FILE_PARTIAL));
    if (output->path == nullptr || output->partial == nullptr) {
        mr_file_output_discard(output);
        return mr_fail_memory(error, length);
    }
    memcpy(output->partial, path, length + 1);
    if (atomic) memcpy(output->partial + length, MR_FILE_PARTIAL, sizeof(MR_FILE_PARTIAL));
    mr_status status = open_locked(output, error);
    if (status != MR_OK) {
        mr_file_output_discard(output);
        return status;
    }
    assert(output->descriptor >= 0);
    output->is_open = true;
    return MR_OK;
}

mr_status mr_file_output_write(mr_file_output *output, const void *bytes, size_t size_bytes, mr_error *error)
{
    assert(output->is_open);
    const char *next = bytes;
    while (size_bytes > 0) {
        ssize_t written = write(output->descriptor, next, size_bytes < CHUNK_BYTES ? size_bytes : CHUNK_BYTES);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return mr_file_fail(error, errno, "write", output->path);
        next += written;
        size_bytes -= (size_t)written;
        output->size_bytes += (uint64_t)written;
    }
    return MR_OK;
}

mr_status mr_file_output_sync(mr_file_output *output, mr_error *error)
{
    assert(output->is_open);
    if (fdatasync(output->descriptor) == 0) return MR_OK;
    /* A pipe or a terminal cannot be synced. */
    if (errno == EINVAL || errno == ENOTSUP) return MR_OK;
    return mr_file_fail(error, errno, "write", output->path);
}

mr_status mr_file_output_stamp(const mr_file_output *output, mr_file_stamp *stamp, mr_error *error)
{
    assert(output->is_open);
    struct stat about;
    if (fstat(output->descriptor, &about) != 0) return mr_file_fail(error, errno, "write", output->path);
    *stamp = mr_file_stamp_from(&about);
    return MR_OK;
}

/* Closes the output and frees its memory without renaming or removing the file. Returns close's errno. */
static int release(mr_file_output *output)
{
    assert(!output->is_open || output->descriptor >= 0);
    int number = 0;
    /* A child process that was forked meanwhile shares the lock, and would keep it. */
    if (output->is_open && !output->no_lock) (void)flock(output->descriptor, LOCK_UN);
    if (output->is_open && close(output->descriptor) != 0 && errno != EINTR) number = errno;
    free(output->path);
    free(output->partial);
    *output = (mr_file_output){.descriptor = -1};
    return number;
}

mr_status mr_file_output_commit(mr_file_output *output, mr_error *error)
{
    assert(output->path != nullptr && output->partial != nullptr);
    assert(output->is_open);
    if (output->is_atomic) {
        mr_status status = output->no_sync ? MR_OK : mr_file_output_sync(output, error);
        if (status == MR_OK)
            status = output->no_sync ? mr_file_replace(output->partial, output->path, error)
                                     : mr_file_rename(output->partial, output->path, error);
        if (status != MR_OK) {
            mr_file_output_discard(output);
            return status;
        }
        (void)release(output);
        return MR_OK;
    }
    char *path = output->path;
    output->path = nullptr;
    int number = release(output);
    mr_status status = number ? mr_file_fail(error, number, "write", path) : MR_OK;
    free(path);
    return status;
}

void mr_file_output_discard(mr_file_output *output)
{
    if (output->is_open && output->is_atomic) (void)unlink(output->partial);
    (void)release(output);
}

static mr_status write_file(const char *path, const void *bytes, size_t size_bytes, bool no_sync, mr_error *error)
{
    mr_file_output output = {0};
    MR_TRY(mr_file_output_open(&output, path, true, error));
    output.no_sync = no_sync;
    mr_status status = mr_file_output_write(&output, bytes, size_bytes, error);
    if (status != MR_OK) {
        mr_file_output_discard(&output);
        return status;
    }
    return mr_file_output_commit(&output, error);
}

mr_status mr_file_write_all(const char *path, const void *bytes, size_t size_bytes, mr_error *error)
{
    return write_file(path, bytes, size_bytes, false, error);
}

mr_status mr_file_write_no_sync(const char *path, const void *bytes, size_t size_bytes, mr_error *error)
{
    MR_TRY(check_replaceable(path, error));
    return write_file(path, bytes, size_bytes, true, error);
}

/* Checks the result of open for path, and that it is not a directory. */
static mr_status take_opened(int opened, const char *path, int *descriptor, mr_error *error)
{
    if (opened < 0) return mr_file_fail(error, errno, "open", path);
    struct stat about;
    if (fstat(opened, &about) == 0 && S_ISDIR(about.st_mode)) {
        (void)close(opened);
        return mr_file_fail(error, EISDIR, "read", path);
    }
    *descriptor = opened;
    return MR_OK;
}

mr_status mr_file_open(const char *path, int *descriptor, mr_error *error)
{
    return take_opened(open_file(path, O_RDONLY), path, descriptor, error);
}

/* Without waiting for the other end of a pipe. */
mr_status mr_file_open_regular(const char *path, int *descriptor, mr_error *error)
{
    int opened = -1;
    struct stat about;
    MR_TRY(take_opened(open_file(path, O_RDONLY | O_NONBLOCK), path, &opened, error));
    assert(opened >= 0);
    if (fstat(opened, &about) != 0 || !S_ISREG(about.st_mode)) {
        (void)close(opened);
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s is not a regular file", path);
    }
    *descriptor = opened;
    return MR_OK;
}

mr_status mr_file_open_once(const char *path, int *descriptor, mr_error *error)
{
    int opened;
    do opened = open(path, O_RDONLY | O_CLOEXEC);
    while (opened < 0 && errno == EINTR);
    return take_opened(opened, path, descriptor, error);
}

mr_status mr_file_read_at(int descriptor, const char *path, uint64_t offset, void *bytes, size_t size_bytes,
                          size_t *done, mr_error *error)
{
    *done = 0;
    if (offset > (uint64_t)INT64_MAX - size_bytes) return MR_OK;
    while (*done < size_bytes) {
        assert(*done < size_bytes);
        size_t want = size_bytes - *done < CHUNK_BYTES ? size_bytes - *done : CHUNK_BYTES;
        ssize_t got = pread(descriptor, (char *)bytes + *done, want, (off_t)(offset + *done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return mr_file_fail(error, errno, "read", path);
        if (got == 0) break;
        *done += (size_t)got;
    }
    return MR_OK;
}

void mr_file_prefetch(int descriptor, uint64_t offset, uint64_t size_bytes)
{
    if (offset <= INT64_MAX && size_bytes <= INT64_MAX)
        (void)posix_fadvise(descriptor, (off_t)offset, (off_t)size_bytes, POSIX_FADV_WILLNEED);
}

/* Reads and closes the file. */
static mr_status read_opened(int descriptor, const char *path, size_t size_max, char **bytes, size_t *size_bytes,
                             mr_error *error)
{
    assert(descriptor >= 0);
    struct stat about;
    size_t capacity = 0, used = 0;
    if (fstat(descriptor, &about) == 0 && about.st_size > 0 && (uint64_t)about.st_size <= size_max)
        capacity = (size_t)about.st_size;
    /* The buffer grows if there are more bytes than fstat reported: pipes, /proc, a file that is being written. */
    char *data = nullptr;
    mr_status status = MR_OK;
    for (;;) {
        char *grown = realloc(data, capacity + 2);
        if (grown == nullptr) {
            status = mr_fail_memory(error, capacity);
            break;
        }
        data = grown;
        ssize_t got;
        while ((got = read(descriptor, data + used, capacity + 1 - used)) > 0 || (got < 0 && errno == EINTR))
            if (got > 0 && (used += (size_t)got) > capacity) break;
        if (got < 0)
            status = mr_file_fail(error, errno, "read", path);
        else if (used > size_max)
            status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: larger than %zu bytes", path, size_max);
        if (got <= 0 || status != MR_OK) break;
        capacity = capacity < 65536 ? 65536 : capacity * 2;
        if (capacity > size_max) capacity = size_max;
        if (capacity < used) capacity = used;
    }
    (void)close(descriptor);
    if (status != MR_OK) {
        free(data);
        return status;
    }
    assert(data != nullptr);
    assert(used <= size_max && used < capacity + 2);
    data[used] = '\0';
    *bytes = data;
    *size_bytes = used;
    return MR_OK;
}

mr_status mr_file_read_all(const char *path, size_t size_max, char **bytes, size_t *size_bytes, mr_error *error)
{
    int descriptor = -1;
    MR_TRY(mr_file_open(path, &descriptor, error));
    return read_opened(descriptor, path, size_max, bytes, size_bytes, error);
}

mr_status mr_file_read_regular(const char *path, size_t size_max, char **bytes, size_t *size_bytes, mr_error *error)
{
    int descriptor = -1;
    MR_TRY(mr_file_open_regular(path, &descriptor, error));
    return read_opened(descriptor, path, size_max, bytes, size_bytes, error);
}

mr_file_stamp mr_file_stamp_from(const struct stat *about)
{
    return (mr_file_stamp){.size_bytes = (uint64_t)about->st_size,
                           .modified_ns = (int64_t)about->st_mtim.tv_sec * 1'000'000'000 + about->st_mtim.tv_nsec};
}

mr_status mr_file_stamp_of(const char *path, mr_file_stamp *stamp, mr_error *error)
{
    struct stat about;
    if (stat(path, &about) != 0) return mr_file_fail(error, errno, "open", path);
    *stamp = mr_file_stamp_from(&about);
    return MR_OK;
}

bool mr_file_exists(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0;
}

mr_status mr_file_make_directories(const char *path, mr_error *error)
{
    char *part = strdup(path);
    if (part == nullptr) return mr_fail_memory(error, strlen(path));
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
                status = mr_file_fail(error, number, "create directory", part);
            else if (!S_ISDIR(about.st_mode))
                status = mr_file_fail(error, ENOTDIR, "create directory", path);
        }
        end[1] = after;
    }
    free(part);
    return status;
}

mr_status mr_file_remove(const char *path, mr_error *error)
{
    if (unlink(path) == 0 || errno == ENOENT) return MR_OK;
    return mr_file_fail(error, errno, "remove", path);
}

mr_status mr_file_sync_directory(const char *path, mr_error *error)
{
    char *directory = directory_of(path);
    if (directory == nullptr) return mr_fail_memory(error, strlen(path));
    mr_status status = MR_OK;
    int descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* A directory that is writable but not readable cannot be opened; then only the rename is done. */
    if (descriptor >= 0) {
        if (fsync(descriptor) != 0 && errno != EINVAL && errno != ENOTSUP)
            status = mr_file_fail(error, errno, "write", directory);
        (void)close(descriptor);
    }
    free(directory);
    return status;
}

mr_status mr_file_replace(const char *source, const char *target, mr_error *error)
{
    MR_TRY(check_replaceable(target, error));
    return rename(source, target) == 0 ? MR_OK : mr_file_fail(error, errno, "rename to", target);
}

mr_status mr_file_rename(const char *source, const char *target, mr_error *error)
{
    MR_TRY(mr_file_replace(source, target, error));
    return mr_file_sync_directory(target, error);
}
