/* The suite "run", and what it shares with "networks": graphs that TensorFlow exports, run by both sides in turn.
 * TensorFlow runs in its own process (peer_run.py) with the same number of threads. Results are medians over the
 * rounds. */
#include "tools/bench/run.h"

#include <math.h>

static const run_row rows[] = {
    {"chain of adds", 8},
    {"one fed add", 5},
    {"one fed add, Python", 5, RUN_PYTHON},
    {"while_loop", 10},
    {"mlp adam", 1.3},
    {"8 threads enqueue", 5},
    {"import of 10,000 nodes", 5, RUN_IMPORT},
    {"ptb lstm", 1.5},
    {"word2vec", 2},
    {"double and complex products", 1},
    {"decompositions", 1},
    {"gaussian process", 1},
    {"process start to first result", 0, RUN_START},
    {"memory of a training step", 1, RUN_MEMORY},
};

/* Runs that take at least 0.1 s. */
static int count_for(double seconds)
{
    int count = 1;
    while (count < 20000 && count * seconds < 0.1) count *= 2;
    return count;
}

/* Returns how many times the peer's time is ours. */
static double report_times(bench_report *report, const run_row *r, const peer *p, const double *ours,
                           const double *peers, int rounds)
{
    const double our_median = bench_median(ours, rounds) * 1e6, peer_median = bench_median(peers, rounds) * 1e6;
    bench_row(report, (bench_result){.task = r->name,
                                     .unit = "us",
                                     .peer = *p->library ? p->library : p->name,
                                     .ours = our_median,
                                     .peer_value = peer_median,
                                     .less_is_better = true,
                                     .goal = r->goal,
                                     .runs = rounds});
    return peer_median / our_median;
}

static int round_count(bench_report *report, int default_value)
{
    int rounds = bench_rounds(report, default_value);
    return rounds < RUN_ROUNDS_MAX ? rounds : RUN_ROUNDS_MAX;
}

static mr_status our_time(task *t, int count, double *seconds, mr_error *error)
{
    double begin = bench_seconds();
    for (int i = 0; i < count; i++) MR_TRY(task_run(t, error));
    *seconds = (bench_seconds() - begin) / count / t->divide;
    return MR_OK;
}

/* A row of the same task beside PyTorch with its fastest setting. */
static void report_torch(bench_report *report, const run_row *r, peer *torch, const double *ours, const double *peers,
                         int rounds)
{
    char name[80], setting[sizeof torch->library];
    if (!(bench_median(peers, rounds) > 0)) return;
    snprintf(name, sizeof name, "%s, PyTorch", r->name);
    snprintf(setting, sizeof setting, "%s", torch->library);
    torch->library[0] = '\0';
    (void)report_times(report, &(run_row){name, r->goal, r->kind}, torch, ours, peers, rounds);
    bench_note(report, "%s: %s", name, setting);
}

/* torch  null or not running: only beside TensorFlow */
static mr_status measure_steps(bench_report *report, const run_row *r, task *t, peer *p, peer *torch, double *ratio,
                               mr_error *error)
{
    double ours[RUN_ROUNDS_MAX], peers[RUN_ROUNDS_MAX], torches[RUN_ROUNDS_MAX] = {0}, seconds = 0;
    int rounds = round_count(report, 7);
    MR_TRY(task_start(t, bench_threads(report), error));
    MR_TRY(our_time(t, 1, &seconds, error));
    int count = count_for(seconds * t->divide);
    (void)peer_time(p, r->name, 1);
    int peer_count = count_for(peer_time(p, r->name, 2) * t->divide);
    int torch_count = torch ? count_for(peer_time(torch, r->name, 2)) : 0;
    for (int i = 0; i < rounds; i++) {
        MR_TRY(our_time(t, count, &ours[i], error));
        peers[i] = peer_time(p, r->name, peer_count);
        if (torch) torches[i] = peer_time(torch, r->name, torch_count);
    }
    *ratio = report_times(report, r, p, ours, peers, rounds);
    if (torch) report_torch(report, r, torch, ours, torches, rounds);
    if (t->bytes > 0) bench_run_bandwidth(report, r->name, t, bench_median(ours, rounds));
    if (r->kind != RUN_NETWORK) return MR_OK;
    return bench_run_share(report, r->name, t, bench_median(ours, rounds) * t->divide, error);
}

static mr_status measure_import(bench_report *report, const run_row *r, task *t, peer *p, double *ratio,
                                mr_error *error)
{
    double ours[RUN_ROUNDS_MAX], peers[RUN_ROUNDS_MAX];
    int rounds = round_count(report, 3);
    for (int i = 0; i < rounds; i++) {
        double begin = bench_seconds();
        MR_TRY(task_start(t, bench_threads(report), error));
        ours[i] = bench_seconds() - begin;
        MR_TRY(task_stop(t, error));
        peers[i] = peer_time(p, r->name, 0);
    }
    *ratio = report_times(report, r, p, ours, peers, rounds);
    return MR_OK;
}

/* Returns the peer's time over ours; 0: not measured. */
static double measure_task(bench_report *report, const run_row *r, peer *p, peer *torch, const char *directory)
{
    mr_error error = {0};
    double ratio = 0;
    task t;
    mr_status status = task_init(&t, directory, r->name, &error);
    if (status == MR_OK)
        status = r->kind == RUN_IMPORT ? measure_import(report, r, &t, p, &ratio, &error)
                                       : measure_steps(report, r, &t, p, torch, &ratio, &error);
    if (status != MR_OK) bench_note(report, "run: %s: %s", r->name, error.message);
    if (task_stop(&t, &error) != MR_OK) bench_note(report, "run: %s: %s", r->name, error.message);
    task_deinit(&t);
    return ratio;
}

static void measure_python(bench_report *report, const run_row *r, peer *p)
{
    double ours[RUN_ROUNDS_MAX], peers[RUN_ROUNDS_MAX];
    int rounds = round_count(report, 7);
    char ours_name[64];
    snprintf(ours_name, sizeof ours_name, "%s, millrace", r->name);
    (void)peer_time(p, ours_name, 1);
    (void)peer_time(p, r->name, 1);
    int count = count_for(peer_time(p, ours_name, 10)), peer_count = count_for(peer_time(p, r->name, 10));
    for (int i = 0; i < rounds; i++) {
        ours[i] = peer_time(p, ours_name, count);
        peers[i] = peer_time(p, r->name, peer_count);
    }
    (void)report_times(report, r, p, ours, peers, rounds);
}

static void measure_memory(bench_report *report, const char *suite, const run_row *r, const peer *p)
{
    constexpr double GOAL = 2; /* half of TensorFlow's */
    char name[64];
    snprintf(name, sizeof name, "%s, memory", r->name);
    bench_run_memory(report, p, suite, name, r->name, GOAL);
}

static bool start(bench_report *report, const char *suite, peer *p)
{
    if (peer_start(p, bench_threads(report), bench_directory(suite), suite, bench_part(report))) return true;
    bench_note(report, "%s: no Python with TensorFlow, which writes the graphs", suite);
    (void)peer_stop(p);
    return false;
}

static void stop(bench_report *report, const char *suite, peer *p)
{
    if (!peer_stop(p)) bench_note(report, "%s: TensorFlow's process did not end cleanly", suite);
}

void bench_run_rows(bench_report *report, const char *suite, const run_row *all, size_t count)
{
    peer p, torch = {0};
    const char *directory = bench_directory(suite);
    bool has_torch = false;
    if (!start(report, suite, &p)) return;
    if (count > 0 && all[0].kind == RUN_NETWORK)
        has_torch = peer_start_torch(&torch, bench_threads(report), bench_part(report));
    if (count > 0 && all[0].kind == RUN_NETWORK && !has_torch)
        bench_note(report, "%s: no interpreter venvs/torch/bin/python in $PEERS with PyTorch", suite);
    for (size_t i = 0; i < count; i++) {
        if (!bench_wants(report, all[i].name)) continue;
        switch (all[i].kind) {
        case RUN_PYTHON:
            measure_python(report, &all[i], &p);
            break;
        case RUN_START:
            bench_run_start(report, &p, directory, all[i].name);
            break;
        case RUN_MEMORY:
            bench_run_memory(report, &p, suite, all[i].name, "mlp adam", all[i].goal);
            break;
        case RUN_NETWORK:
            (void)measure_task(report, &all[i], &p, has_torch ? &torch : nullptr, directory);
            measure_memory(report, suite, &all[i], &p);
            break;
        default:
            (void)measure_task(report, &all[i], &p, nullptr, directory);
        }
    }
    (void)peer_stop(&torch);
    stop(report, suite, &p);
}

void bench_run_tasks(bench_report *report, const char *suite, double goal)
{
    peer p;
    double logarithms = 0;
    int measured = 0;
    if (!start(report, suite, &p)) return;
    for (size_t i = 0; i < p.task_count; i++) {
        const run_row row = {p.tasks[i], goal, RUN_STEPS};
        if (!bench_wants(report, row.name)) continue;
        const double ratio = measure_task(report, &row, &p, nullptr, bench_directory(suite));
        if (!(ratio > 0)) continue;
        logarithms += log(ratio);
        measured++;
    }
    if (measured > 1) bench_note(report, "%s: geometric mean %.2f", suite, exp(logarithms / measured));
    stop(report, suite, &p);
}

BENCH(run, "graphs that TensorFlow exports: operators, loops, import, training")
{
    bench_run_rows(report, "run", rows, sizeof rows / sizeof rows[0]);
}
