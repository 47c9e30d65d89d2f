/* Run: one run of a program. Sets the feeds, runs the calls up to the guard and the others, and takes the results. */
#include "graph/run/dataflow.h"
#include "graph/state/state.h"

#include <assert.h>
#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static mr_status set_feeds(mr_frame *frame, const mr_tensor *values, mr_error *error)
{
    const mr_program *program = frame->program;
    for (int32_t i = 0; i < program->signature.feed_count; i++) {
        const mr_output feed = program->signature.feeds[i];
        const mr_node_output *known = &feed.node->outputs[feed.index];
        const mr_tensor *value = &values[i];
        if (value->dtype != known->dtype)
            return mr_fail(error, MR_INVALID_ARGUMENT, "Cannot feed a %s for %s:%d, which is a %s",
                           mr_dtype_name(value->dtype), feed.node->name, (int)feed.index, mr_dtype_name(known->dtype));
        if (!mr_shape_compatible(value->shape, known->shape)) {
            char fed[MR_SHAPE_TEXT_SIZE], declared[MR_SHAPE_TEXT_SIZE];
            return mr_fail(error, MR_INVALID_ARGUMENT, "Cannot feed value of shape %s for %s:%d, which has shape %s",
                           mr_shape_text(value->shape, fed, sizeof fed), feed.node->name, (int)feed.index,
                           mr_shape_text(known->shape, declared, sizeof declared));
        }
        if (program->feed_is_read[i] && mr_tensor_device(value)) {
            MR_TRY(mr_tensor_to_host(value, &frame->fed[i], error));
            value = &frame->fed[i];
        }
        frame->slots[program->feed_slots[i]] = *value;
    }
    return MR_OK;
}

static mr_status take_results(mr_frame *frame, mr_tensor *results, mr_error *error)
{
    const mr_program *program = frame->program;
    for (int32_t i = 0; i < program->signature.fetch_count; i++) {
        mr_tensor *slot = &frame->slots[program->fetch_slots[i]];
        const mr_output fetch = program->signature.fetches[i];
        if (slot->dtype == MR_DTYPE_INVALID && !frame->taken[i].buffer)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "Retval[%d] does not have value: %s:%d is in a branch that did not run", (int)i,
                           fetch.node->name, (int)fetch.index);
        if (program->fetch_is_ref[i]) {
            MR_TRY(mr_variable_snapshot(slot->data, &results[i], error));
        } else if (frame->taken[i].buffer) {
            results[i] = frame->taken[i];
            frame->taken[i] = (mr_tensor){0};
            if (program->fetch_is_last[i]) mr_tensor_deinit(slot);
        } else if (program->fetch_is_last[i]) {
            results[i] = *slot;
            *slot = (mr_tensor){0};
        } else {
            results[i] = mr_tensor_ref(slot);
        }
    }
    return MR_OK;
}

/* Runs all calls; if there is a guard, first the calls up to it. */
static mr_status run_all(mr_frame *frame, const mr_tensor *values, bool *diverged, mr_error *error)
{
    const mr_program *program = frame->program;
    uint64_t began_ns = frame->times ? now_ns() : 0;
    int32_t done = 0;
    if (program->segment_count > 0) {
        MR_TRY(mr_frame_run_segments(frame, began_ns, diverged, error));
        return *diverged ? mr_guard_examine(frame, values, error) : MR_OK;
    }
    if (program->signature.guard >= 0) {
        MR_TRY(mr_guard_run(frame, began_ns, diverged, error));
        if (*diverged) return mr_guard_examine(frame, values, error);
        done = program->guard_calls;
    }
    return mr_frame_run_calls(frame, done, program->call_count, began_ns, error);
}

mr_status mr_frame_run(mr_frame *frame, const mr_tensor *values, mr_tensor *results, bool *diverged, mr_error *error)
{
    const mr_program *program = frame->program;
    const mr_signature *signature = &program->signature;
    for (int32_t i = 0; i < signature->fetch_count; i++) results[i] = (mr_tensor){0};
    mr_status status = set_feeds(frame, values, error);
    if (status == MR_OK) status = run_all(frame, values, diverged, error);
    for (int32_t i = 0; i < program->wait_count; i++) {
        mr_device *device = program->waits[i];
        mr_status waited = device->functions->wait(device, status == MR_OK ? error : nullptr);
        if (status == MR_OK) status = waited;
    }
    if (status == MR_OK) status = take_results(frame, results, error);
    if (status != MR_OK || program->wait_count > 0 || program->segment_count > 0) mr_frame_clear(frame);
    for (int32_t i = 0; i < program->kept_count; i++) mr_tensor_deinit(&frame->kept[i]);
    for (int32_t i = 0; i < signature->feed_count; i++) {
        mr_tensor_deinit(&frame->fed[i]);
        frame->slots[program->feed_slots[i]] = (mr_tensor){0};
    }
    for (int32_t i = 0; i < signature->fetch_count; i++) mr_tensor_deinit(&frame->taken[i]);
    if (status == MR_OK) return MR_OK;
    for (int32_t i = 0; i < signature->fetch_count; i++) mr_tensor_deinit(&results[i]);
    return status;
}
