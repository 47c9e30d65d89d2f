/* Queues: a store of elements, and two waiting lists of attempts (see attempt.h).
 *
 * All state is guarded by one mutex. A thread whose attempt is not done spins briefly before it sleeps, because what it
 * waits for usually takes another thread only a few instructions. */
#include <millrace/queue.h>

#include "base/cpu.h"
#include "base/options.h"
#include "base/stack.h"
#include "queue/attempt.h"
#include "queue/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct line {
    mr_queue_attempt *first, *last;
} line;

struct mr_queue {
    _Atomic int32_t references;
    mr_queue_options options;
    char *name; /* owned */
    pthread_mutex_t mutex;
    /* Guarded by the mutex. */
    mr_queue_store store;
    line enqueues, dequeues; /* pending attempts */
    bool is_closed;
};

/* ---- Waiting lists ---- */

static void join(line *line, mr_queue_attempt *attempt)
{
    assert((line->first == nullptr) == (line->last == nullptr));
    assert(attempt->next == nullptr && attempt != line->last);
    if (line->last != nullptr)
        line->last->next = attempt;
    else
        line->first = attempt;
    line->last = attempt;
}

/* Removes the first attempt and marks it as done. Its owner may free it as soon as is_done is set, unless the owner
 * sleeps. */
static void finish_first(line *line)
{
    mr_queue_attempt *attempt = line->first;
    assert(attempt != nullptr && !atomic_load_explicit(&attempt->is_done, memory_order_relaxed));
    assert(attempt->moved >= 0 && attempt->moved <= attempt->count);
    line->first = attempt->next;
    if (line->first == nullptr) {
        assert(line->last == attempt);
        line->last = nullptr;
    }
    pthread_cond_t *sleeper = attempt->sleeper;
    atomic_store_explicit(&attempt->is_done, true, memory_order_release);
    if (sleeper != nullptr) pthread_cond_signal(sleeper);
}

static bool can_enqueue(const mr_queue *queue)
{
    return queue->options.capacity < 0 || queue->store.count < queue->options.capacity;
}

/* No more elements will be added: the queue is closed, and every enqueue that started before the close is done. */
static bool is_at_end(const mr_queue *queue)
{
    return queue->is_closed && queue->enqueues.first == nullptr;
}

/* The next element of an enqueue, retained: a row of the components, or all of them. */
static void next_element(const mr_queue *queue, const mr_queue_attempt *attempt, mr_tensor *element)
{
    for (int32_t c = 0; c < queue->options.component_count; c++) {
        element[c] = mr_tensor_ref(&attempt->components[c]);
        if (!attempt->are_rows) continue;
        mr_shape *shape = &element[c].shape;
        assert(shape->rank >= 1 && shape->dims[0] == attempt->count);
        for (int32_t d = 1; d < shape->rank; d++) shape->dims[d - 1] = shape->dims[d];
        shape->dims[--shape->rank] = 0;
        element[c].data = (char *)attempt->components[c].data +
                          (size_t)attempt->moved * (size_t)mr_shape_count(*shape) * mr_dtype_size(element[c].dtype);
    }
}

/* Mutex locked. Adds elements while there is space. True: done. */
static bool advance_enqueue(mr_queue *queue, mr_queue_attempt *attempt)
{
    mr_tensor element[MR_COMPONENTS_MAX];
    assert(attempt->moved < attempt->count);
    for (; attempt->moved < attempt->count && can_enqueue(queue); attempt->moved++) {
        if (!mr_queue_store_reserve(&queue->store)) {
            attempt->status = mr_fail(attempt->error, MR_RESOURCE_EXHAUSTED, "%s: no memory for %lld elements",
                                      queue->name, (long long)queue->store.count + 1);
            return true;
        }
        next_element(queue, attempt, element);
        mr_queue_store_put(&queue->store, element);
    }
    return attempt->moved == attempt->count;
}

/* TensorFlow's PriorityQueue returns sorted batches: it takes no element until all are available. A batch larger than
 * the queue could then never be completed, so it takes elements as they arrive, as with other queues. */
static bool waits_for_all(const mr_queue *queue, const mr_queue_attempt *attempt)
{
    int64_t capacity = queue->options.capacity;
    return queue->store.kind == MR_QUEUE_PRIORITY && (capacity < 0 || attempt->count <= capacity);
}

/* Mutex locked. Takes available elements. True: done; on error all elements have been returned. */
static bool advance_dequeue(mr_queue *queue, mr_queue_attempt *attempt)
{
    size_t width = (size_t)queue->options.component_count;
    int64_t kept = is_at_end(queue) ? 0 : queue->options.min_after_dequeue;
    bool may_take = !waits_for_all(queue, attempt) || queue->store.count >= attempt->count;
    assert(attempt->moved < attempt->count);
    for (; may_take && attempt->moved < attempt->count && queue->store.count > kept; attempt->moved++)
        mr_queue_store_take(&queue->store, &attempt->elements[(size_t)attempt->moved * width]);
    if (attempt->moved < attempt->count && !is_at_end(queue)) return false;
    if (attempt->moved == attempt->count || (attempt->may_be_fewer && attempt->moved > 0)) {
        if (!attempt->may_return) mr_queue_store_release(&queue->store, attempt->moved);
        return true;
    }
    assert(!may_take || queue->store.count == 0);
    attempt->status = mr_fail(attempt->error, MR_OUT_OF_RANGE,
                              "%s is closed and has insufficient elements (requested %lld, current size %lld)",
                              queue->name, (long long)attempt->count, (long long)(attempt->moved + queue->store.count));
    mr_queue_store_return(&queue->store, attempt->elements, attempt->moved);
    attempt->moved = 0;
    return true;
}

/* Mutex locked. Processes a list until its first attempt has to wait. True: the queue has changed. */
static bool serve_line(mr_queue *queue, line *line)
{
    bool has_changed = false;
    while (line->first != nullptr) {
        mr_queue_attempt *first = line->first;
        int64_t moved = first->moved;
        bool is_done = line == &queue->enqueues ? advance_enqueue(queue, first) : advance_dequeue(queue, first);
        has_changed |= is_done || first->moved != moved;
        if (!is_done) break;
        finish_first(line);
    }
    return has_changed;
}

/* Mutex locked. Called after every change; afterwards no attempt waits that could proceed. */
static void serve(mr_queue *queue)
{
    do {
        (void)serve_line(queue, &queue->enqueues);
    } while (serve_line(queue, &queue->dequeues));
    assert(queue->enqueues.first == nullptr || !can_enqueue(queue));
    assert(queue->dequeues.first == nullptr || waits_for_all(queue, queue->dequeues.first) ||
           queue->store.count <= queue->options.min_after_dequeue);
    assert(queue->dequeues.first == nullptr || !is_at_end(queue));
}

/* ---- Attempts ---- */

/* Mutex locked. */
static void start(mr_queue *queue, mr_queue_attempt *attempt)
{
    bool is_enqueue = attempt->components != nullptr;
    assert(attempt->count > 0 && attempt->moved == 0 && is_enqueue != (attempt->elements != nullptr));
    assert(!attempt->is_done && attempt->status == MR_OK && attempt->sleeper == nullptr);
    if (is_enqueue && queue->is_closed) {
        attempt->status = mr_fail(attempt->error, MR_CANCELLED, "%s is closed.", queue->name);
        atomic_store_explicit(&attempt->is_done, true, memory_order_release);
        return;
    }
    join(is_enqueue ? &queue->enqueues : &queue->dequeues, attempt);
    serve(queue);
}

void mr_queue_start(mr_queue *queue, mr_queue_attempt *attempt)
{
    pthread_mutex_lock(&queue->mutex);
    start(queue, attempt);
    pthread_mutex_unlock(&queue->mutex);
}

/* Mutex locked. True if the attempt would be done at once. */
static bool can_finish(const mr_queue *queue, const mr_queue_attempt *attempt)
{
    const mr_queue_store *store = &queue->store;
    if (attempt->components != nullptr) {
        int64_t capacity = queue->options.capacity;
        bool has_room = capacity < 0 || attempt->count <= capacity - store->count;
        return queue->is_closed || (queue->enqueues.first == nullptr && has_room);
    }
    if (queue->dequeues.first != nullptr) return false;
    return is_at_end(queue) || store->count - queue->options.min_after_dequeue >= attempt->count;
}

bool mr_queue_try(mr_queue *queue, mr_queue_attempt *attempt)
{
    pthread_mutex_lock(&queue->mutex);
    bool can = can_finish(queue, attempt);
    if (can) start(queue, attempt);
    assert(!can || attempt->is_done);
    pthread_mutex_unlock(&queue->mutex);
    return can;
}

static bool is_done(const mr_queue_attempt *attempt)
{
    return atomic_load_explicit(&attempt->is_done, memory_order_acquire);
}

mr_status mr_queue_wait(mr_queue *queue, mr_queue_attempt *attempt)
{
    constexpr int SPINS = 40;
    for (int i = 0; i < SPINS && !is_done(attempt); i++) mr_cpu_pause();
    if (is_done(attempt)) return attempt->status;
    pthread_cond_t done;
    pthread_cond_init(&done, nullptr);
    pthread_mutex_lock(&queue->mutex);
    assert(attempt->sleeper == nullptr);
    attempt->sleeper = &done;
    while (!is_done(attempt)) pthread_cond_wait(&done, &queue->mutex);
    pthread_mutex_unlock(&queue->mutex);
    pthread_cond_destroy(&done);
    return attempt->status;
}

/* Mutex locked. True if the attempt was in the line. */
static bool leave(line *line, mr_queue_attempt *attempt)
{
    mr_queue_attempt *previous = nullptr;
    for (mr_queue_attempt *at = line->first; at != nullptr; previous = at, at = at->next) {
        if (at != attempt) continue;
        if (previous != nullptr)
            previous->next = at->next;
        else
            line->first = at->next;
        if (line->last == at) line->last = previous;
        at->next = nullptr;
        return true;
    }
    return false;
}

void mr_queue_cancel(mr_queue *queue, mr_queue_attempt *attempt)
{
    pthread_mutex_lock(&queue->mutex);
    bool is_enqueue = attempt->components != nullptr;
    if (!is_done(attempt) && leave(is_enqueue ? &queue->enqueues : &queue->dequeues, attempt)) {
        if (!is_enqueue) {
            mr_queue_store_return(&queue->store, attempt->elements, attempt->moved);
            attempt->moved = 0;
        }
        attempt->status =
            mr_fail(attempt->error, MR_CANCELLED, "%s operation was cancelled", is_enqueue ? "Enqueue" : "Dequeue");
        pthread_cond_t *sleeper = attempt->sleeper;
        atomic_store_explicit(&attempt->is_done, true, memory_order_release);
        if (sleeper != nullptr) pthread_cond_signal(sleeper);
        serve(queue);
    }
    pthread_mutex_unlock(&queue->mutex);
}

void mr_queue_release(mr_queue *queue, int64_t count)
{
    mr_queue_store_release(&queue->store, count);
}

void mr_queue_return(mr_queue *queue, const mr_tensor *elements, int64_t count)
{
    pthread_mutex_lock(&queue->mutex);
    mr_queue_store_return(&queue->store, elements, count);
    serve(queue);
    pthread_mutex_unlock(&queue->mutex);
}

/* ---- Enqueue ---- */

/* Checks that a component is a tensor with elements, of the queue's dtype and shape. */
static mr_status check_component(const mr_queue *queue, const mr_tensor *component, int32_t index, bool are_rows,
                                 mr_error *error)
{
    char found[MR_SHAPE_TEXT_SIZE], expected[MR_SHAPE_TEXT_SIZE];
    mr_shape shape = component->shape, of_queue = queue->options.shapes[index];
    mr_dtype dtype = queue->options.dtypes[index];
    if (component->dtype != dtype)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: component %d is %s, not %s", queue->name, index,
                       mr_dtype_name(component->dtype), mr_dtype_name(dtype));
    bool is_known = shape.rank >= 0 && shape.rank <= MR_RANK_MAX;
    for (int32_t d = 0; is_known && d < shape.rank; d++) is_known = shape.dims[d] >= 0;
    if (!is_known || (component->data == nullptr && mr_shape_count(shape) != 0))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: component %d is not a tensor: %s", queue->name, index,
                       is_known ? "it has no data" : "its shape is not fully known");
    mr_shape row = shape;
    if (are_rows) {
        for (int32_t d = 1; d < row.rank; d++) row.dims[d - 1] = row.dims[d];
        row.dims[--row.rank] = 0;
    }
    if (mr_shape_compatible(row, of_queue)) return MR_OK;
    if (are_rows && of_queue.rank < MR_RANK_MAX) { /* the shape that all rows have together */
        memmove(of_queue.dims + 1, of_queue.dims, (size_t)of_queue.rank * sizeof of_queue.dims[0]);
        of_queue.dims[0] = shape.dims[0];
        of_queue.rank++;
    }
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s: Shape mismatch in tuple component %d. Expected %s, got %s",
                   queue->name, index, mr_shape_text(of_queue, expected, sizeof expected),
                   mr_shape_text(shape, found, sizeof found));
}

/* Starts the attempt and waits as the caller does. */
static mr_status finish(mr_queue *queue, mr_queue_attempt *attempt, mr_queue_patience *patience)
{
    if (patience != nullptr && !patience->may_wait) {
        patience->would_wait = !mr_queue_try(queue, attempt);
        return attempt->status;
    }
    mr_queue_start(queue, attempt);
    if (patience == nullptr || is_done(attempt)) return mr_queue_wait(queue, attempt);
    return patience->wait(patience->context, queue, attempt);
}

mr_status mr_queue_enqueue_with(mr_queue *queue, const mr_tensor *components, bool are_rows,
                                mr_queue_patience *patience, mr_error *error)
{
    if (queue == nullptr || components == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "enqueue: %s is null", queue == nullptr ? "queue" : "components");
    for (int32_t c = 0; c < queue->options.component_count; c++) {
        if (are_rows && (components[c].shape.rank < 1 || components[c].shape.rank > MR_RANK_MAX ||
                         components[c].shape.dims[0] != components[0].shape.dims[0]))
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "%s: component %d has a different number of rows than component 0", queue->name, c);
        MR_TRY(check_component(queue, &components[c], c, are_rows, error));
    }
    int64_t count = are_rows ? components[0].shape.dims[0] : 1;
    if (count == 0) return MR_OK;
    mr_queue_attempt attempt = {.count = count, .components = components, .are_rows = are_rows, .error = error};
    return finish(queue, &attempt, patience);
}

mr_status mr_queue_enqueue(mr_queue *queue, const mr_tensor *components, mr_error *error)
{
    return mr_queue_enqueue_with(queue, components, false, nullptr, error);
}

mr_status mr_queue_enqueue_many(mr_queue *queue, const mr_tensor *components, mr_error *error)
{
    return mr_queue_enqueue_with(queue, components, true, nullptr, error);
}

/* ---- Dequeue ---- */

static mr_status dequeue_one(mr_queue *queue, mr_tensor *components, mr_queue_patience *patience, mr_error *error)
{
    mr_queue_attempt attempt = {.count = 1, .elements = components, .error = error};
    return finish(queue, &attempt, patience);
}

/* Checks that elements can be rows of one tensor. */
static mr_status check_batch(const mr_queue *queue, int64_t count, mr_error *error)
{
    constexpr int64_t COUNT_MAX = (int64_t)1 << 28;
    const mr_queue_options *o = &queue->options;
    for (int32_t c = 0; c < o->component_count; c++) {
        if (o->shapes[c].rank < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "%s's DequeueMany and DequeueUpTo require the components to have specified shapes.",
                           queue->name);
        if (o->shapes[c].rank == MR_RANK_MAX)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: elements of %d dimensions cannot be rows of a batch",
                           queue->name, MR_RANK_MAX);
    }
    if (count < 0 || count > COUNT_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: a batch of %lld elements is not possible", queue->name,
                       (long long)count);
    return MR_OK;
}

/* Creates the components of a batch. rows: space for count tensors. On error all results are released. */
static mr_status stack(const mr_queue *queue, const mr_tensor *elements, int64_t count, mr_tensor *rows,
                       mr_tensor *components, mr_error *error)
{
    const mr_queue_options *o = &queue->options;
    size_t width = (size_t)o->component_count;
    for (size_t c = 0; c < width; c++) {
        for (int64_t i = 0; i < count; i++) rows[i] = elements[(size_t)i * width + c];
        mr_shape shape = mr_stack_shape(rows, count, o->shapes[c]);
        mr_status status = mr_stack(rows, count, o->dtypes[c], shape, nullptr, &components[c], error);
        if (status == MR_OK) continue;
        while (c-- > 0) mr_tensor_deinit(&components[c]);
        return status;
    }
    return MR_OK;
}

static mr_status dequeue_batch(mr_queue *queue, int64_t count, bool may_be_fewer, mr_tensor *components,
                               mr_queue_patience *patience, mr_error *error)
{
    MR_TRY(check_batch(queue, count, error));
    size_t width = (size_t)queue->options.component_count;
    mr_queue_attempt attempt = {.count = count, .may_be_fewer = may_be_fewer, .may_return = true, .error = error};
    mr_tensor *elements = calloc((size_t)count * width + 1, sizeof *elements);
    mr_tensor *rows = calloc((size_t)count + 1, sizeof *rows);
    mr_status status = MR_OK;
    attempt.elements = elements;
    if (elements == nullptr || rows == nullptr) {
        status =
            mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: no memory for %lld elements", queue->name, (long long)count);
    } else if (count > 0) {
        status = finish(queue, &attempt, patience);
    }
    if (status == MR_OK && (patience == nullptr || !patience->would_wait)) {
        assert(attempt.moved == count || (may_be_fewer && attempt.moved > 0));
        status = stack(queue, elements, attempt.moved, rows, components, error);
        if (status != MR_OK) {
            mr_queue_return(queue, elements, attempt.moved);
        } else {
            for (size_t i = 0; i < (size_t)attempt.moved * width; i++) mr_tensor_deinit(&elements[i]);
            mr_queue_release(queue, attempt.moved);
        }
    }
    free(elements);
    free(rows);
    return status;
}

mr_status mr_queue_dequeue_with(mr_queue *queue, int64_t count, bool may_be_fewer, mr_tensor *components,
                                mr_queue_patience *patience, mr_error *error)
{
    if (queue == nullptr || components == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "dequeue: %s is null", queue == nullptr ? "queue" : "components");
    if (count == -1 && !may_be_fewer) return dequeue_one(queue, components, patience, error);
    may_be_fewer &= queue->store.kind != MR_QUEUE_PRIORITY;
    return dequeue_batch(queue, count, may_be_fewer, components, patience, error);
}

mr_status mr_queue_dequeue(mr_queue *queue, mr_tensor *components, mr_error *error)
{
    return mr_queue_dequeue_with(queue, -1, false, components, nullptr, error);
}

mr_status mr_queue_dequeue_many(mr_queue *queue, int64_t count, mr_tensor *components, mr_error *error)
{
    if (count < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: a batch of %lld elements is not possible",
                       queue != nullptr ? queue->name : "dequeue", (long long)count);
    return mr_queue_dequeue_with(queue, count, false, components, nullptr, error);
}

mr_status mr_queue_dequeue_up_to(mr_queue *queue, int64_t count, mr_tensor *components, mr_error *error)
{
    return mr_queue_dequeue_with(queue, count, true, components, nullptr, error);
}

/* ---- Close and state ---- */

void mr_queue_close(mr_queue *queue, bool cancel_pending)
{
    if (queue == nullptr) return;
    pthread_mutex_lock(&queue->mutex);
    queue->is_closed = true;
    while (cancel_pending && queue->enqueues.first != nullptr) {
        mr_queue_attempt *first = queue->enqueues.first;
        first->status = mr_fail(first->error, MR_CANCELLED, "Enqueue operation was cancelled");
        finish_first(&queue->enqueues);
    }
    serve(queue);
    pthread_mutex_unlock(&queue->mutex);
}

bool mr_queue_is_closed(mr_queue *queue)
{
    if (queue == nullptr) return true;
    pthread_mutex_lock(&queue->mutex);
    bool is_closed = queue->is_closed;
    pthread_mutex_unlock(&queue->mutex);
    return is_closed;
}

int64_t mr_queue_size(mr_queue *queue)
{
    if (queue == nullptr) return 0;
    pthread_mutex_lock(&queue->mutex);
    int64_t count = queue->store.count;
    pthread_mutex_unlock(&queue->mutex);
    return count;
}

const mr_queue_options *mr_queue_describe(const mr_queue *queue)
{
    return queue == nullptr ? nullptr : &queue->options;
}

/* ---- Creation ---- */

static const char *kind_name(mr_queue_kind kind)
{
    static const char *const names[] = {"FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue"};
    size_t index = (size_t)kind;
    return index < sizeof names / sizeof *names ? names[index] : nullptr;
}

static mr_status check_shapes(mr_queue_kind kind, const mr_queue_options *o, const char *name, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    bool may_pad = kind == MR_QUEUE_PADDING_FIFO;
    for (int32_t c = 0; c < o->component_count; c++) {
        mr_shape shape = o->shapes[c];
        if (mr_dtype_size(o->dtypes[c]) == 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: component %d has the unsupported dtype %s", name, c,
                           mr_dtype_name(o->dtypes[c]));
        if (shape.rank > MR_RANK_MAX)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: component %d has %d dimensions, more than %d", name, c,
                           shape.rank, MR_RANK_MAX);
        bool is_known = true;
        for (int32_t d = 0; d < shape.rank; d++) is_known &= shape.dims[d] >= 0;
        if (!may_pad && !is_known)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: component %d has an unknown dimension", name, c);
        if (is_known && shape.rank >= 0 && mr_shape_count(shape) < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: component %d has shape %s, which is too large", name, c,
                           mr_shape_text(shape, text, sizeof text));
        if (may_pad && shape.rank < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: component %d has an unknown number of dimensions", name, c);
    }
    return MR_OK;
}

static mr_status check_options(mr_queue_kind kind, const mr_queue_options *o, mr_error *error)
{
    if (o == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_queue_new: options is null");
    if (kind_name(kind) == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_queue_new: unknown kind of queue %d", (int)kind);
    const char *name = o->name != nullptr ? o->name : kind_name(kind);
    if (o->component_count < 1 || o->component_count > MR_COMPONENTS_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %d components (expected 1 to %d)", name, o->component_count,
                       MR_COMPONENTS_MAX);
    MR_TRY(check_shapes(kind, o, name, error));
    if (kind == MR_QUEUE_PRIORITY && (o->dtypes[0] != MR_INT64 || o->shapes[0].rank != 0))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: component 0 must be the priority, an int64 scalar", name);
    bool is_random = kind == MR_QUEUE_RANDOM_SHUFFLE;
    if (!is_random && (o->min_after_dequeue != 0 || o->seed != 0))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s has no effect: only RandomShuffleQueue uses it", name,
                       o->seed != 0 ? "seed" : "min_after_dequeue");
    if (o->min_after_dequeue < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: min_after_dequeue %lld must be >= 0", name,
                       (long long)o->min_after_dequeue);
    if (is_random && o->capacity >= 0 && o->min_after_dequeue >= o->capacity)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: min_after_dequeue %lld must be < capacity %lld", name,
                       (long long)o->min_after_dequeue, (long long)o->capacity);
    return MR_OK;
}

mr_status mr_queue_new(mr_queue_kind kind, const mr_queue_options *given, mr_queue **queue, mr_error *error)
{
    mr_queue_options options;
    if (queue == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_queue_new: queue is null");
    *queue = nullptr;
    MR_TRY(MR_OPTIONS_READ(mr_queue_options, &options, given, error));
    MR_TRY(check_options(kind, given == nullptr ? nullptr : &options, error));
    mr_queue *made = calloc(1, sizeof *made);
    char *name = strdup(options.name != nullptr ? options.name : kind_name(kind));
    if (made == nullptr || name == nullptr) {
        free(made);
        free(name);
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a queue");
    }
    uint64_t seed = options.seed;
    if (seed == 0) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 20 ^ (uintptr_t)made;
    }
    *made = (mr_queue){.references = 1, .options = options, .name = name};
    made->options.name = name;
    mr_queue_store_init(&made->store, kind, options.component_count, seed);
    pthread_mutex_init(&made->mutex, nullptr);
    *queue = made;
    return MR_OK;
}

void mr_queue_seed(mr_queue *queue, uint64_t seed, uint64_t seed2)
{
    mr_queue_store_seed(&queue->store, seed, seed2);
}

void mr_queue_reset(mr_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    mr_queue_store_reset(&queue->store);
    queue->is_closed = false;
    serve(queue);
    pthread_mutex_unlock(&queue->mutex);
}

mr_queue *mr_queue_ref(mr_queue *queue)
{
    if (queue == nullptr) return nullptr;
    int32_t before = atomic_fetch_add_explicit(&queue->references, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
    return queue;
}

void mr_queue_unref(mr_queue *queue)
{
    if (queue == nullptr) return;
    int32_t before = atomic_fetch_sub_explicit(&queue->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before != 1) return;
    assert(queue->enqueues.first == nullptr && queue->dequeues.first == nullptr);
    mr_queue_store_deinit(&queue->store);
    pthread_mutex_destroy(&queue->mutex);
    free(queue->name);
    free(queue);
}
