/* The same elements for any number of threads, and after restoring a state saved at any position. */
#include "tests/pipeline/pipelines.h"

#include <sys/wait.h>
#include <unistd.h>

static mr_status double_batch(void *context, const mr_element *input, mr_random *random, mr_element *output,
                              mr_error *error)
{
    (void)context;
    MR_TRY(mr_tensor_init(&output->tensors[0], MR_INT64, input->tensors[0].shape, error));
    output->count = 1;
    for (int64_t i = 0; i < mr_tensor_count(&input->tensors[0]); i++)
        mr_tensor_int64s(&output->tensors[0])[i] =
            2 * mr_tensor_int64s(&input->tensors[0])[i] + (int64_t)mr_random_below(random, 2);
    return MR_OK;
}

static const mr_element_spec int64_batch = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{.rank = 1, .dims = {-1}}}};

static mr_dataset *jittered(mr_dataset *input)
{
    return mr_dataset_map(input, jitter, nullptr, &one_int64, .seed = 11);
}

/* Chains of every kind; null after the last one. */
static mr_dataset *chain(int which)
{
    mr_dataset *d = mr_dataset_range(0, 37, 1);
    switch (which) {
    case 0:
        return d;
    case 1:
        return mr_dataset_prefetch(
            mr_dataset_batch(jittered(mr_dataset_repeat(mr_dataset_shuffle(d, .seed = 1), 3)), 5), 2);
    case 2:
        return mr_dataset_batch(mr_dataset_repeat(mr_dataset_shuffle(jittered(d), .buffer_size = 10, .seed = 1), 3), 4);
    case 3:
        return mr_dataset_shuffle(mr_dataset_repeat(d, 3), .buffer_size = 20, .seed = 2);
    case 4:
        return mr_dataset_take(mr_dataset_shuffle(mr_dataset_repeat(d, MR_INFINITE), .buffer_size = 20), 90);
    case 5:
        return mr_dataset_repeat(mr_dataset_shuffle(mr_dataset_batch(jittered(d), 4), .buffer_size = 3), 3);
    case 6:
        return mr_dataset_map(mr_dataset_repeat(mr_dataset_batch(jittered(d), 4), 2), double_batch, nullptr,
                              &int64_batch);
    case 7:
        return mr_dataset_batch(mr_dataset_repeat(mr_dataset_batch(jittered(d), 1, .drop_remainder = true), 2), 5);
    case 8:
        d = mr_dataset_shard(mr_dataset_skip(mr_dataset_repeat(mr_dataset_shuffle(d, .seed = 4), 4), 5), 3, 1);
        return mr_dataset_prefetch(jittered(d), 9);
    case 9:
        return mr_dataset_shuffle(
            mr_dataset_shuffle(mr_dataset_repeat(mr_dataset_shuffle(d, .buffer_size = 5), 2), .buffer_size = 8),
            .buffer_size = 6);
    case 10:
        return mr_dataset_repeat(
            mr_dataset_take(mr_dataset_repeat(mr_dataset_shuffle(d, .buffer_size = 9), MR_INFINITE), 50), 2);
    case 11:
        return mr_dataset_batch(mr_dataset_shuffle(mr_dataset_batch(d, 3), .buffer_size = 4), 2);
    default:
        mr_dataset_free(d);
        return nullptr;
    }
}

constexpr int CHAINS = 12;

TEST(pipeline_is_the_same_at_any_number_of_threads)
{
    for (int which = 0; which < CHAINS; which++) check_threads(chain, which);
}

TEST(pipeline_goes_on_from_every_element)
{
    for (int which = 0; which < CHAINS; which++) check_states(chain, which, 1024);
}

TEST(pipeline_restores_any_position)
{
    for (int which = 0; which < CHAINS; which++) check_restored(chain, which);
}

TEST(pipeline_state_is_valid_in_another_process)
{
    mr_error error = {0};
    uint64_t rest[ELEMENTS_MAX], there[ELEMENTS_MAX];
    mr_dataset *d = chain(1);
    mr_iterator *iterator = nullptr;
    mr_tensor state = {0};
    int to_child[2], to_parent[2];
    CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
    /* Fork before any thread is started. */
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        /* With its own copies closed, the child reads an end of file instead of waiting if the parent fails. */
        close(to_child[1]);
        close(to_parent[0]);
        char bytes[1024];
        ssize_t size = read(to_child[0], bytes, sizeof bytes);
        if (size <= 0) _exit(1);
        mr_tensor arrived = {0};
        CHECK_OK(mr_tensor_init_string(&arrived, (mr_string){bytes, (size_t)size}, &error));
        int count = elements_of(chain, 1, 3, &arrived, there);
        ssize_t written = write(to_parent[1], there, (size_t)count * sizeof *there);
        _exit(written == (ssize_t)((size_t)count * sizeof *there) ? 0 : 1);
    }
    close(to_child[0]);
    close(to_parent[1]);
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 1, .seed = 77), &iterator, &error));
    CHECK_EQ(digests_of(iterator, rest, 7), 7);
    CHECK_OK(mr_iterator_save(iterator, &state, &error));
    mr_string bytes = mr_tensor_strings(&state)[0];
    CHECK_EQ(write(to_child[1], bytes.data, bytes.size_bytes), (long long)bytes.size_bytes);
    int count = digests_of(iterator, rest, ELEMENTS_MAX), wait_status = 1;
    CHECK_EQ(read(to_parent[0], there, sizeof there), (long long)((size_t)count * sizeof *there));
    CHECK(waitpid(child, &wait_status, 0) == child && wait_status == 0);
    CHECK(memcmp(rest, there, (size_t)count * sizeof *rest) == 0);
    mr_tensor_deinit(&state);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

TEST(pipeline_damaged_states_are_rejected)
{
    mr_error error = {0};
    mr_dataset *d = chain(1);
    mr_iterator *iterator = nullptr;
    mr_tensor state = {0}, bad = {0};
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    CHECK_OK(mr_iterator_save(iterator, &state, &error));
    mr_string good = mr_tensor_strings(&state)[0];
    char bytes[1024];
    for (size_t i = 0; i < good.size_bytes; i++) {
        memcpy(bytes, good.data, good.size_bytes);
        bytes[i] = (char)(bytes[i] ^ 0x10);
        CHECK_OK(mr_tensor_init_string(&bad, (mr_string){bytes, good.size_bytes}, &error));
        CHECK_STATUS(mr_iterator_restore(iterator, &bad, &error), MR_INVALID_ARGUMENT);
        mr_tensor_deinit(&bad);
        CHECK_OK(mr_tensor_init_string(&bad, (mr_string){good.data, i}, &error));
        CHECK_STATUS(mr_iterator_restore(iterator, &bad, &error), MR_INVALID_ARGUMENT);
        mr_tensor_deinit(&bad);
    }
    CHECK_OK(mr_tensor_init_int64(&bad, 3, &error));
    CHECK_STATUS(mr_iterator_restore(iterator, &bad, &error), MR_INVALID_ARGUMENT);
    mr_tensor_deinit(&bad);
    CHECK_STATUS(mr_iterator_restore(iterator, &bad, &error), MR_INVALID_ARGUMENT);
    mr_iterator_free(iterator);
    mr_dataset_free(d);

    d = chain(2);
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    CHECK_STATUS(mr_iterator_restore(iterator, &state, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "another pipeline");
    mr_iterator_free(iterator);
    mr_dataset_free(d);
    mr_tensor_deinit(&state);
}

TEST(pipeline_random_numbers_follow_the_element)
{
    /* Each epoch draws other numbers. Order stages around the map do not change the number of an element. */
    int64_t plain[20], shuffled[20];
    CHECK_EQ(numbers_of(mr_dataset_repeat(jittered(mr_dataset_range(0, 10, 1)), 2), nullptr, plain, 20), 20);
    CHECK(memcmp(plain, plain + 10, 10 * sizeof *plain) != 0);
    for (int i = 0; i < 20; i++) CHECK_EQ(plain[i] / 1000, i % 10);
    mr_dataset *d = mr_dataset_shuffle(jittered(mr_dataset_range(0, 10, 1)), .seed = 8);
    CHECK_EQ(numbers_of(mr_dataset_repeat(d, 2), nullptr, shuffled, 20), 20);
    for (int i = 0; i < 20; i++) CHECK_EQ(shuffled[i], plain[i / 10 * 10 + shuffled[i] / 1000]);
}
