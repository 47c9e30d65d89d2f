/* Queues, coordinators, queue runners and readers: TensorFlow 1's input pipeline, from C.
 *
 * ```c
 * mr_error error = {0};
 * mr_queue *queue = nullptr;
 * mr_queue_options options = {.size = sizeof options, .capacity = 10, .component_count = 1, .dtypes = {MR_INT64}};
 * if (mr_queue_new(MR_QUEUE_FIFO, &options, &queue, &error) != MR_OK) return 1;
 * mr_tensor in = {0}, out = {0};
 * if (mr_tensor_init_int64(&in, 7, &error) != MR_OK || mr_queue_enqueue(queue, &in, &error) != MR_OK) return 1;
 * mr_queue_close(queue, false);
 * while (mr_queue_dequeue(queue, &out, &error) == MR_OK) {
 *     printf("%lld\n", (long long)mr_tensor_int64s(&out)[0]);
 *     mr_tensor_deinit(&out);
 * }
 * mr_tensor_deinit(&in);
 * mr_queue_unref(queue);
 * ```
 *
 * An element is a list of tensors. Queues reference tensors and do not copy them. Any function may be called from any
 * thread. */
#ifndef MILLRACE_QUEUE_H
#define MILLRACE_QUEUE_H

#include <millrace/dataset.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Queues ---- */

typedef enum mr_queue_kind {
    MR_QUEUE_FIFO = 0,       /* first in, first out */
    MR_QUEUE_RANDOM_SHUFFLE, /* a random element; at least min_after_dequeue elements remain, for mixing */
    MR_QUEUE_PADDING_FIFO,   /* elements of different sizes; dequeue_many pads them with 0 and "" to the longest */
    MR_QUEUE_PRIORITY,       /* component 0 is a priority (int64 scalar): smallest first, equal ones in FIFO order */
} mr_queue_kind;

/* A capacity without a limit. */
#define MR_QUEUE_UNBOUNDED (-1)

typedef struct mr_queue_options {
    size_t size; /* of this struct (api.h) */
    /* Elements. As in TensorFlow, a negative capacity is MR_QUEUE_UNBOUNDED, and with 0 nothing can ever be enqueued.
     * */
    int64_t capacity;
    int32_t component_count;
    mr_dtype dtypes[MR_COMPONENTS_MAX];
    /* Of one element. Rank -1: any shape, but dequeue_many is refused. Sizes of -1 are for MR_QUEUE_PADDING_FIFO. */
    mr_shape shapes[MR_COMPONENTS_MAX];
    int64_t
        min_after_dequeue; /* MR_QUEUE_RANDOM_SHUFFLE: elements that remain until the queue is closed; below capacity */
    uint64_t seed;         /* of MR_QUEUE_RANDOM_SHUFFLE; 0: a different one for each queue */
    const char *name;      /* for messages; copied; null: the kind's name */
    /* Of queues that mr_train_batch created: */
    int64_t batch_size;
    bool allow_smaller_final_batch;
} mr_queue_options;

typedef struct mr_queue mr_queue;
/* errors  MR_INVALID_ARGUMENT: inconsistent options */
MR_API mr_status mr_queue_new(mr_queue_kind kind, const mr_queue_options *options, mr_queue **queue, mr_error *error);
MR_API mr_queue *mr_queue_ref(mr_queue *queue);
MR_API void mr_queue_unref(mr_queue *queue); /* null is allowed */

/* Waits while the queue is full.
 * components  component_count tensors of the queue's dtypes and shapes; they are referenced
 * errors      MR_INVALID_ARGUMENT; MR_CANCELLED: the queue is closed, or is closed with cancel_pending while waiting */
MR_API mr_status mr_queue_enqueue(mr_queue *queue, const mr_tensor *components, mr_error *error);
/* Enqueues the rows of dimension 0 as elements, in order; elements of other threads may come between them. After
 * MR_CANCELLED some of them are enqueued. */
MR_API mr_status mr_queue_enqueue_many(mr_queue *queue, const mr_tensor *components, mr_error *error);
/* Waits for an element. components are empty on entry and owned by the caller on return.
 * errors  MR_OUT_OF_RANGE: closed and empty */
MR_API mr_status mr_queue_dequeue(mr_queue *queue, mr_tensor *components, mr_error *error);
/* Waits for count elements, takes them as they arrive, and returns them as one batch. MR_QUEUE_PRIORITY takes none
 * before all are available, so that the batch is sorted, unless count exceeds its capacity.
 * errors  MR_OUT_OF_RANGE: closed with fewer than count elements left; MR_RESOURCE_EXHAUSTED; after either, all
 *         elements are back in the queue. MR_INVALID_ARGUMENT: the queue has no shapes */
MR_API mr_status mr_queue_dequeue_many(mr_queue *queue, int64_t count, mr_tensor *components, mr_error *error);
/* The same, but returns the remaining elements, if any, after the queue is closed. MR_QUEUE_PRIORITY returns all or
 * none, as TensorFlow's does. */
MR_API mr_status mr_queue_dequeue_up_to(mr_queue *queue, int64_t count, mr_tensor *components, mr_error *error);
/* Refuses further elements; those in the queue can still be dequeued. cancel_pending: calls that are waiting to enqueue
 * fail, too. May be called again (an error in TensorFlow), for example to cancel these calls. */
MR_API void mr_queue_close(mr_queue *queue, bool cancel_pending);
MR_API bool mr_queue_is_closed(mr_queue *queue);
MR_API int64_t mr_queue_size(mr_queue *queue);
/* The options that it was created with. Borrowed from the queue. */
MR_API const mr_queue_options *mr_queue_describe(const mr_queue *queue);

/* ---- Coordinator ---- */

/* Stops a group of threads together. The first error of a thread is returned by join. After a stop is requested, errors
 * of threads are dropped, as in TensorFlow, except that of a looper's `stop` if there is no other. MR_OUT_OF_RANGE (end
 * of the data) and MR_CANCELLED stop the group without an error. */
typedef struct mr_coordinator mr_coordinator;
MR_API mr_status mr_coordinator_new(mr_coordinator **coordinator, mr_error *error);
/* Stops and joins threads that are still running. Null is allowed. */
MR_API void mr_coordinator_free(mr_coordinator *coordinator);
MR_API bool mr_coordinator_should_stop(mr_coordinator *coordinator);
/* reason  the error; null or one of the two statuses above: no error. The first reason is kept */
MR_API void mr_coordinator_request_stop(mr_coordinator *coordinator, const mr_error *reason);
/* Waits at most wait_ns for a stop request and returns whether there was one. wait_ns below 0: no limit */
MR_API bool mr_coordinator_wait_for_stop(mr_coordinator *coordinator, int64_t wait_ns);
/* A thread of a coordinator.
 * run      the thread's function; a result other than MR_OK requests a stop
 * stop     called once when a stop is requested, by the requesting thread, to end a wait inside run; may be null
 * release  called after the thread has been joined; may be null */
typedef struct mr_member {
    mr_status (*run)(void *context, mr_coordinator *coordinator, mr_error *error);
    void (*stop)(void *context);
    void (*release)(void *context);
    void *context;
} mr_member;
/* member  copied. On an error release is not called */
MR_API mr_status mr_coordinator_start(mr_coordinator *coordinator, const mr_member *member, mr_error *error);
/* Waits for all threads; after a stop request, at most grace_ns (below 0: no limit).
 * errors  the first reason that is an error, or else the first error of a looper's `stop`; MR_DEADLINE_EXCEEDED:
 *         threads that did not stop in time. They continue to run, and free joins them */
MR_API mr_status mr_coordinator_join(mr_coordinator *coordinator, int64_t grace_ns, mr_error *error);
/* Makes the coordinator usable again after join. */
MR_API void mr_coordinator_clear_stop(mr_coordinator *coordinator);
/* What a thread does repeatedly (tf.train.LooperThread). An error of one of these functions requests a stop and ends
 * the thread.
 * start    called once, before the first run; may be null
 * stop     called once, after the last run; not after an error; its own error is returned by join, unless there is
 *          another one; may be null
 * release  called after the thread has been joined; may be null */
typedef struct mr_looper {
    mr_status (*start)(void *context, mr_error *error);
    mr_status (*run)(void *context, mr_error *error);
    mr_status (*stop)(void *context, mr_error *error);
    void (*release)(void *context);
    void *context;
} mr_looper;
/* Starts a thread that calls run at once and then every interval_secs until a stop is requested. The times of the calls
 * are multiples of the interval from the start on, however long a call takes; calls that are late follow at once.
 * interval_secs  0: without a pause between two calls
 * looper         copied. On an error release is not called
 * errors         MR_INVALID_ARGUMENT: the interval is negative, infinite or not a number */
MR_API mr_status mr_coordinator_start_looper(mr_coordinator *coordinator, double interval_secs, const mr_looper *looper,
                                             mr_error *error);

/* ---- Queue runners ---- */

/* Produces one element (with enqueue_many: rows of dimension 0). output is empty on entry and released after it is
 * enqueued; if it is left empty, nothing is enqueued. Each producer has its own thread.
 * errors  MR_OUT_OF_RANGE: end of the data */
typedef mr_status (*mr_produce_function)(void *context, mr_element *output, mr_error *error);
typedef struct mr_producer {
    mr_produce_function produce;
    void *context; /* must stay valid until release */
    void (*release)(
        void *context); /* called after the thread has been joined, or if the runner cannot start; may be null */
} mr_producer;

typedef struct mr_queue_runner_options {
    size_t size;       /* of this struct (api.h) */
    bool enqueue_many; /* producers return rows of dimension 0 */
} mr_queue_runner_options;
/* Starts a thread for each producer, which enqueues its elements until the end, a stop or an error. The queue is closed
 * when the last thread has ended; on an error or a stop it is closed with cancel_pending. */
MR_API mr_status mr_queue_runner_start(mr_queue *queue, const mr_producer *producers, int32_t count,
                                       const mr_queue_runner_options *options, mr_coordinator *coordinator,
                                       mr_error *error);

/* ---- Input producers ---- */

typedef struct mr_input_producer_options {
    size_t size;    /* of this struct (api.h) */
    int64_t epochs; /* 0: no limit */
    bool no_shuffle;
    uint64_t seed;
    int64_t capacity; /* of the queue; 0: 32 */
    const char *name;
} mr_input_producer_options;
/* Queues that a thread of the coordinator fills with strings (string scalars), rows of tensors, or 0 to limit - 1
 * (int64), epoch after epoch, shuffled again for each. Arguments are copied; tensors are referenced. The caller unrefs
 * the queue. */
MR_API mr_status mr_string_input_producer(const char *const *strings, int32_t count,
                                          const mr_input_producer_options *options, mr_coordinator *coordinator,
                                          mr_queue **queue, mr_error *error);
MR_API mr_status mr_slice_input_producer(const mr_tensor *components, int32_t count,
                                         const mr_input_producer_options *options, mr_coordinator *coordinator,
                                         mr_queue **queue, mr_error *error);
MR_API mr_status mr_range_input_producer(int64_t limit, const mr_input_producer_options *options,
                                         mr_coordinator *coordinator, mr_queue **queue, mr_error *error);
/* The context of a producer that returns the same element `epochs` times (below 0: indefinitely), then
 * MR_OUT_OF_RANGE. Initialize element, component_count and epochs. */
typedef struct mr_limit_epochs {
    const mr_tensor *element; /* borrowed */
    int32_t component_count;
    int64_t epochs;
    int64_t produced; /* so far */
} mr_limit_epochs;
MR_API mr_status mr_limit_epochs_produce(void *limit_epochs, mr_element *output, mr_error *error);

/* ---- Readers ---- */

typedef enum mr_reader_kind {
    MR_READER_WHOLE_FILE = 0, /* key: the path; value: the file's contents */
    MR_READER_TEXT_LINE,      /* key: path:line from 1; value: the line, without LF or CRLF */
    MR_READER_FIXED_LENGTH,   /* key: path:number; value: record_bytes */
    MR_READER_TF_RECORD,      /* key: path:offset; value: the record */
    MR_READER_IDENTITY,       /* key and value: the string from the queue */
} mr_reader_kind;

typedef struct mr_reader_options {
    size_t size;                                     /* of this struct (api.h) */
    int32_t skip_header_lines;                       /* MR_READER_TEXT_LINE */
    size_t header_bytes, record_bytes, footer_bytes; /* MR_READER_FIXED_LENGTH */
    size_t hop_bytes; /* MR_READER_FIXED_LENGTH: distance between the starts of records; 0: record_bytes */
    bool zlib;        /* MR_READER_FIXED_LENGTH: files are ZLIB streams. GZIP files are detected */
} mr_reader_options;

/* Reads the files whose names are dequeued from a queue of strings, one after the other. */
typedef struct mr_reader mr_reader;
MR_API mr_status mr_reader_new(mr_reader_kind kind, const mr_reader_options *options, mr_reader **reader,
                               mr_error *error);
MR_API void mr_reader_free(mr_reader *reader); /* null is allowed */
/* The next record. key and value are string scalars owned by the caller.
 * errors  MR_OUT_OF_RANGE: the queue of names is closed and empty; those of opening and reading a file */
MR_API mr_status mr_reader_read(mr_reader *reader, mr_queue *names, mr_tensor *key, mr_tensor *value, mr_error *error);
/* Up to count records of one file, as string vectors. An error after the first record is reported by the next read, so
 * that no record is lost; TensorFlow's ReaderReadUpTo fails immediately and drops the records before the error. */
MR_API mr_status mr_reader_read_up_to(mr_reader *reader, mr_queue *names, int64_t count, mr_tensor *keys,
                                      mr_tensor *values, mr_error *error);
MR_API int64_t mr_reader_records_produced(mr_reader *reader);
MR_API int64_t mr_reader_work_units_completed(mr_reader *reader); /* files read to their end */
/* Returns the reader to its initial state. */
MR_API void mr_reader_reset(mr_reader *reader);

/* ---- Batches ---- */

typedef struct mr_train_batch_options {
    size_t size; /* of this struct (api.h) */
    int64_t batch_size;
    int64_t capacity;          /* of the queue; 0: 32 */
    int64_t min_after_dequeue; /* shuffle: minimum number of elements that are mixed */
    bool shuffle;              /* shuffle_batch and shuffle_batch_join */
    uint64_t seed;
    bool enqueue_many; /* producers return rows of dimension 0 */
    bool dynamic_pad;  /* pad elements of different sizes; not with shuffle */
    bool allow_smaller_final_batch;
    /* maybe_batch: returns whether to keep an element; null: keep all. Called by the producer's thread */
    bool (*keep)(void *context, const mr_element *element);
    void *keep_context;
    const char *name;
} mr_train_batch_options;
/* batch (one producer), batch_join (several), shuffle_batch, shuffle_batch_join and their maybe_ forms: starts a thread
 * for each producer. mr_train_batch_next(queue) returns the batches.
 * producers  released when their thread is joined, on an error immediately
 * spec       of one element
 * errors     MR_INVALID_ARGUMENT: options that are inconsistent or have no effect */
MR_API mr_status mr_train_batch(const mr_producer *producers, int32_t count, const mr_element_spec *spec,
                                const mr_train_batch_options *options, mr_coordinator *coordinator, mr_queue **queue,
                                mr_error *error);
/* The next batch of a queue that mr_train_batch created. */
MR_API mr_status mr_train_batch_next(mr_queue *queue, mr_element *batch, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
