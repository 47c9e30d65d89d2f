/* The command line of graph-run. */
#ifndef MR_TOOLS_GRAPH_RUN_OPTIONS_H
#define MR_TOOLS_GRAPH_RUN_OPTIONS_H

#include <stdint.h>

constexpr int ITEMS_MAX = 256;

typedef struct options {
    const char *graph, *restore, *write, *device;
    const char *tags, *save, *logdir, *feeds_file, *out, *trace, *dump, *dump_nodes, *pprof;
    const char *profile_view; /* "op", "scope" or "graph"; null: the slowest nodes */
    const char *feeds[ITEMS_MAX], *fetches[ITEMS_MAX], *targets[ITEMS_MAX], *firsts[ITEMS_MAX];
    int feed_count, fetch_count, target_count, first_count;
    int64_t steps;   /* 0: not given */
    int64_t threads; /* 0: not given */
    int64_t seed;
    double timeout; /* seconds; 0: not given */
    bool list, profile, queue_runners, read_only, no_optimization, no_recompute, has_seed;
} options;

/* Returns -1 to continue, else the exit status, after printing the help, the version or an error. */
int options_parse(int argc, char **argv, options *o);
/* Whether the options give something to run. */
bool options_run_something(const options *o);

#endif
