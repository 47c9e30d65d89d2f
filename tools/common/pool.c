/* See pool.h. A loop is stored in the pool, whose mutex guards everything except the counter that assigns pieces. */
#include "common/pool.h"

#include "common/arena.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static constexpr int THREADS_MAX = 1024;

typedef struct loop {
    void (*body)(void *context, int64_t begin, int64_t end);
    void *context;
    int64_t count, grain;
    _Atomic int64_t next; /* the first item that is not yet assigned */
} loop;

struct pool {
    pthread_mutex_t mutex;
    pthread_cond_t started;  /* a loop was started, or stop was set */
    pthread_cond_t finished; /* the last worker has left the loop */
    loop loop;
    uint64_t loop_number; /* of loops started so far */
    int busy;             /* workers that have not yet left the loop */
    bool stop;
    int worker_count;
    pthread_t workers[];
};

/* Runs pieces until all are assigned. */
static void work_on(loop *loop)
{
    for (;;) {
        int64_t begin = atomic_fetch_add(&loop->next, loop->grain);
        if (begin >= loop->count) return;
        loop->body(loop->context, begin, loop->count - begin > loop->grain ? begin + loop->grain : loop->count);
    }
}

static void *run_worker(void *argument)
{
    struct pool *pool = argument;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        while (!pool->stop && pool->loop_number == seen) pthread_cond_wait(&pool->started, &pool->mutex);
        if (pool->stop) break;
        seen = pool->loop_number;
        pthread_mutex_unlock(&pool->mutex);
        work_on(&pool->loop);
        pthread_mutex_lock(&pool->mutex);
        assert(pool->busy > 0);
        if (--pool->busy == 0) pthread_cond_signal(&pool->finished);
    }
    pthread_mutex_unlock(&pool->mutex);
    return nullptr;
}

mr_status pool_new(int thread_count, struct pool **pool, mr_error *error)
{
    *pool = nullptr;
    if (thread_count <= 0) thread_count = processor_count();
    if (thread_count > THREADS_MAX) thread_count = THREADS_MAX;
    int worker_count = thread_count - 1;
    size_t size_bytes = sizeof(struct pool) + (size_t)worker_count * sizeof(pthread_t);
    struct pool *created = calloc(1, size_bytes);
    if (!created) return fail_memory(error, size_bytes);
    pthread_mutex_init(&created->mutex, nullptr);
    pthread_cond_init(&created->started, nullptr);
    pthread_cond_init(&created->finished, nullptr);
    for (; created->worker_count < worker_count; created->worker_count++)
        if (pthread_create(&created->workers[created->worker_count], nullptr, run_worker, created) != 0) {
            int started = created->worker_count + 1;
            pool_free(created);
            return mr_fail(error, MR_RESOURCE_EXHAUSTED, "only %d of %d threads could be created", started,
                           thread_count);
        }
    *pool = created;
    return MR_OK;
}

void pool_free(struct pool *pool)
{
    if (!pool) return;
    pthread_mutex_lock(&pool->mutex);
    assert(pool->busy == 0);
    pool->stop = true;
    pthread_cond_broadcast(&pool->started);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < pool->worker_count; i++) pthread_join(pool->workers[i], nullptr);
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->started);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

int pool_thread_count(const struct pool *pool)
{
    return pool ? pool->worker_count + 1 : 1;
}

void pool_for(struct pool *pool, int64_t count, int64_t grain, void (*body)(void *context, int64_t begin, int64_t end),
              void *context)
{
    if (count <= 0) return;
    if (grain < 1) grain = 1;
    if (!pool || pool->worker_count == 0 || count <= grain) {
        loop loop = {.body = body, .context = context, .count = count, .grain = grain};
        work_on(&loop);
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    assert(pool->busy == 0 && !pool->stop);
    pool->loop.body = body;
    pool->loop.context = context;
    pool->loop.count = count;
    pool->loop.grain = grain;
    atomic_store(&pool->loop.next, 0);
    pool->loop_number++;
    pool->busy = pool->worker_count;
    pthread_cond_broadcast(&pool->started);
    pthread_mutex_unlock(&pool->mutex);
    work_on(&pool->loop);
    pthread_mutex_lock(&pool->mutex);
    while (pool->busy > 0) pthread_cond_wait(&pool->finished, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}

/* ---- Processors ---- */

/* Reads numbers from a file of the cgroup; returns how many of at most two were read, -1 if there is no such file. */
static int read_cgroup(const char *path, long long numbers[2])
{
    FILE *file = fopen(path, "re");
    if (!file) return -1;
    int count = fscanf(file, "%lld %lld", &numbers[0], &numbers[1]);
    fclose(file);
    return count;
}

/* The processor quota of the cgroup, rounded up; THREADS_MAX if there is none. */
static int processor_quota(void)
{
    long long cpu[2], quota[2], period[2];
    int count = read_cgroup("/sys/fs/cgroup/cpu.max", cpu);
    if (count == -1 && read_cgroup("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota) == 1 &&
        read_cgroup("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period) == 1) {
        cpu[0] = quota[0];
        cpu[1] = period[0];
        count = 2;
    }
    /* Without a limit, cpu.max is "max 100000" and cfs_quota_us is -1. */
    if (count != 2 || cpu[0] <= 0 || cpu[1] <= 0 || cpu[0] / cpu[1] > THREADS_MAX) return THREADS_MAX;
    return (int)(cpu[0] / cpu[1] + (cpu[0] % cpu[1] != 0));
}

int processor_count(void)
{
    cpu_set_t set;
    int usable = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int quota = processor_quota();
    int count = usable < quota ? usable : quota;
    return count < 1 ? 1 : count;
}
