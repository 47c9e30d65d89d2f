/* Recurrent cells and networks: what is refused, and in which words; cells that are used twice. */
#include "tests/test.h"
#include <millrace/millrace.h>

#include <string.h>

static mr_output sequences(mr_graph *g)
{
    return mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 7, 4), .name = "x");
}

/* Ends the graph, whose error must contain the text. */
static void check_refused(mr_graph *g, const char *text)
{
    mr_error error = {0};
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    if (!strstr(error.message, text)) test_fail(__FILE__, __LINE__, "\"%s\" lacks \"%s\"", error.message, text);
    mr_graph_free(g);
}

static mr_rnn_cell *make(mr_graph *g, int number)
{
    mr_rnn_cell *gru = mr_gru_cell(g, 3), *cells[] = {gru, gru}, *absent[] = {nullptr};
    mr_output one = mr_constant_float(g, 1);
    switch (number) {
    case 0:
        return mr_gru_cell(g, 0);
    case 1:
        return mr_basic_lstm_cell(g, -2);
    case 2:
        return mr_lstm_cell(g, 3, .cell_clip = -1);
    case 3:
        return mr_lstm_cell(g, 3, .proj_clip = 1);
    case 4:
        return mr_lstm_cell(g, 3, .num_proj = -1);
    case 5:
        return mr_multi_rnn_cell(g, (mr_rnn_cells){cells, 2});
    case 6:
        return mr_multi_rnn_cell(g, (mr_rnn_cells){cells, 0});
    case 7:
        return mr_multi_rnn_cell(g, (mr_rnn_cells){absent, 1});
    case 8:
        return mr_dropout_wrapper(g, gru, .input_keep_prob = 0);
    case 9:
        return mr_dropout_wrapper(g, gru, .state_keep_prob = 1.5f);
    case 10:
        return mr_dropout_wrapper(g, gru, .output_keep_prob = 0.5f, .output_keep = one);
    case 11:
        return mr_dropout_wrapper(g, nullptr);
    case 12:
        return mr_device_wrapper(g, gru, nullptr);
    case 13:
        return mr_layer_norm_lstm_cell(g, 3, .no_layer_norm = true, .norm_gain = 2);
    case 14:
        return mr_layer_norm_lstm_cell(g, 3, .dropout_keep_prob = 0);
    case 15:
        return mr_rnn_cell_new(g, &(mr_rnn_cell_functions){.size = sizeof(mr_rnn_cell_functions)}, nullptr);
    default:
        return mr_device_wrapper(g, gru, "/no:device:");
    }
}

TEST(rnn_cells_refuse_wrong_options)
{
    static const char *const texts[] = {
        "units",
        "units is -2",
        "cell_clip",
        "proj_clip has no effect without num_proj",
        "num_proj is -1",
        "multi_rnn_cell: a cell is there twice",
        "multi_rnn_cell: there are no cells",
        "multi_rnn_cell: a cell is missing",
        "input_keep_prob is 0, but must be above 0",
        "state_keep_prob is 1.5",
        "output_keep_prob and output_keep are both set",
        "dropout_wrapper: there is no cell",
        "device_wrapper: there is no device",
        "norm_gain and norm_shift have no effect with no_layer_norm",
        "dropout_keep_prob is 0",
        "mr_rnn_cell_functions: call is missing",
    };
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
        mr_graph *g = mr_graph_new();
        CHECK(make(g, i) == nullptr);
        check_refused(g, texts[i]);
    }
}

TEST(rnn_refuses_wrong_inputs)
{
    mr_output states[4] = {0}, outputs[2], inputs[1];
    for (int i = 0; i < 10; i++) {
        mr_graph *g = mr_graph_new(), *other = nullptr;
        mr_output x = sequences(g), wide = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 7, 5));
        mr_output flat = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 4));
        mr_output unknown = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 7, -1));
        mr_rnn_cell *cell = mr_lstm_cell(g, 3);
        const mr_output bad[] = {flat, flat};
        const char *text = nullptr;
        switch (i) {
        case 0:
            text = "a recurrent network needs an input of 3 dimensions";
            mr_dynamic_rnn(g, cell, flat, states);
            break;
        case 1:
            text = "whose last size is known";
            mr_dynamic_rnn(g, cell, unknown, states);
            break;
        case 2:
            text = "sequence_length is float[?,4], but must be int32[batch] or int64[batch]";
            mr_dynamic_rnn(g, cell, x, states, .sequence_length = flat);
            break;
        case 3:
            text = "state 0 of the cell lstm_cell is float[?,4], not float[?,3]";
            mr_dynamic_rnn(g, cell, x, states, .initial_state = bad);
            break;
        case 4:
            text = "rnn: there is no cell";
            mr_dynamic_rnn(g, nullptr, x, nullptr);
            break;
        case 5:
            text = "parallel_iterations is 0";
            mr_dynamic_rnn(g, cell, x, states, .parallel_iterations = 0);
            break;
        case 6:
            text = "time_major has no effect on a network without a loop";
            mr_static_rnn(g, cell, MR_OUTPUTS(flat), outputs, states, .time_major = true);
            break;
        case 7:
            text = "rnn: there are no inputs";
            mr_static_rnn(g, cell, ((mr_outputs){inputs, 0}), outputs, states);
            break;
        case 8:
            text = "the cell lstm_cell has variables for inputs of 4 features of float, not 5 of float";
            mr_dynamic_rnn(g, cell, x, states);
            mr_dynamic_rnn(g, cell, wide, states, .name = "second");
            break;
        default:
            text = "the cell gru_cell belongs to another graph";
            other = mr_graph_new();
            mr_dynamic_rnn(g, mr_gru_cell(other, 3), x, states);
        }
        check_refused(g, text);
        mr_graph_free(other);
    }
    mr_graph *g = mr_graph_new();
    mr_dynamic_rnn(g, mr_residual_wrapper(g, mr_gru_cell(g, 3)), sequences(g), nullptr);
    check_refused(g, "residual_wrapper: the input has 4 features, but the output 3");
}

/* A cell that is used again has the same variables; one of the same name in another network has its own. */
TEST(rnn_cells_keep_their_variables)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = sequences(g), states[2];
    mr_rnn_cell *cell = mr_lstm_cell(g, 3);
    CHECK(mr_rnn_cell_state_count(cell) == 2 && mr_rnn_cell_state_size(cell, 1) == 3 &&
          mr_rnn_cell_state_size(cell, 2) == 0 && mr_rnn_cell_output_size(cell) == 3);
    mr_dynamic_rnn(g, cell, x, states);
    mr_dynamic_rnn(g, cell, x, nullptr, .name = "again");
    CHECK_OK(mr_graph_status(g, &error));
    CHECK(mr_graph_variable_count(g, MR_GLOBAL_VARIABLES) == 2);
    CHECK_STR(mr_node_name(mr_graph_variable(g, MR_GLOBAL_VARIABLES, 0).ref.node), "rnn/lstm_cell/kernel");
    mr_dynamic_rnn(g, mr_lstm_cell(g, 3), x, nullptr, .name = "other");
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_STR(mr_node_name(mr_graph_variable(g, MR_GLOBAL_VARIABLES, 2).ref.node), "other/lstm_cell/kernel");
    mr_graph_free(g);
}

/* Operators of one kind that dropout of the states adds for each step: one for each state except c. */
static int drops_of(mr_graph *g, mr_rnn_cell *cell)
{
    mr_output states[4], x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, 4));
    for (int32_t i = 0; i < mr_rnn_cell_state_count(cell); i++)
        states[i] = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, mr_rnn_cell_state_size(cell, i)));
    mr_rnn_cell_call(g, mr_dropout_wrapper(g, cell, .state_keep_prob = 0.5f, .seed = 3), x, states, states);
    mr_error error = {0};
    CHECK_OK(mr_graph_status(g, &error));
    int count = 0;
    for (int32_t i = 0; i < mr_graph_node_count(g); i++)
        count += strstr(mr_node_name(mr_graph_node(g, i)), "dropout") != nullptr &&
                 strcmp(mr_node_op(mr_graph_node(g, i)), "RandomUniform") == 0;
    mr_graph_free(g);
    return count;
}

static mr_output two_states(void *context, mr_graph *g, mr_output input, const mr_output *states, mr_output *next)
{
    (void)context;
    (void)input;
    next[0] = mr_identity(g, states[1]);
    return next[1] = mr_identity(g, states[0]);
}

TEST(rnn_dropout_leaves_the_memory_of_lstms)
{
    mr_graph *g = mr_graph_new();
    CHECK(drops_of(g, mr_gru_cell(g, 3)) == 1);
    g = mr_graph_new();
    CHECK(drops_of(g, mr_residual_wrapper(g, mr_lstm_cell(g, 4))) == 1);
    g = mr_graph_new();
    mr_rnn_cell *cells[] = {mr_gru_cell(g, 3), mr_device_wrapper(g, mr_basic_lstm_cell(g, 3), "/cpu:0")};
    CHECK(drops_of(g, mr_multi_rnn_cell(g, (mr_rnn_cells){cells, 2})) == 2);
    g = mr_graph_new();
    const mr_rnn_cell_functions functions = {.size = sizeof functions,
                                             .state_count = 2,
                                             .state_sizes = (int64_t[]){3, 3},
                                             .output_size = 3,
                                             .default_name = "own",
                                             .call = two_states};
    CHECK(drops_of(g, mr_rnn_cell_new(g, &functions, nullptr)) == 2);
}

/* No steps: the outputs are empty, the states the initial ones. No examples work as well. */
TEST(rnn_of_no_steps_and_no_examples)
{
    for (int i = 0; i < 2; i++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_session *session = nullptr;
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(i == 0 ? 2 : -1, -1, 4)), states[2];
        mr_output outputs = mr_dynamic_rnn(g, mr_basic_lstm_cell(g, 3), x, states);
        mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
        CHECK_OK(mr_session_new(g, nullptr, &session, &error));
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
        mr_tensor value = {0}, results[2] = {0};
        CHECK_OK(mr_tensor_init(&value, MR_FLOAT, i == 0 ? MR_SHAPE(2, 0, 4) : MR_SHAPE(0, 5, 4), &error));
        mr_feed feed = {x, value};
        CHECK_OK(
            mr_session_run(session, (mr_feeds){&feed, 1}, MR_OUTPUTS(outputs, states[1]), results, nullptr, 0, &error));
        CHECK(results[0].shape.dims[0] == (i == 0 ? 2 : 0) && results[0].shape.dims[1] == (i == 0 ? 0 : 5));
        CHECK(results[0].shape.dims[2] == 3 && results[1].shape.dims[0] == (i == 0 ? 2 : 0));
        for (int64_t k = 0; k < mr_tensor_count(&results[1]); k++) CHECK(mr_tensor_floats(&results[1])[k] == 0);
        mr_tensor_deinit(&value);
        mr_tensor_deinit(&results[0]);
        mr_tensor_deinit(&results[1]);
        mr_session_free(session);
        mr_graph_free(g);
    }
}

TEST(rnn_cells_inside_of_each_other_are_limited)
{
    mr_error error = {0};
    for (int32_t depth = 64; depth <= 65; depth++) {
        mr_graph *g = mr_graph_new();
        mr_rnn_cell *cell = mr_gru_cell(g, 4);
        for (int32_t i = 0; i < depth; i++)
            cell = i % 2 == 0 ? mr_residual_wrapper(g, cell) : mr_multi_rnn_cell(g, (mr_rnn_cells){&cell, 1});
        (void)mr_dynamic_rnn(g, cell, mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, 3, 4)), nullptr);
        const mr_status status = mr_graph_status(g, &error);
        CHECK(status == (depth == 64 ? MR_OK : MR_INVALID_ARGUMENT));
        if (depth == 65) CHECK_CONTAINS(error.message, "more than 64 cells inside of each other");
        mr_graph_free(g);
    }
}

/* What a cell of the caller's does wrong: a state of another size, no state, another dtype of the output, no output. */
static mr_output call_wrong(void *context, mr_graph *g, mr_output input, const mr_output *states, mr_output *next)
{
    const int *what = context;
    mr_output half = mr_slice(g, input, mr_constant_ints(g, MR_INTS(0, 0)), mr_constant_ints(g, MR_INTS(-1, 2)));
    next[0] = *what == 0 ? half : mr_identity(g, states[0]);
    if (*what == 1) next[0] = (mr_output){0};
    if (*what == 2) return mr_cast(g, input, MR_DOUBLE);
    return *what == 3 ? (mr_output){0} : mr_identity(g, input);
}

TEST(what_a_cell_returns_is_checked)
{
    static const char *const texts[] = {
        "my_cell: call has set state 0 to float[3,2], but it must be float[?,4]",
        "my_cell: call has not set state 0",
        "my_cell: call has set the output to double[3,4], but it must be float[?,4]",
        "my_cell: call has not set the output",
    };
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        const mr_rnn_cell_functions functions = {.size = sizeof functions,
                                                 .state_count = 1,
                                                 .state_sizes = (int64_t[]){4},
                                                 .output_size = 4,
                                                 .default_name = "my_cell",
                                                 .call = call_wrong};
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(3, 5, 4)), final;
        (void)mr_dynamic_rnn(g, mr_rnn_cell_new(g, &functions, &i), x, &final);
        CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, texts[i]);
        mr_graph_free(g);
    }
}

/* Lengths of two sequences, for three: refused when the graph is built, or when it runs. */
TEST(lengths_are_those_of_the_batch)
{
    for (int is_known = 0; is_known < 2; is_known++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(is_known ? 3 : -1, 5, 4));
        mr_output lengths = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(is_known ? 2 : -1)), final;
        mr_output outputs = mr_dynamic_rnn(g, mr_gru_cell(g, 4), x, &final, .sequence_length = lengths);
        mr_status status = mr_graph_status(g, &error);
        if (!is_known) {
            mr_session *session = nullptr;
            mr_tensor result = {0};
            mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
            mr_feed feeds[] = {{x, {0}}, {lengths, {0}}};
            CHECK_OK(mr_tensor_init(&feeds[0].value, MR_FLOAT, MR_SHAPE(3, 5, 4), &error));
            CHECK_OK(mr_tensor_init_copy(&feeds[1].value, MR_INT32, MR_SHAPE(2), (int32_t[]){1, 2}, &error));
            CHECK_OK(mr_session_new(g, nullptr, &session, &error));
            CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
            status = mr_session_run(session, (mr_feeds){feeds, 2}, MR_OUTPUTS(outputs), &result, nullptr, 0, &error);
            for (int i = 0; i < 2; i++) mr_tensor_deinit(&feeds[i].value);
            mr_session_free(session);
        }
        CHECK_STATUS(status, MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, is_known ? "a recurrent network: the batch size of the inputs is 3, but that of "
                                                 "sequence_length is 2"
                                               : "a recurrent network: the batch sizes of the inputs and of "
                                                 "sequence_length differ");
        mr_graph_free(g);
    }
}

/* ---- Variational dropout ---- */

static mr_output pass_on(void *context, mr_graph *g, mr_output input, const mr_output *states, mr_output *next)
{
    (void)context;
    next[0] = mr_identity(g, states[0]);
    return mr_identity(g, input);
}

/* The same elements are dropped in all steps of a run and for all examples; others in the next run. */
TEST(variational_dropout_is_the_same_in_all_steps)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_graph_set_seed(g, 3);
    const int64_t size = 16;
    const mr_rnn_cell_functions functions = {.size = sizeof functions,
                                             .state_count = 1,
                                             .state_sizes = &size,
                                             .output_size = size,
                                             .default_name = "pass_on",
                                             .call = pass_on};
    mr_rnn_cell *cell = mr_rnn_cell_new(g, &functions, nullptr);
    mr_rnn_cell *dropped =
        mr_dropout_wrapper(g, cell, .input_keep_prob = 0.5f, .variational_recurrent = true, .input_size = size);
    mr_output ones = mr_fill(g, mr_constant_ints(g, MR_INTS(2, 5, 16)), mr_constant_float(g, 1));
    mr_output y = mr_dynamic_rnn(g, dropped, ones, nullptr);
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    int differences = 0;
    float before[16] = {0};
    for (int run = 0; run < 4; run++) {
        mr_tensor value = {0};
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(y), &value, nullptr, 0, &error));
        const float *row = mr_tensor_floats(&value);
        for (int i = 0; i < 160; i++) {
            CHECK(row[i] == 0 || row[i] == 2);
            CHECK_NEAR(row[i], row[i % 16], 0);
        }
        for (int i = 0; i < 16; i++) differences += run > 0 && row[i] != before[i];
        memcpy(before, row, sizeof before);
        mr_tensor_deinit(&value);
    }
    CHECK(differences > 0);
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(variational_dropout_mistakes_are_refused)
{
    static const char *const texts[] = {"input_size is required", "input_size has no effect without",
                                        "dtype has no effect without", "the input is not dropped",
                                        "dtype must be floating point"};
    for (int i = 0; i < 5; i++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_rnn_cell *cell = mr_gru_cell(g, 3);
        if (i == 0) mr_dropout_wrapper(g, cell, .input_keep_prob = 0.5f, .variational_recurrent = true);
        if (i == 1) mr_dropout_wrapper(g, cell, .input_keep_prob = 0.5f, .input_size = 3);
        if (i == 2) mr_dropout_wrapper(g, cell, .input_keep_prob = 0.5f, .dtype = MR_FLOAT);
        if (i == 3) mr_dropout_wrapper(g, cell, .variational_recurrent = true, .input_size = 3);
        if (i == 4) mr_dropout_wrapper(g, cell, .variational_recurrent = true, .dtype = MR_INT32);
        CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, texts[i]);
        mr_graph_free(g);
    }
}

/* ---- Functions of the caller's in wrappers ---- */

/* The first units of the input and the output, weighted. */
static mr_output half_residual(void *context, mr_graph *g, mr_output input, mr_output output)
{
    mr_output size = mr_constant_ints(g, MR_INTS(-1, 3)), start = mr_constant_ints(g, MR_INTS(0, 0));
    mr_output half = mr_mul(g, output, mr_constant_float(g, *(const float *)context));
    return mr_add_v2(g, mr_slice(g, input, start, size), half);
}

static mr_output wide_residual(void *, mr_graph *, mr_output input, mr_output)
{
    return input;
}

static mr_output no_residual(void *, mr_graph *, mr_output, mr_output)
{
    return (mr_output){0};
}

static mr_output open_residual(void *, mr_graph *g, mr_output, mr_output output)
{
    mr_graph_push_scope(g, "left");
    return output;
}

TEST(residual_functions_combine_input_and_output)
{
    mr_error error = {0};
    float factor = 0.5f;
    mr_graph *g = mr_graph_new();
    mr_rnn_cell *cell = mr_residual_wrapper_with(
        g, mr_gru_cell(g, 3), MR_OPTIONS(mr_residual_wrapper_options, .residual = half_residual, .context = &factor));
    mr_output outputs = mr_dynamic_rnn(g, cell, sequences(g), nullptr);
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_EQ(mr_output_shape(outputs).dims[2], 3);
    mr_output gradient;
    mr_gradients(g, MR_OUTPUTS(outputs), MR_OUTPUTS(mr_graph_find_output(g, "x")), nullptr, &gradient);
    CHECK_OK(mr_graph_status(g, &error));
    CHECK(gradient.node != nullptr);
    mr_graph_free(g);
}

TEST(residual_functions_that_are_wrong_are_refused)
{
    static const struct {
        mr_output (*function)(void *context, mr_graph *graph, mr_output input, mr_output output);
        const char *part;
    } cases[] = {
        {wide_residual, "residual_wrapper: call has set the output to float"},
        {no_residual, "residual_wrapper: call has not set the output"},
        {nullptr, "residual_wrapper: context has no effect without residual"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mr_graph *g = mr_graph_new();
        mr_rnn_cell *cell = mr_residual_wrapper_with(
            g, mr_gru_cell(g, 3), MR_OPTIONS(mr_residual_wrapper_options, .residual = cases[i].function, .context = g));
        if (cell != nullptr) mr_dynamic_rnn(g, cell, sequences(g), nullptr);
        check_refused(g, cases[i].part);
    }
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_rnn_cell *cell = mr_residual_wrapper_with(g, mr_gru_cell(g, 3),
                                                 MR_OPTIONS(mr_residual_wrapper_options, .residual = open_residual));
    mr_dynamic_rnn(g, cell, sequences(g), nullptr);
    CHECK_STATUS(mr_graph_status(g, &error), MR_FAILED_PRECONDITION);
    CHECK_CONTAINS(error.message, "has left a name scope open");
    mr_graph_free(g);
    CHECK(mr_residual_wrapper_with(nullptr, nullptr, nullptr) == nullptr);
}

static bool drops_first(void *context, int32_t index)
{
    (*(int *)context)++;
    return index == 0;
}

static bool drops_none(void *, int32_t)
{
    return false;
}

static int drops_with(bool variational, bool (*function)(void *, int32_t), void *context)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, 4)), states[2];
    mr_rnn_cell *cell = mr_dropout_wrapper(g, mr_lstm_cell(g, 4), .state_keep_prob = 0.5f, .drops_state = function,
                                           .drops_state_context = context, .variational_recurrent = variational);
    for (int i = 0; i < 2; i++) states[i] = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, 4));
    mr_rnn_cell_call(g, cell, x, states, states);
    CHECK_OK(mr_graph_status(g, &error));
    int count = 0;
    for (int32_t i = 0; i < mr_graph_node_count(g); i++)
        count += strcmp(mr_node_op(mr_graph_node(g, i)), "RandomUniform") == 0;
    mr_graph_free(g);
    return count;
}

TEST(dropout_asks_which_states_are_dropped)
{
    int calls = 0;
    const int others = drops_with(false, drops_none, nullptr); /* the initializer's */
    for (int variational = 0; variational < 2; variational++) {
        CHECK_EQ(drops_with(variational == 1, drops_first, &calls), others + 1);
        CHECK_EQ(calls, 2 * (variational + 1));
        CHECK_EQ(drops_with(variational == 1, drops_none, nullptr), others);
        CHECK_EQ(drops_with(variational == 1, nullptr, nullptr), others + 1); /* h */
    }
    mr_graph *g = mr_graph_new();
    mr_dropout_wrapper(g, mr_gru_cell(g, 3), .drops_state = drops_none);
    check_refused(g, "drops_state has no effect: no state is dropped");
    g = mr_graph_new();
    mr_dropout_wrapper(g, mr_gru_cell(g, 3), .state_keep_prob = 0.5f, .drops_state_context = g);
    check_refused(g, "drops_state_context has no effect without drops_state");
}
