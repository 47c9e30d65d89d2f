/* --trace: the times of a run in Chrome's trace event format. */
#ifndef MR_TOOLS_GRAPH_RUN_TRACE_H
#define MR_TOOLS_GRAPH_RUN_TRACE_H

#include <millrace/session.h>

/* The times of the session's last traced run; owned by the caller: free(). */
mr_status trace_times(const mr_session *session, mr_node_time **times, int32_t *count, mr_error *error);
mr_status trace_write(const mr_session *session, const char *path, mr_error *error);

#endif
