/* Compares our declarations of the driver, cuBLAS and cuDNN with NVIDIA's, if those are installed. Nothing is called or
 * linked: each function's type must be compatible with the field of our table. */
#include "cuda/libraries.h"

#if __has_include(<cuda.h>)
#include <cuda.h>
#define SAME(field, symbol, result, arguments)                                                                         \
    static_assert(_Generic(&(symbol), result(*) arguments: true, default: false), #symbol);
MR_CUDA_DRIVER_FUNCTIONS(SAME)
static_assert(MR_CU_OUT_OF_MEMORY == CUDA_ERROR_OUT_OF_MEMORY && MR_CU_NO_DEVICE == CUDA_ERROR_NO_DEVICE);
static_assert(MR_CU_NO_BINARY == CUDA_ERROR_NO_BINARY_FOR_GPU && MR_CU_STREAM_NON_BLOCKING == CU_STREAM_NON_BLOCKING);
static_assert(MR_CU_EVENT_DISABLE_TIMING == CU_EVENT_DISABLE_TIMING);
static_assert(MR_CU_EVENT_BLOCKING_SYNC == CU_EVENT_BLOCKING_SYNC);
static_assert(MR_CU_ATTRIBUTE_PROCESSORS == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(MR_CU_ATTRIBUTE_MAJOR == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(MR_CU_ATTRIBUTE_MINOR == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(MR_CU_ATTRIBUTE_POOLS == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
static_assert(MR_CU_POOL_RELEASE_THRESHOLD == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
MR_CUDA_BLAS_FUNCTIONS(SAME)
static_assert(MR_BLAS_PLAIN == CUBLAS_OP_N && MR_BLAS_TRANSPOSED == CUBLAS_OP_T);
#endif
#if __has_include(<cudnn.h>)
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
#include <cudnn.h>
static_assert(MR_DNN_FLOAT == CUDNN_DATA_FLOAT && MR_DNN_NHWC == CUDNN_TENSOR_NHWC);
static_assert(MR_DNN_CROSS_CORRELATION == CUDNN_CROSS_CORRELATION && MR_DNN_FMA_MATH == CUDNN_FMA_MATH);
static_assert(sizeof(mr_dnn_choice) == sizeof(cudnnConvolutionFwdAlgoPerf_t));
static_assert(offsetof(mr_dnn_choice, workspace_bytes) == offsetof(cudnnConvolutionFwdAlgoPerf_t, memory));
static_assert(offsetof(mr_dnn_choice, determinism) == offsetof(cudnnConvolutionFwdAlgoPerf_t, determinism));
static_assert(sizeof(mr_dnn_choice) == sizeof(cudnnConvolutionBwdDataAlgoPerf_t));
static_assert(sizeof(mr_dnn_choice) == sizeof(cudnnConvolutionBwdFilterAlgoPerf_t));
#endif
#endif
