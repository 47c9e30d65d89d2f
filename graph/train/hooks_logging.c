/* The hook that prints values of tensors while a session trains (tf.train.LoggingTensorHook). */
#include "base/options.h"
#include "base/show.h"
#include "base/status.h"
#include "graph/train/hook.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

constexpr int64_t ELEMENTS_MAX = 6;

typedef struct logging_hook {
    mr_hook hook;
    mr_hook_timer timer; /* of runs, not of steps */
    bool has_timer, at_end, is_due;
    int64_t runs;
    mr_output *outputs;
    char **names;
    int32_t count;
    mr_log_function log;
    void *log_context;
    int (*format)(void *context, const mr_tensor *values, int32_t count, char *line, size_t size);
    void *format_context;
} logging_hook;

static void put_value(FILE *file, const mr_tensor *value)
{
    if (value->shape.rank > 0) (void)fputc('[', file);
    mr_tensor_show(value, ELEMENTS_MAX, file);
    if (value->shape.rank > 0) (void)fputc(']', file);
}

/* The line of the program's function. */
static mr_status write_formatted(const logging_hook *h, const mr_tensor *values, mr_error *error)
{
    char none[1];
    const int length = h->format(h->format_context, values, h->count, none, sizeof none);
    char *line = length >= 0 ? calloc((size_t)length + 1, 1) : nullptr;
    if (length < 0) return mr_fail(error, MR_INVALID_ARGUMENT, "logging hook: format returned %d", length);
    if (line == nullptr) return mr_fail_memory(error, (size_t)length);
    (void)h->format(h->format_context, values, h->count, line, (size_t)length + 1);
    line[length] = '\0';
    h->log(h->log_context, line);
    free(line);
    return MR_OK;
}

/* One line; seconds below 0: not known. */
static mr_status write_line(const logging_hook *h, const mr_tensor *values, double seconds, mr_error *error)
{
    if (h->format != nullptr) return write_formatted(h, values, error);
    char *line = nullptr;
    size_t size = 0;
    FILE *file = open_memstream(&line, &size);
    if (file == nullptr) return mr_fail_memory(error, 0);
    for (int32_t i = 0; i < h->count; i++) {
        if (i > 0) (void)fputs(", ", file);
        for (const char *c = h->names[i]; *c != '\0'; c++)
            (void)fputc((unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c, file); /* one line, whatever the name */
        (void)fputs(" = ", file);
        put_value(file, &values[i]);
    }
    char time[64];
    snprintf(time, sizeof time, " (%.3f sec)", seconds);
    if (seconds >= 0) (void)fputs(time, file);
    const bool failed = fclose(file) != 0;
    if (!failed) h->log(h->log_context, line);
    free(line);
    return failed ? mr_fail_memory(error, size) : MR_OK;
}

static mr_status logging_begin(void *context, mr_graph *graph, mr_error *error)
{
    const logging_hook *h = context;
    return mr_hook_check_outputs(graph, "logging hook", (mr_outputs){h->outputs, h->count}, error);
}

static mr_status logging_before(void *context, mr_hook_run *run, mr_error *error)
{
    logging_hook *h = context;
    h->is_due = h->has_timer && mr_hook_timer_is_due(&h->timer, h->runs);
    return h->is_due ? mr_hook_run_fetch(run, (mr_outputs){h->outputs, h->count}, error) : MR_OK;
}

static mr_status logging_after(void *context, mr_hook_run *run, mr_error *error)
{
    logging_hook *h = context;
    if (h->is_due) {
        const double seconds = h->timer.has_triggered ? mr_hook_now() - h->timer.last_time : -1;
        mr_hook_timer_fire(&h->timer, h->runs);
        MR_TRY(write_line(h, mr_hook_run_results(run, nullptr), seconds, error));
    }
    h->runs++;
    return MR_OK;
}

static mr_status logging_end(void *context, mr_session *session, mr_error *error)
{
    const logging_hook *h = context;
    if (!h->at_end) return MR_OK;
    mr_tensor *values = calloc((size_t)h->count, sizeof *values);
    if (values == nullptr) return mr_fail_memory(error, (size_t)h->count * sizeof *values);
    mr_status status =
        mr_session_run(session, MR_NO_FEEDS, (mr_outputs){h->outputs, h->count}, values, nullptr, 0, error);
    const double seconds = h->timer.has_triggered ? mr_hook_now() - h->timer.last_time : -1;
    if (status == MR_OK) status = write_line(h, values, seconds, error);
    for (int32_t i = 0; i < h->count; i++) mr_tensor_deinit(&values[i]);
    free(values);
    return status;
}

static void logging_free(void *context)
{
    logging_hook *h = context;
    for (int32_t i = 0; h->names != nullptr && i < h->count; i++) free(h->names[i]);
    free(h->names);
    free(h->outputs);
}

/* "loss:0" */
static char *output_name(logging_hook *h, mr_output output)
{
    char *name = nullptr;
    if (asprintf(&name, "%s:%d", mr_node_name(output.node), (int)output.index) >= 0) return name;
    mr_hook_fail(&h->hook, MR_RESOURCE_EXHAUSTED, "no memory for a hook");
    return nullptr;
}

static void copy_outputs(logging_hook *h, mr_outputs outputs, mr_names names)
{
    for (int32_t i = 0; i < outputs.count; i++)
        if (outputs.items[i].node == nullptr)
            mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "logging hook: output %d is missing", (int)i);
    h->names = calloc((size_t)outputs.count, sizeof *h->names);
    if (h->names == nullptr) mr_hook_fail(&h->hook, MR_RESOURCE_EXHAUSTED, "no memory for a hook");
    h->outputs = mr_hook_copy_items(&h->hook, outputs.items, outputs.count, sizeof *outputs.items);
    if (h->hook.error.status != MR_OK) return;
    h->count = outputs.count;
    for (int32_t i = 0; i < outputs.count; i++)
        h->names[i] =
            names.items != nullptr ? mr_hook_copy_text(&h->hook, names.items[i]) : output_name(h, outputs.items[i]);
}

mr_hook *mr_logging_tensor_hook_(mr_outputs outputs, const mr_logging_tensor_hook_options *given)
{
    logging_hook *h = mr_hook_alloc(sizeof *h, (mr_hook_functions){.begin = logging_begin,
                                                                   .before_run = logging_before,
                                                                   .after_run = logging_after,
                                                                   .end = logging_end,
                                                                   .free = logging_free});
    if (h == nullptr) return nullptr;
    mr_logging_tensor_hook_options o;
    (void)MR_OPTIONS_READ(mr_logging_tensor_hook_options, &o, given, &h->hook.error);
    h->at_end = o.at_end;
    h->has_timer = !o.at_end || o.every_n_iter != 0 || o.every_n_secs != 0;
    if (h->has_timer)
        mr_hook_timer_init(&h->timer, &h->hook, "logging hook", "every_n_iter", o.every_n_iter, "every_n_secs",
                           o.every_n_secs);
    h->log = o.log;
    h->log_context = o.log_context;
    h->format = o.format;
    h->format_context = o.format_context;
    if (o.format != nullptr && o.names.count != 0)
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "logging hook: names have no effect with format");
    if (o.format == nullptr && o.format_context != nullptr)
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "logging hook: format_context has no effect without format");
    if (o.log == nullptr) mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "logging hook: log is required");
    if (outputs.items == nullptr || outputs.count < 1)
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "logging hook: at least one output is needed");
    else if (o.names.count != 0 && (o.names.count != outputs.count || o.names.items == nullptr))
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "logging hook: %d names for %d outputs", (int)o.names.count,
                     (int)outputs.count);
    for (int32_t i = 0; o.names.items != nullptr && i < o.names.count && h->hook.error.status == MR_OK; i++)
        if (o.names.items[i] == nullptr)
            mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "logging hook: name %d is null", (int)i);
    if (h->hook.error.status == MR_OK) copy_outputs(h, outputs, o.names);
    return &h->hook;
}
