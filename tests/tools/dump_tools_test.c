/* graph-run --dump, and tfrecord-cat --dump, which lists what it wrote. */
#include "tests/tools/graph_run_graphs.h"

static const char *cat(const char *arguments, int exit_code)
{
    const program_result *result = program_run("cd %s && tfrecord-cat %s", test_directory(), arguments);
    if (result->exit_code != exit_code)
        test_fail(__FILE__, __LINE__, "tfrecord-cat %s: exit code %d: %s", arguments, result->exit_code,
                  result->output);
    return result->output;
}

TEST(graph_run_dumps_the_values_of_steps)
{
    graph_run_make_model();
    const char *text =
        graph_run("model.meta --restore run --feed x=[1,nan] --fetch y --target train --steps 2 --dump d", 0);
    CHECK_CONTAINS(text, "graph-run: step 1: the first value with a NaN or an infinity is Mul:0\n");
    CHECK_CONTAINS(text, " values are dumped; the last step's directory is d/run_");
    CHECK_EQ(program_run("cd %s && test $(ls d | wc -l) = 2", test_directory())->exit_code, 0);
    text = cat("--dump d/run_*_1", 0);
    CHECK_CONTAINS(text, "y:0");
    CHECK_CONTAINS(text, "float [2]       1 NaN or infinite  6 nan\n"); /* 2 x + w after two and one more steps */
    CHECK_CONTAINS(text, "0.000 ms  ");
    CHECK_CONTAINS(cat("--dump --features 'y,z*' d/run_*_0", 0), "1 NaN or infinite  5 nan\n");
    CHECK(!strstr(cat("--dump --features 'y,z*' d/run_*_0", 0), "Mul"));
    CHECK_STR(cat("--dump --head 0 d/run_*_0", 0), "");
    text = cat("--dump --head 1 d/run_*", 0);
    CHECK_CONTAINS(text, "_0\n     0.000 ms");
    CHECK_CONTAINS(text, "\n\nd/run_");

    text = graph_run("model.meta --restore run --feed x=[1,1] --fetch y --dump e --dump-nodes 'y*'", 0);
    CHECK(!strstr(text, "NaN"));
    CHECK_CONTAINS(text, "graph-run: 1 value is dumped");
    CHECK_CONTAINS(graph_run("model.meta --restore run --feed x=[1,1] --fetch y --dump z --dump-nodes zz", 0),
                   "graph-run: --dump-nodes selects no node that has run\n");
    text = cat("--dump e/run*", 0);
    CHECK_CONTAINS(text, "0.000 ms  y:0   float [2]       5 5\n");
    text = graph_run("model.meta --restore run --feed x=1 --feed string='[\"ä\", \"b\"]' --feed complex64=@c.npy "
                     "--fetch string_out --dump f",
                     1);
    CHECK_CONTAINS(text, "c.npy");
    (void)graph_run("model.meta --feed string='[\"ä\", \"b\"]' --feed bool=true --feed uint64=18446744073709551615 "
                    "--feed int8='[-128]' --fetch string_out --fetch bool_out --fetch uint64_out --fetch int8_out "
                    "--feed double=0.1 --fetch double_out --feed half=0.5 --fetch half_out --dump f",
                    0);
    text = cat("--dump f/run*", 0);
    CHECK_CONTAINS(text, "string [2]      \"ä\" \"b\"\n");
    CHECK_CONTAINS(text, "bool []         true\n");
    CHECK_CONTAINS(text, "uint64 []       18446744073709551615\n");
    CHECK_CONTAINS(text, "int8 [1]        -128\n");
    CHECK_CONTAINS(text, "double []       0.1\n");
    CHECK_CONTAINS(text, "half []         0.5\n");
}

TEST(dump_options_have_effects)
{
    graph_run_make_model();
    CHECK_CONTAINS(graph_run("model.meta --list --dump d", 2), "--dump has no effect with --list");
    CHECK_CONTAINS(graph_run("model.meta --first init --dump d", 2),
                   "--dump has no effect without --fetch or --target");
    CHECK_CONTAINS(graph_run("model.meta --fetch w --dump-nodes w", 2), "--dump-nodes has no effect without --dump");
    CHECK_CONTAINS(graph_run("model.meta --fetch w --dump d --no-optimization", 2), "which implies it");
    CHECK_CONTAINS(graph_run("model.meta --fetch w --dump d --dump e", 2), "given twice");
    CHECK_CONTAINS(graph_run("model.meta --fetch w --dump ''", 2), "--dump: its value is empty");
    CHECK_CONTAINS(graph_run("model.meta --restore run --fetch w --dump model.pb", 1), "--dump");
    CHECK_CONTAINS(cat("--dump model.pb", 1), "model.pb");
    CHECK_CONTAINS(cat("--dump none", 1), "none");
    CHECK_CONTAINS(cat("--dump run", 1), "run: not the dump of a run");
    (void)graph_run("model.meta --restore run --fetch w --dump d", 0);
    CHECK_CONTAINS(cat("d/run_*", 1), "it is a tensor dump, which --dump lists");
    CHECK_CONTAINS(cat("--dump d/run_* --where 'a == 1'", 2), "not for --dump");
    CHECK_CONTAINS(cat("--dump --json d/run_*", 2), "only one of them");
}
