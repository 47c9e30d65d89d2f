/* graph-run's options: each with wrong, empty and huge values, and with commands on which it has no effect. */
#include "tests/tools/graph_run_graphs.h"

TEST(graph_run_refuses_options_without_effect)
{
    static const struct {
        const char *arguments, *part;
    } cases[] = {
        {"model.meta --list --feed x=1", "--feed has no effect with --list"},
        {"model.meta --list --fetch y", "--fetch has no effect with --list"},
        {"model.meta --list --target train", "--target has no effect with --list"},
        {"model.meta --list --first init", "--first has no effect with --list"},
        {"model.meta --list --restore run", "--restore has no effect with --list"},
        {"model.meta --list --steps 1", "--steps has no effect with --list"},
        {"model.meta --list --write out", "--write has no effect with --list"},
        {"model.meta --list --device cpu", "--device has no effect with --list"},
        {"model.meta --list --threads 1", "--threads has no effect with --list"},
        {"model.meta --list --profile", "--profile has no effect with --list"},
        {"model.meta --first init --feed x=1", "--feed has no effect without --fetch or --target"},
        {"model.meta --first init --restore run", "--restore has no effect without --fetch or --target"},
        {"model.meta --first init --steps 2", "--steps has no effect without --fetch or --target"},
        {"model.meta --first init --profile", "--profile has no effect without --fetch or --target"},
        {"model.meta --list --pprof a", "--pprof has no effect with --list"},
        {"model.meta --fetch y --pprof a", "--pprof has no effect without --profile=VIEW"},
        {"model.meta --fetch y --profile --pprof a", "--pprof has no effect without --profile=VIEW"},
        {"model.meta --first init --write out", "--write has no effect without --fetch"},
        {"model.meta --target train --write out", "--write has no effect without --fetch"},
        {"model.meta --target train --out a.npz", "--out has no effect without --fetch"},
        {"model.meta --target train --logdir logs", "--logdir has no effect without --fetch"},
        {"model.meta --first init --feeds a.npz", "--feeds has no effect without --fetch or --target"},
        {"model.meta --first init --queue-runners", "--queue-runners has no effect without --fetch or --target"},
        {"model.meta --first init --trace a.json", "--trace has no effect without --fetch or --target"},
        {"model.meta --list --feeds a.npz", "--feeds has no effect with --list"},
        {"model.meta --list --save a", "--save has no effect with --list"},
        {"model.meta --list --queue-runners", "--queue-runners has no effect with --list"},
        {"model.meta --list --out a.npz", "--out has no effect with --list"},
        {"model.meta --list --logdir a", "--logdir has no effect with --list"},
        {"model.meta --list --trace a", "--trace has no effect with --list"},
        {"model.meta --list --seed 1", "--seed has no effect with --list"},
        {"model.meta --list --timeout 1", "--timeout has no effect with --list"},
        {"model.meta --list --read-only", "--read-only has no effect with --list"},
        {"model.meta --list --no-optimization", "--no-optimization has no effect with --list"},
        {"model.meta --no-optimization", "--no-optimization has no effect without"},
        {"model.meta --list --no-recompute", "--no-recompute has no effect with --list"},
        {"model.meta --no-recompute", "--no-recompute has no effect without"},
        {"model.meta --fetch y --no-optimization --no-recompute",
         "--no-recompute has no effect with --no-optimization"},
        {"model.meta --fetch y --dump d --no-recompute", "--no-recompute has no effect with --dump"},
        {"model.meta --seed 1", "--seed has no effect without --fetch, --target or --first"},
        {"model.meta --timeout 1", "--timeout has no effect without"},
        {"model.meta --read-only", "--read-only has no effect without"},
        {"model.meta --threads 1", "--threads has no effect without"},
        {"model.meta --device /cpu:0", "--device has no effect without"},
        {"model.meta --restore run --save a --read-only", "--save contradicts --read-only"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_CONTAINS(graph_run(cases[i].arguments, 2), cases[i].part);
}

TEST(graph_run_refuses_values_that_are_wrong_empty_or_huge)
{
    static const struct {
        const char *arguments, *part;
    } cases[] = {
        {"", "missing GRAPH"},
        {"model.meta other.pb --list", "other.pb: only one graph"},
        {"--frob", "--frob is not an option"},
        {"-x", "-x is not an option"},
        {"--version=3", "--version=3: this option has no value"},
        {"--queue-runners=3", "--queue-runners=3: this option has no value"},
        {"model.meta --fetch y --profile=code", "--profile code is not op, scope or graph"},
        {"model.meta --fetch y --profile=", "--profile  is not op, scope or graph"},
        {"model.meta --fetch y --profile=op --profile=op", "--profile is given twice: op, op"},
        {"-V", "-V is not an option"},
        {"--fetch", "--fetch needs a value"},
        {"model.meta -n", "-n needs a value"},
        {"model.meta --fetch y --steps none", "--steps none is not a number from 1 to"},
        {"model.meta --fetch y --steps ''", "--steps  is not a number"},
        {"model.meta --fetch y --steps 0", "--steps 0 is not a number from 1 to"},
        {"model.meta --fetch y --steps -1", "--steps -1 is not a number"},
        {"model.meta --fetch y --steps 2x", "--steps 2x is not a number"},
        {"model.meta --fetch y --steps 99999999999999999999", "is not a number from 1 to"},
        {"model.meta --fetch y --threads 0", "--threads 0 is not a number from 1 to 1024"},
        {"model.meta --fetch y --threads 1025", "--threads 1025 is not a number from 1 to 1024"},
        {"model.meta --fetch y --threads 4294967297", "is not a number from 1 to 1024"},
        {"model.meta --fetch y --steps 1 --steps 2", "--steps is given twice: 1, 2"},
        {"model.meta --fetch y --restore a --restore b", "--restore is given twice: a, b"},
        {"model.meta --fetch ''", "--fetch: a name is missing"},
        {"model.meta --target ''", "--target: a name is missing"},
        {"model.meta --first ''", "--first: a name is missing"},
        {"model.meta --feed '' --fetch y", "--feed: a name is missing"},
        {"model.meta --fetch y --restore ''", "--restore: its value is empty"},
        {"model.meta --fetch y --write ''", "--write: its value is empty"},
        {"model.meta --fetch y --seed x", "--seed x is not an integer"},
        {"model.meta --fetch y --seed 1 --seed 2", "--seed is given twice: 1, 2"},
        {"model.meta --fetch y --seed 99999999999999999999", "is not an integer"},
        {"model.meta --fetch y --timeout 0", "--timeout 0 is not a number of seconds"},
        {"model.meta --fetch y --timeout nan", "--timeout nan is not a number of seconds"},
        {"model.meta --fetch y --timeout 1 --timeout 2", "--timeout is given twice: 1, 2"},
        {"model.meta --fetch y --device ''", "--device: its value is empty"},
        {"model.meta $(yes -- --fetch=y | head -300)", "--fetch is given more than 256 times"},
        {"\"$(printf 'a\\033[31mb')\" \"$(printf 'c\\nd')\"", "c\\nd: only one graph"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_CONTAINS(graph_run(cases[i].arguments, 2), cases[i].part);
    CHECK_CONTAINS(graph_run("--version", 0), "graph-run (millrace) " MR_VERSION "\n");
    CHECK_CONTAINS(graph_run("--help", 0), "usage: graph-run [options] GRAPH");
    const char *text = program_run("COLUMNS=60 graph-run --help")->output;
    CHECK_CONTAINS(text, "\n  -f, --feed NAME=VALUE\n        a number, a list in brackets, ");
    for (const char *line = strstr(text, "usage: "); *line; line += strcspn(line, "\n") + 1)
        CHECK(strcspn(line, "\n") <= 60);
}

TEST(graph_run_names_missing_nodes)
{
    graph_run_make_model();
    static const struct {
        const char *arguments, *part;
    } cases[] = {
        {"model.meta --fetch none", "the graph has no output none"},
        {"model.meta --fetch y:1", "y (Add) has 1 output; there is no y:1"},
        {"model.meta --fetch y:99999999999999999999", "there is no y:9999"},
        {"model.meta --fetch train", "train (NoOp) has no outputs; run it with --target train"},
        {"model.meta --feed train=1 --fetch y", "train (NoOp) has no outputs"},
        {"model.meta --target y:0", "y:0 is an output; its node is y"},
        {"model.meta --target none", "the graph has no node none"},
        {"model.meta --first none", "the graph has no node none"},
        {"model.meta --feed x --fetch y", "--feed x: not NAME=VALUE"},
        {"model.meta --feed =1 --fetch y", "--feed =1: not NAME=VALUE"},
        {"model.meta --feed none=1 --fetch y", "the graph has no output none"},
        {"model.meta --fetch y --device nowhere", "--device: "},
        {"model.meta --fetch \"$(printf 'a\\033[31mb')\"", "no output a?[31mb"},
        {"\"$(printf 'a\\033[31mb')\" --list", "a?[31mb: "},
        {"nowhere.pb --list", "nowhere.pb: "},
        {". --list", "irectory"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_CONTAINS(graph_run(cases[i].arguments, 1), cases[i].part);
    CHECK(strchr(graph_run("model.meta --fetch \"$(printf 'a\\033[31mb')\"", 1), 033) == nullptr);
}

TEST(graph_run_writes_into_a_directory_that_it_creates)
{
    graph_run_make_model();
    graph_run("model.meta --restore run --feed x=[1,2] --fetch y --fetch w/read:0 --write a/b/c", 0);
    mr_error error = {0};
    mr_tensor value = {0};
    CHECK_OK(mr_npy_load(test_path("a/b/c/y.npy"), &value, &error));
    CHECK(mr_tensor_floats(&value)[1] == 7);
    mr_tensor_deinit(&value);
    CHECK_OK(mr_npy_load(test_path("a/b/c/w_read_0.npy"), &value, &error));
    mr_tensor_deinit(&value);
    CHECK_CONTAINS(graph_run("model.meta --restore run --feed x=1 --fetch y:0 --fetch y_0 --write a", 1),
                   "no output y_0");
    CHECK_CONTAINS(graph_run("model.meta --restore run --feed x=1 --fetch w/read --fetch w/read --write a", 1),
                   "would both be written to a/w_read.npy");
    CHECK_CONTAINS(graph_run("model.meta --restore run --feed x=1 --fetch y --write model.pb/a", 1),
                   "cannot create directory model.pb");
}

TEST(graph_run_finds_the_checkpoint_that_a_path_means)
{
    graph_run_make_model();
    static const char *const paths[] = {"run",     "run/",          "./run",        "run/checkpoint",
                                        "run/m-2", "run/m-2.index", "run/m-2.meta", "run/m-2.data-00000-of-00001"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char arguments[256];
        snprintf(arguments, sizeof arguments, "model.meta --restore %s --fetch w/read", paths[i]);
        CHECK_CONTAINS(graph_run(arguments, 0), "[3, 3]");
    }
    CHECK_CONTAINS(graph_run("model.meta --restore run/m-1 --fetch w/read", 0), "[2, 2]");
    CHECK_EQ(program_run("cd %s/run && graph-run ../model.meta --restore checkpoint --fetch w/read", test_directory())
                 ->exit_code,
             0);
    CHECK_CONTAINS(graph_run("model.meta --restore run/m-3 --fetch w/read", 1), "m-3.index");
    CHECK_CONTAINS(graph_run("model.meta --restore . --fetch w/read", 1), "checkpoint");
}

/* A graph with more variables than the checkpoint, a graph without variables, and one in which a variable has another
 * shape. */
TEST(graph_run_names_the_variables_that_a_checkpoint_lacks)
{
    graph_run_make_model();
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_tensor bytes = {0};
    mr_output sum = mr_constant_float(g, 0);
    CHECK_OK(mr_graph_export(g, &bytes, &error));
    file_save(test_path("none.pb"), mr_tensor_strings(&bytes)[0].data, mr_tensor_strings(&bytes)[0].size_bytes);
    mr_tensor_deinit(&bytes);
    static const char *const names[] = {"w", "extra", "more"};
    for (int i = 0; i < 3; i++) {
        mr_variable v = mr_get_variable(g, names[i], MR_SHAPE(2), (mr_initializer){.kind = MR_INIT_ONES});
        sum = mr_add(g, sum, v.value);
        if (i == 0) continue;
        mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
        CHECK_OK(mr_graph_export_meta(g, &bytes, &error));
        file_save(test_path("lacks%d.meta", i), mr_tensor_strings(&bytes)[0].data,
                  mr_tensor_strings(&bytes)[0].size_bytes);
        mr_tensor_deinit(&bytes);
    }
    mr_graph_free(g);
    CHECK_CONTAINS(graph_run("lacks1.meta --restore run --fetch w/read", 1), "Key extra not found in checkpoint ");
    CHECK_CONTAINS(graph_run("lacks1.meta --first init --restore run --fetch w/read", 1), "Key extra not found");
    CHECK_CONTAINS(graph_run("lacks2.meta --restore run --fetch w/read", 1),
                   "2 of the graph's 3 variables are not found in checkpoint ");
    CHECK_CONTAINS(graph_run("lacks2.meta --restore run --fetch w/read", 1), ": extra, more");
    CHECK_CONTAINS(graph_run("none.pb --restore run --fetch Const", 1), "the graph has no variables");
    g = mr_graph_new();
    (void)mr_get_variable(g, "w", MR_SHAPE(3), (mr_initializer){.kind = MR_INIT_ONES});
    CHECK_OK(mr_graph_export(g, &bytes, &error));
    file_save(test_path("other.pb"), mr_tensor_strings(&bytes)[0].data, mr_tensor_strings(&bytes)[0].size_bytes);
    mr_tensor_deinit(&bytes);
    mr_graph_free(g);
    CHECK_CONTAINS(graph_run("other.pb --restore run --fetch w/read", 1), "restoring w: ");
}

/* A missing file is reported before other errors of the command line. */
TEST(graph_run_names_a_missing_file_first)
{
    graph_run_make_model();
    CHECK_CONTAINS(graph_run("nope.pb", 1), "nope.pb");
    CHECK_CONTAINS(graph_run("nope.pb --fetch y", 1), "nope.pb");
    CHECK_CONTAINS(graph_run("nope.pb --list", 1), "nope.pb");
    CHECK_CONTAINS(graph_run("/dev/null --list", 1), "/dev/null: neither a regular file nor a pipe");
}
