/* Pooling of regions whose sizes are drawn at random, so that the ratio of sizes need not be an integer. */
#include "graph/ir/op.h"

#include <math.h>

static mr_status fractional_pool_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input;
    const mr_attr *ratio = mr_attrs_find(call->attrs, "pooling_ratio");
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &input, error));
    if (ratio == nullptr || ratio->kind != MR_ATTR_FLOAT || ratio->count != 4)
        return mr_fail(error, MR_INVALID_ARGUMENT, "pooling_ratio field must specify 4 dimensions");
    for (int32_t i = 0; i < 4; i++) {
        if (!(ratio->values[i].number >= 1))
            return mr_fail(error, MR_INVALID_ARGUMENT, "pooling_ratio cannot be smaller than 1, got: %g",
                           (double)ratio->values[i].number);
        if (input.dims[i] < 0) continue;
        double size = floor((double)((float)input.dims[i] / ratio->values[i].number));
        if (!(size >= 0 && size < 0x1p62))
            return mr_fail(error, MR_INVALID_ARGUMENT, "dimension %d becomes too large", i);
        input.dims[i] = (int64_t)size;
    }
    call->outputs[0] = input;
    for (int32_t i = 1; i < 3; i++) call->outputs[i] = MR_SHAPE(input.dims[i] < 0 ? -1 : input.dims[i] + 1);
    return MR_OK;
}

static mr_status fractional_max_pool_grad_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_with_rank(call->inputs[0], 4, &call->outputs[0], error);
}

static mr_status fractional_avg_pool_grad_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape shape;
    MR_TRY(mr_shape_from_input(call, 0, &shape, error));
    return mr_shape_with_rank(shape, 4, &call->outputs[0], error);
}

static const mr_op fractional_pool_ops[] = {
    {.name = "FractionalMaxPool",
     .signature = "value: T -> output: T, row_pooling_sequence: int64, col_pooling_sequence: int64",
     .attrs = "pooling_ratio: list(float) >= 4; pseudo_random: bool = false; overlapping: bool = false; deterministic: "
              "bool = false; seed: int = 0; seed2: int = 0; T: {float, double, int32, int64}",
     .shape = fractional_pool_shape,
     .doc = "Computes the maximum of randomly sized regions, which reduce height and width by pooling_ratio."},
    {.name = "FractionalMaxPoolGrad",
     .signature = "orig_input: T, orig_output: T, out_backprop: T, row_pooling_sequence: int64, col_pooling_sequence: "
                  "int64 -> output: T",
     .attrs = "overlapping: bool = false; T: {float, double, int32, int64}",
     .shape = fractional_max_pool_grad_shape,
     .doc = "Computes the gradient of FractionalMaxPool."},
    {.name = "FractionalAvgPool",
     .signature = "value: T -> output: T, row_pooling_sequence: int64, col_pooling_sequence: int64",
     .attrs = "pooling_ratio: list(float) >= 4; pseudo_random: bool = false; overlapping: bool = false; deterministic: "
              "bool = false; seed: int = 0; seed2: int = 0; T: {float, double, int32, int64}",
     .shape = fractional_pool_shape,
     .doc = "Computes the mean of randomly sized regions, which reduce height and width by pooling_ratio."},
    {.name = "FractionalAvgPoolGrad",
     .signature = "orig_input_tensor_shape: int64, out_backprop: T, row_pooling_sequence: int64, col_pooling_sequence: "
                  "int64 -> output: T",
     .attrs = "overlapping: bool = false; T: {float, double, int32, int64}",
     .shape = fractional_avg_pool_grad_shape,
     .doc = "Computes the gradient of FractionalAvgPool."},
};

const mr_op_table mr_ops_fractional_pool = {fractional_pool_ops,
                                            sizeof fractional_pool_ops / sizeof fractional_pool_ops[0]};
