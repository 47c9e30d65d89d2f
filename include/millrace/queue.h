/* Queues, coordinators and queue runners: TensorFlow 1's way of feeding, from C.
 *
 * ```c
 * mr_error error = {0};
 * mr_queue *queue = nullptr;
 * mr_queue_options options = {.capacity = 10, .component_count = 1, .dtypes = {MR_INT64}, .shapes = {MR_SCALAR}};
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
 * An element is a few tensors. Queues hold shares of tensors, not copies. Any function may be called from any thread. */
#ifndef MILLRACE_QUEUE_H
#define MILLRACE_QUEUE_H

#include <millrace/dataset.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Queues ---- */

typedef enum mr_queue_kind {
    MR_QUEUE_FIFO = 0,       /* in the order of enqueueing */
    MR_QUEUE_RANDOM_SHUFFLE, /* any that is there, drawn at random; it keeps min_after_dequeue so as to mix well */
    MR_QUEUE_PADDING_FIFO,   /* elements whose sizes differ; dequeue_many pads them with 0 and "" to the longest */
    MR_QUEUE_PRIORITY,       /* component 0 is a priority (int64 scalar): the smallest first, equal ones in order */
} mr_queue_kind;

#define MR_QUEUE_UNBOUNDED (-1)

typedef struct mr_queue_options {
    /* Elements. As in TensorFlow, a negative capacity is MR_QUEUE_UNBOUNDED, and with 0 nothing can ever be enqueued. */
    int64_t capacity;
    int32_t component_count;
    mr_dtype dtypes[MR_COMPONENTS_MAX];
    mr_shape
        shapes[MR_COMPONENTS_MAX]; /* of one element. Rank −1: any, and dequeue_many is then refused. −1 sizes are for
                                           MR_QUEUE_PADDING_FIFO */
    int64_t min_after_dequeue; /* MR_QUEUE_RANDOM_SHUFFLE: what stays in the queue until it is closed; below capacity */
    uint64_t seed;             /* MR_QUEUE_RANDOM_SHUFFLE; 0: another one each time */
    const char *name;          /* for messages; copied; null: the kind's */
    /* Of queues that mr_train_batch made: */
    int64_t batch_size;
    bool allow_smaller_final_batch;
} mr_queue_options;

typedef struct mr_queue mr_queue;
/* errors  MR_INVALID_ARGUMENT: options that contradict each other */
mr_status mr_queue_new(mr_queue_kind kind, const mr_queue_options *options, mr_queue **queue, mr_error *error);
mr_queue *mr_queue_ref(mr_queue *queue);
void mr_queue_unref(mr_queue *queue); /* null is allowed */

/* Waits while the queue is full.
 * components  component_count of them, of the queue's dtypes and shapes; a share is taken
 * errors      MR_INVALID_ARGUMENT; MR_CANCELLED: closed (also while waiting, when the close cancels) */
mr_status mr_queue_enqueue(mr_queue *queue, const mr_tensor *components, mr_error *error);
/* The rows of dimension 0, one element each, in order; others may come between them. On MR_CANCELLED some are in. */
mr_status mr_queue_enqueue_many(mr_queue *queue, const mr_tensor *components, mr_error *error);
/* Waits for an element. components are empty on entry and owned by the caller on return.
 * errors  MR_OUT_OF_RANGE: closed and empty */
mr_status mr_queue_dequeue(mr_queue *queue, mr_tensor *components, mr_error *error);
/* count elements as one batch: waits for all of them, and takes them as they come; MR_QUEUE_PRIORITY takes none before all
 * are there, so that the batch is sorted, unless count is above its capacity.
 * errors  MR_OUT_OF_RANGE: closed, and fewer are left; MR_RESOURCE_EXHAUSTED; on both, all elements return to the queue
 *         MR_INVALID_ARGUMENT: the queue has no shapes */
mr_status mr_queue_dequeue_many(mr_queue *queue, int64_t count, mr_tensor *components, mr_error *error);
/* The same, but once the queue is closed as many as are left, if any. MR_QUEUE_PRIORITY gives all or none, as
 * TensorFlow's does. */
mr_status mr_queue_dequeue_up_to(mr_queue *queue, int64_t count, mr_tensor *components, mr_error *error);
/* Nothing comes in any more; what is there can be dequeued. cancel_pending: who waits to enqueue is turned away, too. May
 * be called again (which is an error in TensorFlow): then to turn those away. */
void mr_queue_close(mr_queue *queue, bool cancel_pending);
bool mr_queue_is_closed(mr_queue *queue);
int64_t mr_queue_size(mr_queue *queue);
const mr_queue_options *mr_queue_describe(const mr_queue *queue);

/* ---- Coordinator ---- */

/* Lets threads stop together. A thread's error is carried to whoever joins; MR_OUT_OF_RANGE (the data has ended) and
 * MR_CANCELLED stop without an error. */
typedef struct mr_coordinator mr_coordinator;
mr_status mr_coordinator_new(mr_coordinator **coordinator, mr_error *error);
/* Stops and joins what still runs. Null is allowed. */
void mr_coordinator_free(mr_coordinator *coordinator);
bool mr_coordinator_should_stop(mr_coordinator *coordinator);
/* reason  why; null, or one of the statuses above: a clean stop. The first one is kept */
void mr_coordinator_request_stop(mr_coordinator *coordinator, const mr_error *reason);
/* Waits until stop is requested, or so long; true: it was. wait_ns below 0: for ever */
bool mr_coordinator_wait_for_stop(mr_coordinator *coordinator, int64_t wait_ns);
/* A thread of a coordinator.
 * run      what it does; what it returns, when not MR_OK, requests a stop
 * stop     called once when a stop is requested, from whichever thread requests it, so that run does not wait any more;
 *          may be null
 * release  called when the thread has been joined; may be null */
typedef struct mr_member {
    mr_status (*run)(void *context, mr_coordinator *coordinator, mr_error *error);
    void (*stop)(void *context);
    void (*release)(void *context);
    void *context;
} mr_member;
/* member  copied. On an error release is not called */
mr_status mr_coordinator_start(mr_coordinator *coordinator, const mr_member *member, mr_error *error);
/* Waits for all threads. After a stop was requested it waits grace_ns more (below 0: for ever).
 * errors  the first reason that was none of a clean stop; MR_DEADLINE_EXCEEDED: threads that did not stop in time; they
 *         are left running and joined by free */
mr_status mr_coordinator_join(mr_coordinator *coordinator, int64_t grace_ns, mr_error *error);
/* For another run, after join. */
void mr_coordinator_clear_stop(mr_coordinator *coordinator);

/* ---- Queue runners ---- */

/* Makes one element (many: rows of dimension 0). output is empty on entry, and is given back after it is enqueued; when it
 * is left empty nothing is enqueued. Called from one thread at a time, each producer from its own.
 * errors  MR_OUT_OF_RANGE: there is no more */
typedef mr_status (*mr_produce_function)(void *context, mr_element *output, mr_error *error);
typedef struct mr_producer {
    mr_produce_function produce;
    void *context;                  /* lives until the coordinator has joined the thread */
    void (*release)(void *context); /* then; may be null. Also when the runner cannot be started */
} mr_producer;

typedef struct mr_queue_runner_options {
    bool enqueue_many;
} mr_queue_runner_options;
/* A thread for each producer, which enqueues what it makes until the end, a stop or an error. When the last one has ended
 * the queue is closed; on an error or a stop it is closed with cancel_pending. */
mr_status mr_queue_runner_start(mr_queue *queue, const mr_producer *producers, int32_t count,
                                const mr_queue_runner_options *options, mr_coordinator *coordinator, mr_error *error);

/* ---- Input producers ---- */

typedef struct mr_input_producer_options {
    int64_t epochs; /* 0: without end */
    bool no_shuffle;
    uint64_t seed;
    int64_t capacity; /* of the queue; 0: 32 */
    const char *name;
} mr_input_producer_options;
/* Queues that a thread of the coordinator fills: with strings (string scalars), rows of tensors, or 0 … limit − 1 (int64),
 * epoch after epoch, each shuffled anew. What is passed in is copied (a share). The caller unrefs the queue. */
mr_status mr_string_input_producer(const char *const *strings, int32_t count, const mr_input_producer_options *options,
                                   mr_coordinator *coordinator, mr_queue **queue, mr_error *error);
mr_status mr_slice_input_producer(const mr_tensor *components, int32_t count, const mr_input_producer_options *options,
                                  mr_coordinator *coordinator, mr_queue **queue, mr_error *error);
mr_status mr_range_input_producer(int64_t limit, const mr_input_producer_options *options, mr_coordinator *coordinator,
                                  mr_queue **queue, mr_error *error);
/* A producer that gives the same element so many times (below 0: for ever), then MR_OUT_OF_RANGE. {.element, .epochs} */
typedef struct mr_limit_epochs {
    const mr_tensor *element; /* borrowed */
    int32_t component_count;
    int64_t epochs;
    int64_t given;
} mr_limit_epochs;
mr_status mr_limit_epochs_produce(void *limit_epochs, mr_element *output, mr_error *error);

/* ---- Readers ---- */

typedef enum mr_reader_kind {
    MR_READER_WHOLE_FILE = 0, /* key: the path; value: all bytes */
    MR_READER_TEXT_LINE,      /* key: path:line from 1; value: the line, without LF or CRLF */
    MR_READER_FIXED_LENGTH,   /* key: path:number; value: record_bytes */
    MR_READER_TF_RECORD,      /* key: path:offset; value: the record */
} mr_reader_kind;

typedef struct mr_reader_options {
    int32_t skip_header_lines;                       /* MR_READER_TEXT_LINE */
    size_t header_bytes, record_bytes, footer_bytes; /* MR_READER_FIXED_LENGTH */
    size_t hop_bytes;                                /* …: from record to record; 0: record_bytes */
} mr_reader_options;

/* Reads the files whose names come out of a queue of strings, one after the other. */
typedef struct mr_reader mr_reader;
mr_status mr_reader_new(mr_reader_kind kind, const mr_reader_options *options, mr_reader **reader, mr_error *error);
void mr_reader_free(mr_reader *reader); /* null is allowed */
/* The next record. key and value are string scalars owned by the caller.
 * errors  MR_OUT_OF_RANGE: the queue of names is closed and empty; what opening and reading a file gives */
mr_status mr_reader_read(mr_reader *reader, mr_queue *names, mr_tensor *key, mr_tensor *value, mr_error *error);
/* Up to count records of one file: string vectors. An error behind the first record is reported by the next read, so that
 * no record is lost; TensorFlow's ReaderReadUpTo fails at once and drops the records before it. */
mr_status mr_reader_read_up_to(mr_reader *reader, mr_queue *names, int64_t count, mr_tensor *keys, mr_tensor *values,
                               mr_error *error);
int64_t mr_reader_records_produced(mr_reader *reader);
int64_t mr_reader_work_units_completed(mr_reader *reader); /* files read to their end */
/* As new. */
void mr_reader_reset(mr_reader *reader);

/* ---- Batches ---- */

typedef struct mr_train_batch_options {
    int64_t batch_size;
    int64_t capacity;          /* of the queue; 0: 32 */
    int64_t min_after_dequeue; /* shuffle: how many are mixed at least */
    bool shuffle;              /* shuffle_batch and shuffle_batch_join */
    uint64_t seed;
    bool enqueue_many; /* producers make many elements at a time */
    bool dynamic_pad;  /* sizes differ; not with shuffle */
    bool allow_smaller_final_batch;
    /* maybe_batch: whether an element is kept; null: all are. Called by the producer's thread */
    bool (*keep)(void *context, const mr_element *element);
    void *keep_context;
    const char *name;
} mr_train_batch_options;
/* batch (one producer), batch_join (several), shuffle_batch, shuffle_batch_join and their maybe_ forms: starts a thread for
 * each producer. The batches come from mr_train_batch_next(queue).
 * producers  released when their thread is joined, and on an error at once
 * spec       of one element
 * errors     MR_INVALID_ARGUMENT: options that contradict each other or have no effect */
mr_status mr_train_batch(const mr_producer *producers, int32_t count, const mr_element_spec *spec,
                         const mr_train_batch_options *options, mr_coordinator *coordinator, mr_queue **queue,
                         mr_error *error);
/* The next batch of a queue that mr_train_batch made. */
mr_status mr_train_batch_next(mr_queue *queue, mr_element *batch, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
