/* The segments of a program: the order of their calls, the edges between them, and the slots that they share. */
#include "graph/plan/lower.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static mr_flow flow_of(const mr_plan_node *node)
{
    return node->is_copy ? MR_FLOW_NONE : mr_node_flow(node->node);
}

static bool is_constant_enter(const mr_plan_node *node)
{
    return flow_of(node) == MR_FLOW_ENTER && mr_attr_bool_or(&node->node->attrs, "is_constant", false);
}

bool mr_lower_is_invariant(const mr_planner *planner, const mr_plan_value *value)
{
    return value->producer >= 0 && is_constant_enter(&planner->nodes[value->producer]);
}

/* ---- The order of segments ---- */

typedef struct ranked {
    int32_t region, depth, index;
} ranked;

static int compare_ranks(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->region != y->region) return x->region < y->region ? -1 : 1;
    if (x->depth != y->depth) return x->depth < y->depth ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

mr_status mr_lower_sequence_segments(mr_lowering *l, mr_error *error)
{
    mr_planner *planner = l->planner;
    mr_program *program = l->program;
    size_t count = (size_t)planner->segment_count + 1;
    ranked *ranks = MR_ARENA_NEW(&planner->arena, ranked, count);
    int32_t *rank_of = MR_ARENA_NEW(&planner->arena, int32_t, count);
    int32_t *sequence = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)program->call_count + 1);
    mr_segment *segments = NEW(mr_segment, planner->segment_count);
    if (!ranks || !rank_of || !sequence || !segments) return mr_fail_memory(error, count * sizeof *segments);
    for (int32_t i = 0; i < planner->segment_count; i++)
        ranks[i] = (ranked){planner->segments[i].region, planner->segments[i].depth, i};
    qsort(ranks, (size_t)planner->segment_count, sizeof *ranks, compare_ranks);
    int32_t calls = 0;
    for (int32_t i = 0; i < planner->segment_count; i++) {
        const mr_plan_segment *from = &planner->segments[ranks[i].index];
        mr_region *region = &program->regions[from->region];
        if (region->segment_count++ == 0) region->first_segment = i;
        segments[i] = (mr_segment){.region = from->region,
                                   .first_call = calls,
                                   .end_call = calls,
                                   .is_merge = from->is_merge,
                                   .waits = from->waits};
        rank_of[ranks[i].index] = i;
        calls += from->node_count;
    }
    assert(calls == program->call_count);
    for (int32_t i = 0; i < program->call_count; i++) {
        mr_plan_node *node = &planner->nodes[l->sequence[i]];
        node->segment = rank_of[node->segment];
        sequence[segments[node->segment].end_call++] = l->sequence[i];
    }
    l->sequence = sequence;
    program->segments = segments;
    program->segment_count = planner->segment_count;
    return MR_OK;
}

/* ---- Edges ---- */

typedef struct edge {
    int32_t source; /* segment */
    mr_edge edge;
} edge;

typedef struct edges {
    mr_lowering *lowering;
    edge *items;
    int32_t count, capacity;
    int32_t *predicates; /* by value: its number in its region; -1: none */
} edges;

static mr_status add_edge(edges *e, int32_t source, mr_edge edge_, mr_error *error)
{
    if (e->count == e->capacity) {
        int32_t capacity = e->capacity ? 2 * e->capacity : 256;
        edge *larger = MR_ARENA_NEW(&e->lowering->planner->arena, edge, (size_t)capacity);
        if (!larger) return mr_fail_memory(error, (size_t)capacity * sizeof *larger);
        if (e->count > 0) memcpy(larger, e->items, (size_t)e->count * sizeof *larger);
        e->items = larger;
        e->capacity = capacity;
    }
    e->items[e->count++] = (edge){source, edge_};
    return MR_OK;
}

/* An edge from the node `from`; a node that is not called sends no token. */
static mr_status connect(edges *e, int32_t from, const mr_plan_node *to, mr_edge edge_, mr_error *error)
{
    const mr_lowering *l = e->lowering;
    if (from < 0 || l->call_of[from] < 0) return MR_OK;
    const mr_plan_node *node = &l->planner->nodes[from];
    mr_flow kind = flow_of(node);
    if (kind == MR_FLOW_ENTER && node->region != to->region) return MR_OK; /* the loop waits for it */
    if (kind == MR_FLOW_EXIT) edge_.kind = MR_EDGE_EXIT;
    edge_.target = to->segment;
    if (edge_.kind == MR_EDGE_SAME && node->segment == to->segment) return MR_OK;
    assert(edge_.kind != MR_EDGE_SAME || node->region == to->region);
    return add_edge(e, node->segment, edge_, error);
}

static mr_status connect_input(edges *e, const mr_plan_node *node, int32_t input, mr_error *error)
{
    const mr_planner *planner = e->lowering->planner;
    const mr_plan_value *value = &planner->values[node->inputs[input]];
    mr_edge edge_ = {.predicate = -1, .merge_input = -1};
    if (mr_plan_is_back_edge(planner, node, input)) edge_.kind = MR_EDGE_NEXT;
    if (mr_plan_is_conditional_merge(planner, node)) edge_.merge_input = input;
    if (value->producer >= 0 && flow_of(&planner->nodes[value->producer]) == MR_FLOW_SWITCH) {
        edge_.predicate = e->predicates[mr_plan_predicate(planner, &planner->nodes[value->producer])];
        edge_.branch = value->index == 1;
        assert(edge_.predicate >= 0);
    }
    return connect(e, value->producer, node, edge_, error);
}

static mr_status connect_node(edges *e, const mr_plan_node *node, mr_error *error)
{
    for (int32_t i = 0; i < node->input_count; i++) MR_TRY(connect_input(e, node, i, error));
    bool is_order = flow_of(node) == MR_FLOW_TRIGGER;
    mr_edge edge_ = {.predicate = -1, .merge_input = -1, .is_order = is_order};
    for (int32_t i = 0; i < node->control_count; i++) MR_TRY(connect(e, node->controls[i], node, edge_, error));
    if (flow_of(node) != MR_FLOW_ENTER) return MR_OK;
    edge_ = (mr_edge){.kind = MR_EDGE_ENTER,
                      .target = e->lowering->planner->values[node->first_output].region,
                      .predicate = -1,
                      .merge_input = -1};
    return add_edge(e, node->segment, edge_, error);
}

static int compare_edges(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    const int32_t keys[][2] = {
        {x->source, y->source},
        {(int32_t)x->edge.kind, (int32_t)y->edge.kind},
        {x->edge.target, y->edge.target},
        {x->edge.merge_input, y->edge.merge_input},
        {x->edge.predicate, y->edge.predicate},
        {x->edge.branch, y->edge.branch},
        {x->edge.is_order, y->edge.is_order},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (keys[i][0] != keys[i][1]) return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static void count_token(mr_program *program, mr_segment *segments, const mr_edge *edge_)
{
    if (edge_->kind == MR_EDGE_ENTER) {
        program->regions[edge_->target].enter_tokens++;
        return;
    }
    mr_segment *target = &segments[edge_->target];
    if (edge_->merge_input >= 0) return;
    if (edge_->kind != MR_EDGE_NEXT) target->pending++;
    target->pending_later++;
}

static mr_status lower_edges(edges *e, mr_segment *segments, mr_error *error)
{
    mr_program *program = e->lowering->program;
    if (e->count > 0) qsort(e->items, (size_t)e->count, sizeof *e->items, compare_edges);
    mr_edge *lowered = NEW(mr_edge, e->count);
    if (!lowered) return mr_fail_memory(error, sizeof *lowered * (size_t)e->count);
    int32_t count = 0, next = 0;
    for (int32_t i = 0; i < program->segment_count; i++) {
        segments[i].first_edge = count;
        for (; next < e->count && e->items[next].source == i; next++) {
            if (next > 0 && compare_edges(&e->items[next - 1], &e->items[next]) == 0) continue;
            lowered[count++] = e->items[next].edge;
            count_token(program, segments, &e->items[next].edge);
        }
        segments[i].end_edge = count;
    }
    program->edges = lowered;
    return MR_OK;
}

/* Numbers the predicates of each region, by the value of the predicate. */
static mr_status number_predicates(edges *e, mr_error *error)
{
    mr_lowering *l = e->lowering;
    const mr_planner *planner = l->planner;
    e->predicates = MR_ARENA_NEW(&l->planner->arena, int32_t, (size_t)planner->value_count + 1);
    if (!e->predicates) return mr_fail_memory(error, (size_t)planner->value_count * sizeof(int32_t));
    for (int32_t i = 0; i < planner->value_count; i++) e->predicates[i] = -1;
    for (int32_t i = 0; i < l->program->call_count; i++) {
        const mr_plan_node *node = &planner->nodes[l->sequence[i]];
        if (flow_of(node) != MR_FLOW_SWITCH) continue;
        int32_t *predicate = &e->predicates[mr_plan_predicate(planner, node)];
        if (*predicate < 0) *predicate = l->program->regions[node->region].predicate_count++;
        l->program->calls[i].flow_index = *predicate;
    }
    return MR_OK;
}

/* ---- Slots that segments share ---- */

/* The segment that fills the value's slot; -1: another frame, or nobody. */
static int32_t filler(const mr_lowering *l, const mr_plan_value *value)
{
    if (value->kind != MR_VALUE_OUTPUT || value->producer < 0) return -1;
    const mr_plan_node *node = &l->planner->nodes[value->producer];
    mr_flow kind = flow_of(node);
    if (kind == MR_FLOW_ENTER || kind == MR_FLOW_EXIT || kind == MR_FLOW_NEXT_ITERATION) return -1;
    return node->segment;
}

static void find_shared(mr_lowering *l)
{
    const mr_planner *planner = l->planner;
    for (int32_t i = 0; i < planner->value_count; i++)
        l->is_shared[i] = planner->values[i].kind == MR_VALUE_OUTPUT && filler(l, &planner->values[i]) < 0;
    for (int32_t i = 0; i < l->program->call_count; i++) {
        const mr_plan_node *node = &planner->nodes[l->sequence[i]];
        for (int32_t j = 0; j < node->input_count; j++)
            l->is_shared[node->inputs[j]] |= filler(l, &planner->values[node->inputs[j]]) != node->segment;
    }
}

static bool is_counted(const mr_lowering *l, int32_t value)
{
    const mr_plan_value *v = &l->planner->values[value];
    return l->is_shared[value] && v->kind == MR_VALUE_OUTPUT && !mr_lower_is_invariant(l->planner, v);
}

static mr_status lower_uses(mr_lowering *l, mr_segment *segments, mr_error *error)
{
    const mr_planner *planner = l->planner;
    mr_program *program = l->program;
    size_t inputs = 1;
    for (int32_t i = 0; i < program->call_count; i++) inputs += (size_t)planner->nodes[l->sequence[i]].input_count;
    int32_t *uses = MR_ARENA_NEW(&program->arena, int32_t, inputs), count = 0;
    if (!uses) return mr_fail_memory(error, inputs * sizeof *uses);
    for (int32_t i = 0; i < program->region_count; i++) {
        mr_region *region = &program->regions[i];
        region->use_counts = NEW(int32_t, region->slot_count);
        if (!region->use_counts) return mr_fail_memory(error, (size_t)region->slot_count * sizeof(int32_t));
    }
    for (int32_t i = 0; i < planner->value_count; i++) l->seen[i] = -1;
    for (int32_t i = 0; i < program->segment_count; i++) {
        segments[i].first_use = count;
        for (int32_t j = segments[i].first_call; j < segments[i].end_call; j++) {
            const mr_plan_node *node = &planner->nodes[l->sequence[j]];
            for (int32_t k = 0; k < node->input_count; k++) {
                int32_t value = node->inputs[k];
                if (!is_counted(l, value) || l->seen[value] == i) continue;
                l->seen[value] = i;
                uses[count++] = l->slot_of[value];
                program->regions[segments[i].region].use_counts[l->slot_of[value]]++;
            }
        }
        segments[i].end_use = count;
    }
    for (int32_t i = 0; i < planner->signature->fetch_count; i++) {
        int32_t slot = l->slot_of[planner->fetch_values[i]];
        program->regions[0].use_counts[slot]++;
    }
    program->uses = uses;
    return MR_OK;
}

/* A merge input that no token announces, a constant or a feed, is there from the start. */
static void find_ready_inputs(const mr_lowering *l, mr_segment *segments)
{
    const mr_planner *planner = l->planner;
    for (int32_t i = 0; i < l->program->segment_count; i++) {
        if (!segments[i].is_merge) continue;
        const mr_plan_node *node = &planner->nodes[l->sequence[segments[i].first_call]];
        segments[i].merge_inputs = node->input_count;
        segments[i].ready_input = -1;
        for (int32_t j = node->input_count - 1; j >= 0; j--) {
            int32_t producer = planner->values[node->inputs[j]].producer;
            if (producer < 0 || l->call_of[producer] < 0) segments[i].ready_input = j;
        }
    }
}

mr_status mr_lower_segments(mr_lowering *l, mr_error *error)
{
    mr_segment *segments = l->program->segments;
    const mr_planner *planner = l->planner;
    edges e = {.lowering = l};
    MR_TRY(number_predicates(&e, error));
    for (int32_t i = 0; i < l->program->call_count; i++)
        MR_TRY(connect_node(&e, &planner->nodes[l->sequence[i]], error));
    for (int32_t i = 0; i < planner->order_edge_count; i++) {
        mr_edge edge_ = {.predicate = -1, .merge_input = -1, .is_order = true};
        const mr_plan_edge *order = &planner->order_edges[i];
        if (l->call_of[order->to] >= 0) MR_TRY(connect(&e, order->from, &planner->nodes[order->to], edge_, error));
    }
    MR_TRY(lower_edges(&e, segments, error));
    find_shared(l);
    find_ready_inputs(l, segments);
    return lower_uses(l, segments, error);
}

/* seen: by slot: 1 + the segment that reads it; counted: 1 + the segment whose read is counted; calls, twice: 1 + the
   last call that reads it (twice). */
typedef struct readers {
    int32_t *seen, *counted, *calls, *twice;
} readers;

/* A slot with one use left may be overwritten by its reader only if that use is the reader's: the fetches of values
 * that only their own segment reads are the only uses of these. */
static void mark_last_readers(const mr_program *program, int32_t index, readers *r)
{
    const mr_segment *segment = &program->segments[index];
    for (int32_t i = segment->first_use; i < segment->end_use; i++) r->counted[program->uses[i]] = index + 1;
    for (int32_t k = segment->end_call - 1; k >= segment->first_call; k--) {
        const mr_call *call = &program->calls[k];
        mr_call_input *inputs = (mr_call_input *)call->inputs;
        for (int32_t n = 0; n < call->input_count; n++) {
            int32_t slot = inputs[n].slot;
            if (r->calls[slot] == k + 1) r->twice[slot] = k + 1;
            r->calls[slot] = k + 1;
        }
        for (int32_t n = 0; n < call->input_count; n++) {
            int32_t slot = inputs[n].slot;
            inputs[n].last_in_segment =
                r->seen[slot] != index + 1 && r->twice[slot] != k + 1 && r->counted[slot] == index + 1;
            inputs[n].last_in_segment &= !segment->waits; /* it may run on another thread, which does not count */
        }
        for (int32_t n = 0; n < call->input_count; n++) r->seen[inputs[n].slot] = index + 1;
    }
}

mr_status mr_lower_last_readers(mr_lowering *l, mr_error *error)
{
    const mr_program *program = l->program;
    for (int32_t i = 0; i < program->region_count; i++) {
        const mr_region *region = &program->regions[i];
        size_t slots = (size_t)region->slot_count + 1;
        readers r = {.seen = MR_ARENA_NEW(&l->planner->arena, int32_t, slots),
                     .counted = MR_ARENA_NEW(&l->planner->arena, int32_t, slots),
                     .calls = MR_ARENA_NEW(&l->planner->arena, int32_t, slots),
                     .twice = MR_ARENA_NEW(&l->planner->arena, int32_t, slots)};
        if (!r.seen || !r.counted || !r.calls || !r.twice) return mr_fail_memory(error, slots * sizeof(int32_t));
        for (int32_t j = 0; j < region->segment_count; j++) mark_last_readers(program, region->first_segment + j, &r);
    }
    return MR_OK;
}

void mr_lower_flow(const mr_lowering *l, const mr_plan_node *node, mr_call *call)
{
    call->flow = flow_of(node);
    if (call->flow == MR_FLOW_MERGE) {
        int32_t index = node->first_output + 1;
        call->flow_index = l->last_use[index] >= 0 || l->planner->values[index].fetched;
    }
    if (call->flow != MR_FLOW_ENTER) return;
    call->flow_index = l->planner->values[node->first_output].region;
    call->is_constant = is_constant_enter(node);
}
