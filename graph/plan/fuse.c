/* Fuse: replaces chains of nodes for which a single kernel exists.
 *
 * Batch normalization and Relu become _FusedBatchNormEx; in the backward pass ReluGrad and the gradient of the
 * normalization become _FusedBatchNormGradEx, which finds Relu's sign again from the factors and offsets that the
 * forward pass applied. A tensor that is added between normalization and Relu, as in residual networks, is added by
 * _FusedBatchNormEx, too. The gradient of a loss is multiplied by that of its result while it is computed. All require
 * that nothing else uses the values between them. The results are the same, and each fusion saves a pass over the
 * activations. A chain without a fused kernel for its device and types is unchanged.
 *
 * LeakyReluGrad takes the output of LeakyRelu, which has the sign of its input and is used by the next layer, so that
 * the input is not kept for it. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <string.h>

typedef struct fuser {
    mr_planner *planner;
    int32_t *uses;       /* by value: number of inputs that use it, plus one for a fetch */
    int32_t *reserved;   /* by value: those of the uses by gradients of normalizations, as their third reserve space */
    int32_t *instead;    /* by value: the value to use instead */
    int32_t *position;   /* by node: in a topological order */
    bool *awaited;       /* by node, see plan.h */
    bool *after_updates; /* by node, see plan.h */
} fuser;

/* The row's fusion; null for a node that does not run here or whose operator is not known. */
static const mr_fusion *fusion_of(const mr_plan_node *node)
{
    return node->live && node->kernel && node->node->def ? &node->node->def->op->fusion : nullptr;
}

/* The node that has the value as its first output, if the value has exactly one consumer. */
static mr_plan_node *maker_for_one(const fuser *f, int32_t value)
{
    const mr_plan_value *v = &f->planner->values[value];
    assert(f->uses[value] > 0); /* by the caller's node */
    if (v->kind != MR_VALUE_OUTPUT || v->index != 0 || f->uses[value] != 1) return nullptr;
    return &f->planner->nodes[v->producer];
}

static const mr_attrs *attrs_with_activation(fuser *f, const mr_attrs *attrs, const char *activation)
{
    mr_attr_value *value = MR_ARENA_NEW(&f->planner->kept, mr_attr_value, 1);
    if (!value) return nullptr;
    value->string = mr_string_from(activation);
    return mr_plan_attrs_with(
        f->planner, attrs, (mr_attr){.name = "activation_mode", .kind = MR_ATTR_STRING, .count = 1, .values = value});
}

/* Replaces the node's kernel. Returns false and changes nothing if there is no such kernel. */
static bool set_kernel(fuser *f, mr_plan_node *node, const mr_fusion *fusion)
{
    const mr_attrs *attrs = attrs_with_activation(f, &node->node->attrs, fusion->activation);
    const mr_kernel *kernel = attrs ? mr_kernel_find(fusion->kernel, node->device->kind, attrs) : nullptr;
    if (!kernel) return false;
    node->kernel = kernel;
    node->attrs = attrs;
    return true;
}

/* The value `to` of another node takes the place of the node's only output, and the node does not run. */
static mr_status replace_node(fuser *f, mr_plan_node *node, int32_t to, mr_error *error)
{
    mr_planner *planner = f->planner;
    const int32_t from = node->first_output;
    assert(from != to && node->output_count == 1 && f->instead[from] == from && f->instead[to] == to);
    f->instead[from] = to;
    f->uses[to] = f->uses[from];
    planner->values[to].fetched |= planner->values[from].fetched;
    planner->values[from].fetched = false;
    if (f->awaited[node - planner->nodes]) return mr_plan_drop_node(planner, node, error);
    node->live = false;
    return MR_OK;
}

/* The kernel's attrs, with keeps_factors. */
static mr_status set_keeps_factors(fuser *f, mr_plan_node *norm, mr_error *error)
{
    mr_attr_value *value = MR_ARENA_NEW(&f->planner->kept, mr_attr_value, 1);
    if (!value) return mr_fail_memory(error, sizeof *value);
    value->boolean = true;
    const mr_attr attr = {.name = "keeps_factors", .kind = MR_ATTR_BOOL, .count = 1, .values = value};
    norm->attrs = mr_plan_attrs_with(f->planner, norm->attrs, attr);
    return norm->attrs ? MR_OK : mr_fail_memory(error, sizeof attr);
}

constexpr int32_t NORM_INPUTS = 5;  /* a sixth one is added before Relu */
constexpr int32_t NORM_OUTPUTS = 6; /* the last one has the factors */

/* Gives a fused normalization its factors as output 5: in place of the third reserve space, which only gradients read,
 * or, in older versions, after copies of its five outputs. */
static mr_status keep_factors(fuser *f, mr_plan_node *norm, mr_error *error)
{
    mr_planner *planner = f->planner;
    const int32_t from = norm->first_output;
    if (norm->output_count == NORM_OUTPUTS) {
        const int32_t reserve = from + NORM_OUTPUTS - 1;
        if (f->uses[reserve] > f->reserved[reserve]) return MR_OK;
        planner->values[reserve].shape = MR_SHAPE_UNKNOWN;
        return set_keeps_factors(f, norm, error);
    }
    assert(norm->output_count == NORM_OUTPUTS - 1);
    for (int32_t i = 0; i < NORM_OUTPUTS; i++) {
        mr_plan_value value = planner->values[from + (i < NORM_OUTPUTS - 1 ? i : 0)];
        const int32_t old = from + i;
        int32_t to;
        value.index = i;
        if (i == NORM_OUTPUTS - 1) value.shape = MR_SHAPE_UNKNOWN, value.fetched = false;
        MR_TRY(mr_plan_add_value(planner, value, &to, error));
        f->instead[to] = to;
        f->uses[to] = f->reserved[to] = 0;
        if (i == 0) norm->first_output = to;
        if (i == NORM_OUTPUTS - 1) continue;
        assert(f->instead[old] == old);
        f->uses[to] = f->uses[old];
        f->instead[old] = to;
        planner->values[old].fetched = false;
    }
    norm->output_count = NORM_OUTPUTS;
    return set_keeps_factors(f, norm, error);
}

/* Equal, but for the size of a batch that is not known. */
static bool has_same_shape(const mr_plan_value *a, const mr_plan_value *b)
{
    bool is_same = a->shape.rank == b->shape.rank && a->shape.rank > 1;
    for (int i = 0; is_same && i < a->shape.rank; i++)
        is_same = a->shape.dims[i] == b->shape.dims[i] && (i == 0 || a->shape.dims[i] >= 0);
    return is_same;
}

static bool is_normalization(const mr_plan_node *node, mr_fusion_role consumer)
{
    const mr_fusion *fusion = node ? fusion_of(node) : nullptr;
    return fusion && fusion->consumer != MR_FUSION_NONE && fusion->consumer == consumer && !node->attrs;
}

/* The normalization that takes over a sum: its input 1 - *side. Of two the later one, so that all that the other input
 * depends on comes before it. */
static mr_plan_node *normalization_of_sum(const fuser *f, const mr_plan_node *add, mr_fusion_role consumer, int *side)
{
    const mr_planner *planner = f->planner;
    mr_plan_node *found = nullptr;
    const int32_t index = (int32_t)(add - planner->nodes);
    if (add->control_count > 0 || add->pinned || f->awaited[index]) return nullptr;
    for (int i = 0; i < 2; i++) {
        mr_plan_node *norm = maker_for_one(f, add->inputs[i]);
        const int32_t other = f->instead[add->inputs[1 - i]];
        const mr_plan_value *value = &planner->values[other];
        if (!is_normalization(norm, consumer) || norm->device != add->device || norm->region != add->region ||
            norm->condition != add->condition)
            continue;
        if (!has_same_shape(value, &planner->values[norm->first_output]) || mr_plan_variable_of(planner, other) >= 0)
            continue;
        const int32_t at = f->position[norm - planner->nodes];
        if (value->producer >= 0 && f->position[value->producer] >= at) continue;
        if (found && f->position[found - planner->nodes] > at) continue;
        found = norm;
        *side = 1 - i;
    }
    return found;
}

static mr_status add_side(fuser *f, mr_plan_node *norm, int32_t side, mr_error *error)
{
    const int32_t count = norm->input_count;
    assert(count == NORM_INPUTS && norm->region == f->planner->values[side].region);
    int32_t *inputs = MR_ARENA_NEW(&f->planner->arena, int32_t, (size_t)count + 1);
    bool *refs = MR_ARENA_NEW(&f->planner->arena, bool, (size_t)count + 1);
    if (!inputs || !refs) return mr_fail_memory(error, (size_t)count * sizeof *inputs);
    memcpy(inputs, norm->inputs, (size_t)count * sizeof *inputs);
    inputs[count] = side;
    norm->inputs = inputs;
    norm->input_is_ref = refs;
    norm->input_count++;
    return MR_OK;
}

/* Relu(normalization), or Relu(normalization + side): the normalization's output replaces that of Relu. */
static mr_status fuse_forward(fuser *f, mr_plan_node *relu, mr_error *error)
{
    const mr_fusion_role role = mr_plan_fusion_role(relu);
    if (role != MR_FUSION_RELU || relu->control_count > 0 || relu->pinned) return MR_OK;
    mr_plan_node *add = maker_for_one(f, relu->inputs[0]), *norm = add;
    int side = -1;
    if (add && mr_plan_fusion_role(add) == MR_FUSION_ADD) norm = normalization_of_sum(f, add, role, &side);
    if (!is_normalization(norm, role) || norm->device != relu->device) return MR_OK;
    if (!set_kernel(f, norm, fusion_of(norm))) return MR_OK;
    if (side >= 0) {
        MR_TRY(add_side(f, norm, add->inputs[side], error));
        add->live = false;
    }
    MR_TRY(keep_factors(f, norm, error));
    return replace_node(f, relu, norm->first_output, error);
}

/* Fuses the gradient of a normalization with Relu, which takes ReluGrad's output: it gets ReluGrad's gradient and the
 * factors of the forward pass. With its mean, the sign is computed as there. */
static mr_status fuse_backward(fuser *f, mr_plan_node *grad, const mr_fusion *fusion, mr_error *error)
{
    mr_planner *planner = f->planner;
    const mr_plan_node *relu_grad = maker_for_one(f, grad->inputs[0]);
    if (!relu_grad || mr_plan_fusion_role(relu_grad) != fusion->producer || relu_grad->device != grad->device)
        return MR_OK;
    if (relu_grad->control_count > 0 || relu_grad->pinned || grad->attrs) return MR_OK;
    const mr_plan_value *features = &planner->values[f->instead[relu_grad->inputs[1]]];
    if (features->kind != MR_VALUE_OUTPUT || features->index != 0) return MR_OK;
    const mr_plan_node *norm = &planner->nodes[features->producer];
    if (!norm->attrs || !mr_attr_bool_or(norm->attrs, "keeps_factors", false)) return MR_OK;
    if (norm->input_count > NORM_INPUTS) return MR_OK; /* Relu's sign depends on what was added */
    constexpr int32_t MEAN = 3, FACTORS = NORM_OUTPUTS - 1, INPUTS = 6;
    if (f->instead[norm->inputs[0]] != f->instead[grad->inputs[1]] ||
        f->instead[grad->inputs[MEAN]] != norm->first_output + MEAN)
        return MR_OK;
    const int32_t at = (int32_t)(grad - planner->nodes);
    if (!mr_plan_reads_freely(planner, f->after_updates, at, relu_grad->inputs[0])) return MR_OK;
    int32_t *inputs = MR_ARENA_NEW(&planner->arena, int32_t, INPUTS);
    bool *refs = MR_ARENA_NEW(&planner->arena, bool, INPUTS);
    if (!inputs || !refs) return mr_fail_memory(error, INPUTS * sizeof *inputs);
    if (!set_kernel(f, grad, fusion)) return MR_OK;
    inputs[0] = relu_grad->inputs[0];
    for (int32_t i = 1; i < FACTORS; i++) inputs[i] = grad->inputs[i];
    inputs[FACTORS] = norm->first_output + FACTORS;
    grad->inputs = inputs;
    grad->input_is_ref = refs;
    grad->input_count = INPUTS;
    return MR_OK;
}

static float alpha_of(const mr_plan_node *node)
{
    return mr_attr_float_or(&node->node->attrs, "alpha", 0.2f);
}

/* Nodes of LeakyRelu whose output can take the place of their input, by input value: nothing but gradients reads that,
 * too. -1: none.
 * uses  by value, as of the fuser */
static void find_leaky(const mr_planner *planner, int32_t *uses, int32_t *leaky_of)
{
    for (int32_t i = 0; i < planner->value_count; i++) leaky_of[i] = -1;
    for (int32_t i = 0; i < planner->node_count; i++) {
        const mr_plan_node *node = &planner->nodes[i];
        if (mr_plan_fusion_role(node) == MR_FUSION_LEAKY_RELU_GRAD) uses[node->inputs[1]]--;
    }
    for (int32_t i = 0; i < planner->node_count; i++) {
        const mr_plan_node *node = &planner->nodes[i];
        if (mr_plan_fusion_role(node) != MR_FUSION_LEAKY_RELU || !(alpha_of(node) >= 0)) continue;
        const int32_t features = node->inputs[0];
        if (uses[features] == 1 && mr_plan_variable_of(planner, features) < 0) leaky_of[features] = i;
    }
}

/* The order is kept, so that the new edges make no cycle. */
static mr_status use_leaky_outputs(fuser *f, mr_error *error)
{
    mr_planner *planner = f->planner;
    int32_t *order, count, *leaky_of = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)planner->value_count + 1);
    bool *is_before = MR_ARENA_NEW(&planner->arena, bool, (size_t)planner->node_count + 1);
    int32_t *uses = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)planner->value_count + 1);
    if (!leaky_of || !is_before || !uses) return mr_fail_memory(error, (size_t)planner->value_count * sizeof *uses);
    memcpy(uses, f->uses, (size_t)planner->value_count * sizeof *uses);
    find_leaky(planner, uses, leaky_of);
    MR_TRY(mr_plan_topological(planner, &order, &count, error));
    for (int32_t i = 0; i < count; i++) {
        mr_plan_node *node = &planner->nodes[order[i]];
        is_before[order[i]] = true;
        if (mr_plan_fusion_role(node) != MR_FUSION_LEAKY_RELU_GRAD) continue;
        const int32_t features = node->inputs[1], leaky = leaky_of[features];
        if (leaky < 0 || !is_before[leaky]) continue;
        const mr_plan_node *forward = &planner->nodes[leaky];
        if (alpha_of(forward) != alpha_of(node) || forward->region != node->region ||
            forward->condition != node->condition || forward->device != node->device)
            continue;
        node->inputs[1] = forward->first_output;
        f->uses[features]--;
        f->uses[forward->first_output]++;
    }
    return MR_OK;
}

/* Whether a value comes after a node. Also if it comes after many others, which are not examined. */
static bool comes_after(const fuser *f, int32_t value, int32_t node)
{
    constexpr int32_t EXAMINED_MAX = 128;
    const mr_planner *planner = f->planner;
    int32_t found[EXAMINED_MAX], count = 0; /* nodes, also several times */
    if (planner->values[value].producer >= 0) found[count++] = planner->values[value].producer;
    for (int32_t i = 0; i < count; i++) {
        const mr_plan_node *n = &planner->nodes[found[i]];
        if (found[i] == node) return true;
        for (int32_t j = 0; j < n->input_count + n->control_count; j++) {
            const int32_t before = j < n->input_count ? planner->values[f->instead[n->inputs[j]]].producer
                                                      : n->controls[j - n->input_count];
            if (before < 0) continue;
            if (count == EXAMINED_MAX) return true;
            found[count++] = before;
        }
    }
    return false;
}

/* Whether the value has one element for each row of the other one. */
static bool is_column(const mr_plan_value *value, const mr_plan_value *of)
{
    if (value->is_ref || value->dtype != of->dtype || value->shape.rank != 2 || of->shape.rank != 2) return false;
    return value->shape.dims[1] == 1 && value->shape.dims[0] >= 0 && value->shape.dims[0] == of->shape.dims[0];
}

/* The product of a column and the gradient that a loss computes as its output 1, input `i` of mul: the loss takes the
 * column and computes the product. */
static mr_status fuse_scaled(fuser *f, mr_plan_node *mul, int i, mr_error *error)
{
    mr_planner *planner = f->planner;
    const int32_t gradient = f->instead[mul->inputs[i]], column = f->instead[mul->inputs[1 - i]];
    const mr_plan_value *value = &planner->values[gradient];
    if (value->kind != MR_VALUE_OUTPUT || value->index != 1 || f->uses[gradient] != 1) return MR_OK;
    mr_plan_node *loss = &planner->nodes[value->producer];
    const mr_fusion *fusion = fusion_of(loss);
    if (!fusion || !fusion->scaled || loss->attrs || loss->input_count != 2 || loss->region != mul->region ||
        loss->condition != mul->condition || loss->device != mul->device)
        return MR_OK;
    if (!is_column(&planner->values[column], value) || comes_after(f, column, value->producer)) return MR_OK;
    if (!mr_plan_reads_freely(planner, f->after_updates, (int32_t)(mul - planner->nodes), column)) return MR_OK;
    const mr_kernel *kernel = mr_kernel_find(fusion->scaled, loss->device->kind, &loss->node->attrs);
    if (!kernel) return MR_OK;
    int32_t *inputs = MR_ARENA_NEW(&planner->arena, int32_t, 3);
    bool *refs = MR_ARENA_NEW(&planner->arena, bool, 3);
    if (!inputs || !refs) return mr_fail_memory(error, 3 * sizeof *inputs);
    for (int k = 0; k < 2; k++) inputs[k] = loss->inputs[k];
    inputs[2] = column;
    loss->kernel = kernel;
    loss->inputs = inputs;
    loss->input_is_ref = refs;
    loss->input_count = 3;
    return replace_node(f, mul, gradient, error);
}

static void count_uses(fuser *f)
{
    const mr_planner *planner = f->planner;
    for (int32_t i = 0; i < planner->value_count; i++) {
        f->instead[i] = i;
        f->uses[i] = planner->values[i].fetched ? 1 : 0;
    }
    for (int32_t i = 0; i < planner->node_count; i++) {
        const mr_plan_node *node = &planner->nodes[i];
        const mr_fusion *fusion = fusion_of(node);
        for (int32_t j = 0; node->live && j < node->input_count; j++) {
            assert(node->inputs[j] >= 0 && node->inputs[j] < planner->value_count);
            f->uses[node->inputs[j]]++;
            if (j == NORM_OUTPUTS - 1 && fusion && fusion->producer == MR_FUSION_RELU_GRAD)
                f->reserved[node->inputs[j]]++;
        }
    }
}

/* Puts the values that take the place of others into all lists. */
static void replace_values(fuser *f)
{
    mr_planner *planner = f->planner;
    for (int32_t i = 0; i < planner->node_count; i++)
        for (int32_t j = 0; j < planner->nodes[i].input_count; j++)
            planner->nodes[i].inputs[j] = f->instead[planner->nodes[i].inputs[j]];
    for (int32_t i = 0; i < planner->signature->fetch_count; i++)
        planner->fetch_values[i] = f->instead[planner->fetch_values[i]];
    for (int32_t i = 0; i < planner->value_count; i++) f->instead[i] = i;
}

/* Fuses losses with what scales their gradients. The scaled gradient comes after the scale: edges that were not there
 * before. */
static mr_status fuse_losses(fuser *f, mr_error *error)
{
    mr_planner *planner = f->planner;
    MR_TRY(mr_plan_after_updates(planner, &f->after_updates, error));
    for (int32_t i = 0; i < planner->node_count; i++) {
        mr_plan_node *node = &planner->nodes[i];
        for (int k = 0; k < 2 && mr_plan_fusion_role(node) == MR_FUSION_MUL; k++)
            if (node->control_count == 0 && !node->pinned) MR_TRY(fuse_scaled(f, node, k, error));
    }
    replace_values(f);
    return mr_plan_after_updates(planner, &f->after_updates, error);
}

/* The shape of a normalization's output is that of its input. A gradient of a sum with a batch of unknown size reads
 * it. */
static void read_shapes_before(mr_planner *planner)
{
    for (int32_t i = 0; i < planner->node_count; i++) {
        const mr_plan_node *node = &planner->nodes[i];
        if (mr_plan_fusion_role(node) != MR_FUSION_SHAPE) continue;
        const mr_plan_value *value = &planner->values[node->inputs[0]];
        if (value->kind != MR_VALUE_OUTPUT || value->index != 0) continue;
        const mr_plan_node *norm = &planner->nodes[value->producer];
        const mr_fusion *fusion = fusion_of(norm);
        if (!fusion || fusion->consumer == MR_FUSION_NONE || norm->device != node->device) continue;
        if (mr_plan_variable_of(planner, norm->inputs[0]) < 0) node->inputs[0] = norm->inputs[0];
    }
}

static mr_status find_positions(fuser *f, mr_error *error)
{
    int32_t *order, count;
    f->position = MR_ARENA_NEW(&f->planner->arena, int32_t, (size_t)f->planner->node_count + 1);
    if (!f->position) return mr_fail_memory(error, (size_t)f->planner->node_count * sizeof *f->position);
    MR_TRY(mr_plan_topological(f->planner, &order, &count, error));
    for (int32_t i = 0; i < count; i++) f->position[order[i]] = i;
    return MR_OK;
}

/* The most values that fusing adds: see keep_factors. */
static size_t new_values(const mr_planner *planner)
{
    size_t count = 0;
    for (int32_t i = 0; i < planner->node_count; i++) {
        const mr_fusion *fusion = fusion_of(&planner->nodes[i]);
        if (fusion && fusion->consumer) count += NORM_OUTPUTS;
    }
    return count;
}

mr_status mr_plan_fuse(mr_planner *planner, mr_error *error)
{
    fuser f = {.planner = planner};
    const size_t count = (size_t)planner->value_count + new_values(planner);
    f.uses = MR_ARENA_NEW(&planner->arena, int32_t, count);
    f.reserved = MR_ARENA_NEW(&planner->arena, int32_t, count);
    f.instead = MR_ARENA_NEW(&planner->arena, int32_t, count);
    if (!f.uses || !f.reserved || !f.instead) return mr_fail_memory(error, count * sizeof *f.uses);
    MR_TRY(mr_plan_awaited(planner, &f.awaited, error));
    read_shapes_before(planner);
    count_uses(&f);
    MR_TRY(use_leaky_outputs(&f, error));
    MR_TRY(fuse_losses(&f, error));
    MR_TRY(find_positions(&f, error));
    for (int32_t i = 0; i < planner->node_count; i++)
        if (planner->nodes[i].live) MR_TRY(fuse_forward(&f, &planner->nodes[i], error));
    for (int32_t i = 0; i < planner->node_count; i++) {
        const mr_fusion *fusion = fusion_of(&planner->nodes[i]);
        if (fusion && fusion->producer) MR_TRY(fuse_backward(&f, &planner->nodes[i], fusion, error));
    }
    replace_values(&f);
    mr_plan_sweep(planner);
    return MR_OK;
}
