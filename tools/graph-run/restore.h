/* Finds the checkpoint that a path means. */
#ifndef MR_TOOLS_GRAPH_RUN_RESTORE_H
#define MR_TOOLS_GRAPH_RUN_RESTORE_H

#include <millrace/model.h>

/* The prefix of the checkpoint that a path means (see below). Whether it exists is not checked. */
mr_status restore_find(const char *path, char *prefix, size_t size, mr_error *error);

/* Restores the variables of the graph.
 * path    the prefix of a checkpoint or one of its files; or a directory, or its file `checkpoint`, for the latest
 *         checkpoint there
 * errors  MR_NOT_FOUND if the checkpoint lacks variables (the message names them), if there is no checkpoint, or if the
 *         graph has no variables */
mr_status restore_checkpoint(mr_model *model, mr_session *session, const char *path, mr_error *error);

#endif
