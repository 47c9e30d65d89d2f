/* The operators of lists of tensors that create lists, and read and change single elements. */
#include "graph/state/tensor_list.h"

#include <inttypes.h>

/* ---- Lists ---- */

static mr_status empty_list(mr_kernel_call *call, mr_error *error)
{
    mr_list *list;
    mr_shape shape;
    int32_t max_count;
    char text[MR_SHAPE_TEXT_SIZE];
    if (call->inputs[1].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "max_num_elements expected to be a scalar but got shape: %s",
                              mr_shape_text(call->inputs[1].shape, text, sizeof text));
    MR_TRY(mr_member_int(call, 1, "max_num_elements must be a scalar", &max_count, error));
    MR_TRY(mr_list_shape_input(call, 0, &shape, error));
    MR_TRY(mr_list_new(call, 0, mr_attr_type_or(call->node->attrs, "element_dtype", MR_FLOAT), shape, &list, error));
    list->max_count = max_count;
    return MR_OK;
}

static mr_status reserve(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *number = &call->inputs[1];
    mr_list *list;
    mr_shape shape;
    char text[MR_SHAPE_TEXT_SIZE];
    MR_TRY(mr_list_shape_input(call, 0, &shape, error));
    if (mr_tensor_count(number) != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "The num_elements to reserve must be a tensor size 1, but got %s",
                              mr_shape_text(number->shape, text, sizeof text));
    int32_t count = mr_tensor_int32s(number)[0];
    if (count < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "The num_elements to reserve must be a non negative number, but got %d", (int)count);
    MR_TRY(mr_list_new(call, 0, mr_attr_type_or(call->node->attrs, "element_dtype", MR_FLOAT), shape, &list, error));
    return mr_list_resize(list, count, error);
}

static mr_status length(mr_kernel_call *call, mr_error *error)
{
    const mr_list *list;
    MR_TRY(mr_list_at(call, 0, &list, error));
    return mr_kernel_put_ints(call, 0, MR_SCALAR, &list->count, error);
}

static mr_status element_shape(mr_kernel_call *call, mr_error *error)
{
    static const int64_t unknown = -1;
    const mr_list *list;
    MR_TRY(mr_list_at(call, 0, &list, error));
    const mr_shape *shape = &list->element_shape;
    if (shape->rank < 0) return mr_kernel_put_ints(call, 0, MR_SCALAR, &unknown, error);
    return mr_kernel_put_ints(call, 0, MR_SHAPE(shape->rank), shape->dims, error);
}

static mr_status resize(mr_kernel_call *call, mr_error *error)
{
    mr_list *list;
    int32_t size;
    MR_TRY(mr_member_int(call, 1, "size must be a scalar", &size, error));
    if (size < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "TensorListSlice expects size to be non-negative. Got: %d", (int)size);
    MR_TRY(mr_list_change(call, &list, error));
    return mr_list_resize(list, size, error);
}

static mr_status concat_lists(mr_kernel_call *call, mr_error *error)
{
    char first[MR_SHAPE_TEXT_SIZE], second[MR_SHAPE_TEXT_SIZE];
    mr_dtype dtype = mr_attr_type_or(call->node->attrs, "element_dtype", MR_DTYPE_INVALID);
    const mr_list *a, *b;
    mr_list *list;
    MR_TRY(mr_list_at(call, 0, &a, error));
    MR_TRY(mr_list_at(call, 1, &b, error));
    if (a->dtype != dtype || b->dtype != dtype)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "input_%s[0].dtype != element_dtype.  Saw: %s vs. %s", a->dtype != dtype ? "a" : "b",
                              mr_dtype_name(a->dtype != dtype ? a->dtype : b->dtype), mr_dtype_name(dtype));
    if (!mr_shape_equal(a->element_shape, b->element_shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "input_a and input_b TensorList element shapes are not identical at index 0.  Saw %s vs. "
                              "%s",
                              mr_shape_text(a->element_shape, first, sizeof first),
                              mr_shape_text(b->element_shape, second, sizeof second));
    int64_t before = a->count, count = b->count;
    MR_TRY(mr_list_change(call, &list, error));
    MR_TRY(mr_list_resize(list, before + count, error));
    MR_TRY(mr_list_own(list, 0, error));
    for (int64_t i = 0; i < count; i++) MR_TRY(mr_list_set(call, list, before + i, &b->items->at[i], error));
    return MR_OK;
}

/* ---- Elements ---- */

static mr_status push_back(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *element = &call->inputs[1];
    char first[MR_SHAPE_TEXT_SIZE], second[MR_SHAPE_TEXT_SIZE];
    const mr_list *from;
    mr_list *list;
    MR_TRY(mr_list_at(call, 0, &from, error));
    if (!mr_shape_compatible(from->element_shape, element->shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Tried to append a tensor with incompatible shape to a list. Op element shape: %s list "
                              "shape: %s",
                              mr_shape_text(element->shape, first, sizeof first),
                              mr_shape_text(from->element_shape, second, sizeof second));
    MR_TRY(mr_list_check_dtype(call, from, error));
    if (from->max_count != -1 && from->count >= from->max_count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Tried to push item into a full list list size: %" PRId64 " max_num_elements: %d",
                              from->count, (int)from->max_count);
    if (from->count >= INT32_MAX) return mr_fail_memory(error, (size_t)from->count);
    MR_TRY(mr_list_change(call, &list, error));
    return mr_list_push(call, list, element, error);
}

static mr_status zero_element(mr_kernel_call *call, int index, mr_shape shape, mr_error *error)
{
    return mr_members_zeros(call, call->node->output_dtypes[index], shape, &call->outputs[index], error);
}

static mr_status pop_back(mr_kernel_call *call, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    const mr_list *from;
    mr_list *list;
    mr_shape shape;
    MR_TRY(mr_list_at(call, 0, &from, error));
    MR_TRY(mr_list_check_dtype(call, from, error));
    if (from->count == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Trying to pop from an empty list.");
    const mr_tensor *last = &from->items->at[from->count - 1];
    if (mr_member_is_set(last)) {
        call->outputs[1] = mr_tensor_ref(last);
    } else {
        MR_TRY(mr_list_shape_input(call, 1, &shape, error));
        MR_TRY(mr_member_merge(call, shape, from->element_shape, &shape, error));
        if (!mr_shape_is_known(shape))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Trying to read an uninitialized tensor but element_shape is not fully defined.%s",
                                  mr_shape_text(shape, text, sizeof text));
        MR_TRY(zero_element(call, 1, shape, error));
    }
    MR_TRY(mr_list_change(call, &list, error));
    return mr_list_resize(list, list->count - 1, error);
}

/* The shape of an element that is not set: what the list and the input specify, and what other elements have. */
static mr_status missing_shape(const mr_kernel_call *call, const mr_list *list, mr_shape *shape, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    MR_TRY(mr_list_shape_input(call, 2, shape, error));
    MR_TRY(mr_member_merge(call, *shape, list->element_shape, shape, error));
    for (int64_t i = 0, count = mr_shape_is_known(*shape) ? 0 : list->count; i < count; i++)
        if (mr_member_is_set(&list->items->at[i]))
            MR_TRY(mr_member_merge(call, *shape, list->items->at[i].shape, shape, error));
    if (mr_shape_is_known(*shape)) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "Trying to read an uninitialized tensor but element_shape is not fully defined: %s and no "
                          "list element is set.",
                          mr_shape_text(*shape, text, sizeof text));
}

static mr_status get_item(mr_kernel_call *call, mr_error *error)
{
    const mr_list *list;
    mr_shape shape;
    int32_t index;
    MR_TRY(mr_list_at(call, 0, &list, error));
    MR_TRY(mr_list_check_dtype(call, list, error));
    MR_TRY(mr_member_int(call, 1, "index must be a scalar", &index, error));
    if (index < 0 || index >= list->count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Trying to access element %d in a list with %" PRId64 " elements.", (int)index,
                              list->count);
    const mr_tensor *item = &list->items->at[index];
    if (mr_member_is_set(item)) {
        MR_TRY(mr_list_shape_input(call, 2, &shape, error));
        MR_TRY(mr_member_merge(call, shape, item->shape, &shape, error));
        call->outputs[0] = mr_tensor_ref(item);
        return MR_OK;
    }
    MR_TRY(missing_shape(call, list, &shape, error));
    return zero_element(call, 0, shape, error);
}

static mr_status set_item(mr_kernel_call *call, mr_error *error)
{
    char first[MR_SHAPE_TEXT_SIZE], second[MR_SHAPE_TEXT_SIZE];
    const mr_tensor *item = &call->inputs[2];
    bool may_grow = mr_attr_bool_or(call->node->attrs, "resize_if_index_out_of_bounds", false);
    const mr_list *from;
    mr_list *list;
    int32_t index;
    MR_TRY(mr_list_at(call, 0, &from, error));
    MR_TRY(mr_list_check_dtype(call, from, error));
    MR_TRY(mr_member_int(call, 1, "index must be a scalar", &index, error));
    if (index < 0 || index == INT32_MAX || (index >= from->count && !may_grow))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Trying to modify element %d in a list with %" PRId64 " elements.", (int)index,
                              from->count);
    if (!mr_shape_compatible(from->element_shape, item->shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Tried to set a tensor with incompatible shape at a list index. Item element shape: %s "
                              "list shape: %s",
                              mr_shape_text(item->shape, first, sizeof first),
                              mr_shape_text(from->element_shape, second, sizeof second));
    MR_TRY(mr_list_change(call, &list, error));
    if (index >= list->count) MR_TRY(mr_list_resize(list, (int64_t)index + 1, error));
    MR_TRY(mr_list_own(list, 0, error));
    return mr_list_set(call, list, index, item, error);
}

static const mr_kernel kernels[] = {
    {.op = "EmptyTensorList", .run = empty_list},   {.op = "TensorListReserve", .run = reserve},
    {.op = "TensorListLength", .run = length},      {.op = "TensorListElementShape", .run = element_shape},
    {.op = "TensorListResize", .run = resize},      {.op = "TensorListConcatLists", .run = concat_lists},
    {.op = "TensorListPushBack", .run = push_back}, {.op = "TensorListPopBack", .run = pop_back},
    {.op = "TensorListGetItem", .run = get_item},   {.op = "TensorListSetItem", .run = set_item},
};
const mr_kernel_table mr_state_kernels_tensor_list = {kernels, sizeof kernels / sizeof kernels[0]};
