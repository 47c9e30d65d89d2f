/* What a pass asks before it lets another node, at another time, do the work of a node. */
#include "graph/plan/plan.h"

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

/* Edges to the nodes that come directly after each node. Dead nodes have them, too. */
static mr_status find_consumers(mr_planner *planner, mr_plan_updates_order *u, mr_error *error)
{
    const size_t count = (size_t)planner->node_count;
    size_t edges = 0;
    u->begins = MR_ARENA_NEW(&planner->arena, int32_t, count + 2);
    if (!u->begins) return mr_fail_memory(error, count * sizeof *u->begins);
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < planner->node_count; i++) {
            const mr_plan_node *node = &planner->nodes[i];
            for (int32_t j = 0; j < node->input_count + node->control_count; j++) {
                const int32_t before = j < node->input_count ? planner->values[node->inputs[j]].producer
                                                             : node->controls[j - node->input_count];
                if (before < 0) continue;
                if (pass == 0)
                    edges++, u->begins[before + 2]++;
                else
                    u->consumers[u->begins[before + 1]++] = i;
            }
        }
        if (pass > 0) break;
        for (size_t i = 2; i < count + 2; i++) u->begins[i] += u->begins[i - 1];
        u->consumers = MR_ARENA_NEW(&planner->arena, int32_t, edges + 1);
        if (!u->consumers) return mr_fail_memory(error, edges * sizeof *u->consumers);
    }
    return MR_OK;
}

/* What updates reference variables, the loops in which it happens, and what comes after. */
static mr_status find_updates(mr_planner *planner, mr_plan_updates_order *u, mr_error *error)
{
    int32_t *order, count;
    MR_TRY(mr_plan_topological(planner, &order, &count, error));
    for (int32_t i = 0; i < count; i++) {
        const mr_plan_node *node = &planner->nodes[order[i]];
        if (!updates_reference(planner, node)) continue;
        u->updates[order[i]] = true;
        u->updaters[u->updater_count++] = order[i];
        for (int32_t r = node->region; r > 0 && !u->regions[r]; r = planner->regions[r].parent) u->regions[r] = true;
    }
    for (int32_t i = 0; i < count; i++) {
        const mr_plan_node *node = &planner->nodes[order[i]];
        bool is_after = node->region > 0 && u->regions[node->region];
        for (int32_t j = 0; !is_after && j < node->input_count + node->control_count; j++) {
            int32_t before = j < node->input_count ? planner->values[node->inputs[j]].producer
                                                   : node->controls[j - node->input_count];
            if (before < 0) continue;
            is_after = u->after[before] || u->updates[before];
        }
        u->after[order[i]] = is_after;
    }
    return MR_OK;
}

mr_status mr_plan_find_updates(mr_planner *planner, mr_plan_updates_order *u, mr_error *error)
{
    mr_arena *arena = &planner->arena;
    const size_t nodes = (size_t)planner->node_count + 1;
    *u = (mr_plan_updates_order){.after = MR_ARENA_NEW(arena, bool, nodes),
                                 .updates = MR_ARENA_NEW(arena, bool, nodes),
                                 .regions = MR_ARENA_NEW(arena, bool, (size_t)planner->region_count + 1),
                                 .updaters = MR_ARENA_NEW(arena, int32_t, nodes),
                                 .visited = MR_ARENA_NEW(arena, int32_t, nodes),
                                 .stack = MR_ARENA_NEW(arena, int32_t, nodes)};
    if (!u->after || !u->updates || !u->regions || !u->updaters || !u->visited || !u->stack)
        return mr_fail_memory(error, nodes * sizeof *u->stack);
    MR_TRY(find_updates(planner, u, error));
    return find_consumers(planner, u, error);
}

static bool updates_variable(const mr_planner *planner, int32_t index, int32_t handle)
{
    const mr_plan_node *node = &planner->nodes[index];
    for (int32_t i = 0; i < node->input_count; i++)
        if (mr_plan_updates(node, i) && mr_plan_handle(planner, node->inputs[i]) == handle) return true;
    return false;
}

/* Whether `node` comes after `before`. Also if that is followed by very many nodes, which are not examined. */
static bool comes_after(mr_plan_updates_order *u, int32_t before, int32_t node)
{
    constexpr int32_t EXAMINED_MAX = 4096;
    int32_t depth = 0, examined = 0;
    u->search++;
    u->visited[before] = u->search;
    u->stack[depth++] = before;
    while (depth > 0) {
        const int32_t at = u->stack[--depth];
        for (int32_t i = u->begins[at]; i < u->begins[at + 1]; i++) {
            const int32_t next = u->consumers[i];
            if (next == node || ++examined > EXAMINED_MAX) return true;
            if (u->visited[next] == u->search) continue;
            u->visited[next] = u->search;
            u->stack[depth++] = next;
        }
    }
    return false;
}

bool mr_plan_reads_freely(const mr_planner *planner, mr_plan_updates_order *u, int32_t node, int32_t value)
{
    if (!u->after[node]) return true;
    const int32_t handle = mr_plan_variable_of(planner, value), region = planner->nodes[node].region;
    if (handle < 0 || planner->values[handle].dtype == MR_RESOURCE) return true; /* what it was read from is kept */
    if (region > 0 && u->regions[region]) return false;
    for (int32_t i = 0; i < u->updater_count; i++) {
        const int32_t updater = u->updaters[i];
        if (!updates_variable(planner, updater, handle)) continue;
        if (updater == node || comes_after(u, updater, node)) return false;
    }
    return true;
}
