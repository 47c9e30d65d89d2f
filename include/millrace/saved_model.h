/* SavedModels: tf.saved_model.Builder and tf.saved_model.simple_save. mr_model_open (model.h) reads them.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 2), .name = "x");
 * mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2, 1));
 * mr_output y = mr_mat_mul(g, x, w.value, .name = "y");
 * mr_session *session = nullptr;
 * if (mr_session_new(g, nullptr, &session, &error) != MR_OK) return 1;
 * if (mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &w.initializer, 1, &error) != MR_OK) return 1;
 * mr_signature_def serve = {.key = MR_DEFAULT_SERVING_SIGNATURE,
 *                       .method = MR_PREDICT_METHOD,
 *                       .inputs = MR_NAMED_OUTPUTS({"images", x}),
 *                       .outputs = MR_NAMED_OUTPUTS({"scores", y})};
 * mr_saved_model *saved = nullptr;
 * mr_status status = mr_saved_model_new("export/1", &saved, &error);
 * if (status == MR_OK)
 *     status = mr_saved_model_add(saved, g, session,
 *                                 MR_OPTIONS(mr_saved_graph, .tags = MR_NAMES(MR_SERVING),
 *                                            .signatures = &serve, .signature_count = 1),
 *                                 &error);
 * if (status == MR_OK) status = mr_saved_model_save(saved, false, &error);
 * if (status != MR_OK) fprintf(stderr, "%s\n", error.message);
 * mr_saved_model_free(saved);
 * mr_session_free(session);
 * mr_graph_free(g);
 * ```
 *
 * The directory has saved_model.pb (or saved_model.pbtxt), written last; variables/variables.index and its data; and
 * assets/ with the files that the graph reads when it is initialized. Several graphs, each with tags of its own, share
 * variables and assets. */
#ifndef MILLRACE_SAVED_MODEL_H
#define MILLRACE_SAVED_MODEL_H

#include <millrace/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* TensorFlow's constants. */
#define MR_SERVING "serve"
#define MR_TRAINING_TAG "train"
#define MR_DEFAULT_SERVING_SIGNATURE "serving_default"
#define MR_PREDICT_METHOD "tensorflow/serving/predict"
#define MR_CLASSIFY_METHOD "tensorflow/serving/classify"
#define MR_REGRESS_METHOD "tensorflow/serving/regress"

/* An input or output of a signature. */
typedef struct mr_named_output {
    const char *key;
    mr_output output;
} mr_named_output;
typedef struct mr_named_outputs {
    const mr_named_output *items;
    int32_t count;
} mr_named_outputs;
#define MR_NAMED_OUTPUTS(...) MR_LIST_(mr_named_outputs, mr_named_output, __VA_ARGS__)

typedef struct mr_signature_def {
    const char *key;          /* required */
    const char *method;       /* null: none */
    mr_named_outputs inputs;  /* each key once */
    mr_named_outputs outputs; /* likewise */
} mr_signature_def;

/* A file that is copied to assets/. When the SavedModel is loaded, its path there is fed to the output while main_op or
 * legacy_init_op runs, and only then. */
typedef struct mr_asset {
    mr_output output; /* an MR_STRING scalar, such as a constant with the path */
    const char *path;
} mr_asset;

/* A graph of a SavedModel. */
typedef struct mr_saved_graph {
    size_t size;                        /* of this struct (api.h) */
    mr_names tags;                      /* required, each once; no two graphs have the same ones */
    const mr_signature_def *signatures; /* each key once */
    int32_t signature_count;
    const mr_asset *assets;
    int32_t asset_count;
    mr_node *main_op;         /* run when the SavedModel is loaded, after variables are restored; null: none */
    mr_node *legacy_init_op;  /* the same, in the collection of older versions; not with main_op */
    bool clear_devices;       /* leave out the devices of nodes */
    bool strip_default_attrs; /* leave out attrs that have their default, for older readers */
} mr_saved_graph;

typedef struct mr_saved_model mr_saved_model;

/* directory  created by the first graph; must not exist, or be empty
 * errors     MR_ALREADY_EXISTS */
MR_API mr_status mr_saved_model_new(const char *directory, mr_saved_model **model, mr_error *error);
MR_API void mr_saved_model_free(mr_saved_model *model); /* null is allowed; what is not saved is lost */
/* Adds a graph. The first one saves the variables of "variables", and copies files; nodes of a Saver are added to it.
 * session  holds the variables that the first graph saves; null for the graphs after it
 * options  required: it has the tags
 * errors   MR_FAILED_PRECONDITION: a variable is not initialized; MR_NOT_FOUND: an asset does not exist */
MR_API mr_status mr_saved_model_add(mr_saved_model *model, mr_graph *graph, mr_session *session,
                                    const mr_saved_graph *options, mr_error *error);
/* Writes saved_model.pb, or saved_model.pbtxt as text.
 * errors  MR_FAILED_PRECONDITION: there are no graphs */
MR_API mr_status mr_saved_model_save(mr_saved_model *model, bool as_text, mr_error *error);

/* A SavedModel with one graph, tagged "serve", whose only signature "serving_default" predicts
 * (tf.saved_model.simple_save).
 * legacy_init_op  null: none */
MR_API mr_status mr_saved_model_simple_save(mr_graph *graph, mr_session *session, const char *directory,
                                            mr_named_outputs inputs, mr_named_outputs outputs, mr_node *legacy_init_op,
                                            mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
