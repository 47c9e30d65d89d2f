/* The arithmetic of normalization: moments, normalized values and moving averages, as tf.nn.moments,
 * tf.nn.batch_normalization and assign_moving_average. */
#include "graph/train/layers_norm.h"
#include <millrace/ops.h>

void mr_train_moments(mr_graph *graph, mr_output input, const int32_t *axes, int32_t count, bool squeeze,
                      mr_output *mean, mr_output *variance)
{
    int64_t squeezed[MR_RANK_MAX];
    for (int32_t i = 0; i < count; i++) squeezed[i] = axes[i];
    mr_graph_push_scope(graph, "moments");
    mr_output over = mr_constant_int32s(graph, MR_SHAPE(count), axes, "mean/reduction_indices");
    *mean = mr_mean(graph, input, over, .keep_dims = true, .name = "mean");
    mr_output fixed = mr_stop_gradient(graph, *mean);
    mr_output distance = mr_squared_difference(graph, input, fixed);
    over = mr_constant_int32s(graph, MR_SHAPE(count), axes, "variance/reduction_indices");
    *variance = mr_mean(graph, distance, over, .keep_dims = true, .name = "variance");
    if (squeeze) {
        mr_ints dims = {squeezed, count};
        *mean = mr_squeeze(graph, *mean, .squeeze_dims = dims);
        *variance = mr_squeeze(graph, *variance, .squeeze_dims = dims);
    }
    mr_graph_pop_scope(graph);
}

mr_output mr_train_normalize(mr_graph *graph, mr_output input, mr_output mean, mr_output variance, mr_output offset,
                             mr_output scale, float epsilon)
{
    mr_graph_push_scope(graph, "batchnorm");
    mr_output small = mr_train_scalar(graph, "add/y", mr_output_dtype(variance), epsilon);
    mr_output factor = mr_rsqrt(graph, mr_add_v2(graph, variance, small, .name = "add"));
    if (scale.node != nullptr) factor = mr_mul(graph, factor, scale, .name = "mul");
    mr_output scaled = mr_mul(graph, input, factor, .name = "mul"), shift = mr_mul(graph, mean, factor, .name = "mul");
    shift = offset.node != nullptr ? mr_sub(graph, offset, shift, .name = "sub") : mr_neg(graph, shift, .name = "Neg");
    mr_output output = mr_add_v2(graph, scaled, shift, .name = "add");
    mr_graph_pop_scope(graph);
    return output;
}

mr_output mr_batch_norm_move(mr_graph *graph, mr_variable moving, mr_output batch, float momentum,
                             mr_output momentum_output)
{
    mr_dtype dtype = mr_variable_dtype_of(moving);
    mr_graph_push_scope(graph, "AssignMovingAvg");
    mr_output share;
    if (momentum_output.node != nullptr)
        share = mr_sub(graph, mr_train_scalar(graph, "sub/x", dtype, 1), momentum_output, .name = "sub");
    else
        share = mr_train_scalar(graph, "decay", dtype, 1 - (double)momentum);
    mr_output distance = mr_sub(graph, mr_layer_value(graph, moving, "sub"), batch, .name = "sub");
    mr_output step = mr_mul(graph, distance, share, .name = "mul"), update;
    if (mr_variable_is_resource(moving))
        update = mr_variable_assign_sub(graph, moving, step);
    else
        update = mr_assign_sub(graph, moving.ref, step, .name = mr_train_own_name(graph));
    mr_graph_pop_scope(graph);
    return update;
}
