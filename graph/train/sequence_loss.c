/* The cross entropy of sequences, as tf.contrib.seq2seq.sequence_loss. */
#include "graph/train/layers.h"
#include <millrace/ops.h>
#include <millrace/seq2seq.h>

static bool check_shapes(mr_graph *graph, mr_output logits, mr_output targets, mr_output weights)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    const mr_shape shape = mr_output_shape(logits);
    const mr_shape labels = mr_output_shape(targets), factors = mr_output_shape(weights);
    const mr_dtype label_dtype = mr_output_dtype(targets);
    const char *wrong = nullptr;
    if (shape.rank != 3 || !mr_train_is_floating(mr_output_dtype(logits))) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "sequence_loss: logits must be float[batch,time,ids], not %s%s",
                            mr_dtype_name(mr_output_dtype(logits)), mr_shape_text(shape, text, sizeof text));
        return false;
    }
    const mr_shape steps = MR_SHAPE(shape.dims[0], shape.dims[1]);
    if (label_dtype != MR_INT32 && label_dtype != MR_INT64)
        wrong = "targets must be int32 or int64";
    else if (!mr_shape_compatible(labels, steps) || labels.rank != 2)
        wrong = "targets must be [batch,time], as the logits";
    else if (mr_output_dtype(weights) != mr_output_dtype(logits))
        wrong = "weights must be of the dtype of the logits";
    else if (!mr_shape_compatible(factors, steps) || factors.rank != 2)
        wrong = "weights must be [batch,time], as the logits";
    if (wrong != nullptr) (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "sequence_loss: %s", wrong);
    return wrong == nullptr;
}

static bool check_options(mr_graph *graph, const mr_sequence_loss_options *o)
{
    if (!(o->average_across_timesteps && o->sum_over_timesteps) && !(o->average_across_batch && o->sum_over_batch) &&
        !(o->average_across_timesteps && o->sum_over_batch) && !(o->average_across_batch && o->sum_over_timesteps))
        return true;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                        "sequence_loss: sums and averages are both set, but only one may be; averages are the default");
    return false;
}

/* The sum along the axes, divided by the sum, or the number, of the weights. */
static mr_output reduce(mr_graph *graph, mr_output losses, mr_output weights, bool is_sum, mr_ints axes)
{
    mr_output over = mr_constant_ints(graph, axes);
    if (is_sum && mr_graph_status(graph, nullptr) == MR_OK) {
        const mr_dtype dtype = mr_output_dtype(weights);
        mr_output counts = mr_not_equal(graph, weights, mr_train_scalar(graph, nullptr, dtype, 0));
        weights = mr_cast(graph, counts, dtype);
    }
    mr_output divisor = mr_sum(graph, weights, over, .name = "Sum");
    return mr_div_no_nan(graph, mr_sum(graph, losses, over, .name = "Sum"), divisor, .name = "div_no_nan");
}

mr_output mr_sequence_loss_(mr_graph *graph, mr_output logits, mr_output targets, mr_output weights,
                            const mr_sequence_loss_options *given)
{
    mr_sequence_loss_options o;
    if (graph == nullptr) return (mr_output){0};
    if (!MR_LAYER_READ(mr_sequence_loss_options, graph, &o, given) || !check_options(graph, &o) ||
        !check_shapes(graph, logits, targets, weights))
        return mr_graph_failed_output(graph);
    const bool over_time = o.average_across_timesteps || o.sum_over_timesteps;
    const bool over_batch = o.average_across_batch || o.sum_over_batch;
    const bool is_sum = o.sum_over_timesteps || o.sum_over_batch;
    mr_graph_push_scope(graph, o.name != nullptr ? o.name : "sequence_loss");
    mr_output sizes = mr_shape_of(graph, logits);
    mr_output ids = mr_slice(graph, sizes, mr_constant_ints(graph, MR_INTS(2)), mr_constant_ints(graph, MR_INTS(1)));
    mr_output all = mr_constant_ints(graph, MR_INTS(-1));
    mr_output rows = mr_reshape(graph, logits, mr_concat_v2(graph, MR_OUTPUTS(all, ids), mr_constant_int32(graph, 0)));
    mr_output losses = mr_sparse_softmax_cross_entropy_with_logits(graph, rows, mr_reshape(graph, targets, all)).loss;
    losses = mr_mul(graph, mr_reshape(graph, losses, mr_shape_of(graph, weights)), weights, .name = "mul");
    if (over_time && over_batch)
        losses = reduce(graph, losses, weights, is_sum, MR_INTS(0, 1));
    else if (over_time || over_batch)
        losses = reduce(graph, losses, weights, is_sum, over_batch ? MR_INTS(0) : MR_INTS(1));
    mr_graph_pop_scope(graph);
    return losses;
}
