/* Writes graphs of random programs with nested conditionals, loops and their gradients for control_flow_oracle.py,
 * which runs them with TensorFlow.
 *
 *     control_flow_graphs DIRECTORY COUNT
 *
 * Writes DIRECTORY/N.pb. Prints a line for each: N, x, the fetches, the value and the slope that are expected, and 1 if
 * a comparison is so close that rounding decides. */
#include "tests/graph/control_flow_model.h"

#include <stdio.h>

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
    mr_gradients(g, MR_OUTPUTS(y), MR_OUTPUTS(x), nullptr, &gradient);
    mr_tensor def = {0};
    mr_status status = mr_graph_export(g, &def, error);
    char path[4096], names[2][MR_OUTPUT_NAME_SIZE];
    snprintf(path, sizeof path, "%s/%llu.pb", directory, (unsigned long long)seed);
    FILE *file = status == MR_OK ? fopen(path, "wb") : nullptr;
    if (file == nullptr && status == MR_OK) status = mr_fail(error, MR_UNKNOWN, "%s cannot be written", path);
    if (file != nullptr) {
        const mr_string *bytes = mr_tensor_data(&def);
        if (fwrite(bytes->data, 1, bytes->size_bytes, file) != bytes->size_bytes)
            status = mr_fail(error, MR_UNKNOWN, "%s cannot be written", path);
        fclose(file);
    }
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
    if (argc != 3) return fprintf(stderr, "usage: control_flow_graphs DIRECTORY COUNT\n"), 2;
    mr_error error = {0};
    for (uint64_t i = 0; i < strtoull(argv[2], nullptr, 10); i++)
        if (write_program(argv[1], i, &error) != MR_OK) return fprintf(stderr, "%s\n", error.message), 1;
    return 0;
}
