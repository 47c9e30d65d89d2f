/* Exchange of tensors with other libraries in the same process, without copying: DLPack. Here both sides are this
 * library:
 *
 * ```c
 * mr_error error = {0};
 * mr_tensor image = {0}, same = {0};
 * struct DLManagedTensorVersioned *managed = nullptr;
 * if (mr_tensor_init(&image, MR_UINT8, MR_SHAPE(480, 640, 3), &error) != MR_OK) return 1;
 * if (mr_tensor_to_dlpack(&image, &managed, &error) != MR_OK) return 1;
 * mr_tensor_deinit(&image);
 * if (mr_tensor_from_dlpack(managed, &same, &error) != MR_OK) return 1;
 * printf("%lld bytes\n", (long long)mr_tensor_count(&same));
 * mr_tensor_deinit(&same);
 * ```
 *
 * The structs are those of DLPack's header dlpack/dlpack.h, major version 1, which a program may include too; this
 * header only declares their names. Their layout is fixed, so that programs and libraries of different ages can
 * exchange tensors. NumPy, PyTorch and JAX pass them to each other in a PyCapsule: "dltensor_versioned" is a
 * DLManagedTensorVersioned, and "dltensor", which libraries from before DLPack 1.0 use, a DLManagedTensor.
 *
 * All functions may be called, and all deleters and releases run, on any thread. */
#ifndef MILLRACE_DLPACK_H
#define MILLRACE_DLPACK_H

#include <millrace/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensorVersioned;
struct DLManagedTensor;

/* Shares the tensor's elements. The result references the buffer until its deleter is called, and the tensor stays the
 * caller's. Strides are row-major. It is marked as read-only if the buffer has other references than the tensor's; if
 * it is not, writes of the consumer are visible in the tensor.
 *
 * A tensor on a GPU is exported as memory of that CUDA device, after the work queued for it has completed. The consumer
 * calls the deleter after its own work has completed.
 * errors   MR_INVALID_ARGUMENT: an empty tensor, or one without a buffer, which an input of a user function may be;
 *          MR_UNIMPLEMENTED: DLPack has no such dtype (strings, quantized numbers); MR_RESOURCE_EXHAUSTED; MR_INTERNAL
 *          with the device's error */
MR_API mr_status mr_tensor_to_dlpack(const mr_tensor *tensor, struct DLManagedTensorVersioned **managed,
                                     mr_error *error);
/* The same for consumers from before DLPack 1.0. This form cannot be marked as read-only: if the buffer has other
 * references than the tensor's, the elements are copied.
 * errors  also MR_FAILED_PRECONDITION: such a buffer on a GPU */
MR_API mr_status mr_tensor_to_dlpack_unversioned(const mr_tensor *tensor, struct DLManagedTensor **managed,
                                                 mr_error *error);

/* Takes over a tensor of another library. Contiguous elements are referenced, and the deleter is called when the last
 * reference to the buffer is released. Elements in host memory that are not contiguous, or not aligned to their size,
 * are copied, and the deleter is called before the function returns. On an error the deleter is not called: `managed`
 * stays the caller's.
 *
 * The library never changes referenced elements in place, because their producer may still use them. If they are marked
 * as read-only, the program must not change them either.
 *
 * CUDA memory becomes a tensor on that GPU. The producer's work on it must have completed.
 * tensor  overwritten; empty on an error
 * errors  MR_INVALID_ARGUMENT: another major version, an invalid shape, stride, offset or address, or a bool that is
 *         neither 0 nor 1; MR_UNIMPLEMENTED: a dtype, a device or a layout that tensors cannot have; MR_UNAVAILABLE: no
 *         such GPU; MR_RESOURCE_EXHAUSTED */
MR_API mr_status mr_tensor_from_dlpack(struct DLManagedTensorVersioned *managed, mr_tensor *tensor, mr_error *error);
/* The same for producers from before DLPack 1.0. */
MR_API mr_status mr_tensor_from_dlpack_unversioned(struct DLManagedTensor *managed, mr_tensor *tensor, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
