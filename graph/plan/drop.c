/* Drop: does not compute what nobody uses.
 *
 * Other nodes may wait for a node by control edges alone: tf.tuple and tf.group hold gradients back in this way until
 * all have been computed, also the gradients of what is fed. If such a node is a function of its inputs, it is replaced
 * by an order without work: those that wait for it wait for its inputs. As in TensorFlow, its errors do not occur then;
 * operators whose purpose are errors are stateful here. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <string.h>

bool mr_plan_depends_on_state(const mr_planner *planner, int32_t index)
{
    const mr_plan_value *value = &planner->values[index];
    return value->is_ref || value->dtype == MR_RESOURCE || value->dtype == MR_VARIANT;
}

bool mr_plan_may_drop(const mr_planner *planner, const mr_plan_node *node)
{
    constexpr uint32_t EFFECTS = MR_OP_STATEFUL | MR_OP_PLACEHOLDER | MR_OP_CALL | MR_OP_WAITS;
    if (!node->kernel || node->is_copy || node->pinned || node->input_count == 0 || node->output_count == 0)
        return false;
    if (node->node->def->op->flags & EFFECTS || mr_node_flow(node->node) != MR_FLOW_NONE) return false;
    for (int32_t i = 0; i < node->input_count; i++) {
        const mr_plan_value *value = &planner->values[node->inputs[i]];
        if (mr_plan_depends_on_state(planner, node->inputs[i])) return false;
        if (value->producer < 0) continue;
        /* What reads a Switch also says that a branch is taken; a control edge from the Switch would not. */
        if (mr_node_flow(planner->nodes[value->producer].node) != MR_FLOW_NONE) return false;
        if (value->region != node->region || value->condition != node->condition) return false;
    }
    for (int32_t i = 0; i < node->output_count; i++)
        if (mr_plan_depends_on_state(planner, node->first_output + i)) return false;
    return true;
}

/* Its control edges are then also those from the producers of its inputs. */
mr_status mr_plan_drop_node(mr_planner *planner, mr_plan_node *node, mr_error *error)
{
    size_t count = (size_t)node->control_count + (size_t)node->input_count;
    int32_t *controls = MR_ARENA_NEW(&planner->arena, int32_t, count);
    if (!controls) return mr_fail_memory(error, count * sizeof *controls);
    if (node->control_count > 0) memcpy(controls, node->controls, (size_t)node->control_count * sizeof *controls);
    for (int32_t i = 0; i < node->input_count; i++) {
        int32_t producer = planner->values[node->inputs[i]].producer;
        if (producer >= 0) controls[node->control_count++] = producer;
    }
    node->controls = controls;
    node->kernel = nullptr;
    node->input_count = 0;
    node->output_count = 0;
    return MR_OK;
}

mr_status mr_plan_drop(mr_planner *planner, mr_error *error)
{
    int32_t *order, count;
    MR_TRY(mr_plan_topological(planner, &order, &count, error));
    int32_t *uses = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)planner->node_count + 1); /* of a node's outputs */
    if (!uses) return mr_fail_memory(error, (size_t)planner->node_count * sizeof *uses);
    for (int32_t i = 0; i < count; i++) {
        const mr_plan_node *node = &planner->nodes[order[i]];
        for (int32_t j = 0; j < node->input_count; j++) {
            int32_t producer = planner->values[node->inputs[j]].producer;
            if (producer >= 0) uses[producer]++;
        }
    }
    for (int32_t i = 0; i < planner->signature->fetch_count; i++) {
        int32_t producer = planner->values[planner->fetch_values[i]].producer;
        if (producer >= 0) uses[producer]++;
    }
    for (int32_t i = count - 1; i >= 0; i--) {
        mr_plan_node *node = &planner->nodes[order[i]];
        if (uses[order[i]] > 0 || !mr_plan_may_drop(planner, node)) continue;
        for (int32_t j = 0; j < node->input_count; j++) {
            int32_t producer = planner->values[node->inputs[j]].producer;
            if (producer < 0) continue;
            uses[producer]--;
            assert(uses[producer] >= 0);
        }
        MR_TRY(mr_plan_drop_node(planner, node, error));
    }
    mr_plan_sweep(planner);
    return MR_OK;
}
