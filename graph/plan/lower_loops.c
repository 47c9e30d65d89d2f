/* Straight loops: those that the session can run without tokens, one iteration after another in one frame.
 *
 * A loop is straight if it has three segments: a head with its variables (Merge), a body that leads to the next
 * iteration and exits, and one predicate of the head decides between these two. None of them contains another loop or
 * may wait. Iterations in parallel would gain nothing then: all calls run on the calling thread.
 *
 * Nodes that only forward a value are not called. Instead the slot that their consumers read is renamed to the slot
 * that has the value, in the end to that of a variable or of a kernel's output. The last use of each slot is then
 * found anew, along one iteration: the calls of the head, the decision, the calls of the body, and the moves of the
 * variables' next values. A loop with anything unusual keeps its tokens. */
#include "graph/plan/lower.h"

#include <assert.h>

/* Where a slot has a value. */
typedef enum defined {
    NOWHERE,
    ALWAYS, /* from the head on */
    IN_BODY,
    AT_EXIT,
} defined;

typedef struct variable {
    int32_t entered, next, slot; /* the slots of the Merge node: its inputs and its output */
    int32_t source;              /* the slot with the next value; -1: none yet */
} variable;

typedef struct straightener {
    mr_lowering *lowering;
    mr_program *program;
    mr_region *region;
    mr_straight_loop loop;
    int32_t body_segment;
    /* By slot. */
    int32_t *name; /* the slot to read instead */
    uint8_t *defined;
    bool *owned;   /* neither a constant nor one that every iteration borrows */
    bool *at_exit; /* read after the last iteration */
    bool *is_variable;
    int32_t *last; /* the place of the last reader in an iteration; -1: none */
    int32_t *head, *body;
    variable *variables;
    int32_t variable_count;
    mr_move *enter, *next;
    int32_t *releases;
} straightener;

static mr_status allocate(straightener *s, mr_error *error)
{
    mr_program *program = s->program;
    mr_arena *arena = &s->lowering->planner->arena;
    const mr_region *region = s->region;
    size_t slots = (size_t)region->slot_count + 1;
    int32_t calls = 0;
    for (int32_t i = region->first_segment; i < region->first_segment + region->segment_count; i++)
        calls += program->segments[i].end_call - program->segments[i].first_call;
    s->name = MR_ARENA_NEW(arena, int32_t, slots);
    s->defined = MR_ARENA_NEW(arena, uint8_t, slots);
    s->owned = MR_ARENA_NEW(arena, bool, slots);
    s->at_exit = MR_ARENA_NEW(arena, bool, slots);
    s->is_variable = MR_ARENA_NEW(arena, bool, slots);
    s->last = MR_ARENA_NEW(arena, int32_t, slots);
    s->variables = MR_ARENA_NEW(arena, variable, (size_t)calls + 1);
    s->head = NEW(int32_t, calls);
    s->body = NEW(int32_t, calls);
    s->enter = NEW(mr_move, calls);
    s->next = NEW(mr_move, 2 * calls);
    s->releases = NEW(int32_t, region->slot_count + calls);
    if (!s->name || !s->defined || !s->owned || !s->at_exit || !s->is_variable || !s->last || !s->variables ||
        !s->head || !s->body || !s->enter || !s->next || !s->releases)
        return mr_fail_memory(error, slots * sizeof(int32_t));
    for (int32_t i = 0; i < region->slot_count; i++) {
        s->name[i] = i;
        s->last[i] = -1;
    }
    for (int32_t i = 0; i < region->owned_count; i++) s->owned[region->owned[i]] = true;
    for (int32_t i = 0; i < region->constant_count; i++) s->defined[region->constants[i]] = ALWAYS;
    for (int32_t i = 0; i < region->invariant_count; i++) s->defined[region->invariants[i]] = ALWAYS;
    return MR_OK;
}

/* ---- The shape of the loop ---- */

static bool has_three_segments(straightener *s)
{
    const mr_region *region = s->region;
    const mr_program *program = s->program;
    if (region->segment_count != 3 || region->loop_count > 0) return false;
    int32_t head = region->first_segment;
    s->body_segment = s->loop.exit = -1;
    for (int32_t i = head; i < head + 3; i++) {
        const mr_segment *segment = &program->segments[i];
        bool goes_on = false, stays = false, leaves = false;
        if (segment->is_merge || segment->waits) return false;
        for (int32_t j = segment->first_edge; j < segment->end_edge; j++) {
            goes_on |= program->edges[j].kind == MR_EDGE_NEXT;
            leaves |= program->edges[j].kind == MR_EDGE_EXIT;
            stays |= program->edges[j].kind == MR_EDGE_SAME || program->edges[j].kind == MR_EDGE_ENTER;
        }
        if (i == head && (goes_on || leaves || segment->pending > 0)) return false;
        if (i == head) continue;
        if (stays || (goes_on && leaves)) return false;
        *(goes_on ? &s->body_segment : &s->loop.exit) = i;
    }
    return s->body_segment >= 0 && s->loop.exit >= 0;
}

/* True if the head's tokens to a segment depend on one predicate, and sets its branch. */
static bool find_branch(const straightener *s, int32_t to, int32_t *predicate, bool *branch)
{
    const mr_segment *head = &s->program->segments[s->region->first_segment];
    *predicate = -1;
    for (int32_t i = head->first_edge; i < head->end_edge; i++) {
        const mr_edge *edge = &s->program->edges[i];
        if (edge->target != to || edge->is_order || edge->predicate < 0) continue;
        if (*predicate >= 0 && (*predicate != edge->predicate || *branch != edge->branch)) return false;
        *predicate = edge->predicate;
        *branch = edge->branch;
    }
    return *predicate >= 0;
}

static bool has_one_predicate(straightener *s)
{
    int32_t predicate, other;
    bool branch = false;
    if (!find_branch(s, s->body_segment, &predicate, &s->loop.branch)) return false;
    if (!find_branch(s, s->loop.exit, &other, &branch)) return false;
    return predicate == other && branch != s->loop.branch;
}

/* ---- Names ---- */

static bool define(straightener *s, int32_t slot, defined where)
{
    if (s->defined[slot] != NOWHERE) return false;
    s->defined[slot] = (uint8_t)where;
    return true;
}

/* Renames the slot to another one that has a value. */
static bool rename_slot(straightener *s, int32_t slot, int32_t source, defined where)
{
    if (!define(s, slot, where)) return false;
    s->name[slot] = s->name[source];
    return true;
}

static bool is_there(const straightener *s, int32_t slot, defined where)
{
    return s->defined[slot] == ALWAYS || s->defined[slot] == (uint8_t)where;
}

static bool add_variable(straightener *s, const mr_call *call, const mr_plan_node *node)
{
    const mr_planner *planner = s->lowering->planner;
    if (call->input_count != 2 || call->flow_index != 0) return false;
    bool first = mr_plan_is_back_edge(planner, node, 0), second = mr_plan_is_back_edge(planner, node, 1);
    if (first == second) return false;
    variable made = {.entered = call->inputs[second ? 0 : 1].slot,
                     .next = call->inputs[second ? 1 : 0].slot,
                     .slot = call->first_output,
                     .source = -1};
    /* What enters is a constant or comes from outside; no other variable has the same two values. */
    if (s->owned[made.entered] && s->defined[made.entered] != NOWHERE) return false;
    for (int32_t i = 0; i < s->variable_count; i++)
        if (s->variables[i].next == made.next || (s->owned[made.entered] && s->variables[i].entered == made.entered))
            return false;
    s->variables[s->variable_count++] = made;
    s->is_variable[made.slot] = true;
    return define(s, made.slot, ALWAYS);
}

static bool add_switch(straightener *s, const mr_call *call)
{
    int32_t data = call->inputs[0].slot, predicate = call->inputs[1].slot;
    if (!is_there(s, data, ALWAYS) || !is_there(s, predicate, ALWAYS)) return false;
    if (s->loop.decision && s->loop.predicate != s->name[predicate]) return false;
    s->loop.decision = call;
    s->loop.predicate = s->name[predicate];
    return rename_slot(s, call->first_output + s->loop.branch, data, IN_BODY) &&
           rename_slot(s, call->first_output + !s->loop.branch, data, AT_EXIT);
}

static bool set_next(straightener *s, const mr_call *call)
{
    if (!is_there(s, call->inputs[0].slot, IN_BODY)) return false;
    for (int32_t i = 0; i < s->variable_count; i++) {
        variable *at = &s->variables[i];
        if (at->next != call->first_output) continue;
        at->source = s->name[call->inputs[0].slot];
        return s->defined[at->next] == NOWHERE; /* it is empty until the end of the iteration */
    }
    return false;
}

static bool is_identity(const mr_call *call, const mr_plan_node *node)
{
    return call->plain && !node->is_copy && !call->state && mr_node_has_flag(node->node, MR_OP_IDENTITY) &&
           call->input_count == 1 && call->output_count == 1;
}

static bool add_call(straightener *s, int32_t index, defined where)
{
    const mr_call *call = &s->program->calls[index];
    const mr_plan_node *node = &s->lowering->planner->nodes[s->lowering->sequence[index]];
    if (call->flow == MR_FLOW_MERGE && where == ALWAYS) return call->plain && add_variable(s, call, node);
    if (call->flow == MR_FLOW_SWITCH && where == ALWAYS) return call->plain && add_switch(s, call);
    if (call->flow == MR_FLOW_NEXT_ITERATION && where == IN_BODY) return call->plain && set_next(s, call);
    if (call->flow != MR_FLOW_NONE && call->flow != MR_FLOW_TRIGGER && (call->flow != MR_FLOW_EXIT || where != AT_EXIT))
        return false;
    for (int32_t i = 0; i < call->input_count; i++)
        if (!is_there(s, call->inputs[i].slot, where)) return false;
    if (call->flow == MR_FLOW_EXIT || !call->run) return true; /* what only orders others needs no call */
    if (where != AT_EXIT && is_identity(call, node))
        return rename_slot(s, call->first_output, call->inputs[0].slot, where);
    for (int32_t i = 0; i < call->output_count; i++)
        if (!define(s, call->first_output + i, where)) return false;
    if (where == ALWAYS) s->head[s->loop.head_count++] = index;
    if (where == IN_BODY) s->body[s->loop.body_count++] = index;
    return true;
}

static bool add_calls(straightener *s, int32_t segment, defined where)
{
    const mr_segment *at = &s->program->segments[segment];
    for (int32_t i = at->first_call; i < at->end_call; i++)
        if (!add_call(s, i, where)) return false;
    return true;
}

static bool name_all(straightener *s)
{
    if (!add_calls(s, s->region->first_segment, ALWAYS) || !s->loop.decision) return false;
    if (!add_calls(s, s->body_segment, IN_BODY) || !add_calls(s, s->loop.exit, AT_EXIT)) return false;
    for (int32_t i = 0; i < s->variable_count; i++)
        if (s->variables[i].source < 0) return false;
    return true;
}

/* ---- Last uses ---- */

/* Places in an iteration: the head's calls, the decision, the body's calls, the moves. */
static int32_t decision_place(const straightener *s)
{
    return s->loop.head_count;
}

static int32_t end_place(const straightener *s)
{
    return s->loop.head_count + 1 + s->loop.body_count;
}

static const mr_call *call_at(const straightener *s, int32_t place)
{
    assert(place != decision_place(s));
    int32_t index = place < s->loop.head_count ? s->head[place] : s->body[place - s->loop.head_count - 1];
    return &s->program->calls[index];
}

/* True if the value may go after the reader at that place. What exits read stays until the decision. */
static bool ends_at(const straightener *s, int32_t slot, int32_t place)
{
    return s->owned[slot] && s->last[slot] <= place && (place > decision_place(s) || !s->at_exit[slot]);
}

static void find_last_uses(straightener *s)
{
    const mr_segment *exit = &s->program->segments[s->loop.exit];
    for (int32_t i = exit->first_call; i < exit->end_call; i++)
        for (int32_t j = 0; j < s->program->calls[i].input_count; j++)
            s->at_exit[s->name[s->program->calls[i].inputs[j].slot]] = true;
    for (int32_t place = 0; place < end_place(s); place++) {
        if (place == decision_place(s)) {
            s->last[s->loop.predicate] = place;
            continue;
        }
        const mr_call *call = call_at(s, place);
        for (int32_t i = 0; i < call->input_count; i++) s->last[s->name[call->inputs[i].slot]] = place;
    }
    for (int32_t i = 0; i < s->variable_count; i++) s->last[s->variables[i].source] = end_place(s);
}

static mr_status rewrite_call(const straightener *s, int32_t place, mr_error *error)
{
    mr_program *program = s->program;
    mr_call *call = (mr_call *)call_at(s, place);
    mr_call_input *inputs = (mr_call_input *)call->inputs;
    const mr_plan_node *node = &s->lowering->planner->nodes[s->lowering->sequence[call - program->calls]];
    int32_t *releases = NEW(int32_t, call->input_count + call->output_count);
    if (!releases) return mr_fail_memory(error, sizeof *releases);
    call->release_count = 0;
    for (int32_t i = 0; i < call->input_count; i++) inputs[i].slot = s->name[inputs[i].slot];
    for (int32_t i = 0; i < call->input_count; i++) {
        int32_t slot = inputs[i].slot, times = 0, before = 0;
        for (int32_t j = 0; j < call->input_count; j++) {
            times += inputs[j].slot == slot;
            before += inputs[j].slot == slot && j < i;
        }
        bool ends = ends_at(s, slot, place), is_ref = s->lowering->planner->values[node->inputs[i]].is_ref;
        inputs[i].last_use = ends && times == 1 && !is_ref;
        inputs[i].last_in_segment = false;
        if (ends && before == 0) releases[call->release_count++] = slot;
    }
    for (int32_t i = 0; i < call->output_count; i++)
        if (ends_at(s, call->first_output + i, place)) releases[call->release_count++] = call->first_output + i;
    call->releases = releases;
    return MR_OK;
}

static void rewrite_exit(const straightener *s)
{
    const mr_segment *exit = &s->program->segments[s->loop.exit];
    for (int32_t i = exit->first_call; i < exit->end_call; i++) {
        mr_call *call = &s->program->calls[i];
        for (int32_t j = 0; j < call->input_count; j++) {
            mr_call_input *input = (mr_call_input *)&call->inputs[j];
            input->slot = s->name[input->slot];
            input->last_use = input->last_in_segment = false; /* the end of the frame releases it */
        }
    }
}

/* ---- Moves ---- */

static bool is_used_once(const straightener *s, int32_t source)
{
    int32_t count = 0;
    for (int32_t i = 0; i < s->variable_count; i++) count += s->variables[i].source == source;
    return count == 1;
}

/* The values of the next iteration. One that is the value of another variable, or of several, goes through the slot of
 * the NextIteration node first, so that no move overwrites what a later one reads. */
static void make_moves(straightener *s)
{
    assert(s->loop.enter_count == 0 && s->loop.next_count == 0);
    for (int32_t i = 0; i < s->variable_count; i++) {
        const variable *at = &s->variables[i];
        s->enter[s->loop.enter_count++] = (mr_move){at->entered, at->slot, s->owned[at->entered]};
        if (at->source == at->slot || !s->owned[at->source]) continue;
        if (s->is_variable[at->source] || !is_used_once(s, at->source))
            s->next[s->loop.next_count++] = (mr_move){at->source, at->next, false};
    }
    for (int32_t i = 0; i < s->variable_count; i++) {
        const variable *at = &s->variables[i];
        if (at->source == at->slot) continue;
        bool is_copied = s->owned[at->source] && (s->is_variable[at->source] || !is_used_once(s, at->source));
        s->next[s->loop.next_count++] = (mr_move){is_copied ? at->next : at->source, at->slot, s->owned[at->source]};
    }
}

/* What is left at the end of an iteration, besides the variables: what only exits read, and what was copied. */
static void find_releases(straightener *s)
{
    for (int32_t i = 0; i < s->region->slot_count; i++) {
        bool is_made = s->owned[i] && s->name[i] == i && s->defined[i] != NOWHERE && s->defined[i] != AT_EXIT;
        if (!is_made || s->is_variable[i]) continue;
        bool is_kept = s->at_exit[i] && s->last[i] <= decision_place(s);
        bool is_copied = s->last[i] == end_place(s) && !is_used_once(s, i);
        if (is_kept || is_copied) s->releases[s->loop.release_count++] = i;
    }
}

static mr_status straighten(mr_lowering *l, mr_region *region, mr_error *error)
{
    straightener s = {.lowering = l, .program = l->program, .region = region};
    if (!has_three_segments(&s) || !has_one_predicate(&s)) return MR_OK;
    MR_TRY(allocate(&s, error));
    if (!name_all(&s)) return MR_OK;
    find_last_uses(&s);
    for (int32_t place = 0; place < end_place(&s); place++)
        if (place != decision_place(&s)) MR_TRY(rewrite_call(&s, place, error));
    rewrite_exit(&s);
    make_moves(&s);
    find_releases(&s);
    s.loop.predicate_is_last = !s.is_variable[s.loop.predicate] && ends_at(&s, s.loop.predicate, decision_place(&s));
    s.loop.head = s.head;
    s.loop.body = s.body;
    s.loop.enter = s.enter;
    s.loop.next = s.next;
    s.loop.releases = s.releases;
    s.loop.is_straight = true;
    region->straight = s.loop;
    return MR_OK;
}

mr_status mr_lower_straight_loops(mr_lowering *l, mr_error *error)
{
    if (!mr_plan_optimizes(l->planner)) return MR_OK;
    if (l->planner->uses_gpu) return MR_OK; /* the source of a copy must be kept until the end of the run */
    for (int32_t i = 1; i < l->program->region_count; i++) MR_TRY(straighten(l, &l->program->regions[i], error));
    return MR_OK;
}
