/* What a run shows of its values to a watch (mr_run_options.watch). */
#include "graph/run/trace.h"

#include "base/buffer.h"
#include "base/device.h"
#include "base/status.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

constexpr int DEVICE_NAME_SIZE = 128;

static mr_status show_value(const mr_watch *watch, const mr_node *node, int32_t output, const mr_device *device,
                            const mr_tensor *value, mr_error *error)
{
    char name[DEVICE_NAME_SIZE];
    mr_tensor host = {0};
    struct timespec now;
    if (!value->buffer || mr_dtype_size(value->dtype) == 0) return MR_OK; /* dead, or a handle */
    MR_TRY(mr_tensor_to_host(value, &host, error));
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, sizeof name, MR_TASK_NAME "%s", device->name);
    mr_watched watched = {.node = node->name,
                          .op = node->op,
                          .output = output,
                          .device = name,
                          .time_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000,
                          .value = &host};
    mr_status status = watch->see(watch->context, &watched, error);
    mr_tensor_deinit(&host);
    if (status != MR_OK && error && error->status == MR_OK) /* the watch has not said why */
        return mr_fail(error, status, "%s:%d: the watch has ended the run", node->name, (int)output);
    return status;
}

/* Of a reference, the value of its variable, if it has one. */
static mr_status show(const mr_watch *watch, const mr_node *node, int32_t output, const mr_device *device,
                      const mr_tensor *value, mr_error *error)
{
    assert(output >= 0 && output < node->output_count);
    mr_resource *variable = node->outputs[output].is_ref ? mr_tensor_resource(value, &mr_variable_class) : nullptr;
    if (!variable) return show_value(watch, node, output, device, value, error);
    mr_tensor now = {0};
    if (mr_variable_snapshot((mr_variable_state *)variable, &now, nullptr) != MR_OK) return MR_OK;
    mr_status status = show_value(watch, node, output, device, &now, error);
    mr_tensor_deinit(&now);
    return status;
}

mr_status mr_watch_call(const mr_frame *frame, const mr_call *call, mr_error *error)
{
    assert(frame->run->watch && !frame->would_wait);
    if (!call->kernel || frame->program->signature.is_function) return MR_OK;
    for (int32_t i = 0; i < call->output_count; i++) {
        int32_t slot = call->first_output + i;
        const mr_origin *origin = &frame->region->origins[slot];
        assert(origin->kind == MR_ORIGIN_OUTPUT);
        const mr_node *node = origin->computes ? origin->computes : origin->node;
        const int32_t index = origin->computes ? 0 : origin->index;
        MR_TRY(show(frame->run->watch, node, index, call->device, &frame->slots[slot], error));
    }
    return MR_OK;
}

mr_status mr_watch_constants(const mr_watch *watch, const mr_program *program, mr_device *cpu, mr_error *error)
{
    for (int32_t r = 0; r < program->region_count; r++) {
        const mr_region *region = &program->regions[r];
        for (int32_t i = 0; i < region->constant_count; i++) {
            const mr_origin *origin = &region->origins[region->constants[i]];
            const mr_tensor *value = &region->slots[region->constants[i]];
            const mr_device *device = mr_tensor_device(value);
            if (origin->kind != MR_ORIGIN_CONSTANT || !origin->node) continue; /* a copy on another device */
            MR_TRY(show(watch, origin->node, origin->index, device ? device : cpu, value, error));
        }
    }
    return MR_OK;
}
