/* Summaries of tensors for plugins of TensorBoard: text, any tensor, and curves of precision and recall. */
#include "graph/train/summary.h"
#include "proto/event.pb-c.h"
#include "proto/plugins.pb-c.h"
#include "proto/proto.h"
#include <millrace/ops.h>

/* A summary with metadata for a plugin; plugin null: none. */
static mr_output add_tensor(mr_graph *graph, const char *name, mr_output tensor, const char *plugin,
                            mr_string plugin_data, const mr_summary_options *options)
{
    Mr__SummaryMetadata metadata = MR__SUMMARY_METADATA__INIT;
    Mr__SummaryMetadata__PluginData data = MR__SUMMARY_METADATA__PLUGIN_DATA__INIT;
    mr_error error = {0};
    mr_string bytes = {0};
    if (options->display_name != nullptr) metadata.display_name = (char *)options->display_name;
    if (options->description != nullptr) metadata.summary_description = (char *)options->description;
    if (plugin != nullptr) {
        data.plugin_name = (char *)plugin;
        data.content = (ProtobufCBinaryData){.len = plugin_data.size_bytes, .data = (uint8_t *)plugin_data.data};
        metadata.plugin_data = &data;
    }
    mr_status status = mr_proto_pack(&metadata, &graph->arena, &bytes, &error);
    if (status != MR_OK) return mr_graph_record(graph, status, &error);
    mr_output tag = mr_summary_begin(graph, name, options, "tag");
    mr_output packed = mr_summary_string(graph, "serialized_summary_metadata", bytes);
    mr_output summary = mr_tensor_summary_v2(graph, tag, tensor, packed, .name = mr_train_own_name(graph));
    return mr_summary_end(graph, summary, options);
}

mr_output mr_summary_tensor_(mr_graph *graph, const char *name, mr_output tensor, const mr_summary_options *given)
{
    mr_summary_options options;
    int choices = MR_SUMMARY_HAS_FAMILY | MR_SUMMARY_HAS_TITLE | MR_SUMMARY_HAS_PLUGIN;
    if (!mr_summary_read(graph, name, given, choices, &options)) return mr_graph_failed_output(graph);
    return add_tensor(graph, name, tensor, options.plugin_name, options.plugin_data, &options);
}

/* Whether the output exists and has this dtype; otherwise an error is recorded. */
static bool check_dtype(mr_graph *graph, const char *name, const char *what, mr_output value, mr_dtype dtype)
{
    if (value.node == nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: %s is not an output", name, what);
        return false;
    }
    if (value.node->id < 0) return false;
    if (mr_output_dtype(value) == dtype) return true;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: %s has dtype %s, but must be %s", name, what,
                        mr_dtype_name(mr_output_dtype(value)), mr_dtype_name(dtype));
    return false;
}

mr_output mr_summary_text_(mr_graph *graph, const char *name, mr_output text, const mr_summary_options *given)
{
    mr_summary_options options;
    if (!mr_summary_read(graph, name, given, 0, &options) || !check_dtype(graph, name, "text", text, MR_STRING))
        return mr_graph_failed_output(graph);
    return add_tensor(graph, name, text, "text", (mr_string){0}, &options);
}

/* ---- Precision and recall ---- */

/* Sums the factors of the predictions of each threshold's interval, then of all intervals from each threshold on. */
static mr_output sum_from_thresholds(mr_graph *graph, mr_output one_hot, mr_output factors, const char *name)
{
    mr_output column = mr_reshape(graph, factors, mr_constant_ints(graph, MR_INTS(-1, 1)));
    mr_output sums = mr_sum(graph, mr_mul(graph, one_hot, column), mr_constant_int32(graph, 0));
    return mr_cumsum(graph, sums, mr_constant_int32(graph, 0), .reverse = true, .name = name);
}

/* first[0] - all: what is below each threshold. */
static mr_output below_thresholds(mr_graph *graph, mr_output sums)
{
    mr_output first =
        mr_strided_slice(graph, sums, mr_constant_ints(graph, MR_INTS(0)), mr_constant_ints(graph, MR_INTS(1)),
                         mr_constant_ints(graph, MR_INTS(1)), .shrink_axis_mask = 1);
    return mr_sub(graph, first, sums);
}

static mr_output quotient(mr_graph *graph, mr_output part, mr_output rest)
{
    mr_output all = mr_maximum(graph, mr_constant_float(graph, 1e-7f), mr_add(graph, part, rest));
    return mr_real_div(graph, part, all);
}

/* [6, threshold_count]: true positives, false positives, true negatives, false negatives, precision, recall. */
static mr_output curve_of(mr_graph *graph, mr_output labels, mr_output predictions, const mr_summary_options *options)
{
    mr_output one = mr_constant_float(graph, 1), is_true = mr_cast(graph, labels, MR_FLOAT);
    mr_output p = mr_minimum(graph, one, mr_maximum(graph, mr_constant_float(graph, 0), predictions));
    mr_output weights = options->weights.node != nullptr ? options->weights : one;
    mr_output trues = mr_mul(graph, is_true, weights);
    mr_output falses = mr_mul(graph, mr_sub(graph, one, is_true), weights);
    p = mr_reshape(graph, p, mr_constant_ints(graph, MR_INTS(-1)));
    mr_output scale = mr_constant_float(graph, (float)(options->threshold_count - 1));
    mr_output interval = mr_cast(graph, mr_floor(graph, mr_mul(graph, p, scale)), MR_INT32);
    mr_output one_hot = mr_one_hot(graph, interval, mr_constant_int32(graph, options->threshold_count), one,
                                   mr_constant_float(graph, 0));
    mr_output true_positives = sum_from_thresholds(graph, one_hot, trues, "tp");
    mr_output false_positives = sum_from_thresholds(graph, one_hot, falses, "fp");
    mr_output true_negatives = below_thresholds(graph, false_positives);
    mr_output false_negatives = below_thresholds(graph, true_positives);
    mr_output precision = quotient(graph, true_positives, false_positives);
    mr_output recall = quotient(graph, true_positives, false_negatives);
    return mr_pack(graph,
                   MR_OUTPUTS(true_positives, false_positives, true_negatives, false_negatives, precision, recall));
}

mr_output mr_summary_pr_curve_(mr_graph *graph, const char *name, mr_output labels, mr_output predictions,
                               const mr_summary_options *given)
{
    mr_summary_options options;
    if (!mr_summary_read(graph, name, given, MR_SUMMARY_HAS_TITLE | MR_SUMMARY_HAS_CURVE, &options) ||
        !check_dtype(graph, name, "labels", labels, MR_BOOL) ||
        !check_dtype(graph, name, "predictions", predictions, MR_FLOAT) ||
        (options.weights.node != nullptr && !check_dtype(graph, name, "weights", options.weights, MR_FLOAT)))
        return mr_graph_failed_output(graph);
    if (!mr_shape_compatible(mr_output_shape(labels), mr_output_shape(predictions))) {
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: labels have shape %s, but predictions %s", name,
                             mr_shape_text(mr_output_shape(labels), a, sizeof a),
                             mr_shape_text(mr_output_shape(predictions), b, sizeof b));
    }
    mr_graph_push_scope(graph, mr_summary_clean(graph, name));
    mr_output curve = curve_of(graph, labels, predictions, &options);
    if (options.display_name == nullptr) options.display_name = name;
    Mr__PrCurvePluginData data = MR__PR_CURVE_PLUGIN_DATA__INIT;
    mr_string bytes = {0};
    mr_error error = {0};
    data.num_thresholds = (uint32_t)options.threshold_count;
    mr_status status = mr_proto_pack(&data, &graph->arena, &bytes, &error);
    if (status != MR_OK) (void)mr_graph_record(graph, status, &error);
    mr_output summary = add_tensor(graph, "pr_curves", curve, "pr_curves", bytes, &options);
    mr_graph_pop_scope(graph);
    return summary;
}
