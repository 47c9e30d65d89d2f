/* The elements of arrays of tensors, and their gradients. */
#include "graph/state/tensor_array.h"

#include "graph/state/run.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void clear(mr_array *array)
{
    for (int32_t i = 0; i < array->capacity; i++) mr_tensor_deinit(&array->items[i].tensor);
    free(array->items);
    array->items = nullptr;
    array->capacity = array->size = 0;
}

static void array_deinit(mr_resource *resource)
{
    mr_array *array = (mr_array *)resource;
    clear(array);
    while (array->gradients) {
        mr_array_gradient *gradient = array->gradients;
        array->gradients = gradient->next;
        mr_buffer_unref(&gradient->array->resource.buffer);
        free(gradient->source);
        free(gradient);
    }
    free(array->name);
    pthread_mutex_destroy(&array->mutex);
}

static const mr_resource_class array_class = {
    .name = "tensor array", .kind = MR_RESOURCE_HOLDER, .size_bytes = sizeof(mr_array), .deinit = array_deinit};

mr_status mr_array_new(mr_string name, const char *suffix, mr_dtype dtype, int32_t size, mr_array **array,
                       mr_error *error)
{
    mr_holder *holder;
    assert(size >= 0);
    MR_TRY(mr_holder_new(&array_class, &holder, error));
    mr_array *made = *array = (mr_array *)holder;
    pthread_mutex_init(&made->mutex, nullptr);
    made->dtype = dtype;
    made->element_shape = MR_SHAPE_UNKNOWN;
    made->size = size;
    made->marked_size = -1;
    size_t length = name.size_bytes + (suffix ? strlen(suffix) : 0) + 2;
    made->name = malloc(length);
    if (!made->name) {
        mr_buffer_unref(&holder->resource.buffer);
        return mr_fail_memory(error, length);
    }
    snprintf(made->name, length, "%.*s%s%s", (int)name.size_bytes, name.data, suffix ? "@" : "", suffix ? suffix : "");
    return MR_OK;
}

/* ---- Arrays by name: the run has a table of them ---- */

typedef struct named_array {
    mr_resource resource;
    mr_array *array; /* a reference; null until it is set */
} named_array;

static void named_deinit(mr_resource *resource)
{
    named_array *named = (named_array *)resource;
    if (named->array) mr_buffer_unref(&named->array->holder.resource.buffer);
}

static const mr_resource_class named_class = {
    .name = "tensor array by name", .size_bytes = sizeof(named_array), .deinit = named_deinit};

static bool has_names(const mr_kernel_call *call)
{
    size_t length = strlen(call->node->op);
    return length > 2 && strcmp(call->node->op + length - 2, "V2") == 0;
}

/* TensorArrayGrad has the name of an array too, but returns a reference. */
static bool takes_name(const mr_kernel_call *call)
{
    return has_names(call) || strcmp(call->node->op, "TensorArrayGrad") == 0;
}

static mr_status keep_named(mr_run_context *run, mr_array *array, mr_error *error)
{
    mr_resource *resource;
    bool made = false;
    pthread_mutex_lock(&run->mutex);
    mr_status status = mr_resource_make(&run->temporaries, &named_class, "", array->name, &resource, &made, error);
    bool is_known = status == MR_OK && ((named_array *)resource)->array == array;
    if (status == MR_OK && !is_known && !made)
        status = mr_fail(error, MR_ALREADY_EXISTS, "the run has another tensor array with the name %s", array->name);
    if (status == MR_OK && made) ((named_array *)resource)->array = array;
    pthread_mutex_unlock(&run->mutex);
    if (status != MR_OK || is_known) mr_buffer_unref(&array->holder.resource.buffer);
    return status;
}

mr_status mr_array_put(mr_kernel_call *call, mr_array *array, mr_error *error)
{
    if (!has_names(call)) {
        call->outputs[0] = mr_tensor_take_resource(call->node->output_dtypes[0], &array->holder.resource);
        return MR_OK;
    }
    mr_string words[] = {MR_STR("_tensor_arrays"), mr_string_from(array->name)};
    mr_status status = mr_tensor_init_strings(&call->outputs[0], MR_SHAPE(2), words, error);
    if (status == MR_OK && !call->run) status = mr_fail(error, MR_UNIMPLEMENTED, "a tensor array outside of a session");
    if (status == MR_OK) return keep_named(call->run, array, error);
    mr_buffer_unref(&array->holder.resource.buffer);
    return status;
}

static mr_status find_named(const mr_kernel_call *call, int input, mr_array **array, mr_error *error)
{
    const mr_tensor *handle = &call->inputs[input];
    mr_arena arena = {0};
    *array = nullptr;
    if (mr_tensor_count(handle) != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Tensor array handle must be 2-element vector");
    if (!call->run) return mr_fail(error, MR_UNIMPLEMENTED, "a tensor array outside of a session");
    mr_string name = mr_tensor_strings(handle)[1];
    const char *copy = mr_arena_strndup(&arena, name.data ? name.data : "", name.size_bytes);
    pthread_mutex_lock(&call->run->mutex);
    mr_resource *resource = copy ? mr_resource_find(&call->run->temporaries, &named_class, "", copy) : nullptr;
    pthread_mutex_unlock(&call->run->mutex);
    if (resource) *array = ((named_array *)resource)->array;
    mr_arena_deinit(&arena);
    if (*array) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_NOT_FOUND, "the run has no tensor array with the name %.*s",
                          (int)(name.size_bytes < 200 ? name.size_bytes : 200), name.data);
}

mr_status mr_array_at(const mr_kernel_call *call, int input, mr_array **array, mr_error *error)
{
    if (takes_name(call)) return find_named(call, input, array, error);
    mr_resource *resource;
    MR_TRY(mr_handle_get(call, input, &array_class, &resource, error));
    *array = (mr_array *)resource;
    return MR_OK;
}

mr_status mr_array_check_open(const mr_kernel_call *call, const mr_array *array, mr_error *error)
{
    if (!array->is_closed) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "TensorArray %s has already been closed.",
                          array->name);
}

void mr_array_close(mr_array *array)
{
    clear(array);
    array->is_closed = true;
}

/* Allocates the items up to index, which is less than the array's size. */
static mr_status item_at(mr_array *array, int32_t index, mr_array_item **item, mr_error *error)
{
    assert(index >= 0 && index < array->size);
    if (index >= array->capacity) {
        int32_t capacity = array->capacity <= array->size / 2 ? 2 * array->capacity : array->size;
        if (capacity <= index) capacity = index + 1;
        if (capacity < 8 && array->size >= 8) capacity = 8;
        mr_array_item *larger = realloc(array->items, (size_t)capacity * sizeof *larger);
        if (!larger) return mr_fail_memory(error, (size_t)capacity * sizeof *larger);
        memset(larger + array->capacity, 0, (size_t)(capacity - array->capacity) * sizeof *larger);
        array->items = larger;
        array->capacity = capacity;
    }
    *item = &array->items[index];
    return MR_OK;
}

/* ---- Writing ---- */

static mr_status check_value(const mr_kernel_call *call, mr_array *array, int32_t index, const mr_tensor *value,
                             mr_error *error)
{
    char given[MR_SHAPE_TEXT_SIZE], expected[MR_SHAPE_TEXT_SIZE];
    if (value->dtype != array->dtype)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "TensorArray %s: Could not write to TensorArray index %d because the value dtype is %s "
                              "but TensorArray dtype is %s.",
                              array->name, (int)index, mr_dtype_name(value->dtype), mr_dtype_name(array->dtype));
    if (!mr_shape_compatible(array->element_shape, value->shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "TensorArray %s: Could not write to TensorArray index %d because the value shape is %s "
                              "which is incompatible with the TensorArray's inferred element shape: %s (consider "
                              "setting infer_shape=False).",
                              array->name, (int)index, mr_shape_text(value->shape, given, sizeof given),
                              mr_shape_text(array->element_shape, expected, sizeof expected));
    return mr_holder_check(call, &array->holder, value, error);
}

static mr_status add_value(const mr_kernel_call *call, mr_array *array, int32_t index, mr_array_item *item,
                           const mr_tensor *value, mr_error *error)
{
    char before[MR_SHAPE_TEXT_SIZE], given[MR_SHAPE_TEXT_SIZE];
    mr_tensor sum;
    if (!mr_shape_equal(value->shape, item->tensor.shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "TensorArray %s: Could not aggregate to TensorArray index %d because the existing shape "
                              "is %s but the new input shape is %s.",
                              array->name, (int)index, mr_shape_text(item->tensor.shape, before, sizeof before),
                              mr_shape_text(value->shape, given, sizeof given));
    if (!mr_member_is_set(&item->tensor)) {
        item->tensor = mr_tensor_ref(value);
        return MR_OK;
    }
    if (!mr_members_can_add(array->dtype))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "tensor_array::AddToTensor type not supported: %s", mr_dtype_name(array->dtype));
    array->was_summed = true;
    if (item->is_own) return mr_members_add(call, &item->tensor, value, &item->tensor, error);
    MR_TRY(mr_members_add(call, &item->tensor, value, &sum, error));
    mr_tensor_deinit(&item->tensor);
    item->tensor = sum;
    item->is_own = true;
    return MR_OK;
}

mr_status mr_array_write(const mr_kernel_call *call, mr_array *array, int32_t index, const mr_tensor *value,
                         mr_error *error)
{
    mr_array_item *item;
    MR_TRY(mr_array_check_open(call, array, error));
    if (index < 0 || index == INT32_MAX || (!array->is_dynamic && index >= array->size))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "TensorArray %s: Tried to write to index %d but array is not resizeable and size is: %d",
                              array->name, (int)index, (int)array->size);
    int32_t size = array->size;
    if (index >= size) array->size = index + 1;
    mr_status status = item_at(array, index, &item, error);
    if (status != MR_OK) array->size = size;
    MR_TRY(status);
    MR_TRY(check_value(call, array, index, value, error));
    if (array->is_common_shape && !mr_shape_is_known(array->element_shape)) array->element_shape = value->shape;
    if (item->read || (item->written && !array->is_gradient))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "TensorArray %s: Could not write to TensorArray index %d because it has already been %s.",
                              array->name, (int)index, item->read ? "read" : "written to");
    if (item->written) return add_value(call, array, index, item, value, error);
    item->tensor = mr_tensor_ref(value);
    item->written = true;
    return MR_OK;
}

/* ---- Reading ---- */

/* An element that was not written is zeros. Elements of a gradient array up to that one are created. */
static mr_status write_zeros(const mr_kernel_call *call, mr_array *array, int32_t index, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    mr_array_item *item;
    if (!mr_shape_is_known(array->element_shape))
        return mr_kernel_fail(
            call->node, error, MR_INVALID_ARGUMENT,
            "TensorArray %s: Could not read from TensorArray index %d.  Furthermore, the element shape is not fully "
            "defined: %s.  It is possible you are working with a resizeable TensorArray and stop_gradients is not "
            "allowing the gradients to be written.  If you set the full element_shape property on the forward "
            "TensorArray, the proper all-zeros tensor will be returned instead of incurring this error.",
            array->name, (int)index, mr_shape_text(array->element_shape, text, sizeof text));
    int32_t first = index < array->size ? index : array->size;
    if (index == INT32_MAX) return mr_fail_memory(error, (size_t)index * sizeof *item);
    int32_t size = array->size;
    if (index >= size) array->size = index + 1;
    mr_status status = item_at(array, index, &item, error);
    if (status != MR_OK) array->size = size;
    MR_TRY(status);
    for (int32_t i = first; i <= index; i++) {
        array->items[i].tensor.shape = array->element_shape;
        array->items[i].written = true;
    }
    return MR_OK;
}

static mr_status set_zeros(const mr_kernel_call *call, const mr_array *array, mr_array_item *item, mr_error *error)
{
    mr_shape shape = item->tensor.shape;
    bool has_zero = mr_members_can_add(array->dtype) || array->dtype == MR_BOOL;
    if (!has_zero && mr_shape_count(shape) != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "tensor_array::TensorSetZero type not supported: %s", mr_dtype_name(array->dtype));
    mr_status status = mr_members_zeros(call, array->dtype, shape, &item->tensor, error);
    if (status != MR_OK) item->tensor = (mr_tensor){.shape = shape};
    return status;
}

mr_status mr_array_read(const mr_kernel_call *call, mr_array *array, int32_t index, mr_tensor *value, mr_error *error)
{
    MR_TRY(mr_array_check_open(call, array, error));
    if (index < 0 || (!array->is_gradient && index >= array->size))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Tried to read from index %d but array size is: %d", (int)index, (int)array->size);
    if (index >= array->capacity || !array->items[index].written) MR_TRY(write_zeros(call, array, index, error));
    mr_array_item *item = &array->items[index];
    if (item->cleared)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "TensorArray %s: Could not read index %d twice because it was cleared after a previous "
                              "read (perhaps try setting clear_after_read = false?).",
                              array->name, (int)index);
    if (!mr_member_is_set(&item->tensor)) MR_TRY(set_zeros(call, array, item, error));
    *value = mr_tensor_ref(&item->tensor);
    item->read = true;
    if (array->clears) {
        mr_shape shape = item->tensor.shape;
        mr_tensor_deinit(&item->tensor);
        item->tensor.shape = shape;
        item->cleared = true;
    }
    return MR_OK;
}

/* ---- Gradients ---- */

/* The gradient of an element that was written has its shape, and is zeros so far. */
static mr_status copy_shapes(const mr_kernel_call *call, const mr_array *array, mr_shape prefix, mr_array *gradient,
                             mr_error *error)
{
    mr_array_item *item;
    for (int32_t i = 0; i < array->capacity && i < array->size; i++) {
        if (!array->items[i].written) continue;
        mr_shape shape = array->items[i].tensor.shape;
        for (int32_t j = prefix.rank - 1; j >= 0; j--)
            MR_TRY(mr_shape_prepend(call, prefix.dims[j], shape, &shape, error));
        MR_TRY(item_at(gradient, i, &item, error));
        item->tensor.shape = shape;
        item->written = true;
    }
    return MR_OK;
}

static mr_status new_gradient(const mr_kernel_call *call, mr_array *array, const char *source, mr_shape prefix,
                              mr_array **gradient, mr_error *error)
{
    MR_TRY(mr_array_new(mr_string_from(array->name), source, array->dtype, array->size, gradient, error));
    mr_array *made = *gradient;
    made->is_gradient = made->clears = true;
    made->marked_size = array->marked_size;
    made->is_common_shape = array->is_common_shape;
    made->element_shape = array->element_shape;
    mr_status status = MR_OK;
    for (int32_t j = prefix.rank - 1; j >= 0 && made->element_shape.rank >= 0 && status == MR_OK; j--)
        status = mr_shape_prepend(call, prefix.dims[j], made->element_shape, &made->element_shape, error);
    if (status == MR_OK) status = copy_shapes(call, array, prefix, made, error);
    if (status != MR_OK) mr_buffer_unref(&made->holder.resource.buffer);
    return status;
}

static mr_status add_gradient(const mr_kernel_call *call, mr_array *array, mr_string source, mr_shape prefix,
                              mr_array **gradient, mr_error *error)
{
    mr_array_gradient *made = calloc(1, sizeof *made);
    if (made) made->source = malloc(source.size_bytes + 1);
    if (!made || !made->source) {
        free(made);
        return mr_fail_memory(error, source.size_bytes);
    }
    if (source.size_bytes > 0) memcpy(made->source, source.data, source.size_bytes);
    made->source[source.size_bytes] = '\0';
    mr_status status = new_gradient(call, array, made->source, prefix, gradient, error);
    if (status != MR_OK) {
        free(made->source);
        free(made);
        return status;
    }
    made->array = &(*gradient)->holder;
    made->next = array->gradients;
    array->gradients = made;
    return MR_OK;
}

static mr_status find_gradient(const mr_kernel_call *call, mr_array *array, mr_string source, mr_shape prefix,
                               mr_array **gradient, mr_error *error)
{
    array->is_dynamic = false;
    MR_TRY(mr_array_check_open(call, array, error));
    if (array->was_summed)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Unable to create a gradients TensorArray for %s.  Perhaps you used the "
                              "multiple_writes_aggregate flag on a previous write?  Gradient calculation is impossible "
                              "when multiple writes are performed to the same index.",
                              array->name);
    *gradient = nullptr;
    for (const mr_array_gradient *at = array->gradients; at && !*gradient; at = at->next)
        if (mr_string_equal(mr_string_from(at->source), source)) *gradient = (mr_array *)at->array;
    if (!*gradient) MR_TRY(add_gradient(call, array, source, prefix, gradient, error));
    (void)mr_buffer_ref(&(*gradient)->holder.resource.buffer);
    return MR_OK;
}

mr_status mr_array_grad(const mr_kernel_call *call, mr_array *array, mr_string source, mr_shape prefix,
                        mr_array **gradient, mr_error *error)
{
    if (array->is_gradient)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Wrong input container. _tensor_array_grads%s",
                              array->name);
    pthread_mutex_lock(&array->mutex);
    mr_status status = find_gradient(call, array, source, prefix, gradient, error);
    pthread_mutex_unlock(&array->mutex);
    return status;
}
