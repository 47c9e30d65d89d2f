/* Layers: options that are wrong or without effect, shapes, and values that are obviously right. The comparison with
 * TensorFlow is tests/oracle/layers_oracle.py. */
#include "tests/test.h"

#include <math.h>
#include <millrace/millrace.h>

static mr_output rows(mr_graph *g)
{
    return mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 9, 5));
}

static mr_output volumes(mr_graph *g)
{
    return mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 4, 5, 6, 2));
}

static mr_variables table(mr_graph *g)
{
    return mr_variable_parts(g, mr_get_variable(g, "table", MR_SHAPE(4, 2)));
}

static mr_output flag(mr_graph *g)
{
    return mr_placeholder(g, MR_BOOL, .shape = MR_SCALAR);
}

#define WRONG(X)                                                                                                       \
    X("kernel_size and kernel_sizes are both set",                                                                     \
      mr_layer_conv2d(g, x, .filters = 1, .kernel_size = 3, .kernel_sizes = MR_INTS(3, 3)))                            \
    X("kernel_sizes has 3 sizes, but the layer has 2 dimensions",                                                      \
      mr_layer_conv2d(g, x, .filters = 1, .kernel_sizes = MR_INTS(3, 3, 3)))                                           \
    X("kernel_sizes is 0", mr_layer_conv2d(g, x, .filters = 1, .kernel_sizes = MR_INTS(3, 0)))                         \
    X("strides and strides_each are both set",                                                                         \
      mr_layer_conv2d(g, x, .filters = 1, .kernel_size = 1, .strides = 2, .strides_each = MR_INTS(1, 2)))              \
    X("dilation_rate is -1", mr_layer_conv2d(g, x, .filters = 1, .kernel_size = 3, .dilation_rate = -1))               \
    X("strides and dilation_rate must not both",                                                                       \
      mr_layer_conv2d(g, x, .filters = 1, .kernel_size = 3, .dilation_rate = 2, .strides = 2))                         \
    X("weight_decay and kernel_regularizer.l2 are both set",                                                           \
      mr_layer_conv2d(g, x, .filters = 1, .kernel_size = 3, .weight_decay = 1, .kernel_regularizer = {.l2 = 1}))       \
    X("conv1d needs an input of 3 dimensions", mr_layer_conv1d(g, x, .filters = 1, .kernel_size = 3))                  \
    X("conv3d needs an input of 5 dimensions", mr_layer_conv3d(g, rows(g), .filters = 1, .kernel_size = 3))            \
    X("l1 and l2 of the regularizer",                                                                                  \
      mr_layer_conv1d(g, rows(g), .filters = 1, .kernel_size = 3, .kernel_regularizer = {.l1 = -1}))                   \
    X("conv2d_transpose: dilation_rate has no effect",                                                                 \
      mr_layer_conv2d_transpose(g, x, .filters = 1, .kernel_size = 3, .dilation_rate = 2))                             \
    X("filters is required", mr_layer_conv3d_transpose(g, volumes(g), .kernel_size = 3))                               \
    X("depth_multiplier is 0", mr_layer_separable_conv2d(g, x, .filters = 1, .kernel_size = 3, .depth_multiplier = 0)) \
    X("filters has no effect", mr_layer_depthwise_conv2d(g, x, .filters = 1, .kernel_size = 3))                        \
    X("channels_first needs 2 dimensions",                                                                             \
      mr_layer_separable_conv1d(g, rows(g), .filters = 1, .kernel_size = 3, .channels_first = true))                   \
    X("shared_axes has 3, but must be 1 to 2", mr_layer_prelu(g, rows(g), .shared_axes = MR_INTS(1, 3)))               \
    X("shared_axes has 0, but must be 1 to 2", mr_layer_prelu(g, rows(g), .shared_axes = MR_INTS(0)))                  \
    X("shared_axes is not a list", mr_layer_prelu(g, rows(g), .shared_axes = {nullptr, 1}))                            \
    X("shared_axes is not a list", mr_layer_prelu(g, rows(g), .shared_axes = {nullptr, -1}))                           \
    X("dimension 1 of a p_re_lu layer's input is unknown",                                                             \
      mr_layer_prelu(g, mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, -1, 5)), .shared_axes = MR_INTS(2)))         \
    X("a p_re_lu layer: the input is bool", mr_layer_prelu(g, flag(g)))                                                \
    X("needs an input of known rank, at least 1", mr_layer_prelu(g, mr_constant_float(g, 1)))                          \
    X("hard_sigmoid: the input is int32", mr_activation_hard_sigmoid(g, mr_constant_int32(g, 1)))                      \
    X("hard_sigmoid: the input is missing", mr_activation_hard_sigmoid(g, (mr_output){0}))                             \
    X("pool_size is required", mr_layer_max_pool1d(g, rows(g)))                                                        \
    X("pool_sizes has 2 sizes", mr_layer_average_pool3d(g, volumes(g), .pool_sizes = MR_INTS(2, 2)))                   \
    X("global pooling needs", mr_layer_global_average_pool(g, mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, 3))))   \
    X("training and is_training are both set",                                                                         \
      mr_layer_batch_normalization(g, x, .training = true, .is_training = flag(g)))                                    \
    X("is_training is float", mr_layer_batch_normalization(g, x, .is_training = mr_constant_float(g, 1)))              \
    X("whose size 4 is known", mr_layer_batch_normalization(g, x, .axis = 4))                                          \
    X("fused must be true", mr_layer_batch_normalization(g, rows(g), .fused = true))                                   \
    X("renorm_rmax has no effect", mr_layer_batch_normalization(g, x, .renorm_rmax = 2))                               \
    X("renorm_dmax is -1", mr_layer_batch_normalization(g, x, .renorm = true, .renorm_dmax = -1))                      \
    X("does not renormalize", mr_layer_batch_normalization(g, x, .renorm = true, .fused = true))                       \
    X("layer_norm needs an input of at least 2",                                                                       \
      mr_layer_layer_norm(g, mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(3))))                                       \
    X("noise_shape has no effect", mr_layer_dropout(g, x, .noise_shape = MR_INTS(1, 1, 1, 1)))                         \
    X("noise_shape must have a size", mr_layer_dropout(g, x, .training = true, .noise_shape = MR_INTS(1, 2)))          \
    X("ids must be int32", mr_embedding_lookup(g, table(g), mr_constant_float(g, 1)))                                  \
    X("the table has no variable", mr_embedding_lookup(g, (mr_variables){0}, mr_constant_int32(g, 1)))                 \
    X("max_norm must be", mr_embedding_lookup(g, table(g), mr_constant_int32(g, 1), .max_norm = -1))                   \
    X("combiner has no effect",                                                                                        \
      mr_embedding_lookup(g, table(g), mr_constant_int32(g, 1), .combiner = MR_COMBINER_SUM))                          \
    X("Variable own/kernel already exists",                                                                            \
      mr_layer_dense(g, mr_layer_dense(g, rows(g), .units = 5, .name = "own"), .units = 5, .name = "own"))             \
    X("Variable dense/kernel does not exist", mr_layer_dense(g, rows(g), .units = 5, .reuse = MR_REUSE))

static void check_wrong(const char *part, const char *text, mr_graph *g)
{
    mr_error error = {0};
    mr_status status = mr_graph_status(g, &error);
    if (status != MR_INVALID_ARGUMENT || strstr(error.message, part) == nullptr)
        test_fail(__FILE__, __LINE__, "%s: %s: \"%s\", not \"%s\"", text, mr_status_name(status), error.message, part);
    mr_graph_free(g);
}

TEST(layers_that_cannot_be_are_explained)
{
#define REFUSE(part, expression)                                                                                       \
    {                                                                                                                  \
        mr_graph *g = mr_graph_new();                                                                                  \
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, 8, 8, 3), .name = "x");                         \
        (void)x;                                                                                                       \
        (void)(expression);                                                                                            \
        check_wrong(part, #expression, g);                                                                             \
    }
    WRONG(REFUSE)
}

/* The static shape is the one that a run computes, also where sizes are unknown while the graph is built. */
#define SHAPES(X)                                                                                                      \
    X(4, (1, 7, 6, 2), (1, 4, 3, 3),                                                                                   \
      mr_layer_conv2d(g, x, .filters = 3, .kernel_size = 3, .strides = 2, .same = true))                               \
    X(4, (1, 7, 6, 2), (1, 3, 4, 3),                                                                                   \
      mr_layer_conv2d(g, x, .filters = 3, .kernel_sizes = MR_INTS(3, 2), .dilation_rate = 2))                          \
    X(4, (1, 7, 6, 2), (1, 7, 6, 3),                                                                                   \
      mr_layer_conv2d(g, x, .filters = 3, .kernel_size = 3, .dilation_rate = 3, .same = true))                         \
    X(4, (1, 7, 6, 2), (1, 15, 12, 3),                                                                                 \
      mr_layer_conv2d_transpose(g, x, .filters = 3, .kernel_sizes = MR_INTS(3, 1), .strides = 2))                      \
    X(3, (2, 7, 2), (2, 3, 3), mr_layer_conv1d(g, x, .filters = 3, .kernel_size = 3, .dilation_rate = 2))              \
    X(3, (2, 7, 2), (2, 3, 2), mr_layer_max_pool1d(g, x, .pool_size = 2))                                              \
    X(3, (2, 7, 2), (2, 7, 4), mr_layer_dense(g, x, .units = 4))                                                       \
    X(5, (1, 5, 4, 3, 2), (1, 10, 8, 6, 3),                                                                            \
      mr_layer_conv3d_transpose(g, x, .filters = 3, .kernel_size = 3, .strides = 2, .same = true))                     \
    X(3, (2, 7, 2), (2, 14), mr_layer_flatten(g, x))                                                                   \
    X(3, (2, 7, 2), (2, 7, 2), mr_layer_layer_norm(g, x))

static void check_shape(const char *text, mr_graph *g, mr_output x, mr_shape given, mr_output y, mr_shape expected)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_tensor input = {0}, value = {0};
    char found[MR_SHAPE_TEXT_SIZE], wanted[MR_SHAPE_TEXT_SIZE];
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_OK(mr_tensor_init(&input, MR_FLOAT, given, &error));
    for (int64_t i = 0; i < mr_tensor_count(&input); i++) mr_tensor_floats(&input)[i] = (float)i;
    if (mr_session_run(session, MR_FEEDS({x, input}), MR_OUTPUTS(y), &value, nullptr, 0, &error) != MR_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", text, error.message);
    if (!mr_shape_equal(value.shape, expected) || !mr_shape_compatible(mr_output_shape(y), expected))
        test_fail(__FILE__, __LINE__, "%s: %s, not %s", text, mr_shape_text(value.shape, found, sizeof found),
                  mr_shape_text(expected, wanted, sizeof wanted));
    mr_tensor_deinit(&input);
    mr_tensor_deinit(&value);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(layers_have_their_shapes_with_unknown_sizes_too){
#define RUN(rank_, given, expected, expression)                                                                        \
    for (int known = 0; known < 2; known++) {                                                                          \
        mr_graph *g = mr_graph_new();                                                                                  \
        mr_shape shape = MR_SHAPE given;                                                                               \
        for (int32_t i = 0; i < rank_ - 1 && !known; i++) shape.dims[i] = -1;                                          \
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = shape);                                                     \
        mr_output y = expression;                                                                                      \
        check_shape(#expression, g, x, MR_SHAPE given, y, MR_SHAPE expected);                                          \
    }
    SHAPES(RUN)}

TEST(layers_share_variables_when_they_are_reused)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = rows(g);
    for (int i = 0; i < 3; i++) {
        mr_graph_push_variable_scope(g, "tower", .reuse = MR_AUTO_REUSE);
        mr_output y = mr_layer_conv1d(g, x, .filters = 2, .kernel_size = 3, .weight_decay = 0.1f);
        y = mr_layer_batch_normalization(g, y, .training = true);
        (void)mr_layer_dense(g, y, .units = 2);
        mr_graph_pop_variable_scope(g);
    }
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_EQ(mr_graph_variable_count(g, MR_GLOBAL_VARIABLES), 8);
    CHECK_EQ(mr_graph_collection_count(g, MR_REGULARIZATION_LOSSES), 1);
    CHECK(mr_graph_find(g, "tower/conv1d/kernel") != nullptr && mr_graph_find(g, "tower_2/dense/BiasAdd") != nullptr);
    mr_graph_free(g);
}

TEST(layers_normalize_each_element)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_constant_floats(g, MR_SHAPE(2, 2), (float[]){1, 3, -10, 30}, "x");
    mr_output y = mr_layer_layer_norm(g, x);
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    mr_session *session = nullptr;
    mr_tensor value = {0};
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(y), &value, nullptr, 0, &error));
    for (int i = 0; i < 4; i++) CHECK(fabsf(mr_tensor_floats(&value)[i] - (i % 2 == 0 ? -1 : 1)) < 1e-5f);
    CHECK(mr_graph_find(g, "LayerNorm/gamma") != nullptr && mr_graph_find(g, "LayerNorm/beta") != nullptr);
    mr_tensor_deinit(&value);
    mr_session_free(session);
    mr_graph_free(g);
}

/* Values that can be checked by eye, for all dtypes. */
static void check_activation(mr_activation activation, const float *expected)
{
    const mr_dtype dtypes[] = {MR_FLOAT, MR_DOUBLE, MR_HALF, MR_BFLOAT16};
    for (int d = 0; d < 4; d++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_output x = mr_constant_floats(g, MR_SHAPE(1, 4), (float[]){-4, -1, 0, 8}, "x");
        mr_output y = mr_cast(g, activation(g, mr_cast(g, x, dtypes[d])), MR_FLOAT);
        CHECK_OK(mr_graph_status(g, &error));
        mr_session *session = nullptr;
        CHECK_OK(mr_session_new(g, nullptr, &session, &error));
        mr_tensor value = {0};
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(y), &value, nullptr, 0, &error));
        const float *values = mr_tensor_floats(&value);
        for (int i = 0; i < 4; i++) CHECK(fabsf(values[i] - expected[i]) <= 0.004f * fmaxf(1, fabsf(expected[i])));
        mr_tensor_deinit(&value);
        mr_session_free(session);
        mr_graph_free(g);
    }
}

TEST(layers_have_activations)
{
    check_activation(mr_activation_relu, (float[]){0, 0, 0, 8});
    check_activation(mr_activation_relu6, (float[]){0, 0, 0, 6});
    check_activation(mr_activation_leaky_relu, (float[]){-0.8f, -0.2f, 0, 8});
    check_activation(mr_activation_elu, (float[]){-0.98168f, -0.63212f, 0, 8});
    check_activation(mr_activation_selu, (float[]){-1.72590f, -1.11133f, 0, 8.40561f});
    check_activation(mr_activation_swish, (float[]){-0.07195f, -0.26894f, 0, 7.99732f});
    check_activation(mr_activation_softplus, (float[]){0.01815f, 0.31326f, 0.69315f, 8.00034f});
    check_activation(mr_activation_softsign, (float[]){-0.8f, -0.5f, 0, 0.88889f});
    check_activation(mr_activation_hard_sigmoid, (float[]){0, 0.3f, 0.5f, 1});
    check_activation(mr_activation_crelu, (float[]){0, 0, 0, 8});
}
