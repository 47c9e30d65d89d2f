/* The cell that attends to a memory, as AttentionWrapper of tf.contrib.seq2seq. */
#include "graph/train/attention.h"
#include <millrace/ops.h>

#include <assert.h>

typedef struct wrapper {
    mr_rnn_cell *cell;
    mr_attention *attention;
    int32_t layer_size;     /* 0: the attention is the context */
    int64_t attention_size; /* of the attention, whatever it is */
    bool output_attention;
    mr_attention_weights weights;
    mr_variable layer; /* the kernel of the attention's layer */
} wrapper;

/* ---- One step ---- */

static void build(void *context, mr_graph *graph, int64_t input_size, mr_dtype dtype)
{
    wrapper *w = context;
    const int64_t outputs = mr_rnn_cell_output_size(w->cell);
    if (dtype != w->attention->dtype) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "the input is %s, but the memory %s", mr_dtype_name(dtype),
                            mr_dtype_name(w->attention->dtype));
        return;
    }
    if (!mr_rnn_cell_build(graph, w->cell, input_size + w->attention_size, dtype)) return;
    mr_attention_build(graph, w->attention, outputs, &w->weights);
    if (w->layer_size == 0) return;
    mr_layer_begin(graph, "attention_layer", "attention_layer", MR_REUSE_NONE);
    w->layer =
        mr_layer_variable(graph, &(mr_layer_weight){.name = "kernel",
                                                    .shape = MR_SHAPE(outputs + w->attention->depth, w->layer_size),
                                                    .dtype = dtype,
                                                    .trainable = true});
    mr_graph_pop_variable_scope(graph);
}

/* The memory's mean, weighted by the alignments; and the layer on top of it. */
static mr_output attend(mr_graph *graph, const wrapper *w, mr_output output, mr_output alignments)
{
    mr_output row = mr_expand_dims(graph, alignments, mr_constant_int32(graph, 1), .name = "ExpandDims");
    mr_output context = mr_batch_mat_mul_v2(graph, row, w->attention->values, .name = "MatMul");
    context = mr_squeeze(graph, context, .squeeze_dims = MR_INTS(1), .name = "Squeeze");
    if (w->layer_size == 0) return context;
    mr_output both = mr_concat_v2(graph, MR_OUTPUTS(output, context), mr_constant_int32(graph, 1), .name = "concat");
    mr_graph_push_scope(graph, "attention_layer");
    mr_output attention = mr_mat_mul(graph, both, mr_layer_value(graph, w->layer, "MatMul"), .name = "MatMul");
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
    mr_output both = mr_concat_v2(graph, MR_OUTPUTS(input, own[0]), mr_constant_int32(graph, 1), .name = "concat");
    mr_output output = mr_rnn_cell_call(graph, w->cell, both, states, next);
    mr_output alignments = mr_attention_align(graph, w->attention, &w->weights, output, own[2]);
    mr_output attention = attend(graph, w, output, alignments);
    next[count] = as_state(graph, attention, own[0], w->attention_size);
    next[count + 1] = mr_add_v2(graph, own[1], mr_constant_int32(graph, 1), .name = "add");
    next[count + 2] = as_state(graph, alignments, own[2], w->attention->time_static);
    return w->output_attention ? attention : output;
}

/* ---- Creation ---- */

static bool check(mr_graph *graph, const mr_rnn_cell *cell, const mr_attention *attention,
                  const mr_attention_wrapper_options *o)
{
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    const long long outputs = (long long)mr_rnn_cell_output_size(cell);
    const char *wrong = nullptr;
    if (cell == nullptr)
        wrong = "there is no cell";
    else if (attention == nullptr)
        wrong = "there is no attention";
    else if (cell->graph != graph || attention->graph != graph)
        wrong = "the cell or the attention belongs to another graph";
    else if (cell->depth >= MR_RNN_DEPTH_MAX)
        wrong = "there are more than 64 cells inside of each other";
    else if (cell->functions.state_count > MR_RNN_STATES_MAX - 3)
        wrong = "there are more than 256 states";
    if (wrong != nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "attention_wrapper: %s", wrong);
        return false;
    }
    if (o->attention_layer_size < 0)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "attention_wrapper: attention_layer_size is %d, but must be at least 0",
                            (int)o->attention_layer_size);
    else if (attention->is_luong && attention->num_units != outputs)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "attention_wrapper: num_units of luong_attention is %d, but must be the output size of the "
                            "cell, %lld",
                            (int)attention->num_units, outputs);
    else
        return true;
    return false;
}

/* The cell whose states are those of the wrapped one and of the attention. */
static mr_rnn_cell *finish(mr_graph *graph, const mr_attention_wrapper_options *o, wrapper *w)
{
    const mr_rnn_cell *cell = w->cell;
    const int32_t count = cell->functions.state_count;
    int64_t sizes[MR_RNN_STATES_MAX];
    mr_rnn_state states[MR_RNN_STATES_MAX];
    assert(count <= MR_RNN_STATES_MAX - 3);
    for (int32_t i = 0; i < count; i++) {
        sizes[i] = cell->functions.state_sizes[i];
        states[i] = cell->states[i];
        if (o->initial_cell_state != nullptr) states[i].initial = o->initial_cell_state[i];
    }
    sizes[count] = w->attention_size;
    sizes[count + 1] = 0;
    sizes[count + 2] = w->attention->time_static;
    states[count] = (mr_rnn_state){0};
    states[count + 1] = (mr_rnn_state){.is_time = true};
    states[count + 2] = (mr_rnn_state){
        .is_alignments = true, .is_first = w->attention->monotonic != MR_MONOTONIC_NONE, .size = w->attention->time};
    const mr_rnn_cell_functions functions = {.size = sizeof functions,
                                             .state_count = count + 3,
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

mr_rnn_cell *mr_attention_wrapper_(mr_graph *graph, mr_rnn_cell *cell, mr_attention *attention,
                                   const mr_attention_wrapper_options *given)
{
    mr_attention_wrapper_options o;
    if (graph == nullptr || !MR_LAYER_READ(mr_attention_wrapper_options, graph, &o, given)) return nullptr;
    if (!check(graph, cell, attention, &o)) return nullptr;
    wrapper *w = mr_rnn_alloc(graph, sizeof *w);
    if (w == nullptr) return nullptr;
    *w = (wrapper){.cell = cell,
                   .attention = attention,
                   .layer_size = o.attention_layer_size,
                   .attention_size = o.attention_layer_size > 0 ? o.attention_layer_size : attention->depth,
                   .output_attention = o.output_attention};
    return finish(graph, &o, w);
}
