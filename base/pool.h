/* Worker pool: a fixed set of threads for parallel loops and for jobs.
 *
 * mr_pool_for splits a range into pieces and runs them on the caller and the workers; it returns when all are done.
 * Where the range is split never depends on the number of threads, only on count and grain, so a loop that sums per
 * piece and adds the pieces in order gives the same bits on any machine.
 *
 * Lock order: the pool's mutex is innermost; no callback runs under it. */
#ifndef MR_BASE_POOL_H
#define MR_BASE_POOL_H

#include <millrace/status.h>
#include <stdint.h>

typedef struct mr_pool mr_pool;

/* thread_count  of all threads that work in a loop, the caller's included; 0: one for each usable processor.
 * errors        MR_RESOURCE_EXHAUSTED when threads or memory cannot be had */
mr_status mr_pool_new(int thread_count, mr_pool **pool, mr_error *error);
/* Waits for running work, joins the threads. Null is allowed. */
void mr_pool_free(mr_pool *pool);
int mr_pool_thread_count(const mr_pool *pool);
/* Processors this process may use (affinity and cgroup limit), at least 1. */
int mr_processor_count(void);

/* Calls body(context, begin, end) for consecutive pieces of [0, count), each of grain items but the last.
 * pool     null: everything runs on the caller
 * threads  safe from any thread, also inside a body (an inner loop then runs where it is called, and may get help) */
typedef void (*mr_pool_body)(void *context, int64_t begin, int64_t end);
void mr_pool_for(mr_pool *pool, int64_t count, int64_t grain, mr_pool_body body, void *context);

#endif
