/* Layers as in tf.compat.v1.layers: scopes, variables and operators have the same names, so checkpoints are
 * interchangeable. */
#include "base/options.h"
#include "graph/train/train.h"
#include <millrace/ops.h>

#include <math.h>

mr_output mr_activation_relu(mr_graph *graph, mr_output input)
{
    return mr_relu(graph, input);
}

mr_output mr_activation_sigmoid(mr_graph *graph, mr_output input)
{
    return mr_sigmoid(graph, input);
}

mr_output mr_activation_tanh(mr_graph *graph, mr_output input)
{
    return mr_tanh(graph, input);
}

/* Adds weight_decay * sum(kernel^2) / 2, named KERNEL/Regularizer/mul, to the regularization losses. */
static void decay(mr_graph *graph, mr_variable kernel, float weight_decay)
{
    if (weight_decay == 0 || mr_graph_status(graph, nullptr) != MR_OK) return;
    const char *scope = mr_arena_printf(&graph->arena, "%s/Regularizer/", mr_node_name(kernel.ref.node));
    mr_graph_push_scope(graph, scope != nullptr ? scope : "Regularizer");
    mr_output half = mr_l2_loss(graph, kernel.value);
    mr_output scale = mr_train_float(graph, "mul/x", weight_decay);
    mr_output loss = mr_mul(graph, scale, half, .name = "mul");
    mr_graph_pop_scope(graph);
    mr_graph_add_to_collection(graph, MR_REGULARIZATION_LOSSES, loss);
}

static mr_output finish(mr_graph *graph, mr_output output, mr_shape bias_shape, bool use_bias, mr_activation activation)
{
    if (use_bias) {
        mr_variable bias = mr_get_variable(graph, "bias", bias_shape, (mr_initializer){.kind = MR_INIT_ZEROS});
        output = mr_bias_add(graph, output, bias.value);
    }
    return activation != nullptr ? activation(graph, output) : output;
}

/* The size of the last dimension. Records an error and returns 1 if rank or size do not fit. */
static int64_t channels_of(mr_graph *graph, mr_output input, int32_t rank, const char *layer)
{
    if (mr_graph_status(graph, nullptr) != MR_OK) return 1;
    mr_shape shape = mr_output_shape(input);
    if (shape.rank == rank && shape.dims[rank - 1] > 0) return shape.dims[rank - 1];
    char text[MR_SHAPE_TEXT_SIZE];
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                        "%s needs an input of %d dimensions whose last size is known, not one of shape %s", layer, rank,
                        mr_shape_text(shape, text, sizeof text));
    return 1;
}

/* Copies the options of a layer (base/options.h); false after an error of the graph. */
static bool read_layer(mr_graph *graph, void *layer, size_t size, const void *given, const char *type)
{
    mr_error error = {0};
    mr_status status = mr_options_read(layer, size, given, type, &error);
    if (status != MR_OK) (void)mr_graph_fail(graph, status, "%s", error.message);
    return status == MR_OK;
}
#define READ(type, graph, layer, given) read_layer((graph), (layer), sizeof(type), (given), #type)

static mr_output build_conv2d(mr_graph *graph, mr_output input, const mr_conv2d_layer *layer)
{
    if (!mr_train_check_required(graph, "filters", layer->filters) ||
        !mr_train_check_required(graph, "kernel_size", layer->kernel_size) ||
        !mr_train_check_count(graph, "strides", layer->strides, 1) ||
        !mr_train_check_number(graph, "weight_decay", layer->weight_decay, 0))
        return mr_graph_failed_output(graph);
    int64_t channels = channels_of(graph, input, 4, "conv2d"), stride = layer->strides;
    mr_shape shape = MR_SHAPE(layer->kernel_size, layer->kernel_size, channels, layer->filters);
    mr_variable kernel = mr_get_variable(graph, "kernel", shape, layer->kernel_initializer);
    decay(graph, kernel, layer->weight_decay);
    mr_output output = mr_conv2d(graph, input, kernel.value, .strides = MR_INTS(1, stride, stride, 1),
                                 .padding = layer->same ? MR_SAME : MR_VALID);
    return finish(graph, output, MR_SHAPE(layer->filters), layer->use_bias, layer->activation);
}

mr_output mr_layer_conv2d_(mr_graph *graph, mr_output input, const mr_conv2d_layer *given)
{
    mr_conv2d_layer layer;
    if (!READ(mr_conv2d_layer, graph, &layer, given)) return mr_graph_failed_output(graph);
    mr_graph_push_scope(graph, layer.name != nullptr ? layer.name : "conv2d");
    mr_output output = build_conv2d(graph, input, &layer);
    mr_graph_pop_scope(graph);
    return output;
}

static mr_output build_dense(mr_graph *graph, mr_output input, const mr_dense_layer *layer)
{
    if (!mr_train_check_required(graph, "units", layer->units) ||
        !mr_train_check_number(graph, "weight_decay", layer->weight_decay, 0))
        return mr_graph_failed_output(graph);
    int64_t inputs = channels_of(graph, input, 2, "dense");
    mr_variable kernel = mr_get_variable(graph, "kernel", MR_SHAPE(inputs, layer->units), layer->kernel_initializer);
    decay(graph, kernel, layer->weight_decay);
    mr_output output = mr_mat_mul(graph, input, kernel.value);
    return finish(graph, output, MR_SHAPE(layer->units), layer->use_bias, layer->activation);
}

mr_output mr_layer_dense_(mr_graph *graph, mr_output input, const mr_dense_layer *given)
{
    mr_dense_layer layer;
    if (!READ(mr_dense_layer, graph, &layer, given)) return mr_graph_failed_output(graph);
    mr_graph_push_scope(graph, layer.name != nullptr ? layer.name : "dense");
    mr_output output = build_dense(graph, input, &layer);
    mr_graph_pop_scope(graph);
    return output;
}

/* Adds moving -= (moving - batch) * (1 - momentum) to the update ops. */
static void move_average(mr_graph *graph, mr_variable moving, mr_output batch, mr_output momentum)
{
    mr_graph_push_scope(graph, "AssignMovingAvg");
    mr_output share = mr_sub(graph, mr_train_float(graph, "sub/x", 1), momentum, .name = "sub");
    mr_output distance = mr_sub(graph, moving.value, batch, .name = "sub");
    mr_output step = mr_mul(graph, distance, share, .name = "mul");
    mr_output update = mr_assign_sub(graph, moving.ref, step, .name = mr_train_own_name(graph));
    mr_graph_pop_scope(graph);
    mr_graph_add_to_collection(graph, MR_UPDATE_OPS, update);
}

/* training must be a bool, or be omitted; then `option`, which only has an effect in training, must be null. */
static bool check_training(mr_graph *graph, int32_t training, const char *option)
{
    if (training != MR_TRAINING_UNSET && training != 0 && training != 1)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "training is %d, but must be true or false", training);
    else if (training == MR_TRAINING_UNSET && option != nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s has no effect without training", option);
    else
        return true;
    return false;
}

static mr_output build_batch_normalization(mr_graph *graph, mr_output input, const mr_batch_normalization_layer *layer)
{
    float momentum = isnan(layer->momentum) ? 0.99f : layer->momentum;
    if (!mr_train_check_range(graph, "momentum", momentum, 0, 1, true) ||
        !mr_train_check_number(graph, "epsilon", layer->epsilon, 0) ||
        !check_training(graph, layer->training, isnan(layer->momentum) ? nullptr : "momentum"))
        return mr_graph_failed_output(graph);
    mr_shape shape = MR_SHAPE(channels_of(graph, input, 4, "batch_normalization"));
    mr_initializer zeros = {.kind = MR_INIT_ZEROS}, ones = {.kind = MR_INIT_ONES};
    mr_variable gamma = mr_get_variable(graph, "gamma", shape, ones);
    mr_variable beta = mr_get_variable(graph, "beta", shape, zeros);
    mr_variable mean = mr_train_variable(graph, "moving_mean", shape, zeros, false);
    mr_variable variance = mr_train_variable(graph, "moving_variance", shape, ones, false);
    mr_fused_batch_norm_v3_outputs normalized =
        mr_fused_batch_norm_v3(graph, input, gamma.value, beta.value, mean.value, variance.value,
                               .epsilon = layer->epsilon, .is_training = layer->training == 1);
    if (layer->training == 1) {
        mr_output constant = mr_train_float(graph, "Const", momentum);
        move_average(graph, mean, normalized.batch_mean, constant);
        move_average(graph, variance, normalized.batch_variance, constant);
    }
    return normalized.y;
}

mr_output mr_layer_batch_normalization_(mr_graph *graph, mr_output input, const mr_batch_normalization_layer *given)
{
    mr_batch_normalization_layer layer;
    if (!READ(mr_batch_normalization_layer, graph, &layer, given)) return mr_graph_failed_output(graph);
    mr_graph_push_scope(graph, layer.name != nullptr ? layer.name : "batch_normalization");
    mr_output output = build_batch_normalization(graph, input, &layer);
    mr_graph_pop_scope(graph);
    return output;
}

static bool check_pool(mr_graph *graph, const mr_pool_layer *layer)
{
    return mr_train_check_required(graph, "pool_size", layer->pool_size) &&
           mr_train_check_count(graph, "strides", layer->strides, 0);
}

mr_output mr_layer_max_pool_(mr_graph *graph, mr_output input, const mr_pool_layer *given)
{
    mr_pool_layer layer;
    if (!READ(mr_pool_layer, graph, &layer, given)) return mr_graph_failed_output(graph);
    mr_graph_push_scope(graph, layer.name != nullptr ? layer.name : "max_pooling2d");
    int64_t size = layer.pool_size, stride = layer.strides != 0 ? layer.strides : size;
    mr_output output = mr_graph_failed_output(graph);
    if (check_pool(graph, &layer))
        output = mr_max_pool(graph, input, .ksize = MR_INTS(1, size, size, 1), .strides = MR_INTS(1, stride, stride, 1),
                             .padding = layer.same ? MR_SAME : MR_VALID);
    mr_graph_pop_scope(graph);
    return output;
}

mr_output mr_layer_average_pool_(mr_graph *graph, mr_output input, const mr_pool_layer *given)
{
    mr_pool_layer layer;
    if (!READ(mr_pool_layer, graph, &layer, given)) return mr_graph_failed_output(graph);
    mr_graph_push_scope(graph, layer.name != nullptr ? layer.name : "average_pooling2d");
    int64_t size = layer.pool_size, stride = layer.strides != 0 ? layer.strides : size;
    mr_output output = mr_graph_failed_output(graph);
    if (check_pool(graph, &layer))
        output = mr_avg_pool(graph, input, .ksize = MR_INTS(1, size, size, 1), .strides = MR_INTS(1, stride, stride, 1),
                             .padding = layer.same ? MR_SAME : MR_VALID);
    mr_graph_pop_scope(graph);
    return output;
}

mr_output mr_layer_global_average_pool(mr_graph *graph, mr_output input)
{
    mr_graph_push_scope(graph, "global_average_pooling2d");
    mr_output output =
        mr_mean(graph, input, mr_constant_int32s(graph, MR_SHAPE(2), (int32_t[]){1, 2}, "reduction_indices"));
    mr_graph_pop_scope(graph);
    return output;
}

mr_output mr_layer_flatten(mr_graph *graph, mr_output input)
{
    mr_graph_push_scope(graph, "flatten");
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
    mr_graph_pop_scope(graph);
    return output;
}

mr_output mr_layer_dropout_(mr_graph *graph, mr_output input, const mr_dropout_layer *given)
{
    mr_dropout_layer layer;
    if (!READ(mr_dropout_layer, graph, &layer, given)) return mr_graph_failed_output(graph);
    mr_graph_push_scope(graph, layer.name != nullptr ? layer.name : "dropout");
    mr_output output = mr_graph_failed_output(graph);
    float rate = isnan(layer.rate) ? 0.5f : layer.rate;
    const char *no_effect = !isnan(layer.rate) ? "rate" : layer.seed != 0 ? "seed" : nullptr;
    bool legal =
        mr_train_check_range(graph, "rate", rate, 0, 1, false) && check_training(graph, layer.training, no_effect);
    if (legal && layer.training != 1) {
        output = mr_identity(graph, input);
    } else if (legal) {
        int64_t seed = 0, seed2 = 0;
        mr_train_seed_pair(graph, layer.seed, &seed, &seed2);
        mr_graph_push_scope(graph, "dropout");
        mr_output scaled = mr_mul(graph, input, mr_train_float(graph, "Const", 1 / (1 - rate)));
        mr_output unit = mr_random_uniform(graph, mr_shape_of(graph, input), MR_FLOAT, .seed = seed, .seed2 = seed2,
                                           .name = "random_uniform/RandomUniform");
        mr_output keep = mr_greater_equal(graph, unit, mr_train_float(graph, "GreaterEqual/y", rate));
        output = mr_select_v2(graph, keep, scaled, mr_train_float(graph, "Const", 0));
        mr_graph_pop_scope(graph);
    }
    mr_graph_pop_scope(graph);
    return output;
}
