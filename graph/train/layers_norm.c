/* Batch normalization, as tf.layers.batch_normalization builds it: the fused operator for images, otherwise moments and
 * their arithmetic; and layer normalization, as in tf.contrib.layers. Batch renormalization is in layers_renorm.c. */
#include "graph/train/layers_norm.h"
#include <millrace/control_flow.h>
#include <millrace/ops.h>

#include <math.h>

typedef mr_batch_norm plan;

static bool is_train(const plan *p)
{
    return p->layer->training == 1;
}

static bool has_tensor(const plan *p)
{
    return p->layer->is_training.node != nullptr;
}

/* ---- Options ---- */

static bool check_renorm(plan *p)
{
    const mr_batch_normalization_layer *layer = p->layer;
    const float limits[] = {layer->renorm_rmin, layer->renorm_rmax, layer->renorm_dmax};
    static const char *const names[] = {"renorm_rmin", "renorm_rmax", "renorm_dmax"};
    const char *unused = !isnan(layer->renorm_momentum) ? "renorm_momentum" : nullptr;
    for (size_t i = 0; i < 3; i++) {
        if (isnan(limits[i])) continue;
        unused = names[i];
        if (!mr_train_check_number(p->graph, names[i], limits[i], 0)) return false;
    }
    p->renorm_momentum = isnan(layer->renorm_momentum) ? 0.99f : layer->renorm_momentum;
    if (!layer->renorm && unused != nullptr) {
        (void)mr_graph_fail(p->graph, MR_INVALID_ARGUMENT, "%s has no effect without renorm", unused);
        return false;
    }
    if (layer->renorm && layer->fused == 1) {
        (void)mr_graph_fail(p->graph, MR_INVALID_ARGUMENT, "fused batch normalization does not renormalize");
        return false;
    }
    return mr_train_check_range(p->graph, "renorm_momentum", p->renorm_momentum, 0, 1, true);
}

static bool settle_axis(plan *p, mr_output input)
{
    const mr_batch_normalization_layer *layer = p->layer;
    char text[MR_SHAPE_TEXT_SIZE];
    if (mr_graph_status(p->graph, nullptr) != MR_OK) return false;
    p->shape = mr_output_shape(input);
    p->axis = layer->axis < 0 ? layer->axis + p->shape.rank : layer->axis;
    if (p->shape.rank < 2 || p->shape.rank > 5 || p->axis < 1 || p->axis >= p->shape.rank ||
        p->shape.dims[p->axis] <= 0) {
        (void)mr_graph_fail(
            p->graph, MR_INVALID_ARGUMENT,
            "batch_normalization needs an input of 2 to 5 dimensions whose size %d is known, not one of "
            "shape %s",
            layer->axis, mr_shape_text(p->shape, text, sizeof text));
        return false;
    }
    bool can_fuse = p->shape.rank == 4 && (p->axis == 1 || p->axis == 3);
    if (layer->fused < MR_INHERIT || layer->fused > 1 || (layer->fused == 1 && !can_fuse)) {
        (void)mr_graph_fail(
            p->graph, MR_INVALID_ARGUMENT,
            "fused must be true, false or MR_INHERIT; true needs an input of 4 dimensions and axis 1 or "
            "3, not %s and %d",
            mr_shape_text(p->shape, text, sizeof text), p->axis);
        return false;
    }
    p->virtual_size = layer->virtual_batch_size;
    p->fused = layer->fused == 1 || (layer->fused == MR_INHERIT && can_fuse && !layer->renorm && p->virtual_size == 0);
    p->dtype = mr_output_dtype(input);
    p->is_last = p->axis == p->shape.rank - 1;
    return true;
}

static bool check_virtual(const plan *p)
{
    const int32_t size = p->layer->virtual_batch_size;
    const int64_t batch = p->shape.dims[0];
    if (size == 0) return true;
    if (!mr_train_check_count(p->graph, "virtual_batch_size", size, 1)) return false;
    if (p->layer->fused == 1)
        (void)mr_graph_fail(p->graph, MR_INVALID_ARGUMENT,
                            "fused batch normalization has no virtual batches: set virtual_batch_size or fused");
    else if (batch >= 0 && batch % size != 0)
        (void)mr_graph_fail(p->graph, MR_INVALID_ARGUMENT,
                            "virtual_batch_size is %d, but must divide the batch of %lld", (int)size, (long long)batch);
    return mr_graph_status(p->graph, nullptr) == MR_OK;
}

/* ---- Variables ---- */

/* One element for each channel: a vector, or with virtual batches a shape that is broadcast to theirs. */
static mr_shape weight_shape(const plan *p)
{
    if (p->virtual_size == 0) return MR_SHAPE(p->shape.dims[p->axis]);
    mr_shape shape = {.rank = p->shape.rank + 1};
    for (int32_t i = 0; i < shape.rank; i++) shape.dims[i] = i == p->axis + 1 ? p->shape.dims[p->axis] : 1;
    return shape;
}

static mr_variable weight(const plan *p, const char *name, mr_initializer initializer, mr_initializer_kind kind,
                          mr_regularizer regularizer, mr_constraint constraint, bool trainable)
{
    bool is_half = p->dtype == MR_HALF || p->dtype == MR_BFLOAT16;
    return mr_layer_variable(p->graph, &(mr_layer_weight){.name = name,
                                                          .shape = weight_shape(p),
                                                          .dtype = is_half ? MR_FLOAT : p->dtype,
                                                          .initializer = initializer,
                                                          .default_kind = kind,
                                                          .regularizer = regularizer,
                                                          .constraint = constraint,
                                                          .trainable = trainable && !p->layer->not_trainable});
}

static void make_variables(plan *p)
{
    const mr_batch_normalization_layer *layer = p->layer;
    mr_initializer none = {.kind = MR_INIT_DEFAULT};
    if (!layer->no_scale)
        p->gamma = weight(p, "gamma", layer->gamma_initializer, MR_INIT_ONES, layer->gamma_regularizer,
                          layer->gamma_constraint, true);
    if (!layer->no_center)
        p->beta = weight(p, "beta", layer->beta_initializer, MR_INIT_ZEROS, layer->beta_regularizer,
                         layer->beta_constraint, true);
    mr_regularizer free = {0};
    p->moving_mean = weight(p, "moving_mean", layer->moving_mean_initializer, MR_INIT_ZEROS, free, nullptr, false);
    p->moving_variance =
        weight(p, "moving_variance", layer->moving_variance_initializer, MR_INIT_ONES, free, nullptr, false);
    if (!layer->renorm) return;
    /* TensorFlow starts them at the square root of the variance's initializer, which is ones, and at zeros. */
    p->moving_std = weight(p, "moving_stddev", none, MR_INIT_ONES, free, nullptr, false);
    p->renorm_mean = weight(p, "renorm_mean", none, MR_INIT_ZEROS, free, nullptr, false);
    p->renorm_std = weight(p, "renorm_stddev", none, MR_INIT_ONES, free, nullptr, false);
}

/* ---- Moving averages ---- */

static void add_update(mr_graph *graph, mr_output update)
{
    if (mr_graph_status(graph, nullptr) == MR_OK) mr_graph_add_to_collection(graph, MR_UPDATE_OPS, update);
}

/* The momentum of the averages: 1, which leaves them as they are, if the graph is not training. */
static mr_output momentum_of(const plan *p)
{
    mr_graph *graph = p->graph;
    if (!has_tensor(p)) return mr_train_float(graph, "Const", p->momentum);
    mr_output momentum = mr_graph_failed_output(graph);
    mr_cond *cond = mr_cond_begin(graph, p->layer->is_training);
    mr_cond_else(cond, MR_OUTPUTS(mr_train_float(graph, "Const", p->momentum)));
    mr_cond_end(cond, MR_OUTPUTS(mr_train_float(graph, "Const", 1)), &momentum);
    return momentum;
}

static void move_averages(const plan *p, mr_output mean, mr_output variance)
{
    if (!is_train(p) && !has_tensor(p)) return;
    mr_output momentum = p->fused || has_tensor(p) ? momentum_of(p) : (mr_output){0};
    if (momentum.node != nullptr && mr_variable_dtype_of(p->moving_mean) != MR_FLOAT)
        momentum = mr_cast(p->graph, momentum, mr_variable_dtype_of(p->moving_mean));
    add_update(p->graph, mr_batch_norm_move(p->graph, p->moving_mean, mean, p->momentum, momentum));
    add_update(p->graph, mr_batch_norm_move(p->graph, p->moving_variance, variance, p->momentum, momentum));
}

/* ---- Fused ---- */

static mr_fused_batch_norm_v3_outputs fused_node(const plan *p, mr_output input, mr_output scale, mr_output offset,
                                                 bool training)
{
    return mr_fused_batch_norm_v3(
        p->graph, input, scale, offset, mr_layer_value(p->graph, p->moving_mean, "FusedBatchNormV3"),
        mr_layer_value(p->graph, p->moving_variance, "FusedBatchNormV3"), .epsilon = p->layer->epsilon,
        .is_training = training, .data_format = p->axis == 1 ? MR_NCHW : MR_NHWC);
}

/* gamma and beta, or constants that have no effect. */
static mr_output value_or(const plan *p, mr_variable variable, float constant)
{
    mr_graph *graph = p->graph;
    if (variable.value.node != nullptr) return mr_layer_value(graph, variable, "ReadVariableOp");
    mr_output sizes = mr_constant_ints(graph, MR_INTS(p->shape.dims[p->axis]));
    return mr_fill(graph, sizes, mr_train_float(graph, "Const", constant));
}

static mr_output build_fused(const plan *p, mr_output input)
{
    mr_output scale = value_or(p, p->gamma, 1), offset = value_or(p, p->beta, 0);
    if (!has_tensor(p)) {
        mr_fused_batch_norm_v3_outputs normalized = fused_node(p, input, scale, offset, is_train(p));
        move_averages(p, normalized.batch_mean, normalized.batch_variance);
        return normalized.y;
    }
    mr_output merged[3] = {0};
    mr_cond *cond = mr_cond_begin(p->graph, p->layer->is_training);
    mr_fused_batch_norm_v3_outputs train = fused_node(p, input, scale, offset, true);
    mr_cond_else(cond, MR_OUTPUTS(train.y, train.batch_mean, train.batch_variance));
    mr_fused_batch_norm_v3_outputs infer = fused_node(p, input, scale, offset, false);
    mr_cond_end(cond, MR_OUTPUTS(infer.y, infer.batch_mean, infer.batch_variance), merged);
    if (mr_graph_status(p->graph, nullptr) != MR_OK) return mr_graph_failed_output(p->graph);
    move_averages(p, merged[1], merged[2]);
    return merged[0];
}

/* ---- Moments ---- */

/* A vector of channels in a shape that is broadcast along `axis`. */
static mr_output along_axis(const plan *p, mr_output vector)
{
    if (p->is_last || p->virtual_size > 0 || vector.node == nullptr) return vector;
    int32_t sizes[MR_RANK_MAX];
    for (int32_t i = 0; i < p->shape.rank; i++) sizes[i] = i == p->axis ? (int32_t)p->shape.dims[i] : 1;
    return mr_reshape(p->graph, vector, mr_constant_int32s(p->graph, MR_SHAPE(p->shape.rank), sizes, "Reshape/shape"));
}

/* if_true while training, else if_false. */
static mr_output choose(const plan *p, mr_output if_true, mr_output if_false)
{
    if (!has_tensor(p)) return is_train(p) ? if_true : if_false;
    mr_output chosen = mr_graph_failed_output(p->graph);
    mr_cond *cond = mr_cond_begin(p->graph, p->layer->is_training);
    mr_cond_else(cond, MR_OUTPUTS(if_true));
    mr_cond_end(cond, MR_OUTPUTS(if_false), &chosen);
    return chosen;
}

/* ---- Virtual batches: [batch, …] becomes [virtual_batch_size, parts, …], and back ---- */

static mr_output prepend(mr_graph *graph, mr_ints sizes, mr_output rest)
{
    return mr_concat_v2(graph, MR_OUTPUTS(mr_constant_ints(graph, sizes), rest), mr_constant_int32(graph, 0));
}

/* original  receives the shape of the input */
static mr_output divide(const plan *p, mr_output input, mr_output *original)
{
    mr_graph *graph = p->graph;
    const int32_t rest = p->shape.rank - 1;
    mr_output sizes = mr_slice(graph, mr_shape_of(graph, input), mr_constant_ints(graph, MR_INTS(1)),
                               mr_constant_ints(graph, MR_INTS(rest)));
    *original = prepend(graph, MR_INTS(-1), sizes);
    mr_output parts = mr_reshape(graph, input, prepend(graph, MR_INTS(p->virtual_size, -1), sizes));
    mr_shape shape = {.rank = p->shape.rank + 1};
    const int64_t batch = p->shape.dims[0];
    shape.dims[0] = p->virtual_size;
    shape.dims[1] = batch >= 0 ? batch / p->virtual_size : -1;
    for (int32_t i = 1; i < p->shape.rank; i++) shape.dims[i + 1] = p->shape.dims[i];
    if (mr_graph_status(graph, nullptr) == MR_OK) mr_output_set_shape(parts, shape);
    return parts;
}

static mr_output join(const plan *p, mr_output parts, mr_output original)
{
    mr_output output = mr_reshape(p->graph, parts, original);
    if (mr_graph_status(p->graph, nullptr) == MR_OK) mr_output_set_shape(output, p->shape);
    return output;
}

/* The mean over the parts. */
static mr_output over_parts(const plan *p, mr_output value)
{
    if (p->virtual_size == 0) return value;
    return mr_mean(p->graph, value, mr_constant_ints(p->graph, MR_INTS(1)), .keep_dims = true, .name = "Mean");
}

/* The dimensions over which moments are computed. Returns their number. */
static int32_t moment_axes(const plan *p, int32_t axes[MR_RANK_MAX])
{
    int32_t count = 0;
    const int32_t shift = p->virtual_size > 0; /* dimension 1 are the parts */
    for (int32_t i = 0; i < p->shape.rank; i++)
        if (i != p->axis) axes[count++] = i > 0 ? i + shift : 0;
    return count;
}

static mr_output build_plain(plan *p, mr_output input)
{
    mr_graph *graph = p->graph;
    mr_output scale = {0}, offset = {0}, original = {0};
    if (p->virtual_size > 0) input = divide(p, input, &original);
    if (!p->layer->no_scale) scale = mr_layer_value(graph, p->gamma, "mul");
    if (!p->layer->no_center) offset = mr_layer_value(graph, p->beta, "sub");
    mr_output mean = mr_layer_value(graph, p->moving_mean, "mean");
    mr_output variance = mr_layer_value(graph, p->moving_variance, "variance");
    if (is_train(p) || has_tensor(p)) {
        int32_t axes[MR_RANK_MAX];
        const int32_t count = moment_axes(p, axes);
        mr_output batch_mean, batch_variance;
        mr_train_moments(graph, input, axes, count, p->virtual_size == 0, &batch_mean, &batch_variance);
        mean = choose(p, batch_mean, mean);
        variance = choose(p, batch_variance, variance);
        if (p->layer->renorm)
            mr_batch_renorm(p, over_parts(p, mean), over_parts(p, variance), &scale, &offset);
        else
            move_averages(p, over_parts(p, mean), over_parts(p, variance));
    }
    mr_output output = mr_train_normalize(graph, input, along_axis(p, mean), along_axis(p, variance),
                                          along_axis(p, offset), along_axis(p, scale), p->layer->epsilon);
    return p->virtual_size > 0 ? join(p, output, original) : output;
}

/* ---- The layers ---- */

static mr_output build_batch_normalization(mr_graph *graph, mr_output input, const mr_batch_normalization_layer *layer)
{
    plan p = {.graph = graph, .layer = layer, .momentum = isnan(layer->momentum) ? 0.99f : layer->momentum};
    if (!mr_train_check_range(graph, "momentum", p.momentum, 0, 1, true) ||
        !mr_train_check_number(graph, "epsilon", layer->epsilon, 0) ||
        !mr_layer_check_training(graph, layer->training, layer->is_training,
                                 isnan(layer->momentum) ? nullptr : "momentum") ||
        !check_renorm(&p) || !settle_axis(&p, input) || !check_virtual(&p))
        return mr_graph_failed_output(graph);
    make_variables(&p);
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph);
    return p.fused ? build_fused(&p, input) : build_plain(&p, input);
}

mr_output mr_layer_batch_normalization_(mr_graph *graph, mr_output input, const mr_batch_normalization_layer *given)
{
    mr_batch_normalization_layer layer;
    if (!MR_LAYER_READ(mr_batch_normalization_layer, graph, &layer, given)) return mr_graph_failed_output(graph);
    mr_layer_begin(graph, layer.name, "batch_normalization", layer.reuse);
    mr_output output = build_batch_normalization(graph, input, &layer);
    mr_graph_pop_variable_scope(graph);
    return output;
}

static mr_output build_layer_norm(mr_graph *graph, mr_output input, const mr_layer_norm_layer *layer)
{
    int64_t units = mr_layer_channels(graph, input, 0, -1, "layer_norm");
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph);
    mr_layer_weight weight = {.name = "beta",
                              .shape = MR_SHAPE(units),
                              .dtype = mr_output_dtype(input),
                              .default_kind = MR_INIT_ZEROS,
                              .trainable = !layer->not_trainable};
    mr_output offset = {0}, scale = {0}, mean, variance;
    if (!layer->no_center) offset = mr_layer_value(graph, mr_layer_variable(graph, &weight), "sub");
    weight.name = "gamma";
    weight.default_kind = MR_INIT_ONES;
    if (!layer->no_scale) scale = mr_layer_value(graph, mr_layer_variable(graph, &weight), "mul");
    int32_t axes[MR_RANK_MAX], count = mr_output_shape(input).rank - 1;
    for (int32_t i = 0; i < count; i++) axes[i] = i + 1;
    mr_train_moments(graph, input, axes, count, false, &mean, &variance);
    mr_output output = mr_train_normalize(graph, input, mean, variance, offset, scale, 1e-12f);
    return layer->activation != nullptr ? layer->activation(graph, output) : output;
}

mr_output mr_layer_layer_norm_(mr_graph *graph, mr_output input, const mr_layer_norm_layer *given)
{
    mr_layer_norm_layer layer;
    if (!MR_LAYER_READ(mr_layer_norm_layer, graph, &layer, given)) return mr_graph_failed_output(graph);
    mr_layer_begin(graph, layer.name, "LayerNorm", layer.reuse);
    mr_output output = build_layer_norm(graph, input, &layer);
    mr_graph_pop_variable_scope(graph);
    return output;
}
