/* Items and their payloads: memory, and copies for elements that are held for long (pipeline.h). */
#include "pipeline/pipeline.h"

#include "base/buffer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Overhead of an allocation: its header, the mr_buffer, and rounding. */
constexpr size_t BUFFER_BYTES = 128;

mr_payload *mr_payload_new(int32_t count)
{
    assert(count >= 0 && count <= MR_COMPONENTS_MAX);
    mr_payload *payload = calloc(1, sizeof *payload + (size_t)count * sizeof(mr_tensor));
    if (payload != nullptr) payload->count = count;
    return payload;
}

void mr_item_deinit(mr_item *item)
{
    if (item->payload != nullptr) {
        for (int32_t i = 0; i < item->payload->count; i++) mr_tensor_deinit(&item->payload->tensors[i]);
        free(item->payload);
    }
    *item = (mr_item){0};
}

mr_element mr_payload_view(mr_payload *payload)
{
    assert(payload->count >= 0 && payload->count <= MR_COMPONENTS_MAX);
    return (mr_element){.count = payload->count, .tensors = payload->tensors};
}

size_t mr_tensor_held_bytes(const mr_tensor *tensor)
{
    if (tensor->buffer == nullptr) return 0;
    size_t size_bytes = mr_tensor_size_bytes(tensor) + BUFFER_BYTES;
    for (int64_t i = 0; tensor->dtype == MR_STRING && i < mr_tensor_count(tensor); i++)
        size_bytes += mr_tensor_strings(tensor)[i].size_bytes;
    return size_bytes;
}

size_t mr_payload_bytes(const mr_payload *payload)
{
    size_t size_bytes = sizeof *payload + (size_t)payload->count * sizeof *payload->tensors;
    for (int32_t i = 0; !payload->is_kept && i < payload->count; i++)
        size_bytes += mr_tensor_held_bytes(&payload->tensors[i]);
    return size_bytes;
}

static void free_small(mr_buffer *buffer)
{
    free(buffer);
}

/* Bytes allocated together with the mr_buffer: cheaper for tensors that come and go with every element, and that need
 * no alignment. */
static mr_status copy_small(const mr_tensor *tensor, size_t size_bytes, mr_tensor *copy, mr_error *error)
{
    mr_buffer *buffer = malloc(sizeof *buffer + size_bytes);
    if (buffer == nullptr) return mr_fail_memory(error, sizeof *buffer + size_bytes);
    mr_buffer_init(buffer, buffer + 1, size_bytes, free_small, nullptr);
    if (size_bytes > 0) memcpy(buffer + 1, tensor->data, size_bytes);
    *copy = (mr_tensor){tensor->dtype, tensor->shape, buffer, buffer + 1};
    return MR_OK;
}

static mr_status copy_tensor(const mr_tensor *tensor, mr_tensor *copy, mr_error *error)
{
    constexpr size_t SMALL_BYTES = 256;
    if (tensor->dtype == MR_STRING) return mr_tensor_init_strings(copy, tensor->shape, tensor->data, error);
    size_t size_bytes = mr_tensor_size_bytes(tensor);
    if (size_bytes <= SMALL_BYTES) return copy_small(tensor, size_bytes, copy, error);
    return mr_tensor_init_copy(copy, tensor->dtype, tensor->shape, tensor->data, error);
}

mr_status mr_payload_settle(mr_payload *payload, mr_error *error)
{
    for (int32_t i = 0; !payload->is_kept && i < payload->count; i++) {
        mr_tensor *tensor = &payload->tensors[i], copy = {0};
        if (tensor->dtype == MR_VARIANT) continue; /* a reference */
        assert(tensor->buffer == nullptr || mr_tensor_is_complete(tensor));
        if (tensor->buffer == nullptr || mr_buffer_size(tensor->buffer) / 2 <= mr_tensor_held_bytes(tensor)) continue;
        MR_TRY(copy_tensor(tensor, &copy, error));
        mr_tensor_deinit(tensor);
        *tensor = copy;
    }
    return MR_OK;
}
