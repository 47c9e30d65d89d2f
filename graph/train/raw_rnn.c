/* Networks whose inputs, outputs and end are decided by a function of the caller's, as tf.nn.raw_rnn. */
#include "graph/train/batch_check.h"
#include "graph/train/open_scopes.h"
#include "graph/train/rnn_cell.h"
#include <millrace/control_flow.h>
#include <millrace/ops.h>
#include <millrace/seq2seq.h>

#include <assert.h>
#include <stdio.h>

constexpr int32_t LOOP_STATES_MAX = 64;
/* The loop's variables: time, finished, input and the flow of what is emitted; then the states of the cell and of the
 * function. */
constexpr int32_t TIME = 0, FINISHED = 1, INPUT = 2, FLOW = 3, STATES = 4;
constexpr int32_t VARIABLES_MAX = 4 + MR_RNN_STATES_MAX + 64;

typedef struct network {
    mr_graph *graph;
    mr_rnn_cell *cell;
    mr_raw_rnn_loop loop;
    void *context;
    const mr_raw_rnn_options *options;
    int32_t state_count;
    bool has_emit;       /* of the function's; otherwise the cell's output is emitted */
    mr_dtype emit_dtype; /* of one step */
    mr_shape emit_shape;
    mr_output array; /* the handle */
    mr_output variables[VARIABLES_MAX];
    mr_shape shapes[VARIABLES_MAX];
} network;

static mr_output int32_scalar(mr_graph *graph, int32_t value)
{
    return mr_constant_int32s(graph, MR_SCALAR, &value, nullptr);
}

static int32_t variable_count(const network *n)
{
    return STATES + n->state_count + n->options->loop_state_count;
}

static bool fail(const network *n, const char *what)
{
    if (mr_graph_status(n->graph, nullptr) == MR_OK) (void)mr_graph_fail(n->graph, MR_INVALID_ARGUMENT, "%s", what);
    return false;
}

/* ---- The caller's function ---- */

/* Calls the function with the variables of the step, and replaces them. */
static bool call(network *n, mr_output time, mr_output output, mr_output *emit)
{
    mr_output *v = n->variables, *own = v + STATES + n->state_count;
    mr_raw_rnn_step step = {.time = time, .output = output, .states = v + STATES, .loop_state = own};
    const mr_callback callback = mr_callback_begin(n->graph);
    n->loop(n->context, n->graph, &step);
    if (!mr_callback_end(n->graph, &callback, "raw_rnn", "the loop function")) return false;
    if (step.finished.node == nullptr || mr_output_dtype(step.finished) != MR_BOOL ||
        mr_output_shape(step.finished).rank > 1 || mr_output_shape(step.finished).rank == 0)
        return fail(n, "raw_rnn: the loop function must set finished to bool[batch]");
    if (step.input.node == nullptr) return fail(n, "raw_rnn: the loop function must set input");
    for (int32_t i = STATES; i < variable_count(n); i++)
        if (v[i].node == nullptr) return fail(n, "raw_rnn: the loop function must set all states");
    v[FINISHED] = step.finished;
    v[INPUT] = step.input;
    *emit = step.emit.node != nullptr ? step.emit : output;
    return true;
}

static int64_t known_batch(mr_output value)
{
    const mr_shape shape = mr_output_shape(value);
    return shape.rank >= 1 ? shape.dims[0] : -1;
}

/* The values before the first step, and the shapes that they keep. */
static bool begin(network *n)
{
    mr_graph *graph = n->graph;
    mr_output *v = n->variables, emit = {0};
    v[TIME] = int32_scalar(graph, 0);
    if (!call(n, v[TIME], (mr_output){0}, &emit)) return false;
    const int64_t features = mr_layer_channels(graph, v[INPUT], 2, 1, "a recurrent network");
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    const mr_dtype dtype = mr_output_dtype(v[INPUT]);
    if (!mr_rnn_cell_build(graph, n->cell, features, dtype) || !mr_rnn_check_states(graph, n->cell, v + STATES))
        return false;
    const int64_t batch = known_batch(v[INPUT]);
    const mr_batch_size size = mr_batch_size_of("the input", v[INPUT], 0);
    v[FINISHED] = mr_batch_check(graph, v[FINISHED], "raw_rnn", size, mr_batch_size_of("finished", v[FINISHED], 0), "");
    for (int32_t i = STATES; i < STATES + n->state_count; i++)
        if (!n->cell->states[i - STATES].is_time)
            v[i] = mr_batch_check(graph, v[i], "raw_rnn", size, mr_batch_size_of("the states", v[i], 0), "");
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    n->has_emit = emit.node != nullptr;
    n->emit_dtype = n->has_emit ? mr_output_dtype(emit) : dtype;
    n->emit_shape = n->has_emit ? mr_output_shape(emit) : MR_SHAPE(batch, mr_rnn_cell_output_size(n->cell));
    if (n->emit_shape.rank < 1 || n->emit_shape.rank >= MR_RANK_MAX)
        return fail(n, "raw_rnn: what the loop function emits must be [batch, …]");
    n->shapes[TIME] = n->shapes[FLOW] = MR_SCALAR;
    n->shapes[FINISHED] = MR_SHAPE(batch);
    n->shapes[INPUT] = MR_SHAPE(batch, features);
    for (int32_t i = 0; i < n->state_count; i++) n->shapes[STATES + i] = mr_rnn_state_shape(n->cell, i, batch);
    for (int32_t i = STATES + n->state_count; i < variable_count(n); i++) n->shapes[i] = mr_output_shape(v[i]);
    mr_tensor_array_v3_outputs array =
        mr_tensor_array_v3(graph, int32_scalar(graph, 0), n->emit_dtype, .dynamic_size = true,
                           .element_shape = n->emit_shape, .tensor_array_name = "rnn_output");
    n->array = array.handle;
    v[FLOW] = array.flow;
    return mr_graph_status(graph, nullptr) == MR_OK;
}

/* ---- The loop ---- */

/* Whether a loop keeps a variable of that shape. */
static bool keeps(mr_shape shape, mr_shape next)
{
    bool is_kept = shape.rank < 0 || shape.rank == next.rank;
    for (int32_t i = 0; is_kept && i < shape.rank; i++) is_kept = shape.dims[i] < 0 || shape.dims[i] == next.dims[i];
    return is_kept;
}

/* Whether a value may follow that of the step before: of the dtype and the shape that it had before the first step. */
static bool check_next(const network *n, int32_t index, mr_output before)
{
    char found[MR_SHAPE_TEXT_SIZE], expected[MR_SHAPE_TEXT_SIZE];
    const mr_output next = n->variables[index];
    const mr_dtype dtype = mr_output_dtype(before);
    const int32_t state = index - STATES, own = state - n->state_count;
    if (mr_graph_status(n->graph, nullptr) != MR_OK) return false;
    const mr_shape shape = mr_output_shape(next);
    const bool is_good = own >= 0 ? keeps(n->shapes[index], shape) : mr_shape_compatible(shape, n->shapes[index]);
    if (is_good && mr_output_dtype(next) == dtype) return true;
    char what[32] = "input";
    if (index == FINISHED) (void)snprintf(what, sizeof what, "finished");
    if (index >= STATES)
        (void)snprintf(what, sizeof what, "%s %d", own >= 0 ? "loop_state" : "state", (int)(own >= 0 ? own : state));
    (void)mr_graph_fail(n->graph, MR_INVALID_ARGUMENT,
                        "raw_rnn: the loop function has set %s to %s%s, but before the first step it was %s%s", what,
                        mr_dtype_name(mr_output_dtype(next)), mr_shape_text(shape, found, sizeof found),
                        mr_dtype_name(dtype), mr_shape_text(n->shapes[index], expected, sizeof expected));
    return false;
}

static bool check_emit(const network *n, mr_output emit)
{
    char found[MR_SHAPE_TEXT_SIZE], expected[MR_SHAPE_TEXT_SIZE];
    if (mr_output_dtype(emit) == n->emit_dtype && mr_shape_compatible(mr_output_shape(emit), n->emit_shape))
        return true;
    (void)mr_graph_fail(n->graph, MR_INVALID_ARGUMENT,
                        "raw_rnn: the loop function emits %s%s, but before the first step it was %s%s",
                        mr_dtype_name(mr_output_dtype(emit)), mr_shape_text(mr_output_shape(emit), found, sizeof found),
                        mr_dtype_name(n->emit_dtype), mr_shape_text(n->emit_shape, expected, sizeof expected));
    return false;
}

static void body(network *n)
{
    mr_graph *graph = n->graph;
    mr_output *v = n->variables, before[MR_RNN_STATES_MAX] = {0}, emit = {0}, last[VARIABLES_MAX] = {0};
    const mr_output time = v[TIME], finished = v[FINISHED];
    assert(n->state_count <= MR_RNN_STATES_MAX);
    for (int32_t i = 0; i < n->state_count; i++) before[i] = v[STATES + i];
    for (int32_t i = 0; i < variable_count(n); i++) last[i] = v[i];
    mr_output output = mr_rnn_cell_call(graph, n->cell, v[INPUT], before, v + STATES);
    v[TIME] = mr_add_v2(graph, time, int32_scalar(graph, 1), .name = "add");
    if (!call(n, v[TIME], output, &emit)) return;
    for (int32_t i = FINISHED; i < variable_count(n); i++)
        if (i != FLOW && !check_next(n, i, last[i])) return;
    if (!check_emit(n, emit)) return;
    emit = mr_select(graph, finished, mr_zeros_like(graph, emit), emit, .name = "Select");
    for (int32_t i = 0; i < n->state_count; i++) {
        mr_output *state = &v[STATES + i];
        if (!n->cell->states[i].is_time) *state = mr_select(graph, finished, before[i], *state, .name = "Select");
        if (mr_graph_status(graph, nullptr) == MR_OK) mr_output_set_shape(*state, n->shapes[STATES + i]);
    }
    v[FLOW] = mr_tensor_array_write_v3(graph, n->array, time, emit, v[FLOW]);
    v[FINISHED] = mr_logical_or(graph, finished, v[FINISHED], .name = "LogicalOr");
    if (mr_graph_status(graph, nullptr) != MR_OK) return;
    mr_output_set_shape(v[INPUT], n->shapes[INPUT]);
    mr_output_set_shape(v[FINISHED], n->shapes[FINISHED]);
}

/* Returns what is emitted, [time, batch, …]. */
static mr_output run_loop(network *n)
{
    mr_graph *graph = n->graph;
    const int32_t count = variable_count(n);
    mr_output initial[VARIABLES_MAX], *v = n->variables;
    assert(count <= VARIABLES_MAX);
    for (int32_t i = 0; i < count; i++) initial[i] = v[i];
    mr_while_loop *loop = mr_while_loop_begin(
        graph, MR_OUTPUTS_OF(initial, count), v, .parallel_iterations = n->options->parallel_iterations,
        .swap_memory = n->options->swap_memory, .shape_invariants = {n->shapes, count});
    mr_output all = mr_all(graph, v[FINISHED], mr_constant_ints(graph, MR_INTS(0)), .name = "All");
    mr_while_loop_body(loop, mr_logical_not(graph, all), v);
    if (mr_graph_status(graph, nullptr) == MR_OK) body(n);
    mr_while_loop_end(loop, MR_OUTPUTS_OF(v, count), initial);
    for (int32_t i = 0; i < count; i++) v[i] = initial[i];
    mr_output size = mr_tensor_array_size_v3(graph, n->array, v[FLOW]);
    mr_output order = mr_range(graph, int32_scalar(graph, 0), size, int32_scalar(graph, 1));
    mr_output emitted =
        mr_tensor_array_gather_v3(graph, n->array, order, v[FLOW], n->emit_dtype, .element_shape = n->emit_shape,
                                  .name = "TensorArrayStack/TensorArrayGatherV3");
    mr_shape shape = {.rank = n->emit_shape.rank + 1, .dims = {-1}};
    for (int32_t i = 1; i < shape.rank; i++) shape.dims[i] = n->emit_shape.dims[i - 1];
    if (mr_graph_status(graph, nullptr) == MR_OK) mr_output_set_shape(emitted, shape);
    return emitted;
}

static bool check(const network *n)
{
    const mr_raw_rnn_options *o = n->options;
    if (mr_graph_status(n->graph, nullptr) != MR_OK) return false;
    if (n->cell == nullptr) return fail(n, "raw_rnn: there is no cell");
    if (n->loop == nullptr) return fail(n, "raw_rnn: there is no loop function");
    if (o->loop_state_count < 0 || o->loop_state_count > LOOP_STATES_MAX)
        return fail(n, "raw_rnn: loop_state_count must be 0 to 64");
    if (o->loop_state != nullptr && o->loop_state_count == 0)
        return fail(n, "raw_rnn: loop_state has no effect without loop_state_count");
    return o->parallel_iterations >= 1 || fail(n, "raw_rnn: parallel_iterations must be at least 1");
}

mr_output mr_raw_rnn_(mr_graph *graph, mr_rnn_cell *cell, mr_raw_rnn_loop loop, void *context, mr_output *final,
                      const mr_raw_rnn_options *given)
{
    mr_raw_rnn_options o;
    const int32_t count = mr_rnn_cell_state_count(cell);
    if (graph == nullptr) return (mr_output){0};
    for (int32_t i = 0; final != nullptr && i < count; i++) final[i] = mr_graph_failed_output(graph);
    if (!MR_LAYER_READ(mr_raw_rnn_options, graph, &o, given)) return mr_graph_failed_output(graph);
    for (int32_t i = 0; o.loop_state != nullptr && i < o.loop_state_count && i < LOOP_STATES_MAX; i++)
        o.loop_state[i] = mr_graph_failed_output(graph);
    network *n = mr_rnn_alloc(graph, sizeof *n);
    if (n == nullptr) return mr_graph_failed_output(graph);
    *n = (network){.graph = graph, .cell = cell, .loop = loop, .context = context, .options = &o, .state_count = count};
    if (!check(n)) return mr_graph_failed_output(graph);
    mr_output emitted = mr_graph_failed_output(graph);
    mr_graph_push_variable_scope(graph, o.name != nullptr ? o.name : "rnn");
    if (begin(n)) {
        emitted = run_loop(n);
        for (int32_t i = 0; final != nullptr && i < count; i++) final[i] = n->variables[STATES + i];
        for (int32_t i = 0; o.loop_state != nullptr && i < o.loop_state_count; i++)
            o.loop_state[i] = n->variables[STATES + count + i];
    }
    mr_graph_pop_variable_scope(graph);
    return emitted;
}
