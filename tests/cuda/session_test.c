/* Sessions with a GPU: a whole network trains there as on the CPU. */
#include "tests/cuda/emulator.h"
#include "tests/cuda/fake.h"
#include "tests/cuda/model.h"
#include "tests/test.h"

static void use_fake(void)
{
    if (!emulator_works()) test_skip("the emulator cannot run under this sanitizer");
    fake_register();
}

static const model_size small = {.batch = 4, .side = 12, .filters = 4, .classes = 5};

TEST(cuda_network_trains_as_on_the_cpu)
{
    mr_error error = {0};
    float ours[4], theirs[4];
    static char notes[1 << 16];
    use_fake();
    CHECK_OK(model_train(small, nullptr, 4, theirs, nullptr, nullptr, 0, &error));
    CHECK_OK(model_train(small, "/device:GPU:0", 4, ours, nullptr, notes, sizeof notes, &error));
    for (int i = 0; i < 4; i++) CHECK_NEAR((double)ours[i], (double)theirs[i], 1e-4);
    CHECK(fake.launches > 100 && fake.dnn_runs > 0);
    /* What learns is on the GPU; what is left on the CPU counts steps or holds constants. */
    CHECK(strstr(notes, "dropout/SelectV2 (SelectV2): /device:GPU:0") != nullptr);
    CHECK_EQ(fake.live_allocations, 0);
    CHECK_EQ(fake.contexts, 0);
}

TEST(cuda_absence_falls_back_to_the_cpu)
{
    mr_error error = {0};
    float losses[2];
    static char notes[1 << 16];
    use_fake();
    fake.device_count = 0;
    CHECK_OK(model_train(small, "/device:GPU:0", 2, losses, nullptr, notes, sizeof notes, &error));
    CHECK_CONTAINS(notes, "there is no GPU 0");
    CHECK_EQ(fake.launches, 0);
}

TEST(cuda_error_in_a_step_is_reported)
{
    mr_error error = {0};
    float losses[1];
    use_fake();
    fake.fail_launch = 700;
    CHECK_STATUS(model_train(small, "/device:GPU:0", 1, losses, nullptr, nullptr, 0, &error), MR_INTERNAL);
    CHECK_CONTAINS(error.message, "illegal memory access");
    CHECK_EQ(fake.live_allocations, 0);
}
