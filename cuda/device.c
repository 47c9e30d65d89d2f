/* Opening a GPU, and its table of functions.
 *
 * A copy from pinned memory of more than STAGE_BYTES_MIN runs concurrently with queued work: the copy stream fills a
 * stage, and the device's stream, when it reaches that point, copies the stage to the target at the speed of device
 * memory. So the batch of the next step is transferred while this step computes, and the order of the queue is
 * preserved. */
#include "cuda/device.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>

constexpr size_t STAGE_BYTES_MIN = (size_t)256 << 10;
constexpr int CAPABILITY_MAJOR_MIN = 8;

mr_status mr_cuda_result(const mr_cuda_device *device, mr_cu_result result, const char *action, mr_error *error)
{
    if (result == 0) return MR_OK;
    mr_status status = mr_cuda_check(device->driver, result, action, error);
    return mr_fail_prefix(error, status, "%s", device->device.name);
}

mr_status mr_cuda_enter(mr_cuda_device *device, mr_error *error)
{
    return mr_cuda_result(device, device->driver->context_set(device->context), "set the context", error);
}

/* ---- The table of base/device.h ---- */

static mr_status allocate_kind(mr_device *base, size_t size_bytes, mr_cuda_memory_kind kind, mr_buffer **buffer,
                               mr_error *error)
{
    mr_status status = mr_cuda_memory_allocate(((mr_cuda_device *)base)->memory, size_bytes, kind, buffer, error);
    return status == MR_OK ? MR_OK : mr_fail_prefix(error, status, "%s", base->name);
}

static mr_status allocate(mr_device *base, size_t size_bytes, mr_buffer **buffer, mr_error *error)
{
    return allocate_kind(base, size_bytes, MR_CUDA_QUEUE, buffer, error);
}

static mr_status allocate_for_async_copy(mr_device *base, size_t size_bytes, mr_buffer **buffer, mr_error *error)
{
    return allocate_kind(base, size_bytes, MR_CUDA_ASYNC, buffer, error);
}

static mr_status allocate_host(mr_device *base, size_t size_bytes, mr_buffer **buffer, mr_error *error)
{
    return allocate_kind(base, size_bytes, MR_CUDA_PINNED, buffer, error);
}

static mr_cu_pointer address(const void *data)
{
    return (mr_cu_pointer)(uintptr_t)data;
}

/* Creates the stage's events, and ensures room for size_bytes. */
static mr_status prepare_stage(mr_cuda_device *device, unsigned i, size_t size_bytes, mr_error *error)
{
    const mr_cuda_driver *driver = device->driver;
    typeof(device->stages[i]) *stage = &device->stages[i];
    if (stage->filled == nullptr)
        MR_TRY(mr_cuda_result(device, driver->event_new(&stage->filled, MR_CU_EVENT_DISABLE_TIMING), "create an event",
                              error));
    if (stage->emptied == nullptr)
        MR_TRY(mr_cuda_result(device, driver->event_new(&stage->emptied, MR_CU_EVENT_DISABLE_TIMING), "create an event",
                              error));
    if (stage->buffer != nullptr && mr_buffer_size(stage->buffer) >= size_bytes) return MR_OK;
    mr_buffer_unref(stage->buffer);
    stage->buffer = nullptr;
    MR_TRY(allocate(&device->device, size_bytes, &stage->buffer, error));
    /* The block may still be used by queued work: the copy stream waits for all of that once. */
    return mr_cuda_result(device, driver->event_record(stage->emptied, device->stream), "record an event", error);
}

static mr_status copy_staged(mr_cuda_device *device, void *target, const void *host, size_t size_bytes, mr_error *error)
{
    const mr_cuda_driver *driver = device->driver;
    unsigned i = device->next_stage++ % MR_CUDA_STAGES;
    MR_TRY(prepare_stage(device, i, size_bytes, error));
    mr_cu_pointer stage = address(mr_buffer_data(device->stages[i].buffer));
    mr_cu_event filled = device->stages[i].filled, emptied = device->stages[i].emptied;
    mr_cu_result result = driver->stream_wait_event(device->copy_stream, emptied, 0);
    if (result == 0) result = driver->copy_in(stage, host, size_bytes, device->copy_stream);
    if (result == 0) result = driver->event_record(filled, device->copy_stream);
    if (result == 0) result = driver->stream_wait_event(device->stream, filled, 0);
    if (result == 0) result = driver->copy(address(target), stage, size_bytes, device->stream);
    if (result == 0) result = driver->event_record(emptied, device->stream);
    return mr_cuda_result(device, result, "copy to the GPU", error);
}

static mr_status copy_in(mr_device *base, void *target, const void *host, size_t size_bytes, mr_error *error)
{
    mr_cuda_device *device = (mr_cuda_device *)base;
    if (size_bytes == 0) return MR_OK;
    MR_TRY(mr_cuda_enter(device, error));
    if (size_bytes >= STAGE_BYTES_MIN && mr_cuda_memory_is_pinned(device->memory, host, size_bytes)) {
        pthread_mutex_lock(&device->mutex);
        mr_status status = copy_staged(device, target, host, size_bytes, error);
        pthread_mutex_unlock(&device->mutex);
        return status;
    }
    return mr_cuda_result(device, device->driver->copy_in(address(target), host, size_bytes, device->stream),
                          "copy to the GPU", error);
}

static mr_status copy_out(mr_device *base, void *host, const void *source, size_t size_bytes, mr_error *error)
{
    mr_cuda_device *device = (mr_cuda_device *)base;
    if (size_bytes == 0) return MR_OK;
    MR_TRY(mr_cuda_enter(device, error));
    return mr_cuda_result(device, device->driver->copy_out(host, address(source), size_bytes, device->stream),
                          "copy from the GPU", error);
}

static mr_status copy(mr_device *base, void *target, const void *source, size_t size_bytes, mr_error *error)
{
    mr_cuda_device *device = (mr_cuda_device *)base;
    if (size_bytes == 0) return MR_OK;
    MR_TRY(mr_cuda_enter(device, error));
    return mr_cuda_result(device, device->driver->copy(address(target), address(source), size_bytes, device->stream),
                          "copy within the GPU", error);
}

static mr_status wait(mr_device *base, mr_error *error)
{
    mr_cuda_device *device = (mr_cuda_device *)base;
    MR_TRY(mr_cuda_enter(device, error));
    return mr_cuda_result(device, device->driver->stream_wait(device->stream), "wait for the GPU", error);
}

/* ---- On the copy stream ---- */

static mr_status copy_async(mr_device *base, void *target, const void *host, size_t size_bytes, mr_error *error)
{
    mr_cuda_device *device = (mr_cuda_device *)base;
    if (size_bytes == 0) return MR_OK;
    MR_TRY(mr_cuda_enter(device, error));
    return mr_cuda_result(device, device->driver->copy_in(address(target), host, size_bytes, device->copy_stream),
                          "copy to the GPU", error);
}

/* Threads that wait for an event sleep, so that they do not take a processor from threads that decode. */
static mr_status event_new(mr_device *base, mr_event **event, mr_error *error)
{
    mr_cuda_device *device = (mr_cuda_device *)base;
    mr_cu_event created = nullptr;
    *event = nullptr;
    MR_TRY(mr_cuda_enter(device, error));
    mr_cu_result result = device->driver->event_new(&created, MR_CU_EVENT_DISABLE_TIMING | MR_CU_EVENT_BLOCKING_SYNC);
    if (result == 0) *event = (mr_event *)created;
    return mr_cuda_result(device, result, "create an event", error);
}

static void event_free(mr_device *base, mr_event *event)
{
    const mr_cuda_device *device = (mr_cuda_device *)base;
    if (event == nullptr) return;
    (void)device->driver->context_set(device->context);
    (void)device->driver->event_free((mr_cu_event)event);
}

static mr_status event_record(mr_device *base, mr_event *event, mr_error *error)
{
    mr_cuda_device *device = (mr_cuda_device *)base;
    MR_TRY(mr_cuda_enter(device, error));
    return mr_cuda_result(device, device->driver->event_record((mr_cu_event)event, device->copy_stream),
                          "record an event", error);
}

static mr_status queue_wait(mr_device *base, mr_event *event, mr_error *error)
{
    mr_cuda_device *device = (mr_cuda_device *)base;
    MR_TRY(mr_cuda_enter(device, error));
    return mr_cuda_result(device, device->driver->stream_wait_event(device->stream, (mr_cu_event)event, 0),
                          "order work after a copy", error);
}

static mr_status event_wait(mr_device *base, mr_event *event, mr_error *error)
{
    mr_cuda_device *device = (mr_cuda_device *)base;
    MR_TRY(mr_cuda_enter(device, error));
    return mr_cuda_result(device, device->driver->event_wait((mr_cu_event)event), "wait for a copy", error);
}

static void free_device(mr_device *base)
{
    mr_cuda_device *device = (mr_cuda_device *)base;
    const mr_cuda_driver *driver = device->driver;
    (void)driver->context_set(device->context);
    (void)driver->stream_wait(device->copy_stream);
    (void)driver->stream_wait(device->stream);
    for (int i = 0; i < MR_CUDA_STAGES; i++) {
        mr_buffer_unref(device->stages[i].buffer);
        if (device->stages[i].filled != nullptr) (void)driver->event_free(device->stages[i].filled);
        if (device->stages[i].emptied != nullptr) (void)driver->event_free(device->stages[i].emptied);
    }
    if (device->blas_handle != nullptr) (void)device->blas->destroy(device->blas_handle);
    if (device->dnn_handle != nullptr) (void)device->dnn->destroy(device->dnn_handle);
    for (int i = 0; i < MR_CUDA_MODULE_COUNT; i++)
        if (device->modules[i] != nullptr) (void)driver->module_free(device->modules[i]);
    mr_cuda_memory_close(device->memory);
}

static const mr_device_functions functions = {
    .allocate = allocate,
    .allocate_host = allocate_host,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy = copy,
    .wait = wait,
    .allocate_for_async_copy = allocate_for_async_copy,
    .copy_async = copy_async,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .queue_wait = queue_wait,
    .event_wait = event_wait,
    .free = free_device,
};

/* ---- Opening ---- */

/* A device that exists, is new enough and has memory pools. */
static mr_status choose(const mr_cuda_driver *driver, int index, mr_cu_device *chosen, int *processors, mr_error *error)
{
    int count = 0, major = 0, minor = 0, pools = 0;
    char name[128] = "";
    mr_cu_result result = driver->device_count(&count);
    if (result != 0 && result != MR_CU_NO_DEVICE) return mr_cuda_check(driver, result, "count the GPUs", error);
    if (index < 0 || index >= count)
        return mr_fail(error, MR_UNAVAILABLE, "there is no GPU %d: the driver reports %d", index, count);
    result = driver->device_get(chosen, index);
    if (result == 0) result = driver->device_name(name, sizeof name, *chosen);
    if (result == 0) result = driver->device_attribute(&major, MR_CU_ATTRIBUTE_MAJOR, *chosen);
    if (result == 0) result = driver->device_attribute(&minor, MR_CU_ATTRIBUTE_MINOR, *chosen);
    if (result == 0) result = driver->device_attribute(&pools, MR_CU_ATTRIBUTE_POOLS, *chosen);
    if (result == 0) result = driver->device_attribute(processors, MR_CU_ATTRIBUTE_PROCESSORS, *chosen);
    MR_TRY(mr_cuda_check(driver, result, "query the GPU", error));
    if (major < CAPABILITY_MAJOR_MIN || pools == 0)
        return mr_fail(error, MR_UNAVAILABLE, "GPU %d (%s, compute capability %d.%d) is too old: %d.0 is required",
                       index, name, major, minor, CAPABILITY_MAJOR_MIN);
    return MR_OK;
}

/* Creates context and streams. After a failure, those already created are destroyed. */
static mr_status make_parts(const mr_cuda_driver *driver, mr_cu_device chosen, mr_cuda_memory_parts *parts,
                            mr_error *error)
{
    *parts = (mr_cuda_memory_parts){.driver = driver, .device = chosen};
    mr_cu_pool pool = nullptr;
    uint64_t keep_all = UINT64_MAX;
    MR_TRY(mr_cuda_check(driver, driver->context_retain(&parts->context, chosen), "create a context", error));
    mr_cu_result result = driver->context_set(parts->context);
    if (result == 0) result = driver->stream_new(&parts->stream, MR_CU_STREAM_NON_BLOCKING);
    if (result == 0) result = driver->stream_new(&parts->copy_stream, MR_CU_STREAM_NON_BLOCKING);
    if (result == 0) result = driver->device_pool(&pool, chosen);
    if (result == 0) result = driver->pool_set(pool, MR_CU_POOL_RELEASE_THRESHOLD, &keep_all);
    if (result == 0) return MR_OK;
    mr_status status = mr_cuda_check(driver, result, "create streams and memory pools", error);
    if (parts->stream != nullptr) (void)driver->stream_free(parts->stream);
    if (parts->copy_stream != nullptr) (void)driver->stream_free(parts->copy_stream);
    (void)driver->context_release(chosen);
    return status;
}

static void release_parts(const mr_cuda_memory_parts *parts)
{
    (void)parts->driver->stream_free(parts->stream);
    (void)parts->driver->stream_free(parts->copy_stream);
    (void)parts->driver->context_release(parts->device);
}

mr_status mr_cuda_device_new(const mr_cuda_system *system, int index, mr_device **result, mr_error *error)
{
    mr_cu_device chosen;
    mr_cuda_memory_parts parts;
    int processors = 1;
    *result = nullptr;
    MR_TRY(choose(system->driver, index, &chosen, &processors, error));
    MR_TRY(make_parts(system->driver, chosen, &parts, error));
    mr_cuda_device *device = calloc(1, sizeof *device);
    parts.owner = device;
    mr_status status =
        device != nullptr ? mr_cuda_memory_new(parts, &device->memory, error) : mr_fail_memory(error, sizeof *device);
    if (status != MR_OK) {
        release_parts(&parts);
        free(device);
        return status;
    }
    device->device = (mr_device){.functions = &functions, .kind = MR_DEVICE_GPU};
    snprintf(device->device.name, sizeof device->device.name, "/device:GPU:%d", index);
    device->system = *system;
    device->driver = system->driver;
    device->context = parts.context;
    device->stream = parts.stream;
    device->copy_stream = parts.copy_stream;
    device->processors = processors;
    pthread_mutex_init(&device->mutex, nullptr);
    *result = &device->device;
    return MR_OK;
}
