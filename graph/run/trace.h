/* What one run records for its tensorflow.RunMetadata: the times of its calls, also those in functions. */
#ifndef MR_GRAPH_RUN_TRACE_H
#define MR_GRAPH_RUN_TRACE_H

#include "graph/ir/convert.h"
#include "graph/run/frame.h"
#include "graph/state/run.h"
#include "proto/run.pb-c.h"

/* errors  MR_RESOURCE_EXHAUSTED */
mr_status mr_run_trace_new(mr_run_trace **trace, mr_error *error);
void mr_run_trace_free(mr_run_trace *trace); /* null is allowed */
/* Records a call whose outputs have been computed and are still in their slots. The times are those of
 * mr_run_trace_now. Calls are dropped when the records are too large.
 * threads  any */
void mr_run_trace_add(mr_run_trace *trace, const mr_frame *frame, const mr_call *call, uint64_t start_ns,
                      uint64_t end_ns);
uint64_t mr_run_trace_now(void);

/* Serializes the RunMetadata as a scalar of dtype MR_STRING.
 * trace    becomes step_stats; null: none
 * program  becomes the only one of partition_graphs; null: none
 * errors   MR_RESOURCE_EXHAUSTED */
mr_status mr_run_metadata_make(const mr_run_trace *trace, const mr_program *program, mr_session *session,
                               mr_tensor *metadata, mr_error *error);

/* ---- Watched values (watch.c) ---- */

/* Shows the outputs of a call, which are still in their slots, to the run's watch.
 * errors  those of the watch
 * threads any */
mr_status mr_watch_call(const mr_frame *frame, const mr_call *call, mr_error *error);
/* Shows the constants of a program to a watch. */
mr_status mr_watch_constants(const mr_watch *watch, const mr_program *program, mr_device *cpu, mr_error *error);

/* ---- Programs as graphs (program_graph.c) ---- */

/* What TensorFlow puts before the name of a device of this process. */
#define MR_TASK_NAME "/job:localhost/replica:0/task:0"
/* The name of a device, as TensorFlow reports it. Null: no memory. */
char *mr_device_full_name(const mr_device *device, mr_arena *arena);
/* The name of a slot's value as the input of a node: "node" or "node:1". Null: no memory. */
char *mr_program_value_name(const mr_program *program, const mr_region *region, int32_t slot, mr_arena *arena);
/* The program as a graph: its calls and constants as they were planned, with _Arg nodes for feeds and _Retval nodes for
 * fetches, as TensorFlow has them.
 * graph   that the program was planned from
 * cpu     the device of what is in host memory
 * errors  MR_RESOURCE_EXHAUSTED */
mr_status mr_program_write(const mr_program *program, const mr_graph *graph, mr_device *cpu, mr_arena *arena,
                           Mr__GraphDef **graph_def, mr_error *error);

#endif
