/* Attempt: an enqueue or dequeue that may have to wait, without a thread that waits for it.
 *
 * An attempt joins a line when it starts and leaves it when it is done. Whoever changes a queue serves both lines before
 * the mutex is released: the first of each proceeds as far as it can, enqueues before dequeues, as in TensorFlow. So the
 * result of a sequence of operations does not depend on when a waiting thread runs. */
#ifndef MR_QUEUE_ATTEMPT_H
#define MR_QUEUE_ATTEMPT_H

#include <millrace/queue.h>

#include <pthread.h>
#include <stdatomic.h>

typedef struct mr_queue_attempt mr_queue_attempt;
struct mr_queue_attempt {
    /* Set by the caller. Everything they point to lives until the attempt is done. */
    int64_t count;               /* elements; at least 1 */
    const mr_tensor *components; /* enqueue: borrowed; of the queue's dtypes and shapes. Null: a dequeue */
    bool are_rows;               /* enqueue: an element is a row of the components */
    mr_tensor *elements;         /* dequeue: borrowed; space for count elements, whose owner the caller becomes */
    bool may_be_fewer;           /* dequeue: the queue's end is no error once an element is there */
    bool may_return;             /* dequeue: mr_queue_release or mr_queue_return follows */
    mr_error *error;             /* may be null */

    /* Results. */
    mr_status status;
    int64_t moved; /* elements: so far in the queue, or owned by the caller */
    _Atomic bool is_done;

    /* Guarded by the queue's mutex. */
    mr_queue_attempt *next;
    pthread_cond_t *sleeper; /* borrowed; of a thread that sleeps until it is done; null: none does */
};

/* Starts an attempt, which may be done on return. */
void mr_queue_start(mr_queue *queue, mr_queue_attempt *attempt);
/* Waits until a started attempt is done; returns its status. */
mr_status mr_queue_wait(mr_queue *queue, mr_queue_attempt *attempt);
/* After a dequeue that may return its elements: keeps them, or moves them back to the front of the queue. */
void mr_queue_release(mr_queue *queue, int64_t count);
void mr_queue_return(mr_queue *queue, const mr_tensor *elements, int64_t count);

#endif
