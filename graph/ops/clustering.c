/* k-means clustering. */
#include "graph/ir/op.h"

static mr_status plus_plus_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape points;
    int64_t count = -1;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 2, &points, error));
    for (int32_t i = 1; i < 4; i++) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    (void)mr_shape_input_integer(call, 1, &count);
    call->outputs[0] = MR_SHAPE(count < 0 ? -1 : count, points.dims[1]);
    return MR_OK;
}

static mr_status chain_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(mr_shape_expect_rank(call, 0, 1, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    return mr_shape_scalar(call, error);
}

static mr_status neighbors_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape points, centers;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 2, &points, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 2, &centers, error));
    MR_TRY(mr_shape_expect_rank(call, 2, 0, error));
    call->outputs[0] = call->outputs[1] = MR_SHAPE(points.dims[0], -1);
    return MR_OK;
}

static const mr_op clustering_ops[] = {
    {.name = "KmeansPlusPlusInitialization",
     .signature = "points: float, num_to_sample: int64, seed: int64, num_retries_per_sample: int64 -> samples: float",
     .shape = plus_plus_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Draws num_to_sample rows of points, each with a probability by its distance from those drawn before."},
    {.name = "KMC2ChainInitialization",
     .signature = "distances: float, seed: int64 -> index: int64",
     .shape = chain_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the last state of a Markov chain over distances: the next center of k-MC2."},
    {.name = "NearestNeighbors",
     .signature = "points: float, centers: float, k: int64 -> nearest_center_indices: int64, nearest_center_distances: "
                  "float",
     .shape = neighbors_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the k centers that are nearest to each point, and their squared distances."},
};

const mr_op_table mr_ops_clustering = {clustering_ops, sizeof clustering_ops / sizeof clustering_ops[0]};
