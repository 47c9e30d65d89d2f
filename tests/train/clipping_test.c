/* Clipping: along dimensions, by a norm that is known, and mistakes. optimizers_oracle.py compares the values. */
#include "tests/test.h"

#include <millrace/millrace.h>
#include <millrace/ops.h>

static mr_output matrix(mr_graph *g)
{
    return mr_constant_floats(g, MR_SHAPE(2, 2), (float[]){3, 0, 4, 1}, nullptr);
}

static void check_values(mr_graph *g, mr_output output, const float *expected)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_tensor result = {0};
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(output), &result, nullptr, 0, &error));
    for (int i = 0; i < 4; i++) CHECK_NEAR(mr_tensor_floats(&result)[i], (double)expected[i], 1e-6);
    mr_tensor_deinit(&result);
    mr_session_free(session);
}

TEST(clip_by_norm_along_dimensions)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output m = matrix(g);
    check_values(g, mr_clip_by_norm(g, m, 2, .axes = MR_INTS(0)), (float[]){1.2f, 0, 1.6f, 1});
    check_values(g, mr_clip_by_norm(g, m, 2, .axes = MR_INTS(-2)), (float[]){1.2f, 0, 1.6f, 1});
    check_values(g, mr_clip_by_norm(g, m, 2, .axes = MR_INTS(1)), (float[]){2, 0, 1.9402850f, 0.4850713f});
    check_values(g, mr_clip_by_norm(g, m, 100, .axes = MR_INTS(0, 1)), (float[]){3, 0, 4, 1});
    mr_output named = mr_clip_by_norm(g, m, 1, .name = "own");
    CHECK(strncmp(mr_node_name(named.node), "own/", 4) == 0);
    CHECK_OK(mr_graph_status(g, &error));
    mr_graph_free(g);
}

TEST(clip_by_a_norm_that_is_known)
{
    mr_graph *g = mr_graph_new();
    mr_gradient_and_variable item = {.gradient = matrix(g)};
    mr_output norm = mr_constant_float(g, 4);
    mr_output returned =
        mr_clip_by_global_norm(g, ((mr_gradients_and_variables){&item, 1}), 2, .use_norm = norm, .name = "own");
    CHECK(returned.node == norm.node);
    CHECK(mr_graph_find(g, "global_norm") == nullptr); /* it is not computed */
    check_values(g, item.gradient, (float[]){1.5f, 0, 2, 0.5f});
    mr_graph_free(g);
}

#define CHECK_REFUSED(call, part)                                                                                      \
    do {                                                                                                               \
        mr_error error = {0};                                                                                          \
        mr_graph *g = mr_graph_new();                                                                                  \
        mr_gradient_and_variable item = {.gradient = matrix(g)};                                                       \
        mr_gradients_and_variables list = {&item, 1};                                                                  \
        (void)list;                                                                                                    \
        (void)(call);                                                                                                  \
        CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);                                                 \
        CHECK_CONTAINS(error.message, part);                                                                           \
        mr_graph_free(g);                                                                                              \
    } while (0)

TEST(clipping_mistakes_are_refused)
{
    CHECK_REFUSED(mr_clip_by_norm(g, matrix(g), 1, .axes = MR_INTS(2)), "axes has 2, which is not a dimension");
    CHECK_REFUSED(mr_clip_by_norm(g, matrix(g), 1, .axes = MR_INTS(0, -3)), "axes has -3");
    CHECK_REFUSED(mr_clip_by_norm(g, matrix(g), 1, .axes = MR_INTS(1, -1)), "axes has -1 twice");
    CHECK_REFUSED(mr_clip_by_norm(g, matrix(g), 1, .axes = MR_INTS(0, 0)), "axes has 0 twice");
    CHECK_REFUSED(mr_clip_by_norm(g, matrix(g), 1, .axes = {nullptr, 3}), "axes is not a list");
    CHECK_REFUSED(mr_clip_by_norm(g, matrix(g), -1), "norm");
    CHECK_REFUSED(mr_clip_by_norm(g, matrix(g), 1, .use_norm = matrix(g)), "use_norm has no effect");
    CHECK_REFUSED(mr_clip_by_global_norm(g, list, 1, .axes = MR_INTS(0)), "axes have no effect");
    CHECK_REFUSED(mr_clip_by_norm_(g, matrix(g), 1, MR_OPTIONS(mr_clip_options, .axes = {nullptr, -1})),
                  "axes is not a list");
}
