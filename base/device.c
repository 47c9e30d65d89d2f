/* The CPU device.
 *
 * Large blocks are those of a heap. Small ones are allocated in size classes, four per power of two, so that at most a
 * fifth of a block is unused. A buffer and its block are one allocation: the header in the first 64 bytes, then the
 * data. The last unref puts a small block on the free list of its class, so a step that creates the same tensors again
 * reuses the same blocks, still in the cache, without calling malloc.
 *
 * The heap and the free lists outlive the device: each allocated block counts as a user of them. */
#include "base/device.h"

#include "base/buffer.h"
#include "base/heap.h"
#include "base/status.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

constexpr size_t HEADER_BYTES = 64;
constexpr size_t CLASS_BYTES_MIN = 256;
constexpr int CLASS_COUNT = 4 * 40;
constexpr size_t KEPT_BYTES_MIN = (size_t)64 << 20;
constexpr int SPARE_COUNT = 4;
/* Blocks of more bytes are those of the heap, but not where malloc examines what is read and written beside a block. */
#if __has_feature(address_sanitizer)
constexpr size_t SMALL_BYTES_MAX = SIZE_MAX;
#else
constexpr size_t SMALL_BYTES_MAX = (size_t)64 << 10;
#endif

typedef struct cache {
    /* Unused blocks of the smallest class, for scalars, which are taken and put back without the mutex. They count as
     * allocated. After the device is freed each is `no_block`. */
    mr_buffer *spare[SPARE_COUNT]; /* atomic */
    pthread_mutex_t mutex;
    mr_heap heap;
    mr_buffer *free[CLASS_COUNT];                  /* small blocks, linked through data */
    size_t live_bytes, live_bytes_max, kept_bytes; /* of these */
    size_t holders;                                /* the device, and each allocated block */
    bool closed;                                   /* the device has been freed: returned blocks are freed */
} cache;

typedef struct cpu_device {
    mr_device device;
    cache *cache;
} cpu_device;

/* Index and capacity of the size class for size_bytes. */
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
    assert(*capacity_bytes >= size_bytes);
    index += (int)quarters;
    return index < CLASS_COUNT ? index : -1;
}

static void free_kept(cache *c)
{
    mr_heap_trim(&c->heap);
    for (int i = 0; i < CLASS_COUNT; i++)
        for (mr_buffer *block = c->free[i]; block != nullptr;) {
            mr_buffer *next = block->data;
            free(block);
            block = next;
        }
    memset(c->free, 0, sizeof c->free);
    c->kept_bytes = 0;
}

static void unhold(cache *c, bool last)
{
    assert(!last || c->heap.segment_bytes == 0);
    pthread_mutex_unlock(&c->mutex);
    if (!last) return;
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

static mr_buffer no_block;

static mr_buffer *take_spare(cache *c)
{
    for (int i = SPARE_COUNT - 1; i >= 0; i--) {
        if (__atomic_load_n(&c->spare[i], __ATOMIC_RELAXED) == nullptr) continue;
        mr_buffer *block = __atomic_exchange_n(&c->spare[i], nullptr, __ATOMIC_ACQUIRE);
        assert(block != &no_block);
        if (block != nullptr) return block;
    }
    return nullptr;
}

static bool put_spare(cache *c, mr_buffer *block)
{
    for (int i = 0; i < SPARE_COUNT; i++) {
        mr_buffer *none = nullptr;
        if (__atomic_load_n(&c->spare[i], __ATOMIC_RELAXED) == nullptr &&
            __atomic_compare_exchange_n(&c->spare[i], &none, block, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

static void destroy_large(cache *c, mr_buffer *block)
{
    pthread_mutex_lock(&c->mutex);
    assert(c->holders > 0);
    mr_heap_free(&c->heap, block);
    if (c->closed) mr_heap_trim(&c->heap);
    unhold(c, --c->holders == 0);
}

static void destroy_block(mr_buffer *block)
{
    cache *c = block->owner;
    size_t capacity_bytes;
    if (block->size_bytes > SMALL_BYTES_MAX) {
        destroy_large(c, block);
        return;
    }
    if (block->size_bytes <= CLASS_BYTES_MIN && put_spare(c, block)) return;
    int index = size_class(block->size_bytes, &capacity_bytes);
    assert(index >= 0 && block->size_bytes <= capacity_bytes);
    pthread_mutex_lock(&c->mutex);
    assert(c->holders > 0 && c->live_bytes >= capacity_bytes && c->live_bytes <= c->live_bytes_max);
    c->live_bytes -= capacity_bytes;
    size_t kept_bytes_max = 2 * c->live_bytes_max > KEPT_BYTES_MIN ? 2 * c->live_bytes_max : KEPT_BYTES_MIN;
    bool keep = !c->closed && c->kept_bytes + capacity_bytes <= kept_bytes_max;
    if (keep) {
        block->data = c->free[index];
        c->free[index] = block;
        c->kept_bytes += capacity_bytes;
    }
    unhold(c, --c->holders == 0);
    if (!keep) free(block);
}

static mr_buffer *allocate_large(cache *c, size_t size_bytes)
{
    pthread_mutex_lock(&c->mutex);
    assert(!c->closed && c->holders > 0);
    mr_buffer *block = mr_heap_allocate(&c->heap, HEADER_BYTES + size_bytes);
    if (block == nullptr) { /* memory kept for small blocks may suffice */
        free_kept(c);
        block = mr_heap_allocate(&c->heap, HEADER_BYTES + size_bytes);
    }
    if (block != nullptr) c->holders++;
    pthread_mutex_unlock(&c->mutex);
    return block;
}

static mr_status cpu_allocate(mr_device *device, size_t size_bytes, mr_buffer **buffer, mr_error *error)
{
    cache *c = ((cpu_device *)device)->cache;
    mr_buffer *spare = size_bytes <= CLASS_BYTES_MIN ? take_spare(c) : nullptr;
    if (spare != nullptr) {
        mr_buffer_init(spare, (unsigned char *)spare + HEADER_BYTES, size_bytes, destroy_block, c);
        *buffer = spare;
        return MR_OK;
    }
    *buffer = nullptr;
    size_t capacity_bytes;
    if (size_bytes > SMALL_BYTES_MAX) {
        mr_buffer *large = size_bytes <= PTRDIFF_MAX / 4 ? allocate_large(c, size_bytes) : nullptr;
        if (large == nullptr) return mr_fail_memory(error, size_bytes);
        mr_buffer_init(large, (unsigned char *)large + HEADER_BYTES, size_bytes, destroy_block, c);
        *buffer = large;
        return MR_OK;
    }
    int index = size_bytes <= PTRDIFF_MAX / 4 ? size_class(size_bytes, &capacity_bytes) : -1;
    if (index < 0) return mr_fail_memory(error, size_bytes);
    pthread_mutex_lock(&c->mutex);
    assert(!c->closed && c->holders > 0);
    mr_buffer *block = c->free[index];
    if (block != nullptr) {
        assert(c->kept_bytes >= capacity_bytes);
        c->free[index] = block->data;
        c->kept_bytes -= capacity_bytes;
    }
    c->holders++;
    c->live_bytes += capacity_bytes;
    if (c->live_bytes > c->live_bytes_max) c->live_bytes_max = c->live_bytes;
    pthread_mutex_unlock(&c->mutex);
    if (block == nullptr) {
        block = aligned_alloc(HEADER_BYTES, HEADER_BYTES + capacity_bytes);
        if (block == nullptr) { /* memory kept for other classes may suffice */
            pthread_mutex_lock(&c->mutex);
            free_kept(c);
            pthread_mutex_unlock(&c->mutex);
            block = aligned_alloc(HEADER_BYTES, HEADER_BYTES + capacity_bytes);
        }
        if (block == nullptr) {
            pthread_mutex_lock(&c->mutex);
            c->holders--;
            c->live_bytes -= capacity_bytes;
            pthread_mutex_unlock(&c->mutex);
            return mr_fail_memory(error, size_bytes);
        }
    }
    mr_buffer_init(block, (unsigned char *)block + HEADER_BYTES, size_bytes, destroy_block, c);
    *buffer = block;
    return MR_OK;
}

static mr_status cpu_copy(mr_device *, void *target, const void *source, size_t size_bytes, mr_error *)
{
    if (size_bytes > 0) memcpy(target, source, size_bytes);
    return MR_OK;
}

static mr_status cpu_wait(mr_device *, mr_error *)
{
    return MR_OK;
}

static void cpu_free(mr_device *device)
{
    cache *c = ((cpu_device *)device)->cache;
    for (int i = 0; i < SPARE_COUNT; i++) {
        mr_buffer *block = __atomic_exchange_n(&c->spare[i], &no_block, __ATOMIC_ACQ_REL);
        if (block != nullptr) destroy_block(block); /* it may become a later spare */
    }
    pthread_mutex_lock(&c->mutex);
    assert(!c->closed && c->holders > 0);
    c->closed = true;
    free_kept(c);
    unhold(c, --c->holders == 0);
    free(device);
}

/* On the CPU such a copy is synchronous, so there is nothing to wait for. */
static mr_status cpu_event_new(mr_device *, mr_event **event, mr_error *)
{
    *event = nullptr;
    return MR_OK;
}

static void cpu_event_free(mr_device *, mr_event *)
{
}

static mr_status cpu_event(mr_device *, mr_event *, mr_error *)
{
    return MR_OK;
}

static const mr_device_functions cpu_functions = {
    .allocate = cpu_allocate,
    .allocate_host = cpu_allocate,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .wait = cpu_wait,
    .allocate_for_async_copy = cpu_allocate,
    .copy_async = cpu_copy,
    .event_new = cpu_event_new,
    .event_free = cpu_event_free,
    .event_record = cpu_event,
    .queue_wait = cpu_event,
    .event_wait = cpu_event,
    .free = cpu_free,
};

mr_status mr_device_cpu_new(mr_pool *pool, mr_device **device, mr_error *error)
{
    *device = nullptr;
    cpu_device *created = calloc(1, sizeof *created);
    cache *c = calloc(1, sizeof *c);
    if (created == nullptr || c == nullptr) {
        free(created);
        free(c);
        return mr_fail_memory(error, sizeof *created + sizeof *c);
    }
    pthread_mutex_init(&c->mutex, nullptr);
    c->holders = 1;
    created->device =
        (mr_device){.functions = &cpu_functions, .kind = MR_DEVICE_CPU, .name = "/device:CPU:0", .pool = pool};
    created->cache = c;
    *device = &created->device;
    return MR_OK;
}

void mr_device_free(mr_device *device)
{
    if (device != nullptr) device->functions->free(device);
}

mr_status mr_tensor_init_on(mr_tensor *tensor, mr_device *device, mr_dtype dtype, mr_shape shape, mr_error *error)
{
    int64_t count = mr_shape_count(shape);
    size_t element_bytes = mr_dtype_size(dtype);
    /* Strings; mr_tensor_init also reports the errors of invalid sizes. */
    if (device == nullptr || dtype == MR_STRING || count < 0 || element_bytes == 0 ||
        (uint64_t)count > PTRDIFF_MAX / 4 / element_bytes)
        return mr_tensor_init(tensor, dtype, shape, error);
    *tensor = (mr_tensor){0};
    mr_buffer *buffer;
    MR_TRY(device->functions->allocate(device, (size_t)count * element_bytes, &buffer, error));
    *tensor = (mr_tensor){.dtype = dtype, .shape = shape, .buffer = buffer, .data = mr_buffer_data(buffer)};
    return MR_OK;
}
