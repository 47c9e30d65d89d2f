/* What a pass asks before it lets another node, at another time, do the work of a node. */
#include "graph/plan/plan.h"

#include <assert.h>

mr_status mr_plan_uses(mr_planner *planner, int32_t **uses, mr_error *error)
{
    *uses = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)planner->value_count + 1);
    if (!*uses) return mr_fail_memory(error, (size_t)planner->value_count * sizeof **uses);
    for (int32_t i = 0; i < planner->value_count; i++) (*uses)[i] = planner->values[i].fetched ? 1 : 0;
    for (int32_t i = 0; i < planner->node_count; i++) {
        const mr_plan_node *node = &planner->nodes[i];
        for (int32_t j = 0; node->live && j < node->input_count; j++) {
            assert(node->inputs[j] >= 0 && node->inputs[j] < planner->value_count);
            (*uses)[node->inputs[j]]++;
        }
    }
    return MR_OK;
}

mr_status mr_plan_awaited(mr_planner *planner, bool **awaited, mr_error *error)
{
    *awaited = MR_ARENA_NEW(&planner->arena, bool, (size_t)planner->node_count + 1);
    if (!*awaited) return mr_fail_memory(error, (size_t)planner->node_count);
    for (int32_t i = 0; i < planner->node_count; i++) {
        const mr_plan_node *node = &planner->nodes[i];
        for (int32_t j = 0; node->live && j < node->control_count; j++) (*awaited)[node->controls[j]] = true;
    }
    return MR_OK;
}

static bool updates_reference(const mr_planner *planner, const mr_plan_node *node)
{
    for (int32_t i = 0; i < node->input_count; i++)
        if (planner->values[node->inputs[i]].is_ref && mr_plan_updates(node, i)) return true;
    return false;
}

mr_status mr_plan_after_updates(mr_planner *planner, bool **after, mr_error *error)
{
    int32_t *order, count;
    MR_TRY(mr_plan_topological(planner, &order, &count, error));
    bool *found = MR_ARENA_NEW(&planner->arena, bool, (size_t)planner->node_count + 1);
    bool *updates = MR_ARENA_NEW(&planner->arena, bool, (size_t)planner->node_count + 1);
    bool *regions = MR_ARENA_NEW(&planner->arena, bool, (size_t)planner->region_count + 1); /* that have an update */
    if (!found || !updates || !regions) return mr_fail_memory(error, (size_t)planner->node_count);
    for (int32_t i = 0; i < count; i++) {
        const mr_plan_node *node = &planner->nodes[order[i]];
        updates[order[i]] = updates_reference(planner, node);
        if (node->region <= 0 || !updates[order[i]]) continue;
        for (int32_t r = node->region; r > 0 && !regions[r]; r = planner->regions[r].parent) regions[r] = true;
    }
    for (int32_t i = 0; i < count; i++) {
        const mr_plan_node *node = &planner->nodes[order[i]];
        bool is_after = node->region > 0 && regions[node->region];
        for (int32_t j = 0; !is_after && j < node->input_count + node->control_count; j++) {
            int32_t before = j < node->input_count ? planner->values[node->inputs[j]].producer
                                                   : node->controls[j - node->input_count];
            if (before < 0) continue;
            is_after = found[before] || updates[before];
        }
        found[order[i]] = is_after;
    }
    *after = found;
    return MR_OK;
}

bool mr_plan_reads_freely(const mr_planner *planner, const bool *after_updates, int32_t node, int32_t value)
{
    const int32_t handle = after_updates[node] ? mr_plan_variable_of(planner, value) : -1;
    return handle < 0 || planner->values[handle].dtype == MR_RESOURCE; /* what was read from a resource is kept */
}
