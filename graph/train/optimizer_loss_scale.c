/* Scaling of the loss, as tf.train.experimental.MixedPrecisionLossScaleOptimizer. */
#include "base/options.h"
#include "graph/ir/sparse_rows.h"
#include "graph/train/optimizer_wrapper.h"
#include <millrace/control_flow.h>
#include <millrace/ops.h>

#include <math.h>

typedef struct loss_scaling {
    mr_optimizer_wrapper base;
    bool is_fixed;
    float fixed, initial, multiplier;
    int64_t increment_period;
    mr_variable scale, good_steps; /* of a dynamic scale */
} loss_scaling;

static mr_output scale_of(const loss_scaling *s)
{
    return s->is_fixed ? mr_constant_float(s->base.graph, s->fixed) : mr_variable_read_value(s->base.graph, s->scale);
}

static mr_output in_dtype_of(mr_graph *graph, mr_output number, mr_output like)
{
    return mr_output_dtype(like) == MR_FLOAT ? number : mr_cast(graph, number, mr_output_dtype(like));
}

/* The gradient, or its rows, multiplied. */
static mr_output multiplied(mr_graph *graph, mr_output gradient, mr_output factor)
{
    const mr_sparse_rows *found = mr_graph_find_rows(graph, gradient);
    if (found == nullptr) return mr_mul(graph, gradient, in_dtype_of(graph, factor, gradient));
    mr_sparse_rows rows = *found;
    rows.values = mr_mul(graph, rows.values, in_dtype_of(graph, factor, rows.values));
    rows.dense = mr_unsorted_segment_sum(graph, rows.values, rows.indices, rows.count);
    mr_graph_note_rows(graph, rows);
    return rows.dense;
}

static mr_gradients_and_variables compute(mr_optimizer_wrapper *wrapper, mr_output loss,
                                          const mr_compute_gradients_options *options)
{
    mr_graph *graph = wrapper->graph;
    const loss_scaling *s = (const loss_scaling *)wrapper;
    if (loss.node == nullptr || !mr_train_is_floating(mr_output_dtype(loss))) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_loss_scale_optimizer: the loss %s is not floating point",
                            loss.node != nullptr ? mr_node_name(loss.node) : "{0}");
        return (mr_gradients_and_variables){0};
    }
    mr_output scaled = mr_mul(graph, loss, in_dtype_of(graph, scale_of(s), loss));
    mr_gradients_and_variables list = mr_optimizer_compute_gradients_(graph, &wrapper->inner, scaled, options);
    if (mr_graph_status(graph, nullptr) != MR_OK) return (mr_gradients_and_variables){0};
    mr_output inverse = mr_real_div(graph, mr_constant_float(graph, 1), scale_of(s));
    for (int32_t i = 0; i < list.count; i++)
        if (list.items[i].gradient.node != nullptr)
            list.items[i].gradient = multiplied(graph, list.items[i].gradient, inverse);
    return list;
}

/* ---- The update of a dynamic scale ---- */

/* A bool scalar: all gradients are finite. */
static mr_output all_finite(mr_graph *graph, mr_gradients_and_variables list)
{
    mr_output *each = MR_ARENA_NEW(&graph->arena, mr_output, (size_t)list.count + 1);
    if (each == nullptr) return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for an optimizer");
    int32_t count = 0;
    const int32_t flat = -1;
    for (int32_t i = 0; i < list.count; i++) {
        mr_output values = list.items[i].gradient;
        if (values.node == nullptr) continue;
        const mr_sparse_rows *rows = mr_graph_find_rows(graph, values);
        if (rows != nullptr) values = rows->values;
        mr_output finite =
            mr_reshape(graph, mr_is_finite(graph, values), mr_constant_int32s(graph, MR_SHAPE(1), &flat, nullptr));
        each[count++] = mr_all(graph, finite, mr_constant_ints(graph, MR_INTS(0)));
    }
    if (count == 0) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "mr_loss_scale_optimizer: none of the %d variables has a gradient", list.count);
        return mr_graph_failed_output(graph);
    }
    return mr_all(graph, mr_pack(graph, MR_OUTPUTS_OF(each, count)), mr_constant_ints(graph, MR_INTS(0)));
}

/* The result of a branch that runs nodes: a value that follows them. */
static mr_output after(mr_graph *graph, mr_node *const *nodes, int32_t count)
{
    mr_graph_push_control_dependencies(graph, nodes, count);
    mr_output value = mr_identity(graph, mr_constant_int32(graph, 0));
    mr_graph_pop_control_dependencies(graph);
    return value;
}

static mr_output nothing(mr_graph *graph)
{
    return mr_constant_int32(graph, 0);
}

/* A larger scale, unless it is not finite, and a new count. */
static mr_output increase(const loss_scaling *s)
{
    mr_graph *graph = s->base.graph;
    mr_output larger = mr_mul(graph, mr_variable_read_value(graph, s->scale), mr_constant_float(graph, s->multiplier));
    mr_output assigned = {0};
    mr_cond *cond = mr_cond_begin(graph, mr_is_finite(graph, larger));
    mr_node *node = mr_variable_assign(graph, s->scale, larger).node;
    mr_cond_else(cond, MR_OUTPUTS(after(graph, &node, 1)));
    mr_cond_end(cond, MR_OUTPUTS(nothing(graph)), &assigned);
    mr_node *both[] = {assigned.node, mr_variable_assign(graph, s->good_steps, mr_constant_int64(graph, 0)).node};
    return after(graph, both, 2);
}

static mr_output count_good(const loss_scaling *s)
{
    mr_graph *graph = s->base.graph;
    mr_output next = mr_add_v2(graph, mr_variable_read_value(graph, s->good_steps), mr_constant_int64(graph, 1));
    mr_output period = mr_constant_int64(graph, s->increment_period), done = {0};
    mr_cond *cond = mr_cond_begin(graph, mr_greater_equal(graph, next, period));
    mr_cond_else(cond, MR_OUTPUTS(increase(s)));
    mr_node *node = mr_variable_assign_add(graph, s->good_steps, mr_constant_int64(graph, 1)).node;
    mr_cond_end(cond, MR_OUTPUTS(after(graph, &node, 1)), &done);
    return done;
}

static mr_output decrease(const loss_scaling *s)
{
    mr_graph *graph = s->base.graph;
    mr_output old = mr_variable_read_value(graph, s->scale);
    mr_output smaller = mr_real_div(graph, old, mr_constant_float(graph, s->multiplier));
    smaller = mr_maximum(graph, smaller, mr_constant_float(graph, 1));
    mr_node *both[] = {mr_variable_assign(graph, s->good_steps, mr_constant_int64(graph, 0)).node,
                       mr_variable_assign(graph, s->scale, smaller).node};
    return after(graph, both, 2);
}

static mr_node *apply(mr_optimizer_wrapper *wrapper, mr_gradients_and_variables list, mr_output global_step,
                      bool run_update_ops)
{
    mr_graph *graph = wrapper->graph;
    const loss_scaling *s = (const loss_scaling *)wrapper;
    if (s->is_fixed) return mr_optimizer_apply(graph, &wrapper->inner, list, global_step, run_update_ops);
    mr_output is_finite = all_finite(graph, list), updated = {0}, applied = {0};
    mr_cond *cond = mr_cond_begin(graph, is_finite);
    mr_cond_else(cond, MR_OUTPUTS(count_good(s)));
    mr_cond_end(cond, MR_OUTPUTS(decrease(s)), &updated);
    /* Variables of the inner optimizer have the scope of this conditional: "cond_1/beta1_power", as in TensorFlow. */
    cond = mr_cond_begin(graph, is_finite);
    mr_node *train = mr_optimizer_apply(graph, &wrapper->inner, list, global_step, run_update_ops);
    mr_cond_else(cond, MR_OUTPUTS(after(graph, &train, 1)));
    mr_cond_end(cond, MR_OUTPUTS(nothing(graph)), &applied);
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph).node;
    mr_node *both[] = {applied.node, updated.node};
    return mr_group(graph, both, 2, "train_with_loss_scale");
}

static const mr_optimizer_wrapper_kind loss_scale_kind = {"mr_loss_scale_optimizer", compute, apply};

/* ---- Options ---- */

static bool fail(mr_graph *graph, const char *option, const char *what)
{
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_loss_scale_optimizer: %s %s", option, what);
    return false;
}

static bool settle(loss_scaling *s, const mr_loss_scale_options *o)
{
    mr_graph *graph = s->base.graph;
    s->is_fixed = !isnan(o->fixed_loss_scale);
    s->fixed = o->fixed_loss_scale;
    if (s->is_fixed && (!isfinite(s->fixed) || s->fixed < 1))
        return fail(graph, "fixed_loss_scale", "must be finite and at least 1");
    if (s->is_fixed && !isnan(o->initial_loss_scale))
        return fail(graph, "initial_loss_scale", "has no effect with fixed_loss_scale");
    if (s->is_fixed && !isnan(o->multiplier)) return fail(graph, "multiplier", "has no effect with fixed_loss_scale");
    if (s->is_fixed && o->increment_period != 0)
        return fail(graph, "increment_period", "has no effect with fixed_loss_scale");
    s->initial = isnan(o->initial_loss_scale) ? 32768 : o->initial_loss_scale;
    s->multiplier = isnan(o->multiplier) ? 2 : o->multiplier;
    s->increment_period = o->increment_period == 0 ? 2000 : o->increment_period;
    if (!isfinite(s->initial) || s->initial <= 0)
        return fail(graph, "initial_loss_scale", "must be finite and greater than 0");
    if (!isfinite(s->multiplier) || s->multiplier <= 0)
        return fail(graph, "multiplier", "must be finite and greater than 0");
    return s->increment_period >= 1 || fail(graph, "increment_period", "must be at least 1");
}

static void make_variables(loss_scaling *s)
{
    mr_graph *graph = s->base.graph;
    struct mr_flow_context *before = mr_optimizer_lift(graph);
    mr_output initial = mr_train_float(graph, "current_loss_scale/initial_value", s->initial);
    s->scale = mr_variable_new(graph, "current_loss_scale", initial, .trainable = false, .use_resource = true);
    const int64_t zero = 0;
    mr_tensor value = {0};
    mr_error error = {0};
    mr_status status = mr_tensor_init_copy(&value, MR_INT64, MR_SCALAR, &zero, &error);
    if (status != MR_OK) (void)mr_graph_record(graph, status, &error);
    s->good_steps = mr_variable_new(graph, "good_steps", mr_constant(graph, &value, "good_steps/initial_value"),
                                    .trainable = false, .use_resource = true);
    mr_tensor_deinit(&value);
    mr_optimizer_lift_end(graph, before);
}

const mr_optimizer *mr_loss_scale_optimizer_(mr_graph *graph, const mr_optimizer *optimizer,
                                             const mr_loss_scale_options *given)
{
    loss_scaling *s = mr_optimizer_wrapper_new(graph, sizeof *s, &loss_scale_kind, optimizer);
    if (s == nullptr) return nullptr;
    mr_loss_scale_options options;
    mr_error error = {0};
    mr_status status = MR_OPTIONS_READ(mr_loss_scale_options, &options, given, &error);
    if (status != MR_OK) {
        (void)mr_graph_fail(graph, status, "%s", error.message);
        return nullptr;
    }
    if (!settle(s, &options)) return nullptr;
    if (!s->is_fixed) make_variables(s);
    return mr_graph_status(graph, nullptr) == MR_OK ? &s->base.optimizer : nullptr;
}

mr_output mr_loss_scale(mr_graph *graph, const mr_optimizer *optimizer)
{
    const loss_scaling *s = mr_optimizer_wrapper_of(graph, optimizer, &loss_scale_kind, "mr_loss_scale");
    return s != nullptr ? scale_of(s) : (mr_output){0};
}
