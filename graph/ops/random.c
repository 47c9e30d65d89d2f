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

/* The shape of the samples, followed by that of the parameters. */
static mr_status random_each_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape samples;
    MR_TRY(mr_shape_from_input(call, 0, &samples, error));
    const mr_shape *parameters = &call->inputs[1];
    if (samples.rank < 0 || parameters->rank < 0) return MR_OK;
    if (samples.rank + parameters->rank > MR_RANK_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "more than %d dimensions", MR_RANK_MAX);
    for (int32_t i = 0; i < parameters->rank; i++) samples.dims[samples.rank++] = parameters->dims[i];
    call->outputs[0] = samples;
    return MR_OK;
}

static mr_status parameters_shape(mr_shape_call *call, mr_error *error)
{
    for (int32_t i = 1; i < call->input_count; i++)
        if (call->inputs[i].rank > 1) MR_TRY(mr_shape_expect_rank(call, i, 1, error));
    return mr_shape_from_input(call, 0, &call->outputs[0], error);
}

static mr_status random_crop_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape image, size;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 3, &image, error));
    MR_TRY(mr_shape_from_input(call, 1, &size, error));
    MR_TRY(mr_shape_with_rank(size, 2, &size, error));
    call->outputs[0] = MR_SHAPE(size.dims[0], size.dims[1], image.dims[2]);
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
    {.name = "RandomGamma",
     .signature = "shape: S, alpha: T -> output: T",
     .attrs = "seed: int = 0; seed2: int = 0; S: {int32, int64}; T: {half, float, double}",
     .shape = random_each_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Draws shape values from the gamma distribution of each element of alpha."},
    {.name = "RandomGammaGrad",
     .signature = "alpha: T, sample: T -> output: T",
     .attrs = "T: {float, double}",
     .shape = mr_shape_binary,
     .doc = "Computes the derivative of a gamma sample with respect to alpha."},
    {.name = "RandomPoisson",
     .signature = "shape: S, rate: dtype -> output: dtype",
     .attrs = "seed: int = 0; seed2: int = 0; S: {int32, int64}; dtype: {half, float, double}",
     .shape = random_each_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Draws shape values from the Poisson distribution of each rate; used by old graphs."},
    {.name = "RandomPoissonV2",
     .signature = "shape: S, rate: R -> output: dtype",
     .attrs = "seed: int = 0; seed2: int = 0; S: {int32, int64}; R: {half, float, double, int32, int64} = double; "
              "dtype: {half, float, double, int32, int64} = int64",
     .shape = random_each_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Draws shape values from the Poisson distribution of each rate."},
    {.name = "ParameterizedTruncatedNormal",
     .signature = "shape: T, means: dtype, stdevs: dtype, minvals: dtype, maxvals: dtype -> output: dtype",
     .attrs = "seed: int = 0; seed2: int = 0; dtype: {half, bfloat16, float, double}; T: {int32, int64}",
     .shape = parameters_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns random values from normal distributions, each row with its own mean, std and bounds."},
    {.name = "RandomCrop",
     .signature = "image: T, size: int64 -> output: T",
     .attrs = "T: {uint8, int8, int16, int32, int64, float, double}; seed: int = 0; seed2: int = 0",
     .shape = random_crop_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Cuts a rectangle of the given height and width from a random position of image; used by old graphs."},
};

const mr_op_table mr_ops_random = {random_ops, sizeof random_ops / sizeof random_ops[0]};
