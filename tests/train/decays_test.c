/* Options of learning rates, and learning rates that the graph computes, in every optimizer. */
#include "tests/train/refused.h"

#include <string.h>

static double fetch(mr_graph *g, mr_output output, mr_output step, int64_t value)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_tensor fed = {0}, result = {0};
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_tensor_init_copy(&fed, MR_INT64, MR_SCALAR, &value, &error));
    CHECK_OK(mr_session_run(session, MR_FEEDS({step, fed}), MR_OUTPUTS(output), &result, nullptr, 0, &error));
    const double number = (double)mr_tensor_floats(&result)[0];
    mr_tensor_deinit(&fed);
    mr_tensor_deinit(&result);
    mr_session_free(session);
    return number;
}

/* Every decay of a step s with the learning rate r and the options o. */
#define DECAYS(X)                                                                                                      \
    X(mr_exponential_decay_with(g, r, s, 10, 0.5f, false, o))                                                          \
    X(mr_natural_exp_decay_with(g, r, s, 10, 0.5f, false, o))                                                          \
    X(mr_inverse_time_decay_with(g, r, s, 10, 0.5f, true, o))                                                          \
    X(mr_polynomial_decay_with(g, r, s, 10, 0.01f, 2, false, o))                                                       \
    X(mr_cosine_decay_with(g, r, s, 10, 0.1f, o))                                                                      \
    X(mr_cosine_decay_restarts_with(g, r, s, 10, 2, 1, 0.1f, o))                                                       \
    X(mr_linear_cosine_decay_with(g, r, s, 10, 0.5f, 0, 0.001f, o))

TEST(decays_have_names_and_computed_rates)
{
    mr_error error = {0};
    int number = 0;
    mr_graph *g = mr_graph_new();
    const mr_output s = mr_placeholder(g, MR_INT64, .shape = MR_SCALAR, .name = "step");
    const mr_output computed = mr_mul(g, mr_constant_float(g, 0.25f), mr_constant_float(g, 2));
#define COMPARE(decay)                                                                                                 \
    {                                                                                                                  \
        char name[32];                                                                                                 \
        snprintf(name, sizeof name, "rate%d", number++);                                                               \
        const mr_decay_options given = {.size = sizeof given, .name = name, .learning_rate_output = computed};         \
        const mr_decay_options *o = nullptr;                                                                           \
        float r = 0.5f;                                                                                                \
        const mr_output plain = decay;                                                                                 \
        o = &given;                                                                                                    \
        r = MR_UNSET;                                                                                                  \
        const mr_output other = decay;                                                                                 \
        CHECK_OK(mr_graph_status(g, &error));                                                                          \
        CHECK(strncmp(mr_node_name(other.node), name, strlen(name)) == 0);                                             \
        CHECK(strncmp(mr_node_name(plain.node), name, strlen(name)) != 0);                                             \
        for (int64_t step = 0; step < 25; step += 4)                                                                   \
            CHECK_NEAR(fetch(g, other, s, step), fetch(g, plain, s, step), 0);                                         \
    }
    DECAYS(COMPARE)
    const mr_output pieces = mr_piecewise_constant_with(g, s, MR_INTS(2), MR_FLOATS(1, 0.5f),
                                                        MR_OPTIONS(mr_decay_options, .name = "pieces"));
    CHECK(strncmp(mr_node_name(pieces.node), "pieces/", 7) == 0);
    CHECK_NEAR(fetch(g, pieces, s, 3), 0.5, 0);
    mr_graph_free(g);
}

TEST(decays_refuse_wrong_options)
{
#define REFUSE_ALL(decay)                                                                                              \
    for (int i = 0; i < 6; i++) {                                                                                      \
        mr_graph *g = mr_graph_new();                                                                                  \
        mr_output s = mr_constant_int64(g, 1);                                                                         \
        mr_decay_options given = {.size = sizeof given, .learning_rate_output = mr_constant_float(g, 1)};              \
        const mr_decay_options *o = &given;                                                                            \
        float r = MR_UNSET;                                                                                            \
        const char *part = "both given";                                                                               \
        if (i == 0) r = 1;                                                                                             \
        if (i == 1) given.learning_rate_output = mr_constant_int32(g, 1), part = "is int32[], but must be a float";    \
        if (i == 2) given.learning_rate_output = floats(g, MR_SHAPE(2)), part = "is float[2], but must be a float";    \
        if (i == 3) given.learning_rate_output = (mr_output){0}, part = "learning_rate is nan";                        \
        if (i == 4) s = (mr_output){0}, part = "global_step is missing";                                               \
        if (i == 5) given.size = 0, part = "size";                                                                     \
        (void)decay;                                                                                                   \
        check_refused(g, part);                                                                                        \
    }
    DECAYS(REFUSE_ALL)
    mr_graph *g = mr_graph_new();
    (void)mr_piecewise_constant_with(g, mr_constant_int64(g, 1), MR_INTS(2), MR_FLOATS(1, 0.5f),
                                     MR_OPTIONS(mr_decay_options, .learning_rate_output = mr_constant_float(g, 1)));
    check_refused(g, "PiecewiseConstant: learning_rate_output has no effect");
}

/* Every optimizer with these options of the learning rate. */
#define OPTIMIZERS(X, ...)                                                                                             \
    X(mr_gradient_descent(__VA_ARGS__))                                                                                \
    X(mr_momentum(.momentum = 0.9f, __VA_ARGS__))                                                                      \
    X(mr_adam(__VA_ARGS__))                                                                                            \
    X(mr_adagrad(__VA_ARGS__))                                                                                         \
    X(mr_adadelta(__VA_ARGS__))                                                                                        \
    X(mr_rms_prop(__VA_ARGS__))                                                                                        \
    X(mr_rms_prop(.centered = true, __VA_ARGS__))                                                                      \
    X(mr_ftrl(__VA_ARGS__))                                                                                            \
    X(mr_ftrl(.l2_shrinkage = 0.1f, __VA_ARGS__))                                                                      \
    X(mr_adagrad_da(__VA_ARGS__))                                                                                      \
    X(mr_proximal_gradient_descent(.l1 = 0.1f, __VA_ARGS__))                                                           \
    X(mr_proximal_adagrad(.l2 = 0.1f, __VA_ARGS__))                                                                    \
    X(mr_lazy_adam(__VA_ARGS__))                                                                                       \
    X(mr_adam_w(.weight_decay = 0.1f, __VA_ARGS__))                                                                    \
    X(mr_lars(__VA_ARGS__))                                                                                            \
    X(mr_momentum_w(.momentum = 0.9f, .weight_decay = 0.1f, __VA_ARGS__))                                              \
    X(mr_amsgrad(__VA_ARGS__))                                                                                         \
    X(mr_ada_max(__VA_ARGS__))                                                                                         \
    X(mr_power_sign(__VA_ARGS__))                                                                                      \
    X(mr_add_sign(__VA_ARGS__))

/* Three steps: with a table whose gradient is sparse, and of float or double. */
static mr_output make_loss(mr_graph *g, mr_dtype dtype, bool use_resource)
{
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(3, 2), .initializer = {.kind = MR_INIT_ONES}, .dtype = dtype,
                                    .use_resource = use_resource);
    mr_variable table = mr_get_variable(g, "table", MR_SHAPE(4, 2), .initializer = {.kind = MR_INIT_ONES},
                                        .dtype = dtype, .use_resource = use_resource);
    mr_output rows = mr_gather_v2(g, table.value, mr_constant_ints(g, MR_INTS(1, 1, 3)), mr_constant_int32(g, 0));
    mr_output loss = mr_add_v2(g, mr_l2_loss(g, w.value), mr_l2_loss(g, rows));
    return loss;
}

static void check_same(const char *name, mr_graph *graphs[2], mr_node *steps[2])
{
    mr_error error = {0};
    mr_tensor values[2][2] = {0};
    for (int i = 0; i < 2; i++) {
        mr_session *session = nullptr;
        if (mr_graph_status(graphs[i], &error) != MR_OK) test_fail(__FILE__, __LINE__, "%s: %s", name, error.message);
        mr_node *init = mr_initialize_variables(graphs[i], MR_GLOBAL_VARIABLES, nullptr);
        CHECK_OK(mr_session_new(graphs[i], nullptr, &session, &error));
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
        for (int step = 0; step < 3; step++)
            if (mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &steps[i], 1, &error) != MR_OK)
                test_fail(__FILE__, __LINE__, "%s: %s", name, error.message);
        CHECK_OK(mr_session_read_variable(session, mr_graph_find_output(graphs[i], "w"), &values[i][0], &error));
        CHECK_OK(mr_session_read_variable(session, mr_graph_find_output(graphs[i], "table"), &values[i][1], &error));
        mr_session_free(session);
        mr_graph_free(graphs[i]);
    }
    for (int j = 0; j < 2; j++) {
        const size_t size_bytes = (size_t)mr_tensor_count(&values[0][j]) * mr_dtype_size(values[0][j].dtype);
        if (memcmp(mr_tensor_data(&values[0][j]), mr_tensor_data(&values[1][j]), size_bytes) != 0)
            test_fail(__FILE__, __LINE__, "%s: another result with a computed learning rate", name);
        mr_tensor_deinit(&values[0][j]);
        mr_tensor_deinit(&values[1][j]);
    }
}

/* The rate is the same in each step, whether it is a number or computed from the step. */
TEST(every_optimizer_takes_a_computed_learning_rate)
{
#define CHECK_RATE(...)                                                                                                \
    for (int form = 0; form < 4; form++) {                                                                             \
        mr_graph *graphs[2];                                                                                           \
        mr_node *steps[2];                                                                                             \
        for (int i = 0; i < 2; i++) {                                                                                  \
            mr_graph *g = graphs[i] = mr_graph_new();                                                                  \
            const mr_output loss = make_loss(g, form < 2 ? MR_FLOAT : MR_DOUBLE, form % 2 == 1);                       \
            const mr_variable step = mr_global_step(g);                                                                \
            const mr_output rate = mr_exponential_decay(g, 0.125f, step.value, 1, 1, false);                           \
            const float number = i == 0 ? 0.125f : MR_UNSET;                                                           \
            const mr_output output = i == 0 ? (mr_output){0} : rate;                                                   \
            steps[i] = mr_minimize(g, __VA_ARGS__, loss, step.ref);                                                    \
        }                                                                                                              \
        check_same(#__VA_ARGS__, graphs, steps);                                                                       \
    }
    OPTIMIZERS(CHECK_RATE, .learning_rate = number, .learning_rate_output = output)
}

/* The attr use_locking of all updates of references in the graph's exported form. */
static int32_t count_locks(mr_graph *g, bool value)
{
    mr_error error = {0};
    mr_tensor meta = {0};
    int32_t count = 0;
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_OK(mr_graph_export(g, &meta, &error));
    /* AttrEntry: the key, and an AttrValue with the field b (5): "\x28\x01"; false is "\x28\x00". */
    const char wanted[] = {'u', 's', 'e', '_', 'l', 'o', 'c', 'k', 'i', 'n', 'g', 0x12, 2, 0x28, value};
    const mr_string bytes = mr_tensor_strings(&meta)[0];
    for (const char *at = bytes.data, *end = at + bytes.size_bytes;
         (at = memmem(at, (size_t)(end - at), wanted, sizeof wanted)) != nullptr; at++)
        count++;
    mr_tensor_deinit(&meta);
    return count;
}

static int32_t count_references(const mr_graph *g)
{
    int32_t count = 0;
    for (int32_t i = 0; i < mr_graph_variable_count(g, MR_GLOBAL_VARIABLES); i++)
        count += !mr_variable_is_resource(mr_graph_variable(g, MR_GLOBAL_VARIABLES, i));
    return count;
}

TEST(every_optimizer_locks_if_it_is_told){
#define CHECK_LOCKS(...)                                                                                               \
    for (int use_resource = 0; use_resource < 2; use_resource++) {                                                     \
        int32_t counts[2][2], references = 0;                                                                          \
        for (int locks = 0; locks < 2; locks++) {                                                                      \
            mr_graph *g = mr_graph_new();                                                                              \
            const mr_output loss = make_loss(g, MR_FLOAT, use_resource == 1);                                          \
            (void)mr_minimize(g, __VA_ARGS__, loss, mr_global_step(g).ref);                                            \
            for (int value = 0; value < 2; value++) counts[locks][value] = count_locks(g, value == 1);                 \
            references = count_references(g);                                                                          \
            mr_graph_free(g);                                                                                          \
        }                                                                                                              \
        /* Without locks, only the initializers of references lock; with them, all but the step. */                    \
        if (counts[1][0] != 1 || counts[0][0] + counts[0][1] != counts[1][0] + counts[1][1] ||                         \
            counts[0][1] != references)                                                                                \
            test_fail(__FILE__, __LINE__, "%s: %d and %d, locked %d and %d", #__VA_ARGS__, counts[0][0], counts[0][1], \
                      counts[1][0], counts[1][1]);                                                                     \
    }
    OPTIMIZERS(CHECK_LOCKS, .learning_rate = 0.1f, .use_locking = locks == 1)}

TEST(ftrl_slots_have_names)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2), .initializer = {.kind = MR_INIT_ONES});
    mr_output loss = mr_l2_loss(g, w.value);
    char name[] = "accum";
    const mr_optimizer *first = mr_ftrl(.learning_rate = 1, .accum_name = "a/b");
    const mr_optimizer *second = mr_ftrl(.learning_rate = 1, .linear_name = "linear");
    const mr_optimizer *both = mr_ftrl(.learning_rate = 1, .accum_name = "s", .linear_name = "s");
    const mr_optimizer *wrapped = mr_moving_average_optimizer(g, mr_ftrl(.learning_rate = 1, .accum_name = name));
    memset(name, 'x', 5); /* copied */
    (void)mr_minimize(g, first, loss, (mr_output){0});
    (void)mr_minimize(g, second, loss, (mr_output){0});
    (void)mr_minimize(g, both, loss, (mr_output){0});
    (void)mr_minimize(g, wrapped, loss, (mr_output){0});
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_STR(mr_node_name(mr_optimizer_slot(g, first, w, "accum").ref.node), "w/a/b");
    CHECK_STR(mr_node_name(mr_optimizer_slot(g, first, w, "linear").ref.node), "w/Ftrl");
    CHECK_STR(mr_node_name(mr_optimizer_slot(g, second, w, "linear").ref.node), "w/linear");
    CHECK(mr_graph_find(g, "w/Ftrl_1") != nullptr); /* the accumulator of the second */
    CHECK_STR(mr_node_name(mr_optimizer_slot(g, both, w, "accum").ref.node), "w/s");
    CHECK_STR(mr_node_name(mr_optimizer_slot(g, both, w, "linear").ref.node), "w/s_1");
    CHECK(mr_graph_find(g, "w/accum") != nullptr);
    mr_graph_free(g);
    g = mr_graph_new();
    (void)mr_minimize(g, mr_adam(.linear_name = "x"), make_loss(g, MR_FLOAT, false), (mr_output){0});
    check_refused(g, "Adam: linear_name has no effect");
    g = mr_graph_new();
    (void)mr_minimize(g, mr_ftrl(.learning_rate = 1, .accum_name = "a b"), make_loss(g, MR_FLOAT, false),
                      (mr_output){0});
    check_refused(g, "Ftrl: accum_name is not a valid name");
    g = mr_graph_new();
    (void)mr_minimize(g, mr_ftrl(.learning_rate = 1, .linear_name = ""), make_loss(g, MR_FLOAT, false), (mr_output){0});
    check_refused(g, "Ftrl: linear_name is not a valid name");
}

/* A second optimizer of the same kind: its slots are named as in TensorFlow. */
TEST(slots_of_a_second_optimizer_have_numbers)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2), .initializer = {.kind = MR_INIT_ONES});
    for (int i = 0; i < 2; i++) (void)mr_minimize(g, mr_adam(), mr_l2_loss(g, w.value), (mr_output){0});
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_EQ(mr_graph_variable_count(g, MR_GLOBAL_VARIABLES), 9);
    CHECK_STR(mr_node_name(mr_graph_variable(g, MR_GLOBAL_VARIABLES, 7).ref.node), "w/Adam_2");
    CHECK_STR(mr_node_name(mr_graph_variable(g, MR_GLOBAL_VARIABLES, 8).ref.node), "w/Adam_3");
    mr_graph_free(g);
}

TEST(piecewise_constants_are_finite)
{
    for (int i = 0; i < 2; i++) {
        mr_graph *g = mr_graph_new();
        (void)mr_piecewise_constant(g, mr_global_step(g).value, MR_INTS(5), MR_FLOATS(1, i == 0 ? NAN : INFINITY));
        check_refused(g, "the values must be finite");
    }
}
