/* File I/O for the formats of this directory: complete writes, atomic replacement, and one error message for each way
 * in which a system call can fail.
 *
 * ```c
 * mr_file_output output = {0};
 * MR_TRY(mr_file_output_open(&output, path, true, error));
 * mr_status status = mr_file_output_write(&output, bytes, size_bytes, error);
 * if (status != MR_OK) return mr_file_output_discard(&output), status;
 * return mr_file_output_commit(&output, error);
 * ```
 *
 * An atomic output is written as path + ".partial". The file that is written to is locked, so that only one writer at a
 * time can use it.
 * Commit syncs the file, renames it, then syncs the directory: after a crash or a power failure the final name refers
 * to the old file or to the complete new one. Only regular files are replaced: an output to a pipe or a device is
 * written directly, whether it is atomic or not. */
#ifndef MR_RECORDS_FILE_H
#define MR_RECORDS_FILE_H

#include <millrace/status.h>
#include <stdint.h>

/* The suffix of an atomic output's name until it is complete. */
#define MR_FILE_PARTIAL ".partial"

/* Reports "cannot ACTION PATH: REASON" for an errno: NOT_FOUND, PERMISSION_DENIED (also read-only file systems),
 * RESOURCE_EXHAUSTED (disk full, quota, file too large, too many open files), ALREADY_EXISTS, INVALID_ARGUMENT (is a
 * directory, name too long), UNAVAILABLE for I/O errors and all others.
 * action  "open", "write", "rename", … */
mr_status mr_file_fail(mr_error *error, int number, const char *action, const char *path);
/* Only the reason: "the disk is full". Static, or the result of strerror. */
const char *mr_file_reason(int number);

/* ---- Write ---- */

/* Distinguishes versions of a file. */
typedef struct mr_file_stamp {
    uint64_t size_bytes;
    int64_t modified_ns;
} mr_file_stamp;

/* {0} is closed. One thread at a time. */
typedef struct mr_file_output {
    bool is_open;
    bool is_atomic;
    bool no_sync; /* an atomic output is renamed without a sync */
    bool no_lock; /* set before open: one that is not atomic is not locked */
    int descriptor;
    uint64_t size_bytes; /* written so far */
    char *path;          /* owned; the final name */
    char *partial;       /* owned; the name that is written to: the final name if the output is not atomic */
} mr_file_output;

/* Creates or truncates the file. On failure the output is closed.
 * errors  as mr_file_fail; MR_ABORTED for a file that another writer of the same kind, of any process, has open */
mr_status mr_file_output_open(mr_file_output *output, const char *path, bool atomic, mr_error *error);
/* Writes all bytes directly to the kernel; callers buffer small writes themselves. */
mr_status mr_file_output_write(mr_file_output *output, const void *bytes, size_t size_bytes, mr_error *error);
/* Syncs the bytes written so far to disk. */
mr_status mr_file_output_sync(mr_file_output *output, mr_error *error);
/* The current size and modification time of the file. */
mr_status mr_file_output_stamp(const mr_file_output *output, mr_file_stamp *stamp, mr_error *error);
/* Closes the output; an atomic output is synced and renamed to its final name. On error it is discarded. */
mr_status mr_file_output_commit(mr_file_output *output, mr_error *error);
/* Closes the output and removes the partial file of an atomic one. A closed output is allowed. */
void mr_file_output_discard(mr_file_output *output);

/* Writes a complete small file atomically. */
mr_status mr_file_write_all(const char *path, const void *bytes, size_t size_bytes, mr_error *error);
/* The same without a sync, which would dominate the time for thousands of files: after a power failure the file may be
 * incomplete.
 * errors  as mr_file_replace */
mr_status mr_file_write_no_sync(const char *path, const void *bytes, size_t size_bytes, mr_error *error);

/* ---- Read ---- */

/* Opens a file for reading; a directory is an error.
 * errors  as mr_file_fail */
mr_status mr_file_open(const char *path, int *descriptor, mr_error *error);
/* The same for a file that is found by its name in a directory, not chosen by the user: a pipe would block, so anything
 * but a regular file is MR_INVALID_ARGUMENT. */
mr_status mr_file_open_regular(const char *path, int *descriptor, mr_error *error);
/* As mr_file_open, but does not close idle files when the process has too many open files. */
mr_status mr_file_open_once(const char *path, int *descriptor, mr_error *error);
/* Sets the function that closes an idle file when the process has too many open files; it returns false if no file is
 * idle. The failed call, which opens or creates a file, is then repeated.
 * threads  set and called from any thread */
void mr_file_set_reclaim(bool (*reclaim)(void));
/* Reads size_bytes at an offset, or fewer at the end of the file; *done is the number of bytes read.
 * threads  safe from any thread */
mr_status mr_file_read_at(int descriptor, const char *path, uint64_t offset, void *bytes, size_t size_bytes,
                          size_t *done, mr_error *error);
/* Starts reading bytes into the page cache without waiting. Best effort: failure is ignored. */
void mr_file_prefetch(int descriptor, uint64_t offset, uint64_t size_bytes);
/* Reads a complete file of at most size_max bytes.
 * bytes   owned by the caller: free(); followed by a null byte that is not counted
 * errors  MR_RESOURCE_EXHAUSTED if the file is larger */
mr_status mr_file_read_all(const char *path, size_t size_max, char **bytes, size_t *size_bytes, mr_error *error);
/* The same, opened by mr_file_open_regular. */
mr_status mr_file_read_regular(const char *path, size_t size_max, char **bytes, size_t *size_bytes, mr_error *error);

/* ---- Names ---- */

struct stat;
mr_file_stamp mr_file_stamp_from(const struct stat *about);
/* errors  MR_NOT_FOUND if the file does not exist */
mr_status mr_file_stamp_of(const char *path, mr_file_stamp *stamp, mr_error *error);
bool mr_file_exists(const char *path);
/* Creates the directory and its parents; existing directories are not an error. */
mr_status mr_file_make_directories(const char *path, mr_error *error);
/* Removes a file; a file that does not exist is not an error. */
mr_status mr_file_remove(const char *path, mr_error *error);
/* Renames a file. An existing regular file of the target name is replaced.
 * errors  MR_INVALID_ARGUMENT if the target is anything else: a directory, a device, a pipe, a socket */
mr_status mr_file_replace(const char *source, const char *target, mr_error *error);
/* The same, then syncs the directory. */
mr_status mr_file_rename(const char *source, const char *target, mr_error *error);
/* Syncs the directory that contains path, so that a new name in it survives a power failure. */
mr_status mr_file_sync_directory(const char *path, mr_error *error);

#endif
