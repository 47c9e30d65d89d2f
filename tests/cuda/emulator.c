/* The scheduler of the emulator: each thread of a block has its own stack and runs until it returns or waits at a
 * barrier. A round runs all remaining threads once, so a barrier is passed when the round ends. */
#include "tests/cuda/emulator.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { THREADS_MAX = 1024, STACK_BYTES = 32768 };

emulator_index threadIdx, blockIdx, blockDim, gridDim;

static emulated_kernel *kernels;
static struct {
    const emulated_kernel *kernel;
    const void *arguments;
    ucontext_t round, threads[THREADS_MAX];
    char *stacks;
    bool done[THREADS_MAX];
    unsigned current;
} running;

void emulator_register(emulated_kernel *kernel)
{
    kernel->next = kernels;
    kernels = kernel;
}

const emulated_kernel *emulator_find(const char *name)
{
    for (const emulated_kernel *kernel = kernels; kernel; kernel = kernel->next)
        if (strcmp(kernel->name, name) == 0) return kernel;
    return nullptr;
}

bool emulator_works(void)
{
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
    return false;
#endif
#endif
    return true;
}

void __syncthreads(void)
{
    unsigned self = running.current;
    swapcontext(&running.threads[self], &running.round);
}

static void run_thread(void)
{
    running.kernel->run(running.arguments);
    running.done[running.current] = true;
}

static void run_block(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        running.done[i] = false;
        getcontext(&running.threads[i]);
        running.threads[i].uc_stack.ss_sp = running.stacks + (size_t)i * STACK_BYTES;
        running.threads[i].uc_stack.ss_size = STACK_BYTES;
        running.threads[i].uc_link = &running.round;
        makecontext(&running.threads[i], run_thread, 0);
    }
    for (unsigned left = count; left > 0;) {
        left = 0;
        for (unsigned i = 0; i < count; i++) {
            if (running.done[i]) continue;
            running.current = i;
            threadIdx = (emulator_index){i % blockDim.x, i / blockDim.x, 0};
            swapcontext(&running.round, &running.threads[i]);
            left += !running.done[i];
        }
    }
}

void emulator_launch(const emulated_kernel *kernel, emulator_index grid, emulator_index block, const void *arguments)
{
    unsigned count = block.x * block.y;
    assert(count <= THREADS_MAX && block.z == 1 && grid.z == 1);
    running.kernel = kernel;
    running.arguments = arguments;
    running.stacks = malloc((size_t)count * STACK_BYTES);
    assert(running.stacks);
    gridDim = grid;
    blockDim = block;
    for (unsigned y = 0; y < grid.y; y++)
        for (unsigned x = 0; x < grid.x; x++) {
            blockIdx = (emulator_index){x, y, 0};
            run_block(count);
        }
    free(running.stacks);
}
