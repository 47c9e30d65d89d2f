/* Size estimates for --shard-size. A few records are encoded, and their overhead over the stored bytes is assumed
 * for all. The sample is chosen by the hashes of names and its encoding is the same everywhere, so every machine
 * computes the same plan. */
#include "tfrecord-make/make.h"

#include "common/arena.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static constexpr int SAMPLES = 48;
/* Size of the frame of a record in its file: length and checksums. */
static constexpr uint64_t FRAME_BYTES = 16;
/* The fixed overhead of a record is rounded up to a multiple of this: greater lengths are encoded with more bytes. */
static constexpr uint64_t FIXED_STEP = 32;
static constexpr uint64_t RECORD_BYTES_MAX = (uint64_t)1 << 50;

typedef struct sample {
    const row *row;
    uint64_t before, after,
        record; /* in bytes: the stored image, the image in the record, the record. 0: the row cannot be used */
} sample;

typedef struct sampling {
    const options *options;
    const source *source;
    treatment treatment;
    sample samples[SAMPLES];
    int count;
    atomic_bool is_out_of_memory;
} sampling;

/* Chooses the rows with the smallest hashes, largest first. */
static void choose(sampling *sampling)
{
    for (int64_t i = 0; i < sampling->source->row_count; i++) {
        const row *row = &sampling->source->rows[i];
        if (source_is_excluded(sampling->source, i) || row->is_faulty) continue;
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

/* Working memory of one thread. */
typedef struct workbench {
    source_bytes bytes;
    image image;
    mr_example_encoder encoder;
} workbench;

static mr_status make_one(const sampling *sampling, sample *sample, workbench *bench)
{
    bool has_image = false;
    mr_string record;
    const source *source = sampling->source;
    MR_TRY(source_image(source, sample->row, &bench->bytes, &has_image, nullptr));
    mr_string stored = {bench->bytes.data, bench->bytes.size_bytes};
    if (has_image) MR_TRY(image_treat(&sampling->treatment, sample->row->name, stored, &bench->image, nullptr));
    mr_status status =
        source_add_features(source, sample->row, has_image ? &bench->image.facts : nullptr, &bench->encoder, nullptr);
    mr_status finished = mr_example_finish(&bench->encoder, &record, nullptr);
    if (status != MR_OK || finished != MR_OK) return status != MR_OK ? status : finished;
    sample->before = has_image ? stored.size_bytes : 0;
    sample->after = has_image ? bench->image.facts.encoded.size_bytes : 0;
    sample->record = record.size_bytes + FRAME_BYTES;
    return MR_OK;
}

static void make_some(void *context, int64_t begin, int64_t end)
{
    sampling *sampling = context;
    workbench bench = {0};
    for (int64_t i = begin; i < end; i++)
        /* Images that cannot be used are ignored. Running out of memory must not be: it would change the plan. */
        if (make_one(sampling, &sampling->samples[i], &bench) == MR_RESOURCE_EXHAUSTED)
            atomic_store(&sampling->is_out_of_memory, true);
    image_deinit(&bench.image);
    free(bench.bytes.data);
    mr_example_encoder_deinit(&bench.encoder);
}

uint64_t estimate_record(const record_size *size, const source *source, const row *row)
{
    const char *class = row->label >= 0 && row->label < source->class_count ? source->classes[row->label] : nullptr;
    unsigned __int128 stored = (unsigned __int128)row->size_bytes * size->after / size->before;
    uint64_t texts = strlen(row->name) + (class ? strlen(class) : 0);
    return stored < RECORD_BYTES_MAX ? (uint64_t)stored + texts + size->fixed : RECORD_BYTES_MAX;
}

mr_status estimate_records(const options *options, const source *source, pool *pool, record_size *size, mr_error *error)
{
    *size = (record_size){1, 1, 0};
    if (options->shards > 0) return MR_OK;
    sampling sampling = {.options = options, .source = source, .treatment = options->treatment};
    sampling.treatment.check = false; /* the header contains the size */
    choose(&sampling);
    pool_for(pool, sampling.count, 1, make_some, &sampling);
    if (atomic_load(&sampling.is_out_of_memory))
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory while estimating the size of records");
    uint64_t before = 0, after = 0;
    for (int i = 0; i < sampling.count; i++) {
        before += sampling.samples[i].before;
        after += sampling.samples[i].after;
    }
    if (before > 0 && after > 0) *size = (record_size){before, after, 0};
    for (int i = 0; i < sampling.count; i++) {
        const sample *sample = &sampling.samples[i];
        uint64_t plain = estimate_record(&(record_size){size->before, size->after, 0}, source, sample->row);
        if (sample->record > plain && sample->record - plain > size->fixed) size->fixed = sample->record - plain;
    }
    size->fixed = (size->fixed / FIXED_STEP + 1) * FIXED_STEP;
    return MR_OK;
}
