/* The GPU as a device of base/device.h, and what its kernels need: memory, streams, functions, cuBLAS, cuDNN.
 *
 * All work of a device is queued on one stream, in order, so memory that is returned may be reused while the work that
 * used it is still queued. Only copies from pinned memory and concurrent copies run on a separate stream, the copy
 * stream.
 *
 * Lock order: the memory's mutex is innermost; no driver call that waits is made while it is held. */
#ifndef MR_CUDA_DEVICE_H
#define MR_CUDA_DEVICE_H

#include "base/device.h"
#include "base/kernel.h"
#include "cuda/libraries.h"

#include <pthread.h>

typedef struct mr_cuda_memory mr_cuda_memory;

/* The families of kernels: one module each, compiled from cuda/NAME.cu. */
#define MR_CUDA_MODULES(X)                                                                                             \
    X(elementwise) X(reduce) X(batch_norm) X(pool) X(softmax) X(conv) X(array) X(random) X(training)
typedef enum mr_cuda_module {
#define MR_MODULE(name) MR_CUDA_##name,
    MR_CUDA_MODULES(MR_MODULE)
#undef MR_MODULE
        MR_CUDA_MODULE_COUNT
} mr_cuda_module;

/* The compiled kernels of a module for all supported GPUs; null in a build without nvcc. */
const void *mr_cuda_module_image(mr_cuda_module module);

/* Where a device gets its components: the real ones, or those of a test. */
typedef struct mr_cuda_system {
    const mr_cuda_driver *driver;
    mr_status (*open_blas)(const mr_cuda_blas **blas, mr_error *error);
    mr_status (*open_dnn)(const mr_cuda_dnn **dnn, mr_error *error);
    const void *(*image)(mr_cuda_module module);
} mr_cuda_system;

constexpr int MR_CUDA_STAGES = 2;

typedef struct mr_cuda_device {
    mr_device device; /* first */
    mr_cuda_system system;
    const mr_cuda_driver *driver;
    mr_cuda_memory *memory; /* owns context and streams; outlives the device while buffers are in use */
    mr_cu_context context;
    mr_cu_stream stream;
    int processors;
    pthread_mutex_t mutex; /* guards the members below, which are initialized on first use */
    mr_cu_module modules[MR_CUDA_MODULE_COUNT];
    const mr_cuda_blas *blas;
    mr_blas_handle blas_handle;
    const mr_cuda_dnn *dnn;
    mr_dnn_handle dnn_handle;
    bool dnn_is_absent; /* cuDNN was searched and not found */
    /* Copies from pinned memory go to a stage on their own stream, and from there to their target in order. */
    mr_cu_stream copy_stream;
    struct {
        mr_buffer *buffer;
        mr_cu_event filled, emptied;
    } stages[MR_CUDA_STAGES];
    unsigned next_stage;
} mr_cuda_device;

/* Opens device `index` of the system.
 * errors  MR_UNAVAILABLE: no driver, no such device, a device that is too old, or a build without kernels */
mr_status mr_cuda_device_new(const mr_cuda_system *system, int index, mr_device **device, mr_error *error);
/* The same with the machine's own libraries: the open function of the device entry. */
mr_status mr_cuda_device_open(int index, mr_device **device, mr_error *error);

/* ---- For kernels ---- */

static inline mr_cuda_device *mr_cuda_of(const mr_kernel_call *call)
{
    return (mr_cuda_device *)call->device;
}

/* A driver's result as a status; "GPU 0: ACTION: reason". */
mr_status mr_cuda_result(const mr_cuda_device *device, mr_cu_result result, const char *action, mr_error *error);
/* Makes the device's context current on this thread. */
mr_status mr_cuda_enter(mr_cuda_device *device, mr_error *error);

/* Finds a kernel of a module by name. Loads the module on first use. */
mr_status mr_cuda_find(const mr_device *device, mr_cuda_module module, const char *name, mr_cu_function *function,
                       mr_error *error);
/* Queues a kernel: grid blocks of block threads; arguments is the kernel's only parameter, a struct. Without blocks it
 * has no effect. */
typedef struct mr_cuda_grid {
    int64_t x, y;    /* blocks */
    unsigned width;  /* threads of a block: width x height */
    unsigned height; /* 0: 1 */
} mr_cuda_grid;
mr_status mr_cuda_launch(mr_kernel_call *call, mr_cu_function function, mr_cuda_grid grid, void *arguments,
                         mr_error *error);
/* The grid of a loop over count elements, with 256 threads in a block; the kernel strides by the grid size. */
mr_cuda_grid mr_cuda_grid_for(const mr_cuda_device *device, int64_t count);

/* cuBLAS and cuDNN handles on the device's stream. *dnn is null if cuDNN is not available, which is not an error. */
mr_status mr_cuda_blas_handle(mr_cuda_device *device, mr_error *error);
mr_status mr_cuda_dnn_handle(mr_cuda_device *device, bool *is_available, mr_error *error);

/* Device memory until the kernel's work is done: release it with mr_buffer_unref after queueing the kernel. */
mr_status mr_cuda_scratch(mr_kernel_call *call, size_t size_bytes, mr_buffer **buffer, mr_error *error);

/* ---- Memory (memory.c) ---- */

typedef struct mr_cuda_memory_parts {
    const mr_cuda_driver *driver;
    mr_cu_device device;
    mr_cu_context context;
    mr_cu_stream stream;
    mr_cu_stream copy_stream;
    struct mr_cuda_device *owner; /* set by device_new: buffers refer to it as long as any exist */
} mr_cuda_memory_parts;
typedef enum mr_cuda_memory_kind {
    MR_CUDA_QUEUE,  /* device memory for work in the queue */
    MR_CUDA_ASYNC,  /* device memory that concurrent copies fill */
    MR_CUDA_PINNED, /* host memory */
    MR_CUDA_MEMORY_KIND_COUNT
} mr_cuda_memory_kind;
/* Takes ownership of the parts, which are released with the last buffer. */
mr_status mr_cuda_memory_new(mr_cuda_memory_parts parts, mr_cuda_memory **memory, mr_error *error);
/* Releases the device's reference. */
void mr_cuda_memory_close(mr_cuda_memory *memory);
mr_status mr_cuda_memory_allocate(mr_cuda_memory *memory, size_t size_bytes, mr_cuda_memory_kind kind,
                                  mr_buffer **buffer, mr_error *error);
/* True if the bytes are in pinned memory that is in use. */
bool mr_cuda_memory_is_pinned(mr_cuda_memory *memory, const void *bytes, size_t size_bytes);

#endif
