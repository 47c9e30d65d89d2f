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

/* ---- Fields that only a newer TensorFlow knows ---- */

#define FIELD_42 "\xd0\x02\x07"
#define PRODUCT "\x3a\x07\x08\x03\x12\x03\x08\xe8\x07"
#define NODE                                                                                                           \
    "\x0a\x01x\x12\x0bPlaceholder\x2a\x0b\x0a\x05"                                                                     \
    "dtype\x12\x02\x30\x01"
/* The node and its field 42. */
static const char newer[] = "\x0a\x20" NODE FIELD_42;
/* The node and its experimental_type: a product of a tensor. */
static const char typed[] = "\x0a\x26" NODE PRODUCT;

static mr_graph *imported(const char *bytes, size_t size_bytes)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    CHECK_OK(mr_graph_import(g, bytes, size_bytes, nullptr, &error));
    return g;
}

/* The file has these bytes. */
static void check_file(const char *path, const char *part, size_t size_bytes)
{
    char found[4096];
    FILE *file = fopen(path, "rb");
    CHECK(file != nullptr);
    const size_t size = fread(found, 1, sizeof found, file);
    fclose(file);
    CHECK(memmem(found, size, part, size_bytes) != nullptr);
}

TEST(graphs_with_unknown_fields_have_no_text_form)
{
    mr_error error = {0};
    mr_graph *g = imported(newer, sizeof newer - 1);
    for (int kind = 0; kind < 4; kind++) {
        const char *path = test_path("unknown-%d", kind);
        const bool is_text = kind == MR_GRAPH_FILE_TEXT || kind == MR_GRAPH_FILE_META_TEXT;
        const mr_status status = mr_graph_write_file(g, path, (mr_graph_file)kind, &error);
        CHECK_EQ(status, is_text ? MR_FAILED_PRECONDITION : MR_OK);
        if (is_text) CHECK_CONTAINS(error.message, "x: NodeDef has the field 42, which has no name in text form");
        if (is_text) CHECK(fopen(path, "rb") == nullptr); /* nothing was written */
        if (kind == MR_GRAPH_FILE_BINARY) check_file(path, FIELD_42, 3);
    }
    mr_graph_free(g);
}

TEST(graphs_keep_the_types_of_nodes_in_text)
{
    mr_error error = {0};
    mr_graph *g = imported(typed, sizeof typed - 1);
    mr_model *model = nullptr;
    const char *path = test_path("typed.pbtxt");
    CHECK_OK(mr_graph_write_file(g, path, MR_GRAPH_FILE_TEXT, &error));
    static const char shown[] = "experimental_type {\n    type_id: 3\n    args {\n      type_id: 1000\n";
    check_file(path, shown, sizeof shown - 1);
    CHECK_OK(mr_model_open(path, nullptr, &model, &error));
    CHECK_OK(mr_graph_write_file(mr_model_graph(model), path, MR_GRAPH_FILE_BINARY, &error));
    check_file(path, PRODUCT, 9);
    mr_model_free(model);
    mr_graph_free(g);
    /* As TensorFlow writes it, with names. */
    static const char text[] = "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } "
                               "experimental_type { type_id: TFT_PRODUCT args { type_id: TFT_TENSOR } } }\n";
    FILE *file = fopen(path, "wb");
    CHECK(file != nullptr && fwrite(text, 1, sizeof text - 1, file) == sizeof text - 1);
    fclose(file);
    CHECK_OK(mr_model_open(path, nullptr, &model, &error));
    CHECK_OK(mr_graph_write_file(mr_model_graph(model), path, MR_GRAPH_FILE_BINARY, &error));
    check_file(path, PRODUCT, 9);
    mr_model_free(model);
}
