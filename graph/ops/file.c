/* Reading, writing and listing files. */
#include "graph/ir/op.h"

static mr_status scalars_shape(mr_shape_call *call, mr_error *error)
{
    for (int32_t i = 0; i < call->input_count; i++) MR_TRY(mr_shape_expect_rank(call, i, 0, error));
    return mr_shape_scalar(call, error);
}

static mr_status matching_files_shape(mr_shape_call *call, mr_error *error)
{
    if (call->inputs[0].rank > 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d", call->inputs[0].rank);
    call->outputs[0] = MR_SHAPE(-1);
    return MR_OK;
}

static mr_status immutable_shape(mr_shape_call *call, mr_error *error)
{
    return mr_attr_get_shape(call->attrs, "shape", &call->outputs[0], error);
}

static const mr_op file_ops[] = {
    {.name = "ImmutableConst",
     .signature = "-> tensor: dtype",
     .attrs = "dtype: type; shape: shape; memory_region_name: string",
     .shape = immutable_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the tensor whose bytes are the file memory_region_name."},
    {.name = "ReadFile",
     .signature = "filename: string -> contents: string",
     .shape = scalars_shape,
     .doc = "Returns the contents of a file."},
    {.name = "WriteFile",
     .signature = "filename: string, contents: string ->",
     .shape = scalars_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Writes contents to a file, and creates its directory if necessary."},
    {.name = "MatchingFiles",
     .signature = "pattern: string -> filenames: string",
     .shape = matching_files_shape,
     .doc = "Returns the sorted names of the files that match any of the patterns."},
};

const mr_op_table mr_ops_file = {file_ops, sizeof file_ops / sizeof file_ops[0]};
