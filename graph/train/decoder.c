/* What decoders have in common, their output layer, and the decoder whose inputs are those of a helper. */
#include "graph/train/decoder.h"
#include "graph/train/output_layer.h"
#include <millrace/ops.h>

#include <assert.h>

/* ---- Output layer ---- */

mr_output_layer *mr_output_layer_new_(mr_graph *graph, const mr_dense_layer *given)
{
    mr_dense_layer o;
    if (graph == nullptr || !MR_LAYER_READ(mr_dense_layer, graph, &o, given)) return nullptr;
    if (mr_graph_status(graph, nullptr) != MR_OK || !mr_train_check_required(graph, "units", o.units) ||
        !mr_layer_settle_decay(graph, o.weight_decay, &o.kernel_regularizer))
        return nullptr;
    if (o.activity_regularizer.l1 != 0 || o.activity_regularizer.l2 != 0) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "activity_regularizer has no effect on a decoder's layer");
        return nullptr;
    }
    if (o.name != nullptr) o.name = mr_arena_strdup(&graph->arena, o.name);
    mr_output_layer *layer = mr_rnn_alloc(graph, sizeof *layer);
    if (layer != nullptr) *layer = (mr_output_layer){.graph = graph, .options = o};
    return layer;
}

static mr_layer_end end_of(const mr_output_layer *layer)
{
    const mr_dense_layer *o = &layer->options;
    return (mr_layer_end){.use_bias = o->use_bias,
                          .trainable = !o->not_trainable,
                          .units = o->units,
                          .bias_initializer = o->bias_initializer,
                          .bias_regularizer = o->bias_regularizer,
                          .activation = o->activation};
}

bool mr_output_layer_build(mr_output_layer *layer, int64_t inputs, mr_dtype dtype)
{
    mr_graph *graph = layer->graph;
    const mr_dense_layer *o = &layer->options;
    if (layer->is_built && (layer->inputs != inputs || layer->dtype != dtype)) {
        (void)mr_graph_fail(
            graph, MR_INVALID_ARGUMENT, "the output layer has variables for %lld features of %s, not %lld of %s",
            (long long)layer->inputs, mr_dtype_name(layer->dtype), (long long)inputs, mr_dtype_name(dtype));
        return false;
    }
    if (layer->is_built) return true;
    const mr_layer_end end = end_of(layer);
    mr_layer_begin(graph, o->name, "dense", o->reuse);
    layer->kernel = mr_layer_variable(graph, &(mr_layer_weight){.name = "kernel",
                                                                .shape = MR_SHAPE(inputs, o->units),
                                                                .dtype = dtype,
                                                                .initializer = o->kernel_initializer,
                                                                .regularizer = o->kernel_regularizer,
                                                                .trainable = !o->not_trainable});
    layer->bias = mr_layer_bias(graph, &end, dtype);
    mr_graph_pop_variable_scope(graph);
    layer->is_built = true;
    layer->inputs = inputs;
    layer->dtype = dtype;
    return mr_graph_status(graph, nullptr) == MR_OK;
}

mr_output mr_output_layer_apply(const mr_output_layer *layer, mr_output input)
{
    mr_graph *graph = layer->graph;
    const mr_layer_end end = end_of(layer);
    assert(layer->is_built);
    mr_graph_push_scope(graph, layer->options.name != nullptr ? layer->options.name : "dense");
    mr_output product = mr_mat_mul(graph, input, mr_layer_value(graph, layer->kernel, "MatMul"), .name = "MatMul");
    mr_output output = mr_layer_finish(graph, mr_layer_add_bias(graph, product, &end, layer->bias), &end);
    mr_graph_pop_scope(graph);
    return output;
}

/* ---- What decoders have in common ---- */

mr_decoder *mr_decoder_new(mr_graph *graph, const char *what, mr_rnn_cell *cell, const mr_output *initial_state,
                           mr_output_layer *layer)
{
    const char *wrong = nullptr;
    if (mr_graph_status(graph, nullptr) != MR_OK) return nullptr;
    if (cell == nullptr)
        wrong = "there is no cell";
    else if (initial_state == nullptr)
        wrong = "there is no initial_state";
    else if (cell->graph != graph || (layer != nullptr && layer->graph != graph))
        wrong = "the cell or the layer belongs to another graph";
    if (wrong != nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: %s", what, wrong);
        return nullptr;
    }
    const int32_t count = mr_rnn_cell_state_count(cell);
    mr_decoder *decoder = mr_rnn_alloc(graph, sizeof *decoder);
    mr_output *initial = mr_rnn_alloc(graph, (size_t)count * sizeof *initial);
    if (decoder == nullptr || initial == nullptr) return nullptr;
    for (int32_t i = 0; i < count; i++) {
        initial[i] = initial_state[i];
        if (initial[i].node != nullptr && initial[i].node->graph == graph) continue;
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "%s: state %d of initial_state is no output of the graph; the cell has %d states", what,
                            (int)i, (int)count);
        return nullptr;
    }
    *decoder = (mr_decoder){.graph = graph,
                            .what = what,
                            .cell = cell,
                            .layer = layer,
                            .cell_initial = initial,
                            .state_count = count,
                            .batch = -1};
    return decoder;
}

mr_shape mr_decoder_state_shape(const mr_decoder *decoder, int32_t index)
{
    const mr_decoder *d = decoder;
    if (index >= mr_rnn_cell_state_count(d->cell)) return d->results[0].shape;
    const int64_t beams = d->is_beam_search ? d->results[0].shape.dims[1] : 1;
    return mr_rnn_state_shape(d->cell, index, d->batch >= 0 ? d->batch * beams : -1);
}

int64_t mr_decoder_output_size(const mr_decoder *decoder)
{
    return decoder->layer != nullptr ? decoder->layer->options.units : mr_rnn_cell_output_size(decoder->cell);
}

mr_output mr_decoder_call(mr_decoder *decoder, mr_decoder_values *values)
{
    mr_output output = mr_rnn_cell_call(decoder->graph, decoder->cell, values->inputs, values->states, values->states);
    return decoder->layer != nullptr ? mr_output_layer_apply(decoder->layer, output) : output;
}

/* ---- The decoder with a helper ---- */

static void basic_begin(mr_decoder *decoder, mr_decoder_values *values)
{
    for (int32_t i = 0; i < decoder->state_count; i++) values->states[i] = decoder->cell_initial[i];
    mr_helper_begin(decoder->own, values);
}

/* The states, which a helper of the caller's may have replaced. */
static void check_replaced(const mr_decoder *decoder, const mr_decoder_values *values)
{
    char found[MR_SHAPE_TEXT_SIZE], expected[MR_SHAPE_TEXT_SIZE];
    for (int32_t i = 0; i < decoder->state_count; i++) {
        if (mr_graph_status(decoder->graph, nullptr) != MR_OK) return;
        const mr_output state = values->states[i];
        const mr_shape own = mr_decoder_state_shape(decoder, i);
        const mr_dtype dtype = decoder->cell->states[i].is_time ? MR_INT32 : decoder->dtype;
        if (state.node == nullptr)
            (void)mr_graph_fail(decoder->graph, MR_INVALID_ARGUMENT,
                                "custom_helper: next_inputs has set state %d to no output", (int)i);
        else if (mr_output_dtype(state) != dtype || !mr_shape_compatible(mr_output_shape(state), own))
            (void)mr_graph_fail(decoder->graph, MR_INVALID_ARGUMENT,
                                "custom_helper: next_inputs has set state %d to %s%s, but it must be %s%s", (int)i,
                                mr_dtype_name(mr_output_dtype(state)),
                                mr_shape_text(mr_output_shape(state), found, sizeof found), mr_dtype_name(dtype),
                                mr_shape_text(own, expected, sizeof expected));
    }
}

static void basic_step(mr_decoder *decoder, mr_output time, mr_decoder_values *values, mr_output *results)
{
    mr_graph *graph = decoder->graph;
    mr_graph_push_scope(graph, "BasicDecoderStep");
    results[0] = mr_decoder_call(decoder, values);
    results[1] = mr_helper_sample(decoder->own, time, results[0], values);
    mr_helper_next(decoder->own, time, results[0], results[1], values);
    check_replaced(decoder, values);
    mr_graph_pop_scope(graph);
}

static void basic_end(mr_decoder *decoder, const mr_output *results, mr_decoder_values *values, mr_decoded *decoded)
{
    (void)decoder;
    (void)values;
    decoded->rnn_output = results[0];
    decoded->sample_id = results[1];
}

mr_decoder *mr_basic_decoder_(mr_graph *graph, mr_rnn_cell *cell, mr_helper *helper, const mr_output *initial_state,
                              const mr_decoder_options *given)
{
    mr_decoder_options o;
    if (graph == nullptr || !MR_LAYER_READ(mr_decoder_options, graph, &o, given)) return nullptr;
    mr_decoder *decoder = mr_decoder_new(graph, "basic_decoder", cell, initial_state, o.output_layer);
    if (decoder == nullptr) return nullptr;
    const char *wrong = helper == nullptr                  ? "there is no helper"
                        : mr_helper_graph(helper) != graph ? "the helper belongs to another graph"
                        : o.length_penalty_weight != 0     ? "length_penalty_weight has no effect without beam search"
                                                           : nullptr;
    if (wrong != nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "basic_decoder: %s", wrong);
        return nullptr;
    }
    const int64_t size = mr_decoder_output_size(decoder);
    if (!mr_helper_check_outputs(helper, size)) return nullptr;
    decoder->own = helper;
    decoder->batch = mr_helper_batch(helper);
    decoder->features = mr_helper_features(helper);
    decoder->dtype = mr_helper_dtype(helper);
    decoder->result_count = 2;
    decoder->results[0] = (mr_decoder_result){decoder->dtype, MR_SHAPE(decoder->batch, size)};
    decoder->results[1] = (mr_decoder_result){MR_INT32, MR_SHAPE(decoder->batch)};
    decoder->begin = basic_begin;
    decoder->step = basic_step;
    decoder->end = basic_end;
    return decoder;
}
