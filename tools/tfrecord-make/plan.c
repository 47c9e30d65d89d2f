/* The plan: assigns rows to splits, shards and positions. It does not depend on the number of threads or on the order
 * in which the system lists files, so the same directory always gives the same files.
 *
 * splits.c chooses the split of a row. The order in a split is that of a hash of seed and path. */
#include "tfrecord-make/make.h"

#include "common/arena.h"
#include "common/shard_name.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Part of a shard's fingerprint: another version of this program may write other bytes. */
static constexpr uint64_t FORMAT_VERSION = 3;
static constexpr int64_t SHARDS_MAX = 99'999;

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 32) * 0xd6e8feb86659fd93;
    value = (value ^ value >> 32) * 0xd6e8feb86659fd93;
    return value ^ value >> 32;
}

uint64_t plan_hash(uint64_t hash, const void *bytes, size_t size_bytes)
{
    const unsigned char *next = bytes;
    hash = mix(hash + 0x9e3779b97f4a7c15 + size_bytes);
    for (size_t i = 0; i < size_bytes; i += 8) {
        uint64_t word = 0;
        for (size_t j = i; j < i + 8 && j < size_bytes; j++) word |= (uint64_t)next[j] << 8 * (j - i);
        hash = mix(hash ^ word) + 0x9e3779b97f4a7c15;
    }
    return mix(hash);
}

uint64_t plan_position_of(const options *options, const row *row)
{
    uint64_t words[2] = {options->seed, row->hash};
    return plan_hash(1, words, sizeof(words));
}

/* The sort key of a row. */
typedef struct key {
    int32_t split;
    uint64_t position;
    int64_t row;
} key;

static int compare_keys(const void *a, const void *b)
{
    const key *x = a, *y = b;
    if (x->split != y->split) return x->split < y->split ? -1 : 1;
    if (x->position != y->position) return x->position < y->position ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static mr_status make_order(const options *options, const source *source, const uint8_t *splits, const bool *dropped,
                            plan *plan, mr_error *error)
{
    size_t count = (size_t)source->row_count;
    key *keys = malloc((count + 1) * sizeof(key));
    plan->order = malloc((count + 1) * sizeof(int64_t));
    if (!keys || !plan->order) {
        free(keys);
        return fail_memory(error, count * sizeof(key));
    }
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const row *row = &source->rows[i];
        if ((dropped && dropped[i]) || source_is_excluded(source, (int64_t)i)) continue;
        assert(splits[i] < options->split_count);
        keys[kept] = (key){splits[i], plan_position_of(options, row), (int64_t)i};
        plan->split_counts[keys[kept].split]++;
        kept++;
    }
    qsort(keys, kept, sizeof(key), compare_keys);
    for (size_t i = 0; i < kept; i++) plan->order[i] = keys[i].row;
    plan->row_count = (int64_t)kept;
    free(keys);
    return MR_OK;
}

/* Hashes the options that affect a record's bytes. */
static uint64_t hash_options(const options *options, const source *source, uint64_t seed)
{
    const treatment *treatment = &options->treatment;
    uint64_t words[] = {FORMAT_VERSION,
                        seed,
                        source->facts_hash,
                        treatment->check,
                        treatment->upright,
                        treatment->crop_ready,
                        (uint64_t)treatment->shorter_side,
                        (uint64_t)treatment->quality,
                        treatment->encode_all,
                        treatment->encoding,
                        options->compression};
    return plan_hash(2, words, sizeof(words));
}

/* Hashes everything that determines the bytes of a shard. File sizes and times stand for the bytes of the images. */
static void take_fingerprint(const options *options, const source *source, plan *plan, shard *shard)
{
    uint64_t hash[2] = {hash_options(options, source, 0), hash_options(options, source, 1)};
    uint64_t plan_words[3] = {plan->hash, (uint64_t)shard->count, hash[0]};
    plan->hash = plan_hash(plan_hash(3, plan_words, sizeof(plan_words)), shard->name, strlen(shard->name));
    for (int64_t j = shard->begin; j < shard->begin + shard->count; j++) {
        const row *row = &source->rows[plan->order[j]];
        uint64_t words[4] = {row->hash, row->facts_hash, row->size_bytes, (uint64_t)row->modified_ns};
        hash[0] = plan_hash(hash[0], words, sizeof(words));
        hash[1] = plan_hash(hash[1], words, sizeof(words));
        plan->hash = plan_hash(plan->hash, words, 3 * sizeof(words[0]));
        shard->size_bytes += row->size_bytes;
    }
    shard->fingerprint[0] = hash[0];
    shard->fingerprint[1] = hash[1];
}

/* The division of a split's rows into shards. */
typedef struct cut {
    const options *options;
    const source *source;
    const plan *plan;
    const record_size *size;
    int64_t begin, count; /* range of the split in plan.order */
    int64_t shards;
    uint64_t limit; /* maximum bytes of a shard, unless the options specify the number of shards */
} cut;

/* The end of a shard that starts at a row: before the row that would exceed the limit. A row that alone exceeds it
 * is a shard by itself. */
static int64_t fill_shard(const cut *cut, int64_t begin, uint64_t limit)
{
    uint64_t bytes = 0;
    int64_t end = begin;
    for (; end < cut->begin + cut->count; end++) {
        bytes += estimate_record(cut->size, cut->source, &cut->source->rows[cut->plan->order[end]]);
        if (bytes > limit && end > begin) break;
    }
    return end;
}

/* The number of shards for a limit, at most most + 1. */
static int64_t count_shards(const cut *cut, uint64_t limit, int64_t most)
{
    int64_t shards = 0;
    for (int64_t begin = cut->begin; begin < cut->begin + cut->count && shards <= most; shards++)
        begin = fill_shard(cut, begin, limit);
    return shards;
}

/* Chooses the fewest shards within the limit, of about equal size: finds approximately the smallest limit that gives
 * no more shards. */
static mr_status set_shards(cut *cut, mr_error *error)
{
    if (cut->count == 0) return MR_OK;
    if (cut->options->shards > 0) {
        cut->shards = cut->options->shards;
        return MR_OK;
    }
    /* Compressed streams of incompressible data are slightly larger than the data. */
    uint64_t high = cut->options->shard_bytes;
    if (cut->options->compression != COMPRESS_NONE) high -= high / 128;
    cut->shards = count_shards(cut, high, SHARDS_MAX);
    if (cut->shards > SHARDS_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "--shard-size is too small: it would give more than %" PRId64 " files", SHARDS_MAX);
    uint64_t low = high / 2, step = high / 256 + 1;
    while (high - low > step && cut->shards > 1) {
        uint64_t middle = low + (high - low) / 2;
        *(count_shards(cut, middle, cut->shards) > cut->shards ? &low : &high) = middle;
    }
    cut->limit = high;
    return MR_OK;
}

/* The end of shard j: by count if the number of files was specified, otherwise by bytes. */
static int64_t end_of_shard(const cut *cut, int64_t begin, int64_t j)
{
    if (cut->options->shards > 0) return cut->begin + cut->count * (j + 1) / cut->shards;
    return fill_shard(cut, begin, cut->limit);
}

static mr_status plan_split(const cut *cut, plan *plan, int split, shard *shard, mr_error *error)
{
    const options *options = cut->options;
    int64_t begin = cut->begin;
    for (int64_t j = 0; j < cut->shards; j++, shard++) {
        int64_t end = end_of_shard(cut, begin, j);
        assert(end >= begin && end <= cut->begin + cut->count);
        assert(j + 1 < cut->shards || end == cut->begin + cut->count);
        shard->split = split;
        shard->begin = begin;
        shard->count = end - begin;
        begin = end;
        char *stem = nullptr;
        if (asprintf(&stem, "%s/%s-%s", options->out, options->name, options->splits[split].name) < 0)
            return fail_memory(error, strlen(options->out));
        shard->path = shard_name(mr_string_from(stem), (uint64_t)j, (uint64_t)cut->shards, ".tfrecord");
        free(stem);
        if (!shard->path) return fail_memory(error, strlen(options->out));
        shard->name = shard->path + strlen(options->out) + 1;
        take_fingerprint(options, cut->source, plan, shard);
    }
    return MR_OK;
}

mr_status plan_make(const options *options, const source *source, const uint8_t *splits, const bool *dropped,
                    const record_size *size, plan *plan, mr_error *error)
{
    cut cuts[SPLITS_MAX];
    int64_t begin = 0;
    *plan = (struct plan){0};
    MR_TRY(make_order(options, source, splits, dropped, plan, error));
    for (int i = 0; i < options->split_count; i++) {
        cuts[i] = (cut){options, source, plan, size, .begin = begin, .count = plan->split_counts[i]};
        MR_TRY(set_shards(&cuts[i], error));
        plan->split_shards[i] = (int32_t)cuts[i].shards;
        plan->shard_count += plan->split_shards[i];
        begin += cuts[i].count;
    }
    assert(begin == plan->row_count);
    plan->shards = calloc((size_t)plan->shard_count + 1, sizeof(shard));
    if (!plan->shards) return fail_memory(error, (size_t)plan->shard_count * sizeof(shard));
    shard *shard = plan->shards;
    for (int i = 0; i < options->split_count; shard += plan->split_shards[i++])
        MR_TRY(plan_split(&cuts[i], plan, i, shard, error));
    return MR_OK;
}

static int compare_sizes(const void *a, const void *b)
{
    const shard *const *x = a, *const *y = b;
    if ((*x)->size_bytes != (*y)->size_bytes) return (*x)->size_bytes > (*y)->size_bytes ? -1 : 1;
    return (*x > *y) - (*x < *y);
}

mr_status plan_share(plan *plan, int32_t worker_count, mr_error *error)
{
    size_t count = (size_t)plan->shard_count;
    shard **sorted = malloc((count + 1) * sizeof(shard *));
    uint64_t *loads = calloc((size_t)worker_count, sizeof(uint64_t));
    mr_status status = sorted && loads ? MR_OK : fail_memory(error, count * sizeof(shard *));
    for (size_t i = 0; status == MR_OK && i < count; i++) sorted[i] = &plan->shards[i];
    if (status == MR_OK) qsort(sorted, count, sizeof(shard *), compare_sizes);
    for (size_t i = 0; status == MR_OK && i < count; i++) {
        int32_t least = 0;
        for (int32_t j = 1; j < worker_count; j++)
            if (loads[j] < loads[least]) least = j;
        assert(loads[least] <= loads[worker_count - 1]);
        sorted[i]->worker = least + 1;
        loads[least] += sorted[i]->size_bytes + 1; /* empty shards are distributed too */
    }
    free(sorted);
    free(loads);
    return status;
}

void plan_deinit(plan *plan)
{
    for (int32_t i = 0; plan->shards && i < plan->shard_count; i++) free(plan->shards[i].path);
    free(plan->shards);
    free(plan->order);
    *plan = (struct plan){0};
}
