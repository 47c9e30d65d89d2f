/* What the files of gfile have in common. */
#ifndef MR_RECORDS_GFILE_H
#define MR_RECORDS_GFILE_H

#include <millrace/file.h>

/* Reports "cannot ACTION PATH: REASON" with TensorFlow's code for an errno. */
mr_status mr_gfile_fail(mr_error *error, int number, const char *action, const char *path);
/* The path without "file://"; borrowed.
 * errors  MR_INVALID_ARGUMENT: null; MR_UNIMPLEMENTED: another scheme */
mr_status mr_gfile_local(const char *path, const char **local, mr_error *error);

/* Names, sorted by bytes. {0} is empty. */
typedef struct mr_gfile_names {
    char **items; /* owned */
    size_t count, capacity;
} mr_gfile_names;
mr_status mr_gfile_names_add(mr_gfile_names *names, const char *name, mr_error *error);
void mr_gfile_names_sort(mr_gfile_names *names);
mr_status mr_gfile_names_tensor(const mr_gfile_names *names, mr_tensor *tensor, mr_error *error);
void mr_gfile_names_deinit(mr_gfile_names *names);

#endif
