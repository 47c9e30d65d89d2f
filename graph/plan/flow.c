/* Flow: finds the loop that each node belongs to, and the condition under which it runs.
 *
 * A condition is a set of facts: "the predicate p is true", "the merge m has a value". Its node runs if all of them
 * hold: a node needs all its inputs, and a Switch adds a fact to its outputs. Sets are numbered, so two nodes with the
 * same number always run together. The opposite is not needed: a fact of its own is right for any value, and only
 * divides the program into smaller segments.
 *
 * A loop runs if all values that enter it exist: constants, which always do, enter together with values of a branch.
 * Inside a loop the facts are those of one iteration. All variables of a loop normally continue together, so its merges
 * share one fact. If it turns out that they do not, every merge gets its own. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* More facts are replaced by a new one, so that a hostile graph costs no more than linear time. */
constexpr int32_t FACTS_MAX = 48;
/* Loops inside each other. */
constexpr int32_t LEVELS_MAX = 100;
/* Attempts to let the merges of a loop share a fact, before all get their own. */
constexpr int ATTEMPTS_MAX = 4;

typedef struct condition {
    uint64_t hash;
    int32_t next; /* in its bucket; -1: the last one */
    int32_t count;
    const int64_t *facts; /* sorted */
} condition;

typedef struct flow {
    mr_planner *planner;
    condition *conditions; /* condition 0 is empty */
    int32_t condition_count, condition_capacity;
    int32_t *buckets;
    uint32_t bucket_count; /* a power of two */
    mr_name_table regions; /* "parent/name" -> region */
    int32_t *out;          /* by plan node: the condition under which its control edges pass */
    int32_t *out_region;   /* by plan node: the region of its outputs */
    bool *is_split;        /* by region: its merges have facts of their own */
    bool *is_left;         /* by region: an Exit has been visited */
    bool is_late;          /* an Enter after that has changed the condition of the region */
    int64_t fresh;         /* number of facts that belong to no predicate and no merge */
} flow;

/* ---- Conditions ---- */

static int64_t fact_of_predicate(int32_t value, bool is_true)
{
    return (int64_t)value << 1 | is_true;
}

static int64_t fact_of_merge(int32_t node)
{
    return INT64_C(1) << 40 | node;
}

static int64_t fact_of_region(int32_t region)
{
    return INT64_C(2) << 40 | region;
}

static int64_t fresh_fact(flow *f)
{
    return INT64_C(3) << 40 | f->fresh++;
}

static uint64_t hash_facts(const int64_t *facts, int32_t count)
{
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (int32_t i = 0; i < count; i++) hash = (hash ^ (uint64_t)facts[i]) * 0xd6e8feb86659fd93u, hash ^= hash >> 32;
    return hash;
}

static mr_status grow(flow *f, mr_error *error)
{
    if (f->condition_count < f->condition_capacity) return MR_OK;
    int32_t capacity = f->condition_capacity ? 2 * f->condition_capacity : 64;
    condition *larger = MR_ARENA_NEW(&f->planner->arena, condition, (size_t)capacity);
    int32_t *buckets = MR_ARENA_NEW(&f->planner->arena, int32_t, (size_t)capacity * 2);
    if (!larger || !buckets) return mr_fail_memory(error, (size_t)capacity * sizeof *larger);
    if (f->condition_count > 0) memcpy(larger, f->conditions, (size_t)f->condition_count * sizeof *larger);
    f->bucket_count = (uint32_t)capacity * 2;
    for (uint32_t i = 0; i < f->bucket_count; i++) buckets[i] = -1;
    for (int32_t i = 0; i < f->condition_count; i++) {
        int32_t *bucket = &buckets[larger[i].hash & (f->bucket_count - 1)];
        larger[i].next = *bucket;
        *bucket = i;
    }
    f->conditions = larger;
    f->condition_capacity = capacity;
    f->buckets = buckets;
    return MR_OK;
}

/* The number of the set; facts are sorted and copied. */
static mr_status number(flow *f, const int64_t *facts, int32_t count, int32_t *found, mr_error *error)
{
    uint64_t hash = hash_facts(facts, count);
    MR_TRY(grow(f, error));
    int32_t *bucket = &f->buckets[hash & (f->bucket_count - 1)];
    for (*found = *bucket; *found >= 0; *found = f->conditions[*found].next) {
        const condition *c = &f->conditions[*found];
        if (c->hash != hash || c->count != count) continue;
        if (count == 0 || memcmp(c->facts, facts, (size_t)count * sizeof *facts) == 0) return MR_OK;
    }
    int64_t *copy = MR_ARENA_NEW(&f->planner->arena, int64_t, (size_t)count + 1);
    if (!copy) return mr_fail_memory(error, (size_t)count * sizeof *copy);
    if (count > 0) memcpy(copy, facts, (size_t)count * sizeof *copy);
    *found = f->condition_count++;
    f->conditions[*found] = (condition){.hash = hash, .next = *bucket, .count = count, .facts = copy};
    *bucket = *found;
    return MR_OK;
}

static mr_status number_one(flow *f, int64_t fact, int32_t *found, mr_error *error)
{
    return number(f, &fact, 1, found, error);
}

/* Both conditions together. */
static mr_status both(flow *f, int32_t a, int32_t b, int32_t *joined, mr_error *error)
{
    *joined = b == 0 ? a : b;
    if (a == b || a == 0 || b == 0) return MR_OK;
    int64_t facts[2 * FACTS_MAX];
    int32_t count = 0, i = 0, j = 0;
    const condition *left = &f->conditions[a], *right = &f->conditions[b];
    while (i < left->count || j < right->count) {
        bool takes_left = j == right->count || (i < left->count && left->facts[i] <= right->facts[j]);
        if (takes_left && j < right->count && left->facts[i] == right->facts[j]) j++;
        facts[count++] = takes_left ? left->facts[i++] : right->facts[j++];
    }
    if (count > FACTS_MAX) return number_one(f, fresh_fact(f), joined, error);
    return number(f, facts, count, joined, error);
}

/* If the conditions differ only in a predicate, which is false in one and true in the other: what they have in common.
 * One of them always holds under that condition. */
static bool complement(flow *f, int32_t a, int32_t b, int32_t *common, mr_error *error)
{
    const condition *left = &f->conditions[a], *right = &f->conditions[b];
    int64_t facts[FACTS_MAX];
    int32_t differing = -1;
    if (left->count != right->count) return false;
    for (int32_t i = 0; i < left->count; i++) {
        if (left->facts[i] == right->facts[i]) continue;
        bool opposite = (left->facts[i] ^ right->facts[i]) == 1 && left->facts[i] < INT64_C(1) << 40;
        if (!opposite || differing >= 0) return false;
        differing = i;
    }
    if (differing < 0) return false;
    for (int32_t i = 0, count = 0; i < left->count; i++)
        if (i != differing) facts[count++] = left->facts[i];
    return number(f, facts, left->count - 1, common, error) == MR_OK;
}

/* ---- Regions ---- */

static mr_status add_region(mr_planner *planner, mr_plan_region region, int32_t *index, mr_error *error)
{
    if (planner->region_count == planner->region_capacity) {
        int32_t capacity = planner->region_capacity ? 2 * planner->region_capacity : 8;
        mr_plan_region *larger = MR_ARENA_NEW(&planner->arena, mr_plan_region, (size_t)capacity);
        if (!larger) return mr_fail_memory(error, (size_t)capacity * sizeof *larger);
        if (planner->region_count > 0) memcpy(larger, planner->regions, (size_t)planner->region_count * sizeof *larger);
        planner->regions = larger;
        planner->region_capacity = capacity;
    }
    *index = planner->region_count++;
    planner->regions[*index] = region;
    return MR_OK;
}

/* The region of that name inside the parent, which the first Enter node adds. */
static mr_status find_region(flow *f, int32_t parent, const mr_node *enter, int32_t *region, mr_error *error)
{
    mr_planner *planner = f->planner;
    mr_string name = mr_attr_string_or(&enter->attrs, "frame_name", "");
    size_t size = name.size_bytes + 16;
    char *key = mr_arena_alloc(&planner->arena, size);
    if (!key) return mr_fail_memory(error, size);
    snprintf(key, size, "%" PRId32 "/%.*s", parent, (int)name.size_bytes, name.data);
    *region = mr_name_table_get(&f->regions, key, -1);
    if (*region >= 0) return MR_OK;
    int32_t level = planner->regions[parent].level + 1;
    if (level > LEVELS_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s (%s): more than %d loops inside each other", enter->name,
                       enter->op, LEVELS_MAX);
    MR_TRY(add_region(planner, (mr_plan_region){.parent = parent, .name = name, .entry = -1, .level = level}, region,
                      error));
    return mr_name_table_set(&f->regions, key, *region, error);
}

static bool is_loop_merge(const mr_planner *planner, const mr_plan_node *node)
{
    if (mr_node_flow(node->node) != MR_FLOW_MERGE) return false;
    for (int32_t i = 0; i < node->input_count; i++)
        if (mr_plan_is_back_edge(planner, node, i)) return true;
    return false;
}

static mr_status frame_error(const flow *f, const mr_plan_node *node, int32_t region, int32_t other, mr_error *error)
{
    mr_string a = f->planner->regions[region].name, b = f->planner->regions[other].name;
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s (%s) has inputs from different frames: '%.*s' and '%.*s'",
                   node->node->name, node->node->op, (int)a.size_bytes, a.data, (int)b.size_bytes, b.data);
}

/* The node's region: that of all its inputs. */
static mr_status place_in_region(const flow *f, mr_plan_node *node, mr_error *error)
{
    const mr_planner *planner = f->planner;
    int32_t region = -1;
    for (int32_t i = 0; i < node->input_count + node->control_count; i++) {
        if (i < node->input_count && mr_plan_is_back_edge(planner, node, i)) continue;
        int32_t from = i < node->input_count ? planner->values[node->inputs[i]].region
                                             : f->out_region[node->controls[i - node->input_count]];
        if (region >= 0 && from != region) return frame_error(f, node, region, from, error);
        region = from;
    }
    node->region = region < 0 ? 0 : region;
    return MR_OK;
}

/* ---- Nodes ---- */

/* The condition of a node that needs all its inputs. */
static mr_status condition_of_inputs(flow *f, const mr_plan_node *node, bool data, bool controls, int32_t *condition,
                                     mr_error *error)
{
    const mr_planner *planner = f->planner;
    *condition = 0;
    for (int32_t i = 0; data && i < node->input_count; i++)
        MR_TRY(both(f, *condition, planner->values[node->inputs[i]].condition, condition, error));
    for (int32_t i = 0; controls && i < node->control_count; i++)
        MR_TRY(both(f, *condition, f->out[node->controls[i]], condition, error));
    return MR_OK;
}

static mr_status condition_of_merge(flow *f, int32_t index, const mr_plan_node *node, int32_t *condition,
                                    mr_error *error)
{
    const mr_planner *planner = f->planner;
    if (is_loop_merge(planner, node))
        return number_one(f, f->is_split[node->region] ? fact_of_merge(index) : fact_of_region(node->region), condition,
                          error);
    if (node->input_count == 1) return condition_of_inputs(f, node, true, false, condition, error);
    if (node->input_count == 2 && complement(f, planner->values[node->inputs[0]].condition,
                                             planner->values[node->inputs[1]].condition, condition, error))
        return MR_OK;
    return number_one(f, fact_of_merge(index), condition, error);
}

static mr_status enter(flow *f, mr_plan_node *node, int32_t *region, int32_t *condition, mr_error *error)
{
    mr_planner *planner = f->planner;
    MR_TRY(find_region(f, node->region, node->node, region, error));
    mr_plan_region *entered = &planner->regions[*region];
    int32_t before = entered->entry;
    entered->entry = node->condition;
    if (before >= 0) MR_TRY(both(f, before, node->condition, &entered->entry, error));
    f->is_late |= before != entered->entry && f->is_left[*region];
    *condition = 0; /* an iteration exists only if the loop is entered */
    return MR_OK;
}

static mr_status leave(flow *f, const mr_plan_node *node, int32_t *region, int32_t *condition, mr_error *error)
{
    const mr_planner *planner = f->planner;
    if (node->region == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s (%s) is not inside a loop", node->node->name, node->node->op);
    *region = planner->regions[node->region].parent;
    *condition = planner->regions[node->region].entry;
    f->is_left[node->region] = true;
    return MR_OK;
}

static mr_status visit(flow *f, int32_t index, mr_error *error)
{
    mr_planner *planner = f->planner;
    mr_plan_node *node = &planner->nodes[index];
    mr_flow kind = mr_node_flow(node->node);
    MR_TRY(place_in_region(f, node, error));
    if (kind == MR_FLOW_MERGE)
        MR_TRY(condition_of_merge(f, index, node, &node->condition, error));
    else
        MR_TRY(condition_of_inputs(f, node, true, kind != MR_FLOW_TRIGGER, &node->condition, error));
    int32_t region = node->region, out = node->condition;
    if (kind == MR_FLOW_ENTER) MR_TRY(enter(f, node, &region, &out, error));
    if (kind == MR_FLOW_EXIT) MR_TRY(leave(f, node, &region, &out, error));
    if (kind == MR_FLOW_NEXT_ITERATION && node->region == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s (%s) is not inside a loop", node->node->name, node->node->op);
    f->out[index] = out;
    f->out_region[index] = region;
    for (int32_t i = 0; i < node->output_count; i++) {
        mr_plan_value *value = &planner->values[node->first_output + i];
        value->region = region;
        value->condition = out;
        if (kind != MR_FLOW_SWITCH) continue;
        int32_t branch;
        MR_TRY(number_one(f, fact_of_predicate(mr_plan_predicate(planner, node), i == 1), &branch, error));
        MR_TRY(both(f, out, branch, &value->condition, error));
    }
    return MR_OK;
}

/* ---- Loops ---- */

/* Finds regions whose variables do not all continue under the same condition. */
static mr_status check_loops(flow *f, int32_t *continues, bool *again, mr_error *error)
{
    const mr_planner *planner = f->planner;
    for (int32_t i = 0; i < planner->region_count; i++) continues[i] = -1;
    for (int32_t i = 0; i < planner->node_count; i++) {
        const mr_plan_node *node = &planner->nodes[i];
        if (!node->live || !is_loop_merge(planner, node)) continue;
        for (int32_t j = 0; j < node->input_count; j++) {
            if (!mr_plan_is_back_edge(planner, node, j)) continue;
            const mr_plan_value *value = &planner->values[node->inputs[j]];
            int32_t *condition = &continues[node->region];
            if (value->region != node->region) return frame_error(f, node, node->region, value->region, error);
            if (*condition < 0) *condition = value->condition;
            if (*condition == value->condition && node->input_count == 2) continue;
            *again |= !f->is_split[node->region];
            f->is_split[node->region] = true;
        }
    }
    return MR_OK;
}

static mr_status visit_all(flow *f, mr_error *error)
{
    int32_t *order, count;
    MR_TRY(mr_plan_topological(f->planner, &order, &count, error));
    memset(f->is_left, false, (size_t)f->planner->node_count + 1);
    f->is_late = false;
    f->planner->region_count = 1;
    mr_name_table_deinit(&f->regions);
    f->regions = (mr_name_table){0};
    for (int32_t i = 0; i < count; i++) MR_TRY(visit(f, order[i], error));
    return MR_OK;
}

/* An Exit may pass its value on before everything has entered the loop. A chain of edges through the Enter nodes of
 * each loop, and from the last one to each Exit, keeps what follows the loop behind what enters it. */
static mr_status chain_loops(mr_planner *planner, mr_error *error)
{
    int32_t *last = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)planner->region_count);
    planner->loop_edges = MR_ARENA_NEW(&planner->arena, mr_plan_edge, (size_t)planner->node_count + 1);
    if (!last || !planner->loop_edges) return mr_fail_memory(error, sizeof *planner->loop_edges);
    for (int32_t i = 0; i < planner->region_count; i++) last[i] = -1;
    planner->loop_edge_count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int32_t i = 0; i < planner->node_count; i++) {
            const mr_plan_node *node = &planner->nodes[i];
            bool is_enter = mr_node_flow(node->node) == MR_FLOW_ENTER,
                 is_exit = mr_node_flow(node->node) == MR_FLOW_EXIT;
            if (!node->live || (pass == 0 ? !is_enter : !is_exit)) continue;
            int32_t region = is_enter ? planner->values[node->first_output].region : node->region;
            if (last[region] >= 0) planner->loop_edges[planner->loop_edge_count++] = (mr_plan_edge){last[region], i};
            if (is_enter) last[region] = i;
        }
    return MR_OK;
}

static mr_status check_fetches(const mr_planner *planner, mr_error *error)
{
    for (int32_t i = 0; i < planner->signature->fetch_count; i++) {
        int32_t region = planner->values[planner->fetch_values[i]].region;
        const mr_output fetch = planner->signature->fetches[i];
        if (region != 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s:%d is inside the loop '%.*s' and cannot be fetched",
                           fetch.node->name, (int)fetch.index, (int)planner->regions[region].name.size_bytes,
                           planner->regions[region].name.data);
    }
    return MR_OK;
}

static mr_status find_flow(flow *f, mr_error *error)
{
    mr_planner *planner = f->planner;
    size_t nodes = (size_t)planner->node_count + 1;
    f->out = MR_ARENA_NEW(&planner->arena, int32_t, nodes);
    f->out_region = MR_ARENA_NEW(&planner->arena, int32_t, nodes);
    f->is_split = MR_ARENA_NEW(&planner->arena, bool, nodes); /* a region has an Enter node */
    f->is_left = MR_ARENA_NEW(&planner->arena, bool, nodes);
    int32_t *continues = MR_ARENA_NEW(&planner->arena, int32_t, nodes);
    if (!f->out || !f->out_region || !f->is_split || !f->is_left || !continues) return mr_fail_memory(error, nodes);
    int32_t always;
    MR_TRY(number(f, nullptr, 0, &always, error));
    assert(always == 0);
    bool again = true;
    for (int attempt = 1; again; attempt++) {
        again = false;
        MR_TRY(visit_all(f, error));
        if (f->is_late) { /* again, with what enters a loop before what leaves it */
            assert(planner->loop_edge_count == 0);
            MR_TRY(chain_loops(planner, error));
            memset(f->is_split, false, nodes); /* the regions get other numbers */
            again = true;
            continue;
        }
        MR_TRY(check_loops(f, continues, &again, error));
        if (again && attempt >= ATTEMPTS_MAX) memset(f->is_split, true, nodes);
    }
    return MR_OK;
}

mr_status mr_plan_flow(mr_planner *planner, mr_error *error)
{
    int32_t region;
    MR_TRY(add_region(planner, (mr_plan_region){.parent = -1, .name = {"", 0}}, &region, error));
    int32_t waiting = 0;
    for (int32_t i = 0; i < planner->node_count; i++) {
        mr_flow kind = mr_node_flow(planner->nodes[i].node);
        planner->has_flow |= kind != MR_FLOW_NONE && kind != MR_FLOW_TRIGGER;
        waiting += mr_plan_waits(&planner->nodes[i]);
    }
    planner->has_flow |= waiting > 1;
    if (!planner->has_flow) return MR_OK;
    flow f = {.planner = planner};
    mr_status status = find_flow(&f, error);
    mr_name_table_deinit(&f.regions);
    MR_TRY(status);
    MR_TRY(chain_loops(planner, error));
    return check_fetches(planner, error);
}
