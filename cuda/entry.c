/* The GPU in the registry of devices, with the real driver and libraries. */
#include "cuda/device.h"
#include "cuda/libraries.h"

mr_status mr_cuda_device_open(int index, mr_device **device, mr_error *error)
{
    *device = nullptr;
    if (mr_cuda_module_image(MR_CUDA_elementwise) == nullptr)
        return mr_fail(error, MR_UNAVAILABLE, "this build has no GPU kernels: nvcc was not found");
    mr_cuda_system system = {
        .open_blas = mr_cuda_blas_open, .open_dnn = mr_cuda_dnn_open, .image = mr_cuda_module_image};
    MR_TRY(mr_cuda_driver_open(&system.driver, error));
    return mr_cuda_device_new(&system, index, device, error);
}

const mr_device_entry mr_cuda_device_entry = {.kind_name = "GPU", .kind = MR_DEVICE_GPU, .open = mr_cuda_device_open};
