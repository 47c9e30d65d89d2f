/* Elementwise operators that one call computes: in loops, beside nodes that wait, and what is reported of them. */
#include "base/random.h"
#include "tests/test.h"

#include <millrace/control_flow.h>
#include <millrace/ops.h>
#include <millrace/session.h>
#include <millrace/train.h>

static mr_session *session_of(mr_graph *graph, bool is_plain)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    CHECK_OK(mr_graph_status(graph, &error));
    CHECK_OK(mr_session_new(graph, MR_OPTIONS(mr_session_options, .threads = 2, .no_optimization = is_plain), &session,
                            &error));
    return session;
}

static mr_tensor ramp(mr_shape shape)
{
    mr_error error = {0};
    mr_tensor made = {0};
    CHECK_OK(mr_tensor_init(&made, MR_FLOAT, shape, &error));
    const int64_t count = mr_tensor_count(&made);
    for (int64_t i = 0; i < count; i++) mr_tensor_floats(&made)[i] = (float)(i % 17) / 8 - 1;
    return made;
}

/* Runs with and without optimizations, checks that the bits are the same, and returns the number of calls of the last
 * optimized run that computed several nodes. */
static int check_same(mr_graph *graph, mr_output x, mr_outputs items, mr_node *target)
{
    mr_error error = {0};
    int fused = 0;
    mr_tensor results[2][4] = {0}, value = ramp(MR_SHAPE(20, 30));
    CHECK(items.count <= 4);
    for (int plain = 0; plain < 2; plain++) {
        mr_session *session = session_of(graph, plain == 1);
        mr_session_trace(session, true);
        mr_feeds feeds = MR_FEEDS({x, value});
        CHECK_OK(mr_session_run(session, feeds, items, results[plain], &target, target ? 1 : 0, &error));
        static mr_node_time times[1000];
        const int ran = mr_session_trace_times(session, times, 1000);
        for (int i = 0; i < ran && !plain; i++) fused += strcmp(times[i].op, "_Elementwise") == 0;
        mr_session_free(session);
    }
    for (int i = 0; i < items.count; i++) {
        CHECK(mr_shape_equal(results[0][i].shape, results[1][i].shape));
        CHECK(memcmp(results[0][i].data, results[1][i].data, mr_tensor_size_bytes(&results[0][i])) == 0);
        for (int plain = 0; plain < 2; plain++) mr_tensor_deinit(&results[plain][i]);
    }
    mr_tensor_deinit(&value);
    return fused;
}

/* The step of Adam for gathered rows, with variables by reference: what follows the updates of the moments is one call,
 * and what reads a variable before its update is not delayed until then. */
TEST(elementwise_after_updates)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(20, 30));
    mr_output rows = mr_constant_int32s(g, MR_SHAPE(2), (int32_t[]){3, 7}, nullptr), moments[2];
    mr_output zeros = mr_constant_floats(g, MR_SHAPE(20, 30), (float[600]){0}, nullptr);
    mr_output some = mr_gather(g, x, rows);
    mr_variable v = mr_variable_new(g, "v", zeros), other = mr_variable_new(g, "other", zeros);
    mr_node *initializers[4] = {v.initializer, other.initializer};
    for (int i = 0; i < 2; i++) {
        mr_variable moment = mr_variable_new(g, i == 0 ? "m" : "s", zeros);
        initializers[2 + i] = moment.initializer;
        mr_output less = mr_assign(g, moment.ref, mr_mul(g, moment.value, mr_constant_float(g, 0.9f)));
        moments[i] = mr_scatter_add(g, moment.ref, rows, mr_mul(g, some, some));
        mr_node_add_control(moments[i].node, less.node);
    }
    mr_output ratio = mr_div(g, mr_mul(g, moments[0], mr_constant_float(g, 0.01f)),
                             mr_add(g, mr_sqrt(g, moments[1]), mr_constant_float(g, 1e-3f)));
    mr_output update = mr_assign_sub(g, v.ref, ratio);
    /* The first factor reads a variable before its update, and the product comes after it. */
    mr_output before = mr_mul(g, other.value, moments[0]), changed = mr_assign_add(g, other.ref, x);
    mr_output product = mr_mul(g, before, mr_add(g, changed, x));
    mr_node *initializer = mr_group(g, initializers, 4, "initializer");
    mr_error error = {0};
    mr_tensor results[2][2] = {0}, value = ramp(MR_SHAPE(20, 30));
    int fused = 0;
    for (int plain = 0; plain < 2; plain++) {
        static mr_node_time times[1000];
        mr_session *session = session_of(g, plain == 1);
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &initializer, 1, &error));
        mr_session_trace(session, true);
        for (int step = 0; step < 3; step++) {
            for (int i = 0; i < 2; i++) mr_tensor_deinit(&results[plain][i]);
            CHECK_OK(mr_session_run(session, MR_FEEDS({x, value}), MR_OUTPUTS(update, product), results[plain], nullptr,
                                    0, &error));
        }
        const int ran = mr_session_trace_times(session, times, 1000);
        for (int i = 0; i < ran && !plain; i++)
            fused += strcmp(times[i].op, "_Elementwise") == 0 && strcmp(times[i].node, mr_node_name(ratio.node)) == 0;
        mr_session_free(session);
    }
    CHECK_EQ(fused, 1);
    for (int i = 0; i < 2; i++) {
        CHECK(memcmp(results[0][i].data, results[1][i].data, mr_tensor_size_bytes(&results[0][i])) == 0);
        for (int plain = 0; plain < 2; plain++) mr_tensor_deinit(&results[plain][i]);
    }
    mr_tensor_deinit(&value);
    mr_graph_free(g);
}

/* A cell like that of an LSTM, in a loop, and the gradient through all iterations. */
TEST(elementwise_in_a_loop)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(20, 30)), v[2], after[2], gradient;
    mr_while_loop *loop = mr_while_loop_begin(g, MR_OUTPUTS(mr_constant_int32(g, 0), x), v);
    mr_while_loop_body(loop, mr_less(g, v[0], mr_constant_int32(g, 5)), v);
    mr_output gate = mr_sigmoid(g, mr_add(g, v[1], mr_constant_float(g, 1))), in = mr_tanh(g, mr_mul(g, v[1], x));
    mr_output next = mr_add(g, mr_mul(g, v[1], gate), mr_mul(g, in, mr_sigmoid(g, in)));
    mr_while_loop_end(loop, MR_OUTPUTS(mr_add(g, v[0], mr_constant_int32(g, 1)), mr_tanh(g, next)), after);
    mr_gradients(g, MR_OUTPUTS(after[1]), MR_OUTPUTS(x), nullptr, &gradient);
    CHECK(check_same(g, x, MR_OUTPUTS(after[1], gradient), nullptr) >= 10); /* in both loops, five times */
    mr_graph_free(g);
}

/* What enters a loop and what its end is added to are not computed together. */
TEST(elementwise_around_a_loop)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(20, 30)), v[2], after[2];
    mr_output before = mr_mul(g, x, x),
              count = mr_placeholder_with_default(g, mr_constant_int32(g, 0), .shape = MR_SCALAR);
    mr_while_loop *loop = mr_while_loop_begin(g, MR_OUTPUTS(count, x), v);
    mr_while_loop_body(loop, mr_less(g, v[0], mr_constant_int32(g, 3)), v);
    mr_output next = mr_sub(g, v[1], mr_mul(g, v[1], before));
    mr_while_loop_end(loop, MR_OUTPUTS(mr_add(g, v[0], mr_constant_int32(g, 1)), next), after);
    mr_output sum = mr_add(g, mr_neg(g, before), after[1]);
    CHECK(check_same(g, x, MR_OUTPUTS(sum, mr_exp(g, sum)), nullptr) >= 3);
    mr_graph_free(g);
}

/* The dequeue waits for the enqueue, which reads an operand of what comes after the dequeue. */
TEST(elementwise_beside_a_queue)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(20, 30));
    mr_output queue =
        mr_fifo_queue_v2(g, .component_types = MR_DTYPES(MR_FLOAT), .shapes = MR_SHAPES(MR_SHAPE(20, 30)));
    mr_output put = mr_square(g, mr_neg(g, x));
    mr_node *enqueue = mr_queue_enqueue_v2(g, queue, MR_OUTPUTS(put));
    mr_output taken = mr_output_at(mr_queue_dequeue_v2(g, queue, .component_types = MR_DTYPES(MR_FLOAT)), 0);
    taken = mr_reshape(g, taken, mr_constant_int32s(g, MR_SHAPE(2), (int32_t[]){20, 30}, nullptr));
    mr_output sum = mr_mul(g, mr_add(g, put, taken), taken);
    CHECK_EQ(check_same(g, x, MR_OUTPUTS(sum), enqueue), 2); /* before the queue, and after it */
    mr_graph_free(g);
}

/* An error names the node whose operands do not fit. */
TEST(elementwise_errors)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1)),
              y = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1));
    mr_output sum = mr_add_v2(g, mr_tanh(g, x), y, .name = "cell/sum"), item = mr_sigmoid(g, mr_mul(g, sum, sum));
    mr_session *session = session_of(g, false);
    mr_tensor a = ramp(MR_SHAPE(3)), b = ramp(MR_SHAPE(4)), result = {0};
    CHECK_EQ(mr_session_run(session, MR_FEEDS({x, a}, {y, b}), MR_OUTPUTS(item), &result, nullptr, 0, &error),
             MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "cell/sum (AddV2): Incompatible shapes: [3] vs. [4]");
    /* Where shapes turn out to be different, the nodes are computed one after the other. */
    mr_tensor one = ramp(MR_SHAPE(1));
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, one}, {y, b}), MR_OUTPUTS(item), &result, nullptr, 0, &error));
    CHECK_EQ(result.shape.dims[0], 4);
    mr_tensor_deinit(&result);
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, a}, {y, one}), MR_OUTPUTS(item), &result, nullptr, 0, &error));
    CHECK_EQ(result.shape.dims[0], 3);
    mr_tensor_deinit(&result);
    mr_tensor_deinit(&a);
    mr_tensor_deinit(&b);
    mr_tensor_deinit(&one);
    mr_session_free(session);
    mr_graph_free(g);
}

/* A sum of several names the input as the node numbers it. */
TEST(elementwise_sum_errors)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1)),
              y = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1));
    mr_output sum = mr_add_n(g, MR_OUTPUTS(x, x, x, y), .name = "sum"), item = mr_tanh(g, sum);
    mr_tensor a = ramp(MR_SHAPE(3)), b = ramp(MR_SHAPE(4)), result = {0};
    for (int plain = 0; plain < 2; plain++) {
        mr_session *session = session_of(g, plain);
        CHECK_EQ(mr_session_run(session, MR_FEEDS({x, a}, {y, b}), MR_OUTPUTS(item), &result, nullptr, 0, &error),
                 MR_INVALID_ARGUMENT);
        CHECK_STR(error.message, "sum (AddN): Inputs to operation sum of type AddN must have the same size and shape.  "
                                 "Input 0: [3] != input 3: [4]");
        mr_session_free(session);
    }
    mr_tensor_deinit(&a);
    mr_tensor_deinit(&b);
    mr_graph_free(g);
}

/* The lower of two subnormal numbers does not depend on the loop that finds it. */
TEST(elementwise_subnormals)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 2)),
              y = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 1));
    mr_output low = mr_minimum(g, mr_add(g, x, x), y), high = mr_maximum(g, y, mr_minimum(g, y, x));
    mr_tensor a = ramp(MR_SHAPE(1003, 2)), b = ramp(MR_SHAPE(1003, 1)), results[2][2] = {0};
    for (int i = 0; i < 2006; i++) ((float *)a.data)[i] = 1e-40F * (float)(i % 3);
    for (int i = 0; i < 1003; i++) ((float *)b.data)[i] = 1e-40F * (float)(i % 2);
    for (int plain = 0; plain < 2; plain++) {
        mr_session *session = session_of(g, plain);
        CHECK_OK(mr_session_run(session, MR_FEEDS({x, a}, {y, b}), MR_OUTPUTS(low, high), results[plain], nullptr, 0,
                                &error));
        mr_session_free(session);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(memcmp(results[0][i].data, results[1][i].data, mr_tensor_size_bytes(&results[0][i])) == 0);
        mr_tensor_deinit(&results[0][i]);
        mr_tensor_deinit(&results[1][i]);
    }
    mr_tensor_deinit(&a);
    mr_tensor_deinit(&b);
    mr_graph_free(g);
}

typedef struct seen {
    char text[512];
} seen;

static mr_status see(void *context, const mr_watched *watched, mr_error *error)
{
    seen *s = context;
    size_t used = strlen(s->text);
    snprintf(s->text + used, sizeof s->text - used, "%s:%d ", watched->node, (int)watched->output);
    return MR_OK;
}

/* A watch sees the outputs of a call for several nodes as those of the nodes. */
TEST(elementwise_watched)
{
    mr_error error = {0};
    seen s = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, 3));
    mr_output first = mr_tanh(g, x, .name = "first"), inner = mr_neg(g, first, .name = "inner"),
              last = mr_mul(g, inner, first, .name = "last");
    mr_session *session = session_of(g, false);
    mr_tensor value = ramp(MR_SHAPE(2, 3)), results[2] = {0};
    const mr_watch watch = {.see = see, .context = &s};
    CHECK_OK(mr_session_run_with(session, MR_OPTIONS(mr_run_options, .watch = &watch), MR_FEEDS({x, value}),
                                 MR_OUTPUTS(last, first), results, nullptr, 0, &error));
    CHECK_CONTAINS(s.text, "first:0 ");
    CHECK_CONTAINS(s.text, "last:0 ");
    CHECK(!strstr(s.text, ":1") && !strstr(s.text, "inner"));
    for (int i = 0; i < 2; i++) mr_tensor_deinit(&results[i]);
    mr_tensor_deinit(&value);
    mr_session_free(session);
    mr_graph_free(g);
}

/* Of small numbers these functions are the numbers themselves, with the sign of zero. */
TEST(elementwise_of_small_numbers)
{
    static const float small[] = {-0.0f, 0.0f, 1e-30f, -1e-30f, 4e-8f, -4e-8f};
    constexpr int COUNT = sizeof small / sizeof small[0];
    mr_graph *g = mr_graph_new();
    mr_output x = mr_constant_floats(g, MR_SHAPE(COUNT), small, nullptr);
    mr_error error = {0};
    mr_tensor results[2] = {0};
    mr_session *session = session_of(g, false);
    CHECK_OK(
        mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(mr_tanh(g, x), mr_expm1(g, x)), results, nullptr, 0, &error));
    for (int i = 0; i < 2; i++) {
        CHECK(memcmp(results[i].data, small, sizeof small) == 0);
        mr_tensor_deinit(&results[i]);
    }
    mr_session_free(session);
    mr_graph_free(g);
}

/* Labels of 0 do not hide what is not a number: TensorFlow multiplies. */
TEST(cross_entropy_of_nan)
{
    mr_graph *g = mr_graph_new();
    mr_output logits = mr_constant_floats(g, MR_SHAPE(2, 2), (float[]){NAN, 1, 1, -INFINITY}, nullptr),
              labels = mr_constant_floats(g, MR_SHAPE(2, 2), (float[]){0, 0, 1, 0}, nullptr);
    mr_error error = {0};
    mr_tensor loss = {0};
    mr_session *session = session_of(g, false);
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS,
                            MR_OUTPUTS(mr_softmax_cross_entropy_with_logits(g, logits, labels).loss), &loss, nullptr, 0,
                            &error));
    CHECK(isnan(mr_tensor_floats(&loss)[0]) && isnan(mr_tensor_floats(&loss)[1]));
    mr_tensor_deinit(&loss);
    mr_session_free(session);
    mr_graph_free(g);
}

/* Where the number of rows is not known, what is computed from one batch is not taken for a part of another. */
TEST(elementwise_rows_of_two_batches)
{
    enum { TILED, ONE_ROW, MANY_ROWS, WAYS };
    for (int way = 0; way < WAYS; way++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 64));
        mr_output y = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 64));
        mr_output last = mr_constant_int32s(g, MR_SHAPE(1), (int32_t[]){1}, nullptr);
        mr_output mean = mr_expand_dims(g, mr_neg(g, mr_mean(g, mr_square(g, x), last)), mr_constant_int32(g, 1));
        if (way == TILED) mean = mr_tile(g, mean, mr_constant_int32s(g, MR_SHAPE(2), (int32_t[]){2, 64}, nullptr));
        mr_output z = mr_add(g, mr_mul(g, mean, y), mr_sum(g, y, last, .keep_dims = true));
        mr_tensor values[2] = {ramp(MR_SHAPE(way == ONE_ROW ? 1 : 3, 64)), ramp(MR_SHAPE(way == TILED     ? 6
                                                                                         : way == ONE_ROW ? 5
                                                                                                          : 3,
                                                                                         64))};
        mr_tensor results[2] = {0};
        for (int plain = 0; plain < 2; plain++) {
            mr_session *session = session_of(g, plain == 1);
            CHECK_OK(mr_session_run(session, MR_FEEDS({x, values[0]}, {y, values[1]}), MR_OUTPUTS(z), &results[plain],
                                    nullptr, 0, &error));
            mr_session_free(session);
        }
        CHECK(mr_shape_equal(results[0].shape, values[1].shape) && mr_shape_equal(results[1].shape, values[1].shape));
        CHECK(memcmp(results[0].data, results[1].data, mr_tensor_size_bytes(&results[0])) == 0);
        for (int i = 0; i < 2; i++) {
            mr_tensor_deinit(&results[i]);
            mr_tensor_deinit(&values[i]);
        }
        mr_graph_free(g);
    }
}

/* What an axis or a shape waits for is not lost with it. */
TEST(elementwise_rows_wait_for_their_axes)
{
    for (int way = 0; way < 4; way++) { /* from the third on beside a condition */
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(20, 64));
        mr_output chosen = mr_placeholder(g, MR_BOOL, .shape = MR_SCALAR);
        mr_switch_outputs ways = mr_switch(g, x, chosen);
        mr_output either = mr_merge(g, MR_OUTPUTS(mr_exp(g, ways.output_false), ways.output_true)).output;
        mr_variable v = mr_variable_new(g, "v", mr_constant_float(g, 1));
        mr_output update = mr_assign_add(g, v.ref, mr_constant_float(g, 1));
        mr_output axis = mr_constant_int32s(g, MR_SHAPE(1), (int32_t[]){1}, nullptr);
        mr_output shape = mr_constant_int32s(g, MR_SHAPE(2), (int32_t[]){20, 1}, nullptr);
        mr_node_add_control(way % 2 == 0 ? axis.node : shape.node, update.node);
        mr_output y = mr_mul(g, x, mr_reshape(g, mr_mean(g, mr_neg(g, x), axis), shape));
        mr_tensor value = ramp(MR_SHAPE(20, 64)), result = {0}, choice = {0};
        CHECK_OK(mr_tensor_init(&choice, MR_BOOL, MR_SCALAR, &error));
        *(bool *)choice.data = true;
        if (way >= 2) y = mr_add(g, y, either);
        mr_session *session = session_of(g, false);
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &v.initializer, 1, &error));
        CHECK_OK(mr_session_run(session, MR_FEEDS({x, value}, {chosen, choice}), MR_OUTPUTS(y), &result, nullptr, 0,
                                &error));
        mr_tensor_deinit(&result);
        mr_tensor_deinit(&choice);
        CHECK_OK(mr_session_read_variable(session, v.ref, &result, &error));
        CHECK_NEAR(mr_tensor_floats(&result)[0], 2, 0);
        mr_tensor_deinit(&result);
        mr_tensor_deinit(&value);
        mr_session_free(session);
        mr_graph_free(g);
    }
}

/* As many rows as columns: what a call makes for each row has the shape of a row that it reads. */
TEST(elementwise_rows_of_a_square)
{
    static const int64_t sizes[] = {32, 33, 40, 64, 100, 128, 256};
    for (int i = 0; i < 7; i++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(i % 2 ? -1 : sizes[i], sizes[i]));
        mr_output first = mr_constant_int32(g, 0), last = mr_constant_int32(g, 1);
        mr_output centered = mr_sub(g, x, mr_mean(g, x, first));
        mr_output items[] = {mr_sum(g, centered, last), mr_max(g, mr_square(g, centered), last)};
        mr_tensor value = ramp(MR_SHAPE(sizes[i], sizes[i])), results[2][2] = {0};
        for (int plain = 0; plain < 2; plain++) {
            mr_session *session = session_of(g, plain == 1);
            CHECK_OK(mr_session_run(session, MR_FEEDS({x, value}), (mr_outputs){items, 2}, results[plain], nullptr, 0,
                                    &error));
            mr_session_free(session);
        }
        for (int k = 0; k < 2; k++) {
            CHECK(memcmp(results[0][k].data, results[1][k].data, mr_tensor_size_bytes(&results[0][k])) == 0);
            for (int plain = 0; plain < 2; plain++) mr_tensor_deinit(&results[plain][k]);
        }
        mr_tensor_deinit(&value);
        mr_graph_free(g);
    }
}

/* The result of an element does not depend on its place in a row, nor on how many there are. */
TEST(elementwise_elements_alone)
{
    constexpr int COUNT = 4099;
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1));
    mr_output items[] = {
        mr_elu(g, x),      mr_selu(g, x), mr_expm1(g, x),   mr_tanh(g, x), mr_exp(g, x),
        mr_softplus(g, x), mr_erf(g, x),  mr_sigmoid(g, x), mr_sin(g, x),  mr_log1p(g, mr_square(g, x))};
    constexpr int ITEMS = sizeof items / sizeof items[0];
    mr_random random = mr_random_at(test_seed(), 9, 0, 0);
    mr_session *session = session_of(g, false);
    mr_tensor all = {0}, results[ITEMS] = {0};
    CHECK_OK(mr_tensor_init(&all, MR_FLOAT, MR_SHAPE(COUNT), &error));
    for (int i = 0; i < COUNT; i++) mr_tensor_floats(&all)[i] = (float)mr_random_below(&random, 40'000) / 10'000 - 3;
    CHECK_OK(mr_session_run(session, MR_FEEDS({x, all}), (mr_outputs){items, ITEMS}, results, nullptr, 0, &error));
    for (int at = 0; at < COUNT;) {
        const int count = 1 + (int)mr_random_below(&random, 40) * (at > COUNT / 2);
        mr_tensor some = {0}, part[ITEMS] = {0};
        CHECK_OK(mr_tensor_init(&some, MR_FLOAT, MR_SHAPE(at + count > COUNT ? COUNT - at : count), &error));
        const size_t size_bytes = mr_tensor_size_bytes(&some);
        memcpy(some.data, mr_tensor_floats(&all) + at, size_bytes);
        CHECK_OK(mr_session_run(session, MR_FEEDS({x, some}), (mr_outputs){items, ITEMS}, part, nullptr, 0, &error));
        for (int i = 0; i < ITEMS; i++) {
            CHECK(memcmp(part[i].data, mr_tensor_floats(&results[i]) + at, size_bytes) == 0);
            mr_tensor_deinit(&part[i]);
        }
        mr_tensor_deinit(&some);
        at += count;
    }
    for (int i = 0; i < ITEMS; i++) mr_tensor_deinit(&results[i]);
    mr_tensor_deinit(&all);
    mr_session_free(session);
    mr_graph_free(g);
}
