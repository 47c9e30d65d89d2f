/* Batch renormalization (Ioffe 2017), as in tf.layers.batch_normalization(renorm=True): r and d turn the batch's
 * normalization into that of the moving averages, within limits, and pass no gradient. */
#include "graph/train/layers_norm.h"
#include <millrace/control_flow.h>
#include <millrace/ops.h>

#include <math.h>

/* While not training: r is 1, d is 0, and averages do not move. */
static mr_output if_training(const mr_batch_norm *norm, mr_output value, double otherwise)
{
    mr_graph *graph = norm->graph;
    if (norm->layer->is_training.node == nullptr) return value;
    mr_output chosen = mr_graph_failed_output(graph);
    mr_cond *cond = mr_cond_begin(graph, norm->layer->is_training);
    mr_cond_else(cond, MR_OUTPUTS(value));
    mr_output like =
        mr_fill(graph, mr_shape_of(graph, value), mr_train_scalar(graph, "Const", mr_output_dtype(value), otherwise));
    mr_cond_end(cond, MR_OUTPUTS(like), &chosen);
    return chosen;
}

static mr_output limit(const mr_batch_norm *norm, mr_output value, float min, float max)
{
    mr_graph *graph = norm->graph;
    mr_dtype dtype = mr_output_dtype(value);
    if (!isnan(min)) value = mr_maximum(graph, value, mr_train_scalar(graph, "Maximum/y", dtype, min));
    if (!isnan(max)) value = mr_minimum(graph, value, mr_train_scalar(graph, "Minimum/y", dtype, max));
    return value;
}

static mr_output moved(const mr_batch_norm *norm, mr_variable moving, mr_output batch, float momentum)
{
    mr_graph *graph = norm->graph;
    mr_output share = {0};
    if (norm->layer->is_training.node != nullptr)
        share = if_training(norm, mr_train_scalar(graph, "Const", mr_output_dtype(batch), momentum), 1);
    return mr_batch_norm_move(graph, moving, batch, momentum, share);
}

/* The moving variance is the square of the moving standard deviation. */
static mr_output assign_variance(const mr_batch_norm *norm, mr_output std)
{
    mr_graph *graph = norm->graph;
    mr_output epsilon = mr_train_scalar(graph, "sub/y", mr_output_dtype(std), norm->layer->epsilon);
    mr_output variance = mr_relu(graph, mr_sub(graph, mr_mul(graph, std, std, .name = "mul"), epsilon, .name = "sub"));
    if (mr_variable_is_resource(norm->moving_variance))
        return mr_variable_assign(graph, norm->moving_variance, variance);
    return mr_assign(graph, norm->moving_variance.ref, variance, .name = "AssignNewValue");
}

void mr_batch_renorm(const mr_batch_norm *norm, mr_output mean, mr_output variance, mr_output *scale, mr_output *offset)
{
    mr_graph *graph = norm->graph;
    const mr_batch_normalization_layer *layer = norm->layer;
    mr_dtype dtype = mr_output_dtype(variance);
    mr_output epsilon = mr_train_scalar(graph, "add/y", dtype, layer->epsilon);
    mr_output std = mr_sqrt(graph, mr_add_v2(graph, variance, epsilon, .name = "add"));
    mr_output least = mr_sqrt(graph, mr_train_scalar(graph, "Sqrt_1/x", dtype, layer->epsilon), .name = "Sqrt");
    mr_output known = mr_maximum(graph, mr_layer_value(graph, norm->renorm_std, "Maximum"), least);
    mr_output r = mr_real_div(graph, std, known, .name = "truediv");
    mr_output distance = mr_sub(graph, mean, mr_layer_value(graph, norm->renorm_mean, "sub"), .name = "sub");
    mr_output d = mr_real_div(graph, distance, known, .name = "truediv");
    /* The averages move after r and d have been computed from them. */
    mr_node *computed[] = {r.node, d.node};
    mr_graph_push_control_dependencies(graph, computed, 2);
    mr_output batch_mean = mr_identity(graph, mean), batch_std = mr_identity(graph, std);
    mr_graph_pop_control_dependencies(graph);
    r = limit(norm, r, layer->renorm_rmin, layer->renorm_rmax);
    d = limit(norm, d, -layer->renorm_dmax, layer->renorm_dmax);
    mr_node *moves[] = {moved(norm, norm->renorm_mean, batch_mean, norm->renorm_momentum).node,
                        moved(norm, norm->renorm_std, batch_std, norm->renorm_momentum).node};
    mr_graph_push_control_dependencies(graph, moves, 2);
    batch_mean = mr_identity(graph, batch_mean);
    mr_output batch_variance = mr_identity(graph, variance);
    mr_graph_pop_control_dependencies(graph);
    r = mr_stop_gradient(graph, if_training(norm, r, 1), .name = "renorm_r");
    d = mr_stop_gradient(graph, if_training(norm, d, 0), .name = "renorm_d");
    mr_output gamma = *scale, beta = *offset;
    *scale = gamma.node != nullptr ? mr_mul(graph, r, gamma, .name = "mul") : r;
    *offset = gamma.node != nullptr ? mr_mul(graph, d, gamma, .name = "mul") : d;
    if (beta.node != nullptr) *offset = mr_add_v2(graph, *offset, beta, .name = "add");
    mr_output update = moved(norm, norm->moving_mean, batch_mean, norm->momentum);
    epsilon = mr_train_scalar(graph, "add/y", dtype, layer->epsilon);
    mr_output root = mr_sqrt(graph, mr_add_v2(graph, batch_variance, epsilon, .name = "add"));
    mr_output new_variance = assign_variance(norm, moved(norm, norm->moving_std, root, norm->momentum));
    if (mr_graph_status(graph, nullptr) != MR_OK) return;
    mr_graph_add_to_collection(graph, MR_UPDATE_OPS, update);
    mr_graph_add_to_collection(graph, MR_UPDATE_OPS, new_variance);
}
