/* RecordInput: shuffled records of TFRecord files. */
#include "graph/ops/shapes.h"

static mr_status records_shape(mr_shape_call *call, mr_error *)
{
    call->outputs[0] = MR_SHAPE(mr_attr_int_or(call->attrs, "batch_size", 32));
    return MR_OK;
}

static const mr_op record_input_ops[] = {
    {.name = "RecordInput",
     .signature = "-> records: string",
     .attrs = "file_pattern: string; file_random_seed: int = 301; file_shuffle_shift_ratio: float = 0; "
              "file_buffer_size: int = 10000; file_parallelism: int = 16; batch_size: int = 32; "
              "compression_type: string = ''",
     .shape = records_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the next records of the files that match a pattern, shuffled and repeated without end."},
};

const mr_op_table mr_ops_record_input = {record_input_ops, sizeof record_input_ops / sizeof record_input_ops[0]};
