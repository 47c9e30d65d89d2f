/* Beam search: of all continuations of the best sequences, the best ones are kept. A beam that has ended continues with
 * the end token alone, at no cost. */
#include "graph/train/batch_check.h"
#include "graph/train/decoder.h"
#include "graph/train/output_layer.h"
#include <millrace/ops.h>

#include <math.h>

typedef struct beam_search {
    mr_decoder_embedding embedding;
    mr_output start_tokens, start_inputs; /* of all beams */
    int32_t end_token, width;
    float length_penalty_weight;
    mr_output batch; /* an int32 scalar */
} beam_search;

/* The states that follow those of the cell. */
constexpr int32_t LOG_PROBS = 0, FINISHED = 1, LENGTHS = 2, OWN_STATES = 3;

static mr_output int32_scalar(mr_graph *graph, int32_t value)
{
    return mr_constant_int32s(graph, MR_SCALAR, &value, nullptr);
}

/* ---- Batches and beams ---- */

mr_output mr_tile_batch(mr_graph *graph, mr_output value, int32_t multiplier)
{
    if (graph == nullptr) return (mr_output){0};
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph);
    mr_shape shape = mr_output_shape(value);
    int32_t tiling[MR_RANK_MAX];
    if (shape.rank < 1 || shape.rank >= MR_RANK_MAX)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "tile_batch: the value must have 1 to %d dimensions",
                             (int)MR_RANK_MAX - 1);
    if (multiplier < 1)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "tile_batch: multiplier is %d, but must be at least 1",
                             (int)multiplier);
    for (int32_t i = 0; i <= shape.rank; i++) tiling[i] = i == 1 ? multiplier : 1;
    mr_graph_push_scope(graph, "tile_batch");
    mr_output one = mr_constant_ints(graph, MR_INTS(1)), sizes = mr_shape_of(graph, value);
    mr_output tiled = mr_tile(graph, mr_expand_dims(graph, value, int32_scalar(graph, 1)),
                              mr_constant_int32s(graph, MR_SHAPE(shape.rank + 1), tiling, nullptr));
    mr_output rest = mr_strided_slice(graph, sizes, one, mr_constant_ints(graph, MR_INTS(0)), one, .end_mask = 1);
    mr_output batch = mr_slice(graph, sizes, mr_constant_ints(graph, MR_INTS(0)), one);
    batch = mr_mul(graph, batch, mr_constant_ints(graph, MR_INTS(multiplier)));
    mr_output merged = mr_reshape(graph, tiled, mr_concat_v2(graph, MR_OUTPUTS(batch, rest), int32_scalar(graph, 0)));
    if (shape.dims[0] > INT64_MAX / multiplier)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%d copies of each example are too many", (int)multiplier);
    else if (shape.dims[0] >= 0)
        shape.dims[0] *= multiplier;
    if (mr_graph_status(graph, nullptr) == MR_OK) mr_output_set_shape(merged, shape);
    mr_graph_pop_scope(graph);
    return merged;
}

/* [batch * beam, …] as [batch, beam, …]; last: the size of a third dimension, null: there is none. */
static mr_output split_beams(mr_graph *graph, const beam_search *b, mr_output value, mr_output last)
{
    mr_output width = int32_scalar(graph, b->width);
    mr_output sizes = last.node != nullptr ? mr_pack(graph, MR_OUTPUTS(b->batch, width, last))
                                           : mr_pack(graph, MR_OUTPUTS(b->batch, width));
    return mr_reshape(graph, value, sizes);
}

/* Which element of [batch * row] is element `index` of its example. index: int32 [batch, beam] */
static mr_output flat_index(mr_graph *graph, mr_output batch, mr_output index, mr_output row)
{
    mr_output examples = mr_range(graph, int32_scalar(graph, 0), batch, int32_scalar(graph, 1));
    mr_output first = mr_expand_dims(graph, mr_mul(graph, examples, row), int32_scalar(graph, 1));
    return mr_add_v2(graph, index, first);
}

static mr_output gather(mr_graph *graph, mr_output value, mr_output index)
{
    return mr_gather_v2(graph, value, index, int32_scalar(graph, 0));
}

/* The elements of [batch, …] at a flat index. */
static mr_output pick(mr_graph *graph, mr_output value, mr_output index)
{
    return gather(graph, mr_reshape(graph, value, mr_constant_ints(graph, MR_INTS(-1))), index);
}

/* ---- One step ---- */

/* 0 of the end token, and `other` of all other ids: [ids]. */
static mr_output end_row(mr_graph *graph, const beam_search *b, mr_output ids, mr_output end, mr_output other)
{
    return mr_one_hot(graph, int32_scalar(graph, b->end_token), ids, end, other);
}

static double lowest(mr_dtype dtype)
{
    return dtype == MR_DOUBLE ? -0x1.fffffffffffffp1023 : dtype == MR_HALF ? -65504.0 : -0x1.fffffep127;
}

/* The scores of all continuations: [batch, beam, ids]. */
static mr_output scores_of(mr_graph *graph, const mr_decoder *decoder, mr_output total, mr_output lengths)
{
    const beam_search *b = decoder->own;
    const double weight = (double)b->length_penalty_weight;
    if (weight == 0) return total;
    mr_output five = mr_train_scalar(graph, nullptr, decoder->dtype, 5);
    mr_output power = mr_train_scalar(graph, nullptr, decoder->dtype, weight);
    mr_output longer = mr_pow(graph, mr_add_v2(graph, five, mr_cast(graph, lengths, decoder->dtype)), power);
    mr_output six = mr_train_scalar(graph, nullptr, decoder->dtype, pow(6, weight));
    return mr_real_div(graph, total, mr_real_div(graph, longer, six), .name = "scores");
}

/* What a step works with: the best continuations are elements of `total`. */
typedef struct candidates {
    mr_output ids;    /* number of ids, an int32 scalar */
    mr_output total;  /* log-probabilities, [batch, beam, ids] */
    mr_output scores; /* [batch, beam, ids] */
} candidates;

static candidates continuations(mr_decoder *decoder, mr_output logits, const mr_output *own)
{
    const beam_search *b = decoder->own;
    mr_graph *graph = decoder->graph;
    mr_output two = int32_scalar(graph, 2), zero = int32_scalar(graph, 0), one = int32_scalar(graph, 1);
    candidates c = {.ids = int32_scalar(graph, (int32_t)mr_decoder_output_size(decoder))};
    mr_output probs = split_beams(graph, b, mr_log_softmax(graph, logits), c.ids);
    mr_output ended = mr_expand_dims(graph, own[FINISHED], two);
    mr_output row = end_row(graph, b, c.ids, mr_train_scalar(graph, nullptr, decoder->dtype, 0),
                            mr_train_scalar(graph, nullptr, decoder->dtype, lowest(decoder->dtype)));
    probs = mr_select_v2(graph, ended, row, probs);
    c.total = mr_add_v2(graph, mr_expand_dims(graph, own[LOG_PROBS], two), probs);
    mr_output goes_on = mr_cast(graph, mr_logical_not(graph, ended), MR_INT32);
    mr_output added = mr_mul(graph, end_row(graph, b, c.ids, zero, one), goes_on);
    mr_output lengths = mr_add_v2(graph, added, mr_expand_dims(graph, own[LENGTHS], two));
    c.scores = scores_of(graph, decoder, c.total, lengths);
    return c;
}

/* The cell's states of the beams that are continued. parents: flat, [batch, beam] */
static void reorder_states(mr_decoder *decoder, mr_decoder_values *values, mr_output parents)
{
    mr_graph *graph = decoder->graph;
    mr_output rows = mr_reshape(graph, parents, mr_constant_ints(graph, MR_INTS(-1)));
    for (int32_t i = 0; i < mr_rnn_cell_state_count(decoder->cell); i++)
        if (!decoder->cell->states[i].is_time) values->states[i] = gather(graph, values->states[i], rows);
}

static void beam_step(mr_decoder *decoder, mr_output time, mr_decoder_values *values, mr_output *results)
{
    const beam_search *b = decoder->own;
    mr_graph *graph = decoder->graph;
    mr_output *own = values->states + mr_rnn_cell_state_count(decoder->cell);
    (void)time;
    mr_graph_push_scope(graph, "BeamSearchDecoderStep");
    mr_output logits = mr_decoder_call(decoder, values);
    const candidates c = continuations(decoder, logits, own);
    mr_output width = int32_scalar(graph, b->width), row = mr_mul(graph, width, c.ids);
    mr_top_kv2_outputs best = mr_top_kv2(graph, mr_reshape(graph, c.scores, mr_pack(graph, MR_OUTPUTS(b->batch, row))),
                                         width, .name = "TopKV2");
    mr_output ids = mr_floor_mod(graph, best.indices, c.ids, .name = "next_beam_word_ids");
    mr_output beams = mr_floor_div(graph, best.indices, c.ids, .name = "next_beam_parent_ids");
    mr_output parents = flat_index(graph, b->batch, beams, width);
    own[LOG_PROBS] = pick(graph, c.total, flat_index(graph, b->batch, best.indices, row));
    mr_output ended = pick(graph, own[FINISHED], parents);
    mr_output goes_on = mr_cast(graph, mr_logical_not(graph, ended), MR_INT32);
    own[LENGTHS] = mr_add_v2(graph, pick(graph, own[LENGTHS], parents), goes_on);
    own[FINISHED] = mr_logical_or(graph, ended, mr_equal(graph, ids, int32_scalar(graph, b->end_token)),
                                  .name = "next_beam_finished");
    reorder_states(decoder, values, parents);
    mr_output flat = mr_reshape(graph, ids, mr_constant_ints(graph, MR_INTS(-1)));
    values->finished = own[FINISHED];
    values->inputs = mr_decoder_next_inputs(graph, own[FINISHED], b->start_inputs, &b->embedding, flat);
    results[0] = best.values;
    results[1] = ids;
    results[2] = beams;
    mr_graph_pop_scope(graph);
}

/* ---- Begin and end ---- */

/* One beam starts; the others are ended, and worse than any sequence. */
static void beam_begin(mr_decoder *decoder, mr_decoder_values *values)
{
    beam_search *b = decoder->own;
    mr_graph *graph = decoder->graph;
    const int32_t count = mr_rnn_cell_state_count(decoder->cell);
    mr_output *own = values->states + count, width = int32_scalar(graph, b->width);
    for (int32_t i = 0; i < count; i++) values->states[i] = decoder->cell_initial[i];
    b->batch = mr_batch_size_scalar(graph, b->start_tokens, 0);
    mr_output tokens = mr_tile_batch(graph, b->start_tokens, b->width);
    values->inputs = b->start_inputs = mr_decoder_look_up(graph, &b->embedding, tokens);
    mr_output first = mr_fill(graph, mr_pack(graph, MR_OUTPUTS(b->batch)), int32_scalar(graph, 0));
    own[LOG_PROBS] = mr_one_hot(graph, first, width, mr_train_scalar(graph, nullptr, decoder->dtype, 0),
                                mr_train_scalar(graph, nullptr, decoder->dtype, -INFINITY));
    own[FINISHED] = mr_one_hot(graph, first, width, mr_constant_bool(graph, false), mr_constant_bool(graph, true));
    own[LENGTHS] = mr_fill(graph, mr_pack(graph, MR_OUTPUTS(b->batch, width)), int32_scalar(graph, 0));
    values->finished = own[FINISHED];
}

static void beam_end(mr_decoder *decoder, const mr_output *results, mr_decoder_values *values, mr_decoded *decoded)
{
    const beam_search *b = decoder->own;
    mr_graph *graph = decoder->graph;
    const int32_t count = mr_rnn_cell_state_count(decoder->cell);
    const mr_output *own = values->states + count;
    mr_output longest = mr_max(graph, own[LENGTHS], mr_constant_ints(graph, MR_INTS(1)));
    decoded->scores = results[0];
    decoded->parent_ids = results[2];
    decoded->predicted_ids = mr_beam_tree(graph, results[1], results[2], longest, b->end_token);
    decoded->log_probs = own[LOG_PROBS];
    decoded->sequence_lengths = own[LENGTHS];
    for (int32_t i = 0; i < count; i++)
        if (!decoder->cell->states[i].is_time)
            values->states[i] =
                split_beams(graph, b, values->states[i], mr_batch_size_scalar(graph, values->states[i], 1));
}

static bool check(mr_graph *graph, const mr_decoder *decoder, mr_output start_tokens, int32_t beam_width, float weight)
{
    const int64_t size = mr_decoder_output_size(decoder);
    if (start_tokens.node == nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "beam_search_decoder: there are no start_tokens");
    else if (!isfinite(weight))
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "beam_search_decoder: length_penalty_weight is %g, but must be finite", (double)weight);
    else if (beam_width > 0 && size > INT32_MAX / beam_width)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "beam_search_decoder: beam_width is %d, which is too many for outputs of size %lld",
                            (int)beam_width, (long long)size);
    else if (beam_width < 1)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "beam_search_decoder: beam_width is %d, but must be at least 1",
                            (int)beam_width);
    else
        return true;
    return false;
}

mr_decoder *mr_beam_search_decoder_(mr_graph *graph, mr_rnn_cell *cell, mr_variables embedding, mr_output start_tokens,
                                    int32_t end_token, const mr_output *initial_state, int32_t beam_width,
                                    const mr_decoder_options *given)
{
    const char *what = "beam_search_decoder";
    mr_decoder_options o;
    if (graph == nullptr || !MR_LAYER_READ(mr_decoder_options, graph, &o, given)) return nullptr;
    mr_decoder *decoder = mr_decoder_new(graph, what, cell, initial_state, o.output_layer);
    beam_search *b = decoder != nullptr ? mr_rnn_alloc(graph, sizeof *b) : nullptr;
    if (b == nullptr || !check(graph, decoder, start_tokens, beam_width, o.length_penalty_weight)) return nullptr;
    *b = (beam_search){.start_tokens = start_tokens,
                       .end_token = end_token,
                       .width = beam_width,
                       .length_penalty_weight = o.length_penalty_weight};
    if (!mr_decoder_read_embedding(graph, what, embedding, start_tokens, &b->embedding)) return nullptr;
    const mr_shape shape = mr_output_shape(start_tokens);
    decoder->own = b;
    decoder->is_beam_search = true;
    decoder->batch = shape.rank == 1 ? shape.dims[0] : -1;
    decoder->features = b->embedding.features;
    decoder->dtype = b->embedding.dtype;
    decoder->state_count += OWN_STATES;
    decoder->result_count = 3;
    for (int32_t i = 0; i < 3; i++)
        decoder->results[i] =
            (mr_decoder_result){i == 0 ? decoder->dtype : MR_INT32, MR_SHAPE(decoder->batch, beam_width)};
    decoder->begin = beam_begin;
    decoder->step = beam_step;
    decoder->end = beam_end;
    return decoder;
}
