/* Optionals and their operators. */
#include "graph/state/optional.h"

#include <stdlib.h>

static void optional_deinit(mr_resource *resource)
{
    mr_optional *optional = (mr_optional *)resource;
    for (int32_t i = 0; i < optional->count; i++) mr_tensor_deinit(&optional->components[i]);
    free(optional->components);
}

const mr_resource_class mr_optional_class = {.name = "tensorflow::data::Optional",
                                             .kind = MR_RESOURCE_VARIANT,
                                             .size_bytes = sizeof(mr_optional),
                                             .deinit = optional_deinit};

mr_status mr_optional_new(const mr_kernel_call *call, const mr_tensor *components, int32_t count, mr_tensor *output,
                          mr_error *error)
{
    mr_variant *variant;
    MR_TRY(mr_variant_new(&mr_optional_class, &variant, error));
    mr_optional *optional = (mr_optional *)variant;
    *output = mr_tensor_take_resource(MR_VARIANT, &variant->resource);
    for (int32_t i = 0; components && i < count; i++) MR_TRY(mr_variant_check(call, variant, &components[i], error));
    optional->has_value = components != nullptr;
    if (!components || count == 0) return MR_OK;
    optional->components = calloc((size_t)count, sizeof *optional->components);
    if (!optional->components) return mr_fail_memory(error, (size_t)count * sizeof *optional->components);
    optional->count = count;
    for (int32_t i = 0; i < count; i++) optional->components[i] = mr_tensor_ref(&components[i]);
    return MR_OK;
}

static mr_status optional_at(const mr_kernel_call *call, const mr_optional **optional, mr_error *error)
{
    if (call->inputs[0].shape.rank == 0)
        *optional = (const mr_optional *)mr_tensor_resource(&call->inputs[0], &mr_optional_class);
    else
        *optional = nullptr;
    if (*optional) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input to %s must be an OptionalVariant object.",
                          call->node->op);
}

static mr_status from_value(mr_kernel_call *call, mr_error *error)
{
    return mr_optional_new(call, call->inputs, call->node->input_count, &call->outputs[0], error);
}

static mr_status none(mr_kernel_call *call, mr_error *error)
{
    return mr_optional_new(call, nullptr, 0, &call->outputs[0], error);
}

static mr_status has_value(mr_kernel_call *call, mr_error *error)
{
    const mr_optional *optional;
    MR_TRY(optional_at(call, &optional, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SCALAR, error));
    mr_tensor_bools(&call->outputs[0])[0] = optional->has_value;
    return MR_OK;
}

static mr_status check_component(const mr_kernel_call *call, const mr_tensor *component, int32_t index, mr_shape shape,
                                 mr_error *error)
{
    char first[MR_SHAPE_TEXT_SIZE], second[MR_SHAPE_TEXT_SIZE];
    mr_dtype dtype = call->node->output_dtypes[index];
    if (component->dtype != dtype)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "The given optional does not match the expected type for component %d. Expected: %s. "
                              "Actual: %s.",
                              (int)index, mr_dtype_name(dtype), mr_dtype_name(component->dtype));
    if (!mr_shape_compatible(component->shape, shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "The given optional does not match the expected shape for component %d. Expected: %s. "
                              "Actual: %s.",
                              (int)index, mr_shape_text(shape, first, sizeof first),
                              mr_shape_text(component->shape, second, sizeof second));
    return MR_OK;
}

static mr_status get_value(mr_kernel_call *call, mr_error *error)
{
    const mr_attr *shapes = mr_attrs_find(call->node->attrs, "output_shapes");
    int32_t count = call->node->output_count;
    const mr_optional *optional;
    MR_TRY(optional_at(call, &optional, error));
    if (!optional->has_value)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "The given optional does not have a value.");
    if (optional->count != count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "The given optional has %d components, expected %d", (int)optional->count, (int)count);
    if (!shapes || shapes->kind != MR_ATTR_SHAPE || shapes->count != count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "attr output_shapes must have %d shapes",
                              (int)count);
    for (int32_t i = 0; i < count; i++)
        MR_TRY(check_component(call, &optional->components[i], i, shapes->values[i].shape, error));
    for (int32_t i = 0; i < count; i++) call->outputs[i] = mr_tensor_ref(&optional->components[i]);
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "OptionalFromValue", .run = from_value},
    {.op = "OptionalNone", .run = none},
    {.op = "OptionalHasValue", .run = has_value},
    {.op = "OptionalGetValue", .run = get_value},
};
const mr_kernel_table mr_state_kernels_optional = {kernels, sizeof kernels / sizeof kernels[0]};
