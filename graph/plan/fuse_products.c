/* Fuse products: what the steps of a recurrent network do again and again with one matrix of weights. Only floats on
 * the CPU.
 *
 * The gradient of the weights is a sum of one product for each step, whose inner dimension is the batch. AddN of these,
 * in an unrolled network, becomes one product whose inner dimension is all steps: the sums stay in registers instead
 * of one matrix for each step. AddV2 of the sum so far and a product, in a loop, becomes a product that adds to its
 * target. A vector that is added to every row (BiasAdd, AddV2) is added when the product is stored. AddN of gradients
 * of slices, each of a step's input, writes one tensor instead of one for each step.
 *
 * The gradients of the steps' inputs are products with the transposed weights, which the product would rearrange in
 * every step: they are transposed once, in a node of their own, which is before the loop if there is one.
 *
 * A product that becomes part of a sum reads its matrices later, and one with a transposed matrix earlier. That is not
 * done to a variable whose value changes meanwhile. What waited for the product then waits for its inputs. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <string.h>

constexpr int32_t TRANSPOSED_USES_MIN = 3;

typedef struct products {
    mr_planner *planner;
    int32_t *uses;                 /* by value, see plan.h */
    int32_t *transposed;           /* by value: number of products that take it transposed */
    int32_t *transpose_of;         /* by value: its transpose; -1 */
    bool *awaited, *after_updates; /* by node, see plan.h */
} products;

/* The node if it computes floats on the CPU, has a kernel for sums, and nothing but its inputs and readers depends on
 * it; or null. */
static mr_plan_node *summand_of(const products *p, int32_t node)
{
    mr_plan_node *found = &p->planner->nodes[node];
    if (!found->live || !found->kernel || found->is_copy || !found->node->def) return nullptr;
    if (!found->node->def->op->fusion.sum || found->device->kind != MR_DEVICE_CPU) return nullptr;
    if (found->control_count > 0 || found->pinned || found->attrs) return nullptr;
    for (int32_t i = 0; i < found->input_count; i++)
        if (p->planner->values[found->inputs[i]].is_ref) return nullptr;
    return p->planner->values[found->first_output].dtype == MR_FLOAT ? found : nullptr;
}

static bool is_product(const mr_plan_node *node)
{
    return node->node->def->op->fusion.transpose != nullptr;
}

/* The same of a product. */
static mr_plan_node *product_of(const products *p, int32_t node)
{
    mr_plan_node *found = summand_of(p, node);
    assert(!found || !is_product(found) || found->input_count == 2);
    return found && is_product(found) ? found : nullptr;
}

static bool attr_of(const mr_plan_node *product, const char *name)
{
    return mr_attr_bool_or(&product->node->attrs, name, false);
}

/* Whether the node can be computed at the time of the sum instead. */
static bool may_move(const products *p, const mr_plan_node *node, const mr_plan_node *sum)
{
    if (node->region != sum->region || node->condition != sum->condition || node->device != sum->device) return false;
    if (p->awaited[node - p->planner->nodes] && !mr_plan_may_drop(p->planner, node)) return false;
    const int32_t at = (int32_t)(sum - p->planner->nodes);
    for (int32_t i = 0; i < node->input_count; i++)
        if (!mr_plan_reads_freely(p->planner, p->after_updates, at, node->inputs[i])) return false;
    return true;
}

/* Removes a node that was moved. */
static mr_status remove_node(const products *p, mr_plan_node *node, mr_error *error)
{
    if (p->awaited[node - p->planner->nodes]) return mr_plan_drop_node(p->planner, node, error);
    node->live = false;
    return MR_OK;
}

/* ---- Sums ---- */

/* The node that the sum alone reads. Of products, a is transposed and b not, so that the rows of all can follow each
 * other. */
static mr_plan_node *addend_of(const products *p, const mr_plan_node *sum, int32_t input)
{
    const mr_plan_value *value = &p->planner->values[sum->inputs[input]];
    if (value->kind != MR_VALUE_OUTPUT || p->uses[sum->inputs[input]] != 1) return nullptr;
    mr_plan_node *found = summand_of(p, value->producer);
    if (!found || (is_product(found) && (!attr_of(found, "transpose_a") || attr_of(found, "transpose_b"))))
        return nullptr;
    return may_move(p, found, sum) ? found : nullptr;
}

static mr_status fuse_sum(products *p, mr_plan_node *sum, mr_error *error)
{
    if (mr_plan_fusion_role(sum) != MR_FUSION_SUM || sum->input_count < 2) return MR_OK;
    const mr_plan_node *first = addend_of(p, sum, 0);
    if (!first) return MR_OK;
    const int32_t count = sum->input_count, each = first->input_count;
    for (int32_t i = 1; i < count; i++) {
        const mr_plan_node *other = addend_of(p, sum, i);
        if (!other || other->node->def != first->node->def || !mr_plan_attrs_equal(other->node, first->node))
            return MR_OK;
        assert(other->input_count == each);
    }
    const mr_kernel *kernel = mr_kernel_find(first->node->def->op->fusion.sum, sum->device->kind, &first->node->attrs);
    if (!kernel) return MR_OK;
    const size_t total = (size_t)count * (size_t)each;
    int32_t *inputs = MR_ARENA_NEW(&p->planner->arena, int32_t, total);
    bool *refs = MR_ARENA_NEW(&p->planner->arena, bool, total);
    if (!inputs || !refs) return mr_fail_memory(error, total * sizeof *inputs);
    for (int32_t i = 0; i < count; i++) {
        const mr_plan_node *addend = addend_of(p, sum, i);
        for (int32_t j = 0; j < each; j++) inputs[j * count + i] = addend->inputs[j];
    }
    for (int32_t i = 0; i < count; i++)
        MR_TRY(remove_node(p, &p->planner->nodes[p->planner->values[sum->inputs[i]].producer], error));
    sum->kernel = kernel;
    sum->attrs = &first->node->attrs;
    sum->inputs = inputs;
    sum->input_is_ref = refs;
    sum->input_count = (int32_t)total;
    return MR_OK;
}

/* Whether two values may have the same shape, that of a matrix. If not, the kernel adds them as AddV2 does. */
static bool may_be_alike(const mr_plan_value *product, const mr_plan_value *other)
{
    if (other->is_ref || other->dtype != MR_FLOAT || other->kind == MR_VALUE_CONSTANT) return false;
    if (other->shape.rank >= 0 && other->shape.rank != 2) return false;
    for (int d = 0; d < 2 && other->shape.rank == 2 && product->shape.rank == 2; d++) {
        const int64_t left = product->shape.dims[d], right = other->shape.dims[d];
        if (left >= 0 && right >= 0 && left != right) return false;
    }
    return true;
}

/* Whether a sum of the product and this value adds a vector to every row. */
static bool is_bias(const mr_plan_value *product, const mr_plan_value *other)
{
    if (other->is_ref || other->dtype != MR_FLOAT || other->shape.rank != 1 || product->shape.rank != 2) return false;
    return other->shape.dims[0] >= 0 && other->shape.dims[0] == product->shape.dims[1];
}

/* The kernel that computes the sum of the product and its other operand; null: there is none. */
static const mr_kernel *kernel_for_sum(const products *p, const mr_plan_node *sum, const mr_plan_node *product,
                                       int32_t operand, bool *is_accumulation)
{
    const mr_plan_value *other = &p->planner->values[sum->inputs[operand]];
    const mr_plan_value *value = &p->planner->values[product->first_output];
    const mr_fusion *fusion = &product->node->def->op->fusion;
    const bool adds = mr_plan_fusion_role(sum) == MR_FUSION_ADD,
               adds_bias = mr_plan_fusion_role(sum) == MR_FUSION_BIAS_ADD;
    *is_accumulation = adds && may_be_alike(value, other);
    const char *op = nullptr;
    if (*is_accumulation)
        op = fusion->accumulate;
    else if ((adds && is_bias(value, other)) || (adds_bias && operand == 1 && !other->is_ref))
        op = fusion->bias;
    return op ? mr_kernel_find(op, sum->device->kind, &product->node->attrs) : nullptr;
}

/* sum = product + other. If they have the same shape the product adds to the other one's memory, if nothing else uses
 * it; a vector is added while the product is stored. */
static mr_status fuse_addition(products *p, mr_plan_node *sum, mr_error *error)
{
    if (mr_plan_fusion_role(sum) == MR_FUSION_NONE || sum->input_count != 2) return MR_OK;
    for (int i = 0; i < 2; i++) {
        const mr_plan_value *value = &p->planner->values[sum->inputs[i]];
        if (value->kind != MR_VALUE_OUTPUT || p->uses[sum->inputs[i]] != 1) continue;
        mr_plan_node *product = product_of(p, value->producer);
        if (!product || !may_move(p, product, sum)) continue;
        if (attr_of(product, "transpose_b")) continue; /* rather transposed once */
        bool is_accumulation;
        const mr_kernel *kernel = kernel_for_sum(p, sum, product, 1 - i, &is_accumulation);
        if (!kernel) continue;
        int32_t *inputs = MR_ARENA_NEW(&p->planner->arena, int32_t, 3);
        bool *refs = MR_ARENA_NEW(&p->planner->arena, bool, 3);
        if (!inputs || !refs) return mr_fail_memory(error, 3 * sizeof *inputs);
        const int first = is_accumulation ? 1 : 0; /* of the product's inputs */
        inputs[is_accumulation ? 0 : 2] = sum->inputs[1 - i];
        inputs[first] = product->inputs[0];
        inputs[first + 1] = product->inputs[1];
        MR_TRY(remove_node(p, product, error));
        sum->kernel = kernel;
        sum->attrs = &product->node->attrs;
        sum->inputs = inputs;
        sum->input_is_ref = refs;
        sum->input_count = 3;
        return MR_OK;
    }
    return MR_OK;
}

/* ---- Transposes ---- */

/* The Enter node that brings the product's b, which nothing else uses, into the product's loop; or null. */
static mr_plan_node *entry_of(const products *p, const mr_plan_node *product)
{
    const mr_plan_value *b = &p->planner->values[product->inputs[1]];
    if (b->kind != MR_VALUE_OUTPUT || p->uses[product->inputs[1]] != 1 || b->region != product->region) return nullptr;
    mr_plan_node *enter = &p->planner->nodes[b->producer];
    if (enter->is_copy || mr_node_flow(enter->node) != MR_FLOW_ENTER || enter->input_count != 1) return nullptr;
    if (!mr_attr_bool_or(&enter->node->attrs, "is_constant", false)) return nullptr;
    const mr_plan_value *from = &p->planner->values[enter->inputs[0]];
    return from->is_ref || from->kind == MR_VALUE_CONSTANT ? nullptr : enter;
}

static bool takes_transposed(const products *p, int32_t node)
{
    const mr_plan_node *product = product_of(p, node);
    if (!product || !product->node->def->op->fusion.transpose || !attr_of(product, "transpose_b")) return false;
    const mr_plan_value *b = &p->planner->values[product->inputs[1]];
    if (!mr_plan_reads_freely(p->planner, p->after_updates, node, product->inputs[1])) return false;
    if (entry_of(p, product)) return true;
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

static mr_shape transposed_shape(mr_shape shape)
{
    return shape.rank == 2 ? MR_SHAPE(shape.dims[1], shape.dims[0]) : shape;
}

/* A node that transposes a value, for a product. */
static mr_status add_transpose(products *p, int32_t from, int32_t product, const mr_kernel *kernel, int32_t *value,
                               mr_error *error)
{
    static const bool no_refs[1] = {false};
    mr_planner *planner = p->planner;
    const mr_plan_value source = planner->values[from];
    int32_t *inputs = MR_ARENA_NEW(&planner->arena, int32_t, 1), node;
    if (!inputs) return mr_fail_memory(error, sizeof *inputs);
    inputs[0] = from;
    mr_plan_node transpose = planner->nodes[product];
    transpose.kernel = kernel;
    transpose.input_count = 1;
    transpose.inputs = inputs;
    transpose.input_is_ref = no_refs;
    transpose.first_output = planner->value_count;
    transpose.region = source.region;
    transpose.condition = source.condition;
    MR_TRY(mr_plan_add_node(planner, transpose, &node, error));
    const mr_plan_value made = {.kind = MR_VALUE_OUTPUT,
                                .producer = node,
                                .dtype = MR_FLOAT,
                                .shape = transposed_shape(source.shape),
                                .region = source.region,
                                .condition = source.condition};
    MR_TRY(mr_plan_add_value(planner, made, value, error));
    assert(*value == transpose.first_output);
    return MR_OK;
}

/* Makes the transpose of the product's b: of the value that enters the loop, or of b itself, once. */
static mr_status find_transpose(products *p, int32_t node, const mr_kernel *kernel, int32_t *value, mr_error *error)
{
    mr_planner *planner = p->planner;
    const mr_plan_node *product = &planner->nodes[node];
    const int32_t b = product->inputs[1];
    const mr_plan_node *entry = entry_of(p, product);
    *value = p->transpose_of[b];
    if (*value >= 0) return MR_OK;
    if (!entry) {
        MR_TRY(add_transpose(p, b, node, kernel, value, error));
        p->transpose_of[b] = *value;
        return MR_OK;
    }
    const int32_t enter = planner->values[b].producer;
    int32_t *inputs = MR_ARENA_NEW(&planner->arena, int32_t, 1);
    if (!inputs) return mr_fail_memory(error, sizeof *inputs);
    MR_TRY(add_transpose(p, entry->inputs[0], node, kernel, &inputs[0], error));
    planner->nodes[enter].inputs = inputs;
    planner->values[b].shape = transposed_shape(planner->values[b].shape);
    *value = b;
    return MR_OK;
}

static mr_status use_transpose(products *p, int32_t node, mr_error *error)
{
    const mr_plan_node *product = &p->planner->nodes[node];
    if (!entry_of(p, product) && p->transposed[product->inputs[1]] < TRANSPOSED_USES_MIN) return MR_OK;
    const mr_kernel *kernel =
        mr_kernel_find(product->node->def->op->fusion.transpose, product->device->kind, &product->node->attrs);
    const mr_attrs *attrs = plain_attrs(p, &product->node->attrs);
    int32_t *inputs = MR_ARENA_NEW(&p->planner->arena, int32_t, 2);
    if (!inputs || !attrs) return mr_fail_memory(error, sizeof *inputs * 2);
    if (!kernel) return MR_OK;
    inputs[0] = product->inputs[0];
    MR_TRY(find_transpose(p, node, kernel, &inputs[1], error));
    p->planner->nodes[node].inputs = inputs; /* the list may have moved */
    p->planner->nodes[node].attrs = attrs;
    return MR_OK;
}

mr_status mr_plan_fuse_products(mr_planner *planner, mr_error *error)
{
    const int32_t nodes = planner->node_count, values = planner->value_count;
    products p = {.planner = planner};
    p.transposed = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)values + 1);
    p.transpose_of = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)values + 1);
    if (!p.transposed || !p.transpose_of) return mr_fail_memory(error, (size_t)values * 8);
    MR_TRY(mr_plan_uses(planner, &p.uses, error));
    MR_TRY(mr_plan_awaited(planner, &p.awaited, error));
    MR_TRY(mr_plan_after_updates(planner, &p.after_updates, error));
    for (int32_t i = 0; i < values; i++) {
        p.transposed[i] = 0;
        p.transpose_of[i] = -1;
    }
    for (int32_t i = 0; i < nodes; i++)
        if (takes_transposed(&p, i)) p.transposed[planner->nodes[i].inputs[1]]++;
    for (int32_t i = 0; i < nodes; i++) {
        MR_TRY(fuse_sum(&p, &planner->nodes[i], error));
        MR_TRY(fuse_addition(&p, &planner->nodes[i], error));
    }
    for (int32_t i = 0; i < nodes; i++)
        if (takes_transposed(&p, i)) MR_TRY(use_transpose(&p, i, error));
    return MR_OK;
}
