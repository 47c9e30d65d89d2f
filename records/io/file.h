/* Files on disk, as the formats of this directory need them: whole writes, replacement that is never seen half done, and
 * one sentence for each way in which the system says no.
 *
 * ```c
 * mr_file_output output = {0};
 * MR_TRY(mr_file_output_open(&output, path, true, error));
 * mr_status status = mr_file_output_write(&output, bytes, size_bytes, error);
 * if (status != MR_OK) return mr_file_output_abandon(&output), status;
 * return mr_file_output_commit(&output, error);
 * ```
 *
 * An atomic output is written under path + ".partial", which one writer at a time has locked. Commit forces the bytes to
 * the disk, renames, and forces the directory, in this order: after a crash or a power cut the final name holds the old
 * file or the whole new one. Only regular files are replaced: an output to a pipe or a device is written directly, whether
 * it is atomic or not. */
#ifndef MR_RECORDS_FILE_H
#define MR_RECORDS_FILE_H

#include <millrace/status.h>
#include <stdint.h>

/* What an atomic output adds to the name until it is whole. */
#define MR_FILE_PARTIAL ".partial"

/* "cannot ACTION PATH: REASON" for an errno: NOT_FOUND, PERMISSION_DENIED (also read-only file systems),
 * RESOURCE_EXHAUSTED (disk full, quota, file too large, too many open files), ALREADY_EXISTS, INVALID_ARGUMENT (is a
 * directory, name too long), UNAVAILABLE for input/output errors and the rest.
 * action  "open", "write", "rename", … */
mr_status mr_file_fail(mr_error *error, int number, const char *action, const char *path);
/* The reason alone: "the disk is full". Static, or strerror's. */
const char *mr_file_reason(int number);

/* ---- Write ---- */

/* What tells one version of a file from the next. */
typedef struct mr_file_stamp {
    uint64_t size_bytes;
    int64_t modified_ns;
} mr_file_stamp;

/* {0} is closed. One thread at a time. */
typedef struct mr_file_output {
    bool is_open;
    bool is_atomic;
    bool is_unforced; /* an atomic output is renamed without forcing it to the disk */
    int descriptor;
    uint64_t size_bytes; /* written so far */
    char *path;          /* owned; the final name */
    char *partial;       /* owned; where the bytes go: the final name itself when not atomic */
} mr_file_output;

/* Creates the file, or empties what is there. The output is closed when this fails.
 * errors  as mr_file_fail; MR_ABORTED for an atomic output that another writer, of any process, has open */
mr_status mr_file_output_open(mr_file_output *output, const char *path, bool atomic, mr_error *error);
/* Writes all bytes, straight to the kernel: callers gather small pieces themselves. */
mr_status mr_file_output_write(mr_file_output *output, const void *bytes, size_t size_bytes, mr_error *error);
/* Forces what was written to the disk. */
mr_status mr_file_output_sync(mr_file_output *output, mr_error *error);
/* The file as it is now. */
mr_status mr_file_output_stamp(const mr_file_output *output, mr_file_stamp *stamp, mr_error *error);
/* Closes; an atomic output is forced to the disk and takes its final name. On an error it is abandoned. */
mr_status mr_file_output_commit(mr_file_output *output, mr_error *error);
/* Closes and removes an atomic output's partial file. A closed output is allowed. */
void mr_file_output_abandon(mr_file_output *output);

/* Puts a whole small file under its name, atomically. */
mr_status mr_file_write_all(const char *path, const void *bytes, size_t size_bytes, mr_error *error);
/* The same without forcing it to the disk, which for thousands of files would take most of the time: a power cut may leave
 * a torn file under the name.
 * errors  as mr_file_replace */
mr_status mr_file_write_unforced(const char *path, const void *bytes, size_t size_bytes, mr_error *error);

/* ---- Read ---- */

/* Opens for reading; never a directory.
 * errors  as mr_file_fail */
mr_status mr_file_open(const char *path, int *descriptor, mr_error *error);
/* The same without closing idle files when the process has too many open. */
mr_status mr_file_open_once(const char *path, int *descriptor, mr_error *error);
/* Sets what closes an idle file when the process has too many open; it returns false when there is none. The call that met
 * the limit, to open or to create, is then repeated.
 * threads  set and called from any thread */
void mr_file_set_reclaim(bool (*reclaim)(void));
/* Reads size_bytes at an offset, or as many as there are before the end: *done says how many.
 * threads  safe from any thread */
mr_status mr_file_read_at(int descriptor, const char *path, uint64_t offset, void *bytes, size_t size_bytes,
                          size_t *done, mr_error *error);
/* Lets the system begin to read bytes that are soon wanted; does not wait for them, and cannot fail. */
void mr_file_prefetch(int descriptor, uint64_t offset, uint64_t size_bytes);
/* A whole file of at most size_max bytes.
 * bytes   owned by the caller: free(); a terminator follows the bytes and is not counted
 * errors  MR_RESOURCE_EXHAUSTED when it is larger */
mr_status mr_file_read_all(const char *path, size_t size_max, char **bytes, size_t *size_bytes, mr_error *error);

/* ---- Names ---- */

struct stat;
mr_file_stamp mr_file_stamp_from(const struct stat *about);
/* errors  MR_NOT_FOUND when there is none */
mr_status mr_file_stamp_of(const char *path, mr_file_stamp *stamp, mr_error *error);
bool mr_file_exists(const char *path);
/* Makes the directory and those above it; one that is there is fine. */
mr_status mr_file_make_directories(const char *path, mr_error *error);
/* Removes a file; one that is not there is fine. */
mr_status mr_file_remove(const char *path, mr_error *error);
/* Gives a file another name, which may be that of a regular file.
 * errors  MR_INVALID_ARGUMENT when anything else has that name: a directory, a device, a pipe, a socket */
mr_status mr_file_replace(const char *source, const char *target, mr_error *error);
/* The same, and forces the directory. */
mr_status mr_file_rename(const char *source, const char *target, mr_error *error);
/* Forces the directory that holds path, so that a name given in it survives a power cut. */
mr_status mr_file_sync_directory(const char *path, mr_error *error);

#endif
