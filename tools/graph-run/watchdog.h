/* Ends the program if a run has not ended although its time is over. A run ends between two operators; this is for one
 * that takes long by itself. */
#ifndef GRAPH_RUN_WATCHDOG_H
#define GRAPH_RUN_WATCHDOG_H

#include <millrace/status.h>

/* Called on a thread of its own, while the run is still busy. It ends the program. */
typedef void watchdog_late(void *context);

/* seconds  limit of each run; the watchdog gives it one second more */
mr_status watchdog_start(double seconds, watchdog_late *late, void *context, mr_error *error);
/* A run begins and ends. Without effect if the watchdog has not been started. */
void watchdog_begin(void);
void watchdog_end(void);

#endif
