/* Datasets in variants, the arguments of their operators, and calls of functions from pipelines.
 *
 * A pipeline may run longer than the run that built it, but not longer than its session, whose functions it calls: the
 * session frees its iterators first. */
#include "graph/data/dataset.h"

#include "base/cpu.h"
#include "base/thread.h"
#include "graph/state/run.h"
#include "graph/state/serialized.h"

#include <assert.h>
#include <stdlib.h>

typedef struct dataset_state {
    mr_resource resource;
    mr_dataset *dataset;
    mr_data_windows windows; /* its input is null if it is none of windows */
} dataset_state;

static void dataset_deinit(mr_resource *resource)
{
    mr_dataset_free(((dataset_state *)resource)->dataset);
    mr_dataset_free(((dataset_state *)resource)->windows.input);
}

static const mr_resource_class dataset_class = {
    .name = "dataset", .size_bytes = sizeof(dataset_state), .deinit = dataset_deinit};

static mr_dataset *dataset_of(const mr_tensor *variant)
{
    mr_resource *resource = mr_tensor_resource(variant, &dataset_class);
    return resource ? ((dataset_state *)resource)->dataset : nullptr;
}

mr_status mr_data_input(const mr_kernel_call *call, int32_t input, mr_dataset **dataset, mr_error *error)
{
    *dataset = dataset_of(&call->inputs[input]);
    if (*dataset) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input %d is not a dataset", (int)input);
}

mr_status mr_data_wrap(mr_dataset *dataset, mr_tensor *tensor, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_resource_new(&dataset_class, &resource, error));
    ((dataset_state *)resource)->dataset = dataset;
    *tensor = mr_tensor_take_resource(MR_VARIANT, resource);
    return MR_OK;
}

mr_status mr_data_output(mr_kernel_call *call, mr_dataset *dataset, mr_error *error)
{
    mr_status status = dataset ? mr_dataset_status(dataset, error) : mr_fail_memory(error, 1);
    if (status == MR_OK) status = mr_data_wrap(dataset, &call->outputs[0], error);
    if (status != MR_OK) mr_dataset_free(dataset);
    return status;
}

mr_status mr_data_output_windows(mr_kernel_call *call, mr_dataset *dataset, const mr_data_windows *windows,
                                 mr_error *error)
{
    MR_TRY(mr_data_output(call, dataset, error));
    dataset_state *state = (dataset_state *)mr_tensor_resource(&call->outputs[0], &dataset_class);
    state->windows = *windows;
    state->windows.input = mr_dataset_ref(windows->input);
    return MR_OK;
}

const mr_data_windows *mr_data_input_windows(const mr_kernel_call *call, int32_t input)
{
    mr_resource *resource = mr_tensor_resource(&call->inputs[input], &dataset_class);
    const mr_data_windows *windows = resource ? &((dataset_state *)resource)->windows : nullptr;
    return windows && windows->input ? windows : nullptr;
}

mr_status mr_data_spec(const mr_kernel_call *call, mr_element_spec *spec, mr_error *error)
{
    const mr_attr *types = mr_attrs_find(call->node->attrs, "output_types");
    const mr_attr *shapes = mr_attrs_find(call->node->attrs, "output_shapes");
    *spec = (mr_element_spec){0};
    if (!types || !shapes || types->count != shapes->count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "output_types and output_shapes do not match");
    if (types->count > MR_COMPONENTS_MAX)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "%d components, more than %d", (int)types->count,
                              MR_COMPONENTS_MAX);
    spec->count = types->count;
    for (int32_t i = 0; i < types->count; i++) {
        spec->dtypes[i] = (mr_dtype)types->values[i].type;
        spec->shapes[i] = shapes->values[i].shape;
        if (spec->dtypes[i] == MR_VARIANT && spec->shapes[i].rank != 0) spec->dtypes[i] = MR_STRING;
    }
    return MR_OK;
}

/* ---- Arguments ---- */

static mr_status check_scalar(const mr_kernel_call *call, int32_t input, const char *name, mr_dtype dtype,
                              mr_error *error)
{
    const mr_tensor *value = &call->inputs[input];
    if (value->dtype == dtype && mr_tensor_count(value) == 1) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be a scalar", name);
}

mr_status mr_data_int(const mr_kernel_call *call, int32_t input, const char *name, int64_t *value, mr_error *error)
{
    if (call->inputs[input].dtype == MR_INT32) {
        MR_TRY(check_scalar(call, input, name, MR_INT32, error));
        *value = mr_tensor_int32s(&call->inputs[input])[0];
        return MR_OK;
    }
    MR_TRY(check_scalar(call, input, name, MR_INT64, error));
    *value = mr_tensor_int64s(&call->inputs[input])[0];
    return MR_OK;
}

mr_status mr_data_bool(const mr_kernel_call *call, int32_t input, const char *name, bool *value, mr_error *error)
{
    MR_TRY(check_scalar(call, input, name, MR_BOOL, error));
    *value = mr_tensor_bools(&call->inputs[input])[0];
    return MR_OK;
}

mr_status mr_data_string(const mr_kernel_call *call, int32_t input, const char *name, mr_string *value, mr_error *error)
{
    MR_TRY(check_scalar(call, input, name, MR_STRING, error));
    *value = mr_tensor_strings(&call->inputs[input])[0];
    return MR_OK;
}

/* ---- Iterators ---- */

static void cancel_iterator(mr_waiter *waiter)
{
    mr_iterator_cancel(waiter->object);
}

mr_status mr_data_next(const mr_kernel_call *call, mr_iterator *iterator, mr_element *element, mr_error *error)
{
    mr_run_context *run = call->run;
    mr_waiter waiter = {.wake = cancel_iterator, .object = iterator};
    if (!run) return mr_iterator_next(iterator, element, error);
    MR_TRY(mr_run_begin_wait(run, &waiter, error));
    mr_status status = mr_iterator_next(iterator, element, error);
    mr_run_end_wait(run, &waiter);
    return status == MR_CANCELLED && mr_run_is_stopped(run) ? mr_run_stopped(run, error) : status;
}

/* ---- Functions ---- */

struct mr_data_function {
    mr_session *session;
    mr_function *function;
    mr_function *own; /* the same if it is the data function's own; otherwise null */
    int32_t captured_count;
    mr_tensor captured[]; /* owned */
};

mr_status mr_data_function_new(const mr_kernel_call *call, const char *attr_name, int32_t first_captured,
                               int32_t captured_count, mr_data_function **function, mr_error *error)
{
    const mr_attr *attr = mr_attrs_find(call->node->attrs, attr_name);
    if (!attr || attr->kind != MR_ATTR_FUNCTION || attr->count != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "attr %s is not a function", attr_name);
    if (!call->run) return mr_fail(error, MR_UNIMPLEMENTED, "a dataset is built outside of a session");
    assert(first_captured >= 0 && captured_count >= 0 && first_captured + captured_count <= call->node->input_count);
    mr_function *found;
    MR_TRY(mr_session_function(call->run->session, attr->values[0].function.name, attr->values[0].function.attrs, false,
                               &found, error));
    mr_data_function *made = calloc(1, sizeof *made + (size_t)captured_count * sizeof made->captured[0]);
    if (!made) return mr_fail_memory(error, sizeof *made);
    made->session = call->run->session;
    made->function = found;
    /* As in TensorFlow, the random numbers of a dataset start anew whenever it is made. */
    if (mr_function_is_stateful(found)) {
        mr_status status = mr_session_own_function(call->run->session, attr->values[0].function.name,
                                                   attr->values[0].function.attrs, &made->own, error);
        if (status != MR_OK) {
            free(made);
            return status;
        }
        made->function = made->own;
    }
    made->captured_count = captured_count;
    for (int32_t i = 0; i < captured_count; i++) made->captured[i] = mr_tensor_ref(&call->inputs[first_captured + i]);
    *function = made;
    return MR_OK;
}

void mr_data_function_free(void *function)
{
    mr_data_function *f = function;
    if (!f) return;
    for (int32_t i = 0; i < f->captured_count; i++) mr_tensor_deinit(&f->captured[i]);
    mr_function_free(f->own);
    free(f);
}

int32_t mr_data_function_output_count(const mr_data_function *function)
{
    return mr_function_output_count(function->function);
}

bool mr_data_function_is_stateful(const mr_data_function *function)
{
    return mr_function_is_stateful(function->function);
}

/* A tensor without a buffer is in the memory of the pipeline. */
static mr_status own(const mr_tensor *tensor, mr_tensor *owned, mr_error *error)
{
    *owned = (mr_tensor){0};
    if (tensor->buffer || mr_dtype_size(tensor->dtype) == 0) {
        *owned = mr_tensor_ref(tensor);
        return MR_OK;
    }
    if (tensor->dtype == MR_STRING)
        return mr_tensor_init_strings(owned, tensor->shape, mr_tensor_strings(tensor), error);
    return mr_tensor_init_copy(owned, tensor->dtype, tensor->shape, tensor->data, error);
}

/* The arguments of a call, or its error if they do not fit. */
static mr_status take_arguments(const mr_data_function *f, const mr_element *first, const mr_element *second,
                                mr_tensor *arguments, mr_error *error)
{
    int32_t count = 0, expected = mr_function_input_count(f->function);
    int32_t given = (first ? first->count : 0) + (second ? second->count : 0) + f->captured_count;
    if (given != expected)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a function of %d arguments is called with %d", (int)expected,
                       (int)given);
    for (int32_t i = 0; first && i < first->count; i++) MR_TRY(own(&first->tensors[i], &arguments[count++], error));
    for (int32_t i = 0; second && i < second->count; i++) MR_TRY(own(&second->tensors[i], &arguments[count++], error));
    for (int32_t i = 0; i < f->captured_count; i++) arguments[count++] = mr_tensor_ref(&f->captured[i]);
    for (int32_t i = 0; i < count; i++)
        MR_TRY(mr_serialized_to_graph(&arguments[i], mr_function_input_dtype(f->function, i), error));
    for (int32_t i = 0; i < count; i++)
        if (arguments[i].dtype != mr_function_input_dtype(f->function, i))
            return mr_fail(error, MR_INVALID_ARGUMENT, "argument %d is a %s, but must be a %s", (int)i,
                           mr_dtype_name(arguments[i].dtype), mr_dtype_name(mr_function_input_dtype(f->function, i)));
    return MR_OK;
}

mr_status mr_data_function_call(const mr_data_function *f, const mr_element *first, const mr_element *second,
                                mr_tensor *outputs, int32_t count, mr_error *error)
{
    int32_t results = mr_function_output_count(f->function), expected = mr_function_input_count(f->function);
    if (results != count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a function has %d results, but must have %d", (int)results,
                       (int)count);
    mr_tensor few[MR_COMPONENTS_MAX] = {0}, *arguments = few;
    if (expected > MR_COMPONENTS_MAX) arguments = calloc((size_t)expected, sizeof *arguments);
    if (!arguments) return mr_fail_memory(error, (size_t)expected * sizeof *arguments);
    mr_status status = take_arguments(f, first, second, arguments, error);
    if (status == MR_OK) {
        mr_run_context run;
        bool flushes = mr_cpu_flush_subnormals(true);
        mr_run_context_init_background(&run, f->session, &f->session->runs);
        run.rights.read_only = f->session->options.read_only;
        status = mr_function_call(f->function, &run, mr_nesting() + 1, arguments, outputs, error);
        for (int32_t i = 0; i < count && status == MR_OK; i++) mr_serialized_to_pipeline(&outputs[i]);
        mr_run_context_deinit(&run, &f->session->runs, nullptr);
        (void)mr_cpu_flush_subnormals(flushes);
    }
    for (int32_t i = 0; i < expected; i++) mr_tensor_deinit(&arguments[i]);
    if (arguments != few) free(arguments);
    return status;
}

mr_status mr_data_function_map(void *function, const mr_element *input, mr_random *, mr_element *output,
                               mr_error *error)
{
    mr_data_function *f = function;
    int32_t count = mr_function_output_count(f->function);
    mr_tensor results[MR_COMPONENTS_MAX] = {0};
    if (count > MR_COMPONENTS_MAX)
        return mr_fail(error, MR_UNIMPLEMENTED, "%d components, more than %d", (int)count, MR_COMPONENTS_MAX);
    MR_TRY(mr_data_function_call(f, input, nullptr, results, count, error));
    for (int32_t i = 0; i < count; i++) output->tensors[i] = results[i];
    output->count = count;
    return MR_OK;
}

mr_status mr_data_function_test(void *function, const mr_element *input, bool *keep, mr_error *error)
{
    mr_tensor result = {0};
    MR_TRY(mr_data_function_call(function, input, nullptr, &result, 1, error));
    mr_status status = MR_OK;
    if (result.dtype == MR_BOOL && mr_tensor_count(&result) == 1)
        *keep = mr_tensor_bools(&result)[0];
    else
        status = mr_fail(error, MR_INVALID_ARGUMENT, "a predicate must return a scalar of type bool");
    mr_tensor_deinit(&result);
    return status;
}

mr_status mr_data_function_dataset(void *function, const mr_element *input, mr_dataset **output, mr_error *error)
{
    mr_tensor result = {0};
    MR_TRY(mr_data_function_call(function, input, nullptr, &result, 1, error));
    mr_dataset *dataset = dataset_of(&result);
    if (dataset) *output = mr_dataset_ref(dataset);
    mr_tensor_deinit(&result);
    return dataset ? MR_OK : mr_fail(error, MR_INVALID_ARGUMENT, "a function does not return a dataset");
}
