/* --profile and --trace: the times of the session's last traced run. */
#ifndef MR_TOOLS_GRAPH_RUN_TRACE_H
#define MR_TOOLS_GRAPH_RUN_TRACE_H

#include <millrace/session.h>

/* Prints the slowest operators. */
mr_status trace_print(const mr_session *session, mr_error *error);
/* In Chrome's trace event format. */
mr_status trace_write(const mr_session *session, const char *path, mr_error *error);

#endif
