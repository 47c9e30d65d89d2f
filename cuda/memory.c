/* Memory of a GPU and pinned memory of the host. Returned blocks are kept by size class, so that a loop of equal steps
 * does not allocate from the driver after the first step.
 *
 * Device blocks may be reused while the stream still works with them, because all uses are on one stream. Other blocks
 * record events after their last use on each stream. Pinned blocks are also accessed by the host, which waits for these
 * events before it reuses a block. Blocks for concurrent copies are filled by the copy stream, which waits instead. */
#include "base/buffer.h"
#include "base/status.h"
#include "cuda/device.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

constexpr size_t CLASS_BYTES_MIN = 512;
constexpr int CLASS_COUNT = 4 * 40;

typedef struct block {
    mr_buffer buffer;              /* first; buffer.owner is the memory */
    struct block *next, *previous; /* kept blocks: only next; pinned blocks in use: both */
    void *data;
    size_t capacity_bytes;
    mr_cu_event
        used[2]; /* after the last work queued before the block was returned, on each stream; null for MR_CUDA_QUEUE
                    blocks */
    int16_t index;
    mr_cuda_memory_kind kind;
} block;

struct mr_cuda_memory {
    mr_cuda_memory_parts parts;
    pthread_mutex_t mutex;
    block *kept[MR_CUDA_MEMORY_KIND_COUNT][CLASS_COUNT];
    block *pinned_out;
    size_t holders;
    bool closed;
};

/* The class of a size: four for each power of two. */
static int size_class(size_t size_bytes, size_t *capacity_bytes)
{
    size_t base_bytes = CLASS_BYTES_MIN;
    int index = 0;
    while (base_bytes * 2 <= size_bytes && index + 8 <= CLASS_COUNT) {
        base_bytes *= 2;
        index += 4;
    }
    size_t quarter_bytes = base_bytes / 4;
    size_t quarters = size_bytes <= base_bytes ? 0 : (size_bytes - base_bytes + quarter_bytes - 1) / quarter_bytes;
    *capacity_bytes = base_bytes + quarters * quarter_bytes;
    index += (int)quarters;
    return index < CLASS_COUNT ? index : -1;
}

/* Returns a block's memory to the driver. The context is current. Errors cannot be reported here. */
static void dispose(mr_cuda_memory *memory, block *gone)
{
    const mr_cuda_driver *driver = memory->parts.driver;
    for (int i = 0; i < 2 && gone->used[i] != nullptr; i++) {
        (void)driver->event_wait(gone->used[i]);
        (void)driver->event_free(gone->used[i]);
    }
    if (gone->kind == MR_CUDA_PINNED)
        (void)driver->host_release(gone->data);
    else
        (void)driver->release((mr_cu_pointer)(uintptr_t)gone->data, memory->parts.stream);
    free(gone);
}

static block *take_all(mr_cuda_memory *memory)
{
    block *all = nullptr;
    for (int kind = 0; kind < MR_CUDA_MEMORY_KIND_COUNT; kind++)
        for (int i = 0; i < CLASS_COUNT; i++)
            while (memory->kept[kind][i] != nullptr) {
                block *one = memory->kept[kind][i];
                memory->kept[kind][i] = one->next;
                one->next = all;
                all = one;
            }
    return all;
}

static void dispose_all(mr_cuda_memory *memory, block *all)
{
    while (all != nullptr) {
        block *next = all->next;
        dispose(memory, all);
        all = next;
    }
}

/* Called when the last reference is released. */
static void destroy(mr_cuda_memory *memory)
{
    const mr_cuda_driver *driver = memory->parts.driver;
    (void)driver->context_set(memory->parts.context);
    (void)driver->stream_wait(memory->parts.stream);
    (void)driver->stream_free(memory->parts.stream);
    (void)driver->stream_free(memory->parts.copy_stream);
    (void)driver->context_release(memory->parts.device);
    pthread_mutex_destroy(&memory->parts.owner->mutex);
    free(memory->parts.owner);
    pthread_mutex_destroy(&memory->mutex);
    free(memory);
}

/* The last unref of a buffer, on any thread. */
static void return_block(mr_buffer *buffer)
{
    block *one = (block *)buffer;
    mr_cuda_memory *memory = buffer->owner;
    const mr_cuda_driver *driver = memory->parts.driver;
    if (one->kind != MR_CUDA_QUEUE) {
        (void)driver->context_set(memory->parts.context);
        (void)driver->event_record(one->used[0], memory->parts.stream);
        (void)driver->event_record(one->used[1], memory->parts.copy_stream);
    }
    pthread_mutex_lock(&memory->mutex);
    if (one->kind == MR_CUDA_PINNED) {
        if (one->previous != nullptr)
            one->previous->next = one->next;
        else
            memory->pinned_out = one->next;
        if (one->next != nullptr) one->next->previous = one->previous;
    }
    bool keep = !memory->closed;
    if (keep) {
        one->next = memory->kept[one->kind][one->index];
        memory->kept[one->kind][one->index] = one;
    }
    if (!keep) {
        pthread_mutex_unlock(&memory->mutex);
        (void)driver->context_set(memory->parts.context);
        dispose(memory, one);
        pthread_mutex_lock(&memory->mutex);
    }
    bool last = --memory->holders == 0;
    pthread_mutex_unlock(&memory->mutex);
    if (last) destroy(memory);
}

mr_status mr_cuda_memory_new(mr_cuda_memory_parts parts, mr_cuda_memory **memory, mr_error *error)
{
    *memory = calloc(1, sizeof **memory);
    if (*memory == nullptr) return mr_fail_memory(error, sizeof **memory);
    (*memory)->parts = parts;
    (*memory)->holders = 1;
    pthread_mutex_init(&(*memory)->mutex, nullptr);
    return MR_OK;
}

void mr_cuda_memory_close(mr_cuda_memory *memory)
{
    (void)memory->parts.driver->context_set(memory->parts.context);
    pthread_mutex_lock(&memory->mutex);
    memory->closed = true;
    block *all = take_all(memory);
    bool last = --memory->holders == 0;
    pthread_mutex_unlock(&memory->mutex);
    dispose_all(memory, all);
    if (last) destroy(memory);
}

static mr_cu_result allocate_from_driver(mr_cuda_memory *memory, block *created)
{
    const mr_cuda_driver *driver = memory->parts.driver;
    for (int i = 0; i < 2 && created->kind != MR_CUDA_QUEUE; i++) {
        if (created->used[i] != nullptr) continue;
        mr_cu_result result = driver->event_new(&created->used[i], MR_CU_EVENT_DISABLE_TIMING);
        if (result != 0) return result;
    }
    if (created->kind == MR_CUDA_PINNED) return driver->host_allocate(&created->data, created->capacity_bytes, 0);
    mr_cu_pointer pointer = 0;
    mr_cu_stream first = created->kind == MR_CUDA_QUEUE ? memory->parts.stream : memory->parts.copy_stream;
    mr_cu_result result = driver->allocate(&pointer, created->capacity_bytes, first);
    created->data = (void *)(uintptr_t)pointer;
    return result;
}

static mr_status make_block(mr_cuda_memory *memory, int index, size_t capacity_bytes, mr_cuda_memory_kind kind,
                            block **result, mr_error *error)
{
    const mr_cuda_driver *driver = memory->parts.driver;
    block *created = calloc(1, sizeof *created);
    if (created == nullptr) return mr_fail_memory(error, sizeof *created);
    created->index = (int16_t)index;
    created->kind = kind;
    created->capacity_bytes = capacity_bytes;
    mr_cu_result status = allocate_from_driver(memory, created);
    if (status == MR_CU_OUT_OF_MEMORY) {
        /* Blocks kept for other classes are freed, because they may be the missing memory. */
        pthread_mutex_lock(&memory->mutex);
        block *all = take_all(memory);
        pthread_mutex_unlock(&memory->mutex);
        dispose_all(memory, all);
        (void)driver->stream_wait(memory->parts.stream);
        status = allocate_from_driver(memory, created);
    }
    if (status == 0) {
        *result = created;
        return MR_OK;
    }
    for (int i = 0; i < 2; i++)
        if (created->used[i] != nullptr) (void)driver->event_free(created->used[i]);
    free(created);
    if (status != MR_CU_OUT_OF_MEMORY)
        return mr_cuda_check(driver, status, kind == MR_CUDA_PINNED ? "allocate pinned memory" : "allocate memory",
                             error);
    return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no %s memory for %zu bytes",
                   kind == MR_CUDA_PINNED ? "pinned" : "GPU", capacity_bytes);
}

/* Makes a kept block usable again: the host waits, or the copy stream waits when it reaches that point. */
static mr_status wait_for_uses(mr_cuda_memory *memory, block *one, mr_error *error)
{
    const mr_cuda_driver *driver = memory->parts.driver;
    mr_cu_result result = 0;
    if (one->kind == MR_CUDA_ASYNC) result = driver->stream_wait_event(memory->parts.copy_stream, one->used[0], 0);
    for (int i = 0; i < 2 && one->kind == MR_CUDA_PINNED && result == 0; i++) result = driver->event_wait(one->used[i]);
    if (result == 0) return MR_OK;
    dispose(memory, one);
    return mr_cuda_check(driver, result, "wait for memory", error);
}

mr_status mr_cuda_memory_allocate(mr_cuda_memory *memory, size_t size_bytes, mr_cuda_memory_kind kind,
                                  mr_buffer **buffer, mr_error *error)
{
    const mr_cuda_driver *driver = memory->parts.driver;
    size_t capacity_bytes;
    *buffer = nullptr;
    int index = size_bytes <= PTRDIFF_MAX / 4 ? size_class(size_bytes, &capacity_bytes) : -1;
    if (index < 0) return mr_fail_memory(error, size_bytes);
    MR_TRY(mr_cuda_check(driver, driver->context_set(memory->parts.context), "set the context", error));
    pthread_mutex_lock(&memory->mutex);
    block *one = memory->kept[kind][index];
    if (one != nullptr) memory->kept[kind][index] = one->next;
    pthread_mutex_unlock(&memory->mutex);
    if (one == nullptr)
        MR_TRY(make_block(memory, index, capacity_bytes, kind, &one, error));
    else
        MR_TRY(wait_for_uses(memory, one, error));
    mr_buffer_init(&one->buffer, one->data, size_bytes, return_block, memory);
    one->buffer.device = kind == MR_CUDA_PINNED ? nullptr : &memory->parts.owner->device;
    pthread_mutex_lock(&memory->mutex);
    memory->holders++;
    one->next = one->previous = nullptr;
    if (kind == MR_CUDA_PINNED) {
        one->next = memory->pinned_out;
        if (one->next != nullptr) one->next->previous = one;
        memory->pinned_out = one;
    }
    pthread_mutex_unlock(&memory->mutex);
    *buffer = &one->buffer;
    return MR_OK;
}

bool mr_cuda_memory_is_pinned(mr_cuda_memory *memory, const void *bytes, size_t size_bytes)
{
    bool found = false;
    pthread_mutex_lock(&memory->mutex);
    for (const block *one = memory->pinned_out; one != nullptr && !found; one = one->next) {
        uintptr_t begin = (uintptr_t)one->data, at = (uintptr_t)bytes;
        found = at >= begin && at - begin <= one->capacity_bytes && size_bytes <= one->capacity_bytes - (at - begin);
    }
    pthread_mutex_unlock(&memory->mutex);
    return found;
}
