/* Gradients of selecting elements by index: rows that are selected several times get the sum. Those of Gather are
 * sparse (sparse_rows.h). */
#include "graph/ir/graph.h"
#include "graph/ir/sparse_rows.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

static mr_output vector(mr_gradient_call *call, mr_output value)
{
    return mr_reshape(call->graph, value, mr_constant_ints(call->graph, MR_INTS(-1)));
}

/* values[begin, begin + count) of a vector; count -1: to its end. */
static mr_output part(mr_gradient_call *call, mr_output values, int32_t begin, int32_t count)
{
    mr_graph *g = call->graph;
    return mr_slice(g, values, mr_constant_ints(g, MR_INTS(begin)), mr_constant_ints(g, MR_INTS(count)));
}

static mr_output scalar_part(mr_gradient_call *call, mr_output values, int32_t at)
{
    return mr_reshape(call->graph, part(call, values, at, 1),
                      mr_constant_int32s(call->graph, MR_SHAPE(0), nullptr, nullptr));
}

/* Sums the rows of values [count, …] into `rows` rows. */
static mr_output scatter_rows(mr_gradient_call *call, mr_output values, mr_output indices, mr_output rows)
{
    return mr_unsorted_segment_sum(call->graph, values, indices, rows);
}

/* Along dimension 0 of params, whose shape is given: the other dimensions are unchanged. */
static mr_output gather_first(mr_gradient_call *call, mr_output shape, mr_output indices)
{
    mr_graph *g = call->graph;
    mr_output minus = mr_constant_ints(g, MR_INTS(-1)), axis = mr_constant_int32(g, 0);
    mr_output flat_shape = mr_concat_v2(g, MR_OUTPUTS(minus, part(call, shape, 1, -1)), axis);
    mr_output values = mr_reshape(g, call->grad_outputs[0], flat_shape), rows = vector(call, indices);
    mr_output count = scalar_part(call, shape, 0), dense = scatter_rows(call, values, rows, count);
    mr_graph_note_rows(g, (mr_sparse_rows){dense, values, rows, count});
    return dense;
}

/* Along dimension axis: params is reshaped to [outer, n, inner], its first two dimensions are exchanged, and the
 * gradient is computed along the first. */
static mr_output gather_inner(mr_gradient_call *call, mr_output params, mr_output indices, int32_t axis)
{
    mr_graph *g = call->graph;
    mr_output shape = mr_gradient_shape(call, params), zero = mr_constant_ints(g, MR_INTS(0));
    mr_output outer = mr_prod(g, part(call, shape, 0, axis), zero, .keep_dims = true);
    mr_output inner = mr_prod(g, part(call, shape, axis + 1, -1), zero, .keep_dims = true);
    mr_output count = mr_reshape(g, mr_size(g, indices), mr_constant_ints(g, MR_INTS(1)));
    mr_output cube = mr_concat_v2(g, MR_OUTPUTS(outer, count, inner), mr_constant_int32(g, 0));
    mr_output swap = mr_constant_ints(g, MR_INTS(1, 0, 2));
    mr_output values = mr_transpose(g, mr_reshape(g, call->grad_outputs[0], cube), swap);
    mr_output rows = scatter_rows(call, values, vector(call, indices), scalar_part(call, shape, axis));
    return mr_reshape(g, mr_transpose(g, rows, swap), shape);
}

static void gather_gradient(mr_gradient_call *call)
{
    const mr_output shape = mr_gradient_shape(call, gradient_input(call, 0));
    call->grad_inputs[0] = gather_first(call, shape, gradient_input(call, 1));
}

/* The gradient of the variable's value, as that of ReadVariableOp. */
static void resource_gather_gradient(mr_gradient_call *call)
{
    if (mr_attr_int_or(&call->node->attrs, "batch_dims", 0) != 0) {
        mr_gradient_fail(call, "batch_dims other than 0 is not supported yet");
        return;
    }
    const mr_output shape = mr_variable_shape(call->graph, gradient_input(call, 0));
    call->grad_inputs[0] = gather_first(call, shape, gradient_input(call, 1));
}

static void resource_gather_nd_gradient(mr_gradient_call *call)
{
    const mr_output indices = gradient_input(call, 1);
    const mr_output shape =
        mr_variable_shape(call->graph, gradient_input(call, 0), .out_type = mr_output_dtype(indices));
    call->grad_inputs[0] = mr_scatter_nd(call->graph, indices, call->grad_outputs[0], shape);
}

static void gather_v2_gradient(mr_gradient_call *call)
{
    mr_output params = gradient_input(call, 0), indices = gradient_input(call, 1);
    int32_t axes[MR_RANK_MAX], count;
    if (mr_attr_int_or(&call->node->attrs, "batch_dims", 0) != 0) {
        mr_gradient_fail(call, "batch_dims other than 0 is not supported yet");
        return;
    }
    int32_t rank = mr_output_shape(params).rank;
    mr_tensor constant = {0};
    bool first =
        mr_output_constant(gradient_input(call, 2), &constant) &&
        (constant.dtype == MR_INT32 ? mr_tensor_int32s(&constant)[0] == 0 : mr_tensor_int64s(&constant)[0] == 0);
    mr_tensor_deinit(&constant);
    if (first)
        call->grad_inputs[0] = gather_first(call, mr_gradient_shape(call, params), indices);
    else if (mr_gradient_axes(gradient_input(call, 2), rank, axes, &count) && count == 1)
        call->grad_inputs[0] = gather_inner(call, params, indices, axes[0]);
    else
        mr_gradient_fail(call, "axis and rank must be known while the graph is built");
}

static void gather_nd_gradient(mr_gradient_call *call)
{
    mr_output params = gradient_input(call, 0), indices = gradient_input(call, 1);
    mr_output shape = mr_shape_of(call->graph, params, .out_type = mr_output_dtype(indices));
    call->grad_inputs[0] = mr_scatter_nd(call->graph, indices, call->grad_outputs[0], shape);
}

static void scatter_nd_gradient(mr_gradient_call *call)
{
    call->grad_inputs[1] = mr_gather_nd(call->graph, call->grad_outputs[0], gradient_input(call, 0));
}

/* Indices in rows become indices in the flat input: row * width + index. */
static void top_kv2_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output input = gradient_input(call, 0), indices = gradient_output(call, 1);
    int32_t rank = mr_output_shape(input).rank;
    if (rank < 1 || !gradient_is_given(call, 0)) {
        if (rank < 1) mr_gradient_fail(call, "the rank must be known while the graph is built");
        return;
    }
    mr_output zero = mr_constant_int32(g, 0), shape = mr_gradient_shape(call, input);
    mr_output width = scalar_part(call, shape, rank - 1), size = mr_size(g, input);
    mr_output k = part(call, mr_gradient_shape(call, indices), rank - 1, 1);
    mr_output table_shape = mr_concat_v2(g, MR_OUTPUTS(mr_constant_ints(g, MR_INTS(-1)), k), zero);
    mr_output table = mr_reshape(g, mr_cast(g, indices, MR_INT32), table_shape);
    mr_output starts = mr_expand_dims(g, mr_range(g, zero, size, width), mr_constant_int32(g, -1));
    mr_output flat = vector(call, mr_add_v2(g, table, starts));
    mr_output places = mr_expand_dims(g, flat, mr_constant_int32(g, -1));
    mr_output values = vector(call, call->grad_outputs[0]);
    mr_output sizes = mr_reshape(g, size, mr_constant_ints(g, MR_INTS(1)));
    call->grad_inputs[0] = mr_reshape(g, mr_scatter_nd(g, places, values, sizes), shape);
}

static const mr_gradient gradients[] = {
    {"GatherV2", gather_v2_gradient},
    {"Gather", gather_gradient},
    {"GatherNd", gather_nd_gradient},
    {"ScatterNd", scatter_nd_gradient},
    {"TopKV2", top_kv2_gradient},
    {"ResourceGather", resource_gather_gradient},
    {"ResourceGatherNd", resource_gather_nd_gradient},
};

const mr_gradient_table mr_gradients_gather = {gradients, sizeof gradients / sizeof gradients[0]};
