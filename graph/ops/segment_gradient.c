/* Gradients of segment.c. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

/* Row ids[i] of rows. For unsorted ids, a row with a negative id gets zeros. */
static mr_output rows_of_ids(mr_gradient_call *call, mr_output rows, bool is_sorted)
{
    mr_graph *g = call->graph;
    mr_output ids = gradient_input(call, 1), data = gradient_input(call, 0), axis = mr_constant_int32(g, 0);
    if (is_sorted) return mr_gather_v2(g, rows, ids, axis);
    int32_t extra = mr_output_shape(data).rank - mr_output_shape(ids).rank;
    if (mr_output_shape(data).rank < 0 || mr_output_shape(ids).rank < 0) {
        mr_gradient_fail(call, "ranks must be known while the graph is built");
        return rows;
    }
    mr_output zero = mr_zeros_like(g, ids), kept = mr_greater_equal(g, ids, zero);
    mr_output gathered = mr_gather_v2(g, rows, mr_maximum(g, ids, zero), axis);
    for (int32_t i = 0; i < extra; i++) kept = mr_expand_dims(g, kept, mr_constant_int32(g, -1));
    return mr_select_v2(g, kept, gathered, mr_gradient_scalar(call, gathered, 0));
}

static mr_output sums(mr_gradient_call *call, mr_output rows, bool is_sorted)
{
    mr_output ids = gradient_input(call, 1);
    return is_sorted ? mr_segment_sum(call->graph, rows, ids)
                     : mr_unsorted_segment_sum(call->graph, rows, ids, gradient_input(call, 2));
}

static void segment_sum_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = rows_of_ids(call, call->grad_outputs[0], true);
}

static void unsorted_segment_sum_gradient(mr_gradient_call *call)
{
    call->grad_inputs[0] = rows_of_ids(call, call->grad_outputs[0], false);
}

static void segment_mean_gradient(mr_gradient_call *call)
{
    mr_graph *g = call->graph;
    mr_output counts = sums(call, mr_ones_like(g, gradient_input(call, 0)), true);
    call->grad_inputs[0] = rows_of_ids(call, mr_real_div(g, call->grad_outputs[0], counts), true);
}

/* Divided equally among the elements that are equal to the result. */
static void segment_extremum(mr_gradient_call *call, bool is_sorted)
{
    mr_graph *g = call->graph;
    mr_output data = gradient_input(call, 0), grad = call->grad_outputs[0];
    mr_output selected = mr_equal(g, data, rows_of_ids(call, gradient_output(call, 0), is_sorted));
    mr_output counts = sums(call, mr_cast(g, selected, mr_output_dtype(grad)), is_sorted);
    mr_output shares = rows_of_ids(call, mr_real_div(g, grad, counts), is_sorted);
    call->grad_inputs[0] = mr_select_v2(g, selected, shares, mr_gradient_scalar(call, grad, 0));
}

static void segment_extremum_gradient(mr_gradient_call *call)
{
    segment_extremum(call, true);
}

static void unsorted_segment_extremum_gradient(mr_gradient_call *call)
{
    segment_extremum(call, false);
}

/* The product of the other elements of the segment: the product divided by the element if it is not zero, and the
 * product of the elements that are not zero if it is the only zero. */
static void segment_product(mr_gradient_call *call, bool is_sorted)
{
    mr_graph *g = call->graph;
    mr_output data = gradient_input(call, 0), grad = call->grad_outputs[0], ids = gradient_input(call, 1);
    mr_output is_zero = mr_equal(g, data, mr_gradient_scalar(call, data, 0));
    mr_output zeros = sums(call, mr_cast(g, is_zero, MR_INT32), is_sorted);
    mr_output factors = mr_select_v2(g, is_zero, mr_gradient_scalar(call, data, 1), data);
    mr_output product = is_sorted ? mr_segment_prod(g, factors, ids)
                                  : mr_unsorted_segment_prod(g, factors, ids, gradient_input(call, 2));
    grad = mr_select_v2(g, mr_greater(g, zeros, mr_constant_int32(g, 1)), mr_gradient_scalar(call, grad, 0), grad);
    mr_output quotient = mr_real_div(g, rows_of_ids(call, gradient_output(call, 0), is_sorted), factors);
    mr_output slope = mr_select_v2(g, is_zero, rows_of_ids(call, product, is_sorted), quotient);
    call->grad_inputs[0] = mr_mul(g, rows_of_ids(call, grad, is_sorted), slope);
}

static void segment_product_gradient(mr_gradient_call *call)
{
    segment_product(call, true);
}

static void unsorted_segment_product_gradient(mr_gradient_call *call)
{
    segment_product(call, false);
}

/* The gradient is dense, also with sparse_gradient. */
#define SPARSE(name, builder)                                                                                          \
    static void name(mr_gradient_call *call)                                                                           \
    {                                                                                                                  \
        mr_graph *g = call->graph;                                                                                     \
        mr_output shape = mr_gradient_shape(call, gradient_input(call, 0)), zero = mr_constant_int32(g, 0);            \
        call->grad_inputs[0] = builder(g, call->grad_outputs[0], gradient_input(call, 1), gradient_input(call, 2),     \
                                       mr_gather_v2(g, shape, zero, zero));                                            \
    }
SPARSE(sparse_sum_gradient, mr_sparse_segment_sum_grad)
SPARSE(sparse_mean_gradient, mr_sparse_segment_mean_grad)
SPARSE(sparse_root_gradient, mr_sparse_segment_sqrt_n_grad)

static const mr_gradient gradients[] = {
    {"SegmentSum", segment_sum_gradient},
    {"SegmentMean", segment_mean_gradient},
    {"SegmentProd", segment_product_gradient},
    {"SegmentMin", segment_extremum_gradient},
    {"SegmentMax", segment_extremum_gradient},
    {"UnsortedSegmentSum", unsorted_segment_sum_gradient},
    {"UnsortedSegmentProd", unsorted_segment_product_gradient},
    {"UnsortedSegmentMin", unsorted_segment_extremum_gradient},
    {"UnsortedSegmentMax", unsorted_segment_extremum_gradient},
    {"SparseSegmentSum", sparse_sum_gradient},
    {"SparseSegmentSumWithNumSegments", sparse_sum_gradient},
    {"SparseSegmentMean", sparse_mean_gradient},
    {"SparseSegmentMeanWithNumSegments", sparse_mean_gradient},
    {"SparseSegmentSqrtN", sparse_root_gradient},
    {"SparseSegmentSqrtNWithNumSegments", sparse_root_gradient},
};

const mr_gradient_table mr_gradients_segment = {gradients, sizeof gradients / sizeof gradients[0]};
