/* Barriers as nodes: tuples whose components arrive one by one, by key. */
#include "graph/ops/shapes.h"

static mr_status insert_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape keys;
    int64_t count;
    MR_TRY(mr_shape_with_rank(call->inputs[1], 1, &keys, error));
    MR_TRY(mr_shape_at_least(call->inputs[2], 1, error));
    if (keys.rank < 0 || call->inputs[2].rank < 0) return MR_OK;
    return mr_size_merge(keys.dims[0], call->inputs[2].dims[0], &count, error);
}

static const mr_op barrier_ops[] = {
    {.name = "Barrier",
     .signature = "-> handle: Ref(string)",
     .attrs = "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; capacity: int = -1; container: string "
              "= ''; shared_name: string = ''",
     .shape = mr_string_handle_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns the handle of a barrier, which collects the components of each key."},
    {.name = "BarrierInsertMany",
     .signature = "handle: Ref(string), keys: string, values: T ->",
     .attrs = "T: type; component_index: int",
     .shape = insert_shape,
     .doc = "Adds one component to the tuple of each key."},
    {.name = "BarrierTakeMany",
     .signature = "handle: Ref(string), num_elements: int32 -> indices: int64, keys: string, values: component_types",
     .attrs = "component_types: list(type) >= 1; allow_small_batch: bool = false; wait_for_incomplete: bool = false; "
              "timeout_ms: int = -1",
     .shape = mr_shape_unknown,
     .flags = MR_OP_WAITS,
     .doc = "Takes complete tuples in the order in which their keys arrived, and waits for them."},
    {.name = "BarrierClose",
     .signature = "handle: Ref(string) ->",
     .attrs = "cancel_pending_enqueues: bool = false",
     .shape = mr_shape_unknown,
     .doc = "Closes the barrier: it refuses new keys."},
    {.name = "BarrierReadySize",
     .signature = "handle: Ref(string) -> size: int32",
     .shape = mr_shape_scalar,
     .doc = "Returns the number of complete tuples."},
    {.name = "BarrierIncompleteSize",
     .signature = "handle: Ref(string) -> size: int32",
     .shape = mr_shape_scalar,
     .doc = "Returns the number of keys whose tuples are not complete."},
};

const mr_op_table mr_ops_barrier = {barrier_ops, sizeof barrier_ops / sizeof barrier_ops[0]};
