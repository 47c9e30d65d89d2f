/* The MetaGraphDef of a SavedModel: signatures, assets, collections, and what is left out of its nodes. */
#include "base/status.h"
#include "graph/train/saved_model.h"

#include <stdlib.h>
#include <string.h>

/* ---- Signatures ---- */

static int by_key(const void *a, const void *b)
{
    const mr_named_output *x = a, *y = b;
    return strcmp(x->key, y->key);
}

static mr_status check_outputs(const mr_graph *graph, const char *signature, const char *role, mr_named_outputs list,
                               mr_error *error)
{
    if (list.count < 0 || (list.count > 0 && list.items == nullptr))
        return mr_fail(error, MR_INVALID_ARGUMENT, "signature %.100s: %d %s at null", signature, list.count, role);
    for (int32_t i = 0; i < list.count; i++) {
        const mr_output output = list.items[i].output;
        const char *key = list.items[i].key;
        if (key == nullptr || *key == '\0')
            return mr_fail(error, MR_INVALID_ARGUMENT, "signature %.100s: one of the %s has no key", signature, role);
        if (output.node == nullptr || output.node->graph != graph || output.index < 0 ||
            output.index >= output.node->output_count)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "signature %.100s: %.100s of the %s is not an output of the graph", signature, key, role);
        for (int32_t j = 0; j < i; j++)
            if (strcmp(list.items[j].key, key) == 0)
                return mr_fail(error, MR_INVALID_ARGUMENT, "signature %.100s: two of the %s have the key %.100s",
                               signature, role, key);
    }
    return MR_OK;
}

static mr_status write_info(mr_arena *arena, mr_output output, Mr__TensorInfo **result, mr_error *error)
{
    Mr__TensorInfo *info = MR_ARENA_NEW(arena, Mr__TensorInfo, 1);
    char *name = mr_arena_printf(arena, "%s:%d", mr_node_name(output.node), output.index);
    if (info == nullptr || name == nullptr) return mr_fail_memory(error, sizeof *info);
    mr__tensor_info__init(info);
    info->encoding_case = MR__TENSOR_INFO__ENCODING_NAME;
    info->name = name;
    *result = info;
    return MR_OK;
}

static mr_status write_outputs(mr_arena *arena, mr_named_outputs list, Mr__SignatureDef__TensorEntry ***entries,
                               size_t *count, mr_error *error)
{
    const size_t all = (size_t)list.count;
    mr_named_output *sorted = MR_ARENA_NEW(arena, mr_named_output, all + 1);
    Mr__SignatureDef__TensorEntry *made = MR_ARENA_NEW(arena, Mr__SignatureDef__TensorEntry, all + 1);
    *entries = MR_ARENA_NEW(arena, Mr__SignatureDef__TensorEntry *, all + 1);
    if (sorted == nullptr || made == nullptr || *entries == nullptr) return mr_fail_memory(error, all * sizeof *made);
    if (all > 0) memcpy(sorted, list.items, all * sizeof *sorted);
    qsort(sorted, all, sizeof *sorted, by_key);
    for (size_t i = 0; i < all; i++) {
        mr__signature_def__tensor_entry__init(&made[i]);
        made[i].key = mr_arena_strdup(arena, sorted[i].key);
        MR_TRY(write_info(arena, sorted[i].output, &made[i].value, error));
        made[i].value->dtype = (int32_t)mr_output_dtype(sorted[i].output);
        MR_TRY(mr_shape_write(mr_output_shape(sorted[i].output), arena, &made[i].value->tensor_shape, error));
        if (made[i].key == nullptr) return mr_fail_memory(error, strlen(sorted[i].key));
        (*entries)[i] = &made[i];
    }
    *count = all;
    return MR_OK;
}

static mr_status check_signatures(const mr_graph *graph, const mr_saved_graph *o, mr_error *error)
{
    if (o->signature_count < 0 || (o->signature_count > 0 && o->signatures == nullptr))
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_saved_model_add: %d signatures at null", o->signature_count);
    for (int32_t i = 0; i < o->signature_count; i++) {
        const mr_signature_def *s = &o->signatures[i];
        if (s->key == nullptr || *s->key == '\0')
            return mr_fail(error, MR_INVALID_ARGUMENT, "mr_saved_model_add: signature %d has no key", i);
        for (int32_t j = 0; j < i; j++)
            if (strcmp(o->signatures[j].key, s->key) == 0)
                return mr_fail(error, MR_INVALID_ARGUMENT, "mr_saved_model_add: two signatures have the key %.100s",
                               s->key);
        MR_TRY(check_outputs(graph, s->key, "inputs", s->inputs, error));
        MR_TRY(check_outputs(graph, s->key, "outputs", s->outputs, error));
    }
    return MR_OK;
}

mr_status mr_saved_signatures(mr_saved_model *m, const mr_graph *graph, const mr_saved_graph *o, Mr__MetaGraphDef *meta,
                              mr_error *error)
{
    const size_t count = (size_t)o->signature_count;
    MR_TRY(check_signatures(graph, o, error));
    if (meta == nullptr) return MR_OK;
    Mr__MetaGraphDef__SignatureEntry *made = MR_ARENA_NEW(&m->arena, Mr__MetaGraphDef__SignatureEntry, count + 1);
    Mr__SignatureDef *defs = MR_ARENA_NEW(&m->arena, Mr__SignatureDef, count + 1);
    meta->signature_def = MR_ARENA_NEW(&m->arena, Mr__MetaGraphDef__SignatureEntry *, count + 1);
    if (made == nullptr || defs == nullptr || meta->signature_def == nullptr)
        return mr_fail_memory(error, count * sizeof *defs);
    for (size_t i = 0; i < count; i++) {
        const mr_signature_def *s = &o->signatures[i];
        mr__meta_graph_def__signature_entry__init(&made[i]);
        mr__signature_def__init(&defs[i]);
        made[i].key = mr_arena_strdup(&m->arena, s->key);
        made[i].value = &defs[i];
        defs[i].method_name = mr_arena_strdup(&m->arena, s->method != nullptr ? s->method : "");
        if (made[i].key == nullptr || defs[i].method_name == nullptr) return mr_fail_memory(error, 64);
        MR_TRY(write_outputs(&m->arena, s->inputs, &defs[i].inputs, &defs[i].n_inputs, error));
        MR_TRY(write_outputs(&m->arena, s->outputs, &defs[i].outputs, &defs[i].n_outputs, error));
        meta->signature_def[i] = &made[i];
    }
    meta->n_signature_def = count;
    return MR_OK;
}

/* ---- Collections ---- */

/* The collection, created if it does not exist. */
static Mr__CollectionDef *collection_of(mr_arena *arena, Mr__MetaGraphDef *meta, const char *name)
{
    for (size_t i = 0; i < meta->n_collection_def; i++)
        if (strcmp(meta->collection_def[i]->key, name) == 0) return meta->collection_def[i]->value;
    const size_t count = meta->n_collection_def;
    Mr__MetaGraphDef__CollectionEntry **entries = MR_ARENA_NEW(arena, Mr__MetaGraphDef__CollectionEntry *, count + 1);
    Mr__MetaGraphDef__CollectionEntry *entry = MR_ARENA_NEW(arena, Mr__MetaGraphDef__CollectionEntry, 1);
    Mr__CollectionDef *def = MR_ARENA_NEW(arena, Mr__CollectionDef, 1);
    if (entries == nullptr || entry == nullptr || def == nullptr) return nullptr;
    if (count > 0) memcpy(entries, meta->collection_def, count * sizeof(Mr__MetaGraphDef__CollectionEntry *));
    mr__meta_graph_def__collection_entry__init(entry);
    mr__collection_def__init(def);
    entry->key = (char *)name;
    entry->value = def;
    entries[count] = entry;
    meta->collection_def = entries;
    meta->n_collection_def = count + 1;
    return def;
}

mr_status mr_saved_add_node(mr_saved_model *m, Mr__MetaGraphDef *meta, const char *collection, const mr_node *node,
                            mr_error *error)
{
    Mr__CollectionDef *def = collection_of(&m->arena, meta, collection);
    Mr__CollectionDef__NodeList *list = MR_ARENA_NEW(&m->arena, Mr__CollectionDef__NodeList, 1);
    char **names = MR_ARENA_NEW(&m->arena, char *, 1);
    char *name = mr_arena_strdup(&m->arena, mr_node_name(node));
    if (def == nullptr || list == nullptr || names == nullptr || name == nullptr)
        return mr_fail_memory(error, sizeof *list);
    mr__collection_def__node_list__init(list);
    names[0] = name;
    list->n_value = 1;
    list->value = names;
    def->kind_case = MR__COLLECTION_DEF__KIND_NODE_LIST;
    def->node_list = list;
    return MR_OK;
}

/* ---- Assets ---- */

static mr_status add_to_collection(mr_saved_model *m, Mr__MetaGraphDef *meta, const Mr__AssetFileDef *asset,
                                   mr_error *error)
{
    Mr__CollectionDef *def = collection_of(&m->arena, meta, "saved_model_assets");
    Mr__Any *any = MR_ARENA_NEW(&m->arena, Mr__Any, 1);
    mr_string bytes = {0};
    if (def == nullptr || any == nullptr) return mr_fail_memory(error, sizeof *any);
    if (def->kind_case != MR__COLLECTION_DEF__KIND_ANY_LIST) {
        def->any_list = MR_ARENA_NEW(&m->arena, Mr__CollectionDef__AnyList, 1);
        if (def->any_list == nullptr) return mr_fail_memory(error, sizeof *def->any_list);
        mr__collection_def__any_list__init(def->any_list);
        def->kind_case = MR__COLLECTION_DEF__KIND_ANY_LIST;
    }
    Mr__CollectionDef__AnyList *list = def->any_list;
    Mr__Any **values = MR_ARENA_NEW(&m->arena, Mr__Any *, list->n_value + 1);
    if (values == nullptr) return mr_fail_memory(error, list->n_value * sizeof *any);
    if (list->n_value > 0) memcpy(values, list->value, list->n_value * sizeof(Mr__Any *));
    mr__any__init(any);
    MR_TRY(mr_proto_pack(asset, &m->arena, &bytes, error));
    any->type_url = (char *)"type.googleapis.com/tensorflow.AssetFileDef";
    any->value = (ProtobufCBinaryData){bytes.size_bytes, (uint8_t *)bytes.data};
    values[list->n_value++] = any;
    list->value = values;
    return MR_OK;
}

mr_status mr_saved_add_asset(mr_saved_model *m, Mr__MetaGraphDef *meta, mr_output output, const char *name,
                             mr_error *error)
{
    const size_t count = meta->n_asset_file_def;
    Mr__AssetFileDef *asset = MR_ARENA_NEW(&m->arena, Mr__AssetFileDef, 1);
    Mr__AssetFileDef **assets = MR_ARENA_NEW(&m->arena, Mr__AssetFileDef *, count + 1);
    if (asset == nullptr || assets == nullptr) return mr_fail_memory(error, sizeof *asset);
    if (count > 0) memcpy(assets, meta->asset_file_def, count * sizeof(Mr__AssetFileDef *));
    mr__asset_file_def__init(asset);
    MR_TRY(write_info(&m->arena, output, &asset->tensor_info, error));
    asset->filename = (char *)name;
    assets[count] = asset;
    meta->asset_file_def = assets;
    meta->n_asset_file_def = count + 1;
    return add_to_collection(m, meta, asset, error);
}
