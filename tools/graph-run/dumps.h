/* --dump: the values of all nodes of each step, as files. */
#ifndef MR_TOOLS_GRAPH_RUN_DUMPS_H
#define MR_TOOLS_GRAPH_RUN_DUMPS_H

#include "graph-run/options.h"

#include <millrace/debug.h>

typedef struct dumps {
    mr_dumper *dumper; /* null: nothing is dumped */
    bool is_reported;  /* the first NaN or infinity */
    bool has_patterns; /* --dump-nodes */
} dumps;

/* Without --dump it does nothing. o: borrowed until dumps_close */
mr_status dumps_open(dumps *d, const options *o, mr_error *error);
/* mr_step_run_with, with a dump of the step. number: counts steps from 0 */
mr_status dumps_run(dumps *d, mr_graph *graph, mr_step *step, mr_feeds feeds, mr_outputs fetches,
                    mr_run_options options, mr_tensor *results, int64_t number, mr_error *error);
/* Reports where the dumps are. */
void dumps_close(dumps *d);

#endif
