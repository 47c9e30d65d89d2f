/* Files and directories (tf.gfile).
 *
 * ```c
 * mr_error error = {0};
 * mr_tensor paths = {0};
 * if (mr_gfile_make_directories("data", &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * if (mr_gfile_write("data/t1.txt", MR_STR("one line\n"), &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * if (mr_gfile_glob("data/t*.txt", &paths, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * for (int64_t i = 0; i < mr_tensor_count(&paths); i++)
 *     printf("%.*s\n", (int)mr_tensor_strings(&paths)[i].size_bytes, mr_tensor_strings(&paths)[i].data);
 * mr_tensor_deinit(&paths);
 * ```
 *
 * Paths are of local files, which may be written as "file:///path". Any byte but zero and slash is allowed in a name.
 *
 * Errors. Each function fails with the code that TensorFlow gives the system's error: MR_NOT_FOUND (no such file, an
 * empty path), MR_ALREADY_EXISTS, MR_PERMISSION_DENIED (also on read-only file systems), MR_FAILED_PRECONDITION (a
 * directory where a file is expected, or the reverse; a directory that is not empty), MR_INVALID_ARGUMENT (a name that
 * is too long, a null path), MR_RESOURCE_EXHAUSTED (the disk or the quota is full, too many open files, a file that is
 * too large), MR_UNIMPLEMENTED (another scheme, such as hdfs://; renaming to another file system), MR_UNAVAILABLE (I/O
 * errors of reading and writing), MR_UNKNOWN (a loop of symbolic links, and others). Unlike TensorFlow, paths are not
 * shortened as texts: "d/../f" exists only if d does, and "f/" is not the file f.
 *
 * Threads. All functions may be called from any thread. */
#ifndef MILLRACE_FILE_H
#define MILLRACE_FILE_H

#include <millrace/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Questions ---- */

/* Whether the path names something; a symbolic link to nothing does not exist. */
MR_API bool mr_gfile_exists(const char *path);
MR_API bool mr_gfile_is_directory(const char *path);

typedef struct mr_gfile_about {
    int64_t length;     /* in bytes */
    int64_t mtime_nsec; /* of the last change of the contents, since 1970 */
    bool is_directory;
} mr_gfile_about;
/* Of the target, if path is a symbolic link. */
MR_API mr_status mr_gfile_stat(const char *path, mr_gfile_about *about, mr_error *error);

/* ---- Complete files ---- */

/* Reads a file of at most 64 GiB.
 * contents  a scalar of dtype MR_STRING, owned by the caller */
MR_API mr_status mr_gfile_read(const char *path, mr_tensor *contents, mr_error *error);
/* Creates or replaces a file. It is written as path + ".partial" and renamed when it is complete: on an error, an
 * existing file is unchanged. The target of a symbolic link is replaced. */
MR_API mr_status mr_gfile_write(const char *path, mr_string contents, mr_error *error);
/* Copies the contents and the permissions of a file; written in the same way.
 * overwrite  false: MR_ALREADY_EXISTS if target exists
 * errors     MR_INVALID_ARGUMENT: source is a directory */
MR_API mr_status mr_gfile_copy(const char *source, const char *target, bool overwrite, mr_error *error);
/* Renames a file or a directory, on the same file system.
 * overwrite  false: MR_ALREADY_EXISTS if target exists. true: replaces a file, or an empty directory by a directory */
MR_API mr_status mr_gfile_rename(const char *source, const char *target, bool overwrite, mr_error *error);
/* Removes a file, or a symbolic link itself. */
MR_API mr_status mr_gfile_remove(const char *path, mr_error *error);

/* ---- Directories ---- */

/* Creates the directory and its parents; existing directories are not an error. */
MR_API mr_status mr_gfile_make_directories(const char *path, mr_error *error);
/* The same for one directory, whose parent must exist: MR_NOT_FOUND otherwise (MkDir). As in TensorFlow, an existing
 * file is not an error either: mr_gfile_is_directory tells. */
MR_API mr_status mr_gfile_make_directory(const char *path, mr_error *error);
/* The names in a directory, sorted by bytes, without "." and "..".
 * names  a vector of dtype MR_STRING, owned by the caller */
MR_API mr_status mr_gfile_list_directory(const char *path, mr_tensor *names, mr_error *error);
/* The paths that match a pattern, sorted by bytes; none is not an error.
 *
 * pattern  "*", "?", "[a-z]" and "[!a-z]" match within a component, also a period at its beginning; "\" escapes
 * paths    a vector of dtype MR_STRING, owned by the caller. TensorFlow's start with "./" if the pattern is relative
 *          and has no directory, ours do not */
MR_API mr_status mr_gfile_glob(const char *pattern, mr_tensor *paths, mr_error *error);
/* Removes a directory with everything in it, or a file. Symbolic links are removed, not followed, in path itself as
 * well. What cannot be removed is left, and the first error is returned. */
MR_API mr_status mr_gfile_delete_recursively(const char *path, mr_error *error);

/* Receives a directory, and the sorted names in it: subdirectories (also links to such) and all others. Everything is
 * borrowed. A result other than MR_OK ends the walk with this result. */
typedef mr_status (*mr_gfile_visit)(void *context, const char *directory, const mr_tensor *subdirectories,
                                    const mr_tensor *files, mr_error *error);
/* Calls visit for path and for each directory below it. Links are followed, except to a directory that is being
 * walked.
 * in_order  true: a directory comes before those in it; false: after them */
MR_API mr_status mr_gfile_walk(const char *path, bool in_order, mr_gfile_visit visit, void *context, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
