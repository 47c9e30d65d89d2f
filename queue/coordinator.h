/* Coordinators, for the files that start threads of their own. */
#ifndef MR_QUEUE_COORDINATOR_H
#define MR_QUEUE_COORDINATOR_H

#include <millrace/queue.h>

/* Records an error of a thread that ends because a stop was requested, unless an error is recorded. */
void mr_coordinator_record(mr_coordinator *coordinator, const mr_error *error);

#endif
