/* Operators that return a tensor with another name or shape, or return its shape. No element is read. */
#include "kernels/common.h"
#include <inttypes.h>

static mr_status identity(mr_kernel_call *call, mr_error *)
{
    for (int i = 0; i < call->node->output_count; i++) call->outputs[i] = mr_kernel_take(call, i);
    return MR_OK;
}

/* TensorFlow accepts any value. Its attribute shape, from which Shape and Size are folded, may then be wrong. */
static mr_status placeholder_with_default(mr_kernel_call *call, mr_error *error)
{
    mr_shape declared;
    MR_TRY(mr_attr_get_shape(call->node->attrs, "shape", &declared, error));
    if (!mr_shape_compatible(call->inputs[0].shape, declared)) {
        char found[MR_SHAPE_TEXT_SIZE], expected[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "the default value has shape %s, but the placeholder has shape %s",
                              mr_shape_text(call->inputs[0].shape, found, sizeof found),
                              mr_shape_text(declared, expected, sizeof expected));
    }
    return identity(call, error);
}

/* The size given as -1. If another one is 0, that one stands for the input's sizes of 0, which then do not count. */
static mr_status infer_size(const mr_kernel_call *call, int64_t known, bool has_zero, int64_t *size, mr_error *error)
{
    const mr_shape *from = &call->inputs[0].shape;
    int64_t count = has_zero ? 1 : mr_tensor_count(&call->inputs[0]);
    bool is_zero_left = false;
    for (int d = 0; d < from->rank && has_zero; d++) {
        if (from->dims[d] == 0)
            is_zero_left = true;
        else if (__builtin_mul_overflow(count, from->dims[d], &count))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the shape is too large");
    }
    *size = count / known;
    if (!is_zero_left && *size * known != count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Input to reshape is a tensor with %" PRId64 " values, but the requested shape "
                              "requires a multiple of %" PRId64,
                              count, known);
    return MR_OK;
}

/* TensorFlow's Reshape: one size may be -1. */
static mr_status reshape(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    mr_shape shape = MR_SCALAR;
    int64_t count = mr_tensor_count(input), known = 1; /* the product of the given sizes other than 0 */
    int missing = -1;
    bool has_zero = false;
    MR_TRY(mr_kernel_ints(call, 1, "shape", shape.dims, MR_RANK_MAX, &shape.rank, error));
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dims[i] == -1 && missing >= 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Only one input size may be -1, not both %d and %d", missing, i);
        if (shape.dims[i] == -1)
            missing = i;
        else if (shape.dims[i] < 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Size %d must be non-negative, not %" PRId64,
                                  i, shape.dims[i]);
        else if (shape.dims[i] == 0)
            has_zero = true;
        else if (__builtin_mul_overflow(known, shape.dims[i], &known))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the shape is too large");
    }
    if (missing >= 0) MR_TRY(infer_size(call, known, has_zero, &shape.dims[missing], error));
    const int64_t wanted = mr_shape_count(shape);
    if (wanted != count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Input to reshape is a tensor with %" PRId64
                              " values, but the requested shape has %" PRId64,
                              count, wanted);
    return mr_tensor_reshape(input, shape, &call->outputs[0], error);
}

static mr_status quantized_reshape(mr_kernel_call *call, mr_error *error)
{
    for (int i = 2; i < 4; i++)
        if (mr_tensor_count(&call->inputs[i]) != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input %d must be a scalar", i);
    MR_TRY(reshape(call, error));
    for (int i = 1; i < 3; i++) call->outputs[i] = mr_tensor_ref(&call->inputs[i + 1]);
    return MR_OK;
}

static mr_status shape_of(mr_kernel_call *call, mr_error *error)
{
    for (int i = 0; i < call->node->output_count; i++) {
        const mr_shape *shape = &call->inputs[i].shape;
        MR_TRY(mr_kernel_put_ints(call, i, MR_SHAPE(shape->rank), shape->dims, error));
    }
    return MR_OK;
}

static mr_status rank_of(mr_kernel_call *call, mr_error *error)
{
    int64_t rank = call->inputs[0].shape.rank;
    return mr_kernel_put_ints(call, 0, MR_SCALAR, &rank, error);
}

static mr_status size_of(mr_kernel_call *call, mr_error *error)
{
    int64_t count = mr_tensor_count(&call->inputs[0]);
    return mr_kernel_put_ints(call, 0, MR_SCALAR, &count, error);
}

static mr_status expand_dims(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape = call->inputs[0].shape, wider = {.rank = shape.rank + 1};
    int64_t given;
    int axis;
    if (mr_tensor_count(&call->inputs[1]) != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "'dim' must be a tensor with a single value");
    MR_TRY(mr_kernel_single_int(call, 1, "dim", &given, error));
    if (wider.rank > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
    if (given < -wider.rank || given >= wider.rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Tried to expand dim index %" PRId64 " for tensor with %d dimensions.", given,
                              shape.rank);
    axis = (int)(given < 0 ? given + wider.rank : given);
    for (int i = 0; i < wider.rank; i++) wider.dims[i] = i < axis ? shape.dims[i] : i == axis ? 1 : shape.dims[i - 1];
    return mr_tensor_reshape(&call->inputs[0], wider, &call->outputs[0], error);
}

static mr_status squeeze(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape = call->inputs[0].shape, narrow = MR_SCALAR;
    int64_t given[MR_RANK_MAX];
    int32_t given_count = 0;
    bool drop[MR_RANK_MAX] = {false};
    if (mr_attrs_find(call->node->attrs, "squeeze_dims") != nullptr)
        MR_TRY(mr_attr_get_ints(call->node->attrs, "squeeze_dims", given, MR_RANK_MAX, &given_count, error));
    for (int i = 0; i < given_count; i++) {
        int axis;
        if (given[i] < -shape.rank || given[i] >= shape.rank)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Tried to squeeze dim index %" PRId64 " for tensor with %d dimensions.", given[i],
                                  shape.rank);
        axis = (int)(given[i] < 0 ? given[i] + shape.rank : given[i]);
        if (shape.dims[axis] != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Can not squeeze dim[%d], expected a dimension of 1, got %" PRId64, axis,
                                  shape.dims[axis]);
        drop[axis] = true;
    }
    for (int i = 0; i < shape.rank; i++)
        if (given_count > 0 ? !drop[i] : shape.dims[i] != 1) narrow.dims[narrow.rank++] = shape.dims[i];
    return mr_tensor_reshape(&call->inputs[0], narrow, &call->outputs[0], error);
}

static mr_status incompatible(mr_kernel_call *call, const int64_t *a, int a_rank, const int64_t *b, int b_rank,
                              mr_error *error)
{
    mr_shape shapes[2] = {{.rank = a_rank}, {.rank = b_rank}};
    char texts[2][MR_SHAPE_TEXT_SIZE];
    for (int i = 0; i < a_rank; i++) shapes[0].dims[i] = a[i];
    for (int i = 0; i < b_rank; i++) shapes[1].dims[i] = b[i];
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s",
                          mr_shape_text(shapes[0], texts[0], sizeof texts[0]),
                          mr_shape_text(shapes[1], texts[1], sizeof texts[1]));
}

static mr_status check_vectors(const mr_kernel_call *call, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    for (int i = 0; i < 2; i++)
        if (call->inputs[i].shape.rank != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "In[%d] must be a vector.%s", i,
                                  mr_shape_text(call->inputs[i].shape, text, sizeof text));
    return MR_OK;
}

/* Returns the axes along which broadcasting repeated each of two shapes, for their gradients. */
static mr_status broadcast_gradient_args(mr_kernel_call *call, mr_error *error)
{
    int64_t shapes[2][MR_RANK_MAX], axes[2][MR_RANK_MAX];
    int ranks[2], counts[2] = {0, 0};
    MR_TRY(check_vectors(call, error));
    for (int i = 0; i < 2; i++) MR_TRY(mr_kernel_ints(call, i, "shape", shapes[i], MR_RANK_MAX, &ranks[i], error));
    int rank = MR_MAX(ranks[0], ranks[1]);
    for (int i = 0; i < rank; i++) {
        int64_t sizes[2];
        for (int s = 0; s < 2; s++) {
            int at = i - (rank - ranks[s]);
            sizes[s] = at < 0 ? 1 : shapes[s][at];
        }
        if (sizes[0] != sizes[1] && sizes[0] != 1 && sizes[1] != 1)
            return incompatible(call, shapes[0], ranks[0], shapes[1], ranks[1], error);
        for (int s = 0; s < 2; s++)
            if (sizes[s] == 1) axes[s][counts[s]++] = i;
    }
    /* Equal shapes need no sum. TensorFlow then returns no axes, even for sizes of 1. */
    bool equal = ranks[0] == ranks[1];
    for (int i = 0; equal && i < rank; i++) equal = shapes[0][i] == shapes[1][i];
    if (equal) counts[0] = counts[1] = 0;
    for (int i = 0; i < 2; i++) MR_TRY(mr_kernel_put_ints(call, i, MR_SHAPE(counts[i]), axes[i], error));
    return MR_OK;
}

/* Returns the shape that two shapes broadcast to. */
static mr_status broadcast_args(mr_kernel_call *call, mr_error *error)
{
    int64_t a[MR_RANK_MAX], b[MR_RANK_MAX], both[MR_RANK_MAX];
    int a_rank, b_rank;
    MR_TRY(check_vectors(call, error));
    MR_TRY(mr_kernel_ints(call, 0, "s0", a, MR_RANK_MAX, &a_rank, error));
    MR_TRY(mr_kernel_ints(call, 1, "s1", b, MR_RANK_MAX, &b_rank, error));
    int rank = MR_MAX(a_rank, b_rank);
    for (int i = 0; i < rank; i++) {
        int64_t x = i < rank - a_rank ? 1 : a[i - (rank - a_rank)], y = i < rank - b_rank ? 1 : b[i - (rank - b_rank)];
        if (x != y && x != 1 && y != 1) return incompatible(call, a, a_rank, b, b_rank, error);
        both[i] = x == 1 ? y : x;
    }
    return mr_kernel_put_ints(call, 0, MR_SHAPE(rank), both, error);
}

static const mr_kernel kernels[] = {
    {.op = "Identity", .run = identity},
    {.op = "IdentityN", .run = identity},
    {.op = "StopGradient", .run = identity},
    {.op = "PreventGradient", .run = identity},
    {.op = "Snapshot", .run = identity},
    {.op = "LoopCond", .run = identity},
    {.op = "PlaceholderWithDefault", .run = placeholder_with_default},
    {.op = "Reshape", .run = reshape, .host_inputs = 1 << 1},
    {.op = "QuantizedReshape", .types = "T: quint8, qint32", .run = quantized_reshape, .host_inputs = 14},
    {.op = "Shape", .run = shape_of},
    {.op = "ShapeN", .run = shape_of},
    {.op = "Rank", .run = rank_of},
    {.op = "Size", .run = size_of},
    {.op = "ExpandDims", .run = expand_dims},
    {.op = "Squeeze", .run = squeeze},
    {.op = "BroadcastGradientArgs", .run = broadcast_gradient_args},
    {.op = "BroadcastArgs", .run = broadcast_args},
};
MR_KERNEL_FAMILY(array_view);
