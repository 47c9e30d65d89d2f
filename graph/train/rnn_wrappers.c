/* Cells made of other cells. */
#include "graph/train/rnn_cell.h"
#include <millrace/ops.h>

#include <assert.h>

typedef struct wrapper {
    mr_rnn_cell *cell;
    mr_rnn_cells cells; /* of a stack */
    mr_dropout_wrapper_options dropout;
    /* Of variational dropout: uniform numbers, [1, size]; {0}: nothing is dropped. */
    mr_output input_noise, output_noise, *state_noises;
    bool *drops_state; /* of each state, if the caller decides; null: the default */
    mr_residual_wrapper_options residual;
    const char *device;
} wrapper;

static wrapper *wrapper_new(mr_graph *graph, mr_rnn_cell *cell, const char *name)
{
    if (graph == nullptr || mr_graph_status(graph, nullptr) != MR_OK) return nullptr;
    if (cell == nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: there is no cell", name);
        return nullptr;
    }
    if (cell->depth >= MR_RNN_DEPTH_MAX) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: there are more than %d cells inside of each other", name,
                            (int)MR_RNN_DEPTH_MAX);
        return nullptr;
    }
    wrapper *self = mr_rnn_alloc(graph, sizeof *self);
    if (self != nullptr) *self = (wrapper){.cell = cell};
    return self;
}

/* The cell of a wrapper. */
static mr_rnn_cell *finish(mr_graph *graph, const mr_rnn_cell_functions *functions, wrapper *self)
{
    mr_rnn_cell *made = mr_rnn_cell_make(graph, functions, self->cell->states, self, true);
    if (made != nullptr) made->depth = self->cell->depth + 1;
    return made;
}

/* The functions of a wrapper whose states and output are those of its cell. */
static mr_rnn_cell_functions functions_of(const mr_rnn_cell *cell, const char *name)
{
    return (mr_rnn_cell_functions){.size = sizeof(mr_rnn_cell_functions),
                                   .state_count = cell->functions.state_count,
                                   .state_sizes = cell->functions.state_sizes,
                                   .output_size = cell->functions.output_size,
                                   .default_name = name};
}

static void build_one(void *context, mr_graph *graph, int64_t input_size, mr_dtype dtype)
{
    const wrapper *self = context;
    (void)mr_rnn_cell_build(graph, self->cell, input_size, dtype);
}

/* ---- Stacks ---- */

static const char *number_name(mr_graph *graph, int32_t number)
{
    const char *name = mr_arena_printf(&graph->arena, "cell_%d", (int)number);
    return name != nullptr ? name : "cell";
}

static void multi_build(void *context, mr_graph *graph, int64_t input_size, mr_dtype dtype)
{
    const wrapper *self = context;
    for (int32_t i = 0; i < self->cells.count; i++) {
        mr_graph_push_variable_scope(graph, number_name(graph, i));
        (void)mr_rnn_cell_build(graph, self->cells.items[i], input_size, dtype);
        mr_graph_pop_variable_scope(graph);
        input_size = mr_rnn_cell_output_size(self->cells.items[i]);
    }
}

static mr_output multi_call(void *context, mr_graph *graph, mr_output input, const mr_output *states, mr_output *next)
{
    const wrapper *self = context;
    for (int32_t i = 0; i < self->cells.count; i++) {
        mr_rnn_cell *cell = self->cells.items[i];
        mr_graph_push_scope(graph, number_name(graph, i));
        input = mr_rnn_cell_call(graph, cell, input, states, next);
        mr_graph_pop_scope(graph);
        states += mr_rnn_cell_state_count(cell);
        next += mr_rnn_cell_state_count(cell);
    }
    return input;
}

mr_rnn_cell *mr_multi_rnn_cell(mr_graph *graph, mr_rnn_cells cells)
{
    int64_t sizes[MR_RNN_STATES_MAX];
    mr_rnn_state states[MR_RNN_STATES_MAX];
    int32_t count = 0, depth = 0;
    if (graph == nullptr || mr_graph_status(graph, nullptr) != MR_OK) return nullptr;
    const char *wrong = cells.count < 1 || cells.items == nullptr ? "there are no cells" : nullptr;
    for (int32_t i = 0; wrong == nullptr && i < cells.count; i++) {
        const int32_t own = mr_rnn_cell_state_count(cells.items[i]);
        for (int32_t j = 0; j < i; j++)
            if (cells.items[i] == cells.items[j]) wrong = "a cell is there twice";
        if (own == 0) wrong = "a cell is missing";
        if (own > 0 && cells.items[i]->depth >= depth) depth = cells.items[i]->depth + 1;
        if (depth > MR_RNN_DEPTH_MAX) wrong = "there are more than 64 cells inside of each other";
        if (count + own > MR_RNN_STATES_MAX) wrong = "there are more than 256 states";
        for (int32_t j = 0; wrong == nullptr && j < own; j++, count++) {
            sizes[count] = mr_rnn_cell_state_size(cells.items[i], j);
            states[count] = cells.items[i]->states[j];
        }
    }
    if (wrong != nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "multi_rnn_cell: %s", wrong);
        return nullptr;
    }
    wrapper *self = mr_rnn_alloc(graph, sizeof *self);
    mr_rnn_cell **items = mr_rnn_alloc(graph, (size_t)cells.count * sizeof *items);
    if (self == nullptr || items == nullptr) return nullptr;
    for (int32_t i = 0; i < cells.count; i++) items[i] = cells.items[i];
    *self = (wrapper){.cells = {items, cells.count}};
    const mr_rnn_cell_functions functions = {.size = sizeof functions,
                                             .state_count = count,
                                             .state_sizes = sizes,
                                             .output_size = mr_rnn_cell_output_size(items[cells.count - 1]),
                                             .default_name = "multi_rnn_cell",
                                             .build = multi_build,
                                             .call = multi_call};
    mr_rnn_cell *made = mr_rnn_cell_make(graph, &functions, states, self, false);
    if (made != nullptr) made->depth = depth;
    return made;
}

/* ---- Dropout ---- */

/* keep: null: keep_prob. */
static mr_output drop(mr_graph *graph, mr_output value, float keep_prob, mr_output keep, int64_t seed)
{
    if (keep.node == nullptr && keep_prob == 1) return value;
    if (keep.node == nullptr)
        return mr_layer_dropout(graph, value, .rate = 1 - keep_prob, .seed = seed, .training = true);
    int64_t first = 0, second = 0;
    const mr_dtype dtype = mr_output_dtype(value);
    mr_train_seed_pair(graph, seed, &first, &second);
    mr_graph_push_scope(graph, "dropout");
    mr_output one = mr_train_scalar(graph, "Const", dtype, 1), rate = mr_sub(graph, one, keep, .name = "sub");
    mr_output scaled = mr_mul(graph, value, mr_real_div(graph, one, mr_sub(graph, one, rate)), .name = "Mul");
    mr_output unit = mr_random_uniform(graph, mr_shape_of(graph, value), dtype, .seed = first, .seed2 = second,
                                       .name = "random_uniform/RandomUniform");
    mr_output kept =
        mr_select_v2(graph, mr_greater_equal(graph, unit, rate), scaled, mr_train_scalar(graph, "Const", dtype, 0));
    mr_graph_pop_scope(graph);
    return kept;
}

/* Variational dropout: elements stay where keep + noise is at least 1. */
static mr_output drop_same(mr_graph *graph, mr_output value, float keep_prob, mr_output keep, mr_output noise)
{
    if (noise.node == nullptr || mr_graph_status(graph, nullptr) != MR_OK) return value;
    const mr_dtype dtype = mr_output_dtype(value);
    if (keep.node == nullptr)
        keep = mr_train_scalar(graph, "keep_prob", dtype, (double)keep_prob);
    else if (mr_output_dtype(keep) != dtype)
        keep = mr_cast(graph, keep, dtype);
    const mr_output mask = mr_floor(graph, mr_add_v2(graph, keep, noise));
    return mr_mul(graph, mr_real_div(graph, value, keep), mask);
}

/* Whether state `index` is the c of an LSTM, perhaps inside of wrappers and stacks, or of an attention: its
 * time, or its alignments. */
static bool is_memory(const mr_rnn_cell *cell, int32_t index)
{
    if (cell->states[index].is_time || cell->states[index].is_alignments) return true;
    if (cell->is_wrapper) return is_memory(((const wrapper *)cell->context)->cell, index);
    if (cell->functions.call != multi_call) return cell->has_memory && index == 0;
    const mr_rnn_cells cells = ((const wrapper *)cell->context)->cells;
    int32_t i = 0;
    while (index >= mr_rnn_cell_state_count(cells.items[i])) index -= mr_rnn_cell_state_count(cells.items[i++]);
    assert(i < cells.count && index >= 0);
    return is_memory(cells.items[i], index);
}

static bool drops_state(const wrapper *self, int32_t index)
{
    return self->drops_state != nullptr ? self->drops_state[index] : !is_memory(self->cell, index);
}

/* The seed of one of the wrapper's operators: they must not draw the same numbers. */
static int64_t seed_of(const wrapper *self, int32_t number)
{
    const int64_t seed = self->dropout.seed;
    if (seed == 0) return 0;
    const uint64_t own = seed == MR_SEED_ZERO ? 0 : (uint64_t)seed;
    return (int64_t)((own + (uint64_t)number * 0x9e3779b9u) & 0x7fffffff) + 1;
}

static mr_output dropout_call(void *context, mr_graph *graph, mr_output input, const mr_output *states, mr_output *next)
{
    const wrapper *self = context;
    const mr_dropout_wrapper_options *o = &self->dropout;
    input = o->variational_recurrent ? drop_same(graph, input, o->input_keep_prob, o->input_keep, self->input_noise)
                                     : drop(graph, input, o->input_keep_prob, o->input_keep, seed_of(self, 0));
    mr_output output = mr_rnn_cell_call(graph, self->cell, input, states, next);
    for (int32_t i = 0; i < mr_rnn_cell_state_count(self->cell); i++) {
        if (o->variational_recurrent)
            next[i] = drop_same(graph, next[i], o->state_keep_prob, o->state_keep, self->state_noises[i]);
        else if (drops_state(self, i))
            next[i] = drop(graph, next[i], o->state_keep_prob, o->state_keep, seed_of(self, 2 + i));
    }
    return o->variational_recurrent ? drop_same(graph, output, o->output_keep_prob, o->output_keep, self->output_noise)
                                    : drop(graph, output, o->output_keep_prob, o->output_keep, seed_of(self, 1));
}

static bool drops(float keep_prob, mr_output keep)
{
    return keep.node != nullptr || keep_prob != 1;
}

static mr_output make_noise(mr_graph *graph, const wrapper *self, int64_t size, int32_t number)
{
    int64_t first = 0, second = 0;
    mr_train_seed_pair(graph, seed_of(self, number), &first, &second);
    return mr_random_uniform(graph, mr_constant_ints(graph, MR_INTS(1, size)), self->dropout.dtype, .seed = first,
                             .seed2 = second, .name = "random_uniform/RandomUniform");
}

/* Of variational dropout: outside of the loop that calls the cell, so that the numbers are drawn once in a run. */
static bool make_noises(mr_graph *graph, wrapper *self)
{
    const mr_dropout_wrapper_options *o = &self->dropout;
    const int32_t count = mr_rnn_cell_state_count(self->cell);
    self->state_noises = mr_rnn_alloc(graph, ((size_t)count + 1) * sizeof *self->state_noises);
    if (self->state_noises == nullptr) return false;
    mr_graph_push_scope(graph, "DropoutWrapperInit");
    if (drops(o->input_keep_prob, o->input_keep)) self->input_noise = make_noise(graph, self, o->input_size, 0);
    if (drops(o->output_keep_prob, o->output_keep))
        self->output_noise = make_noise(graph, self, mr_rnn_cell_output_size(self->cell), 1);
    for (int32_t i = 0; i < count; i++) {
        self->state_noises[i] = (mr_output){0};
        if (drops(o->state_keep_prob, o->state_keep) && drops_state(self, i))
            self->state_noises[i] = make_noise(graph, self, mr_rnn_cell_state_size(self->cell, i), 2 + i);
    }
    mr_graph_pop_scope(graph);
    return mr_graph_status(graph, nullptr) == MR_OK;
}

static bool check_variational(mr_graph *graph, mr_dropout_wrapper_options *o)
{
    const char *wrong = nullptr;
    const bool drops_input = drops(o->input_keep_prob, o->input_keep);
    if (!o->variational_recurrent && (o->input_size != 0 || o->dtype != MR_DTYPE_INVALID))
        wrong = o->input_size != 0 ? "input_size has no effect without variational_recurrent"
                                   : "dtype has no effect without variational_recurrent";
    else if (o->variational_recurrent && drops_input && o->input_size < 1)
        wrong = "input_size is required, and must be at least 1, if variational_recurrent drops the input";
    else if (o->variational_recurrent && !drops_input && o->input_size != 0)
        wrong = "input_size has no effect: the input is not dropped";
    if (o->dtype == MR_DTYPE_INVALID) o->dtype = MR_FLOAT;
    if (wrong == nullptr && !mr_train_is_floating(o->dtype)) wrong = "dtype must be floating point";
    if (wrong != nullptr) (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "dropout_wrapper: %s", wrong);
    return wrong == nullptr;
}

static bool check_keep(mr_graph *graph, const char *option, float keep_prob, mr_output keep)
{
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    if (!(keep_prob > 0 && keep_prob <= 1))
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "dropout_wrapper: %s_keep_prob is %g, but must be above 0, "
                            "at most 1",
                            option, (double)keep_prob);
    else if (keep.node != nullptr && keep_prob != 1)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "dropout_wrapper: %s_keep_prob and %s_keep are both set, but only one may be", option,
                            option);
    return mr_graph_status(graph, nullptr) == MR_OK;
}

/* Asks the caller which states are dropped. */
static bool ask_states(mr_graph *graph, wrapper *self)
{
    const mr_dropout_wrapper_options *o = &self->dropout;
    const int32_t count = mr_rnn_cell_state_count(self->cell);
    if (o->drops_state == nullptr && o->drops_state_context == nullptr) return true;
    if (o->drops_state == nullptr || !drops(o->state_keep_prob, o->state_keep)) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "dropout_wrapper: %s",
                            o->drops_state == nullptr ? "drops_state_context has no effect without drops_state"
                                                      : "drops_state has no effect: no state is dropped");
        return false;
    }
    self->drops_state = mr_rnn_alloc(graph, (size_t)count * sizeof *self->drops_state);
    for (int32_t i = 0; self->drops_state != nullptr && i < count; i++)
        self->drops_state[i] = !self->cell->states[i].is_time && o->drops_state(o->drops_state_context, i);
    return self->drops_state != nullptr;
}

mr_rnn_cell *mr_dropout_wrapper_(mr_graph *graph, mr_rnn_cell *cell, const mr_dropout_wrapper_options *given)
{
    mr_dropout_wrapper_options o;
    if (graph == nullptr || !MR_LAYER_READ(mr_dropout_wrapper_options, graph, &o, given)) return nullptr;
    if (!check_keep(graph, "input", o.input_keep_prob, o.input_keep) ||
        !check_keep(graph, "output", o.output_keep_prob, o.output_keep) ||
        !check_keep(graph, "state", o.state_keep_prob, o.state_keep) || !check_variational(graph, &o))
        return nullptr;
    wrapper *self = wrapper_new(graph, cell, "dropout_wrapper");
    if (self == nullptr) return nullptr;
    self->dropout = o;
    if (!ask_states(graph, self)) return nullptr;
    if (o.variational_recurrent && !make_noises(graph, self)) return nullptr;
    mr_rnn_cell_functions functions = functions_of(cell, "dropout_wrapper");
    functions.build = build_one;
    functions.call = dropout_call;
    return finish(graph, &functions, self);
}

/* ---- Others ---- */

static mr_output residual_call(void *context, mr_graph *graph, mr_output input, const mr_output *states,
                               mr_output *next)
{
    const wrapper *self = context;
    mr_output output = mr_rnn_cell_call(graph, self->cell, input, states, next);
    if (self->residual.residual != nullptr && mr_graph_status(graph, nullptr) == MR_OK)
        return self->residual.residual(self->residual.context, graph, input, output);
    return mr_add_v2(graph, input, output, .name = "add");
}

static void residual_build(void *context, mr_graph *graph, int64_t input_size, mr_dtype dtype)
{
    const wrapper *self = context;
    const int64_t outputs = mr_rnn_cell_output_size(self->cell);
    if (input_size != outputs && self->residual.residual == nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "residual_wrapper: the input has %lld features, but the output %lld", (long long)input_size,
                            (long long)outputs);
    (void)mr_rnn_cell_build(graph, self->cell, input_size, dtype);
}

mr_rnn_cell *mr_residual_wrapper_with(mr_graph *graph, mr_rnn_cell *cell, const mr_residual_wrapper_options *given)
{
    mr_residual_wrapper_options o;
    if (graph == nullptr || !MR_LAYER_READ(mr_residual_wrapper_options, graph, &o, given)) return nullptr;
    if (o.residual == nullptr && o.context != nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "residual_wrapper: context has no effect without residual");
        return nullptr;
    }
    wrapper *self = wrapper_new(graph, cell, "residual_wrapper");
    if (self == nullptr) return nullptr;
    self->residual = o;
    mr_rnn_cell_functions functions = functions_of(cell, "residual_wrapper");
    functions.build = residual_build;
    functions.call = residual_call;
    return finish(graph, &functions, self);
}

mr_rnn_cell *mr_residual_wrapper(mr_graph *graph, mr_rnn_cell *cell)
{
    return mr_residual_wrapper_with(graph, cell, nullptr);
}

static void device_build(void *context, mr_graph *graph, int64_t input_size, mr_dtype dtype)
{
    const wrapper *self = context;
    mr_graph_push_device(graph, self->device);
    (void)mr_rnn_cell_build(graph, self->cell, input_size, dtype);
    mr_graph_pop_device(graph);
}

static mr_output device_call(void *context, mr_graph *graph, mr_output input, const mr_output *states, mr_output *next)
{
    const wrapper *self = context;
    mr_graph_push_device(graph, self->device);
    mr_output output = mr_rnn_cell_call(graph, self->cell, input, states, next);
    mr_graph_pop_device(graph);
    return output;
}

mr_rnn_cell *mr_device_wrapper(mr_graph *graph, mr_rnn_cell *cell, const char *device)
{
    wrapper *self = wrapper_new(graph, cell, "device_wrapper");
    if (self == nullptr) return nullptr;
    if (device == nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "device_wrapper: there is no device");
        return nullptr;
    }
    self->device = mr_arena_strdup(&graph->arena, device);
    mr_rnn_cell_functions functions = functions_of(cell, "device_wrapper");
    functions.build = device_build;
    functions.call = device_call;
    return finish(graph, &functions, self);
}
