/* Threads with a known stack, and how deeply calls are nested on a thread.
 *
 * Functions of a graph and pipelines call each other without a limit of their own: a function runs a dataset, whose
 * function runs a dataset, and so on. Each call has a nesting. A thread that works for a call continues from that
 * call's nesting, so recursion through threads ends as well. */
#ifndef MR_BASE_THREAD_H
#define MR_BASE_THREAD_H

#include <millrace/status.h>
#include <pthread.h>
#include <stddef.h>

/* MR_NESTING_MAX: maximum nesting. MR_NESTING_PIPELINE: what a pipeline inside a call adds: it costs memory and
 * threads, a call only stack. */
constexpr int32_t MR_NESTING_MAX = 400, MR_NESTING_PIPELINE = 16;

/* The nesting of the calling thread; 0 in a new thread. */
int32_t mr_nesting(void);
/* Sets it; returns the previous one, to be set again at the end of the call. */
int32_t mr_nesting_set(int32_t nesting);
/* errors  MR_RESOURCE_EXHAUSTED if a call of this nesting is too deep, or the calling thread has too little stack */
mr_status mr_nesting_check(int32_t nesting, mr_error *error);

/* Bytes of stack left on the calling thread; SIZE_MAX if unknown. */
size_t mr_stack_left_bytes(void);

/* pthread_create with a stack of 8 MiB, or the process's default if that is larger: the default may be too small for
 * nested calls. */
int mr_thread_create(pthread_t *thread, void *(*body)(void *context), void *context);

#endif
