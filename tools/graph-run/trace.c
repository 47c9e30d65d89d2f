#include "graph-run/trace.h"

#include "common/file.h"
#include "common/out.h"
#include "common/text.h"

#include <inttypes.h>
#include <stdlib.h>

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

static int by_start(const void *a, const void *b)
{
    const mr_node_time *x = a, *y = b;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Nodes that run at the same time are on different lines. */
static void put_times(out *o, const mr_node_time *times, int32_t count)
{
    enum { LINES = 64 };
    uint64_t ends[LINES] = {0};
    out_text(o, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");
    for (int32_t i = 0; i < count; i++) {
        int line = 0;
        char number[128];
        while (line + 1 < LINES && ends[line] > times[i].start_ns) line++;
        ends[line] = times[i].start_ns + times[i].duration_ns;
        out_text(o, i ? ",\n{\"ph\": \"X\", \"pid\": 0, \"name\": " : "\n{\"ph\": \"X\", \"pid\": 0, \"name\": ");
        out_json_string(o, mr_string_from(times[i].op), text_is_utf8(mr_string_from(times[i].op)));
        out_text(o, ", \"args\": {\"name\": ");
        out_json_string(o, mr_string_from(times[i].node), text_is_utf8(mr_string_from(times[i].node)));
        snprintf(number, sizeof number, "}, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f}", line,
                 (double)times[i].start_ns / 1e3, (double)times[i].duration_ns / 1e3);
        out_text(o, number);
    }
    out_text(o, "\n]}\n");
}

mr_status trace_write(const mr_session *session, const char *path, mr_error *error)
{
    mr_node_time *times;
    int32_t count;
    out o = {0};
    MR_TRY(trace_times(session, &times, &count, error));
    qsort(times, (size_t)count, sizeof *times, by_start);
    put_times(&o, times, count);
    free(times);
    mr_status status = o.has_failed ? mr_fail(error, MR_RESOURCE_EXHAUSTED, "--trace: no memory")
                                    : file_write_all(path, o.bytes, o.size, error);
    out_deinit(&o);
    return status;
}

static int by_duration(const void *a, const void *b)
{
    const mr_node_time *x = a, *y = b;
    return x->duration_ns < y->duration_ns ? 1 : x->duration_ns > y->duration_ns ? -1 : 0;
}

mr_status trace_print(const mr_session *session, mr_error *error)
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
