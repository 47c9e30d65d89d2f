/* Gradients of concatenating and splitting: each is the other. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

#include <stdlib.h>

/* Sets the gradients of inputs first to first + count - 1, which the node concatenated along axis. */
static void part(mr_gradient_call *call, int32_t first, int32_t count, mr_output axis)
{
    mr_graph *g = call->graph;
    mr_output grad = call->grad_outputs[0];
    mr_output *shapes = calloc((size_t)count * 2, sizeof *shapes);
    if (shapes == nullptr) {
        (void)mr_graph_fail(g, MR_RESOURCE_EXHAUSTED, "gradients: no memory");
        return;
    }
    for (int32_t i = 0; i < count; i++) shapes[i] = mr_gradient_shape(call, gradient_input(call, first + i));
    mr_tensor constant = {0};
    int32_t rank = mr_output_shape(grad).rank;
    if (mr_output_constant(axis, &constant)) {
        int64_t at = constant.dtype == MR_INT64 ? mr_tensor_int64s(&constant)[0] : mr_tensor_int32s(&constant)[0];
        mr_tensor_deinit(&constant);
        if (at < 0 && rank > 0) at += rank;
        axis = mr_constant_int32(g, (int32_t)at);
    } else {
        axis = mr_cast(g, axis, MR_INT32);
        axis = mr_floor_mod(g, axis, mr_rank(g, grad));
    }
    mr_output_range offsets = mr_concat_offset(g, axis, ((mr_outputs){shapes, count}));
    for (int32_t i = 0; i < count; i++)
        call->grad_inputs[first + i] = mr_slice(g, grad, mr_output_at(offsets, i), shapes[i]);
    free(shapes);
}

static void concat_gradient(mr_gradient_call *call)
{
    part(call, 1, mr_node_input_count(call->node) - 1, gradient_input(call, 0));
}

static void concat_v2_gradient(mr_gradient_call *call)
{
    int32_t count = mr_node_input_count(call->node) - 1;
    part(call, 0, count, gradient_input(call, count));
}

static void pack_gradient(mr_gradient_call *call)
{
    int32_t count = mr_node_input_count(call->node);
    mr_output_range parts = mr_unpack(call->graph, call->grad_outputs[0], .num = count,
                                      .axis = mr_attr_int_or(&call->node->attrs, "axis", 0));
    for (int32_t i = 0; i < count; i++) call->grad_inputs[i] = mr_output_at(parts, i);
}

/* The gradients of all outputs, zeros where there is none. The caller must free the array. */
static mr_output *all_gradients(mr_gradient_call *call)
{
    int32_t count = mr_node_output_count(call->node);
    mr_output *grads = calloc((size_t)count, sizeof *grads);
    if (grads == nullptr)
        (void)mr_graph_fail(call->graph, MR_RESOURCE_EXHAUSTED, "gradients: no memory");
    else
        for (int32_t i = 0; i < count; i++) grads[i] = mr_gradient_or_zeros(call, i);
    return grads;
}

static void unpack_gradient(mr_gradient_call *call)
{
    mr_output *grads = all_gradients(call);
    if (grads == nullptr) return;
    mr_outputs list = {grads, mr_node_output_count(call->node)};
    call->grad_inputs[0] = mr_pack(call->graph, list, .axis = mr_attr_int_or(&call->node->attrs, "axis", 0));
    free(grads);
}

static void join(mr_gradient_call *call, int32_t input, mr_output axis)
{
    mr_output *grads = all_gradients(call);
    if (grads == nullptr) return;
    mr_outputs list = {grads, mr_node_output_count(call->node)};
    call->grad_inputs[input] = list.count == 1 ? grads[0] : mr_concat_v2(call->graph, list, axis);
    free(grads);
}

static void split_gradient(mr_gradient_call *call)
{
    join(call, 1, gradient_input(call, 0));
}

static void split_v_gradient(mr_gradient_call *call)
{
    join(call, 0, gradient_input(call, 2));
}

static const mr_gradient gradients[] = {
    {"ConcatV2", concat_v2_gradient}, {"Concat", concat_gradient}, {"Pack", pack_gradient},
    {"Unpack", unpack_gradient},      {"Split", split_gradient},   {"SplitV", split_v_gradient},
};

const mr_gradient_table mr_gradients_concat = {gradients, sizeof gradients / sizeof gradients[0]};
