/* The global step: a variable that counts the updates of a training run. */
#include "graph/ir/graph.h"
#include "graph/train/train.h"

#include <string.h>

mr_variable mr_train_find_global_step(mr_graph *graph)
{
    int32_t count = mr_graph_variable_count(graph, MR_GLOBAL_VARIABLES);
    for (int32_t i = 0; i < count; i++) {
        mr_variable variable = mr_graph_variable(graph, MR_GLOBAL_VARIABLES, i);
        if (strcmp(mr_node_name(variable.ref.node), "global_step") == 0) return variable;
    }
    return (mr_variable){0};
}

mr_variable mr_global_step(mr_graph *graph)
{
    if (graph == nullptr) return (mr_variable){0};
    mr_variable found = mr_train_find_global_step(graph);
    if (found.ref.node != nullptr) return found;
    mr_graph_push_scope(graph, "");
    mr_graph_push_control_dependencies(graph, nullptr, 0);
    int64_t zero = 0;
    mr_tensor value = {0};
    mr_error error = {0};
    mr_status status = mr_tensor_init_copy(&value, MR_INT64, MR_SCALAR, &zero, &error);
    if (status != MR_OK) (void)mr_graph_record(graph, status, &error);
    mr_graph_push_scope(graph, "global_step/Initializer/");
    mr_output initial = mr_constant(graph, &value, "zeros");
    mr_graph_pop_scope(graph);
    mr_variable variable = mr_variable_new(graph, "global_step", initial, .trainable = false);
    mr_graph_pop_control_dependencies(graph);
    mr_graph_pop_scope(graph);
    mr_tensor_deinit(&value);
    mr_graph_add_to_collection(graph, "global_step", variable.ref);
    return variable;
}

mr_status mr_train_check_global_step(mr_variable step, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (step.ref.node == nullptr) return MR_OK;
    const mr_dtype dtype = mr_variable_dtype_of(step);
    const mr_shape shape = mr_variable_shape_of(step);
    if ((dtype == MR_INT32 || dtype == MR_INT64) && shape.rank <= 0) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "the global step is %s%s, not a scalar of int32 or int64",
                   mr_dtype_name(dtype), mr_shape_text(shape, text, sizeof text));
}

mr_status mr_train_step_of(const mr_tensor *value, int64_t *step, mr_error *error)
{
    if (mr_tensor_count(value) != 1 || (value->dtype != MR_INT32 && value->dtype != MR_INT64))
        return mr_fail(error, MR_INVALID_ARGUMENT, "the global step is not a scalar");
    *step = value->dtype == MR_INT32 ? mr_tensor_int32s(value)[0] : mr_tensor_int64s(value)[0];
    return MR_OK;
}

mr_status mr_train_read_global_step(mr_session *session, mr_variable variable, int64_t *step, mr_error *error)
{
    *step = -1;
    if (variable.ref.node == nullptr) return MR_OK;
    mr_tensor value = {0};
    MR_TRY(mr_session_read_variable(session, variable.ref, &value, error));
    mr_status status = mr_train_step_of(&value, step, error);
    mr_tensor_deinit(&value);
    return status;
}
