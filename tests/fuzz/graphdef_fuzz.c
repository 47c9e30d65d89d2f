/* Fuzz target: GraphDef and MetaGraphDef. An imported graph can be exported, and the exported graph can be imported
 * again with the same number of nodes. */
#include <millrace/graph.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static void again(const mr_graph *graph)
{
    mr_tensor exported = {0};
    mr_error error = {0};
    if (mr_graph_export(graph, &exported, &error) != MR_OK) return;
    mr_string text = mr_tensor_strings(&exported)[0];
    mr_graph *copy = mr_graph_new();
    if (mr_graph_import(copy, text.data, text.size_bytes, nullptr, &error) != MR_OK) abort();
    if (mr_graph_node_count(copy) != mr_graph_node_count(graph)) abort();
    mr_graph_free(copy);
    mr_tensor_deinit(&exported);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    mr_error error = {0};
    mr_graph *graph = mr_graph_new();
    if (size_bytes == 0 || graph == nullptr) {
        mr_graph_free(graph);
        return 0;
    }
    const char *prefix = bytes[0] & 1 ? "prefix" : nullptr;
    mr_status status = bytes[0] & 2 ? mr_graph_import_meta(graph, bytes + 1, size_bytes - 1, &error)
                                    : mr_graph_import(graph, bytes + 1, size_bytes - 1, prefix, &error);
    if (status == MR_OK)
        again(graph);
    else if (error.message[0] == '\0' || mr_graph_node_count(graph) != 0)
        abort();
    mr_graph_free(graph);
    return 0;
}
