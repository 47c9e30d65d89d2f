/* Pipelines that end on the CPU as a device: a plain prefetch, or no stage. GPUs are tested in
 * tests/cuda/prefetch_test.c. */
#include "tests/pipeline/pipelines.h"

static mr_dataset *plain(int which)
{
    mr_dataset *d =
        mr_dataset_map(mr_dataset_shuffle(mr_dataset_range(0, 90, 1), .seed = 2), jitter, nullptr, &one_int64);
    return which % 2 == 0 ? mr_dataset_batch(d, 4) : mr_dataset_unique(d);
}

static mr_dataset *there(int which)
{
    return which < 2 ? mr_dataset_prefetch_to_device(plain(which), "/cpu:0", 3)
                     : mr_dataset_copy_to_device(plain(which), "/device:CPU:0");
}

TEST(to_device_on_the_cpu_keeps_elements_and_states)
{
    for (int which = 0; which < 4; which++) {
        uint64_t here[ELEMENTS_MAX], on_device[ELEMENTS_MAX];
        int count = elements_of(plain, which, 2, nullptr, here);
        CHECK_EQ(elements_of(there, which, 2, nullptr, on_device), count);
        CHECK(memcmp(here, on_device, (size_t)count * sizeof *here) == 0);
        check_threads(there, which);
        check_states(there, which, 16384);
    }
}

TEST(to_device_on_the_cpu_is_host_memory)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_dataset *d = there(0);
    CHECK_EQ(mr_dataset_cardinality(d), 23);
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK(mr_tensor_device(&element.tensors[0]) == nullptr);
    mr_stage_statistics stages[8];
    CHECK_EQ(mr_iterator_statistics(iterator, stages, 8), 5);
    CHECK_STR(stages[4].stage, "prefetch_to_device");
    CHECK_EQ(stages[4].elements, 1);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}
