/* The compiled kernels of each module, embedded in the binary. */
#include "cuda/device.h"

#ifdef MR_CUDA
#pragma clang diagnostic ignored "-Wc23-extensions"
alignas(64) static const unsigned char elementwise_image[] = {
#embed "cuda/elementwise.fatbin"
};
alignas(64) static const unsigned char reduce_image[] = {
#embed "cuda/reduce.fatbin"
};
alignas(64) static const unsigned char batch_norm_image[] = {
#embed "cuda/batch_norm.fatbin"
};
alignas(64) static const unsigned char pool_image[] = {
#embed "cuda/pool.fatbin"
};
alignas(64) static const unsigned char softmax_image[] = {
#embed "cuda/softmax.fatbin"
};
alignas(64) static const unsigned char conv_image[] = {
#embed "cuda/conv.fatbin"
};
alignas(64) static const unsigned char array_image[] = {
#embed "cuda/array.fatbin"
};
alignas(64) static const unsigned char random_image[] = {
#embed "cuda/random.fatbin"
};
alignas(64) static const unsigned char training_image[] = {
#embed "cuda/training.fatbin"
};
#define IMAGE(name) name##_image,
static const void *const images[MR_CUDA_MODULE_COUNT] = {MR_CUDA_MODULES(IMAGE)};
#else
static const void *const images[MR_CUDA_MODULE_COUNT];
#endif

const void *mr_cuda_module_image(mr_cuda_module module)
{
    return images[module];
}
