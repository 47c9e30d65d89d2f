/* Parallel loops: every item runs once, and pieces do not depend on the number of threads; nested loops and many
 * concurrent callers. */
#include "base/pool.h"
#include "tests/test.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct marks {
    mr_pool *pool;
    atomic_int counts[1000];
    int64_t ends[1000];
    double sums[1000];
} marks;

static void mark(void *context, int64_t begin, int64_t end)
{
    marks *m = context;
    m->ends[begin] = end;
    for (int64_t i = begin; i < end; i++) {
        atomic_fetch_add_explicit(&m->counts[i], 1, memory_order_relaxed);
        m->sums[begin] += 1.0 / (double)(i + 1);
    }
}

TEST(pool_runs_each_piece_once)
{
    mr_error error = {0};
    for (int threads = 1; threads <= 5; threads++) {
        mr_pool *pool = nullptr;
        CHECK_OK(mr_pool_new(threads, &pool, &error));
        CHECK_EQ(mr_pool_thread_count(pool), threads);
        for (int64_t count = 0; count <= 1000; count += 125)
            for (int64_t grain = 1; grain <= 1000; grain *= 7) {
                marks m = {0};
                mr_pool_for(pool, count, grain, mark, &m);
                for (int64_t i = 0; i < 1000; i++) CHECK_EQ(m.counts[i], i < count);
                for (int64_t i = 0; i < count; i += grain) CHECK_EQ(m.ends[i], i + grain < count ? i + grain : count);
            }
        mr_pool_free(pool);
    }
}

static void inner(void *context, int64_t begin, int64_t end)
{
    atomic_long *total = context;
    atomic_fetch_add(total, end - begin);
}

static void outer(void *context, int64_t begin, int64_t end)
{
    marks *m = context;
    for (int64_t i = begin; i < end; i++) {
        atomic_long total = 0;
        mr_pool_for(m->pool, 100, 3, inner, &total);
        atomic_fetch_add(&m->counts[i], (int)total);
    }
}

TEST(pool_loops_nest)
{
    mr_error error = {0};
    marks m = {0};
    CHECK_OK(mr_pool_new(4, &m.pool, &error));
    mr_pool_for(m.pool, 200, 1, outer, &m);
    for (int i = 0; i < 200; i++) CHECK_EQ(m.counts[i], 100);
    mr_pool_free(m.pool);
}

static void *call_many(void *argument)
{
    for (int i = 0; i < 200; i++) {
        marks m = {.pool = argument};
        mr_pool_for(m.pool, 64, 1 + i % 5, mark, &m);
        for (int j = 0; j < 64; j++)
            if (m.counts[j] != 1) return "a piece ran twice or not at all";
    }
    return nullptr;
}

TEST(pool_serves_many_callers)
{
    mr_error error = {0};
    mr_pool *pool = nullptr;
    CHECK_OK(mr_pool_new(3, &pool, &error));
    pthread_t callers[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&callers[i], nullptr, call_many, pool) == 0);
    for (int i = 0; i < 4; i++) {
        void *problem = nullptr;
        pthread_join(callers[i], &problem);
        CHECK(problem == nullptr);
    }
    mr_pool_free(pool);
}

TEST(pool_null_runs_on_the_caller)
{
    marks m = {0};
    mr_pool_for(nullptr, 10, 3, mark, &m);
    CHECK_EQ(m.ends[9], 10);
    CHECK_EQ(mr_pool_thread_count(nullptr), 1);
    CHECK(mr_processor_count() >= 1);
    mr_pool_free(nullptr);
}
