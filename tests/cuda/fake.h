/* A CUDA driver, a cuBLAS and a cuDNN that work in host memory, so that all of cuda/ is tested without a GPU.
 *
 * A stream is a list of queued work. Work runs only when someone waits, and then only as much as the wait requires.
 * Work that does not wait for an event of another stream is therefore not delayed by that stream, and code that forgets
 * to wait sees unchanged memory. Returned memory is overwritten with garbage. */
#ifndef MR_TESTS_CUDA_FAKE_H
#define MR_TESTS_CUDA_FAKE_H

#include "cuda/device.h"

typedef struct fake_gpu {
    int device_count;
    int capability_major;
    int fail_allocations; /* number of following allocations that fail with "out of memory" */
    int fail_copies;      /* n: the n-th following copy to the GPU fails; 0: none */
    mr_cu_result fail_event_wait;
    mr_cu_result fail_launch; /* the result of a launch, if not 0 */
    bool no_blas, no_dnn;
    bool dnn_refuses; /* cuDNN offers no algorithm */
    /* Counters. */
    int allocations, live_allocations, live_pinned, live_events, live_streams, contexts, launches, dnn_runs, copies_in,
        staged_copies, async_copies, streams, stream_waits, event_waits, event_news, host_allocations, own_allocations;
    /* If set, these calls are logged with two letters each. S: the host waits for a stream; C: a copy to the GPU; R: an
     * event is recorded; W: the stream waits for an event. The second letter is q for the device's queue or c for its
     * copies. */
    bool logs;
    int log_size;
    char log[8192];
} fake_gpu;
extern fake_gpu fake;

/* Changes a field of `fake` while threads use the GPU, with the lock that every driver call acquires. */
#define FAKE_SET(field, value)                                                                                         \
    do {                                                                                                               \
        fake_lock();                                                                                                   \
        fake.field = (value);                                                                                          \
        fake_unlock();                                                                                                 \
    } while (0)
void fake_lock(void);
void fake_unlock(void);
/* A copy of `fake`, made with that lock: what tests read while threads use the GPU. */
fake_gpu fake_state(void);

/* Sets `fake` to one working device, and returns a system that contains it. */
const mr_cuda_system *fake_system(void);
/* Registers it as the GPU of this process, which sessions and pipelines open. */
void fake_register(void);

#endif
