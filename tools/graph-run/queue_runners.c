/* The mutex guards the numbers of running threads and the first error. */
#include "graph-run/queue_runners.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct worker {
    queue_runners *all;
    int32_t runner;
    mr_step *step;
    pthread_t thread;
    bool is_started;
} worker;

struct queue_runners {
    mr_model *model;
    mr_session *session;
    const mr_model_about *info;
    mr_cancellation *cancellation;
    worker *workers;
    int32_t worker_count;
    atomic_bool is_stopping;
    pthread_mutex_t mutex;
    int32_t *running; /* by runner */
    mr_status status;
    mr_error error;
};

/* Runs a node that may be missing or fail: the queue may be closed already. */
static void run_quietly(queue_runners *q, const char *name)
{
    mr_node *node = *name ? mr_graph_find(mr_model_graph(q->model), name) : nullptr;
    mr_run_options options = {.size = sizeof options, .is_untraced = true};
    if (node) (void)mr_session_run_with(q->session, &options, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &node, 1, nullptr);
}

static bool is_end(const mr_model_queue_runner *runner, mr_status status)
{
    if (status == MR_CANCELLED) return true;
    for (int32_t i = 0; i < runner->closed_count; i++)
        if (runner->closed_codes[i] == (int32_t)status) return true;
    return runner->closed_count == 0 && status == MR_OUT_OF_RANGE;
}

static void *work(void *argument)
{
    worker *w = argument;
    queue_runners *q = w->all;
    const mr_model_queue_runner *runner = &q->info->queue_runners[w->runner];
    mr_run_options options = {.size = sizeof options, .cancellation = q->cancellation, .is_untraced = true};
    mr_error error = {0};
    mr_status status = MR_OK;
    while (status == MR_OK && !q->is_stopping) status = mr_step_run_with(w->step, &options, nullptr, nullptr, &error);
    bool has_failed = status != MR_OK && !is_end(runner, status);
    pthread_mutex_lock(&q->mutex);
    bool is_last = --q->running[w->runner] == 0;
    if (has_failed && q->status == MR_OK && !q->is_stopping) {
        q->status = status;
        q->error = error;
    }
    pthread_mutex_unlock(&q->mutex);
    /* After an error, the steps must not wait for elements that never come. */
    if (has_failed && !q->is_stopping)
        run_quietly(q, runner->cancel_op);
    else if (is_last && !q->is_stopping)
        run_quietly(q, runner->close_op);
    return nullptr;
}

static mr_status prepare_workers(queue_runners *q, mr_error *error)
{
    mr_graph *graph = mr_model_graph(q->model);
    for (int32_t i = 0; i < q->info->queue_runner_count; i++) {
        const mr_model_queue_runner *runner = &q->info->queue_runners[i];
        for (int32_t j = 0; j < runner->enqueue_count; j++) {
            mr_node *node = mr_graph_find(graph, runner->enqueue_ops[j]);
            if (!node)
                return mr_fail(error, MR_NOT_FOUND, "--queue-runners: the graph has no node %.200s",
                               runner->enqueue_ops[j]);
            worker *w = &q->workers[q->worker_count++];
            *w = (worker){.all = q, .runner = i};
            MR_TRY(mr_session_prepare(q->session, nullptr, 0, (mr_outputs){0}, &node, 1, &w->step, error));
            q->running[i]++;
        }
    }
    return MR_OK;
}

static void free_all(queue_runners *q)
{
    mr_cancellation_free(q->cancellation);
    pthread_mutex_destroy(&q->mutex);
    free(q->workers);
    free(q->running);
    free(q);
}

mr_status queue_runners_start(mr_model *model, mr_session *session, queue_runners **runners, mr_error *error)
{
    const mr_model_about *info = mr_model_info(model);
    size_t count = 0;
    for (int32_t i = 0; i < info->queue_runner_count; i++) count += (size_t)info->queue_runners[i].enqueue_count;
    *runners = nullptr;
    if (count == 0)
        return mr_fail(error, MR_FAILED_PRECONDITION, "--queue-runners: the file has no queue runners%s",
                       *info->format == 'G' ? " (a GraphDef never has; use its .meta)" : "");
    queue_runners *q = calloc(1, sizeof *q);
    if (!q) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    *q = (queue_runners){.model = model, .session = session, .info = info};
    pthread_mutex_init(&q->mutex, nullptr);
    q->workers = calloc(count, sizeof *q->workers);
    q->running = calloc((size_t)info->queue_runner_count, sizeof *q->running);
    mr_status status = q->workers && q->running ? mr_cancellation_new(&q->cancellation, error)
                                                : mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    if (status == MR_OK) status = prepare_workers(q, error);
    if (status != MR_OK) {
        free_all(q);
        return status;
    }
    *runners = q;
    for (int32_t i = 0; i < q->worker_count; i++) {
        q->workers[i].is_started = pthread_create(&q->workers[i].thread, nullptr, work, &q->workers[i]) == 0;
        if (!q->workers[i].is_started) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "cannot start a thread");
    }
    return MR_OK;
}

mr_status queue_runners_stop(queue_runners *q, mr_error *error)
{
    if (!q) return MR_OK;
    q->is_stopping = true;
    mr_cancellation_cancel(q->cancellation);
    for (int32_t i = 0; i < q->info->queue_runner_count; i++) run_quietly(q, q->info->queue_runners[i].cancel_op);
    for (int32_t i = 0; i < q->worker_count; i++)
        if (q->workers[i].is_started) pthread_join(q->workers[i].thread, nullptr);
    mr_status status = q->status;
    if (status != MR_OK) status = mr_fail(error, status, "%s", q->error.message);
    free_all(q);
    return status;
}
