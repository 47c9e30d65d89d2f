/* Export of a graph as GraphDef: nodes in their order, attrs by name, inputs "node", "node:1" and, last, "^node".
 * Imported data without a meaning here (attrs of unknown kinds, debug information, the function library) is exported
 * unchanged. */
#include "graph/ir/convert.h"

#include <assert.h>
#include <string.h>

static mr_status write_inputs(const mr_node *node, mr_arena *arena, Mr__NodeDef *def, mr_error *error)
{
    size_t count = (size_t)node->input_count + (size_t)node->control_count;
    def->input = MR_ARENA_NEW(arena, char *, count + 1);
    if (def->input == nullptr) return mr_fail_memory(error, count * sizeof *def->input);
    for (int32_t i = 0; i < node->input_count; i++) {
        mr_output input = node->inputs[i];
        def->input[def->n_input++] = input.index == 0 ? (char *)input.node->name
                                                      : mr_arena_printf(arena, "%s:%d", input.node->name, input.index);
    }
    for (int32_t i = 0; i < node->control_count; i++)
        def->input[def->n_input++] = mr_arena_printf(arena, "^%s", node->controls[i]->name);
    for (size_t i = 0; i < def->n_input; i++)
        if (def->input[i] == nullptr) return mr_fail_memory(error, 64);
    return MR_OK;
}

static mr_status write_raw(const mr_raw_attr *raw, mr_arena *arena, Mr__AttrValue **value, mr_error *error)
{
    mr_string bytes = {(const char *)raw->bytes, raw->size_bytes};
    return mr_proto_unpack_as(attr_value, bytes, arena, value, error);
}

/* Both lists are sorted by name, and so is the result. */
static mr_status write_attrs(const mr_node *node, mr_arena *arena, Mr__NodeDef *def, mr_error *error)
{
    size_t count = (size_t)node->attrs.count + (size_t)node->raw_attr_count;
    Mr__AttrEntry *entries = MR_ARENA_NEW(arena, Mr__AttrEntry, count + 1);
    def->attr = MR_ARENA_NEW(arena, Mr__AttrEntry *, count + 1);
    if (entries == nullptr || def->attr == nullptr) return mr_fail_memory(error, count * sizeof *entries);
    int32_t known = 0, raw = 0;
    while (def->n_attr < count) {
        Mr__AttrEntry *entry = &entries[def->n_attr];
        bool is_raw =
            known == node->attrs.count ||
            (raw < node->raw_attr_count && strcmp(node->raw_attrs[raw].name, node->attrs.items[known].name) < 0);
        mr__attr_entry__init(entry);
        entry->key = (char *)(is_raw ? node->raw_attrs[raw].name : node->attrs.items[known].name);
        if (is_raw)
            MR_TRY(write_raw(&node->raw_attrs[raw++], arena, &entry->value, error));
        else
            MR_TRY(mr_attr_write(&node->attrs.items[known++], arena, &entry->value, error));
        def->attr[def->n_attr++] = entry;
    }
    return MR_OK;
}

static mr_status write_node(const mr_node *node, mr_arena *arena, Mr__NodeDef **result, mr_error *error)
{
    Mr__NodeDef *def = nullptr;
    if (node->rest_size_bytes > 0) {
        mr_string rest = {(const char *)node->rest, node->rest_size_bytes};
        MR_TRY(mr_proto_unpack_as(node_def, rest, arena, &def, error));
    } else {
        def = MR_ARENA_NEW(arena, Mr__NodeDef, 1);
        if (def == nullptr) return mr_fail_memory(error, sizeof *def);
        mr__node_def__init(def);
    }
    def->name = (char *)node->name;
    def->op = (char *)node->op;
    def->device = (char *)node->device;
    MR_TRY(write_inputs(node, arena, def, error));
    MR_TRY(write_attrs(node, arena, def, error));
    *result = def;
    return MR_OK;
}

mr_status mr_graph_write(const mr_graph *graph, mr_arena *arena, Mr__GraphDef **graph_def, mr_error *error)
{
    Mr__GraphDef *def = MR_ARENA_NEW(arena, Mr__GraphDef, 1);
    Mr__VersionDef *versions = MR_ARENA_NEW(arena, Mr__VersionDef, 1);
    MR_TRY(mr_graph_check_complete(graph, error));
    if (def == nullptr || versions == nullptr) return mr_fail_memory(error, sizeof *def);
    mr__graph_def__init(def);
    mr__version_def__init(versions);
    versions->producer = graph->producer;
    versions->min_consumer = graph->min_consumer;
    def->versions = versions;
    def->node = MR_ARENA_NEW(arena, Mr__NodeDef *, (size_t)graph->node_count + 1);
    if (def->node == nullptr) return mr_fail_memory(error, sizeof *def->node);
    for (int32_t i = 0; i < graph->node_count; i++) MR_TRY(write_node(graph->nodes[i], arena, &def->node[i], error));
    def->n_node = (size_t)graph->node_count;
    mr_string library = {(const char *)graph->library, graph->library_size_bytes};
    if (library.size_bytes > 0) MR_TRY(mr_proto_unpack_as(function_def_library, library, arena, &def->library, error));
    *graph_def = def;
    return MR_OK;
}

/* ---- Shapes ---- */

/* Imported shapes may be narrower, as Python knows more of some outputs. They are only exported: what the graph runs
 * with is inferred, as a file may be wrong. */
static mr_shape known_shape(const mr_node *node, int32_t output)
{
    const mr_attr *known = mr_attrs_find(&node->attrs, "_output_shapes");
    mr_shape shape = mr_output_shape((mr_output){(mr_node *)node, output}), merged;
    if (known == nullptr || known->kind != MR_ATTR_SHAPE || !known->is_list || known->count != node->output_count)
        return shape;
    return mr_shape_merge(shape, known->values[output].shape, &merged, nullptr) == MR_OK ? merged : shape;
}

/* The attr with the shapes of the node's outputs. */
static mr_status shapes_attr(const mr_node *node, mr_arena *arena, Mr__AttrEntry **result, mr_error *error)
{
    const size_t count = (size_t)node->output_count;
    Mr__AttrEntry *entry = MR_ARENA_NEW(arena, Mr__AttrEntry, 1);
    Mr__AttrValue *value = MR_ARENA_NEW(arena, Mr__AttrValue, 1);
    Mr__AttrValue__ListValue *list = MR_ARENA_NEW(arena, Mr__AttrValue__ListValue, 1);
    Mr__TensorShapeProto **shapes = MR_ARENA_NEW(arena, Mr__TensorShapeProto *, count);
    if (entry == nullptr || value == nullptr || list == nullptr || shapes == nullptr)
        return mr_fail_memory(error, count * sizeof *shapes);
    mr__attr_entry__init(entry);
    mr__attr_value__init(value);
    mr__attr_value__list_value__init(list);
    for (size_t i = 0; i < count; i++) MR_TRY(mr_shape_write(known_shape(node, (int32_t)i), arena, &shapes[i], error));
    list->n_shape = count;
    list->shape = shapes;
    value->value_case = MR__ATTR_VALUE__VALUE_LIST;
    value->list = list;
    entry->key = (char *)"_output_shapes";
    entry->value = value;
    *result = entry;
    return MR_OK;
}

/* Adds the attr in the order of names; one that was imported is replaced. */
static mr_status add_shapes(const mr_node *node, Mr__NodeDef *def, mr_arena *arena, mr_error *error)
{
    Mr__AttrEntry *shapes, **attrs = MR_ARENA_NEW(arena, Mr__AttrEntry *, def->n_attr + 1);
    if (attrs == nullptr) return mr_fail_memory(error, def->n_attr * sizeof(Mr__AttrEntry *));
    MR_TRY(shapes_attr(node, arena, &shapes, error));
    size_t at = 0, count = 0;
    while (at < def->n_attr && strcmp(def->attr[at]->key, shapes->key) < 0) attrs[count++] = def->attr[at++];
    attrs[count++] = shapes;
    if (at < def->n_attr && strcmp(def->attr[at]->key, shapes->key) == 0) at++;
    while (at < def->n_attr) attrs[count++] = def->attr[at++];
    assert(count == def->n_attr || count == def->n_attr + 1);
    def->attr = attrs;
    def->n_attr = count;
    return MR_OK;
}

mr_status mr_graph_write_shapes(const mr_graph *graph, Mr__GraphDef *def, mr_arena *arena, mr_error *error)
{
    assert(def->n_node == (size_t)graph->node_count);
    for (int32_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i]->output_count > 0) MR_TRY(add_shapes(graph->nodes[i], def->node[i], arena, error));
    return MR_OK;
}

mr_status mr_graph_export(const mr_graph *graph, mr_tensor *graph_def, mr_error *error)
{
    mr_arena arena = {0};
    Mr__GraphDef *def = nullptr;
    mr_string bytes = {0};
    mr_status status = mr_graph_write(graph, &arena, &def, error);
    if (status == MR_OK) status = mr_proto_pack(def, &arena, &bytes, error);
    if (status == MR_OK) status = mr_tensor_init_string(graph_def, bytes, error);
    mr_arena_deinit(&arena);
    return status;
}
