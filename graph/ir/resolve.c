/* Resolution: checks a node against its operator. Every attr must exist, be of the right kind and have an allowed
 * value; every input must have the dtype that the attrs require; the outputs follow. The same check applies to nodes
 * that are built and nodes that are imported. */
#include "graph/ir/graph.h"
#include "graph/ir/signature.h"

#include <inttypes.h>
#include <string.h>

/* ---- Attrs ---- */

static const char *kind_name(mr_attr_kind kind)
{
    static const char *const names[] = {"nothing", "string", "int",    "float",    "bool",
                                        "type",    "shape",  "tensor", "function", "placeholder"};
    return names[kind];
}

static mr_status check_value(const mr_op_attr *rule, const mr_attr_value *value, mr_error *error)
{
    if (rule->kind == MR_ATTR_TYPE) {
        int32_t type = value->type;
        if (type <= MR_DTYPE_INVALID || type >= MR_DTYPE_COUNT)
            return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s has the unknown type %d", rule->name, type);
        if (rule->allowed_types != 0 && (rule->allowed_types >> type & 1) == 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s is %s, which this operator does not support",
                           rule->name, mr_dtype_name((mr_dtype)type));
    }
    if (rule->kind == MR_ATTR_STRING && rule->allowed_string_count > 0) {
        bool is_allowed = false;
        for (int32_t i = 0; i < rule->allowed_string_count; i++)
            is_allowed |= mr_string_equal(value->string, mr_string_from(rule->allowed_strings[i]));
        if (!is_allowed)
            return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s is \"%.*s\", which is not an allowed value", rule->name,
                           value->string.size_bytes < 80 ? (int)value->string.size_bytes : 80, value->string.data);
    }
    if (rule->kind == MR_ATTR_SHAPE) {
        if (value->shape.rank < -1 || value->shape.rank > MR_RANK_MAX)
            return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s has rank %d", rule->name, value->shape.rank);
        for (int32_t i = 0; i < value->shape.rank; i++)
            if (value->shape.dims[i] < -1)
                return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s has the size %" PRId64, rule->name,
                               value->shape.dims[i]);
    }
    if (rule->kind == MR_ATTR_INT && rule->has_minimum && !rule->is_list && value->integer < rule->minimum)
        return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s is %" PRId64 ", below its minimum %" PRId64, rule->name,
                       value->integer, rule->minimum);
    return MR_OK;
}

static mr_status check_attr(const mr_op_attr *rule, const mr_attr *attr, mr_error *error)
{
    /* An empty list does not determine the kind of its elements. */
    bool is_kind = attr->kind == rule->kind || (attr->is_list && attr->count == 0);
    if (!is_kind || attr->is_list != rule->is_list)
        return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s must be %s%s, but is %s%s", rule->name,
                       rule->is_list ? "a list of " : "", kind_name(rule->kind), attr->is_list ? "a list of " : "",
                       kind_name(attr->kind));
    if (rule->is_list && rule->has_minimum && attr->count < rule->minimum)
        return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s has %d values, but needs %" PRId64, rule->name, attr->count,
                       rule->minimum);
    for (int32_t i = 0; i < attr->count; i++) MR_TRY(check_value(rule, &attr->values[i], error));
    return MR_OK;
}

static mr_status put_default(mr_node *node, const mr_op_attr *rule, mr_error *error)
{
    if (!rule->has_default) return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s is missing", rule->name);
    mr_attr_value value = rule->default_value;
    mr_attr attr = {.name = rule->name, .kind = rule->kind, .count = 1, .values = &value}, copy = {0};
    if (rule->is_list) attr = rule->default_list;
    MR_TRY(mr_attr_copy(node->graph, &attr, &copy, error));
    return mr_node_put_attr(node, copy, error);
}

static bool is_raw(const mr_node *node, const char *name)
{
    for (int32_t i = 0; i < node->raw_attr_count; i++)
        if (strcmp(node->raw_attrs[i].name, name) == 0) return true;
    return false;
}

static mr_status check_attrs(mr_node *node, mr_error *error)
{
    for (int32_t i = 0; i < node->def->attr_count; i++) {
        const mr_op_attr *rule = &node->def->attrs[i];
        const mr_attr *attr = mr_attrs_find(&node->attrs, rule->name);
        if (attr != nullptr)
            MR_TRY(check_attr(rule, attr, error));
        else if (is_raw(node, rule->name))
            return mr_fail(error, MR_UNIMPLEMENTED, "attr %s has a value that is not supported", rule->name);
        else
            MR_TRY(put_default(node, rule, error));
    }
    return MR_OK;
}

/* ---- Arguments ---- */

static mr_status check_input(const mr_node *node, const mr_op_argument *argument, int32_t index, mr_dtype expected,
                             mr_error *error)
{
    mr_output input = node->inputs[index];
    mr_dtype found = mr_output_dtype(input);
    if (found == MR_DTYPE_INVALID) return MR_OK; /* of an unknown operator */
    if (found != expected)
        return mr_fail(error, MR_INVALID_ARGUMENT, "input %d (%s), %s:%d, is %s, but must be %s%s%s%s", index,
                       argument->name, input.node->name, input.index, mr_dtype_name(found), mr_dtype_name(expected),
                       argument->type_attr != nullptr ? " as attr " : "",
                       argument->type_attr != nullptr ? argument->type_attr : "",
                       argument->type_attr != nullptr ? " says" : "");
    if (argument->is_ref && !mr_output_is_ref(input))
        return mr_fail(error, MR_INVALID_ARGUMENT, "input %d (%s), %s:%d, must be a reference to a variable", index,
                       argument->name, input.node->name, input.index);
    return MR_OK;
}

static mr_status check_inputs(const mr_node *node, mr_error *error)
{
    int32_t total = 0, at = 0;
    for (int32_t i = 0; i < node->def->input_count; i++) {
        int32_t count = 0;
        MR_TRY(mr_argument_count(&node->def->inputs[i], &node->attrs, &count, error));
        total += count;
    }
    if (total != node->input_count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the operator takes %d inputs, but has %d", total,
                       node->input_count);
    for (int32_t i = 0; i < node->def->input_count; i++) {
        const mr_op_argument *argument = &node->def->inputs[i];
        int32_t count = 0;
        MR_TRY(mr_argument_count(argument, &node->attrs, &count, error));
        for (int32_t j = 0; j < count; j++, at++)
            MR_TRY(check_input(node, argument, at, mr_argument_dtype(argument, &node->attrs, j), error));
    }
    return MR_OK;
}

static mr_status make_outputs(mr_node *node, mr_error *error)
{
    int64_t total = 0;
    for (int32_t i = 0; i < node->def->output_count; i++) {
        int32_t count = 0;
        MR_TRY(mr_argument_count(&node->def->outputs[i], &node->attrs, &count, error));
        total += count;
    }
    node->outputs = MR_ARENA_NEW(&node->graph->arena, mr_node_output, (size_t)total + 1);
    if (node->outputs == nullptr) return mr_fail_memory(error, (size_t)total * sizeof *node->outputs);
    node->output_count = 0;
    for (int32_t i = 0; i < node->def->output_count; i++) {
        const mr_op_argument *argument = &node->def->outputs[i];
        int32_t count = 0;
        MR_TRY(mr_argument_count(argument, &node->attrs, &count, error));
        for (int32_t j = 0; j < count; j++)
            node->outputs[node->output_count++] =
                (mr_node_output){.dtype = mr_argument_dtype(argument, &node->attrs, j),
                                 .is_ref = argument->is_ref,
                                 .shape = MR_SHAPE_UNKNOWN,
                                 .handle = MR_SHAPE_UNKNOWN};
    }
    return MR_OK;
}

mr_status mr_node_resolve(mr_node *node, mr_error *error)
{
    MR_TRY(check_attrs(node, error));
    MR_TRY(check_inputs(node, error));
    return make_outputs(node, error);
}
