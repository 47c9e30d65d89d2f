/* Execute: one run of a plan, a loop over its calls on the calling thread. Kernels use the session's pool for their
 * internal loops.
 *
 * A run itself allocates no memory: tensors come from the blocks that the devices keep. A value read from a variable is
 * referenced for the duration of the call. An updating kernel works on a value without other references, or on a copy,
 * so what was fetched or read before never changes.
 *
 * Variables updated by one call are locked together, in the order of their addresses. */
#include "graph/run/session.h"

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

mr_status mr_call_named(const mr_kernel_node *node, mr_status status, mr_error *error)
{
    if (!error) return status;
    size_t length = strlen(node->name);
    if (strncmp(error->message, node->name, length) == 0 && strncmp(error->message + length, " (", 2) == 0)
        return status;
    return mr_fail_prefix(error, status, "%s (%s)", node->name, node->op);
}

static bool is_unshared(const mr_tensor *tensor)
{
    return tensor->buffer && mr_buffer_is_unique(tensor->buffer);
}

static mr_status run_plain(mr_plan *plan, mr_call *call, mr_error *error)
{
    for (int32_t i = 0; i < call->input_count; i++) {
        const mr_call_input *input = &call->inputs[i];
        call->input_tensors[i] = plan->slots[input->slot];
        call->may_reuse[i] = input->last_use && is_unshared(&call->input_tensors[i]);
    }
    return call->run(&call->kernel_call, error);
}

typedef struct held {
    mr_variable_state *variables[UPDATES_MAX];
    int count;
} held;

/* The variables that the call updates, without duplicates, in the order of their addresses. */
static mr_status find_updates(mr_plan *plan, mr_call *call, held *h, mr_error *error)
{
    for (int32_t i = 0; i < call->input_count; i++) {
        if (call->inputs[i].mode != MR_INPUT_UPDATE) continue;
        mr_resource *resource = plan->slots[call->inputs[i].slot].data;
        if (!resource || resource->class != &mr_variable_class)
            return mr_fail(error, MR_INVALID_ARGUMENT, "input %d is not a variable", (int)i);
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

static mr_status own_updates(mr_plan *plan, mr_call *call, mr_error *error)
{
    for (int32_t i = 0; i < call->input_count; i++) {
        if (call->inputs[i].mode != MR_INPUT_UPDATE) continue;
        mr_variable_state *variable = plan->slots[call->inputs[i].slot].data;
        if (!variable->initialized) return mr_variable_uninitialized(variable, error);
        MR_TRY(mr_variable_own(variable, error));
        call->input_tensors[i] = variable->value;
        call->may_reuse[i] = false;
    }
    return MR_OK;
}

static mr_status run_updates(mr_plan *plan, mr_call *call, mr_error *error)
{
    held h = {0};
    MR_TRY(find_updates(plan, call, &h, error));
    for (int i = 0; i < h.count; i++) pthread_mutex_lock(&h.variables[i]->mutex);
    mr_status status = own_updates(plan, call, error);
    if (status == MR_OK) status = call->run(&call->kernel_call, error);
    for (int i = 0; i < h.count; i++) pthread_mutex_unlock(&h.variables[i]->mutex);
    if (status != MR_OK) return status;
    for (int32_t i = 0, output = 0; i < call->input_count && output < call->ref_output_count; i++)
        if (call->inputs[i].mode == MR_INPUT_UPDATE) call->outputs[output++] = plan->slots[call->inputs[i].slot];
    return MR_OK;
}

static mr_status run_with_variables(mr_plan *plan, mr_call *call, mr_error *error)
{
    mr_status status = MR_OK;
    int32_t taken = 0;
    bool updates = false;
    for (; taken < call->input_count && status == MR_OK; taken++) {
        const mr_call_input *input = &call->inputs[taken];
        mr_tensor *tensor = &call->input_tensors[taken];
        *tensor = (mr_tensor){0};
        call->may_reuse[taken] = false;
        updates |= input->mode == MR_INPUT_UPDATE;
        if (input->mode == MR_INPUT_READ) {
            status = mr_variable_read(plan->slots[input->slot].data, tensor, error);
        } else if (input->mode == MR_INPUT_SLOT) {
            *tensor = plan->slots[input->slot];
            call->may_reuse[taken] = input->last_use && is_unshared(tensor);
        }
    }
    if (status == MR_OK) status = updates ? run_updates(plan, call, error) : call->run(&call->kernel_call, error);
    for (int32_t i = 0; i < taken; i++)
        if (call->inputs[i].mode == MR_INPUT_READ) mr_tensor_deinit(&call->input_tensors[i]);
    return status;
}

static mr_status run_call(mr_plan *plan, mr_call *call, mr_error *error)
{
    if (call->state) call->kernel_call.invocation = __atomic_fetch_add(&call->state->invocations, 1, __ATOMIC_RELAXED);
    mr_status status = call->plain ? run_plain(plan, call, error) : run_with_variables(plan, call, error);
    if (status != MR_OK) return mr_call_named(&call->kernel_node, status, error);
    for (int32_t i = 0; i < call->release_count; i++) mr_tensor_deinit(&plan->slots[call->releases[i]]);
    return MR_OK;
}

static mr_status set_feeds(const mr_step *step, mr_plan *plan, const mr_tensor *values, mr_error *error)
{
    for (int32_t i = 0; i < step->feed_count; i++) {
        const mr_output feed = step->feeds[i];
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
        if (plan->feed_is_read[i] && mr_tensor_device(value)) {
            MR_TRY(mr_tensor_to_host(value, &plan->fed[i], error));
            value = &plan->fed[i];
        }
        plan->slots[plan->feed_slots[i]] = *value;
    }
    return MR_OK;
}

static mr_status take_results(const mr_step *step, mr_plan *plan, mr_tensor *results, mr_error *error)
{
    for (int32_t i = 0; i < step->fetch_count; i++) {
        mr_tensor *slot = &plan->slots[plan->fetch_slots[i]];
        if (plan->fetch_is_ref[i]) {
            MR_TRY(mr_variable_read(slot->data, &results[i], error));
        } else if (plan->fetch_is_last[i]) {
            results[i] = *slot;
            *slot = (mr_tensor){0};
        } else {
            results[i] = mr_tensor_ref(slot);
        }
    }
    return MR_OK;
}

mr_status mr_plan_run_calls(mr_plan *plan, int32_t first, int32_t end, uint64_t began_ns, mr_error *error)
{
    assert(0 <= first && first <= end && end <= plan->call_count);
    if (began_ns == 0) {
        for (int32_t i = first; i < end; i++) MR_TRY(run_call(plan, &plan->calls[i], error));
        return MR_OK;
    }
    assert(plan->traced_count == first);
    for (int32_t i = first; i < end; i++) {
        uint64_t start_ns = now_ns();
        MR_TRY(run_call(plan, &plan->calls[i], error));
        plan->start_ns[i] = start_ns - began_ns;
        plan->duration_ns[i] = now_ns() - start_ns;
        plan->traced_count = i + 1;
    }
    return MR_OK;
}

/* Runs all calls; if there is a guard, first the calls up to it. */
static mr_status run_all(mr_step *step, const mr_tensor *values, bool trace, bool *diverged, mr_error *error)
{
    mr_plan *plan = step->plan;
    uint64_t began_ns = trace ? now_ns() : 0;
    int32_t done = 0;
    plan->traced_count = 0;
    if (step->guard >= 0) {
        MR_TRY(mr_guard_run(step, began_ns, diverged, error));
        if (*diverged) return mr_guard_examine(step, values, error);
        done = plan->guard_calls;
    }
    return mr_plan_run_calls(plan, done, plan->call_count, began_ns, error);
}

/* Between runs all slots except constants are empty. */
static void assert_is_idle(const mr_plan *plan)
{
#ifndef NDEBUG
    for (int32_t i = 0; i < plan->owned_count; i++) {
        assert(plan->owned[i] >= 0 && plan->owned[i] < plan->slot_count);
        assert(!plan->slots[plan->owned[i]].buffer);
    }
    for (int32_t i = 0; i < plan->kept_count; i++) assert(!plan->kept[i].buffer);
#else
    (void)plan;
#endif
}

mr_status mr_plan_run(mr_step *step, const mr_tensor *values, mr_tensor *results, bool trace, bool *diverged,
                      mr_error *error)
{
    mr_plan *plan = step->plan;
    assert(mr_mutex_is_held(&step->mutex));
    assert(plan && plan->graph_version == step->session->graph->version);
    assert_is_idle(plan);
    for (int32_t i = 0; i < step->fetch_count; i++) results[i] = (mr_tensor){0};
    mr_status status = set_feeds(step, plan, values, error);
    if (status == MR_OK) status = run_all(step, values, trace, diverged, error);
    for (int32_t i = 0; i < plan->wait_count; i++) {
        mr_status waited = plan->waits[i]->functions->wait(plan->waits[i], status == MR_OK ? error : nullptr);
        if (status == MR_OK) status = waited;
    }
    if (status == MR_OK) status = take_results(step, plan, results, error);
    if (status != MR_OK || plan->wait_count > 0)
        for (int32_t i = 0; i < plan->owned_count; i++) mr_tensor_deinit(&plan->slots[plan->owned[i]]);
    for (int32_t i = 0; i < plan->kept_count; i++) mr_tensor_deinit(&plan->kept[i]);
    for (int32_t i = 0; i < step->feed_count; i++) {
        mr_tensor_deinit(&plan->fed[i]);
        plan->slots[plan->feed_slots[i]] = (mr_tensor){0};
    }
    assert_is_idle(plan);
    if (status == MR_OK) return MR_OK;
    for (int32_t i = 0; i < step->fetch_count; i++) mr_tensor_deinit(&results[i]);
    return status;
}
