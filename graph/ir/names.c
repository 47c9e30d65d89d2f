/* Names, assigned as in TensorFlow 1: a case-insensitive table of the names in use; "_1", "_2", … is appended to a name
 * that is in use. Names of scopes are unique in the same table. */
#include "graph/ir/graph.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- The table ---- */

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *text != '\0'; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

static mr_name_slot *find_slot(const mr_name_table *table, const char *key, uint64_t hash)
{
    for (uint32_t at = (uint32_t)hash;; at++) {
        mr_name_slot *slot = &table->slots[at & (table->capacity - 1)];
        if (slot->key == nullptr || (slot->hash == hash && strcmp(slot->key, key) == 0)) return slot;
    }
}

int32_t mr_name_table_get(const mr_name_table *table, const char *key, int32_t default_value)
{
    if (table->capacity == 0) return default_value;
    const mr_name_slot *slot = find_slot(table, key, hash_text(key));
    return slot->key != nullptr ? slot->value : default_value;
}

static mr_status grow(mr_name_table *table, mr_error *error)
{
    mr_name_table larger = {.capacity = table->capacity == 0 ? 64 : table->capacity * 2, .count = table->count};
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (larger.slots == nullptr) return mr_fail_memory(error, larger.capacity * sizeof *larger.slots);
    for (uint32_t i = 0; i < table->capacity; i++) {
        const mr_name_slot *slot = &table->slots[i];
        if (slot->key != nullptr) *find_slot(&larger, slot->key, slot->hash) = *slot;
    }
    free(table->slots);
    *table = larger;
    return MR_OK;
}

mr_status mr_name_table_set(mr_name_table *table, const char *key, int32_t value, mr_error *error)
{
    if (table->count >= table->capacity / 2) MR_TRY(grow(table, error));
    uint64_t hash = hash_text(key);
    mr_name_slot *slot = find_slot(table, key, hash);
    if (slot->key == nullptr) {
        table->count++;
        *slot = (mr_name_slot){.key = key, .hash = hash};
    }
    slot->value = value;
    return MR_OK;
}

void mr_name_table_deinit(mr_name_table *table)
{
    free(table->slots);
    *table = (mr_name_table){0};
}

/* ---- Valid names ---- */

static bool is_alphanumeric(char character)
{
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9');
}

bool mr_scope_name_is_valid(const char *name)
{
    for (; *name != '\0'; name++)
        if (!is_alphanumeric(*name) && strchr("_./>-", *name) == nullptr) return false;
    return true;
}

bool mr_node_name_is_valid(const char *name)
{
    return (is_alphanumeric(*name) || *name == '.') && mr_scope_name_is_valid(name);
}

/* ---- Unique names ---- */

static char *lower_case(mr_graph *graph, const char *name)
{
    char *lower = mr_arena_strdup(&graph->arena, name);
    for (char *at = lower; at != nullptr && *at != '\0'; at++)
        if (*at >= 'A' && *at <= 'Z') *at = (char)(*at - 'A' + 'a');
    return lower;
}

static const char *fail_names(mr_graph *graph)
{
    mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a name");
    return "";
}

/* Graph.unique_name: the count of the plain name is one more than the suffix that is tried first. */
static const char *make_unique(mr_graph *graph, const char *name)
{
    const char *key = lower_case(graph, name);
    if (key == nullptr) return fail_names(graph);
    int32_t count = mr_name_table_get(&graph->taken, key, 0);
    if (mr_name_table_set(&graph->taken, key, count + 1, nullptr) != MR_OK) return fail_names(graph);
    if (count == 0) return name;
    const char *candidate = key;
    for (; mr_name_table_get(&graph->taken, candidate, 0) != 0; count++) {
        candidate = mr_arena_printf(&graph->arena, "%s_%d", key, count);
        if (candidate == nullptr) return fail_names(graph);
    }
    const char *unique = mr_arena_printf(&graph->arena, "%s_%d", name, count - 1);
    if (unique == nullptr || mr_name_table_set(&graph->taken, candidate, 1, nullptr) != MR_OK) return fail_names(graph);
    return unique;
}

const char *mr_graph_unique_name(mr_graph *graph, const char *name)
{
    if (graph == nullptr) return "";
    if (name == nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_graph_unique_name: name is null");
        return "";
    }
    const char *scope = mr_graph_scope(graph);
    const char *full =
        *scope == '\0' ? mr_arena_strdup(&graph->arena, name) : mr_arena_printf(&graph->arena, "%s/%s", scope, name);
    return full == nullptr ? fail_names(graph) : make_unique(graph, full);
}

mr_status mr_graph_mark_name(mr_graph *graph, const char *name, mr_error *error)
{
    const char *key = lower_case(graph, name);
    if (key == nullptr) return mr_fail_memory(error, strlen(name));
    if (mr_name_table_get(&graph->taken, key, 0) != 0) return MR_OK;
    return mr_name_table_set(&graph->taken, key, 1, error);
}

/* ---- Scopes ---- */

bool mr_graph_check_open(mr_graph *graph, int32_t count, int32_t floor, const char *function, const char *kind)
{
    assert(floor >= 0 && count >= floor); /* what is below the floor cannot be popped */
    if (count > floor) return true;
    (void)mr_graph_fail(graph, MR_FAILED_PRECONDITION, "%s: no %s is open here", function, kind);
    return false;
}

static void push_text(mr_graph *graph, mr_text_stack *stack, const char *text)
{
    const char **items = mr_graph_grow(graph, stack->items, stack->count, sizeof *items);
    if (items == nullptr) {
        fail_names(graph);
        return;
    }
    stack->items = items;
    stack->items[stack->count++] = text;
}

void mr_graph_push_scope(mr_graph *graph, const char *name)
{
    if (graph == nullptr) return;
    size_t length = name == nullptr ? 0 : strlen(name);
    const char *scope = "";
    if (length > 0 && name[length - 1] == '/')
        scope = mr_arena_strndup(&graph->arena, name, length - 1);
    else if (length > 0 &&
             !(*mr_graph_scope(graph) == '\0' ? mr_node_name_is_valid(name) : mr_scope_name_is_valid(name)))
        mr_graph_fail(graph, MR_INVALID_ARGUMENT, "\"%s\" is not a valid scope name", name);
    else if (length > 0)
        scope = mr_graph_unique_name(graph, name);
    push_text(graph, &graph->scopes, scope == nullptr ? fail_names(graph) : scope);
}

void mr_graph_pop_scope(mr_graph *graph)
{
    if (graph == nullptr) return;
    if (mr_graph_check_open(graph, graph->scopes.count, graph->floor.names, "mr_graph_pop_scope", "name scope"))
        graph->scopes.count--;
}

/* ---- Control edges ---- */

void mr_graph_push_control_dependencies(mr_graph *graph, mr_node *const *nodes, int32_t count)
{
    if (graph == nullptr) return;
    if (count < 0 || (nodes == nullptr && count > 0)) {
        mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_graph_push_control_dependencies: %d nodes at %s", count,
                      nodes == nullptr ? "null" : "an address");
        nodes = nullptr;
        count = 0;
    }
    mr_control_frame *frames = mr_graph_grow(graph, graph->control_frames, graph->control_frame_count, sizeof *frames);
    mr_node **copy = MR_ARENA_NEW(&graph->arena, mr_node *, (size_t)count + 1);
    if (frames == nullptr || copy == nullptr) {
        fail_names(graph);
        return;
    }
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++)
        if (nodes[i] != nullptr && nodes[i]->id >= 0) copy[kept++] = nodes[i];
    graph->control_frames = frames;
    frames[graph->control_frame_count++] = (mr_control_frame){
        .nodes = copy, .count = kept, .first_id = graph->node_count, .clears = nodes == nullptr, .flow = graph->flow};
    if (nodes == nullptr) graph->flow = nullptr;
}

void mr_graph_pop_control_dependencies(mr_graph *graph)
{
    if (graph == nullptr) return;
    if (!mr_graph_check_open(graph, graph->control_frame_count, graph->floor.controls,
                             "mr_graph_pop_control_dependencies", "scope of control dependencies"))
        return;
    const mr_control_frame *frame = &graph->control_frames[--graph->control_frame_count];
    if (frame->clears) graph->flow = frame->flow;
}
