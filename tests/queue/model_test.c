/* Model test of all kinds of queue: random operations, at sizes below, at and above every limit, compared with a simple
 * model. Waiting operations are attempts (queue/attempt.h), so one thread sees every intermediate state. */
#include "base/random.h"
#include "queue/attempt.h"
#include "tests/test.h"

constexpr int64_t COUNT_MAX = 80;
constexpr int OPERATIONS_MAX = 64;
constexpr int64_t IDS_MAX = OPERATIONS_MAX * COUNT_MAX;

typedef struct operation {
    bool is_enqueue, up_to, is_done;
    int64_t count, moved;
    int64_t ids[COUNT_MAX]; /* for a shuffling queue only their number is compared */
    mr_status status;
    mr_queue_attempt attempt;
    mr_tensor components[3];           /* enqueue */
    mr_tensor elements[COUNT_MAX * 3]; /* dequeue */
} operation;

typedef struct model {
    mr_random random;
    mr_queue_kind kind;
    mr_queue *queue;
    int64_t capacity, min_after_dequeue;
    bool is_closed;
    int64_t ids[IDS_MAX], size; /* in order of arrival, after the returned ones */
    operation *enqueues[OPERATIONS_MAX], *dequeues[OPERATIONS_MAX];
    int enqueue_count, dequeue_count;
    operation *all[OPERATIONS_MAX];
    int operation_count;
    int64_t next_id, lengths[IDS_MAX];
    bool is_in[IDS_MAX]; /* enqueued and not dequeued */
} model;

static int64_t draw(model *m, int64_t limit)
{
    return (int64_t)mr_random_below(&m->random, (uint64_t)limit);
}

static int64_t priority_of(int64_t id)
{
    return id * 7919 % 5 - 2;
}

/* ---- The model ---- */

static int64_t take(model *m)
{
    int64_t at = 0;
    for (int64_t i = 1; m->kind == MR_QUEUE_PRIORITY && i < m->size; i++)
        if (priority_of(m->ids[i]) < priority_of(m->ids[at])) at = i;
    int64_t id = m->ids[at];
    memmove(&m->ids[at], &m->ids[at + 1], (size_t)(m->size - at - 1) * sizeof *m->ids);
    m->size--;
    return id;
}

static void return_all(model *m, operation *o)
{
    memmove(&m->ids[o->moved], m->ids, (size_t)m->size * sizeof *m->ids);
    memcpy(m->ids, o->ids, (size_t)o->moved * sizeof *m->ids);
    m->size += o->moved;
    o->moved = 0;
}

static void leave(operation **line, int *count, mr_status status)
{
    line[0]->is_done = true;
    line[0]->status = status;
    memmove(line, line + 1, (size_t)--*count * sizeof(operation *));
}

static bool serve_enqueue(model *m)
{
    operation *o = m->enqueues[0];
    bool has_room = m->capacity < 0 || m->size < m->capacity;
    if (m->enqueue_count == 0 || !has_room) return false;
    m->ids[m->size++] = o->ids[o->moved++];
    if (o->moved == o->count) leave(m->enqueues, &m->enqueue_count, MR_OK);
    return true;
}

static bool serve_dequeue(model *m)
{
    operation *o = m->dequeues[0];
    bool is_at_end = m->is_closed && m->enqueue_count == 0;
    if (m->dequeue_count == 0) return false;
    /* A batch of a priority queue is sorted, unless it is larger than the queue. */
    bool is_sorted = m->kind == MR_QUEUE_PRIORITY && (m->capacity < 0 || o->count <= m->capacity);
    bool may_take = !is_sorted || m->size >= o->count - o->moved;
    if (may_take && m->size > (is_at_end ? 0 : m->min_after_dequeue)) {
        o->ids[o->moved++] = take(m);
        if (o->moved == o->count) leave(m->dequeues, &m->dequeue_count, MR_OK);
        return true;
    }
    if (!is_at_end) return false;
    bool is_enough = o->up_to && o->moved > 0 && m->kind != MR_QUEUE_PRIORITY;
    if (!is_enough) return_all(m, o);
    leave(m->dequeues, &m->dequeue_count, is_enough ? MR_OK : MR_OUT_OF_RANGE);
    return true;
}

static void serve(model *m)
{
    bool has_changed = true;
    while (has_changed) {
        has_changed = false;
        while (serve_enqueue(m)) has_changed = true;
        while (serve_dequeue(m)) has_changed = true;
    }
}

/* ---- The queue under test ---- */

static void make_components(model *m, operation *o)
{
    mr_error error = {0};
    int64_t length = m->kind == MR_QUEUE_PADDING_FIFO ? draw(m, 4) : 2;
    CHECK_OK(mr_tensor_init(&o->components[0], MR_INT64, MR_SHAPE(o->count), &error));
    CHECK_OK(mr_tensor_init(&o->components[1], MR_INT64, MR_SHAPE(o->count), &error));
    CHECK_OK(mr_tensor_init(&o->components[2], MR_INT64, MR_SHAPE(o->count, length), &error));
    for (int64_t i = 0; i < o->count; i++) {
        int64_t id = m->next_id++;
        o->ids[i] = id;
        m->lengths[id] = length;
        mr_tensor_int64s(&o->components[0])[i] = priority_of(id);
        mr_tensor_int64s(&o->components[1])[i] = id;
        for (int64_t j = 0; j < length; j++) mr_tensor_int64s(&o->components[2])[i * length + j] = id + 100 * j + 1;
    }
}

static void check_delivered(model *m, int64_t priority, int64_t id, int64_t expected)
{
    CHECK(id >= 0 && id < m->next_id && m->is_in[id]);
    CHECK_EQ(priority, priority_of(id));
    if (m->kind != MR_QUEUE_RANDOM_SHUFFLE) CHECK_EQ(id, expected);
    m->is_in[id] = false;
}

static void check_values(const model *m, int64_t id, const int64_t *values, int64_t length)
{
    CHECK(length >= m->lengths[id]);
    for (int64_t j = 0; j < length; j++) CHECK_EQ(values[j], j < m->lengths[id] ? id + 100 * j + 1 : 0);
}

static void finish(model *m, operation *o)
{
    if (o->is_enqueue)
        for (int c = 0; c < 3; c++) mr_tensor_deinit(&o->components[c]);
    for (int64_t i = 0; !o->is_enqueue && i < o->moved; i++) {
        mr_tensor *element = &o->elements[3 * i];
        int64_t id = mr_tensor_int64s(&element[1])[0];
        check_delivered(m, mr_tensor_int64s(&element[0])[0], id, o->ids[i]);
        CHECK_EQ(mr_tensor_count(&element[2]), m->lengths[id]);
        check_values(m, id, mr_tensor_int64s(&element[2]), m->lengths[id]);
        for (int c = 0; c < 3; c++) mr_tensor_deinit(&element[c]);
    }
    free(o);
}

/* Compares the queue and all attempts with the model. */
static void compare(model *m)
{
    CHECK_EQ(mr_queue_size(m->queue), m->size);
    CHECK_EQ(mr_queue_is_closed(m->queue), m->is_closed);
    int kept = 0;
    for (int i = 0; i < m->operation_count; i++) {
        operation *o = m->all[i];
        CHECK_EQ(o->attempt.is_done, o->is_done);
        CHECK_EQ(o->attempt.moved, o->moved);
        CHECK_EQ(o->attempt.status, o->status);
        if (o->is_done)
            finish(m, o);
        else
            m->all[kept++] = o;
    }
    m->operation_count = kept;
}

/* A number of elements near the limits: the capacity, and the sizes at which the store grows. */
static int64_t draw_count(model *m)
{
    static const int64_t counts[] = {1, 1, 2, 3, 15, 16, 17, 31, 32, 33};
    int64_t around = m->capacity - 1 + draw(m, 4) * (draw(m, 2) + 1);
    int64_t count = draw(m, 2) == 0 ? counts[draw(m, 10)] : around;
    return count < 1 ? 1 : count > COUNT_MAX ? COUNT_MAX : count;
}

static void start(model *m, bool is_enqueue)
{
    operation *o = calloc(1, sizeof *o);
    CHECK(o != nullptr);
    o->is_enqueue = is_enqueue;
    o->count = draw_count(m);
    o->up_to = draw(m, 2) == 0;
    o->attempt.count = o->count;
    if (is_enqueue) {
        make_components(m, o);
        o->attempt.components = o->components;
        o->attempt.are_rows = true;
        for (int64_t i = 0; !m->is_closed && i < o->count; i++) m->is_in[o->ids[i]] = true;
    } else {
        o->attempt.elements = o->elements;
        o->attempt.may_be_fewer = o->up_to && m->kind != MR_QUEUE_PRIORITY;
    }
    m->all[m->operation_count++] = o;
    if (is_enqueue && m->is_closed) {
        o->is_done = true;
        o->status = MR_CANCELLED;
    } else {
        if (is_enqueue)
            m->enqueues[m->enqueue_count++] = o;
        else
            m->dequeues[m->dequeue_count++] = o;
        serve(m);
    }
    mr_queue_start(m->queue, &o->attempt);
}

/* A batch by the public function, if the model determines that it does not wait. */
static void dequeue_batch(model *m)
{
    mr_error error = {0};
    mr_tensor batch[3] = {0};
    operation o = {.count = draw_count(m), .up_to = draw(m, 2) == 0};
    bool is_at_end = m->is_closed && m->enqueue_count == 0;
    if (m->dequeue_count > 0 || (!is_at_end && m->size < o.count + m->min_after_dequeue)) return;
    m->dequeues[m->dequeue_count++] = &o;
    serve(m);
    CHECK(o.is_done);
    mr_status status = o.up_to ? mr_queue_dequeue_up_to(m->queue, o.count, batch, &error)
                               : mr_queue_dequeue_many(m->queue, o.count, batch, &error);
    CHECK_EQ(status, o.status);
    if (status != MR_OK) return;
    CHECK_EQ(batch[2].shape.dims[0], o.moved);
    int64_t length = batch[2].shape.dims[1], longest = 0;
    for (int64_t i = 0; i < o.moved; i++) {
        int64_t id = mr_tensor_int64s(&batch[1])[i];
        check_delivered(m, mr_tensor_int64s(&batch[0])[i], id, o.ids[i]);
        check_values(m, id, &mr_tensor_int64s(&batch[2])[i * length], length);
        if (m->lengths[id] > longest) longest = m->lengths[id];
    }
    CHECK_EQ(length, longest);
    for (int c = 0; c < 3; c++) mr_tensor_deinit(&batch[c]);
}

static void close_queue(model *m, bool cancel_pending)
{
    m->is_closed = true;
    while (cancel_pending && m->enqueue_count > 0) {
        operation *o = m->enqueues[0];
        for (int64_t i = o->moved; i < o->count; i++) m->is_in[o->ids[i]] = false;
        leave(m->enqueues, &m->enqueue_count, MR_CANCELLED);
    }
    serve(m);
    mr_queue_close(m->queue, cancel_pending);
}

/* Everything that was enqueued can be dequeued, and no attempt waits afterwards. */
static void drain(model *m)
{
    close_queue(m, draw(m, 2) == 0);
    compare(m);
    for (int i = 0; i < 200 && (m->size > 0 || m->dequeue_count > 0); i++) {
        if (m->operation_count < OPERATIONS_MAX - 1) start(m, false);
        compare(m);
    }
    close_queue(m, true);
    compare(m);
    CHECK_EQ(m->operation_count, 0);
    CHECK_EQ(m->size, 0);
    for (int64_t id = 0; id < m->next_id; id++) CHECK(!m->is_in[id]);
}

static void run_sequence(mr_queue_kind kind, uint64_t number)
{
    static const int64_t capacities[] = {-1, 0, 1, 2, 5, 15, 16, 17, 32, 33};
    mr_error error = {0};
    model *m = calloc(1, sizeof *m);
    CHECK(m != nullptr);
    m->kind = kind;
    m->random = mr_random_at(test_seed(), number, (uint64_t)kind, 0x6d6f64656c);
    m->capacity = capacities[draw(m, 10)];
    if (kind == MR_QUEUE_RANDOM_SHUFFLE && m->capacity == 0) m->capacity = 1;
    if (kind == MR_QUEUE_RANDOM_SHUFFLE)
        m->min_after_dequeue = draw(m, 2) == 0 ? 0 : draw(m, m->capacity < 0 ? 20 : m->capacity);
    mr_queue_options options = {.size = sizeof options,
                                .capacity = m->capacity,
                                .component_count = 3,
                                .dtypes = {MR_INT64, MR_INT64, MR_INT64},
                                .shapes = {MR_SCALAR, MR_SCALAR, MR_SHAPE(2)},
                                .min_after_dequeue = m->min_after_dequeue,
                                .seed = kind == MR_QUEUE_RANDOM_SHUFFLE ? 1 + number : 0};
    if (kind == MR_QUEUE_PADDING_FIFO) options.shapes[2] = MR_SHAPE(-1);
    CHECK_OK(mr_queue_new(kind, &options, &m->queue, &error));
    int64_t bias = 3 + draw(m, 5); /* bias towards enqueues or dequeues */
    for (int i = 0; i < OPERATIONS_MAX - 4; i++) {
        int64_t what = draw(m, 100);
        if (what < 2)
            close_queue(m, draw(m, 2) == 0);
        else if (what % 10 < bias)
            start(m, true);
        else if (what % 2 == 0)
            dequeue_batch(m);
        else
            start(m, false);
        compare(m);
    }
    drain(m);
    mr_queue_unref(m->queue);
    free(m);
}

TEST(a_fifo_queue_is_as_its_model)
{
    for (uint64_t i = 0; i < 1500; i++) run_sequence(MR_QUEUE_FIFO, i);
}

TEST(a_shuffling_queue_is_as_its_model)
{
    for (uint64_t i = 0; i < 1500; i++) run_sequence(MR_QUEUE_RANDOM_SHUFFLE, i);
}

TEST(a_padding_queue_is_as_its_model)
{
    for (uint64_t i = 0; i < 1500; i++) run_sequence(MR_QUEUE_PADDING_FIFO, i);
}

TEST(a_priority_queue_is_as_its_model)
{
    for (uint64_t i = 0; i < 1500; i++) run_sequence(MR_QUEUE_PRIORITY, i);
}
