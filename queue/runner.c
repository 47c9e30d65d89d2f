/* Queue runners: threads that enqueue the elements of producers (queue.h). */
#include "base/element.h"
#include "base/options.h"

#include <millrace/queue.h>

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

/* State shared by the threads of one runner. */
typedef struct runner {
    mr_queue *queue; /* retained */
    bool enqueue_many;
    _Atomic int32_t running;    /* producers that have not ended */
    _Atomic int32_t references; /* threads that have not been joined, plus the starting thread */
} runner;

typedef struct feeder {
    runner *runner;
    mr_producer producer;
    mr_element element; /* empty between calls of the producer */
} feeder;

static void release(runner *r, int32_t references)
{
    int32_t before = atomic_fetch_sub(&r->references, references);
    assert(references > 0 && before >= references);
    if (before != references) return;
    mr_queue_unref(r->queue);
    free(r);
}

static mr_status feed_one(feeder *f, mr_error *error)
{
    mr_queue *queue = f->runner->queue;
    mr_element *element = &f->element;
    int32_t components = mr_queue_describe(queue)->component_count;
    MR_TRY(mr_element_offer(element, error));
    mr_status status = f->producer.produce(f->producer.context, element, error);
    if (status == MR_OK && element->count == 0) return MR_OK; /* skipped */
    if (status == MR_OK && (element->count < 0 || element->count > element->capacity))
        status = mr_fail(error, MR_INVALID_ARGUMENT,
                         "the producer set an invalid number of components (expected 0 to %d)", MR_COMPONENTS_MAX);
    else if (status == MR_OK && element->count != components)
        status = mr_fail(error, MR_INVALID_ARGUMENT, "the producer created %d components, the queue has %d",
                         element->count, components);
    if (status == MR_OK)
        status = f->runner->enqueue_many ? mr_queue_enqueue_many(queue, element->tensors, error)
                                         : mr_queue_enqueue(queue, element->tensors, error);
    if (status == MR_OK)
        mr_element_clear(element);
    else
        mr_element_clear_all(element);
    return status;
}

static mr_status feed(void *context, mr_coordinator *coordinator, mr_error *error)
{
    feeder *f = context;
    runner *r = f->runner;
    mr_status status = MR_OK;
    while (status == MR_OK && !mr_coordinator_should_stop(coordinator)) status = feed_one(f, error);
    bool has_ended = status == MR_OUT_OF_RANGE;
    int32_t before = atomic_fetch_sub(&r->running, 1);
    assert(before > 0);
    bool is_last = before == 1;
    /* The error is recorded before the queue is closed: a consumer that sees the queue closed and joins must get it. */
    if (!has_ended && status != MR_OK && status != MR_CANCELLED) {
        error->status = status;
        mr_coordinator_request_stop(coordinator, error);
    }
    /* The other producers continue after one has ended. */
    if (has_ended && is_last) mr_queue_close(r->queue, false);
    if (!has_ended) mr_queue_close(r->queue, true);
    return has_ended || status == MR_CANCELLED ? MR_OK : status;
}

static void stop_feeding(void *context)
{
    mr_queue_close(((const feeder *)context)->runner->queue, true);
}

static void feeder_free(void *context)
{
    feeder *f = context;
    if (f->producer.release != nullptr) f->producer.release(f->producer.context);
    mr_element_deinit(&f->element);
    release(f->runner, 1);
    free(f);
}

static mr_status start_feeder(runner *r, const mr_producer *producer, mr_coordinator *coordinator, mr_error *error)
{
    feeder *f = calloc(1, sizeof *f);
    if (f == nullptr) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a queue runner");
    *f = (feeder){.runner = r, .producer = *producer};
    mr_status status = mr_coordinator_start(
        coordinator, &(mr_member){.run = feed, .stop = stop_feeding, .release = feeder_free, .context = f}, error);
    if (status != MR_OK) free(f);
    return status;
}

static mr_status check_arguments(const mr_queue *queue, const mr_producer *producers, int32_t count,
                                 const mr_coordinator *coordinator, mr_error *error)
{
    if (queue == nullptr || producers == nullptr || coordinator == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "queue runner: %s is null",
                       queue == nullptr       ? "queue"
                       : producers == nullptr ? "producers"
                                              : "coordinator");
    if (count < 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "queue runner: %d producers (expected at least 1)", count);
    for (int32_t i = 0; i < count; i++)
        if (producers[i].produce == nullptr)
            return mr_fail(error, MR_INVALID_ARGUMENT, "queue runner: producer %d has no function", i);
    return MR_OK;
}

mr_status mr_queue_runner_start(mr_queue *queue, const mr_producer *producers, int32_t count,
                                const mr_queue_runner_options *given, mr_coordinator *coordinator, mr_error *error)
{
    mr_queue_runner_options options;
    mr_status status = MR_OPTIONS_READ(mr_queue_runner_options, &options, given, error);
    if (status == MR_OK) status = check_arguments(queue, producers, count, coordinator, error);
    int32_t started = 0;
    runner *r = status == MR_OK ? calloc(1, sizeof *r) : nullptr;
    if (status == MR_OK && r == nullptr) status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a queue runner");
    if (r != nullptr) {
        *r = (runner){.queue = mr_queue_ref(queue), .enqueue_many = options.enqueue_many};
        atomic_store(&r->running, count);
        atomic_store(&r->references, count + 1);
    }
    while (started < count && status == MR_OK) {
        status = start_feeder(r, &producers[started], coordinator, error);
        started += status == MR_OK;
    }
    assert(started == count || status != MR_OK);
    for (int32_t i = started; i < count && producers != nullptr; i++)
        if (producers[i].release != nullptr) producers[i].release(producers[i].context);
    if (status != MR_OK) mr_queue_close(queue, true);
    if (r != nullptr) release(r, count - started + 1);
    return status;
}
