/* Texts about a graph: --list, and what to try first. */
#ifndef MR_TOOLS_GRAPH_RUN_EXPLAIN_H
#define MR_TOOLS_GRAPH_RUN_EXPLAIN_H

#include "graph-run/about.h"

/* Prints feeds, variables, initializers and so on, then every node. */
mr_status list_graph(mr_model *model, mr_error *error);
/* Prints what the graph has, and commands to try. path: as the user wrote it */
mr_status explain_graph(mr_model *model, const char *path, mr_error *error);

#endif
