/* Operator rows as OpDefs, and the list of those that a graph uses: stripped_op_list of a MetaGraphDef. From it, a
 * TensorFlow that knows fewer attrs of an operator sees which ones have their default values. */
#include "graph/ir/convert.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- One operator ---- */

static Mr__OpDef__ArgDef *write_argument(const mr_op_argument *argument, mr_arena *arena)
{
    Mr__OpDef__ArgDef *made = MR_ARENA_NEW(arena, Mr__OpDef__ArgDef, 1);
    if (made == nullptr) return nullptr;
    mr__op_def__arg_def__init(made);
    made->name = (char *)argument->name;
    made->type = (int32_t)argument->dtype;
    if (argument->type_attr != nullptr) made->type_attr = (char *)argument->type_attr;
    if (argument->number_attr != nullptr) made->number_attr = (char *)argument->number_attr;
    if (argument->types_attr != nullptr) made->type_list_attr = (char *)argument->types_attr;
    made->is_ref = argument->is_ref;
    return made;
}

static mr_status write_arguments(const mr_op_argument *arguments, int32_t count, mr_arena *arena,
                                 Mr__OpDef__ArgDef ***result, size_t *result_count, mr_error *error)
{
    Mr__OpDef__ArgDef **made = MR_ARENA_NEW(arena, Mr__OpDef__ArgDef *, (size_t)count + 1);
    if (made == nullptr) return mr_fail_memory(error, (size_t)count * sizeof *made);
    for (int32_t i = 0; i < count; i++) {
        made[i] = write_argument(&arguments[i], arena);
        if (made[i] == nullptr) return mr_fail_memory(error, sizeof *made[i]);
    }
    *result = made;
    *result_count = (size_t)count;
    return MR_OK;
}

/* Null if any value is allowed. */
static mr_status write_allowed(const mr_op_attr *attr, mr_arena *arena, Mr__AttrValue **value, mr_error *error)
{
    mr_attr list = {.name = attr->name, .kind = attr->kind, .is_list = true};
    list.values = MR_ARENA_NEW(arena, mr_attr_value, (size_t)attr->allowed_string_count + MR_DTYPE_COUNT);
    if (list.values == nullptr) return mr_fail_memory(error, sizeof *list.values);
    for (int32_t i = 0; i < attr->allowed_string_count; i++)
        list.values[list.count++].string = mr_string_from(attr->allowed_strings[i]);
    for (int32_t dtype = 0; dtype < MR_DTYPE_COUNT; dtype++)
        if ((attr->allowed_types >> dtype & 1) != 0) list.values[list.count++].type = dtype;
    return list.count == 0 ? MR_OK : mr_attr_write(&list, arena, value, error);
}

static mr_status write_attr(const mr_op_attr *attr, mr_arena *arena, Mr__OpDef__AttrDef **result, mr_error *error)
{
    static const char *const kinds[] = {
        [MR_ATTR_STRING] = "string", [MR_ATTR_INT] = "int",       [MR_ATTR_FLOAT] = "float",
        [MR_ATTR_BOOL] = "bool",     [MR_ATTR_TYPE] = "type",     [MR_ATTR_SHAPE] = "shape",
        [MR_ATTR_TENSOR] = "tensor", [MR_ATTR_FUNCTION] = "func",
    };
    Mr__OpDef__AttrDef *made = MR_ARENA_NEW(arena, Mr__OpDef__AttrDef, 1);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    mr__op_def__attr_def__init(made);
    made->name = (char *)attr->name;
    assert((size_t)attr->kind < sizeof kinds / sizeof *kinds && kinds[attr->kind] != nullptr);
    made->type = mr_arena_printf(arena, attr->is_list ? "list(%s)" : "%s", kinds[attr->kind]);
    if (made->type == nullptr) return mr_fail_memory(error, 1);
    made->has_minimum = attr->has_minimum;
    made->minimum = attr->minimum;
    mr_attr_value value = attr->default_value;
    mr_attr given = {.name = attr->name, .kind = attr->kind, .count = 1, .values = &value};
    if (attr->is_list) given = attr->default_list;
    if (attr->has_default) MR_TRY(mr_attr_write(&given, arena, &made->default_value, error));
    *result = made;
    return write_allowed(attr, arena, &made->allowed_values, error);
}

mr_status mr_op_def_write(const mr_op_def *def, mr_arena *arena, Mr__OpDef **result, mr_error *error)
{
    Mr__OpDef *made = MR_ARENA_NEW(arena, Mr__OpDef, 1);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    mr__op_def__init(made);
    made->name = (char *)def->op->name;
    made->is_stateful = (def->op->flags & MR_OP_STATEFUL) != 0;
    made->is_commutative = (def->op->flags & MR_OP_COMMUTATIVE) != 0;
    made->is_aggregate = (def->op->flags & MR_OP_AGGREGATE) != 0;
    made->allows_uninitialized_input = (def->op->flags & MR_OP_ALLOWS_UNINITIALIZED) != 0;
    MR_TRY(write_arguments(def->inputs, def->input_count, arena, &made->input_arg, &made->n_input_arg, error));
    MR_TRY(write_arguments(def->outputs, def->output_count, arena, &made->output_arg, &made->n_output_arg, error));
    made->attr = MR_ARENA_NEW(arena, Mr__OpDef__AttrDef *, (size_t)def->attr_count + 1);
    if (made->attr == nullptr) return mr_fail_memory(error, (size_t)def->attr_count * sizeof *made->attr);
    for (; made->n_attr < (size_t)def->attr_count; made->n_attr++)
        MR_TRY(write_attr(&def->attrs[made->n_attr], arena, &made->attr[made->n_attr], error));
    *result = made;
    return MR_OK;
}

/* ---- The operators of a graph ---- */

typedef struct used_operators {
    mr_name_table names; /* names that have been looked up */
    const mr_op_def **defs;
    size_t count, capacity;
} used_operators;

static mr_status use(used_operators *used, Mr__NodeDef *const *nodes, size_t count, mr_error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (mr_name_table_get(&used->names, nodes[i]->op, 0) != 0) continue;
        MR_TRY(mr_name_table_set(&used->names, nodes[i]->op, 1, error));
        const mr_op_def *def = mr_op_find(nodes[i]->op);
        if (def == nullptr) continue; /* a function, or not known here */
        assert(used->count < used->capacity);
        used->defs[used->count++] = def;
    }
    return MR_OK;
}

static int compare_names(const void *a, const void *b)
{
    const mr_op_def *const *left = a, *const *right = b;
    return strcmp((*left)->op->name, (*right)->op->name);
}

static mr_status find_used(const Mr__GraphDef *graph_def, used_operators *used, mr_error *error)
{
    MR_TRY(use(used, graph_def->node, graph_def->n_node, error));
    const Mr__FunctionDefLibrary *library = graph_def->library;
    for (size_t i = 0; library != nullptr && i < library->n_function; i++)
        MR_TRY(use(used, library->function[i]->node_def, library->function[i]->n_node_def, error));
    qsort(used->defs, used->count, sizeof *used->defs, compare_names);
    return MR_OK;
}

mr_status mr_op_list_write(const Mr__GraphDef *graph_def, mr_arena *arena, Mr__OpList **result, mr_error *error)
{
    used_operators used = {.capacity = (size_t)mr_op_count()};
    Mr__OpList *list = MR_ARENA_NEW(arena, Mr__OpList, 1);
    used.defs = MR_ARENA_NEW(arena, const mr_op_def *, used.capacity + 1);
    if (list == nullptr || used.defs == nullptr) return mr_fail_memory(error, used.capacity * sizeof *used.defs);
    mr__op_list__init(list);
    mr_status status = find_used(graph_def, &used, error);
    mr_name_table_deinit(&used.names);
    MR_TRY(status);
    list->op = MR_ARENA_NEW(arena, Mr__OpDef *, used.count + 1);
    if (list->op == nullptr) return mr_fail_memory(error, used.count * sizeof *list->op);
    for (; list->n_op < used.count; list->n_op++)
        MR_TRY(mr_op_def_write(used.defs[list->n_op], arena, &list->op[list->n_op], error));
    *result = list;
    return MR_OK;
}
