/* Queue runners of a graph: threads that run its enqueue operations (tf.train.QueueRunner, add_queue_runner,
 * start_queue_runners). A graph that is imported from a MetaGraphDef has those of the program that wrote it.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output queue = mr_fifo_queue_v2(g, .component_types = MR_DTYPES(MR_FLOAT), .capacity = 10);
 * mr_output value = mr_constant_float(g, 1.5f);
 * mr_node *enqueue = mr_queue_enqueue_v2(g, queue, MR_OUTPUTS(value));
 * mr_add_queue_runner(g, queue, &enqueue, 1);
 * mr_session *session = nullptr;
 * mr_coordinator *coordinator = nullptr;
 * mr_status status = mr_session_new(g, nullptr, &session, &error);
 * if (status == MR_OK) status = mr_coordinator_new(&coordinator, &error);
 * if (status == MR_OK) status = mr_start_queue_runners(session, coordinator, nullptr, nullptr, &error);
 * mr_coordinator_request_stop(coordinator, nullptr);
 * if (status == MR_OK) status = mr_coordinator_join(coordinator, -1, &error);
 * mr_coordinator_free(coordinator);
 * mr_session_free(session);
 * mr_graph_free(g);
 * ```
 *
 * Options follow the rules of api.h. The queue runners of queue.h call functions of the program instead. */
#ifndef MILLRACE_QUEUE_RUNNERS_H
#define MILLRACE_QUEUE_RUNNERS_H

#include <millrace/queue.h>
#include <millrace/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The collection of queue runners (tf.GraphKeys.QUEUE_RUNNERS). */
#define MR_QUEUE_RUNNERS "queue_runners"

typedef struct mr_queue_runner_nodes {
    size_t size;            /* of this struct (api.h) */
    mr_node *close_op;      /* run after the end of the data; default: a new one that closes the queue */
    mr_node *cancel_op;     /* run when a stop is requested; default: a new one that also cancels pending enqueues */
    const char *collection; /* default: MR_QUEUE_RUNNERS */
    /* The statuses of an enqueue operation that are the end of the data; default: MR_OUT_OF_RANGE. */
    const mr_status *closed_statuses;
    int32_t closed_status_count;
} mr_queue_runner_nodes;
/* Adds a queue runner to a collection of the graph. It is exported with the graph's MetaGraphDef. An error is recorded
 * in the graph.
 * queue        the handle of the queue
 * enqueue_ops  one thread runs each of them; at least 1; one may be given several times */
MR_API void mr_add_queue_runner_(mr_graph *graph, mr_output queue, mr_node *const *enqueue_ops, int32_t enqueue_count,
                                 const mr_queue_runner_nodes *options);
#define mr_add_queue_runner(graph, queue, enqueue_ops, enqueue_count, ...)                                             \
    MR_WITH_SIZE_(mr_add_queue_runner_((graph), (queue), (enqueue_ops), (enqueue_count), &options_),                   \
                  mr_queue_runner_nodes, __VA_ARGS__)

/* Starts a thread for each enqueue operation of the collection's queue runners. A thread repeats its operation until
 * the end of the data, a stop or an error. When the last thread of a queue runner has reached the end of its data, its
 * queue is closed. An error of a thread requests a stop. A stop cancels the queues and the operations in progress: an
 * iterator that an enqueue operation is waiting for stays cancelled in this session.
 *
 * Queue runners whose threads are running in the session are not started again.
 * collection    null: MR_QUEUE_RUNNERS
 * thread_count  receives the number of threads that were started; may be null. 0: there are no queue runners, or all
 *               are running
 * errors        MR_INVALID_ARGUMENT: the collection does not contain queue runners, or one names a missing node; then
 *               no thread is started, nor after MR_DATA_LOSS: a damaged queue runner of an imported graph, and
 *               MR_UNIMPLEMENTED: an operation that cannot be run. MR_RESOURCE_EXHAUSTED: some threads may be running
 * lifetime      the session is freed after the coordinator's threads have been joined */
MR_API mr_status mr_start_queue_runners(mr_session *session, mr_coordinator *coordinator, const char *collection,
                                        int32_t *thread_count, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
