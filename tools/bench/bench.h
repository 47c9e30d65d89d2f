/* Benchmarks: millrace against a peer or a physical limit, measured in the same run and reported as a ratio.
 *
 * A suite is one file: BENCH(input, "images through the pipeline") { … bench_row(report, …); }. It measures millrace
 * and the peer alternately (machines are noisy: repeat and take medians) and reports a row for each task. A ratio above
 * 1 is better than the peer. */
#ifndef MR_TOOLS_BENCH_H
#define MR_TOOLS_BENCH_H

#include <stddef.h>
#include <stdint.h>

typedef struct bench_report bench_report;

typedef struct bench_suite {
    const char *name;
    const char *about;
    void (*run)(bench_report *report);
    struct bench_suite *next;
} bench_suite;
void bench_register(bench_suite *suite);

#define BENCH(suite_name, suite_about)                                                                                 \
    static void bench_##suite_name(bench_report *report);                                                              \
    [[gnu::constructor]] static void bench_##suite_name##_register(void)                                               \
    {                                                                                                                  \
        static bench_suite suite = {.name = #suite_name, .about = suite_about, .run = bench_##suite_name};             \
        bench_register(&suite);                                                                                        \
    }                                                                                                                  \
    static void bench_##suite_name(bench_report *report)

typedef struct bench_result {
    const char *task; /* such as "train_input" */
    const char *unit; /* such as "images/s" or "ms" */
    const char *peer; /* such as "libjpeg-turbo decode" */
    double ours;      /* medians */
    double peer_value;
    bool less_is_better;
    double goal;  /* goal for the ratio; 0: none */
    double limit; /* instead of a goal: the highest value that `ours` may have; 0: none */
    int runs;
} bench_result;
/* Prints the row in the table, or as a JSON object with --json. For a peer that could not run, peer_value is 0. */
void bench_row(bench_report *report, bench_result result);
/* Whether rows of this name are to be measured: all, or those of SUITE:PART. */
bool bench_wants(const bench_report *report, const char *task);
const char *bench_part(const bench_report *report); /* PART, or "" */
/* Prints a note below the table. */
[[gnu::format(printf, 2, 3)]] void bench_note(bench_report *report, const char *format, ...);

/* With --stats, prints the statistics of each stage so far as a table on stderr. On a terminal the table overwrites the
 * previous one. */
struct mr_iterator;
void bench_show_stages(bench_report *report, const char *task, struct mr_iterator *iterator, bool is_first);

/* Whether --stats was given. */
bool bench_wants_stats(const bench_report *report);

double bench_seconds(void);           /* monotonic clock */
double bench_processor_seconds(void); /* processor time of all threads of this process */
double bench_median(const double *values, int count);
/* bench_threads: --threads, or the usable processors. bench_rounds: --rounds, or default_value. */
int bench_threads(const bench_report *report);
int bench_rounds(const bench_report *report, int default_value);
/* The directory out/bench/NAME for the suite's data, which is kept between runs. Created if missing. Static storage. */
const char *bench_directory(const char *name);
/* Runs a shell command and returns the number of its last output line "value NUMBER"; 0 if the command fails. */
double bench_command(const char *command);
/* Runs a shell command and stores the last number after each key, which may be anywhere in a line: "\"rss_mb\": ". */
void bench_command_numbers(const char *command, const char *const *keys, double *numbers, int count);
/* A path below $PEERS or ~/.cache/millrace-peers, such as "venvs/torch/bin/python". Static storage, overwritten by the
 * next call. */
[[gnu::format(printf, 1, 2)]] const char *bench_peers_path(const char *format, ...);
/* The Python interpreter with TensorFlow 2.15.1: MILLRACE_ORACLE_PYTHON or .toolchain/oracle/bin/python. Null if there
 * is none. */
const char *bench_tensorflow_python(void);

/* tuned.c: compares a tuned pipeline with the best fixed setting. One row starts with one thread and no prefetch, the
 * other with 64 threads and a prefetch of 64. */
struct mr_dataset;
typedef struct bench_tuned_task {
    const char *name;
    struct mr_dataset *(*dataset)(const void *context); /* infinite, without prefetch */
    const void *context;
    int64_t elements; /* per round */
} bench_tuned_task;
void bench_tuned(bench_report *report, const bench_tuned_task *task);

/* reading.c: part of the suite "records". */
void bench_records_reading(bench_report *report);
/* make.c: part of the suite "records". */
void bench_making(bench_report *report);
void bench_parsing(bench_report *report);
/* indexing.c: part of the suite "records". */
void bench_indexing(bench_report *report);

#endif
