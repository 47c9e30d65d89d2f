/* Guard: ends a training step before it updates variables if its loss is not finite.
 *
 * The plan's order puts updates after the guard's value. At that point the variables, the data and the states of the
 * random operators are those from the start of the step. The run is then examined: the same calls run again, with the
 * same elements of iterators and the same random numbers, and every tensor is checked. Calls that must not run twice
 * (taking the next element, an update that the guard depends on) are not repeated: their outputs were kept. */
#include "graph/run/execute.h"
#include "graph/state/state.h"
#include "kernels/elementwise_chain.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Elements that are not finite ---- */

static double element(const mr_tensor *tensor, int64_t index)
{
    switch (tensor->dtype) {
    case MR_FLOAT:
        return (double)((const float *)tensor->data)[index];
    case MR_DOUBLE:
        return ((const double *)tensor->data)[index];
    case MR_HALF:
        return (double)mr_half_to_float(((const uint16_t *)tensor->data)[index]);
    case MR_BFLOAT16:
        return (double)mr_bfloat16_to_float(((const uint16_t *)tensor->data)[index]);
    default:
        return 0;
    }
}

static bool is_floating(mr_dtype dtype)
{
    return dtype == MR_FLOAT || dtype == MR_DOUBLE || dtype == MR_HALF || dtype == MR_BFLOAT16;
}

/* Whether any of count floats is not finite. Without branches, so that it runs at memory bandwidth. */
static bool any_nonfinite(const float *values, int64_t count)
{
    uint32_t any = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        any |= (uint32_t)((bits & 0x7f800000u) == 0x7f800000u);
    }
    return any != 0;
}

int64_t mr_tensor_find_nonfinite(const mr_tensor *tensor, bool nan_only)
{
    constexpr int64_t BLOCK = 4096;
    if (!is_floating(tensor->dtype)) return -1;
    int64_t count = mr_tensor_count(tensor);
    assert(!mr_tensor_device(tensor) && (count == 0 || tensor->data));
    for (int64_t begin = 0; begin < count; begin += BLOCK) {
        int64_t end = count - begin < BLOCK ? count : begin + BLOCK;
        if (tensor->dtype == MR_FLOAT && !any_nonfinite((const float *)tensor->data + begin, end - begin)) continue;
        for (int64_t i = begin; i < end; i++) {
            double value = element(tensor, i);
            if (nan_only ? isnan(value) : !isfinite(value)) return i;
        }
    }
    return -1;
}

const char *mr_tensor_nonfinite_text(const mr_tensor *tensor, int64_t index)
{
    double value = element(tensor, index);
    return isnan(value) ? "NaN" : value < 0 ? "-inf" : "inf";
}

/* ---- The run up to the guard ---- */

static mr_status guard_value(const mr_frame *frame, mr_tensor *value, mr_error *error)
{
    const mr_program *program = frame->program;
    int32_t guard = program->signature.guard;
    const mr_tensor *slot = &frame->slots[program->fetch_slots[guard]];
    if (!program->fetch_is_ref[guard]) return mr_tensor_to_host(slot, value, error);
    mr_tensor share = {0};
    MR_TRY(mr_variable_read(slot->data, MR_VARIABLE_READ, &share, error));
    mr_status status = mr_tensor_to_host(&share, value, error);
    mr_tensor_deinit(&share);
    return status;
}

static uint64_t draws_of(const mr_call *call)
{
    return call->state ? __atomic_load_n(&call->state->random.draws, __ATOMIC_RELAXED) : 0;
}

/* Stores what an examination needs to repeat the call, or to skip it. */
static void keep(mr_frame *frame, const mr_call *call, mr_draw *draw)
{
    draw->drew = draws_of(call) != draw->draws_before;
    if (draw->drew) return;
    for (int32_t i = 0; i < call->output_count; i++) {
        assert(call->first_kept + i < frame->program->kept_count && !frame->kept[call->first_kept + i].buffer);
        frame->kept[call->first_kept + i] = mr_tensor_ref(&frame->slots[call->first_output + i]);
    }
}

mr_status mr_guard_check(mr_frame *frame, bool *diverged, mr_error *error)
{
    mr_tensor value = {0};
    MR_TRY(guard_value(frame, &value, error));
    *diverged = mr_tensor_find_nonfinite(&value, false) >= 0;
    mr_tensor_deinit(&value);
    return MR_OK;
}

mr_status mr_guard_run(mr_frame *frame, uint64_t began_ns, bool *diverged, mr_error *error)
{
    const mr_program *program = frame->program;
    assert(program->signature.guard >= 0 && program->signature.guard < program->signature.fetch_count);
    assert(program->guard_calls >= 0 && program->guard_calls <= program->call_count);
    for (int32_t i = 0; i < program->guard_calls; i++) {
        const mr_call *call = &program->calls[i];
        frame->draws[i] = (mr_draw){.draws_before = draws_of(call)};
        MR_TRY(mr_frame_run_calls(frame, i, i + 1, began_ns, error));
        if (call->first_kept >= 0) keep(frame, call, &frame->draws[i]);
    }
    return mr_guard_check(frame, diverged, error);
}

/* ---- The examination ---- */

typedef struct finding {
    bool any, nan;   /* any: a tensor that is not finite was found; nan: one with a NaN */
    char first[512]; /* the first such tensor: "the variable w: inf at element 3 of [8,4]" */
    char first_nan[512];
} finding;

/* The name, `what` and `name`, is formatted only for a tensor that is not finite. */
static mr_status check(finding *f, const mr_tensor *tensor, bool nan_only, const char *what, const char *name,
                       int32_t index, mr_error *error)
{
    if (!is_floating(tensor->dtype) || f->nan) return MR_OK;
    mr_tensor host = {0};
    MR_TRY(mr_tensor_to_host(tensor, &host, error));
    for (int pass = 0; pass < 2; pass++) {
        bool nan = pass == 1;
        int64_t at = mr_tensor_find_nonfinite(&host, nan || nan_only);
        if (at < 0 || (nan ? f->nan : f->any)) continue;
        char shape[MR_SHAPE_TEXT_SIZE], place[32] = "";
        if (index >= 0) snprintf(place, sizeof place, ":%d", (int)index);
        snprintf(nan ? f->first_nan : f->first, sizeof f->first, "%s%s%s: %s at element %" PRId64 " of %s", what, name,
                 place, mr_tensor_nonfinite_text(&host, at), at, mr_shape_text(host.shape, shape, sizeof shape));
        *(nan ? &f->nan : &f->any) = true;
    }
    mr_tensor_deinit(&host);
    return MR_OK;
}

static mr_status check_feeds(finding *f, const mr_signature *signature, const mr_tensor *values, mr_error *error)
{
    for (int32_t i = 0; i < signature->feed_count; i++) {
        const mr_output feed = signature->feeds[i];
        MR_TRY(check(f, &values[i], false, "the feed of ", feed.node->name, feed.index, error));
    }
    return MR_OK;
}

/* Checks the inputs that come from outside the run: variables, and constants, in which infinities may be intended. */
static mr_status check_inputs(finding *f, const mr_frame *frame, const mr_call *call, mr_error *error)
{
    for (int32_t i = 0; i < call->input_count; i++) {
        const mr_tensor *slot = &frame->slots[call->inputs[i].slot];
        if (call->inputs[i].mode == MR_INPUT_SLOT) {
            if (slot->buffer) MR_TRY(check(f, slot, true, "an input of ", call->node.name, -1, error));
            continue;
        }
        mr_resource *resource = slot->data;
        mr_tensor share = {0};
        if (!resource || resource->class != &mr_variable_class) continue;
        if (mr_variable_read((mr_variable_state *)resource, MR_VARIABLE_READ, &share, nullptr) != MR_OK) continue;
        mr_status status = check(f, &share, false, "the variable ", resource->name, -1, error);
        mr_tensor_deinit(&share);
        MR_TRY(status);
    }
    return MR_OK;
}

static mr_status repeat(mr_frame *frame, int32_t index, mr_error *error)
{
    const mr_call *call = &frame->program->calls[index];
    const mr_draw *draw = &frame->draws[index];
    if (call->first_kept >= 0 && !draw->drew) {
        for (int32_t i = 0; i < call->output_count; i++)
            frame->slots[call->first_output + i] = mr_tensor_ref(&frame->kept[call->first_kept + i]);
        return MR_OK;
    }
    if (draw->drew) __atomic_store_n(&call->state->random.draws, draw->draws_before, __ATOMIC_RELAXED);
    return mr_frame_run_calls(frame, index, index + 1, 0, error);
}

static mr_status check_result(void *context, const char *node, const mr_tensor *result, mr_error *error)
{
    return check(context, result, false, "", node, 0, error);
}

/* Checks the results of all nodes that one call computes. */
static mr_status check_chain(finding *f, const mr_frame *frame, const mr_call *call, mr_error *error)
{
    mr_tensor inputs[MR_ELEMENTWISE_INPUTS_MAX];
    assert(call->plain && call->input_count <= MR_ELEMENTWISE_INPUTS_MAX);
    for (int32_t i = 0; i < call->input_count; i++) inputs[i] = frame->slots[call->inputs[i].slot];
    const mr_kernel_call examined = {
        .node = &call->node, .prepared = call->prepared, .device = call->device, .inputs = inputs};
    return mr_elementwise_visit(&examined, check_result, f, error);
}

static mr_status find_first(finding *f, mr_frame *frame, const mr_tensor *values, mr_error *error)
{
    const mr_program *program = frame->program;
    mr_frame_clear(frame);
    MR_TRY(check_feeds(f, &program->signature, values, error));
    for (int32_t i = 0; i < program->guard_calls && !f->nan; i++) {
        const mr_call *call = &program->calls[i];
        const bool is_chain = call->kernel && strcmp(call->kernel->op, MR_ELEMENTWISE_OP) == 0;
        MR_TRY(check_inputs(f, frame, call, error));
        if (is_chain) MR_TRY(check_chain(f, frame, call, error));
        MR_TRY(repeat(frame, i, error));
        for (int32_t j = 0; j < call->output_count && !is_chain; j++) {
            const mr_tensor *output = &frame->slots[call->first_output + j];
            /* Without a buffer it is a handle, or was released already. */
            if (output->buffer) MR_TRY(check(f, output, false, "", call->node.name, j, error));
        }
    }
    return MR_OK;
}

mr_status mr_guard_examine(mr_frame *frame, const mr_tensor *values, mr_error *error)
{
    finding f = {0};
    mr_error ignored = {0}; /* report what was found before this error */
    char guard[MR_OUTPUT_NAME_SIZE];
    const mr_signature *signature = &frame->program->signature;
    mr_output_name(signature->fetches[signature->guard], guard, sizeof guard);
    /* With segments the calls cannot be repeated one by one. */
    if (frame->program->segment_count == 0) (void)find_first(&f, frame, values, &ignored);
    if (!f.any) return mr_fail(error, MR_INVALID_ARGUMENT, "%s is not finite", guard);
    bool more = f.nan && strcmp(f.first, f.first_nan) != 0;
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s is not finite; the first tensor that is not finite is %s%s%s", guard,
                   f.first, more ? ", and the first with a NaN is " : "", more ? f.first_nan : "");
}
