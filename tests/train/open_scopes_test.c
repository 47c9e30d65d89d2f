/* Functions of the caller's that leave scopes open, or close those around them. */
#include "tests/train/refused.h"

#include <string.h>

enum { BATCH = 3, TIME = 4, FEATURES = 5, UNITS = 6 };

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
