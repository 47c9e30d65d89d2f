/* Writers of event files as resources of a session: tf.contrib.summary. The kernels of summaries (summary.c) make the
 * messages. CreateSummaryFileWriter opens a file; CloseSummaryWriter, or the end of the session, closes it. */
#include "graph/state/state.h"

#include "base/rights.h"
#include "kernels/common.h"
#include "records/event/event.h"
#include <string.h>
#include <time.h>

typedef struct summary_writer {
    mr_resource resource;
    pthread_mutex_t mutex;   /* guards what follows */
    mr_event_writer *writer; /* null: not created, or closed */
    int64_t max_queue, flush_ns;
    int64_t queued; /* events since the last flush */
    uint64_t flushed_ns;
} summary_writer;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static mr_status close_file(summary_writer *w, mr_error *error)
{
    mr_event_writer *writer = w->writer;
    w->writer = nullptr;
    return writer ? mr_event_writer_close(writer, error) : MR_OK;
}

static void writer_deinit(mr_resource *resource)
{
    summary_writer *w = (summary_writer *)resource;
    (void)close_file(w, nullptr);
    pthread_mutex_destroy(&w->mutex);
}

static void writer_reset(mr_resource *resource)
{
    summary_writer *w = (summary_writer *)resource;
    pthread_mutex_lock(&w->mutex);
    (void)close_file(w, nullptr);
    pthread_mutex_unlock(&w->mutex);
}

static const mr_resource_class writer_class = {
    .name = "summary writer", .size_bytes = sizeof(summary_writer), .deinit = writer_deinit, .reset = writer_reset};

static mr_status writer_at(const mr_kernel_call *call, summary_writer **writer, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_handle_get(call, 0, &writer_class, &resource, error));
    *writer = (summary_writer *)resource;
    return MR_OK;
}

/* ---- Files ---- */

static mr_status scalar_at(const mr_kernel_call *call, int input, const char *what, mr_error *error)
{
    if (mr_tensor_count(&call->inputs[input]) == 1) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be a scalar", what);
}

static mr_status text_at(const mr_kernel_call *call, mr_arena *arena, int input, const char *what, const char **text,
                         mr_error *error)
{
    MR_TRY(scalar_at(call, input, what, error));
    mr_string value = mr_tensor_strings(&call->inputs[input])[0];
    if (value.size_bytes > 0 && memchr(value.data, 0, value.size_bytes))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s has a zero byte", what);
    *text = mr_arena_strndup(arena, value.data ? value.data : "", value.size_bytes);
    return *text ? MR_OK : mr_fail_memory(error, value.size_bytes);
}

/* A writer that has a file keeps it. */
static mr_status open_file(mr_kernel_call *call, summary_writer *w, const char *directory, const char *suffix,
                           mr_error *error)
{
    pthread_mutex_lock(&w->mutex);
    mr_status status = w->writer ? MR_OK : mr_event_writer_open_suffix(directory, suffix, &w->writer, error);
    w->max_queue = mr_tensor_int32s(&call->inputs[2])[0];
    w->flush_ns = (int64_t)mr_tensor_int32s(&call->inputs[3])[0] * 1000000;
    w->flushed_ns = now_ns();
    pthread_mutex_unlock(&w->mutex);
    return status;
}

static mr_status create(mr_kernel_call *call, mr_error *error)
{
    summary_writer *w;
    mr_arena arena = {0};
    const char *directory = nullptr, *suffix = nullptr;
    MR_TRY(writer_at(call, &w, error));
    MR_TRY(scalar_at(call, 2, "max_queue", error));
    MR_TRY(scalar_at(call, 3, "flush_millis", error));
    mr_status status = text_at(call, &arena, 1, "logdir", &directory, error);
    if (status == MR_OK) status = text_at(call, &arena, 4, "filename_suffix", &suffix, error);
    if (status == MR_OK && strchr(suffix, '/'))
        status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "filename_suffix must not contain a slash");
    if (status == MR_OK && strlen(suffix) > 100)
        status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "filename_suffix has more than 100 bytes");
    if (status == MR_OK) status = mr_kernel_check_write(call, directory, error);
    if (status == MR_OK) status = open_file(call, w, directory, suffix, error);
    mr_arena_deinit(&arena);
    return status;
}

/* The caller holds the mutex. */
static mr_status check_created(const mr_kernel_call *call, const summary_writer *w, mr_error *error)
{
    if (w->writer) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_NOT_FOUND,
                          "the summary writer has not been created by CreateSummaryFileWriter, or it is closed");
}

static mr_status flush(mr_kernel_call *call, mr_error *error)
{
    summary_writer *w;
    MR_TRY(writer_at(call, &w, error));
    pthread_mutex_lock(&w->mutex);
    mr_status status = check_created(call, w, error);
    if (status == MR_OK) status = mr_event_writer_flush(w->writer, error);
    w->queued = 0;
    w->flushed_ns = now_ns();
    pthread_mutex_unlock(&w->mutex);
    return status;
}

static mr_status close_writer(mr_kernel_call *call, mr_error *error)
{
    summary_writer *w;
    MR_TRY(writer_at(call, &w, error));
    pthread_mutex_lock(&w->mutex);
    mr_status status = close_file(w, error);
    pthread_mutex_unlock(&w->mutex);
    return status;
}

/* ---- Events ---- */

typedef mr_status (*add_function)(mr_event_writer *writer, int64_t step, mr_string bytes, mr_error *error);

static mr_status add_event(mr_kernel_call *call, add_function add, int64_t step, mr_string bytes, mr_error *error)
{
    summary_writer *w;
    MR_TRY(writer_at(call, &w, error));
    MR_TRY(mr_kernel_check_write(call, nullptr, error));
    pthread_mutex_lock(&w->mutex);
    mr_status status = check_created(call, w, error);
    if (status == MR_OK) status = add(w->writer, step, bytes, error);
    bool is_due = ++w->queued > w->max_queue || now_ns() - w->flushed_ns > (uint64_t)MR_MAX(w->flush_ns, 0);
    if (status == MR_OK && is_due) {
        status = mr_event_writer_flush(w->writer, error);
        w->queued = 0;
        w->flushed_ns = now_ns();
    }
    pthread_mutex_unlock(&w->mutex);
    return status;
}

static mr_status step_at(const mr_kernel_call *call, int64_t *step, mr_error *error)
{
    MR_TRY(scalar_at(call, 1, "step", error));
    *step = mr_tensor_int64s(&call->inputs[1])[0];
    return MR_OK;
}

/* Writes what the kernel of a summary makes of the inputs. */
static mr_status write_made(mr_kernel_call *call, const char *op, mr_tensor *inputs, int32_t count, mr_error *error)
{
    const mr_kernel *kernel = mr_kernel_find(op, MR_DEVICE_CPU, call->node->attrs);
    mr_dtype dtypes[4] = {0}, string = MR_STRING;
    mr_tensor summary = {0};
    int64_t step;
    MR_TRY(step_at(call, &step, error));
    if (!kernel) return mr_kernel_unsupported(call->node, error);
    for (int32_t i = 0; i < count; i++) dtypes[i] = inputs[i].dtype;
    mr_kernel_node node = *call->node;
    node.op = op;
    node.input_count = count;
    node.input_dtypes = dtypes;
    node.output_count = 1;
    node.output_dtypes = &string;
    mr_kernel_call part = {.node = &node, .device = call->device, .inputs = inputs, .outputs = &summary};
    mr_status status = kernel->run(&part, error);
    if (status == MR_OK)
        status = add_event(call, mr_event_writer_add_unchanged, step, mr_tensor_strings(&summary)[0], error);
    mr_tensor_deinit(&summary);
    return status;
}

static mr_status write_scalar(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(scalar_at(call, 2, "tag", error));
    MR_TRY(scalar_at(call, 3, "value", error));
    return write_made(call, "ScalarSummary", call->inputs + 2, 2, error);
}

static mr_status write_histogram(mr_kernel_call *call, mr_error *error)
{
    return write_made(call, "HistogramSummary", call->inputs + 2, 2, error);
}

static mr_status write_image(mr_kernel_call *call, mr_error *error)
{
    return write_made(call, "ImageSummary", call->inputs + 2, 3, error);
}

static mr_status write_audio(mr_kernel_call *call, mr_error *error)
{
    return write_made(call, "AudioSummaryV2", call->inputs + 2, 3, error);
}

static mr_status write_tensor(mr_kernel_call *call, mr_error *error)
{
    mr_tensor inputs[] = {call->inputs[3], call->inputs[2], call->inputs[4]};
    return write_made(call, "TensorSummaryV2", inputs, 3, error);
}

static mr_status write_bytes(mr_kernel_call *call, int input, add_function add, int64_t step, mr_error *error)
{
    for (int64_t i = 0, count = mr_tensor_count(&call->inputs[input]); i < count; i++)
        MR_TRY(add_event(call, add, step, mr_tensor_strings(&call->inputs[input])[i], error));
    return MR_OK;
}

static mr_status write_raw(mr_kernel_call *call, mr_error *error)
{
    int64_t step;
    MR_TRY(step_at(call, &step, error));
    MR_TRY(scalar_at(call, 2, "tensor", error));
    return write_bytes(call, 2, mr_event_writer_add_unchanged, step, error);
}

static mr_status write_graph(mr_kernel_call *call, mr_error *error)
{
    int64_t step;
    MR_TRY(step_at(call, &step, error));
    MR_TRY(scalar_at(call, 2, "tensor", error));
    return write_bytes(call, 2, mr_event_writer_add_graph_def, step, error);
}

static mr_status import_event(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(scalar_at(call, 1, "event", error));
    return write_bytes(call, 1, mr_event_writer_import_event, 0, error);
}

static const mr_kernel kernels[] = {
    {.op = "CreateSummaryFileWriter", .run = create},
    {.op = "FlushSummaryWriter", .run = flush},
    {.op = "CloseSummaryWriter", .run = close_writer},
    {.op = "WriteScalarSummary", .run = write_scalar},
    {.op = "WriteHistogramSummary", .run = write_histogram},
    {.op = "WriteImageSummary", .run = write_image},
    {.op = "WriteAudioSummary", .run = write_audio},
    {.op = "WriteSummary", .run = write_tensor},
    {.op = "WriteRawProtoSummary", .run = write_raw},
    {.op = "WriteGraphSummary", .run = write_graph},
    {.op = "ImportEvent", .run = import_event},
};
const mr_kernel_table mr_state_kernels_summary_writer = {kernels, sizeof kernels / sizeof kernels[0]};

static mr_status make_writer(mr_resource_table *resources, const mr_node *node, mr_device *, mr_resource **resource,
                             mr_error *error)
{
    bool made = false;
    MR_TRY(mr_resource_of_node(resources, &writer_class, node, resource, &made, error));
    if (made) pthread_mutex_init(&((summary_writer *)*resource)->mutex, nullptr);
    return MR_OK;
}

static const mr_state_row rows[] = {
    {.op = "SummaryWriter", .make = make_writer},
};
const mr_state_table mr_state_summary_writer = {rows, sizeof rows / sizeof rows[0]};
