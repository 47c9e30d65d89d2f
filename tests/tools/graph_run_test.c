/* graph-run, run as a program with invalid input: one error message, and exit code 1, or 2 for options. */
#include "tests/records/record_data.h"
#include "tests/tools/program.h"

#include <millrace/millrace.h>

/* Creates y = 2 x + w, with a checkpoint of w. */
static void make_graph(void)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "x");
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2), (mr_initializer){.kind = MR_INIT_ONES});
    mr_output y = mr_add(g, mr_mul(g, x, mr_constant_float(g, 2)), w.value, .name = "y");
    mr_saver *saver = mr_saver_new(g);
    mr_session *session = nullptr;
    CHECK(y.node != nullptr);
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &w.initializer, 1, &error));
    CHECK_OK(mr_saver_save(saver, session, test_path("m"), 1, &error));
    mr_saver_free(saver);
    mr_session_free(session);
    mr_graph_free(g);
}

static const char *refused(const char *arguments, int exit_code)
{
    const program_result *result = program_run("cd %s && graph-run %s", test_directory(), arguments);
    if (result->exit_code != exit_code)
        test_fail(__FILE__, __LINE__, "graph-run %s: exit code %d: %s", arguments, result->exit_code, result->output);
    CHECK_CONTAINS(result->output, "graph-run");
    return result->output;
}

TEST(graph_run_reports_unusable_input)
{
    make_graph();
    file_save(test_path("text"), "this is no graph", 16);
    const program_result *result =
        program_run("cd %s && graph-run m-1.meta --restore m-1 --feed 'x=[1, 3]' --fetch y", test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "3");
    CHECK_CONTAINS(result->output, "7");
    CHECK_CONTAINS(refused("nowhere.pb --list", 1), "nowhere.pb: ");
    CHECK_CONTAINS(refused(". --list", 1), "irectory");
    CHECK_CONTAINS(refused("text --list", 1), "text: ");
    CHECK_CONTAINS(refused("m-1.meta --fetch none", 1), "none");
    CHECK_CONTAINS(refused("m-1.meta --restore m-2 --fetch w", 1), "m-2.index");
    CHECK_CONTAINS(refused("m-1.meta --restore m-1 --feed x=@none.npy --fetch y", 1), "none.npy");
    CHECK_CONTAINS(refused("m-1.meta --restore m-1 --feed x=[1 --fetch y", 1), "x");
    CHECK_CONTAINS(refused("m-1.meta --restore m-1 --feed x=[1,2,3] --fetch y", 1), "y");
    CHECK_CONTAINS(refused("m-1.meta --fetch y --steps none", 2), "none");
    CHECK_CONTAINS(refused("--frob", 2), "--help");

    /* A truncated graph file is an error, or a graph with fewer nodes; never a crash. */
    size_t size_bytes;
    unsigned char *bytes = file_load(test_path("m-1.meta"), &size_bytes);
    for (size_t part = 1; part < 8; part++) {
        file_save(test_path("cut.meta"), bytes, size_bytes * part / 8);
        CHECK(program_run("cd %s && graph-run cut.meta --list", test_directory())->exit_code <= 1);
    }
    free(bytes);
}
