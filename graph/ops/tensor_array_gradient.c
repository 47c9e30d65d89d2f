/* Gradients of TensorArrays: what was read is written to the array of gradients, and what was written is read from it.
 * The array of gradients belongs to one call of mr_gradients, whose scope is its source. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

#include <string.h>

/* The array of gradients of the node's array, after `flow`. */
static mr_tensor_array_grad_v3_outputs gradients_of(mr_gradient_call *call, mr_output flow)
{
    mr_graph *graph = call->graph;
    /* "tower/gradients_1/…" gives "tower/gradients_1", as TensorFlow's _GetGradSource. */
    const char *scope = mr_graph_scope(graph), *last = nullptr;
    for (const char *at = strstr(scope, "gradients"); at != nullptr; at = strstr(at + 1, "gradients"))
        if (at == scope || at[-1] == '/') last = at;
    size_t length = strlen(scope);
    if (last != nullptr) length = (size_t)(last - scope) + strcspn(last, "/");
    const char *source = mr_arena_strndup(&graph->arena, scope, length);
    return mr_tensor_array_grad_v3(graph, gradient_input(call, 0), flow, .source = source != nullptr ? source : scope,
                                   .name = "TensorArrayGrad/TensorArrayGradV3");
}

/* The flow behind the gradients: reads that depend on it run after the array exists. */
static mr_output flow_behind(mr_gradient_call *call, mr_tensor_array_grad_v3_outputs gradients, mr_output flow)
{
    mr_graph *graph = call->graph;
    if (mr_graph_status(graph, nullptr) != MR_OK) return flow;
    mr_graph_push_control_dependencies(graph, &gradients.grad_handle.node, 1);
    mr_output after = mr_identity(graph, flow, .name = "TensorArrayGrad/gradient_flow");
    mr_graph_pop_control_dependencies(graph);
    return after;
}

/* handle, index, flow_in -> value */
static void read_gradient(mr_gradient_call *call)
{
    mr_output flow = gradient_input(call, 2);
    mr_tensor_array_grad_v3_outputs gradients = gradients_of(call, flow);
    flow = flow_behind(call, gradients, flow);
    call->grad_inputs[2] = mr_tensor_array_write_v3(call->graph, gradients.grad_handle, gradient_input(call, 1),
                                                    call->grad_outputs[0], flow);
}

/* handle, index, value, flow_in -> flow_out */
static void write_gradient(mr_gradient_call *call)
{
    mr_output flow = call->grad_outputs[0];
    mr_tensor_array_grad_v3_outputs gradients = gradients_of(call, flow);
    mr_output after = flow_behind(call, gradients, flow);
    call->grad_inputs[2] = mr_tensor_array_read_v3(call->graph, gradients.grad_handle, gradient_input(call, 1), after,
                                                   mr_output_dtype(gradient_input(call, 2)));
    call->grad_inputs[3] = flow;
}

/* handle, indices, flow_in -> value */
static void gather_gradient(mr_gradient_call *call)
{
    mr_output flow = gradient_input(call, 2);
    mr_tensor_array_grad_v3_outputs gradients = gradients_of(call, flow);
    flow = flow_behind(call, gradients, flow);
    call->grad_inputs[2] = mr_tensor_array_scatter_v3(call->graph, gradients.grad_handle, gradient_input(call, 1),
                                                      call->grad_outputs[0], flow);
}

/* handle, indices, value, flow_in -> flow_out */
static void scatter_gradient(mr_gradient_call *call)
{
    mr_output flow = call->grad_outputs[0];
    mr_tensor_array_grad_v3_outputs gradients = gradients_of(call, flow);
    mr_output after = flow_behind(call, gradients, flow);
    call->grad_inputs[2] = mr_tensor_array_gather_v3(call->graph, gradients.grad_handle, gradient_input(call, 1), after,
                                                     mr_output_dtype(gradient_input(call, 2)));
    call->grad_inputs[3] = flow;
}

/* handle, flow_in -> value, lengths */
static void concat_gradient(mr_gradient_call *call)
{
    if (!gradient_is_given(call, 0)) return;
    mr_output flow = gradient_input(call, 1);
    mr_tensor_array_grad_v3_outputs gradients = gradients_of(call, flow);
    flow = flow_behind(call, gradients, flow);
    call->grad_inputs[1] = mr_tensor_array_split_v3(call->graph, gradients.grad_handle, call->grad_outputs[0],
                                                    gradient_output(call, 1), flow);
}

/* handle, value, lengths, flow_in -> flow_out */
static void split_gradient(mr_gradient_call *call)
{
    mr_output flow = call->grad_outputs[0];
    mr_tensor_array_grad_v3_outputs gradients = gradients_of(call, flow);
    mr_output after = flow_behind(call, gradients, flow);
    call->grad_inputs[1] =
        mr_tensor_array_concat_v3(call->graph, gradients.grad_handle, after, mr_output_dtype(gradient_input(call, 1)))
            .value;
    call->grad_inputs[3] = flow;
}

static const mr_gradient gradients[] = {
    {"TensorArrayReadV3", read_gradient},     {"TensorArrayWriteV3", write_gradient},
    {"TensorArrayGatherV3", gather_gradient}, {"TensorArrayScatterV3", scatter_gradient},
    {"TensorArrayConcatV3", concat_gradient}, {"TensorArraySplitV3", split_gradient},
};

const mr_gradient_table mr_gradients_tensor_array = {gradients, sizeof gradients / sizeof gradients[0]};
