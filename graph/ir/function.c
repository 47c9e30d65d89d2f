/* The function library: finding functions, and definitions of the operators that call them. */
#include "graph/ir/function.h"
#include "graph/ir/function_def.h"

#include <string.h>

/* ---- The definition of a call ---- */

static bool read_kind(const char *type, mr_op_attr *attr)
{
    static const struct {
        const char *name;
        mr_attr_kind kind;
    } kinds[] = {
        {"type", MR_ATTR_TYPE},     {"int", MR_ATTR_INT},     {"float", MR_ATTR_FLOAT},   {"bool", MR_ATTR_BOOL},
        {"string", MR_ATTR_STRING}, {"shape", MR_ATTR_SHAPE}, {"tensor", MR_ATTR_TENSOR}, {"func", MR_ATTR_FUNCTION},
    };
    size_t length = strlen(type);
    attr->is_list = length > 6 && strncmp(type, "list(", 5) == 0 && type[length - 1] == ')';
    if (attr->is_list) {
        type += 5;
        length -= 6;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strlen(kinds[i].name) != length || strncmp(kinds[i].name, type, length) != 0) continue;
        attr->kind = kinds[i].kind;
        return true;
    }
    return false;
}

static const char *name_or_null(mr_arena *arena, const char *name)
{
    return *name != '\0' ? mr_arena_strdup(arena, name) : nullptr;
}

static mr_op_argument *read_arguments(mr_arena *arena, Mr__OpDef__ArgDef *const *from, size_t count)
{
    mr_op_argument *arguments = MR_ARENA_NEW(arena, mr_op_argument, count + 1);
    for (size_t i = 0; arguments != nullptr && i < count; i++) {
        arguments[i] = (mr_op_argument){.name = mr_arena_strdup(arena, from[i]->name),
                                        .type_attr = name_or_null(arena, from[i]->type_attr),
                                        .number_attr = name_or_null(arena, from[i]->number_attr),
                                        .types_attr = name_or_null(arena, from[i]->type_list_attr),
                                        .is_ref = from[i]->is_ref};
        bool has_attr = arguments[i].type_attr != nullptr || arguments[i].types_attr != nullptr;
        if (!has_attr && from[i]->type > 0 && from[i]->type < MR_DTYPE_COUNT)
            arguments[i].dtype = (mr_dtype)from[i]->type;
    }
    return arguments;
}

static bool has_attr(const mr_op_def *def, const char *name, mr_attr_kind kind, bool is_list)
{
    for (int32_t i = 0; i < def->attr_count; i++)
        if (strcmp(def->attrs[i].name, name) == 0)
            return def->attrs[i].kind == kind && def->attrs[i].is_list == is_list;
    return false;
}

static mr_status check_arguments(const mr_op_def *def, const mr_op_argument *arguments, int32_t count, mr_error *error)
{
    for (int32_t i = 0; i < count; i++) {
        const mr_op_argument *a = &arguments[i];
        bool valid =
            a->name != nullptr && (a->dtype != MR_DTYPE_INVALID || a->type_attr != nullptr || a->types_attr != nullptr);
        if (a->type_attr != nullptr) valid &= has_attr(def, a->type_attr, MR_ATTR_TYPE, false);
        if (a->number_attr != nullptr) valid &= has_attr(def, a->number_attr, MR_ATTR_INT, false);
        if (a->types_attr != nullptr) valid &= has_attr(def, a->types_attr, MR_ATTR_TYPE, true);
        if (!valid)
            return mr_fail(error, MR_INVALID_ARGUMENT, "argument %.200s has no valid type", a->name ? a->name : "?");
    }
    return MR_OK;
}

/* The attrs have no default values here: a call states all of them. */
static mr_status read_signature(mr_arena *arena, const Mr__OpDef *from, mr_op_def *def, mr_error *error)
{
    mr_op *op = MR_ARENA_NEW(arena, mr_op, 1);
    mr_op_attr *attrs = MR_ARENA_NEW(arena, mr_op_attr, from->n_attr + 1);
    mr_op_argument *inputs = read_arguments(arena, from->input_arg, from->n_input_arg);
    mr_op_argument *outputs = read_arguments(arena, from->output_arg, from->n_output_arg);
    if (op == nullptr || attrs == nullptr || inputs == nullptr || outputs == nullptr)
        return mr_fail_memory(error, sizeof *op);
    *op = (mr_op){.name = mr_arena_strdup(arena, from->name),
                  .signature = "",
                  .shape = mr_shape_unknown,
                  .flags = MR_OP_CALL | (from->is_stateful ? MR_OP_STATEFUL : 0),
                  .doc = ""};
    if (op->name == nullptr) return mr_fail_memory(error, sizeof *op);
    *def = (mr_op_def){.op = op,
                       .input_count = (int32_t)from->n_input_arg,
                       .inputs = inputs,
                       .output_count = (int32_t)from->n_output_arg,
                       .outputs = outputs,
                       .attrs = attrs};
    for (size_t i = 0; i < from->n_attr; i++) {
        mr_op_attr attr = {.name = mr_arena_strdup(arena, from->attr[i]->name)};
        if (attr.name == nullptr) return mr_fail_memory(error, sizeof attr);
        if (!read_kind(from->attr[i]->type, &attr))
            return mr_fail(error, MR_INVALID_ARGUMENT, "attr %.200s has the unknown type %.80s", attr.name,
                           from->attr[i]->type);
        attrs[def->attr_count++] = attr;
    }
    MR_TRY(check_arguments(def, inputs, def->input_count, error));
    return check_arguments(def, outputs, def->output_count, error);
}

/* ---- The library ---- */

const mr_library_function *mr_function_library_find(const mr_function_library *library, const char *function)
{
    int32_t index = library != nullptr ? mr_name_table_get(&library->names, function, -1) : -1;
    return index >= 0 ? library->functions[index] : nullptr;
}

const mr_op_def *mr_function_library_op(const mr_function_library *library, const char *function)
{
    const mr_library_function *found = mr_function_library_find(library, function);
    return found != nullptr ? &found->call : nullptr;
}

const char *mr_function_library_gradient(const mr_function_library *library, const char *function)
{
    int32_t index = library != nullptr ? mr_name_table_get(&library->gradients, function, -1) : -1;
    return index >= 0 ? library->gradient_functions[index] : nullptr;
}

static mr_status is_equal(const Mr__FunctionDef *a, const Mr__FunctionDef *b, bool *equal, mr_error *error)
{
    mr_arena arena = {0};
    mr_string left, right;
    mr_status status = mr_proto_pack(a, &arena, &left, error);
    if (status == MR_OK) status = mr_proto_pack(b, &arena, &right, error);
    *equal = status == MR_OK && mr_string_equal(left, right);
    mr_arena_deinit(&arena);
    return status;
}

static mr_status add_function(mr_graph *graph, Mr__FunctionDef *def, mr_error *error)
{
    mr_function_library *library = graph->functions;
    mr_function_sort_maps(&def->base);
    if (def->signature == nullptr || *def->signature->name == '\0')
        return mr_fail(error, MR_INVALID_ARGUMENT, "a function has no name");
    const char *name = def->signature->name;
    const mr_library_function *known = mr_function_library_find(library, name);
    if (known != nullptr) {
        bool equal;
        MR_TRY(is_equal(known->def, def, &equal, error));
        if (equal) return MR_OK;
        return mr_fail(error, MR_INVALID_ARGUMENT, "function %.200s is already defined differently", name);
    }
    if (mr_op_find(name) != nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "function %.200s has the name of an operator", name);
    mr_library_function *made = MR_ARENA_NEW(&graph->arena, mr_library_function, 1);
    mr_library_function **all = mr_graph_grow(graph, library->functions, library->function_count, sizeof *all);
    if (made == nullptr || all == nullptr) return mr_fail_memory(error, sizeof *made);
    library->functions = all;
    made->def = def;
    mr_status status = read_signature(&graph->arena, def->signature, &made->call, error);
    if (status != MR_OK) return mr_fail_prefix(error, status, "function %.200s", name);
    MR_TRY(mr_name_table_set(&library->names, made->call.op->name, library->function_count, error));
    all[library->function_count++] = made;
    return MR_OK;
}

static mr_status add_gradient(mr_graph *graph, const Mr__GradientDef *def, mr_error *error)
{
    mr_function_library *library = graph->functions;
    const char **all =
        mr_graph_grow(graph, library->gradient_functions, library->gradient_count, sizeof *library->gradient_functions);
    if (all == nullptr) return mr_fail_memory(error, sizeof *all);
    library->gradient_functions = all;
    const char *known = mr_function_library_gradient(library, def->function_name);
    if (known != nullptr && strcmp(known, def->gradient_func) != 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "function %.200s has the gradients %.200s and %.200s",
                       def->function_name, known, def->gradient_func);
    all[library->gradient_count] = def->gradient_func;
    return mr_name_table_set(&library->gradients, def->function_name, library->gradient_count++, error);
}

mr_status mr_graph_add_functions(mr_graph *graph, const Mr__FunctionDefLibrary *library, mr_error *error)
{
    mr_string bytes = {0};
    Mr__FunctionDefLibrary *own = nullptr;
    if (graph->functions == nullptr) graph->functions = MR_ARENA_NEW(&graph->arena, mr_function_library, 1);
    if (graph->functions == nullptr) return mr_fail_memory(error, sizeof *graph->functions);
    MR_TRY(mr_proto_pack(library, &graph->arena, &bytes, error));
    MR_TRY(mr_proto_unpack_as(function_def_library, bytes, &graph->arena, &own, error));
    for (size_t i = 0; i < own->n_function; i++) MR_TRY(add_function(graph, own->function[i], error));
    for (size_t i = 0; i < own->n_gradient; i++) MR_TRY(add_gradient(graph, own->gradient[i], error));
    return MR_OK;
}
