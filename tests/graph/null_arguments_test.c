/* Null pointers for all pointer arguments of the public headers except a graph and its session. Builders record an
 * error and continue; other functions return an error, or nothing. Each case runs in its own process, so that a crash
 * is attributed to it. */
#include "tests/test.h"

#include <millrace/millrace.h>
#include <millrace/ops.h>

#include <sys/wait.h>
#include <unistd.h>

static const mr_output none;
static mr_error error;
static mr_tensor tensor;

static mr_output one(mr_graph *g)
{
    return mr_constant_float(g, 1);
}

/* R: the graph has an error afterwards; N: no effect. */
#define CASES(R, N)                                                                                                    \
    R(mr_node_begin(g, nullptr, nullptr))                                                                              \
    R(mr_square(g, none))                                                                                              \
    R(mr_add_n(g, ((mr_outputs){nullptr, 2})))                                                                         \
    R(mr_add_n(g, ((mr_outputs){nullptr, -1})))                                                                        \
    R(mr_add_n(g, MR_OUTPUTS(none)))                                                                                   \
    R(mr_constant(g, nullptr, nullptr))                                                                                \
    R(mr_constant(g, &(mr_tensor){0}, nullptr))                                                                        \
    R(mr_constant(g, &(mr_tensor){.dtype = MR_FLOAT, .shape = MR_SHAPE(3)}, nullptr))                                  \
    N(mr_constant_string(g, nullptr))                                                                                  \
    R(mr_constant_floats(g, MR_SHAPE(2), nullptr, nullptr))                                                            \
    R(mr_constant_floats(g, MR_SHAPE(-2), nullptr, nullptr))                                                           \
    R(mr_constant_int32s(g, MR_SHAPE(2), nullptr, nullptr))                                                            \
    R(mr_constant_ints(g, ((mr_ints){nullptr, 2})))                                                                    \
    R(mr_constant_ints(g, ((mr_ints){nullptr, -2})))                                                                   \
    R(mr_variable_new(g, "v", none))                                                                                   \
    R(mr_group(g, nullptr, 2, "group"))                                                                                \
    R(mr_group(g, &(mr_node *){one(g).node}, -2, "group"))                                                             \
    R(mr_gradients(g, ((mr_outputs){&none, -1}), MR_OUTPUTS(one(g)), nullptr, &(mr_output){0}))                        \
    R(mr_gradients(g, MR_OUTPUTS(one(g)), ((mr_outputs){&none, -1}), nullptr, &(mr_output){0}))                        \
    N(mr_graph_push_scope(g, nullptr))                                                                                 \
    R(mr_graph_push_control_dependencies(g, nullptr, 3))                                                               \
    R(mr_graph_add_to_collection(g, "c", none))                                                                        \
    R(mr_graph_add_to_collection(g, nullptr, one(g)))                                                                  \
    R(mr_gradients(g, MR_OUTPUTS(none), MR_OUTPUTS(one(g)), nullptr, &(mr_output){0}))                                 \
    R(mr_gradients(g, MR_OUTPUTS(one(g)), MR_OUTPUTS(none), nullptr, &(mr_output){0}))                                 \
    R(mr_gradients(g, ((mr_outputs){nullptr, 1}), MR_OUTPUTS(one(g)), nullptr, &(mr_output){0}))                       \
    R(mr_gradients(g, MR_OUTPUTS(one(g)), MR_OUTPUTS(one(g)), nullptr, nullptr))                                       \
    N(mr_get_variable(g, nullptr, MR_SHAPE(2), (mr_initializer){0}))                                                   \
    R(mr_layer_conv2d(g, none, .filters = 2, .kernel_size = 3))                                                        \
    R(mr_layer_dense(g, none, .units = 2))                                                                             \
    R(mr_layer_batch_normalization(g, none))                                                                           \
    R(mr_layer_max_pool(g, none, .pool_size = 2))                                                                      \
    R(mr_layer_average_pool(g, none, .pool_size = 2))                                                                  \
    R(mr_layer_global_average_pool(g, none))                                                                           \
    R(mr_layer_flatten(g, none))                                                                                       \
    R(mr_layer_flatten(g, none, .channels_first = true))                                                               \
    R(mr_activation_log_sigmoid(g, none))                                                                              \
    R(mr_xw_plus_b(g, none, none, none))                                                                               \
    R(mr_relu_layer(g, none, none, none))                                                                              \
    R(mr_clip_by_norm(g, none, 1))                                                                                     \
    R(mr_clip_by_norm(g, none, 1, .axes = MR_INTS(0)))                                                                 \
    R(mr_graph_clear_collection(g, nullptr))                                                                           \
    R(mr_graph_pop_default(g))                                                                                         \
    R(mr_loss_total(g))                                                                                                \
    N(mr_loss_regularization(g))                                                                                       \
    N(CHECK(mr_graph_collection_key(g, 0) == nullptr))                                                                 \
    R(mr_layer_dropout(g, none))                                                                                       \
    R(mr_layer_dropout(g, none, .training = true))                                                                     \
    R(mr_loss_sparse_softmax_cross_entropy(g, none, none))                                                             \
    R(mr_loss_mean_squared_error(g, none, none))                                                                       \
    R(mr_accuracy(g, none, none))                                                                                      \
    R(mr_minimize(g, mr_adam(), none, none))                                                                           \
    R(mr_exponential_decay(g, 0.1f, none, 10, 0.5f, false))                                                            \
    R(mr_cosine_decay(g, 0.1f, none, 10, 0.5f))                                                                        \
    R(mr_graph_iterator(g, nullptr, nullptr, nullptr, nullptr))                                                        \
    N(mr_node_builder b = mr_node_begin(g, "Add", nullptr); b.node = nullptr; mr_node_add_input(&b, none))             \
    N(mr_graph_push_device(g, nullptr); mr_graph_pop_device(g))                                                        \
    N(mr_graph_push_control_dependencies(g, nullptr, 0); mr_graph_pop_control_dependencies(g))                         \
    N(CHECK(mr_graph_find(g, nullptr) == nullptr))                                                                     \
    N(CHECK(mr_graph_find_output(g, nullptr).node == nullptr))                                                         \
    N(CHECK(mr_graph_find(g, "") == nullptr))                                                                          \
    N(CHECK_EQ(mr_graph_collection_count(g, nullptr), 0))                                                              \
    N(CHECK_EQ(mr_graph_variable_count(g, nullptr), 0))                                                                \
    N(CHECK_EQ(mr_output_dtype(none), MR_DTYPE_INVALID))                                                               \
    N(CHECK_EQ(mr_output_shape(none).rank, -1))                                                                        \
    N(CHECK(!mr_output_is_ref(none)))                                                                                  \
    N(mr_output_set_shape(none, MR_SCALAR))                                                                            \
    N(mr_node_add_control(one(g).node, nullptr))                                                                       \
    N(mr_node_add_control(nullptr, one(g).node))                                                                       \
    N(CHECK(mr_graph_import(g, nullptr, 8, nullptr, &error) != MR_OK))                                                 \
    N(CHECK(mr_graph_import_meta(g, nullptr, 8, &error) != MR_OK))                                                     \
    N(CHECK(mr_graph_export(g, nullptr, &error) != MR_OK))                                                             \
    N(mr_initialize_variables(g, nullptr, nullptr))                                                                    \
    N(mr_group(g, nullptr, 0, nullptr))                                                                                \
    N(mr_saver_free(nullptr))                                                                                          \
    N(CHECK(mr_tensor_init_copy(&tensor, MR_FLOAT, MR_SHAPE(2), nullptr, &error) != MR_OK))                            \
    N(CHECK(mr_tensor_init_strings(&tensor, MR_SHAPE(2), nullptr, &error) != MR_OK))                                   \
    N(CHECK(mr_tensor_init(nullptr, MR_FLOAT, MR_SHAPE(2), &error) != MR_OK))                                          \
    N(mr_tensor_deinit(nullptr))                                                                                       \
    N(mr_element_deinit(&(mr_element){0}))                                                                             \
    N(mr_element_deinit(nullptr))                                                                                      \
    N(CHECK(mr_element_init(nullptr, 1, &error) != MR_OK))                                                             \
    N(CHECK(mr_element_tensor(nullptr, 0) == nullptr))                                                                 \
    N(CHECK(mr_iterator_new(nullptr, nullptr, &(mr_iterator *){nullptr}, &error) != MR_OK))                            \
    N(CHECK(mr_iterator_new_from_spec(nullptr, nullptr, &(mr_iterator *){nullptr}, &error) != MR_OK))                  \
    N(CHECK(mr_dataset_reduce(nullptr, &(mr_element){0}, nullptr, nullptr, &error) != MR_OK))                          \
    N(CHECK(mr_dataset_get_single_element(nullptr, &(mr_element){0}, &error) != MR_OK))                                \
    N(mr_iterator_free(nullptr))                                                                                       \
    N(mr_session_free(nullptr))                                                                                        \
    N(mr_graph_free(nullptr))

static void check_recorded(mr_graph *g, const char *text)
{
    mr_error found = {0};
    mr_status status = mr_graph_status(g, &found);
    if (status == MR_OK || status == MR_INTERNAL || status == MR_RESOURCE_EXHAUSTED || found.message[0] == '\0')
        test_fail(__FILE__, __LINE__, "%s: %s \"%s\"", text, mr_status_name(status), found.message);
}

static void run_case(int which)
{
    int number = 0;
    mr_graph *g = mr_graph_new();
#define RECORDED(...)                                                                                                  \
    if (number++ == which) {                                                                                           \
        (void)__VA_ARGS__;                                                                                             \
        check_recorded(g, #__VA_ARGS__);                                                                               \
    }
#define NOTHING(...)                                                                                                   \
    if (number++ == which) {                                                                                           \
        __VA_ARGS__;                                                                                                   \
    }
    CASES(RECORDED, NOTHING)
    mr_graph_free(g);
}

static const char *const names[] = {
#define NAME(...) #__VA_ARGS__,
    CASES(NAME, NAME)
#undef NAME
};

TEST(null_arguments_of_graphs)
{
    constexpr int COUNT = sizeof names / sizeof names[0];
    int failures = 0;
    for (int which = 0; which < COUNT; which++) {
        fflush(nullptr);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            run_case(which);
            _exit(0);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        if (WIFSIGNALED(status)) fprintf(stderr, "%s: %s\n", names[which], strsignal(WTERMSIG(status)));
        if (WIFEXITED(status) && WEXITSTATUS(status) != 0) fprintf(stderr, "%s: fails\n", names[which]);
        failures += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    CHECK_EQ(failures, 0);
}
