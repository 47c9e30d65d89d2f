/* Recurrent cells as single operators: LSTM and GRU. */
#include "graph/ir/op.h"

/* Outputs [first, first + count) are [batch, cell] matrices: batch from the matrix input x, cell from the matrix input
 * state. */
static mr_status cell_shape(const mr_shape_call *call, int32_t x, int32_t state, mr_shape *matrix, mr_error *error)
{
    mr_shape a, b;
    MR_TRY(mr_shape_with_rank(call->inputs[x], 2, &a, error));
    MR_TRY(mr_shape_with_rank(call->inputs[state], 2, &b, error));
    *matrix = MR_SHAPE(a.dims[0], b.dims[1]);
    return MR_OK;
}

static mr_status lstm_cell_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape matrix;
    MR_TRY(cell_shape(call, 0, 1, &matrix, error));
    for (int32_t i = 0; i < call->output_count; i++) call->outputs[i] = matrix;
    return MR_OK;
}

static mr_status gru_cell_shape(mr_shape_call *call, mr_error *error)
{
    return lstm_cell_shape(call, error);
}

static mr_status lstm_cell_grad_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape matrix;
    int64_t gates = -1;
    MR_TRY(cell_shape(call, 0, 1, &matrix, error));
    if (matrix.dims[1] >= 0 && __builtin_mul_overflow(matrix.dims[1], 4, &gates))
        return mr_fail(error, MR_INVALID_ARGUMENT, "the cell is too large");
    call->outputs[0] = matrix;
    call->outputs[1] = MR_SHAPE(matrix.dims[0], gates);
    for (int32_t i = 2; i < 5; i++) call->outputs[i] = MR_SHAPE(matrix.dims[1]);
    return MR_OK;
}

static mr_status block_lstm_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape x, bias;
    MR_TRY(mr_shape_with_rank(call->inputs[1], 3, &x, error));
    MR_TRY(mr_shape_with_rank(call->inputs[call->input_count - 1], 1, &bias, error));
    if (bias.dims[0] >= 0 && bias.dims[0] % 4 != 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Dimension size must be evenly divisible by 4 but is %lld",
                       (long long)bias.dims[0]);
    x.dims[2] = bias.dims[0] < 0 ? -1 : bias.dims[0] / 4;
    for (int32_t i = 0; i < call->output_count; i++) call->outputs[i] = x;
    return MR_OK;
}

static mr_status block_lstm_grad_shape(mr_shape_call *call, mr_error *error)
{
    static const int8_t ranks[8] = {3, 2, 2, 2, 1, 1, 1, 1};
    for (int32_t i = 0; i < 8; i++) MR_TRY(mr_shape_with_rank(call->inputs[i + 1], ranks[i], &call->outputs[i], error));
    return MR_OK;
}

static mr_status gru_cell_grad_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape matrix, weights;
    MR_TRY(cell_shape(call, 0, 1, &matrix, error));
    MR_TRY(mr_shape_with_rank(call->inputs[2], 2, &weights, error));
    MR_TRY(mr_shape_with_rank(call->inputs[0], 2, &call->outputs[0], error));
    call->outputs[1] = call->outputs[2] = matrix;
    call->outputs[3] = MR_SHAPE(matrix.dims[0], weights.dims[1]);
    return MR_OK;
}

static const mr_op rnn_ops[] = {
    {.name = "LSTMBlockCell",
     .signature = "x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T -> i: T, cs: T, f: T, o: T, ci: T, "
                  "co: T, h: T",
     .attrs = "forget_bias: float = 1; cell_clip: float = 3; use_peephole: bool = false; T: {half, float}",
     .shape = lstm_cell_shape,
     .doc = "Computes one step of an LSTM, and the activations that its gradient needs."},
    {.name = "LSTMBlockCellGrad",
     .signature = "x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T, i: T, cs: T, f: T, o: T, ci: T, "
                  "co: T, cs_grad: T, h_grad: T -> cs_prev_grad: T, dicfo: T, wci_grad: T, wcf_grad: T, wco_grad: T",
     .attrs = "use_peephole: bool; T: {half, float}",
     .shape = lstm_cell_grad_shape,
     .doc = "Computes the gradients of LSTMBlockCell."},
    {.name = "BlockLSTM",
     .signature = "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T -> i: T, cs: T, "
                  "f: T, o: T, ci: T, co: T, h: T",
     .attrs = "forget_bias: float = 1; cell_clip: float = 3; use_peephole: bool = false; T: {half, float}",
     .shape = block_lstm_shape,
     .doc = "Computes all steps of an LSTM, and the activations that its gradient needs."},
    {.name = "BlockLSTMV2",
     .signature = "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T -> i: T, cs: T, "
                  "f: T, o: T, ci: T, co: T, h: T",
     .attrs = "cell_clip: float = 0; use_peephole: bool = false; T: {half, float}",
     .shape = block_lstm_shape,
     .doc = "Computes all steps of an LSTM with the gates in the order i, f, ci, o and no forget bias."},
    {.name = "BlockLSTMGrad",
     .signature = "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T, i: T, cs: T, "
                  "f: T, o: T, ci: T, co: T, h: T, cs_grad: T, h_grad: T -> x_grad: T, cs_prev_grad: T, h_prev_grad: "
                  "T, w_grad: T, wci_grad: T, wcf_grad: T, wco_grad: T, b_grad: T",
     .attrs = "use_peephole: bool; T: {half, float}",
     .shape = block_lstm_grad_shape,
     .doc = "Computes the gradients of BlockLSTM."},
    {.name = "BlockLSTMGradV2",
     .signature = "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T, i: T, cs: T, "
                  "f: T, o: T, ci: T, co: T, h: T, cs_grad: T, h_grad: T -> x_grad: T, cs_prev_grad: T, h_prev_grad: "
                  "T, w_grad: T, wci_grad: T, wcf_grad: T, wco_grad: T, b_grad: T",
     .attrs = "use_peephole: bool; T: {half, float}",
     .shape = block_lstm_grad_shape,
     .doc = "Computes the gradients of BlockLSTMV2."},
    {.name = "GRUBlockCell",
     .signature = "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T -> r: T, u: T, c: T, h: T",
     .attrs = "T: {float}",
     .shape = gru_cell_shape,
     .doc = "Computes one step of a GRU, and the activations that its gradient needs."},
    {.name = "GRUBlockCellGrad",
     .signature = "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T, r: T, u: T, c: T, d_h: T -> d_x: T, d_h_prev: T, "
                  "d_c_bar: T, d_r_bar_u_bar: T",
     .attrs = "T: {float}",
     .shape = gru_cell_grad_shape,
     .doc = "Computes the gradients of GRUBlockCell."},
};

const mr_op_table mr_ops_rnn = {rnn_ops, sizeof rnn_ops / sizeof rnn_ops[0]};
