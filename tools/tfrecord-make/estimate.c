/* How large records will be when pictures are changed: a few pictures are changed, and the ratio is taken. Which they are follows
 * from their names, and what becomes of them is the same everywhere; so every machine makes the same plan. */
#include "tools/tfrecord-make/make.h"

#include "base/arena.h"

#include <stdatomic.h>
#include <stdlib.h>

static constexpr int SAMPLES = 48;

typedef struct sample {
    const row *row;
    uint64_t before, after; /* bytes; 0: it cannot be used */
} sample;

typedef struct sampling {
    const options *options;
    const source *source;
    sample samples[SAMPLES];
    int count;
    atomic_bool is_out_of_memory;
} sampling;

/* The rows of the smallest hashes, largest first. */
static void choose(sampling *sampling)
{
    for (int64_t i = 0; i < sampling->source->row_count; i++) {
        if (source_is_excluded(sampling->source, i)) continue;
        const row *row = &sampling->source->rows[i];
        sample *samples = sampling->samples;
        if (sampling->count == SAMPLES && row->hash >= samples[0].row->hash) continue;
        int at = 0;
        if (sampling->count < SAMPLES) {
            for (at = sampling->count++; at > 0 && samples[at - 1].row->hash < row->hash; at--)
                samples[at] = samples[at - 1];
        } else {
            for (; at + 1 < SAMPLES && samples[at + 1].row->hash > row->hash; at++) samples[at] = samples[at + 1];
        }
        samples[at] = (sample){.row = row};
    }
}

static void treat_some(void *context, int64_t begin, int64_t end)
{
    sampling *sampling = context;
    source_bytes bytes = {0};
    picture picture = {0};
    for (int64_t i = begin; i < end; i++) {
        sample *sample = &sampling->samples[i];
        bool has_picture = false;
        mr_status status = source_picture(sampling->source, sample->row, &bytes, &has_picture, nullptr);
        mr_string stored = {bytes.data, bytes.size_bytes};
        if (status == MR_OK && has_picture)
            status = picture_treat(&sampling->options->treatment, sample->row->name, stored, &picture, nullptr);
        /* Images that cannot be used are left out; without memory the plan would be another one. */
        if (status == MR_RESOURCE_EXHAUSTED) atomic_store(&sampling->is_out_of_memory, true);
        if (status != MR_OK || !has_picture) continue;
        sample->before = bytes.size_bytes;
        sample->after = picture.facts.encoded.size_bytes;
    }
    picture_deinit(&picture);
    free(bytes.data);
}

mr_status estimate_shard_bytes(const options *options, const source *source, mr_pool *pool, uint64_t *shard_bytes,
                               mr_error *error)
{
    const treatment *treatment = &options->treatment;
    bool is_changed = treatment->shorter_side > 0 || treatment->encode_all || treatment->encoding != ENCODE_KEEP;
    *shard_bytes = options->shard_bytes;
    if (!is_changed || !source->has_pictures || options->shards > 0) return MR_OK;
    sampling sampling = {.options = options, .source = source};
    choose(&sampling);
    mr_pool_for(pool, sampling.count, 1, treat_some, &sampling);
    uint64_t before = 0, after = 0;
    for (int i = 0; i < sampling.count; i++) {
        before += sampling.samples[i].before;
        after += sampling.samples[i].after;
    }
    if (atomic_load(&sampling.is_out_of_memory))
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory to estimate the size of records");
    if (after == 0) return MR_OK;
    long double bytes = (long double)options->shard_bytes * before / after;
    if (bytes < 1) bytes = 1;
    *shard_bytes = bytes > (long double)(UINT64_MAX >> 8) ? UINT64_MAX >> 8 : (uint64_t)bytes;
    return MR_OK;
}
