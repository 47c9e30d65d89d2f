/* Gradients of diagonals: those of a matrix built from diagonals are its diagonals, and the reverse. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

#define NODE(op, ...) mr_gradient_node(call, op, MR_OUTPUTS(__VA_ARGS__))

static mr_output zeros(mr_gradient_call *call, int32_t input)
{
    return mr_zeros_like(call->graph, gradient_input(call, input));
}

static mr_output zero(mr_gradient_call *call)
{
    return mr_gradient_scalar(call, call->grad_outputs[0], 0);
}

#define GRADIENT(name, expression)                                                                                     \
    static void name(mr_gradient_call *call)                                                                           \
    {                                                                                                                  \
        mr_output grad = call->grad_outputs[0];                                                                        \
        call->grad_inputs[0] = expression;                                                                             \
    }

GRADIENT(diag_gradient, NODE("DiagPart", grad))
GRADIENT(diag_part_gradient, NODE("Diag", grad))
GRADIENT(matrix_diag_gradient, NODE("MatrixDiagPart", grad))
GRADIENT(matrix_diag_v2_gradient, NODE("MatrixDiagPartV2", grad, gradient_input(call, 1), zero(call)))
GRADIENT(matrix_diag_v3_gradient, NODE("MatrixDiagPartV3", grad, gradient_input(call, 1), zero(call)))
GRADIENT(matrix_diag_part_gradient, NODE("MatrixSetDiag", zeros(call, 0), grad))
GRADIENT(matrix_diag_part_v2_gradient, NODE("MatrixSetDiagV2", zeros(call, 0), grad, gradient_input(call, 1)))
GRADIENT(matrix_diag_part_v3_gradient, NODE("MatrixSetDiagV3", zeros(call, 0), grad, gradient_input(call, 1)))
GRADIENT(band_gradient, NODE("MatrixBandPart", grad, gradient_input(call, 1), gradient_input(call, 2)))

static void matrix_set_diag_gradient(mr_gradient_call *call)
{
    mr_output grad = call->grad_outputs[0];
    call->grad_inputs[0] = NODE("MatrixSetDiag", grad, zeros(call, 1));
    call->grad_inputs[1] = NODE("MatrixDiagPart", grad);
}

static void matrix_set_diag_v2_gradient(mr_gradient_call *call)
{
    mr_output grad = call->grad_outputs[0], k = gradient_input(call, 2);
    call->grad_inputs[0] = NODE("MatrixSetDiagV2", grad, zeros(call, 1), k);
    call->grad_inputs[1] = NODE("MatrixDiagPartV2", grad, k, zero(call));
}

static void matrix_set_diag_v3_gradient(mr_gradient_call *call)
{
    mr_output grad = call->grad_outputs[0], k = gradient_input(call, 2);
    call->grad_inputs[0] = NODE("MatrixSetDiagV3", grad, zeros(call, 1), k);
    call->grad_inputs[1] = NODE("MatrixDiagPartV3", grad, k, zero(call));
}

static const mr_gradient gradients[] = {
    {"Diag", diag_gradient},
    {"DiagPart", diag_part_gradient},
    {"MatrixDiag", matrix_diag_gradient},
    {"MatrixDiagV2", matrix_diag_v2_gradient},
    {"MatrixDiagV3", matrix_diag_v3_gradient},
    {"MatrixDiagPart", matrix_diag_part_gradient},
    {"MatrixDiagPartV2", matrix_diag_part_v2_gradient},
    {"MatrixDiagPartV3", matrix_diag_part_v3_gradient},
    {"MatrixSetDiag", matrix_set_diag_gradient},
    {"MatrixSetDiagV2", matrix_set_diag_v2_gradient},
    {"MatrixSetDiagV3", matrix_set_diag_v3_gradient},
    {"MatrixBandPart", band_gradient},
};

const mr_gradient_table mr_gradients_diagonal = {gradients, sizeof gradients / sizeof gradients[0]};
