/* The common functions of the passes: they grow the planner's lists, find handles, and determine liveness. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <string.h>

/* Makes room for one more element of a list in an arena. The old list stays allocated until the arena is freed. */
static mr_status grow(mr_arena *arena, void **items, int32_t count, int32_t *capacity, size_t size_bytes,
                      mr_error *error)
{
    assert(count >= 0 && count <= *capacity && (*capacity == 0 || *items));
    if (count < *capacity) return MR_OK;
    int32_t wanted = *capacity ? 2 * *capacity : 64;
    void *larger = mr_arena_alloc_array(arena, (size_t)wanted, size_bytes);
    if (!larger) return mr_fail_memory(error, (size_t)wanted * size_bytes);
    if (count > 0) memcpy(larger, *items, (size_t)count * size_bytes);
    *items = larger;
    *capacity = wanted;
    return MR_OK;
}

mr_status mr_plan_add_value(mr_planner *planner, mr_plan_value value, int32_t *index, mr_error *error)
{
    MR_TRY(grow(&planner->arena, (void **)&planner->values, planner->value_count, &planner->value_capacity,
                sizeof value, error));
    assert(value.producer >= -1 && value.producer < planner->node_count);
    *index = planner->value_count++;
    planner->values[*index] = value;
    return MR_OK;
}

mr_status mr_plan_add_node(mr_planner *planner, mr_plan_node node, int32_t *index, mr_error *error)
{
    MR_TRY(grow(&planner->arena, (void **)&planner->nodes, planner->node_count, &planner->node_capacity, sizeof node,
                error));
    assert(node.node && node.first_output <= planner->value_count && node.input_count >= 0 && node.control_count >= 0);
    *index = planner->node_count++;
    if (node.place == 0) node.place = *index;
    planner->nodes[*index] = node;
    return MR_OK;
}

const mr_attrs *mr_plan_attrs_with(mr_planner *planner, const mr_attrs *attrs, mr_attr attr)
{
    mr_arena *arena = &planner->kept;
    mr_attrs *made = MR_ARENA_NEW(arena, mr_attrs, 1);
    mr_attr *items = MR_ARENA_NEW(arena, mr_attr, (size_t)attrs->count + 1);
    if (!made || !items) return nullptr;
    int32_t count = 0, i = 0;
    for (; i < attrs->count && strcmp(attrs->items[i].name, attr.name) < 0; i++) items[count++] = attrs->items[i];
    assert(i == attrs->count || strcmp(attrs->items[i].name, attr.name) != 0);
    items[count++] = attr;
    for (; i < attrs->count; i++) items[count++] = attrs->items[i];
    *made = (mr_attrs){.count = count, .items = items};
    return made;
}

mr_status mr_plan_second_name(mr_planner *planner, const mr_node *node, const char **name, mr_error *error)
{
    *name = mr_arena_printf(&planner->kept, "Recomputed/%s", node->name);
    for (int32_t i = 1; *name && mr_graph_find(planner->context->graph, *name); i++)
        *name = mr_arena_printf(&planner->kept, "Recomputed/%s_%d", node->name, (int)i);
    return *name ? MR_OK : mr_fail_memory(error, strlen(node->name));
}

size_t mr_plan_value_bytes(const mr_plan_value *value)
{
    int64_t count = mr_shape_count(value->shape);
    size_t size = mr_dtype_size(value->dtype);
    if (count <= 0 || size == 0 || (uint64_t)count > SIZE_MAX / 2 / size) return 0;
    return (size_t)count * size;
}

int32_t mr_plan_handle(const mr_planner *planner, int32_t value)
{
    for (int32_t hops = 0; hops < 64; hops++) {
        assert(value >= 0 && value < planner->value_count);
        const mr_plan_value *v = &planner->values[value];
        if (!v->is_ref && v->dtype != MR_RESOURCE) return -1;
        if (v->producer < 0) return -1;
        const mr_plan_node *node = &planner->nodes[v->producer];
        if (mr_state_find(node->node->op)) return v->is_ref && v->kind == MR_VALUE_CONSTANT ? v->named : value;
        if (node->input_count < 1) return -1;
        value = node->inputs[0];
    }
    return -1;
}

bool mr_plan_is_back_edge(const mr_planner *planner, const mr_plan_node *node, int32_t input)
{
    if (node->is_copy || mr_node_flow(node->node) != MR_FLOW_MERGE) return false;
    int32_t producer = planner->values[node->inputs[input]].producer;
    return producer >= 0 && !planner->nodes[producer].is_copy &&
           mr_node_flow(planner->nodes[producer].node) == MR_FLOW_NEXT_ITERATION;
}

bool mr_plan_is_gate(const mr_planner *planner, const mr_plan_node *node)
{
    return planner->has_flow && !node->is_copy && !node->kernel && node->control_count > 0;
}

int32_t mr_plan_variable_of(const mr_planner *planner, int32_t value)
{
    for (int32_t hops = 0; hops < 64; hops++) {
        const mr_plan_value *v = &planner->values[value];
        if (v->is_ref || v->dtype == MR_RESOURCE) return mr_plan_handle(planner, value);
        if (v->kind != MR_VALUE_OUTPUT) return -1;
        const mr_plan_node *producer = &planner->nodes[v->producer];
        if (producer->is_copy || !mr_node_has_flag(producer->node, MR_OP_VIEW)) return -1;
        value = producer->inputs[0];
    }
    return -1;
}

int32_t mr_plan_guard_node(const mr_planner *planner)
{
    int32_t guard = planner->signature->guard;
    if (guard < 0) return -1;
    const mr_plan_value *value = &planner->values[planner->fetch_values[guard]];
    return value->kind == MR_VALUE_OUTPUT && !value->is_ref ? value->producer : -1;
}

int32_t mr_plan_predicate(const mr_planner *planner, const mr_plan_node *node)
{
    int32_t value = node->inputs[1];
    for (int32_t hops = 0; hops < 64; hops++) {
        const mr_plan_value *v = &planner->values[value];
        if (v->kind != MR_VALUE_OUTPUT || v->is_ref) return value;
        const mr_plan_node *producer = &planner->nodes[v->producer];
        if (producer->is_copy || producer->control_count > 0 || !mr_node_has_flag(producer->node, MR_OP_VIEW))
            return value;
        const mr_plan_value *source = &planner->values[producer->inputs[0]];
        if (source->is_ref || source->dtype != MR_BOOL || source->region != v->region) return value;
        value = producer->inputs[0];
    }
    return value;
}

void mr_plan_sweep(mr_planner *planner)
{
    int32_t *stack = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)planner->node_count + 1);
    if (!stack) return; /* everything stays live, which is slower but correct */
    int32_t depth = 0;
    for (int32_t i = 0; i < planner->node_count; i++) {
        planner->nodes[i].live = planner->nodes[i].pinned;
        if (planner->nodes[i].pinned) stack[depth++] = i;
    }
    for (int32_t i = 0; i < planner->signature->fetch_count; i++) {
        int32_t producer = planner->values[planner->fetch_values[i]].producer;
        if (producer < 0 || planner->nodes[producer].live) continue;
        planner->nodes[producer].live = true;
        stack[depth++] = producer;
    }
    while (depth > 0) {
        assert(depth <= planner->node_count);
        const mr_plan_node *node = &planner->nodes[stack[--depth]];
        assert(node->live);
        for (int32_t j = 0; j < node->input_count + node->control_count; j++) {
            int32_t before = j < node->input_count ? planner->values[node->inputs[j]].producer
                                                   : node->controls[j - node->input_count];
            if (before < 0 || planner->nodes[before].live) continue;
            planner->nodes[before].live = true;
            stack[depth++] = before;
        }
    }
}
