/* Segment: divides a program with conditionals or loops into parts that run, or do not run, together.
 *
 * The nodes of a segment have the same region and condition. A segment waits for everything that its nodes need from
 * others, so no path may leave it and come back: a node whose input comes from another segment is one level deeper than
 * that segment, and nodes of different depths are in different segments. Edges between segments therefore always lead
 * to a greater depth. A merge of a conditional is a segment of its own, because it waits for one of its inputs only. So
 * is a node that may wait (a dequeue), and what comes after it is not in a segment with what does not.
 *
 * The order pass has decided which of a variable's readers run before its updates. Within a segment that order is kept;
 * between segments it becomes an edge, unless the reader comes after a node that may wait and the update does not: what
 * that node waits for may come after the update. */
#include "graph/plan/plan.h"

#include <assert.h>

/* A reader of a variable that comes before later updates. */
typedef struct reader {
    int32_t node;
    struct reader *next;
} reader;

typedef struct segmenter {
    mr_planner *planner;
    int32_t *depth;    /* by plan node; -1: not in the order */
    uint64_t *waiting; /* by plan node: what waits before it */
    uint8_t *bit;      /* by plan node that waits: its bit in these sets */
    int32_t waiting_count;
    reader **readers; /* by value, for handles */
    int32_t *buckets; /* segments by hash */
    int32_t *next;    /* by segment */
    uint32_t bucket_count;
} segmenter;

bool mr_plan_is_conditional_merge(const mr_planner *planner, const mr_plan_node *node)
{
    if (node->is_copy || mr_node_flow(node->node) != MR_FLOW_MERGE) return false;
    for (int32_t i = 0; i < node->input_count; i++)
        if (mr_plan_is_back_edge(planner, node, i)) return false;
    return true;
}

static bool is_together(const segmenter *s, int32_t a, int32_t b)
{
    const mr_plan_node *first = &s->planner->nodes[a], *second = &s->planner->nodes[b];
    if (mr_plan_waits(first) || mr_plan_waits(second) || s->waiting[a] != s->waiting[b]) return false;
    return first->region == second->region && first->condition == second->condition &&
           !mr_plan_is_conditional_merge(s->planner, first) && !mr_plan_is_conditional_merge(s->planner, second);
}

/* Makes node run after `before`, a node of the order or -1. */
static void go_below(segmenter *s, int32_t index, int32_t before)
{
    const mr_planner *planner = s->planner;
    if (before < 0 || s->depth[before] < 0) return;
    mr_flow kind = planner->nodes[before].is_copy ? MR_FLOW_NONE : mr_node_flow(planner->nodes[before].node);
    int32_t depth = s->depth[before] + !is_together(s, index, before);
    if (kind == MR_FLOW_ENTER && planner->nodes[index].region != planner->nodes[before].region) return;
    if (kind == MR_FLOW_EXIT) depth = planner->regions[planner->nodes[before].region].depth + 1;
    if (depth > s->depth[index]) s->depth[index] = depth;
}

static mr_status add_order_edge(mr_planner *planner, int32_t from, int32_t to, mr_error *error)
{
    if (planner->order_edge_count == planner->order_edge_capacity) {
        int32_t capacity = planner->order_edge_capacity ? 2 * planner->order_edge_capacity : 16;
        mr_plan_edge *larger = MR_ARENA_NEW(&planner->arena, mr_plan_edge, (size_t)capacity);
        if (!larger) return mr_fail_memory(error, (size_t)capacity * sizeof *larger);
        for (int32_t i = 0; i < planner->order_edge_count; i++) larger[i] = planner->order_edges[i];
        planner->order_edges = larger;
        planner->order_edge_capacity = capacity;
    }
    planner->order_edges[planner->order_edge_count++] = (mr_plan_edge){from, to};
    return MR_OK;
}

/* An update that comes after the guard waits until the guard has been checked, at the end of its segment. */
static mr_status go_below_guard(segmenter *s, int32_t index, mr_error *error)
{
    mr_planner *planner = s->planner;
    int32_t guard = mr_plan_guard_node(planner);
    if (guard < 0 || s->depth[guard] < 0) return MR_OK; /* none, or later in the order */
    if (planner->nodes[guard].region != 0 || planner->nodes[index].region != 0) return MR_OK;
    if (s->depth[index] <= s->depth[guard]) s->depth[index] = s->depth[guard] + 1;
    return add_order_edge(planner, guard, index, error);
}

/* Keeps the order of the node and of earlier readers of the variables that it updates. */
static mr_status go_below_readers(segmenter *s, int32_t index, mr_error *error)
{
    mr_planner *planner = s->planner;
    const mr_plan_node *node = &planner->nodes[index];
    for (int32_t i = 0; i < node->input_count; i++) {
        int32_t handle = mr_plan_variable_of(planner, node->inputs[i]);
        if (handle < 0) continue;
        if (!mr_plan_updates(node, i)) {
            reader *made = MR_ARENA_NEW(&planner->arena, reader, 1);
            if (!made) return mr_fail_memory(error, sizeof *made);
            *made = (reader){.node = index, .next = s->readers[handle]};
            s->readers[handle] = made;
            continue;
        }
        for (const reader *r = s->readers[handle]; r; r = r->next) {
            if (planner->nodes[r->node].region != node->region || r->node == index) continue;
            if (s->waiting[r->node] & ~s->waiting[index]) continue;
            go_below(s, index, r->node);
            MR_TRY(add_order_edge(planner, r->node, index, error));
        }
        MR_TRY(go_below_guard(s, index, error));
        s->readers[handle] = nullptr; /* later updates come after this one, or need no order */
    }
    return MR_OK;
}

/* What waits before the consumers of a node. */
static uint64_t waiting_after(const segmenter *s, int32_t index)
{
    if (index < 0 || s->depth[index] < 0) return 0;
    if (!mr_plan_waits(&s->planner->nodes[index])) return s->waiting[index];
    return s->waiting[index] | UINT64_C(1) << s->bit[index];
}

static void find_waiting(segmenter *s, int32_t index)
{
    const mr_planner *planner = s->planner;
    const mr_plan_node *node = &planner->nodes[index];
    for (int32_t i = 0; i < node->input_count; i++)
        if (!mr_plan_is_back_edge(planner, node, i))
            s->waiting[index] |= waiting_after(s, planner->values[node->inputs[i]].producer);
    for (int32_t i = 0; i < node->control_count; i++) s->waiting[index] |= waiting_after(s, node->controls[i]);
    if (mr_plan_waits(node)) s->bit[index] = s->waiting_count < 63 ? (uint8_t)s->waiting_count++ : 63;
}

static mr_status set_depth(segmenter *s, int32_t index, mr_error *error)
{
    mr_planner *planner = s->planner;
    mr_plan_node *node = &planner->nodes[index];
    find_waiting(s, index);
    s->depth[index] = 0;
    for (int32_t i = 0; i < node->input_count; i++)
        if (!mr_plan_is_back_edge(planner, node, i)) go_below(s, index, planner->values[node->inputs[i]].producer);
    for (int32_t i = 0; i < node->control_count; i++) go_below(s, index, node->controls[i]);
    MR_TRY(go_below_readers(s, index, error));
    if (node->is_copy || mr_node_flow(node->node) != MR_FLOW_ENTER || node->output_count == 0) return MR_OK;
    mr_plan_region *entered = &planner->regions[planner->values[node->first_output].region];
    if (entered->depth < s->depth[index]) entered->depth = s->depth[index];
    return MR_OK;
}

/* The segment of the node: an existing one, unless it is a merge or may wait. */
static void find_segment(segmenter *s, int32_t index)
{
    mr_planner *planner = s->planner;
    mr_plan_node *node = &planner->nodes[index];
    bool is_merge = mr_plan_is_conditional_merge(planner, node);
    uint64_t hash = ((uint64_t)node->region * 0x9e3779b97f4a7c15u ^ (uint64_t)node->condition) * 0xd6e8feb86659fd93u;
    hash = (hash ^ (uint64_t)s->depth[index] ^ s->waiting[index]) * 0x9e3779b97f4a7c15u;
    bool waits = mr_plan_waits(node), is_alone = is_merge || waits;
    int32_t *bucket = &s->buckets[(hash ^ hash >> 32) & (s->bucket_count - 1)];
    for (int32_t i = *bucket; i >= 0 && !is_alone; i = s->next[i]) {
        const mr_plan_segment *at = &planner->segments[i];
        if (at->region != node->region || at->condition != node->condition || at->depth != s->depth[index] ||
            at->waiting != s->waiting[index])
            continue;
        node->segment = i;
        planner->segments[i].node_count++;
        return;
    }
    node->segment = planner->segment_count++;
    planner->segments[node->segment] = (mr_plan_segment){.region = node->region,
                                                         .condition = node->condition,
                                                         .depth = s->depth[index],
                                                         .is_merge = is_merge,
                                                         .waits = waits,
                                                         .waiting = s->waiting[index],
                                                         .node_count = 1};
    if (is_alone) return;
    s->next[node->segment] = *bucket;
    *bucket = node->segment;
}

mr_status mr_plan_segments(mr_planner *planner, mr_error *error)
{
    if (!planner->has_flow) return MR_OK;
    size_t nodes = (size_t)planner->node_count + 1, ordered = (size_t)planner->order_count + 1;
    segmenter s = {.planner = planner, .bucket_count = 64};
    while (s.bucket_count < ordered) s.bucket_count *= 2;
    s.depth = MR_ARENA_NEW(&planner->arena, int32_t, nodes);
    s.waiting = MR_ARENA_NEW(&planner->arena, uint64_t, nodes);
    s.bit = MR_ARENA_NEW(&planner->arena, uint8_t, nodes);
    s.readers = MR_ARENA_NEW(&planner->arena, reader *, (size_t)planner->value_count + 1);
    s.buckets = MR_ARENA_NEW(&planner->arena, int32_t, s.bucket_count);
    s.next = MR_ARENA_NEW(&planner->arena, int32_t, ordered);
    planner->segments = MR_ARENA_NEW(&planner->arena, mr_plan_segment, ordered);
    if (!s.depth || !s.waiting || !s.bit || !s.readers || !s.buckets || !s.next || !planner->segments)
        return mr_fail_memory(error, nodes * sizeof(mr_plan_segment));
    for (size_t i = 0; i < nodes; i++) s.depth[i] = -1;
    for (uint32_t i = 0; i < s.bucket_count; i++) s.buckets[i] = -1;
    for (int32_t i = 0; i < planner->order_count; i++) MR_TRY(set_depth(&s, planner->order[i], error));
    for (int32_t i = 0; i < planner->order_count; i++) find_segment(&s, planner->order[i]);
    return MR_OK;
}
