/* Variables by name, as tf.compat.v1.get_variable, and their initial values.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_initializer small = {.kind = MR_INIT_TRUNCATED_NORMAL, .scale = 0.1f, .seed = 1};
 * mr_variable w = mr_get_variable(g, "w", MR_SHAPE(784, 10), small);
 * if (mr_graph_status(g, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * printf("%s\n", mr_node_name(w.ref.node));
 * mr_graph_free(g);
 * ```
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
 * with the same defaults: mr_dense_layer layer = {.size = sizeof layer, MR_DENSE_LAYER_DEFAULTS, .units = 10};
 *
 * These rules hold for layers.h, losses.h, optimizers.h and train.h too. */
#ifndef MILLRACE_VARIABLES_H
#define MILLRACE_VARIABLES_H

#include <millrace/graph.h>

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
/* ---- Regularizers ---- */

/* Adds l1 * sum(|w|) + l2 * sum(w^2) / 2 to the collection "regularization_losses" (tf.contrib.layers.l1_regularizer,
 * l2_regularizer and l1_l2_regularizer). Both 0: none. Both finite, at least 0. */
typedef struct mr_regularizer {
    float l1, l2;
} mr_regularizer;

/* Creates a variable of this shape, filled by the initializer. name is relative to the current scope. */
MR_API mr_variable mr_get_variable(mr_graph *graph, const char *name, mr_shape shape, mr_initializer initializer);

#ifdef __cplusplus
}
#endif
#endif
