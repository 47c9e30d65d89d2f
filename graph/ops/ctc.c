/* Connectionist temporal classification. */
#include "graph/ir/op.h"

static mr_status batch_of(const mr_shape_call *call, int32_t lengths, mr_shape *inputs, mr_error *error)
{
    mr_shape vector;
    MR_TRY(mr_shape_with_rank(call->inputs[0], 3, inputs, error));
    MR_TRY(mr_shape_with_rank(call->inputs[lengths], 1, &vector, error));
    return mr_size_merge(inputs->dims[1], vector.dims[0], &inputs->dims[1], error);
}

static mr_status ctc_loss_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape inputs, indices, values;
    int64_t count;
    MR_TRY(batch_of(call, 3, &inputs, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 2, &indices, error));
    MR_TRY(mr_shape_with_rank(call->inputs[2], 1, &values, error));
    MR_TRY(mr_size_merge(indices.dims[0], values.dims[0], &count, error));
    call->outputs[0] = MR_SHAPE(inputs.dims[1]);
    call->outputs[1] = inputs;
    return MR_OK;
}

static mr_status decoded_shapes(mr_shape_call *call, int64_t paths, mr_error *error)
{
    mr_shape inputs;
    MR_TRY(batch_of(call, 1, &inputs, error));
    for (int32_t i = 0; i + 1 < call->output_count; i++) {
        int64_t which = i / paths;
        call->outputs[i] = which == 0 ? MR_SHAPE(-1, 2) : which == 1 ? MR_SHAPE(-1) : MR_SHAPE(2);
    }
    call->outputs[call->output_count - 1] = MR_SHAPE(inputs.dims[1], paths);
    return MR_OK;
}

static mr_status ctc_greedy_shape(mr_shape_call *call, mr_error *error)
{
    return decoded_shapes(call, 1, error);
}

static mr_status ctc_beam_shape(mr_shape_call *call, mr_error *error)
{
    return decoded_shapes(call, (call->output_count - 1) / 3, error);
}

static const mr_op ctc_ops[] = {
    {.name = "CTCLoss",
     .signature = "inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32 -> loss: T, "
                  "gradient: T",
     .attrs = "preprocess_collapse_repeated: bool = false; ctc_merge_repeated: bool = true; "
              "ignore_longer_outputs_than_inputs: bool = false; T: {float, double} = float",
     .shape = ctc_loss_shape,
     .builder = "mr_ctc_loss_op",
     .doc = "Computes the connectionist temporal classification loss of each sequence, and its gradient."},
    {.name = "CTCGreedyDecoder",
     .signature = "inputs: T, sequence_length: int32 -> decoded_indices: int64, decoded_values: int64, decoded_shape: "
                  "int64, log_probability: T",
     .attrs = "merge_repeated: bool = false; blank_index: int = -1; T: {float, double} = float",
     .shape = ctc_greedy_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_ctc_greedy_decoder_op",
     .doc = "Decodes each sequence by its most probable class per step, without blanks."},
    {.name = "CTCBeamSearchDecoder",
     .signature = "inputs: T, sequence_length: int32 -> decoded_indices: top_paths * int64, decoded_values: top_paths "
                  "* int64, decoded_shape: top_paths * int64, log_probability: T",
     .attrs = "beam_width: int >= 1; top_paths: int >= 1; merge_repeated: bool = true; T: {float, double} = float",
     .shape = ctc_beam_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .builder = "mr_ctc_beam_search_decoder_op",
     .doc = "Decodes each sequence by a beam search; returns the top_paths most probable ones."},
};

const mr_op_table mr_ops_ctc = {ctc_ops, sizeof ctc_ops / sizeof ctc_ops[0]};
