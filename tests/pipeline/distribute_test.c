/* Workers that share a dataset: together they deliver every element once, they have equal numbers of steps, and their
 * states are valid for other numbers of workers. */
#include "tests/pipeline/pipelines.h"

static mr_dataset *part(int64_t workers, int64_t worker, mr_distribute_policy policy)
{
    mr_dataset *d = mr_dataset_shuffle(mr_dataset_range(0, 50, 1), .seed = 3);
    return mr_dataset_distribute(mr_dataset_map(d, jitter, nullptr, &one_int64), 12, workers, worker, policy);
}

/* Reads the numbers (without their jitter) of some steps of a worker, and saves the state after them. */
static int64_t steps_of(int64_t workers, int64_t worker, mr_distribute_policy policy, const mr_tensor *from,
                        int64_t steps, int64_t *seen, mr_tensor *state)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_dataset *d = part(workers, worker, policy);
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    mr_dataset_free(d);
    if (from != nullptr) CHECK_OK(mr_iterator_restore(iterator, from, &error));
    int64_t done = 0;
    for (; done < steps && mr_iterator_next(iterator, &element, &error) == MR_OK; done++) {
        CHECK_EQ(mr_tensor_count(&element.tensors[0]), 12 / workers);
        for (int64_t r = 0; r < 12 / workers; r++) {
            bool counts = policy != MR_DISTRIBUTE_MASK || ((const bool *)element.tensors[1].data)[r];
            if (counts) seen[mr_tensor_int64s(&element.tensors[0])[r] / 1000]++;
        }
    }
    if (state != nullptr) CHECK_OK(mr_iterator_save(iterator, state, &error));
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    return done;
}

TEST(workers_see_every_element_in_equal_steps)
{
    static const int64_t workers[] = {1, 2, 3, 12};
    for (int w = 0; w < 4; w++) {
        for (int policy = MR_DISTRIBUTE_PAD; policy <= MR_DISTRIBUTE_MASK; policy++) {
            int64_t seen[50] = {0}, total = 0, most = 0, least = 99;
            for (int64_t i = 0; i < workers[w]; i++)
                CHECK_EQ(steps_of(workers[w], i, (mr_distribute_policy)policy, nullptr, 99, seen, nullptr),
                         policy == MR_DISTRIBUTE_DROP ? 4 : 5);
            for (int e = 0; e < 50; e++) {
                total += seen[e];
                most = seen[e] > most ? seen[e] : most;
                least = seen[e] < least ? seen[e] : least;
            }
            CHECK_EQ(total, policy == MR_DISTRIBUTE_PAD ? 60 : policy == MR_DISTRIBUTE_DROP ? 48 : 50);
            CHECK_EQ(most, policy == MR_DISTRIBUTE_PAD ? 2 : 1);
            CHECK_EQ(least, policy == MR_DISTRIBUTE_DROP ? 0 : 1);
        }
    }
}

TEST(a_state_is_valid_for_another_number_of_workers)
{
    int64_t seen[50] = {0};
    mr_tensor state = {0};
    for (int64_t i = 0; i < 3; i++) {
        mr_tensor_deinit(&state);
        CHECK_EQ(steps_of(3, i, MR_DISTRIBUTE_MASK, nullptr, 2, seen, &state), 2);
    }
    for (int64_t i = 0; i < 4; i++) CHECK_EQ(steps_of(4, i, MR_DISTRIBUTE_MASK, &state, 99, seen, nullptr), 3);
    for (int e = 0; e < 50; e++) CHECK_EQ(seen[e], 1);
    mr_tensor_deinit(&state);
}

TEST(what_cannot_be_distributed_is_refused)
{
    mr_error error = {0};
    mr_dataset *d = mr_dataset_distribute(mr_dataset_range(0, 9, 1), 7, 2, 0, MR_DISTRIBUTE_PAD);
    CHECK_EQ(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    mr_dataset_free(d);
    d = mr_dataset_distribute(
        mr_dataset_enumerate(mr_dataset_unbatch(mr_dataset_batch(mr_dataset_range(0, 9, 1), 2)), 0), 4, 2, 0,
        MR_DISTRIBUTE_PAD);
    CHECK_EQ(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "distribute: the length of the input must be known");
    mr_dataset_free(d);
}
