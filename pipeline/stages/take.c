/* take, skip and shard: subsets of the input by position. */
#include "pipeline/pipeline.h"

#include <assert.h>

typedef struct part_settings {
    int64_t count;
    int64_t index; /* of shard */
} part_settings;

static const part_settings *settings_of(const mr_stage *stage)
{
    return stage->dataset->settings;
}

static uint64_t part_digest(const mr_dataset *dataset)
{
    const part_settings *s = dataset->settings;
    return mr_digest((uint64_t)s->count, (uint64_t)s->index);
}

/* begin, for the input too. */
static mr_status part_begin(mr_stage *stage, uint64_t iteration, mr_error *error)
{
    assert(stage->input != nullptr);
    (void)mr_stage_begin_simple(stage, iteration, nullptr);
    return mr_stage_begin(stage->input, iteration, error);
}

static mr_status take_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    int64_t count = settings_of(stage)->count;
    if (count >= 0 && stage->position >= (uint64_t)count) return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
    return mr_order_pull(stage, item, error);
}

static mr_status take_seek(mr_stage *stage, uint64_t position, mr_error *error)
{
    int64_t count = settings_of(stage)->count;
    assert(count >= -1);
    if (count >= 0 && position > (uint64_t)count) position = (uint64_t)count;
    MR_TRY(mr_stage_seek(stage->input, position, error));
    stage->position = position;
    return MR_OK;
}

/* The input's position is greater than skip's by its count. */
static mr_status skip_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    int64_t count = settings_of(stage)->count;
    /* Several skips of an infinite input may exceed all positions. */
    if (count < 0 || stage->position > MR_POSITION_MAX - (uint64_t)count)
        return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
    MR_TRY(mr_stage_seek(stage->input, stage->position + (uint64_t)count, error));
    return mr_order_pull(stage, item, error);
}

static mr_status shard_next(mr_stage *stage, mr_item *item, mr_error *error)
{
    const part_settings *s = settings_of(stage);
    assert(s->count >= 1 && s->index >= 0 && s->index < s->count);
    uint64_t at = 0;
    if (__builtin_mul_overflow(stage->position, (uint64_t)s->count, &at) ||
        __builtin_add_overflow(at, (uint64_t)s->index, &at) || at > MR_POSITION_MAX)
        return mr_fail(error, MR_OUT_OF_RANGE, "end of sequence");
    MR_TRY(mr_stage_seek(stage->input, at, error));
    return mr_order_pull(stage, item, error);
}

static const mr_stage_functions take_functions = {.begin = part_begin, .next = take_next, .seek = take_seek};
static const mr_stage_functions skip_functions = {.begin = part_begin, .next = skip_next, .seek = mr_stage_seek_simple};
static const mr_stage_functions shard_functions = {
    .begin = part_begin, .next = shard_next, .seek = mr_stage_seek_simple};

static const mr_dataset_kind take_kind = {.name = "take",
                                          .role = MR_ROLE_ORDER,
                                          .digest = part_digest,
                                          .stage_size_bytes = sizeof(mr_stage),
                                          .functions = &take_functions};
static const mr_dataset_kind skip_kind = {.name = "skip",
                                          .role = MR_ROLE_ORDER,
                                          .digest = part_digest,
                                          .stage_size_bytes = sizeof(mr_stage),
                                          .functions = &skip_functions};
static const mr_dataset_kind shard_kind = {.name = "shard",
                                           .role = MR_ROLE_ORDER,
                                           .digest = part_digest,
                                           .stage_size_bytes = sizeof(mr_stage),
                                           .functions = &shard_functions};

mr_dataset *mr_dataset_take(mr_dataset *input, int64_t count)
{
    mr_dataset *dataset = mr_dataset_new(&take_kind, input, sizeof(part_settings));
    if (mr_dataset_failed(dataset)) return dataset;
    if (count < 0) count = -1;
    ((part_settings *)dataset->settings)->count = count;
    if (count == 0)
        dataset->count = 0;
    else if (count > 0 && (input->count == MR_INFINITE || input->count > count))
        dataset->count = count;
    return dataset;
}

mr_dataset *mr_dataset_skip(mr_dataset *input, int64_t count)
{
    mr_dataset *dataset = mr_dataset_new(&skip_kind, input, sizeof(part_settings));
    if (mr_dataset_failed(dataset)) return dataset;
    if (count < 0) count = -1;
    /* Larger counts have the same effect; the limit keeps sums of positions in range. */
    if (count > (int64_t)MR_POSITION_MAX) count = (int64_t)MR_POSITION_MAX;
    ((part_settings *)dataset->settings)->count = count;
    if (count < 0)
        dataset->count = 0;
    else if (input->count >= 0)
        dataset->count = input->count > count ? input->count - count : 0;
    return dataset;
}

mr_dataset *mr_dataset_shard(mr_dataset *input, int64_t count, int64_t index)
{
    mr_dataset *dataset = mr_dataset_new(&shard_kind, input, sizeof(part_settings));
    if (mr_dataset_failed(dataset)) return dataset;
    if (count < 1 || index < 0 || index >= count)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "shard: index %lld of %lld shards", (long long)index,
                               (long long)count);
    *(part_settings *)dataset->settings = (part_settings){count, index};
    if (input->count >= 0) dataset->count = input->count > index ? (input->count - index - 1) / count + 1 : 0;
    return dataset;
}
