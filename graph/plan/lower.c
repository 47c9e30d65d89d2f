/* Lower: turns values into slots and nodes into prepared calls, and determines the last use of each slot.
 *
 * The outputs of a call are adjacent slots, so a kernel writes directly to them. A slot with a kernel's output is
 * released after its last reader, or at once if it has none. Fed slots borrow from the caller, constants stay in the
 * program, and fetched slots move to the results. */
#include "graph/plan/lower.h"

#include <assert.h>

/* What a copy between devices has prepared. */
typedef struct call_copy {
    mr_device *from, *to; /* null: host memory */
} call_copy;

/* Kernel function that copies between host and device. A fed value may already be on the device. */
static mr_status run_copy(mr_kernel_call *call, mr_error *error)
{
    const call_copy *copy = call->prepared;
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

static bool must_run(const mr_planner *planner, const mr_plan_node *node)
{
    if (node->is_copy || (node->kernel && node->kernel->run)) return true;
    /* With segments every node is a call: tokens pass through it. */
    return planner->has_flow && (node->kernel || mr_plan_is_gate(planner, node));
}

static mr_status allocate(mr_lowering *l, mr_error *error)
{
    mr_planner *planner = l->planner;
    mr_program *program = l->program;
    size_t values = (size_t)planner->value_count + 1, nodes = (size_t)planner->node_count + 1;
    l->slot_of = MR_ARENA_NEW(&planner->arena, int32_t, values);
    l->last_use = MR_ARENA_NEW(&planner->arena, int32_t, values);
    l->seen = MR_ARENA_NEW(&planner->arena, int32_t, values);
    l->is_shared = MR_ARENA_NEW(&planner->arena, bool, values);
    l->call_of = MR_ARENA_NEW(&planner->arena, int32_t, nodes);
    l->sequence = MR_ARENA_NEW(&planner->arena, int32_t, nodes);
    program->regions = NEW(mr_region, planner->region_count);
    program->feed_is_read = NEW(bool, planner->signature->feed_count);
    program->feed_slots = NEW(int32_t, planner->signature->feed_count);
    if (!l->slot_of || !l->last_use || !l->seen || !l->is_shared || !l->call_of || !l->sequence || !program->regions ||
        !program->feed_is_read || !program->feed_slots)
        return mr_fail_memory(error, values * sizeof(int32_t));
    program->region_count = planner->region_count;
    for (int32_t i = 0; i < planner->region_count; i++) {
        program->regions[i].parent = planner->regions[i].parent;
        pthread_mutex_init(&program->regions[i].mutex, nullptr);
        if (i > 0) program->regions[i].loop_index = program->regions[planner->regions[i].parent].loop_count++;
    }
    for (int32_t i = 0; i < planner->region_count; i++) {
        mr_region *region = &program->regions[i];
        region->loops = NEW(int32_t, region->loop_count);
        if (!region->loops) return mr_fail_memory(error, sizeof(int32_t) * (size_t)region->loop_count);
        if (i > 0) program->regions[region->parent].loops[region->loop_index] = i;
    }
    for (size_t i = 0; i < values; i++) l->slot_of[i] = l->last_use[i] = -1;
    return MR_OK;
}

/* The nodes that are called, in the order of their calls: with segments, segment by segment. */
static mr_status sequence_nodes(mr_lowering *l, mr_error *error)
{
    const mr_planner *planner = l->planner;
    mr_program *program = l->program;
    for (int32_t i = 0; i < planner->order_count; i++)
        if (must_run(planner, &planner->nodes[planner->order[i]]))
            l->sequence[program->call_count++] = planner->order[i];
    if (planner->has_flow) MR_TRY(mr_lower_sequence_segments(l, error));
    program->calls = NEW(mr_call, program->call_count);
    if (!program->calls) return mr_fail_memory(error, sizeof(mr_call) * (size_t)program->call_count);
    for (int32_t i = 0; i < planner->node_count; i++) l->call_of[i] = -1;
    for (int32_t i = 0; i < program->call_count; i++) l->call_of[l->sequence[i]] = i;
    return MR_OK;
}

static void give_slot(mr_lowering *l, int32_t value)
{
    if (l->slot_of[value] < 0) l->slot_of[value] = l->program->regions[l->planner->values[value].region].slot_count++;
}

/* Numbers the slots, and finds the last use of each value. */
static void assign_slots(mr_lowering *l)
{
    const mr_planner *planner = l->planner;
    const mr_signature *signature = planner->signature;
    mr_program *program = l->program;
    for (int32_t i = 0; i < program->call_count; i++) {
        const mr_plan_node *node = &planner->nodes[l->sequence[i]];
        for (int32_t j = 0; j < node->output_count; j++) give_slot(l, node->first_output + j);
        for (int32_t j = 0; j < node->input_count; j++) {
            int32_t value = node->inputs[j];
            if (l->last_use[value] < i) l->last_use[value] = i;
            if (value < signature->feed_count && !node->is_copy) program->feed_is_read[value] = true;
            give_slot(l, value);
        }
    }
    for (int32_t i = 0; i < signature->feed_count; i++) give_slot(l, i);
    for (int32_t i = 0; i < signature->fetch_count; i++) {
        int32_t value = planner->fetch_values[i];
        give_slot(l, value);
        if (value < signature->feed_count) program->feed_is_read[value] = true;
    }
    for (int32_t i = 0; i < signature->feed_count; i++) program->feed_slots[i] = l->slot_of[i];
}

static mr_origin origin_of(const mr_planner *planner, const mr_plan_value *value)
{
    if (value->kind == MR_VALUE_FEED) return (mr_origin){.index = value->index, .kind = MR_ORIGIN_FEED};
    if (value->producer < 0) return (mr_origin){.index = value->index, .kind = MR_ORIGIN_CONSTANT}; /* on a device */
    const mr_plan_node *producer = &planner->nodes[value->producer];
    mr_origin_kind kind = value->kind == MR_VALUE_CONSTANT ? MR_ORIGIN_CONSTANT
                          : producer->is_copy              ? MR_ORIGIN_COPY
                                                           : MR_ORIGIN_OUTPUT;
    return (mr_origin){producer->node, value->index, kind, value->computes, producer->name};
}

/* What the slots of each region contain before a run. */
static mr_status fill_slots(mr_lowering *l, mr_error *error)
{
    const mr_planner *planner = l->planner;
    mr_program *program = l->program;
    for (int32_t i = 0; i < program->region_count; i++) {
        mr_region *region = &program->regions[i];
        region->slots = NEW(mr_tensor, region->slot_count);
        region->origins = NEW(mr_origin, region->slot_count);
        region->constants = NEW(int32_t, region->slot_count);
        region->owned = NEW(int32_t, region->slot_count);
        region->invariants = NEW(int32_t, region->slot_count);
        if (!region->slots || !region->origins || !region->constants || !region->owned || !region->invariants)
            return mr_fail_memory(error, sizeof(mr_tensor) * (size_t)region->slot_count);
    }
    for (int32_t i = 0; i < planner->value_count; i++) {
        const mr_plan_value *value = &planner->values[i];
        mr_region *region = &program->regions[value->region];
        int32_t slot = l->slot_of[i];
        assert(slot < region->slot_count);
        if (slot < 0) continue;
        region->origins[slot] = origin_of(planner, value);
        if (value->kind == MR_VALUE_CONSTANT) {
            region->slots[slot] = mr_tensor_ref(&value->constant);
            region->constants[region->constant_count++] = slot;
        } else if (value->kind == MR_VALUE_OUTPUT && mr_lower_is_invariant(planner, value)) {
            region->invariants[region->invariant_count++] = slot;
        } else if (value->kind == MR_VALUE_OUTPUT) {
            region->owned[region->owned_count++] = slot;
        }
    }
    return MR_OK;
}

static mr_input_mode input_mode(const mr_planner *planner, const mr_plan_node *node, int32_t input)
{
    const mr_plan_value *value = &planner->values[node->inputs[input]];
    if (node->kernel && input < 31 && node->kernel->updates >> input & 1) return MR_INPUT_UPDATE;
    return value->is_ref && !node->input_is_ref[input] ? MR_INPUT_READ : MR_INPUT_SLOT;
}

/* A function owns its arguments, so its kernels may compute in place. */
static bool is_owned(const mr_planner *planner, const mr_plan_value *value)
{
    if (value->kind == MR_VALUE_FEED) return planner->signature->is_function && !planner->has_flow;
    return value->kind == MR_VALUE_OUTPUT;
}

static mr_status lower_inputs(mr_lowering *l, const mr_plan_node *node, int32_t place, mr_call *call, mr_error *error)
{
    mr_planner *planner = l->planner;
    mr_program *program = l->program;
    mr_call_input *inputs = NEW(mr_call_input, node->input_count);
    mr_dtype *dtypes = NEW(mr_dtype, node->input_count);
    if (!inputs || !dtypes) return mr_fail_memory(error, sizeof *inputs * (size_t)node->input_count);
    call->plain = true;
    for (int32_t i = 0; i < node->input_count; i++) l->seen[node->inputs[i]] = 0;
    for (int32_t i = 0; i < node->input_count; i++) l->seen[node->inputs[i]]++;
    for (int32_t i = 0; i < node->input_count; i++) {
        const mr_plan_value *value = &planner->values[node->inputs[i]];
        bool twice = l->seen[node->inputs[i]] > 1;
        inputs[i] = (mr_call_input){
            .slot = l->slot_of[node->inputs[i]],
            .mode = input_mode(planner, node, i),
            .last_use = is_owned(planner, value) && !value->fetched && !twice && !value->is_ref &&
                        l->last_use[node->inputs[i]] == place && !node->is_copy && !l->is_shared[node->inputs[i]],
        };
        call->plain &= inputs[i].mode == MR_INPUT_SLOT;
        dtypes[i] = value->dtype;
    }
    for (int32_t i = 0; i < node->input_count; i++) assert(inputs[i].slot >= 0);
    call->inputs = inputs;
    call->input_count = node->input_count;
    if (node->input_count > program->inputs_max) program->inputs_max = node->input_count;
    call->node.input_dtypes = dtypes;
    call->node.input_count = node->input_count;
    return MR_OK;
}

/* Slots to release after the call: inputs that are read for the last time, and outputs without readers. The source of a
 * copy to a device is kept until the end of the run, after waiting for the device. */
static mr_status lower_releases(mr_lowering *l, const mr_plan_node *node, int32_t place, mr_call *call, mr_error *error)
{
    mr_planner *planner = l->planner;
    mr_program *program = l->program;
    int32_t *releases = NEW(int32_t, node->input_count + node->output_count);
    if (!releases) return mr_fail_memory(error, sizeof *releases);
    for (int32_t i = 0; i < node->input_count; i++) l->seen[node->inputs[i]] = 0;
    for (int32_t i = 0; i < node->input_count; i++) {
        int32_t value = node->inputs[i];
        const mr_plan_value *v = &planner->values[value];
        if (!is_owned(planner, v) || v->fetched || l->last_use[value] != place || l->is_shared[value]) continue;
        bool again = l->seen[value]++ > 0;
        if (!again && !(node->is_copy && node->copy_to)) releases[call->release_count++] = l->slot_of[value];
    }
    for (int32_t i = 0; i < node->output_count; i++) {
        int32_t value = node->first_output + i;
        const mr_plan_value *v = &planner->values[value];
        if (l->last_use[value] < 0 && v->kind == MR_VALUE_OUTPUT && !v->fetched && !l->is_shared[value])
            releases[call->release_count++] = l->slot_of[value];
    }
    assert(call->release_count <= node->input_count + node->output_count);
    call->releases = releases;
    return MR_OK;
}

static mr_status lower_outputs(mr_lowering *l, const mr_plan_node *node, mr_call *call, mr_error *error)
{
    mr_planner *planner = l->planner;
    mr_program *program = l->program;
    mr_dtype *dtypes = NEW(mr_dtype, node->output_count);
    if (!dtypes) return mr_fail_memory(error, sizeof *dtypes);
    for (int32_t i = 0; i < node->output_count; i++) {
        const mr_plan_value *value = &planner->values[node->first_output + i];
        dtypes[i] = value->dtype;
        if (value->is_ref && i == call->ref_output_count) call->ref_output_count++;
    }
    if (!node->kernel || !node->kernel->updates) call->ref_output_count = 0;
    call->node.output_dtypes = dtypes;
    call->node.output_count = node->output_count;
    call->output_count = node->output_count;
    call->first_output = node->output_count > 0 ? l->slot_of[node->first_output] : 0;
    return MR_OK;
}

static mr_status prepare(mr_lowering *l, const mr_plan_node *node, mr_call *call, mr_error *error)
{
    mr_program *program = l->program;
    const mr_plan_context *context = l->planner->context;
    void *prepared = nullptr;
    if (node->is_copy) {
        call_copy *copy = NEW(call_copy, 1);
        if (!copy) return mr_fail_memory(error, sizeof *copy);
        *copy = (call_copy){.from = node->copy_from, .to = node->copy_to};
        prepared = copy;
    } else if (node->kernel && node->kernel->prepared_size_bytes > 0) {
        prepared = mr_arena_alloc(&program->arena, node->kernel->prepared_size_bytes);
        if (!prepared) return mr_fail_memory(error, node->kernel->prepared_size_bytes);
        if (node->kernel->prepare) {
            mr_status status = node->kernel->prepare(&call->node, prepared, error);
            if (status != MR_OK) return mr_call_named(&call->node, status, error);
        }
    }
    call->prepared = prepared;
    if (node->kernel && node->node->def->op->flags & MR_OP_STATEFUL)
        MR_TRY(context->node_state(context->session, context->states, node->node, &call->state, error));
    return MR_OK;
}

static void lower_scalars(const mr_plan_node *node, mr_call *call)
{
    bool has = !node->is_copy && node->kernel && node->kernel->elementwise && call->device->kind == MR_DEVICE_CPU;
    if (!has || !call->plain || call->input_count != 2 || call->output_count != 1) return;
    mr_dtype dtype = call->node.input_dtypes[0];
    mr_elementwise elementwise;
    if (call->node.input_dtypes[1] != dtype || !node->kernel->elementwise(dtype, &elementwise)) return;
    if (elementwise.rule == MR_OPERANDS_BIAS) return;
    call->scalars = elementwise.binary;
    call->scalars_in_place = mr_dtype_size(dtype) == mr_dtype_size(call->node.output_dtypes[0]);
}

static mr_status lower_node(mr_lowering *l, const mr_plan_node *node, int32_t place, mr_call *call, mr_error *error)
{
    call->source = node->node;
    call->kernel = node->kernel;
    call->run = node->is_copy ? run_copy : node->kernel ? node->kernel->run : nullptr;
    call->device = node->device;
    call->node = (mr_kernel_node){.name = node->name ? node->name : node->node->name,
                                  .op = node->is_copy ? "copy between devices" : node->node->op,
                                  .attrs = node->attrs ? node->attrs : &node->node->attrs,
                                  .device = node->device};
    if (node->kernel && !mr_node_has_flag(node->node, MR_OP_CALL)) call->node.op = node->kernel->op;
    if (node->kernel) call->node.host_outputs = node->kernel->host_outputs;
    MR_TRY(lower_inputs(l, node, place, call, error));
    MR_TRY(lower_outputs(l, node, call, error));
    MR_TRY(lower_releases(l, node, place, call, error));
    if (mr_plan_optimizes(l->planner)) lower_scalars(node, call);
    return prepare(l, node, call, error);
}

/* Tells each call which of its outputs are fetched. */
static mr_status lower_call_fetches(mr_lowering *l, mr_error *error)
{
    const mr_planner *planner = l->planner;
    mr_program *program = l->program;
    int32_t count = planner->signature->fetch_count, used = 0;
    mr_call_fetch *fetches = NEW(mr_call_fetch, count);
    if (!fetches) return mr_fail_memory(error, sizeof *fetches * (size_t)count);
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < count; i++) {
            const mr_plan_value *value = &planner->values[planner->fetch_values[i]];
            if (value->kind != MR_VALUE_OUTPUT || value->is_ref) continue;
            mr_call *call = &program->calls[l->call_of[value->producer]];
            if (pass == 1) fetches[call->first_fetch + call->fetch_count] = (mr_call_fetch){value->index, i};
            call->fetch_count++;
        }
        for (int32_t i = 0; i < program->call_count && pass == 0; i++) {
            program->calls[i].first_fetch = used;
            used += program->calls[i].fetch_count;
            program->calls[i].fetch_count = 0;
        }
    }
    assert(used <= count);
    program->fetches = fetches;
    return MR_OK;
}

static mr_status lower_fetches(mr_lowering *l, mr_error *error)
{
    mr_planner *planner = l->planner;
    mr_program *program = l->program;
    int32_t count = planner->signature->fetch_count;
    program->fetch_slots = NEW(int32_t, count);
    program->fetch_is_ref = NEW(bool, count);
    program->fetch_is_last = NEW(bool, count);
    if (!program->fetch_slots || !program->fetch_is_ref || !program->fetch_is_last)
        return mr_fail_memory(error, (size_t)count);
    for (int32_t i = 0; i < count; i++) l->seen[planner->fetch_values[i]] = 0;
    for (int32_t i = count - 1; i >= 0; i--) {
        const mr_plan_value *value = &planner->values[planner->fetch_values[i]];
        program->fetch_slots[i] = l->slot_of[planner->fetch_values[i]];
        assert(program->fetch_slots[i] >= 0 && value->fetched && value->region == 0);
        program->fetch_is_ref[i] = value->is_ref;
        bool is_later = l->seen[planner->fetch_values[i]]++ > 0;
        program->fetch_is_last[i] = value->kind == MR_VALUE_OUTPUT && !value->is_ref && !is_later;
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
static void lower_guard(mr_lowering *l)
{
    mr_program *program = l->program;
    int32_t guard = l->planner->signature->guard;
    for (int32_t i = 0; i < program->call_count; i++) program->calls[i].first_kept = -1;
    program->guard_segment = -1;
    if (guard < 0) return;
    int32_t slot = program->fetch_slots[guard];
    program->guard_calls = program->call_count;
    for (int32_t i = 0; i < program->call_count && program->guard_calls == program->call_count; i++) {
        const mr_call *call = &program->calls[i];
        bool has = slot >= call->first_output && slot < call->first_output + call->output_count;
        if (!has || (l->planner->has_flow && l->planner->nodes[l->sequence[i]].region > 0)) continue;
        program->guard_calls = i + 1;
        program->guard_segment = l->planner->nodes[l->sequence[i]].segment;
    }
    if (l->planner->has_flow) {
        program->guard_calls = 0; /* the run is not repeated */
        return;
    }
    for (int32_t i = 0; i < program->guard_calls; i++) {
        if (!is_kept(&program->calls[i])) continue;
        program->calls[i].first_kept = program->kept_count;
        program->kept_count += program->calls[i].output_count;
    }
    assert(program->guard_calls <= program->call_count);
}

static mr_status lower_waits(mr_lowering *l, mr_error *error)
{
    mr_program *program = l->program;
    mr_device *const *gpus = l->planner->context->gpus;
    program->waits = NEW(mr_device *, MR_DEVICES_MAX);
    if (!program->waits) return mr_fail_memory(error, sizeof(mr_device *) * MR_DEVICES_MAX);
    for (int i = 0; i < MR_DEVICES_MAX && l->planner->uses_gpu; i++)
        if (gpus[i]) program->waits[program->wait_count++] = gpus[i];
    return MR_OK;
}

/* Constants and feeds stay in their slots: only what a call made is released. */
static void check_releases(const mr_lowering *l)
{
    for (int32_t i = 0; i < l->program->call_count; i++) {
        const mr_call *call = &l->program->calls[i];
        const mr_region *region = &l->program->regions[l->planner->nodes[l->sequence[i]].region];
        for (int32_t j = 0; j < call->release_count; j++) {
            [[maybe_unused]] const mr_origin_kind origin = region->origins[call->releases[j]].kind;
            assert(origin == MR_ORIGIN_OUTPUT || origin == MR_ORIGIN_COPY || l->planner->signature->is_function);
        }
    }
}

static mr_status lower_all(mr_lowering *l, mr_error *error)
{
    mr_planner *planner = l->planner;
    mr_program *program = l->program;
    MR_TRY(allocate(l, error));
    MR_TRY(sequence_nodes(l, error));
    assign_slots(l);
    MR_TRY(fill_slots(l, error));
    if (planner->has_flow) MR_TRY(mr_lower_segments(l, error));
    for (int32_t i = 0; i < program->call_count; i++) {
        const mr_plan_node *node = &planner->nodes[l->sequence[i]];
        MR_TRY(lower_node(l, node, i, &program->calls[i], error));
        if (planner->has_flow) mr_lower_flow(l, node, &program->calls[i]);
    }
    if (planner->has_flow) MR_TRY(mr_lower_last_readers(l, error));
    if (planner->has_flow) MR_TRY(mr_lower_straight_loops(l, error));
    check_releases(l);
    MR_TRY(lower_call_fetches(l, error));
    MR_TRY(lower_fetches(l, error));
    lower_guard(l);
    return lower_waits(l, error);
}

mr_status mr_plan_lower(mr_planner *planner, mr_error *error)
{
    mr_lowering l = {.planner = planner};
    MR_TRY(mr_program_new(&l.program, error));
    l.program->signature = *planner->signature;
    l.program->arena = planner->kept;
    planner->kept = (mr_arena){0};
    mr_status status = lower_all(&l, error);
    if (status != MR_OK) {
        mr_program_unref(l.program);
        return status;
    }
    planner->program = l.program;
    return MR_OK;
}
