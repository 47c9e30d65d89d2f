/* Conversion of AttrValue to mr_attr and back. A value that mr_attr cannot represent (a list of several kinds, a tensor
 * of variants, a shape of nine dimensions) returns MR_UNIMPLEMENTED; the importer then keeps its bytes. */
#include "graph/ir/convert.h"

#include <limits.h>
#include <string.h>

/* ---- Reading ---- */

typedef struct reading {
    mr_graph *graph;
    mr_import_budget *budget;
} reading;

static mr_status read_string(reading *r, mr_string source, mr_string *target, mr_error *error)
{
    char *copy = mr_arena_strndup(&r->graph->arena, source.data == nullptr ? "" : source.data, source.size_bytes);
    if (copy == nullptr) return mr_fail_memory(error, source.size_bytes);
    *target = (mr_string){copy, source.size_bytes};
    return MR_OK;
}

static mr_status read_tensor(reading *r, const Mr__TensorProto *proto, mr_tensor *target, mr_error *error)
{
    mr_tensor own = {0};
    MR_TRY(mr_tensor_read(proto, r->budget, &own, error));
    mr_status status = mr_graph_keep_tensor(r->graph, &own, target, error);
    mr_tensor_deinit(&own);
    return status;
}

/* The depth is bounded by the earlier check of the wire format. */
static mr_status read_function(reading *r, const Mr__NameAttrList *proto, mr_attr_value *value, mr_error *error)
{
    mr_attrs *attrs = MR_ARENA_NEW(&r->graph->arena, mr_attrs, 1);
    mr_node holder = {.graph = r->graph};
    value->function.name = mr_arena_strdup(&r->graph->arena, proto->name);
    if (attrs == nullptr || value->function.name == nullptr) return mr_fail_memory(error, sizeof *attrs);
    if (proto->n_attr > MR_ATTRS_MAX) return mr_fail(error, MR_INVALID_ARGUMENT, "too many attrs (%zu)", proto->n_attr);
    for (size_t i = 0; i < proto->n_attr; i++) {
        mr_attr attr;
        if (proto->attr[i]->value == nullptr)
            return mr_fail(error, MR_UNIMPLEMENTED, "an attr of a function has no value");
        MR_TRY(mr_attr_read(r->graph, proto->attr[i]->key, proto->attr[i]->value, r->budget, &attr, error));
        MR_TRY(mr_node_put_attr(&holder, attr, error));
    }
    *attrs = holder.attrs;
    value->function.attrs = attrs;
    return MR_OK;
}

/* The kind of a list and its number of elements; false if it has elements of more than one kind. */
static bool find_list(const Mr__AttrValue__ListValue *list, mr_attr_kind *kind, size_t *count)
{
    const struct {
        mr_attr_kind kind;
        size_t count;
    } kinds[] = {
        {MR_ATTR_STRING, list->n_s},      {MR_ATTR_INT, list->n_i},         {MR_ATTR_FLOAT, list->n_f},
        {MR_ATTR_BOOL, list->n_b},        {MR_ATTR_TYPE, list->n_type},     {MR_ATTR_SHAPE, list->n_shape},
        {MR_ATTR_TENSOR, list->n_tensor}, {MR_ATTR_FUNCTION, list->n_func},
    };
    *kind = MR_ATTR_NONE;
    *count = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (kinds[i].count == 0) continue;
        if (*kind != MR_ATTR_NONE) return false;
        *kind = kinds[i].kind;
        *count = kinds[i].count;
    }
    return *count <= INT32_MAX;
}

static mr_status read_element(reading *r, const Mr__AttrValue__ListValue *list, mr_attr_kind kind, size_t i,
                              mr_attr_value *value, mr_error *error)
{
    switch (kind) {
    case MR_ATTR_STRING:
        return read_string(r, mr_proto_bytes(list->s[i]), &value->string, error);
    case MR_ATTR_INT:
        value->integer = list->i[i];
        return MR_OK;
    case MR_ATTR_FLOAT:
        value->number = list->f[i];
        return MR_OK;
    case MR_ATTR_BOOL:
        value->boolean = list->b[i] != 0;
        return MR_OK;
    case MR_ATTR_TYPE:
        value->type = list->type[i];
        return MR_OK;
    case MR_ATTR_SHAPE:
        return mr_shape_read(list->shape[i], &value->shape, error);
    case MR_ATTR_TENSOR:
        return read_tensor(r, list->tensor[i], &value->tensor, error);
    default:
        return read_function(r, list->func[i], value, error);
    }
}

static mr_status read_list(reading *r, const Mr__AttrValue__ListValue *list, mr_attr *attr, mr_error *error)
{
    size_t count = 0;
    attr->is_list = true;
    if (list == nullptr || !find_list(list, &attr->kind, &count))
        return mr_fail(error, MR_UNIMPLEMENTED, "attr %s is a list of several kinds", attr->name);
    attr->values = MR_ARENA_NEW(&r->graph->arena, mr_attr_value, count + 1);
    if (attr->values == nullptr) return mr_fail_memory(error, count * sizeof *attr->values);
    for (size_t i = 0; i < count; i++) MR_TRY(read_element(r, list, attr->kind, i, &attr->values[i], error));
    attr->count = (int32_t)count;
    return MR_OK;
}

static mr_status read_one(reading *r, const Mr__AttrValue *proto, mr_attr *attr, mr_error *error)
{
    mr_attr_value *value = MR_ARENA_NEW(&r->graph->arena, mr_attr_value, 1);
    if (value == nullptr) return mr_fail_memory(error, sizeof *value);
    attr->values = value;
    attr->count = 1;
    switch (proto->value_case) {
    case MR__ATTR_VALUE__VALUE_S:
        attr->kind = MR_ATTR_STRING;
        return read_string(r, mr_proto_bytes(proto->s), &value->string, error);
    case MR__ATTR_VALUE__VALUE_I:
        attr->kind = MR_ATTR_INT;
        value->integer = proto->i;
        return MR_OK;
    case MR__ATTR_VALUE__VALUE_F:
        attr->kind = MR_ATTR_FLOAT;
        value->number = proto->f;
        return MR_OK;
    case MR__ATTR_VALUE__VALUE_B:
        attr->kind = MR_ATTR_BOOL;
        value->boolean = proto->b != 0;
        return MR_OK;
    case MR__ATTR_VALUE__VALUE_TYPE:
        attr->kind = MR_ATTR_TYPE;
        value->type = proto->type;
        return MR_OK;
    case MR__ATTR_VALUE__VALUE_SHAPE:
        attr->kind = MR_ATTR_SHAPE;
        return mr_shape_read(proto->shape, &value->shape, error);
    case MR__ATTR_VALUE__VALUE_TENSOR:
        attr->kind = MR_ATTR_TENSOR;
        return read_tensor(r, proto->tensor, &value->tensor, error);
    case MR__ATTR_VALUE__VALUE_PLACEHOLDER:
        attr->kind = MR_ATTR_PLACEHOLDER;
        return read_string(r, mr_string_from(proto->placeholder), &value->string, error);
    case MR__ATTR_VALUE__VALUE_FUNC:
        attr->kind = MR_ATTR_FUNCTION;
        return read_function(r, proto->func, value, error);
    default:
        return mr_fail(error, MR_UNIMPLEMENTED, "attr %s has no value", attr->name);
    }
}

mr_status mr_attr_read(mr_graph *graph, const char *name, const Mr__AttrValue *proto, mr_import_budget *budget,
                       mr_attr *attr, mr_error *error)
{
    reading r = {graph, budget};
    *attr = (mr_attr){.name = mr_arena_strdup(&graph->arena, name)};
    if (attr->name == nullptr) return mr_fail_memory(error, strlen(name));
    return proto->value_case == MR__ATTR_VALUE__VALUE_LIST ? read_list(&r, proto->list, attr, error)
                                                           : read_one(&r, proto, attr, error);
}

/* ---- Writing ---- */

static ProtobufCBinaryData bytes_of(mr_string string)
{
    return (ProtobufCBinaryData){string.size_bytes, (uint8_t *)string.data};
}

static mr_status write_function(const mr_attr_value *value, mr_arena *arena, Mr__NameAttrList **proto, mr_error *error)
{
    const mr_attrs *attrs = value->function.attrs;
    size_t count = attrs == nullptr ? 0 : (size_t)attrs->count;
    Mr__NameAttrList *made = MR_ARENA_NEW(arena, Mr__NameAttrList, 1);
    Mr__AttrEntry *entries = MR_ARENA_NEW(arena, Mr__AttrEntry, count + 1);
    Mr__AttrEntry **pointers = MR_ARENA_NEW(arena, Mr__AttrEntry *, count + 1);
    if (made == nullptr || entries == nullptr || pointers == nullptr) return mr_fail_memory(error, sizeof *made);
    mr__name_attr_list__init(made);
    made->name = (char *)value->function.name;
    made->attr = pointers;
    made->n_attr = count;
    for (size_t i = 0; i < count; i++) {
        mr__attr_entry__init(&entries[i]);
        entries[i].key = (char *)attrs->items[i].name;
        MR_TRY(mr_attr_write(&attrs->items[i], arena, &entries[i].value, error));
        pointers[i] = &entries[i];
    }
    *proto = made;
    return MR_OK;
}

/* Allocates the array of a list for count elements of its kind. */
#define MAKE_LIST(list, field, type, count)                                                                            \
    ((list)->n_##field = (count), (list)->field = MR_ARENA_NEW(arena, type, (count) + 1), (list)->field != nullptr)

static bool make_list(Mr__AttrValue__ListValue *list, mr_attr_kind kind, size_t count, mr_arena *arena)
{
    switch (kind) {
    case MR_ATTR_STRING:
        return MAKE_LIST(list, s, ProtobufCBinaryData, count);
    case MR_ATTR_INT:
        return MAKE_LIST(list, i, int64_t, count);
    case MR_ATTR_FLOAT:
        return MAKE_LIST(list, f, float, count);
    case MR_ATTR_BOOL:
        return MAKE_LIST(list, b, protobuf_c_boolean, count);
    case MR_ATTR_TYPE:
        return MAKE_LIST(list, type, int32_t, count);
    case MR_ATTR_SHAPE:
        return MAKE_LIST(list, shape, Mr__TensorShapeProto *, count);
    case MR_ATTR_TENSOR:
        return MAKE_LIST(list, tensor, Mr__TensorProto *, count);
    case MR_ATTR_FUNCTION:
        return MAKE_LIST(list, func, Mr__NameAttrList *, count);
    default:
        return count == 0;
    }
}

static mr_status write_element(const mr_attr *attr, int32_t i, Mr__AttrValue__ListValue *list, mr_arena *arena,
                               mr_error *error)
{
    const mr_attr_value *value = &attr->values[i];
    switch (attr->kind) {
    case MR_ATTR_STRING:
        list->s[i] = bytes_of(value->string);
        return MR_OK;
    case MR_ATTR_INT:
        list->i[i] = value->integer;
        return MR_OK;
    case MR_ATTR_FLOAT:
        list->f[i] = value->number;
        return MR_OK;
    case MR_ATTR_BOOL:
        list->b[i] = value->boolean;
        return MR_OK;
    case MR_ATTR_TYPE:
        list->type[i] = value->type;
        return MR_OK;
    case MR_ATTR_SHAPE:
        return mr_shape_write(value->shape, arena, &list->shape[i], error);
    case MR_ATTR_TENSOR:
        return mr_tensor_write(&value->tensor, arena, &list->tensor[i], error);
    default:
        return write_function(value, arena, &list->func[i], error);
    }
}

static mr_status write_one(const mr_attr *attr, Mr__AttrValue *proto, mr_arena *arena, mr_error *error)
{
    const mr_attr_value *value = &attr->values[0];
    switch (attr->kind) {
    case MR_ATTR_STRING:
        proto->value_case = MR__ATTR_VALUE__VALUE_S;
        proto->s = bytes_of(value->string);
        return MR_OK;
    case MR_ATTR_INT:
        proto->value_case = MR__ATTR_VALUE__VALUE_I;
        proto->i = value->integer;
        return MR_OK;
    case MR_ATTR_FLOAT:
        proto->value_case = MR__ATTR_VALUE__VALUE_F;
        proto->f = value->number;
        return MR_OK;
    case MR_ATTR_BOOL:
        proto->value_case = MR__ATTR_VALUE__VALUE_B;
        proto->b = value->boolean;
        return MR_OK;
    case MR_ATTR_TYPE:
        proto->value_case = MR__ATTR_VALUE__VALUE_TYPE;
        proto->type = value->type;
        return MR_OK;
    case MR_ATTR_SHAPE:
        proto->value_case = MR__ATTR_VALUE__VALUE_SHAPE;
        return mr_shape_write(value->shape, arena, &proto->shape, error);
    case MR_ATTR_TENSOR:
        proto->value_case = MR__ATTR_VALUE__VALUE_TENSOR;
        return mr_tensor_write(&value->tensor, arena, &proto->tensor, error);
    case MR_ATTR_PLACEHOLDER:
        proto->value_case = MR__ATTR_VALUE__VALUE_PLACEHOLDER;
        proto->placeholder = (char *)value->string.data;
        return MR_OK;
    case MR_ATTR_FUNCTION:
        proto->value_case = MR__ATTR_VALUE__VALUE_FUNC;
        return write_function(value, arena, &proto->func, error);
    default:
        return mr_fail(error, MR_INTERNAL, "attr %s has no value", attr->name);
    }
}

mr_status mr_attr_write(const mr_attr *attr, mr_arena *arena, Mr__AttrValue **proto, mr_error *error)
{
    Mr__AttrValue *made = MR_ARENA_NEW(arena, Mr__AttrValue, 1);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    mr__attr_value__init(made);
    *proto = made;
    if (!attr->is_list) return write_one(attr, made, arena, error);
    made->value_case = MR__ATTR_VALUE__VALUE_LIST;
    made->list = MR_ARENA_NEW(arena, Mr__AttrValue__ListValue, 1);
    if (made->list == nullptr) return mr_fail_memory(error, sizeof *made->list);
    mr__attr_value__list_value__init(made->list);
    if (!make_list(made->list, attr->kind, (size_t)attr->count, arena)) return mr_fail_memory(error, sizeof *made);
    for (int32_t i = 0; i < attr->count; i++) MR_TRY(write_element(attr, i, made->list, arena, error));
    return MR_OK;
}
