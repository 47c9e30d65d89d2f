/* Engine threads: errors, cancellation, budget, statistics, and slow elements. */
#include "tests/pipeline/pipelines.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static mr_status fail_on_seven(void *context, const mr_element *input, mr_random *random, mr_element *output,
                               mr_error *error)
{
    (void)random;
    int64_t value = mr_tensor_int64s(&input->tensors[0])[0];
    if (value % 10 == 7) return mr_fail(error, *(mr_status *)context, "seven is not a number");
    output->tensors[0] = mr_tensor_ref(&input->tensors[0]);
    output->count = 1;
    return MR_OK;
}

TEST(pipeline_errors_keep_their_position)
{
    mr_error error = {0};
    mr_status failure = MR_DATA_LOSS;
    mr_dataset *d = mr_dataset_map(mr_dataset_range(0, 20, 1), fail_on_seven, &failure, &one_int64);
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 3), &iterator, &error));
    for (int64_t i = 0; i < 20; i++) {
        if (i % 10 == 7) {
            CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_DATA_LOSS);
            char expected[64];
            snprintf(expected, sizeof expected, "map: element %lld: seven is not a number", (long long)i);
            CHECK_STR(error.message, expected);
            CHECK_EQ(element.count, 0);
            continue;
        }
        CHECK_OK(mr_iterator_next(iterator, &element, &error));
        CHECK_EQ(mr_tensor_int64s(&element.tensors[0])[0], i);
    }
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_OUT_OF_RANGE);
    mr_iterator_free(iterator);

    /* A batch returns the error of its first failing element; the next batch follows. */
    d = mr_dataset_batch(d, 4);
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "element 7");
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK_EQ(mr_tensor_int64s(&element.tensors[0])[0], 8);
    mr_iterator_free(iterator);
    mr_dataset_free(d);

    /* A function cannot end the data. */
    failure = MR_OUT_OF_RANGE;
    d = mr_dataset_map(mr_dataset_range(7, 9, 1), fail_on_seven, &failure, &one_int64);
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_INVALID_ARGUMENT);
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

TEST(pipeline_map_must_keep_its_promise)
{
    mr_error error = {0};
    mr_element_spec spec = {.count = 1, .dtypes = {MR_FLOAT}, .shapes = {{.rank = 0}}};
    mr_dataset *d = mr_dataset_map(mr_dataset_range(0, 3, 1), jitter, nullptr, &spec);
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "int64");
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

/* Blocks element 0 until the other elements of its window are done. Passes only if they are computed ahead of it. */
typedef struct gate {
    atomic_int done;
    int awaited;
} gate;

static mr_status wait_for_others(void *context, const mr_element *input, mr_random *random, mr_element *output,
                                 mr_error *error)
{
    (void)random;
    (void)error;
    gate *g = context;
    int64_t value = mr_tensor_int64s(&input->tensors[0])[0];
    if (value == 0)
        while (atomic_load(&g->done) < g->awaited) (void)sched_yield();
    else
        atomic_fetch_add(&g->done, 1);
    output->tensors[0] = mr_tensor_ref(&input->tensors[0]);
    output->count = 1;
    return MR_OK;
}

TEST(pipeline_slow_element_does_not_delay_the_others)
{
    gate g = {.awaited = 11};
    mr_dataset *d = mr_dataset_map(mr_dataset_range(0, 32, 1), wait_for_others, &g, &one_int64);
    d = mr_dataset_prefetch(mr_dataset_batch(d, 4), 3);
    int64_t numbers[32];
    CHECK_EQ(numbers_of(d, MR_OPTIONS(mr_iterator_options, .threads = 2), numbers, 32), 32);
    for (int i = 0; i < 32; i++) CHECK_EQ(numbers[i], i);
}

static mr_status count_calls(void *context, const mr_element *input, mr_random *random, mr_element *output,
                             mr_error *error)
{
    atomic_fetch_add((atomic_int *)context, 1);
    return jitter(nullptr, input, random, output, error);
}

static void *consume(void *argument)
{
    mr_error error = {0};
    mr_element element = {0};
    mr_status status;
    do status = mr_iterator_next(argument, &element, &error);
    while (status == MR_OK);
    mr_element_deinit(&element);
    return status == MR_CANCELLED ? argument : nullptr;
}

TEST(pipeline_cancel)
{
    for (int round = 0; round < 20; round++) {
        mr_error error = {0};
        atomic_int calls = 0;
        mr_dataset *d = mr_dataset_repeat(mr_dataset_range(0, 100, 1), MR_INFINITE);
        d = mr_dataset_map(d, count_calls, &calls, &one_int64);
        d = mr_dataset_prefetch(mr_dataset_batch(mr_dataset_batch(d, 3), 2), 2);
        mr_iterator *iterator = nullptr;
        CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 2), &iterator, &error));
        pthread_t thread;
        void *result = nullptr;
        CHECK(pthread_create(&thread, nullptr, consume, iterator) == 0);
        while (atomic_load(&calls) < 50 * round) (void)sched_yield();
        mr_iterator_cancel(iterator);
        pthread_join(thread, &result);
        CHECK(result == iterator);
        mr_element element = {0};
        CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_CANCELLED);
        mr_iterator_free(iterator);
        mr_dataset_free(d);
    }
}

TEST(pipeline_is_freed_at_any_moment)
{
    for (int taken = 0; taken < 12; taken++) {
        mr_error error = {0};
        mr_dataset *d = mr_dataset_map(mr_dataset_range(0, 100, 1), jitter, nullptr, &one_int64);
        d = mr_dataset_prefetch(mr_dataset_batch(d, 3), 4);
        mr_iterator *iterator = nullptr;
        mr_element held[12] = {0};
        CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 3), &iterator, &error));
        mr_dataset_free(d);
        for (int i = 0; i < taken; i++) CHECK_OK(mr_iterator_next(iterator, &held[i], &error));
        mr_iterator_free(iterator);
        /* Delivered elements remain valid after the iterator is freed. */
        for (int i = 0; i < taken; i++) {
            CHECK_EQ(mr_tensor_int64s(&held[i].tensors[0])[2] / 1000, 3 * i + 2);
            mr_element_deinit(&held[i]);
        }
    }
}

TEST(pipeline_batches_that_are_referenced_are_not_written_to)
{
    mr_error error = {0};
    mr_dataset *d = mr_dataset_prefetch(mr_dataset_batch(mr_dataset_range(0, 400, 1), 4), 2);
    mr_iterator *iterator = nullptr;
    mr_element held[100] = {0};
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    for (int i = 0; i < 100; i++) CHECK_OK(mr_iterator_next(iterator, &held[i], &error));
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(mr_tensor_int64s(&held[i].tensors[0])[3], 4 * i + 3);
        mr_element_deinit(&held[i]);
    }
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

static atomic_size_t allocated_bytes;

static mr_status allocate(void *context, size_t size_bytes, mr_buffer **buffer, mr_error *error)
{
    (void)context;
    atomic_fetch_add(&allocated_bytes, size_bytes);
    return mr_buffer_new(size_bytes, buffer, error);
}

TEST(pipeline_stays_within_its_budget)
{
    mr_error error = {0};
    mr_tensor rows = {0};
    CHECK_OK(mr_tensor_init(&rows, MR_FLOAT, MR_SHAPE(64, 1024), &error));
    memset(rows.data, 0, mr_tensor_size_bytes(&rows));
    mr_dataset *d = mr_dataset_repeat(mr_dataset_from_slices(&rows, 1), MR_INFINITE);
    d = mr_dataset_prefetch(mr_dataset_batch(d, 16), 100);
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_iterator_options options = {.size = sizeof options, .threads = 2, .budget_bytes = 300000, .allocate = allocate};
    CHECK_OK(mr_iterator_new(d, &options, &iterator, &error));
    for (int i = 0; i < 50; i++) CHECK_OK(mr_iterator_next(iterator, &element, &error));
    /* Four batches of 64 KiB fit. The consumer owns one more and releases it late. */
    CHECK(atomic_load(&allocated_bytes) <= 6 * 65536);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    /* Less than a batch: the next batch is still produced. */
    options.budget_bytes = 65535;
    CHECK_OK(mr_iterator_new(d, &options, &iterator, &error));
    for (int i = 0; i < 50; i++) CHECK_OK(mr_iterator_next(iterator, &element, &error));
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
    mr_tensor_deinit(&rows);
}

TEST(pipeline_statistics)
{
    mr_error error = {0};
    mr_dataset *d = mr_dataset_map(mr_dataset_shuffle(mr_dataset_range(0, 64, 1)), jitter, nullptr, &one_int64);
    d = mr_dataset_prefetch(mr_dataset_batch(d, 8), 2);
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 2), &iterator, &error));
    while (mr_iterator_next(iterator, &element, &error) == MR_OK) {}
    mr_stage_statistics s[8] = {0};
    CHECK_EQ(mr_iterator_statistics(iterator, s, 8), 5);
    const char *names[] = {"range", "shuffle", "map", "batch", "prefetch"};
    const uint64_t elements[] = {64, 64, 64, 8, 8};
    for (int i = 0; i < 5; i++) {
        CHECK_STR(s[i].stage, names[i]);
        CHECK_EQ(s[i].elements, elements[i]);
    }
    CHECK_EQ(s[2].threads, 2);
    CHECK(s[2].busy_ns > 0);
    CHECK_EQ(s[3].bytes, 64 * 8);
    CHECK_EQ(mr_iterator_statistics(iterator, s, 1), 5);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

static void release(void *context)
{
    ++*(int *)context;
}

TEST(pipeline_dataset_is_shared_and_released_once)
{
    mr_error error = {0};
    int released = 0;
    mr_dataset *d = mr_dataset_map(mr_dataset_range(0, 5, 1), jitter, &released, &one_int64, .release = release);
    mr_dataset *first = mr_dataset_batch(mr_dataset_ref(d), 2), *second = mr_dataset_repeat(d, 2);
    mr_iterator *iterator = nullptr;
    CHECK_OK(mr_iterator_new(first, nullptr, &iterator, &error));
    mr_dataset_free(first);
    mr_dataset_free(second);
    CHECK_EQ(released, 0);
    mr_iterator_free(iterator);
    CHECK_EQ(released, 1);
}
