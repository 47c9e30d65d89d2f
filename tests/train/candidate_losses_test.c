/* Sampled softmax and noise-contrastive estimation against a scalar model: losses, and the rows of the gradients. The
 * comparison with TensorFlow is tests/oracle/sampled_losses_oracle.py. */
#include "base/random.h"
#include "tests/test.h"

#include <float.h>
#include <millrace/millrace.h>

enum { CLASSES_MAX = 24, DIM_MAX = 5, BATCH_MAX = 6, TRUE_MAX = 3, SAMPLED_MAX = 9, PARTS_MAX = 4 };

typedef struct problem {
    bool is_softmax, removes_hits, subtracts_log;
    mr_partition_strategy strategy;
    int32_t classes, dim, batch, num_true, sampled, parts;
    double weights[CLASSES_MAX][DIM_MAX], biases[CLASSES_MAX], inputs[BATCH_MAX][DIM_MAX];
    int64_t labels[BATCH_MAX * TRUE_MAX], candidates[SAMPLED_MAX];
    double true_counts[BATCH_MAX * TRUE_MAX], sampled_counts[SAMPLED_MAX];
    /* results of the model: the loss of each example, and the gradients of their sum */
    double losses[BATCH_MAX], weight_grads[CLASSES_MAX][DIM_MAX], bias_grads[CLASSES_MAX];
} problem;

static double number(mr_random *random, double min, double max)
{
    const double value = min + (max - min) * (double)mr_random_below(random, 1 << 20) / (1 << 20);
    return (double)(float)value;
}

static void draw(problem *p, mr_random *random)
{
    *p = (problem){.is_softmax = mr_random_below(random, 2) != 0,
                   .removes_hits = mr_random_below(random, 2) != 0,
                   .subtracts_log = mr_random_below(random, 2) != 0,
                   .strategy = mr_random_below(random, 2) != 0 ? MR_PARTITION_DIV : MR_PARTITION_MOD,
                   .classes = 4 + (int32_t)mr_random_below(random, CLASSES_MAX - 3),
                   .dim = 1 + (int32_t)mr_random_below(random, DIM_MAX),
                   .batch = (int32_t)mr_random_below(random, BATCH_MAX + 1),
                   .num_true = 1 + (int32_t)mr_random_below(random, TRUE_MAX),
                   .sampled = 1 + (int32_t)mr_random_below(random, SAMPLED_MAX),
                   .parts = 1 + (int32_t)mr_random_below(random, PARTS_MAX)};
    for (int32_t i = 0; i < p->classes; i++) {
        p->biases[i] = number(random, -1, 1);
        for (int32_t j = 0; j < p->dim; j++) p->weights[i][j] = number(random, -1, 1);
    }
    for (int32_t i = 0; i < p->batch; i++)
        for (int32_t j = 0; j < p->dim; j++) p->inputs[i][j] = number(random, -1, 1);
    for (int32_t i = 0; i < p->batch * p->num_true; i++) {
        p->labels[i] = (int64_t)mr_random_below(random, (uint64_t)p->classes);
        p->true_counts[i] = number(random, 0.01, 2);
    }
    for (int32_t i = 0; i < p->sampled; i++) {
        p->candidates[i] = (int64_t)mr_random_below(random, (uint64_t)p->classes);
        p->sampled_counts[i] = number(random, 0.01, 2);
    }
}

/* ---- The model ---- */

static double logit(const problem *p, int32_t example, int64_t label, double count)
{
    double sum = p->biases[label];
    for (int32_t j = 0; j < p->dim; j++) sum += p->inputs[example][j] * p->weights[label][j];
    return p->subtracts_log ? sum - log(count) : sum;
}

/* Whether the candidate is a true class. Of equal candidates TensorFlow finds only the last one. */
static bool is_hit(const problem *p, int32_t example, int32_t candidate)
{
    for (int32_t i = candidate + 1; i < p->sampled; i++)
        if (p->candidates[i] == p->candidates[candidate]) return false;
    for (int32_t i = 0; i < p->num_true; i++)
        if (p->labels[example * p->num_true + i] == p->candidates[candidate]) return true;
    return false;
}

static void solve_example(problem *p, int32_t example)
{
    const int32_t count = p->num_true + p->sampled;
    double logits[TRUE_MAX + SAMPLED_MAX], targets[TRUE_MAX + SAMPLED_MAX], largest = -INFINITY, sum = 0;
    int64_t ids[TRUE_MAX + SAMPLED_MAX];
    for (int32_t i = 0; i < count; i++) {
        const int32_t at = example * p->num_true + i, s = i - p->num_true;
        const bool is_true = i < p->num_true;
        ids[i] = is_true ? p->labels[at] : p->candidates[s];
        targets[i] = is_true ? 1.0 / p->num_true : 0;
        logits[i] = logit(p, example, ids[i], is_true ? p->true_counts[at] : p->sampled_counts[s]);
        if (!is_true && p->removes_hits && is_hit(p, example, s)) logits[i] -= FLT_MAX;
        largest = fmax(largest, logits[i]);
    }
    for (int32_t i = 0; i < count; i++) sum += exp(logits[i] - largest);
    for (int32_t i = 0; i < count; i++) {
        const double x = logits[i], t = targets[i];
        double slope = exp(x - largest) / sum - t, loss = t * (largest + log(sum) - x);
        if (!p->is_softmax) {
            slope = 1 / (1 + exp(-x)) - t;
            loss = fmax(x, 0) - x * t + log1p(exp(-fabs(x)));
        }
        p->losses[example] += loss;
        p->bias_grads[ids[i]] += slope;
        for (int32_t j = 0; j < p->dim; j++) p->weight_grads[ids[i]][j] += slope * p->inputs[example][j];
    }
}

/* The part that has a class. */
static int32_t part_of(const problem *p, int32_t class)
{
    const int32_t each = p->classes / p->parts, extra = p->classes % p->parts;
    if (p->strategy == MR_PARTITION_MOD || p->parts == 1) return class % p->parts;
    return class < extra * (each + 1) ? class / (each + 1) : extra + (class - extra * (each + 1)) / each;
}

/* ---- The graph ---- */

static mr_output constant(mr_graph *g, mr_shape shape, const double *values, int32_t stride)
{
    float items[CLASSES_MAX * DIM_MAX + BATCH_MAX * TRUE_MAX];
    const int64_t count = mr_shape_count(shape), row = shape.rank == 2 ? shape.dims[1] : 1;
    for (int64_t i = 0; i < count; i++) items[i] = (float)values[i / row * stride + i % row];
    return mr_constant_floats(g, shape, items, nullptr);
}

static mr_output constant_ids(mr_graph *g, mr_shape shape, const int64_t *values, bool is_narrow)
{
    mr_error error = {0};
    mr_tensor ids = {0};
    CHECK_OK(mr_tensor_init_copy(&ids, MR_INT64, shape, values, &error));
    mr_output output = mr_constant(g, &ids, nullptr);
    mr_tensor_deinit(&ids);
    return is_narrow ? mr_cast(g, output, MR_INT32) : output;
}

static void make_parts(mr_graph *g, const problem *p, mr_variable *weights, mr_variable *biases)
{
    for (int32_t part = 0; part < p->parts; part++) {
        double rows[CLASSES_MAX][DIM_MAX] = {0}, values[CLASSES_MAX] = {0};
        int32_t count = 0;
        for (int32_t class = 0; class < p->classes; class ++) {
            if (part_of(p, class) != part) continue;
            memcpy(rows[count], p->weights[class], sizeof rows[count]);
            values[count++] = p->biases[class];
        }
        weights[part] = (mr_variable){.value = constant(g, MR_SHAPE(count, p->dim), rows[0], DIM_MAX)};
        biases[part] = (mr_variable){.value = constant(g, MR_SHAPE(count), values, 1)};
    }
}

static mr_sampled_loss_options options_of(mr_graph *g, const problem *p, bool is_narrow)
{
    const mr_shape trues = MR_SHAPE(p->batch, p->num_true), sampled = MR_SHAPE(p->sampled);
    return (mr_sampled_loss_options){.size = sizeof(mr_sampled_loss_options),
                                     .num_sampled = p->sampled,
                                     .num_classes = p->classes,
                                     .num_true = p->num_true,
                                     .subtract_log_q = p->subtracts_log,
                                     .remove_accidental_hits = p->removes_hits,
                                     .partition_strategy = p->strategy,
                                     .sampled_values = {constant_ids(g, sampled, p->candidates, is_narrow),
                                                        constant(g, trues, p->true_counts, p->num_true),
                                                        constant(g, sampled, p->sampled_counts, 1)}};
}

static mr_output make_loss(mr_graph *g, const problem *p, const mr_variable *weights, const mr_variable *biases,
                           bool is_narrow)
{
    const mr_sampled_loss_options o = options_of(g, p, is_narrow);
    mr_output inputs = constant(g, MR_SHAPE(p->batch, p->dim), p->inputs[0], DIM_MAX);
    mr_output labels = constant_ids(g, MR_SHAPE(p->batch, p->num_true), p->labels, is_narrow);
    const mr_variables w = {weights, p->parts}, b = {biases, p->parts};
    return p->is_softmax ? mr_sampled_softmax_loss_(g, w, b, labels, inputs, &o)
                         : mr_nce_loss_(g, w, b, labels, inputs, &o);
}

static void compare(const problem *p, const mr_tensor *results)
{
    for (int32_t i = 0; i < p->batch; i++)
        CHECK_NEAR(mr_tensor_floats(&results[0])[i], p->losses[i], 2e-5 * (1 + fabs(p->losses[i])));
    int32_t at[PARTS_MAX] = {0};
    for (int32_t class = 0; class < p->classes; class ++) {
        const int32_t part = part_of(p, class), row = at[part]++;
        const float *w = mr_tensor_floats(&results[1 + part]), *b = mr_tensor_floats(&results[1 + p->parts + part]);
        CHECK_NEAR(b[row], p->bias_grads[class], 5e-5);
        for (int32_t j = 0; j < p->dim; j++) CHECK_NEAR(w[row * p->dim + j], p->weight_grads[class][j], 5e-5);
    }
}

static void check_problem(problem *p, bool is_narrow)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    mr_variable weights[PARTS_MAX], biases[PARTS_MAX];
    mr_output xs[2 * PARTS_MAX], fetches[1 + 2 * PARTS_MAX], rows, indices;
    mr_tensor results[1 + 2 * PARTS_MAX] = {0};
    const int32_t count = 2 * p->parts;
    for (int32_t i = 0; i < p->batch; i++) solve_example(p, i);
    make_parts(g, p, weights, biases);
    fetches[0] = make_loss(g, p, weights, biases, is_narrow);
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_EQ(mr_output_shape(fetches[0]).rank, 1);
    CHECK_EQ(mr_output_shape(fetches[0]).dims[0], p->batch);
    for (int32_t i = 0; i < count; i++) xs[i] = i < p->parts ? weights[i].value : biases[i - p->parts].value;
    mr_gradients(g, MR_OUTPUTS_OF(fetches, 1), MR_OUTPUTS_OF(xs, count), nullptr, fetches + 1);
    CHECK_OK(mr_graph_status(g, &error));
    for (int32_t i = 1; i <= count; i++) CHECK(mr_gradient_rows(g, fetches[i], &rows, &indices));
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS_OF(fetches, count + 1), results, nullptr, 0, &error));
    compare(p, results);
    for (int32_t i = 0; i <= count; i++) mr_tensor_deinit(&results[i]);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(candidate_losses_match_a_scalar_model)
{
    for (uint64_t i = 0; i < 150; i++) {
        mr_random random = mr_random_at(test_seed(), i, 0, 0x63616e64);
        problem p;
        draw(&p, &random);
        check_problem(&p, i % 3 == 0);
    }
}

/* ---- Shapes, dtypes and names ---- */

/* Labels and inputs of unknown shape; weights and inputs of different dtypes. */
static void check_dtypes(mr_dtype of_weights, mr_dtype of_inputs, mr_dtype of_labels, double tolerance)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    problem p;
    mr_random random = mr_random_at(test_seed(), 5, 0, 0x63616e64);
    do draw(&p, &random);
    while (p.parts != 1 || p.batch == 0);
    for (int32_t i = 0; i < p.batch; i++) solve_example(&p, i);
    mr_output rows = constant(g, MR_SHAPE(p.classes, p.dim), p.weights[0], DIM_MAX);
    const mr_variable weights = {.value = mr_cast(g, rows, of_weights)};
    const mr_variable biases = {.value = mr_cast(g, constant(g, MR_SHAPE(p.classes), p.biases, 1), of_weights)};
    mr_output inputs = mr_cast(g, constant(g, MR_SHAPE(p.batch, p.dim), p.inputs[0], DIM_MAX), of_inputs);
    mr_output labels = mr_cast(g, constant_ids(g, MR_SHAPE(p.batch, p.num_true), p.labels, false), of_labels);
    const mr_sampled_loss_options known = options_of(g, &p, false);
    mr_output fed[] = {mr_placeholder(g, of_inputs), mr_placeholder(g, of_labels)};
    const mr_variables w = MR_VARIABLES(weights), b = MR_VARIABLES(biases);
    mr_output loss = p.is_softmax ? mr_sampled_softmax_loss_(g, w, b, fed[1], fed[0], &known)
                                  : mr_nce_loss_(g, w, b, fed[1], fed[0], &known);
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_EQ(mr_output_dtype(loss), of_inputs);
    loss = mr_cast(g, loss, MR_FLOAT);
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    mr_tensor values[2] = {0}, result = {0};
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(inputs, labels), values, nullptr, 0, &error));
    CHECK_OK(mr_session_run(session, MR_FEEDS({fed[0], values[0]}, {fed[1], values[1]}), MR_OUTPUTS(loss), &result,
                            nullptr, 0, &error));
    CHECK_EQ(mr_tensor_count(&result), p.batch);
    for (int32_t i = 0; i < p.batch; i++) CHECK_NEAR(mr_tensor_floats(&result)[i], p.losses[i], tolerance);
    mr_tensor_deinit(&values[0]);
    mr_tensor_deinit(&values[1]);
    mr_tensor_deinit(&result);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(candidate_losses_take_other_dtypes_and_unknown_shapes)
{
    check_dtypes(MR_FLOAT, MR_FLOAT, MR_INT32, 1e-4);
    check_dtypes(MR_FLOAT, MR_DOUBLE, MR_INT64, 1e-4);
    check_dtypes(MR_DOUBLE, MR_FLOAT, MR_INT64, 1e-4);
    check_dtypes(MR_FLOAT, MR_HALF, MR_INT32, 0.2);
}

TEST(candidate_losses_have_the_names_of_tensorflow)
{
    mr_graph *g = mr_graph_new();
    const mr_variable w = mr_get_variable(g, "w", MR_SHAPE(20, 4)), b = mr_get_variable(g, "b", MR_SHAPE(20));
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 4));
    mr_output y = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(-1, 1));
    for (int i = 0; i < 2; i++) {
        mr_nce_loss(g, MR_VARIABLES(w), MR_VARIABLES(b), y, x, .num_sampled = 5, .num_classes = 20);
        mr_sampled_softmax_loss(g, MR_VARIABLES(w), MR_VARIABLES(b), y, x, .num_sampled = 5, .num_classes = 20);
    }
    static const char *const names[] = {"nce_loss/LogUniformCandidateSampler",
                                        "nce_loss/embedding_lookup",
                                        "nce_loss/embedding_lookup_1",
                                        "nce_loss_1/LogUniformCandidateSampler",
                                        "sampled_softmax_loss/LogUniformCandidateSampler",
                                        "sampled_softmax_loss_1/ComputeAccidentalHits",
                                        "sampled_softmax_loss/sparse_indices",
                                        "labels_stop_gradient"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (mr_graph_find(g, names[i]) == nullptr) test_fail(__FILE__, __LINE__, "no node %s", names[i]);
    CHECK(mr_graph_find(g, "nce_loss/ComputeAccidentalHits") == nullptr);
    mr_graph_free(g);
}

/* ---- Training ---- */

static void train(bool is_softmax, bool use_resource)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    mr_graph_set_seed(g, 7);
    mr_variable weights = mr_get_variable(g, "weights", MR_SHAPE(1000, 8), .use_resource = use_resource);
    mr_variable biases = mr_get_variable(g, "biases", MR_SHAPE(1000), .use_resource = use_resource,
                                         .initializer = {.kind = MR_INIT_ZEROS});
    mr_output inputs = mr_get_variable(g, "inputs", MR_SHAPE(4, 8)).value;
    mr_output labels = constant_ids(g, MR_SHAPE(4, 2), (const int64_t[]){0, 7, 900, 3, 12, 12, 500, 0}, false);
    mr_output losses = is_softmax
                           ? mr_sampled_softmax_loss(g, MR_VARIABLES(weights), MR_VARIABLES(biases), labels, inputs,
                                                     .num_sampled = 16, .num_classes = 1000, .num_true = 2)
                           : mr_nce_loss(g, MR_VARIABLES(weights), MR_VARIABLES(biases), labels, inputs,
                                         .num_sampled = 16, .num_classes = 1000, .num_true = 2);
    mr_output loss = mr_mean(g, losses, mr_constant_ints(g, MR_INTS(0)));
    mr_node *step = mr_minimize(g, mr_gradient_descent(.learning_rate = 0.5f), loss, (mr_output){0});
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    mr_session_trace(session, true);
    double first = 0, last = 0;
    for (int i = 0; i < 100; i++) {
        mr_tensor value = {0};
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(loss), &value, &step, 1, &error));
        *(i < 10 ? &first : &last) += (double)mr_tensor_floats(&value)[0] / (i < 10 ? 10 : 90);
        mr_tensor_deinit(&value);
    }
    CHECK(last < 0.8 * first);
    /* No step has computed a dense gradient of the tables. */
    mr_node_time times[256];
    const int32_t count = mr_session_trace_times(session, times, 256);
    CHECK(count > 0);
    for (int32_t i = 0; i < count && i < 256; i++) CHECK(!strstr(times[i].op, "UnsortedSegmentSum"));
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(candidate_losses_train_without_dense_gradients)
{
    for (int i = 0; i < 4; i++) train(i % 2 != 0, i >= 2);
}

/* ---- Mistakes ---- */

#define OPTIONS .num_sampled = 5, .num_classes = 20
#define REFUSED(text, ...)                                                                                             \
    do {                                                                                                               \
        mr_error error = {0};                                                                                          \
        mr_graph *g = mr_graph_new();                                                                                  \
        mr_output inputs = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 4));                                      \
        mr_output labels = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(-1, 1));                                      \
        mr_variable w = mr_get_variable(g, "w", MR_SHAPE(20, 4)), b = mr_get_variable(g, "b", MR_SHAPE(20));           \
        mr_output used[] = {inputs, labels, w.value, b.value};                                                         \
        (void)used;                                                                                                    \
        __VA_ARGS__;                                                                                                   \
        CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);                                                 \
        CHECK_STR(error.message, text);                                                                                \
        mr_graph_free(g);                                                                                              \
    } while (0)
#define NCE(w_, b_, labels_, inputs_, ...)                                                                             \
    mr_nce_loss(g, MR_VARIABLES(w_), MR_VARIABLES(b_), labels_, inputs_, __VA_ARGS__)

TEST(candidate_losses_say_which_size_is_wrong)
{
    REFUSED("nce_loss: num_sampled is required, and must be at least 1", NCE(w, b, labels, inputs, .num_classes = 20));
    REFUSED("nce_loss: num_classes is required, and must be at least 1", NCE(w, b, labels, inputs, .num_sampled = 5));
    REFUSED("own: num_sampled is -1, but must be at least 1",
            NCE(w, b, labels, inputs, OPTIONS, .num_sampled = -1, .name = "own"));
    REFUSED("nce_loss: num_sampled is 2147483648, but must be at most 2147483647",
            NCE(w, b, labels, inputs, OPTIONS, .num_sampled = (int64_t)INT32_MAX + 1));
    REFUSED("nce_loss: num_true is 0, but must be at least 1", NCE(w, b, labels, inputs, OPTIONS, .num_true = 0));
    REFUSED("nce_loss: num_sampled is 21, but there are only 20 classes to sample from",
            NCE(w, b, labels, inputs, OPTIONS, .num_sampled = 21));
    REFUSED("nce_loss: weights have 20 rows, but num_classes is 21",
            NCE(w, b, labels, inputs, OPTIONS, .num_classes = 21));
    REFUSED("nce_loss: labels have shape [?,1], but must have [?,2]",
            NCE(w, b, labels, inputs, OPTIONS, .num_true = 2));
    REFUSED("nce_loss: partition_strategy 7 is not one of mr_partition_strategy",
            NCE(w, b, labels, inputs, OPTIONS, .partition_strategy = (mr_partition_strategy)7));
}

TEST(candidate_losses_say_which_input_is_wrong)
{
    const mr_variable none = {0};
    REFUSED("nce_loss: weights have shape [20], but must have [?,4]", NCE(b, b, labels, inputs, OPTIONS));
    REFUSED("nce_loss: biases have shape [20,4], but must have [?]", NCE(w, w, labels, inputs, OPTIONS));
    REFUSED("nce_loss: weights are required", NCE(none, b, labels, inputs, OPTIONS));
    REFUSED("nce_loss: biases have no part",
            mr_nce_loss(g, MR_VARIABLES(w), (mr_variables){0}, labels, inputs, OPTIONS));
    REFUSED("nce_loss: labels are float, but must be int32 or int64",
            NCE(w, b, mr_placeholder(g, MR_FLOAT), inputs, OPTIONS));
    REFUSED("nce_loss: inputs are int64, but must be floating",
            NCE(w, b, labels, mr_placeholder(g, MR_INT64), OPTIONS));
    REFUSED("nce_loss: inputs are required", NCE(w, b, labels, (mr_output){0}, OPTIONS));
    REFUSED("nce_loss: true_expected_count are required",
            NCE(w, b, labels, inputs, OPTIONS,
                .sampled_values.sampled_candidates =
                    constant_ids(g, MR_SHAPE(5), (const int64_t[]){1, 2, 3, 4, 5}, false)));
    REFUSED("sampled_softmax_loss: sampled_candidates have shape [2], but must have [5]",
            mr_sampled_softmax_loss(g, MR_VARIABLES(w), MR_VARIABLES(b), labels, inputs, OPTIONS,
                                    .sampled_values.sampled_candidates =
                                        constant_ids(g, MR_SHAPE(2), (const int64_t[]){1, 2}, false)));
    REFUSED("sampled_softmax_loss: seed has no effect together with sampled_values",
            mr_sampled_softmax_loss(g, MR_VARIABLES(w), MR_VARIABLES(b), labels, inputs, OPTIONS, .seed = 3,
                                    .sampled_values.sampled_candidates =
                                        constant_ids(g, MR_SHAPE(2), (const int64_t[]){1, 2}, false)));
    CHECK(mr_nce_loss_(nullptr, (mr_variables){0}, (mr_variables){0}, (mr_output){0}, (mr_output){0}, nullptr).node ==
          nullptr);
    REFUSED("nce_loss: num_sampled is required, and must be at least 1",
            mr_nce_loss_(g, MR_VARIABLES(w), MR_VARIABLES(b), labels, inputs, nullptr));
}
