/* The cells of tf.nn.rnn_cell: their variables, and one step. */
#include "graph/train/rnn_cell.h"
#include <millrace/ops.h>

/* What a cell needs in its steps; each kind uses its part. */
typedef struct cell {
    int32_t units;
    mr_activation activation;
    float forget_bias;
    mr_initializer kernel_initializer, bias_initializer;
    bool use_peepholes;
    float cell_clip, proj_clip;
    int32_t num_proj;
    float norm_gain, norm_shift, keep_prob;
    bool has_norm;
    int64_t seed;
    mr_dtype dtype;
    mr_variable kernel, bias, second_kernel, second_bias; /* of a GRU: of the gates, then of the candidate */
    mr_variable w_f_diag, w_i_diag, w_o_diag, projection;
    mr_variable gamma[5], beta[5]; /* of input, transform, forget, output, state */
} cell;

static mr_rnn_cell *finish(mr_graph *graph, const cell *options, mr_rnn_cell_functions functions)
{
    cell *self = nullptr;
    if (mr_graph_status(graph, nullptr) == MR_OK && mr_train_check_required(graph, "units", options->units) &&
        mr_train_check_count(graph, "units", options->units, 1))
        self = mr_rnn_alloc(graph, sizeof *self);
    if (self == nullptr) return nullptr;
    *self = *options;
    if (self->activation == nullptr) self->activation = mr_activation_tanh;
    functions.size = sizeof functions;
    mr_rnn_cell *made = mr_rnn_cell_new(graph, &functions, self);
    if (made != nullptr) made->has_memory = functions.state_count == 2; /* of these cells, only LSTMs have two */
    return made;
}

static mr_variable weight(mr_graph *graph, const char *name, mr_shape shape, mr_dtype dtype, mr_initializer initializer,
                          mr_initializer_kind default_kind)
{
    return mr_layer_variable(graph, &(mr_layer_weight){.name = name,
                                                       .shape = shape,
                                                       .dtype = dtype,
                                                       .initializer = initializer,
                                                       .default_kind = default_kind,
                                                       .trainable = true});
}

static mr_output value_of(mr_graph *graph, mr_variable variable)
{
    return mr_layer_value(graph, variable, "Read");
}

/* [input, state] times kernel, plus bias */
static mr_output affine(mr_graph *graph, mr_output input, mr_output state, mr_variable kernel, mr_variable bias)
{
    mr_output both = mr_concat_v2(graph, MR_OUTPUTS(input, state), mr_constant_int32(graph, 1), .name = "concat");
    mr_output product = mr_mat_mul(graph, both, value_of(graph, kernel), .name = "MatMul");
    return bias.ref.node == nullptr ? product : mr_bias_add(graph, product, value_of(graph, bias), .name = "BiasAdd");
}

static mr_output_range split(mr_graph *graph, mr_output value, int32_t count)
{
    return mr_split(graph, mr_constant_int32(graph, 1), value, .num_split = count, .name = "split");
}

static mr_output number(mr_graph *graph, const cell *c, double value)
{
    return mr_train_scalar(graph, "Const", c->dtype, value);
}

static mr_output clip(mr_graph *graph, const cell *c, mr_output value, float limit)
{
    return mr_clip_by_value(graph, value, number(graph, c, -limit), number(graph, c, limit), .name = "clip_by_value");
}

/* ---- Basic ---- */

static void basic_rnn_build(void *context, mr_graph *graph, int64_t input_size, mr_dtype dtype)
{
    cell *c = context;
    c->dtype = dtype;
    c->kernel = weight(graph, "kernel", MR_SHAPE(input_size + c->units, c->units), dtype, c->kernel_initializer,
                       MR_INIT_DEFAULT);
    c->bias = weight(graph, "bias", MR_SHAPE(c->units), dtype, (mr_initializer){0}, MR_INIT_ZEROS);
}

static mr_output basic_rnn_call(void *context, mr_graph *graph, mr_output input, const mr_output *states,
                                mr_output *next)
{
    const cell *c = context;
    return next[0] = c->activation(graph, affine(graph, input, states[0], c->kernel, c->bias));
}

mr_rnn_cell *mr_basic_rnn_cell_(mr_graph *graph, int32_t units, const mr_basic_rnn_cell_options *given)
{
    mr_basic_rnn_cell_options o;
    if (graph == nullptr || !MR_LAYER_READ(mr_basic_rnn_cell_options, graph, &o, given)) return nullptr;
    return finish(graph, &(cell){.units = units, .activation = o.activation},
                  (mr_rnn_cell_functions){.state_count = 1,
                                          .state_sizes = (int64_t[]){units},
                                          .output_size = units,
                                          .default_name = "basic_rnn_cell",
                                          .name = o.name,
                                          .reuse = o.reuse,
                                          .build = basic_rnn_build,
                                          .call = basic_rnn_call});
}

/* ---- GRU ---- */

static void gru_build(void *context, mr_graph *graph, int64_t input_size, mr_dtype dtype)
{
    cell *c = context;
    const int64_t n = c->units;
    c->dtype = dtype;
    c->kernel =
        weight(graph, "gates/kernel", MR_SHAPE(input_size + n, 2 * n), dtype, c->kernel_initializer, MR_INIT_DEFAULT);
    c->bias = weight(graph, "gates/bias", MR_SHAPE(2 * n), dtype, c->bias_initializer, MR_INIT_ONES);
    c->second_kernel =
        weight(graph, "candidate/kernel", MR_SHAPE(input_size + n, n), dtype, c->kernel_initializer, MR_INIT_DEFAULT);
    c->second_bias = weight(graph, "candidate/bias", MR_SHAPE(n), dtype, c->bias_initializer, MR_INIT_ZEROS);
}

static mr_output gru_call(void *context, mr_graph *graph, mr_output input, const mr_output *states, mr_output *next)
{
    const cell *c = context;
    mr_output gates = mr_sigmoid(graph, affine(graph, input, states[0], c->kernel, c->bias), .name = "Sigmoid");
    mr_output_range parts = split(graph, gates, 2);
    mr_output r = mr_output_at(parts, 0), u = mr_output_at(parts, 1);
    mr_output reset = mr_mul(graph, r, states[0], .name = "mul");
    mr_output candidate = c->activation(graph, affine(graph, input, reset, c->second_kernel, c->second_bias));
    mr_output kept = mr_mul(graph, u, states[0], .name = "mul");
    mr_output rest = mr_sub(graph, number(graph, c, 1), u, .name = "sub");
    return next[0] = mr_add_v2(graph, kept, mr_mul(graph, rest, candidate, .name = "mul"), .name = "add");
}

mr_rnn_cell *mr_gru_cell_(mr_graph *graph, int32_t units, const mr_gru_cell_options *given)
{
    mr_gru_cell_options o;
    if (graph == nullptr || !MR_LAYER_READ(mr_gru_cell_options, graph, &o, given)) return nullptr;
    return finish(graph,
                  &(cell){.units = units,
                          .activation = o.activation,
                          .kernel_initializer = o.kernel_initializer,
                          .bias_initializer = o.bias_initializer},
                  (mr_rnn_cell_functions){.state_count = 1,
                                          .state_sizes = (int64_t[]){units},
                                          .output_size = units,
                                          .default_name = "gru_cell",
                                          .name = o.name,
                                          .reuse = o.reuse,
                                          .build = gru_build,
                                          .call = gru_call});
}

/* ---- LSTM ---- */

static void basic_lstm_build(void *context, mr_graph *graph, int64_t input_size, mr_dtype dtype)
{
    cell *c = context;
    const int64_t n = c->units;
    c->dtype = dtype;
    c->kernel = weight(graph, "kernel", MR_SHAPE(input_size + n, 4 * n), dtype, (mr_initializer){0}, MR_INIT_DEFAULT);
    c->bias = weight(graph, "bias", MR_SHAPE(4 * n), dtype, (mr_initializer){0}, MR_INIT_ZEROS);
}

static mr_output basic_lstm_call(void *context, mr_graph *graph, mr_output input, const mr_output *states,
                                 mr_output *next)
{
    const cell *c = context;
    mr_output_range parts = split(graph, affine(graph, input, states[1], c->kernel, c->bias), 4);
    mr_output i = mr_output_at(parts, 0), j = mr_output_at(parts, 1);
    mr_output f = mr_output_at(parts, 2), o = mr_output_at(parts, 3);
    f = mr_sigmoid(graph, mr_add_v2(graph, f, number(graph, c, c->forget_bias), .name = "Add"), .name = "Sigmoid");
    mr_output kept = mr_mul(graph, states[0], f, .name = "Mul");
    mr_output added = mr_mul(graph, mr_sigmoid(graph, i, .name = "Sigmoid"), c->activation(graph, j), .name = "Mul");
    next[0] = mr_add_v2(graph, kept, added, .name = "Add");
    mr_output opened = mr_sigmoid(graph, o, .name = "Sigmoid");
    return next[1] = mr_mul(graph, c->activation(graph, next[0]), opened, .name = "Mul");
}

mr_rnn_cell *mr_basic_lstm_cell_(mr_graph *graph, int32_t units, const mr_basic_lstm_cell_options *given)
{
    mr_basic_lstm_cell_options o;
    if (graph == nullptr || !MR_LAYER_READ(mr_basic_lstm_cell_options, graph, &o, given)) return nullptr;
    return finish(graph, &(cell){.units = units, .activation = o.activation, .forget_bias = o.forget_bias},
                  (mr_rnn_cell_functions){.state_count = 2,
                                          .state_sizes = (int64_t[]){units, units},
                                          .output_size = units,
                                          .default_name = "basic_lstm_cell",
                                          .name = o.name,
                                          .reuse = o.reuse,
                                          .build = basic_lstm_build,
                                          .call = basic_lstm_call});
}

static void lstm_build(void *context, mr_graph *graph, int64_t input_size, mr_dtype dtype)
{
    cell *c = context;
    const int64_t n = c->units, outputs = c->num_proj > 0 ? c->num_proj : n;
    const mr_initializer own = c->kernel_initializer;
    c->dtype = dtype;
    c->kernel = weight(graph, "kernel", MR_SHAPE(input_size + outputs, 4 * n), dtype, own, MR_INIT_DEFAULT);
    c->bias = weight(graph, "bias", MR_SHAPE(4 * n), dtype, (mr_initializer){0}, MR_INIT_ZEROS);
    if (c->use_peepholes) {
        c->w_f_diag = weight(graph, "w_f_diag", MR_SHAPE(n), dtype, own, MR_INIT_DEFAULT);
        c->w_i_diag = weight(graph, "w_i_diag", MR_SHAPE(n), dtype, own, MR_INIT_DEFAULT);
        c->w_o_diag = weight(graph, "w_o_diag", MR_SHAPE(n), dtype, own, MR_INIT_DEFAULT);
    }
    if (c->num_proj > 0)
        c->projection = weight(graph, "projection/kernel", MR_SHAPE(n, outputs), dtype, own, MR_INIT_DEFAULT);
}

/* value + diagonal * state */
static mr_output peep(mr_graph *graph, mr_output value, mr_variable diagonal, mr_output state)
{
    return mr_add_v2(graph, value, mr_mul(graph, value_of(graph, diagonal), state, .name = "mul"), .name = "add");
}

static mr_output lstm_call(void *context, mr_graph *graph, mr_output input, const mr_output *states, mr_output *next)
{
    const cell *c = context;
    mr_output_range parts = split(graph, affine(graph, input, states[1], c->kernel, c->bias), 4);
    mr_output i = mr_output_at(parts, 0), j = mr_output_at(parts, 1);
    mr_output f = mr_output_at(parts, 2), o = mr_output_at(parts, 3);
    f = mr_add_v2(graph, f, number(graph, c, c->forget_bias), .name = "add");
    if (c->use_peepholes) {
        f = peep(graph, f, c->w_f_diag, states[0]);
        i = peep(graph, i, c->w_i_diag, states[0]);
    }
    mr_output kept = mr_mul(graph, mr_sigmoid(graph, f, .name = "Sigmoid"), states[0], .name = "mul");
    mr_output added = mr_mul(graph, mr_sigmoid(graph, i, .name = "Sigmoid"), c->activation(graph, j), .name = "mul");
    mr_output state = mr_add_v2(graph, kept, added, .name = "add");
    if (c->cell_clip > 0) state = clip(graph, c, state, c->cell_clip);
    next[0] = state;
    if (c->use_peepholes) o = peep(graph, o, c->w_o_diag, state);
    mr_output output =
        mr_mul(graph, mr_sigmoid(graph, o, .name = "Sigmoid"), c->activation(graph, state), .name = "mul");
    if (c->num_proj > 0) output = mr_mat_mul(graph, output, value_of(graph, c->projection), .name = "MatMul");
    if (c->proj_clip > 0) output = clip(graph, c, output, c->proj_clip);
    return next[1] = output;
}

mr_rnn_cell *mr_lstm_cell_(mr_graph *graph, int32_t units, const mr_lstm_cell_options *given)
{
    mr_lstm_cell_options o;
    if (graph == nullptr || !MR_LAYER_READ(mr_lstm_cell_options, graph, &o, given)) return nullptr;
    if (!mr_train_check_number(graph, "cell_clip", o.cell_clip, 0) ||
        !mr_train_check_number(graph, "proj_clip", o.proj_clip, 0) ||
        !mr_train_check_count(graph, "num_proj", o.num_proj, 0))
        return nullptr;
    if (o.proj_clip > 0 && o.num_proj == 0) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "proj_clip has no effect without num_proj");
        return nullptr;
    }
    const int64_t outputs = o.num_proj > 0 ? o.num_proj : units;
    return finish(graph,
                  &(cell){.units = units,
                          .activation = o.activation,
                          .forget_bias = o.forget_bias,
                          .kernel_initializer = o.initializer,
                          .use_peepholes = o.use_peepholes,
                          .cell_clip = o.cell_clip,
                          .num_proj = o.num_proj,
                          .proj_clip = o.proj_clip},
                  (mr_rnn_cell_functions){.state_count = 2,
                                          .state_sizes = (int64_t[]){units, outputs},
                                          .output_size = outputs,
                                          .default_name = "lstm_cell",
                                          .name = o.name,
                                          .reuse = o.reuse,
                                          .build = lstm_build,
                                          .call = lstm_call});
}

/* ---- LSTM with layer normalization ---- */

static const char *const norm_scopes[] = {"input", "transform", "forget", "output", "state"};

static void norm_lstm_build(void *context, mr_graph *graph, int64_t input_size, mr_dtype dtype)
{
    cell *c = context;
    const int64_t n = c->units;
    c->dtype = dtype;
    c->kernel = weight(graph, "kernel", MR_SHAPE(input_size + n, 4 * n), dtype, (mr_initializer){0}, MR_INIT_DEFAULT);
    if (!c->has_norm) c->bias = weight(graph, "bias", MR_SHAPE(4 * n), dtype, (mr_initializer){0}, MR_INIT_DEFAULT);
    for (int i = 0; c->has_norm && i < 5; i++) {
        const mr_initializer gain = {.kind = MR_INIT_CONSTANT, .scale = c->norm_gain};
        const mr_initializer shift = {.kind = MR_INIT_CONSTANT, .scale = c->norm_shift};
        mr_graph_push_variable_scope(graph, norm_scopes[i]);
        c->gamma[i] = weight(graph, "gamma", MR_SHAPE(n), dtype, gain, MR_INIT_CONSTANT);
        c->beta[i] = weight(graph, "beta", MR_SHAPE(n), dtype, shift, MR_INIT_CONSTANT);
        mr_graph_pop_variable_scope(graph);
    }
}

/* Normalizes each row, as tf.contrib.layers.layer_norm. */
static mr_output normalize(mr_graph *graph, const cell *c, mr_output value, int which)
{
    if (!c->has_norm) return value;
    mr_graph_push_scope(graph, norm_scopes[which]);
    mr_output axis = mr_constant_ints(graph, MR_INTS(1));
    mr_output mean = mr_mean(graph, value, axis, .keep_dims = true);
    mr_output variance =
        mr_mean(graph, mr_squared_difference(graph, value, mr_stop_gradient(graph, mean)), axis, .keep_dims = true);
    mr_output factor = mr_rsqrt(graph, mr_add_v2(graph, variance, number(graph, c, 1e-12)));
    factor = mr_mul(graph, factor, value_of(graph, c->gamma[which]));
    mr_output shift = mr_sub(graph, value_of(graph, c->beta[which]), mr_mul(graph, mean, factor));
    mr_output result = mr_add_v2(graph, mr_mul(graph, value, factor), shift);
    mr_graph_pop_scope(graph);
    return result;
}

static mr_output norm_lstm_call(void *context, mr_graph *graph, mr_output input, const mr_output *states,
                                mr_output *next)
{
    const cell *c = context;
    mr_output_range parts = split(graph, affine(graph, input, states[1], c->kernel, c->bias), 4);
    mr_output gates[4];
    for (int i = 0; i < 4; i++) gates[i] = normalize(graph, c, mr_output_at(parts, i), i);
    mr_output candidate = c->activation(graph, gates[1]);
    if (c->keep_prob < 1)
        candidate = mr_layer_dropout(graph, candidate, .rate = 1 - c->keep_prob, .seed = c->seed, .training = true);
    mr_output forget = mr_add_v2(graph, gates[2], number(graph, c, c->forget_bias));
    mr_output kept = mr_mul(graph, states[0], mr_sigmoid(graph, forget));
    mr_output state = mr_add_v2(graph, kept, mr_mul(graph, mr_sigmoid(graph, gates[0]), candidate));
    state = next[0] = normalize(graph, c, state, 4);
    return next[1] = mr_mul(graph, c->activation(graph, state), mr_sigmoid(graph, gates[3]));
}

mr_rnn_cell *mr_layer_norm_lstm_cell_(mr_graph *graph, int32_t units, const mr_layer_norm_lstm_cell_options *given)
{
    mr_layer_norm_lstm_cell_options o;
    if (graph == nullptr || !MR_LAYER_READ(mr_layer_norm_lstm_cell_options, graph, &o, given)) return nullptr;
    if (!(o.dropout_keep_prob > 0 && o.dropout_keep_prob <= 1)) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "dropout_keep_prob is %g, but must be above 0, at most 1",
                            (double)o.dropout_keep_prob);
        return nullptr;
    }
    if (o.no_layer_norm && (o.norm_gain != 1 || o.norm_shift != 0)) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "norm_gain and norm_shift have no effect with no_layer_norm");
        return nullptr;
    }
    return finish(graph,
                  &(cell){.units = units,
                          .activation = o.activation,
                          .forget_bias = o.forget_bias,
                          .norm_gain = o.norm_gain,
                          .norm_shift = o.norm_shift,
                          .has_norm = !o.no_layer_norm,
                          .keep_prob = o.dropout_keep_prob,
                          .seed = o.dropout_prob_seed},
                  (mr_rnn_cell_functions){.state_count = 2,
                                          .state_sizes = (int64_t[]){units, units},
                                          .output_size = units,
                                          .default_name = "layer_norm_basic_lstm_cell",
                                          .name = o.name,
                                          .reuse = o.reuse,
                                          .build = norm_lstm_build,
                                          .call = norm_lstm_call});
}
