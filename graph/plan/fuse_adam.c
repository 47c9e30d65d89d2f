/* Fuse Adam: what AdamOptimizer builds for a variable with a sparse gradient becomes one call, which reads and writes
 * the variable and its two slots once.
 *
 *   Assign(m, m * beta1), then ScatterAdd(m, indices, ...)
 *   Assign(v, v * beta2), then ScatterAdd(v, indices, ...)
 *   AssignSub(variable, rate * m / (sqrt(v) + epsilon))
 *
 * Nothing else may read the slots in the same run, or wait for a part of it without waiting for the whole. Floats and
 * doubles on the CPU, variables by reference of a known shape. The bits are those of the separate nodes. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <string.h>

constexpr int READS = 3; /* of a slot's handle: by what is decayed, by Assign and by ScatterAdd */
constexpr int MEMBERS_MAX = 10, CONTROLS_MAX = 32;

/* The inputs of the kernel. */
typedef enum operand {
    VARIABLE,
    SLOT_M,
    SLOT_V,
    RATE,
    BETA_M,
    BETA_V,
    EPSILON,
    INDICES,
    ROWS_M,
    ROWS_V,
    OPERANDS,
} operand;

typedef struct match {
    mr_planner *planner;
    const int32_t *uses; /* by value, see plan.h */
    int32_t step;        /* AssignSub */
    int32_t members[MEMBERS_MAX], member_count;
    int32_t controls[CONTROLS_MAX], control_count; /* what the members wait for */
    int32_t inputs[OPERANDS];
    int32_t scatters[2]; /* nodes, of m and v */
} match;

static bool add_controls(match *m, const mr_plan_node *node)
{
    for (int32_t i = 0; i < node->control_count; i++) {
        if (m->control_count == CONTROLS_MAX) return false;
        m->controls[m->control_count++] = node->controls[i];
    }
    return true;
}

/* Whether the node has that role, and the step can do its work. */
static bool is_part(const match *m, const mr_plan_node *node, mr_fusion_role role)
{
    const mr_plan_node *step = &m->planner->nodes[m->step];
    return mr_plan_fusion_role(node) == role && !node->pinned && !node->outputs_at && node->region == step->region &&
           node->condition == step->condition && node->device == step->device;
}

static bool add_member(match *m, int32_t index)
{
    assert(m->member_count < MEMBERS_MAX);
    m->members[m->member_count++] = index;
    return add_controls(m, &m->planner->nodes[index]);
}

/* The node with that role that computes the value for one reader and becomes a member; or null. */
static const mr_plan_node *member_of(match *m, int32_t value, mr_fusion_role role)
{
    const mr_plan_value *v = &m->planner->values[value];
    if (v->kind != MR_VALUE_OUTPUT || m->uses[value] != 1) return nullptr;
    const mr_plan_node *node = &m->planner->nodes[v->producer];
    return is_part(m, node, role) && add_member(m, v->producer) ? node : nullptr;
}

static bool is_member(const match *m, int32_t node)
{
    for (int32_t i = 0; i < m->member_count; i++)
        if (m->members[i] == node) return true;
    return false;
}

/* Whether the step can read the value later than the member did. */
static bool may_read(const match *m, int32_t value)
{
    return !m->planner->values[value].is_ref && mr_plan_variable_of(m->planner, value) < 0;
}

static bool is_number(const match *m, int32_t value)
{
    return may_read(m, value) && m->planner->values[value].shape.rank == 0;
}

/* The operand of a node with two that is not the number, which is stored; -1: neither is one. */
static int32_t other_than_number(match *m, const mr_plan_node *node, operand number)
{
    if (node->input_count != 2) return -1;
    const int at = is_number(m, node->inputs[0]) ? 0 : 1;
    if (!is_number(m, node->inputs[at])) return -1;
    m->inputs[number] = node->inputs[at];
    return node->inputs[1 - at];
}

/* Whether the value is that of the variable, passed on to one reader. */
static bool reads_alone(match *m, int32_t value, int32_t handle)
{
    const mr_planner *planner = m->planner;
    if (mr_plan_variable_of(planner, value) != handle) return false;
    while (!planner->values[value].is_ref) {
        const mr_plan_node *node = &planner->nodes[planner->values[value].producer];
        if (m->uses[value] != 1 || !mr_node_has_flag(node->node, MR_OP_IDENTITY) || !add_controls(m, node))
            return false;
        value = node->inputs[0];
    }
    return planner->values[value].kind == MR_VALUE_CONSTANT;
}

static int32_t reads_of(const match *m, int32_t handle)
{
    int32_t count = 0;
    for (int32_t i = 0; i < m->planner->value_count; i++) {
        const mr_plan_value *v = &m->planner->values[i];
        if (v->is_ref && v->kind == MR_VALUE_CONSTANT && v->named == handle) count += m->uses[i];
    }
    return count;
}

/* A slot after it was decayed and rows were added to it. */
static bool match_slot(match *m, int32_t value, operand slot)
{
    const mr_planner *planner = m->planner;
    const bool is_m = slot == SLOT_M;
    const mr_plan_node *scatter = member_of(m, value, MR_FUSION_SCATTER_ADD);
    if (!scatter || scatter->input_count != 3) return false;
    const int32_t handle = mr_plan_handle(planner, scatter->inputs[0]);
    if (handle < 0 || planner->values[scatter->inputs[0]].kind != MR_VALUE_CONSTANT || reads_of(m, handle) != READS)
        return false;
    m->scatters[is_m ? 0 : 1] = planner->values[value].producer;
    m->inputs[slot] = scatter->inputs[0];
    m->inputs[is_m ? ROWS_M : ROWS_V] = scatter->inputs[2];
    if (is_m) m->inputs[INDICES] = scatter->inputs[1];
    if (m->inputs[INDICES] != scatter->inputs[1] || !may_read(m, scatter->inputs[1]) ||
        !may_read(m, scatter->inputs[2]))
        return false;
    for (int32_t i = 0; i < scatter->control_count; i++) {
        const int32_t index = scatter->controls[i];
        const mr_plan_node *assign = &planner->nodes[index];
        if (!is_part(m, assign, MR_FUSION_ASSIGN) || assign->input_count != 2 ||
            mr_plan_handle(planner, assign->inputs[0]) != handle || m->uses[assign->first_output] != 0)
            continue;
        if (!add_member(m, index)) return false;
        const mr_plan_node *decayed = member_of(m, assign->inputs[1], MR_FUSION_MUL);
        const int32_t read = decayed ? other_than_number(m, decayed, is_m ? BETA_M : BETA_V) : -1;
        return read >= 0 && reads_alone(m, read, handle);
    }
    return false;
}

/* Whether whatever waits for a member is a member or waits for the step, too. */
static bool waits_for_all(const match *m)
{
    for (int32_t i = 0; i < m->planner->node_count; i++) {
        const mr_plan_node *node = &m->planner->nodes[i];
        if (!node->live || is_member(m, i) || i == m->step) continue;
        bool waits = false, waits_for_step = false;
        for (int32_t j = 0; j < node->control_count; j++) {
            waits |= is_member(m, node->controls[j]);
            waits_for_step |= node->controls[j] == m->step;
        }
        if (waits && !waits_for_step) return false;
    }
    return true;
}

static bool match_step(match *m)
{
    const mr_planner *planner = m->planner;
    const mr_plan_node *step = &planner->nodes[m->step];
    if (!step->live || !step->kernel || step->attrs || step->is_copy || step->input_count != 2 || !step->node->def ||
        !step->node->def->op->fusion.adam)
        return false;
    const mr_plan_node *quotient = member_of(m, step->inputs[1], MR_FUSION_DIV);
    if (!quotient || quotient->input_count != 2) return false;
    const mr_plan_node *product = member_of(m, quotient->inputs[0], MR_FUSION_MUL);
    const mr_plan_node *sum = product ? member_of(m, quotient->inputs[1], MR_FUSION_ADD) : nullptr;
    const int32_t moved = sum ? other_than_number(m, product, RATE) : -1;
    const int32_t root = moved >= 0 ? other_than_number(m, sum, EPSILON) : -1;
    const mr_plan_node *square_root = root >= 0 ? member_of(m, root, MR_FUSION_SQRT) : nullptr;
    if (!square_root || !match_slot(m, moved, SLOT_M) || !match_slot(m, square_root->inputs[0], SLOT_V)) return false;
    m->inputs[VARIABLE] = step->inputs[0];
    const mr_dtype dtype = planner->values[step->inputs[0]].dtype;
    const mr_shape shape = planner->values[step->inputs[0]].shape;
    int32_t handles[3];
    for (int i = 0; i < 3; i++) {
        handles[i] = mr_plan_handle(planner, m->inputs[VARIABLE + i]);
        if (!mr_shape_equal(planner->values[m->inputs[VARIABLE + i]].shape, shape)) return false;
        for (int j = 0; j < i; j++)
            if (handles[i] == handles[j]) return false;
    }
    for (int i = 0; i < OPERANDS; i++)
        if (i != INDICES && planner->values[m->inputs[i]].dtype != dtype) return false;
    return handles[0] >= 0 && shape.rank > 0 && mr_shape_count(shape) >= 0 && waits_for_all(m);
}

/* The step's attrs and the names of the nodes that report bad rows. */
static const mr_attrs *make_attrs(const match *m)
{
    mr_planner *planner = m->planner;
    mr_attr_value *names = MR_ARENA_NEW(&planner->kept, mr_attr_value, 2);
    if (!names) return nullptr;
    for (int i = 0; i < 2; i++) names[i].string = mr_string_from(planner->nodes[m->scatters[i]].node->name);
    return mr_plan_attrs_with(planner, &planner->nodes[m->step].node->attrs,
                              (mr_attr){"nodes", MR_ATTR_STRING, true, 2, names});
}

static mr_status replace(const match *m, mr_error *error)
{
    mr_planner *planner = m->planner;
    mr_plan_node *step = &planner->nodes[m->step];
    const size_t controls = (size_t)step->control_count + (size_t)m->control_count;
    int32_t *inputs = MR_ARENA_NEW(&planner->arena, int32_t, OPERANDS);
    int32_t *waits_for = MR_ARENA_NEW(&planner->arena, int32_t, controls + 1);
    bool *refs = MR_ARENA_NEW(&planner->arena, bool, OPERANDS);
    const mr_attrs *attrs = make_attrs(m);
    if (!inputs || !waits_for || !refs || !attrs) return mr_fail_memory(error, controls * sizeof *waits_for);
    const mr_kernel *kernel = mr_kernel_find(step->node->def->op->fusion.adam, step->device->kind, attrs);
    if (!kernel) return MR_OK;
    int32_t count = 0;
    for (int32_t i = 0; i < step->control_count; i++) waits_for[count++] = step->controls[i];
    for (int32_t i = 0; i < m->control_count; i++)
        if (!is_member(m, m->controls[i])) waits_for[count++] = m->controls[i];
    memcpy(inputs, m->inputs, sizeof m->inputs);
    for (int i = 0; i < OPERANDS; i++) refs[i] = i <= SLOT_V;
    step->kernel = kernel;
    step->attrs = attrs;
    step->inputs = inputs;
    step->input_is_ref = refs;
    step->input_count = OPERANDS;
    step->controls = waits_for;
    step->control_count = count;
    for (int32_t i = 0; i < planner->node_count; i++)
        for (int32_t j = 0; j < planner->nodes[i].control_count; j++)
            if (is_member(m, planner->nodes[i].controls[j])) planner->nodes[i].controls[j] = m->step;
    for (int32_t i = 0; i < m->member_count; i++) planner->nodes[m->members[i]].live = false;
    return MR_OK;
}

mr_status mr_plan_fuse_adam(mr_planner *planner, mr_error *error)
{
    int32_t *uses;
    MR_TRY(mr_plan_uses(planner, &uses, error));
    bool is_changed = false;
    for (int32_t i = 0; i < planner->node_count; i++) {
        match m = {.planner = planner, .uses = uses, .step = i};
        if (!match_step(&m)) continue;
        MR_TRY(replace(&m, error));
        is_changed = true;
    }
    if (is_changed) mr_plan_sweep(planner);
    return MR_OK;
}
