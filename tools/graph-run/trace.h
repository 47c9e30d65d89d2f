/* --profile and --trace: the times of the last step. */
#ifndef MR_TOOLS_GRAPH_RUN_TRACE_H
#define MR_TOOLS_GRAPH_RUN_TRACE_H

#include "graph-run/options.h"

#include <millrace/session.h>

/* Options of a step whose times are needed if the command line shows them: any step may be the last one.
 * metadata  receives the RunMetadata of the step for --trace and --profile=VIEW */
mr_run_options trace_begin(const options *o, mr_session *session, mr_tensor *metadata);
/* Prints the slowest nodes of the session's last traced run, or shows the view of --profile=VIEW. */
mr_status trace_print(const options *o, const mr_graph *graph, const mr_session *session, const mr_tensor *metadata,
                      mr_error *error);

#endif
