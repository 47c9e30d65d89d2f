/* Lane: what one worker keeps between elements, and the components of the element it works on. */
#include "pipeline/pipeline.h"

#include <stdlib.h>

void mr_value_deinit(mr_value *value)
{
    mr_tensor_deinit(&value->tensor);
    value->data = nullptr;
    value->is_placed = false;
}

void mr_lane_clear(mr_lane *lane)
{
    for (int32_t i = 0; i < lane->count; i++) mr_value_deinit(&lane->values[i]);
    mr_tensor_deinit(&lane->keep);
    lane->count = 0;
    lane->is_dropped = false;
    mr_arena_reset(&lane->scratch);
}

void mr_lane_deinit(mr_lane *lane)
{
    mr_lane_clear(lane);
    mr_arena_deinit(&lane->scratch);
    mr_image_scratch_free(lane->image);
    free(lane->bytes);
    *lane = (mr_lane){.reserve = lane->reserve};
}

mr_status mr_lane_reserve(mr_lane *lane, size_t size_bytes, mr_error *error)
{
    constexpr size_t KEPT_BYTES = (size_t)4 << 20;
    bool was_unusual = lane->capacity_bytes > KEPT_BYTES && size_bytes < lane->capacity_bytes / 4;
    if (size_bytes <= lane->capacity_bytes && !was_unusual) return MR_OK;
    size_t capacity_bytes = size_bytes + size_bytes / 2;
    free(lane->bytes);
    lane->capacity_bytes = 0;
    lane->bytes = malloc(capacity_bytes);
    if (lane->bytes == nullptr) return mr_fail_memory(error, capacity_bytes);
    lane->capacity_bytes = capacity_bytes;
    return MR_OK;
}

void mr_value_take(mr_value *value, mr_tensor *tensor)
{
    value->dtype = tensor->dtype;
    value->shape = tensor->shape;
    value->data = tensor->data;
    value->is_placed = false;
    value->tensor = *tensor;
    *tensor = (mr_tensor){0};
}

mr_status mr_value_to_tensor(mr_value *value, mr_tensor *tensor, mr_error *error)
{
    if (value->tensor.buffer != nullptr) {
        *tensor = value->tensor;
        value->tensor = (mr_tensor){0};
        return MR_OK;
    }
    if (value->dtype == MR_STRING) return mr_tensor_init_strings(tensor, value->shape, value->data, error);
    return mr_tensor_init_copy(tensor, value->dtype, value->shape, value->data, error);
}

mr_status mr_lane_view(mr_lane *lane, mr_element *element, mr_error *error)
{
    (void)error;
    element->count = lane->count;
    for (int32_t i = 0; i < lane->count; i++) {
        const mr_value *value = &lane->values[i];
        element->tensors[i] = value->tensor.buffer != nullptr
                                  ? value->tensor
                                  : (mr_tensor){value->dtype, value->shape, nullptr, (void *)value->data};
    }
    return MR_OK;
}

void mr_payload_view(const mr_payload *payload, mr_element *element)
{
    element->count = payload->count;
    for (int32_t i = 0; i < payload->count; i++) element->tensors[i] = payload->tensors[i];
}

mr_status mr_fail_out_of_range(mr_error *error)
{
    mr_error reason = error == nullptr ? (mr_error){0} : *error;
    return mr_fail(error, MR_INVALID_ARGUMENT, "the function returned OUT_OF_RANGE: %s", reason.message);
}
