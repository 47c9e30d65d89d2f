/* Threads for parallel loops.
 *
 * ```c
 * pool *pool = nullptr;
 * MR_TRY(pool_new(0, &pool, error));
 * pool_for(pool, count, 16, convert_some, &conversion);
 * pool_free(pool);
 * ``` */
#ifndef MR_TOOLS_POOL_H
#define MR_TOOLS_POOL_H

#include <millrace/status.h>
#include <stdint.h>

typedef struct pool pool;

/* thread_count  threads that run a loop, including the caller; 0: one for each available processor
 * errors        MR_RESOURCE_EXHAUSTED if a thread or memory cannot be allocated */
mr_status pool_new(int thread_count, struct pool **pool, mr_error *error);
/* Joins the threads. Null is allowed. */
void pool_free(struct pool *pool);
/* 1 for null. */
int pool_thread_count(const struct pool *pool);
/* Number of processors available to this process (affinity and cgroup limit), at least 1. */
int processor_count(void);

/* Calls body(context, begin, end) for consecutive pieces of [0, count), each of grain items except the last, and
 * returns when all have returned. pool null: everything runs on the caller
 * threads  one loop at a time; not from a body */
void pool_for(struct pool *pool, int64_t count, int64_t grain, void (*body)(void *context, int64_t begin, int64_t end),
              void *context);

#endif
