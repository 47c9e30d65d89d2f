/* Threads that fill the graph's queues (tf.train.start_queue_runners). */
#ifndef MR_TOOLS_GRAPH_RUN_QUEUE_RUNNERS_H
#define MR_TOOLS_GRAPH_RUN_QUEUE_RUNNERS_H

#include <millrace/model.h>

typedef struct queue_runners queue_runners;

/* Starts a thread for each enqueue operation. The last thread of a runner whose data has ended closes its queue.
 * errors  MR_FAILED_PRECONDITION: the graph has no queue runners */
mr_status queue_runners_start(mr_model *model, mr_session *session, queue_runners **runners, mr_error *error);
/* Cancels what the threads wait for and joins them. Returns the first error of a thread that was not the end of its
 * data. Null is allowed. */
mr_status queue_runners_stop(queue_runners *runners, mr_error *error);

#endif
