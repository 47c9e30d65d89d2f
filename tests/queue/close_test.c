/* Queues that are closed before a batch is complete: its elements return to the queue, each once, at sizes below, at
 * and above the capacity. */
#include "queue/attempt.h"
#include "tests/test.h"

#include <pthread.h>

typedef struct batch {
    mr_queue *queue;
    int64_t count;
    bool up_to;
    mr_tensor result;
    mr_status status;
} batch;

static void *dequeue_batch(void *argument)
{
    batch *b = argument;
    mr_error error = {0};
    b->status = b->up_to ? mr_queue_dequeue_up_to(b->queue, b->count, &b->result, &error)
                         : mr_queue_dequeue_many(b->queue, b->count, &b->result, &error);
    return nullptr;
}

static mr_queue *queue_of(mr_queue_kind kind, int64_t capacity, int64_t min_after_dequeue)
{
    mr_error error = {0};
    mr_queue *queue = nullptr;
    mr_queue_options options = {.size = sizeof options,
                                .capacity = capacity,
                                .component_count = 1,
                                .dtypes = {MR_INT64},
                                .shapes = {MR_SCALAR},
                                .min_after_dequeue = min_after_dequeue,
                                .seed = kind == MR_QUEUE_RANDOM_SHUFFLE ? test_seed() : 0};
    CHECK_OK(mr_queue_new(kind, &options, &queue, &error));
    return queue;
}

static void put(mr_queue *queue, int64_t number)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init_int64(&tensor, number, &error));
    CHECK_OK(mr_queue_enqueue(queue, &tensor, &error));
    mr_tensor_deinit(&tensor);
}

/* Empties the queue, which must contain 0 … count − 1, in this order unless it shuffles. */
static void check_contents(mr_queue *queue, mr_queue_kind kind, int64_t count)
{
    mr_error error = {0};
    bool seen[256] = {0};
    CHECK_EQ(mr_queue_size(queue), count);
    for (int64_t i = 0; i < count; i++) {
        mr_tensor tensor = {0};
        CHECK_OK(mr_queue_dequeue(queue, &tensor, &error));
        int64_t number = mr_tensor_int64s(&tensor)[0];
        CHECK(number >= 0 && number < count && !seen[number]);
        if (kind != MR_QUEUE_RANDOM_SHUFFLE) CHECK_EQ(number, i);
        seen[number] = true;
        mr_tensor_deinit(&tensor);
    }
    CHECK_EQ(mr_queue_size(queue), 0);
}

/* Requests a batch of more elements than are ever enqueued; afterwards all of them are in the queue. */
static void check_close(mr_queue_kind kind, int64_t capacity, int64_t count, bool cancel_pending)
{
    pthread_t thread;
    batch b = {.queue = queue_of(kind, capacity, 0), .count = count + 1};
    CHECK(pthread_create(&thread, nullptr, dequeue_batch, &b) == 0);
    for (int64_t i = 0; i < count; i++) put(b.queue, i);
    mr_queue_close(b.queue, cancel_pending);
    CHECK(pthread_join(thread, nullptr) == 0);
    CHECK_EQ(b.status, MR_OUT_OF_RANGE);
    check_contents(b.queue, kind, count);
    mr_queue_unref(b.queue);
}

TEST(a_batch_that_is_not_complete_returns_all_its_elements)
{
    static const int64_t counts[] = {0, 1, 4, 5, 6, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, 128, 129, 200};
    for (mr_queue_kind kind = MR_QUEUE_FIFO; kind <= MR_QUEUE_PRIORITY; kind++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            for (int64_t capacity = 1; capacity <= 64; capacity *= 2)
                check_close(kind, capacity, counts[i], (i + (size_t)capacity) % 2 == 0);
}

TEST(batch_waits_for_an_earlier_one)
{
    /* The first waits for 5 and has 2 when the queue is closed; the second takes those that the first returns. */
    mr_queue *queue = queue_of(MR_QUEUE_FIFO, 8, 0);
    mr_tensor first[5] = {0}, second[2] = {0};
    mr_queue_attempt many = {.count = 5, .elements = first}, few = {.count = 2, .elements = second};
    mr_queue_start(queue, &many);
    mr_queue_start(queue, &few);
    put(queue, 0);
    put(queue, 1);
    CHECK(!many.is_done && many.moved == 2 && !few.is_done && few.moved == 0);
    mr_queue_close(queue, false);
    CHECK(many.is_done && many.status == MR_OUT_OF_RANGE && many.moved == 0);
    CHECK(few.is_done && few.status == MR_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(mr_tensor_int64s(&second[i])[0], i);
        mr_tensor_deinit(&second[i]);
    }
    mr_queue_unref(queue);
}

/* Elements whose batch cannot be allocated stay in the queue, in their order. */
TEST(a_batch_without_memory_returns_its_elements)
{
    constexpr int64_t COUNT = 40;
    if (test_is_sanitized() || test_allocations() < 0) test_skip("allocations cannot fail here");
    for (mr_queue_kind kind = MR_QUEUE_FIFO; kind <= MR_QUEUE_PRIORITY; kind++) {
        mr_queue *queue = queue_of(kind, COUNT, 0);
        mr_error error = {0};
        mr_tensor batch = {0};
        for (int64_t i = 0; i < COUNT; i++) put(queue, i);
        int failures = 0;
        for (;; failures++) {
            test_fail_allocation(test_allocations() + 1 + failures);
            mr_status status = mr_queue_dequeue_many(queue, COUNT / 2, &batch, &error);
            test_fail_allocation(0);
            if (status == MR_OK) break;
            CHECK_EQ(status, MR_RESOURCE_EXHAUSTED);
            CHECK_EQ(mr_queue_size(queue), COUNT);
        }
        CHECK(failures >= 3);
        mr_tensor_deinit(&batch);
        CHECK_EQ(mr_queue_size(queue), COUNT / 2);
        mr_queue_unref(queue);
    }
}

TEST(an_enqueue_without_memory_fails_and_keeps_the_rest)
{
    if (test_is_sanitized() || test_allocations() < 0) test_skip("allocations cannot fail here");
    for (mr_queue_kind kind = MR_QUEUE_FIFO; kind <= MR_QUEUE_PRIORITY; kind++) {
        mr_queue *queue = queue_of(kind, MR_QUEUE_UNBOUNDED, 0);
        mr_error error = {0};
        for (int64_t i = 0; i < 100; i++) {
            mr_tensor number = {0};
            CHECK_OK(mr_tensor_init_int64(&number, i, &error));
            test_fail_allocation(test_allocations() + 1);
            mr_status status = mr_queue_enqueue(queue, &number, &error);
            test_fail_allocation(0);
            CHECK(status == MR_OK || (status == MR_RESOURCE_EXHAUSTED && (i == 0 || i == 16 || i == 32 || i == 64)));
            if (status != MR_OK) CHECK_OK(mr_queue_enqueue(queue, &number, &error));
            mr_tensor_deinit(&number);
        }
        mr_queue_close(queue, false);
        check_contents(queue, kind, 100);
        mr_queue_unref(queue);
    }
}

TEST(queues_refuse_null_negative_and_huge_arguments)
{
    mr_error error = {0};
    mr_queue *queue = queue_of(MR_QUEUE_FIFO, 4, 0), *none = queue;
    mr_tensor tensor = {.dtype = MR_INT64};
    mr_queue_options options = {.size = sizeof options, .capacity = 4, .component_count = 1, .dtypes = {MR_INT64}};
    CHECK_EQ(mr_queue_new(MR_QUEUE_FIFO, nullptr, &none, &error), MR_INVALID_ARGUMENT);
    CHECK(none == nullptr);
    CHECK_EQ(mr_queue_new(MR_QUEUE_FIFO, &options, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_queue_new((mr_queue_kind)4, &options, &none, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_queue_new((mr_queue_kind)-1, &options, &none, &error), MR_INVALID_ARGUMENT);
    for (int32_t count = -1; count <= MR_COMPONENTS_MAX + 1; count += MR_COMPONENTS_MAX + 2) {
        options.component_count = count;
        CHECK_EQ(mr_queue_new(MR_QUEUE_FIFO, &options, &none, &error), MR_INVALID_ARGUMENT);
    }
    options.component_count = 1;
    options.shapes[0] = (mr_shape){.rank = MR_RANK_MAX + 1};
    CHECK_EQ(mr_queue_new(MR_QUEUE_PADDING_FIFO, &options, &none, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_queue_enqueue(nullptr, &tensor, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_queue_enqueue(queue, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_queue_enqueue_many(queue, nullptr, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_queue_enqueue(queue, &tensor, &error), MR_INVALID_ARGUMENT); /* no data */
    tensor.shape = MR_SHAPE_UNKNOWN;
    CHECK_EQ(mr_queue_enqueue(queue, &tensor, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_queue_enqueue_many(queue, &tensor, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_queue_dequeue(nullptr, &tensor, &error), MR_INVALID_ARGUMENT);
    CHECK_EQ(mr_queue_dequeue(queue, nullptr, &error), MR_INVALID_ARGUMENT);
    static const int64_t counts[] = {-1, INT64_MIN, INT64_MAX, (int64_t)1 << 29};
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(mr_queue_dequeue_many(queue, counts[i], &tensor, &error), MR_INVALID_ARGUMENT);
        CHECK_EQ(mr_queue_dequeue_up_to(queue, counts[i], &tensor, &error), MR_INVALID_ARGUMENT);
        CHECK_EQ(mr_queue_dequeue_many(nullptr, counts[i], &tensor, &error), MR_INVALID_ARGUMENT);
    }
    CHECK_EQ(mr_queue_dequeue_up_to(nullptr, 1, &tensor, &error), MR_INVALID_ARGUMENT);
    mr_queue_close(nullptr, true);
    CHECK_EQ(mr_queue_size(nullptr), 0);
    CHECK(mr_queue_is_closed(nullptr) && mr_queue_describe(nullptr) == nullptr && mr_queue_ref(nullptr) == nullptr);
    mr_queue_unref(nullptr);
    mr_queue_unref(queue);
}
