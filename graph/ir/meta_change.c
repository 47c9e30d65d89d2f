/* What options change in a MetaGraphDef: devices, collections, and the names in it when its nodes get a prefix. */
#include "graph/ir/meta_change.h"

#include <assert.h>
#include <string.h>

void mr_meta_clear_devices(Mr__MetaGraphDef *meta)
{
    assert(meta->graph_def != nullptr);
    for (size_t i = 0; i < meta->graph_def->n_node; i++) meta->graph_def->node[i]->device = (char *)"";
}

void mr_meta_keep_collections(Mr__MetaGraphDef *meta, mr_names names)
{
    size_t kept = 0;
    for (size_t i = 0; i < meta->n_collection_def; i++) {
        bool is_named = false;
        for (int32_t j = 0; j < names.count; j++)
            is_named |= names.items[j] != nullptr && strcmp(names.items[j], meta->collection_def[i]->key) == 0;
        if (is_named) meta->collection_def[kept++] = meta->collection_def[i];
    }
    meta->n_collection_def = kept;
}

/* ---- Names ---- */

typedef struct prefixing {
    const char *prefix; /* that is added; or with strips, taken away from names that begin with it and a slash */
    bool strips;
    mr_arena *arena;
    mr_error *error;
} prefixing;

static mr_status add_to_text(const prefixing *p, char **text)
{
    if (**text == '\0') return MR_OK;
    if (p->strips) {
        *text = (char *)mr_meta_without_scope(*text, p->prefix);
        return MR_OK;
    }
    *text = mr_arena_printf(p->arena, "%s/%s", p->prefix, *text);
    return *text != nullptr ? MR_OK : mr_fail_memory(p->error, strlen(p->prefix));
}

/* All texts of the messages that are changed are names: of nodes, outputs, contexts and variables. The depth was
 * checked when the message was unpacked. */
static mr_status add_to_message(const prefixing *p, ProtobufCMessage *message)
{
    uint8_t *bytes = (uint8_t *)message;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        uint8_t *at = bytes + field->offset;
        const bool is_list = field->label == PROTOBUF_C_LABEL_REPEATED;
        const bool is_one_of = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
        if (is_one_of && *(const uint32_t *)(bytes + field->quantifier_offset) != field->id) continue;
        const size_t count = is_list ? *(const size_t *)(bytes + field->quantifier_offset) : 1;
        void **items = is_list ? *(void ***)at : (void **)at;
        for (size_t j = 0; j < count; j++) {
            if (field->type == PROTOBUF_C_TYPE_STRING)
                MR_TRY(add_to_text(p, (char **)&items[j]));
            else if (field->type == PROTOBUF_C_TYPE_MESSAGE && items[j] != nullptr)
                MR_TRY(add_to_message(p, items[j]));
        }
    }
    return MR_OK;
}

/* The type of a collection's serialized items; null: they are not known, and are not changed. */
static const ProtobufCMessageDescriptor *item_type(const char *collection)
{
    if (mr_collection_holds_variables(collection) || strcmp(collection, "global_step") == 0)
        return &mr__variable_def__descriptor;
    if (strcmp(collection, "queue_runners") == 0) return &mr__queue_runner_def__descriptor;
    if (strcmp(collection, "savers") == 0) return &mr__saver_def__descriptor;
    if (strcmp(collection, "cond_context") == 0) return &mr__cond_context_def__descriptor;
    if (strcmp(collection, "while_context") == 0) return &mr__while_context_def__descriptor;
    return nullptr;
}

static mr_status add_to_item(const prefixing *p, const ProtobufCMessageDescriptor *type, ProtobufCBinaryData *item)
{
    ProtobufCMessage *message = nullptr;
    mr_string bytes = {0};
    MR_TRY(mr_proto_unpack(type, mr_proto_bytes(*item), p->arena, &message, p->error));
    MR_TRY(add_to_message(p, message));
    MR_TRY(mr_proto_pack(message, p->arena, &bytes, p->error));
    *item = (ProtobufCBinaryData){bytes.size_bytes, (uint8_t *)bytes.data};
    return MR_OK;
}

static mr_status add_to_collection(const prefixing *p, const char *name, Mr__CollectionDef *collection)
{
    if (collection->kind_case == MR__COLLECTION_DEF__KIND_NODE_LIST)
        return add_to_message(p, &collection->node_list->base);
    const ProtobufCMessageDescriptor *type = item_type(name);
    if (collection->kind_case != MR__COLLECTION_DEF__KIND_BYTES_LIST || type == nullptr) return MR_OK;
    for (size_t i = 0; i < collection->bytes_list->n_value; i++)
        MR_TRY(add_to_item(p, type, &collection->bytes_list->value[i]));
    return MR_OK;
}

mr_status mr_meta_add_prefix(Mr__MetaGraphDef *meta, const char *prefix, mr_arena *arena, mr_error *error)
{
    const prefixing p = {prefix, false, arena, error};
    assert(*prefix != '\0');
    if (meta->saver_def != nullptr) MR_TRY(add_to_message(&p, &meta->saver_def->base));
    for (size_t i = 0; i < meta->n_collection_def; i++) {
        const Mr__MetaGraphDef__CollectionEntry *entry = meta->collection_def[i];
        const mr_status status = entry->value != nullptr ? add_to_collection(&p, entry->key, entry->value) : MR_OK;
        if (status != MR_OK) return mr_fail_prefix(error, status, "collection %.80s", entry->key);
    }
    return MR_OK;
}

const char *mr_meta_without_scope(const char *name, const char *scope)
{
    const size_t length = strlen(scope);
    return strncmp(name, scope, length) == 0 && name[length] == '/' ? name + length + 1 : name;
}

/* Whether the name that identifies an item of a collection is in the scope. */
static mr_status is_item_in(const prefixing *p, const ProtobufCMessageDescriptor *type, ProtobufCBinaryData item,
                            bool *is_in_scope)
{
    ProtobufCMessage *message = nullptr;
    MR_TRY(mr_proto_unpack(type, mr_proto_bytes(item), p->arena, &message, p->error));
    assert(type->n_fields > 0 && type->fields[0].type == PROTOBUF_C_TYPE_STRING);
    const char *name = *(char *const *)((const uint8_t *)message + type->fields[0].offset);
    *is_in_scope = mr_meta_without_scope(name, p->prefix) != name;
    return MR_OK;
}

static mr_status strip_collection(const prefixing *p, const char *name, Mr__CollectionDef *collection)
{
    size_t kept = 0;
    if (collection->kind_case == MR__COLLECTION_DEF__KIND_NODE_LIST) {
        Mr__CollectionDef__NodeList *list = collection->node_list;
        for (size_t i = 0; i < list->n_value; i++)
            if (mr_meta_without_scope(list->value[i], p->prefix) != list->value[i])
                list->value[kept++] = list->value[i];
        list->n_value = kept;
        return add_to_message(p, &list->base);
    }
    const ProtobufCMessageDescriptor *type = item_type(name);
    if (collection->kind_case != MR__COLLECTION_DEF__KIND_BYTES_LIST || type == nullptr) return MR_OK;
    Mr__CollectionDef__BytesList *list = collection->bytes_list;
    for (size_t i = 0; i < list->n_value; i++) {
        bool is_in_scope;
        MR_TRY(is_item_in(p, type, list->value[i], &is_in_scope));
        if (!is_in_scope) continue;
        MR_TRY(add_to_item(p, type, &list->value[i]));
        list->value[kept++] = list->value[i];
    }
    list->n_value = kept;
    return MR_OK;
}

mr_status mr_meta_strip_collections(Mr__MetaGraphDef *meta, const char *scope, mr_arena *arena, mr_error *error)
{
    const prefixing p = {scope, true, arena, error};
    Mr__SaverDef *saver = meta->saver_def;
    if (saver != nullptr && mr_meta_without_scope(saver->save_tensor_name, scope) == saver->save_tensor_name)
        meta->saver_def = nullptr;
    else if (saver != nullptr)
        MR_TRY(add_to_message(&p, &saver->base));
    for (size_t i = 0; i < meta->n_collection_def; i++) {
        const Mr__MetaGraphDef__CollectionEntry *entry = meta->collection_def[i];
        if (entry->value != nullptr) MR_TRY(strip_collection(&p, entry->key, entry->value));
    }
    return MR_OK;
}
