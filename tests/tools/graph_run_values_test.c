/* Values on graph-run's command line: for every dtype, a value that it cannot represent is an error. */
#include "tests/tools/graph_run_graphs.h"

static const char *feed(const char *dtype, const char *value, int exit_code)
{
    char arguments[512];
    snprintf(arguments, sizeof arguments, "model.pb --feed %s='%s' --fetch %s_out", dtype, value, dtype);
    return graph_run(arguments, exit_code);
}

TEST(graph_run_rejects_integers_out_of_range)
{
    static const struct {
        const char *dtype, *min, *max, *below, *above;
    } cases[] = {
        {"int8", "-128", "127", "-129", "128"},
        {"uint8", "0", "255", "-1", "256"},
        {"int16", "-32768", "32767", "-32769", "32768"},
        {"uint16", "0", "65535", "-1", "65536"},
        {"int32", "-2147483648", "2147483647", "-2147483649", "2147483648"},
        {"uint32", "0", "4294967295", "-1", "4294967296"},
        {"int64", "-9223372036854775808", "9223372036854775807", "-9223372036854775809", "9223372036854775808"},
        {"uint64", "0", "18446744073709551615", "-1", "18446744073709551616"},
    };
    static const char *const wrong[] = {
        "1.5", "1e3", "nan", "inf", "true", "\"1\"", "0x10", "1 2", "", "-", "+", "--1", "99999999999999999999999999"};
    graph_run_make_model();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        snprintf(text, sizeof text, "[%s, %s, -0, +1]", cases[i].min, cases[i].max);
        CHECK_CONTAINS(feed(cases[i].dtype, text, 0), cases[i].min);
        CHECK_CONTAINS(feed(cases[i].dtype, text, 0), cases[i].max);
        snprintf(text, sizeof text, "%s is out of range for %s", cases[i].below, cases[i].dtype);
        CHECK_CONTAINS(feed(cases[i].dtype, cases[i].below, 1), text);
        snprintf(text, sizeof text, "%s is out of range for %s", cases[i].above, cases[i].dtype);
        CHECK_CONTAINS(feed(cases[i].dtype, cases[i].above, 1), text);
        for (size_t j = 0; j < sizeof wrong / sizeof *wrong && (i == 0 || i == 4 || i == 7); j++)
            (void)feed(cases[i].dtype, wrong[j], 1);
    }
    CHECK_CONTAINS(feed("int32", "1.5", 1), "--feed int32: 1.5 is not an integer, as required for int32");
}

TEST(graph_run_rejects_invalid_floats_bools_and_strings)
{
    static const struct {
        const char *dtype, *value, *part;
        int exit_code;
    } cases[] = {
        {"float", "1.5", "1.5", 0},
        {"float", "nan", "nan", 0},
        {"float", "-inf", "-inf", 0},
        {"float", "3.4e38", "3.39999995e+38", 0},
        {"float", "3.5e38", "3.5e38 is too large for float", 1},
        {"float", "1e999", "1e999 is too large for float", 1},
        {"float", "1,5", "after the value", 1},
        {"float", "1.5.5", "1.5.5 is not a number", 1},
        {"float", "true", "true is not a number", 1},
        {"float", "", "missing value at the end\n", 1},
        {"float", "[[1, 2", "missing , or ] at the end\n", 1},
        {"float", "[1 2]", "missing , or ] at \"2]\"", 1},
        {"double", "3.5e38", "3.5", 0},
        {"double", "1e999", "too large for double", 1},
        {"half", "65504", "65504", 0},
        {"half", "70000", "70000 is too large for half", 1},
        {"bfloat16", "3.5e38", "too large for bfloat16", 1},
        {"bool", "[true, false, 1, 0]", "[true, false, true, false]", 0},
        {"bool", "2", "2 is not true, false, 1 or 0", 1},
        {"bool", "truely", "truely is not true", 1},
        {"bool", "0.5", "0.5 is not true", 1},
        {"string", "plain text", "\"plain text\"", 0},
        {"string", "[\"a\", \"b,]\"]", "[\"a\", \"b,]\"]", 0},
        {"string", "[\"a\", 5]", "5 is not in double quotes", 1},
        {"string", "[\"a]", "no closing quote", 1},
        {"complex64", "1", "a complex64 cannot be written as text", 1},
        {"float", "[[1, 2], [3]]", "lists at the same level have 2 and 1 elements", 1},
        {"float", "[1, [2]]", "lists of unequal depth", 1},
        {"float", "[1, []]", "lists of unequal depth", 1},
        {"float", "[[], 1]", "lists of unequal depth", 1},
        {"float", "[1", "", 1},
        {"float", "[1]]", "after the value", 1},
        {"float", "[]", "float[0]", 0},
        {"float", "[[], []]", "float[2,0]", 0},
        {"float", "[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]", "lists nested deeper than", 1},
    };
    graph_run_make_model();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_CONTAINS(feed(cases[i].dtype, cases[i].value, cases[i].exit_code), cases[i].part);
    const char *output = feed("string", "a\033[31mb", 0);
    CHECK(strchr(output, 033) == nullptr);
    CHECK_CONTAINS(output, "a\\x1b[31mb");
}

/* A while loop as TensorFlow 1 exports it. Builders cannot refer to a node that does not exist yet, so the serialized
 * graph is patched: Merge's input is renamed to NextIteration's name, which has the same length. */
TEST(graph_run_runs_a_loop)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output one = mr_constant_int32(g, 1);
    mr_output enter = mr_enter(g, one, .frame_name = "loop", .name = "while/Enter");
    mr_output other = mr_enter(g, one, .frame_name = "loop", .name = "while/Other");
    mr_output merge = mr_merge(g, MR_OUTPUTS(enter, other), .name = "while/Merge").output;
    mr_output limit = mr_enter(g, mr_constant_int32(g, 10), .frame_name = "loop", .is_constant = true);
    mr_output proceed = mr_loop_cond(g, mr_less(g, merge, limit), .name = "while/LoopCond");
    mr_switch_outputs ways = mr_switch(g, merge, proceed, .name = "while/Switch");
    (void)mr_next_iteration(g, mr_add(g, ways.output_true, ways.output_true), .name = "while/Next1");
    (void)mr_exit(g, ways.output_false, .name = "while/Exit");
    mr_tensor bytes = {0};
    CHECK_OK(mr_graph_export(g, &bytes, &error));
    mr_string def = mr_tensor_strings(&bytes)[0];
    char *copy = malloc(def.size_bytes);
    memcpy(copy, def.data, def.size_bytes);
    char *node = memmem(copy, def.size_bytes, "while/Merge", 11);
    char *input = memmem(node, def.size_bytes - (size_t)(node - copy), "while/Other", 11);
    file_save(test_path("straight.pb"), copy, def.size_bytes);
    memcpy(input, "while/Next1", 11);
    file_save(test_path("loop.pb"), copy, def.size_bytes);
    CHECK_CONTAINS(graph_run("straight.pb --fetch while/Exit", 1), "while/Exit:0 is in a branch that did not run");
    CHECK_CONTAINS(graph_run("loop.pb --fetch while/Exit", 0), "while/Exit int32[] 16");
    CHECK_CONTAINS(graph_run("loop.pb --list", 0), "while/Next1");
    free(copy);
    mr_tensor_deinit(&bytes);
    mr_graph_free(g);
}
