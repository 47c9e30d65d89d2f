/* Metrics: mistakes get one clear sentence, and the variables can be reset. */
#include "tests/test.h"

#include <millrace/millrace.h>

static void check_refused(mr_graph *g, const char *part)
{
    mr_error error = {0};
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, part);
    const char *colon = strchr(error.message, ':'); /* the scope is named once */
    CHECK(colon == nullptr || strncmp(colon + 2, error.message, (size_t)(colon - error.message + 1)) != 0);
    mr_graph_free(g);
}

static mr_output vector(mr_graph *g, int64_t size)
{
    return mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(size));
}

TEST(metrics_say_what_does_not_fit)
{
    mr_graph *g = mr_graph_new();
    mr_metric_accuracy(g, vector(g, 3), vector(g, 4));
    check_refused(g, "accuracy: labels have shape [3], but predictions [4]");

    g = mr_graph_new();
    mr_metric_mean(g, vector(g, 3), .threshold_count = 5);
    check_refused(g, "mean: threshold_count has no effect for this metric");

    g = mr_graph_new();
    mr_metric_auc(g, vector(g, 3), vector(g, 3), .threshold_count = 1);
    check_refused(g, "threshold_count");

    g = mr_graph_new();
    mr_metric_auc(g, vector(g, 3), vector(g, 3), .threshold_count = 5, .thresholds = MR_FLOATS(0.5f));
    check_refused(g, "auc: threshold_count has no effect with thresholds");

    g = mr_graph_new();
    mr_metric_auc(g, vector(g, 3), vector(g, 3), .thresholds = MR_FLOATS(0.5f, 1.5f));
    check_refused(g, "auc: a threshold is 1.5, but must be in [0, 1]");

    g = mr_graph_new();
    mr_metric_auc(g, vector(g, 3), vector(g, 3), .thresholds = (mr_floats){nullptr, 3});
    check_refused(g, "auc: there are no thresholds");

    g = mr_graph_new();
    mr_metric_recall(g, vector(g, 3), vector(g, 3), .thresholds = MR_FLOATS(0.5f));
    check_refused(g, "recall: the option thresholds has no effect for this metric");

    g = mr_graph_new();
    mr_metric_auc(g, vector(g, 3), vector(g, 3), .summation = (mr_auc_summation)7);
    check_refused(g, "summation 7");

    g = mr_graph_new();
    mr_metric_mean_tensor(g, vector(g, -1));
    check_refused(g, "the shape [?] of the values is not fully known");

    g = mr_graph_new();
    mr_metric_mean_iou(g, vector(g, 3), vector(g, 3), 0);
    check_refused(g, "class_count");

    g = mr_graph_new();
    mr_metric_recall_at_thresholds(g, vector(g, 3), vector(g, 3), (mr_floats){0});
    check_refused(g, "there are no thresholds");

    g = mr_graph_new();
    mr_metric_sensitivity_at_specificity(g, vector(g, 3), vector(g, 3), 1.5f);
    check_refused(g, "specificity");

    g = mr_graph_new();
    mr_metric_mean(g, vector(g, 3), .weights = vector(g, 2));
    check_refused(g, "mean: weights of shape [2] do not fit values of shape [3]");
}

TEST(metrics_are_collected_and_reset)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output values = mr_constant_floats(g, MR_SHAPE(2), (float[]){1, 3}, nullptr);
    mr_metric mean = mr_metric_mean(g, values, .values_collection = "values", .updates_collection = "updates");
    mr_node *reset = mr_initialize_variables(g, MR_METRIC_VARIABLES, "reset");
    CHECK_EQ(mr_graph_collection_count(g, "values"), 1);
    CHECK_EQ(mr_graph_collection_count(g, "updates"), 1);
    CHECK_EQ(mr_graph_variable_count(g, MR_METRIC_VARIABLES), 2);
    CHECK_EQ(mr_graph_variable_count(g, MR_LOCAL_VARIABLES), 2);
    CHECK_EQ(mr_graph_variable_count(g, MR_GLOBAL_VARIABLES), 0);
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    for (int i = 0; i < 3; i++) {
        mr_tensor result = {0};
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &reset, 1, &error));
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(mean.value), &result, nullptr, 0, &error));
        CHECK_NEAR(mr_tensor_floats(&result)[0], 0, 0);
        mr_tensor_deinit(&result);
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(mean.update), &result, nullptr, 0, &error));
        CHECK_NEAR(mr_tensor_floats(&result)[0], 2, 0);
        mr_tensor_deinit(&result);
    }
    mr_session_free(session);
    mr_graph_free(g);
}

/* As TensorFlow's assertions: a run with other predictions fails, and counts nothing. */
TEST(metrics_at_thresholds_take_probabilities)
{
    const float good[] = {0, 1, 0.5f}, bad[][3] = {{0, 1.5f, 0}, {-0.25f, 0, 1}, {0, NAN, 1}};
    for (int kind = 0; kind < 3; kind++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_output labels = mr_constant_floats(g, MR_SHAPE(3), (float[]){0, 1, 1}, "labels");
        mr_output predictions = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(3));
        const mr_floats thresholds = MR_FLOATS(0.25f, 0.75f);
        mr_metric metric = kind == 0   ? mr_metric_auc(g, labels, predictions)
                           : kind == 1 ? mr_metric_precision_at_thresholds(g, labels, predictions, thresholds)
                                       : mr_metric_true_positives_at_thresholds(g, labels, predictions, thresholds);
        mr_node *init = mr_initialize_variables(g, MR_LOCAL_VARIABLES, "init");
        mr_session *session = nullptr;
        CHECK_OK(mr_session_new(g, nullptr, &session, &error));
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
        for (int i = -1; i < 3; i++) {
            mr_tensor value = {0}, result = {0};
            CHECK_OK(mr_tensor_init_copy(&value, MR_FLOAT, MR_SHAPE(3), i < 0 ? good : bad[i], &error));
            mr_status status = mr_session_run(session, MR_FEEDS({predictions, value}), MR_OUTPUTS(metric.update),
                                              &result, nullptr, 0, &error);
            CHECK_EQ(status, i < 0 ? MR_OK : MR_INVALID_ARGUMENT);
            if (i >= 0) CHECK_CONTAINS(error.message, "predictions must be in [0, 1]");
            mr_tensor_deinit(&value);
            mr_tensor_deinit(&result);
        }
        mr_session_free(session);
        mr_graph_free(g);
    }
}

/* What follows the refused option writes no thresholds. */
TEST(metrics_with_too_few_thresholds_are_refused)
{
    for (int32_t count = -1; count < 2; count++)
        for (int what = 0; what < 3; what++) {
            mr_error error = {0};
            mr_graph *g = mr_graph_new();
            mr_output labels = mr_placeholder(g, MR_BOOL, .shape = MR_SHAPE(3));
            mr_output predictions = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(3));
            if (what == 0) (void)mr_metric_auc(g, labels, predictions, .threshold_count = count);
            if (what == 1)
                (void)mr_metric_sensitivity_at_specificity(g, labels, predictions, 0.5f, .threshold_count = count);
            if (what == 2)
                (void)mr_metric_specificity_at_sensitivity(g, labels, predictions, 0.5f, .threshold_count = count);
            CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
            CHECK_CONTAINS(error.message, "threshold_count is ");
            mr_graph_free(g);
        }
}

TEST(metrics_and_curves_with_too_many_thresholds_are_refused)
{
    mr_error error = {0};
    for (int what = 0; what < 2; what++) {
        mr_graph *g = mr_graph_new();
        mr_output labels = mr_placeholder(g, MR_BOOL, .shape = MR_SHAPE(3));
        mr_output predictions = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(3));
        if (what == 0) (void)mr_metric_auc(g, labels, predictions, .threshold_count = INT32_MAX);
        if (what == 1) (void)mr_summary_pr_curve(g, "curve", labels, predictions, .threshold_count = INT32_MAX);
        CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "at most 1000000");
        mr_graph_free(g);
    }
}
