/* The hook of synchronous replicas, and the chief's thread, which updates the variables. */
#include "graph/train/hook.h"
#include "graph/train/optimizer_wrapper.h"

#include <stdlib.h>

typedef struct sync_hook {
    mr_hook hook;
    bool is_chief;
    mr_sync_replicas_nodes nodes;
    mr_node *init_tokens;
} sync_hook;

/* ---- The chief's thread: one for each session, also after a recovery ---- */

typedef struct chief {
    mr_session *session;
    mr_node *sync;
    mr_cancellation *cancellation;
} chief;

/* Updates until the end. As a QueueRunner, it ends quietly when the queue is closed or the run is cancelled. */
static mr_status run_chief(void *context, mr_coordinator *coordinator, mr_error *error)
{
    const chief *c = context;
    const mr_run_options options = {.size = sizeof options, .cancellation = c->cancellation};
    mr_status status = MR_OK;
    while (status == MR_OK && !mr_coordinator_should_stop(coordinator))
        status = mr_session_run_with(c->session, &options, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &c->sync, 1, error);
    return status;
}

static void stop_chief(void *context)
{
    mr_cancellation_cancel(((const chief *)context)->cancellation);
}

static void free_chief(void *context)
{
    chief *c = context;
    mr_cancellation_free(c->cancellation);
    free(c);
}

static mr_status start_chief(const sync_hook *h, mr_session *session, mr_coordinator *coordinator, mr_error *error)
{
    chief *c = calloc(1, sizeof *c);
    if (c == nullptr) return mr_fail_memory(error, sizeof *c);
    *c = (chief){.session = session, .sync = h->nodes.sync};
    mr_status status = mr_cancellation_new(&c->cancellation, error);
    const mr_member member = {.run = run_chief, .stop = stop_chief, .release = free_chief, .context = c};
    if (status == MR_OK) status = mr_coordinator_start(coordinator, &member, error);
    if (status != MR_OK) free_chief(c);
    return status;
}

/* ---- The hook ---- */

static mr_status check_ready(const sync_hook *h, mr_session *session, mr_error *error)
{
    mr_tensor names = {0};
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(h->nodes.ready_for_local_init), &names, nullptr, 0, error));
    mr_status status = MR_OK;
    if (mr_tensor_count(&names) > 0) {
        const mr_string first = *(const mr_string *)mr_tensor_data(&names);
        status = mr_fail(error, MR_FAILED_PRECONDITION,
                         "mr_sync_replicas_hook: %lld variables are not initialized, %.*s among them",
                         (long long)mr_tensor_count(&names), (int)first.size_bytes, (const char *)first.data);
    }
    mr_tensor_deinit(&names);
    return status;
}

static mr_status after_create_session(void *context, mr_session *session, mr_coordinator *coordinator, mr_error *error)
{
    const sync_hook *h = context;
    mr_node *init = h->is_chief ? h->nodes.chief_init : h->nodes.local_step_init;
    MR_TRY(check_ready(h, session, error));
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, error));
    if (!h->is_chief) return MR_OK;
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &h->init_tokens, 1, error));
    return start_chief(h, session, coordinator, error);
}

mr_hook *mr_sync_replicas_hook(mr_graph *graph, const mr_optimizer *optimizer, bool is_chief, int64_t num_tokens)
{
    sync_hook *h = mr_hook_alloc(sizeof *h, (mr_hook_functions){.after_create_session = after_create_session});
    if (h == nullptr) return nullptr;
    h->is_chief = is_chief;
    if (graph == nullptr) {
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "mr_sync_replicas_hook: the graph is null");
        return &h->hook;
    }
    if (!is_chief && num_tokens != 0 && num_tokens != -1)
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT,
                     "mr_sync_replicas_hook: num_tokens is %lld, but only the chief enqueues tokens",
                     (long long)num_tokens);
    h->nodes = mr_sync_replicas_nodes_of(graph, optimizer);
    if (is_chief && h->nodes.chief_init != nullptr)
        h->init_tokens = mr_sync_replicas_init_tokens(graph, optimizer, num_tokens);
    else if (is_chief && h->nodes.local_step_init != nullptr)
        mr_hook_fail(&h->hook, MR_INVALID_ARGUMENT, "mr_sync_replicas_hook: the optimizer is not the chief's");
    mr_error error = {0};
    if (mr_graph_status(graph, &error) != MR_OK) mr_hook_fail(&h->hook, error.status, "%s", error.message);
    return &h->hook;
}
