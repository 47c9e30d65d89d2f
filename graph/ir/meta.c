/* MetaGraphDef: the graph, the definitions of its operators, its collections and the names of the Saver's nodes.
 * Variables are VariableDefs in bytes_list; other outputs and nodes are names in node_list, "x:0" and "x". Anything
 * else is exported as it was imported. */
#include "base/options.h"
#include "graph/ir/convert.h"
#include "graph/ir/meta_change.h"
#include "graph/ir/meta_flow.h"
#include "proto/meta_graph.pb-c.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Writing ---- */

static char *output_name(mr_output output, mr_arena *arena)
{
    if (output.node == nullptr) return "";
    bool is_node = output.index < 0 || output.node->output_count == 0;
    return is_node ? (char *)output.node->name : mr_arena_printf(arena, "%s:%d", output.node->name, output.index);
}

static mr_status write_variable(const mr_collection *collection, int32_t index, mr_arena *arena,
                                ProtobufCBinaryData *bytes, mr_error *error)
{
    const mr_variable *variable = &collection->variables[index];
    Mr__VariableDef def = MR__VARIABLE_DEF__INIT, *rest = nullptr;
    mr_string packed = {0};
    if (collection->rest[index].size_bytes > 0) {
        MR_TRY(mr_proto_unpack_as(variable_def, collection->rest[index], arena, &rest, error));
        def = *rest;
    }
    def.variable_name = output_name(variable->ref, arena);
    def.initializer_name = variable->initializer == nullptr ? (char *)"" : (char *)variable->initializer->name;
    def.snapshot_name = output_name(variable->value, arena);
    def.initial_value_name = output_name(variable->initial_value, arena);
    def.is_resource = mr_output_dtype(variable->ref) == MR_RESOURCE;
    def.trainable = collection->trainable[index];
    if (def.variable_name == nullptr || def.snapshot_name == nullptr || def.initial_value_name == nullptr)
        return mr_fail_memory(error, 64);
    MR_TRY(mr_proto_pack(&def, arena, &packed, error));
    *bytes = (ProtobufCBinaryData){packed.size_bytes, (uint8_t *)packed.data};
    return MR_OK;
}

static mr_status write_variables(const mr_collection *collection, mr_arena *arena, Mr__CollectionDef *def,
                                 mr_error *error)
{
    Mr__CollectionDef__BytesList *list = MR_ARENA_NEW(arena, Mr__CollectionDef__BytesList, 1);
    if (list == nullptr) return mr_fail_memory(error, sizeof *list);
    mr__collection_def__bytes_list__init(list);
    list->value = MR_ARENA_NEW(arena, ProtobufCBinaryData, (size_t)collection->count + 1);
    if (list->value == nullptr) return mr_fail_memory(error, sizeof *list->value);
    for (int32_t i = 0; i < collection->count; i++)
        MR_TRY(write_variable(collection, i, arena, &list->value[i], error));
    list->n_value = (size_t)collection->count;
    def->kind_case = MR__COLLECTION_DEF__KIND_BYTES_LIST;
    def->bytes_list = list;
    return MR_OK;
}

static mr_status write_names(const mr_collection *collection, mr_arena *arena, Mr__CollectionDef *def, mr_error *error)
{
    Mr__CollectionDef__NodeList *list = MR_ARENA_NEW(arena, Mr__CollectionDef__NodeList, 1);
    if (list == nullptr) return mr_fail_memory(error, sizeof *list);
    mr__collection_def__node_list__init(list);
    list->value = MR_ARENA_NEW(arena, char *, (size_t)collection->count + 1);
    if (list->value == nullptr) return mr_fail_memory(error, sizeof *list->value);
    for (; (int32_t)list->n_value < collection->count; list->n_value++) {
        list->value[list->n_value] = output_name(collection->outputs[list->n_value], arena);
        if (list->value[list->n_value] == nullptr) return mr_fail_memory(error, 64);
    }
    def->kind_case = MR__COLLECTION_DEF__KIND_NODE_LIST;
    def->node_list = list;
    return MR_OK;
}

static mr_status write_collection(const mr_collection *collection, mr_arena *arena, Mr__CollectionDef **result,
                                  mr_error *error)
{
    if (collection->kind == MR_COLLECTION_RAW) {
        mr_string raw = {(const char *)collection->raw, collection->raw_size_bytes};
        return mr_proto_unpack_as(collection_def, raw, arena, result, error);
    }
    Mr__CollectionDef *def = MR_ARENA_NEW(arena, Mr__CollectionDef, 1);
    if (def == nullptr) return mr_fail_memory(error, sizeof *def);
    mr__collection_def__init(def);
    *result = def;
    return collection->kind == MR_COLLECTION_VARIABLES ? write_variables(collection, arena, def, error)
                                                       : write_names(collection, arena, def, error);
}

static int compare_entries(const void *a, const void *b)
{
    Mr__MetaGraphDef__CollectionEntry *const *left = a, *const *right = b;
    return strcmp((*left)->key, (*right)->key);
}

static mr_status write_collections(const mr_graph *graph, mr_arena *arena, Mr__MetaGraphDef *meta, mr_error *error)
{
    size_t count = (size_t)graph->collection_count;
    Mr__MetaGraphDef__CollectionEntry *entries = MR_ARENA_NEW(arena, Mr__MetaGraphDef__CollectionEntry, count + 1);
    meta->collection_def = MR_ARENA_NEW(arena, Mr__MetaGraphDef__CollectionEntry *, count + 2);
    if (entries == nullptr || meta->collection_def == nullptr) return mr_fail_memory(error, count * sizeof *entries);
    size_t contexts = 0;
    MR_TRY(mr_graph_write_contexts(graph, arena, meta->collection_def, &contexts, error));
    meta->n_collection_def = contexts;
    for (size_t i = 0; i < count; i++) {
        if (contexts > 0 && mr_is_context_collection(graph->collections[i].name)) continue;
        mr__meta_graph_def__collection_entry__init(&entries[i]);
        entries[i].key = (char *)graph->collections[i].name;
        MR_TRY(write_collection(&graph->collections[i], arena, &entries[i].value, error));
        meta->collection_def[meta->n_collection_def++] = &entries[i];
    }
    qsort(meta->collection_def, meta->n_collection_def, sizeof *meta->collection_def, compare_entries);
    return MR_OK;
}

mr_status mr_graph_write_meta(const mr_graph *graph, mr_arena *arena, Mr__MetaGraphDef **result, mr_error *error)
{
    Mr__MetaGraphDef *meta = MR_ARENA_NEW(arena, Mr__MetaGraphDef, 1);
    Mr__MetaGraphDef__MetaInfoDef *info = MR_ARENA_NEW(arena, Mr__MetaGraphDef__MetaInfoDef, 1);
    if (meta == nullptr || info == nullptr) return mr_fail_memory(error, sizeof *meta);
    mr__meta_graph_def__init(meta);
    mr__meta_graph_def__meta_info_def__init(info);
    info->tensorflow_version = (char *)"2.15.1";
    info->tensorflow_git_version = (char *)"unknown"; /* as a TensorFlow has that was not built from a git repository */
    meta->meta_info_def = info;
    MR_TRY(mr_graph_write(graph, arena, &meta->graph_def, error));
    MR_TRY(mr_op_list_write(meta->graph_def, arena, &info->stripped_op_list, error));
    MR_TRY(mr_graph_write_shapes(graph, meta->graph_def, arena, error));
    MR_TRY(write_collections(graph, arena, meta, error));
    if (graph->saver_def_size_bytes > 0) {
        mr_string saver = {(const char *)graph->saver_def, graph->saver_def_size_bytes};
        MR_TRY(mr_proto_unpack_as(saver_def, saver, arena, &meta->saver_def, error));
    }
    *result = meta;
    return MR_OK;
}

mr_status mr_graph_write_meta_with(const mr_graph *graph, const mr_meta_export_options *options, mr_arena *arena,
                                   Mr__MetaGraphDef **meta, mr_error *error)
{
    const mr_names names = options->collections;
    if (names.count < 0 || (names.count > 0 && names.items == nullptr))
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_graph_export_meta_with: collections is not a list");
    MR_TRY(mr_graph_write_meta(graph, arena, meta, error));
    if (options->clear_devices) mr_meta_clear_devices(*meta);
    if (names.count > 0) mr_meta_keep_collections(*meta, names);
    if (options->clear_extraneous_savers) MR_TRY(mr_meta_clear_savers(*meta, arena, error));
    if (options->export_scope != nullptr) MR_TRY(mr_meta_keep_scope(*meta, options->export_scope, arena, error));
    return options->strip_default_attrs ? mr_meta_strip_defaults(*meta, arena, error) : MR_OK;
}

mr_status mr_graph_export_meta_with(const mr_graph *graph, const mr_meta_export_options *given,
                                    mr_tensor *meta_graph_def, mr_error *error)
{
    mr_arena arena = {0};
    Mr__MetaGraphDef *meta = nullptr;
    mr_string bytes = {0};
    mr_meta_export_options options;
    MR_TRY(MR_OPTIONS_READ(mr_meta_export_options, &options, given, error));
    mr_status status = mr_graph_write_meta_with(graph, &options, &arena, &meta, error);
    if (status == MR_OK) status = mr_proto_pack(meta, &arena, &bytes, error);
    if (status == MR_OK) status = mr_tensor_init_string(meta_graph_def, bytes, error);
    mr_arena_deinit(&arena);
    return status;
}

mr_status mr_graph_export_meta(const mr_graph *graph, mr_tensor *meta_graph_def, mr_error *error)
{
    return mr_graph_export_meta_with(graph, nullptr, meta_graph_def, error);
}

mr_status mr_graph_set_saver_def(mr_graph *graph, mr_string saver_def, mr_error *error)
{
    const uint8_t *copy = mr_arena_copy(&graph->arena, saver_def.data, saver_def.size_bytes);
    if (copy == nullptr) return mr_fail_memory(error, saver_def.size_bytes);
    graph->saver_def = copy;
    graph->saver_def_size_bytes = saver_def.size_bytes;
    return MR_OK;
}

/* ---- Reading: the graph already has its nodes; nothing is added before every name has been found ---- */

/* "" finds nothing and is not an error. */
static mr_status find_named(const mr_graph *graph, const char *name, mr_output *output, mr_error *error)
{
    *output = (mr_output){0};
    if (*name == '\0') return MR_OK;
    *output = mr_graph_find_output(graph, name);
    if (output->node == nullptr && strchr(name, ':') == nullptr)
        *output = (mr_output){.node = mr_graph_find(graph, name), .index = -1};
    if (output->node == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "%.200s is not in the graph", name);
    return MR_OK;
}

static mr_status add_variable(mr_graph *graph, const char *collection, mr_variable variable, Mr__VariableDef *def,
                              mr_error *error)
{
    bool trainable = def->trainable != 0;
    mr_string rest = {0};
    def->variable_name = def->initializer_name = def->snapshot_name = def->initial_value_name = (char *)"";
    def->trainable = def->is_resource = false;
    if (protobuf_c_message_get_packed_size(&def->base) > 0) MR_TRY(mr_proto_pack(def, &graph->arena, &rest, error));
    return mr_graph_add_variable(graph, collection, variable, trainable, rest, error);
}

static mr_status read_variable(mr_graph *graph, const char *collection, ProtobufCBinaryData bytes, mr_arena *arena,
                               bool add, mr_error *error)
{
    Mr__VariableDef *def = nullptr;
    mr_output initializer;
    mr_variable variable = {0};
    MR_TRY(mr_proto_unpack_as(variable_def, mr_proto_bytes(bytes), arena, &def, error));
    MR_TRY(find_named(graph, def->variable_name, &variable.ref, error));
    MR_TRY(find_named(graph, def->initializer_name, &initializer, error));
    MR_TRY(find_named(graph, def->snapshot_name, &variable.value, error));
    MR_TRY(find_named(graph, def->initial_value_name, &variable.initial_value, error));
    if (variable.ref.node == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "a variable has no name");
    variable.initializer = initializer.node;
    return add ? add_variable(graph, collection, variable, def, error) : MR_OK;
}

static mr_status keep_raw(mr_graph *graph, const char *name, const Mr__CollectionDef *def, mr_error *error)
{
    mr_string bytes = {0};
    MR_TRY(mr_proto_pack(def, &graph->arena, &bytes, error));
    mr_collection *collection = mr_graph_make_collection(graph, name, MR_COLLECTION_RAW);
    if (collection == nullptr) return MR_OK; /* the graph's own collection is kept */
    collection->raw = (const uint8_t *)bytes.data;
    collection->raw_size_bytes = bytes.size_bytes;
    return MR_OK;
}

static mr_status read_names(mr_graph *graph, const char *name, const Mr__CollectionDef__NodeList *list, bool add,
                            mr_error *error)
{
    for (size_t i = 0; i < list->n_value; i++) {
        mr_output output;
        MR_TRY(find_named(graph, list->value[i], &output, error));
        if (add && output.node != nullptr) mr_graph_add_to_collection(graph, name, output);
    }
    return MR_OK;
}

static mr_status read_collection(mr_graph *graph, const char *name, const Mr__CollectionDef *def, mr_arena *arena,
                                 bool add, mr_error *error)
{
    bool is_variables = mr_collection_holds_variables(name);
    if (def->kind_case == MR__COLLECTION_DEF__KIND_BYTES_LIST && is_variables) {
        for (size_t i = 0; i < def->bytes_list->n_value; i++)
            MR_TRY(read_variable(graph, name, def->bytes_list->value[i], arena, add, error));
        return MR_OK;
    }
    if (def->kind_case == MR__COLLECTION_DEF__KIND_NODE_LIST && !is_variables)
        return read_names(graph, name, def->node_list, add, error);
    return add ? keep_raw(graph, name, def, error) : MR_OK;
}

static mr_status read_collections(mr_graph *graph, const Mr__MetaGraphDef *meta, mr_arena *arena, bool add,
                                  mr_error *error)
{
    for (size_t i = 0; i < meta->n_collection_def; i++) {
        const Mr__MetaGraphDef__CollectionEntry *entry = meta->collection_def[i];
        if (entry->value == nullptr) continue;
        mr_status status = read_collection(graph, entry->key, entry->value, arena, add, error);
        if (status != MR_OK) return mr_fail_prefix(error, status, "collection %.80s", entry->key);
    }
    return MR_OK;
}

/* The names in the message become those of the imported nodes, from the number `first` on. The graph has made the
 * prefix unique. */
static mr_status add_prefix(const mr_graph *graph, Mr__MetaGraphDef *meta, int32_t first, mr_arena *arena,
                            mr_error *error)
{
    if (graph->node_count == first) return MR_OK;
    const char *name = graph->nodes[first]->name;
    const size_t length = strlen(name), own = strlen(meta->graph_def->node[0]->name);
    assert(length > own + 1 && name[length - own - 1] == '/');
    const char *prefix = mr_arena_strndup(arena, name, length - own - 1);
    return prefix != nullptr ? mr_meta_add_prefix(meta, prefix, arena, error) : mr_fail_memory(error, length);
}

static bool is_mapped(const mr_meta_import_options *options, mr_string name)
{
    for (int32_t i = 0; options->input_map != nullptr && i < options->input_map_count; i++) {
        const char *mapped = options->input_map[i].name;
        if (mapped != nullptr && *mapped == '^') mapped++;
        if (mapped != nullptr && strlen(mapped) == name.size_bytes && memcmp(mapped, name.data, name.size_bytes) == 0)
            return true;
    }
    return false;
}

/* Fails unless the inputs of an exported scope are mapped. The collection that names them is then forgotten. */
static mr_status check_unbound(Mr__MetaGraphDef *meta, const mr_meta_import_options *options, mr_error *error)
{
    size_t kept = 0;
    for (size_t i = 0; i < meta->n_collection_def; i++) {
        Mr__MetaGraphDef__CollectionEntry *entry = meta->collection_def[i];
        if (strcmp(entry->key, "unbound_inputs") != 0 || entry->value == nullptr ||
            entry->value->kind_case != MR__COLLECTION_DEF__KIND_BYTES_LIST) {
            meta->collection_def[kept++] = entry;
            continue;
        }
        const Mr__CollectionDef__BytesList *list = entry->value->bytes_list;
        for (size_t j = 0; j < list->n_value; j++)
            if (!is_mapped(options, mr_proto_bytes(list->value[j])))
                return mr_fail(error, MR_INVALID_ARGUMENT,
                               "the file is one scope of a graph, whose input %.*s must be mapped (input_map)",
                               (int)(list->value[j].len < 200 ? list->value[j].len : 200),
                               (const char *)list->value[j].data);
    }
    meta->n_collection_def = kept;
    return MR_OK;
}

static mr_status read_meta(mr_graph *graph, Mr__MetaGraphDef *meta, size_t size_bytes,
                           const mr_meta_import_options *options, mr_arena *arena, mr_error *error)
{
    const bool has_prefix = options->prefix != nullptr && *options->prefix != '\0';
    int32_t before = graph->node_count;
    mr_string saver = {0};
    if (meta->graph_def == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "it contains no graph");
    if (options->clear_devices) mr_meta_clear_devices(meta);
    const mr_graph_import_options nodes = {.size = sizeof nodes,
                                           .prefix = options->prefix,
                                           .input_map = options->input_map,
                                           .input_map_count = options->input_map_count};
    MR_TRY(check_unbound(meta, options, error));
    MR_TRY(mr_graph_read_with(graph, meta->graph_def, size_bytes, &nodes, error));
    mr_status status = has_prefix ? add_prefix(graph, meta, before, arena, error) : MR_OK;
    if (status == MR_OK) status = read_collections(graph, meta, arena, false, error);
    if (status == MR_OK && meta->saver_def != nullptr) status = mr_proto_pack(meta->saver_def, arena, &saver, error);
    if (status != MR_OK) {
        mr_graph_truncate(graph, before);
        return status;
    }
    mr_graph_read_contexts(graph, meta, before, arena);
    MR_TRY(read_collections(graph, meta, arena, true, error));
    return meta->saver_def == nullptr ? MR_OK : mr_graph_set_saver_def(graph, saver, error);
}

mr_status mr_graph_import_meta_with(mr_graph *graph, const void *bytes, size_t size_bytes,
                                    const mr_meta_import_options *given, mr_error *error)
{
    mr_meta_import_options options;
    MR_TRY(mr_graph_status(graph, error));
    MR_TRY(MR_OPTIONS_READ(mr_meta_import_options, &options, given, error));
    if (options.prefix != nullptr && *options.prefix != '\0' && !mr_node_name_is_valid(options.prefix))
        return mr_fail(error, MR_INVALID_ARGUMENT, "\"%.200s\" is not a valid prefix", options.prefix);
    if (bytes == nullptr && size_bytes > 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_graph_import_meta: bytes is null");
    if (graph->is_finalized)
        return mr_fail(error, MR_FAILED_PRECONDITION, "the graph is finalized: nothing can be imported");
    mr_arena arena = {0};
    Mr__MetaGraphDef *meta = nullptr;
    mr_status status = mr_proto_unpack_as(meta_graph_def, ((mr_string){bytes, size_bytes}), &arena, &meta, error);
    if (status == MR_OK) status = read_meta(graph, meta, size_bytes, &options, &arena, error);
    if (status == MR_DATA_LOSS) status = mr_fail_prefix(error, MR_INVALID_ARGUMENT, "not a MetaGraphDef");
    mr_arena_deinit(&arena);
    return status;
}

mr_status mr_graph_import_meta(mr_graph *graph, const void *bytes, size_t size_bytes, mr_error *error)
{
    return mr_graph_import_meta_with(graph, bytes, size_bytes, nullptr, error);
}
