/* The steps of a runner: from arrays to tensors and back.
 *
 * A feed of numbers is borrowed if the run cannot keep it (escape.c); the buffers that wrap borrowed memory are part of
 * the step, and after a run nothing refers to them: a result that shares a feed's memory is copied. Other feeds are
 * copied. */
#include "graph/abi/runner.h"

#include "base/buffer.h"
#include "base/status.h"
#include "graph/abi/array.h"
#include "proto/proto.h"
#include "proto/run.pb-c.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Numeric results up to this size are stored in the step, and feeds up to this size are copied. */
constexpr size_t ROOM_BYTES = 512;

struct mr_runner_step {
    mr_runner *runner; /* referenced */
    mr_step *step;     /* owned by the session */
    int32_t feed_count, fetch_count;
    bool borrows;
    mr_array *feeds, *results;
    mr_tensor *values, *outputs; /* empty between runs */
    mr_buffer *borrowed;         /* one for each feed */
    unsigned char *room;         /* ROOM_BYTES for each result */
};

void mr_runner_release(mr_tensor *owner)
{
    mr_tensor_deinit(owner);
    free(owner);
}

void mr_runner_clear(mr_runner_step *step)
{
    for (int32_t i = 0; step != nullptr && i < step->fetch_count; i++) {
        mr_runner_release(step->results[i].owner);
        step->results[i] = (mr_array){0};
    }
}

void mr_runner_step_free(mr_runner_step *step)
{
    if (step == nullptr) return;
    if (step->results != nullptr) mr_runner_clear(step);
    free(step->feeds);
    free(step->results);
    free(step->values);
    free(step->outputs);
    free(step->borrowed);
    free(step->room);
    mr_runner_free(step->runner);
    free(step);
}

mr_array *mr_runner_feeds(mr_runner_step *step)
{
    return step != nullptr ? step->feeds : nullptr;
}

mr_array *mr_runner_results(mr_runner_step *step)
{
    return step != nullptr ? step->results : nullptr;
}

/* ---- Preparing ---- */

typedef struct names {
    const char *const *items;
    int32_t count;
} names;

static mr_status find_outputs(const mr_runner *runner, const char *role, names names, mr_output *outputs,
                              mr_error *error)
{
    for (int32_t i = 0; i < names.count; i++)
        MR_TRY(mr_runner_find_output(runner, role, names.items[i], &outputs[i], error));
    return MR_OK;
}

static mr_status find_nodes(const mr_runner *runner, names names, mr_node **nodes, mr_error *error)
{
    for (int32_t i = 0; i < names.count; i++) {
        if (names.items[i] == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "a name of a target is null");
        nodes[i] = mr_graph_find(runner->graph, names.items[i]);
        if (nodes[i] == nullptr)
            return mr_fail(error, MR_NOT_FOUND, "target: the graph has no node %.400s", names.items[i]);
    }
    return MR_OK;
}

/* Borrowed until the end of mr_runner_prepare. */
typedef struct found {
    mr_output *feeds, *fetches;
    mr_node **targets;
} found;

static mr_status find_all(mr_runner_step *step, found *f, names feeds, names fetches, names targets, mr_error *error)
{
    mr_runner *runner = step->runner;
    f->feeds = calloc((size_t)feeds.count + 1, sizeof *f->feeds);
    f->fetches = calloc((size_t)fetches.count + 1, sizeof *f->fetches);
    f->targets = calloc((size_t)targets.count + 1, sizeof *f->targets);
    if (f->feeds == nullptr || f->fetches == nullptr || f->targets == nullptr) return mr_fail_memory(error, 64);
    pthread_mutex_lock(&runner->session->mutex);
    mr_status status = find_outputs(runner, "feed", feeds, f->feeds, error);
    if (status == MR_OK) status = find_outputs(runner, "fetch", fetches, f->fetches, error);
    if (status == MR_OK) status = find_nodes(runner, targets, f->targets, error);
    if (status == MR_OK)
        step->borrows = feeds.count > 0 && mr_runner_feeds_end(runner->graph, f->feeds, feeds.count, f->fetches,
                                                               fetches.count, f->targets, targets.count);
    pthread_mutex_unlock(&runner->session->mutex);
    return status;
}

static mr_status make_arrays(mr_runner_step *step, int32_t feed_count, int32_t fetch_count, mr_error *error)
{
    step->feed_count = feed_count;
    step->fetch_count = fetch_count;
    step->feeds = calloc((size_t)feed_count + 1, sizeof *step->feeds);
    step->results = calloc((size_t)fetch_count + 1, sizeof *step->results);
    step->values = calloc((size_t)feed_count + 1, sizeof *step->values);
    step->outputs = calloc((size_t)fetch_count + 1, sizeof *step->outputs);
    step->borrowed = calloc((size_t)feed_count + 1, sizeof *step->borrowed);
    step->room = calloc((size_t)fetch_count + 1, ROOM_BYTES);
    bool complete = step->feeds != nullptr && step->results != nullptr && step->values != nullptr &&
                    step->outputs != nullptr && step->borrowed != nullptr && step->room != nullptr;
    return complete ? MR_OK : mr_fail_memory(error, ((size_t)fetch_count + 1) * ROOM_BYTES);
}

static mr_status prepare(mr_runner_step *step, names feeds, names fetches, names targets, mr_error *error)
{
    found f = {0};
    mr_status status = make_arrays(step, feeds.count, fetches.count, error);
    if (status == MR_OK) status = find_all(step, &f, feeds, fetches, targets, error);
    if (status == MR_OK)
        status = mr_session_prepare(step->runner->session, f.feeds, feeds.count, (mr_outputs){f.fetches, fetches.count},
                                    f.targets, targets.count, &step->step, error);
    free(f.feeds);
    free(f.fetches);
    free(f.targets);
    return status;
}

static mr_status check_open(const mr_runner *runner, mr_error *error)
{
    if (!atomic_load(&runner->is_closed)) return MR_OK;
    return mr_fail(error, MR_CANCELLED, "Session has been closed.");
}

mr_status mr_runner_prepare(mr_runner *runner, const char *const *feeds, int32_t feed_count, const char *const *fetches,
                            int32_t fetch_count, const char *const *targets, int32_t target_count,
                            mr_runner_step **step, mr_error *error)
{
    if (step == nullptr) return mr_session_null("mr_runner_prepare: step", error);
    *step = nullptr;
    if (runner == nullptr) return mr_session_null("mr_runner_prepare: runner", error);
    MR_TRY(mr_session_check_list("mr_runner_prepare: feeds", feeds, feed_count, error));
    MR_TRY(mr_session_check_list("mr_runner_prepare: fetches", fetches, fetch_count, error));
    MR_TRY(mr_session_check_list("mr_runner_prepare: targets", targets, target_count, error));
    MR_TRY(check_open(runner, error));
    mr_runner_step *made = calloc(1, sizeof *made);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    made->runner = mr_runner_ref(runner);
    mr_status status =
        prepare(made, (names){feeds, feed_count}, (names){fetches, fetch_count}, (names){targets, target_count}, error);
    if (status != MR_OK) {
        mr_runner_step_free(made);
        return status;
    }
    *step = made;
    return MR_OK;
}

/* ---- Feeds ---- */

static void end_borrow(mr_buffer *buffer)
{
    (void)buffer;
}

static mr_status read_feed(mr_runner_step *step, int32_t index, mr_error *error)
{
    mr_array *array = &step->feeds[index];
    mr_tensor *value = &step->values[index];
    mr_shape shape;
    if (array->owner != nullptr) {
        *value = mr_tensor_ref(array->owner);
        array->owner = nullptr;
        return MR_OK;
    }
    MR_TRY(mr_array_check(array, &shape, error));
    size_t element_bytes = mr_dtype_size((mr_dtype)array->dtype), size_bytes = array->size_bytes;
    bool is_copied = array->dtype == MR_STRING || !step->borrows || size_bytes <= ROOM_BYTES;
    if (is_copied || (uintptr_t)array->data % element_bytes != 0) return mr_array_copy(array, shape, value, error);
    mr_buffer *buffer = &step->borrowed[index];
    mr_buffer_init(buffer, array->data, size_bytes, end_borrow, nullptr);
    buffer->is_external = true;
    *value = (mr_tensor){.dtype = (mr_dtype)array->dtype, .shape = shape, .buffer = buffer, .data = array->data};
    return MR_OK;
}

static mr_status read_feeds(mr_runner_step *step, mr_error *error)
{
    for (int32_t i = 0; i < step->feed_count; i++) {
        mr_status status = read_feed(step, i, error);
        if (status != MR_OK) return mr_fail_prefix(error, status, "feed %d", (int)i);
    }
    return MR_OK;
}

static void release_feeds(mr_runner_step *step)
{
    for (int32_t i = 0; i < step->feed_count; i++) {
        assert(step->values[i].buffer != &step->borrowed[i] || atomic_load(&step->borrowed[i].references) == 1);
        mr_tensor_deinit(&step->values[i]);
        step->feeds[i].owner = nullptr;
    }
}

/* ---- Results ---- */

static mr_status copy_tensor(mr_tensor *tensor, mr_error *error)
{
    mr_tensor copy = {0};
    if (tensor->dtype == MR_STRING)
        MR_TRY(mr_tensor_init_strings(&copy, tensor->shape, tensor->data, error));
    else
        MR_TRY(mr_tensor_init_copy(&copy, tensor->dtype, tensor->shape, tensor->data, error));
    mr_tensor_deinit(tensor);
    *tensor = copy;
    return MR_OK;
}

static mr_status give_result(mr_runner_step *step, int32_t index, mr_error *error)
{
    mr_array *result = &step->results[index];
    mr_tensor *output = &step->outputs[index];
    *result = mr_array_of(output->dtype, output->shape);
    size_t size_bytes = mr_tensor_size_bytes(output);
    bool is_numeric = output->dtype != MR_STRING && mr_dtype_size(output->dtype) > 0;
    if (is_numeric && size_bytes <= ROOM_BYTES) {
        result->data = step->room + (size_t)index * ROOM_BYTES;
        result->size_bytes = size_bytes;
        if (size_bytes > 0) memcpy(result->data, output->data, size_bytes);
        mr_tensor_deinit(output);
        return MR_OK;
    }
    if (mr_dtype_size(output->dtype) > 0 && !mr_buffer_is_unique(output->buffer)) MR_TRY(copy_tensor(output, error));
    result->owner = malloc(sizeof *result->owner);
    if (result->owner == nullptr) return mr_fail_memory(error, sizeof *result->owner);
    *result->owner = *output;
    *output = (mr_tensor){0};
    if (mr_dtype_size(result->owner->dtype) > 0) result->data = result->owner->data;
    result->size_bytes = size_bytes;
    return MR_OK;
}

static mr_status run(mr_runner_step *step, mr_run_options options, mr_error *error)
{
    options.size = sizeof options;
    options.cancellation = step->runner->closing;
    mr_runner_clear(step);
    mr_status status = check_open(step->runner, error);
    if (status == MR_OK) status = read_feeds(step, error);
    if (status == MR_OK) status = mr_step_run_with(step->step, &options, step->values, step->outputs, error);
    for (int32_t i = 0; i < step->fetch_count && status == MR_OK; i++) status = give_result(step, i, error);
    if (status != MR_OK) {
        for (int32_t i = 0; i < step->fetch_count; i++) mr_tensor_deinit(&step->outputs[i]);
        mr_runner_clear(step);
    }
    release_feeds(step);
    return status;
}

mr_status mr_runner_run(mr_runner_step *step, mr_error *error)
{
    if (step == nullptr) return mr_session_null("mr_runner_run: step", error);
    return run(step, (mr_run_options){0}, error);
}

/* ---- RunOptions ---- */

static mr_status read_options(const void *bytes, size_t size_bytes, mr_run_options *options, mr_error *error)
{
    mr_arena arena = {0};
    Mr__RunOptions *read = nullptr;
    mr_status status = mr_proto_unpack_as(run_options, ((mr_string){bytes, size_bytes}), &arena, &read, nullptr);
    if (status != MR_OK) {
        status = mr_fail(error, MR_INVALID_ARGUMENT, "Unparseable RunOptions proto");
    } else if (read->inter_op_thread_pool < -1 || read->inter_op_thread_pool > 0) {
        status = mr_fail(error, MR_INVALID_ARGUMENT, "Invalid inter_op_thread_pool: %d", read->inter_op_thread_pool);
    } else {
        options->timeout_ms = read->timeout_in_ms > 0 ? read->timeout_in_ms : 0;
        options->trace = read->trace_level > 0;
        options->output_partition_graphs = read->output_partition_graphs;
    }
    mr_arena_deinit(&arena);
    return status;
}

mr_status mr_runner_run_with(mr_runner_step *step, const void *run_options, size_t size_bytes, mr_array *metadata,
                             mr_error *error)
{
    if (metadata != nullptr) *metadata = (mr_array){0};
    if (step == nullptr) return mr_session_null("mr_runner_run_with: step", error);
    if (run_options == nullptr && size_bytes > 0) return mr_session_null("mr_runner_run_with: run_options", error);
    mr_run_options options = {0};
    MR_TRY(read_options(run_options, size_bytes, &options, error));
    if (metadata == nullptr) return run(step, options, error);
    options.metadata = calloc(1, sizeof *options.metadata);
    if (options.metadata == nullptr) return mr_fail_memory(error, sizeof *options.metadata);
    mr_status status = run(step, options, error);
    if (status == MR_OK)
        *metadata = mr_array_of_bytes(options.metadata);
    else
        mr_runner_release(options.metadata);
    return status;
}
