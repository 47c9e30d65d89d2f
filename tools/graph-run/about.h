/* What a graph has: found by operators, edges and names, for --list and for a user who does not know the graph. */
#ifndef MR_TOOLS_GRAPH_RUN_ABOUT_H
#define MR_TOOLS_GRAPH_RUN_ABOUT_H

#include <millrace/model.h>

/* Nodes in the order of the graph; owned. */
typedef struct node_list {
    mr_node **items;
    int32_t count;
} node_list;

typedef struct about {
    node_list feeds;        /* placeholders */
    node_list variables;    /* also local ones */
    node_list initializers; /* of variables, tables, iterators; the first ones are not run by others of the list */
    int32_t top_initializers;
    node_list trains; /* that update variables by an optimizer */
    node_list losses; /* scalars that are, or are called, a loss; the most likely first */
    node_list iterators;
    node_list summaries;
} about;

/* errors  MR_RESOURCE_EXHAUSTED */
mr_status about_find(mr_model *model, about *about, mr_error *error);
void about_deinit(about *about);
/* Those of the placeholders without a default value that a node needs. The result is owned by the caller. */
mr_status about_needs(const mr_graph *graph, mr_node *const *nodes, int32_t count, node_list *feeds, mr_error *error);
/* What the steps read that may end. */
typedef struct about_inputs {
    bool has_queue, has_iterator;
} about_inputs;
mr_status about_find_inputs(const mr_graph *graph, mr_node *const *nodes, int32_t count, const mr_output *feeds,
                            int32_t feed_count, about_inputs *inputs, mr_error *error);
/* Whether a checkpoint contains all that an initializer sets. It has no local variables, tables and iterators. */
bool about_is_saved(const mr_graph *graph, const mr_node *initializer);

#endif
