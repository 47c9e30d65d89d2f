/* Training: layers, losses, optimizers, summaries and the training loop.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output images = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 28, 28, 1));
 * mr_output labels = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(-1));
 * mr_output h = mr_layer_conv2d(g, images, .filters = 16, .kernel_size = 3, .same = true, .activation =
 * mr_activation_relu); h = mr_layer_flatten(g, mr_layer_max_pool(g, h, .pool_size = 2));
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
 * Options. Every options struct in this header follows the same rules:
 *   required   An option whose comment starts with "required" has no default value. Omitting it is an error.
 *   optional   Any other option has the default value that its comment states; it is TensorFlow's.
 *   zero       Zero is a value: .beta1 = 0 is a beta1 of 0. Where a comment says "0: …", zero is not a valid value of
 *              the option and has the stated meaning.
 *   limits     A value outside the limits in the comment is an error that names the layer and the option.
 *   no effect  An option that has no effect, given the others, is an error: beta1 of gradient descent, scale of
 *              MR_INIT_ZEROS.
 * Errors are MR_INVALID_ARGUMENT. Builders record them in the graph; mr_training_new returns them.
 *
 * The macros insert the default values before the caller's options. Code that calls the function behind a macro starts
 * with the same defaults: mr_dense_layer layer = {.size = sizeof layer, MR_DENSE_LAYER_DEFAULTS, .units = 10}; */
#ifndef MILLRACE_TRAIN_H
#define MILLRACE_TRAIN_H

#include <millrace/dataset.h>
#include <millrace/saver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Value of a float option that was omitted. */
#define MR_UNSET (__builtin_nanf(""))
/* Value of a count or a number of steps that was omitted. */
#define MR_COUNT_UNSET INT32_MIN
/* Value of a layer's option `training` that was omitted. An explicit false differs: it allows the options that only
 * training uses, so that one function can build both the training and the evaluation graph. */
#define MR_TRAINING_UNSET (-1)
/* An operator's seed of 0. A seed option of 0, the default, derives the seed from the graph's. */
#define MR_SEED_ZERO INT64_MIN

/* ---- Initializers ---- */

typedef enum mr_initializer_kind {
    MR_INIT_DEFAULT = 0, /* Glorot uniform */
    MR_INIT_ZEROS,
    MR_INIT_ONES,
    MR_INIT_CONSTANT,         /* scale */
    MR_INIT_UNIFORM,          /* [-scale, scale) */
    MR_INIT_NORMAL,           /* mean 0, standard deviation scale */
    MR_INIT_TRUNCATED_NORMAL, /* mean 0, standard deviation scale before the truncation */
    MR_INIT_GLOROT_UNIFORM,
    MR_INIT_HE_NORMAL, /* truncated, as tf.variance_scaling_initializer(2.0) */
} mr_initializer_kind;
typedef struct mr_initializer {
    mr_initializer_kind kind;
    float scale;  /* required, greater than 0, for UNIFORM, NORMAL and TRUNCATED_NORMAL; CONSTANT: the value, default 0;
                     no effect on the others */
    int64_t seed; /* of the random kinds; 0: derived from the graph's; MR_SEED_ZERO: 0 */
} mr_initializer;
/* Creates a variable of this shape, filled by the initializer. name is relative to the current scope. */
MR_API mr_variable mr_get_variable(mr_graph *graph, const char *name, mr_shape shape, mr_initializer initializer);

/* ---- Layers (tf.compat.v1.layers) ---- */

typedef mr_output (*mr_activation)(mr_graph *graph, mr_output input);
MR_API mr_output mr_activation_relu(mr_graph *graph, mr_output input);
MR_API mr_output mr_activation_sigmoid(mr_graph *graph, mr_output input);
MR_API mr_output mr_activation_tanh(mr_graph *graph, mr_output input);

/* input  [batch, height, width, channels], channels known */
typedef struct mr_conv2d_layer {
    size_t size;                       /* of this struct (api.h) */
    int32_t filters;                   /* required, at least 1 */
    int32_t kernel_size;               /* required, at least 1: size of the kernel, kernel x kernel */
    int32_t strides;                   /* default 1, at least 1 */
    bool same;                         /* padding SAME; default: VALID */
    bool use_bias;                     /* default true */
    mr_initializer kernel_initializer; /* of the kernel; the bias is initialized with zeros */
    float weight_decay; /* adds weight_decay * sum(kernel^2) / 2 to the regularization losses; default 0, at least 0 */
    mr_activation activation; /* default: none */
    const char *name;         /* default "conv2d" */
} mr_conv2d_layer;
#define MR_CONV2D_LAYER_DEFAULTS .strides = 1, .use_bias = true
MR_API mr_output mr_layer_conv2d_(mr_graph *graph, mr_output input, const mr_conv2d_layer *layer);
#define mr_layer_conv2d(graph, input, ...)                                                                             \
    MR_WITH_SIZE_(mr_layer_conv2d_((graph), (input), &options_), mr_conv2d_layer, MR_CONV2D_LAYER_DEFAULTS, __VA_ARGS__)

/* input  [batch, features], features known */
typedef struct mr_dense_layer {
    size_t size;                       /* of this struct (api.h) */
    int32_t units;                     /* required, at least 1 */
    bool use_bias;                     /* default true */
    mr_initializer kernel_initializer; /* of the kernel; the bias is initialized with zeros */
    float weight_decay;                /* as in mr_conv2d_layer */
    mr_activation activation;          /* default: none */
    const char *name;                  /* default "dense" */
} mr_dense_layer;
#define MR_DENSE_LAYER_DEFAULTS .use_bias = true
MR_API mr_output mr_layer_dense_(mr_graph *graph, mr_output input, const mr_dense_layer *layer);
#define mr_layer_dense(graph, input, ...)                                                                              \
    MR_WITH_SIZE_(mr_layer_dense_((graph), (input), &options_), mr_dense_layer, MR_DENSE_LAYER_DEFAULTS, __VA_ARGS__)

/* input  [batch, height, width, channels], channels known */
typedef struct mr_batch_normalization_layer {
    size_t size; /* of this struct (api.h) */
    /* True: use batch statistics, and update the moving averages through the collection "update_ops". Default false. */
    int32_t training;
    float momentum;   /* of the moving averages; default 0.99, 0 to 1; an error if training is omitted */
    float epsilon;    /* default 0.001, at least 0 */
    const char *name; /* default "batch_normalization" */
} mr_batch_normalization_layer;
#define MR_BATCH_NORMALIZATION_LAYER_DEFAULTS .training = MR_TRAINING_UNSET, .momentum = MR_UNSET, .epsilon = 0.001f
MR_API mr_output mr_layer_batch_normalization_(mr_graph *graph, mr_output input,
                                               const mr_batch_normalization_layer *layer);
#define mr_layer_batch_normalization(graph, input, ...)                                                                \
    MR_WITH_SIZE_(mr_layer_batch_normalization_((graph), (input), &options_), mr_batch_normalization_layer,            \
                  MR_BATCH_NORMALIZATION_LAYER_DEFAULTS, __VA_ARGS__)

/* input  [batch, height, width, channels] */
typedef struct mr_pool_layer {
    size_t size;       /* of this struct (api.h) */
    int32_t pool_size; /* required, at least 1: windows are pool_size x pool_size */
    int32_t strides;   /* at least 1; 0: pool_size */
    bool same;         /* padding SAME; default: VALID */
    const char *name;  /* default "max_pooling2d" and "average_pooling2d" */
} mr_pool_layer;
MR_API mr_output mr_layer_max_pool_(mr_graph *graph, mr_output input, const mr_pool_layer *layer);
MR_API mr_output mr_layer_average_pool_(mr_graph *graph, mr_output input, const mr_pool_layer *layer);
#define mr_layer_max_pool(graph, input, ...)                                                                           \
    MR_WITH_SIZE_(mr_layer_max_pool_((graph), (input), &options_), mr_pool_layer, __VA_ARGS__)
#define mr_layer_average_pool(graph, input, ...)                                                                       \
    MR_WITH_SIZE_(mr_layer_average_pool_((graph), (input), &options_), mr_pool_layer, __VA_ARGS__)
/* Mean over height and width: [batch, channels]. */
MR_API mr_output mr_layer_global_average_pool(mr_graph *graph, mr_output input);
MR_API mr_output mr_layer_flatten(mr_graph *graph, mr_output input);
typedef struct mr_dropout_layer {
    size_t size;      /* of this struct (api.h) */
    float rate;       /* fraction of the elements that is dropped in training; default 0.5, 0 to less than 1 */
    int32_t training; /* default false: the input is returned unchanged; if omitted, rate and seed are errors */
    int64_t seed;     /* 0: derived from the graph's; MR_SEED_ZERO: 0 */
    const char *name; /* default "dropout" */
} mr_dropout_layer;
#define MR_DROPOUT_LAYER_DEFAULTS .rate = MR_UNSET, .training = MR_TRAINING_UNSET
MR_API mr_output mr_layer_dropout_(mr_graph *graph, mr_output input, const mr_dropout_layer *layer);
#define mr_layer_dropout(graph, input, ...)                                                                            \
    MR_WITH_SIZE_(mr_layer_dropout_((graph), (input), &options_), mr_dropout_layer, MR_DROPOUT_LAYER_DEFAULTS,         \
                  __VA_ARGS__)

/* ---- Losses and metrics ---- */

/* Mean over the batch; added to the collection "losses" (tf.losses.sparse_softmax_cross_entropy). */
MR_API mr_output mr_loss_sparse_softmax_cross_entropy(mr_graph *graph, mr_output labels, mr_output logits);
MR_API mr_output mr_loss_mean_squared_error(mr_graph *graph, mr_output labels, mr_output predictions);
/* Sum of the graph's losses and regularization losses (tf.losses.get_total_loss). */
MR_API mr_output mr_loss_total(mr_graph *graph);
/* Fraction of rows whose largest logit is the label: a float scalar. */
MR_API mr_output mr_accuracy(mr_graph *graph, mr_output labels, mr_output logits);

/* ---- Optimizers ---- */

typedef enum mr_optimizer_kind { MR_GRADIENT_DESCENT, MR_MOMENTUM, MR_ADAM } mr_optimizer_kind;
typedef struct mr_optimizer {
    size_t size; /* of this struct (api.h) */
    mr_optimizer_kind kind;
    float learning_rate; /* learning rate, at least 0; required except for Adam, whose default is 0.001 */
    mr_output
        learning_rate_output; /* a learning rate computed by the graph (a decay); set either this or learning_rate */
    float momentum;           /* of Momentum: required, at least 0 */
    bool nesterov;            /* of Momentum */
    float beta1;              /* of Adam: default 0.9, 0 to less than 1 */
    float beta2;              /* of Adam: default 0.999, 0 to less than 1 */
    float epsilon;            /* of Adam: default 1e-8, at least 0 */
} mr_optimizer;
#define MR_OPTIMIZER_DEFAULTS                                                                                          \
    .learning_rate = MR_UNSET, .momentum = MR_UNSET, .beta1 = MR_UNSET, .beta2 = MR_UNSET, .epsilon = MR_UNSET
#define mr_gradient_descent(...)                                                                                       \
    MR_OPTIONS_(mr_optimizer, .kind = MR_GRADIENT_DESCENT, MR_OPTIMIZER_DEFAULTS, __VA_ARGS__)
#define mr_momentum(...) MR_OPTIONS_(mr_optimizer, .kind = MR_MOMENTUM, MR_OPTIMIZER_DEFAULTS, __VA_ARGS__)
#define mr_adam(...) MR_OPTIONS_(mr_optimizer, .kind = MR_ADAM, MR_OPTIMIZER_DEFAULTS, __VA_ARGS__)
/* Computes the gradient of loss with respect to every trainable variable, updates each variable once, then adds 1 to
 * global_step (if specified). Runs after the collection "update_ops". Slot variables are named as in TensorFlow
 * ("w/Adam", "w/Adam_1", "beta1_power"). */
MR_API mr_node *mr_minimize(mr_graph *graph, const mr_optimizer *optimizer, mr_output loss, mr_output global_step);
/* Returns the variable "global_step" (int64). The first call creates it. */
MR_API mr_variable mr_global_step(mr_graph *graph);
/* Learning rates that decrease with global_step: learning_rate * decay_rate ^ (global_step / decay_steps), as
 * tf.train.exponential_decay, and tf.train.cosine_decay, which ends at learning_rate * alpha.
 * learning_rate  at step 0; finite, at least 0
 * decay_steps    at least 1
 * decay_rate     finite, greater than 0
 * staircase      round global_step / decay_steps down to an integer
 * alpha          0 to 1 */
MR_API mr_output mr_exponential_decay(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                                      float decay_rate, bool staircase);
MR_API mr_output mr_cosine_decay(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                                 float alpha);

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

/* ---- Summaries and event files ---- */

MR_API mr_output mr_summary_scalar(mr_graph *graph, const char *name, mr_output value);
MR_API mr_output mr_summary_histogram(mr_graph *graph, const char *name, mr_output values);
/* Adds the first images_max images of the batch; at least 1 (tf.summary.image's default is 3). */
MR_API mr_output mr_summary_image(mr_graph *graph, const char *name, mr_output images, int32_t images_max);
/* Returns one string with all summaries of the graph; {0} if there are none. */
MR_API mr_output mr_summary_merge_all(mr_graph *graph);

typedef struct mr_event_writer mr_event_writer;
/* Creates events.out.tfevents.SECONDS.HOST in directory. A missing directory is created. */
MR_API mr_status mr_event_writer_open(const char *directory, mr_event_writer **writer, mr_error *error);
/* summary  a serialized Summary, as computed by mr_summary_merge_all's output */
MR_API mr_status mr_event_writer_add(mr_event_writer *writer, int64_t step, mr_string summary, mr_error *error);
MR_API mr_status mr_event_writer_add_scalar(mr_event_writer *writer, int64_t step, const char *tag, float value,
                                            mr_error *error);
MR_API mr_status mr_event_writer_add_graph(mr_event_writer *writer, const mr_graph *graph, mr_error *error);
MR_API mr_status mr_event_writer_flush(mr_event_writer *writer, mr_error *error);
MR_API mr_status mr_event_writer_close(mr_event_writer *writer, mr_error *error);

/* ---- The loop: a session that restores, saves, writes summaries and stops (tf.train.MonitoredTrainingSession) ----
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
