/* Graphs and checkpoints for the tests of graph-run, in the test's directory. */
#ifndef MR_TESTS_TOOLS_GRAPH_RUN_GRAPHS_H
#define MR_TESTS_TOOLS_GRAPH_RUN_GRAPHS_H

#include "tests/records/record_data.h"
#include "tests/tools/program.h"

#include <millrace/millrace.h>

/* Creates model.meta and model.pb: y = 2 x + w over two floats; `train` adds 1 to w; `init` sets w to ones; an identity
 * for each dtype that can be fed ("int8" to "int8_out"); a name with a control byte. run/ contains the checkpoints of
 * steps 1 and 2. */
static inline void graph_run_make_model(void)
{
    static const mr_dtype dtypes[] = {MR_INT8,   MR_UINT8, MR_INT16,    MR_UINT16, MR_INT32,
                                      MR_UINT32, MR_INT64, MR_UINT64,   MR_FLOAT,  MR_DOUBLE,
                                      MR_HALF,   MR_BOOL,  MR_BFLOAT16, MR_STRING, MR_COMPLEX64};
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "x");
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2), (mr_initializer){.kind = MR_INIT_ONES});
    mr_output y = mr_add(g, mr_mul(g, x, mr_constant_float(g, 2)), w.value, .name = "y");
    mr_output update = mr_assign_add(g, w.ref, mr_constant_floats(g, MR_SHAPE(2), (float[]){1, 1}, "ones"));
    mr_node *train = mr_group(g, &update.node, 1, "train");
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s_out", mr_dtype_name(dtypes[i]));
        mr_output in = mr_placeholder(g, dtypes[i], .shape = MR_SHAPE_UNKNOWN, .name = mr_dtype_name(dtypes[i]));
        (void)mr_identity(g, in, .name = name);
    }
    CHECK(y.node != nullptr && train != nullptr);
    mr_saver *saver = mr_saver_new(g);
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    for (int64_t step = 1; step <= 2; step++) {
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &train, 1, &error));
        CHECK_OK(mr_saver_save(saver, session, test_path("run/m"), step, &error));
    }
    mr_tensor bytes = {0};
    CHECK_OK(mr_graph_export_meta(g, &bytes, &error));
    file_save(test_path("model.meta"), mr_tensor_strings(&bytes)[0].data, mr_tensor_strings(&bytes)[0].size_bytes);
    mr_tensor_deinit(&bytes);
    CHECK_OK(mr_graph_export(g, &bytes, &error));
    file_save(test_path("model.pb"), mr_tensor_strings(&bytes)[0].data, mr_tensor_strings(&bytes)[0].size_bytes);
    mr_tensor_deinit(&bytes);
    mr_saver_free(saver);
    mr_session_free(session);
    mr_graph_free(g);
}

/* Runs graph-run in the test's directory, checks the exit code and returns the output. */
static inline const char *graph_run(const char *arguments, int exit_code)
{
    const program_result *result = program_run("cd %s && graph-run %s", test_directory(), arguments);
    if (result->exit_code != exit_code)
        test_fail(__FILE__, __LINE__, "graph-run %s: exit code %d: %s", arguments, result->exit_code, result->output);
    if (exit_code != 0) CHECK_CONTAINS(result->output, "graph-run: ");
    return result->output;
}

#endif
