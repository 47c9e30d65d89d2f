/* Datasets of datasets: windows, and groups of elements with the same key.
 *
 * The elements of WindowDataset are variants: a dataset for each component. A map or flat_map that follows reads its
 * description instead, and calls its function with each window, without pipelines for the variants. */
#include "graph/data/dataset.h"

#include "base/options.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Windows ---- */

static mr_status positive(const mr_kernel_call *call, int32_t input, const char *name, int64_t *value, mr_error *error)
{
    MR_TRY(mr_data_int(call, input, name, value, error));
    if (*value > 0) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Window %s must be greater than zero.", name);
}

/* Windows that are batches. */
static mr_status sliding_window(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    int64_t size, shift, stride;
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(positive(call, 1, "size", &size, error));
    MR_TRY(positive(call, 2, "shift", &shift, error));
    MR_TRY(positive(call, 3, "stride", &stride, error));
    return mr_data_output(
        call,
        mr_dataset_window(mr_dataset_ref(input), nullptr, nullptr, nullptr, .window_size = size, .shift = shift,
                          .stride = stride,
                          .drop_remainder = mr_attr_bool_or(call->node->attrs, "drop_remainder", true)),
        error);
}

static mr_status take_component(void *index, const mr_element *input, mr_random *, mr_element *output, mr_error *)
{
    output->tensors[0] = mr_tensor_ref(&input->tensors[(intptr_t)index]);
    output->count = 1;
    return MR_OK;
}

/* The dataset of one component, as a tensor. */
static mr_status component_of(mr_dataset *window, int32_t index, mr_tensor *tensor, mr_error *error)
{
    const mr_element_spec *all = mr_dataset_spec(window);
    mr_element_spec spec = {.count = 1, .dtypes = {all->dtypes[index]}, .shapes = {all->shapes[index]}};
    mr_dataset *component = mr_dataset_ref(window);
    if (all->count > 1)
        component = mr_dataset_map(component, take_component, (void *)(intptr_t)index, &spec, .own_input = true);
    mr_status status = mr_dataset_status(component, error);
    if (status == MR_OK) status = mr_data_wrap(component, tensor, error);
    if (status != MR_OK) mr_dataset_free(component);
    return status;
}

static void release_element(void *context)
{
    mr_element *element = context;
    mr_element_deinit(element);
    free(element);
}

static mr_status give_element(void *context, const mr_element *, mr_random *, mr_element *output, mr_error *)
{
    const mr_element *element = context;
    for (int32_t i = 0; i < element->count; i++) output->tensors[i] = mr_tensor_ref(&element->tensors[i]);
    output->count = element->count;
    return MR_OK;
}

static mr_status components_of(mr_dataset *window, mr_element *element, mr_error *error)
{
    MR_TRY(mr_element_init(element, mr_dataset_spec(window)->count, error));
    for (int32_t i = 0; i < element->count; i++) MR_TRY(component_of(window, i, &element->tensors[i], error));
    return MR_OK;
}

/* The dataset of one element: the datasets of the window's components. */
static mr_status window_element(void *, mr_dataset *window, mr_dataset **output, mr_error *error)
{
    mr_element_spec spec = {.count = mr_dataset_spec(window)->count};
    for (int32_t i = 0; i < spec.count; i++) spec.dtypes[i] = MR_VARIANT; /* scalars */
    mr_element *element = calloc(1, sizeof *element);
    mr_status status = element ? components_of(window, element, error) : mr_fail_memory(error, sizeof *element);
    mr_dataset_free(window);
    if (status != MR_OK) {
        if (element) release_element(element);
        return status;
    }
    *output = mr_dataset_map(mr_dataset_range(0, 1, 1), give_element, element, &spec, .release = release_element);
    return MR_OK;
}

static mr_status window(mr_kernel_call *call, mr_error *error)
{
    mr_data_windows w;
    MR_TRY(mr_data_input(call, 0, &w.input, error));
    MR_TRY(positive(call, 1, "size", &w.size, error));
    MR_TRY(positive(call, 2, "shift", &w.shift, error));
    MR_TRY(positive(call, 3, "stride", &w.stride, error));
    MR_TRY(mr_data_bool(call, 4, "drop_remainder", &w.drops_remainder, error));
    mr_element_spec spec = {.count = mr_dataset_spec(w.input)->count};
    for (int32_t i = 0; i < spec.count; i++) spec.dtypes[i] = MR_VARIANT; /* scalars */
    mr_dataset *windows =
        mr_dataset_window(mr_dataset_ref(w.input), window_element, nullptr, &spec, .window_size = w.size,
                          .shift = w.shift, .stride = w.stride, .drop_remainder = w.drops_remainder);
    return mr_data_output_windows(call, windows, &w, error);
}

/* ---- Calls with windows ---- */

typedef struct mapping {
    mr_data_function *function;
    int32_t result_count;
    bool is_flat;
} mapping;

static void mapping_free(void *context)
{
    mapping *m = context;
    mr_data_function_free(m->function);
    free(m);
}

static mr_status element_of(const mapping *m, const mr_element *arguments, mr_dataset **output, mr_error *error)
{
    mr_tensor results[MR_COMPONENTS_MAX] = {0};
    MR_TRY(mr_data_function_call(m->function, arguments, nullptr, results, m->result_count, error));
    *output = mr_dataset_from_tensors(results, m->result_count);
    for (int32_t i = 0; i < m->result_count; i++) mr_tensor_deinit(&results[i]);
    return MR_OK;
}

/* As in TensorFlow, a window is a dataset for each component. */
static mr_status map_window(void *context, mr_dataset *window, mr_dataset **output, mr_error *error)
{
    const mapping *m = context;
    mr_tensor tensors[MR_COMPONENTS_MAX] = {0};
    mr_element arguments = {.tensors = tensors, .count = mr_dataset_spec(window)->count};
    mr_status status = MR_OK;
    for (int32_t i = 0; i < arguments.count && status == MR_OK; i++)
        status = component_of(window, i, &tensors[i], error);
    if (status == MR_OK)
        status = m->is_flat ? mr_data_function_dataset(m->function, &arguments, output, error)
                            : element_of(m, &arguments, output, error);
    for (int32_t i = 0; i < arguments.count; i++) mr_tensor_deinit(&tensors[i]);
    mr_dataset_free(window);
    return status;
}

mr_status mr_data_windows_map(const mr_kernel_call *call, mr_data_function *function, const mr_element_spec *spec,
                              bool flat, mr_dataset **mapped, mr_error *error)
{
    const mr_data_windows *w = mr_data_input_windows(call, 0);
    mapping *m = calloc(1, sizeof *m);
    if (!m) {
        mr_data_function_free(function);
        return mr_fail_memory(error, sizeof *m);
    }
    assert(w);
    *m = (mapping){.function = function, .result_count = spec->count, .is_flat = flat};
    *mapped =
        mr_dataset_window(mr_dataset_ref(w->input), map_window, m, spec, .window_size = w->size, .shift = w->shift,
                          .stride = w->stride, .drop_remainder = w->drops_remainder, .release = mapping_free);
    return MR_OK;
}

/* ---- Groups ---- */

typedef struct grouping {
    mr_data_function *key, *reduce, *size;
} grouping;

static void grouping_free(void *context)
{
    grouping *g = context;
    mr_data_function_free(g->key);
    mr_data_function_free(g->reduce);
    mr_data_function_free(g->size);
    free(g);
}

static mr_status call_for_int(const mr_data_function *f, const mr_element *input, const char *what, int64_t *value,
                              mr_error *error)
{
    mr_tensor result = {0};
    MR_TRY(mr_data_function_call(f, input, nullptr, &result, 1, error));
    mr_status status = MR_OK;
    if (result.dtype == MR_INT64 && mr_tensor_count(&result) == 1)
        *value = mr_tensor_int64s(&result)[0];
    else
        status = mr_fail(error, MR_INVALID_ARGUMENT, "`%s` must return a scalar int64.", what);
    mr_tensor_deinit(&result);
    return status;
}

static mr_status key_of(void *context, const mr_element *input, int64_t *key, mr_error *error)
{
    return call_for_int(((const grouping *)context)->key, input, "key_func", key, error);
}

/* An error is a size of 0, which the pipeline refuses. */
static int64_t size_of(void *context, int64_t key)
{
    int64_t size = 0;
    mr_tensor tensor = {0};
    if (mr_tensor_init_int64(&tensor, key, nullptr) != MR_OK) return 0;
    mr_element argument = {.tensors = &tensor, .count = 1};
    if (call_for_int(((const grouping *)context)->size, &argument, "window_size_func", &size, nullptr) != MR_OK)
        size = 0;
    mr_tensor_deinit(&tensor);
    return size;
}

static mr_status reduce_group(void *context, int64_t key, mr_dataset *window, mr_dataset **output, mr_error *error)
{
    const grouping *g = context;
    mr_tensor tensors[2] = {0};
    mr_element arguments = {.tensors = tensors, .count = 2};
    mr_status status = mr_tensor_init_int64(&tensors[0], key, error);
    if (status == MR_OK) status = mr_data_wrap(window, &tensors[1], error);
    if (status != MR_OK) mr_dataset_free(window);
    if (status == MR_OK) status = mr_data_function_dataset(g->reduce, &arguments, output, error);
    mr_tensor_deinit(&tensors[0]);
    mr_tensor_deinit(&tensors[1]);
    return status;
}

static int32_t captured_count(const mr_kernel_call *call, const char *attr)
{
    const mr_attr *types = mr_attrs_find(call->node->attrs, attr);
    return types ? types->count : 0;
}

static mr_status new_grouping(const mr_kernel_call *call, grouping *g, mr_error *error)
{
    int32_t key = captured_count(call, "Tkey_func_other_arguments");
    int32_t reduce = captured_count(call, "Treduce_func_other_arguments");
    int32_t size = captured_count(call, "Twindow_size_func_other_arguments");
    MR_TRY(mr_data_function_new(call, "key_func", 1, key, &g->key, error));
    MR_TRY(mr_data_function_new(call, "reduce_func", 1 + key, reduce, &g->reduce, error));
    return mr_data_function_new(call, "window_size_func", 1 + key + reduce, size, &g->size, error);
}

static mr_status group_by_window(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    mr_element_spec spec;
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(mr_data_spec(call, &spec, error));
    grouping *g = calloc(1, sizeof *g);
    if (!g) return mr_fail_memory(error, sizeof *g);
    mr_status status = new_grouping(call, g, error);
    if (status != MR_OK) {
        grouping_free(g);
        return status;
    }
    return mr_data_output(call,
                          mr_dataset_group_by_window(mr_dataset_ref(input), key_of, reduce_group, g, &spec,
                                                     .window_size_func = size_of, .release = grouping_free),
                          error);
}

static const mr_kernel kernels[] = {
    {.op = "WindowDataset", .run = window},
    {.op = "GroupByWindowDataset", .run = group_by_window},
    {.op = "SlidingWindowDataset", .run = sliding_window},
};
const mr_kernel_table mr_data_kernels_window = {kernels, sizeof kernels / sizeof kernels[0]};
