/* The tuner with bad initial settings, compared with the best of a grid of fixed settings, for the same pipeline in the
 * same run.
 *
 * Each tuned iterator first runs until its tuner has settled; --stats prints each decision. Then all iterators
 * alternate, and the median of each counts. */
#include "tools/bench/bench.h"

#include <millrace/dataset.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

constexpr int32_t FIXED_MAX = 8, STARTS = 2, ROUNDS_MAX = 64;
constexpr double SETTLE_SECONDS = 60;

typedef struct contestant {
    char name[48];
    mr_iterator *iterator;
    mr_element element;
    double rates[ROUNDS_MAX];
} contestant;

static mr_status take(contestant *c, int64_t elements, mr_error *error)
{
    mr_status status = MR_OK;
    for (int64_t i = 0; i < elements && status == MR_OK; i++)
        status = mr_iterator_next(c->iterator, &c->element, error);
    return status;
}

/* The maximum number of elements that can be ready, plus one. */
static int64_t slots_of(const contestant *c)
{
    mr_stage_statistics stages[16];
    int32_t count = mr_iterator_statistics(c->iterator, stages, 16);
    return count > 0 && count <= 16 ? stages[count - 1].slots_max + 1 : 1;
}

/* Consumes elements until the tuner has settled, or a time limit has passed. */
static mr_status settle(bench_report *report, const char *task, contestant *c, int64_t elements, mr_error *error)
{
    double start = bench_seconds();
    mr_tuned tuned = {0};
    while (!tuned.is_settled && bench_seconds() - start < SETTLE_SECONDS) {
        MR_TRY(take(c, elements, error));
        mr_iterator_tuned(c->iterator, &tuned);
    }
    mr_stage_statistics stages[16];
    int32_t count = mr_iterator_statistics(c->iterator, stages, 16);
    bench_note(report, "%s from %s: %llu changes in %.1f s, %d threads and %d slots at the end; %s", task, c->name,
               (unsigned long long)tuned.decisions, bench_seconds() - start, count > 0 ? (int)stages[0].threads : 0,
               count > 0 ? (int)stages[count - 1].slots_max : 0, tuned.line);
    return MR_OK;
}

static mr_status open_fixed(const bench_tuned_task *task, int32_t threads, int32_t prefetch, contestant *c,
                            mr_error *error)
{
    snprintf(c->name, sizeof c->name, "%d threads, prefetch %d", (int)threads, (int)prefetch);
    mr_dataset *dataset = task->dataset(task->context);
    if (prefetch > 0) dataset = mr_dataset_prefetch(dataset, prefetch);
    mr_status status = mr_iterator_new(
        dataset, MR_OPTIONS(mr_iterator_options, .threads = threads, .tune = MR_TUNE_OFF), &c->iterator, error);
    mr_dataset_free(dataset);
    return status;
}

static void show(void *context, const char *line)
{
    (void)context;
    fprintf(stderr, "%s\n", line);
}

static mr_status open_tuned(bench_report *report, const bench_tuned_task *task, int32_t threads, int32_t first,
                            int32_t prefetch, contestant *c, mr_error *error)
{
    snprintf(c->name, sizeof c->name, "%d threads, prefetch %d", (int)first, (int)prefetch);
    mr_dataset *dataset = task->dataset(task->context);
    if (prefetch > 0) dataset = mr_dataset_prefetch(dataset, prefetch);
    mr_iterator_options options = {
        .size = sizeof options, .threads = threads, .tune = MR_TUNE_ON, .threads_first = first};
    if (bench_wants_stats(report)) options.tuned = show;
    mr_status status = mr_iterator_new(dataset, &options, &c->iterator, error);
    mr_dataset_free(dataset);
    return status;
}

static mr_status compete(bench_report *report, const bench_tuned_task *task, contestant *all, int32_t *fixed,
                         mr_error *error)
{
    int threads = bench_threads(report), rounds = bench_rounds(report, 5);
    if (rounds > ROUNDS_MAX) rounds = ROUNDS_MAX;
    MR_TRY(open_tuned(report, task, threads, 1, 0, &all[0], error));
    MR_TRY(open_tuned(report, task, 64, 64, 64, &all[1], error));
    for (int32_t count = 1; count <= 2; count++)
        for (int32_t prefetch = 0; prefetch <= 8 && *fixed < FIXED_MAX; prefetch = prefetch == 0 ? 2 : 4 * prefetch)
            MR_TRY(open_fixed(task, count == 1 ? 1 : threads, prefetch, &all[STARTS + (*fixed)++], error));
    for (int32_t i = 0; i < STARTS; i++) MR_TRY(settle(report, task->name, &all[i], task->elements / 8 + 1, error));
    for (int r = 0; r < rounds; r++)
        for (int32_t i = 0; i < STARTS + *fixed; i++) {
            /* Elements that were produced before are not measured. */
            MR_TRY(take(&all[i], task->elements / 4 + slots_of(&all[i]), error));
            double start = bench_seconds();
            MR_TRY(take(&all[i], task->elements, error));
            all[i].rates[r] = (double)task->elements / (bench_seconds() - start);
            /* The iterator fills its prefetch buffers; then the machine is free for the next one. */
            usleep(200000);
        }
    int32_t best = STARTS;
    for (int32_t i = STARTS; i < STARTS + *fixed; i++)
        if (bench_median(all[i].rates, rounds) > bench_median(all[best].rates, rounds)) best = i;
    for (int32_t i = 0; i < STARTS; i++) {
        char name[64], peer[64];
        snprintf(name, sizeof name, "%s_tuned_%s", task->name, i == 0 ? "up" : "down");
        snprintf(peer, sizeof peer, "%s", all[best].name);
        bench_row(report, (bench_result){name, "elements/s", peer, bench_median(all[i].rates, rounds),
                                         bench_median(all[best].rates, rounds), false, 0.95, rounds});
    }
    return MR_OK;
}

void bench_tuned(bench_report *report, const bench_tuned_task *task)
{
    static contestant all[STARTS + FIXED_MAX];
    mr_error error = {0};
    int32_t fixed = 0;
    memset(all, 0, sizeof all);
    if (compete(report, task, all, &fixed, &error) != MR_OK) bench_note(report, "%s: %s", task->name, error.message);
    for (int32_t i = 0; i < STARTS + FIXED_MAX; i++) {
        mr_element_deinit(&all[i].element);
        mr_iterator_free(all[i].iterator);
    }
}
