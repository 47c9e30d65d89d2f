/* The arguments of all GPU kernels, filled by the host and read by the kernels of the .cu files. Pointers are device
 * addresses. Valid C and C++. */
#ifndef MR_CUDA_ARGUMENTS_H
#define MR_CUDA_ARGUMENTS_H

#include <stdint.h>

#define MR_GPU_RANK_MAX 12
#define MR_GPU_BLOCK 256

/* ---- elementwise.cu ---- */

typedef struct mr_gpu_unary {
    const void *in;
    void *out;
    int64_t count;
} mr_gpu_unary;

enum { MR_GPU_SAME = 0, MR_GPU_SCALAR_A, MR_GPU_SCALAR_B, MR_GPU_STRIDED };
typedef struct mr_gpu_binary {
    const void *a, *b;
    void *out;
    int64_t count;
    int32_t mode, rank; /* dims and strides are used by MR_GPU_STRIDED only */
    int64_t dims[MR_GPU_RANK_MAX], a_strides[MR_GPU_RANK_MAX], b_strides[MR_GPU_RANK_MAX];
} mr_gpu_binary;

/* out = take ? a : b, each with its own strides. */
typedef struct mr_gpu_select {
    const bool *take;
    const void *a, *b;
    void *out;
    int64_t count;
    int32_t rank;
    int64_t dims[MR_GPU_RANK_MAX], strides[3][MR_GPU_RANK_MAX]; /* of take, a, b */
} mr_gpu_select;

#define MR_GPU_ADD_MAX 16
typedef struct mr_gpu_add {
    const float *in[MR_GPU_ADD_MAX];
    float *out; /* may be one of in */
    int64_t count;
    int32_t inputs;
} mr_gpu_add;

/* ---- reduce.cu ---- */

/* out[chunk * outputs + o] = scale * reduction of in[kept(o) + reduced(r)] over the r of the chunk. */
typedef struct mr_gpu_reduce {
    const float *in;
    float *out;
    int64_t outputs, reduced, chunk;
    int32_t kept_rank, reduced_rank;
    int64_t kept_dims[MR_GPU_RANK_MAX], kept_strides[MR_GPU_RANK_MAX];
    int64_t reduced_dims[MR_GPU_RANK_MAX], reduced_strides[MR_GPU_RANK_MAX];
    float scale;
} mr_gpu_reduce;

/* ---- batch_norm.cu: x is [rows, channels] ---- */

typedef struct mr_gpu_norm_sums {
    const float *x, *mean;
    const float *dy; /* backward only */
    float *out;      /* [chunks, channels]; backward: twice that, the sums of dy and then of dy (x - mean) */
    int64_t rows, channels, chunk, chunks;
} mr_gpu_norm_sums;

typedef struct mr_gpu_norm_forward {
    const float *x, *mean, *variance, *scale, *offset;
    float *y;
    int64_t count, channels;
    float epsilon;
} mr_gpu_norm_forward;

/* Results of a training step: old and new moving values. */
typedef struct mr_gpu_norm_moving {
    const float *mean, *variance, *old_mean, *old_variance;
    float *new_mean, *new_variance;
    int64_t channels;
    float unbias, factor; /* factor 1: the batch's own */
} mr_gpu_norm_moving;

typedef struct mr_gpu_norm_backward {
    const float *x, *dy, *mean, *variance, *scale, *sum_dy, *sum_dy_x;
    float *dx;
    int64_t count, channels, rows;
    float epsilon;
    int32_t training;
} mr_gpu_norm_backward;

typedef struct mr_gpu_norm_scale {
    const float *variance, *sum_dy_x;
    float *out; /* may be sum_dy_x */
    int64_t channels;
    float epsilon;
} mr_gpu_norm_scale;

/* ---- pool.cu: NHWC ---- */

typedef struct mr_gpu_pool {
    const float *in, *grad; /* grad: backward only, with the output's shape */
    float *out;             /* backward: with the input's shape */
    int64_t batch;
    int32_t in_h, in_w, out_h, out_w, channels;
    int32_t size_h, size_w, stride_h, stride_w, pad_h, pad_w;
} mr_gpu_pool;

/* ---- softmax.cu ---- */

typedef struct mr_gpu_softmax {
    const float *in;
    const void *labels; /* int32, int64 or float, according to the kernel's name */
    float *loss, *out;  /* loss: one value for each row */
    int64_t rows, classes;
} mr_gpu_softmax;

/* ---- conv.cu: NHWC, HWIO ---- */

typedef struct mr_gpu_columns {
    const float *in; /* columns_from: the image; columns_to: the columns */
    float *out;
    int64_t batch;
    int32_t in_h, in_w, channels, out_h, out_w;
    int32_t size_h, size_w, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
} mr_gpu_columns;

/* out[c][r] = in[r][c] */
typedef struct mr_gpu_transpose {
    const float *in;
    float *out;
    int64_t rows, columns;
} mr_gpu_transpose;

/* ---- array.cu ---- */

typedef struct mr_gpu_fill {
    const void *value; /* one element on the device; null: bits */
    void *out;
    int64_t count;
    uint64_t bits;
} mr_gpu_fill;

/* out[i] = in[coordinates(i) mod in_dims]: Tile and BroadcastTo. */
typedef struct mr_gpu_repeat {
    const void *in;
    void *out;
    int64_t count;
    int32_t rank;
    int64_t dims[MR_GPU_RANK_MAX], in_dims[MR_GPU_RANK_MAX], in_strides[MR_GPU_RANK_MAX];
} mr_gpu_repeat;

/* in is [outer, length, inner]. */
typedef struct mr_gpu_extreme {
    const float *in;
    void *out;
    int64_t outer, length, inner;
} mr_gpu_extreme;

/* ---- random.cu ---- */

typedef struct mr_gpu_random {
    float *out;
    int64_t count;
    uint32_t key[2], counter[4];
} mr_gpu_random;

/* ---- training.cu: scalars are in device memory, as TensorFlow passes them ---- */

typedef struct mr_gpu_apply {
    float *variable, *m, *v; /* m: also momentum's accumulator */
    const float *gradient, *rate, *momentum;
    const float *beta1_power, *beta2_power, *beta1, *beta2, *epsilon;
    int64_t count;
    int32_t nesterov;
} mr_gpu_apply;

#endif
