/* Queues: the resources, and the operators that name and use them. */
#include "graph/state/queue.h"

#include "base/options.h"
#include "base/random.h"
#include "graph/state/waiting.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static void queue_deinit(mr_resource *resource)
{
    mr_queue_unref(((mr_queue_state *)resource)->queue);
}

static void queue_reset(mr_resource *resource)
{
    mr_queue *queue = ((mr_queue_state *)resource)->queue;
    if (queue) mr_queue_reset(queue);
}

const mr_resource_class mr_queue_class = {
    .name = "queue", .size_bytes = sizeof(mr_queue_state), .deinit = queue_deinit, .reset = queue_reset};

/* ---- Creation ---- */

static const char *dtypes_text(mr_components c, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < c.count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", mr_dtype_name(c.dtypes[i]));
    return text;
}

static const char *shapes_text(mr_components c, char *text, size_t size)
{
    char shape[MR_SHAPE_TEXT_SIZE];
    size_t used = (size_t)snprintf(text, size, "[");
    for (int32_t i = 0; i < c.count && used < size; i++)
        if (c.shapes[i].rank >= 0)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used > 1 ? ", " : "",
                                     mr_shape_text(c.shapes[i], shape, sizeof shape));
    if (used < size) snprintf(text + used, size - used, "]");
    return text;
}

mr_status mr_components_check(const char *kind, const char *name, mr_components has, mr_components requested,
                              mr_error *error)
{
    char first[300], second[300];
    bool equal = has.count == requested.count;
    for (int32_t i = 0; equal && i < has.count; i++) equal = has.dtypes[i] == requested.dtypes[i];
    if (!equal)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "Shared %s '%s' has component types %s but requested component types were %s", kind, name,
                       dtypes_text(has, first, sizeof first), dtypes_text(requested, second, sizeof second));
    for (int32_t i = 0; equal && i < has.count; i++) equal = mr_shape_equal(has.shapes[i], requested.shapes[i]);
    if (!equal)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "Shared %s '%s' has component shapes %s but requested component shapes were %s", kind, name,
                       shapes_text(has, first, sizeof first), shapes_text(requested, second, sizeof second));
    return MR_OK;
}

static mr_status add_component(mr_queue_options *options, int32_t dtype, mr_error *error)
{
    if (options->component_count == MR_COMPONENTS_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "a queue of more than %d components", MR_COMPONENTS_MAX);
    options->dtypes[options->component_count] = (mr_dtype)dtype;
    options->shapes[options->component_count++] = MR_SHAPE_UNKNOWN;
    return MR_OK;
}

static mr_status read_options(const mr_node *node, mr_queue_kind kind, mr_queue_options *options, mr_error *error)
{
    const mr_attr *types = mr_attrs_find(&node->attrs, "component_types");
    const mr_attr *shapes = mr_attrs_find(&node->attrs, "shapes");
    *options = (mr_queue_options){.size = sizeof *options, .capacity = mr_attr_int_or(&node->attrs, "capacity", -1)};
    if (kind == MR_QUEUE_PRIORITY) {
        MR_TRY(add_component(options, MR_INT64, error));
        options->shapes[0] = MR_SCALAR;
    }
    int32_t first = options->component_count;
    for (int32_t i = 0; types && i < types->count; i++) MR_TRY(add_component(options, types->values[i].type, error));
    if (shapes && shapes->count > 0 && shapes->count != options->component_count - first)
        return mr_fail(error, MR_INVALID_ARGUMENT, "there are %d shapes for %d components", (int)shapes->count,
                       (int)(options->component_count - first));
    for (int32_t i = 0; shapes && i < shapes->count; i++) options->shapes[first + i] = shapes->values[i].shape;
    if (kind == MR_QUEUE_RANDOM_SHUFFLE)
        options->min_after_dequeue = mr_attr_int_or(&node->attrs, "min_after_dequeue", 0);
    return MR_OK;
}

static mr_status check_shared(const mr_queue_state *state, const mr_queue_options *asked, mr_error *error)
{
    const mr_queue_options *has = mr_queue_describe(state->queue);
    const char *name = state->resource.name;
    if (has->capacity != asked->capacity)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "Shared queue '%s' has capacity %lld but requested capacity was %lld.", name,
                       (long long)has->capacity, (long long)asked->capacity);
    if (has->min_after_dequeue != asked->min_after_dequeue)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "Shared queue '%s' has min_after_dequeue %lld but requested min_after_dequeue was %lld.", name,
                       (long long)has->min_after_dequeue, (long long)asked->min_after_dequeue);
    return mr_components_check("queue", name, (mr_components){has->dtypes, has->shapes, has->component_count},
                               (mr_components){asked->dtypes, asked->shapes, asked->component_count}, error);
}

static void seed_queue(mr_queue *queue, const mr_node *node)
{
    uint64_t seeds[2] = {(uint64_t)mr_attr_int_or(&node->attrs, "seed", 0),
                         (uint64_t)mr_attr_int_or(&node->attrs, "seed2", 0)};
    if (seeds[0] == 0 && seeds[1] == 0 && getrandom(seeds, sizeof seeds, 0) != (ssize_t)sizeof seeds)
        seeds[0] = (uintptr_t)queue;
    mr_queue_seed(queue, seeds[0], seeds[1]);
}

static mr_status fill_resource(mr_queue_state *state, bool made, const mr_node *node, mr_queue_kind kind,
                               mr_error *error)
{
    static const char *const kinds[] = {"FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue"};
    char text[256];
    mr_queue_options options;
    MR_TRY(read_options(node, kind, &options, error));
    if (!made && state->queue) return check_shared(state, &options, error);
    snprintf(text, sizeof text, "%s '%.200s'", kinds[kind], state->resource.name);
    options.name = text;
    MR_TRY(mr_queue_new(kind, &options, &state->queue, error));
    if (kind == MR_QUEUE_RANDOM_SHUFFLE) seed_queue(state->queue, node);
    return MR_OK;
}

static mr_status make_queue(mr_resource_table *resources, const mr_node *node, mr_queue_kind kind,
                            mr_resource **resource, mr_error *error)
{
    bool made = false;
    MR_TRY(mr_resource_of_node(resources, &mr_queue_class, node, resource, &made, error));
    return fill_resource((mr_queue_state *)*resource, made, node, kind, error);
}

#define MAKE(function, kind)                                                                                           \
    static mr_status function(mr_resource_table *resources, const mr_node *node, mr_device *, mr_resource **resource,  \
                              mr_error *error)                                                                         \
    {                                                                                                                  \
        return make_queue(resources, node, kind, resource, error);                                                     \
    }
MAKE(make_fifo, MR_QUEUE_FIFO)
MAKE(make_random, MR_QUEUE_RANDOM_SHUFFLE)
MAKE(make_padding, MR_QUEUE_PADDING_FIFO)
MAKE(make_priority, MR_QUEUE_PRIORITY)

static const mr_state_row rows[] = {
    {.op = "FIFOQueueV2", .make = make_fifo},
    {.op = "FIFOQueue", .make = make_fifo},
    {.op = "RandomShuffleQueueV2", .make = make_random},
    {.op = "RandomShuffleQueue", .make = make_random},
    {.op = "PaddingFIFOQueueV2", .make = make_padding},
    {.op = "PaddingFIFOQueue", .make = make_padding},
    {.op = "PriorityQueueV2", .make = make_priority},
    {.op = "PriorityQueue", .make = make_priority},
};

const mr_state_table mr_state_queue = {rows, sizeof rows / sizeof rows[0]};

/* ---- Use ---- */

static mr_status queue_at(const mr_kernel_call *call, int input, mr_queue **queue, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_handle_get(call, input, &mr_queue_class, &resource, error));
    *queue = ((mr_queue_state *)resource)->queue;
    if (*queue) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_FAILED_PRECONDITION, "the queue was not created");
}

static mr_status check_timeout(const mr_kernel_node *node, void *, mr_error *error)
{
    if (mr_attr_int_or(node->attrs, "timeout_ms", -1) == -1) return MR_OK;
    return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Timeout not supported yet.");
}

static mr_status check_components(const mr_kernel_call *call, const mr_queue *queue, int32_t count,
                                  const mr_dtype *dtypes, mr_error *error)
{
    const mr_queue_options *o = mr_queue_describe(queue);
    if (o->component_count != count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Wrong number of components in tuple. Expected %d, got %d", (int)o->component_count,
                              (int)count);
    for (int32_t i = 0; i < count; i++)
        if (o->dtypes[i] != dtypes[i])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Type mismatch in tuple component %d. Expected %s, got %s", (int)i,
                                  mr_dtype_name(o->dtypes[i]), mr_dtype_name(dtypes[i]));
    return MR_OK;
}

/* The value of a variable may change while it is in the queue. */
static mr_status take_component(mr_kernel_call *call, int32_t input, mr_tensor *component, mr_error *error)
{
    const mr_tensor *value = &call->inputs[input];
    if (value->buffer && value->buffer->is_mutable) return mr_tensor_duplicate(call->device, value, component, error);
    *component = mr_tensor_ref(value);
    return MR_OK;
}

static mr_status check_rows(const mr_kernel_call *call, mr_error *error)
{
    for (int32_t i = 1; i < call->node->input_count; i++) {
        const mr_shape *shape = &call->inputs[i].shape;
        if (shape->rank < 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Cannot enqueue a scalar: component %d has no rows", (int)i - 1);
        if (shape->dims[0] != call->inputs[1].shape.dims[0])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "All input tensors must have the same size in the 0th dimension. Component %d has "
                                  "%lld, and should have %lld",
                                  (int)i - 1, (long long)shape->dims[0], (long long)call->inputs[1].shape.dims[0]);
    }
    return MR_OK;
}

static mr_status enqueue(mr_kernel_call *call, bool are_rows, mr_error *error)
{
    mr_queue *queue;
    mr_tensor components[MR_COMPONENTS_MAX] = {0};
    int32_t count = call->node->input_count - 1;
    MR_TRY(queue_at(call, 0, &queue, error));
    MR_TRY(check_components(call, queue, count, call->node->input_dtypes + 1, error));
    if (are_rows) MR_TRY(check_rows(call, error));
    mr_status status = MR_OK;
    for (int32_t i = 0; i < count && status == MR_OK; i++) status = take_component(call, i + 1, &components[i], error);
    mr_queue_waiting waiting;
    mr_queue_waiting_init(&waiting, call);
    if (status == MR_OK) status = mr_queue_enqueue_with(queue, components, are_rows, &waiting.patience, error);
    for (int32_t i = 0; i < count; i++) mr_tensor_deinit(&components[i]);
    return mr_queue_waiting_end(&waiting, status, error);
}

static mr_status enqueue_one(mr_kernel_call *call, mr_error *error)
{
    return enqueue(call, false, error);
}

static mr_status enqueue_many(mr_kernel_call *call, mr_error *error)
{
    return enqueue(call, true, error);
}

static mr_status dequeue(mr_kernel_call *call, int64_t count, bool may_be_fewer, mr_error *error)
{
    mr_queue *queue;
    MR_TRY(queue_at(call, 0, &queue, error));
    MR_TRY(check_components(call, queue, call->node->output_count, call->node->output_dtypes, error));
    mr_queue_waiting waiting;
    mr_queue_waiting_init(&waiting, call);
    mr_status status = mr_queue_dequeue_with(queue, count, may_be_fewer, call->outputs, &waiting.patience, error);
    return mr_queue_waiting_end(&waiting, status, error);
}

static mr_status dequeue_one(mr_kernel_call *call, mr_error *error)
{
    return dequeue(call, -1, false, error);
}

static mr_status dequeue_batch(mr_kernel_call *call, bool may_be_fewer, mr_error *error)
{
    if (call->inputs[1].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "n must be a scalar");
    int32_t count = mr_tensor_int32s(&call->inputs[1])[0];
    if (count < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "DequeueManyOp requested %d < 0 elements",
                              (int)count);
    return dequeue(call, count, may_be_fewer, error);
}

static mr_status dequeue_many(mr_kernel_call *call, mr_error *error)
{
    return dequeue_batch(call, false, error);
}

static mr_status dequeue_up_to(mr_kernel_call *call, mr_error *error)
{
    return dequeue_batch(call, true, error);
}

static mr_status close_queue(mr_kernel_call *call, mr_error *error)
{
    mr_queue *queue;
    bool cancels = mr_attr_bool_or(call->node->attrs, "cancel_pending_enqueues", false);
    MR_TRY(queue_at(call, 0, &queue, error));
    if (mr_queue_is_closed(queue) && !cancels) {
        const char *name = mr_queue_describe(queue)->name, *quoted = strchr(name, '\'');
        return mr_fail(error, MR_CANCELLED, "Queue %s is already closed.", quoted ? quoted : name);
    }
    mr_queue_close(queue, cancels);
    return MR_OK;
}

static mr_status queue_size(mr_kernel_call *call, mr_error *error)
{
    mr_queue *queue;
    MR_TRY(queue_at(call, 0, &queue, error));
    return mr_tensor_init_int32(&call->outputs[0], (int32_t)mr_queue_size(queue), error);
}

static mr_status queue_is_closed(mr_kernel_call *call, mr_error *error)
{
    mr_queue *queue;
    MR_TRY(queue_at(call, 0, &queue, error));
    return mr_tensor_init_bool(&call->outputs[0], mr_queue_is_closed(queue), error);
}

#define BOTH(name, ...)                                                                                                \
    {.op = name, __VA_ARGS__},                                                                                         \
    {                                                                                                                  \
        .op = name "V2", __VA_ARGS__                                                                                   \
    }
static const mr_kernel kernels[] = {
    BOTH("QueueEnqueue", .run = enqueue_one, .prepare = check_timeout, .prepared_size_bytes = 1),
    BOTH("QueueEnqueueMany", .run = enqueue_many, .prepare = check_timeout, .prepared_size_bytes = 1),
    BOTH("QueueDequeue", .run = dequeue_one, .prepare = check_timeout, .prepared_size_bytes = 1),
    BOTH("QueueDequeueMany", .run = dequeue_many, .prepare = check_timeout, .prepared_size_bytes = 1),
    BOTH("QueueDequeueUpTo", .run = dequeue_up_to, .prepare = check_timeout, .prepared_size_bytes = 1),
    BOTH("QueueClose", .run = close_queue),
    BOTH("QueueSize", .run = queue_size),
    BOTH("QueueIsClosed", .run = queue_is_closed),
};
const mr_kernel_table mr_state_kernels_queue = {kernels, sizeof kernels / sizeof kernels[0]};
