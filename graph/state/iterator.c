/* Iterators in the graph: IteratorV2 names one, IteratorGetNext takes its next element.
 *
 * mr_graph_iterator binds a dataset to the node; the session starts the pipeline when the first element is requested.
 * Elements are not copied: the pipeline's tensors are the node's outputs, on the GPU if the pipeline ends there. If a
 * session restores the iterator's state before the first element is requested, the pipeline starts at that position.
 *
 * IteratorGetNext holds the iterator's mutex while it waits for an element, and no lock of the session: functions of
 * the pipeline may run steps of the same session. */
#include "graph/state/iterator.h"
#include "base/mutex.h"
#include "graph/state/optional.h"
#include "graph/state/run.h"
#include "graph/state/serialized.h"

#include "base/element.h"
#include "base/options.h"
#include "pipeline/to_device.h"

#include <assert.h>
#include <millrace/train.h>
#include <stdlib.h>
#include <string.h>

typedef struct source {
    mr_dataset *dataset;
    mr_iterator_options options;
} source;

static void release_source(void *object)
{
    source *s = object;
    mr_dataset_free(s->dataset);
    free(s);
}

static void iterator_deinit(mr_resource *resource)
{
    mr_iterator_state *state = (mr_iterator_state *)resource;
    mr_element_deinit(&state->element);
    mr_iterator_free(state->iterator);
    pthread_mutex_destroy(&state->mutex);
}

/* The handle stays valid: the iterator is then one that is not initialized. */
static void iterator_reset(mr_resource *resource)
{
    mr_iterator_state *state = (mr_iterator_state *)resource;
    pthread_mutex_lock(&state->mutex);
    mr_iterator *iterator = state->iterator;
    __atomic_store_n(&state->iterator, (mr_iterator *)nullptr, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&state->mutex);
    mr_iterator_free(iterator);
}

const mr_resource_class mr_iterator_class = {
    .name = "iterator", .size_bytes = sizeof(mr_iterator_state), .deinit = iterator_deinit, .reset = iterator_reset};

mr_status mr_iterator_make(mr_resource_table *resources, const mr_node *node, mr_device *device, mr_resource **resource,
                           mr_error *error)
{
    (void)device;
    bool made = false;
    MR_TRY(mr_resource_of_node(resources, &mr_iterator_class, node, resource, &made, error));
    mr_iterator_state *state = (mr_iterator_state *)*resource;
    if (made) pthread_mutex_init(&state->mutex, nullptr);
    if (!state->source) {
        state->source = mr_graph_bound(node, release_source);
        if (state->source) state->node = node;
        if (state->source) state->home = mr_dataset_device(((const source *)state->source)->dataset);
    }
    return MR_OK;
}

static const mr_state_row rows[] = {
    {.op = "IteratorV2", .make = mr_iterator_make},
    {.op = "Iterator", .make = mr_iterator_make},
};

const mr_state_table mr_state_iterator = {rows, sizeof rows / sizeof rows[0]};

static mr_status start_made(mr_iterator_state *state, mr_run_context *run, mr_error *error)
{
    mr_dataset *dataset = nullptr;
    mr_iterator *made = nullptr;
    MR_TRY(state->make_dataset(state, run, &dataset, error));
    mr_status status = mr_iterator_new(dataset, nullptr, &made, error);
    mr_dataset_free(dataset);
    if (status == MR_OK) __atomic_store_n(&state->iterator, made, __ATOMIC_RELEASE);
    return status;
}

mr_status mr_iterator_start(mr_iterator_state *state, mr_run_context *run, mr_error *error)
{
    assert(mr_mutex_is_held(&state->mutex));
    if (state->iterator) return MR_OK;
    if (state->make_dataset && run) return start_made(state, run, error);
    const source *s = state->source;
    if (!s)
        return mr_fail(error, MR_FAILED_PRECONDITION,
                       "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
                       "initializer operation for this iterator before getting the next element");
    mr_iterator *made = nullptr;
    MR_TRY(mr_iterator_new(s->dataset, &s->options, &made, error));
    __atomic_store_n(&state->iterator, made, __ATOMIC_RELEASE);
    return MR_OK;
}

/* An iterator that a stopped run has cancelled is replaced. */
mr_status mr_iterator_set(mr_iterator_state *state, mr_dataset *dataset, mr_error *error)
{
    mr_iterator *made = nullptr;
    pthread_mutex_lock(&state->mutex);
    mr_status status = state->iterator ? mr_iterator_initialize(state->iterator, dataset, error) : MR_CANCELLED;
    if (status == MR_CANCELLED) {
        status = mr_iterator_new(dataset, nullptr, &made, error);
        if (status == MR_OK) {
            mr_iterator_free(state->iterator);
            __atomic_store_n(&state->iterator, made, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&state->mutex);
    return status;
}

/* Moves the element to the node's outputs. It must have as many tensors, of the same dtypes. */
static mr_status take_element(mr_kernel_call *call, mr_element *element, mr_error *error)
{
    if (element->count != call->node->output_count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the dataset has %d components, the node has %d",
                              (int)element->count, (int)call->node->output_count);
    for (int32_t i = 0; i < element->count; i++)
        MR_TRY(mr_serialized_to_graph(&element->tensors[i], call->node->output_dtypes[i], error));
    for (int32_t i = 0; i < element->count; i++)
        if (element->tensors[i].dtype != call->node->output_dtypes[i])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "component %d is a %s, not a %s", (int)i,
                                  mr_dtype_name(element->tensors[i].dtype),
                                  mr_dtype_name(call->node->output_dtypes[i]));
    for (int32_t i = 0; i < element->count; i++) call->outputs[i] = element->tensors[i];
    element->count = 0;
    return MR_OK;
}

static mr_status bring_home(const mr_iterator_state *state, mr_tensor *tensor, mr_error *error)
{
    mr_tensor brought;
    mr_device *home = tensor->dtype == MR_STRING || tensor->dtype == MR_VARIANT ? nullptr : state->home;
    if (mr_tensor_device(tensor) == home) return MR_OK;
    MR_TRY(home ? mr_tensor_to_device(tensor, home, &brought, error) : mr_tensor_to_host(tensor, &brought, error));
    mr_tensor_deinit(tensor);
    *tensor = brought;
    return MR_OK;
}

static void cancel_iterator(mr_waiter *waiter)
{
    mr_iterator_cancel(waiter->object);
}

/* The caller holds the iterator's mutex. */
static mr_status next_element(mr_iterator_state *state, mr_run_context *run, mr_error *error)
{
    assert(mr_mutex_is_held(&state->mutex) && state->iterator != nullptr);
    mr_waiter waiter = {.wake = cancel_iterator, .object = state->iterator};
    MR_TRY(mr_run_begin_wait(run, &waiter, error));
    mr_status status = mr_iterator_next(state->iterator, &state->element, error);
    mr_run_end_wait(run, &waiter);
    return status == MR_CANCELLED && mr_run_is_stopped(run) ? mr_run_stopped(run, error) : status;
}

static mr_status get_next(mr_kernel_call *call, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_handle_get(call, 0, &mr_iterator_class, &resource, error));
    mr_iterator_state *state = (mr_iterator_state *)resource;
    pthread_mutex_lock(&state->mutex);
    mr_status status = mr_iterator_start(state, call->run, error);
    if (status == MR_OK) status = next_element(state, call->run, error);
    bool has_ended = status == MR_OUT_OF_RANGE;
    if (status == MR_OK) status = take_element(call, &state->element, error);
    mr_element_clear(&state->element);
    pthread_mutex_unlock(&state->mutex);
    if (has_ended) return mr_fail(error, MR_OUT_OF_RANGE, "End of sequence");
    MR_TRY(status);
    int32_t count = call->node->output_count;
    for (int32_t i = 0; i < count && status == MR_OK; i++) status = bring_home(state, &call->outputs[i], error);
    for (int32_t i = 0; i < count && status != MR_OK; i++) mr_tensor_deinit(&call->outputs[i]);
    return status;
}

/* ---- Elements as optionals ---- */

/* An element has at least one tensor. null: the end of the sequence. */
static mr_status make_optional(mr_kernel_call *call, mr_element *element, mr_error *error)
{
    mr_status status = MR_OK;
    const mr_attr *types = mr_attrs_find(call->node->attrs, "output_types");
    for (int32_t i = 0; element && types && i < element->count && i < types->count; i++)
        MR_TRY(mr_serialized_to_graph(&element->tensors[i], (mr_dtype)types->values[i].type, error));
    for (int32_t i = 0; element && i < element->count && status == MR_OK; i++) {
        mr_tensor brought, *tensor = &element->tensors[i];
        if (!mr_tensor_device(tensor)) continue;
        status = mr_tensor_to_host(tensor, &brought, error);
        if (status != MR_OK) break;
        mr_tensor_deinit(tensor);
        *tensor = brought;
    }
    if (status != MR_OK) return status;
    return mr_optional_new(call, element ? element->tensors : nullptr, element ? element->count : 0, &call->outputs[0],
                           error);
}

static mr_status get_next_as_optional(mr_kernel_call *call, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_handle_get(call, 0, &mr_iterator_class, &resource, error));
    mr_iterator_state *state = (mr_iterator_state *)resource;
    pthread_mutex_lock(&state->mutex);
    mr_status status = mr_iterator_start(state, call->run, error);
    if (status == MR_OK) status = next_element(state, call->run, error);
    if (status == MR_OK) status = make_optional(call, &state->element, error);
    mr_element_clear(&state->element);
    pthread_mutex_unlock(&state->mutex);
    return status == MR_OUT_OF_RANGE ? make_optional(call, nullptr, error) : status;
}

/* ---- The state of an iterator ---- */

/* The iterator of input 0, started and locked. */
static mr_status lock_started(const mr_kernel_call *call, mr_iterator_state **state, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_handle_get(call, 0, &mr_iterator_class, &resource, error));
    *state = (mr_iterator_state *)resource;
    pthread_mutex_lock(&(*state)->mutex);
    mr_status status = mr_iterator_start(*state, call->run, error);
    if (status != MR_OK) pthread_mutex_unlock(&(*state)->mutex);
    return status;
}

static mr_status serialize_iterator(mr_kernel_call *call, mr_error *error)
{
    mr_iterator_state *state;
    mr_tensor saved = {0};
    MR_TRY(lock_started(call, &state, error));
    mr_status status = mr_iterator_save(state->iterator, &saved, error);
    pthread_mutex_unlock(&state->mutex);
    if (status == MR_OK) status = mr_serialized_wrap(&saved, error);
    if (status == MR_OK)
        call->outputs[0] = saved;
    else
        mr_tensor_deinit(&saved);
    return status;
}

static mr_status deserialize_iterator(mr_kernel_call *call, mr_error *error)
{
    mr_iterator_state *state;
    const mr_tensor *saved = mr_serialized_strings(&call->inputs[1]);
    if (!saved || saved->shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "serialized is not the state of an iterator");
    MR_TRY(lock_started(call, &state, error));
    mr_waiter waiter = {.wake = cancel_iterator, .object = state->iterator};
    mr_status status = call->run ? mr_run_begin_wait(call->run, &waiter, error) : MR_OK;
    if (status == MR_OK) {
        status = mr_iterator_restore(state->iterator, saved, error);
        if (call->run) mr_run_end_wait(call->run, &waiter);
    }
    pthread_mutex_unlock(&state->mutex);
    return status;
}

/* ---- Iterators without a name ---- */

static mr_status make_anonymous(mr_kernel_call *call, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_resource_new(&mr_iterator_class, &resource, error));
    pthread_mutex_init(&((mr_iterator_state *)resource)->mutex, nullptr);
    call->outputs[0] = mr_tensor_take_resource(MR_RESOURCE, resource);
    if (call->node->output_count > 1) call->outputs[1] = (mr_tensor){.dtype = MR_VARIANT, .shape = MR_SCALAR};
    return MR_OK;
}

static mr_status delete_iterator(mr_kernel_call *call, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_handle_get(call, 0, &mr_iterator_class, &resource, error));
    iterator_reset(resource);
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "IteratorGetNextAsOptional", .run = get_next_as_optional},
    {.op = "AnonymousIterator", .run = make_anonymous},
    {.op = "AnonymousIteratorV2", .run = make_anonymous},
    {.op = "AnonymousIteratorV3", .run = make_anonymous},
    {.op = "DeleteIterator", .run = delete_iterator},
    {.op = "SerializeIterator", .run = serialize_iterator},
    {.op = "DeserializeIterator", .run = deserialize_iterator},
    {.op = "IteratorGetNext", .run = get_next},
    {.op = "IteratorGetNextSync", .run = get_next},
};
const mr_kernel_table mr_state_kernels_iterator = {kernels, sizeof kernels / sizeof kernels[0]};

/* ---- Public functions ---- */

mr_node *mr_graph_iterator(mr_graph *graph, const char *name, mr_dataset *dataset, const mr_iterator_options *options,
                           mr_output *outputs)
{
    mr_error error = {0};
    for (int i = 0; dataset && outputs && i < mr_dataset_spec(dataset)->count; i++) outputs[i] = (mr_output){0};
    mr_status status =
        dataset ? mr_dataset_status(dataset, &error) : mr_fail(&error, MR_INVALID_ARGUMENT, "the dataset is null");
    if (status == MR_OK && outputs == nullptr && mr_dataset_spec(dataset)->count > 0)
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "the array of outputs is null");
    if (status != MR_OK) {
        mr_output failed = mr_graph_fail(graph, status, "%s: %s", name ? name : "iterator", error.message);
        for (int i = 0; dataset && outputs && i < mr_dataset_spec(dataset)->count; i++) outputs[i] = failed;
        return failed.node;
    }
    const mr_element_spec *spec = mr_dataset_spec(dataset);
    mr_node_builder handle = mr_node_begin(graph, "IteratorV2", name ? name : "iterator");
    mr_node_set_string(&handle, "shared_name", "");
    mr_node_set_string(&handle, "container", "");
    mr_node_set_dtypes(&handle, "output_types", (mr_dtypes){spec->dtypes, spec->count});
    mr_node_set_shapes(&handle, "output_shapes", (mr_shapes){spec->shapes, spec->count});
    mr_output iterator = mr_node_finish(&handle);

    mr_node_builder next = mr_node_begin(graph, "IteratorGetNext", name ? name : nullptr);
    mr_node_add_input(&next, iterator);
    mr_node_set_dtypes(&next, "output_types", (mr_dtypes){spec->dtypes, spec->count});
    mr_node_set_shapes(&next, "output_shapes", (mr_shapes){spec->shapes, spec->count});
    mr_output first = mr_node_finish(&next);
    for (int32_t i = 0; outputs && i < spec->count; i++) outputs[i] = first;
    if (mr_graph_status(graph, nullptr) != MR_OK) return iterator.node;
    for (int32_t i = 0; outputs && i < spec->count; i++) outputs[i].index = i;

    source *s = calloc(1, sizeof *s);
    status = s ? MR_OK : mr_fail_memory(&error, sizeof *s);
    if (s) {
        s->dataset = mr_dataset_ref(dataset);
        status = MR_OPTIONS_READ(mr_iterator_options, &s->options, options, &error);
        if (status == MR_OK) status = mr_graph_bind(graph, iterator.node, s, release_source, &error);
        if (status != MR_OK) release_source(s);
    }
    if (status != MR_OK) return mr_graph_fail(graph, status, "%s", error.message).node;
    return iterator.node;
}
