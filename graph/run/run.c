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

mr_status mr_run_check_value(const mr_tensor *value, mr_error *error)
{
    if (value->dtype <= MR_DTYPE_INVALID || value->dtype >= MR_DTYPE_COUNT)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a tensor of dtype %d", (int)value->dtype);
    if (value->shape.rank < 0 || value->shape.rank > MR_RANK_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a tensor has 0 to %d dimensions, not %d", MR_RANK_MAX,
                       (int)value->shape.rank);
    char text[MR_SHAPE_TEXT_SIZE];
    int64_t count = mr_shape_count(value->shape);
    if (count < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the shape %s of a tensor is too large or not fully known",
                       mr_shape_text(value->shape, text, sizeof text));
    bool is_handle = mr_dtype_size(value->dtype) == 0; /* of nothing, if it is null */
    if (count > 0 && !value->data && !is_handle)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the data of a tensor of shape %s is null",
                       mr_shape_text(value->shape, text, sizeof text));
    return MR_OK;
}

static mr_status check_feed(const mr_tensor *value, mr_output feed, mr_error *error)
{
    mr_status status = mr_run_check_value(value, error);
    return status == MR_OK ? MR_OK
                           : mr_fail_prefix(error, status, "Cannot feed %s:%d", feed.node->name, (int)feed.index);
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
        if (!program->signature.is_function) MR_TRY(check_feed(value, feed, error));
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
        if (program->signature.is_function) *(mr_tensor *)value = (mr_tensor){0}; /* moved */
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
            mr_resource *resource = mr_tensor_resource(slot, &mr_variable_class);
            if (!resource)
                return mr_fail(error, MR_INVALID_ARGUMENT, "%s:%d is not a variable and cannot be fetched",
                               fetch.node->name, (int)fetch.index);
            MR_TRY(mr_variable_snapshot((mr_variable_state *)resource, &results[i], error));
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
        if (signature->is_function) mr_tensor_deinit(&frame->slots[program->feed_slots[i]]);
        frame->slots[program->feed_slots[i]] = (mr_tensor){0};
    }
    for (int32_t i = 0; i < signature->fetch_count; i++) mr_tensor_deinit(&frame->taken[i]);
    if (status == MR_OK) return MR_OK;
    for (int32_t i = 0; i < signature->fetch_count; i++) mr_tensor_deinit(&results[i]);
    return status;
}
