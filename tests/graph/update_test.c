/* Invalid inputs of update operators and of operators for file names. */
#include "graph/run/session.h"
#include "graph/state/state.h"
#include "tests/test.h"
#include <millrace/ops.h>

static mr_output add_variable(mr_graph *g, const char *name)
{
    return mr_var_handle_op(g, MR_FLOAT, .shape = MR_SHAPE(3), .shared_name = name);
}

/* A step whose second variable is an iterator fails before it locks anything: it must not unlock the first one, which
 * another step has locked. */
TEST(update_of_an_iterator_unlocks_nothing)
{
    mr_error error = {0};
    mr_tensor value = {0};
    CHECK_OK(mr_tensor_init_copy(&value, MR_FLOAT, MR_SHAPE(3), (float[]){1, 2, 3}, &error));
    mr_graph *g = mr_graph_new();
    mr_output variable = add_variable(g, "w");
    mr_output iterator = mr_iterator_v2(g, .shared_name = "i", .container = "", .output_types = MR_DTYPES(MR_FLOAT),
                                        .output_shapes = MR_SHAPES(MR_SCALAR));
    mr_output rate = mr_constant_float(g, 1), gradient = mr_constant(g, &value, nullptr);
    mr_node_builder builder = mr_node_begin(g, "ResourceApplyMomentum", "update");
    mr_output inputs[] = {variable, iterator, rate, gradient, rate};
    for (int i = 0; i < 5; i++) mr_node_add_input(&builder, inputs[i]);
    mr_node *update = mr_node_finish(&builder).node;
    CHECK_OK(mr_graph_status(g, &error));
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    CHECK_OK(mr_session_write_variable(session, variable, &value, &error));
    mr_variable_state *state = (mr_variable_state *)mr_resource_find(&session->resources, &mr_variable_class, "", "w");
    CHECK(state != nullptr);
    pthread_mutex_lock(&state->mutex);
    CHECK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &update, 1, &error) != MR_OK);
    CHECK_CONTAINS(error.message, "is not a variable");
    CHECK(pthread_mutex_trylock(&state->mutex) != 0);
    pthread_mutex_unlock(&state->mutex);
    mr_session_free(session);
    mr_graph_free(g);
    mr_tensor_deinit(&value);
}

/* Folded when the plan is created, and computed at run time. */
TEST(sharded_filename_of_empty_numbers_is_an_error)
{
    for (int fed = 0; fed < 2; fed++) {
        mr_error error = {0};
        mr_tensor none = {0}, result = {0};
        CHECK_OK(mr_tensor_init(&none, MR_INT32, MR_SHAPE(0), &error));
        mr_graph *g = mr_graph_new();
        mr_output empty = fed ? mr_placeholder(g, MR_INT32) : mr_constant(g, &none, nullptr);
        mr_node_builder builder = mr_node_begin(g, "ShardedFilename", "name");
        mr_node_add_input(&builder, mr_constant_string(g, "model"));
        mr_node_add_input(&builder, empty);
        mr_node_add_input(&builder, empty);
        mr_output output = mr_node_finish(&builder);
        mr_session *session = nullptr;
        mr_status status = mr_session_new(g, nullptr, &session, &error);
        if (status == MR_OK)
            status = mr_session_run(session, fed ? MR_FEEDS({empty, none}) : MR_NO_FEEDS, MR_OUTPUTS(output), &result,
                                    nullptr, 0, &error);
        CHECK_EQ(status, MR_INVALID_ARGUMENT);
        mr_session_free(session);
        mr_graph_free(g);
        mr_tensor_deinit(&none);
    }
}
