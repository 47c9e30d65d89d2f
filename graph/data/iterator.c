/* The operators of iterators that need datasets and functions. The others are in graph/state/iterator.c. */
#include "graph/state/iterator.h"
#include "base/thread.h"
#include "graph/data/dataset.h"

#include <assert.h>
#include <string.h>

static mr_status iterator_at(const mr_kernel_call *call, int32_t input, mr_iterator_state **state, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_handle_get(call, input, &mr_iterator_class, &resource, error));
    *state = (mr_iterator_state *)resource;
    return MR_OK;
}

static mr_status make_iterator(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *dataset;
    mr_iterator_state *state;
    MR_TRY(mr_data_input(call, 0, &dataset, error));
    MR_TRY(iterator_at(call, 1, &state, error));
    return mr_iterator_set(state, dataset, error);
}

/* ---- One-shot iterators ---- */

/* Calls the dataset_factory function. This happens at the first GetNext. */
static mr_status make_dataset(const mr_iterator_state *state, mr_run_context *run, mr_dataset **dataset,
                              mr_error *error)
{
    mr_tensor result = {0};
    mr_function *function;
    const mr_attr *factory = mr_attrs_find(&state->factory->attrs, "dataset_factory");
    if (!factory || factory->kind != MR_ATTR_FUNCTION || factory->count != 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "attr dataset_factory is not a function");
    MR_TRY(mr_session_function(run->session, factory->values[0].function.name, factory->values[0].function.attrs, false,
                               &function, error));
    if (mr_function_input_count(function) != 0 || mr_function_output_count(function) != 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "dataset_factory must have no arguments and one result");
    MR_TRY(mr_function_call(function, run, mr_nesting() + 1, nullptr, &result, error));
    mr_kernel_node node = {.name = state->factory->name, .op = state->factory->op, .attrs = &state->factory->attrs};
    mr_kernel_call call = {.node = &node, .inputs = &result};
    mr_status status = mr_data_input(&call, 0, dataset, error);
    if (status == MR_OK) *dataset = mr_dataset_ref(*dataset);
    mr_tensor_deinit(&result);
    return status;
}

static mr_status make_one_shot(mr_resource_table *resources, const mr_node *node, mr_device *device,
                               mr_resource **resource, mr_error *error)
{
    MR_TRY(mr_iterator_make(resources, node, device, resource, error));
    mr_iterator_state *state = (mr_iterator_state *)*resource;
    if (!state->factory) state->factory = node;
    state->make_dataset = make_dataset;
    return MR_OK;
}

static const mr_state_row rows[] = {
    {.op = "OneShotIterator", .make = make_one_shot},
};

const mr_state_table mr_state_one_shot = {rows, sizeof rows / sizeof rows[0]};

/* ---- Iterators by name ---- */

/* "container", a NUL, and the iterator's name. */
static mr_status to_string_handle(mr_kernel_call *call, mr_error *error)
{
    mr_iterator_state *state;
    MR_TRY(iterator_at(call, 0, &state, error));
    mr_arena arena = {0};
    size_t container = strlen(state->resource.container), size = container + 1 + strlen(state->resource.name);
    char *text = mr_arena_alloc(&arena, size + 1);
    mr_status status = text ? MR_OK : mr_fail_memory(error, size);
    if (status == MR_OK) {
        memcpy(text, state->resource.container, container);
        memcpy(text + container + 1, state->resource.name, size - container - 1);
        status = mr_tensor_init_string(&call->outputs[0], (mr_string){text, size}, error);
    }
    mr_arena_deinit(&arena);
    return status;
}

static mr_status from_string_handle(mr_kernel_call *call, mr_error *error)
{
    mr_string text;
    mr_arena arena = {0};
    MR_TRY(mr_data_string(call, 0, "string_handle", &text, error));
    if (!call->run) return mr_fail(error, MR_UNIMPLEMENTED, "an iterator is named outside of a session");
    const char *end = text.size_bytes > 0 ? memchr(text.data, 0, text.size_bytes) : nullptr;
    char *copy = mr_arena_strndup(&arena, text.data ? text.data : "", text.size_bytes);
    mr_resource *found = nullptr;
    mr_session *session = call->run->session;
    if (copy && end) {
        pthread_mutex_lock(&session->mutex);
        found = mr_resource_find(&session->resources, &mr_iterator_class, copy, copy + (end - text.data) + 1);
        pthread_mutex_unlock(&session->mutex);
    }
    mr_arena_deinit(&arena);
    if (!copy) return mr_fail_memory(error, text.size_bytes);
    if (!found)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "The given string_handle is not the handle of an iterator of this session");
    call->outputs[0] = mr_tensor_of_resource(MR_RESOURCE, found);
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "MakeIterator", .run = make_iterator},
    {.op = "IteratorToStringHandle", .run = to_string_handle},
    {.op = "IteratorFromStringHandle", .run = from_string_handle},
    {.op = "IteratorFromStringHandleV2", .run = from_string_handle},
};
const mr_kernel_table mr_data_kernels_iterator = {kernels, sizeof kernels / sizeof kernels[0]};
