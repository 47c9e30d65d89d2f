/* Every option of every struct of train.h. Changing it alone changes the graph; omitting it selects its default. If it
 * is required and missing, out of range, or without effect, the error names it. */
#include "tests/test.h"

#include <math.h>
#include <millrace/millrace.h>

/* ---- Graphs that differ in one option ---- */

static mr_output features(mr_graph *g)
{
    return mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(4, 5), .name = "features");
}

static mr_output weights(mr_graph *g)
{
    return mr_square(g, mr_get_variable(g, "v", MR_SHAPE(3), (mr_initializer){.kind = MR_INIT_ONES}).value);
}

/* A group, "=" if the case specifies the defaults of the group's first case explicitly, and the expression that is
 * built from the images x. */
#define CASES(X)                                                                                                       \
    X(conv, "", mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 3))                                                 \
    X(conv, "=",                                                                                                       \
      mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 3, .strides = 1, .weight_decay = 0, .name = "conv2d"))        \
    X(conv, "", mr_layer_conv2d(g, x, .filters = 3, .kernel_size = 3))                                                 \
    X(conv, "", mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 2))                                                 \
    X(conv, "", mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 3, .strides = 2))                                   \
    X(conv, "", mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 3, .same = true))                                   \
    X(conv, "", mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 3, .use_bias = false))                              \
    X(conv, "",                                                                                                        \
      mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 3, .kernel_initializer = {.kind = MR_INIT_HE_NORMAL}))        \
    X(conv, "", mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 3, .weight_decay = 0.1f))                           \
    X(conv, "", mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 3, .activation = mr_activation_relu))               \
    X(conv, "", mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 3, .name = "other"))                                \
    X(conv, "=",                                                                                                       \
      mr_layer_conv2d(g, x, .filters = 2, .kernel_sizes = MR_INTS(3, 3), .strides_each = MR_INTS(1, 1),                \
                      .dilation_rate = 1, .bias_initializer = {.kind = MR_INIT_ZEROS}))                                \
    X(conv, "", mr_layer_conv2d(g, x, .filters = 2, .kernel_sizes = MR_INTS(3, 4)))                                    \
    X(conv, "", mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 3, .strides_each = MR_INTS(1, 2)))                  \
    X(conv, "", mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 3, .dilation_rate = 2))                             \
    X(conv, "", mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 3, .dilation_rates = MR_INTS(1, 2)))                \
    X(conv, "", mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 3, .channels_first = true))                         \
    X(conv, "", mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 3, .bias_initializer = {.kind = MR_INIT_ONES}))     \
    X(conv, "", mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 3, .kernel_regularizer = {.l1 = 0.1f}))             \
    X(conv, "", mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 3, .bias_regularizer = {.l2 = 0.1f}))               \
    X(conv, "", mr_layer_conv2d(g, x, .filters = 2, .kernel_size = 3, .activity_regularizer = {.l2 = 0.1f}))           \
    X(dense, "", mr_layer_dense(g, features(g), .units = 2))                                                           \
    X(dense, "=", mr_layer_dense(g, features(g), .units = 2, .kernel_initializer = {.kind = MR_INIT_DEFAULT}))         \
    X(dense, "", mr_layer_dense(g, features(g), .units = 3))                                                           \
    X(dense, "", mr_layer_dense(g, features(g), .units = 2, .use_bias = false))                                        \
    X(dense, "", mr_layer_dense(g, features(g), .units = 2, .kernel_initializer = {.kind = MR_INIT_ONES}))             \
    X(dense, "", mr_layer_dense(g, features(g), .units = 2, .weight_decay = 0.1f))                                     \
    X(dense, "", mr_layer_dense(g, features(g), .units = 2, .activation = mr_activation_tanh))                         \
    X(dense, "", mr_layer_dense(g, features(g), .units = 2, .name = "other"))                                          \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true))                                                  \
    X(norm, "=", mr_layer_batch_normalization(g, x, .training = true, .momentum = 0.99f, .epsilon = 0.001f))           \
    X(norm, "", mr_layer_batch_normalization(g, x))                                                                    \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .momentum = 0))                                   \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .momentum = 1))                                   \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .epsilon = 0))                                    \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .name = "other"))                                 \
    X(norm, "=", mr_layer_batch_normalization(g, x, .training = true, .axis = 3, .fused = true))                       \
    X(norm, "", mr_layer_batch_normalization(g, x, .is_training = mr_constant_bool(g, true)))                          \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .axis = 1))                                       \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .no_center = true))                               \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .no_scale = true))                                \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .fused = false))                                  \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .renorm = true))                                  \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .renorm = true, .renorm_rmin = 0.5f))             \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .renorm = true, .renorm_rmax = 2))                \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .renorm = true, .renorm_dmax = 1))                \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .renorm = true, .renorm_momentum = 0.9f))         \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .beta_initializer = {.kind = MR_INIT_ONES}))      \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .gamma_initializer = {.kind = MR_INIT_ZEROS}))    \
    X(norm, "",                                                                                                        \
      mr_layer_batch_normalization(g, x, .training = true, .moving_mean_initializer = {.kind = MR_INIT_ONES}))         \
    X(norm, "",                                                                                                        \
      mr_layer_batch_normalization(g, x, .training = true, .moving_variance_initializer = {.kind = MR_INIT_ZEROS}))    \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .beta_regularizer = {.l2 = 1}))                   \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .gamma_regularizer = {.l2 = 1}))                  \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .virtual_batch_size = 1))                         \
    X(norm, "", mr_layer_batch_normalization(g, x, .training = true, .virtual_batch_size = 2))                         \
    X(norm, "", mr_layer_batch_normalization(g, x, .virtual_batch_size = 2))                                           \
    X(pool, "", mr_layer_max_pool(g, x, .pool_size = 3))                                                               \
    X(pool, "=", mr_layer_max_pool(g, x, .pool_size = 3, .strides = 3))                                                \
    X(pool, "=", mr_layer_max_pool(g, x, .pool_size = 3, .strides = 0))                                                \
    X(pool, "", mr_layer_max_pool(g, x, .pool_size = 2))                                                               \
    X(pool, "", mr_layer_max_pool(g, x, .pool_size = 3, .strides = 1))                                                 \
    X(pool, "", mr_layer_max_pool(g, x, .pool_size = 3, .same = true))                                                 \
    X(pool, "", mr_layer_max_pool(g, x, .pool_size = 3, .name = "other"))                                              \
    X(pool, "=", mr_layer_max_pool(g, x, .pool_sizes = MR_INTS(3, 3), .strides_each = MR_INTS(3, 3)))                  \
    X(pool, "", mr_layer_max_pool(g, x, .pool_sizes = MR_INTS(3, 2)))                                                  \
    X(pool, "", mr_layer_max_pool(g, x, .pool_size = 3, .strides_each = MR_INTS(1, 2)))                                \
    X(pool, "", mr_layer_max_pool(g, x, .pool_size = 3, .channels_first = true))                                       \
    X(pool, "", mr_layer_average_pool(g, x, .pool_size = 3))                                                           \
    X(pool, "", mr_layer_average_pool(g, x, .pool_size = 3, .strides = 1))                                             \
    X(drop, "", mr_layer_dropout(g, x, .training = true))                                                              \
    X(drop, "=", mr_layer_dropout(g, x, .training = true, .rate = 0.5f, .seed = 0))                                    \
    X(drop, "", mr_layer_dropout(g, x))                                                                                \
    X(drop, "", mr_layer_dropout(g, x, .training = true, .rate = 0))                                                   \
    X(drop, "", mr_layer_dropout(g, x, .training = true, .seed = 7))                                                   \
    X(drop, "", mr_layer_dropout(g, x, .training = true, .seed = MR_SEED_ZERO))                                        \
    X(drop, "", mr_layer_dropout(g, x, .training = true, .name = "other"))                                             \
    X(drop, "", mr_layer_dropout(g, x, .is_training = mr_constant_bool(g, true)))                                      \
    X(drop, "", mr_layer_dropout(g, x, .training = true, .noise_shape = MR_INTS(-1, 1, 1, -1)))                        \
    X(separable, "", mr_layer_separable_conv2d(g, x, .filters = 2, .kernel_size = 3))                                  \
    X(separable, "", mr_layer_separable_conv2d(g, x, .filters = 2, .kernel_size = 3, .strides = 2))                    \
    X(separable, "", mr_layer_separable_conv2d(g, x, .filters = 2, .kernel_size = 3, .same = true))                    \
    X(separable, "", mr_layer_separable_conv2d(g, x, .filters = 2, .kernel_size = 3, .depth_multiplier = 2))           \
    X(separable, "", mr_layer_separable_conv2d(g, x, .filters = 2, .kernel_size = 3, .dilation_rate = 2))              \
    X(separable, "", mr_layer_separable_conv2d(g, x, .filters = 2, .kernel_size = 3, .use_bias = false))               \
    X(separable, "",                                                                                                   \
      mr_layer_separable_conv2d(g, x, .filters = 2, .kernel_size = 3,                                                  \
                                .depthwise_initializer = {.kind = MR_INIT_ONES}))                                      \
    X(separable, "",                                                                                                   \
      mr_layer_separable_conv2d(g, x, .filters = 2, .kernel_size = 3,                                                  \
                                .pointwise_initializer = {.kind = MR_INIT_ONES}))                                      \
    X(separable, "",                                                                                                   \
      mr_layer_separable_conv2d(g, x, .filters = 2, .kernel_size = 3, .depthwise_regularizer = {.l1 = 1}))             \
    X(separable, "",                                                                                                   \
      mr_layer_separable_conv2d(g, x, .filters = 2, .kernel_size = 3, .pointwise_regularizer = {.l1 = 1}))             \
    X(flatten, "", mr_layer_flatten(g, x))                                                                             \
    X(flatten, "=", mr_layer_flatten(g, x, .channels_first = false, .name = "flatten"))                                \
    X(flatten, "", mr_layer_flatten(g, x, .channels_first = true))                                                     \
    X(flatten, "", mr_layer_flatten(g, x, .name = "other"))                                                            \
    X(clip, "", mr_clip_by_norm(g, x, 1))                                                                              \
    X(clip, "=", mr_clip_by_norm(g, x, 1, .name = "clip_by_norm"))                                                     \
    X(clip, "", mr_clip_by_norm(g, x, 1, .axes = MR_INTS(0)))                                                          \
    X(clip, "", mr_clip_by_norm(g, x, 1, .name = "other"))                                                             \
    X(init, "", initial(g, (mr_initializer){0}))                                                                       \
    X(init, "=", initial(g, (mr_initializer){.kind = MR_INIT_GLOROT_UNIFORM}))                                         \
    X(init, "", initial(g, (mr_initializer){.seed = 5}))                                                               \
    X(init, "", initial(g, (mr_initializer){.seed = MR_SEED_ZERO}))                                                    \
    X(init, "", initial(g, (mr_initializer){.kind = MR_INIT_ZEROS}))                                                   \
    X(init, "", initial(g, (mr_initializer){.kind = MR_INIT_ONES}))                                                    \
    X(init, "", initial(g, (mr_initializer){.kind = MR_INIT_CONSTANT}))                                                \
    X(init, "", initial(g, (mr_initializer){.kind = MR_INIT_CONSTANT, .scale = -2}))                                   \
    X(init, "", initial(g, (mr_initializer){.kind = MR_INIT_UNIFORM, .scale = 0.1f}))                                  \
    X(init, "", initial(g, (mr_initializer){.kind = MR_INIT_UNIFORM, .scale = 0.2f}))                                  \
    X(init, "", initial(g, (mr_initializer){.kind = MR_INIT_NORMAL, .scale = 0.1f}))                                   \
    X(init, "", initial(g, (mr_initializer){.kind = MR_INIT_TRUNCATED_NORMAL, .scale = 0.1f}))                         \
    X(init, "", initial(g, (mr_initializer){.kind = MR_INIT_HE_NORMAL}))                                               \
    X(optimizer, "", minimize(g, mr_adam()))                                                                           \
    X(optimizer, "=", minimize(g, mr_adam(.learning_rate = 0.001f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f))) \
    X(optimizer, "", minimize(g, mr_adam(.learning_rate = 0)))                                                         \
    X(optimizer, "",                                                                                                   \
      minimize(g,                                                                                                      \
               mr_adam(.learning_rate_output = mr_exponential_decay(g, 1, mr_constant_float(g, 1), 2, 0.5f, false))))  \
    X(optimizer, "=", minimize(g, mr_adam(.name = "Adam")))                                                            \
    X(optimizer, "", minimize(g, mr_adam(.name = "Other")))                                                            \
    X(optimizer, "", minimize(g, mr_adam(.use_locking = true)))                                                        \
    X(optimizer, "", minimize(g, mr_adam(.beta1 = 0)))                                                                 \
    X(optimizer, "", minimize(g, mr_adam(.beta2 = 0)))                                                                 \
    X(optimizer, "", minimize(g, mr_adam(.epsilon = 0)))                                                               \
    X(optimizer, "", minimize(g, mr_momentum(.learning_rate = 0.1f, .momentum = 0)))                                   \
    X(optimizer, "", minimize(g, mr_momentum(.learning_rate = 0.1f, .momentum = 0.5f)))                                \
    X(optimizer, "", minimize(g, mr_momentum(.learning_rate = 0.1f, .momentum = 0.5f, .nesterov = true)))              \
    X(optimizer, "", minimize(g, mr_gradient_descent(.learning_rate = 0.1f)))                                          \
    X(optimizer, "", minimize(g, mr_gradient_descent(.learning_rate = 0)))                                             \
    X(schedule, "", mr_exponential_decay(g, 1, mr_constant_float(g, 1), 2, 0.5f, false))                               \
    X(schedule, "", mr_exponential_decay(g, 0, mr_constant_float(g, 1), 2, 0.5f, false))                               \
    X(schedule, "", mr_exponential_decay(g, 1, mr_constant_float(g, 1), 3, 0.5f, false))                               \
    X(schedule, "", mr_exponential_decay(g, 1, mr_constant_float(g, 1), 2, 0.6f, false))                               \
    X(schedule, "", mr_exponential_decay(g, 1, mr_constant_float(g, 1), 2, 0.5f, true))                                \
    X(schedule, "=", mr_exponential_decay_with(g, 1, mr_constant_float(g, 1), 2, 0.5f, false, nullptr))                \
    X(schedule, "",                                                                                                    \
      mr_exponential_decay_with(g, 1, mr_constant_float(g, 1), 2, 0.5f, false,                                         \
                                MR_OPTIONS(mr_decay_options, .name = "other")))                                        \
    X(schedule, "", mr_cosine_decay(g, 1, mr_constant_float(g, 1), 2, 0))                                              \
    X(schedule, "", mr_cosine_decay(g, 2, mr_constant_float(g, 1), 2, 0))                                              \
    X(schedule, "", mr_cosine_decay(g, 1, mr_constant_float(g, 1), 3, 0))                                              \
    X(schedule, "", mr_cosine_decay(g, 1, mr_constant_float(g, 1), 2, 1))                                              \
    X(noise, "", mr_noisy_linear_cosine_decay(g, 1, mr_constant_float(g, 1), 2))                                       \
    X(noise, "=",                                                                                                      \
      mr_noisy_linear_cosine_decay(g, 1, mr_constant_float(g, 1), 2, .initial_variance = 1, .variance_decay = 0.55f,   \
                                   .periods = 0.5f, .alpha = 0, .beta = 0.001f))                                       \
    X(noise, "", mr_noisy_linear_cosine_decay(g, 1, mr_constant_float(g, 1), 2, .initial_variance = 0))                \
    X(noise, "", mr_noisy_linear_cosine_decay(g, 1, mr_constant_float(g, 1), 2, .variance_decay = 0))                  \
    X(noise, "", mr_noisy_linear_cosine_decay(g, 1, mr_constant_float(g, 1), 2, .periods = 2))                         \
    X(noise, "", mr_noisy_linear_cosine_decay(g, 1, mr_constant_float(g, 1), 2, .alpha = 1))                           \
    X(noise, "", mr_noisy_linear_cosine_decay(g, 1, mr_constant_float(g, 1), 2, .beta = 0))                            \
    X(noise, "", mr_noisy_linear_cosine_decay(g, 1, mr_constant_float(g, 1), 2, .seed = 7))                            \
    X(noise, "", mr_noisy_linear_cosine_decay(g, 1, mr_constant_float(g, 1), 2, .name = "noisy"))

static mr_output initial(mr_graph *g, mr_initializer initializer)
{
    return mr_get_variable(g, "v", MR_SHAPE(3, 2), initializer).ref;
}

static mr_output minimize(mr_graph *g, const mr_optimizer *optimizer)
{
    return (mr_output){mr_minimize(g, optimizer, weights(g), (mr_output){0}), 0};
}

typedef struct exported {
    char group[16], mark[4];
    const char *text; /* the expression */
    mr_tensor bytes;
} exported;

static void add_case(exported *cases, int *count, const char *group, const char *mark, const char *text, mr_graph *g)
{
    mr_error error = {0};
    exported *e = &cases[(*count)++];
    snprintf(e->group, sizeof e->group, "%s", group);
    snprintf(e->mark, sizeof e->mark, "%s", mark);
    e->text = text;
    if (mr_graph_status(g, &error) != MR_OK) test_fail(__FILE__, __LINE__, "%s: %s", text, error.message);
    CHECK_OK(mr_graph_export(g, &e->bytes, &error));
    mr_graph_free(g);
}

/* A case marked "=" specifies the defaults explicitly: its graph equals that of the first case of its group. All other
 * graphs differ. */
TEST(train_options_change_the_graph_each_alone)
{
    static exported cases[192];
    int count = 0;
#define ADD(group, mark, expression)                                                                                   \
    {                                                                                                                  \
        mr_graph *g = mr_graph_new();                                                                                  \
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, 8, 8, 3), .name = "x");                         \
        (void)x;                                                                                                       \
        (void)(expression);                                                                                            \
        add_case(cases, &count, #group, mark, #expression, g);                                                         \
    }
    CASES(ADD)
    CHECK(count > 70);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++) {
            if (strcmp(cases[i].group, cases[j].group) != 0) continue;
            bool first = j == 0 || strcmp(cases[j - 1].group, cases[j].group) != 0;
            bool equal = mr_string_equal(mr_tensor_strings(&cases[i].bytes)[0], mr_tensor_strings(&cases[j].bytes)[0]);
            bool expected = first && *cases[i].mark == '=';
            if (*cases[j].mark == '=' || (*cases[i].mark == '=' && !first)) continue;
            if (equal != expected)
                test_fail(__FILE__, __LINE__, "%s and %s are %s", cases[j].text, cases[i].text,
                          equal ? "equal" : "different");
        }
    for (int i = 0; i < count; i++) mr_tensor_deinit(&cases[i].bytes);
}

/* ---- Options that are rejected ---- */

#define WRONG(X)                                                                                                       \
    X("conv2d: filters is required", mr_layer_conv2d(g, x, .kernel_size = 3))                                          \
    X("conv2d: kernel_size is required", mr_layer_conv2d(g, x, .filters = 3))                                          \
    X("conv2d: filters is -1", mr_layer_conv2d(g, x, .filters = -1, .kernel_size = 3))                                 \
    X("conv2d: kernel_size is -2", mr_layer_conv2d(g, x, .filters = 1, .kernel_size = -2))                             \
    X("conv2d: strides is 0", mr_layer_conv2d(g, x, .filters = 1, .kernel_size = 1, .strides = 0))                     \
    X("conv2d: weight_decay is -1", mr_layer_conv2d(g, x, .filters = 1, .kernel_size = 1, .weight_decay = -1))         \
    X("conv2d: weight_decay is nan", mr_layer_conv2d(g, x, .filters = 1, .kernel_size = 1, .weight_decay = MR_UNSET))  \
    X("scale is required",                                                                                             \
      mr_layer_conv2d(g, x, .filters = 1, .kernel_size = 1, .kernel_initializer = {.kind = MR_INIT_NORMAL}))           \
    X("own: filters is required", mr_layer_conv2d(g, x, .kernel_size = 3, .name = "own"))                              \
    X("dense: units is required", mr_layer_dense(g, features(g)))                                                      \
    X("dense: units is -1", mr_layer_dense(g, features(g), .units = -1))                                               \
    X("dense: weight_decay is inf", mr_layer_dense(g, features(g), .units = 1, .weight_decay = INFINITY))              \
    X("batch_normalization: momentum is 1.5", mr_layer_batch_normalization(g, x, .momentum = 1.5f))                    \
    X("batch_normalization: momentum is -0.1", mr_layer_batch_normalization(g, x, .momentum = -0.1f))                  \
    X("batch_normalization: epsilon is -1", mr_layer_batch_normalization(g, x, .epsilon = -1))                         \
    X("batch_normalization: virtual_batch_size is -1", mr_layer_batch_normalization(g, x, .virtual_batch_size = -1))   \
    X("batch_normalization: virtual_batch_size is 3, but must divide the batch of 2",                                  \
      mr_layer_batch_normalization(g, x, .virtual_batch_size = 3))                                                     \
    X("fused batch normalization has no virtual batches",                                                              \
      mr_layer_batch_normalization(g, x, .virtual_batch_size = 2, .fused = true))                                      \
    X("max_pooling2d: pool_size is required", mr_layer_max_pool(g, x))                                                 \
    X("max_pooling2d: strides is -1", mr_layer_max_pool(g, x, .pool_size = 2, .strides = -1))                          \
    X("average_pooling2d: pool_size is required", mr_layer_average_pool(g, x, .strides = 2))                           \
    X("average_pooling2d: pool_size is -2", mr_layer_average_pool(g, x, .pool_size = -2))                              \
    X("dropout: rate is 1", mr_layer_dropout(g, x, .rate = 1, .training = true))                                       \
    X("dropout: rate is -0.5", mr_layer_dropout(g, x, .rate = -0.5f))                                                  \
    X("dropout: rate is inf", mr_layer_dropout(g, x, .rate = INFINITY, .training = true))                              \
    X("the initializer of v: scale is required", initial(g, (mr_initializer){.kind = MR_INIT_UNIFORM}))                \
    X("the initializer of v: scale is required", initial(g, (mr_initializer){.kind = MR_INIT_NORMAL, .scale = -1}))    \
    X("scale has no effect", initial(g, (mr_initializer){.kind = MR_INIT_ONES, .scale = 1}))                           \
    X("scale has no effect", initial(g, (mr_initializer){.scale = 1}))                                                 \
    X("seed has no effect", initial(g, (mr_initializer){.kind = MR_INIT_ZEROS, .seed = 1}))                            \
    X("kind is not one of", initial(g, (mr_initializer){.kind = (mr_initializer_kind)99}))                             \
    X("GradientDescent: a learning rate is required", minimize(g, mr_gradient_descent()))                              \
    X("Momentum: a learning rate is required", minimize(g, mr_momentum(.momentum = 0.9f)))                             \
    X("Momentum: momentum is required", minimize(g, mr_momentum(.learning_rate = 1)))                                  \
    X("Momentum: momentum is -1", minimize(g, mr_momentum(.learning_rate = 1, .momentum = -1)))                        \
    X("learning_rate must be finite", minimize(g, mr_adam(.learning_rate = -1)))                                       \
    X("learning_rate must be finite", minimize(g, mr_adam(.learning_rate = INFINITY)))                                 \
    X("learning_rate and learning_rate_output are both given",                                                         \
      minimize(g, mr_adam(.learning_rate = 1, .learning_rate_output = mr_constant_float(g, 1))))                       \
    X("Adam: weight_decay has no effect", minimize(g, mr_adam(.weight_decay = 0.1f)))                                  \
    X("Adam: weight_decay has no effect", minimize(g, mr_lazy_adam(.weight_decay = 0)))                                \
    X("learning_rate_output is int32[], but must be a scalar",                                                         \
      minimize(g, mr_adam(.learning_rate_output = mr_constant_int32(g, 1))))                                           \
    X("learning_rate_output is float[2], but must be a scalar",                                                        \
      minimize(g, mr_lazy_adam(.learning_rate_output = mr_constant_floats(g, MR_SHAPE(2), (float[]){1, 1}, nullptr)))) \
    X("AdamW: weight_decay is required", minimize(g, mr_adam_w()))                                                     \
    X("AdamW: weight_decay is -1", minimize(g, mr_adam_w(.weight_decay = -1)))                                         \
    X("Adam: \"a b\" is not a valid name", minimize(g, mr_adam(.name = "a b")))                                        \
    X("flatten: channels_first needs an input of known rank, at least 3",                                              \
      mr_layer_flatten(g, features(g), .channels_first = true))                                                        \
    X("Adam: beta1 is 1", minimize(g, mr_adam(.beta1 = 1)))                                                            \
    X("Adam: beta2 is -1", minimize(g, mr_adam(.beta2 = -1)))                                                          \
    X("Adam: epsilon is -1", minimize(g, mr_adam(.epsilon = -1)))                                                      \
    X("Adam: momentum has no effect", minimize(g, mr_adam(.momentum = 0.9f)))                                          \
    X("Adam: nesterov has no effect", minimize(g, mr_adam(.nesterov = true)))                                          \
    X("GradientDescent: beta1 has no effect", minimize(g, mr_gradient_descent(.learning_rate = 1, .beta1 = 0)))        \
    X("GradientDescent: beta2 has no effect", minimize(g, mr_gradient_descent(.learning_rate = 1, .beta2 = 0.5f)))     \
    X("Momentum: epsilon has no effect", minimize(g, mr_momentum(.learning_rate = 1, .momentum = 0, .epsilon = 1)))    \
    X("GradientDescent: momentum has no effect", minimize(g, mr_gradient_descent(.learning_rate = 1, .momentum = 0)))  \
    X("unknown optimizer kind 99", minimize(g, MR_OPTIONS(mr_optimizer, .kind = (mr_optimizer_kind)99)))               \
    X("ExponentialDecay: decay_steps is 0", mr_exponential_decay(g, 1, x, 0, 0.5f, false))                             \
    X("ExponentialDecay: learning_rate is nan", mr_exponential_decay(g, MR_UNSET, x, 1, 0.5f, false))                  \
    X("ExponentialDecay: decay_rate is 0", mr_exponential_decay(g, 1, x, 1, 0, false))                                 \
    X("CosineDecay: decay_steps is -1", mr_cosine_decay(g, 1, x, -1, 0))                                               \
    X("CosineDecay: learning_rate is -1", mr_cosine_decay(g, -1, x, 1, 0))                                             \
    X("CosineDecay: alpha is 2", mr_cosine_decay(g, 1, x, 1, 2))                                                       \
    X("NoisyLinearCosineDecay: decay_steps is 0", mr_noisy_linear_cosine_decay(g, 1, x, 0))                            \
    X("NoisyLinearCosineDecay: initial_variance is -1",                                                                \
      mr_noisy_linear_cosine_decay(g, 1, x, 1, .initial_variance = -1))                                                \
    X("NoisyLinearCosineDecay: variance_decay is inf",                                                                 \
      mr_noisy_linear_cosine_decay(g, 1, x, 1, .variance_decay = HUGE_VALF))                                           \
    X("NoisyLinearCosineDecay: beta is -1", mr_noisy_linear_cosine_decay(g, 1, x, 1, .beta = -1))                      \
    X("NoisyLinearCosineDecay: seed has no effect",                                                                    \
      mr_noisy_linear_cosine_decay(g, 1, x, 1, .initial_variance = 0, .seed = 7))                                      \
    X("images_max is 0", mr_summary_image(g, "image", x, 0))

static void check_wrong(const char *part, const char *text, mr_graph *g)
{
    mr_error error = {0};
    mr_status status = mr_graph_status(g, &error);
    if (status != MR_INVALID_ARGUMENT || strstr(error.message, part) == nullptr)
        test_fail(__FILE__, __LINE__, "%s: %s: \"%s\", not \"%s\"", text, mr_status_name(status), error.message, part);
    mr_graph_free(g);
}

TEST(train_options_that_are_wrong_are_named){
#define REFUSE(part, expression)                                                                                       \
    {                                                                                                                  \
        mr_graph *g = mr_graph_new();                                                                                  \
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, 8, 8, 3), .name = "x");                         \
        (void)x;                                                                                                       \
        (void)(expression);                                                                                            \
        check_wrong(part, #expression, g);                                                                             \
    }
    WRONG(REFUSE)}

/* A direct call of the function behind a macro uses the same defaults. */
TEST(train_options_have_the_same_defaults_as_the_macros)
{
    mr_dense_layer dense = {.size = sizeof dense, MR_DENSE_LAYER_DEFAULTS};
    mr_conv2d_layer conv = {.size = sizeof conv, MR_CONV2D_LAYER_DEFAULTS};
    mr_batch_normalization_layer norm = {.size = sizeof norm, MR_BATCH_NORMALIZATION_LAYER_DEFAULTS};
    mr_dropout_layer dropout = {.size = sizeof dropout, MR_DROPOUT_LAYER_DEFAULTS};
    mr_training_options training = {.size = sizeof training, MR_TRAINING_OPTIONS_DEFAULTS};
    mr_optimizer adam = {.size = sizeof adam, MR_OPTIMIZER_DEFAULTS};
    CHECK(dense.units == 0 && dense.use_bias);
    CHECK(conv.strides == 1 && conv.use_bias);
    CHECK(isnan(norm.momentum) && norm.training == MR_TRAINING_UNSET);
    CHECK(isnan(dropout.rate) && dropout.training == MR_TRAINING_UNSET);
    CHECK_EQ(training.last_step, MR_INFINITE);
    CHECK_EQ(training.max_to_keep, MR_COUNT_UNSET);
    CHECK(isnan(adam.learning_rate) && isnan(adam.momentum) && isnan(adam.beta1) && isnan(adam.beta2) &&
          isnan(adam.epsilon));
}
