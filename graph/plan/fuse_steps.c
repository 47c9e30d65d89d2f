/* Fuse steps: an optimizer multiplies its gradient by a number itself, where the gradient was multiplied before, as
 * clipping by the global norm does: one pass over the gradient instead of two, and no second gradient in memory. Floats
 * and doubles on the CPU. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <string.h>

typedef struct steps {
    mr_planner *planner;
    int32_t *uses; /* by value, see plan.h */
    bool *awaited; /* by node */
} steps;

/* The node that computes the value, if the step alone reads it and nothing else depends on the node; or null. */
static const mr_plan_node *producer_of(const steps *s, const mr_plan_node *step, int32_t value)
{
    const mr_plan_value *v = &s->planner->values[value];
    if (v->kind != MR_VALUE_OUTPUT || s->uses[value] != 1) return nullptr;
    const mr_plan_node *node = &s->planner->nodes[v->producer];
    if (!node->live || !node->kernel || node->is_copy || !node->node->def || node->attrs || node->pinned)
        return nullptr;
    if (node->control_count > 0 || s->awaited[v->producer] || node->outputs_at) return nullptr;
    const bool fits =
        node->region == step->region && node->condition == step->condition && node->device == step->device;
    return fits ? node : nullptr;
}

/* Whether the step can read the value later than the product did: no update changes it meanwhile. */
static bool may_read(const steps *s, int32_t value, mr_dtype dtype)
{
    const mr_plan_value *v = &s->planner->values[value];
    return !v->is_ref && v->dtype == dtype && mr_plan_variable_of(s->planner, value) < 0;
}

/* The product of a tensor and a number that is the step's gradient, also through nodes that pass it on; or null.
 * number  which input is the number */
static const mr_plan_node *product_of(const steps *s, const mr_plan_node *step, int32_t gradient, int *number)
{
    const mr_plan_node *node = producer_of(s, step, gradient);
    while (node && node->node->def->op->flags & MR_OP_IDENTITY) node = producer_of(s, step, node->inputs[0]);
    if (!node || mr_plan_fusion_role(node) != MR_FUSION_MUL || node->input_count != 2) return nullptr;
    const mr_dtype dtype = s->planner->values[node->first_output].dtype;
    if (dtype != MR_FLOAT && dtype != MR_DOUBLE) return nullptr;
    for (int i = 0; i < 2; i++)
        if (!may_read(s, node->inputs[i], dtype)) return nullptr;
    *number = s->planner->values[node->inputs[0]].shape.rank == 0 ? 0 : 1;
    return s->planner->values[node->inputs[*number]].shape.rank == 0 ? node : nullptr;
}

static mr_status fuse_step(steps *s, mr_plan_node *step, mr_error *error)
{
    mr_planner *planner = s->planner;
    if (!step->live || !step->kernel || step->is_copy || step->attrs || !step->node->def) return MR_OK;
    const int32_t gradient = step->node->def->op->fusion.gradient;
    if (gradient == 0 || step->device->kind != MR_DEVICE_CPU) return MR_OK;
    int number;
    const mr_plan_node *product = product_of(s, step, step->inputs[gradient], &number);
    if (!product) return MR_OK;
    const size_t count = (size_t)step->input_count;
    int32_t *inputs = MR_ARENA_NEW(&planner->arena, int32_t, count + 1);
    bool *refs = MR_ARENA_NEW(&planner->arena, bool, count + 1);
    if (!inputs || !refs) return mr_fail_memory(error, (count + 1) * sizeof *inputs);
    memcpy(inputs, step->inputs, count * sizeof *inputs);
    memcpy(refs, step->input_is_ref, count * sizeof *refs);
    assert(gradient < step->input_count && !refs[gradient] && mr_plan_updates(step, 0));
    for (int32_t value = inputs[gradient]; value != product->first_output;) {
        assert(s->uses[value] == 1 && planner->values[value].producer >= 0);
        mr_plan_node *passes_on = &planner->nodes[planner->values[value].producer];
        passes_on->live = false;
        value = passes_on->inputs[0];
    }
    planner->nodes[planner->values[product->first_output].producer].live = false;
    inputs[gradient] = product->inputs[1 - number];
    inputs[count] = product->inputs[number];
    step->inputs = inputs;
    step->input_is_ref = refs;
    step->input_count++;
    return MR_OK;
}

mr_status mr_plan_fuse_steps(mr_planner *planner, mr_error *error)
{
    steps s = {.planner = planner};
    MR_TRY(mr_plan_uses(planner, &s.uses, error));
    MR_TRY(mr_plan_awaited(planner, &s.awaited, error));
    for (int32_t i = 0; i < planner->node_count; i++) MR_TRY(fuse_step(&s, &planner->nodes[i], error));
    return MR_OK;
}
