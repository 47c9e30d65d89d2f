/* Running serialized graphs through names and flat data, for bindings in other languages. The Python package `millrace`
 * is written with this header and ctypes.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "x");
 * mr_square(g, x, .name = "y");
 * mr_tensor bytes = {0};
 * if (mr_graph_export(g, &bytes, &error) != MR_OK) return 1;
 * mr_string graph_def = mr_tensor_strings(&bytes)[0];
 *
 * mr_runner *runner = nullptr;
 * if (mr_runner_new(graph_def.data, graph_def.size_bytes, nullptr, &runner, &error) != MR_OK) return 1;
 * const char *feed = "x:0", *fetch = "y:0";
 * mr_runner_step *step = nullptr;
 * if (mr_runner_prepare(runner, &feed, 1, &fetch, 1, nullptr, 0, &step, &error) != MR_OK) return 1;
 * float numbers[] = {1, 2, 3};
 * mr_array *fed = mr_runner_feeds(step);
 * *fed = (mr_array){.dtype = MR_FLOAT, .rank = 1, .dims = {3}, .data = numbers, .size_bytes = sizeof numbers};
 * if (mr_runner_run(step, &error) != MR_OK) return 1;
 * const mr_array *result = mr_runner_results(step);
 * printf("%g of %d dimensions\n", ((const float *)result->data)[2], (int)result->rank);
 *
 * mr_runner_step_free(step);
 * mr_runner_free(runner);
 * mr_tensor_deinit(&bytes);
 * mr_graph_free(g);
 * ```
 *
 * Handles are opaque, no struct is passed by value, and dtypes, codes and flags are integers of a fixed size. The
 * layout of mr_array, mr_error and mr_session_options does not change within a version of this interface.
 *
 * A function that returns a status refuses null for a runner, a step or a result, null for a list whose count is not 0,
 * and a negative count: MR_INVALID_ARGUMENT, with the argument's name. The other functions accept null. */
#ifndef MILLRACE_RUN_H
#define MILLRACE_RUN_H

#include <millrace/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface; mr_run_version returns that of the library. A binding checks that they are equal. */
#define MR_RUN_VERSION 3
MR_API int32_t mr_run_version(void);

/* A graph and a session that runs it. */
typedef struct mr_runner mr_runner;

/* graph_def  a serialized GraphDef; borrowed for the call
 * options    null: the defaults
 * errors     MR_INVALID_ARGUMENT: not a GraphDef, or a node is invalid; MR_RESOURCE_EXHAUSTED */
MR_API mr_status mr_runner_new(const void *graph_def, size_t size_bytes, const mr_session_options *options,
                               mr_runner **runner, mr_error *error);
/* Adds the nodes and functions of another GraphDef, whose inputs may also be nodes that the graph already has. If it
 * fails, the graph is unchanged. State such as variables is kept, and prepared steps stay valid.
 * errors   those of mr_runner_new; MR_ALREADY_EXISTS: the graph has a node of that name
 * threads  any, also during runs */
MR_API mr_status mr_runner_extend(mr_runner *runner, const void *graph_def, size_t size_bytes, mr_error *error);
/* Ends the runs in progress with MR_CANCELLED, and all later ones. May be called more than once, from any thread. */
MR_API void mr_runner_close(mr_runner *runner);
/* Ends the runs in progress with MR_CANCELLED. Later runs are not affected. May be called from any thread. */
MR_API void mr_runner_cancel(mr_runner *runner);
/* Clears the resources of containers: mr_session_reset.
 * threads  any */
MR_API mr_status mr_runner_reset(mr_runner *runner, const char *const *containers, int32_t container_count,
                                 mr_error *error);
/* The last step that is freed after the runner frees the graph and its state. Null is allowed. */
MR_API void mr_runner_free(mr_runner *runner);

/* One tensor. Elements are row-major, contiguous, in host memory and in the machine's byte order.
 *
 * Numbers: data points to the elements, size_bytes is their size. sizes is not used.
 * Strings that are fed: data points to the bytes of all elements one after another, size_bytes is their total, and
 *   sizes[i] is the length of element i.
 * Strings that are fetched: data points to an array of mr_string, and size_bytes is the size of that array.
 * Resources and variants have no elements: owner refers to them. */
typedef struct mr_array {
    int32_t dtype; /* mr_dtype */
    int32_t rank;
    int64_t dims[MR_RANK_MAX];
    void *data;
    size_t size_bytes;
    const int64_t *sizes;
    mr_tensor *owner;
} mr_array;

/* Describes an output, "name:0" or "name" for output 0: dtype, rank (-1: unknown) and dims (-1: unknown), as inferred.
 * The other fields are set to zero.
 * errors   MR_NOT_FOUND; MR_UNIMPLEMENTED: an output of an unknown operator that no node uses
 * threads  any */
MR_API mr_status mr_runner_describe(mr_runner *runner, const char *name, mr_array *description, mr_error *error);
/* Sets the number of outputs of a node.
 * errors   MR_NOT_FOUND
 * threads  any */
MR_API mr_status mr_runner_output_count(mr_runner *runner, const char *name, int32_t *count, mr_error *error);

/* Finds the tensor that an operator GetSessionHandle of the session stored under a handle, so that it can be fed: sets
 * result->owner, which the caller releases before the runner is freed, and dtype, rank and dims.
 * errors   MR_INVALID_ARGUMENT: the session has no tensor with this handle
 * threads  any */
MR_API mr_status mr_runner_session_tensor(mr_runner *runner, const char *handle, mr_array *result, mr_error *error);

/* Serializes the graph as a GraphDef: the element of a scalar of dtype MR_STRING, in the form of a fetched one. The
 * caller releases result->owner.
 * errors   MR_RESOURCE_EXHAUSTED
 * threads  any */
MR_API mr_status mr_runner_export(mr_runner *runner, mr_array *result, mr_error *error);

/* What one run feeds, fetches and runs, with room for its values. A step is used by one thread at a time; for another
 * thread, prepare another one with the same names, which costs little. */
typedef struct mr_runner_step mr_runner_step;

/* feeds, fetches  names of outputs, "name:0" or "name"
 * targets         names of nodes that are run for their side effects
 * errors          MR_NOT_FOUND: no such output or node; MR_INVALID_ARGUMENT: an output is fed twice, or a fetch cannot
 *                 be computed; MR_UNIMPLEMENTED: a node has no kernel; MR_CANCELLED: the runner is closed
 * threads         any */
MR_API mr_status mr_runner_prepare(mr_runner *runner, const char *const *feeds, int32_t feed_count,
                                   const char *const *fetches, int32_t fetch_count, const char *const *targets,
                                   int32_t target_count, mr_runner_step **step, mr_error *error);
MR_API void mr_runner_step_free(mr_runner_step *step); /* null is allowed */

/* The arrays that the caller fills before a run, one for each feed. They are stored in the step and their address does
 * not change. data and sizes are borrowed for the run and read only: the library copies what it keeps.
 *
 * A fetched resource or variant, and a tensor of mr_runner_session_tensor, is fed by its owner: owner is borrowed for
 * the run, which sets it to null again; the other fields are not used then. */
MR_API mr_array *mr_runner_feeds(mr_runner_step *step);
/* Runs the step. Afterwards each element of mr_runner_results, in the order of the fetches, holds a result until the
 * next run of the step. Nobody else uses the memory at data: the caller may modify it.
 *
 * Small numeric results are stored in the step; their owner is null. To keep a result with an owner, move the owner to
 * a variable and set the field to null; mr_runner_release frees it and the memory at data later, on any thread, also
 * after the runner is freed. A resource or variant must be released before its runner is freed.
 * errors  those of mr_session_run; MR_INVALID_ARGUMENT: a feed is not a valid array */
MR_API mr_status mr_runner_run(mr_runner_step *step, mr_error *error);
MR_API mr_array *mr_runner_results(mr_runner_step *step);
/* mr_runner_run with TensorFlow's RunOptions and RunMetadata.
 * run_options  a serialized RunOptions, borrowed for the call; may be null with size 0. Its timeout_in_ms, trace_level
 *              (0, or any other) and output_partition_graphs are used
 * metadata     null: none. Otherwise set to a serialized RunMetadata (see mr_run_options.metadata): the element of a
 *              scalar of dtype MR_STRING, in the form of a fetched one. The caller releases metadata->owner, which is
 *              null if the run fails
 * errors       also MR_INVALID_ARGUMENT: run_options is not a RunOptions; MR_DEADLINE_EXCEEDED */
MR_API mr_status mr_runner_run_with(mr_runner_step *step, const void *run_options, size_t size_bytes,
                                    mr_array *metadata, mr_error *error);
/* Releases the results that the step still owns. */
MR_API void mr_runner_clear(mr_runner_step *step);
MR_API void mr_runner_release(mr_tensor *owner); /* null is allowed */

/* ---- Functions of the program that graphs call: PyFunc and PyFuncStateless ---- */

typedef struct mr_run_call mr_run_call;
/* Runs the function that token identifies, and gives each of its results to mr_run_return.
 * inputs   numbers and strings in the form of fetched results; borrowed for the call and read only
 * returns  the status of the node; error->message is its reason
 * threads  any number at the same time */
typedef mr_status (*mr_run_function)(void *context, mr_run_call *call, const char *token, const mr_array *inputs,
                                     int32_t input_count, int32_t result_count, mr_error *error);
/* Sets the function for all runners of the process. It must not be replaced while graphs run. */
MR_API void mr_run_set_function(mr_run_function function, void *context);
/* Sets result `index` of a call. The value has the form of a feed and is copied.
 * errors  MR_INVALID_ARGUMENT: an invalid array, or not of the node's dtype; MR_RESOURCE_EXHAUSTED */
MR_API mr_status mr_run_return(mr_run_call *call, int32_t index, const mr_array *value, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
