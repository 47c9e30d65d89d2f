/* Loosen: removes control edges that order nothing but computation, and then reads what Identity nodes pass on where it
 * comes from.
 *
 * tf.gradients lets each gradient of an operator wait until all of them are computed, by tf.tuple: Identity nodes that
 * wait for a NoOp. That would keep what is computed from different gradients in different calls. Such an edge has no
 * effect if all that comes before it and is more than computation - reads and updates of variables, random numbers,
 * files - also comes before the waiting node in other ways.
 *
 * When a node runs that only computes makes no difference either. So what it would have to wait for is left to those
 * that read its outputs, until one has effects itself, is a target or is fetched. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <string.h>

constexpr size_t SETS_BYTES_MAX = (size_t)64 << 20; /* programs that need more stay as they are */
constexpr int32_t LATER_MAX = 6;

/* Nodes that must come before those that read a node's outputs. */
typedef struct later {
    int32_t nodes[LATER_MAX];
    int32_t count;
} later;

typedef struct effects {
    mr_planner *planner;
    int32_t words;
    uint64_t *sets; /* by node: the set of those with effects that come before it by edges that remain; and itself */
    later *later;   /* by node; it has those of all in it, too */
    int32_t *candidates, candidate_count; /* nodes that one may have to wait for */
    int32_t *seen;                        /* by node: 1 + the last one for which it was a candidate */
} effects;

static uint64_t *set_of(const effects *e, int32_t node)
{
    return e->sets + (size_t)node * (size_t)e->words;
}

static bool is_in(const uint64_t *set, const uint64_t *others, int32_t words)
{
    for (int32_t i = 0; i < words; i++)
        if (set[i] & ~others[i]) return false;
    return true;
}

static void add(uint64_t *set, const uint64_t *others, int32_t words)
{
    for (int32_t i = 0; i < words; i++) set[i] |= others[i];
}

/* Whether the node does more than to compute its outputs from its inputs, or reads memory that others may change. */
static bool has_effects(const mr_planner *planner, const mr_plan_node *node)
{
    constexpr uint32_t EFFECTS = MR_OP_STATEFUL | MR_OP_PLACEHOLDER | MR_OP_CALL | MR_OP_WAITS;
    if (!node->kernel) return false; /* a constant or a handle, or it was left out */
    if (node->is_copy || node->node->def->op->flags & EFFECTS) return true;
    for (int32_t i = 0; i < node->input_count; i++)
        if (mr_plan_depends_on_state(planner, node->inputs[i]) || mr_plan_variable_of(planner, node->inputs[i]) >= 0)
            return true;
    for (int32_t i = 0; i < node->output_count; i++)
        if (mr_plan_depends_on_state(planner, node->first_output + i)) return true;
    return false;
}

static void add_candidate(effects *e, int32_t index, int32_t node)
{
    if (e->seen[node] == index + 1) return;
    e->seen[node] = index + 1;
    assert(e->candidate_count < e->planner->node_count);
    e->candidates[e->candidate_count++] = node;
}

static void add_later(effects *e, int32_t index, int32_t node)
{
    for (int32_t i = 0; i < e->later[node].count; i++) add_candidate(e, index, e->later[node].nodes[i]);
}

/* Whether it makes no difference when the node runs: it cannot fail, before a node that would have said why. */
static bool is_free(const mr_planner *planner, const mr_plan_node *node)
{
    mr_elementwise loops;
    if (node->pinned || has_effects(planner, node)) return false;
    for (int32_t i = 0; i < node->output_count; i++)
        if (planner->values[node->first_output + i].fetched) return false;
    if (!node->kernel || node->node->def->op->flags & MR_OP_IDENTITY) return true;
    const mr_plan_value *output = &planner->values[node->first_output];
    return (output->dtype == MR_FLOAT || output->dtype == MR_DOUBLE) && mr_shape_count(output->shape) >= 0 &&
           node->kernel->elementwise && node->kernel->elementwise(output->dtype, &loops);
}

/* Gives the node the control edges from candidates whose sets are not part of its own, or leaves them to its
 * readers. */
static mr_status choose_controls(effects *e, int32_t index, mr_error *error)
{
    mr_plan_node *node = &e->planner->nodes[index];
    uint64_t *set = set_of(e, index);
    int32_t kept = 0;
    for (int32_t i = 0; i < e->candidate_count; i++)
        if (!is_in(set_of(e, e->candidates[i]), set, e->words)) e->candidates[kept++] = e->candidates[i];
    node->control_count = 0;
    if (is_free(e->planner, node) && kept <= LATER_MAX) {
        memcpy(e->later[index].nodes, e->candidates, (size_t)kept * sizeof *e->candidates);
        e->later[index].count = kept;
        return MR_OK;
    }
    node->controls = MR_ARENA_NEW(&e->planner->arena, int32_t, (size_t)kept + 1);
    if (!node->controls) return mr_fail_memory(error, (size_t)kept * sizeof *node->controls);
    for (int32_t i = 0; i < kept; i++) {
        if (is_in(set_of(e, e->candidates[i]), set, e->words)) continue;
        add(set, set_of(e, e->candidates[i]), e->words);
        node->controls[node->control_count++] = e->candidates[i];
    }
    return MR_OK;
}

/* Makes the set of a node and chooses its control edges. */
static mr_status loosen_node(effects *e, int32_t index, int32_t *effect_count, mr_error *error)
{
    const mr_planner *planner = e->planner;
    const mr_plan_node *node = &planner->nodes[index];
    uint64_t *set = set_of(e, index);
    e->candidate_count = 0;
    for (int32_t i = 0; i < node->input_count; i++) {
        const int32_t producer = planner->values[node->inputs[i]].producer;
        if (producer < 0) continue;
        add(set, set_of(e, producer), e->words);
        add_later(e, index, producer);
    }
    for (int32_t i = 0; i < node->control_count; i++) {
        add_candidate(e, index, node->controls[i]);
        add_later(e, index, node->controls[i]);
    }
    MR_TRY(choose_controls(e, index, error));
    assert(e->later[index].count == 0 || node->control_count == 0);
    if (!has_effects(planner, node)) return MR_OK;
    assert(*effect_count < e->words * 64);
    set[*effect_count / 64] |= 1ull << *effect_count % 64;
    ++*effect_count;
    return MR_OK;
}

/* Lets those that read what an Identity passes on read what it reads. */
static mr_status pass_by(mr_planner *planner, const int32_t *order, int32_t count, mr_error *error)
{
    int32_t *instead = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)planner->value_count + 1);
    if (!instead) return mr_fail_memory(error, (size_t)planner->value_count * sizeof *instead);
    for (int32_t i = 0; i < planner->value_count; i++) instead[i] = i;
    for (int32_t i = 0; i < count; i++) {
        const mr_plan_node *node = &planner->nodes[order[i]];
        for (int32_t j = 0; j < node->input_count; j++) node->inputs[j] = instead[node->inputs[j]];
        if (!mr_plan_may_drop(planner, node) || !(node->node->def->op->flags & MR_OP_IDENTITY) ||
            node->control_count > 0 || has_effects(planner, node))
            continue;
        instead[node->first_output] = node->inputs[0];
    }
    return MR_OK;
}

mr_status mr_plan_loosen(mr_planner *planner, mr_error *error)
{
    int32_t *order, count, effect_count = 0;
    effects e = {.planner = planner, .words = 1};
    if (planner->has_flow) return MR_OK;
    MR_TRY(mr_plan_topological(planner, &order, &count, error));
    for (int32_t i = 0; i < count; i++) effect_count += has_effects(planner, &planner->nodes[order[i]]);
    e.words += effect_count / 64;
    const size_t words = (size_t)planner->node_count * (size_t)e.words;
    if (words > SETS_BYTES_MAX / sizeof *e.sets) return MR_OK;
    e.sets = MR_ARENA_NEW(&planner->arena, uint64_t, words + 1);
    e.later = MR_ARENA_NEW(&planner->arena, later, (size_t)planner->node_count + 1);
    e.candidates = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)planner->node_count + 1);
    e.seen = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)planner->node_count + 1);
    if (!e.sets || !e.later || !e.candidates || !e.seen) return mr_fail_memory(error, words * sizeof *e.sets);
    effect_count = 0;
    for (int32_t i = 0; i < count; i++) MR_TRY(loosen_node(&e, order[i], &effect_count, error));
    return pass_by(planner, order, count, error);
}
