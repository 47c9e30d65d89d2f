/* Builds a small model with each loss of sampled classes and of sequences for sampled_losses_oracle.py, which builds
 * the same models with TensorFlow. */
#include "tests/oracle/model_cases.h"

enum { TIME = 7, FEATURES = 4, CLASSES = 23, BATCH = 6 };

#define G m->g

/* ---- Sampled classes ---- */

typedef enum table { WHOLE, RESOURCE, PARTS, PARTITIONED } table;

static mr_output inputs(model *m)
{
    m->x = mr_placeholder(G, MR_FLOAT, .shape = MR_SHAPE(-1, FEATURES), .name = "x");
    return mr_layer_dense(G, m->x, .units = 5, .activation = mr_activation_tanh);
}

static mr_variables variable(model *m, const char *name, mr_shape shape, table kind, mr_variable *own)
{
    mr_partitioner parts = {.kind = MR_PARTITION_FIXED_SIZE, .parts_max = 3};
    if (kind == WHOLE || kind == RESOURCE) parts = (mr_partitioner){0};
    *own = mr_get_variable(G, name, shape, .partitioner = parts, .use_resource = kind == RESOURCE,
                           .initializer = {.kind = MR_INIT_UNIFORM, .scale = 0.5f});
    return kind == PARTS ? mr_variable_parts(G, *own) : (mr_variables){own, 1};
}

static mr_output labels(model *m, int32_t num_true)
{
    int32_t values[BATCH * 3];
    for (int32_t i = 0; i < BATCH * num_true; i++) values[i] = i * i * 5 % 11;
    return mr_cast(G, mr_constant_int32s(G, MR_SHAPE(BATCH, num_true), values, nullptr), MR_INT64);
}

typedef enum sampler { LOG_UNIFORM, UNIFORM, LEARNED, FIXED, ALL } sampler;

static mr_sampled_values values(model *m, sampler kind, mr_output classes, int32_t num_true)
{
#define SAMPLED(function, count, ...)                                                                                  \
    do {                                                                                                               \
        function##_outputs s =                                                                                         \
            function(G, classes, .num_true = num_true, .num_sampled = (count), .seed = 42, .seed2 = 9, __VA_ARGS__);   \
        return (mr_sampled_values){s.sampled_candidates, s.true_expected_count, s.sampled_expected_count};             \
    } while (0)
    static const float unigrams[CLASSES] = {9, 8, 7, 7, 7, 5, 5, 5, 4, 4, 3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1};
    if (kind == UNIFORM) SAMPLED(mr_uniform_candidate_sampler, 8, .unique = false, .range_max = CLASSES);
    if (kind == LEARNED) SAMPLED(mr_learned_unigram_candidate_sampler, 8, .unique = true, .range_max = CLASSES);
    if (kind == FIXED)
        SAMPLED(mr_fixed_unigram_candidate_sampler, 8, .unique = true, .range_max = CLASSES, .distortion = 0.75f,
                .unigrams = {unigrams, CLASSES});
    if (kind == ALL) SAMPLED(mr_all_candidate_sampler, CLASSES, .unique = true);
    return (mr_sampled_values){0};
#undef SAMPLED
}

static mr_output sampled(model *m, bool is_softmax, table kind, mr_partition_strategy strategy, sampler how, bool hits,
                         int32_t num_true)
{
    mr_output x = inputs(m), classes = labels(m, num_true);
    mr_variable own[2];
    mr_variables weights = variable(m, "weights", MR_SHAPE(CLASSES, 5), kind, &own[0]);
    mr_variables biases = variable(m, "biases", MR_SHAPE(CLASSES), kind, &own[1]);
    mr_sampled_loss_options o = {.size = sizeof o,
                                 .num_sampled = how == ALL ? CLASSES : 8,
                                 .num_classes = CLASSES,
                                 .num_true = num_true,
                                 .subtract_log_q = true,
                                 .remove_accidental_hits = hits,
                                 .partition_strategy = strategy,
                                 .seed = how == LOG_UNIFORM ? 9 : 0,
                                 .sampled_values = values(m, how, classes, num_true)};
    return is_softmax ? mr_sampled_softmax_loss_(G, weights, biases, classes, x, &o)
                      : mr_nce_loss_(G, weights, biases, classes, x, &o);
}

/* ---- Sequences ---- */

static mr_output sequences(model *m, int32_t classes)
{
    m->x = mr_placeholder(G, MR_FLOAT, .shape = MR_SHAPE(-1, TIME, FEATURES), .name = "x");
    return mr_layer_dense(G, m->x, .units = classes);
}

static mr_output sequence(model *m, bool averages_time, bool averages_batch, bool sums_time, bool sums_batch)
{
    int32_t targets[BATCH * TIME];
    float weights[BATCH * TIME];
    for (int32_t i = 0; i < BATCH * TIME; i++) {
        targets[i] = i * i % 5;
        weights[i] = i % TIME > i / TIME || i / TIME == 0 ? 0 : (float)(1 + i % 3) / 2;
    }
    mr_output logits = sequences(m, 5);
    return mr_sequence_loss(G, logits, mr_constant_int32s(G, MR_SHAPE(BATCH, TIME), targets, nullptr),
                            mr_constant_floats(G, MR_SHAPE(BATCH, TIME), weights, nullptr),
                            .average_across_timesteps = averages_time, .average_across_batch = averages_batch,
                            .sum_over_timesteps = sums_time, .sum_over_batch = sums_batch);
}

static mr_sparse_output sparse_labels(model *m)
{
    static const int32_t indices[][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {1, 2},
                                         {2, 0}, {3, 0}, {4, 0}, {4, 1}, {5, 0}};
    static const int32_t symbols[] = {1, 3, 0, 0, 2, 2, 1, 2, 2, 3};
    mr_output places = mr_constant_int32s(G, MR_SHAPE(10, 2), indices[0], nullptr);
    mr_output shape = mr_constant_int32s(G, MR_SHAPE(2), (const int32_t[]){BATCH, 3}, nullptr);
    return MR_SPARSE_OUTPUT(mr_cast(G, places, MR_INT64), mr_constant_int32s(G, MR_SHAPE(10), symbols, nullptr),
                            mr_cast(G, shape, MR_INT64));
}

static mr_output lengths(model *m)
{
    return mr_constant_int32s(G, MR_SHAPE(BATCH), (const int32_t[]){3, 7, 1, 2, 5, 6}, nullptr);
}

static mr_output ctc(model *m, bool time_major, bool collapses, bool merges)
{
    mr_output logits = sequences(m, 5);
    if (time_major) logits = mr_transpose(G, logits, mr_constant_ints(G, MR_INTS(1, 0, 2)));
    return mr_ctc_loss(G, sparse_labels(m), logits, lengths(m), .time_major = time_major,
                       .preprocess_collapse_repeated = collapses, .ctc_merge_repeated = merges);
}

/* What both decoders return, and a loss. */
static mr_output decoded(model *m)
{
    mr_output logits = mr_transpose(G, sequences(m, 5), mr_constant_ints(G, MR_INTS(1, 0, 2)));
    mr_output zero = mr_constant_int32(G, 0), all = mr_constant_ints(G, MR_INTS(-1));
    mr_sparse_output found[4];
    mr_output items[7] = {mr_ctc_greedy_decoder(G, logits, lengths(m), &found[0]),
                          mr_ctc_beam_search_decoder(G, logits, lengths(m), &found[1], .top_paths = 3, .beam_width = 9),
                          mr_ctc_loss(G, sparse_labels(m), logits, lengths(m))};
    for (int i = 0; i < 2; i++) items[i] = mr_reshape(G, mr_stop_gradient(G, items[i]), all);
    for (int i = 0; i < 4; i++) items[3 + i] = mr_cast(G, found[i].values, MR_FLOAT);
    return mr_mul(G, mr_concat_v2(G, MR_OUTPUTS_OF(items, 7), zero), mr_constant_float(G, 0.1f));
}

#define CASES(C)                                                                                                       \
    C(nce, sampled(m, false, WHOLE, MR_PARTITION_MOD, LOG_UNIFORM, false, 1))                                          \
    C(nce_hits, sampled(m, false, WHOLE, MR_PARTITION_MOD, LOG_UNIFORM, true, 2))                                      \
    C(nce_resource, sampled(m, false, RESOURCE, MR_PARTITION_MOD, LOG_UNIFORM, false, 1))                              \
    C(nce_div, sampled(m, false, PARTS, MR_PARTITION_DIV, LOG_UNIFORM, false, 3))                                      \
    C(nce_all, sampled(m, false, WHOLE, MR_PARTITION_MOD, ALL, true, 1))                                               \
    C(softmax, sampled(m, true, WHOLE, MR_PARTITION_MOD, LOG_UNIFORM, true, 1))                                        \
    C(softmax_no_hits, sampled(m, true, WHOLE, MR_PARTITION_MOD, LOG_UNIFORM, false, 3))                               \
    C(softmax_resource, sampled(m, true, RESOURCE, MR_PARTITION_MOD, LOG_UNIFORM, true, 2))                            \
    C(softmax_div, sampled(m, true, PARTS, MR_PARTITION_DIV, LOG_UNIFORM, true, 1))                                    \
    C(softmax_mod, sampled(m, true, PARTITIONED, MR_PARTITION_MOD, LOG_UNIFORM, true, 2))                              \
    C(softmax_uniform, sampled(m, true, WHOLE, MR_PARTITION_MOD, UNIFORM, true, 1))                                    \
    C(softmax_learned, sampled(m, true, WHOLE, MR_PARTITION_MOD, LEARNED, true, 2))                                    \
    C(softmax_fixed, sampled(m, true, WHOLE, MR_PARTITION_MOD, FIXED, true, 1))                                        \
    C(sequence, sequence(m, true, true, false, false))                                                                 \
    C(sequence_none, sequence(m, false, false, false, false))                                                          \
    C(sequence_time, sequence(m, true, false, false, false))                                                           \
    C(sequence_batch, sequence(m, false, true, false, false))                                                          \
    C(sequence_sum, sequence(m, false, false, true, true))                                                             \
    C(sequence_sum_time, sequence(m, false, false, true, false))                                                       \
    C(sequence_sum_batch, sequence(m, false, false, false, true))                                                      \
    C(ctc, ctc(m, true, false, true))                                                                                  \
    C(ctc_batch_major, ctc(m, false, false, true))                                                                     \
    C(ctc_collapse, ctc(m, true, true, true))                                                                          \
    C(ctc_no_merge, ctc(m, false, false, false))                                                                       \
    C(decoders, decoded(m))

MODEL_MAIN(CASES)
