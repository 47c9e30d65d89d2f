/* Copy: inserts nodes that copy values to the devices where they are needed.
 *
 * A value is copied once for each device that needs it. A constant is copied when the plan is made. The value of a
 * variable is copied for each reader, after the nodes that the reader waits for, because it may change between
 * readers. */
#include "graph/plan/plan.h"

#include <assert.h>

/* An existing copy of a value. */
typedef struct made_copy {
    mr_device *to;
    int32_t value;
    struct made_copy *next;
} made_copy;

static mr_device *on_gpu(mr_device *device)
{
    return device && device->kind != MR_DEVICE_CPU ? device : nullptr;
}

/* The device on which the value is stored; null for host memory. */
static mr_device *home_of(const mr_planner *planner, const mr_plan_value *value)
{
    if (value->kind == MR_VALUE_FEED) return nullptr;
    if (value->kind == MR_VALUE_CONSTANT) return value->home;
    const mr_plan_node *node = &planner->nodes[value->producer];
    if (node->is_copy) return node->copy_to;
    if (node->outputs_at && value->dtype != MR_STRING) return node->outputs_at;
    if (!value->is_ref && mr_plan_on_host(node->kernel->host_outputs, value->index)) return nullptr;
    return on_gpu(node->device);
}

static mr_status copy_constant(mr_planner *planner, int32_t from, mr_device *to, int32_t *copied, mr_error *error)
{
    mr_plan_value made = planner->values[from];
    assert(to && made.kind == MR_VALUE_CONSTANT && !made.home && made.constant.buffer);
    const mr_tensor constant = made.constant;
    made.producer = -1;
    made.fetched = false;
    made.home = to;
    MR_TRY(mr_tensor_init_on(&made.constant, to, constant.dtype, constant.shape, error));
    mr_status status =
        to->functions->copy_in(to, made.constant.data, constant.data, mr_tensor_size_bytes(&constant), error);
    if (status == MR_OK) status = to->functions->wait(to, error);
    if (status == MR_OK) status = mr_plan_add_value(planner, made, copied, error);
    if (status != MR_OK) mr_tensor_deinit(&made.constant);
    return status;
}

/* consumer: the node whose control inputs a copy of a variable's value must wait for; null for a fetch */
static mr_status add_copy(mr_planner *planner, int32_t from, mr_device *home, mr_device *to,
                          const mr_plan_node *consumer, int32_t *copied, mr_error *error)
{
    mr_plan_value value = planner->values[from];
    assert(home != to && (value.producer >= 0 || value.kind == MR_VALUE_FEED));
    static const bool no_refs[1] = {false};
    int32_t *inputs = MR_ARENA_NEW(&planner->arena, int32_t, 1);
    if (!inputs) return mr_fail_memory(error, sizeof *inputs);
    inputs[0] = from;
    mr_plan_node node = {.node = value.producer >= 0 ? planner->nodes[value.producer].node
                                                     : planner->signature->feeds[value.index].node,
                         .device = planner->context->cpu,
                         .input_count = 1,
                         .inputs = inputs,
                         .input_is_ref = no_refs,
                         .output_count = 1,
                         .first_output = planner->value_count,
                         .region = value.region,
                         .condition = value.condition,
                         .live = true,
                         .is_copy = true,
                         .copy_from = home,
                         .copy_to = to};
    if (value.is_ref && consumer) {
        node.control_count = consumer->control_count;
        node.controls = consumer->controls;
    }
    int32_t index;
    MR_TRY(mr_plan_add_node(planner, node, &index, error));
    return mr_plan_add_value(planner,
                             (mr_plan_value){.kind = MR_VALUE_OUTPUT,
                                             .producer = index,
                                             .dtype = value.dtype,
                                             .shape = value.shape,
                                             .region = value.region,
                                             .condition = value.condition},
                             copied, error);
}

/* The value on the device `to`: itself, or a copy. */
static mr_status bring(mr_planner *planner, made_copy **copies, int32_t value, mr_device *to, int32_t consumer,
                       int32_t *brought, mr_error *error)
{
    const mr_plan_value *v = &planner->values[value];
    mr_device *home = home_of(planner, v);
    *brought = value;
    if (home == to) return MR_OK;
    for (const made_copy *at = copies[value]; at && !v->is_ref; at = at->next) {
        if (at->to != to) continue;
        assert(at->value != value);
        *brought = at->value;
        return MR_OK;
    }
    if (v->kind == MR_VALUE_CONSTANT && !v->is_ref && !home)
        MR_TRY(copy_constant(planner, value, to, brought, error));
    else
        MR_TRY(add_copy(planner, value, home, to, consumer >= 0 ? &planner->nodes[consumer] : nullptr, brought, error));
    made_copy *made = MR_ARENA_NEW(&planner->arena, made_copy, 1);
    if (!made) return mr_fail_memory(error, sizeof *made);
    *made = (made_copy){.to = to, .value = *brought, .next = copies[value]};
    copies[value] = made;
    return MR_OK;
}

mr_status mr_plan_copy(mr_planner *planner, mr_error *error)
{
    bool any = planner->uses_gpu;
    for (int32_t i = 0; i < planner->value_count; i++) any |= planner->values[i].home != nullptr;
    if (!any) return MR_OK;
    int32_t nodes = planner->node_count;
    made_copy **copies = MR_ARENA_NEW(&planner->arena, made_copy *, (size_t)planner->value_count + 1);
    if (!copies) return mr_fail_memory(error, sizeof *copies);
    for (int32_t i = 0; i < nodes; i++) {
        for (int32_t j = 0; planner->nodes[i].live && j < planner->nodes[i].input_count; j++) {
            const mr_plan_node *node = &planner->nodes[i];
            const mr_plan_value *value = &planner->values[node->inputs[j]];
            if (!node->kernel || node->input_is_ref[j] || value->dtype == MR_RESOURCE) continue;
            mr_device *to = mr_plan_on_host(node->kernel->host_inputs, j) ? nullptr : on_gpu(node->device);
            int32_t brought;
            MR_TRY(bring(planner, copies, node->inputs[j], to, i, &brought, error));
            planner->nodes[i].inputs[j] = brought;
        }
    }
    for (int32_t i = 0; i < planner->signature->fetch_count; i++) {
        int32_t brought;
        MR_TRY(bring(planner, copies, planner->fetch_values[i], nullptr, -1, &brought, error));
        planner->values[planner->fetch_values[i]].fetched = false;
        planner->fetch_values[i] = brought;
        planner->values[brought].fetched = true;
    }
    return MR_OK;
}
