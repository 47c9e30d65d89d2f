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
    bool allow_empty; /* without variables: saving writes no values, restoring nothing. Default: that is an error */
    bool defer_build; /* nothing is added to the graph before mr_saver_build, for variables that follow */
} mr_saver_options;
/* Adds save/… nodes to the graph, with the names of TensorFlow's Saver. An error is recorded in the graph. */
MR_API mr_saver *mr_saver_new_(mr_graph *graph, const mr_saver_options *options);
#define MR_SAVER_DEFAULTS .max_to_keep = 5, .write_meta_graph = true
#define mr_saver_new(graph, ...)                                                                                       \
    MR_WITH_SIZE_(mr_saver_new_((graph), &options_), mr_saver_options, MR_SAVER_DEFAULTS, __VA_ARGS__)
/* Of a saver with defer_build: finds the variables and adds the nodes. To be called once, before saving and restoring
 * (Saver.build). An error is recorded in the graph. */
MR_API void mr_saver_build(mr_saver *saver);
/* The saver that an imported MetaGraphDef describes, with its nodes, variables, keys and options
 * (tf.train.import_meta_graph returns it).
 * saver   owned by the caller
 * errors  MR_NOT_FOUND: the graph has no SaverDef; MR_UNIMPLEMENTED: it saves something other than variables, such as
 *         tables. mr_saver_new is a saver of all variables */
MR_API mr_status mr_saver_import(mr_graph *graph, mr_saver **saver, mr_error *error);
MR_API void mr_saver_free(mr_saver *saver);
/* Variables that another thread updates meanwhile may be saved with old and new elements, as in TensorFlow.
 * step  at least 0; -1: no "-STEP" in the name */
MR_API mr_status mr_saver_save(mr_saver *saver, mr_session *session, const char *path, int64_t step, mr_error *error);
typedef struct mr_saver_save_options {
    size_t size; /* of this struct (api.h) */
    /* The file that names the checkpoints, instead of "checkpoint": two savers of one directory have one each. No
     * slash. */
    const char *latest_filename;
    const char *meta_graph_suffix; /* of path-STEP.SUFFIX; default "meta". Not "index", nor with "data-" or a slash */
    bool no_meta_graph;            /* do not write path-STEP.meta this time */
    bool no_state; /* do not name the checkpoint in the file "checkpoint", and remove no older one: it is kept */
    bool strip_default_attrs; /* as in mr_meta_export_options */
} mr_saver_save_options;
/* The same with options, which may be null. */
MR_API mr_status mr_saver_save_with(mr_saver *saver, mr_session *session, const char *path, int64_t step,
                                    const mr_saver_save_options *options, mr_error *error);
/* The paths of the checkpoints that the saver keeps, oldest first, as of its last save; the last one is that of this
 * save, also with no_state. Empty before. Owned by the saver, until it saves again. */
MR_API mr_names mr_saver_last_checkpoints(const mr_saver *saver);
/* Each variable is read and assigned after the other, so that one of them at a time is in memory twice.
 * path  as passed to save, with its -STEP */
MR_API mr_status mr_saver_restore(mr_saver *saver, mr_session *session, const char *path, mr_error *error);

/* ---- The checkpoints of a directory ---- */

/* Returns the path of the latest checkpoint, as named in directory/checkpoint.
 * errors  MR_NOT_FOUND: no such file; MR_DATA_LOSS: the file is damaged, or the checkpoint that it names does not
 *         exist */
MR_API mr_status mr_latest_checkpoint(const char *directory, char *path, size_t path_size, mr_error *error);
/* The same from another file than "checkpoint" (mr_saver_save_options); null: "checkpoint". */
MR_API mr_status mr_latest_checkpoint_in(const char *directory, const char *latest_filename, char *path,
                                         size_t path_size, mr_error *error);

/* What such a file says (tf.train.get_checkpoint_state). */
typedef struct mr_checkpoint_list {
    const char *latest; /* model_checkpoint_path; null: none */
    mr_names paths;     /* all_model_checkpoint_paths, oldest first; they may have been removed */
} mr_checkpoint_list;
/* latest_filename  null: "checkpoint"
 * list             owned by the caller: mr_checkpoint_list_free
 * errors           MR_NOT_FOUND: no such file; MR_DATA_LOSS: it is damaged */
MR_API mr_status mr_checkpoint_list_read(const char *directory, const char *latest_filename, mr_checkpoint_list **list,
                                         mr_error *error);
MR_API void mr_checkpoint_list_free(mr_checkpoint_list *list); /* null is allowed */
/* Replaces such a file (tf.train.update_checkpoint_state). Paths inside the directory are written relative to it.
 * paths  oldest first; the last one is the latest; at least 1 */
MR_API mr_status mr_checkpoint_list_write(const char *directory, const char *latest_filename, mr_names paths,
                                          mr_error *error);
/* Whether there is a checkpoint with this path, of either version (tf.train.checkpoint_exists). */
MR_API bool mr_checkpoint_exists(const char *path);
/* When a checkpoint was written, in seconds since 1970 (tf.train.get_checkpoint_mtimes).
 * errors  MR_NOT_FOUND */
MR_API mr_status mr_checkpoint_mtime(const char *path, double *seconds, mr_error *error);
/* Removes the files of a checkpoint of either version, and its .meta; not what "checkpoint" says of it
 * (tf.train.remove_checkpoint). None is no error.
 * meta_graph_suffix  null: "meta" */
MR_API mr_status mr_checkpoint_delete(const char *path, const char *meta_graph_suffix, mr_error *error);

typedef struct mr_checkpoint_wait_options {
    size_t size;                 /* of this struct (api.h) */
    const char *latest_filename; /* default "checkpoint" */
    double interval_secs;        /* between two looks; above 0; default 1 */
    double timeout_secs;         /* above 0; default: no limit */
} mr_checkpoint_wait_options;
/* Waits until the latest checkpoint of a directory is another one than `last`, for a program that evaluates what
 * another one trains (tf.train.checkpoints_iterator calls it in a loop). The directory need not exist yet.
 * last    the path that the previous call returned; null: any
 * path    receives the path; may be `last`
 * errors  MR_DEADLINE_EXCEEDED: timeout_secs have passed */
MR_API mr_status mr_checkpoint_wait(const char *directory, const char *last, const mr_checkpoint_wait_options *options,
                                    char *path, size_t path_size, mr_error *error);

/* ---- Checkpoint files: read and write tensors by key ---- */

typedef struct mr_checkpoint_reader mr_checkpoint_reader;
/* path  of a checkpoint of either version, or a directory: its latest one */
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
