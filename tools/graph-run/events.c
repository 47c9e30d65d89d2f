#include "graph-run/events.h"

#include <string.h>

bool events_is_summary(mr_output output)
{
    const char *op = mr_node_op(output.node);
    size_t length = strlen(op);
    return mr_output_dtype(output) == MR_STRING &&
           ((length >= 7 && strcmp(op + length - 7, "Summary") == 0) || strcmp(op, "AudioSummaryV2") == 0 ||
            strcmp(op, "TensorSummaryV2") == 0);
}

/* The global step of the graph, if it has a value; else -1. */
static int64_t read_global_step(const mr_graph *graph, mr_session *session)
{
    mr_output variable = {0};
    mr_tensor value = {0};
    int64_t step = -1;
    if (mr_graph_collection_count(graph, "global_step") > 0)
        variable = mr_graph_collection_item(graph, "global_step", 0);
    if (!variable.node) variable.node = mr_graph_find(graph, "global_step");
    if (!variable.node || mr_node_output_count(variable.node) < 1) return -1;
    if (mr_session_read_variable(session, variable, &value, nullptr) != MR_OK) return -1;
    if (value.dtype == MR_INT64 && mr_tensor_count(&value) == 1) step = *(const int64_t *)value.data;
    if (value.dtype == MR_INT32 && mr_tensor_count(&value) == 1) step = *(const int32_t *)value.data;
    mr_tensor_deinit(&value);
    return step;
}

static bool scalar_of(const mr_tensor *value, float *number)
{
    if (mr_tensor_count(value) != 1) return false;
    if (value->dtype == MR_FLOAT) *number = *(const float *)value->data;
    if (value->dtype == MR_DOUBLE) *number = (float)*(const double *)value->data;
    if (value->dtype == MR_INT32) *number = (float)*(const int32_t *)value->data;
    if (value->dtype == MR_INT64) *number = (float)*(const int64_t *)value->data;
    return value->dtype == MR_FLOAT || value->dtype == MR_DOUBLE || value->dtype == MR_INT32 ||
           value->dtype == MR_INT64;
}

mr_status events_write(mr_event_writer *events, const options *o, mr_graph *graph, mr_session *session,
                       const mr_output *fetches, const mr_tensor *results, int64_t number, mr_error *error)
{
    int64_t global = read_global_step(graph, session);
    if (global < 0) global = number + 1;
    for (int i = 0; i < o->fetch_count; i++) {
        float value;
        if (events_is_summary(fetches[i]) && mr_tensor_count(&results[i]) == 1)
            MR_TRY(mr_event_writer_add(events, global, mr_tensor_strings(&results[i])[0], error));
        else if (scalar_of(&results[i], &value))
            MR_TRY(mr_event_writer_add_scalar(events, global, o->fetches[i], value, error));
    }
    return MR_OK;
}
