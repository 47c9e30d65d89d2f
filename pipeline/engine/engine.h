/* Engine: worker threads that turn the items of an order into elements or batches.
 *
 * Slots are filled in order, and several at once: a worker that finds no row left in the slot that is being filled pulls
 * the next slot's items and goes on there, so that one slow element holds up its own batch only. At most `window` slots
 * are in flight; the consumer takes them in order. To the stages above it an engine is a stage. */
#ifndef MR_PIPELINE_ENGINE_H
#define MR_PIPELINE_ENGINE_H

#include "pipeline/pipeline.h"

#include <pthread.h>

typedef struct mr_engine_plan {
    const mr_run *run;
    const mr_dataset *source; /* how items without payload are read; null above another engine */
    mr_counters *source_counters;
    mr_stage *order; /* of elements; owned by the engine from mr_engine_new on, also on error */
    int32_t work_count;
    mr_work works[MR_STAGES_MAX];
    const mr_dataset *last; /* whose elements it delivers */
    mr_counters *counters;  /* of that dataset */
    /* With batch: the order of batches (owned) and the work on them. */
    const mr_dataset *batch;
    mr_counters *batch_counters;
    mr_stage *batches;
    int32_t batch_work_count;
    mr_work batch_works[MR_STAGES_MAX];
    const mr_dataset *ignore;        /* how many failures are left out; null: none */
    bool drops;                      /* works or ignore let elements fall */
    const mr_element_spec *row_spec; /* of one element after works */
    int32_t prefetch;                /* the depth asked for; 0: tuned; -1: no prefetch */
    int32_t threads;                 /* the most; 0: on the thread of the caller */
    bool is_tuned;                   /* threads and depth may be set while it runs */
    int32_t threads_first;           /* when it is tuned: at work in the beginning */
} mr_engine_plan;

/* Most slots that are read ahead because of the tuner. */
constexpr int32_t MR_DEPTH_MAX = 64;
/* Rows of files that the system is asked for before they are worked on: in the beginning, and at most. */
constexpr int32_t MR_READS_FIRST = 32, MR_READS_MAX = 2048;

/* What the tuner sees of an engine; nanoseconds are since it was made. */
typedef struct mr_engine_gauge {
    const char *name; /* "records+decode_image"; lives as long as the engine */
    int32_t threads, threads_max;
    int32_t depth;      /* slots read ahead */
    bool may_be_inline; /* 0 threads are allowed: the caller works */
    bool is_quick;      /* the caller works along, rather than wait for threads */
    size_t slot_bytes;
    int32_t slots;        /* in flight at most */
    int32_t ready;        /* of these, complete */
    int32_t slot_rows;    /* elements delivered from a slot; 1 for batches */
    int32_t batch_rows;   /* single elements in a full batch; 1 without batch */
    double made;          /* elements that the work so far comes to; 0 when nobody knows, because some fall */
    int32_t reads;        /* rows of files asked for ahead; 0: none, there is no file or it is in memory */
    uint64_t rows_asked;  /* in slots that were asked for */
    uint64_t rows_waited; /* of these, those that a thread slept for all the same */
    uint64_t work_ns;     /* on elements, over all threads */
    uint64_t starved_ns;  /* its caller waited for it, or worked in its stead */
} mr_engine_gauge;

/* The engines of one iterator, those of pipelines inside stages too, which come and go while it runs: cancel reaches
 * every one. Its mutex is taken before an engine's. */
typedef struct mr_engines {
    pthread_mutex_t mutex;
    struct mr_engine *first;
    _Atomic bool are_cancelled; /* later ones are from the beginning */
} mr_engines;
void mr_engines_init(mr_engines *engines);
void mr_engines_deinit(mr_engines *engines);
/* Any thread, once or often. Whoever waits for an element is told; threads give up their tasks at the next row. */
void mr_engines_cancel(mr_engines *engines);

/* errors  MR_RESOURCE_EXHAUSTED without memory. An engine gets one batch or block of elements, whatever the budget is */
mr_status mr_engine_new(const mr_engine_plan *plan, mr_stage **engine, mr_error *error);
/* As many tensors as the last dataset's spec has. A failed element or batch is its error, once; the next call goes on
 * after it. */
mr_status mr_engine_next(mr_stage *engine, mr_tensor *tensors, mr_error *error);
extern const mr_stage_functions mr_engine_functions;

/* Any thread. Nothing that is delivered depends on either. */
void mr_engine_measure(mr_stage *engine, mr_engine_gauge *gauge);
/* Of a tuned engine: 0 ≤ threads ≤ threads_max, 1 ≤ depth ≤ MR_DEPTH_MAX or what it began with, reads ≤ MR_READS_MAX
 * (0 leaves them as they are). Threads above the number end their tasks and wait. */
void mr_engine_set(mr_stage *engine, int32_t threads, int32_t depth, int32_t reads);

#endif
