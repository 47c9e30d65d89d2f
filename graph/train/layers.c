/* What layers have in common: scopes, options, variables, bias, activation and regularization, as the class Layer of
 * tf.compat.v1.layers; and the dense layer. Scopes, variables and operators have TensorFlow's names, so checkpoints are
 * interchangeable. */
#include "graph/train/layers.h"
#include "base/options.h"
#include "graph/train/open_scopes.h"
#include <millrace/ops.h>

#include <stdio.h>
#include <string.h>

/* ---- Options ---- */

bool mr_layer_read(mr_graph *graph, void *layer, size_t size, const void *given, const char *type)
{
    mr_error error = {0};
    mr_status status = mr_options_read(layer, size, given, type, &error);
    if (status != MR_OK) (void)mr_graph_fail(graph, status, "%s", error.message);
    return status == MR_OK;
}

int64_t mr_layer_channels(mr_graph *graph, mr_output input, int32_t rank, int32_t axis, const char *layer)
{
    if (mr_graph_status(graph, nullptr) != MR_OK) return 1;
    mr_shape shape = mr_output_shape(input);
    bool fits = rank > 0 ? shape.rank == rank : shape.rank >= 2;
    if (fits && axis < 0) axis += shape.rank;
    if (fits && axis >= 0 && axis < shape.rank && shape.dims[axis] > 0) return shape.dims[axis];
    char text[MR_SHAPE_TEXT_SIZE], dimension[32] = "last size";
    if (axis >= 0 && !(fits && axis == shape.rank - 1)) snprintf(dimension, sizeof dimension, "size %d", axis);
    if (rank > 0 && axis == rank - 1) snprintf(dimension, sizeof dimension, "last size");
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                        "%s needs an input of %s%d dimensions whose %s is known, not one of "
                        "shape %s",
                        layer, rank > 0 ? "" : "at least ", rank > 0 ? rank : 2, dimension,
                        mr_shape_text(shape, text, sizeof text));
    return 1;
}

bool mr_layer_sizes(mr_graph *graph, const char *option, int32_t plain, const char *list_option, mr_ints list,
                    int32_t rank, int32_t plain_unset, int64_t *sizes)
{
    if (list.count < 0 || (list.items == nullptr && list.count > 0)) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s is null, with a count of %d", list_option, list.count);
        return false;
    }
    if (list.count > 0 && plain != 0 && plain != plain_unset) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s and %s are both set, but only one may be", option,
                            list_option);
        return false;
    }
    if (list.count > 0 && list.count != rank) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s has %d sizes, but the layer has %d dimensions", list_option,
                            list.count, rank);
        return false;
    }
    if (list.count == 0 && plain_unset == 0 && !mr_train_check_required(graph, option, plain)) return false;
    for (int32_t i = 0; i < rank; i++) {
        sizes[i] = list.count > 0 ? list.items[i] : plain;
        if (!mr_train_check_count(graph, list.count > 0 ? list_option : option, sizes[i], 1)) return false;
    }
    return true;
}

bool mr_layer_check_training(mr_graph *graph, int32_t training, mr_output is_training, const char *option)
{
    if (training != MR_TRAINING_UNSET && training != 0 && training != 1)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "training is %d, but must be true or false", training);
    else if (training != MR_TRAINING_UNSET && is_training.node != nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "training and is_training are both set, but only one may be");
    else if (training == MR_TRAINING_UNSET && is_training.node == nullptr && option != nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s has no effect without training", option);
    else if (is_training.node != nullptr && mr_graph_status(graph, nullptr) == MR_OK &&
             mr_output_dtype(is_training) != MR_BOOL)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "is_training is %s, but must be bool",
                            mr_dtype_name(mr_output_dtype(is_training)));
    else
        return true;
    return false;
}

mr_ints mr_layer_attr(int64_t *items, const int64_t *sizes, int32_t rank, bool channels_first)
{
    for (int32_t i = 0; i < rank + 2; i++) items[i] = 1;
    memcpy(items + (channels_first ? 2 : 1), sizes, (size_t)rank * sizeof *items);
    return (mr_ints){items, rank + 2};
}

/* ---- Scopes and variables ---- */

void mr_layer_begin(mr_graph *graph, const char *name, const char *default_name, mr_reuse reuse)
{
    /* A layer that reuses variables is the one of its class without a number, if it has no name. */
    if (name == nullptr && reuse != MR_REUSE_NONE) name = default_name;
    (void)mr_graph_push_variable_scope(graph, name, .default_name = name == nullptr ? default_name : nullptr,
                                       .reuse = reuse);
}

mr_variable mr_layer_variable(mr_graph *graph, const mr_layer_weight *weight)
{
    mr_initializer initializer = weight->initializer;
    if (mr_initializer_is_omitted(&initializer)) initializer.kind = weight->default_kind;
    return mr_get_variable(graph, weight->name, weight->shape, .initializer = initializer, .dtype = weight->dtype,
                           .regularizer = weight->regularizer, .constraint = weight->constraint,
                           .trainable = weight->trainable);
}

mr_output mr_layer_value(mr_graph *graph, mr_variable variable, const char *consumer)
{
    if (!mr_variable_is_resource(variable)) return variable.value;
    const char *name = mr_arena_printf(&graph->arena, "%s/ReadVariableOp", consumer);
    return mr_read_variable_op(graph, variable.ref, mr_variable_dtype_of(variable), .name = name);
}

/* ---- After the product with the kernel ---- */

mr_variable mr_layer_bias(mr_graph *graph, const mr_layer_end *end, mr_dtype dtype)
{
    if (!end->use_bias) return (mr_variable){0};
    return mr_layer_variable(graph, &(mr_layer_weight){.name = "bias",
                                                       .shape = MR_SHAPE(end->units),
                                                       .dtype = dtype,
                                                       .initializer = end->bias_initializer,
                                                       .default_kind = MR_INIT_ZEROS,
                                                       .regularizer = end->bias_regularizer,
                                                       .constraint = end->bias_constraint,
                                                       .trainable = end->trainable});
}

mr_output mr_layer_add_bias(mr_graph *graph, mr_output output, const mr_layer_end *end, mr_variable bias)
{
    if (!end->use_bias) return output;
    if (end->rank == 1 && end->channels_first) {
        int32_t sizes[] = {1, (int32_t)end->units, 1};
        mr_output shape = mr_constant_int32s(graph, MR_SHAPE(3), sizes, "Reshape/shape");
        return mr_add_v2(graph, output, mr_reshape(graph, mr_layer_value(graph, bias, "Reshape"), shape),
                         .name = "add");
    }
    return mr_bias_add(graph, output, mr_layer_value(graph, bias, "BiasAdd"),
                       .data_format = end->channels_first ? MR_NCHW : MR_NHWC);
}

/* The regularization of a result is a mean over the batch. */
static void regularize_activity(mr_graph *graph, mr_output output, mr_regularizer regularizer)
{
    if (regularizer.l1 == 0 && regularizer.l2 == 0) return;
    mr_graph_push_scope(graph, "ActivityRegularizer");
    mr_output loss = mr_train_regularization(graph, output, regularizer);
    mr_output rows = mr_slice(graph, mr_shape_of(graph, output), mr_constant_ints(graph, MR_INTS(0)),
                              mr_constant_ints(graph, MR_INTS(1)));
    mr_output count = mr_reshape(graph, rows, mr_constant_int32s(graph, MR_SHAPE(0), nullptr, nullptr));
    loss = mr_real_div(graph, loss, mr_cast(graph, count, mr_output_dtype(output)), .name = "truediv");
    mr_graph_pop_scope(graph);
    if (mr_graph_status(graph, nullptr) == MR_OK) mr_graph_add_to_collection(graph, MR_REGULARIZATION_LOSSES, loss);
}

mr_output mr_layer_finish(mr_graph *graph, mr_output output, const mr_layer_end *end)
{
    if (end->activation != nullptr) {
        const mr_callback callback = mr_callback_begin(graph);
        output = end->activation(graph, output);
        (void)mr_callback_end(graph, &callback, "a layer", "activation");
    }
    regularize_activity(graph, output, end->activity_regularizer);
    return output;
}

/* ---- Dense ---- */

/* The product of the last dimension, whatever the number of the others (tf.tensordot). */
static mr_output last_product(mr_graph *graph, mr_output input, mr_variable kernel, int64_t units)
{
    mr_shape shape = mr_output_shape(input);
    int32_t rank = shape.rank, free[MR_RANK_MAX];
    mr_graph_push_scope(graph, "Tensordot");
    for (int32_t i = 0; i < rank; i++) free[i] = i;
    mr_output axes = mr_constant_int32s(graph, MR_SHAPE(1), (int32_t[]){rank - 1}, "axes");
    mr_output others = mr_constant_int32s(graph, MR_SHAPE(rank - 1), free, "free");
    mr_output zero = mr_constant_int32(graph, 0), first = mr_constant_ints(graph, MR_INTS(0));
    mr_output sizes = mr_shape_of(graph, input);
    mr_output outer = mr_gather_v2(graph, sizes, others, zero), inner = mr_gather_v2(graph, sizes, axes, zero);
    mr_output rows = mr_prod(graph, outer, first), columns = mr_prod(graph, inner, first);
    mr_output flat = mr_reshape(graph, input, mr_pack(graph, MR_OUTPUTS(rows, columns), .name = "stack"));
    mr_output product = mr_mat_mul(graph, flat, mr_layer_value(graph, kernel, "MatMul"));
    mr_output result_sizes =
        mr_concat_v2(graph, MR_OUTPUTS(outer, mr_constant_ints(graph, MR_INTS(units))), zero, .name = "concat_1");
    mr_output result = mr_reshape(graph, product, result_sizes, .name = mr_train_own_name(graph));
    mr_graph_pop_scope(graph);
    if (mr_graph_status(graph, nullptr) != MR_OK) return result;
    shape.dims[rank - 1] = units;
    mr_output_set_shape(result, shape);
    return result;
}

bool mr_layer_settle_decay(mr_graph *graph, float weight_decay, mr_regularizer *regularizer)
{
    if (!mr_train_check_number(graph, "weight_decay", weight_decay, 0)) return false;
    if (weight_decay != 0 && regularizer->l2 != 0) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "weight_decay and kernel_regularizer.l2 are both set, but only one may be");
        return false;
    }
    regularizer->l2 += weight_decay;
    return true;
}

static mr_output build_dense(mr_graph *graph, mr_output input, mr_dense_layer *layer)
{
    if (!mr_train_check_required(graph, "units", layer->units) ||
        !mr_layer_settle_decay(graph, layer->weight_decay, &layer->kernel_regularizer))
        return mr_graph_failed_output(graph);
    int64_t inputs = mr_layer_channels(graph, input, 0, -1, "dense");
    mr_dtype dtype = mr_output_dtype(input);
    mr_layer_end end = {.use_bias = layer->use_bias,
                        .trainable = !layer->not_trainable,
                        .units = layer->units,
                        .bias_initializer = layer->bias_initializer,
                        .bias_regularizer = layer->bias_regularizer,
                        .bias_constraint = layer->bias_constraint,
                        .activity_regularizer = layer->activity_regularizer,
                        .activation = layer->activation};
    mr_variable kernel = mr_layer_variable(graph, &(mr_layer_weight){.name = "kernel",
                                                                     .shape = MR_SHAPE(inputs, layer->units),
                                                                     .dtype = dtype,
                                                                     .initializer = layer->kernel_initializer,
                                                                     .regularizer = layer->kernel_regularizer,
                                                                     .constraint = layer->kernel_constraint,
                                                                     .trainable = !layer->not_trainable});
    mr_variable bias = mr_layer_bias(graph, &end, dtype);
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph);
    mr_output output = mr_output_shape(input).rank > 2
                           ? last_product(graph, input, kernel, layer->units)
                           : mr_mat_mul(graph, input, mr_layer_value(graph, kernel, "MatMul"));
    return mr_layer_finish(graph, mr_layer_add_bias(graph, output, &end, bias), &end);
}

mr_output mr_layer_dense_(mr_graph *graph, mr_output input, const mr_dense_layer *given)
{
    mr_dense_layer layer;
    if (!MR_LAYER_READ(mr_dense_layer, graph, &layer, given)) return mr_graph_failed_output(graph);
    mr_layer_begin(graph, layer.name, "dense", layer.reuse);
    mr_output output = build_dense(graph, input, &layer);
    mr_graph_pop_variable_scope(graph);
    return output;
}
