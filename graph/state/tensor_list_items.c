/* The objects behind lists of tensors. */
#include "graph/state/tensor_list.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void items_unref(mr_list_items *items)
{
    if (!items || atomic_fetch_sub(&items->references, 1) > 1) return;
    for (int64_t i = 0; i < items->count; i++) mr_tensor_deinit(&items->at[i]);
    free(items);
}

static void list_deinit(mr_resource *resource)
{
    items_unref(((mr_list *)resource)->items);
}

const mr_resource_class mr_list_class = {.name = "tensorflow::TensorList",
                                         .kind = MR_RESOURCE_VARIANT,
                                         .size_bytes = sizeof(mr_list),
                                         .deinit = list_deinit};

mr_status mr_list_new(mr_kernel_call *call, int index, mr_dtype dtype, mr_shape element_shape, mr_list **list,
                      mr_error *error)
{
    mr_variant *variant;
    MR_TRY(mr_variant_new(&mr_list_class, &variant, error));
    *list = (mr_list *)variant;
    (*list)->dtype = dtype;
    (*list)->element_shape = element_shape;
    (*list)->max_count = -1;
    call->outputs[index] = mr_tensor_take_resource(MR_VARIANT, &variant->resource);
    return MR_OK;
}

mr_status mr_list_at(const mr_kernel_call *call, int input, const mr_list **list, mr_error *error)
{
    const mr_tensor *tensor = &call->inputs[input];
    char text[MR_SHAPE_TEXT_SIZE];
    if (tensor->shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input list must be a scalar saw: %s",
                              mr_shape_text(tensor->shape, text, sizeof text));
    *list = (const mr_list *)mr_tensor_resource(tensor, &mr_list_class);
    if (*list) return MR_OK;
    const mr_variant *other = mr_tensor_variant(tensor);
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input handle is not a list. Saw: '%s'",
                          other ? other->resource.class->name : "another variant");
}

mr_status mr_list_check_dtype(const mr_kernel_call *call, const mr_list *list, mr_error *error)
{
    mr_dtype dtype = mr_attr_type_or(call->node->attrs, "element_dtype", MR_DTYPE_INVALID);
    if (dtype == list->dtype) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "Invalid data types; op elements %s but list elements %s", mr_dtype_name(dtype),
                          mr_dtype_name(list->dtype));
}

mr_status mr_list_change(mr_kernel_call *call, mr_list **list, mr_error *error)
{
    const mr_list *from;
    MR_TRY(mr_list_at(call, 0, &from, error));
    if (call->may_reuse && call->may_reuse[0]) {
        call->outputs[0] = mr_tensor_ref(&call->inputs[0]);
        *list = (mr_list *)mr_tensor_resource(&call->outputs[0], &mr_list_class);
        return MR_OK;
    }
    MR_TRY(mr_list_new(call, 0, from->dtype, from->element_shape, list, error));
    (*list)->variant.depth = from->variant.depth;
    (*list)->variant.oldest = from->variant.oldest;
    (*list)->max_count = from->max_count;
    (*list)->count = from->count;
    (*list)->items = from->items;
    if (from->items) atomic_fetch_add(&from->items->references, 1);
    return MR_OK;
}

static bool is_own(const mr_list *list)
{
    return !list->items || atomic_load(&list->items->references) == 1;
}

static size_t items_bytes(int64_t capacity)
{
    size_t size = 0;
    if (__builtin_mul_overflow((size_t)capacity, sizeof(mr_tensor), &size)) return SIZE_MAX;
    return __builtin_add_overflow(size, sizeof(mr_list_items), &size) ? SIZE_MAX : size;
}

/* Copies the references to the list's items. */
static mr_status copy_items(mr_list *list, int64_t capacity, mr_error *error)
{
    assert(capacity >= list->count);
    mr_list_items *copy = items_bytes(capacity) < SIZE_MAX ? malloc(items_bytes(capacity)) : nullptr;
    if (!copy) return mr_fail_memory(error, items_bytes(capacity));
    copy->references = 1;
    copy->count = list->count;
    copy->capacity = capacity;
    for (int64_t i = 0; i < list->count; i++) copy->at[i] = mr_tensor_ref(&list->items->at[i]);
    items_unref(list->items);
    list->items = copy;
    return MR_OK;
}

/* Removes the items that other lists had. */
static void drop_items(mr_list *list, int64_t count)
{
    assert(is_own(list));
    while (list->items && list->items->count > count) mr_tensor_deinit(&list->items->at[--list->items->count]);
    list->count = MR_MIN(list->count, count);
}

mr_status mr_list_own(mr_list *list, int64_t count, mr_error *error)
{
    count = MR_MAX(count, list->count);
    int64_t capacity = list->items ? list->items->capacity : 0;
    if (!is_own(list)) return copy_items(list, count, error);
    if (capacity >= count) return MR_OK;
    drop_items(list, list->count);
    if (count < 2 * capacity) count = 2 * capacity;
    mr_list_items *larger = items_bytes(count) < SIZE_MAX ? realloc(list->items, items_bytes(count)) : nullptr;
    if (!larger) return mr_fail_memory(error, items_bytes(count));
    if (!list->items) {
        larger->references = 1;
        larger->count = 0;
    }
    larger->capacity = count;
    list->items = larger;
    return MR_OK;
}

mr_status mr_list_resize(mr_list *list, int64_t count, mr_error *error)
{
    if (count <= list->count) {
        if (is_own(list)) drop_items(list, count);
        list->count = count;
        return MR_OK;
    }
    MR_TRY(mr_list_own(list, count, error));
    drop_items(list, list->count);
    memset(&list->items->at[list->count], 0, (size_t)(count - list->count) * sizeof(mr_tensor));
    list->items->count = list->count = count;
    return MR_OK;
}

mr_status mr_list_push(const mr_kernel_call *call, mr_list *list, const mr_tensor *element, mr_error *error)
{
    int64_t count = list->count;
    MR_TRY(mr_variant_check(call, &list->variant, element, error));
    if (is_own(list)) {
        MR_TRY(mr_list_own(list, count + 1, error));
        drop_items(list, count);
    } else if (count == list->items->capacity) {
        MR_TRY(copy_items(list, 2 * count + 8, error));
    }
    /* The next item is this list's if no other list has taken it. */
    int64_t expected = count;
    if (!atomic_compare_exchange_strong(&list->items->count, &expected, count + 1)) {
        MR_TRY(copy_items(list, 2 * count + 8, error));
        list->items->count = count + 1;
    }
    list->items->at[count] = mr_tensor_ref(element);
    list->count = count + 1;
    return MR_OK;
}

mr_status mr_list_set(const mr_kernel_call *call, mr_list *list, int64_t index, const mr_tensor *element,
                      mr_error *error)
{
    assert(is_own(list) && index >= 0 && index < list->count);
    MR_TRY(mr_variant_check(call, &list->variant, element, error));
    mr_tensor_deinit(&list->items->at[index]);
    list->items->at[index] = mr_tensor_ref(element);
    return MR_OK;
}

mr_status mr_list_shape_input(const mr_kernel_call *call, int input, mr_shape *shape, mr_error *error)
{
    const mr_tensor *tensor = &call->inputs[input];
    bool is_wide = tensor->dtype == MR_INT64;
    *shape = MR_SHAPE_UNKNOWN;
    if (tensor->shape.rank == 0) {
        int64_t value = is_wide ? mr_tensor_int64s(tensor)[0] : mr_tensor_int32s(tensor)[0];
        if (value == -1) return MR_OK;
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "The only valid scalar shape tensor is the fully unknown shape specified as -1.");
    }
    if (tensor->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d",
                              (int)tensor->shape.rank);
    if (tensor->shape.dims[0] > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "the elements have more than %d dimensions",
                              MR_RANK_MAX);
    mr_shape result = {.rank = (int32_t)tensor->shape.dims[0]};
    for (int32_t i = 0; i < result.rank; i++) {
        result.dims[i] = is_wide ? mr_tensor_int64s(tensor)[i] : mr_tensor_int32s(tensor)[i];
        if (result.dims[i] < -1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Dimension %lld must be >= -1",
                                  (long long)result.dims[i]);
    }
    *shape = result;
    return MR_OK;
}
