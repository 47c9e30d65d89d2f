/* Errors of a run in the words of the command line. */
#ifndef MR_TOOLS_GRAPH_RUN_HINTS_H
#define MR_TOOLS_GRAPH_RUN_HINTS_H

#include "graph-run/about.h"
#include "graph-run/options.h"

/* Adds to an error of a run what the user can do: which node initializes the iterator or the variables; and names the
 * option whose value is the reason. */
void hints_add(mr_model *model, const options *o, mr_error *error);
/* Adds to an error of reading a graph which file has the graph, if the path is that of a checkpoint. */
void hints_add_graph(const char *path, mr_error *error);

#endif
