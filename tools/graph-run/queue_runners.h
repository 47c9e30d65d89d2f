/* Threads that fill the graph's queues (--queue-runners). */
#ifndef MR_TOOLS_GRAPH_RUN_QUEUE_RUNNERS_H
#define MR_TOOLS_GRAPH_RUN_QUEUE_RUNNERS_H

#include <millrace/model.h>
#include <millrace/queue_runners.h>

/* coordinator  of the threads; set on an error, too
 * errors       MR_FAILED_PRECONDITION: the graph has no queue runners */
mr_status queue_runners_start(mr_model *model, mr_session *session, mr_coordinator **coordinator, mr_error *error);
/* Stops the threads and frees the coordinator, which may be null. Returns the first error of a thread. */
mr_status queue_runners_stop(mr_coordinator *coordinator, mr_error *error);

#endif
