/* Queues that close before a batch is complete: its elements return to the queue, each once, at sizes below, at and
 * above the capacity. */
#include "tests/test.h"

#include <millrace/queue.h>

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
    mr_queue_options options = {.capacity = capacity,
                                .component_count = 1,
                                .dtypes = {MR_INT64},
                                .shapes = {MR_SCALAR},
                                .min_after_dequeue = min_after_dequeue,
                                .seed = test_seed()};
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

/* Empties the queue, which has to contain 0 … count − 1, in this order unless it shuffles. */
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

/* A batch of more elements than ever come: all of them are in the queue afterwards. */
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
