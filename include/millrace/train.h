/* Training: layers, losses, optimizers, summaries, and the loop that keeps a run going.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output images = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 28, 28, 1));
 * mr_output labels = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(-1));
 * mr_output h = mr_layer_conv2d(g, images, .filters = 16, .kernel = 3, .same = true, .activation = mr_activation_relu);
 * h = mr_layer_flatten(g, mr_layer_max_pool(g, h, .size = 2));
 * mr_output logits = mr_layer_dense(g, h, .units = 10);
 * mr_output loss = mr_loss_sparse_softmax(g, labels, logits);
 * mr_node *train = mr_minimize(g, mr_adam(.rate = 1e-3f), loss, (mr_output){0});
 * if (mr_graph_status(g, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * printf("%s\n", mr_node_name(train));
 * mr_graph_free(g);
 * ```
 *
 * Names of variables, scopes and defaults are those of tf.compat.v1.layers, tf.compat.v1.losses and tf.compat.v1.train,
 * so that checkpoints go both ways.
 *
 * Options. Every options struct in this header follows the same rules:
 *   required   An option whose comment begins with "required" has no default. Leaving it out is an error.
 *   optional   Any other option that is left out has its default, which the comment names; it is TensorFlow's.
 *   zero       Zero is a value: .beta1 = 0 is a beta1 of 0. Where a comment says "0: …", zero is not a legal value of the
 *              option and stands for what the comment says.
 *   limits     A value outside the limits in the comment is an error that names the layer and the option.
 *   no effect  An option without effect, given the others, is an error: beta1 of gradient descent, the scale of zeros.
 * Errors are MR_INVALID_ARGUMENT. Builders record them in the graph when they are called, mr_training_new returns them.
 *
 * The macros write the defaults before the caller's options. Code that calls the function behind a macro, as C++ has to,
 * starts from the same defaults: mr_dense_layer layer = {MR_DENSE_LAYER_DEFAULTS}; layer.units = 10; */
#ifndef MILLRACE_TRAIN_H
#define MILLRACE_TRAIN_H

#include <millrace/dataset.h>
#include <millrace/saver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A float option that was left out. */
#define MR_UNSET (__builtin_nanf(""))
/* The option training of a layer that was left out. An explicit false is another value, so that one function may build the
 * graphs of training and of evaluation, with rates and momenta that only training uses. */
#define MR_TRAINING_UNSET (-1)
/* An operator's seed of 0. A seed option of 0, the default, takes the seed from the graph's. */
#define MR_SEED_ZERO INT64_MIN

/* ---- Initializers ---- */

typedef enum mr_initializer_kind {
    MR_INIT_DEFAULT = 0, /* glorot uniform */
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
    float scale;  /* required, greater than 0, by UNIFORM, NORMAL and TRUNCATED_NORMAL; CONSTANT: the value, default 0;
                     without effect on the others */
    int64_t seed; /* of the random kinds; 0: from the graph's; MR_SEED_ZERO: 0 */
} mr_initializer;
/* A variable of that shape, filled by the initializer; name inside the current scope. */
mr_variable mr_get_variable(mr_graph *graph, const char *name, mr_shape shape, mr_initializer initializer);

/* ---- Layers (tf.compat.v1.layers) ---- */

typedef mr_output (*mr_activation)(mr_graph *graph, mr_output input);
mr_output mr_activation_relu(mr_graph *graph, mr_output input);
mr_output mr_activation_sigmoid(mr_graph *graph, mr_output input);
mr_output mr_activation_tanh(mr_graph *graph, mr_output input);

/* input  [batch, height, width, channels], channels known */
typedef struct mr_conv2d_layer {
    int32_t filters; /* required, at least 1 */
    int32_t kernel;  /* required, at least 1: the kernel is kernel x kernel */
    int32_t stride;  /* default 1, at least 1 */
    bool same;       /* padding SAME; default: VALID */
    bool no_bias;
    mr_initializer initializer; /* of the kernel; the bias begins with zeros */
    float weight_decay; /* adds weight_decay * sum(kernel^2) / 2 to the regularization losses; default 0, at least 0 */
    mr_activation activation; /* default: none */
    const char *name;         /* default "conv2d" */
} mr_conv2d_layer;
#define MR_CONV2D_LAYER_DEFAULTS .stride = 1
mr_output mr_layer_conv2d_(mr_graph *graph, mr_output input, const mr_conv2d_layer *layer);
#define mr_layer_conv2d(graph, input, ...)                                                                             \
    MR_WITH_DEFAULTS_(mr_layer_conv2d_((graph), (input), &(mr_conv2d_layer){MR_CONV2D_LAYER_DEFAULTS, __VA_ARGS__}))

/* input  [batch, features], features known */
typedef struct mr_dense_layer {
    int32_t units; /* required, at least 1 */
    bool no_bias;
    mr_initializer initializer; /* of the kernel; the bias begins with zeros */
    float weight_decay;         /* as mr_conv2d_layer's */
    mr_activation activation;   /* default: none */
    const char *name;           /* default "dense" */
} mr_dense_layer;
#define MR_DENSE_LAYER_DEFAULTS .units = 0
mr_output mr_layer_dense_(mr_graph *graph, mr_output input, const mr_dense_layer *layer);
#define mr_layer_dense(graph, input, ...)                                                                              \
    MR_WITH_DEFAULTS_(mr_layer_dense_((graph), (input), &(mr_dense_layer){MR_DENSE_LAYER_DEFAULTS, __VA_ARGS__}))

/* input  [batch, height, width, channels], channels known */
typedef struct mr_batch_normalization_layer {
    int32_t
        training;   /* true: batch statistics, and the moving ones updated through the collection "update_ops"; default
                         false */
    float momentum; /* of the moving averages; used in training; default 0.99, 0 to 1; an error where training is left
                         out */
    float epsilon;  /* default 0.001, at least 0 */
    const char *name; /* default "batch_normalization" */
} mr_batch_normalization_layer;
#define MR_BATCH_NORMALIZATION_LAYER_DEFAULTS .training = MR_TRAINING_UNSET, .momentum = MR_UNSET, .epsilon = 0.001f
mr_output mr_layer_batch_normalization_(mr_graph *graph, mr_output input, const mr_batch_normalization_layer *layer);
#define mr_layer_batch_normalization(graph, input, ...)                                                                \
    MR_WITH_DEFAULTS_(mr_layer_batch_normalization_(                                                                   \
        (graph), (input), &(mr_batch_normalization_layer){MR_BATCH_NORMALIZATION_LAYER_DEFAULTS, __VA_ARGS__}))

/* input  [batch, height, width, channels] */
typedef struct mr_pool_layer {
    int32_t size;     /* required, at least 1: windows are size x size */
    int32_t stride;   /* at least 1; 0: size */
    bool same;        /* padding SAME; default: VALID */
    const char *name; /* default "max_pooling2d" and "average_pooling2d" */
} mr_pool_layer;
#define MR_POOL_LAYER_DEFAULTS .size = 0
mr_output mr_layer_max_pool_(mr_graph *graph, mr_output input, const mr_pool_layer *layer);
mr_output mr_layer_average_pool_(mr_graph *graph, mr_output input, const mr_pool_layer *layer);
#define mr_layer_max_pool(graph, input, ...)                                                                           \
    MR_WITH_DEFAULTS_(mr_layer_max_pool_((graph), (input), &(mr_pool_layer){MR_POOL_LAYER_DEFAULTS, __VA_ARGS__}))
#define mr_layer_average_pool(graph, input, ...)                                                                       \
    MR_WITH_DEFAULTS_(mr_layer_average_pool_((graph), (input), &(mr_pool_layer){MR_POOL_LAYER_DEFAULTS, __VA_ARGS__}))
/* Mean over height and width: [batch, channels]. */
mr_output mr_layer_global_average_pool(mr_graph *graph, mr_output input);
mr_output mr_layer_flatten(mr_graph *graph, mr_output input);
typedef struct mr_dropout_layer {
    float rate;       /* part of the elements that is dropped in training; default 0.5, 0 to less than 1 */
    int32_t training; /* false, the default: the input is passed on; where it is left out, rate and seed are errors */
    int64_t seed;     /* 0: from the graph's; MR_SEED_ZERO: 0 */
    const char *name; /* default "dropout" */
} mr_dropout_layer;
#define MR_DROPOUT_LAYER_DEFAULTS .rate = MR_UNSET, .training = MR_TRAINING_UNSET
mr_output mr_layer_dropout_(mr_graph *graph, mr_output input, const mr_dropout_layer *layer);
#define mr_layer_dropout(graph, input, ...)                                                                            \
    MR_WITH_DEFAULTS_(mr_layer_dropout_((graph), (input), &(mr_dropout_layer){MR_DROPOUT_LAYER_DEFAULTS, __VA_ARGS__}))

/* ---- Losses and metrics ---- */

/* Mean over the batch, added to the collection "losses" (tf.losses.sparse_softmax_cross_entropy). */
mr_output mr_loss_sparse_softmax(mr_graph *graph, mr_output labels, mr_output logits);
mr_output mr_loss_mean_squared(mr_graph *graph, mr_output labels, mr_output predictions);
/* Losses and regularization losses of the graph, summed (tf.losses.get_total_loss). */
mr_output mr_loss_total(mr_graph *graph);
/* Share of rows whose largest logit is the label: a float scalar. */
mr_output mr_accuracy(mr_graph *graph, mr_output labels, mr_output logits);

/* ---- Optimizers ---- */

typedef enum mr_optimizer_kind { MR_GRADIENT_DESCENT, MR_MOMENTUM, MR_ADAM } mr_optimizer_kind;
typedef struct mr_optimizer {
    mr_optimizer_kind kind;
    float rate;            /* learning rate, at least 0; required by all but Adam, whose default is 0.001 */
    mr_output rate_output; /* a learning rate that the graph computes (a decay), instead of rate: one of the two */
    float momentum;        /* of Momentum: required, at least 0 */
    bool nesterov;         /* of Momentum */
    float beta1;           /* of Adam: default 0.9, 0 to less than 1 */
    float beta2;           /* of Adam: default 0.999, 0 to less than 1 */
    float epsilon;         /* of Adam: default 1e-8, at least 0 */
} mr_optimizer;
#define MR_OPTIMIZER_DEFAULTS                                                                                          \
    .rate = MR_UNSET, .momentum = MR_UNSET, .beta1 = MR_UNSET, .beta2 = MR_UNSET, .epsilon = MR_UNSET
#define mr_gradient_descent(...)                                                                                       \
    MR_WITH_DEFAULTS_(((mr_optimizer){.kind = MR_GRADIENT_DESCENT, MR_OPTIMIZER_DEFAULTS, __VA_ARGS__}))
#define mr_momentum(...) MR_WITH_DEFAULTS_(((mr_optimizer){.kind = MR_MOMENTUM, MR_OPTIMIZER_DEFAULTS, __VA_ARGS__}))
#define mr_adam(...) MR_WITH_DEFAULTS_(((mr_optimizer){.kind = MR_ADAM, MR_OPTIMIZER_DEFAULTS, __VA_ARGS__}))
/* Gradients of loss by every trainable variable, one update each, then global_step + 1 (when given). Runs after the
 * collection "update_ops". Slot variables are named as TensorFlow's ("w/Adam", "w/Adam_1", "beta1_power"). */
mr_node *mr_minimize(mr_graph *graph, mr_optimizer optimizer, mr_output loss, mr_output global_step);
/* The variable "global_step" (int64), made once and then found again. */
mr_variable mr_global_step(mr_graph *graph);
/* Learning rates that fall with step: rate * decay ^ (step / steps), as tf.train.exponential_decay, and
 * tf.train.cosine_decay, which ends at rate * floor.
 * rate   at step 0; finite, at least 0
 * steps  at least 1
 * decay  finite, greater than 0
 * floor  0 to 1 */
mr_output mr_exponential_decay(mr_graph *graph, float rate, mr_output step, int64_t steps, float decay, bool staircase);
mr_output mr_cosine_decay(mr_graph *graph, float rate, mr_output step, int64_t steps, float floor);

/* ---- Iterators in the graph ---- */

/* IteratorV2 and IteratorGetNext called name: outputs with the dataset's dtypes and shapes. Each run takes one element;
 * its tensors are the pipeline's own, no bytes are copied, on a GPU neither where the dataset ends with prefetch_to_device
 * and the nodes that take them run there. The end of the data ends the run with MR_OUT_OF_RANGE.
 * The iterator's place is saved and restored by Saver with the variables.
 * dataset  a hold is taken
 * outputs  as many as the dataset has components. A dataset that failed may have fewer than it would have otherwise: an
 *          array that is initialised with {0} is safe to pass on */
mr_node *mr_graph_iterator(mr_graph *graph, const char *name, mr_dataset *dataset, const mr_iterator_options *options,
                           mr_output *outputs);
/* The running iterator of a session, for statistics; borrowed; null before the first run. */
mr_iterator *mr_session_iterator(mr_session *session, mr_node *iterator);

/* A graph as a map function: component i of an element feeds inputs[i], the outputs are the components of the new one.
 * What lies between must be stateless (no variables, no random operators: chance belongs to decode_image and to map
 * functions in C), so elements are the same at any number of threads.
 * input, graph  taken over; errors are the dataset's: another number of components, dtype or shape, a node with state */
mr_dataset *mr_dataset_map_graph(mr_dataset *input, mr_graph *graph, mr_outputs inputs, mr_outputs outputs);

/* ---- Summaries and event files ---- */

mr_output mr_summary_scalar(mr_graph *graph, const char *name, mr_output value);
mr_output mr_summary_histogram(mr_graph *graph, const char *name, mr_output values);
/* The first images_max images of the batch; at least 1 (tf.summary.image's default is 3). */
mr_output mr_summary_image(mr_graph *graph, const char *name, mr_output images, int32_t images_max);
/* One string that holds every summary of the graph; {0} without any. */
mr_output mr_summary_merge_all(mr_graph *graph);

typedef struct mr_event_writer mr_event_writer;
/* events.out.tfevents.SECONDS.HOST in folder, which is made when missing. */
mr_status mr_event_writer_open(const char *folder, mr_event_writer **writer, mr_error *error);
/* summary  a serialised Summary, as mr_summary_merge_all's output gives it */
mr_status mr_event_writer_add(mr_event_writer *writer, int64_t step, mr_string summary, mr_error *error);
mr_status mr_event_writer_add_scalar(mr_event_writer *writer, int64_t step, const char *tag, float value,
                                     mr_error *error);
mr_status mr_event_writer_add_graph(mr_event_writer *writer, const mr_graph *graph, mr_error *error);
mr_status mr_event_writer_flush(mr_event_writer *writer, mr_error *error);
mr_status mr_event_writer_close(mr_event_writer *writer, mr_error *error);

/* ---- The loop: a session that restores, saves, summarises and stops (tf.train.MonitoredTrainingSession) ----
 *
 * if (mr_training_run(g, train, &error, .folder = "run", .stop_step = 1000, .loss = loss) != MR_OK) … */
typedef struct mr_training_options {
    const char *folder;    /* directory of checkpoints (model.ckpt-STEP) and event files; default: neither is written */
    int64_t stop_step;     /* stop when global_step reaches it; default MR_FOREVER: at the end of the data */
    int64_t save_steps;    /* between checkpoints; default 1000; 0: only at the beginning and at the end */
    int64_t summary_steps; /* between summaries; default 100; 0: none */
    int32_t max_to_keep;   /* checkpoints; default 5; 0: all */
    mr_output loss;        /* a scalar that is shown and logged with the progress, and checked in every step */
    /* A loss that is not finite does not end the training. Steps go on; checkpoints whose variables are not finite are still
     * not written. */
    bool continue_on_nan_loss;
    /* A run that resumes takes the variables from the checkpoint, but starts the data from the beginning: for a dataset
     * that has changed since. */
    bool restart_data;
    mr_session_options session;
    /* Receives the progress as text. On a terminal it rewrites one line, and ends it when the run ends; otherwise it is a
     * line of its own, every few seconds. Default: none. */
    void (*show)(void *context, const char *text);
    void *show_context;
    bool terminal;
    const char *unit;  /* of step_size: "images"; default "steps" */
    int64_t step_size; /* units in a step, for the units per second that are shown; default 1, at least 1 */
} mr_training_options;
#define MR_TRAINING_OPTIONS_DEFAULTS                                                                                   \
    .stop_step = MR_FOREVER, .save_steps = 1000, .summary_steps = 100, .max_to_keep = 5, .step_size = 1
typedef struct mr_training mr_training;
/* Adds what it needs to the graph (initializers, merged summaries, a Saver), which must be whole; then initializes the
 * variables, or restores the latest checkpoint of the folder when there is one.
 * errors  MR_FAILED_PRECONDITION when the data behind a checkpoint have changed (see restart_data) */
mr_status mr_training_new_(mr_graph *graph, const mr_training_options *options, mr_training **training,
                           mr_error *error);
#define mr_training_new(graph, training, error, ...)                                                                   \
    MR_WITH_DEFAULTS_(mr_training_new_((graph), &(mr_training_options){MR_TRAINING_OPTIONS_DEFAULTS, __VA_ARGS__},     \
                                       (training), (error)))
/* Runs train once, saving and summarising when due. fetches and results as in mr_session_run; may be empty.
 *
 * A loss that is not finite ends the step before it updates any variable, where the plan can arrange it (see
 * continue_on_nan_loss). The error names the step and the first tensor that is not finite, and nothing is saved: the
 * checkpoints of earlier steps stay. A checkpoint is never written when a trainable variable is not finite, or any other
 * saved variable is NaN.
 * errors  MR_OUT_OF_RANGE when there is nothing left to do: stop_step is reached, or the data have ended. Everything is
 *         then saved; MR_INVALID_ARGUMENT when the loss, or a variable that is to be saved, is not finite */
mr_status mr_training_step(mr_training *training, mr_node *train, mr_feeds feeds, mr_outputs fetches,
                           mr_tensor *results, mr_error *error);
/* A whole run without feeds: new, step after step until there is nothing left to do, free. */
mr_status mr_training_run_(mr_graph *graph, mr_node *train, const mr_training_options *options, mr_error *error);
#define mr_training_run(graph, train, error, ...)                                                                      \
    MR_WITH_DEFAULTS_(mr_training_run_((graph), (train),                                                               \
                                       &(mr_training_options){MR_TRAINING_OPTIONS_DEFAULTS, __VA_ARGS__}, (error)))
/* Saves now, unless this step is saved already. */
mr_status mr_training_save(mr_training *training, mr_error *error);
int64_t mr_training_global_step(const mr_training *training);
mr_session *mr_training_session(mr_training *training);
void mr_training_free(mr_training *training); /* saves nothing; null is allowed */

#ifdef __cplusplus
}
#endif
#endif
