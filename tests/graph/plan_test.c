/* Plans: values that are computed once or not at all, and repeated steps without allocations. */
#include "base/random.h"
#include "tests/graph/ran.h"
#include <millrace/ops.h>
#include <millrace/session.h>

static mr_session *open_session(mr_graph *g)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_session_options options = {.size = sizeof options, .threads = 2};
    CHECK_OK(mr_session_new(g, &options, &session, &error));
    mr_session_trace(session, true);
    return session;
}

/* The position of a node in the last run; -1 if it did not run. */
static int place(const mr_session *session, const char *node)
{
    mr_node_time times[64];
    int count = mr_session_trace_times(session, times, 64);
    for (int i = 0; i < count; i++)
        if (strcmp(times[i].node, node) == 0) return i;
    return -1;
}

TEST(plan_folds_what_depends_on_constants_alone)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output two = mr_constant_float(g, 2.0f);
    mr_output five = mr_add(g, mr_square(g, two), mr_constant_float(g, 1.0f));
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR);
    mr_output y = mr_mul(g, x, five);
    mr_session *session = open_session(g);
    mr_tensor three = {0}, seven = {0}, result = {0};
    CHECK_OK(mr_tensor_init_float(&three, 3, &error));
    CHECK_OK(mr_tensor_init_float(&seven, 7, &error));
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, three}), MR_OUTPUTS(y), &result, nullptr, 0, &error));
    CHECK_NEAR(mr_tensor_floats(&result)[0], 15, 0);
    CHECK_EQ(ran(session, nullptr), 1);
    mr_tensor_deinit(&result);
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, three}, {two, seven}), MR_OUTPUTS(y), &result, nullptr, 0, &error));
    CHECK_NEAR(mr_tensor_floats(&result)[0], 150, 0);
    CHECK_EQ(ran(session, nullptr), 3);
    mr_tensor_deinit(&result);
    mr_tensor_deinit(&three);
    mr_tensor_deinit(&seven);
    mr_session_free(session);
    mr_graph_free(g);
}

/* Without optimizations each node runs, with the same result. */
TEST(plan_without_optimizations)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output two = mr_constant_float(g, 2.0f), x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2));
    mr_output five = mr_add(g, mr_square(g, two), mr_constant_float(g, 1.0f));
    mr_output y = mr_add(g, mr_neg(g, mr_mul(g, x, five)), mr_neg(g, mr_mul(g, x, five)));
    mr_tensor fed = {0};
    CHECK_OK(mr_tensor_init_copy(&fed, MR_FLOAT, MR_SHAPE(2), (float[]){1, -3}, &error));
    for (int plain = 0; plain < 2; plain++) {
        mr_session *session = nullptr;
        mr_tensor result = {0};
        CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1, .no_optimization = plain == 1),
                                &session, &error));
        mr_session_trace(session, true);
        CHECK_OK(mr_session_run(session, MR_FEEDS({x, fed}), MR_OUTPUTS(y), &result, nullptr, 0, &error));
        CHECK_EQ(ran(session, nullptr), plain ? 7 : 1);
        CHECK_NEAR(mr_tensor_floats(&result)[0], -10, 0);
        CHECK_NEAR(mr_tensor_floats(&result)[1], 30, 0);
        mr_tensor_deinit(&result);
        mr_session_free(session);
    }
    mr_tensor_deinit(&fed);
    mr_graph_free(g);
}

/* A constant that was fetched, or that is a variable's initial value, is never overwritten. */
TEST(plan_constants_stay)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output c = mr_constant_floats(g, MR_SHAPE(2), (float[]){1, 2}, nullptr);
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2));
    mr_output y = mr_add(g, mr_neg(g, mr_identity(g, c)), x);
    mr_session *session = open_session(g);
    mr_tensor fed = {0}, result = {0};
    CHECK_OK(mr_tensor_init_copy(&fed, MR_FLOAT, MR_SHAPE(2), (float[]){10, 10}, &error));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(mr_session_run(session, MR_FEEDS({x, fed}), MR_OUTPUTS(y), &result, nullptr, 0, &error));
        CHECK_NEAR(mr_tensor_floats(&result)[0], 9, 0);
        CHECK_NEAR(mr_tensor_floats(&result)[1], 8, 0);
        mr_tensor_deinit(&result);
    }
    mr_tensor_deinit(&fed);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(plan_shares_equal_nodes)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT); /* without a shape each node has a call */
    mr_output one = mr_mul(g, mr_square(g, x), mr_constant_float(g, 3.0f));
    mr_output same = mr_mul(g, mr_square(g, x), mr_constant_float(g, 3.0f));
    mr_output other = mr_mul(g, mr_square(g, x), mr_constant_float(g, 4.0f));
    mr_session *session = open_session(g);
    mr_tensor fed = {0}, results[3] = {0};
    CHECK_OK(mr_tensor_init_copy(&fed, MR_FLOAT, MR_SHAPE(1, 2), (float[]){1, 2}, &error));
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, fed}), MR_OUTPUTS(one, same, other), results, nullptr, 0, &error));
    CHECK_EQ(ran(session, "Square"), 1);
    CHECK_EQ(ran(session, "Mul"), 2);
    CHECK_NEAR(mr_tensor_floats(&results[0])[1], 12, 0);
    CHECK_NEAR(mr_tensor_floats(&results[1])[1], 12, 0);
    CHECK_NEAR(mr_tensor_floats(&results[2])[1], 16, 0);
    for (int i = 0; i < 3; i++) mr_tensor_deinit(&results[i]);
    mr_tensor_deinit(&fed);
    mr_session_free(session);
    mr_graph_free(g);
}

/* Nodes with different attrs are not equal. */
TEST(plan_does_not_share_what_differs_in_an_attr)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1));
    mr_output whole = mr_cast(g, x, MR_INT32), wide = mr_cast(g, x, MR_INT64), again = mr_cast(g, x, MR_INT32);
    mr_session *session = open_session(g);
    mr_tensor fed = {0}, results[3] = {0};
    CHECK_OK(mr_tensor_init_copy(&fed, MR_FLOAT, MR_SHAPE(1), (float[]){5}, &error));
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, fed}), MR_OUTPUTS(whole, wide, again), results, nullptr, 0, &error));
    CHECK_EQ(ran(session, "Cast"), 2);
    CHECK_EQ(mr_tensor_int32s(&results[0])[0], 5);
    CHECK_EQ(mr_tensor_int64s(&results[1])[0], 5);
    CHECK_EQ(mr_tensor_int32s(&results[2])[0], 5);
    for (int i = 0; i < 3; i++) mr_tensor_deinit(&results[i]);
    mr_tensor_deinit(&fed);
    mr_session_free(session);
    mr_graph_free(g);
}

/* A variable read before and after its update is read twice. */
TEST(plan_does_not_share_reads_of_a_variable)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_variable_new(g, "w", mr_constant_float(g, 1.0f));
    mr_output before = mr_identity(g, w.ref, .name = "before");
    mr_graph_push_control_dependencies(g, &before.node, 1);
    mr_output step = mr_assign_add(g, w.ref, mr_constant_float(g, 1.0f));
    mr_graph_pop_control_dependencies(g);
    mr_graph_push_control_dependencies(g, &step.node, 1);
    mr_output after = mr_identity(g, w.ref, .name = "after");
    mr_graph_pop_control_dependencies(g);
    mr_session *session = open_session(g);
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &w.initializer, 1, &error));
    mr_tensor results[2] = {0};
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(before, after), results, nullptr, 0, &error));
    CHECK_NEAR(mr_tensor_floats(&results[0])[0], 1, 0);
    CHECK_NEAR(mr_tensor_floats(&results[1])[0], 2, 0);
    mr_tensor_deinit(&results[0]);
    mr_tensor_deinit(&results[1]);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(plan_respects_control_edges)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR);
    mr_output early = mr_check_numerics(g, x, .message = "x", .name = "early"),
              late = mr_check_numerics(g, x, .message = "x", .name = "late");
    mr_node_add_control(early.node, late.node);
    mr_node *both = mr_group(g, (mr_node *[]){early.node, late.node}, 2, "both");
    mr_session *session = open_session(g);
    mr_tensor fed = {0};
    CHECK_OK(mr_tensor_init_float(&fed, 3, &error));
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, fed}), (mr_outputs){0}, nullptr, &both, 1, &error));
    CHECK_EQ(place(session, "late"), 0);
    CHECK_EQ(place(session, "early"), 1);
    CHECK_EQ(ran(session, nullptr), 2); /* the group itself runs no kernel */
    mr_tensor_deinit(&fed);
    mr_session_free(session);
    mr_graph_free(g);
}

/* A value that is known, but follows from a constant with a control input, waits for what the constant waits for. */
TEST(plan_respects_control_edges_of_constants)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR);
    mr_output early = mr_check_numerics(g, x, .message = "x", .name = "early");
    mr_output limit = mr_constant_int32(g, 3);
    mr_node_add_control(limit.node, early.node);
    mr_output range = mr_range(g, mr_constant_int32(g, 0), limit, mr_constant_int32(g, 1), .name = "range");
    mr_output y = mr_add(g, range, mr_constant_int32(g, 5), .name = "y");
    mr_session *session = open_session(g);
    mr_tensor fed = {0}, result = {0};
    CHECK_OK(mr_tensor_init_float(&fed, 3, &error));
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, fed}), MR_OUTPUTS(y), &result, nullptr, 0, &error));
    CHECK_EQ(place(session, "early"), 0);
    CHECK_EQ(place(session, "range"), 1);
    CHECK_EQ(mr_tensor_int32s(&result)[2], 7);
    mr_tensor_deinit(&result);
    mr_tensor_deinit(&fed);
    mr_session_free(session);
    mr_graph_free(g);
}

/* A plan does not hold large tensors whose numbers only repeat those of a small one. */
TEST(plan_repeats_numbers_in_each_run)
{
    static const int64_t sizes[] = {32768, 32769};
    mr_error error = {0};
    for (int i = 0; i < 2; i++) {
        mr_graph *g = mr_graph_new();
        mr_output filled = mr_fill(g, mr_constant_ints(g, MR_INTS(sizes[i])), mr_constant_float(g, 3));
        mr_output tiled = mr_tile(g, mr_constant_floats(g, MR_SHAPE(1), (float[]){2}, nullptr),
                                  mr_constant_ints(g, MR_INTS(sizes[i])));
        mr_session *session = open_session(g);
        mr_tensor results[2] = {0};
        for (int run = 0; run < 2; run++) {
            CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(filled, tiled), results, nullptr, 0, &error));
            CHECK_EQ(ran(session, "Fill"), i);
            CHECK_EQ(ran(session, "Tile"), i);
            CHECK(mr_tensor_floats(&results[0])[sizes[i] - 1] == 3 && mr_tensor_floats(&results[1])[0] == 2);
            for (int j = 0; j < 2; j++) mr_tensor_deinit(&results[j]);
        }
        mr_session_free(session);
        mr_graph_free(g);
    }
}

/* A number that is made from the start on does not wait for nodes created before it: what needs it would. */
TEST(plan_makes_few_numbers_early)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(20, 20)), y = mr_mat_mul(g, x, x, .name = "product");
    mr_output rate = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR), some = mr_placeholder(g, MR_FLOAT);
    mr_output half = mr_mul(g, rate, mr_constant_float(g, 0.5f), .name = "half");
    mr_output all = mr_exp(g, mr_exp(g, some), .name = "unknown");
    mr_session *session = open_session(g);
    mr_tensor fed[3] = {0}, results[3] = {0};
    CHECK_OK(mr_tensor_init(&fed[0], MR_FLOAT, MR_SHAPE(20, 20), &error));
    CHECK_OK(mr_tensor_init_float(&fed[1], 4, &error));
    CHECK_OK(mr_tensor_init(&fed[2], MR_FLOAT, MR_SHAPE(3), &error));
    memset(fed[0].data, 0, mr_tensor_size_bytes(&fed[0]));
    memset(fed[2].data, 0, mr_tensor_size_bytes(&fed[2]));
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, fed[0]}, {rate, fed[1]}, {some, fed[2]}), MR_OUTPUTS(y, half, all),
                            results, nullptr, 0, &error));
    CHECK_EQ(place(session, "half"), 0);
    CHECK_EQ(place(session, "product"), 1); /* the number of elements that "unknown" makes is not known */
    CHECK(mr_tensor_floats(&results[1])[0] == 2);
    for (int i = 0; i < 3; i++) {
        mr_tensor_deinit(&fed[i]);
        mr_tensor_deinit(&results[i]);
    }
    mr_session_free(session);
    mr_graph_free(g);
}

/* A node that frees more memory than it allocates does not wait for nodes created before it. */
TEST(plan_runs_early_what_frees_memory)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(1000));
    mr_output zero = mr_constant_int32(g, 0);
    mr_output large[3], small[3];
    const char *names[] = {"sum0", "sum1", "sum2"};
    for (int i = 0; i < 3; i++) large[i] = mr_mul(g, x, mr_constant_float(g, (float)i + 2));
    for (int i = 0; i < 3; i++) small[i] = mr_sum(g, large[i], zero, .name = names[i]);
    mr_session *session = open_session(g);
    mr_tensor fed = {0}, results[3] = {0};
    CHECK_OK(mr_tensor_init(&fed, MR_FLOAT, MR_SHAPE(1000), &error));
    for (int i = 0; i < 1000; i++) mr_tensor_floats(&fed)[i] = 1;
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, fed}), (mr_outputs){small, 3}, results, nullptr, 0, &error));
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(place(session, names[i]), 2 * i + 1);
        CHECK_NEAR(mr_tensor_floats(&results[i])[0], 1000 * (i + 2), 0.5);
        mr_tensor_deinit(&results[i]);
    }
    mr_tensor_deinit(&fed);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(plan_allocates_nothing_in_the_steady_state)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 64));
    mr_variable w = mr_variable_new(g, "w", mr_constant_float(g, 2.0f));
    mr_output h = mr_square(g, mr_neg(g, mr_mul(g, x, w.value)));
    mr_output y = mr_add(g, h, mr_identity(g, h));
    mr_output update = mr_assign_add(g, w.ref, mr_constant_float(g, 1.0f));
    mr_session *session = open_session(g);
    mr_session_trace(session, false);
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &w.initializer, 1, &error));
    mr_tensor fed = {0}, result = {0};
    CHECK_OK(mr_tensor_init(&fed, MR_FLOAT, MR_SHAPE(32, 64), &error));
    for (int i = 0; i < 32 * 64; i++) mr_tensor_floats(&fed)[i] = 1;
    mr_step *step = nullptr;
    CHECK_OK(mr_session_prepare(session, &x, 1, MR_OUTPUTS(y), &update.node, 1, &step, &error));
    long long before = 0;
    for (int i = 0; i < 20; i++) {
        if (i == 2) before = test_allocations();
        CHECK_OK(mr_step_run(step, &fed, &result, &error));
        CHECK_NEAR(mr_tensor_floats(&result)[0], 2.0 * (i + 2) * (i + 2), 0);
        mr_tensor_deinit(&result);
    }
    CHECK_EQ(test_allocations(), before);
    for (int i = 0; i < 20; i++) {
        CHECK_OK(mr_session_run(session, MR_FEEDS({x, fed}), MR_OUTPUTS(y), &result, &update.node, 1, &error));
        mr_tensor_deinit(&result);
    }
    CHECK_EQ(test_allocations(), before); /* including the lookup of the plan */
    mr_tensor_deinit(&fed);
    mr_session_free(session);
    mr_graph_free(g);
}

/* Relu is fused into the preceding batch normalization, and ReluGrad into its gradient, if the values between have no
 * other use. */
TEST(plan_fuses_relu_into_batch_normalization)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, 3, 3, 2));
    mr_output scale = mr_constant_floats(g, MR_SHAPE(2), (float[]){1.5f, -0.5f}, nullptr);
    mr_output offset = mr_constant_floats(g, MR_SHAPE(2), (float[]){0.25f, 0.1f}, nullptr);
    mr_output none = mr_constant_floats(g, MR_SHAPE(0), nullptr, nullptr);
    mr_output y = mr_fused_batch_norm_v3(g, x, scale, offset, none, none, .is_training = true).y;
    mr_output h = mr_relu(g, y, .name = "h");
    mr_output cost = mr_sum(g, mr_square(g, h), mr_constant_ints(g, MR_INTS(0, 1, 2, 3)));
    mr_output gradients[3];
    mr_gradients(g, MR_OUTPUTS(cost), MR_OUTPUTS(x, scale, offset), nullptr, gradients);
    mr_session *session = open_session(g);
    mr_tensor fed = {0}, fused[4] = {0}, plain[5] = {0};
    CHECK_OK(mr_tensor_init(&fed, MR_FLOAT, MR_SHAPE(2, 3, 3, 2), &error));
    for (int i = 0; i < 36; i++) mr_tensor_floats(&fed)[i] = (float)(i * 7 % 11) - 5;
    mr_outputs fetches = MR_OUTPUTS(h, gradients[0], gradients[1], gradients[2], y);
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, fed}), (mr_outputs){fetches.items, 4}, fused, nullptr, 0, &error));
    CHECK_EQ(ran(session, "_FusedBatchNormEx"), 1);
    CHECK_EQ(ran(session, "_FusedBatchNormGradEx"), 1);
    CHECK_EQ(ran(session, "Relu") + ran(session, "ReluGrad"), 0);
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, fed}), fetches, plain, nullptr, 0, &error)); /* y is used */
    CHECK_EQ(ran(session, "_FusedBatchNormEx"), 0);
    CHECK_EQ(ran(session, "_Elementwise"), 2);
    for (int i = 0; i < 4; i++) {
        for (int64_t j = 0; j < mr_tensor_count(&plain[i]); j++)
            CHECK_NEAR(mr_tensor_floats(&fused[i])[j], mr_tensor_floats(&plain[i])[j], 1e-5);
        mr_tensor_deinit(&fused[i]);
        mr_tensor_deinit(&plain[i]);
    }
    mr_tensor_deinit(&plain[4]);
    mr_tensor_deinit(&fed);
    mr_session_free(session);
    mr_graph_free(g);
}

/* If any allocation fails, the call reports it and releases everything. */
TEST(plan_any_allocation_may_fail)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 8));
    mr_variable w = mr_variable_new(g, "w", mr_constant_float(g, 2.0f));
    mr_output y = mr_sum(g, mr_square(g, mr_mul(g, x, w.value)), mr_constant_ints(g, MR_INTS(1)));
    mr_output noise = mr_random_uniform(g, mr_constant_ints(g, MR_INTS(3)), MR_FLOAT, .seed = 1);
    mr_tensor fed = {0};
    CHECK_OK(mr_tensor_init(&fed, MR_FLOAT, MR_SHAPE(2, 8), &error));
    memset(fed.data, 0, mr_tensor_size_bytes(&fed));
    int failures = 0;
    for (long long number = 1;; number++) {
        CHECK(number < 5000);
        mr_session *session = nullptr;
        mr_tensor results[2] = {0};
        mr_session_options options = {.size = sizeof options, .threads = 1};
        test_fail_allocation(test_allocations() + number);
        mr_status status = mr_session_new(g, &options, &session, &error);
        if (status == MR_OK)
            status = mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &w.initializer, 1, &error);
        if (status == MR_OK)
            status = mr_session_run(session, MR_FEEDS({x, fed}), MR_OUTPUTS(y, noise), results, nullptr, 0, &error);
        test_fail_allocation(0);
        if (status != MR_OK) {
            failures++;
            CHECK_EQ(status, MR_RESOURCE_EXHAUSTED);
            CHECK(results[0].buffer == nullptr && results[1].buffer == nullptr);
            if (session) /* the session remains usable */
                CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &w.initializer, 1, &error));
        }
        mr_tensor_deinit(&results[0]);
        mr_tensor_deinit(&results[1]);
        mr_session_free(session);
        if (status == MR_OK && failures > 20) break;
    }
    mr_tensor_deinit(&fed);
    mr_graph_free(g);
}

/* What nodes only wait for does not run, unless it is fetched, is a target or is there for its errors. */
TEST(plan_drops_what_nobody_uses)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1)), size = mr_placeholder(g, MR_INT32);
    mr_output checked = mr_check_numerics(g, x, .message = "x", .name = "checked");
    mr_output shaped = mr_reshape(g, checked, size, .name = "shaped");
    mr_output unused = mr_exp(g, shaped, .name = "unused");
    mr_node *group = mr_group(g, (mr_node *[]){unused.node}, 1, "group");
    mr_output y = mr_neg(g, x, .name = "y");
    mr_node_add_control(y.node, group);
    CHECK_OK(mr_graph_status(g, &error));
    mr_session *session = open_session(g);
    mr_tensor values[2] = {0}, result = {0};
    CHECK_OK(mr_tensor_init_copy(&values[0], MR_FLOAT, MR_SHAPE(2), (float[]){1, 2}, &error));
    CHECK_OK(mr_tensor_init_copy(&values[1], MR_INT32, MR_SHAPE(1), (int32_t[]){2}, &error));
    mr_feeds feeds = MR_FEEDS({x, values[0]}, {size, values[1]});
    CHECK_OK(mr_session_run(session, feeds, MR_OUTPUTS(y), &result, nullptr, 0, &error));
    CHECK_NEAR(mr_tensor_floats(&result)[1], -2, 0);
    mr_tensor_deinit(&result);
    CHECK_EQ(place(session, "checked"), 0);
    CHECK_EQ(place(session, "y"), 1);
    CHECK_EQ(ran(session, nullptr), 2);
    CHECK_OK(mr_session_run(session, feeds, MR_OUTPUTS(y), &result, &unused.node, 1, &error));
    mr_tensor_deinit(&result);
    CHECK_EQ(ran(session, nullptr), 4);
    CHECK_OK(mr_session_run(session, feeds, MR_OUTPUTS(unused), &result, &y.node, 1, &error));
    mr_tensor_deinit(&result);
    CHECK_EQ(ran(session, nullptr), 4);

    mr_tensor_int32s(&values[1])[0] = 3;
    CHECK_EQ(mr_session_run(session, feeds, MR_OUTPUTS(unused), &result, nullptr, 0, &error), MR_INVALID_ARGUMENT);
    CHECK_OK(mr_session_run(session, feeds, MR_OUTPUTS(y), &result, nullptr, 0, &error));
    mr_tensor_deinit(&result);
    mr_tensor_floats(&values[0])[0] = NAN;
    CHECK_EQ(mr_session_run(session, feeds, MR_OUTPUTS(y), &result, nullptr, 0, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "checked");
    for (int i = 0; i < 2; i++) mr_tensor_deinit(&values[i]);
    mr_session_free(session);
    mr_graph_free(g);
}

typedef struct random_graph {
    mr_graph *g;
    mr_output x, handle, values[40];
    mr_node *nodes[40], *initializer;
    int value_count, node_count;
} random_graph;

/* Sums and products of earlier values, updates of a variable, reads of it, and control edges to earlier nodes. Updates
 * add, and each read waits for all updates so far and each update for all reads, so that the results are determined. */
static random_graph make_random_graph(mr_random *random)
{
    random_graph r = {.g = mr_graph_new()};
    mr_graph *g = r.g;
    r.x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(3));
    r.values[r.value_count++] = r.x;
    r.handle = mr_var_handle_op(g, MR_FLOAT, .shape = MR_SHAPE(3));
    r.initializer = mr_assign_variable_op(g, r.handle, mr_constant_floats(g, MR_SHAPE(3), (float[]){1, 2, 3}, nullptr));
    mr_node *effects[40];
    int effect_count = 0;
    while (r.node_count < 40) {
        mr_output a = r.values[mr_random_below(random, (uint64_t)r.value_count)];
        mr_output b = r.values[mr_random_below(random, (uint64_t)r.value_count)];
        const uint64_t kind = mr_random_below(random, 8);
        mr_node *made;
        if (kind < 2) {
            made = kind == 0 ? mr_assign_add_variable_op(g, r.handle, mr_tanh(g, a))
                             : mr_read_variable_op(g, r.handle, MR_FLOAT).node;
            for (int i = 0; i < effect_count; i++) mr_node_add_control(made, effects[i]);
            effects[effect_count++] = made;
        } else {
            made = (kind < 5 ? mr_add_v2(g, a, b) : kind < 7 ? mr_tanh(g, a) : mr_identity(g, a)).node;
        }
        while (r.node_count > 0 && mr_random_below(random, 3) == 0)
            mr_node_add_control(made, r.nodes[mr_random_below(random, (uint64_t)r.node_count)]);
        r.nodes[r.node_count++] = made;
        if (kind != 0) r.values[r.value_count++] = (mr_output){made, 0};
    }
    return r;
}

/* Runs one step, then reads the variable. */
static void run_random_graph(const random_graph *r, bool is_plain, mr_outputs fetches, mr_node **target,
                             mr_tensor *results)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_session_options options = {.size = sizeof options, .threads = 2, .no_optimization = is_plain};
    CHECK_OK(mr_session_new(r->g, &options, &session, &error));
    mr_tensor x = {0};
    CHECK_OK(mr_tensor_init_copy(&x, MR_FLOAT, MR_SHAPE(3), (float[]){0.5f, -1, 2}, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &r->initializer, 1, &error));
    CHECK_OK(mr_session_run(session, MR_FEEDS({r->x, x}), fetches, results, target, 1, &error));
    mr_output last = mr_read_variable_op(r->g, r->handle, MR_FLOAT);
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(last), &results[fetches.count], nullptr, 0, &error));
    mr_tensor_deinit(&x);
    mr_session_free(session);
}

TEST(plan_model_random_graphs)
{
    mr_random random = mr_random_at(test_seed(), 9, 0, 0);
    for (int round = 0; round < 200; round++) {
        random_graph r = make_random_graph(&random);
        mr_output fetched[2] = {r.values[mr_random_below(&random, (uint64_t)r.value_count)],
                                r.values[mr_random_below(&random, (uint64_t)r.value_count)]};
        mr_node *target = r.nodes[mr_random_below(&random, (uint64_t)r.node_count)];
        mr_tensor results[2][3] = {0};
        for (int plain = 0; plain < 2; plain++)
            run_random_graph(&r, plain == 1, (mr_outputs){fetched, 2}, &target, results[plain]);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(memcmp(results[0][i].data, results[1][i].data, 3 * sizeof(float)), 0);
            mr_tensor_deinit(&results[0][i]);
            mr_tensor_deinit(&results[1][i]);
        }
        mr_graph_free(r.g);
    }
}

/* Constants that take long to compute are left to the run, whose time is limited. */
TEST(plan_folds_for_a_limited_time)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output matrix = mr_fill(g, mr_constant_ints(g, MR_INTS(1200)), mr_constant_float(g, 0.0283f));
    matrix = mr_mat_mul(g, mr_expand_dims(g, matrix, mr_constant_int32(g, 1)),
                        mr_expand_dims(g, matrix, mr_constant_int32(g, 0)));
    mr_output product = matrix;
    for (int i = 0; i < 3000; i++) product = mr_mat_mul(g, product, matrix);
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    mr_tensor result = {0};
    CHECK_STATUS(mr_session_run_with(session, MR_OPTIONS(mr_run_options, .timeout_ms = 20), MR_NO_FEEDS,
                                     MR_OUTPUTS(product), &result, nullptr, 0, &error),
                 MR_DEADLINE_EXCEEDED);
    mr_tensor_deinit(&result);
    mr_session_free(session);
    mr_graph_free(g);
}
