/* The cell that attends to one memory or to several, as AttentionWrapper of tf.contrib.seq2seq. */
#include "graph/train/attention.h"
#include <millrace/ops.h>

#include <assert.h>

/* One of the wrapper's attention mechanisms. */
typedef struct attended {
    mr_attention *attention;
    int32_t layer_size; /* 0: the attention is the context */
    mr_attention_weights weights;
    mr_variable layer; /* the kernel of the attention's layer */
    const char *layer_name;
} attended;

typedef struct wrapper {
    mr_rnn_cell *cell;
    int32_t count;
    attended items[MR_ATTENTIONS_MAX];
    int64_t attention_size; /* of all attentions, concatenated */
    bool output_attention;
} wrapper;

static const char *const tile_hint = "; with a beam_search_decoder, both need mr_tile_batch with the multiplier "
                                     "beam_width";

/* ---- One step ---- */

static void build_attended(mr_graph *graph, attended *a, int64_t outputs)
{
    const mr_dtype dtype = a->attention->dtype;
    mr_attention_build(graph, a->attention, outputs, &a->weights);
    if (a->layer_size == 0) return;
    a->layer_name = mr_variable_scope_free_name(graph, "attention_layer");
    mr_layer_begin(graph, a->layer_name, "attention_layer", MR_REUSE_NONE);
    a->layer =
        mr_layer_variable(graph, &(mr_layer_weight){.name = "kernel",
                                                    .shape = MR_SHAPE(outputs + a->attention->depth, a->layer_size),
                                                    .dtype = dtype,
                                                    .trainable = true});
    mr_graph_pop_variable_scope(graph);
}

static void build(void *context, mr_graph *graph, int64_t input_size, mr_dtype dtype)
{
    wrapper *w = context;
    const mr_dtype memory = w->items[0].attention->dtype;
    if (dtype != memory) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "the input is %s, but the memory %s", mr_dtype_name(dtype),
                            mr_dtype_name(memory));
        return;
    }
    if (!mr_rnn_cell_build(graph, w->cell, input_size + w->attention_size, dtype)) return;
    for (int32_t i = 0; i < w->count; i++) build_attended(graph, &w->items[i], mr_rnn_cell_output_size(w->cell));
}

/* The memory's mean, weighted by the alignments; and the layer on top of it. */
static mr_output attend(mr_graph *graph, const attended *a, mr_output output, mr_output alignments)
{
    mr_output row = mr_expand_dims(graph, alignments, mr_constant_int32(graph, 1), .name = "ExpandDims");
    mr_output context = mr_batch_mat_mul_v2(graph, row, a->attention->values, .name = "MatMul");
    context = mr_squeeze(graph, context, .squeeze_dims = MR_INTS(1), .name = "Squeeze");
    if (a->layer_size == 0) return context;
    mr_output both = mr_concat_v2(graph, MR_OUTPUTS(output, context), mr_constant_int32(graph, 1), .name = "concat");
    mr_graph_push_scope(graph, a->layer_name);
    mr_output attention = mr_mat_mul(graph, both, mr_layer_value(graph, a->layer, "MatMul"), .name = "MatMul");
    mr_graph_pop_scope(graph);
    return attention;
}

/* The next value of a state has at least the state's shape, which a loop requires. */
static mr_output as_state(mr_graph *graph, mr_output next, mr_output state, int64_t size)
{
    if (mr_graph_status(graph, nullptr) != MR_OK) return next;
    const mr_shape before = mr_output_shape(state);
    mr_output_set_shape(next, MR_SHAPE(before.rank == 2 ? before.dims[0] : -1, size));
    return next;
}

static mr_output call(void *context, mr_graph *graph, mr_output input, const mr_output *states, mr_output *next)
{
    const wrapper *w = context;
    const int32_t count = mr_rnn_cell_state_count(w->cell);
    const mr_output *own = states + count;
    mr_output attentions[MR_ATTENTIONS_MAX] = {0};
    assert(w->count >= 1 && w->count <= MR_ATTENTIONS_MAX);
    mr_output both = mr_concat_v2(graph, MR_OUTPUTS(input, own[0]), mr_constant_int32(graph, 1), .name = "concat");
    mr_output output = mr_rnn_cell_call(graph, w->cell, both, states, next);
    for (int32_t i = 0; i < w->count; i++)
        output = mr_batch_check(graph, output, "attention_wrapper", mr_attention_batch(w->items[i].attention),
                                mr_batch_size_of("the cell's input", output, 0), tile_hint);
    for (int32_t i = 0; i < w->count; i++) {
        const attended *a = &w->items[i];
        mr_output alignments = mr_attention_align(graph, a->attention, &a->weights, output, own[2 + i]);
        attentions[i] = attend(graph, a, output, alignments);
        next[count + 2 + i] = as_state(graph, alignments, own[2 + i], a->attention->time_static);
    }
    mr_output attention = attentions[0];
    if (w->count > 1)
        attention =
            mr_concat_v2(graph, MR_OUTPUTS_OF(attentions, w->count), mr_constant_int32(graph, 1), .name = "concat");
    next[count] = as_state(graph, attention, own[0], w->attention_size);
    next[count + 1] = mr_add_v2(graph, own[1], mr_constant_int32(graph, 1), .name = "add");
    return w->output_attention ? attention : output;
}

/* ---- Creation ---- */

static bool fail(mr_graph *graph, const char *wrong)
{
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "attention_wrapper: %s", wrong);
    return false;
}

static bool check_cell(mr_graph *graph, const mr_rnn_cell *cell, int32_t attentions)
{
    if (cell == nullptr) return fail(graph, "there is no cell");
    if (cell->graph != graph) return fail(graph, "the cell or the attention belongs to another graph");
    if (cell->depth >= MR_RNN_DEPTH_MAX) return fail(graph, "there are more than 64 cells inside of each other");
    return cell->functions.state_count <= MR_RNN_STATES_MAX - 2 - attentions ||
           fail(graph, "there are more than 256 states");
}

static bool check_attention(mr_graph *graph, const mr_rnn_cell *cell, const mr_attention *attention)
{
    const long long outputs = (long long)mr_rnn_cell_output_size(cell);
    if (attention == nullptr) return fail(graph, "there is no attention");
    if (attention->graph != graph) return fail(graph, "the cell or the attention belongs to another graph");
    if (!attention->is_luong || attention->num_units == outputs) return true;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                        "attention_wrapper: num_units of luong_attention is %d, but must be the output size of the "
                        "cell, %lld",
                        (int)attention->num_units, outputs);
    return false;
}

/* Sets the size of each attention's layer. */
static bool read_sizes(mr_graph *graph, wrapper *w, const mr_attention_wrapper_options *o, bool is_list)
{
    const mr_ints sizes = o->attention_layer_sizes;
    if (!is_list && (sizes.items != nullptr || sizes.count != 0))
        return fail(graph, "attention_layer_sizes has no effect on one attention; attention_layer_size has");
    if (is_list && o->attention_layer_size != 0)
        return fail(graph, "attention_layer_size has no effect on a list of attentions; attention_layer_sizes has");
    if (o->attention_layer_size < 0) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "attention_wrapper: attention_layer_size is %d, but must be at least 0",
                            (int)o->attention_layer_size);
        return false;
    }
    if (sizes.count > 0 && sizes.items == nullptr) return fail(graph, "the items of attention_layer_sizes are null");
    if (sizes.count != 0 && sizes.count != w->count) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "attention_wrapper: there are %d attention_layer_sizes for %d attentions", (int)sizes.count,
                            (int)w->count);
        return false;
    }
    for (int32_t i = 0; i < w->count; i++) {
        const int64_t size = sizes.count > 0 ? sizes.items[i] : o->attention_layer_size;
        if (sizes.count > 0 && (size < 1 || size > INT32_MAX)) {
            (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                                "attention_wrapper: attention_layer_sizes[%d] is %lld, but must be 1 to %d", (int)i,
                                (long long)size, INT32_MAX);
            return false;
        }
        w->items[i].layer_size = (int32_t)size;
        w->attention_size += size > 0 ? size : w->items[i].attention->depth;
    }
    return true;
}

static wrapper *wrapper_new(mr_graph *graph, mr_rnn_cell *cell, mr_attentions attentions)
{
    if (mr_graph_status(graph, nullptr) != MR_OK) return nullptr;
    if (attentions.count < 1 || attentions.items == nullptr) {
        (void)fail(graph, "there are no attentions");
        return nullptr;
    }
    if (attentions.count > MR_ATTENTIONS_MAX) {
        (void)fail(graph, "there are more than 8 attentions");
        return nullptr;
    }
    if (!check_cell(graph, cell, attentions.count)) return nullptr;
    wrapper *w = mr_rnn_alloc(graph, sizeof *w);
    if (w == nullptr) return nullptr;
    *w = (wrapper){.cell = cell, .count = attentions.count};
    for (int32_t i = 0; i < w->count; i++) {
        w->items[i].attention = attentions.items[i];
        if (!check_attention(graph, cell, attentions.items[i])) return nullptr;
        if (attentions.items[i]->dtype == attentions.items[0]->dtype) continue;
        (void)fail(graph, "the attentions have different dtypes");
        return nullptr;
    }
    return w;
}

/* The initial states of the cell, which run after a check of their batch size. */
static bool take_initial(mr_graph *graph, const wrapper *w, const mr_output *initial, mr_rnn_state *states)
{
    char found[MR_SHAPE_TEXT_SIZE], expected[MR_SHAPE_TEXT_SIZE];
    const mr_dtype memory = w->items[0].attention->dtype;
    for (int32_t i = 0; i < mr_rnn_cell_state_count(w->cell); i++) {
        const bool is_time = w->cell->states[i].is_time;
        const mr_dtype dtype = is_time ? MR_INT32 : memory;
        const mr_shape own = mr_rnn_state_shape(w->cell, i, -1);
        const char *what = mr_arena_printf(&graph->arena, "initial_cell_state %d", (int)i);
        if (what == nullptr) {
            (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a message");
            return false;
        }
        if (initial[i].node == nullptr || initial[i].node->graph != graph) {
            (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                                "attention_wrapper: %s is no output of the graph; the cell has %d states", what,
                                (int)mr_rnn_cell_state_count(w->cell));
            return false;
        }
        if (mr_output_dtype(initial[i]) != dtype || !mr_shape_compatible(mr_output_shape(initial[i]), own)) {
            (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "attention_wrapper: %s is %s%s, but must be %s%s", what,
                                mr_dtype_name(mr_output_dtype(initial[i])),
                                mr_shape_text(mr_output_shape(initial[i]), found, sizeof found), mr_dtype_name(dtype),
                                mr_shape_text(own, expected, sizeof expected));
            return false;
        }
        states[i].initial = initial[i];
        for (int32_t j = 0; !is_time && j < w->count; j++)
            states[i].initial =
                mr_batch_check(graph, states[i].initial, "attention_wrapper", mr_attention_batch(w->items[j].attention),
                               mr_batch_size_of(what, initial[i], 0), tile_hint);
        if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    }
    return true;
}

/* The cell whose states are those of the wrapped one and of the attentions. */
static mr_rnn_cell *finish(mr_graph *graph, const mr_attention_wrapper_options *o, wrapper *w)
{
    const mr_rnn_cell *cell = w->cell;
    const int32_t count = cell->functions.state_count;
    int64_t sizes[MR_RNN_STATES_MAX];
    mr_rnn_state states[MR_RNN_STATES_MAX];
    assert(count <= MR_RNN_STATES_MAX - 2 - w->count);
    for (int32_t i = 0; i < count; i++) {
        sizes[i] = cell->functions.state_sizes[i];
        states[i] = cell->states[i];
    }
    if (o->initial_cell_state != nullptr && !take_initial(graph, w, o->initial_cell_state, states)) return nullptr;
    sizes[count] = w->attention_size;
    sizes[count + 1] = 0;
    states[count] = (mr_rnn_state){0};
    states[count + 1] = (mr_rnn_state){.is_time = true};
    for (int32_t i = 0; i < w->count; i++) {
        const mr_attention *a = w->items[i].attention;
        sizes[count + 2 + i] = a->time_static;
        states[count + 2 + i] = (mr_rnn_state){.is_alignments = true,
                                               .is_first = a->monotonic != MR_MONOTONIC_NONE,
                                               .size = a->time,
                                               .memory = a->values,
                                               .memory_batch = a->batch};
    }
    const mr_rnn_cell_functions functions = {.size = sizeof functions,
                                             .state_count = count + 2 + w->count,
                                             .state_sizes = sizes,
                                             .output_size =
                                                 o->output_attention ? w->attention_size : cell->functions.output_size,
                                             .default_name = "attention_wrapper",
                                             .name = o->name,
                                             .reuse = o->reuse,
                                             .build = build,
                                             .call = call};
    mr_rnn_cell *made = mr_rnn_cell_make(graph, &functions, states, w, false);
    if (made != nullptr) made->depth = cell->depth + 1;
    return made;
}

static mr_rnn_cell *wrap(mr_graph *graph, mr_rnn_cell *cell, mr_attentions attentions, bool is_list,
                         const mr_attention_wrapper_options *given)
{
    mr_attention_wrapper_options o;
    if (graph == nullptr || !MR_LAYER_READ(mr_attention_wrapper_options, graph, &o, given)) return nullptr;
    wrapper *w = wrapper_new(graph, cell, attentions);
    if (w == nullptr || !read_sizes(graph, w, &o, is_list)) return nullptr;
    w->output_attention = o.output_attention;
    return finish(graph, &o, w);
}

mr_rnn_cell *mr_attention_wrapper_(mr_graph *graph, mr_rnn_cell *cell, mr_attention *attention,
                                   const mr_attention_wrapper_options *options)
{
    return wrap(graph, cell, (mr_attentions){&attention, 1}, false, options);
}

mr_rnn_cell *mr_multi_attention_wrapper_(mr_graph *graph, mr_rnn_cell *cell, mr_attentions attentions,
                                         const mr_attention_wrapper_options *options)
{
    return wrap(graph, cell, attentions, true, options);
}
