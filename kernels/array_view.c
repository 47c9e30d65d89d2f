/* Operators that return a tensor with another name or shape, or return its shape. No element is read. */
#include "kernels/common.h"
#include <inttypes.h>

static mr_status identity(mr_kernel_call *call, mr_error *)
{
    for (int i = 0; i < call->node->output_count; i++) call->outputs[i] = mr_tensor_ref(&call->inputs[i]);
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

/* TensorFlow's Reshape: one size may be -1. */
static mr_status reshape(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    mr_shape shape = MR_SCALAR;
    int64_t count = mr_tensor_count(input), known = 1;
    int missing = -1;
    MR_TRY(mr_kernel_ints(call, 1, "shape", shape.dims, MR_RANK_MAX, &shape.rank, error));
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dims[i] == -1 && missing < 0)
            missing = i;
        else if (shape.dims[i] < 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "size %d of the shape is %" PRId64, i,
                                  shape.dims[i]);
        else if (__builtin_mul_overflow(known, shape.dims[i], &known))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the shape is too large");
    }
    if (missing >= 0) {
        if (known == 0 || count % known != 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "%" PRId64 " elements are not a multiple of %" PRId64, count, known);
        shape.dims[missing] = count / known;
    } else if (known != count) {
        char text[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%" PRId64 " elements cannot have the shape %s",
                              count, mr_shape_text(shape, text, sizeof text));
    }
    return mr_tensor_reshape(input, shape, &call->outputs[0], error);
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
    MR_TRY(mr_kernel_int(call, 1, "dim", &given, error));
    if (wider.rank > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
    MR_TRY(mr_kernel_axis(call, given, wider.rank, &axis, error));
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
        MR_TRY(mr_kernel_axis(call, given[i], shape.rank, &axis, error));
        if (shape.dims[axis] != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "dimension %d has size %" PRId64 ", not 1",
                                  axis, shape.dims[axis]);
        drop[axis] = true;
    }
    for (int i = 0; i < shape.rank; i++)
        if (given_count > 0 ? !drop[i] : shape.dims[i] != 1) narrow.dims[narrow.rank++] = shape.dims[i];
    return mr_tensor_reshape(&call->inputs[0], narrow, &call->outputs[0], error);
}

/* Returns the axes along which broadcasting repeated each of two shapes, for their gradients. */
static mr_status broadcast_gradient_args(mr_kernel_call *call, mr_error *error)
{
    int64_t shapes[2][MR_RANK_MAX], axes[2][MR_RANK_MAX];
    int ranks[2], counts[2] = {0, 0};
    for (int i = 0; i < 2; i++) MR_TRY(mr_kernel_ints(call, i, "shape", shapes[i], MR_RANK_MAX, &ranks[i], error));
    int rank = MR_MAX(ranks[0], ranks[1]);
    for (int i = 0; i < rank; i++) {
        int64_t sizes[2];
        for (int s = 0; s < 2; s++) {
            int at = i - (rank - ranks[s]);
            sizes[s] = at < 0 ? 1 : shapes[s][at];
        }
        if (sizes[0] != sizes[1] && sizes[0] != 1 && sizes[1] != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "sizes %" PRId64 " and %" PRId64 " of dimension %d do not broadcast", sizes[0],
                                  sizes[1], i);
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
    MR_TRY(mr_kernel_ints(call, 0, "s0", a, MR_RANK_MAX, &a_rank, error));
    MR_TRY(mr_kernel_ints(call, 1, "s1", b, MR_RANK_MAX, &b_rank, error));
    int rank = MR_MAX(a_rank, b_rank);
    for (int i = 0; i < rank; i++) {
        int64_t x = i < rank - a_rank ? 1 : a[i - (rank - a_rank)], y = i < rank - b_rank ? 1 : b[i - (rank - b_rank)];
        if (x != y && x != 1 && y != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "sizes %" PRId64 " and %" PRId64 " of dimension %d do not broadcast", x, y, i);
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
