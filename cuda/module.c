/* Loading kernels, launching them, and the libraries' handles. */
#include "cuda/device.h"

#include <limits.h>

#define NAME(name) #name,
static const char *const names[MR_CUDA_MODULE_COUNT] = {MR_CUDA_MODULES(NAME)};

static mr_status load(mr_cuda_device *device, mr_cuda_module module, mr_error *error)
{
    const void *image = device->system.image(module);
    if (image == nullptr)
        return mr_fail(error, MR_UNAVAILABLE, "%s: this build has no %s kernels", device->device.name, names[module]);
    mr_cu_result result = device->driver->module_load(&device->modules[module], image);
    if (result == MR_CU_NO_BINARY)
        return mr_fail(error, MR_UNIMPLEMENTED, "%s: the %s kernels were not compiled for this GPU",
                       device->device.name, names[module]);
    return mr_cuda_result(device, result, "load kernels", error);
}

mr_status mr_cuda_find(const mr_device *base, mr_cuda_module module, const char *name, mr_cu_function *function,
                       mr_error *error)
{
    mr_cuda_device *device = (mr_cuda_device *)base;
    MR_TRY(mr_cuda_enter(device, error));
    pthread_mutex_lock(&device->mutex);
    mr_status status = device->modules[module] != nullptr ? MR_OK : load(device, module, error);
    pthread_mutex_unlock(&device->mutex);
    MR_TRY(status);
    mr_cu_result result = device->driver->module_function(function, device->modules[module], name);
    if (result != 0)
        return mr_fail_prefix(error, mr_cuda_result(device, result, "find a kernel", error), "kernel %s", name);
    return MR_OK;
}

mr_cuda_grid mr_cuda_grid_for(const mr_cuda_device *device, int64_t count)
{
    int64_t blocks = (count + 255) / 256, enough = (int64_t)device->processors * 32;
    return (mr_cuda_grid){.x = blocks < enough ? blocks : enough, .y = 1, .width = 256};
}

mr_status mr_cuda_launch(mr_kernel_call *call, mr_cu_function function, mr_cuda_grid grid, void *arguments,
                         mr_error *error)
{
    mr_cuda_device *device = mr_cuda_of(call);
    if (grid.x == 0 || grid.y == 0) return MR_OK;
    if (grid.x > INT_MAX || grid.y > 65535)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "too many elements for one GPU kernel");
    MR_TRY(mr_cuda_enter(device, error));
    void *parameters[] = {arguments};
    mr_cu_result result =
        device->driver->launch(function, (unsigned)grid.x, (unsigned)grid.y, 1, grid.width,
                               grid.height > 0 ? grid.height : 1, 1, 0, device->stream, parameters, nullptr);
    if (result == 0) return MR_OK;
    mr_status status = mr_cuda_result(device, result, "start a kernel", error);
    return mr_fail_prefix(error, status, "%s (%s)", call->node->name, call->node->op);
}

mr_status mr_cuda_scratch(mr_kernel_call *call, size_t size_bytes, mr_buffer **buffer, mr_error *error)
{
    return call->device->functions->allocate(call->device, size_bytes, buffer, error);
}

/* ---- Libraries ---- */

static mr_status make_blas(mr_cuda_device *device, mr_error *error)
{
    MR_TRY(device->system.open_blas(&device->blas, error));
    mr_blas_handle handle = nullptr;
    mr_blas_result result = device->blas->create(&handle);
    if (result == 0) result = device->blas->set_stream(handle, device->stream);
    if (result != 0)
        return mr_fail(error, MR_INTERNAL, "%s: cuBLAS cannot be initialized (error %u)", device->device.name, result);
    device->blas_handle = handle;
    return MR_OK;
}

mr_status mr_cuda_blas_handle(mr_cuda_device *device, mr_error *error)
{
    MR_TRY(mr_cuda_enter(device, error));
    pthread_mutex_lock(&device->mutex);
    mr_status status = device->blas_handle != nullptr ? MR_OK : make_blas(device, error);
    pthread_mutex_unlock(&device->mutex);
    return status;
}

static mr_status make_dnn(mr_cuda_device *device, mr_error *error)
{
    mr_dnn_handle handle = nullptr;
    mr_dnn_result result = device->dnn->create(&handle);
    if (result == 0) result = device->dnn->set_stream(handle, device->stream);
    if (result != 0)
        return mr_fail(error, MR_INTERNAL, "%s: cuDNN cannot be initialized: %s", device->device.name,
                       device->dnn->error_string(result));
    device->dnn_handle = handle;
    return MR_OK;
}

mr_status mr_cuda_dnn_handle(mr_cuda_device *device, bool *is_available, mr_error *error)
{
    mr_status status = MR_OK;
    MR_TRY(mr_cuda_enter(device, error));
    pthread_mutex_lock(&device->mutex);
    if (device->dnn == nullptr && !device->dnn_is_absent)
        device->dnn_is_absent = device->system.open_dnn(&device->dnn, nullptr) != MR_OK;
    if (!device->dnn_is_absent && device->dnn_handle == nullptr) status = make_dnn(device, error);
    *is_available = device->dnn_handle != nullptr;
    pthread_mutex_unlock(&device->mutex);
    return status;
}
