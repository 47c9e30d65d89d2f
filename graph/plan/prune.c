/* Prune: selects what fetches and targets need, backwards, cut at feeds.
 *
 * Plan nodes are in the order of the graph, so that the result of all later passes depends only on the graph. As in
 * TensorFlow, a control edge from a placeholder that is fed is not followed. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <string.h>

static int32_t feed_of(const mr_signature *signature, const mr_node *node, int32_t index)
{
    for (int32_t i = 0; i < signature->feed_count; i++)
        if (signature->feeds[i].node == node && signature->feeds[i].index == index) return i;
    return -1;
}

static bool is_fed_placeholder(const mr_signature *signature, const mr_node *node)
{
    return mr_node_has_flag(node, MR_OP_PLACEHOLDER) && feed_of(signature, node, 0) >= 0;
}

/* Sets needed[id] for the nodes on the stack and all that they need. */
static void mark(const mr_signature *signature, mr_node **stack, int32_t count, bool *needed)
{
    while (count > 0) {
        const mr_node *node = stack[--count];
        assert(needed[node->id]);
        for (int32_t i = 0; i < node->input_count; i++) {
            mr_output input = node->inputs[i];
            if (needed[input.node->id] || feed_of(signature, input.node, input.index) >= 0) continue;
            needed[input.node->id] = true;
            stack[count++] = input.node;
        }
        for (int32_t i = 0; i < node->control_count; i++) {
            mr_node *before = node->controls[i];
            if (needed[before->id] || is_fed_placeholder(signature, before)) continue;
            needed[before->id] = true;
            stack[count++] = before;
        }
    }
}

/* The inputs that the operator takes as references. */
static mr_status input_refs(mr_planner *planner, const mr_node *node, const bool **refs, mr_error *error)
{
    bool *is_ref = MR_ARENA_NEW(&planner->arena, bool, (size_t)node->input_count + 1);
    if (!is_ref) return mr_fail_memory(error, (size_t)node->input_count);
    int32_t input = 0;
    for (int32_t i = 0; i < node->def->input_count; i++) {
        int32_t count = 0;
        MR_TRY(mr_argument_count(&node->def->inputs[i], &node->attrs, &count, error));
        for (int32_t j = 0; j < count && input < node->input_count; j++) is_ref[input++] = node->def->inputs[i].is_ref;
    }
    *refs = is_ref;
    return MR_OK;
}

static mr_status add_node(mr_planner *planner, const mr_node *node, int32_t *plan_of, mr_error *error)
{
    if (!node->def)
        return mr_fail(error, MR_UNIMPLEMENTED, "%s: unknown operator %s, so the node cannot run", node->name,
                       node->op);
    assert(plan_of[node->id] == -1);
    mr_plan_node made = {.node = node, .live = true};
    MR_TRY(input_refs(planner, node, &made.input_is_ref, error));
    made.input_count = node->input_count;
    made.control_count = 0;
    made.inputs = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)node->input_count + 1);
    made.controls = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)node->control_count + 1);
    if (!made.inputs || !made.controls) return mr_fail_memory(error, (size_t)node->input_count);
    made.output_count = node->output_count;
    made.first_output = planner->value_count;
    MR_TRY(mr_plan_add_node(planner, made, &plan_of[node->id], error));
    for (int32_t i = 0; i < node->output_count; i++) {
        const mr_node_output *output = &node->outputs[i];
        int32_t value;
        MR_TRY(mr_plan_add_value(planner,
                                 (mr_plan_value){.kind = MR_VALUE_OUTPUT,
                                                 .producer = plan_of[node->id],
                                                 .index = i,
                                                 .dtype = output->dtype,
                                                 .is_ref = output->is_ref,
                                                 .shape = output->shape},
                                 &value, error));
    }
    return MR_OK;
}

/* The value of an output: the feed's, otherwise the node's own. */
static int32_t value_of(const mr_planner *planner, const int32_t *plan_of, mr_output output)
{
    int32_t feed = feed_of(planner->signature, output.node, output.index);
    if (feed >= 0) return feed;
    assert(plan_of[output.node->id] >= 0 && output.index < output.node->output_count);
    return planner->nodes[plan_of[output.node->id]].first_output + output.index;
}

static mr_status connect(mr_planner *planner, mr_plan_node *made, const int32_t *plan_of, mr_error *error)
{
    const mr_node *node = made->node;
    for (int32_t i = 0; i < node->input_count; i++) {
        made->inputs[i] = value_of(planner, plan_of, node->inputs[i]);
        assert(made->inputs[i] >= 0 && made->inputs[i] < planner->value_count);
        if (made->input_is_ref[i] && !planner->values[made->inputs[i]].is_ref)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "%s (%s): input %d is a reference to a variable, so %s:%d cannot be fed", node->name,
                           node->op, (int)i, node->inputs[i].node->name, (int)node->inputs[i].index);
    }
    for (int32_t i = 0; i < node->control_count; i++) {
        int32_t before = plan_of[node->controls[i]->id];
        if (before >= 0) made->controls[made->control_count++] = before;
    }
    return MR_OK;
}

static mr_status add_feeds(mr_planner *planner, mr_error *error)
{
    const mr_signature *signature = planner->signature;
    for (int32_t i = 0; i < signature->feed_count; i++) {
        mr_output output = signature->feeds[i];
        const mr_node_output *known = &output.node->outputs[output.index];
        int32_t value;
        MR_TRY(mr_plan_add_value(
            planner,
            (mr_plan_value){
                .kind = MR_VALUE_FEED, .producer = -1, .index = i, .dtype = known->dtype, .shape = known->shape},
            &value, error));
        assert(value == i); /* the first values are the feeds */
    }
    return MR_OK;
}

mr_status mr_plan_prune(mr_planner *planner, mr_error *error)
{
    const mr_signature *signature = planner->signature;
    const mr_graph *graph = planner->context->graph;
    size_t count = (size_t)graph->node_count + 1;
    bool *needed = MR_ARENA_NEW(&planner->arena, bool, count);
    mr_node **stack = MR_ARENA_NEW(&planner->arena, mr_node *, count);
    int32_t *plan_of = MR_ARENA_NEW(&planner->arena, int32_t, count);
    planner->fetch_values = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)signature->fetch_count + 1);
    if (!needed || !stack || !plan_of || !planner->fetch_values) return mr_fail_memory(error, count);

    int32_t depth = 0;
    for (int32_t i = 0; i < signature->fetch_count; i++) {
        mr_node *node = signature->fetches[i].node;
        if (feed_of(signature, node, signature->fetches[i].index) >= 0 || needed[node->id]) continue;
        needed[node->id] = true;
        stack[depth++] = node;
    }
    for (int32_t i = 0; i < signature->target_count; i++) {
        mr_node *node = signature->targets[i];
        if (needed[node->id] || is_fed_placeholder(signature, node)) continue;
        needed[node->id] = true;
        stack[depth++] = node;
    }
    mark(signature, stack, depth, needed);

    MR_TRY(add_feeds(planner, error));
    for (int32_t i = 0; i < graph->node_count; i++) {
        plan_of[i] = -1;
        if (needed[i]) MR_TRY(add_node(planner, graph->nodes[i], plan_of, error));
    }
    for (int32_t i = 0; i < planner->node_count; i++) MR_TRY(connect(planner, &planner->nodes[i], plan_of, error));
    for (int32_t i = 0; i < signature->fetch_count; i++) {
        planner->fetch_values[i] = value_of(planner, plan_of, signature->fetches[i]);
        planner->values[planner->fetch_values[i]].fetched = true;
    }
    for (int32_t i = 0; i < signature->target_count; i++) {
        int32_t target = plan_of[signature->targets[i]->id];
        if (target >= 0) planner->nodes[target].pinned = true;
    }
    return MR_OK;
}
