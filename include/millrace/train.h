/* Training: layers, losses, optimizers and summaries, which have headers of their own, and the training loop.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output images = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 28, 28, 1));
 * mr_output labels = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(-1));
 * mr_output h = mr_layer_conv2d(g, images, .filters = 16, .kernel_size = 3, .activation = mr_activation_relu);
 * h = mr_layer_flatten(g, mr_layer_max_pool(g, h, .pool_size = 2));
 * mr_output logits = mr_layer_dense(g, h, .units = 10);
 * mr_output loss = mr_loss_sparse_softmax_cross_entropy(g, labels, logits);
 * mr_node *train = mr_minimize(g, mr_adam(.learning_rate = 1e-3f), loss, (mr_output){0});
 * if (mr_graph_status(g, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * printf("%s\n", mr_node_name(train));
 * mr_graph_free(g);
 * ```
 *
 * Names of variables, scopes and default values are those of tf.compat.v1.layers, tf.compat.v1.losses and
 * tf.compat.v1.train, so that checkpoints can be exchanged in both directions.
 *
 * Options follow the rules of variables.h. */
#ifndef MILLRACE_TRAIN_H
#define MILLRACE_TRAIN_H

#include <millrace/dataset.h>
#include <millrace/layers.h>
#include <millrace/losses.h>
#include <millrace/optimizers.h>
#include <millrace/saver.h>
#include <millrace/summary.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Iterators in the graph ---- */

/* Adds IteratorV2 and IteratorGetNext under this name. The outputs have the dataset's dtypes and shapes. Each run takes
 * one element. Its tensors are the pipeline's own: nothing is copied, even on a GPU if the dataset ends with
 * prefetch_to_device and the consuming nodes run there. The end of the data ends the run with MR_OUT_OF_RANGE. Saver
 * saves and restores the iterator's state with the variables.
 * dataset  referenced
 * outputs  as many as the dataset has components. A dataset that failed may have fewer than expected; an array
 *          initialized with {0} can be passed on safely */
MR_API mr_node *mr_graph_iterator(mr_graph *graph, const char *name, mr_dataset *dataset,
                                  const mr_iterator_options *options, mr_output *outputs);
/* Returns the running iterator of a session, for statistics. Borrowed; null before the first run. */
MR_API mr_iterator *mr_session_iterator(mr_session *session, mr_node *iterator);

/* A graph as a map function. Component i of an element feeds inputs[i]; the outputs are the components of the result.
 * The nodes in between must be stateless (no variables, no random operators), so that elements are the same at any
 * number of threads. For randomness, use decode_image or map functions in C.
 * input, graph  owned by the result, on an error too
 * errors        of the dataset: another number of components, another dtype or shape, a node with state */
MR_API mr_dataset *mr_dataset_map_graph(mr_dataset *input, mr_graph *graph, mr_outputs inputs, mr_outputs outputs);

/* ---- The loop: a session that restores, saves, writes summaries and stops ----
 *
 * With hooks, or recovery: tf.train.MonitoredTrainingSession in monitored.h.
 *
 * mr_status status =
 *     mr_training_run(g, train, MR_TRAINING_OPTIONS(.checkpoint_dir = "run", .last_step = 1000), &error); */
typedef struct mr_training_options {
    size_t size;                /* of this struct (api.h) */
    const char *checkpoint_dir; /* of checkpoints (model.ckpt-STEP) and event files; default: none are written */
    int64_t last_step; /* stop when global_step reaches this value; default MR_INFINITE: at the end of the data */
    /* With checkpoint_dir: steps between checkpoints; default 1000; 0: save only at the start and at the end. */
    int64_t save_checkpoint_steps;
    int64_t save_summaries_steps; /* with checkpoint_dir: steps between summaries; default 100; 0: none */
    int32_t max_to_keep;          /* with checkpoint_dir: number of checkpoints; default 5; 0: all */
    mr_output loss;               /* a scalar, reported with the progress and checked in every step */
    /* A loss that is not finite does not end the training: the next step follows. Checkpoints whose variables are not
     * finite are still not written. */
    bool continue_on_nan_loss;
    /* A resumed run takes the variables from the checkpoint, but starts the data from the beginning: for a dataset that
     * has changed since. */
    bool restart_data;
    /* Copied; null: the defaults. A variable, because MR_OPTIONS among the arguments of MR_TRAINING_OPTIONS exists only
     * until that returns. */
    const mr_session_options *session;
    /* Receives the progress as text. On a terminal, the text rewrites one line, which is completed when the run ends.
     * Otherwise it is a new line every few seconds. Default: none. */
    void (*progress)(void *context, const char *text);
    void *progress_context;
    /* With progress: */
    bool is_terminal;
    const char *unit;       /* name of what units_per_step counts: "images"; default "steps" */
    int64_t units_per_step; /* units per step, to report units per second; default 1, at least 1 */
} mr_training_options;
#define MR_TRAINING_OPTIONS_DEFAULTS                                                                                   \
    .last_step = MR_INFINITE, .save_checkpoint_steps = MR_COUNT_UNSET, .save_summaries_steps = MR_COUNT_UNSET,         \
    .max_to_keep = MR_COUNT_UNSET, .units_per_step = MR_COUNT_UNSET
#define MR_TRAINING_OPTIONS(...) MR_OPTIONS_(mr_training_options, MR_TRAINING_OPTIONS_DEFAULTS, __VA_ARGS__)
typedef struct mr_training mr_training;
/* Adds the required nodes to the graph (initializers, merged summaries, a Saver). The graph must be complete. Then
 * initializes the variables, or restores the directory's latest checkpoint if there is one.
 * The directory is locked until free.
 * options  null: the defaults
 * errors   MR_FAILED_PRECONDITION: the data have changed since the checkpoint was saved (see restart_data); MR_ABORTED:
 *         another run is using the directory */
MR_API mr_status mr_training_new(mr_graph *graph, const mr_training_options *options, mr_training **training,
                                 mr_error *error);
/* Runs train once, and saves and writes summaries when due. fetches and results as in mr_session_run; may be empty.
 *
 * A loss that is not finite ends the step before any variable is updated, if the plan can order the updates after the
 * loss (see continue_on_nan_loss). The error names the step and the first tensor that is not finite. Nothing is saved;
 * the checkpoints of earlier steps are kept. A checkpoint is never written if a trainable variable is not finite, or
 * any other saved variable is NaN.
 * errors  MR_OUT_OF_RANGE at the end: last_step is reached, or the data have ended. Everything is saved by then.
 *         MR_INVALID_ARGUMENT: the loss, or a variable to be saved, is not finite */
MR_API mr_status mr_training_step(mr_training *training, mr_node *train, mr_feeds feeds, mr_outputs fetches,
                                  mr_tensor *results, mr_error *error);
/* A complete run without feeds: new, steps until the end, free. */
MR_API mr_status mr_training_run(mr_graph *graph, mr_node *train, const mr_training_options *options, mr_error *error);
/* Saves now, unless this step has been saved. */
MR_API mr_status mr_training_save(mr_training *training, mr_error *error);
MR_API int64_t mr_training_global_step(const mr_training *training);
MR_API mr_session *mr_training_session(mr_training *training);
MR_API void mr_training_free(mr_training *training); /* does not save; null is allowed */

#ifdef __cplusplus
}
#endif
#endif
