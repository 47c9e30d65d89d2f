/* Mutexes of critical sections. */
#include "graph/ir/op.h"

static const mr_op critical_ops[] = {
    {.name = "MutexV2",
     .signature = "-> resource: resource",
     .attrs = "container: string = ''; shared_name: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_STATEFUL,
     .doc = "Names a mutex."},
    {.name = "MutexLock",
     .signature = "mutex: resource -> mutex_lock: variant",
     .shape = mr_shape_scalar,
     .flags = MR_OP_STATEFUL | MR_OP_WAITS,
     .doc = "Locks mutex, until the lock is consumed or nothing refers to it, and waits while it is locked."},
    {.name = "ConsumeMutexLock",
     .signature = "mutex_lock: variant ->",
     .shape = mr_shape_scalar,
     .flags = MR_OP_STATEFUL,
     .doc = "Unlocks the mutex of the lock."},
};

const mr_op_table mr_ops_critical = {critical_ops, sizeof critical_ops / sizeof critical_ops[0]};
