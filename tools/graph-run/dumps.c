#include "graph-run/dumps.h"

#include "common/query/patterns.h"
#include "common/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_selected(void *context, const mr_watched *watched)
{
    const options *o = context;
    return patterns_select(o->dump_nodes, mr_string_from(watched->node));
}

mr_status dumps_open(dumps *d, const options *o, mr_error *error)
{
    if (!o->dump) return MR_OK;
    mr_status status = mr_dumper_new(o->dump, MR_OPTIONS(mr_dump_options, .selects = is_selected, .context = (void *)o),
                                     &d->dumper, error);
    d->has_patterns = o->dump_nodes != nullptr;
    return status == MR_OK ? MR_OK : mr_fail_prefix(error, status, "--dump");
}

static void report_nonfinite(dumps *d, int64_t number)
{
    const char *output = mr_dumper_nonfinite(d->dumper);
    if (!output || d->is_reported) return;
    d->is_reported = true;
    fprintf(stderr, "graph-run: step %" PRId64 ": the first value with a NaN or an infinity is ", number + 1);
    text_print_sentence(stderr, output);
    fputc('\n', stderr);
}

mr_status dumps_run(dumps *d, mr_graph *graph, mr_step *step, mr_feeds feeds, mr_outputs fetches,
                    mr_run_options options, mr_tensor *results, int64_t number, mr_error *error)
{
    const mr_watch *watch = nullptr;
    mr_tensor *values = calloc((size_t)feeds.count + 1, sizeof *values);
    if (!values) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    for (int32_t i = 0; i < feeds.count; i++) values[i] = feeds.items[i].value;
    mr_status status = d->dumper ? mr_dumper_begin(d->dumper, graph, feeds, fetches, &watch, error) : MR_OK;
    options.watch = watch;
    if (status == MR_OK) status = mr_step_run_with(step, &options, values, results, error);
    mr_dumper_end(d->dumper);
    free(values);
    if (d->dumper) report_nonfinite(d, number);
    return status;
}

void dumps_close(dumps *d)
{
    const char *path = mr_dumper_path(d->dumper);
    int64_t count = mr_dumper_count(d->dumper);
    if (path) {
        if (count == 0 && d->has_patterns) fputs("graph-run: --dump-nodes selects no node that has run\n", stderr);
        fprintf(stderr, "graph-run: %" PRId64 " value%s dumped; the last step's directory is ", count,
                count == 1 ? " is" : "s are");
        text_print_sentence(stderr, path);
        fputc('\n', stderr);
    }
    mr_dumper_free(d->dumper);
    *d = (dumps){0};
}
