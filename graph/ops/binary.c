/* Two tensors element by element, their shapes broadcast. */
#include "graph/ir/op.h"
#include "graph/ops/gradients.h"

static mr_status add_n_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_merge_all(call, error);
}

/* False where an unknown size decides whether the shapes broadcast. */
static bool surely_broadcast(mr_shape a, mr_shape b)
{
    for (int32_t i = 1; i <= a.rank && i <= b.rank; i++) {
        int64_t from_a = a.dims[a.rank - i], from_b = b.dims[b.rank - i];
        if (from_a != 1 && from_b != 1 && (from_a < 0 || from_b < 0)) return false;
    }
    return true;
}

/* Without incompatible_shape_error, shapes that do not broadcast compare as one scalar. TensorFlow infers [?] from two
 * vectors of unknown length; the result may be a scalar, so the shape is unknown here. */
static mr_status equality_shape(mr_shape_call *call, mr_error *error)
{
    if (mr_attr_bool_or(call->attrs, "incompatible_shape_error", true)) return mr_shape_binary(call, error);
    if (mr_shape_binary(call, nullptr) != MR_OK)
        call->outputs[0] = MR_SCALAR;
    else if (!surely_broadcast(call->inputs[0], call->inputs[1]))
        call->outputs[0] = MR_SHAPE_UNKNOWN;
    return MR_OK;
}

static const mr_op binary_ops[] = {
    {.name = "Add",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_add_gradient),
     .doc = "x + y."},
    {.name = "AddV2",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, "
              "complex64, complex128}",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_add_gradient),
     .flags = MR_OP_COMMUTATIVE | MR_OP_AGGREGATE,
     .doc = "x + y."},
    {.name = "Sub",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, complex128, "
              "uint32, uint64}",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_sub_gradient),
     .doc = "x - y."},
    {.name = "Mul",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
              "complex64, complex128}",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_mul_gradient),
     .flags = MR_OP_COMMUTATIVE,
     .doc = "x * y."},
    {.name = "Div",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
              "complex64, complex128}",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_div_gradient),
     .doc = "x / y, rounded towards zero for integers."},
    {.name = "RealDiv",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
              "complex64, complex128}",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_div_gradient),
     .doc = "x / y."},
    {.name = "DivNoNan",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {half, float, bfloat16, double, complex64, complex128}",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_div_no_nan_gradient),
     .doc = "x / y, and 0 where y is 0."},
    {.name = "FloorDiv",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
              "complex64, complex128}",
     .shape = mr_shape_binary,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "x / y rounded down."},
    {.name = "FloorMod",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: realnumbertype",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_floor_mod_gradient),
     .doc = "What is left of x after FloorDiv; it has y's sign."},
    {.name = "Mod",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {int32, int64, half, half, bfloat16, float, double}",
     .shape = mr_shape_binary,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "What is left of x after a division that rounds towards zero; it has x's sign."},
    {.name = "SquaredDifference",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_squared_difference_gradient),
     .flags = MR_OP_COMMUTATIVE,
     .doc = "(x - y)^2."},
    {.name = "Pow",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_pow_gradient),
     .doc = "x to the power of y."},
    {.name = "Maximum",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: realnumbertype",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_maximum_gradient),
     .doc = "The larger of x and y."},
    {.name = "Minimum",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: realnumbertype",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_minimum_gradient),
     .doc = "The smaller of x and y."},
    {.name = "AddN",
     .signature = "inputs: N * T -> sum: T",
     .attrs = "N: int >= 1; "
              "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64, variant}",
     .shape = add_n_shape,
     .gradient = MR_GRADIENT(mr_add_n_gradient),
     .flags = MR_OP_COMMUTATIVE | MR_OP_AGGREGATE,
     .doc = "The sum of inputs, which have one shape."},
    {.name = "Equal",
     .signature = "x: T, y: T -> z: bool",
     .attrs = "T: type; incompatible_shape_error: bool = true",
     .shape = equality_shape,
     .flags = MR_OP_COMMUTATIVE | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "x == y."},
    {.name = "NotEqual",
     .signature = "x: T, y: T -> z: bool",
     .attrs = "T: type; incompatible_shape_error: bool = true",
     .shape = equality_shape,
     .flags = MR_OP_COMMUTATIVE | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "x != y."},
    {.name = "Less",
     .signature = "x: T, y: T -> z: bool",
     .attrs = "T: realnumbertype",
     .shape = mr_shape_binary,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "x < y."},
    {.name = "LessEqual",
     .signature = "x: T, y: T -> z: bool",
     .attrs = "T: realnumbertype",
     .shape = mr_shape_binary,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "x <= y."},
    {.name = "Greater",
     .signature = "x: T, y: T -> z: bool",
     .attrs = "T: realnumbertype",
     .shape = mr_shape_binary,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "x > y."},
    {.name = "GreaterEqual",
     .signature = "x: T, y: T -> z: bool",
     .attrs = "T: realnumbertype",
     .shape = mr_shape_binary,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "x >= y."},
    {.name = "LogicalAnd",
     .signature = "x: bool, y: bool -> z: bool",
     .shape = mr_shape_binary,
     .flags = MR_OP_COMMUTATIVE | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "x and y."},
    {.name = "LogicalOr",
     .signature = "x: bool, y: bool -> z: bool",
     .shape = mr_shape_binary,
     .flags = MR_OP_COMMUTATIVE | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "x or y."},
};

const mr_op_table mr_op_table_binary = {binary_ops, sizeof binary_ops / sizeof binary_ops[0]};
