/* Tuner: chooses, while the pipeline runs, how many threads each engine uses, how many slots it fills ahead, and how
 * many elements of files are requested from the system before they are read.
 *
 * The controller (mr_tuner) is a pure function of measurements: no clock, no lock, no allocation. From a window of
 * elements it takes the rate, the share of time that the consumer waited, and how busy each engine's threads were.
 * These suggest a trial. A trial is kept if the rate confirms it: more threads or slots must be faster, fewer must be
 * as fast. No setting is tried twice, so the controller settles. It starts again when the rate has differed for some
 * time.
 *
 * The driver (mr_tuning) measures the engines and changes their settings, on the consumer's thread, between elements.
 * What is delivered depends on neither. */
#ifndef MR_PIPELINE_TUNER_H
#define MR_PIPELINE_TUNER_H

#include "pipeline/engine/engine.h"

/* Further engines keep their settings. */
constexpr int32_t MR_TUNER_ENGINES_MAX = 16;
constexpr int32_t MR_TUNER_TRIED_MAX = 128;

typedef struct mr_tuner_setting {
    int32_t engine, threads, depth, reads;
} mr_tuner_setting;

/* Measurements of one window. */
typedef struct mr_tuner_window {
    double seconds, rate;                 /* rate: elements per second */
    double busy[MR_TUNER_ENGINES_MAX];    /* average number of busy threads: 1.9 is two threads, nearly always busy */
    double starved[MR_TUNER_ENGINES_MAX]; /* share of the time that its caller waited for it or did its work */
    double waited[MR_TUNER_ENGINES_MAX];  /* share of the requested rows that its threads slept for nevertheless */
} mr_tuner_window;

typedef enum mr_tuner_phase { MR_TUNER_BASE, MR_TUNER_TRIAL, MR_TUNER_SETTLED } mr_tuner_phase;

typedef struct mr_tuner {
    int32_t threads_max, processors;
    size_t budget_bytes;
    mr_tuner_phase phase;
    bool is_skipping;         /* discarding what was produced before a change */
    uint64_t until_ns, until; /* end of the window or of skipping: both the time and the element must be reached */
    uint64_t tick_ns, gap_ns; /* of the previous call; average between calls */
    uint64_t start_ns, start; /* of the window */
    double produced;          /* at the start of the window */
    uint64_t work_ns[MR_TUNER_ENGINES_MAX], starved_ns[MR_TUNER_ENGINES_MAX];
    uint64_t rows_requested[MR_TUNER_ENGINES_MAX], rows_waited[MR_TUNER_ENGINES_MAX];
    int32_t windows;   /* in this phase */
    double rate;       /* the best of the phase's windows */
    double base, best; /* rate before the trial; highest rate with a setting that was kept */
    int32_t batch;     /* single elements in each delivered one, for messages; 0: unknown */
    mr_tuner_setting before, trial;
    bool is_doubted; /* a trial was undone; the previous setting is measured again */
    int32_t doubts;  /* trials that were forgotten because the rate before them had changed */
    int32_t tried_count;
    mr_tuner_setting tried[MR_TUNER_TRIED_MAX];
    int32_t off, patience; /* windows with a different rate since it settled; how many restart the search */
} mr_tuner;

typedef struct mr_tuner_decision {
    bool has_setting;
    mr_tuner_setting setting;
    char line[320]; /* the decision and its reason */
} mr_tuner_decision;

/* threads_max   of all engines together
 * budget_bytes  limit for larger windows */
void mr_tuner_init(mr_tuner *tuner, int32_t threads_max, int32_t processors, size_t budget_bytes);
/* Called often; true when step must be called. elements: delivered so far */
bool mr_tuner_is_due(mr_tuner *tuner, uint64_t now_ns, uint64_t elements);
/* gauges    one for each engine, the consumer's last
 * decision  valid when the result is true */
bool mr_tuner_step(mr_tuner *tuner, uint64_t now_ns, uint64_t elements, const mr_engine_gauge *gauges, int32_t count,
                   mr_tuner_decision *decision);
/* Discards the current measurements: the pipeline moved to another position. */
void mr_tuner_skip(mr_tuner *tuner);

/* ---- The driver ---- */

typedef struct mr_tuning mr_tuning;

/* *tuning stays null when the options disable it. */
mr_status mr_tuning_new(const mr_iterator_options *options, const mr_run *run, mr_tuning **tuning, mr_error *error);
void mr_tuning_free(mr_tuning *tuning); /* null is allowed */
/* Adds an engine, inputs before their consumers. It must exist until the last mr_tuning_count. */
void mr_tuning_add(mr_tuning *tuning, mr_stage *engine);
/* Called when all engines are added: divides the threads among them. */
void mr_tuning_begin(mr_tuning *tuning);
/* Called when the consumer has received an element. May measure and change engines. */
void mr_tuning_count(mr_tuning *tuning);
void mr_tuning_skip(mr_tuning *tuning);
void mr_tuning_report(const mr_tuning *tuning, mr_tuned *tuned);

#endif
