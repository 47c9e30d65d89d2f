/* Which nodes are computed row by row in one call with elementwise operators (see fuse_elementwise.c): reductions of
 * the last dimension, and what only moves their results; and what the result of each member of such a group has for a
 * row. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <string.h>

constexpr int64_t WIDTH_MIN = 32; /* shorter rows do not repay a call of a loop */

static bool is_float(mr_dtype dtype)
{
    return dtype == MR_FLOAT || dtype == MR_DOUBLE;
}

/* A constant that waits for nothing, so that it need not be an input; otherwise null. */
static const mr_tensor *constant_of(const mr_planner *planner, int32_t value)
{
    const mr_plan_value *v = &planner->values[value];
    if (v->kind != MR_VALUE_CONSTANT || v->home) return nullptr;
    return v->producer >= 0 && planner->nodes[v->producer].control_count > 0 ? nullptr : &v->constant;
}

static int64_t integer_at(const mr_tensor *tensor, int64_t i)
{
    return tensor->dtype == MR_INT64 ? ((const int64_t *)tensor->data)[i] : ((const int32_t *)tensor->data)[i];
}

/* Whether the only axis is the last one. */
static bool is_last_axis(const mr_tensor *axes, int64_t rank)
{
    if (!axes || mr_tensor_count(axes) != 1) return false;
    return integer_at(axes, 0) == rank - 1 || integer_at(axes, 0) == -1;
}

/* Whether only the last dimension is repeated, that many times. */
static bool tiles_rows(const mr_tensor *multiples, int64_t rank, int64_t width)
{
    if (!multiples || mr_tensor_count(multiples) != rank) return false;
    for (int64_t i = 0; i < rank; i++)
        if (integer_at(multiples, i) != (i < rank - 1 ? 1 : width)) return false;
    return true;
}

bool mr_plan_reduces_rows(const mr_planner *planner, const mr_plan_node *node)
{
    mr_elementwise loops;
    if (!node->kernel || !node->kernel->elementwise || node->input_count != 2 || node->output_count != 1) return false;
    const mr_plan_value *input = &planner->values[node->inputs[0]], *output = &planner->values[node->first_output];
    const int rank = input->shape.rank;
    if (!is_float(input->dtype) || !node->kernel->elementwise(input->dtype, &loops) || !loops.reduce) return false;
    if (rank < 2 || output->shape.rank < 0 || mr_shape_count(output->shape) == 1) return false;
    const int64_t width = input->shape.dims[rank - 1];
    return width >= WIDTH_MIN && width <= MR_ROW_BYTES_MAX / (int64_t)mr_dtype_size(input->dtype) &&
           is_last_axis(constant_of(planner, node->inputs[1]), rank);
}

bool mr_plan_moves_rows(const mr_planner *planner, const mr_plan_node *node)
{
    static const char *const ops[] = {"ExpandDims", "Identity", "Reshape", "Squeeze", "StopGradient", "Tile"};
    if (!node->kernel || node->kernel->elementwise || node->input_count < 1 || node->input_count > 2 ||
        node->output_count != 1 || !is_float(planner->values[node->first_output].dtype))
        return false;
    if (node->input_count == 2 && !constant_of(planner, node->inputs[1])) return false;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(node->kernel->op, ops[i]) == 0) return true;
    return false;
}

/* ---- Forms ---- */

/* The member that computes the value, of the first `count`; -1: none. */
static int32_t member_of(const mr_planner *planner, const int32_t *members, int32_t count, int32_t value)
{
    const mr_plan_value *v = &planner->values[value];
    for (int32_t i = 0; i < count && v->kind == MR_VALUE_OUTPUT; i++)
        if (members[i] == v->producer) return i;
    return -1;
}

bool mr_plan_is_one_of_row(const mr_planner *planner, const int32_t *members, const mr_row_form *forms, int32_t count,
                           int32_t value)
{
    const int32_t from = member_of(planner, members, count, value);
    const mr_shape *shape = &planner->values[value].shape;
    if (from >= 0) return forms[from] != MR_ROW_WHOLE;
    return shape->rank == 0 || (shape->rank > 0 && shape->dims[shape->rank - 1] == 1);
}

/* Whether each operand of an elementwise node with one element for each row has that, too, in the same form, or one for
 * all. */
static bool has_narrow_operands(const mr_planner *planner, const int32_t *members, const mr_row_form *forms,
                                int32_t member, mr_row_form form)
{
    const mr_plan_node *node = &planner->nodes[members[member]];
    const mr_shape shape = planner->values[node->first_output].shape;
    for (int32_t i = 0; i < node->input_count; i++) {
        const int32_t from = member_of(planner, members, member, node->inputs[i]);
        const mr_shape operand = planner->values[node->inputs[i]].shape;
        if (from >= 0 ? forms[from] != form : !mr_shape_equal(operand, shape) && mr_shape_count(operand) != 1)
            return false;
    }
    return true;
}

/* The form of an elementwise node whose result has whole rows. */
static bool find_wide_form(const mr_planner *planner, const int32_t *members, mr_row_form *forms, int32_t member,
                           mr_shape wide)
{
    const mr_plan_node *node = &planner->nodes[members[member]];
    const mr_shape kept = mr_narrow_shape(wide, MR_ROW_KEPT);
    bool is_repeated = true, fits = true;
    for (int32_t i = 0; i < node->input_count; i++) {
        const int32_t value = node->inputs[i], from = member_of(planner, members, member, value);
        const mr_shape operand = planner->values[value].shape;
        if (operand.rank < 0 || (from >= 0 && forms[from] == MR_ROW_DROPPED)) return false;
        is_repeated &= mr_plan_is_one_of_row(planner, members, forms, member, value);
        fits &= from >= 0 || mr_shape_count(operand) == 1 || mr_shape_equal(operand, kept);
    }
    forms[member] = is_repeated ? MR_ROW_REPEATED : MR_ROW_WHOLE;
    return !is_repeated || fits;
}

static bool find_form(const mr_planner *planner, const int32_t *members, mr_row_form *forms, int32_t member,
                      mr_shape wide)
{
    const mr_plan_node *node = &planner->nodes[members[member]];
    const mr_shape shape = planner->values[node->first_output].shape;
    const mr_shape kept = mr_narrow_shape(wide, MR_ROW_KEPT), dropped = mr_narrow_shape(wide, MR_ROW_DROPPED);
    const int32_t from = member_of(planner, members, member, node->inputs[0]);
    const bool is_wide = mr_shape_equal(shape, wide);
    if (!is_wide && !mr_shape_equal(shape, kept) && !mr_shape_equal(shape, dropped)) return false;
    const mr_row_form narrow = mr_shape_equal(shape, kept) ? MR_ROW_KEPT : MR_ROW_DROPPED;
    if (mr_plan_reduces_rows(planner, node)) {
        forms[member] = narrow;
        return !is_wide && mr_shape_equal(planner->values[node->inputs[0]].shape, wide) &&
               (from < 0 || forms[from] == MR_ROW_WHOLE);
    }
    if (mr_plan_moves_rows(planner, node)) {
        forms[member] = is_wide ? MR_ROW_REPEATED : narrow;
        if (from < 0 || forms[from] == MR_ROW_WHOLE || forms[from] == MR_ROW_REPEATED) return false;
        if (strcmp(node->kernel->op, "Tile") != 0) return !is_wide;
        return forms[from] == MR_ROW_KEPT && is_wide &&
               tiles_rows(constant_of(planner, node->inputs[1]), wide.rank, wide.dims[wide.rank - 1]);
    }
    if (is_wide) return find_wide_form(planner, members, forms, member, wide);
    forms[member] = narrow;
    return has_narrow_operands(planner, members, forms, member, narrow);
}

bool mr_plan_row_forms(const mr_planner *planner, const int32_t *members, int32_t count, mr_shape wide,
                       mr_row_form *forms)
{
    assert(wide.rank >= 2 && count <= MR_ELEMENTWISE_STEPS_MAX);
    for (int32_t i = 0; i < count; i++)
        if (!find_form(planner, members, forms, i, wide)) return false;
    return true;
}
