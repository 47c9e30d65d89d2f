/* Elements: the tensors of one element of a dataset or a queue. */
#include "base/element.h"

#include "base/status.h"

#include <assert.h>
#include <stdlib.h>

mr_status mr_element_init(mr_element *element, int32_t count, mr_error *error)
{
    if (element == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_element_init: element is null");
    *element = (mr_element){0};
    if (count < 0 || count > MR_COMPONENTS_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_element_init: count is %d, expected 0 to %d", count,
                       MR_COMPONENTS_MAX);
    MR_TRY(mr_element_reserve(element, count, error));
    element->count = count;
    return MR_OK;
}

void mr_element_deinit(mr_element *element)
{
    if (element == nullptr) return;
    mr_element_clear(element);
    free(element->tensors);
    *element = (mr_element){0};
}

mr_tensor *mr_element_tensor(const mr_element *element, int32_t index)
{
    if (element == nullptr || index < 0 || index >= element->count) return nullptr;
    return &element->tensors[index];
}

/* Releases the first `count` tensors of an array that is owned. */
static void clear(mr_element *element, int32_t count)
{
    if (element->capacity <= 0) {
        *element = (mr_element){0};
        return;
    }
    assert(element->tensors != nullptr);
    for (int32_t i = 0; i < count && i < element->capacity; i++) mr_tensor_deinit(&element->tensors[i]);
    element->count = 0;
}

void mr_element_clear(mr_element *element)
{
    clear(element, element->count);
}

void mr_element_clear_all(mr_element *element)
{
    clear(element, element->capacity);
}

mr_status mr_element_reserve(mr_element *element, int32_t capacity, mr_error *error)
{
    assert(capacity >= 0);
    mr_element_clear(element);
    if (element->capacity >= capacity) return MR_OK;
    free(element->tensors);
    *element = (mr_element){0};
    mr_tensor *tensors = calloc((size_t)capacity, sizeof *tensors);
    if (tensors == nullptr) return mr_fail_memory(error, (size_t)capacity * sizeof *tensors);
    *element = (mr_element){.capacity = capacity, .tensors = tensors};
    return MR_OK;
}
