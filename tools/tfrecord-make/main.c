/* tfrecord-make: see make.h and --help. */
#include "tools/tfrecord-make/make.h"

#include "base/arena.h"
#include "records/file.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line for each class, in the order of their labels. */
static mr_status write_labels(const options *options, const listing *listing, mr_error *error)
{
    char *path = nullptr, *text = nullptr, *next;
    size_t size = 0;
    for (int32_t i = 0; i < listing->class_count; i++) size += strlen(listing->classes[i]) + 1;
    if (asprintf(&path, "%s/labels.txt", options->out) < 0) return mr_fail_memory(error, size);
    next = text = malloc(size + 1);
    for (int32_t i = 0; text && i < listing->class_count; i++) {
        next = stpcpy(next, listing->classes[i]);
        *next++ = '\n';
    }
    mr_status status = text ? mr_file_write_whole(path, text, size, error) : mr_fail_memory(error, size);
    free(text);
    free(path);
    return status;
}

static void print_found(const options *options, const listing *listing)
{
    char size[PROGRESS_TEXT_SIZE];
    printf("%s: %" PRId64 " picture%s in %d class%s, %s\n", options->folder, listing->picture_count,
           listing->picture_count == 1 ? "" : "s", listing->class_count, listing->class_count == 1 ? "" : "es",
           progress_size_text(listing->size_bytes, size));
    if (listing->loose > 0) printf("  %" PRId64 " pictures in no class folder are left out\n", listing->loose);
    if (listing->left_out > 0)
        printf("  %" PRId64 " file%s left out, not .jpg or .png by name: %s%s\n", listing->left_out,
               listing->left_out == 1 ? "" : "s", listing->left_out_first, listing->left_out > 1 ? ", …" : "");
    fflush(stdout);
}

static void print_made(const options *options, const work *work, double seconds, int64_t removed)
{
    char text[PROGRESS_TEXT_SIZE];
    const plan *plan = work->plan;
    for (int i = 0; i < options->split_count; i++) {
        if (plan->split_shards[i] == 0) {
            printf("%-12s no pictures\n", options->splits[i].name);
            continue;
        }
        printf("%-12s %" PRId64 " pictures, %s: %s/%s-%s@%d.tfrecord\n", options->splits[i].name, work->split_counts[i],
               progress_size_text(plan->split_bytes[i], text), options->out, options->name, options->splits[i].name,
               plan->split_shards[i]);
    }
    printf("%-12s %s/labels.txt\n", "labels", options->out);
    if (work->bad > 0)
        printf("%" PRId64 " picture%s could not be used and %s left out (listed above)\n", work->bad,
               work->bad == 1 ? "" : "s", work->bad == 1 ? "was" : "were");
    if (removed > 0) printf("%" PRId64 " file%s of an earlier run removed\n", removed, removed == 1 ? "" : "s");
    if (work->reused > 0) printf("%" PRId64 " pictures in files that were finished before\n", work->reused);
    printf("%" PRId64 " pictures written in %s", work->written, progress_time_text(seconds, text));
    if (work->written > 0 && seconds > 0) printf(", %.0f pictures/s", (double)work->written / seconds);
    printf("\n");
}

static mr_status write_shards(work *work, journal *journal, mr_error *error)
{
    const plan *plan = work->plan;
    for (int32_t i = 0; i < plan->shard_count; i++) {
        const shard *shard = &plan->shards[i];
        if (journal_has(journal, shard)) {
            work->reused += shard->count;
            work->split_counts[shard->split] += shard->count;
            progress_add(work->progress, (uint64_t)shard->count);
            continue;
        }
        int64_t bad;
        MR_TRY(journal_strike(journal, shard, error));
        MR_TRY(shard_write(work, shard, &bad, error));
        /* A shard that lacks pictures is made again next time: they may have been mended, and are told again if not. */
        if (bad == 0) MR_TRY(journal_add(journal, shard, error));
    }
    if (work->written + work->reused == 0)
        return mr_fail(error, MR_DATA_LOSS, "%s: not one of its pictures can be used", work->options->folder);
    return MR_OK;
}

static mr_status make(const options *options, work *work, mr_error *error)
{
    journal journal = {.descriptor = -1, .lock = -1};
    progress progress;
    int64_t removed = 0;
    MR_TRY(mr_file_make_directories(options->out, error));
    mr_status status = journal_open(options, work->plan, &journal, error);
    progress_begin(&progress, "records", "pictures", (uint64_t)work->listing->picture_count);
    work->progress = &progress;
    if (status == MR_OK) status = write_labels(options, work->listing, error);
    if (status == MR_OK) status = write_shards(work, &journal, error);
    if (status == MR_OK) status = journal_finish(&journal, options, work->plan, &removed, error);
    double seconds = progress_seconds(&progress);
    progress_end(&progress);
    journal_deinit(&journal);
    if (status == MR_OK) print_made(options, work, seconds, removed);
    return status;
}

static mr_status run(const options *options, mr_error *error)
{
    listing listing = {0};
    plan plan = {0};
    work work = {.options = options, .listing = &listing, .plan = &plan};
    mr_status status = mr_pool_new(options->jobs, &work.pool, error);
    if (status == MR_OK) status = scan_folder(options->folder, &listing, error);
    if (status == MR_OK) {
        print_found(options, &listing);
        status = plan_make(options, &listing, &plan, error);
    }
    if (status == MR_OK) status = make(options, &work, error);
    plan_deinit(&plan);
    listing_deinit(&listing);
    mr_pool_free(work.pool);
    return status;
}

int main(int argc, char **argv)
{
    options options;
    int exit_code;
    mr_error error = {0};
    /* A file that may not grow further is then a sentence, not a death. */
    (void)signal(SIGXFSZ, SIG_IGN);
    if (!options_parse(argc, argv, &options, &exit_code)) return exit_code;
    mr_status status = run(&options, &error);
    if (status == MR_CANCELLED)
        fprintf(stderr,
                "tfrecord-make: stopped; mend or remove that picture and start again (finished files are kept), "
                "or use --on-error skip\n");
    else if (status != MR_OK)
        fprintf(stderr, "tfrecord-make: %s\n", error.message);
    free(options.name);
    if (status == MR_OK && fflush(stdout) != 0) status = MR_UNAVAILABLE;
    return status == MR_OK ? 0 : 1;
}
