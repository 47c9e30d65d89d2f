/* Fuse heads: a batched product reads and writes matrices whose rows are not next to each other, so that nothing is
 * transposed for it. Attention splits the columns of [batch, rows, heads * columns] into heads, transposes to [batch,
 * heads, rows, columns], multiplies, and transposes the result back; its gradients do the same.
 *
 * A Transpose by [0, 2, 1, 3] is left out if only such products read its result, or if it reads a product alone, also
 * through nodes that pass the value on. Floats on the CPU. The bits are the same, except where a matrix has one row or
 * column: a product of vectors adds in another order. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <string.h>

typedef struct heads {
    mr_planner *planner;
    int32_t *uses;                 /* by value, see plan.h */
    int32_t *readable;             /* by value: uses by products that can read what is transposed */
    int32_t *reader;               /* by value: a node that reads it, or -1 */
    int32_t *instead;              /* by value: the value that replaces it */
    bool *awaited, *after_updates; /* by node, see plan.h */
} heads;

static bool runs_with(const mr_plan_node *a, const mr_plan_node *b)
{
    return a->region == b->region && a->condition == b->condition && a->device == b->device;
}

static bool is_float_on_cpu(const heads *h, const mr_plan_node *node)
{
    return node->device->kind == MR_DEVICE_CPU && !node->outputs_at && node->output_count == 1 &&
           h->planner->values[node->first_output].dtype == MR_FLOAT;
}

/* Whether the node swaps rows and heads, and nothing but its result matters. */
static bool is_swap(const heads *h, int32_t index)
{
    const mr_plan_node *node = &h->planner->nodes[index];
    if (mr_plan_fusion_role(node) != MR_FUSION_TRANSPOSE || !is_float_on_cpu(h, node) || node->input_count != 2 ||
        node->control_count > 0 || node->pinned || h->awaited[index])
        return false;
    const mr_plan_value *source = &h->planner->values[node->inputs[0]], *order = &h->planner->values[node->inputs[1]];
    if (source->is_ref || source->shape.rank != 4 || order->kind != MR_VALUE_CONSTANT || order->is_ref) return false;
    static const int64_t wanted[] = {0, 2, 1, 3};
    if (mr_tensor_count(&order->constant) != 4) return false;
    for (int i = 0; i < 4; i++) {
        const int64_t at = order->dtype == MR_INT32   ? ((const int32_t *)order->constant.data)[i]
                           : order->dtype == MR_INT64 ? ((const int64_t *)order->constant.data)[i]
                                                      : -1;
        if (at != wanted[i]) return false;
    }
    return true;
}

static const char *kernel_of(const heads *h, const mr_plan_node *node)
{
    if (!node->live || !node->kernel || node->attrs || node->is_copy || !node->node->def || node->input_count != 2)
        return nullptr;
    const char *name = node->node->def->op->fusion.heads;
    return name && is_float_on_cpu(h, node) ? name : nullptr;
}

/* The node that swaps rows and heads for that input of a product, or -1. */
static int32_t swap_before(const heads *h, int32_t product, int input)
{
    const mr_plan_node *node = &h->planner->nodes[product];
    const mr_plan_value *value = &h->planner->values[node->inputs[input]];
    if (value->kind != MR_VALUE_OUTPUT || !is_swap(h, value->producer)) return -1;
    const mr_plan_node *swap = &h->planner->nodes[value->producer];
    const bool fits =
        runs_with(swap, node) && mr_plan_reads_freely(h->planner, h->after_updates, product, swap->inputs[0]);
    return fits ? value->producer : -1;
}

/* The node that swaps them in the product's result, which nothing else reads, or -1. Between them are only nodes that
 * pass it on, which are visited. */
static int32_t swap_after(const heads *h, int32_t product, void (*visit)(const heads *h, int32_t value))
{
    const mr_plan_node *node = &h->planner->nodes[product];
    int32_t value = node->first_output;
    while (h->uses[value] == 1 && h->reader[value] >= 0) {
        const int32_t index = h->reader[value];
        const mr_plan_node *reader = &h->planner->nodes[index];
        if (!runs_with(reader, node)) return -1;
        if (visit) visit(h, value);
        if (is_swap(h, index) && reader->inputs[0] == value) return index;
        if (!reader->kernel || reader->is_copy || reader->pinned || !is_float_on_cpu(h, reader) ||
            !mr_node_has_flag(reader->node, MR_OP_IDENTITY) || mr_node_flow(reader->node) != MR_FLOW_NONE)
            return -1;
        value = reader->first_output;
    }
    return -1;
}

/* Whether all that read what a node has swapped are products, which read its input instead. */
static bool is_read_in_place(const heads *h, int32_t value)
{
    return h->readable[value] > 0 && h->readable[value] == h->uses[value];
}

static void swap_shape(const heads *h, int32_t value)
{
    mr_shape *shape = &h->planner->values[value].shape;
    assert(shape->rank == 4);
    const int64_t rows = shape->dims[1];
    shape->dims[1] = shape->dims[2];
    shape->dims[2] = rows;
}

static mr_status fuse_product(const heads *h, int32_t product, mr_error *error)
{
    static const char *const names[] = {"x_heads", "y_heads", "z_heads"};
    mr_planner *planner = h->planner;
    mr_plan_node *node = &planner->nodes[product];
    const char *name = kernel_of(h, node);
    if (!name) return MR_OK;
    int32_t swaps[3] = {swap_before(h, product, 0), swap_before(h, product, 1), swap_after(h, product, nullptr)};
    if (swaps[2] >= 0 && is_read_in_place(h, planner->nodes[swaps[2]].first_output)) swaps[2] = -1; /* already */
    int32_t *inputs = MR_ARENA_NEW(&planner->arena, int32_t, 2);
    mr_attr_value *yes = MR_ARENA_NEW(&planner->kept, mr_attr_value, 1);
    if (!inputs || !yes) return mr_fail_memory(error, sizeof *yes);
    yes->boolean = true;
    const mr_attrs *attrs = &node->node->attrs;
    for (int i = 0; i < 3; i++) {
        if (i < 2) inputs[i] = node->inputs[i];
        if (i < 2 && swaps[i] >= 0 && !is_read_in_place(h, node->inputs[i])) swaps[i] = -1;
        if (swaps[i] < 0) continue;
        attrs = mr_plan_attrs_with(planner, attrs, (mr_attr){names[i], MR_ATTR_BOOL, false, 1, yes});
        if (!attrs) return mr_fail_memory(error, sizeof *attrs);
        if (i < 2) inputs[i] = planner->nodes[swaps[i]].inputs[0];
    }
    if (attrs == &node->node->attrs) return MR_OK;
    const mr_kernel *kernel = mr_kernel_find(name, node->device->kind, attrs);
    if (!kernel) return MR_OK;
    if (swaps[2] >= 0) {
        const mr_plan_node *swap = &planner->nodes[swaps[2]];
        swap_after(h, product, swap_shape);
        h->instead[swap->first_output] = swap->inputs[0];
        planner->values[swap->inputs[0]].fetched = planner->values[swap->first_output].fetched;
        planner->values[swap->first_output].fetched = false;
    }
    node->kernel = kernel;
    node->attrs = attrs;
    node->inputs = inputs;
    return MR_OK;
}

mr_status mr_plan_fuse_heads(mr_planner *planner, mr_error *error)
{
    const size_t values = (size_t)planner->value_count + 1;
    heads h = {.planner = planner,
               .readable = MR_ARENA_NEW(&planner->arena, int32_t, values),
               .reader = MR_ARENA_NEW(&planner->arena, int32_t, values),
               .instead = MR_ARENA_NEW(&planner->arena, int32_t, values)};
    if (!h.readable || !h.reader || !h.instead) return mr_fail_memory(error, values * sizeof *h.instead);
    MR_TRY(mr_plan_uses(planner, &h.uses, error));
    MR_TRY(mr_plan_awaited(planner, &h.awaited, error));
    MR_TRY(mr_plan_after_updates(planner, &h.after_updates, error));
    for (int32_t i = 0; i < planner->value_count; i++) {
        h.instead[i] = i;
        h.reader[i] = -1;
    }
    for (int32_t i = 0; i < planner->node_count; i++) {
        const mr_plan_node *node = &planner->nodes[i];
        for (int32_t j = 0; node->live && j < node->input_count; j++) h.reader[node->inputs[j]] = i;
        for (int j = 0; kernel_of(&h, node) && j < 2; j++)
            if (swap_before(&h, i, j) >= 0) h.readable[node->inputs[j]]++;
    }
    for (int32_t i = 0; i < planner->node_count; i++) MR_TRY(fuse_product(&h, i, error));
    for (int32_t i = 0; i < planner->node_count; i++)
        for (int32_t j = 0; j < planner->nodes[i].input_count; j++)
            planner->nodes[i].inputs[j] = h.instead[planner->nodes[i].inputs[j]];
    for (int32_t i = 0; i < planner->signature->fetch_count; i++)
        planner->fetch_values[i] = h.instead[planner->fetch_values[i]];
    mr_plan_sweep(planner);
    return MR_OK;
}
