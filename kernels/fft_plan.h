/* One-dimensional transforms in double: by mixed radices for sizes with small prime factors, otherwise as a convolution
 * (Bluestein's algorithm). Eight rows are transformed at a time, one in each lane of a vector. */
#ifndef MR_KERNELS_FFT_PLAN_H
#define MR_KERNELS_FFT_PLAN_H

#include "kernels/common.h"

typedef struct mr_fft_number {
    double re, im;
} mr_fft_number;

constexpr int64_t MR_FFT_LANES = 8;
typedef double mr_fft_vector __attribute__((vector_size(64)));
/* One position of eight rows. */
typedef struct mr_fft_lanes {
    mr_fft_vector re, im;
} mr_fft_lanes;

typedef struct mr_fft_plan mr_fft_plan;
/* size  at least 1
 * Null: no memory. */
mr_fft_plan *mr_fft_plan_new(int64_t size, bool inverse);
void mr_fft_plan_free(mr_fft_plan *plan); /* null is allowed */
/* The number of mr_fft_lanes that mr_fft_run needs beside the rows. */
int64_t mr_fft_scratch(const mr_fft_plan *plan);
/* Transforms eight rows in place, without scaling. Both on 64 bytes. */
void mr_fft_run(const mr_fft_plan *plan, mr_fft_lanes *rows, mr_fft_lanes *scratch);
/* exp(±2πi · index / size), exact in its symmetries. index  0 … size - 1 */
mr_fft_number mr_fft_root(int64_t index, int64_t size, bool inverse);
/* exp(±πi · index² / size): with it, the transform of a size with a large prime factor is a convolution. */
mr_fft_number mr_fft_chirp(int64_t index, int64_t size, bool inverse);
/* The size of that convolution, a power of two; 0: the size has small factors and needs none. */
int64_t mr_fft_wide(int64_t size);

#endif
