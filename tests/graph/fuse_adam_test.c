/* Adam's update by a sparse gradient in one call: the same bits as its nodes one by one. */
#include "base/random.h"
#include "tests/graph/ran.h"
#include <millrace/ops.h>
#include <millrace/session.h>

constexpr int STEPS = 3, INPUTS = 8;

typedef enum way {
    TENSORFLOW, /* as AdamOptimizer does it */
    REVERSED,   /* the operands of all sums and products */
    READ_PLAIN, /* the slots' values by reference, not by Identity */
    WAITS,      /* a member waits for another node */
    GROUPED,    /* a node waits for members and for the step */
    ONE_NUMBER, /* is added to all elements of the rows */
    WAYS,       /* the following are not fused */
    SLOT_FETCHED = WAYS,
    SLOT_READ,   /* by another node */
    ROOT_USED,   /* by another node */
    OTHER_ROWS,  /* m and v at different indices */
    RATE_KEPT,   /* in a variable */
    AWAITED,     /* a member, alone */
    NO_DECAY,    /* the slots are not assigned */
    SAME_SLOT,   /* m is v */
    WRONG_SHAPE, /* the rate is no number */
    ALL,
} way;

typedef struct training {
    mr_graph *graph;
    mr_output inputs[INPUTS]; /* rate, beta_m, beta_v, epsilon, indices, rows_m, rows_v, other indices */
    mr_variable x, m, v, factor;
    mr_output fetched;
    mr_node *before, *train, *init;
} training;

static mr_output product(mr_graph *g, way way, mr_output a, mr_output b)
{
    return way == REVERSED ? mr_mul(g, b, a) : mr_mul(g, a, b);
}

/* slot * beta, and the rows. */
static mr_output move_slot(training *t, way way, mr_variable slot, int beta, int rows, int indices)
{
    mr_graph *g = t->graph;
    const mr_output value = way == READ_PLAIN ? slot.ref : slot.value;
    mr_node *decayed = nullptr;
    if (way != NO_DECAY) {
        const mr_output result = product(g, way, value, t->inputs[beta]);
        if (way == WAITS && beta == 1) mr_node_add_control(result.node, t->before);
        decayed = mr_assign(g, slot.ref, result).node;
    }
    const mr_output moved = mr_scatter_add(g, slot.ref, t->inputs[indices], t->inputs[rows]);
    if (decayed) mr_node_add_control(moved.node, decayed);
    return moved;
}

static training make_training(mr_dtype dtype, mr_dtype index_dtype, mr_shape shape, way way)
{
    mr_graph *g = mr_graph_new();
    training t = {.graph = g};
    const mr_output start = mr_fill(g, mr_constant_ints(g, (mr_ints){shape.dims, shape.rank}),
                                    mr_cast(g, mr_constant_float(g, 0.5f), dtype));
    t.factor = mr_variable_new(g, "factor", mr_cast(g, mr_constant_float(g, 0.75f), dtype));
    t.x = mr_variable_new(g, "x", start);
    t.m = mr_variable_new(g, "m", start);
    t.v = mr_variable_new(g, "v", start);
    for (int i = 0; i < INPUTS; i++) {
        const bool is_index = i == 4 || i == 7, is_number = i < 4 && (i != 0 || way != WRONG_SHAPE);
        t.inputs[i] =
            mr_placeholder(g, is_index ? index_dtype : dtype, .shape = is_number ? MR_SCALAR : MR_SHAPE_UNKNOWN);
    }
    t.before = mr_no_op(g);
    const mr_variable v = way == SAME_SLOT ? t.m : t.v;
    const mr_output m_moved = move_slot(&t, way, t.m, 1, 5, 4);
    const mr_output v_moved = move_slot(&t, way, v, 2, 6, way == OTHER_ROWS ? 7 : 4);
    if (way == SAME_SLOT) mr_node_add_control(v_moved.node, m_moved.node);
    const mr_output rate = way == RATE_KEPT ? t.factor.value : t.inputs[0], root = mr_sqrt(g, v_moved);
    const mr_output divisor = way == REVERSED ? mr_add_v2(g, t.inputs[3], root) : mr_add_v2(g, root, t.inputs[3]);
    const mr_output change = mr_real_div(g, product(g, way, rate, m_moved), divisor);
    const mr_output step = mr_assign_sub(g, t.x.ref, change);
    t.train = step.node;
    t.fetched = t.inputs[0];
    if (way == SLOT_FETCHED) t.fetched = t.m.value;
    if (way == SLOT_READ) t.fetched = mr_neg(g, t.v.value);
    if (way == ROOT_USED) t.fetched = mr_neg(g, root);
    if (way == GROUPED || way == AWAITED) {
        t.train = mr_no_op(g);
        mr_node_add_control(t.train, m_moved.node);
        if (way == GROUPED) mr_node_add_control(t.train, step.node);
        t.fetched = mr_identity(g, t.inputs[0]);
        if (way == AWAITED) mr_node_add_control(t.fetched.node, step.node);
    }
    t.init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, nullptr);
    return t;
}

/* Trains and returns the variable, its slots and what was fetched last. */
static mr_status train(const training *t, bool is_plain, int threads, const mr_tensor inputs[INPUTS],
                       mr_tensor values[4], int *fused, mr_error *failed)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_feed feeds[INPUTS];
    for (int i = 0; i < INPUTS; i++) feeds[i] = (mr_feed){t->inputs[i], inputs[i]};
    CHECK_OK(mr_session_new(t->graph, MR_OPTIONS(mr_session_options, .threads = threads, .no_optimization = is_plain),
                            &session, &error));
    mr_session_trace(session, true);
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &(mr_node *){t->init}, 1, &error));
    mr_status status = MR_OK;
    for (int i = 0; i < STEPS && status == MR_OK; i++) {
        mr_tensor_deinit(&values[3]);
        status = mr_session_run(session, (mr_feeds){feeds, INPUTS}, (mr_outputs){&t->fetched, 1}, &values[3],
                                &(mr_node *){t->train}, 1, failed);
    }
    *fused = ran(session, "_ApplySparseAdam");
    const mr_output refs[] = {t->x.ref, t->m.ref, t->v.ref};
    for (int i = 0; i < 3; i++) CHECK_OK(mr_session_read_variable(session, refs[i], &values[i], &error));
    mr_session_free(session);
    return status;
}

static mr_tensor random_tensor(mr_random *random, mr_dtype dtype, mr_shape shape, int64_t below)
{
    mr_error error = {0};
    mr_tensor made = {0};
    CHECK_OK(mr_tensor_init(&made, dtype, shape, &error));
    for (int64_t i = 0; i < mr_tensor_count(&made); i++) {
        const double number = (double)mr_random_below(random, 1000) / 1000;
        if (dtype == MR_FLOAT)
            mr_tensor_floats(&made)[i] = (float)number;
        else if (dtype == MR_DOUBLE)
            ((double *)made.data)[i] = number;
        else if (dtype == MR_INT32)
            ((int32_t *)made.data)[i] = (int32_t)mr_random_below(random, (uint64_t)below);
        else
            ((int64_t *)made.data)[i] = (int64_t)mr_random_below(random, (uint64_t)below);
    }
    return made;
}

static mr_shape shape_of_input(int input, way way, mr_shape shape, int64_t count)
{
    if (input < 4) return way == WRONG_SHAPE && input == 0 ? MR_SHAPE(1) : MR_SCALAR;
    if (input == 4 || input == 7) return MR_SHAPE(count);
    if (way == ONE_NUMBER) return MR_SCALAR;
    mr_shape rows = shape;
    rows.dims[0] = count;
    return rows;
}

TEST(plan_fuses_sparse_adam)
{
    static const mr_shape shapes[] = {{2, {0, 5}}, {2, {7, 0}},     {1, {1}},       {1, {40}},      {2, {1, 3000}},
                                      {2, {3, 1}}, {2, {300, 170}}, {3, {9, 5, 7}}, {2, {5, 1024}}, {2, {2, 1025}}};
    mr_random random = mr_random_at(test_seed(), 2, 0, 0);
    for (int way = 0; way < ALL; way++)
        for (int round = 0; round < 12; round++) {
            mr_error error = {0};
            const mr_shape shape = shapes[mr_random_below(&random, 10)];
            const mr_dtype dtype = round % 2 ? MR_FLOAT : MR_DOUBLE, index_dtype = round % 3 ? MR_INT32 : MR_INT64;
            const int64_t count = shape.dims[0] == 0 ? 0 : (int64_t)mr_random_below(&random, 12);
            const training t = make_training(dtype, index_dtype, shape, (enum way)way);
            mr_tensor inputs[INPUTS], fused[4] = {0}, plain[4] = {0};
            for (int i = 0; i < INPUTS; i++)
                inputs[i] = random_tensor(&random, i == 4 || i == 7 ? index_dtype : dtype,
                                          shape_of_input(i, (enum way)way, shape, count),
                                          shape.dims[0] > 0 ? shape.dims[0] : 1);
            int calls;
            CHECK_OK(train(&t, true, 1, inputs, plain, &calls, &error));
            CHECK_EQ(calls, 0);
            CHECK_OK(train(&t, false, 1 + (int)mr_random_below(&random, 3), inputs, fused, &calls, &error));
            CHECK_EQ(calls, way < WAYS ? 1 : 0);
            for (int i = 0; i < 4; i++) {
                CHECK(mr_shape_equal(fused[i].shape, plain[i].shape));
                CHECK(mr_tensor_count(&plain[i]) == 0 ||
                      memcmp(fused[i].data, plain[i].data, mr_tensor_size_bytes(&plain[i])) == 0);
                mr_tensor_deinit(&fused[i]);
                mr_tensor_deinit(&plain[i]);
            }
            for (int i = 0; i < INPUTS; i++) mr_tensor_deinit(&inputs[i]);
            mr_graph_free(t.graph);
        }
}

/* Errors name the node that adds the rows, and nothing is changed. */
TEST(fused_sparse_adam_refuses_bad_rows)
{
    static const struct bad {
        int input;
        mr_shape shape;
        int64_t index;
        const char *says;
    } bad[] = {
        {4, {1, {3}}, 5, "ScatterAdd (ScatterAdd): indices[2] = 5 is not in [0, 5)"},
        {4, {1, {3}}, -1, "ScatterAdd (ScatterAdd): indices[2] = -1 is not in [0, 5)"},
        {5, {2, {3, 6}}, 0, "ScatterAdd (ScatterAdd): Must have updates.shape"},
        {6, {2, {2, 7}}, 0, "ScatterAdd_1 (ScatterAdd): Must have updates.shape"},
        {6, {1, {7}}, 0, "ScatterAdd_1 (ScatterAdd): Must have updates.shape"},
    };
    mr_random random = mr_random_at(test_seed(), 3, 0, 0);
    const mr_shape shape = MR_SHAPE(5, 7);
    for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++) {
        mr_error error = {0};
        const training t = make_training(MR_FLOAT, MR_INT64, shape, TENSORFLOW);
        mr_tensor inputs[INPUTS], values[4] = {0};
        for (int i = 0; i < INPUTS; i++)
            inputs[i] = random_tensor(&random, i == 4 || i == 7 ? MR_INT64 : MR_FLOAT,
                                      i == bad[b].input ? bad[b].shape : shape_of_input(i, TENSORFLOW, shape, 3),
                                      shape.dims[0]);
        if (bad[b].input == 4) ((int64_t *)inputs[4].data)[2] = bad[b].index;
        int calls;
        CHECK_EQ(train(&t, false, 2, inputs, values, &calls, &error), MR_INVALID_ARGUMENT);
        CHECK(strstr(error.message, bad[b].says) != nullptr);
        for (int i = 0; i < 3; i++)
            for (int64_t j = 0; j < mr_tensor_count(&values[i]); j++) CHECK(mr_tensor_floats(&values[i])[j] == 0.5f);
        for (int i = 0; i < 4; i++) mr_tensor_deinit(&values[i]);
        for (int i = 0; i < INPUTS; i++) mr_tensor_deinit(&inputs[i]);
        mr_graph_free(t.graph);
    }
}
