/* Operators with thousands of inputs or outputs: correct for any number, in linear time. */
#include "tests/test.h"
#include <millrace/ops.h>
#include <millrace/session.h>
#include <millrace/train.h>
#include <time.h>

constexpr int32_t PIECES_MAX = 20000;

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static mr_tensor rising(int64_t count)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init(&tensor, MR_FLOAT, MR_SHAPE(count), &error));
    for (int64_t i = 0; i < count; i++) mr_tensor_floats(&tensor)[i] = (float)i;
    return tensor;
}

static mr_node *node_of(mr_graph *g, const char *op, mr_output *inputs, int32_t input_count, int32_t pieces)
{
    mr_node_builder b = mr_node_begin(g, op, nullptr);
    for (int32_t i = 0; i < input_count; i++) mr_node_add_input(&b, inputs[i]);
    if (strcmp(op, "Unpack") == 0) mr_node_set_int(&b, "num", pieces);
    if (strncmp(op, "Split", 5) == 0) mr_node_set_int(&b, "num_split", pieces);
    return mr_node_finish(&b).node;
}

/* Splits the vector x into pieces of one element. */
static mr_node *cut(mr_graph *g, const char *op, mr_output x, int32_t pieces)
{
    if (strcmp(op, "Unpack") == 0) return node_of(g, op, &x, 1, pieces);
    mr_output axis = mr_constant_int32(g, 0);
    if (strcmp(op, "Split") == 0) return node_of(g, op, (mr_output[]){axis, x}, 2, pieces);
    mr_error error = {0};
    mr_tensor ones = {0};
    CHECK_OK(mr_tensor_init(&ones, MR_INT64, MR_SHAPE(pieces), &error));
    for (int32_t i = 0; i < pieces; i++) mr_tensor_int64s(&ones)[i] = i == pieces / 2 ? -1 : 1;
    mr_output sizes = mr_constant(g, &ones, nullptr);
    mr_tensor_deinit(&ones);
    return node_of(g, op, (mr_output[]){x, sizes, axis}, 3, pieces);
}

static mr_output joined(mr_graph *g, const char *op, const mr_output *pieces, int32_t count)
{
    mr_outputs all = {pieces, count};
    if (strcmp(op, "AddN") == 0) return mr_add_n(g, all);
    if (strcmp(op, "Pack") == 0) return mr_pack(g, all);
    return mr_concat_v2(g, all, mr_constant_int32(g, 0));
}

/* Splits a fed vector, joins the pieces, and differentiates the sum of the squares of the result. All pieces are
 * fetched, too. Returns the time in seconds. */
static double run(const char *cutter, const char *joiner, int32_t count)
{
    static mr_output pieces[PIECES_MAX], fetches[PIECES_MAX + 2];
    static mr_tensor results[PIECES_MAX + 2];
    mr_error error = {0};
    double began = cpu_seconds();
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(count));
    mr_node *node = cut(g, cutter, x, count);
    for (int32_t i = 0; i < count; i++) fetches[i] = pieces[i] = (mr_output){node, i};
    fetches[count] = joined(g, joiner, pieces, count);
    bool is_vector = strcmp(joiner, "AddN") != 0;
    mr_output squares = mr_square(g, fetches[count]);
    mr_gradients(g, (mr_outputs){&squares, 1}, (mr_outputs){&x, 1}, nullptr, &fetches[count + 1]);
    mr_session *session = nullptr;
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1), &session, &error));
    mr_tensor value = rising(count);
    CHECK_OK(
        mr_session_run(session, MR_FEEDS({x, value}), (mr_outputs){fetches, count + 2}, results, nullptr, 0, &error));
    double sum = (double)count * (count - 1) / 2;
    for (int32_t i = 0; i < count; i++) CHECK_EQ((int32_t)mr_tensor_floats(&results[i])[0], i);
    for (int32_t i = 0; i < count; i++) {
        double expected = 2 * (is_vector ? i : sum);
        CHECK_NEAR(mr_tensor_floats(&results[count + 1])[i], expected, 1e-3 * expected);
        if (is_vector) CHECK_NEAR(mr_tensor_floats(&results[count])[i], i, 0);
    }
    if (!is_vector) CHECK_NEAR(mr_tensor_floats(&results[count])[0], sum, 1e-3 * sum);
    for (int32_t i = 0; i < count + 2; i++) mr_tensor_deinit(&results[i]);
    mr_tensor_deinit(&value);
    mr_session_free(session);
    mr_graph_free(g);
    return cpu_seconds() - began;
}

/* Ten times as many pieces take about ten times as long, not a hundred times. */
TEST(many_pieces_are_right_and_take_linear_time)
{
    static const char *const cutters[] = {"Unpack", "Split", "SplitV"}, *const joiners[] = {"Pack", "ConcatV2", "AddN"};
    int32_t most = test_is_sanitized() ? 5000 : PIECES_MAX;
    for (int c = 0; c < 3; c++)
        for (int j = 0; j < 3; j++) {
            if (c == 0 && j == 1) continue; /* ConcatV2 does not accept the scalars of Unpack */
            double few = run(cutters[c], joiners[j], most / 10), many = run(cutters[c], joiners[j], most);
            if (getenv("MILLRACE_VERBOSE")) fprintf(stderr, "%s %s: %g s, %g s\n", cutters[c], joiners[j], few, many);
            if (many > 40 * few + 0.1)
                test_fail(__FILE__, __LINE__, "%s and %s: %g s for %d pieces, %g s for %d", cutters[c], joiners[j], few,
                          most / 10, many, most);
        }
}
