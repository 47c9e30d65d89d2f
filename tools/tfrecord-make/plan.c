/* The plan: which picture goes where. Nothing in it depends on what is in the pictures, on the number of threads, or on
 * the order in which the system lists files, so the same folder always gives the same files.
 *
 * The part (train, validation) follows from a hash of the path alone: a picture never moves from training to validation
 * because others came. The order in a part is that of a hash of seed and path. */
#include "tools/tfrecord-make/make.h"

#include "base/arena.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counts as part of what a shard was made of: another version of this program may write other bytes. */
static constexpr uint64_t FORMAT_VERSION = 1;

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

static int32_t split_of(const options *options, const picture *picture)
{
    double place = (double)(picture->hash >> 11) * 0x1p-53, end = 0;
    for (int i = 0; i < options->split_count; i++) {
        end += options->splits[i].fraction;
        if (place < end) return i;
    }
    return options->split_count - 1;
}

/* What a picture is sorted by. */
typedef struct key {
    int32_t split;
    uint64_t place;
    int64_t picture;
} key;

static int compare_keys(const void *a, const void *b)
{
    const key *x = a, *y = b;
    if (x->split != y->split) return x->split < y->split ? -1 : 1;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    return (x->picture > y->picture) - (x->picture < y->picture);
}

static mr_status make_order(const options *options, const listing *listing, plan *plan, mr_error *error)
{
    size_t count = (size_t)listing->picture_count;
    key *keys = malloc(count * sizeof(key));
    plan->order = malloc(count * sizeof(int64_t));
    if (!keys || !plan->order) {
        free(keys);
        return mr_fail_memory(error, count * sizeof(key));
    }
    for (size_t i = 0; i < count; i++) {
        const picture *picture = &listing->pictures[i];
        uint64_t words[2] = {options->seed, picture->hash};
        keys[i] = (key){split_of(options, picture), plan_hash(1, words, sizeof(words)), (int64_t)i};
        plan->split_counts[keys[i].split]++;
        plan->split_bytes[keys[i].split] += picture->size_bytes;
    }
    qsort(keys, count, sizeof(key), compare_keys);
    for (size_t i = 0; i < count; i++) plan->order[i] = keys[i].picture;
    free(keys);
    return MR_OK;
}

/* Everything that the bytes of a shard follow from, but the pictures' own bytes: for these stand size and time. */
static void take_fingerprint(const options *options, const listing *listing, const plan *plan, shard *shard)
{
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t head[4] = {FORMAT_VERSION, i, options->check, (uint64_t)shard->count};
        uint64_t hash = plan_hash(2, head, sizeof(head));
        for (int64_t j = shard->begin; j < shard->begin + shard->count; j++) {
            const picture *picture = &listing->pictures[plan->order[j]];
            const char *class_name = listing->classes[picture->label];
            uint64_t words[3] = {picture->size_bytes, (uint64_t)picture->modified_ns, (uint64_t)picture->label};
            hash = plan_hash(hash, picture->path, strlen(picture->path));
            hash = plan_hash(hash, class_name, strlen(class_name));
            hash = plan_hash(hash, words, sizeof(words));
        }
        shard->fingerprint[i] = hash;
    }
}

mr_status plan_make(const options *options, const listing *listing, plan *plan, mr_error *error)
{
    *plan = (struct plan){0};
    MR_TRY(make_order(options, listing, plan, error));
    for (int i = 0; i < options->split_count; i++) {
        uint64_t shards = (plan->split_bytes[i] + options->shard_bytes - 1) / options->shard_bytes;
        if (options->shards > 0) shards = (uint64_t)options->shards;
        if (shards > (uint64_t)plan->split_counts[i] && options->shards == 0) shards = (uint64_t)plan->split_counts[i];
        if (plan->split_counts[i] == 0) shards = 0;
        if (shards > 99'999) shards = 99'999;
        plan->split_shards[i] = (int32_t)shards;
        plan->shard_count += (int32_t)shards;
    }
    plan->shards = calloc((size_t)plan->shard_count + 1, sizeof(shard));
    if (!plan->shards) return mr_fail_memory(error, (size_t)plan->shard_count * sizeof(shard));
    shard *shard = plan->shards;
    int64_t begin = 0;
    for (int i = 0; i < options->split_count; i++) {
        int64_t count = plan->split_counts[i], shards = plan->split_shards[i];
        for (int64_t j = 0; j < shards; j++, shard++) {
            shard->split = i;
            shard->begin = begin + count * j / shards;
            shard->count = begin + count * (j + 1) / shards - shard->begin;
            if (asprintf(&shard->path, "%s/%s-%s-%05lld-of-%05lld.tfrecord", options->out, options->name,
                         options->splits[i].name, (long long)j, (long long)shards) < 0) {
                shard->path = nullptr;
                return mr_fail_memory(error, strlen(options->out));
            }
            shard->name = shard->path + strlen(options->out) + 1;
            take_fingerprint(options, listing, plan, shard);
        }
        begin += count;
    }
    assert(begin == listing->picture_count);
    return MR_OK;
}

void plan_deinit(plan *plan)
{
    for (int32_t i = 0; plan->shards && i < plan->shard_count; i++) free(plan->shards[i].path);
    free(plan->shards);
    free(plan->order);
    *plan = (struct plan){0};
}
