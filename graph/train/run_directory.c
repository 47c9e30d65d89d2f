/* The directory of a training run, and its lock. */
#include "graph/train/run_directory.h"
#include "records/io/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

mr_status mr_run_directory_open(const char *path, mr_run_directory *directory, mr_error *error)
{
    assert(!directory->is_open);
    MR_TRY(mr_file_make_directories(path, error));
    const int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return mr_file_fail(error, errno, "open", path);
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        (void)close(descriptor);
        return mr_fail(error, MR_ABORTED, "%s: another training run is using this directory", path);
    }
    *directory = (mr_run_directory){true, descriptor};
    return MR_OK;
}

mr_status mr_run_directory_check(const char *path, mr_error *error)
{
    struct stat info;
    if (*path == '\0') return mr_fail(error, MR_INVALID_ARGUMENT, "the name of the directory is empty");
    if (stat(path, &info) != 0) return errno == ENOENT ? MR_OK : mr_file_fail(error, errno, "open", path);
    return S_ISDIR(info.st_mode) ? MR_OK : mr_fail(error, MR_INVALID_ARGUMENT, "%s is not a directory", path);
}

void mr_run_directory_close(mr_run_directory *directory)
{
    if (directory->is_open) (void)close(directory->descriptor);
    *directory = (mr_run_directory){0};
}
