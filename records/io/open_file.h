/* Random-access files with a limit on how many of them are open: a dataset may have thousands of shards, but a process
 * may open only about a thousand files. Files that have not been used recently are closed and reopened on demand.
 *
 * ```c
 * mr_open_file *file = nullptr;
 * MR_TRY(mr_open_file_new(path, false, &file, &about, error));
 * int descriptor;
 * MR_TRY(mr_open_file_acquire(file, &descriptor, error));
 * status = mr_file_read_at(descriptor, path, offset, bytes, size_bytes, &done, error);
 * mr_open_file_release(file);
 * mr_open_file_free(file);
 * ``` */
#ifndef MR_RECORDS_OPEN_FILE_H
#define MR_RECORDS_OPEN_FILE_H

#include <millrace/status.h>

struct stat;
typedef struct mr_open_file mr_open_file;

/* Opens the file; path is copied.
 * is_random  disables the system's read-ahead, for reads at scattered offsets
 * about      receives the file's status at the time it was opened
 * errors     as mr_file_open */
mr_status mr_open_file_new(const char *path, bool is_random, mr_open_file **file, struct stat *about, mr_error *error);
/* The file must not be acquired. Null is allowed. */
void mr_open_file_free(mr_open_file *file);

/* Returns a descriptor that stays open until it is released. Each call that returns MR_OK requires one release.
 * errors   as mr_file_open if the file has to be reopened; MR_ABORTED if it is no longer the same file
 * threads  safe from any thread; takes no lock while the file is open */
mr_status mr_open_file_acquire(mr_open_file *file, int *descriptor, mr_error *error);
void mr_open_file_release(mr_open_file *file);

/* Sets the maximum number of files that stay open while they are not acquired. Default: a quarter of the process's
 * limit on open files at the time a file is opened, at most 1,024. Idle files are also closed when the process cannot
 * open or create another file.
 * tests  limit > 0 replaces the default, 0 restores it */
void mr_open_file_limit(int limit);
/* Number of open files. */
int mr_open_file_count(void);

#endif
