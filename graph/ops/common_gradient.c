/* Helpers of gradient functions: zeros for unused outputs, constants, and the reduction of broadcast operands. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

mr_output mr_gradient_or_zeros(mr_gradient_call *call, int32_t index)
{
    if (gradient_is_given(call, index)) return call->grad_outputs[index];
    return mr_zeros_like(call->graph, gradient_output(call, index));
}

void mr_gradient_forward(mr_gradient_call *call)
{
    call->grad_inputs[0] = call->grad_outputs[0];
}

mr_output mr_gradient_scalar(mr_gradient_call *call, mr_output like, double value)
{
    mr_dtype dtype = mr_output_dtype(like);
    union {
        uint16_t half;
        float floats[2];
        double doubles[2];
        int32_t int32;
        int64_t int64;
    } element = {0};
    switch (dtype) {
    case MR_FLOAT:
    case MR_COMPLEX64:
        element.floats[0] = (float)value;
        break;
    case MR_DOUBLE:
    case MR_COMPLEX128:
        element.doubles[0] = value;
        break;
    case MR_HALF:
        element.half = mr_float_to_half((float)value);
        break;
    case MR_BFLOAT16:
        element.half = mr_float_to_bfloat16((float)value);
        break;
    case MR_INT32:
        assert(value >= INT32_MIN && value <= INT32_MAX);
        element.int32 = (int32_t)value;
        break;
    case MR_INT64:
        assert(fabs(value) < 0x1p63);
        element.int64 = (int64_t)value;
        break;
    default:
        return mr_cast(call->graph, mr_constant_float(call->graph, (float)value), dtype);
    }
    mr_error error = {0};
    mr_tensor tensor;
    mr_status status = mr_tensor_init_copy(&tensor, dtype, MR_SCALAR, &element, &error);
    if (status != MR_OK) return mr_graph_fail(call->graph, status, "%s", error.message);
    mr_output constant = mr_constant(call->graph, &tensor, nullptr);
    mr_tensor_deinit(&tensor);
    return constant;
}

mr_output mr_gradient_conj(mr_gradient_call *call, mr_output value)
{
    mr_dtype dtype = mr_output_dtype(value);
    return dtype == MR_COMPLEX64 || dtype == MR_COMPLEX128 ? mr_conj(call->graph, value) : value;
}

mr_output mr_gradient_ints(mr_gradient_call *call, const int32_t *values, int32_t count)
{
    return mr_constant_int32s(call->graph, MR_SHAPE(count), values, nullptr);
}

/* False if a size is unknown or does not fit in an int32. */
static bool known_sizes(mr_shape shape, int32_t *sizes)
{
    if (shape.rank < 0) return false;
    for (int32_t i = 0; i < shape.rank; i++) {
        if (shape.dims[i] < 0 || shape.dims[i] > INT32_MAX) return false;
        sizes[i] = (int32_t)shape.dims[i];
    }
    return true;
}

mr_output mr_gradient_shape(mr_gradient_call *call, mr_output value)
{
    mr_shape shape = mr_output_shape(value);
    int32_t sizes[MR_RANK_MAX];
    if (known_sizes(shape, sizes)) return mr_gradient_ints(call, sizes, shape.rank);
    return mr_shape_of(call->graph, value);
}

mr_output mr_gradient_shape_like(mr_gradient_call *call, mr_output value, mr_output like)
{
    if (mr_output_dtype(like) == MR_INT32) return mr_gradient_shape(call, value);
    return mr_shape_of(call->graph, value, .out_type = mr_output_dtype(like));
}

/* The dimensions of the result along which target was repeated; -1 if they are not known while the graph is built. The
 * first *missing of them are dimensions that target does not have. */
static int32_t repeated_dimensions(mr_shape target, mr_shape other, int32_t *axes, int32_t *missing)
{
    *missing = 0;
    if (target.rank < 0 || other.rank < 0) return -1;
    int32_t count = 0, rank = target.rank > other.rank ? target.rank : other.rank;
    for (int32_t i = 0; i < rank; i++) {
        int32_t at = i - (rank - target.rank), other_at = i - (rank - other.rank);
        if (at < 0) {
            axes[count++] = i;
            ++*missing;
            continue;
        }
        int64_t size = target.dims[at], other_size = other_at < 0 ? 1 : other.dims[other_at];
        if (size > 1 || other_size == 1) continue;
        if (size < 0) return -1;
        if (size == 1) axes[count++] = i;
    }
    return count;
}

mr_output mr_gradient_unbroadcast(mr_gradient_call *call, mr_output grad, mr_output target, mr_output other)
{
    mr_graph *g = call->graph;
    mr_shape shape = mr_output_shape(target);
    int32_t axes[MR_RANK_MAX], missing;
    int32_t count = repeated_dimensions(shape, mr_output_shape(other), axes, &missing);
    if (count == 0) return grad;
    if (count > 0) {
        grad = mr_sum(g, grad, mr_gradient_ints(call, axes, count));
        return missing == count ? grad : mr_reshape(g, grad, mr_gradient_shape(call, target));
    }
    mr_output target_shape = mr_gradient_shape(call, target), other_shape = mr_gradient_shape(call, other);
    mr_broadcast_gradient_args_outputs args = mr_broadcast_gradient_args(g, target_shape, other_shape);
    return mr_reshape(g, mr_sum(g, grad, args.r0), target_shape);
}

bool mr_gradient_axes(mr_output axes, int32_t rank, int32_t *values, int32_t *count)
{
    mr_tensor tensor = {0};
    *count = 0;
    if (rank < 0 || !mr_output_constant(axes, &tensor)) return false;
    bool named[MR_RANK_MAX] = {0}, good = tensor.dtype == MR_INT32 || tensor.dtype == MR_INT64;
    for (int64_t i = 0; good && i < mr_tensor_count(&tensor); i++) {
        int64_t axis = tensor.dtype == MR_INT32 ? mr_tensor_int32s(&tensor)[i] : mr_tensor_int64s(&tensor)[i];
        if (axis < 0) axis += rank;
        good = axis >= 0 && axis < rank;
        if (good) named[axis] = true;
    }
    mr_tensor_deinit(&tensor);
    for (int32_t i = 0; i < rank; i++)
        if (named[i]) values[(*count)++] = i;
    return good;
}

/* Copies an attr from a node of the same graph, which owns its values. Types are deduced from the inputs. */
static void copy_attr(mr_node_builder *builder, const mr_attr *attr)
{
    mr_error error = {0};
    if (builder->node == nullptr || attr->kind == MR_ATTR_TYPE) return;
    mr_status status = mr_node_put_attr(builder->node, *attr, &error);
    if (status != MR_OK) (void)mr_graph_record(builder->graph, status, &error);
}

mr_output mr_gradient_node(mr_gradient_call *call, const char *op, mr_outputs inputs)
{
    mr_node_builder builder = mr_node_begin(call->graph, op, nullptr);
    for (int32_t i = 0; i < inputs.count; i++) mr_node_add_input(&builder, inputs.items[i]);
    const mr_op_def *def = mr_op_find(op);
    for (int32_t i = 0; def != nullptr && i < def->attr_count; i++) {
        const mr_attr *attr = mr_attrs_find(&call->node->attrs, def->attrs[i].name);
        if (attr != nullptr && attr->kind == def->attrs[i].kind) copy_attr(&builder, attr);
    }
    return mr_node_finish(&builder);
}

void mr_gradient_fail(mr_gradient_call *call, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)mr_graph_fail(call->graph, MR_UNIMPLEMENTED, "gradient of %s (%s): %s", mr_node_name(call->node),
                        mr_node_op(call->node), text);
}
