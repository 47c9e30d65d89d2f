/* What summaries have in common: options, names and tags. */
#ifndef MR_GRAPH_TRAIN_SUMMARY_H
#define MR_GRAPH_TRAIN_SUMMARY_H

#include "graph/train/train.h"
#include <millrace/summary.h>

/* The options that a summary has; the others are errors. */
typedef enum mr_summary_choices {
    MR_SUMMARY_HAS_FAMILY = 1,
    MR_SUMMARY_HAS_MAX_OUTPUTS = 2,
    MR_SUMMARY_HAS_TITLE = 4, /* display_name and description */
    MR_SUMMARY_HAS_PLUGIN = 8,
    MR_SUMMARY_HAS_CURVE = 16, /* weights and threshold_count */
} mr_summary_choices;

/* Reads the options, with the defaults filled in. False after an error of the graph, which names the summary. */
bool mr_summary_read(mr_graph *graph, const char *name, const mr_summary_options *given, int choices,
                     mr_summary_options *options);
/* The name as a part of a tag and of a node's name; in the graph's arena. */
const char *mr_summary_clean(mr_graph *graph, const char *name);
/* Opens the scope of a summary and adds its tag, a constant called tag_name. Returns the tag. */
mr_output mr_summary_begin(mr_graph *graph, const char *name, const mr_summary_options *options, const char *tag_name);
/* Closes the scope and adds the summary to the collections. */
mr_output mr_summary_end(mr_graph *graph, mr_output summary, const mr_summary_options *options);
/* A string scalar. */
mr_output mr_summary_string(mr_graph *graph, const char *name, mr_string value);

#endif
