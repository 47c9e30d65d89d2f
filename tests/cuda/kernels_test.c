/* Compares every GPU kernel with the CPU's, on the fake GPU. */
#include "base/kernel.h"
#include "builtin/builtin.h"
#include "cuda/kernels.h"
#include "tests/cuda/emulator.h"
#include "tests/cuda/fake.h"
#include "tests/cuda/samples.h"
#include "tests/test.h"

static void compare_all(const char *op_part, mr_device *gpu)
{
    mr_device *cpu;
    mr_error error = {0};
    int compared = 0;
    CHECK_OK(mr_device_cpu_new(nullptr, &cpu, &error));
    for (int32_t i = 0; i < sample_count(); i++) {
        const sample *s = sample_at(i);
        if (op_part && !strstr(s->op, op_part)) continue;
        CHECK_OK(sample_compare(s, cpu, gpu, &error));
        compared++;
    }
    CHECK(compared > 0);
    mr_device_free(cpu);
}

/* Without cuBLAS and cuDNN, or if they offer no algorithm, our own kernels compute what they support. */
static mr_device *open_fake(void)
{
    mr_error error = {0};
    mr_device *gpu;
    if (!emulator_works()) test_skip("the emulator cannot run under this sanitizer");
    mr_builtin_register();
    CHECK_OK(mr_cuda_device_new(fake_system(), 0, &gpu, &error));
    return gpu;
}

TEST(cuda_kernels_agree_with_the_cpu)
{
    mr_device *gpu = open_fake();
    compare_all(nullptr, gpu);
    CHECK(fake.dnn_runs > 0 && fake.launches > 100);
    mr_device_free(gpu);
    CHECK_EQ(fake.live_allocations, 0);
}

TEST(cuda_convolutions_without_cudnn)
{
    mr_device *gpu = open_fake();
    fake.no_dnn = true;
    compare_all("Conv2D", gpu);
    CHECK_EQ(fake.dnn_runs, 0);
    mr_device_free(gpu);
}

TEST(cuda_convolutions_that_cudnn_refuses)
{
    mr_device *gpu = open_fake();
    fake.dnn_refuses = true;
    compare_all("Conv2D", gpu);
    CHECK_EQ(fake.dnn_runs, 0);
    mr_device_free(gpu);
}

typedef struct same_run {
    mr_kernel_run run;
    bool found;
} same_run;

static void find_on_cpu(void *context, const mr_kernel *kernel)
{
    same_run *same = context;
    same->found |= kernel->device == MR_DEVICE_CPU && kernel->run == same->run;
}

/* Kernels of graph/state serve every device with one function. */
static bool serves_cpu_too(const mr_kernel *kernel)
{
    same_run same = {.run = kernel->run};
    mr_kernel_each(find_on_cpu, &same);
    return same.found;
}

static void has_sample(void *context, const mr_kernel *kernel)
{
    int *missing = context;
    bool found = kernel->device != MR_DEVICE_GPU || serves_cpu_too(kernel);
    for (int32_t i = 0; i < sample_count() && !found; i++) found = strcmp(sample_at(i)->op, kernel->op) == 0;
    if (!found) printf("no sample of %s\n", kernel->op);
    *missing += !found;
}

TEST(cuda_every_kernel_has_a_sample)
{
    int missing = 0;
    mr_builtin_register();
    mr_kernel_each(has_sample, &missing);
    CHECK_EQ(missing, 0);
}

/* ---- Error messages of kernels ---- */

static mr_status run_relu(mr_device *gpu, mr_error *error)
{
    for (int32_t i = 0; i < sample_count(); i++)
        if (strcmp(sample_at(i)->op, "Relu") == 0) {
            mr_device *cpu;
            MR_TRY(mr_device_cpu_new(nullptr, &cpu, error));
            mr_status status = sample_compare(sample_at(i), cpu, gpu, error);
            mr_device_free(cpu);
            return status;
        }
    return MR_NOT_FOUND;
}

TEST(cuda_failed_launch_names_node_and_device)
{
    mr_error error = {0};
    mr_device *gpu = open_fake();
    fake.fail_launch = 700;
    CHECK_STATUS(run_relu(gpu, &error), MR_INTERNAL);
    CHECK_CONTAINS(error.message, "Relu");
    CHECK_CONTAINS(error.message, "/device:GPU:0");
    CHECK_CONTAINS(error.message, "illegal memory access");
    mr_device_free(gpu);
}

TEST(cuda_matmul_without_cublas_is_an_error)
{
    mr_error error = {0};
    mr_device *cpu, *gpu = open_fake();
    fake.no_blas = true;
    CHECK_OK(mr_device_cpu_new(nullptr, &cpu, &error));
    for (int32_t i = 0; i < sample_count(); i++)
        if (strcmp(sample_at(i)->op, "MatMul") == 0) {
            CHECK_STATUS(sample_compare(sample_at(i), cpu, gpu, &error), MR_UNAVAILABLE);
            CHECK_CONTAINS(error.message, "cuBLAS is not installed");
            break;
        }
    mr_device_free(gpu);
    mr_device_free(cpu);
}
