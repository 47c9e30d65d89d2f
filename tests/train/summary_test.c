/* Summaries in the graph: names, tags, collections, merges, curves of precision and recall, and the sentences for
 * mistakes. */
#include "proto/event.pb-c.h"
#include "proto/proto.h"
#include "tests/test.h"

#include <math.h>
#include <millrace/millrace.h>

static mr_tensor run_one(mr_graph *g, mr_output output)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_tensor result = {0};
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(output), &result, nullptr, 0, &error));
    mr_session_free(session);
    return result;
}

static Mr__Summary *unpack(const mr_tensor *result, mr_arena *arena)
{
    mr_error error = {0};
    Mr__Summary *summary = nullptr;
    CHECK_OK(mr_proto_unpack_as(summary, mr_tensor_strings(result)[0], arena, &summary, &error));
    return summary;
}

static mr_output strings(mr_graph *g)
{
    return mr_constant_string(g, "**text**");
}

TEST(summaries_are_tagged_by_family_scope_and_name)
{
    mr_error error = {0};
    mr_arena arena = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_constant_float(g, 0.5f);
    mr_graph_push_scope(g, "outer");
    CHECK_STR(mr_node_name(mr_summary_scalar(g, "loss", x).node), "outer/loss");
    CHECK_STR(mr_node_name(mr_summary_scalar(g, "loss", x, .family = "train").node), "outer/train/loss");
    CHECK_STR(mr_node_name(mr_summary_histogram(g, "//a b\xc3\xa9", x).node), "outer/a_b_");
    mr_graph_pop_scope(g);
    mr_output text = mr_summary_text(g, "notes", strings(g), .collections = MR_NAMES("mine", "others"));
    mr_summary_tensor(g, "raw", x, .no_collections = true);
    CHECK_STR(mr_node_name(text.node), "notes");
    CHECK_EQ(mr_graph_collection_count(g, MR_SUMMARIES), 3);
    CHECK_EQ(mr_graph_collection_count(g, "mine"), 1);
    CHECK_EQ(mr_graph_collection_count(g, "others"), 1);
    mr_tensor result = run_one(g, mr_summary_merge_all(g));
    Mr__Summary *summary = unpack(&result, &arena);
    CHECK_EQ(summary->n_value, 3);
    CHECK_STR(summary->value[0]->tag, "outer/loss");
    CHECK_STR(summary->value[1]->tag, "train/outer/train/loss");
    CHECK_NEAR(summary->value[1]->simple_value, 0.5, 0);
    mr_tensor_deinit(&result);
    result = run_one(g, text);
    summary = unpack(&result, &arena);
    CHECK_STR(summary->value[0]->metadata->plugin_data->plugin_name, "text");
    mr_tensor_deinit(&result);
    CHECK_OK(mr_graph_status(g, &error));
    mr_arena_deinit(&arena);
    mr_graph_free(g);
}

TEST(summaries_are_merged_by_list_key_and_scope)
{
    mr_error error = {0};
    mr_arena arena = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_constant_float(g, 1), a, b;
    CHECK(mr_summary_merge_all(g).node == nullptr);
    mr_graph_push_scope(g, "train");
    a = mr_summary_scalar(g, "a", x);
    mr_graph_pop_scope(g);
    b = mr_summary_scalar(g, "train_b", x);
    mr_summary_scalar(g, "c", x, .collections = MR_NAMES("key"));
    mr_tensor result = run_one(g, mr_summary_merge_all(g, .scope = "train/"));
    CHECK_EQ(unpack(&result, &arena)->n_value, 1);
    mr_tensor_deinit(&result);
    result = run_one(g, mr_summary_merge_all(g, .scope = "t.*(a|b):0"));
    CHECK_EQ(unpack(&result, &arena)->n_value, 2);
    mr_tensor_deinit(&result);
    CHECK(mr_summary_merge_all(g, .scope = "rain").node == nullptr);
    mr_output merged = mr_summary_merge_all(g, .key = "key", .name = "all");
    CHECK_STR(mr_node_name(merged.node), "all/all");
    merged = mr_summary_merge(g, MR_OUTPUTS(a, b), .collections = MR_NAMES("merged"));
    CHECK_EQ(mr_graph_collection_count(g, "merged"), 1);
    result = run_one(g, merged);
    CHECK_EQ(unpack(&result, &arena)->n_value, 2);
    mr_tensor_deinit(&result);
    CHECK_OK(mr_graph_status(g, &error));
    mr_arena_deinit(&arena);
    mr_graph_free(g);
}

enum { ELEMENTS = 97, THRESHOLDS = 11 };

static mr_output constant(mr_graph *g, mr_dtype dtype, const void *elements)
{
    mr_error error = {0};
    mr_tensor value = {0};
    CHECK_OK(mr_tensor_init_copy(&value, dtype, MR_SHAPE(ELEMENTS), elements, &error));
    mr_output output = mr_constant(g, &value, nullptr);
    mr_tensor_deinit(&value);
    return output;
}

/* The counts of one threshold, from all elements. */
static void expect_at(int threshold, const bool *labels, const float *predictions, const float *weights,
                      double counts[4])
{
    for (int i = 0; i < ELEMENTS; i++) {
        float p = fminf(1, fmaxf(0, predictions[i]));
        bool is_above = (int)(p * (THRESHOLDS - 1)) >= threshold;
        counts[is_above ? (labels[i] ? 0 : 1) : (labels[i] ? 3 : 2)] += (double)weights[i];
    }
}

TEST(pr_curve_counts_elements_above_each_threshold)
{
    mr_arena arena = {0};
    mr_graph *g = mr_graph_new();
    bool labels[ELEMENTS];
    float predictions[ELEMENTS], weights[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++) {
        labels[i] = i * 7 % 3 == 0;
        predictions[i] = (float)(i * 37 % 101) / 80.0f - 0.1f;
        weights[i] = (float)(i % 4);
    }
    mr_output summary = mr_summary_pr_curve(g, "pr", constant(g, MR_BOOL, labels), constant(g, MR_FLOAT, predictions),
                                            .weights = constant(g, MR_FLOAT, weights), .threshold_count = THRESHOLDS);
    CHECK_STR(mr_node_name(summary.node), "pr/pr_curves");
    mr_tensor result = run_one(g, summary);
    const Mr__Summary__Value *value = unpack(&result, &arena)->value[0];
    CHECK_STR(value->tag, "pr/pr_curves");
    CHECK_STR(value->metadata->display_name, "pr");
    CHECK_EQ(value->tensor->tensor_content.len, sizeof(float[6 * THRESHOLDS]));
    float curve[6 * THRESHOLDS];
    memcpy(curve, value->tensor->tensor_content.data, sizeof curve);
    for (int t = 0; t < THRESHOLDS; t++) {
        double counts[4] = {0};
        expect_at(t, labels, predictions, weights, counts);
        for (int row = 0; row < 4; row++) CHECK_NEAR(curve[row * THRESHOLDS + t], counts[row], 1e-4);
        CHECK_NEAR(curve[4 * THRESHOLDS + t], counts[0] / fmax(1e-7, counts[0] + counts[1]), 1e-5);
        CHECK_NEAR(curve[5 * THRESHOLDS + t], counts[0] / fmax(1e-7, counts[0] + counts[3]), 1e-5);
    }
    mr_tensor_deinit(&result);
    mr_arena_deinit(&arena);
    mr_graph_free(g);
}

#define X(expected, expression)                                                                                        \
    {                                                                                                                  \
        mr_error error = {0};                                                                                          \
        mr_graph *g = mr_graph_new();                                                                                  \
        mr_output x = mr_constant_float(g, 1), s = strings(g);                                                         \
        (void)s, (void)x;                                                                                              \
        mr_graph_push_scope(g, "s");                                                                                   \
        (void)(expression);                                                                                            \
        CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);                                                 \
        CHECK_CONTAINS(error.message, expected);                                                                       \
        (void)(expression);                                                                                            \
        mr_graph_free(g);                                                                                              \
    }

TEST(summary_mistakes_are_named)
{
    X("a summary has no name", mr_summary_scalar(g, nullptr, x))
    X("a summary has no name", mr_summary_text(g, "///", s))
    X("loss: max_outputs has no effect", mr_summary_scalar(g, "loss", x, .max_outputs = 2))
    X("loss: plugin_name has no effect", mr_summary_scalar(g, "loss", x, .plugin_name = "p"))
    X("t: family has no effect", mr_summary_text(g, "t", s, .family = "f"))
    X("t: text has dtype float, but must be string", mr_summary_text(g, "t", x))
    X("t: plugin_data has no effect without plugin_name", mr_summary_tensor(g, "t", x, .plugin_data = MR_STR("d")))
    X("family is empty", mr_summary_scalar(g, "loss", x, .family = ""))
    X("a name in collections is empty", mr_summary_scalar(g, "loss", x, .collections = MR_NAMES("")))
    X("collections have no effect with no_collections",
      mr_summary_scalar(g, "loss", x, .collections = MR_NAMES("a"), .no_collections = true))
    X("max_outputs is 0", mr_summary_audio(g, "a", x, x, .max_outputs = 0))
    X("threshold_count is 1", mr_summary_pr_curve(g, "pr", x, x, .threshold_count = 1))
    X("labels has dtype float, but must be bool", mr_summary_pr_curve(g, "pr", x, x))
    X("labels is not an output", mr_summary_pr_curve(g, "pr", (mr_output){0}, x))
    X("images_max is 0", mr_summary_image(g, "i", x, 0))
    X("the list of summaries is empty", mr_summary_merge(g, (mr_outputs){0}))
    X("key has no effect", mr_summary_merge(g, MR_OUTPUTS(s), .key = "k"))
    X("is not a regular expression", (mr_summary_scalar(g, "loss", x), mr_summary_merge_all(g, .scope = "a(")))
}
