/* Engine internals: the fields that the engine's files share, and the functions between them. Each file states its
 * invariants and its part of the lock order. A file uses only those above it:
 *
 * engines.c             the engines of one iterator, and their cancellation
 * engine_slots.c        the life of slots: unused, in flight, delivered, freed
 * engine_budget.c       room in the window and the budget, and waiting for it
 * engine_read_ahead.c   requests the bytes of rows from the system before they are needed
 * engine_work.c         processes rows, and assembles batches
 * engine_state.c        moves the engine to a position, saves and restores it
 * engine_pull.c         takes the items of the next slot from the orders
 * engine_workers.c      the threads, which take rows of slots as tasks
 * engine_delivery.c     delivers what is done, in order
 * engine.c              the engine as a stage: creation, settings, measurements, deinit
 *
 * Locking: one mutex for each engine. It is held to take a task, to finish one and to deliver; never while items are
 * pulled, rows are processed, batches are assembled or bytes are requested. One worker at a time pulls (is_pulling), so
 * order stages need no lock.
 * Lock order: the mutex of mr_engines, of the engine above, of this engine, of the engines below; then those of the
 * watch and the trace.
 *
 * Invariants: see mr_engine_is_consistent. Slots are pulled, filled and delivered in the order of their sequence
 * numbers: head ≤ fill ≤ tail. The slot at head never waits for room in the budget, so waiting for room cannot
 * deadlock. */
#ifndef MR_PIPELINE_ENGINE_INTERNAL_H
#define MR_PIPELINE_ENGINE_INTERNAL_H

#include "base/mutex.h"
#include "pipeline/engine/engine.h"
#include "pipeline/engine/slot.h"

#include <assert.h>
#include <pthread.h>

typedef struct mr_engine mr_engine;

/* Counted by a worker without synchronization; added to the counters after each task. */
typedef struct mr_tally {
    uint64_t elements, bytes, busy_ns;
} mr_tally;

typedef struct mr_worker {
    mr_engine *engine;
    pthread_t thread;
    mr_workspace workspace;
    mr_note note;
    mr_slot *slot; /* whose rows it is processing */
    size_t reserved_bytes;
    uint64_t block_bytes;                /* of shared memory that its last block of rows needed */
    size_t workspace_bytes;              /* of its workspace, as counted in the budget */
    mr_tally tallies[MR_STAGES_MAX + 1]; /* reading, then each work */
    mr_error block_error;                /* of a block, while its rows use the workspace's error */
} mr_worker;

/* The mutex guards everything from `mutex` on, except the parts of slots that workers write (slot.h), and the orders:
 * those belong to the thread that set is_pulling, or to the caller when no worker is active. */
struct mr_engine {
    mr_stage stage;
    mr_engine *next, *previous; /* in run->engines; guarded by its mutex */
    bool is_listed;
    mr_engine_plan plan;
    mr_slot_plan slots;
    int32_t ring_size;
    int32_t worker_count; /* one for each thread; the last one is the caller's */
    uint32_t trace_number;
    char trace_name[128]; /* "records+decode_image" */
    mr_worker *workers;

    pthread_mutex_t mutex;
    pthread_cond_t work;  /* workers: rows, room in the window, or the end */
    pthread_cond_t idle;  /* threads above the limit: it has risen, or the end */
    pthread_cond_t ready; /* consumer: a row or batch is done, or no worker is active */
    int32_t limit, depth; /* threads that work; slots read ahead */
    int32_t window_max;   /* maximum slots in flight, ≤ ring_size; more may still be in flight after it was reduced */
    int32_t window_cheap; /* the same while slots are cheap; see mr_engine_window */
    int32_t surplus;      /* slots to free because the window was reduced */
    uint64_t work_ns, starved_ns, rows_done;
    mr_slot **flight;                   /* ring; the slot of sequence number s is at s % ring_size */
    uint64_t head, tail;                /* sequence numbers: delivered next, pulled next */
    uint64_t fill;                      /* the first slot with rows that no worker has taken; tail if none */
    mr_slot *spare;                     /* list: unused */
    mr_slot *delivered;                 /* list: delivered; the consumer may still reference them */
    int32_t row;                        /* without batch: row of the head slot that is delivered next */
    int32_t active;                     /* workers that run without the lock */
    int32_t thread_count;               /* started */
    uint64_t ready_count;               /* complete slots in flight */
    size_t extra_bytes;                 /* recent maximum of a slot's memory beyond the fixed part */
    size_t kept_bytes;                  /* reserved: one slot, and the engine itself */
    int32_t blocked;                    /* workers that wait for room in the budget */
    uint64_t row_ns, pull_ns, batch_ns; /* running averages: a row, a slot's items, a batch */
    _Atomic uint32_t pulls;             /* finished so far */
    _Atomic bool is_cancelled;
    /* Read-ahead (engine_read_ahead.c): active while threads have to wait for rows that were not requested. */
    bool can_read_ahead, reads_ahead;
    int32_t reads;             /* rows to request before they are processed */
    uint64_t probe, probe_gap; /* sequence number of a slot that is not requested, to measure; slots to the next one */
    /* In slots whose rows were requested: all rows, and those that a thread slept for nevertheless. */
    uint64_t rows_requested, rows_waited;
    bool is_even;   /* all rows take the same, small amount of memory */
    bool copies;    /* rows are unmodified copies of the source's memory */
    bool is_direct; /* elements pass through without slots */
    bool is_pulling, input_ended, is_stopping, is_paused, is_waiting, has_started, order_has_begun;
    uint64_t order_epoch;
    uint64_t ignored; /* failures skipped so far */
    mr_error failure; /* why the input ended early; MR_OK if it did not */
};

/* A slot that takes less time is finished about as soon as a sleeping thread wakes. */
constexpr uint64_t MR_CHEAP_NS = 100000;

/* What must hold whenever the lock is held: it is held, the slots in flight fit into the ring, and all counts of
 * workers are within worker_count. `row` is left out, because it belongs to the caller alone. */
static inline bool mr_engine_is_consistent(const mr_engine *engine)
{
    return mr_mutex_is_held(&engine->mutex) && engine->head <= engine->fill && engine->fill <= engine->tail &&
           engine->tail - engine->head <= (uint64_t)engine->ring_size &&
           engine->ready_count <= engine->tail - engine->head && engine->window_max >= 1 &&
           engine->window_max <= engine->ring_size && engine->window_cheap <= engine->ring_size && engine->limit >= 0 &&
           engine->limit < engine->worker_count && engine->thread_count >= 0 &&
           engine->thread_count < engine->worker_count && engine->active >= 0 &&
           engine->active <= engine->worker_count && engine->blocked >= 0 && engine->blocked <= engine->active;
}

/* ---- Small functions of all files. The lock is held ---- */

static inline mr_slot *mr_engine_head_slot(const mr_engine *engine)
{
    assert(engine->ring_size > 0);
    return engine->flight[engine->head % (uint64_t)engine->ring_size];
}
/* Number of working threads; if 0, the caller does the work. */
static inline int32_t mr_engine_threads_at_work(const mr_engine *engine)
{
    return engine->limit < engine->thread_count ? engine->limit : engine->thread_count;
}
/* The slot whose rows are taken next; null if there is none. */
static inline mr_slot *mr_engine_filling(const mr_engine *engine)
{
    return engine->fill < engine->tail ? engine->flight[engine->fill % (uint64_t)engine->ring_size] : nullptr;
}
/* Whether a slot takes less time than putting a thread to sleep and waking it, and needs no room. */
static inline bool mr_engine_is_cheap(const mr_engine *engine)
{
    uint64_t slot_ns = engine->pull_ns + engine->row_ns * (uint64_t)engine->slots.rows + engine->batch_ns;
    return engine->is_even && engine->row_ns > 0 && slot_ns < MR_CHEAP_NS;
}
/* Maximum number of slots in flight. Larger while slots are cheap, so that threads sleep rarely but long. */
static inline int32_t mr_engine_window(const mr_engine *engine)
{
    bool is_wide = engine->window_cheap > engine->window_max && engine->limit > 0 && mr_engine_is_cheap(engine);
    return is_wide ? engine->window_cheap : engine->window_max;
}
static inline uint64_t mr_average_ns(uint64_t average_ns, uint64_t now_ns)
{
    return average_ns == 0 ? now_ns + 1 : (7 * average_ns + now_ns) / 8 + 1;
}
/* Without the lock, too: whether more_bytes of read-ahead fit into the budget. */
static inline bool mr_engine_has_room(const mr_engine *engine, size_t more_bytes)
{
    return mr_budget_has_room(engine->plan.run, more_bytes);
}
/* Memory of an empty slot. */
static inline size_t mr_engine_slot_bytes(const mr_engine *engine)
{
    return engine->slots.fixed_bytes + engine->slots.head_bytes;
}
/* Name of the stage that items come from. Constant. */
static inline const char *mr_engine_order_name(const mr_engine *engine)
{
    const mr_stage *order = engine->plan.order;
    return order->dataset != nullptr ? order->dataset->kind->name : engine->plan.last->kind->name;
}

/* ---- engines.c: without the lock ---- */

/* Adds the engine to the list of its iterator; removes it. */
void mr_engine_list(mr_engine *engine);
void mr_engine_unlist(mr_engine *engine);
/* Cancels this engine alone. */
void mr_engine_cancel(mr_engine *engine);

/* ---- engine_slots.c: the lock is held, except where noted ---- */

/* Takes an unused slot from the lists, for pulling; null if another one must be allocated. */
mr_slot *mr_engine_take_slot(mr_engine *engine);
/* Whether mr_engine_take_slot would return a slot. */
bool mr_engine_has_slot(const mr_engine *engine);
/* Returns a slot that was taken and stayed empty. */
void mr_engine_return_slot(mr_engine *engine, mr_slot *slot);
/* The slot has items and is in flight from here on. */
void mr_engine_append_slot(mr_engine *engine, mr_slot *slot);
/* All its rows are done, and its batch is assembled. */
void mr_engine_complete_slot(mr_engine *engine, mr_slot *slot);
/* The head slot has been delivered: keeps it for reuse, or frees it if the window has shrunk. If the budget is
 * exceeded, it and all unused slots are freed. */
void mr_engine_retire_head(mr_engine *engine, bool exceeds_budget);
/* Clears all slots in flight, which become unused. No worker is active. */
void mr_engine_discard_slots(mr_engine *engine);
/* Frees all slots. Without the lock, when no other thread uses the engine. */
void mr_engine_free_slots(mr_engine *engine);

/* ---- engine_budget.c: the lock is held, except where noted ---- */

bool mr_engine_may_pull(const mr_engine *engine);
/* Whether rows of the slot being filled may be taken: beyond the budget, only those of the next slot to deliver. There
 * must be such a slot. */
bool mr_engine_may_fill(const mr_engine *engine);
/* Whether sleeping threads should be woken; for cheap slots only when the window is half empty. */
bool mr_engine_may_wake(const mr_engine *engine);
/* Called when memory was returned or a slot was delivered. */
void mr_engine_wake_workers(mr_engine *engine);
/* mr_workspace.reserve, without the lock: waits for room unless the row's slot is delivered next, then reserves
 * size_bytes. */
void mr_engine_wait_for_room(mr_workspace *workspace, size_t size_bytes);
/* Without the lock: counts the payloads of pulled items. Beyond the budget, a slot is not filled further until it is
 * delivered next, or the engine moves to another position. The consumer's own thread does not wait.
 * errors  MR_CANCELLED when the engine moves */
mr_status mr_engine_count_payloads(mr_engine *engine, mr_slot *slot, mr_worker *worker, size_t size_bytes,
                                   mr_error *error);

/* ---- engine_read_ahead.c: the lock is held, except where noted ---- */

/* Whether fewer rows in flight are untaken than should be requested ahead. */
bool mr_engine_wants_read_ahead(const mr_engine *engine);
/* For the slot that is pulled now: how many rows to request at once; -1: the slot is not requested. */
int32_t mr_engine_read_ahead_rows(const mr_engine *engine);
/* Rows [*begin, *end) of the slot to request now that rows [0, taken) are taken. */
void mr_engine_claim_read_ahead(mr_engine *engine, mr_slot *slot, int32_t taken, int32_t *begin, int32_t *end);
/* Requests rows from the system. Without the lock. */
void mr_engine_read_ahead(const mr_engine *engine, const mr_slot *slot, int32_t begin, int32_t end);
/* Called when all rows of the slot are done. */
void mr_engine_measure_read_ahead(mr_engine *engine, const mr_slot *slot);
/* How often this thread has slept so far. Without the lock. */
uint64_t mr_engine_sleep_count(const mr_engine *engine);

/* ---- engine_work.c: without the lock ---- */

bool mr_engine_maps_blocks(const mr_engine *engine); /* whether other processes map its rows */
void mr_engine_do_rows(mr_engine *engine, mr_worker *worker, mr_slot *slot, int32_t begin, int32_t end);
/* After rows: frees what an unusually large one needed, and counts the rest in the budget. */
void mr_engine_count_workspace(mr_engine *engine, mr_worker *worker);
/* Assembles a full slot's batch, or records why it failed. */
void mr_engine_do_batch(mr_engine *engine, mr_worker *worker, mr_slot *slot);

/* ---- engine_state.c: the caller, without the lock ---- */

mr_status mr_engine_begin(mr_stage *stage, uint64_t iteration, mr_error *error);
mr_status mr_engine_seek(mr_stage *stage, uint64_t position, mr_error *error);
mr_status mr_engine_save(mr_stage *stage, mr_state *state, mr_error *error);
mr_status mr_engine_restore(mr_stage *stage, mr_state_reader *reader, mr_error *error);
/* The state of what is pulled next. The worker that pulls, or the caller while none does. */
mr_status mr_engine_save_orders(const mr_engine *engine, mr_state *state, mr_error *error);

/* ---- engine_pull.c: the lock is held ---- */

/* Pulls the next slot's items. mr_engine_may_pull must hold. Releases the lock meanwhile. */
void mr_engine_pull(mr_engine *engine, mr_worker *worker);

/* ---- engine_workers.c: the lock is held ---- */

/* Starts threads up to the limit. If some cannot be started, the others do their work; without any, the caller does. */
void mr_engine_start_threads(mr_engine *engine);
/* One step for a thread that would otherwise sleep: a task, or a short busy wait for another worker's pull. Releases
 * the lock meanwhile, so the caller must check its conditions again.
 * has_waited  state of this thread; false initially
 * returns     false if there is nothing to do; the lock was then not released */
bool mr_engine_step(mr_engine *engine, mr_worker *worker, bool *has_waited);
/* Called before the consumer sleeps: wakes threads if there is work. */
void mr_engine_wake_before_wait(mr_engine *engine);

/* ---- engine_delivery.c: the caller, without the lock ---- */

mr_status mr_engine_next_item(mr_stage *stage, mr_item *item, mr_error *error);

#endif
