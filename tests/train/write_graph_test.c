/* Graphs that are written to files, and read again. */
#include "tests/test.h"

#include <millrace/millrace.h>

TEST(graphs_are_written_in_each_form)
{
    static const char *const formats[] = {"GraphDef", "GraphDef", "MetaGraphDef", "MetaGraphDef"};
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2, 3));
    (void)mr_mat_mul(g, mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 2), .name = "x"), w.value, .name = "y");
    for (int kind = MR_GRAPH_FILE_TEXT; kind <= MR_GRAPH_FILE_META_TEXT; kind++) {
        mr_model *model = nullptr;
        const char *path = test_path("made/too/graph");
        CHECK_OK(mr_graph_write_file(g, path, (mr_graph_file)kind, &error)); /* over the one before */
        CHECK_OK(mr_model_open(path, nullptr, &model, &error));
        CHECK_STR(mr_model_info(model)->format, formats[kind]);
        CHECK_EQ(mr_model_info(model)->is_text, kind == MR_GRAPH_FILE_TEXT || kind == MR_GRAPH_FILE_META_TEXT);
        CHECK_EQ(mr_graph_node_count(mr_model_graph(model)), mr_graph_node_count(g));
        mr_model_free(model);
    }
    CHECK_STATUS(mr_graph_write_file(nullptr, "a", MR_GRAPH_FILE_TEXT, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_graph_write_file(g, nullptr, MR_GRAPH_FILE_TEXT, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_graph_write_file(g, "", MR_GRAPH_FILE_TEXT, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_graph_write_file(g, "a", (mr_graph_file)4, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "4 is no kind of file");
    CHECK(mr_graph_write_file(g, "/dev/null/graph", MR_GRAPH_FILE_TEXT, &error) != MR_OK);
    (void)mr_graph_fail(g, MR_INVALID_ARGUMENT, "wrong");
    CHECK_STATUS(mr_graph_write_file(g, test_path("other"), MR_GRAPH_FILE_META, &error), MR_INVALID_ARGUMENT);
    mr_graph_free(g);
}
