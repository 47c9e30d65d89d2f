/* Iterators over datasets. */
#include "graph/ir/op.h"

static mr_status iterator_get_next_shape(mr_shape_call *call, mr_error *error)
{
    const mr_attr *shapes = mr_attrs_find(call->attrs, "output_shapes");
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    if (shapes == nullptr || shapes->count != call->output_count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "attr output_shapes has %d shapes for %d outputs",
                       shapes == nullptr ? 0 : shapes->count, call->output_count);
    for (int32_t i = 0; i < call->output_count; i++) call->outputs[i] = shapes->values[i].shape;
    return MR_OK;
}

static const mr_op iterator_ops[] = {
    {.name = "IteratorV2",
     .signature = "-> handle: resource",
     .attrs = "shared_name: string; container: string; output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
     .shape = mr_shape_scalar,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns the handle of an iterator, which is valid as long as the session."},
    {.name = "Iterator",
     .signature = "-> handle: resource",
     .attrs = "shared_name: string; container: string; output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
     .shape = mr_shape_scalar,
     .builder = "mr_iterator_op",
     .flags = MR_OP_STATEFUL,
     .doc = "Returns the handle of an iterator; used by old graphs."},
    {.name = "IteratorGetNext",
     .signature = "iterator: resource -> components: output_types",
     .attrs = "output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
     .shape = iterator_get_next_shape,
     .flags = MR_OP_STATEFUL | MR_OP_GET_NEXT,
     .doc = "Returns the next element of iterator, or fails with OUT_OF_RANGE at the end of the sequence."},
    {.name = "MakeIterator",
     .signature = "dataset: variant, iterator: resource ->",
     .shape = mr_shape_unknown,
     .flags = MR_OP_STATEFUL,
     .writes = 0b10,
     .doc = "Initializes iterator at the beginning of dataset."},
    {.name = "IteratorToStringHandle",
     .signature = "resource_handle: resource -> string_handle: string",
     .shape = mr_shape_scalar,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns the name of an iterator, for feeding."},
    {.name = "OneShotIterator",
     .signature = "-> handle: resource",
     .attrs = "dataset_factory: func; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
              "container: string = ''; shared_name: string = ''",
     .shape = mr_shape_scalar,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns the handle of an iterator over the dataset that the function dataset_factory creates."},
};

const mr_op_table mr_ops_iterator = {iterator_ops, sizeof iterator_ops / sizeof iterator_ops[0]};
