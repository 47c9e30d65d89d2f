/* Queue attempts: an enqueue or dequeue that may have to wait, without blocking a thread.
 *
 * An attempt joins a waiting list when it starts and leaves it when it is done. Every change of a queue processes both
 * lists before the mutex is unlocked: the first attempt of each list proceeds as far as it can, enqueues before
 * dequeues, as in TensorFlow. The result of a sequence of operations therefore does not depend on when a waiting thread
 * is scheduled. */
#ifndef MR_QUEUE_ATTEMPT_H
#define MR_QUEUE_ATTEMPT_H

#include <millrace/queue.h>

#include <pthread.h>
#include <stdatomic.h>

typedef struct mr_queue_attempt mr_queue_attempt;
struct mr_queue_attempt {
    /* Set by the caller. Everything they point to must stay valid until the attempt is done. */
    int64_t count;               /* elements; at least 1 */
    const mr_tensor *components; /* enqueue: borrowed; of the queue's dtypes and shapes. Null: a dequeue */
    bool are_rows;               /* enqueue: each row of the components is an element */
    mr_tensor *elements;         /* dequeue: borrowed; space for count elements, which the caller then owns */
    bool may_be_fewer;           /* dequeue: a closed queue is not an error if at least one element is available */
    bool may_return;             /* dequeue: the caller will call mr_queue_release or mr_queue_return */
    mr_error *error;             /* may be null */

    /* Results. */
    mr_status status;
    int64_t moved; /* elements that are in the queue, or owned by the caller, so far */
    _Atomic bool is_done;

    /* Guarded by the queue's mutex. */
    mr_queue_attempt *next;
    pthread_cond_t *sleeper; /* borrowed; of a thread that is blocked until the attempt is done; null: none */
};

/* How the caller of a function waits. */
typedef struct mr_queue_patience {
    bool may_wait;
    bool would_wait; /* result: it may not wait, and would have to; nothing has changed */
    /* If may_wait: waits until the attempt is done, with mr_queue_wait, or cancels it. */
    mr_status (*wait)(void *context, mr_queue *queue, mr_queue_attempt *attempt);
    void *context;
} mr_queue_patience;

/* mr_queue_enqueue (or, with are_rows, _many), and mr_queue_dequeue (count -1), _many and _up_to. patience: null: waits
 * for any time. */
mr_status mr_queue_enqueue_with(mr_queue *queue, const mr_tensor *components, bool are_rows,
                                mr_queue_patience *patience, mr_error *error);
mr_status mr_queue_dequeue_with(mr_queue *queue, int64_t count, bool may_be_fewer, mr_tensor *components,
                                mr_queue_patience *patience, mr_error *error);
/* mr_reader_read and mr_reader_read_up_to (count -1: one record). */
mr_status mr_reader_read_with(mr_reader *reader, mr_queue *names, int64_t count, mr_tensor *keys, mr_tensor *values,
                              mr_queue_patience *patience, mr_error *error);
/* How far a MR_READER_IDENTITY has read; the others cannot be saved.
 * errors  MR_UNIMPLEMENTED */
typedef struct mr_reader_progress {
    int64_t started, finished, produced;
    char *work; /* the last name; null: none. Owned by the caller of mr_reader_save */
} mr_reader_progress;
bool mr_reader_has_state(const mr_reader *reader);
mr_status mr_reader_save(mr_reader *reader, mr_reader_progress *progress, mr_error *error);
/* progress  not negative, and nothing is started that is not finished */
mr_status mr_reader_restore(mr_reader *reader, const mr_reader_progress *progress, mr_error *error);
/* Draws the order of a MR_QUEUE_RANDOM_SHUFFLE from TensorFlow's generator for these seeds. The queue must be empty. */
void mr_queue_seed(mr_queue *queue, uint64_t seed, uint64_t seed2);
/* Drops the elements, opens the queue if it is closed, and draws its order from the start again. */
void mr_queue_reset(mr_queue *queue);

/* Starts an attempt, which may already be done on return. */
void mr_queue_start(mr_queue *queue, mr_queue_attempt *attempt);
/* Starts it if it is done on return; otherwise changes nothing and returns false. */
bool mr_queue_try(mr_queue *queue, mr_queue_attempt *attempt);
/* Waits until a started attempt is done; returns its status. */
mr_status mr_queue_wait(mr_queue *queue, mr_queue_attempt *attempt);
/* Ends a started attempt that is not done, with MR_CANCELLED: a dequeue returns what it has taken, an enqueue leaves
 * what it has added. Nothing happens if the attempt is done. Any thread may call it until the owner returns from
 * mr_queue_wait. */
void mr_queue_cancel(mr_queue *queue, mr_queue_attempt *attempt);
/* After a dequeue with may_return: keeps the elements, or moves them back to the front of the queue. */
void mr_queue_release(mr_queue *queue, int64_t count);
void mr_queue_return(mr_queue *queue, const mr_tensor *elements, int64_t count);

#endif
