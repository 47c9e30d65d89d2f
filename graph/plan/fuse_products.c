/* Fuse products: what the steps of an unrolled recurrent network do again and again with one matrix of weights.
 *
 * The gradient of the weights is AddN of one product for each step, whose inner dimension is the batch. It becomes one
 * product whose inner dimension is all steps: the sums stay in registers instead of one matrix for each step.
 * The gradients of the steps' inputs are products with the transposed weights, which the product would rearrange in every
 * step: they are transposed once, in a node of their own. Only floats on the CPU, and only values without conditions. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <string.h>

constexpr int32_t TRANSPOSED_USES_MIN = 3;

typedef struct products {
    mr_planner *planner;
    int32_t *uses;         /* by value: number of inputs that use it, plus one for a fetch */
    int32_t *transposed;   /* by value: number of products that take it transposed */
    int32_t *transpose_of; /* by value: its transpose; -1 */
} products;

/* The node if it is a product of floats on the CPU that nothing but its inputs and readers depends on; or null. */
static mr_plan_node *product_of(const products *p, int32_t node)
{
    mr_plan_node *product = &p->planner->nodes[node];
    if (!product->live || !product->kernel || product->is_copy || !product->node->def) return nullptr;
    if (!product->node->def->op->fusion.sum || product->device->kind != MR_DEVICE_CPU) return nullptr;
    if (product->control_count > 0 || product->pinned || product->attrs || product->input_count != 2) return nullptr;
    for (int i = 0; i < 2; i++)
        if (p->planner->values[product->inputs[i]].is_ref) return nullptr;
    return p->planner->values[product->first_output].dtype == MR_FLOAT ? product : nullptr;
}

static bool attr_of(const mr_plan_node *product, const char *name)
{
    return mr_attr_bool_or(&product->node->attrs, name, false);
}

/* ---- Sums ---- */

/* The product that the sum alone reads: a transposed, b not, so that the rows of all products can follow each other. */
static mr_plan_node *addend_of(const products *p, const mr_plan_node *sum, int32_t input)
{
    const mr_plan_value *value = &p->planner->values[sum->inputs[input]];
    if (value->kind != MR_VALUE_OUTPUT || p->uses[sum->inputs[input]] != 1) return nullptr;
    mr_plan_node *product = product_of(p, value->producer);
    if (!product || !attr_of(product, "transpose_a") || attr_of(product, "transpose_b")) return nullptr;
    if (product->region != sum->region || product->condition != sum->condition) return nullptr;
    return product->device == sum->device ? product : nullptr;
}

static mr_status fuse_sum(products *p, mr_plan_node *sum, mr_error *error)
{
    if (!sum->live || !sum->kernel || sum->input_count < 2 || sum->attrs || sum->is_copy) return MR_OK;
    const mr_plan_node *first = addend_of(p, sum, 0);
    if (!first || strcmp(sum->kernel->op, "AddN") != 0) return MR_OK;
    const int32_t count = sum->input_count;
    for (int32_t i = 1; i < count; i++)
        if (!addend_of(p, sum, i)) return MR_OK;
    const mr_kernel *kernel = mr_kernel_find(first->node->def->op->fusion.sum, sum->device->kind, &first->node->attrs);
    if (!kernel) return MR_OK;
    int32_t *inputs = MR_ARENA_NEW(&p->planner->arena, int32_t, 2 * (size_t)count);
    bool *refs = MR_ARENA_NEW(&p->planner->arena, bool, 2 * (size_t)count);
    if (!inputs || !refs) return mr_fail_memory(error, (size_t)count * 2 * sizeof *inputs);
    for (int32_t i = 0; i < count; i++) {
        mr_plan_node *product = addend_of(p, sum, i);
        inputs[i] = product->inputs[0];
        inputs[count + i] = product->inputs[1];
    }
    for (int32_t i = 0; i < count; i++) p->planner->nodes[p->planner->values[sum->inputs[i]].producer].live = false;
    sum->kernel = kernel;
    sum->inputs = inputs;
    sum->input_is_ref = refs;
    sum->input_count = 2 * count;
    return MR_OK;
}

/* ---- Transposes ---- */

static bool takes_transposed(const products *p, int32_t node)
{
    const mr_plan_node *product = product_of(p, node);
    if (!product || !product->node->def->op->fusion.transpose || !attr_of(product, "transpose_b")) return false;
    const mr_plan_value *b = &p->planner->values[product->inputs[1]];
    return b->region == product->region && b->condition == product->condition && b->kind != MR_VALUE_CONSTANT;
}

/* The product's attrs, with transpose_b false. */
static const mr_attrs *plain_attrs(products *p, const mr_attrs *attrs)
{
    mr_arena *arena = &p->planner->kept;
    mr_attrs *made = MR_ARENA_NEW(arena, mr_attrs, 1);
    mr_attr *items = MR_ARENA_NEW(arena, mr_attr, (size_t)attrs->count + 1);
    mr_attr_value *value = MR_ARENA_NEW(arena, mr_attr_value, 1);
    if (!made || !items || !value) return nullptr;
    value->boolean = false;
    for (int32_t i = 0; i < attrs->count; i++) {
        items[i] = attrs->items[i];
        if (strcmp(items[i].name, "transpose_b") == 0) items[i].values = value;
    }
    *made = (mr_attrs){.count = attrs->count, .items = items};
    return made;
}

static mr_status add_transpose(products *p, int32_t first, const mr_kernel *kernel, mr_error *error)
{
    static const bool no_refs[1] = {false};
    mr_planner *planner = p->planner;
    const int32_t b = planner->nodes[first].inputs[1];
    mr_shape shape = planner->values[b].shape;
    int32_t *inputs = MR_ARENA_NEW(&planner->arena, int32_t, 1), node, value;
    if (!inputs) return mr_fail_memory(error, sizeof *inputs);
    inputs[0] = b;
    if (shape.rank == 2) shape = MR_SHAPE(shape.dims[1], shape.dims[0]);
    mr_plan_node transpose = planner->nodes[first];
    transpose.kernel = kernel;
    transpose.input_count = 1;
    transpose.inputs = inputs;
    transpose.input_is_ref = no_refs;
    transpose.first_output = planner->value_count;
    MR_TRY(mr_plan_add_node(planner, transpose, &node, error));
    const mr_plan_value made = {.kind = MR_VALUE_OUTPUT,
                                .producer = node,
                                .dtype = MR_FLOAT,
                                .shape = shape,
                                .region = transpose.region,
                                .condition = transpose.condition};
    MR_TRY(mr_plan_add_value(planner, made, &value, error));
    assert(value == transpose.first_output);
    p->transpose_of[b] = value;
    return MR_OK;
}

static mr_status use_transpose(products *p, int32_t node, mr_error *error)
{
    mr_plan_node *product = &p->planner->nodes[node];
    const int32_t b = product->inputs[1];
    if (p->transposed[b] < TRANSPOSED_USES_MIN) return MR_OK;
    const mr_kernel *kernel =
        mr_kernel_find(product->node->def->op->fusion.transpose, product->device->kind, &product->node->attrs);
    if (!kernel) return MR_OK;
    if (p->transpose_of[b] < 0) MR_TRY(add_transpose(p, node, kernel, error));
    product = &p->planner->nodes[node]; /* the list may have moved */
    int32_t *inputs = MR_ARENA_NEW(&p->planner->arena, int32_t, 2);
    const mr_attrs *attrs = plain_attrs(p, &product->node->attrs);
    if (!inputs || !attrs) return mr_fail_memory(error, sizeof *inputs * 2);
    inputs[0] = product->inputs[0];
    inputs[1] = p->transpose_of[b];
    product->inputs = inputs;
    product->attrs = attrs;
    return MR_OK;
}

mr_status mr_plan_fuse_products(mr_planner *planner, mr_error *error)
{
    const int32_t nodes = planner->node_count, values = planner->value_count;
    products p = {.planner = planner};
    p.uses = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)values + 1);
    p.transposed = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)values + 1);
    p.transpose_of = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)values + 1);
    if (!p.uses || !p.transposed || !p.transpose_of) return mr_fail_memory(error, (size_t)values * 12);
    for (int32_t i = 0; i < values; i++) {
        p.uses[i] = planner->values[i].fetched ? 1 : 0;
        p.transposed[i] = 0;
        p.transpose_of[i] = -1;
    }
    for (int32_t i = 0; i < nodes; i++) {
        if (takes_transposed(&p, i)) p.transposed[planner->nodes[i].inputs[1]]++;
        for (int32_t j = 0; planner->nodes[i].live && j < planner->nodes[i].input_count; j++)
            p.uses[planner->nodes[i].inputs[j]]++;
    }
    for (int32_t i = 0; i < nodes; i++) MR_TRY(fuse_sum(&p, &planner->nodes[i], error));
    for (int32_t i = 0; i < nodes; i++)
        if (takes_transposed(&p, i)) MR_TRY(use_transpose(&p, i, error));
    return MR_OK;
}
