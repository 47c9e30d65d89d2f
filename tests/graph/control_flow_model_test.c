/* Random programs of nested conditionals and loops: their values and gradients are those of the interpreter. */
#include "tests/graph/control_flow_model.h"
#include "tests/test.h"

#include <millrace/session.h>

static void check_program(uint64_t seed, bool has_shape)
{
    uint64_t state = seed;
    block *program = make_block(&state, 1, 0, 1);
    float at = (float)(below(&state, 300) - 150) / 100;
    dual expected = {0};
    bool is_close = false;
    interpret(program, &(dual){(double)at, 1}, 1, &expected, 1, &is_close);

    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = has_shape ? mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR) : mr_placeholder(g, MR_FLOAT);
    mr_output y = {0}, gradient = {0};
    build(g, program, &x, 1, &y, 1);
    mr_gradients(g, MR_OUTPUTS(y), MR_OUTPUTS(x), nullptr, &gradient);
    CHECK_OK(mr_graph_status(g, &error));
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1 + (int)(seed % 3)), &session, &error));
    mr_tensor fed = {0}, results[2] = {0};
    CHECK_OK(mr_tensor_init_float(&fed, at, &error));
    mr_output fetches[2] = {y, gradient};
    mr_outputs list = {fetches, gradient.node != nullptr ? 2 : 1};
    mr_status status = mr_session_run(session, MR_FEEDS({x, fed}), list, results, nullptr, 0, &error);
    if (status != MR_OK) test_fail(__FILE__, __LINE__, "program %llu: %s", (unsigned long long)seed, error.message);
    double slope = gradient.node != nullptr ? (double)mr_tensor_floats(&results[1])[0] : 0;
    double value = (double)mr_tensor_floats(&results[0])[0], bound = 1e-3 * (1 + fabs(expected.slope));
    if (!is_close && (!(fabs(value - expected.value) < 1e-3) || !(fabs(slope - expected.slope) < bound)))
        test_fail(__FILE__, __LINE__, "program %llu%s at %g: %g, slope %g instead of %g, slope %g",
                  (unsigned long long)seed, has_shape ? "" : " of unknown shape", (double)at, value, slope,
                  expected.value, expected.slope);
    for (int i = 0; i < 2; i++) mr_tensor_deinit(&results[i]);
    mr_tensor_deinit(&fed);
    mr_session_free(session);
    mr_graph_free(g);
    free_block(program);
}

TEST(random_control_flow_and_its_gradients)
{
    uint64_t first = test_seed() * 1000;
    for (uint64_t i = 0; i < 300; i++) check_program(first + i, i % 2 == 0);
}
