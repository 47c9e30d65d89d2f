/* Batch normalization over [rows, channels]. Sums over rows are computed as by column_sum in reduce.cu: blocks of 32
 * channels by 8 rows of threads; a second launch adds the sums of the chunks of rows. */
#include "cuda/gpu.h"

/* Sums of (x - mean)^2. */
MR_GPU_KERNEL(norm_squares, mr_gpu_norm_sums)
{
    __shared__ float shared[8][32];
    int64_t begin = blockIdx.y * a.chunk, end = begin + a.chunk < a.rows ? begin + a.chunk : a.rows;
    int64_t c = (int64_t)blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
    if (c < a.channels) {
        float mean = a.mean[c];
        for (int64_t r = begin + threadIdx.y; r < end; r += 8) {
            float centered = a.x[r * a.channels + c] - mean;
            sum += centered * centered;
        }
    }
    shared[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && c < a.channels) {
        for (int i = 1; i < 8; i++) sum += shared[i][threadIdx.x];
        a.out[blockIdx.y * a.channels + c] = sum;
    }
}

/* Sums of dy and of dy (x - mean). */
MR_GPU_KERNEL(norm_gradient_sums, mr_gpu_norm_sums)
{
    __shared__ float shared[2][8][32];
    int64_t begin = blockIdx.y * a.chunk, end = begin + a.chunk < a.rows ? begin + a.chunk : a.rows;
    int64_t c = (int64_t)blockIdx.x * 32 + threadIdx.x;
    float sum = 0, weighted = 0;
    if (c < a.channels) {
        float mean = a.mean[c];
        for (int64_t r = begin + threadIdx.y; r < end; r += 8) {
            float dy = a.dy[r * a.channels + c];
            sum += dy;
            weighted += dy * (a.x[r * a.channels + c] - mean);
        }
    }
    shared[0][threadIdx.y][threadIdx.x] = sum;
    shared[1][threadIdx.y][threadIdx.x] = weighted;
    __syncthreads();
    if (threadIdx.y == 0 && c < a.channels) {
        for (int i = 1; i < 8; i++) {
            sum += shared[0][i][threadIdx.x];
            weighted += shared[1][i][threadIdx.x];
        }
        a.out[blockIdx.y * a.channels + c] = sum;
        a.out[(a.chunks + blockIdx.y) * a.channels + c] = weighted;
    }
}

MR_GPU_KERNEL(norm_forward, mr_gpu_norm_forward)
{
    MR_GPU_EACH(i, a.count)
    {
        int64_t c = i % a.channels;
        float scale = a.scale[c] / sqrtf(a.variance[c] + a.epsilon);
        a.y[i] = (a.x[i] - a.mean[c]) * scale + a.offset[c];
    }
}

MR_GPU_KERNEL(norm_moving, mr_gpu_norm_moving)
{
    MR_GPU_EACH(c, a.channels)
    {
        float mean = a.mean[c], variance = a.variance[c] * a.unbias;
        if (a.factor != 1) {
            mean = (1 - a.factor) * a.old_mean[c] + a.factor * mean;
            variance = (1 - a.factor) * a.old_variance[c] + a.factor * variance;
        }
        a.new_mean[c] = mean;
        a.new_variance[c] = variance;
    }
}

MR_GPU_KERNEL(norm_backward, mr_gpu_norm_backward)
{
    MR_GPU_EACH(i, a.count)
    {
        int64_t c = i % a.channels;
        float inverse = 1.0f / sqrtf(a.variance[c] + a.epsilon), dy = a.dy[i];
        if (a.training) {
            dy -= a.sum_dy[c] / (float)a.rows;
            dy -= (a.x[i] - a.mean[c]) * inverse * inverse * (a.sum_dy_x[c] / (float)a.rows);
        }
        a.dx[i] = dy * a.scale[c] * inverse;
    }
}

MR_GPU_KERNEL(norm_scale_gradient, mr_gpu_norm_scale)
{
    MR_GPU_EACH(c, a.channels) a.out[c] = a.sum_dy_x[c] / sqrtf(a.variance[c] + a.epsilon);
}
