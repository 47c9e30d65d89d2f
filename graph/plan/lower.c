/* Lower: turns values into slots and nodes into prepared calls, and determines the last use of each slot.
 *
 * The outputs of a call are adjacent slots, so a kernel writes directly to them. A slot with a kernel's output is
 * released after its last reader, or at once if it has none. Fed slots borrow from the caller, constants stay in the
 * plan, and fetched slots move to the results. All memory that a run needs for its bookkeeping is allocated here. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct lowering {
    mr_planner *planner;
    mr_plan *plan;
    int32_t *slot_of;  /* by value; -1: none */
    int32_t *last_use; /* by value: index in the order; -1: none */
    int32_t *seen;     /* by value: number of occurrences in the current list; the entries of its values are cleared
                          first */
} lowering;

#define NEW(type, count) MR_ARENA_NEW(&plan->arena, type, (size_t)(count) + 1)

/* Kernel function that copies between host and device. A fed value may already be on the device. */
static mr_status run_copy(mr_kernel_call *call, mr_error *error)
{
    const mr_call_copy *copy = call->prepared;
    const mr_tensor *source = &call->inputs[0];
    mr_tensor *target = &call->outputs[0];
    mr_device *from = mr_tensor_device(source);
    size_t size = mr_tensor_size_bytes(source);
    if (from == copy->to) {
        *target = mr_tensor_ref(source);
        return MR_OK;
    }
    if (source->dtype == MR_STRING)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "strings cannot be copied to a GPU");
    if (from && copy->to) return mr_tensor_to_device(source, copy->to, target, error);
    if (copy->to) {
        MR_TRY(mr_tensor_init_on(target, copy->to, source->dtype, source->shape, error));
        return copy->to->functions->copy_in(copy->to, target->data, source->data, size, error);
    }
    MR_TRY(mr_tensor_init_on(target, call->device, source->dtype, source->shape, error));
    MR_TRY(from->functions->copy_out(from, target->data, source->data, size, error));
    return from->functions->wait(from, error);
}

static bool must_run(const mr_plan_node *node)
{
    return node->is_copy || (node->kernel && node->kernel->run);
}

/* Numbers the slots and finds the last use of each. */
static mr_status assign_slots(lowering *l, mr_error *error)
{
    mr_planner *planner = l->planner;
    mr_plan *plan = l->plan;
    const mr_step *step = planner->step;
    l->slot_of = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)planner->value_count + 1);
    l->last_use = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)planner->value_count + 1);
    l->seen = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)planner->value_count + 1);
    if (!l->slot_of || !l->last_use || !l->seen)
        return mr_fail_memory(error, sizeof(int32_t) * (size_t)planner->value_count);
    plan->feed_is_read = NEW(bool, step->feed_count);
    plan->fed = NEW(mr_tensor, step->feed_count);
    if (!plan->feed_is_read || !plan->fed) return mr_fail_memory(error, sizeof(mr_tensor) * (size_t)step->feed_count);
    for (int32_t i = 0; i < planner->value_count; i++) l->slot_of[i] = l->last_use[i] = -1;
    for (int32_t i = 0; i < planner->order_count; i++) {
        const mr_plan_node *node = &planner->nodes[planner->order[i]];
        if (!must_run(node)) continue;
        for (int32_t j = 0; j < node->output_count; j++) l->slot_of[node->first_output + j] = plan->slot_count++;
        for (int32_t j = 0; j < node->input_count; j++) {
            int32_t value = node->inputs[j];
            l->last_use[value] = i;
            if (value < step->feed_count && !node->is_copy) plan->feed_is_read[value] = true;
            if (l->slot_of[value] < 0) {
                /* The producer comes earlier in the order, so a value without a slot is fed or constant. */
                assert(planner->values[value].kind != MR_VALUE_OUTPUT);
                l->slot_of[value] = plan->slot_count++;
            }
        }
        plan->call_count++;
    }
    for (int32_t i = 0; i < step->feed_count; i++)
        if (l->slot_of[i] < 0) l->slot_of[i] = plan->slot_count++;
    for (int32_t i = 0; i < step->fetch_count; i++)
        if (l->slot_of[planner->fetch_values[i]] < 0) l->slot_of[planner->fetch_values[i]] = plan->slot_count++;

    plan->slots = NEW(mr_tensor, plan->slot_count);
    plan->constants = NEW(int32_t, plan->slot_count);
    plan->owned = NEW(int32_t, plan->slot_count);
    plan->feed_slots = NEW(int32_t, step->feed_count);
    plan->calls = NEW(mr_call, plan->call_count);
    if (!plan->slots || !plan->constants || !plan->owned || !plan->feed_slots || !plan->calls)
        return mr_fail_memory(error, sizeof(mr_call) * (size_t)plan->call_count);
    for (int32_t i = 0; i < planner->value_count; i++) {
        int32_t slot = l->slot_of[i];
        assert(slot < plan->slot_count);
        if (slot < 0) continue;
        if (planner->values[i].kind == MR_VALUE_CONSTANT) {
            plan->slots[slot] = mr_tensor_ref(&planner->values[i].constant);
            plan->constants[plan->constant_count++] = slot;
        } else if (planner->values[i].kind == MR_VALUE_OUTPUT) {
            plan->owned[plan->owned_count++] = slot;
        }
    }
    for (int32_t i = 0; i < step->feed_count; i++) plan->feed_slots[i] = l->slot_of[i];
    for (int32_t i = 0; i < step->fetch_count; i++)
        if (planner->fetch_values[i] < step->feed_count) plan->feed_is_read[planner->fetch_values[i]] = true;
    return MR_OK;
}

static mr_input_mode input_mode(const mr_planner *planner, const mr_plan_node *node, int32_t input)
{
    const mr_plan_value *value = &planner->values[node->inputs[input]];
    if (!node->is_copy && input < 31 && node->kernel->updates >> input & 1) return MR_INPUT_UPDATE;
    return value->is_ref && !node->input_is_ref[input] ? MR_INPUT_READ : MR_INPUT_SLOT;
}

static mr_status lower_inputs(lowering *l, const mr_plan_node *node, int32_t place, mr_call *call, mr_error *error)
{
    mr_planner *planner = l->planner;
    mr_plan *plan = l->plan;
    mr_call_input *inputs = NEW(mr_call_input, node->input_count);
    mr_dtype *dtypes = NEW(mr_dtype, node->input_count);
    call->may_reuse = NEW(bool, node->input_count);
    call->input_tensors = NEW(mr_tensor, node->input_count);
    if (!inputs || !dtypes || !call->may_reuse || !call->input_tensors)
        return mr_fail_memory(error, sizeof(mr_tensor) * (size_t)node->input_count);
    call->plain = true;
    for (int32_t i = 0; i < node->input_count; i++) l->seen[node->inputs[i]] = 0;
    for (int32_t i = 0; i < node->input_count; i++) l->seen[node->inputs[i]]++;
    for (int32_t i = 0; i < node->input_count; i++) {
        const mr_plan_value *value = &planner->values[node->inputs[i]];
        bool twice = l->seen[node->inputs[i]] > 1;
        inputs[i] = (mr_call_input){
            .slot = l->slot_of[node->inputs[i]],
            .mode = input_mode(planner, node, i),
            .last_use = value->kind == MR_VALUE_OUTPUT && !value->fetched && !twice && !value->is_ref &&
                        l->last_use[node->inputs[i]] == place && !node->is_copy,
        };
        call->plain &= inputs[i].mode == MR_INPUT_SLOT;
        dtypes[i] = value->dtype;
    }
    for (int32_t i = 0; i < node->input_count; i++) assert(inputs[i].slot >= 0 && inputs[i].slot < plan->slot_count);
    call->inputs = inputs;
    call->input_count = node->input_count;
    call->kernel_node.input_dtypes = dtypes;
    call->kernel_node.input_count = node->input_count;
    return MR_OK;
}

/* Slots to release after the call: inputs that are read for the last time, and outputs without readers. The source of a
 * copy to a device is kept until the end of the run, after waiting for the device. */
static mr_status lower_releases(lowering *l, const mr_plan_node *node, int32_t place, mr_call *call, mr_error *error)
{
    mr_planner *planner = l->planner;
    mr_plan *plan = l->plan;
    int32_t *releases = NEW(int32_t, node->input_count + node->output_count);
    if (!releases) return mr_fail_memory(error, sizeof *releases);
    for (int32_t i = 0; i < node->input_count; i++) l->seen[node->inputs[i]] = 0;
    for (int32_t i = 0; i < node->input_count; i++) {
        int32_t value = node->inputs[i];
        const mr_plan_value *v = &planner->values[value];
        if (v->kind != MR_VALUE_OUTPUT || v->fetched || l->last_use[value] != place) continue;
        bool again = l->seen[value]++ > 0;
        if (!again && !(node->is_copy && node->copy_to)) releases[call->release_count++] = l->slot_of[value];
    }
    for (int32_t i = 0; i < node->output_count; i++) {
        int32_t value = node->first_output + i;
        if (l->last_use[value] < 0 && !planner->values[value].fetched)
            releases[call->release_count++] = l->slot_of[value];
    }
    assert(call->release_count <= node->input_count + node->output_count);
    call->releases = releases;
    return MR_OK;
}

static mr_status lower_outputs(lowering *l, const mr_plan_node *node, mr_call *call, mr_error *error)
{
    mr_planner *planner = l->planner;
    mr_plan *plan = l->plan;
    mr_dtype *dtypes = NEW(mr_dtype, node->output_count);
    if (!dtypes) return mr_fail_memory(error, sizeof *dtypes);
    for (int32_t i = 0; i < node->output_count; i++) {
        const mr_plan_value *value = &planner->values[node->first_output + i];
        dtypes[i] = value->dtype;
        if (value->is_ref && i == call->ref_output_count) call->ref_output_count++;
    }
    if (node->is_copy || !node->kernel->updates) call->ref_output_count = 0;
    call->kernel_node.output_dtypes = dtypes;
    call->kernel_node.output_count = node->output_count;
    call->output_count = node->output_count;
    assert(node->output_count == 0 || l->slot_of[node->first_output] + node->output_count <= plan->slot_count);
    call->outputs = node->output_count > 0 ? &plan->slots[l->slot_of[node->first_output]] : plan->slots;
    return MR_OK;
}

static mr_status prepare(lowering *l, const mr_plan_node *node, mr_call *call, mr_error *error)
{
    mr_plan *plan = l->plan;
    const mr_plan_context *context = l->planner->context;
    void *prepared = nullptr;
    if (node->is_copy) {
        mr_call_copy *copy = NEW(mr_call_copy, 1);
        if (!copy) return mr_fail_memory(error, sizeof *copy);
        *copy = (mr_call_copy){.from = node->copy_from, .to = node->copy_to};
        prepared = copy;
    } else if (node->kernel->prepared_size_bytes > 0) {
        prepared = mr_arena_alloc(&plan->arena, node->kernel->prepared_size_bytes);
        if (!prepared) return mr_fail_memory(error, node->kernel->prepared_size_bytes);
        if (node->kernel->prepare) {
            mr_status status = node->kernel->prepare(&call->kernel_node, prepared, error);
            if (status != MR_OK) return mr_call_named(&call->kernel_node, status, error);
        }
    }
    call->kernel_call = (mr_kernel_call){.node = &call->kernel_node,
                                         .prepared = prepared,
                                         .device = node->device,
                                         .inputs = call->input_tensors,
                                         .may_reuse = call->may_reuse,
                                         .outputs = call->outputs};
    if (!node->is_copy && node->node->def->op->flags & MR_OP_STATEFUL) {
        MR_TRY(context->node_state(context->session, node->node, &call->state, error));
        call->kernel_call.random = &call->state->random;
    }
    return MR_OK;
}

static mr_status lower_node(lowering *l, const mr_plan_node *node, int32_t place, mr_call *call, mr_error *error)
{
    call->kernel = node->kernel;
    call->run = node->is_copy ? run_copy : node->kernel->run;
    call->kernel_node = (mr_kernel_node){.name = node->node->name,
                                         .op = node->is_copy ? "copy between devices" : node->kernel->op,
                                         .attrs = node->attrs ? node->attrs : &node->node->attrs,
                                         .device = node->device};
    if (!node->is_copy) call->kernel_node.host_outputs = node->kernel->host_outputs;
    MR_TRY(lower_inputs(l, node, place, call, error));
    MR_TRY(lower_outputs(l, node, call, error));
    MR_TRY(lower_releases(l, node, place, call, error));
    return prepare(l, node, call, error);
}

static mr_status lower_fetches(lowering *l, mr_error *error)
{
    mr_planner *planner = l->planner;
    mr_plan *plan = l->plan;
    int32_t count = planner->step->fetch_count;
    plan->fetch_slots = NEW(int32_t, count);
    plan->fetch_is_ref = NEW(bool, count);
    plan->fetch_is_last = NEW(bool, count);
    if (!plan->fetch_slots || !plan->fetch_is_ref || !plan->fetch_is_last) return mr_fail_memory(error, (size_t)count);
    for (int32_t i = 0; i < count; i++) l->seen[planner->fetch_values[i]] = 0;
    for (int32_t i = count - 1; i >= 0; i--) {
        const mr_plan_value *value = &planner->values[planner->fetch_values[i]];
        if (value->dtype == MR_RESOURCE || value->dtype == MR_VARIANT)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s:%d is a %s, which cannot be fetched",
                           planner->step->fetches[i].node->name, (int)planner->step->fetches[i].index,
                           mr_dtype_name(value->dtype));
        plan->fetch_slots[i] = l->slot_of[planner->fetch_values[i]];
        assert(plan->fetch_slots[i] >= 0 && plan->fetch_slots[i] < plan->slot_count && value->fetched);
        plan->fetch_is_ref[i] = value->is_ref;
        bool is_later = l->seen[planner->fetch_values[i]]++ > 0;
        plan->fetch_is_last[i] = value->kind == MR_VALUE_OUTPUT && !value->is_ref && !is_later;
    }
    return MR_OK;
}

/* Whether an examination must not repeat the call, for example because it takes an element or changes a variable. */
static bool is_kept(const mr_call *call)
{
    bool kept = call->state != nullptr;
    for (int32_t i = 0; i < call->input_count; i++) kept |= call->inputs[i].mode == MR_INPUT_UPDATE;
    return kept;
}

/* A guard that no call computes (a constant, a variable) is checked after all calls. */
static mr_status lower_guard(lowering *l, mr_error *error)
{
    mr_plan *plan = l->plan;
    int32_t guard = l->planner->step->guard;
    for (int32_t i = 0; i < plan->call_count; i++) plan->calls[i].first_kept = -1;
    if (guard < 0) return MR_OK;
    const mr_tensor *slot = &plan->slots[plan->fetch_slots[guard]];
    plan->guard_calls = plan->call_count;
    for (int32_t i = 0; i < plan->call_count && plan->guard_calls == plan->call_count; i++)
        if (slot >= plan->calls[i].outputs && slot < plan->calls[i].outputs + plan->calls[i].output_count)
            plan->guard_calls = i + 1;
    for (int32_t i = 0; i < plan->guard_calls; i++) {
        if (!is_kept(&plan->calls[i])) continue;
        plan->calls[i].first_kept = plan->kept_count;
        plan->kept_count += plan->calls[i].output_count;
    }
    assert(plan->guard_calls <= plan->call_count);
    plan->kept = NEW(mr_tensor, plan->kept_count);
    return plan->kept ? MR_OK : mr_fail_memory(error, sizeof(mr_tensor) * (size_t)plan->kept_count);
}

static mr_status lower_waits(lowering *l, mr_error *error)
{
    mr_plan *plan = l->plan;
    mr_device *const *gpus = l->planner->context->gpus;
    plan->waits = NEW(mr_device *, MR_DEVICES_MAX);
    plan->start_ns = NEW(uint64_t, plan->call_count);
    plan->duration_ns = NEW(uint64_t, plan->call_count);
    if (!plan->waits || !plan->start_ns || !plan->duration_ns) return mr_fail_memory(error, (size_t)plan->call_count);
    for (int i = 0; i < MR_DEVICES_MAX && l->planner->uses_gpu; i++)
        if (gpus[i]) plan->waits[plan->wait_count++] = gpus[i];
    return MR_OK;
}

static mr_status lower_all(lowering *l, mr_error *error)
{
    mr_planner *planner = l->planner;
    MR_TRY(assign_slots(l, error));
    int32_t calls = 0;
    for (int32_t i = 0; i < planner->order_count; i++) {
        const mr_plan_node *node = &planner->nodes[planner->order[i]];
        if (must_run(node)) MR_TRY(lower_node(l, node, i, &l->plan->calls[calls++], error));
    }
    assert(calls == l->plan->call_count);
    MR_TRY(lower_fetches(l, error));
    MR_TRY(lower_guard(l, error));
    return lower_waits(l, error);
}

mr_status mr_plan_lower(mr_planner *planner, mr_error *error)
{
    lowering l = {.planner = planner, .plan = calloc(1, sizeof(mr_plan))};
    if (!l.plan) return mr_fail_memory(error, sizeof(mr_plan));
    l.plan->arena = planner->kept;
    planner->kept = (mr_arena){0};
    mr_status status = lower_all(&l, error);
    if (status != MR_OK) {
        mr_plan_free(l.plan);
        return status;
    }
    mr_plan_free(planner->step->plan);
    planner->step->plan = l.plan;
    return MR_OK;
}

mr_status mr_call_named(const mr_kernel_node *node, mr_status status, mr_error *error)
{
    if (!error) return status;
    size_t length = strlen(node->name);
    if (strncmp(error->message, node->name, length) == 0 && strncmp(error->message + length, " (", 2) == 0)
        return status;
    return mr_fail_prefix(error, status, "%s (%s)", node->name, node->op);
}

void mr_plan_free(mr_plan *plan)
{
    if (!plan) return;
    for (int32_t i = 0; i < plan->constant_count; i++) mr_tensor_deinit(&plan->slots[plan->constants[i]]);
    for (int32_t i = 0; i < plan->owned_count; i++) mr_tensor_deinit(&plan->slots[plan->owned[i]]);
    mr_arena_deinit(&plan->arena);
    free(plan);
}
