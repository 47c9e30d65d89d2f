/* Frames: one block of memory each, laid out once. */
#include "graph/run/frame.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Between runs all slots except constants are empty. */
static void assert_is_idle(const mr_frame *frame)
{
#ifndef NDEBUG
    const mr_program *program = frame->program;
    const mr_region *region = frame->region;
    for (int32_t i = 0; i < region->owned_count; i++) {
        assert(region->owned[i] >= 0 && region->owned[i] < region->slot_count);
        assert(!frame->slots[region->owned[i]].buffer);
    }
    assert(!frame->run && !frame->times && frame->timed_count == 0 && frame->busy == 0 && !frame->loop);
    for (int32_t i = 0; i < region->loop_count; i++) assert(!frame->loops[i].is_running);
    if (region->parent >= 0) return;
    for (int32_t i = 0; i < program->kept_count; i++) assert(!frame->kept[i].buffer);
    for (int32_t i = 0; i < program->signature.feed_count; i++) assert(!frame->fed[i].buffer);
    for (int32_t i = 0; i < program->signature.fetch_count; i++) assert(!frame->taken[i].buffer);
#else
    (void)frame;
#endif
}

/* Reserves room for count elements in the block; null while the block's size is being computed. */
static void *reserve(char *block, size_t *used, size_t count, size_t size_bytes)
{
    void *place = block ? block + *used : nullptr;
    assert(*used % 16 == 0); /* every array is aligned */
    *used += (count * size_bytes + 15) & ~(size_t)15;
    return place;
}

static void lay_out_loops(mr_frame *frame, char *block, size_t *used)
{
    const mr_program *program = frame->program;
    for (int32_t i = 0; i < frame->region->loop_count; i++) {
        const mr_region *inner = &program->regions[frame->region->loops[i]];
        mr_tensor *constants = reserve(block, used, (size_t)inner->slot_count, sizeof *constants);
        bool *has_left = reserve(block, used, (size_t)inner->segment_count, sizeof *has_left);
        if (!block) continue;
        frame->loops[i] =
            (mr_loop){.region = frame->region->loops[i], .outer = frame, .constants = constants, .has_left = has_left};
    }
}

/* Sets the frame's arrays, and returns the size of its block. */
static size_t lay_out(mr_frame *frame, char *block)
{
    const mr_program *program = frame->program;
    const mr_region *region = frame->region;
    bool is_outer = region->parent < 0, has_segments = program->segment_count > 0;
    size_t used = 0;
    (void)reserve(block, &used, 1, sizeof *frame);
    frame->slots = reserve(block, &used, (size_t)region->slot_count, sizeof *frame->slots);
    frame->inputs = reserve(block, &used, (size_t)program->inputs_max, sizeof *frame->inputs);
    frame->may_reuse = reserve(block, &used, (size_t)program->inputs_max, sizeof *frame->may_reuse);
    if (is_outer) {
        frame->taken = reserve(block, &used, (size_t)program->signature.fetch_count, sizeof *frame->taken);
        frame->fed = reserve(block, &used, (size_t)program->signature.feed_count, sizeof *frame->fed);
        frame->kept = reserve(block, &used, (size_t)program->kept_count, sizeof *frame->kept);
        frame->draws = reserve(block, &used, (size_t)program->guard_calls, sizeof *frame->draws);
    }
    if (has_segments) {
        frame->states = reserve(block, &used, (size_t)region->segment_count, sizeof *frame->states);
        frame->uses = reserve(block, &used, (size_t)region->slot_count, sizeof *frame->uses);
        frame->branches = reserve(block, &used, (size_t)region->predicate_count, sizeof *frame->branches);
        frame->loops = reserve(block, &used, (size_t)region->loop_count, sizeof *frame->loops);
        lay_out_loops(frame, block, &used);
    }
    return used;
}

static mr_status frame_new(mr_program *program, int32_t region, mr_frame **frame, mr_error *error)
{
    mr_frame measured = {.program = program, .region = &program->regions[region]};
    size_t size_bytes = lay_out(&measured, nullptr);
    mr_frame *f = calloc(1, size_bytes);
    if (!f) return mr_fail_memory(error, size_bytes);
    f->program = program;
    f->region = measured.region;
    const size_t used = lay_out(f, (char *)f);
    assert(used == size_bytes);
    (void)used;
    memcpy(f->slots, f->region->slots, (size_t)f->region->slot_count * sizeof *f->slots);
    *frame = f;
    return MR_OK;
}

mr_status mr_frame_take(mr_program *program, int32_t region, mr_frame **frame, mr_error *error)
{
    mr_region *r = &program->regions[region];
    *frame = __atomic_exchange_n(&r->spare, nullptr, __ATOMIC_ACQUIRE);
    if (!*frame) {
        pthread_mutex_lock(&r->mutex);
        *frame = r->idle;
        if (*frame) r->idle = (*frame)->next;
        pthread_mutex_unlock(&r->mutex);
    }
    if (!*frame) MR_TRY(frame_new(program, region, frame, error));
    assert((*frame)->program == program && (*frame)->region == r);
    assert_is_idle(*frame);
    return MR_OK;
}

void mr_frame_clear(mr_frame *frame)
{
    const mr_region *region = frame->region;
    for (int32_t i = 0; i < region->owned_count; i++) mr_tensor_deinit(&frame->slots[region->owned[i]]);
}

void mr_frame_give(mr_frame *frame)
{
    mr_region *region = frame->region;
    mr_frame *none = nullptr;
    assert_is_idle(frame);
    frame->next = nullptr;
    if (__atomic_compare_exchange_n(&region->spare, &none, frame, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) return;
    pthread_mutex_lock(&region->mutex);
    frame->next = region->idle;
    region->idle = frame;
    pthread_mutex_unlock(&region->mutex);
}

static void frame_free(mr_frame *frame)
{
    if (frame) free(frame->queue);
    free(frame);
}

void mr_frames_free(mr_region *region)
{
    frame_free(region->spare);
    for (mr_frame *frame = region->idle, *next; frame; frame = next) {
        assert(frame->region == region && frame != region->spare);
        next = frame->next;
        frame_free(frame);
    }
    region->spare = region->idle = nullptr;
}
