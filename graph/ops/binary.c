/* Element-wise operators of two tensors, with broadcasting. */
#include "graph/ir/fold.h"

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

static mr_status approximate_equal_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape merged;
    MR_TRY(mr_shape_merge(call->inputs[0], call->inputs[1], &merged, error));
    return mr_shape_unchanged(call, error);
}

static mr_status cross_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape merged;
    for (int32_t i = 0; i < 2; i++) MR_TRY(mr_shape_at_least(call->inputs[i], 1, error));
    MR_TRY(mr_shape_merge(call->inputs[0], call->inputs[1], &merged, error));
    if (merged.rank > 0 && merged.dims[merged.rank - 1] >= 0 && merged.dims[merged.rank - 1] != 3)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Dimension must be 3 but is %lld",
                       (long long)merged.dims[merged.rank - 1]);
    call->outputs[0] = merged;
    return MR_OK;
}

/* ---- Values known while the graph is built ---- */

typedef bool (*fold_element)(int64_t a, int64_t b, int64_t *result);

static bool add(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_add_overflow(a, b, result);
}

static bool subtract(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_sub_overflow(a, b, result);
}

static bool multiply(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_mul_overflow(a, b, result);
}

static bool divide(int64_t a, int64_t b, int64_t *result)
{
    if (b == 0 || (a == INT64_MIN && b == -1)) return false;
    *result = a / b;
    return true;
}

static bool divide_down(int64_t a, int64_t b, int64_t *result)
{
    if (!divide(a, b, result)) return false;
    if (a % b != 0 && (a < 0) != (b < 0)) --*result;
    return true;
}

static bool remainder_down(int64_t a, int64_t b, int64_t *result)
{
    if (b == 0) return false;
    int64_t rest = b == -1 ? 0 : a % b; /* INT64_MIN % -1 traps */
    *result = rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    return true;
}

static bool larger(int64_t a, int64_t b, int64_t *result)
{
    *result = a > b ? a : b;
    return true;
}

static bool smaller(int64_t a, int64_t b, int64_t *result)
{
    *result = a < b ? a : b;
    return true;
}

static bool fold_binary(mr_folding *f, fold_element function)
{
    const mr_partial *a = mr_fold_input(f, 0), *b = mr_fold_input(f, 1);
    if (a == nullptr || b == nullptr) return false;
    if (a->count != b->count && a->count != 1 && b->count != 1) return false;
    int32_t count = a->count == 1 ? b->count : a->count;
    for (int32_t i = 0; i < count; i++) {
        int32_t at_a = a->count == 1 ? 0 : i, at_b = b->count == 1 ? 0 : i;
        int64_t value = 0;
        bool known =
            mr_fold_knows(a, at_a) && mr_fold_knows(b, at_b) && function(a->values[at_a], b->values[at_b], &value);
        if (!mr_fold_push(f, known && mr_fold_fits(f, value), value)) return false;
    }
    return true;
}

static bool fold_add(mr_folding *f)
{
    return fold_binary(f, add);
}

static bool fold_sub(mr_folding *f)
{
    return fold_binary(f, subtract);
}

static bool fold_mul(mr_folding *f)
{
    return fold_binary(f, multiply);
}

static bool fold_div(mr_folding *f)
{
    return fold_binary(f, divide);
}

static bool fold_floor_div(mr_folding *f)
{
    return fold_binary(f, divide_down);
}

static bool fold_floor_mod(mr_folding *f)
{
    return fold_binary(f, remainder_down);
}

static bool fold_maximum(mr_folding *f)
{
    return fold_binary(f, larger);
}

static bool fold_minimum(mr_folding *f)
{
    return fold_binary(f, smaller);
}

static const mr_op binary_ops[] = {
    {.name = "Add",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}",
     .shape = mr_shape_binary,
     .fold = fold_add,
     .role = MR_FUSION_ADD,
     .doc = "Returns x + y element-wise."},
    {.name = "AddV2",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, "
              "complex64, complex128}",
     .shape = mr_shape_binary,
     .fold = fold_add,
     .flags = MR_OP_COMMUTATIVE | MR_OP_AGGREGATE,
     .role = MR_FUSION_ADD,
     .doc = "Returns x + y element-wise."},
    {.name = "Sub",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, complex128, "
              "uint32, uint64}",
     .shape = mr_shape_binary,
     .fold = fold_sub,
     .doc = "Returns x - y element-wise."},
    {.name = "Mul",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
              "complex64, complex128}",
     .shape = mr_shape_binary,
     .fold = fold_mul,
     .role = MR_FUSION_MUL,
     .flags = MR_OP_COMMUTATIVE,
     .doc = "Returns x * y element-wise."},
    {.name = "MulNoNan",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, complex64, complex128}",
     .shape = mr_shape_binary,
     .doc = "Computes x * y element-wise; 0 where y is 0, even if x is infinite or NaN."},
    {.name = "Div",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
              "complex64, complex128}",
     .shape = mr_shape_binary,
     .fold = fold_div,
     .doc = "Returns x / y element-wise, rounded towards zero for integers."},
    {.name = "RealDiv",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
              "complex64, complex128}",
     .shape = mr_shape_binary,
     .role = MR_FUSION_DIV,
     .doc = "Returns x / y element-wise."},
    {.name = "DivNoNan",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {half, float, bfloat16, double, complex64, complex128}",
     .shape = mr_shape_binary,
     .doc = "Returns x / y element-wise, and 0 where y is 0."},
    {.name = "TruncateDiv",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
              "complex128}",
     .shape = mr_shape_binary,
     .doc = "Computes x / y element-wise; integers are rounded toward 0."},
    {.name = "FloorDiv",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
              "complex64, complex128}",
     .shape = mr_shape_binary,
     .fold = fold_floor_div,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns x / y element-wise, rounded down."},
    {.name = "FloorMod",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: realnumbertype",
     .shape = mr_shape_binary,
     .fold = fold_floor_mod,
     .doc = "Returns the remainder of floor division element-wise; it has the sign of y."},
    {.name = "TruncateMod",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {int32, int64, bfloat16, half, float, double}",
     .shape = mr_shape_binary,
     .doc = "Computes the remainder of x / y element-wise, with the sign of x."},
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
     .flags = MR_OP_COMMUTATIVE,
     .doc = "Returns (x - y)^2 element-wise."},
    {.name = "Pow",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
     .shape = mr_shape_binary,
     .doc = "Computes x to the power of y element-wise."},
    {.name = "Atan2",
     .signature = "y: T, x: T -> z: T",
     .attrs = "T: {bfloat16, half, float, double}",
     .shape = mr_shape_binary,
     .doc = "Computes the angle of the points (x, y) element-wise, in [-pi, pi]."},
    {.name = "Xlogy",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {half, bfloat16, float, double, complex64, complex128}",
     .shape = mr_shape_binary,
     .doc = "Returns x * log(y) element-wise, and 0 where x is 0."},
    {.name = "Xdivy",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {half, bfloat16, float, double, complex64, complex128}",
     .shape = mr_shape_binary,
     .doc = "Returns x / y element-wise, and 0 where x is 0."},
    {.name = "Xlog1py",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: {half, bfloat16, float, double, complex64, complex128}",
     .shape = mr_shape_binary,
     .doc = "Returns x * log(1 + y) element-wise, and 0 where x is 0."},
    {.name = "NextAfter",
     .signature = "x1: T, x2: T -> output: T",
     .attrs = "T: {double, float} = float",
     .shape = mr_shape_binary,
     .doc = "Returns the number after x1 in the direction of x2 element-wise."},
    {.name = "Maximum",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: realnumbertype",
     .shape = mr_shape_binary,
     .fold = fold_maximum,
     .doc = "Returns the maximum of x and y element-wise."},
    {.name = "Minimum",
     .signature = "x: T, y: T -> z: T",
     .attrs = "T: realnumbertype",
     .shape = mr_shape_binary,
     .fold = fold_minimum,
     .doc = "Returns the minimum of x and y element-wise."},
    {.name = "AddN",
     .signature = "inputs: N * T -> sum: T",
     .attrs = "N: int >= 1; "
              "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64, variant}",
     .shape = add_n_shape,
     .flags = MR_OP_COMMUTATIVE | MR_OP_AGGREGATE,
     .role = MR_FUSION_SUM,
     .doc = "Returns the element-wise sum of inputs, which must have the same shape."},
    {.name = "AccumulateNV2",
     .signature = "inputs: N * T -> sum: T",
     .attrs = "N: int >= 1; T: numbertype; shape: shape",
     .shape = add_n_shape,
     .flags = MR_OP_COMMUTATIVE | MR_OP_AGGREGATE,
     .doc = "Returns the element-wise sum of inputs, which all have the shape given."},
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
    {.name = "ApproximateEqual",
     .signature = "x: T, y: T -> z: bool",
     .attrs = "T: numbertype; tolerance: float = 1e-05",
     .shape = approximate_equal_shape,
     .flags = MR_OP_COMMUTATIVE | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns |x - y| < tolerance element-wise."},
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
    {.name = "Cross",
     .signature = "a: T, b: T -> product: T",
     .attrs = "T: realnumbertype",
     .shape = cross_shape,
     .doc = "Computes the cross products of the vectors of 3 elements in the last dimension."},
};

const mr_op_table mr_ops_binary = {binary_ops, sizeof binary_ops / sizeof binary_ops[0]};
