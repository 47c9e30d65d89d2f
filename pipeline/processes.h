/* Processes: the worker processes of one function, and the shared memory through which blocks reach them. */
#ifndef MR_PIPELINE_PROCESSES_H
#define MR_PIPELINE_PROCESSES_H

#include <millrace/processes.h>
#include <stdatomic.h>

/* One block's part of the shared memory. */
typedef struct mr_area {
    struct mr_processes *processes;
    struct mr_area *next;
    int32_t index;
    bool is_busy;
    char *data; /* mapped; null: not yet */
    size_t capacity_bytes;
} mr_area;

bool mr_processes_are_random(const mr_processes *processes);
/* An area that no block uses. It never waits: a thread that has one may wait for room in the budget. */
mr_status mr_area_acquire(mr_processes *processes, mr_area **area, mr_error *error);
void mr_area_release(mr_area *area);
/* Maps at least size_bytes. data may move. */
mr_status mr_area_reserve(mr_area *area, size_t size_bytes, mr_error *error);
/* Sends a block to an idle process and waits for its end.
 * end_bytes  of the area that are in use
 * errors     MR_CANCELLED when *stop is true; the process has been ended. Those of `start` and `ended` */
mr_status mr_area_exchange(mr_area *area, int32_t rows_max, int32_t rows, int32_t first, uint64_t *end_bytes,
                           const _Atomic bool *stop, mr_error *error);
/* The failure that a process has described. */
mr_status mr_processes_failure(mr_processes *processes, const void *bytes, size_t size_bytes, mr_error *error);

#endif
