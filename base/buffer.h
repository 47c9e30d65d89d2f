/* The internals of mr_buffer, for code that creates buffers: the plain allocator, devices, slot pools.
 *
 * The last unref, on any thread, calls destroy once; destroy also frees the header. An allocator that keeps its
 * headers, such as a caching device, therefore allocates nothing to create or destroy a buffer. */
#ifndef MR_BASE_BUFFER_H
#define MR_BASE_BUFFER_H

#include <millrace/device.h>
#include <stdatomic.h>

struct mr_buffer {
    atomic_int_fast32_t references;
    void *data;
    size_t size_bytes;
    void (*destroy)(mr_buffer *buffer);
    void *owner;                                /* for the allocator's own use */
    void (*release)(void *context, void *data); /* set by mr_buffer_wrap */
    mr_device *device;                          /* the device whose memory it is, which outlives the buffer; null: host
                                                   memory */
    bool is_mutable;                            /* it belongs to a variable, whose updates its other users see */
    bool is_external;                           /* memory that another library may use too: never unique */
    atomic_bool is_pooled; /* one of the references is that of a pool, which does not use the memory while there are
                              others; cleared before the pool releases it */
};

/* Whether the caller's reference, perhaps that of a pool, is the only one. */
bool mr_buffer_is_idle(const mr_buffer *buffer);

/* Sets all fields: one reference, host memory. */
void mr_buffer_init(mr_buffer *buffer, void *data, size_t size_bytes, void (*destroy)(mr_buffer *buffer), void *owner);

#endif
