/* Saver: variables to and from TensorFlow's V2 checkpoints.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_variable w = mr_variable_new(g, "w", mr_constant_float(g, 1.0f));
 * mr_saver *saver = mr_saver_new(g, .max_to_keep = 3);
 * mr_session *session = nullptr;
 * if (mr_session_new(g, nullptr, &session, &error) != MR_OK) return 1;
 * if (mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &w.initializer, 1, &error) != MR_OK) return 1;
 * if (mr_saver_save(saver, session, "run/model.ckpt", 100, &error) != MR_OK) return 1;
 * char path[4096];
 * if (mr_latest_checkpoint("run", path, sizeof path, &error) == MR_OK) printf("%s\n", path);
 * mr_saver_free(saver);
 * mr_session_free(session);
 * mr_graph_free(g);
 * ```
 *
 * A checkpoint has a tensor for each variable, of either kind. The parts of a partitioned variable are slices of one
 * tensor, and can be restored to any other parts, or to a variable without parts.
 *
 * A checkpoint consists of path-STEP.index and path-STEP.data-00000-of-00001. The file "checkpoint" in its directory
 * names the latest ones. Files are written under temporary names, synced and renamed, "checkpoint" last. So the latest
 * checkpoint named there is complete even if the process dies at any time, provided that each save has a path or STEP
 * of its own. A save over an existing checkpoint replaces its data and then its index: if the process dies between the
 * two, neither the old nor the new one can be read, as in TensorFlow, and restoring it fails with MR_DATA_LOSS. */
#ifndef MILLRACE_SAVER_H
#define MILLRACE_SAVER_H

#include <millrace/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The format of checkpoints (tf.train.SaverDef). Each is read by every Saver. */
typedef enum mr_checkpoint_version {
    MR_CHECKPOINT_V2 = 0, /* PREFIX.index and PREFIX.data-00000-of-00001 */
    MR_CHECKPOINT_V1,     /* PREFIX, as TensorFlow 0.x wrote it; all values are in memory while it is written */
} mr_checkpoint_version;

typedef struct mr_saver mr_saver;
typedef struct mr_saver_options {
    size_t size; /* of this struct (api.h) */
    /* References or handles (mr_variable.ref); null: the collection "variables" and saveable iterators. Of a
     * partitioned variable, the refs of its parts (mr_variable_parts). */
    const mr_output *variables;
    int32_t variable_count;
    int32_t max_to_keep;   /* default 5; 0: all, as in TensorFlow */
    bool write_meta_graph; /* write path-STEP.meta; default true */
    /* The variables' keys in the checkpoint, one for each; default: their names. A null key is the name. To restore a
     * checkpoint with other names, or to save moving averages as the variables. */
    const char *const *keys;
    /* Of the checkpoints that max_to_keep would remove, one is kept for each period of so many hours; 0: none.
     * Not with max_to_keep 0. */
    double keep_checkpoint_every_n_hours;
    mr_checkpoint_version write_version; /* default MR_CHECKPOINT_V2 */
    /* 1: the nodes in the graph save and restore the variables of each device on that device, and then merge the parts.
     * mr_saver_save itself writes the same files as without. Default 0. Not with MR_CHECKPOINT_V1. */
    int32_t sharded;
    bool pad_step_number; /* STEP has at least 8 digits, model-00000042, so that names are sorted by step */
    /* Restore a value of another shape with as many elements, in row-major order. The variables' shapes are known.
     * Default: another shape is an error */
    bool reshape;
    const char *name; /* of the scope of the nodes; default "save" */
} mr_saver_options;
/* Adds save/… nodes to the graph, with the names of TensorFlow's Saver. An error is recorded in the graph. */
MR_API mr_saver *mr_saver_new_(mr_graph *graph, const mr_saver_options *options);
#define MR_SAVER_DEFAULTS .max_to_keep = 5, .write_meta_graph = true
#define mr_saver_new(graph, ...)                                                                                       \
    MR_WITH_SIZE_(mr_saver_new_((graph), &options_), mr_saver_options, MR_SAVER_DEFAULTS, __VA_ARGS__)
MR_API void mr_saver_free(mr_saver *saver);
/* Variables that another thread updates meanwhile may be saved with old and new elements, as in TensorFlow.
 * step  at least 0; -1: no "-STEP" in the name */
MR_API mr_status mr_saver_save(mr_saver *saver, mr_session *session, const char *path, int64_t step, mr_error *error);
/* path  as passed to save, with its -STEP */
MR_API mr_status mr_saver_restore(mr_saver *saver, mr_session *session, const char *path, mr_error *error);
/* Returns the path of the latest checkpoint, as named in directory/checkpoint.
 * errors  MR_NOT_FOUND: no such file; MR_DATA_LOSS: the file is damaged, or the checkpoint that it names does not
 *         exist */
MR_API mr_status mr_latest_checkpoint(const char *directory, char *path, size_t path_size, mr_error *error);

/* ---- Checkpoint files: read and write tensors by key ---- */

typedef struct mr_checkpoint_reader mr_checkpoint_reader;
MR_API mr_status mr_checkpoint_reader_open(const char *path, mr_checkpoint_reader **reader, mr_error *error);
MR_API void mr_checkpoint_reader_close(mr_checkpoint_reader *reader);
MR_API int32_t mr_checkpoint_count(const mr_checkpoint_reader *reader);
/* Returns key number `index`, in ascending order. dtype and shape may be null. */
MR_API const char *mr_checkpoint_key(const mr_checkpoint_reader *reader, int32_t index, mr_dtype *dtype,
                                     mr_shape *shape);
MR_API bool mr_checkpoint_has(const mr_checkpoint_reader *reader, const char *key);
/* errors  MR_NOT_FOUND with the key; MR_DATA_LOSS with file and key */
MR_API mr_status mr_checkpoint_read(mr_checkpoint_reader *reader, const char *key, mr_tensor *value, mr_error *error);

typedef struct mr_checkpoint_writer mr_checkpoint_writer;
/* path  without a suffix; the files are path.index and path.data-00000-of-00001 */
MR_API mr_status mr_checkpoint_writer_open(const char *path, mr_checkpoint_writer **writer, mr_error *error);
/* Writes the value's bytes. Keys may be written in any order, each of them once. */
MR_API mr_status mr_checkpoint_write(mr_checkpoint_writer *writer, const char *key, const mr_tensor *value,
                                     mr_error *error);
/* Syncs and renames the data file, then the index. The writer is freed in any case. */
MR_API mr_status mr_checkpoint_writer_close(mr_checkpoint_writer *writer, mr_error *error);
MR_API void mr_checkpoint_writer_discard(mr_checkpoint_writer *writer); /* discards the files; null is allowed */

#ifdef __cplusplus
}
#endif
#endif
