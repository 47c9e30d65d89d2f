/* Steps of optimizers that multiply the gradient themselves: the same bits as a product before. */
#include "base/random.h"
#include "tests/graph/ran.h"
#include <millrace/ops.h>
#include <millrace/session.h>

constexpr int STEPS = 3;

typedef enum way {
    LEFT,
    RIGHT,
    PASSED_ON, /* through two identities */
    AWAITED,   /* by the step, too */
    WAYS,      /* the following are not fused */
    FETCHED = WAYS,
    USED_TWICE,
    SHAPE_UNKNOWN,
    NUMBER_IN_VARIABLE,
    TENSOR_IN_VARIABLE,
    ALL,
} way;

constexpr int KINDS = 5, BY_HANDLE = 4;

typedef struct training {
    mr_graph *graph;
    mr_output x, number, product, other;
    mr_variable w, m, v, factor;
    mr_node *train, *init;
} training;

static mr_output number_of(mr_graph *g, mr_dtype dtype, float value)
{
    return mr_cast(g, mr_constant_float(g, value), dtype);
}

/* kind  gradient descent, momentum, Nesterov's, Adam, and momentum by handle */
static mr_node *step_of(training *t, int kind, mr_dtype dtype, mr_output gradient)
{
    mr_graph *g = t->graph;
    const mr_output rate = number_of(g, dtype, 0.1f), decay = number_of(g, dtype, 0.9f),
                    small = number_of(g, dtype, 1e-3f);
    if (kind == BY_HANDLE) return mr_resource_apply_momentum(g, t->w.ref, t->m.ref, rate, gradient, decay);
    if (kind == 0) return mr_apply_gradient_descent(g, t->w.ref, rate, gradient).node;
    if (kind < 3)
        return mr_apply_momentum(g, t->w.ref, t->m.ref, rate, gradient, decay, .use_nesterov = kind == 2).node;
    return mr_apply_adam(g, t->w.ref, t->m.ref, t->v.ref, decay, decay, rate, decay, decay, small, gradient).node;
}

static training make_training(int kind, mr_dtype dtype, int64_t count, way way)
{
    mr_graph *g = mr_graph_new();
    training t = {.graph = g};
    const mr_output start = mr_fill(g, mr_constant_ints(g, MR_INTS(count)), number_of(g, dtype, 0.5f));
    t.factor = mr_variable_new(g, "factor", number_of(g, dtype, 0.75f));
    t.w = mr_variable_new(g, "w", start, .use_resource = kind == BY_HANDLE);
    t.m = mr_variable_new(g, "m", start, .use_resource = kind == BY_HANDLE);
    t.v = mr_variable_new(g, "v", start, .use_resource = kind == BY_HANDLE);
    t.x = mr_placeholder(g, dtype, .shape = MR_SHAPE(count));
    t.number = mr_placeholder(g, dtype, .shape = way == SHAPE_UNKNOWN ? MR_SHAPE_UNKNOWN : MR_SCALAR);
    const mr_output number = way == NUMBER_IN_VARIABLE ? t.factor.value : t.number;
    const mr_output tensor = way == TENSOR_IN_VARIABLE ? t.m.value : t.x;
    t.product = way == RIGHT ? mr_mul(g, number, tensor) : mr_mul(g, tensor, number);
    mr_output gradient = t.product;
    if (way == PASSED_ON) gradient = mr_identity(g, mr_identity(g, gradient));
    t.other = way == USED_TWICE ? mr_neg(g, gradient) : t.x;
    t.train = step_of(&t, kind, dtype, gradient);
    if (way == AWAITED) mr_node_add_control(t.train, t.product.node);
    t.init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, nullptr);
    return t;
}

/* Trains and returns the variable and its slots. */
static void train(const training *t, bool is_plain, int threads, way way, const mr_tensor *x, const mr_tensor *number,
                  mr_tensor values[3], int *products)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(t->graph, MR_OPTIONS(mr_session_options, .threads = threads, .no_optimization = is_plain),
                            &session, &error));
    mr_session_trace(session, true);
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &(mr_node *){t->init}, 1, &error));
    const mr_output fetches[] = {way == FETCHED ? t->product : t->other};
    for (int i = 0; i < STEPS; i++) {
        mr_tensor result = {0};
        const mr_outputs fetched = {fetches, way == FETCHED || way == USED_TWICE ? 1 : 0};
        CHECK_OK(mr_session_run(session, MR_FEEDS({t->x, *x}, {t->number, *number}), fetched, &result,
                                &(mr_node *){t->train}, 1, &error));
        mr_tensor_deinit(&result);
    }
    *products = ran(session, "Mul") + ran(session, "_Elementwise");
    const mr_output refs[] = {t->w.ref, t->m.ref, t->v.ref};
    for (int i = 0; i < 3; i++) CHECK_OK(mr_session_read_variable(session, refs[i], &values[i], &error));
    mr_session_free(session);
}

static mr_tensor random_tensor(mr_random *random, mr_dtype dtype, mr_shape shape)
{
    mr_error error = {0};
    mr_tensor made = {0};
    CHECK_OK(mr_tensor_init(&made, dtype, shape, &error));
    for (int64_t i = 0; i < mr_tensor_count(&made); i++) {
        const double number = (double)mr_random_below(random, 2000) / 1000 - 1;
        if (dtype == MR_FLOAT)
            mr_tensor_floats(&made)[i] = (float)number;
        else if (dtype == MR_DOUBLE)
            ((double *)made.data)[i] = number;
        else
            ((uint16_t *)made.data)[i] = (uint16_t)(0x3800 + (int)(number * 500));
    }
    return made;
}

TEST(plan_fuses_the_scale_of_gradients_with_steps)
{
    static const mr_dtype dtypes[] = {MR_FLOAT, MR_DOUBLE, MR_HALF};
    static const int64_t counts[] = {0, 1, 15, 511, 512, 513, 1025, 40000};
    mr_random random = mr_random_at(test_seed(), 1, 0, 0);
    for (int way = 0; way < ALL; way++)
        for (int round = 0; round < 3 * KINDS; round++) {
            const int kind = round % KINDS;
            const mr_dtype dtype = dtypes[round / KINDS];
            const int64_t count = counts[mr_random_below(&random, 8)];
            const training t = make_training(kind, dtype, count, (enum way)way);
            mr_tensor x = random_tensor(&random, dtype, MR_SHAPE(count));
            mr_tensor number = random_tensor(&random, dtype, MR_SCALAR), fused[3] = {0}, plain[3] = {0};
            int products;
            train(&t, true, 1, (enum way)way, &x, &number, plain, &products);
            CHECK_EQ(products, 1);
            train(&t, false, 1 + (int)mr_random_below(&random, 3), (enum way)way, &x, &number, fused, &products);
            CHECK_EQ(products, way < WAYS && dtype != MR_HALF ? 0 : 1);
            for (int i = 0; i < 3; i++) {
                CHECK_EQ(mr_tensor_count(&fused[i]), count);
                CHECK(count == 0 || memcmp(fused[i].data, plain[i].data, mr_tensor_size_bytes(&plain[i])) == 0);
                mr_tensor_deinit(&fused[i]);
                mr_tensor_deinit(&plain[i]);
            }
            mr_tensor_deinit(&x);
            mr_tensor_deinit(&number);
            mr_graph_free(t.graph);
        }
}

/* The gradient's shape is checked as before. */
TEST(plan_fused_steps_check_the_gradient)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_variable_new(g, "w", mr_constant_floats(g, MR_SHAPE(2), (float[]){1, 2}, nullptr));
    mr_output x = mr_placeholder(g, MR_FLOAT), number = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR);
    mr_output step = mr_apply_gradient_descent(g, w.ref, mr_constant_float(g, 1), mr_mul(g, x, number));
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1), &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &w.initializer, 1, &error));
    for (int64_t count = 0; count < 4; count++) {
        mr_random random = mr_random_at(test_seed(), 2, 0, 0);
        mr_tensor fed = random_tensor(&random, MR_FLOAT, MR_SHAPE(count)),
                  one = random_tensor(&random, MR_FLOAT, MR_SCALAR);
        const mr_status status =
            mr_session_run(session, MR_FEEDS({x, fed}, {number, one}), (mr_outputs){0}, nullptr, &step.node, 1, &error);
        CHECK_EQ(status, count == 2 ? MR_OK : MR_INVALID_ARGUMENT);
        if (count != 2) CHECK_CONTAINS(error.message, "var and delta do not have the same shape[2]");
        mr_tensor_deinit(&fed);
        mr_tensor_deinit(&one);
    }
    mr_session_free(session);
    mr_graph_free(g);
}
