/* Synchronous replicas, as tf.train.SyncReplicasOptimizer: accumulators between the replicas' gradients and the update,
 * and a queue of tokens that lets the replicas take their next step. */
#include "graph/train/optimizer_sync.h"
#include "base/options.h"
#include "graph/ir/sparse_rows.h"
#include "graph/train/variable_store.h"
#include <millrace/ops.h>

#include <inttypes.h>
#include <string.h>

/* ---- Accumulators ---- */

typedef struct accumulators {
    mr_node **adds, **sets; /* the replica's additions; what gives each accumulator its step */
    int32_t count;
} accumulators;

static mr_output as_int64(mr_graph *graph, mr_output value)
{
    return mr_output_dtype(value) == MR_INT64 ? value : mr_cast(graph, value, MR_INT64);
}

static mr_output take_dense(sync_replicas *s, accumulators *a, mr_gradient_and_variable item, const char *shared,
                            mr_output *handle)
{
    mr_graph *graph = s->base.graph;
    const mr_dtype dtype = mr_output_dtype(item.gradient);
    *handle = mr_resource_conditional_accumulator(graph, dtype, .shape = mr_variable_shape_of(item.variable),
                                                  .shared_name = shared, .name = "conditional_accumulator");
    mr_output step = as_int64(graph, s->local_step.ref);
    a->adds[a->count] = mr_resource_accumulator_apply_gradient(graph, *handle, step, item.gradient);
    if (s->chief != nullptr) return (mr_output){0};
    return mr_resource_accumulator_take_gradient(graph, *handle, mr_constant_int32(graph, s->replicas_to_aggregate),
                                                 dtype);
}

/* The mean of rows, whose sum is the gradient of the update. */
static mr_output take_rows(sync_replicas *s, accumulators *a, mr_gradient_and_variable item, const char *shared,
                           mr_output *handle)
{
    mr_graph *graph = s->base.graph;
    const mr_sparse_rows rows = *mr_graph_find_rows(graph, item.gradient);
    const mr_dtype dtype = mr_output_dtype(rows.values);
    *handle = mr_sparse_conditional_accumulator(graph, dtype, .shape = MR_SCALAR, .shared_name = shared,
                                                .name = "sparse_conditional_accumulator");
    mr_output step = as_int64(graph, s->local_step.ref),
              unknown = as_int64(graph, mr_constant_ints(graph, (mr_ints){0}));
    a->adds[a->count] = mr_sparse_accumulator_apply_gradient(graph, *handle, step, as_int64(graph, rows.indices),
                                                             rows.values, unknown, .has_known_shape = false);
    if (s->chief != nullptr) return (mr_output){0};
    mr_sparse_accumulator_take_gradient_outputs taken =
        mr_sparse_accumulator_take_gradient(graph, *handle, mr_constant_int32(graph, s->replicas_to_aggregate), dtype);
    mr_sparse_rows mean = {.values = taken.values, .indices = taken.indices};
    const mr_shape shape = mr_variable_shape_of(item.variable);
    mean.count = mr_constant_int64(graph, shape.rank > 0 ? shape.dims[0] : 0);
    mean.dense = mr_unsorted_segment_sum(graph, mean.values, mean.indices, mean.count);
    mr_graph_note_rows(graph, mean);
    return mean.dense;
}

/* Adds the gradient, on the device of the variable. Returns the mean of all replicas; {0} unless this is the chief. */
static mr_output take_mean(sync_replicas *s, accumulators *a, mr_gradient_and_variable item, mr_output global_step)
{
    mr_graph *graph = s->base.graph;
    const char *shared = mr_arena_printf(&graph->arena, "%s:0/grad_accum", mr_node_name(item.variable.ref.node));
    if (shared == nullptr) return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for an optimizer");
    mr_output handle = {0};
    mr_graph_push_device(graph, mr_node_device(item.variable.ref.node));
    const bool is_sparse = mr_graph_find_rows(graph, item.gradient) != nullptr;
    mr_output mean = is_sparse ? take_rows(s, a, item, shared, &handle) : take_dense(s, a, item, shared, &handle);
    mr_output step = as_int64(graph, global_step);
    a->sets[a->count] = is_sparse
                            ? mr_accumulator_set_global_step(graph, handle, step, .name = "SetGlobalStep")
                            : mr_resource_accumulator_set_global_step(graph, handle, step, .name = "SetGlobalStep");
    mr_graph_pop_device(graph);
    a->count++;
    return mean;
}

/* ---- The step of a replica, and that of the chief ---- */

/* Runs after all gradients of the replica are added, and after the update ops. */
static mr_node *make_added(mr_graph *graph, const accumulators *a, bool run_update_ops)
{
    mr_node_builder builder = mr_node_begin(graph, "NoOp", "gradients_added");
    for (int32_t i = 0; i < a->count; i++) mr_node_add_control_input(&builder, a->adds[i]);
    const int32_t count = run_update_ops ? mr_graph_collection_count(graph, MR_UPDATE_OPS) : 0;
    for (int32_t i = 0; i < count; i++)
        mr_node_add_control_input(&builder, mr_graph_collection_item(graph, MR_UPDATE_OPS, i).node);
    return mr_node_finish(&builder).node;
}

/* What the chief's thread runs: the update of the inner optimizer, then a token for each replica, then averages. */
static void make_sync(sync_replicas *s, mr_gradients_and_variables means, mr_output global_step)
{
    mr_graph *graph = s->base.graph;
    const int32_t total = s->total_num_replicas, needed = s->replicas_to_aggregate;
    mr_node *update = mr_optimizer_apply(graph, &s->base.inner, means, global_step, false);
    mr_graph_push_control_dependencies(graph, &update, 1);
    mr_output tokens = mr_fill(graph, mr_constant_ints(graph, MR_INTS(total > needed ? total : needed)), global_step);
    s->nodes.sync =
        mr_queue_enqueue_many_v2(graph, s->nodes.token_queue, MR_OUTPUTS(tokens), .name = "sync_token_q_EnqueueMany");
    mr_graph_pop_control_dependencies(graph);
    if (s->averaged.count > 0) {
        mr_graph_push_control_dependencies(graph, &s->nodes.sync, 1);
        s->nodes.sync = mr_moving_average_(graph, s->averaged.items, s->averaged.count, nullptr, &s->averages);
        mr_graph_pop_control_dependencies(graph);
    }
    s->nodes.cancel_queue =
        mr_queue_close_v2(graph, s->nodes.token_queue, .cancel_pending_enqueues = true, .name = "sync_token_q_Close");
}

/* Outside of the scope, as in TensorFlow. Returns the step of the replica. */
static mr_node *make_steps(sync_replicas *s, mr_gradients_and_variables means, const accumulators *a,
                           mr_output global_step, bool run_update_ops)
{
    mr_graph *graph = s->base.graph;
    const mr_dtype dtype = mr_output_dtype(global_step);
    mr_node *added = make_added(graph, a, run_update_ops);
    mr_graph_push_scope(graph, "");
    mr_graph_push_device(graph, mr_node_device(global_step.node));
    s->nodes.token_queue = mr_fifo_queue_v2(graph, .component_types = MR_DTYPES(dtype), .shapes = MR_SHAPES(MR_SCALAR),
                                            .shared_name = "sync_token_q", .name = "sync_token_q");
    mr_graph_push_control_dependencies(graph, &added, 1);
    mr_output_range tokens = mr_queue_dequeue_v2(graph, s->nodes.token_queue, .component_types = MR_DTYPES(dtype),
                                                 .name = "sync_token_q_Dequeue");
    mr_graph_pop_control_dependencies(graph);
    mr_node *train = mr_assign(graph, s->local_step.ref, mr_output_at(tokens, 0)).node;
    if (s->chief == nullptr) make_sync(s, means, global_step);
    mr_graph_pop_device(graph);
    mr_graph_pop_scope(graph);
    return train;
}

static void make_local_step(sync_replicas *s, mr_output global_step)
{
    mr_graph *graph = s->base.graph;
    const int32_t count = mr_graph_variable_count(graph, MR_GLOBAL_VARIABLES);
    mr_variable *all = MR_ARENA_NEW(&graph->arena, mr_variable, (size_t)count + 1);
    if (all == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for an optimizer");
        return;
    }
    for (int32_t i = 0; i < count; i++) all[i] = mr_graph_variable(graph, MR_GLOBAL_VARIABLES, i);
    struct mr_flow_context *before = mr_optimizer_lift(graph);
    mr_output zero = mr_train_scalar(graph, "sync_rep_local_step/initial_value", mr_output_dtype(global_step), 0);
    s->local_step = mr_variable_new(graph, "sync_rep_local_step", zero, .local = true);
    s->nodes.local_step_init = mr_assign(graph, s->local_step.ref, global_step).node;
    s->nodes.ready_for_local_init = mr_report_uninitialized_variables(graph, (mr_variables){all, count}, nullptr);
    mr_optimizer_lift_end(graph, before);
}

static mr_node *apply(mr_optimizer_wrapper *wrapper, mr_gradients_and_variables list, mr_output global_step,
                      bool run_update_ops)
{
    sync_replicas *s = (sync_replicas *)wrapper;
    mr_graph *graph = wrapper->graph;
    const char *name = wrapper->kind->name;
    if (global_step.node == nullptr)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: global_step is required", name).node;
    if (s->is_applied)
        return mr_graph_fail(graph, MR_FAILED_PRECONDITION, "%s: the optimizer has been applied already", name).node;
    s->is_applied = true;
    const size_t size = (size_t)list.count + 1;
    mr_gradients_and_variables means = {MR_ARENA_NEW(&graph->arena, mr_gradient_and_variable, size), list.count};
    accumulators a = {MR_ARENA_NEW(&graph->arena, mr_node *, size), MR_ARENA_NEW(&graph->arena, mr_node *, size), 0};
    if (means.items == nullptr || a.adds == nullptr || a.sets == nullptr)
        return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for an optimizer").node;
    make_local_step(s, global_step);
    mr_graph_push_scope(graph, s->name);
    for (int32_t i = 0; i < list.count && mr_graph_status(graph, nullptr) == MR_OK; i++) {
        means.items[i] = list.items[i];
        if (list.items[i].gradient.node != nullptr)
            means.items[i].gradient = take_mean(s, &a, list.items[i], global_step);
    }
    mr_node *train = mr_graph_failed_output(graph).node;
    if (mr_graph_status(graph, nullptr) == MR_OK) train = make_steps(s, means, &a, global_step, run_update_ops);
    a.sets[a.count] = s->nodes.local_step_init;
    if (mr_graph_status(graph, nullptr) == MR_OK && s->chief == nullptr)
        s->nodes.chief_init = mr_group(graph, a.sets, a.count + 1, "chief_init");
    s->global_step = global_step;
    mr_graph_pop_scope(graph);
    return train;
}

static const mr_optimizer_wrapper_kind sync_kind = {"mr_sync_replicas_optimizer", .apply = apply};

/* ---- Public functions ---- */

/* Copies the variables to average, and how. */
static bool settle_averages(sync_replicas *s, const mr_sync_replicas_options *o)
{
    mr_graph *graph = s->base.graph;
    const char *name = s->base.kind->name;
    const mr_variables given = o->variables_to_average;
    mr_error error = {0};
    if (given.count == 0 && o->variable_averages == nullptr) return true;
    if (given.count <= 0 || given.items == nullptr || o->variable_averages == nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "%s: variable_averages and variables_to_average must both be given", name);
        return false;
    }
    mr_status status = MR_OPTIONS_READ(mr_moving_average_options, &s->averages, o->variable_averages, &error);
    if (status != MR_OK) {
        (void)mr_graph_fail(graph, status, "%s: %s", name, error.message);
        return false;
    }
    mr_variable *items = MR_ARENA_NEW(&graph->arena, mr_variable, (size_t)given.count);
    if (s->averages.name != nullptr) s->averages.name = mr_arena_strdup(&graph->arena, s->averages.name);
    if (items == nullptr || (o->variable_averages->name != nullptr && s->averages.name == nullptr)) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for an optimizer");
        return false;
    }
    memcpy(items, given.items, (size_t)given.count * sizeof *items);
    s->averaged = (mr_variables){items, given.count};
    return true;
}

/* Of a replica other than the chief. */
static bool settle_replica(sync_replicas *s, const mr_sync_replicas_options *o)
{
    mr_graph *graph = s->base.graph;
    s->chief = mr_optimizer_wrapper_of(graph, o->chief, &sync_kind, "mr_sync_replicas_optimizer: chief");
    if (s->chief == nullptr) return false;
    const char *what = s->chief->chief != nullptr              ? "the chief is itself a replica of another chief"
                       : s->chief->nodes.chief_init == nullptr ? "the chief's optimizer has not been applied"
                       : o->replicas_to_aggregate != 0 || o->total_num_replicas != 0
                           ? "replicas_to_aggregate and total_num_replicas are the chief's"
                       : o->variable_averages != nullptr || o->variables_to_average.count != 0
                           ? "variable_averages are the chief's"
                           : nullptr;
    if (what != nullptr) (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_sync_replicas_optimizer: %s", what);
    s->replicas_to_aggregate = s->chief->replicas_to_aggregate;
    s->total_num_replicas = s->chief->total_num_replicas;
    return what == nullptr;
}

static bool settle_chief(sync_replicas *s, const mr_sync_replicas_options *o)
{
    mr_graph *graph = s->base.graph;
    mr_graph_push_scope(graph, "mr_sync_replicas_optimizer");
    bool is_good = mr_train_check_required(graph, "replicas_to_aggregate", o->replicas_to_aggregate);
    if (is_good && o->total_num_replicas != 0)
        is_good = mr_train_check_count(graph, "total_num_replicas", o->total_num_replicas, 1);
    mr_graph_pop_scope(graph);
    s->replicas_to_aggregate = o->replicas_to_aggregate;
    s->total_num_replicas = o->total_num_replicas != 0 ? o->total_num_replicas : o->replicas_to_aggregate;
    return is_good && settle_averages(s, o);
}

static bool settle(sync_replicas *s, const mr_sync_replicas_options *o)
{
    mr_graph *graph = s->base.graph;
    s->name = mr_arena_strdup(&graph->arena, o->name != nullptr ? o->name : "sync_replicas");
    if (s->name == nullptr) (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for an optimizer");
    return s->name != nullptr && (o->chief != nullptr ? settle_replica(s, o) : settle_chief(s, o));
}

const mr_optimizer *mr_sync_replicas_optimizer_(mr_graph *graph, const mr_optimizer *optimizer,
                                                const mr_sync_replicas_options *given)
{
    sync_replicas *s = mr_optimizer_wrapper_new(graph, sizeof *s, &sync_kind, optimizer);
    if (s == nullptr) return nullptr;
    mr_sync_replicas_options options;
    mr_error error = {0};
    mr_status status = MR_OPTIONS_READ(mr_sync_replicas_options, &options, given, &error);
    if (status != MR_OK) {
        (void)mr_graph_fail(graph, status, "%s", error.message);
        return nullptr;
    }
    return settle(s, &options) ? &s->base.optimizer : nullptr;
}

/* Null: recorded. */
static sync_replicas *applied(mr_graph *graph, const mr_optimizer *optimizer, const char *function)
{
    sync_replicas *s = mr_optimizer_wrapper_of(graph, optimizer, &sync_kind, function);
    if (s == nullptr || s->nodes.local_step_init != nullptr) return s;
    (void)mr_graph_fail(graph, MR_FAILED_PRECONDITION, "%s: the optimizer has not been applied: call mr_minimize first",
                        function);
    return nullptr;
}

mr_sync_replicas_nodes mr_sync_replicas_nodes_of(mr_graph *graph, const mr_optimizer *optimizer)
{
    const sync_replicas *s = applied(graph, optimizer, "mr_sync_replicas_nodes_of");
    return s != nullptr ? s->nodes : (mr_sync_replicas_nodes){0};
}

mr_node *mr_sync_replicas_init_tokens(mr_graph *graph, const mr_optimizer *optimizer, int64_t num_tokens)
{
    if (graph == nullptr) return nullptr;
    const sync_replicas *s = applied(graph, optimizer, "mr_sync_replicas_init_tokens");
    if (s == nullptr) return mr_graph_failed_output(graph).node;
    const int64_t needed = (int64_t)s->replicas_to_aggregate - s->total_num_replicas;
    if (num_tokens == -1) num_tokens = s->replicas_to_aggregate;
    if (num_tokens < 0 || num_tokens < needed || num_tokens > INT32_MAX)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                             "mr_sync_replicas_init_tokens: num_tokens is %" PRId64 ", but must be at least %" PRId64
                             " (replicas_to_aggregate - total_num_replicas), or -1",
                             num_tokens, needed > 0 ? needed : 0)
            .node;
    struct mr_flow_context *before = mr_optimizer_lift(graph);
    mr_node *node;
    mr_graph_push_scope(graph, "");
    if (num_tokens > 0) {
        mr_output tokens = mr_fill(graph, mr_constant_ints(graph, MR_INTS((int32_t)num_tokens)), s->global_step);
        node = mr_queue_enqueue_many_v2(graph, s->nodes.token_queue, MR_OUTPUTS(tokens),
                                        .name = "sync_token_q_EnqueueMany");
    } else {
        node = mr_node_finish(&(mr_node_builder[]){mr_node_begin(graph, "NoOp", "no_init_tokens")}[0]).node;
    }
    mr_graph_pop_scope(graph);
    mr_optimizer_lift_end(graph, before);
    return node;
}
