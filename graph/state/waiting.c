/* Waiting in queues. */
#include "graph/state/waiting.h"

typedef struct cancellable {
    mr_waiter waiter;
    mr_queue *queue;
    mr_queue_attempt *attempt;
} cancellable;

static void cancel(mr_waiter *waiter)
{
    const cancellable *c = waiter->object;
    mr_queue_cancel(c->queue, c->attempt);
}

static mr_status wait(void *context, mr_queue *queue, mr_queue_attempt *attempt)
{
    const mr_queue_waiting *waiting = context;
    cancellable c = {.waiter = {.wake = cancel, .object = &c}, .queue = queue, .attempt = attempt};
    mr_status registered = mr_run_begin_wait(waiting->call->run, &c.waiter, nullptr);
    if (registered != MR_OK) mr_queue_cancel(queue, attempt);
    mr_status status = mr_queue_wait(queue, attempt);
    if (registered == MR_OK) mr_run_end_wait(waiting->call->run, &c.waiter);
    return status;
}

void mr_queue_waiting_init(mr_queue_waiting *waiting, mr_kernel_call *call)
{
    *waiting =
        (mr_queue_waiting){.patience = {.may_wait = call->may_wait, .wait = wait, .context = waiting}, .call = call};
}

mr_status mr_queue_waiting_end(const mr_queue_waiting *waiting, mr_status status, mr_error *error)
{
    waiting->call->would_wait = waiting->patience.would_wait;
    if (waiting->patience.would_wait) return MR_OK;
    if (status == MR_CANCELLED && mr_run_is_stopped(waiting->call->run))
        return mr_run_stopped(waiting->call->run, error);
    return status;
}
