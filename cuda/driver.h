/* The CUDA driver as a table of functions, filled by dlopen or, in tests, by an implementation in host memory.
 *
 * The declarations are our own, so that everything except the kernels builds without a CUDA toolkit; if one is
 * installed, headers_check.c compares them with NVIDIA's. All functions are called through the table, with the device's
 * context current on the calling thread. */
#ifndef MR_CUDA_DRIVER_H
#define MR_CUDA_DRIVER_H

#include <millrace/status.h>
#include <stdint.h>

/* The driver's enums are declared as unsigned int. */
typedef unsigned mr_cu_result; /* 0: success */
typedef int mr_cu_device;
typedef unsigned long long mr_cu_pointer;
typedef struct CUctx_st *mr_cu_context;
typedef struct CUmod_st *mr_cu_module;
typedef struct CUfunc_st *mr_cu_function;
typedef struct CUstream_st *mr_cu_stream;
typedef struct CUevent_st *mr_cu_event;
typedef struct CUmemPoolHandle_st *mr_cu_pool;

constexpr mr_cu_result MR_CU_OUT_OF_MEMORY = 2;
constexpr mr_cu_result MR_CU_NO_DEVICE = 100;
constexpr mr_cu_result MR_CU_NO_BINARY = 209;
constexpr unsigned MR_CU_STREAM_NON_BLOCKING = 1;
constexpr unsigned MR_CU_EVENT_BLOCKING_SYNC = 1;
constexpr unsigned MR_CU_EVENT_DISABLE_TIMING = 2;
constexpr unsigned MR_CU_ATTRIBUTE_PROCESSORS = 16;
constexpr unsigned MR_CU_ATTRIBUTE_MAJOR = 75;
constexpr unsigned MR_CU_ATTRIBUTE_MINOR = 76;
constexpr unsigned MR_CU_ATTRIBUTE_POOLS = 115;
constexpr unsigned MR_CU_POOL_RELEASE_THRESHOLD = 4;

/* X(field, symbol, result, arguments) */
#define MR_CUDA_DRIVER_FUNCTIONS(X)                                                                                    \
    X(init, cuInit, mr_cu_result, (unsigned flags))                                                                    \
    X(error_string, cuGetErrorString, mr_cu_result, (mr_cu_result error, const char **text))                           \
    X(device_count, cuDeviceGetCount, mr_cu_result, (int *count))                                                      \
    X(device_get, cuDeviceGet, mr_cu_result, (mr_cu_device * device, int index))                                       \
    X(device_name, cuDeviceGetName, mr_cu_result, (char *name, int size_bytes, mr_cu_device device))                   \
    X(device_attribute, cuDeviceGetAttribute, mr_cu_result, (int *value, unsigned attribute, mr_cu_device device))     \
    X(device_pool, cuDeviceGetDefaultMemPool, mr_cu_result, (mr_cu_pool * pool, mr_cu_device device))                  \
    X(context_retain, cuDevicePrimaryCtxRetain, mr_cu_result, (mr_cu_context * context, mr_cu_device device))          \
    X(context_release, cuDevicePrimaryCtxRelease_v2, mr_cu_result, (mr_cu_device device))                              \
    X(context_set, cuCtxSetCurrent, mr_cu_result, (mr_cu_context context))                                             \
    X(pool_set, cuMemPoolSetAttribute, mr_cu_result, (mr_cu_pool pool, unsigned attribute, void *value))               \
    X(stream_new, cuStreamCreate, mr_cu_result, (mr_cu_stream * stream, unsigned flags))                               \
    X(stream_free, cuStreamDestroy_v2, mr_cu_result, (mr_cu_stream stream))                                            \
    X(stream_wait, cuStreamSynchronize, mr_cu_result, (mr_cu_stream stream))                                           \
    X(stream_wait_event, cuStreamWaitEvent, mr_cu_result, (mr_cu_stream stream, mr_cu_event event, unsigned flags))    \
    X(event_new, cuEventCreate, mr_cu_result, (mr_cu_event * event, unsigned flags))                                   \
    X(event_free, cuEventDestroy_v2, mr_cu_result, (mr_cu_event event))                                                \
    X(event_record, cuEventRecord, mr_cu_result, (mr_cu_event event, mr_cu_stream stream))                             \
    X(event_wait, cuEventSynchronize, mr_cu_result, (mr_cu_event event))                                               \
    X(allocate, cuMemAllocAsync, mr_cu_result, (mr_cu_pointer * pointer, size_t size_bytes, mr_cu_stream stream))      \
    X(release, cuMemFreeAsync, mr_cu_result, (mr_cu_pointer pointer, mr_cu_stream stream))                             \
    X(host_allocate, cuMemHostAlloc, mr_cu_result, (void **pointer, size_t size_bytes, unsigned flags))                \
    X(host_release, cuMemFreeHost, mr_cu_result, (void *pointer))                                                      \
    X(copy_in, cuMemcpyHtoDAsync_v2, mr_cu_result,                                                                     \
      (mr_cu_pointer target, const void *source, size_t size_bytes, mr_cu_stream stream))                              \
    X(copy_out, cuMemcpyDtoHAsync_v2, mr_cu_result,                                                                    \
      (void *target, mr_cu_pointer source, size_t size_bytes, mr_cu_stream stream))                                    \
    X(copy, cuMemcpyDtoDAsync_v2, mr_cu_result,                                                                        \
      (mr_cu_pointer target, mr_cu_pointer source, size_t size_bytes, mr_cu_stream stream))                            \
    X(fill_bytes, cuMemsetD8Async, mr_cu_result,                                                                       \
      (mr_cu_pointer target, unsigned char value, size_t size_bytes, mr_cu_stream stream))                             \
    X(module_load, cuModuleLoadData, mr_cu_result, (mr_cu_module * module, const void *image))                         \
    X(module_free, cuModuleUnload, mr_cu_result, (mr_cu_module module))                                                \
    X(module_function, cuModuleGetFunction, mr_cu_result,                                                              \
      (mr_cu_function * function, mr_cu_module module, const char *name))                                              \
    X(launch, cuLaunchKernel, mr_cu_result,                                                                            \
      (mr_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned shared_bytes, mr_cu_stream stream, void **parameters, void **extra))

typedef struct mr_cuda_driver {
#define MR_FIELD(field, symbol, result, arguments) result(*field) arguments;
    MR_CUDA_DRIVER_FUNCTIONS(MR_FIELD)
#undef MR_FIELD
} mr_cuda_driver;

/* Opens libcuda.so.1, once for the process; it is never closed. *driver is static.
 * errors  MR_UNAVAILABLE: there is no driver, it is too old, or it finds no device */
mr_status mr_cuda_driver_open(const mr_cuda_driver **driver, mr_error *error);
/* MR_OK for 0; otherwise "ACTION: the driver's name of the error", with MR_RESOURCE_EXHAUSTED if memory is exhausted
 * and MR_INTERNAL for all other errors. */
mr_status mr_cuda_check(const mr_cuda_driver *driver, mr_cu_result result, const char *action, mr_error *error);

#endif
