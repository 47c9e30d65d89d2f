/* Clipping of gradients, as in TensorFlow's clip_ops. */
#include "base/options.h"
#include "graph/ir/sparse_rows.h"
#include "graph/train/losses.h"
#include <millrace/ops.h>
#include <millrace/optimizers.h>

#include <inttypes.h>

/* A limit in the dtype of values. */
static mr_output limit(mr_graph *graph, float value, mr_output like)
{
    mr_output constant = mr_constant_float(graph, value);
    bool is_good = mr_graph_status(graph, nullptr) == MR_OK && like.node != nullptr;
    return is_good && mr_output_dtype(like) != MR_FLOAT ? mr_cast(graph, constant, mr_output_dtype(like)) : constant;
}

static bool check(mr_graph *graph, float norm)
{
    return mr_graph_status(graph, nullptr) == MR_OK && mr_train_check_number(graph, "norm", norm, 0);
}

/* What is clipped of a gradient: its rows, if it is sparse. */
static mr_output values_of(const mr_graph *graph, mr_output gradient)
{
    const mr_sparse_rows *rows = mr_graph_find_rows(graph, gradient);
    return rows != nullptr ? rows->values : gradient;
}

/* The gradient whose values have become these. */
static mr_output with_values(mr_graph *graph, mr_output gradient, mr_output values)
{
    const mr_sparse_rows *found = mr_graph_find_rows(graph, gradient);
    if (found == nullptr) return values;
    mr_sparse_rows rows = *found;
    rows.values = values;
    rows.dense = mr_unsorted_segment_sum(graph, rows.values, rows.indices, rows.count);
    mr_graph_note_rows(graph, rows);
    return rows.dense;
}

/* ---- Options ---- */

static bool read_options(mr_graph *graph, const mr_clip_options *given, mr_clip_options *options, const char *name)
{
    mr_error error = {0};
    if (graph == nullptr || mr_graph_status(graph, nullptr) != MR_OK) return false;
    mr_status status = MR_OPTIONS_READ(mr_clip_options, options, given, &error);
    if (status == MR_OK && (options->axes.count < 0 || (options->axes.count > 0 && options->axes.items == nullptr)))
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "axes is not a list");
    if (status != MR_OK) (void)mr_graph_fail(graph, status, "%s: %s", name, error.message);
    if (status == MR_OK && options->name == nullptr) options->name = name;
    return status == MR_OK;
}

/* Records an error and returns false unless each axis is one of the rank, and none is there twice. */
static bool check_axes(mr_graph *graph, mr_output values, mr_ints axes)
{
    const int32_t rank = mr_output_shape(values).rank;
    for (int32_t i = 0; i < axes.count; i++) {
        const int64_t axis = axes.items[i], limit = rank < 0 ? MR_RANK_MAX : rank;
        bool is_twice = false;
        for (int32_t j = 0; j < i; j++)
            is_twice |= axes.items[j] == axis || (rank >= 0 && axes.items[j] - axis == (axis < 0 ? rank : -rank));
        if (axis >= -limit && axis < limit && !is_twice) continue;
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "axes has %" PRId64 "%s", axis,
                            is_twice ? " twice" : ", which is not a dimension of the values");
        return false;
    }
    return true;
}

/* What the norm is computed along: the given axes, or all. */
static mr_output norm_axes(mr_graph *graph, mr_output values, mr_ints axes)
{
    return axes.count > 0 ? mr_constant_ints(graph, axes) : mr_loss_axes(graph, values, 0);
}

/* ---- Clipping ---- */

mr_output mr_clip_by_norm_(mr_graph *graph, mr_output gradient, float norm, const mr_clip_options *given)
{
    mr_clip_options options;
    if (!read_options(graph, given, &options, "clip_by_norm")) return mr_graph_failed_output(graph);
    mr_output values = values_of(graph, gradient);
    if (options.use_norm.node != nullptr)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: use_norm has no effect for the norm of one tensor",
                             options.name);
    mr_graph_push_scope(graph, options.name);
    mr_output clipped = mr_graph_failed_output(graph);
    if (check(graph, norm) && check_axes(graph, values, options.axes)) {
        mr_output axes = norm_axes(graph, values, options.axes);
        mr_output sum = mr_sum(graph, mr_mul(graph, values, values), axes, .keep_dims = true);
        mr_output is_positive = mr_greater(graph, sum, limit(graph, 0, values));
        mr_output ones = mr_ones_like(graph, sum);
        mr_output root = mr_sqrt(graph, mr_select(graph, is_positive, sum, ones)); /* has a gradient at 0 */
        root = mr_select(graph, is_positive, root, sum);
        mr_output most = limit(graph, norm, values);
        clipped = mr_real_div(graph, mr_mul(graph, values, most), mr_maximum(graph, root, most));
        clipped = with_values(graph, gradient, clipped);
    }
    mr_graph_pop_scope(graph);
    return clipped;
}

/* Of a sparse gradient the dense form, as in TensorFlow. */
mr_output mr_clip_by_average_norm(mr_graph *graph, mr_output values, float norm)
{
    mr_graph_push_scope(graph, "clip_by_average_norm");
    mr_output clipped = mr_graph_failed_output(graph);
    if (check(graph, norm)) {
        mr_output count = mr_cast(graph, mr_size(graph, values), MR_FLOAT);
        mr_output sum = mr_sum(graph, mr_mul(graph, values, values), mr_loss_axes(graph, values, 0));
        mr_output inverse = mr_mul(graph, mr_rsqrt(graph, sum), count), most = limit(graph, norm, values);
        mr_output factor = mr_minimum(graph, inverse, mr_real_div(graph, limit(graph, 1, values), most));
        clipped = mr_mul(graph, mr_mul(graph, values, most), factor);
    }
    mr_graph_pop_scope(graph);
    return clipped;
}

mr_output mr_global_norm(mr_graph *graph, mr_outputs values)
{
    if (graph == nullptr) return (mr_output){0};
    mr_graph_push_scope(graph, "global_norm");
    mr_output *halves = MR_ARENA_NEW(&graph->arena, mr_output, (size_t)(values.count > 0 ? values.count : 0) + 1);
    int32_t count = 0;
    if (halves == nullptr) (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a norm");
    for (int32_t i = 0; i < values.count && values.items != nullptr && halves != nullptr; i++)
        if (values.items[i].node != nullptr) halves[count++] = mr_l2_loss(graph, values_of(graph, values.items[i]));
    mr_output norm = mr_graph_failed_output(graph);
    if (count == 0)
        norm = mr_graph_fail(graph, MR_INVALID_ARGUMENT, "there are no values");
    else if (mr_graph_status(graph, nullptr) == MR_OK) {
        mr_output sum =
            mr_sum(graph, mr_pack(graph, MR_OUTPUTS_OF(halves, count)), mr_constant_ints(graph, MR_INTS(0)));
        norm = mr_sqrt(graph, mr_mul(graph, sum, limit(graph, 2, sum)), .name = "global_norm");
    }
    mr_graph_pop_scope(graph);
    return norm;
}

mr_output mr_clip_by_global_norm_(mr_graph *graph, mr_gradients_and_variables list, float norm,
                                  const mr_clip_options *given)
{
    mr_clip_options options;
    if (!read_options(graph, given, &options, "clip_by_global_norm")) return mr_graph_failed_output(graph);
    if (options.axes.count > 0)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: axes have no effect for a global norm", options.name);
    if (list.count < 0 || list.items == nullptr) list.count = 0;
    mr_output *values = MR_ARENA_NEW(&graph->arena, mr_output, (size_t)list.count + 1);
    if (values == nullptr) return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a norm");
    for (int32_t i = 0; i < list.count; i++) values[i] = list.items[i].gradient;
    mr_output found = options.use_norm;
    if (found.node == nullptr) found = mr_global_norm(graph, (mr_outputs){values, list.count});
    mr_graph_push_scope(graph, options.name);
    if (check(graph, norm)) {
        mr_output one = limit(graph, 1, found), most = limit(graph, norm, found);
        mr_output factor = mr_minimum(graph, mr_real_div(graph, one, found), mr_real_div(graph, one, most));
        factor = mr_mul(graph, most, factor);
        factor = mr_add_v2(graph, factor, mr_sub(graph, found, found)); /* NaN if the norm is not finite */
        for (int32_t i = 0; i < list.count; i++)
            if (list.items[i].gradient.node != nullptr)
                list.items[i].gradient = with_values(graph, list.items[i].gradient,
                                                     mr_mul(graph, values_of(graph, list.items[i].gradient), factor));
    }
    mr_graph_pop_scope(graph);
    return found;
}
