/* Optimizers and learning rates of tf.compat.v1.train, with its names of slots and scopes, so that checkpoints can be
 * exchanged in both directions.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2), (mr_initializer){.kind = MR_INIT_ONES});
 * mr_output loss = mr_l2_loss(g, w.value);
 * mr_node *train = mr_minimize(g, mr_adam(.learning_rate = 1e-3f), loss, (mr_output){0});
 * if (mr_graph_status(g, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * printf("%s\n", mr_node_name(train));
 * mr_graph_free(g);
 * ```
 *
 * Options follow the rules of variables.h. */
#ifndef MILLRACE_OPTIMIZERS_H
#define MILLRACE_OPTIMIZERS_H

#include <millrace/variables.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
