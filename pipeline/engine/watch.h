/* Watch: observes a running pipeline from outside, for the watchdog and the trace.
 *
 * Every worker writes what it is doing to a note, with relaxed atomic stores. If the iterator has a watch, which all
 * its pipelines share, the notes are in a list that the watchdog's thread reads, and tasks are written to a trace.
 * Without a watch, which is usual, nobody reads the notes.
 *
 * Locking: the watch's mutex guards its list of notes, the trace's mutex its buffer. Both are acquired after an
 * engine's. */
#ifndef MR_PIPELINE_WATCH_H
#define MR_PIPELINE_WATCH_H

#include <assert.h>
#include <millrace/dataset.h>
#include <stdatomic.h>

typedef struct mr_watch mr_watch;
typedef struct mr_trace mr_trace;

/* What a note's number counts: records of a source, batches, or the position of an order that is being pulled. */
typedef enum mr_note_kind { MR_NOTE_RECORD, MR_NOTE_BATCH, MR_NOTE_PULL } mr_note_kind;

/* Written by one thread, read by the watchdog. Number and kind share one word, so a reader never combines the number of
 * one element with the kind of another. It may combine the stage of one element with the number of the next. */
typedef struct mr_note {
    struct mr_note *next, *previous; /* in the watch's list */
    const mr_dataset *source;        /* describes numbers; null if none can */
    bool is_thread;                  /* belongs to a thread of the pipeline: without a stage it is idle */
    _Atomic(const char *) stage;     /* static string; null: idle */
    _Atomic uint64_t element;        /* number × 4 + kind; numbers of sources are below 2^62 */
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

/* Starts the watchdog's thread. *watch stays null when the options request neither watchdog nor trace. */
mr_status mr_watch_new(const mr_iterator_options *options, mr_watch **watch, mr_error *error);
void mr_watch_free(mr_watch *watch); /* null is allowed; all notes must have been removed */
/* The watchdog may read the note from add until remove. A null watch is allowed. */
void mr_watch_add(mr_watch *watch, mr_note *note);
void mr_watch_remove(mr_watch *watch, mr_note *note);
/* The consumer has been waiting for an element since then; 0: it is not waiting. */
void mr_watch_wait(mr_watch *watch, uint64_t since_ns);
mr_trace *mr_watch_trace(mr_watch *watch); /* null without a trace */
/* A new number for each engine. */
uint32_t mr_watch_engine(mr_watch *watch);

/* ---- The trace ---- */

/* A JSON array of Chrome trace events. Only complete events are written: a file of a killed process lacks at most the
 * closing bracket, which viewers accept. A write that fails ends the trace; stop reports it.
 * threads  any */
mr_status mr_trace_new(const char *path, mr_trace **trace, mr_error *error);
/* Completes the file; later events are ignored. */
mr_status mr_trace_stop(mr_trace *trace, mr_error *error);
void mr_trace_free(mr_trace *trace);
/* Names the calling thread in the trace. */
void mr_trace_thread(mr_trace *trace, const char *name, int32_t number);
/* Records work of the calling thread; rows 0: unspecified. */
void mr_trace_slice(mr_trace *trace, const char *name, uint64_t start_ns, uint64_t end_ns, uint64_t rows);
void mr_trace_slots(mr_trace *trace, const char *name, uint32_t engine, uint64_t now_ns, uint64_t in_flight,
                    uint64_t ready);

#endif
