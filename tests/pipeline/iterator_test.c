/* Iterators that are initialized repeatedly, and iterators by handle. */
#include "tests/pipeline/pipelines.h"

#include <pthread.h>
#include <stdatomic.h>

static const mr_element_spec one_number = {.count = 1, .dtypes = {MR_INT64}};

/* Checks the next numbers. A last value of -1 expects the end of the data. */
#define CHECK_NEXT(iterator, ...)                                                                                      \
    do {                                                                                                               \
        int64_t check_expected_[] = {__VA_ARGS__};                                                                     \
        for (size_t check_i_ = 0; check_i_ < sizeof check_expected_ / sizeof(int64_t); check_i_++)                     \
            CHECK_EQ(next_number((iterator)), check_expected_[check_i_]);                                              \
    } while (0)

static int64_t next_number(mr_iterator *iterator)
{
    mr_error error = {0};
    mr_element element = {0};
    mr_status status = mr_iterator_next(iterator, &element, &error);
    if (status == MR_OUT_OF_RANGE) return -1;
    CHECK_OK(status);
    int64_t number = mr_tensor_int64s(&element.tensors[0])[0];
    mr_element_deinit(&element);
    return number;
}

static int64_t next_by_handle(const mr_tensor *handle)
{
    mr_error error = {0};
    mr_element element = {0};
    CHECK_OK(mr_iterator_next_by_handle(handle, &one_number, &element, &error));
    int64_t number = mr_tensor_int64s(&element.tensors[0])[0];
    mr_element_deinit(&element);
    return number;
}

static mr_iterator *iterator_of(mr_dataset *dataset, const mr_iterator_options *options)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    CHECK_OK(mr_iterator_new(dataset, options, &iterator, &error));
    mr_dataset_free(dataset);
    return iterator;
}

TEST(iterator_of_a_structure_runs_one_dataset_after_the_other)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_tensor state = {0};
    CHECK_OK(mr_iterator_new_from_spec(&one_number, MR_OPTIONS(mr_iterator_options, .threads = 2), &iterator, &error));
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_FAILED_PRECONDITION);
    CHECK_CONTAINS(error.message, "has not been initialized");
    CHECK_STATUS(mr_iterator_save(iterator, &state, &error), MR_FAILED_PRECONDITION);
    CHECK_EQ(mr_iterator_statistics(iterator, nullptr, 0), 0);
    mr_dataset *a = mr_dataset_prefetch(mr_dataset_range(0, 3, 1), 2), *b = mr_dataset_range(10, 14, 1);
    CHECK_OK(mr_iterator_initialize(iterator, a, &error));
    CHECK_NEXT(iterator, 0, 1);
    CHECK_OK(mr_iterator_initialize(iterator, b, &error));
    CHECK_NEXT(iterator, 10);
    CHECK_OK(mr_iterator_initialize(iterator, a, &error));
    CHECK_NEXT(iterator, 0, 1, 2, -1, -1);
    CHECK_OK(mr_iterator_initialize(iterator, b, &error));
    CHECK_NEXT(iterator, 10, 11, 12, 13, -1);
    mr_iterator_free(iterator);
    mr_dataset_free(a);
    mr_dataset_free(b);
}

TEST(iterator_initialized_again_has_the_same_order)
{
    mr_error error = {0};
    mr_dataset *d = mr_dataset_shuffle(mr_dataset_range(0, 40, 1), .buffer_size = 10, .seed = 5);
    mr_iterator *iterator = nullptr;
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .digest = true), &iterator, &error));
    uint64_t first[40], again[40];
    CHECK_EQ(digests_of(iterator, first, 40), 40);
    uint64_t digest = mr_iterator_digest(iterator);
    CHECK_OK(mr_iterator_initialize(iterator, d, &error));
    CHECK_EQ(digests_of(iterator, again, 40), 40);
    CHECK(memcmp(first, again, sizeof first) == 0);
    CHECK_EQ(mr_iterator_digest(iterator), digest);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

TEST(iterator_refuses_other_structures_and_goes_on)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    CHECK_OK(mr_iterator_new_from_spec(&one_number, nullptr, &iterator, &error));
    mr_dataset *numbers = mr_dataset_range(0, 5, 1), *batches = mr_dataset_batch(mr_dataset_range(0, 4, 1), 2);
    mr_dataset *pairs = mr_dataset_enumerate(mr_dataset_range(0, 4, 1), 0),
               *failed = mr_dataset_batch(mr_dataset_range(0, 4, 1), 0);
    mr_tensor half = {0};
    CHECK_OK(mr_tensor_init_float(&half, 0.5f, &error));
    mr_dataset *floats = mr_dataset_from_tensors(&half, 1);
    CHECK_OK(mr_iterator_initialize(iterator, numbers, &error));
    CHECK_NEXT(iterator, 0);
    CHECK_STATUS(mr_iterator_initialize(iterator, batches, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "initialize: component 0 has shape [?], expected []");
    CHECK_STATUS(mr_iterator_initialize(iterator, floats, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "initialize: component 0 is float, expected int64");
    CHECK_STATUS(mr_iterator_initialize(iterator, pairs, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "initialize: elements have 2 components, expected 1");
    CHECK_STATUS(mr_iterator_initialize(iterator, failed, &error), MR_INVALID_ARGUMENT);
    CHECK_NEXT(iterator, 1, 2);
    mr_iterator_free(iterator);
    CHECK_STATUS(mr_iterator_new_from_spec(&(mr_element_spec){0}, nullptr, &iterator, &error), MR_INVALID_ARGUMENT);
    CHECK(iterator == nullptr);
    mr_dataset_free(numbers);
    mr_dataset_free(batches);
    mr_dataset_free(pairs);
    mr_dataset_free(failed);
    mr_dataset_free(floats);
    mr_tensor_deinit(&half);
}

/* Where the dataset leaves sizes open, each element is compared with the iterator's spec. */
TEST(iterator_refuses_elements_of_another_shape)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    const mr_element_spec three = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{.rank = 1, .dims = {3}}}};
    mr_dataset *d = mr_dataset_batch(mr_dataset_range(0, 8, 1), 3);
    CHECK_OK(mr_iterator_new_from_spec(&three, nullptr, &iterator, &error));
    CHECK_OK(mr_iterator_initialize(iterator, d, &error));
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "component 0 has shape [2], expected [3]");
    CHECK_EQ(element.count, 0);
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_OUT_OF_RANGE);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

TEST(iterator_continues_from_a_state_after_it_ran_something_else)
{
    mr_error error = {0};
    for (int at = 0; at < 9; at++) {
        mr_iterator *iterator = nullptr;
        mr_tensor state = {0};
        mr_dataset *d = mr_dataset_shuffle(mr_dataset_range(0, 9, 1), .buffer_size = 4, .seed = 3);
        mr_dataset *other = mr_dataset_range(50, 60, 1);
        uint64_t rest[9], found[9];
        CHECK_OK(mr_iterator_new_from_spec(&one_number, MR_OPTIONS(mr_iterator_options, .seed = 7), &iterator, &error));
        CHECK_OK(mr_iterator_initialize(iterator, d, &error));
        CHECK_EQ(digests_of(iterator, rest, at), at);
        CHECK_OK(mr_iterator_save(iterator, &state, &error));
        int count = digests_of(iterator, rest, 9);
        CHECK_OK(mr_iterator_initialize(iterator, other, &error));
        CHECK_NEXT(iterator, 50, 51);
        CHECK_STATUS(mr_iterator_restore(iterator, &state, &error), MR_INVALID_ARGUMENT);
        CHECK_OK(mr_iterator_initialize(iterator, d, &error));
        CHECK_OK(mr_iterator_restore(iterator, &state, &error));
        CHECK_EQ(digests_of(iterator, found, 9), count);
        CHECK(memcmp(rest, found, (size_t)count * sizeof *rest) == 0);
        mr_iterator_free(iterator);
        mr_tensor_deinit(&state);
        mr_dataset_free(d);
        mr_dataset_free(other);
    }
}

TEST(iterator_that_was_cancelled_stays_so)
{
    mr_error error = {0};
    mr_element element = {0};
    mr_dataset *d = mr_dataset_range(0, 5, 1);
    mr_iterator *iterator = nullptr;
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    mr_iterator_cancel(iterator);
    CHECK_STATUS(mr_iterator_initialize(iterator, d, &error), MR_CANCELLED);
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_CANCELLED);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

/* ---- Options of a dataset ---- */

static int32_t threads_of(mr_dataset *dataset, int32_t requested)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_stage_statistics statistics[16];
    CHECK_OK(mr_iterator_new(dataset, MR_OPTIONS(mr_iterator_options, .threads = requested), &iterator, &error));
    CHECK(mr_iterator_statistics(iterator, statistics, 16) <= 16);
    mr_iterator_free(iterator);
    mr_dataset_free(dataset);
    return statistics[0].threads;
}

static mr_dataset *mapped(void)
{
    return mr_dataset_map(mr_dataset_range(0, 30, 1), jitter, nullptr, &one_int64, .seed = 1);
}

TEST(options_of_a_dataset_are_those_of_its_iterators)
{
    CHECK_EQ(threads_of(mr_dataset_with_options(mapped(), .threads = 3), 0), 3);
    CHECK_EQ(threads_of(mr_dataset_batch(mr_dataset_with_options(mapped(), .threads = 3), 2), 0), 3);
    CHECK_EQ(threads_of(mr_dataset_with_options(mapped(), .threads = 3), 5), 5);
    mr_dataset *d = mr_dataset_with_options(mr_dataset_with_options(mapped(), .threads = 3), .budget_bytes = 1 << 20);
    CHECK_EQ(mr_dataset_options_of(d)->threads, 3);
    CHECK_EQ(mr_dataset_options_of(d)->budget_bytes, 1 << 20);
    d = mr_dataset_take(mr_dataset_with_options(d, .threads = 7), 9);
    CHECK_EQ(mr_dataset_options_of(d)->threads, 7);
    mr_dataset *both[] = {d, mr_dataset_with_options(mapped(), .threads = 2)};
    d = mr_dataset_zip(both, 2);
    CHECK_EQ(mr_dataset_options_of(d)->threads, 2);
    CHECK_EQ(mr_dataset_options_of(d)->budget_bytes, 1 << 20);
    mr_dataset_free(d);
    mr_error error = {0};
    d = mr_dataset_with_options(mr_dataset_range(0, 3, 1), .threads = -1);
    CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "options: threads is -1, expected 0 to 1024");
    mr_dataset_free(d);
}

/* Options affect neither elements nor states, whichever dataset they are set on. */
TEST(options_of_a_dataset_change_no_element)
{
    mr_error error = {0};
    uint64_t plain[64], found[64];
    mr_dataset *d = mr_dataset_prefetch(mr_dataset_batch(mr_dataset_shuffle(mapped(), .buffer_size = 7), 4), 2);
    mr_dataset *same = mr_dataset_with_options(mapped(), .threads = 2);
    same = mr_dataset_with_options(mr_dataset_shuffle(same, .buffer_size = 7), .budget_bytes = 1 << 20);
    same = mr_dataset_with_options(mr_dataset_prefetch(mr_dataset_batch(same, 4), 2), .threads = 3);
    mr_iterator *one = nullptr, *two = nullptr;
    mr_tensor state = {0};
    CHECK_OK(mr_iterator_new(d, nullptr, &one, &error));
    CHECK_OK(mr_iterator_new(same, nullptr, &two, &error));
    CHECK_EQ(digests_of(one, plain, 3), 3);
    CHECK_OK(mr_iterator_save(one, &state, &error));
    int count = digests_of(one, plain, 64);
    CHECK_OK(mr_iterator_restore(two, &state, &error));
    CHECK_EQ(digests_of(two, found, 64), count);
    CHECK(memcmp(plain, found, (size_t)count * sizeof *plain) == 0);
    mr_tensor_deinit(&state);
    mr_iterator_free(one);
    mr_iterator_free(two);
    mr_dataset_free(d);
    mr_dataset_free(same);
}

/* ---- By handle ---- */

TEST(iterator_handles_switch_and_each_keeps_its_position)
{
    mr_error error = {0};
    mr_iterator *training = iterator_of(mr_dataset_prefetch(mr_dataset_range(0, 5, 1), 2), nullptr);
    mr_iterator *validation = iterator_of(mr_dataset_range(10, 15, 1), nullptr);
    mr_tensor first = {0}, second = {0}, again = {0};
    CHECK_OK(mr_iterator_handle(training, &first, &error));
    CHECK_OK(mr_iterator_handle(validation, &second, &error));
    CHECK_OK(mr_iterator_handle(training, &again, &error));
    CHECK(mr_string_equal(mr_tensor_strings(&first)[0], mr_tensor_strings(&again)[0]));
    CHECK(!mr_string_equal(mr_tensor_strings(&first)[0], mr_tensor_strings(&second)[0]));
    CHECK_EQ(next_by_handle(&first), 0);
    CHECK_EQ(next_by_handle(&first), 1);
    CHECK_EQ(next_by_handle(&second), 10);
    CHECK_EQ(next_by_handle(&again), 2);
    CHECK_EQ(next_by_handle(&second), 11);
    CHECK_EQ(next_number(training), 3);

    mr_tensor state = {0};
    CHECK_OK(mr_iterator_save_by_handle(&second, &state, &error));
    CHECK_EQ(next_by_handle(&second), 12);
    CHECK_EQ(next_by_handle(&second), 13);
    CHECK_OK(mr_iterator_restore_by_handle(&second, &state, &error));
    CHECK_EQ(next_by_handle(&second), 12);
    CHECK_EQ(next_by_handle(&first), 4);
    mr_element element = {0};
    CHECK_STATUS(mr_iterator_next_by_handle(&first, nullptr, &element, &error), MR_OUT_OF_RANGE);
    CHECK_STATUS(mr_iterator_restore_by_handle(&first, &state, &error), MR_INVALID_ARGUMENT);

    mr_dataset *other = mr_dataset_range(90, 95, 1);
    CHECK_OK(mr_iterator_initialize(training, other, &error));
    CHECK_EQ(next_by_handle(&first), 90);
    mr_dataset_free(other);
    mr_iterator_free(training);
    mr_iterator_free(validation);
    mr_tensor_deinit(&first);
    mr_tensor_deinit(&second);
    mr_tensor_deinit(&again);
    mr_tensor_deinit(&state);
}

TEST(iterator_handles_that_are_stale_or_damaged_are_rejected)
{
    mr_error error = {0};
    mr_element element = {0};
    mr_tensor stale = {0}, handle = {0}, bad = {0};
    mr_iterator *iterator = iterator_of(mr_dataset_range(0, 5, 1), nullptr);
    CHECK_OK(mr_iterator_handle(iterator, &stale, &error));
    mr_iterator_free(iterator);
    CHECK_STATUS(mr_iterator_next_by_handle(&stale, nullptr, &element, &error), MR_NOT_FOUND);
    CHECK_STR(error.message, "the iterator of the handle has been freed");
    CHECK_STATUS(mr_iterator_save_by_handle(&stale, &bad, &error), MR_NOT_FOUND);

    /* It reuses the same entry of the table. */
    iterator = iterator_of(mr_dataset_range(0, 5, 1), nullptr);
    CHECK_OK(mr_iterator_handle(iterator, &handle, &error));
    CHECK_STATUS(mr_iterator_next_by_handle(&stale, nullptr, &element, &error), MR_NOT_FOUND);
    CHECK_STR(error.message, "the iterator of the handle has been freed");

    mr_string good = mr_tensor_strings(&handle)[0];
    char bytes[128];
    for (size_t i = 0; i < good.size_bytes; i++) {
        static const char changes[] = {'\0', '1', '0', 'f', 'z', '\xff'};
        for (size_t c = 0; c < sizeof changes; c++) {
            memcpy(bytes, good.data, good.size_bytes);
            if (bytes[i] == changes[c]) continue;
            bytes[i] = changes[c];
            CHECK_OK(mr_tensor_init_string(&bad, (mr_string){bytes, good.size_bytes}, &error));
            mr_status status = mr_iterator_next_by_handle(&bad, nullptr, &element, &error);
            CHECK(status == MR_INVALID_ARGUMENT || status == MR_NOT_FOUND);
            mr_tensor_deinit(&bad);
        }
        CHECK_OK(mr_tensor_init_string(&bad, (mr_string){good.data, i}, &error));
        CHECK_STATUS(mr_iterator_next_by_handle(&bad, nullptr, &element, &error), MR_INVALID_ARGUMENT);
        CHECK_STR(error.message, "not a handle of an iterator");
        mr_tensor_deinit(&bad);
    }
    CHECK_OK(mr_tensor_init_int64(&bad, 3, &error));
    CHECK_STATUS(mr_iterator_next_by_handle(&bad, nullptr, &element, &error), MR_INVALID_ARGUMENT);
    mr_tensor_deinit(&bad);
    CHECK_STATUS(mr_iterator_next_by_handle(&bad, nullptr, &element, &error), MR_INVALID_ARGUMENT);

    const mr_element_spec floats = {.count = 1, .dtypes = {MR_FLOAT}};
    CHECK_STATUS(mr_iterator_next_by_handle(&handle, &floats, &element, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "component 0 is int64, expected float");
    const mr_element_spec rows = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{.rank = 1, .dims = {-1}}}};
    CHECK_STATUS(mr_iterator_next_by_handle(&handle, &rows, &element, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "component 0 has shape [], expected [?]");
    CHECK_EQ(next_by_handle(&handle), 0);
    mr_iterator_free(iterator);
    mr_tensor_deinit(&stale);
    mr_tensor_deinit(&handle);
}

typedef struct crowd {
    mr_tensor handle;
    _Atomic int64_t sum, count;
    _Atomic bool is_freed; /* a caller has received this error */
} crowd;

static void *take_some(void *context)
{
    crowd *c = context;
    mr_element element = {0};
    mr_error error = {0};
    mr_status status;
    while ((status = mr_iterator_next_by_handle(&c->handle, &one_number, &element, &error)) == MR_OK) {
        atomic_fetch_add(&c->sum, mr_tensor_int64s(&element.tensors[0])[0]);
        atomic_fetch_add(&c->count, 1);
    }
    if (status == MR_NOT_FOUND || status == MR_CANCELLED) atomic_store(&c->is_freed, true);
    mr_element_deinit(&element);
    return nullptr;
}

TEST(iterator_by_handle_serves_several_threads)
{
    mr_error error = {0};
    mr_iterator *iterator = iterator_of(mr_dataset_prefetch(mr_dataset_range(0, 3000, 1), 4),
                                        MR_OPTIONS(mr_iterator_options, .threads = 2));
    crowd c = {0};
    pthread_t threads[4];
    CHECK_OK(mr_iterator_handle(iterator, &c.handle, &error));
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], nullptr, take_some, &c) == 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], nullptr);
    CHECK_EQ(c.count, 3000);
    CHECK_EQ(c.sum, 3000 * 2999 / 2);
    mr_iterator_free(iterator);
    mr_tensor_deinit(&c.handle);
}

/* Initialized and freed while other threads read elements: no thread receives an element of a freed iterator or waits
 * indefinitely. */
TEST(iterator_by_handle_is_freed_under_its_users)
{
    mr_error error = {0};
    for (int round = 0; round < 8; round++) {
        mr_dataset *d = mr_dataset_prefetch(mr_dataset_repeat(mr_dataset_range(0, 50, 1), MR_INFINITE), 4);
        mr_iterator *iterator = nullptr;
        CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 2), &iterator, &error));
        crowd c = {0};
        pthread_t threads[3];
        CHECK_OK(mr_iterator_handle(iterator, &c.handle, &error));
        for (int i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], nullptr, take_some, &c) == 0);
        while (atomic_load(&c.count) < 20 * round) sched_yield();
        for (int i = 0; i < round % 3; i++) CHECK_OK(mr_iterator_initialize(iterator, d, &error));
        mr_iterator_free(iterator);
        for (int i = 0; i < 3; i++) pthread_join(threads[i], nullptr);
        CHECK(atomic_load(&c.is_freed));
        mr_tensor_deinit(&c.handle);
        mr_dataset_free(d);
    }
}

/* ---- The element's array ---- */

TEST(iterator_loses_no_element_when_there_is_no_memory_for_its_array)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    mr_error error = {0};
    mr_dataset *numbers = mr_dataset_range(0, 200, 1);
    mr_iterator *iterator = iterator_of(numbers, MR_OPTIONS(mr_iterator_options, .threads = 1));
    int lacks = 0;
    CHECK_NEXT(iterator, 0, 1);
    for (int i = 2; i < 200; i++) {
        mr_element element = {0};
        test_fail_allocation(test_allocations() + 1);
        mr_status status = mr_iterator_next(iterator, &element, &error);
        test_fail_allocation(0);
        if (status == MR_RESOURCE_EXHAUSTED) {
            lacks++;
            CHECK_EQ(element.count, 0);
            CHECK_OK(mr_iterator_next(iterator, &element, &error));
        }
        CHECK_EQ(mr_tensor_int64s(&element.tensors[0])[0], i);
        mr_element_deinit(&element);
    }
    CHECK(lacks > 0);
    CHECK_NEXT(iterator, -1);
    mr_iterator_free(iterator);
}

TEST(iterator_reuses_the_array_of_the_element)
{
    mr_error error = {0};
    mr_dataset *pair = mr_dataset_zip((mr_dataset *[]){mr_dataset_range(0, 50, 1), mr_dataset_range(1, 51, 1)}, 2);
    mr_iterator *one = iterator_of(mr_dataset_range(0, 50, 1), nullptr), *two = iterator_of(pair, nullptr);
    mr_element element = {0};
    CHECK_OK(mr_iterator_next(two, &element, &error));
    const mr_tensor *array = element.tensors;
    for (int i = 0; i < 49; i++) {
        CHECK_OK(mr_iterator_next(one, &element, &error));
        CHECK(element.tensors == array && element.count == 1);
        CHECK_OK(mr_iterator_next(two, &element, &error));
        CHECK(element.tensors == array && element.count == 2);
        CHECK_EQ(mr_tensor_int64s(&element.tensors[1])[0], i + 2);
    }
    CHECK_STATUS(mr_iterator_next(two, &element, &error), MR_OUT_OF_RANGE);
    CHECK(element.tensors == nullptr && element.capacity == 0 && element.count == 0);
    /* An array that is borrowed is not written to. */
    mr_tensor mine = {0};
    mr_element borrowed = {.count = 1, .tensors = &mine};
    CHECK_OK(mr_iterator_next(one, &borrowed, &error));
    CHECK(borrowed.tensors != &mine && mine.buffer == nullptr);
    mr_element_deinit(&borrowed);
    mr_element_deinit(&element);
    mr_iterator_free(one);
    mr_iterator_free(two);
}
