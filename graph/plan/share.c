/* Share: merges equal nodes with equal inputs, and equal small constants.
 *
 * Only nodes whose result is a function of their inputs are merged: no stateful operators, nothing that takes or
 * returns a reference or a handle (a variable may change between two reads), nothing with control inputs. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <string.h>

constexpr size_t CONSTANT_BYTES_MAX = 1024;

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++) hash = (hash ^ at[i]) * 0x100000001b3u;
    return mix(hash, size);
}

static bool tensors_equal(const mr_tensor *a, const mr_tensor *b)
{
    if (a->dtype != b->dtype || !mr_shape_equal(a->shape, b->shape)) return false;
    if (a->data == b->data) return true;
    size_t size = mr_tensor_size_bytes(a);
    return a->dtype != MR_STRING && size <= CONSTANT_BYTES_MAX && memcmp(a->data, b->data, size) == 0;
}

static bool values_equal(mr_attr_kind kind, const mr_attr_value *a, const mr_attr_value *b)
{
    switch (kind) {
    case MR_ATTR_STRING:
        return mr_string_equal(a->string, b->string);
    case MR_ATTR_INT:
        return a->integer == b->integer;
    case MR_ATTR_FLOAT:
        return memcmp(&a->number, &b->number, sizeof a->number) == 0;
    case MR_ATTR_BOOL:
        return a->boolean == b->boolean;
    case MR_ATTR_TYPE:
        return a->type == b->type;
    case MR_ATTR_SHAPE:
        return mr_shape_equal(a->shape, b->shape);
    case MR_ATTR_TENSOR:
        return tensors_equal(&a->tensor, &b->tensor);
    default:
        return false;
    }
}

bool mr_plan_attrs_equal(const mr_node *a, const mr_node *b)
{
    for (int32_t i = 0; i < a->def->attr_count; i++) {
        const mr_attr *left = mr_attrs_find(&a->attrs, a->def->attrs[i].name);
        const mr_attr *right = mr_attrs_find(&b->attrs, a->def->attrs[i].name);
        if (!left && !right) continue;
        if (!left || !right || left->kind != right->kind || left->is_list != right->is_list) return false;
        if (left->count != right->count) return false;
        for (int32_t j = 0; j < left->count; j++)
            if (!values_equal(left->kind, &left->values[j], &right->values[j])) return false;
    }
    return true;
}

static bool may_share(const mr_planner *planner, const mr_plan_node *node)
{
    if (!node->kernel || node->control_count > 0 || node->pinned || node->output_count == 0) return false;
    if (node->input_count == 0 || node->node->def->op->flags & MR_OP_STATEFUL) return false;
    if (mr_node_flow(node->node) != MR_FLOW_NONE) return false;
    for (int32_t i = 0; i < node->input_count; i++) {
        const mr_plan_value *value = &planner->values[node->inputs[i]];
        if (value->is_ref || value->dtype == MR_RESOURCE || value->dtype == MR_VARIANT) return false;
    }
    for (int32_t i = 0; i < node->output_count; i++) {
        const mr_plan_value *value = &planner->values[node->first_output + i];
        if (value->is_ref || value->dtype == MR_RESOURCE || value->dtype == MR_VARIANT) return false;
    }
    return true;
}

static bool nodes_equal(const mr_plan_node *a, const mr_plan_node *b)
{
    return a->kernel == b->kernel && a->device == b->device && a->input_count == b->input_count &&
           a->output_count == b->output_count &&
           memcmp(a->inputs, b->inputs, (size_t)a->input_count * sizeof *a->inputs) == 0 &&
           a->node->def == b->node->def && mr_plan_attrs_equal(a->node, b->node);
}

static uint64_t hash_node(const mr_plan_node *node)
{
    uint64_t hash = hash_bytes(1, node->node->op, strlen(node->node->op));
    return hash_bytes(hash, node->inputs, (size_t)node->input_count * sizeof *node->inputs);
}

static bool is_small_constant(const mr_plan_value *value)
{
    return value->kind == MR_VALUE_CONSTANT && !value->is_ref && value->dtype != MR_STRING &&
           value->dtype != MR_RESOURCE && value->dtype != MR_VARIANT && value->constant.buffer &&
           mr_tensor_size_bytes(&value->constant) <= CONSTANT_BYTES_MAX;
}

static uint64_t hash_constant(const mr_tensor *constant)
{
    uint64_t hash = mix(2, (uint64_t)constant->dtype);
    for (int32_t i = 0; i < constant->shape.rank; i++) hash = mix(hash, (uint64_t)constant->shape.dims[i]);
    return hash_bytes(hash, constant->data, mr_tensor_size_bytes(constant));
}

/* An entry of the hash table: a plan node, or the producer of a constant. */
typedef struct seen {
    uint64_t hash;
    int32_t node;
    struct seen *next;
} seen;

typedef struct sharer {
    mr_planner *planner;
    seen **buckets;
    uint32_t mask;
    int32_t *instead; /* by value: the value to use instead */
} sharer;

static mr_status remember(sharer *s, uint64_t hash, int32_t node, mr_error *error)
{
    seen *made = MR_ARENA_NEW(&s->planner->arena, seen, 1);
    if (!made) return mr_fail_memory(error, sizeof *made);
    *made = (seen){.hash = hash, .node = node, .next = s->buckets[hash & s->mask]};
    s->buckets[hash & s->mask] = made;
    return MR_OK;
}

/* Replaces the outputs of `node` by those of `kept`. */
static void replace(sharer *s, const mr_plan_node *node, const mr_plan_node *kept)
{
    assert(node != kept && node->output_count == kept->output_count);
    for (int32_t i = 0; i < node->output_count; i++) {
        assert(s->instead[kept->first_output + i] == kept->first_output + i); /* the kept node has not been replaced
                                                                                 itself */
        s->instead[node->first_output + i] = kept->first_output + i;
        s->planner->values[kept->first_output + i].fetched |= s->planner->values[node->first_output + i].fetched;
    }
}

static mr_status share_node(sharer *s, int32_t index, mr_error *error)
{
    mr_planner *planner = s->planner;
    mr_plan_node *node = &planner->nodes[index];
    for (int32_t i = 0; i < node->input_count; i++) node->inputs[i] = s->instead[node->inputs[i]];
    const mr_plan_value *first = node->output_count > 0 ? &planner->values[node->first_output] : nullptr;
    bool constant = !node->kernel && node->output_count == 1 && node->control_count == 0 && is_small_constant(first);
    if (!constant && !may_share(planner, node)) return MR_OK;
    uint64_t hash = constant ? hash_constant(&first->constant) : hash_node(node);
    for (const seen *at = s->buckets[hash & s->mask]; at; at = at->next) {
        const mr_plan_node *kept = &planner->nodes[at->node];
        if (at->hash != hash || constant != !kept->kernel) continue;
        bool equal = constant ? tensors_equal(&first->constant, &planner->values[kept->first_output].constant)
                              : nodes_equal(node, kept);
        if (!equal) continue;
        replace(s, node, kept);
        return MR_OK;
    }
    return remember(s, hash, index, error);
}

mr_status mr_plan_share(mr_planner *planner, mr_error *error)
{
    int32_t *order, count;
    MR_TRY(mr_plan_topological(planner, &order, &count, error));
    uint32_t buckets = 64;
    while (buckets < (uint32_t)count) buckets *= 2;
    assert((buckets & (buckets - 1)) == 0);
    sharer s = {.planner = planner, .mask = buckets - 1};
    s.buckets = MR_ARENA_NEW(&planner->arena, seen *, buckets);
    s.instead = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)planner->value_count + 1);
    if (!s.buckets || !s.instead) return mr_fail_memory(error, buckets * sizeof(seen *));
    for (int32_t i = 0; i < planner->value_count; i++) s.instead[i] = i;
    for (int32_t i = 0; i < count; i++) MR_TRY(share_node(&s, order[i], error));
    for (int32_t i = 0; i < planner->signature->fetch_count; i++)
        planner->fetch_values[i] = s.instead[planner->fetch_values[i]];
    mr_plan_sweep(planner);
    return MR_OK;
}
