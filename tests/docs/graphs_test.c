/* The commands and C functions of docs/tensorflow-graphs.md. The test builds the graph that the guide exports in
 * Python, with the same names. tests/oracle/guides_oracle.py runs the guide with TensorFlow's own files. */
#include "tests/docs/guide.h"
#include "tests/records/record_data.h"

#include <millrace/millrace.h>

mr_status predict(const char *meta_path, const char *checkpoint, float x, float *y, mr_error *error);
mr_status train_line(const char *meta_path, int steps, const char *checkpoint, mr_error *error);
mr_status count_parameters(const char *meta_path, int64_t *parameters, mr_error *error);

/* Writes line.pb, and the checkpoint run/line-0, in which all variables are zero. */
static void make_line(void)
{
    mr_error error = {0};
    mr_tensor bytes = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "x");
    mr_output y = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "y");
    mr_variable w = mr_get_variable(g, "w", MR_SCALAR, (mr_initializer){.kind = MR_INIT_ZEROS});
    mr_variable b = mr_get_variable(g, "b", MR_SCALAR, (mr_initializer){.kind = MR_INIT_ZEROS});
    mr_output line = mr_add_v2(g, mr_mul(g, w.value, x, .name = "mul"), b.value, .name = "line");
    mr_output loss = mr_mean(g, mr_square(g, mr_sub(g, line, y)), mr_constant_int32(g, 0), .name = "loss");
    mr_node *update = mr_minimize(g, mr_gradient_descent(.learning_rate = 0.2f), loss, (mr_output){0});
    mr_group(g, &update, 1, "train");
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    mr_saver *saver = mr_saver_new(g);
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    CHECK_OK(mr_saver_save(saver, session, test_path("run/line"), 0, &error));
    CHECK_OK(mr_graph_export(g, &bytes, &error));
    file_save(test_path("line.pb"), mr_tensor_strings(&bytes)[0].data, mr_tensor_strings(&bytes)[0].size_bytes);
    mr_tensor_deinit(&bytes);
    mr_saver_free(saver);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(guide_tensorflow_graphs)
{
    mr_error error = {0};
    float y = 1;
    make_line();
    guide_run("docs/tensorflow-graphs.md");
    CHECK_OK(predict(test_path("run/line-0.meta"), test_path("run/line-0"), 2, &y, &error));
    CHECK_NEAR(y, 0, 0);
    CHECK_OK(train_line(test_path("run/line-0.meta"), 200, test_path("run/line"), &error));
    CHECK_OK(predict(test_path("run/line-0.meta"), test_path("run/line-200"), 2, &y, &error));
    CHECK_NEAR(y, 4, 1e-5);
    int64_t parameters = 0;
    CHECK_OK(count_parameters(test_path("run/line-0.meta"), &parameters, &error));
    CHECK_EQ(parameters, 2);
    CHECK_STATUS(predict(test_path("run/none.meta"), test_path("run/line-0"), 2, &y, &error), MR_NOT_FOUND);
}
