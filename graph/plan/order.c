/* Order: chooses a sequence of the plan's nodes that respects data and control edges.
 *
 * Where edges leave a choice, nodes run in creation order. This is good for memory use, because builders create the
 * gradients of a layer together. There are four exceptions, which depend on the effect of a node if it ran now:
 *   a node that frees more memory than it allocates runs first, and so does one that only makes a few numbers: an
 *   optimizer makes its learning rate after all gradients, which would be kept until then;
 *   a node that updates a variable runs after all nodes that read the variable: here they always read the old value,
 *   where TensorFlow leaves the order open, and a value that is not referenced elsewhere is updated in place;
 *   a node that may wait (a dequeue) runs when nothing else can, since what it waits for may come after any other node:
 *   also after an update, whose other readers then read the new value;
 *   in a step with a guard, a node that updates a variable runs after the guard. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <string.h>

/* Consumers of each node, as one array divided by `begins`, with one edge for each input and control input. */
typedef struct edges {
    int32_t *begins; /* node_count + 2 */
    int32_t *consumers;
    int32_t *waiting; /* number of unfinished edges into each node */
} edges;

/* The plan node at the source of an edge, or -1. An edge from the previous iteration orders nothing within one. */
static int32_t edge_source(const mr_planner *planner, const mr_plan_node *node, int32_t edge)
{
    if (edge < node->input_count && mr_plan_is_back_edge(planner, node, edge)) return -1;
    int32_t before = edge < node->input_count ? planner->values[node->inputs[edge]].producer
                                              : node->controls[edge - node->input_count];
    return before >= 0 && planner->nodes[before].live ? before : -1;
}

static mr_status find_edges(mr_planner *planner, edges *found, mr_error *error)
{
    size_t count = (size_t)planner->node_count, edge_count = 0;
    found->begins = MR_ARENA_NEW(&planner->arena, int32_t, count + 2);
    found->waiting = MR_ARENA_NEW(&planner->arena, int32_t, count + 1);
    if (!found->begins || !found->waiting) return mr_fail_memory(error, count * 8);
    for (int32_t i = 0; i < planner->node_count; i++) {
        const mr_plan_node *node = &planner->nodes[i];
        for (int32_t j = 0; node->live && j < node->input_count + node->control_count; j++) {
            int32_t before = edge_source(planner, node, j);
            if (before < 0) continue;
            found->begins[before + 2]++;
            found->waiting[i]++;
            edge_count++;
        }
    }
    for (int32_t i = 0; i < planner->loop_edge_count; i++) {
        const mr_plan_edge *edge = &planner->loop_edges[i];
        if (!planner->nodes[edge->from].live || !planner->nodes[edge->to].live) continue;
        found->begins[edge->from + 2]++;
        found->waiting[edge->to]++;
        edge_count++;
    }
    for (size_t i = 2; i < count + 2; i++) found->begins[i] += found->begins[i - 1];
    found->consumers = MR_ARENA_NEW(&planner->arena, int32_t, edge_count + 1);
    if (!found->consumers) return mr_fail_memory(error, edge_count * 4);
    for (int32_t i = 0; i < planner->node_count; i++) {
        const mr_plan_node *node = &planner->nodes[i];
        for (int32_t j = 0; node->live && j < node->input_count + node->control_count; j++) {
            int32_t before = edge_source(planner, node, j);
            if (before >= 0) found->consumers[found->begins[before + 1]++] = i;
        }
    }
    for (int32_t i = 0; i < planner->loop_edge_count; i++) {
        const mr_plan_edge *edge = &planner->loop_edges[i];
        if (planner->nodes[edge->from].live && planner->nodes[edge->to].live)
            found->consumers[found->begins[edge->from + 1]++] = edge->to;
    }
    return MR_OK;
}

/* A min-heap of keys: a node's class in the high bits, its number in the low bits. */
typedef struct heap {
    int64_t *keys;
    int32_t count, capacity;
} heap;

static void heap_push(heap *h, int64_t key)
{
    assert(h->count < h->capacity && key >= 0);
    int32_t i = h->count++;
    for (; i > 0 && h->keys[(i - 1) / 2] > key; i = (i - 1) / 2) h->keys[i] = h->keys[(i - 1) / 2];
    h->keys[i] = key;
}

static int64_t heap_pop(heap *h)
{
    assert(h->count > 0);
    int64_t top = h->keys[0], key = h->keys[--h->count];
    int32_t i = 0;
    for (int32_t child; (child = 2 * i + 1) < h->count; i = child) {
        if (child + 1 < h->count && h->keys[child + 1] < h->keys[child]) child++;
        if (h->keys[child] >= key) break;
        h->keys[i] = h->keys[child];
    }
    if (h->count > 0) h->keys[i] = key;
    return top;
}

/* By the place of a node; its number is in the low bits. */
static int64_t key_at(const mr_planner *planner, int32_t index)
{
    assert(planner->nodes[index].place < 1 << 29);
    return (int64_t)planner->nodes[index].place << 31 | index;
}

enum { CLASS_FREES, CLASS_PLAIN, CLASS_DEFERRED, CLASS_WAITS, CLASS_GUARDED };

/* A node that updates a variable, in the variable's list. */
typedef struct updater {
    int32_t node;
    struct updater *next;
} updater;

typedef struct scheduler {
    mr_planner *planner;
    edges edges;
    heap ready;
    bool *done;
    int32_t *uses;      /* by value: consumers that have not run */
    int32_t *readers;   /* by value, for handles: nodes that read the variable and have not run */
    updater **updaters; /* by value, for handles */
    int32_t guard;      /* the node whose output is the guard, until it has run; otherwise -1 */
} scheduler;

static mr_status find_readers(scheduler *s, mr_error *error)
{
    mr_planner *planner = s->planner;
    for (int32_t i = 0; i < planner->node_count; i++) {
        const mr_plan_node *node = &planner->nodes[i];
        for (int32_t j = 0; node->live && j < node->input_count; j++) {
            s->uses[node->inputs[j]]++;
            int32_t handle = mr_plan_variable_of(planner, node->inputs[j]);
            if (handle < 0) continue;
            if (!mr_plan_updates(node, j)) {
                s->readers[handle]++;
                continue;
            }
            updater *made = MR_ARENA_NEW(&planner->arena, updater, 1);
            if (!made) return mr_fail_memory(error, sizeof *made);
            *made = (updater){.node = i, .next = s->updaters[handle]};
            s->updaters[handle] = made;
        }
    }
    return MR_OK;
}

/* Whether the node only makes a few numbers, or is nothing to run: a constant or a variable's handle. */
static bool is_small(const mr_planner *planner, const mr_plan_node *node)
{
    constexpr int64_t COUNT_MAX = 16;
    if (!node->kernel && !node->is_copy && !mr_plan_is_gate(planner, node)) return true;
    if (node->output_count != 1 || !node->kernel || node->node->def->op->flags & MR_OP_STATEFUL) return false;
    const int64_t count = mr_shape_count(planner->values[node->first_output].shape);
    return count >= 0 && count <= COUNT_MAX;
}

static int64_t key_of(const scheduler *s, int32_t index)
{
    const mr_planner *planner = s->planner;
    const mr_plan_node *node = &planner->nodes[index];
    size_t freed_bytes = 0, made_bytes = 0;
    for (int32_t i = 0; i < node->input_count; i++) {
        const mr_plan_value *value = &planner->values[node->inputs[i]];
        int32_t handle = mr_plan_updates(node, i) ? mr_plan_handle(planner, node->inputs[i]) : -1;
        if (handle >= 0 && s->guard >= 0) return (int64_t)CLASS_GUARDED << 60 | key_at(planner, index);
        if (handle >= 0 && s->readers[handle] > 0) return (int64_t)CLASS_DEFERRED << 60 | key_at(planner, index);
        if (value->kind == MR_VALUE_OUTPUT && !value->is_ref && !value->fetched && s->uses[node->inputs[i]] == 1)
            freed_bytes += mr_plan_value_bytes(value);
    }
    if (mr_plan_waits(node)) return (int64_t)CLASS_WAITS << 60 | key_at(planner, index);
    for (int32_t i = 0; i < node->output_count; i++) {
        const mr_plan_value *value = &planner->values[node->first_output + i];
        if (!value->is_ref) made_bytes += mr_plan_value_bytes(value);
    }
    const bool is_first = freed_bytes > made_bytes || is_small(planner, node);
    return (int64_t)(is_first ? CLASS_FREES : CLASS_PLAIN) << 60 | key_at(planner, index);
}

/* Pushes updaters whose only unmet condition was the one for which they were deferred. */
static void push_ready_updaters(scheduler *s, int32_t handle)
{
    for (const updater *u = s->updaters[handle]; u; u = u->next)
        if (!s->done[u->node] && s->edges.waiting[u->node] == 0) heap_push(&s->ready, key_of(s, u->node));
}

static void run_node(scheduler *s, int32_t index)
{
    mr_planner *planner = s->planner;
    const mr_plan_node *node = &planner->nodes[index];
    assert(node->live && !s->done[index] && s->edges.waiting[index] == 0);
    s->done[index] = true;
    if (index == s->guard) {
        s->guard = -1;
        for (int32_t i = 0; i < planner->value_count; i++) push_ready_updaters(s, i);
    }
    if (node->kernel || node->is_copy || mr_plan_is_gate(planner, node)) planner->order[planner->order_count++] = index;
    for (int32_t i = 0; i < node->input_count; i++) {
        s->uses[node->inputs[i]]--;
        int32_t handle = mr_plan_variable_of(planner, node->inputs[i]);
        assert(s->uses[node->inputs[i]] >= 0);
        if (handle < 0 || mr_plan_updates(node, i)) continue;
        assert(s->readers[handle] > 0);
        if (--s->readers[handle] == 0) push_ready_updaters(s, handle);
    }
    for (int32_t i = s->edges.begins[index]; i < s->edges.begins[index + 1]; i++) {
        int32_t consumer = s->edges.consumers[i];
        assert(planner->nodes[consumer].live && s->edges.waiting[consumer] > 0);
        if (--s->edges.waiting[consumer] == 0) heap_push(&s->ready, key_of(s, consumer));
    }
}

mr_status mr_plan_order(mr_planner *planner, mr_error *error)
{
    size_t nodes = (size_t)planner->node_count + 1, values = (size_t)planner->value_count + 1;
    scheduler s = {.planner = planner, .guard = mr_plan_guard_node(planner)};
    MR_TRY(find_edges(planner, &s.edges, error));
    s.done = MR_ARENA_NEW(&planner->arena, bool, nodes);
    s.uses = MR_ARENA_NEW(&planner->arena, int32_t, values);
    s.readers = MR_ARENA_NEW(&planner->arena, int32_t, values);
    s.updaters = MR_ARENA_NEW(&planner->arena, updater *, values);
    planner->order = MR_ARENA_NEW(&planner->arena, int32_t, nodes);
    if (!s.done || !s.uses || !s.readers || !s.updaters || !planner->order) return mr_fail_memory(error, nodes);
    MR_TRY(find_readers(&s, error));
    size_t pushes =
        nodes; /* each node once, and an updater twice more for each handle that it takes: when readers are done,
                  when the guard is */
    for (int32_t i = 0; i < planner->value_count; i++)
        for (const updater *u = s.updaters[i]; u; u = u->next) pushes += 2;
    s.ready.keys = MR_ARENA_NEW(&planner->arena, int64_t, pushes);
    s.ready.capacity = (int32_t)pushes;
    if (!s.ready.keys) return mr_fail_memory(error, pushes * 8);
    for (int32_t i = 0; i < planner->node_count; i++)
        if (planner->nodes[i].live && s.edges.waiting[i] == 0) heap_push(&s.ready, key_of(&s, i));
    while (s.ready.count > 0) {
        int32_t index = (int32_t)(heap_pop(&s.ready) & INT32_MAX);
        if (!s.done[index]) run_node(&s, index);
    }
    for (int32_t i = 0; i < planner->node_count; i++) assert(!planner->nodes[i].live || s.done[i]);
    return MR_OK;
}

/* The error for live nodes that wait for each other: a loop in the graph, or an invalid cycle. */
static mr_status cycle_error(const mr_planner *planner, const edges *found, mr_error *error)
{
    const mr_node *stuck = nullptr;
    for (int32_t i = 0; i < planner->node_count; i++) {
        const mr_node *node = planner->nodes[i].node;
        if (!planner->nodes[i].live || found->waiting[i] == 0) continue;
        if (!stuck) stuck = node;
    }
    if (!stuck) return mr_fail(error, MR_INTERNAL, "the plan has a cycle");
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s (%s) depends on its own output: the graph has a cycle", stuck->name,
                   stuck->op);
}

mr_status mr_plan_topological(mr_planner *planner, int32_t **order, int32_t *count, mr_error *error)
{
    edges found = {0};
    MR_TRY(find_edges(planner, &found, error));
    heap ready = {.keys = MR_ARENA_NEW(&planner->arena, int64_t, (size_t)planner->node_count + 1),
                  .capacity = planner->node_count + 1};
    *order = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)planner->node_count + 1);
    if (!ready.keys || !*order) return mr_fail_memory(error, (size_t)planner->node_count * 8);
    int32_t live = 0;
    *count = 0;
    for (int32_t i = 0; i < planner->node_count; i++) {
        if (!planner->nodes[i].live) continue;
        live++;
        if (found.waiting[i] == 0) heap_push(&ready, key_at(planner, i));
    }
    while (ready.count > 0) {
        int32_t node = (int32_t)(heap_pop(&ready) & INT32_MAX);
        (*order)[(*count)++] = node;
        for (int32_t i = found.begins[node]; i < found.begins[node + 1]; i++)
            if (--found.waiting[found.consumers[i]] == 0) heap_push(&ready, key_at(planner, found.consumers[i]));
    }
    assert(*count <= live);
    return *count == live ? MR_OK : cycle_error(planner, &found, error);
}
