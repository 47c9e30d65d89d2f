/* Samplers of classes for losses that compare the true classes with a few others. */
#include "graph/ir/op.h"

static mr_status sampler_shape(mr_shape_call *call, mr_error *error)
{
    int64_t sampled, trues;
    mr_shape classes;
    MR_TRY(mr_attr_get_int(call->attrs, "num_sampled", &sampled, error));
    MR_TRY(mr_attr_get_int(call->attrs, "num_true", &trues, error));
    MR_TRY(mr_shape_with_rank(call->inputs[0], 2, &classes, error));
    call->outputs[0] = call->outputs[2] = MR_SHAPE(sampled);
    call->outputs[1] = MR_SHAPE(classes.dims[0], trues);
    return MR_OK;
}

static mr_status learned_shape(mr_shape_call *call, mr_error *error)
{
    if (mr_attr_int_or(call->attrs, "range_max", 0) >= INT32_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "range_max must be less than 2147483647 for unigram samplers");
    return sampler_shape(call, error);
}

static mr_status accidental_hits_shape(mr_shape_call *call, mr_error *error)
{
    int64_t trues;
    mr_shape classes;
    MR_TRY(mr_attr_get_int(call->attrs, "num_true", &trues, error));
    MR_TRY(mr_shape_with_rank(call->inputs[0], 2, &classes, error));
    MR_TRY(mr_size_merge(classes.dims[1], trues, &classes.dims[1], error));
    MR_TRY(mr_shape_expect_rank(call, 1, 1, error));
    for (int32_t i = 0; i < 3; i++) call->outputs[i] = MR_SHAPE(-1);
    return MR_OK;
}

static const mr_op candidate_ops[] = {
    {.name = "UniformCandidateSampler",
     .signature = "true_classes: int64 -> sampled_candidates: int64, true_expected_count: float, "
                  "sampled_expected_count: float",
     .attrs = "num_true: int >= 1; num_sampled: int >= 1; unique: bool; range_max: int >= 1; seed: int = 0; seed2: int "
              "= 0",
     .shape = sampler_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Samples classes uniformly, and returns how often each class is expected."},
    {.name = "LogUniformCandidateSampler",
     .signature = "true_classes: int64 -> sampled_candidates: int64, true_expected_count: float, "
                  "sampled_expected_count: float",
     .attrs = "num_true: int >= 1; num_sampled: int >= 1; unique: bool; range_max: int >= 1; seed: int = 0; seed2: int "
              "= 0",
     .shape = sampler_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Samples classes from a log-uniform (Zipfian) distribution, and returns how often each class is expected."},
    {.name = "LearnedUnigramCandidateSampler",
     .signature = "true_classes: int64 -> sampled_candidates: int64, true_expected_count: float, "
                  "sampled_expected_count: float",
     .attrs = "num_true: int >= 1; num_sampled: int >= 1; unique: bool; range_max: int >= 1; seed: int = 0; seed2: int "
              "= 0",
     .shape = learned_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Samples classes from the distribution of the true classes of earlier runs."},
    {.name = "ThreadUnsafeUnigramCandidateSampler",
     .signature = "true_classes: int64 -> sampled_candidates: int64, true_expected_count: float, "
                  "sampled_expected_count: float",
     .attrs = "num_true: int >= 1; num_sampled: int >= 1; unique: bool; range_max: int >= 1; seed: int = 0; seed2: int "
              "= 0",
     .shape = learned_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Samples classes like LearnedUnigramCandidateSampler."},
    {.name = "FixedUnigramCandidateSampler",
     .signature = "true_classes: int64 -> sampled_candidates: int64, true_expected_count: float, "
                  "sampled_expected_count: float",
     .attrs = "num_true: int >= 1; num_sampled: int >= 1; unique: bool; range_max: int >= 1; vocab_file: string = ''; "
              "distortion: float = 1; num_reserved_ids: int = 0; num_shards: int >= 1 = 1; shard: int >= 0 = 0; "
              "unigrams: list(float) = []; seed: int = 0; seed2: int = 0",
     .shape = sampler_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Samples classes from a distribution given by a file or by an attribute."},
    {.name = "AllCandidateSampler",
     .signature = "true_classes: int64 -> sampled_candidates: int64, true_expected_count: float, "
                  "sampled_expected_count: float",
     .attrs = "num_true: int >= 1; num_sampled: int >= 1; unique: bool; seed: int = 0; seed2: int = 0",
     .shape = sampler_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns all classes in order."},
    {.name = "ComputeAccidentalHits",
     .signature = "true_classes: int64, sampled_candidates: int64 -> indices: int32, ids: int64, weights: float",
     .attrs = "num_true: int; seed: int = 0; seed2: int = 0",
     .shape = accidental_hits_shape,
     .doc = "Finds the sampled classes that are true classes of an example."},
};

const mr_op_table mr_ops_candidate = {candidate_ops, sizeof candidate_ops / sizeof candidate_ops[0]};
