/* The files that a run writes: checked before the first step, so that a wrong path does not cost the results. */
#ifndef MR_TOOLS_GRAPH_RUN_OUTPUTS_H
#define MR_TOOLS_GRAPH_RUN_OUTPUTS_H

#include "graph-run/options.h"
#include <millrace/graph.h>

/* Creates the directories of --write and --save, and checks that the files of --write, --out, --trace and --save can be
 * created. Existing files are unchanged.
 * errors  MR_INVALID_ARGUMENT: a path is a directory, or two fetches have the same file; else why a file cannot be
 *         created */
mr_status outputs_check(const options *o, mr_error *error);
/* Whether the fetches of all steps can be in the file of --out, as far as their shapes are known.
 * errors  MR_INVALID_ARGUMENT */
mr_status outputs_check_size(const options *o, const mr_output *fetches, int64_t steps, mr_error *error);
/* Writes a fetch of --write to DIR/NAME.npy. */
mr_status outputs_write(const char *directory, const char *name, const mr_tensor *value, mr_error *error);

#endif
