/* The GPU as a device of base/device.h, and what its kernels need: memory, streams, functions, cuBLAS, cuDNN.
 *
 * Everything a device does goes into one stream, in order, so memory that is given back may be handed out again while
 * the work that used it is still queued. Only copies from pinned memory and those beside the queue run on a stream of
 * their own.
 *
 * Lock order: the memory's mutex is innermost; no driver call that waits is made under it. */
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

/* The compiled kernels of a module for every supported GPU; null in a build without nvcc. */
const void *mr_cuda_module_image(mr_cuda_module module);

/* Where a device finds its parts: the real ones, or a test's. */
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
    mr_cuda_memory *memory; /* holds context and streams; outlives the device while buffers are out */
    mr_cu_context context;
    mr_cu_stream stream;
    int processors;
    pthread_mutex_t mutex; /* of what is below, made on first use */
    mr_cu_module modules[MR_CUDA_MODULE_COUNT];
    const mr_cuda_blas *blas;
    mr_blas_handle blas_handle;
    const mr_cuda_dnn *dnn;
    mr_dnn_handle dnn_handle;
    bool dnn_is_absent; /* it was looked for */
    /* Copies from pinned memory go into a stage on their own stream, and from there to their place in order. */
    mr_cu_stream copy_stream;
    struct {
        mr_buffer *buffer;
        mr_cu_event filled, emptied;
    } stages[MR_CUDA_STAGES];
    unsigned next_stage;
} mr_cuda_device;

/* Device `index` of the system.
 * errors  MR_UNAVAILABLE: no driver, no such device, one that is too old, or a build without kernels */
mr_status mr_cuda_device_new(const mr_cuda_system *system, int index, mr_device **device, mr_error *error);
/* The same with the machine's own libraries: what the entry's open does. */
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

/* A kernel of a module, by name. Loads the module on first use. */
mr_status mr_cuda_find(const mr_device *device, mr_cuda_module module, const char *name, mr_cu_function *function,
                       mr_error *error);
/* Queues a kernel: grid blocks of block threads; arguments is the kernel's one struct. No blocks: nothing. */
typedef struct mr_cuda_grid {
    int64_t x, y;    /* blocks */
    unsigned width;  /* threads of a block: width x height */
    unsigned height; /* 0: 1 */
} mr_cuda_grid;
mr_status mr_cuda_launch(mr_kernel_call *call, mr_cu_function function, mr_cuda_grid grid, void *arguments,
                         mr_error *error);
/* The grid of a loop over count elements, 256 threads a block; the kernel strides by the grid. */
mr_cuda_grid mr_cuda_grid_for(const mr_cuda_device *device, int64_t count);

/* cuBLAS and cuDNN handles on the device's stream. *dnn null: there is none, which is no error. */
mr_status mr_cuda_blas_handle(mr_cuda_device *device, mr_error *error);
mr_status mr_cuda_dnn_handle(mr_cuda_device *device, bool *is_there, mr_error *error);

/* Memory of the device until the kernel's work is done: give it back with mr_buffer_unref after queueing. */
mr_status mr_cuda_scratch(mr_kernel_call *call, size_t size_bytes, mr_buffer **buffer, mr_error *error);

/* ---- Memory (memory.c) ---- */

typedef struct mr_cuda_memory_parts {
    const mr_cuda_driver *driver;
    mr_cu_device device;
    mr_cu_context context;
    mr_cu_stream stream;
    mr_cu_stream copy_stream;
    struct mr_cuda_device *owner; /* of malloc: buffers say whose they are as long as there are any */
} mr_cuda_memory_parts;
typedef enum mr_cuda_memory_kind {
    MR_CUDA_QUEUE,  /* device memory for work in the queue */
    MR_CUDA_BESIDE, /* device memory that copies beside the queue fill */
    MR_CUDA_PINNED, /* host memory */
    MR_CUDA_MEMORY_KIND_COUNT
} mr_cuda_memory_kind;
/* Takes the parts over: they go with the last buffer. */
mr_status mr_cuda_memory_new(mr_cuda_memory_parts parts, mr_cuda_memory **memory, mr_error *error);
/* The device lets go. */
void mr_cuda_memory_close(mr_cuda_memory *memory);
mr_status mr_cuda_memory_allocate(mr_cuda_memory *memory, size_t size_bytes, mr_cuda_memory_kind kind,
                                  mr_buffer **buffer, mr_error *error);
/* True when the bytes lie in pinned memory that is out. */
bool mr_cuda_memory_is_pinned(mr_cuda_memory *memory, const void *bytes, size_t size_bytes);

#endif
