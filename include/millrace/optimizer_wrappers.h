/* Optimizers around another optimizer: moving averages, synchronous replicas, scaling of the loss
 * (tf.contrib.opt.MovingAverageOptimizer, tf.train.SyncReplicasOptimizer and
 * tf.train.experimental.MixedPrecisionLossScaleOptimizer).
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2), (mr_initializer){.kind = MR_INIT_ONES});
 * mr_output loss = mr_l2_loss(g, w.value);
 * const mr_optimizer *scaled = mr_loss_scale_optimizer(g, mr_adam(.learning_rate = 1e-3f));
 * const mr_optimizer *averaged = mr_moving_average_optimizer(g, scaled, .average_decay = 0.99f);
 * mr_node *train = mr_minimize(g, averaged, loss, mr_global_step(g).ref);
 * mr_saver *saver = mr_swapping_saver(g, averaged, .max_to_keep = 3);
 * if (mr_graph_status(g, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * printf("%s\n", mr_node_name(train));
 * mr_saver_free(saver);
 * mr_graph_free(g);
 * ```
 *
 * Each function takes an optimizer, also one that these functions returned, and returns one for mr_minimize,
 * mr_apply_gradients and the like. It belongs to the graph and is used in this graph only. The given optimizer is
 * copied. Errors are recorded in the graph; the result is then null.
 *
 * Options follow the rules of variables.h. */
#ifndef MILLRACE_OPTIMIZER_WRAPPERS_H
#define MILLRACE_OPTIMIZER_WRAPPERS_H

#include <millrace/hooks.h>
#include <millrace/optimizers.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Moving averages of what is trained ---- */

typedef struct mr_moving_average_optimizer_options {
    size_t size;            /* of this struct (api.h) */
    float average_decay;    /* default 0.9999, 0 to less than 1 */
    mr_output num_updates;  /* as in mr_moving_average_options */
    bool sequential_update; /* average after the update of the variables; default true. false: at the same time */
} mr_moving_average_optimizer_options;
/* Keeps an average of each variable that has a gradient, w/ExponentialMovingAverage. */
MR_API const mr_optimizer *mr_moving_average_optimizer_(mr_graph *graph, const mr_optimizer *optimizer,
                                                        const mr_moving_average_optimizer_options *options);
#define mr_moving_average_optimizer(graph, optimizer, ...)                                                             \
    MR_WITH_SIZE_(mr_moving_average_optimizer_((graph), (optimizer), &options_), mr_moving_average_optimizer_options,  \
                  .average_decay = MR_UNSET, .sequential_update = true, __VA_ARGS__)
/* A saver for training, whose checkpoints have the averages under the names of the variables, and the variables under
 * the names of their averages: any other saver then restores the averages. Call it after mr_minimize or
 * mr_apply_gradients, and when all variables exist. Freed with mr_saver_free.
 * optimizer  of mr_moving_average_optimizer
 * options    .variables without .keys: those to save; with .keys: swapped too. State of iterators is not saved
 * errors     MR_INVALID_ARGUMENT: another optimizer; MR_FAILED_PRECONDITION: it has not been applied */
MR_API mr_saver *mr_swapping_saver_(mr_graph *graph, const mr_optimizer *optimizer, const mr_saver_options *options);
#define mr_swapping_saver(graph, optimizer, ...)                                                                       \
    MR_WITH_SIZE_(mr_swapping_saver_((graph), (optimizer), &options_), mr_saver_options, MR_SAVER_DEFAULTS, __VA_ARGS__)

/* ---- Synchronous replicas ----
 *
 * Replicas are threads of one process. Each has an optimizer and a loss of its own, and runs the step that mr_minimize
 * returns: it adds its gradients to accumulators, which all replicas share, and waits for a token. A thread of the
 * chief takes the mean of replicas_to_aggregate gradients of each variable, updates the variables and the global step,
 * and enqueues a token for each replica. Gradients of an older step are dropped. */

typedef struct mr_sync_replicas_options {
    size_t size;                   /* of this struct (api.h) */
    int32_t replicas_to_aggregate; /* gradients per update; required of the chief, at least 1 */
    int32_t total_num_replicas;    /* at least 1; default replicas_to_aggregate */
    /* Averages that the chief updates after each update (mr_moving_average). Both are given, or none. Copied. */
    mr_variables variables_to_average;
    const mr_moving_average_options *variable_averages;
    /* Of replicas other than the chief: the chief's optimizer, which has been applied. Then no update is built, and
     * replicas_to_aggregate and the averages are the chief's: giving them is an error. */
    const mr_optimizer *chief;
    const char *name; /* of the scope; default "sync_replicas" */
} mr_sync_replicas_options;
/* mr_minimize and mr_apply_gradients then need a global_step, and may be called once. The collection "update_ops" runs
 * in each replica's step.
 * Local variable "sync_rep_local_step", queue "sync_token_q", accumulators "w:0/grad_accum". */
MR_API const mr_optimizer *mr_sync_replicas_optimizer_(mr_graph *graph, const mr_optimizer *optimizer,
                                                       const mr_sync_replicas_options *options);
#define mr_sync_replicas_optimizer(graph, optimizer, ...)                                                              \
    MR_WITH_SIZE_(mr_sync_replicas_optimizer_((graph), (optimizer), &options_), mr_sync_replicas_options, __VA_ARGS__)

/* The nodes, for programs that do not use the hook. */
typedef struct mr_sync_replicas_nodes {
    mr_node *local_step_init;       /* of a replica that is not the chief: run it before the first step */
    mr_node *chief_init;            /* of the chief, instead */
    mr_output ready_for_local_init; /* names of variables that are not initialized: must be empty before the two */
    mr_output token_queue;
    mr_node *sync;         /* the chief's thread runs it until the end */
    mr_node *cancel_queue; /* closes the queue of tokens, and cancels enqueues that wait */
} mr_sync_replicas_nodes;
/* All null unless the optimizer is one of mr_sync_replicas_optimizer that has been applied: recorded as an error. */
MR_API mr_sync_replicas_nodes mr_sync_replicas_nodes_of(mr_graph *graph, const mr_optimizer *optimizer);
/* A node that enqueues the first tokens, for the chief to run once after chief_init.
 * num_tokens  at least replicas_to_aggregate - total_num_replicas; -1: replicas_to_aggregate */
MR_API mr_node *mr_sync_replicas_init_tokens(mr_graph *graph, const mr_optimizer *optimizer, int64_t num_tokens);
/* A hook for mr_monitored_session_new that initializes the local step, and as the chief also the accumulators and the
 * tokens, and then starts the chief's thread (make_session_run_hook). Call it after the optimizer has been applied.
 * num_tokens  as above; has no effect unless is_chief */
MR_API mr_hook *mr_sync_replicas_hook(mr_graph *graph, const mr_optimizer *optimizer, bool is_chief,
                                      int64_t num_tokens);

/* ---- Scaling of the loss, for gradients in half precision ---- */

typedef struct mr_loss_scale_options {
    size_t size; /* of this struct (api.h) */
    /* FixedLossScale: at least 1. Default: DynamicLossScale, with the options below. */
    float fixed_loss_scale;
    float initial_loss_scale; /* default 32768, greater than 0 */
    int64_t increment_period; /* after this number of steps with finite gradients, the scale grows; default 2000 */
    float multiplier;         /* by which the scale grows and shrinks; default 2, greater than 0 */
} mr_loss_scale_options;
/* Computes the gradients of loss * scale, and divides them by the scale (mr_minimize, mr_optimizer_compute_gradients).
 * A dynamic scale has the variables "current_loss_scale" and "good_steps". A step whose gradients are not finite then
 * only divides the scale by the multiplier, but not below 1: neither variables nor global_step change. */
MR_API const mr_optimizer *mr_loss_scale_optimizer_(mr_graph *graph, const mr_optimizer *optimizer,
                                                    const mr_loss_scale_options *options);
#define mr_loss_scale_optimizer(graph, optimizer, ...)                                                                 \
    MR_WITH_SIZE_(mr_loss_scale_optimizer_((graph), (optimizer), &options_), mr_loss_scale_options,                    \
                  .fixed_loss_scale = MR_UNSET, .initial_loss_scale = MR_UNSET, .multiplier = MR_UNSET, __VA_ARGS__)
/* The scale, a float scalar. {0} with a recorded error: the optimizer is none of mr_loss_scale_optimizer. */
MR_API mr_output mr_loss_scale(mr_graph *graph, const mr_optimizer *optimizer);

#ifdef __cplusplus
}
#endif
#endif
