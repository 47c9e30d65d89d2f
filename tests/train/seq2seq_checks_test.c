/* Decoders, attention and raw networks: batch sizes that differ, functions that leave scopes open, limits. */
#include "tests/test.h"
#include <millrace/millrace.h>

#include <string.h>

enum { BATCH = 3, TIME = 4, FEATURES = 5, UNITS = 6, IDS = 7, WIDTH = 2 };

static void check_refused(mr_graph *g, const char *part)
{
    mr_error error = {0};
    CHECK(mr_graph_status(g, &error) != MR_OK);
    CHECK_CONTAINS(error.message, part);
    mr_graph_free(g);
}

static mr_output floats(mr_graph *g, mr_shape shape)
{
    return mr_placeholder(g, MR_FLOAT, .shape = shape);
}

static mr_output ints(mr_graph *g, int64_t count)
{
    return mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(count));
}

/* ---- Batch sizes ---- */

typedef struct decoding {
    mr_graph *g;
    mr_output x, lengths, memory, ends, state, start; /* placeholders */
    mr_decoded decoded;
} decoding;

/* A decoder of placeholders whose batch is known or not. is_beam: beam search */
static decoding decode(bool is_beam, const int64_t *batches)
{
    decoding d = {.g = mr_graph_new()};
    mr_graph *g = d.g;
    mr_output states[4];
    d.x = floats(g, MR_SHAPE(batches[0], TIME, FEATURES));
    d.lengths = ints(g, batches[1]);
    d.memory = floats(g, MR_SHAPE(batches[2], TIME, FEATURES));
    d.ends = ints(g, batches[3]);
    d.state = floats(g, MR_SHAPE(batches[4], UNITS));
    d.start = ints(g, batches[0]);
    mr_attention *attention = mr_luong_attention(g, UNITS, d.memory, .memory_sequence_length = d.ends);
    mr_rnn_cell *cell = mr_attention_wrapper(g, mr_gru_cell(g, UNITS), attention, .attention_layer_size = UNITS,
                                             .initial_cell_state = &d.state);
    mr_output batch = mr_squeeze(
        g, mr_slice(g, mr_shape_of(g, d.x), mr_constant_ints(g, MR_INTS(0)), mr_constant_ints(g, MR_INTS(1))));
    if (is_beam) batch = mr_mul(g, batch, mr_constant_int32(g, WIDTH));
    if (batches[0] >= 0) batch = mr_constant_int32(g, (int32_t)batches[0] * (is_beam ? WIDTH : 1));
    mr_rnn_cell_zero_state(g, cell, batch, MR_FLOAT, states);
    mr_decoder *decoder = nullptr;
    if (is_beam) {
        mr_variable words = mr_get_variable(g, "words", MR_SHAPE(IDS, FEATURES));
        mr_output_layer *layer = mr_output_layer_new(g, .units = IDS);
        decoder =
            mr_beam_search_decoder(g, cell, MR_VARIABLES(words), d.start, 1, states, WIDTH, .output_layer = layer);
    } else {
        decoder = mr_basic_decoder(g, cell, mr_training_helper(g, d.x, d.lengths), states);
    }
    d.decoded = mr_dynamic_decode(g, decoder, nullptr, .maximum_iterations = TIME);
    return d;
}

static mr_tensor zeros(mr_dtype dtype, mr_shape shape)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init(&tensor, dtype, shape, &error));
    memset(tensor.data, 0, mr_tensor_size_bytes(&tensor));
    for (int64_t i = 0; dtype == MR_INT32 && i < mr_tensor_count(&tensor); i++) ((int32_t *)tensor.data)[i] = TIME;
    return tensor;
}

/* Feeds the batches, and returns the status of the run. */
static mr_status run_decoding(const decoding *d, bool is_beam, const int64_t *batches, mr_error *found)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_tensor result = {0};
    mr_node *init = mr_initialize_variables(d->g, MR_GLOBAL_VARIABLES, "init");
    mr_feed feeds[] = {{d->x, zeros(MR_FLOAT, MR_SHAPE(batches[0], TIME, FEATURES))},
                       {d->lengths, zeros(MR_INT32, MR_SHAPE(batches[1]))},
                       {d->memory, zeros(MR_FLOAT, MR_SHAPE(batches[2], TIME, FEATURES))},
                       {d->ends, zeros(MR_INT32, MR_SHAPE(batches[3]))},
                       {d->state, zeros(MR_FLOAT, MR_SHAPE(batches[4], UNITS))},
                       {d->start, zeros(MR_INT32, MR_SHAPE(batches[0]))}};
    CHECK_OK(mr_session_new(d->g, nullptr, &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
    const mr_output fetch = is_beam ? d->decoded.log_probs : d->decoded.rnn_output;
    const mr_status status =
        mr_session_run(session, (mr_feeds){feeds, 6}, MR_OUTPUTS(fetch), &result, nullptr, 0, found);
    for (int i = 0; i < 6; i++) mr_tensor_deinit(&feeds[i].value);
    mr_tensor_deinit(&result);
    mr_session_free(session);
    return status;
}

/* Which of the batches differs: inputs, lengths, memory, its lengths, the initial state. */
static const char *const basic_texts[] = {
    nullptr,
    "training_helper: the batch size",
    "attention_wrapper: the batch size",
    "luong_attention: the batch size",
    "attention_wrapper: the batch size",
};

TEST(decoders_check_batch_sizes_that_are_known)
{
    for (int wrong = 0; wrong < 5; wrong++) {
        int64_t batches[] = {BATCH, BATCH, BATCH, BATCH, BATCH};
        if (wrong > 0) batches[wrong] = 2;
        if (wrong == 2) batches[3] = 2; /* the lengths of the memory fit it */
        const decoding d = decode(false, batches);
        if (wrong > 0)
            check_refused(d.g, basic_texts[wrong]);
        else
            mr_graph_free(d.g);
    }
}

TEST(decoders_check_batch_sizes_when_they_run)
{
    const int64_t unknown[] = {-1, -1, -1, -1, -1};
    for (int wrong = 0; wrong < 5; wrong++) {
        mr_error error = {0};
        int64_t batches[] = {BATCH, BATCH, BATCH, BATCH, BATCH};
        if (wrong > 0) batches[wrong] = 2;
        if (wrong == 2) batches[3] = 2;
        const decoding d = decode(false, unknown);
        CHECK_OK(mr_graph_status(d.g, &error));
        const mr_status status = run_decoding(&d, false, batches, &error);
        if (wrong == 0) CHECK_OK(status);
        if (wrong > 0) {
            CHECK_STATUS(status, MR_INVALID_ARGUMENT);
            CHECK_CONTAINS(error.message, basic_texts[wrong]);
        }
        mr_graph_free(d.g);
    }
}

TEST(beam_search_needs_what_tile_batch_has_repeated)
{
    const int64_t unknown[] = {-1, -1, -1, -1, -1};
    for (int wrong = 0; wrong < 4; wrong++) {
        const int64_t all = BATCH * WIDTH;
        const int64_t memory = wrong == 1 || wrong == 3 ? BATCH : all, state = wrong == 2 || wrong == 3 ? BATCH : all;
        const int64_t batches[] = {BATCH, BATCH, memory, memory, state};
        mr_error error = {0};
        decoding d = decode(true, batches);
        if (wrong > 0)
            check_refused(d.g, "mr_tile_batch");
        else
            mr_graph_free(d.g);
        d = decode(true, unknown);
        CHECK_OK(mr_graph_status(d.g, &error));
        const mr_status status = run_decoding(&d, true, batches, &error);
        if (wrong == 0) CHECK_OK(status);
        if (wrong > 0) {
            CHECK_STATUS(status, MR_INVALID_ARGUMENT);
            CHECK_CONTAINS(error.message, "mr_tile_batch");
        }
        mr_graph_free(d.g);
    }
}

TEST(the_initial_state_of_an_attention_wrapper_is_checked)
{
    static const char *const texts[] = {
        "attention_wrapper: initial_cell_state 1 is float[3,5], but must be float[?,6]",
        "attention_wrapper: initial_cell_state 1 is int32[3], but must be float[?,6]",
        "attention_wrapper: initial_cell_state 1 is no output of the graph; the cell has 2 states",
    };
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
        mr_graph *g = mr_graph_new();
        mr_output states[2] = {floats(g, MR_SHAPE(BATCH, UNITS)), {0}};
        if (i == 0) states[1] = floats(g, MR_SHAPE(BATCH, FEATURES));
        if (i == 1) states[1] = ints(g, BATCH);
        mr_attention *attention = mr_bahdanau_attention(g, UNITS, floats(g, MR_SHAPE(BATCH, TIME, FEATURES)));
        mr_attention_wrapper(g, mr_lstm_cell(g, UNITS), attention, .initial_cell_state = states);
        check_refused(g, texts[i]);
    }
}

/* ---- Limits ---- */

TEST(no_iterations_are_no_steps)
{
    for (int i = 0; i < 4; i++) {
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_session *session = nullptr;
        mr_output state = mr_constant_floats(g, MR_SHAPE(BATCH, UNITS), (float[BATCH * UNITS]){0}, nullptr), final;
        mr_output x =
            mr_constant_floats(g, MR_SHAPE(BATCH, TIME, FEATURES), (float[BATCH * TIME * FEATURES]){0}, nullptr);
        mr_output lengths = mr_constant_int32s(g, MR_SHAPE(BATCH), (int32_t[]){4, 2, 1}, nullptr);
        mr_decoder *decoder = mr_basic_decoder(g, mr_gru_cell(g, UNITS), mr_training_helper(g, x, lengths), &state);
        mr_decoded d = {0};
        if (i == 0) d = mr_dynamic_decode(g, decoder, &final);
        if (i == 1) d = mr_dynamic_decode(g, decoder, &final, .maximum_iterations = 0);
        if (i == 2) d = mr_dynamic_decode(g, decoder, &final, .maximum_iterations_output = mr_constant_int32(g, -3));
        if (i == 3) d = mr_dynamic_decode(g, decoder, &final, .maximum_iterations = 2);
        mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
        mr_tensor results[3] = {0};
        CHECK_OK(mr_session_new(g, nullptr, &session, &error));
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(d.rnn_output, d.sequence_lengths, final), results,
                                nullptr, 0, &error));
        const int steps[] = {4, 0, 0, 2};
        CHECK_EQ(results[0].shape.dims[0], BATCH);
        CHECK_EQ(results[0].shape.dims[1], steps[i]);
        const int32_t ends[] = {4, 2, 1};
        for (int b = 0; b < BATCH; b++)
            CHECK_EQ(mr_tensor_int32s(&results[1])[b], ends[b] < steps[i] ? ends[b] : steps[i]);
        for (int k = 0; k < 3; k++) mr_tensor_deinit(&results[k]);
        mr_session_free(session);
        mr_graph_free(g);
    }
}

TEST(sampling_probabilities_are_probabilities)
{
    const float wrong[] = {-0.1f, 1.5f, NAN};
    for (int i = 0; i < 3; i++) {
        mr_graph *g = mr_graph_new();
        mr_scheduled_output_training_helper(g, floats(g, MR_SHAPE(BATCH, TIME, UNITS)), ints(g, BATCH),
                                            mr_constant_float(g, wrong[i]));
        check_refused(g, ", but must be in [0, 1]");
    }
    mr_graph *g = mr_graph_new();
    mr_error error = {0};
    mr_output each = mr_constant_floats(g, MR_SHAPE(BATCH), (float[]){0, 1, 0.5f}, nullptr);
    mr_output x = floats(g, MR_SHAPE(BATCH, TIME, UNITS));
    CHECK(mr_scheduled_output_training_helper(g, x, ints(g, BATCH), each) != nullptr);
    CHECK_OK(mr_graph_status(g, &error));
    mr_scheduled_output_training_helper(g, floats(g, MR_SHAPE(2, TIME, UNITS)), ints(g, 2), each);
    check_refused(g, "sampling_probability is float[3], but must be float[] or float[batch]");
}

/* ---- beam_gather_tree ---- */

TEST(gather_tree_checks_its_arguments)
{
    static const char *const texts[] = {
        "step_ids is no output of the graph",
        "parent_ids is int32[3], but must be int32[time,batch,beam]",
        "lengths is int32[4,3,2], but must be int32[batch]",
        "step_ids is int32[4,3,2], but parent_ids int32[4,3,1]",
        "the batch size of step_ids is 3, but that of lengths is 4",
    };
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
        mr_graph *g = mr_graph_new();
        mr_output ids = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(TIME, BATCH, 2)), none = {0};
        mr_output few = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(TIME, BATCH, 1));
        mr_beam_gather_tree(g, i == 0 ? none : ids,
                            i == 1   ? ints(g, 3)
                            : i == 3 ? few
                                     : ids,
                            i == 2 ? ids : ints(g, i == 4 ? 4 : BATCH), 1);
        check_refused(g, texts[i]);
    }
}

static mr_status follow(mr_shape ids, mr_shape parents, int64_t lengths, int32_t end, mr_tensor *result,
                        mr_error *found)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    mr_output first = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(-1, -1, -1));
    mr_output second = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(-1, -1, -1)), third = ints(g, -1);
    mr_output tree = mr_beam_gather_tree(g, first, second, third, end);
    mr_feed feeds[] = {
        {first, zeros(MR_INT32, ids)}, {second, zeros(MR_INT32, parents)}, {third, zeros(MR_INT32, MR_SHAPE(lengths))}};
    memset(feeds[1].value.data, 0, mr_tensor_size_bytes(&feeds[1].value));
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    const mr_status status = mr_session_run(session, (mr_feeds){feeds, 3}, MR_OUTPUTS(tree), result, nullptr, 0, found);
    for (int i = 0; i < 3; i++) mr_tensor_deinit(&feeds[i].value);
    mr_session_free(session);
    mr_graph_free(g);
    return status;
}

TEST(gather_tree_checks_sizes_when_it_runs)
{
    mr_error error = {0};
    mr_tensor result = {0};
    CHECK_OK(follow(MR_SHAPE(TIME, BATCH, 2), MR_SHAPE(TIME, BATCH, 2), BATCH, -1, &result, &error));
    CHECK_EQ(mr_tensor_count(&result), TIME * BATCH * 2);
    for (int i = 0; i < TIME * BATCH * 2; i++) CHECK_EQ(mr_tensor_int32s(&result)[i], TIME);
    mr_tensor_deinit(&result);
    const mr_shape empty[] = {MR_SHAPE(TIME, BATCH, 0), MR_SHAPE(0, BATCH, 2), MR_SHAPE(TIME, 0, 2)};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(follow(empty[i], empty[i], empty[i].dims[1], 1, &result, &error));
        CHECK_EQ(mr_tensor_count(&result), 0);
        mr_tensor_deinit(&result);
    }
    CHECK_STATUS(follow(MR_SHAPE(TIME, BATCH, 2), MR_SHAPE(TIME, BATCH, 1), BATCH, 1, &result, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "beam_gather_tree: the shapes of step_ids and of parent_ids differ");
    CHECK_STATUS(follow(MR_SHAPE(TIME, BATCH, 2), MR_SHAPE(TIME, BATCH, 2), 2, 1, &result, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "beam_gather_tree: the batch sizes of step_ids and of lengths differ");
}

/* ---- Functions of the caller's ---- */

enum { GOOD, NAME, VARIABLE, DEVICE, COLOCATION, CONTROL, CLEARED, OVERRIDE, COND, LOOP, TOO_MANY = 10 };
enum { KINDS = 10, POPS = 6 };

/* What a function leaves open, or closes without having opened it. */
static void disturb(mr_graph *g, int kind)
{
    mr_output one = mr_constant_int32(g, 1), v;
    mr_node *node = one.node;
    switch (kind) {
    case NAME:
        mr_graph_push_scope(g, "left");
        break;
    case VARIABLE:
        mr_graph_push_variable_scope(g, "left");
        break;
    case DEVICE:
        mr_graph_push_device(g, "/cpu:0");
        break;
    case COLOCATION:
        mr_graph_push_colocation(g, node);
        break;
    case CONTROL:
        mr_graph_push_control_dependencies(g, &node, 1);
        break;
    case CLEARED:
        mr_graph_push_control_dependencies(g, nullptr, 0);
        break;
    case OVERRIDE:
        mr_graph_push_gradient_override(g, "Identity", "Mine");
        break;
    case COND:
        (void)mr_cond_begin(g, mr_constant_bool(g, true));
        break;
    case LOOP:
        (void)mr_while_loop_begin(g, MR_OUTPUTS(one), &v);
        break;
    case TOO_MANY:
        mr_graph_pop_scope(g);
        break;
    case TOO_MANY + 1:
        mr_graph_pop_variable_scope(g);
        break;
    case TOO_MANY + 2:
        mr_graph_pop_device(g);
        break;
    case TOO_MANY + 3:
        mr_graph_pop_colocation(g);
        break;
    case TOO_MANY + 4:
        mr_graph_pop_control_dependencies(g);
        break;
    case TOO_MANY + 5:
        mr_graph_pop_gradient_override(g);
        break;
    default:
        break;
    }
}

typedef struct disturber {
    int where, kind;
} disturber;
enum { INITIALIZE, SAMPLE, NEXT, CELL_BUILD, CELL_CALL, RAW_LOOP, PROBABILITY, GRADIENT, PLACES };

static void at(const disturber *d, mr_graph *g, int where)
{
    if (d->where == where) disturb(g, d->kind);
}

static void initialize(void *context, mr_graph *g, mr_helper_step *step)
{
    step->finished = mr_fill(g, mr_constant_ints(g, MR_INTS(BATCH)), mr_constant_bool(g, false));
    step->inputs = mr_fill(g, mr_constant_ints(g, MR_INTS(BATCH, FEATURES)), mr_constant_float(g, 1));
    at(context, g, INITIALIZE);
}

static mr_output sample(void *context, mr_graph *g, mr_helper_step *step)
{
    (void)step;
    mr_output ids = mr_fill(g, mr_constant_ints(g, MR_INTS(BATCH)), mr_constant_int32(g, 0));
    at(context, g, SAMPLE);
    return ids;
}

static void next_inputs(void *context, mr_graph *g, mr_helper_step *step)
{
    initialize(context, g, step);
    at(context, g, NEXT);
}

static void cell_build(void *context, mr_graph *g, int64_t size, mr_dtype dtype)
{
    (void)size;
    (void)dtype;
    at(context, g, CELL_BUILD);
}

static mr_output cell_call(void *context, mr_graph *g, mr_output input, const mr_output *states, mr_output *next)
{
    next[0] = mr_identity(g, states[0]);
    mr_output output = mr_identity(g, input);
    at(context, g, CELL_CALL);
    return output;
}

static void raw_loop(void *context, mr_graph *g, mr_raw_rnn_step *step)
{
    step->finished = mr_fill(g, mr_constant_ints(g, MR_INTS(BATCH)), mr_constant_bool(g, true));
    step->input = mr_fill(g, mr_constant_ints(g, MR_INTS(BATCH, FEATURES)), mr_constant_float(g, 1));
    if (step->output.node == nullptr) step->states[0] = step->input;
    at(context, g, RAW_LOOP);
}

static int probability_kind;
static mr_output probability(mr_graph *g, mr_output score)
{
    score = mr_activation_softmax(g, score);
    disturb(g, probability_kind);
    return score;
}

static void gradient(void *context, mr_graph *g, mr_node *node, const mr_output *grads, mr_output *results)
{
    (void)node;
    results[0] = grads[0];
    at(context, g, GRADIENT);
}

/* Builds a network with all functions, in open scopes of all kinds. */
static mr_graph *build(disturber *d)
{
    mr_graph *g = mr_graph_new();
    mr_output around = mr_constant_int32(g, 0), x = floats(g, MR_SHAPE(BATCH, FEATURES)), xs = {0};
    probability_kind = d->where == PROBABILITY ? d->kind : GOOD;
    mr_graph_register_gradient(g, "Mine", gradient, d);
    mr_graph_push_scope(g, "a");
    mr_graph_push_variable_scope(g, "b");
    mr_graph_push_device(g, "/cpu:0");
    mr_graph_push_colocation(g, around.node);
    mr_graph_push_control_dependencies(g, &around.node, 1);
    mr_graph_push_gradient_override(g, "Tanh", "Mine");
    const mr_helper_functions functions = {.size = sizeof functions,
                                           .batch = BATCH,
                                           .features = FEATURES,
                                           .dtype = MR_FLOAT,
                                           .initialize = initialize,
                                           .sample = sample,
                                           .next_inputs = next_inputs};
    const mr_rnn_cell_functions cell_functions = {.size = sizeof cell_functions,
                                                  .state_count = 1,
                                                  .state_sizes = (int64_t[]){FEATURES},
                                                  .output_size = FEATURES,
                                                  .default_name = "my_cell",
                                                  .build = cell_build,
                                                  .call = cell_call};
    mr_rnn_cell *cell = mr_rnn_cell_new(g, &cell_functions, d);
    mr_helper *helper = mr_custom_helper(g, &functions, d);
    (void)mr_dynamic_decode(g, mr_basic_decoder(g, cell, helper, &x), nullptr, .maximum_iterations = 2);
    (void)mr_raw_rnn(g, cell, raw_loop, d, nullptr);
    mr_attention *attention =
        mr_bahdanau_attention(g, UNITS, floats(g, MR_SHAPE(BATCH, TIME, FEATURES)), .probability_fn = probability);
    mr_output states[4];
    mr_rnn_cell *attending = mr_attention_wrapper(g, mr_gru_cell(g, UNITS), attention);
    mr_rnn_cell_zero_state(g, attending, mr_constant_int32(g, BATCH), MR_FLOAT, states);
    (void)mr_rnn_cell_call(g, attending, x, states, states);
    mr_gradients(g, MR_OUTPUTS(mr_tanh(g, x)), MR_OUTPUTS(x), nullptr, &xs);
    mr_graph_pop_gradient_override(g);
    mr_graph_pop_control_dependencies(g);
    mr_graph_pop_colocation(g);
    mr_graph_pop_device(g);
    mr_graph_pop_variable_scope(g);
    mr_graph_pop_scope(g);
    return g;
}

TEST(functions_must_close_the_scopes_that_they_open)
{
    static const char *const names[PLACES] = {
        "custom_helper: initialize has left ",
        "custom_helper: sample has left ",
        "custom_helper: next_inputs has left ",
        "my_cell: build has left ",
        "my_cell: call has left ",
        "raw_rnn: the loop function has left ",
        "attention: probability_fn has left ",
        "mr_graph_register_gradient: Mine has left ",
    };
    static const char *const kinds[KINDS] = {
        "",
        "a name scope open",
        "a variable scope open",
        "a device scope open",
        "a colocation scope open",
        "a scope of control dependencies open",
        "a scope of control dependencies open",
        "a gradient override open",
        "a conditional or a loop open",
        "a conditional or a loop open",
    };
    mr_error error = {0};
    for (int where = 0; where < PLACES; where++)
        for (int kind = 0; kind < KINDS; kind++) {
            disturber d = {where, kind};
            mr_graph *g = build(&d);
            CHECK_STATUS(mr_graph_status(g, &error), kind == GOOD ? MR_OK : MR_FAILED_PRECONDITION);
            if (kind != GOOD) {
                CHECK_CONTAINS(error.message, names[where]);
                CHECK_CONTAINS(error.message, kinds[kind]);
            }
            CHECK_EQ(strlen(mr_graph_scope(g)), 0);
            mr_graph_free(g);
        }
}

TEST(functions_cannot_close_the_scopes_around_them)
{
    static const char *const texts[POPS] = {
        "mr_graph_pop_scope: no name scope is open here",
        "mr_graph_pop_variable_scope: no variable scope is open here",
        "mr_graph_pop_device: no device scope is open here",
        "mr_graph_pop_colocation: no colocation scope is open here",
        "mr_graph_pop_control_dependencies: no scope of control dependencies is open here",
        "mr_graph_pop_gradient_override: no gradient override is open here",
    };
    for (int where = 0; where < PLACES; where++)
        for (int i = 0; i < POPS; i++) {
            disturber d = {where, TOO_MANY + i};
            check_refused(build(&d), texts[i]);
        }
    for (int i = 0; i < POPS; i++) {
        mr_graph *g = mr_graph_new();
        disturb(g, TOO_MANY + i);
        check_refused(g, texts[i]);
    }
}
