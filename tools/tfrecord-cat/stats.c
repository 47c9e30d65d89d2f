/* --stats: reads files and reports statistics. If all records are selected, all threads read concurrently, in parts
 * whose boundaries depend only on the files; selected records are read by one thread. */
#include "tfrecord-cat/stats_report.h"

#include "common/file.h"
#include "common/output.h"
#include "common/progress.h"
#include "tfrecord-cat/rewrite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes of records gathered before a merge: the cost of a merge does not depend on the number of records. */
static constexpr size_t PART_BYTES = (size_t)4 << 20;
static constexpr int SVG_BINS = 24;

typedef struct run {
    const options *options;
    stats_selection selection;
    stats *stats;
    stats_about about;
    progress progress;
    uint64_t done_bytes;
    mr_error error; /* the error that ends the run */
    stats *part;    /* part of a walk */
    size_t part_bytes;
    const char *part_path;
} run;

/* Counts whole MiB, which a terminal has room for. */
static void add_progress(run *run, uint64_t size_bytes)
{
    uint64_t before = run->done_bytes >> 20;
    run->done_bytes += size_bytes;
    progress_add(&run->progress, (run->done_bytes >> 20) - before);
}

static void report_error(run *run, const mr_error *error)
{
    progress_hide(&run->progress);
    (void)print_error(error);
}

/* ---- All records ---- */

static mr_status work(void *context, mr_record_batch *batch, mr_error *error)
{
    const run *run = context;
    stats *part = stats_new();
    mr_status status = part ? MR_OK : mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for statistics");
    for (size_t i = 0; i < batch->count && status == MR_OK; i++) {
        record_position position = {.path = batch->path,
                                    .number = batch->first + i,
                                    .offset = mr_record_batch_offset(batch, i),
                                    .record = batch->records[i]};
        status = stats_add(part, &run->selection, &position, error);
    }
    if (status == MR_OK) status = stats_flush(part, error);
    if (status == MR_OK)
        batch->result = part;
    else
        stats_free(part);
    return status;
}

static mr_status take(void *context, const mr_record_batch *batch, mr_error *error)
{
    run *run = context;
    stats *part = batch->result;
    mr_status status = stats_merge(run->stats, part, error);
    add_progress(run, part->size_bytes);
    stats_free(part);
    return status;
}

static void discard(void *context, void *result)
{
    (void)context;
    stats_free(result);
}

static void damaged(void *context, const mr_record_damage *damage, const mr_error *error)
{
    (void)damage;
    report_error(context, error);
}

static mr_status file_done(void *context, int32_t file, const mr_record_totals *totals, const mr_error *error)
{
    run *run = context;
    (void)file, (void)totals;
    if (error->status == MR_OK) return MR_OK;
    run->about.bad_files++;
    report_error(run, error);
    return MR_OK;
}

static mr_status scan(run *run)
{
    const options *options = run->options;
    mr_record_totals totals = {0};
    mr_record_scan_options scan = {.size = sizeof scan,
                                   .threads = thread_count(options),
                                   .damage = MR_DAMAGE_SKIP,
                                   .block_bytes = PART_BYTES,
                                   .context = run,
                                   .work = work,
                                   .take = take,
                                   .discard = discard,
                                   .damaged = damaged,
                                   .file_done = file_done};
    mr_status status =
        mr_record_scan((const char *const *)options->paths, options->path_count, &scan, &totals, &run->error);
    run->about.lost = totals.lost;
    return status;
}

/* ---- Selected records ---- */

static mr_status end_part(run *run)
{
    if (!run->part) return MR_OK;
    mr_status status = stats_flush(run->part, &run->error);
    if (status == MR_OK) status = stats_merge(run->stats, run->part, &run->error);
    stats_free(run->part);
    run->part = nullptr;
    run->part_bytes = 0;
    return status;
}

static bool take_record_at(void *context, const record_position *position)
{
    run *run = context;
    if ((run->part_bytes >= PART_BYTES || run->part_path != position->path) && end_part(run) != MR_OK) return false;
    run->part_path = position->path;
    if (!run->part && !(run->part = stats_new()))
        return (void)mr_fail(&run->error, MR_RESOURCE_EXHAUSTED, "no memory for statistics"), false;
    run->part_bytes += position->record.size_bytes;
    add_progress(run, position->record.size_bytes);
    return stats_add(run->part, &run->selection, position, &run->error) == MR_OK;
}

static mr_status walk(run *run)
{
    /* Damage was reported during the walk. */
    run->about.bad_files = walk_records(run->options, take_record_at, run) != 0;
    mr_status status = end_part(run);
    return run->error.status != MR_OK ? run->error.status : status;
}

static bool is_selection(const options *options)
{
    return options->where || options->sample != UINT64_MAX || options->head != UINT64_MAX ||
           options->range_begin != 0 || options->range_end != UINT64_MAX;
}

/* ---- The report ---- */

/* An earlier SVG of ours is replaced without --force. */
static mr_status allow_svg(const options *options, mr_error *error)
{
    MR_TRY(output_reject_input(options, options->svg, "", error));
    return output_check(options->svg, options->is_forced || chart_svg_is_ours(options->svg), error);
}

static mr_status write_svg(const run *run, mr_error *error)
{
    char title[160], note[160], number[CHART_NUMBER_SIZE], size[PROGRESS_TEXT_SIZE];
    out text = {0};
    charts charts = {0};
    const options *options = run->options;
    mr_status status = MR_OK;
    const char *path = options->path_count > 0 ? text_path(options->paths[0]) : "", *name = strrchr(path, '/');
    snprintf(title, sizeof(title), options->path_count > 1 ? "%s and %d more" : "%s", name ? name + 1 : path,
             options->path_count - 1);
    snprintf(note, sizeof(note), "%s records, %s in %d file%s", chart_number((double)run->stats->records, number),
             progress_size_text(run->stats->size_bytes, size), options->path_count,
             options->path_count == 1 ? "" : "s");
    FILE *file = out_stream(&text);
    if (!file || !stats_charts(run->stats, SVG_BINS, true, &charts) ||
        chart_svg_write(file, title, note, charts.charts, charts.count) != 0)
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for charts");
    if (file && (fclose(file) != 0 || text.has_failed) && status == MR_OK)
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for charts");
    if (status == MR_OK) status = file_write_all(options->svg, text.bytes, text.size, error);
    free(charts.charts);
    out_deinit(&text);
    return status;
}

static int report(run *run)
{
    stats *stats = run->stats;
    if (stats->strange > 0) {
        mr_error error = {0};
        (void)mr_fail(&error, MR_DATA_LOSS, "%s%s", stats->fault, stats->strange > 1 ? " (and more)" : "");
        (void)print_error(&error);
    }
    bool has_memory = run->options->is_json ? stats_json(stats, &run->about, run->options->is_pretty)
                                            : stats_show(stats, &run->about);
    if (!has_memory) return print_no_memory();
    if (run->options->svg && write_svg(run, &run->error) != MR_OK) return print_error(&run->error);
    return stats->strange > 0 || run->about.bad_files > 0 || run->about.lost > 0;
}

static uint64_t sum_of_sizes(const options *options)
{
    uint64_t sum = 0;
    for (int32_t i = 0; i < options->path_count; i++) {
        file_stamp stamp = {0};
        if (file_stamp_of(options->paths[i], &stamp, nullptr) == MR_OK) sum += stamp.size_bytes;
    }
    return sum;
}

int stats_run(const options *options)
{
    mr_error refusal = {0};
    if (options->svg && allow_svg(options, &refusal) != MR_OK) return print_error(&refusal);
    run run = {.options = options,
               .selection = {options->features, options->is_raw, &options->tfds},
               .stats = stats_new(),
               .about = {.files = options->path_count}};
    if (options->tfds.count == 1) run.about.tfds = options->tfds.items[0];
    if (!run.stats) return print_error(&(mr_error){MR_RESOURCE_EXHAUSTED, "no memory for statistics"});
    bool is_walk = is_selection(options);
    progress_begin(&run.progress, "stats", "MiB", is_walk ? 0 : sum_of_sizes(options) >> 20);
    mr_status status = is_walk ? walk(&run) : scan(&run);
    if (status == MR_OK) status = stats_finish(run.stats, &run.error);
    progress_end(&run.progress);
    int exit_code = status == MR_OK ? report(&run) : print_error(&run.error);
    stats_free(run.stats);
    return exit_code;
}
