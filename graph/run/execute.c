/* Execute: a loop over the calls of a program on the calling thread. Kernels use the session's pool for their internal
 * loops.
 *
 * A run itself allocates no memory: tensors come from the blocks that the devices keep. A value read from a variable is
 * referenced for the duration of the call. What is fetched never changes: see mr_variable_read.
 *
 * Variables updated by one call are locked together, in the order of their addresses. */
#include "graph/run/execute.h"
#include "base/buffer.h"
#include "base/mutex.h"
#include "graph/run/trace.h"
#include "graph/state/run.h"
#include "graph/state/state.h"

#include <assert.h>
#include <string.h>
#include <time.h>

constexpr int UPDATES_MAX = 8;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void release(mr_tensor *tensor)
{
    if (tensor->buffer) mr_buffer_unref(tensor->buffer);
    *tensor = (mr_tensor){0};
}

static bool is_unshared(const mr_tensor *tensor)
{
    return tensor->buffer && mr_buffer_is_unique(tensor->buffer);
}

/* What a kernel function gets: the constant part of the call, and the memory of the frame. */
static mr_kernel_call kernel_call(const mr_frame *frame, const mr_call *call)
{
    mr_kernel_call made = {.node = &call->node,
                           .prepared = call->prepared,
                           .device = call->device,
                           .inputs = frame->inputs,
                           .may_reuse = frame->may_reuse,
                           .outputs = frame->slots + call->first_output,
                           .run = frame->run,
                           .depth = frame->depth,
                           .may_wait = frame->may_wait};
    if (call->state) {
        made.random = &call->state->random;
        made.state = &call->state->memory;
        made.invocation = __atomic_fetch_add(&call->state->invocations, 1, __ATOMIC_RELAXED);
    }
    return made;
}

/* The slot of an input whose reference the kernel has taken has none any more. */
static void end_input(mr_frame *frame, const mr_call *call, int32_t input)
{
    assert(input >= 0 && input < frame->program->inputs_max && call->inputs[input].slot < frame->region->slot_count);
    if (frame->may_reuse[input] && !frame->inputs[input].buffer)
        frame->slots[call->inputs[input].slot].buffer = nullptr;
}

/* Two scalars: without the generality of a kernel call. Sets *done if it has computed the output. */
static mr_status run_scalars(mr_frame *frame, const mr_call *call, bool *done, mr_error *error)
{
    mr_tensor *output = &frame->slots[call->first_output], *inputs[2], *reused = nullptr;
    for (int i = 0; i < 2; i++) {
        inputs[i] = &frame->slots[call->inputs[i].slot];
        if (inputs[i]->shape.rank != 0 || inputs[i]->dtype != call->node.input_dtypes[i]) return MR_OK;
        if (!reused && call->scalars_in_place && mr_frame_is_last_use(frame, &call->inputs[i]) &&
            is_unshared(inputs[i]))
            reused = inputs[i];
    }
    const void *a = inputs[0]->data, *b = inputs[1]->data;
    *done = true;
    assert(!output->buffer && output->shape.rank == 0);
    if (reused) {
        output->dtype = call->node.output_dtypes[0];
        output->buffer = reused->buffer;
        output->data = reused->data;
        reused->buffer = nullptr; /* moved */
    } else {
        MR_TRY(mr_tensor_init_on(output, call->device, call->node.output_dtypes[0], MR_SCALAR, error));
    }
    call->scalars(output->data, a, b, 1, MR_BOTH_ROWS);
    return MR_OK;
}

static mr_status run_plain(mr_frame *frame, const mr_call *call, mr_error *error)
{
    bool done = false;
    if (call->scalars) {
        mr_status status = run_scalars(frame, call, &done, error);
        if (done) return status;
    }
    for (int32_t i = 0; i < call->input_count; i++) {
        const mr_call_input *input = &call->inputs[i];
        frame->inputs[i] = frame->slots[input->slot];
        frame->may_reuse[i] = mr_frame_is_last_use(frame, input) && is_unshared(&frame->inputs[i]);
    }
    mr_kernel_call kernel = kernel_call(frame, call);
    mr_status status = call->run(&kernel, error);
    frame->would_wait = kernel.would_wait;
    for (int32_t i = 0; i < call->input_count; i++) end_input(frame, call, i);
    return status;
}

typedef struct held {
    mr_variable_state *variables[UPDATES_MAX];
    int count;
} held;

/* The variables that the call updates, without duplicates, in the order of their addresses. */
static mr_status find_updates(const mr_frame *frame, const mr_call *call, held *h, mr_error *error)
{
    for (int32_t i = 0; i < call->input_count; i++) {
        if (call->inputs[i].mode != MR_INPUT_UPDATE) continue;
        mr_resource *resource = mr_tensor_resource(&frame->slots[call->inputs[i].slot], &mr_variable_class);
        if (!resource) return mr_fail(error, MR_INVALID_ARGUMENT, "input %d is not a variable", (int)i);
        mr_variable_state *variable = (mr_variable_state *)resource;
        int at = 0;
        while (at < h->count && (uintptr_t)h->variables[at] < (uintptr_t)variable) at++;
        if (at < h->count && h->variables[at] == variable) continue;
        if (h->count == UPDATES_MAX) return mr_fail(error, MR_INTERNAL, "more than %d variables", UPDATES_MAX);
        memmove(&h->variables[at + 1], &h->variables[at], (size_t)(h->count - at) * sizeof h->variables[0]);
        h->variables[at] = variable;
        h->count++;
    }
    for (int i = 1; i < h->count; i++) assert((uintptr_t)h->variables[i - 1] < (uintptr_t)h->variables[i]);
    return MR_OK;
}

static mr_status own_updates(mr_frame *frame, const mr_call *call, mr_error *error)
{
    const mr_variable_use use = mr_node_has_flag(call->source, MR_OP_TRAINS) ? MR_VARIABLE_TRAIN : MR_VARIABLE_CHANGE;
    for (int32_t i = 0; i < call->input_count; i++) {
        if (call->inputs[i].mode != MR_INPUT_UPDATE) continue;
        mr_variable_state *variable = frame->slots[call->inputs[i].slot].data;
        assert(mr_mutex_is_held(&variable->mutex));
        if (!variable->initialized) return mr_variable_uninitialized(variable, use, error);
        MR_TRY(mr_variable_own(variable, error));
        frame->inputs[i] = variable->value;
        frame->may_reuse[i] = false;
    }
    return MR_OK;
}

static mr_status run_updates(mr_frame *frame, const mr_call *call, mr_error *error)
{
    held h = {0};
    MR_TRY(find_updates(frame, call, &h, error));
    for (int i = 0; i < h.count; i++) pthread_mutex_lock(&h.variables[i]->mutex);
    mr_status status = own_updates(frame, call, error);
    mr_kernel_call kernel = kernel_call(frame, call);
    if (status == MR_OK) status = call->run(&kernel, error);
    for (int i = 0; i < h.count; i++) pthread_mutex_unlock(&h.variables[i]->mutex);
    if (status != MR_OK) return status;
    for (int32_t i = 0, output = 0; i < call->input_count && output < call->ref_output_count; i++)
        if (call->inputs[i].mode == MR_INPUT_UPDATE)
            frame->slots[call->first_output + output++] = frame->slots[call->inputs[i].slot];
    return MR_OK;
}

mr_status mr_frame_read_variable(const mr_frame *frame, const mr_call *call, int32_t input, mr_tensor *value,
                                 mr_error *error)
{
    mr_resource *resource = mr_tensor_resource(&frame->slots[call->inputs[input].slot], &mr_variable_class);
    if (!resource) return mr_fail(error, MR_INVALID_ARGUMENT, "input %d is not a variable", (int)input);
    return mr_variable_read((mr_variable_state *)resource, MR_VARIABLE_READ, value, error);
}

static mr_status run_with_variables(mr_frame *frame, const mr_call *call, mr_error *error)
{
    mr_status status = MR_OK;
    int32_t taken = 0;
    bool updates = false;
    for (; taken < call->input_count && status == MR_OK; taken++) {
        const mr_call_input *input = &call->inputs[taken];
        mr_tensor *tensor = &frame->inputs[taken];
        *tensor = (mr_tensor){0};
        frame->may_reuse[taken] = false;
        updates |= input->mode == MR_INPUT_UPDATE;
        if (input->mode == MR_INPUT_READ) {
            status = mr_frame_read_variable(frame, call, taken, tensor, error);
        } else if (input->mode == MR_INPUT_SLOT) {
            *tensor = frame->slots[input->slot];
            frame->may_reuse[taken] = mr_frame_is_last_use(frame, input) && is_unshared(tensor);
        }
    }
    if (status == MR_OK && updates) {
        status = run_updates(frame, call, error);
    } else if (status == MR_OK) {
        mr_kernel_call kernel = kernel_call(frame, call);
        status = call->run(&kernel, error);
        frame->would_wait = kernel.would_wait;
    }
    for (int32_t i = 0; i < taken; i++)
        if (call->inputs[i].mode == MR_INPUT_READ)
            mr_tensor_deinit(&frame->inputs[i]);
        else
            end_input(frame, call, i);
    return status;
}

static mr_status copy_output(const mr_call *call, const mr_tensor *output, mr_tensor *copy, mr_error *error)
{
    mr_device *device = mr_tensor_device(output);
    if (!device && call->device->kind == MR_DEVICE_CPU) device = call->device;
    if (device) return mr_tensor_duplicate(device, output, copy, error);
    return mr_tensor_init_copy(copy, output->dtype, output->shape, output->data, error);
}

/* Copies fetched outputs that share a variable's buffer: they have the value of now, whatever changes it later. */
static mr_status take_fetches(mr_frame *frame, const mr_call *call, mr_frame *outer, mr_error *error)
{
    const mr_call_fetch *fetches = frame->program->fetches + call->first_fetch;
    for (int32_t i = 0; i < call->fetch_count; i++) {
        mr_frame *at = call->flow == MR_FLOW_EXIT ? frame->loop->outer : frame;
        const mr_tensor *output = &at->slots[call->first_output + fetches[i].output];
        assert(fetches[i].fetch >= 0 && fetches[i].fetch < outer->program->signature.fetch_count);
        mr_tensor *taken = &outer->taken[fetches[i].fetch];
        if (!output->buffer || !output->buffer->is_mutable) continue;
        mr_tensor_deinit(taken); /* of a call that a guard repeats */
        MR_TRY(copy_output(call, output, taken, error));
    }
    return MR_OK;
}

mr_status mr_frame_end_call(mr_frame *frame, const mr_call *call, mr_frame *outer, mr_error *error)
{
    if (call->fetch_count > 0) MR_TRY(take_fetches(frame, call, outer, error));
    assert(outer->region->parent < 0); /* which has the fetches */
    for (int32_t i = 0; i < call->release_count; i++) release(&frame->slots[call->releases[i]]);
    return MR_OK;
}

mr_status mr_frame_compute_call(mr_frame *frame, const mr_call *call, mr_error *error)
{
    if (mr_run_is_stopped(frame->run)) return mr_run_stopped(frame->run, error);
    mr_run_trace *trace = frame->run->trace;
    uint64_t start_ns = trace ? mr_run_trace_now() : 0;
    mr_status status = call->plain ? run_plain(frame, call, error) : run_with_variables(frame, call, error);
    assert(!frame->would_wait || !frame->may_wait);
    if (trace && status == MR_OK && !frame->would_wait)
        mr_run_trace_add(trace, frame, call, start_ns, mr_run_trace_now());
    if (frame->run->watch && status == MR_OK && !frame->would_wait) return mr_watch_call(frame, call, error);
    return status == MR_OK ? MR_OK : mr_call_named(&call->node, status, error);
}

static mr_status run_call(mr_frame *frame, const mr_call *call, mr_frame *outer, mr_error *error)
{
    MR_TRY(mr_frame_compute_call(frame, call, error));
    if (frame->would_wait) return MR_OK;
    mr_status status = mr_frame_end_call(frame, call, outer, error);
    return status == MR_OK ? MR_OK : mr_call_named(&call->node, status, error);
}

mr_status mr_frame_run_call(mr_frame *frame, const mr_call *call, mr_frame *outer, uint64_t began_ns, mr_error *error)
{
    if (began_ns == 0) return run_call(frame, call, outer, error);
    uint64_t start_ns = now_ns();
    MR_TRY(run_call(frame, call, outer, error));
    if (outer->timed_count < outer->times_capacity)
        outer->times[outer->timed_count++] = (mr_node_time){.node = call->node.name,
                                                            .op = call->node.op,
                                                            .start_ns = start_ns - began_ns,
                                                            .duration_ns = now_ns() - start_ns};
    return MR_OK;
}

mr_status mr_frame_run_calls(mr_frame *frame, int32_t first, int32_t end, uint64_t began_ns, mr_error *error)
{
    const mr_call *calls = frame->program->calls;
    assert(0 <= first && first <= end && end <= frame->program->call_count);
    assert(began_ns == 0 || frame->times);
    frame->may_wait = true;
    for (int32_t i = first; i < end; i++) MR_TRY(mr_frame_run_call(frame, &calls[i], frame, began_ns, error));
    return MR_OK;
}
