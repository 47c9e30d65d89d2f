/* Element-wise operators of two tensors, with broadcasting. */
#include "graph/ir/op.h"
#include "graph/ops/gradients.h"

static mr_status add_n_shape(mr_shape_call *call, mr_error *error)
{
    return mr_shape_merge_all(call, error);
}

/* False if the result depends on an unknown size. */
static bool surely_broadcast(mr_shape a, mr_shape b)
{
    for (int32_t i = 1; i <= a.rank && i <= b.rank; i++) {
        int64_t from_a = a.dims[a.rank - i], from_b = b.dims[b.rank - i];
        if (from_a != 1 && from_b != 1 && (from_a < 0 || from_b < 0)) return false;
    }
    return true;
}

/* If incompatible_shape_error is false, shapes that do not broadcast compare as one scalar. TensorFlow infers [?] for
 * two vectors of unknown length; the result may be a scalar, so the shape is unknown here. */
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
     .doc = "Returns x + y element-wise."},
    {.name = "AddV2",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, "
              "complex64, complex128}",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_add_gradient),
     .flags = MR_OP_COMMUTATIVE | MR_OP_AGGREGATE,
     .doc = "Returns x + y element-wise."},
    {.name = "Sub",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, complex128, "
              "uint32, uint64}",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_sub_gradient),
     .doc = "Returns x - y element-wise."},
    {.name = "Mul",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
              "complex64, complex128}",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_mul_gradient),
     .flags = MR_OP_COMMUTATIVE,
     .doc = "Returns x * y element-wise."},
    {.name = "Div",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
              "complex64, complex128}",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_div_gradient),
     .doc = "Returns x / y element-wise, rounded towards zero for integers."},
    {.name = "RealDiv",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
              "complex64, complex128}",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_div_gradient),
     .doc = "Returns x / y element-wise."},
    {.name = "DivNoNan",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {half, float, bfloat16, double, complex64, complex128}",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_div_no_nan_gradient),
     .doc = "Returns x / y element-wise, and 0 where y is 0."},
    {.name = "FloorDiv",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
              "complex64, complex128}",
     .shape = mr_shape_binary,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns x / y element-wise, rounded down."},
    {.name = "FloorMod",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: realnumbertype",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_floor_mod_gradient),
     .doc = "Returns the remainder of floor division element-wise; it has the sign of y."},
    {.name = "Mod",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {int32, int64, half, half, bfloat16, float, double}",
     .shape = mr_shape_binary,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the remainder of division rounded towards zero element-wise; it has the sign of x."},
    {.name = "SquaredDifference",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_squared_difference_gradient),
     .flags = MR_OP_COMMUTATIVE,
     .doc = "Returns (x - y)^2 element-wise."},
    {.name = "Pow",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_pow_gradient),
     .doc = "Computes x to the power of y element-wise."},
    {.name = "Maximum",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: realnumbertype",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_maximum_gradient),
     .doc = "Returns the maximum of x and y element-wise."},
    {.name = "Minimum",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: realnumbertype",
     .shape = mr_shape_binary,
     .gradient = MR_GRADIENT(mr_minimum_gradient),
     .doc = "Returns the minimum of x and y element-wise."},
    {.name = "AddN",
     .signature = "inputs: N * T -> sum: T",
     .attrs = "N: int >= 1; "
              "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64, variant}",
     .shape = add_n_shape,
     .gradient = MR_GRADIENT(mr_add_n_gradient),
     .flags = MR_OP_COMMUTATIVE | MR_OP_AGGREGATE,
     .doc = "Returns the element-wise sum of inputs, which must have the same shape."},
    {.name = "Equal",
     .signature = "x: T, y: T -> z: bool",
     .attrs = "T: type; incompatible_shape_error: bool = true",
     .shape = equality_shape,
     .flags = MR_OP_COMMUTATIVE | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns x == y element-wise."},
    {.name = "NotEqual",
     .signature = "x: T, y: T -> z: bool",
     .attrs = "T: type; incompatible_shape_error: bool = true",
     .shape = equality_shape,
     .flags = MR_OP_COMMUTATIVE | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns x != y element-wise."},
    {.name = "Less",
     .signature = "x: T, y: T -> z: bool",
     .attrs = "T: realnumbertype",
     .shape = mr_shape_binary,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns x < y element-wise."},
    {.name = "LessEqual",
     .signature = "x: T, y: T -> z: bool",
     .attrs = "T: realnumbertype",
     .shape = mr_shape_binary,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns x <= y element-wise."},
    {.name = "Greater",
     .signature = "x: T, y: T -> z: bool",
     .attrs = "T: realnumbertype",
     .shape = mr_shape_binary,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns x > y element-wise."},
    {.name = "GreaterEqual",
     .signature = "x: T, y: T -> z: bool",
     .attrs = "T: realnumbertype",
     .shape = mr_shape_binary,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns x >= y element-wise."},
    {.name = "LogicalAnd",
     .signature = "x: bool, y: bool -> z: bool",
     .shape = mr_shape_binary,
     .flags = MR_OP_COMMUTATIVE | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns x AND y element-wise."},
    {.name = "LogicalOr",
     .signature = "x: bool, y: bool -> z: bool",
     .shape = mr_shape_binary,
     .flags = MR_OP_COMMUTATIVE | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns x OR y element-wise."},
};

const mr_op_table mr_op_table_binary = {binary_ops, sizeof binary_ops / sizeof binary_ops[0]};
