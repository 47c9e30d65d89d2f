/* Recompute: normalized activations that the backward pass reads again are not kept until then, but computed once more
 * just before, from the normalization's input, which is kept for its gradient anyway. This costs a pass over them and
 * saves as much memory as they have while most is in use. The results are the same.
 *
 * What was added to the normalized values is needed, too. In a residual network that is the output of the layer before,
 * which may be computed again itself: its second computation is then the first of a chain, of limited length, since all
 * values of a chain are in memory together.
 *
 * The pass changes an order that is complete, and so only programs of a single segment. The session's option
 * no_recompute turns it off. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <string.h>

constexpr int32_t CHAIN_MAX = 3;
constexpr int64_t UNKNOWN_DIM = 32;  /* the size of a batch that is not known, for an estimate */
constexpr int64_t BYTES_MIN = 65536; /* smaller values do not repay a call */
constexpr int32_t MEAN = 3, FACTORS = 5, SIDE = 5, APPLIED_SIDE = 3; /* see kernels/batch_norm.c */

typedef struct use {
    int32_t at, input; /* place in the order, and input of the node there */
    struct use *next;
} use;

typedef struct recomputer {
    mr_planner *planner;
    int32_t *made;  /* by value: the place of its producer in the order; -1: none */
    use **uses;     /* by value, the last one first */
    int32_t *chain; /* by place in the order: recomputed values of one chain that are made before it */
    int32_t *added; /* by place, too: the first node that is added before it; -1: none */
    int32_t *after; /* by added node, minus old_count: the next one that is added at that place; -1: none */
    int32_t old_count, old_values, added_count, peak;
} recomputer;

static int64_t estimated_bytes(const mr_plan_value *value)
{
    constexpr int64_t BYTES_MAX = (int64_t)1 << 40; /* that of all values can be added */
    int64_t bytes = value->is_ref || value->shape.rank < 0 ? 0 : (int64_t)mr_dtype_size(value->dtype);
    for (int i = 0; i < value->shape.rank && bytes > 0; i++) {
        const int64_t dim = value->shape.dims[i] < 0 ? UNKNOWN_DIM : value->shape.dims[i];
        bytes = dim > BYTES_MAX / bytes ? BYTES_MAX : bytes * dim;
    }
    assert(bytes >= 0 && bytes <= BYTES_MAX);
    return bytes;
}

static mr_status find_uses(recomputer *r, mr_error *error)
{
    mr_planner *planner = r->planner;
    for (int32_t i = 0; i < planner->value_count; i++) r->made[i] = -1;
    for (int32_t at = 0; at < planner->order_count; at++) {
        const mr_plan_node *node = &planner->nodes[planner->order[at]];
        for (int32_t j = 0; j < node->input_count; j++) {
            use *u = MR_ARENA_NEW(&planner->arena, use, 1);
            if (!u) return mr_fail_memory(error, sizeof *u);
            *u = (use){.at = at, .input = j, .next = r->uses[node->inputs[j]]};
            r->uses[node->inputs[j]] = u;
        }
        for (int32_t j = 0; j < node->output_count; j++) r->made[node->first_output + j] = at;
    }
    return MR_OK;
}

/* The place where most memory is in use. */
static mr_status find_peak(recomputer *r, mr_error *error)
{
    const mr_planner *planner = r->planner;
    int64_t *change = MR_ARENA_NEW(&r->planner->arena, int64_t, (size_t)planner->order_count + 2), live = 0, most = -1;
    if (!change) return mr_fail_memory(error, (size_t)planner->order_count * sizeof *change);
    for (int32_t i = 0; i < planner->value_count; i++) {
        if (r->made[i] < 0) continue;
        const int64_t bytes = estimated_bytes(&planner->values[i]);
        const int32_t last = planner->values[i].fetched ? planner->order_count
                             : r->uses[i]               ? r->uses[i]->at
                                                        : r->made[i];
        assert(last >= r->made[i]);
        change[r->made[i]] += bytes;
        change[last + 1] -= bytes;
    }
    for (int32_t at = 0; at < planner->order_count; at++) {
        live += change[at];
        assert(live >= 0);
        if (live <= most) continue;
        most = live;
        r->peak = at;
    }
    return MR_OK;
}

/* Whether the value has a view, whose uses are not known. */
static bool has_view(const recomputer *r, int32_t value)
{
    for (const use *u = r->uses[value]; u; u = u->next) {
        const mr_plan_node *node = &r->planner->nodes[r->planner->order[u->at]];
        if (u->input >= 0 && (node->is_copy || mr_node_has_flag(node->node, MR_OP_VIEW))) return true;
    }
    return false;
}

/* The first use after the peak; null: none. */
static const use *first_late_use(const recomputer *r, int32_t value)
{
    const use *first = nullptr;
    for (const use *u = r->uses[value]; u && u->at > r->peak; u = u->next) first = u;
    return first;
}

static bool has_early_use(const recomputer *r, int32_t value)
{
    for (const use *u = r->uses[value]; u; u = u->next)
        if (u->at <= r->peak) return true;
    return false;
}

/* Whether the value is in memory at that place in any case. */
static bool is_kept_until(const recomputer *r, int32_t value, int32_t at)
{
    const mr_plan_value *v = &r->planner->values[value];
    if (v->is_ref || mr_plan_variable_of(r->planner, value) >= 0) return false;
    if (v->kind != MR_VALUE_OUTPUT) return true;
    return v->fetched || (r->uses[value] && r->uses[value]->at >= at);
}

/* The new node's uses of its inputs, before those of the node at that place. */
static mr_status add_use(recomputer *r, int32_t value, int32_t at, mr_error *error)
{
    use *u = MR_ARENA_NEW(&r->planner->arena, use, 1), **place = &r->uses[value];
    if (!u) return mr_fail_memory(error, sizeof *u);
    assert(at > r->peak && at < r->planner->order_count && value < r->old_values);
    while (*place && (*place)->at >= at) place = &(*place)->next;
    *u = (use){.at = at, .input = -1, .next = *place};
    *place = u;
    return MR_OK;
}

/* Whether the node is a normalization whose output can be computed again. */
static const char *recomputing_kernel(const mr_plan_node *node)
{
    if (node->is_copy || !node->kernel || !node->attrs || !node->node->def) return nullptr;
    const char *kernel = node->node->def->op->fusion.recompute;
    return kernel && mr_attr_bool_or(node->attrs, "keeps_factors", false) ? kernel : nullptr;
}

/* Makes the node that computes the output of `norm` again, in *made. */
static mr_status add_node(recomputer *r, const mr_plan_node *norm, const mr_kernel *kernel, int32_t *made,
                          mr_error *error)
{
    mr_planner *planner = r->planner;
    mr_plan_node node = *norm;
    node.kernel = kernel;
    node.input_count = norm->input_count > SIDE ? APPLIED_SIDE + 1 : APPLIED_SIDE;
    node.inputs = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)node.input_count);
    node.input_is_ref = MR_ARENA_NEW(&planner->arena, bool, (size_t)node.input_count);
    if (!node.inputs || !node.input_is_ref) return mr_fail_memory(error, sizeof node);
    node.inputs[0] = norm->inputs[0];
    node.inputs[1] = norm->first_output + MEAN;
    node.inputs[2] = norm->first_output + FACTORS;
    if (norm->input_count > SIDE) node.inputs[APPLIED_SIDE] = norm->inputs[SIDE];
    MR_TRY(mr_plan_second_name(planner, norm->node, &node.name, error));
    node.control_count = 0;
    node.pinned = false;
    node.output_count = 1;
    mr_plan_value value = planner->values[norm->first_output];
    MR_TRY(mr_plan_add_node(planner, node, made, error));
    value.producer = *made;
    value.fetched = false;
    return mr_plan_add_value(planner, value, &planner->nodes[*made].first_output, error);
}

/* Lets all readers after the peak read `to` instead. */
static void replace_late(recomputer *r, int32_t value, int32_t to)
{
    mr_planner *planner = r->planner;
    use **place = &r->uses[value];
    for (; *place && (*place)->at > r->peak; place = &(*place)->next) {
        const use *u = *place;
        if (u->input >= 0) {
            planner->nodes[planner->order[u->at]].inputs[u->input] = to;
            continue;
        }
        for (int32_t i = r->added[u->at]; i >= 0; i = r->after[i - r->old_count])
            for (int32_t j = 0; j < planner->nodes[i].input_count; j++)
                if (planner->nodes[i].inputs[j] == value) planner->nodes[i].inputs[j] = to;
    }
    assert(!*place || (*place)->at <= r->peak);
    r->uses[value] = *place;
}

static mr_status recompute(recomputer *r, int32_t at, mr_error *error)
{
    mr_planner *planner = r->planner;
    const mr_plan_node *norm = &planner->nodes[planner->order[at]];
    const char *name = recomputing_kernel(norm);
    if (!name) return MR_OK;
    const int32_t output = norm->first_output;
    assert(norm->output_count == FACTORS + 1 && output + FACTORS < r->old_values);
    const mr_plan_value *value = &planner->values[output];
    const use *late = first_late_use(r, output);
    if (!late || value->fetched || has_view(r, output) || !has_early_use(r, output) ||
        estimated_bytes(value) < BYTES_MIN)
        return MR_OK;
    const int32_t place = late->at, side = norm->input_count > SIDE ? norm->inputs[SIDE] : -1;
    if (r->chain[place] >= CHAIN_MAX || !is_kept_until(r, norm->inputs[0], place)) return MR_OK;
    if (side >= 0 && !is_kept_until(r, side, place)) return MR_OK;
    const mr_kernel *kernel = mr_kernel_find(name, norm->device->kind, norm->attrs);
    if (!kernel) return MR_OK;
    int32_t made;
    MR_TRY(add_node(r, norm, kernel, &made, error));
    replace_late(r, output, planner->nodes[made].first_output);
    for (int32_t i = 0; i < planner->nodes[made].input_count; i++)
        MR_TRY(add_use(r, planner->nodes[made].inputs[i], place, error));
    assert(made - r->old_count == r->added_count && r->added_count < planner->order_count);
    r->after[r->added_count++] = r->added[place];
    r->added[place] = made;
    r->chain[place]++;
    return MR_OK;
}

/* The order with the added nodes. */
static mr_status insert_added(recomputer *r, mr_error *error)
{
    mr_planner *planner = r->planner;
    const size_t total = (size_t)planner->order_count + (size_t)r->added_count;
    int32_t *order = MR_ARENA_NEW(&planner->arena, int32_t, total + 1), count = 0;
    if (!order) return mr_fail_memory(error, total * sizeof *order);
    for (int32_t at = 0; at < planner->order_count; at++) {
        for (int32_t i = r->added[at]; i >= 0; i = r->after[i - r->old_count]) order[count++] = i;
        order[count++] = planner->order[at];
    }
    assert((size_t)count == total);
    planner->order = order;
    planner->order_count = count;
    return MR_OK;
}

mr_status mr_plan_recompute(mr_planner *planner, mr_error *error)
{
    if (planner->context->options->no_recompute || planner->has_flow || planner->order_count == 0) return MR_OK;
    const size_t values = (size_t)planner->value_count + 1, places = (size_t)planner->order_count + 1;
    recomputer r = {.planner = planner, .old_count = planner->node_count, .old_values = planner->value_count};
    r.made = MR_ARENA_NEW(&planner->arena, int32_t, values);
    r.uses = MR_ARENA_NEW(&planner->arena, use *, values);
    r.chain = MR_ARENA_NEW(&planner->arena, int32_t, places);
    r.added = MR_ARENA_NEW(&planner->arena, int32_t, places);
    r.after = MR_ARENA_NEW(&planner->arena, int32_t, places);
    if (!r.made || !r.uses || !r.chain || !r.added || !r.after) return mr_fail_memory(error, places * sizeof *r.after);
    for (size_t i = 0; i < places; i++) r.added[i] = -1;
    MR_TRY(find_uses(&r, error));
    MR_TRY(find_peak(&r, error));
    for (int32_t at = r.peak; at >= 0; at--) MR_TRY(recompute(&r, at, error)); /* of a chain the last one first */
    return r.added_count > 0 ? insert_added(&r, error) : MR_OK;
}
