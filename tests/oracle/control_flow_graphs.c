/* Writes graphs of random programs with nested conditionals, loops and their gradients for control_flow_oracle.py,
 * which runs them with TensorFlow.
 *
 *     control_flow_graphs DIRECTORY COUNT
 *     control_flow_graphs gradient X FILE …      the slopes of "the_result" at X in MetaGraphDefs, or "none"
 *
 * Writes DIRECTORY/N.pb, and DIRECTORY/N.meta without the gradient, of the output "the_result". Prints a line for each:
 * N, x, the fetches, the value and the slope that are expected, and 1 if a comparison is so close that rounding
 * decides. */
#include "tests/graph/control_flow_model.h"

#include <millrace/millrace.h>
#include <stdio.h>
#include <string.h>

static mr_status write_file(const mr_tensor *value, const char *path, mr_error *error)
{
    const mr_string *bytes = mr_tensor_data(value);
    FILE *file = fopen(path, "wb");
    const bool done = file != nullptr && fwrite(bytes->data, 1, bytes->size_bytes, file) == bytes->size_bytes;
    if (file != nullptr) fclose(file);
    return done ? MR_OK : mr_fail(error, MR_UNKNOWN, "%s cannot be written", path);
}

/* The slope in a file of TensorFlow's. */
static mr_status print_slope(const char *path, float at, mr_error *error)
{
    mr_tensor fed = {0}, result = {0};
    mr_model *model = nullptr;
    mr_session *session = nullptr;
    mr_output gradient = {0};
    MR_TRY(mr_model_open(path, nullptr, &model, error));
    mr_graph *g = mr_model_graph(model);
    const mr_output x = mr_graph_find_output(g, "x");
    mr_gradients(g, MR_OUTPUTS(mr_graph_find_output(g, "the_result")), MR_OUTPUTS(x), nullptr, &gradient);
    MR_TRY(mr_graph_status(g, error));
    if (gradient.node == nullptr) {
        printf("none\n");
    } else {
        MR_TRY(mr_session_new(g, nullptr, &session, error));
        MR_TRY(mr_tensor_init_float(&fed, at, error));
        MR_TRY(mr_session_run(session, MR_FEEDS({x, fed}), MR_OUTPUTS(gradient), &result, nullptr, 0, error));
        printf("%.9g\n", (double)mr_tensor_floats(&result)[0]);
    }
    mr_tensor_deinit(&fed);
    mr_tensor_deinit(&result);
    mr_session_free(session);
    mr_model_free(model);
    return MR_OK;
}

static mr_status write_program(const char *directory, uint64_t seed, mr_error *error)
{
    uint64_t state = seed;
    block *program = make_block(&state, 1, 0, 1);
    double at = (double)(below(&state, 300) - 150) / 100;
    dual expected = {0};
    bool is_close = false;
    interpret(program, &(dual){at, 1}, 1, &expected, 1, &is_close);
    mr_graph *g = mr_graph_new();
    mr_output x = seed % 2 == 0 ? mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "x")
                                : mr_placeholder(g, MR_FLOAT, .name = "x");
    mr_output y = {0}, gradient = {0};
    build(g, program, &x, 1, &y, 1);
    (void)mr_identity(g, y, .name = "the_result");
    mr_tensor def = {0}, meta = {0};
    char path[4096], names[2][MR_OUTPUT_NAME_SIZE];
    mr_status status = mr_graph_export_meta(g, &meta, error);
    snprintf(path, sizeof path, "%s/%llu.meta", directory, (unsigned long long)seed);
    if (status == MR_OK) status = write_file(&meta, path, error);
    mr_gradients(g, MR_OUTPUTS(y), MR_OUTPUTS(x), nullptr, &gradient);
    snprintf(path, sizeof path, "%s/%llu.pb", directory, (unsigned long long)seed);
    if (status == MR_OK) status = mr_graph_export(g, &def, error);
    if (status == MR_OK) status = write_file(&def, path, error);
    mr_tensor_deinit(&meta);
    if (status == MR_OK)
        printf("%llu %.9g %s %s %.9g %.9g %d\n", (unsigned long long)seed, (double)(float)at,
               mr_output_name(y, names[0], sizeof names[0]),
               gradient.node != nullptr ? mr_output_name(gradient, names[1], sizeof names[1]) : "-", expected.value,
               expected.slope, is_close);
    mr_tensor_deinit(&def);
    mr_graph_free(g);
    free_block(program);
    return status;
}

int main(int argc, char **argv)
{
    mr_error error = {0};
    if (argc > 3 && strcmp(argv[1], "gradient") == 0) {
        for (int i = 3; i < argc; i++)
            if (print_slope(argv[i], strtof(argv[2], nullptr), &error) != MR_OK)
                return fprintf(stderr, "%s\n", error.message), 1;
        return 0;
    }
    if (argc != 3) return fprintf(stderr, "usage: control_flow_graphs DIRECTORY COUNT\n"), 2;
    for (uint64_t i = 0; i < strtoull(argv[2], nullptr, 10); i++)
        if (write_program(argv[1], i, &error) != MR_OK) return fprintf(stderr, "%s\n", error.message), 1;
    return 0;
}
