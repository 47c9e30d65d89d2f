/* Gradient functions, one for each differentiable operator, and their helpers.
 *
 * The rows in FAMILY.c name the functions as MR_GRADIENT(mr_relu_gradient). They are defined in FAMILY_gradient.c, with
 * the builders of <millrace/ops.h>. The formulas are those of TensorFlow's array_grad, math_grad and nn_grad, with two
 * differences: sparse gradients (IndexedSlices) are made dense at once, and if shapes are known while the graph is
 * built, the reductions of broadcast operands are determined then instead of by BroadcastGradientArgs in every step. */
#ifndef MR_GRAPH_OPS_GRADIENTS_H
#define MR_GRAPH_OPS_GRADIENTS_H

#include "graph/ir/op.h"

static inline mr_output gradient_input(const mr_gradient_call *call, int32_t index)
{
    return mr_node_input(call->node, index);
}
static inline mr_output gradient_output(const mr_gradient_call *call, int32_t index)
{
    return (mr_output){call->node, index};
}
static inline bool gradient_is_given(const mr_gradient_call *call, int32_t index)
{
    return call->grad_outputs[index].node != nullptr;
}

/* grad_outputs[index], or zeros in the output's shape if nothing depends on it. */
mr_output mr_gradient_or_zeros(mr_gradient_call *call, int32_t index);
/* A scalar constant of like's dtype. */
mr_output mr_gradient_scalar(mr_gradient_call *call, mr_output like, double value);
/* A constant vector of int32. */
mr_output mr_gradient_ints(mr_gradient_call *call, const int32_t *values, int32_t count);
/* The shape as a vector of int32 (a constant if it is known); of int64 if `like` has that dtype. */
mr_output mr_gradient_shape(mr_gradient_call *call, mr_output value);
/* Reverses the broadcast of `target` in "target op other": sums grad, which has the shape of the result, over the
 * dimensions along which target was repeated. The result has target's shape. */
mr_output mr_gradient_unbroadcast(mr_gradient_call *call, mr_output grad, mr_output target, mr_output other);
/* The dimensions in a constant vector or scalar of integers: non-negative, ascending, without duplicates. False if they
 * are not constant. */
bool mr_gradient_axes(mr_output axes, int32_t rank, int32_t *values, int32_t *count);
/* Adds a node of operator op. Attrs that the node of the call also has, and that inputs do not determine, are
 * copied. */
mr_output mr_gradient_node(mr_gradient_call *call, const char *op, mr_outputs inputs);
/* Records that the gradient cannot be built. The message names the node. */
[[gnu::format(printf, 2, 3)]] void mr_gradient_fail(mr_gradient_call *call, const char *format, ...);

typedef void mr_gradient_prototype(mr_gradient_call *call);

/* unary_gradient.c */
mr_gradient_prototype mr_neg_gradient, mr_abs_gradient, mr_square_gradient, mr_sqrt_gradient, mr_sqrt_grad_gradient,
    mr_rsqrt_gradient, mr_rsqrt_grad_gradient, mr_reciprocal_gradient, mr_exp_gradient, mr_expm1_gradient,
    mr_log_gradient, mr_log1p_gradient, mr_sin_gradient, mr_cos_gradient, mr_tanh_gradient, mr_tanh_grad_gradient,
    mr_sigmoid_gradient, mr_sigmoid_grad_gradient, mr_erf_gradient, mr_cast_gradient, mr_cumsum_gradient;
/* binary_gradient.c */
mr_gradient_prototype mr_add_gradient, mr_sub_gradient, mr_mul_gradient, mr_div_gradient, mr_div_no_nan_gradient,
    mr_floor_mod_gradient, mr_squared_difference_gradient, mr_pow_gradient, mr_maximum_gradient, mr_minimum_gradient,
    mr_add_n_gradient, mr_select_gradient, mr_select_v2_gradient, mr_clip_by_value_gradient;
/* reduce_gradient.c */
mr_gradient_prototype mr_sum_gradient, mr_mean_gradient, mr_prod_gradient, mr_extremum_gradient,
    mr_euclidean_norm_gradient;
/* matmul_gradient.c */
mr_gradient_prototype mr_mat_mul_gradient, mr_batch_mat_mul_gradient;
/* reshape_gradient.c: operators that move elements */
mr_gradient_prototype mr_identity_gradient, mr_identity_n_gradient, mr_prevent_gradient_gradient,
    mr_check_numerics_gradient, mr_reshape_gradient, mr_fill_gradient, mr_transpose_gradient, mr_tile_gradient,
    mr_reverse_v2_gradient, mr_broadcast_to_gradient;
/* concat_gradient.c */
mr_gradient_prototype mr_concat_gradient, mr_concat_v2_gradient, mr_pack_gradient, mr_unpack_gradient,
    mr_split_gradient, mr_split_v_gradient;
/* slice_gradient.c */
mr_gradient_prototype mr_slice_gradient, mr_strided_slice_gradient, mr_strided_slice_grad_gradient, mr_pad_gradient;
/* gather_gradient.c */
mr_gradient_prototype mr_gather_gradient, mr_gather_v2_gradient, mr_gather_nd_gradient, mr_scatter_nd_gradient,
    mr_segment_sum_gradient, mr_unsorted_segment_sum_gradient, mr_top_kv2_gradient;
/* activation_gradient.c */
mr_gradient_prototype mr_relu_gradient, mr_relu_grad_gradient, mr_relu6_gradient, mr_relu6_grad_gradient,
    mr_leaky_relu_gradient, mr_leaky_relu_grad_gradient, mr_elu_gradient, mr_elu_grad_gradient, mr_selu_gradient,
    mr_selu_grad_gradient, mr_softplus_gradient, mr_softplus_grad_gradient, mr_softsign_gradient,
    mr_softsign_grad_gradient;
/* softmax_gradient.c */
mr_gradient_prototype mr_softmax_gradient, mr_log_softmax_gradient, mr_softmax_cross_entropy_gradient,
    mr_sparse_softmax_cross_entropy_gradient, mr_l2_loss_gradient;
/* conv_gradient.c */
mr_gradient_prototype mr_conv2d_gradient, mr_conv2d_backprop_input_gradient, mr_conv2d_backprop_filter_gradient,
    mr_depthwise_conv2d_gradient, mr_bias_add_gradient, mr_bias_add_grad_gradient, mr_max_pool_gradient,
    mr_avg_pool_gradient, mr_avg_pool_grad_gradient, mr_lrn_gradient, mr_resize_bilinear_gradient;
/* batch_norm_gradient.c */
mr_gradient_prototype mr_fused_batch_norm_gradient;

#endif
