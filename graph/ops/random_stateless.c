/* Random numbers that are a function of their seed: equal nodes return equal numbers. */
#include "graph/ir/op.h"

static mr_status check_seed(const mr_shape_call *call, int32_t input, mr_error *error)
{
    mr_shape seed;
    MR_TRY(mr_shape_with_rank(call->inputs[input], 1, &seed, error));
    return mr_size_merge(seed.dims[0], 2, &seed.dims[0], error);
}

static mr_status seeded_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(check_seed(call, 1, error));
    return mr_shape_from_input(call, 0, &call->outputs[0], error);
}

static mr_status seeded_range_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 2, 0, error));
    MR_TRY(mr_shape_expect_rank(call, 3, 0, error));
    return seeded_shape(call, error);
}

static mr_status keyed_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape key, counter;
    MR_TRY(mr_shape_with_rank(call->inputs[1], 1, &key, error));
    MR_TRY(mr_shape_with_rank(call->inputs[2], 1, &counter, error));
    MR_TRY(mr_shape_expect_rank(call, 3, 0, error));
    MR_TRY(mr_size_merge(key.dims[0], 1, &key.dims[0], error));
    return mr_shape_from_input(call, 0, &call->outputs[0], error);
}

static mr_status keyed_range_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 4, 0, error));
    MR_TRY(mr_shape_expect_rank(call, 5, 0, error));
    return keyed_shape(call, error);
}

static mr_status key_counter_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(check_seed(call, 0, error));
    call->outputs[0] = MR_SHAPE(1);
    call->outputs[1] = MR_SHAPE(2);
    if (call->output_count > 2) call->outputs[2] = MR_SCALAR;
    return MR_OK;
}

static mr_status multinomial_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape logits;
    int64_t count = -1;
    MR_TRY(check_seed(call, 2, error));
    MR_TRY(mr_shape_with_rank(call->inputs[0], 2, &logits, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    if (mr_shape_input_integer(call, 1, &count) && count < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "num_samples is %lld", (long long)count);
    call->outputs[0] = MR_SHAPE(logits.dims[0], count);
    return MR_OK;
}

static mr_status read_and_skip_shape(mr_shape_call *call, mr_error *error)
{
    for (int32_t i = 0; i < 3; i++) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    call->outputs[0] = MR_SHAPE(3);
    return MR_OK;
}

static mr_status skip_shape(mr_shape_call *call, mr_error *error)
{
    for (int32_t i = 0; i < 3; i++) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    return MR_OK;
}

static mr_status stateful_shape(mr_shape_call *call, mr_error *error)
{
    for (int32_t i = 0; i < call->input_count; i++)
        if (i != 2) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    return mr_shape_from_input(call, 2, &call->outputs[0], error);
}

static mr_status stateful_v1_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    return mr_shape_from_input(call, 1, &call->outputs[0], error);
}

static mr_status stateful_binomial_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    return mr_shape_from_input(call, 2, &call->outputs[0], error);
}

static mr_status system_ints_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_from_input(call, 0, &call->outputs[0], error);
}

static const mr_op random_stateless_ops[] = {
    {.name = "StatelessRandomUniform",
     .signature = "shape: T, seed: Tseed -> output: dtype",
     .attrs = "dtype: {half, bfloat16, float, double} = float; T: {int32, int64} = int32; Tseed: {int32, int64} = "
              "int64",
     .shape = seeded_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns values from a uniform distribution in [0, 1) that seed determines."},
    {.name = "StatelessRandomNormal",
     .signature = "shape: T, seed: Tseed -> output: dtype",
     .attrs = "dtype: {half, bfloat16, float, double} = float; T: {int32, int64} = int32; Tseed: {int32, int64} = "
              "int64",
     .shape = seeded_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns values from the standard normal distribution that seed determines."},
    {.name = "StatelessTruncatedNormal",
     .signature = "shape: T, seed: Tseed -> output: dtype",
     .attrs = "dtype: {half, bfloat16, float, double} = float; T: {int32, int64} = int32; Tseed: {int32, int64} = "
              "int64",
     .shape = seeded_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns values from the normal distribution, truncated at 2 stds, that seed determines."},
    {.name = "StatelessRandomUniformInt",
     .signature = "shape: T, seed: Tseed, minval: dtype, maxval: dtype -> output: dtype",
     .attrs = "dtype: {int32, int64}; T: {int32, int64}; Tseed: {int32, int64} = int64",
     .shape = seeded_range_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns integers from [minval, maxval) that seed determines."},
    {.name = "StatelessRandomUniformFullInt",
     .signature = "shape: T, seed: Tseed -> output: dtype",
     .attrs = "dtype: {int32, int64, uint32, uint64} = uint64; T: {int32, int64} = int32; Tseed: {int32, int64, "
              "uint32, uint64} = int64",
     .shape = seeded_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns integers from the complete range of dtype that seed determines."},
    {.name = "StatelessMultinomial",
     .signature = "logits: T, num_samples: int32, seed: Tseed -> output: output_dtype",
     .attrs = "T: realnumbertype; Tseed: {int32, int64} = int64; output_dtype: {int32, int64} = int64",
     .shape = multinomial_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Draws class numbers from the distribution in each row of logits; seed determines them."},
    {.name = "StatelessRandomGetKeyCounter",
     .signature = "seed: Tseed -> key: uint64, counter: uint64",
     .attrs = "Tseed: {int32, int64} = int64",
     .shape = key_counter_shape,
     .doc = "Scrambles seed into the key and the counter of the Philox generator."},
    {.name = "StatelessRandomGetKeyCounterAlg",
     .signature = "seed: Tseed -> key: uint64, counter: uint64, alg: int32",
     .attrs = "Tseed: {int32, int64} = int64",
     .shape = key_counter_shape,
     .doc = "Scrambles seed into a key and a counter, and returns the number of the generator."},
    {.name = "StatelessRandomGetAlg",
     .signature = "-> alg: int32",
     .shape = mr_shape_scalar,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns the number of the generator that this device uses: 1, Philox."},
    {.name = "StatelessRandomUniformV2",
     .signature = "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
     .attrs = "dtype: {half, bfloat16, float, double} = float; Tshape: {int32, int64} = int32",
     .shape = keyed_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns values from a uniform distribution in [0, 1) that key and counter determine."},
    {.name = "StatelessRandomNormalV2",
     .signature = "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
     .attrs = "dtype: {half, bfloat16, float, double} = float; Tshape: {int32, int64} = int32",
     .shape = keyed_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns values from the standard normal distribution that key and counter determine."},
    {.name = "StatelessTruncatedNormalV2",
     .signature = "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
     .attrs = "dtype: {half, bfloat16, float, double} = float; Tshape: {int32, int64} = int32",
     .shape = keyed_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns values from the normal distribution, truncated at 2 stds, that key and counter determine."},
    {.name = "StatelessRandomUniformIntV2",
     .signature = "shape: Tshape, key: uint64, counter: uint64, alg: int32, minval: dtype, maxval: dtype -> output: "
                  "dtype",
     .attrs = "dtype: {int32, int64, uint32, uint64}; Tshape: {int32, int64} = int32",
     .shape = keyed_range_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns integers from [minval, maxval) that key and counter determine."},
    {.name = "StatelessRandomUniformFullIntV2",
     .signature = "shape: Tshape, key: uint64, counter: uint64, alg: int32 -> output: dtype",
     .attrs = "dtype: {int32, int64, uint32, uint64} = uint64; Tshape: {int32, int64} = int32",
     .shape = keyed_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns integers from the complete range of dtype that key and counter determine."},
    {.name = "StatelessRandomGammaV2",
     .signature = "shape: T, seed: Tseed, alpha: dtype -> output: dtype",
     .attrs = "dtype: {half, float, double}; T: {int32, int64}; Tseed: {int32, int64} = int64",
     .shape = seeded_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns values from gamma distributions with shape parameters alpha that seed determines."},
    {.name = "StatelessRandomGammaV3",
     .signature = "shape: shape_dtype, key: uint64, counter: uint64, alg: int32, alpha: dtype -> output: dtype",
     .attrs = "dtype: {half, float, double}; shape_dtype: {int32, int64} = int32",
     .shape = keyed_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns values from gamma distributions with shape parameters alpha that key and counter determine."},
    {.name = "StatelessRandomPoisson",
     .signature = "shape: T, seed: Tseed, lam: Rtype -> output: dtype",
     .attrs = "Rtype: {half, float, double, int32, int64}; dtype: {half, float, double, int32, int64}; "
              "T: {int32, int64}; Tseed: {int32, int64} = int64",
     .shape = seeded_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns values from Poisson distributions with means lam that seed determines."},
    {.name = "StatelessRandomBinomial",
     .signature = "shape: S, seed: Tseed, counts: T, probs: T -> output: dtype",
     .attrs = "S: {int32, int64}; Tseed: {int32, int64} = int64; T: {half, float, double, int32, int64} = double; "
              "dtype: {half, float, double, int32, int64} = int64",
     .shape = seeded_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns numbers of successes in counts trials with probabilities probs that seed determines."},
    {.name = "RngReadAndSkip",
     .signature = "resource: resource, alg: int32, delta: uint64 -> value: int64",
     .shape = read_and_skip_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .writes = 1,
     .doc = "Advances the generator in a variable by delta numbers, and returns its previous state."},
    {.name = "RngSkip",
     .signature = "resource: resource, algorithm: int64, delta: int64 ->",
     .shape = skip_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 1,
     .doc = "Advances the generator in a variable by delta numbers."},
    {.name = "StatefulUniform",
     .signature = "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
     .attrs = "dtype: type = float; shape_dtype: type = int64",
     .shape = stateful_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .writes = 1,
     .doc = "Returns values from a uniform distribution in [0, 1), drawn from the generator in a variable."},
    {.name = "StatefulStandardNormalV2",
     .signature = "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
     .attrs = "dtype: type = float; shape_dtype: type = int64",
     .shape = stateful_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .writes = 1,
     .doc = "Returns values from the standard normal distribution, drawn from the generator in a variable."},
    {.name = "StatefulTruncatedNormal",
     .signature = "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
     .attrs = "dtype: type = float; shape_dtype: type = int64",
     .shape = stateful_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .writes = 1,
     .doc =
         "Returns values from the normal distribution, truncated at 2 stds, drawn from the generator in a variable."},
    {.name = "StatefulUniformFullInt",
     .signature = "resource: resource, algorithm: int64, shape: shape_dtype -> output: dtype",
     .attrs = "dtype: type = uint64; shape_dtype: type = int64",
     .shape = stateful_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .writes = 1,
     .doc = "Returns integers from the complete range of dtype, drawn from the generator in a variable."},
    {.name = "StatefulUniformInt",
     .signature =
         "resource: resource, algorithm: int64, shape: shape_dtype, minval: dtype, maxval: dtype -> output: dtype",
     .attrs = "dtype: type = int64; shape_dtype: type = int64",
     .shape = stateful_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .writes = 1,
     .doc = "Returns integers from [minval, maxval), drawn from the generator in a variable."},
    {.name = "StatefulStandardNormal",
     .signature = "resource: resource, shape: shape_dtype -> output: dtype",
     .attrs = "dtype: type = float; shape_dtype: type = int64",
     .shape = stateful_v1_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .writes = 1,
     .doc = "The same as StatefulStandardNormalV2, with the algorithm in the variable; used by old graphs."},
    {.name = "StatefulRandomBinomial",
     .signature = "resource: resource, algorithm: int64, shape: S, counts: T, probs: T -> output: dtype",
     .attrs = "S: {int32, int64}; T: {half, float, double, int32, int64} = double; dtype: {half, float, double, int32, "
              "int64} = int64",
     .shape = stateful_binomial_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .writes = 1,
     .doc = "Returns numbers of successes in counts trials with probabilities probs, drawn from the generator in a "
            "variable."},
    {.name = "NonDeterministicInts",
     .signature = "shape: shape_dtype -> output: dtype",
     .attrs = "dtype: type = int64; shape_dtype: type = int64",
     .shape = system_ints_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns integers from the complete range of dtype, which the system draws."},
};

const mr_op_table mr_ops_random_stateless = {random_stateless_ops,
                                             sizeof random_stateless_ops / sizeof random_stateless_ops[0]};
