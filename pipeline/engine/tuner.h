/* Tuner: how many threads each engine works with, how many slots it fills ahead and for how many elements of files the
 * system is asked before they are read, found out while the pipeline runs.
 *
 * The controller is a function of measurements alone: no clock, no lock, no memory. From a window of elements it takes
 * the rate, how much of the time the consumer waited, and how busy each engine's threads were; that names what to try.
 * A trial stays when the rate shows it: more threads or slots have to be faster, fewer only as fast. Nothing is tried
 * twice, so it settles; it looks again when the rate has been another one for a while.
 *
 * The tuning around it reads the engines and sets them, on the consumer's thread, between elements. What is delivered
 * depends on neither. */
#ifndef MR_PIPELINE_TUNER_H
#define MR_PIPELINE_TUNER_H

#include "pipeline/engine/engine.h"

/* Engines above that number stay as they are. */
constexpr int32_t MR_TUNER_ENGINES_MAX = 16;
constexpr int32_t MR_TUNER_TRIED_MAX = 128;

typedef struct mr_tuner_setting {
    int32_t engine, threads, depth, reads;
} mr_tuner_setting;

/* What was seen in a window. */
typedef struct mr_tuner_window {
    double seconds, rate;                 /* rate: elements a second */
    double busy[MR_TUNER_ENGINES_MAX];    /* threads' worth of work: 1.9 is two threads nearly all the time */
    double starved[MR_TUNER_ENGINES_MAX]; /* of the time its caller waited for it, or worked in its stead */
    double waited
        [MR_TUNER_ENGINES_MAX]; /* of the rows that were asked for, those that its threads slept for all the same */
} mr_tuner_window;

typedef enum mr_tuner_phase { MR_TUNER_BASE, MR_TUNER_TRIAL, MR_TUNER_SETTLED } mr_tuner_phase;

typedef struct mr_tuner {
    int32_t threads_max, processors;
    size_t budget_bytes;
    mr_tuner_phase phase;
    bool is_skipping;         /* what was ready before a change is being delivered */
    uint64_t until_ns, until; /* the window, or what is skipped, ends when both time and elements are there */
    uint64_t tick_ns, gap_ns; /* of the call before; between calls, on the average */
    uint64_t start_ns, start; /* of the window */
    double made;              /* at its start */
    uint64_t work_ns[MR_TUNER_ENGINES_MAX], starved_ns[MR_TUNER_ENGINES_MAX];
    uint64_t rows_asked[MR_TUNER_ENGINES_MAX], rows_waited[MR_TUNER_ENGINES_MAX];
    int32_t windows;   /* in this phase */
    double rate;       /* best of the phase's windows */
    double base, best; /* before the trial; of all that were kept */
    int32_t batch;     /* single elements in what is delivered, for the text; 0: not known */
    mr_tuner_setting before, trial;
    bool is_doubted; /* a trial was taken back, and what was before is measured once more */
    int32_t doubts;  /* trials that were forgotten because that was another rate */
    int32_t tried_count;
    mr_tuner_setting tried[MR_TUNER_TRIED_MAX];
    int32_t off, patience; /* windows of another rate since it settled; how many are enough */
} mr_tuner;

typedef struct mr_tuner_decision {
    bool has_setting;
    mr_tuner_setting setting;
    char line[320]; /* what and why */
} mr_tuner_decision;

/* threads_max   of all engines together
 * budget_bytes  what growing may fill */
void mr_tuner_init(mr_tuner *tuner, int32_t threads_max, int32_t processors, size_t budget_bytes);
/* Called often; true when step has something to look at. elements: delivered so far */
bool mr_tuner_is_due(mr_tuner *tuner, uint64_t now_ns, uint64_t elements);
/* gauges    of each engine, the one that the consumer takes from last
 * decision  filled when the result is true */
bool mr_tuner_step(mr_tuner *tuner, uint64_t now_ns, uint64_t elements, const mr_engine_gauge *gauges, int32_t count,
                   mr_tuner_decision *decision);
/* What was measured so far is of no use: the pipeline went to another place. */
void mr_tuner_skip(mr_tuner *tuner);

/* ---- Around it ---- */

typedef struct mr_tuning mr_tuning;

/* *tuning stays null when the options ask for none. */
mr_status mr_tuning_new(const mr_iterator_options *options, const mr_run *run, mr_tuning **tuning, mr_error *error);
void mr_tuning_free(mr_tuning *tuning); /* null is allowed */
/* An engine that outlives the last count; inputs before what they go into. */
void mr_tuning_add(mr_tuning *tuning, mr_stage *engine);
/* All are there: each gets its share of the threads. */
void mr_tuning_begin(mr_tuning *tuning);
/* The consumer has another element. */
void mr_tuning_count(mr_tuning *tuning);
void mr_tuning_skip(mr_tuning *tuning);
void mr_tuning_report(const mr_tuning *tuning, mr_tuned *tuned);

#endif
