/* --logdir: what the steps fetch, for TensorBoard. */
#ifndef MR_TOOLS_GRAPH_RUN_EVENTS_H
#define MR_TOOLS_GRAPH_RUN_EVENTS_H

#include "graph-run/options.h"

#include <millrace/train.h>

/* Whether an output is a serialized Summary. */
bool events_is_summary(mr_output output);
/* Writes the results of a step, one for each fetch: summaries, and numbers under their names.
 * number  counts steps from 0, for a graph without a global step */
mr_status events_write(mr_event_writer *events, const options *o, mr_graph *graph, mr_session *session,
                       const mr_output *fetches, const mr_tensor *results, int64_t number, mr_error *error);

#endif
