/* Conditionals: Switch leads values into the branches, Merge takes the results of the one that ran. */
#include "base/options.h"
#include "graph/ir/flow.h"
#include <millrace/control_flow.h>
#include <millrace/ops.h>

struct mr_cond {
    mr_graph *graph;
    mr_flow_context *branches[2]; /* by the value of pred */
    mr_flow_context *before;
    int32_t count;
    mr_output *first; /* results of the branch of true, inside of it */
    bool is_in_else, is_ended;
};

/* A result of the branch: computed there, or led through from outside. Never a bare reference. */
static mr_output branch_result(mr_flow_context *context, mr_output result)
{
    return mr_flow_capture(context, result, mr_graph_scope(context->graph));
}

mr_cond *mr_cond_begin_(mr_graph *graph, mr_output pred, const mr_cond_options *given)
{
    if (graph == nullptr) return nullptr;
    mr_cond_options options;
    mr_error error = {0};
    mr_status status = MR_OPTIONS_READ(mr_cond_options, &options, given, &error);
    if (status != MR_OK) (void)mr_graph_fail(graph, status, "%s", error.message);
    mr_cond *cond = MR_ARENA_NEW(&graph->arena, mr_cond, 1);
    if (cond == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a conditional");
        return nullptr;
    }
    *cond = (mr_cond){.graph = graph, .before = graph->flow};
    mr_graph_push_scope(graph, status == MR_OK && options.name != nullptr ? options.name : "cond");
    if (mr_graph_status(graph, nullptr) == MR_OK && pred.node != nullptr && mr_output_dtype(pred) != MR_BOOL)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "pred must be a bool scalar, not %s",
                            mr_dtype_name(mr_output_dtype(pred)));
    mr_switch_outputs taken = mr_switch(graph, pred, pred);
    mr_output pivots[2];
    pivots[1] = mr_identity(graph, taken.output_true, .name = "switch_t");
    pivots[0] = mr_identity(graph, taken.output_false, .name = "switch_f");
    mr_output value = mr_identity(graph, pred, .name = "pred_id");
    for (int32_t i = 0; i < 2; i++) {
        mr_flow_context *branch = mr_flow_new(graph, false);
        if (branch == nullptr) continue;
        branch->pred = value;
        branch->branch = i;
        branch->pivot = pivots[i];
        mr_flow_set_value(branch, value, value);
        mr_flow_set_value(branch, pivots[i], pivots[i]);
        cond->branches[i] = branch;
    }
    (void)mr_flow_enter(graph, cond->branches[1]);
    return cond;
}

void mr_cond_else(mr_cond *cond, mr_outputs results)
{
    if (cond == nullptr) return;
    mr_graph *graph = cond->graph;
    if (cond->is_in_else || cond->is_ended) {
        (void)mr_graph_fail(graph, MR_FAILED_PRECONDITION, "mr_cond_else: the first branch has ended already");
        return;
    }
    cond->is_in_else = true;
    mr_flow_check_current(graph, cond->branches[1], "mr_cond_else");
    bool is_good = results.count >= 0 && (results.items != nullptr || results.count == 0);
    if (!is_good) (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_cond_else: the list of results is not valid");
    cond->count = is_good ? results.count : 0;
    cond->first = MR_ARENA_NEW(&graph->arena, mr_output, (size_t)cond->count + 1);
    if (cond->first == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a conditional");
        cond->count = 0;
    }
    for (int32_t i = 0; i < cond->count && mr_graph_status(graph, nullptr) == MR_OK; i++)
        cond->first[i] = branch_result(cond->branches[1], results.items[i]);
    (void)mr_flow_enter(graph, cond->branches[0]);
}

/* Merges both results, with the operator for references only if both are. */
static mr_output merge(mr_graph *graph, mr_output if_false, mr_output if_true)
{
    if (mr_output_is_ref(if_false) != mr_output_is_ref(if_true)) {
        mr_output *ref = mr_output_is_ref(if_false) ? &if_false : &if_true;
        mr_flow_context *before = mr_flow_enter(graph, ref->node->flow);
        *ref = mr_identity(graph, *ref);
        (void)mr_flow_enter(graph, before);
    }
    mr_node_builder builder = mr_node_begin(graph, mr_output_is_ref(if_false) ? "RefMerge" : "Merge", "Merge");
    /* The results are from inside: the Merge is what leads them out. */
    mr_flow_context *before = mr_flow_enter(graph, nullptr);
    mr_node_add_input_list(&builder, MR_OUTPUTS(if_false, if_true));
    (void)mr_flow_enter(graph, before);
    return mr_node_finish(&builder);
}

void mr_cond_end(mr_cond *cond, mr_outputs results, mr_output *merged)
{
    if (cond == nullptr) return;
    mr_graph *graph = cond->graph;
    if (!cond->is_in_else || cond->is_ended) {
        (void)mr_graph_fail(graph, MR_FAILED_PRECONDITION,
                            cond->is_ended ? "mr_cond_end: the conditional has ended already"
                                           : "mr_cond_end: the conditional has no second branch; call mr_cond_else");
        if (cond->is_ended) return;
    }
    cond->is_ended = true;
    mr_flow_check_current(graph, cond->branches[0], "mr_cond_end");
    if (mr_graph_status(graph, nullptr) == MR_OK &&
        (results.count != cond->count || (results.count > 0 && (results.items == nullptr || merged == nullptr))))
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "the branches have %d and %d results", cond->count,
                            results.count);
    (void)mr_flow_enter(graph, cond->branches[0]);
    mr_output *second = MR_ARENA_NEW(&graph->arena, mr_output, (size_t)cond->count + 1);
    for (int32_t i = 0; i < cond->count && second != nullptr && results.items != nullptr; i++) {
        if (mr_graph_status(graph, nullptr) != MR_OK) break;
        second[i] = branch_result(cond->branches[0], results.items[i]);
        mr_dtype dtypes[2] = {mr_output_dtype(second[i]), mr_output_dtype(cond->first[i])};
        if (mr_graph_status(graph, nullptr) == MR_OK && dtypes[0] != dtypes[1])
            (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                                "result %d is %s in the branch of true and %s in that of false", i,
                                mr_dtype_name(dtypes[1]), mr_dtype_name(dtypes[0]));
    }
    if (second == nullptr) (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a conditional");
    (void)mr_flow_enter(graph, cond->before);
    for (int32_t i = 0; i < results.count && merged != nullptr; i++)
        merged[i] = mr_graph_status(graph, nullptr) == MR_OK ? merge(graph, second[i], cond->first[i])
                                                             : mr_graph_failed_output(graph);
    mr_graph_pop_scope(graph);
}
