/* Reference-counted buffers. A plain buffer is one allocation: the header, then the data at the next multiple of 64. */
#include "base/buffer.h"

#include "base/status.h"

#include <assert.h>
#include <stdlib.h>

constexpr size_t ALIGNMENT = 64;
static_assert(sizeof(mr_buffer) <= ALIGNMENT);

void mr_buffer_init(mr_buffer *buffer, void *data, size_t size_bytes, void (*destroy)(mr_buffer *buffer), void *owner)
{
    assert(destroy != nullptr && (data != nullptr || size_bytes == 0));
    atomic_init(&buffer->references, 1);
    buffer->data = data;
    buffer->size_bytes = size_bytes;
    buffer->destroy = destroy;
    buffer->owner = owner;
    buffer->release = nullptr;
    buffer->device = nullptr;
    buffer->is_mutable = false;
    buffer->is_external = false;
    atomic_init(&buffer->is_pooled, false);
}

static void destroy_plain(mr_buffer *buffer)
{
    assert(buffer->data == (unsigned char *)buffer + ALIGNMENT && buffer->release == nullptr);
    free(buffer);
}

mr_status mr_buffer_new(size_t size_bytes, mr_buffer **buffer, mr_error *error)
{
    if (buffer == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_buffer_new: buffer is null");
    *buffer = nullptr;
    if (size_bytes > PTRDIFF_MAX - 2 * ALIGNMENT) return mr_fail_memory(error, size_bytes);
    size_t rounded = (size_bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    assert(rounded >= size_bytes && rounded % ALIGNMENT == 0);
    mr_buffer *created = aligned_alloc(ALIGNMENT, ALIGNMENT + rounded);
    if (created == nullptr) return mr_fail_memory(error, size_bytes);
    mr_buffer_init(created, (unsigned char *)created + ALIGNMENT, size_bytes, destroy_plain, nullptr);
    *buffer = created;
    return MR_OK;
}

static void destroy_wrapped(mr_buffer *buffer)
{
    if (buffer->release != nullptr) buffer->release(buffer->owner, buffer->data);
    free(buffer);
}

mr_status mr_buffer_wrap(void *data, size_t size_bytes, void (*release)(void *context, void *data), void *context,
                         mr_buffer **buffer, mr_error *error)
{
    if (buffer == nullptr || (data == nullptr && size_bytes > 0))
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_buffer_wrap: %s is null", buffer == nullptr ? "buffer" : "data");
    *buffer = nullptr;
    mr_buffer *created = malloc(sizeof *created);
    if (created == nullptr) return mr_fail_memory(error, sizeof *created);
    mr_buffer_init(created, data, size_bytes, destroy_wrapped, context);
    created->release = release;
    *buffer = created;
    return MR_OK;
}

mr_buffer *mr_buffer_ref(mr_buffer *buffer)
{
    if (buffer != nullptr) {
        int_fast32_t before = atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
        assert(before > 0);
        (void)before;
    }
    return buffer;
}

void mr_buffer_unref(mr_buffer *buffer)
{
    if (buffer == nullptr) return;
    /* acq_rel: the writes of all owners happen before the memory is freed. */
    int_fast32_t before = atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1) buffer->destroy(buffer);
}

void *mr_buffer_data(const mr_buffer *buffer)
{
    return buffer == nullptr ? nullptr : buffer->data;
}

size_t mr_buffer_size(const mr_buffer *buffer)
{
    return buffer == nullptr ? 0 : buffer->size_bytes;
}

bool mr_buffer_is_unique(const mr_buffer *buffer)
{
    if (buffer == nullptr || buffer->is_external) return false;
    int_fast32_t references = atomic_load_explicit(&buffer->references, memory_order_acquire);
    assert(references > 0);
    /* A pool clears is_pooled before it releases its reference: whoever sees one reference less sees that, too. */
    return references == 1 || (references == 2 && atomic_load_explicit(&buffer->is_pooled, memory_order_relaxed));
}

bool mr_buffer_is_idle(const mr_buffer *buffer)
{
    return atomic_load_explicit(&buffer->references, memory_order_acquire) == 1;
}
