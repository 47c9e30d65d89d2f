/* Adam and its relatives against a model, element by element: random rows of a table, none and repeated ones among
 * them. The comparison with TensorFlow is tests/oracle/optimizers_oracle.py. */
#include "tests/test.h"
#include <millrace/millrace.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 6, WIDTH = 2, SIZE = ROWS * WIDTH, STEPS = 12, IDS_MAX = 5 };

constexpr double RATE = 0.1, BETA1 = 0.8, BETA2 = 0.95, EPSILON = 1e-3, DECAY = 0.05;

typedef struct state {
    double w[SIZE], m[SIZE], v[SIZE];
} state;

/* The loss is the sum of the squares of the gathered rows. */
static void model_step(state *s, mr_optimizer_kind kind, int step, const int32_t *ids, int count)
{
    double gradient[SIZE] = {0};
    bool is_touched[ROWS] = {0};
    for (int i = 0; i < count; i++) {
        is_touched[ids[i]] = true;
        for (int j = 0; j < WIDTH; j++) gradient[ids[i] * WIDTH + j] += 2 * s->w[ids[i] * WIDTH + j];
    }
    const double rate = RATE * sqrt(1 - pow(BETA2, step + 1)) / (1 - pow(BETA1, step + 1));
    for (int i = 0; i < SIZE; i++) {
        if (!is_touched[i / WIDTH] && kind == MR_LAZY_ADAM) continue;
        if (is_touched[i / WIDTH] && kind == MR_ADAM_W) s->w[i] -= DECAY * s->w[i];
        s->m[i] = BETA1 * s->m[i] + (1 - BETA1) * gradient[i];
        s->v[i] = BETA2 * s->v[i] + (1 - BETA2) * gradient[i] * gradient[i];
        s->w[i] -= rate * s->m[i] / (sqrt(s->v[i]) + EPSILON);
    }
}

static mr_optimizer optimizer_of(mr_optimizer_kind kind)
{
    mr_optimizer optimizer =
        *mr_adam(.learning_rate = (float)RATE, .beta1 = (float)BETA1, .beta2 = (float)BETA2, .epsilon = (float)EPSILON);
    optimizer.kind = kind;
    if (kind == MR_ADAM_W) optimizer.weight_decay = (float)DECAY;
    return optimizer;
}

static void check_training(mr_optimizer_kind kind, bool is_resource, unsigned seed)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    mr_variable table =
        mr_get_variable(g, "table", MR_SHAPE(ROWS, WIDTH),
                        .initializer = {.kind = MR_INIT_UNIFORM, .scale = 1, .seed = 7}, .use_resource = is_resource);
    mr_output ids = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(-1));
    mr_output rows = is_resource ? mr_resource_gather(g, table.ref, ids, MR_FLOAT) : mr_gather(g, table.ref, ids);
    mr_output loss = mr_sum(g, mr_square(g, rows), mr_constant_ints(g, MR_INTS(0, 1)));
    const mr_optimizer optimizer = optimizer_of(kind);
    mr_node *train = mr_minimize(g, &optimizer, loss, (mr_output){0});
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    mr_tensor value = {0};
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(table.value), &value, nullptr, 0, &error));
    state s = {0};
    for (int i = 0; i < SIZE; i++) s.w[i] = (double)mr_tensor_floats(&value)[i];
    mr_tensor_deinit(&value);
    for (int step = 0; step < STEPS; step++) {
        int32_t drawn[IDS_MAX] = {0};
        const int count = (int)(rand_r(&seed) % (IDS_MAX + 1));
        for (int i = 0; i < count; i++) drawn[i] = (int32_t)(rand_r(&seed) % ROWS);
        mr_tensor fed = {0};
        CHECK_OK(mr_tensor_init_copy(&fed, MR_INT32, MR_SHAPE(count), drawn, &error));
        CHECK_OK(mr_session_run(session, MR_FEEDS({ids, fed}), (mr_outputs){0}, nullptr, &train, 1, &error));
        mr_tensor_deinit(&fed);
        model_step(&s, kind, step, drawn, count);
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(table.value), &value, nullptr, 0, &error));
        for (int i = 0; i < SIZE; i++) CHECK_NEAR(mr_tensor_floats(&value)[i], s.w[i], 2e-5);
        mr_tensor_deinit(&value);
    }
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(adam_changes_the_rows_that_its_kind_says)
{
    for (unsigned seed = 1; seed <= 10; seed++)
        for (int resource = 0; resource < 2; resource++) {
            check_training(MR_ADAM, resource != 0, seed);
            check_training(MR_LAZY_ADAM, resource != 0, seed);
            check_training(MR_ADAM_W, resource != 0, seed);
        }
}

/* Steps on a variable and on a table of a dtype; returns the sum of both. */
static double sum_after_steps(mr_optimizer optimizer, mr_dtype dtype)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    mr_initializer ones = {.kind = MR_INIT_ONES};
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(3, 2), .initializer = ones, .dtype = dtype);
    mr_variable table = mr_get_variable(g, "table", MR_SHAPE(4, 2), .initializer = ones, .dtype = dtype);
    mr_output rows = mr_gather(g, table.value, mr_constant_ints(g, MR_INTS(0, 2, 2)));
    mr_output loss = mr_add_v2(g, mr_l2_loss(g, w.value), mr_l2_loss(g, rows));
    mr_node *train = mr_minimize(g, &optimizer, loss, mr_global_step(g).ref);
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    mr_output both = mr_cast(g, mr_concat_v2(g, MR_OUTPUTS(w.value, table.value), mr_constant_int32(g, 0)), MR_FLOAT);
    mr_output sum = mr_sum(g, both, mr_constant_ints(g, MR_INTS(0, 1)));
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    for (int i = 0; i < 3; i++)
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &train, 1, &error));
    mr_tensor value = {0};
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(sum), &value, nullptr, 0, &error));
    const double result = (double)mr_tensor_floats(&value)[0];
    mr_tensor_deinit(&value);
    mr_session_free(session);
    mr_graph_free(g);
    return result;
}

TEST(adam_and_the_others_train_variables_of_each_dtype)
{
    const mr_optimizer optimizers[] = {*mr_gradient_descent(.learning_rate = 0.1f),
                                       *mr_momentum(.learning_rate = 0.1f, .momentum = 0.5f),
                                       *mr_adam(.learning_rate = 0.1f, .epsilon = 1e-3f),
                                       *mr_adagrad(.learning_rate = 0.1f),
                                       *mr_adadelta(.learning_rate = 1, .epsilon = 1e-2f),
                                       *mr_rms_prop(.learning_rate = 0.1f, .epsilon = 1e-2f),
                                       *mr_rms_prop(.learning_rate = 0.1f, .centered = true, .epsilon = 1e-1f),
                                       *mr_ftrl(.learning_rate = 0.1f),
                                       *mr_ftrl(.learning_rate = 0.1f, .l2_shrinkage = 0.1f),
                                       *mr_adagrad_da(.learning_rate = 0.1f),
                                       *mr_proximal_gradient_descent(.learning_rate = 0.1f, .l1 = 0.01f),
                                       *mr_proximal_adagrad(.learning_rate = 0.1f),
                                       *mr_lazy_adam(.learning_rate = 0.1f, .epsilon = 1e-3f),
                                       *mr_adam_w(.learning_rate = 0.1f, .weight_decay = 0.1f, .epsilon = 1e-3f),
                                       *mr_lars(.learning_rate = 1, .eeta = 0.1f),
                                       *mr_momentum_w(.learning_rate = 0.1f, .momentum = 0.5f, .weight_decay = 0.1f),
                                       *mr_amsgrad(.learning_rate = 0.1f, .epsilon = 1e-3f),
                                       *mr_ada_max(.learning_rate = 0.1f, .epsilon = 1e-3f),
                                       *mr_power_sign(),
                                       *mr_add_sign()};
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
        const double expected = sum_after_steps(optimizers[i], MR_FLOAT);
        CHECK(expected < 13.9);
        CHECK_NEAR(sum_after_steps(optimizers[i], MR_DOUBLE), expected, 1e-4);
        const mr_optimizer_kind kind = optimizers[i].kind; /* three have no kernel for half, in TensorFlow either */
        if (kind < MR_ADAGRAD_DA || kind > MR_PROXIMAL_ADAGRAD)
            CHECK_NEAR(sum_after_steps(optimizers[i], MR_HALF), expected, 0.1);
    }
}

TEST(adam_refuses_what_is_not_a_step)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2));
    mr_minimize(g, mr_adam(), mr_l2_loss(g, w.value), mr_global_step(g).value);
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "global_step is global_step/read, not a reference variable");
    mr_graph_free(g);
    g = mr_graph_new();
    mr_apply_gradients(g, mr_adam(), (mr_gradients_and_variables){.count = -1}, (mr_output){0});
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "the list of gradients is not valid");
    mr_graph_free(g);
}
