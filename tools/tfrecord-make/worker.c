/* Workers: several processes that divide the work, on one machine or on several with access to the same directories.
 *
 * Each worker computes the same plan from the same input and writes its own shards. Workers do not communicate: each
 * records its finished shards in its journal in the output directory, and updates the modification time of that file
 * every second to show that it is alive. The process that joins the parts reads the journals. Under mpirun, srun and
 * similar launchers, the rank is the worker's number, and rank 0 joins the parts when the others are done; MPI itself
 * is not needed. */
#include "tfrecord-make/make.h"

#include "common/arena.h"
#include "common/file.h"
#include "common/interrupt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static constexpr int64_t LOOK_NS = 100'000'000;
static constexpr int32_t WORKERS_MAX = 100'000;

/* ---- Ranks ---- */

static bool read_number(const char *name, int64_t *number)
{
    const char *text = name ? getenv(name) : nullptr;
    char *end = nullptr;
    if (!text || *text < '0' || *text > '9') return false;
    *number = strtoll(text, &end, 10);
    return !*end && *number >= 0 && *number <= WORKERS_MAX;
}

/* A hash that identifies a launch; the same for all ranks. */
static uint64_t hash_launch(void)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID",
                                        "SLURM_JOB_ID",   "SLURM_STEP_ID",           "PALS_APID",
                                        "FLUX_JOB_ID"};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *text = getenv(names[i]);
        if (text) hash = plan_hash(hash + i + 1, text, strlen(text));
    }
    return hash;
}

/* The rank that a launcher assigned to this process. */
static bool find_rank(int64_t *rank, int64_t *size)
{
    /* Slurm also sets SLURM_NTASKS for a batch script, which runs once, but the count of a step only for its tasks. */
    static const char *const names[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
                                           {"PMIX_RANK", "PMIX_SIZE"},
                                           {"PALS_RANKID", "PALS_SIZE"},
                                           {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
                                           {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (read_number(names[i][0], rank) && read_number(names[i][1], size) && *rank < *size) return true;
    return false;
}

bool worker_has_rank(void)
{
    int64_t rank, size;
    return find_rank(&rank, &size);
}

void worker_detect(options *options, bool *launched, uint64_t *run)
{
    int64_t rank, size;
    *launched = false;
    *run = 0;
    if (options->worker_count > 0 || options->finish || !find_rank(&rank, &size) || size == 1) return;
    options->worker = (int32_t)rank + 1;
    options->worker_count = (int32_t)size;
    *launched = true;
    *run = hash_launch();
}

/* ---- Waiting ---- */

static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

static const journal_worker *find_worker(const journal *journal, int32_t worker, int32_t worker_count)
{
    for (int32_t i = 0; i < journal->worker_count; i++)
        if (journal->workers[i].worker == worker && journal->workers[i].worker_count == worker_count)
            return &journal->workers[i];
    return nullptr;
}

/* The modification time of a worker's journal, which shows that it is alive; 0 if it has none. The file is opened,
 * so that a network file system queries its server. */
static int64_t sign_of_life(const options *options, int32_t worker)
{
    char *path = nullptr;
    struct stat about = {0};
    int descriptor;
    if (asprintf(&path, "%s/.%s.worker-%d-of-%d.journal", options->out, options->name, worker, options->worker_count) <
        0)
        return 0;
    if (file_open(path, &descriptor, nullptr) == MR_OK) {
        (void)fstat(descriptor, &about);
        (void)close(descriptor);
    }
    free(path);
    return file_stamp_from(&about).modified_ns + about.st_size;
}

static mr_status fail_other_plan(const work *work, const journal_worker *worker, mr_error *error)
{
    if (worker->row_count != work->plan->row_count)
        return mr_fail(error, MR_FAILED_PRECONDITION,
                       "worker %d of %d found %" PRId64 " %ss in %s, but this process found %" PRId64
                       "; restart it when both see the same files",
                       worker->worker, worker->worker_count, worker->row_count, work->source->row_noun,
                       work->options->input, work->plan->row_count);
    return mr_fail(
        error, MR_FAILED_PRECONDITION,
        "worker %d of %d used a different plan: its options or the files in %s differed; restart it with the "
        "options of this process",
        worker->worker, worker->worker_count, work->options->input);
}

/* MR_OK if the worker is done in this run, MR_UNAVAILABLE while it is not. */
static mr_status look_at(const work *work, int32_t number, uint64_t run, mr_error *error)
{
    const journal_worker *worker = find_worker(work->journal, number, work->options->worker_count);
    if (!worker || (run != 0 && worker->run != run)) return MR_UNAVAILABLE;
    if (worker->failure)
        return mr_fail(error, MR_ABORTED, "worker %d of %d failed: %s", number, worker->worker_count, worker->failure);
    if (worker->plan != work->plan->hash) return fail_other_plan(work, worker, error);
    return worker->is_done ? MR_OK : MR_UNAVAILABLE;
}

mr_status worker_wait(work *work, uint64_t run, mr_error *error)
{
    const options *options = work->options;
    int64_t limit_ns = (int64_t)options->wait_s * 1'000'000'000;
    for (int32_t i = 1; i <= options->worker_count; i++) {
        if (i == options->worker) continue;
        int64_t last_sign = 0, heard_ns = now_ns();
        for (;;) {
            int64_t sign = sign_of_life(options, i);
            if (sign != last_sign) heard_ns = now_ns();
            last_sign = sign;
            MR_TRY(journal_read(work->journal, error));
            mr_status status = look_at(work, i, run, error);
            if (status == MR_OK) break;
            if (status != MR_UNAVAILABLE) return status;
            if (interrupt_signal()) return mr_fail(error, MR_CANCELLED, "interrupted");
            if (now_ns() - heard_ns > limit_ns)
                return mr_fail(
                    error, MR_DEADLINE_EXCEEDED,
                    "worker %d of %d has not responded for %d s; when all have finished, --finish joins their "
                    "parts (a worker that is restarted resumes its part)",
                    i, options->worker_count, options->wait_s);
            (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = LOOK_NS}, nullptr);
        }
    }
    return MR_OK;
}

/* ---- Joining ---- */

/* The number of workers if all journals agree on it, otherwise 0. */
static int32_t count_workers(const journal *journal)
{
    int32_t count = journal->worker_count > 0 ? journal->workers[0].worker_count : 0;
    for (int32_t i = 1; i < journal->worker_count; i++)
        if (journal->workers[i].worker_count != count) return 0;
    return count;
}

/* Reports why a shard may be missing: its worker has failed, has not finished, or has not started. */
static mr_status fail_missing(const work *work, plan *plan, const shard *shard, int64_t missing, mr_error *error)
{
    int32_t count = count_workers(work->journal);
    if (count == 0)
        return mr_fail(error, MR_FAILED_PRECONDITION, "%s is missing, %" PRId64 " file%s in total%s", shard->path,
                       missing, missing == 1 ? "" : "s",
                       work->journal->worker_count > 0
                           ? ": workers were started with different counts, such as 1/2 and 1/3"
                           : ": no worker has started");
    MR_TRY(plan_share(plan, count, error));
    const journal_worker *worker = find_worker(work->journal, shard->worker, count);
    if (worker && worker->failure)
        return mr_fail(error, MR_FAILED_PRECONDITION, "worker %d of %d failed: %s", shard->worker, count,
                       worker->failure);
    if (worker && worker->plan != plan->hash) return fail_other_plan(work, worker, error);
    return mr_fail(error, MR_FAILED_PRECONDITION,
                   "worker %d of %d has not %s: %s is missing, %" PRId64
                   " file%s in total; start it with --worker %d/%d, which resumes its part",
                   shard->worker, count, worker ? "finished" : "started", shard->path, missing, missing == 1 ? "" : "s",
                   shard->worker, count);
}

mr_status worker_join(work *work, mr_error *error)
{
    const plan *plan = work->plan;
    const shard *first_missing = nullptr;
    int64_t missing = 0;
    for (int32_t i = 0; i < plan->shard_count; i++) {
        const shard *shard = &plan->shards[i];
        const journal_line *line = journal_find(work->journal, plan, shard, true);
        if (!line) {
            if (missing++ == 0) first_missing = shard;
            continue;
        }
        MR_TRY(shard_report_add(&work->splits[shard->split], &line->report, error));
        work->reused += line->report.records;
    }
    if (missing == 0) return MR_OK;
    return fail_missing(work, (struct plan *)plan, first_missing, missing, error);
}
