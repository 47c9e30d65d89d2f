/* Sums of a matrix's columns, also for families other than the reductions. */
#ifndef MR_CUDA_REDUCE_H
#define MR_CUDA_REDUCE_H

#include "cuda/device.h"

/* The number of chunks in which the rows of a [rows, columns] matrix are summed, and the rows of each. */
void mr_cuda_chunks(const mr_cuda_device *device, int64_t rows, int64_t columns, int64_t *chunks, int64_t *chunk);
/* out[c] = scale * sum of in[r][c]. function: column_sum of the reduce module. */
mr_status mr_cuda_column_sums(mr_kernel_call *call, mr_cu_function function, const float *in, int64_t rows,
                              int64_t columns, float scale, float *out, mr_error *error);

#endif
