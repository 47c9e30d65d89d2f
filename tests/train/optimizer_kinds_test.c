/* LARS, MomentumW, AMSGrad, AdaMax, PowerSign and AddSign against a model, element by element: all rows of a table, or
 * random ones. The comparison with TensorFlow is tests/oracle/optimizers_oracle.py. */
#include "tests/test.h"
#include <millrace/millrace.h>

#include <math.h>
#include <stdlib.h>

enum { ROWS_MAX = 6, WIDTH = 2, SIZE = ROWS_MAX * WIDTH, STEPS = 12, IDS_MAX = 5 };

constexpr double RATE = 0.1, MOMENTUM = 0.5, DECAY = 0.05, EETA = 0.2, BETA1 = 0.8, BETA2 = 0.9, EPSILON = 1e-3,
                 BETA = 0.7, BASE = 2, ALPHA = 0.8, SIGN_DECAY = 0.6;

typedef struct state {
    double w[SIZE], m[SIZE], v[SIZE], vhat[SIZE];
    int size;
} state;

static double norm(const double *values, int size)
{
    double sum = 0;
    for (int i = 0; i < size; i++) sum += values[i] * values[i];
    return sqrt(sum);
}

static double sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

static double lars_rate(const state *s, const double *gradient)
{
    const double w = norm(s->w, s->size), g = norm(gradient, s->size);
    return w > 0 && g > 0 ? RATE * EETA * w / (g + DECAY * w + EPSILON) : RATE;
}

/* touched  null: all rows */
static void model_step(state *s, mr_optimizer_kind kind, int step, const double *gradient, const bool *touched)
{
    const double power1 = pow(BETA1, step + 1), power2 = pow(BETA2, step + 1);
    const double lars = touched == nullptr && kind == MR_LARS ? lars_rate(s, gradient) : RATE;
    for (int i = 0; i < s->size; i++) {
        const bool is_touched = touched == nullptr || touched[i / WIDTH];
        const double g = gradient[i];
        double *w = &s->w[i], *m = &s->m[i], *v = &s->v[i], *vhat = &s->vhat[i];
        if (kind == MR_AMSGRAD) {
            *m = BETA1 * *m + (1 - BETA1) * g;
            *v = BETA2 * *v + (1 - BETA2) * g * g;
            *vhat = fmax(*vhat, *v);
            *w -= RATE * sqrt(1 - power2) / (1 - power1) * *m / (sqrt(*vhat) + EPSILON);
        } else if (kind == MR_ADA_MAX && is_touched) {
            *m = BETA1 * *m + (1 - BETA1) * g;
            *v = fmax(BETA2 * *v, fabs(g));
            *w -= RATE / (1 - power1) * *m / (*v + EPSILON);
        } else if (kind == MR_POWER_SIGN || kind == MR_ADD_SIGN) {
            *m = BETA * *m + (1 - BETA) * g;
            const double agreement = SIGN_DECAY * sign(g) * sign(*m);
            *w -= RATE * (kind == MR_POWER_SIGN ? pow(BASE, agreement) : ALPHA + agreement) * g;
        } else if ((kind == MR_LARS || kind == MR_MOMENTUM_W) && is_touched) {
            if (kind == MR_MOMENTUM_W) *w -= DECAY * *w;
            *m = MOMENTUM * *m + g;
            *w -= lars * *m;
        }
    }
}

static mr_optimizer optimizer_of(mr_graph *g, mr_optimizer_kind kind)
{
    const mr_output sign_decay = mr_constant_float(g, (float)SIGN_DECAY);
    switch (kind) {
    case MR_LARS:
        return *mr_lars(.learning_rate = (float)RATE, .momentum = (float)MOMENTUM, .weight_decay = (float)DECAY,
                        .eeta = (float)EETA, .epsilon = (float)EPSILON);
    case MR_MOMENTUM_W:
        return *mr_momentum_w(.learning_rate = (float)RATE, .momentum = (float)MOMENTUM, .weight_decay = (float)DECAY);
    case MR_AMSGRAD:
        return *mr_amsgrad(.learning_rate = (float)RATE, .beta1 = (float)BETA1, .beta2 = (float)BETA2,
                           .epsilon = (float)EPSILON);
    case MR_ADA_MAX:
        return *mr_ada_max(.learning_rate = (float)RATE, .beta1 = (float)BETA1, .beta2 = (float)BETA2,
                           .epsilon = (float)EPSILON);
    case MR_POWER_SIGN:
        return *mr_power_sign(.beta = (float)BETA, .base = (float)BASE, .sign_decay = sign_decay);
    default:
        return *mr_add_sign(.beta = (float)BETA, .alpha = (float)ALPHA, .sign_decay = sign_decay);
    }
}

static void read_table(mr_session *session, mr_output value, const state *expected, state *received)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(value), &tensor, nullptr, 0, &error));
    for (int i = 0; expected != nullptr && i < expected->size; i++)
        CHECK_NEAR(mr_tensor_floats(&tensor)[i], expected->w[i], 2e-5);
    for (int i = 0; received != nullptr && i < received->size; i++)
        received->w[i] = (double)mr_tensor_floats(&tensor)[i];
    mr_tensor_deinit(&tensor);
}

/* The loss is the sum of factor * w in the rows of ids, or everywhere. */
static void check_training(mr_optimizer_kind kind, bool is_resource, bool is_sparse, unsigned seed)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    const int rows = 1 + (int)(rand_r(&seed) % ROWS_MAX);
    state s = {.size = rows * WIDTH};
    mr_variable table =
        mr_get_variable(g, "table", MR_SHAPE(rows, WIDTH),
                        .initializer = {.kind = MR_INIT_UNIFORM, .scale = 1, .seed = 7}, .use_resource = is_resource);
    mr_output ids = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(-1));
    mr_output factor = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR);
    mr_output taken = !is_sparse    ? table.value
                      : is_resource ? mr_resource_gather(g, table.ref, ids, MR_FLOAT)
                                    : mr_gather(g, table.ref, ids);
    mr_output loss = mr_mul(g, mr_sum(g, taken, mr_constant_ints(g, MR_INTS(0, 1))), factor);
    const mr_optimizer optimizer = optimizer_of(g, kind);
    mr_node *train = mr_minimize(g, &optimizer, loss, (mr_output){0});
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    read_table(session, table.value, nullptr, &s);
    for (int step = 0; step < STEPS; step++) {
        int32_t drawn[IDS_MAX] = {0};
        double gradient[SIZE] = {0};
        bool touched[ROWS_MAX] = {0};
        const float x = (float)(rand_r(&seed) % 21) / 10 - 1;
        const int count = (int)(rand_r(&seed) % (IDS_MAX + 1));
        for (int i = 0; i < count; i++) {
            drawn[i] = (int32_t)(rand_r(&seed) % (unsigned)rows);
            touched[drawn[i]] = true;
            for (int j = 0; j < WIDTH; j++) gradient[drawn[i] * WIDTH + j] += (double)x;
        }
        for (int i = 0; i < s.size && !is_sparse; i++) gradient[i] = (double)x;
        mr_tensor fed = {0}, scale = {0};
        CHECK_OK(mr_tensor_init_copy(&fed, MR_INT32, MR_SHAPE(count), drawn, &error));
        CHECK_OK(mr_tensor_init_copy(&scale, MR_FLOAT, MR_SCALAR, &x, &error));
        CHECK_OK(mr_session_run(session, MR_FEEDS({ids, fed}, {factor, scale}), (mr_outputs){0}, nullptr, &train, 1,
                                &error));
        mr_tensor_deinit(&fed);
        mr_tensor_deinit(&scale);
        model_step(&s, kind, step, gradient, is_sparse ? touched : nullptr);
        read_table(session, table.value, &s, nullptr);
    }
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(optimizers_of_contrib_train_as_their_models)
{
    for (mr_optimizer_kind kind = MR_LARS; kind <= MR_ADD_SIGN; kind++)
        for (unsigned seed = 1; seed <= 16; seed++) check_training(kind, seed % 2 == 0, seed / 2 % 2 == 0, seed * 31);
}

/* A variable of zeros, and one with a skipped name, have the learning rate itself. */
TEST(lars_scales_no_zeros_and_no_skipped_variable)
{
    for (int skipped = 0; skipped < 2; skipped++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_session *session = nullptr;
        mr_variable w = mr_get_variable(g, "dense/bias", MR_SHAPE(2),
                                        .initializer = {.kind = skipped != 0 ? MR_INIT_ONES : MR_INIT_ZEROS});
        mr_output loss = mr_sum(g, w.value, mr_constant_ints(g, MR_INTS(0)));
        const mr_names names = skipped != 0 ? MR_NAMES("kernel", "bias") : (mr_names){0};
        mr_node *train = mr_minimize(g, mr_lars(.learning_rate = 0.5f, .skip_list = names), loss, (mr_output){0});
        mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
        CHECK_OK(mr_session_new(g, nullptr, &session, &error));
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &train, 1, &error));
        const state expected = {.w = {skipped - 0.5, skipped - 0.5}, .size = 2};
        read_table(session, w.value, &expected, nullptr);
        mr_session_free(session);
        mr_graph_free(g);
    }
}

#define CHECK_MISTAKE(text, ...)                                                                                       \
    do {                                                                                                               \
        mr_error error_ = {0};                                                                                         \
        mr_graph *g = mr_graph_new();                                                                                  \
        mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2));                                                          \
        mr_minimize(g, __VA_ARGS__, mr_l2_loss(g, w.value), (mr_output){0});                                           \
        CHECK_STATUS(mr_graph_status(g, &error_), MR_INVALID_ARGUMENT);                                                \
        CHECK_CONTAINS(error_.message, text);                                                                          \
        mr_graph_free(g);                                                                                              \
    } while (0)

TEST(optimizers_of_contrib_report_mistakes)
{
    CHECK_MISTAKE("LARSOptimizer: a learning rate is required", mr_lars());
    CHECK_MISTAKE("LARSOptimizer: eeta is -1, but must be finite and at least 0",
                  mr_lars(.learning_rate = 1, .eeta = -1));
    CHECK_MISTAKE("LARSOptimizer: skip_list is not a valid list of names",
                  mr_lars(.learning_rate = 1, .skip_list = {.count = 1}));
    CHECK_MISTAKE("Adam: skip_list has no effect for this optimizer", mr_adam(.skip_list = MR_NAMES("b")));
    CHECK_MISTAKE("Adam: eeta has no effect for this optimizer", mr_adam(.eeta = 1));
    CHECK_MISTAKE("Adam: sign_decay has no effect for this optimizer", mr_adam(.sign_decay = mr_constant_float(g, 1)));
    CHECK_MISTAKE("sign_decay is float[2], but must be a scalar of floating point", mr_add_sign(.sign_decay = w.value));
    CHECK_MISTAKE("MomentumW: weight_decay is required", mr_momentum_w(.learning_rate = 1, .momentum = 0.5f));
    CHECK_MISTAKE("MomentumW: momentum is required", mr_momentum_w(.learning_rate = 1, .weight_decay = 0.5f));
    CHECK_MISTAKE("AMSGrad: nesterov has no effect for this optimizer", mr_amsgrad(.nesterov = true));
    CHECK_MISTAKE("AdaMax: beta1 is 1, but must be at least 0 and less than 1", mr_ada_max(.beta1 = 1));
    CHECK_MISTAKE("PowerSignOptimizer: base is 0, but must be finite and greater than 0", mr_power_sign(.base = 0));
    CHECK_MISTAKE("PowerSignOptimizer: alpha has no effect for this optimizer", mr_power_sign(.alpha = 1));
    CHECK_MISTAKE("AddSignOptimizer: beta is 1, but must be at least 0 and less than 1", mr_add_sign(.beta = 1));
    CHECK_MISTAKE("unknown optimizer kind",
                  (&(mr_optimizer){.size = sizeof(mr_optimizer), MR_OPTIMIZER_DEFAULTS, .kind = MR_WRAPPED_OPTIMIZER}));
}
