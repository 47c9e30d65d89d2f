/* Arrays of tensors, whose elements are written once, in any order. The flow tensors have no meaning: they are edges
 * that order the operations on an array. */
#include "graph/ir/op.h"

/* prefix followed by suffix; of unknown rank if one of them is. */
static mr_status concatenate(mr_shape prefix, mr_shape suffix, mr_shape *result, mr_error *error)
{
    *result = MR_SHAPE_UNKNOWN;
    if (prefix.rank < 0 || suffix.rank < 0) return MR_OK;
    if (prefix.rank + suffix.rank > MR_RANK_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "the result has more than %d dimensions", MR_RANK_MAX);
    for (int32_t i = 0; i < suffix.rank; i++) prefix.dims[prefix.rank++] = suffix.dims[i];
    *result = prefix;
    return MR_OK;
}

/* The shape of the elements is known statically if it is fully known, or if all elements have the same one. */
static mr_status array_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape element;
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    MR_TRY(mr_attr_get_shape(call->attrs, "element_shape", &element, error));
    bool is_common = mr_attr_bool_or(call->attrs, "identical_element_shapes", false);
    if (mr_shape_count(element) >= 0 || is_common) call->output_handles[0] = element;
    call->outputs[0] = MR_SHAPE(2);
    call->outputs[1] = MR_SCALAR;
    return MR_OK;
}

static mr_status grad_shape(mr_shape_call *call, mr_error *)
{
    call->outputs[0] = MR_SHAPE(2);
    call->outputs[1] = MR_SCALAR;
    call->output_handles[0] = call->input_handles[0];
    return MR_OK;
}

static mr_status grad_with_shape_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape prefix = call->inputs[2];
    MR_TRY(grad_shape(call, error));
    MR_TRY(mr_shape_expect_rank(call, 2, 1, error));
    call->output_handles[0] = MR_SHAPE_UNKNOWN;
    if (prefix.rank != 1 || prefix.dims[0] < 0) return MR_OK;
    if (prefix.dims[0] > MR_RANK_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "the elements have more than %d dimensions", MR_RANK_MAX);
    mr_shape unknown = MR_SHAPE_UNKNOWN;
    MR_TRY(mr_shape_with_rank(MR_SHAPE_UNKNOWN, (int32_t)prefix.dims[0], &unknown, error));
    return concatenate(unknown, call->input_handles[0], &call->output_handles[0], error);
}

static mr_status write_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape merged;
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    MR_TRY(mr_shape_expect_rank(call, 3, 0, error));
    MR_TRY(mr_shape_merge(call->input_handles[0], call->inputs[2], &merged, error));
    return mr_shape_scalar(call, error);
}

static mr_status read_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    MR_TRY(mr_shape_expect_rank(call, 2, 0, error));
    call->outputs[0] = call->input_handles[0];
    return MR_OK;
}

static mr_status gather_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape element = call->input_handles[0], indices;
    MR_TRY(mr_shape_with_rank(call->inputs[1], 1, &indices, error));
    MR_TRY(mr_shape_expect_rank(call, 2, 0, error));
    if (element.rank < 0) MR_TRY(mr_attr_get_shape(call->attrs, "element_shape", &element, error));
    return concatenate(indices, element, &call->outputs[0], error);
}

static mr_status scatter_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape element = call->input_handles[0], indices, value = call->inputs[2], merged;
    MR_TRY(mr_shape_with_rank(call->inputs[1], 1, &indices, error));
    MR_TRY(mr_shape_expect_rank(call, 3, 0, error));
    MR_TRY(mr_shape_at_least(value, 1, error));
    if (value.rank > 0) MR_TRY(mr_size_merge(value.dims[0], indices.dims[0], &value.dims[0], error));
    MR_TRY(concatenate(indices, element, &element, error));
    if (element.rank >= 0) MR_TRY(mr_shape_merge(element, value, &merged, error));
    return mr_shape_scalar(call, error);
}

static mr_status concat_shape(mr_shape_call *call, mr_error *error)
{
    call->outputs[1] = MR_SHAPE(-1);
    return mr_shape_expect_rank(call, 1, 0, error);
}

static mr_status split_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 2, 1, error));
    MR_TRY(mr_shape_expect_rank(call, 3, 0, error));
    return mr_shape_scalar(call, error);
}

/* A name is two strings. */
static mr_status name_shape(mr_shape_call *call, mr_error *)
{
    call->outputs[0] = MR_SHAPE(2);
    return MR_OK;
}

static const mr_op tensor_array_ops[] = {
    {.name = "TensorArrayV3",
     .signature = "size: int32 -> handle: resource, flow: float",
     .attrs = "dtype: type; element_shape: shape = unknown; dynamic_size: bool = false; clear_after_read: bool = true; "
              "identical_element_shapes: bool = false; tensor_array_name: string = ''",
     .shape = array_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Creates an array of size tensors and returns its handle and a flow tensor."},
    {.name = "TensorArrayGradV3",
     .signature = "handle: resource, flow_in: float -> grad_handle: resource, flow_out: float",
     .attrs = "source: string",
     .shape = grad_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the array of the gradients of an array's elements, one for each source."},
    {.name = "TensorArrayGradWithShape",
     .signature = "handle: resource, flow_in: float, shape_to_prepend: int32 -> grad_handle: resource, flow_out: float",
     .attrs = "source: string",
     .shape = grad_with_shape_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Like TensorArrayGradV3, but the gradients have the dimensions shape_to_prepend before those of the "
            "elements."},
    {.name = "TensorArrayWriteV3",
     .signature = "handle: resource, index: int32, value: T, flow_in: float -> flow_out: float",
     .attrs = "T: type",
     .shape = write_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Writes value to element index of the array."},
    {.name = "TensorArrayReadV3",
     .signature = "handle: resource, index: int32, flow_in: float -> value: dtype",
     .attrs = "dtype: type",
     .shape = read_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns element index of the array."},
    {.name = "TensorArrayGatherV3",
     .signature = "handle: resource, indices: int32, flow_in: float -> value: dtype",
     .attrs = "dtype: type; element_shape: shape = unknown",
     .shape = gather_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Stacks the elements of the array at indices."},
    {.name = "TensorArrayScatterV3",
     .signature = "handle: resource, indices: int32, value: T, flow_in: float -> flow_out: float",
     .attrs = "T: type",
     .shape = scatter_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Writes the rows of value to the elements at indices."},
    {.name = "TensorArrayConcatV3",
     .signature = "handle: resource, flow_in: float -> value: dtype, lengths: int64",
     .attrs = "dtype: type; element_shape_except0: shape = unknown",
     .shape = concat_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Concatenates the elements of the array along dimension 0, and returns their lengths."},
    {.name = "TensorArraySplitV3",
     .signature = "handle: resource, value: T, lengths: int64, flow_in: float -> flow_out: float",
     .attrs = "T: type",
     .shape = split_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Splits value along dimension 0 into parts of the given lengths, and writes them to the array."},
    {.name = "TensorArraySizeV3",
     .signature = "handle: resource, flow_in: float -> size: int32",
     .shape = mr_shape_scalar,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the number of elements of the array."},
    {.name = "TensorArrayCloseV3",
     .signature = "handle: resource ->",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Releases the elements of the array, which cannot be used afterwards."},
    {.name = "TensorArray",
     .signature = "size: int32 -> handle: Ref(string)",
     .attrs = "dtype: type; dynamic_size: bool = false; clear_after_read: bool = true; tensor_array_name: string = ''; "
              "element_shape: shape = unknown",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_tensor_array_op",
     .doc = "Creates an array of size tensors; used by old graphs."},
    {.name = "TensorArrayWrite",
     .signature = "handle: Ref(string), index: int32, value: T, flow_in: float -> flow_out: float",
     .attrs = "T: type",
     .shape = mr_shape_unknown,
     .doc = "Writes value to element index of the array; used by old graphs."},
    {.name = "TensorArrayRead",
     .signature = "handle: Ref(string), index: int32, flow_in: float -> value: dtype",
     .attrs = "dtype: type",
     .shape = mr_shape_unknown,
     .doc = "Returns element index of the array; used by old graphs."},
    {.name = "TensorArrayGather",
     .signature = "handle: Ref(string), indices: int32, flow_in: float -> value: dtype",
     .attrs = "dtype: type; element_shape: shape = unknown",
     .shape = mr_shape_unknown,
     .doc = "Stacks the elements of the array at indices; used by old graphs."},
    {.name = "TensorArrayScatter",
     .signature = "handle: Ref(string), indices: int32, value: T, flow_in: float -> flow_out: float",
     .attrs = "T: type",
     .shape = mr_shape_unknown,
     .doc = "Writes the rows of value to the elements at indices; used by old graphs."},
    {.name = "TensorArrayConcat",
     .signature = "handle: Ref(string), flow_in: float -> value: dtype, lengths: int64",
     .attrs = "dtype: type; element_shape_except0: shape = unknown",
     .shape = mr_shape_unknown,
     .doc = "Concatenates the elements of the array along dimension 0; used by old graphs."},
    {.name = "TensorArraySplit",
     .signature = "handle: Ref(string), value: T, lengths: int64, flow_in: float -> flow_out: float",
     .attrs = "T: type",
     .shape = mr_shape_unknown,
     .doc = "Splits value along dimension 0 and writes the parts to the array; used by old graphs."},
    {.name = "TensorArraySize",
     .signature = "handle: Ref(string), flow_in: float -> size: int32",
     .shape = mr_shape_unknown,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the number of elements of the array; used by old graphs."},
    {.name = "TensorArrayClose",
     .signature = "handle: Ref(string) ->",
     .shape = mr_shape_unknown,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Releases the elements of the array; used by old graphs."},
    {.name = "TensorArrayPack",
     .signature = "handle: Ref(string), flow_in: float -> value: dtype",
     .attrs = "dtype: type; element_shape: shape = unknown",
     .shape = mr_shape_unknown,
     .doc = "Stacks all elements of the array; used by old graphs."},
    {.name = "TensorArrayUnpack",
     .signature = "handle: Ref(string), value: T, flow_in: float -> flow_out: float",
     .attrs = "T: type",
     .shape = mr_shape_unknown,
     .doc = "Writes the rows of value to the elements of the array; used by old graphs."},
    {.name = "TensorArrayV2",
     .signature = "size: int32 -> handle: string",
     .attrs = "dtype: type; element_shape: shape = unknown; dynamic_size: bool = false; clear_after_read: bool = true; "
              "tensor_array_name: string = ''",
     .shape = name_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_tensor_array_v2_op",
     .doc = "Creates an array of size tensors, which exists until the run ends, and returns its name."},
    {.name = "TensorArrayGrad",
     .signature = "handle: string, flow_in: float -> grad_handle: Ref(string)",
     .attrs = "source: string",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the array of the gradients of an array's elements; used by old graphs."},
    {.name = "TensorArrayGradV2",
     .signature = "handle: string, flow_in: float -> grad_handle: string",
     .attrs = "source: string",
     .shape = name_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the name of the array of the gradients of an array's elements."},
    {.name = "TensorArrayWriteV2",
     .signature = "handle: string, index: int32, value: T, flow_in: float -> flow_out: float",
     .attrs = "T: type",
     .shape = mr_shape_scalar,
     .doc = "Writes value to element index of the array with that name."},
    {.name = "TensorArrayReadV2",
     .signature = "handle: string, index: int32, flow_in: float -> value: dtype",
     .attrs = "dtype: type",
     .shape = mr_shape_unknown,
     .doc = "Returns element index of the array with that name."},
    {.name = "TensorArrayGatherV2",
     .signature = "handle: string, indices: int32, flow_in: float -> value: dtype",
     .attrs = "dtype: type; element_shape: shape = unknown",
     .shape = mr_shape_unknown,
     .doc = "Stacks the elements at indices of the array with that name."},
    {.name = "TensorArrayScatterV2",
     .signature = "handle: string, indices: int32, value: T, flow_in: float -> flow_out: float",
     .attrs = "T: type",
     .shape = mr_shape_scalar,
     .doc = "Writes the rows of value to the elements at indices."},
    {.name = "TensorArrayConcatV2",
     .signature = "handle: string, flow_in: float -> value: dtype, lengths: int64",
     .attrs = "dtype: type; element_shape_except0: shape = unknown",
     .shape = mr_shape_unknown,
     .doc = "Concatenates the elements of the array with that name along dimension 0."},
    {.name = "TensorArraySplitV2",
     .signature = "handle: string, value: T, lengths: int64, flow_in: float -> flow_out: float",
     .attrs = "T: type",
     .shape = mr_shape_scalar,
     .doc = "Splits value along dimension 0 and writes the parts to the array with that name."},
    {.name = "TensorArraySizeV2",
     .signature = "handle: string, flow_in: float -> size: int32",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the number of elements of the array with that name."},
    {.name = "TensorArrayCloseV2",
     .signature = "handle: string ->",
     .shape = mr_shape_unknown,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Releases the elements of the array with that name."},
};

const mr_op_table mr_ops_tensor_array = {tensor_array_ops, sizeof tensor_array_ops / sizeof tensor_array_ops[0]};
