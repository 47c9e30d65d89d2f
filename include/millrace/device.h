/* Devices: where tensors are stored, and how they are copied between devices.
 *
 * ```c
 * mr_error error = {0};
 * mr_device *device = nullptr;
 * if (mr_device_open("/gpu:0", &device, &error) != MR_OK && mr_device_open("/cpu:0", &device, &error) != MR_OK)
 *     return 1;
 * mr_tensor three = {0}, there = {0}, back = {0};
 * if (mr_tensor_init_float(&three, 3.0f, &error) != MR_OK) return 1;
 * if (mr_tensor_to_device(&three, device, &there, &error) != MR_OK) return 1;
 * if (mr_tensor_to_host(&there, &back, &error) != MR_OK) return 1;
 * printf("%g from %s\n", mr_tensor_floats(&back)[0], mr_device_name(device));
 * mr_tensor_deinit(&three);
 * mr_tensor_deinit(&there);
 * mr_tensor_deinit(&back);
 * mr_device_close(device);
 * ```
 *
 * A process has one instance of each device. Sessions, pipelines and all callers of mr_device_open use the same queue,
 * memory and memory cache. Most programs open no device themselves: mr_session_options and
 * mr_dataset_prefetch_to_device take names. */
#ifndef MILLRACE_DEVICE_H
#define MILLRACE_DEVICE_H

#include <millrace/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_device mr_device;

/* Opens the device with one of TensorFlow's names: "/gpu:0", "/device:GPU:0",
 * "/job:localhost/replica:0/task:0/device:CPU:0", "GPU". Without a number, the first one. Jobs, replicas and tasks are
 * ignored: every device is local.
 *
 * errors   MR_INVALID_ARGUMENT: not the name of a device; MR_UNAVAILABLE: the machine, its driver or this build has no
 *          such device; the message states the reason
 * threads  any, as for all functions of this header */
MR_API mr_status mr_device_open(const char *name, mr_device **device, mr_error *error);
/* Releases the reference returned by open. The last release closes the device. Tensors that remain in its memory stay
 * valid and can still be copied to the host. Null is allowed. */
MR_API void mr_device_close(mr_device *device);
/* "/device:GPU:0". Borrowed from the device. */
MR_API const char *mr_device_name(const mr_device *device);

/* Returns the device that stores the elements; null for host memory. Elements on a device cannot be read by the
 * processor: mr_tensor_floats and the related functions assert that they are in host memory, as do all functions that
 * access elements, unless they are documented to accept any device. Borrowed; valid as long as the tensor. */
MR_API mr_device *mr_tensor_device(const mr_tensor *tensor);
/* Returns the tensor in host memory: a reference if it is already stored there, otherwise a copy. The copy is complete
 * on return.
 *
 * copy    owned by the caller; overwritten
 * errors  MR_RESOURCE_EXHAUSTED; MR_INTERNAL with the device's error */
MR_API mr_status mr_tensor_to_host(const mr_tensor *tensor, mr_tensor *copy, mr_error *error);
/* Returns the tensor in the device's memory: a reference if it is already stored there, otherwise a copy. The copy is
 * complete on return. Copies between GPUs pass through the host. Strings stay in host memory on any device, as in
 * TensorFlow. */
MR_API mr_status mr_tensor_to_device(const mr_tensor *tensor, mr_device *device, mr_tensor *copy, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
