/* What built-in hooks share: the struct of a hook, that of a run, timers, and what they need of their session. */
#ifndef MR_GRAPH_TRAIN_HOOK_H
#define MR_GRAPH_TRAIN_HOOK_H

#include "graph/train/train.h"
#include <millrace/monitored.h>

struct mr_hook {
    mr_hook_functions functions;
    void *context;
    mr_monitored_session *owner; /* null before it is given to a session */
    mr_error error;              /* of its creation */
};

/* Allocates a built-in hook: a struct of that size whose first member is a mr_hook, zero otherwise. The functions'
 * context is the hook itself, which is freed after their `free`. Null if memory is exhausted. */
void *mr_hook_alloc(size_t size, mr_hook_functions functions);
/* Keeps the hook's first error. */
[[gnu::format(printf, 3, 4)]] void mr_hook_fail(mr_hook *hook, mr_status status, const char *format, ...);
/* Copies a text or an array that options borrow. Null stays null; a failure is the hook's error. */
char *mr_hook_copy_text(mr_hook *hook, const char *text);
void *mr_hook_copy_items(mr_hook *hook, const void *items, int32_t count, size_t item_size);

/* Fails with MR_INVALID_ARGUMENT unless all outputs belong to the graph. name: of the hook, for the message */
mr_status mr_hook_check_outputs(const mr_graph *graph, const char *name, mr_outputs outputs, mr_error *error);

/* ---- Timers ---- */

/* Due every so many steps, or seconds. */
typedef mr_step_timer mr_hook_timer;
/* Checks that one of the two is given, and valid. steps_name, secs_name: the options */
void mr_hook_timer_init(mr_hook_timer *timer, mr_hook *hook, const char *name, const char *steps_name,
                        int64_t every_steps, const char *secs_name, double every_secs);
/* True once, before the timer has fired. Never twice for the same step. */
bool mr_hook_timer_is_due(const mr_hook_timer *timer, int64_t step);
/* Fires: the time and the steps count from here. */
void mr_hook_timer_fire(mr_hook_timer *timer, int64_t step);
/* Seconds of a clock that is not set. */
double mr_hook_now(void);

/* ---- One run ---- */

typedef struct mr_hook_range {
    int32_t first, count; /* of the run's fetches */
} mr_hook_range;
struct mr_hook_run {
    mr_monitored_session *owner;
    mr_session *session;
    mr_feeds caller_feeds;
    mr_outputs caller_fetches;
    mr_feed *feeds; /* the caller's, then those of hooks */
    int32_t feed_count;
    mr_output *fetches; /* the same */
    int32_t fetch_count;
    mr_hook_range *ranges; /* by hook: what it fetched */
    int32_t hook;          /* whose function is running */
    mr_tensor *results;    /* one for each fetch; null before the run */
    mr_tensor metadata;
    bool trace;
    const mr_watch *watch; /* null: none */
};

/* ---- The session (monitored.c) ---- */

mr_graph *mr_monitored_graph(mr_monitored_session *session);
/* Fails with MR_FAILED_PRECONDITION and the hook's name if the graph has no global step. */
mr_status mr_monitored_require_step(mr_monitored_session *session, const char *hook, mr_error *error);
/* The saver and the summaries of the scaffold; null or {0}: there are none. */
mr_saver *mr_monitored_saver(mr_monitored_session *session);
mr_output mr_monitored_summary(mr_monitored_session *session);
/* The event file of a directory, which all hooks of the session share. Owned by the session. */
mr_status mr_monitored_writer(mr_monitored_session *session, const char *directory, mr_event_writer **writer,
                              mr_error *error);
/* Waits until a stop is requested, at most wait_ns; whether it is. */
bool mr_monitored_wait(mr_monitored_session *session, int64_t wait_ns);
/* Whether the session has restored this checkpoint, so that it need not be saved again. */
bool mr_monitored_has_restored(const mr_monitored_session *session, const char *path);

#endif
