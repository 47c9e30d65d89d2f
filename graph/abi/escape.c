/* Whether a run can keep a reference to the memory of a feed, in a queue for example. If it cannot, feeds are borrowed
 * from the caller instead of being copied.
 *
 * Only stateful nodes keep values. Kernels that update variables in place read their other inputs and keep none. */
#include "graph/abi/runner.h"

#include <stdlib.h>

static bool keeps(const mr_node *node)
{
    if (node->def == nullptr) return true;
    if ((node->def->op->flags & MR_OP_STATEFUL) == 0 && node->def->op->writes == 0) return false;
    const mr_kernel *kernel = mr_kernel_find(node->op, MR_DEVICE_CPU, &node->attrs);
    if (kernel != nullptr && kernel->updates != 0) return false;
    for (int32_t i = 0; i < node->input_count; i++)
        if (!mr_output_is_ref(node->inputs[i]) && mr_output_dtype(node->inputs[i]) != MR_RESOURCE) return true;
    return false;
}

typedef struct walk {
    bool *seen; /* by id */
    const mr_node **stack;
    int32_t depth;
} walk;

static void visit(walk *w, const mr_node *node)
{
    if (w->seen[node->id]) return;
    w->seen[node->id] = true;
    w->stack[w->depth++] = node;
}

static bool is_fed(mr_output output, const mr_output *feeds, int32_t feed_count)
{
    for (int32_t i = 0; i < feed_count; i++)
        if (feeds[i].node == output.node && feeds[i].index == output.index) return true;
    return false;
}

bool mr_runner_feeds_end(const mr_graph *graph, const mr_output *feeds, int32_t feed_count, const mr_output *fetches,
                         int32_t fetch_count, mr_node *const *targets, int32_t target_count)
{
    size_t count = (size_t)graph->node_count + 1;
    walk w = {.seen = calloc(count, sizeof *w.seen), .stack = calloc(count, sizeof(mr_node *))};
    bool kept = w.seen == nullptr || w.stack == nullptr;
    for (int32_t i = 0; i < fetch_count && !kept; i++)
        if (!is_fed(fetches[i], feeds, feed_count)) visit(&w, fetches[i].node);
    for (int32_t i = 0; i < target_count && !kept; i++) visit(&w, targets[i]);
    while (!kept && w.depth > 0) {
        const mr_node *node = w.stack[--w.depth];
        kept = keeps(node);
        for (int32_t i = 0; i < node->input_count; i++)
            if (!is_fed(node->inputs[i], feeds, feed_count)) visit(&w, node->inputs[i].node);
        for (int32_t i = 0; i < node->control_count; i++) visit(&w, node->controls[i]);
    }
    free(w.seen);
    free(w.stack);
    return !kept;
}
