/* Samplers of classes: UniformCandidateSampler and its relatives, and ComputeAccidentalHits.
 *
 * The classes are TensorFlow's for the same seeds. A sampler reserves 2048 words for each class that it samples
 * (tensorflow/core/kernels/range_sampler.cc). Tables, and what LearnedUnigramCandidateSampler has learned, are kept in
 * the node's memory for the session. */
#include "graph/state/run.h"
#include "kernels/random.h"
#include "records/io/file.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

constexpr size_t VOCABULARY_MAX_BYTES = (size_t)1 << 30;

typedef enum sampler_kind { UNIFORM, LOG_UNIFORM, ALL, LEARNED, FIXED } sampler_kind;

typedef struct sampler_options {
    sampler_kind kind;
    bool unique;
    int64_t range, sampled, trues;
    uint64_t seed, seed2;
} sampler_options;

/* A table in one block of memory. */
typedef struct sampler_table {
    int64_t count;
    /* LEARNED: a tree of sums, node 1 is the root and the leaves start at `leaves` */
    int64_t leaves;
    int32_t *sums;
    /* FIXED: Walker's alias method. Class i is kept with probability keep[i], otherwise it is instead[i]. */
    float total;
    float *weights, *keep;
    int32_t *instead;
} sampler_table;

/* ---- A map from integers to positions ---- */

typedef struct int_map {
    uint64_t mask;
    int64_t *keys;
    int64_t *places; /* plus 1; 0: free */
} int_map;

static mr_status map_init(int_map *map, int64_t count, mr_error *error)
{
    uint64_t size = 8;
    *map = (int_map){0};
    if (count > INT64_MAX / 64) return mr_fail_memory(error, SIZE_MAX);
    while (size < (uint64_t)count * 2) size *= 2;
    map->mask = size - 1;
    map->keys = calloc(size * 2, sizeof *map->keys);
    if (!map->keys) return mr_fail_memory(error, size * 2 * sizeof *map->keys);
    map->places = map->keys + size;
    return MR_OK;
}

/* Where the key is, or would be. */
static uint64_t map_slot(const int_map *map, int64_t key)
{
    uint64_t hash = (uint64_t)key * 0x9e3779b97f4a7c15u;
    uint64_t slot = (hash ^ hash >> 32) & map->mask;
    while (map->places[slot] != 0 && map->keys[slot] != key) slot = (slot + 1) & map->mask;
    return slot;
}

/* ---- Learned: weights in a tree ---- */

static sampler_table *learned_table(int64_t range)
{
    int64_t leaves = 1;
    while (leaves < range) leaves *= 2;
    sampler_table *table = calloc(1, sizeof *table + (size_t)(2 * leaves) * sizeof(int32_t));
    if (!table) return nullptr;
    table->count = range;
    table->leaves = leaves;
    table->sums = (int32_t *)(table + 1);
    for (int64_t i = 0; i < range; i++) table->sums[leaves + i] = 1;
    for (int64_t i = leaves - 1; i > 0; i--) table->sums[i] = table->sums[2 * i] + table->sums[2 * i + 1];
    return table;
}

static int64_t learned_sample(const sampler_table *table, mr_words *words)
{
    assert(table != nullptr);
    int32_t place = (int32_t)mr_words_below(words, (uint32_t)table->sums[1]);
    int64_t node = 1;
    while (node < table->leaves) {
        node *= 2;
        if (place < table->sums[node]) continue;
        place -= table->sums[node];
        node++;
    }
    return node - table->leaves;
}

static void learn(sampler_table *table, const int64_t *classes, int64_t count)
{
    count = MR_MIN(count, INT32_MAX - table->sums[1]);
    for (int64_t i = 0; i < count; i++)
        for (int64_t node = table->leaves + classes[i]; node > 0; node /= 2) table->sums[node]++;
}

/* ---- Fixed: the alias method ---- */

/* Fills keep and instead from the weights: classes below the mean are completed by those above it. */
static mr_status build_aliases(sampler_table *table, mr_error *error)
{
    int64_t n = table->count, low_count = 0, high_count = 0;
    double sum = 0;
    double *share = calloc((size_t)n, sizeof(double) + 2 * sizeof(int32_t));
    if (!share) return mr_fail_memory(error, (size_t)n * sizeof(double));
    int32_t *low = (int32_t *)(share + n), *high = low + n;
    for (int64_t i = 0; i < n; i++) sum += (double)table->weights[i];
    for (int64_t i = 0; i < n; i++) {
        share[i] = (double)(table->weights[i] * (float)n) / sum;
        table->instead[i] = -1;
        if (share[i] < 1.0)
            low[low_count++] = (int32_t)i;
        else
            high[high_count++] = (int32_t)i;
    }
    while (low_count > 0 && high_count > 0) {
        int32_t l = low[--low_count], h = high[--high_count];
        table->instead[l] = h;
        share[h] -= 1.0 - share[l];
        if (share[h] < 1.0)
            low[low_count++] = h;
        else
            high[high_count++] = h;
    }
    for (int64_t i = 0; i < n; i++) table->keep[i] = (float)share[i];
    for (int64_t i = 0; i < low_count + high_count; i++) {
        int32_t left = i < low_count ? low[i] : high[i - low_count];
        table->keep[left] = 1;
        table->instead[left] = left;
    }
    free(share);
    return MR_OK;
}

static int64_t fixed_sample(const sampler_table *table, mr_words *words)
{
    assert(table != nullptr && table->keep != nullptr);
    float part = mr_random_float(mr_words_next(words));
    int64_t class = mr_words_below(words, (uint32_t)table->count);
    return part < table->keep[class] || table->instead[class] < 0 ? class : table->instead[class];
}

/* The number of classes that can be sampled at all. */
static mr_status count_possible(const sampler_table *table, int64_t *count, mr_error *error)
{
    assert(table != nullptr && table->keep != nullptr);
    bool *possible = calloc((size_t)table->count, 1);
    *count = 0;
    if (!possible) return mr_fail_memory(error, (size_t)table->count);
    for (int64_t i = 0; i < table->count; i++) {
        if (table->keep[i] > 0) possible[i] = true;
        if (!(table->keep[i] >= 1) && table->instead[i] >= 0) possible[table->instead[i]] = true;
    }
    for (int64_t i = 0; i < table->count; i++) *count += possible[i];
    free(possible);
    return MR_OK;
}

/* The weight at the end of each line of a vocabulary file, after the last comma. */
static mr_status parse_vocabulary(const mr_kernel_node *node, mr_string text, float *weights, int64_t *count,
                                  mr_error *error)
{
    size_t at = 0;
    *count = 0;
    while (at < text.size_bytes) {
        const char *line = text.data + at, *end = memchr(line, '\n', text.size_bytes - at);
        size_t length = end ? (size_t)(end - line) : text.size_bytes - at, start = length;
        at += length + (end != nullptr);
        if (length > 0 && line[length - 1] == '\r') start = --length;
        while (start > 0 && line[start - 1] != ',') start--;
        char number[64], *rest = number;
        float weight = 0;
        if (length - start > 0 && length - start < sizeof number) {
            memcpy(number, line + start, length - start);
            number[length - start] = '\0';
            weight = strtof(number, &rest);
        }
        if (rest == number || *rest != '\0')
            return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Wrong vocabulary format at line: %.*s",
                                  (int)MR_MIN(length, 200), line);
        weights[(*count)++] = weight;
    }
    return MR_OK;
}

/* The weights in the attr or in the file, before distortion; the caller frees them. */
static mr_status read_weights(const mr_kernel_node *node, float **weights, int64_t *count, mr_error *error)
{
    mr_string file = mr_attr_string_or(node->attrs, "vocab_file", "");
    const mr_attr *unigrams = mr_attrs_find(node->attrs, "unigrams");
    bool has_unigrams = unigrams != nullptr && unigrams->is_list && unigrams->count > 0;
    *weights = nullptr;
    if (file.size_bytes == 0 && !has_unigrams)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Must provide either vocab_file or unigrams.");
    if (file.size_bytes > 0 && has_unigrams)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Must only provide one of vocab_file and unigrams.");
    if (has_unigrams) {
        *weights = calloc((size_t)unigrams->count, sizeof **weights);
        if (!*weights) return mr_fail_memory(error, (size_t)unigrams->count * sizeof **weights);
        for (int32_t i = 0; i < unigrams->count; i++) (*weights)[i] = unigrams->values[i].number;
        *count = unigrams->count;
        return MR_OK;
    }
    char path[4096], *bytes = nullptr;
    size_t size_bytes = 0;
    if (file.size_bytes >= sizeof path)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "the path in vocab_file is too long");
    memcpy(path, file.data, file.size_bytes);
    path[file.size_bytes] = '\0';
    MR_TRY(mr_file_read_all(path, VOCABULARY_MAX_BYTES, &bytes, &size_bytes, error));
    *weights = calloc(size_bytes / 2 + 2, sizeof **weights);
    mr_status status = *weights ? MR_OK : mr_fail_memory(error, size_bytes / 2 * sizeof **weights);
    if (status == MR_OK) status = parse_vocabulary(node, (mr_string){bytes, size_bytes}, *weights, count, error);
    free(bytes);
    return status;
}

static mr_status fixed_table(const mr_kernel_node *node, int64_t range, sampler_table **made, mr_error *error)
{
    int64_t reserved = mr_attr_int_or(node->attrs, "num_reserved_ids", 0);
    int64_t shards = mr_attr_int_or(node->attrs, "num_shards", 1), shard = mr_attr_int_or(node->attrs, "shard", 0);
    float distortion = mr_attr_float_or(node->attrs, "distortion", 1);
    float *weights = nullptr;
    int64_t given = 0, count = 0;
    mr_status status = read_weights(node, &weights, &given, error);
    if (status == MR_OK && (shards < 1 || shard < 0 || reserved > range))
        status = mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "num_shards, shard or num_reserved_ids is invalid");
    /* Of the reserved classes only those of the shard count; the given ones are numbered from there. */
    for (int64_t i = 0; status == MR_OK && i < reserved; i++) count += i % shards == shard;
    int64_t first = count;
    for (int64_t i = 0; status == MR_OK && i < given; i++) count += (first + i) % shards == shard;
    if (status == MR_OK && count != range)
        status = mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                                "range is %" PRId64 " must be equal to weights size  %" PRId64, range, count);
    sampler_table *table = nullptr;
    if (status == MR_OK) {
        table = calloc(1, sizeof *table + (size_t)count * (2 * sizeof(float) + sizeof(int32_t)));
        if (!table) status = mr_fail_memory(error, (size_t)count * sizeof(float));
    }
    if (status == MR_OK) {
        table->count = count;
        table->weights = (float *)(table + 1);
        table->keep = table->weights + count;
        table->instead = (int32_t *)(table->keep + count);
        for (int64_t i = 0, at = first; i < given; i++) {
            if ((first + i) % shards != shard) continue;
            table->weights[at] = powf(weights[i], distortion);
            table->total += table->weights[at++];
        }
        status = build_aliases(table, error);
    }
    free(weights);
    if (status != MR_OK) free(table);
    *made = status == MR_OK ? table : nullptr;
    return status;
}

/* ---- Sampling ---- */

static float probability(const sampler_options *options, const sampler_table *table, int64_t class)
{
    switch (options->kind) {
    case UNIFORM:
        return (float)(1.0 / (double)options->range);
    case LOG_UNIFORM:
        return (float)(log(((double)class + 2.0) / ((double)class + 1.0)) / log1p((double)options->range));
    case LEARNED:
        assert(table != nullptr);
        return (float)table->sums[table->leaves + class] / (float)table->sums[1];
    case FIXED:
        assert(table != nullptr && table->weights != nullptr);
        return table->weights[class] / table->total;
    case ALL:
        break;
    }
    return 1;
}

static int64_t sample(const sampler_options *options, const sampler_table *table, mr_words *words)
{
    switch (options->kind) {
    case UNIFORM:
        return (int64_t)mr_words_below64(words, (uint64_t)options->range);
    case LOG_UNIFORM: {
        double number = exp(mr_words_double(words) * log1p((double)options->range));
        return ((number < 0x1p63 ? (int64_t)number : INT64_MAX) - 1) % options->range;
    }
    case LEARNED:
        return learned_sample(table, words);
    case FIXED:
        return fixed_sample(table, words);
    case ALL:
        break;
    }
    return 0;
}

/* How often a class is expected among the samples, given the number of tries for different ones. */
static float expected_count(const sampler_options *options, float p, int64_t tries)
{
    if (options->kind == ALL) return 1;
    if (tries == options->sampled) return p * (float)options->sampled;
    return -expm1f((float)tries * log1pf(-p));
}

static mr_status sample_unique(mr_kernel_call *call, const sampler_table *table, mr_words *words, int64_t *classes,
                               int64_t *tries, mr_error *error)
{
    const sampler_options *options = call->prepared;
    int64_t possible = options->range;
    if (options->kind == FIXED) MR_TRY(count_possible(table, &possible, error));
    if (possible < options->sampled)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Sampler's range is too small.");
    int_map used;
    MR_TRY(map_init(&used, options->sampled, error));
    mr_status status = MR_OK;
    *tries = 0;
    for (int64_t picked = 0; picked < options->sampled && status == MR_OK;) {
        if (*tries % 4096 == 0 && call->run && mr_run_is_stopped(call->run)) {
            status = mr_run_stopped(call->run, error);
            break;
        }
        if (++*tries == INT32_MAX)
            status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "no %" PRId64 " different classes found",
                                    options->sampled);
        int64_t class = sample(options, table, words);
        uint64_t slot = map_slot(&used, class);
        if (used.places[slot] != 0) continue;
        used.keys[slot] = class;
        used.places[slot] = 1;
        classes[picked++] = class;
    }
    free(used.keys);
    return status;
}

static mr_status run_sampler(mr_kernel_call *call, sampler_table *table, mr_error *error)
{
    const sampler_options *options = call->prepared;
    const mr_tensor *trues = &call->inputs[0];
    const int64_t *classes = trues->data;
    int64_t count = mr_tensor_count(trues), tries = options->sampled;
    mr_words words = {
        .philox = mr_kernel_reserve(call, options->seed, options->seed2, (uint64_t)options->sampled * 512), .used = 4};
    int64_t *sampled = call->outputs[0].data;
    if (options->kind == ALL) {
        for (int64_t i = 0; i < options->sampled; i++) sampled[i] = i;
    } else if (options->unique) {
        MR_TRY(sample_unique(call, table, &words, sampled, &tries, error));
    } else {
        for (int64_t i = 0; i < options->sampled; i++) sampled[i] = sample(options, table, &words);
    }
    float *expected = mr_tensor_floats(&call->outputs[2]), *true_expected = mr_tensor_floats(&call->outputs[1]);
    for (int64_t i = 0; i < options->sampled; i++)
        expected[i] = expected_count(options, probability(options, table, sampled[i]), tries);
    for (int64_t i = 0; i < count; i++)
        true_expected[i] = expected_count(options, probability(options, table, classes[i]), tries);
    if (options->kind == LEARNED) learn(table, classes, count);
    return MR_OK;
}

static mr_status check_trues(mr_kernel_call *call, mr_error *error)
{
    const sampler_options *options = call->prepared;
    const mr_tensor *trues = &call->inputs[0];
    if (trues->shape.rank != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "true_classes must be a matrix");
    if (trues->shape.dims[1] != options->trues)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "true_classes must have num_true columns, expected: %" PRId64 " was: %" PRId64,
                              trues->shape.dims[1], options->trues);
    if (options->unique && options->sampled > options->range)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Sampler's range is too small.");
    const int64_t *classes = trues->data;
    for (int64_t i = 0; i < mr_tensor_count(trues); i++)
        if (classes[i] < 0 || classes[i] >= options->range)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "`true_candidate` out of range [0, %" PRId64 "), received %" PRId64, options->range,
                                  classes[i]);
    return MR_OK;
}

/* The node's table, built in the first run. */
static mr_status get_table(const mr_kernel_node *node, const sampler_options *options, void **table, mr_error *error)
{
    if (*table || (options->kind != LEARNED && options->kind != FIXED)) return MR_OK;
    if (options->kind == FIXED) return fixed_table(node, options->range, (sampler_table **)table, error);
    *table = learned_table(options->range);
    return *table ? MR_OK : mr_fail_memory(error, (size_t)options->range * 2 * sizeof(int32_t));
}

static mr_status candidate_sampler(mr_kernel_call *call, mr_error *error)
{
    const sampler_options *options = call->prepared;
    mr_node_memory *memory = call->state;
    MR_TRY(check_trues(call, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(options->sampled), error));
    MR_TRY(mr_kernel_output(call, 1, call->inputs[0].shape, error));
    MR_TRY(mr_kernel_output(call, 2, MR_SHAPE(options->sampled), error));
    void *own = nullptr;
    if (memory) pthread_mutex_lock(&memory->mutex);
    void **table = memory ? &memory->data : &own;
    mr_status status = get_table(call->node, options, table, error);
    if (status == MR_OK) status = run_sampler(call, *table, error);
    if (memory) pthread_mutex_unlock(&memory->mutex);
    free(own);
    return status;
}

static mr_status prepare_sampler(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    sampler_options *options = prepared;
    options->kind = strcmp(node->op, "UniformCandidateSampler") == 0        ? UNIFORM
                    : strcmp(node->op, "LogUniformCandidateSampler") == 0   ? LOG_UNIFORM
                    : strcmp(node->op, "AllCandidateSampler") == 0          ? ALL
                    : strcmp(node->op, "FixedUnigramCandidateSampler") == 0 ? FIXED
                                                                            : LEARNED;
    MR_TRY(mr_attr_get_int(node->attrs, "num_sampled", &options->sampled, error));
    MR_TRY(mr_attr_get_int(node->attrs, "num_true", &options->trues, error));
    MR_TRY(mr_attr_get_bool(node->attrs, "unique", &options->unique, error));
    options->range = mr_attr_int_or(node->attrs, "range_max", options->sampled);
    options->seed = (uint64_t)mr_attr_int_or(node->attrs, "seed", 0);
    options->seed2 = (uint64_t)mr_attr_int_or(node->attrs, "seed2", 0);
    if (options->range <= 0) return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "range_max must be positive");
    if (options->sampled > INT32_MAX)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "num_sampled must be less than 2147483648");
    if ((options->kind == LEARNED || options->kind == FIXED) && options->range >= INT32_MAX)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                              "range_max must be less than 2147483647 for unigram samplers, got %" PRId64,
                              options->range);
    return MR_OK;
}

/* ---- ComputeAccidentalHits ---- */

static mr_status put_hits(mr_kernel_call *call, const int_map *places, mr_error *error)
{
    const mr_tensor *trues = &call->inputs[0];
    const int64_t *classes = trues->data;
    int64_t count = mr_tensor_count(trues), columns = trues->shape.dims[1], hits = 0;
    for (int64_t i = 0; i < count; i++) hits += places->places[map_slot(places, classes[i])] != 0;
    for (int i = 0; i < 3; i++) MR_TRY(mr_kernel_output(call, i, MR_SHAPE(hits), error));
    for (int64_t i = 0, at = 0; i < count; i++) {
        int64_t place = places->places[map_slot(places, classes[i])];
        if (place == 0) continue;
        ((int32_t *)call->outputs[0].data)[at] = (int32_t)(i / columns);
        ((int64_t *)call->outputs[1].data)[at] = place - 1;
        mr_tensor_floats(&call->outputs[2])[at++] = -FLT_MAX;
    }
    return MR_OK;
}

static mr_status compute_accidental_hits(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *trues = &call->inputs[0], *sampled = &call->inputs[1];
    if (trues->shape.rank != 2 || trues->shape.dims[1] != mr_attr_int_or(call->node->attrs, "num_true", 0))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "true_candidates must be a batch_size * num_true matrix");
    if (sampled->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "sampled_candidates must be a vector, which is typically an output from "
                              "CandidateSampler");
    int_map places;
    const int64_t *classes = sampled->data;
    MR_TRY(map_init(&places, sampled->shape.dims[0], error));
    for (int64_t i = 0; i < sampled->shape.dims[0]; i++) {
        uint64_t slot = map_slot(&places, classes[i]);
        places.keys[slot] = classes[i];
        places.places[slot] = i + 1;
    }
    mr_status status = put_hits(call, &places, error);
    free(places.keys);
    return status;
}

#define SAMPLER(operator)                                                                                              \
    {.op = operator,                                                                                                   \
     .run = candidate_sampler,                                                                                         \
     .prepared_size_bytes = sizeof(sampler_options),                                                                   \
     .prepare = prepare_sampler}

static const mr_kernel kernels[] = {
    SAMPLER("UniformCandidateSampler"),
    SAMPLER("LogUniformCandidateSampler"),
    SAMPLER("LearnedUnigramCandidateSampler"),
    SAMPLER("ThreadUnsafeUnigramCandidateSampler"),
    SAMPLER("FixedUnigramCandidateSampler"),
    SAMPLER("AllCandidateSampler"),
    {.op = "ComputeAccidentalHits", .run = compute_accidental_hits},
};
const mr_kernel_table mr_state_kernels_candidate = {kernels, sizeof kernels / sizeof kernels[0]};
