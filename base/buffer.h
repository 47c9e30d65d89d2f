/* The inside of mr_buffer, for those who make buffers: the plain allocator, devices, slot pools.
 *
 * destroy is called once by the last unref, from whatever thread, and disposes of the header too. So a maker that keeps
 * its headers (a caching device) allocates nothing when a buffer comes and goes. */
#ifndef MR_BASE_BUFFER_H
#define MR_BASE_BUFFER_H

#include <millrace/device.h>
#include <stdatomic.h>

struct mr_buffer {
    atomic_int_fast32_t references;
    void *data;
    size_t size_bytes;
    void (*destroy)(mr_buffer *buffer);
    void *owner;                                /* of the maker */
    void (*release)(void *context, void *data); /* of mr_buffer_wrap */
    mr_device *device;                          /* whose memory it is, which lives as long; null: the host's */
};

/* Sets all fields, with one reference; host memory. */
void mr_buffer_init(mr_buffer *buffer, void *data, size_t size_bytes, void (*destroy)(mr_buffer *buffer), void *owner);

#endif
