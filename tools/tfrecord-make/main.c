/* tfrecord-make: see make.h and --help. */
#include "tfrecord-make/make.h"
#include "tfrecord-make/survey.h"

#include "common/arena.h"
#include "common/file.h"
#include "common/interrupt.h"
#include "common/output.h"
#include "common/text.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Number of attempts to lock the directory after the other processes are done. */
static constexpr int LOCK_TRIES = 100;

/* Writes this process's shards that are missing. A shard with skipped rows is written again: they may have been
 * repaired, and are reported again if not. */
static mr_status write_missing(work *work, mr_error *error)
{
    const plan *plan = work->plan;
    const shard **missing = malloc(((size_t)plan->shard_count + 1) * sizeof(shard *));
    if (!missing) return fail_memory(error, (size_t)plan->shard_count * sizeof(shard *));
    int32_t count = 0;
    mr_status status = MR_OK;
    for (int32_t i = 0; i < plan->shard_count && status == MR_OK; i++) {
        const shard *shard = &plan->shards[i];
        if (work->options->worker_count > 0 && shard->worker != work->options->worker) continue;
        const journal_line *line = journal_find(work->journal, plan, shard, false);
        if (!line || line->report.skipped > 0) {
            missing[count++] = shard;
            continue;
        }
        work->reused += line->report.records;
        work->finished++;
        status = shard_report_add(&work->splits[shard->split], &line->report, error);
        progress_add(work->progress, (uint64_t)shard->count);
    }
    if (status == MR_OK) status = shards_write(work, missing, count, error);
    free(missing);
    return status;
}

static int64_t count_rows(const work *work)
{
    int64_t count = 0;
    for (int32_t i = 0; i < work->plan->shard_count; i++)
        if (work->options->worker_count == 0 || work->plan->shards[i].worker == work->options->worker)
            count += work->plan->shards[i].count;
    return count;
}

/* Writes this process's part: all the work of a worker, or the work of a single process before the final steps. */
static mr_status make_part(work *work, uint64_t run, double *seconds, mr_error *error)
{
    progress progress;
    interrupt_defer();
    MR_TRY(journal_open(work->options, work->source, work->plan, run, work->journal, error));
    char noun[64];
    snprintf(noun, sizeof(noun), "%ss", work->source->row_noun);
    work->row_count = count_rows(work);
    progress_begin(&progress, "records", noun, (uint64_t)work->row_count);
    work->progress = &progress;
    mr_status status = write_missing(work, error);
    *seconds = progress_seconds(&progress);
    work->rows_done = (int64_t)atomic_load(&progress.done);
    progress_end(&progress);
    if (status != MR_OK && interrupt_signal()) report_interrupted(work);
    if (status == MR_OK && work->options->worker_count > 0) return journal_add_end(work->journal, run, nullptr, error);
    if (status != MR_OK && work->options->worker_count > 0)
        (void)journal_add_end(work->journal, run, error->message, nullptr);
    return status;
}

/* Files without any record are an error. Only workers have written such files, before the parts are joined. */
static mr_status check_not_empty(const work *work, bool joined, mr_error *error)
{
    if (work->written + work->reused > 0) return MR_OK;
    MR_TRY(journal_discard(work->journal, joined ? work->plan : nullptr, error));
    return mr_fail(error, MR_DATA_LOSS, "%s: none of its %ss can be used; no files were written", work->options->input,
                   work->source->row_noun);
}

static mr_status print_written(const work *work, double seconds, int64_t removed, bool joined, mr_error *error)
{
    if (work->options->json) return report_json(work, seconds, removed, 0, error);
    report_made(work, seconds, removed, joined);
    return MR_OK;
}

static mr_status make_alone(work *work, mr_error *error)
{
    double seconds;
    int64_t removed;
    MR_TRY(make_part(work, 0, &seconds, error));
    MR_TRY(check_not_empty(work, false, error));
    /* In this order: labels.txt exists only if all shards of this dataset use its labels. */
    MR_TRY(journal_finish(work->journal, work->plan, &removed, error));
    MR_TRY(label_files_write(work->source, work->journal, error));
    return print_written(work, seconds, removed, false, error);
}

/* Joins the parts written by workers: checks every file, and writes only the label files. */
static mr_status finish(work *work, double seconds, mr_error *error)
{
    int64_t removed;
    mr_status status = journal_open(work->options, work->source, work->plan, 0, work->journal, error);
    for (int i = 0; status == MR_UNAVAILABLE && i < LOCK_TRIES && seconds > 0; i++) {
        journal_deinit(work->journal);
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = 100'000'000}, nullptr);
        status = journal_open(work->options, work->source, work->plan, 0, work->journal, error);
    }
    MR_TRY(status);
    MR_TRY(worker_join(work, error));
    MR_TRY(check_not_empty(work, true, error));
    MR_TRY(journal_finish(work->journal, work->plan, &removed, error));
    MR_TRY(label_files_write(work->source, work->journal, error));
    return print_written(work, seconds, removed, true, error);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Runs in rank 0 of a launch after its own part is done. */
static mr_status join_launched(options *options, work *work, uint64_t run, double begin, mr_error *error)
{
    MR_TRY(worker_wait(work, run, error));
    journal_deinit(work->journal);
    options->worker_count = 0;
    for (int i = 0; i < options->split_count; i++) shard_report_deinit(&work->splits[i]);
    work->reused = 0;
    return finish(work, now() - begin, error);
}

/* --dry-run: everything except writing. The files of an earlier run are read without a lock. */
static mr_status plan_only(work *work, mr_error *error)
{
    const plan *plan = work->plan;
    const options *options = work->options;
    int32_t finished = 0;
    if (file_exists(options->out)) MR_TRY(journal_inspect(options, work->source, plan, work->journal, error));
    for (int32_t i = 0; i < plan->shard_count && work->journal->options; i++) {
        const journal_line *line = journal_find(work->journal, plan, &plan->shards[i], false);
        bool ours = options->worker_count == 0 || plan->shards[i].worker == options->worker;
        finished += ours && line && line->report.skipped == 0;
    }
    if (options->json) return report_json(work, 0, 0, finished, error);
    report_planned(work, finished);
    return MR_OK;
}

static mr_status make(options *options, work *work, bool launched, uint64_t run, mr_error *error)
{
    double seconds, begin = now();
    if (options->dry_run) return launched && options->worker > 1 ? MR_OK : plan_only(work, error);
    MR_TRY(file_make_directories(options->out, error));
    if (options->finish) return finish(work, 0, error);
    if (options->worker_count == 0) return make_alone(work, error);
    MR_TRY(make_part(work, run, &seconds, error));
    if (launched) return options->worker == 1 ? join_launched(options, work, run, begin, error) : MR_OK;
    if (options->json) return report_json(work, seconds, 0, 0, error);
    report_part(work, seconds);
    return MR_OK;
}

/* Reads the input: rows, duplicates and the split of each row; and computes the plan. */
static mr_status look(options *options, source *source, work *work, duplicates_found *found, plan *plan, bool quiet,
                      mr_error *error)
{
    uint8_t *splits = nullptr;
    MR_TRY(source_open(options, source, error));
    if (!quiet) report_source(options, source);
    mr_status status = splits_choose(options, source, work->pool, &splits, error);
    if (status == MR_OK) status = duplicates_find(options, source, splits, work->pool, found, error);
    if (status == MR_OK && !quiet) report_duplicates(options, found);
    record_size size;
    if (status == MR_OK) status = estimate_records(options, source, work->pool, &size, error);
    if (status == MR_OK) status = plan_make(options, source, splits, found->is_dropped, &size, plan, error);
    free(splits);
    if (status == MR_OK && options->worker_count > 0) status = plan_share(plan, options->worker_count, error);
    return status;
}

static mr_status run(options *options, mr_error *error)
{
    source source = {0};
    plan plan = {0};
    journal journal = {0};
    duplicates_found found = {0};
    work work = {.options = options, .source = &source, .plan = &plan, .journal = &journal, .found = &found};
    bool launched;
    uint64_t launch;
    worker_detect(options, &launched, &launch);
    bool quiet = options->json || (launched && options->worker > 1);
    pthread_mutex_init(&work.mutex, nullptr);
    mr_status status = pool_new(options->jobs, &work.pool, error);
    if (status == MR_OK) status = look(options, &source, &work, &found, &plan, quiet, error);
    if (status == MR_OK) status = make(options, &work, launched, launch, error);
    if (status != MR_OK && work.has_retired) {
        fputs("tfrecord-make: incomplete: ", stderr);
        text_print_sentence(stderr, options->out);
        fputs("/labels.txt was removed, because finished files use other labels; a complete run writes it again\n",
              stderr);
    }
    for (int i = 0; i < SPLITS_MAX; i++) shard_report_deinit(&work.splits[i]);
    journal_deinit(&journal);
    plan_deinit(&plan);
    duplicates_deinit(&found);
    source_deinit(&source);
    pool_free(work.pool);
    pthread_mutex_destroy(&work.mutex);
    return status;
}

int main(int argc, char **argv)
{
    options options;
    int exit_code = 0;
    mr_error error = {0};
    output_open();
    /* A file size limit is then reported as an error instead of killing the process. */
    (void)signal(SIGXFSZ, SIG_IGN);
    if (!options_parse(argc, argv, &options, &exit_code)) {
        options_deinit(&options);
        return output_close("tfrecord-make", exit_code);
    }
    interrupt_install("\ntfrecord-make: interrupted while reading the input; nothing was written\n");
    mr_status status = options.survey ? survey_run(&options, &error) : run(&options, &error);
    options_deinit(&options);
    if (status != MR_OK && interrupt_signal()) interrupt_exit();
    if (status == MR_CANCELLED) {
        fputs("tfrecord-make: stopped; repair or remove the input that cannot be used and run the same command again "
              "(finished files are kept), or use --on-error skip\n",
              stderr);
    } else if (status != MR_OK) {
        fputs("tfrecord-make: ", stderr);
        text_print_sentence(stderr, error.message);
        fputc('\n', stderr);
    }
    return output_close("tfrecord-make", status == MR_OK ? 0 : 1);
}
