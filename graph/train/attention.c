/* Attention mechanisms: the keys of a memory, and how well a query fits each of them. */
#include "graph/train/attention.h"
#include "graph/train/open_scopes.h"
#include <millrace/ops.h>

#include <math.h>

static mr_output int32_scalar(mr_graph *graph, int32_t value)
{
    return mr_constant_int32s(graph, MR_SCALAR, &value, nullptr);
}

bool mr_attention_check_lengths(mr_graph *graph, const char *what, const char *option, mr_output lengths)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    const mr_dtype dtype = mr_output_dtype(lengths);
    const mr_shape shape = mr_output_shape(lengths);
    if ((dtype == MR_INT32 || dtype == MR_INT64) && (shape.rank < 0 || shape.rank == 1)) return true;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: %s is %s%s, but must be int32[batch] or int64[batch]", what,
                        option, mr_dtype_name(dtype), mr_shape_text(shape, text, sizeof text));
    return false;
}

static const char *what_of(const mr_attention *a)
{
    return a->is_luong ? "luong_attention" : "bahdanau_attention";
}

mr_batch_size mr_attention_batch(const mr_attention *attention)
{
    mr_batch_size size = mr_batch_size_of("the memory", attention->values, 0);
    size.size = attention->batch;
    return size;
}

/* ---- Memory ---- */

/* The lengths, of the batch of the memory. They must be greater than 0: a softmax over no memory is not a number. */
static mr_output checked_lengths(mr_graph *graph, const mr_attention *a, mr_output memory, mr_output lengths)
{
    lengths = mr_batch_check(graph, lengths, what_of(a), mr_batch_size_of("the memory", memory, 0),
                             mr_batch_size_of("memory_sequence_length", lengths, 0), "");
    mr_graph_push_scope(graph, "assert_positive");
    if (mr_graph_status(graph, nullptr) == MR_OK && mr_output_dtype(lengths) != MR_INT32)
        lengths = mr_cast(graph, lengths, MR_INT32);
    mr_output positive = mr_greater(graph, lengths, int32_scalar(graph, 0));
    mr_output all = mr_all(graph, positive, mr_constant_ints(graph, MR_INTS(0)));
    mr_output text = mr_constant_string(graph, "All values in memory_sequence_length must greater than zero.");
    mr_node *check = mr_assert(graph, all, MR_OUTPUTS(text, lengths));
    mr_graph_push_control_dependencies(graph, &check, 1);
    lengths = mr_identity(graph, lengths);
    mr_graph_pop_control_dependencies(graph);
    mr_graph_pop_scope(graph);
    return lengths;
}

/* Sets the memory and its mask. */
static void prepare_memory(mr_graph *graph, mr_attention *a, mr_output memory, mr_output lengths)
{
    mr_graph_push_scope(graph, a->is_luong ? "LuongAttention" : "BahdanauAttention");
    if (a->time_static >= 0 && a->time_static <= INT32_MAX)
        a->time = int32_scalar(graph, (int32_t)a->time_static);
    else
        a->time = mr_batch_size_scalar(graph, memory, 1);
    if (mr_output_shape(memory).dims[0] < 0) a->batch = mr_batch_size_scalar(graph, memory, 0);
    a->values = memory;
    if (lengths.node != nullptr) {
        mr_output steps = mr_range(graph, int32_scalar(graph, 0), a->time, int32_scalar(graph, 1));
        mr_output ends = mr_expand_dims(graph, checked_lengths(graph, a, memory, lengths), int32_scalar(graph, 1));
        a->mask = mr_less(graph, steps, ends, .name = "SequenceMask/Less");
        mr_output mask = mr_cast(graph, mr_expand_dims(graph, a->mask, int32_scalar(graph, 2)), a->dtype);
        a->values = mr_mul(graph, memory, mask, .name = "mul");
    }
    mr_graph_pop_scope(graph);
}

/* ---- Creation ---- */

/* An option that has no effect, given the others; null: none. */
static const char *find_unused(const mr_attention_options *o, bool is_luong)
{
    if (is_luong && o->normalize) return "normalize has no effect on this attention";
    if (!is_luong && o->scale) return "scale has no effect on this attention";
    if (o->memory_sequence_length.node == nullptr && o->score_mask_value != -INFINITY)
        return "score_mask_value has no effect without memory_sequence_length";
    if (o->monotonic != MR_MONOTONIC_NONE) {
        if (o->probability_fn != nullptr) return "probability_fn has no effect on monotonic attention";
        return o->sigmoid_noise == 0 && o->sigmoid_noise_seed != 0
                   ? "sigmoid_noise_seed has no effect without sigmoid_noise"
                   : nullptr;
    }
    if (o->sigmoid_noise != 0) return "sigmoid_noise has no effect without monotonic";
    if (o->sigmoid_noise_seed != 0) return "sigmoid_noise_seed has no effect without monotonic";
    return o->score_bias_init != 0 ? "score_bias_init has no effect without monotonic" : nullptr;
}

static bool check(mr_graph *graph, const mr_attention_options *o, const char *what, int32_t num_units, mr_output memory,
                  bool is_luong)
{
    const char *unused = find_unused(o, is_luong);
    const bool has_lengths = o->memory_sequence_length.node != nullptr;
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    (void)mr_layer_channels(graph, memory, 3, 2, what);
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    if (num_units < 1)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: num_units is %d, but must be at least 1", what,
                            (int)num_units);
    else if (!mr_train_is_floating(mr_output_dtype(memory)))
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: the memory is %s, but must be float, double or half", what,
                            mr_dtype_name(mr_output_dtype(memory)));
    else if (unused != nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: %s", what, unused);
    else if ((unsigned)o->monotonic > MR_MONOTONIC_HARD)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: unknown monotonic %d", what, (int)o->monotonic);
    else if (!(o->sigmoid_noise >= 0 && isfinite(o->sigmoid_noise)) || !isfinite(o->score_bias_init))
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "%s: sigmoid_noise must be finite and at least 0, score_bias_init finite", what);
    else if (isnan(o->score_mask_value))
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: score_mask_value is not a number", what);
    else if (has_lengths)
        return mr_attention_check_lengths(graph, what, "memory_sequence_length", o->memory_sequence_length);
    return mr_graph_status(graph, nullptr) == MR_OK;
}

static mr_attention *attention_new(mr_graph *graph, int32_t num_units, mr_output memory,
                                   const mr_attention_options *given, bool is_luong)
{
    mr_attention_options o;
    if (graph == nullptr || !MR_LAYER_READ(mr_attention_options, graph, &o, given)) return nullptr;
    if (!check(graph, &o, is_luong ? "luong_attention" : "bahdanau_attention", num_units, memory, is_luong))
        return nullptr;
    mr_attention *a = mr_rnn_alloc(graph, sizeof *a);
    if (a == nullptr) return nullptr;
    *a = (mr_attention){.graph = graph,
                        .is_luong = is_luong,
                        .normalize = o.normalize,
                        .scale = o.scale,
                        .monotonic = o.monotonic,
                        .sigmoid_noise = o.sigmoid_noise,
                        .sigmoid_noise_seed = o.sigmoid_noise_seed,
                        .score_bias_init = o.score_bias_init,
                        .num_units = num_units,
                        .probability_fn = o.probability_fn != nullptr ? o.probability_fn : mr_activation_softmax,
                        .score_mask_value = o.score_mask_value,
                        .dtype = mr_output_dtype(memory),
                        .depth = mr_output_shape(memory).dims[2],
                        .time_static = mr_output_shape(memory).dims[1]};
    prepare_memory(graph, a, memory, o.memory_sequence_length);
    a->keys = mr_layer_dense(graph, a->values, .units = num_units, .use_bias = false,
                             .name = mr_variable_scope_free_name(graph, "memory_layer"));
    return mr_graph_status(graph, nullptr) == MR_OK ? a : nullptr;
}

mr_attention *mr_bahdanau_attention_(mr_graph *graph, int32_t num_units, mr_output memory,
                                     const mr_attention_options *options)
{
    return attention_new(graph, num_units, memory, options, false);
}

mr_attention *mr_luong_attention_(mr_graph *graph, int32_t num_units, mr_output memory,
                                  const mr_attention_options *options)
{
    return attention_new(graph, num_units, memory, options, true);
}

/* ---- Variables ---- */

static mr_variable weight(mr_graph *graph, const mr_attention *a, const char *name, mr_shape shape,
                          mr_initializer initializer)
{
    return mr_layer_variable(
        graph, &(mr_layer_weight){
                   .name = name, .shape = shape, .dtype = a->dtype, .initializer = initializer, .trainable = true});
}

static const char *scope_of(const mr_attention *a)
{
    if (a->monotonic != MR_MONOTONIC_NONE)
        return a->is_luong ? "luong_monotonic_attention" : "bahdanau_monotonic_attention";
    return what_of(a);
}

void mr_attention_build(mr_graph *graph, const mr_attention *a, int64_t query_size, mr_attention_weights *weights)
{
    const int32_t units = a->num_units;
    mr_graph_push_variable_scope(graph, nullptr, .default_name = scope_of(a));
    if (a->is_luong) {
        if (a->scale) weights->g = weight(graph, a, "attention_g", MR_SCALAR, (mr_initializer){.kind = MR_INIT_ONES});
    } else {
        mr_layer_begin(graph, "query_layer", "query_layer", MR_REUSE_NONE);
        weights->query_kernel = weight(graph, a, "kernel", MR_SHAPE(query_size, units), (mr_initializer){0});
        mr_graph_pop_variable_scope(graph);
        weights->v = weight(graph, a, "attention_v", MR_SHAPE(units), (mr_initializer){0});
    }
    if (a->normalize) {
        const mr_initializer root = {.kind = MR_INIT_CONSTANT, .scale = (float)sqrt(1.0 / units)};
        weights->g = weight(graph, a, "attention_g", MR_SCALAR, root);
        weights->b = weight(graph, a, "attention_b", MR_SHAPE(units), (mr_initializer){.kind = MR_INIT_ZEROS});
    }
    if (a->monotonic != MR_MONOTONIC_NONE) {
        const mr_initializer initial = {.kind = MR_INIT_CONSTANT, .scale = a->score_bias_init};
        weights->score_bias = weight(graph, a, "attention_score_bias", MR_SCALAR, initial);
    }
    mr_graph_pop_variable_scope(graph);
}

/* ---- Alignments ---- */

static mr_output luong_score(mr_graph *graph, const mr_attention *a, const mr_attention_weights *w, mr_output query)
{
    query = mr_expand_dims(graph, query, int32_scalar(graph, 1));
    mr_output score = mr_batch_mat_mul_v2(graph, query, a->keys, .adj_y = true, .name = "MatMul");
    score = mr_squeeze(graph, score, .squeeze_dims = MR_INTS(1), .name = "Squeeze");
    return a->scale ? mr_mul(graph, mr_layer_value(graph, w->g, "mul"), score, .name = "mul") : score;
}

static mr_output bahdanau_score(mr_graph *graph, const mr_attention *a, const mr_attention_weights *w, mr_output query)
{
    mr_graph_push_scope(graph, "query_layer");
    query = mr_mat_mul(graph, query, mr_layer_value(graph, w->query_kernel, "MatMul"), .name = "MatMul");
    mr_graph_pop_scope(graph);
    mr_output v = mr_layer_value(graph, w->v, "mul");
    mr_output sum = mr_add_v2(graph, a->keys, mr_expand_dims(graph, query, int32_scalar(graph, 1)), .name = "add");
    if (a->normalize) {
        mr_output squares = mr_sum(graph, mr_square(graph, v), mr_constant_ints(graph, MR_INTS(0)));
        mr_output scaled = mr_mul(graph, mr_layer_value(graph, w->g, "mul"), v, .name = "mul");
        v = mr_mul(graph, scaled, mr_rsqrt(graph, squares, .name = "Rsqrt"), .name = "mul");
        sum = mr_add_v2(graph, sum, mr_layer_value(graph, w->b, "add"), .name = "add");
    }
    mr_output fit = mr_mul(graph, v, mr_tanh(graph, sum, .name = "Tanh"), .name = "mul");
    return mr_sum(graph, fit, mr_constant_ints(graph, MR_INTS(2)), .name = "Sum");
}

/* What a function of the caller's has returned. */
static mr_output check_alignments(mr_graph *graph, const mr_attention *a, mr_output score, mr_output alignments)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph);
    if (alignments.node != nullptr && mr_output_dtype(alignments) == a->dtype &&
        mr_shape_compatible(mr_output_shape(alignments), mr_output_shape(score)))
        return alignments;
    return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: probability_fn must return %s%s", what_of(a),
                         mr_dtype_name(a->dtype), mr_shape_text(mr_output_shape(score), text, sizeof text));
}

mr_output mr_attention_align(mr_graph *graph, const mr_attention *a, const mr_attention_weights *weights,
                             mr_output query, mr_output previous)
{
    mr_graph_push_scope(graph, scope_of(a));
    mr_output score = a->is_luong ? luong_score(graph, a, weights, query) : bahdanau_score(graph, a, weights, query);
    if (a->monotonic != MR_MONOTONIC_NONE)
        score = mr_add_v2(graph, score, mr_layer_value(graph, weights->score_bias, "add"), .name = "add");
    mr_graph_pop_scope(graph);
    if (a->mask.node != nullptr) {
        mr_output masked = mr_mul(graph, mr_train_scalar(graph, "mul/x", a->dtype, (double)a->score_mask_value),
                                  mr_ones_like(graph, score), .name = "mul");
        score = mr_select(graph, a->mask, score, masked, .name = "Select");
    }
    if (a->monotonic != MR_MONOTONIC_NONE) return mr_attention_monotonic(graph, a, score, previous);
    const mr_callback callback = mr_callback_begin(graph);
    const mr_output alignments = a->probability_fn(graph, score);
    (void)mr_callback_end(graph, &callback, what_of(a), "probability_fn");
    return check_alignments(graph, a, score, alignments);
}

mr_output mr_activation_hardmax(mr_graph *graph, mr_output input)
{
    if (graph == nullptr) return (mr_output){0};
    if (mr_graph_status(graph, nullptr) != MR_OK) return mr_graph_failed_output(graph);
    const mr_dtype dtype = mr_output_dtype(input);
    const mr_shape shape = mr_output_shape(input);
    if (shape.rank < 1 || shape.dims[shape.rank - 1] == 0)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "hardmax needs an input of at least 1 dimension");
    const int32_t last = shape.rank - 1;
    mr_graph_push_scope(graph, "hardmax");
    mr_output depth = mr_strided_slice(graph, mr_shape_of(graph, input), mr_constant_ints(graph, MR_INTS(last)),
                                       mr_constant_ints(graph, MR_INTS(last + 1)), mr_constant_ints(graph, MR_INTS(1)),
                                       .shrink_axis_mask = 1);
    mr_output index = mr_arg_max(graph, input, int32_scalar(graph, last), .name = "ArgMax");
    mr_output result = mr_one_hot(graph, index, depth, mr_train_scalar(graph, "one_hot/on_value", dtype, 1),
                                  mr_train_scalar(graph, "one_hot/off_value", dtype, 0), .name = "one_hot");
    if (mr_graph_status(graph, nullptr) == MR_OK) mr_output_set_shape(result, shape);
    mr_graph_pop_scope(graph);
    return result;
}
