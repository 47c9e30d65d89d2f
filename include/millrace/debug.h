/* Dumps: the values of all tensors of a run as files, and a reader for them. The files are those of tfdbg: what is
 * written here is read by tf_debug.DebugDumpDir, and what tf_debug.DumpingDebugWrapperSession writes is read here.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output zero = mr_constant_float(g, 0.0f);
 * mr_output ratio = mr_real_div(g, zero, zero, .name = "ratio");
 * mr_output shifted = mr_add_v2(g, ratio, mr_constant_float(g, 1.0f), .name = "shifted");
 * mr_session *session = nullptr;
 * if (mr_session_new(g, MR_OPTIONS(mr_session_options, .no_optimization = true), &session, &error) != MR_OK) return 1;
 *
 * mr_dumper *dumper = nullptr;
 * const mr_watch *watch = nullptr;
 * mr_tensor result = {0};
 * mr_outputs fetches = MR_OUTPUTS(shifted);
 * if (mr_dumper_new("dumps", nullptr, &dumper, &error) != MR_OK) return 1;
 * if (mr_dumper_begin(dumper, g, MR_NO_FEEDS, fetches, &watch, &error) != MR_OK) return 1;
 * mr_status status = mr_session_run_with(session, MR_OPTIONS(mr_run_options, .watch = watch), MR_NO_FEEDS, fetches,
 *                                        &result, nullptr, 0, &error);
 * mr_dumper_end(dumper);
 *
 * mr_dump *dump = nullptr;
 * int32_t first = 0;
 * if (status == MR_OK) status = mr_dump_open(mr_dumper_path(dumper), &dump, &error);
 * if (status == MR_OK) status = mr_dump_find(dump, mr_dump_has_inf_or_nan, nullptr, 0, &first, &error);
 * if (status == MR_OK && first >= 0) printf("%s\n", mr_dump_item_at(dump, first)->node); // ratio
 * mr_dump_close(dump);
 * mr_dumper_free(dumper);
 * mr_tensor_deinit(&result);
 * mr_session_free(session);
 * mr_graph_free(g);
 * ```
 *
 * Each run has a directory of its own, run_TIME_NUMBER, with these files, each one serialized tensorflow.Event:
 *
 *   _tfdbg_core_metadata_sessionrun…_TIME   the names of what is fed and fetched
 *   _tfdbg_fetches_info_, _tfdbg_feed_keys_info_
 *   _tfdbg_device_DEVICE/_tfdbg_graph_hash…_TIME   the graph
 *   _tfdbg_device_DEVICE/NODE_OUTPUT_DebugIdentity_TIME   a value; "-1", "-2" … after the time if it is taken
 *
 * TIME is in microseconds since 1970. */
#ifndef MILLRACE_DEBUG_H
#define MILLRACE_DEBUG_H

#include <millrace/hooks.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Writing ---- */

typedef struct mr_dump_options {
    size_t size; /* of this struct (api.h) */
    /* Whether a value is written; default: all are. Called from any thread of the run, one at a time. */
    bool (*selects)(void *context, const mr_watched *watched);
    void *context;
    bool nonfinite_only; /* write only values with a NaN or an infinity */
    uint64_t bytes_max;  /* of the values of all runs; default 100 GiB, as in TensorFlow */
} mr_dump_options;

/* Writes the runs of one session or of several, one after another. */
typedef struct mr_dumper mr_dumper;
/* directory  of the runs; created
 * options    null: the defaults
 * errors     those of creating the directory */
MR_API mr_status mr_dumper_new(const char *directory, const mr_dump_options *options, mr_dumper **dumper,
                               mr_error *error);
MR_API void mr_dumper_free(mr_dumper *dumper); /* null is allowed */
/* Starts a run: creates its directory. The caller runs with the watch (mr_run_options) and calls mr_dumper_end. Values
 * that cannot be written end the run: MR_RESOURCE_EXHAUSTED if bytes_max is exceeded or the disk is full.
 * graph   that the session runs; written to the directory
 * feeds, fetches  of the run; their names are written
 * watch   owned by the dumper; valid until mr_dumper_end
 * errors  MR_FAILED_PRECONDITION: the previous run has not ended; those of writing files */
MR_API mr_status mr_dumper_begin(mr_dumper *dumper, mr_graph *graph, mr_feeds feeds, mr_outputs fetches,
                                 const mr_watch **watch, mr_error *error);
/* Ends the run, whether it failed or not. */
MR_API void mr_dumper_end(mr_dumper *dumper);
/* The directory of the current or the last run; null before the first one. Borrowed until the next one. */
MR_API const char *mr_dumper_path(const mr_dumper *dumper);
/* Values written in all runs. */
MR_API int64_t mr_dumper_count(const mr_dumper *dumper);
/* "node:output" of the first value of the current or the last run that has a NaN or an infinity, whether it was
 * written or not; null if there is none. Borrowed until the next run. */
MR_API const char *mr_dumper_nonfinite(const mr_dumper *dumper);

/* Dumps every run of a monitored session (tf_debug.DumpingDebugHook). One hook of a session may watch a run. */
MR_API mr_hook *mr_dumping_hook_(const char *directory, const mr_dump_options *options);
#define mr_dumping_hook(directory, ...)                                                                                \
    MR_WITH_SIZE_(mr_dumping_hook_((directory), &options_), mr_dump_options, __VA_ARGS__)

/* ---- Reading (tf_debug.DebugDumpDir) ---- */

typedef struct mr_dump_item {
    const char *node;
    int32_t output;
    const char *debug_op; /* "DebugIdentity" */
    const char *device;   /* "/job:localhost/replica:0/task:0/device:CPU:0" */
    const char *path;
    int64_t time_us;     /* since 1970 */
    uint64_t size_bytes; /* of the file */
} mr_dump_item;

/* The dump of one run. Its functions may be called by several threads at a time. */
typedef struct mr_dump mr_dump;
/* Lists the values in a run's directory, up to 10,000,000. mr_dump_read reads them one by one.
 * errors  MR_NOT_FOUND; MR_INVALID_ARGUMENT: the directory is not that of a dump; MR_DATA_LOSS: a file in it whose name
 *         is not that of a value */
MR_API mr_status mr_dump_open(const char *path, mr_dump **dump, mr_error *error);
MR_API void mr_dump_close(mr_dump *dump); /* null is allowed */
MR_API int32_t mr_dump_count(const mr_dump *dump);
/* In the order in which they were computed. Borrowed from the dump; null: no such item. */
MR_API const mr_dump_item *mr_dump_item_at(const mr_dump *dump, int32_t index);
/* Reads a value.
 * value   owned by the caller; of dtype MR_DTYPE_INVALID if TensorFlow has written a tensor without elements'
 *         values: an uninitialized one, or a handle or variant
 * errors  MR_OUT_OF_RANGE: no such item; MR_DATA_LOSS: the file is not one value; MR_UNIMPLEMENTED: a dtype or rank
 *         that mr_tensor cannot represent */
MR_API mr_status mr_dump_read(const mr_dump *dump, int32_t index, mr_tensor *value, mr_error *error);
/* Reads one file of a dump. */
MR_API mr_status mr_dump_read_file(const char *path, mr_tensor *value, mr_error *error);
/* Finds the first item at or after `from` that a predicate accepts.
 * index   -1: there is none
 * errors  those of mr_dump_read */
MR_API mr_status mr_dump_find(const mr_dump *dump,
                              bool (*accepts)(void *context, const mr_dump_item *item, const mr_tensor *value),
                              void *context, int32_t from, int32_t *index, mr_error *error);
/* For mr_dump_find: a value with a NaN or an infinity (tf_debug.has_inf_or_nan). */
MR_API bool mr_dump_has_inf_or_nan(void *context, const mr_dump_item *item, const mr_tensor *value);

#ifdef __cplusplus
}
#endif
#endif
