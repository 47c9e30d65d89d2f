/* State: variables, iterators and other resources of a session, and the objects that tensors refer to.
 *
 * A resource is an object that starts with mr_resource. There are two kinds of owners:
 *   named    created once for a class, a container and a name (shared_name, or the node's name). It lives until the
 *            session is freed. The operators that name one (VariableV2, VarHandleOp, IteratorV2, …) have a row of
 *            mr_state_row instead of a kernel: the planner finds the resource and treats its handle as a constant.
 *   counted  made by a kernel with mr_resource_new, and freed with the last tensor that refers to it: stacks, arrays of
 *            tensors, lists (variants).
 *
 * A handle is a scalar tensor, a reference or of dtype MR_RESOURCE or MR_VARIANT, whose data points to the resource. It
 * has no buffer if the resource is named; otherwise its buffer is the resource's own reference count.
 * Locks: the session's mutex guards the table. Each resource has its own lock, which is taken after the session's. */
#ifndef MR_GRAPH_STATE_STATE_H
#define MR_GRAPH_STATE_STATE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/kernel.h"
#include "base/mutex.h"
#include "graph/ir/graph.h"
#include <millrace/session.h>
#include <pthread.h>

typedef struct mr_resource mr_resource;

typedef enum mr_resource_kind {
    MR_RESOURCE_OTHER,
    MR_RESOURCE_HOLDER,  /* an mr_holder: a stack or an array; see members.h */
    MR_RESOURCE_VARIANT, /* an mr_variant: a list or an optional */
} mr_resource_kind;

typedef struct mr_resource_class {
    const char *name; /* "variable", for errors */
    mr_resource_kind kind;
    size_t size_bytes;
    void (*deinit)(mr_resource *resource);
    /* Of a named resource: removes what it contains, as if it had just been made. Calls of the run in progress may use
     * it meanwhile, so this takes its lock. The caller holds no lock. Null: a container does not hold its contents. */
    void (*reset)(mr_resource *resource);
} mr_resource_class;

struct mr_resource {
    mr_buffer buffer; /* of a counted resource: its references; otherwise not used */
    const mr_resource_class *class;
    const char *container; /* "" for the default one */
    const char *name;
    uint64_t hash;
    mr_resource *next;  /* in its bucket */
    mr_resource *later; /* the next in creation order */
};

typedef struct mr_resource_table {
    mr_arena arena;
    mr_resource **buckets;
    uint32_t bucket_count; /* a power of two, or 0 */
    uint32_t count;
    mr_resource *first, *last; /* in creation order */
} mr_resource_table;

/* The resource with that class, container and name, or null. */
mr_resource *mr_resource_find(const mr_resource_table *table, const mr_resource_class *class, const char *container,
                              const char *name);
/* Finds or creates the resource; *made reports which. Memory after the header is zeroed. Names are copied. */
mr_status mr_resource_make(mr_resource_table *table, const mr_resource_class *class, const char *container,
                           const char *name, mr_resource **resource, bool *made, mr_error *error);
void mr_resource_table_deinit(mr_resource_table *table);

/* The container and name in a node's attrs: shared_name, or the node's own name. Allocated from the arena. */
mr_status mr_resource_names(const mr_node *node, mr_arena *arena, const char **container, const char **name,
                            mr_error *error);
/* Finds or creates the resource of a node, with these names: mr_resource_make. */
mr_status mr_resource_of_node(mr_resource_table *table, const mr_resource_class *class, const mr_node *node,
                              mr_resource **resource, bool *made, mr_error *error);

/* A handle to the resource, as an output of that dtype. */
static inline mr_tensor mr_tensor_of_resource(mr_dtype dtype, mr_resource *resource)
{
    return (mr_tensor){.dtype = dtype, .shape = MR_SCALAR, .data = resource};
}
/* A counted resource with one reference, which the caller gives to a tensor with mr_tensor_take_resource. Memory after
 * the header is zeroed. The class's deinit is called on the thread that releases the last reference.
 * errors  MR_RESOURCE_EXHAUSTED */
mr_status mr_resource_new(const mr_resource_class *class, mr_resource **resource, mr_error *error);
/* A handle that owns the caller's reference to a counted resource. */
static inline mr_tensor mr_tensor_take_resource(mr_dtype dtype, mr_resource *resource)
{
    return (mr_tensor){.dtype = dtype, .shape = MR_SCALAR, .buffer = &resource->buffer, .data = resource};
}
/* The resource that a tensor of dtype MR_RESOURCE or MR_VARIANT is a handle of, of any class; or null. Borrowed. */
mr_resource *mr_tensor_any_resource(const mr_tensor *tensor);
/* The resource that the tensor is a handle of, if it has that class; otherwise null. Borrowed from the tensor. */
mr_resource *mr_tensor_resource(const mr_tensor *tensor, const mr_resource_class *class);
/* The resource of a handle if it has that class; otherwise an error that names the node. */
mr_status mr_handle_get(const mr_kernel_call *call, int input, const mr_resource_class *class, mr_resource **resource,
                        mr_error *error);

/* Memory that a stateful kernel keeps between runs in the same session: mr_kernel_call.state points to one, with null
 * data in the first run. It is not saved in checkpoints. Calls of the node that run at the same time share it, so the
 * kernel holds the mutex while it uses the data. */
typedef struct mr_node_memory {
    pthread_mutex_t mutex;
    void *data; /* freed with free() when the session is freed */
} mr_node_memory;

/* ---- Variables ---- */

typedef struct mr_variable_state {
    mr_resource resource;
    pthread_mutex_t mutex;
    mr_dtype dtype;
    mr_shape shape;    /* as declared; an unknown size allows any */
    mr_device *device; /* where the value is stored; borrowed from the session */
    bool initialized;
    bool by_handle; /* VarHandleOp; otherwise VariableV2 */
    mr_tensor value;
} mr_variable_state;

extern const mr_resource_class mr_variable_class;

/* What a variable's value is for: TensorFlow's error for a variable without one depends on it. */
typedef enum mr_variable_use {
    MR_VARIABLE_READ,   /* its value: MR_FAILED_PRECONDITION */
    MR_VARIABLE_CHANGE, /* rows or a difference: MR_NOT_FOUND by handle */
    MR_VARIABLE_TRAIN,  /* a step of an optimizer: MR_INTERNAL by handle */
} mr_variable_use;
/* Returns a reference to the value. By handle it never changes, because a later update works on a copy. Otherwise it is
 * the variable's own buffer, and every later update of the variable changes it, as in TensorFlow: programs read a
 * variable before an assignment and use it after.
 * errors  TensorFlow's if the variable is not initialized */
mr_status mr_variable_read(mr_variable_state *variable, mr_variable_use use, mr_tensor *value, mr_error *error);
/* Returns a value that no later update changes. */
mr_status mr_variable_snapshot(mr_variable_state *variable, mr_tensor *value, mr_error *error);
/* Assigns a value, which must be on the variable's device. A variable that is read by reference and has a value of as
 * many elements gets the new ones in the same buffer.
 * take       nothing else uses the value's buffer, so it may become the variable's; otherwise it is copied
 * any_shape  do not check the declared shape (validate_shape = false)
 * errors     MR_INVALID_ARGUMENT for the wrong dtype or shape; MR_RESOURCE_EXHAUSTED */
mr_status mr_variable_write(mr_variable_state *variable, const mr_tensor *value, bool take, bool any_shape,
                            mr_error *error);
/* Before an update in place. By handle, makes the variable the only owner of the value's bytes, copying them if they
 * are referenced elsewhere. The caller holds the mutex. */
mr_status mr_variable_own(mr_variable_state *variable, mr_error *error);
/* Copies the elements to a buffer of their own, on the device. */
mr_status mr_tensor_duplicate(mr_device *device, const mr_tensor *source, mr_tensor *copy, mr_error *error);
/* The error for a variable without a value. */
mr_status mr_variable_uninitialized(const mr_variable_state *variable, mr_variable_use use, mr_error *error);

/* ---- Operators that name a resource ---- */

typedef struct mr_state_row {
    const char *op;
    /* Finds or creates the node's resource. The caller holds the session's mutex. device: the node's device. */
    mr_status (*make)(mr_resource_table *resources, const mr_node *node, mr_device *device, mr_resource **resource,
                      mr_error *error);
    bool on_gpu; /* the resource can live on a GPU */
} mr_state_row;

typedef struct mr_state_table {
    const mr_state_row *rows;
    size_t count;
} mr_state_table;

/* Registers all tables; the list is borrowed permanently. Call it once, before the first mr_state_find. */
void mr_state_tables_register(const mr_state_table *const *tables, size_t count);
/* Null for an operator that does not name a resource. */
const mr_state_row *mr_state_find(const char *op);

#endif
