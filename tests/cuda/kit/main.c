/* gpu-kit: checks a GPU and measures its speed. Compares every GPU kernel with the CPU's on the same random numbers,
 * then the first losses of a small network on both; then measures training steps, and prefetching of batches to the
 * GPU.
 *
 *     gpu-kit [INDEX] [PART-OF-AN-OPERATOR | prefetch]
 *
 * Ends with "N passed, N failed". The exit status is 1 if something failed or there is no GPU. */
#include "base/kernel.h"
#include "builtin/builtin.h"
#include "tests/cuda/model.h"
#include "tests/cuda/prefetch_run.h"
#include "tests/cuda/samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct tally {
    int passed, failed;
} tally;

static void count(tally *t, mr_status status, const mr_error *error)
{
    if (status == MR_OK) {
        t->passed++;
        return;
    }
    t->failed++;
    printf("FAILED %s\n", error->message);
}

static void compare_kernels(mr_device *cpu, mr_device *gpu, const char *part, tally *t)
{
    for (int32_t i = 0; i < sample_count(); i++) {
        mr_error error = {0};
        if (part && !strstr(sample_at(i)->op, part)) continue;
        mr_status status = sample_compare(sample_at(i), cpu, gpu, &error);
        count(t, status, &error);
    }
    printf("kernels: %d agree with the CPU, %d do not\n", t->passed, t->failed);
}

static mr_status compare_losses(const char *device, mr_error *error)
{
    constexpr int steps = 5;
    float cpu[steps], gpu[steps];
    model_size size = {.batch = 8, .side = 32, .filters = 8, .classes = 6};
    MR_TRY(model_train(size, nullptr, steps, cpu, nullptr, nullptr, 0, error));
    MR_TRY(model_train(size, device, steps, gpu, nullptr, nullptr, 0, error));
    for (int i = 0; i < steps; i++) {
        printf("loss of step %d: %.6f on the GPU, %.6f on the CPU\n", i, (double)gpu[i], (double)cpu[i]);
        if (!(fabsf(gpu[i] - cpu[i]) <= 1e-3f))
            return mr_fail(error, MR_DATA_LOSS, "the loss of step %d is %.6f on the GPU, %.6f on the CPU", i,
                           (double)gpu[i], (double)cpu[i]);
    }
    return MR_OK;
}

static mr_status time_steps(const char *device, int32_t side, int32_t filters, mr_error *error)
{
    constexpr int steps = 52;
    float losses[steps];
    double seconds;
    model_size size = {.batch = 64, .side = side, .filters = filters, .classes = 6};
    MR_TRY(model_train(size, device, steps, losses, &seconds, nullptr, 0, error));
    printf("training step, batch 64 of %dx%d, %d filters: %.2f ms (%.0f images/s)\n", side, side, filters,
           seconds / (steps - 2) * 1e3, 64 * (steps - 2) / seconds);
    return MR_OK;
}

static mr_status time_prefetch(const char *device, mr_error *error)
{
    prefetch_times t;
    prefetch_size size = {.batch = 64, .side = 224, .rows = 256, .steps = 100};
    MR_TRY(prefetch_time(device, size, &t, error));
    printf("prefetch_to_device: %.2f GB/s; a step of %.2f ms takes %.2f ms with it, %.2f ms when it copies the batch\n",
           (double)t.batch_bytes / t.alone_s * 1e-9, t.step_s * 1e3, t.beside_s * 1e3, t.inside_s * 1e3);
    return MR_OK;
}

int main(int argc, char **argv)
{
    mr_error error = {0};
    mr_device *cpu = nullptr, *gpu = nullptr;
    tally t = {0};
    int index = argc > 1 ? (int)strtol(argv[1], nullptr, 10) : 0;
    const char *part = argc > 2 ? argv[2] : nullptr;
    char name[64];
    snprintf(name, sizeof name, "/device:GPU:%d", index);
    mr_builtin_register();
    const mr_device_entry *entry = mr_device_entry_find(MR_DEVICE_GPU);
    if (mr_device_cpu_new(nullptr, &cpu, &error) != MR_OK || entry->open(index, &gpu, &error) != MR_OK) {
        printf("FAILED %s\n0 passed, 1 failed\n", error.message);
        return 1;
    }
    compare_kernels(cpu, gpu, part, &t);
    mr_device_free(gpu);
    mr_device_free(cpu);
    if (!part) {
        mr_status status = compare_losses(name, &error);
        count(&t, status, &error);
        int32_t sizes[][2] = {{64, 16}, {128, 32}, {224, 64}};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            error = (mr_error){0};
            status = time_steps(name, sizes[i][0], sizes[i][1], &error);
            count(&t, status, &error);
        }
    }
    if (!part || strcmp(part, "prefetch") == 0) {
        error = (mr_error){0};
        mr_status status = prefetch_compare(name, &error);
        count(&t, status, &error);
        error = (mr_error){0};
        status = time_prefetch(name, &error);
        count(&t, status, &error);
    }
    printf("%d passed, %d failed\n", t.passed, t.failed);
    return t.failed != 0;
}
