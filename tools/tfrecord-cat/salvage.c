/* --salvage: writes every record of damaged files whose checksums match to one new file, in order, with an index.
 * Losses are printed line by line to the standard output and to OUT.report; the new file gets its name only when it is
 * complete. */
#include "common/file.h"
#include "common/output.h"
#include "tfrecord-cat/rewrite.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct salvage {
    const options *options;
    mr_record_writer *writer;
    FILE *report;      /* has a temporary name until the end */
    char *report_path; /* OUT.report */
    char *report_partial;
    bool has_partial; /* the file report_partial exists and is ours */
    progress progress;
    uint64_t bytes; /* less than a MiB of progress not yet reported */
    bool has_failed;
} salvage;

/* Prints a line to both. */
[[gnu::format(printf, 3, 4)]] static void say(salvage *salvage, const char *path, const char *format, ...)
{
    if (salvage->progress.is_terminal) progress_hide(&salvage->progress);
    for (int i = 0; i < 2; i++) {
        FILE *file = i == 0 ? stdout : salvage->report;
        va_list args;
        (void)text_print(file, mr_string_from(text_path(path)), INT32_MAX);
        va_start(args, format);
        vfprintf(file, format, args);
        va_end(args);
    }
}

static mr_status save_batch(void *context, const mr_record_batch *batch, mr_error *error)
{
    salvage *salvage = context;
    for (size_t i = 0; i < batch->count; i++) {
        const mr_string *record = &batch->records[i];
        MR_TRY(mr_record_writer_append(salvage->writer, record->data, record->size_bytes, error));
        salvage->bytes += record->size_bytes;
    }
    progress_add(&salvage->progress, salvage->bytes >> 20);
    salvage->bytes &= (1 << 20) - 1;
    return MR_OK;
}

static void report_damage(void *context, const mr_record_damage *damage, const mr_error *problem)
{
    char size[PROGRESS_TEXT_SIZE];
    say(context, damage->path, ": record %" PRIu64 ", bytes %" PRIu64 " to %" PRIu64 " (%s): %s\n", damage->record,
        damage->offset, damage->offset + damage->size_bytes, progress_size_text(damage->size_bytes, size),
        mr_damage_kind_name(damage->kind));
}

static mr_status end_file(void *context, int32_t file, const mr_record_totals *totals, const mr_error *error)
{
    salvage *salvage = context;
    const char *path = salvage->options->paths[file];
    char size[PROGRESS_TEXT_SIZE];
    if (error->status != MR_OK) {
        salvage->has_failed = true;
        say(salvage, path, ": reading stopped: %s\n", error->message);
    }
    say(salvage, path, ": %" PRIu64 " record%s saved, %" PRIu64 " region%s lost (%s)\n", totals->records,
        totals->records == 1 ? "" : "s", totals->lost, totals->lost == 1 ? "" : "s",
        progress_size_text(totals->lost_bytes, size));
    return MR_OK;
}

static mr_status open_report(salvage *salvage, mr_error *error)
{
    const char *out = salvage->options->argument;
    if (asprintf(&salvage->report_path, "%s.report", out) < 0) salvage->report_path = nullptr;
    if (asprintf(&salvage->report_partial, "%s.report" FILE_PARTIAL, out) < 0) salvage->report_partial = nullptr;
    if (!salvage->report_path || !salvage->report_partial) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    MR_TRY(output_check(salvage->report_partial, true, error));
    salvage->report = fopen(salvage->report_partial, "we");
    salvage->has_partial = salvage->report != nullptr;
    return salvage->report ? MR_OK : file_fail(error, errno, "create", salvage->report_path);
}

/* OUT.report exists exactly if something was lost. */
static mr_status close_report(salvage *salvage, bool has_losses, mr_error *error)
{
    bool is_written = fflush(salvage->report) == 0 && !ferror(salvage->report) && fsync(fileno(salvage->report)) == 0;
    int number = errno;
    if (fclose(salvage->report) != 0) is_written = false;
    salvage->report = nullptr;
    if (!is_written) return file_fail(error, number, "write", salvage->report_path);
    if (!has_losses) return file_remove(salvage->report_path, error);
    MR_TRY(file_rename(salvage->report_partial, salvage->report_path, error));
    salvage->has_partial = false;
    return MR_OK;
}

static void deinit_report(salvage *salvage)
{
    if (salvage->report) fclose(salvage->report);
    if (salvage->has_partial) (void)file_remove(salvage->report_partial, nullptr);
    free(salvage->report_path);
    free(salvage->report_partial);
}

static mr_status save_all(salvage *salvage, mr_record_totals *totals, mr_error *error)
{
    const options *options = salvage->options;
    const mr_record_writer_options writing = {.size = sizeof writing, .index = true, .atomic = true};
    /* Open the writer first: its lock keeps a second run with the same output away from the report, too. */
    MR_TRY(mr_record_writer_open(options->argument, &writing, &salvage->writer, error));
    const mr_record_scan_options scan = {.size = sizeof scan,
                                         .threads = thread_count(options),
                                         .damage = MR_DAMAGE_SKIP,
                                         .context = salvage,
                                         .take = save_batch,
                                         .damaged = report_damage,
                                         .file_done = end_file};
    mr_status status = open_report(salvage, error);
    if (status == MR_OK)
        status = mr_record_scan((const char *const *)options->paths, options->path_count, &scan, totals, error);
    if (status == MR_OK) status = close_report(salvage, totals->lost > 0 || salvage->has_failed, error);
    if (status == MR_OK) return mr_record_writer_close(salvage->writer, error);
    mr_record_writer_discard(salvage->writer);
    return status;
}

/* Checks all files that are written: the records, their index, the report, and the temporary files of each. */
static mr_status allow_outputs(const options *options, mr_error *error)
{
    static const char *const suffixes[] = {"", ".index", ".report"};
    static const char *const temporary[] = {FILE_PARTIAL, ".index" FILE_PARTIAL, ".report" FILE_PARTIAL};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        MR_TRY(output_allow(options, options->argument, suffixes[i], error));
        MR_TRY(output_reject_input(options, options->argument, temporary[i], error));
    }
    return MR_OK;
}

int salvage_run(const options *options)
{
    if (strcmp(options->argument, "-") == 0)
        return usage_error("--salvage -: the output must be a file: its index and report are written next to it");
    salvage salvage = {.options = options};
    mr_record_totals totals = {0};
    mr_error error = {0};
    progress_begin(&salvage.progress, "salvage", "MiB", 0);
    mr_status status = allow_outputs(options, &error);
    if (status == MR_OK) status = save_all(&salvage, &totals, &error);
    progress_end(&salvage.progress);
    deinit_report(&salvage);
    if (status != MR_OK) return print_error(&error);
    if (options->path_count > 1)
        printf("%" PRIu64 " record%s saved, %" PRIu64 " region%s lost in total\n", totals.records,
               totals.records == 1 ? "" : "s", totals.lost, totals.lost == 1 ? "" : "s");
    return totals.lost > 0 || salvage.has_failed ? 1 : 0;
}
