/* Runs that wait: in one run, between runs, cancelled, and too late. */
#include "tests/test.h"

#include <millrace/ops.h>
#include <millrace/session.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

typedef struct queue_graph {
    mr_graph *graph;
    mr_session *session;
    mr_output value, queue, taken, batch, size;
    mr_node *add, *close;
} queue_graph;

static void build(queue_graph *q, int64_t capacity)
{
    mr_error error = {0};
    mr_graph *g = q->graph = mr_graph_new();
    q->value = mr_placeholder(g, MR_INT64, .shape = MR_SCALAR);
    q->queue = mr_fifo_queue_v2(g, .component_types = MR_DTYPES(MR_INT64), .shapes = MR_SHAPES(MR_SCALAR),
                                .capacity = capacity);
    q->add = mr_queue_enqueue_v2(g, q->queue, MR_OUTPUTS(q->value));
    q->close = mr_queue_close_v2(g, q->queue);
    q->taken = mr_output_at(mr_queue_dequeue_v2(g, q->queue, .component_types = MR_DTYPES(MR_INT64)), 0);
    q->size = mr_queue_size_v2(g, q->queue);
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1), &q->session, &error));
}

static void end(queue_graph *q)
{
    mr_session_free(q->session);
    mr_graph_free(q->graph);
}

static mr_status add(queue_graph *q, int64_t number, mr_error *error)
{
    mr_tensor value = {0};
    CHECK(mr_tensor_init_int64(&value, number, error) == MR_OK);
    mr_status status =
        mr_session_run(q->session, MR_FEEDS({q->value, value}), (mr_outputs){0}, nullptr, &q->add, 1, error);
    mr_tensor_deinit(&value);
    return status;
}

TEST(waiting_in_one_run)
{
    mr_error error = {0};
    queue_graph q;
    build(&q, 1);
    /* The dequeue comes first in the graph's order, or not; and what follows it does not hold back the enqueue. */
    mr_output more = mr_add(q.graph, q.taken, q.taken);
    mr_output second = mr_output_at(mr_queue_dequeue_v2(q.graph, q.queue, .component_types = MR_DTYPES(MR_INT64)), 0);
    mr_node *adds[] = {q.add, mr_queue_enqueue_v2(q.graph, q.queue, MR_OUTPUTS(q.value)),
                       mr_queue_enqueue_v2(q.graph, q.queue, MR_OUTPUTS(mr_neg(q.graph, q.value)))};
    for (int count = 1; count <= 3; count++) {
        mr_tensor value = {0}, results[2] = {0};
        CHECK_OK(mr_tensor_init_int64(&value, 7, &error));
        mr_output fetches[] = {more, second};
        int fetch_count = count == 1 ? 1 : 2;
        CHECK_OK(mr_session_run(q.session, MR_FEEDS({q.value, value}), (mr_outputs){fetches, fetch_count}, results,
                                adds, count, &error));
        int64_t first = mr_tensor_int64s(&results[0])[0];
        CHECK(first == 14 || first == -14);
        for (int i = 0; i < fetch_count; i++) mr_tensor_deinit(&results[i]);
        mr_tensor_deinit(&value);
    }
    /* The third run added three elements and took two. */
    mr_tensor size = {0};
    CHECK_OK(mr_session_run(q.session, MR_NO_FEEDS, MR_OUTPUTS(q.size), &size, nullptr, 0, &error));
    CHECK_EQ(mr_tensor_int32s(&size)[0], 1);
    mr_tensor_deinit(&size);
    end(&q);
}

TEST(waiting_ends_in_time)
{
    mr_error error = {0};
    queue_graph q;
    mr_tensor result = {0};
    build(&q, 1);
    for (int i = 0; i < 3; i++) {
        mr_status status = mr_session_run_with(q.session, MR_OPTIONS(mr_run_options, .timeout_ms = 20), MR_NO_FEEDS,
                                               MR_OUTPUTS(q.taken), &result, nullptr, 0, &error);
        CHECK_EQ(status, MR_DEADLINE_EXCEEDED);
        CHECK_CONTAINS(error.message, "Timed out");
        CHECK(result.buffer == nullptr);
    }
    /* The queue is as before. */
    CHECK_OK(add(&q, 5, &error));
    CHECK_OK(mr_session_run(q.session, MR_NO_FEEDS, MR_OUTPUTS(q.taken), &result, nullptr, 0, &error));
    CHECK_EQ(mr_tensor_int64s(&result)[0], 5);
    mr_tensor_deinit(&result);
    CHECK_EQ(mr_session_run_with(q.session, MR_OPTIONS(mr_run_options, .timeout_ms = -1), MR_NO_FEEDS,
                                 MR_OUTPUTS(q.size), &result, nullptr, 0, &error),
             MR_INVALID_ARGUMENT);
    end(&q);
}

TEST(waiting_is_cancelled_before_it_starts)
{
    mr_error error = {0};
    queue_graph q;
    mr_tensor result = {0};
    mr_cancellation *cancellation = nullptr;
    build(&q, 1);
    CHECK_OK(mr_cancellation_new(&cancellation, &error));
    mr_cancellation_cancel(cancellation);
    mr_run_options options = {.size = sizeof options, .cancellation = cancellation};
    CHECK_EQ(mr_session_run_with(q.session, &options, MR_NO_FEEDS, MR_OUTPUTS(q.size), &result, nullptr, 0, &error),
             MR_CANCELLED);
    CHECK_OK(mr_session_run(q.session, MR_NO_FEEDS, MR_OUTPUTS(q.size), &result, nullptr, 0, &error));
    mr_tensor_deinit(&result);
    mr_cancellation_free(cancellation);
    end(&q);
}

/* ---- Many threads ---- */

typedef struct traffic {
    queue_graph *q;
    _Atomic int64_t added, taken, sum_added, sum_taken;
    _Atomic bool done;
} traffic;

static void *add_many(void *context)
{
    traffic *t = context;
    for (int64_t i = 1; i <= 200; i++) {
        mr_error error = {0};
        mr_status status = add(t->q, i, &error);
        if (status == MR_CANCELLED) continue;
        CHECK_EQ(status, MR_OK);
        t->added++;
        t->sum_added += i;
    }
    return nullptr;
}

static void *take_many(void *context)
{
    traffic *t = context;
    for (;;) {
        mr_error error = {0};
        mr_tensor result = {0};
        mr_status status =
            mr_session_run(t->q->session, MR_NO_FEEDS, MR_OUTPUTS(t->q->taken), &result, nullptr, 0, &error);
        if (status == MR_CANCELLED) continue;
        if (status == MR_OUT_OF_RANGE) return nullptr;
        CHECK_EQ(status, MR_OK);
        t->taken++;
        t->sum_taken += mr_tensor_int64s(&result)[0];
        mr_tensor_deinit(&result);
    }
}

static void *cancel_at_times(void *context)
{
    traffic *t = context;
    while (!t->done) {
        mr_session_cancel(t->q->session);
        nanosleep(&(struct timespec){.tv_nsec = 200000}, nullptr);
    }
    return nullptr;
}

static void run_traffic(bool cancels)
{
    queue_graph q;
    build(&q, 3);
    traffic t = {.q = &q};
    pthread_t adders[4], takers[3], canceller;
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&adders[i], nullptr, add_many, &t), 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&takers[i], nullptr, take_many, &t), 0);
    if (cancels) CHECK_EQ(pthread_create(&canceller, nullptr, cancel_at_times, &t), 0);
    for (int i = 0; i < 4; i++) pthread_join(adders[i], nullptr);
    t.done = true;
    if (cancels) pthread_join(canceller, nullptr);
    mr_error error = {0};
    CHECK_OK(mr_session_run(q.session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &q.close, 1, &error));
    for (int i = 0; i < 3; i++) pthread_join(takers[i], nullptr);
    CHECK(cancels || t.added == 800);
    /* A run that is cancelled while it waits has no effect. */
    CHECK_EQ(t.taken, t.added);
    CHECK_EQ(t.sum_taken, t.sum_added);
    end(&q);
}

TEST(waiting_between_runs)
{
    run_traffic(false);
}

TEST(waiting_between_cancelled_runs)
{
    run_traffic(true);
}

static void *run_step(void *context)
{
    queue_graph *q = context;
    mr_error error = {0};
    mr_tensor results[2] = {0};
    mr_output both[] = {q->taken, q->batch};
    mr_status status = mr_session_run(q->session, MR_NO_FEEDS, (mr_outputs){both, 2}, results, nullptr, 0, &error);
    CHECK(status == MR_CANCELLED || status == MR_OK);
    for (int i = 0; i < 2; i++) mr_tensor_deinit(&results[i]);
    return nullptr;
}

/* Several calls of one run wait on threads of their own when it is cancelled. */
TEST(waiting_calls_are_cancelled_together)
{
    mr_error error = {0};
    queue_graph q;
    build(&q, 5);
    q.batch = mr_output_at(mr_queue_dequeue_many_v2(q.graph, q.queue, mr_constant_int32(q.graph, 3),
                                                    .component_types = MR_DTYPES(MR_INT64)),
                           0);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, nullptr, run_step, &q), 0);
        nanosleep(&(struct timespec){.tv_nsec = 100000 * (i % 5)}, nullptr);
        for (int j = 0; j < 200; j++) {
            mr_session_cancel(q.session);
            nanosleep(&(struct timespec){.tv_nsec = 100000}, nullptr);
            mr_tensor size = {0};
            CHECK_OK(mr_session_run(q.session, MR_NO_FEEDS, MR_OUTPUTS(q.size), &size, nullptr, 0, &error));
            mr_tensor_deinit(&size);
        }
        pthread_join(thread, nullptr);
    }
    end(&q);
}
