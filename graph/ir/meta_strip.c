/* What an exported MetaGraphDef leaves out: attrs that have their default values, and the nodes of savers that nobody
 * uses. */
#include "graph/ir/convert.h"
#include "graph/ir/meta_change.h"

#include <string.h>

/* ---- Attrs ---- */

/* Whether the attr has the value that a reader assumes if it is missing. */
static mr_status is_default(const mr_op_attr *known, const Mr__AttrValue *value, mr_arena *arena, bool *result,
                            mr_error *error)
{
    mr_attr_value single = known->default_value;
    const mr_attr attr = known->is_list
                             ? known->default_list
                             : (mr_attr){.name = known->name, .kind = known->kind, .count = 1, .values = &single};
    Mr__AttrValue *written = nullptr;
    mr_string ours = {0}, theirs = {0};
    *result = false;
    if (value == nullptr) return MR_OK;
    MR_TRY(mr_attr_write(&attr, arena, &written, error));
    MR_TRY(mr_proto_pack(written, arena, &ours, error));
    MR_TRY(mr_proto_pack(value, arena, &theirs, error));
    *result = ours.size_bytes == theirs.size_bytes &&
              (ours.size_bytes == 0 || memcmp(ours.data, theirs.data, ours.size_bytes) == 0);
    return MR_OK;
}

static mr_status strip_node(Mr__NodeDef *node, mr_arena *arena, mr_error *error)
{
    const mr_op_def *def = mr_op_find(node->op);
    size_t kept = 0;
    if (def == nullptr) return MR_OK;
    for (size_t i = 0; i < node->n_attr; i++) {
        bool leaves_out = false;
        for (int32_t j = 0; j < def->attr_count; j++)
            if (def->attrs[j].has_default && strcmp(def->attrs[j].name, node->attr[i]->key) == 0)
                MR_TRY(is_default(&def->attrs[j], node->attr[i]->value, arena, &leaves_out, error));
        if (!leaves_out) node->attr[kept++] = node->attr[i];
    }
    node->n_attr = kept;
    return MR_OK;
}

mr_status mr_meta_strip_defaults(Mr__MetaGraphDef *meta, mr_arena *arena, mr_error *error)
{
    const Mr__GraphDef *graph = meta->graph_def;
    for (size_t i = 0; i < graph->n_node; i++) MR_TRY(strip_node(graph->node[i], arena, error));
    for (size_t i = 0; graph->library != nullptr && i < graph->library->n_function; i++) {
        const Mr__FunctionDef *function = graph->library->function[i];
        for (size_t j = 0; j < function->n_node_def; j++) MR_TRY(strip_node(function->node_def[j], arena, error));
    }
    meta->meta_info_def->stripped_default_attrs = true;
    return MR_OK;
}

/* ---- Savers ---- */

static bool saves_or_restores(const char *op)
{
    static const char *const ops[] = {"Save", "SaveSlices", "SaveV2", "Restore", "RestoreSlice", "RestoreV2"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(op, ops[i]) == 0) return true;
    return false;
}

/* The scopes of savers, "a/b/", by name. */
typedef struct saver_scopes {
    mr_name_table names;
    mr_arena *arena;
} saver_scopes;

static mr_status add_scope(saver_scopes *scopes, const char *node, mr_error *error)
{
    const char *slash = strrchr(node, '/');
    if (slash == nullptr) return MR_OK;
    const char *scope = mr_arena_strndup(scopes->arena, node, (size_t)(slash - node) + 1);
    return scope != nullptr ? mr_name_table_set(&scopes->names, scope, 1, error) : mr_fail_memory(error, strlen(node));
}

static bool is_in(const char *name, const char *scope, size_t length)
{
    return name != nullptr && strncmp(name, scope, length) == 0;
}

/* Whether the node is in the scope of a saver that the SaverDef does not name. */
static mr_status is_of_other_saver(const saver_scopes *scopes, const Mr__SaverDef *own, const char *node,
                                   bool *is_other, mr_error *error)
{
    char *scope = mr_arena_strdup(scopes->arena, node);
    *is_other = false;
    if (scope == nullptr) return mr_fail_memory(error, strlen(node));
    for (char *at = strchr(scope, '/'); at != nullptr && !*is_other; at = strchr(at + 1, '/')) {
        const size_t length = (size_t)(at - scope) + 1;
        const char after = scope[length];
        scope[length] = '\0';
        const bool is_savers = mr_name_table_get(&scopes->names, scope, -1) >= 0;
        const bool is_own = own != nullptr &&
                            (is_in(own->save_tensor_name, scope, length) || is_in(own->restore_op_name, scope, length));
        *is_other = is_savers && !is_own;
        scope[length] = after;
    }
    return MR_OK;
}

/* Keeps the item of "savers" that is the SaverDef. */
static mr_status clear_saver_items(Mr__MetaGraphDef *meta, mr_arena *arena, mr_error *error)
{
    mr_string own = {0};
    if (meta->saver_def != nullptr) MR_TRY(mr_proto_pack(meta->saver_def, arena, &own, error));
    for (size_t i = 0; i < meta->n_collection_def; i++) {
        const Mr__MetaGraphDef__CollectionEntry *entry = meta->collection_def[i];
        if (strcmp(entry->key, "savers") != 0 || entry->value == nullptr ||
            entry->value->kind_case != MR__COLLECTION_DEF__KIND_BYTES_LIST)
            continue;
        Mr__CollectionDef__BytesList *list = entry->value->bytes_list;
        size_t kept = 0;
        for (size_t j = 0; j < list->n_value; j++)
            if (own.size_bytes > 0 && list->value[j].len == own.size_bytes &&
                memcmp(list->value[j].data, own.data, own.size_bytes) == 0)
                list->value[kept++] = list->value[j];
        list->n_value = kept;
    }
    return MR_OK;
}

static mr_status clear_nodes(Mr__MetaGraphDef *meta, saver_scopes *scopes, mr_error *error)
{
    Mr__GraphDef *graph = meta->graph_def;
    size_t kept = 0;
    for (size_t i = 0; i < graph->n_node; i++)
        if (saves_or_restores(graph->node[i]->op)) MR_TRY(add_scope(scopes, graph->node[i]->name, error));
    for (size_t i = 0; i < graph->n_node; i++) {
        bool is_other;
        MR_TRY(is_of_other_saver(scopes, meta->saver_def, graph->node[i]->name, &is_other, error));
        if (!is_other) graph->node[kept++] = graph->node[i];
    }
    graph->n_node = kept;
    return MR_OK;
}

mr_status mr_meta_clear_savers(Mr__MetaGraphDef *meta, mr_arena *arena, mr_error *error)
{
    saver_scopes scopes = {.arena = arena};
    mr_status status = clear_nodes(meta, &scopes, error);
    mr_name_table_deinit(&scopes.names);
    return status == MR_OK ? clear_saver_items(meta, arena, error) : status;
}
