/* Specs: the structure of elements, and checks of elements against them (pipeline.h). */
#include "pipeline/pipeline.h"

#include <assert.h>
#include <millrace/device.h>

mr_status mr_spec_join(mr_element_spec *spec, const mr_element_spec *other, mr_error *error)
{
    if (spec->count != other->count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the datasets have different structures: %d and %d components",
                       spec->count, other->count);
    for (int32_t i = 0; i < spec->count; i++) {
        if (spec->dtypes[i] != other->dtypes[i])
            return mr_fail(error, MR_INVALID_ARGUMENT, "component %d is %s in one dataset and %s in another", i,
                           mr_dtype_name(spec->dtypes[i]), mr_dtype_name(other->dtypes[i]));
        mr_shape *shape = &spec->shapes[i];
        if (shape->rank != other->shapes[i].rank) {
            *shape = (mr_shape){.rank = -1};
            continue;
        }
        for (int32_t d = 0; d < shape->rank; d++)
            if (shape->dims[d] != other->shapes[i].dims[d]) shape->dims[d] = -1;
    }
    return MR_OK;
}

mr_status mr_spec_batch(mr_element_spec *spec, int64_t size, mr_error *error)
{
    for (int32_t i = 0; i < spec->count; i++) {
        mr_shape *shape = &spec->shapes[i];
        if (spec->dtypes[i] == MR_VARIANT)
            return mr_fail(error, MR_INVALID_ARGUMENT, "component %d is a variant, which no batch can contain", i);
        if (shape->rank < 0) continue;
        if (shape->rank == MR_RANK_MAX)
            return mr_fail(error, MR_INVALID_ARGUMENT, "component %d already has %d dimensions", i, MR_RANK_MAX);
        for (int32_t d = shape->rank; d > 0; d--) shape->dims[d] = shape->dims[d - 1];
        shape->dims[0] = size;
        shape->rank++;
    }
    return MR_OK;
}

void mr_spec_put_first(mr_element_spec *spec, mr_dtype dtype, mr_shape shape)
{
    assert(spec->count >= 0 && spec->count < MR_COMPONENTS_MAX);
    for (int32_t c = spec->count++; c > 0; c--) {
        spec->dtypes[c] = spec->dtypes[c - 1];
        spec->shapes[c] = spec->shapes[c - 1];
        spec->names[c] = spec->names[c - 1];
    }
    spec->dtypes[0] = dtype;
    spec->shapes[0] = shape;
    spec->names[0] = nullptr;
}

size_t mr_spec_row_bytes(const mr_element_spec *spec, int32_t component)
{
    assert(component >= 0 && component < spec->count);
    int64_t count = mr_shape_count(spec->shapes[component]);
    size_t size_bytes = mr_dtype_size(spec->dtypes[component]), total = 0;
    if (spec->dtypes[component] == MR_STRING || count < 0) return 0;
    return __builtin_mul_overflow((size_t)count, size_bytes, &total) ? 0 : total;
}

mr_status mr_spec_check(const mr_element_spec *given, const mr_element_spec *wanted, mr_error *error)
{
    if (given->count != wanted->count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "elements have %d components, expected %d", given->count,
                       wanted->count);
    for (int32_t i = 0; i < given->count; i++) {
        if (given->dtypes[i] != wanted->dtypes[i])
            return mr_fail(error, MR_INVALID_ARGUMENT, "component %d is %s, expected %s", i,
                           mr_dtype_name(given->dtypes[i]), mr_dtype_name(wanted->dtypes[i]));
        if (mr_shape_compatible(given->shapes[i], wanted->shapes[i])) continue;
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        return mr_fail(error, MR_INVALID_ARGUMENT, "component %d has shape %s, expected %s", i,
                       mr_shape_text(given->shapes[i], a, sizeof a), mr_shape_text(wanted->shapes[i], b, sizeof b));
    }
    return MR_OK;
}

/* Whether a tensor can have this shape. */
static bool is_known(mr_shape shape)
{
    return shape.rank >= 0 && shape.rank <= MR_RANK_MAX && mr_shape_count(shape) >= 0;
}

/* Whether all elements are in the tensor's buffer, or, without a buffer, at an address. */
static bool has_elements(const mr_tensor *tensor)
{
    size_t size_bytes = 0, count = (size_t)mr_shape_count(tensor->shape);
    if (mr_tensor_device(tensor) != nullptr) return false;
    if (__builtin_mul_overflow(count, mr_dtype_size(tensor->dtype), &size_bytes)) return false;
    if (size_bytes == 0) return true;
    if (tensor->buffer == nullptr || tensor->data == nullptr) return tensor->data != nullptr;
    size_t offset = (size_t)((uintptr_t)tensor->data - (uintptr_t)mr_buffer_data(tensor->buffer));
    size_t room = mr_buffer_size(tensor->buffer);
    return offset <= room && size_bytes <= room - offset;
}

bool mr_tensor_is_complete(const mr_tensor *tensor)
{
    return mr_dtype_size(tensor->dtype) > 0 && is_known(tensor->shape) && has_elements(tensor);
}

mr_status mr_element_check(const mr_element_spec *spec, const mr_element *element, mr_error *error)
{
    if (element->count != spec->count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the function returned %d components, expected %d", element->count,
                       spec->count);
    if (element->count > element->capacity)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the function returned %d components in an array with room for %d",
                       element->count, element->capacity);
    for (int32_t i = 0; i < spec->count; i++) {
        const mr_tensor *tensor = &element->tensors[i];
        if (tensor->dtype != spec->dtypes[i])
            return mr_fail(error, MR_INVALID_ARGUMENT, "the function returned component %d as %s, expected %s", i,
                           mr_dtype_name(tensor->dtype), mr_dtype_name(spec->dtypes[i]));
        char made[MR_SHAPE_TEXT_SIZE], promised[MR_SHAPE_TEXT_SIZE];
        if (!is_known(tensor->shape))
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "the function returned component %d with a shape that is not fully known, or too large", i);
        if (!mr_shape_compatible(tensor->shape, spec->shapes[i]))
            return mr_fail(error, MR_INVALID_ARGUMENT, "the function returned component %d of shape %s, expected %s", i,
                           mr_shape_text(tensor->shape, made, sizeof made),
                           mr_shape_text(spec->shapes[i], promised, sizeof promised));
        if (!has_elements(tensor))
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "the function returned component %d of shape %s without all its "
                           "elements in host memory",
                           i, mr_shape_text(tensor->shape, made, sizeof made));
    }
    return MR_OK;
}
