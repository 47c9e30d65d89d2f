/* Replay logs: checkpoints, and the number of elements held between them (replay_log.h). */
#include "pipeline/replay_log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void drop_checkpoint(mr_replay_log *replay, uint64_t checkpoint)
{
    assert(checkpoint < replay->capacity && replay->bytes >= replay->checkpoints[checkpoint].state.capacity_bytes);
    replay->bytes -= replay->checkpoints[checkpoint].state.capacity_bytes;
    mr_state_deinit(&replay->checkpoints[checkpoint].state);
}

void mr_replay_log_clear(mr_replay_log *replay)
{
    for (uint64_t i = 0; i < replay->count; i++) drop_checkpoint(replay, i);
    replay->count = 0;
    mr_stage_keep_unlimited(replay->stage, &replay->budgeted_bytes, replay->bytes);
}

void mr_replay_log_deinit(mr_replay_log *replay)
{
    if (replay->stage != nullptr) mr_replay_log_clear(replay);
    free(replay->checkpoints);
    *replay = (mr_replay_log){0};
}

/* Removes checkpoints without held elements, except the last one, which later elements will use. */
static void drop_checkpoints(mr_replay_log *replay)
{
    assert(replay->count <= replay->capacity);
    uint64_t unused = 0;
    while (unused + 1 < replay->count && replay->checkpoints[unused].retained == 0) drop_checkpoint(replay, unused++);
    if (unused == 0) return;
    replay->count -= unused;
    memmove(replay->checkpoints, replay->checkpoints + unused, replay->count * sizeof *replay->checkpoints);
}

mr_status mr_replay_log_step(mr_replay_log *replay, mr_stage *input, mr_error *error)
{
    constexpr uint64_t INTERVAL_MIN = 16;
    uint64_t interval = replay->interval > INTERVAL_MIN ? replay->interval : INTERVAL_MIN;
    if (replay->count > 0 && input->position < replay->checkpoints[replay->count - 1].position + interval) return MR_OK;
    drop_checkpoints(replay);
    if (replay->count == replay->capacity) {
        uint64_t capacity = 2 * replay->capacity + 8;
        mr_replay_checkpoint *checkpoints = realloc(replay->checkpoints, capacity * sizeof *checkpoints);
        if (checkpoints == nullptr) return mr_fail_memory(error, capacity * sizeof *checkpoints);
        replay->checkpoints = checkpoints;
        replay->bytes += (capacity - replay->capacity) * sizeof *checkpoints;
        replay->capacity = capacity;
    }
    mr_replay_checkpoint *checkpoint = &replay->checkpoints[replay->count];
    assert(replay->count < replay->capacity);
    assert(replay->count == 0 || replay->checkpoints[replay->count - 1].position < input->position);
    *checkpoint = (mr_replay_checkpoint){.position = input->position};
    mr_status status = mr_stage_save(input, &checkpoint->state, error);
    replay->bytes += checkpoint->state.capacity_bytes;
    if (status == MR_OK)
        replay->count++;
    else
        drop_checkpoint(replay, replay->count);
    mr_stage_keep_unlimited(replay->stage, &replay->budgeted_bytes, replay->bytes);
    return status;
}

static mr_replay_checkpoint *checkpoint_of(const mr_replay_log *replay, uint64_t origin)
{
    uint64_t low = 0, high = replay->count;
    assert(replay->count > 0 && replay->count <= replay->capacity && replay->checkpoints[0].position <= origin);
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (replay->checkpoints[middle].position <= origin)
            low = middle;
        else
            high = middle;
    }
    return &replay->checkpoints[low];
}

void mr_replay_log_retain(mr_replay_log *replay, uint64_t origin)
{
    checkpoint_of(replay, origin)->retained++;
}

void mr_replay_log_release(mr_replay_log *replay, uint64_t origin)
{
    mr_replay_checkpoint *checkpoint = checkpoint_of(replay, origin);
    assert(checkpoint->retained > 0);
    checkpoint->retained--;
}

mr_status mr_replay_log_save(mr_replay_log *replay, mr_stage *input, mr_state *state, uint64_t *base, mr_error *error)
{
    drop_checkpoints(replay);
    MR_TRY(mr_state_put(state, replay->count > 0, error));
    *base = input->position;
    if (replay->count == 0) return mr_stage_save(input, state, error);
    const mr_replay_checkpoint *checkpoint = &replay->checkpoints[0];
    assert(checkpoint->position <= input->position);
    *base = checkpoint->position;
    MR_TRY(mr_state_put_bytes(state, checkpoint->state.bytes, checkpoint->state.size_bytes, error));
    return mr_state_put(state, input->position - checkpoint->position, error);
}

mr_status mr_replay_log_restore(mr_replay_log *replay, mr_stage *input, mr_state_reader *reader, uint64_t *base,
                                uint64_t *end, mr_error *error)
{
    uint64_t ahead = 0;
    bool has_checkpoint = false;
    const void *bytes = nullptr;
    size_t size_bytes = 0;
    mr_replay_log_clear(replay);
    MR_TRY(mr_state_get_bool(reader, &has_checkpoint, error));
    if (!has_checkpoint) {
        MR_TRY(mr_stage_restore(input, reader, error));
    } else {
        MR_TRY(mr_state_get_bytes(reader, &bytes, &size_bytes, error));
        MR_TRY(mr_state_get_below(reader, MR_POSITION_SAVED_MAX, &ahead, error));
        mr_state_reader checkpoint = {bytes, (const unsigned char *)bytes + size_bytes};
        MR_TRY(mr_stage_restore(input, &checkpoint, error));
    }
    *base = input->position;
    *end = *base + ahead;
    return MR_OK;
}

static int compare_origins(const void *a, const void *b)
{
    uint64_t x = ((const mr_replay_item *)a)->origin, y = ((const mr_replay_item *)b)->origin;
    return x < y ? -1 : x > y;
}

mr_status mr_replay_log_refill(mr_replay_log *replay, mr_stage *input, uint64_t end, mr_replay_item *wanted,
                               uint64_t count, mr_error *error)
{
    uint64_t next = 0;
    assert(input->position <= end);
    if (count > 0) qsort(wanted, count, sizeof *wanted, compare_origins);
    while (input->position < end) {
        uint64_t position = input->position;
        mr_item item = {0};
        if (mr_run_is_cancelled(input->run)) return mr_fail(error, MR_CANCELLED, "the pipeline was cancelled");
        MR_TRY(mr_replay_log_step(replay, input, error));
        mr_status status = mr_stage_next(input, &item, error);
        bool is_over = status == MR_OUT_OF_RANGE || status == MR_CANCELLED || status == MR_RESOURCE_EXHAUSTED;
        if (is_over || input->position == position) return mr_state_found(status, error);
        if (next == count || wanted[next].origin != position) {
            mr_item_deinit(&item);
            continue;
        }
        MR_TRY(status);
        assert(wanted[next].item->payload == nullptr);
        *wanted[next++].item = item;
        mr_replay_log_retain(replay, position);
    }
    return next == count ? MR_OK : mr_state_refuse(error);
}
