/* What recurrent cells have in common: scopes, checks, states; and cells of the caller's. */
#include "graph/train/rnn_cell.h"
#include "graph/train/batch_check.h"
#include "graph/train/open_scopes.h"
#include <millrace/ops.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

void *mr_rnn_alloc(mr_graph *graph, size_t size_bytes)
{
    void *memory = MR_ARENA_NEW(&graph->arena, char, size_bytes);
    if (memory == nullptr) (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a recurrent network");
    return memory;
}

static const char *check_functions(const mr_rnn_cell_functions *f, bool has_states)
{
    if (f->call == nullptr) return "call is missing";
    if (f->default_name == nullptr) return "default_name is missing";
    if (f->state_sizes == nullptr) return "state_sizes is missing";
    if (f->state_count < 1 || f->state_count > MR_RNN_STATES_MAX) return "state_count is not between 1 and 256";
    if (f->output_size < 1) return "output_size is not at least 1";
    for (int32_t i = 0; i < f->state_count; i++)
        if (f->state_sizes[i] < 1 && !has_states) return "a state size is not at least 1";
    return nullptr;
}

mr_rnn_cell *mr_rnn_cell_make(mr_graph *graph, const mr_rnn_cell_functions *given, const mr_rnn_state *states,
                              void *context, bool is_wrapper)
{
    mr_rnn_cell_functions functions;
    if (graph == nullptr || !MR_LAYER_READ(mr_rnn_cell_functions, graph, &functions, given)) return nullptr;
    const char *wrong = check_functions(&functions, states != nullptr);
    if (wrong != nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_rnn_cell_functions: %s", wrong);
        return nullptr;
    }
    const size_t count = (size_t)functions.state_count;
    mr_rnn_cell *cell = mr_rnn_alloc(graph, sizeof *cell);
    int64_t *sizes = mr_rnn_alloc(graph, count * sizeof *sizes);
    mr_rnn_state *own = mr_rnn_alloc(graph, count * sizeof *own);
    if (cell == nullptr || sizes == nullptr || own == nullptr) return nullptr;
    memcpy(sizes, functions.state_sizes, count * sizeof *sizes);
    for (size_t i = 0; i < count; i++) own[i] = states != nullptr ? states[i] : (mr_rnn_state){0};
    functions.state_sizes = sizes;
    functions.default_name = mr_arena_strdup(&graph->arena, functions.default_name);
    if (functions.name != nullptr) functions.name = mr_arena_strdup(&graph->arena, functions.name);
    *cell = (mr_rnn_cell){
        .graph = graph, .functions = functions, .states = own, .context = context, .is_wrapper = is_wrapper};
    return cell;
}

mr_rnn_cell *mr_rnn_cell_new(mr_graph *graph, const mr_rnn_cell_functions *functions, void *context)
{
    return mr_rnn_cell_make(graph, functions, nullptr, context, false);
}

int32_t mr_rnn_cell_state_count(const mr_rnn_cell *cell)
{
    return cell != nullptr ? cell->functions.state_count : 0;
}

int64_t mr_rnn_cell_state_size(const mr_rnn_cell *cell, int32_t index)
{
    return cell != nullptr && index >= 0 && index < cell->functions.state_count ? cell->functions.state_sizes[index]
                                                                                : 0;
}

int64_t mr_rnn_cell_output_size(const mr_rnn_cell *cell)
{
    return cell != nullptr ? cell->functions.output_size : 0;
}

/* Records an error and returns false if the cell could not be created or belongs to another graph. */
static bool check_cell(mr_graph *graph, const mr_rnn_cell *cell)
{
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    if (cell == nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "there is no cell");
    else if (cell->graph != graph)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "the cell %s belongs to another graph",
                            cell->functions.default_name);
    return mr_graph_status(graph, nullptr) == MR_OK;
}

mr_shape mr_rnn_state_shape(const mr_rnn_cell *cell, int32_t index, int64_t batch)
{
    return cell->states[index].is_time ? MR_SCALAR : MR_SHAPE(batch, cell->functions.state_sizes[index]);
}

/* One state of zeros, or the one that the cell has instead. */
static mr_output zero_state(mr_graph *graph, const mr_rnn_cell *cell, int32_t index, mr_output batch_size,
                            mr_dtype dtype)
{
    const mr_rnn_state *state = &cell->states[index];
    if (state->initial.node != nullptr) return mr_identity(graph, state->initial, .name = "checked_cell_state");
    if (state->is_time) return mr_constant_int32s(graph, MR_SCALAR, &(int32_t){0}, "zeros");
    if (state->memory.node != nullptr) {
        mr_batch_size memory = mr_batch_size_of("the memory", state->memory, 0);
        memory.size = state->memory_batch;
        batch_size = mr_batch_check(graph, batch_size, "attention_wrapper", memory,
                                    mr_batch_size_from("the zero state", batch_size),
                                    "; with a beam_search_decoder, it is that of mr_tile_batch: batch * beam_width");
    }
    if (state->is_first) {
        mr_output first = mr_fill(graph, mr_expand_dims(graph, batch_size, mr_constant_int32(graph, 0)),
                                  mr_constant_int32s(graph, MR_SCALAR, &(int32_t){0}, "zeros/Const"));
        return mr_one_hot(graph, first, state->size, mr_train_scalar(graph, "one_hot/on_value", dtype, 1),
                          mr_train_scalar(graph, "one_hot/off_value", dtype, 0), .name = "one_hot");
    }
    mr_output size =
        mr_constant_int32s(graph, MR_SHAPE(1), &(int32_t){(int32_t)cell->functions.state_sizes[index]}, "Const");
    if (state->size.node != nullptr) size = mr_expand_dims(graph, state->size, mr_constant_int32(graph, 0));
    mr_output batch = mr_expand_dims(graph, batch_size, mr_constant_int32(graph, 0));
    mr_output shape = mr_concat_v2(graph, MR_OUTPUTS(batch, size), mr_constant_int32(graph, 0), .name = "concat");
    return mr_fill(graph, shape, mr_train_scalar(graph, "zeros/Const", dtype, 0), .name = "zeros");
}

void mr_rnn_cell_zero_state(mr_graph *graph, const mr_rnn_cell *cell, mr_output batch_size, mr_dtype dtype,
                            mr_output *states)
{
    const int32_t count = mr_rnn_cell_state_count(cell);
    for (int32_t i = 0; i < count; i++) states[i] = mr_graph_failed_output(graph);
    if (!check_cell(graph, cell)) return;
    const char *base = cell->functions.name != nullptr ? cell->functions.name : cell->functions.default_name;
    const char *scope = mr_arena_printf(&graph->arena, "%sZeroState", base);
    if (scope == nullptr) return;
    mr_graph_push_scope(graph, scope);
    for (int32_t i = 0; i < count; i++) states[i] = zero_state(graph, cell, i, batch_size, dtype);
    mr_graph_pop_scope(graph);
}

bool mr_rnn_cell_build(mr_graph *graph, mr_rnn_cell *cell, int64_t input_size, mr_dtype dtype)
{
    if (!check_cell(graph, cell)) return false;
    const mr_rnn_cell_functions *f = &cell->functions;
    if (cell->is_built && (cell->input_size != input_size || cell->dtype != dtype)) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "the cell %s has variables for inputs of %lld features of %s, not %lld of %s",
                            f->default_name, (long long)cell->input_size, mr_dtype_name(cell->dtype),
                            (long long)input_size, mr_dtype_name(dtype));
        return false;
    }
    if (cell->is_built) return true;
    if (!cell->is_wrapper) mr_layer_begin(graph, f->name, f->default_name, f->reuse);
    const mr_callback callback = mr_callback_begin(graph);
    if (f->build != nullptr) f->build(cell->context, graph, input_size, dtype);
    (void)mr_callback_end(graph, &callback, f->default_name, "build");
    if (!cell->is_wrapper) mr_graph_pop_variable_scope(graph);
    cell->is_built = true;
    cell->input_size = input_size;
    cell->dtype = dtype;
    return mr_graph_status(graph, nullptr) == MR_OK;
}

bool mr_rnn_check_states(mr_graph *graph, const mr_rnn_cell *cell, const mr_output *states)
{
    char found[MR_SHAPE_TEXT_SIZE], expected[MR_SHAPE_TEXT_SIZE];
    for (int32_t i = 0; i < cell->functions.state_count; i++) {
        const mr_shape shape = mr_output_shape(states[i]), own = mr_rnn_state_shape(cell, i, -1);
        const mr_dtype dtype = cell->states[i].is_time ? MR_INT32 : cell->dtype;
        if (!mr_shape_compatible(own, shape) || mr_output_dtype(states[i]) != dtype) {
            (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "state %d of the cell %s is %s%s, not %s%s", (int)i,
                                cell->functions.default_name, mr_dtype_name(mr_output_dtype(states[i])),
                                mr_shape_text(shape, found, sizeof found), mr_dtype_name(dtype),
                                mr_shape_text(own, expected, sizeof expected));
            return false;
        }
    }
    return true;
}

/* What a cell of the caller's has returned.
 * index  of a state; -1: the output */
static bool check_result(mr_graph *graph, const mr_rnn_cell *cell, mr_output result, int32_t index)
{
    char found[MR_SHAPE_TEXT_SIZE], expected[MR_SHAPE_TEXT_SIZE], what[32] = "the output";
    const mr_rnn_cell_functions *f = &cell->functions;
    const mr_shape own = index < 0 ? MR_SHAPE(-1, f->output_size) : mr_rnn_state_shape(cell, index, -1);
    const mr_dtype dtype = index >= 0 && cell->states[index].is_time ? MR_INT32 : cell->dtype;
    const bool is_set = result.node != nullptr && result.node->id >= 0;
    if (is_set && mr_output_dtype(result) == dtype && mr_shape_compatible(mr_output_shape(result), own)) return true;
    if (index >= 0) (void)snprintf(what, sizeof what, "state %d", (int)index);
    if (!is_set)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: call has not set %s", f->default_name, what);
    else
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: call has set %s to %s%s, but it must be %s%s",
                            f->default_name, what, mr_dtype_name(mr_output_dtype(result)),
                            mr_shape_text(mr_output_shape(result), found, sizeof found), mr_dtype_name(dtype),
                            mr_shape_text(own, expected, sizeof expected));
    return false;
}

static bool check_results(mr_graph *graph, const mr_rnn_cell *cell, mr_output output, const mr_output *states)
{
    bool is_good = check_result(graph, cell, output, -1);
    for (int32_t i = 0; is_good && i < cell->functions.state_count; i++)
        is_good = check_result(graph, cell, states[i], i);
    return is_good;
}

mr_output mr_rnn_cell_call(mr_graph *graph, mr_rnn_cell *cell, mr_output input, const mr_output *states,
                           mr_output *next)
{
    const mr_output failed = mr_graph_failed_output(graph);
    const int32_t count = mr_rnn_cell_state_count(cell);
    mr_output before[MR_RNN_STATES_MAX], after[MR_RNN_STATES_MAX];
    assert(count <= MR_RNN_STATES_MAX);
    for (int32_t i = 0; i < count; i++) {
        before[i] = states[i];
        after[i] = next[i] = failed;
    }
    if (!check_cell(graph, cell)) return failed;
    const int64_t features = mr_layer_channels(graph, input, 2, 1, "a recurrent cell");
    if (mr_graph_status(graph, nullptr) != MR_OK || !mr_rnn_cell_build(graph, cell, features, mr_output_dtype(input)) ||
        !mr_rnn_check_states(graph, cell, before))
        return failed;
    const mr_rnn_cell_functions *f = &cell->functions;
    assert(cell->is_built && cell->input_size == features);
    if (!cell->is_wrapper) mr_graph_push_scope(graph, f->name != nullptr ? f->name : f->default_name);
    const mr_callback callback = mr_callback_begin(graph);
    const mr_output output = f->call(cell->context, graph, input, before, after);
    const bool is_good = mr_callback_end(graph, &callback, f->default_name, "call");
    if (!cell->is_wrapper) mr_graph_pop_scope(graph);
    if (!is_good || !check_results(graph, cell, output, after)) return failed;
    for (int32_t i = 0; i < count; i++) next[i] = after[i];
    return output;
}
