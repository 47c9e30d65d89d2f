/* All GPU kernels, compiled for the CPU. */
#include "tests/cuda/emulator.h"

#pragma clang diagnostic ignored "-Wunused-function"
#include "cuda/array.cu"
#include "cuda/batch_norm.cu"
#include "cuda/conv.cu"
#include "cuda/elementwise.cu"
#include "cuda/pool.cu"
#include "cuda/random.cu"
#include "cuda/reduce.cu"
#include "cuda/softmax.cu"
#include "cuda/training.cu"
