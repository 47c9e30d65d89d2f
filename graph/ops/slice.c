/* IDEA */
#include "graph/ir/op.h"
#include "graph/ops/gradients.h"

static mr_status slice_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status strided_slice_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static mr_status strided_slice_grad_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_unknown(call, error);
}

static const mr_op slice_ops[] = {
    {.name = "Slice",
     .signature = "input: T, begin: Index, size: Index -> output: T",
     .attrs = "T: type; Index: {int32, int64}",
     .shape = slice_shape,
     .gradient = MR_GRADIENT(mr_slice_gradient),
     .doc = "The block of input that begins at begin and has size; -1 takes what is left."},
    {.name = "StridedSlice",
     .signature = "input: T, begin: Index, end: Index, strides: Index -> output: T",
     .attrs = "T: type; Index: {int16, int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; "
              "new_axis_mask: int = 0; shrink_axis_mask: int = 0",
     .shape = strided_slice_shape,
     .gradient = MR_GRADIENT(mr_strided_slice_gradient),
     .doc = "input[begin:end:strides] as Python writes it, the masks standing for what is left out."},
    {.name = "StridedSliceGrad",
     .signature = "shape: Index, begin: Index, end: Index, strides: Index, dy: T -> output: T",
     .attrs = "T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; "
              "new_axis_mask: int = 0; shrink_axis_mask: int = 0",
     .shape = strided_slice_grad_shape,
     .gradient = MR_GRADIENT(mr_strided_slice_grad_gradient),
     .doc = "dy at the places that StridedSlice took from a tensor of that shape, zeros elsewhere."},
};

const mr_op_table mr_op_table_slice = {slice_ops, sizeof slice_ops / sizeof slice_ops[0]};
