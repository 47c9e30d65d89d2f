/* Constants: Const nodes that reference the tensor. */
#include "graph/ir/graph.h"

#include <string.h>

mr_output mr_constant(mr_graph *graph, const mr_tensor *value, const char *name)
{
    if (graph == nullptr) return (mr_output){0};
    bool is_whole = value != nullptr && (value->data != nullptr || mr_tensor_count(value) == 0);
    if (!is_whole)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: the value %s", name == nullptr ? "Const" : name,
                             value == nullptr ? "is null" : "has no elements in memory");
    mr_node_builder builder = mr_node_begin(graph, "Const", name);
    mr_node_set_tensor(&builder, "value", value);
    mr_node_set_dtype(&builder, "dtype", value->dtype);
    return mr_node_finish(&builder);
}

/* Adds the constant and releases the caller's reference. */
static mr_output take(mr_graph *graph, mr_status status, mr_tensor *value, const char *name, const mr_error *error)
{
    if (graph == nullptr || graph->status != MR_OK) {
        mr_tensor_deinit(value);
        return mr_graph_failed_output(graph);
    }
    if (status != MR_OK)
        return mr_graph_fail(graph, status, "%s: %s", name == nullptr ? "Const" : name, error->message);
    mr_output output = mr_constant(graph, value, name);
    mr_tensor_deinit(value);
    return output;
}

mr_output mr_constant_float(mr_graph *graph, float value)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    mr_status status = mr_tensor_init_float(&tensor, value, &error);
    return take(graph, status, &tensor, nullptr, &error);
}

mr_output mr_constant_int32(mr_graph *graph, int32_t value)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    mr_status status = mr_tensor_init_int32(&tensor, value, &error);
    return take(graph, status, &tensor, nullptr, &error);
}

mr_output mr_constant_int64(mr_graph *graph, int64_t value)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    mr_status status = mr_tensor_init_int64(&tensor, value, &error);
    return take(graph, status, &tensor, nullptr, &error);
}

mr_output mr_constant_bool(mr_graph *graph, bool value)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    mr_status status = mr_tensor_init_bool(&tensor, value, &error);
    return take(graph, status, &tensor, nullptr, &error);
}

mr_output mr_constant_string(mr_graph *graph, const char *value)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    mr_status status = mr_tensor_init_string(&tensor, mr_string_from(value), &error);
    return take(graph, status, &tensor, nullptr, &error);
}

mr_output mr_constant_floats(mr_graph *graph, mr_shape shape, const float *values, const char *name)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    mr_status status = mr_tensor_init_copy(&tensor, MR_FLOAT, shape, values, &error);
    return take(graph, status, &tensor, name, &error);
}

mr_output mr_constant_int32s(mr_graph *graph, mr_shape shape, const int32_t *values, const char *name)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    mr_status status = mr_tensor_init_copy(&tensor, MR_INT32, shape, values, &error);
    return take(graph, status, &tensor, name, &error);
}

mr_output mr_constant_ints(mr_graph *graph, mr_ints values)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    mr_status status = MR_OK;
    if (values.items == nullptr && values.count > 0)
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "a list of %d integers is null", values.count);
    if (status == MR_OK) status = mr_tensor_init(&tensor, MR_INT32, MR_SHAPE(values.count), &error);
    for (int32_t i = 0; status == MR_OK && i < values.count; i++) {
        if (values.items[i] < INT32_MIN || values.items[i] > INT32_MAX)
            status = mr_fail(&error, MR_INVALID_ARGUMENT, "%lld does not fit in int32", (long long)values.items[i]);
        else
            mr_tensor_int32s(&tensor)[i] = (int32_t)values.items[i];
    }
    if (status != MR_OK) mr_tensor_deinit(&tensor);
    return take(graph, status, &tensor, nullptr, &error);
}
