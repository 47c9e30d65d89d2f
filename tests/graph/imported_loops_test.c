/* Gradients of imported loops: random programs are exported as MetaGraphDefs, imported and differentiated there. */
#include "tests/graph/control_flow_model.h"
#include "tests/test.h"

#include <millrace/session.h>
#include <string.h>

/* y of a random program, without its gradient; null: the program has no loop. */
static mr_graph *build_program(uint64_t seed, float *at, dual *expected, bool *is_close)
{
    uint64_t state = seed;
    block *program = make_block(&state, 1, 0, 1);
    *at = (float)(below(&state, 300) - 150) / 100;
    interpret(program, &(dual){(double)*at, 1}, 1, expected, 1, is_close);
    mr_graph *g = mr_graph_new();
    mr_output x = seed % 2 == 0 ? mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "x")
                                : mr_placeholder(g, MR_FLOAT, .name = "x");
    mr_output y = {0};
    build(g, program, &x, 1, &y, 1);
    (void)mr_identity(g, y, .name = "the_result");
    free_block(program);
    return g;
}

static mr_tensor export_meta(const mr_graph *g)
{
    mr_error error = {0};
    mr_tensor meta = {0};
    CHECK_OK(mr_graph_export_meta(g, &meta, &error));
    return meta;
}

static mr_graph *import_meta(const mr_tensor *meta)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    const mr_string bytes = mr_tensor_strings(meta)[0];
    CHECK_OK(mr_graph_import_meta(g, bytes.data, bytes.size_bytes, &error));
    return g;
}

static mr_output gradient_of(mr_graph *g)
{
    mr_output gradient = {0};
    mr_gradients(g, MR_OUTPUTS(mr_graph_find_output(g, "the_result")), MR_OUTPUTS(mr_graph_find_output(g, "x")),
                 nullptr, &gradient);
    return gradient;
}

static void check_values(mr_graph *g, mr_output gradient, float at, dual expected, uint64_t seed)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_tensor fed = {0}, results[2] = {0};
    const mr_output fetches[2] = {mr_graph_find_output(g, "the_result"), gradient};
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_tensor_init_float(&fed, at, &error));
    CHECK_OK(mr_session_run(session, MR_FEEDS({mr_graph_find_output(g, "x"), fed}),
                            (mr_outputs){fetches, gradient.node != nullptr ? 2 : 1}, results, nullptr, 0, &error));
    const double slope = gradient.node != nullptr ? (double)mr_tensor_floats(&results[1])[0] : 0;
    if (!(fabs(slope - expected.slope) < 1e-3 * (1 + fabs(expected.slope))))
        test_fail(__FILE__, __LINE__, "program %llu at %g: slope %g instead of %g", (unsigned long long)seed,
                  (double)at, slope, expected.slope);
    for (int i = 0; i < 2; i++) mr_tensor_deinit(&results[i]);
    mr_tensor_deinit(&fed);
    mr_session_free(session);
}

static bool has_loops(const mr_graph *g)
{
    for (int32_t i = 0; i < mr_graph_node_count(g); i++)
        if (strcmp(mr_node_op(mr_graph_node(g, i)), "Enter") == 0) return true;
    return false;
}

TEST(loops_of_an_imported_meta_graph_have_gradients)
{
    const uint64_t first = test_seed() * 1000;
    int loops = 0;
    const uint64_t end = first + (test_is_sanitized() ? 50 : 200);
    for (uint64_t seed = first; seed < end; seed++) {
        float at = 0;
        dual expected = {0};
        bool is_close = false;
        mr_graph *g = build_program(seed, &at, &expected, &is_close);
        loops += has_loops(g);
        mr_tensor meta = export_meta(g);
        mr_graph *copy = import_meta(&meta);
        mr_tensor again = export_meta(copy); /* the contexts are exported again */
        mr_graph *second = import_meta(&again);
        if (!is_close) {
            check_values(copy, gradient_of(copy), at, expected, seed);
            check_values(second, gradient_of(second), at, expected, seed);
            mr_tensor extended = export_meta(second); /* with the nodes of the gradient */
            mr_graph *third = import_meta(&extended);
            check_values(third, gradient_of(third), at, expected, seed);
            mr_tensor_deinit(&extended);
            mr_graph_free(third);
        }
        mr_tensor_deinit(&meta);
        mr_tensor_deinit(&again);
        mr_graph_free(g);
        mr_graph_free(copy);
        mr_graph_free(second);
    }
    CHECK(loops > (int)(end - first) / 10);
}

/* y = x * x * x, in a loop. */
static mr_graph *build_power(void)
{
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "x"), v[2];
    mr_output zero = mr_constant_int32(g, 0), one = mr_constant_float(g, 1);
    mr_while_loop *loop = mr_while_loop_begin(g, MR_OUTPUTS(zero, one), v);
    mr_while_loop_body(loop, mr_less(g, v[0], mr_constant_int32(g, 3)), v);
    mr_while_loop_end(loop, MR_OUTPUTS(mr_add(g, v[0], mr_constant_int32(g, 1)), mr_mul(g, v[1], x)), v);
    (void)mr_identity(g, v[1], .name = "the_result");
    return g;
}

TEST(loops_of_a_graph_def_have_no_gradients)
{
    mr_error error = {0};
    mr_tensor def = {0};
    mr_graph *g = build_power(), *copy = mr_graph_new();
    CHECK_OK(mr_graph_export(g, &def, &error));
    const mr_string bytes = mr_tensor_strings(&def)[0];
    CHECK_OK(mr_graph_import(copy, bytes.data, bytes.size_bytes, nullptr, &error));
    (void)gradient_of(copy);
    CHECK_STATUS(mr_graph_status(copy, &error), MR_UNIMPLEMENTED);
    CHECK_CONTAINS(error.message, "node while/Exit_1 (Exit) is part of an imported loop whose control-flow context is "
                                  "not known: that needs a MetaGraphDef with the collection while_context");
    mr_tensor_deinit(&def);
    mr_graph_free(g);
    mr_graph_free(copy);
}

TEST(gradients_of_imported_gradients_of_loops_are_refused)
{
    mr_error error = {0};
    mr_graph *g = build_power();
    (void)mr_identity(g, gradient_of(g), .name = "slope");
    mr_tensor meta = export_meta(g);
    mr_graph *copy = import_meta(&meta);
    check_values(copy, mr_graph_find_output(copy, "slope"), 3, (dual){27, 27}, 0);
    check_values(copy, gradient_of(copy), 3, (dual){27, 27}, 0); /* the first gradient once more */
    mr_output second = {0};
    mr_gradients(copy, MR_OUTPUTS(mr_graph_find_output(copy, "slope")), MR_OUTPUTS(mr_graph_find_output(copy, "x")),
                 nullptr, &second);
    CHECK_STATUS(mr_graph_status(copy, &error), MR_UNIMPLEMENTED);
    CHECK_CONTAINS(error.message, "gradients of gradients of loops are not supported");
    mr_tensor_deinit(&meta);
    mr_graph_free(g);
    mr_graph_free(copy);
}

/* Files that are damaged at random are refused, or what they contain is differentiated, or that is refused. */
TEST(damaged_contexts_do_no_harm)
{
    const uint64_t first = test_seed() * 1000;
    int imported = 0;
    for (uint64_t seed = first; seed < first + 40; seed++) {
        float at = 0;
        dual expected = {0};
        bool is_close = false;
        uint64_t state = seed;
        mr_graph *g = build_program(seed, &at, &expected, &is_close);
        mr_tensor meta = export_meta(g);
        const mr_string bytes = mr_tensor_strings(&meta)[0];
        char *copy = malloc(bytes.size_bytes);
        CHECK(copy != nullptr);
        for (int round = 0; round < 60; round++) {
            mr_error error = {0};
            mr_graph *other = mr_graph_new();
            memcpy(copy, bytes.data, bytes.size_bytes);
            for (int i = 0; i <= round % 3; i++) {
                const size_t from = (size_t)below(&state, (int)bytes.size_bytes);
                copy[from] = round % 2 == 0 ? (char)below(&state, 256) : (char)(copy[from] + 1 - below(&state, 2) * 2);
            }
            if (mr_graph_import_meta(other, copy, bytes.size_bytes, &error) == MR_OK) {
                (void)gradient_of(other);
                imported++;
            }
            mr_graph_free(other);
        }
        free(copy);
        mr_tensor_deinit(&meta);
        mr_graph_free(g);
    }
    CHECK(imported > 100);
}
