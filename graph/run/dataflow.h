/* Runs of programs with conditionals or loops. */
#ifndef MR_GRAPH_RUN_DATAFLOW_H
#define MR_GRAPH_RUN_DATAFLOW_H

#include "graph/run/execute.h"

/* Runs the segments of a program, whose feeds are set in the frame. began_ns: start of the run if it is traced;
 * otherwise 0.
 * diverged  set if the program has a guard that is not finite; variables that are updated outside of loops are then
 *           unchanged */
mr_status mr_frame_run_segments(mr_frame *frame, uint64_t began_ns, bool *diverged, mr_error *error);

#endif
