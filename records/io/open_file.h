/* Files that are read at any place, as many as there are, with a bounded number of them open at once: a dataset may have
 * thousands of shards and a process only a thousand descriptors. The files used least are closed and opened again later.
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
 * is_random  no read-ahead by the system: the file is read here and there
 * about      its status when it was opened
 * errors     as mr_file_open */
mr_status mr_open_file_new(const char *path, bool is_random, mr_open_file **file, struct stat *about, mr_error *error);
/* Nobody has it acquired. Null is allowed. */
void mr_open_file_free(mr_open_file *file);

/* A descriptor that stays open until it is released. Each call that returns MR_OK needs one release.
 * errors   as mr_file_open when the file has to be opened again; MR_ABORTED when it is not the same file any more
 * threads  safe from any thread; without a lock while the file is open */
mr_status mr_open_file_acquire(mr_open_file *file, int *descriptor, mr_error *error);
void mr_open_file_release(mr_open_file *file);

/* The most files that are kept open while nobody has them acquired: a quarter of what the process may open at the time a
 * file is opened, at most 1,024. When the process cannot open or create another file, idle ones are closed.
 * tests  limit > 0 replaces it, 0 restores it */
void mr_open_file_limit(int limit);
/* How many are open now. */
int mr_open_file_count(void);

#endif
