/* Sums of matrix products and products with one transposed matrix, which the planner computes together. */
#include "base/random.h"
#include "graph/ir/graph.h"
#include "tests/graph/ran.h"
#include <millrace/ops.h>
#include <millrace/session.h>

constexpr int STEPS = 4;

typedef struct recurrent {
    mr_output x[STEPS], d[STEPS], w, product[STEPS], sum, input[STEPS];
} recurrent;

/* The gradients of an unrolled recurrent network: of its weights, and of the inputs of its steps. */
static recurrent recurrent_gradients(mr_graph *g)
{
    recurrent r = {.w = mr_placeholder(g, MR_FLOAT, .name = "w")};
    for (int i = 0; i < STEPS; i++) {
        r.x[i] = mr_placeholder(g, MR_FLOAT);
        r.d[i] = mr_placeholder(g, MR_FLOAT);
        r.product[i] = mr_mat_mul(g, r.x[i], r.d[i], .transpose_a = true);
        r.input[i] = mr_mat_mul(g, r.d[i], r.w, .transpose_b = true);
    }
    const mr_outputs products = {r.product, STEPS};
    r.sum = mr_add_n(g, products);
    return r;
}

static mr_status run_recurrent(mr_session *session, const recurrent *r, const mr_tensor *values, mr_outputs fetches,
                               mr_tensor *results, mr_error *error)
{
    mr_feed feeds[2 * STEPS + 1] = {{r->w, values[2 * STEPS]}};
    for (int i = 0; i < STEPS; i++) {
        feeds[1 + i] = (mr_feed){r->x[i], values[i]};
        feeds[1 + STEPS + i] = (mr_feed){r->d[i], values[STEPS + i]};
    }
    return mr_session_run(session, (mr_feeds){feeds, 2 * STEPS + 1}, fetches, results, nullptr, 0, error);
}

static void random_steps(mr_tensor *values, mr_random *random, int64_t inputs, int64_t outputs)
{
    mr_error error = {0};
    for (int i = 0; i < STEPS; i++) {
        int64_t batch = (int64_t)mr_random_below(random, 40);
        CHECK_OK(mr_tensor_init(&values[i], MR_FLOAT, MR_SHAPE(batch, inputs), &error));
        CHECK_OK(mr_tensor_init(&values[STEPS + i], MR_FLOAT, MR_SHAPE(batch, outputs), &error));
    }
    CHECK_OK(mr_tensor_init(&values[2 * STEPS], MR_FLOAT, MR_SHAPE(inputs, outputs), &error));
    for (int i = 0; i <= 2 * STEPS; i++)
        for (int64_t j = 0; j < mr_tensor_count(&values[i]); j++)
            mr_tensor_floats(&values[i])[j] = (float)mr_random_below(random, 2000) / 1000 - 1;
}

static mr_session *open_session(mr_graph *g, bool is_plain)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    CHECK_OK(
        mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 2, .no_optimization = is_plain), &session, &error));
    mr_session_trace(session, true);
    return session;
}

/* Products with one matrix of weights are computed together; the results are those of the plain graph. */
TEST(plan_fuses_products_with_shared_weights)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    const recurrent r = recurrent_gradients(g);
    mr_session *session = open_session(g, false), *plain_session = open_session(g, true);
    mr_random random = mr_random_at(test_seed(), 3, 0, 0);
    mr_output items[STEPS + 2] = {r.sum};
    for (int i = 0; i < STEPS; i++) items[1 + i] = r.input[i];
    items[STEPS + 1] = r.product[1];
    for (int round = 0; round < 40; round++) {
        mr_tensor values[2 * STEPS + 1] = {0}, fused[STEPS + 2] = {0}, plain[STEPS + 2] = {0};
        random_steps(values, &random, 1 + (int64_t)mr_random_below(&random, 40),
                     1 + (int64_t)mr_random_below(&random, 60));
        bool reads_product = round % 4 == 3; /* then the sum is not fused */
        mr_outputs fetches = {items, STEPS + 1 + reads_product};
        CHECK_OK(run_recurrent(session, &r, values, fetches, fused, &error));
        CHECK_OK(run_recurrent(plain_session, &r, values, fetches, plain, &error));
        CHECK_EQ(ran(session, "_SumOfMatMuls"), !reads_product);
        CHECK_EQ(ran(session, "AddN"), reads_product);
        CHECK_EQ(ran(session, "_TransposeMatrix"), 1);
        CHECK_EQ(ran(plain_session, "_TransposeMatrix") + ran(plain_session, "_SumOfMatMuls"), 0);
        for (int i = 0; i < fetches.count; i++) {
            CHECK(mr_shape_equal(fused[i].shape, plain[i].shape));
            for (int64_t j = 0; j < mr_tensor_count(&plain[i]); j++)
                CHECK_NEAR(mr_tensor_floats(&fused[i])[j], mr_tensor_floats(&plain[i])[j], 1e-4);
        }
        for (int i = 0; i <= 2 * STEPS; i++) mr_tensor_deinit(&values[i]);
        for (int i = 0; i < STEPS + 2; i++) mr_tensor_deinit(&fused[i]);
        for (int i = 0; i < STEPS + 2; i++) mr_tensor_deinit(&plain[i]);
    }
    mr_session_free(plain_session);
    mr_session_free(session);
    mr_graph_free(g);
}

/* The fused kernels refuse what the single ones refuse. */
TEST(plan_fused_products_check_shapes)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    const recurrent r = recurrent_gradients(g);
    mr_session *session = open_session(g, false);
    mr_random random = mr_random_at(test_seed(), 4, 0, 0);
    for (int i = 0; i < 3; i++) {
        const mr_shape wrong[] = {MR_SHAPE(5, 3), MR_SHAPE(41, 7), MR_SHAPE(2)};
        static const char *const words[] = {"same size and shape", "size-incompatible", "ndims must be == 2"};
        mr_tensor values[2 * STEPS + 1] = {0}, results[1] = {0};
        random_steps(values, &random, 7, 6);
        mr_tensor_deinit(&values[i]);
        CHECK_OK(mr_tensor_init(&values[i], MR_FLOAT, wrong[i], &error));
        if (i == 0) { /* the same batch, but another number of inputs */
            mr_tensor_deinit(&values[STEPS]);
            CHECK_OK(mr_tensor_init(&values[STEPS], MR_FLOAT, MR_SHAPE(5, 6), &error));
        }
        CHECK_EQ(run_recurrent(session, &r, values, MR_OUTPUTS(r.sum), results, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, words[i]);
        for (int j = 0; j <= 2 * STEPS; j++) mr_tensor_deinit(&values[j]);
    }
    mr_session_free(session);
    mr_graph_free(g);
}

/* acc + product, in either order; the product may read the matrix that it is added to. */
TEST(plan_adds_products_in_place)
{
    mr_error error = {0};
    mr_random random = mr_random_at(test_seed(), 5, 0, 0);
    for (int round = 0; round < 60; round++) {
        const int64_t m = 1 + (int64_t)mr_random_below(&random, 40), k = 1 + (int64_t)mr_random_below(&random, 300);
        const bool is_square = round % 3 == 0, product_first = mr_random_below(&random, 2);
        const int64_t n = is_square ? m : 1 + (int64_t)mr_random_below(&random, 40), inner = is_square ? m : k;
        mr_graph *g = mr_graph_new();
        mr_output a = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(inner, m));
        mr_output b = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(inner, n));
        mr_output other = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(m, n));
        /* Computed, so that its memory may be used again. */
        mr_output doubled = is_square ? mr_add_v2(g, a, a) : a, sum = mr_add_v2(g, other, other);
        mr_output product = mr_mat_mul(g, doubled, b, .transpose_a = true);
        if (is_square) sum = doubled;
        mr_output result = product_first ? mr_add_v2(g, product, sum) : mr_add_v2(g, sum, product);
        mr_session *session = open_session(g, false), *plain_session = open_session(g, true);
        mr_tensor values[3] = {0}, fused = {0}, plain = {0};
        const mr_shape shapes[] = {MR_SHAPE(inner, m), MR_SHAPE(inner, n), MR_SHAPE(m, n)};
        for (int i = 0; i < 3; i++) {
            CHECK_OK(mr_tensor_init(&values[i], MR_FLOAT, shapes[i], &error));
            for (int64_t j = 0; j < mr_tensor_count(&values[i]); j++)
                mr_tensor_floats(&values[i])[j] = (float)mr_random_below(&random, 2000) / 1000 - 1;
        }
        mr_feeds feeds = MR_FEEDS({a, values[0]}, {b, values[1]}, {other, values[2]});
        CHECK_OK(mr_session_run(session, feeds, MR_OUTPUTS(result), &fused, nullptr, 0, &error));
        CHECK_OK(mr_session_run(plain_session, feeds, MR_OUTPUTS(result), &plain, nullptr, 0, &error));
        CHECK_EQ(ran(session, "_AccumulateMatMul"), 1);
        CHECK_EQ(ran(session, "MatMul"), 0);
        for (int64_t j = 0; j < mr_tensor_count(&plain); j++)
            CHECK_NEAR(mr_tensor_floats(&fused)[j], mr_tensor_floats(&plain)[j], 1e-4);
        for (int i = 0; i < 3; i++) mr_tensor_deinit(&values[i]);
        mr_tensor_deinit(&fused);
        mr_tensor_deinit(&plain);
        mr_session_free(plain_session);
        mr_session_free(session);
        mr_graph_free(g);
    }
}

static void close_loop(mr_output merge, mr_output next)
{
    merge.node->inputs[1] = next;
    merge.node->graph->version++;
}

static mr_output enter(mr_graph *g, mr_output value, bool is_constant)
{
    return mr_enter(g, value, .frame_name = "loop", .is_constant = is_constant);
}

/* for (i = 0; i < limit; i++) { x = tanh(x · wᵀ); sum += xᵀ · x } */
static mr_output recurrence(mr_graph *g, mr_output x0, mr_output w, mr_output sum0, mr_output limit)
{
    mr_output start = enter(g, mr_constant_int32(g, 0), false), first = enter(g, x0, false),
              zero = enter(g, sum0, false);
    mr_output weights = enter(g, w, true), last = enter(g, limit, true), one = enter(g, mr_constant_int32(g, 1), true);
    mr_output i = mr_merge(g, MR_OUTPUTS(start, start)).output, x = mr_merge(g, MR_OUTPUTS(first, first)).output;
    mr_output sum = mr_merge(g, MR_OUTPUTS(zero, zero)).output;
    mr_output proceed = mr_loop_cond(g, mr_less(g, i, last));
    mr_switch_outputs i_ways = mr_switch(g, i, proceed), x_ways = mr_switch(g, x, proceed);
    mr_switch_outputs sum_ways = mr_switch(g, sum, proceed);
    mr_output next_x = mr_tanh(g, mr_mat_mul(g, x_ways.output_true, weights, .transpose_b = true));
    mr_output product = mr_mat_mul(g, next_x, next_x, .transpose_a = true);
    close_loop(i, mr_next_iteration(g, mr_add_v2(g, i_ways.output_true, one)));
    close_loop(x, mr_next_iteration(g, next_x));
    close_loop(sum, mr_next_iteration(g, mr_add_v2(g, sum_ways.output_true, product)));
    return mr_exit(g, sum_ways.output_false);
}

/* In a loop: w enters it transposed, and the sum is kept in one place; it may also be broadcast. */
TEST(plan_fuses_products_of_a_loop)
{
    mr_error error = {0};
    mr_random random = mr_random_at(test_seed(), 6, 0, 0);
    for (int round = 0; round < 24; round++) {
        const int64_t m = 1 + (int64_t)mr_random_below(&random, 30), n = 1 + (int64_t)mr_random_below(&random, 70);
        mr_graph *g = mr_graph_new();
        mr_output x = mr_placeholder(g, MR_FLOAT), w = mr_placeholder(g, MR_FLOAT), sum0 = mr_placeholder(g, MR_FLOAT);
        mr_output limit = mr_placeholder(g, MR_INT32);
        mr_output sum = recurrence(g, x, w, mr_add_v2(g, sum0, sum0), limit);
        mr_session *session = open_session(g, false), *plain_session = open_session(g, true);
        mr_tensor values[4] = {0}, fused = {0}, plain = {0};
        const mr_shape shapes[] = {MR_SHAPE(m, n), MR_SHAPE(n, n), round % 3 == 2 ? MR_SHAPE(1, n) : MR_SHAPE(n, n)};
        for (int i = 0; i < 3; i++) {
            CHECK_OK(mr_tensor_init(&values[i], MR_FLOAT, shapes[i], &error));
            for (int64_t j = 0; j < mr_tensor_count(&values[i]); j++)
                mr_tensor_floats(&values[i])[j] = (float)mr_random_below(&random, 2000) / 1000 - 1;
        }
        CHECK_OK(mr_tensor_init(&values[3], MR_INT32, MR_SCALAR, &error));
        const int times = round % 5;
        *(int32_t *)values[3].data = times;
        mr_feeds feeds = MR_FEEDS({x, values[0]}, {w, values[1]}, {sum0, values[2]}, {limit, values[3]});
        CHECK_OK(mr_session_run(session, feeds, MR_OUTPUTS(sum), &fused, nullptr, 0, &error));
        CHECK_OK(mr_session_run(plain_session, feeds, MR_OUTPUTS(sum), &plain, nullptr, 0, &error));
        CHECK_EQ(ran(session, "_TransposeMatrix"), 1);
        CHECK_EQ(ran(session, "_AccumulateMatMul"), times);
        CHECK_EQ(ran(plain_session, "_AccumulateMatMul") + ran(plain_session, "_TransposeMatrix"), 0);
        CHECK(mr_shape_equal(fused.shape, plain.shape));
        for (int64_t j = 0; j < mr_tensor_count(&plain); j++)
            CHECK_NEAR(mr_tensor_floats(&fused)[j], mr_tensor_floats(&plain)[j], 1e-3);
        for (int i = 0; i < 4; i++) mr_tensor_deinit(&values[i]);
        mr_tensor_deinit(&fused);
        mr_tensor_deinit(&plain);
        mr_session_free(plain_session);
        mr_session_free(session);
        mr_graph_free(g);
    }
}

/* Sums of two products of more steps than a product adds at a time: a part of the second must not be added to the
 * first before its other parts, which may cancel it. */
TEST(products_added_as_a_whole)
{
    constexpr int64_t STEP_COUNT = 600;
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output p = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(4, STEP_COUNT)),
              r = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(4, STEP_COUNT)),
              q = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(STEP_COUNT, 16));
    mr_output sums[2] = {mr_add_v2(g, mr_mat_mul(g, p, q), mr_mat_mul(g, r, q)),
                         mr_add_v2(g, mr_mat_mul(g, r, q), mr_mat_mul(g, p, q))};
    mr_tensor values[3] = {0}, results[2] = {0};
    for (int i = 0; i < 2; i++) CHECK_OK(mr_tensor_init(&values[i], MR_FLOAT, MR_SHAPE(4, STEP_COUNT), &error));
    CHECK_OK(mr_tensor_init(&values[2], MR_FLOAT, MR_SHAPE(STEP_COUNT, 16), &error));
    for (int64_t i = 0; i < 4 * STEP_COUNT; i++) {
        const int64_t step = i % STEP_COUNT;
        mr_tensor_floats(&values[0])[i] = step == 0 ? 3e38f : step == STEP_COUNT - 1 ? -3e38f : 0;
        mr_tensor_floats(&values[1])[i] = step == 0 ? 2e38f : 0;
    }
    for (int64_t i = 0; i < STEP_COUNT * 16; i++) mr_tensor_floats(&values[2])[i] = 1;
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1), &session, &error));
    CHECK_OK(mr_session_run(session, MR_FEEDS({p, values[0]}, {r, values[1]}, {q, values[2]}), (mr_outputs){sums, 2},
                            results, nullptr, 0, &error));
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 64; k++) CHECK(mr_tensor_floats(&results[i])[k] == 2e38f);
        mr_tensor_deinit(&results[i]);
    }
    for (int i = 0; i < 3; i++) mr_tensor_deinit(&values[i]);
    mr_session_free(session);
    mr_graph_free(g);
}

/* Begin, end, and stride of every dimension: any numbers, a dimension of its own for each slice, or masks. */
static mr_output random_slice(mr_graph *g, mr_output x, mr_shape shape, int64_t masks, mr_random *random)
{
    int64_t numbers[3][MR_RANK_MAX] = {0};
    for (int d = 0; d < shape.rank; d++) {
        const int64_t size = shape.dims[d], strides[] = {1, 1, 1, 2, -1, -3};
        numbers[0][d] = (int64_t)mr_random_below(random, (uint64_t)(2 * size + 1)) - size;
        numbers[1][d] = (int64_t)mr_random_below(random, (uint64_t)(2 * size + 3)) - size - 1;
        numbers[2][d] = strides[mr_random_below(random, 6)];
        if (masks >> d & 1) { /* shrunk */
            numbers[0][d] = (int64_t)mr_random_below(random, (uint64_t)size);
            numbers[2][d] = 1;
        }
    }
    mr_output inputs[3];
    for (int i = 0; i < 3; i++) inputs[i] = mr_constant_ints(g, (mr_ints){numbers[i], shape.rank});
    return mr_strided_slice(g, x, inputs[0], inputs[1], inputs[2], .shrink_axis_mask = masks,
                            .begin_mask = masks == 2 ? 1 : 0);
}

/* The gradients of slices of one tensor, which may overlap or be empty, are one sum, with the same bits. */
TEST(plan_fuses_gradients_of_slices)
{
    mr_error error = {0};
    mr_random random = mr_random_at(test_seed(), 8, 0, 0);
    int fused_sums = 0;
    for (int round = 0; round < 150; round++) {
        const int count = 2 + (int)mr_random_below(&random, 5);
        const bool is_mixed = round % 5 == 4;
        mr_shape shape = {.rank = 1 + (int)mr_random_below(&random, 3)};
        for (int d = 0; d < shape.rank; d++) shape.dims[d] = 1 + (int64_t)mr_random_below(&random, d == 2 ? 40 : 9);
        const int64_t masks = (int64_t)mr_random_below(&random, 1ull << shape.rank);
        mr_graph *g = mr_graph_new();
        const mr_shape given = round % 2 ? shape : MR_SHAPE_UNKNOWN;
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = given), y[8], gradient;
        for (int i = 0; i < count; i++) {
            const mr_output part = random_slice(g, x, shape, is_mixed && i == 0 ? 0 : masks, &random);
            y[i] = mr_mul(g, part, part);
        }
        mr_gradients(g, (mr_outputs){y, count}, MR_OUTPUTS(x), nullptr, &gradient);
        mr_session *session = open_session(g, false), *plain_session = open_session(g, true);
        mr_tensor value = {0}, fused = {0}, plain = {0};
        CHECK_OK(mr_tensor_init(&value, MR_FLOAT, shape, &error));
        for (int64_t j = 0; j < mr_tensor_count(&value); j++)
            mr_tensor_floats(&value)[j] = (float)mr_random_below(&random, 2000) / 1000 - 1;
        mr_feeds feeds = MR_FEEDS({x, value});
        CHECK_OK(mr_session_run(plain_session, feeds, MR_OUTPUTS(gradient), &plain, nullptr, 0, &error));
        CHECK_OK(mr_session_run(session, feeds, MR_OUTPUTS(gradient), &fused, nullptr, 0, &error));
        fused_sums += ran(session, "_SumOfStridedSliceGrads");
        if (is_mixed && masks != 0) CHECK_EQ(ran(session, "_SumOfStridedSliceGrads"), 0);
        CHECK(mr_shape_equal(fused.shape, shape));
        for (int64_t j = 0; j < mr_tensor_count(&plain); j++)
            CHECK(mr_tensor_floats(&fused)[j] == mr_tensor_floats(&plain)[j]);
        mr_tensor_deinit(&value);
        mr_tensor_deinit(&fused);
        mr_tensor_deinit(&plain);
        mr_session_free(plain_session);
        mr_session_free(session);
        mr_graph_free(g);
    }
    CHECK(fused_sums > 60);
}

/* The fused kernel refuses what the single ones and AddN refuse. */
TEST(plan_fused_gradients_of_slices_check_shapes)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output shapes[2], grads[2], dy[2];
    for (int i = 0; i < 2; i++) {
        shapes[i] = mr_placeholder(g, MR_INT32);
        dy[i] = mr_placeholder(g, MR_FLOAT);
        mr_output ends = mr_constant_ints(g, MR_INTS(i + 1)), one = mr_constant_ints(g, MR_INTS(1));
        grads[i] = mr_strided_slice_grad(g, shapes[i], mr_constant_ints(g, MR_INTS(i)), ends, one, dy[i]);
    }
    const mr_outputs both = {grads, 2};
    mr_output sum = mr_add_n(g, both);
    mr_session *session = open_session(g, false);
    static const char *const words[] = {nullptr, "same size and shape", "shape of dy was"};
    for (int i = 0; i < 3; i++) {
        mr_tensor result = {0}, size[2] = {0}, d[2] = {0};
        for (int k = 0; k < 2; k++) {
            CHECK_OK(mr_tensor_init(&size[k], MR_INT32, MR_SHAPE(1), &error));
            mr_tensor_int32s(&size[k])[0] = i == 1 && k == 1 ? 8 : 7;
            CHECK_OK(mr_tensor_init(&d[k], MR_FLOAT, MR_SHAPE(i == 2 && k == 0 ? 2 : 1), &error));
            mr_tensor_floats(&d[k])[0] = 3;
        }
        mr_feeds feeds = MR_FEEDS({shapes[0], size[0]}, {shapes[1], size[1]}, {dy[0], d[0]}, {dy[1], d[1]});
        mr_status status = mr_session_run(session, feeds, MR_OUTPUTS(sum), &result, nullptr, 0, &error);
        CHECK_EQ(status, words[i] ? MR_INVALID_ARGUMENT : MR_OK);
        if (words[i]) CHECK_CONTAINS(error.message, words[i]);
        CHECK_EQ(ran(session, "AddN"), 0);
        for (int64_t j = 0; !words[i] && j < 7; j++) CHECK(mr_tensor_floats(&result)[j] == (j < 2 ? 3.0f : 0.0f));
        mr_tensor_deinit(&result);
        for (int k = 0; k < 2; k++) {
            mr_tensor_deinit(&size[k]);
            mr_tensor_deinit(&d[k]);
        }
    }
    mr_session_free(session);
    mr_graph_free(g);
}
