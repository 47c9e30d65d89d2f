/* Many threads on one queue, for all kinds, sizes and times of the close: each element is dequeued once, each
 * producer's elements stay in order, and no thread waits indefinitely. */
#include "base/random.h"
#include "tests/test.h"

#include <millrace/queue.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

constexpr int PRODUCERS = 3, CONSUMERS = 3;
constexpr int64_t EACH = 400;
constexpr int64_t ROWS_MAX = 40;

typedef struct crowd {
    mr_queue *queue;
    mr_queue_kind kind;
    uint64_t number;
    bool closes_early, cancels;
    _Atomic int64_t progress; /* elements dequeued */
    _Atomic unsigned char delivered[PRODUCERS * EACH];
    int64_t confirmed[PRODUCERS], attempted[PRODUCERS]; /* elements that were enqueued, and those that may have been */
    int64_t capacity;
} crowd;

typedef struct member {
    crowd *crowd;
    int index;
    mr_random random;
} member;

static int64_t draw_count(member *self)
{
    int64_t limit = self->crowd->capacity > 0 && self->crowd->capacity < 16 ? 2 * self->crowd->capacity + 2 : ROWS_MAX;
    return 1 + (int64_t)mr_random_below(&self->random, (uint64_t)limit);
}

/* Component 0 is a priority (equal for all), component 1 the number: producer * EACH + position. */
static void *produce(void *argument)
{
    member *self = argument;
    crowd *c = self->crowd;
    mr_error error = {0};
    for (int64_t done = 0; done < EACH;) {
        mr_tensor rows[2] = {0};
        int64_t count = draw_count(self);
        if (count > EACH - done) count = EACH - done;
        for (int i = 0; i < 2; i++) CHECK_OK(mr_tensor_init(&rows[i], MR_INT64, MR_SHAPE(count), &error));
        for (int64_t i = 0; i < count; i++) {
            mr_tensor_int64s(&rows[0])[i] = 0;
            mr_tensor_int64s(&rows[1])[i] = self->index * EACH + done + i;
        }
        mr_status status = mr_queue_enqueue_many(c->queue, rows, &error);
        for (int i = 0; i < 2; i++) mr_tensor_deinit(&rows[i]);
        c->attempted[self->index] = done + count;
        if (status != MR_OK) {
            CHECK_EQ(status, MR_CANCELLED);
            return nullptr;
        }
        c->confirmed[self->index] = done += count;
    }
    return nullptr;
}

static void deliver(crowd *c, const mr_tensor *numbers, int64_t *last)
{
    for (int64_t i = 0; i < mr_tensor_count(numbers); i++) {
        int64_t number = mr_tensor_int64s(numbers)[i];
        CHECK(number >= 0 && number < PRODUCERS * EACH);
        CHECK_EQ(atomic_fetch_add(&c->delivered[number], 1), 0);
        atomic_fetch_add(&c->progress, 1);
        if (c->kind == MR_QUEUE_RANDOM_SHUFFLE) continue;
        CHECK(number % EACH >= last[number / EACH]);
        last[number / EACH] = number % EACH + 1;
    }
}

static void *consume(void *argument)
{
    member *self = argument;
    crowd *c = self->crowd;
    mr_error error = {0};
    int64_t last[PRODUCERS] = {0};
    for (int64_t failures = 0;;) {
        mr_tensor batch[2] = {0};
        /* After a batch that was too large, dequeue single elements, so that none is left. */
        int64_t count = failures > 0 ? 1 : draw_count(self);
        mr_status status = count == 1       ? mr_queue_dequeue(c->queue, batch, &error)
                           : count % 2 == 0 ? mr_queue_dequeue_up_to(c->queue, count, batch, &error)
                                            : mr_queue_dequeue_many(c->queue, count, batch, &error);
        if (status == MR_OUT_OF_RANGE) {
            CHECK(mr_queue_is_closed(c->queue));
            if (count == 1) return nullptr;
            failures++;
            continue;
        }
        CHECK_OK(status);
        deliver(c, &batch[1], last);
        for (int i = 0; i < 2; i++) mr_tensor_deinit(&batch[i]);
    }
}

/* All confirmed elements were dequeued, and of the unconfirmed ones a prefix. */
static void check_all(const crowd *c)
{
    CHECK_EQ(mr_queue_size(c->queue), 0);
    for (int p = 0; p < PRODUCERS; p++) {
        int64_t in = 0;
        while (in < EACH && c->delivered[p * EACH + in] == 1) in++;
        CHECK(in >= c->confirmed[p] && in <= c->attempted[p]);
        for (int64_t i = in; i < EACH; i++) CHECK_EQ(c->delivered[p * EACH + i], 0);
        if (!c->cancels && !c->closes_early) CHECK_EQ(in, EACH);
    }
}

static void run_crowd(mr_queue_kind kind, uint64_t number)
{
    static const int64_t capacities[] = {1, 2, 3, 15, 16, 17, 32, -1};
    mr_error error = {0};
    static crowd c;
    mr_random random = mr_random_at(test_seed(), number, (uint64_t)kind, 0x63726f7764);
    c = (crowd){.kind = kind,
                .number = number,
                .capacity = capacities[mr_random_below(&random, 8)],
                .closes_early = number % 3 == 1,
                .cancels = number % 3 == 2};
    mr_queue_options options = {.size = sizeof options,
                                .capacity = c.capacity,
                                .component_count = 2,
                                .dtypes = {MR_INT64, MR_INT64},
                                .shapes = {MR_SCALAR, MR_SCALAR},
                                .seed = kind == MR_QUEUE_RANDOM_SHUFFLE ? 1 + number : 0};
    if (kind == MR_QUEUE_RANDOM_SHUFFLE && c.capacity > 1) options.min_after_dequeue = c.capacity / 2;
    CHECK_OK(mr_queue_new(kind, &options, &c.queue, &error));
    pthread_t threads[PRODUCERS + CONSUMERS];
    member members[PRODUCERS + CONSUMERS];
    for (int i = 0; i < PRODUCERS + CONSUMERS; i++) {
        members[i] = (member){&c, i, mr_random_at(test_seed(), number, (uint64_t)i, 0x6d656d626572)};
        CHECK(pthread_create(&threads[i], nullptr, i < PRODUCERS ? produce : consume, &members[i]) == 0);
    }
    if (c.closes_early || c.cancels) {
        int64_t until = (int64_t)mr_random_below(&random, PRODUCERS * EACH / 2);
        while (atomic_load(&c.progress) < until) (void)sched_yield();
        mr_queue_close(c.queue, c.cancels);
    }
    for (int i = 0; i < PRODUCERS; i++) CHECK(pthread_join(threads[i], nullptr) == 0);
    mr_queue_close(c.queue, false);
    for (int i = PRODUCERS; i < PRODUCERS + CONSUMERS; i++) CHECK(pthread_join(threads[i], nullptr) == 0);
    check_all(&c);
    mr_queue_unref(c.queue);
}

TEST(many_threads_on_a_queue_lose_nothing)
{
    uint64_t rounds = test_is_sanitized() ? 6 : 30;
    for (uint64_t number = 0; number < rounds; number++)
        for (mr_queue_kind kind = MR_QUEUE_FIFO; kind <= MR_QUEUE_PRIORITY; kind++) {
            if (kind == MR_QUEUE_PADDING_FIFO) continue; /* no difference from FIFO for threads */
            run_crowd(kind, number);
        }
}
