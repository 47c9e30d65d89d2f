/* Queue runners, input producers, batches and coordinators reject bad arguments, and release what they were passed. */
#include "tests/test.h"

#include <millrace/queue.h>

#include <pthread.h>
#include <stdatomic.h>

static mr_status produce_count(void *context, mr_element *output, mr_error *error)
{
    const int32_t *count = context;
    MR_TRY(mr_tensor_init_int64(&output->tensors[0], 1, error));
    output->count = *count;
    return MR_OK;
}

static int released;

static void count_release(void *context)
{
    (void)context;
    released++;
}

TEST(a_producer_with_a_wrong_number_of_components_is_refused)
{
    static const int32_t counts[] = {-1, 2, MR_COMPONENTS_MAX, MR_COMPONENTS_MAX + 1, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < 2 * sizeof counts / sizeof *counts; i++) {
        mr_error error = {0};
        mr_coordinator *coordinator = nullptr;
        mr_queue *queue = nullptr;
        int32_t count = counts[i / 2];
        mr_producer producer = {produce_count, &count, nullptr};
        mr_queue_options options = {.size = sizeof options, .capacity = 4, .component_count = 1, .dtypes = {MR_INT64}};
        mr_element_spec spec = {.count = 1, .dtypes = {MR_INT64}, .shapes = {MR_SCALAR}};
        CHECK_OK(mr_coordinator_new(&coordinator, &error));
        if (i % 2 == 0) {
            CHECK_OK(mr_queue_new(MR_QUEUE_FIFO, &options, &queue, &error));
            CHECK_OK(mr_queue_runner_start(queue, &producer, 1, nullptr, coordinator, &error));
        } else {
            CHECK_OK(mr_train_batch(&producer, 1, &spec, MR_OPTIONS(mr_train_batch_options, .batch_size = 1),
                                    coordinator, &queue, &error));
        }
        CHECK_EQ(mr_coordinator_join(coordinator, -1, &error), MR_INVALID_ARGUMENT);
        mr_coordinator_free(coordinator);
        mr_queue_unref(queue);
    }
}

TEST(batches_refuse_bad_options_and_release_their_producers)
{
    static const mr_train_batch_options bad[] = {
        {.batch_size = 0},
        {.batch_size = -1},
        {.batch_size = 1, .shuffle = true, .dynamic_pad = true},
        {.batch_size = 1, .min_after_dequeue = 1},
        {.batch_size = 1, .keep_context = &released},
        {.batch_size = 1, .shuffle = true, .min_after_dequeue = 4, .capacity = 4},
        {.batch_size = 1, .shuffle = true, .min_after_dequeue = -1},
    };
    constexpr int BAD = sizeof bad / sizeof *bad;
    mr_error error = {0};
    mr_coordinator *coordinator = nullptr;
    mr_queue *queue = nullptr;
    int32_t one = 1;
    mr_producer producers[2] = {{produce_count, &one, count_release}, {produce_count, &one, count_release}};
    mr_element_spec spec = {.count = 1, .dtypes = {MR_INT64}, .shapes = {MR_SCALAR}};
    CHECK_OK(mr_coordinator_new(&coordinator, &error));
    for (int i = 0; i < BAD; i++) {
        mr_train_batch_options options = bad[i];
        options.size = sizeof options;
        CHECK_EQ(mr_train_batch(producers, 2, &spec, &options, coordinator, &queue, &error), MR_INVALID_ARGUMENT);
    }
    CHECK_EQ(released, 2 * BAD);
    spec.count = MR_COMPONENTS_MAX + 1;
    mr_train_batch_options good = {.size = sizeof good, .batch_size = 1};
    CHECK_EQ(mr_train_batch(producers, 2, &spec, &good, coordinator, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_train_batch(producers, 2, nullptr, &good, coordinator, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_train_batch(producers, 2, &spec, nullptr, coordinator, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_train_batch(producers, 2, &spec, &good, nullptr, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(released, 2 * BAD + 8);
    CHECK_EQ(mr_train_batch(nullptr, 2, &spec, &good, coordinator, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_train_batch(producers, 0, &spec, &good, coordinator, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_queue_runner_start(nullptr, producers, 2, nullptr, coordinator, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(released, 2 * BAD + 10);
    mr_queue_options options = {.size = sizeof options, .capacity = 4, .component_count = 1, .dtypes = {MR_INT64}};
    mr_element element = {.count = 0};
    CHECK_OK(mr_queue_new(MR_QUEUE_FIFO, &options, &queue, &error));
    CHECK_EQ(mr_train_batch_next(queue, &element, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_train_batch_next(nullptr, &element, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_queue_runner_start(queue, producers, 0, nullptr, coordinator, &error), MR_INVALID_ARGUMENT);
    mr_queue_unref(queue);
    mr_coordinator_free(coordinator);
}

TEST(input_producers_and_coordinators_refuse_bad_arguments)
{
    mr_error error = {0};
    mr_coordinator *coordinator = nullptr;
    mr_queue *queue = nullptr;
    const char *strings[] = {"a", nullptr};
    mr_input_producer_options negative = {.size = sizeof negative, .epochs = -1};
    mr_tensor scalar = {0};
    CHECK_OK(mr_tensor_init_int64(&scalar, 1, &error));
    CHECK_OK(mr_coordinator_new(&coordinator, &error));
    CHECK_EQ(mr_string_input_producer(strings, 2, nullptr, coordinator, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_string_input_producer(nullptr, 1, nullptr, coordinator, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_string_input_producer(nullptr, 0, nullptr, coordinator, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_string_input_producer(strings, -1, nullptr, coordinator, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_string_input_producer(strings, 1, &negative, coordinator, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_string_input_producer(strings, 1, nullptr, nullptr, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_string_input_producer(strings, 1, nullptr, coordinator, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_slice_input_producer(nullptr, 1, nullptr, coordinator, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_slice_input_producer(&scalar, 1, nullptr, coordinator, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_slice_input_producer(&scalar, MR_COMPONENTS_MAX + 1, nullptr, coordinator, &queue, &error),
             MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_range_input_producer(0, nullptr, coordinator, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_range_input_producer(INT64_MIN, nullptr, coordinator, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_range_input_producer(INT64_MAX, nullptr, coordinator, &queue, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_coordinator_new(nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_coordinator_start(coordinator, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_coordinator_start(coordinator, &(mr_member){0}, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_coordinator_join(nullptr, -1, &error), MR_INVALID_ARGUMENT);
    CHECK(mr_coordinator_should_stop(nullptr) && mr_coordinator_wait_for_stop(nullptr, -1));
    mr_coordinator_request_stop(nullptr, nullptr);
    mr_coordinator_clear_stop(nullptr);
    mr_tensor_deinit(&scalar);
    mr_coordinator_free(coordinator);
}

/* ---- A stop requested while the threads are joined ---- */

typedef struct meeting {
    mr_coordinator *coordinator;
    _Atomic int ready, stops, freed;
} meeting;

static mr_status end_at_once(void *context, mr_coordinator *coordinator, mr_error *error)
{
    (void)context, (void)coordinator, (void)error;
    return MR_OK;
}

typedef struct guest {
    meeting *meeting;
    int alive;
} guest;

static void stop_guest(void *context)
{
    guest *g = context;
    CHECK_EQ(g->alive, 1);
    atomic_fetch_add(&g->meeting->stops, 1);
}

static void free_guest(void *context)
{
    guest *g = context;
    g->alive = 0;
    atomic_fetch_add(&g->meeting->freed, 1);
    free(g);
}

static void *request_stop(void *context)
{
    meeting *m = context;
    atomic_store(&m->ready, 1);
    mr_coordinator_request_stop(m->coordinator, nullptr);
    return nullptr;
}

TEST(a_stop_while_threads_are_joined_calls_no_freed_member)
{
    constexpr int ROUNDS = 200, MEMBERS = 8;
    for (int round = 0; round < ROUNDS; round++) {
        mr_error error = {0};
        meeting m = {0};
        pthread_t thread;
        CHECK_OK(mr_coordinator_new(&m.coordinator, &error));
        for (int i = 0; i < MEMBERS; i++) {
            guest *g = malloc(sizeof *g);
            CHECK(g != nullptr);
            *g = (guest){&m, 1};
            CHECK_OK(mr_coordinator_start(
                m.coordinator,
                &(mr_member){.run = end_at_once, .stop = stop_guest, .release = free_guest, .context = g}, &error));
        }
        CHECK(pthread_create(&thread, nullptr, request_stop, &m) == 0);
        while (round % 2 == 0 && !atomic_load(&m.ready)) {}
        CHECK_OK(mr_coordinator_join(m.coordinator, -1, &error));
        CHECK(pthread_join(thread, nullptr) == 0);
        CHECK_EQ(m.freed, MEMBERS);
        mr_coordinator_free(m.coordinator);
    }
}

static mr_status produce_then_fail(void *context, mr_element *output, mr_error *error)
{
    int *left = context;
    if ((*left)-- == 0) return mr_fail(error, MR_DATA_LOSS, "the file is damaged");
    MR_TRY(mr_tensor_init_int64(&output->tensors[0], 1, error));
    output->count = 1;
    return MR_OK;
}

/* The usual loop: dequeue until the queue is closed, request a clean stop, join. The error came first. */
TEST(a_producer_that_fails_is_never_taken_for_one_that_ended)
{
    for (int round = 0; round < 300; round++) {
        mr_error error = {0}, end = {.status = MR_OUT_OF_RANGE};
        mr_coordinator *coordinator = nullptr;
        mr_queue *queue = nullptr;
        mr_tensor value = {0};
        int left = round % 7;
        mr_queue_options options = {.size = sizeof options, .capacity = 4, .component_count = 1, .dtypes = {MR_INT64}};
        CHECK_OK(mr_coordinator_new(&coordinator, &error));
        CHECK_OK(mr_queue_new(MR_QUEUE_FIFO, &options, &queue, &error));
        CHECK_OK(mr_queue_runner_start(queue, &(mr_producer){produce_then_fail, &left, nullptr}, 1, nullptr,
                                       coordinator, &error));
        while (mr_queue_dequeue(queue, &value, &error) == MR_OK) mr_tensor_deinit(&value);
        mr_coordinator_request_stop(coordinator, &end);
        CHECK_EQ(mr_coordinator_join(coordinator, -1, &error), MR_DATA_LOSS);
        mr_coordinator_free(coordinator);
        mr_queue_unref(queue);
    }
}
