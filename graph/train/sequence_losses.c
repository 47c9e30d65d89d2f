/* Losses of sequences: tf.contrib.seq2seq.sequence_loss, connectionist temporal classification, and its decoders. */
#include "graph/train/layers.h"
#include "graph/train/losses.h"
#include "graph/train/open_scopes.h"
#include <millrace/ops.h>

#include <inttypes.h>

/* Whether the value has this rank; an unknown one is refused as in TensorFlow. */
static bool check_rank(mr_graph *graph, const char *name, mr_output value, int32_t rank, const char *expected)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    if (value.node == nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s are required", name);
        return false;
    }
    mr_shape shape = mr_output_shape(value);
    if (shape.rank == rank) return true;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s have shape %s, but must be %s", name,
                        mr_shape_text(shape, text, sizeof text), expected);
    return false;
}

/* ---- Cross entropy ---- */

static bool check_averages(mr_graph *graph, const mr_sequence_loss_options *o)
{
    const char *sum = o->sum_over_timesteps ? "sum_over_timesteps" : "sum_over_batch";
    bool sums = o->sum_over_timesteps || o->sum_over_batch;
    const char *average = nullptr;
    if (o->average_across_timesteps) average = "average_across_timesteps";
    if (o->average_across_batch && (average == nullptr || !o->sum_over_timesteps)) average = "average_across_batch";
    if (sums && average != nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s and %s are both true, but exclude each other", sum,
                            average);
    else if (o->softmax_loss_context != nullptr && o->softmax_loss_function == nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "softmax_loss_context has no effect without softmax_loss_function");
    return mr_graph_status(graph, nullptr) == MR_OK;
}

static bool check_sequences(mr_graph *graph, mr_output logits, mr_output targets, mr_output weights)
{
    if (!check_rank(graph, "logits", logits, 3, "[batch, time, classes]") ||
        !check_rank(graph, "targets", targets, 2, "[batch, time]") ||
        !check_rank(graph, "weights", weights, 2, "[batch, time]"))
        return false;
    mr_dtype of_logits = mr_output_dtype(logits), of_targets = mr_output_dtype(targets);
    mr_dtype of_weights = mr_output_dtype(weights);
    mr_shape shape = mr_output_shape(logits), steps = MR_SHAPE(shape.dims[0], shape.dims[1]);
    char texts[2][MR_SHAPE_TEXT_SIZE];
    for (int i = 0; i < 2; i++) {
        mr_shape found = mr_output_shape(i == 0 ? targets : weights);
        if (mr_shape_compatible(found, steps)) continue;
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s have shape %s, but logits %s",
                            i == 0 ? "targets" : "weights", mr_shape_text(found, texts[0], sizeof texts[0]),
                            mr_shape_text(shape, texts[1], sizeof texts[1]));
        return false;
    }
    if (!mr_train_is_floating(of_logits))
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "logits are %s, but must be floating",
                            mr_dtype_name(of_logits));
    else if (of_targets != MR_INT32 && of_targets != MR_INT64)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "targets are %s, but must be int32 or int64",
                            mr_dtype_name(of_targets));
    else if (of_weights != of_logits)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "weights are %s, but logits %s", mr_dtype_name(of_weights),
                            mr_dtype_name(of_logits));
    return mr_graph_status(graph, nullptr) == MR_OK;
}

/* The sum along the axes, divided by the sum of the weights, or by the number of those that are not 0. */
static mr_output average(mr_graph *graph, mr_output losses, mr_output loss_axes, mr_output weights,
                         mr_output weight_axes, bool counts)
{
    if (counts) {
        mr_dtype dtype = mr_output_dtype(weights);
        mr_output present = mr_not_equal(graph, weights, mr_train_scalar(graph, nullptr, dtype, 0));
        mr_output count = mr_sum(graph, mr_cast(graph, present, MR_INT64), weight_axes);
        return mr_div_no_nan(graph, mr_sum(graph, losses, loss_axes), mr_cast(graph, count, dtype));
    }
    return mr_div_no_nan(graph, mr_sum(graph, losses, loss_axes), mr_sum(graph, weights, weight_axes));
}

static mr_output reduce(mr_graph *graph, mr_output losses, mr_output logits, mr_output weights,
                        const mr_sequence_loss_options *o)
{
    bool over_time = o->average_across_timesteps || o->sum_over_timesteps;
    bool over_batch = o->average_across_batch || o->sum_over_batch, counts = o->sum_over_timesteps || o->sum_over_batch;
    if (over_time && over_batch)
        return average(graph, losses, mr_constant_ints(graph, MR_INTS(0)), weights,
                       mr_constant_ints(graph, MR_INTS(0, 1)), counts);
    mr_output sizes = mr_slice(graph, mr_shape_of(graph, logits), mr_constant_ints(graph, MR_INTS(0)),
                               mr_constant_ints(graph, MR_INTS(2)));
    losses = mr_reshape(graph, losses, sizes);
    if (!over_time && !over_batch) return losses;
    mr_output axis = mr_constant_ints(graph, MR_INTS(over_time ? 1 : 0));
    return average(graph, losses, axis, weights, axis, counts);
}

mr_output mr_sequence_loss_(mr_graph *graph, mr_output logits, mr_output targets, mr_output weights,
                            const mr_sequence_loss_options *given)
{
    mr_sequence_loss_options o;
    if (graph == nullptr) return (mr_output){0};
    bool is_read = MR_LAYER_READ(mr_sequence_loss_options, graph, &o, given);
    mr_graph_push_scope(graph, is_read && o.name != nullptr ? o.name : "sequence_loss");
    mr_output loss = mr_graph_failed_output(graph);
    if (is_read && check_averages(graph, &o) && check_sequences(graph, logits, targets, weights)) {
        mr_output all = mr_constant_ints(graph, MR_INTS(-1)), rows = mr_loss_matrix(graph, logits);
        mr_output labels = mr_reshape(graph, targets, all), losses;
        if (o.softmax_loss_function != nullptr) {
            const mr_callback callback = mr_callback_begin(graph);
            losses = o.softmax_loss_function(o.softmax_loss_context, graph, labels, rows);
            (void)mr_callback_end(graph, &callback, "sequence_loss", "softmax_loss_function");
        } else {
            losses = mr_sparse_softmax_cross_entropy_with_logits(graph, rows, labels).loss;
        }
        losses = mr_mul(graph, losses, mr_reshape(graph, weights, all));
        loss = reduce(graph, losses, logits, weights, &o);
    }
    mr_graph_pop_scope(graph);
    return loss;
}

/* ---- Connectionist temporal classification ---- */

/* Whether both exist and have their dtypes; ranks and sizes are checked by the operator. */
static bool check_ctc(mr_graph *graph, const char *scope, mr_output inputs, mr_output sequence_length, bool casts)
{
    const char *wrong = nullptr;
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    mr_dtype dtype = inputs.node != nullptr ? mr_output_dtype(inputs) : MR_DTYPE_INVALID;
    if (dtype != MR_FLOAT && dtype != MR_DOUBLE && !(casts && mr_train_is_floating(dtype)))
        wrong = casts ? "inputs must be half, bfloat16, float or double" : "inputs must be float or double";
    else if (sequence_length.node == nullptr || mr_output_dtype(sequence_length) != MR_INT32)
        wrong = "sequence_length must be int32";
    if (wrong != nullptr) (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: %s", scope, wrong);
    return wrong == nullptr;
}

mr_output mr_ctc_loss_(mr_graph *graph, mr_sparse_output labels, mr_output inputs, mr_output sequence_length,
                       const mr_ctc_loss_options *given)
{
    mr_ctc_loss_options o;
    if (graph == nullptr) return (mr_output){0};
    if (!MR_LAYER_READ(mr_ctc_loss_options, graph, &o, given)) return mr_graph_failed_output(graph);
    const char *name = o.name != nullptr ? o.name : "CTCLoss";
    if (!check_ctc(graph, name, inputs, sequence_length, true)) return mr_graph_failed_output(graph);
    if (labels.indices.node == nullptr || mr_output_dtype(labels.indices) != MR_INT64 ||
        labels.values.node == nullptr || mr_output_dtype(labels.values) != MR_INT32)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: labels need int64 indices and int32 values", name);
    if (!o.time_major) inputs = mr_transpose(graph, inputs, mr_constant_ints(graph, MR_INTS(1, 0, 2)));
    mr_dtype dtype = mr_output_dtype(inputs);
    bool casts = dtype != MR_FLOAT && dtype != MR_DOUBLE;
    if (casts) inputs = mr_cast(graph, inputs, MR_FLOAT);
    mr_output loss = mr_ctc_loss_op(graph, inputs, labels.indices, labels.values, sequence_length, .name = name,
                                    .preprocess_collapse_repeated = o.preprocess_collapse_repeated,
                                    .ctc_merge_repeated = o.ctc_merge_repeated,
                                    .ignore_longer_outputs_than_inputs = o.ignore_longer_outputs_than_inputs)
                         .loss;
    return casts ? mr_cast(graph, loss, dtype) : loss;
}

mr_output mr_ctc_greedy_decoder_(mr_graph *graph, mr_output inputs, mr_output sequence_length,
                                 mr_sparse_output *decoded, const mr_ctc_decoder_options *given)
{
    mr_ctc_decoder_options o;
    if (graph == nullptr) return (mr_output){0};
    if (!MR_LAYER_READ(mr_ctc_decoder_options, graph, &o, given)) return mr_graph_failed_output(graph);
    const char *name = o.name != nullptr ? o.name : "CTCGreedyDecoder";
    if (!check_ctc(graph, name, inputs, sequence_length, false)) return mr_graph_failed_output(graph);
    if (o.beam_width != MR_COUNT_UNSET || o.top_paths != MR_COUNT_UNSET)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: %s has no effect for this decoder", name,
                             o.beam_width != MR_COUNT_UNSET ? "beam_width" : "top_paths");
    mr_ctc_greedy_decoder_op_outputs found =
        mr_ctc_greedy_decoder_op(graph, inputs, sequence_length, .name = name, .merge_repeated = o.merge_repeated);
    if (decoded != nullptr)
        *decoded = (mr_sparse_output){found.decoded_indices, found.decoded_values, found.decoded_shape};
    return found.log_probability;
}

mr_output mr_ctc_beam_search_decoder_(mr_graph *graph, mr_output inputs, mr_output sequence_length,
                                      mr_sparse_output *decoded, const mr_ctc_decoder_options *given)
{
    mr_ctc_decoder_options o;
    if (graph == nullptr) return (mr_output){0};
    if (!MR_LAYER_READ(mr_ctc_decoder_options, graph, &o, given)) return mr_graph_failed_output(graph);
    const char *name = o.name != nullptr ? o.name : "CTCBeamSearchDecoder";
    if (!check_ctc(graph, name, inputs, sequence_length, false)) return mr_graph_failed_output(graph);
    if (o.beam_width == MR_COUNT_UNSET) o.beam_width = 100;
    if (o.top_paths == MR_COUNT_UNSET) o.top_paths = 1;
    if (o.top_paths < 1 || o.beam_width < o.top_paths || o.beam_width > INT32_MAX)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                             "%s: top_paths is %" PRId64 " and beam_width %" PRId64
                             ", but 1 <= top_paths <= beam_width <= %d is required",
                             name, o.top_paths, o.beam_width, INT32_MAX);
    mr_ctc_beam_search_decoder_op_outputs found =
        mr_ctc_beam_search_decoder_op(graph, inputs, sequence_length, .name = name, .beam_width = o.beam_width,
                                      .top_paths = o.top_paths, .merge_repeated = o.merge_repeated);
    for (int32_t i = 0; decoded != nullptr && i < o.top_paths; i++)
        decoded[i] = (mr_sparse_output){mr_output_at(found.decoded_indices, i), mr_output_at(found.decoded_values, i),
                                        mr_output_at(found.decoded_shape, i)};
    return found.log_probability;
}
