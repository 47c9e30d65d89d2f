/* A CUDA driver, a cuBLAS and a cuDNN that work in host memory, so that all of cuda/ is tested where there is no GPU.
 *
 * A stream is a list of what was queued; nothing is done before someone waits, and then only what must be: what waits
 * for no event of another stream is not held up by it, and what forgets to wait sees memory as it was. Memory that is
 * given back is filled with rubbish. */
#ifndef MR_TESTS_CUDA_FAKE_H
#define MR_TESTS_CUDA_FAKE_H

#include "cuda/device.h"

typedef struct fake_gpu {
    int device_count;
    int capability_major;
    int fail_allocations; /* this many more calls are out of memory */
    int fail_copies;      /* the how manieth copy to the GPU from now on fails; 0: none */
    mr_cu_result fail_event_wait;
    mr_cu_result fail_launch; /* what a launch answers, when not 0 */
    bool no_blas, no_dnn;
    bool dnn_refuses; /* it has no algorithm for anything */
    /* What was seen. */
    int allocations, live_allocations, live_pinned, live_events, live_streams, contexts, launches, dnn_runs, copies_in,
        staged_copies, copies_beside, streams, stream_waits, event_waits, event_news, host_allocations, own_allocations;
    /* While logs is set: two letters for each of these calls. S the host waits for a stream, C a copy to the GPU, R an event
     * is recorded, W the stream waits for one; then q for the device's queue or c for its copies. */
    bool logs;
    int log_size;
    char log[8192];
} fake_gpu;
extern fake_gpu fake;

/* Changes a field of `fake` while threads use the GPU: under the lock that every call of the driver takes. */
#define FAKE_SET(field, value)                                                                                         \
    do {                                                                                                               \
        fake_lock();                                                                                                   \
        fake.field = (value);                                                                                          \
        fake_unlock();                                                                                                 \
    } while (0)
void fake_lock(void);
void fake_unlock(void);

/* Sets `fake` to one device that works, and returns a system over it. */
const mr_cuda_system *fake_system(void);
/* The same as the GPU of this process, which sessions and pipelines open. */
void fake_register(void);

#endif
