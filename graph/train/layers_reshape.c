/* Flatten and dropout, as in tf.compat.v1.layers. */
#include "graph/train/layers.h"
#include <millrace/control_flow.h>
#include <millrace/ops.h>

#include <math.h>

/* ---- Flatten ---- */

/* [batch, channels, …] to [batch, …, channels]. */
static mr_output move_channels(mr_graph *graph, mr_output input)
{
    const mr_shape shape = mr_output_shape(input);
    char text[MR_SHAPE_TEXT_SIZE];
    int32_t order[MR_RANK_MAX] = {0};
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph);
    if (shape.rank < 3)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                             "channels_first needs an input of known rank, at least 3, not one of shape %s",
                             mr_shape_text(shape, text, sizeof text));
    for (int32_t i = 1; i < shape.rank; i++) order[i] = i + 1 < shape.rank ? i + 1 : 1;
    return mr_transpose(graph, input, mr_constant_int32s(graph, MR_SHAPE(shape.rank), order, "transpose/perm"));
}

static mr_output flatten(mr_graph *graph, mr_output input)
{
    mr_shape shape = mr_output_shape(input);
    int64_t count = 1;
    for (int32_t i = 1; i < shape.rank; i++) count = shape.dims[i] < 0 || count < 0 ? -1 : count * shape.dims[i];
    mr_output output;
    if (shape.rank >= 1 && count > 0) {
        int32_t sizes[2] = {-1, (int32_t)count};
        output = mr_reshape(graph, input, mr_constant_int32s(graph, MR_SHAPE(2), sizes, nullptr));
    } else {
        mr_output sizes = mr_shape_of(graph, input), one = mr_constant_ints(graph, MR_INTS(1));
        mr_output rows = mr_slice(graph, sizes, mr_constant_ints(graph, MR_INTS(0)), one);
        mr_output rest = mr_constant_ints(graph, MR_INTS(-1)), axis = mr_constant_int32(graph, 0);
        output = mr_reshape(graph, input, mr_concat_v2(graph, MR_OUTPUTS(rows, rest), axis));
    }
    return output;
}

mr_output mr_layer_flatten_(mr_graph *graph, mr_output input, const mr_flatten_layer *given)
{
    mr_flatten_layer layer;
    if (!MR_LAYER_READ(mr_flatten_layer, graph, &layer, given)) return mr_graph_failed_output(graph);
    mr_layer_begin(graph, layer.name, "flatten", MR_REUSE_NONE);
    const mr_output output = flatten(graph, layer.channels_first ? move_channels(graph, input) : input);
    mr_graph_pop_variable_scope(graph);
    return output;
}

/* ---- Dropout ---- */

/* The shape of the random values: the input's, or the given sizes with the input's where they are -1. */
static mr_output drawn_shape(mr_graph *graph, mr_output input, mr_ints sizes)
{
    mr_shape shape = mr_output_shape(input);
    if (sizes.count == 0) return mr_shape_of(graph, input);
    int32_t values[MR_RANK_MAX], mask[MR_RANK_MAX];
    bool known = true;
    for (int32_t i = 0; i < sizes.count; i++) {
        bool is_own = sizes.items[i] >= 0;
        int64_t size = is_own ? sizes.items[i] : shape.rank == sizes.count ? shape.dims[i] : -1;
        values[i] = (int32_t)size;
        mask[i] = is_own;
        known = known && size >= 0;
    }
    mr_output given = mr_constant_int32s(graph, MR_SHAPE(sizes.count), values, nullptr);
    if (known) return given;
    mr_output is_given = mr_cast(graph, mr_constant_int32s(graph, MR_SHAPE(sizes.count), mask, nullptr), MR_BOOL);
    return mr_select_v2(graph, is_given, given, mr_shape_of(graph, input));
}

static mr_output drop(mr_graph *graph, mr_output input, const mr_dropout_layer *layer, float rate)
{
    int64_t seed = 0, seed2 = 0;
    mr_dtype dtype = mr_output_dtype(input);
    mr_train_seed_pair(graph, layer->seed, &seed, &seed2);
    mr_graph_push_scope(graph, "dropout");
    mr_output scaled = mr_mul(graph, input, mr_train_scalar(graph, "Const", dtype, 1 / (1 - rate)));
    mr_output unit = mr_random_uniform(graph, drawn_shape(graph, input, layer->noise_shape), dtype, .seed = seed,
                                       .seed2 = seed2, .name = "random_uniform/RandomUniform");
    mr_output keep = mr_greater_equal(graph, unit, mr_train_scalar(graph, "GreaterEqual/y", dtype, rate));
    mr_output output = mr_select_v2(graph, keep, scaled, mr_train_scalar(graph, "Const", dtype, 0));
    mr_graph_pop_scope(graph);
    return output;
}

static bool check_noise_shape(mr_graph *graph, mr_output input, mr_ints sizes)
{
    if (sizes.count == 0 || mr_graph_status(graph, nullptr) != MR_OK) return true;
    mr_shape shape = mr_output_shape(input);
    bool fits = sizes.items != nullptr && sizes.count > 0 && sizes.count <= MR_RANK_MAX &&
                (shape.rank < 0 || shape.rank == sizes.count);
    for (int32_t i = 0; i < sizes.count && fits; i++)
        fits = sizes.items[i] == -1 || sizes.items[i] == 1 ||
               (shape.rank >= 0 && (shape.dims[i] < 0 || shape.dims[i] == sizes.items[i]));
    if (fits) return true;
    char text[MR_SHAPE_TEXT_SIZE];
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                        "noise_shape must have a size for each dimension of the input %s: 1, -1, or the input's",
                        mr_shape_text(shape, text, sizeof text));
    return false;
}

static mr_output build_dropout(mr_graph *graph, mr_output input, const mr_dropout_layer *layer)
{
    float rate = isnan(layer->rate) ? 0.5f : layer->rate;
    const char *no_effect = !isnan(layer->rate)             ? "rate"
                            : layer->seed != 0              ? "seed"
                            : layer->noise_shape.count != 0 ? "noise_shape"
                                                            : nullptr;
    if (!mr_train_check_range(graph, "rate", rate, 0, 1, false) ||
        !mr_layer_check_training(graph, layer->training, layer->is_training, no_effect) ||
        !check_noise_shape(graph, input, layer->noise_shape))
        return mr_graph_failed_output(graph);
    if (layer->is_training.node == nullptr)
        return layer->training == 1 ? drop(graph, input, layer, rate) : mr_identity(graph, input);
    mr_output output = mr_graph_failed_output(graph);
    mr_cond *cond = mr_cond_begin(graph, layer->is_training);
    mr_cond_else(cond, MR_OUTPUTS(drop(graph, input, layer, rate)));
    mr_cond_end(cond, MR_OUTPUTS(mr_identity(graph, input)), &output);
    return output;
}

mr_output mr_layer_dropout_(mr_graph *graph, mr_output input, const mr_dropout_layer *given)
{
    mr_dropout_layer layer;
    if (!MR_LAYER_READ(mr_dropout_layer, graph, &layer, given)) return mr_graph_failed_output(graph);
    mr_layer_begin(graph, layer.name, "dropout", MR_REUSE_NONE);
    mr_output output = build_dropout(graph, input, &layer);
    mr_graph_pop_variable_scope(graph);
    return output;
}
