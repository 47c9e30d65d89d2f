/* Helpers: which inputs a decoder gets, and when its sequences end. */
#include "graph/train/attention.h"
#include "graph/train/decoder.h"
#include "graph/train/open_scopes.h"
#include <millrace/control_flow.h>
#include <millrace/ops.h>

#include <math.h>

typedef enum helper_kind {
    HELPER_TRAINING = 0,
    HELPER_GREEDY,
    HELPER_SAMPLE,
    HELPER_SCHEDULED_EMBEDDING,
    HELPER_SCHEDULED_OUTPUT,
    HELPER_CUSTOM,
} helper_kind;

struct mr_helper {
    mr_graph *graph;
    helper_kind kind;
    int64_t batch, features;
    mr_dtype dtype;
    /* of given inputs */
    mr_output inputs; /* [time, batch, features] */
    mr_output lengths, zeros, array, flow;
    mr_output probability; /* of a replacement */
    int64_t scheduling_seed;
    /* of an embedding */
    mr_decoder_embedding embedding;
    mr_output start_tokens, start_inputs;
    int32_t end_token;
    float temperature;
    int64_t seed;
    /* of the caller's */
    mr_helper_functions functions;
    void *context;
};

static mr_output int32_scalar(mr_graph *graph, int32_t value)
{
    return mr_constant_int32s(graph, MR_SCALAR, &value, nullptr);
}

static bool has_inputs(const mr_helper *helper)
{
    return helper->kind == HELPER_TRAINING || helper->kind == HELPER_SCHEDULED_EMBEDDING ||
           helper->kind == HELPER_SCHEDULED_OUTPUT;
}

/* The function that creates it, for messages. */
static const char *what_of(helper_kind kind)
{
    switch (kind) {
    case HELPER_TRAINING:
        return "training_helper";
    case HELPER_GREEDY:
        return "greedy_embedding_helper";
    case HELPER_SAMPLE:
        return "sample_embedding_helper";
    case HELPER_SCHEDULED_EMBEDDING:
        return "scheduled_embedding_training_helper";
    case HELPER_SCHEDULED_OUTPUT:
        return "scheduled_output_training_helper";
    case HELPER_CUSTOM:
        break;
    }
    return "custom_helper";
}

static mr_helper *helper_new(mr_graph *graph, const mr_helper *given)
{
    mr_helper *helper = mr_graph_status(graph, nullptr) == MR_OK ? mr_rnn_alloc(graph, sizeof *helper) : nullptr;
    if (helper != nullptr) *helper = *given;
    return helper;
}

mr_graph *mr_helper_graph(const mr_helper *helper)
{
    return helper->graph;
}

int64_t mr_helper_batch(const mr_helper *helper)
{
    return helper->batch;
}

int64_t mr_helper_features(const mr_helper *helper)
{
    return helper->features;
}

mr_dtype mr_helper_dtype(const mr_helper *helper)
{
    return helper->dtype;
}

bool mr_helper_check_outputs(const mr_helper *helper, int64_t output_size)
{
    if (helper->kind != HELPER_SCHEDULED_OUTPUT || output_size == helper->features) return true;
    (void)mr_graph_fail(helper->graph, MR_INVALID_ARGUMENT,
                        "scheduled_output_training_helper: the output has %lld features, but the input %lld",
                        (long long)output_size, (long long)helper->features);
    return false;
}

/* ---- Embeddings ---- */

bool mr_decoder_read_embedding(mr_graph *graph, const char *what, mr_variables table, mr_output start_tokens,
                               mr_decoder_embedding *embedding)
{
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    const char *wrong = table.count < 1 || table.items == nullptr ? "the embedding has no variable" : nullptr;
    for (int32_t i = 0; wrong == nullptr && i < table.count; i++)
        if (table.items[i].value.node == nullptr || mr_variable_shape_of(table.items[i]).rank != 2 ||
            mr_variable_shape_of(table.items[i]).dims[1] < 1)
            wrong = "the embedding must be [ids, features], features known";
        else if (!mr_train_is_floating(mr_variable_dtype_of(table.items[i])))
            wrong = "the embedding must be float, double or half";
        else if (mr_variable_dtype_of(table.items[i]) != mr_variable_dtype_of(table.items[0]) ||
                 mr_variable_shape_of(table.items[i]).dims[1] != mr_variable_shape_of(table.items[0]).dims[1])
            wrong = "the parts of the embedding have different dtypes or features";
    if (wrong == nullptr && start_tokens.node != nullptr) {
        const mr_shape shape = mr_output_shape(start_tokens);
        if (mr_output_dtype(start_tokens) != MR_INT32 || (shape.rank >= 0 && shape.rank != 1))
            wrong = "start_tokens must be int32[batch]";
    }
    if (wrong != nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: %s", what, wrong);
        return false;
    }
    mr_variable *items = mr_rnn_alloc(graph, (size_t)table.count * sizeof *items);
    if (items == nullptr) return false;
    for (int32_t i = 0; i < table.count; i++) items[i] = table.items[i];
    *embedding = (mr_decoder_embedding){.table = {items, table.count},
                                        .features = mr_variable_shape_of(items[0]).dims[1],
                                        .dtype = mr_variable_dtype_of(items[0])};
    return true;
}

mr_output mr_decoder_look_up(mr_graph *graph, const mr_decoder_embedding *embedding, mr_output ids)
{
    return mr_embedding_lookup(graph, embedding->table, ids);
}

mr_output mr_decoder_next_inputs(mr_graph *graph, mr_output finished, mr_output done,
                                 const mr_decoder_embedding *embedding, mr_output ids)
{
    mr_output axes = mr_constant_ints(graph, MR_INTS(0));
    if (mr_graph_status(graph, nullptr) == MR_OK && mr_output_shape(finished).rank == 2)
        axes = mr_constant_ints(graph, MR_INTS(0, 1));
    mr_output all = mr_all(graph, finished, axes, .name = "All"), next = {0};
    mr_cond *cond = mr_cond_begin(graph, all);
    mr_cond_else(cond, MR_OUTPUTS(done));
    mr_cond_end(cond, MR_OUTPUTS(mr_decoder_look_up(graph, embedding, ids)), &next);
    return next;
}

static int64_t batch_of(mr_output vector)
{
    return mr_output_shape(vector).rank == 1 ? mr_output_shape(vector).dims[0] : -1;
}

static mr_helper *embedding_helper(mr_graph *graph, const char *what, mr_variables embedding, mr_output start_tokens,
                                   const mr_helper *options)
{
    mr_helper helper = *options;
    if (mr_graph_status(graph, nullptr) == MR_OK && start_tokens.node == nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: there are no start_tokens", what);
    if (!mr_decoder_read_embedding(graph, what, embedding, start_tokens, &helper.embedding)) return nullptr;
    helper.graph = graph;
    helper.batch = batch_of(start_tokens);
    helper.features = helper.embedding.features;
    helper.dtype = helper.embedding.dtype;
    helper.start_tokens = start_tokens;
    return helper_new(graph, &helper);
}

mr_helper *mr_greedy_embedding_helper(mr_graph *graph, mr_variables embedding, mr_output start_tokens,
                                      int32_t end_token)
{
    if (graph == nullptr) return nullptr;
    return embedding_helper(graph, "greedy_embedding_helper", embedding, start_tokens,
                            &(mr_helper){.kind = HELPER_GREEDY, .end_token = end_token});
}

mr_helper *mr_sample_embedding_helper_(mr_graph *graph, mr_variables embedding, mr_output start_tokens,
                                       int32_t end_token, const mr_sample_embedding_helper_options *given)
{
    mr_sample_embedding_helper_options o;
    if (graph == nullptr || !MR_LAYER_READ(mr_sample_embedding_helper_options, graph, &o, given)) return nullptr;
    if (!(o.softmax_temperature > 0 && isfinite(o.softmax_temperature))) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "sample_embedding_helper: softmax_temperature is %g, but must be above 0 and finite",
                            (double)o.softmax_temperature);
        return nullptr;
    }
    return embedding_helper(
        graph, "sample_embedding_helper", embedding, start_tokens,
        &(mr_helper){
            .kind = HELPER_SAMPLE, .end_token = end_token, .temperature = o.softmax_temperature, .seed = o.seed});
}

/* ---- Given inputs ---- */

/* A constant must be a probability; another value is not checked, as in TensorFlow. */
static bool check_constant(mr_graph *graph, const char *what, mr_output probability)
{
    mr_tensor constant = {0};
    if (!mr_output_constant(probability, &constant)) return true;
    const float *values = mr_tensor_data(&constant);
    bool is_good = true;
    for (int64_t i = 0; is_good && i < mr_tensor_count(&constant); i++) {
        is_good = values[i] >= 0 && values[i] <= 1;
        if (!is_good)
            (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: sampling_probability is %g, but must be in [0, 1]",
                                what, (double)values[i]);
    }
    mr_tensor_deinit(&constant);
    return is_good;
}

static bool check_probability(mr_graph *graph, const mr_helper *helper, mr_output inputs, bool time_major)
{
    char text[MR_SHAPE_TEXT_SIZE];
    const char *what = what_of(helper->kind);
    const mr_output probability = helper->probability;
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    if (helper->kind == HELPER_TRAINING) return true;
    if (probability.node == nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: there is no sampling_probability", what);
        return false;
    }
    const mr_shape shape = mr_output_shape(probability);
    const int64_t batch = mr_output_shape(inputs).dims[time_major ? 1 : 0];
    if (mr_output_dtype(probability) == MR_FLOAT &&
        (shape.rank == 0 || (shape.rank == 1 && (shape.dims[0] < 0 || batch < 0 || shape.dims[0] == batch))))
        return check_constant(graph, what, probability);
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                        "%s: sampling_probability is %s%s, but must be float[] or "
                        "float[batch]",
                        what, mr_dtype_name(mr_output_dtype(probability)), mr_shape_text(shape, text, sizeof text));
    return false;
}

static mr_helper *input_helper(mr_graph *graph, mr_output inputs, mr_output lengths, bool time_major,
                               const mr_helper *options)
{
    mr_helper helper = *options;
    const char *what = what_of(helper.kind);
    if (mr_graph_status(graph, nullptr) != MR_OK) return nullptr;
    helper.features = mr_layer_channels(graph, inputs, 3, 2, what);
    if (mr_graph_status(graph, nullptr) == MR_OK && lengths.node == nullptr)
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: there are no lengths of the inputs", what);
    if (!mr_attention_check_lengths(graph, what, "lengths", lengths)) return nullptr;
    lengths = mr_batch_check(graph, lengths, what, mr_batch_size_of("the inputs", inputs, time_major ? 1 : 0),
                             mr_batch_size_of("the lengths", lengths, 0), "");
    if (!check_probability(graph, &helper, inputs, time_major)) return nullptr;
    if (!time_major)
        inputs = mr_transpose(graph, inputs, mr_constant_ints(graph, MR_INTS(1, 0, 2)), .name = "transpose");
    if (mr_output_dtype(lengths) != MR_INT32) lengths = mr_cast(graph, lengths, MR_INT32);
    if (mr_graph_status(graph, nullptr) != MR_OK) return nullptr;
    helper.graph = graph;
    helper.inputs = inputs;
    helper.lengths = lengths;
    helper.dtype = mr_output_dtype(inputs);
    helper.batch = mr_output_shape(inputs).dims[1];
    if (helper.batch < 0) helper.batch = batch_of(lengths);
    return helper_new(graph, &helper);
}

mr_helper *mr_training_helper_(mr_graph *graph, mr_output inputs, mr_output lengths,
                               const mr_training_helper_options *given)
{
    mr_training_helper_options o;
    if (graph == nullptr || !MR_LAYER_READ(mr_training_helper_options, graph, &o, given)) return nullptr;
    return input_helper(graph, inputs, lengths, o.time_major, &(mr_helper){.kind = HELPER_TRAINING});
}

mr_helper *mr_scheduled_embedding_training_helper_(mr_graph *graph, mr_output inputs, mr_output lengths,
                                                   mr_variables embedding, mr_output sampling_probability,
                                                   const mr_scheduled_helper_options *given)
{
    const char *what = "scheduled_embedding_training_helper";
    mr_scheduled_helper_options o;
    mr_helper options = {.kind = HELPER_SCHEDULED_EMBEDDING, .probability = sampling_probability, .temperature = 1};
    if (graph == nullptr || !MR_LAYER_READ(mr_scheduled_helper_options, graph, &o, given)) return nullptr;
    if (!mr_decoder_read_embedding(graph, what, embedding, (mr_output){0}, &options.embedding)) return nullptr;
    options.seed = o.seed;
    options.scheduling_seed = o.scheduling_seed;
    mr_helper *helper = input_helper(graph, inputs, lengths, o.time_major, &options);
    if (helper == nullptr || helper->features == options.embedding.features) return helper;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: the embedding has %lld features, but the inputs %lld", what,
                        (long long)options.embedding.features, (long long)helper->features);
    return nullptr;
}

mr_helper *mr_scheduled_output_training_helper_(mr_graph *graph, mr_output inputs, mr_output lengths,
                                                mr_output sampling_probability,
                                                const mr_scheduled_helper_options *given)
{
    mr_scheduled_helper_options o;
    if (graph == nullptr || !MR_LAYER_READ(mr_scheduled_helper_options, graph, &o, given)) return nullptr;
    if (o.seed != 0) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "scheduled_output_training_helper: seed has no effect, as no ids are drawn; "
                            "scheduling_seed has");
        return nullptr;
    }
    return input_helper(graph, inputs, lengths, o.time_major,
                        &(mr_helper){.kind = HELPER_SCHEDULED_OUTPUT,
                                     .probability = sampling_probability,
                                     .scheduling_seed = o.scheduling_seed});
}

/* ---- The caller's ---- */

mr_helper *mr_custom_helper(mr_graph *graph, const mr_helper_functions *given, void *context)
{
    mr_helper_functions f;
    if (graph == nullptr || !MR_LAYER_READ(mr_helper_functions, graph, &f, given)) return nullptr;
    const char *wrong = f.initialize == nullptr          ? "initialize is missing"
                        : f.next_inputs == nullptr       ? "next_inputs is missing"
                        : f.features < 1                 ? "features must be at least 1"
                        : f.batch < 0                    ? "batch must be at least 0"
                        : !mr_train_is_floating(f.dtype) ? "dtype must be float, double or half"
                                                         : nullptr;
    if (wrong != nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_helper_functions: %s", wrong);
        return nullptr;
    }
    return helper_new(graph, &(mr_helper){.graph = graph,
                                          .kind = HELPER_CUSTOM,
                                          .batch = f.batch > 0 ? f.batch : -1,
                                          .features = f.features,
                                          .dtype = f.dtype,
                                          .functions = f,
                                          .context = context});
}

/* Records an error unless a function has set the value to that dtype and shape. */
static void check_set(const mr_helper *h, const char *function, const char *member, mr_output value, mr_dtype dtype,
                      mr_shape shape)
{
    char found[MR_SHAPE_TEXT_SIZE], expected[MR_SHAPE_TEXT_SIZE];
    if (mr_graph_status(h->graph, nullptr) != MR_OK) return;
    mr_shape_text(shape, expected, sizeof expected);
    if (value.node == nullptr)
        (void)mr_graph_fail(h->graph, MR_INVALID_ARGUMENT, "custom_helper: %s has not set %s, which must be %s%s",
                            function, member, mr_dtype_name(dtype), expected);
    else if (mr_output_dtype(value) != dtype || !mr_shape_compatible(mr_output_shape(value), shape))
        (void)mr_graph_fail(h->graph, MR_INVALID_ARGUMENT, "custom_helper: %s has set %s to %s%s, but it must be %s%s",
                            function, member, mr_dtype_name(mr_output_dtype(value)),
                            mr_shape_text(mr_output_shape(value), found, sizeof found), mr_dtype_name(dtype), expected);
}

/* Calls a function, and takes what it has set. */
static void call(const mr_helper *h, bool is_first, mr_helper_step *step, mr_decoder_values *values)
{
    const char *function = is_first ? "initialize" : "next_inputs";
    if (mr_graph_status(h->graph, nullptr) != MR_OK) return;
    const mr_callback callback = mr_callback_begin(h->graph);
    (is_first ? h->functions.initialize : h->functions.next_inputs)(h->context, h->graph, step);
    if (!mr_callback_end(h->graph, &callback, "custom_helper", function)) return;
    values->finished = step->finished;
    values->inputs = step->inputs;
    check_set(h, function, "finished", step->finished, MR_BOOL, MR_SHAPE(h->batch));
    check_set(h, function, "inputs", step->inputs, h->dtype, MR_SHAPE(h->batch, h->features));
    if (is_first && mr_graph_status(h->graph, nullptr) == MR_OK)
        values->finished = mr_batch_check(h->graph, values->finished, "custom_helper",
                                          mr_batch_size_of("the inputs", values->inputs, 0),
                                          mr_batch_size_of("finished", values->finished, 0), "");
}

/* ---- Steps ---- */

static mr_output all_of(mr_graph *graph, mr_output finished)
{
    return mr_all(graph, finished, mr_constant_ints(graph, MR_INTS(0)), .name = "All");
}

/* The input of a step, or zeros if all sequences have ended: there may be no input then. */
static mr_output read_input(const mr_helper *h, mr_output time, mr_output finished)
{
    mr_output next = {0};
    mr_cond *cond = mr_cond_begin(h->graph, all_of(h->graph, finished));
    mr_cond_else(cond, MR_OUTPUTS(h->zeros));
    mr_output read = mr_tensor_array_read_v3(h->graph, h->array, time, h->flow, h->dtype);
    mr_cond_end(cond, MR_OUTPUTS(read), &next);
    return next;
}

/* An array of the inputs; each decoder has its own, as an input can be read once. */
static void begin_inputs(mr_helper *h, mr_decoder_values *values)
{
    mr_graph *graph = h->graph;
    const mr_shape element = MR_SHAPE(mr_output_shape(h->inputs).dims[1], h->features);
    mr_output sizes = mr_shape_of(graph, h->inputs), one = mr_constant_ints(graph, MR_INTS(1));
    mr_output time = mr_strided_slice(graph, sizes, mr_constant_ints(graph, MR_INTS(0)), one, one,
                                      .shrink_axis_mask = 1, .name = "strided_slice");
    mr_output rest = mr_strided_slice(graph, sizes, one, mr_constant_ints(graph, MR_INTS(3)), one);
    h->zeros = mr_fill(graph, rest, mr_train_scalar(graph, "zeros/Const", h->dtype, 0), .name = "zeros");
    mr_tensor_array_v3_outputs array = mr_tensor_array_v3(graph, time, h->dtype, .element_shape = element,
                                                          .identical_element_shapes = true, .name = "TensorArray");
    mr_output order = mr_range(graph, int32_scalar(graph, 0), time, int32_scalar(graph, 1));
    h->array = array.handle;
    h->flow = mr_tensor_array_scatter_v3(graph, array.handle, order, h->inputs, array.flow,
                                         .name = "TensorArrayUnstack/TensorArrayScatter/TensorArrayScatterV3");
    values->finished = mr_equal(graph, int32_scalar(graph, 0), h->lengths, .name = "Equal");
    values->inputs = read_input(h, int32_scalar(graph, 0), values->finished);
}

void mr_helper_begin(mr_helper *h, mr_decoder_values *values)
{
    mr_graph *graph = h->graph;
    if (has_inputs(h)) {
        begin_inputs(h, values);
        return;
    }
    if (h->kind == HELPER_CUSTOM) {
        mr_helper_step step = {.time = int32_scalar(graph, 0)};
        call(h, true, &step, values);
        return;
    }
    values->inputs = h->start_inputs = mr_decoder_look_up(graph, &h->embedding, h->start_tokens);
    values->finished = mr_fill(graph, mr_shape_of(graph, h->start_tokens), mr_constant_bool(graph, false));
}

/* Ids drawn with the softmax of the logits. */
static mr_output draw(const mr_helper *h, mr_output logits)
{
    int64_t first = 0, second = 0;
    if (h->temperature != 1)
        logits = mr_real_div(h->graph, logits, mr_train_scalar(h->graph, "truediv/y", h->dtype, (double)h->temperature),
                             .name = "truediv");
    mr_train_seed_pair(h->graph, h->seed, &first, &second);
    mr_output ids = mr_multinomial(h->graph, logits, int32_scalar(h->graph, 1), .seed = first, .seed2 = second,
                                   .output_dtype = MR_INT32, .name = "categorical/Multinomial");
    return mr_squeeze(h->graph, ids, .squeeze_dims = MR_INTS(1));
}

/* Which inputs are replaced: bool [batch]. */
static mr_output choose(const mr_helper *h)
{
    int64_t first = 0, second = 0;
    mr_train_seed_pair(h->graph, h->scheduling_seed, &first, &second);
    mr_output unit = mr_random_uniform(h->graph, mr_shape_of(h->graph, h->lengths), MR_FLOAT, .seed = first,
                                       .seed2 = second, .name = "bernoulli/RandomUniform");
    return mr_less(h->graph, unit, h->probability, .name = "bernoulli/Less");
}

static mr_output custom_sample(const mr_helper *h, mr_output time, mr_output outputs, mr_decoder_values *values)
{
    mr_helper_step step = {.time = time, .outputs = outputs, .states = values->states};
    if (mr_graph_status(h->graph, nullptr) != MR_OK) return mr_graph_failed_output(h->graph);
    const mr_callback callback = mr_callback_begin(h->graph);
    const mr_output ids = h->functions.sample(h->context, h->graph, &step);
    (void)mr_callback_end(h->graph, &callback, "custom_helper", "sample");
    check_set(h, "sample", "the sample ids", ids, MR_INT32, MR_SHAPE(h->batch));
    return ids;
}

mr_output mr_helper_sample(mr_helper *h, mr_output time, mr_output outputs, mr_decoder_values *values)
{
    mr_graph *graph = h->graph;
    if (h->kind == HELPER_CUSTOM && h->functions.sample != nullptr) return custom_sample(h, time, outputs, values);
    if (h->kind == HELPER_SAMPLE) return draw(h, outputs);
    if (h->kind == HELPER_SCHEDULED_OUTPUT) return mr_cast(graph, choose(h), MR_INT32);
    if (h->kind == HELPER_SCHEDULED_EMBEDDING) {
        mr_output none = mr_fill(graph, mr_shape_of(graph, h->lengths), int32_scalar(graph, -1));
        return mr_select(graph, choose(h), draw(h, outputs), none, .name = "Select");
    }
    return mr_arg_max(graph, outputs, int32_scalar(graph, -1), .output_type = MR_INT32, .name = "ArgMax");
}

/* The inputs, with those that were chosen replaced. */
static mr_output replaced(const mr_helper *h, mr_output inputs, mr_output outputs, mr_output ids)
{
    mr_graph *graph = h->graph;
    if (h->kind == HELPER_TRAINING) return inputs;
    mr_output zero = int32_scalar(graph, 0);
    if (h->kind == HELPER_SCHEDULED_OUTPUT)
        return mr_select(graph, mr_greater(graph, ids, zero), outputs, inputs, .name = "Select");
    mr_output drawn = mr_decoder_look_up(graph, &h->embedding, mr_maximum(graph, ids, zero));
    return mr_select(graph, mr_greater_equal(graph, ids, zero), drawn, inputs, .name = "Select");
}

void mr_helper_next(mr_helper *h, mr_output time, mr_output outputs, mr_output ids, mr_decoder_values *values)
{
    mr_graph *graph = h->graph;
    if (h->kind == HELPER_CUSTOM) {
        mr_helper_step step = {.time = time, .outputs = outputs, .sample_ids = ids, .states = values->states};
        call(h, false, &step, values);
        return;
    }
    if (!has_inputs(h)) {
        values->finished = mr_equal(graph, ids, int32_scalar(graph, h->end_token), .name = "Equal");
        values->inputs = mr_decoder_next_inputs(graph, values->finished, h->start_inputs, &h->embedding, ids);
        return;
    }
    mr_output next = mr_add_v2(graph, time, int32_scalar(graph, 1), .name = "add");
    values->finished = mr_greater_equal(graph, next, h->lengths, .name = "GreaterEqual");
    values->inputs = replaced(h, read_input(h, next, values->finished), outputs, ids);
}
