/* Einstein summation. */
#include "base/einsum.h"
#include "graph/ir/op.h"

static mr_status einsum_shape(mr_shape_call *call, mr_error *error)
{
    mr_einsum e;
    int32_t ranks[2];
    int64_t sizes[MR_EINSUM_LABELS];
    mr_string equation;
    MR_TRY(mr_attr_get_string(call->attrs, "equation", &equation, error));
    if (call->input_count > 2)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Expecting 1 or 2 input subscripts in equation '%.*s' but got: %d",
                       (int)(equation.size_bytes & 255), equation.data, call->input_count);
    for (int32_t i = 0; i < call->input_count; i++) {
        ranks[i] = call->inputs[i].rank;
        if (ranks[i] < 0) return MR_OK;
    }
    MR_TRY(mr_einsum_parse(equation, call->input_count, ranks, &e, error));
    for (int32_t i = 0; i < MR_EINSUM_LABELS; i++) sizes[i] = -2;
    for (int32_t i = 0; i < call->input_count; i++)
        for (int32_t d = 0; d < e.inputs[i].rank; d++) {
            int32_t label = (uint8_t)e.inputs[i].labels[d];
            int64_t size = call->inputs[i].dims[d], *known = &sizes[label];
            bool is_first = *known == -2, broadcasts = label >= MR_EINSUM_ELLIPSIS;
            if (is_first)
                *known = size;
            else if (!broadcasts)
                MR_TRY(mr_size_merge(*known, size, known, error));
            else if (*known == 1)
                *known = size;
            else if (size == -1 || *known == -1)
                *known = size > 1 ? size : *known > 1 ? *known : -1;
            else if (size != 1 && size != *known)
                return mr_fail(error, MR_INVALID_ARGUMENT, "the ellipsis has incompatible sizes %lld and %lld",
                               (long long)*known, (long long)size);
        }
    mr_shape result = {.rank = e.output.rank};
    for (int32_t d = 0; d < e.output.rank; d++) result.dims[d] = sizes[e.output.labels[d]];
    call->outputs[0] = result;
    return MR_OK;
}

static const mr_op einsum_ops[] = {
    {.name = "Einsum",
     .signature = "inputs: N * T -> output: T",
     .attrs = "equation: string; N: int >= 1; T: type",
     .shape = einsum_shape,
     .doc = "Multiplies and sums tensors as the equation specifies: one label per dimension."},
};

const mr_op_table mr_ops_einsum = {einsum_ops, sizeof einsum_ops / sizeof einsum_ops[0]};
