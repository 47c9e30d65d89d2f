/* The worker pool: a fixed set of threads for parallel loops and jobs.
 *
 * mr_pool_for splits a range into pieces, runs them on the caller and the workers, and returns when all are done. The
 * split depends only on count and grain, never on the number of threads, so a loop that sums each piece and adds the
 * sums in order gives bit-identical results on any machine.
 *
 * Lock order: the pool's mutex is innermost; no callback runs while it is locked. */
#ifndef MR_BASE_POOL_H
#define MR_BASE_POOL_H

#include <millrace/status.h>
#include <stdint.h>

typedef struct mr_pool mr_pool;

/* thread_count  threads that run a loop, including the caller; 0: one for each available processor
 * errors        MR_RESOURCE_EXHAUSTED if a thread or memory cannot be allocated */
mr_status mr_pool_new(int thread_count, mr_pool **pool, mr_error *error);
/* Waits for running work and joins the threads. Null is allowed. */
void mr_pool_free(mr_pool *pool);
int mr_pool_thread_count(const mr_pool *pool);
/* Number of processors available to this process (affinity and cgroup limit), at least 1. */
int mr_processor_count(void);

/* Calls body(context, begin, end) for consecutive pieces of [0, count), each of grain items except the last.
 * grain    1: each item is worth a thread. More: the number of items that just are, a few microseconds of work; a loop
 *          of few such pieces wakes no sleeping worker
 * pool     null: everything runs on the caller
 * threads  safe from any thread, also inside a body (the inner loop runs on its caller, and idle workers may help) */
typedef void (*mr_pool_body)(void *context, int64_t begin, int64_t end);
void mr_pool_for(mr_pool *pool, int64_t count, int64_t grain, mr_pool_body body, void *context);

#endif
