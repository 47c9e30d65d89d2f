/* The inside of the engine, for engine.c and engine_work.c. */
#ifndef MR_PIPELINE_ENGINE_INSIDE_H
#define MR_PIPELINE_ENGINE_INSIDE_H

#include "pipeline/engine.h"
#include "pipeline/slot.h"

#include <pthread.h>

typedef struct mr_engine mr_engine;

/* Counted by a worker for itself, added to the counters after each task. */
typedef struct mr_tally {
    uint64_t elements, bytes, busy_ns;
} mr_tally;

typedef struct mr_worker {
    mr_engine *engine;
    pthread_t thread;
    mr_lane lane;
    mr_note note;
    mr_slot *slot; /* whose rows it works on */
    size_t reserved_bytes;
    mr_tally tallies[MR_STAGES_MAX + 1]; /* reading, then each work */
} mr_worker;

/* Everything from `mutex` on is guarded by it, except what a slot's workers write (slot.h), and the orders, which belong
 * to whoever set is_pulling, or, when nothing is active, to the caller. */
struct mr_engine {
    mr_stage stage;
    mr_engine *next, *previous; /* in run->engines, guarded by its mutex */
    bool is_listed;
    mr_engine_plan plan;
    mr_slot_plan slots;
    int32_t ring_size;
    int32_t worker_count; /* lanes: one for each thread, the last for the caller */
    uint32_t trace_number;
    char trace_name[128]; /* "records+decode_image" */
    mr_worker *workers;

    pthread_mutex_t mutex;
    pthread_cond_t work;  /* for workers: rows, room in the window, or the end */
    pthread_cond_t idle;  /* for threads above the limit: it has risen, or the end */
    pthread_cond_t ready; /* for the consumer: a row or batch is done, or nothing is active any more */
    int32_t limit, depth; /* threads that work; read ahead */
    int32_t window_max;   /* slots in flight, at most ring_size; may be fewer than are there already */
    int32_t surplus;      /* slots to be given back since the window became smaller */
    uint64_t work_ns, starved_ns, rows_done;
    mr_slot **flight;     /* ring; slot of sequence s at s % ring_size */
    uint64_t head, tail;  /* sequences: delivered next, pulled next */
    mr_slot *filling;     /* has rows that nobody took */
    mr_slot *spare;       /* list: nobody's */
    mr_slot *lent;        /* list: delivered, and perhaps still held by the consumer */
    int32_t row;          /* of the head slot, delivered next; without batch */
    int32_t active;       /* workers outside the lock */
    int32_t thread_count; /* started */
    uint64_t ready_count; /* slots in flight that are complete */
    size_t extra_bytes;   /* most of the latest slots, beside their fixed columns */
    int32_t blocked;      /* workers that wait for room in the budget */
    uint64_t row_ns;      /* what a row takes, on the average of late */
    _Atomic bool is_cancelled;
    bool copies;    /* rows are what the source has in memory, as it is */
    bool is_direct; /* elements go through as they are, without slots */
    bool is_pulling, input_ended, is_stopping, is_paused, is_waiting, has_started, order_has_begun;
    uint64_t order_epoch;
    uint64_t ignored; /* failures left out */
    mr_error failure; /* why the input ended early; status MR_OK when it did not */
};

void mr_engine_do_rows(mr_engine *engine, mr_worker *worker, mr_slot *slot, int32_t begin, int32_t end);
/* Puts a full slot's batch together, or records why not. */
void mr_engine_do_batch(mr_engine *engine, mr_worker *worker, mr_slot *slot);

#endif
