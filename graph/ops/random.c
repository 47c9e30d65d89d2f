/* Random numbers. */
#include "graph/ir/op.h"

static mr_status random_shape(mr_shape_call *call, mr_error *error)
{
    for (int32_t i = 1; i < call->input_count; i++) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    return mr_shape_from_input(call, 0, &call->outputs[0], error);
}

static mr_status multinomial_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape logits;
    int64_t count = -1;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 2, &logits, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    if (mr_shape_input_integer(call, 1, &count) && count < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "num_samples is %lld", (long long)count);
    call->outputs[0] = MR_SHAPE(logits.dims[0], count);
    return MR_OK;
}

static const mr_op random_ops[] = {
    {.name = "RandomUniform",
     .signature = "shape: T -> output: dtype",
     .attrs = "seed: int = 0; seed2: int = 0; dtype: {half, bfloat16, float, double}; T: {int32, int64}",
     .shape = random_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns random values from a uniform distribution in [0, 1)."},
    {.name = "RandomUniformInt",
     .signature = "shape: T, minval: Tout, maxval: Tout -> output: Tout",
     .attrs = "seed: int = 0; seed2: int = 0; Tout: {int32, int64}; T: {int32, int64}",
     .shape = random_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns random integers from a uniform distribution in [minval, maxval)."},
    {.name = "RandomStandardNormal",
     .signature = "shape: T -> output: dtype",
     .attrs = "seed: int = 0; seed2: int = 0; dtype: {half, bfloat16, float, double}; T: {int32, int64}",
     .shape = random_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns random values from a normal distribution with mean 0 and standard deviation 1."},
    {.name = "TruncatedNormal",
     .signature = "shape: T -> output: dtype",
     .attrs = "seed: int = 0; seed2: int = 0; dtype: {half, bfloat16, float, double}; T: {int32, int64}",
     .shape = random_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc =
         "Returns random values from a normal distribution with mean 0 and std 1, truncated at 2 stds by redrawing."},
    {.name = "RandomShuffle",
     .signature = "value: T -> output: T",
     .attrs = "seed: int = 0; seed2: int = 0; T: type",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Randomly shuffles the rows of value."},
    {.name = "Multinomial",
     .signature = "logits: T, num_samples: int32 -> output: output_dtype",
     .attrs = "seed: int = 0; seed2: int = 0; T: realnumbertype; output_dtype: {int32, int64} = int64",
     .shape = multinomial_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Draws class numbers from the distribution in each row of logits."},
};

const mr_op_table mr_ops_random = {random_ops, sizeof random_ops / sizeof random_ops[0]};
