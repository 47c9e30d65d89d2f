/* What the programs of layers_oracle.py and rnn_oracle.py share: builds a small model of each case, trains it for 20
 * steps, and saves its graph and its first values.
 *
 *     PROGRAM DIRECTORY
 *
 * Writes DIRECTORY/CASE-0 and its .meta. Prints "CASE KEY VALUE" lines: variable (name and shape), collection (name and
 * items), loss of each step, error. */
#include <millrace/millrace.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 20 };

typedef struct model {
    mr_graph *g;
    mr_output x, training; /* training: a placeholder of some cases */
} model;

static mr_output loss_of(mr_graph *g, mr_output y)
{
    mr_output flat = mr_reshape(g, mr_square(g, y), mr_constant_ints(g, MR_INTS(-1)));
    mr_output loss = mr_mean(g, flat, mr_constant_ints(g, MR_INTS(0)));
    for (int32_t i = 0; i < mr_graph_collection_count(g, MR_REGULARIZATION_LOSSES); i++)
        loss = mr_add_v2(g, loss, mr_graph_collection_item(g, MR_REGULARIZATION_LOSSES, i));
    return mr_identity(g, loss, .name = "loss");
}

static mr_status fill(mr_output placeholder, int64_t step, mr_tensor *value, mr_error *error)
{
    mr_shape shape = mr_output_shape(placeholder);
    if (shape.dims[0] < 0) shape.dims[0] = 6;
    MR_TRY(mr_tensor_init(value, MR_FLOAT, shape, error));
    for (int64_t i = 0; i < mr_tensor_count(value); i++)
        mr_tensor_floats(value)[i] = (float)((i * i * 31 + i * 7919 + step * 104729) % 1000) / 500 - 1;
    return MR_OK;
}

static void print_graph(mr_graph *g, const char *name)
{
    static const char *const lists[] = {MR_GLOBAL_VARIABLES, MR_TRAINABLE_VARIABLES};
    char text[MR_OUTPUT_NAME_SIZE];
    for (size_t list = 0; list < 2; list++) {
        printf("%s collection %s", name, lists[list]);
        for (int32_t i = 0; i < mr_graph_variable_count(g, lists[list]); i++) {
            mr_variable v = mr_graph_variable(g, lists[list], i);
            mr_shape shape = mr_variable_shape_of(v);
            printf(" %s[", mr_node_name(v.ref.node));
            for (int32_t j = 0; j < shape.rank; j++) printf("%s%d", j > 0 ? "," : "", (int)shape.dims[j]);
            printf("]");
        }
        printf("\n");
    }
    printf("%s collection %s", name, MR_REGULARIZATION_LOSSES);
    for (int32_t i = 0; i < mr_graph_collection_count(g, MR_REGULARIZATION_LOSSES); i++)
        printf(" %s", mr_output_name(mr_graph_collection_item(g, MR_REGULARIZATION_LOSSES, i), text, sizeof text));
    printf("\n%s updates %d\n", name, mr_graph_collection_count(g, MR_UPDATE_OPS));
}

static mr_status train(model *m, const char *name, mr_output y, const char *directory, mr_error *error)
{
    mr_graph *g = m->g;
    mr_output loss = loss_of(g, y);
    bool trains = mr_graph_variable_count(g, MR_TRAINABLE_VARIABLES) > 0;
    mr_node *step_node = nullptr;
    mr_saver *saver = nullptr;
    mr_session *session = nullptr;
    MR_TRY(mr_graph_status(g, error));
    print_graph(g, name);
    if (trains) step_node = mr_minimize(g, mr_gradient_descent(.learning_rate = 0.1f), loss, (mr_output){0});
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    saver = mr_saver_new(g);
    MR_TRY(mr_session_new(g, nullptr, &session, error));
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, error));
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    MR_TRY(mr_saver_save(saver, session, path, 0, error));
    for (int64_t step = 0; step < STEPS; step++) {
        mr_tensor x = {0}, flag_value = {0}, value = {0};
        bool is_training = step % 3 != 2;
        MR_TRY(fill(m->x, step, &x, error));
        MR_TRY(mr_tensor_init_copy(&flag_value, MR_BOOL, MR_SCALAR, &is_training, error));
        mr_feed feeds[] = {{m->x, x}, {m->training, flag_value}};
        mr_feeds given = {feeds, m->training.node != nullptr ? 2 : 1};
        MR_TRY(mr_session_run(session, given, MR_OUTPUTS(loss), &value, &step_node, step_node != nullptr, error));
        printf("%s loss %.9g\n", name, (double)mr_tensor_floats(&value)[0]);
        mr_tensor_deinit(&x);
        mr_tensor_deinit(&flag_value);
        mr_tensor_deinit(&value);
    }
    mr_saver_free(saver);
    mr_session_free(session);
    return MR_OK;
}

static void run(const char *name, mr_output (*build)(model *), const char *directory)
{
    mr_error error = {0};
    model m = {.g = mr_graph_new()};
    mr_graph_set_seed(m.g, 42);
    mr_output y = build(&m);
    if (train(&m, name, y, directory, &error) != MR_OK) printf("%s error %s\n", name, error.message);
    mr_graph_free(m.g);
}

/* The function main of CASES: C(name, expression of the model m) for each case. */
#define MODEL_DEFINE(name, expression)                                                                                 \
    static mr_output build_##name(model *m)                                                                            \
    {                                                                                                                  \
        return expression;                                                                                             \
    }
#define MODEL_RUN(name, expression) run(#name, build_##name, argv[1]);
#define MODEL_MAIN(CASES)                                                                                              \
    CASES(MODEL_DEFINE)                                                                                                \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        if (argc != 2) return 2;                                                                                       \
        CASES(MODEL_RUN)                                                                                               \
        return 0;                                                                                                      \
    }
