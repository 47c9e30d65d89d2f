/* regression: fits a linear model to the columns of a CSV file, in a monitored session with hooks.
 *
 *     regression FILE TARGET [STEPS]
 *
 * FILE has a header row with the names of its columns, which contain numbers. TARGET names the column that is predicted
 * from all others. Prints the loss, then the coefficient of each column and the constant. */
#include <math.h>
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 1000000, BATCH = 32 };

/* ---- The table ---- */

typedef struct table {
    char *names[MR_COMPONENTS_MAX];
    double mean[MR_COMPONENTS_MAX], std[MR_COMPONENTS_MAX];
    mr_element columns;       /* a float [rows] for each column */
    int32_t count, target;    /* of columns; the index of the one that is predicted */
    mr_tensor features, goal; /* standardized: float [rows, count - 1] and [rows, 1] */
} table;

static mr_status read_header(table *t, const char *path, const char *target, mr_error *error)
{
    mr_input_file *file = nullptr;
    mr_csv_reader *reader = nullptr;
    const mr_csv_row *row = nullptr;
    MR_TRY(mr_input_file_open(path, true, &file, error));
    mr_status status = mr_csv_reader_new(file, 0, &reader, error);
    if (status == MR_OK) status = mr_csv_reader_next(reader, &row, error);
    if (status == MR_OK && (row->count < 2 || row->count > MR_COMPONENTS_MAX))
        status = mr_fail(error, MR_INVALID_ARGUMENT, "%s has %d columns; expected 2 to %d", path, row->count,
                         MR_COMPONENTS_MAX);
    t->target = -1;
    for (; status == MR_OK && t->count < row->count; t->count++) {
        const mr_string name = row->cells[t->count];
        t->names[t->count] = strndup(name.data != nullptr ? name.data : "", name.size_bytes);
        if (mr_string_equal(name, mr_string_from(target))) t->target = t->count;
    }
    if (status == MR_OK && t->target < 0)
        status = mr_fail(error, MR_NOT_FOUND, "%s: no column is named \"%s\"", path, target);
    if (status == MR_OUT_OF_RANGE) status = mr_fail(error, MR_INVALID_ARGUMENT, "%s is empty", path);
    mr_csv_reader_free(reader);
    mr_input_file_close(file);
    return status;
}

/* Reads all rows as one batch. */
static mr_status read_columns(table *t, const char *path, mr_error *error)
{
    mr_csv_column columns[MR_COMPONENTS_MAX];
    for (int32_t i = 0; i < t->count; i++) columns[i] = (mr_csv_column){.index = i, .dtype = MR_FLOAT};
    mr_dataset *data = mr_dataset_csv(path, columns, t->count, .has_header = true, .column_count = t->count);
    data = mr_dataset_batch(data, ROWS_MAX);
    mr_iterator *iterator = nullptr;
    mr_element rest = {0};
    mr_status status = mr_iterator_new(data, nullptr, &iterator, error);
    if (status == MR_OK) status = mr_iterator_next(iterator, &t->columns, error);
    if (status == MR_OUT_OF_RANGE) status = mr_fail(error, MR_INVALID_ARGUMENT, "%s has a header, but no rows", path);
    if (status == MR_OK && (status = mr_iterator_next(iterator, &rest, error)) == MR_OK)
        status = mr_fail(error, MR_INVALID_ARGUMENT, "%s has more than %d rows", path, ROWS_MAX);
    mr_element_deinit(&rest);
    mr_iterator_free(iterator);
    mr_dataset_free(data);
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

/* Subtracts the mean of each column, and divides by its standard deviation: one learning rate then suits all. */
static mr_status standardize(table *t, mr_error *error)
{
    const int64_t rows = mr_tensor_count(&t->columns.tensors[0]), width = t->count - 1;
    MR_TRY(mr_tensor_init(&t->features, MR_FLOAT, MR_SHAPE(rows, width), error));
    MR_TRY(mr_tensor_init(&t->goal, MR_FLOAT, MR_SHAPE(rows, 1), error));
    for (int32_t i = 0; i < t->count; i++) {
        const float *from = mr_tensor_floats(&t->columns.tensors[i]);
        double sum = 0, squares = 0;
        for (int64_t row = 0; row < rows; row++) sum += (double)from[row];
        t->mean[i] = sum / (double)rows;
        for (int64_t row = 0; row < rows; row++) squares += pow((double)from[row] - t->mean[i], 2);
        t->std[i] = sqrt(squares / (double)rows);
        if (!isnormal(t->std[i]))
            return mr_fail(error, MR_INVALID_ARGUMENT, "column \"%s\" has %s", t->names[i],
                           t->std[i] == 0 ? "the same number in every row" : "a number that is not finite");
        float *to = i == t->target ? mr_tensor_floats(&t->goal) : mr_tensor_floats(&t->features) + i - (i > t->target);
        for (int64_t row = 0; row < rows; row++)
            to[row * (i == t->target ? 1 : width)] = (float)(((double)from[row] - t->mean[i]) / t->std[i]);
    }
    return MR_OK;
}

/* ---- Training ---- */

/* results  receives the weights of the standardized features, [count - 1, 1], and the bias, [1] */
static mr_status train(mr_graph *g, const table *t, int64_t steps, mr_tensor *results, mr_error *error)
{
    mr_dataset *data = mr_dataset_from_slices((mr_tensor[]){t->features, t->goal}, 2);
    data = mr_dataset_batch(mr_dataset_repeat(mr_dataset_shuffle(data, .seed = 1), MR_INFINITE), BATCH);
    mr_output batch[2] = {0};
    mr_graph_iterator(g, "data", data, nullptr, batch);
    mr_dataset_free(data);
    mr_output loss = mr_loss_mean_squared_error(g, batch[1], mr_layer_dense(g, batch[0], .units = 1));
    mr_variable step = mr_global_step(g);
    mr_output rate = mr_polynomial_decay(g, 0.1f, step.value, steps, 0, 1, false);
    mr_node *update = mr_minimize(g, mr_gradient_descent(.learning_rate_output = rate), loss, step.ref);
    mr_output kernel = mr_graph_variable(g, MR_TRAINABLE_VARIABLES, 0).value;
    mr_output bias = mr_graph_variable(g, MR_TRAINABLE_VARIABLES, 1).value;

    mr_hook *stop = mr_stop_at_step_hook(.last_step = steps);
    mr_hook *log = mr_logging_tensor_hook(MR_OUTPUTS(step.value, loss), .every_n_iter = steps < 5 ? 1 : steps / 5,
                                          .at_end = true, .names = MR_NAMES("step", "loss"), .log = mr_log_to_stderr);
    mr_hook *finish = mr_final_ops_hook(MR_OUTPUTS(kernel, bias), results);
    mr_monitored_session *session = nullptr;
    mr_status status = mr_monitored_training_session_new(
        g, MR_OPTIONS(mr_monitored_training_session_options, .hooks = MR_HOOKS(stop, log, finish)), &session, error);
    while (status == MR_OK && !mr_monitored_session_should_stop(session))
        status = mr_monitored_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &update, 1, error);
    return mr_monitored_session_close(session, status, error);
}

/* In the units of the file. */
static void print_coefficients(const table *t, const mr_tensor *results)
{
    const double scale = t->std[t->target];
    double constant = t->mean[t->target] + scale * (double)mr_tensor_floats(&results[1])[0];
    const float *weight = mr_tensor_floats(&results[0]);
    printf("%s =\n", t->names[t->target]);
    for (int32_t i = 0; i < t->count; i++) {
        if (i == t->target) continue;
        const double coefficient = (double)*weight++ * scale / t->std[i];
        constant -= coefficient * t->mean[i];
        printf("%+12.4f * %s\n", coefficient, t->names[i]);
    }
    printf("%+12.4f\n", constant);
}

int main(int argc, char **argv)
{
    char *end = "";
    const long steps = argc > 3 ? strtol(argv[3], &end, 10) : 1000;
    if (argc < 3 || argc > 4 || argv[1][0] == '-' || *end != '\0' || steps < 1 || steps > 1000000)
        return fprintf(stderr, "usage: regression FILE TARGET [STEPS]\n"), 2;
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_graph_set_seed(g, 1);
    table t = {0};
    mr_tensor results[2] = {0};
    mr_status status = read_header(&t, argv[1], argv[2], &error);
    if (status == MR_OK) status = read_columns(&t, argv[1], &error);
    if (status == MR_OK) status = standardize(&t, &error);
    if (status == MR_OK) status = train(g, &t, steps, results, &error);
    if (status == MR_OK) print_coefficients(&t, results);
    if (status != MR_OK) fprintf(stderr, "regression: %s\n", error.message);
    for (int i = 0; i < 2; i++) mr_tensor_deinit(&results[i]);
    for (int32_t i = 0; i < t.count; i++) free(t.names[i]);
    mr_element_deinit(&t.columns);
    mr_tensor_deinit(&t.features);
    mr_tensor_deinit(&t.goal);
    mr_graph_free(g);
    return status == MR_OK ? 0 : 1;
}
