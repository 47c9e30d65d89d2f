/* Attrs of nodes: sorted by name, with all their values in the graph's arena. */
#include "graph/ir/graph.h"

#include <inttypes.h>
#include <string.h>

mr_status mr_node_put_attr(mr_node *node, mr_attr attr, mr_error *error)
{
    mr_attrs *attrs = &node->attrs;
    int32_t at = attrs->count;
    while (at > 0 && strcmp(attrs->items[at - 1].name, attr.name) > 0) at--;
    if (at > 0 && strcmp(attrs->items[at - 1].name, attr.name) == 0) {
        attrs->items[at - 1] = attr;
        return MR_OK;
    }
    mr_attr *items = mr_graph_grow(node->graph, attrs->items, attrs->count, sizeof *items);
    if (items == nullptr) return mr_fail_memory(error, sizeof *items);
    memmove(&items[at + 1], &items[at], (size_t)(attrs->count - at) * sizeof *items);
    items[at] = attr;
    attrs->items = items;
    attrs->count++;
    return MR_OK;
}

static mr_status copy_value(mr_graph *graph, mr_attr_kind kind, mr_attr_value *value, mr_error *error)
{
    switch (kind) {
    case MR_ATTR_STRING:
    case MR_ATTR_PLACEHOLDER:
        value->string.data = mr_arena_strndup(&graph->arena, value->string.data, value->string.size_bytes);
        return value->string.data == nullptr ? mr_fail_memory(error, value->string.size_bytes) : MR_OK;
    case MR_ATTR_TENSOR:
        return mr_graph_keep_tensor(graph, &value->tensor, &value->tensor, error);
    case MR_ATTR_FUNCTION:
        value->function.name = mr_arena_strdup(&graph->arena, value->function.name);
        return value->function.name == nullptr ? mr_fail_memory(error, 1) : MR_OK;
    default:
        return MR_OK;
    }
}

mr_status mr_attr_copy(mr_graph *graph, const mr_attr *attr, mr_attr *copy, mr_error *error)
{
    *copy = *attr;
    copy->name = mr_arena_strdup(&graph->arena, attr->name);
    copy->values = MR_ARENA_NEW(&graph->arena, mr_attr_value, (size_t)attr->count + 1);
    if (copy->name == nullptr || copy->values == nullptr) return mr_fail_memory(error, sizeof *copy->values);
    for (int32_t i = 0; i < attr->count; i++) {
        copy->values[i] = attr->values[i];
        MR_TRY(copy_value(graph, attr->kind, &copy->values[i], error));
    }
    return MR_OK;
}

mr_status mr_node_put_value(mr_node *node, const char *name, mr_attr_kind kind, mr_attr_value value, mr_error *error)
{
    mr_attr attr = {.name = name, .kind = kind, .count = 1, .values = &value}, copy = {0};
    MR_TRY(mr_attr_copy(node->graph, &attr, &copy, error));
    return mr_node_put_attr(node, copy, error);
}

/* ---- Arguments, as the attrs determine them ---- */

mr_status mr_argument_count(const mr_op_argument *argument, const mr_attrs *attrs, int32_t *count, mr_error *error)
{
    *count = 1;
    if (argument->number_attr != nullptr) {
        int64_t number = 0;
        MR_TRY(mr_attr_get_int(attrs, argument->number_attr, &number, error));
        if (number < 0 || number > 1 << 20)
            return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s is %" PRId64, argument->number_attr, number);
        *count = (int32_t)number;
    } else if (argument->types_attr != nullptr) {
        const mr_attr *types = mr_attrs_find(attrs, argument->types_attr);
        if (types == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s is missing", argument->types_attr);
        *count = types->count;
    }
    return MR_OK;
}

mr_dtype mr_argument_dtype(const mr_op_argument *argument, const mr_attrs *attrs, int32_t index)
{
    if (argument->type_attr != nullptr) return mr_attr_type_or(attrs, argument->type_attr, MR_DTYPE_INVALID);
    if (argument->types_attr == nullptr) return argument->dtype;
    const mr_attr *types = mr_attrs_find(attrs, argument->types_attr);
    return types != nullptr && index < types->count ? (mr_dtype)types->values[index].type : MR_DTYPE_INVALID;
}
