/* Engine: worker threads that process the items of an order and deliver elements or batches, in order.
 *
 * The unit of work is a slot (slot.h): one batch, or one block of single elements. Slots are filled in order, several
 * at a time: a worker that finds no free row in the slot being filled pulls the next slot's items and continues there,
 * so a slow element delays only its own batch. At most `window` slots are in flight. The consumer takes them in order.
 * To the stages above it, an engine is a stage.
 *
 * Ownership: an engine owns its orders, its slots and its threads; deinit cancels, joins the threads and frees the
 * slots. Tensors that were delivered keep their buffers by reference, also after the engine.
 * Threads: next, begin, seek, save and restore have one caller at a time; cancel, measure and set may come from any
 * thread. What is delivered does not depend on the number of threads, the window or timing. */
#ifndef MR_PIPELINE_ENGINE_H
#define MR_PIPELINE_ENGINE_H

#include "pipeline/pipeline.h"

#include <pthread.h>

typedef struct mr_engine_plan {
    const mr_run *run;
    const mr_dataset *source; /* reads items that have no payload; null above another engine */
    mr_counters *source_counters;
    mr_stage *order; /* of elements; owned by the engine from mr_engine_new on, also on error */
    int32_t work_count;
    mr_work works[MR_STAGES_MAX];
    const mr_dataset *last; /* the dataset whose elements are delivered */
    mr_counters *counters;  /* of last */
    /* With batch: the order of batches (owned), and the work on complete batches. */
    const mr_dataset *batch;
    mr_counters *batch_counters;
    mr_stage *batches;
    int32_t batch_work_count;
    mr_work batch_works[MR_STAGES_MAX];
    const mr_dataset *ignore;        /* which failures are skipped; null: none */
    bool drops;                      /* works or ignore may drop elements */
    const mr_element_spec *row_spec; /* of one element after works */
    int32_t prefetch;                /* prefetch depth; 0: tuned; -1: no prefetch */
    int32_t threads;                 /* maximum; 0: the caller does all work */
    bool is_tuned;                   /* threads and depth may be changed while it runs */
    int32_t threads_first;           /* initial threads if tuned */
} mr_engine_plan;

/* Maximum number of slots that the tuner reads ahead. */
constexpr int32_t MR_DEPTH_MAX = 64;
/* Rows of files that are requested from the system before they are processed: initially, and maximum. */
constexpr int32_t MR_READS_FIRST = 32, MR_READS_MAX = 2048;

/* The measurements that the tuner takes from an engine. Times are totals since the engine was created. */
typedef struct mr_engine_gauge {
    const char *name; /* "records+decode_image"; borrowed from the engine */
    int32_t threads, threads_max;
    int32_t depth;      /* slots read ahead */
    bool may_be_inline; /* 0 threads are allowed: the caller then does the work */
    bool is_cheap;      /* slots are so cheap that the caller helps instead of waiting for threads */
    size_t slot_bytes;
    int32_t slots;           /* maximum number in flight */
    int32_t ready;           /* complete slots in flight */
    int32_t slot_rows;       /* elements delivered from one slot; 1 for batches */
    int32_t batch_rows;      /* elements of a full batch; 1 without batch */
    double produced;         /* elements or batches that the finished rows amount to; 0: unknown, because some are
                             dropped */
    int32_t reads;           /* rows requested ahead; 0: none, because there is no file or it is in memory */
    uint64_t rows_requested; /* in slots whose rows were requested ahead */
    uint64_t rows_waited;    /* of rows_requested: a thread slept for them nevertheless */
    uint64_t work_ns;        /* spent on elements, over all threads */
    uint64_t starved_ns;     /* the caller waited for the engine, or did its work */
} mr_engine_gauge;

void mr_engines_init(mr_engines *engines);
void mr_engines_deinit(mr_engines *engines);
/* Any thread, any number of times. Wakes every caller that waits for an element; workers abandon their tasks at the
 * next row. */
void mr_engines_cancel(mr_engines *engines);

/* plan    copied; its orders are owned by the engine from here on, also on error
 * errors  MR_RESOURCE_EXHAUSTED if out of memory. One batch or block of elements is allowed even if it exceeds the
 *         budget */
mr_status mr_engine_new(const mr_engine_plan *plan, mr_stage **engine, mr_error *error);
/* Takes the next element or batch: as many tensors as the last dataset's spec has. An element or batch that failed
 * returns its error once; the next call continues after it. */
mr_status mr_engine_next(mr_stage *engine, mr_tensor *tensors, mr_error *error);
extern const mr_stage_functions mr_engine_functions;

/* Any thread. Neither function changes what is delivered. */
void mr_engine_measure(mr_stage *engine, mr_engine_gauge *gauge);
/* For a tuned engine: 0 ≤ threads ≤ threads_max; 1 ≤ depth ≤ MR_DEPTH_MAX, or the initial depth if that is larger;
 * reads ≤ MR_READS_MAX (0: unchanged). Threads above the number finish their tasks and sleep. */
void mr_engine_set(mr_stage *engine, int32_t threads, int32_t depth, int32_t reads);

#endif
