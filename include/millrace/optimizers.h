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

typedef enum mr_optimizer_kind {
    MR_GRADIENT_DESCENT,
    MR_MOMENTUM,
    MR_ADAM,
    MR_ADAGRAD,
    MR_ADADELTA,
    MR_RMS_PROP,
    MR_FTRL,
    MR_ADAGRAD_DA, /* needs global_step */
    MR_PROXIMAL_GRADIENT_DESCENT,
    MR_PROXIMAL_ADAGRAD,
    /* Those of tf.contrib.opt. LazyAdam is Adam, but a sparse gradient changes only its own rows, of the moments too.
     * AdamW subtracts weight_decay * variable before Adam's step; of a sparse gradient, in its rows. */
    MR_LAZY_ADAM,
    MR_ADAM_W,
    MR_LARS,       /* Momentum with a learning rate for each variable; of a sparse gradient, with learning_rate */
    MR_MOMENTUM_W, /* Momentum after the decay of AdamW */
    /* AMSGrad is Adam that divides by the largest second moment so far (amsgrad=True of tf.keras's); the third slot. */
    MR_AMSGRAD,
    MR_ADA_MAX,           /* of a sparse gradient, as LazyAdam, only its rows */
    MR_POWER_SIGN,        /* gradient * base ^ (sign_decay * sign(gradient) * sign(average)) */
    MR_ADD_SIGN,          /* gradient * (alpha + sign_decay * sign(gradient) * sign(average)) */
    MR_WRAPPED_OPTIMIZER, /* of the functions in optimizer_wrappers.h */
} mr_optimizer_kind;
typedef struct mr_optimizer {
    size_t size; /* of this struct (api.h) */
    mr_optimizer_kind kind;
    float learning_rate;             /* at least 0; default 0.001 for Adam's kinds and Adadelta, 0.1 for
 PowerSign and AddSign, otherwise required */
    mr_output learning_rate_output;  /* a scalar that the graph computes (a decay); set either this or learning_rate */
    float momentum;                  /* of Momentum's kinds: required, at least 0; RMSProp: default 0; LARS: 0.9 */
    bool nesterov;                   /* of Momentum's kinds and LARS */
    float beta1;                     /* of Adam's kinds: default 0.9, 0 to less than 1 */
    float beta2;                     /* of Adam's kinds: default 0.999, 0 to less than 1 */
    float epsilon;                   /* at least 0; default: Adam's kinds and Adadelta 1e-8, RMSProp 1e-10, LARS 0 */
    float decay;                     /* of the averages, at least 0: RMSProp 0.9; Adadelta's rho 0.95 */
    bool centered;                   /* of RMSProp: divides by the variance, instead of the mean square */
    float initial_accumulator_value; /* of Adagrad, AdagradDA, ProximalAdagrad and Ftrl: default 0.1, at least 0 */
    float l1, l2;                    /* strengths of the regularization of Ftrl, AdagradDA and both proximal kinds:
                                        default 0, at least 0 */
    float l2_shrinkage;              /* of Ftrl: default 0, at least 0 */
    float learning_rate_power;       /* of Ftrl: default -0.5, at most 0 */
    float weight_decay;              /* of AdamW and MomentumW: required, at least 0; not multiplied by the learning
                                        rate. Of LARS: default 0.0001, only part of the learning rate */
    /* LARS: the learning rate of a variable w with the gradient g, unless one of the norms is 0, is
     * learning_rate * eeta * norm(w) / (norm(g) + weight_decay * norm(w) + epsilon). */
    float eeta;         /* default 0.001, at least 0 */
    mr_names skip_list; /* of LARS: parts of names ("bias"); variables with one of them are not scaled */
    float beta;         /* of the average of PowerSign and AddSign: default 0.9, 0 to less than 1 */
    float base;         /* of PowerSign: default e, greater than 0 */
    float alpha;        /* of AddSign: default 1, at least 0 */
    /* Of PowerSign and AddSign: a scalar that the graph computes, as mr_cosine_decay(g, 1, step, decay_steps, 0), or a
     * linear one: mr_polynomial_decay(g, 1, step, decay_steps, 0, 1, false); default 1 */
    mr_output sign_decay;
    struct mr_optimizer_wrapper *wrapper; /* set by the functions in optimizer_wrappers.h */
    /* Of the scope and of the slots: "w/NAME", "w/NAME_1"; default: TensorFlow's, "Adam". Two optimizers with other
     * names keep their slots apart in checkpoints, in whichever order they are applied. */
    const char *name;
    const char *accum_name, *linear_name; /* of Ftrl: the names of its slots "accum" and "linear" instead of `name` */
    /* The attr of the update operators: TensorFlow then holds the lock of a variable while it is updated. Runs of this
     * library are the same with and without it. */
    bool use_locking;
} mr_optimizer;
#define MR_OPTIMIZER_DEFAULTS                                                                                          \
    .learning_rate = MR_UNSET, .momentum = MR_UNSET, .beta1 = MR_UNSET, .beta2 = MR_UNSET, .epsilon = MR_UNSET,        \
    .decay = MR_UNSET, .initial_accumulator_value = MR_UNSET, .l1 = MR_UNSET, .l2 = MR_UNSET,                          \
    .l2_shrinkage = MR_UNSET, .learning_rate_power = MR_UNSET, .weight_decay = MR_UNSET, .eeta = MR_UNSET,             \
    .beta = MR_UNSET, .base = MR_UNSET, .alpha = MR_UNSET
#define MR_OPTIMIZER_(optimizer_kind, ...)                                                                             \
    MR_OPTIONS_(mr_optimizer, .kind = (optimizer_kind), MR_OPTIMIZER_DEFAULTS, __VA_ARGS__)
#define mr_gradient_descent(...) MR_OPTIMIZER_(MR_GRADIENT_DESCENT, __VA_ARGS__)
#define mr_momentum(...) MR_OPTIMIZER_(MR_MOMENTUM, __VA_ARGS__)
#define mr_adam(...) MR_OPTIMIZER_(MR_ADAM, __VA_ARGS__)
#define mr_adagrad(...) MR_OPTIMIZER_(MR_ADAGRAD, __VA_ARGS__)
#define mr_adadelta(...) MR_OPTIMIZER_(MR_ADADELTA, __VA_ARGS__)
#define mr_rms_prop(...) MR_OPTIMIZER_(MR_RMS_PROP, __VA_ARGS__)
#define mr_ftrl(...) MR_OPTIMIZER_(MR_FTRL, __VA_ARGS__)
#define mr_adagrad_da(...) MR_OPTIMIZER_(MR_ADAGRAD_DA, __VA_ARGS__)
#define mr_proximal_gradient_descent(...) MR_OPTIMIZER_(MR_PROXIMAL_GRADIENT_DESCENT, __VA_ARGS__)
#define mr_proximal_adagrad(...) MR_OPTIMIZER_(MR_PROXIMAL_ADAGRAD, __VA_ARGS__)
#define mr_lazy_adam(...) MR_OPTIMIZER_(MR_LAZY_ADAM, __VA_ARGS__)
#define mr_adam_w(...) MR_OPTIMIZER_(MR_ADAM_W, __VA_ARGS__)
#define mr_lars(...) MR_OPTIMIZER_(MR_LARS, __VA_ARGS__)
#define mr_momentum_w(...) MR_OPTIMIZER_(MR_MOMENTUM_W, __VA_ARGS__)
#define mr_amsgrad(...) MR_OPTIMIZER_(MR_AMSGRAD, __VA_ARGS__)
#define mr_ada_max(...) MR_OPTIMIZER_(MR_ADA_MAX, __VA_ARGS__)
#define mr_power_sign(...) MR_OPTIMIZER_(MR_POWER_SIGN, __VA_ARGS__)
#define mr_add_sign(...) MR_OPTIMIZER_(MR_ADD_SIGN, __VA_ARGS__)
/* Between the two steps of mr_minimize, gradients can be changed: clipped, scaled, replaced, or left out by {0}. */
typedef struct mr_gradient_and_variable {
    mr_output gradient; /* {0}: none; the variable is not updated */
    mr_variable variable;
} mr_gradient_and_variable;
/* One for each variable, in the order of the list or of the collection; owned by the graph. Empty after an error. */
typedef struct mr_gradients_and_variables {
    mr_gradient_and_variable *items;
    int32_t count;
} mr_gradients_and_variables;
/* When gradients may be used. Here, an update always waits for all of them, and TensorFlow's default, GATE_OP, is not
 * needed; MR_GATE_NONE is the fastest. */
typedef enum mr_gate_gradients {
    MR_GATE_NONE = 0, /* when they are computed */
    MR_GATE_OP,       /* when those of all inputs of the same operator are */
    MR_GATE_GRAPH,    /* when all are */
} mr_gate_gradients;
/* How the gradients of an output that several operators use are added. */
typedef enum mr_aggregation_method {
    MR_AGGREGATION_ADD_N = 0,                 /* together */
    MR_AGGREGATION_EXPERIMENTAL_TREE,         /* one after the other, which may need less memory */
    MR_AGGREGATION_EXPERIMENTAL_ACCUMULATE_N, /* the same */
} mr_aggregation_method;
typedef struct mr_compute_gradients_options {
    size_t size;            /* of this struct (api.h) */
    mr_variables variables; /* each once; default: the collection "trainable_variables" */
    /* The gradient of the loss, of its dtype and shape. Another shape is accepted where the gradients of the operators
     * take it, as in TensorFlow: a scalar for a loss that is a product or an Exp, but not for a sum with a constant.
     * Default: ones */
    mr_output grad_loss;
    mr_gate_gradients gate_gradients;
    mr_aggregation_method aggregation_method;
    bool colocate_gradients_with_ops; /* gradients are computed on the devices of the operators that they are of */
} mr_compute_gradients_options;
/* The gradients of the loss with respect to the variables. */
MR_API mr_gradients_and_variables mr_compute_gradients_(mr_graph *graph, mr_output loss,
                                                        const mr_compute_gradients_options *options);
#define mr_compute_gradients(graph, loss, ...)                                                                         \
    MR_WITH_SIZE_(mr_compute_gradients_((graph), (loss), &options_), mr_compute_gradients_options, __VA_ARGS__)
/* The same for an optimizer that changes the loss or its gradients (optimizer_wrappers.h). */
MR_API mr_gradients_and_variables mr_optimizer_compute_gradients_(mr_graph *graph, const mr_optimizer *optimizer,
                                                                  mr_output loss,
                                                                  const mr_compute_gradients_options *options);
#define mr_optimizer_compute_gradients(graph, optimizer, loss, ...)                                                    \
    MR_WITH_SIZE_(mr_optimizer_compute_gradients_((graph), (optimizer), (loss), &options_),                            \
                  mr_compute_gradients_options, __VA_ARGS__)
/* Updates the variable of each item that has a gradient (a variable of two items twice), then adds 1 to
 * global_step (if specified: a reference, as mr_global_step(graph).ref). Runs after the collection "update_ops". If an
 * update fails, others may have been made. Slot variables are named as in TensorFlow ("w/Adam", "w/Adam_1",
 * "beta1_power"). */
MR_API mr_node *mr_apply_gradients(mr_graph *graph, const mr_optimizer *optimizer, mr_gradients_and_variables list,
                                   mr_output global_step);
/* mr_optimizer_compute_gradients, then mr_apply_gradients (Optimizer.minimize).
 * errors  MR_INVALID_ARGUMENT if the loss depends on none of the variables */
MR_API mr_node *mr_minimize_(mr_graph *graph, const mr_optimizer *optimizer, mr_output loss, mr_output global_step,
                             const mr_compute_gradients_options *options);
#define mr_minimize(graph, optimizer, loss, global_step, ...)                                                          \
    MR_WITH_SIZE_(mr_minimize_((graph), (optimizer), (loss), (global_step), &options_), mr_compute_gradients_options,  \
                  __VA_ARGS__)

/* The names of an optimizer's slots, "m" and "v" of Adam, in the order of their variables (Optimizer.get_slot_names).
 * Of a wrapper, those of the optimizer in it. Static. */
MR_API mr_names mr_optimizer_slot_names(const mr_optimizer *optimizer);
/* The slot variable of that name which the first optimizer of this kind made for a variable (Optimizer.get_slot); its
 * ref is {0} if there is none. */
MR_API mr_variable mr_optimizer_slot(const mr_graph *graph, const mr_optimizer *optimizer, mr_variable variable,
                                     const char *name);

/* ---- Clipping ---- */

typedef struct mr_clip_options {
    size_t size; /* of this struct (api.h) */
    /* Of mr_clip_by_norm: the norm is that along these dimensions, for each of the others: {0} limits the norm of each
     * column of a matrix. From -rank to rank - 1, each once. Default: all. Of a sparse gradient, of its rows */
    mr_ints axes;
    /* Of mr_clip_by_global_norm: the global norm, a scalar, if it is known already; it is returned. Default: it is
     * computed */
    mr_output use_norm;
    const char *name; /* of the scope; default "clip_by_norm", "clip_by_global_norm" */
} mr_clip_options;
/* values * norm / max(norm of values, norm) */
MR_API mr_output mr_clip_by_norm_(mr_graph *graph, mr_output values, float norm, const mr_clip_options *options);
#define mr_clip_by_norm(graph, values, norm, ...)                                                                      \
    MR_WITH_SIZE_(mr_clip_by_norm_((graph), (values), (norm), &options_), mr_clip_options, __VA_ARGS__)
/* The same with the norm divided by the number of elements. */
MR_API mr_output mr_clip_by_average_norm(mr_graph *graph, mr_output values, float norm);
/* The square root of the sum of the squares of all elements of all values; {0} among them is skipped. Of a sparse
 * gradient, those of its rows: rows with the same index are not added first, as in TensorFlow. */
MR_API mr_output mr_global_norm(mr_graph *graph, mr_outputs values);
/* Scales all gradients in place, so that their global norm is at most `norm`. NaN if their norm is not finite.
 * Returns the global norm before. */
MR_API mr_output mr_clip_by_global_norm_(mr_graph *graph, mr_gradients_and_variables list, float norm,
                                         const mr_clip_options *options);
#define mr_clip_by_global_norm(graph, list, norm, ...)                                                                 \
    MR_WITH_SIZE_(mr_clip_by_global_norm_((graph), (list), (norm), &options_), mr_clip_options, __VA_ARGS__)

/* ---- Moving averages (tf.train.ExponentialMovingAverage) ---- */

typedef struct mr_moving_average_options {
    size_t size;           /* of this struct (api.h) */
    float decay;           /* required, 0 to less than 1; values near 1 average over many steps */
    mr_output num_updates; /* a count of updates, which lowers the decay at the beginning: (1 + n) / (10 + n) */
    const char *name;      /* default "ExponentialMovingAverage" */
    /* Of mr_moving_average_of: divide by the weight of the values so far, so that the average is not too near to the
     * zeros with which it begins. Variables OUTPUT/NAME/biased and OUTPUT/NAME/local_step. */
    bool zero_debias;
} mr_moving_average_options;
/* Creates an average for each variable, w/ExponentialMovingAverage, which begins with its initial value, and adds the
 * variables to the collection "moving_average_variables".
 * variables  of floating point. One that is in the list twice has one average, which is updated twice
 * averages   receives the averages, as many as variables; null is allowed
 * Returns a node that updates all of them; it runs after the nodes in whose control scope it is built. */
MR_API mr_node *mr_moving_average_(mr_graph *graph, const mr_variable *variables, int32_t count, mr_variable *averages,
                                   const mr_moving_average_options *options);
#define mr_moving_average(graph, variables, count, averages, ...)                                                      \
    MR_WITH_SIZE_(mr_moving_average_((graph), (variables), (count), (averages), &options_), mr_moving_average_options, \
                  .decay = MR_UNSET, __VA_ARGS__)
/* The same for values that are not variables, such as a loss: the average OUTPUT/ExponentialMovingAverage begins with
 * zeros. They are added to no collection (ExponentialMovingAverage.apply of tensors).
 * outputs  half, bfloat16, float or double, of a known shape */
MR_API mr_node *mr_moving_average_of_(mr_graph *graph, mr_outputs outputs, mr_variable *averages,
                                      const mr_moving_average_options *options);
#define mr_moving_average_of(graph, outputs, averages, ...)                                                            \
    MR_WITH_SIZE_(mr_moving_average_of_((graph), (outputs), (averages), &options_), mr_moving_average_options,         \
                  .decay = MR_UNSET, __VA_ARGS__)

/* Variables, and the keys of a checkpoint from which a Saver restores them. Owned by the graph. */
typedef struct mr_variables_to_restore {
    const mr_output *variables;
    const char *const *keys;
    int32_t count;
} mr_variables_to_restore;
/* The variables of a graph for an evaluation with averages: those of "trainable_variables" and
 * "moving_average_variables" with the keys of their averages, "w/ExponentialMovingAverage", and all others of
 * "variables" with their names (ExponentialMovingAverage.variables_to_restore). The graph need not have the averages:
 *
 *     mr_variables_to_restore list = mr_moving_average_variables_to_restore(g, nullptr);
 *     mr_saver *saver = mr_saver_new(g, .variables = list.variables, .keys = list.keys, .variable_count = list.count);
 *
 * name  of the averages; null: the default
 * Empty if the graph has no variables, or after an error, which the graph records. */
MR_API mr_variables_to_restore mr_moving_average_variables_to_restore(mr_graph *graph, const char *name);

/* ---- Steps and learning rates ---- */

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
/* Others of tf.train: learning_rate * e ^ (-decay_rate * global_step / decay_steps), and
 * learning_rate / (1 + decay_rate * global_step / decay_steps). */
MR_API mr_output mr_natural_exp_decay(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                                      float decay_rate, bool staircase);
MR_API mr_output mr_inverse_time_decay(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                                       float decay_rate, bool staircase);
/* From learning_rate to end after decay_steps: (learning_rate - end) * (1 - global_step / decay_steps) ^ power + end.
 * cycle  begin again with a multiple of decay_steps, instead of staying at end */
MR_API mr_output mr_polynomial_decay(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                                     float end, float power, bool cycle);
/* values[0] up to step boundaries[0], then values[1] up to boundaries[1], …; one value more than boundaries, which
 * increase. Values are finite. */
MR_API mr_output mr_piecewise_constant(mr_graph *graph, mr_output global_step, mr_ints boundaries, mr_floats values);
/* Cosine decay that restarts: period i has first_decay_steps * t_mul ^ i steps and begins at
 * learning_rate * m_mul ^ i (tf.train.cosine_decay_restarts; its defaults are t_mul 2, m_mul 1, alpha 0). */
MR_API mr_output mr_cosine_decay_restarts(mr_graph *graph, float learning_rate, mr_output global_step,
                                          int64_t first_decay_steps, float t_mul, float m_mul, float alpha);
/* tf.train.linear_cosine_decay; its defaults are periods 0.5, alpha 0, beta 0.001. */
MR_API mr_output mr_linear_cosine_decay(mr_graph *graph, float learning_rate, mr_output global_step,
                                        int64_t decay_steps, float periods, float alpha, float beta);
typedef struct mr_noisy_decay_options {
    size_t size;            /* of this struct (api.h) */
    float initial_variance; /* of the noise at step 0: default 1, at least 0; 0 is no noise */
    float variance_decay;   /* default 0.55, at least 0; has no effect without noise */
    float periods;          /* of the cosine in decay_steps: default 0.5, at least 0 */
    float alpha;            /* is added to the linear part: default 0, at least 0 */
    float beta;             /* is added to the product: default 0.001, at least 0 */
    int64_t seed;           /* of the noise, as of random operators: default 0, from the graph's */
    const char *name;       /* of the scope; default "NoisyLinearCosineDecay" */
} mr_noisy_decay_options;
/* The same with normal noise on the linear part, of variance initial_variance / (1 + global_step) ^ variance_decay,
 * drawn anew in each run (tf.train.noisy_linear_cosine_decay). The result may be negative. */
MR_API mr_output mr_noisy_linear_cosine_decay_(mr_graph *graph, float learning_rate, mr_output global_step,
                                               int64_t decay_steps, const mr_noisy_decay_options *options);
#define mr_noisy_linear_cosine_decay(graph, learning_rate, global_step, decay_steps, ...)                              \
    MR_WITH_SIZE_(mr_noisy_linear_cosine_decay_((graph), (learning_rate), (global_step), (decay_steps), &options_),    \
                  mr_noisy_decay_options, .initial_variance = MR_UNSET, .variance_decay = MR_UNSET,                    \
                  .periods = MR_UNSET, .alpha = MR_UNSET, .beta = MR_UNSET, __VA_ARGS__)

typedef struct mr_decay_options {
    size_t size;                    /* of this struct (api.h) */
    const char *name;               /* of the scope; default: TensorFlow's, "ExponentialDecay", … */
    mr_output learning_rate_output; /* a float scalar that the graph computes; then learning_rate is MR_UNSET */
} mr_decay_options;
/* Each of these learning rates with options, which may be null. */
MR_API mr_output mr_exponential_decay_with(mr_graph *graph, float learning_rate, mr_output global_step,
                                           int64_t decay_steps, float decay_rate, bool staircase,
                                           const mr_decay_options *options);
MR_API mr_output mr_natural_exp_decay_with(mr_graph *graph, float learning_rate, mr_output global_step,
                                           int64_t decay_steps, float decay_rate, bool staircase,
                                           const mr_decay_options *options);
MR_API mr_output mr_inverse_time_decay_with(mr_graph *graph, float learning_rate, mr_output global_step,
                                            int64_t decay_steps, float decay_rate, bool staircase,
                                            const mr_decay_options *options);
MR_API mr_output mr_polynomial_decay_with(mr_graph *graph, float learning_rate, mr_output global_step,
                                          int64_t decay_steps, float end, float power, bool cycle,
                                          const mr_decay_options *options);
MR_API mr_output mr_cosine_decay_with(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                                      float alpha, const mr_decay_options *options);
MR_API mr_output mr_cosine_decay_restarts_with(mr_graph *graph, float learning_rate, mr_output global_step,
                                               int64_t first_decay_steps, float t_mul, float m_mul, float alpha,
                                               const mr_decay_options *options);
MR_API mr_output mr_linear_cosine_decay_with(mr_graph *graph, float learning_rate, mr_output global_step,
                                             int64_t decay_steps, float periods, float alpha, float beta,
                                             const mr_decay_options *options);
/* options  learning_rate_output is an error: the values are the learning rates */
MR_API mr_output mr_piecewise_constant_with(mr_graph *graph, mr_output global_step, mr_ints boundaries,
                                            mr_floats values, const mr_decay_options *options);

#ifdef __cplusplus
}
#endif
#endif
