/* The worker pool: a list of open loops, each with an atomic counter that assigns its pieces.
 *
 * A loop is stored on its caller's stack. The caller adds it to the list, works on it like any worker, removes it from
 * the list so that no more threads join, and waits for helpers that are still running a piece. A helper joins and
 * leaves while holding the pool's mutex and does not access the loop after leaving. Inner loops work in the same way:
 * their caller waits only for running pieces, so there is no circular wait.
 *
 * Idle workers poll a counter for some microseconds before they sleep, because the operators of a training step follow
 * each other faster than a sleeping thread wakes up. The time is short because, on few processors, a spinning thread
 * takes time from threads that decode images. A worker whose last loop came soon polls longer, and yields meanwhile. */
#include "base/pool.h"

#include "base/cpu.h"
#include "base/status.h"
#include "base/thread.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

constexpr int SPINS_IDLE = 600;
constexpr int SPINS_YIELD = 40;          /* between two yields of the processor */
constexpr int64_t PATIENCE_NS = 200'000; /* what comes within this time is worth waiting for */
constexpr int SPINS_FINISH = 2000;
constexpr int64_t WAKE_PIECES = 8; /* of a few microseconds each; waking a thread takes as long as some of them */
constexpr int THREADS_MAX = 1024;
constexpr int SHARES_MAX = 16;

/* Consecutive pieces. Each thread begins with a share of its own and then helps with the others, so that a thread gets
 * about the same part of a tensor in each operator, and finds it in its cache. */
typedef struct share {
    alignas(64) atomic_int_fast64_t next; /* the next piece to assign */
    int64_t end;
} share;

typedef struct loop {
    struct loop *next, *previous;
    mr_pool_body body;
    void *context;
    int64_t count, grain, pieces;
    bool flushes_subnormals; /* the caller's mode, which its helpers take over */
    int share_count;
    share shares[SHARES_MAX];
    alignas(64) atomic_int helpers; /* changed under the pool's mutex, read without it */
} loop;

struct mr_pool {
    pthread_mutex_t mutex;
    pthread_cond_t work;     /* a loop was opened, or stop was set */
    pthread_cond_t finished; /* the last helper of a loop has left */
    loop *first;             /* open loops, newest first, so that inner loops finish before outer ones */
    int sleepers, waiters;   /* threads inside pthread_cond_wait on work and on finished */
    bool stop;
    alignas(64) atomic_uint_fast64_t opened; /* number of loops so far, plus one for stop; polled by idle workers */
    atomic_int numbered;                     /* workers that have begun */
    int worker_count;
    pthread_t workers[];
};

/* Mutex locked. Checks the links in both directions, and the number of sleeping threads. */
static void check(const mr_pool *pool)
{
    (void)pool;
    assert(pool->first == nullptr || pool->first->previous == nullptr);
    assert(pool->first == nullptr || pool->first->next == nullptr || pool->first->next->previous == pool->first);
    assert(pool->sleepers >= 0);
    assert(pool->waiters >= 0);
}

/* In a pool: 0 for callers, 1 … worker_count for workers. */
static thread_local int thread_number;

static void divide(loop *l, int threads)
{
    l->share_count = threads < SHARES_MAX ? threads : SHARES_MAX;
    if (l->pieces < l->share_count) l->share_count = (int)l->pieces;
    int64_t piece = 0;
    for (int i = 0; i < l->share_count; i++) {
        atomic_init(&l->shares[i].next, piece);
        piece += l->pieces / l->share_count + (i < l->pieces % l->share_count);
        l->shares[i].end = piece;
    }
    assert(piece == l->pieces);
}

static bool is_open(const share *s)
{
    return atomic_load_explicit(&s->next, memory_order_relaxed) < s->end;
}

static void run_share(const loop *l, share *s)
{
    while (is_open(s)) {
        int64_t piece = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
        if (piece >= s->end) return;
        int64_t begin = piece * l->grain;
        assert(begin >= 0 && begin < l->count);
        int64_t end = l->count - begin > l->grain ? begin + l->grain : l->count;
        assert(end > begin && end <= l->count);
        l->body(l->context, begin, end);
    }
}

/* Runs pieces until all are assigned. */
static void work_on(loop *l)
{
    const int first = thread_number % l->share_count;
    for (int i = 0; i < l->share_count; i++) run_share(l, &l->shares[(first + i) % l->share_count]);
}

static bool is_assigned(const loop *l)
{
    for (int i = 0; i < l->share_count; i++)
        if (is_open(&l->shares[i])) return false;
    return true;
}

static loop *find_open(const mr_pool *pool)
{
    for (loop *l = pool->first; l != nullptr; l = l->next)
        if (!is_assigned(l)) return l;
    return nullptr;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

static bool is_unchanged(const mr_pool *pool, uint_fast64_t seen)
{
    return atomic_load_explicit(&pool->opened, memory_order_relaxed) == seen;
}

/* Waits until a loop is opened, but not long. */
static void poll_opened(const mr_pool *pool, uint_fast64_t seen, int64_t until_ns)
{
    for (int i = 0; i < SPINS_IDLE && is_unchanged(pool, seen); i++) mr_cpu_pause();
    while (is_unchanged(pool, seen) && now_ns() < until_ns) {
        sched_yield();
        for (int i = 0; i < SPINS_YIELD && is_unchanged(pool, seen); i++) mr_cpu_pause();
    }
}

static void *worker(void *argument)
{
    mr_pool *pool = argument;
    bool is_patient = false;
    thread_number = atomic_fetch_add_explicit(&pool->numbered, 1, memory_order_relaxed) + 1;
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        loop *l = find_open(pool);
        if (l != nullptr) {
            atomic_fetch_add_explicit(&l->helpers, 1, memory_order_relaxed);
            pthread_mutex_unlock(&pool->mutex);
            (void)mr_cpu_flush_subnormals(l->flushes_subnormals);
            work_on(l);
            pthread_mutex_lock(&pool->mutex);
            assert(atomic_load_explicit(&l->helpers, memory_order_relaxed) > 0);
            /* release: a caller that reads 0 sees the writes of this thread's pieces. */
            if (atomic_fetch_sub_explicit(&l->helpers, 1, memory_order_release) == 1 && pool->waiters > 0)
                pthread_cond_broadcast(&pool->finished);
            continue;
        }
        check(pool);
        if (pool->stop) break;
        uint_fast64_t seen = atomic_load_explicit(&pool->opened, memory_order_relaxed);
        pthread_mutex_unlock(&pool->mutex);
        int64_t began_ns = now_ns();
        poll_opened(pool, seen, is_patient ? began_ns + PATIENCE_NS : began_ns);
        pthread_mutex_lock(&pool->mutex);
        while (!pool->stop && atomic_load_explicit(&pool->opened, memory_order_relaxed) == seen) {
            pool->sleepers++;
            pthread_cond_wait(&pool->work, &pool->mutex);
            pool->sleepers--;
        }
        is_patient = now_ns() - began_ns < PATIENCE_NS;
    }
    pthread_mutex_unlock(&pool->mutex);
    return nullptr;
}

mr_status mr_pool_new(int thread_count, mr_pool **pool, mr_error *error)
{
    *pool = nullptr;
    if (thread_count <= 0) thread_count = mr_processor_count();
    if (thread_count > THREADS_MAX) thread_count = THREADS_MAX;
    size_t worker_count = (size_t)thread_count - 1;
    size_t size_bytes = (sizeof(mr_pool) + worker_count * sizeof(pthread_t) + 63) & ~(size_t)63;
    mr_pool *created = aligned_alloc(64, size_bytes);
    if (created == nullptr) return mr_fail_memory(error, size_bytes);
    *created = (mr_pool){0};
    pthread_mutex_init(&created->mutex, nullptr);
    pthread_cond_init(&created->work, nullptr);
    pthread_cond_init(&created->finished, nullptr);
    for (; created->worker_count < (int)worker_count; created->worker_count++)
        if (mr_thread_create(&created->workers[created->worker_count], worker, created) != 0) {
            int started = created->worker_count + 1;
            mr_pool_free(created);
            return mr_fail(error, MR_RESOURCE_EXHAUSTED, "only %d of %d threads could be created", started,
                           thread_count);
        }
    *pool = created;
    return MR_OK;
}

void mr_pool_free(mr_pool *pool)
{
    if (pool == nullptr) return;
    pthread_mutex_lock(&pool->mutex);
    assert(pool->first == nullptr && !pool->stop && pool->waiters == 0);
    pool->stop = true;
    atomic_fetch_add_explicit(&pool->opened, 1, memory_order_relaxed);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < pool->worker_count; i++) pthread_join(pool->workers[i], nullptr);
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

int mr_pool_thread_count(const mr_pool *pool)
{
    return pool == nullptr ? 1 : pool->worker_count + 1;
}

static void open_loop(mr_pool *pool, loop *l)
{
    pthread_mutex_lock(&pool->mutex);
    check(pool);
    assert(!pool->stop && l->pieces > 1);
    l->next = pool->first;
    if (l->next != nullptr) l->next->previous = l;
    pool->first = l;
    check(pool);
    atomic_fetch_add_explicit(&pool->opened, 1, memory_order_relaxed);
    int64_t wanted = l->pieces - 1 < pool->sleepers ? l->pieces - 1 : pool->sleepers;
    if (l->grain > 1 && l->pieces < WAKE_PIECES) wanted = 0; /* a worker that still polls may help */
    pthread_mutex_unlock(&pool->mutex);
    for (int64_t i = 0; i < wanted; i++) pthread_cond_signal(&pool->work);
}

static void close_loop(mr_pool *pool, loop *l)
{
    pthread_mutex_lock(&pool->mutex);
    assert(is_assigned(l)); /* no more threads join */
    assert(l->previous == nullptr ? pool->first == l : l->previous->next == l);
    assert(l->next == nullptr || l->next->previous == l);
    if (l->next != nullptr) l->next->previous = l->previous;
    if (l->previous != nullptr)
        l->previous->next = l->next;
    else
        pool->first = l->next;
    check(pool);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < SPINS_FINISH && atomic_load_explicit(&l->helpers, memory_order_relaxed) != 0; i++)
        mr_cpu_pause();
    if (atomic_load_explicit(&l->helpers, memory_order_acquire) == 0) return;
    pthread_mutex_lock(&pool->mutex);
    pool->waiters++;
    while (atomic_load_explicit(&l->helpers, memory_order_acquire) != 0)
        pthread_cond_wait(&pool->finished, &pool->mutex);
    assert(pool->waiters > 0);
    pool->waiters--;
    pthread_mutex_unlock(&pool->mutex);
}

void mr_pool_for(mr_pool *pool, int64_t count, int64_t grain, mr_pool_body body, void *context)
{
    assert(body != nullptr);
    if (count <= 0) return;
    if (grain < 1) grain = 1;
    loop l = {.body = body,
              .context = context,
              .count = count,
              .grain = grain,
              .flushes_subnormals = mr_cpu_flushes_subnormals()};
    l.pieces = count / grain + (count % grain != 0);
    assert(l.pieces >= 1 && l.pieces <= count);
    divide(&l, pool ? pool->worker_count + 1 : 1);
    if (pool == nullptr || pool->worker_count == 0 || l.pieces == 1) {
        work_on(&l);
        return;
    }
    open_loop(pool, &l);
    work_on(&l);
    close_loop(pool, &l);
}

/* The processor quota of the cgroup, rounded up; INT_MAX if there is none. */
static int quota(void)
{
    long long quota_us = -1, period_us = 0;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (file != nullptr) {
        if (fscanf(file, "%lld %lld", &quota_us, &period_us) != 2) quota_us = -1; /* "max 100000" */
        fclose(file);
    } else if ((file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "re")) != nullptr) {
        if (fscanf(file, "%lld", &quota_us) != 1) quota_us = -1;
        fclose(file);
        file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "re");
        if (file == nullptr || fscanf(file, "%lld", &period_us) != 1) quota_us = -1;
        if (file != nullptr) fclose(file);
    }
    if (quota_us <= 0 || period_us <= 0 || quota_us / period_us > THREADS_MAX) return THREADS_MAX;
    return (int)(quota_us / period_us + (quota_us % period_us != 0));
}

int mr_processor_count(void)
{
    cpu_set_t set;
    int usable = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int limit = quota();
    int count = usable < limit ? usable : limit;
    return count < 1 ? 1 : count;
}
