/* Metrics of the k best classes: against a scalar model, with batches of every size; and mistakes. */
#include "base/random.h"
#include "tests/test.h"

#include <math.h>
#include <millrace/millrace.h>
#include <string.h>

enum { ROWS_MAX = 5, CLASSES_MAX = 7, LABELS_MAX = 4 };

typedef struct batch {
    int rows, classes, labels;
    float scores[ROWS_MAX * CLASSES_MAX];
    int64_t ids[ROWS_MAX * LABELS_MAX]; /* -2 to classes + 1 */
    float weights[ROWS_MAX];
} batch;

static batch make_batch(mr_random *random, int rows, int classes, int labels)
{
    batch b = {.rows = rows, .classes = classes, .labels = labels};
    for (int i = 0; i < rows * classes; i++) b.scores[i] = (float)mr_random_below(random, 6);
    for (int i = 0; i < rows * labels; i++) b.ids[i] = (int64_t)mr_random_below(random, (uint64_t)classes + 4) - 2;
    for (int i = 0; i < rows; i++) b.weights[i] = (float)mr_random_below(random, 4) * 0.25f;
    return b;
}

/* ---- The model ---- */

typedef struct sums {
    double hits, missed, wrong, precision, rows;
} sums;

static bool has_label(const batch *b, int row, int64_t id)
{
    for (int i = 0; i < b->labels; i++)
        if (b->ids[row * b->labels + i] == id) return true;
    return false;
}

/* Whether the class is one of the k with the highest scores; the first of equal ones is better. */
static int rank_of(const batch *b, int row, int64_t id)
{
    int rank = 0;
    const float *scores = &b->scores[row * b->classes];
    for (int i = 0; i < b->classes; i++) rank += scores[i] > scores[id] || (scores[i] == scores[id] && i < id);
    return rank;
}

/* Dense labels are counted with duplicates and without those that are no class. Sparse ones are counted as a set, in
 * which those above the classes are one. */
static double relevant_count(const batch *b, int row, bool is_sparse)
{
    double count = 0, above = 0;
    for (int i = 0; i < b->labels && !is_sparse; i++)
        count += b->ids[row * b->labels + i] >= 0 && b->ids[row * b->labels + i] < b->classes;
    for (int64_t id = -2; id < b->classes && is_sparse; id++) count += id != -1 && has_label(b, row, id);
    for (int i = 0; i < b->labels && is_sparse; i++) {
        int64_t id = b->ids[row * b->labels + i];
        if (id == -1 || id >= b->classes) above = 1;
    }
    return count + above;
}

static void add_row(const batch *b, int row, int k, int64_t class_id, bool is_sparse, double weight, sums *sums)
{
    double precision = 0;
    int hits = 0;
    for (int64_t id = -2; id < b->classes + 2; id++) { /* as a set */
        bool is_label = has_label(b, row, id), is_class = id >= 0 && id < b->classes;
        bool is_best = is_class && rank_of(b, row, id) < k, counts = class_id == MR_COUNT_UNSET || class_id == id;
        sums->hits += counts && is_label && is_best ? weight : 0;
        sums->missed += counts && is_label && !is_best ? weight : 0;
        sums->wrong += counts && !is_label && is_best ? weight : 0;
    }
    for (int rank = 0; rank < k; rank++)
        for (int id = 0; id < b->classes; id++)
            if (rank_of(b, row, id) == rank && has_label(b, row, id)) precision += (double)++hits / (rank + 1);
    sums->precision += precision / fmin(relevant_count(b, row, is_sparse), k) * weight;
    sums->rows += weight;
}

/* ---- Against the model ---- */

static void check_scalar(mr_session *session, const char *what, mr_output output, const mr_feed *feeds, int32_t count,
                         double expected)
{
    mr_error error = {0};
    mr_tensor result = {0};
    CHECK_OK(mr_session_run(session, (mr_feeds){feeds, count}, MR_OUTPUTS(output), &result, nullptr, 0, &error));
    CHECK_EQ(result.dtype, MR_DOUBLE);
    double got = result.data != nullptr ? *(const double *)mr_tensor_data(&result) : -1;
    if (isnan(expected) ? !isnan(got) : !(fabs(got - expected) <= 1e-12))
        test_fail(__FILE__, __LINE__, "%s is %g instead of %g", what, got, expected);
    mr_tensor_deinit(&result);
}

enum { SCORES, LABELS, WEIGHTS, INDICES, SHAPE, FEED_COUNT };

static int32_t make_feeds(const batch *b, const mr_output *outputs, bool is_sparse, mr_feed *feeds)
{
    mr_error error = {0};
    int64_t indices[2 * ROWS_MAX * LABELS_MAX], shape[2] = {b->rows, b->labels};
    int count = b->rows * b->labels;
    for (int i = 0; i < count; i++) {
        indices[2 * i] = i / b->labels;
        indices[2 * i + 1] = i % b->labels;
    }
    for (int i = 0; i < FEED_COUNT; i++) feeds[i] = (mr_feed){.output = outputs[i]};
    CHECK_OK(mr_tensor_init_copy(&feeds[SCORES].value, MR_FLOAT, MR_SHAPE(b->rows, b->classes), b->scores, &error));
    mr_shape of_labels = is_sparse ? MR_SHAPE(count) : MR_SHAPE(b->rows, b->labels);
    CHECK_OK(mr_tensor_init_copy(&feeds[LABELS].value, MR_INT64, of_labels, b->ids, &error));
    CHECK_OK(mr_tensor_init_copy(&feeds[WEIGHTS].value, MR_FLOAT, MR_SHAPE(b->rows), b->weights, &error));
    CHECK_OK(mr_tensor_init_copy(&feeds[INDICES].value, MR_INT64, MR_SHAPE(count, 2), indices, &error));
    CHECK_OK(mr_tensor_init_copy(&feeds[SHAPE].value, MR_INT64, MR_SHAPE(2), shape, &error));
    return is_sparse ? FEED_COUNT : INDICES;
}

static mr_output make_input(mr_graph *g, mr_dtype dtype, mr_shape shape)
{
    return mr_placeholder(g, dtype, .shape = shape);
}

/* Updates the metrics of one graph with several batches. */
static void check_graph(mr_random *random, bool is_sparse, bool is_weighted)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    int classes = 1 + (int)mr_random_below(random, CLASSES_MAX),
        k = 1 + (int)mr_random_below(random, (uint64_t)classes);
    int32_t class_id = (int32_t)mr_random_below(random, (uint64_t)classes + 4) - 2;
    if (mr_random_below(random, 2) == 0) class_id = MR_COUNT_UNSET;
    mr_output inputs[FEED_COUNT] = {
        make_input(g, MR_FLOAT, MR_SHAPE(-1, classes)),
        make_input(g, MR_INT64, is_sparse ? MR_SHAPE(-1) : MR_SHAPE(-1, -1)),
        make_input(g, MR_FLOAT, MR_SHAPE(-1)),
        make_input(g, MR_INT64, MR_SHAPE(-1, 2)),
        make_input(g, MR_INT64, MR_SHAPE(2)),
    };
    mr_output none = {0}, labels = inputs[LABELS], scores = inputs[SCORES];
    const mr_metric_at_k_options options = {.size = sizeof options,
                                            .weights = is_weighted ? inputs[WEIGHTS] : none,
                                            .label_indices = is_sparse ? inputs[INDICES] : none,
                                            .label_shape = is_sparse ? inputs[SHAPE] : none,
                                            .class_id = class_id,
                                            .k = MR_COUNT_UNSET};
    mr_metric_at_k_options of_all = options;
    of_all.class_id = MR_COUNT_UNSET;
    mr_metric recall = mr_metric_recall_at_k_(g, labels, scores, k, &options);
    mr_metric precision = mr_metric_precision_at_k_(g, labels, scores, k, &options);
    mr_metric average = mr_metric_average_precision_at_k_(g, labels, scores, k, &of_all);
    mr_node *reset = mr_initialize_variables(g, MR_METRIC_VARIABLES, "reset");
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &reset, 1, &error));
    sums sums = {0};
    for (int i = 0; i < 4; i++) {
        batch b = make_batch(random, (int)mr_random_below(random, ROWS_MAX + 1), classes,
                             (int)mr_random_below(random, LABELS_MAX + 1));
        mr_feed feeds[FEED_COUNT];
        int32_t count = make_feeds(&b, inputs, is_sparse, feeds);
        for (int row = 0; row < b.rows; row++)
            add_row(&b, row, k, class_id, is_sparse, is_weighted ? (double)b.weights[row] : 1, &sums);
        double mean = sums.rows == 0 ? 0 : sums.precision / sums.rows;
        check_scalar(session, "recall", recall.update, feeds, count, sums.hits / (sums.hits + sums.missed));
        check_scalar(session, "precision", precision.update, feeds, count, sums.hits / (sums.hits + sums.wrong));
        check_scalar(session, "average precision", average.update, feeds, count, mean);
        check_scalar(session, "value of average precision", average.value, nullptr, 0, mean);
        for (int j = 0; j < FEED_COUNT; j++) mr_tensor_deinit(&feeds[j].value);
    }
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(metrics_at_k_are_those_of_the_model)
{
    mr_random random = mr_random_at(test_seed(), 0, 0, 0);
    for (int i = 0; i < 200; i++) check_graph(&random, i % 2 == 1, i % 4 >= 2);
}

/* ---- Mistakes ---- */

static void check_refused(mr_graph *g, const char *part)
{
    mr_error error = {0};
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, part);
    const char *colon = strchr(error.message, ':'); /* the scope is named once */
    CHECK(colon == nullptr || strncmp(colon + 2, error.message, (size_t)(colon - error.message + 1)) != 0);
    mr_graph_free(g);
}

TEST(metrics_at_k_say_what_does_not_fit)
{
    const mr_shape rows = MR_SHAPE(4, 3), scores = MR_SHAPE(4, 6), vector = MR_SHAPE(4);
    const mr_output none = {0};
    mr_graph *g = mr_graph_new();
    mr_metric_recall_at_k(g, make_input(g, MR_INT64, rows), make_input(g, MR_FLOAT, scores), 0);
    check_refused(g, "recall_at_0: k is 0, but must be at least 1");

    g = mr_graph_new();
    mr_metric_average_precision_at_k(g, make_input(g, MR_INT64, rows), make_input(g, MR_FLOAT, scores), INT32_MIN);
    check_refused(g, "but must be at least 1");

    g = mr_graph_new();
    mr_metric_precision_at_k(g, make_input(g, MR_INT64, rows), make_input(g, MR_FLOAT, scores), 7);
    check_refused(g, "precision_at_7: k is 7, but predictions have only 6 classes");

    g = mr_graph_new();
    mr_metric_precision_at_k(g, make_input(g, MR_FLOAT, rows), make_input(g, MR_FLOAT, scores), 1);
    check_refused(g, "precision_at_1: labels have dtype float, expected class ids of int64");

    g = mr_graph_new();
    mr_metric_recall_at_k(g, none, make_input(g, MR_FLOAT, scores), 1);
    check_refused(g, "recall_at_1: there are no labels");

    g = mr_graph_new();
    mr_metric_recall_at_top_k(g, make_input(g, MR_INT64, rows), none);
    check_refused(g, "recall_at_k: there are no predictions");

    g = mr_graph_new();
    mr_metric_recall_at_top_k(g, make_input(g, MR_INT64, rows), make_input(g, MR_FLOAT, scores));
    check_refused(g, "predictions have dtype float, expected class ids of int32 or int64");

    g = mr_graph_new();
    mr_metric_recall_at_k(g, make_input(g, MR_INT64, vector), make_input(g, MR_FLOAT, vector), 1);
    check_refused(g, "predictions have shape [4], expected [..., classes]");

    g = mr_graph_new();
    mr_metric_recall_at_k(g, make_input(g, MR_INT64, MR_SHAPE(5, 3)), make_input(g, MR_FLOAT, scores), 2);
    check_refused(g, "labels have shape [5,3], but the best classes [4,2]: they may differ in the last dimension only");

    g = mr_graph_new();
    mr_metric_recall_at_k(g, make_input(g, MR_INT64, rows), make_input(g, MR_FLOAT, scores), 2,
                          .weights = make_input(g, MR_FLOAT, rows));
    check_refused(g, "weights of shape [4,3] do not fit values of shape [4]");
}

TEST(metrics_at_k_refuse_options_without_effect_and_half_sparse_labels)
{
    const mr_shape rows = MR_SHAPE(4, 3), scores = MR_SHAPE(4, 6), vector = MR_SHAPE(-1);
    mr_graph *g = mr_graph_new();
    mr_metric_average_precision_at_k(g, make_input(g, MR_INT64, rows), make_input(g, MR_FLOAT, scores), 1,
                                     .class_id = 2);
    check_refused(g, "average_precision_at_1: class_id has no effect for this metric");

    g = mr_graph_new();
    mr_metric_recall_at_k(g, make_input(g, MR_INT64, rows), make_input(g, MR_FLOAT, scores), 1, .k = 2);
    check_refused(g, "recall_at_1: the option k has no effect for this metric");

    g = mr_graph_new();
    mr_metric_recall_at_top_k(g, make_input(g, MR_INT64, rows), make_input(g, MR_INT64, scores), .k = -3);
    check_refused(g, "k is -3, but must be at least 1");

    g = mr_graph_new();
    mr_metric_recall_at_k(g, make_input(g, MR_INT64, vector), make_input(g, MR_FLOAT, scores), 1,
                          .label_indices = make_input(g, MR_INT64, MR_SHAPE(-1, 2)));
    check_refused(g, "recall_at_1: sparse labels need both label_indices and label_shape");

    g = mr_graph_new();
    mr_metric_recall_at_k(g, make_input(g, MR_INT64, vector), make_input(g, MR_FLOAT, scores), 1,
                          .label_indices = make_input(g, MR_INT64, MR_SHAPE(-1, 4)),
                          .label_shape = make_input(g, MR_INT64, MR_SHAPE(4)));
    check_refused(g, "sparse labels have rank 4, but predictions have rank 2: expected the same rank, or one less");

    g = mr_graph_new();
    mr_metric_recall_at_k(g, make_input(g, MR_INT64, rows), make_input(g, MR_FLOAT, scores), 1,
                          .label_indices = make_input(g, MR_INT64, MR_SHAPE(-1, 2)),
                          .label_shape = make_input(g, MR_INT64, MR_SHAPE(2)));
    check_refused(g, "the values of sparse labels have shape [4,3], expected [count]");

    g = mr_graph_new();
    mr_error error = {0};
    mr_metric_average_precision_at_k(g, make_input(g, MR_INT64, vector), make_input(g, MR_FLOAT, MR_SHAPE(-1, -1)),
                                     INT32_MAX, .label_indices = make_input(g, MR_INT64, MR_SHAPE(-1, 2)),
                                     .label_shape = make_input(g, MR_INT64, MR_SHAPE(2)));
    CHECK_STATUS(mr_graph_status(g, &error), MR_UNIMPLEMENTED);
    CHECK_CONTAINS(error.message, "may be at most 65536 with sparse labels");
    mr_graph_free(g);
}

TEST(metrics_at_k_are_collected_under_names_of_their_own)
{
    mr_graph *g = mr_graph_new();
    mr_output labels = make_input(g, MR_INT64, MR_SHAPE(4)), scores = make_input(g, MR_FLOAT, MR_SHAPE(4, 6));
    char name[MR_OUTPUT_NAME_SIZE];
    for (int i = 0; i < 2; i++) {
        mr_metric m = mr_metric_recall_at_k(g, labels, scores, 3, .class_id = 0, .values_collection = "values",
                                            .updates_collection = "updates", .name = "mine");
        CHECK_STR(mr_output_name(m.value, name, sizeof name), i == 0 ? "mine:0" : "mine_1:0");
    }
    mr_variable first = mr_graph_variable(g, MR_METRIC_VARIABLES, 0);
    CHECK_STR(mr_node_name(first.ref.node), "mine/true_positive_at_3_class0");
    CHECK_EQ(mr_graph_collection_count(g, "values"), 2);
    CHECK_EQ(mr_graph_collection_count(g, "updates"), 2);
    CHECK_EQ(mr_graph_variable_count(g, MR_METRIC_VARIABLES), 4);
    CHECK_EQ(mr_graph_variable_count(g, MR_LOCAL_VARIABLES), 4);
    CHECK_EQ(mr_graph_variable_count(g, MR_GLOBAL_VARIABLES), 0);
    mr_graph_free(g);
}

/* What only the run can find is an error of the run, and does not change the metric. */
TEST(metrics_at_k_refuse_bad_labels_in_the_run)
{
    static const struct {
        int64_t indices[4], shape[2];
        const char *message;
    } cases[] = {
        {{0, 0, 1, 0}, {2, 1}, nullptr},
        {{0, 0, 1, 0}, {3, 1}, "Mismatched shapes"},
        {{1, 0, 0, 0}, {2, 1}, "out of order"},
        {{0, 0, 0, 0}, {2, 1}, "repeated"},
        {{0, 0, 2, 0}, {2, 1}, "is outside dimension"},
        {{0, -1, 1, 0}, {2, 1}, "is outside dimension"},
    };
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output labels = make_input(g, MR_INT64, MR_SHAPE(-1)), scores = make_input(g, MR_FLOAT, MR_SHAPE(-1, -1));
    mr_output indices = make_input(g, MR_INT64, MR_SHAPE(-1, -1)), shape = make_input(g, MR_INT64, MR_SHAPE(-1));
    mr_metric m = mr_metric_recall_at_k(g, labels, scores, 1, .label_indices = indices, .label_shape = shape);
    mr_node *reset = mr_initialize_variables(g, MR_METRIC_VARIABLES, "reset");
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &reset, 1, &error));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mr_feed feeds[4] = {{.output = labels}, {.output = scores}, {.output = indices}, {.output = shape}};
        CHECK_OK(mr_tensor_init_copy(&feeds[0].value, MR_INT64, MR_SHAPE(2), (int64_t[]){0, 1}, &error));
        CHECK_OK(mr_tensor_init_copy(&feeds[1].value, MR_FLOAT, MR_SHAPE(2, 2), (float[]){1, 0, 1, 0}, &error));
        CHECK_OK(mr_tensor_init_copy(&feeds[2].value, MR_INT64, MR_SHAPE(2, 2), cases[i].indices, &error));
        CHECK_OK(mr_tensor_init_copy(&feeds[3].value, MR_INT64, MR_SHAPE(2), cases[i].shape, &error));
        mr_tensor result = {0};
        mr_status status =
            mr_session_run(session, (mr_feeds){feeds, 4}, MR_OUTPUTS(m.update), &result, nullptr, 0, &error);
        CHECK_EQ(status, cases[i].message == nullptr ? MR_OK : MR_INVALID_ARGUMENT);
        if (cases[i].message != nullptr) CHECK_CONTAINS(error.message, cases[i].message);
        mr_tensor_deinit(&result);
        check_scalar(session, "recall", m.value, nullptr, 0, 0.5);
        for (int j = 0; j < 4; j++) mr_tensor_deinit(&feeds[j].value);
    }
    mr_session_free(session);
    mr_graph_free(g);
}
