/* Runners: lifetime, lookup by name, extension.
 *
 * The session's mutex also guards the graph: planning reads the graph while it is held, and so does everything here. A
 * run in progress reads only nodes that it was planned with, and these do not change. */
#include "graph/abi/runner.h"

#include "base/status.h"
#include "graph/abi/array.h"
#include "graph/ir/convert.h"
#include "graph/state/session_tensor.h"

#include <stdlib.h>
#include <string.h>

int32_t mr_run_version(void)
{
    return MR_RUN_VERSION;
}

mr_runner *mr_runner_ref(mr_runner *runner)
{
    atomic_fetch_add(&runner->references, 1);
    return runner;
}

void mr_runner_free(mr_runner *runner)
{
    if (runner == nullptr || atomic_fetch_sub(&runner->references, 1) != 1) return;
    mr_session_free(runner->session);
    mr_cancellation_free(runner->closing);
    mr_graph_free(runner->graph);
    free(runner);
}

mr_status mr_runner_create(const void *graph_def, size_t size_bytes, const mr_session_options *options,
                           mr_runner **runner, mr_error *error)
{
    if (runner == nullptr) return mr_session_null("mr_runner_new: runner", error);
    *runner = nullptr;
    if (graph_def == nullptr && size_bytes > 0) return mr_session_null("mr_runner_new: graph_def", error);
    mr_runner *made = calloc(1, sizeof *made);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    atomic_init(&made->references, 1);
    made->graph = mr_graph_create();
    mr_status status = made->graph != nullptr ? MR_OK : mr_fail_memory(error, sizeof(mr_graph));
    if (status == MR_OK) status = mr_graph_import(made->graph, graph_def, size_bytes, nullptr, error);
    if (status == MR_OK) status = mr_cancellation_new(&made->closing, error);
    if (status == MR_OK) status = mr_session_new(made->graph, options, &made->session, error);
    if (status != MR_OK) {
        mr_runner_free(made);
        return status;
    }
    *runner = made;
    return MR_OK;
}

mr_status mr_runner_extend(mr_runner *runner, const void *graph_def, size_t size_bytes, mr_error *error)
{
    if (runner == nullptr) return mr_session_null("mr_runner_extend: runner", error);
    if (graph_def == nullptr && size_bytes > 0) return mr_session_null("mr_runner_extend: graph_def", error);
    pthread_mutex_lock(&runner->session->mutex);
    mr_status status = mr_graph_extend(runner->graph, graph_def, size_bytes, error);
    pthread_mutex_unlock(&runner->session->mutex);
    return status;
}

void mr_runner_close(mr_runner *runner)
{
    if (runner == nullptr) return;
    atomic_store(&runner->is_closed, true);
    mr_cancellation_cancel(runner->closing);
}

void mr_runner_cancel(mr_runner *runner)
{
    if (runner != nullptr) mr_session_cancel(runner->session);
}

mr_status mr_runner_reset(mr_runner *runner, const char *const *containers, int32_t container_count, mr_error *error)
{
    if (runner == nullptr) return mr_session_null("mr_runner_reset: runner", error);
    return mr_session_reset(runner->session, containers, container_count, error);
}

mr_status mr_runner_export(mr_runner *runner, mr_array *result, mr_error *error)
{
    if (result == nullptr) return mr_session_null("mr_runner_export: result", error);
    *result = (mr_array){0};
    if (runner == nullptr) return mr_session_null("mr_runner_export: runner", error);
    mr_tensor *owner = calloc(1, sizeof *owner);
    if (owner == nullptr) return mr_fail_memory(error, sizeof *owner);
    pthread_mutex_lock(&runner->session->mutex);
    mr_status status = mr_graph_export(runner->graph, owner, error);
    pthread_mutex_unlock(&runner->session->mutex);
    if (status != MR_OK) {
        free(owner);
        return status;
    }
    *result = mr_array_of_bytes(owner);
    return MR_OK;
}

mr_status mr_runner_session_tensor(mr_runner *runner, const char *handle, mr_array *result, mr_error *error)
{
    if (result == nullptr) return mr_session_null("mr_runner_session_tensor: result", error);
    *result = (mr_array){0};
    if (runner == nullptr) return mr_session_null("mr_runner_session_tensor: runner", error);
    if (handle == nullptr) return mr_session_null("mr_runner_session_tensor: handle", error);
    mr_tensor *owner = calloc(1, sizeof *owner);
    if (owner == nullptr) return mr_fail_memory(error, sizeof *owner);
    mr_status status = mr_session_tensor(runner->session, mr_string_from(handle), owner, error);
    if (status != MR_OK) {
        free(owner);
        return status;
    }
    *result = mr_array_of(owner->dtype, owner->shape);
    result->owner = owner;
    return MR_OK;
}

/* ---- Names ---- */

/* "name:3" without the colon and what follows; -1 if there is no valid number. */
static int32_t split_name(const char *name, char *text, size_t size_bytes)
{
    size_t length = strlen(name);
    if (length >= size_bytes) return -1;
    memcpy(text, name, length + 1);
    char *colon = strrchr(text, ':');
    if (colon == nullptr) return 0;
    *colon = '\0';
    if (colon[1] < '0' || colon[1] > '9') return -1;
    char *end = nullptr;
    long number = strtol(colon + 1, &end, 10);
    return *end == '\0' && number <= INT32_MAX ? (int32_t)number : -1;
}

mr_status mr_runner_find_output(const mr_runner *runner, const char *role, const char *name, mr_output *output,
                                mr_error *error)
{
    char text[4096];
    if (name == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "a name of a %s is null", role);
    int32_t index = split_name(name, text, sizeof text);
    mr_node *node = index >= 0 ? mr_graph_find(runner->graph, text) : nullptr;
    if (node == nullptr) return mr_fail(error, MR_NOT_FOUND, "%s: the graph has no output %.400s", role, name);
    if (index >= node->output_count && node->def == nullptr)
        return mr_fail(error, MR_UNIMPLEMENTED, "%.400s: unknown operator %.80s, so the node cannot run", node->name,
                       node->op);
    if (index >= node->output_count)
        return mr_fail(error, MR_NOT_FOUND, "%s: the graph has no output %.400s; %s has %d outputs", role, name,
                       node->op, (int)node->output_count);
    *output = (mr_output){node, index};
    return MR_OK;
}

static void describe(mr_output output, mr_array *description)
{
    *description = mr_array_of(mr_output_dtype(output), mr_output_shape(output));
}

mr_status mr_runner_describe(mr_runner *runner, const char *name, mr_array *description, mr_error *error)
{
    mr_output output;
    if (runner == nullptr) return mr_session_null("mr_runner_describe: runner", error);
    if (description == nullptr) return mr_session_null("mr_runner_describe: description", error);
    pthread_mutex_lock(&runner->session->mutex);
    mr_status status = mr_runner_find_output(runner, "output", name, &output, error);
    if (status == MR_OK) describe(output, description);
    pthread_mutex_unlock(&runner->session->mutex);
    return status;
}

mr_status mr_runner_output_count(mr_runner *runner, const char *name, int32_t *count, mr_error *error)
{
    if (runner == nullptr) return mr_session_null("mr_runner_output_count: runner", error);
    if (name == nullptr) return mr_session_null("mr_runner_output_count: name", error);
    if (count == nullptr) return mr_session_null("mr_runner_output_count: count", error);
    pthread_mutex_lock(&runner->session->mutex);
    const mr_node *node = mr_graph_find(runner->graph, name);
    mr_status status = MR_OK;
    if (node != nullptr)
        *count = node->output_count;
    else
        status = mr_fail(error, MR_NOT_FOUND, "the graph has no node %.400s", name);
    pthread_mutex_unlock(&runner->session->mutex);
    return status;
}
