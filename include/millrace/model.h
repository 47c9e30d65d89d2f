/* Graphs in files: GraphDef, MetaGraphDef and SavedModel, binary or in text format, recognized by their contents; what
 * a file says about its graph; and its checkpoints.
 *
 * ```c
 * mr_error error = {0};
 * mr_model *model = nullptr;
 * mr_session *session = nullptr;
 * if (mr_model_open("run/line-0.meta", nullptr, &model, &error) != MR_OK) return 1;
 * if (mr_session_new(mr_model_graph(model), nullptr, &session, &error) != MR_OK) return 1;
 * if (mr_model_restore(model, session, "run/line-0", &error) != MR_OK) return 1;
 * printf("%d signatures\n", (int)mr_model_info(model)->signature_count);
 * mr_session_free(session);
 * mr_model_free(model);
 * ```
 *
 * Files may be hostile. One thread at a time for each model. */
#ifndef MILLRACE_MODEL_H
#define MILLRACE_MODEL_H

#include <millrace/session.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_model mr_model;

/* Reads a graph.
 * path    a file, or the directory of a SavedModel
 * tags    selects a graph of a SavedModel: "serve" or "gpu,serve"; null: the only one, or the one tagged "serve"
 * errors  MR_NOT_FOUND; MR_INVALID_ARGUMENT: not a graph, or an invalid one, with its path */
MR_API mr_status mr_model_open(const char *path, const char *tags, mr_model **model, mr_error *error);
MR_API void mr_model_free(mr_model *model); /* and its graph; null is allowed */
MR_API mr_graph *mr_model_graph(mr_model *model);

/* ---- What the file says. Everything is borrowed from the model; names are those of outputs and nodes. ---- */

/* An input or output of a signature. */
typedef struct mr_model_tensor {
    const char *key;
    const char *name; /* "x:0"; "": not a dense tensor */
    mr_dtype dtype;
    mr_shape shape;
} mr_model_tensor;
typedef struct mr_model_signature {
    const char *key, *method;
    const mr_model_tensor *inputs, *outputs;
    int32_t input_count, output_count;
} mr_model_signature;

/* items is null if the collection does not contain names. */
typedef struct mr_model_collection {
    const char *name;
    const char *const *items;
    int32_t count;
} mr_model_collection;

/* The nodes that fill a queue, each in a thread of its own (tf.train.QueueRunner). */
typedef struct mr_model_queue_runner {
    const char *queue;
    const char *const *enqueue_ops;
    int32_t enqueue_count;
    const char *close_op, *cancel_op; /* "": none */
    const int32_t *closed_codes;      /* statuses that mean the end of the data; none: MR_OUT_OF_RANGE */
    int32_t closed_count;
} mr_model_queue_runner;

typedef struct mr_model_about {
    const char *format; /* "GraphDef", "MetaGraphDef", "SavedModel" */
    bool is_text;
    const char *tensorflow_version;                          /* "": not in the file */
    const char *tags;                                        /* of a SavedModel: "serve" */
    const char *saver_filename, *saver_save, *saver_restore; /* the graph's own Saver; "": none */
    const mr_model_signature *signatures;
    int32_t signature_count;
    const mr_model_collection *collections;
    int32_t collection_count;
    const mr_model_queue_runner *queue_runners;
    int32_t queue_runner_count;
    const char *variables; /* the checkpoint in a SavedModel's directory; "": none */
} mr_model_about;
MR_API const mr_model_about *mr_model_info(const mr_model *model);

/* ---- Writing ---- */

typedef enum mr_graph_file {
    MR_GRAPH_FILE_TEXT = 0,  /* "graph.pbtxt": a GraphDef as text, the default of tf.train.write_graph */
    MR_GRAPH_FILE_BINARY,    /* "graph.pb" */
    MR_GRAPH_FILE_META,      /* "graph.meta": a MetaGraphDef (tf.train.export_meta_graph) */
    MR_GRAPH_FILE_META_TEXT, /* the same as text (as_text=True) */
} mr_graph_file;
/* Writes a graph to a file, which is replaced atomically. Its directory is created.
 * errors  of the graph; those of writing the file; MR_FAILED_PRECONDITION: an imported node or function has a field
 *         that only a newer TensorFlow knows. Text cannot name it, so the graph has only the binary forms. TensorFlow
 *         leaves such fields out of text */
MR_API mr_status mr_graph_write_file(const mr_graph *graph, const char *path, mr_graph_file kind, mr_error *error);
/* The same with options of a MetaGraphDef, which may be null; an error for the other kinds. */
MR_API mr_status mr_graph_write_file_with(const mr_graph *graph, const char *path, mr_graph_file kind,
                                          const mr_meta_export_options *options, mr_error *error);

/* ---- State ---- */

/* Restores the variables of a SavedModel and runs its initialization, with its assets, as tf.saved_model.loader.load
 * does. Nothing for other files. */
MR_API mr_status mr_model_initialize(mr_model *model, mr_session *session, mr_error *error);
/* Restores a checkpoint, V1 or V2, through the graph's own Saver; without one, all variables except local ones by their
 * names.
 * prefix  "run/model.ckpt-100"
 * errors  MR_NOT_FOUND if the checkpoint lacks variables, which the message names */
MR_API mr_status mr_model_restore(mr_model *model, mr_session *session, const char *prefix, mr_error *error);
/* Saves prefix.index and its data, or what the graph's own Saver writes; prefix.meta; and names prefix in the file
 * "checkpoint" of its directory, which is created. */
MR_API mr_status mr_model_save(mr_model *model, mr_session *session, const char *prefix, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
