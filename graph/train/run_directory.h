/* The directory of a training run, which one run at a time may use. */
#ifndef MR_GRAPH_TRAIN_RUN_DIRECTORY_H
#define MR_GRAPH_TRAIN_RUN_DIRECTORY_H

#include <millrace/status.h>

/* {0} is closed. */
typedef struct mr_run_directory {
    bool is_open;
    int descriptor; /* holds the lock */
} mr_run_directory;

/* Creates the directory and locks it: a second run would remove and replace the checkpoints of the first. The lock ends
 * with the descriptor, however the process ends. File systems without locks are used without one.
 * errors  MR_ABORTED: another run is using it */
mr_status mr_run_directory_open(const char *path, mr_run_directory *directory, mr_error *error);
/* Refuses the path of something else; it may not exist yet. */
mr_status mr_run_directory_check(const char *path, mr_error *error);
void mr_run_directory_close(mr_run_directory *directory);

#endif
