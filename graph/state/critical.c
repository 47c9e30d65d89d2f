/* Mutexes as nodes, which critical sections use. A lock is a variant: the mutex is free again when the lock is consumed
 * or when no tensor refers to it. */
#include "base/mutex.h"
#include "graph/state/condition.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct mutex {
    mr_resource resource;
    mr_condition condition; /* its mutex guards is_locked */
    bool is_locked;
} mutex;

typedef struct lock {
    mr_resource resource;
    mutex *mutex; /* of a session, which outlives its tensors */
    atomic_bool is_held;
} lock;

static void mutex_deinit(mr_resource *resource)
{
    mr_condition_deinit(&((mutex *)resource)->condition);
}

static const mr_resource_class mutex_class = {.name = "mutex", .size_bytes = sizeof(mutex), .deinit = mutex_deinit};

static void unlock(lock *l)
{
    if (!atomic_exchange(&l->is_held, false)) return;
    pthread_mutex_lock(&l->mutex->condition.mutex);
    assert(l->mutex->is_locked); /* by this lock, which was held */
    l->mutex->is_locked = false;
    mr_condition_changed(&l->mutex->condition);
    pthread_mutex_unlock(&l->mutex->condition.mutex);
}

static void lock_deinit(mr_resource *resource)
{
    unlock((lock *)resource);
}

static const mr_resource_class lock_class = {.name = "mutex lock", .size_bytes = sizeof(lock), .deinit = lock_deinit};

static mr_status make_mutex(mr_resource_table *resources, const mr_node *node, mr_device *, mr_resource **resource,
                            mr_error *error)
{
    bool made = false;
    MR_TRY(mr_resource_of_node(resources, &mutex_class, node, resource, &made, error));
    if (made) mr_condition_init(&((mutex *)*resource)->condition, true);
    return MR_OK;
}

static bool attempt(void *context, mr_status *status, mr_error *)
{
    mutex *m = context;
    assert(mr_mutex_is_held(&m->condition.mutex));
    if (m->is_locked) return false;
    m->is_locked = true;
    *status = MR_OK;
    return true;
}

static mr_status mutex_lock(mr_kernel_call *call, mr_error *error)
{
    mr_resource *resource, *made;
    MR_TRY(mr_handle_get(call, 0, &mutex_class, &resource, error));
    MR_TRY(mr_resource_new(&lock_class, &made, error));
    mr_tensor output = mr_tensor_take_resource(MR_VARIANT, made);
    lock *l = (lock *)made;
    l->mutex = (mutex *)resource;
    mr_status status = mr_condition_run(&l->mutex->condition, call, attempt, l->mutex, error);
    if (status == MR_OK && !call->would_wait) {
        atomic_store(&l->is_held, true);
        call->outputs[0] = output;
    } else {
        mr_tensor_deinit(&output);
    }
    return status;
}

static mr_status consume_lock(mr_kernel_call *call, mr_error *error)
{
    mr_resource *resource;
    if (call->inputs[0].dtype != MR_VARIANT || !(resource = mr_tensor_resource(&call->inputs[0], &lock_class)))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected input to be a SharedLockReleaser variant, but saw variant type.");
    unlock((lock *)resource);
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "MutexLock", .run = mutex_lock},
    {.op = "ConsumeMutexLock", .run = consume_lock},
};
const mr_kernel_table mr_state_kernels_critical = {kernels, sizeof kernels / sizeof kernels[0]};

static const mr_state_row rows[] = {
    {.op = "MutexV2", .make = make_mutex},
};
const mr_state_table mr_state_critical = {rows, sizeof rows / sizeof rows[0]};
