/* The inside of the engine. Items come in (engine_pull.c), threads take tasks (engine_threads.c) and do them
 * (engine_work.c), and what is done goes out in order (engine_deliver.c); engine.c makes one and moves it about. */
#ifndef MR_PIPELINE_ENGINE_INSIDE_H
#define MR_PIPELINE_ENGINE_INSIDE_H

#include "pipeline/engine/engine.h"
#include "pipeline/engine/slot.h"

#include <assert.h>
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
    size_t lane_bytes;                   /* of its lane, as the budget has them */
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
    int32_t window_quick; /* the same of quick ones */
    int32_t surplus;      /* slots to be given back since the window became smaller */
    uint64_t work_ns, starved_ns, rows_done;
    mr_slot **flight;                   /* ring; slot of sequence s at s % ring_size */
    uint64_t head, tail;                /* sequences: delivered next, pulled next */
    uint64_t fill;                      /* sequence: has rows that nobody took, as have those after it; or the tail */
    mr_slot *spare;                     /* list: nobody's */
    mr_slot *lent;                      /* list: delivered, and perhaps still held by the consumer */
    int32_t row;                        /* of the head slot, delivered next; without batch */
    int32_t active;                     /* workers outside the lock */
    int32_t thread_count;               /* started */
    uint64_t ready_count;               /* slots in flight that are complete */
    size_t extra_bytes;                 /* most of the latest slots, beside what all have */
    size_t kept_bytes;                  /* of the budget: a slot, and what the engine itself takes */
    int32_t blocked;                    /* workers that wait for room in the budget */
    uint64_t row_ns, pull_ns, batch_ns; /* what a row, a slot's items and a batch take, on the average of late */
    _Atomic uint32_t pulls;             /* ended so far */
    _Atomic bool is_cancelled;
    /* Reading ahead (engine_ahead.c): on while rows that nobody asked for have to be waited for. */
    bool may_ask, asks;
    int32_t reads;             /* rows asked for before they are worked on */
    uint64_t probe, probe_gap; /* sequence of a slot that is left alone, to see; slots until the next */
    /* In slots that were asked for: rows, and those that were waited for all the same. */
    uint64_t rows_asked, rows_waited;
    bool is_even;   /* rows take the same memory each, and not much */
    bool copies;    /* rows are what the source has in memory, as it is */
    bool is_direct; /* elements go through as they are, without slots */
    bool is_pulling, input_ended, is_stopping, is_paused, is_waiting, has_started, order_has_begun;
    uint64_t order_epoch;
    uint64_t ignored; /* failures left out */
    mr_error failure; /* why the input ended early; status MR_OK when it did not */
};

/* Some rows of a slot. */
typedef struct mr_task {
    mr_slot *slot;
    int32_t begin, end;
    int32_t ask_begin, ask_end; /* rows to be asked for first */
} mr_task;

/* What holds whenever the lock is; row is the caller's alone. Slots in flight fit into the ring, rows are taken in order, and whoever is counted is one
 * of the workers. */
static inline bool mr_engine_is_consistent(const mr_engine *engine)
{
    return engine->head <= engine->fill && engine->fill <= engine->tail &&
           engine->tail - engine->head <= (uint64_t)engine->ring_size &&
           engine->ready_count <= engine->tail - engine->head && engine->window_max >= 1 &&
           engine->window_max <= engine->ring_size && engine->window_quick <= engine->ring_size && engine->limit >= 0 &&
           engine->limit < engine->worker_count && engine->thread_count >= 0 &&
           engine->thread_count < engine->worker_count && engine->active >= 0 &&
           engine->active <= engine->worker_count && engine->blocked >= 0 && engine->blocked <= engine->worker_count;
}

/* In all of these the lock is held, unless they say otherwise. */

static inline mr_slot *mr_engine_slot_next(const mr_engine *engine)
{
    assert(engine->ring_size > 0);
    return engine->flight[engine->head % (uint64_t)engine->ring_size];
}
/* Threads at work; without any the caller works. */
static inline int32_t mr_engine_threads_at_work(const mr_engine *engine)
{
    return engine->limit < engine->thread_count ? engine->limit : engine->thread_count;
}
/* The slot whose rows are taken now; null: there is none. */
static inline mr_slot *mr_engine_filling(const mr_engine *engine)
{
    return engine->fill < engine->tail ? engine->flight[engine->fill % (uint64_t)engine->ring_size] : nullptr;
}
static inline void mr_slot_push(mr_slot **list, mr_slot *slot)
{
    assert(slot != nullptr && slot != *list);
    slot->next = *list;
    *list = slot;
}
static inline uint64_t mr_average_ns(uint64_t average_ns, uint64_t now_ns)
{
    return average_ns == 0 ? now_ns + 1 : (7 * average_ns + now_ns) / 8 + 1;
}

static inline bool mr_engine_has_room(const mr_engine *engine, size_t more_bytes)
{
    return mr_budget_has_room(engine->plan.run, more_bytes);
}
/* Of a slot before there is anything in it. */
static inline size_t mr_engine_slot_bytes(const mr_engine *engine)
{
    return engine->slots.fixed_bytes + engine->slots.head_bytes;
}

/* ---- engine_pull.c ---- */

void mr_engine_free_slots(mr_slot *list);
/* Beyond the budget no slot is kept for later. */
void mr_engine_free_idle(mr_engine *engine);
bool mr_engine_may_pull(const mr_engine *engine);
/* Beyond the budget rows of the slot that is due go on, those of later ones wait. A slot is being filled. */
bool mr_engine_may_fill(const mr_engine *engine);
/* The next slot's items; lets go of the lock meanwhile. */
void mr_engine_pull(mr_engine *engine, mr_worker *worker);
/* Memory was given back, or another slot is due. */
void mr_engine_wake_workers(mr_engine *engine);
/* Without the lock. A row says what it is about to take, and waits for it unless its slot is due. */
void mr_engine_wait_for_room(mr_lane *lane, size_t size_bytes);
/* The place of what is pulled next. Nobody pulls. */
mr_status mr_engine_save_orders(const mr_engine *engine, mr_state *place, mr_error *error);
mr_status mr_engine_restore_orders(mr_engine *engine, mr_state_reader *reader, mr_error *error);
/* The stage that items come from. */
const char *mr_engine_order_name(const mr_engine *engine);
/* Of an engine with threads: those of others are short-lived, or no queue. */
void mr_engine_trace_slots(mr_engine *engine);

/* ---- engine_ahead.c ---- */

/* Rows in flight that nobody took are fewer than are to be asked for. */
bool mr_engine_wants_ahead(const mr_engine *engine);
/* Of a slot that is pulled now: rows to ask for at once; -1: none is to be asked for. */
int32_t mr_engine_ahead(const mr_engine *engine);
/* Rows of the slot to ask for now, when rows [0, taken) are taken: [*begin, *end). */
void mr_engine_claim_ahead(mr_engine *engine, mr_slot *slot, int32_t taken, int32_t *begin, int32_t *end);
/* Without the lock. */
void mr_engine_prefetch(const mr_engine *engine, const mr_slot *slot, int32_t begin, int32_t end);
/* The slot is done. */
void mr_engine_learn_ahead(mr_engine *engine, const mr_slot *slot);
/* Without the lock. How often this thread has slept so far. */
uint64_t mr_engine_sleeps(const mr_engine *engine);

/* ---- engine_threads.c ---- */

/* Fewer threads than wanted are enough; without any the caller works. */
void mr_engine_start_threads(mr_engine *engine);
/* One step of somebody who would otherwise sleep: a task, or a short wait for whoever pulls. Lets go of the lock
 * meanwhile, so the world is looked at anew after it.
 * has_waited  his own; false in the beginning
 * returns     false: there is nothing to do, and the lock was not let go */
bool mr_engine_step(mr_engine *engine, mr_worker *worker, bool *has_waited);
/* Work so quick that to sleep and be woken would take longer, and that needs no room. */
bool mr_engine_is_quick(const mr_engine *engine);
/* Slots in flight at most. Of quick ones there are some more, so that threads that wait for room sleep seldom and long. */
int32_t mr_engine_window(const mr_engine *engine);
/* Whether threads that sleep are to be told that there is something to do: of quick work only when much is missing. */
bool mr_engine_may_wake(const mr_engine *engine);
/* Whoever goes to sleep leaves nothing undone that a thread could do. */
void mr_engine_wake_for_rest(mr_engine *engine);

/* ---- engine_work.c: without the lock ---- */

void mr_engine_do_rows(mr_engine *engine, mr_worker *worker, mr_slot *slot, int32_t begin, int32_t end);
/* After rows: what an unusually large one took is given back, and the budget has the rest. */
void mr_engine_count_lane(mr_engine *engine, mr_worker *worker);
/* Puts a full slot's batch together, or records why not. */
void mr_engine_do_batch(mr_engine *engine, mr_worker *worker, mr_slot *slot);

/* ---- engine_deliver.c: without the lock ---- */

/* The order's next element as it is, when nothing is to be done for it. */
mr_status mr_engine_next_direct(mr_engine *engine, mr_item *item, mr_error *error);

#endif
