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
    for (int32_t i = 0; i < program->owned_count; i++) {
        assert(program->owned[i] >= 0 && program->owned[i] < program->slot_count);
        assert(!frame->slots[program->owned[i]].buffer);
    }
    for (int32_t i = 0; i < program->kept_count; i++) assert(!frame->kept[i].buffer);
    for (int32_t i = 0; i < program->signature.feed_count; i++) assert(!frame->fed[i].buffer);
    for (int32_t i = 0; i < program->signature.fetch_count; i++) assert(!frame->taken[i].buffer);
    assert(!frame->times && frame->timed_count == 0);
#else
    (void)frame;
#endif
}

static mr_status frame_new(mr_program *program, mr_frame **frame, mr_error *error)
{
    size_t slots = (size_t)program->slot_count, inputs = (size_t)program->inputs_max;
    size_t feeds = (size_t)program->signature.feed_count, kept = (size_t)program->kept_count;
    size_t draws = (size_t)program->guard_calls, fetches = (size_t)program->signature.fetch_count;
    size_t tensors = slots + inputs + fetches + feeds + kept;
    size_t size_bytes = sizeof(mr_frame) + tensors * sizeof(mr_tensor) + draws * sizeof(mr_draw) + inputs;
    static_assert(sizeof(mr_frame) % alignof(mr_tensor) == 0 && alignof(mr_tensor) >= alignof(mr_draw));
    mr_frame *f = calloc(1, size_bytes);
    if (!f) return mr_fail_memory(error, size_bytes);
    f->program = program;
    f->slots = (mr_tensor *)(f + 1);
    f->inputs = f->slots + slots;
    f->taken = f->inputs + inputs;
    f->fed = f->taken + fetches;
    f->kept = f->fed + feeds;
    f->draws = (mr_draw *)(f->kept + kept);
    f->may_reuse = (bool *)(f->draws + draws);
    memcpy(f->slots, program->slots, slots * sizeof *f->slots);
    *frame = f;
    return MR_OK;
}

mr_status mr_frame_take(mr_program *program, mr_frame **frame, mr_error *error)
{
    *frame = __atomic_exchange_n(&program->spare, nullptr, __ATOMIC_ACQUIRE);
    if (!*frame) {
        pthread_mutex_lock(&program->mutex);
        *frame = program->idle;
        if (*frame) program->idle = (*frame)->next;
        pthread_mutex_unlock(&program->mutex);
    }
    if (!*frame) MR_TRY(frame_new(program, frame, error));
    assert((*frame)->program == program);
    assert_is_idle(*frame);
    return MR_OK;
}

void mr_frame_give(mr_frame *frame)
{
    mr_program *program = frame->program;
    mr_frame *none = nullptr;
    assert_is_idle(frame);
    frame->next = nullptr;
    if (__atomic_compare_exchange_n(&program->spare, &none, frame, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) return;
    pthread_mutex_lock(&program->mutex);
    frame->next = program->idle;
    program->idle = frame;
    pthread_mutex_unlock(&program->mutex);
}

void mr_frames_free(mr_program *program)
{
    free(program->spare);
    for (mr_frame *frame = program->idle, *next; frame; frame = next) {
        next = frame->next;
        free(frame);
    }
    program->spare = program->idle = nullptr;
}
