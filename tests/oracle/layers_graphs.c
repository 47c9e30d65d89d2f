/* Builds a small model around each layer for layers_oracle.py, which builds the same models with TensorFlow. */
#include "tests/oracle/model_cases.h"

static mr_output images(model *m, mr_shape shape)
{
    return m->x = mr_placeholder(m->g, MR_FLOAT, .shape = shape, .name = "x");
}

static mr_output flag(model *m)
{
    return m->training = mr_placeholder(m->g, MR_BOOL, .shape = MR_SCALAR, .name = "training");
}

static mr_output reused(model *m, mr_output x)
{
    mr_output y = mr_layer_dense(m->g, x, .units = 5, .name = "shared", .activation = mr_activation_tanh);
    return mr_layer_dense(m->g, y, .units = 5, .name = "shared", .reuse = MR_REUSE);
}

static mr_output scoped(model *m, mr_output x)
{
    mr_graph *g = m->g;
    mr_graph_push_variable_scope(g, "tower", .regularizer = {.l2 = 0.01f});
    mr_output y = mr_layer_dense(g, x, .units = 4);
    y = mr_layer_dense(g, y, .units = 4);
    mr_graph_pop_variable_scope(g);
    const mr_variable_scope *again = mr_graph_push_variable_scope(g, "tower", .reuse = MR_AUTO_REUSE);
    y = mr_layer_dense(g, x, .units = 4, .name = "dense", .kernel_regularizer = {.l1 = 0.1f});
    mr_graph_pop_variable_scope(g);
    mr_graph_push_variable_scope(g, nullptr, .scope = again);
    y = mr_layer_dense(g, y, .units = 2, .name = "last");
    mr_graph_pop_variable_scope(g);
    return y;
}

static mr_variable embedding_table(model *m, int32_t parts, bool is_resource)
{
    mr_partitioner partitioner = {.kind = parts > 1 ? MR_PARTITION_FIXED_SIZE : MR_PARTITION_DEFAULT,
                                  .parts_max = parts > 1 ? parts : 0};
    return mr_get_variable(m->g, "table", MR_SHAPE(11, 3), .partitioner = partitioner, .use_resource = is_resource);
}

static mr_output ids(model *m)
{
    int32_t values[] = {0, 3, 10, 7, 3, 5, 9, 1};
    (void)images(m, MR_SHAPE(1));
    return mr_constant_int32s(m->g, MR_SHAPE(4, 2), values, "ids");
}

static mr_output looked_up(model *m, int32_t parts, bool is_resource, mr_partition_strategy strategy, float max_norm)
{
    mr_variable table = embedding_table(m, parts, is_resource);
    return mr_embedding_lookup(m->g, mr_variable_parts(m->g, table), ids(m), .partition_strategy = strategy,
                               .max_norm = max_norm);
}

static mr_output looked_up_sparse(model *m, int32_t parts, mr_combiner combiner, bool is_weighted)
{
    mr_graph *g = m->g;
    mr_variable table = embedding_table(m, parts, false);
    int32_t rows[] = {0, 0, 0, 1, 1, 0, 1, 1, 3, 0, 3, 1};
    (void)images(m, MR_SHAPE(1));
    mr_output indices = mr_cast(g, mr_constant_int32s(g, MR_SHAPE(6, 2), rows, "indices"), MR_INT64);
    mr_output values = mr_constant_int32s(g, MR_SHAPE(6), (int32_t[]){4, 10, 4, 2, 8, 0}, "values");
    mr_output weights = {0};
    if (is_weighted) weights = mr_constant_floats(g, MR_SHAPE(6), (float[]){1, 2, 0.5f, 3, 1, 0.25f}, "weights");
    return mr_embedding_lookup_sparse(g, mr_variable_parts(g, table), indices, values, weights, .combiner = combiner,
                                      .partition_strategy = MR_PARTITION_DIV);
}

static mr_output normalized(model *m, mr_output x)
{
    return mr_relu(m->g, x); /* without it, the mean of the result would not depend on beta and gamma's gradient */
}

/* Of a constraint: the norm of each column is at most 0.3. */
static mr_output limited(mr_graph *g, mr_output value)
{
    return mr_clip_by_norm(g, value, 0.3f, .axes = MR_INTS(0));
}

static mr_output scope_limited(model *m, mr_output x, bool is_resource, int32_t parts)
{
    mr_graph *g = m->g;
    mr_graph_push_variable_scope(g, "limited", .constraint = limited, .use_resource = is_resource,
                                 .partitioner = {.kind = parts > 1 ? MR_PARTITION_FIXED_SIZE : MR_PARTITION_DEFAULT,
                                                 .parts_max = parts > 1 ? parts : 0});
    mr_output w = mr_get_variable(g, "w", MR_SHAPE(5, 3)).value;
    mr_graph_pop_variable_scope(g);
    return mr_mat_mul(g, x, w);
}

static mr_output rectified(model *m, mr_output x)
{
    mr_variable w = mr_get_variable(m->g, "w", MR_SHAPE(5, 3)), b = mr_get_variable(m->g, "b", MR_SHAPE(3));
    return mr_sub(m->g, mr_relu_layer(m->g, x, w.value, b.value), mr_xw_plus_b(m->g, x, w.value, b.value));
}

#define G m->g
#define X1 images(m, MR_SHAPE(-1, 5))
#define X2 images(m, MR_SHAPE(-1, 9, 5))
#define X3 images(m, MR_SHAPE(-1, 9, 8, 4))
#define X4 images(m, MR_SHAPE(-1, 5, 6, 7, 2))
#define CASES(C)                                                                                                       \
    C(dense, mr_layer_dense(G, X1, .units = 3, .activation = mr_activation_relu))                                      \
    C(dense_options,                                                                                                   \
      mr_layer_dense(G, X1, .units = 3, .use_bias = false, .kernel_regularizer = {.l1 = 0.1f, .l2 = 0.2f},             \
                     .activity_regularizer = {.l2 = 0.3f}, .name = "own"))                                             \
    C(dense_frozen, mr_layer_dense(G, mr_layer_dense(G, X1, .units = 3, .not_trainable = true), .units = 2))           \
    C(act_relu6, mr_layer_dense(G, mr_layer_dense(G, X1, .units = 4, .activation = mr_activation_relu6), .units = 2))  \
    C(act_leaky_relu,                                                                                                  \
      mr_layer_dense(G, mr_layer_dense(G, X1, .units = 4, .activation = mr_activation_leaky_relu), .units = 2))        \
    C(act_crelu, mr_layer_dense(G, mr_layer_dense(G, X1, .units = 4, .activation = mr_activation_crelu), .units = 2))  \
    C(act_elu, mr_layer_dense(G, mr_layer_dense(G, X1, .units = 4, .activation = mr_activation_elu), .units = 2))      \
    C(act_selu, mr_layer_dense(G, mr_layer_dense(G, X1, .units = 4, .activation = mr_activation_selu), .units = 2))    \
    C(act_swish, mr_layer_dense(G, mr_layer_dense(G, X1, .units = 4, .activation = mr_activation_swish), .units = 2))  \
    C(act_softplus,                                                                                                    \
      mr_layer_dense(G, mr_layer_dense(G, X1, .units = 4, .activation = mr_activation_softplus), .units = 2))          \
    C(act_log_sigmoid,                                                                                                 \
      mr_layer_dense(G, mr_layer_dense(G, X1, .units = 4, .activation = mr_activation_log_sigmoid), .units = 2))       \
    C(relu_layer, rectified(m, X1))                                                                                    \
    C(act_softsign,                                                                                                    \
      mr_layer_dense(G, mr_layer_dense(G, X1, .units = 4, .activation = mr_activation_softsign), .units = 2))          \
    C(act_hard_sigmoid,                                                                                                \
      mr_layer_dense(G, mr_layer_dense(G, X1, .units = 4, .activation = mr_activation_hard_sigmoid), .units = 2))      \
    C(act_softmax,                                                                                                     \
      mr_layer_dense(G, mr_layer_dense(G, X1, .units = 4, .activation = mr_activation_softmax), .units = 2))           \
    C(act_log_softmax,                                                                                                 \
      mr_layer_dense(G, mr_layer_dense(G, X1, .units = 4, .activation = mr_activation_log_softmax), .units = 2))       \
    C(prelu, mr_layer_prelu(G, mr_layer_conv2d(G, X3, .filters = 3, .kernel_size = 1)))                                \
    C(prelu_shared,                                                                                                    \
      mr_layer_prelu(G, mr_layer_conv2d(G, X3, .filters = 3, .kernel_size = 1), .shared_axes = MR_INTS(1, 2),          \
                     .alpha_initializer = {.kind = MR_INIT_CONSTANT, .scale = 0.25f},                                  \
                     .alpha_regularizer = {.l2 = 0.1f}, .name = "own"))                                                \
    C(dense_3, mr_layer_dense(G, X2, .units = 3, .bias_regularizer = {.l1 = 0.1f}))                                    \
    C(dense_reused, reused(m, X1))                                                                                     \
    C(scopes, scoped(m, X1))                                                                                           \
    C(conv1d, mr_layer_conv1d(G, X2, .filters = 3, .kernel_size = 3, .strides = 2, .same = true))                      \
    C(conv1d_dilated, mr_layer_conv1d(G, X2, .filters = 3, .kernel_size = 3, .dilation_rate = 2))                      \
    C(conv1d_first, mr_layer_conv1d(G, X2, .filters = 3, .kernel_size = 3, .channels_first = true))                    \
    C(conv2d, mr_layer_conv2d(G, X3, .filters = 3, .kernel_sizes = MR_INTS(3, 2), .strides_each = MR_INTS(2, 1),       \
                              .kernel_regularizer = {.l2 = 0.1f}, .activation = mr_activation_relu))                   \
    C(conv2d_dilated,                                                                                                  \
      mr_layer_conv2d(G, X3, .filters = 3, .kernel_size = 3, .dilation_rates = MR_INTS(2, 3), .same = true))           \
    C(conv2d_first, mr_layer_conv2d(G, X3, .filters = 3, .kernel_size = 3, .channels_first = true))                    \
    C(conv3d, mr_layer_conv3d(G, X4, .filters = 3, .kernel_size = 2, .strides = 2))                                    \
    C(conv3d_dilated, mr_layer_conv3d(G, X4, .filters = 2, .kernel_size = 2, .dilation_rates = MR_INTS(2, 1, 1)))      \
    C(separable1d, mr_layer_separable_conv1d(G, X2, .filters = 3, .kernel_size = 3, .strides = 2, .same = true))       \
    C(separable2d, mr_layer_separable_conv2d(G, X3, .filters = 3, .kernel_size = 3, .depth_multiplier = 2,             \
                                             .dilation_rate = 2, .pointwise_regularizer = {.l2 = 0.1f}))               \
    C(depthwise, mr_layer_depthwise_conv2d(G, X3, .kernel_size = 3, .depth_multiplier = 2, .strides = 2))              \
    C(transpose2d, mr_layer_conv2d_transpose(G, X3, .filters = 3, .kernel_size = 3, .strides = 2, .same = true))       \
    C(transpose2d_valid,                                                                                               \
      mr_layer_conv2d_transpose(G, X3, .filters = 3, .kernel_sizes = MR_INTS(2, 3), .strides_each = MR_INTS(3, 2)))    \
    C(transpose3d, mr_layer_conv3d_transpose(G, X4, .filters = 2, .kernel_size = 3, .strides = 2, .same = true))       \
    C(max1d, mr_layer_max_pool1d(G, mr_layer_dense(G, X2, .units = 3), .pool_size = 2))                                \
    C(average1d,                                                                                                       \
      mr_layer_average_pool1d(G, mr_layer_dense(G, X2, .units = 3), .pool_size = 3, .strides = 2, .same = true))       \
    C(max2d, mr_layer_max_pool(G, mr_layer_conv2d(G, X3, .filters = 3, .kernel_size = 1), .pool_sizes = MR_INTS(2, 3), \
                               .strides_each = MR_INTS(2, 1)))                                                         \
    C(max3d, mr_layer_max_pool3d(G, mr_layer_conv3d(G, X4, .filters = 3, .kernel_size = 1), .pool_size = 2))           \
    C(average3d, mr_layer_average_pool3d(G, mr_layer_conv3d(G, X4, .filters = 3, .kernel_size = 1), .pool_size = 2))   \
    C(global, mr_layer_global_max_pool(G, mr_layer_conv2d(G, X3, .filters = 3, .kernel_size = 1)))                     \
    C(norm_fused, normalized(m, mr_layer_batch_normalization(G, X3, .training = true, .momentum = 0.9f)))              \
    C(norm_flag, normalized(m, mr_layer_batch_normalization(G, X3, .is_training = flag(m), .momentum = 0.9f)))         \
    C(norm_plain, normalized(m, mr_layer_batch_normalization(G, X1, .training = true, .momentum = 0.9f,                \
                                                             .gamma_regularizer = {.l2 = 0.1f})))                      \
    C(norm_plain_flag, normalized(m, mr_layer_batch_normalization(G, X1, .is_training = flag(m))))                     \
    C(norm_inference, normalized(m, mr_layer_batch_normalization(G, X1)))                                              \
    C(norm_axis, normalized(m, mr_layer_batch_normalization(G, X3, .axis = 1, .fused = false, .training = true,        \
                                                            .no_scale = true)))                                        \
    C(norm_renorm,                                                                                                     \
      normalized(m, mr_layer_batch_normalization(G, X1, .training = true, .renorm = true, .renorm_rmin = 0.5f,         \
                                                 .renorm_rmax = 2, .renorm_dmax = 1)))                                 \
    C(norm_virtual,                                                                                                    \
      normalized(m, mr_layer_batch_normalization(G, X1, .training = true, .virtual_batch_size = 2, .momentum = 0.9f))) \
    C(norm_virtual_flag,                                                                                               \
      normalized(m, mr_layer_batch_normalization(G, X1, .is_training = flag(m), .virtual_batch_size = 3)))             \
    C(norm_virtual_inference, normalized(m, mr_layer_batch_normalization(G, X1, .virtual_batch_size = 3)))             \
    C(norm_virtual_image,                                                                                              \
      normalized(m, mr_layer_batch_normalization(G, X3, .training = true, .virtual_batch_size = 2, .no_scale = true))) \
    C(norm_virtual_axis,                                                                                               \
      normalized(m, mr_layer_batch_normalization(G, X3, .training = true, .axis = 1, .virtual_batch_size = 3)))        \
    C(norm_virtual_renorm,                                                                                             \
      normalized(m, mr_layer_batch_normalization(G, X1, .training = true, .virtual_batch_size = 3, .renorm = true)))   \
    C(dense_limited,                                                                                                   \
      mr_layer_dense(G, X1, .units = 3, .kernel_constraint = limited, .bias_constraint = mr_activation_relu))          \
    C(conv_limited, mr_layer_conv2d(G, X3, .filters = 3, .kernel_size = 2, .kernel_constraint = limited,               \
                                    .bias_constraint = mr_activation_relu))                                            \
    C(transpose_limited,                                                                                               \
      mr_layer_conv2d_transpose(G, X3, .filters = 3, .kernel_size = 2, .kernel_constraint = limited))                  \
    C(separable_limited,                                                                                               \
      mr_layer_separable_conv2d(G, X3, .filters = 3, .kernel_size = 3, .depthwise_constraint = limited,                \
                                .pointwise_constraint = mr_activation_relu, .bias_constraint = mr_activation_relu))    \
    C(norm_limited,                                                                                                    \
      normalized(m, mr_layer_batch_normalization(G, X1, .training = true, .beta_constraint = mr_activation_relu,       \
                                                 .gamma_constraint = mr_activation_tanh)))                             \
    C(prelu_limited, mr_layer_prelu(G, mr_layer_conv2d(G, X3, .filters = 3, .kernel_size = 1),                         \
                                    .shared_axes = MR_INTS(1, 2), .alpha_constraint = mr_activation_relu))             \
    C(scope_limited, scope_limited(m, X1, false, 1))                                                                   \
    C(scope_limited_resource, scope_limited(m, X1, true, 1))                                                           \
    C(scope_limited_parts, scope_limited(m, X1, false, 2))                                                             \
    C(flatten_first, mr_layer_dense(G, mr_layer_flatten(G, X3, .channels_first = true, .name = "flat"), .units = 2))   \
    C(flatten, mr_layer_dense(G, mr_layer_flatten(G, X3), .units = 2))                                                 \
    C(dropout, mr_layer_dropout(G, mr_layer_dense(G, X1, .units = 30), .training = true, .rate = 0.4f, .seed = 7))     \
    C(dropout_flag, mr_layer_dropout(G, mr_layer_dense(G, X1, .units = 3), .is_training = flag(m), .rate = 0.4f,       \
                                     .seed = 7, .noise_shape = MR_INTS(-1, 1)))                                        \
    C(embedding, looked_up(m, 1, false, MR_PARTITION_MOD, 0))                                                          \
    C(embedding_resource, looked_up(m, 1, true, MR_PARTITION_MOD, 0))                                                  \
    C(embedding_mod, looked_up(m, 2, false, MR_PARTITION_MOD, 0))                                                      \
    C(embedding_div, looked_up(m, 3, false, MR_PARTITION_DIV, 0.5f))                                                   \
    C(embedding_mean, looked_up_sparse(m, 1, MR_COMBINER_MEAN, false))                                                 \
    C(embedding_sum, looked_up_sparse(m, 2, MR_COMBINER_SUM, true))                                                    \
    C(embedding_sqrtn, looked_up_sparse(m, 3, MR_COMBINER_SQRTN, true))

MODEL_MAIN(CASES)
