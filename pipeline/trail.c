/* Trails: rungs, and the number of elements held between them (trail.h). */
#include "pipeline/trail.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void drop_rung(mr_trail *trail, uint64_t rung)
{
    assert(rung < trail->capacity && trail->bytes >= trail->rungs[rung].place.capacity_bytes);
    trail->bytes -= trail->rungs[rung].place.capacity_bytes;
    mr_state_deinit(&trail->rungs[rung].place);
}

void mr_trail_clear(mr_trail *trail)
{
    for (uint64_t i = 0; i < trail->count; i++) drop_rung(trail, i);
    trail->count = 0;
    mr_stage_must_keep(trail->stage, &trail->told_bytes, trail->bytes);
}

void mr_trail_deinit(mr_trail *trail)
{
    if (trail->stage != nullptr) mr_trail_clear(trail);
    free(trail->rungs);
    *trail = (mr_trail){0};
}

/* Removes rungs without held elements, except the last one, which later elements will use. */
static void drop_rungs(mr_trail *trail)
{
    assert(trail->count <= trail->capacity);
    uint64_t dead = 0;
    while (dead + 1 < trail->count && trail->rungs[dead].held == 0) drop_rung(trail, dead++);
    if (dead == 0) return;
    trail->count -= dead;
    memmove(trail->rungs, trail->rungs + dead, trail->count * sizeof *trail->rungs);
}

mr_status mr_trail_step(mr_trail *trail, mr_stage *input, mr_error *error)
{
    constexpr uint64_t APART_MIN = 16;
    uint64_t apart = trail->apart > APART_MIN ? trail->apart : APART_MIN;
    if (trail->count > 0 && input->position < trail->rungs[trail->count - 1].position + apart) return MR_OK;
    drop_rungs(trail);
    if (trail->count == trail->capacity) {
        uint64_t capacity = 2 * trail->capacity + 8;
        mr_rung *rungs = realloc(trail->rungs, capacity * sizeof *rungs);
        if (rungs == nullptr) return mr_fail_memory(error, capacity * sizeof *rungs);
        trail->rungs = rungs;
        trail->bytes += (capacity - trail->capacity) * sizeof *rungs;
        trail->capacity = capacity;
    }
    mr_rung *rung = &trail->rungs[trail->count];
    assert(trail->count < trail->capacity);
    assert(trail->count == 0 || trail->rungs[trail->count - 1].position < input->position);
    *rung = (mr_rung){.position = input->position};
    mr_status status = mr_stage_save(input, &rung->place, error);
    trail->bytes += rung->place.capacity_bytes;
    if (status == MR_OK)
        trail->count++;
    else
        drop_rung(trail, trail->count);
    mr_stage_must_keep(trail->stage, &trail->told_bytes, trail->bytes);
    return status;
}

static mr_rung *rung_of(const mr_trail *trail, uint64_t origin)
{
    uint64_t low = 0, high = trail->count;
    assert(trail->count > 0 && trail->count <= trail->capacity && trail->rungs[0].position <= origin);
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (trail->rungs[middle].position <= origin)
            low = middle;
        else
            high = middle;
    }
    return &trail->rungs[low];
}

void mr_trail_retain(mr_trail *trail, uint64_t origin)
{
    rung_of(trail, origin)->held++;
}

void mr_trail_drop(mr_trail *trail, uint64_t origin)
{
    mr_rung *rung = rung_of(trail, origin);
    assert(rung->held > 0);
    rung->held--;
}

mr_status mr_trail_save(mr_trail *trail, mr_stage *input, mr_state *place, uint64_t *base, mr_error *error)
{
    drop_rungs(trail);
    MR_TRY(mr_state_put(place, trail->count > 0, error));
    *base = input->position;
    if (trail->count == 0) return mr_stage_save(input, place, error);
    const mr_rung *rung = &trail->rungs[0];
    assert(rung->position <= input->position);
    *base = rung->position;
    MR_TRY(mr_state_put_bytes(place, rung->place.bytes, rung->place.size_bytes, error));
    return mr_state_put(place, input->position - rung->position, error);
}

mr_status mr_trail_restore(mr_trail *trail, mr_stage *input, mr_state_reader *reader, uint64_t *base, uint64_t *end,
                           mr_error *error)
{
    uint64_t ahead = 0;
    bool has_rung = false;
    const void *bytes = nullptr;
    size_t size_bytes = 0;
    mr_trail_clear(trail);
    MR_TRY(mr_state_get_bool(reader, &has_rung, error));
    if (!has_rung) {
        MR_TRY(mr_stage_restore(input, reader, error));
    } else {
        MR_TRY(mr_state_get_bytes(reader, &bytes, &size_bytes, error));
        MR_TRY(mr_state_get_below(reader, MR_POSITION_SAVED_MAX, &ahead, error));
        mr_state_reader rung = {bytes, (const unsigned char *)bytes + size_bytes};
        MR_TRY(mr_stage_restore(input, &rung, error));
    }
    *base = input->position;
    *end = *base + ahead;
    return MR_OK;
}

static int compare_held(const void *a, const void *b)
{
    uint64_t x = ((const mr_held *)a)->origin, y = ((const mr_held *)b)->origin;
    return x < y ? -1 : x > y;
}

mr_status mr_trail_refill(mr_trail *trail, mr_stage *input, uint64_t end, mr_held *held, uint64_t count,
                          mr_error *error)
{
    uint64_t next = 0;
    assert(input->position <= end);
    if (count > 0) qsort(held, count, sizeof *held, compare_held);
    while (input->position < end) {
        uint64_t position = input->position;
        mr_item item = {0};
        if (mr_run_is_cancelled(input->run)) return mr_fail(error, MR_CANCELLED, "the pipeline was cancelled");
        MR_TRY(mr_trail_step(trail, input, error));
        mr_status status = mr_stage_next(input, &item, error);
        bool is_over = status == MR_OUT_OF_RANGE || status == MR_CANCELLED || status == MR_RESOURCE_EXHAUSTED;
        if (is_over || input->position == position) return mr_state_found(status, error);
        if (next == count || held[next].origin != position) {
            mr_item_deinit(&item);
            continue;
        }
        MR_TRY(status);
        assert(held[next].item->payload == nullptr);
        *held[next++].item = item;
        mr_trail_retain(trail, position);
    }
    return next == count ? MR_OK : mr_state_refuse(error);
}
