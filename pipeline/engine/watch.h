/* Watch: what is seen of a running pipeline from outside.
 *
 * Every worker keeps a note of what it does, with plain relaxed stores. With a watch, which all pipelines of one iterator
 * share, the notes are in a list, so that a watchdog can read them; and tasks are written to a trace. Without one (most of
 * the time) a note is stores that nobody reads. */
#ifndef MR_PIPELINE_WATCH_H
#define MR_PIPELINE_WATCH_H

#include <assert.h>
#include <millrace/dataset.h>
#include <stdatomic.h>

typedef struct mr_watch mr_watch;
typedef struct mr_trace mr_trace;

/* Which numbers a note has: a source's record, a batch, or the position of an order that is pulled from. */
typedef enum mr_note_kind { MR_NOTE_RECORD, MR_NOTE_BATCH, MR_NOTE_PULL } mr_note_kind;

/* Written by one thread, read by the watchdog. Number and kind are one word, so that a reader never describes the number of
 * one element as the kind of another. It may see the stage of one element and the number of the next. */
typedef struct mr_note {
    struct mr_note *next, *previous; /* of the watch's list */
    const mr_dataset *source;        /* describes numbers; null when nobody can */
    bool is_thread;                  /* the thread's only work: it is idle when it has no stage */
    _Atomic(const char *) stage;     /* static; null: idle */
    _Atomic uint64_t element;        /* its number x 4 + its kind; numbers of sources are below 2^62 */
    _Atomic uint64_t since_ns;
} mr_note;

static inline void mr_note_stage(mr_note *note, const char *stage)
{
    atomic_store_explicit(&note->stage, stage, memory_order_relaxed);
}
static inline void mr_note_element(mr_note *note, uint64_t number, mr_note_kind kind)
{
    assert((unsigned)kind <= MR_NOTE_PULL);
    atomic_store_explicit(&note->element, number << 2 | (uint64_t)kind, memory_order_relaxed);
}
static inline void mr_note_since(mr_note *note, uint64_t now_ns)
{
    atomic_store_explicit(&note->since_ns, now_ns, memory_order_relaxed);
}

/* *watch stays null when the options ask for nothing to be watched. Starts the watchdog's thread. */
mr_status mr_watch_new(const mr_iterator_options *options, mr_watch **watch, mr_error *error);
void mr_watch_free(mr_watch *watch); /* null is allowed; when no note is in it any more */
/* From then until remove the watchdog reads the note. Null watches are allowed. */
void mr_watch_add(mr_watch *watch, mr_note *note);
void mr_watch_remove(mr_watch *watch, mr_note *note);
/* The consumer waits for an element from now on; 0: no more. */
void mr_watch_wait(mr_watch *watch, uint64_t since_ns);
mr_trace *mr_watch_trace(mr_watch *watch); /* null when nothing is traced */
/* Another number for each engine. */
uint32_t mr_watch_engine(mr_watch *watch);

/* ---- The trace ---- */

/* A JSON array of Chrome trace events. Whole events are written, so what a killed process leaves lacks no more than the
 * closing bracket, which viewers do without. Any thread. A write that fails ends it; stop says so. */
mr_status mr_trace_new(const char *path, mr_trace **trace, mr_error *error);
/* Ends the file; later events are dropped. */
mr_status mr_trace_stop(mr_trace *trace, mr_error *error);
void mr_trace_free(mr_trace *trace);
/* A name for the calling thread's lane. */
void mr_trace_lane(mr_trace *trace, const char *name, int32_t number);
/* The calling thread did this; rows 0: not said. */
void mr_trace_slice(mr_trace *trace, const char *name, uint64_t start_ns, uint64_t end_ns, uint64_t rows);
void mr_trace_slots(mr_trace *trace, const char *name, uint32_t engine, uint64_t now_ns, uint64_t in_flight,
                    uint64_t ready);

#endif
