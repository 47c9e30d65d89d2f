/* graph-run keeps what its steps computed, however they end; a path that cannot be written is reported before them. */
#include "tests/tools/graph_run_graphs.h"

/* Creates fails.meta: each step adds 1 to v and fetches `element` of three; the third step is out of range. */
static void make_failing(void)
{
    mr_error error = {0};
    mr_tensor bytes = {0};
    mr_graph *g = mr_graph_new();
    mr_variable v = mr_variable_new(g, "v", mr_constant_int32(g, 0));
    mr_output next = mr_assign_add(g, v.ref, mr_constant_int32(g, 1));
    mr_output list = mr_constant_floats(g, MR_SHAPE(3), (float[]){10, 20, 30}, "list");
    (void)mr_gather(g, list, next, .name = "element");
    (void)mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    CHECK_OK(mr_graph_export_meta(g, &bytes, &error));
    file_save(test_path("fails.meta"), mr_tensor_strings(&bytes)[0].data, mr_tensor_strings(&bytes)[0].size_bytes);
    mr_tensor_deinit(&bytes);
    mr_graph_free(g);
}

static void check_exists(const char *name)
{
    if (access(test_path("%s", name), R_OK) != 0) test_fail(__FILE__, __LINE__, "%s does not exist", name);
}

TEST(graph_run_keeps_the_steps_before_a_failed_one)
{
    make_failing();
    const char *text = graph_run("fails.meta --first init --fetch element --steps 9 --save kept/m --out kept.npz "
                                 "--trace kept.json --write kept",
                                 1);
    CHECK_CONTAINS(text, "graph-run: element (Gather): ");
    CHECK_CONTAINS(text, "\ngraph-run: stopped after 2 steps; what they computed is written\n");
    check_exists("kept/m.index");
    check_exists("kept/element.npy");
    check_exists("kept.json");
    CHECK_CONTAINS(program_run("cd %s && grep -ao element@1.npy kept.npz", test_directory())->output, "element@1.npy");
    CHECK_CONTAINS(graph_run("fails.meta --restore kept/m --fetch v", 0), "v int32[] 3");
    /* Nothing was computed: an older checkpoint is not replaced. */
    text = graph_run("fails.meta --restore kept/m --fetch element --save kept/m --out none.npz", 1);
    CHECK(!strstr(text, "is written"));
    CHECK(access(test_path("none.npz"), F_OK) != 0);
    CHECK_CONTAINS(graph_run("fails.meta --restore kept/m --fetch v", 0), "v int32[] 3");
    /* The error of a file does not hide that of the step, and the other files are written. */
    text = graph_run("fails.meta --first init --fetch element --steps 9 --out /dev/full --save other/m", 1);
    CHECK_CONTAINS(text, "element (Gather): ");
    CHECK_CONTAINS(text, "cannot write /dev/full");
    check_exists("other/m.index");
}

TEST(graph_run_keeps_the_steps_before_a_signal)
{
    graph_run_make_model();
    static const char run[] = "graph-run model.meta --restore run --target train --fetch w --steps 1000000000";
    const char *text = program_run("cd %s && %s --save pipe/m | head -1", test_directory(), run)->output;
    CHECK_CONTAINS(text, "graph-run: the standard output was closed after ");
    CHECK_CONTAINS(text, "; what they computed is written\n");
    check_exists("pipe/m.index");
    static const char *const signals[] = {"HUP", "TERM"};
    for (size_t i = 0; i < 2; i++) {
        const program_result *result = program_run("cd %s && rm -rf kept; %s --trace kept.json --save kept/m --write "
                                                   "kept > out & sleep 1; kill -%s $!; wait $!",
                                                   test_directory(), run, signals[i]);
        CHECK(result->exit_code > 128);
        CHECK_CONTAINS(result->output, "graph-run: interrupted after ");
        CHECK_CONTAINS(result->output, "; what they computed is written\n");
        check_exists("kept/m.index");
        check_exists("kept.json");
        check_exists("kept/w.npy");
    }
}

TEST(graph_run_checks_paths_before_the_steps)
{
    graph_run_make_model();
    CHECK_EQ(program_run("cd %s && mkdir -p d.index w/w.npy", test_directory())->exit_code, 0);
    static const struct {
        const char *arguments, *part;
    } cases[] = {
        {"--save .", "--save: . does not end in the name of a checkpoint"},
        {"--save ..", "--save: .. does not end in the name"},
        {"--save new/.", "--save: new/. does not end in the name"},
        {"--save new/", "--save: new/ does not end in the name"},
        {"--save d", "--save: cannot write d.index: it is a directory"},
        {"--save model.pb/m", "--save: cannot create directory model.pb"},
        {"--out run", "--out: cannot write run: it is a directory"},
        {"--out none/a.npz", "--out: cannot create none/a.npz: no such file or directory"},
        {"--trace none/a.json", "--trace: cannot create none/a.json: no such file or directory"},
        {"--write model.pb/a", "--write: cannot create directory model.pb"},
        {"--write w", "--write: cannot write w/w.npy: it is a directory"},
        {"--out a.npz --steps 65535", "--out: the fetches of 65535 steps exceed 65,534 arrays, the limit of a .npz"},
        {"--out a.npz --steps 9223372036854775807", "exceed 65,534 arrays"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char arguments[256];
        snprintf(arguments, sizeof arguments, "model.meta --restore run --target train --fetch w %s",
                 cases[i].arguments);
        const char *text = graph_run(arguments, 1);
        CHECK_CONTAINS(text, cases[i].part);
        CHECK(!strstr(text, "w float"));
    }
    /* The checks leave nothing. */
    CHECK_CONTAINS(program_run("cd %s && ls", test_directory())->output, "d.index\nmodel.meta\nmodel.pb\nrun\nw\n");
    graph_run("model.meta --restore run --fetch w --fetch y --feed x=[1,2] --out a.npz --steps 32767 >/dev/null", 0);
}

TEST(graph_run_refuses_files_without_end)
{
    CHECK_CONTAINS(graph_run("/dev/zero", 1), "/dev/zero: neither a regular file nor a pipe");
    CHECK_EQ(program_run("cd %s && truncate -s 30G large.pb", test_directory())->exit_code, 0);
    CHECK_CONTAINS(graph_run("large.pb --list", 1),
                   "large.pb: 32212254720 bytes; a graph has at most 2 GiB, the limit of protobuf");
    graph_run_make_model();
    const program_result *result = program_run("cd %s && cat model.pb | graph-run /dev/stdin --list", test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "format: GraphDef");
}
