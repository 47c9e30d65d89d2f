/* --merge and --split: write the selected records in order, with the selected features, to one file or to shards of
 * nearly the same size. */
#include "tfrecord-cat/rewrite.h"

#include <inttypes.h>
#include <string.h>

typedef struct merging {
    outputs outputs;
    pass pass;
    mr_error error;
} merging;

static bool merge_record(void *context, const record_position *position)
{
    merging *merging = context;
    pass_add(&merging->pass, 1);
    return outputs_append(&merging->outputs, position->record, &merging->error) == MR_OK;
}

/* Writes the selected records.
 * given   the options before their inputs were copied
 * totals  their totals; null: not known */
static int write_records(const options *given, const options *options, const totals *totals)
{
    merging merging = {0};
    int exit_code = outputs_begin(&merging.outputs, given, totals);
    if (exit_code == 0) {
        pass_begin(&merging.pass, options->command->name, totals ? totals->records : 0);
        exit_code = rewrite_walk(options, merge_record, &merging);
        pass_end(&merging.pass);
        mr_error *error = &merging.error;
        if (error->status == MR_OK && totals && merging.outputs.records != totals->records)
            (void)mr_fail(error, MR_ABORTED, "the files changed while they were read");
        if (error->status == MR_OK && exit_code == 0) (void)outputs_finish(&merging.outputs, error);
        if (error->status != MR_OK)
            exit_code = print_error(error);
        else if (exit_code != 0)
            exit_code = outputs_reject_damage(given, exit_code);
        else
            outputs_report(&merging.outputs);
    }
    outputs_deinit(&merging.outputs);
    return exit_code;
}

/* Counts first if the shards require it. */
static int merge(const options *given)
{
    if (!outputs_need_totals(given)) return write_records(given, given, nullptr);
    if (!given->out) return usage_error("--%s: missing --out FILE", given->command->name);
    struct options own = *given;
    totals totals;
    int exit_code = totals_read(&own, given->out, &totals);
    exit_code = exit_code == 0 ? write_records(given, &own, &totals) : outputs_reject_damage(given, exit_code);
    totals_deinit(&totals);
    return exit_code;
}

int merge_run(const options *options)
{
    return merge(options);
}

int split_run(const options *options)
{
    struct options given = *options;
    if (!parse_number(options->argument, &given.shards))
        return usage_error("--split: \"%s\" is not a number", options->argument);
    return merge(&given);
}
