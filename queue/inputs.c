/* Input producers and batches on queues: tf.train of TensorFlow 1 (queue.h). */
#include "base/arguments.h"
#include "base/element.h"
#include "base/options.h"
#include "base/random.h"

#include <millrace/queue.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

constexpr int64_t CAPACITY = 32;

/* ---- Input producers ---- */

/* Returns the rows of an epoch one by one, in a new random order for each epoch. */
typedef struct rows {
    mr_tensor components[MR_COMPONENTS_MAX];
    int32_t count;
    int64_t row_count;
    int64_t epochs; /* 0: without end */
    bool shuffle;
    uint64_t seed;
    int64_t epoch, row;
    mr_permutation order;
} rows;

static void rows_free(void *context)
{
    rows *r = context;
    for (int32_t i = 0; i < r->count; i++) mr_tensor_deinit(&r->components[i]);
    free(r);
}

static mr_status produce_row(void *context, mr_element *output, mr_error *error)
{
    rows *r = context;
    if (r->row == r->row_count) {
        r->row = 0;
        r->epoch++;
    }
    if (r->row_count == 0 || (r->epochs > 0 && r->epoch >= r->epochs))
        return mr_fail(error, MR_OUT_OF_RANGE, "end of input after %lld epochs", (long long)r->epoch);
    if (r->row == 0 && r->shuffle) r->order = mr_permutation_init((uint64_t)r->row_count, r->seed, (uint64_t)r->epoch);
    assert(r->row >= 0 && r->row < r->row_count && r->epoch >= 0);
    int64_t row = r->shuffle ? (int64_t)mr_permutation_at(&r->order, (uint64_t)r->row) : r->row;
    for (int32_t i = 0; i < r->count; i++) {
        mr_tensor *to = &output->tensors[i];
        mr_tensor one = {0};
        mr_status status = mr_tensor_rows(&r->components[i], row, row + 1, &one, error);
        mr_shape shape = one.shape;
        for (int32_t d = 1; d < shape.rank; d++) shape.dims[d - 1] = shape.dims[d];
        if (status == MR_OK) shape.dims[--shape.rank] = 0;
        if (status == MR_OK) status = mr_tensor_reshape(&one, shape, to, error);
        mr_tensor_deinit(&one);
        MR_TRY(status);
        output->count = i + 1;
    }
    r->row++;
    return MR_OK;
}

mr_status mr_slice_input_producer(const mr_tensor *components, int32_t count, const mr_input_producer_options *given,
                                  mr_coordinator *coordinator, mr_queue **queue, mr_error *error)
{
    mr_input_producer_options options, *o = &options;
    if (queue != nullptr) *queue = nullptr;
    MR_TRY(MR_OPTIONS_READ(mr_input_producer_options, o, given, error));
    if (queue == nullptr || components == nullptr || coordinator == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "input producer: %s is null",
                       queue == nullptr        ? "queue"
                       : components == nullptr ? "components"
                                               : "coordinator");
    if (count < 1 || count > MR_COMPONENTS_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "input producer: invalid number of components: %d", count);
    if (o->epochs < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "input producer: epochs is %lld, expected at least 0",
                       (long long)o->epochs);
    if (o->no_shuffle && o->seed != 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "input producer: seed has no effect: no_shuffle is set");
    mr_queue_options q = {.size = sizeof q,
                          .capacity = o->capacity == 0 ? CAPACITY : o->capacity,
                          .component_count = count,
                          .name = o->name};
    for (int32_t i = 0; i < count; i++) {
        mr_shape shape = components[i].shape;
        if (shape.rank < 1 || mr_tensor_count(&components[i]) < 0 || shape.dims[0] != components[0].shape.dims[0])
            return mr_fail(error, MR_INVALID_ARGUMENT, "component %d does not have as many rows as component 0", i);
        for (int32_t d = 1; d < shape.rank; d++) shape.dims[d - 1] = shape.dims[d];
        shape.dims[--shape.rank] = 0;
        q.dtypes[i] = components[i].dtype;
        q.shapes[i] = shape;
    }
    if (components[0].shape.dims[0] == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "input producer: the components have no rows");
    rows *r = calloc(1, sizeof *r);
    if (r == nullptr) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for an input producer");
    *r = (rows){
        .row_count = components[0].shape.dims[0], .epochs = o->epochs, .shuffle = !o->no_shuffle, .seed = o->seed};
    for (; r->count < count; r->count++) r->components[r->count] = mr_tensor_ref(&components[r->count]);
    mr_status status = mr_queue_new(MR_QUEUE_FIFO, &q, queue, error);
    if (status != MR_OK) {
        rows_free(r);
        return status;
    }
    status = mr_queue_runner_start(*queue, &(mr_producer){produce_row, r, rows_free}, 1, nullptr, coordinator, error);
    if (status == MR_OK) return MR_OK;
    mr_queue_unref(*queue);
    *queue = nullptr;
    return status;
}

mr_status mr_string_input_producer(const char *const *strings, int32_t count, const mr_input_producer_options *options,
                                   mr_coordinator *coordinator, mr_queue **queue, mr_error *error)
{
    if (queue != nullptr) *queue = nullptr;
    for (int32_t i = 0; i < count; i++)
        if (strings == nullptr || strings[i] == nullptr)
            return mr_fail(error, MR_INVALID_ARGUMENT, "input producer: string %d is null", i);
    mr_tensor tensor = {0};
    mr_string *elements = calloc((size_t)(count > 0 ? count : 0) + 1, sizeof *elements);
    if (elements == nullptr) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for %d strings", count);
    for (int32_t i = 0; i < count; i++) elements[i] = mr_string_from(strings[i]);
    mr_status status = mr_tensor_init_strings(&tensor, MR_SHAPE(count > 0 ? count : 0), elements, error);
    free(elements);
    if (status == MR_OK) status = mr_slice_input_producer(&tensor, 1, options, coordinator, queue, error);
    mr_tensor_deinit(&tensor);
    return status;
}

mr_status mr_range_input_producer(int64_t limit, const mr_input_producer_options *options, mr_coordinator *coordinator,
                                  mr_queue **queue, mr_error *error)
{
    if (queue != nullptr) *queue = nullptr;
    mr_tensor tensor = {0};
    if (limit < 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "range input producer: limit is %lld, expected at least 1",
                       (long long)limit);
    MR_TRY(mr_tensor_init(&tensor, MR_INT64, MR_SHAPE(limit), error));
    for (int64_t i = 0; i < limit; i++) mr_tensor_int64s(&tensor)[i] = i;
    mr_status status = mr_slice_input_producer(&tensor, 1, options, coordinator, queue, error);
    mr_tensor_deinit(&tensor);
    return status;
}

mr_status mr_limit_epochs_produce(void *limit_epochs, mr_element *output, mr_error *error)
{
    mr_limit_epochs *l = limit_epochs;
    MR_REFUSE_NULL(limit_epochs, error);
    MR_REFUSE_NULL(output, error);
    if (l->element == nullptr || l->component_count < 0 || l->component_count > MR_COMPONENTS_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "limit_epochs: element is null, or the number of components is invalid: %d", l->component_count);
    if (l->epochs >= 0 && l->produced >= l->epochs)
        return mr_fail(error, MR_OUT_OF_RANGE, "Reached limit of %lld", (long long)l->epochs);
    MR_TRY(mr_element_reserve(output, l->component_count, error));
    for (int32_t i = 0; i < l->component_count; i++) output->tensors[i] = mr_tensor_ref(&l->element[i]);
    output->count = l->component_count;
    l->produced++;
    return MR_OK;
}

/* ---- Batches ---- */

/* A producer whose elements may be dropped. */
typedef struct sieve {
    mr_producer producer;
    bool (*keep)(void *context, const mr_element *element);
    void *keep_context;
} sieve;

static mr_status produce_kept(void *context, mr_element *output, mr_error *error)
{
    const sieve *s = context;
    MR_TRY(s->producer.produce(s->producer.context, output, error));
    if (output->count < 0 || output->count > output->capacity) return MR_OK; /* rejected by the runner */
    if (s->keep == nullptr || s->keep(s->keep_context, output)) return MR_OK;
    mr_element_clear(output);
    return MR_OK;
}

static void sieve_free(void *context)
{
    sieve *s = context;
    if (s->producer.release != nullptr) s->producer.release(s->producer.context);
    free(s);
}

static mr_status wrap(const mr_producer *producers, int32_t count, const mr_train_batch_options *o,
                      mr_producer *wrapped, mr_error *error)
{
    for (int32_t i = 0; i < count; i++) {
        sieve *s = calloc(1, sizeof *s);
        if (s == nullptr) {
            while (i-- > 0) free(wrapped[i].context);
            return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a batch");
        }
        *s = (sieve){producers[i], o->keep, o->keep_context};
        wrapped[i] = (mr_producer){produce_kept, s, sieve_free};
    }
    return MR_OK;
}

static mr_status check_batch_options(int32_t count, const mr_train_batch_options *o, mr_error *error)
{
    constexpr int32_t PRODUCERS_MAX = 1024;
    if (count < 1 || count > PRODUCERS_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "train_batch: invalid number of producers: %d", count);
    if (o->batch_size < 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "train_batch: batch_size is %lld, expected at least 1",
                       (long long)o->batch_size);
    if (o->shuffle && o->dynamic_pad)
        return mr_fail(error, MR_INVALID_ARGUMENT, "train_batch: shuffle and dynamic_pad cannot be combined");
    if (o->min_after_dequeue != 0 && !o->shuffle)
        return mr_fail(error, MR_INVALID_ARGUMENT, "train_batch: min_after_dequeue has no effect without shuffle");
    if (o->seed != 0 && !o->shuffle)
        return mr_fail(error, MR_INVALID_ARGUMENT, "train_batch: seed has no effect without shuffle");
    if (o->keep_context != nullptr && o->keep == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "train_batch: keep_context has no effect without keep");
    return MR_OK;
}

static mr_status check_batch(const mr_producer *producers, int32_t count, const mr_element_spec *spec,
                             const mr_train_batch_options *o, const mr_coordinator *coordinator, mr_error *error)
{
    if (producers == nullptr || spec == nullptr || o == nullptr || coordinator == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "train_batch: %s",
                       producers == nullptr ? "producers is null"
                       : spec == nullptr    ? "spec is null"
                       : o == nullptr       ? "options is null"
                                            : "coordinator is null");
    return check_batch_options(count, o, error);
}

static mr_status make_queue(const mr_producer *producers, int32_t count, const mr_element_spec *spec,
                            const mr_train_batch_options *o, mr_producer *wrapped, mr_queue **queue, mr_error *error)
{
    mr_queue_options q = {.size = sizeof q,
                          .capacity = o->capacity == 0 ? CAPACITY : o->capacity,
                          .component_count = spec->count,
                          .min_after_dequeue = o->min_after_dequeue,
                          .seed = o->seed,
                          .name = o->name,
                          .batch_size = o->batch_size,
                          .allow_smaller_final_batch = o->allow_smaller_final_batch};
    memcpy(q.dtypes, spec->dtypes, sizeof q.dtypes);
    memcpy(q.shapes, spec->shapes, sizeof q.shapes);
    mr_queue_kind kind = o->shuffle ? MR_QUEUE_RANDOM_SHUFFLE : o->dynamic_pad ? MR_QUEUE_PADDING_FIFO : MR_QUEUE_FIFO;
    MR_TRY(mr_queue_new(kind, &q, queue, error));
    return wrap(producers, count, o, wrapped, error);
}

mr_status mr_train_batch(const mr_producer *producers, int32_t count, const mr_element_spec *spec,
                         const mr_train_batch_options *given, mr_coordinator *coordinator, mr_queue **queue,
                         mr_error *error)
{
    mr_train_batch_options options, *o = &options;
    if (queue == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_train_batch: queue is null");
    *queue = nullptr;
    mr_status status = MR_OPTIONS_READ(mr_train_batch_options, o, given, error);
    if (status == MR_OK)
        status = check_batch(producers, count, spec, given == nullptr ? nullptr : o, coordinator, error);
    mr_producer *wrapped = status == MR_OK ? calloc((size_t)count, sizeof *wrapped) : nullptr;
    if (status == MR_OK && wrapped == nullptr) status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a batch");
    if (status == MR_OK) status = make_queue(producers, count, spec, o, wrapped, queue, error);
    if (status == MR_OK) {
        status = mr_queue_runner_start(*queue, wrapped, count,
                                       MR_OPTIONS(mr_queue_runner_options, .enqueue_many = o->enqueue_many),
                                       coordinator, error);
    } else {
        for (int32_t i = 0; producers != nullptr && i < count; i++)
            if (producers[i].release != nullptr) producers[i].release(producers[i].context);
    }
    if (status != MR_OK) {
        mr_queue_unref(*queue);
        *queue = nullptr;
    }
    free(wrapped);
    return status;
}

mr_status mr_train_batch_next(mr_queue *queue, mr_element *batch, mr_error *error)
{
    if (queue == nullptr || batch == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "train_batch: %s is null", queue == nullptr ? "queue" : "batch");
    const mr_queue_options *o = mr_queue_describe(queue);
    if (o->batch_size < 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s has no batch_size: not created by mr_train_batch", o->name);
    MR_TRY(mr_element_reserve(batch, o->component_count, error));
    mr_status status = o->allow_smaller_final_batch
                           ? mr_queue_dequeue_up_to(queue, o->batch_size, batch->tensors, error)
                           : mr_queue_dequeue_many(queue, o->batch_size, batch->tensors, error);
    if (status == MR_OK)
        batch->count = o->component_count;
    else
        mr_element_deinit(batch);
    return status;
}
