/* Attrs of the nodes of a rewritten GraphDef. */
#include "base/status.h"
#include "graph/train/rewrite.h"

#include <string.h>

const Mr__AttrValue *mr_rewrite_attr(const mr_rewrite *r, int32_t node, const char *name)
{
    const Mr__NodeDef *def = r->nodes[node];
    for (size_t i = 0; i < def->n_attr; i++)
        if (strcmp(def->attr[i]->key, name) == 0) return def->attr[i]->value;
    return nullptr;
}

mr_dtype mr_rewrite_type(const mr_rewrite *r, int32_t node, const char *name, mr_dtype otherwise)
{
    const Mr__AttrValue *value = mr_rewrite_attr(r, node, name);
    if (value == nullptr || value->value_case != MR__ATTR_VALUE__VALUE_TYPE) return otherwise;
    return value->type > 0 && value->type < MR_DTYPE_COUNT ? (mr_dtype)value->type : otherwise;
}

/* Attrs stay sorted by name. */
mr_status mr_rewrite_set_attr(mr_rewrite *r, int32_t node, const char *name, Mr__AttrValue *value, mr_error *error)
{
    Mr__NodeDef *def = r->nodes[node];
    size_t at = 0;
    while (at < def->n_attr && strcmp(def->attr[at]->key, name) < 0) at++;
    Mr__AttrEntry *entry = MR_ARENA_NEW(&r->arena, Mr__AttrEntry, 1);
    Mr__AttrEntry **entries = MR_ARENA_NEW(&r->arena, Mr__AttrEntry *, def->n_attr + 1);
    if (entry == nullptr || entries == nullptr) return mr_fail_memory(error, sizeof *entry);
    mr__attr_entry__init(entry);
    entry->key = (char *)name;
    entry->value = value;
    const bool replaces = at < def->n_attr && strcmp(def->attr[at]->key, name) == 0;
    for (size_t i = 0; i < at; i++) entries[i] = def->attr[i];
    entries[at] = entry;
    for (size_t i = at + replaces; i < def->n_attr; i++) entries[i + 1 - replaces] = def->attr[i];
    def->attr = entries;
    def->n_attr += !replaces;
    return MR_OK;
}

mr_status mr_rewrite_set_type(mr_rewrite *r, int32_t node, const char *name, mr_dtype value, mr_error *error)
{
    Mr__AttrValue *attr = MR_ARENA_NEW(&r->arena, Mr__AttrValue, 1);
    if (attr == nullptr) return mr_fail_memory(error, sizeof *attr);
    mr__attr_value__init(attr);
    attr->value_case = MR__ATTR_VALUE__VALUE_TYPE;
    attr->type = (int32_t)value;
    return mr_rewrite_set_attr(r, node, name, attr, error);
}

mr_status mr_rewrite_set_string(mr_rewrite *r, int32_t node, const char *name, const char *value, mr_error *error)
{
    Mr__AttrValue *attr = MR_ARENA_NEW(&r->arena, Mr__AttrValue, 1);
    char *copy = mr_arena_strdup(&r->arena, value);
    if (attr == nullptr || copy == nullptr) return mr_fail_memory(error, sizeof *attr);
    mr__attr_value__init(attr);
    attr->value_case = MR__ATTR_VALUE__VALUE_S;
    attr->s = (ProtobufCBinaryData){strlen(value), (uint8_t *)copy};
    return mr_rewrite_set_attr(r, node, name, attr, error);
}

void mr_rewrite_clear_attrs(mr_rewrite *r, int32_t node)
{
    r->nodes[node]->n_attr = 0;
}

bool mr_rewrite_is(const mr_rewrite *r, int32_t node, const char *op)
{
    return node >= 0 && strcmp(r->nodes[node]->op, op) == 0;
}
