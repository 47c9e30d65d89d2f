/* The loop that runs a decoder until all of its sequences have ended. */
#include "graph/train/batch_check.h"
#include "graph/train/decoder.h"
#include "graph/train/output_layer.h"
#include <millrace/control_flow.h>
#include <millrace/ops.h>

#include <assert.h>

constexpr int32_t ARRAYS_MAX = MR_DECODER_RESULTS_MAX + MR_ATTENTIONS_MAX; /* the last ones: alignments */
/* The loop's variables: time, lengths, finished and inputs; then the arrays' flows, then the states. */
constexpr int32_t TIME = 0, LENGTHS = 1, FINISHED = 2, INPUTS = 3, FLOWS = 4;
constexpr int32_t VARIABLES_MAX = FLOWS + ARRAYS_MAX + MR_DECODER_STATES_MAX;

typedef struct decoding {
    mr_graph *graph;
    mr_decoder *decoder;
    const mr_dynamic_decode_options *options;
    mr_decoder_values values;
    int32_t alignments[MR_ATTENTIONS_MAX]; /* the states whose history is kept */
    int32_t alignment_count;
    int32_t array_count;  /* those of the results, and of the alignments */
    mr_output limit;      /* of the steps, an int32 scalar; null: none */
    mr_shape batch_shape; /* of finished */
    mr_decoder_result elements[ARRAYS_MAX];
    mr_output handles[ARRAYS_MAX], variables[VARIABLES_MAX];
    mr_shape shapes[VARIABLES_MAX];
} decoding;

static mr_output int32_scalar(mr_graph *graph, int32_t value)
{
    return mr_constant_int32s(graph, MR_SCALAR, &value, nullptr);
}

static int32_t variable_count(const decoding *d)
{
    return FLOWS + d->array_count + d->decoder->state_count;
}

/* ---- Before the loop ---- */

static bool read_options(mr_graph *graph, mr_dynamic_decode_options *o, const mr_dynamic_decode_options *given,
                         const mr_decoder *decoder)
{
    if (graph == nullptr || !MR_LAYER_READ(mr_dynamic_decode_options, graph, o, given) ||
        mr_graph_status(graph, nullptr) != MR_OK)
        return false;
    const mr_output limit = o->maximum_iterations_output;
    const bool is_limited = o->maximum_iterations != MR_ITERATIONS_UNSET;
    const char *wrong = nullptr;
    if (decoder == nullptr)
        wrong = "there is no decoder";
    else if (decoder->graph != graph)
        wrong = "the decoder belongs to another graph";
    else if (decoder->is_beam_search && o->impute_finished)
        wrong = "impute_finished has no effect on beam search";
    else if (decoder->is_beam_search && o->alignment_history)
        wrong = "alignment_history has no effect on beam search";
    else if (limit.node != nullptr && is_limited)
        wrong = "maximum_iterations and maximum_iterations_output are both set, but only one may be";
    else if (limit.node != nullptr && (mr_output_dtype(limit) != MR_INT32 || mr_output_shape(limit).rank != 0))
        wrong = "maximum_iterations_output must be an int32 scalar";
    else if (is_limited && o->maximum_iterations < 0)
        wrong = "maximum_iterations must be at least 0";
    else if (o->parallel_iterations < 1)
        wrong = "parallel_iterations must be at least 1";
    if (wrong != nullptr) (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "dynamic_decode: %s", wrong);
    return wrong == nullptr;
}

static bool find_alignments(decoding *d)
{
    const mr_rnn_cell *cell = d->decoder->cell;
    if (!d->options->alignment_history) return true;
    for (int32_t i = 0; i < mr_rnn_cell_state_count(cell); i++) {
        if (!cell->states[i].is_alignments) continue;
        if (d->alignment_count == MR_ATTENTIONS_MAX) {
            (void)mr_graph_fail(d->graph, MR_INVALID_ARGUMENT,
                                "dynamic_decode: alignment_history of more than %d attentions", MR_ATTENTIONS_MAX);
            return false;
        }
        d->alignments[d->alignment_count++] = i;
    }
    if (d->alignment_count > 0) return true;
    (void)mr_graph_fail(d->graph, MR_INVALID_ARGUMENT,
                        "dynamic_decode: alignment_history needs a cell with an attention_wrapper");
    return false;
}

/* The states must be of the batch of the inputs. */
static bool check_states(decoding *d)
{
    char found[MR_SHAPE_TEXT_SIZE], expected[MR_SHAPE_TEXT_SIZE];
    const mr_decoder *decoder = d->decoder;
    const char *hint =
        decoder->is_beam_search ? "; initial_state needs mr_tile_batch with the multiplier beam_width" : "";
    for (int32_t i = 0; i < mr_rnn_cell_state_count(decoder->cell); i++) {
        const mr_shape shape = mr_output_shape(decoder->cell_initial[i]), own = mr_decoder_state_shape(decoder, i);
        if (mr_shape_compatible(shape, own)) continue;
        (void)mr_graph_fail(d->graph, MR_INVALID_ARGUMENT,
                            "%s: state %d of initial_state has the shape %s, but must have %s%s", decoder->what, (int)i,
                            mr_shape_text(shape, found, sizeof found), mr_shape_text(own, expected, sizeof expected),
                            hint);
        return false;
    }
    return true;
}

/* The same for sizes that are known when the graph runs. */
static void guard_states(decoding *d)
{
    const mr_decoder *decoder = d->decoder;
    const char *hint =
        decoder->is_beam_search ? "; initial_state needs mr_tile_batch with the multiplier beam_width" : "";
    const mr_batch_size batch = mr_batch_size_of("the inputs", d->values.inputs, 0);
    for (int32_t i = 0; i < mr_rnn_cell_state_count(decoder->cell); i++)
        if (!decoder->cell->states[i].is_time)
            d->values.states[i] = mr_batch_check(d->graph, d->values.states[i], decoder->what, batch,
                                                 mr_batch_size_of("initial_state", d->values.states[i], 0), hint);
}

/* Builds the cell and the layer in the current variable scope, and the values of the first step. */
static bool begin(decoding *d)
{
    mr_decoder *decoder = d->decoder;
    mr_graph *graph = d->graph;
    if (!find_alignments(d) || !mr_rnn_cell_build(graph, decoder->cell, decoder->features, decoder->dtype) ||
        !mr_rnn_check_states(graph, decoder->cell, decoder->cell_initial) || !check_states(d))
        return false;
    if (decoder->layer != nullptr &&
        !mr_output_layer_build(decoder->layer, mr_rnn_cell_output_size(decoder->cell), decoder->dtype))
        return false;
    decoder->begin(decoder, &d->values);
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    guard_states(d);
    d->limit = d->options->maximum_iterations_output;
    if (d->options->maximum_iterations >= 0) d->limit = int32_scalar(graph, d->options->maximum_iterations);
    d->batch_shape = decoder->results[decoder->result_count - 1].shape;
    for (int32_t i = 0; i < decoder->result_count; i++) d->elements[d->array_count++] = decoder->results[i];
    for (int32_t i = 0; i < d->alignment_count; i++)
        d->elements[d->array_count++] =
            (mr_decoder_result){decoder->dtype, mr_decoder_state_shape(decoder, d->alignments[i])};
    return mr_graph_status(graph, nullptr) == MR_OK;
}

/* ---- The loop ---- */

static void set_variables(decoding *d)
{
    mr_graph *graph = d->graph;
    const mr_decoder *decoder = d->decoder;
    const mr_shape batch = d->batch_shape;
    mr_output *v = d->variables;
    v[TIME] = int32_scalar(graph, 0);
    v[LENGTHS] = mr_fill(graph, mr_shape_of(graph, d->values.finished), int32_scalar(graph, 0), .name = "zeros_like");
    v[FINISHED] = d->values.finished;
    v[INPUTS] = d->values.inputs;
    d->shapes[TIME] = MR_SCALAR;
    d->shapes[LENGTHS] = d->shapes[FINISHED] = batch;
    const int64_t beams = batch.rank == 2 ? batch.dims[1] : 1;
    d->shapes[INPUTS] = MR_SHAPE(batch.dims[0] >= 0 ? batch.dims[0] * beams : -1, decoder->features);
    for (int32_t i = 0; i < d->array_count; i++) {
        mr_tensor_array_v3_outputs array =
            mr_tensor_array_v3(graph, int32_scalar(graph, 0), d->elements[i].dtype, .dynamic_size = true,
                               .element_shape = d->elements[i].shape, .name = "TensorArray");
        d->handles[i] = array.handle;
        v[FLOWS + i] = array.flow;
        d->shapes[FLOWS + i] = MR_SCALAR;
    }
    for (int32_t i = 0; i < decoder->state_count; i++) {
        v[FLOWS + d->array_count + i] = d->values.states[i];
        d->shapes[FLOWS + d->array_count + i] = mr_decoder_state_shape(decoder, i);
    }
}

static mr_output test(const decoding *d)
{
    mr_graph *graph = d->graph;
    mr_output axes = mr_constant_int32s(graph, MR_SHAPE(d->batch_shape.rank), (int32_t[]){0, 1}, nullptr);
    mr_output go_on = mr_logical_not(graph, mr_all(graph, d->variables[FINISHED], axes, .name = "All"));
    if (d->limit.node == nullptr) return go_on;
    return mr_logical_and(graph, go_on, mr_less(graph, d->variables[TIME], d->limit, .name = "Less"));
}

/* Results and states of sequences that have ended: zeros, and the states before. */
static void impute(decoding *d, mr_output finished, const mr_output *before, mr_output *results)
{
    mr_graph *graph = d->graph;
    for (int32_t i = 0; i < d->decoder->result_count; i++)
        results[i] = mr_select(graph, finished, mr_zeros_like(graph, results[i]), results[i], .name = "Select");
    for (int32_t i = 0; i < d->decoder->state_count; i++)
        if (!d->decoder->cell->states[i].is_time)
            d->values.states[i] = mr_select(graph, finished, before[i], d->values.states[i], .name = "Select");
}

static void body(decoding *d)
{
    mr_graph *graph = d->graph;
    mr_decoder *decoder = d->decoder;
    mr_output *v = d->variables, *states = v + FLOWS + d->array_count, results[ARRAYS_MAX];
    const mr_output time = v[TIME], finished = v[FINISHED];
    for (int32_t i = 0; i < decoder->state_count; i++) d->values.states[i] = states[i];
    d->values.inputs = v[INPUTS];
    d->values.finished = finished;
    decoder->step(decoder, time, &d->values, results);
    mr_output next = mr_add_v2(graph, time, int32_scalar(graph, 1), .name = "add");
    if (!decoder->is_beam_search) { /* which has finished and lengths in its states */
        d->values.finished = mr_logical_or(graph, d->values.finished, finished, .name = "LogicalOr");
        mr_output now = mr_fill(graph, mr_shape_of(graph, v[LENGTHS]), next);
        v[LENGTHS] = mr_select(graph, finished, v[LENGTHS], now, .name = "Select");
    }
    if (d->options->impute_finished) impute(d, finished, states, results);
    for (int32_t i = 0; i < d->alignment_count; i++)
        results[decoder->result_count + i] = d->values.states[d->alignments[i]];
    for (int32_t i = 0; i < d->array_count; i++)
        v[FLOWS + i] = mr_tensor_array_write_v3(graph, d->handles[i], time, results[i], v[FLOWS + i]);
    for (int32_t i = 0; i < decoder->state_count; i++) states[i] = d->values.states[i];
    v[TIME] = next;
    v[FINISHED] = d->values.finished;
    v[INPUTS] = d->values.inputs;
    for (int32_t i = 0; i < variable_count(d) && mr_graph_status(graph, nullptr) == MR_OK; i++)
        if (i == INPUTS || i == FINISHED || i >= FLOWS + d->array_count) mr_output_set_shape(v[i], d->shapes[i]);
}

static void run_loop(decoding *d)
{
    const int32_t count = variable_count(d);
    mr_output initial[VARIABLES_MAX];
    set_variables(d);
    assert(count <= VARIABLES_MAX);
    for (int32_t i = 0; i < count; i++) initial[i] = d->variables[i];
    mr_while_loop *loop = mr_while_loop_begin(
        d->graph, MR_OUTPUTS_OF(initial, count), d->variables, .parallel_iterations = d->options->parallel_iterations,
        .swap_memory = d->options->swap_memory, .shape_invariants = MR_VALUE_(mr_shapes, d->shapes, count));
    mr_while_loop_body(loop, test(d), d->variables);
    if (mr_graph_status(d->graph, nullptr) == MR_OK) body(d);
    mr_while_loop_end(loop, MR_OUTPUTS_OF(d->variables, count), initial);
    for (int32_t i = 0; i < count; i++) d->variables[i] = initial[i];
}

/* ---- After the loop ---- */

/* The elements of all steps, [time, …]. */
static mr_output stack(const decoding *d, int32_t index)
{
    mr_graph *graph = d->graph;
    const mr_decoder_result *element = &d->elements[index];
    mr_output flow = d->variables[FLOWS + index];
    mr_output size = mr_tensor_array_size_v3(graph, d->handles[index], flow);
    mr_output order = mr_range(graph, int32_scalar(graph, 0), size, int32_scalar(graph, 1));
    mr_output all =
        mr_tensor_array_gather_v3(graph, d->handles[index], order, flow, element->dtype,
                                  .element_shape = element->shape, .name = "TensorArrayStack/TensorArrayGatherV3");
    mr_shape shape = {.rank = element->shape.rank + 1, .dims = {-1}};
    for (int32_t i = 1; i < shape.rank; i++) shape.dims[i] = element->shape.dims[i - 1];
    if (mr_graph_status(graph, nullptr) == MR_OK) mr_output_set_shape(all, shape);
    return all;
}

/* [time, batch, …] as [batch, time, …] */
static mr_output swap_time(mr_graph *graph, mr_output value)
{
    if (value.node == nullptr || mr_graph_status(graph, nullptr) != MR_OK) return value;
    const mr_shape order = MR_SHAPE(mr_output_shape(value).rank);
    return mr_transpose(graph, value, mr_constant_int32s(graph, order, (int32_t[]){1, 0, 2}, nullptr),
                        .name = "transpose");
}

static mr_decoded finish(decoding *d, mr_output *final)
{
    mr_graph *graph = d->graph;
    mr_decoder *decoder = d->decoder;
    mr_decoded decoded = {.sequence_lengths = d->variables[LENGTHS]};
    mr_output results[ARRAYS_MAX];
    for (int32_t i = 0; i < d->array_count; i++) results[i] = stack(d, i);
    for (int32_t i = 0; i < decoder->state_count; i++) d->values.states[i] = d->variables[FLOWS + d->array_count + i];
    for (int32_t i = 0; i < d->alignment_count; i++)
        decoded.alignment_histories[i] = results[decoder->result_count + i];
    decoded.alignment_history = decoded.alignment_histories[0];
    if (mr_graph_status(graph, nullptr) == MR_OK) decoder->end(decoder, results, &d->values, &decoded);
    if (!d->options->output_time_major) {
        mr_output *timed[] = {&decoded.rnn_output, &decoded.sample_id, &decoded.predicted_ids, &decoded.scores,
                              &decoded.parent_ids};
        for (size_t i = 0; i < sizeof timed / sizeof *timed; i++) *timed[i] = swap_time(graph, *timed[i]);
    }
    for (int32_t i = 0; final != nullptr && i < mr_rnn_cell_state_count(decoder->cell); i++)
        final[i] = d->values.states[i];
    return decoded;
}

/* Every output is the failed one, so that later builders pass it on. */
static mr_decoded failed(mr_graph *graph)
{
    const mr_output output = graph != nullptr ? mr_graph_failed_output(graph) : (mr_output){0};
    mr_decoded decoded = {output, output, output, output, output, output, output, output, {{0}}};
    for (int32_t i = 0; i < MR_ATTENTIONS_MAX; i++) decoded.alignment_histories[i] = output;
    return decoded;
}

mr_decoded mr_dynamic_decode_(mr_graph *graph, mr_decoder *decoder, mr_output *final,
                              const mr_dynamic_decode_options *given)
{
    mr_dynamic_decode_options o;
    const int32_t count = decoder != nullptr ? mr_rnn_cell_state_count(decoder->cell) : 0;
    for (int32_t i = 0; final != nullptr && graph != nullptr && i < count; i++)
        final[i] = mr_graph_failed_output(graph);
    if (!read_options(graph, &o, given, decoder)) return failed(graph);
    decoding *d = mr_rnn_alloc(graph, sizeof *d);
    if (d == nullptr) return failed(graph);
    *d = (decoding){.graph = graph, .decoder = decoder, .options = &o};
    mr_graph_push_variable_scope(graph, o.name, .default_name = o.name == nullptr ? "decoder" : nullptr);
    mr_decoded decoded = failed(graph);
    if (begin(d)) {
        run_loop(d);
        decoded = finish(d, final);
    }
    mr_graph_pop_variable_scope(graph);
    return mr_graph_status(graph, nullptr) == MR_OK ? decoded : failed(graph);
}
