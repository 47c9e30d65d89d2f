/* Checks values against their inferred shapes, which are also used for constant folding of Shape and Size. */
#include "tests/test.h"
#include <millrace/ops.h>
#include <millrace/session.h>

static mr_session *open_session(mr_graph *g)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1), &session, &error));
    return session;
}

static mr_tensor zeros(mr_shape shape)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init(&tensor, MR_FLOAT, shape, &error));
    memset(tensor.data, 0, mr_tensor_size_bytes(&tensor));
    return tensor;
}

/* Checks the value of a placeholder with a default: the default itself, or a fed value. */
static void check_placeholder(mr_shape declared, mr_shape given, bool is_fed, const char *failure)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE_UNKNOWN, .name = "x");
    mr_output y = mr_placeholder_with_default(g, x, .shape = declared, .name = "y");
    mr_output z = mr_identity(g, y, .name = "z");
    mr_session *session = open_session(g);
    mr_tensor value = zeros(given), result = {0};
    mr_status status =
        mr_session_run(session, MR_FEEDS({is_fed ? y : x, value}), MR_OUTPUTS(z), &result, nullptr, 0, &error);
    if (failure == nullptr) {
        CHECK_OK(status);
        CHECK(mr_shape_equal(result.shape, given));
    } else {
        CHECK_EQ(status, MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "y");
        CHECK_CONTAINS(error.message, failure);
    }
    mr_tensor_deinit(&result);
    mr_tensor_deinit(&value);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(static_shape_of_a_placeholder_with_default)
{
    check_placeholder(MR_SHAPE(2, 3), MR_SHAPE(2, 3), false, nullptr);
    check_placeholder(MR_SHAPE(2, 3), MR_SHAPE(2, 3), true, nullptr);
    check_placeholder(MR_SHAPE(-1, 3), MR_SHAPE(0, 3), false, nullptr);
    check_placeholder(MR_SHAPE_UNKNOWN, MR_SHAPE(5), false, nullptr);
    check_placeholder(MR_SHAPE(2, 3), MR_SHAPE(5), false,
                      "the default value has shape [5], but the placeholder has shape [2,3]");
    check_placeholder(MR_SHAPE(-1, 3), MR_SHAPE(2, 4), false,
                      "the default value has shape [2,4], but the placeholder has shape [?,3]");
    check_placeholder(MR_SCALAR, MR_SHAPE(1), false,
                      "the default value has shape [1], but the placeholder has shape []");
    check_placeholder(MR_SHAPE(2, 3), MR_SHAPE(5), true, "Cannot feed value of shape [5]");
}

static void check_equal(mr_shape x, mr_shape y, mr_shape expected)
{
    mr_graph *g = mr_graph_new();
    mr_output a = mr_placeholder(g, MR_FLOAT, .shape = x), b = mr_placeholder(g, MR_FLOAT, .shape = y);
    mr_output equal = mr_equal(g, a, b, .incompatible_shape_error = false);
    mr_output not_equal = mr_not_equal(g, b, a, .incompatible_shape_error = false);
    CHECK(mr_shape_equal(mr_output_shape(equal), expected));
    CHECK(mr_shape_equal(mr_output_shape(not_equal), expected));
    CHECK_EQ(mr_graph_status(g, nullptr), MR_OK);
    mr_graph_free(g);
}

/* If the shapes may or may not broadcast, the result may be a scalar. */
TEST(static_shape_of_equality_without_shape_errors)
{
    check_equal(MR_SHAPE(2, 3), MR_SHAPE(3), MR_SHAPE(2, 3));
    check_equal(MR_SHAPE(2), MR_SHAPE(3), MR_SCALAR);
    check_equal(MR_SHAPE(-1), MR_SHAPE(3), MR_SHAPE_UNKNOWN);
    check_equal(MR_SHAPE(-1), MR_SHAPE(0), MR_SHAPE_UNKNOWN);
    check_equal(MR_SHAPE(-1), MR_SHAPE(-1), MR_SHAPE_UNKNOWN);
    check_equal(MR_SHAPE(-1, 2), MR_SHAPE(5, 3), MR_SCALAR);
    check_equal(MR_SHAPE(-1), MR_SHAPE(1), MR_SHAPE(-1));
    check_equal(MR_SHAPE(-1, 3), MR_SHAPE(3), MR_SHAPE(-1, 3));
    check_equal(MR_SHAPE_UNKNOWN, MR_SHAPE(3), MR_SHAPE_UNKNOWN);
}

/* Two handles of one variable: the value read through one has the shape that the other declares. */
TEST(static_shape_of_a_shared_variable)
{
    static const struct {
        mr_shape first, second;
        bool is_refused;
    } cases[] = {
        {{1, {2}}, {1, {2}}, false}, {{1, {2}}, {1, {-1}}, false}, {{1, {2}}, {1, {3}}, true}, {{1, {2}}, {0}, true}};
    for (int i = 0; i < 4; i++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_output handles[2], reads[2], pair[2] = {0};
        for (int h = 0; h < 2; h++) {
            handles[h] =
                mr_var_handle_op(g, MR_FLOAT, .shape = h == 0 ? cases[i].first : cases[i].second, .shared_name = "v");
            reads[h] = mr_read_variable_op(g, handles[h], MR_FLOAT);
        }
        mr_session *session = open_session(g);
        mr_tensor value = zeros(MR_SHAPE(2)), results[2] = {0};
        CHECK_OK(mr_session_write_variable(session, handles[0], &value, &error));
        memcpy(pair, reads, sizeof pair);
        mr_status status = mr_session_run(session, MR_NO_FEEDS, (mr_outputs){pair, 2}, results, nullptr, 0, &error);
        CHECK_EQ(status, cases[i].is_refused ? MR_INVALID_ARGUMENT : MR_OK);
        if (cases[i].is_refused) CHECK_CONTAINS(error.message, "the variable v already exists with shape [2], not [");
        for (int h = 0; h < 2; h++) mr_tensor_deinit(&results[h]);
        mr_tensor_deinit(&value);
        mr_session_free(session);
        mr_graph_free(g);
    }
}

/* The first BatchMatMul does not broadcast: its inferred batch dimensions are those of the value. */
TEST(static_shape_of_the_first_batch_mat_mul)
{
    static const mr_shape wrong[][2] = {{{3, {3, 1, 4}}, {3, {1, 4, 1}}}, {{3, {1, 1, 4}}, {2, {4, 1}}}};
    for (int i = 0; i < 3; i++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE_UNKNOWN);
        mr_output y = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE_UNKNOWN);
        mr_output product = mr_batch_mat_mul(g, x, y);
        mr_session *session = open_session(g);
        mr_tensor a = zeros(i < 2 ? wrong[i][0] : MR_SHAPE(3, 1, 4)),
                  b = zeros(i < 2 ? wrong[i][1] : MR_SHAPE(3, 4, 1)), result = {0};
        mr_status status =
            mr_session_run(session, MR_FEEDS({x, a}, {y, b}), MR_OUTPUTS(product), &result, nullptr, 0, &error);
        CHECK_EQ(status, i < 2 ? MR_INVALID_ARGUMENT : MR_OK);
        mr_tensor_deinit(&a);
        mr_tensor_deinit(&b);
        mr_tensor_deinit(&result);
        mr_session_free(session);
        mr_graph_free(g);
    }
}
