/* The parts of the suites "run", "networks", "conv", "gemm" and "kernels". */
#ifndef MR_TOOLS_BENCH_RUN_H
#define MR_TOOLS_BENCH_RUN_H

#include "tools/bench/bench.h"

#include <millrace/millrace.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/types.h>

constexpr int RUN_NAMES_MAX = 8, RUN_ROUNDS_MAX = 31, RUN_QUEUE_THREADS_MAX = 8;

/* ---- run_peer.c: the peers' processes: peer_run.py with TensorFlow, and peer_torch_networks.py ---- */

typedef struct peer {
    pid_t process;
    FILE *to, *from;
    char name[48];     /* with its version */
    char library[24];  /* of the last time: the library that was faster than TensorFlow, or PyTorch's setting; or "" */
    char (*tasks)[64]; /* owned: all tasks, in the order of the suite */
    size_t task_count;
} peer;
/* Starts it with the tasks of a suite, those whose names contain `part`. */
bool peer_start(peer *p, int threads, const char *directory, const char *suite, const char *part);
/* The same for PyTorch's process, peer_torch_networks.py, which has the networks. False: there is none. */
bool peer_start_torch(peer *p, int threads, const char *part);
/* The average time of `count` runs of a task; count 0: of import and first run. Zero if the peer has exited. */
double peer_time(peer *p, const char *task, int count);
/* False: the peer did not stop its threads and exit with status 0. */
bool peer_stop(peer *p);

/* ---- run_task.c: a task that the peer has written ---- */

typedef struct task {
    mr_string graph_def; /* owned */
    double divide;
    double bytes; /* read and written at least; 0: not known */
    char names[3 * RUN_NAMES_MAX + 2][160];
    int name_count;
    const char *feeds[RUN_NAMES_MAX], *fetches[RUN_NAMES_MAX], *targets[RUN_NAMES_MAX], *first, *enqueue, *cancel;
    int feed_count, fetch_count, target_count;
    mr_tensor values[RUN_NAMES_MAX];
    mr_graph *graph;
    mr_session *session;
    mr_step *step;
    mr_step *enqueue_step;
    pthread_t threads[RUN_QUEUE_THREADS_MAX]; /* these run enqueue_step until the queue is closed */
    int enqueue_count, thread_count;
} task;
mr_status task_init(task *t, const char *directory, const char *name, mr_error *error);
void task_deinit(task *t);
/* Imports the graph, initializes it, starts the threads that fill its queue, and runs the task once. */
mr_status task_start(task *t, int threads, mr_error *error);
mr_status task_run(task *t, mr_error *error);
/* errors  of a thread that filled the queue, other than the cancellation that ends it */
mr_status task_stop(task *t, mr_error *error);

/* ---- run.c: rows of both suites ---- */

typedef enum run_kind {
    RUN_STEPS = 0,
    RUN_NETWORK, /* also the share of the machine's peak, and memory */
    RUN_IMPORT,  /* and first run */
    RUN_PYTHON,  /* both sides in the peer's process */
    RUN_START,
    RUN_MEMORY,
} run_kind;
typedef struct run_row {
    const char *name;
    double goal;
    run_kind kind;
} run_row;
void bench_run_rows(bench_report *report, const char *suite, const run_row *all, size_t count);
/* All tasks of the peer's suite, with the same goal. */
void bench_run_tasks(bench_report *report, const char *suite, double goal);

/* ---- share.c ---- */

/* Notes the float operations of a step, which share of the peak they reach, and which operators take the time.
 * seconds  of a step */
mr_status bench_run_share(bench_report *report, const char *name, task *t, double seconds, mr_error *error);
/* Notes which share of the rate of a copy in memory a task reaches. */
void bench_run_bandwidth(bench_report *report, const char *name, const task *t, double seconds);

/* ---- run_process.c: rows that start processes ---- */

/* From the start of graph-run to its end after the first result, in milliseconds. */
void bench_run_start(bench_report *report, const peer *p, const char *directory, const char *name);
/* Growth of the peak resident memory by import, initialization and ten steps, and the peak of the whole process, with
 * the library itself: two rows, in MB.
 * name  of the row
 * task  of the suite, which has been written */
void bench_run_memory(bench_report *report, const peer *p, const char *suite, const char *name, const char *task,
                      double goal);

#endif
