/* Model for run_oracle.py: builds a small model with the C API, writes its GraphDef and data into a directory, trains
 * it and prints the loss of each step as a hexadecimal float. */
#include <millrace/ops.h>
#include <millrace/train.h>
#include <stdio.h>
#include <stdlib.h>

constexpr int ROWS = 16, COLUMNS = 6, STEPS = 50;

static int fail(const mr_error *error)
{
    fprintf(stderr, "%s\n", error->message);
    return 1;
}

static bool write_file(const char *directory, const char *name, const void *bytes, size_t size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    bool written = fwrite(bytes, 1, size, file) == size;
    return fclose(file) == 0 && written;
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_graph_set_seed(g, 42);
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, COLUMNS), .name = "x");
    mr_output y = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 1), .name = "y");
    mr_output h = mr_layer_dense(g, x, .units = 8, .activation = mr_activation_tanh);
    h = mr_layer_dropout(g, h, .rate = 0.25f, .training = true);
    mr_output predicted = mr_layer_dense(g, h, .units = 1, .weight_decay = 1e-3f);
    mr_loss_mean_squared_error(g, y, predicted);
    mr_output loss = mr_identity(g, mr_loss_total(g), .name = "loss");
    mr_node *step = mr_minimize(g, mr_adam(.learning_rate = 0.01f), loss, mr_global_step(g).ref);
    mr_group(g, &step, 1, "train");
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");

    mr_tensor graph_def = {0}, feeds[2] = {0};
    if (mr_graph_export(g, &graph_def, &error) != MR_OK) return fail(&error);
    if (mr_tensor_init(&feeds[0], MR_FLOAT, MR_SHAPE(ROWS, COLUMNS), &error) != MR_OK) return fail(&error);
    if (mr_tensor_init(&feeds[1], MR_FLOAT, MR_SHAPE(ROWS, 1), &error) != MR_OK) return fail(&error);
    for (int i = 0; i < ROWS * COLUMNS; i++) mr_tensor_floats(&feeds[0])[i] = (float)(i * 37 % 101) / 50 - 1;
    for (int i = 0; i < ROWS; i++) mr_tensor_floats(&feeds[1])[i] = (float)(i * 29 % 17) / 8 - 1;
    mr_string bytes = mr_tensor_strings(&graph_def)[0];
    if (!write_file(argv[1], "graph.pb", bytes.data, bytes.size_bytes) ||
        !write_file(argv[1], "features", feeds[0].data, mr_tensor_size_bytes(&feeds[0])) ||
        !write_file(argv[1], "targets", feeds[1].data, mr_tensor_size_bytes(&feeds[1])))
        return 1;

    mr_session *session = nullptr;
    mr_step *run = nullptr;
    if (mr_session_new(g, nullptr, &session, &error) != MR_OK) return fail(&error);
    if (mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error) != MR_OK) return fail(&error);
    mr_output fed[] = {x, y};
    if (mr_session_prepare(session, fed, 2, MR_OUTPUTS(loss), &step, 1, &run, &error) != MR_OK) return fail(&error);
    for (int i = 0; i < STEPS; i++) {
        mr_tensor result = {0};
        if (mr_step_run(run, feeds, &result, &error) != MR_OK) return fail(&error);
        printf("%a\n", (double)mr_tensor_floats(&result)[0]);
        mr_tensor_deinit(&result);
    }
    mr_tensor_deinit(&graph_def);
    mr_tensor_deinit(&feeds[0]);
    mr_tensor_deinit(&feeds[1]);
    mr_session_free(session);
    mr_graph_free(g);
    return 0;
}
