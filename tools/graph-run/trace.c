#include "graph-run/trace.h"

#include "common/text.h"

#include <millrace/profiler.h>
#include <stdlib.h>
#include <string.h>

static mr_status trace_times(const mr_session *session, mr_node_time **times, int32_t *count, mr_error *error)
{
    mr_node_time one;
    *count = mr_session_trace_times(session, &one, 0);
    for (int32_t capacity = *count > 65536 ? *count : 65536;; capacity *= 2) {
        *times = calloc((size_t)capacity, sizeof **times);
        if (!*times) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
        *count = mr_session_trace_times(session, *times, capacity);
        if (*count < capacity || capacity > INT32_MAX / 2) return MR_OK;
        free(*times);
    }
}

static int by_duration(const void *a, const void *b)
{
    const mr_node_time *x = a, *y = b;
    return x->duration_ns < y->duration_ns ? 1 : x->duration_ns > y->duration_ns ? -1 : 0;
}

static mr_status print_slowest(const mr_session *session, mr_error *error)
{
    mr_node_time *times;
    int32_t count;
    uint64_t total_ns = 0;
    MR_TRY(trace_times(session, &times, &count, error));
    for (int32_t i = 0; i < count; i++) total_ns += times[i].duration_ns;
    qsort(times, (size_t)count, sizeof times[0], by_duration);
    printf("%d calls, %.3f ms\n", (int)count, (double)total_ns / 1e6);
    for (int32_t i = 0; i < count && i < 20; i++) {
        printf("%9.3f ms  %5.1f %%  %-24s ", (double)times[i].duration_ns / 1e6,
               100.0 * (double)times[i].duration_ns / (double)(total_ns ? total_ns : 1), times[i].op);
        text_print_sentence(stdout, times[i].node);
        printf("\n");
    }
    free(times);
    return MR_OK;
}

/* ---- Views ---- */

static void print_lines(const char *text)
{
    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        char *line = strndup(text, (size_t)(end - text));
        text_print_sentence(stdout, line ? line : "(no memory)");
        printf("\n");
        free(line);
    }
}

/* out: null: print */
static mr_status show_view(const mr_profile *profile, mr_profile_kind kind, const char *out, mr_error *error)
{
    mr_profile_view *view;
    const mr_profile_options options = {.size = sizeof options,
                                        .min_micros = 1,
                                        .order_by = MR_PROFILE_MICROS,
                                        .select = MR_PROFILE_MICROS | MR_PROFILE_BYTES | MR_PROFILE_FLOAT_OPS |
                                                  MR_PROFILE_OCCURRENCE};
    MR_TRY(mr_profile_view_new(profile, kind, &options, &view, error));
    mr_status status = MR_OK;
    if (out)
        status = mr_profile_view_write_pprof(view, out, error);
    else
        print_lines(mr_profile_view_text(view));
    mr_profile_view_free(view);
    return status;
}

static mr_status show_run(const options *o, const mr_graph *graph, const mr_tensor *metadata, mr_error *error)
{
    const char *view = o->profile_view;
    const mr_profile_kind kind = strcmp(view, "op") == 0      ? MR_PROFILE_OP
                                 : strcmp(view, "scope") == 0 ? MR_PROFILE_SCOPE
                                                              : MR_PROFILE_GRAPH;
    mr_profile *profile;
    MR_TRY(mr_profile_new(graph, &profile, error));
    mr_status status = mr_profile_add_run(profile, 0, mr_tensor_strings(metadata)[0], error);
    if (status == MR_OK) status = show_view(profile, kind, o->pprof, error);
    mr_profile_free(profile);
    return status;
}

/* ---- Steps ---- */

mr_run_options trace_begin(const options *o, mr_session *session, mr_tensor *metadata)
{
    const bool needs_metadata = o->profile_view || o->trace;
    mr_session_trace(session, o->profile && !o->profile_view);
    return (mr_run_options){
        .size = sizeof(mr_run_options), .metadata = needs_metadata ? metadata : nullptr, .trace = needs_metadata};
}

mr_status trace_print(const options *o, const mr_graph *graph, const mr_session *session, const mr_tensor *metadata,
                      mr_error *error)
{
    return o->profile_view ? show_run(o, graph, metadata, error) : print_slowest(session, error);
}
