/* Pipelines that end on a GPU, for the kit and the tests: checks the batches, and measures the cost of copying them. */
#ifndef MR_TESTS_CUDA_PREFETCH_RUN_H
#define MR_TESTS_CUDA_PREFETCH_RUN_H

#include <millrace/dataset.h>

/* Queues work on every batch and releases the batch immediately; compares the data that the work read with the host's
 * batches.
 * device  "/device:GPU:0" */
mr_status prefetch_compare(const char *device, mr_error *error);

typedef struct prefetch_size {
    int32_t batch, side, rows, steps; /* float batches of [batch, side, side, 3], from `rows` different rows */
} prefetch_size;
typedef struct prefetch_times {
    size_t batch_bytes;
    double alone_s;  /* for a batch that no step uses */
    double step_s;   /* for a step that needs no batch */
    double beside_s; /* for the step with a batch already on the device */
    double inside_s; /* for the step with a batch in pinned memory, which it copies itself */
} prefetch_times;
/* Average wall time of a step. */
mr_status prefetch_time(const char *device, prefetch_size size, prefetch_times *times, mr_error *error);

#endif
