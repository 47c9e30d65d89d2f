/* wide-and-deep: predicts who earns much, as TensorFlow's tutorial with the census. A wide linear part memorizes
 * which education pays in which occupation; a deep part generalizes from age, hours of work and embeddings.
 *
 *     wide-and-deep [STEPS]
 *
 * Both parts are trained at once, the wide one with Ftrl, the deep one with Adagrad. Prints accuracy and AUC for people
 * that the model has not seen, before and after the training. */
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 200, EVALUATION_BATCHES = 20, OCCUPATIONS = 6, EDUCATIONS = 4, BUCKETS = 1000, EMBEDDING = 4 };

/* ---- People ---- */

static const char *const occupations[OCCUPATIONS] = {"baker", "clerk", "doctor", "farmer", "lawyer", "singer"};
static const char *const educations[EDUCATIONS] = {"none", "school", "college", "doctorate"};
/* What an education is worth depends on the occupation. A sum of two effects cannot describe it. */
static const float worth[OCCUPATIONS][EDUCATIONS] = {
    {1, 2, -1, -2}, {-2, 1, 2, 0}, {-3, -3, 0, 3}, {2, 1, -1, -1}, {-3, -2, 2, 3}, {2, 0, -1, -2},
};

/* What is known of BATCH people. NUMBERS: age and hours of work a week, float [BATCH, 2], both -1 to 1.
 * LABELS: int64, 1 if the person earns much. */
enum { OCCUPATION, EDUCATION, NUMBERS, LABELS, COLUMNS };

/* A number from 0 to less than 1, from a linear congruential generator. */
static float draw(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(state >> 40) / (1 << 24);
}

/* Invents BATCH people. */
static mr_status invent(mr_tensor *columns, mr_error *error)
{
    mr_string jobs[BATCH], degrees[BATCH];
    float numbers[BATCH][2];
    int64_t labels[BATCH];
    for (int i = 0; i < BATCH; i++) {
        const int job = (int)(draw() * OCCUPATIONS), degree = (int)(draw() * EDUCATIONS);
        const float age = numbers[i][0] = 2 * draw() - 1, hours = numbers[i][1] = 2 * draw() - 1;
        jobs[i] = mr_string_from(occupations[job]);
        degrees[i] = mr_string_from(educations[degree]);
        labels[i] = worth[job][degree] + 1 - 3 * age * age + 2 * hours + draw() - 0.5f > 0;
    }
    MR_TRY(mr_tensor_init_strings(&columns[OCCUPATION], MR_SHAPE(BATCH), jobs, error));
    MR_TRY(mr_tensor_init_strings(&columns[EDUCATION], MR_SHAPE(BATCH), degrees, error));
    MR_TRY(mr_tensor_init_copy(&columns[NUMBERS], MR_FLOAT, MR_SHAPE(BATCH, 2), numbers, error));
    return mr_tensor_init_copy(&columns[LABELS], MR_INT64, MR_SHAPE(BATCH), labels, error);
}

/* ---- The model ---- */

typedef struct model {
    mr_output columns[COLUMNS], loss;
    mr_metric accuracy, auc;
    mr_node *train, *init, *reset;
} model;

/* Rows of a table of BUCKETS rows, one for each word: [BATCH, columns]. */
static mr_output embed(mr_graph *g, const char *name, mr_output words, int64_t columns)
{
    mr_variable table = mr_get_variable(g, name, MR_SHAPE(BUCKETS, columns));
    mr_output rows = mr_string_to_hash_bucket_fast(g, words, .num_buckets = BUCKETS);
    return mr_embedding_lookup(g, MR_VARIABLES(table), rows);
}

/* The sum of a weight for each word, and for each pair of words. */
static mr_output wide(mr_graph *g, mr_output job, mr_output degree)
{
    mr_graph_push_variable_scope(g, "linear", .initializer = {.kind = MR_INIT_ZEROS});
    mr_output crossed = mr_string_join(g, MR_OUTPUTS(job, degree), .separator = "_X_");
    mr_output jobs = embed(g, "occupation", job, 1), degrees = embed(g, "education", degree, 1);
    mr_output pairs = embed(g, "occupation_X_education", crossed, 1);
    mr_output logits = mr_add_n(g, MR_OUTPUTS(jobs, degrees, pairs));
    mr_graph_pop_variable_scope(g);
    return logits;
}

static mr_output deep(mr_graph *g, mr_output job, mr_output degree, mr_output numbers)
{
    mr_graph_push_variable_scope(g, "dnn");
    mr_output jobs = embed(g, "occupation_embedding", job, EMBEDDING);
    mr_output degrees = embed(g, "education_embedding", degree, EMBEDDING);
    mr_output inputs = mr_concat_v2(g, MR_OUTPUTS(jobs, degrees, numbers), mr_constant_int32(g, 1));
    mr_output hidden = mr_layer_dense(g, inputs, .units = 32, .activation = mr_activation_relu, .name = "hidden1");
    hidden = mr_layer_dense(g, hidden, .units = 16, .activation = mr_activation_relu, .name = "hidden2");
    mr_output logits = mr_layer_dense(g, hidden, .units = 1, .name = "logits");
    mr_graph_pop_variable_scope(g);
    return logits;
}

/* Minimizes the loss by the variables of one scope (var_list in TensorFlow): the gradients of others are left out. */
static mr_node *minimize(mr_graph *g, const mr_optimizer *optimizer, mr_output loss, const char *scope)
{
    mr_gradients_and_variables list = mr_compute_gradients(g, loss);
    for (int32_t i = 0; i < list.count; i++) {
        const char *name = mr_node_name(list.items[i].variable.ref.node);
        if (strncmp(name, scope, strlen(scope)) != 0) list.items[i].gradient = (mr_output){0};
    }
    return mr_apply_gradients(g, optimizer, list, (mr_output){0});
}

static model build(mr_graph *g)
{
    mr_output job = mr_placeholder(g, MR_STRING, .shape = MR_SHAPE(BATCH), .name = "occupation");
    mr_output degree = mr_placeholder(g, MR_STRING, .shape = MR_SHAPE(BATCH), .name = "education");
    mr_output numbers = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(BATCH, 2), .name = "numbers");
    mr_output labels = mr_placeholder(g, MR_INT64, .shape = MR_SHAPE(BATCH), .name = "labels");
    model m = {.columns = {job, degree, numbers, labels}};

    mr_output linear = wide(g, job, degree), network = deep(g, job, degree, numbers);
    mr_output logits = mr_reshape(g, mr_add_v2(g, linear, network), mr_constant_ints(g, MR_INTS(BATCH)));
    m.loss = mr_loss_sigmoid_cross_entropy(g, mr_cast(g, labels, MR_FLOAT), logits);
    mr_node *parts[] = {minimize(g, mr_ftrl(.learning_rate = 0.1f, .l1 = 0.001f), m.loss, "linear/"),
                        minimize(g, mr_adagrad(.learning_rate = 0.05f), m.loss, "dnn/")};
    m.train = mr_group(g, parts, 2, "train");

    mr_output positive = mr_greater(g, logits, mr_constant_float(g, 0));
    m.accuracy = mr_metric_accuracy(g, labels, mr_cast(g, positive, MR_INT64));
    m.auc = mr_metric_auc(g, labels, mr_sigmoid(g, logits));
    m.reset = mr_initialize_variables(g, MR_METRIC_VARIABLES, "reset");
    m.init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    return m;
}

/* ---- Training ---- */

/* Runs with new people. values  receive the scalars that are fetched, at most 2 */
static mr_status run(mr_session *session, const model *m, mr_outputs fetches, mr_node *target, float *values,
                     mr_error *error)
{
    mr_tensor columns[COLUMNS] = {0}, results[2] = {0};
    mr_feed feeds[COLUMNS];
    mr_status status = invent(columns, error);
    for (int i = 0; i < COLUMNS; i++) feeds[i] = (mr_feed){m->columns[i], columns[i]};
    if (status == MR_OK)
        status =
            mr_session_run(session, (mr_feeds){feeds, COLUMNS}, fetches, results, &target, target != nullptr, error);
    for (int i = 0; i < fetches.count; i++) {
        if (status == MR_OK) values[i] = mr_tensor_floats(&results[i])[0];
        mr_tensor_deinit(&results[i]);
    }
    for (int i = 0; i < COLUMNS; i++) mr_tensor_deinit(&columns[i]);
    return status;
}

/* Each update adds a batch to the metrics, and returns their values so far. */
static mr_status evaluate(mr_session *session, const model *m, mr_error *error)
{
    float values[2] = {0};
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m->reset, 1, error));
    for (int i = 0; i < EVALUATION_BATCHES; i++)
        MR_TRY(run(session, m, MR_OUTPUTS(m->accuracy.update, m->auc.update), nullptr, values, error));
    printf("accuracy %.1f %%  AUC %.3f\n", 100 * (double)values[0], (double)values[1]);
    return MR_OK;
}

static mr_status learn(mr_session *session, const model *m, int steps, mr_error *error)
{
    float loss = 0;
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m->init, 1, error));
    MR_TRY(evaluate(session, m, error));
    for (int step = 1; step <= steps; step++) {
        MR_TRY(run(session, m, MR_OUTPUTS(m->loss), m->train, &loss, error));
        if (step % 250 == 0) printf("step %d  loss %.4f\n", step, (double)loss);
    }
    return evaluate(session, m, error);
}

int main(int argc, char **argv)
{
    char *end = "";
    const long steps = argc > 1 ? strtol(argv[1], &end, 10) : 1000;
    if (argc > 2 || *end != '\0' || steps < 1 || steps > 1000000)
        return fprintf(stderr, "usage: wide-and-deep [STEPS]\n"), 2;
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    mr_graph_set_seed(g, 1);
    model m = build(g);
    mr_status status = mr_session_new(g, nullptr, &session, &error);
    if (status == MR_OK) status = learn(session, &m, (int)steps, &error);
    if (status != MR_OK) fprintf(stderr, "wide-and-deep: %s\n", error.message);
    mr_session_free(session);
    mr_graph_free(g);
    return status == MR_OK ? 0 : 1;
}
