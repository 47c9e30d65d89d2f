/* Pipelines that end on a GPU, for the kit and for the tests: are the batches right, and what does bringing them cost? */
#ifndef MR_TESTS_CUDA_PREFETCH_RUN_H
#define MR_TESTS_CUDA_PREFETCH_RUN_H

#include <millrace/dataset.h>

/* Work is queued on every batch, and the batch given back at once: what the work saw is compared with the host's batches.
 * device  "/device:GPU:0" */
mr_status prefetch_compare(const char *device, mr_error *error);

typedef struct prefetch_size {
    int32_t batch, side, rows, steps; /* float batches of [batch, side, side, 3], out of so many rows */
} prefetch_size;
typedef struct prefetch_times {
    size_t batch_bytes;
    double alone_s;  /* of a batch that nobody uses */
    double step_s;   /* of a step that needs no batch */
    double beside_s; /* of the step with a batch that is there */
    double inside_s; /* of the step with a batch in pinned memory that it copies itself */
} prefetch_times;
/* Wall time for each step, on the average. */
mr_status prefetch_time(const char *device, prefetch_size size, prefetch_times *times, mr_error *error);

#endif
