/* The suite "python": the package of python/millrace beside PyTorch, TensorFlow and complete loaders. Both sides are
 * processes that measure themselves, python_ours.py and python_peers.py, in turn. $PEERS has their interpreters; the
 * loaders of training input are those of input_peers.c. */
#include "tools/bench/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

constexpr int ROUNDS_MAX = 15;
constexpr int WORKERS = 2;
/* After the first round, loaders below this share of the fastest are not measured again. */
constexpr double CONTENDER_SHARE = 0.7;
/* What 120 iterators may leave in the allocator's free lists. */
constexpr double GROWTH_LIMIT_MB = 8;
/* The budget of 128 MiB, and the code, decoders and stacks of two threads. */
constexpr double PEAK_LIMIT_MB = 160;

static int rounds_of(const bench_report *report, int default_value)
{
    int rounds = bench_rounds(report, default_value);
    return rounds < ROUNDS_MAX ? rounds : ROUNDS_MAX;
}

/* Runs a script with PyTorch's or TensorFlow's interpreter. Its errors are shown: a task that fails has no row. */
static void numbers_of(const char *venv, const char *script, const char *arguments, const char *const *keys,
                       double *numbers, int count)
{
    char command[3072];
    snprintf(command, sizeof command, "PYTHONPATH=python '%s' tools/bench/%s %s",
             bench_peers_path("venvs/%s/bin/python", venv), script, arguments);
    bench_command_numbers(command, keys, numbers, count);
}

static double value_of(const char *venv, const char *script, const char *arguments)
{
    double value;
    numbers_of(venv, script, arguments, (const char *const[]){"value "}, &value, 1);
    return value;
}

/* ---- Training input ---- */

/* Ours from Python beside ours from C. The order alternates: the first of a pair may find the processor warmer. */
static mr_status measure_languages(bench_report *report, const char *arguments, double *mine, int rounds)
{
    mr_error error = {0};
    mr_status status = MR_OK;
    double c[ROUNDS_MAX];
    for (int i = 0; i < rounds && status == MR_OK; i++) {
        if (i % 2) mine[i] = value_of("torch", "python_ours.py", arguments);
        status = bench_our_images(bench_threads(report), &c[i], &error);
        if (i % 2 == 0) mine[i] = value_of("torch", "python_ours.py", arguments);
    }
    if (status != MR_OK) {
        bench_note(report, "python: input_from_c: %s", error.message);
        return status;
    }
    bench_row(report, (bench_result){.task = "input_from_c",
                                     .unit = "images/s",
                                     .peer = "ours from C",
                                     .ours = bench_median(mine, rounds),
                                     .peer_value = bench_median(c, rounds),
                                     .goal = 0.97,
                                     .runs = rounds});
    return status;
}

static void measure_loaders(bench_report *report, const char *arguments, const char *scripts)
{
    double mine[ROUNDS_MAX], theirs[BENCH_LOADERS][ROUNDS_MAX], medians[BENCH_LOADERS], best = 0;
    int rounds = rounds_of(report, 3), threads = bench_threads(report), winner = 0;
    bool is_contender[BENCH_LOADERS] = {0};
    for (int i = 0; i < rounds; i++) {
        mine[i] = value_of("torch", "python_ours.py", arguments);
        for (int k = 0; k < BENCH_LOADERS; k++)
            if (i == 0 || is_contender[k]) theirs[k][i] = bench_loader_images(k, scripts, threads);
        for (int k = 0; k < BENCH_LOADERS && i == 0; k++) best = theirs[k][0] > best ? theirs[k][0] : best;
        for (int k = 0; k < BENCH_LOADERS && i == 0; k++)
            is_contender[k] = theirs[k][0] > 0 && theirs[k][0] >= CONTENDER_SHARE * best;
    }
    for (int k = 0; k < BENCH_LOADERS; k++) {
        medians[k] = bench_median(theirs[k], is_contender[k] ? rounds : 1);
        if (medians[k] > medians[winner]) winner = k;
        if (medians[k] > 0)
            bench_note(report, "input_torch: %s: %.0f images/s, runs: %d", bench_loader_name(k), medians[k],
                       is_contender[k] ? rounds : 1);
        else
            bench_note(report, "input_torch: %s did not run", bench_loader_name(k));
    }
    bench_row(report, (bench_result){.task = "input_torch",
                                     .unit = "images/s",
                                     .peer = bench_loader_name(winner),
                                     .ours = bench_median(mine, rounds),
                                     .peer_value = medians[winner],
                                     .goal = 2.5,
                                     .runs = rounds});
}

static void measure_input(bench_report *report)
{
    const char *scripts = getenv("PEER_SCRIPTS");
    char arguments[1200];
    double mine[ROUNDS_MAX];
    snprintf(arguments, sizeof arguments, "input '%s' %d", bench_photo_records(), bench_threads(report));
    if (bench_wants(report, "input_from_c") &&
        measure_languages(report, arguments, mine, rounds_of(report, 5)) != MR_OK)
        return;
    if (bench_wants(report, "input_torch") && scripts != nullptr)
        measure_loaders(report, arguments, scripts);
    else if (scripts == nullptr)
        bench_note(report, "No other loaders: set PEER_SCRIPTS to the directory of their programs.");
}

/* ---- Pairs of programs ---- */

typedef struct pair {
    const char *task, *unit, *ours, *venv, *theirs, *peer;
    bool less_is_better;
    double goal;
} pair;

static void measure_pair(bench_report *report, const pair *p)
{
    double mine[ROUNDS_MAX], theirs[ROUNDS_MAX];
    int rounds = rounds_of(report, 3);
    if (!bench_wants(report, p->task)) return;
    for (int i = 0; i < rounds; i++) {
        mine[i] = value_of("torch", "python_ours.py", p->ours);
        if (mine[i] == 0) {
            bench_note(report, "python: %s: ours did not run", p->task);
            return;
        }
        theirs[i] = value_of(p->venv, "python_peers.py", p->theirs);
    }
    bench_row(report, (bench_result){.task = p->task,
                                     .unit = p->unit,
                                     .peer = p->peer,
                                     .ours = bench_median(mine, rounds),
                                     .peer_value = bench_median(theirs, rounds),
                                     .less_is_better = p->less_is_better,
                                     .goal = p->goal,
                                     .runs = rounds});
}

static void measure_pairs(bench_report *report)
{
    char slices[64], gather[64], workers[64], first[1200], first_torch[1200], first_tensorflow[1200];
    int threads = bench_threads(report);
    snprintf(slices, sizeof slices, "slices %d", threads);
    snprintf(gather, sizeof gather, "gather %d", threads);
    snprintf(workers, sizeof workers, "map %d", WORKERS);
    snprintf(first, sizeof first, "first '%s' %d", bench_photo_records(), threads);
    snprintf(first_tensorflow, sizeof first_tensorflow, "first_tensorflow '%s' %d", bench_photo_records(), threads);
    snprintf(first_torch, sizeof first_torch, "first_torch '%s' %d", bench_peers_path("data/jpeg"), threads);
    const pair pairs[] = {
        {"rows_256x64", "rows/s", slices, "torch", gather, "torch, gather", false, 2},
        {"map_numpy_2_processes", "images/s", workers, "torch", workers, "torch DataLoader", false, 1.5},
        {"write_64_byte_records", "records/s", "write", "tf", "write", "TFRecordWriter", false, 1},
        {"parse_examples_to_dicts", "examples/s", "parse", "tf", "parse", "protobuf", false, 1},
        {"import_to_first_batch", "s", first, "torch", first_torch, "torch DataLoader", true, 10},
        {"import_to_first_batch", "s", first, "tf", first_tensorflow, "tf.data", true, 10},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) measure_pair(report, &pairs[i]);
}

/* ---- Memory ---- */

/* In one process with a budget of 128 MiB: the peak beyond what the package occupies, growth of 100 epochs after 20,
 * and growth of 200 iterators that are dropped after their first batch, after 20. */
static void measure_memory(bench_report *report)
{
    static const char *const tasks[] = {"memory_peak", "memory_100_epochs", "memory_200_dropped"};
    char arguments[1200];
    double megabytes[4];
    if (!bench_wants(report, tasks[0]) && !bench_wants(report, tasks[1]) && !bench_wants(report, tasks[2])) return;
    snprintf(arguments, sizeof arguments, "memory '%s' %d", bench_photo_records(), bench_threads(report));
    numbers_of("torch", "python_ours.py", arguments, (const char *const[]){"peak ", "growth ", "dropped ", "value "},
               megabytes, 4);
    if (megabytes[3] == 0) {
        bench_note(report, "python: memory: ours did not run");
        return;
    }
    for (int k = 0; k < 3; k++)
        bench_row(report, (bench_result){.task = tasks[k],
                                         .unit = "MB",
                                         .peer = "",
                                         .ours = megabytes[k],
                                         .limit = k == 0 ? PEAK_LIMIT_MB : GROWTH_LIMIT_MB,
                                         .runs = 1});
}

BENCH(python, "the Python package beside PyTorch, TensorFlow and complete loaders")
{
    if (access(bench_peers_path("venvs/torch/bin/python"), X_OK) != 0) {
        bench_note(report, "python: no interpreter venvs/torch/bin/python in $PEERS");
        return;
    }
    measure_input(report);
    measure_pairs(report);
    measure_memory(report);
}
