/* What a session has run, for tests of the plan. */
#ifndef MR_TESTS_GRAPH_RAN_H
#define MR_TESTS_GRAPH_RAN_H

#include "tests/test.h"
#include <millrace/session.h>

/* The number of calls of this operator, or of any if it is null, in the last run, which was traced. */
static inline int ran(const mr_session *session, const char *op)
{
    mr_node_time times[64];
    int count = mr_session_trace_times(session, times, 64), found = 0;
    for (int i = 0; i < count; i++) found += !op || strcmp(times[i].op, op) == 0;
    return found;
}

#endif
