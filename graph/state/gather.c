/* ResourceGather and ResourceGatherNd: the kernels of GatherV2 and GatherNd, on the value of a variable. */
#include "graph/state/state.h"

static mr_status gather_value(mr_kernel_call *call, const char *op, mr_tensor axis, mr_error *error)
{
    mr_resource *resource;
    mr_tensor inputs[3] = {{0}, call->inputs[1], axis};
    const mr_kernel *kernel = mr_kernel_find(op, MR_DEVICE_CPU, call->node->attrs);
    if (!kernel) return mr_kernel_unsupported(call->node, error);
    MR_TRY(mr_handle_get(call, 0, &mr_variable_class, &resource, error));
    MR_TRY(mr_variable_read((mr_variable_state *)resource, MR_VARIABLE_CHANGE, &inputs[0], error));
    mr_dtype dtypes[3] = {inputs[0].dtype, inputs[1].dtype, MR_INT32};
    mr_kernel_node node = *call->node;
    node.input_count = 3;
    node.input_dtypes = dtypes;
    const bool may_reuse[3] = {false};
    mr_kernel_call inner = *call;
    inner.node = &node;
    inner.inputs = inputs;
    inner.may_reuse = may_reuse;
    mr_status status = MR_OK;
    if (inputs[0].dtype != node.output_dtypes[0])
        status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the variable is a %s, but a %s was requested",
                                mr_dtype_name(inputs[0].dtype), mr_dtype_name(node.output_dtypes[0]));
    else if (inputs[0].shape.rank < 1)
        status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "params must be at least 1 dimensional");
    else
        status = kernel->run(&inner, error);
    mr_tensor_deinit(&inputs[0]);
    return status;
}

static mr_status resource_gather(mr_kernel_call *call, mr_error *error)
{
    int64_t batch_dims = mr_attr_int_or(call->node->attrs, "batch_dims", 0);
    if (batch_dims < 0) batch_dims += call->inputs[1].shape.rank;
    int32_t axis = batch_dims < 0 || batch_dims > MR_RANK_MAX ? MR_RANK_MAX : (int32_t)batch_dims;
    return gather_value(call, "GatherV2", (mr_tensor){.dtype = MR_INT32, .shape = MR_SCALAR, .data = &axis}, error);
}

static mr_status resource_gather_nd(mr_kernel_call *call, mr_error *error)
{
    return gather_value(call, "GatherNd", (mr_tensor){0}, error);
}

static const mr_kernel kernels[] = {
    {.op = "ResourceGather", .run = resource_gather},
    {.op = "ResourceGatherNd", .run = resource_gather_nd},
};
const mr_kernel_table mr_state_kernels_gather = {kernels, sizeof kernels / sizeof kernels[0]};
