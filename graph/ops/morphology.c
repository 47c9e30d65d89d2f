/* Grayscale dilation. */
#include "graph/ir/op.h"
#include "graph/ops/window.h"

static mr_status read_pair(const mr_shape_call *call, const char *name, int64_t pair[2], mr_error *error)
{
    int64_t values[4];
    int32_t count = 0;
    MR_TRY(mr_attr_get_ints(call->attrs, name, values, 4, &count, error));
    if (count != 4)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "Dilation2D requires the %s attribute to contain 4 values, but got: %d", name, count);
    for (int32_t i = 0; i < 4; i++)
        if (values[i] < 1 || values[i] > INT32_MAX)
            return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s has %lld", name, (long long)values[i]);
    pair[0] = values[1];
    pair[1] = values[2];
    return MR_OK;
}

static mr_status dilation2d_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape input, filter;
    int64_t strides[2], rates[2];
    MR_TRY(mr_shape_with_rank(call->inputs[0], 4, &input, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 3, &filter, error));
    MR_TRY(read_pair(call, "strides", strides, error));
    MR_TRY(read_pair(call, "rates", rates, error));
    bool same = mr_string_equal(mr_attr_string_or(call->attrs, "padding", "SAME"), MR_STR("SAME"));
    MR_TRY(mr_size_merge(input.dims[3], filter.dims[2], &input.dims[3], error));
    for (int32_t i = 0; i < 2; i++)
        MR_TRY(mr_window_places(same ? MR_WINDOW_SAME : MR_WINDOW_VALID, input.dims[1 + i], filter.dims[i], strides[i],
                                rates[i], 0, &input.dims[1 + i], error));
    call->outputs[0] = input;
    return MR_OK;
}

static mr_status filter_shape(mr_shape_call *call, mr_error *error)
{
    (void)error;
    call->outputs[0] = call->inputs[1];
    return MR_OK;
}

static const mr_op morphology_ops[] = {
    {.name = "Dilation2D",
     .signature = "input: T, filter: T -> output: T",
     .attrs = "T: realnumbertype; strides: list(int) >= 4; rates: list(int) >= 4; padding: {'SAME', 'VALID'}",
     .shape = dilation2d_shape,
     .doc = "Computes the grayscale dilation of input: the maximum of input + filter over each window."},
    {.name = "Dilation2DBackpropInput",
     .signature = "input: T, filter: T, out_backprop: T -> in_backprop: T",
     .attrs = "T: realnumbertype; strides: list(int) >= 4; rates: list(int) >= 4; padding: {'SAME', 'VALID'}",
     .shape = mr_shape_unchanged,
     .doc = "Computes the gradient of Dilation2D with respect to input."},
    {.name = "Dilation2DBackpropFilter",
     .signature = "input: T, filter: T, out_backprop: T -> filter_backprop: T",
     .attrs = "T: realnumbertype; strides: list(int) >= 4; rates: list(int) >= 4; padding: {'SAME', 'VALID'}",
     .shape = filter_shape,
     .doc = "Computes the gradient of Dilation2D with respect to filter."},
};

const mr_op_table mr_ops_morphology = {morphology_ops, sizeof morphology_ops / sizeof morphology_ops[0]};
