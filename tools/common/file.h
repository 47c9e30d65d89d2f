/* Files: complete reads and writes, atomic replacement, and one error message for each way in which a system call can
 * fail.
 *
 * An atomic write goes to path + FILE_PARTIAL, which is locked so that only one writer at a time can use it, and is
 * then renamed: the final name refers to the old file or to the complete new one. Only regular files are replaced;
 * other outputs, such as pipes, are written directly. */
#ifndef MR_TOOLS_FILE_H
#define MR_TOOLS_FILE_H

#include <millrace/status.h>
#include <stdint.h>

/* The suffix of a file that is being written. */
#define FILE_PARTIAL ".partial"

/* Reports "cannot ACTION PATH: REASON" for an errno: NOT_FOUND, PERMISSION_DENIED (also read-only file systems),
 * RESOURCE_EXHAUSTED (disk full, quota, file too large, too many open files), ALREADY_EXISTS, INVALID_ARGUMENT (is a
 * directory, name too long), UNAVAILABLE for I/O errors and all others.
 * action  "open", "write", "rename", … */
mr_status file_fail(mr_error *error, int number, const char *action, const char *path);

/* ---- Read ---- */

/* Opens a file for reading; a directory is an error. */
mr_status file_open(const char *path, int *descriptor, mr_error *error);
/* Reads size_bytes at an offset, or fewer at the end of the file; *done is the number of bytes read.
 * threads  safe from any thread */
mr_status file_read_at(int descriptor, const char *path, uint64_t offset, void *bytes, size_t size_bytes, size_t *done,
                       mr_error *error);
/* Reads a complete file of at most size_max bytes.
 * bytes   owned by the caller: free(); followed by a null byte that is not counted
 * errors  MR_RESOURCE_EXHAUSTED if the file is larger */
mr_status file_read_all(const char *path, size_t size_max, char **bytes, size_t *size_bytes, mr_error *error);

/* Whether a file begins with these bytes; false if it cannot be read. Does not wait for a pipe. */
bool file_begins_with(const char *path, const void *bytes, size_t size_bytes);

/* ---- Write ---- */

/* Writes a complete file atomically and syncs it to disk.
 * errors  MR_ABORTED if another writer, of any process, has it open */
mr_status file_write_all(const char *path, const void *bytes, size_t size_bytes, mr_error *error);
/* The same without a sync, which would dominate the time for thousands of files: after a power failure the file may be
 * incomplete.
 * errors  MR_INVALID_ARGUMENT also if the path is not a regular file */
mr_status file_write_unsynced(const char *path, const void *bytes, size_t size_bytes, mr_error *error);

/* ---- Names ---- */

/* Distinguishes versions of a file. */
typedef struct file_stamp {
    uint64_t size_bytes;
    int64_t modified_ns;
} file_stamp;

struct stat;
file_stamp file_stamp_from(const struct stat *about);
/* errors  MR_NOT_FOUND if the file does not exist */
mr_status file_stamp_of(const char *path, file_stamp *stamp, mr_error *error);
bool file_exists(const char *path);
/* Creates the directory and its parents; existing directories are not an error. */
mr_status file_make_directories(const char *path, mr_error *error);
/* Removes a file; a file that does not exist is not an error. */
mr_status file_remove(const char *path, mr_error *error);
/* Renames a file. An existing regular file of the target name is replaced.
 * errors  MR_INVALID_ARGUMENT if the target is anything else: a directory, a device, a pipe, a socket */
mr_status file_replace(const char *source, const char *target, mr_error *error);
/* The same, then syncs the directory, so that the new name survives a power failure. */
mr_status file_rename(const char *source, const char *target, mr_error *error);

#endif
