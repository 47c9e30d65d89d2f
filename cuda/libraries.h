/* cuBLAS and cuDNN as tables of functions, opened with dlopen when a kernel first needs them. The declarations are our
 * own, as in driver.h. */
#ifndef MR_CUDA_LIBRARIES_H
#define MR_CUDA_LIBRARIES_H

#include "cuda/driver.h"

/* ---- cuBLAS ---- */

typedef unsigned mr_blas_result;
typedef struct cublasContext *mr_blas_handle;
constexpr unsigned MR_BLAS_PLAIN = 0, MR_BLAS_TRANSPOSED = 1;

#define MR_CUDA_BLAS_FUNCTIONS(X)                                                                                      \
    X(create, cublasCreate_v2, mr_blas_result, (mr_blas_handle * handle))                                              \
    X(destroy, cublasDestroy_v2, mr_blas_result, (mr_blas_handle handle))                                              \
    X(set_stream, cublasSetStream_v2, mr_blas_result, (mr_blas_handle handle, mr_cu_stream stream))                    \
    X(sgemm, cublasSgemm_v2, mr_blas_result,                                                                           \
      (mr_blas_handle handle, unsigned transpose_a, unsigned transpose_b, int m, int n, int k, const float *alpha,     \
       const float *a, int a_stride, const float *b, int b_stride, const float *beta, float *c, int c_stride))

typedef struct mr_cuda_blas {
#define MR_FIELD(field, symbol, result, arguments) result(*field) arguments;
    MR_CUDA_BLAS_FUNCTIONS(MR_FIELD)
#undef MR_FIELD
} mr_cuda_blas;

/* ---- cuDNN ---- */

typedef unsigned mr_dnn_result;
typedef struct cudnnContext *mr_dnn_handle;
typedef struct cudnnTensorStruct *mr_dnn_tensor;
typedef struct cudnnFilterStruct *mr_dnn_filter;
typedef struct cudnnConvolutionStruct *mr_dnn_convolution;
constexpr unsigned MR_DNN_FLOAT = 0, MR_DNN_NHWC = 1, MR_DNN_CROSS_CORRELATION = 1, MR_DNN_FMA_MATH = 3;

/* An algorithm that cuDNN offers for a convolution; the three kinds of algorithm have the same layout. */
typedef struct mr_dnn_choice {
    unsigned algorithm;
    mr_dnn_result status;
    float time;
    size_t workspace_bytes;
    unsigned determinism; /* 1: deterministic */
    unsigned math;
    int reserved[3];
} mr_dnn_choice;

#define MR_CUDA_DNN_FUNCTIONS(X)                                                                                       \
    X(create, cudnnCreate, mr_dnn_result, (mr_dnn_handle * handle))                                                    \
    X(destroy, cudnnDestroy, mr_dnn_result, (mr_dnn_handle handle))                                                    \
    X(error_string, cudnnGetErrorString, const char *, (mr_dnn_result result))                                         \
    X(set_stream, cudnnSetStream, mr_dnn_result, (mr_dnn_handle handle, mr_cu_stream stream))                          \
    X(tensor_new, cudnnCreateTensorDescriptor, mr_dnn_result, (mr_dnn_tensor * tensor))                                \
    X(tensor_free, cudnnDestroyTensorDescriptor, mr_dnn_result, (mr_dnn_tensor tensor))                                \
    X(tensor_set, cudnnSetTensor4dDescriptor, mr_dnn_result,                                                           \
      (mr_dnn_tensor tensor, unsigned format, unsigned type, int n, int c, int h, int w))                              \
    X(filter_new, cudnnCreateFilterDescriptor, mr_dnn_result, (mr_dnn_filter * filter))                                \
    X(filter_free, cudnnDestroyFilterDescriptor, mr_dnn_result, (mr_dnn_filter filter))                                \
    X(filter_set, cudnnSetFilter4dDescriptor, mr_dnn_result,                                                           \
      (mr_dnn_filter filter, unsigned type, unsigned format, int k, int c, int h, int w))                              \
    X(convolution_new, cudnnCreateConvolutionDescriptor, mr_dnn_result, (mr_dnn_convolution * convolution))            \
    X(convolution_free, cudnnDestroyConvolutionDescriptor, mr_dnn_result, (mr_dnn_convolution convolution))            \
    X(convolution_set, cudnnSetConvolution2dDescriptor, mr_dnn_result,                                                 \
      (mr_dnn_convolution convolution, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h,               \
       int dilation_w, unsigned mode, unsigned type))                                                                  \
    X(convolution_math, cudnnSetConvolutionMathType, mr_dnn_result, (mr_dnn_convolution convolution, unsigned math))   \
    X(forward_choices, cudnnGetConvolutionForwardAlgorithm_v7, mr_dnn_result,                                          \
      (mr_dnn_handle handle, mr_dnn_tensor x, mr_dnn_filter w, mr_dnn_convolution convolution, mr_dnn_tensor y,        \
       int capacity, int *count, mr_dnn_choice *choices))                                                              \
    X(forward, cudnnConvolutionForward, mr_dnn_result,                                                                 \
      (mr_dnn_handle handle, const void *alpha, mr_dnn_tensor x, const void *x_data, mr_dnn_filter w,                  \
       const void *w_data, mr_dnn_convolution convolution, unsigned algorithm, void *workspace,                        \
       size_t workspace_bytes, const void *beta, mr_dnn_tensor y, void *y_data))                                       \
    X(input_choices, cudnnGetConvolutionBackwardDataAlgorithm_v7, mr_dnn_result,                                       \
      (mr_dnn_handle handle, mr_dnn_filter w, mr_dnn_tensor dy, mr_dnn_convolution convolution, mr_dnn_tensor dx,      \
       int capacity, int *count, mr_dnn_choice *choices))                                                              \
    X(input, cudnnConvolutionBackwardData, mr_dnn_result,                                                              \
      (mr_dnn_handle handle, const void *alpha, mr_dnn_filter w, const void *w_data, mr_dnn_tensor dy,                 \
       const void *dy_data, mr_dnn_convolution convolution, unsigned algorithm, void *workspace,                       \
       size_t workspace_bytes, const void *beta, mr_dnn_tensor dx, void *dx_data))                                     \
    X(filter_choices, cudnnGetConvolutionBackwardFilterAlgorithm_v7, mr_dnn_result,                                    \
      (mr_dnn_handle handle, mr_dnn_tensor x, mr_dnn_tensor dy, mr_dnn_convolution convolution, mr_dnn_filter dw,      \
       int capacity, int *count, mr_dnn_choice *choices))                                                              \
    X(filter, cudnnConvolutionBackwardFilter, mr_dnn_result,                                                           \
      (mr_dnn_handle handle, const void *alpha, mr_dnn_tensor x, const void *x_data, mr_dnn_tensor dy,                 \
       const void *dy_data, mr_dnn_convolution convolution, unsigned algorithm, void *workspace,                       \
       size_t workspace_bytes, const void *beta, mr_dnn_filter dw, void *dw_data))

typedef struct mr_cuda_dnn {
#define MR_FIELD(field, symbol, result, arguments) result(*field) arguments;
    MR_CUDA_DNN_FUNCTIONS(MR_FIELD)
#undef MR_FIELD
} mr_cuda_dnn;

/* Opens the libraries, once for the process. The tables are static.
 * errors  MR_UNAVAILABLE with the names that were tried */
mr_status mr_cuda_blas_open(const mr_cuda_blas **blas, mr_error *error);
mr_status mr_cuda_dnn_open(const mr_cuda_dnn **dnn, mr_error *error);

#endif
