/* Queue runners of a graph: their collection, and the threads that run them.
 *
 * A thread of a coordinator runs one enqueue operation. The threads of a queue runner share its state, which the last
 * one frees. The list of all running queue runners keeps a second start from starting them again. */
#include <millrace/ops.h>
#include <millrace/queue_runners.h>

#include "base/options.h"
#include "base/status.h"
#include "graph/ir/graph.h"
#include "graph/run/session.h"
#include "proto/meta_graph.pb-c.h"
#include "proto/proto.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- The collection ---- */

/* The queue runners of a collection, unpacked into the arena. The list is empty if the collection does not exist. */
static mr_status read_collection(const mr_graph *graph, const char *name, mr_arena *arena,
                                 Mr__CollectionDef__BytesList **list, mr_error *error)
{
    static Mr__CollectionDef__BytesList none = MR__COLLECTION_DEF__BYTES_LIST__INIT;
    Mr__CollectionDef *def;
    const mr_collection *collection = mr_graph_find_collection(graph, name);
    *list = &none;
    if (collection == nullptr) return MR_OK;
    if (collection->kind == MR_COLLECTION_RAW) {
        const mr_string raw = {(const char *)collection->raw, collection->raw_size_bytes};
        MR_TRY(mr_proto_unpack_as(collection_def, raw, arena, &def, error));
        if (def->kind_case == MR__COLLECTION_DEF__KIND_BYTES_LIST) return *list = def->bytes_list, MR_OK;
    }
    return mr_fail(error, MR_INVALID_ARGUMENT, "collection %.200s does not contain queue runners", name);
}

static mr_status append(mr_graph *graph, const char *name, const Mr__QueueRunnerDef *runner, mr_arena *arena,
                        mr_error *error)
{
    Mr__CollectionDef__BytesList *old, list = MR__COLLECTION_DEF__BYTES_LIST__INIT;
    Mr__CollectionDef def = MR__COLLECTION_DEF__INIT;
    mr_string bytes = {0}, packed = {0};
    MR_TRY(read_collection(graph, name, arena, &old, error));
    MR_TRY(mr_proto_pack(runner, arena, &bytes, error));
    list.value = MR_ARENA_NEW(arena, ProtobufCBinaryData, old->n_value + 1);
    if (list.value == nullptr) return mr_fail_memory(error, old->n_value * sizeof *list.value);
    for (; list.n_value < old->n_value; list.n_value++) list.value[list.n_value] = old->value[list.n_value];
    list.value[list.n_value++] = (ProtobufCBinaryData){bytes.size_bytes, (uint8_t *)bytes.data};
    def.kind_case = MR__COLLECTION_DEF__KIND_BYTES_LIST;
    def.bytes_list = &list;
    MR_TRY(mr_proto_pack(&def, &graph->arena, &packed, error));
    mr_collection *collection = mr_graph_make_collection(graph, name, MR_COLLECTION_RAW);
    if (collection == nullptr) return mr_fail_memory(error, packed.size_bytes);
    collection->raw = (const uint8_t *)packed.data;
    collection->raw_size_bytes = packed.size_bytes;
    return MR_OK;
}

static mr_node *close_node(mr_graph *graph, mr_output queue, bool cancels)
{
    if (mr_output_dtype(queue) == MR_RESOURCE)
        return mr_queue_close_v2(graph, queue, .cancel_pending_enqueues = cancels);
    return mr_queue_close_v1(graph, queue, .cancel_pending_enqueues = cancels);
}

static mr_status check_nodes(const mr_graph *graph, mr_output queue, mr_node *const *enqueue_ops, int32_t count,
                             const mr_queue_runner_nodes *o, mr_error *error)
{
    MR_TRY(mr_session_check_list("queue runner: enqueue_ops", enqueue_ops, count, error));
    MR_TRY(mr_session_check_list("queue runner: closed_statuses", o->closed_statuses, o->closed_status_count, error));
    if (count == 0) return mr_fail(error, MR_INVALID_ARGUMENT, "queue runner: there is no enqueue operation");
    if (queue.node == nullptr || mr_node_graph(queue.node) != graph)
        return mr_fail(error, MR_INVALID_ARGUMENT, "queue runner: the queue does not belong to the graph");
    for (int32_t i = 0; i < count; i++)
        if (enqueue_ops[i] == nullptr || mr_node_graph(enqueue_ops[i]) != graph)
            return mr_fail(error, MR_INVALID_ARGUMENT, "queue runner: enqueue_ops[%d] does not belong to the graph",
                           (int)i);
    for (int32_t i = 0; i < o->closed_status_count; i++)
        if (o->closed_statuses[i] < MR_CANCELLED || o->closed_statuses[i] > MR_UNAUTHENTICATED)
            return mr_fail(error, MR_INVALID_ARGUMENT, "queue runner: closed_statuses[%d] is %s", (int)i,
                           o->closed_statuses[i] == MR_OK ? "MR_OK" : "not a status");
    return MR_OK;
}

static mr_status add_runner(mr_graph *graph, mr_output queue, mr_node *const *enqueue_ops, int32_t count,
                            const mr_queue_runner_nodes *given, mr_arena *arena, mr_error *error)
{
    mr_queue_runner_nodes o;
    char name[MR_OUTPUT_NAME_SIZE];
    Mr__QueueRunnerDef def = MR__QUEUE_RUNNER_DEF__INIT;
    MR_TRY(MR_OPTIONS_READ(mr_queue_runner_nodes, &o, given, error));
    MR_TRY(check_nodes(graph, queue, enqueue_ops, count, &o, error));
    const mr_node *close = o.close_op != nullptr ? o.close_op : close_node(graph, queue, false);
    const mr_node *cancel = o.cancel_op != nullptr ? o.cancel_op : close_node(graph, queue, true);
    MR_TRY(mr_graph_status(graph, error));
    if (mr_node_graph(close) != graph || mr_node_graph(cancel) != graph)
        return mr_fail(error, MR_INVALID_ARGUMENT, "queue runner: %s does not belong to the graph",
                       mr_node_graph(close) != graph ? "close_op" : "cancel_op");
    def.queue_name = mr_output_name(queue, name, sizeof name);
    def.close_op_name = (char *)close->name;
    def.cancel_op_name = (char *)cancel->name;
    def.enqueue_op_name = MR_ARENA_NEW(arena, char *, (size_t)count);
    const size_t codes = o.closed_status_count > 0 ? (size_t)o.closed_status_count : 1;
    def.queue_closed_exception_types = MR_ARENA_NEW(arena, int32_t, codes);
    if (def.enqueue_op_name == nullptr || def.queue_closed_exception_types == nullptr)
        return mr_fail_memory(error, codes);
    for (int32_t i = 0; i < count; i++) def.enqueue_op_name[def.n_enqueue_op_name++] = (char *)enqueue_ops[i]->name;
    for (; def.n_queue_closed_exception_types < codes; def.n_queue_closed_exception_types++)
        def.queue_closed_exception_types[def.n_queue_closed_exception_types] =
            o.closed_status_count > 0 ? (int32_t)o.closed_statuses[def.n_queue_closed_exception_types]
                                      : (int32_t)MR_OUT_OF_RANGE;
    return append(graph, o.collection != nullptr ? o.collection : MR_QUEUE_RUNNERS, &def, arena, error);
}

void mr_add_queue_runner_(mr_graph *graph, mr_output queue, mr_node *const *enqueue_ops, int32_t enqueue_count,
                          const mr_queue_runner_nodes *options)
{
    if (graph == nullptr || graph->status != MR_OK) return;
    mr_arena arena = {0};
    mr_error error = {0};
    mr_status status = add_runner(graph, queue, enqueue_ops, enqueue_count, options, &arena, &error);
    mr_arena_deinit(&arena);
    if (status != MR_OK && graph->status == MR_OK) (void)mr_graph_fail(graph, status, "%s", error.message);
}

/* ---- Threads ---- */

typedef struct runner {
    struct runner *next; /* in the list of running ones */
    mr_session *session;
    const mr_node *first;    /* its first enqueue operation, which identifies it */
    mr_step *close, *cancel; /* null: none */
    mr_cancellation *cancellation;
    int32_t *closed_codes; /* owned */
    int32_t closed_count;
    int32_t thread_count;
    mr_step **enqueues; /* owned; one for each thread */
    atomic_int running; /* threads that have not reached the end of the data */
    atomic_int owners;  /* threads that have not been joined, and the function that starts them */
} runner;

typedef struct worker {
    runner *runner;
    int32_t index;
} worker;

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static runner *list; /* guarded by list_mutex */

static void release_runner(runner *r)
{
    const int owners = atomic_fetch_sub(&r->owners, 1);
    assert(owners >= 1);
    if (owners > 1) return;
    assert(atomic_load(&r->running) >= 0);
    pthread_mutex_lock(&list_mutex);
    for (runner **at = &list; *at != nullptr; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    pthread_mutex_unlock(&list_mutex);
    mr_cancellation_free(r->cancellation);
    free(r->closed_codes);
    free((void *)r->enqueues);
    free(r);
}

/* Enters the runner in the list. False if it is running in its session. */
static bool enlist(runner *r)
{
    bool is_running = false;
    pthread_mutex_lock(&list_mutex);
    for (const runner *other = list; other != nullptr && !is_running; other = other->next)
        is_running = other->session == r->session && other->first == r->first && atomic_load(&other->running) > 0;
    if (!is_running) {
        assert(r->next == nullptr && list != r);
        r->next = list;
        list = r;
    }
    pthread_mutex_unlock(&list_mutex);
    return !is_running;
}

/* Failures are ignored, as in TensorFlow: the queue may be closed already. */
static void run_quietly(mr_step *step)
{
    const mr_run_options options = {.size = sizeof options, .is_untraced = true};
    if (step != nullptr) (void)mr_step_run_with(step, &options, nullptr, nullptr, nullptr);
}

static bool is_end(const runner *r, mr_status status)
{
    for (int32_t i = 0; i < r->closed_count; i++)
        if (r->closed_codes[i] == (int32_t)status) return true;
    return r->closed_count == 0 && status == MR_OUT_OF_RANGE;
}

static mr_status work(void *context, mr_coordinator *coordinator, mr_error *error)
{
    const worker *w = context;
    runner *r = w->runner;
    const mr_run_options options = {.size = sizeof options, .cancellation = r->cancellation, .is_untraced = true};
    mr_status status = MR_OK;
    while (status == MR_OK && !mr_coordinator_should_stop(coordinator))
        status = mr_step_run_with(r->enqueues[w->index], &options, nullptr, nullptr, error);
    const bool is_last = atomic_fetch_sub(&r->running, 1) == 1;
    if (status == MR_OK || !is_end(r, status)) return status;
    if (is_last) run_quietly(r->close);
    return MR_OK;
}

/* After the queue is cancelled, a thread may still wait for something else. */
static void stop(void *context)
{
    const worker *w = context;
    if (w->index == 0) run_quietly(w->runner->cancel);
    mr_cancellation_cancel(w->runner->cancellation);
}

static void release_worker(void *context)
{
    worker *w = context;
    release_runner(w->runner);
    free(w);
}

static mr_status prepare(const runner *r, const char *name, mr_step **step, mr_node **found, mr_error *error)
{
    mr_node *node = mr_graph_find(r->session->graph, name);
    *step = nullptr;
    if (found != nullptr) *found = node;
    if (node == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "queue runner: the graph has no node %.200s", name);
    return mr_session_prepare(r->session, nullptr, 0, (mr_outputs){0}, &node, 1, step, error);
}

/* A node that only ends the queue may be missing. */
static mr_step *prepare_end(const runner *r, const char *name)
{
    mr_step *step = nullptr;
    if (*name != '\0') (void)prepare(r, name, &step, nullptr, nullptr);
    return step;
}

static mr_status fill_runner(runner *r, const Mr__QueueRunnerDef *def, mr_error *error)
{
    r->enqueues = (mr_step **)calloc(def->n_enqueue_op_name + 1, sizeof *r->enqueues);
    r->closed_codes = calloc(def->n_queue_closed_exception_types + 1, sizeof *r->closed_codes);
    if (r->enqueues == nullptr || r->closed_codes == nullptr) return mr_fail_memory(error, def->n_enqueue_op_name);
    MR_TRY(mr_cancellation_new(&r->cancellation, error));
    for (size_t i = 0; i < def->n_queue_closed_exception_types; i++)
        r->closed_codes[r->closed_count++] = def->queue_closed_exception_types[i];
    for (size_t i = 0; i < def->n_enqueue_op_name; i++) {
        mr_node *node;
        MR_TRY(prepare(r, def->enqueue_op_name[i], &r->enqueues[r->thread_count++], &node, error));
        if (i == 0) r->first = node;
    }
    r->close = prepare_end(r, def->close_op_name);
    r->cancel = prepare_end(r, def->cancel_op_name);
    assert((size_t)r->thread_count == def->n_enqueue_op_name);
    assert((size_t)r->closed_count == def->n_queue_closed_exception_types);
    atomic_store(&r->running, r->thread_count);
    return MR_OK;
}

static mr_status new_runner(mr_session *session, mr_string bytes, mr_arena *arena, runner **result, mr_error *error)
{
    Mr__QueueRunnerDef *def;
    MR_TRY(mr_proto_unpack_as(queue_runner_def, bytes, arena, &def, error));
    runner *r = calloc(1, sizeof *r);
    if (r == nullptr) return mr_fail_memory(error, sizeof *r);
    r->session = session;
    atomic_store(&r->owners, 1);
    mr_status status = fill_runner(r, def, error);
    if (status == MR_OK)
        *result = r;
    else
        release_runner(r);
    return status;
}

static mr_status start_threads(runner *r, mr_coordinator *coordinator, int32_t *started, mr_error *error)
{
    if (!enlist(r)) return MR_OK;
    for (int32_t i = 0; i < r->thread_count; i++) {
        worker *w = malloc(sizeof *w);
        if (w == nullptr) {
            atomic_fetch_sub(&r->running, r->thread_count - i);
            return mr_fail_memory(error, sizeof *w);
        }
        *w = (worker){r, i};
        atomic_fetch_add(&r->owners, 1);
        const mr_member member = {.run = work, .stop = stop, .release = release_worker, .context = w};
        mr_status status = mr_coordinator_start(coordinator, &member, error);
        if (status != MR_OK) {
            atomic_fetch_sub(&r->running, r->thread_count - i);
            release_worker(w);
            return status;
        }
        ++*started;
    }
    return MR_OK;
}

static mr_status start_all(mr_session *session, mr_coordinator *coordinator, const Mr__CollectionDef__BytesList *defs,
                           mr_arena *arena, int32_t *started, mr_error *error)
{
    runner **all = (runner **)calloc(defs->n_value + 1, sizeof *all);
    if (all == nullptr) return mr_fail_memory(error, defs->n_value * sizeof *all);
    mr_status status = MR_OK;
    size_t count = 0;
    while (count < defs->n_value && status == MR_OK) {
        status = new_runner(session, mr_proto_bytes(defs->value[count]), arena, &all[count], error);
        count += status == MR_OK;
    }
    for (size_t i = 0; i < count && status == MR_OK; i++) status = start_threads(all[i], coordinator, started, error);
    for (size_t i = 0; i < count; i++) release_runner(all[i]);
    free((void *)all);
    return status;
}

mr_status mr_start_queue_runners(mr_session *session, mr_coordinator *coordinator, const char *collection,
                                 int32_t *thread_count, mr_error *error)
{
    int32_t started = 0;
    if (thread_count != nullptr) *thread_count = 0;
    if (session == nullptr) return mr_session_null("mr_start_queue_runners: session", error);
    if (coordinator == nullptr) return mr_session_null("mr_start_queue_runners: coordinator", error);
    mr_arena arena = {0};
    Mr__CollectionDef__BytesList *defs;
    const char *name = collection != nullptr ? collection : MR_QUEUE_RUNNERS;
    mr_status status = read_collection(session->graph, name, &arena, &defs, error);
    if (status == MR_OK) status = start_all(session, coordinator, defs, &arena, &started, error);
    mr_arena_deinit(&arena);
    if (thread_count != nullptr) *thread_count = started;
    return status;
}
