/* Device: where tensors live and kernels run. A table of functions; the CPU's is here, cuda/ fills another.
 *
 * Work on a device is ordered: each call joins the device's queue after the calls before it, and host code waits only
 * where it says so (wait). On the CPU every call is done when it returns.
 *
 * What is needed later is copied beside the queue: such copies come one after the other, but not after the queue's work.
 * An event is recorded behind a copy; then the queue waits for the event before it uses the bytes, and the host before
 * it touches the memory that they came from. */
#ifndef MR_BASE_DEVICE_H
#define MR_BASE_DEVICE_H

#include <millrace/device.h>

typedef enum mr_device_kind {
    MR_DEVICE_CPU = 0,
    MR_DEVICE_GPU = 1,
    MR_DEVICE_KIND_COUNT = 2,
} mr_device_kind;

typedef struct mr_pool mr_pool;
typedef struct mr_event mr_event; /* a copy beside the queue that is done, or not yet; null on the CPU */

typedef struct mr_device_functions {
    /* Memory for size_bytes, of which the device keeps freed blocks for reuse. The buffer's data is a device address, and
     * its device this one, unless that is the CPU. */
    mr_status (*allocate)(mr_device *device, size_t size_bytes, mr_buffer **buffer, mr_error *error);
    /* Host memory that the device copies from and to without a stop (pinned); on the CPU plain memory. */
    mr_status (*allocate_host)(mr_device *device, size_t size_bytes, mr_buffer **buffer, mr_error *error);
    /* Queued copies; the memory must stay as it is until the work before the next wait is done. */
    mr_status (*copy_in)(mr_device *device, void *target, const void *host, size_t size_bytes, mr_error *error);
    mr_status (*copy_out)(mr_device *device, void *host, const void *source, size_t size_bytes, mr_error *error);
    /* From memory of the device to other memory of the device. */
    mr_status (*copy)(mr_device *device, void *target, const void *source, size_t size_bytes, mr_error *error);
    /* Returns when everything queued so far is done, but not what is copied beside the queue; reports what failed in it. */
    mr_status (*wait)(mr_device *device, mr_error *error);
    /* As allocate, to be filled by copy_beside: which waits, without the host, for the work that was queued with this
     * memory before it was given back. */
    mr_status (*allocate_beside)(mr_device *device, size_t size_bytes, mr_buffer **buffer, mr_error *error);
    /* A copy beside the queue. The host's memory must stay as it is until an event that is recorded after it. */
    mr_status (*copy_beside)(mr_device *device, void *target, const void *host, size_t size_bytes, mr_error *error);
    mr_status (*event_new)(mr_device *device, mr_event **event, mr_error *error);
    void (*event_free)(mr_device *device, mr_event *event); /* null is allowed */
    /* Now behind the copies beside the queue so far; it may be recorded again and again. */
    mr_status (*event_record)(mr_device *device, mr_event *event, mr_error *error);
    /* What is queued from now on comes after the event, as it is now. */
    mr_status (*queue_wait)(mr_device *device, mr_event *event, mr_error *error);
    /* The host sleeps until then. */
    mr_status (*event_wait)(mr_device *device, mr_event *event, mr_error *error);
    void (*free)(mr_device *device);
} mr_device_functions;

struct mr_device {
    const mr_device_functions *functions;
    mr_device_kind kind;
    char name[64]; /* "/device:CPU:0" */
    mr_pool *pool; /* borrowed: threads for loops on the CPU; null: the caller's thread alone */
};

/* The CPU. Freed buffers are kept by size class for reuse, so a loop of equal steps allocates nothing after the first.
 * pool  borrowed, may be null */
mr_status mr_device_cpu_new(mr_pool *pool, mr_device **device, mr_error *error);
/* Of those that are not shared: mr_device_close is for the others. */
void mr_device_free(mr_device *device); /* null is allowed; buffers that are still held stay valid */

/* A tensor on the device. MR_STRING only on the CPU. */
mr_status mr_tensor_init_on(mr_tensor *tensor, mr_device *device, mr_dtype dtype, mr_shape shape, mr_error *error);

/* Devices that other directories bring (cuda/) are found by name. A binary without them simply has no entry.
 * open  makes the device or says in one sentence why there is none; the session then falls back softly */
typedef struct mr_device_entry {
    const char *kind_name; /* "GPU" */
    mr_device_kind kind;
    mr_status (*open)(int index, mr_device **device, mr_error *error);
} mr_device_entry;
void mr_device_register(const mr_device_entry *entry); /* static storage; at start, before threads */
const mr_device_entry *mr_device_entry_find(mr_device_kind kind);

/* The kind and index in one of TensorFlow's names: "/device:GPU:1", "/gpu:1", "/job:localhost/task:0/device:CPU:0", "GPU".
 * Jobs and tasks are passed over: all is here. */
mr_status mr_device_parse(const char *name, mr_device_kind *kind, int *index, mr_error *error);
/* The process's own device of that kind, which all who hold it share; given back by mr_device_close. */
constexpr int MR_DEVICES_MAX = 8; /* of one kind */
mr_status mr_device_retain(mr_device_kind kind, int index, mr_device **device, mr_error *error);

/* Registers the entries and kernels that this build has besides the CPU's, once however often it is called: cuda/ defines
 * it, and whoever opens sessions calls it beside mr_kernels_register, before the first mr_kernel_find. */
void mr_devices_register(void);

#endif
