/* Devices: where tensors are stored and kernels run. A device is a table of functions; the CPU's is implemented here,
 * the GPU's in cuda/.
 *
 * Work on a device is ordered: each call appends to the device's queue, and host code waits only where stated (wait).
 * On the CPU every call has completed when it returns.
 *
 * Data for later steps is copied on a separate stream: such copies are ordered among themselves, but not with the
 * queue. An event is recorded after a copy. The queue waits for the event before it uses the bytes, and the host before
 * it changes the source memory. */
#ifndef MR_BASE_DEVICE_H
#define MR_BASE_DEVICE_H

#include <millrace/device.h>

typedef enum mr_device_kind {
    MR_DEVICE_CPU = 0,
    MR_DEVICE_GPU = 1,
    MR_DEVICE_KIND_COUNT = 2,
} mr_device_kind;

typedef struct mr_pool mr_pool;
typedef struct mr_event mr_event; /* completion of copies on the separate stream; null on the CPU */

typedef struct mr_device_functions {
    /* Allocates size_bytes; the device keeps freed blocks for reuse. The buffer's data is a device address, and its
     * device is this one, or null for the CPU. */
    mr_status (*allocate)(mr_device *device, size_t size_bytes, mr_buffer **buffer, mr_error *error);
    /* Host memory that the device copies from and to asynchronously (pinned); on the CPU plain memory. */
    mr_status (*allocate_host)(mr_device *device, size_t size_bytes, mr_buffer **buffer, mr_error *error);
    /* Queued copies. The host memory must not change until the next wait has returned. */
    mr_status (*copy_in)(mr_device *device, void *target, const void *host, size_t size_bytes, mr_error *error);
    mr_status (*copy_out)(mr_device *device, void *host, const void *source, size_t size_bytes, mr_error *error);
    /* Copies between two regions of device memory. */
    mr_status (*copy)(mr_device *device, void *target, const void *source, size_t size_bytes, mr_error *error);
    /* Waits for all queued work, but not for copies on the separate stream; reports the first failure of that work. */
    mr_status (*wait)(mr_device *device, mr_error *error);
    /* As allocate, but the memory is filled by copy_async. The copy waits, without blocking the host, for work that
     * was queued with this memory before it was returned. */
    mr_status (*allocate_for_async_copy)(mr_device *device, size_t size_bytes, mr_buffer **buffer, mr_error *error);
    /* Copies on the separate stream. The host memory must not change until an event recorded after this copy has
     * completed. */
    mr_status (*copy_async)(mr_device *device, void *target, const void *host, size_t size_bytes, mr_error *error);
    mr_status (*event_new)(mr_device *device, mr_event **event, mr_error *error);
    void (*event_free)(mr_device *device, mr_event *event); /* null is allowed */
    /* Records the event after the copies issued so far on the separate stream. An event may be recorded repeatedly. */
    mr_status (*event_record)(mr_device *device, mr_event *event, mr_error *error);
    /* Work queued after this call waits for the event, as last recorded. */
    mr_status (*queue_wait)(mr_device *device, mr_event *event, mr_error *error);
    /* Blocks the host until the event has completed. */
    mr_status (*event_wait)(mr_device *device, mr_event *event, mr_error *error);
    void (*free)(mr_device *device);
} mr_device_functions;

struct mr_device {
    const mr_device_functions *functions;
    mr_device_kind kind;
    char name[64]; /* "/device:CPU:0" */
    mr_pool *pool; /* borrowed: threads for loops on the CPU; null: loops run on the caller only */
};

/* Creates the CPU device. It keeps freed buffers by size class for reuse, so a loop of identical steps allocates
 * nothing after the first one.
 * pool  borrowed, may be null */
mr_status mr_device_cpu_new(mr_pool *pool, mr_device **device, mr_error *error);
/* Frees a device that is not shared. Shared devices are closed with mr_device_close. */
void mr_device_free(mr_device *device); /* null is allowed; existing buffers stay valid */

/* Allocates a tensor on the device. MR_STRING is allowed only on the CPU. */
mr_status mr_tensor_init_on(mr_tensor *tensor, mr_device *device, mr_dtype dtype, mr_shape shape, mr_error *error);

/* Devices implemented in other directories (cuda/), registered by kind. A binary without them has no entry.
 * open  creates the device, or reports in one sentence why it is unavailable; the session may then use the CPU */
typedef struct mr_device_entry {
    const char *kind_name; /* "GPU" */
    mr_device_kind kind;
    mr_status (*open)(int index, mr_device **device, mr_error *error);
} mr_device_entry;
void mr_device_register(const mr_device_entry *entry); /* static storage; call at startup, before threads exist */
const mr_device_entry *mr_device_entry_find(mr_device_kind kind);

/* Parses a TensorFlow device name: "/device:GPU:1", "/gpu:1", "/job:localhost/task:0/device:CPU:0", "GPU". Jobs and
 * tasks are ignored, because everything runs in this process. */
mr_status mr_device_parse(const char *name, mr_device_kind *kind, int *index, mr_error *error);
/* The process-wide device of that kind, shared by all callers; release it with mr_device_close. */
constexpr int MR_DEVICES_MAX = 8; /* per kind */
mr_status mr_device_retain(mr_device_kind kind, int index, mr_device **device, mr_error *error);
/* The same, for a device name. */
mr_status mr_device_retain_named(const char *name, mr_device **device, mr_error *error);

#endif
