/* Queues: a store of elements, and two lines of those who wait.
 *
 * Everybody is served in the order of coming, as TensorFlow does it: who waits for ten elements keeps those behind waiting,
 * and takes elements as they come. One mutex; whoever changes what the first of a line waits for wakes that one alone.
 * Before it sleeps a thread looks again for a moment, since what it waits for is mostly a thread's work away. */
#include <millrace/queue.h>

#include "base/random.h"
#include "base/stack.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One who waits, on its own stack. */
typedef struct waiter {
    struct waiter *next;
    pthread_cond_t ready;
    bool is_asleep;
} waiter;

typedef struct line {
    waiter *first, *last;
} line;

struct mr_queue {
    _Atomic int32_t references;
    mr_queue_kind kind;
    mr_queue_options options;
    char *name; /* owned */
    pthread_mutex_t mutex;
    /* Guarded by the mutex: */
    line enqueuers, dequeuers;
    bool is_closed;
    uint64_t cancels;  /* times that pending enqueues were cancelled */
    mr_tensor *store;  /* owned; a ring of elements of component_count tensors. The priority queue's is a heap */
    uint64_t *serials; /* owned; of the priority queue: which came when */
    uint64_t serial;
    int64_t room, first; /* elements that the store holds; where the ring begins */
    _Atomic int64_t count;
    mr_random random;
};

static const char *kind_name(mr_queue_kind kind)
{
    static const char *const names[] = {"FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue"};
    return names[kind];
}

/* ---- The store ---- */

static mr_tensor *element_at(const mr_queue *queue, int64_t index)
{
    int64_t at = queue->first + index;
    if (at >= queue->room) at -= queue->room;
    return &queue->store[at * queue->options.component_count];
}

static mr_status grow(mr_queue *queue, mr_error *error)
{
    if (queue->count < queue->room) return MR_OK;
    int64_t room = queue->room == 0 ? 16 : 2 * queue->room;
    size_t width = (size_t)queue->options.component_count;
    mr_tensor *store = calloc((size_t)room * width, sizeof *store);
    uint64_t *serials = queue->kind == MR_QUEUE_PRIORITY ? calloc((size_t)room, sizeof *serials) : nullptr;
    if (store == nullptr || (queue->kind == MR_QUEUE_PRIORITY && serials == nullptr)) {
        free(store);
        free(serials);
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: no memory for %lld elements", queue->name, (long long)room);
    }
    for (int64_t i = 0; i < queue->count; i++)
        memcpy(&store[(size_t)i * width], element_at(queue, i), width * sizeof *store);
    if (serials != nullptr && queue->count > 0) memcpy(serials, queue->serials, (size_t)queue->count * sizeof *serials);
    free(queue->store);
    free(queue->serials);
    queue->store = store;
    queue->serials = serials;
    queue->room = room;
    queue->first = 0;
    return MR_OK;
}

static bool is_before(const mr_queue *queue, int64_t a, int64_t b)
{
    int64_t x = mr_tensor_int64s(element_at(queue, a))[0], y = mr_tensor_int64s(element_at(queue, b))[0];
    return x != y ? x < y : queue->serials[a] < queue->serials[b];
}

static void swap(mr_queue *queue, int64_t a, int64_t b)
{
    mr_tensor *x = element_at(queue, a), *y = element_at(queue, b);
    for (int32_t c = 0; c < queue->options.component_count; c++) {
        mr_tensor kept = x[c];
        x[c] = y[c];
        y[c] = kept;
    }
    uint64_t serial = queue->serials[a];
    queue->serials[a] = queue->serials[b];
    queue->serials[b] = serial;
}

/* The tensors are moved in. There is room. */
static void put_in(mr_queue *queue, const mr_tensor *element)
{
    int64_t at = queue->count;
    memcpy(element_at(queue, at), element, (size_t)queue->options.component_count * sizeof *element);
    queue->count++;
    if (queue->kind != MR_QUEUE_PRIORITY) return;
    queue->serials[at] = queue->serial++;
    for (; at > 0 && is_before(queue, at, (at - 1) / 2); at = (at - 1) / 2) swap(queue, at, (at - 1) / 2);
}

static void take_first(mr_queue *queue, mr_tensor *element)
{
    memcpy(element, element_at(queue, 0), (size_t)queue->options.component_count * sizeof *element);
    if (++queue->first == queue->room) queue->first = 0;
    queue->count--;
}

static void take_smallest(mr_queue *queue, mr_tensor *element)
{
    int64_t last = queue->count - 1;
    if (last > 0) swap(queue, 0, last);
    memcpy(element, element_at(queue, last), (size_t)queue->options.component_count * sizeof *element);
    queue->count--;
    for (int64_t at = 0;;) {
        int64_t child = 2 * at + 1;
        if (child >= last) return;
        if (child + 1 < last && is_before(queue, child + 1, child)) child++;
        if (!is_before(queue, child, at)) return;
        swap(queue, child, at);
        at = child;
    }
}

static void take_out(mr_queue *queue, mr_tensor *element)
{
    size_t width_bytes = (size_t)queue->options.component_count * sizeof *element;
    if (queue->kind == MR_QUEUE_PRIORITY) {
        take_smallest(queue, element);
    } else if (queue->kind == MR_QUEUE_RANDOM_SHUFFLE) {
        int64_t drawn = (int64_t)mr_random_below(&queue->random, (uint64_t)queue->count);
        memcpy(element, element_at(queue, drawn), width_bytes);
        if (drawn != queue->count - 1)
            memcpy(element_at(queue, drawn), element_at(queue, queue->count - 1), width_bytes);
        queue->count--;
    } else {
        take_first(queue, element);
    }
}

/* Elements that were taken out go back to the front, in their order. There was room for them. */
static void put_back(mr_queue *queue, mr_tensor *elements, int64_t count)
{
    size_t width = (size_t)queue->options.component_count;
    if (queue->kind != MR_QUEUE_FIFO && queue->kind != MR_QUEUE_PADDING_FIFO) {
        for (int64_t i = 0; i < count; i++) put_in(queue, &elements[(size_t)i * width]);
        return;
    }
    for (int64_t i = count - 1; i >= 0; i--) {
        if (--queue->first < 0) queue->first += queue->room;
        queue->count++;
        memcpy(element_at(queue, 0), &elements[(size_t)i * width], width * sizeof *elements);
    }
}

/* ---- Waiting ---- */

static bool can_enqueue(const mr_queue *queue)
{
    return queue->options.capacity < 0 || queue->count < queue->options.capacity;
}

static bool can_dequeue(const mr_queue *queue)
{
    return queue->count > (queue->is_closed ? 0 : queue->options.min_after_dequeue);
}

static void wake_first(const line *line)
{
    if (line->first != nullptr && line->first->is_asleep) pthread_cond_signal(&line->first->ready);
}

static void join_line(line *line, waiter *self)
{
    *self = (waiter){0};
    pthread_cond_init(&self->ready, nullptr);
    if (line->last != nullptr)
        line->last->next = self;
    else
        line->first = self;
    line->last = self;
}

/* The first leaves: whoever is behind looks whether it is its turn. */
static void leave_line(line *line, waiter *self)
{
    waiter *before = nullptr;
    for (waiter *w = line->first; w != self; w = w->next) before = w;
    if (before != nullptr)
        before->next = self->next;
    else
        line->first = self->next;
    if (line->last == self) line->last = before;
    pthread_cond_destroy(&self->ready);
    if (before == nullptr) wake_first(line);
}

/* A short while without the lock, in which the other side may come along. */
static void look_around(mr_queue *queue, int64_t count)
{
    constexpr int LOOKS = 40;
    pthread_mutex_unlock(&queue->mutex);
    for (int i = 0; i < LOOKS && atomic_load_explicit(&queue->count, memory_order_relaxed) == count; i++)
        __builtin_ia32_pause();
    pthread_mutex_lock(&queue->mutex);
}

/* Lock held. Something to wait for again. */
static void sleep_in(mr_queue *queue, waiter *self, bool *has_looked)
{
    int64_t count = queue->count;
    if (!*has_looked) {
        *has_looked = true;
        look_around(queue, count);
        return;
    }
    *has_looked = false;
    self->is_asleep = true;
    pthread_cond_wait(&self->ready, &queue->mutex);
    self->is_asleep = false;
}

/* ---- Enqueue ---- */

static mr_status check_components(const mr_queue *queue, const mr_tensor *components, bool are_many, mr_error *error)
{
    const mr_queue_options *o = &queue->options;
    char found[MR_SHAPE_TEXT_SIZE], wanted[MR_SHAPE_TEXT_SIZE];
    for (int32_t c = 0; c < o->component_count; c++) {
        mr_shape shape = components[c].shape;
        if (components[c].dtype != o->dtypes[c])
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: component %d is %s, not %s", queue->name, c,
                           mr_dtype_name(components[c].dtype), mr_dtype_name(o->dtypes[c]));
        if (are_many && (shape.rank < 1 || shape.dims[0] != components[0].shape.dims[0]))
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: component %d does not have as many rows as component 0",
                           queue->name, c);
        if (are_many) {
            for (int32_t d = 1; d < shape.rank; d++) shape.dims[d - 1] = shape.dims[d];
            shape.dims[--shape.rank] = 0;
        }
        if (!mr_shape_compatible(shape, o->shapes[c]))
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: component %d has shape %s, not %s", queue->name, c,
                           mr_shape_text(shape, found, sizeof found),
                           mr_shape_text(o->shapes[c], wanted, sizeof wanted));
    }
    return MR_OK;
}

/* Lock held. One element, moved in when it is MR_OK. */
static mr_status enqueue_one(mr_queue *queue, waiter *self, const mr_tensor *element, uint64_t cancels,
                             bool was_waiting, mr_error *error)
{
    bool has_looked = false;
    for (;;) {
        bool is_first = queue->enqueuers.first == self || (self == nullptr && queue->enqueuers.first == nullptr);
        /* Who was there before the close may still come in, unless the close cancels. */
        if (queue->cancels != cancels || (queue->is_closed && !was_waiting))
            return mr_fail(error, MR_CANCELLED, "%s is closed", queue->name);
        if (is_first && can_enqueue(queue)) {
            MR_TRY(grow(queue, error));
            put_in(queue, element);
            if (can_dequeue(queue)) wake_first(&queue->dequeuers);
            return MR_OK;
        }
        if (self == nullptr) return MR_DEADLINE_EXCEEDED;
        was_waiting = true;
        sleep_in(queue, self, &has_looked);
    }
}

/* The share of a row, or of the whole. */
static void take_share(const mr_queue *queue, const mr_tensor *components, int64_t row, mr_tensor *element)
{
    for (int32_t c = 0; c < queue->options.component_count; c++) {
        element[c] = mr_tensor_ref(&components[c]);
        if (row < 0) continue;
        mr_shape *shape = &element[c].shape;
        for (int32_t d = 1; d < shape->rank; d++) shape->dims[d - 1] = shape->dims[d];
        shape->dims[--shape->rank] = 0;
        element[c].data = (char *)components[c].data +
                          (size_t)row * (size_t)mr_shape_count(*shape) * mr_dtype_size(components[c].dtype);
    }
}

static mr_status enqueue_rows(mr_queue *queue, const mr_tensor *components, int64_t begin, int64_t end, mr_error *error)
{
    mr_tensor element[MR_COMPONENTS_MAX];
    waiter self;
    bool is_waiting = false;
    mr_status status = MR_OK;
    pthread_mutex_lock(&queue->mutex);
    uint64_t cancels = queue->cancels;
    for (int64_t row = begin; row < end && status == MR_OK; row++) {
        take_share(queue, components, row, element);
        status = enqueue_one(queue, is_waiting ? &self : nullptr, element, cancels, row > begin, error);
        if (status == MR_DEADLINE_EXCEEDED) {
            join_line(&queue->enqueuers, &self);
            is_waiting = true;
            status = enqueue_one(queue, &self, element, cancels, true, error);
        }
        if (status == MR_OK) continue;
        for (int32_t c = 0; c < queue->options.component_count; c++) mr_tensor_deinit(&element[c]);
    }
    if (is_waiting) leave_line(&queue->enqueuers, &self);
    /* Who waits for elements of a closed queue waits no longer than for these. */
    if (is_waiting && queue->is_closed) wake_first(&queue->dequeuers);
    pthread_mutex_unlock(&queue->mutex);
    return status;
}

mr_status mr_queue_enqueue(mr_queue *queue, const mr_tensor *components, mr_error *error)
{
    MR_TRY(check_components(queue, components, false, error));
    return enqueue_rows(queue, components, -1, 0, error);
}

mr_status mr_queue_enqueue_many(mr_queue *queue, const mr_tensor *components, mr_error *error)
{
    MR_TRY(check_components(queue, components, true, error));
    return enqueue_rows(queue, components, 0, components[0].shape.dims[0], error);
}

/* ---- Dequeue ---- */

/* Lock held. Up to count elements; fewer than that and MR_OK only when allowed. On an error everything is back. */
static mr_status dequeue_some(mr_queue *queue, int64_t count, bool may_be_fewer, mr_tensor *elements, int64_t *taken,
                              mr_error *error)
{
    size_t width = (size_t)queue->options.component_count;
    waiter self;
    bool is_waiting = false, has_looked = false;
    mr_status status = MR_OK;
    *taken = 0;
    while (*taken < count) {
        bool is_first = queue->dequeuers.first == (is_waiting ? &self : nullptr);
        if (is_first && can_dequeue(queue)) {
            take_out(queue, &elements[(size_t)(*taken)++ * width]);
            if (can_enqueue(queue)) wake_first(&queue->enqueuers);
            continue;
        }
        /* Who waits to enqueue will still come in: the queue is not at its end yet. */
        if (is_first && queue->is_closed && queue->enqueuers.first == nullptr) break;
        if (!is_waiting) join_line(&queue->dequeuers, &self);
        is_waiting = true;
        sleep_in(queue, &self, &has_looked);
    }
    if (*taken < count && !(may_be_fewer && *taken > 0)) {
        status = mr_fail(error, MR_OUT_OF_RANGE,
                         "%s is closed and has insufficient elements (requested %lld, current size %lld)", queue->name,
                         (long long)count, (long long)*taken + queue->count);
        put_back(queue, elements, *taken);
        *taken = 0;
    }
    if (is_waiting) leave_line(&queue->dequeuers, &self);
    return status;
}

mr_status mr_queue_dequeue(mr_queue *queue, mr_tensor *components, mr_error *error)
{
    int64_t taken = 0;
    pthread_mutex_lock(&queue->mutex);
    mr_status status = dequeue_some(queue, 1, false, components, &taken, error);
    pthread_mutex_unlock(&queue->mutex);
    return status;
}

/* One component of all elements as a batch. */
static mr_status stack_component(const mr_queue *queue, const mr_tensor *elements, int64_t count, int32_t component,
                                 mr_tensor *rows, mr_tensor *result, mr_error *error)
{
    size_t width = (size_t)queue->options.component_count;
    for (int64_t i = 0; i < count; i++) rows[i] = elements[(size_t)i * width + (size_t)component];
    mr_shape shape = mr_stack_shape(rows, count, queue->options.shapes[component]);
    return mr_stack(rows, count, queue->options.dtypes[component], shape, nullptr, result, error);
}

static mr_status dequeue_batch(mr_queue *queue, int64_t count, bool may_be_fewer, mr_tensor *components,
                               mr_error *error)
{
    constexpr int64_t COUNT_MAX = (int64_t)1 << 28;
    const mr_queue_options *o = &queue->options;
    size_t width = (size_t)o->component_count;
    for (size_t c = 0; c < width; c++)
        if (o->shapes[c].rank < 0 || (queue->kind != MR_QUEUE_PADDING_FIFO && mr_shape_count(o->shapes[c]) < 0))
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: many at a time need elements of specified shapes",
                           queue->name);
    if (count < 0 || count > COUNT_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %lld elements at a time", queue->name, (long long)count);
    mr_tensor *elements = calloc((size_t)count * width + 1, sizeof *elements);
    mr_tensor *rows = calloc((size_t)count + 1, sizeof *rows);
    mr_status status = MR_OK;
    int64_t taken = 0;
    if (elements == nullptr || rows == nullptr)
        status =
            mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: no memory for %lld elements", queue->name, (long long)count);
    if (status == MR_OK) {
        pthread_mutex_lock(&queue->mutex);
        status = dequeue_some(queue, count, may_be_fewer, elements, &taken, error);
        pthread_mutex_unlock(&queue->mutex);
    }
    size_t made = 0;
    for (; made < width && status == MR_OK; made++)
        status = stack_component(queue, elements, taken, (int32_t)made, rows, &components[made], error);
    for (size_t c = 0; c < made && status != MR_OK; c++) mr_tensor_deinit(&components[c]);
    for (size_t i = 0; i < (size_t)taken * width; i++) mr_tensor_deinit(&elements[i]);
    free(elements);
    free(rows);
    return status;
}

mr_status mr_queue_dequeue_many(mr_queue *queue, int64_t count, mr_tensor *components, mr_error *error)
{
    return dequeue_batch(queue, count, false, components, error);
}

mr_status mr_queue_dequeue_up_to(mr_queue *queue, int64_t count, mr_tensor *components, mr_error *error)
{
    return dequeue_batch(queue, count, queue->kind != MR_QUEUE_PRIORITY, components, error);
}

/* ---- The rest ---- */

static void wake_all(const line *line)
{
    for (const waiter *w = line->first; w != nullptr; w = w->next) pthread_cond_signal((pthread_cond_t *)&w->ready);
}

void mr_queue_close(mr_queue *queue, bool cancel_pending)
{
    pthread_mutex_lock(&queue->mutex);
    queue->is_closed = true;
    if (cancel_pending) queue->cancels++;
    wake_all(&queue->enqueuers);
    wake_all(&queue->dequeuers);
    pthread_mutex_unlock(&queue->mutex);
}

bool mr_queue_is_closed(mr_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    bool is_closed = queue->is_closed;
    pthread_mutex_unlock(&queue->mutex);
    return is_closed;
}

int64_t mr_queue_size(mr_queue *queue)
{
    return atomic_load_explicit(&queue->count, memory_order_relaxed);
}

const mr_queue_options *mr_queue_describe(const mr_queue *queue)
{
    return &queue->options;
}

static mr_status check_options(mr_queue_kind kind, const mr_queue_options *o, mr_error *error)
{
    const char *name = o->name != nullptr ? o->name : kind_name(kind);
    if (o->component_count < 1 || o->component_count > MR_COMPONENTS_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %d components, where 1 to %d may be", name, o->component_count,
                       MR_COMPONENTS_MAX);
    for (int32_t c = 0; c < o->component_count; c++) {
        if (mr_dtype_size(o->dtypes[c]) == 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: component %d has dtype %s", name, c,
                           mr_dtype_name(o->dtypes[c]));
        if (kind != MR_QUEUE_PADDING_FIFO && o->shapes[c].rank >= 0 && mr_shape_count(o->shapes[c]) < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: component %d has a size that is not known", name, c);
        if (kind == MR_QUEUE_PADDING_FIFO && o->shapes[c].rank < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: component %d has an unknown number of dimensions", name, c);
    }
    if (kind == MR_QUEUE_PRIORITY && (o->dtypes[0] != MR_INT64 || o->shapes[0].rank != 0))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: component 0 has to be the priority, an int64 scalar", name);
    if (o->min_after_dequeue < 0 || (o->min_after_dequeue > 0 && kind != MR_QUEUE_RANDOM_SHUFFLE) ||
        (o->capacity >= 0 && o->min_after_dequeue > 0 && o->min_after_dequeue >= o->capacity))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: min_after_dequeue %lld does not go with capacity %lld", name,
                       (long long)o->min_after_dequeue, (long long)o->capacity);
    return MR_OK;
}

mr_status mr_queue_new(mr_queue_kind kind, const mr_queue_options *options, mr_queue **queue, mr_error *error)
{
    *queue = nullptr;
    MR_TRY(check_options(kind, options, error));
    mr_queue *made = calloc(1, sizeof *made);
    char *name = strdup(options->name != nullptr ? options->name : kind_name(kind));
    if (made == nullptr || name == nullptr) {
        free(made);
        free(name);
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a queue");
    }
    uint64_t seed = options->seed;
    if (seed == 0) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 20 ^ (uintptr_t)made;
    }
    *made = (mr_queue){.references = 1, .kind = kind, .options = *options, .name = name};
    made->options.name = name;
    made->random = mr_random_at(seed, 0, 0, 0);
    pthread_mutex_init(&made->mutex, nullptr);
    *queue = made;
    return MR_OK;
}

mr_queue *mr_queue_ref(mr_queue *queue)
{
    atomic_fetch_add_explicit(&queue->references, 1, memory_order_relaxed);
    return queue;
}

void mr_queue_unref(mr_queue *queue)
{
    if (queue == nullptr || atomic_fetch_sub_explicit(&queue->references, 1, memory_order_acq_rel) != 1) return;
    for (int64_t i = 0; i < queue->count; i++)
        for (int32_t c = 0; c < queue->options.component_count; c++) mr_tensor_deinit(&element_at(queue, i)[c]);
    pthread_mutex_destroy(&queue->mutex);
    free(queue->store);
    free(queue->serials);
    free(queue->name);
    free(queue);
}
