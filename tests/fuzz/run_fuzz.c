/* Fuzz target: running a GraphDef. Runs the node "init" if there is one, then the last node twice, without feeds and
 * without the right to write files, for a short time each. Whatever the graph says, a run ends with results that have
 * the dtypes of the outputs, or with one sentence.
 *
 * Allocations of more than 64 MiB fail, so that a graph with large tensors does not exhaust memory. */
#include <millrace/graph.h>
#include <millrace/session.h>

#include <stdlib.h>
#include <string.h>

constexpr int OUTPUTS_MAX = 8;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "max_allocation_size_mb=64";
}

static void run(mr_session *session, mr_node *node)
{
    mr_output fetches[OUTPUTS_MAX];
    mr_tensor results[OUTPUTS_MAX] = {0};
    int32_t count = 0;
    for (int32_t i = 0; i < mr_node_output_count(node) && count < OUTPUTS_MAX; i++)
        if (mr_dtype_size(mr_output_dtype((mr_output){node, i})) > 0) fetches[count++] = (mr_output){node, i};
    mr_error error = {0};
    mr_status status = mr_session_run_with(session, MR_OPTIONS(mr_run_options, .timeout_ms = 100), MR_NO_FEEDS,
                                           (mr_outputs){fetches, count}, results, &node, 1, &error);
    if (status != MR_OK && error.message[0] == '\0') abort();
    for (int32_t i = 0; i < count; i++) {
        mr_dtype dtype = mr_output_dtype(fetches[i]);
        if (status == MR_OK && results[i].dtype != dtype && results[i].dtype != dtype % MR_DTYPE_REF) abort();
        mr_tensor_deinit(&results[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    mr_error error = {0};
    mr_graph *graph = mr_graph_new();
    mr_session *session = nullptr;
    if (graph && mr_graph_import(graph, bytes, size_bytes, nullptr, &error) == MR_OK &&
        mr_session_new(graph, MR_OPTIONS(mr_session_options, .threads = 1, .read_only = true, .timeout_ms = 100),
                       &session, &error) == MR_OK) {
        int32_t count = mr_graph_node_count(graph);
        for (int32_t i = 0; i < count; i++)
            if (strcmp(mr_node_name(mr_graph_node(graph, i)), "init") == 0) run(session, mr_graph_node(graph, i));
        for (int i = 0; i < 2 && count > 0; i++) run(session, mr_graph_node(graph, count - 1));
    }
    mr_session_free(session);
    mr_graph_free(graph);
    return 0;
}
