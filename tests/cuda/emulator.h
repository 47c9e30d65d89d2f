/* GPU kernels on the CPU: the .cu files compiled as C. All threads of all blocks run, one at a time. The threads of a
 * block switch at __syncthreads, so that __shared__ arrays have the same contents at each barrier as on a GPU. Include
 * this before "cuda/NAME.cu". One launch at a time in the process. */
#ifndef MR_TESTS_CUDA_EMULATOR_H
#define MR_TESTS_CUDA_EMULATOR_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

typedef struct emulator_index {
    unsigned x, y, z;
} emulator_index;
extern emulator_index threadIdx, blockIdx, blockDim, gridDim;

/* Waits until all threads of the block have reached it or have returned. */
void __syncthreads(void);
#define __shared__ static

typedef struct emulated_kernel {
    const char *name;
    size_t arguments_bytes;
    void (*run)(const void *arguments);
    struct emulated_kernel *next;
} emulated_kernel;
void emulator_register(emulated_kernel *kernel);
const emulated_kernel *emulator_find(const char *name); /* null if there is none */
void emulator_launch(const emulated_kernel *kernel, emulator_index grid, emulator_index block, const void *arguments);
/* False if a sanitizer does not support the emulator's way of switching stacks. */
bool emulator_works(void);

#define MR_GPU_FUNCTION static inline
#define MR_GPU_KERNEL(name, arguments)                                                                                 \
    static void name##_kernel(const arguments a);                                                                      \
    static void name##_run(const void *memory)                                                                         \
    {                                                                                                                  \
        name##_kernel(*(const arguments *)memory);                                                                     \
    }                                                                                                                  \
    [[gnu::constructor]] static void name##_register(void)                                                             \
    {                                                                                                                  \
        static emulated_kernel kernel = {#name, sizeof(arguments), name##_run, nullptr};                               \
        emulator_register(&kernel);                                                                                    \
    }                                                                                                                  \
    static void name##_kernel(const arguments a)

#endif
