/* Export of one scope of a graph: its nodes, with names relative to it. What they read from outside is unbound: whoever
 * imports the file maps it. */
#include "graph/ir/meta_change.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define UNBOUND "$unbound_inputs_"

typedef struct scoping {
    const char *scope; /* without a slash at the end */
    mr_arena *arena;
    mr_error *error;
    const char **unbound; /* names, each once */
    size_t unbound_count;
    mr_name_table seen;
} scoping;

static mr_status add_unbound(scoping *s, const char *name)
{
    assert(strncmp(name, UNBOUND, strlen(UNBOUND)) == 0);
    if (mr_name_table_get(&s->seen, name, -1) >= 0) return MR_OK;
    s->unbound[s->unbound_count] = name;
    return mr_name_table_set(&s->seen, name, (int32_t)s->unbound_count++, s->error);
}

/* "scope/x:1", "^scope/x", "outside" become "x:1", "^x", "$unbound_inputs_outside". */
static mr_status change_input(scoping *s, char **input)
{
    const bool is_control = **input == '^';
    const char *name = *input + is_control, *own = mr_meta_without_scope(name, s->scope);
    const bool is_outside = own == name;
    if (!is_control && !is_outside) {
        *input = (char *)own;
        return MR_OK;
    }
    *input = mr_arena_printf(s->arena, "%s%s%s", is_control ? "^" : "", is_outside ? UNBOUND : "", own);
    if (*input == nullptr) return mr_fail_memory(s->error, strlen(name));
    return is_outside ? add_unbound(s, *input + is_control) : MR_OK;
}

/* Of "loc:@scope/x" the scope is dropped; groups of nodes outside are. */
static mr_status change_class(scoping *s, Mr__AttrValue *value)
{
    static const char group[] = "loc:@";
    const size_t length = strlen(group);
    if (value == nullptr || value->value_case != MR__ATTR_VALUE__VALUE_LIST) return MR_OK;
    size_t kept = 0;
    for (size_t i = 0; i < value->list->n_s; i++) {
        ProtobufCBinaryData text = value->list->s[i];
        if (text.len < length || memcmp(text.data, group, length) != 0) {
            value->list->s[kept++] = text;
            continue;
        }
        const char *name = mr_arena_strndup(s->arena, (const char *)text.data + length, text.len - length);
        if (name == nullptr) return mr_fail_memory(s->error, text.len);
        const char *own = mr_meta_without_scope(name, s->scope);
        if (own == name) continue;
        char *changed = mr_arena_printf(s->arena, "%s%s", group, own);
        if (changed == nullptr) return mr_fail_memory(s->error, text.len);
        value->list->s[kept++] = (ProtobufCBinaryData){strlen(changed), (uint8_t *)changed};
    }
    value->list->n_s = kept;
    return MR_OK;
}

/* Of Enter: the name of a loop's context. */
static mr_status change_frame(scoping *s, Mr__AttrValue *value)
{
    if (value == nullptr || value->value_case != MR__ATTR_VALUE__VALUE_S) return MR_OK;
    const char *name = mr_arena_strndup(s->arena, (const char *)value->s.data, value->s.len);
    if (name == nullptr) return mr_fail_memory(s->error, value->s.len);
    const char *own = mr_meta_without_scope(name, s->scope);
    value->s = (ProtobufCBinaryData){strlen(own), (uint8_t *)own};
    return MR_OK;
}

static mr_status change_node(scoping *s, Mr__NodeDef *node)
{
    node->name = (char *)mr_meta_without_scope(node->name, s->scope);
    for (size_t i = 0; i < node->n_input; i++) MR_TRY(change_input(s, &node->input[i]));
    for (size_t i = 0; i < node->n_attr; i++) {
        const Mr__AttrEntry *entry = node->attr[i];
        if (strcmp(entry->key, "_class") == 0) MR_TRY(change_class(s, entry->value));
        if (strcmp(entry->key, "frame_name") == 0) MR_TRY(change_frame(s, entry->value));
    }
    return MR_OK;
}

/* The collection "unbound_inputs". */
static mr_status add_collection(scoping *s, Mr__MetaGraphDef *meta)
{
    const size_t count = meta->n_collection_def;
    Mr__MetaGraphDef__CollectionEntry *entry = MR_ARENA_NEW(s->arena, Mr__MetaGraphDef__CollectionEntry, 1);
    Mr__MetaGraphDef__CollectionEntry **all = MR_ARENA_NEW(s->arena, Mr__MetaGraphDef__CollectionEntry *, count + 1);
    Mr__CollectionDef *def = MR_ARENA_NEW(s->arena, Mr__CollectionDef, 1);
    Mr__CollectionDef__BytesList *list = MR_ARENA_NEW(s->arena, Mr__CollectionDef__BytesList, 1);
    ProtobufCBinaryData *items = MR_ARENA_NEW(s->arena, ProtobufCBinaryData, s->unbound_count);
    if (entry == nullptr || all == nullptr || def == nullptr || list == nullptr || items == nullptr)
        return mr_fail_memory(s->error, s->unbound_count * sizeof *items);
    mr__meta_graph_def__collection_entry__init(entry);
    mr__collection_def__init(def);
    mr__collection_def__bytes_list__init(list);
    for (size_t i = 0; i < s->unbound_count; i++)
        items[i] = (ProtobufCBinaryData){strlen(s->unbound[i]), (uint8_t *)s->unbound[i]};
    list->value = items;
    list->n_value = s->unbound_count;
    def->kind_case = MR__COLLECTION_DEF__KIND_BYTES_LIST;
    def->bytes_list = list;
    entry->key = (char *)"unbound_inputs";
    entry->value = def;
    size_t at = 0, made = 0; /* sorted by name; one that was imported is replaced */
    while (at < count && strcmp(meta->collection_def[at]->key, entry->key) < 0)
        all[made++] = meta->collection_def[at++];
    all[made++] = entry;
    if (at < count && strcmp(meta->collection_def[at]->key, entry->key) == 0) at++;
    assert(at == count || strcmp(meta->collection_def[at]->key, entry->key) > 0); /* keys are sorted, each once */
    while (at < count) all[made++] = meta->collection_def[at++];
    assert(made == count || made == count + 1);
    meta->collection_def = all;
    meta->n_collection_def = made;
    return MR_OK;
}

static mr_status keep_scope(scoping *s, Mr__MetaGraphDef *meta)
{
    Mr__GraphDef *graph = meta->graph_def;
    size_t kept = 0, inputs = 0;
    assert(*s->scope != '\0' && s->scope[strlen(s->scope) - 1] != '/');
    for (size_t i = 0; i < graph->n_node; i++) {
        if (mr_meta_without_scope(graph->node[i]->name, s->scope) == graph->node[i]->name) continue;
        inputs += graph->node[i]->n_input;
        graph->node[kept++] = graph->node[i];
    }
    graph->n_node = kept;
    s->unbound = MR_ARENA_NEW(s->arena, const char *, inputs + 1);
    if (s->unbound == nullptr) return mr_fail_memory(s->error, inputs * sizeof *s->unbound);
    for (size_t i = 0; i < kept; i++) MR_TRY(change_node(s, graph->node[i]));
    assert(s->unbound_count <= inputs);
    MR_TRY(mr_meta_strip_collections(meta, s->scope, s->arena, s->error));
    return s->unbound_count > 0 ? add_collection(s, meta) : MR_OK;
}

mr_status mr_meta_keep_scope(Mr__MetaGraphDef *meta, const char *scope, mr_arena *arena, mr_error *error)
{
    size_t length = strlen(scope);
    while (length > 0 && scope[length - 1] == '/') length--;
    scoping s = {.scope = mr_arena_strndup(arena, scope, length), .arena = arena, .error = error};
    if (s.scope == nullptr) return mr_fail_memory(error, length);
    if (length == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "export_scope \"%.200s\" is not the name of a scope", scope);
    const mr_status status = keep_scope(&s, meta);
    mr_name_table_deinit(&s.seen);
    if (status == MR_OK && meta->graph_def->n_node == 0)
        return mr_fail(error, MR_NOT_FOUND, "export_scope: the graph has no node in the scope %.200s", scope);
    return status;
}
