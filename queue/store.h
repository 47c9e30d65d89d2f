/* The element store of a queue: a ring in order of arrival, or a heap ordered by priority.
 *
 * A dequeued element keeps its slot until it is released, so that returning it never allocates: a batch that cannot be
 * completed, or for which there is no memory, returns its elements. Not thread-safe: guarded by the queue's mutex. */
#ifndef MR_QUEUE_STORE_H
#define MR_QUEUE_STORE_H

#include <millrace/queue.h>

#include "base/random.h"

typedef struct mr_queue_store {
    mr_queue_kind kind;
    int32_t width;     /* tensors per element */
    int64_t room;      /* slots: at least count + taken - released */
    int64_t first;     /* slot of the oldest element; 0 unless FIFO */
    int64_t count;     /* elements in the store */
    int64_t taken;     /* elements taken so far and not returned */
    mr_tensor *slots;  /* owned; room * width tensors */
    int64_t *arrivals; /* owned; MR_QUEUE_PRIORITY: arrival number of each element, which orders equal priorities */
    int64_t oldest;    /* arrival number of the most recently returned element */
    int64_t newest;    /* arrival number of the next element */
    mr_random random, random_first; /* MR_QUEUE_RANDOM_SHUFFLE: now, and before the first element */
    bool uses_philox;               /* instead of random: TensorFlow's generator, one word for each element */
    mr_philox philox, philox_first;
    uint32_t words[4];
    int words_used;
    _Atomic int64_t released; /* taken elements whose slots are free again */
} mr_queue_store;

void mr_queue_store_init(mr_queue_store *store, mr_queue_kind kind, int32_t width, uint64_t seed);
/* Releases the elements. No element may still be taken. */
void mr_queue_store_deinit(mr_queue_store *store);
/* Draws random numbers from TensorFlow's generator, from its start. The store must be empty. */
void mr_queue_store_seed(mr_queue_store *store, uint64_t seed, uint64_t seed2);
/* Releases the elements in the store, and draws random numbers from their start again. */
void mr_queue_store_reset(mr_queue_store *store);
/* Reserves a slot for one more element; false: no memory. */
[[nodiscard]] bool mr_queue_store_reserve(mr_queue_store *store);
/* Moves an element into a reserved slot. */
void mr_queue_store_put(mr_queue_store *store, const mr_tensor *element);
/* Moves the next element out: the oldest, a random one, or the one with the lowest priority value. The store must not
 * be empty. */
void mr_queue_store_take(mr_queue_store *store, mr_tensor *element);
/* Frees the slots of `count` taken elements. Does not need the mutex. */
void mr_queue_store_release(mr_queue_store *store, int64_t count);
/* Moves taken elements back in, before all others, in the order in which they were taken. */
void mr_queue_store_return(mr_queue_store *store, const mr_tensor *elements, int64_t count);

#endif
