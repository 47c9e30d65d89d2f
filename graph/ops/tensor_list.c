/* Lists of tensors: variants with value semantics. What is known of the elements' shape is the shape of the handle. */
#include "graph/ir/op.h"

/* An element shape in input `index`. A scalar is -1, an unknown shape. */
static mr_status element_shape_input(const mr_shape_call *call, int32_t index, mr_shape *shape, mr_error *error)
{
    if (call->constants[index] == nullptr && call->inputs[index].rank == 0) {
        *shape = MR_SHAPE_UNKNOWN;
        return MR_OK;
    }
    return mr_shape_from_input(call, index, shape, error);
}

/* size followed by the dims of `rest` from `first` on. */
static mr_status prepend(int64_t size, mr_shape rest, int32_t first, mr_shape *result, mr_error *error)
{
    *result = MR_SHAPE_UNKNOWN;
    if (rest.rank < 0) return MR_OK;
    if (rest.rank - first >= MR_RANK_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "the result has more than %d dimensions", MR_RANK_MAX);
    mr_shape shape = MR_SHAPE(size);
    for (int32_t i = first; i < rest.rank; i++) shape.dims[shape.rank++] = rest.dims[i];
    *result = shape;
    return MR_OK;
}

static mr_status tail(mr_shape shape, mr_shape *result, mr_error *error)
{
    MR_TRY(mr_shape_at_least(shape, 1, error));
    *result = shape.rank < 0 ? MR_SHAPE_UNKNOWN : (mr_shape){.rank = shape.rank - 1};
    for (int32_t i = 1; i < shape.rank; i++) result->dims[i - 1] = shape.dims[i];
    return MR_OK;
}

/* EmptyTensorList and TensorListReserve. */
static mr_status new_list_shape(mr_shape_call *call, mr_error *error)
{
    call->outputs[0] = MR_SCALAR;
    return element_shape_input(call, 0, &call->output_handles[0], error);
}

/* A changed list has the element shape of input 0. */
static mr_status changed_list_shape(mr_shape_call *call, mr_error *)
{
    call->outputs[0] = MR_SCALAR;
    call->output_handles[0] = call->input_handles[0];
    return MR_OK;
}

static mr_status resize_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    return changed_list_shape(call, error);
}

static mr_status set_item_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape merged;
    MR_TRY(mr_shape_merge(call->inputs[2], call->input_handles[0], &merged, error));
    return changed_list_shape(call, error);
}

static mr_status pop_back_shape(mr_shape_call *call, mr_error *error)
{
    call->outputs[1] = call->input_handles[0];
    return changed_list_shape(call, error);
}

/* The element shape of the list in input 0 and that in input `index`. */
static mr_status common_element_shape(const mr_shape_call *call, int32_t index, mr_shape *shape, mr_error *error)
{
    mr_shape given;
    MR_TRY(element_shape_input(call, index, &given, error));
    return mr_shape_merge(call->input_handles[0], given, shape, error);
}

static mr_status get_item_shape(mr_shape_call *call, mr_error *error)
{
    return common_element_shape(call, 2, &call->outputs[0], error);
}

static mr_status stack_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape element;
    int64_t count = mr_attr_int_or(call->attrs, "num_elements", -1);
    if (count < -1) return mr_fail(error, MR_INVALID_ARGUMENT, "num_elements is %lld", (long long)count);
    MR_TRY(common_element_shape(call, 1, &element, error));
    return prepend(count, element, 0, &call->outputs[0], error);
}

static mr_status gather_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape element, indices = call->inputs[1];
    MR_TRY(common_element_shape(call, 2, &element, error));
    if (indices.rank != 1) return MR_OK;
    return prepend(indices.dims[0], element, 0, &call->outputs[0], error);
}

static mr_status concat_shapes(mr_shape_call *call, mr_shape given, mr_error *error)
{
    mr_shape element;
    MR_TRY(mr_shape_merge(given, call->input_handles[0], &element, error));
    MR_TRY(mr_shape_at_least(element, 1, error));
    call->outputs[1] = MR_SHAPE(-1);
    return prepend(-1, element, 1, &call->outputs[0], error);
}

static mr_status concat_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape given;
    MR_TRY(mr_attr_get_shape(call->attrs, "element_shape", &given, error));
    return concat_shapes(call, given, error);
}

static mr_status concat_v2_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape given;
    MR_TRY(element_shape_input(call, 1, &given, error));
    return concat_shapes(call, given, error);
}

static mr_status split_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape part, merged;
    MR_TRY(mr_shape_at_least(call->inputs[0], 1, error));
    MR_TRY(mr_shape_expect_rank(call, 2, 1, error));
    MR_TRY(prepend(-1, call->inputs[0], 1, &part, error));
    call->outputs[0] = MR_SCALAR;
    MR_TRY(element_shape_input(call, 1, &call->output_handles[0], error));
    return mr_shape_merge(part, call->output_handles[0], &merged, error);
}

static mr_status from_tensor_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape row, merged;
    MR_TRY(tail(call->inputs[0], &row, error));
    call->outputs[0] = MR_SCALAR;
    MR_TRY(element_shape_input(call, 1, &call->output_handles[0], error));
    return mr_shape_merge(row, call->output_handles[0], &merged, error);
}

static mr_status scatter_shape(mr_shape_call *call, mr_error *error)
{
    call->outputs[0] = MR_SCALAR;
    return element_shape_input(call, 2, &call->output_handles[0], error);
}

static mr_status scatter_into_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_at_least(call->inputs[1], 1, error));
    MR_TRY(mr_shape_expect_rank(call, 2, 1, error));
    return changed_list_shape(call, error);
}

static mr_status concat_lists_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_merge(call->inputs[0], call->inputs[1], &call->outputs[0], error));
    return mr_shape_merge(call->input_handles[0], call->input_handles[1], &call->output_handles[0], error);
}

/* The scalar -1 for an unknown shape. */
static mr_status element_shape_shape(mr_shape_call *call, mr_error *)
{
    int32_t rank = call->input_handles[0].rank;
    if (rank >= 0) call->outputs[0] = MR_SHAPE(rank);
    return MR_OK;
}

static const mr_op tensor_list_ops[] = {
    {.name = "EmptyTensorList",
     .signature = "element_shape: shape_type, max_num_elements: int32 -> handle: variant",
     .attrs = "element_dtype: type; shape_type: {int32, int64}",
     .shape = new_list_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns an empty list for at most max_num_elements tensors, or for any number if that is -1."},
    {.name = "TensorListReserve",
     .signature = "element_shape: shape_type, num_elements: int32 -> handle: variant",
     .attrs = "element_dtype: type; shape_type: {int32, int64}",
     .shape = new_list_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns a list of num_elements tensors that are not set."},
    {.name = "TensorListPushBack",
     .signature = "input_handle: variant, tensor: element_dtype -> output_handle: variant",
     .attrs = "element_dtype: type",
     .shape = changed_list_shape,
     .doc = "Returns the list with tensor as an additional last element."},
    {.name = "TensorListPopBack",
     .signature = "input_handle: variant, element_shape: int32 -> output_handle: variant, tensor: element_dtype",
     .attrs = "element_dtype: type",
     .shape = pop_back_shape,
     .doc = "Returns the list without its last element, and that element."},
    {.name = "TensorListLength",
     .signature = "input_handle: variant -> length: int32",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the number of elements of the list."},
    {.name = "TensorListResize",
     .signature = "input_handle: variant, size: int32 -> output_handle: variant",
     .shape = resize_shape,
     .doc = "Returns the list with size elements; additional ones are not set."},
    {.name = "TensorListGetItem",
     .signature = "input_handle: variant, index: int32, element_shape: int32 -> item: element_dtype",
     .attrs = "element_dtype: type",
     .shape = get_item_shape,
     .doc = "Returns element index of the list; zeros if it is not set."},
    {.name = "TensorListSetItem",
     .signature = "input_handle: variant, index: int32, item: element_dtype -> output_handle: variant",
     .attrs = "element_dtype: type; resize_if_index_out_of_bounds: bool = false",
     .shape = set_item_shape,
     .doc = "Returns the list with item as element index."},
    {.name = "TensorListStack",
     .signature = "input_handle: variant, element_shape: int32 -> tensor: element_dtype",
     .attrs = "element_dtype: type; num_elements: int = -1",
     .shape = stack_shape,
     .doc = "Stacks the elements of the list."},
    {.name = "TensorListGather",
     .signature = "input_handle: variant, indices: int32, element_shape: int32 -> values: element_dtype",
     .attrs = "element_dtype: type",
     .shape = gather_shape,
     .doc = "Stacks the elements of the list at indices."},
    {.name = "TensorListScatter",
     .signature = "tensor: element_dtype, indices: int32, element_shape: shape_type -> output_handle: variant",
     .attrs = "element_dtype: type; shape_type: {int32, int64}",
     .shape = scatter_shape,
     .doc = "Returns a list with the rows of tensor as the elements at indices."},
    {.name = "TensorListScatterV2",
     .signature = "tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32 -> "
                  "output_handle: variant",
     .attrs = "element_dtype: type; shape_type: {int32, int64}",
     .shape = scatter_shape,
     .doc = "Returns a list of num_elements elements, or as few as possible if that is -1, with the rows of tensor as "
            "those at indices."},
    {.name = "TensorListScatterIntoExistingList",
     .signature = "input_handle: variant, tensor: element_dtype, indices: int32 -> output_handle: variant",
     .attrs = "element_dtype: type",
     .shape = scatter_into_shape,
     .doc = "Returns the list with the rows of tensor as the elements at indices."},
    {.name = "TensorListFromTensor",
     .signature = "tensor: element_dtype, element_shape: shape_type -> output_handle: variant",
     .attrs = "element_dtype: type; shape_type: {int32, int64}",
     .shape = from_tensor_shape,
     .doc = "Returns a list with the rows of tensor."},
    {.name = "TensorListConcat",
     .signature = "input_handle: variant -> tensor: element_dtype, lengths: int64",
     .attrs = "element_dtype: type; element_shape: shape = unknown",
     .shape = concat_shape,
     .doc = "Concatenates the elements of the list along dimension 0, and returns their lengths."},
    {.name = "TensorListConcatV2",
     .signature = "input_handle: variant, element_shape: shape_type, leading_dims: int64 -> tensor: element_dtype, "
                  "lengths: int64",
     .attrs = "element_dtype: type; shape_type: {int32, int64}",
     .shape = concat_v2_shape,
     .doc = "Concatenates the elements of the list along dimension 0, with zeros of leading_dims rows for elements "
            "that are not set, and returns their lengths."},
    {.name = "TensorListSplit",
     .signature = "tensor: element_dtype, element_shape: shape_type, lengths: int64 -> output_handle: variant",
     .attrs = "element_dtype: type; shape_type: {int32, int64}",
     .shape = split_shape,
     .doc = "Returns a list of the parts of tensor, of the given lengths along dimension 0."},
    {.name = "TensorListConcatLists",
     .signature = "input_a: variant, input_b: variant -> output: variant",
     .attrs = "element_dtype: type",
     .shape = concat_lists_shape,
     .doc = "Returns a list with the elements of input_a followed by those of input_b."},
    {.name = "TensorListElementShape",
     .signature = "input_handle: variant -> element_shape: shape_type",
     .attrs = "shape_type: {int32, int64}",
     .shape = element_shape_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the shape that all elements of the list have, as far as it is known."},
};

const mr_op_table mr_ops_tensor_list = {tensor_list_ops, sizeof tensor_list_ops / sizeof tensor_list_ops[0]};
