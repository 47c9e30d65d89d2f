/* Devices: where tensors lie, and how they get from one to another.
 *
 * ```c
 * mr_error error = {0};
 * mr_device *device = nullptr;
 * if (mr_device_open("/gpu:0", &device, &error) != MR_OK && mr_device_open("/cpu:0", &device, &error) != MR_OK) return 1;
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
 * A process has one of each device: sessions, pipelines and all who open it share its queue, its memory and what that
 * keeps for reuse. Most programs open none themselves: mr_session_options and mr_dataset_prefetch_to_device take names. */
#ifndef MILLRACE_DEVICE_H
#define MILLRACE_DEVICE_H

#include <millrace/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_device mr_device;

/* The device of one of TensorFlow's names: "/gpu:0", "/device:GPU:0", "/job:localhost/replica:0/task:0/device:CPU:0",
 * "GPU". Without a number it is the first. Jobs and tasks are passed over: all is here.
 *
 * errors   MR_INVALID_ARGUMENT: the text names no device; MR_UNAVAILABLE: the machine, its driver or this build has no
 *          such device, and why
 * threads  any, as for all functions here */
mr_status mr_device_open(const char *name, mr_device **device, mr_error *error);
/* Gives back what open gave. With the last hold the device is closed; tensors that are left in its memory stay good, and
 * can still be brought to the host. Null is allowed. */
void mr_device_close(mr_device *device);
/* "/device:GPU:0". Borrowed from the device. */
const char *mr_device_name(const mr_device *device);

/* Where the elements lie: null in host memory. Elements on a device are not the processor's to read: mr_tensor_floats and
 * its like assert that they are in host memory, and so do all functions that look into tensors, but where they say that
 * any device will do. Borrowed: good as long as the tensor. */
mr_device *mr_tensor_device(const mr_tensor *tensor);
/* The tensor in host memory: a share where it is there already, else a copy, which is whole when this returns.
 *
 * copy    owned by the caller; overwritten
 * errors  MR_RESOURCE_EXHAUSTED; what failed on the device, MR_INTERNAL */
mr_status mr_tensor_to_host(const mr_tensor *tensor, mr_tensor *copy, mr_error *error);
/* The tensor in the device's memory: a share where it is there already, else a copy, which is whole when this returns.
 * From one GPU to another it goes by the host. Strings stay in host memory whatever the device, as in TensorFlow. */
mr_status mr_tensor_to_device(const mr_tensor *tensor, mr_device *device, mr_tensor *copy, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
