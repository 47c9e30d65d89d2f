/* Softmax and its losses: a block of 128 threads for each row. */
#include "cuda/gpu.h"

#define THREADS 128

/* Reduces one number of each thread; all threads get the result. */
#define JOIN(name, expression)                                                                                         \
    MR_GPU_FUNCTION float name(float *shared, float x)                                                                 \
    {                                                                                                                  \
        __syncthreads();                                                                                               \
        shared[threadIdx.x] = x;                                                                                       \
        for (unsigned half = THREADS / 2; half > 0; half /= 2) {                                                       \
            __syncthreads();                                                                                           \
            if (threadIdx.x < half) {                                                                                  \
                float y = shared[threadIdx.x + half];                                                                  \
                x = shared[threadIdx.x];                                                                               \
                shared[threadIdx.x] = (expression);                                                                    \
            }                                                                                                          \
        }                                                                                                              \
        __syncthreads();                                                                                               \
        return shared[0];                                                                                              \
    }
JOIN(join_sum, x + y)
JOIN(join_largest, y > x || y != y ? y : x)

/* The largest element of the row and the sum of exp(x - largest). */
MR_GPU_FUNCTION void measure(const mr_gpu_softmax *a, float *shared, const float *row, float *largest, float *sum)
{
    float own = -INFINITY, total = 0;
    for (int64_t c = threadIdx.x; c < a->classes; c += THREADS) own = row[c] > own || row[c] != row[c] ? row[c] : own;
    *largest = join_largest(shared, own);
    for (int64_t c = threadIdx.x; c < a->classes; c += THREADS) total += expf(row[c] - *largest);
    *sum = join_sum(shared, total);
}

MR_GPU_KERNEL(softmax, mr_gpu_softmax)
{
    __shared__ float shared[THREADS];
    float largest, sum;
    const float *row = a.in + blockIdx.x * a.classes;
    measure(&a, shared, row, &largest, &sum);
    for (int64_t c = threadIdx.x; c < a.classes; c += THREADS)
        a.out[blockIdx.x * a.classes + c] = expf(row[c] - largest) / sum;
}

MR_GPU_KERNEL(log_softmax, mr_gpu_softmax)
{
    __shared__ float shared[THREADS];
    float largest, sum;
    const float *row = a.in + blockIdx.x * a.classes;
    measure(&a, shared, row, &largest, &sum);
    for (int64_t c = threadIdx.x; c < a.classes; c += THREADS)
        a.out[blockIdx.x * a.classes + c] = row[c] - largest - logf(sum);
}

/* A label outside the range of classes gives NaN as loss and gradients, as in TensorFlow on GPUs. */
#define SPARSE_LOSS(name, type)                                                                                        \
    MR_GPU_KERNEL(name, mr_gpu_softmax)                                                                                \
    {                                                                                                                  \
        __shared__ float shared[THREADS];                                                                              \
        float largest, sum;                                                                                            \
        const float *row = a.in + blockIdx.x * a.classes;                                                              \
        int64_t label = ((const type *)a.labels)[blockIdx.x];                                                          \
        bool is_class = label >= 0 && label < a.classes;                                                               \
        measure(&a, shared, row, &largest, &sum);                                                                      \
        for (int64_t c = threadIdx.x; c < a.classes; c += THREADS)                                                     \
            a.out[blockIdx.x * a.classes + c] =                                                                        \
                is_class ? expf(row[c] - largest) / sum - (c == label ? 1.0f : 0.0f) : (float)NAN;                     \
        if (threadIdx.x == 0) a.loss[blockIdx.x] = is_class ? logf(sum) - (row[label] - largest) : (float)NAN;         \
    }
SPARSE_LOSS(sparse_loss_int32, int32_t)
SPARSE_LOSS(sparse_loss_int64, int64_t)

MR_GPU_KERNEL(dense_loss, mr_gpu_softmax)
{
    __shared__ float shared[THREADS];
    float largest, sum, loss = 0;
    const float *row = a.in + blockIdx.x * a.classes, *labels = (const float *)a.labels + blockIdx.x * a.classes;
    measure(&a, shared, row, &largest, &sum);
    float log_sum = logf(sum);
    for (int64_t c = threadIdx.x; c < a.classes; c += THREADS) {
        loss += labels[c] * (log_sum - (row[c] - largest));
        a.out[blockIdx.x * a.classes + c] = expf(row[c] - largest) / sum - labels[c];
    }
    loss = join_sum(shared, loss);
    if (threadIdx.x == 0) a.loss[blockIdx.x] = loss;
}
