/* Writes control-flow contexts, as to_proto of TensorFlow's CondContext and WhileContext: which nodes are in them, and
 * what stands for outputs from outside. */
#include "graph/ir/convert.h"
#include "graph/ir/flow.h"
#include "graph/ir/meta_flow.h"

#include <assert.h>
#include <string.h>

typedef struct written {
    mr_flow_context *context;
    Mr__ControlFlowContextDef *def;
    int32_t nested, values, nodes; /* counts */
    int32_t first_node, last_node; /* of the context itself; -1: none */
} written;

typedef struct writing {
    const mr_graph *graph;
    mr_arena *arena;
    written *items; /* in the order of their first nodes */
    int32_t count, capacity;
    int32_t *places;     /* numbers of items plus 1 by context, with open addressing; 0: free */
    uint32_t place_mask; /* their number is a power of two, at least twice that of items */
    int32_t *next_nodes; /* of each node, the next one of the same context; -1: none */
} writing;

static int32_t *place_of(const writing *w, const mr_flow_context *context)
{
    uint32_t at = (uint32_t)((uintptr_t)context >> 4) * 2654435761u;
    for (;; at++) {
        int32_t *place = &w->places[at & w->place_mask];
        if (*place == 0 || w->items[*place - 1].context == context) return place;
    }
}

static written *find(const writing *w, const mr_flow_context *context)
{
    const int32_t place = w->count > 0 ? *place_of(w, context) : 0;
    return place > 0 ? &w->items[place - 1] : nullptr;
}

static mr_status grow(writing *w, mr_error *error)
{
    const int32_t capacity = 2 * w->capacity + 16, places = w->capacity == 0 ? 64 : 4 * (int32_t)(w->place_mask + 1);
    written *items = MR_ARENA_NEW(w->arena, written, (size_t)capacity);
    w->places = MR_ARENA_NEW(w->arena, int32_t, (size_t)places);
    if (items == nullptr || w->places == nullptr) return mr_fail_memory(error, (size_t)capacity * sizeof *items);
    assert(w->count == 0 || w->items != nullptr);
    if (w->count > 0) memcpy(items, w->items, (size_t)w->count * sizeof *items);
    w->items = items;
    w->capacity = capacity;
    w->place_mask = (uint32_t)places - 1;
    for (int32_t i = 0; i < w->count; i++) *place_of(w, items[i].context) = i + 1;
    return MR_OK;
}

/* Adds the context, and those around it. */
static mr_status add_context(writing *w, mr_flow_context *context, mr_error *error)
{
    for (; context != nullptr && find(w, context) == nullptr; context = context->outer) {
        if (w->count == w->capacity) MR_TRY(grow(w, error));
        int32_t *place = place_of(w, context);
        w->items[w->count++] = (written){.context = context, .first_node = -1, .last_node = -1};
        *place = w->count;
    }
    return MR_OK;
}

static char *name_of(writing *w, mr_output output)
{
    if (output.node == nullptr) return "";
    char *name = mr_arena_printf(w->arena, "%s:%d", output.node->name, (int)output.index);
    return name != nullptr ? name : "";
}

/* ---- Values ---- */

static int32_t count_external(const mr_flow_context *context)
{
    int32_t count = 0;
    for (int32_t i = 0; i < MR_FLOW_BUCKETS; i++)
        for (const mr_flow_value *v = context->values[i]; v != nullptr; v = v->next) count++;
    return count;
}

static Mr__ValuesDef *values_new(writing *w, const written *item)
{
    const int32_t external = count_external(item->context);
    Mr__ValuesDef *def = MR_ARENA_NEW(w->arena, Mr__ValuesDef, 1);
    Mr__ValuesDef__ExternalEntry *entries = MR_ARENA_NEW(w->arena, Mr__ValuesDef__ExternalEntry, (size_t)external + 1);
    if (def == nullptr || entries == nullptr) return nullptr;
    mr__values_def__init(def);
    def->values = MR_ARENA_NEW(w->arena, char *, (size_t)item->values + (size_t)external + 1);
    def->external_values = MR_ARENA_NEW(w->arena, Mr__ValuesDef__ExternalEntry *, (size_t)external + 1);
    if (def->values == nullptr || def->external_values == nullptr) return nullptr;
    for (int32_t i = 0; i < MR_FLOW_BUCKETS; i++)
        for (const mr_flow_value *v = item->context->values[i]; v != nullptr; v = v->next) {
            Mr__ValuesDef__ExternalEntry *entry = &entries[def->n_external_values];
            mr__values_def__external_entry__init(entry);
            entry->key = name_of(w, v->outside);
            entry->value = name_of(w, v->inside);
            def->values[def->n_values++] = entry->key;
            def->external_values[def->n_external_values++] = entry;
        }
    return def;
}

static Mr__ValuesDef *values_of(const written *item)
{
    return item->context->is_loop ? item->def->while_ctxt->values_def : item->def->cond_ctxt->values_def;
}

/* ---- Contexts ---- */

/* The exits of the loop, and the Enter nodes of its variables; *pred_pivot: the first variable in the test. */
static mr_status write_loop_nodes(writing *w, const written *item, Mr__WhileContextDef *def, mr_error *error)
{
    const mr_graph *graph = w->graph;
    int32_t exits = 0, enters = 0;
    for (int32_t i = item->first_node; i >= 0; i = w->next_nodes[i]) {
        exits += mr_node_flow(graph->nodes[i]) == MR_FLOW_EXIT;
        enters += mr_node_flow(graph->nodes[i]) == MR_FLOW_ENTER;
    }
    def->loop_exit_names = MR_ARENA_NEW(w->arena, char *, (size_t)exits + 1);
    def->loop_enter_names = MR_ARENA_NEW(w->arena, char *, (size_t)enters + 1);
    if (def->loop_exit_names == nullptr || def->loop_enter_names == nullptr)
        return mr_fail_memory(error, (size_t)(exits + enters) * sizeof(char *));
    for (int32_t i = item->first_node; i >= 0; i = w->next_nodes[i]) {
        mr_node *node = graph->nodes[i];
        const mr_flow kind = mr_node_flow(node);
        char *name = name_of(w, (mr_output){node, 0});
        if (kind == MR_FLOW_EXIT) def->loop_exit_names[def->n_loop_exit_names++] = name;
        if (kind == MR_FLOW_ENTER && !mr_flow_is_constant_enter(node))
            def->loop_enter_names[def->n_loop_enter_names++] = name;
        if (kind == MR_FLOW_MERGE && *def->pivot_for_pred_name == '\0') def->pivot_for_pred_name = name;
    }
    return MR_OK;
}

static mr_status write_loop(writing *w, written *item, mr_error *error)
{
    const mr_flow_context *context = item->context;
    Mr__WhileContextDef *def = MR_ARENA_NEW(w->arena, Mr__WhileContextDef, 1);
    if (def == nullptr) return mr_fail_memory(error, sizeof *def);
    mr__while_context_def__init(def);
    def->context_name = (char *)context->frame;
    def->parallel_iterations = (int32_t)context->parallel_iterations;
    def->back_prop = context->back_prop;
    def->swap_memory = context->swap_memory;
    def->pivot_name = name_of(w, context->loop_cond);
    def->pivot_for_body_name = name_of(w, context->body_pivot);
    def->values_def = values_new(w, item);
    def->nested_contexts = MR_ARENA_NEW(w->arena, Mr__ControlFlowContextDef *, (size_t)item->nested + 1);
    if (def->values_def == nullptr || def->nested_contexts == nullptr) return mr_fail_memory(error, sizeof *def);
    item->def->ctxt_case = MR__CONTROL_FLOW_CONTEXT_DEF__CTXT_WHILE_CTXT;
    item->def->while_ctxt = def;
    return write_loop_nodes(w, item, def, error);
}

static mr_status write_cond(writing *w, written *item, mr_error *error)
{
    const mr_flow_context *context = item->context;
    Mr__CondContextDef *def = MR_ARENA_NEW(w->arena, Mr__CondContextDef, 1);
    if (def == nullptr) return mr_fail_memory(error, sizeof *def);
    mr__cond_context_def__init(def);
    const char *pivot = context->pivot.node != nullptr ? context->pivot.node->name : "";
    const char *slash = strrchr(pivot, '/');
    def->context_name = mr_arena_printf(w->arena, "%.*scond_text%s", slash != nullptr ? (int)(slash - pivot) + 1 : 0,
                                        pivot, context->branch == 1 ? "" : "_1");
    def->pred_name = name_of(w, context->pred);
    def->pivot_name = name_of(w, context->pivot);
    def->branch = context->branch;
    def->values_def = values_new(w, item);
    def->nested_contexts = MR_ARENA_NEW(w->arena, Mr__ControlFlowContextDef *, (size_t)item->nested + 1);
    if (def->context_name == nullptr || def->values_def == nullptr || def->nested_contexts == nullptr)
        return mr_fail_memory(error, sizeof *def);
    item->def->ctxt_case = MR__CONTROL_FLOW_CONTEXT_DEF__CTXT_COND_CTXT;
    item->def->cond_ctxt = def;
    return MR_OK;
}

/* The outputs of each node, in its context and in those around it. */
static void write_values(writing *w)
{
    for (int32_t i = 0; i < w->graph->node_count; i++) {
        mr_node *node = w->graph->nodes[i];
        for (int32_t k = 0; node->flow != nullptr && k < node->output_count; k++) {
            char *name = name_of(w, (mr_output){node, k});
            for (mr_flow_context *c = node->flow; c != nullptr; c = c->outer) {
                Mr__ValuesDef *def = values_of(find(w, c));
                if (mr_flow_find_value(c, (mr_output){node, k}) == nullptr) def->values[def->n_values++] = name;
            }
        }
    }
}

static mr_status collect(writing *w, mr_error *error)
{
    for (int32_t i = 0; i < w->graph->node_count; i++) MR_TRY(add_context(w, w->graph->nodes[i]->flow, error));
    if (w->count == 0) return MR_OK;
    written *items = w->items;
    assert(items != nullptr);
    w->next_nodes = MR_ARENA_NEW(w->arena, int32_t, (size_t)w->graph->node_count + 1);
    if (w->next_nodes == nullptr) return mr_fail_memory(error, (size_t)w->graph->node_count * sizeof *w->next_nodes);
    for (int32_t i = 0; i < w->graph->node_count; i++) {
        const mr_node *node = w->graph->nodes[i];
        w->next_nodes[i] = -1;
        if (node->flow == nullptr) continue;
        written *own = find(w, node->flow);
        assert(own != nullptr);
        *(own->first_node < 0 ? &own->first_node : &w->next_nodes[own->last_node]) = i;
        own->last_node = i;
        own->nodes++;
        for (written *item = own; item != nullptr; item = find(w, item->context->outer))
            item->values += node->output_count;
    }
    for (int32_t i = 0; i < w->count; i++) {
        written *outer = find(w, items[i].context->outer);
        if (outer != nullptr) outer->nested++;
    }
    for (int32_t i = 0; i < w->count; i++) {
        written *item = &items[i];
        item->def = MR_ARENA_NEW(w->arena, Mr__ControlFlowContextDef, 1);
        if (item->def == nullptr) return mr_fail_memory(error, sizeof *item->def);
        mr__control_flow_context_def__init(item->def);
        MR_TRY(item->context->is_loop ? write_loop(w, item, error) : write_cond(w, item, error));
    }
    return MR_OK;
}

static void nest(const writing *w)
{
    written *items = w->items;
    if (items == nullptr) return;
    for (int32_t i = 0; i < w->count; i++) {
        const written *outer = find(w, items[i].context->outer);
        if (outer == nullptr) continue;
        if (outer->context->is_loop)
            outer->def->while_ctxt->nested_contexts[outer->def->while_ctxt->n_nested_contexts++] = items[i].def;
        else
            outer->def->cond_ctxt->nested_contexts[outer->def->cond_ctxt->n_nested_contexts++] = items[i].def;
    }
}

static mr_status write_entry(const writing *w, bool is_loop, Mr__MetaGraphDef__CollectionEntry **entry, mr_error *error)
{
    Mr__CollectionDef *def = MR_ARENA_NEW(w->arena, Mr__CollectionDef, 1);
    Mr__CollectionDef__BytesList *list = MR_ARENA_NEW(w->arena, Mr__CollectionDef__BytesList, 1);
    *entry = MR_ARENA_NEW(w->arena, Mr__MetaGraphDef__CollectionEntry, 1);
    if (def == nullptr || list == nullptr || *entry == nullptr) return mr_fail_memory(error, sizeof *def);
    mr__collection_def__init(def);
    mr__collection_def__bytes_list__init(list);
    mr__meta_graph_def__collection_entry__init(*entry);
    list->value = MR_ARENA_NEW(w->arena, ProtobufCBinaryData, (size_t)w->count + 1);
    if (list->value == nullptr) return mr_fail_memory(error, (size_t)w->count * sizeof *list->value);
    for (int32_t i = 0; i < w->count; i++) {
        const written *item = &w->items[i];
        mr_string bytes = {0};
        if (item->context->outer != nullptr || item->context->is_loop != is_loop) continue;
        MR_TRY(mr_proto_pack(is_loop ? (const void *)item->def->while_ctxt : (const void *)item->def->cond_ctxt,
                             w->arena, &bytes, error));
        list->value[list->n_value++] = (ProtobufCBinaryData){bytes.size_bytes, (uint8_t *)bytes.data};
    }
    def->kind_case = MR__COLLECTION_DEF__KIND_BYTES_LIST;
    def->bytes_list = list;
    (*entry)->key = is_loop ? "while_context" : "cond_context";
    (*entry)->value = def;
    return MR_OK;
}

/* Whether the imported collections say what is in the graph, or were not understood. */
static bool keeps_imported(const writing *w)
{
    bool has_collection = false, is_known = false, is_changed = false;
    for (int32_t i = 0; i < w->graph->collection_count; i++)
        has_collection |= mr_is_context_collection(w->graph->collections[i].name);
    for (int32_t i = 0; i < w->count; i++) {
        is_known |= w->items[i].context->imported_count > 0;
        is_changed |= w->items[i].context->imported_count != w->items[i].nodes;
    }
    return has_collection && (!is_known || !is_changed);
}

mr_status mr_graph_write_contexts(const mr_graph *graph, mr_arena *arena, Mr__MetaGraphDef__CollectionEntry **entries,
                                  size_t *count, mr_error *error)
{
    writing w = {.graph = graph, .arena = arena};
    *count = 0;
    MR_TRY(collect(&w, error));
    if (w.count == 0 || keeps_imported(&w)) return MR_OK;
    write_values(&w);
    nest(&w);
    for (int k = 0; k < 2; k++) {
        bool any = false;
        for (int32_t i = 0; i < w.count; i++)
            any |= w.items[i].context->outer == nullptr && w.items[i].context->is_loop == (k == 1);
        if (!any) continue;
        MR_TRY(write_entry(&w, k == 1, &entries[*count], error));
        ++*count;
    }
    return MR_OK;
}
