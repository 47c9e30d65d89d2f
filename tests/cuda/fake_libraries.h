/* The fake cuBLAS and cuDNN. */
#ifndef MR_TESTS_CUDA_FAKE_LIBRARIES_H
#define MR_TESTS_CUDA_FAKE_LIBRARIES_H

#include "cuda/libraries.h"

mr_status fake_open_blas(const mr_cuda_blas **blas, mr_error *error);
mr_status fake_open_dnn(const mr_cuda_dnn **dnn, mr_error *error);
/* Queues run(a copy of data) on a fake stream. */
void fake_queue(mr_cu_stream stream, void (*run)(void *data), const void *data, size_t size_bytes);

#endif
