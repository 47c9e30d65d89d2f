/* Variables from a checkpoint. */
#ifndef MR_TOOLS_GRAPH_RUN_RESTORE_H
#define MR_TOOLS_GRAPH_RUN_RESTORE_H

#include <millrace/session.h>

/* Sets every variable of the graph but the local ones.
 * path    a checkpoint's prefix or one of its files; a directory, or its file `checkpoint`: the latest checkpoint there
 * errors  MR_NOT_FOUND naming the variables that the checkpoint lacks, when there is no checkpoint, or when the graph has no
 *         variables */
mr_status restore_variables(mr_graph *graph, mr_session *session, const char *path, mr_error *error);

#endif
