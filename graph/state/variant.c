/* ZerosLike and AddN of variants, which gradients need: zeros and sums of the elements of lists and optionals. They
 * follow nested variants recursively; mr_member_check limits the depth. */
#include "graph/state/optional.h"
#include "graph/state/tensor_list.h"

#include <stdlib.h>

static mr_status not_known(const mr_kernel_call *call, mr_error *error)
{
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "a variant is neither a list of tensors nor an optional");
}

/* A list with the same elements as list `like`, but none of them set. */
static mr_status list_like(mr_kernel_call *call, const mr_list *like, mr_tensor *made, mr_list **list, mr_error *error)
{
    mr_variant *variant;
    MR_TRY(mr_variant_new(&mr_list_class, &variant, error));
    *list = (mr_list *)variant;
    *made = mr_tensor_take_resource(MR_VARIANT, &variant->resource);
    variant->depth = like->variant.depth;
    variant->oldest = like->variant.oldest;
    (*list)->dtype = like->dtype;
    (*list)->element_shape = like->element_shape;
    (*list)->max_count = like->max_count;
    MR_TRY(mr_list_resize(*list, like->count, error));
    return mr_list_own(*list, 0, error);
}

/* ---- Zeros ---- */

static mr_status zeros_of_variant(mr_kernel_call *call, const mr_tensor *x, mr_tensor *y, mr_error *error);

static mr_status zeros_of(mr_kernel_call *call, const mr_tensor *x, mr_tensor *y, mr_error *error)
{
    *y = (mr_tensor){0};
    if (!mr_member_is_set(x)) return MR_OK;
    if (x->dtype == MR_VARIANT) return zeros_of_variant(call, x, y, error);
    if (!mr_members_can_add(x->dtype) && x->dtype != MR_BOOL)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Trying to compute zeros_like for unsupported dtype %s", mr_dtype_name(x->dtype));
    return mr_members_zeros(call, x->dtype, x->shape, y, error);
}

static mr_status zeros_of_list(mr_kernel_call *call, const mr_list *x, mr_tensor *y, mr_error *error)
{
    mr_list *list;
    MR_TRY(list_like(call, x, y, &list, error));
    for (int64_t i = 0; i < x->count; i++) {
        mr_tensor zeros;
        MR_TRY(zeros_of(call, &x->items->at[i], &zeros, error));
        list->items->at[i] = zeros;
    }
    return MR_OK;
}

static mr_status zeros_of_optional(mr_kernel_call *call, const mr_optional *x, mr_tensor *y, mr_error *error)
{
    mr_tensor *tensors = calloc((size_t)x->count + 1, sizeof *tensors);
    if (!tensors) return mr_fail_memory(error, (size_t)x->count * sizeof *tensors);
    mr_status status = MR_OK;
    for (int32_t i = 0; i < x->count && status == MR_OK; i++)
        status = zeros_of(call, &x->components[i], &tensors[i], error);
    if (status == MR_OK) status = mr_optional_new(call, x->has_value ? tensors : nullptr, x->count, y, error);
    for (int32_t i = 0; i < x->count; i++) mr_tensor_deinit(&tensors[i]);
    free(tensors);
    return status;
}

static mr_status zeros_of_variant(mr_kernel_call *call, const mr_tensor *x, mr_tensor *y, mr_error *error)
{
    const mr_variant *variant = mr_tensor_variant(x);
    if (!variant) return not_known(call, error);
    mr_status status = variant->resource.class == &mr_list_class
                           ? zeros_of_list(call, (const mr_list *)variant, y, error)
                           : zeros_of_optional(call, (const mr_optional *)variant, y, error);
    if (status != MR_OK) mr_tensor_deinit(y);
    return status;
}

static mr_status zeros_like(mr_kernel_call *call, mr_error *error)
{
    return zeros_of_variant(call, &call->inputs[0], &call->outputs[0], error);
}

/* ---- Sums ---- */

static mr_status sum_of_variants(mr_kernel_call *call, const mr_tensor *a, const mr_tensor *b, mr_tensor *sum,
                                 mr_error *error);

static mr_status sum_of(mr_kernel_call *call, const mr_tensor *a, const mr_tensor *b, mr_tensor *sum, mr_error *error)
{
    char first[MR_SHAPE_TEXT_SIZE], second[MR_SHAPE_TEXT_SIZE];
    *sum = (mr_tensor){0};
    if (!mr_member_is_set(a) || !mr_member_is_set(b)) {
        *sum = mr_tensor_ref(mr_member_is_set(a) ? a : b);
        return MR_OK;
    }
    if (a->dtype != b->dtype)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Trying to add two tensors with incompatible element types. One is %s and the other is "
                              "%s",
                              mr_dtype_name(a->dtype), mr_dtype_name(b->dtype));
    if (!mr_shape_equal(a->shape, b->shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Trying to add two tensors with incompatible element shapes. One is %s and the other is "
                              "%s",
                              mr_shape_text(a->shape, first, sizeof first),
                              mr_shape_text(b->shape, second, sizeof second));
    if (a->dtype == MR_VARIANT) return sum_of_variants(call, a, b, sum, error);
    if (!mr_members_can_add(a->dtype))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Trying to add unsupported dtype %d",
                              (int)a->dtype);
    return mr_members_add(call, a, b, sum, error);
}

static mr_status sum_of_lists(mr_kernel_call *call, const mr_list *a, const mr_list *b, mr_tensor *sum, mr_error *error)
{
    char first[MR_SHAPE_TEXT_SIZE], second[MR_SHAPE_TEXT_SIZE];
    mr_list *list;
    if (a->dtype != b->dtype)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Trying to add two lists of tensors of different dtypes. One is %s and the other is %s",
                              mr_dtype_name(a->dtype), mr_dtype_name(b->dtype));
    if (!mr_shape_compatible(a->element_shape, b->element_shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Trying to add two lists of tensors with incompatible element shapes. One is %s and the "
                              "other is %s",
                              mr_shape_text(a->element_shape, first, sizeof first),
                              mr_shape_text(b->element_shape, second, sizeof second));
    if (a->count != b->count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Trying to add two lists of tensors with different lengths. One is %lld and the other is "
                              "%lld",
                              (long long)a->count, (long long)b->count);
    MR_TRY(list_like(call, a, sum, &list, error));
    list->variant.depth = MR_MAX(a->variant.depth, b->variant.depth);
    list->variant.oldest = MR_MIN(a->variant.oldest, b->variant.oldest);
    MR_TRY(mr_shape_merge(a->element_shape, b->element_shape, &list->element_shape, error));
    for (int64_t i = 0; i < a->count; i++) {
        mr_tensor element;
        MR_TRY(sum_of(call, &a->items->at[i], &b->items->at[i], &element, error));
        list->items->at[i] = element;
    }
    return MR_OK;
}

static mr_status sum_of_optionals(mr_kernel_call *call, const mr_optional *a, const mr_optional *b, mr_tensor *sum,
                                  mr_error *error)
{
    if (a->has_value != b->has_value)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Cannot add optionals because one has a value and the other doesn't.");
    if (a->count != b->count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Cannot add optionals because they have different numbers of components (%d vs. %d).",
                              (int)a->count, (int)b->count);
    mr_tensor *tensors = calloc((size_t)a->count + 1, sizeof *tensors);
    if (!tensors) return mr_fail_memory(error, (size_t)a->count * sizeof *tensors);
    mr_status status = MR_OK;
    for (int32_t i = 0; i < a->count && status == MR_OK; i++)
        status = sum_of(call, &a->components[i], &b->components[i], &tensors[i], error);
    if (status == MR_OK) status = mr_optional_new(call, a->has_value ? tensors : nullptr, a->count, sum, error);
    for (int32_t i = 0; i < a->count; i++) mr_tensor_deinit(&tensors[i]);
    free(tensors);
    return status;
}

static mr_status sum_of_variants(mr_kernel_call *call, const mr_tensor *a, const mr_tensor *b, mr_tensor *sum,
                                 mr_error *error)
{
    const mr_variant *first = mr_tensor_variant(a), *second = mr_tensor_variant(b);
    *sum = (mr_tensor){0};
    if (!first || !second) return not_known(call, error);
    if (first->resource.class != second->resource.class)
        return mr_kernel_fail(call->node, error, MR_INTERNAL,
                              "BinaryOpVariants: Variants a and b have different type ids.  Type names: '%s' vs. '%s'",
                              first->resource.class->name, second->resource.class->name);
    mr_status status =
        first->resource.class == &mr_list_class
            ? sum_of_lists(call, (const mr_list *)first, (const mr_list *)second, sum, error)
            : sum_of_optionals(call, (const mr_optional *)first, (const mr_optional *)second, sum, error);
    if (status != MR_OK) mr_tensor_deinit(sum);
    return status;
}

static mr_status add_n(mr_kernel_call *call, mr_error *error)
{
    mr_tensor total = mr_tensor_ref(&call->inputs[0]), sum;
    for (int32_t i = 1; i < call->node->input_count; i++) {
        mr_status status = sum_of_variants(call, &total, &call->inputs[i], &sum, error);
        mr_tensor_deinit(&total);
        if (status != MR_OK) return status;
        total = sum;
    }
    call->outputs[0] = total;
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "ZerosLike", .types = "T: variant", .run = zeros_like},
    {.op = "AddN", .types = "T: variant", .run = add_n},
};
const mr_kernel_table mr_state_kernels_variant = {kernels, sizeof kernels / sizeof kernels[0]};
