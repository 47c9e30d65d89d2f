/* What all losses have in common: options, weights and reduction, as compute_weighted_loss of TensorFlow's losses. */
#include "base/options.h"
#include "graph/train/losses.h"
#include <millrace/control_flow.h>
#include <millrace/ops.h>

#include <math.h>

static const char *without_effect(const mr_loss_options *o, int choices)
{
    if (!isnan(o->label_smoothing) && (choices & MR_LOSS_HAS_SMOOTHING) == 0) return "label_smoothing";
    if (!isnan(o->delta) && (choices & MR_LOSS_HAS_DELTA) == 0) return "delta";
    if (!isnan(o->epsilon) && (choices & MR_LOSS_HAS_EPSILON) == 0) return "epsilon";
    if (o->axis != MR_COUNT_UNSET && (choices & MR_LOSS_HAS_AXIS) == 0) return "axis";
    if (o->reduction != MR_REDUCTION_SUM_BY_NONZERO_WEIGHTS && (choices & MR_LOSS_HAS_NO_REDUCTION) != 0)
        return "reduction";
    return nullptr;
}

bool mr_loss_begin(mr_graph *graph, const char *name, const mr_loss_options *given, int choices,
                   mr_loss_options *options)
{
    mr_error error = {0};
    mr_status status = MR_OPTIONS_READ(mr_loss_options, options, given, &error);
    mr_graph_push_scope(graph, status == MR_OK && options->name != nullptr ? options->name : name);
    if (status != MR_OK) {
        (void)mr_graph_fail(graph, status, "%s", error.message);
        return false;
    }
    if (options->collection == nullptr) options->collection = MR_LOSSES;
    const char *useless = without_effect(options, choices);
    if (useless != nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s has no effect for this loss", useless);
        return false;
    }
    if ((unsigned)options->reduction > MR_REDUCTION_SUM_OVER_BATCH_SIZE) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "reduction %d is not one of mr_reduction",
                            (int)options->reduction);
        return false;
    }
    if ((choices & MR_LOSS_HAS_AXIS) != 0 && options->axis == MR_COUNT_UNSET) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "the option axis is required");
        return false;
    }
    if (isnan(options->label_smoothing)) options->label_smoothing = 0;
    if (isnan(options->delta)) options->delta = 1;
    if (isnan(options->epsilon)) options->epsilon = 1e-7f;
    return mr_train_check_range(graph, "label_smoothing", options->label_smoothing, 0, 1, false) &&
           mr_train_check_number(graph, "delta", options->delta, 0) &&
           mr_train_check_number(graph, "epsilon", options->epsilon, 0) && mr_graph_status(graph, nullptr) == MR_OK;
}

mr_output mr_loss_axes(mr_graph *graph, mr_output values, int32_t first)
{
    int32_t axes[MR_RANK_MAX], rank = mr_output_shape(values).rank;
    for (int32_t i = first; i < rank; i++) axes[i - first] = i;
    if (rank >= 0) return mr_constant_int32s(graph, MR_SHAPE(rank > first ? rank - first : 0), axes, nullptr);
    return mr_range(graph, mr_constant_int32(graph, first), mr_rank(graph, values), mr_constant_int32(graph, 1));
}

/* ---- Weights ---- */

typedef enum fit { FITS, FITS_NOT, UNKNOWN } fit;

/* Weights are a scalar, or have the rank of the values and sizes of 1 or theirs. */
static fit compare(mr_shape weights, mr_shape values)
{
    if (weights.rank == 0) return FITS;
    if (weights.rank < 0 || values.rank < 0) return UNKNOWN;
    if (weights.rank != values.rank) return FITS_NOT;
    fit result = FITS;
    for (int32_t i = 0; i < weights.rank; i++) {
        int64_t w = weights.dims[i], v = values.dims[i];
        if (w == 1 || (w == v && w >= 0)) continue;
        if (w >= 0 && v >= 0) return FITS_NOT;
        result = UNKNOWN;
    }
    return result;
}

/* True when the run finds that the weights fit. */
static mr_output fits_at_run(mr_graph *graph, mr_output weights, mr_output values)
{
    mr_output ranks_fit = {0}, sizes_fit = {0}, none = mr_constant_int32(graph, 0);
    mr_output rank = mr_rank(graph, weights);
    mr_cond *is_scalar = mr_cond_begin(graph, mr_equal(graph, rank, none), .name = "is_scalar");
    mr_cond_else(is_scalar, MR_OUTPUTS(mr_constant_bool(graph, true)));
    mr_cond *same_rank = mr_cond_begin(graph, mr_equal(graph, rank, mr_rank(graph, values)), .name = "same_rank");
    mr_output of_weights = mr_shape_of(graph, weights), of_values = mr_shape_of(graph, values);
    mr_output is_one = mr_equal(graph, of_weights, mr_constant_int32(graph, 1));
    mr_output is_either = mr_logical_or(graph, is_one, mr_equal(graph, of_weights, of_values));
    mr_cond_else(same_rank, MR_OUTPUTS(mr_all(graph, is_either, mr_constant_ints(graph, MR_INTS(0)))));
    mr_cond_end(same_rank, MR_OUTPUTS(mr_constant_bool(graph, false)), &sizes_fit);
    mr_cond_end(is_scalar, MR_OUTPUTS(sizes_fit), &ranks_fit);
    return ranks_fit;
}

mr_output mr_loss_check_weights(mr_graph *graph, mr_output weights, mr_output values)
{
    if (mr_graph_status(graph, nullptr) != MR_OK) return weights;
    if (mr_output_dtype(weights) != MR_FLOAT) weights = mr_cast(graph, weights, MR_FLOAT);
    mr_shape shape = mr_output_shape(weights), of_values = mr_output_shape(values);
    fit found = compare(shape, of_values);
    char texts[2][MR_SHAPE_TEXT_SIZE];
    if (found == FITS_NOT)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "weights of shape %s do not fit values of shape %s",
                             mr_shape_text(shape, texts[0], sizeof texts[0]),
                             mr_shape_text(of_values, texts[1], sizeof texts[1]));
    if (found == FITS) return weights;
    mr_graph_push_scope(graph, "assert_broadcastable");
    mr_output text = mr_constant_string(graph, "weights can not be broadcast to values. weights.shape=");
    mr_output data[4] = {text, mr_shape_of(graph, weights), mr_constant_string(graph, "values.shape="),
                         mr_shape_of(graph, values)};
    mr_node *check = mr_assert(graph, fits_at_run(graph, weights, values), MR_OUTPUTS_OF(data, 4));
    mr_graph_push_control_dependencies(graph, &check, 1);
    weights = mr_identity(graph, weights);
    mr_graph_pop_control_dependencies(graph);
    mr_graph_pop_scope(graph);
    return weights;
}

mr_output mr_loss_num_present(mr_graph *graph, mr_output values, mr_output weights, bool by_row)
{
    mr_graph_push_scope(graph, "num_present");
    mr_output present = mr_ones_like(graph, values);
    if (mr_output_dtype(present) != MR_FLOAT) present = mr_cast(graph, present, MR_FLOAT);
    if (weights.node != nullptr) {
        mr_output is_zero = mr_equal(graph, weights, mr_constant_float(graph, 0));
        mr_output zeros = mr_zeros_like(graph, weights), ones = mr_ones_like(graph, weights);
        present = mr_mul(graph, mr_select(graph, is_zero, zeros, ones), present);
    }
    present = mr_sum(graph, present, mr_loss_axes(graph, values, by_row ? 1 : 0), .keep_dims = by_row);
    mr_graph_pop_scope(graph);
    return present;
}

/* ---- Reduction ---- */

static mr_output divisor(mr_graph *graph, mr_output losses, const mr_loss_options *options)
{
    if (options->reduction == MR_REDUCTION_SUM_OVER_BATCH_SIZE ||
        (options->reduction == MR_REDUCTION_SUM_BY_NONZERO_WEIGHTS && options->weights.node == nullptr))
        return mr_cast(graph, mr_size(graph, losses), MR_FLOAT, .name = "num_present");
    if (options->reduction == MR_REDUCTION_SUM_BY_NONZERO_WEIGHTS)
        return mr_loss_num_present(graph, losses, options->weights, false);
    mr_output ones = mr_ones_like(graph, losses);
    if (options->weights.node != nullptr) ones = mr_mul(graph, ones, options->weights);
    return mr_sum(graph, ones, mr_loss_axes(graph, losses, 0));
}

mr_output mr_loss_end(mr_graph *graph, mr_output losses, const mr_loss_options *given)
{
    mr_loss_options options = *given;
    bool is_good = mr_graph_status(graph, nullptr) == MR_OK;
    mr_dtype dtype = is_good ? mr_output_dtype(losses) : MR_FLOAT;
    if (dtype != MR_FLOAT) losses = mr_cast(graph, losses, MR_FLOAT);
    if (options.weights.node != nullptr) {
        options.weights = mr_loss_check_weights(graph, options.weights, losses);
        losses = mr_mul(graph, losses, options.weights);
    }
    mr_output loss = losses;
    if (options.reduction != MR_REDUCTION_NONE) {
        loss = mr_sum(graph, losses, mr_loss_axes(graph, losses, 0));
        if (options.reduction != MR_REDUCTION_SUM)
            loss = mr_div_no_nan(graph, loss, divisor(graph, losses, &options), .name = "value");
    }
    if (dtype != MR_FLOAT) loss = mr_cast(graph, loss, dtype);
    if (*options.collection != '\0') mr_graph_add_to_collection(graph, options.collection, loss);
    mr_graph_pop_scope(graph);
    return loss;
}
